//! Exactly-once MySQL change streams over tokio.
//!
//! Capstan reads a MySQL server's binary log as a replica does and hands every committed transaction to a
//! *sink*, in order and whole. Where the sink keeps the position in the same atomic write as the data, each
//! change takes effect **exactly once**, over crashes, `kill -9`, lost answers, late commits, second owners,
//! reconnects and failovers. What could lose or bend data in silence is a *halt* instead: a code, a place and
//! a remedy, with the position unmoved.
//!
//! ```no_run
//! use capstan::{Ack, Batch, Halt, Item, Position, Replica, Sink, SinkError, Start, Unit};
//!
//! /// Counts changes. Its position is gone with the process, so it is of use for a look only.
//! #[derive(Default)]
//! struct Count(Option<Position>, u64);
//!
//! impl Sink for Count {
//!     async fn position(&mut self) -> Result<Option<Position>, SinkError> {
//!         Ok(self.0.clone())
//!     }
//!
//!     async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
//!         batch.expected().check(self.0.as_ref())?; // in the database: inside the transaction
//!         while let Some(unit) = batch.next().await? {
//!             let Unit::Transaction(mut transaction) = unit else { continue };
//!             while let Some(item) = transaction.next().await? {
//!                 self.1 += u64::from(matches!(item, Item::Change(_)));
//!             }
//!         }
//!         let ack = batch.finish()?; // only after the last change: a part is never taken for the whole
//!         self.0 = Some(ack.position().clone()); // in the database: then COMMIT
//!         Ok(ack)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Halt> {
//! let source = "mysql://repl:secret@db.example.org/".parse()?;
//! Replica::builder(source).tables(["shop.*"]).start(Start::Current).run(Count::default()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Rows into your own types
//!
//! Columns by name, found once; NULL is `None`; a JSON column is read in place. [`read`] has the table of what
//! becomes what.
//!
//! ```
//! use capstan::read::{ReadError, RowReader};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     id: u64,
//!     total: String, // DECIMAL is text, with its full scale
//!     note: Option<String>,
//!     items: Vec<Item>, // JSON
//! }
//!
//! #[derive(serde::Deserialize)]
//! struct Item {
//!     sku: String,
//!     count: u32,
//! }
//!
//! /// What a sink does with a change. It keeps `reader`, which remembers where the columns are.
//! fn order(reader: &mut RowReader, change: &capstan::Change<'_>) -> Result<Option<Order>, ReadError> {
//!     change.after.map(|row| reader.read(row)).transpose()
//! }
//! ```
//!
//! # What there is
//!
//! - [`Replica`] puts one together and runs it; [`Handle`] watches and steers it from anywhere.
//! - [`Sink`] and [`BlockingSink`] are where changes go. [`sqlite::Mirror`], [`sqlite::Ledger`] and the sinks of
//!   [`jsonl`] are shipped.
//! - [`checkpoint`] keeps the position for sinks that cannot: *at least once*, and the duplicates are exactly
//!   the batches that were not acknowledged.
//! - [`net::Net`] is all the loop knows of the world, so the same loop runs over simulated networks.
//! - [`core`] is the state machine without I/O underneath, and the binlog decoder.
//!
//! # What it never does
//!
//! - It never goes on past a halt. What happens next is the caller's decision.
//! - It never looks anything up beside the log: a table is described by the log itself
//!   (`binlog_row_metadata=FULL`), so old events under a new schema decode right.
//! - It never writes to the source.
//! - It never shows a row value, a statement or a secret in an error, a log, a metric or `Debug`. (A panic in a
//!   sink is caught, but its message is printed by the process's panic hook, which is not ours.)
//! - It never spawns a task. One future does everything, and may be dropped at any await. Blocking sinks and
//!   stores get one thread each.
//!
//! # Features
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `net` | yes | tokio's sockets, resolver and clock; socket2 |
//! | `tls` | yes | rustls (ring) and the system's authorities |
//! | `jsonl` | yes | JSON lines |
//! | `sqlite` | yes | the ledger and the SQLite checkpoint, with SQLite compiled in |
//! | `checkpoint-file` | yes | the file checkpoint |
//! | `serde` | yes | [`read`]: rows and JSON documents into types of your own; no dependency |
//! | `testkit` | no | `testkit`: batches for unit tests of a sink |
//! | `fault-points` | no | places where a test can end the process; never in a product build |
//!
//! Without any, tokio is needed for `io-util` and `sync` only.
#![forbid(unsafe_code)]

mod builder;
pub mod checkpoint;
mod decision;
mod driver;
mod fault;
pub mod file;
#[cfg(any(feature = "checkpoint-file", feature = "jsonl"))]
mod io_failure;
#[cfg(feature = "jsonl")]
pub mod jsonl;
pub mod metrics;
pub mod net;
pub mod source;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod status;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod tls;

pub use capstan_core as core;
#[cfg(feature = "serde")]
pub use capstan_core::read;
pub use capstan_core::{
    config::{Limits, Start, Until},
    deliver::{
        Ack, Batch, BatchLimits, BlockingBatch, BlockingSink, BlockingTransaction, BlockingUnit, Change,
        Expected, FailureClass, Incomplete, Item, Mismatch, Op, Part, Position, Progress, Rows, SchemaChange,
        Sink, SinkError, SinkResultExt, SnapshotChunk, SnapshotRows, Transaction, Unit,
    },
    gtid::{Gtid, GtidSet, Uuid},
    halt::{Class, Code, Detail, Halt, Place, Stage},
    link::Secret,
    snapshot::{CopyLimits, CopyWait},
    value::{Column, TableVersion, Value},
};

pub use crate::{
    builder::{Builder, Replica, SERVER_ID_RANGE, Stopped},
    checkpoint::{BlockingCheckpointStore, CheckpointStore},
    decision::{Decision, Stored},
    source::{KeySetting, Source, SslMode, SslSettings},
    status::{CopyStatus, Handle, Status},
};

pub(crate) use capstan_core::halt;

/// The page for newcomers; its example must compile.
#[cfg(all(doctest, feature = "net"))]
#[doc = include_str!("../../README.md")]
struct Readme;
