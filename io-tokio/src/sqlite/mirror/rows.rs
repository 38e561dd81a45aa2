//! Row changes: one statement each, which touches exactly one row.

use std::sync::Arc;

use capstan_core::{
    binlog::rows::Row,
    deliver::{Change, Op, SinkError},
    halt::Code,
    value::{TableVersion, Value, ValueError, ValueFault},
};
use rusqlite::{
    CachedStatement, Connection, ToSql,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    super::failure::{Step, failed},
    catalogue::Entry,
    table::{Hidden, diverged_or, gone_or, held, quoted},
    value::{RowHash, with_cell},
};

/// How the rows of one table version are written: the texts of its statements. Kept as long as nothing
/// about the table changes.
#[derive(Debug)]
pub(super) struct Plan {
    /// Kept, so that its address stays this version's.
    pub(super) version: Arc<TableVersion>,
    entry: Entry,
    /// Indexes of the columns that are here.
    columns: Vec<usize>,
    /// Indexes of the key's.
    key: Vec<usize>,
    /// Indexes of those that are not in the key.
    others: Vec<usize>,
    insert: String,
    update: String,
    update_others: String,
    delete: String,
}

/// Terms of an expression are taken together in groups: SQLite bounds the depth of an expression.
const GROUP: usize = 100;

impl Plan {
    pub(super) fn new(version: Arc<TableVersion>, entry: Entry) -> Self {
        let columns: Vec<usize> = held(&entry.columns).map(|(index, _)| index).collect();
        let index_of = |name: &String| entry.columns.iter().position(|column| column.name == *name);
        let key: Vec<usize> = entry.key.iter().filter_map(index_of).collect();
        let others: Vec<usize> = columns.iter().copied().filter(|index| !key.contains(index)).collect();
        let name = |index: &usize| entry.columns.get(*index).map_or_else(String::new, |c| quoted(&c.name));
        let table = quoted(&entry.name);
        let hidden = Hidden::of(&entry.columns);
        let mut names: Vec<String> = columns.iter().map(name).collect();
        if key.is_empty() {
            names.push(quoted(&hidden.hash));
        }
        let marks = |from: usize, count: usize| (from..from + count).map(|n| format!("?{n}"));
        let inserted: Vec<String> = marks(1, names.len()).collect();
        let assigned = |names: &[String]| {
            let terms: Vec<String> = names
                .iter()
                .zip(marks(1, names.len()))
                .map(|(name, mark)| format!("{name} = {mark}"))
                .collect();
            terms.join(", ")
        };
        // The row that is meant, with parameters from `from` on.
        let found = |from: usize| {
            if key.is_empty() {
                let terms: Vec<String> = names
                    .iter()
                    .zip(marks(from, names.len()))
                    .rev()
                    .map(|(name, mark)| format!("{name} IS {mark}"))
                    .collect();
                let groups: Vec<String> =
                    terms.chunks(GROUP).map(|group| format!("({})", group.join(" AND "))).collect();
                let row = quoted(&hidden.row);
                format!("{row} = (SELECT {row} FROM {table} WHERE {} LIMIT 1)", groups.join(" AND "))
            } else {
                let terms: Vec<String> = key
                    .iter()
                    .zip(marks(from, key.len()))
                    .map(|(index, mark)| format!("{} = {mark}", name(index)))
                    .collect();
                terms.join(" AND ")
            }
        };
        let other_names: Vec<String> = others.iter().map(name).collect();
        Self {
            insert: format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), inserted.join(", ")),
            update: format!("UPDATE {table} SET {} WHERE {}", assigned(&names), found(names.len() + 1)),
            update_others: format!(
                "UPDATE {table} SET {} WHERE {}",
                assigned(&other_names),
                found(other_names.len() + 1)
            ),
            delete: format!("DELETE FROM {table} WHERE {}", found(1)),
            version,
            columns,
            key,
            others,
            entry,
        }
    }

    const fn is_keyless(&self) -> bool {
        self.key.is_empty()
    }
}

/// The statements of a table version within one batch.
#[derive(Default)]
pub(super) struct Statements<'c> {
    insert: Option<CachedStatement<'c>>,
    update: Option<CachedStatement<'c>>,
    update_others: Option<CachedStatement<'c>>,
    delete: Option<CachedStatement<'c>>,
}

impl<'c> Statements<'c> {
    /// Writes one change.
    pub(super) fn apply(
        &mut self,
        connection: &'c Connection,
        plan: &Plan,
        change: &Change<'_>,
        scratch: &mut String,
    ) -> Result<(), SinkError> {
        self.write(connection, plan, change, scratch).map_err(|error| gone_or(connection, &plan.entry, error))
    }

    fn write(
        &mut self,
        connection: &'c Connection,
        plan: &Plan,
        change: &Change<'_>,
        scratch: &mut String,
    ) -> Result<(), SinkError> {
        match (change.op, change.before, change.after) {
            (Op::Insert, _, Some(after)) => {
                let statement = prepared(&mut self.insert, connection, &plan.insert)?;
                let mut binder = Binder { statement, at: 0, size: 0, plan, scratch };
                binder.row(after, &plan.columns)?;
                binder.run().map(|_| ())
            }
            (Op::Delete, Some(before), _) => {
                let statement = prepared(&mut self.delete, connection, &plan.delete)?;
                let mut binder = Binder { statement, at: 0, size: 0, plan, scratch };
                binder.found(before)?;
                // A row that never was here is gone: nothing to do, where that may be.
                binder.run().map(|_| ())
            }
            (Op::Update, Some(before), Some(after)) => {
                let keeps_key = !plan.is_keyless()
                    && !plan.others.is_empty()
                    && plan.key.iter().all(|index| before.raw(*index) == after.raw(*index));
                let (slot, sql, columns) = if keeps_key {
                    (&mut self.update_others, &plan.update_others, &plan.others)
                } else {
                    (&mut self.update, &plan.update, &plan.columns)
                };
                let statement = prepared(slot, connection, sql)?;
                let mut binder = Binder { statement, at: 0, size: 0, plan, scratch };
                binder.row(after, columns)?;
                binder.found(before)?;
                if binder.run()? {
                    return Ok(());
                }
                // A row that never was here: now all of it is known.
                let statement = prepared(&mut self.insert, connection, &plan.insert)?;
                let mut binder = Binder { statement, at: 0, size: 0, plan, scratch };
                binder.row(after, &plan.columns)?;
                binder.run().map(|_| ())
            }
            // An image is missing: the core gives none such.
            (Op::Insert | Op::Update | Op::Delete, _, _) => {
                Err(plan.entry.halt(Code::MirrorDiverged, "image"))
            }
        }
    }
}

fn prepared<'s, 'c>(
    slot: &'s mut Option<CachedStatement<'c>>,
    connection: &'c Connection,
    sql: &str,
) -> Result<&'s mut CachedStatement<'c>, SinkError> {
    if slot.is_none() {
        *slot = Some(connection.prepare_cached(sql).map_err(|error| failed(Step::Write, error))?);
    }
    slot.as_mut().ok_or_else(|| SinkError::halt(Code::SinkFailed, "prepare"))
}

/// A statement holds what was bound last until something else is; of every table of a transaction together that
/// must stay little. Below so many bytes it costs less to let them be.
const BOUND_KEPT: usize = 4096;

/// From so many columns on a row is visited: cheaper than finding each of them.
const VISITED: usize = 4;

/// Binds values one after another.
struct Binder<'a, 'c> {
    statement: &'a mut CachedStatement<'c>,
    at: usize,
    /// Bytes bound.
    size: usize,
    plan: &'a Plan,
    scratch: &'a mut String,
}

impl Binder<'_, '_> {
    /// The values of these columns; of a whole row of a table without a key its hash too.
    fn row(&mut self, row: Row<'_>, columns: &[usize]) -> Result<(), SinkError> {
        let mut hash = RowHash::new();
        if columns.len() >= VISITED && columns.is_sorted() {
            let (mut wanted, mut bound) = (columns.iter().copied().peekable(), Ok(()));
            row.each(|index, value| {
                if bound.is_ok() && wanted.next_if_eq(&index).is_some() {
                    bound = self.bind(index, value, &mut hash);
                }
            })
            .map_err(|why| self.malformed(why))?;
            bound?;
            if let Some(column) = wanted.next() {
                return Err(self.malformed(ValueError { column, reason: ValueFault::NoSuchColumn }));
            }
        } else {
            for index in columns {
                let value = row.get(*index).map_err(|why| self.malformed(why))?;
                self.bind(*index, value, &mut hash)?;
            }
        }
        if self.plan.is_keyless() {
            self.at += 1;
            self.statement
                .raw_bind_parameter(self.at, hash.value())
                .map_err(|error| failed(Step::Write, error))?;
        }
        Ok(())
    }

    fn bind(&mut self, index: usize, value: Value<'_>, hash: &mut RowHash) -> Result<(), SinkError> {
        self.at += 1;
        let keyless = self.plan.is_keyless();
        let (statement, at, size) = (&mut *self.statement, self.at, &mut self.size);
        let bound = with_cell(value, self.scratch, |cell| {
            if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = cell {
                *size = size.saturating_add(bytes.len());
            }
            if keyless {
                hash.add(index, cell);
            }
            statement.raw_bind_parameter(at, Borrowed(cell))
        });
        match bound {
            Ok(bound) => bound.map_err(|error| failed(Step::Write, error)),
            Err(reason) => Err(self.malformed(ValueError { column: index, reason })),
        }
    }

    /// What the row that is meant is found by.
    fn found(&mut self, before: Row<'_>) -> Result<(), SinkError> {
        let plan = self.plan;
        self.row(before, if plan.is_keyless() { &plan.columns } else { &plan.key })
    }

    /// Whether a row was touched: one, or none of a table that never was here whole.
    fn run(self) -> Result<bool, SinkError> {
        let ran = self.statement.raw_execute();
        if self.size > BOUND_KEPT {
            self.statement.clear_bindings();
        }
        match ran {
            Ok(1) => Ok(true),
            Ok(0) if self.plan.entry.partial => Ok(false),
            Ok(_) => Err(self.plan.entry.halt(Code::MirrorDiverged, "row")),
            Err(error) => Err(diverged_or(&self.plan.entry, Step::Write, error)),
        }
    }

    fn malformed(&self, why: ValueError) -> SinkError {
        debug_assert!(why.reason != ValueFault::NoSuchColumn, "a captured column is in every image");
        SinkError::from(why).of_table(&self.plan.entry.schema, &self.plan.entry.table)
    }
}

/// A value that is not copied on its way.
struct Borrowed<'a>(ValueRef<'a>);

impl ToSql for Borrowed<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0))
    }
}
