//! Text on standard output, each transaction only once it is whole.

use std::{
    fs::File,
    io::{self, BufWriter, Seek as _, Write as _},
};

/// Text of a transaction that is held in memory; beyond that it waits in a temporary file.
const SPILL_ABOVE: usize = 8 << 20;

/// Text that waits for the end of its transaction.
pub struct Held {
    out: BufWriter<io::StdoutLock<'static>>,
    /// What is written next.
    pub text: String,
    spill: Option<File>,
}

impl Held {
    pub fn new() -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), text: String::new(), spill: None }
    }

    /// Moves what became large out of memory. Call it after each row.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.text.len() <= SPILL_ABOVE {
            return Ok(());
        }
        let spill = match &mut self.spill {
            Some(spill) => spill,
            None => self.spill.insert(tempfile::tempfile()?),
        };
        spill.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }

    /// Forgets what was held.
    pub fn discard(&mut self) {
        self.text.clear();
        self.spill = None;
    }

    /// Prints what was held.
    pub fn print(&mut self) -> io::Result<()> {
        if let Some(mut spill) = self.spill.take() {
            spill.rewind()?;
            io::copy(&mut spill, &mut self.out)?;
        }
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.out.flush()
    }
}
