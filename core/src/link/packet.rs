//! The framing of the client/server protocol: a 3-byte length, a sequence id, up to 2^24 − 1 bytes.
//!
//! Source: MySQL protocol documentation, `page_protocol_basic_packets`; `sql-common/net_serv.cc`.
//!
//! # What a payload keeps alive
//!
//! A payload that lies inside one read chunk is a slice of that chunk and keeps all of it alive; one
//! that spans chunks is joined once into memory of its own. [`Payload::retained`] says how much that
//! is. The framer copies nothing to save memory: who keeps a payload for long (a table map, a row of a
//! held batch) compares `retained` with the length and copies out when it is not worth it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::fmt;

/// The longest packet; a payload of this length or more goes on in the next packet.
pub const PACKET_LEN_MAX: usize = 0xff_ffff;

/// Bytes in front of every packet.
pub const HEADER_LEN: usize = 4;

/// A bound for payloads before authentication: no honest greeting, public key or error comes near it.
pub const HANDSHAKE_PAYLOAD_MAX: usize = 64 * 1024;

/// A bound for the dump: the default row event limit (64 MiB) and room for the event's header, its
/// checksum and the packet's own first byte.
pub const DUMP_PAYLOAD_MAX: usize = 64 * 1024 * 1024 + 4 * 1024;

/// What the peer did wrong. The connection is of no use afterwards: the framer says the same error
/// again for whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A packet was lost, repeated or made up by whatever sits between us and the server.
    #[error("packet out of order: sequence id {found}, expected {expected}")]
    OutOfOrder {
        /// The id that was due.
        expected: u8,
        /// The id that came.
        found: u8,
    },
    /// The headers announce more than the caller allows. Said before anything of the payload is kept.
    #[error("payload of at least {claimed} bytes is over the limit of {limit}")]
    PayloadTooLarge {
        /// What the headers read so far add up to, in bytes.
        claimed: usize,
        /// The limit given to the framer, in bytes.
        limit: usize,
    },
}

/// The sequence id that is due next, for both directions: a reply goes on where the request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence(u8);

impl Sequence {
    /// The id that a command (and the server's greeting) starts with.
    pub const START: Self = Self(0);

    /// The next id, and steps on; 255 is followed by 0.
    const fn take(&mut self) -> u8 {
        let id = self.0;
        self.0 = id.wrapping_add(1);
        id
    }
}

/// A whole payload, without its packet headers.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The bytes: a slice of one read chunk, or memory of their own.
    pub bytes: Bytes,
    /// How many bytes stay allocated while `bytes` lives: the length of the chunk it was sliced
    /// from, or its own length when it was joined. At least `bytes.len()`.
    pub retained: usize,
}

impl fmt::Debug for Payload {
    // Rule 1: a payload may hold row values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes, {} retained)", self.bytes.len(), self.retained)
    }
}

/// A piece of a payload that is taken while it is read.
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// The next bytes.
    Bytes(Bytes),
    /// The payload is over.
    End,
    /// More must be read first.
    Wait,
}

impl fmt::Debug for Piece {
    // Rule 1: a payload may hold row values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::End => f.write_str("End"),
            Self::Wait => f.write_str("Wait"),
        }
    }
}

/// Turns read chunks into whole payloads.
///
/// Push what was read, then pull until `None`. After that `None` no pushed chunk is held any more, so
/// memory is bounded by the payload limit whatever the sizes of the reads.
pub struct Framer {
    chunks: VecDeque<Chunk>,
    sequence: Sequence,
    payload_max: usize,
    header: [u8; HEADER_LEN],
    header_len: usize,
    /// The packet being read, once its header is complete.
    packet: Option<Packet>,
    /// What the packets of an unfinished payload have given so far.
    joined: Vec<u8>,
    /// Whether an earlier packet of the same payload was a full one.
    continued: bool,
    /// The last packet of a payload taken in pieces is whole, and its bytes are still to be given.
    ended: bool,
    failed: Option<PacketError>,
}

/// A chunk that has not been consumed, and how long it was when it came.
struct Chunk {
    rest: Bytes,
    whole_len: usize,
}

#[derive(Clone, Copy)]
struct Packet {
    /// Bytes of the body still to come.
    missing: usize,
    /// Shorter than a full packet, so the payload ends with it.
    last: bool,
}

impl fmt::Debug for Framer {
    // Rule 1: the chunks hold row values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer")
            .field("buffered", &self.buffered())
            .field("wants", &self.wants())
            .field("sequence", &self.sequence)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Framer {
    /// A framer at the start of a connection. `payload_max` bounds a whole payload in bytes.
    #[must_use]
    pub const fn new(payload_max: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            sequence: Sequence::START,
            payload_max,
            header: [0; HEADER_LEN],
            header_len: 0,
            packet: None,
            joined: Vec::new(),
            continued: false,
            ended: false,
            failed: None,
        }
    }

    /// Another bound from the next packet header on: a small one fits the handshake
    /// ([`HANDSHAKE_PAYLOAD_MAX`]), a large one the dump.
    pub const fn set_payload_max(&mut self, payload_max: usize) {
        self.payload_max = payload_max;
    }

    /// Takes what was read. Empty chunks are fine.
    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() && self.failed.is_none() {
            self.chunks.push_back(Chunk { whole_len: chunk.len(), rest: chunk });
        }
    }

    /// The next whole payload, or `None` when more must be read first.
    pub fn next_payload(&mut self) -> Result<Option<Payload>, PacketError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance().inspect_err(|&error| {
            self.failed = Some(error);
            self.header_len = 0;
            self.chunks.clear();
            self.joined = Vec::new();
        })
    }

    /// What has come so far of a payload that is not whole, after `next_payload` gave `None`. From here
    /// on it can be taken in pieces: [`Framer::next_piece`].
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.joined
    }

    /// The next piece of the payload that is half read, from its first byte on. The bound on payloads
    /// does not hold for one that is taken so, for nothing of it is kept. Until [`Piece::End`] no
    /// other call may take from the framer.
    pub fn next_piece(&mut self) -> Result<Piece, PacketError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        loop {
            if !self.joined.is_empty() {
                return Ok(Piece::Bytes(core::mem::take(&mut self.joined).into()));
            }
            if core::mem::take(&mut self.ended) {
                return Ok(Piece::End);
            }
            let packet = match self.packet {
                Some(packet) => packet,
                None => match self.read_header()? {
                    Some(packet) => packet,
                    None => return Ok(Piece::Wait),
                },
            };
            self.packet = Some(packet);
            let complete = self.join(packet);
            if complete {
                self.packet = None;
                self.continued = !packet.last;
                if packet.last {
                    // What was joined last goes out before the end does.
                    self.ended = true;
                }
            }
            if self.joined.is_empty() && !complete {
                return Ok(Piece::Wait);
            }
        }
    }

    /// How many bytes are missing before the current packet (or its header) is whole, beyond those
    /// already pushed. Never 0 after `next_payload` gave `None`.
    #[must_use]
    pub fn wants(&self) -> usize {
        let header = HEADER_LEN.saturating_sub(self.header_len).max(1);
        self.packet.map_or(header, |packet| packet.missing).saturating_sub(self.queued())
    }

    /// Bytes held: pushed and not consumed, and joined of an unfinished payload.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.queued().saturating_add(self.joined.len()).saturating_add(self.header_len)
    }

    /// Whether nothing is held and no payload is half read. Must be true before TLS starts: bytes
    /// that a server is said to have sent in the clear after asking for TLS are an attacker's.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        self.buffered() == 0 && self.packet.is_none() && !self.continued && self.failed.is_none()
    }

    /// Starts a command: the id of its packet is 0 and the reply's first one is 1.
    pub const fn begin_command(&mut self) {
        self.sequence = Sequence::START;
    }

    /// The id for [`encode`], shared with the read side.
    pub const fn sequence_mut(&mut self) -> &mut Sequence {
        &mut self.sequence
    }

    fn advance(&mut self) -> Result<Option<Payload>, PacketError> {
        loop {
            let packet = match self.packet {
                Some(packet) => packet,
                None => match self.read_header()? {
                    Some(packet) => packet,
                    None => return Ok(None),
                },
            };
            self.packet = Some(packet);
            // A payload that goes on over packets has something joined already.
            let whole = packet.last && self.joined.is_empty();
            if whole && let Some(payload) = self.slice(packet.missing) {
                self.packet = None;
                return Ok(Some(payload));
            }
            if !self.join(packet) {
                return Ok(None);
            }
            self.packet = None;
            self.continued = !packet.last;
            if packet.last {
                let joined = Bytes::from(core::mem::take(&mut self.joined));
                return Ok(Some(Payload { retained: joined.len(), bytes: joined }));
            }
        }
    }

    /// Reads a packet header and checks what can be checked before the body.
    fn read_header(&mut self) -> Result<Option<Packet>, PacketError> {
        if !self.fill_header() {
            return Ok(None);
        }
        let [a, b, c, found] = self.header;
        let len = usize::try_from(u32::from_le_bytes([a, b, c, 0])).unwrap_or(PACKET_LEN_MAX);
        let expected = self.sequence.0;
        if found != expected {
            match self.is_farewell(found, len) {
                Some(true) => {}
                Some(false) => return Err(PacketError::OutOfOrder { expected, found }),
                // The header stays for the next look.
                None => return Ok(None),
            }
        }
        let claimed = self.joined.len().saturating_add(len);
        if claimed > self.payload_max {
            return Err(PacketError::PayloadTooLarge { claimed, limit: self.payload_max });
        }
        self.sequence = Sequence(found.wrapping_add(1));
        self.header_len = 0;
        Ok(Some(Packet { missing: len, last: len < PACKET_LEN_MAX }))
    }

    /// Collects the header's bytes, which may come from several chunks; true when all four are there.
    fn fill_header(&mut self) -> bool {
        while let Some(place) = self.header.get_mut(self.header_len..).filter(|place| !place.is_empty()) {
            let Some(chunk) = self.chunks.front_mut() else { return false };
            let take = chunk.rest.len().min(place.len());
            place.iter_mut().zip(&chunk.rest).for_each(|(to, from)| *to = *from);
            self.header_len = self.header_len.saturating_add(take);
            self.consume(take);
        }
        true
    }

    /// Whether a packet out of order is an error that stands apart from the dialogue; `None` while its
    /// first byte is not here.
    ///
    /// A server that gives up an idle connection (`wait_timeout`) says so with id 0, since it waits
    /// for a command: before ours, or in place of its reply. `net_serv.cc` takes an error with any id
    /// where the first packet of a reply is due. Both end the session, so nothing passes unnoticed.
    fn is_farewell(&self, found: u8, len: usize) -> Option<bool> {
        let possible = len > 0 && !self.continued && (found == 0 || self.sequence.0 == 1);
        if !possible {
            return Some(false);
        }
        let first = self.chunks.front().and_then(|chunk| chunk.rest.first())?;
        Some(*first == 0xff)
    }

    /// The payload as a slice, if all of it lies in the first chunk.
    fn slice(&mut self, len: usize) -> Option<Payload> {
        if len == 0 {
            return Some(Payload { bytes: Bytes::new(), retained: 0 });
        }
        let chunk = self.chunks.front()?;
        if chunk.rest.len() < len {
            return None;
        }
        let payload = Payload { bytes: chunk.rest.slice(..len), retained: chunk.whole_len };
        self.consume(len);
        Some(payload)
    }

    /// Moves what is there of the packet into `joined`; true when the packet is complete.
    fn join(&mut self, mut packet: Packet) -> bool {
        while packet.missing > 0 {
            let Some(chunk) = self.chunks.front() else { break };
            let part = chunk.rest.get(..packet.missing).unwrap_or(&chunk.rest);
            let take = part.len();
            reserve(&mut self.joined, take, packet.missing);
            self.joined.extend_from_slice(part);
            self.consume(take);
            packet.missing = packet.missing.saturating_sub(take);
        }
        self.packet = Some(packet);
        packet.missing == 0
    }

    /// Steps over bytes of the first chunk, and lets it go at its end.
    fn consume(&mut self, len: usize) {
        let Some(chunk) = self.chunks.front_mut() else { return };
        if len < chunk.rest.len() {
            chunk.rest.advance(len);
        } else {
            self.chunks.pop_front();
        }
    }

    fn queued(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.rest.len()).sum()
    }
}

/// Room for `present` more bytes. Grows by doubling, so that joining stays linear, and never beyond
/// what the packet's header claims: neither a claim without bytes nor bytes without a claim make a
/// large allocation.
fn reserve(joined: &mut Vec<u8>, present: usize, claimed: usize) {
    let room = joined.capacity().saturating_sub(joined.len());
    if room < present {
        joined.reserve_exact(present.max(joined.len()).min(claimed));
    }
}

/// Writes a payload as packets: split at [`PACKET_LEN_MAX`], an exact multiple ended by an empty one.
pub fn encode(payload: &[u8], sequence: &mut Sequence, out: &mut BytesMut) {
    let mut rest = payload;
    loop {
        let (body, after) = rest.split_at_checked(PACKET_LEN_MAX).unwrap_or((rest, &[]));
        let len = u32::try_from(body.len()).unwrap_or(0);
        out.reserve(body.len().saturating_add(HEADER_LEN));
        out.put_uint_le(u64::from(len), 3);
        out.put_u8(sequence.take());
        out.put_slice(body);
        rest = after;
        if body.len() < PACKET_LEN_MAX {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
