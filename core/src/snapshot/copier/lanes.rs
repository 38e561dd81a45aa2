//! The views of one cut: each reads a range of the table's keys, and the ranges are handed over in their order.
//!
//! The first chunks of a cut are read alone: where writers spoil each cut, what is read ahead would be read in vain.
//! Then each view that is idle takes the next range, and reads it while others read theirs. Where a range ends is guessed
//! where the key is a whole number and the last chunks needed about as many numbers each; otherwise it is found, by the
//! key alone, which costs the source a quarter more of work. A wrong guess costs time and nothing else: a range may give
//! several chunks, or none. A view whose chunk is full is not read until its turn has come, so each keeps one chunk at most.

use alloc::{format, string::String, sync::Arc};
use core::time::Duration;

use super::{Around, Copier, Did, Step, chunks::SILENCE_MAX, connections, table::Table};
use crate::{
    deliver::{CopiedTable, KeyParts, TableCopy},
    halt::{Code, Halt},
    probe::{Mark, Mutant, Probe},
    replica::{CopyLink, CopyRead, Read},
    snapshot::{
        client::{Client, Said},
        rows::{CopyKey, RowEncoder, quoted, quoted_table, select_list, select_some},
    },
    time::Now,
};

/// Chunks that a cut has to give before ranges are read ahead: a spoiled one costs the connections that read.
const ALONE: u64 = 4;

/// How long a server that had no room for all views is left alone.
const MORE_AFTER: Duration = Duration::from_secs(60);

/// So that a fraction of a number is none too few.
const PER: u128 = 1 << 8;

/// A connection with a view, and what it reads.
pub(super) struct Lane {
    pub(super) view: Client,
    /// How many statements of the session's beginning are done.
    pub(super) setup: usize,
    /// The consistent view is open.
    pub(super) open: bool,
    pub(super) encoder: Option<RowEncoder>,
    pub(super) state: LaneState,
    /// Rows of the present result.
    pub(super) rows: u64,
}

/// What a view is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneState {
    /// Nothing.
    Idle,
    /// Its result has more rows.
    Reads(What),
    /// It has, and what was read is to be handed over before any of them is read.
    Full(What),
    /// What was read is the rest of its result, and is to be handed over.
    Ended {
        /// The last rows of the table are in it.
        last: bool,
    },
    /// What was read was taken, and waits for its place in the stream.
    Taken(Then),
}

/// What follows a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// More of the same result.
    Reads(What),
    /// Nothing.
    Ends {
        /// The last rows of the table are in it.
        last: bool,
    },
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
        /// Nobody knows how many rows it has.
        guessed: bool,
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

/// How many numbers of the key the last two chunks needed for [`PER`] rows.
#[derive(Default)]
pub(super) struct Strides([Option<u128>; 2]);

impl Strides {
    /// A chunk of `rows` rows lay in `numbers` numbers of the key.
    pub(super) fn note(&mut self, numbers: Option<u128>, rows: u64) {
        let stride = numbers.and_then(|numbers| numbers.saturating_mul(PER).checked_div(rows.into()));
        let [_, last] = self.0;
        self.0 = [last, stride];
    }

    /// Numbers that so many rows need, if the two chunks are much the same.
    fn of_rows(&self, rows: u64) -> Option<u128> {
        let [Some(one), Some(other)] = self.0 else { return None };
        let (less, more) = (one.min(other), one.max(other));
        let numbers = less.saturating_mul(rows.into()).checked_div(PER)?;
        (more <= less.saturating_mul(4)).then_some(numbers.max(1))
    }
}

impl Lane {
    pub(super) const fn new(number: u8) -> Self {
        Self {
            view: Client::new(CopyLink::View(number)),
            setup: 0,
            open: false,
            encoder: None,
            state: LaneState::Idle,
            rows: 0,
        }
    }

    /// What it read is void.
    pub(super) fn forget(&mut self) {
        self.encoder = None;
        self.state = LaneState::Idle;
    }

    /// Its result has more rows.
    const fn reads(&self) -> bool {
        matches!(self.state, LaneState::Reads(_) | LaneState::Full(_) | LaneState::Taken(Then::Reads(_)))
    }

    /// What it read is to be handed over.
    const fn is_full(&self) -> bool {
        matches!(self.state, LaneState::Full(_) | LaneState::Ended { .. } | LaneState::Taken(_))
    }

    /// What it read is taken to be handed over.
    pub(super) fn take(&mut self) {
        self.state = match self.state {
            LaneState::Full(what) => LaneState::Taken(Then::Reads(what)),
            LaneState::Ended { last } => LaneState::Taken(Then::Ends { last }),
            other @ (LaneState::Idle | LaneState::Reads(_) | LaneState::Taken(_)) => other,
        };
    }

    const fn may_read(&self, room: bool) -> bool {
        match self.state {
            LaneState::Idle | LaneState::Ended { .. } | LaneState::Taken(Then::Ends { .. }) => true,
            LaneState::Reads(_) => room,
            LaneState::Full(_) | LaneState::Taken(Then::Reads(_)) => false,
        }
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

    /// Whether all that the cut is to have are.
    pub(super) fn are_views_open(&self) -> bool {
        self.lanes.iter().take(self.views).all(|lane| lane.open)
    }

    /// Through how many views the next cut is read. Where nobody has said how many, the second is for keys that are
    /// one whole number.
    pub(super) fn views_of_cut(&self, name: &CopiedTable) -> usize {
        let known = self.table.as_ref().filter(|table| table.name == *name).map(|table| table.key.as_deref());
        let whole_number = match (known, self.looked.get(name)) {
            (Some(key), _) => key.is_some_and(CopyKey::is_whole_number),
            (None, Some(Some(looked))) => looked.described.key().is_ok_and(|key| key.is_whole_number()),
            (None, Some(None) | None) => false,
        };
        if self.terms.limits.connections.is_some() || whole_number { self.lanes.len() } else { 1 }
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
        for lane in self.lanes.iter_mut().filter(|lane| lane.reads()) {
            lane.view.deadline = match lane.view.deadline {
                _ if !lane.may_read(room) => None,
                None => Some(now.after(SILENCE_MAX)),
                some => some,
            };
        }
    }

    /// Works on what the views have sent.
    pub(super) fn poll_views<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        for (at, number) in (0..self.lanes.len()).zip(0_u8..) {
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
        lane.state = LaneState::Reads(what);
        lane.rows = 0;
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
        self.views > 1 && self.chunks_of_cut >= ALONE && keyed && copy.key.is_some()
    }

    /// Whether a view may take the next range: where nobody has said how many are to read, only one whose end can be
    /// guessed, which costs the source nothing.
    pub(super) fn is_range_cheap<P: Probe>(&self, around: &Around<'_, P>) -> bool {
        let guess = |table| self.guess(table, self.rows_of_range(table, around)).is_some();
        self.terms.limits.connections.is_some() || self.table.as_ref().is_some_and(guess)
    }

    /// About as many rows as make a chunk.
    fn rows_of_range<P: Probe>(&self, table: &Table, around: &Around<'_, P>) -> u64 {
        let copy = around.assembler.gate().copies().get(&table.name);
        let row_bytes = copy.map_or(1, |copy| copy.bytes.checked_div(copy.rows).unwrap_or(1)).max(1);
        let limits = &self.terms.limits;
        (limits.chunk_bytes as u64 / row_bytes).clamp(1, limits.chunk_rows.max(1))
    }

    /// An idle view begins the next range. Nothing: none is idle, or nothing is to be begun.
    pub(super) fn read_ahead<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let idle = |lane: &Lane| lane.open && lane.view.is_idle() && lane.state == LaneState::Idle;
        let goes_on = self.ahead.upto.is_some()
            && !self.ahead.ends
            && !self.ahead.finding
            && around.room
            && !around.paused
            && self.is_cut_fresh(around.now)
            && !self.load.is_due(around.now)
            && around.assembler.gate().is_cut_good()
            && around.assembler.gate().is_described()
            && self.is_range_cheap(around);
        match self.lanes.iter().position(idle).filter(|_| goes_on) {
            Some(at) => moved(self.begin_range(at, around)),
            None => Did::Nothing,
        }
    }

    /// A view takes the range that begins where the last one ends.
    pub(super) fn begin_range<P: Probe>(
        &mut self,
        at: usize,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        let table = self.table.as_ref().ok_or_else(no_table)?;
        let rows = self.rows_of_range(table, around);
        let guess = self.guess(table, rows);
        if !self.order.is_empty() {
            P::mark(Mark::ReadAhead);
        }
        match P::mutant(Mutant::RangesOutOfOrder) {
            false => self.order.push_back(at),
            true => self.order.push_front(at),
        }
        match guess {
            Some(border) => {
                P::mark(Mark::RangeGuessed);
                self.read_range(at, Some(border), true, around)
            }
            None => self.find_border(at, rows, around),
        }
    }

    /// Where about as many rows end, if their keys lie as those of the last chunks do. A little less than a chunk, so that
    /// what is a little more than expected is not a chunk of its own.
    fn guess(&self, table: &Table, rows: u64) -> Option<KeyParts> {
        let key = table.key.as_deref()?;
        let numbers = self.strides.of_rows(rows.saturating_sub(rows / 8))?;
        let border = key.ahead(self.ahead.upto.as_ref()?, numbers)?;
        let upto = self.upto.as_ref()?;
        Some(if key.compare(&border, upto)?.is_lt() { border } else { upto.clone() })
    }

    /// Asks for the end of the range.
    fn find_border<P: Probe>(
        &mut self,
        at: usize,
        rows: u64,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        let table = self.table.as_ref().ok_or_else(no_table)?;
        let parts = table.key.as_deref().map(|key| key.parts()).unwrap_or_default();
        let list = select_some(&table.version, |index| parts.iter().any(|part| part.column() == index));
        let limit = format!(" LIMIT 1 OFFSET {}", rows.saturating_sub(1));
        let sql = Self::along_key(table, &list, self.ahead.upto.as_ref(), self.upto.as_ref(), &limit);
        let sql = sql.ok_or_else(|| other_key(table))?;
        self.ahead.finding = true;
        self.ask_rows(at, What::Border, &sql, around);
        Ok(())
    }

    /// The end of the range is known, or the table's end comes before it.
    pub(super) fn read_range<P: Probe>(
        &mut self,
        at: usize,
        border: Option<KeyParts>,
        guessed: bool,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        let table = self.table.as_ref().ok_or_else(no_table)?;
        let last = border.is_none() || border == self.upto;
        let border = border.or_else(|| self.upto.clone());
        let list = select_list(&table.version);
        let sql = Self::along_key(table, &list, self.ahead.upto.as_ref(), border.as_ref(), "");
        let sql = sql.ok_or_else(|| other_key(table))?;
        let late = guessed && P::mutant(Mutant::RangeBegunLate);
        let begun_late = table.key.as_deref().filter(|_| late).zip(border.as_ref());
        let next = begun_late.and_then(|(key, border)| key.ahead(border, 1)).or(border);
        self.ahead = Ahead { upto: next, ends: last, finding: false };
        self.ask_rows(at, What::Range { last, guessed }, &sql, around);
        Ok(())
    }

    /// The chunk of the first lane was handed over.
    pub(super) fn front_is_over<P: Probe>(&mut self) {
        if let Some(lane) = self.front() {
            match lane.state {
                LaneState::Full(what) | LaneState::Taken(Then::Reads(what)) => {
                    lane.state = LaneState::Reads(what);
                }
                LaneState::Reads(_) => {}
                LaneState::Idle | LaneState::Ended { .. } | LaneState::Taken(Then::Ends { .. }) => {
                    self.next_lane();
                }
            }
        }
        self.settle_front::<P>();
    }

    /// What the first lane is at, where a range without rows is none.
    pub(super) fn settle_front<P: Probe>(&mut self) {
        let is_empty = |lane: &Lane| {
            let has_rows = lane.encoder.as_ref().is_some_and(|encoder| encoder.rows() > 0);
            lane.state == LaneState::Ended { last: false } && !has_rows && !P::mutant(Mutant::EmptyRange)
        };
        while self.front().is_some_and(|lane| is_empty(lane)) {
            self.strides = Strides::default();
            self.next_lane();
        }
        self.step = match self.front() {
            None => Step::Next,
            Some(lane) if lane.is_full() => Step::Held,
            Some(_) => Step::Reading,
        };
        if self.order.is_empty() {
            self.ahead = Ahead::default();
        }
    }

    fn next_lane(&mut self) {
        if let Some(lane) = self.front() {
            lane.forget();
        }
        self.order.pop_front();
    }

    /// What is being read is void, and so are connections on which the rest of it would have to be read. `true`: there
    /// were some.
    pub(super) fn give_up_lanes<P: Probe>(&mut self, around: &mut Around<'_, P>) -> bool {
        let mut closed = false;
        for lane in &mut self.lanes {
            if lane.reads() {
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

    /// Goes on with fewer views, where the server has no room for so many connections.
    pub(super) fn fewer_views(&mut self, now: Now) {
        self.lanes.truncate((self.lanes.len() / 2).max(1));
        self.fewer_since = Some(now);
    }

    /// Tries twice as many views again, before a cut and some time after the server had no room for them. `true`:
    /// they are to be connected.
    pub(super) fn more_views<P: Probe>(&mut self, now: Now) -> bool {
        let wanted = connections(&self.terms.limits);
        let (have, due) = (self.lanes.len(), self.fewer_since.map(|since| since.after(MORE_AFTER)));
        if have >= usize::from(wanted) || due.is_none_or(|due| now < due) || P::mutant(Mutant::FewForEver) {
            return false;
        }
        let most = have.saturating_mul(2).min(usize::from(wanted));
        self.lanes.extend((0..wanted).take(most).skip(have).map(Lane::new));
        self.fewer_since = Some(now);
        self.step = Step::Connecting;
        true
    }

    /// Whether another chunk may be begun from the cut that is open.
    pub(super) fn is_cut_fresh(&self, now: Now) -> bool {
        // At least one, or a cut would follow the other for ever.
        let young = self.chunks_of_cut == 0 || now.since(self.cut_at) < self.terms.limits.cut_age;
        young && self.waited_for == 0
    }
}

/// What was asked for, or a halt.
pub(super) fn moved(asked: Result<(), Halt>) -> Did {
    match asked {
        Ok(()) => Did::Moved,
        Err(halt) => Did::Halt(halt),
    }
}

pub(super) fn other_key(table: &Table) -> Halt {
    Halt::new(Code::SnapshotSourceChanged).of_table(&table.name.0, &table.name.1)
}

/// Nothing is read of no table.
pub(super) fn no_table() -> Halt {
    Halt::new(Code::SnapshotSourceChanged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where chunks differ, or one had no rows or no numbers, nothing is guessed.
    #[test]
    fn strides_are_steady_or_none() {
        let of_100 = |chunks: &[(Option<u128>, u64)]| {
            let mut strides = Strides::default();
            chunks.iter().for_each(|(numbers, rows)| strides.note(*numbers, *rows));
            strides.of_rows(100)
        };
        for (chunks, want) in [
            (&[][..], None),
            (&[(Some(10), 10)], None),
            (&[(Some(10), 10), (Some(10), 10)], Some(100)),
            (&[(Some(15), 10), (Some(17), 10)], Some(150)),
            (&[(Some(40), 10), (Some(10), 10)], Some(100)),
            (&[(Some(10), 10), (Some(41), 10)], None),
            (&[(Some(10), 10), (Some(10), 10), (Some(9_000), 10)], None),
            (&[(Some(9_000), 10), (Some(10), 10), (Some(10), 10)], Some(100)),
            (&[(Some(10), 10), (None, 10)], None),
            (&[(Some(10), 10), (Some(10), 0)], None),
            (&[(Some(0), 10), (Some(0), 10)], Some(1)),
            (&[(Some(u128::MAX), 1), (Some(u128::MAX), 1)], Some(u128::MAX / PER)),
        ] {
            assert_eq!(of_100(chunks), want, "{chunks:?}");
        }
    }
}
