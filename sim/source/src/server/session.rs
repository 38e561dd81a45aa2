//! One connection of a client: greeting, authentication, commands, the dump.

use std::{borrow::Cow, sync::LazyLock};

use bytes::{Buf as _, Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

use super::{
    Server,
    answers::{self, Packets, Settings},
    dump::{self, Dump},
    engine::View,
};
use crate::{
    event::{CHECKSUM_LEN, code},
    put,
    put::Take,
};
use capstan_core::gtid::{Gtid, GtidSet};

/// Names a session of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// What is done to the next event of a dump on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A bit of its body is turned over.
    Flip,
    /// The same inside the next payload event that is larger than a read of most clients.
    FlipPayload,
    /// It ends early, and the link with it.
    Cut,
    /// An event of a type nobody knows stands before it, with or without the ignorable flag.
    Unknown {
        /// `LOG_EVENT_IGNORABLE_F`.
        ignorable: bool,
    },
    /// An artificial ROTATE to the present file stands before it.
    Rotate,
    /// A heartbeat stands before it.
    Heartbeat,
}

#[derive(Debug)]
pub(super) struct Session {
    state: State,
    /// Packets to send, framed.
    out: BytesMut,
    input: BytesMut,
    deprecate_eof: bool,
    settings: Settings,
    registered: bool,
    closing: bool,
    damage: Option<Damage>,
    pub(super) view: Option<View>,
    /// The statement that is prepared.
    prepared: Vec<u8>,
    /// The sequence id of the next packet of ours.
    sequence: u8,
}

#[derive(Debug)]
enum State {
    Login,
    Commands,
    Dumping(Box<Dump>),
}

const NONCE: &[u8; 20] = b"!capstan/fake/nonce!";
const PACKET_MAX: usize = 0xff_ffff;
/// A payload of more is large.
const PAYLOAD_LARGE: usize = 8 << 10;
/// What is reserved for packets to send: most answers and groups are smaller.
const ROOM: usize = 1000;

impl Server {
    /// Takes a connection; the greeting is ready to be pulled.
    pub fn connect(&mut self) -> SessionId {
        let id = SessionId(self.next_session);
        self.next_session += 1;
        let mut session = Session {
            state: State::Login,
            out: BytesMut::new(),
            input: BytesMut::new(),
            deprecate_eof: false,
            settings: Settings::default(),
            registered: false,
            closing: false,
            damage: None,
            view: None,
            prepared: Vec::new(),
            sequence: 0,
        };
        let full = self.connections_max.is_some_and(|most| self.sessions.len() >= most);
        let full = full.then(|| (1040, "Too many connections".into()));
        match full.as_ref().or(self.refuses.as_ref()) {
            Some((number, text)) => {
                session.send(&answers::error(*number, text, false));
                session.closing = true;
            }
            None => session.send(&greeting(&self.version, id)),
        }
        self.sessions.push((id, Box::new(session)));
        id
    }

    /// Takes bytes of the client.
    pub fn receive(&mut self, id: SessionId, bytes: &[u8], now: u64) {
        let Some(at) = self.sessions.iter().position(|(known, _)| *known == id) else { return };
        let (_, mut session) = self.sessions.swap_remove(at);
        session.input.extend_from_slice(bytes);
        while let Some(payload) = session.next_payload() {
            if session.closing {
                break;
            }
            self.on_payload(id, &mut session, &payload, now);
        }
        self.sessions.push((id, session));
        self.grant();
    }

    /// Sends a session what it has waited for.
    pub(super) fn tell(&mut self, id: SessionId, payload: &[u8]) {
        if let Some((_, session)) = self.sessions.iter_mut().find(|(known, _)| *known == id)
            && !session.closing
        {
            session.send(payload);
        }
    }

    /// At most `max` bytes for the client: what the client leaves unread is not even made.
    pub fn pull(&mut self, id: SessionId, max: usize, now: u64) -> Bytes {
        let Some((session, files)) = self.session(id) else { return Bytes::new() };
        while session.out.len() < max && !session.closing {
            if !session.send_next(files) {
                break;
            }
            if let State::Dumping(dump) = &mut session.state {
                dump.last_sent = now;
            }
        }
        if session.out.len() <= max {
            return core::mem::take(&mut session.out).freeze();
        }
        session.out.split_to(max).freeze()
    }

    /// Whether there is something to pull.
    pub fn has_output(&mut self, id: SessionId) -> bool {
        let Some((session, files)) = self.session(id) else { return false };
        if !session.out.is_empty() {
            return true;
        }
        !session.closing && session.send_next(files)
    }

    /// Whether the server has closed the connection; what was sent before can still be pulled.
    #[must_use]
    pub fn is_closed(&self, id: SessionId) -> bool {
        self.looked(id).is_none_or(|session| session.closing && session.out.is_empty())
    }

    /// Whether the session is inside its dump.
    #[must_use]
    pub fn is_dumping(&self, id: SessionId) -> bool {
        self.looked(id).is_some_and(|session| matches!(session.state, State::Dumping(_)))
    }

    /// Whether the server ends the session, though what it has sent may still be on its way.
    #[must_use]
    pub fn is_ending(&self, id: SessionId) -> bool {
        self.looked(id).is_none_or(|session| session.closing)
    }

    /// The group of which a part has been sent.
    #[must_use]
    pub fn inside(&self, id: SessionId) -> Option<Gtid> {
        match &self.looked(id)?.state {
            State::Dumping(dump) => dump.inside(&self.files),
            State::Login | State::Commands => None,
        }
    }

    /// When the session's next heartbeat is due.
    #[must_use]
    pub fn heartbeat_at(&self, id: SessionId) -> Option<u64> {
        let session = self.looked(id)?;
        match &session.state {
            State::Dumping(dump) if dump.heartbeat_every > 0 && !session.closing => {
                Some(dump.last_sent + dump.heartbeat_every)
            }
            State::Dumping(_) | State::Login | State::Commands => None,
        }
    }

    /// Sends the heartbeat that is due.
    pub fn tick(&mut self, id: SessionId, now: u64) {
        if self.heartbeat_at(id).is_none_or(|at| at > now) {
            return;
        }
        let Some((session, files)) = self.session(id) else { return };
        let State::Dumping(dump) = &mut session.state else { return };
        dump.last_sent = now;
        // With anything unsent the thread hangs in its write and is silent.
        if session.out.is_empty()
            && let Some(event) = dump.heartbeat_now(files)
        {
            session.send_event(event, files);
        }
    }

    /// The client is gone.
    pub fn close(&mut self, id: SessionId) {
        self.sessions.retain(|(known, _)| *known != id);
        self.releases(id);
    }

    /// Ends a session with an error, as KILL and shutdown do.
    pub fn kill(&mut self, id: SessionId, number: u16, text: &str) {
        if let Some((session, _)) = self.session(id)
            && !session.closing
        {
            session.send(&answers::error(number, text, true));
            session.closing = true;
            session.view = None;
        }
        self.releases(id);
    }

    /// Damages the next event of a dump.
    pub fn damage(&mut self, id: SessionId, damage: Damage) {
        if let Some((session, _)) = self.session(id) {
            session.damage = Some(damage);
        }
    }

    /// Whether the damage asked for has been done.
    #[must_use]
    pub fn is_damaged(&self, id: SessionId) -> bool {
        self.looked(id).is_none_or(|session| session.damage.is_none())
    }

    fn looked(&self, id: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|(known, _)| *known == id).map(|(_, session)| &**session)
    }

    /// A session, and the files it reads.
    fn session(&mut self, id: SessionId) -> Option<(&mut Session, &[super::File])> {
        let (_, session) = self.sessions.iter_mut().find(|(known, _)| *known == id)?;
        Some((session, &self.files))
    }

    fn on_payload(&mut self, id: SessionId, session: &mut Session, payload: &[u8], now: u64) {
        match session.state {
            State::Login => self.on_login(session, payload),
            State::Commands => self.on_command(id, session, payload, now),
            // A client that speaks inside a dump wants out.
            State::Dumping(_) => session.closing = true,
        }
    }

    fn on_login(&self, session: &mut Session, payload: &[u8]) {
        let scramble = (|| {
            let mut take = Take(payload);
            let capabilities = take.int(4)?;
            take.bytes(28)?;
            take.nul_terminated()?;
            let len = take.u8()?;
            Some((capabilities, take.bytes(usize::from(len))?))
        })();
        let Some((capabilities, scramble)) = scramble else {
            session.closing = true;
            return;
        };
        session.deprecate_eof = capabilities >> 24 & 1 == 1;
        if scramble != caching_sha2(&self.password) {
            session.send(&answers::error(1045, "Access denied for user", true));
            session.closing = true;
            return;
        }
        // The fast path: the account is in the server's cache.
        session.send(&[0x01, 0x03]);
        session.send(&answers::ok(0));
        session.state = State::Commands;
    }

    fn on_command(&mut self, id: SessionId, session: &mut Session, payload: &[u8], now: u64) {
        let Some((command, rest)) = payload.split_first() else { return };
        match command {
            0x01 => session.closing = true,
            0x03 => self.on_query(id, session, rest, false),
            // The statement is looked at when it is run; one at a time is kept.
            0x16 if !self.prepares_statements => {
                session.send(&answers::error(
                    1461,
                    "Can't create more than max_prepared_stmt_count statements",
                    true,
                ));
            }
            0x16 => {
                session.prepared = rest.to_vec();
                let columns = session.columns();
                let mut to = session.packets(false);
                to.prepared(columns);
            }
            0x17 => {
                let sql = std::mem::take(&mut session.prepared);
                self.on_query(id, session, &sql, true);
                session.prepared = sql;
            }
            0x19 => {}
            0x0e => session.send(&answers::ok(0)),
            0x15 => {
                session.registered = true;
                session.send(&answers::ok(0));
            }
            0x1e => self.on_dump(session, rest, now),
            _ => session.send(&answers::error(1047, "Unknown command", true)),
        }
    }

    fn on_query(&mut self, id: SessionId, session: &mut Session, sql: &[u8], binary: bool) {
        let sql = std::str::from_utf8(sql).map_or_else(|_| String::from_utf8_lossy(sql), Cow::Borrowed);
        session.out.reserve(ROOM);
        let mut to = Packets {
            out: &mut session.out,
            sequence: &mut session.sequence,
            deprecate_eof: session.deprecate_eof,
            binary,
        };
        if self.copy_statement(id, &mut session.view, &sql, &mut to).is_none() {
            self.answer(&sql, &mut session.settings, &mut to);
        }
    }

    fn on_dump(&mut self, session: &mut Session, rest: &[u8], now: u64) {
        let asked = (|| {
            let mut take = Take(rest);
            let flags = take.int(2)?;
            take.int(4)?;
            let name = take.int(4)? as usize;
            take.bytes(name)?;
            take.int(8)?;
            let len = take.int(4)? as usize;
            Some((flags, GtidSet::decode(take.bytes(len)?).ok()?))
        })();
        let Some((flags, has)) = asked else {
            session.send(&answers::error(1773, "Malformed GTID set specification", true));
            return;
        };
        // `kill_zombie_dump_threads`: one dump per replica.
        for (_, other) in &mut self.sessions {
            let same = other.settings.replica_uuid == session.settings.replica_uuid;
            if same && matches!(other.state, State::Dumping(_)) && !other.closing {
                other.send(&answers::error(dump::REPLACED.0, dump::REPLACED.1, true));
                other.closing = true;
            }
        }
        let negotiated = session.settings.checksum;
        let opened = match negotiated {
            None if self.crc32 => Err(dump::CHECKSUM),
            negotiated => {
                let crc32 = negotiated.unwrap_or(false);
                Dump::open(self, has, flags & 2 != 0, session.settings.heartbeat_us, crc32, now)
            }
        };
        match opened {
            Ok(dump) => session.state = State::Dumping(Box::new(dump)),
            Err((number, text)) => {
                session.send(&answers::error(number, text, true));
                session.closing = true;
            }
        }
    }
}

impl Session {
    fn packets(&mut self, binary: bool) -> Packets<'_> {
        Packets {
            out: &mut self.out,
            sequence: &mut self.sequence,
            deprecate_eof: self.deprecate_eof,
            binary,
        }
    }

    /// How many columns the prepared statement selects.
    fn columns(&self) -> u16 {
        let sql = String::from_utf8_lossy(&self.prepared);
        let list = sql.split(" FROM ").next().map_or(1, |list| list.split(", ").count());
        u16::try_from(list).unwrap_or(1)
    }

    /// The file its dump is in.
    pub(super) fn reads(&self) -> Option<&str> {
        match &self.state {
            State::Dumping(dump) if !self.closing => Some(dump.file()),
            State::Dumping(_) | State::Login | State::Commands => None,
        }
    }

    fn send(&mut self, payload: &[u8]) {
        let mut rest = payload;
        loop {
            let (body, after) = rest.split_at(rest.len().min(PACKET_MAX));
            let [a, b, c, _] = (body.len() as u32).to_le_bytes();
            self.out.extend_from_slice(&[a, b, c, self.sequence]);
            self.sequence = self.sequence.wrapping_add(1);
            self.out.extend_from_slice(body);
            rest = after;
            if body.len() < PACKET_MAX {
                return;
            }
        }
    }

    /// Sends the next event of the dump; `false`: everything was sent.
    fn send_next(&mut self, files: &[super::File]) -> bool {
        let State::Dumping(dump) = &mut self.state else { return false };
        let start = self.out.len();
        if start == 0 {
            self.out.reserve(ROOM);
        }
        // Written where it goes, behind the packet's header and marker.
        self.out.extend_from_slice(&[0, 0, 0, self.sequence, 0]);
        if !dump.next(files, &mut self.out) {
            self.out.truncate(start);
            return false;
        }
        let len = self.out.len() - start - 4;
        if self.damage.is_some() || len >= PACKET_MAX {
            let event = self.out.split_off(start)[5..].to_vec();
            self.send_event(event, files);
        } else {
            self.out[start..start + 3].copy_from_slice(&(len as u32).to_le_bytes()[..3]);
            self.sequence = self.sequence.wrapping_add(1);
        }
        true
    }

    fn send_event(&mut self, mut event: Vec<u8>, files: &[super::File]) {
        let crc32 = matches!(&self.state, State::Dumping(dump) if dump.carries_sums());
        match self.damage {
            None => {}
            Some(Damage::Flip) => {
                // Not in the header, whose fields the core looks at first.
                let last = event.len() - 1 - usize::from(crc32) * CHECKSUM_LEN;
                // The last byte of a row or the middle of them all.
                let at = if event.len().is_multiple_of(2) {
                    usize::midpoint(crate::event::HEADER_LEN, last)
                } else {
                    last
                };
                if crc32 && at >= crate::event::HEADER_LEN {
                    event[at] ^= 0x10;
                    self.damage = None;
                }
            }
            Some(Damage::FlipPayload)
                if crc32 && event[4] == code::TRANSACTION_PAYLOAD && event.len() > PAYLOAD_LARGE =>
            {
                let middle = event.len() / 2;
                event[middle] ^= 0x10;
                self.damage = None;
            }
            Some(Damage::FlipPayload) => {}
            Some(Damage::Cut) => {
                self.damage = None;
                let before = self.out.len();
                self.send_plain(&event);
                self.out.truncate(before + (self.out.len() - before) / 2);
                self.closing = true;
                return;
            }
            Some(Damage::Unknown { ignorable }) => {
                self.damage = None;
                let body = crate::event::Body::Other { code: 99, bytes: vec![1, 2, 3] };
                let flag = if ignorable { crate::event::IGNORABLE } else { 0 };
                let unknown = crate::event::Event::of(1, 1, body).flagged(flag).encode(crc32);
                self.send_plain(&unknown);
            }
            // Inside a group no server does that.
            Some(Damage::Rotate) if event[4] != code::GTID && event[4] != code::GTID_TAGGED => {}
            Some(Damage::Rotate) => {
                self.damage = None;
                if let State::Dumping(dump) = &self.state {
                    let rotate = dump.artificial_rotate();
                    self.send_plain(&rotate);
                }
            }
            Some(Damage::Heartbeat) => {
                self.damage = None;
                if let State::Dumping(dump) = &mut self.state
                    && let Some(heartbeat) = dump.heartbeat_now(files)
                {
                    self.send_plain(&heartbeat);
                }
            }
        }
        self.send_plain(&event);
    }

    fn send_plain(&mut self, event: &[u8]) {
        let mut payload = Vec::with_capacity(event.len() + 1);
        payload.push(0);
        payload.extend_from_slice(event);
        self.send(&payload);
    }

    /// The next whole payload of the client; commands of 16 MiB are none of a replica's.
    fn next_payload(&mut self) -> Option<BytesMut> {
        let header = self.input.get(..4)?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let sequence = header[3];
        if self.input.len() < 4 + len {
            return None;
        }
        let mut packet = self.input.split_to(4 + len);
        self.sequence = sequence.wrapping_add(1);
        packet.advance(4);
        Some(packet)
    }
}

/// `Protocol::HandshakeV10`.
fn greeting(version: &str, id: SessionId) -> Vec<u8> {
    // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, CONNECT_ATTRS, PLUGIN_AUTH_LENENC, DEPRECATE_EOF.
    let capabilities: u32 = 1 | 1 << 9 | 1 << 15 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 24;
    let mut out = vec![10];
    out.extend_from_slice(version.as_bytes());
    out.push(0);
    put::int(&mut out, u64::from(id.0), 4);
    out.extend_from_slice(&NONCE[..8]);
    out.push(0);
    put::int(&mut out, u64::from(capabilities & 0xffff), 2);
    out.push(255);
    put::int(&mut out, 2, 2);
    put::int(&mut out, u64::from(capabilities >> 16), 2);
    out.push(21);
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&NONCE[8..]);
    out.push(0);
    out.extend_from_slice(b"caching_sha2_password\0");
    out
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce). Of the usual password it is known.
fn caching_sha2(password: &[u8]) -> Vec<u8> {
    static USUAL: LazyLock<Vec<u8>> = LazyLock::new(|| scramble(super::PASSWORD));
    match password {
        b"" => Vec::new(),
        super::PASSWORD => USUAL.clone(),
        other => scramble(other),
    }
}

fn scramble(password: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mask = Sha256::new().chain_update(twice).chain_update(NONCE).finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}
