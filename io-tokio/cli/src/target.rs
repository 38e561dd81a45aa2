//! Targets by their text.

use std::path::{Path, PathBuf};

use capstan::{Code, Detail, Halt, Position, checkpoint::FileCheckpoint, jsonl::JsonFile};

use crate::args::invalid;

/// Where changes go, or where a position is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `sqlite:PATH`, `sqlite:PATH?mode=mirror`
    Mirror(PathBuf),
    /// `sqlite:PATH?mode=ledger`
    Ledger(PathBuf),
    /// `jsonl:PATH`
    JsonLines(PathBuf),
    /// `checkpoint:PATH`: the file that `tail --checkpoint` keeps.
    Checkpoint(PathBuf),
}

impl Target {
    /// Reads a target.
    pub fn parse(text: &str) -> Result<Self, Halt> {
        let (scheme, rest) =
            text.split_once(':').ok_or_else(|| invalid("TARGET", "begins with sqlite: or jsonl:"))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        if path.is_empty() {
            return Err(invalid("TARGET", "names no path"));
        }
        let path = PathBuf::from(path);
        if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Err(invalid("TARGET", "is no regular file"));
        }
        // By its own name, so that a link to it does not make it two targets with two locks.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        match (scheme, query) {
            ("sqlite", "mode=ledger") => Ok(Self::Ledger(path)),
            ("sqlite", "" | "mode=mirror") => Ok(Self::Mirror(path)),
            ("jsonl", "") => Ok(Self::JsonLines(path)),
            ("checkpoint", "") => Ok(Self::Checkpoint(path)),
            ("sqlite" | "jsonl" | "checkpoint", _) => Err(Halt::new(Code::UnknownOption)
                .with(Detail::Setting(query.to_owned(), "is no key of a target"))),
            _ => Err(invalid(
                "TARGET",
                "is of no known kind: sqlite:PATH, sqlite:PATH?mode=ledger or jsonl:PATH",
            )),
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Mirror(path) | Self::Ledger(path) | Self::JsonLines(path) | Self::Checkpoint(path) => path,
        }
    }

    /// What is stored in it, at a glance: nothing is locked, made or changed.
    pub fn peek(&self) -> Result<Option<Position>, Halt> {
        match self {
            Self::Mirror(path) => capstan::sqlite::peek(path, "mirror"),
            Self::Ledger(path) => capstan::sqlite::peek(path, "ledger"),
            Self::JsonLines(path) => JsonFile::peek(path),
            Self::Checkpoint(path) => peek_checkpoint(path),
        }
    }

    /// The file in which its process says how it is.
    pub fn status_path(&self) -> PathBuf {
        let mut name = self.path().as_os_str().to_owned();
        name.push(".status.json");
        PathBuf::from(name)
    }

    /// What makes the replica UUID stable: the absolute path.
    pub fn identity(&self) -> Vec<u8> {
        let path = std::path::absolute(self.path()).unwrap_or_else(|_| self.path().to_owned());
        path.into_os_string().into_encoded_bytes()
    }
}

/// [`Target::peek`] of the file that `tail --checkpoint` keeps.
pub fn peek_checkpoint(path: &Path) -> Result<Option<Position>, Halt> {
    FileCheckpoint::peek(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_or_refused_by_name() {
        for (text, want) in [
            ("sqlite:a/b.db?mode=ledger", Ok(Target::Ledger("a/b.db".into()))),
            ("jsonl:/tmp/x.jsonl", Ok(Target::JsonLines("/tmp/x.jsonl".into()))),
            ("checkpoint:p", Ok(Target::Checkpoint("p".into()))),
            ("sqlite:a.db", Ok(Target::Mirror("a.db".into()))),
            ("sqlite:a.db?mode=mirror", Ok(Target::Mirror("a.db".into()))),
            ("sqlite:", Err(Code::ConfigInvalid)),
            ("sqlite:a.db?mode=ledgr", Err(Code::UnknownOption)),
            ("jsonl:", Err(Code::ConfigInvalid)),
            ("a.db", Err(Code::ConfigInvalid)),
            ("kafka:topic", Err(Code::ConfigInvalid)),
        ] {
            assert_eq!(Target::parse(text).map_err(|halt| halt.code), want, "{text}");
        }
    }
}
