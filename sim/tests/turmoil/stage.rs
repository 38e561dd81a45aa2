//! Two hosts and the network between them.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use capstan::{
    core::{replica::LostReason, time::Now},
    net::Net,
};
use turmoil::{
    Builder, Sim,
    net::{TcpListener, TcpStream},
};

use crate::driver::{
    HOST, Outside, PORT, Settings, lock, ms, secs,
    source::Origin,
    target::{self, Blocking, Memory},
    wire::{Watched, Wire},
};

/// Turmoil's network and clock.
#[derive(Clone, Copy, Debug)]
pub struct Turmoil;

impl Net for Turmoil {
    type Stream = TcpStream;

    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, LostReason> {
        TcpStream::connect((host, port)).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::ConnectionRefused => LostReason::Refused,
            _ => LostReason::Reset,
        })
    }

    fn now(&self) -> Now {
        Now(turmoil::sim_elapsed().expect("inside the simulation").as_micros() as u64)
    }

    fn unix_time(&self) -> Duration {
        turmoil::since_epoch().expect("inside the simulation")
    }

    async fn sleep_until(&self, at: Now) {
        tokio::time::sleep(at.since(self.now())).await;
    }
}

pub type Network = Watched<Turmoil>;

/// The host the replica runs on.
pub const US: &str = "replica";

pub struct Stage {
    pub sim: Sim<'static>,
    pub origin: Origin,
    pub target: target::Shared,
    pub wire: Arc<Mutex<Wire>>,
    pub outside: Outside,
    pub seed: u64,
}

impl Stage {
    /// A world with a running source and nobody on the other host yet.
    pub fn new(seed: u64) -> Self {
        let mut sim = Builder::new()
            .rng_seed(seed)
            .epoch(UNIX_EPOCH + secs(1_700_000_100))
            .tick_duration(ms(20))
            .min_message_latency(ms(1))
            .max_message_latency(ms(40))
            .simulation_duration(secs(1_000_000))
            .build();
        let origin = Origin::new(seed);
        let booted = origin.clone();
        sim.host(HOST, move || {
            let origin = booted.clone();
            async move {
                origin.boot();
                origin.may_listen(&Turmoil).await;
                let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
                loop {
                    let (stream, _) = listener.accept().await?;
                    tokio::spawn(origin.clone().serve(Turmoil, stream));
                }
            }
        });
        let target = target::target(&origin);
        Self { sim, origin, target, wire: Wire::shared(), outside: Outside::default(), seed }
    }

    pub fn net(&self) -> Network {
        Watched::new(Turmoil, self.wire.clone())
    }

    /// Starts the replica on its host. When the host is bounced it starts again, from what is stored.
    pub fn start(&mut self, settings: Settings) {
        let (net, target, outside) = (self.net(), self.target.clone(), self.outside.clone());
        self.sim.host(US, move || {
            let replica = settings.build(&target);
            outside.began(&replica);
            let (net, outside) = (net.clone(), outside.clone());
            let sink = Memory::new(net.clone(), &target);
            async move {
                outside.ended(replica.run_on(&net, sink).await);
                Ok(())
            }
        });
    }

    /// As [`Stage::start`], with a sink on a thread; gives what opens its gate.
    pub fn start_blocking(&mut self, settings: Settings) -> std::sync::mpsc::Sender<()> {
        let (net, target, outside) = (self.net(), self.target.clone(), self.outside.clone());
        let (sink, open) = Blocking::new(&self.target);
        let sink = Rc::new(Cell::new(Some(sink)));
        self.sim.host(US, move || {
            let replica = settings.build(&target);
            outside.began(&replica);
            let (net, outside) = (net.clone(), outside.clone());
            let sink = sink.take().expect("it is started once");
            async move {
                outside.ended(replica.run_blocking_on(&net, sink).await);
                Ok(())
            }
        });
        open
    }

    pub fn settings(&self) -> Settings {
        Settings::new(self.seed)
    }

    /// Starts it with the goal that all committed so far be durable.
    pub fn start_until_all(&mut self) {
        let settings = self.settings().until_all_of(&self.origin);
        self.start(settings);
    }

    pub fn now(&self) -> Duration {
        self.sim.elapsed()
    }

    /// Lets time pass.
    pub fn pass(&mut self, duration: Duration) {
        let end = self.now() + duration;
        while self.now() < end {
            self.step();
        }
    }

    /// Lets time pass until something has happened, and says how long it took.
    pub fn until(&mut self, what: &str, limit: Duration, happened: impl Fn(&Self) -> bool) -> Duration {
        let began = self.now();
        while !happened(self) {
            assert!(
                self.now() - began < limit,
                "not within {limit:?} of virtual time: {what}; the replica is {:?}, {:?}",
                self.outside.state(),
                self.outside.end()
            );
            self.step();
        }
        self.now() - began
    }

    fn step(&mut self) {
        self.sim.step().expect("no host fails");
    }

    /// Runs to the end, which must be a stop with everything durable.
    pub fn finish(&mut self) {
        self.until("the end of the run", secs(3600), |stage| stage.outside.end().is_some());
        assert_eq!(self.outside.end(), Some(Ok(self.origin.executed().count())));
        lock(&self.target).assert_complete();
    }

    /// Runs to the end, which must be a halt with this code.
    pub fn finish_halted(&mut self, code: &str) {
        self.until("a halt", secs(3600), |stage| stage.outside.end().is_some());
        assert_eq!(self.outside.end(), Some(Err(code)));
    }

    /// Waits until everything committed is durable.
    pub fn catch_up(&mut self) {
        self.until("everything is durable", secs(3600), |stage| lock(&stage.target).is_complete());
        lock(&self.target).assert_complete();
    }

    /// Whether the sink has a batch in hand after so many commits.
    pub fn is_at_work_after(&self, commits: u64) -> bool {
        let target = lock(&self.target);
        target.applying == 1 && target.commits == commits
    }

    pub fn status(&self) -> capstan::Status {
        self.outside.handle().status()
    }
}

/// Turmoil hides a panic of a spawned task unless it is built with `tokio_unstable`; a suite that hides
/// panics passes whatever happens.
#[test]
#[should_panic = "a spawned task panicked"]
fn a_panic_of_a_spawned_task_is_seen() {
    let mut sim = Builder::new().build();
    sim.client("c", async {
        tokio::spawn(async { panic!("seen") });
        tokio::time::sleep(secs(1)).await;
        Ok(())
    });
    sim.run().unwrap();
}
