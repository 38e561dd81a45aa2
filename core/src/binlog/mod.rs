//! Binlog events: header, checksum, and one decoder per event type.
//!
//! [`EventDecoder`] takes whole events, checks size and checksum, and gives [`Event`]s: header and
//! body. The body is read by the decoder of its type, and only by it: nothing here skips, guesses or
//! keeps state beyond the checksum algorithm. [`FileReader`] cuts a binlog file into events;
//! [`Inflater`] cuts a transaction payload.
//!
//! Sources: `libs/mysql/binlog/event` and `libs/mysql/serialization` of the server; the manual's "The
//! Binary Log"; bytes written by MySQL 9.7.4.

mod checksum;
mod control;
mod error;
mod event;
mod event_type;
mod file;
mod format_description;
mod gtid_event;
mod header;
mod inflate;
mod name;
mod optional_metadata;
mod payload;
mod query;
mod rotate;
pub mod rows;
mod status_variables;
pub mod table_map;
#[cfg(test)]
mod tests;

pub use checksum::Checksum;
pub use control::{Heartbeat, Incident, XaPrepare, XaXid, Xid, previous_gtids};
pub use error::{DecodeError, EventError};
pub use event::{Event, EventDecoder};
pub use event_type::EventType;
pub use file::{FileError, FileErrorKind, FileReader};
pub use format_description::FormatDescription;
pub use gtid_event::GtidEvent;
pub use header::{EventHeader, flags};
pub use inflate::{Inflated, Inflater};
pub use name::compare_names;
pub use payload::{Compression, PayloadError, PayloadHeader, TransactionPayload};
pub use query::Query;
pub use rotate::Rotate;
pub use status_variables::{SessionCharset, StatusVariables, UpdatedDatabases, flags2, sql_mode};

use crate::wire::Reader;

/// Bytes that must not be shown (Rule 1): their length is.
pub(crate) struct Hidden<'a>(pub(crate) &'a [u8]);

impl core::fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

/// The fields are over, so the bytes must be too.
pub(crate) const fn at_end(reader: &Reader<'_>) -> Result<(), DecodeError> {
    if reader.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(reader.len())) }
}
