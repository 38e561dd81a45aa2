//! Two nodes and the network between them, seed after seed.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use capstan::{
    core::{replica::LostReason, time::Now},
    net::Net,
};
use madsim::{
    Config,
    net::{NetSim, TcpListener, TcpStream},
    runtime::{Handle, NodeHandle, Runtime},
};

use crate::driver::{
    HOST, Outside, PORT, Settings, lock, secs,
    source::Origin,
    target::{self, Memory},
    wire::{Watched, Wire},
};

/// Madsim's network and clock.
#[derive(Clone, Copy, Debug)]
pub struct Madsim(Instant);

impl Net for Madsim {
    type Stream = TcpStream;

    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, LostReason> {
        assert_eq!(host, HOST);
        TcpStream::connect((SOURCE_IP, port)).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::ConnectionRefused => LostReason::Refused,
            _ => LostReason::Reset,
        })
    }

    fn now(&self) -> Now {
        Now(self.0.elapsed().as_micros() as u64)
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
    }

    async fn sleep_until(&self, at: Now) {
        madsim::time::sleep(at.since(self.now())).await;
    }
}

pub type Network = Watched<Madsim>;

const SOURCE_IP: &str = "10.0.0.1";
const OUR_IP: &str = "10.0.0.2";

pub struct Stage {
    pub origin: Origin,
    pub target: target::Shared,
    pub wire: Arc<Mutex<Wire>>,
    pub outside: Outside,
    pub seed: u64,
    origin_of_time: Instant,
    source: NodeHandle,
    us: Option<NodeHandle>,
}

impl Stage {
    pub fn new(seed: u64) -> Self {
        let origin = Origin::new(seed);
        let net = Madsim(Instant::now());
        let booted = origin.clone();
        let source = Handle::current()
            .create_node()
            .name(HOST)
            .ip(SOURCE_IP.parse().unwrap())
            .init(move || {
                let origin = booted.clone();
                async move {
                    origin.boot();
                    origin.may_listen(&net).await;
                    let listener = TcpListener::bind(("0.0.0.0", PORT)).await.unwrap();
                    loop {
                        let (stream, _) = listener.accept().await.unwrap();
                        madsim::task::spawn(origin.clone().serve(net, stream));
                    }
                }
            })
            .build();
        Self {
            target: target::target(&origin),
            origin,
            wire: Wire::shared(),
            outside: Outside::default(),
            seed,
            origin_of_time: net.0,
            source,
            us: None,
        }
    }

    pub fn net(&self) -> Network {
        Watched::new(Madsim(self.origin_of_time), self.wire.clone())
    }

    pub fn settings(&self) -> Settings {
        Settings::new(self.seed)
    }

    /// Starts the replica on its node. When the node is restarted it starts again, from what is stored.
    pub fn start(&mut self, settings: Settings) {
        let (net, target, outside) = (self.net(), self.target.clone(), self.outside.clone());
        let node = Handle::current()
            .create_node()
            .name("replica")
            .ip(OUR_IP.parse().unwrap())
            .init(move || {
                let (net, target, outside, settings) =
                    (net.clone(), target.clone(), outside.clone(), settings.clone());
                async move {
                    let replica = settings.build(&target);
                    outside.began(&replica);
                    let sink = Memory::new(net.clone(), &target);
                    outside.ended(replica.run_on(&net, sink).await);
                }
            })
            .build();
        self.us = Some(node);
    }

    /// A node of ours on which a test does what it likes.
    pub fn node(&self) -> NodeHandle {
        Handle::current().create_node().name("replica").ip(OUR_IP.parse().unwrap()).build()
    }

    pub fn start_until_all(&mut self) {
        let settings = self.settings().until_all_of(&self.origin);
        self.start(settings);
    }

    fn us(&self) -> &NodeHandle {
        self.us.as_ref().expect("it has been started")
    }

    pub fn crash_source(&self) {
        Handle::current().kill(self.source.id());
    }

    /// `restart` alone leaves the ports of the former life bound.
    pub fn bounce_source(&self) {
        self.crash_source();
        Handle::current().restart(self.source.id());
    }

    pub fn crash_us(&self) {
        Handle::current().kill(self.us().id());
    }

    pub fn bounce_us(&self) {
        self.crash_us();
        Handle::current().restart(self.us().id());
    }

    /// Nothing comes through, in both directions or in one; nothing is lost either.
    pub fn clog(&self, to_us: bool, to_source: bool) {
        let net = NetSim::current();
        if to_us {
            net.clog_link(self.source.id(), self.us().id());
        }
        if to_source {
            net.clog_link(self.us().id(), self.source.id());
        }
    }

    pub fn unclog(&self) {
        let net = NetSim::current();
        net.unclog_link(self.source.id(), self.us().id());
        net.unclog_link(self.us().id(), self.source.id());
    }

    pub fn now(&self) -> Duration {
        self.origin_of_time.elapsed()
    }

    pub async fn pass(&self, duration: Duration) {
        madsim::time::sleep(duration).await;
    }

    pub async fn until(&self, what: &str, limit: Duration, happened: impl Fn(&Self) -> bool) -> Duration {
        let began = self.now();
        while !happened(self) {
            assert!(
                self.now() - began < limit,
                "not within {limit:?} of virtual time: {what}; the replica is {:?}, {:?}",
                self.outside.state(),
                self.outside.end()
            );
            self.pass(Duration::from_millis(100)).await;
        }
        self.now() - began
    }

    pub async fn finish(&self) {
        self.until("the end of the run", secs(3600), |stage| stage.outside.end().is_some()).await;
        assert_eq!(self.outside.end(), Some(Ok(self.origin.executed().count())));
        lock(&self.target).assert_complete();
    }

    pub async fn catch_up(&self) {
        self.until("everything is durable", secs(3600), |stage| lock(&stage.target).is_complete()).await;
        lock(&self.target).assert_complete();
    }

    pub fn status(&self) -> capstan::Status {
        self.outside.handle().status()
    }
}

/// Runs one seed in a thread of its own: hash maps draw their order per thread.
pub fn one_seed<T, F>(seed: u64, test: fn(Stage) -> F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    let run = move || {
        let mut runtime = Runtime::with_seed_and_config(seed, Config::default());
        runtime.set_time_limit(secs(200_000));
        runtime.block_on(async move { test(Stage::new(seed)).await })
    };
    match std::thread::spawn(run).join() {
        Ok(output) => output,
        Err(panic) => {
            eprintln!("seed {seed}: MADSIM_SEED={seed} repeats it");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Runs so many seeds, or the one that the environment names.
pub fn seeds<T, F>(count: u64, test: fn(Stage) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    match std::env::var("MADSIM_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![one_seed(seed, test)],
        None => (0..count).map(|seed| one_seed(seed, test)).collect(),
    }
}

/// Whether sums over all seeds are to be asserted.
pub fn is_whole() -> bool {
    std::env::var_os("MADSIM_SEED").is_none()
}

/// A panic of a task ends the simulation, unlike in a runtime that keeps it in a handle nobody asks.
#[test]
#[should_panic = "seen"]
fn a_panic_of_a_spawned_task_is_seen() {
    one_seed(0, |stage| async move {
        madsim::task::spawn(async { panic!("seen") });
        stage.pass(secs(1)).await;
    });
}
