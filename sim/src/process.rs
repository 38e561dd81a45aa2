//! One process that runs a pipeline: the real core and the real delivery, driven as the contract says.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use capstan_core::{
    config::Config,
    deliver::{
        Ack, BatchLimits, BatchState, Delivery, Event, FailureClass, Feed, Holds, Position, Push, Sink,
        SinkError, SinkFailure,
    },
    gtid::GtidSet,
    halt::{Code, Halt},
    replica::{CopyRead, DialEpoch, Input, Link, LoadReason, Loaded, Output, Read, Replica, WakeReason},
    time::Now,
};

use crate::{
    hash::Hash,
    marks::Watched,
    oracle::{Failure, account::Account, grammar::Grammar, patience, seam},
    sink::{SimSink, Stage, lock},
    store::Shared,
};

/// What the core wants of the network.
#[derive(Debug)]
pub enum Want {
    /// Dial.
    Connect(Link, DialEpoch),
    /// Send.
    Transmit(Link, DialEpoch, Bytes),
    /// Close.
    Close(Link, DialEpoch),
}

/// How a process ended by itself.
#[derive(Clone, Debug)]
pub enum End {
    /// By a halt.
    Halted(Halt),
    /// As asked.
    Stopped,
}

/// The rest of a streamed transaction on its way to the sink.
#[derive(Debug, Default)]
struct FeedState {
    queue: VecDeque<Event>,
    released: usize,
    closed: bool,
}

struct SimFeed(Arc<Mutex<FeedState>>);

impl FeedState {
    /// Nothing is left to read.
    fn is_drained(&self) -> bool {
        self.queue.is_empty() && !self.closed
    }
}

impl Feed for SimFeed {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut feed = lock(&self.0);
        match feed.queue.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if feed.closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn wait_next(&mut self) -> Option<Event> {
        lock(&self.0).queue.pop_front()
    }

    fn released(&mut self, bytes: usize) {
        lock(&self.0).released += bytes;
    }
}

type Applied = (SimSink, Result<Ack, SinkError>);

/// A batch at the sink. The state comes back when the future ends, and also when it is dropped.
struct Job {
    future: Pin<Box<dyn Future<Output = Applied> + Send>>,
    back: Arc<Mutex<Option<BatchState>>>,
}

/// Owns a batch inside a future and gives it back in any case.
struct Holder {
    state: Option<BatchState>,
    back: Arc<Mutex<Option<BatchState>>>,
}

impl Drop for Holder {
    fn drop(&mut self) {
        *lock(&self.back) = self.state.take();
    }
}

/// How a question for the position is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As it is stored.
    Ok,
    /// It cannot be read now.
    Transient,
    /// It is not answered at all.
    Hang,
}

/// A process.
pub struct Process {
    /// Its number.
    pub id: u32,
    /// What it was told.
    pub config: Config,
    /// The core.
    pub core: Replica<Watched>,
    /// What the core wants of the network, in order.
    pub wants: VecDeque<Want>,
    /// When the core wants to be woken, and why.
    pub wake: Option<(Now, WakeReason)>,
    /// What may be read.
    pub read: Read,
    /// What may be read of each link of an initial copy.
    pub read_copy: CopyRead,
    /// Its end.
    pub end: Option<End>,
    /// What its sink and the world tell each other.
    pub stage: Arc<Mutex<Stage>>,
    /// When the position that was asked for is answered, and how.
    pub answer: Option<(u64, Reading)>,
    /// The last position it was told.
    pub told: Option<Arc<Position>>,
    told_first: Option<Option<Arc<Position>>>,
    /// Rows and events so far, for the marks.
    pub aborts: u64,
    /// Streamed transactions that began.
    pub streamed: u64,
    /// A hash over every event, in order, if it is wanted.
    pub digest: Hash,
    digests: bool,
    delivery: Delivery<Watched>,
    store: Shared,
    sink: Option<SimSink>,
    job: Option<Job>,
    load: Option<LoadReason>,
    overdue: bool,
    reapply: bool,
    feed: Option<Arc<Mutex<FeedState>>>,
    poke: bool,
    grammar: Grammar,
    account: Account,
    /// The sink had read all there was when the rest was taken back.
    was_waiting: bool,
    /// What every server it has dialled had executed by then.
    pub floor: Option<GtidSet>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "process {}: {}, {} at the sink, load {:?}, wake {:?}, {:?}",
            self.id,
            self.core.state(),
            if self.job.is_some() { "a batch" } else { "nothing" },
            self.load,
            self.wake,
            self.read
        )
    }
}

impl Process {
    /// Starts a process.
    pub fn start(
        id: u32,
        config: Config,
        batch: BatchLimits,
        seed: [u8; 32],
        store: Shared,
        stage: Stage,
        digests: bool,
    ) -> Result<Self, Failure> {
        let now = Now(stage.now);
        let stage = Arc::new(Mutex::new(stage));
        let sink = SimSink::new(Arc::clone(&store), Arc::clone(&stage));
        let mut process = Self {
            id,
            core: Replica::probed(config.clone(), seed, now),
            config,
            wants: VecDeque::new(),
            wake: None,
            read: Read::Paused,
            read_copy: CopyRead::all(Read::Paused),
            end: None,
            stage,
            answer: None,
            told: None,
            told_first: None,
            aborts: 0,
            streamed: 0,
            digest: Hash::default(),
            digests,
            delivery: Delivery::probed(batch, u64::from(id)),
            store,
            sink: Some(sink),
            job: None,
            load: None,
            overdue: false,
            reapply: false,
            feed: None,
            poke: false,
            grammar: Grammar::default(),
            account: Account::default(),
            was_waiting: false,
            floor: None,
        };
        process.pump()?;
        Ok(process)
    }

    /// Whether it still runs.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        self.end.is_none()
    }

    /// Whether a batch is at the sink.
    #[must_use]
    pub const fn is_applying(&self) -> bool {
        self.job.is_some()
    }

    /// Whether the position is asked for and the sink is free to answer.
    #[must_use]
    pub const fn wants_answer(&self) -> bool {
        self.load.is_some() && self.job.is_none()
    }

    /// Why the position is asked for.
    #[must_use]
    pub const fn load(&self) -> Option<LoadReason> {
        self.load
    }

    /// When its sink wants to go on.
    #[must_use]
    pub fn sink_wake(&self) -> Option<u64> {
        let stage = lock(&self.stage);
        self.job.as_ref()?;
        if self.poke || stage.committed { Some(stage.now) } else { stage.wake }
    }

    /// Whether it waits for nothing and nothing will ever come.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.is_alive()
            && self.wake.is_none()
            && self.job.is_none()
            && self.load.is_none()
            // A person has paused it and will resume it.
            && self.core.state() != "paused"
            && !self.can_batch_later()
    }

    /// Whether it has claimed the target.
    #[must_use]
    pub const fn claimed(&self) -> bool {
        self.grammar.claimed().is_some()
    }

    /// Whether what is stored was written by another owner.
    #[must_use]
    pub fn is_not_owner_of(&self, stored: Option<&Position>) -> bool {
        match (stored, self.grammar.claimed()) {
            (Some(stored), Some(owner)) => stored.owner() != owner,
            // It never claimed, so whoever did is another.
            (Some(stored), None) => match &self.told_first {
                Some(Some(told)) => !told.same_owner(stored),
                Some(None) | None => true,
            },
            (None, _) => false,
        }
    }

    const fn can_batch_later(&self) -> bool {
        matches!(self.read, Read::UpTo(_))
    }

    /// Gives an input and carries out what follows.
    pub fn input(&mut self, now: u64, input: Input) -> Result<(), Failure> {
        if self.end.is_some() {
            return Ok(());
        }
        self.core
            .handle_input(Now(now), input)
            .map_err(|misuse| Failure::new("seam", format!("{misuse}: {self:?}")))?;
        self.pump()?;
        // What is due is done with the input, so no deadline handed out lies in the past.
        if self.end.is_none() {
            self.account.agrees(self.core.units_out())?;
        }
        patience::silence_counts_while_reading(self.wake, self.read)?;
        seam::no_deadline_left_behind(self.wake, now)
    }

    /// A tick, and a second one at the same instant: nothing may change, no deadline may stay behind.
    pub fn tick(&mut self, now: u64, twice: bool) -> Result<(), Failure> {
        self.input(now, Input::Tick)?;
        if self.end.is_some() {
            return Ok(());
        }
        if twice && self.wants.is_empty() {
            let before = (self.wake, self.read);
            self.input(now, Input::Tick)?;
            seam::same_idle(before, (self.wake, self.read))?;
        }
        Ok(())
    }

    /// Whether the sink has read all there is of a transaction that is still being read.
    fn sink_waits(&self) -> bool {
        let Some(feed) = &self.feed else { return false };
        let stage = lock(&self.stage);
        self.job.is_some()
            && !self.poke
            && stage.wake.is_none()
            && !stage.committed
            && lock(feed).is_drained()
    }

    /// A dial begins, to a server that has executed this.
    pub fn dials_to(&mut self, executed: &GtidSet) {
        self.floor =
            Some(self.floor.take().map_or_else(|| executed.clone(), |floor| floor.intersect(executed)));
    }

    /// Pulls outputs until idle.
    fn pump(&mut self) -> Result<(), Failure> {
        let mut outputs = 0_u64;
        self.was_waiting = false;
        loop {
            outputs += 1;
            seam::drain_is_bounded(outputs)?;
            match self.core.poll_output() {
                Output::LoadCheckpoint(reason) => {
                    if reason == LoadReason::Overdue && self.load.is_none() {
                        patience::sink_was_slow(self.was_waiting)?;
                    }
                    self.load = Some(reason);
                    self.answer = None;
                    self.overdue |= reason == LoadReason::Overdue;
                    self.reapply = false;
                }
                Output::Reapply { .. } => self.reapply = true,
                Output::Connect(link, epoch) => self.wants.push_back(Want::Connect(link, epoch)),
                Output::Secure(..) => return Err(Failure::new("seam", "TLS was disabled")),
                Output::Transmit(link, epoch, bytes) => {
                    self.wants.push_back(Want::Transmit(link, epoch, bytes));
                }
                Output::Close(link, epoch) => self.wants.push_back(Want::Close(link, epoch)),
                Output::Event(event) => self.event(event)?,
                Output::Halt(halt) => {
                    seam::halt_is_sticky(&mut self.core, &halt)?;
                    self.ended(End::Halted(halt));
                    return Ok(());
                }
                Output::Stopped => {
                    self.account.stopped()?;
                    self.ended(End::Stopped);
                    return Ok(());
                }
                Output::Idle { wake, read, copy } => {
                    self.wake = wake;
                    self.read_copy = copy;
                    self.read = read;
                    return Ok(());
                }
            }
        }
    }

    fn ended(&mut self, end: End) {
        self.end = Some(end);
        self.wake = None;
        self.read = Read::Paused;
        self.read_copy = CopyRead::all(Read::Paused);
        self.load = None;
        self.job = None;
    }

    fn event(&mut self, event: Event) -> Result<(), Failure> {
        self.grammar.check(&event)?;
        self.account.event(&event, &self.config.limits)?;
        if let Event::Rows(rows) = &event {
            self.digest.number(1, rows.retained() as u64);
        } else if self.digests {
            self.digest.bytes(2, format!("{event:?}").as_bytes());
        }
        match &event {
            Event::TxAbort { .. } => self.aborts += 1,
            Event::TxBegin(begin) if begin.streamed => self.streamed += 1,
            Event::TxBegin(_)
            | Event::Claim { .. }
            | Event::Table(_)
            | Event::Rows(_)
            | Event::SchemaChange(_)
            | Event::TxCommit(_)
            | Event::SnapshotRows(_)
            | Event::Progress { .. } => {}
        }
        let (abort, waits) = (matches!(event, Event::TxAbort { .. }), self.sink_waits());
        match self.delivery.push(event) {
            Push::Queued => {}
            Push::Feed(event) => {
                self.was_waiting = abort && waits;
                if let Some(feed) = &self.feed {
                    lock(feed).queue.push_back(event);
                    self.poke = true;
                }
            }
        }
        Ok(())
    }

    /// Gives up what runs if that was asked for. `keep`: the batch comes back from a dropped future.
    pub fn give_up_if_overdue(&mut self, keep: bool) {
        if !std::mem::take(&mut self.overdue) {
            return;
        }
        let Some(job) = self.job.take() else { return };
        drop(job.future);
        self.feed = None;
        self.poke = false;
        self.sink = Some(SimSink::new(Arc::clone(&self.store), Arc::clone(&self.stage)));
        {
            let mut stage = lock(&self.stage);
            stage.wake = None;
            stage.committed = false;
        }
        match lock(&job.back).take() {
            Some(state) if keep => self.delivery.failed(state),
            Some(_) | None => self.delivery.dropped(),
        }
    }

    /// Takes the next batch to the sink, if it is free and there is one. `true`: a batch went out.
    pub fn next_batch(&mut self) -> bool {
        if self.end.is_some() || self.job.is_some() || self.load.is_some() {
            return false;
        }
        let state = if std::mem::take(&mut self.reapply) {
            self.delivery.reapply()
        } else {
            let slot = &mut self.feed;
            self.delivery.next_batch(|| {
                let feed = Arc::new(Mutex::new(FeedState::default()));
                *slot = Some(Arc::clone(&feed));
                Box::new(SimFeed(feed))
            })
        };
        let Some(state) = state else { return false };
        let Some(mut sink) = self.sink.take() else { return false };
        let back = Arc::new(Mutex::new(None));
        let mut holder = Holder { state: Some(state), back: Arc::clone(&back) };
        let future = Box::pin(async move {
            let done = match holder.state.as_mut() {
                Some(state) => sink.apply(state.batch()).await,
                None => Err(SinkError::new(FailureClass::Permanent, "holder", None)),
            };
            drop(holder);
            (sink, done)
        });
        {
            let mut stage = lock(&self.stage);
            stage.changes = 0;
            stage.streamed = false;
            stage.at_hand_over = lock(&self.store).position.clone();
        }
        self.job = Some(Job { future, back });
        self.poke = true;
        true
    }

    /// Lets the sink go on.
    pub fn poll_sink(&mut self, now: u64) -> Result<(), Failure> {
        lock(&self.stage).now = now;
        self.poke = false;
        let Some(job) = &mut self.job else { return Ok(()) };
        let polled = job.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let released = self.feed.as_ref().map_or(0, |feed| std::mem::take(&mut lock(feed).released));
        if released > 0 {
            self.account.released(released);
            self.input(now, Input::Released { bytes: released })?;
        }
        if let Poll::Ready((sink, done)) = polled {
            self.sink_done(now, sink, done)?;
        }
        Ok(())
    }

    fn sink_done(&mut self, now: u64, sink: SimSink, done: Result<Ack, SinkError>) -> Result<(), Failure> {
        self.sink = Some(sink);
        self.feed = None;
        let Some(job) = self.job.take() else { return Ok(()) };
        let Some(state) = lock(&job.back).take() else {
            return Err(Failure::new("world", "the batch did not come back"));
        };
        match done {
            Ok(ack) => match self.delivery.accept(state, ack) {
                Ok(upto) => {
                    self.account.durable(upto);
                    self.input(now, Input::Durable { upto })
                }
                Err(refused) => Err(Failure::new("seam", format!("{refused}"))),
            },
            Err(error) => {
                self.delivery.failed(state);
                self.input(now, Input::SinkFailed(error.failure()))
            }
        }
    }

    /// The question for the position is answered.
    pub fn answer(&mut self, now: u64, reading: Reading) -> Result<(), Failure> {
        let Some(reason) = self.load.take() else { return Ok(()) };
        self.answer = None;
        let loaded = match reading {
            Reading::Ok => {
                let stored = lock(&self.store).position.clone();
                let holds = match reason {
                    LoadReason::AfterFailure => self.delivery.read_back(stored.as_deref()),
                    LoadReason::BeforeDial | LoadReason::Overdue => self.delivery.restart(stored.as_deref()),
                };
                match (holds, reason) {
                    (Holds::Committed { upto }, LoadReason::AfterFailure) => self.account.durable(upto),
                    (Holds::Expected, LoadReason::AfterFailure) => self.account.taken_back(),
                    _ => self.account.restarted(),
                }
                self.told.clone_from(&stored);
                self.told_first.get_or_insert_with(|| stored.clone());
                Loaded::Position { stored: stored.map(|stored| Box::new((*stored).clone())), holds }
            }
            Reading::Transient | Reading::Hang => Loaded::Failed(SinkFailure {
                class: FailureClass::Transient,
                code: Code::SinkFailed,
                place: None,
            }),
        };
        self.input(now, Input::CheckpointLoaded(loaded))
    }
}
