//! Async and blocking sinks behind one interface, and how a call is killed halfway.

use std::{
    any::Any,
    cell::Cell,
    collections::VecDeque,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use capstan_core::deliver::{Ack, BatchState, BlockingSink, Event, Feed, Position, Sink, SinkError};

use crate::{crash::Strength, process};

/// A sink under test. Implemented by [`Blocking`] and [`Async`] alone.
pub trait Subject: sealed::Calls + Send {}

/// A [`BlockingSink`] under test. A killed call is unwound, so a build with `panic = "abort"` cannot
/// run the kit.
#[derive(Debug)]
pub struct Blocking<S>(pub S);

/// A [`Sink`] under test. Its futures are polled on the calling thread, which sleeps in between. A
/// killed call is a dropped future.
#[derive(Debug)]
pub struct Async<S>(pub S);

impl<S: BlockingSink> Subject for Blocking<S> {}
impl<S: Sink> Subject for Async<S> {}

/// How a call came to its end.
#[derive(Debug)]
pub enum Ended<T> {
    /// The sink answered.
    Answered(T),
    /// The kit killed it while it waited for more of a transaction.
    Killed,
    /// It panicked, or never answers: what it did.
    Broke(String),
}

pub(crate) mod sealed {
    use super::{Ack, BatchState, Ended, Pipe, Position, SinkError, Strength};

    pub trait Calls {
        fn position(&mut self) -> Ended<Result<Option<Position>, SinkError>>;
        fn apply(&mut self, state: &mut BatchState, pipe: &Pipe) -> Ended<Result<Ack, SinkError>>;
        /// How a call is killed halfway.
        fn killed_by(&self) -> Strength;
    }
}

impl<S: BlockingSink> sealed::Calls for Blocking<S> {
    fn position(&mut self) -> Ended<Result<Option<Position>, SinkError>> {
        guarded(|| self.0.position())
    }

    fn apply(&mut self, state: &mut BatchState, _: &Pipe) -> Ended<Result<Ack, SinkError>> {
        guarded(|| self.0.apply(state.blocking()))
    }

    fn killed_by(&self) -> Strength {
        Strength::UnwoundCall
    }
}

impl<S: Sink> sealed::Calls for Async<S> {
    fn position(&mut self) -> Ended<Result<Option<Position>, SinkError>> {
        guarded(|| wait(self.0.position(), &Pipe::default()).ok_or(())).flatten()
    }

    fn apply(&mut self, state: &mut BatchState, pipe: &Pipe) -> Ended<Result<Ack, SinkError>> {
        guarded(|| wait(self.0.apply(state.batch()), pipe).ok_or(())).flatten()
    }

    fn killed_by(&self) -> Strength {
        Strength::DroppedFuture
    }
}

impl<T> Ended<Result<T, ()>> {
    fn flatten(self) -> Ended<T> {
        match self {
            Self::Answered(Ok(answer)) => Ended::Answered(answer),
            Self::Answered(Err(())) | Self::Killed => Ended::Killed,
            Self::Broke(why) => Ended::Broke(why),
        }
    }
}

/// What unwinds a call that is killed.
struct Kill;

/// Ends the call here, as a crash would; a child process ends here whole.
pub(crate) fn kill() -> ! {
    if process::in_child() {
        process::brink();
    }
    resume_unwind(Box::new(Kill))
}

fn guarded<T>(call: impl FnOnce() -> T) -> Ended<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => Ended::Answered(answer),
        Err(payload) if payload.is::<Kill>() => Ended::Killed,
        Err(payload) if payload.is::<Stuck>() => {
            Ended::Broke(format!("has not answered for {:?}, and nothing has woken it", patience()))
        }
        Err(payload) => Ended::Broke(format!("panicked: {}", panic_text(payload.as_ref()))),
    }
}

pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// What unwinds a call that never answers.
struct Stuck;

thread_local! {
    static PATIENCE: Cell<Duration> = const { Cell::new(Duration::from_secs(60)) };
}

/// How long a future may wait without being woken.
pub(crate) fn patience() -> Duration {
    PATIENCE.get()
}

/// What runs on this thread is waited for so long.
pub(crate) fn be_patient(patience: Duration) {
    PATIENCE.set(patience);
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end; `None`: it was dropped because the kit killed it.
fn wait<F: Future>(future: F, pipe: &Pipe) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return Some(output),
            Poll::Pending if pipe.is_killed() && process::in_child() => process::brink(),
            Poll::Pending if pipe.is_killed() || !pipe.waits_on() => return None,
            Poll::Pending => {
                let began = Instant::now();
                thread::park_timeout(patience());
                if began.elapsed() >= patience() {
                    resume_unwind(Box::new(Stuck));
                }
            }
        }
    }
}

/// The rest of a transaction that is handed over while it is read. At its end the call is killed.
#[derive(Clone, Debug, Default)]
pub struct Pipe(Arc<Shared>);

type Made = Box<dyn FnMut() -> Option<Event> + Send>;

#[derive(Default)]
struct Shared {
    /// What comes before the queue, made as it is asked for.
    made: Mutex<Option<Made>>,
    queue: Mutex<VecDeque<Event>>,
    killed: AtomicBool,
    /// How often an async call may wait before it is dropped, and one more; 0: without end.
    waits: AtomicUsize,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("killed", &self.killed)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}

impl Pipe {
    pub(crate) fn push(&self, event: Event) {
        self.queue().push_back(event);
    }

    /// Before all that was pushed come these, each made when it is asked for.
    pub(crate) fn make(&self, events: impl FnMut() -> Option<Event> + Send + 'static) {
        *self.0.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(events));
    }

    fn next(&self) -> Option<Event> {
        let mut made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = made.as_mut().and_then(|make| make()) {
            return Some(event);
        }
        *made = None;
        self.queue().pop_front()
    }

    /// An async call is dropped once it has waited so many times.
    pub(crate) fn drop_after(&self, waits: usize) {
        self.0.waits.store(waits + 1, Ordering::Release);
    }

    /// One more wait; `false`: no more.
    fn waits_on(&self) -> bool {
        match self.0.waits.load(Ordering::Acquire) {
            0 => true,
            1 => false,
            left => {
                self.0.waits.store(left - 1, Ordering::Release);
                true
            }
        }
    }

    fn is_killed(&self) -> bool {
        self.0.killed.load(Ordering::Acquire)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed for Pipe {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Event>> {
        let event = self.next();
        if event.is_none() {
            self.0.killed.store(true, Ordering::Release);
            return Poll::Pending;
        }
        Poll::Ready(event)
    }

    fn wait_next(&mut self) -> Option<Event> {
        let event = self.next();
        if event.is_none() {
            kill();
        }
        event
    }

    fn released(&mut self, _: usize) {}
}
