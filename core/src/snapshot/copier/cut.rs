//! The cut: lock, view, set, unlock; and who waits for it.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::time::Duration;

use super::{Around, Copier, Did, Step, table::of_description};
use crate::{
    deliver::CopiedTable,
    gtid::GtidSet,
    halt::{Code, Detail, Halt},
    link::{QueryResult, ResultSet, ServerError},
    probe::{Mark, Mutant, Probe},
    snapshot::limits::CopyWait,
    snapshot::rows::{Describe, DescribeStep, quoted_table, text},
    time::Now,
};

pub(super) const BEGIN_VIEW: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
pub(super) const UNLOCK: &str = "UNLOCK TABLES";
pub(super) const EXECUTED: &str = "SELECT @@global.gtid_executed";

/// Counts who waits for a lock on the table; where the server does not watch its locks, for one on any table.
pub(super) fn waiting_for((schema, table): &CopiedTable) -> String {
    let (schema, table) = (text(schema), text(table));
    format!(
        "SELECT CASE WHEN (SELECT ENABLED FROM performance_schema.setup_instruments \
         WHERE NAME = 'wait/lock/metadata/sql/mdl') = 'YES' \
         THEN (SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING' \
         AND OBJECT_TYPE = 'TABLE' AND OBJECT_SCHEMA = {schema} AND OBJECT_NAME = {table}) \
         ELSE (SELECT COUNT(*) FROM performance_schema.processlist \
         WHERE STATE = 'Waiting for table metadata lock') END"
    )
}

/// How often is looked for statements that wait for our view.
pub(super) const WATCH_EVERY: Duration = Duration::from_secs(1);
/// The longest pause between two tries to lock a table.
const LOCK_PAUSE_MAX: Duration = Duration::from_secs(15);
/// A commit that the stream has shown may not be counted yet.
pub(super) const RECUT_PAUSE: Duration = Duration::from_millis(20);

const ER_BAD_DB_ERROR: u16 = 1049;
const ER_NO_SUCH_TABLE: u16 = 1146;
const ER_LOCK_WAIT_TIMEOUT: u16 = 1205;
const ER_LOCK_DEADLOCK: u16 = 1213;
const ER_OPTION_PREVENTS_STATEMENT: u16 = 1290;
const ER_QUERY_INTERRUPTED: u16 = 1317;
const ER_READ_ONLY_MODE: u16 = 1836;
const ER_TABLEACCESS_DENIED: u16 = 1142;
const ER_DBACCESS_DENIED: u16 = 1044;

impl Copier {
    pub(super) fn lock_bound(&self, write: bool) -> Duration {
        let limits = &self.terms.limits;
        match (write || self.read_only, self.starves) {
            (true, _) => limits.lock_write,
            (false, true) => limits.lock_read / 4,
            (false, false) => limits.lock_read,
        }
    }

    pub(super) fn ask_lock<P: Probe>(&mut self, name: &CopiedTable, write: bool, around: &mut Around<'_, P>) {
        let processed = around.assembler.processed().clone();
        around.assembler.gate_mut().begin_cut(name, &processed);
        self.cutting.clone_from(name);
        self.lock_wanted_since.get_or_insert(around.now);
        // The end of the table is what it is at the first cut that a chunk comes of.
        if !P::mutant(Mutant::KeepEnd) {
            self.upto = None;
        }
        let kind = if write { "WRITE" } else { "READ" };
        let sql = match P::mutant(Mutant::CutWithoutLock) {
            false => format!("LOCK TABLES {} {kind}", quoted_table(&name.0, &name.1)),
            true => "DO 0".into(),
        };
        let until = around.now.after(self.lock_bound(write)).after(self.terms.step);
        self.lock.ask(&sql, until, around.out);
        self.step = Step::Locking { write, since: around.now, killed: false };
    }

    pub(super) fn not_locked<P: Probe>(
        &mut self,
        write: bool,
        error: &ServerError,
        around: &mut Around<'_, P>,
    ) -> Did {
        around.assembler.gate_mut().end_cut();
        let name = self.cutting.clone();
        match error.number() {
            ER_QUERY_INTERRUPTED | ER_LOCK_WAIT_TIMEOUT | ER_LOCK_DEADLOCK
                if !write && !self.read_only && !P::mutant(Mutant::ReadLockOnly) =>
            {
                P::mark(Mark::LockToWrite);
                self.starves = true;
                self.ask_lock(&name, true, around);
                return Did::Moved;
            }
            ER_OPTION_PREVENTS_STATEMENT | ER_READ_ONLY_MODE if write => self.read_only = true,
            ER_NO_SUCH_TABLE | ER_BAD_DB_ERROR => return self.not_there(&name, around),
            ER_QUERY_INTERRUPTED | ER_LOCK_WAIT_TIMEOUT | ER_LOCK_DEADLOCK => {}
            ER_TABLEACCESS_DENIED | ER_DBACCESS_DENIED => {
                let halt = Halt::new(Code::MissingPrivilege).with_server_error(error.number());
                let halt = halt.of_table(&name.0, &name.1).with(Detail::Privilege("SELECT, LOCK TABLES"));
                return Did::Halt(halt);
            }
            _ => return self.of_failure(error, around),
        }
        let since = self.lock_wanted_since.unwrap_or(around.now);
        let last = around.now.since(since) >= self.terms.limits.lock_max;
        P::mark(if last { Mark::LockTooLong } else { Mark::LockPaused });
        self.lock.ask("XA RECOVER", around.now.after(self.terms.step), around.out);
        self.step = Step::AskingXa { last };
        Did::Moved
    }

    /// Prepared transactions while the lock is not granted: one that stays is what holds the table, for all anybody can
    /// tell. Without the privilege to see them nothing is said of them.
    pub(super) fn seen_xa<P: Probe>(
        &mut self,
        last: bool,
        answer: &QueryResult,
        around: &mut Around<'_, P>,
    ) -> Did {
        let rows = match answer {
            QueryResult::Rows(rows) => rows.rows.as_slice(),
            QueryResult::Ok(_) | QueryResult::Failed(_) => &[],
        };
        let before = core::mem::take(&mut self.xa);
        for row in rows {
            // Format, lengths and XID together.
            let xid: Vec<u8> =
                row.iter().flatten().flat_map(|cell| cell.iter().copied().chain([0])).collect();
            let since = before.get(&xid).copied().unwrap_or(around.now);
            self.xa.insert(xid, since);
        }
        if P::mutant(Mutant::XaUnseen) {
            self.xa.clear();
        }
        let stays = |since: &Now| around.now.since(*since) >= self.terms.limits.lock_xa;
        let code = match (self.xa.values().any(stays), last) {
            (true, _) => Code::SnapshotBlockedByXa,
            (false, true) if !self.xa.is_empty() => Code::SnapshotBlockedByXa,
            (false, true) => Code::SnapshotLockUnavailable,
            (false, false) => {
                // Each try shuts the table to others for as long as it waits, so who holds it long is asked ever less.
                let wanted = around.now.since(self.lock_wanted_since.unwrap_or(around.now));
                let wanted = if P::mutant(Mutant::EagerLock) { Duration::ZERO } else { wanted };
                let pause = (wanted / 2).min(LOCK_PAUSE_MAX).max(self.terms.limits.lock_pause);
                self.step = Step::Pausing(around.now.after(pause));
                *around.waits = (!P::mutant(Mutant::WaitUntold)).then_some(CopyWait::Lock);
                return Did::Moved;
            }
        };
        Did::Halt(Halt::new(code).of_table(&self.cutting.0, &self.cutting.1))
    }

    /// The stream will say what became of a table. One of which it has said nothing when it has come to where the table
    /// was not there is none that anything could be copied of.
    fn not_there<P: Probe>(&mut self, name: &CopiedTable, around: &mut Around<'_, P>) -> Did {
        self.lock_wanted_since = None;
        self.step = Step::Pausing(around.now.after(self.terms.limits.lock_pause));
        around.assembler.gate_mut().is_missing(name);
        match &self.missing {
            Some((of, executed)) if of == name => {
                if executed.is_subset(around.assembler.processed()) {
                    around.assembler.table_is_gone(name, around.now);
                    self.missing = None;
                    self.step = Step::Next;
                }
            }
            Some(_) | None => {
                self.lock.ask(EXECUTED, around.now.after(self.terms.step), around.out);
                self.step = Step::Missing;
            }
        }
        Did::Moved
    }

    /// What the source has executed where a table is not there.
    pub(super) fn is_missing<P: Probe>(&mut self, rows: &ResultSet, around: &mut Around<'_, P>) -> Did {
        let text = rows.cell(0, 0).flatten().and_then(|cell| core::str::from_utf8(cell).ok());
        let executed = text.and_then(|text| text.parse::<GtidSet>().ok());
        self.missing = executed.map(|executed| (self.cutting.clone(), executed));
        self.step = Step::Pausing(around.now.after(self.terms.limits.lock_pause));
        Did::Moved
    }

    /// The set is known, and the lock still held.
    pub(super) fn settle<P: Probe>(&mut self, rows: &ResultSet, around: &mut Around<'_, P>) -> Did {
        let text = rows.cell(0, 0).flatten().and_then(|cell| core::str::from_utf8(cell).ok());
        let Some(gtid_set) = text.and_then(|text| text.parse::<GtidSet>().ok()) else {
            let note = Detail::Note("The server's GTID set could not be read");
            return self.lose(Halt::new(Code::SourceUnreachable).with(note), around);
        };
        self.gtid_set = gtid_set;
        // Another table may have come before it meanwhile; the lock is on this one.
        let name = self.cutting.clone();
        let known = self.table.as_ref().is_some_and(|table| table.name == name);
        if known && around.assembler.gate().is_described() {
            return self.unlock(around);
        }
        match self.looked.remove(&name).flatten() {
            Some(looked) => self.ask_whether_it_is(looked, around),
            None => self.describe_locked(around),
        }
    }

    /// What was found out before is not, or is not certain.
    pub(super) fn describe_locked<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        P::mark(Mark::DescribedLocked);
        let name = self.cutting.clone();
        let describe = Describe::new(&name.0, &name.1);
        self.ask_about(&describe, around);
        self.step = Step::Describing(Box::new(describe));
        Did::Moved
    }

    pub(super) fn describe<P: Probe>(
        &mut self,
        describe: Describe,
        rows: &ResultSet,
        around: &mut Around<'_, P>,
    ) -> Did {
        let name = self.cutting.clone();
        match describe.on_result(rows) {
            Ok(DescribeStep::More(describe)) => {
                self.ask_about(&describe, around);
                self.step = Step::Describing(Box::new(describe));
                Did::Moved
            }
            Ok(DescribeStep::Done(described)) => match self.described(name, *described, around) {
                Ok(()) => self.unlock(around),
                Err(halt) => Did::Halt(halt),
            },
            Err(error) => Did::Halt(of_description(&error).of_table(&name.0, &name.1)),
        }
    }

    pub(super) fn unlock<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        // Before the lock is given up: behind it come changes that are not in the set.
        self.cut_good = around.assembler.gate_mut().cut_is(&self.gtid_set);
        if !self.cut_good {
            P::mark(Mark::CutTooOld);
        }
        self.lock.ask(UNLOCK, around.now.after(self.terms.step), around.out);
        self.step = Step::Unlocking;
        Did::Moved
    }

    pub(super) fn end_view<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let until = around.now.after(self.terms.step);
        for lane in self.lanes.iter_mut().filter(|lane| lane.open) {
            lane.view.ask("ROLLBACK", until, around.out);
        }
        self.step = Step::Ending;
        Did::Moved
    }

    /// Who waits for our view makes all who come later wait, too: it is given up after this chunk, and if that takes
    /// long, at once.
    pub(super) fn watched<P: Probe>(&mut self, result: &QueryResult, around: &mut Around<'_, P>) -> Did {
        self.watch_at = around.now.after(WATCH_EVERY);
        let waiting = match result {
            QueryResult::Rows(rows) => rows.cell(0, 0).flatten().is_some_and(|cell| &**cell != b"0"),
            QueryResult::Ok(_) => false,
            QueryResult::Failed(_) => {
                self.can_watch = false;
                false
            }
        };
        self.waited_for = if waiting { self.waited_for.saturating_add(1) } else { 0 };
        if self.waited_for > 1 && matches!(self.step, Step::Reading | Step::Held) {
            P::mark(Mark::ViewWaitedFor);
            return self.give_up_reading(around);
        }
        Did::Moved
    }
}
