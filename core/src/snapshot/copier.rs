//! The copy of one table after the other: cut, chunks, next cut.
//!
//! ```text
//! Connecting (→ Surveying) → Next (→ Looking) → Locking → Viewing → Settled (→ Comparing) (→ Describing) → Unlocking → Next
//! → Reading ⇄ Held → Next …
//! ```
//!
//! A cut is made by two connections: one locks the table, the other begins its consistent view while the lock is
//! held, the first reads `gtid_executed` and unlocks. The view of the table then holds exactly the changes of that
//! set. A READ lock waits behind later writers and may starve, so after a moment a WRITE lock is asked for, which is
//! granted as soon as the transactions that are open now end; the other connection kills the statement that waits for
//! too long, so that writers behind it never wait longer than that.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    format,
    vec::Vec,
};
use core::time::Duration;

use bytes::Bytes;

use self::{
    compare::{Asked, Ready},
    cut::{BEGIN_VIEW, waiting_for},
    lanes::{Ahead, Lane, Strides},
    load::{Load, Measure},
    look::{Look, Looked},
    table::{Survey, Table},
};
use super::{
    client::{Client, of_loss},
    limits::{CopyLimits, CopyWait},
    rows::Describe,
};
use crate::{
    assemble::Assembler,
    capture::CapturedSet,
    deliver::{CopiedTable, KeyParts, SnapshotChunk, TableCopy},
    gtid::{GtidSet, Uuid},
    halt::{Code, Detail, Halt},
    link::Login,
    probe::{Mark, Mutant, Probe},
    replica::{CopyLink, DialEpoch, LostReason, Output},
    time::Now,
};

mod chunks;
mod compare;
mod cut;
mod lanes;
mod load;
mod look;
mod sessions;
mod table;

/// What the copy is told of the pipeline.
#[derive(Clone)]
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
    /// Tables that are copied as a whole, and why.
    pub(crate) whole: &'a mut Vec<(CopiedTable, &'static str)>,
    /// About how many rows each table has.
    pub(crate) estimates: &'a mut BTreeMap<CopiedTable, u64>,
    /// Why nothing is begun.
    pub(crate) waits: &'a mut Option<CopyWait>,
    /// How many connections read, and how many were to.
    pub(crate) connections: &'a mut Option<(u8, u8)>,
    /// Nothing more is to be begun.
    pub(crate) paused: bool,
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
    /// Its connections come to another server than the stream's.
    Elsewhere,
    /// It cannot go on.
    Halt(Halt),
}

/// The copy of the tables of one stream.
pub(crate) struct Copier {
    terms: Terms,
    lock: Client,
    lanes: Vec<Lane>,
    /// Lanes that have a view of this cut, or are to have one.
    views: usize,
    /// Since when there are fewer lanes than were asked for, for want of room at the server.
    fewer_since: Option<Now>,
    /// What was found out about tables before their cut; `None`: nothing that can be relied on.
    looked: BTreeMap<CopiedTable, Option<Looked>>,
    compare: Client,
    lock_setup: usize,
    compare_setup: usize,
    /// What the server compares.
    asked: Option<Asked>,
    step: Step,
    /// The tables were looked at.
    surveyed: bool,
    table: Option<Table>,
    /// Lanes that read, in the order of what they read.
    order: VecDeque<usize>,
    ahead: Ahead,
    strides: Strides,
    /// When the views were opened.
    cut_at: Now,
    /// Chunks that have come of them.
    chunks_of_cut: u64,
    gtid_set: GtidSet,
    /// Whether the cut is of use, as far as was known when it was made.
    cut_good: bool,
    upto: Option<KeyParts>,
    /// The chunk that is next, once it is complete.
    ready: Option<Ready>,
    trouble_since: Option<Now>,
    failures: u32,
    lock_wanted_since: Option<Now>,
    /// The last READ lock was not granted.
    starves: bool,
    read_only: bool,
    watch_at: Now,
    watching: bool,
    can_watch: bool,
    /// How often in a row somebody was seen who waits for our view.
    waited_for: u8,
    /// The table that the lock was asked for last.
    cutting: CopiedTable,
    /// A table that is not there, and what the source had executed then.
    missing: Option<(CopiedTable, GtidSet)>,
    load: Load,
    /// Prepared XA transactions that stand beside a lock that is not granted, and since when.
    xa: BTreeMap<Vec<u8>, Now>,
}

enum Step {
    Connecting,
    Pausing(Now),
    Surveying(Box<Survey>),
    Next,
    Looking(Box<Look>),
    Locking {
        write: bool,
        since: Now,
        killed: bool,
    },
    Locked,
    Viewing,
    Settled,
    Comparing(Box<Looked>),
    Describing(Box<Describe>),
    Unlocking,
    AskingXa {
        last: bool,
    },
    Missing,
    Estimating,
    Measuring(Measure),
    Ending,
    End,
    /// The first lane reads.
    Reading,
    /// Its chunk waits to be handed over.
    Held,
}

impl Copier {
    pub(crate) fn new(terms: Terms) -> Self {
        let connections = connections(&terms.limits);
        Self {
            terms,
            views: 1,
            fewer_since: None,
            looked: BTreeMap::new(),
            lock: Client::new(CopyLink::Lock),
            lanes: (0..connections).map(Lane::new).collect(),
            compare: Client::new(CopyLink::Compare),
            lock_setup: 0,
            compare_setup: 0,
            asked: None,
            step: Step::Connecting,
            surveyed: false,
            table: None,
            order: VecDeque::new(),
            ahead: Ahead::default(),
            strides: Strides::default(),
            cut_at: Now(0),
            chunks_of_cut: 0,
            gtid_set: GtidSet::new(),
            cut_good: false,
            upto: None,
            ready: None,
            trouble_since: None,
            failures: 0,
            lock_wanted_since: None,
            starves: false,
            read_only: false,
            watch_at: Now(0),
            watching: false,
            can_watch: true,
            waited_for: 0,
            cutting: CopiedTable::default(),
            missing: None,
            load: Load::default(),
            xa: BTreeMap::new(),
        }
    }

    // ---- inputs ------------------------------------------------------------------------------

    /// The connection, if it is of this dial.
    fn client(&mut self, link: CopyLink, epoch: DialEpoch) -> Option<&mut Client> {
        let client = match link {
            CopyLink::Lock => &mut self.lock,
            CopyLink::View(number) => &mut self.lanes.get_mut(usize::from(number))?.view,
            CopyLink::Compare => &mut self.compare,
        };
        Some(client).filter(|client| client.is_current(epoch))
    }

    /// `false`: nobody asked.
    pub(crate) fn on_connected(&mut self, link: CopyLink, epoch: DialEpoch, seed: [u8; 32]) -> bool {
        let login = self.terms.login.clone();
        self.client(link, epoch).is_none_or(|client| client.on_connected(&login, seed))
    }

    /// `None`: nobody asked.
    pub(crate) fn on_secured<P: Probe>(
        &mut self,
        link: CopyLink,
        epoch: DialEpoch,
        around: &mut Around<'_, P>,
    ) -> Option<Did> {
        let Some(client) = self.client(link, epoch) else { return Some(Did::Nothing) };
        let said = client.on_secured(around.out)?;
        Some(self.heard(link, said, around))
    }

    pub(crate) fn on_bytes(&mut self, link: CopyLink, epoch: DialEpoch, bytes: Bytes) {
        if let Some(client) = self.client(link, epoch) {
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
        if self.client(link, epoch).is_some() {
            self.heard(link, of_loss(reason), around)
        } else {
            Did::Nothing
        }
    }

    /// The stream is left, and the copy with it.
    pub(crate) fn close(&mut self, out: &mut VecDeque<Output>) {
        self.lock.close(out);
        self.lanes.iter_mut().for_each(|lane| lane.view.close(out));
        self.compare.close(out);
    }

    /// When it wants to be woken.
    pub(crate) fn wake(&self) -> Option<Now> {
        let own = match &self.step {
            Step::Pausing(until) => Some(*until),
            // The other connection is asked to end it, once it has answered what it was asked before.
            Step::Locking { write, since, killed: false } if self.can_kill() => {
                Some(since.after(self.lock_bound(*write)))
            }
            Step::Next => self.load.wake(),
            Step::Locking { .. }
            | Step::Connecting
            | Step::Surveying(_)
            | Step::Locked
            | Step::Viewing
            | Step::Settled
            | Step::Looking(_)
            | Step::Comparing(_)
            | Step::Describing(_)
            | Step::Unlocking
            | Step::AskingXa { .. }
            | Step::Missing
            | Step::Estimating
            | Step::Measuring(_)
            | Step::Ending
            | Step::End
            | Step::Reading
            | Step::Held => None,
        };
        [own, self.watch_due(), self.deadline()].into_iter().flatten().min()
    }

    /// When some connection must have answered.
    fn deadline(&self) -> Option<Now> {
        let views = self.lanes.iter().map(|lane| lane.view.deadline);
        views.chain([self.lock.deadline, self.compare.deadline]).flatten().min()
    }

    /// When it is to be asked who waits for the view, if that can be asked then.
    fn watch_due(&self) -> Option<Now> {
        // While they are being opened the lock's connection has something else to do.
        let can = self.are_views_open() && self.can_watch && !self.watching;
        (can && self.table.is_some() && self.lock.is_idle()).then_some(self.watch_at)
    }

    // ---- one step ----------------------------------------------------------------------------

    pub(crate) fn advance<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        if around.assembler.gate().is_done() {
            self.close(around.out);
            return Did::Done;
        }
        let now = around.now;
        self.excuse_silence(now, around.room);
        if self.deadline().is_some_and(|at| at <= now) {
            let note = Detail::Note("A connection of the initial copy does not answer");
            return self.lose(Halt::new(Code::SourceUnreachable).with(note), around);
        }
        let said = self.lock.poll(around.out);
        match self.heard(CopyLink::Lock, said, around) {
            Did::Nothing => {}
            did @ (Did::Moved | Did::Chunk(..) | Did::Done | Did::Elsewhere | Did::Halt(_)) => return did,
        }
        let said = self.compare.poll(around.out);
        match self.heard(CopyLink::Compare, said, around) {
            Did::Nothing => {}
            did @ (Did::Moved | Did::Chunk(..) | Did::Done | Did::Elsewhere | Did::Halt(_)) => return did,
        }
        match self.poll_views(around) {
            Did::Nothing => {}
            did @ (Did::Moved | Did::Chunk(..) | Did::Done | Did::Elsewhere | Did::Halt(_)) => return did,
        }
        self.act(around)
    }

    /// What the step asks for without an answer.
    fn act<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let now = around.now;
        if let Some(did) = self.ask_to_compare(around) {
            return did;
        }
        if let Some(table) = &self.table
            && self.watch_due().is_some_and(|at| at <= now)
        {
            self.watching = true;
            self.lock.ask(&waiting_for(&table.name), now.after(self.terms.step), around.out);
            return Did::Moved;
        }
        let idle = self.are_views_idle();
        let (to_read, to_write) = (self.lock_bound(false), self.lock_bound(true));
        match &mut self.step {
            Step::Connecting => self.connect(around),
            Step::Pausing(until) if *until <= now => {
                self.step = Step::Connecting;
                Did::Moved
            }
            Step::Next => self.next(around),
            Step::Locking { write, since, killed } => {
                let due = since.after(if *write { to_write } else { to_read });
                let Some(lane) = self.lanes.first_mut().filter(|lane| lane.view.is_idle()) else {
                    return Did::Nothing;
                };
                if *killed || due > now {
                    return Did::Nothing;
                }
                *killed = true;
                let kill = match P::mutant(Mutant::NeverKill) {
                    false => format!("KILL QUERY {}", self.lock.id),
                    true => "DO 0".into(),
                };
                lane.view.ask(&kill, now.after(self.terms.step), around.out);
                Did::Moved
            }
            Step::Locked if idle => {
                for lane in self.lanes.iter_mut().take(self.views) {
                    lane.view.ask(BEGIN_VIEW, now.after(self.terms.step), around.out);
                }
                self.step = Step::Viewing;
                Did::Moved
            }
            Step::End => self.end_view(around),
            Step::Reading => {
                if !around.assembler.gate().is_cut_good() {
                    return self.give_up_reading(around);
                }
                self.read_ahead(around)
            }
            Step::Held => match self.hand_over(around) {
                Did::Nothing => self.read_ahead(around),
                did @ (Did::Moved | Did::Chunk(..) | Did::Done | Did::Elsewhere | Did::Halt(_)) => did,
            },
            Step::Pausing(_)
            | Step::Surveying(_)
            | Step::Locked
            | Step::Viewing
            | Step::Settled
            | Step::Looking(_)
            | Step::Comparing(_)
            | Step::Describing(_)
            | Step::Unlocking
            | Step::AskingXa { .. }
            | Step::Missing
            | Step::Estimating
            | Step::Measuring(_)
            | Step::Ending => Did::Nothing,
        }
    }

    /// Between two things: the next chunk of the cut, or the next cut.
    fn next<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        if self.watching || !around.room || !self.are_views_idle() || !self.lock.is_idle() {
            self.load.put_off(around.now);
            return Did::Nothing;
        }
        let Some(name) = around.assembler.gate().next_table().cloned() else { return Did::Nothing };
        let same = self.table.as_ref().is_some_and(|table| table.name == name);
        let may = match self.may_begin(around) {
            Ok(may) => may,
            Err(did) => return did,
        };
        let fresh = self.is_cut_fresh(around.now) && may;
        if self.is_view_open() && same && fresh && self.cut_good && around.assembler.gate().is_cut_good() {
            return self.read(around);
        }
        if self.is_view_open() && same && !fresh {
            P::mark(Mark::CutAged);
        }
        around.assembler.gate_mut().end_cut();
        if self.is_view_open() {
            return self.end_view(around);
        }
        if !may {
            return Did::Nothing;
        }
        if !same {
            self.table = None;
            self.strides = Strides::default();
        }
        if self.more_views::<P>(around.now) {
            return Did::Moved;
        }
        let described = same && around.assembler.gate().is_described();
        if !described && !self.looked.contains_key(&name) {
            return self.look(name, around);
        }
        self.views = self.views_of_cut(&name);
        self.ask_lock(&name, false, around);
        Did::Moved
    }
}

/// How many connections are to read.
fn connections(limits: &CopyLimits) -> u8 {
    limits.connections.unwrap_or(CopyLimits::CONNECTIONS_DEFAULT).clamp(1, CopyLimits::CONNECTIONS_MAX)
}
