//! The seam: everything the world may say, and everything the core wants.

use alloc::boxed::Box;
use core::fmt;

use bytes::Bytes;

use crate::{
    deliver::{Event, Holds, Position, Seq, SinkFailure},
    halt::Halt,
    time::Now,
};

/// Which connection. Only the initial copy has others than the stream. All of them go to the same
/// address, under the same policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// The replication stream.
    Stream,
    /// One of the initial copy.
    Copy(CopyLink),
}

/// A connection of the initial copy. Each has dials and epochs of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyLink {
    /// Holds the short table lock of a cut, reads what the cut is exact for, and then watches the view.
    Lock,
    /// Holds a consistent view and reads chunks from it; before that it watches the lock.
    View(u8),
    /// Compares texts, as the server alone can; only while a table is copied along a key of text.
    Compare,
}

/// Names one dial of a link. A late answer to an older dial is recognised by it and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DialEpoch(pub u32);

/// Why a link is gone or never came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostReason {
    /// The host's name could not be resolved.
    Unresolved,
    /// The dial was refused.
    Refused,
    /// The dial took too long.
    DialTimeout,
    /// The peer closed the link.
    Eof,
    /// The link was reset, or reading or writing failed.
    Reset,
    /// The certificate is signed by nobody we trust.
    CertificateUntrusted,
    /// The certificate does not name the host.
    CertificateNameMismatch,
    /// TLS failed otherwise.
    TlsFailed,
}

/// What the position authority answered.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// What is stored, and what [`crate::deliver::Delivery`] makes of it.
    Position {
        /// `None`: nothing was ever stored.
        stored: Option<Box<Position>>,
        /// The verdict.
        holds: Holds,
    },
    /// It could not be read.
    Failed(SinkFailure),
}

/// Everything the world may tell the core. A trace is a `Vec<(Now, Input)>`.
///
/// `Debug` shows how many bytes were read and none of them: they hold rows.
#[derive(Clone)]
pub enum Input {
    /// A moment passed: the deadline, or any other. Early and spurious ticks are harmless.
    Tick,
    /// The answer to [`Output::LoadCheckpoint`].
    CheckpointLoaded(Loaded),
    /// The dial succeeded.
    Connected(Link, DialEpoch),
    /// The link is encrypted now, and its certificate was checked.
    Secured(Link, DialEpoch),
    /// Bytes were read; any cut is as good as any other.
    Bytes(Link, DialEpoch, Bytes),
    /// The link is gone, or the dial failed.
    Lost(Link, DialEpoch, LostReason),
    /// Every unit up to this one is durable together with its position.
    Durable {
        /// The last of them.
        upto: Seq,
    },
    /// The sink has moved past rows of the transaction that is handed over while it is read.
    Released {
        /// Their retained bytes.
        bytes: usize,
    },
    /// A batch did not return `Ok(Ack)`.
    SinkFailed(SinkFailure),
    /// Read no further for now.
    Pause,
    /// Go on.
    Resume,
    /// Begin no further chunk of the initial copy for now; the stream goes on.
    PauseCopy,
    /// Go on with it.
    ResumeCopy,
    /// Finish what is complete, then stop.
    Drain,
}

/// When the position is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadReason {
    /// A dial follows. A batch that is being applied is let finish first; then everything not
    /// durable is forgotten ([`crate::deliver::Delivery::restart`]).
    BeforeDial,
    /// A batch failed; it is kept ([`crate::deliver::Delivery::read_back`]).
    AfterFailure,
    /// The sink has not moved for too long: its batch is dropped first, with unknown outcome; then
    /// as before a dial.
    Overdue,
}

/// How many bytes may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// At most so many before the core is asked again.
    UpTo(usize),
    /// None: the sink has enough.
    Paused,
}

/// Why the core wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeReason {
    /// Try again after trouble.
    Backoff,
    /// The dial, handshake or a gate takes too long.
    Dial,
    /// The link has been silent for too long.
    Silence,
    /// The sink has not moved for too long.
    Acknowledgement,
    /// Passed transactions are to be told.
    Progress,
    /// The batch goes to the sink again.
    Reapply,
    /// Something of the initial copy is due.
    Copy,
}

/// What may be read of the views of an initial copy, of each by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRead {
    read: Read,
    /// A bit for each view that is not read now.
    held: u16,
}

impl CopyRead {
    /// The same of all of them.
    #[must_use]
    pub const fn all(read: Read) -> Self {
        Self { read, held: 0 }
    }

    /// Of one nothing.
    #[must_use]
    pub(crate) const fn but(self, view: u8) -> Self {
        Self { held: self.held | (1_u16.rotate_left(view as u32)), ..self }
    }

    /// What may be read of the views that are read at all.
    #[must_use]
    pub const fn most(self) -> Read {
        self.read
    }

    /// The same views, read so far.
    #[must_use]
    pub const fn up_to(self, read: Read) -> Self {
        Self { read, ..self }
    }

    /// What may be read of this view.
    #[must_use]
    pub const fn of(self, view: u8) -> Read {
        if self.held & 1_u16.rotate_left(view as u32) == 0 { self.read } else { Read::Paused }
    }
}

/// Everything the core wants. Exhaustive on purpose: a new output breaks every driver at compile time.
///
/// `Debug` shows how many bytes are sent and none of them: they may hold the password.
#[must_use = "an output that is not carried out is a lost byte, row or halt"]
pub enum Output {
    /// Ask the position authority and answer with [`Input::CheckpointLoaded`].
    LoadCheckpoint(LoadReason),
    /// Hand the batch that failed to the sink once more.
    Reapply {
        /// Its last unit.
        upto: Seq,
    },
    /// Dial; answer with [`Input::Connected`] or [`Input::Lost`].
    Connect(Link, DialEpoch),
    /// Start TLS on the link as it is; answer with [`Input::Secured`] or [`Input::Lost`].
    Secure(Link, DialEpoch),
    /// Send bytes, in order. A failure is [`Input::Lost`].
    Transmit(Link, DialEpoch, Bytes),
    /// Close the link. Nothing of it is heard afterwards.
    Close(Link, DialEpoch),
    /// Give to [`crate::deliver::Delivery`].
    Event(Event),
    /// The end, for a reason. Sticky.
    Halt(Halt),
    /// The end, as asked. Sticky.
    Stopped,
    /// Nothing more to do now. Always last.
    Idle {
        /// When to tick, and why.
        wake: Option<(Now, WakeReason)>,
        /// What may be read of the stream.
        read: Read,
        /// What may be read of each view of the initial copy ([`CopyLink::View`]). Its other links carry nothing but
        /// short answers and are read at all times.
        copy: CopyRead,
    },
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => f.write_str("Tick"),
            Self::CheckpointLoaded(loaded) => write!(f, "CheckpointLoaded({loaded:?})"),
            Self::Connected(link, epoch) => write!(f, "Connected({link:?}, {epoch:?})"),
            Self::Secured(link, epoch) => write!(f, "Secured({link:?}, {epoch:?})"),
            Self::Bytes(link, epoch, bytes) => write!(f, "Bytes({link:?}, {epoch:?}, {} bytes)", bytes.len()),
            Self::Lost(link, epoch, reason) => write!(f, "Lost({link:?}, {epoch:?}, {reason:?})"),
            Self::Durable { upto } => write!(f, "Durable({upto:?})"),
            Self::Released { bytes } => write!(f, "Released({bytes} bytes)"),
            Self::SinkFailed(failure) => write!(f, "SinkFailed({:?})", failure.class),
            Self::Pause => f.write_str("Pause"),
            Self::Resume => f.write_str("Resume"),
            Self::PauseCopy => f.write_str("PauseCopy"),
            Self::ResumeCopy => f.write_str("ResumeCopy"),
            Self::Drain => f.write_str("Drain"),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoadCheckpoint(reason) => write!(f, "LoadCheckpoint({reason:?})"),
            Self::Reapply { upto } => write!(f, "Reapply({upto:?})"),
            Self::Connect(link, epoch) => write!(f, "Connect({link:?}, {epoch:?})"),
            Self::Secure(link, epoch) => write!(f, "Secure({link:?}, {epoch:?})"),
            Self::Transmit(link, epoch, bytes) => {
                write!(f, "Transmit({link:?}, {epoch:?}, {} bytes)", bytes.len())
            }
            Self::Close(link, epoch) => write!(f, "Close({link:?}, {epoch:?})"),
            Self::Event(event) => write!(f, "Event({event:?})"),
            Self::Halt(halt) => write!(f, "{halt:?}"),
            Self::Stopped => f.write_str("Stopped"),
            Self::Idle { wake, read, copy: _ } => write!(f, "Idle({wake:?}, {read:?})"),
        }
    }
}

/// A bug of the driver. Received bytes never cause it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiMisuse {
    /// Time went backwards.
    #[error("the clock went back")]
    ClockWentBack,
    /// An input was given before the outputs were pulled to their end.
    #[error("outputs were not pulled to their end")]
    OutputNotDrained,
    /// An input was given after the end.
    #[error("an input was given after the end")]
    AfterTerminal,
    /// An answer came that nobody asked for.
    #[error("an answer came that nobody asked for")]
    UnaskedAnswer,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn bytes_of_the_link_are_counted_and_not_shown() {
        let bytes = Bytes::from_static(b"sentinel");
        let input = Input::Bytes(Link::Stream, DialEpoch(1), bytes.clone());
        let output = Output::Transmit(Link::Stream, DialEpoch(1), bytes);
        let shown = format!("{input:?} {input:#?} {output:?} {output:#?}");
        assert!(shown.contains("8 bytes") && !shown.contains("sentinel"), "{shown}");
    }
}
