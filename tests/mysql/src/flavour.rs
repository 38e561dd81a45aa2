//! The kinds of server that can be had.

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Flavour {
    /// The MySQL that Capstan supports: 9.7 where it is fetched, else what the machine has (8.0.14 or later).
    #[default]
    Mysql97,
    /// MySQL 5.6.24: refused as a source, and the writer of old binlog files. `x86_64` only.
    Mysql56,
    /// MariaDB as the machine's own Debian suite has it: refused as a source.
    MariaDb,
}

impl Flavour {
    /// Every flavour.
    pub const ALL: [Flavour; 3] = [Flavour::Mysql97, Flavour::Mysql56, Flavour::MariaDb];

    /// The name on the command line and of the folder in the cache.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Mysql97 => "mysql",
            Flavour::Mysql56 => "mysql56",
            Flavour::MariaDb => "mariadb",
        }
    }

    /// The flavour of that [name](Flavour::name).
    pub fn from_name(name: &str) -> Option<Flavour> {
        Flavour::ALL.into_iter().find(|flavour| flavour.name() == name)
    }

    /// The name of the server program.
    pub(crate) fn daemon(self) -> &'static str {
        match self {
            Flavour::Mysql97 | Flavour::Mysql56 => "mysqld",
            Flavour::MariaDb => "mariadbd",
        }
    }
}
