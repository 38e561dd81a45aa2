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
    Fault::TimeJump,
    Fault::OddTicks,
    Fault::Pause,
    Fault::Drain,
    Fault::Corrupt,
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
];

/// Where in [`ALL`] the classes begin that end a pipeline by design.
pub const FATAL: usize = 39;

impl Fault {
    /// Its name, as `--only` takes it.
    #[must_use]
    pub fn name(self) -> String {
        let mut out = String::new();
        for c in format!("{self:?}").replace("Poison(", "Poison").replace(')', "").chars() {
            if c.is_ascii_uppercase() && !out.is_empty() {
                out.push('-');
            }
            out.push(c.to_ascii_lowercase());
        }
        out
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
            assert_eq!(Fault::by_name(&fault.name()), Some(*fault), "{}", fault.name());
        }
        assert_eq!(ALL[FATAL], Fault::Corrupt);
    }
}
