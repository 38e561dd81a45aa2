//! The ledger: every change as a row, in order, once.

use std::path::Path;

use capstan_core::{
    binlog::rows::Row,
    deliver::{
        Ack, BlockingBatch, BlockingSink, BlockingTransaction, BlockingUnit, Expected, Item, Position,
        SchemaChange, SinkError, SnapshotRows,
    },
    gtid::Gtid,
    halt::Halt,
    text::{SchemaChangeText, TextOptions, write_image, write_schema_change, write_time},
    time::SourceTime,
};
use rusqlite::CachedStatement;

use super::{
    database::{Database, Synchronous, stored_in_database},
    failure::{Step, failed},
};
use crate::fault::fault_point;

const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS capstan_ledger (
    seq INTEGER PRIMARY KEY,
    gtid TEXT,
    committed_at TEXT,
    op TEXT NOT NULL,
    "schema" TEXT,
    "table" TEXT,
    before TEXT,
    after TEXT
) STRICT;"#;

const INSERT: &str = r#"
INSERT INTO capstan_ledger (gtid, committed_at, op, "schema", "table", before, after)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"#;

/// How a ledger is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerOptions {
    /// How values are written.
    pub text: TextOptions,
    /// How far a commit is on the disk when it returns.
    pub synchronous: Synchronous,
}

/// An append-only history of changes in SQLite, with the position in the same transaction: *exactly
/// once*.
///
/// | table | holds |
/// |---|---|
/// | `capstan_ledger` | `seq`, `gtid`, `committed_at` (RFC 3339, microseconds), `op`, `schema`, `table`, `before`, `after`; one row per changed row, `seq` in the source's order |
/// | `capstan_position` | the position, one row |
/// | `capstan_decisions` | positions moved by hand: when, what, why |
/// | `capstan_meta` | the kind of this target |
///
/// `op` is `insert`, `update`, `delete`, `schema_change`, or `snapshot` for a row of the initial copy, with the
/// GTID set that its chunk is exact for in the place of a GTID. Before the first row of a copy stands a
/// `snapshot_begins`: what the ledger has of that table above it is void, for a copy may begin anew. Images are JSON text as in JSON lines. For a
/// schema change `schema` and `table` name the first table it touches, if it names any, and `after` holds
/// what the line of a `schema_change` holds.
///
/// `PATH.lock` is held while this lives and never removed. WAL needs a local disk: over a network file
/// system SQLite is not safe, and known ones are refused.
#[derive(Debug)]
pub struct Ledger {
    database: Database,
    options: LedgerOptions,
    line: Line,
}

/// Texts of a row, used again for each.
#[derive(Default)]
struct Line {
    gtid: Option<String>,
    committed_at: Option<String>,
    before: String,
    after: String,
}

impl std::fmt::Debug for Line {
    // Rule 1: the texts hold row values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

impl Ledger {
    /// Opens or makes the ledger, and takes its lock.
    ///
    /// # Errors
    /// `checkpoint_in_use`; `config_invalid` where the file cannot be written or is no database;
    /// `target_of_another_source` where it holds the tables of another kind of pipeline;
    /// `position_read_failed`, `position_format_newer`.
    pub fn open(path: impl AsRef<Path>, options: LedgerOptions) -> Result<Self, Halt> {
        let database = Database::open(path.as_ref(), "ledger", TABLES, options.synchronous)?;
        Ok(Self { database, options, line: Line::default() })
    }
}

#[cfg(test)]
impl Ledger {
    /// Does not wait for other programs.
    pub(super) fn busy_for_test(&self) {
        self.database.connection().busy_timeout(std::time::Duration::ZERO).unwrap();
    }

    /// As on a full disk: hardly a page more.
    pub(super) fn full_for_test(&self) {
        let connection = self.database.connection();
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        connection.pragma_update(None, "max_page_count", pages).unwrap();
        // Fills what is left of the pages there are.
        connection
            .execute_batch("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(100000))")
            .unwrap_err();
    }
}

impl BlockingSink for Ledger {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.database.position()
    }

    fn apply(&mut self, batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let Self { database, options, line } = self;
        database.apply(batch, |connection, batch| {
            let insert = connection.prepare_cached(INSERT).map_err(|error| failed(Step::Write, error))?;
            let mut writer = Writer { insert, line, text: options.text };
            while let Some(unit) = batch.next()? {
                match unit {
                    BlockingUnit::Transaction(transaction) => writer.transaction(transaction)?,
                    BlockingUnit::SchemaChange(change) => {
                        writer.line.head(change.gtid.as_ref(), change.committed_at);
                        writer.schema_change(change)?;
                    }
                    BlockingUnit::SnapshotRows(rows) => writer.snapshot_rows(rows)?,
                    BlockingUnit::Progress(_) => {}
                }
            }
            Ok(())
        })
    }
}

stored_in_database!(Ledger, database);

impl Line {
    fn head(&mut self, gtid: Option<&Gtid>, committed_at: Option<SourceTime>) {
        self.gtid = gtid.map(ToString::to_string);
        self.committed_at = committed_at.map(|at| {
            let mut text = String::new();
            write_time(&mut text, at);
            text
        });
    }
}

/// The rows of one batch.
struct Writer<'a, 'c> {
    insert: CachedStatement<'c>,
    line: &'a mut Line,
    text: TextOptions,
}

impl Writer<'_, '_> {
    fn transaction(&mut self, mut transaction: BlockingTransaction<'_>) -> Result<(), SinkError> {
        self.line.head(transaction.gtid(), transaction.committed_at());
        let streamed = transaction.is_streamed();
        while let Some(item) = transaction.next()? {
            match item {
                Item::Change(change) => {
                    let table = change.table;
                    let before = image(&mut self.line.before, change.before, self.text)?;
                    let after = image(&mut self.line.after, change.after, self.text)?;
                    let names = (Some(table.schema()), Some(table.table()));
                    let (gtid, at) = (&self.line.gtid, &self.line.committed_at);
                    self.insert
                        .execute((gtid, at, change.op.as_str(), names.0, names.1, before, after))
                        .map_err(|error| failed(Step::Write, error))?;
                }
                Item::SchemaChange(change) => self.schema_change(change)?,
            }
            if streamed {
                fault_point!("streamed_change");
            }
        }
        Ok(())
    }

    /// One line per row of a chunk; its GTID set stands where a transaction's GTID does.
    fn snapshot_rows(&mut self, mut rows: SnapshotRows<'_>) -> Result<(), SinkError> {
        self.line.gtid = rows.chunk().map(|chunk| chunk.gtid_set.to_string());
        self.line.committed_at = None;
        if let Some(chunk) = rows.chunk().filter(|chunk| chunk.number == 0) {
            let names = (chunk.table.schema(), chunk.table.table());
            let (gtid, nothing) = (&self.line.gtid, None::<&str>);
            self.insert
                .execute((gtid, nothing, "snapshot_begins", names.0, names.1, nothing, nothing))
                .map_err(|error| failed(Step::Write, error))?;
        }
        while let Some(change) = rows.next()? {
            let table = change.table;
            let after = image(&mut self.line.after, change.after, self.text)?;
            let names = (Some(table.schema()), Some(table.table()));
            let (gtid, nothing) = (&self.line.gtid, None::<&str>);
            self.insert
                .execute((gtid, nothing, "snapshot", names.0, names.1, nothing, after))
                .map_err(|error| failed(Step::Write, error))?;
        }
        fault_point!("snapshot_rows");
        Ok(())
    }

    fn schema_change(&mut self, change: &SchemaChange) -> Result<(), SinkError> {
        let text = SchemaChangeText {
            kind: change.kind,
            tables: &change.tables,
            rows: change.rows,
            statement: &change.statement,
        };
        self.line.after.clear();
        write_schema_change(&mut self.line.after, change.gtid.as_ref(), change.committed_at, &text);
        let (schema, table) = match change.tables.first() {
            Some((schema, table)) => (Some(schema), Some(table).filter(|table| !table.is_empty())),
            None => (None, None),
        };
        let (gtid, at) = (&self.line.gtid, &self.line.committed_at);
        let nothing: Option<&str> = None;
        self.insert
            .execute((gtid, at, "schema_change", schema, table, nothing, self.line.after.trim_end()))
            .map(|_| ())
            .map_err(|error| failed(Step::Write, error))
    }
}

/// A row image as JSON text.
fn image<'t>(
    out: &'t mut String,
    row: Option<Row<'_>>,
    text: TextOptions,
) -> Result<Option<&'t str>, SinkError> {
    let Some(row) = row else { return Ok(None) };
    out.clear();
    let table = row.table();
    write_image(out, row.values(), text)
        .map_err(|why| SinkError::from(why).of_table(table.schema(), table.table()))?;
    Ok(Some(out))
}
