//! What the core emits: one ordered sequence of events with dense sequence numbers.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::fmt;

use super::{
    copy::SnapshotChunk,
    position::{Advance, Position},
};
use crate::{
    binlog::rows::RowsEvent,
    gtid::Gtid,
    sql::{DdlKind, RowsEffect, SchemaEffect},
    time::SourceTime,
    value::TableVersion,
};

/// The number of a unit in the order of delivery: dense, starting anew with each dial. Never stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// One step of the delivered sequence. Its grammar:
/// `(TxBegin (Table | Rows | SchemaChange)* (TxCommit | TxAbort) | SnapshotRows | Progress | Claim)*`.
#[derive(Debug)]
pub enum Event {
    /// A new owner takes the target over, at the chosen start; comes first and alone.
    Claim {
        /// Its number.
        seq: Seq,
        /// The position the owner starts from.
        position: Box<Position>,
    },
    /// A transaction begins.
    TxBegin(TxBegin),
    /// A table is described for the first time on this link, or differently than before.
    Table(Arc<TableVersion>),
    /// One row event: checksummed, walked once, with every column present.
    Rows(RowsEvent),
    /// A schema change: alone in its transaction, or part of a group (`CREATE TABLE … SELECT`).
    SchemaChange(Box<SchemaChange>),
    /// The transaction is complete.
    TxCommit(TxCommit),
    /// The transaction ends without effect.
    TxAbort {
        /// Its number.
        seq: Seq,
        /// `true`: the link dropped, and the transaction comes again from its start under a new
        /// number. `false`: it ended in `ROLLBACK`.
        comes_again: bool,
    },
    /// A chunk of a table's initial copy, a unit of its own.
    SnapshotRows(Box<SnapshotChunk>),
    /// Nothing to deliver, but transactions were passed.
    Progress {
        /// Its number.
        seq: Seq,
        /// What was passed.
        advance: Box<Advance>,
    },
}

impl Event {
    /// The row event in it, of a transaction or a chunk.
    pub(crate) fn rows(&self) -> Option<&RowsEvent> {
        match self {
            Self::Rows(rows) => Some(rows),
            Self::SnapshotRows(chunk) => chunk.rows.as_ref(),
            Self::Claim { .. }
            | Self::TxBegin(_)
            | Self::Table(_)
            | Self::SchemaChange(_)
            | Self::TxCommit(_)
            | Self::TxAbort { .. }
            | Self::Progress { .. } => None,
        }
    }

    /// What it takes of the memory that may be retained: the bytes it carries, and what surrounds them.
    /// Without the second part a sink that stands still would let small transactions pile up.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.retained().saturating_add(EVENT_WEIGHT),
            Self::SchemaChange(change) => change.statement.len().saturating_add(EVENT_WEIGHT),
            Self::SnapshotRows(chunk) => {
                chunk.rows.as_ref().map_or(0, RowsEvent::retained).saturating_add(UNIT_WEIGHT)
            }
            Self::Claim { .. } | Self::TxBegin(_) | Self::Progress { .. } => UNIT_WEIGHT,
            Self::Table(_) => EVENT_WEIGHT,
            // Their memory is counted with the beginning.
            Self::TxCommit(_) | Self::TxAbort { .. } => 0,
        }
    }
}

/// An event in a queue, and what the allocator adds to the bytes it carries.
const EVENT_WEIGHT: usize = 256;
/// A unit: its beginning and end, and the account that is kept of it.
const UNIT_WEIGHT: usize = 1024;

/// The beginning of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxBegin {
    /// Its number.
    pub seq: Seq,
    /// Its GTID; `None` only in files written without GTIDs.
    pub gtid: Option<Gtid>,
    /// When it was committed on the server we read from; unknown in files of old servers.
    pub committed_at: Option<SourceTime>,
    /// Whether it is emitted while it is still being read.
    pub streamed: bool,
    /// Whether it is one schema change and nothing else.
    pub schema_change: bool,
}

/// The end of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxCommit {
    /// Its number.
    pub seq: Seq,
    /// Its GTID; `None` only in files written without GTIDs.
    pub gtid: Option<Gtid>,
    /// When it was committed where it was first executed.
    pub original_commit: SourceTime,
    /// Transactions passed before it and not told yet.
    pub passed: Option<Box<Advance>>,
    /// What became of an XA transaction; only where files are read.
    pub xa: Option<XaState>,
}

/// What became of an XA transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaState {
    /// Prepared, and neither committed nor rolled back here.
    Prepared,
    /// Prepared before, and committed here. The changes stand where it was prepared.
    Committed,
    /// Prepared before, and rolled back here.
    RolledBack,
}

impl XaState {
    /// Stable lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Committed => "committed",
            Self::RolledBack => "rolled_back",
        }
    }
}

/// A schema change as its statement tells it.
#[derive(Clone, PartialEq, Eq)]
pub struct SchemaChange {
    /// The transaction; `None` only in files written without GTIDs.
    pub gtid: Option<Gtid>,
    /// When it was committed on the server we read from.
    pub committed_at: Option<SourceTime>,
    /// What it does.
    pub kind: DdlKind,
    /// The tables it touches, `(schema, table)`; a whole schema has an empty table name. Empty:
    /// the statement could not be read, so it may touch every captured table.
    pub tables: Vec<(String, String)>,
    /// What happens to the rows that are already there.
    pub rows: RowsEffect,
    /// What it does to captured tables, their columns and rows, where all of it is certain.
    pub effect: SchemaEffect,
    /// The session's default database: what unqualified names of the statement mean.
    pub default_schema: String,
    /// The statement in UTF-8. Delivered, never shown in `Debug`.
    pub statement: String,
}

impl fmt::Debug for SchemaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SchemaChange({:?} of {} tables, statement of {} bytes)",
            self.kind,
            self.tables.len(),
            self.statement.len()
        )
    }
}
