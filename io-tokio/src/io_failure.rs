//! Failed reads and writes of files, in the classes of a sink.

use std::io::{Error, ErrorKind as Kind};

use capstan_core::{
    deliver::{FailureClass, SinkError},
    halt::Code,
};

/// A failure to write: what will not pass by itself is permanent, a full disk has its own code, and for
/// the rest the outcome is not known, so it is read back.
#[allow(clippy::wildcard_enum_match_arm, reason = "the system may report anything")]
pub(crate) fn writing(step: &'static str, error: Error) -> SinkError {
    match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            SinkError::halt(Code::TargetFull, step)
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem | Kind::NotFound | Kind::BrokenPipe => {
            SinkError::new(FailureClass::Permanent, step, None)
        }
        _ => SinkError::new(FailureClass::Unknown, step, None),
    }
    .caused_by(error)
}

/// A failure to read: nothing was changed, so it may be tried again.
#[allow(clippy::wildcard_enum_match_arm, reason = "the system may report anything")]
pub(crate) fn reading(step: &'static str, error: Error) -> SinkError {
    match error.kind() {
        // Not UTF-8, so nothing we wrote.
        Kind::InvalidData | Kind::PermissionDenied | Kind::IsADirectory => {
            SinkError::halt(Code::PositionReadFailed, step)
        }
        _ => SinkError::new(FailureClass::Transient, step, None),
    }
    .caused_by(error)
}
