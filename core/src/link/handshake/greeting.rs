//! The server's first packet, `Protocol::HandshakeV10`.

use super::plugin::Plugin;
use super::{Capabilities, HandshakeError, Nonce};
use crate::link::version::ServerVersion;
use crate::wire::Reader;

/// What of a greeting matters.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) version: ServerVersion,
    pub(super) connection_id: u32,
    pub(super) capabilities: Capabilities,
    pub(super) nonce: Nonce,
    plugin: Option<Plugin>,
}

impl Greeting {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, HandshakeError> {
        let mut r = Reader::new(payload);
        if r.u8()? != 10 {
            return Err(HandshakeError::ProtocolUnsupported);
        }
        let version = ServerVersion::parse(r.nul_terminated()?);
        let connection_id = r.u32()?;
        let [a, b, c, d, e, f, g, h] = r.array()?;
        r.skip(1)?;
        let low = r.u16()?;
        if r.is_empty() {
            // The short form of a server before 4.1.
            return Err(HandshakeError::ProtocolUnsupported);
        }
        // The character set and the status flags.
        r.skip(3)?;
        let high = r.u16()?;
        let nonce_len = usize::from(r.u8()?);
        r.skip(10)?;
        // 13 bytes at least, of which the last is a NUL; whatever the length says, 12 are the nonce.
        let second_len = nonce_len.saturating_sub(8).max(13);
        let mut second = Reader::new(r.take(second_len)?);
        let [i, j, k, l, m, n, o, p, q, s, t, u] = second.array()?;
        // Some releases leave the NUL of the name out.
        let name = r.rest().split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(Self {
            version,
            connection_id,
            capabilities: Capabilities(u32::from(low) | u32::from(high) << 16),
            nonce: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, s, t, u],
            plugin: Plugin::by_name(name),
        })
    }

    /// What to try first. The server's default says nothing about the account, so a default that
    /// would cost an RSA exchange (`sha256_password`) or that is unknown is no reason to give up: the
    /// server asks for another plugin if the account needs one.
    pub(super) const fn opening_plugin(&self) -> Plugin {
        match self.plugin {
            Some(Plugin::Native) => Plugin::Native,
            Some(Plugin::CachingSha2 | Plugin::Sha256) | None => Plugin::CachingSha2,
        }
    }
}
