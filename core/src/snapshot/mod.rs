//! The initial snapshot: what a table held when its first change was streamed, copied while writers go on.
//!
//! A copy has connections of its own beside the stream's. It makes exact cuts, reads chunks of rows along the table's
//! key, and hands each over at the very place of the stream that it belongs to; the gate beside the stream decides which
//! changes of a table that is not copied yet reach the sink. How far it is is part of the position
//! ([`crate::deliver::TableCopy`]), so it goes on where it was after any crash.

mod client;
pub(crate) mod copier;
pub(crate) mod gate;
mod limits;
pub mod rows;

pub use limits::{CopyLimits, CopyWait};
