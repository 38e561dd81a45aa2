//! The world: servers, network, sink, processes, time. One loop, no runtime.

mod copying;
mod end;
mod faults;
mod hand;
mod lives;
mod moments;
mod net;
mod oracles;
mod source;
mod story;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use capstan_core::{
    capture::CapturedSet,
    config::{Config, Limits, Start},
    deliver::Position,
    gtid::{Tsid, Uuid},
    halt::Code,
    link::{Login, Secret, TlsMode},
    replica::{CopyLink, DialEpoch, Input, Link as LinkKind, Read},
};
use capstan_fake_source::{Group, Server};

pub use self::moments::{Moment, When};
use self::net::{Link, LinkId};
use crate::{
    choices::Choices,
    copied::Target,
    extras::Extras,
    fault::Fault,
    oracle::{Failure, bounds::Dials, fencing::Fencing, prefix::Prefix, progress::Steps, window::Window},
    plan::{ENDS_LINKS, Plan, Planned, Wishes},
    process::{Process, Reading},
    sink::{Deferred, Outcome, lock},
    store::{Shared, Store},
    truth::Truth,
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
    snapshot: None,
    copy_again: None,
    copy: capstan_core::snapshot::CopyLimits::default(),
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
    /// Processes that stopped as they were asked to.
    pub stopped: u64,
    /// Chunks of initial copies that were stored.
    pub chunks: u64,
    /// Locks that were asked for, to read and to write.
    pub locks: (u64, u64),
    /// Statements that an initial copy had interrupted.
    pub interrupted: u64,
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
    /// The same of streams alone.
    stall_stream: u64,
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
    links: BTreeMap<LinkId, Link>,
    late_dials: Vec<(u64, LinkId, DialEpoch)>,
    copy: copying::Copying,
    copy_dials: Dials,
    next_process: u32,
    respawn_at: Option<u64>,
    planned: VecDeque<Planned>,
    deferred: Vec<(u64, Deferred)>,
    regimes: Regimes,
    directed: Directed,
    /// An older state of the target.
    backup: Option<Backup>,
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

/// An older state of the target, and what the oracles knew of it then.
#[derive(Debug)]
struct Backup {
    position: Option<Arc<Position>>,
    target: Target,
    prefix: Prefix,
    fencing: Fencing,
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
    /// The server that a process was last linked to and has left, by its number: what it halts for it has seen there, though
    /// the address may name another server by then.
    left: BTreeMap<u32, usize>,
    /// Since when sink or position fail.
    sink_trouble: Option<u64>,
    /// Processes whose dump a server has ended because a rival of their name asked for one.
    replaced: BTreeSet<u32>,
    /// What each process has seen of the lock it wants.
    locks: BTreeMap<u32, copying::WantedLock>,
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
        self.servers.iter_mut().for_each(Server::settles);
    }

    fn of_plan(plan: Plan, choices: Choices, traced: bool, library: bool) -> Self {
        let servers = source::servers(&plan);
        let store = Store { target: Target { again: library, ..Target::default() }, ..Store::default() };
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
            store: Arc::new(Mutex::new(store)),
            prefix: Prefix::default(),
            fencing: Fencing::default(),
            window: Window::default(),
            library,
            processes: Vec::new(),
            links: BTreeMap::new(),
            late_dials: Vec::new(),
            copy: copying::Copying::new(plan.whole),
            copy_dials: Dials::default(),
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
        if let Some(at) = self.copy.move_at {
            offer(at, Action::Move);
        }
        if let Some(at) = self.copy.alter_at {
            offer(at, Action::Alter);
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
            let stall = regimes.stall.max(if id.1 == LinkKind::Stream { regimes.stall_stream } else { 0 });
            link.actions(*id, &mut servers[link.server], credit, stall, now, &mut offer);
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
            Action::Move => self.moves(),
            Action::Alter => self.alters(),
            Action::Commit if self.has_to_wait() => {}
            Action::Commit => {
                self.commits_left -= 1;
                if self.script.is_empty() && self.commits_left == self.plan.transactions.1 / 2 {
                    self.commit_of(Shape::Ddl);
                } else {
                    self.commit();
                }
                let pace = self.plan.horizon / u64::from(self.plan.transactions.1);
                let waits = match self.plan.copy {
                    true => [pace / 4, 0, 2_000, 40_000, 3 * pace],
                    false => [pace, 0, 0, 0, 3 * pace],
                };
                let wait = self.plan.pace.unwrap_or_else(|| self.choices.pick(&waits));
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
                    self.note(|| format!("process {}: the late answer of dial {epoch:?}", id.0));
                    self.input(id.0, Input::Connected(id.1, epoch))?;
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
        self.plan_soon(planned.fault, SECOND.max(self.plan.horizon / 64));
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

    /// One more fault, before long.
    fn plan_soon(&mut self, fault: Fault, after: u64) {
        if self.healed {
            return;
        }
        let planned = Planned { at: self.now + after, lasts: 0, fault };
        let index = self.planned.iter().position(|p| p.at > planned.at).unwrap_or(self.planned.len());
        self.planned.insert(index, planned);
    }

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

/// How much a process lets come.
fn can_read(processes: &[Process], id: LinkId) -> usize {
    let process = processes.iter().find(|process| process.id == id.0);
    let read = process.map(|process| match id.1 {
        LinkKind::Stream => process.read,
        LinkKind::Copy(CopyLink::View(view)) => process.read_copy.of(view),
        LinkKind::Copy(CopyLink::Lock | CopyLink::Compare) => process.read_copy.most(),
    });
    match read {
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
    Deliver(LinkId),
    Dialled(LinkId),
    Heartbeat(LinkId),
    Closed(LinkId),
    Move,
    Alter,
}
