//! Events as they come, checked.

use bytes::{Buf as _, Bytes};

use super::{Checksum, EventError, EventHeader, EventType, FormatDescription};

/// One event: its header and its body, the checksum verified and taken off.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// The header.
    pub header: EventHeader,
    /// What follows the header, without the checksum.
    pub body: Bytes,
}

impl core::fmt::Debug for Event {
    // Rule 1: the body may hold row values or statements.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Event")
            .field("header", &self.header)
            .field("body", &super::Hidden(&self.body))
            .finish()
    }
}

/// Takes whole events one after the other and knows which checksum the next one has.
///
/// A file's algorithm is in its format description. On a link the artificial ROTATE in front of a
/// file still has the algorithm of the file *before*, and the first one has the algorithm that was
/// negotiated; so the decoder changes only when it meets a format description.
#[derive(Clone, Debug)]
pub struct EventDecoder {
    checksum: Checksum,
    // A dump thread that sends with algorithm NONE may change the format description and leave the
    // sum as it was; at the head of a file it always holds. Further ones in a file are those a replica
    // received and wrote to its relay log.
    at_head_of_file: bool,
}

impl EventDecoder {
    /// For a replication link, on which `negotiated` was agreed (`@source_binlog_checksum`).
    #[must_use]
    pub const fn for_link(negotiated: Checksum) -> Self {
        Self { checksum: negotiated, at_head_of_file: false }
    }

    /// For a file, which starts with its format description.
    #[must_use]
    pub const fn for_file() -> Self {
        Self { checksum: Checksum::Crc32, at_head_of_file: true }
    }

    /// The algorithm of the next event.
    #[must_use]
    pub const fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Takes one whole event. After an error the decoder is as it was; the stream is lost.
    pub fn decode(&mut self, event: Bytes) -> Result<Event, EventError> {
        let given = event.len();
        let header = EventHeader::parse(&event).map_err(|_| EventError::TooShort { given })?;
        let length = self.check(&header, &event)?;
        let mut body = event;
        body.truncate(length);
        body.advance(EventHeader::LENGTH);
        Ok(Event { header, body })
    }

    /// Checks one whole event whose header is read: gives its length without the checksum, which is not less than
    /// the header's.
    #[inline]
    pub(super) fn check(&mut self, header: &EventHeader, event: &[u8]) -> Result<usize, EventError> {
        let given = event.len();
        if header.size() != given {
            return Err(EventError::SizeMismatch { claimed: header.event_size, given });
        }
        let length = if header.event_type == EventType::FormatDescription {
            self.format_description(event)?
        } else {
            self.checksum.verify(event)?.len()
        };
        if length < EventHeader::LENGTH {
            return Err(EventError::TooShort { given });
        }
        Ok(length)
    }

    /// Checks a format description, takes its algorithm over, and gives its length without the sum:
    /// it has one whatever the algorithm is (`Format_description_log_event::write`).
    #[cold]
    fn format_description(&mut self, event: &[u8]) -> Result<usize, EventError> {
        let short = EventError::TooShort { given: event.len() };
        let (content, _) = event.split_last_chunk::<{ Checksum::LENGTH }>().ok_or(short)?;
        let body = content.get(EventHeader::LENGTH..).ok_or(short)?;
        let sum = Checksum::Crc32.verify(event);
        // The dump thread clears `created` when it does not start at the head of the file, and
        // renews the sum only if the file has checksums (`Binlog_sender::send_format_description_event`).
        let may_be_stale = |description: &FormatDescription| {
            !self.at_head_of_file && description.checksum == Checksum::None && description.created == 0
        };
        let description = match (FormatDescription::decode(body), sum) {
            (Ok(description), Ok(_)) => description,
            (Ok(description), Err(_)) if may_be_stale(&description) => description,
            (_, Err(mismatch)) => return Err(mismatch),
            (Err(error), Ok(_)) => return Err(error),
        };
        self.checksum = description.checksum;
        self.at_head_of_file = false;
        Ok(content.len())
    }
}
