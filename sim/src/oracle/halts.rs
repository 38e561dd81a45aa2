//! A halt has a true cause in the world.

use capstan_core::{gtid::GtidSet, halt::Code};

use super::Failure;
use crate::truth::Poison;

/// What the world knows about one process at the moment of its halt.
#[derive(Debug)]
pub struct World<'a> {
    /// The code.
    pub code: Code,
    /// The position it was told last.
    pub told: Option<&'a GtidSet>,
    /// What is stored.
    pub stored: Option<&'a GtidSet>,
    /// The epoch and mark of what is stored are another process's.
    pub foreign_owner: bool,
    /// What the server it spoke to last has executed, and purged.
    pub executed: &'a GtidSet,
    /// What of its log this process may know to be in it, counted or not.
    pub logged: &'a GtidSet,
    /// What it has purged.
    pub purged: &'a GtidSet,
    /// The next group it has to deliver cannot be delivered.
    pub poison: Option<Poison>,
    /// For how long it has had no life of a stream, µs.
    pub lifeless: u64,
    /// An event was damaged on its link.
    pub damaged: bool,
    /// An unknown event was put into its link.
    pub unknown: bool,
    /// The source was reset and has grown again.
    pub reset: bool,
    /// The sink said it fails for good.
    pub sink_permanent: bool,
    /// For how long sink or position have been failing, µs.
    pub sink_trouble: u64,
    /// A server has ended its dump in favour of another process of the same identity.
    pub rival: bool,
    /// It was started with a start position although one is stored, or without although none is.
    pub start_conflict: bool,
    /// The target was restored from an older copy while it ran.
    pub restored: bool,
    /// `log_bin` is off.
    pub log_bin_off: bool,
    /// What this process saw when it last asked why a table is not to be had.
    pub lock: LockAsked,
}

/// What a process that copies had seen of a table's lock when it last asked for prepared transactions.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockAsked {
    /// For how long it had been wanted, µs.
    pub wanted: u64,
    /// For how long there had been a prepared transaction each time it asked, if there was one the last time, µs.
    pub xa: Option<u64>,
}

/// Time without life before trouble ends a pipeline, less what a heartbeat takes, µs.
const LIFELESS_MIN: u64 = 570_000_000;

/// How long a prepared transaction, and a lock, are waited for, less what a query and its answer take on a slow link, µs.
const XA_MIN: u64 = 8_000_000;
const LOCK_MIN: u64 = 7_000_000;

/// Whether the halt has a cause.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is forgotten here is a halt without cause, and is told"
)]
pub fn sound(world: &World<'_>) -> Result<(), Failure> {
    let empty = GtidSet::new();
    let told = world.told.unwrap_or(&empty);
    let stored = world.stored.unwrap_or(&empty);
    let ahead = |set: &GtidSet| !set.is_subset(world.executed);
    let gap = |set: &GtidSet| !world.executed.subtract(set).is_disjoint(world.purged);
    let is_poison = |poison| world.poison == Some(poison);
    let cause = match world.code {
        Code::DataGap => gap(told),
        Code::SourceBehind => ahead(stored) && world.lifeless >= LIFELESS_MIN,
        Code::SourceIdentityMismatch => !stored.is_subset(world.logged) || world.reset,
        Code::SourceHistoryChanged => world.reset,
        Code::SourceUnreachable | Code::StreamStalled => world.lifeless >= LIFELESS_MIN,
        Code::BinlogDisabled => world.log_bin_off && world.lifeless >= LIFELESS_MIN,
        Code::ChecksumMismatch => world.damaged,
        // What is inflated while it is read shows its damage before the checksum behind it does.
        Code::PayloadMalformed | Code::EventMalformed | Code::ValueMalformed => world.damaged,
        Code::UnknownEventType => world.unknown || is_poison(Poison::UnknownType),
        Code::PartialRowImage => is_poison(Poison::PartialImage),
        Code::StatementLoggedChange => is_poison(Poison::StatementLogged),
        Code::AnonymousTransaction => is_poison(Poison::Anonymous),
        Code::Incident => is_poison(Poison::Incident),
        Code::XaTransaction => is_poison(Poison::TwoPhaseXa),
        Code::RowEventTooLarge => is_poison(Poison::RowTooLarge),
        Code::TableMapMissing => is_poison(Poison::RowsWithoutTable),
        Code::SinkFailed => world.sink_permanent || world.sink_trouble >= LIFELESS_MIN,
        Code::PositionReadFailed => world.sink_trouble >= LIFELESS_MIN,
        Code::Fenced => world.foreign_owner,
        Code::ServerIdConflict => world.rival,
        Code::StartPositionConflict | Code::StartPositionRequired => world.start_conflict,
        Code::PositionRegressed => world.restored,
        Code::SnapshotBlockedByXa => {
            world.lock.xa.is_some_and(|since| since >= XA_MIN || world.lock.wanted >= LOCK_MIN)
        }
        Code::SnapshotLockUnavailable => world.lock.xa.is_none() && world.lock.wanted >= LOCK_MIN,
        // No other code has a cause in this world.
        _ => false,
    };
    if cause {
        Ok(())
    } else {
        Err(Failure::new("halt-soundness", format!("{} has no cause: {world:?}", world.code)))
    }
}
