//! The copy of one table after the other: cut, chunks, next cut.
//!
//! ```text
//! Connecting → Next → Locking → Viewing → Settled (→ Describing) → Unlocking → Next → Reading ⇄ Held → Next …
//! ```
//!
//! A cut is made by two connections: one locks the table, the other begins its consistent view while the lock is
//! held, the first reads `gtid_executed` and unlocks. The view of the table then holds exactly the changes of that
//! set. A READ lock waits behind later writers and may starve, so after a moment a WRITE lock is asked for, which is
//! granted as soon as the transactions that are open now end; the other connection kills the statement that waits for
//! too long, so that writers behind it never wait longer than that.

use alloc::{boxed::Box, collections::VecDeque, format, string::String, sync::Arc};
use core::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{
    client::{Client, Said, failed, of_loss},
    limits::CopyLimits,
    rows::{
        CopyKey, Describe, DescribeError, DescribeStep, Described, KeyOrder, KeyUnsupported, RowEncoder,
        SESSION, TableKind, quoted, quoted_table, select_list,
    },
};
use crate::{
    assemble::Assembler,
    binlog::rows::{RowWalk, RowsEvent},
    capture::CapturedSet,
    deliver::{CopiedTable, CopyState, KeyParts, Seq, SnapshotChunk, TableCopy},
    gtid::{GtidSet, Uuid},
    halt::{Code, Detail, Halt},
    link::{Login, QueryResult, ResultSet, RowsEnd, ServerError, TextRow},
    probe::Probe,
    replica::{CopyLink, DialEpoch, LostReason, Output},
    time::Now,
    value::TableVersion,
};

/// What the copy is told of the pipeline.
pub(crate) struct Terms {
    pub(crate) login: Login,
    pub(crate) captured: CapturedSet,
    pub(crate) limits: CopyLimits,
    /// Longest row.
    pub(crate) row_max: usize,
    /// How long a dial or a short statement may take.
    pub(crate) step: Duration,
    /// How long trouble may last.
    pub(crate) trouble_max: Duration,
    /// The server that the stream comes from.
    pub(crate) source: Option<Uuid>,
}

/// What the copier works with in one step.
pub(crate) struct Around<'a, P: Probe> {
    pub(crate) now: Now,
    pub(crate) assembler: &'a mut Assembler<P>,
    pub(crate) out: &'a mut VecDeque<Output>,
    /// The number of the last dial of any link of a copy.
    pub(crate) epochs: &'a mut u32,
    /// Whether more may be read for the sink.
    pub(crate) room: bool,
}

/// What came of a step.
pub(crate) enum Did {
    /// Nothing can be done now.
    Nothing,
    /// Something was done.
    Moved,
    /// A chunk stands here.
    Chunk(Box<SnapshotChunk>, Box<TableCopy>),
    /// Everything is copied, and the connections are closed.
    Done,
    /// It cannot go on.
    Halt(Halt),
}

/// The copy of the tables of one stream.
pub(crate) struct Copier {
    terms: Terms,
    lock: Client,
    view: Client,
    lock_setup: usize,
    view_setup: usize,
    step: Step,
    table: Option<Table>,
    /// The consistent view is open.
    view_open: bool,
    /// When it was opened.
    cut_at: Now,
    gtid_set: GtidSet,
    /// Whether the cut is of use, as far as was known when it was made.
    cut_good: bool,
    upto: Option<KeyParts>,
    encoder: Option<RowEncoder>,
    /// Rows of the present result.
    result_rows: u64,
    /// The result has more rows.
    result_open: bool,
    /// The last rows of the table are in the chunk.
    last: bool,
    trouble_since: Option<Now>,
    failures: u32,
    lock_wanted_since: Option<Now>,
    read_only: bool,
    watch_at: Now,
    watching: bool,
    can_watch: bool,
    /// How often in a row somebody was seen who waits for our view.
    waited_for: u8,
}

/// A table that was described.
struct Table {
    name: CopiedTable,
    version: Arc<TableVersion>,
    /// What it is copied along; `None`: it is copied as a whole.
    key: Option<Arc<CopyKey>>,
    fingerprint: u64,
}

enum Step {
    Connecting,
    Pausing(Now),
    Next,
    Locking { write: bool, since: Now, killed: bool },
    Locked,
    Viewing,
    Settled,
    Describing(Box<Describe>),
    Unlocking,
    AskingXa,
    Ending,
    End,
    Reading,
    Held,
}

/// Statements after login; the last one tells which server this is.
const SETUP_LOCK: [&str; 3] =
    [SESSION, "SET SESSION lock_wait_timeout = 60, wait_timeout = 30", "SELECT @@global.server_uuid"];
const SETUP_VIEW: [&str; 3] = [SESSION, "SET SESSION wait_timeout = 3600", "SELECT @@global.server_uuid"];

const BEGIN_VIEW: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
const EXECUTED: &str = "SELECT @@global.gtid_executed";
const WAITING: &str =
    "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE = 'Waiting for table metadata lock'";

/// How often is looked for statements that wait for our view.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// How long the rows of a chunk may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// A commit that the stream has shown may not be counted yet.
const RECUT_PAUSE: Duration = Duration::from_millis(20);

const ER_NO_SUCH_TABLE: u16 = 1146;
const ER_LOCK_WAIT_TIMEOUT: u16 = 1205;
const ER_LOCK_DEADLOCK: u16 = 1213;
const ER_OPTION_PREVENTS_STATEMENT: u16 = 1290;
const ER_QUERY_INTERRUPTED: u16 = 1317;
const ER_READ_ONLY_MODE: u16 = 1836;
const ER_TABLEACCESS_DENIED: u16 = 1142;
const ER_DBACCESS_DENIED: u16 = 1044;

impl Copier {
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            lock: Client::new(CopyLink::Lock),
            view: Client::new(CopyLink::View(0)),
            lock_setup: 0,
            view_setup: 0,
            step: Step::Connecting,
            table: None,
            view_open: false,
            cut_at: Now(0),
            gtid_set: GtidSet::new(),
            cut_good: false,
            upto: None,
            encoder: None,
            result_rows: 0,
            result_open: false,
            last: false,
            trouble_since: None,
            failures: 0,
            lock_wanted_since: None,
            read_only: false,
            watch_at: Now(0),
            watching: false,
            can_watch: true,
            waited_for: 0,
        }
    }

    // ---- inputs ------------------------------------------------------------------------------

    fn client(&mut self, link: CopyLink) -> &mut Client {
        match link {
            CopyLink::Lock => &mut self.lock,
            CopyLink::View(_) => &mut self.view,
        }
    }

    /// `false`: nobody asked.
    pub(crate) fn on_connected(&mut self, link: CopyLink, epoch: DialEpoch, seed: [u8; 32]) -> bool {
        let login = self.terms.login.clone();
        let client = self.client(link);
        !client.is_current(epoch) || client.on_connected(&login, seed)
    }

    /// `None`: nobody asked.
    pub(crate) fn on_secured<P: Probe>(
        &mut self,
        link: CopyLink,
        epoch: DialEpoch,
        around: &mut Around<'_, P>,
    ) -> Option<Did> {
        if !self.client(link).is_current(epoch) {
            return Some(Did::Nothing);
        }
        let said = self.client(link).on_secured(around.out)?;
        Some(self.heard(link, said, around))
    }

    pub(crate) fn on_bytes(&mut self, link: CopyLink, epoch: DialEpoch, bytes: Bytes) {
        let client = self.client(link);
        if client.is_current(epoch) {
            client.on_bytes(bytes);
        }
    }

    pub(crate) fn on_lost<P: Probe>(
        &mut self,
        link: CopyLink,
        epoch: DialEpoch,
        reason: LostReason,
        around: &mut Around<'_, P>,
    ) -> Did {
        if self.client(link).is_current(epoch) {
            self.heard(link, of_loss(reason), around)
        } else {
            Did::Nothing
        }
    }

    /// The stream is left, and the copy with it.
    pub(crate) fn close(&mut self, out: &mut VecDeque<Output>) {
        self.lock.close(out);
        self.view.close(out);
    }

    /// Whether its connections may be read.
    pub(crate) const fn reads(&self, room: bool) -> bool {
        match self.step {
            Step::Held => !self.result_open,
            Step::Reading => room,
            Step::Connecting
            | Step::Pausing(_)
            | Step::Next
            | Step::Locking { .. }
            | Step::Locked
            | Step::Viewing
            | Step::Settled
            | Step::Describing(_)
            | Step::Unlocking
            | Step::AskingXa
            | Step::Ending
            | Step::End => true,
        }
    }

    /// When it wants to be woken.
    pub(crate) fn wake(&self) -> Option<Now> {
        let own = match &self.step {
            Step::Pausing(until) => Some(*until),
            Step::Locking { write, since, killed: false } => Some(since.after(self.lock_bound(*write))),
            Step::Locking { .. }
            | Step::Connecting
            | Step::Next
            | Step::Locked
            | Step::Viewing
            | Step::Settled
            | Step::Describing(_)
            | Step::Unlocking
            | Step::AskingXa
            | Step::Ending
            | Step::End
            | Step::Reading
            | Step::Held => None,
        };
        let watch = (self.view_open && self.can_watch && !self.watching).then_some(self.watch_at);
        [own, watch, self.lock.deadline, self.view.deadline].into_iter().flatten().min()
    }

    fn lock_bound(&self, write: bool) -> Duration {
        if write || self.read_only { self.terms.limits.lock_write } else { self.terms.limits.lock_read }
    }

    // ---- one step ----------------------------------------------------------------------------

    pub(crate) fn advance<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        if around.assembler.gate().is_done() {
            self.close(around.out);
            return Did::Done;
        }
        let now = around.now;
        if matches!(self.step, Step::Reading) {
            // While nothing is read, silence is our doing.
            self.view.deadline = match self.view.deadline {
                _ if !around.room => None,
                None => Some(now.after(SILENCE_MAX)),
                some => some,
            };
        }
        if [self.lock.deadline, self.view.deadline].into_iter().flatten().any(|at| at <= now) {
            let note = Detail::Note("A connection of the initial copy does not answer");
            return self.lose(Halt::new(Code::SourceUnreachable).with(note), around);
        }
        let said = self.lock.poll(around.out);
        match self.heard(CopyLink::Lock, said, around) {
            Did::Nothing => {}
            did @ (Did::Moved | Did::Chunk(..) | Did::Done | Did::Halt(_)) => return did,
        }
        if self.reads(around.room) {
            let said = self.view.poll(around.out);
            match self.heard(CopyLink::View(0), said, around) {
                Did::Nothing => {}
                did @ (Did::Moved | Did::Chunk(..) | Did::Done | Did::Halt(_)) => return did,
            }
        }
        self.act(around)
    }

    /// What the step asks for without an answer.
    fn act<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let now = around.now;
        if self.view_open && self.can_watch && !self.watching && self.lock.is_idle() && self.watch_at <= now {
            self.watching = true;
            self.lock.ask(WAITING, now.after(self.terms.step), around.out);
            return Did::Moved;
        }
        match &mut self.step {
            Step::Connecting => self.connect(around),
            Step::Pausing(until) if *until <= now => {
                self.step = Step::Connecting;
                Did::Moved
            }
            Step::Next => self.next(around),
            Step::Locking { write, since, killed } => {
                let due = since.after(if *write || self.read_only {
                    self.terms.limits.lock_write
                } else {
                    self.terms.limits.lock_read
                });
                if *killed || due > now || !self.view.is_idle() {
                    return Did::Nothing;
                }
                *killed = true;
                let kill = format!("KILL QUERY {}", self.lock.id);
                self.view.ask(&kill, now.after(self.terms.step), around.out);
                Did::Moved
            }
            Step::Locked if self.view.is_idle() => {
                self.view.ask(BEGIN_VIEW, now.after(self.terms.step), around.out);
                self.step = Step::Viewing;
                Did::Moved
            }
            Step::End => self.end_view(around),
            Step::Reading => {
                if around.assembler.gate().is_cut_good() {
                    return Did::Nothing;
                }
                self.give_up_reading(around)
            }
            Step::Held => self.hand_over(around),
            Step::Pausing(_)
            | Step::Locked
            | Step::Viewing
            | Step::Settled
            | Step::Describing(_)
            | Step::Unlocking
            | Step::AskingXa
            | Step::Ending => Did::Nothing,
        }
    }

    fn connect<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let until = around.now.after(self.terms.step);
        let mut dialled = false;
        for (client, setup) in
            [(&mut self.lock, &mut self.lock_setup), (&mut self.view, &mut self.view_setup)]
        {
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
        let ready = self.lock_setup == SETUP_LOCK.len() && self.view_setup == SETUP_VIEW.len();
        if ready && self.lock.is_idle() && self.view.is_idle() {
            self.step = Step::Next;
            return Did::Moved;
        }
        Did::Nothing
    }

    /// Between two things: the next chunk of the cut, or the next cut.
    fn next<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        if self.watching || !around.room || !self.view.is_idle() || !self.lock.is_idle() {
            return Did::Nothing;
        }
        let Some(name) = around.assembler.gate().next_table().cloned() else { return Did::Nothing };
        let same = self.table.as_ref().is_some_and(|table| table.name == name);
        let fresh = around.now.since(self.cut_at) < self.terms.limits.cut_age && self.waited_for == 0;
        if self.view_open && same && fresh && self.cut_good && around.assembler.gate().is_cut_good() {
            return self.read(around);
        }
        around.assembler.gate_mut().end_cut();
        if self.view_open {
            return self.end_view(around);
        }
        if !same {
            self.table = None;
        }
        self.ask_lock(&name, false, around);
        Did::Moved
    }

    fn end_view<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        self.view.ask("ROLLBACK", around.now.after(self.terms.step), around.out);
        self.step = Step::Ending;
        Did::Moved
    }

    // ---- the cut -----------------------------------------------------------------------------

    fn ask_lock<P: Probe>(&mut self, name: &CopiedTable, write: bool, around: &mut Around<'_, P>) {
        let processed = around.assembler.processed().clone();
        around.assembler.gate_mut().begin_cut(name, &processed);
        self.lock_wanted_since.get_or_insert(around.now);
        let kind = if write { "WRITE" } else { "READ" };
        let sql = format!("LOCK TABLES {} {kind}", quoted_table(&name.0, &name.1));
        let until = around.now.after(self.lock_bound(write)).after(self.terms.step);
        self.lock.ask(&sql, until, around.out);
        self.step = Step::Locking { write, since: around.now, killed: false };
    }

    fn not_locked<P: Probe>(&mut self, write: bool, error: &ServerError, around: &mut Around<'_, P>) -> Did {
        around.assembler.gate_mut().end_cut();
        let Some(name) = around.assembler.gate().next_table().cloned() else {
            self.step = Step::Next;
            return Did::Moved;
        };
        match error.number() {
            ER_QUERY_INTERRUPTED | ER_LOCK_WAIT_TIMEOUT | ER_LOCK_DEADLOCK if !write && !self.read_only => {
                self.ask_lock(&name, true, around);
                return Did::Moved;
            }
            ER_OPTION_PREVENTS_STATEMENT | ER_READ_ONLY_MODE if write => self.read_only = true,
            // The stream will say what became of the table.
            ER_NO_SUCH_TABLE | ER_QUERY_INTERRUPTED | ER_LOCK_WAIT_TIMEOUT | ER_LOCK_DEADLOCK => {}
            ER_TABLEACCESS_DENIED | ER_DBACCESS_DENIED => {
                let halt = Halt::new(Code::MissingPrivilege).with_server_error(error.number());
                let halt = halt.of_table(&name.0, &name.1).with(Detail::Privilege("SELECT, LOCK TABLES"));
                return Did::Halt(halt);
            }
            _ => return self.of_failure(error, around),
        }
        let since = self.lock_wanted_since.unwrap_or(around.now);
        if around.now.since(since) < self.terms.limits.lock_max {
            self.step = Step::Pausing(around.now.after(self.terms.limits.lock_pause));
        } else {
            self.lock.ask("XA RECOVER", around.now.after(self.terms.step), around.out);
            self.step = Step::AskingXa;
        }
        Did::Moved
    }

    fn of_failure<P: Probe>(&mut self, error: &ServerError, around: &mut Around<'_, P>) -> Did {
        match failed(error, "SELECT, LOCK TABLES") {
            Said::Refused(halt) => Did::Halt(halt),
            Said::Lost(halt) => self.lose(halt, around),
            Said::Nothing | Said::Moved | Said::LoggedIn | Said::Answer(_) | Said::Row(_) | Said::End(_) => {
                Did::Nothing
            }
        }
    }

    /// The set is known, and the lock still held.
    fn settle<P: Probe>(&mut self, rows: &ResultSet, around: &mut Around<'_, P>) -> Did {
        let text = rows.cell(0, 0).flatten().and_then(|cell| core::str::from_utf8(cell).ok());
        let Some(gtid_set) = text.and_then(|text| text.parse::<GtidSet>().ok()) else {
            let note = Detail::Note("The server's GTID set could not be read");
            return self.lose(Halt::new(Code::SourceUnreachable).with(note), around);
        };
        self.gtid_set = gtid_set;
        let Some(name) = around.assembler.gate().next_table().cloned() else {
            return self.unlock(around);
        };
        let known = self.table.as_ref().is_some_and(|table| table.name == name);
        if known && around.assembler.gate().is_described() {
            return self.unlock(around);
        }
        let describe = Describe::new(&name.0, &name.1);
        self.lock.ask(&describe.statement(), around.now.after(self.terms.step), around.out);
        self.step = Step::Describing(Box::new(describe));
        Did::Moved
    }

    fn describe<P: Probe>(
        &mut self,
        describe: Describe,
        rows: &ResultSet,
        around: &mut Around<'_, P>,
    ) -> Did {
        let Some(name) = around.assembler.gate().next_table().cloned() else {
            return self.unlock(around);
        };
        match describe.on_result(rows) {
            Ok(DescribeStep::More(describe)) => {
                self.lock.ask(&describe.statement(), around.now.after(self.terms.step), around.out);
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

    fn described<P: Probe>(
        &mut self,
        name: CopiedTable,
        mut described: Described,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        let refused = |note| {
            let halt = Halt::new(Code::SnapshotKeyUnsupported).of_table(&name.0, &name.1);
            halt.with(Detail::Note(note))
        };
        match &described.kind {
            TableKind::InnoDb => {}
            TableKind::Engine(_) => return Err(refused("Its storage engine has no consistent view")),
            TableKind::View => return Err(refused("It is a view")),
        }
        let captured = &self.terms.captured;
        described.version.leave_out(|column| captured.column_captured(&name.0, &name.1, column));
        let key = described.key().map_err(|reason| refused(of_key(&reason)))?;
        // The gate could copy it as a whole, from one cut; that is not tried against servers yet.
        if !key.is_ordered_here() {
            return Err(refused("Keys of text are not copied yet"));
        }
        let key = Some(Arc::new(key));
        let version = Arc::new(described.version);
        let fingerprint = key.as_ref().map_or(0, |key| fingerprint(&version, key));
        around.assembler.gate_mut().described(&version, key.as_ref(), fingerprint);
        self.upto = None;
        self.table = Some(Table { name, version, key, fingerprint });
        Ok(())
    }

    fn unlock<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        // Before the lock is given up: behind it come changes that are not in the set.
        self.cut_good = around.assembler.gate_mut().cut_is(&self.gtid_set);
        self.lock.ask("UNLOCK TABLES", around.now.after(self.terms.step), around.out);
        self.step = Step::Unlocking;
        Did::Moved
    }

    // ---- chunks ------------------------------------------------------------------------------

    fn read<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let Some(table) = &self.table else { return Did::Nothing };
        let copy = around.assembler.gate().copies().get(&table.name).cloned();
        let copy = copy.unwrap_or_else(TableCopy::waiting);
        let name = quoted_table(&table.name.0, &table.name.1);
        let list = select_list(&table.version);
        let Some(key) = &table.key else {
            let sql = format!("SELECT {list} FROM {name}");
            self.read_rows(&sql, around);
            return Did::Moved;
        };
        let mut index = String::new();
        quoted(key.name(), &mut index);
        let begun = copy.state == CopyState::Copying;
        if begun {
            self.upto.clone_from(&copy.upto);
        }
        let sql = match &self.upto {
            None if !begun => {
                // The end of the copy comes first: what comes behind it is the stream's.
                let order = descending(&table.version, key);
                format!("SELECT {list} FROM {name} FORCE INDEX ({index}) ORDER BY {order} LIMIT 1")
            }
            upto => {
                let behind = copy.key.as_ref().map(|last| key.behind(last));
                let up_to = upto.as_ref().map(|last| key.up_to(last));
                let mut conditions = String::new();
                for condition in [behind, up_to].into_iter().flatten() {
                    let Some(condition) = condition else {
                        let halt = Halt::new(Code::SnapshotSourceChanged);
                        return Did::Halt(halt.of_table(&table.name.0, &table.name.1));
                    };
                    conditions.push_str(if conditions.is_empty() { " WHERE (" } else { " AND (" });
                    conditions.push_str(&condition);
                    conditions.push(')');
                }
                let (order, limit) = (key.order_by(), self.terms.limits.chunk_rows);
                format!(
                    "SELECT {list} FROM {name} FORCE INDEX ({index}){conditions} ORDER BY {order} LIMIT {limit}"
                )
            }
        };
        self.read_rows(&sql, around);
        Did::Moved
    }

    fn read_rows<P: Probe>(&mut self, sql: &str, around: &mut Around<'_, P>) {
        self.encoder = self.table.as_ref().map(|table| RowEncoder::new(Arc::clone(&table.version)));
        self.result_rows = 0;
        self.result_open = true;
        self.last = false;
        self.view.read(sql, self.terms.row_max, around.now.after(SILENCE_MAX), around.out);
        self.step = Step::Reading;
    }

    fn is_finding_end<P: Probe>(&self, around: &Around<'_, P>) -> bool {
        let Some(table) = &self.table else { return false };
        let copy = around.assembler.gate().copies().get(&table.name);
        table.key.is_some()
            && self.upto.is_none()
            && copy.is_some_and(|copy| copy.state == CopyState::Waiting)
    }

    fn row<P: Probe>(&mut self, row: &TextRow, around: &mut Around<'_, P>) -> Did {
        self.view.deadline = Some(around.now.after(SILENCE_MAX));
        let Some(encoder) = &mut self.encoder else { return Did::Moved };
        if let Err(error) = encoder.push(&mut row.cells()) {
            let _ = error;
            let halt = Halt::new(Code::ValueMalformed)
                .with(Detail::Note("A row of the copy does not fit its table"));
            let name = self.table.as_ref().map(|table| table.name.clone()).unwrap_or_default();
            return Did::Halt(halt.of_table(&name.0, &name.1));
        }
        self.result_rows = self.result_rows.saturating_add(1);
        if encoder.bytes() >= self.terms.limits.chunk_bytes && !self.is_finding_end(around) {
            self.step = Step::Held;
        }
        Did::Moved
    }

    fn end_of_rows<P: Probe>(&mut self, end: &RowsEnd, around: &mut Around<'_, P>) -> Did {
        self.result_open = false;
        match end {
            RowsEnd::Complete => {}
            RowsEnd::NoRows(_) => return self.lose(Halt::new(Code::SourceUnreachable), around),
            RowsEnd::Failed(error) => {
                // The table was changed, or somebody killed the statement: another cut.
                let _ = error;
                self.cut_good = false;
                self.step = Step::End;
                self.failures = self.failures.saturating_add(1);
                return match self.is_over(around.now) {
                    true => Did::Halt(Halt::new(Code::SourceUnreachable).with_server_error(error.number())),
                    false => Did::Moved,
                };
            }
        }
        if self.is_finding_end(around) {
            self.upto = match self.take_rows() {
                Ok((None, _)) => None,
                Ok((Some(_), key)) => key,
                Err(halt) => return Did::Halt(halt),
            };
            if self.upto.is_some() {
                self.step = Step::Next;
                return Did::Moved;
            }
            self.last = true;
        } else {
            let whole = self.table.as_ref().is_none_or(|table| table.key.is_none());
            self.last = whole || self.result_rows < self.terms.limits.chunk_rows;
        }
        self.step = Step::Held;
        Did::Moved
    }

    fn take_rows(&mut self) -> Result<(Option<RowsEvent>, Option<KeyParts>), Halt> {
        let Some(table) = &self.table else { return Ok((None, None)) };
        let malformed = || Halt::new(Code::ValueMalformed).of_table(&table.name.0, &table.name.1);
        let rows = match &mut self.encoder {
            Some(encoder) => encoder.take().map_err(|_| malformed())?,
            None => None,
        };
        let Some(rows) = rows else { return Ok((None, None)) };
        let (mut walk, mut left, mut key) = (RowWalk::default(), rows.changes(), None);
        walk.start(&rows);
        while let Some(change) = walk.next(&rows).map_err(|_| malformed())? {
            left = left.saturating_sub(1);
            if left == 0 {
                key = change.after().and_then(|row| table.key.as_ref()?.value(row));
            }
        }
        Ok((Some(rows), key))
    }

    /// The chunk is complete: it is handed over where the stream has come to its set.
    fn hand_over<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        if !around.assembler.gate().is_cut_good() {
            return self.give_up_reading(around);
        }
        let reached = around.assembler.gate().is_reached(around.assembler.processed());
        if !reached && around.assembler.gate().holds_back() {
            // What waits for this chunk stands before what the chunk waits for: another server's order.
            return self.give_up_reading(around);
        }
        if !reached || !around.assembler.is_between_units() {
            return Did::Nothing;
        }
        let (rows, key) = match self.take_rows() {
            Ok(taken) => taken,
            Err(halt) => return Did::Halt(halt),
        };
        let Some(table) = &self.table else { return Did::Nothing };
        let before = around.assembler.gate().copies().get(&table.name).cloned();
        let before = before.unwrap_or_else(TableCopy::waiting);
        let number = before.chunks;
        let mut copy = TableCopy {
            state: CopyState::Copying,
            key: key.or(before.key),
            upto: self.upto.clone(),
            key_columns: table.fingerprint,
            gtid_set: self.gtid_set.clone(),
            chunks: number.saturating_add(1),
            rows: before.rows.saturating_add(rows.as_ref().map_or(0, RowsEvent::changes)),
        };
        let last = self.last || (copy.upto.is_some() && copy.key == copy.upto);
        if last {
            copy = copy.done();
        }
        self.trouble_since = None;
        self.failures = 0;
        self.lock_wanted_since = None;
        let chunk = SnapshotChunk {
            seq: Seq(0),
            table: Arc::clone(&table.version),
            rows,
            number,
            gtid_set: self.gtid_set.clone(),
            last,
            advance: Box::default(),
        };
        self.step = if self.result_open { Step::Reading } else { Step::Next };
        if last {
            self.table = None;
            self.upto = None;
            self.encoder = None;
            if core::mem::take(&mut self.result_open) {
                self.view.close(around.out);
                self.view_open = false;
                self.step = Step::Connecting;
            }
        }
        Did::Chunk(Box::new(chunk), Box::new(copy))
    }

    /// What is being read is of no use any more.
    fn give_up_reading<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        around.assembler.gate_mut().end_cut();
        self.cut_good = false;
        if self.result_open {
            // The rest of the rows would have to be read.
            self.view.close(around.out);
            self.view_open = false;
            self.result_open = false;
            self.step = Step::Connecting;
        } else {
            self.step = Step::Next;
        }
        Did::Moved
    }

    // ---- what connections say ----------------------------------------------------------------

    fn heard<P: Probe>(&mut self, link: CopyLink, said: Said, around: &mut Around<'_, P>) -> Did {
        match said {
            Said::Nothing => Did::Nothing,
            Said::Moved => Did::Moved,
            Said::LoggedIn => self.set_up(link, None, around),
            Said::Answer(result) => self.answered(link, result, around),
            Said::Row(row) => self.row(&row, around),
            Said::End(end) => self.end_of_rows(&end, around),
            Said::Lost(halt) => self.lose(halt, around),
            Said::Refused(halt) => Did::Halt(halt),
        }
    }

    /// The next statement of the session's beginning, or the judgement of the last.
    fn set_up<P: Probe>(
        &mut self,
        link: CopyLink,
        answer: Option<QueryResult>,
        around: &mut Around<'_, P>,
    ) -> Did {
        let until = around.now.after(self.terms.step);
        let (client, done, statements) = match link {
            CopyLink::Lock => (&mut self.lock, &mut self.lock_setup, &SETUP_LOCK),
            CopyLink::View(_) => (&mut self.view, &mut self.view_setup, &SETUP_VIEW),
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
                    return self.lose(Halt::new(Code::SnapshotSourceChanged), around);
                }
            }
        }
        if let Some(statement) = statements.get(*done) {
            client.ask(statement, until, around.out);
        }
        Did::Moved
    }

    fn answered<P: Probe>(&mut self, link: CopyLink, result: QueryResult, around: &mut Around<'_, P>) -> Did {
        let unset = match link {
            CopyLink::Lock => self.lock_setup < SETUP_LOCK.len(),
            CopyLink::View(_) => self.view_setup < SETUP_VIEW.len(),
        };
        if unset {
            return self.set_up(link, Some(result), around);
        }
        match link {
            CopyLink::Lock => self.lock_answered(result, around),
            CopyLink::View(_) => self.view_answered(result, around),
        }
    }

    fn lock_answered<P: Probe>(&mut self, result: QueryResult, around: &mut Around<'_, P>) -> Did {
        if core::mem::take(&mut self.watching) {
            return self.watched(&result, around);
        }
        match (core::mem::replace(&mut self.step, Step::Next), result) {
            (Step::Locking { .. }, QueryResult::Ok(_)) => {
                self.step = Step::Locked;
                Did::Moved
            }
            (Step::Locking { write, .. }, QueryResult::Failed(error)) => {
                self.not_locked(write, &error, around)
            }
            (Step::Settled, QueryResult::Rows(rows)) => self.settle(&rows, around),
            (Step::Describing(describe), QueryResult::Rows(rows)) => self.describe(*describe, &rows, around),
            (Step::Unlocking, QueryResult::Ok(_)) => {
                if !self.cut_good {
                    // What the stream has shown is not counted yet.
                    self.step = Step::End;
                }
                Did::Moved
            }
            (Step::AskingXa, result) => {
                let code = match result {
                    QueryResult::Rows(rows) if !rows.rows.is_empty() => Code::SnapshotBlockedByXa,
                    QueryResult::Rows(_) | QueryResult::Ok(_) | QueryResult::Failed(_) => {
                        Code::SnapshotLockUnavailable
                    }
                };
                let name = around.assembler.gate().next_table().cloned().unwrap_or_default();
                Did::Halt(Halt::new(code).of_table(&name.0, &name.1))
            }
            (_, QueryResult::Failed(error)) => self.of_failure(&error, around),
            (_, QueryResult::Ok(_) | QueryResult::Rows(_)) => self.out_of_step(around),
        }
    }

    fn view_answered<P: Probe>(&mut self, result: QueryResult, around: &mut Around<'_, P>) -> Did {
        match (&self.step, result) {
            (Step::Viewing, QueryResult::Ok(_)) => {
                self.view_open = true;
                self.cut_at = around.now;
                self.watch_at = around.now.after(WATCH_EVERY);
                self.waited_for = 0;
                self.lock.ask(EXECUTED, around.now.after(self.terms.step), around.out);
                self.step = Step::Settled;
                Did::Moved
            }
            (Step::Ending, QueryResult::Ok(_)) => {
                self.view_open = false;
                self.step =
                    if self.cut_good { Step::Next } else { Step::Pausing(around.now.after(RECUT_PAUSE)) };
                Did::Moved
            }
            // Of KILL QUERY: the statement may have ended before it.
            (Step::Locking { .. } | Step::Locked | Step::Pausing(_) | Step::Next | Step::AskingXa, _) => {
                Did::Moved
            }
            (_, QueryResult::Failed(error)) => self.of_failure(&error, around),
            (_, QueryResult::Ok(_) | QueryResult::Rows(_)) => self.out_of_step(around),
        }
    }

    fn out_of_step<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let note = Detail::Note("The server's answer does not fit what was asked");
        self.lose(Halt::new(Code::SourceUnreachable).with(note), around)
    }

    /// Who waits for our view makes all who come later wait, too: it is given up after this chunk, and if that takes
    /// long, at once.
    fn watched<P: Probe>(&mut self, result: &QueryResult, around: &mut Around<'_, P>) -> Did {
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
            return self.give_up_reading(around);
        }
        Did::Moved
    }

    /// A connection is gone or of no use: both are made anew, and the cut with them.
    fn lose<P: Probe>(&mut self, halt: Halt, around: &mut Around<'_, P>) -> Did {
        self.close(around.out);
        around.assembler.gate_mut().end_cut();
        self.view_open = false;
        self.watching = false;
        self.result_open = false;
        self.cut_good = false;
        self.failures = self.failures.saturating_add(1);
        if self.is_over(around.now) {
            return Did::Halt(halt);
        }
        let wait = Duration::from_millis(100).saturating_mul(1 << self.failures.min(6));
        self.step = Step::Pausing(around.now.after(wait));
        Did::Moved
    }

    fn is_over(&mut self, now: Now) -> bool {
        let since = *self.trouble_since.get_or_insert(now);
        now.since(since) >= self.terms.trouble_max
    }
}

/// The key's columns from its end.
fn descending(version: &TableVersion, key: &CopyKey) -> String {
    let mut out = String::new();
    for part in key.parts() {
        if !out.is_empty() {
            out.push_str(", ");
        }
        if let Some(column) = version.columns().get(part.column()) {
            quoted(&column.name, &mut out);
        }
        out.push_str(" DESC");
    }
    out
}

/// Tells keys apart that cannot be compared with each other: another index, other columns, other types.
fn fingerprint(version: &TableVersion, key: &CopyKey) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"capstan key 1");
    for part in key.parts() {
        if let Some(column) = version.columns().get(part.column()) {
            let collation = match part.order() {
                KeyOrder::Core => "",
                KeyOrder::Server { collation, .. } => collation,
            };
            let text = format!("{}\0{}\0{collation}", column.name, column.column_type.type_name());
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let full: [u8; 32] = hash.finalize().into();
    full.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

const fn of_key(reason: &KeyUnsupported) -> &'static str {
    match reason {
        KeyUnsupported::NoKey => "It has no primary key and no unique key without NULL",
        KeyUnsupported::Expression(_) => "Part of its key is an expression",
        KeyUnsupported::Prefix { .. } => "Its key holds only the beginning of a column",
        KeyUnsupported::LeftOut(_) => "A column of its key is left out",
        KeyUnsupported::Collation { .. } => {
            "A column of its key has a collation whose weights are not its order"
        }
        KeyUnsupported::Type(_) => "A column of its key is of a type that no key has",
    }
}

fn of_description(error: &DescribeError) -> Halt {
    match error {
        DescribeError::NoSuchTable => Halt::new(Code::SnapshotSourceChanged),
        DescribeError::ColumnMissing => {
            Halt::new(Code::MissingPrivilege).with(Detail::Privilege("SELECT on the whole table"))
        }
        DescribeError::ColumnType(_) | DescribeError::Labels(_) => Halt::new(Code::UnsupportedColumnType),
        DescribeError::Unreadable => Halt::new(Code::SnapshotSourceChanged)
            .with(Detail::Note("The table's description does not add up")),
    }
}
