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
/// A lock of this kind (`flock`) works within one machine. On a network file system others may not see it,
/// and a rename or a sync may not mean what it means on a disk, so known ones are refused (on Linux; where
/// the system does not tell, it is for the operator to know). Between two owners that do not see each
/// other's lock stands the owner's epoch in the position: `fenced`.
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
        let path = beside(target, ".lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| unusable(&path, &error))?;
        #[cfg(target_os = "linux")]
        if let Some(why) = network(&file) {
            return Err(invalid(&target.display().to_string(), why));
        }
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

/// Whether a file lies on a network file system (`statfs(2)`).
#[cfg(target_os = "linux")]
fn network(file: &File) -> Option<&'static str> {
    let kind = rustix::fs::fstatfs(file).ok()?.f_type;
    network_of(kind as u32)
}

/// By the magic numbers of `linux/magic.h` and the file systems' own sources. They have 32 bits.
#[cfg(target_os = "linux")]
const fn network_of(kind: u32) -> Option<&'static str> {
    match kind {
        0x6969 => Some("is on NFS: use a local disk"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("is on SMB: use a local disk"),
        0x5346_414f => Some("is on AFS: use a local disk"),
        0x00c3_6400 => Some("is on Ceph: use a local disk"),
        0x0bd0_0bd0 => Some("is on Lustre: use a local disk"),
        _ => None,
    }
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

    #[cfg(target_os = "linux")]
    #[test]
    fn known_network_file_systems_are_refused_and_disks_are_not() {
        // ext4, btrfs, xfs, tmpfs, overlayfs.
        for disk in [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630] {
            assert_eq!(network_of(disk), None);
        }
        assert!(network_of(0x6969).unwrap().contains("NFS"));
        assert!(network_of(0xff53_4d42).unwrap().contains("SMB"));
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
