//! TRANSACTION_PAYLOAD_EVENT: a whole group in one event, usually compressed.

use bytes::Bytes;
use core::fmt;

use super::{DecodeError, Hidden, at_end};
use crate::wire::Reader;

/// How a payload is compressed (`compression/base.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// zstd.
    Zstd,
    /// Not at all.
    None,
    /// A kind of a newer server: the payload cannot be read.
    Unknown(u64),
}

impl Compression {
    const fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Zstd,
            255 => Self::None,
            unknown => Self::Unknown(unknown),
        }
    }
}

/// What stands in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadHeader {
    /// How the payload is compressed.
    pub compression: Compression,
    /// The length of the payload as it stands in the event, in bytes.
    pub payload_size: u64,
    /// What the source says it inflates to, in bytes. Never trusted for an allocation, only compared
    /// with what came out. Payloads that are not compressed do not say it.
    pub uncompressed_size: Option<u64>,
}

/// The fields of the header (`codecs/binary.h`): type, length and value, as length-encoded integers.
mod field {
    pub const END: u64 = 0;
    pub const PAYLOAD_SIZE: u64 = 1;
    pub const COMPRESSION_TYPE: u64 = 2;
    pub const UNCOMPRESSED_SIZE: u64 = 3;
}

impl PayloadHeader {
    /// Reads the header and leaves the reader in front of the payload. Unknown fields are passed over,
    /// as the server does.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (mut payload_size, mut compression, mut uncompressed_size) = (None, None, None);
        loop {
            let field = reader.lenenc()?;
            if field == field::END {
                break;
            }
            let mut value = Reader::new(reader.lenenc_bytes()?);
            let slot = match field {
                field::PAYLOAD_SIZE => &mut payload_size,
                field::COMPRESSION_TYPE => &mut compression,
                field::UNCOMPRESSED_SIZE => &mut uncompressed_size,
                _ => continue,
            };
            *slot = Some(value.lenenc()?);
            at_end(&value)?;
        }
        Ok(Self {
            compression: compression
                .map(Compression::from_code)
                .ok_or(DecodeError::Field("compression type"))?,
            payload_size: payload_size.ok_or(DecodeError::Field("payload size"))?,
            uncompressed_size,
        })
    }
}

/// A transaction payload. [`Inflater`](super::Inflater) gives the events in it.
#[derive(Clone, PartialEq, Eq)]
pub struct TransactionPayload {
    /// What stands in front.
    pub header: PayloadHeader,
    /// The payload, compressed as the header says.
    pub payload: Bytes,
}

impl TransactionPayload {
    /// Reads the body of the event.
    pub fn decode(body: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let header = PayloadHeader::read(&mut reader)?;
        let size = usize::try_from(header.payload_size).map_err(|_| DecodeError::Short)?;
        let payload = body.slice_ref(reader.take(size)?);
        at_end(&reader)?;
        Ok(Self { header, payload })
    }
}

impl fmt::Debug for TransactionPayload {
    // Rule 1: the payload holds rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionPayload")
            .field("header", &self.header)
            .field("payload", &Hidden(&self.payload))
            .finish()
    }
}

/// A payload cannot be inflated, or what is in it is no sequence of events. Where no other reason is
/// given, the source or the disk is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// A newer server's compression.
    #[error("the payload has the unknown compression {0}")]
    UnsupportedCompression(u64),
    /// The compressed bytes are damaged, or ask for a larger window than a server can make.
    #[error("the payload cannot be inflated")]
    Corrupt,
    /// No memory for the decompressor.
    #[error("no memory for the decompressor")]
    OutOfMemory,
    /// The payload ends inside an event or inside the compressed bytes.
    #[error("the payload ends inside an event")]
    Cut,
    /// The payload inflates to another length than it says.
    #[error("the payload inflates to {inflated} bytes and says {declared}")]
    SizeMismatch {
        /// What the header said.
        declared: u64,
        /// What came out: at least this.
        inflated: u64,
    },
    /// An event in the payload is shorter than a header.
    #[error("an event in the payload says it has {claimed} bytes")]
    EventTooShort {
        /// What its header says.
        claimed: u32,
    },
    /// An event in the payload is larger than allowed (the caller's limit).
    #[error("an event in the payload has {size} bytes, more than allowed")]
    EventTooLarge {
        /// Its length.
        size: u32,
    },
    /// A payload in the payload; the server refuses that too.
    #[error("a payload in the payload")]
    Nested,
}
