//! The commands a replica sends, and the packets of the dump they open.
//!
//! Sources: `page_protocol_com_binlog_dump_gtid`, `page_protocol_com_register_replica` and
//! `sql/rpl_source.cc`. Payloads only: [`encode`](super::packet::encode) makes packets of them.

use super::error_packet::ServerError;
use super::packet::Payload;
use super::response::{EOF_HEADER, ERR_HEADER, Malformed, OK_HEADER};
use alloc::vec::Vec;
use bytes::{Buf, BufMut, Bytes};
use core::fmt;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_PING: u8 = 0x0e;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;
const COM_REGISTER_REPLICA: u8 = 0x15;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;

/// Do not wait for new events: the server ends the dump with an EOF packet at the end of its last file.
pub const BINLOG_DUMP_NON_BLOCK: u16 = 0x0001;
/// Send `HEARTBEAT_LOG_EVENT_V2` instead of the first version.
pub const USE_HEARTBEAT_EVENT_V2: u16 = 0x0002;
/// The position is a GTID set. Without it the server ignores the set.
pub const BINLOG_THROUGH_GTID: u16 = 0x0004;

/// Ends the session; the server answers by closing.
#[must_use]
pub fn quit() -> Bytes {
    Bytes::from_static(&[COM_QUIT])
}

/// Asks for an OK packet.
#[must_use]
pub fn ping() -> Bytes {
    Bytes::from_static(&[COM_PING])
}

/// A statement in the text protocol; its answer is read by [`Query`](super::Query).
#[must_use]
pub fn query(sql: &[u8]) -> Bytes {
    let mut payload = Vec::with_capacity(sql.len().saturating_add(1));
    payload.push(COM_QUERY);
    payload.extend_from_slice(sql);
    payload.into()
}

/// A statement without parameters, to be prepared; its answer is read by [`Prepare`](super::Prepare).
#[must_use]
pub fn prepare(sql: &[u8]) -> Bytes {
    let mut payload = Vec::with_capacity(sql.len().saturating_add(1));
    payload.push(COM_STMT_PREPARE);
    payload.extend_from_slice(sql);
    payload.into()
}

/// Runs a prepared statement once, without a cursor; its answer is read by [`RowStream`](super::RowStream).
#[must_use]
pub fn execute(statement: u32) -> Bytes {
    let mut payload = Vec::new();
    payload.put_u8(COM_STMT_EXECUTE);
    payload.put_u32_le(statement);
    // No cursor, once.
    payload.put_u8(0);
    payload.put_u32_le(1);
    payload.into()
}

/// Forgets a prepared statement; the server says nothing to it.
#[must_use]
pub fn close_statement(statement: u32) -> Bytes {
    let mut payload = Vec::new();
    payload.put_u8(COM_STMT_CLOSE);
    payload.put_u32_le(statement);
    payload.into()
}

/// What `SHOW REPLICAS` shows of us. The server answers with OK or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterReplica<'a> {
    /// Our `server_id`; must be the one of the dump.
    pub server_id: u32,
    /// The host operators should look at; cut to 255 bytes. The server refuses more than 60.
    pub host: &'a str,
    /// Our port, 0 for none.
    pub port: u16,
}

impl RegisterReplica<'_> {
    /// The payload. User and password are sent empty: the server would show them to anyone with
    /// `--show-replica-auth-info`. Rank and source id are zero, as every server expects.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut payload = Vec::new();
        payload.put_u8(COM_REGISTER_REPLICA);
        payload.put_u32_le(self.server_id);
        let host = self.host.as_bytes();
        let host = host.get(..host.len().min(255)).unwrap_or(host);
        payload.put_u8(u8::try_from(host.len()).unwrap_or(0));
        payload.put_slice(host);
        payload.put_u8(0);
        payload.put_u8(0);
        payload.put_u16_le(self.port);
        payload.put_u32_le(0);
        payload.put_u32_le(0);
        payload.into()
    }
}

/// A dump request by GTID set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinlogDump<'a> {
    /// [`BINLOG_THROUGH_GTID`] and what else is wanted.
    pub flags: u16,
    /// Our `server_id`.
    pub server_id: u32,
    /// The file to start in; empty lets the server find it by the set.
    pub file: &'a [u8],
    /// The offset in that file; 4 is its first event.
    pub position: u64,
    /// The binary form of the set of what is here already (ends of intervals exclusive), as
    /// `gtid` encodes it.
    pub gtid_set: &'a [u8],
}

impl BinlogDump<'_> {
    /// The payload.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let len = self.file.len().saturating_add(self.gtid_set.len()).saturating_add(23);
        let mut payload = Vec::with_capacity(len);
        payload.put_u8(COM_BINLOG_DUMP_GTID);
        payload.put_u16_le(self.flags);
        payload.put_u32_le(self.server_id);
        payload.put_u32_le(u32::try_from(self.file.len()).unwrap_or(u32::MAX));
        payload.put_slice(self.file);
        payload.put_u64_le(self.position);
        payload.put_u32_le(u32::try_from(self.gtid_set.len()).unwrap_or(u32::MAX));
        payload.put_slice(self.gtid_set);
        payload.into()
    }
}

/// One packet of a dump.
#[derive(Clone, PartialEq, Eq)]
pub enum StreamPacket {
    /// An event, from its header on; `retained` counts as before.
    Event(Payload),
    /// The server ended the dump: it shuts down, or the dump did not wait.
    End,
    /// The server refused the dump or gave it up; see [`ServerError::dump_refusal`].
    Error(ServerError),
}

/// A packet that belongs into no dump. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// An empty packet or a first byte that is none of 0x00, 0xfe, 0xff.
    #[error("unexpected packet in the dump")]
    Unexpected,
    /// A packet whose kind is known and whose fields do not fit.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl fmt::Debug for StreamPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(payload) => write!(f, "Event({} bytes)", payload.bytes.len()),
            Self::End => f.write_str("End"),
            Self::Error(error) => write!(f, "Error({error})"),
        }
    }
}

impl StreamPacket {
    /// Tells the packets of a dump apart by their first byte. Semi-synchronous replication, which
    /// would add a header of its own, is never asked for.
    pub fn classify(mut payload: Payload) -> Result<Self, StreamError> {
        match payload.bytes.first() {
            Some(&OK_HEADER) => {
                payload.bytes.advance(1);
                Ok(Self::Event(payload))
            }
            // An EOF packet has at most 5 bytes; nothing else in a dump starts with its header.
            Some(&EOF_HEADER) if payload.bytes.len() < 9 => Ok(Self::End),
            Some(&ERR_HEADER) => Ok(Self::Error(ServerError::parse(&payload.bytes)?)),
            Some(_) | None => Err(StreamError::Unexpected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn payload(bytes: &'static [u8]) -> Payload {
        Payload { bytes: Bytes::from_static(bytes), retained: 64 }
    }

    #[test]
    fn simple_commands() {
        assert_eq!(&quit()[..], [0x01]);
        assert_eq!(&ping()[..], [0x0e]);
        assert_eq!(&query(b"DO 1")[..], b"\x03DO 1");
    }

    /// Field by field as `page_protocol_com_register_replica` lists them.
    #[test]
    fn register_replica() {
        let bytes = RegisterReplica { server_id: 0x0102_0304, host: "capstan", port: 3306 }.encode();
        let want = [
            &[0x15][..],
            &[0x04, 0x03, 0x02, 0x01],
            b"\x07capstan",
            // user, password
            &[0x00, 0x00],
            &[0xea, 0x0c],
            // rank, source id
            &[0x00, 0x00, 0x00, 0x00],
            &[0x00, 0x00, 0x00, 0x00],
        ]
        .concat();
        assert_eq!(bytes, want);
        let long = "h".repeat(300);
        let bytes = RegisterReplica { server_id: 1, host: &long, port: 0 }.encode();
        assert_eq!((bytes[5], bytes.len()), (255, 1 + 4 + 256 + 2 + 2 + 8));
    }

    /// Field by field as `page_protocol_com_binlog_dump_gtid` lists them.
    #[test]
    fn binlog_dump_gtid() {
        let dump = BinlogDump {
            flags: BINLOG_THROUGH_GTID | USE_HEARTBEAT_EVENT_V2,
            server_id: 7,
            file: b"",
            position: 4,
            gtid_set: &[0; 8],
        };
        let want = [
            &[0x1e][..],
            &[0x06, 0x00],
            &[0x07, 0x00, 0x00, 0x00],
            // the file's name
            &[0x00, 0x00, 0x00, 0x00],
            &[0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00],
            // the set: none
            &[0x08, 0x00, 0x00, 0x00],
            &[0x00; 8],
        ]
        .concat();
        assert_eq!(dump.encode(), want);
        let named = BinlogDump { file: b"b.1", position: 1 << 33, ..dump }.encode();
        assert_eq!(&named[7..22], b"\x03\x00\x00\x00b.1\x00\x00\x00\x00\x02\x00\x00\x00");
    }

    #[test]
    fn packets_of_a_dump() {
        let event = StreamPacket::classify(payload(b"\x00event")).unwrap();
        assert_eq!(event, StreamPacket::Event(payload(b"event")));
        assert_eq!(StreamPacket::classify(payload(b"\x00")), Ok(StreamPacket::Event(payload(b""))));
        for end in [&b"\xfe"[..], b"\xfe\x00\x00\x02\x00"] {
            assert_eq!(StreamPacket::classify(payload(end)), Ok(StreamPacket::End), "{end:02x?}");
        }
        let refused = StreamPacket::classify(payload(b"\xff\xd4\x04#HY000text")).unwrap();
        assert_eq!(format!("{refused:?}"), "Error(server error 1236 (HY000))");
        for (bytes, want) in [
            (&b""[..], StreamError::Unexpected),
            (b"\x01\x00", StreamError::Unexpected),
            // The header of semi-synchronous replication, which was not asked for
            (b"\xef\x01\x00", StreamError::Unexpected),
            (b"\xfe\x00\x00\x02\x00\x00\x00\x00\x00", StreamError::Unexpected),
            (b"\xff\xd4", StreamError::Malformed(Malformed)),
        ] {
            assert_eq!(StreamPacket::classify(payload(bytes)), Err(want), "{bytes:02x?}");
        }
        let event = StreamPacket::classify(payload(b"\x00sentinel")).unwrap();
        assert_eq!(format!("{event:?}"), "Event(8 bytes)");
    }
}
