//! Putting a replica together.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use capstan_core::{
    capture::{CapturedSet, PatternFault},
    config::{Config, Limits, Start, Until},
    deliver::{BatchLimits, BlockingSink, Position, Sink},
    gtid::Uuid,
    halt::{Code, Detail, Halt},
    snapshot::CopyLimits,
};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use crate::{
    checkpoint::{BlockingCheckpointStore, CheckpointStore, ErasedStore},
    driver::{Polled, Setup, Store, Threaded, Worker, drive},
    metrics::{NoRecorder, Recorder},
    net::Net,
    source::{Source, invalid},
    status::{Command, Handle, Status},
};

/// Server ids that are drawn when none is given: 0x7000_0000 to 0x7fff_ffff. Two replicas of one source
/// that draw the same one are told apart by the server, which ends the older link; the odds are one in
/// 2^28.
pub const SERVER_ID_RANGE: std::ops::RangeInclusive<u32> = 0x7000_0000..=0x7fff_ffff;

/// Where a pipeline ended after [`Handle::drain`], or because its [`Until`] was reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stopped {
    /// What is durable. `None`: nothing was ever stored.
    pub position: Option<Position>,
}

impl Stopped {
    pub(crate) const fn new(position: Option<Position>) -> Self {
        Self { position }
    }
}

/// A replica of one source that has not been started.
///
/// ```no_run
/// # async fn example(sink: impl capstan::Sink) -> Result<(), capstan::Halt> {
/// let source = "mysql://repl:secret@db.example.org/".parse()?;
/// let replica = capstan::Replica::builder(source).tables(["shop.*"]).build()?;
/// let handle = replica.handle(); // status, pause, drain; from anywhere
/// let stopped = replica.run(sink).await?;
/// # let _ = (handle, stopped);
/// # Ok(())
/// # }
/// ```
#[must_use = "a replica does nothing until it is run"]
pub struct Replica {
    source: Source,
    config: Config,
    batch: BatchLimits,
    copy_rate: Option<u64>,
    store: Option<StoreSetting>,
    recorder: Arc<dyn Recorder>,
    seed: [u8; 32],
    handle: Handle,
    commands: mpsc::UnboundedReceiver<Command>,
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica")
            .field("source", &self.source)
            .field("captured", &self.config.captured)
            .field("start", &self.config.start)
            .field("until", &self.config.until)
            .field("server_id", &self.config.server_id)
            .field("replica_uuid", &self.config.replica_uuid)
            .field("limits", &self.config.limits)
            .field("batch", &self.batch)
            .field("store", &self.store.is_some())
            .finish_non_exhaustive()
    }
}

enum StoreSetting {
    Polled(Box<dyn ErasedStore>),
    Blocking(Box<dyn BlockingCheckpointStore>),
}

impl Replica {
    /// Settings for a replica of `source`, with the documented defaults.
    pub fn builder(source: Source) -> Builder {
        Builder {
            source,
            tables: Vec::new(),
            exclude: Vec::new(),
            exclude_columns: Vec::new(),
            start: Start::Stored,
            override_stored: false,
            until: None,
            server_id: None,
            replica_uuid: None,
            report_host: "capstan".to_owned(),
            strict: false,
            allow_unlogged_cascades: false,
            whole_history: false,
            snapshot: None,
            copy_again: Vec::new(),
            copy: CopyLimits::default(),
            copy_rate: None,
            limits: Limits::default(),
            batch: BatchLimits::default(),
            store: None,
            recorder: Arc::new(NoRecorder),
            seed: None,
        }
    }

    /// The way to watch and steer it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs it over tokio's network until it is drained, reaches its end, or halts.
    ///
    /// Dropping the future is safe at any moment: everything in flight is dropped, and the next run goes
    /// on from what the position says.
    ///
    /// # Errors
    /// The halt: code, stage, place and remedy. Nothing is retried after it.
    #[cfg(feature = "net")]
    pub async fn run<S: Sink>(self, sink: S) -> Result<Stopped, Halt> {
        let net = crate::net::TokioNet::new(self.source.ssl())?;
        self.run_on(&net, sink).await
    }

    /// As [`Replica::run`], with a sink on a thread of its own.
    ///
    /// When the future is dropped the thread ends with the batch it is at; until then it holds what the
    /// sink holds (the shipped ones: the lock of their target).
    ///
    /// # Errors
    /// As [`Replica::run`].
    #[cfg(feature = "net")]
    pub async fn run_blocking<S: BlockingSink + 'static>(self, sink: S) -> Result<Stopped, Halt> {
        let net = crate::net::TokioNet::new(self.source.ssl())?;
        self.run_blocking_on(&net, sink).await
    }

    /// [`Replica::run`] over any network.
    ///
    /// # Errors
    /// As [`Replica::run`].
    pub async fn run_on<N: Net, S: Sink>(self, net: &N, sink: S) -> Result<Stopped, Halt> {
        let (source, store, setup) = self.take_apart()?;
        drive(setup.on(net, &source), Polled(sink), store).await
    }

    /// [`Replica::run_blocking`] over any network.
    ///
    /// # Errors
    /// As [`Replica::run`].
    pub async fn run_blocking_on<N: Net, S: BlockingSink + 'static>(
        self,
        net: &N,
        sink: S,
    ) -> Result<Stopped, Halt> {
        let (source, store, setup) = self.take_apart()?;
        let worker = Worker::start("capstan-sink", sink).map_err(|_| no_thread())?;
        drive(setup.on(net, &source), Threaded(worker), store).await
    }

    fn take_apart(self) -> Result<(Source, Option<Store>, Parts), Halt> {
        static PIPELINES: AtomicU64 = AtomicU64::new(0);
        let store = match self.store {
            None => None,
            Some(StoreSetting::Polled(store)) => Some(Store::Polled(store)),
            Some(StoreSetting::Blocking(store)) => {
                let worker = Worker::start("capstan-store", store).map_err(|_| no_thread())?;
                Some(Store::Threaded(worker))
            }
        };
        let parts = Parts {
            config: self.config,
            batch: self.batch,
            copy_rate: self.copy_rate,
            pipeline: PIPELINES.fetch_add(1, Ordering::Relaxed),
            seed: self.seed,
            handle: self.handle,
            commands: self.commands,
            recorder: self.recorder,
        };
        Ok((self.source, store, parts))
    }
}

/// [`Setup`] without the network.
struct Parts {
    config: Config,
    batch: BatchLimits,
    copy_rate: Option<u64>,
    pipeline: u64,
    seed: [u8; 32],
    handle: Handle,
    commands: mpsc::UnboundedReceiver<Command>,
    recorder: Arc<dyn Recorder>,
}

impl Parts {
    fn on<'n, N: Net>(self, net: &'n N, source: &'n Source) -> Setup<'n, N> {
        Setup {
            net,
            host: source.host(),
            port: source.port(),
            config: self.config,
            batch: self.batch,
            copy_rate: self.copy_rate,
            pipeline: self.pipeline,
            seed: self.seed,
            handle: self.handle,
            commands: self.commands,
            recorder: self.recorder,
        }
    }
}

fn no_thread() -> Halt {
    Halt::new(Code::SinkFailed).with(Detail::Note("No thread could be started"))
}

/// Settings of a replica. See [`Replica::builder`].
#[must_use = "settings do nothing until they are run"]
pub struct Builder {
    source: Source,
    tables: Vec<String>,
    exclude: Vec<String>,
    exclude_columns: Vec<String>,
    start: Start,
    override_stored: bool,
    until: Option<Until>,
    server_id: Option<u32>,
    replica_uuid: Option<Uuid>,
    report_host: String,
    strict: bool,
    allow_unlogged_cascades: bool,
    whole_history: bool,
    snapshot: Option<Vec<String>>,
    copy_again: Vec<String>,
    copy: CopyLimits,
    copy_rate: Option<u64>,
    limits: Limits,
    batch: BatchLimits,
    store: Option<StoreSetting>,
    recorder: Arc<dyn Recorder>,
    seed: Option<[u8; 32]>,
}

/// The tables to copy, by the option that names them.
fn copied(option: &str, patterns: &[String]) -> Result<CapturedSet, Halt> {
    if patterns.is_empty() {
        return Ok(CapturedSet::everything());
    }
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    CapturedSet::parse(&patterns, &[], &[]).map_err(|error| {
        let setting = format!("{option} {}", error.pattern);
        Halt::new(Code::ConfigInvalid).with(Detail::Setting(setting, fault(error.fault)))
    })
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Builder {
    /// Which tables are delivered: patterns such as `shop.orders` or `shop.*`, names quoted as in SQL.
    /// Without any: every table of every schema but the server's own.
    pub fn tables<T: Into<String>>(mut self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.tables.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Which of them are left out.
    pub fn exclude<T: Into<String>>(mut self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.exclude.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Which columns are left out: patterns such as `shop.orders.card`.
    pub fn exclude_columns<T: Into<String>>(mut self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.exclude_columns.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Where to begin; [`Start::Stored`] if not said.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Whether an explicit start may abandon a stored position.
    pub const fn override_stored(mut self, yes: bool) -> Self {
        self.override_stored = yes;
        self
    }

    /// Where to stop; never, if not said.
    pub fn until(mut self, until: Until) -> Self {
        self.until = Some(until);
        self
    }

    /// Our server id, unique among the replicas of the source. Drawn from [`SERVER_ID_RANGE`] if not said.
    pub const fn server_id(mut self, id: u32) -> Self {
        self.server_id = Some(id);
        self
    }

    /// Our replica UUID.
    pub const fn replica_uuid(mut self, uuid: Uuid) -> Self {
        self.replica_uuid = Some(uuid);
        self
    }

    /// A replica UUID that is always the same for the same `target` (its path, say), so that a restarted
    /// process takes over from its own forgotten link instead of fighting it.
    pub fn identity(self, target: impl AsRef<[u8]>) -> Self {
        self.replica_uuid(uuid_of(target.as_ref()))
    }

    /// The name operators see in `SHOW REPLICAS`; `capstan` if not said.
    pub fn report_host(mut self, name: impl Into<String>) -> Self {
        self.report_host = name.into();
        self
    }

    /// Whether a history that cannot be verified halts instead of warning.
    pub const fn strict(mut self, yes: bool) -> Self {
        self.strict = yes;
        self
    }

    /// Whether cascades that the server does not log are accepted.
    pub const fn allow_unlogged_cascades(mut self, yes: bool) -> Self {
        self.allow_unlogged_cascades = yes;
        self
    }

    /// Whether a start that leaves history out is refused (`history_incomplete`): for targets that are to
    /// be copies, and were not loaded with what came before.
    pub const fn whole_history(mut self, yes: bool) -> Self {
        self.whole_history = yes;
        self
    }

    /// Begins with a copy of the captured tables, or of those among them that `patterns` name, where nothing is
    /// stored yet; a copy that was begun goes on whether this is said or not.
    pub fn snapshot<T: Into<String>>(mut self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.snapshot = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Copies these tables once more while the rest streams, as after a halt that says so (`schema_change_needs_copy`,
    /// `table_entered_capture`, `mirror_diverged`, `history_incomplete`): patterns among the captured tables. What the
    /// target has of them stays until the copy's first chunk.
    ///
    /// It is decided with the first batch of the run and stored in the position: a copy that is under way goes on,
    /// whether this is said again or not; said once it has ended, it begins anew.
    pub fn copy_again<T: Into<String>>(mut self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.copy_again.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Numbers of the initial copy.
    pub const fn copy(mut self, limits: CopyLimits) -> Self {
        self.copy = limits;
        self
    }

    /// How many bytes a second the initial copy may read from the source; no bound, if not said.
    pub const fn copy_rate(mut self, bytes_per_second: u64) -> Self {
        self.copy_rate = Some(bytes_per_second);
        self
    }

    /// Numbers that bound memory and patience.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How much one batch may hold.
    pub const fn batch(mut self, limits: BatchLimits) -> Self {
        self.batch = limits;
        self
    }

    /// Library-owned mode: the position is kept in `store` and the sink is never asked for it. *At least
    /// once*: the batches that were not acknowledged when the process died come again. One owner at a time: a second one
    /// fences the first at the store, which the first asks only when the sink has applied its batch; what it applied last
    /// may then stand behind what its successor applied. A sink that keeps the position itself has no such window.
    pub fn checkpoint(mut self, store: impl CheckpointStore + 'static) -> Self {
        self.store = Some(StoreSetting::Polled(Box::new(store)));
        self
    }

    /// As [`Builder::checkpoint`], with a store on a thread of its own.
    pub fn blocking_checkpoint(mut self, store: impl BlockingCheckpointStore + 'static) -> Self {
        self.store = Some(StoreSetting::Blocking(Box::new(store)));
        self
    }

    /// Where the numbers go.
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// What jitter, and the padding of an encrypted password, are drawn from; the system's random numbers, if
    /// not said. For simulated worlds alone, where a run is repeated by its seed.
    pub const fn seed(mut self, seed: [u8; 32]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks the settings. Nothing is dialled, and no target touched.
    ///
    /// # Errors
    /// `config_invalid` with the setting's name.
    pub fn build(self) -> Result<Replica, Halt> {
        let captured = self.captured()?;
        let mut seed = [0; 32];
        let mut drawn = [0; 20];
        let random =
            |to: &mut [u8]| getrandom::fill(to).map_err(|_| invalid("system", "gives no random numbers"));
        random(&mut seed)?;
        random(&mut drawn)?;
        let [a, b, c, d, uuid @ ..] = drawn;
        let config = Config {
            login: self.source.login()?,
            captured,
            start: self.start,
            override_stored: self.override_stored,
            until: self.until,
            server_id: self
                .server_id
                .unwrap_or(SERVER_ID_RANGE.start() | u32::from_le_bytes([a, b, c, d]) & 0x0fff_ffff),
            replica_uuid: self.replica_uuid.unwrap_or_else(|| versioned(uuid, 4)),
            report_host: self.report_host,
            strict: self.strict,
            allow_unlogged_cascades: self.allow_unlogged_cascades,
            whole_history: self.whole_history,
            snapshot: match &self.snapshot {
                Some(patterns) => Some(copied("--snapshot", patterns)?),
                None => None,
            },
            copy_again: match self.copy_again.as_slice() {
                [] => None,
                patterns => Some(copied("--copy-again", patterns)?),
            },
            copy: self.copy,
            limits: self.limits,
        };
        config.check()?;
        if self.copy_rate == Some(0) {
            return Err(invalid("snapshot-rate", "is zero"));
        }
        if self.copy.connections.is_some_and(|n| !(1..=CopyLimits::CONNECTIONS_MAX).contains(&n)) {
            return Err(invalid("snapshot-connections", "is not 1 to 16"));
        }
        let (handle, commands) = Handle::new();
        *handle.shared().lock() = Status { state: "starting", ..Status::default() };
        Ok(Replica {
            source: self.source,
            config,
            batch: self.batch,
            copy_rate: self.copy_rate,
            store: self.store,
            recorder: self.recorder,
            seed: self.seed.unwrap_or(seed),
            handle,
            commands,
        })
    }

    /// [`Builder::build`] and [`Replica::run`].
    ///
    /// # Errors
    /// As these.
    #[cfg(feature = "net")]
    pub async fn run<S: Sink>(self, sink: S) -> Result<Stopped, Halt> {
        self.build()?.run(sink).await
    }

    /// [`Builder::build`] and [`Replica::run_blocking`].
    ///
    /// # Errors
    /// As these.
    #[cfg(feature = "net")]
    pub async fn run_blocking<S: BlockingSink + 'static>(self, sink: S) -> Result<Stopped, Halt> {
        self.build()?.run_blocking(sink).await
    }

    fn captured(&self) -> Result<CapturedSet, Halt> {
        fn texts(patterns: &[String]) -> Vec<&str> {
            patterns.iter().map(String::as_str).collect()
        }
        let (tables, exclude) = (texts(&self.tables), texts(&self.exclude));
        CapturedSet::parse(&tables, &exclude, &texts(&self.exclude_columns)).map_err(|error| {
            let setting = format!("{} {}", error.option.name(), error.pattern);
            Halt::new(Code::ConfigInvalid).with(Detail::Setting(setting, fault(error.fault)))
        })
    }
}

/// A halt holds fixed sentences only, so the pattern stands in the setting's name.
const fn fault(fault: PatternFault) -> &'static str {
    match fault {
        PatternFault::Empty => "is empty: write schema.table, schema.* or *.*",
        PatternFault::Parts { expected: 3, .. } => "is not schema.table.column",
        PatternFault::Parts { .. } => "is not schema.table, schema.* or *.*",
        PatternFault::EmptyName => "holds an empty name",
        PatternFault::OpenQuote => "has a backtick that is not closed",
        PatternFault::BesideQuote => "has text beside a name in backticks, which must hold the whole name",
        PatternFault::Character(_) => "holds a character that only a name in backticks can have",
        PatternFault::SystemSchema => "names a schema of the server's own, which is never captured",
        PatternFault::NotCanonical => "is not a stored captured set",
    }
}

/// A UUID of one's own making (RFC 9562, version 8) from the name of a target.
fn uuid_of(target: &[u8]) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(b"capstan replica uuid 1");
    hash.update(target);
    let bytes: [u8; 32] = hash.finalize().into();
    let [first @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = bytes;
    versioned(first, 8)
}

fn versioned(mut bytes: [u8; 16], version: u8) -> Uuid {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> Builder {
        Replica::builder(Source::new("db", "repl"))
    }

    #[test]
    fn identities_are_stable_per_target_and_drawn_ones_are_in_their_range() {
        let uuid = |target: &str| builder().identity(target).build().unwrap().config.replica_uuid;
        assert_eq!(uuid("a"), uuid("a"));
        assert_ne!(uuid("a"), uuid("b"));
        assert_eq!(uuid("a").to_string().as_bytes()[14], b'8');
        let (one, two) = (builder().build().unwrap(), builder().build().unwrap());
        assert_ne!(one.seed, two.seed);
        assert_ne!(one.config.replica_uuid, two.config.replica_uuid);
        for replica in [one, two] {
            assert!(SERVER_ID_RANGE.contains(&replica.config.server_id));
        }
    }

    #[test]
    fn settings_are_refused_before_anything_is_dialled() {
        let limits = Limits { stream_above: 1, ..Limits::default() };
        assert_eq!(builder().limits(limits).build().unwrap_err().code, Code::ConfigInvalid);
        assert_eq!(builder().server_id(0).build().unwrap_err().code, Code::ConfigInvalid);
        let text = builder().tables(["shop"]).build().unwrap_err().to_string();
        assert!(text.contains("--tables shop: is not schema.table"), "{text}");
        let text = builder().exclude_columns(["a.b"]).build().unwrap_err().to_string();
        assert!(text.contains("--exclude-columns a.b: is not schema.table.column"), "{text}");
    }
}
