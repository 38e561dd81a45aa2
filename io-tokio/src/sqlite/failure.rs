//! SQLite's failures in the classes of a sink.

use std::path::Path;

use capstan_core::{
    deliver::{FailureClass, SinkError},
    halt::{Code, Detail, Halt},
};
use rusqlite::{Error, ErrorCode};

use crate::source::invalid;

/// Where in a batch a statement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Begin,
    Read,
    Write,
    Commit,
}

impl Step {
    const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Read => "read",
            Self::Write => "write",
            Self::Commit => "commit",
        }
    }
}

/// A failure inside a transaction that will be rolled back.
#[allow(clippy::wildcard_enum_match_arm, reason = "what is not known is not tried again")]
pub(super) fn failed(step: Step, error: Error) -> SinkError {
    let class = |class| SinkError::new(class, step.name(), None);
    if let Some(code) = error.sqlite_error() {
        // Its number and SQLite's fixed words for it; the message beside it quotes values (Rule 1).
        tracing::warn!(step = step.name(), sqlite = %code, "SQLite refused");
    }
    match error.sqlite_error_code() {
        // Another program is reading or writing; COMMIT leaves the transaction open then.
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => class(FailureClass::Transient),
        Some(ErrorCode::DiskFull) => SinkError::halt(Code::TargetFull, step.name()),
        Some(ErrorCode::SystemIoFailure) if step == Step::Commit => class(FailureClass::Unknown),
        Some(ErrorCode::SystemIoFailure) => class(FailureClass::Transient),
        _ => class(FailureClass::Permanent),
    }
    .caused_by(error)
}

/// A failure to open `path` or to make its tables.
#[allow(clippy::wildcard_enum_match_arm, reason = "what is not known is told as it is")]
pub(super) fn opening(path: &Path, error: &Error) -> Halt {
    let name = path.display().to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => invalid(&name, "is not a SQLite database"),
        Some(ErrorCode::DatabaseCorrupt) => invalid(&name, "is damaged (PRAGMA integrity_check)"),
        Some(ErrorCode::CannotOpen) => invalid(&name, "cannot be opened"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => invalid(&name, "may not be written"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Halt::new(Code::CheckpointInUse).with(Detail::Setting(name, "is locked by another program"))
        }
        Some(ErrorCode::DiskFull) => {
            Halt::new(Code::TargetFull).with(Detail::Setting(name, "is on a full file system"))
        }
        _ => invalid(&name, "cannot be prepared"),
    }
}
