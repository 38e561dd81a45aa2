//! Packets over a stream, and fields out of a packet.

use std::io::{BufReader, Read, Write};

use crate::SqlError;

/// What a session runs over.
pub(super) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// The longest payload of one packet; a longer one goes on in the next.
const PACKET_BYTES_MAX: usize = 0x00ff_ffff;

pub(super) struct Link {
    stream: BufReader<Box<dyn Stream>>,
    sequence: u8,
}

impl Link {
    pub(super) fn new(stream: Box<dyn Stream>) -> Link {
        Link { stream: BufReader::new(stream), sequence: 0 }
    }

    /// A command starts the numbering of packets anew.
    pub(super) fn start_command(&mut self) {
        self.sequence = 0;
    }

    pub(super) fn read(&mut self) -> Result<Vec<u8>, SqlError> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let [a, b, c, sequence] = header;
            let length = u32::from_le_bytes([a, b, c, 0]);
            self.sequence = sequence.wrapping_add(1);
            let read = self.stream.by_ref().take(u64::from(length)).read_to_end(&mut payload)?;
            if read as u64 != u64::from(length) {
                return Err(SqlError::Link(std::io::ErrorKind::UnexpectedEof.into()));
            }
            if read < PACKET_BYTES_MAX {
                return Ok(payload);
            }
        }
    }

    pub(super) fn write(&mut self, payload: &[u8]) -> Result<(), SqlError> {
        let mut out = Vec::with_capacity(payload.len().saturating_add(4));
        let mut rest = payload;
        loop {
            let (chunk, after) = rest.split_at(rest.len().min(PACKET_BYTES_MAX));
            let [a, b, c, _] = (chunk.len() as u32).to_le_bytes();
            out.extend([a, b, c, self.sequence]);
            out.extend(chunk);
            self.sequence = self.sequence.wrapping_add(1);
            rest = after;
            if chunk.len() < PACKET_BYTES_MAX {
                break;
            }
        }
        let stream = self.stream.get_mut();
        stream.write_all(&out)?;
        Ok(stream.flush()?)
    }
}

/// The fields of one packet, read from the front.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(packet: &'a [u8]) -> Fields<'a> {
        Fields(packet)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], SqlError> {
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or(SqlError::Protocol("a packet ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(super) fn u8(&mut self) -> Result<u8, SqlError> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    pub(super) fn u16(&mut self) -> Result<u16, SqlError> {
        Ok(self.unsigned(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32, SqlError> {
        Ok(self.unsigned(4)? as u32)
    }

    /// Bytes up to a NUL, which is passed over.
    pub(super) fn until_nul(&mut self) -> Result<&'a [u8], SqlError> {
        let length =
            self.0.iter().position(|byte| *byte == 0).ok_or(SqlError::Protocol("a text has no end"))?;
        let text = self.take(length)?;
        self.take(1)?;
        Ok(text)
    }

    pub(super) fn lenenc(&mut self) -> Result<u64, SqlError> {
        match self.u8()? {
            byte @ 0..=0xfa => Ok(u64::from(byte)),
            0xfc => self.unsigned(2),
            0xfd => self.unsigned(3),
            0xfe => self.unsigned(8),
            0xfb | 0xff => Err(SqlError::Protocol("a length has an unknown form")),
        }
    }

    pub(super) fn lenenc_bytes(&mut self) -> Result<&'a [u8], SqlError> {
        let length = self.lenenc()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A value of a text row; NULL has a mark of its own.
    pub(super) fn value(&mut self) -> Result<Option<&'a [u8]>, SqlError> {
        if self.0.first() == Some(&0xfb) {
            self.u8()?;
            return Ok(None);
        }
        self.lenenc_bytes().map(Some)
    }

    fn unsigned(&mut self, bytes: usize) -> Result<u64, SqlError> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}
