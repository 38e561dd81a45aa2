//! Bytes back to descriptions, by this package's own reading of the documents.

use std::collections::BTreeMap;

use super::gtid::read_gtid_set;
use super::{
    Body, CHECKSUM_LEN, Event, FormatDescription, GtidHead, HEADER_LEN, Query, Rows, Table, checksum, code,
};
use crate::put::Take;

/// Bytes that this reader cannot make sense of, with the type code of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable(pub u8);

/// Reads events one after the other: rows need the table map before them, sums the file's head.
#[derive(Debug, Default)]
pub struct Reader {
    crc32: bool,
    tables: BTreeMap<u64, Table>,
}

impl Reader {
    /// For events that carry CRC32 before any format description says so, or do not.
    #[must_use]
    pub const fn new(crc32: bool) -> Self {
        Self { crc32, tables: BTreeMap::new() }
    }

    /// Whether the events that follow carry a sum.
    #[must_use]
    pub const fn crc32(&self) -> bool {
        self.crc32
    }

    /// Reads one whole event.
    pub fn event(&mut self, bytes: &[u8]) -> Result<Event, Unreadable> {
        let code = *bytes.get(4).ok_or(Unreadable(0))?;
        self.read(code, bytes).ok_or(Unreadable(code))
    }

    /// The events of a binlog file, its magic number included.
    pub fn file(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Unreadable> {
        let mut rest = bytes.strip_prefix(b"\xfebin").ok_or(Unreadable(0))?;
        let mut events = Vec::new();
        while !rest.is_empty() {
            let size = rest.get(9..13).ok_or(Unreadable(0))?;
            let size = u32::from_le_bytes(size.try_into().unwrap()) as usize;
            let (event, tail) = rest.split_at_checked(size).ok_or(Unreadable(0))?;
            events.push(self.event(event)?);
            rest = tail;
        }
        Ok(events)
    }

    fn read(&mut self, code: u8, bytes: &[u8]) -> Option<Event> {
        let mut take = Take(bytes);
        let timestamp = take.int(4)? as u32;
        take.u8()?;
        let server_id = take.int(4)? as u32;
        let size = take.int(4)? as usize;
        let log_pos = take.int(4)? as u32;
        let flags = take.int(2)? as u16;
        (size == bytes.len()).then_some(())?;
        let mut end = bytes.len();
        if self.crc32 || code == code::FORMAT_DESCRIPTION {
            end = end.checked_sub(CHECKSUM_LEN)?;
            let sum = u32::from_le_bytes(bytes[end..].try_into().ok()?);
            (sum == checksum(&bytes[..end])).then_some(())?;
        }
        let body = self.body(code, log_pos, bytes.get(HEADER_LEN..end)?)?;
        Some(Event { timestamp, server_id, log_pos, flags, body })
    }

    fn body(&mut self, code: u8, _log_pos: u32, body: &[u8]) -> Option<Body> {
        let mut take = Take(body);
        Some(match code {
            code::FORMAT_DESCRIPTION => {
                (take.int(2)? == 4).then_some(())?;
                let version = take.bytes(50)?;
                let version = version.split(|b| *b == 0).next()?;
                let server_version = String::from_utf8(version.to_vec()).ok()?;
                let created = take.int(4)? as u32;
                (usize::from(take.u8()?) == HEADER_LEN).then_some(())?;
                let (checksum, lengths) = take.0.split_last()?;
                self.crc32 = *checksum == 1;
                self.tables.clear();
                let post_header_lengths = lengths.to_vec();
                let checksum = *checksum;
                Body::FormatDescription(FormatDescription {
                    server_version,
                    created,
                    post_header_lengths,
                    checksum,
                })
            }
            code::ROTATE => Body::Rotate { position: take.int(8)?, file: take.rest().to_vec() },
            code::PREVIOUS_GTIDS => {
                let (set, tagged) = read_gtid_set(body)?;
                Body::PreviousGtids { set, tagged }
            }
            code::GTID | code::ANONYMOUS_GTID | code::GTID_TAGGED => Body::Gtid(GtidHead::read(code, body)?),
            code::QUERY => Body::Query(Query::read(body)?),
            code::TABLE_MAP => {
                let table = Table::read(body)?;
                self.tables.insert(table.id, table.clone());
                Body::TableMap(table)
            }
            code::WRITE_ROWS | code::UPDATE_ROWS | code::DELETE_ROWS => {
                Body::Rows(Rows::read(code, body, |id| self.tables.get(&id).cloned())?)
            }
            code::XID => Body::Xid(take.int(8)?),
            code::XA_PREPARE => {
                let one_phase = take.u8()? == 1;
                let format_id = take.int(4)? as u32;
                let (gtrid, bqual) = (take.int(4)? as usize, take.int(4)? as usize);
                let (gtrid, bqual) = (take.bytes(gtrid)?.to_vec(), take.bytes(bqual)?.to_vec());
                Body::XaPrepare { one_phase, format_id, gtrid, bqual }
            }
            code::TRANSACTION_PAYLOAD => {
                let mut fields = Vec::new();
                loop {
                    let field = take.lenenc()?;
                    if field == 0 {
                        break;
                    }
                    fields.push((field, take.lenenc_bytes()?.to_vec()));
                }
                Body::Payload { fields, payload: take.rest().to_vec() }
            }
            code::HEARTBEAT => Body::Heartbeat(body.to_vec()),
            code::HEARTBEAT_V2 => {
                let (mut file, mut position) = (Vec::new(), 0);
                loop {
                    match take.lenenc()? {
                        0 => break,
                        1 => file = take.lenenc_bytes()?.to_vec(),
                        2 => position = Take(take.lenenc_bytes()?).lenenc()?,
                        _ => return None,
                    }
                }
                Body::HeartbeatV2 { file, position }
            }
            code::INCIDENT => {
                let number = take.int(2)? as u16;
                let len = take.u8()?;
                Body::Incident { number, message: take.bytes(usize::from(len))?.to_vec() }
            }
            code => Body::Other { code, bytes: body.to_vec() },
        })
    }

    /// The events inside a payload, which carry no sums.
    pub fn payload(&self, body: &Body) -> Result<Vec<Event>, Unreadable> {
        let Body::Payload { fields, payload } = body else { return Err(Unreadable(0)) };
        let stored = fields.iter().any(|(field, value)| *field == 2 && value != &[0]);
        let plain = if stored {
            payload.clone()
        } else {
            zstd::stream::decode_all(payload.as_slice()).map_err(|_| Unreadable(code::TRANSACTION_PAYLOAD))?
        };
        let mut inner = Self::new(false);
        inner.file(&[b"\xfebin", plain.as_slice()].concat())
    }
}
