//! The one ordered sequence of units: batches, positions, acknowledgements.
//!
//! [`crate::replica::Replica`] emits [`Event`]s; a [`Delivery`] cuts them into batches, folds the
//! position of each and checks what comes back. The driver carries batches to the [`Sink`] and
//! looks into none. A position exists only inside an [`Ack`], and an [`Ack`] only after the last
//! change of its batch was handed over: a position that can be stored apart from its rows can be wrong.

mod batch;
mod copy;
mod delivery;
mod event;
mod position;
mod sink;
#[cfg(test)]
mod tests;

pub use batch::{
    Ack, Batch, BatchState, BlockingBatch, BlockingTransaction, BlockingUnit, Change, Feed, Incomplete, Item,
    Op, Part, Progress, Rows, SnapshotRows, Transaction, Unit,
};
pub use copy::{CopiedTable, Copies, CopyState, KeyParts, SnapshotChunk, TableCopy};
pub use delivery::{AckRefused, BatchLimits, Delivery, Holds, Push};
pub use event::{Event, SchemaChange, Seq, TxBegin, TxCommit, XaState};
pub use position::{Advance, Expected, LastTransaction, Mismatch, Position, PositionError, XaDigest};
pub use sink::{BlockingSink, FailureClass, Sink, SinkError, SinkFailure, SinkResultExt};
