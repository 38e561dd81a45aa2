//! The header all events share.

use super::EventType;
use crate::wire::{Reader, Short};

/// The flags of an event's header (`sql/log_event.h`).
pub mod flags {
    /// On a format description: the file was not closed, or is still written. The event's checksum
    /// is made without this bit.
    pub const BINLOG_IN_USE: u16 = 0x0001;
    /// The statement depends on its thread (temporary tables).
    pub const THREAD_SPECIFIC: u16 = 0x0004;
    /// The statement needs no USE.
    pub const SUPPRESS_USE: u16 = 0x0008;
    /// Made by the dump thread, not in the binlog.
    pub const ARTIFICIAL: u16 = 0x0020;
    /// Made by a replica for its relay log.
    pub const RELAY_LOG: u16 = 0x0040;
    /// A reader that does not know the type may pass over the event.
    pub const IGNORABLE: u16 = 0x0080;
    /// Not to be filtered by a replica.
    pub const NO_FILTER: u16 = 0x0100;
    /// To be applied with no other group beside it.
    pub const MTS_ISOLATE: u16 = 0x0200;
}

/// The 19 bytes every event starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// When the statement started, in seconds since 1970 on the source's clock; 0 in artificial
    /// events.
    pub timestamp: u32,
    /// What the event is.
    pub event_type: EventType,
    /// The `server_id` of the server that wrote it first.
    pub server_id: u32,
    /// The length of the event in bytes: header, body and checksum.
    pub event_size: u32,
    /// The position behind the event in the source's binlog, modulo 2^32; 0 in artificial events.
    pub log_pos: u32,
    /// See [`flags`].
    pub flags: u16,
}

impl EventHeader {
    /// How long it is (`LOG_EVENT_HEADER_LEN`).
    pub const LENGTH: usize = 19;

    /// Reads the header from the first bytes of an event.
    #[inline]
    pub fn parse(event: &[u8]) -> Result<Self, Short> {
        // One look at the length for all fields.
        let mut reader = Reader::new(event.first_chunk::<{ Self::LENGTH }>().ok_or(Short)?);
        Ok(Self {
            timestamp: reader.u32()?,
            event_type: EventType::from_code(reader.u8()?),
            server_id: reader.u32()?,
            event_size: reader.u32()?,
            log_pos: reader.u32()?,
            flags: reader.u16()?,
        })
    }

    /// Whether all bits of `flag` are set.
    #[must_use]
    pub const fn has(&self, flag: u16) -> bool {
        self.flags & flag == flag
    }

    /// The length of the event, [`EventHeader::event_size`] as a length in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.event_size).unwrap_or(usize::MAX)
    }
}
