//! Where to read from: host, account, encryption and whom to trust.

mod url;

use std::{fmt, path::PathBuf, str::FromStr};

use capstan_core::{
    halt::{Code, Detail, Halt},
    link::{KeyTrust, Login, LoginError, Secret, ServerPublicKey, TlsMode},
};

/// MySQL's registered port.
pub const DEFAULT_PORT: u16 = 3306;

/// How far the connection is encrypted and checked (`ssl-mode`).
///
/// MySQL's own clients also know `PREFERRED`, which an attacker turns off; it does not exist here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SslMode {
    /// Plain TCP.
    Disabled,
    /// Encrypted, but the certificate is not checked: safe against those who only listen.
    Required,
    /// Encrypted, and the certificate is signed by somebody we trust.
    VerifyCa,
    /// As [`SslMode::VerifyCa`], and the certificate names the host.
    #[default]
    VerifyIdentity,
}

impl SslMode {
    /// The word in a URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Required => "required",
            Self::VerifyCa => "verify-ca",
            Self::VerifyIdentity => "verify-identity",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Disabled, Self::Required, Self::VerifyCa, Self::VerifyIdentity]
            .into_iter()
            .find(|mode| mode.as_str() == word)
    }
}

/// What TLS needs to know. Files are read before anything is dialled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SslSettings {
    /// How far it is encrypted and checked.
    pub mode: SslMode,
    /// PEM file of the authorities to trust instead of the system's (`ssl-ca`).
    pub ca: Option<PathBuf>,
    /// PEM file of our own certificate chain (`ssl-cert`).
    pub cert: Option<PathBuf>,
    /// PEM file of its private key (`ssl-key`).
    pub key: Option<PathBuf>,
}

/// Whose RSA key may encrypt the password over a connection that is not encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySetting {
    /// Nobody's.
    #[default]
    Refuse,
    /// The server's, read from a PEM file beforehand (`server-public-key`).
    Pinned(PathBuf),
    /// Whatever key the server sends (`allow-public-key-retrieval=true`).
    Retrieve,
}

/// A MySQL server to read from.
///
/// ```
/// let source: capstan::Source = "mysql://repl:p%40ss@db.example.org/?ssl-mode=verify-ca".parse()?;
/// assert_eq!((source.host(), source.port(), source.user()), ("db.example.org", 3306, "repl"));
/// # Ok::<(), capstan::Halt>(())
/// ```
#[derive(Clone)]
pub struct Source {
    host: String,
    port: u16,
    user: String,
    password: Option<Secret>,
    ssl: SslSettings,
    key: KeySetting,
}

impl fmt::Debug for Source {
    // Rule 1: the password is nobody's business; that there is one may be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("password", &self.password.is_some())
            .field("ssl", &self.ssl)
            .field("key", &self.key)
            .finish()
    }
}

impl fmt::Display for Source {
    /// The URL without password and settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v6 = self.host.contains(':');
        let (open, close) = if v6 { ("[", "]") } else { ("", "") };
        write!(f, "mysql://{}@{open}{}{close}:{}/", self.user, self.host, self.port)
    }
}

impl FromStr for Source {
    type Err = Halt;

    fn from_str(text: &str) -> Result<Self, Halt> {
        url::parse(text)
    }
}

impl Source {
    /// A source with the defaults: port 3306, no password, `verify-identity`.
    pub fn new(host: impl Into<String>, user: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: DEFAULT_PORT,
            user: user.into(),
            password: None,
            ssl: SslSettings::default(),
            key: KeySetting::default(),
        }
    }

    /// Reads `mysql://user:password@host:3306/?key=value&…`, percent-encoded as in RFC 3986. Keys:
    /// `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key`, `server-public-key`, `allow-public-key-retrieval`.
    ///
    /// # Errors
    /// `config_invalid`; `unknown_option` for a key that is not among these.
    pub fn parse(text: &str) -> Result<Self, Halt> {
        url::parse(text)
    }

    /// With another port.
    #[must_use]
    pub const fn with_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// With a password.
    #[must_use]
    pub fn with_password(mut self, password: Secret) -> Self {
        self.password = Some(password);
        self
    }

    /// With other TLS settings.
    #[must_use]
    pub fn with_ssl(mut self, ssl: SslSettings) -> Self {
        self.ssl = ssl;
        self
    }

    /// With another trust in server keys.
    #[must_use]
    pub fn with_key(mut self, key: KeySetting) -> Self {
        self.key = key;
        self
    }

    /// Host name or address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Account name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Whether a password was given; an empty one counts.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// TLS settings.
    #[must_use]
    pub const fn ssl(&self) -> &SslSettings {
        &self.ssl
    }

    /// Trust in server keys.
    #[must_use]
    pub const fn key(&self) -> &KeySetting {
        &self.key
    }

    /// The core's terms. Reads the pinned key.
    ///
    /// # Errors
    /// `config_invalid`, with the setting's name.
    pub fn login(&self) -> Result<Login, Halt> {
        let password = self.password.clone().unwrap_or_default();
        let login = Login::new(self.user.clone(), password).map_err(|why| match why {
            LoginError::UserHasNul => invalid("user", "holds a NUL byte"),
            LoginError::UserTooLong => invalid("user", "is too long"),
            LoginError::PasswordHasNul => invalid("password", "holds a NUL byte"),
        })?;
        let key = match &self.key {
            KeySetting::Refuse => KeyTrust::Refuse,
            KeySetting::Retrieve => KeyTrust::Retrieve,
            KeySetting::Pinned(path) => {
                let pem = std::fs::read(path)
                    .map_err(|_| invalid("server-public-key", "names a file that cannot be read"))?;
                let key = ServerPublicKey::from_pem(&pem)
                    .map_err(|_| invalid("server-public-key", "names a file that holds no RSA public key"))?;
                KeyTrust::Pinned(Box::new(key))
            }
        };
        let tls = match self.ssl.mode {
            SslMode::Disabled => TlsMode::Disabled,
            SslMode::Required | SslMode::VerifyCa | SslMode::VerifyIdentity => TlsMode::Required,
        };
        Ok(login.tls(tls).key(key))
    }
}

/// `config_invalid` for a named setting.
pub(crate) fn invalid(name: &str, wrong: &'static str) -> Halt {
    Halt::new(Code::ConfigInvalid).with(Detail::Setting(name.to_owned(), wrong))
}
