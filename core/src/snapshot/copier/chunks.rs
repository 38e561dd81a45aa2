//! Chunks: what is read of a cut, and when it is handed over.

use alloc::{boxed::Box, format, string::String, sync::Arc};
use core::time::Duration;

use super::{Around, Copier, Did, Step, compare::Ready};
use crate::{
    binlog::rows::RowsEvent,
    deliver::{CopyState, KeyParts, Seq, SnapshotChunk, TableCopy},
    halt::{Code, Detail, Halt},
    link::{RowsEnd, TextRow},
    probe::{Mark, Mutant, Probe},
    snapshot::rows::{RowEncoder, quoted, quoted_table, select_list},
};

/// How long the rows of a chunk may be silent.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

impl Copier {
    pub(super) fn read<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let Some(table) = &self.table else { return Did::Nothing };
        let copy = around.assembler.gate().copies().get(&table.name).cloned();
        let copy = copy.unwrap_or_else(TableCopy::waiting);
        let name = quoted_table(&table.name.0, &table.name.1);
        let list = select_list(&table.version);
        let Some(key) = &table.key else {
            let sql = format!("SELECT {list} FROM {name}");
            self.read_rows(&sql, around);
            return Did::Moved;
        };
        let mut index = String::new();
        quoted(key.name(), &mut index);
        let begun = copy.state == CopyState::Copying;
        if begun {
            self.upto.clone_from(&copy.upto);
        }
        let sql = match &self.upto {
            None if !begun => {
                // The end of the copy comes first: what comes behind it is the stream's.
                let order = key.order_by_from_end();
                format!("SELECT {list} FROM {name} FORCE INDEX ({index}) ORDER BY {order} LIMIT 1")
            }
            upto => {
                let behind = copy.key.as_ref().map(|last| key.behind(last));
                let up_to = upto.as_ref().map(|last| key.up_to(last));
                let mut conditions = String::new();
                for condition in [behind, up_to].into_iter().flatten() {
                    let Some(condition) = condition else {
                        let halt = Halt::new(Code::SnapshotSourceChanged);
                        return Did::Halt(halt.of_table(&table.name.0, &table.name.1));
                    };
                    conditions.push_str(if conditions.is_empty() { " WHERE (" } else { " AND (" });
                    conditions.push_str(&condition);
                    conditions.push(')');
                }
                let (order, limit) = (key.order_by(), self.terms.limits.chunk_rows);
                format!(
                    "SELECT {list} FROM {name} FORCE INDEX ({index}){conditions} ORDER BY {order} LIMIT {limit}"
                )
            }
        };
        self.read_rows(&sql, around);
        Did::Moved
    }

    pub(super) fn read_rows<P: Probe>(&mut self, sql: &str, around: &mut Around<'_, P>) {
        self.encoder = self.table.as_ref().map(|table| RowEncoder::new(Arc::clone(&table.version)));
        self.result_rows = 0;
        self.result_open = true;
        self.last = false;
        self.view.read(sql, self.terms.row_max, around.now.after(SILENCE_MAX), around.out);
        self.step = Step::Reading;
    }

    pub(super) fn is_finding_end<P: Probe>(&self, around: &Around<'_, P>) -> bool {
        let Some(table) = &self.table else { return false };
        let copy = around.assembler.gate().copies().get(&table.name);
        table.key.is_some()
            && self.upto.is_none()
            && copy.is_some_and(|copy| copy.state == CopyState::Waiting)
    }

    pub(super) fn row<P: Probe>(&mut self, row: &TextRow, around: &mut Around<'_, P>) -> Did {
        self.view.deadline = Some(around.now.after(SILENCE_MAX));
        let Some(encoder) = &mut self.encoder else { return Did::Moved };
        if let Err(error) = encoder.push(&mut row.cells()) {
            let _ = error;
            let halt = Halt::new(Code::ValueMalformed)
                .with(Detail::Note("A row of the copy does not fit its table"));
            let name = self.table.as_ref().map(|table| table.name.clone()).unwrap_or_default();
            return Did::Halt(halt.of_table(&name.0, &name.1));
        }
        self.result_rows = self.result_rows.saturating_add(1);
        let limits = &self.terms.limits;
        // Along a key the statement bounds the rows.
        let whole = self.table.as_ref().is_some_and(|table| table.key.is_none());
        let full = encoder.bytes() >= limits.chunk_bytes || (whole && encoder.rows() >= limits.chunk_rows);
        if full && !self.is_finding_end(around) {
            self.step = Step::Held;
        }
        Did::Moved
    }

    pub(super) fn end_of_rows<P: Probe>(&mut self, end: &RowsEnd, around: &mut Around<'_, P>) -> Did {
        self.result_open = false;
        match end {
            RowsEnd::Complete => {}
            RowsEnd::NoRows(_) => return self.lose(Halt::new(Code::SourceUnreachable), around),
            RowsEnd::Failed(error) => {
                // The table was changed, or somebody killed the statement: another cut.
                P::mark(Mark::ChunkFailed);
                self.cut_good = false;
                self.step = Step::End;
                self.failures = self.failures.saturating_add(1);
                return match self.is_over(around.now) {
                    true => Did::Halt(Halt::new(Code::SourceUnreachable).with_server_error(error.number())),
                    false => Did::Moved,
                };
            }
        }
        if self.is_finding_end(around) {
            self.upto = match self.take_rows(None) {
                Ok(ready) => ready.key,
                Err(halt) => return Did::Halt(halt),
            };
            if self.upto.is_some() {
                self.step = Step::Next;
                return Did::Moved;
            }
            self.last = true;
        } else {
            let whole = self.table.as_ref().is_none_or(|table| table.key.is_none());
            self.last = whole || self.result_rows < self.terms.limits.chunk_rows;
        }
        self.step = Step::Held;
        Did::Moved
    }

    /// The rows that were read, as one event, and their last key.
    fn take_rows(&mut self, before: Option<KeyParts>) -> Result<Ready, Halt> {
        let Some(table) = &self.table else { return Ready::new(None, None, None).map_err(Halt::new) };
        let malformed = |code| Halt::new(code).of_table(&table.name.0, &table.name.1);
        let rows = match &mut self.encoder {
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
            match self.take_rows(before.key.clone()) {
                Ok(ready) => self.ready = Some(ready),
                Err(halt) => return Did::Halt(halt),
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
        let last = self.last || (copy.upto.is_some() && copy.key == copy.upto);
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
        self.step = if self.result_open { Step::Reading } else { Step::Next };
        if last {
            self.table = None;
            self.upto = None;
            self.encoder = None;
            if core::mem::take(&mut self.result_open) {
                self.view.close(around.out);
                self.view_open = false;
                self.step = Step::Connecting;
            }
        }
        Did::Chunk(Box::new(chunk), Box::new(copy))
    }

    /// What is being read is of no use any more.
    pub(super) fn give_up_reading<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        P::mark(Mark::CutGivenUp);
        around.assembler.gate_mut().end_cut();
        self.cut_good = false;
        self.forget_ready();
        if self.result_open {
            // The rest of the rows would have to be read.
            self.view.close(around.out);
            self.view_open = false;
            self.result_open = false;
            self.step = Step::Connecting;
        } else {
            self.step = Step::Next;
        }
        Did::Moved
    }
}
