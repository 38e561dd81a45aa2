//! The world: servers, network, sink, processes, time. One loop, no runtime.

mod faults;
mod moments;
mod net;
mod oracles;

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use capstan_core::{
    capture::CapturedSet,
    config::{Config, Limits, Start},
    deliver::Position,
    gtid::{Gtid, GtidSet, Tag, Tsid, Uuid},
    halt::Code,
    link::{Login, Secret, TlsMode},
    replica::{Input, Read},
};
use capstan_fake_source::{Group, Server};

pub use self::moments::{Moment, When};
use self::net::Link;
use crate::{
    choices::Choices,
    extras::Extras,
    fault::Fault,
    oracle::{Failure, bounds::Dials, fencing::Fencing, prefix::Prefix, progress::Steps, window::Window},
    plan::{Begin, ENDS_LINKS, Plan, Planned, Wishes},
    process::{End, Process, Reading},
    sink::{Deferred, Outcome, Script, Stage, lock},
    store::{Shared, Store},
    truth::{Entry, Truth},
    workload::{Shape, Workload},
};

const SECOND: u64 = 1_000_000;

/// How long the world may take to converge after everything was healed, µs.
const CONVERGE_WITHIN: u64 = 3_600 * SECOND;

/// The source's clock at the start of a run.
const SOURCE_EPOCH: u64 = 1_795_000_000 * SECOND;

/// What every process is told, but for its start.
static SETTINGS: LazyLock<Config> = LazyLock::new(|| Config {
    login: Login::new("repl", Secret::new("secret")).expect("no NUL in it").tls(TlsMode::Disabled),
    captured: CapturedSet::parse(&["shop.*"], &[], &[]).expect("a pattern"),
    start: Start::Stored,
    override_stored: false,
    until: None,
    server_id: 77,
    replica_uuid: Uuid([9; 16]),
    report_host: "sim".into(),
    strict: false,
    allow_unlogged_cascades: false,
    whole_history: false,
    limits: Limits {
        stream_above: 8 << 10,
        retained_max: 32 << 10,
        row_event_max: 64 << 10,
        progress_every: Duration::from_secs(1),
        ..Limits::default()
    },
});

/// What happened in a run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Faults that took hold, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Transactions committed at the source.
    pub transactions: u64,
    /// Schema changes among them.
    pub schema_changes: u64,
    /// Dials.
    pub dials: u64,
    /// Steps of the loop.
    pub steps: u64,
    /// Bytes of dumps that were read.
    pub dump_bytes: u64,
    /// Commits of the sink.
    pub commits: u64,
    /// Batches that a sink was given again, where the library owns the position.
    pub again: u64,
    /// Writes that a condition refused.
    pub refused: u64,
    /// Transactions that were streamed, and aborted.
    pub streamed: u64,
    /// Aborts.
    pub aborts: u64,
    /// Halts by code.
    pub halts: BTreeMap<&'static str, u64>,
    /// Virtual time, µs.
    pub virtual_us: u64,
}

/// Regimes: until when each is on.
#[derive(Debug, Default)]
struct Regimes {
    torn: u64,
    trickle: u64,
    stall: u64,
    dial_fails: u64,
    slow_dial: u64,
    slow_sink: u64,
    unreadable: u64,
    outcome: Option<(Outcome, u64)>,
    too_many: u64,
    log_bin_off: u64,
    paused: u64,
}

/// Things that happen at their moment rather than at a time.
#[derive(Debug, Default)]
struct Directed {
    crash_at_commit: bool,
    purge_race: bool,
    next_outcome: Option<Outcome>,
    reading: Option<Reading>,
}

/// The world of one run.
pub struct World {
    now: u64,
    choices: Choices,
    plan: Plan,
    servers: Vec<Server>,
    primary: usize,
    /// What the primary has received and not applied yet.
    backlog: VecDeque<Arc<Group>>,
    backlog_at: u64,
    truth: Truth,
    workload: Workload,
    extras: Extras,
    gnos: BTreeMap<Tsid, u64>,
    commits_left: u32,
    commit_at: u64,
    store: Shared,
    prefix: Prefix,
    fencing: Fencing,
    window: Window,
    library: bool,
    processes: Vec<Process>,
    links: BTreeMap<u32, Link>,
    late_dials: Vec<(u64, u32, capstan_core::replica::DialEpoch)>,
    next_process: u32,
    respawn_at: Option<u64>,
    planned: VecDeque<Planned>,
    deferred: Vec<(u64, Deferred)>,
    regimes: Regimes,
    directed: Directed,
    /// An older state of the target.
    backup: Option<(Option<Arc<Position>>, Prefix)>,
    facts: Facts,
    dials: Dials,
    steps: Steps,
    healed: bool,
    /// What happened.
    pub counts: Counts,
    trace: Option<VecDeque<String>>,
    tag_next: bool,
    /// How often what ends a link may still wait for one.
    waits: u32,
    /// What is committed next, where that was written down.
    script: VecDeque<Shape>,
    moments: Vec<Moment>,
}

/// What the oracles must know beside the state of things.
#[derive(Debug, Default)]
struct Facts {
    reset: bool,
    sink_permanent: bool,
    restored: bool,
    /// Processes whose link had an event damaged, or an unknown event.
    damaged: bool,
    unknown: bool,
    /// Last life of each process's stream.
    life: BTreeMap<u32, u64>,
    /// Since when sink or position fail.
    sink_trouble: Option<u64>,
    /// Processes that ended by a sound halt that no restart mends.
    halted: Option<Code>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World at {} µs, {:?}", self.now, self.processes)
    }
}

impl World {
    /// The world of a run.
    #[must_use]
    pub fn new(mut choices: Choices, wishes: Wishes, traced: bool) -> Self {
        let plan = Plan::draw(&mut choices, wishes);
        let mut world = Self::of_plan(plan, choices, traced, wishes.library);
        world.commits_before();
        world
    }

    /// A world whose transactions and faults were written down.
    pub(crate) fn scheduled(
        plan: Plan,
        choices: Choices,
        script: Vec<Shape>,
        moments: Vec<Moment>,
        tagged: bool,
    ) -> Self {
        let mut world = Self::of_plan(plan, choices, true, false);
        world.script = script.into();
        world.moments = moments;
        world.plan.tagged = if tagged { 2 } else { 0 };
        world.commits_before();
        world
    }

    fn commits_before(&mut self) {
        for _ in 0..self.plan.transactions.0 {
            self.commit();
        }
    }

    /// A world for a story that is told step by step: nothing happens by itself but the process that
    /// runs, and everything else is asked for.
    #[must_use]
    pub fn story(change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::quiet();
        change(&mut plan);
        Self::of_plan(plan, Choices::replay(Vec::new()), true, false)
    }

    /// The same, and the position is kept beside the sink.
    #[must_use]
    pub fn library_story(change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::quiet();
        change(&mut plan);
        Self::of_plan(plan, Choices::replay(Vec::new()), true, true)
    }

    fn of_plan(plan: Plan, choices: Choices, traced: bool, library: bool) -> Self {
        let servers = servers(&plan);
        let planned = plan.faults.iter().copied().collect();
        let commits_left = plan.transactions.1;
        Self {
            now: 0,
            choices,
            servers,
            primary: 0,
            backlog: VecDeque::new(),
            backlog_at: 0,
            truth: Truth::default(),
            workload: Workload::default(),
            extras: Extras::default(),
            gnos: BTreeMap::new(),
            commits_left,
            commit_at: plan.pace.unwrap_or(0),
            store: Arc::new(Mutex::new(Store::default())),
            prefix: Prefix::default(),
            fencing: Fencing::default(),
            window: Window::default(),
            library,
            processes: Vec::new(),
            links: BTreeMap::new(),
            late_dials: Vec::new(),
            next_process: 1,
            respawn_at: Some(0),
            planned,
            deferred: Vec::new(),
            regimes: Regimes::default(),
            directed: Directed::default(),
            backup: None,
            facts: Facts::default(),
            dials: Dials::default(),
            steps: Steps::default(),
            healed: false,
            counts: Counts::default(),
            trace: traced.then(VecDeque::new),
            tag_next: false,
            waits: 16,
            script: VecDeque::new(),
            moments: Vec::new(),
            plan,
        }
    }

    /// Runs to the end. The choices made come back with what was found.
    pub fn run(&mut self) -> Result<(), Failure> {
        while self.now < self.plan.horizon || !self.planned.is_empty() {
            if !self.step(self.plan.horizon)? {
                break;
            }
            if self.facts.halted.is_some() {
                break;
            }
        }
        self.heal();
        self.converge()
    }

    /// Lets time pass.
    pub fn pass(&mut self, us: u64) -> Result<(), Failure> {
        let until = self.now + us;
        self.settle()?;
        while self.step(until)? {}
        self.now = self.now.max(until);
        self.counts.virtual_us = self.now;
        Ok(())
    }

    /// Commits a transaction of this shape at the source.
    pub fn commits(&mut self, shape: Shape) {
        self.commit_of(shape);
    }

    /// Lets a fault happen now.
    pub fn happens(&mut self, fault: Fault, seconds: f64) -> Result<(), Failure> {
        let lasts = (seconds * 1e6) as u64;
        self.fault(Planned { at: self.now, lasts, fault })?;
        self.settle()
    }

    /// Heals everything and lets the world converge.
    pub fn ends_well(&mut self) -> Result<(), Failure> {
        self.heal();
        self.converge()
    }

    /// The code of a halt that no restart mends, if there was one.
    #[must_use]
    pub const fn halted(&self) -> Option<Code> {
        self.facts.halted
    }

    /// The processes that run.
    #[must_use]
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// The servers, for settings that a story needs.
    pub fn servers(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// The time, µs.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// How many entries of the history the sink has behind it.
    #[must_use]
    pub const fn delivered(&self) -> usize {
        self.prefix.done
    }

    /// The next transaction has a tagged GTID.
    pub const fn tagged_next(&mut self) {
        self.tag_next = true;
    }

    /// Whether everything that was committed is where it should be.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.truth.is_reached(lock(&self.store).gtid_set())
    }

    /// The tape so far.
    #[must_use]
    pub fn tape(&self) -> &[u32] {
        self.choices.tape()
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The last things that happened, if they were written down.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.trace.iter().flatten().cloned().collect()
    }

    // ---- lies, to see that the oracles see them ----

    /// The last transaction was never committed, says the truth.
    pub fn forget_last(&mut self) {
        self.truth.entries.pop();
    }

    /// The last transaction had another value.
    pub fn change_last(&mut self) {
        if let Some(Entry { content: Some((hash, _)), .. }) = self.truth.entries.last_mut() {
            *hash ^= 1;
        }
    }

    /// The last two transactions were committed the other way round.
    pub fn swap_last(&mut self) {
        let last = self.truth.entries.len() - 1;
        self.truth.entries.swap(last, last - 1);
    }

    /// There was one more transaction.
    pub fn invent_last(&mut self) {
        let gtid = self.gtid();
        self.truth.entries.push(Entry { gtid: Some(gtid), content: None, lost: false, poison: None });
    }

    // ---- the loop ------------------------------------------------------------------------------

    /// Does the next thing. `false`: nothing will happen until `limit`.
    fn step(&mut self, limit: u64) -> Result<bool, Failure> {
        let Some((at, action)) = self.next_action() else { return Ok(false) };
        if at > limit && self.now <= limit {
            self.now = limit;
            return Ok(false);
        }
        self.now = self.now.max(at);
        self.counts.steps += 1;
        self.counts.virtual_us = self.now;
        self.steps.step(self.now)?;
        self.act(action)?;
        if !self.moments.is_empty() {
            self.moments()?;
        }
        self.settle()?;
        Ok(true)
    }

    fn next_action(&mut self) -> Option<(u64, Action)> {
        let mut best: Option<(u64, Action)> = None;
        let now = self.now;
        // What falls on one instant happens in either order.
        let last_wins = self.counts.steps % 3 == 1;
        let sooner = move |at: u64, than: u64| at < than || last_wins && at == than;
        let mut offer = |at: u64, action: Action| {
            let at = at.max(now);
            if best.as_ref().is_none_or(|(t, _)| sooner(at, *t)) {
                best = Some((at, action));
            }
        };
        if let Some(planned) = self.planned.front() {
            offer(planned.at, Action::Fault);
        }
        if self.commits_left > 0 && self.backlog.is_empty() {
            offer(self.commit_at, Action::Commit);
        }
        if !self.backlog.is_empty() {
            offer(self.backlog_at, Action::Apply);
        }
        if let Some(at) = self.deferred.iter().map(|(at, _)| *at).min() {
            offer(at, Action::Land);
        }
        if let Some(at) = self.respawn_at {
            offer(at, Action::Spawn);
        }
        if self.regimes.log_bin_off > 0 {
            offer(self.regimes.log_bin_off, Action::LogBinOn);
        }
        if let Some(at) = self.late_dials.iter().map(|(at, ..)| *at).min() {
            offer(at, Action::LateDial);
        }
        for (index, process) in self.processes.iter().enumerate() {
            if let Some(at) = process.sink_wake() {
                offer(at, Action::Sink(index));
            }
            if let Some((at, Reading::Ok | Reading::Transient)) = process.answer {
                offer(at, Action::Answer(index));
            }
            if let Some((at, _)) = process.wake {
                offer(at.0, Action::Tick(index));
            }
        }
        let Self { links, servers, processes, regimes, .. } = self;
        for (id, link) in links {
            let credit = can_read(processes, *id) > 0;
            link.actions(*id, &mut servers[link.server], credit, regimes.stall, now, &mut offer);
        }
        best
    }

    fn act(&mut self, action: Action) -> Result<(), Failure> {
        match action {
            Action::Fault => {
                if let Some(planned) = self.planned.pop_front()
                    && !self.waits_for_link(planned)
                {
                    self.fault(planned)?;
                }
            }
            Action::Commit => {
                self.commits_left -= 1;
                if self.script.is_empty() && self.commits_left == self.plan.transactions.1 / 2 {
                    self.commit_of(Shape::Ddl);
                } else {
                    self.commit();
                }
                let pace = self.plan.horizon / u64::from(self.plan.transactions.1);
                let wait = self.plan.pace.unwrap_or_else(|| self.choices.pick(&[pace, 0, 0, 0, 3 * pace]));
                self.commit_at = self.now + wait;
            }
            Action::Apply => self.apply_backlog(),
            Action::Land => self.land(),
            Action::Spawn => self.spawn(),
            Action::LogBinOn => {
                self.regimes.log_bin_off = 0;
                self.servers.iter_mut().for_each(|server| server.set("log_bin", "ON"));
            }
            Action::LateDial => {
                if let Some(at) = self.late_dials.iter().position(|(at, ..)| *at <= self.now) {
                    let (_, id, epoch) = self.late_dials.remove(at);
                    self.note(|| format!("process {id}: the late answer of dial {epoch:?}"));
                    self.input(id, Input::Connected(capstan_core::replica::Link::Stream, epoch))?;
                }
            }
            Action::Sink(index) => {
                let now = self.now;
                if let Some(process) = self.processes.get_mut(index) {
                    process.poll_sink(now)?;
                }
                self.crash_at_commit(index);
            }
            Action::Answer(index) => {
                let now = self.now;
                if let Some(process) = self.processes.get_mut(index)
                    && let Some((_, reading)) = process.answer
                {
                    process.answer(now, reading)?;
                }
            }
            Action::Tick(index) => {
                let now = self.now;
                let twice = self.counts.steps.is_multiple_of(7);
                if let Some(process) = self.processes.get_mut(index) {
                    process.tick(now, twice)?;
                }
            }
            Action::Deliver(id) => self.deliver(id)?,
            Action::Dialled(id) => self.dialled(id)?,
            Action::Heartbeat(id) => self.heartbeat(id),
            Action::Closed(id) => self.closed(id)?,
        }
        Ok(())
    }

    /// What ends a link waits for one, for a while.
    fn waits_for_link(&mut self, planned: Planned) -> bool {
        let written = self.plan.pace.is_some();
        if written || !ENDS_LINKS.contains(&planned.fault) || !self.dumps().is_empty() || self.waits == 0 {
            return false;
        }
        self.waits -= 1;
        self.plan_soon(planned.fault, SECOND.max(self.plan.horizon / 32));
        true
    }

    /// Carries out what every process wants, until nothing is left to do at this instant.
    fn settle(&mut self) -> Result<(), Failure> {
        let mut index = 0;
        while index < self.processes.len() {
            self.carry_out(index)?;
            let now = self.now;
            let keep = self.counts.steps.is_multiple_of(2);
            let Some(process) = self.processes.get_mut(index) else { break };
            lock(&process.stage).now = now;
            process.give_up_if_overdue(keep);
            if process.wants_answer() && process.answer.is_none() {
                let reading = self.reading();
                if let Some(process) = self.processes.get_mut(index) {
                    process.answer = Some((now + 150, reading));
                }
            }
            self.hand_over(index);
            self.collect_deferred(index);
            index += 1;
        }
        self.look()?;
        self.ends()
    }

    fn hand_over(&mut self, index: usize) {
        let Some(process) = self.processes.get(index) else { return };
        if !process.is_alive() || process.is_applying() || process.load().is_some() {
            return;
        }
        let stage = Arc::clone(&process.stage);
        let script = self.script();
        lock(&stage).script = script;
        let Some(process) = self.processes.get_mut(index) else { return };
        if process.next_batch() {
            self.script_used(script);
        }
    }

    /// How the sink will take its next batch.
    fn script(&self) -> Script {
        let now = self.now;
        let slow = self.regimes.slow_sink > now;
        let (change_us, commit_us) = if slow { (30_000, 9 * SECOND) } else { (0, 300) };
        let outcome = match (self.directed.next_outcome, self.regimes.outcome) {
            (Some(outcome), _) => outcome,
            (None, Some((outcome, until))) if until > now => outcome,
            (None, _) => Outcome::Ok,
        };
        // Where the position is kept beside the sink, either of the two fails.
        let at_store = self.library && self.counts.steps % 2 == 1;
        Script { begin_at: now, change_us, commit_us, outcome, at_store }
    }

    fn script_used(&mut self, script: Script) {
        if self.directed.next_outcome.take().is_some() || script.outcome != Outcome::Ok {
            let fault = match script.outcome {
                Outcome::Ok => return,
                Outcome::Transient => Fault::SinkTransient,
                Outcome::AnswerLost => Fault::AnswerLost,
                Outcome::NothingAndLost => Fault::NothingAndLost,
                Outcome::Late => Fault::LateCommit,
                Outcome::Hang => Fault::SinkHangs,
                Outcome::HangLate => Fault::HangsAndLands,
                Outcome::Permanent => Fault::SinkPermanent,
            };
            if script.outcome == Outcome::Permanent {
                self.facts.sink_permanent = true;
            }
            self.facts.sink_trouble.get_or_insert(self.now);
            self.count(fault);
            self.note(|| format!("the sink's batch will end: {:?}", script.outcome));
        }
    }

    fn reading(&mut self) -> Reading {
        if let Some(reading) = self.directed.reading.take() {
            self.facts.sink_trouble.get_or_insert(self.now);
            self.count(Fault::PositionHangs);
            // The link does not wait for the answer.
            self.plan_soon(Fault::Reset, 2 * SECOND);
            return reading;
        }
        if self.regimes.unreadable > self.now {
            self.facts.sink_trouble.get_or_insert(self.now);
            self.count(Fault::PositionUnreadable);
            return Reading::Transient;
        }
        Reading::Ok
    }

    /// One more fault, before long.
    fn plan_soon(&mut self, fault: Fault, after: u64) {
        if self.healed {
            return;
        }
        let planned = Planned { at: self.now + after, lasts: 0, fault };
        let index = self.planned.iter().position(|p| p.at > planned.at).unwrap_or(self.planned.len());
        self.planned.insert(index, planned);
    }

    fn collect_deferred(&mut self, index: usize) {
        let Some(process) = self.processes.get(index) else { return };
        let mut stage = lock(&process.stage);
        if stage.deferred.is_empty() {
            return;
        }
        let landed = std::mem::take(&mut stage.deferred);
        drop(stage);
        for deferred in landed {
            let after = self.choices.pick(&[3 * SECOND, 1_000, 30 * SECOND, 100 * SECOND]);
            self.deferred.push((self.now + after, deferred));
        }
    }

    /// A write that was given up lands, if its condition still holds.
    fn land(&mut self) {
        let Some(at) = self.deferred.iter().position(|(at, _)| *at <= self.now) else { return };
        let (_, deferred) = self.deferred.remove(at);
        let Deferred { expected, position, units, writer } = deferred;
        let landed = lock(&self.store).commit(&expected, &position, units, writer);
        self.note(|| format!("a late write of {position} lands: {landed:?}"));
    }

    // ---- the source ----------------------------------------------------------------------------

    fn gtid(&mut self) -> Gtid {
        let uuid = self.servers[self.primary].uuid;
        let drawn = self.plan.tagged > 0 && self.choices.chance(1, self.plan.tagged);
        let tagged = drawn || std::mem::take(&mut self.tag_next);
        let tag = if tagged { Tag::from_bytes(b"batch").unwrap_or(Tag::NONE) } else { Tag::NONE };
        let gno = self.gnos.entry(Tsid { uuid, tag }).or_default();
        // Numbers are left out where a transaction failed after it had got one.
        *gno += if *gno % 16 == 6 { 2 } else { 1 };
        Gtid::new(uuid, tag, *gno).expect("small numbers")
    }

    /// Commits a transaction at the primary; replicas have it at once.
    fn commit(&mut self) {
        if let Some(shape) = self.script.pop_front() {
            self.tag_next = self.plan.tagged > 0 && self.counts.transactions % 2 == 1;
            return self.commit_of(shape);
        }
        let shape = if self.choices.chance(2, 3) {
            self.choices.pick(&self.plan.shapes)
        } else {
            self.plan.shapes[0]
        };
        self.commit_of(shape);
        if self.choices.chance(1, 12) {
            self.servers[self.primary].rotate();
        }
    }

    fn commit_of(&mut self, shape: Shape) {
        let gtid = self.gtid();
        let at = SOURCE_EPOCH + self.now;
        // Whoever starts behind a prepared transaction rightly halts at its end.
        let begun = lock(&self.store).position.is_some();
        let extra =
            (shape == Shape::Empty && begun).then(|| self.extras.instead_of_empty(gtid, at)).flatten();
        let (group, entry) = extra.unwrap_or_else(|| self.workload.make(shape, gtid, at));
        self.note(|| format!("the source commits {gtid}: {shape:?}"));
        if let Shape::Ddl | Shape::CreateSelect = shape {
            self.counts.schema_changes += 1;
        }
        self.append(&group, entry);
    }

    fn append(&mut self, group: &Arc<Group>, entry: Entry) {
        self.counts.transactions += 1;
        self.servers.iter_mut().for_each(|server| server.append(group));
        self.truth.entries.push(entry);
    }

    fn apply_backlog(&mut self) {
        if let Some(group) = self.backlog.pop_front() {
            let primary = self.primary;
            for (index, server) in self.servers.iter_mut().enumerate() {
                // The others have it: they received it when it was committed.
                if index == primary {
                    server.append(&group);
                }
            }
            self.backlog_at = self.now + 2 * SECOND;
        }
    }

    // ---- processes -----------------------------------------------------------------------------

    fn config(&mut self) -> Config {
        let stored = lock(&self.store).position.is_some();
        let start = match self.plan.begin {
            _ if stored => Start::Stored,
            Begin::Earliest => Start::Earliest,
            Begin::Current => Start::Current,
            Begin::At => {
                let executed = self.servers[self.primary].executed();
                let some: GtidSet = executed
                    .iter()
                    .filter_map(|(tsid, intervals)| {
                        let first = intervals.first()?;
                        Gtid::new(tsid.uuid, tsid.tag, first.start())
                    })
                    .collect();
                Start::At(some)
            }
        };
        Config { start, ..SETTINGS.clone() }
    }

    fn spawn(&mut self) {
        self.respawn_at = None;
        let config = self.config();
        let id = self.next_process;
        self.next_process += 1;
        self.note(|| format!("process {id} starts with {:?}", config.start));
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&id.to_le_bytes());
        seed[4..8].copy_from_slice(&self.choices.below(1 << 20).to_le_bytes());
        let stage = Stage {
            now: self.now,
            wake: None,
            script: self.script(),
            deferred: Vec::new(),
            changes: 0,
            streamed: false,
            committed: false,
            writer: id,
            library: self.library,
            at_hand_over: None,
        };
        match Process::start(
            id,
            config,
            self.plan.batch,
            seed,
            Arc::clone(&self.store),
            stage,
            self.trace.is_some(),
        ) {
            Ok(process) => self.processes.push(process),
            Err(failure) => self.note(|| format!("{failure}")),
        }
        let twin = self.planned.iter().any(|planned| planned.fault == Fault::Zombie);
        if id == 1 && twin {
            // Somebody starts it twice, and the second one is late.
            self.spawn();
            if let Some(process) = self.processes.last_mut() {
                process.answer = Some((self.now + 5 * SECOND, Reading::Ok));
            }
        }
        self.facts.life.insert(id, self.now);
        if self.processes.len() == 1 {
            self.facts.restored = false;
            self.facts.damaged = false;
            self.facts.unknown = false;
            self.facts.sink_trouble = None;
        }
    }

    /// A process is gone without a word.
    fn crash(&mut self, index: usize, after: u64) {
        if index >= self.processes.len() {
            return;
        }
        self.collect_deferred(index);
        let process = self.processes.remove(index);
        self.note(|| format!("process {} is killed", process.id));
        self.tally(&process);
        self.drop_link(process.id);
        if self.processes.is_empty() {
            self.respawn_at = Some(self.now + after);
        }
    }

    fn tally(&mut self, process: &Process) {
        self.counts.aborts += process.aborts;
        self.counts.streamed += process.streamed;
        self.counts.dials += process.core.facts().dials;
    }

    fn crash_at_commit(&mut self, index: usize) {
        let between = self.processes.get(index).is_some_and(|process| lock(&process.stage).committed);
        if between && self.directed.crash_at_commit {
            self.directed.crash_at_commit = false;
            self.count(Fault::CrashAtCommit);
            self.crash(index, SECOND);
        }
    }

    fn input(&mut self, id: u32, input: Input) -> Result<(), Failure> {
        let now = self.now;
        match self.processes.iter_mut().find(|process| process.id == id) {
            Some(process) => process.input(now, input),
            None => Ok(()),
        }
    }

    /// Deals with processes that have ended by themselves.
    fn ends(&mut self) -> Result<(), Failure> {
        let Some(index) = self.processes.iter().position(|process| !process.is_alive()) else {
            return Ok(());
        };
        self.collect_deferred(index);
        let process = self.processes.remove(index);
        self.tally(&process);
        let last = self.processes.is_empty();
        match process.end.clone() {
            Some(End::Halted(halt)) => {
                *self.counts.halts.entry(halt.code.as_str()).or_default() += 1;
                self.note(|| format!("process {} halts: {:?} {:?}", process.id, halt.code, halt.place));
                self.halt_is_sound(&process, halt.code)?;
                self.drop_link(process.id);
                // What an operator mends by starting again.
                let again = matches!(
                    halt.code,
                    Code::ChecksumMismatch
                        | Code::StartPositionConflict
                        | Code::StartPositionRequired
                        | Code::Fenced
                        | Code::ServerIdConflict
                        | Code::SourceUnreachable
                        | Code::StreamStalled
                        | Code::BinlogDisabled
                        | Code::PositionReadFailed
                ) || (halt.code == Code::UnknownEventType && self.facts.unknown)
                    || (halt.code == Code::SinkFailed && !self.facts.sink_permanent)
                    || self.facts.restored;
                if !last {
                    return Ok(());
                }
                if again {
                    self.respawn_at = Some(self.now + 5 * SECOND);
                } else {
                    self.facts.halted = Some(halt.code);
                }
            }
            Some(End::Stopped) => {
                self.note(|| format!("process {} has stopped", process.id));
                self.drop_link(process.id);
                if last {
                    self.respawn_at = Some(self.now + SECOND);
                }
            }
            None => {}
        }
        Ok(())
    }

    // ---- the end -------------------------------------------------------------------------------

    /// Every regime ends, everything works again.
    fn heal(&mut self) {
        self.note(|| "everything is healed".into());
        self.healed = true;
        self.planned.clear();
        self.regimes = Regimes::default();
        self.directed = Directed::default();
        self.commits_left = 0;
        for server in &mut self.servers {
            server.set("log_bin", "ON");
            server.refuses = None;
        }
        let now = self.now;
        for process in &mut self.processes {
            let _ = process.input(now, Input::Resume);
            if let Some((at, reading)) = &mut process.answer {
                (*at, *reading) = (now, Reading::Ok);
            }
        }
    }

    /// Everything that can be delivered must be there before long; what cannot must have halted.
    fn converge(&mut self) -> Result<(), Failure> {
        self.settle()?;
        let until = self.now + CONVERGE_WITHIN;
        let mut goes_on_at = self.now;
        loop {
            if self.facts.halted.is_some() {
                return Ok(());
            }
            if self.has_converged() {
                return self.drained();
            }
            let unaware = self.processes.len() > 1 || self.facts.restored;
            if unaware && self.now >= goes_on_at && self.can_go_on() {
                // Who is fenced, or whose target is an older copy, learns it when it has something to write.
                self.commit_of(Shape::Small);
                goes_on_at = self.now + 60 * SECOND;
            }
            if self.now >= until || !self.step(until)? {
                return Err(Failure::new("liveness", self.pending()));
            }
        }
    }

    /// Whether everything has been delivered and more can be committed.
    fn can_go_on(&self) -> bool {
        let poisoned = self.truth.entries.iter().any(|entry| entry.poison.is_some());
        !self.facts.reset
            && !poisoned
            && self.backlog.is_empty()
            && (self.facts.restored || self.truth.is_reached(lock(&self.store).gtid_set()))
    }

    fn has_converged(&self) -> bool {
        // A history that is not the source's any more must end in a halt.
        let quiet = !self.facts.reset
            && self.respawn_at.is_none()
            && self.deferred.is_empty()
            && self.backlog.is_empty()
            && self.processes.len() == 1;
        if !quiet {
            return false;
        }
        let store = lock(&self.store);
        let position = store.gtid_set();
        let executed = self.servers[self.primary].executed();
        self.truth.is_reached(position) && position.is_none_or(|position| position.is_subset(executed))
    }

    /// What has not come about.
    fn pending(&self) -> String {
        let store = lock(&self.store);
        let position = store.gtid_set();
        let next = self.truth.next_after(position);
        format!("not converged: {:?}; the next entry is {next:?}; stored is {position:?}", self.processes)
    }

    /// A pipeline that is where it should be stops when it is asked to.
    fn drained(&mut self) -> Result<(), Failure> {
        let Some(process) = self.processes.first() else { return Ok(()) };
        let id = process.id;
        self.input(id, Input::Drain)?;
        let until = self.now + 120 * SECOND;
        loop {
            self.settle()?;
            if self.processes.iter().all(|process| process.id != id) {
                return if self.facts.halted.is_some() {
                    Err(Failure::new("liveness", "a halt while it drained"))
                } else {
                    Ok(())
                };
            }
            if !self.step(until)? {
                return Err(Failure::new("liveness", format!("it does not drain: {:?}", self.processes)));
            }
        }
    }

    // ---- helpers -------------------------------------------------------------------------------

    fn count(&mut self, fault: Fault) {
        *self.counts.faults.entry(fault.name()).or_default() += 1;
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            if trace.len() >= 4000 {
                trace.pop_front();
            }
            trace.push_back(format!("{:>14.6} {}", now as f64 / 1e6, what()));
        }
    }
}

/// Three servers of an empty history. All runs begin with the same ones, so they are made once.
fn servers(plan: &Plan) -> Vec<Server> {
    type Made = Vec<(&'static str, bool, Server)>;
    thread_local!(static MADE: RefCell<Made> = const { RefCell::new(Vec::new()) });
    MADE.with_borrow_mut(|made| {
        let known =
            |made: &Made| made.iter().position(|(v, sums, _)| (*v, *sums) == (plan.version, plan.crc32));
        let at = known(made).unwrap_or_else(|| {
            let mut server = Server::new(Uuid([1; 16]), 1, plan.version);
            server.crc32 = plan.crc32;
            server.restart(true, 1);
            made.push((plan.version, plan.crc32, server));
            made.len() - 1
        });
        (1..=3).map(|n| made[at].2.twin(Uuid([n; 16]), u32::from(n))).collect()
    })
}

/// How much a process lets come.
fn can_read(processes: &[Process], id: u32) -> usize {
    match processes.iter().find(|process| process.id == id).map(|process| process.read) {
        Some(Read::UpTo(n)) => n,
        Some(Read::Paused) | None => 0,
    }
}

/// The next thing that happens.
#[derive(Clone, Copy, Debug)]
enum Action {
    Fault,
    Commit,
    Apply,
    Land,
    Spawn,
    LogBinOn,
    LateDial,
    Sink(usize),
    Answer(usize),
    Tick(usize),
    Deliver(u32),
    Dialled(u32),
    Heartbeat(u32),
    Closed(u32),
}
