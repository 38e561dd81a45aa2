//! The sink: where transactions go, and how its failures are told apart.

use alloc::boxed::Box;
use core::{error::Error, fmt, future::Future};

use super::{
    batch::{Ack, Batch, BlockingBatch, Incomplete},
    position::{Mismatch, Position, PositionError},
};
use crate::{
    halt::{Code, Halt, Place},
    value::ValueError,
};

/// Where transactions go. Implementers write plain `async fn`.
///
/// In *sink-owned* mode (no checkpoint store) the position lives in the sink, in the same atomic
/// write as the data: exactly once. In *library-owned* mode a store keeps it and
/// [`Sink::position`] is never asked: at least once.
pub trait Sink: Send {
    /// What is stored. `None`: nothing was ever stored.
    ///
    /// Asked before every dial and after every batch that did not return `Ok(Ack)`; never beside
    /// [`Sink::apply`].
    fn position(&mut self) -> impl Future<Output = Result<Option<Position>, SinkError>> + Send;

    /// One atomic write of the batch's data and `ack.position()`, on condition that what is stored
    /// still is `batch.expected()`. Otherwise nothing is written and the error is
    /// [`SinkError::fenced`] or [`SinkError::stale`] ([`super::Expected::check`] tells which), so a
    /// commit that lands late can never land twice.
    fn apply(&mut self, batch: Batch<'_>) -> impl Future<Output = Result<Ack, SinkError>> + Send;
}

/// [`Sink`] without `async`, for drivers whose transactions cannot live across an await. It runs on
/// a thread of its own.
pub trait BlockingSink: Send {
    /// As [`Sink::position`].
    fn position(&mut self) -> Result<Option<Position>, SinkError>;

    /// As [`Sink::apply`].
    fn apply(&mut self, batch: BlockingBatch<'_>) -> Result<Ack, SinkError>;
}

/// How a failure of the sink is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// Nothing was written, and it may work the next time.
    Transient,
    /// It may or may not have been written (a lost answer to COMMIT).
    Unknown,
    /// It will not work the next time either: halt.
    Permanent,
    /// Another owner's epoch is stored.
    Fenced,
    /// The stored position is not the one the batch goes on from.
    Stale,
    /// The transaction was aborted by its source. Never a failure.
    Aborted,
}

/// What the core is told of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkFailure {
    /// How it is to be taken.
    pub class: FailureClass,
    /// The code a permanent failure halts with.
    pub code: Code,
    /// Where in the data, if a value could not be taken.
    pub place: Option<Box<Place>>,
}

/// A failure of a sink or store, with the class it was given where it happened. There is no
/// conversion from other errors: an unclassified `?` does not compile.
///
/// `Debug` and `Display` show class and step only: database errors quote values (Rule 1). The
/// cause is there for the asking, by [`SinkError::into_inner`].
pub struct SinkError {
    class: FailureClass,
    step: &'static str,
    code: Code,
    place: Option<Box<Place>>,
    inner: Option<Box<dyn Error + Send + Sync>>,
}

impl SinkError {
    /// A failure of `class` at `step` with its cause.
    #[must_use]
    pub fn new(
        class: FailureClass,
        step: &'static str,
        inner: impl Into<Option<Box<dyn Error + Send + Sync>>>,
    ) -> Self {
        Self { class, step, code: Code::SinkFailed, place: None, inner: inner.into() }
    }

    /// Another owner's epoch is stored: nothing was written.
    #[must_use]
    pub fn fenced() -> Self {
        Self { code: Code::Fenced, ..Self::new(FailureClass::Fenced, "fence", None) }
    }

    /// The stored position is not the expected one: nothing was written.
    #[must_use]
    pub fn stale() -> Self {
        Self::new(FailureClass::Stale, "fence", None)
    }

    /// A permanent failure that halts with `code`.
    #[must_use]
    pub fn halt(code: Code, step: &'static str) -> Self {
        Self { code, ..Self::new(FailureClass::Permanent, step, None) }
    }

    /// With the cause.
    #[must_use]
    pub fn caused_by(mut self, inner: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.inner = Some(inner.into());
        self
    }

    /// With the code it halts with, where the place it happened at gave none of its own.
    #[must_use]
    pub fn or_code(mut self, code: Code) -> Self {
        if self.code == Code::SinkFailed {
            self.code = code;
        }
        self
    }

    /// With the table it concerns.
    #[must_use]
    pub fn of_table(mut self, schema: &str, table: &str) -> Self {
        let place = Place { table: Some((schema.into(), table.into())), ..Place::default() };
        self.place = Some(Box::new(place));
        self
    }

    /// Its class.
    #[must_use]
    pub const fn class(&self) -> FailureClass {
        self.class
    }

    /// The step it happened at.
    #[must_use]
    pub const fn step(&self) -> &'static str {
        self.step
    }

    /// The code it halts with, if it halts.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The cause. It may quote values: show it to nobody who may not see them.
    #[must_use]
    pub fn into_inner(self) -> Option<Box<dyn Error + Send + Sync>> {
        self.inner
    }

    /// What the core is told.
    #[must_use]
    pub fn failure(&self) -> SinkFailure {
        SinkFailure { class: self.class, code: self.code, place: self.place.clone() }
    }
}

impl fmt::Debug for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SinkError({self})")
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failure at {} ({:?})", self.code, self.step, self.class)
    }
}

impl Error for SinkError {}

impl From<Incomplete> for SinkError {
    fn from(why: Incomplete) -> Self {
        match why {
            Incomplete::Aborted { .. } => Self::new(FailureClass::Aborted, "read", None),
            Incomplete::Unread => Self::new(FailureClass::Permanent, "read", None),
        }
    }
}

impl From<ValueError> for SinkError {
    fn from(why: ValueError) -> Self {
        Self { code: Code::ValueMalformed, ..Self::new(FailureClass::Permanent, "value", None) }
            .caused_by(why)
    }
}

impl From<Mismatch> for SinkError {
    fn from(why: Mismatch) -> Self {
        match why {
            Mismatch::Fenced => Self::fenced(),
            Mismatch::Stale => Self::stale(),
        }
    }
}

impl From<PositionError> for SinkError {
    fn from(why: PositionError) -> Self {
        match why {
            PositionError::Newer { .. } => Self::halt(Code::PositionFormatNewer, "position"),
            PositionError::Malformed => Self::halt(Code::PositionReadFailed, "position"),
        }
    }
}

impl From<&SinkError> for Halt {
    fn from(error: &SinkError) -> Self {
        let halt = Self::new(error.code);
        match &error.place {
            Some(place) => halt.at((**place).clone()),
            None => halt,
        }
    }
}

/// Gives a class to an error where it happens.
pub trait SinkResultExt<T> {
    /// Nothing was written, and it may work the next time.
    fn transient(self, step: &'static str) -> Result<T, SinkError>;
    /// It may or may not have been written.
    fn unknown(self, step: &'static str) -> Result<T, SinkError>;
    /// It will not work the next time either.
    fn permanent(self, step: &'static str) -> Result<T, SinkError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> SinkResultExt<T> for Result<T, E> {
    fn transient(self, step: &'static str) -> Result<T, SinkError> {
        self.map_err(|e| SinkError::new(FailureClass::Transient, step, e.into()))
    }

    fn unknown(self, step: &'static str) -> Result<T, SinkError> {
        self.map_err(|e| SinkError::new(FailureClass::Unknown, step, e.into()))
    }

    fn permanent(self, step: &'static str) -> Result<T, SinkError> {
        self.map_err(|e| SinkError::new(FailureClass::Permanent, step, e.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn an_error_shows_class_and_step_and_never_its_cause() {
        let error: SinkError = Err::<(), _>("duplicate key 'SENTINEL'").permanent("insert").unwrap_err();
        let shown = format!("{error} {error:?} {}", Halt::from(&error));
        assert!(shown.contains("insert") && !shown.contains("SENTINEL"), "{shown}");
        assert!(format!("{}", error.into_inner().unwrap()).contains("SENTINEL"));
    }

    #[test]
    fn an_abort_is_no_failure_and_an_unread_rest_is_permanent() {
        assert_eq!(SinkError::from(Incomplete::Aborted { comes_again: true }).class(), FailureClass::Aborted);
        assert_eq!(SinkError::from(Incomplete::Unread).class(), FailureClass::Permanent);
    }
}
