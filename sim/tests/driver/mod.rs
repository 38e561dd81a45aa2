//! What the tests of the driver share, whatever runtime simulates the world around it: a source with a
//! history ([`source`]), a sink that remembers ([`target`]), and a network that is watched and disturbed
//! ([`wire`]).

#![allow(dead_code, reason = "each of the two suites needs its own part of it")]

pub mod source;
pub mod target;
pub mod wire;

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, TryLockError},
    task::Poll,
    time::Duration,
};

use capstan::{
    BatchLimits, GtidSet, Handle, Limits, Replica, Secret, Source, SslMode, SslSettings, Start, Until,
};

use self::{source::Origin, target::Target};

/// The name and port the source listens at.
pub const HOST: &str = "source";
pub const PORT: u16 = 3306;

/// As small as they may be: a transaction above 64 KiB is handed over while it is read, and little more
/// than two of those bytes' worth is retained.
pub const STREAM_ABOVE: usize = 64 << 10;
pub const RETAINED_MAX: usize = 160 << 10;

/// Settings of one run of the replica.
#[derive(Clone)]
pub struct Settings {
    pub seed: u64,
    pub limits: Limits,
    pub batch: BatchLimits,
    /// Where it ends by itself.
    pub until: Option<GtidSet>,
}

impl Settings {
    pub fn new(seed: u64) -> Self {
        let limits = Limits { stream_above: STREAM_ABOVE, retained_max: RETAINED_MAX, ..Limits::default() };
        Self { seed, limits, batch: BatchLimits::default(), until: None }
    }

    pub fn until(mut self, set: GtidSet) -> Self {
        self.until = Some(set);
        self
    }

    /// Ends when all that `origin` has committed so far is durable.
    pub fn until_all_of(self, origin: &Origin) -> Self {
        self.until(origin.executed())
    }

    /// A replica that goes on from what `target` holds.
    pub fn build(&self, target: &Arc<Mutex<Target>>) -> Replica {
        let source = Source::new(HOST, "repl")
            .with_port(PORT)
            .with_password(Secret::new("secret"))
            .with_ssl(SslSettings { mode: SslMode::Disabled, ..SslSettings::default() });
        let begun = lock(target).position.is_some();
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        let mut builder = Replica::builder(source)
            .tables(["shop.*"])
            .start(if begun { Start::Stored } else { Start::Earliest })
            .server_id(7)
            .identity("target")
            .seed(seed)
            .limits(self.limits)
            .batch(self.batch);
        if let Some(set) = &self.until {
            builder = builder.until(Until::Set(set.clone()));
        }
        builder.build().unwrap()
    }
}

/// What a run of a replica leaves behind, for those who look at it from outside.
#[derive(Clone, Default)]
pub struct Outside {
    pub handle: Arc<Mutex<Option<Handle>>>,
    /// How the last run ended: its position's count, or the halt's code.
    pub end: Arc<Mutex<Option<Result<u64, &'static str>>>>,
}

impl Outside {
    pub fn handle(&self) -> Handle {
        lock(&self.handle).clone().expect("a replica has been started")
    }

    pub fn state(&self) -> &'static str {
        lock(&self.handle).as_ref().map_or("", |handle| handle.status().state)
    }

    pub fn end(&self) -> Option<Result<u64, &'static str>> {
        *lock(&self.end)
    }

    pub fn began(&self, replica: &Replica) {
        *lock(&self.handle) = Some(replica.handle());
        *lock(&self.end) = None;
    }

    pub fn ended(&self, end: Result<capstan::Stopped, capstan::Halt>) {
        let end = match end {
            Ok(stopped) => Ok(stopped.position.map_or(0, |position| position.gtid_set().count())),
            Err(halt) => Err(halt.code.as_str()),
        };
        *lock(&self.end) = Some(end);
    }
}

/// Locks what a panic elsewhere may have poisoned: that panic is the failure to be shown. Two guards of one
/// mutex in one expression are a failure too, and no test that never ends.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for _ in 0..100_000 {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    panic!("locked twice");
}

/// Polls `future` at most `polls` times and drops it then, wherever it stands.
pub async fn polled<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => {
                // The last poll is followed by the drop at once: nothing else may run in between.
                if left == 0 { Poll::Ready(None) } else { Poll::Pending }
            }
        }
    })
    .await
}

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
