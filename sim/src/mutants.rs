//! What must be found: for each promise a way of breaking it, and the oracle that must see it.

use std::{collections::BTreeMap, fmt::Write as _};

use capstan_core::probe::Mutant;

use crate::{
    choices::Choices,
    fault::Fault,
    marks::{Mistake, making},
    plan::Wishes,
    run::run,
    sink::Blunder,
};

/// A mistake, the promise it breaks, and the oracle that must see it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The mistake.
    pub mistake: Mistake,
    /// The promise.
    pub promise: &'static str,
    /// The oracle.
    pub oracle: &'static str,
    /// The schedules it is looked for in.
    pub wishes: Wishes,
}

const ANY: Wishes = Wishes { only: None, library: false, copy: false, swarm: 0 };
const LIBRARY: Wishes = Wishes { only: None, library: true, copy: false, swarm: 0 };

const COPY: Wishes = Wishes { only: None, library: false, copy: true, swarm: 0 };

/// Tables are copied anew.
const ALTERED: Wishes = Wishes { only: Some(Fault::AlterCopied), ..COPY };

const fn copy(mutant: Mutant, promise: &'static str) -> Row {
    Row { mistake: Mistake::Core(mutant), promise, oracle: "copy", wishes: COPY }
}

const fn core(mutant: Mutant, promise: &'static str, oracle: &'static str) -> Row {
    Row { mistake: Mistake::Core(mutant), promise, oracle, wishes: ANY }
}

const fn around(blunder: Blunder, promise: &'static str, oracle: &'static str, wishes: Wishes) -> Row {
    Row { mistake: Mistake::Around(blunder), promise, oracle, wishes }
}

/// The table.
pub const TABLE: &[Row] = &[
    core(Mutant::SwapUnits, "order", "prefix"),
    core(Mutant::Overtake, "order", "prefix"),
    core(Mutant::DropAbort, "whole or nothing", "grammar"),
    core(Mutant::CommitPart, "whole or nothing", "prefix"),
    core(Mutant::KeepGroup, "whole or nothing", "halt-soundness"),
    core(Mutant::DeliverRolledBack, "whole or nothing", "prefix"),
    core(Mutant::CommitUnchecked, "whole or nothing", "prefix"),
    core(Mutant::KeepSavepointRows, "whole or nothing", "prefix"),
    around(Blunder::KeepAborted, "whole or nothing", "prefix", ANY),
    core(Mutant::DeliverAgain, "once", "prefix"),
    core(Mutant::KeepQueue, "once", "prefix"),
    core(Mutant::ResumeFromMemory, "once", "prefix"),
    around(Blunder::Unconditional, "once", "prefix", ANY),
    core(Mutant::LoseFailed, "at least once", "prefix"),
    around(Blunder::StoreFirst, "at least once", "window", LIBRARY),
    core(Mutant::AckOnEmit, "acknowledged is durable", "account"),
    core(Mutant::StopWithUnits, "acknowledged is durable", "account"),
    core(Mutant::TrustMemory, "a lost answer is read back", "halt-soundness"),
    core(Mutant::IgnoreLateCommit, "a late commit does not land twice", "halt-soundness"),
    core(Mutant::HaltDropsUnits, "what can be delivered is", "halt-soundness"),
    core(Mutant::ClaimForgets, "the position is monotone", "monotone"),
    core(Mutant::StoredIsCurrent, "start: stored", "prefix"),
    core(Mutant::EarliestIsCurrent, "start: earliest", "start"),
    core(Mutant::CurrentIsEarliest, "start: current", "start"),
    core(Mutant::AtIsEarliest, "start: explicit", "start"),
    core(Mutant::RefuseOlder, "an older checkpoint converges", "halt-soundness"),
    core(Mutant::ClaimNothing, "a former owner is fenced", "fencing"),
    core(Mutant::IgnoreFence, "a former owner is fenced", "liveness"),
    core(Mutant::SkipGap, "fails closed: gap", "prefix"),
    core(Mutant::TrustAnySource, "fails closed: another history", "liveness"),
    core(Mutant::NoVerify, "fails closed: history reset", "liveness"),
    core(Mutant::AskPastEnd, "fails closed: nothing is left out", "prefix"),
    core(Mutant::IgnoreChecksum, "fails closed: checksum", "prefix"),
    core(Mutant::SkipUnknown, "fails closed: unknown event", "prefix"),
    core(Mutant::PassIncident, "fails closed: incident", "prefix"),
    core(Mutant::PassPartialImage, "fails closed: partial image", "prefix"),
    core(Mutant::PassStatement, "fails closed: statement", "prefix"),
    core(Mutant::PassAnonymous, "fails closed: anonymous", "prefix"),
    core(Mutant::PassXa, "fails closed: two-phase XA", "prefix"),
    core(Mutant::KeepTableMaps, "fails closed: rows without their table", "prefix"),
    core(Mutant::ForgetRolledBack, "every GTID counts", "prefix"),
    core(Mutant::ForgetFiltered, "every GTID counts", "prefix"),
    core(Mutant::NeverTell, "every GTID counts", "seam"),
    core(Mutant::HaltOnDrop, "no false halt: lost link", "halt-soundness"),
    core(Mutant::HaltOnGateRetry, "no false halt: log_bin off for a minute", "halt-soundness"),
    core(Mutant::NeverForgive, "no false halt: trouble that is over", "halt-soundness"),
    core(Mutant::SleepCounts, "no false halt: sleep", "halt-soundness"),
    core(Mutant::SilenceWhilePaused, "no false halt: slow sink", "patience"),
    core(Mutant::NoBackoff, "dials are bounded", "bounds"),
    core(Mutant::AnyDial, "late answers are ignored", "seam"),
    core(Mutant::NoCredit, "memory is bounded: slow sink", "bounds"),
    core(Mutant::NeverStream, "memory is bounded: large transaction", "bounds"),
    copy(Mutant::CutWithoutLock, "copy: a cut is exact"),
    copy(Mutant::GtidsAfterUnlock, "copy: a cut is exact"),
    copy(Mutant::UseSpoiledCut, "copy: a chunk has what was dropped"),
    copy(Mutant::ChunkEarly, "copy: a chunk stands where its set does"),
    copy(Mutant::JudgeUpdateAsOne, "copy: each key is judged by itself"),
    copy(Mutant::RangesOutOfOrder, "copy: ranges come in the order of their keys"),
    copy(Mutant::RangeBegunLate, "copy: between two ranges there is nothing"),
    Row { oracle: "grammar", ..copy(Mutant::EmptyRange, "copy: a range without rows is none") },
    copy(Mutant::KeepLost, "copy: a cut ends with its connections"),
    Row { wishes: ALTERED, ..copy(Mutant::ChunkNotFirst, "copy: the first chunk voids what was there") },
    Row { oracle: "halt-soundness", ..copy(Mutant::StayElsewhere, "copy: no false halt: another server") },
    Row { oracle: "liveness", ..copy(Mutant::ForgetProgress, "copy: its progress is in the position") },
    around(Blunder::Canary, "the alarm rings", "canary", ANY),
];

/// Mistakes of the core that schedules are too few or too tame for, and the file of the test that sees each.
pub const TOLD: &[(Mutant, &str)] = &[
    (Mutant::HaltUnread, "mutants"),
    (Mutant::ImpatientWithWaiting, "mutants"),
    (Mutant::ForgetSent, "stories"),
    (Mutant::VerifyAtBegin, "stories"),
    (Mutant::KeepEnd, "stories"),
    (Mutant::ReadLockOnly, "copying"),
    (Mutant::NeverKill, "copying"),
    (Mutant::EagerLock, "copying"),
    (Mutant::WaitUntold, "copying"),
    (Mutant::XaUnseen, "copying"),
    (Mutant::IgnoreLoad, "copying"),
    (Mutant::AllViews, "copying"),
    (Mutant::FewForEver, "copying"),
    (Mutant::OldDescription, "copying"),
    (Mutant::RetryRefused, "refusals"),
    (Mutant::RetryNonsense, "refusals"),
    (Mutant::RetryTooLarge, "refusals"),
    (Mutant::WaitForEver, "refusals"),
    (Mutant::AnyStart, "refusals"),
    (Mutant::GoalUnseen, "refusals"),
];

/// What came of looking for a mistake.
#[derive(Debug)]
pub struct Hunt {
    /// Schedules until its oracle saw it.
    pub caught_after: Option<u64>,
    /// What the oracles said until then, with the first seed of each.
    pub seen: BTreeMap<&'static str, (u64, String)>,
}

/// Runs the schedules of the seeds 1, 2, … with the mistake until its oracle sees it, or `most` were run.
#[must_use]
pub fn hunt(row: &Row, most: u64) -> Hunt {
    let mut hunt = Hunt { caught_after: None, seen: BTreeMap::new() };
    let making = making(row.mistake);
    for seed in 1..=most {
        let Err(failure) = run(Choices::seeded(seed), row.wishes, false).result else { continue };
        hunt.seen.entry(failure.oracle).or_insert((seed, failure.message));
        if failure.oracle == row.oracle {
            hunt.caught_after = Some(seed);
            break;
        }
    }
    drop(making);
    hunt
}

/// One line of the table that a run of the tests prints.
#[must_use]
pub fn line(row: &Row, hunt: &Hunt) -> String {
    let mut out = String::new();
    let found = hunt.caught_after.map_or("NEVER".into(), |n| n.to_string());
    let _ = write!(out, "{found:>7}  {:<22} {:<42} {}", row.mistake.name(), row.promise, row.oracle);
    for (oracle, (seed, _)) in hunt.seen.iter().filter(|(oracle, _)| **oracle != row.oracle) {
        let _ = write!(out, " (also {oracle}, {seed})");
    }
    out
}
