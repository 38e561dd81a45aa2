//! From the server's greeting to an authenticated session.
//!
//! Sources: `page_protocol_connection_phase` and its packets; `sql-common/client.cc`.
//!
//! The machine consumes itself: each payload turns a [`Handshake`] into a [`Step`], and an error
//! leaves nothing to go on with. The version is judged before a byte is sent, and with TLS required
//! nothing that identifies us is sent in the clear.

use super::auth::{self, BadPublicKey, Nonce, PasswordTooLong, SeedRandom, ServerPublicKey};
use super::error_packet::ServerError;
use super::login::{KeyTrust, Login, TlsMode, VersionGate};
use super::response::{Capabilities, EOF_HEADER, ERR_HEADER, Malformed, OK_HEADER, OkPacket};
use super::version::{ServerVersion, UnsupportedServer};
use crate::wire::{Reader, Short};
use alloc::vec::Vec;
use bytes::{BufMut, Bytes};
use core::fmt;

mod greeting;
mod plugin;

use greeting::Greeting;
use plugin::Plugin;
pub use plugin::PluginName;

/// Why no session came to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The server said no, in place of a greeting or to our credentials. By
    /// [`ServerError::meaning`]: `access_denied`, or passing (too many connections, shutdown).
    #[error("refused by the server: {0}")]
    Refused(ServerError),
    /// The version gate (`unsupported_server`).
    #[error(transparent)]
    Unsupported(#[from] UnsupportedServer),
    /// Not the protocol of MySQL 4.1 and later with pluggable authentication (`unsupported_server`).
    #[error("the server does not speak version 10 of the protocol with pluggable authentication")]
    ProtocolUnsupported,
    /// TLS is required and the server has none (`tls_not_offered`).
    #[error("TLS is required and the server does not offer it")]
    TlsNotOffered,
    /// The account authenticates by a plugin that is not spoken here (`auth_plugin_unsupported`).
    #[error("the account uses the authentication plugin {0}, which is not supported")]
    PluginUnsupported(PluginName),
    /// The password would have to be encrypted with a key that nobody vouched for
    /// (`server_key_not_trusted`): use TLS, pin the server's key, or allow its retrieval.
    #[error("the connection is not encrypted and no key of the server is trusted with the password")]
    KeyNotTrusted,
    /// The key the server sent is no RSA public key. The peer is at fault.
    #[error("the server sent something that is no public key")]
    BadPublicKey(#[from] BadPublicKey),
    /// The password does not fit the server's key. The configuration is at fault.
    #[error(transparent)]
    PasswordTooLong(#[from] PasswordTooLong),
    /// A second request to switch plugins. The peer is at fault.
    #[error("the server asked for another authentication plugin twice")]
    SwitchedTwice,
    /// A packet that does not parse or has no place here. The peer is at fault.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl From<Short> for HandshakeError {
    fn from(_: Short) -> Self {
        Self::Malformed(Malformed)
    }
}

/// What to do next.
pub enum Step {
    /// Send this payload and feed the next one.
    Send(Bytes, Handshake),
    /// Nothing to send; feed the next payload.
    Wait(Handshake),
    /// Send this payload, flush, make sure that nothing was read beyond the greeting
    /// ([`Framer::is_at_boundary`](super::Framer::is_at_boundary)), start TLS, and then call
    /// [`TlsPending::secured`].
    StartTls(Bytes, TlsPending),
    /// The session is open; the next packet is a command of ours.
    Done(Session),
}

/// What is known of an open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Flavour and version as the greeting says.
    pub version: ServerVersion,
    /// The server's id of this connection, for KILL and for operators.
    pub connection_id: u32,
    /// What both sides can do.
    pub capabilities: Capabilities,
    /// Whether TLS carries the session.
    pub encrypted: bool,
}

/// A handshake in progress.
pub struct Handshake {
    login: Login,
    random: SeedRandom,
    state: State,
}

/// A handshake that waits for the transport to be encrypted.
pub struct TlsPending {
    login: Login,
    random: SeedRandom,
    greeting: Greeting,
}

enum State {
    Greeting,
    Auth(Auth),
}

struct Auth {
    session: Session,
    plugin: Plugin,
    nonce: Nonce,
    switched: bool,
    waiting: Waiting,
}

/// What the server may say next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// OK, an error, a switch of plugin, or the plugin's own data.
    Answer,
    /// The public key that was asked for.
    Key,
    /// OK or an error.
    Verdict,
}

impl fmt::Debug for Step {
    // Rule 1: payloads may carry the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(..) => f.write_str("Send"),
            Self::Wait(_) => f.write_str("Wait"),
            Self::StartTls(..) => f.write_str("StartTls"),
            Self::Done(session) => f.debug_tuple("Done").field(session).finish(),
        }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Greeting => "greeting",
            State::Auth(_) => "authentication",
        };
        write!(f, "Handshake({state})")
    }
}

impl fmt::Debug for TlsPending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsPending")
    }
}

impl Handshake {
    /// A handshake that waits for the greeting. `seed` feeds the padding of the RSA exchange and must
    /// be fresh for every connection.
    #[must_use]
    pub const fn new(login: Login, seed: [u8; 32]) -> Self {
        Self { login, random: SeedRandom::new(seed), state: State::Greeting }
    }

    /// Takes one whole payload from the server.
    pub fn on_payload(self, payload: &[u8]) -> Result<Step, HandshakeError> {
        let Self { login, random, state } = self;
        match state {
            State::Greeting => on_greeting(login, random, payload),
            State::Auth(auth) => auth.on_payload(login, random, payload),
        }
    }
}

impl TlsPending {
    /// TLS is up (its certificates were checked by the adapter): logs in.
    pub fn secured(self) -> Result<Step, HandshakeError> {
        log_in(self.login, self.random, self.greeting, true)
    }
}

/// Flags we want if the server has them.
const WISHED: Capabilities = Capabilities::CONNECT_ATTRS.union(Capabilities::DEPRECATE_EOF);

/// Flags without which there is no talking; every server since 5.6 has them.
const NEEDED: Capabilities = Capabilities::PROTOCOL_41
    .union(Capabilities::SECURE_CONNECTION)
    .union(Capabilities::PLUGIN_AUTH)
    .union(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA);

/// `utf8mb4_general_ci`, known to every server with utf8mb4; the session's own statements decide more.
const CHARSET: u8 = 45;

/// What we would accept in one payload: the protocol's own maximum of 1 GiB.
const MAX_PACKET: u32 = 1 << 30;

/// Shown in `performance_schema.session_connect_attrs`.
const ATTRIBUTES: [(&str, &str); 3] = [
    ("program_name", "capstan"),
    ("_client_name", "capstan"),
    ("_client_version", env!("CARGO_PKG_VERSION")),
];

fn on_greeting(login: Login, random: SeedRandom, payload: &[u8]) -> Result<Step, HandshakeError> {
    if payload.first() == Some(&ERR_HEADER) {
        return Err(HandshakeError::Refused(ServerError::parse(payload)?));
    }
    let greeting = Greeting::parse(payload)?;
    match login.gate {
        VersionGate::Supported => greeting.version.supported()?,
        VersionGate::Any => greeting.version,
    };
    if !greeting.capabilities.contains(NEEDED) {
        return Err(HandshakeError::ProtocolUnsupported);
    }
    match login.tls {
        TlsMode::Disabled => log_in(login, random, greeting, false),
        TlsMode::Required if greeting.capabilities.contains(Capabilities::SSL) => {
            let request = preamble(capabilities(&greeting, true));
            Ok(Step::StartTls(request.into(), TlsPending { login, random, greeting }))
        }
        TlsMode::Required => Err(HandshakeError::TlsNotOffered),
    }
}

/// The flags of this session.
fn capabilities(greeting: &Greeting, encrypted: bool) -> Capabilities {
    let wished = greeting.capabilities.intersection(WISHED);
    let tls = if encrypted { Capabilities::SSL } else { Capabilities::default() };
    NEEDED.union(Capabilities::LONG_PASSWORD).union(wished).union(tls)
}

/// The first 32 bytes of a login; on its own it is the request for TLS.
fn preamble(capabilities: Capabilities) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u32_le(capabilities.0);
    bytes.put_u32_le(MAX_PACKET);
    bytes.put_u8(CHARSET);
    bytes.put_bytes(0, 23);
    bytes
}

/// `HandshakeResponse41`.
fn log_in(
    login: Login,
    random: SeedRandom,
    greeting: Greeting,
    encrypted: bool,
) -> Result<Step, HandshakeError> {
    let plugin = greeting.opening_plugin();
    let capabilities = capabilities(&greeting, encrypted);
    let response = match plugin {
        Plugin::Native => auth::native(&login.password, &greeting.nonce),
        // `opening_plugin` never opens with sha256_password.
        Plugin::CachingSha2 | Plugin::Sha256 => auth::caching_sha2(&login.password, &greeting.nonce),
    };
    let mut bytes = preamble(capabilities);
    bytes.extend_from_slice(login.user.as_bytes());
    bytes.push(0);
    put_lenenc(&mut bytes, &response);
    bytes.extend_from_slice(plugin.name().as_bytes());
    bytes.push(0);
    if capabilities.contains(Capabilities::CONNECT_ATTRS) {
        let mut attributes = Vec::new();
        for (key, value) in ATTRIBUTES {
            put_lenenc(&mut attributes, key.as_bytes());
            put_lenenc(&mut attributes, value.as_bytes());
        }
        put_lenenc(&mut bytes, &attributes);
    }
    let session =
        Session { version: greeting.version, connection_id: greeting.connection_id, capabilities, encrypted };
    let auth = Auth { session, plugin, nonce: greeting.nonce, switched: false, waiting: Waiting::Answer };
    Ok(auth.send(login, random, bytes, Waiting::Answer))
}

/// A length-encoded string of less than 251 bytes, which is all that is ever written here.
fn put_lenenc(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() < 251, "a longer string needs a longer length");
    out.push(u8::try_from(bytes.len()).unwrap_or(0));
    out.extend_from_slice(bytes);
}

impl Auth {
    fn on_payload(self, login: Login, random: SeedRandom, payload: &[u8]) -> Result<Step, HandshakeError> {
        match (payload.first(), self.waiting) {
            (Some(&ERR_HEADER), _) => Err(HandshakeError::Refused(ServerError::parse(payload)?)),
            (Some(&OK_HEADER), Waiting::Answer | Waiting::Verdict) => {
                OkPacket::parse(payload)?;
                Ok(Step::Done(self.session))
            }
            (Some(&EOF_HEADER), Waiting::Answer) => self.on_switch(login, random, payload),
            (Some(&AUTH_MORE_DATA), Waiting::Answer) => self.on_more_data(login, random, payload),
            (Some(&AUTH_MORE_DATA), Waiting::Key) => {
                let key = ServerPublicKey::from_pem(payload.get(1..).unwrap_or_default())?;
                self.send_encrypted(login, random, &key)
            }
            (Some(&AUTH_NEXT_FACTOR), _) => {
                Err(HandshakeError::PluginUnsupported(PluginName::new(b"(a second factor)")))
            }
            (Some(_) | None, _) => Err(Malformed.into()),
        }
    }

    /// An auth switch request: another plugin and a nonce of its own. One is honest (the account's
    /// plugin is not the server's default); a second one is a loop.
    fn on_switch(mut self, login: Login, random: SeedRandom, payload: &[u8]) -> Result<Step, HandshakeError> {
        if self.switched {
            return Err(HandshakeError::SwitchedTwice);
        }
        let mut r = Reader::new(payload);
        r.skip(1)?;
        if r.is_empty() {
            // The short form of before 5.5.7.
            return Err(HandshakeError::PluginUnsupported(PluginName::new(b"mysql_old_password")));
        }
        let name = r.nul_terminated()?;
        self.plugin =
            Plugin::by_name(name).ok_or_else(|| HandshakeError::PluginUnsupported(PluginName::new(name)))?;
        self.nonce = r.array()?;
        self.switched = true;
        match self.plugin {
            Plugin::Native => {
                let response = auth::native(&login.password, &self.nonce);
                Ok(self.send(login, random, response, Waiting::Verdict))
            }
            Plugin::CachingSha2 => {
                let response = auth::caching_sha2(&login.password, &self.nonce);
                Ok(self.send(login, random, response, Waiting::Answer))
            }
            Plugin::Sha256 => self.send_password(login, random),
        }
    }

    /// What `caching_sha2_password` says to a scramble: known (OK follows) or not in the cache.
    fn on_more_data(self, login: Login, random: SeedRandom, payload: &[u8]) -> Result<Step, HandshakeError> {
        match (self.plugin, payload.get(1..)) {
            (Plugin::CachingSha2, Some(&[FAST_AUTH_SUCCESS])) => {
                let auth = Self { waiting: Waiting::Verdict, ..self };
                Ok(Step::Wait(Handshake { login, random, state: State::Auth(auth) }))
            }
            (Plugin::CachingSha2, Some(&[PERFORM_FULL_AUTHENTICATION])) => self.send_password(login, random),
            (Plugin::CachingSha2 | Plugin::Native | Plugin::Sha256, _) => Err(Malformed.into()),
        }
    }

    /// The password itself: in the clear inside TLS, else encrypted by a key that is trusted.
    fn send_password(self, login: Login, random: SeedRandom) -> Result<Step, HandshakeError> {
        // An empty password is no secret, and both plugins take its NUL unencrypted.
        if self.session.encrypted || login.password.is_empty() {
            let clear = auth::clear(&login.password);
            return Ok(self.send(login, random, clear, Waiting::Verdict));
        }
        match login.key.clone() {
            KeyTrust::Refuse => Err(HandshakeError::KeyNotTrusted),
            KeyTrust::Pinned(key) => self.send_encrypted(login, random, &key),
            KeyTrust::Retrieve => {
                let request = alloc::vec![self.plugin.key_request()];
                Ok(self.send(login, random, request, Waiting::Key))
            }
        }
    }

    fn send_encrypted(
        self,
        login: Login,
        mut random: SeedRandom,
        key: &ServerPublicKey,
    ) -> Result<Step, HandshakeError> {
        let encrypted = key.encrypt(&login.password, &self.nonce, &mut random)?;
        Ok(self.send(login, random, encrypted, Waiting::Verdict))
    }

    fn send(self, login: Login, random: SeedRandom, payload: Vec<u8>, waiting: Waiting) -> Step {
        let state = State::Auth(Self { waiting, ..self });
        Step::Send(payload.into(), Handshake { login, random, state })
    }
}

const AUTH_MORE_DATA: u8 = 0x01;
const AUTH_NEXT_FACTOR: u8 = 0x02;
const FAST_AUTH_SUCCESS: u8 = 0x03;
const PERFORM_FULL_AUTHENTICATION: u8 = 0x04;

#[cfg(test)]
mod tests;
