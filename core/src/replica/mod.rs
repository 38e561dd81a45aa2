//! The state machine that drives a replication link and decides what happens next.
//!
//! ```text
//! Loading → Dialling → Login (→ Securing) → Gating → Claiming → Gating → Registering → Streaming
//!    ↑                                                                            │
//!    └────────────── Backoff ←──────── any trouble of the link ←──────────────────┘
//! ```
//!
//! Pull [`Replica::poll_output`] until `Idle`, `Halt` or `Stopped`; carry out what it says; give one
//! [`Input`]; pull again. Each phase owns its data and is taken out while it is worked on, with
//! `Phase::Parked` in its place, so nothing can go on with a half-changed machine.

mod copy;
mod entropy;
mod gates;
mod phase;
pub mod requirements;
mod seam;
mod stream;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use core::{fmt, time::Duration};

pub use seam::{
    ApiMisuse, CopyLink, CopyRead, DialEpoch, Input, Link, LoadReason, Loaded, LostReason, Output, Read,
    WakeReason,
};

use self::{entropy::Entropy, gates::Findings, phase::Phase};
use crate::{
    assemble::Assembler,
    capture::CapturedSet,
    config::{Config, Start},
    deliver::{CopiedTable, Event, FailureClass, Holds, Position, Seq, SinkFailure},
    gtid::{GtidSet, Uuid},
    halt::{Code, Halt},
    probe::{Mark, Mutant, Probe, Quiet},
    snapshot::{
        CopyWait,
        copier::{Copier, Terms},
    },
    time::{Now, SourceTime},
};

/// How much is read at once while nothing holds it back.
const READ_MAX: usize = 256 << 10;

/// Shortest wait after trouble: full jitter may draw zero, and zero is a hot loop.
const BACKOFF_MIN_US: u64 = 10_000;

/// What a server has sent over the last link that came to its stream.
#[derive(Debug, Default)]
struct Served {
    source: Option<Uuid>,
    /// What had been processed when the stream began.
    from: GtidSet,
    sent: GtidSet,
}

/// A replica of one source. See the [module's page](self).
pub struct Replica<P: Probe = Quiet> {
    config: Config,
    entropy: Entropy,
    now: Now,
    /// When we asked to be woken.
    wake: Option<Now>,
    outputs: VecDeque<Output>,
    /// Whether the last output was `Idle`, so that an input may come.
    drained: bool,
    end: Option<End>,
    phase: Phase<P>,
    epoch: DialEpoch,
    link_open: bool,
    /// Until when the present step of the link must be done.
    link_deadline: Option<Now>,
    last_heard: Now,
    read_paused: bool,
    paused: bool,
    draining: Option<Drain>,
    /// What the drain ends in.
    halting: Option<Halt>,

    asked: Option<(LoadReason, Now)>,
    /// When to ask again after the position could not be read.
    ask_again: Option<(Now, LoadReason)>,
    /// What is durable, as last read or acknowledged; the outer `None`: never read.
    stored: Option<Option<Box<Position>>>,
    owner: u64,
    claim: Claim,
    next_seq: Seq,
    units: VecDeque<UnitOut>,
    retained: usize,
    sink_moved: Now,
    sink_failures: u32,
    sink_trouble_since: Option<Now>,
    /// The sink has failed too often for too long, unless what is stored says that it works after all.
    sink_given_up: Option<Halt>,
    /// The same of questions for the position.
    load_failures: u32,
    load_trouble_since: Option<Now>,
    reapply_at: Option<Now>,

    attempts: u32,
    trouble_since: Option<Now>,
    trouble: Option<Halt>,
    /// The server said that another replica took over; the epoch is looked at before that is believed.
    conflict: Option<u16>,
    /// The server has refused the stream for a lack that the gates had not seen.
    refused_for_lack: bool,
    /// Since when the server's history has lacked what may be counted yet.
    holes_since: Option<Now>,
    /// What came over the last link, and from where.
    served: Served,
    /// Whether this process has verified the source's history once.
    verified: bool,
    facts: Facts,
    /// The initial copy, while the stream runs and something is to be copied.
    copier: Option<Box<Copier>>,
    /// What a copy is told, while the stream runs.
    copy_terms: Option<Box<Terms>>,
    /// Nothing more is begun to be copied.
    copy_paused: bool,
    /// The number of the last dial of the copy.
    copy_epochs: u32,
}

/// For how long transactions are waited for that a server lacks in the midst of those it has.
const HOLES_MAX: Duration = Duration::from_secs(60);

/// Woken later than this, we have slept.
const SLEPT_MIN: Duration = Duration::from_secs(5);

/// So many failures in a row, and no sooner, make a sink that has failed.
const SINK_FAILURES_MIN: u32 = 3;

/// What is known for those who watch.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Facts {
    /// Dials so far.
    pub dials: u64,
    /// Links lost after the stream had begun.
    pub reconnects: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Events received.
    pub events: u64,
    /// Commit time of the newest transaction that was passed.
    pub committed_at: Option<SourceTime>,
    /// What the source had executed at the last connect.
    pub executed: Option<GtidSet>,
    /// What it had purged at the last connect.
    pub purged: Option<GtidSet>,
    /// The last processed transaction is purged, so the source's history could not be verified.
    pub history_unverified: bool,
    /// Tables that this process copies as a whole, and why: each from one view that stays open to its last
    /// row. The stream waits before a change of it that the view lacks, and what is lost begins anew.
    pub copied_whole: Vec<(CopiedTable, &'static str)>,
    /// About how many rows the tables have, by the source's statistics when the copy began.
    pub copy_estimates: BTreeMap<CopiedTable, u64>,
    /// Why the copy waits.
    pub copy_waits: Option<CopyWait>,
    /// How many connections read for the copy, and how many were to: fewer where the source has no room for more.
    pub copy_connections: Option<(u8, u8)>,
    /// The last trouble of the link, until it lives again.
    pub trouble: Option<Code>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drain {
    /// A person or program asked.
    Asked,
    /// The goal of `until` is reached.
    Reached,
    /// What comes next cannot be delivered; what came before it can. `asked`: a person or program has asked,
    /// too, which stands when that turns out not to be durable.
    Halting { asked: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Open,
    Sent(Seq),
    Done,
}

enum End {
    Halted(Halt),
    Stopped,
}

/// A unit that was emitted and is not durable.
struct UnitOut {
    seq: Seq,
    /// What the sink has not moved past of its items.
    bytes: usize,
    /// What it takes until it is durable.
    fixed: usize,
    streamed: bool,
    /// Still being emitted.
    open: bool,
    aborted: bool,
}

impl UnitOut {
    /// All of it that there is was read by the sink, and more is to come: the sink waits for us.
    const fn is_drained(&self) -> bool {
        self.open && self.bytes == 0
    }
}

impl<P: Probe> fmt::Debug for Replica<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Replica({}, {} units out, {} bytes retained)",
            self.state(),
            self.units.len(),
            self.retained
        )
    }
}

impl Replica {
    /// A replica that has not begun. `seed` feeds jitter, the owner's mark and padding; it must be
    /// fresh for every process.
    #[must_use]
    pub fn new(config: Config, seed: [u8; 32], now: Now) -> Self {
        Self::probed(config, seed, now)
    }
}

impl<P: Probe> Replica<P> {
    /// [`Replica::new`] under a probe.
    #[must_use]
    pub fn probed(config: Config, seed: [u8; 32], now: Now) -> Self {
        let mut entropy = Entropy::new(seed);
        let owner = entropy.number();
        let mut replica = Self {
            config,
            entropy,
            now,
            wake: None,
            outputs: VecDeque::new(),
            drained: false,
            end: None,
            phase: Phase::Parked,
            epoch: DialEpoch(0),
            link_open: false,
            link_deadline: None,
            last_heard: now,
            read_paused: true,
            paused: false,
            draining: None,
            halting: None,
            asked: None,
            ask_again: None,
            stored: None,
            owner,
            claim: Claim::Open,
            next_seq: Seq(1),
            units: VecDeque::new(),
            retained: 0,
            sink_moved: now,
            sink_failures: 0,
            sink_trouble_since: None,
            sink_given_up: None,
            load_failures: 0,
            load_trouble_since: None,
            reapply_at: None,
            attempts: 0,
            trouble_since: None,
            trouble: None,
            conflict: None,
            refused_for_lack: false,
            holes_since: None,
            served: Served::default(),
            verified: false,
            facts: Facts::default(),
            copier: None,
            copy_terms: None,
            copy_paused: false,
            copy_epochs: 0,
        };
        match replica.config.check() {
            Ok(()) => replica.ask(LoadReason::BeforeDial),
            Err(halt) => replica.halt(halt),
        }
        replica
    }

    /// Takes one input. Fails only for a bug of the driver; bad bytes end in a retry or a halt.
    pub fn handle_input(&mut self, now: Now, input: Input) -> Result<(), ApiMisuse> {
        if now < self.now {
            return Err(ApiMisuse::ClockWentBack);
        }
        if self.end.is_some() {
            return Err(ApiMisuse::AfterTerminal);
        }
        if !self.drained {
            return Err(ApiMisuse::OutputNotDrained);
        }
        self.slept(now);
        self.now = now;
        self.drained = false;
        match input {
            Input::Tick => {}
            Input::CheckpointLoaded(loaded) => self.on_loaded(loaded)?,
            Input::Connected(Link::Stream, epoch) => self.on_connected(epoch)?,
            Input::Secured(Link::Stream, epoch) => self.on_secured(epoch)?,
            Input::Bytes(Link::Stream, epoch, bytes) => self.on_bytes(epoch, bytes),
            Input::Lost(Link::Stream, epoch, reason) => self.on_lost(epoch, reason),
            Input::Connected(Link::Copy(link), epoch) => self.on_copy_connected(link, epoch)?,
            Input::Secured(Link::Copy(link), epoch) => self.on_copy_secured(link, epoch)?,
            Input::Bytes(Link::Copy(link), epoch, bytes) => self.on_copy_bytes(link, epoch, bytes),
            Input::Lost(Link::Copy(link), epoch, reason) => self.on_copy_lost(link, epoch, reason),
            Input::Durable { upto } => self.on_durable(upto),
            Input::Released { bytes } => self.on_released(bytes),
            Input::SinkFailed(failure) => self.on_sink_failed(&failure),
            Input::Pause => self.paused = true,
            Input::Resume => self.paused = false,
            Input::PauseCopy => self.copy_paused = true,
            Input::ResumeCopy => self.copy_paused = false,
            Input::Drain => self.on_drain(),
        }
        self.due();
        Ok(())
    }

    /// Nobody woke us when we had asked for it: the process was stopped, or its machine slept. What the
    /// world failed to do meanwhile is not held against it, so every count of patience goes on from where
    /// it stood.
    fn slept(&mut self, now: Now) {
        if self.wake.is_none_or(|wake| now.since(wake) <= SLEPT_MIN) {
            return;
        }
        P::mark(Mark::Slept);
        if P::mutant(Mutant::SleepCounts) {
            return;
        }
        // Where in between the sleep began nobody knows.
        let asleep = now.since(self.now);
        self.sink_moved = self.sink_moved.after(asleep);
        self.last_heard = self.last_heard.after(asleep);
        for since in [&mut self.trouble_since, &mut self.sink_trouble_since, &mut self.load_trouble_since] {
            *since = since.map(|since| since.after(asleep));
        }
        self.link_deadline = self.link_deadline.map(|at| at.after(asleep));
        self.asked = self.asked.map(|(reason, since)| (reason, since.after(asleep)));
    }

    /// The next thing to do. `Idle` is always last; `Halt` and `Stopped` are for ever.
    pub fn poll_output(&mut self) -> Output {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            match &self.end {
                Some(End::Halted(halt)) => return Output::Halt(halt.clone()),
                Some(End::Stopped) => return Output::Stopped,
                None => {}
            }
            if self.stopped_if_drained() {
                continue;
            }
            if !self.step() {
                self.drained = true;
                return self.idle();
            }
        }
    }

    /// What it is doing, as one stable lower-case word.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.end {
            Some(End::Halted(_)) => "halted",
            Some(End::Stopped) => "stopped",
            None if self.draining.is_some() => "draining",
            None if self.paused => "paused",
            None => self.phase.name(),
        }
    }

    /// Facts for those who watch.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Bytes that are emitted and neither durable nor released.
    #[must_use]
    pub const fn retained(&self) -> usize {
        self.retained
    }

    /// Everything that was read and put in order on this link, durable or not.
    #[must_use]
    pub fn processed(&self) -> Option<&GtidSet> {
        self.phase.assembler().map(Assembler::processed)
    }

    /// Units emitted and not durable.
    #[must_use]
    pub fn units_out(&self) -> usize {
        self.units.len()
    }

    fn idle(&mut self) -> Output {
        let read = self.credit();
        let paused = read == Read::Paused;
        if self.read_paused && !paused {
            // The silence until now was our doing.
            self.last_heard = self.now;
        }
        self.read_paused = paused;
        let wake = self.next_wake();
        self.wake = wake.map(|(at, _)| at);
        Output::Idle { wake, read, copy: self.copy_credit() }
    }

    fn credit(&self) -> Read {
        if !self.link_open || self.draining.is_some() {
            return Read::Paused;
        }
        let Some(assembler) = self.phase.assembler() else { return Read::UpTo(READ_MAX) };
        // Work that is left undone for lack of credit is never added to.
        if self.paused || self.is_spent() || assembler.is_inflating() || assembler.is_held() {
            return Read::Paused;
        }
        Read::UpTo(READ_MAX)
    }

    /// The sink has as much as it may have.
    fn is_spent(&self) -> bool {
        let spent = self.retained >= self.config.limits.retained_max;
        if spent {
            P::mark(Mark::CreditSpent);
        }
        spent && !P::mutant(Mutant::NoCredit)
    }

    /// Whether the peer's silence is its own.
    fn is_listening(&self) -> bool {
        let streaming = self.phase.assembler().is_some();
        streaming && (!self.read_paused || P::mutant(Mutant::SilenceWhilePaused))
    }

    fn next_wake(&self) -> Option<(Now, WakeReason)> {
        let limits = &self.config.limits;
        let silence = self.is_listening().then(|| self.last_heard.after(limits.silence));
        let progress = self
            .phase
            .assembler()
            .and_then(Assembler::passed_since)
            .map(|since| since.after(limits.progress_every));
        [
            (self.phase.backoff(), WakeReason::Backoff),
            (self.ask_again.map(|(at, _)| at), WakeReason::Backoff),
            (self.link_deadline, WakeReason::Dial),
            (silence, WakeReason::Silence),
            (self.acknowledgement_deadline(), WakeReason::Acknowledgement),
            (progress, WakeReason::Progress),
            (self.reapply_at, WakeReason::Reapply),
            (self.copier.as_ref().and_then(|copier| copier.wake()), WakeReason::Copy),
        ]
        .into_iter()
        .filter_map(|(at, reason)| at.map(|at| (at, reason)))
        .min()
    }

    /// When the sink's patience ends. None while it waits for us: with nothing out, or with nothing
    /// left unread of a transaction that is still being read.
    fn acknowledgement_deadline(&self) -> Option<Now> {
        if self.reapply_at.is_some() || self.ask_again.is_some() {
            return None;
        }
        let front = self.units.front();
        match front {
            Some(unit)
                if unit.is_drained() && self.asked.is_none() && !P::mutant(Mutant::ImpatientWithWaiting) =>
            {
                P::mark(Mark::SinkWaits);
                None
            }
            None if self.asked.is_none() => None,
            // A question is a new thing to wait for, however long ago the sink moved.
            Some(_) | None => {
                let since = self.asked.map_or(self.sink_moved, |(_, since)| since.max(self.sink_moved));
                Some(since.after(self.config.limits.acknowledgement))
            }
        }
    }

    /// Does everything whose time has come, so that no deadline at or before now survives.
    fn due(&mut self) {
        if self.end.is_some() {
            return;
        }
        let now = self.now;
        if self.phase.backoff().is_some_and(|at| at <= now) {
            self.start_over();
        }
        if let Some((at, reason)) = self.ask_again
            && at <= now
        {
            self.ask_again = None;
            self.ask(reason);
        }
        if self.link_deadline.is_some_and(|at| at <= now) {
            P::mark(Mark::LinkTooSlow);
            self.trouble(Halt::new(Code::SourceUnreachable));
        }
        let silent = self.last_heard.after(self.config.limits.silence) <= now;
        if self.is_listening() && silent && !P::mutant(Mutant::WaitForEver) {
            P::mark(Mark::Silent);
            self.trouble(Halt::new(Code::StreamStalled));
        }
        if self.acknowledgement_deadline().is_some_and(|at| at <= now) {
            self.overdue();
        }
        if self.reapply_at.is_some_and(|at| at <= now) {
            self.reapply_at = None;
            self.sink_moved = now;
            if let Some(unit) = self.units.front() {
                P::mark(Mark::Reapplied);
                self.outputs.push_back(Output::Reapply { upto: unit.seq });
            }
        }
        self.tell_progress(false);
    }

    fn overdue(&mut self) {
        if let Some((LoadReason::Overdue, since)) = self.asked {
            // Not even the position is answered. It is asked for anew, for perhaps only the way to it broke.
            P::mark(Mark::QuestionOverdue);
            let since = *self.load_trouble_since.get_or_insert(since);
            if self.sink_given_up.is_some() || self.now.since(since) >= self.config.limits.trouble_max {
                P::mark(Mark::SinkFailedTooLong);
                return self.halt(Halt::new(Code::SinkFailed));
            }
        } else {
            P::mark(Mark::Overdue);
            if self.sink_has_failed() {
                self.give_sink_up(Halt::new(Code::SinkFailed));
            }
        }
        self.asked = None;
        self.leave_link();
        self.ask(LoadReason::Overdue);
    }

    /// Counts a failure of the sink. `true`: it has failed too often for too long.
    fn sink_has_failed(&mut self) -> bool {
        self.sink_failures = self.sink_failures.saturating_add(1);
        let since = *self.sink_trouble_since.get_or_insert(self.now);
        // Time alone says nothing: between two failures there may have been hours without work.
        self.sink_failures >= SINK_FAILURES_MIN && self.now.since(since) >= self.config.limits.trouble_max
    }

    /// What is stored may say that the last attempt, or one before it, took effect: then the sink works.
    fn give_sink_up(&mut self, halt: Halt) {
        if P::mutant(Mutant::HaltUnread) {
            return self.halt(halt);
        }
        self.sink_given_up = Some(halt);
    }

    /// Nothing of it is stored: if the sink has been given up, that is the end.
    fn sink_is_given_up(&mut self) -> bool {
        let Some(halt) = self.sink_given_up.take() else { return false };
        P::mark(Mark::SinkFailedTooLong);
        self.halt(halt);
        true
    }

    fn sink_works(&mut self) {
        self.sink_failures = 0;
        self.sink_trouble_since = None;
        self.sink_given_up = None;
    }

    // ---- the position authority -------------------------------------------------------------

    fn ask(&mut self, reason: LoadReason) {
        self.asked = Some((reason, self.now));
        if reason != LoadReason::AfterFailure {
            self.phase = Phase::Loading;
            self.reapply_at = None;
        }
        self.outputs.push_back(Output::LoadCheckpoint(reason));
    }

    /// Asks for the position and dials. A question that is open is let be answered first.
    fn start_over(&mut self) {
        self.ask_again = None;
        if self.asked.is_some() {
            P::mark(Mark::QuestionLetBeAnswered);
            self.phase = Phase::Loading;
        } else if P::mutant(Mutant::ResumeFromMemory) && self.claim == Claim::Done {
            let stored = self.stored.clone().flatten();
            self.on_restart(stored, Holds::Expected);
        } else {
            self.ask(LoadReason::BeforeDial);
        }
    }

    fn on_loaded(&mut self, loaded: Loaded) -> Result<(), ApiMisuse> {
        let Some((reason, _)) = self.asked.take() else { return Err(ApiMisuse::UnaskedAnswer) };
        match loaded {
            Loaded::Failed(failure) => self.on_load_failed(reason, &failure),
            Loaded::Position { stored, holds } => {
                self.sink_moved = self.now;
                self.load_failures = 0;
                self.load_trouble_since = None;
                match reason {
                    LoadReason::AfterFailure => {
                        self.on_read_back(stored, holds);
                        if matches!(self.phase, Phase::Loading) && self.asked.is_none() && self.end.is_none()
                        {
                            self.ask(LoadReason::BeforeDial);
                        }
                    }
                    LoadReason::BeforeDial | LoadReason::Overdue => self.on_restart(stored, holds),
                }
            }
        }
        Ok(())
    }

    fn on_load_failed(&mut self, reason: LoadReason, failure: &SinkFailure) {
        let code = if failure.code == Code::SinkFailed { Code::PositionReadFailed } else { failure.code };
        if self.sink_is_given_up() {
            return;
        }
        let lasting = !matches!(failure.class, FailureClass::Transient | FailureClass::Unknown);
        let since = *self.load_trouble_since.get_or_insert(self.now);
        if lasting || self.now.since(since) >= self.config.limits.trouble_max {
            P::mark(Mark::LoadFailedTooLong);
            return self.halt(Halt::new(code));
        }
        P::mark(Mark::LoadFailed);
        let at = self.backoff(self.load_failures);
        self.load_failures = self.load_failures.saturating_add(1);
        let reason = if matches!(self.phase, Phase::Loading) { LoadReason::BeforeDial } else { reason };
        self.ask_again = Some((at, reason));
    }

    /// What became of a batch that failed.
    fn on_read_back(&mut self, stored: Option<Box<Position>>, holds: Holds) {
        match holds {
            Holds::Foreign(code) if !P::mutant(Mutant::IgnoreFence) => {
                P::mark(Mark::ReadBackForeign);
                self.halt(Halt::new(code));
            }
            Holds::Committed { upto } => {
                P::mark(Mark::ReadBackCommitted);
                self.stored = Some(stored);
                self.on_durable(upto);
            }
            Holds::Moved | Holds::Foreign(_) => {
                P::mark(Mark::ReadBackMoved);
                self.sink_works();
                self.settle_claim(stored.as_deref());
                self.stored = Some(stored);
                self.leave_link();
                self.start_over();
            }
            Holds::Expected => self.once_more(),
        }
    }

    /// Nothing of the batch took effect: it goes again from memory, or over a new link where it was
    /// handed over while it was read.
    fn once_more(&mut self) {
        match self.units.front() {
            None => {}
            Some(unit) if unit.aborted => {
                // Nothing was written, so it says nothing of the sink's health.
                P::mark(Mark::AbortPassed);
                let seq = unit.seq;
                self.pass(seq);
            }
            Some(_) if self.sink_given_up.is_some() => {
                self.sink_is_given_up();
            }
            Some(unit) if unit.streamed => {
                P::mark(Mark::StreamComesAgain);
                self.leave_link();
                self.phase = Phase::Backoff(self.backoff(self.sink_failures));
            }
            Some(_) => self.reapply_at = Some(self.backoff(self.sink_failures)),
        }
    }

    /// Whether our claim is what is stored, or what is stored grew from it. Only the mark tells: a claim
    /// whose answer was lost lands late, and what moved may have been the former owner.
    fn settle_claim(&mut self, stored: Option<&Position>) {
        if self.claim != Claim::Done {
            let landed = stored.is_some_and(|stored| stored.owner() == self.owner);
            if self.claim != Claim::Open {
                P::mark(if landed { Mark::ClaimLanded } else { Mark::ClaimLost });
            }
            self.claim = if landed { Claim::Done } else { Claim::Open };
        }
    }

    /// Everything not durable is forgotten; the link starts anew from what is stored.
    fn on_restart(&mut self, stored: Option<Box<Position>>, holds: Holds) {
        match holds {
            Holds::Foreign(code) if !P::mutant(Mutant::IgnoreFence) => {
                P::mark(Mark::RestartForeign);
                return self.halt(Halt::new(code));
            }
            Holds::Committed { .. } => {
                P::mark(Mark::RestartCommitted);
                self.sink_works();
            }
            Holds::Moved | Holds::Foreign(_) => {
                P::mark(Mark::RestartMoved);
                self.sink_works();
            }
            Holds::Expected if self.sink_is_given_up() => return,
            Holds::Expected => {}
        }
        self.settle_claim(stored.as_deref());
        if !self.units.is_empty() {
            P::mark(Mark::UnitsForgotten);
        }
        self.units.clear();
        self.retained = 0;
        if let Some(number) = self.conflict.take() {
            P::mark(Mark::ConflictStands);
            return self.halt(Halt::new(Code::ServerIdConflict).with_server_error(number));
        }
        if let Err(halt) = self.check_start(stored.as_deref()) {
            return self.halt(halt);
        }
        self.stored = Some(stored);
        match self.draining {
            Some(Drain::Asked) => {}
            Some(Drain::Halting { asked: true }) => {
                P::mark(Mark::DrainForgotten);
                self.halting = None;
                self.draining = Some(Drain::Asked);
            }
            Some(Drain::Reached | Drain::Halting { asked: false }) | None => {
                // What had been reached, or lay before what cannot be delivered, was not durable after all.
                if self.draining.is_some() {
                    P::mark(Mark::DrainForgotten);
                }
                self.draining = None;
                self.halting = None;
                self.dial();
            }
        }
    }

    /// Whether the settings fit what is stored.
    fn check_start(&self, stored: Option<&Position>) -> Result<(), Halt> {
        if P::mutant(Mutant::AnyStart) {
            return Ok(());
        }
        let Some(stored) = stored else {
            return match (&self.config.start, self.claim) {
                (Start::Stored, Claim::Open | Claim::Sent(_)) if self.config.snapshot.is_some() => Ok(()),
                (Start::Stored, Claim::Open | Claim::Sent(_)) => Err(Halt::new(Code::StartPositionRequired)),
                (_, Claim::Done) => Err(Halt::new(Code::PositionRegressed)),
                (Start::Earliest | Start::Current | Start::At(_), Claim::Open | Claim::Sent(_)) => Ok(()),
            };
        };
        if self.claim == Claim::Done {
            return Ok(());
        }
        if self.config.start != Start::Stored {
            return if self.config.override_stored {
                Ok(())
            } else {
                P::mark(Mark::StartConflict);
                Err(Halt::new(Code::StartPositionConflict))
            };
        }
        let other_set = stored.captured() != self.config.captured.canonical();
        let grown = other_set
            && self.config.snapshot.is_some()
            && CapturedSet::parse_canonical(stored.captured())
                .is_ok_and(|former| self.config.captured.holds(&former));
        let uncopied = stored.copies().is_empty() && stored.snapshot().is_none();
        if self.config.snapshot.is_some() && uncopied && !other_set {
            // What is there was begun without a copy, and nobody can say what of the tables it holds.
            return Err(Halt::new(Code::StartPositionConflict));
        }
        if other_set && !grown {
            return Err(Halt::new(Code::CaptureSetChanged));
        }
        Ok(())
    }

    // ---- the sink ----------------------------------------------------------------------------

    fn on_durable(&mut self, upto: Seq) {
        self.pass(upto);
        self.sink_works();
        if let Claim::Sent(seq) = self.claim
            && seq <= upto
        {
            self.claim = Claim::Done;
            self.go_on_after_claim();
        }
    }

    /// The sink is done with every unit up to this one.
    fn pass(&mut self, upto: Seq) {
        while let Some(unit) = self.units.front() {
            if unit.seq > upto {
                break;
            }
            self.retained = self.retained.saturating_sub(unit.bytes.saturating_add(unit.fixed));
            self.units.pop_front();
        }
        self.sink_moved = self.now;
    }

    fn on_released(&mut self, bytes: usize) {
        self.sink_moved = self.now;
        if let Some(unit) = self.units.front_mut().filter(|unit| unit.streamed) {
            P::mark(Mark::Released);
            let bytes = bytes.min(unit.bytes);
            unit.bytes -= bytes;
            self.retained = self.retained.saturating_sub(bytes);
        }
    }

    fn on_sink_failed(&mut self, failure: &SinkFailure) {
        let halt = || {
            let halt = Halt::new(failure.code);
            match &failure.place {
                Some(place) => halt.at((**place).clone()),
                None => halt,
            }
        };
        match failure.class {
            FailureClass::Permanent => return self.halt(halt()),
            FailureClass::Aborted => P::mark(Mark::SinkAborted),
            FailureClass::Transient => {
                if self.sink_has_failed() {
                    P::mark(Mark::SinkFailedTooLong);
                    return self.halt(halt());
                }
            }
            // Of these the position tells what they mean.
            FailureClass::Unknown | FailureClass::Fenced | FailureClass::Stale => {
                if self.sink_has_failed() {
                    self.give_sink_up(halt());
                }
            }
        }
        // An answer is a sign of life, too.
        self.sink_moved = self.now;
        // Where the position is being asked for already, that answer settles it.
        if self.asked.is_some() || self.ask_again.is_some() {
            P::mark(Mark::FailedWhileAsked);
        } else if P::mutant(Mutant::TrustMemory) {
            self.once_more();
        } else {
            self.ask(LoadReason::AfterFailure);
        }
    }

    // ---- ends --------------------------------------------------------------------------------

    fn on_drain(&mut self) {
        if self.halting.is_some() {
            self.draining = Some(Drain::Halting { asked: true });
            return;
        }
        self.tell_progress(true);
        self.draining = Some(Drain::Asked);
        self.leave_link();
        if !self.units.is_empty() {
            P::mark(Mark::DrainWithUnits);
        }
    }

    /// The goal of `until` is reached.
    fn reached(&mut self) {
        self.tell_progress(true);
        self.leave_link();
        self.draining = Some(Drain::Reached);
    }

    /// What was read cannot be delivered. Whole units in front of it still go to the sink, so that what
    /// is delivered does not depend on how much was read at once; then comes the halt.
    pub(super) fn halt_behind_units(&mut self, halt: Halt) {
        self.tell_progress(true);
        self.leave_link();
        if P::mutant(Mutant::HaltDropsUnits) {
            return self.halt(halt);
        }
        if !self.units.is_empty() {
            P::mark(Mark::HaltBehindUnits);
        }
        self.draining = Some(Drain::Halting { asked: false });
        self.halting = Some(halt);
    }

    fn stopped_if_drained(&mut self) -> bool {
        let done = self.draining.is_some()
            && (self.units.is_empty() || P::mutant(Mutant::StopWithUnits))
            && self.asked.is_none()
            && self.ask_again.is_none()
            && self.reapply_at.is_none();
        if done {
            self.end = Some(self.halting.take().map_or(End::Stopped, End::Halted));
        }
        done
    }

    fn halt(&mut self, halt: Halt) {
        if self.end.is_none() {
            self.leave_link();
            self.end = Some(End::Halted(halt));
        }
    }

    /// Waits before the next try: exponential, full jitter.
    fn backoff(&mut self, attempts: u32) -> Now {
        let limits = &self.config.limits;
        let first = limits.backoff_first;
        let longest = first.saturating_mul(1 << attempts.min(20)).min(limits.backoff_max);
        if longest == limits.backoff_max {
            P::mark(Mark::BackoffLongest);
        }
        if P::mutant(Mutant::NoBackoff) {
            return Now(self.now.0.saturating_add(1));
        }
        let us = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        let wait = self.entropy.upto(us).max(BACKOFF_MIN_US.min(us));
        Now(self.now.0.saturating_add(wait))
    }

    /// Numbers an event's unit and keeps account of what is out.
    fn emit(&mut self, event: Event) {
        if self.units.front().is_none_or(UnitOut::is_drained) {
            // The sink waited for us until now.
            self.sink_moved = self.now;
        }
        let weight = event.weight();
        self.retained = self.retained.saturating_add(weight);
        let unit =
            |seq| UnitOut { seq, bytes: 0, fixed: weight, streamed: false, open: false, aborted: false };
        match &event {
            Event::Claim { seq, .. } | Event::Progress { seq, .. } => self.units.push_back(unit(*seq)),
            Event::SnapshotRows(chunk) => self.units.push_back(unit(chunk.seq)),
            Event::TxBegin(begin) => {
                self.units.push_back(UnitOut { streamed: begin.streamed, open: true, ..unit(begin.seq) });
            }
            Event::Table(_) | Event::SchemaChange(_) | Event::Rows(_) => {
                if let Some(unit) = self.units.back_mut() {
                    unit.bytes = unit.bytes.saturating_add(weight);
                }
            }
            Event::TxCommit(_) => {
                if let Some(unit) = self.units.back_mut() {
                    unit.open = false;
                }
            }
            Event::TxAbort { .. } => {
                if let Some(unit) = self.units.back_mut() {
                    unit.open = false;
                    unit.aborted = true;
                }
            }
        }
        if let Event::TxCommit(commit) = &event
            && P::mutant(Mutant::AckOnEmit)
        {
            self.pass(commit.seq);
        }
        self.outputs.push_back(Output::Event(event));
    }

    fn seq(&mut self) -> Seq {
        let seq = self.next_seq;
        self.next_seq = Seq(seq.0.saturating_add(1));
        seq
    }

    /// What is stored under the sets of this start: tables that are new in them are copied.
    fn reconciled(&self, stored: &Position, found: &Findings) -> Position {
        let Some(wanted) = &self.config.snapshot else { return stored.clone() };
        let set = |text: &str| {
            let set = CapturedSet::parse_canonical(text).ok()?;
            Some(set.with_lower_case_table_names(found.lower_case_table_names))
        };
        let holds = |set: &Option<CapturedSet>, (schema, table): &CopiedTable| {
            set.as_ref().is_some_and(|set| set.captures(schema, table))
        };
        let (captured, bound) = (set(stored.captured()), stored.snapshot().map(set));
        // One of the former sets that is none of the copies came later, and the stream has all of it; without an
        // initial copy nobody can say.
        let is_new = |table: &&CopiedTable| {
            !stored.copies().contains_key(*table)
                && (!holds(&captured, table) || bound.as_ref().is_some_and(|bound| !holds(bound, table)))
        };
        let new: Vec<CopiedTable> = found.tables.iter().filter(is_new).cloned().collect();
        let snapshot = match stored.snapshot().map(CapturedSet::parse_canonical) {
            Some(Ok(bound)) => wanted.clone().with_tables_of(&bound),
            Some(Err(_)) | None => wanted.clone(),
        };
        stored
            .clone()
            .with_copies(new)
            .with_captured(self.config.captured.canonical())
            .with_snapshot(snapshot.canonical())
    }

    /// What the position will be when the owner starts from it.
    fn claim_position(&self, found: &Findings) -> Position {
        let stored = self.stored.as_ref().and_then(Option::as_deref);
        let captured = self.config.captured.canonical();
        let epoch = stored.map_or(0, Position::epoch);
        let fresh = |set: GtidSet| Position::new(set, captured.clone()).with_epoch(epoch);
        let position = match (&self.config.start, stored) {
            (Start::Stored, Some(_)) if P::mutant(Mutant::ClaimForgets) => fresh(found.purged.clone()),
            (Start::Stored, Some(_)) if P::mutant(Mutant::StoredIsCurrent) => fresh(found.executed.clone()),
            (Start::Stored, Some(stored)) => {
                self.reconciled(stored, found).with_copies_again(found.again.iter().cloned())
            }
            (Start::Stored, None) if self.config.snapshot.is_some() => {
                let set = self.config.snapshot.as_ref().map(CapturedSet::canonical).unwrap_or_default();
                fresh(found.executed.clone()).with_copies(found.tables.iter().cloned()).with_snapshot(set)
            }
            (Start::Stored, None) => fresh(GtidSet::new()),
            (Start::Earliest, _) if P::mutant(Mutant::EarliestIsCurrent) => fresh(found.executed.clone()),
            (Start::Current, _) if P::mutant(Mutant::CurrentIsEarliest) => fresh(found.purged.clone()),
            (Start::At(_), _) if P::mutant(Mutant::AtIsEarliest) => fresh(found.purged.clone()),
            (Start::Earliest, _) => fresh(found.purged.clone()),
            (Start::Current, _) => fresh(found.executed.clone()),
            (Start::At(set), _) => fresh(set.clone()),
        };
        if P::mutant(Mutant::ClaimNothing) && stored.is_some() {
            return position;
        }
        position.claimed(self.owner)
    }
}
