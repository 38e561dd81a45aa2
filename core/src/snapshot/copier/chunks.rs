//! Chunks: what is read of a cut, and when it is handed over.

use alloc::{boxed::Box, format, string::String, sync::Arc};
use core::time::Duration;

use super::{
    Around, Copier, Did, Step,
    compare::Ready,
    lanes::{Ahead, LaneState, Strides, Then, What, moved, no_table, other_key},
};
use crate::{
    binlog::rows::RowsEvent,
    deliver::{CopyState, KeyParts, Seq, SnapshotChunk, TableCopy},
    halt::{Code, Detail, Halt, Place},
    link::RowsEnd,
    probe::{Mark, Mutant, Probe},
    snapshot::{
        client::CopyRow,
        rows::{CellFault, RowError, quoted, quoted_table, select_list},
    },
};

/// How long the rows of a chunk may be silent.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

impl Copier {
    /// Begins the next chunk of the cut.
    pub(super) fn read<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let Some(table) = &self.table else { return Did::Halt(no_table()) };
        let copy = around.assembler.gate().copies().get(&table.name).cloned();
        let copy = copy.unwrap_or_else(TableCopy::waiting);
        let name = quoted_table(&table.name.0, &table.name.1);
        let list = select_list(&table.version);
        let Some(key) = &table.key else {
            let sql = format!("SELECT {list} FROM {name}");
            return self.read_first(What::Whole, &sql, around);
        };
        let begun = copy.state == CopyState::Copying;
        if begun {
            self.upto.clone_from(&copy.upto);
        }
        if self.may_read_ahead(&copy) {
            self.ahead = Ahead { upto: copy.key.clone(), ..Ahead::default() };
            if self.is_range_cheap(around) {
                self.step = Step::Reading;
                return moved(self.begin_range(0, around));
            }
        }
        if self.upto.is_none() && !begun {
            // The end of the copy comes first: what comes behind it is the stream's.
            let (mut index, order) = (String::new(), key.order_by_from_end());
            quoted(key.name(), &mut index);
            let sql = format!("SELECT {list} FROM {name} FORCE INDEX ({index}) ORDER BY {order} LIMIT 1");
            return self.read_first(What::End, &sql, around);
        }
        let limit = format!(" LIMIT {}", self.terms.limits.chunk_rows);
        match Self::along_key(table, &list, copy.key.as_ref(), self.upto.as_ref(), &limit) {
            Some(sql) => self.read_first(What::Rows, &sql, around),
            None => Did::Halt(other_key(table)),
        }
    }

    /// Reads with one view alone.
    fn read_first<P: Probe>(&mut self, what: What, sql: &str, around: &mut Around<'_, P>) -> Did {
        self.ahead = Ahead::default();
        self.order.clear();
        self.order.push_back(0);
        self.ask_rows(0, what, sql, around);
        self.step = Step::Reading;
        Did::Moved
    }

    pub(super) fn row<P: Probe>(&mut self, at: usize, row: &CopyRow, around: &mut Around<'_, P>) -> Did {
        let limits = &self.terms.limits;
        let Some(lane) = self.lanes.get_mut(at) else { return self.out_of_step(around) };
        lane.view.deadline = Some(around.now.after(SILENCE_MAX));
        let (Some(encoder), LaneState::Reads(what)) = (&mut lane.encoder, lane.state) else {
            return self.out_of_step(around);
        };
        let pushed = match row {
            CopyRow::Binary(row) => encoder.push_binary(row),
            CopyRow::Text(row) => encoder.push(&mut row.cells()),
        };
        if let Err(error) = pushed {
            return Did::Halt(self.misfit(&error));
        }
        lane.rows = lane.rows.saturating_add(1);
        let enough = encoder.bytes() >= limits.chunk_bytes;
        let full = match what {
            What::End | What::Border => false,
            // The statement bounds the rows.
            What::Rows | What::Range { guessed: false, .. } => enough,
            What::Whole | What::Range { guessed: true, .. } => enough || encoder.rows() >= limits.chunk_rows,
        };
        if full {
            lane.state = LaneState::Full(what);
            if self.order.front() == Some(&at) {
                self.step = Step::Held;
            }
        }
        Did::Moved
    }

    fn misfit(&self, error: &RowError) -> Halt {
        let name = self.table.as_ref().map(|table| table.name.clone()).unwrap_or_default();
        let note = match error {
            RowError::Cell { reason: CellFault::NoJson, .. } => {
                "A JSON document is longer as text than max_allowed_packet of the source, which sends nothing of it"
            }
            RowError::Cell { .. } | RowError::Columns(_) | RowError::Event(_) => {
                "A row of the copy does not fit its table"
            }
        };
        let halt = Halt::new(Code::ValueMalformed).of_table(&name.0, &name.1).with(Detail::Note(note));
        let columns = self.table.as_ref().map(|table| table.version.columns()).unwrap_or_default();
        match error {
            RowError::Cell { column, .. } => match columns.get(*column) {
                Some(column) => halt.at(Place { column: Some(column.name.clone()), ..Place::default() }),
                None => halt,
            },
            RowError::Columns(_) | RowError::Event(_) => halt,
        }
    }

    pub(super) fn end_of_rows<P: Probe>(
        &mut self,
        at: usize,
        end: &RowsEnd,
        around: &mut Around<'_, P>,
    ) -> Did {
        let chunk_rows = self.terms.limits.chunk_rows;
        let Some(lane) = self.lanes.get_mut(at) else { return self.out_of_step(around) };
        let (LaneState::Reads(what) | LaneState::Full(what)) = lane.state else {
            return self.out_of_step(around);
        };
        lane.state = LaneState::Idle;
        match end {
            RowsEnd::Complete => {}
            RowsEnd::NoRows(_) => return self.lose(Halt::new(Code::SourceUnreachable), around),
            RowsEnd::Failed(error) => return self.chunk_failed(error.number(), around),
        }
        let last = match what {
            What::End => {
                self.upto = match self.take_rows(at, None) {
                    Ok(ready) => ready.key,
                    Err(halt) => return Did::Halt(halt),
                };
                if self.upto.is_some() {
                    self.front_is_over::<P>();
                    return Did::Moved;
                }
                true
            }
            What::Border => {
                let border = self.take_rows(at, None);
                return moved(border.and_then(|border| self.read_range(at, border.key, false, around)));
            }
            What::Whole => true,
            What::Rows => lane.rows < chunk_rows,
            What::Range { last, .. } => last,
        };
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.state = LaneState::Ended { last };
        }
        if self.order.front() == Some(&at) {
            self.settle_front::<P>();
        }
        Did::Moved
    }

    /// The table was changed, or somebody killed the statement: another cut.
    fn chunk_failed<P: Probe>(&mut self, number: u16, around: &mut Around<'_, P>) -> Did {
        P::mark(Mark::ChunkFailed);
        self.cut_good = false;
        self.forget_ready();
        self.step = if self.give_up_lanes(around) { Step::Connecting } else { Step::End };
        self.failures = self.failures.saturating_add(1);
        match self.is_over(around.now) {
            true => Did::Halt(Halt::new(Code::SourceUnreachable).with_server_error(number)),
            false => Did::Moved,
        }
    }

    /// The rows that were read, as one event, and their last key.
    fn take_rows(&mut self, at: usize, before: Option<KeyParts>) -> Result<Ready, Halt> {
        let Some(table) = &self.table else { return Err(no_table()) };
        let malformed = |code| Halt::new(code).of_table(&table.name.0, &table.name.1);
        let rows = match self.lanes.get_mut(at).and_then(|lane| lane.encoder.as_mut()) {
            Some(encoder) => encoder.take().map_err(|_| malformed(Code::ValueMalformed))?,
            None => None,
        };
        Ready::new(rows, table.key.as_deref(), before).map_err(malformed)
    }

    /// The chunk is complete: it is handed over where the stream has come to its set.
    pub(super) fn hand_over<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        if !around.assembler.gate().is_cut_good() {
            return self.give_up_reading(around);
        }
        let name = self.table.as_ref().map(|table| table.name.clone()).unwrap_or_default();
        let before = around.assembler.gate().copies().get(&name).cloned();
        let before = before.unwrap_or_else(TableCopy::waiting);
        if self.ready.is_none() {
            let at = self.order.front().copied().unwrap_or_default();
            match self.take_rows(at, before.key.clone()) {
                Ok(ready) => self.ready = Some(ready),
                Err(halt) => return Did::Halt(halt),
            }
            if let Some(lane) = self.front() {
                lane.take();
            }
        }
        if let Some(did) = self.canary(around) {
            return did;
        }
        let reached =
            around.assembler.gate().is_reached(around.assembler.processed()) || P::mutant(Mutant::ChunkEarly);
        if !reached && around.assembler.gate().waits_for_chunk() {
            // What waits for this chunk stands before what the chunk waits for: another server's order.
            return self.give_up_reading(around);
        }
        if !reached || !around.assembler.is_between_units() {
            return Did::Nothing;
        }
        let (Some(table), Some(Ready { rows, key, .. })) = (&self.table, self.ready.take()) else {
            return Did::Nothing;
        };
        let number = before.chunks;
        let (from, to) = (before.key.as_ref(), key.as_ref());
        let numbers =
            table.key.as_deref().zip(from).zip(to).and_then(|((of, from), to)| of.numbers(from, to));
        self.strides.note(numbers, rows.as_ref().map_or(0, RowsEvent::changes));
        let ended = self
            .order
            .front()
            .and_then(|at| self.lanes.get(*at))
            .is_some_and(|lane| lane.state == LaneState::Taken(Then::Ends { last: true }));
        let mut copy = TableCopy {
            state: CopyState::Copying,
            key: key.or(before.key),
            upto: self.upto.clone(),
            key_columns: table.fingerprint,
            gtid_set: self.gtid_set.clone(),
            chunks: number.saturating_add(1),
            rows: before.rows.saturating_add(rows.as_ref().map_or(0, RowsEvent::changes)),
            bytes: before.bytes.saturating_add(rows.as_ref().map_or(0, |rows| rows.images().len() as u64)),
        };
        let last = ended || (copy.upto.is_some() && copy.key == copy.upto);
        if last {
            copy = copy.done();
        }
        self.trouble_since = None;
        self.failures = 0;
        self.lock_wanted_since = None;
        *around.waits = None;
        self.xa.clear();
        let chunk = SnapshotChunk {
            seq: Seq(0),
            table: Arc::clone(&table.version),
            rows,
            number: number.saturating_add(u64::from(P::mutant(Mutant::ChunkNotFirst))),
            gtid_set: self.gtid_set.clone(),
            last,
            advance: Box::default(),
        };
        self.chunks_of_cut = self.chunks_of_cut.saturating_add(1);
        self.front_is_over::<P>();
        if last {
            self.table = None;
            self.upto = None;
            self.strides = Strides::default();
            self.step = if self.give_up_lanes(around) { Step::Connecting } else { Step::Next };
        }
        Did::Chunk(Box::new(chunk), Box::new(copy))
    }

    /// What is being read is of no use any more.
    pub(super) fn give_up_reading<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        P::mark(Mark::CutGivenUp);
        around.assembler.gate_mut().end_cut();
        self.cut_good = false;
        self.forget_ready();
        self.step = if self.give_up_lanes(around) { Step::Connecting } else { Step::Next };
        Did::Moved
    }
}
