//! The views of one cut: each reads a range of the table's keys, and the ranges are handed over in their order.
//!
//! The first chunks of a cut are read alone: where writers spoil each cut, what is read ahead would be read in vain.
//! Then each view that is idle finds the end of the next range, by the key alone, and reads it while others read theirs.
//! A view whose chunk is full is not read until its turn has come, so each keeps one chunk at most.

use alloc::{format, string::String, sync::Arc};

use super::{Around, Copier, Did, Step, chunks::SILENCE_MAX, table::Table};
use crate::{
    deliver::{KeyParts, TableCopy},
    halt::{Code, Halt},
    probe::{Mark, Mutant, Probe},
    replica::{CopyLink, CopyRead, Read},
    snapshot::{
        client::{Client, Said},
        rows::{RowEncoder, quoted, quoted_table, select_list, select_some},
    },
    time::Now,
};

/// Chunks that a cut has to give before ranges are read ahead: a spoiled one costs the connections that read.
const ALONE: u64 = 4;

/// A connection with a view, and what it reads.
pub(super) struct Lane {
    pub(super) view: Client,
    /// How many statements of the session's beginning are done.
    pub(super) setup: usize,
    /// The consistent view is open.
    pub(super) open: bool,
    pub(super) encoder: Option<RowEncoder>,
    pub(super) what: What,
    /// Rows of the present result.
    pub(super) rows: u64,
    /// The result has more rows.
    pub(super) reads: bool,
    /// What was read is to be handed over before anything more is read.
    pub(super) full: bool,
    /// The last rows of the table are in what was read.
    pub(super) last: bool,
}

/// What a view is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The last row of the table.
    End,
    /// The last key of the next range.
    Border,
    /// Every row.
    Whole,
    /// As many rows as a chunk may have.
    Rows,
    /// All rows of a range.
    Range {
        /// It is the last one.
        last: bool,
    },
}

/// Ranges of the open cut that are being read.
#[derive(Default)]
pub(super) struct Ahead {
    /// The end of the last one; `None`: there are none.
    pub(super) upto: Option<KeyParts>,
    /// None comes behind it.
    pub(super) ends: bool,
    /// Its end is being found.
    pub(super) finding: bool,
}

impl Lane {
    pub(super) const fn new(number: u8) -> Self {
        Self {
            view: Client::new(CopyLink::View(number)),
            setup: 0,
            open: false,
            encoder: None,
            what: What::End,
            rows: 0,
            reads: false,
            full: false,
            last: false,
        }
    }

    /// What it read is void.
    pub(super) fn forget(&mut self) {
        self.encoder = None;
        self.reads = false;
        self.full = false;
    }

    const fn may_read(&self, room: bool) -> bool {
        !self.reads || (!self.full && room)
    }
}

impl Copier {
    /// The lane whose chunk is handed over next.
    pub(super) fn front(&mut self) -> Option<&mut Lane> {
        self.lanes.get_mut(*self.order.front()?)
    }

    /// Whether the connection that kills a statement can.
    pub(super) fn can_kill(&self) -> bool {
        self.lanes.first().is_some_and(|lane| lane.view.is_idle())
    }

    pub(super) fn is_view_open(&self) -> bool {
        self.lanes.iter().any(|lane| lane.open)
    }

    pub(super) fn are_views_idle(&self) -> bool {
        self.lanes.iter().all(|lane| lane.view.is_idle())
    }

    /// What may be read of the views.
    pub(crate) fn reads(&self, room: bool, most: usize) -> CopyRead {
        let all = CopyRead::all(Read::UpTo(most));
        let numbered = (0_u8..).zip(&self.lanes);
        numbered.filter(|(_, lane)| !lane.may_read(room)).fold(all, |read, (number, _)| read.but(number))
    }

    /// While nothing is read, silence is our doing.
    pub(super) fn excuse_silence(&mut self, now: Now, room: bool) {
        for lane in self.lanes.iter_mut().filter(|lane| lane.reads) {
            lane.view.deadline = match lane.view.deadline {
                _ if !lane.may_read(room) => None,
                None => Some(now.after(SILENCE_MAX)),
                some => some,
            };
        }
    }

    /// Works on what the views have sent.
    pub(super) fn poll_views<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        for number in 0_u8..=u8::MAX {
            let at = usize::from(number);
            let mut read = false;
            while let Some(lane) = self.lanes.get_mut(at).filter(|lane| lane.may_read(around.room)) {
                let did = match lane.view.poll(around.out) {
                    Said::Row(row) => self.row(at, &row, around),
                    Said::Nothing => break,
                    said @ (Said::Moved
                    | Said::LoggedIn
                    | Said::Answer(_)
                    | Said::End(_)
                    | Said::Lost(_)
                    | Said::Refused(_)) => return self.heard(CopyLink::View(number), said, around),
                };
                match did {
                    Did::Moved => read = true,
                    did @ (Did::Nothing | Did::Chunk(..) | Did::Done | Did::Elsewhere | Did::Halt(_)) => {
                        return did;
                    }
                }
            }
            if read {
                return Did::Moved;
            }
            if at >= self.lanes.len() {
                break;
            }
        }
        Did::Nothing
    }

    pub(super) fn ask_rows<P: Probe>(
        &mut self,
        at: usize,
        what: What,
        sql: &str,
        around: &mut Around<'_, P>,
    ) {
        let encoder = self.table.as_ref().map(|table| RowEncoder::new(Arc::clone(&table.version)));
        let Some(lane) = self.lanes.get_mut(at) else { return };
        lane.encoder = encoder;
        lane.what = what;
        lane.rows = 0;
        lane.reads = true;
        lane.full = false;
        lane.last = false;
        lane.view.read(sql, self.terms.row_max, around.now.after(SILENCE_MAX), around.out);
    }

    /// What the next statement reads along a key; `None`: a border is none of this key.
    pub(super) fn along_key(
        table: &Table,
        list: &str,
        behind: Option<&KeyParts>,
        up_to: Option<&KeyParts>,
        limit: &str,
    ) -> Option<String> {
        let key = table.key.as_deref()?;
        let name = quoted_table(&table.name.0, &table.name.1);
        let mut index = String::new();
        quoted(key.name(), &mut index);
        let mut conditions = String::new();
        for condition in [behind.map(|key_of| key.behind(key_of)), up_to.map(|key_of| key.up_to(key_of))]
            .into_iter()
            .flatten()
        {
            conditions.push_str(if conditions.is_empty() { " WHERE (" } else { " AND (" });
            conditions.push_str(&condition?);
            conditions.push(')');
        }
        let order = key.order_by();
        Some(format!("SELECT {list} FROM {name} FORCE INDEX ({index}){conditions} ORDER BY {order}{limit}"))
    }

    /// Whether ranges may be read beside each other: more than one view, a key, and a cut that has held for some chunks.
    pub(super) fn may_read_ahead(&self, copy: &TableCopy) -> bool {
        let keyed = self.table.as_ref().is_some_and(|table| table.key.is_some());
        self.lanes.len() > 1 && self.chunks_of_cut >= ALONE && keyed && copy.key.is_some()
    }

    /// An idle view begins the next range. `false`: none is idle, or nothing is to be begun.
    pub(super) fn read_ahead<P: Probe>(&mut self, around: &mut Around<'_, P>) -> bool {
        let idle = |lane: &Lane| lane.open && lane.view.is_idle() && !lane.full && !lane.reads;
        let goes_on = self.ahead.upto.is_some()
            && !self.ahead.ends
            && !self.ahead.finding
            && around.room
            && !around.paused
            && self.is_cut_fresh(around.now)
            && !self.load.is_due(around.now)
            && around.assembler.gate().is_cut_good()
            && around.assembler.gate().is_described();
        let Some(at) = self.lanes.iter().position(idle).filter(|_| goes_on) else { return false };
        self.find_border(at, around).is_ok()
    }

    /// Asks for the end of the range that begins where the last one ends.
    pub(super) fn find_border<P: Probe>(
        &mut self,
        at: usize,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        let Some(table) = &self.table else { return Ok(()) };
        let parts = table.key.as_deref().map(|key| key.parts()).unwrap_or_default();
        let list = select_some(&table.version, |index| parts.iter().any(|part| part.column() == index));
        let copy = around.assembler.gate().copies().get(&table.name);
        let row_bytes = copy.map_or(1, |copy| copy.bytes.checked_div(copy.rows).unwrap_or(1)).max(1);
        let limits = &self.terms.limits;
        let rows = (limits.chunk_bytes as u64 / row_bytes).clamp(1, limits.chunk_rows.max(1));
        let limit = format!(" LIMIT 1 OFFSET {}", rows.saturating_sub(1));
        let sql = Self::along_key(table, &list, self.ahead.upto.as_ref(), self.upto.as_ref(), &limit);
        let sql = sql.ok_or_else(|| other_key(table))?;
        self.ahead.finding = true;
        if !self.order.is_empty() {
            P::mark(Mark::ReadAhead);
        }
        match P::mutant(Mutant::RangesOutOfOrder) {
            false => self.order.push_back(at),
            true => self.order.push_front(at),
        }
        self.ask_rows(at, What::Border, &sql, around);
        Ok(())
    }

    /// The end of the range is found, or the table's end before it.
    pub(super) fn read_range<P: Probe>(
        &mut self,
        at: usize,
        border: Option<KeyParts>,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        let Some(table) = &self.table else { return Ok(()) };
        let ends = border.is_none() || border == self.upto;
        let border = border.or_else(|| self.upto.clone());
        let list = select_list(&table.version);
        let sql = Self::along_key(table, &list, self.ahead.upto.as_ref(), border.as_ref(), "");
        let sql = sql.ok_or_else(|| other_key(table))?;
        self.ahead.finding = false;
        self.ahead.ends = ends;
        self.ahead.upto = border;
        self.ask_rows(at, What::Range { last: ends }, &sql, around);
        Ok(())
    }

    /// The chunk of the first lane was handed over.
    pub(super) fn front_is_over(&mut self) {
        if let Some(lane) = self.front() {
            lane.full = false;
            if !lane.reads {
                lane.encoder = None;
                self.order.pop_front();
            }
        }
        self.step = match self.front() {
            None => Step::Next,
            Some(lane) if lane.full => Step::Held,
            Some(_) => Step::Reading,
        };
        if self.order.is_empty() {
            self.ahead = Ahead::default();
        }
    }

    /// What is being read is void, and so are connections on which the rest of it would have to be read. `true`: there
    /// were some.
    pub(super) fn give_up_lanes<P: Probe>(&mut self, around: &mut Around<'_, P>) -> bool {
        let mut closed = false;
        for lane in &mut self.lanes {
            if lane.reads {
                lane.view.close(around.out);
                lane.open = false;
                closed = true;
            }
            lane.forget();
        }
        self.order.clear();
        self.ahead = Ahead::default();
        closed
    }

    /// Whether another chunk may be begun from the cut that is open.
    pub(super) fn is_cut_fresh(&self, now: Now) -> bool {
        // At least one, or a cut would follow the other for ever.
        let young = self.chunks_of_cut == 0 || now.since(self.cut_at) < self.terms.limits.cut_age;
        young && self.waited_for == 0
    }
}

pub(super) fn other_key(table: &Table) -> Halt {
    Halt::new(Code::SnapshotSourceChanged).of_table(&table.name.0, &table.name.1)
}
