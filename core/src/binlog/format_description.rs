//! FORMAT_DESCRIPTION_EVENT.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Checksum, DecodeError, EventError, EventHeader, EventType};
use crate::wire::Reader;

/// The head of a file: who wrote it and how (`Format_description_event`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatDescription {
    /// The version of the server that wrote the file, as it names itself: `9.7.4`, `8.0.36-log`.
    pub server_version: String,
    /// When the server was started, in seconds since 1970, in the first file after a start; else 0.
    pub created: u32,
    /// The checksum of the events that follow.
    pub checksum: Checksum,
    post_header_lengths: Vec<u8>,
}

/// The one binlog version since 5.0.
const BINLOG_VERSION: u16 = 4;
/// `ST_SERVER_VER_LEN`.
const SERVER_VERSION_LENGTH: usize = 50;
/// Before this version a format description has no checksum algorithm (`checksum_version_split`).
const CHECKSUM_VERSION: [u8; 3] = [5, 6, 1];

/// The fixed part of events this crate decodes; it is the same in every version since 5.0 (rows: since
/// they exist). Another length means another layout.
const POST_HEADERS: &[(EventType, u8)] = &[
    (EventType::Query, 13),
    (EventType::Rotate, 8),
    (EventType::Xid, 0),
    (EventType::ExecuteLoadQuery, 26),
    (EventType::TableMap, 8),
    (EventType::WriteRowsV1, 8),
    (EventType::UpdateRowsV1, 8),
    (EventType::DeleteRowsV1, 8),
    (EventType::Incident, 2),
    (EventType::WriteRows, 10),
    (EventType::UpdateRows, 10),
    (EventType::DeleteRows, 10),
    (EventType::PartialUpdateRows, 10),
];

impl FormatDescription {
    /// Reads the body of the event, without its sum.
    pub fn decode(body: &[u8]) -> Result<Self, EventError> {
        let description = Self::read(body)?;
        description.check_post_headers()?;
        Ok(description)
    }

    fn read(body: &[u8]) -> Result<Self, EventError> {
        let mut reader = Reader::new(body);
        let short = |_| DecodeError::Short;
        if reader.u16().map_err(short)? != BINLOG_VERSION {
            return Err(DecodeError::Field("binlog version").into());
        }
        let server_version = version_text(&reader.array().map_err(short)?)?;
        let created = reader.u32().map_err(short)?;
        if usize::from(reader.u8().map_err(short)?) != EventHeader::LENGTH {
            return Err(DecodeError::Field("header length").into());
        }
        if version_split(&server_version).is_none_or(|version| version < CHECKSUM_VERSION) {
            return Err(DecodeError::Field("server version").into());
        }
        let (algorithm, post_header_lengths) = reader.rest().split_last().ok_or(DecodeError::Short)?;
        Ok(Self {
            server_version,
            created,
            checksum: Checksum::from_code(*algorithm)?,
            post_header_lengths: post_header_lengths.to_vec(),
        })
    }

    /// The numeric head of the server's version: `[9, 7, 4]`.
    #[must_use]
    pub fn version(&self) -> [u8; 3] {
        version_split(&self.server_version).unwrap_or_default()
    }

    /// The length of the fixed part of events of this type, as the file says.
    #[must_use]
    pub fn post_header_length(&self, event_type: EventType) -> Option<u8> {
        let index = usize::from(event_type.code()).checked_sub(1)?;
        self.post_header_lengths.get(index).copied()
    }

    fn check_post_headers(&self) -> Result<(), DecodeError> {
        for (event_type, expected) in POST_HEADERS {
            // A type the writer does not know has no length, or 0 where a newer one retired it.
            if self.post_header_length(*event_type).is_some_and(|length| length != 0 && length != *expected) {
                return Err(DecodeError::Field("post-header length"));
            }
        }
        Ok(())
    }
}

fn version_text(padded: &[u8; SERVER_VERSION_LENGTH]) -> Result<String, DecodeError> {
    let text = padded.split(|&byte| byte == 0).next().unwrap_or_default();
    match core::str::from_utf8(text) {
        Ok(text) if text.is_ascii() => Ok(text.to_string()),
        _ => Err(DecodeError::Field("server version")),
    }
}

/// As the server does it (`do_server_version_split`): three numbers below 256, the first followed by a
/// point, whatever comes behind the third.
fn version_split(version: &str) -> Option<[u8; 3]> {
    let mut split = [0; 3];
    let mut rest = version;
    for (i, slot) in split.iter_mut().enumerate() {
        let digits = rest.len().checked_sub(rest.trim_start_matches(|c: char| c.is_ascii_digit()).len())?;
        let (number, behind) = rest.split_at_checked(digits)?;
        *slot = number.parse().ok()?;
        rest = match behind.strip_prefix('.') {
            Some(behind) => behind,
            None if i == 0 => return None,
            None if i == 1 => return Some(split),
            None => behind,
        };
    }
    Some(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_server_reads_them() {
        for (text, want) in [
            ("9.7.4", Some([9, 7, 4])),
            ("8.0.36-0ubuntu0.22.04.1", Some([8, 0, 36])),
            ("5.6.24-log", Some([5, 6, 24])),
            ("10.11.6-MariaDB", Some([10, 11, 6])),
            ("8.4", Some([8, 4, 0])),
            ("8", None),
            ("", None),
            ("x.y", None),
            ("300.1.1", None),
        ] {
            assert_eq!(version_split(text), want, "{text}");
        }
    }
}
