//! The loop: pull outputs until idle, wait for the first thing that happens, make it one input.
//!
//! One task, no lock. The sink's future is polled here too, on a batch the loop owns, so a dropped future
//! gives the batch back, and a dropped loop takes everything in flight along: what became of it is asked
//! of the position the next time.

mod feed;
mod link;
mod links;
mod target;
mod throttle;
mod watch;
mod worker;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use capstan_core::{
    config::{Config, Until},
    deliver::{Ack, BatchLimits, BatchState, Delivery, FailureClass, Push, Seq, SinkError, SinkFailure},
    halt::{Code, Halt},
    replica::{self, CopyRead, Input, LoadReason, Loaded, Output, Read},
    time::Now,
};
use tokio::sync::mpsc;

use self::{
    feed::FeedSender,
    link::Said,
    links::Links,
    target::{Outcome, Target},
    throttle::Throttle,
    watch::{Of, Watch},
    worker::Panicked,
};
pub(crate) use self::{
    target::{Polled, Store, Threaded},
    worker::Worker,
};
use crate::{
    builder::Stopped,
    fault::fault_point,
    metrics::Recorder,
    net::Net,
    status::{Command, Handle},
};

/// A wake-up later than this is told: the task was starved, and deadlines were judged late.
const LATE: Duration = Duration::from_secs(1);

/// Batches the sink may take at once, without waiting, before other tasks get their turn.
const BATCHES_PER_TURN: u32 = 64;

/// What a loop is made of.
pub(crate) struct Setup<'n, N: Net> {
    pub(crate) net: &'n N,
    pub(crate) host: &'n str,
    pub(crate) port: u16,
    pub(crate) config: Config,
    pub(crate) batch: BatchLimits,
    /// Bytes a second that the initial copy may read.
    pub(crate) copy_rate: Option<u64>,
    /// Unique among the pipelines of this process.
    pub(crate) pipeline: u64,
    pub(crate) seed: [u8; 32],
    pub(crate) handle: Handle,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) recorder: Arc<dyn Recorder>,
}

/// Runs a replica to its end.
pub(crate) async fn drive<N: Net, T: Target>(
    setup: Setup<'_, N>,
    mut target: T,
    mut store: Option<Store>,
) -> Result<Stopped, Halt> {
    let patience = setup.config.limits.acknowledgement;
    let mut driver = Driver::new(setup);
    let end = loop {
        driver.pump();
        if let Some(end) = driver.end.take() {
            break end;
        }
        if driver.load.is_some() {
            driver.load(&mut target, &mut store).await;
        } else if let Some(state) = driver.next_state() {
            driver.apply(state, &mut target, &mut store).await;
        } else {
            driver.turn::<std::future::Pending<()>>(None).await;
        }
    };
    let position = driver.delivery.durable().cloned();
    // A sink on a thread may still be at work, and holds its locks until it is done.
    let net = driver.net;
    drop(driver);
    let closing = async {
        target.close().await;
        if let Some(store) = store {
            store.close().await;
        }
    };
    if first(closing, net.sleep_until(net.now().after(patience))).await.is_none() {
        tracing::error!("the sink does not come back; its thread is left behind");
    }
    match end {
        End::Halted(halt) => {
            // A target of its own: a program that says the halt itself can leave the line out.
            tracing::error!(target: "capstan::halt", code = halt.code.as_str(), stage = halt.stage().as_str(), "halted");
            Err(halt)
        }
        End::Stopped => Ok(Stopped::new(position)),
    }
}

/// The output of `future`, unless `timer` ends first.
async fn first<T>(future: impl Future<Output = T>, timer: impl Future<Output = ()>) -> Option<T> {
    let (mut future, mut timer) = (pin!(future), pin!(timer));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}

enum End {
    Halted(Halt),
    Stopped,
}

/// The first thing that happened.
enum Woken<T> {
    /// The sink's future is done.
    Job(T),
    /// Something for the core.
    Input(Input),
}

/// A timer, and when it ends.
type Timer<'n> = (Now, Pin<Box<dyn Future<Output = ()> + Send + 'n>>);

struct Driver<'n, N: Net> {
    net: &'n N,
    replica: replica::Replica,
    delivery: Delivery,
    links: Links<'n, N>,
    throttle: Throttle,
    commands: mpsc::UnboundedReceiver<Command>,
    feed: Option<FeedSender>,
    freed: mpsc::UnboundedSender<usize>,
    released: mpsc::UnboundedReceiver<usize>,
    timer: Option<Timer<'n>>,
    wake: Option<Now>,
    read: Read,
    /// As `read`, of each view of the initial copy.
    read_copy: CopyRead,
    /// The position is asked for; the last reason counts.
    load: Option<LoadReason>,
    /// What runs is to be given up.
    overdue: bool,
    reapply: bool,
    end: Option<End>,
    now: Now,
    batches_at_once: u32,
    watch: Watch,
}

impl<N: Net> fmt::Debug for Driver<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver({:?}, {:?}, {:?})", self.replica, self.delivery, self.links)
    }
}

impl<'n, N: Net> Driver<'n, N> {
    fn new(setup: Setup<'n, N>) -> Self {
        let now = setup.net.now();
        let until = match &setup.config.until {
            Some(Until::Set(set)) => Some(set.clone()),
            Some(Until::Now) | None => None,
        };
        let (freed, released) = mpsc::unbounded_channel();
        Self {
            net: setup.net,
            replica: replica::Replica::new(setup.config, setup.seed, now),
            delivery: Delivery::new(setup.batch, setup.pipeline),
            links: Links::new(setup.net, setup.host, setup.port),
            throttle: Throttle::new(setup.copy_rate, now),
            commands: setup.commands,
            feed: None,
            freed,
            released,
            timer: None,
            wake: None,
            read: Read::Paused,
            read_copy: CopyRead::all(Read::Paused),
            load: None,
            overdue: false,
            reapply: false,
            end: None,
            now,
            batches_at_once: 0,
            watch: Watch::new(setup.handle, setup.recorder, until),
        }
    }

    // ---- what the core wants -----------------------------------------------------------------

    /// Carries out everything the core wants, until it is idle or at its end.
    fn pump(&mut self) {
        while self.end.is_none() {
            match self.replica.poll_output() {
                Output::LoadCheckpoint(reason) => {
                    self.load = Some(reason);
                    self.overdue |= reason == LoadReason::Overdue;
                    self.reapply = false;
                }
                Output::Reapply { upto: _ } => self.reapply = true,
                Output::Connect(link, epoch) => self.links.connect(link, epoch),
                Output::Secure(link, epoch) => self.links.secure(link, epoch),
                Output::Transmit(link, epoch, bytes) => self.links.transmit(link, epoch, bytes),
                Output::Close(link, epoch) => self.links.close(link, epoch),
                Output::Event(event) => {
                    self.watch.event(&event);
                    if let Push::Feed(event) = self.delivery.push(event)
                        && let Some(feed) = &self.feed
                    {
                        feed.send(event);
                    }
                }
                Output::Halt(halt) => self.end = Some(End::Halted(halt)),
                Output::Stopped => self.end = Some(End::Stopped),
                Output::Idle { wake, read, copy } => {
                    self.wake = wake.map(|(at, _)| at);
                    self.read = read;
                    self.read_copy = copy;
                    break;
                }
            }
        }
        let halt = match &self.end {
            Some(End::Halted(halt)) => Some(halt),
            Some(End::Stopped) | None => None,
        };
        let of = Of { replica: &self.replica, delivery: &self.delivery, halt };
        self.watch.publish(self.now, || self.net.unix_time(), of);
    }

    fn input(&mut self, input: Input) {
        if self.end.is_some() {
            return;
        }
        self.now = self.net.now().max(self.now);
        if let Err(misuse) = self.replica.handle_input(self.now, input) {
            // A bug of this loop. The input was not taken, so nothing has moved.
            tracing::error!(%misuse, "an input was refused");
        }
    }

    fn next_state(&mut self) -> Option<BatchState> {
        if std::mem::take(&mut self.reapply) {
            return self.delivery.reapply();
        }
        let (freed, feed) = (&self.freed, &mut self.feed);
        self.delivery.next_batch(|| {
            let (sender, receiver) = feed::feed(freed.clone());
            *feed = Some(sender);
            receiver
        })
    }

    // ---- waiting -----------------------------------------------------------------------------

    /// Waits for the first thing that happens. It is an input for the core, or the job's output.
    async fn turn<F: Future>(&mut self, mut job: Option<Pin<&mut F>>) -> Option<F::Output> {
        match poll_fn(|cx| self.poll_turn(cx, job.as_mut())).await {
            Woken::Job(output) => Some(output),
            Woken::Input(input) => {
                self.input(input);
                None
            }
        }
    }

    /// Polls in a fixed order, the timer last: what has arrived in time is not judged late.
    fn poll_turn<F: Future>(
        &mut self,
        cx: &mut Context<'_>,
        job: Option<&mut Pin<&mut F>>,
    ) -> Poll<Woken<F::Output>> {
        if self.batches_at_once >= BATCHES_PER_TURN {
            self.batches_at_once = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(job) = job {
            if let Poll::Ready(output) = job.as_mut().poll(cx) {
                return Poll::Ready(Woken::Job(output));
            }
            self.batches_at_once = 0;
        }
        if let Some(input) = self.poll_released(cx).or_else(|| self.poll_command(cx)) {
            return Poll::Ready(Woken::Input(input));
        }
        let copy = self.throttle.allowed(self.net.now(), self.read_copy.most());
        let copy = self.read_copy.up_to(copy);
        if let Poll::Ready((link, epoch, said)) = self.links.poll(cx, self.read, copy) {
            if let (replica::Link::Copy(_), Said::Bytes(bytes)) = (link, &said) {
                self.throttle.took(bytes.len());
            }
            return Poll::Ready(Woken::Input(match said {
                Said::Connected => Input::Connected(link, epoch),
                Said::Secured => Input::Secured(link, epoch),
                Said::Bytes(bytes) => Input::Bytes(link, epoch, bytes),
                Said::Lost(reason) => {
                    tracing::info!(?link, ?reason, "the link is lost");
                    Input::Lost(link, epoch, reason)
                }
            }));
        }
        if self.poll_timer(cx) { Poll::Ready(Woken::Input(Input::Tick)) } else { Poll::Pending }
    }

    fn poll_released(&mut self, cx: &mut Context<'_>) -> Option<Input> {
        let mut bytes = 0_usize;
        while let Poll::Ready(Some(more)) = self.released.poll_recv(cx) {
            bytes = bytes.saturating_add(more);
        }
        (bytes > 0).then_some(Input::Released { bytes })
    }

    fn poll_command(&mut self, cx: &mut Context<'_>) -> Option<Input> {
        // `None` when every handle is gone: nobody will ask for anything.
        match self.commands.poll_recv(cx) {
            Poll::Ready(Some(Command::Pause)) => Some(Input::Pause),
            Poll::Ready(Some(Command::Resume)) => Some(Input::Resume),
            Poll::Ready(Some(Command::PauseCopy)) => Some(Input::PauseCopy),
            Poll::Ready(Some(Command::ResumeCopy)) => Some(Input::ResumeCopy),
            Poll::Ready(Some(Command::Drain)) => Some(Input::Drain),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    /// Whether it is time. The deadline moves with almost every input, mostly later: then the timer is left
    /// as it is and ends early, which is harmless.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(wake) = [self.wake, self.watch.due(), self.throttle.due()].into_iter().flatten().min()
        else {
            self.timer = None;
            return false;
        };
        if self.timer.as_ref().is_none_or(|(at, _)| *at > wake) {
            self.timer = Some((wake, Box::pin(self.net.sleep_until(wake))));
        }
        let Some((at, timer)) = &mut self.timer else { return false };
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        let late = self.net.now().since(*at);
        if late > LATE {
            tracing::warn!(late_ms = late.as_millis(), "woken late: the task was starved");
        }
        self.timer = None;
        true
    }

    // ---- the sink ----------------------------------------------------------------------------

    /// Goes on with everything else while `job` runs. `None`: it was given up.
    async fn beside<F: Future>(&mut self, job: F, droppable: bool) -> Option<F::Output> {
        self.overdue = false;
        let mut job = pin!(job);
        loop {
            if let Some(output) = self.turn(Some(job.as_mut())).await {
                return Some(output);
            }
            self.pump();
            if self.end.is_some() || self.overdue {
                // Whatever the sink still reads, it reads in vain.
                self.feed = None;
                if droppable || self.end.is_some() {
                    return None;
                }
            }
        }
    }

    /// Asks the authority for the position.
    async fn load<T: Target>(&mut self, target: &mut T, store: &mut Option<Store>) {
        let outcome = match store {
            Some(store) => {
                let droppable = store.droppable();
                self.beside(store.load(), droppable).await
            }
            None => self.beside(target.position(), T::DROPPABLE).await,
        };
        // Given up: it is asked again by whoever comes next.
        let Some(outcome) = outcome else { return };
        let Some(reason) = self.load.take() else { return };
        match outcome {
            Ok(Ok(stored)) => {
                fault_point!("position_read");
                let holds = match reason {
                    LoadReason::AfterFailure => self.delivery.read_back(stored.as_ref()),
                    LoadReason::BeforeDial | LoadReason::Overdue => {
                        self.watch.restarted();
                        self.delivery.restart(stored.as_ref())
                    }
                };
                tracing::debug!(?reason, ?holds, "the position was read");
                let stored = stored.map(Box::new);
                self.input(Input::CheckpointLoaded(Loaded::Position { stored, holds }));
            }
            Ok(Err(error)) => {
                tracing::warn!(class = ?error.class(), step = error.step(), "the position was not read");
                self.watch.sink_failed(Code::PositionReadFailed);
                self.input(Input::CheckpointLoaded(Loaded::Failed(error.failure())));
            }
            Err(Panicked) => self.panicked(),
        }
    }

    /// Hands a batch to the sink and, where there is a store, its position to the store.
    async fn apply<T: Target>(&mut self, state: BatchState, target: &mut T, store: &mut Option<Store>) {
        let began = self.net.now();
        let mut state = state;
        let expected = store.is_some().then(|| state.batch().expected().clone());
        let mut slot = Some(state);
        let mut outcome = self.beside(target.apply(&mut slot), T::DROPPABLE).await;
        let mut overdue = self.overdue;
        if let (Some(Ok(Ok(ack))), Some(store), Some(expected)) = (&outcome, store, &expected)
            && !overdue
            && slot.as_ref().is_some_and(|state| self.delivery.check(state, ack).is_ok())
        {
            let droppable = store.droppable();
            let stored = self.beside(store.store(expected, ack.position()), droppable).await;
            overdue = self.overdue;
            outcome = with_stored(outcome, stored);
        }
        self.feed = None;
        self.settle(slot, outcome, overdue, began);
    }

    /// What became of a batch.
    fn settle(&mut self, slot: Option<BatchState>, outcome: Option<Outcome<Ack>>, overdue: bool, began: Now) {
        // What was released of it is settled with it; the next streamed unit must not get the credit.
        while self.released.try_recv().is_ok() {}
        match (outcome, slot) {
            (Some(Ok(Ok(ack))), Some(state)) if !overdue => {
                fault_point!("before_accept");
                match self.delivery.accept(state, ack) {
                    Ok(upto) => self.durable(upto, began),
                    Err(refused) => {
                        tracing::error!(%refused, "the sink returned an acknowledgement that is not its batch's");
                        self.input(Input::SinkFailed(failure(FailureClass::Permanent)));
                    }
                }
            }
            (Some(Ok(Err(error))), Some(state)) if !overdue => {
                self.delivery.failed(state);
                self.not_taken(&error);
            }
            (Some(Err(Panicked)), _) => self.panicked(),
            (_, Some(state)) => {
                tracing::warn!("a batch was given up; the position will tell what became of it");
                self.delivery.failed(state);
            }
            (_, None) => self.delivery.dropped(),
        }
    }

    fn durable(&mut self, upto: Seq, began: Now) {
        self.watch.durable(upto, self.net.now().since(began));
        self.input(Input::Durable { upto });
        self.batches_at_once += 1;
    }

    fn not_taken(&mut self, error: &SinkError) {
        if error.class() != FailureClass::Aborted {
            tracing::warn!(class = ?error.class(), step = error.step(), "the sink did not take a batch");
            self.watch.sink_failed(error.code());
        }
        self.input(Input::SinkFailed(error.failure()));
    }

    fn panicked(&mut self) {
        tracing::error!("the sink panicked");
        self.input(Input::SinkFailed(failure(FailureClass::Permanent)));
    }
}

fn failure(class: FailureClass) -> SinkFailure {
    SinkFailure { class, code: Code::SinkFailed, place: None }
}

/// The sink's acknowledgement counts once the store has the position.
fn with_stored(sink: Option<Outcome<Ack>>, store: Option<Outcome<()>>) -> Option<Outcome<Ack>> {
    match store? {
        Ok(Ok(())) => sink,
        Ok(Err(error)) => Some(Ok(Err(error.or_code(Code::PositionWriteFailed)))),
        Err(panicked) => Some(Err(panicked)),
    }
}
