//! One owner per target.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use crate::{
    halt::{Code, Detail, Halt},
    source::invalid,
};

/// A held lock on `TARGET.lock`. It ends with the process, however that ends.
///
/// The file is never removed: between the removal and the next creation two processes could each hold a
/// lock on a file of that name. It is a file of its own because a target that is replaced by renaming
/// would take its lock away with it, and because SQLite's own locks are lost when any other descriptor of
/// the same file is closed.
///
/// A lock of this kind (`flock`) works within one machine. On a network file system it may not be seen by
/// others; there the owner's epoch in the position is what keeps two owners apart, by `fenced`.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `target`.
    ///
    /// # Errors
    /// `checkpoint_in_use` while another process holds it, `config_invalid` where no lock file can be made.
    pub fn take(target: &Path) -> Result<Self, Halt> {
        let path = lock_path(target);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| unusable(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                let name = target.display().to_string();
                Err(Halt::new(Code::CheckpointInUse)
                    .with(Detail::Setting(name, "is held by another process")))
            }
            Err(TryLockError::Error(_)) => {
                Err(invalid(&path.display().to_string(), "cannot be locked on this file system"))
            }
        }
    }
}

fn lock_path(target: &Path) -> PathBuf {
    beside(target, ".lock")
}

/// `PATH` with something appended to its last part.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// A file that cannot be opened, in words.
#[allow(clippy::wildcard_enum_match_arm, reason = "the system may report anything")]
pub(crate) fn unusable(path: &Path, error: &std::io::Error) -> Halt {
    use std::io::ErrorKind as Kind;
    let name = path.display().to_string();
    match error.kind() {
        Kind::PermissionDenied => invalid(&name, "may not be written by this user"),
        Kind::ReadOnlyFilesystem => invalid(&name, "is on a read-only file system"),
        Kind::NotFound => invalid(&name, "is in a folder that does not exist"),
        Kind::IsADirectory => invalid(&name, "is a folder"),
        Kind::NotADirectory => invalid(&name, "has a file where a folder should be"),
        Kind::StorageFull | Kind::QuotaExceeded => {
            Halt::new(Code::TargetFull).with(Detail::Setting(name, "is on a full file system"))
        }
        _ => invalid(&name, "cannot be opened for writing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_refused_and_the_lock_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let first = Lock::take(&target).unwrap();
        assert_eq!(Lock::take(&target).unwrap_err().code, Code::CheckpointInUse);
        drop(first);
        assert!(folder.path().join("out.jsonl.lock").exists());
        Lock::take(&target).unwrap();
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let text = Lock::take(&folder.path().join("no/such/target")).unwrap_err().to_string();
        assert!(text.contains("does not exist"), "{text}");
        std::fs::create_dir(folder.path().join("t.lock")).unwrap();
        let text = Lock::take(&folder.path().join("t")).unwrap_err().to_string();
        assert!(text.contains("is a folder"), "{text}");
    }
}
