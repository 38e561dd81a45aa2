//! What was emitted and is not durable, counted from outside: the core counts the same, and stops only
//! when there is none.

use std::collections::VecDeque;

use capstan_core::{
    binlog::rows::RowsEvent,
    config::Limits,
    deliver::{Event, Seq},
};

use super::Failure;

/// One unit that is out.
#[derive(Debug)]
struct Unit {
    seq: Seq,
    rows: usize,
    aborted: bool,
}

/// The units of one process that no sink has answered for.
#[derive(Debug, Default)]
pub struct Account {
    units: VecDeque<Unit>,
    rows: usize,
    /// The unit being emitted: whether it is streamed.
    streamed: bool,
    largest: usize,
}

impl Account {
    /// Takes the next event.
    pub fn event(&mut self, event: &Event, limits: &Limits) -> Result<(), Failure> {
        match event {
            Event::Claim { seq, .. } | Event::Progress { seq, .. } => self.begin(*seq, false),
            Event::TxBegin(begin) => self.begin(begin.seq, begin.streamed),
            Event::Rows(rows) => {
                let bytes = rows.retained();
                self.largest = self.largest.max(bytes);
                self.rows += bytes;
                if let Some(unit) = self.units.back_mut() {
                    unit.rows += bytes;
                    let most = limits.stream_above + self.largest;
                    if !self.streamed && unit.rows > most {
                        let bytes = unit.rows;
                        return Err(Failure::new("bounds", format!("{bytes} bytes were kept in one piece")));
                    }
                }
                self.within(limits)?;
            }
            Event::SnapshotRows(chunk) => {
                self.begin(chunk.seq, false);
                let bytes = chunk.rows.as_ref().map_or(0, RowsEvent::retained);
                self.largest = self.largest.max(bytes);
                self.rows += bytes;
                if let Some(unit) = self.units.back_mut() {
                    unit.rows += bytes;
                }
                self.within(limits)?;
            }
            Event::TxAbort { .. } => {
                if let Some(unit) = self.units.back_mut() {
                    unit.aborted = true;
                }
            }
            Event::Table(_) | Event::SchemaChange(_) | Event::TxCommit(_) => {}
        }
        Ok(())
    }

    /// Row bytes stay within the budget, one transaction below the limit, and what is read at once.
    fn within(&self, limits: &Limits) -> Result<(), Failure> {
        let budget = limits.retained_max + limits.stream_above + 2 * self.largest;
        if self.rows > budget {
            return Err(Failure::new(
                "bounds",
                format!("{} bytes of rows are out, {budget} allowed", self.rows),
            ));
        }
        Ok(())
    }

    fn begin(&mut self, seq: Seq, streamed: bool) {
        self.streamed = streamed;
        self.units.push_back(Unit { seq, rows: 0, aborted: false });
    }

    /// The sink has answered for every unit up to this one.
    pub fn durable(&mut self, upto: Seq) {
        while let Some(unit) = self.units.front()
            && unit.seq <= upto
        {
            self.rows -= unit.rows;
            self.units.pop_front();
        }
    }

    /// The sink moved past these rows of the transaction that is being read.
    pub fn released(&mut self, bytes: usize) {
        if let Some(unit) = self.units.front_mut() {
            let bytes = bytes.min(unit.rows);
            unit.rows -= bytes;
            self.rows -= bytes;
        }
    }

    /// What failed was the part of a transaction that its source took back.
    pub fn taken_back(&mut self) {
        if let Some(unit) = self.units.front()
            && unit.aborted
        {
            let seq = unit.seq;
            self.durable(seq);
        }
    }

    /// Everything that is not durable comes again.
    pub fn restarted(&mut self) {
        self.units.clear();
        self.rows = 0;
    }

    /// The core knows of as much.
    pub fn agrees(&self, units_out: usize) -> Result<(), Failure> {
        if units_out < self.units.len() {
            let message = format!("{} units are out, the core knows of {units_out}", self.units.len());
            return Err(Failure::new("account", message));
        }
        Ok(())
    }

    /// It has stopped as it was asked to.
    pub fn stopped(&self) -> Result<(), Failure> {
        match self.units.len() {
            0 => Ok(()),
            n => Err(Failure::new("account", format!("it stopped with {n} units that are not durable"))),
        }
    }
}
