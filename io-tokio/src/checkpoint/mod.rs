//! Library-owned positions: a store beside the sink.
//!
//! With a store the position is written after the sink has acknowledged a batch, so a crash between the
//! two hands that batch out again: *at least once*. A sink that can hold the position itself, in the same
//! atomic write as the data, gets *exactly once* and needs no store.

#[cfg(any(feature = "checkpoint-file", feature = "jsonl"))]
pub(crate) mod decisions;
#[cfg(feature = "checkpoint-file")]
mod file;
#[cfg(any(feature = "checkpoint-file", feature = "sqlite", feature = "jsonl"))]
pub(crate) mod lock;
#[cfg(any(feature = "checkpoint-file", feature = "jsonl"))]
pub(crate) mod replace;

#[cfg(test)]
pub(crate) mod tests;

use std::{future::Future, pin::Pin};

use capstan_core::deliver::{Expected, Position, SinkError};

#[cfg(feature = "checkpoint-file")]
pub use file::FileCheckpoint;

/// Where a library-owned position is kept.
///
/// A failure to load that is not transient halts with `position_read_failed`, one to store with
/// `position_write_failed`.
pub trait CheckpointStore: Send {
    /// What is stored. `None`: nothing was ever stored.
    fn load(&mut self) -> impl Future<Output = Result<Option<Position>, SinkError>> + Send;

    /// Replaces what is stored by `position`, durably and at once or not at all, on condition that it
    /// still is `expected`: else [`SinkError::fenced`] or [`SinkError::stale`]
    /// ([`Expected::check`] tells which).
    fn store(
        &mut self,
        expected: &Expected,
        position: &Position,
    ) -> impl Future<Output = Result<(), SinkError>> + Send;
}

/// [`CheckpointStore`] without `async`. It runs on a thread of its own.
pub trait BlockingCheckpointStore: Send {
    /// As [`CheckpointStore::load`].
    ///
    /// # Errors
    /// As there.
    fn load(&mut self) -> Result<Option<Position>, SinkError>;

    /// As [`CheckpointStore::store`].
    ///
    /// # Errors
    /// As there.
    fn store(&mut self, expected: &Expected, position: &Position) -> Result<(), SinkError>;
}

/// A future in a box: one per batch, beside a write to a disk.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`CheckpointStore`] as an object, so that the builder needs no type parameter for it.
pub(crate) trait ErasedStore: Send {
    fn load(&mut self) -> Boxed<'_, Result<Option<Position>, SinkError>>;
    fn store<'a>(
        &'a mut self,
        expected: &'a Expected,
        position: &'a Position,
    ) -> Boxed<'a, Result<(), SinkError>>;
}

impl<S: CheckpointStore> ErasedStore for S {
    fn load(&mut self) -> Boxed<'_, Result<Option<Position>, SinkError>> {
        Box::pin(CheckpointStore::load(self))
    }

    fn store<'a>(
        &'a mut self,
        expected: &'a Expected,
        position: &'a Position,
    ) -> Boxed<'a, Result<(), SinkError>> {
        Box::pin(CheckpointStore::store(self, expected, position))
    }
}
