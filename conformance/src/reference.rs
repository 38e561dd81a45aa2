//! A right sink at its smallest: it holds everything in memory.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan_core::{
    binlog::rows::Row,
    deliver::{Ack, BlockingBatch, BlockingSink, BlockingUnit, Change, Item, Position, SinkError},
    text::{TextOptions, write_image},
    value::ValueError,
};

use crate::target::{Applied, Stored};

/// What outlives a sink that is closed or killed.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    rows: Vec<Kept>,
    position: Option<String>,
}

/// A change, and the image after it as JSON text.
#[derive(Clone)]
pub struct Kept {
    /// The change.
    pub applied: Applied,
    /// Empty for a deleted row.
    pub image: String,
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
        let applied = held.rows.iter().map(|kept| kept.applied.clone()).collect();
        Stored { applied, position: held.position.clone() }
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
        batch.expected().check(self.0.position()?.as_ref())?;
        let mut rows = Vec::new();
        while let Some(unit) = batch.next()? {
            match unit {
                BlockingUnit::Transaction(mut transaction) => {
                    while let Some(item) = transaction.next()? {
                        match item {
                            Item::Change(change) => rows.push(keep(&change)?),
                            Item::SchemaChange(_) => {}
                        }
                    }
                }
                BlockingUnit::SnapshotRows(mut chunk) => {
                    while let Some(change) = chunk.next()? {
                        rows.push(keep(&change)?);
                    }
                }
                BlockingUnit::SchemaChange(_) | BlockingUnit::Progress(_) => {}
            }
        }
        let ack = batch.finish()?;
        self.0.write(rows, ack.position());
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
    let table = format!("{}.{}", change.table.schema(), change.table.table());
    Ok(Kept { applied: Applied::new(change.op, table, key), image })
}

/// A row's primary key as text, its columns with commas between.
fn key(row: Row<'_>) -> Result<String, SinkError> {
    let columns = row.table().columns();
    let mut text = String::new();
    for part in row.table().primary_key() {
        if !text.is_empty() {
            text.push(',');
        }
        if let Some(column) = columns.get(part.column) {
            let value = row.get(part.column)?;
            capstan_core::text::write_value(&mut text, column, value, TextOptions::default())
                .map_err(|reason| ValueError { column: part.column, reason })?;
        }
    }
    Ok(text)
}
