//! Binlog events as descriptions, to bytes and back.
//!
//! Sources: `libs/mysql/binlog/event/*.h`, `sql/log_event.cc`, `libs/mysql/serialization/readme.md`.

mod gtid;
mod pack;
mod query;
mod reader;
mod rows;
mod table;
#[cfg(test)]
mod tests;

pub use gtid::{GtidHead, gtid_set};
pub use query::{Query, status};
pub use reader::{Reader, Unreadable};
pub use rows::{Image, RowChange, Rows};
pub use table::{Column, Table, Value};

use bytes::BytesMut;

use crate::put;
use capstan_core::gtid::GtidSet;

/// The type codes written here.
pub mod code {
    #![allow(missing_docs, reason = "each is the type it is named after")]
    pub const QUERY: u8 = 2;
    pub const STOP: u8 = 3;
    pub const ROTATE: u8 = 4;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const TABLE_MAP: u8 = 19;
    pub const INCIDENT: u8 = 26;
    pub const HEARTBEAT: u8 = 27;
    pub const ROWS_QUERY: u8 = 29;
    pub const WRITE_ROWS: u8 = 30;
    pub const UPDATE_ROWS: u8 = 31;
    pub const DELETE_ROWS: u8 = 32;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const PREVIOUS_GTIDS: u8 = 35;
    pub const XA_PREPARE: u8 = 38;
    pub const TRANSACTION_PAYLOAD: u8 = 40;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const GTID_TAGGED: u8 = 42;
}

/// `LOG_EVENT_ARTIFICIAL_F`.
pub const ARTIFICIAL: u16 = 0x20;
/// `LOG_EVENT_IGNORABLE_F`.
pub const IGNORABLE: u16 = 0x80;
/// `LOG_EVENT_BINLOG_IN_USE_F`.
const IN_USE: u16 = 1;
/// Length of the header all events share.
pub const HEADER_LEN: usize = 19;
/// Length of a CRC32.
pub const CHECKSUM_LEN: usize = 4;

/// An event: the header's fields that do not follow from the rest, and the body.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since 1970 on the source's clock.
    pub timestamp: u32,
    /// Who wrote it first.
    pub server_id: u32,
    /// Position behind it, modulo 2^32.
    pub log_pos: u32,
    /// `LOG_EVENT_*_F`.
    pub flags: u16,
    /// What it says.
    pub body: Body,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The head of a file.
    FormatDescription(FormatDescription),
    /// The next file, or (artificial) the present one.
    Rotate {
        /// Where in it.
        position: u64,
        /// Its name.
        file: Vec<u8>,
    },
    /// What was executed before this file.
    PreviousGtids {
        /// The set.
        set: GtidSet,
        /// Whether it is written in the layout with tags.
        tagged: bool,
    },
    /// The head of a group; tagged or not by its GTID, anonymous without one.
    Gtid(GtidHead),
    /// A statement.
    Query(Query),
    /// The table of the rows that follow.
    TableMap(Table),
    /// Rows.
    Rows(Rows),
    /// COMMIT of a transactional engine.
    Xid(u64),
    /// The end of an XA group.
    XaPrepare {
        /// Committed at once.
        one_phase: bool,
        /// Format of the XID.
        format_id: u32,
        /// Its global part.
        gtrid: Vec<u8>,
        /// Its branch.
        bqual: Vec<u8>,
    },
    /// A whole group in one event. `fields` are type and value in the order they are written.
    Payload {
        /// The header's fields.
        fields: Vec<(u64, Vec<u8>)>,
        /// The payload as it is written.
        payload: Vec<u8>,
    },
    /// A heartbeat of version 1; its position is the header's.
    Heartbeat(Vec<u8>),
    /// A heartbeat of version 2.
    HeartbeatV2 {
        /// The file the dump is in.
        file: Vec<u8>,
        /// How far.
        position: u64,
    },
    /// The source lost events.
    Incident {
        /// 1: LOST_EVENTS.
        number: u16,
        /// What it says.
        message: Vec<u8>,
    },
    /// Any other type.
    Other {
        /// Its code.
        code: u8,
        /// Its body.
        bytes: Vec<u8>,
    },
}

/// The head of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatDescription {
    /// The server's version as it names itself.
    pub server_version: String,
    /// When the server started, if this is its first file since.
    pub created: u32,
    /// Length of the fixed part of each event type, from type 1 on.
    pub post_header_lengths: Vec<u8>,
    /// 1: the file's events carry CRC32; 0: none.
    pub checksum: u8,
}

impl FormatDescription {
    /// What a server of this version writes.
    #[must_use]
    pub fn of(server_version: &str, created: u32, crc32: bool) -> Self {
        // As 9.7 writes them. 8.0 knows no tagged GTIDs and still names the rows of before 5.6.
        let mut post_header_lengths = vec![
            0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 99, 0, 4, 26, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 10, 10,
            10, 42, 42, 0, 18, 52, 0, 10, 40, 0, 0,
        ];
        if server_version.starts_with("8.0") {
            post_header_lengths.truncate(41);
            post_header_lengths[14] = 98;
            post_header_lengths[22..25].fill(8);
        }
        Self {
            server_version: server_version.into(),
            created,
            post_header_lengths,
            checksum: u8::from(crc32),
        }
    }
}

impl Event {
    /// An event of `body` that is not placed anywhere yet.
    #[must_use]
    pub const fn of(timestamp: u32, server_id: u32, body: Body) -> Self {
        Self { timestamp, server_id, log_pos: 0, flags: 0, body }
    }

    /// With a flag.
    #[must_use]
    pub const fn flagged(mut self, flag: u16) -> Self {
        self.flags |= flag;
        self
    }

    /// The bytes, with a CRC32 if `crc32`. A format description has a sum always.
    #[must_use]
    pub fn encode(&self, crc32: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        put::int(&mut out, u64::from(self.timestamp), 4);
        out.push(self.body.code());
        put::int(&mut out, u64::from(self.server_id), 4);
        put::int(&mut out, 0, 4);
        put::int(&mut out, u64::from(self.log_pos), 4);
        put::int(&mut out, u64::from(self.flags), 2);
        self.body.encode(&mut out);
        seal(&mut out, crc32 || self.body.code() == code::FORMAT_DESCRIPTION);
        out
    }
}

/// Writes the event's size into its header and puts the sum behind it.
pub(crate) fn seal(event: &mut Vec<u8>, crc32: bool) {
    let size = event.len() + if crc32 { CHECKSUM_LEN } else { 0 };
    event[9..13].copy_from_slice(&(size as u32).to_le_bytes());
    if crc32 {
        let sum = checksum(event);
        event.extend_from_slice(&sum.to_le_bytes());
    }
}

/// The same for an event that starts at `start`.
pub(crate) fn seal_at(out: &mut BytesMut, start: usize, crc32: bool) {
    let size = out.len() - start + if crc32 { CHECKSUM_LEN } else { 0 };
    out[start + 9..start + 13].copy_from_slice(&(size as u32).to_le_bytes());
    if crc32 {
        let sum = checksum(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
}

/// Gives an event without a sum its place in the log.
pub(crate) fn place(event: &mut [u8], log_pos: u32) {
    event[13..17].copy_from_slice(&log_pos.to_le_bytes());
}

/// The sum of an event; a format description's is made without its in-use bit.
fn checksum(event: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if event[4] == code::FORMAT_DESCRIPTION {
        hasher.update(&event[..17]);
        hasher.update(&[event[17] & !(IN_USE as u8)]);
        hasher.update(&event[18..]);
    } else {
        hasher.update(event);
    }
    hasher.finalize()
}

impl Body {
    /// The type's code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::FormatDescription(_) => code::FORMAT_DESCRIPTION,
            Self::Rotate { .. } => code::ROTATE,
            Self::PreviousGtids { .. } => code::PREVIOUS_GTIDS,
            Self::Gtid(head) => head.code(),
            Self::Query(_) => code::QUERY,
            Self::TableMap(_) => code::TABLE_MAP,
            Self::Rows(rows) => rows.code,
            Self::Xid(_) => code::XID,
            Self::XaPrepare { .. } => code::XA_PREPARE,
            Self::Payload { .. } => code::TRANSACTION_PAYLOAD,
            Self::Heartbeat(_) => code::HEARTBEAT,
            Self::HeartbeatV2 { .. } => code::HEARTBEAT_V2,
            Self::Incident { .. } => code::INCIDENT,
            Self::Other { code, .. } => *code,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::FormatDescription(description) => {
                put::int(out, 4, 2);
                let mut version = description.server_version.clone().into_bytes();
                version.resize(50, 0);
                out.extend_from_slice(&version);
                put::int(out, u64::from(description.created), 4);
                out.push(HEADER_LEN as u8);
                out.extend_from_slice(&description.post_header_lengths);
                out.push(description.checksum);
            }
            Self::Rotate { position, file } => {
                put::int(out, *position, 8);
                out.extend_from_slice(file);
            }
            Self::PreviousGtids { set, tagged } => out.extend_from_slice(&gtid_set(set, *tagged)),
            Self::Gtid(head) => head.encode(out),
            Self::Query(query) => query.encode(out),
            Self::TableMap(table) => table.encode(out),
            Self::Rows(rows) => rows.encode(out),
            Self::Xid(xid) => put::int(out, *xid, 8),
            Self::XaPrepare { one_phase, format_id, gtrid, bqual } => {
                out.push(u8::from(*one_phase));
                put::int(out, u64::from(*format_id), 4);
                put::int(out, gtrid.len() as u64, 4);
                put::int(out, bqual.len() as u64, 4);
                out.extend_from_slice(gtrid);
                out.extend_from_slice(bqual);
            }
            Self::Payload { fields, payload } => {
                for (field, value) in fields {
                    put::lenenc(out, *field);
                    put::lenenc_bytes(out, value);
                }
                put::lenenc(out, 0);
                out.extend_from_slice(payload);
            }
            Self::Heartbeat(file) => out.extend_from_slice(file),
            Self::HeartbeatV2 { file, position } => {
                put::lenenc(out, 1);
                put::lenenc_bytes(out, file);
                let mut value = Vec::new();
                put::lenenc(&mut value, *position);
                put::lenenc(out, 2);
                put::lenenc_bytes(out, &value);
                put::lenenc(out, 0);
            }
            Self::Incident { number, message } => {
                put::int(out, u64::from(*number), 2);
                out.push(message.len() as u8);
                out.extend_from_slice(message);
            }
            Self::Other { bytes, .. } => out.extend_from_slice(bytes),
        }
    }

    /// A payload event around whole events without sums. zstd, or stored.
    #[must_use]
    pub fn payload(events: &[Vec<u8>], compress: bool) -> Self {
        let plain = events.concat();
        let number = |n: u64| {
            let mut out = Vec::new();
            put::lenenc(&mut out, n);
            out
        };
        let payload = if compress {
            zstd::bulk::compress(&plain, 1).expect("compressing cannot fail")
        } else {
            plain.clone()
        };
        let mut fields = vec![(2, number(if compress { 0 } else { 255 }))];
        if compress {
            fields.push((3, number(plain.len() as u64)));
        }
        fields.push((1, number(payload.len() as u64)));
        Self::Payload { fields, payload }
    }
}
