//! The mirror: each table of the source as a table here, kept equal.

mod catalogue;
mod change;
mod forgotten;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::{collections::HashMap, fmt, path::Path, sync::Arc};

use capstan_core::{
    deliver::{
        Ack, BlockingBatch, BlockingSink, BlockingTransaction, BlockingUnit, Change, Expected, Item,
        Position, SchemaChange, SinkError, SnapshotRows,
    },
    halt::Halt,
    value::TableVersion,
};
use rusqlite::{Connection, OptionalExtension as _};

use self::{
    catalogue::Catalogue,
    change::Unseen,
    rows::{Plan, Statements},
};
use super::{
    database::{Database, Synchronous},
    failure::opening,
};
use crate::{
    decision::{Decision, Stored},
    fault::fault_point,
};

/// Prepared statements that are kept: four for each of so many tables.
const STATEMENTS_KEPT: usize = 1024;

/// Table versions whose statements are kept; a link that never breaks has one for each table.
const PLANS_KEPT: usize = 16_384;

/// How a mirror is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorOptions {
    /// How far a commit is on the disk when it returns.
    pub synchronous: Synchronous,
    /// Accepts rows of tables whose creation was not seen, and whose earlier rows are therefore not here.
    /// Remembered by the mirror. Without it such a table halts with `history_incomplete`. A row of such a
    /// table that is changed and not here is made from what it became; one that is deleted and not here is no
    /// matter.
    pub partial: bool,
}

/// A copy of the captured tables in SQLite, with the position in the same transaction: equal to the source
/// as it was at that position.
///
/// | table | holds |
/// |---|---|
/// | `schema.table` | the rows of that table |
/// | `capstan_tables` | which table is which: `schema`, `table`, `name` here, `columns`, `key` |
/// | `capstan_position` | the position, one row |
/// | `capstan_decisions` | positions moved by hand: when, what, why |
/// | `capstan_meta` | the kind of this target |
///
/// | column at the source | value here |
/// |---|---|
/// | integers, BIT, YEAR | INTEGER; TEXT beyond 64 bits with sign |
/// | FLOAT, DOUBLE | REAL |
/// | DECIMAL, DATE, TIME, DATETIME, TIMESTAMP (UTC) | TEXT as the server prints it |
/// | CHAR, VARCHAR, TEXT, ENUM, SET, JSON | TEXT; BLOB where it is no text in its character set |
/// | BINARY, VARBINARY, BLOB, GEOMETRY (SRID and WKB), VECTOR | BLOB |
///
/// Rows are matched by their key as the row image has it; in a table without one, by the whole row. Each
/// statement must touch exactly one row and an insert must find no key, else it halts with
/// `mirror_diverged`. A schema change is followed where its effect on the rows is certain from its text;
/// before any other it halts with `schema_change_needs_copy`.
///
/// Indexes that you add to these tables are kept. Triggers on them, and columns added to them, are not.
///
/// `PATH.lock` is held while this lives and never removed. WAL needs a local disk.
pub struct Mirror {
    database: Database,
    /// As it is in the database; `None`: to be read again.
    catalogue: Option<Catalogue>,
    /// By the address of their table version, which they keep alive.
    plans: HashMap<usize, Arc<Plan>>,
    scratch: String,
    partial: bool,
}

impl fmt::Debug for Mirror {
    // Rule 1: the scratch may hold a value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mirror({:?})", self.database)
    }
}

impl Mirror {
    /// Opens or makes the mirror, and takes its lock.
    ///
    /// # Errors
    /// As [`super::Ledger::open`].
    pub fn open(path: impl AsRef<Path>, options: MirrorOptions) -> Result<Self, Halt> {
        let path = path.as_ref();
        let database = Database::open(path, "mirror", catalogue::TABLES, options.synchronous)?;
        let fault = |error: rusqlite::Error| opening(path, &error);
        let connection = database.connection();
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        // Views and triggers of others go on naming what they name when tables change places.
        connection.pragma_update(None, "legacy_alter_table", true).map_err(fault)?;
        if options.partial {
            connection
                .execute("INSERT OR IGNORE INTO capstan_meta VALUES ('partial', '1')", [])
                .map_err(fault)?;
        }
        let partial = connection
            .query_row("SELECT 1 FROM capstan_meta WHERE key = 'partial'", [], |_| Ok(()))
            .optional()
            .map_err(fault)?
            .is_some();
        Ok(Self { database, catalogue: None, plans: HashMap::new(), scratch: String::new(), partial })
    }

    fn write(&mut self, batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let Self { database, catalogue, plans, scratch, partial } = self;
        database.apply(batch, |connection, batch| {
            let catalogue = match catalogue {
                Some(catalogue) => catalogue,
                None => catalogue.insert(Catalogue::load(connection)?),
            };
            let mut writer =
                Writer { connection, catalogue, plans, scratch, partial: *partial, tables: HashMap::new() };
            while let Some(unit) = batch.next()? {
                match unit {
                    BlockingUnit::Transaction(transaction) => writer.transaction(transaction)?,
                    BlockingUnit::SchemaChange(change) => writer.schema_change(change)?,
                    BlockingUnit::SnapshotRows(rows) => writer.snapshot_rows(rows)?,
                    BlockingUnit::Progress(_) => {}
                }
            }
            Ok(())
        })
    }
}

impl BlockingSink for Mirror {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.database.position()
    }

    fn apply(&mut self, batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let result = self.write(batch);
        if result.is_err() {
            // What was rolled back is not in the database, and what was committed may be.
            self.catalogue = None;
            self.plans.clear();
        }
        result
    }
}

impl Stored for Mirror {
    fn stored(&mut self) -> Result<Option<Position>, SinkError> {
        self.database.position()
    }

    fn decide(
        &mut self,
        expected: &Expected,
        position: &Position,
        decision: &Decision,
    ) -> Result<(), SinkError> {
        self.catalogue = None;
        self.plans.clear();
        self.database.decide(expected, position, decision, |connection| {
            forgotten::leave(connection, expected.position(), position)
        })
    }
}

/// The changes of one batch.
struct Writer<'a, 'c> {
    connection: &'c Connection,
    catalogue: &'a mut Catalogue,
    plans: &'a mut HashMap<usize, Arc<Plan>>,
    scratch: &'a mut String,
    partial: bool,
    tables: HashMap<usize, (Arc<Plan>, Statements<'c>)>,
}

impl Writer<'_, '_> {
    fn transaction(&mut self, mut transaction: BlockingTransaction<'_>) -> Result<(), SinkError> {
        let streamed = transaction.is_streamed();
        while let Some(item) = transaction.next()? {
            match item {
                Item::Change(change) => self.change(&change)?,
                Item::SchemaChange(change) => self.schema_change(change)?,
            }
            if streamed {
                fault_point!("streamed_change");
            }
        }
        Ok(())
    }

    /// A row of the copy is inserted like any other: the table has no other row with its key, or the two
    /// sides disagree.
    fn snapshot_rows(&mut self, mut rows: SnapshotRows<'_>) -> Result<(), SinkError> {
        if let Some(chunk) = rows.chunk() {
            if chunk.number == 0 {
                self.tables.clear();
                self.plans.clear();
                change::begin_copy(self.connection, self.catalogue, &chunk.table)?;
            }
            // A table without rows is made, too.
            let version = Arc::clone(&chunk.table);
            self.plan(Arc::as_ptr(&version).addr(), &version)?;
        }
        while let Some(change) = rows.next()? {
            self.change(&change)?;
        }
        fault_point!("snapshot_rows");
        Ok(())
    }

    fn schema_change(&mut self, change: &SchemaChange) -> Result<(), SinkError> {
        self.tables.clear();
        self.plans.clear();
        change::follow(self.connection, self.catalogue, change, self.partial)
    }

    fn change(&mut self, change: &Change<'_>) -> Result<(), SinkError> {
        let address = Arc::as_ptr(change.table).addr();
        if !self.tables.contains_key(&address) {
            let plan = self.plan(address, change.table)?;
            self.tables.insert(address, (plan, Statements::default()));
        }
        let Some((plan, statements)) = self.tables.get_mut(&address) else {
            return Err(SinkError::halt(capstan_core::halt::Code::SinkFailed, "table"));
        };
        statements.apply(self.connection, plan, change, self.scratch)
    }

    fn plan(&mut self, address: usize, version: &Arc<TableVersion>) -> Result<Arc<Plan>, SinkError> {
        if let Some(plan) = self.plans.get(&address).filter(|plan| Arc::ptr_eq(&plan.version, version)) {
            return Ok(Arc::clone(plan));
        }
        let before = self.catalogue.shape(version);
        let unseen = if self.partial { Unseen::Part } else { Unseen::Refused };
        let entry = change::see(self.connection, self.catalogue, version, unseen)?;
        // Other versions of the table were planned for what it was.
        if before != Some((entry.name.clone(), entry.key.clone())) || self.plans.len() >= PLANS_KEPT {
            self.tables.clear();
            self.plans.clear();
        }
        let plan = Arc::new(Plan::new(Arc::clone(version), entry));
        self.plans.insert(address, Arc::clone(&plan));
        Ok(plan)
    }
}
