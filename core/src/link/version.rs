//! Which server is at the other end, as far as its version text tells.

use core::fmt;

/// The oldest MySQL that is supported: 8.0.14, the first with `binlog_row_metadata` and every fixed
/// default that the gates rely on.
pub const OLDEST_SUPPORTED: (u16, u16, u16) = (8, 0, 14);

/// Whose server it is. The handshake's version text names it only for some; Percona Server says so
/// in `@@version_comment` alone, see [`ServerVersion::with_comment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Oracle's MySQL, or a fork that does not say otherwise.
    MySql,
    /// Percona Server or Percona XtraDB Cluster.
    Percona,
    /// Amazon Aurora MySQL.
    Aurora,
    /// MariaDB: another binlog and another GTID.
    MariaDb,
    /// A server that speaks the protocol and is known to be something else (TiDB, Vitess, a proxy …).
    Unknown,
}

/// Flavour and version numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ServerVersion {
    /// Whose server it is.
    pub flavour: Flavour,
    /// 8 of 8.0.36.
    pub major: u16,
    /// 0 of 8.0.36.
    pub minor: u16,
    /// 36 of 8.0.36; `None` where the text has none (Aurora's `8.0.mysql_aurora.3.04.0`).
    pub patch: Option<u16>,
}

/// The server is of another flavour or too old (`unsupported_server`). Nothing was sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} is not supported: MySQL 8.0.14 or later is needed")]
pub struct UnsupportedServer {
    /// What the server said it is.
    pub found: ServerVersion,
}

/// Words of version texts that belong to something else than MySQL. Lower case.
const FOREIGN: [&str; 12] = [
    "tidb",
    "vitess",
    "proxysql",
    "oceanbase",
    "singlestore",
    "memsql",
    "starrocks",
    "doris",
    "dolt",
    "clickhouse",
    "maxscale",
    "polardb-x",
];

impl ServerVersion {
    /// Reads the version text of a greeting. Never fails: what cannot be read is
    /// [`Flavour::Unknown`] with zeros.
    ///
    /// MariaDB 10 and 11.0 put `5.5.5-` in front, so that old replicas take them for a MySQL.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let has = |word: &str| text.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()));
        let mut numbers = text;
        let flavour = if has("mariadb") {
            numbers = text.strip_prefix(b"5.5.5-").unwrap_or(text);
            Flavour::MariaDb
        } else if FOREIGN.iter().any(|word| has(word)) {
            Flavour::Unknown
        } else if has("aurora") {
            Flavour::Aurora
        } else if has("percona") {
            Flavour::Percona
        } else {
            Flavour::MySql
        };
        let unreadable = Self { flavour: Flavour::Unknown, major: 0, minor: 0, patch: None };
        let Some((major, rest)) = number(numbers) else { return unreadable };
        let Some((minor, rest)) = dot_number(rest) else { return unreadable };
        Self { flavour, major, minor, patch: dot_number(rest).map(|(patch, _)| patch) }
    }

    /// Takes `@@version_comment` into account, which is where Percona and some managed services say
    /// who they are.
    #[must_use]
    pub fn with_comment(self, comment: &[u8]) -> Self {
        let has = |word: &str| comment.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()));
        let flavour = match self.flavour {
            Flavour::MySql if has("mariadb") => Flavour::MariaDb,
            Flavour::MySql if FOREIGN.iter().any(|word| has(word)) => Flavour::Unknown,
            Flavour::MySql if has("percona") => Flavour::Percona,
            Flavour::MySql if has("aurora") => Flavour::Aurora,
            Flavour::MySql | Flavour::Percona | Flavour::Aurora | Flavour::MariaDb | Flavour::Unknown => {
                self.flavour
            }
        };
        Self { flavour, ..self }
    }

    /// Major, minor, patch in the order they compare; a missing patch counts as the newest, since
    /// only Aurora leaves it out and its 3.x line starts at 8.0.23.
    #[must_use]
    pub fn numbers(self) -> (u16, u16, u16) {
        (self.major, self.minor, self.patch.unwrap_or(u16::MAX))
    }

    /// Whether it is at least this version.
    #[must_use]
    pub fn at_least(self, numbers: (u16, u16, u16)) -> bool {
        self.numbers() >= numbers
    }

    /// The gate: MySQL, Percona or Aurora from 8.0.14 on.
    pub fn supported(self) -> Result<Self, UnsupportedServer> {
        match self.flavour {
            Flavour::MySql | Flavour::Percona | Flavour::Aurora if self.at_least(OLDEST_SUPPORTED) => {
                Ok(self)
            }
            Flavour::MySql | Flavour::Percona | Flavour::Aurora | Flavour::MariaDb | Flavour::Unknown => {
                Err(UnsupportedServer { found: self })
            }
        }
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.flavour {
            Flavour::MySql => "MySQL",
            Flavour::Percona => "Percona Server",
            Flavour::Aurora => "Aurora MySQL",
            Flavour::MariaDb => "MariaDB",
            Flavour::Unknown => "a server of unknown kind",
        };
        if self.major == 0 {
            return f.write_str(name);
        }
        write!(f, "{name} {}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

impl fmt::Debug for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerVersion({self})")
    }
}

/// A run of digits and what follows it.
fn number(text: &[u8]) -> Option<(u16, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((core::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

fn dot_number(text: &[u8]) -> Option<(u16, &[u8])> {
    number(text.strip_prefix(b".")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn version_texts_of_the_field() {
        use Flavour::{Aurora, MariaDb, MySql, Percona, Unknown};
        for (text, flavour, numbers, supported) in [
            ("9.7.4", MySql, (9, 7, Some(4)), true),
            ("9.7.4-1", MySql, (9, 7, Some(4)), true),
            ("8.0.14", MySql, (8, 0, Some(14)), true),
            ("8.0.13", MySql, (8, 0, Some(13)), false),
            ("8.4.0-0ubuntu0.24.04.1", MySql, (8, 4, Some(0)), true),
            ("5.7.44-log", MySql, (5, 7, Some(44)), false),
            ("5.6.24", MySql, (5, 6, Some(24)), false),
            ("8.0.mysql_aurora.3.04.0", Aurora, (8, 0, None), true),
            ("5.7.mysql_aurora.2.11.2", Aurora, (5, 7, None), false),
            ("8.0.36-28-percona", Percona, (8, 0, Some(36)), true),
            ("5.5.5-10.11.6-MariaDB-0+deb12u1", MariaDb, (10, 11, Some(6)), false),
            ("11.8.3-MariaDB-0+deb13u1", MariaDb, (11, 8, Some(3)), false),
            ("8.0.11-TiDB-v7.5.0", Unknown, (8, 0, Some(11)), false),
            ("8.0.30-Vitess", Unknown, (8, 0, Some(30)), false),
            ("8.0.27 (ProxySQL)", Unknown, (8, 0, Some(27)), false),
            ("", Unknown, (0, 0, None), false),
            ("mysql", Unknown, (0, 0, None), false),
            ("8", Unknown, (0, 0, None), false),
            ("99999.1.1", Unknown, (0, 0, None), false),
        ] {
            let version = ServerVersion::parse(text.as_bytes());
            assert_eq!(version.flavour, flavour, "{text}");
            assert_eq!((version.major, version.minor, version.patch), numbers, "{text}");
            assert_eq!(version.supported().is_ok(), supported, "{text}");
        }
    }

    #[test]
    fn the_comment_names_who_the_version_does_not() {
        let plain = ServerVersion::parse(b"8.0.36-28");
        assert_eq!(plain.with_comment(b"Percona Server (GPL), Release 28").flavour, Flavour::Percona);
        assert_eq!(plain.with_comment(b"MySQL Community Server - GPL").flavour, Flavour::MySql);
        assert!(ServerVersion::parse(b"8.0.33").with_comment(b"Dolt").supported().is_err());
        // A comment never turns a foreign server into a supported one.
        assert_eq!(
            ServerVersion::parse(b"10.11.6-MariaDB").with_comment(b"Percona").flavour,
            Flavour::MariaDb
        );
    }

    #[test]
    fn the_refusal_names_what_was_found() {
        let refusal = ServerVersion::parse(b"5.5.5-10.11.6-MariaDB").supported().unwrap_err();
        assert_eq!(format!("{refusal}"), "MariaDB 10.11.6 is not supported: MySQL 8.0.14 or later is needed");
    }
}
