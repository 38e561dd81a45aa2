//! GTID_LOG_EVENT, ANONYMOUS_GTID_LOG_EVENT and GTID_TAGGED_LOG_EVENT: the head of a group.

use super::DecodeError;
use crate::gtid::{Gtid, Tag, Uuid};
use crate::time::SourceTime;
use crate::wire::{Reader, Short};

/// The head of a group (`Gtid_event`): its GTID, and what replicas need to apply groups in parallel.
///
/// What older servers do not write is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtidEvent {
    /// The GTID; `None` in an anonymous group.
    pub gtid: Option<Gtid>,
    /// Bit 0 ([`GtidEvent::MAY_HAVE_SBR`]): the group may hold statement-logged changes.
    pub flags: u8,
    /// The logical clock: the group this one waits for.
    pub last_committed: Option<i64>,
    /// The logical clock: this group's number in the file.
    pub sequence_number: Option<i64>,
    /// When the group was committed on the server that wrote this binlog.
    pub immediate_commit_timestamp: Option<SourceTime>,
    /// When the group was committed first.
    pub original_commit_timestamp: Option<SourceTime>,
    /// The length of the whole group in the binlog, this event included, in bytes.
    pub transaction_length: Option<u64>,
    /// The version of the server that wrote this binlog: 90704 is 9.7.4.
    pub immediate_server_version: Option<u32>,
    /// The version of the server that committed first; 999999 is unknown.
    pub original_server_version: Option<u32>,
    /// Groups with the same ticket were committed together (Group Replication).
    pub commit_group_ticket: Option<u64>,
}

/// `LOGICAL_TIMESTAMP_TYPECODE`.
const LOGICAL_TIMESTAMP_TYPECODE: u8 = 2;
/// The top bit of the 7 bytes of a commit timestamp: another one follows.
const TIMESTAMP_FOLLOWS: u64 = 1 << 55;
/// The top bit of the 4 bytes of a server version: another one follows.
const VERSION_FOLLOWS: u32 = 1 << 31;

impl GtidEvent {
    /// The flag of groups that may hold statement-logged changes.
    pub const MAY_HAVE_SBR: u8 = 0x01;

    /// Reads the body of a GTID_LOG_EVENT.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let (flags, uuid, gno) = (reader.u8()?, Uuid(reader.array()?), reader.u64()?);
        let gtid = Gtid::new(uuid, Tag::NONE, gno).ok_or(DecodeError::Field("gno"))?;
        Self::rest(reader, flags, Some(gtid))
    }

    /// Reads the body of an ANONYMOUS_GTID_LOG_EVENT: the same fields, with number 0.
    pub fn decode_anonymous(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let (flags, _uuid, gno) = (reader.u8()?, reader.array::<16>()?, reader.u64()?);
        if gno != 0 {
            return Err(DecodeError::Field("gno"));
        }
        Self::rest(reader, flags, None)
    }

    /// The fields behind the GTID. They came with 5.7, 8.0.1, 8.0.2, 8.0.14 and 8.0.26, so the body
    /// may end in front of each group of them; what stands there must be whole.
    fn rest(mut reader: Reader<'_>, flags: u8, gtid: Option<Gtid>) -> Result<Self, DecodeError> {
        let mut event = Self::new(flags, gtid);
        if reader.is_empty() {
            return Ok(event);
        }
        if reader.u8()? != LOGICAL_TIMESTAMP_TYPECODE {
            return Err(DecodeError::Field("logical timestamp"));
        }
        event.last_committed = Some(reader.u64()?.cast_signed());
        event.sequence_number = Some(reader.u64()?.cast_signed());
        if reader.is_empty() {
            return Ok(event);
        }
        let immediate = reader.u56()?;
        let original = if immediate & TIMESTAMP_FOLLOWS == 0 { immediate } else { reader.u56()? };
        event.immediate_commit_timestamp = Some(SourceTime(immediate & !TIMESTAMP_FOLLOWS));
        event.original_commit_timestamp = Some(SourceTime(original));
        if reader.is_empty() {
            return Ok(event);
        }
        event.transaction_length = Some(reader.lenenc()?);
        if reader.is_empty() {
            return Ok(event);
        }
        let immediate = reader.u32()?;
        let original = if immediate & VERSION_FOLLOWS == 0 { immediate } else { reader.u32()? };
        event.immediate_server_version = Some(immediate & !VERSION_FOLLOWS);
        event.original_server_version = Some(original);
        if reader.is_empty() {
            return Ok(event);
        }
        event.commit_group_ticket = Some(reader.u64()?);
        super::at_end(&reader)?;
        Ok(event)
    }

    const fn new(flags: u8, gtid: Option<Gtid>) -> Self {
        Self {
            gtid,
            flags,
            last_committed: None,
            sequence_number: None,
            immediate_commit_timestamp: None,
            original_commit_timestamp: None,
            transaction_length: None,
            immediate_server_version: None,
            original_server_version: None,
            commit_group_ticket: None,
        }
    }

    /// Reads the body of a GTID_TAGGED_LOG_EVENT: a message of MySQL's serialization library
    /// (`libs/mysql/serialization/readme.md`) with the fields of `Gtid_event::define_fields`.
    ///
    /// Fields of newer servers are passed over, unless the message says that they must not be.
    pub fn decode_tagged(body: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Message::open(body)?;
        let flags = fields.required(0, "flags", Reader::varlen)?;
        let flags = u8::try_from(flags).map_err(|_| DecodeError::Field("flags"))?;
        let uuid = fields.required(1, "uuid", uuid)?;
        let gno = fields.required(2, "gno", Reader::varlen_signed)?;
        let tag = fields.required(3, "tag", tag_bytes)?;
        let tag = Tag::from_bytes(tag).map_err(|_| DecodeError::Field("tag"))?;
        let gno = u64::try_from(gno).map_err(|_| DecodeError::Field("gno"))?;
        let gtid = Gtid::new(uuid, tag, gno).ok_or(DecodeError::Field("gno"))?;
        let mut event = Self::new(flags, Some(gtid));
        event.last_committed = Some(fields.required(4, "last_committed", Reader::varlen_signed)?);
        event.sequence_number = Some(fields.required(5, "sequence_number", Reader::varlen_signed)?);
        let immediate = fields.required(6, "immediate commit timestamp", Reader::varlen)?;
        let original = fields.optional(7, Reader::varlen)?.unwrap_or(immediate);
        event.immediate_commit_timestamp = Some(SourceTime(immediate));
        event.original_commit_timestamp = Some(SourceTime(original));
        event.transaction_length = Some(fields.required(8, "transaction length", Reader::varlen)?);
        let immediate = version(fields.required(9, "immediate server version", Reader::varlen)?)?;
        let original = fields.optional(10, Reader::varlen)?.map(version).transpose()?;
        event.immediate_server_version = Some(immediate);
        event.original_server_version = Some(original.unwrap_or(immediate));
        event.commit_group_ticket = fields.optional(11, Reader::varlen)?;
        fields.close()?;
        Ok(event)
    }
}

/// The last field this reader knows.
const LAST_FIELD: u64 = 11;
/// `SERIALIZATION_FORMAT_VERSION`.
const FORMAT_VERSION: u64 = 1;

/// A message of the serialization library: numbered fields in ascending order, some left out.
struct Message<'a> {
    reader: Reader<'a>,
}

impl<'a> Message<'a> {
    /// Reads the head: format version, size of the whole message, number of the last field that must
    /// not be ignored plus one.
    fn open(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        if reader.varlen()? != FORMAT_VERSION {
            return Err(DecodeError::Field("serialization version"));
        }
        let size = usize::try_from(reader.varlen()?).map_err(|_| DecodeError::Short)?;
        match body.len().checked_sub(size) {
            None => return Err(DecodeError::Short),
            Some(0) => {}
            Some(more) => return Err(DecodeError::Trailing(more)),
        }
        match reader.varlen()? {
            known if known <= LAST_FIELD.wrapping_add(1) => Ok(Self { reader }),
            unknown => Err(DecodeError::UnknownField(unknown.wrapping_sub(1))),
        }
    }

    fn optional<T>(
        &mut self,
        number: u64,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, Short>,
    ) -> Result<Option<T>, DecodeError> {
        let mut ahead = self.reader;
        if ahead.is_empty() || ahead.varlen()? != number {
            return Ok(None);
        }
        let value = read(&mut ahead)?;
        self.reader = ahead;
        Ok(Some(value))
    }

    fn required<T>(
        &mut self,
        number: u64,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, Short>,
    ) -> Result<T, DecodeError> {
        self.optional(number, read)?.ok_or(DecodeError::Field(name))
    }

    /// What is left must be a field this reader does not know; a known one is out of order.
    fn close(mut self) -> Result<(), DecodeError> {
        if !self.reader.is_empty() && self.reader.varlen()? <= LAST_FIELD {
            return Err(DecodeError::Field("field order"));
        }
        Ok(())
    }
}

/// An array of 16 bytes, each a variable-length integer of its own.
fn uuid(reader: &mut Reader<'_>) -> Result<Uuid, Short> {
    let mut uuid = Uuid::default();
    for byte in &mut uuid.0 {
        *byte = u8::try_from(reader.varlen()?).map_err(|_| Short)?;
    }
    Ok(uuid)
}

fn tag_bytes<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Short> {
    let length = usize::try_from(reader.varlen()?).map_err(|_| Short)?;
    reader.take(length)
}

fn version(number: u64) -> Result<u32, DecodeError> {
    u32::try_from(number).map_err(|_| DecodeError::Field("server version"))
}
