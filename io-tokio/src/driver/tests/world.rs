//! A world for the loop: simulated servers behind pipes, virtual time, and a sink that remembers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use capstan_core::{
    config::{Config, Limits, Start, Until},
    deliver::{Ack, Batch, BatchLimits, FailureClass, Item, Position, Sink, SinkError, Unit},
    gtid::{Gtid, Uuid},
    halt::Halt,
    link::{Login, Secret, TlsMode},
    replica::LostReason,
    time::Now,
};
use capstan_fake_source::{
    Group, Server,
    event::{Column, GtidHead, RowChange, Table, Value},
    group::End,
    server::SessionId,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    sync::Notify,
    time::Instant,
};

use super::super::{Polled, Setup, Store, drive};
use crate::{builder::Stopped, metrics::NoRecorder, net::Net, status::Handle};

/// Numbers from a seed (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

const SOURCE: Uuid = Uuid([0xaa; 16]);

/// The server and its links.
#[derive(Clone)]
pub(super) struct World(Arc<Inner>);

struct Inner {
    server: Mutex<Server>,
    changed: Notify,
    /// Bytes after which each coming link is cut, in order; when used up, links last.
    cuts: Mutex<VecDeque<u64>>,
    /// Longest piece that arrives at once.
    piece: Mutex<usize>,
    origin: Instant,
}

impl World {
    pub(super) fn new() -> Self {
        let server = Server::new(SOURCE, 1, "9.7.4");
        Self(Arc::new(Inner {
            server: Mutex::new(server),
            changed: Notify::new(),
            cuts: Mutex::new(VecDeque::new()),
            piece: Mutex::new(1 << 16),
            origin: Instant::now(),
        }))
    }

    pub(super) fn server(&self) -> MutexGuard<'_, Server> {
        self.0.server.lock().unwrap()
    }

    pub(super) fn cut_links_after(&self, bytes: impl IntoIterator<Item = u64>) {
        self.0.cuts.lock().unwrap().extend(bytes);
    }

    pub(super) fn pieces_of(&self, bytes: usize) {
        *self.0.piece.lock().unwrap() = bytes;
    }

    /// Commits transaction `n`: `rows` inserts of `bytes` bytes each.
    pub(super) fn commit(&self, n: u64, rows: u64, bytes: usize) {
        self.commit_ending(n, rows, bytes, &End::Xid);
    }

    pub(super) fn commit_ending(&self, n: u64, rows: u64, bytes: usize, end: &End) {
        let table = Table::new(7, "shop", "orders", vec![Column::bigint("id"), Column::blob("b")]);
        let change = |row| {
            RowChange::Insert(vec![Value::Int((n * 1000 + row) as i64), Value::Bytes(vec![b'x'; bytes])])
        };
        let changes = (0..rows).map(change).collect();
        let head = GtidHead::new(Some(gtid(n)), 1_700_000_000_000_000 + n);
        let changes: Vec<RowChange> = changes;
        let statements = if changes.is_empty() { Vec::new() } else { vec![(&table, changes)] };
        let group = Group::new(head, 1, Group::changes(&statements, end));
        self.server().append(&group);
        self.0.changed.notify_waiters();
    }

    async fn serve(self, id: SessionId, mut pipe: DuplexStream) {
        let mut left = self.0.cuts.lock().unwrap().pop_front().unwrap_or(u64::MAX);
        let piece = *self.0.piece.lock().unwrap();
        let mut buffer = vec![0; 4096];
        loop {
            let changed = self.0.changed.notified();
            let now = self.micros();
            let (bytes, closed) = {
                let mut server = self.server();
                server.tick(id, now);
                let bytes =
                    if server.has_output(id) { server.pull(id, piece, now) } else { bytes::Bytes::new() };
                (bytes, server.is_closed(id))
            };
            if !bytes.is_empty() {
                let fits = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                if pipe.write_all(&bytes[..fits]).await.is_err() || fits < bytes.len() {
                    break;
                }
                left -= fits as u64;
                continue;
            }
            if closed {
                break;
            }
            tokio::select! {
                biased;
                read = pipe.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(n) => {
                        let now = self.micros();
                        self.server().receive(id, &buffer[..n], now);
                    }
                },
                () = changed => {}
                () = tokio::time::sleep(Duration::from_millis(500)) => {}
            }
        }
        self.server().close(id);
    }

    fn micros(&self) -> u64 {
        self.0.origin.elapsed().as_micros() as u64
    }
}

pub(super) fn gtid(n: u64) -> Gtid {
    format!("{SOURCE}:{n}").parse().unwrap()
}

impl Net for World {
    type Stream = DuplexStream;

    async fn connect(&self, _: &str, _: u16) -> Result<DuplexStream, LostReason> {
        let id = self.server().connect();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(self.clone().serve(id, theirs));
        Ok(ours)
    }

    fn now(&self) -> Now {
        Now(self.micros())
    }

    fn unix_time(&self) -> Duration {
        Duration::from_micros(1_700_000_001_000_000 + self.micros())
    }

    async fn sleep_until(&self, at: Now) {
        tokio::time::sleep(at.since(self.now())).await;
    }
}

/// What a target holds: rows and the position, moved together.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// GTID and changes of each transaction, in the order they were written.
    pub(super) written: Vec<(u64, u64)>,
    pub(super) position: Option<Position>,
    pub(super) asked: u64,
}

/// What the sink does with its next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Take,
    /// Waits so long in the middle, then takes it.
    Slow(u64),
    Transient,
    /// Reads one change of each transaction and fails.
    HalfThenTransient,
    /// Commits, and the answer is lost.
    CommitThenUnknown,
    UnknownWithoutCommit,
    Hang,
    CommitThenHang,
    Panic,
    Permanent,
    /// Commits and returns the acknowledgement of the batch before.
    OldAck,
}

/// A sink over a [`Target`].
pub(super) struct Memory {
    pub(super) target: Arc<Mutex<Target>>,
    pub(super) acts: Arc<Mutex<VecDeque<Act>>>,
    old: Option<Ack>,
}

impl Memory {
    pub(super) fn new(target: &Arc<Mutex<Target>>, acts: impl IntoIterator<Item = Act>) -> Self {
        let acts = Arc::new(Mutex::new(acts.into_iter().collect()));
        Self { target: target.clone(), acts, old: None }
    }

    pub(super) fn commit(&self, seen: Vec<(u64, u64)>, batch: Batch<'_>) -> Result<Ack, SinkError> {
        let expected = batch.expected().clone();
        let ack = batch.finish()?;
        let mut target = self.target.lock().unwrap();
        expected.check(target.position.as_ref())?;
        target.written.extend(seen);
        target.position = Some(ack.position().clone());
        Ok(ack)
    }
}

impl Sink for Memory {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        tokio::task::yield_now().await;
        let mut target = self.target.lock().unwrap();
        target.asked += 1;
        Ok(target.position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Take);
        let fail = |class| Err(SinkError::new(class, "test", None));
        match act {
            Act::Transient => return fail(FailureClass::Transient),
            Act::UnknownWithoutCommit => return fail(FailureClass::Unknown),
            Act::Permanent => return fail(FailureClass::Permanent),
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("a sink of the tests panics"),
            Act::Take
            | Act::Slow(_)
            | Act::HalfThenTransient
            | Act::CommitThenUnknown
            | Act::CommitThenHang
            | Act::OldAck => {}
        }
        let mut seen = Vec::new();
        while let Some(unit) = batch.next().await? {
            let Unit::Transaction(mut transaction) = unit else { continue };
            let number = transaction.gtid().unwrap().gno();
            let mut changes = 0;
            while let Some(item) = transaction.next().await? {
                assert!(matches!(item, Item::Change(_)));
                changes += 1;
                if act == Act::HalfThenTransient {
                    return fail(FailureClass::Transient);
                }
                tokio::task::yield_now().await;
            }
            seen.push((number, changes));
        }
        if let Act::Slow(ms) = act {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        let ack = self.commit(seen, batch)?;
        tokio::task::yield_now().await;
        match act {
            Act::CommitThenUnknown => fail(FailureClass::Unknown),
            Act::CommitThenHang => std::future::pending().await,
            Act::OldAck => match self.old.replace(ack) {
                Some(old) => Ok(old),
                None => fail(FailureClass::Transient),
            },
            Act::Take
            | Act::Slow(_)
            | Act::HalfThenTransient
            | Act::Transient
            | Act::UnknownWithoutCommit
            | Act::Hang
            | Act::Panic
            | Act::Permanent => Ok(ack),
        }
    }
}

/// Settings of a run.
pub(super) struct Run {
    pub(super) config: Config,
    pub(super) seed: u8,
    pub(super) batch: BatchLimits,
}

impl Run {
    pub(super) fn until(n: u64) -> Self {
        let login = Login::new("repl", Secret::new("secret")).unwrap().tls(TlsMode::Disabled);
        let mut set = capstan_core::gtid::GtidSet::new();
        (1..=n).for_each(|n| {
            set.add(&gtid(n));
        });
        let config = Config {
            login,
            captured: capstan_core::capture::CapturedSet::everything(),
            start: Start::Earliest,
            override_stored: false,
            until: (n > 0).then_some(Until::Set(set)),
            server_id: 7,
            replica_uuid: Uuid([7; 16]),
            report_host: "test".to_owned(),
            strict: false,
            allow_unlogged_cascades: false,
            whole_history: false,
            snapshot: None,
            copy_again: None,
            copy: capstan_core::snapshot::CopyLimits::default(),
            limits: Limits { stream_above: 64 << 10, retained_max: 256 << 10, ..Limits::default() },
        };
        Self { config, seed: 1, batch: BatchLimits::default() }
    }

    pub(super) fn stored(mut self) -> Self {
        self.config.start = Start::Stored;
        self
    }

    /// Runs over `world`; with the handle, so that the run can be steered.
    pub(super) async fn run_with<S: Sink>(
        self,
        world: &World,
        sink: S,
        store: Option<Store>,
        (handle, commands): (Handle, tokio::sync::mpsc::UnboundedReceiver<crate::status::Command>),
    ) -> Result<Stopped, Halt> {
        drive(self.setup(world, handle, commands), Polled(sink), store).await
    }

    pub(super) async fn run<S: Sink>(self, world: &World, sink: S) -> Result<Stopped, Halt> {
        self.run_with(world, sink, None, Handle::new()).await
    }

    pub(super) fn setup<'n>(
        self,
        world: &'n World,
        handle: Handle,
        commands: tokio::sync::mpsc::UnboundedReceiver<crate::status::Command>,
    ) -> Setup<'n, World> {
        Setup {
            net: world,
            host: "db",
            port: 3306,
            config: self.config,
            copy_rate: None,
            batch: self.batch,
            pipeline: u64::from(self.seed),
            seed: [self.seed; 32],
            handle,
            commands,
            recorder: Arc::new(NoRecorder),
        }
    }
}
