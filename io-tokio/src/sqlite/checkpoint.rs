//! A position in a SQLite database of its own.

use std::path::Path;

use capstan_core::{
    deliver::{Expected, Position, SinkError},
    halt::Halt,
};

use super::database::{Database, Synchronous, stored_in_database};
use crate::checkpoint::BlockingCheckpointStore;

/// A position in the table `capstan_position` of a SQLite database, for library-owned mode.
#[derive(Debug)]
pub struct SqliteCheckpoint(Database);

impl SqliteCheckpoint {
    /// Opens or makes the database, and takes its lock `PATH.lock`.
    ///
    /// # Errors
    /// As [`super::Ledger::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Halt> {
        Database::open(path.as_ref(), "checkpoint", "", Synchronous::Full).map(Self)
    }
}

impl BlockingCheckpointStore for SqliteCheckpoint {
    fn load(&mut self) -> Result<Option<Position>, SinkError> {
        self.0.position()
    }

    fn store(&mut self, expected: &Expected, position: &Position) -> Result<(), SinkError> {
        self.0.begin(expected)?.commit(position)
    }
}

stored_in_database!(SqliteCheckpoint, 0);
