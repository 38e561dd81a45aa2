//! A right sink at its smallest: it holds everything in memory.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_core::{
    binlog::rows::Row,
    deliver::{
        Ack, BlockingBatch, BlockingSink, BlockingUnit, Change, Expected, Item, Position, SchemaChange,
        SinkError, SnapshotChunk,
    },
    sql::{SchemaEffect, TableMove, TableName},
    text::{TextOptions, write_image, write_value},
    value::ValueError,
};

use crate::target::{Applied, Stored};

/// What is kept of a table that is emptied.
const EMPTIED: &str = "truncate";
/// What is kept of a database that is dropped, which stands where a table does.
const DROPPED: &str = "drop_database";
/// What is kept of a table that takes another name, which stands where a key does.
const RENAMED: &str = "rename";
/// What is kept of a table whose copy begins.
const BEGUN: &str = "begins";

/// What outlives a sink that is closed or killed.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    rows: Vec<Kept>,
    position: Option<String>,
    backup: Option<(Vec<Kept>, Option<String>)>,
}

/// A change, and the image after it as JSON text.
#[derive(Clone)]
pub struct Kept {
    /// The change; `truncate` for a table that is emptied or gone, `drop_database` for all of a database, `rename` for a
    /// table that takes another name, `begins` for one whose copy begins.
    pub applied: Applied,
    /// Empty for a deleted row.
    pub image: String,
    /// The key before the change.
    pub was: String,
}

impl fmt::Debug for Kept {
    // Rule 1: the image holds row values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({})", self.applied.op)
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Disk({} changes)", self.held().rows.len())
    }
}

impl Disk {
    /// All of it.
    #[must_use]
    pub fn stored(&self) -> Stored {
        let held = self.held();
        let changes =
            held.rows.iter().filter(|kept| ![EMPTIED, DROPPED, RENAMED].contains(&&*kept.applied.op));
        Stored {
            applied: changes.map(|kept| kept.applied.clone()).collect(),
            position: held.position.clone(),
        }
    }

    /// The rows that are there after all of it, as a storage of rows would hold them.
    #[must_use]
    pub fn stored_rows(&self) -> Stored {
        let held = self.held();
        let mut rows: Vec<Kept> = Vec::new();
        for kept in &held.rows {
            let table = &kept.applied.table;
            match kept.applied.op.as_str() {
                EMPTIED | BEGUN => rows.retain(|row| row.applied.table != *table),
                DROPPED => {
                    rows.retain(|row| row.applied.table.split_once('.').is_none_or(|(db, _)| db != table))
                }
                RENAMED => {
                    for row in rows.iter_mut().filter(|row| row.applied.table == *table) {
                        row.applied.table.clone_from(&kept.applied.key);
                    }
                }
                "insert" => rows.push(kept.clone()),
                op => {
                    let here = |row: &Kept| row.applied.table == *table && row.applied.key == kept.was;
                    let Some(at) = rows.iter().position(here) else { continue };
                    let after = (op == "update").then(|| kept.clone());
                    rows.splice(at..=at, after).for_each(drop);
                }
            }
        }
        let row = |kept: &Kept| Applied::row(&*kept.applied.table, &*kept.applied.key, note(&kept.image));
        Stored { applied: rows.iter().map(row).collect(), position: held.position.clone() }
    }

    /// Remembers everything.
    pub fn backup(&self) {
        let mut held = self.held();
        held.backup = Some((held.rows.clone(), held.position.clone()));
    }

    /// Puts what was remembered in the place of everything.
    pub fn restore(&self) {
        let mut held = self.held();
        if let Some((rows, position)) = held.backup.clone() {
            (held.rows, held.position) = (rows, position);
        }
    }

    /// Puts a text where the position is.
    pub fn plant(&self, position: &str) {
        self.held().position = Some(position.to_owned());
    }

    /// Every change that is kept.
    #[must_use]
    pub fn kept(&self) -> Vec<Kept> {
        self.held().rows.clone()
    }

    /// The newest image of a row.
    #[must_use]
    pub fn row(&self, table: &str, key: &str) -> Option<String> {
        let held = self.held();
        let newest =
            held.rows.iter().rev().find(|kept| kept.applied.table == table && kept.applied.key == key)?;
        Some(newest.image.clone())
    }

    /// The position.
    ///
    /// # Errors
    /// It is none.
    pub fn position(&self) -> Result<Option<Position>, SinkError> {
        Ok(self.held().position.as_deref().map(Position::decode).transpose()?)
    }

    /// Rows and position in one step.
    pub fn write(&self, rows: Vec<Kept>, position: &Position) {
        self.write_text(rows, position.encode());
    }

    /// As [`Disk::write`], on condition that what is stored is `expected`.
    ///
    /// # Errors
    /// It is not, or is no position. Then nothing is written.
    pub fn write_if(
        &self,
        expected: &Expected,
        rows: Vec<Kept>,
        position: &Position,
    ) -> Result<(), SinkError> {
        let mut held = self.held();
        expected.check(held.position.as_deref().map(Position::decode).transpose()?.as_ref())?;
        held.rows.extend(rows);
        held.position = Some(position.encode());
        Ok(())
    }

    /// As [`Disk::write`], for a position that was written down elsewhere.
    pub fn write_text(&self, rows: Vec<Kept>, position: String) {
        let mut held = self.held();
        held.rows.extend(rows);
        held.position = Some(position);
    }

    /// Rows without a position: what no right sink does.
    pub fn write_rows(&self, rows: Vec<Kept>) {
        self.held().rows.extend(rows);
    }

    /// Takes the newest rows away, all but `keep`: what no right sink needs.
    pub fn truncate(&self, keep: usize) {
        self.held().rows.truncate(keep);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sink.
#[derive(Debug)]
pub struct Memory(Disk);

impl Memory {
    /// Over what is on the disk.
    #[must_use]
    pub fn open(disk: &Disk) -> Self {
        Self(disk.clone())
    }
}

impl BlockingSink for Memory {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.0.position()
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let expected = batch.expected().clone();
        let mut rows = Vec::new();
        while let Some(unit) = batch.next()? {
            match unit {
                BlockingUnit::Transaction(mut transaction) => {
                    while let Some(item) = transaction.next()? {
                        match item {
                            Item::Change(change) => rows.push(keep(&change)?),
                            Item::SchemaChange(change) => rows.extend(followed(change)),
                        }
                    }
                }
                BlockingUnit::SnapshotRows(mut chunk) => {
                    rows.extend(chunk.chunk().and_then(begun));
                    while let Some(change) = chunk.next()? {
                        rows.push(keep(&change)?);
                    }
                }
                BlockingUnit::SchemaChange(change) => rows.extend(followed(change)),
                BlockingUnit::Progress(_) => {}
            }
        }
        let ack = batch.finish()?;
        self.0.write_if(&expected, rows, ack.position())?;
        Ok(ack)
    }
}

/// What is kept of a change.
///
/// # Errors
/// A value that no server can have stored.
pub fn keep(change: &Change<'_>) -> Result<Kept, SinkError> {
    let mut image = String::new();
    if let Some(after) = change.after {
        write_image(&mut image, after.values(), TextOptions::default())?;
    }
    let key = change.after.or(change.before).map_or(Ok(String::new()), key)?;
    let was = change.before.map_or(Ok(String::new()), self::key)?;
    let table = format!("{}.{}", change.table.schema(), change.table.table());
    Ok(Kept { applied: Applied::new(change.op, table, key), image, was })
}

/// What is kept of a schema change: that tables are emptied, gone, or called otherwise. Of what it does to their columns
/// nothing is: each change is kept as its table was.
#[must_use]
pub fn followed(change: &SchemaChange) -> Vec<Kept> {
    let kept = |op: &str, table: String, key: &str| Kept {
        applied: Applied::named(op, table, key),
        image: String::new(),
        was: String::new(),
    };
    let name = |name: &TableName| format!("{}.{}", name.schema, name.table);
    match &change.effect {
        SchemaEffect::TruncateTable(table) => vec![kept(EMPTIED, name(table), "")],
        SchemaEffect::DropTables(tables) => {
            tables.iter().map(|table| kept(EMPTIED, name(table), "")).collect()
        }
        // All at once: nobody takes a name before whoever had it has left it.
        SchemaEffect::RenameTables(moves)
        | SchemaEffect::AlterTable { moves, .. }
        | SchemaEffect::TableEntered { moves, .. } => {
            let to = |step: &TableMove| step.to.as_ref().map(name);
            let leaves = moves.iter().map(|step| match to(step) {
                Some(to) => kept(RENAMED, name(&step.from), &format!("to {to}")),
                None => kept(EMPTIED, name(&step.from), ""),
            });
            let takes = moves.iter().filter_map(to).map(|to| kept(RENAMED, format!("to {to}"), &to));
            leaves.chain(takes).collect()
        }
        SchemaEffect::DropDatabase(schema) => vec![kept(DROPPED, schema.clone(), "")],
        SchemaEffect::Nothing
        | SchemaEffect::CopyTables(..)
        | SchemaEffect::CreateTable { .. }
        | SchemaEffect::CreateTableLike { .. }
        | SchemaEffect::Unfollowed(_) => Vec::new(),
    }
}

/// What is kept of a chunk with which a copy begins: that what is there of its table is void.
#[must_use]
pub fn begun(chunk: &SnapshotChunk) -> Option<Kept> {
    let table = format!("{}.{}", chunk.table.schema(), chunk.table.table());
    let applied = Applied::begins(table);
    (chunk.number == 0).then(|| Kept { applied, image: String::new(), was: String::new() })
}

/// The first column as text: the kit's tables are told apart by it.
fn key(row: Row<'_>) -> Result<String, SinkError> {
    let mut text = String::new();
    if let Some(column) = row.table().columns().first() {
        let value = row.get(0)?;
        write_value(&mut text, column, value, TextOptions::default())
            .map_err(|reason| ValueError { column: 0, reason })?;
    }
    Ok(text)
}

/// The column `note` of an image.
fn note(image: &str) -> String {
    let image: serde_json::Value = serde_json::from_str(image).unwrap_or_default();
    image.get("note").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}
