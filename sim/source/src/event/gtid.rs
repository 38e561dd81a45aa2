//! GTID_LOG_EVENT, ANONYMOUS_GTID_LOG_EVENT, GTID_TAGGED_LOG_EVENT, and GTID sets as bytes.

use super::code;
use crate::put::{self, Take};
use capstan_core::gtid::{Gtid, GtidSet, Interval, Tag, Tsid, Uuid};

/// The head of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtidHead {
    /// `None`: anonymous.
    pub gtid: Option<Gtid>,
    /// Bit 0: may hold statement-logged changes.
    pub flags: u8,
    /// Logical clock.
    pub last_committed: i64,
    /// Logical clock.
    pub sequence_number: i64,
    /// Commit time on the server that wrote this log, µs.
    pub immediate_commit: u64,
    /// Commit time on the server that committed first, µs.
    pub original_commit: u64,
    /// Bytes of the whole group.
    pub transaction_length: u64,
    /// Version of the server that wrote this log.
    pub immediate_version: u32,
    /// Version of the server that committed first.
    pub original_version: u32,
    /// Group Replication's ticket.
    pub ticket: Option<u64>,
}

impl GtidHead {
    /// A head as a 9.7.4 server writes it.
    #[must_use]
    pub const fn new(gtid: Option<Gtid>, original_commit: u64) -> Self {
        Self {
            gtid,
            flags: 0,
            last_committed: 0,
            sequence_number: 1,
            immediate_commit: original_commit,
            original_commit,
            transaction_length: 0,
            immediate_version: 90_704,
            original_version: 90_704,
            ticket: None,
        }
    }

    pub(super) const fn code(&self) -> u8 {
        match &self.gtid {
            None => code::ANONYMOUS_GTID,
            Some(gtid) if gtid.tsid().tag.is_none() => code::GTID,
            Some(_) => code::GTID_TAGGED,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match &self.gtid {
            Some(gtid) if !gtid.tag().is_none() => self.encode_tagged(gtid, out),
            Some(gtid) => self.encode_plain(gtid.uuid(), gtid.gno(), out),
            None => self.encode_plain(Uuid::default(), 0, out),
        }
    }

    fn encode_plain(&self, uuid: Uuid, gno: u64, out: &mut Vec<u8>) {
        out.push(self.flags);
        out.extend_from_slice(&uuid.0);
        put::int(out, gno, 8);
        out.push(2);
        put::int(out, self.last_committed.cast_unsigned(), 8);
        put::int(out, self.sequence_number.cast_unsigned(), 8);
        if self.original_commit == self.immediate_commit {
            put::int(out, self.immediate_commit, 7);
        } else {
            put::int(out, self.immediate_commit | 1 << 55, 7);
            put::int(out, self.original_commit, 7);
        }
        put::lenenc(out, self.transaction_length);
        if self.original_version == self.immediate_version {
            put::int(out, u64::from(self.immediate_version), 4);
        } else {
            put::int(out, u64::from(self.immediate_version | 1 << 31), 4);
            put::int(out, u64::from(self.original_version), 4);
        }
        if let Some(ticket) = self.ticket {
            put::int(out, ticket, 8);
        }
    }

    fn encode_tagged(&self, gtid: &Gtid, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        let f = &mut fields;
        let number = |f: &mut Vec<u8>, field: u64, n: u64| {
            put::varlen(f, field);
            put::varlen(f, n);
        };
        // No field that must not be ignored: every one of them is known since the type exists.
        put::varlen(f, 0);
        number(f, 0, u64::from(self.flags));
        put::varlen(f, 1);
        for byte in gtid.uuid().0 {
            put::varlen(f, u64::from(byte));
        }
        put::varlen(f, 2);
        put::varlen_signed(f, gtid.gno().cast_signed());
        put::varlen(f, 3);
        put::varlen(f, gtid.tag().as_str().len() as u64);
        f.extend_from_slice(gtid.tag().as_str().as_bytes());
        put::varlen(f, 4);
        put::varlen_signed(f, self.last_committed);
        put::varlen(f, 5);
        put::varlen_signed(f, self.sequence_number);
        number(f, 6, self.immediate_commit);
        if self.original_commit != self.immediate_commit {
            number(f, 7, self.original_commit);
        }
        number(f, 8, self.transaction_length);
        number(f, 9, u64::from(self.immediate_version));
        if self.original_version != self.immediate_version {
            number(f, 10, u64::from(self.original_version));
        }
        if let Some(ticket) = self.ticket {
            number(f, 11, ticket);
        }
        put::varlen(out, 1);
        // The size counts itself.
        let mut size = fields.len() as u64 + 2;
        if size > 127 {
            size += 1;
        }
        put::varlen(out, size);
        out.extend_from_slice(&fields);
    }

    pub(super) fn read(event_code: u8, body: &[u8]) -> Option<Self> {
        let mut take = Take(body);
        let head = if event_code == code::GTID_TAGGED {
            Self::read_tagged(&mut take)?
        } else {
            Self::read_plain(event_code == code::GTID, &mut take)?
        };
        take.is_empty().then_some(head)
    }

    fn read_plain(named: bool, take: &mut Take<'_>) -> Option<Self> {
        let flags = take.u8()?;
        let uuid = Uuid(take.bytes(16)?.try_into().ok()?);
        let gno = take.int(8)?;
        let gtid = if named { Some(Gtid::new(uuid, Tag::NONE, gno)?) } else { None };
        if take.u8()? != 2 {
            return None;
        }
        let mut head = Self { flags, ..Self::new(gtid, 0) };
        head.last_committed = take.int(8)?.cast_signed();
        head.sequence_number = take.int(8)?.cast_signed();
        let immediate = take.int(7)?;
        head.immediate_commit = immediate & !(1 << 55);
        head.original_commit = if immediate >> 55 == 1 { take.int(7)? } else { immediate };
        head.transaction_length = take.lenenc()?;
        let version = take.int(4)? as u32;
        head.immediate_version = version & !(1 << 31);
        head.original_version = if version >> 31 == 1 { take.int(4)? as u32 } else { version };
        head.ticket = if take.is_empty() { None } else { Some(take.int(8)?) };
        Some(head)
    }

    fn read_tagged(take: &mut Take<'_>) -> Option<Self> {
        (take.varlen()? == 1).then_some(())?;
        take.varlen()?;
        take.varlen()?;
        let mut head = Self::new(None, 0);
        let (mut uuid, mut gno) = (Uuid::default(), 0);
        (head.original_version, head.original_commit) = (0, u64::MAX);
        while !take.is_empty() {
            match take.varlen()? {
                0 => head.flags = take.varlen()? as u8,
                1 => {
                    for byte in &mut uuid.0 {
                        *byte = take.varlen()? as u8;
                    }
                }
                2 => gno = take.varlen_signed()?.cast_unsigned(),
                3 => {
                    let len = take.varlen()? as usize;
                    head.gtid = Some(Gtid::new(uuid, Tag::from_bytes(take.bytes(len)?).ok()?, gno)?);
                }
                4 => head.last_committed = take.varlen_signed()?,
                5 => head.sequence_number = take.varlen_signed()?,
                6 => head.immediate_commit = take.varlen()?,
                7 => head.original_commit = take.varlen()?,
                8 => head.transaction_length = take.varlen()?,
                9 => head.immediate_version = take.varlen()? as u32,
                10 => head.original_version = take.varlen()? as u32,
                11 => head.ticket = Some(take.varlen()?),
                _ => return None,
            }
        }
        if head.original_commit == u64::MAX {
            head.original_commit = head.immediate_commit;
        }
        if head.original_version == 0 {
            head.original_version = head.immediate_version;
        }
        Some(head)
    }
}

/// A GTID set as PREVIOUS_GTIDS and COM_BINLOG_DUMP_GTID carry it (`Gtid_set::encode`), in the layout
/// with tags or the one without.
#[must_use]
pub fn gtid_set(set: &GtidSet, tagged: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let sources = set.iter().count() as u64;
    if tagged {
        out.push(1);
        put::int(&mut out, sources, 6);
        out.push(1);
    } else {
        put::int(&mut out, sources, 8);
    }
    for (tsid, intervals) in set {
        out.extend_from_slice(&tsid.uuid.0);
        if tagged {
            put::varlen(&mut out, tsid.tag.as_str().len() as u64);
            out.extend_from_slice(tsid.tag.as_str().as_bytes());
        }
        put::int(&mut out, intervals.len() as u64, 8);
        for interval in intervals {
            put::int(&mut out, interval.start(), 8);
            put::int(&mut out, interval.end() + 1, 8);
        }
    }
    out
}

/// Reads what [`gtid_set`] writes.
pub(crate) fn read_gtid_set(bytes: &[u8]) -> Option<(GtidSet, bool)> {
    let mut take = Take(bytes);
    let head = take.int(8)?;
    let tagged = head >> 56 == 1;
    let sources = if tagged { head << 8 >> 16 } else { head };
    let mut set = GtidSet::new();
    for _ in 0..sources {
        let uuid = Uuid(take.bytes(16)?.try_into().ok()?);
        let mut tag = Tag::NONE;
        if tagged {
            let len = take.varlen()? as usize;
            let text = take.bytes(len)?;
            if len > 0 {
                tag = Tag::from_bytes(text).ok()?;
            }
        }
        for _ in 0..take.int(8)? {
            let interval = Interval::new(take.int(8)?, take.int(8)?.checked_sub(1)?)?;
            set = set.union(&of_interval(Tsid { uuid, tag }, interval));
        }
    }
    take.is_empty().then_some((set, tagged))
}

fn of_interval(tsid: Tsid, interval: Interval) -> GtidSet {
    let tag = if tsid.tag.is_none() { String::new() } else { format!(":{}", tsid.tag) };
    format!("{}{tag}:{}-{}", tsid.uuid, interval.start(), interval.end()).parse().unwrap()
}
