//! JSON lines to a writer that cannot take anything back.

use std::{fmt, io::Write};

use capstan_core::deliver::{Ack, BlockingBatch, BlockingSink, Position, SinkError};

use super::{JsonOptions, failed, gather::Gather};

/// Prints units to a writer (standard output, a pipe), whole transactions only, flushed after each batch.
///
/// It remembers its position for as long as it lives, so a run without a checkpoint store begins where
/// [`crate::Start`] says and goes on over reconnects; with a store it is *at least once*: the batches that
/// were printed and not yet stored are printed again after a crash.
///
/// The last line, written when the sink is dropped, is the whole position.
pub struct JsonLines<W: Write> {
    out: W,
    gather: Gather,
    position: Option<Position>,
    /// A write has failed, perhaps in the middle of a line: nothing may follow it.
    broken: bool,
}

impl<W: Write> fmt::Debug for JsonLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonLines({:?})", self.gather)
    }
}

impl<W: Write> JsonLines<W> {
    /// Prints to `out`.
    pub fn new(out: W, options: JsonOptions) -> Self {
        Self { out, gather: Gather::new(options), position: None, broken: false }
    }

    fn print(&mut self) -> Result<(), SinkError> {
        let written = self.gather.write_to(&mut self.out).and_then(|_| self.out.flush());
        written.map_err(|error| {
            self.broken = true;
            failed(error)
        })
    }
}

impl<W: Write + Send> BlockingSink for JsonLines<W> {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.position.clone())
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        self.gather.take(&mut batch)?;
        let ack = batch.finish()?;
        self.gather.progress(ack.position(), false);
        self.print()?;
        self.position = Some(ack.position().clone());
        Ok(ack)
    }
}

impl<W: Write> Drop for JsonLines<W> {
    fn drop(&mut self) {
        self.gather.clear();
        if let (Some(position), false) = (&self.position, self.broken) {
            self.gather.progress(position, true);
            // Nobody is left to be told of a failure, and no line depends on this one.
            let _ = self.print();
        }
    }
}
