//! The table of rules, and how they are run.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{
    bench::{Bench, Broken},
    report::{Outcome, Report, Verdict},
    rules::{order, owner, position, values, whole},
    subject::panic_text,
    target::{Target, Trouble},
};

/// What a sink promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A checkpoint store keeps the position; what was not acknowledged comes again.
    AtLeastOnce,
    /// The sink stores the position in the same atomic write as the data.
    ExactlyOnce,
}

impl Level {
    /// Stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtLeastOnce => "at_least_once",
            Self::ExactlyOnce => "exactly_once",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A sentence of the contract, and how it is checked.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name. It never changes and is never given to another rule.
    pub id: &'static str,
    /// The lowest level that promises it.
    pub level: Level,
    /// The sentence.
    pub text: &'static str,
    run: fn(&mut Bench<'_>) -> Result<(), Broken>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({})", self.id)
    }
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule {
        id: "order_within",
        level: Level::AtLeastOnce,
        text: "The changes of a transaction are applied in the order of the source's binlog.",
        run: order::within,
    },
    Rule {
        id: "order_across",
        level: Level::AtLeastOnce,
        text: "Units are applied in the order of the source's binlog, within a batch and from batch to batch.",
        run: order::across,
    },
    Rule {
        id: "read_to_the_end",
        level: Level::AtLeastOnce,
        text: "A sink never mistakes a part for the whole: a batch is acknowledged after its last change, and every change takes effect.",
        run: order::to_the_end,
    },
    Rule {
        id: "aborted_leaves_no_trace",
        level: Level::AtLeastOnce,
        text: "A streamed transaction that its source took back leaves no data and moves no position.",
        run: whole::aborted,
    },
    Rule {
        id: "comes_again_once",
        level: Level::AtLeastOnce,
        text: "A streamed transaction whose link dropped comes again from its start and is applied once.",
        run: whole::comes_again,
    },
    Rule {
        id: "killed_leaves_no_part",
        level: Level::AtLeastOnce,
        text: "A sink killed inside a transaction leaves no part of it; the next process applies it once.",
        run: whole::killed,
    },
    Rule {
        id: "position_reads_back",
        level: Level::ExactlyOnce,
        text: "The position of the acknowledgement is read back byte for byte, after the write and after a new start.",
        run: position::reads_back,
    },
    Rule {
        id: "position_is_a_set",
        level: Level::ExactlyOnce,
        text: "The position is a GTID set: membership, never an ordinal; gaps, sources and tags are kept.",
        run: position::is_a_set,
    },
    Rule {
        id: "progress_is_stored",
        level: Level::ExactlyOnce,
        text: "The position holds every processed transaction, captured or filtered: a batch of nothing but Progress is stored.",
        run: position::progress,
    },
    Rule {
        id: "claim_is_stored",
        level: Level::ExactlyOnce,
        text: "The owner takes the next epoch by a first batch that holds only Progress, and it is durable before any data.",
        run: owner::claim,
    },
    Rule {
        id: "fenced",
        level: Level::ExactlyOnce,
        text: "Where another owner's epoch is stored, nothing is written and the error is Fenced.",
        run: owner::fenced,
    },
    Rule {
        id: "stale_is_refused",
        level: Level::ExactlyOnce,
        text: "Where the stored position is not the one a batch goes on from, nothing is written and the error is Stale.",
        run: owner::stale,
    },
    Rule {
        id: "lost_answer_once",
        level: Level::ExactlyOnce,
        text: "A commit whose answer was lost shows in the position, and the same batch is never applied twice.",
        run: owner::lost_answer,
    },
    Rule {
        id: "values_survive",
        level: Level::AtLeastOnce,
        text: "Values are stored without loss.",
        run: values::survive,
    },
];

/// Runs every rule, each against a fresh target of `factory`.
pub fn check<T: Target>(mut factory: impl FnMut() -> Result<T, Trouble>) -> Report {
    let mut report = Report::default();
    for rule in RULES {
        let outcome = match factory() {
            Ok(mut target) => {
                report.learn(&target);
                run(rule, &mut target)
            }
            Err(why) => Outcome { rule, verdict: Verdict::Failed(format!("no fresh target: {why}")) },
        };
        report.outcomes.push(outcome);
    }
    report
}

/// Runs one rule: for a test of its own. `None`: there is no rule of this id.
pub fn check_rule<T: Target>(id: &str, target: &mut T) -> Option<Outcome> {
    RULES.iter().find(|rule| rule.id == id).map(|rule| run(rule, target))
}

fn run<T: Target>(rule: &'static Rule, target: &mut T) -> Outcome {
    let level = target.level();
    let declined = target.declines().iter().find(|(id, _)| *id == rule.id);
    let verdict = if level < rule.level {
        Verdict::Skipped(format!("the sink promises {level} only"))
    } else if let Some((_, reason)) = declined {
        Verdict::Skipped(format!("declined: {reason}"))
    } else {
        let run = AssertUnwindSafe(|| (rule.run)(&mut Bench::new(target, level)));
        match catch_unwind(run) {
            Ok(Ok(())) => Verdict::Passed,
            Ok(Err(why)) => Verdict::Failed(why),
            Err(payload) => Verdict::Failed(format!("panicked: {}", panic_text(payload.as_ref()))),
        }
    };
    Outcome { rule, verdict }
}
