//! An event that is taken while it is still being read: a payload is inflated, and a row event of a table that is not
//! captured passes by, however large it is.
//!
//! A payload's checksum stands at its end, so nothing that ends a transaction may pass before it was checked:
//! the assembler holds the terminator back, and a bad sum aborts what was emitted. What is wrong in it waits for the sum as
//! well: damaged bytes look like anything.

use alloc::{boxed::Box, vec::Vec};

use bytes::Bytes;

use super::errors;
use crate::{
    binlog::{
        Checksum, EventHeader, Inflater, PayloadHeader,
        rows::{RowsKind, STMT_END},
    },
    halt::{Code, Halt},
    wire::Reader,
};

/// More than any head of a payload takes: header, four fields of at most 18 bytes, some unknown ones.
const HEAD_MAX: usize = 1024;
/// Where the header says how large the event is.
const SIZE_AT: u64 = 9;
/// Of a row event: header, table id and flags.
const ROWS_HEAD: usize = EventHeader::LENGTH + 8;

/// The payload event that is being read.
pub(super) struct Pieces {
    event_max: usize,
    /// Its first bytes, until its head can be read.
    head: Option<Vec<u8>>,
    /// Bytes of the payload proper still to come.
    payload_left: u64,
    /// The last bytes seen, which may be the checksum.
    held: Vec<u8>,
    checksum: Checksum,
    sum: crc32fast::Hasher,
    pub(super) inflater: Option<Box<Inflater>>,
    /// Of a row event that passes by: whether its statement ends with it.
    pub(super) passed: Option<bool>,
    /// Bytes of the event so far, and what its header says there are.
    seen: u64,
    size: [u8; 4],
    /// What was found wrong before the checksum is there.
    wrong: Option<Halt>,
    /// The checksum held.
    checked: bool,
}

impl Pieces {
    pub(super) fn new(checksum: Checksum, event_max: usize) -> Self {
        Self {
            event_max,
            head: Some(Vec::new()),
            payload_left: 0,
            held: Vec::new(),
            checksum,
            sum: crc32fast::Hasher::new(),
            inflater: None,
            passed: None,
            seen: 0,
            size: [0; 4],
            wrong: None,
            checked: false,
        }
    }

    /// Takes what was found wrong in it. `Ok`: the checksum will tell whether its bytes are damaged or this is so.
    pub(super) fn is_wrong(&mut self, halt: Halt) -> Result<(), Halt> {
        if self.checked || self.checksum == Checksum::None {
            return Err(halt);
        }
        self.inflater = None;
        self.wrong = Some(halt);
        Ok(())
    }

    /// Whether it may hold another event now.
    pub(super) const fn is_ready(&self) -> bool {
        self.passed.is_none() && self.wrong.is_none()
    }

    /// Takes the next bytes of the event, from its header on.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        let tail = match self.checksum {
            Checksum::Crc32 => 4,
            Checksum::None => 0,
        };
        for (at, byte) in (self.seen..SIZE_AT + 4).zip(bytes) {
            let at = at.checked_sub(SIZE_AT).and_then(|at| usize::try_from(at).ok());
            if let Some(size) = at.and_then(|at| self.size.get_mut(at)) {
                *size = *byte;
            }
        }
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        self.held.extend_from_slice(bytes);
        let ready = self.held.len().saturating_sub(tail);
        let rest = self.held.split_off(ready);
        let ready = core::mem::replace(&mut self.held, rest);
        self.sum.update(&ready);
        match self.wrong {
            Some(_) => Ok(()),
            None => self.take(ready).or_else(|halt| self.is_wrong(halt)),
        }
    }

    fn take(&mut self, ready: Vec<u8>) -> Result<(), Halt> {
        if self.passed.is_some() {
            return Ok(());
        }
        let Some(head) = &mut self.head else { return self.payload(ready.into()) };
        head.extend_from_slice(&ready);
        if is_rows(head) {
            self.passed = rows_start(head).map(|(_, flags)| flags & STMT_END != 0);
            if self.passed.is_some() {
                self.head = None;
            }
            return Ok(());
        }
        let Some((header, payload_at)) = read_head(head) else {
            return if head.len() > HEAD_MAX { Err(Halt::new(Code::PayloadMalformed)) } else { Ok(()) };
        };
        let head = self.head.take().unwrap_or_default();
        self.payload_left = header.payload_size;
        let inflater = Inflater::new(&header, self.event_max).map_err(|e| errors::of_payload(&e))?;
        self.inflater = Some(Box::new(inflater));
        self.payload(Bytes::from(head).slice(payload_at..))
    }

    fn payload(&mut self, bytes: Bytes) -> Result<(), Halt> {
        let len = bytes.len() as u64;
        if len > self.payload_left {
            return Err(Halt::new(Code::PayloadMalformed));
        }
        self.payload_left -= len;
        match &mut self.inflater {
            Some(inflater) if !bytes.is_empty() => inflater.push(bytes),
            Some(_) | None => {}
        }
        Ok(())
    }

    /// The event is over: its checksum must hold.
    pub(super) fn end(&mut self) -> Result<(), Halt> {
        let held = core::mem::take(&mut self.held);
        // First, as of an event that is there as a whole.
        if u64::from(u32::from_le_bytes(self.size)) != self.seen {
            return Err(Halt::new(Code::EventMalformed));
        }
        if self.checksum == Checksum::Crc32 {
            let stored = held.first_chunk::<4>().map(|sum| u32::from_le_bytes(*sum));
            if stored != Some(core::mem::take(&mut self.sum).finalize()) {
                return Err(Halt::new(Code::ChecksumMismatch));
            }
        }
        self.checked = true;
        if let Some(halt) = self.wrong.take() {
            return Err(halt);
        }
        if self.payload_left != 0 || self.head.is_some() {
            return Err(Halt::new(Code::PayloadMalformed));
        }
        if let Some(inflater) = &mut self.inflater {
            inflater.finish();
        }
        Ok(())
    }
}

/// The payload's header and where the payload begins; `None` while it is not all there.
fn read_head(head: &[u8]) -> Option<(PayloadHeader, usize)> {
    let body = head.get(EventHeader::LENGTH..)?;
    let mut reader = Reader::new(body);
    let header = PayloadHeader::read(&mut reader).ok()?;
    Some((header, head.len().saturating_sub(reader.len())))
}

/// Whether an event of which this much is there is a row event. Its type stands behind its four bytes of time.
fn is_rows(event: &[u8]) -> bool {
    event.get(4).is_some_and(|code| RowsKind::of(*code).is_some())
}

/// Table id and flags of a row event of which this much is there.
pub(super) fn rows_start(event: &[u8]) -> Option<(u64, u16)> {
    let start = event.get(..ROWS_HEAD).filter(|event| is_rows(event))?;
    let mut reader = Reader::new(start.get(EventHeader::LENGTH..)?);
    Some((reader.u48().ok()?, reader.u16().ok()?))
}
