//! Capability flags and the OK and EOF packets that end most answers.

use crate::wire::{Reader, Short};

/// A packet whose fields do not fit its length or its place. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed packet from the server")]
pub struct Malformed;

impl From<Short> for Malformed {
    fn from(_: Short) -> Self {
        Self
    }
}

/// Capability flags (`page_protocol_basic_capabilities`), as the protocol numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// `CLIENT_LONG_PASSWORD`: always set, without meaning since 4.1.
    pub const LONG_PASSWORD: Self = Self(1);
    /// `CLIENT_PROTOCOL_41`.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// `CLIENT_SSL`.
    pub const SSL: Self = Self(1 << 11);
    /// `CLIENT_SECURE_CONNECTION`: 20 bytes of nonce (`CLIENT_RESERVED2` in newer headers).
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// `CLIENT_PLUGIN_AUTH`.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// `CLIENT_CONNECT_ATTRS`.
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// `CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA`.
    pub const PLUGIN_AUTH_LENENC_CLIENT_DATA: Self = Self(1 << 21);
    /// `CLIENT_DEPRECATE_EOF`: a result set ends in an OK packet with the header of an EOF packet.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);

    /// Whether all of `other` is in here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both have.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// `SERVER_MORE_RESULTS_EXISTS`: another result follows.
pub const STATUS_MORE_RESULTS: u16 = 0x0008;

/// An OK packet (`page_protocol_basic_ok_packet`), also in the form that ends a result set. The
/// human-readable info is left unread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkPacket {
    /// Rows changed.
    pub affected_rows: u64,
    /// The last value of an AUTO_INCREMENT column.
    pub last_insert_id: u64,
    /// `SERVER_STATUS_…` flags.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
}

impl OkPacket {
    /// Reads an OK packet whose header byte (0x00, or 0xfe at the end of a result set) the caller
    /// has looked at.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        r.skip(1)?;
        Ok(Self {
            affected_rows: r.lenenc()?,
            last_insert_id: r.lenenc()?,
            status: r.u16()?,
            warnings: r.u16()?,
        })
    }

    /// Whether another result follows.
    #[must_use]
    pub const fn more_results(&self) -> bool {
        self.status & STATUS_MORE_RESULTS != 0
    }
}

/// An EOF packet (`page_protocol_basic_eof_packet`): warnings and status, in this order.
///
/// The dump's own EOF may be as short as its header, so both fields are optional there.
pub(crate) fn parse_eof(payload: &[u8]) -> Result<OkPacket, Malformed> {
    let mut r = Reader::new(payload);
    r.skip(1)?;
    if r.is_empty() {
        return Ok(OkPacket::default());
    }
    let warnings = r.u16()?;
    Ok(OkPacket { warnings, status: r.u16()?, ..OkPacket::default() })
}

/// The header that marks an EOF packet, and (with more bytes behind it) an auth switch.
pub(crate) const EOF_HEADER: u8 = 0xfe;
/// The header of an OK packet.
pub(crate) const OK_HEADER: u8 = 0x00;
/// The header of an error packet.
pub(crate) const ERR_HEADER: u8 = 0xff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_packets() {
        let ok = |affected_rows, last_insert_id, status, warnings| OkPacket {
            affected_rows,
            last_insert_id,
            status,
            warnings,
        };
        for (bytes, want) in [
            // The example of the protocol manual.
            (&[0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00][..], Ok(ok(0, 0, 2, 0))),
            (&[0x00, 0xfc, 0x00, 0x01, 0x05, 0x0a, 0x00, 0x01, 0x00, b'i'], Ok(ok(256, 5, 0x0a, 1))),
            (&[0xfe, 0x00, 0x00, 0x22, 0x00, 0x00, 0x00], Ok(ok(0, 0, 0x22, 0))),
            (&[0x00, 0x00, 0x00, 0x02, 0x00, 0x00], Err(Malformed)),
            (&[0x00, 0xff, 0x00, 0x02, 0x00, 0x00, 0x00], Err(Malformed)),
            (&[], Err(Malformed)),
        ] {
            assert_eq!(OkPacket::parse(bytes), want, "{bytes:02x?}");
        }
    }

    #[test]
    fn eof_packets() {
        assert_eq!(parse_eof(&[0xfe, 0x03, 0x00, 0x22, 0x00]).map(|e| (e.warnings, e.status)), Ok((3, 0x22)));
        assert_eq!(parse_eof(&[0xfe]), Ok(OkPacket::default()));
        assert_eq!(parse_eof(&[0xfe, 0x00]), Err(Malformed));
    }
}
