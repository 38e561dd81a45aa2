//! Small events: XID, XA_PREPARE, PREVIOUS_GTIDS, heartbeats, INCIDENT.

use bytes::Bytes;
use core::fmt;

use super::{DecodeError, EventHeader, Hidden, at_end, rotate::file_name};
use crate::gtid::GtidSet;
use crate::wire::Reader;

/// XID_EVENT: the commit of a transaction (`Xid_event`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Xid {
    /// The number under which the source's storage engine knows the transaction.
    pub xid: u64,
}

impl Xid {
    /// Reads the body of the event.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let xid = reader.u64()?;
        at_end(&reader)?;
        Ok(Self { xid })
    }
}

impl fmt::Debug for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Xid(..)")
    }
}

/// Reads the body of a PREVIOUS_GTIDS event: everything the server had executed before this file, in
/// either layout.
pub fn previous_gtids(body: &[u8]) -> Result<GtidSet, DecodeError> {
    Ok(GtidSet::decode(body)?)
}

/// XA_PREPARE_LOG_EVENT: the end of an XA group (`XA_prepare_event`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XaPrepare {
    /// Whether the transaction was committed in one phase: then this event is its commit, else it
    /// waits for XA COMMIT or XA ROLLBACK.
    pub one_phase: bool,
    /// The transaction's identifier.
    pub xid: XaXid,
}

/// The identifier of an XA transaction, as its client chose it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XaXid {
    /// The format, 1 unless the client says otherwise.
    pub format_id: i32,
    /// The global transaction identifier, at most 64 bytes.
    pub gtrid: Bytes,
    /// The branch qualifier, at most 64 bytes.
    pub bqual: Bytes,
}

impl fmt::Debug for XaXid {
    // Rule 1: an XID is the client's, and may say anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("XaXid(..)")
    }
}

impl XaPrepare {
    /// `MAXGTRIDSIZE`, `MAXBQUALSIZE`.
    const PART_MAX: u32 = 64;

    /// Reads the body of the event.
    pub fn decode(body: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let one_phase = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(DecodeError::Field("one-phase flag")),
        };
        let format_id = reader.u32()?.cast_signed();
        let lengths = [reader.u32()?, reader.u32()?];
        let mut part = |length: u32| match usize::try_from(length) {
            Ok(bytes) if length <= Self::PART_MAX => Ok(body.slice_ref(reader.take(bytes)?)),
            _ => Err(DecodeError::Field("XID")),
        };
        let [gtrid, bqual] = [part(lengths[0])?, part(lengths[1])?];
        at_end(&reader)?;
        Ok(Self { one_phase, xid: XaXid { format_id, gtrid, bqual } })
    }
}

/// A heartbeat: nothing to send, and how far the source has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The file the dump thread is in.
    pub file: Bytes,
    /// The position in it.
    pub position: u64,
}

/// The fields of a version 2 heartbeat (`codecs/binary.h`).
mod heartbeat_field {
    pub const END: u64 = 0;
    pub const FILE: u64 = 1;
    pub const POSITION: u64 = 2;
}

impl Heartbeat {
    /// Reads a HEARTBEAT_LOG_EVENT. Its position has 32 bits only: beyond 4 GiB it is not the true one.
    pub fn decode(header: &EventHeader, body: &Bytes) -> Result<Self, DecodeError> {
        Ok(Self { file: file_name(body, body)?, position: u64::from(header.log_pos) })
    }

    /// Reads the body of a HEARTBEAT_LOG_EVENT_V2: fields of type, length and value, as length-encoded
    /// integers. Unknown ones are passed over.
    pub fn decode_v2(body: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let (mut file, mut position) = (None, None);
        loop {
            let field = reader.lenenc()?;
            if field == heartbeat_field::END {
                break;
            }
            let value = reader.lenenc_bytes()?;
            match field {
                heartbeat_field::FILE => file = Some(file_name(body, value)?),
                heartbeat_field::POSITION => {
                    let mut value = Reader::new(value);
                    position = Some(value.lenenc()?);
                    at_end(&value)?;
                }
                _ => {}
            }
        }
        at_end(&reader)?;
        match (file, position) {
            (Some(file), Some(position)) => Ok(Self { file, position }),
            (None, _) => Err(DecodeError::Field("file name")),
            (_, None) => Err(DecodeError::Field("position")),
        }
    }
}

/// INCIDENT_EVENT: the source lost events (`Incident_event`).
#[derive(Clone, PartialEq, Eq)]
pub struct Incident {
    /// What happened; 1 (LOST_EVENTS) is the only number there is.
    pub number: u16,
    /// What the server says about it.
    pub message: Bytes,
}

impl Incident {
    /// Reads the body of the event.
    pub fn decode(body: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let number = reader.u16()?;
        let length = usize::from(reader.u8()?);
        let message = body.slice_ref(reader.take(length)?);
        at_end(&reader)?;
        Ok(Self { number, message })
    }
}

impl fmt::Debug for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incident")
            .field("number", &self.number)
            .field("message", &Hidden(&self.message))
            .finish()
    }
}
