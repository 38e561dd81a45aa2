//! A position in a file.

use std::path::{Path, PathBuf};

use capstan_core::deliver::{Expected, Position, SinkError};

use super::{
    BlockingCheckpointStore,
    decisions::record,
    lock::{Lock, unusable},
    replace::replace,
};
use crate::{
    decision::{Decision, Stored},
    halt::Halt,
    io_failure::{reading, writing},
};

/// A position in a file that is replaced as a whole: written beside, synced, renamed, folder synced.
///
/// Beside it lies `PATH.lock`, held while this lives and never removed.
#[derive(Debug)]
pub struct FileCheckpoint {
    path: PathBuf,
    _lock: Lock,
}

impl FileCheckpoint {
    /// Takes the lock. The file need not exist yet.
    ///
    /// # Errors
    /// `checkpoint_in_use` while another process holds it; `config_invalid` where it cannot be written;
    /// `position_read_failed` and `position_format_newer` where it holds something else.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Halt> {
        let path = path.into();
        if path.is_dir() {
            return Err(unusable(&path, &std::io::ErrorKind::IsADirectory.into()));
        }
        let lock = Lock::take(&path)?;
        let checkpoint = Self { path, _lock: lock };
        read(&checkpoint.path).map_err(|error| Halt::from(&error))?;
        Ok(checkpoint)
    }

    /// What is stored, at a glance: nothing is locked or made.
    ///
    /// # Errors
    /// `position_read_failed`, `position_format_newer`.
    pub fn peek(path: impl AsRef<Path>) -> Result<Option<Position>, Halt> {
        read(path.as_ref()).map_err(|error| Halt::from(&error))
    }
}

impl BlockingCheckpointStore for FileCheckpoint {
    fn load(&mut self) -> Result<Option<Position>, SinkError> {
        read(&self.path)
    }

    fn store(&mut self, expected: &Expected, position: &Position) -> Result<(), SinkError> {
        expected.check(read(&self.path)?.as_ref())?;
        let mut text = position.encode();
        text.push('\n');
        replace(&self.path, text.as_bytes(), true).map_err(|error| writing("checkpoint", error))
    }
}

impl Stored for FileCheckpoint {
    fn stored(&mut self) -> Result<Option<Position>, SinkError> {
        self.load()
    }

    fn decide(
        &mut self,
        expected: &Expected,
        position: &Position,
        decision: &Decision,
    ) -> Result<(), SinkError> {
        expected.check(self.load()?.as_ref())?;
        record(&self.path, decision, expected.position(), position)?;
        self.store(expected, position)
    }
}

fn read(path: &Path) -> Result<Option<Position>, SinkError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(Position::decode(text.trim_end())?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(reading("checkpoint", error)),
    }
}
