//! Decisions of a person that move a stored position, recorded where it is stored.

use capstan_core::deliver::{Expected, Position, SinkError};

/// Why a position was moved by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The command: `skip`, `accept-tables`, `copy-again`, `forget-table`.
    pub kind: String,
    /// What it is about: a GTID, a captured set, a table.
    pub subject: String,
    /// The person's reason.
    pub reason: String,
}

/// A target or checkpoint whose stored position a person may look at and move.
pub trait Stored {
    /// What is stored.
    ///
    /// # Errors
    /// As [`crate::BlockingSink::position`].
    fn stored(&mut self) -> Result<Option<Position>, SinkError>;

    /// Replaces what is stored by `position`, if it still is `expected`, and records the decision with
    /// it.
    ///
    /// # Errors
    /// As [`crate::BlockingSink::apply`].
    fn decide(
        &mut self,
        expected: &Expected,
        position: &Position,
        decision: &Decision,
    ) -> Result<(), SinkError>;
}

/// Now, as the records show it.
#[cfg(any(feature = "sqlite", feature = "jsonl", feature = "checkpoint-file"))]
pub(crate) fn decided_at() -> String {
    use capstan_core::{text::write_time, time::SourceTime};
    use std::time::SystemTime;

    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut text = String::new();
    write_time(&mut text, SourceTime(u64::try_from(now.as_micros()).unwrap_or(0)));
    text
}
