//! A replica that reads a real server into memory, for tests that ask what arrives and how it ends.

// A test that cannot go on ends there; clippy knows only the functions that are tests themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use capstan::core::binlog::rows::Row;
use capstan::core::text::{TextOptions, write_value};
use capstan::core::value::ValueError;
use capstan::{
    Ack, Batch, Builder, Halt, Handle, Item, Limits, Position, Replica, SchemaChange, Sink, SinkError,
    Source, Start, Status, Stopped, Unit, Until, Value,
};
use capstan_mysql::Server;
use sha2::{Digest as _, Sha256};

/// How long anything may take before the test says that it hangs. Never part of what is asserted.
const HANGS_AFTER: Duration = Duration::from_secs(180);

/// Binary values longer than this are recorded by length and SHA-256.
const LONG: usize = 1024;

/// One delivered transaction or schema change.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its GTID.
    pub gtid: String,
    /// Whether it was handed over while it was read.
    pub streamed: bool,
    /// A line for each change and schema change, such as `insert d.t {"id":1}`.
    pub items: Vec<String>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.items).finish()
    }
}

/// What a [`Memory`] holds.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The stored position, written together with `seen`.
    pub position: Option<Position>,
    /// Every transaction, in order.
    pub seen: Vec<Seen>,
    /// Every position that was ever stored, in order.
    pub positions: Vec<Position>,
}

/// A sink in memory that owns its position. Clones share what is held, so it outlives the replica that
/// writes it: a new replica with a clone is a restarted process.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Held>>);

impl Memory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that holds that position.
    #[must_use]
    pub fn at(position: Position) -> Self {
        let memory = Self::default();
        memory.lock().position = Some(position);
        memory
    }

    /// What is held.
    pub fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap()
    }

    /// The stored position.
    pub fn position(&self) -> Position {
        self.lock().position.clone().expect("a stored position")
    }

    /// The items of every transaction, one list.
    #[must_use]
    pub fn items(&self) -> Vec<String> {
        self.lock().seen.iter().flat_map(|seen| seen.items.iter().cloned()).collect()
    }

    /// Forgets what was seen, not the position.
    pub fn forget(&self) {
        self.lock().seen.clear();
    }

    /// An independent copy.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }
}

impl Sink for Memory {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.lock().position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        batch.expected().check(self.lock().position.as_ref())?;
        let mut seen = Vec::new();
        while let Some(unit) = batch.next().await? {
            match unit {
                Unit::Transaction(mut transaction) => {
                    let gtid = transaction.gtid().map(ToString::to_string).unwrap_or_default();
                    let mut one = Seen { gtid, streamed: transaction.is_streamed(), items: Vec::new() };
                    while let Some(item) = transaction.next().await? {
                        match item {
                            Item::Change(change) => {
                                let mut line = format!(
                                    "{} {}.{}",
                                    change.op.as_str(),
                                    change.table.schema(),
                                    change.table.table()
                                );
                                for row in [change.before, change.after].into_iter().flatten() {
                                    image(&mut line, row)?;
                                }
                                one.items.push(line);
                            }
                            Item::SchemaChange(change) => one.items.push(schema_change(change)),
                        }
                    }
                    seen.push(one);
                }
                Unit::SchemaChange(change) => {
                    let gtid = change.gtid.map(|gtid| gtid.to_string()).unwrap_or_default();
                    seen.push(Seen { gtid, streamed: false, items: vec![schema_change(change)] });
                }
                Unit::SnapshotRows(rows) => rows.skip(),
                Unit::Progress(_) => {}
            }
        }
        let ack = batch.finish()?;
        let mut held = self.lock();
        held.position = Some(ack.position().clone());
        held.positions.push(ack.position().clone());
        held.seen.append(&mut seen);
        Ok(ack)
    }
}

fn schema_change(change: &SchemaChange) -> String {
    format!("ddl {}", change.statement)
}

/// A row as JSON text, long binary values as `{"sha256":"…","bytes":n}`.
fn image(line: &mut String, row: Row<'_>) -> Result<(), SinkError> {
    line.push_str(" {");
    let mut comma = "";
    for (index, value) in row.values().enumerate() {
        let (column, value) = value?;
        if let Value::Absent = value {
            continue;
        }
        let _ = write!(line, "{comma}\"{}\":", column.name);
        comma = ",";
        if let Value::Blob(bytes) = value
            && bytes.len() > LONG
        {
            long(line, bytes);
        } else {
            write_value(line, column, value, TextOptions::default())
                .map_err(|reason| ValueError { column: index, reason })?;
        }
    }
    line.push('}');
    Ok(())
}

fn long(line: &mut String, bytes: &[u8]) {
    line.push_str("{\"sha256\":\"");
    for byte in Sha256::digest(bytes) {
        let _ = write!(line, "{byte:02x}");
    }
    let _ = write!(line, "\",\"bytes\":{}}}", bytes.len());
}

/// Limits that let a test fail fast: trouble is given up soon, and nothing waits long.
#[must_use]
pub fn hasty() -> Limits {
    Limits {
        trouble_max: Duration::from_millis(1500),
        backoff_max: Duration::from_millis(300),
        progress_every: Duration::from_millis(100),
        ..Limits::default()
    }
}

/// Settings for a replica of that server, as `root`.
pub fn replica_of(server: &Server) -> Builder {
    replica_at(&server.url())
}

/// Settings for a replica of the server at that URL.
pub fn replica_at(url: &str) -> Builder {
    let source: Source = url.parse().expect("a source URL");
    Replica::builder(source)
        .limits(Limits { progress_every: Duration::from_millis(100), ..Limits::default() })
}

/// A replica that runs on a thread of its own.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    thread: Option<JoinHandle<Result<Stopped, Halt>>>,
}

impl Running {
    /// Starts it.
    pub fn start(builder: Builder, sink: impl Sink + 'static) -> Result<Self, Halt> {
        let replica = builder.build()?;
        let handle = replica.handle();
        let thread = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                tokio::time::timeout(HANGS_AFTER, replica.run(sink)).await.expect("the replica hangs")
            })
        });
        Ok(Self { handle, thread: Some(thread) })
    }

    /// What it says of itself.
    #[must_use]
    pub fn status(&self) -> Status {
        self.handle.status()
    }

    /// Waits until it says so of itself.
    pub fn until(&self, what: &str, holds: impl Fn(&Status) -> bool) {
        let begun = Instant::now();
        while !holds(&self.status()) {
            let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            assert!(!ended, "it ended before {what}: {:?}", self.status());
            assert!(begun.elapsed() < HANGS_AFTER, "it never came to {what}: {:?}", self.status());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until everything that the server has executed by now is durable.
    pub fn catch_up(&self, server: &Server) {
        let executed: capstan::GtidSet = server.gtid_executed().unwrap().trim().parse().unwrap();
        self.until("what the server has executed", |status| {
            status.gtid_set.as_ref().is_some_and(|set| executed.is_subset(set))
        });
    }

    /// Drains it.
    pub fn stop(self) -> Result<Stopped, Halt> {
        self.handle.drain();
        self.end()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Result<Stopped, Halt> {
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Runs it to its end.
pub fn run(builder: Builder, sink: impl Sink + 'static) -> Result<Stopped, Halt> {
    Running::start(builder, sink)?.end()
}

/// Reads on from what the sink holds up to what the server has executed.
pub fn resume(server: &Server, sink: &Memory) -> Result<Stopped, Halt> {
    run(replica_of(server).until(Until::Now), sink.clone())
}

/// A sink that holds the server's present position and nothing else.
#[must_use]
pub fn from_now(server: &Server) -> Memory {
    let memory = Memory::new();
    run(replica_of(server).start(Start::Current).until(Until::Now), memory.clone()).unwrap();
    memory
}
