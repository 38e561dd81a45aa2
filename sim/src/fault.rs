//! Everything that can go wrong, by name.

use crate::truth::Poison;

/// A class of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Reads give odd pieces for a while.
    TornReads,
    /// A few bytes arrive every ten seconds, for a while.
    Trickle,
    /// Nothing arrives for a while.
    Stall,
    /// The peer closes.
    Eof,
    /// The link is reset; what was on the way is gone.
    Reset,
    /// The peer is gone and nothing says so.
    HalfOpen,
    /// Dials fail for a while.
    DialFails,
    /// Dials take longer than anyone waits; the answer comes late.
    SlowDial,
    /// The server ends the session with an error that passes.
    ServerError,
    /// The server has too many connections for a while.
    TooManyConnections,
    /// An artificial ROTATE in the middle of the stream.
    FakeRotate,
    /// A heartbeat where none is due.
    OddHeartbeat,
    /// An unknown event that may be ignored.
    UnknownIgnorable,
    /// The stream ends inside an event.
    CutEvent,
    /// `log_bin` reads OFF for a minute.
    LogBinOff,
    /// The server is shut down and started again.
    Restart,
    /// The server is killed and started again.
    ServerCrash,
    /// A replica that has everything takes over.
    Failover,
    /// A replica takes over that still applies what it received.
    FailoverApplying,
    /// A replica takes over that has a transaction of its own, from before the newest of the others.
    FailoverErrant,
    /// The next file.
    Rotate,
    /// What was processed is purged.
    Purge,
    /// What was processed is purged between the questions and the dump.
    PurgeRace,
    /// The process is killed.
    Crash,
    /// The process is killed between the sink's commit and its answer.
    CrashAtCommit,
    /// The target is restored from an older copy.
    OldBackup,
    /// A second process takes the target over while the first lives.
    Zombie,
    /// The sink takes its time.
    SlowSink,
    /// The sink fails and nothing is written.
    SinkTransient,
    /// The sink writes and its answer is lost.
    AnswerLost,
    /// The sink's answer is lost and nothing is written.
    NothingAndLost,
    /// The sink's answer is lost and the write lands later.
    LateCommit,
    /// The sink does not answer.
    SinkHangs,
    /// The sink does not answer and the write lands later.
    HangsAndLands,
    /// The position cannot be read for a while.
    PositionUnreadable,
    /// The position is not answered once.
    PositionHangs,
    /// A connection of an initial copy is lost.
    CopyLinkLost,
    /// A prepared XA transaction has the lock of a table that is copied, for a while.
    PreparedXa,
    /// A table that is copied is altered.
    AlterCopied,
    /// The machine sleeps.
    TimeJump,
    /// Ticks when none is due.
    OddTicks,
    /// A person pauses and resumes.
    Pause,
    /// A person drains, and starts again.
    Drain,
    /// A bit turns over on the way.
    Corrupt,
    /// A bit turns over inside a large payload, which is inflated while it is read.
    CorruptPayload,
    /// An unknown event that must not be ignored.
    UnknownFatal,
    /// What was not processed is purged.
    PurgeGap,
    /// The source's history is reset, and grows again.
    ResetHistory,
    /// A replica takes over that never got the newest transactions.
    FailoverLost,
    /// The sink fails for good.
    SinkPermanent,
    /// A transaction that cannot be delivered.
    Poison(Poison),
}

/// Every class. Those from [`FATAL`] on end a pipeline by design.
pub const ALL: &[Fault] = &[
    Fault::TornReads,
    Fault::Trickle,
    Fault::Stall,
    Fault::Eof,
    Fault::Reset,
    Fault::HalfOpen,
    Fault::DialFails,
    Fault::SlowDial,
    Fault::ServerError,
    Fault::TooManyConnections,
    Fault::FakeRotate,
    Fault::OddHeartbeat,
    Fault::UnknownIgnorable,
    Fault::CutEvent,
    Fault::LogBinOff,
    Fault::Restart,
    Fault::ServerCrash,
    Fault::Failover,
    Fault::FailoverApplying,
    Fault::FailoverErrant,
    Fault::Rotate,
    Fault::Purge,
    Fault::PurgeRace,
    Fault::Crash,
    Fault::CrashAtCommit,
    Fault::OldBackup,
    Fault::Zombie,
    Fault::SlowSink,
    Fault::SinkTransient,
    Fault::AnswerLost,
    Fault::NothingAndLost,
    Fault::LateCommit,
    Fault::SinkHangs,
    Fault::HangsAndLands,
    Fault::PositionUnreadable,
    Fault::PositionHangs,
    Fault::CopyLinkLost,
    Fault::PreparedXa,
    Fault::AlterCopied,
    Fault::TimeJump,
    Fault::OddTicks,
    Fault::Pause,
    Fault::Drain,
    Fault::Corrupt,
    Fault::CorruptPayload,
    Fault::UnknownFatal,
    Fault::PurgeGap,
    Fault::ResetHistory,
    Fault::FailoverLost,
    Fault::SinkPermanent,
    Fault::Poison(Poison::PartialImage),
    Fault::Poison(Poison::StatementLogged),
    Fault::Poison(Poison::Anonymous),
    Fault::Poison(Poison::Incident),
    Fault::Poison(Poison::UnknownType),
    Fault::Poison(Poison::TwoPhaseXa),
    Fault::Poison(Poison::RowsWithoutTable),
    Fault::Poison(Poison::RowTooLarge),
];

/// Where in [`ALL`] the classes begin that end a pipeline by design.
pub const FATAL: usize = 43;

impl Fault {
    /// Its name, as `--only` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TornReads => "torn-reads",
            Self::Trickle => "trickle",
            Self::Stall => "stall",
            Self::Eof => "eof",
            Self::Reset => "reset",
            Self::HalfOpen => "half-open",
            Self::DialFails => "dial-fails",
            Self::SlowDial => "slow-dial",
            Self::ServerError => "server-error",
            Self::TooManyConnections => "too-many-connections",
            Self::FakeRotate => "fake-rotate",
            Self::OddHeartbeat => "odd-heartbeat",
            Self::UnknownIgnorable => "unknown-ignorable",
            Self::CutEvent => "cut-event",
            Self::LogBinOff => "log-bin-off",
            Self::Restart => "restart",
            Self::ServerCrash => "server-crash",
            Self::Failover => "failover",
            Self::FailoverApplying => "failover-applying",
            Self::FailoverErrant => "failover-errant",
            Self::Rotate => "rotate",
            Self::Purge => "purge",
            Self::PurgeRace => "purge-race",
            Self::Crash => "crash",
            Self::CrashAtCommit => "crash-at-commit",
            Self::OldBackup => "old-backup",
            Self::Zombie => "zombie",
            Self::SlowSink => "slow-sink",
            Self::SinkTransient => "sink-transient",
            Self::AnswerLost => "answer-lost",
            Self::NothingAndLost => "nothing-and-lost",
            Self::LateCommit => "late-commit",
            Self::SinkHangs => "sink-hangs",
            Self::HangsAndLands => "hangs-and-lands",
            Self::PositionUnreadable => "position-unreadable",
            Self::PositionHangs => "position-hangs",
            Self::CopyLinkLost => "copy-link-lost",
            Self::PreparedXa => "prepared-xa",
            Self::AlterCopied => "alter-copied",
            Self::TimeJump => "time-jump",
            Self::OddTicks => "odd-ticks",
            Self::Pause => "pause",
            Self::Drain => "drain",
            Self::Corrupt => "corrupt",
            Self::CorruptPayload => "corrupt-payload",
            Self::UnknownFatal => "unknown-fatal",
            Self::PurgeGap => "purge-gap",
            Self::ResetHistory => "reset-history",
            Self::FailoverLost => "failover-lost",
            Self::SinkPermanent => "sink-permanent",
            Self::Poison(Poison::PartialImage) => "poison-partial-image",
            Self::Poison(Poison::StatementLogged) => "poison-statement-logged",
            Self::Poison(Poison::Anonymous) => "poison-anonymous",
            Self::Poison(Poison::Incident) => "poison-incident",
            Self::Poison(Poison::UnknownType) => "poison-unknown-type",
            Self::Poison(Poison::TwoPhaseXa) => "poison-two-phase-xa",
            Self::Poison(Poison::RowsWithoutTable) => "poison-rows-without-table",
            Self::Poison(Poison::RowTooLarge) => "poison-row-too-large",
        }
    }

    /// Its bit in a set of classes.
    #[must_use]
    pub fn bit(self) -> u64 {
        ALL.iter().position(|fault| *fault == self).map_or(0, |at| 1 << at)
    }

    /// Whether it happens when it is asked for, once each time; others take hold when something meets them.
    #[must_use]
    pub const fn is_at_once(self) -> bool {
        matches!(
            self,
            Self::Eof
                | Self::Reset
                | Self::HalfOpen
                | Self::Restart
                | Self::ServerCrash
                | Self::Rotate
                | Self::Crash
                | Self::LogBinOff
        )
    }

    /// Whether it concerns an initial copy alone.
    #[must_use]
    pub const fn is_of_copy(self) -> bool {
        matches!(self, Self::CopyLinkLost | Self::PreparedXa | Self::AlterCopied)
    }

    /// The class of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|fault| fault.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for fault in ALL {
            assert_eq!(Fault::by_name(fault.name()), Some(*fault), "{}", fault.name());
        }
        assert_eq!(ALL[FATAL], Fault::Corrupt);
    }
}
