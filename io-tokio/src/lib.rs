//! Exactly-once MySQL change streams over tokio.
#![forbid(unsafe_code)]

mod builder;
pub mod checkpoint;
mod decision;
mod driver;
mod fault;
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
pub use capstan_core::{
    config::{Limits, Start, Until},
    deliver::{
        Ack, Batch, BatchLimits, BlockingBatch, BlockingSink, BlockingTransaction, BlockingUnit, Change,
        Expected, FailureClass, Incomplete, Item, Mismatch, Op, Position, Progress, Rows, SchemaChange, Sink,
        SinkError, SinkResultExt, Transaction, Unit,
    },
    gtid::{Gtid, GtidSet, Uuid},
    halt::{Class, Code, Detail, Halt, Place, Stage},
    link::Secret,
    value::{Column, TableVersion, Value},
};

pub use crate::{
    builder::{Builder, Replica, SERVER_ID_RANGE, Stopped},
    checkpoint::{BlockingCheckpointStore, CheckpointStore},
    decision::{Decision, Stored},
    source::{KeySetting, Source, SslMode, SslSettings},
    status::{Handle, Status},
};

pub(crate) use capstan_core::halt;

/// The page for newcomers; its example must compile.
#[cfg(all(doctest, feature = "net"))]
#[doc = include_str!("../../README.md")]
struct Readme;
