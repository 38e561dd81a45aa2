//! Exactly-once MySQL change streams over tokio.
#![forbid(unsafe_code)]

mod builder;
pub mod checkpoint;
mod driver;
mod fault;
pub mod metrics;
pub mod net;
pub mod source;
mod status;
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
    source::{KeySetting, Source, SslMode, SslSettings},
    status::{Handle, Status},
};

pub(crate) use capstan_core::halt;
