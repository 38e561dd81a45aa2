//! The checksum at the end of an event.

use super::{EventError, EventType, flags};

/// How the events of a file are checked (`binlog_checksum`; `enum_binlog_checksum_alg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// Not at all.
    None,
    /// Four bytes at the end of each event: the CRC-32 of zlib over everything before them.
    Crc32,
}

impl Checksum {
    /// The bytes of a checksum.
    pub const LENGTH: usize = 4;

    /// The algorithm with this number.
    pub const fn from_code(code: u8) -> Result<Self, EventError> {
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::Crc32),
            unknown => Err(EventError::UnknownChecksum(unknown)),
        }
    }

    /// Checks a whole event and gives it without its checksum (header included).
    ///
    /// A format description is checked without its in-use bit, which the server clears in place when
    /// it closes the file.
    #[inline]
    pub fn verify(self, event: &[u8]) -> Result<&[u8], EventError> {
        match self {
            Self::None => Ok(event),
            Self::Crc32 => {
                let short = EventError::TooShort { given: event.len() };
                let (content, sum) = event.split_last_chunk::<{ Self::LENGTH }>().ok_or(short)?;
                if crc32(content) == u32::from_le_bytes(*sum) {
                    Ok(content)
                } else {
                    Err(EventError::ChecksumMismatch)
                }
            }
        }
    }
}

/// Where the flags stand in the header (`FLAGS_OFFSET`).
const FLAGS_OFFSET: usize = 17;

/// Where the type code stands in the header (`EVENT_TYPE_OFFSET`).
const TYPE_OFFSET: usize = 4;

#[inline]
fn crc32(content: &[u8]) -> u32 {
    if content.get(TYPE_OFFSET) == Some(&EventType::FormatDescription.code()) {
        return crc32_of_format_description(content);
    }
    crc32fast::hash(content)
}

#[cold]
fn crc32_of_format_description(content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    match content.split_at_checked(FLAGS_OFFSET) {
        Some((before, [low, after @ ..])) => {
            hasher.update(before);
            hasher.update(&[low & !flags::BINLOG_IN_USE.to_le_bytes()[0]]);
            hasher.update(after);
        }
        _ => hasher.update(content),
    }
    hasher.finalize()
}
