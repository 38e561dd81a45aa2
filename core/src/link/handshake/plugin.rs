//! Authentication plugins by name.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

/// The plugins that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugin {
    Native,
    CachingSha2,
    Sha256,
}

impl Plugin {
    pub(super) fn by_name(name: &[u8]) -> Option<Self> {
        match name {
            b"mysql_native_password" => Some(Self::Native),
            b"caching_sha2_password" => Some(Self::CachingSha2),
            b"sha256_password" => Some(Self::Sha256),
            _ => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Sha256 => "sha256_password",
        }
    }

    /// The byte that asks for the server's public key.
    pub(super) const fn key_request(self) -> u8 {
        match self {
            Self::CachingSha2 => 2,
            Self::Native | Self::Sha256 => 1,
        }
    }
}

/// The name of a plugin as the server gave it, cut to 64 bytes and to the letters of such names.
#[derive(Clone, PartialEq, Eq)]
pub struct PluginName(Box<str>);

impl PluginName {
    pub(super) fn new(name: &[u8]) -> Self {
        let clean = |&byte: &u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'(' | b')' | b' ' => char::from(byte),
            _ => '?',
        };
        Self(name.iter().take(64).map(clean).collect::<String>().into())
    }

    /// The name.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PluginName({})", self.0)
    }
}
