//! What can be wrong with an event.

use crate::gtid::GtidSetDecodeError;
use crate::wire::Short;

/// An event cannot be taken: its frame is broken. The sender, the link or the disk is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Fewer bytes than the smallest event of its kind has.
    #[error("an event of {given} bytes is shorter than any")]
    TooShort {
        /// How many bytes there are.
        given: usize,
    },
    /// The header's size is not the number of bytes that came.
    #[error("the event says it has {claimed} bytes and has {given}")]
    SizeMismatch {
        /// The header's `event_size`.
        claimed: u32,
        /// How many bytes there are.
        given: usize,
    },
    /// The checksum does not hold: the bytes are not those that were written.
    #[error("the checksum of the event does not hold")]
    ChecksumMismatch,
    /// The format description names a checksum algorithm that is neither NONE nor CRC32.
    #[error("unknown checksum algorithm {0}")]
    UnknownChecksum(u8),
    /// The format description itself is malformed, or of a binlog older than checksums (5.6.1).
    #[error("malformed format description: {0}")]
    FormatDescription(#[from] DecodeError),
}

/// The body of an event does not have the form its type says. The sender or the disk is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body ends inside a field.
    #[error("the event ends inside a field")]
    Short,
    /// The body is longer than its fields.
    #[error("the event has {0} bytes more than its fields")]
    Trailing(usize),
    /// A field holds what no server writes.
    #[error("the event's {0} is out of range")]
    Field(&'static str),
    /// A status variable of a QUERY event that this reader does not know. Its width is unknown too,
    /// so what stands behind it cannot be read.
    #[error("unknown status variable {0}")]
    UnknownStatusVariable(u8),
    /// A field of a newer server that it says must not be passed over.
    #[error("unknown field {0} that must not be ignored")]
    UnknownField(u64),
    /// The GTID set of a PREVIOUS_GTIDS event.
    #[error(transparent)]
    GtidSet(#[from] GtidSetDecodeError),
}

impl From<Short> for DecodeError {
    fn from(Short: Short) -> Self {
        Self::Short
    }
}
