//! From what `SELECT` gives to what the binlog has: the same table version, the same row images.
//!
//! A table is described by the server's own catalogue ([`Describe`]), read by a statement whose text form loses
//! nothing ([`select_list`]) in a session that is set for it ([`SESSION`]), and each result row becomes the row
//! image that an insert of it writes into the binlog ([`RowEncoder`]). So every value, sink and text form behind
//! this is the one of the stream.
//!
//! # Where an image may differ from the binlog's
//!
//! Only inside JSON, and never in its text: the text of a document does not tell a decimal from a double or an
//! integer that reads the same, an unsigned integer from a signed one, or a date, time or binary value from the
//! string that it is printed as; documents that were updated in place have holes in the binlog and none here; the
//! empty document that `INSERT IGNORE` leaves reads as `null`.

mod binary;
mod cell;
mod column;
mod describe;
mod encode;
mod generation;
mod key;
mod labels;
mod sql;
#[cfg(test)]
mod tests;

pub use describe::{
    Describe, DescribeError, DescribeSome, DescribeSomeStep, DescribeStep, Described, SomeOf, TableKind,
};
pub use encode::{CellFault, RowEncoder, RowError};
pub use key::{Compared, Comparisons, CopyKey, CopyKeyPart, KeyOrder, KeyUnsupported, TextPair};
pub(crate) use sql::select_some;
pub use sql::{SESSION, hex, quoted, quoted_table, select_list, text};
