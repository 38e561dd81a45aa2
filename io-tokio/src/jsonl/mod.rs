//! JSON lines: one unit to a line.
//!
//! The forms are those of [`crate::core::text`]. Three sinks print them: [`JsonLines`] to any writer, for
//! people and pipes, [`AsyncJsonLines`] to one that is awaited, as a socket is, and [`JsonFile`] to a file that
//! holds every transaction once.

mod awaited;
mod file;
mod gather;
mod stream;
#[cfg(test)]
mod tests;

use std::{io, time::Duration};

use capstan_core::{
    deliver::{FailureClass, SinkError},
    text::TextOptions,
};

use crate::io_failure::writing;

pub use awaited::AsyncJsonLines;
pub use file::JsonFile;
pub use stream::JsonLines;

/// A writer failed, perhaps in the middle of a line: nothing may follow it.
fn failed(error: io::Error) -> SinkError {
    SinkError::new(FailureClass::Permanent, "print", None)
        .or_code(writing("print", io::Error::from(error.kind())).code())
        .caused_by(error)
}

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonOptions {
    /// How values are written.
    pub text: TextOptions,
    /// Bytes of lines that are held in memory until their batch is complete; beyond that they wait in a
    /// temporary file.
    pub spill_above: usize,
    /// How often a line with the whole position is written while transactions come.
    pub progress_every: Duration,
    /// [`JsonFile`] only: whether each batch is forced to the disk. Without it a crash of the machine,
    /// though not one of the process, can lose lines that were acknowledged.
    pub sync: bool,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            text: TextOptions::default(),
            spill_above: 8 << 20,
            progress_every: Duration::from_secs(1),
            sync: true,
        }
    }
}
