//! What a connection is told before it is made: who logs in, how much the transport is trusted.

use super::auth::ServerPublicKey;
use super::secret::Secret;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

/// Whether the connection is encrypted. The checks of certificates (`verify-ca`, `verify-identity`)
/// are the adapter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// TLS before anything that identifies us is sent; a server without it is refused
    /// (`tls_not_offered`). Never falls back.
    Required,
    /// Plain TCP, whatever the server offers.
    Disabled,
}

/// Whose RSA key may encrypt the password when the connection is not TLS.
///
/// A key that the server sends in the clear may be an attacker's, who then reads the password. So it is
/// only used when that was allowed by name. Loopback and Unix sockets are no exception.
#[derive(Clone, Debug)]
pub enum KeyTrust {
    /// No key: an exchange that needs one ends in `server_key_not_trusted`.
    Refuse,
    /// The server's own key, known beforehand (`server-public-key`).
    Pinned(Box<ServerPublicKey>),
    /// Whatever key the server sends (`allow-public-key-retrieval`).
    Retrieve,
}

/// Whether servers are refused by flavour and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionGate {
    /// As the product does: MySQL 8.0.14 or later, decided before authentication.
    Supported,
    /// Any server that speaks the protocol. For proofs against old servers.
    Any,
}

/// Why login settings cannot be used. The caller's configuration is at fault (`config_invalid`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The user name holds a NUL byte, which ends it on the wire.
    #[error("the user name holds a NUL byte")]
    UserHasNul,
    /// The password holds a NUL byte, which ends it on the wire.
    #[error("the password holds a NUL byte")]
    PasswordHasNul,
    /// The user name is longer than 255 bytes (the server's own limit is 32 characters).
    #[error("the user name is too long")]
    UserTooLong,
}

/// Who logs in and on what terms.
#[derive(Clone)]
pub struct Login {
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) tls: TlsMode,
    pub(crate) key: KeyTrust,
    pub(crate) gate: VersionGate,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("tls", &self.tls).field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl Login {
    /// A login with TLS required, no server key trusted and unsupported servers refused.
    pub fn new(user: impl Into<String>, password: Secret) -> Result<Self, LoginError> {
        let user = user.into();
        if user.contains('\0') {
            return Err(LoginError::UserHasNul);
        }
        if user.len() > 255 {
            return Err(LoginError::UserTooLong);
        }
        if password.expose().contains(&0) {
            return Err(LoginError::PasswordHasNul);
        }
        Ok(Self {
            user,
            password,
            tls: TlsMode::Required,
            key: KeyTrust::Refuse,
            gate: VersionGate::Supported,
        })
    }

    /// With another TLS mode.
    #[must_use]
    pub const fn tls(mut self, tls: TlsMode) -> Self {
        self.tls = tls;
        self
    }

    /// With another trust in RSA keys.
    #[must_use]
    pub fn key(mut self, key: KeyTrust) -> Self {
        self.key = key;
        self
    }

    /// With another version gate.
    #[must_use]
    pub const fn gate(mut self, gate: VersionGate) -> Self {
        self.gate = gate;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn what_cannot_be_sent_is_refused_at_once() {
        for (user, password, want) in [
            ("a\0b", "", LoginError::UserHasNul),
            ("a", "b\0", LoginError::PasswordHasNul),
            (&*"u".repeat(256), "", LoginError::UserTooLong),
        ] {
            assert_eq!(Login::new(user, Secret::new(password)).unwrap_err(), want);
        }
    }

    #[test]
    fn the_strict_terms_are_the_default() {
        let login = Login::new("repl", Secret::new("sentinel")).unwrap();
        assert_eq!((login.tls, login.gate), (TlsMode::Required, VersionGate::Supported));
        assert!(matches!(login.key, KeyTrust::Refuse));
        assert!(!format!("{login:?}").contains("sentinel"));
    }
}
