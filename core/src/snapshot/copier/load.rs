//! What the source has to carry beside the copy: how much there is to copy, and when the copy waits.

use core::time::Duration;

use alloc::string::String;

use super::{Around, Copier, Did, Step};
use crate::{
    link::{QueryResult, ResultSet},
    probe::{Mutant, Probe},
    snapshot::CopyWait,
    time::Now,
};

/// The largest tables by the source's statistics, which may be a day old.
const ESTIMATES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES \
     WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') \
     ORDER BY TABLE_ROWS DESC LIMIT 10000";
const RUNNING: &str =
    "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Threads_running'";
/// How long ago the transaction that is being applied was committed where it was first executed, in µs.
const LAG: &str = "SELECT MAX(TIMESTAMPDIFF(MICROSECOND, APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, UTC_TIMESTAMP(6))) \
     FROM performance_schema.replication_applier_status_by_worker WHERE APPLYING_TRANSACTION <> ''";

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    Running,
    Lag,
}

/// What was seen of the source's load.
#[derive(Default)]
pub(super) struct Load {
    estimated: bool,
    look_at: Option<Now>,
    /// What is still to be asked for this time.
    next: Option<Measure>,
    /// What the server does not tell is not asked for again.
    no_running: bool,
    no_lag: bool,
    over: Option<CopyWait>,
}

impl Load {
    /// When to look again, while nothing is begun for it.
    pub(super) fn wake(&self) -> Option<Now> {
        self.over.and(self.look_at)
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&self, now: Now) -> bool {
        self.look_at.is_none_or(|at| at <= now)
    }

    /// Nothing could be begun now, whatever is seen.
    pub(super) fn put_off(&mut self, now: Now) {
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = Some(now.after(LOOK_EVERY));
        }
    }
}

impl Copier {
    /// Whether another chunk may be begun; `Err`: that is being asked for.
    pub(super) fn may_begin<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Result<bool, Did> {
        if around.paused {
            *around.waits = Some(CopyWait::Paused);
            self.load.over = None;
            return Ok(false);
        }
        let until = around.now.after(self.terms.step);
        if !core::mem::replace(&mut self.load.estimated, true) {
            self.lock.ask(ESTIMATES, until, around.out);
            self.step = Step::Estimating;
            return Err(Did::Moved);
        }
        let limits = &self.terms.limits;
        if self.load.next.is_none() && self.load.look_at.is_none_or(|at| at <= around.now) {
            self.load.look_at = Some(around.now.after(LOOK_EVERY));
            self.load.over = None;
            self.load.next = Some(Measure::Running);
        }
        while let Some(measure) = self.load.next.take() {
            let (sql, wanted, next) = match measure {
                Measure::Running => {
                    (RUNNING, limits.running_max > 0 && !self.load.no_running, Some(Measure::Lag))
                }
                Measure::Lag => (LAG, !limits.lag_max.is_zero() && !self.load.no_lag, None),
            };
            self.load.next = next;
            if wanted {
                self.lock.ask(sql, until, around.out);
                self.step = Step::Measuring(measure);
                return Err(Did::Moved);
            }
        }
        *around.waits = self.load.over;
        Ok(self.load.over.is_none())
    }

    /// The answer to what is asked between two chunks.
    pub(super) fn measured<P: Probe>(&mut self, measure: Measure, answer: &QueryResult) -> Did {
        let number = match answer {
            QueryResult::Rows(rows) => number(rows, 0, 0).filter(|_| !P::mutant(Mutant::IgnoreLoad)),
            QueryResult::Ok(_) => None,
            QueryResult::Failed(_) => {
                match measure {
                    Measure::Running => self.load.no_running = true,
                    Measure::Lag => self.load.no_lag = true,
                }
                None
            }
        };
        let limits = &self.terms.limits;
        let over = match measure {
            Measure::Running => {
                number.filter(|n| *n > u64::from(limits.running_max)).and(Some(CopyWait::ThreadsRunning))
            }
            Measure::Lag => {
                let most = u64::try_from(limits.lag_max.as_micros()).unwrap_or(u64::MAX);
                number.filter(|n| *n > most).and(Some(CopyWait::ReplicationLag))
            }
        };
        self.load.over = self.load.over.or(over);
        self.step = Step::Next;
        Did::Moved
    }

    /// About how many rows there are; what the server does not tell is not known.
    pub(super) fn estimated<P: Probe>(&mut self, answer: &QueryResult, around: &mut Around<'_, P>) -> Did {
        if let QueryResult::Rows(rows) = answer {
            let copies = around.assembler.gate().copies();
            for (at, row) in rows.rows.iter().enumerate() {
                if let [Some(schema), Some(table), ..] = row.as_slice()
                    && let Some(estimate) = number(rows, at, 2)
                {
                    let name = (text(schema), text(table));
                    if copies.contains_key(&name) {
                        around.estimates.insert(name, estimate);
                    }
                }
            }
        }
        self.step = Step::Next;
        Did::Moved
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(rows: &ResultSet, row: usize, column: usize) -> Option<u64> {
    core::str::from_utf8(rows.cell(row, column).flatten()?).ok()?.parse().ok()
}
