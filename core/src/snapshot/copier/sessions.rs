//! The connections: dialled, set up, and what they say.

use core::time::Duration;

use super::{
    Around, Copier, Did, Step,
    cut::{EXECUTED, RECUT_PAUSE, UNLOCK, WATCH_EVERY},
    lanes::Ahead,
};
use crate::{
    gtid::Uuid,
    halt::{Code, Detail, Halt},
    link::{QueryResult, ServerError},
    probe::{Mark, Mutant, Probe},
    replica::{CopyLink, DialEpoch},
    snapshot::{
        client::{Said, failed},
        rows::SESSION,
    },
    time::Now,
};

/// Statements after login; the last one tells which server this is.
const SETUP_LOCK: [&str; 3] =
    [SESSION, "SET SESSION lock_wait_timeout = 60, wait_timeout = 30", "SELECT @@global.server_uuid"];
const SETUP_VIEW: [&str; 3] = [SESSION, "SET SESSION wait_timeout = 3600", "SELECT @@global.server_uuid"];
pub(super) const SETUP_COMPARE: [&str; 3] =
    [SESSION, "SET SESSION wait_timeout = 86400", "SELECT @@global.server_uuid"];

/// How often another server answers before it is the stream's link that is made anew.
const ELSEWHERE_MAX: u32 = 3;

/// ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED.
const fn is_full(number: u16) -> bool {
    matches!(number, 1040 | 1203 | 1226)
}

/// Which lane's link it is.
fn number(link: CopyLink) -> usize {
    match link {
        CopyLink::View(number) => usize::from(number),
        CopyLink::Lock | CopyLink::Compare => usize::MAX,
    }
}

impl Copier {
    pub(super) fn connect<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let until = around.now.after(self.terms.step);
        let mut dialled = false;
        let views = self.lanes.iter_mut().map(|lane| (&mut lane.view, &mut lane.setup));
        for (client, setup) in core::iter::once((&mut self.lock, &mut self.lock_setup)).chain(views) {
            if client.is_closed() {
                *around.epochs = around.epochs.wrapping_add(1);
                *setup = 0;
                client.dial(DialEpoch(*around.epochs), until, around.out);
                dialled = true;
            }
        }
        if dialled {
            return Did::Moved;
        }
        let ready = self.lock_setup == SETUP_LOCK.len()
            && self.lanes.iter().all(|lane| lane.setup == SETUP_VIEW.len());
        if ready && self.lock.is_idle() && self.are_views_idle() {
            let reads = u8::try_from(self.lanes.len()).unwrap_or(u8::MAX);
            *around.connections = Some((reads, super::connections(&self.terms.limits)));
            return self.survey(around);
        }
        Did::Nothing
    }

    pub(super) fn heard<P: Probe>(&mut self, link: CopyLink, said: Said, around: &mut Around<'_, P>) -> Did {
        match said {
            Said::Nothing => Did::Nothing,
            Said::Moved => Did::Moved,
            Said::LoggedIn => self.set_up(link, None, around),
            Said::Answer(result) => self.answered(link, result, around),
            Said::Row(row) => self.row(number(link), &row, around),
            Said::End(end) => self.end_of_rows(number(link), &end, around),
            Said::Lost(halt) => {
                let full = halt.server_error.is_some_and(is_full);
                let did = self.lose(halt, around);
                if full && !P::mutant(Mutant::AllViews) {
                    self.fewer_views(around.now);
                }
                did
            }
            Said::Refused(halt) => Did::Halt(halt),
        }
    }

    /// The next statement of the session's beginning, or the judgement of the last.
    pub(super) fn set_up<P: Probe>(
        &mut self,
        link: CopyLink,
        answer: Option<QueryResult>,
        around: &mut Around<'_, P>,
    ) -> Did {
        let until = around.now.after(self.terms.step);
        let (client, done, statements) = match link {
            CopyLink::Lock => (&mut self.lock, &mut self.lock_setup, &SETUP_LOCK),
            CopyLink::View(number) => match self.lanes.get_mut(usize::from(number)) {
                Some(lane) => (&mut lane.view, &mut lane.setup, &SETUP_VIEW),
                None => return Did::Nothing,
            },
            CopyLink::Compare => (&mut self.compare, &mut self.compare_setup, &SETUP_COMPARE),
        };
        match answer {
            None => {}
            Some(QueryResult::Failed(error)) => return self.of_failure(&error, around),
            Some(QueryResult::Ok(_)) => *done = done.saturating_add(1),
            Some(QueryResult::Rows(rows)) => {
                *done = done.saturating_add(1);
                let text = rows.cell(0, 0).flatten().and_then(|cell| core::str::from_utf8(cell).ok());
                let uuid = text.and_then(|text| text.parse::<Uuid>().ok());
                if uuid != self.terms.source {
                    P::mark(Mark::CopyElsewhere);
                    if self.failures < ELSEWHERE_MAX || P::mutant(Mutant::StayElsewhere) {
                        return self.lose(Halt::new(Code::SnapshotSourceChanged), around);
                    }
                    // The address is another server's now, and the stream's link is the one that is left over.
                    return Did::Elsewhere;
                }
            }
        }
        if let Some(statement) = statements.get(*done) {
            client.ask(statement, until, around.out);
        }
        Did::Moved
    }

    pub(super) fn answered<P: Probe>(
        &mut self,
        link: CopyLink,
        result: QueryResult,
        around: &mut Around<'_, P>,
    ) -> Did {
        let unset = match link {
            CopyLink::Lock => self.lock_setup < SETUP_LOCK.len(),
            CopyLink::View(_) => {
                self.lanes.get(number(link)).is_some_and(|lane| lane.setup < SETUP_VIEW.len())
            }
            CopyLink::Compare => self.compare_setup < SETUP_COMPARE.len(),
        };
        if unset {
            return self.set_up(link, Some(result), around);
        }
        match link {
            CopyLink::Lock => self.lock_answered(result, around),
            CopyLink::View(_) => self.view_answered(number(link), result, around),
            CopyLink::Compare => self.compared(result, around),
        }
    }

    pub(super) fn lock_answered<P: Probe>(&mut self, result: QueryResult, around: &mut Around<'_, P>) -> Did {
        if core::mem::take(&mut self.watching) {
            return self.watched(&result, around);
        }
        match (core::mem::replace(&mut self.step, Step::Next), result) {
            (Step::Locking { write, .. }, QueryResult::Ok(_)) => {
                self.starves &= write;
                self.step = Step::Locked;
                Did::Moved
            }
            (Step::Locking { write, .. }, QueryResult::Failed(error)) => {
                self.not_locked(write, &error, around)
            }
            (Step::Settled, QueryResult::Ok(_)) if P::mutant(Mutant::GtidsAfterUnlock) => {
                self.lock.ask(EXECUTED, around.now.after(self.terms.step), around.out);
                self.step = Step::Settled;
                Did::Moved
            }
            (Step::Settled, QueryResult::Rows(rows)) => self.settle(&rows, around),
            (Step::Surveying(survey), QueryResult::Rows(rows)) => self.surveyed(*survey, &rows, around),
            (Step::Looking(look), answer) => self.looking(*look, answer, around),
            (Step::Comparing(looked), answer) => self.compare(*looked, &answer, around),
            (Step::Missing, QueryResult::Rows(rows)) => self.is_missing(&rows, around),
            (Step::Estimating, answer) => self.estimated(&answer, around),
            (Step::Measuring(measure), answer) => self.measured::<P>(measure, &answer),
            (Step::Describing(describe), QueryResult::Rows(rows)) => self.describe(*describe, &rows, around),
            (Step::Unlocking, QueryResult::Ok(_)) => {
                if !self.cut_good {
                    // What the stream has shown is not counted yet.
                    self.step = Step::End;
                }
                Did::Moved
            }
            (Step::AskingXa { last }, result) => self.seen_xa(last, &result, around),
            (_, QueryResult::Failed(error)) => self.of_failure(&error, around),
            (_, QueryResult::Ok(_) | QueryResult::Rows(_)) => self.out_of_step(around),
        }
    }

    pub(super) fn view_answered<P: Probe>(
        &mut self,
        at: usize,
        result: QueryResult,
        around: &mut Around<'_, P>,
    ) -> Did {
        match (&self.step, result) {
            (Step::Viewing, QueryResult::Ok(_)) => {
                if let Some(lane) = self.lanes.get_mut(at) {
                    lane.open = true;
                }
                if !self.are_views_open() {
                    return Did::Moved;
                }
                self.chunks_of_cut = 0;
                self.cut_at = around.now;
                self.watch_at = around.now.after(WATCH_EVERY);
                self.waited_for = 0;
                let sql = if P::mutant(Mutant::GtidsAfterUnlock) { UNLOCK } else { EXECUTED };
                self.lock.ask(sql, around.now.after(self.terms.step), around.out);
                self.step = Step::Settled;
                Did::Moved
            }
            (Step::Ending, QueryResult::Ok(_)) => {
                if let Some(lane) = self.lanes.get_mut(at) {
                    lane.open = false;
                }
                if self.is_view_open() {
                    return Did::Moved;
                }
                self.step =
                    if self.cut_good { Step::Next } else { Step::Pausing(around.now.after(RECUT_PAUSE)) };
                Did::Moved
            }
            // Of KILL QUERY: the statement may have ended before it.
            (
                Step::Locking { .. }
                | Step::Locked
                | Step::Pausing(_)
                | Step::Next
                | Step::AskingXa { .. }
                | Step::Missing
                | Step::Estimating
                | Step::Measuring(_),
                _,
            ) => Did::Moved,
            (_, QueryResult::Failed(error)) => self.of_failure(&error, around),
            (_, QueryResult::Ok(_) | QueryResult::Rows(_)) => self.out_of_step(around),
        }
    }

    pub(super) fn out_of_step<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let note = Detail::Note("The server's answer does not fit what was asked");
        self.lose(Halt::new(Code::SourceUnreachable).with(note), around)
    }

    pub(super) fn of_failure<P: Probe>(&mut self, error: &ServerError, around: &mut Around<'_, P>) -> Did {
        match failed(error, "SELECT, LOCK TABLES") {
            Said::Refused(halt) => Did::Halt(halt),
            Said::Lost(halt) => self.lose(halt, around),
            Said::Nothing | Said::Moved | Said::LoggedIn | Said::Answer(_) | Said::Row(_) | Said::End(_) => {
                Did::Nothing
            }
        }
    }

    /// A connection is gone or of no use: both are made anew, and the cut with them.
    pub(super) fn lose<P: Probe>(&mut self, halt: Halt, around: &mut Around<'_, P>) -> Did {
        P::mark(Mark::CopyLost);
        self.close(around.out);
        let keeps = P::mutant(Mutant::KeepLost);
        if !keeps {
            around.assembler.gate_mut().end_cut();
        }
        // What was asked is not answered.
        around.assembler.gate_mut().ask_again();
        self.asked = None;
        self.ready = None;
        self.looked.clear();
        self.lanes.iter_mut().for_each(|lane| {
            lane.open &= keeps;
            lane.forget();
        });
        self.order.clear();
        self.ahead = Ahead::default();
        self.watching = false;
        self.cut_good &= keeps;
        self.failures = self.failures.saturating_add(1);
        if self.is_over(around.now) {
            return Did::Halt(halt);
        }
        let wait = Duration::from_millis(100).saturating_mul(1 << self.failures.min(6));
        self.step = Step::Pausing(around.now.after(wait));
        Did::Moved
    }

    pub(super) fn is_over(&mut self, now: Now) -> bool {
        let since = *self.trouble_since.get_or_insert(now);
        now.since(since) >= self.terms.trouble_max
    }
}
