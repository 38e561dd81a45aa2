//! Result rows into one row event: an insert image for each.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use super::{binary, cell};
use crate::binlog::EventType;
use crate::binlog::rows::{RowsError, RowsEvent, RowsHead};
use crate::link::{BinaryRow, Cells, Malformed};
use crate::value::TableVersion;
use crate::value::json::JsonTextError;

/// What is wrong with a cell. It never holds any of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellFault {
    /// No number, or none of the column's range.
    #[error("a number that the column cannot hold")]
    Number,
    /// No date or time, or none of the column's kind.
    #[error("a date or time that the column cannot hold")]
    Temporal,
    /// Longer than the column, or not as long as its type.
    #[error("a value of a length that the column cannot hold")]
    Length,
    /// No JSON at all: what the server sends of a document whose text is longer than its `max_allowed_packet`.
    #[error("an empty text, which is no JSON document")]
    NoJson,
    /// No document as the server prints it.
    #[error(transparent)]
    Json(JsonTextError),
}

/// Why a result row is no row of the table. The source caused it, or a table that has changed since it was described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Fewer cells than columns.
    #[error("a result row with another number of columns")]
    Columns(#[from] Malformed),
    /// A cell that its column cannot hold.
    #[error("column {column}: {reason}")]
    Cell {
        /// Index into the table's columns.
        column: usize,
        /// What is wrong.
        reason: CellFault,
    },
    /// What was made is no row event.
    #[error(transparent)]
    Event(#[from] RowsError),
}

/// Packs the rows of one chunk.
pub struct RowEncoder {
    table: Arc<TableVersion>,
    body: Vec<u8>,
    head: usize,
    rows: u64,
}

impl fmt::Debug for RowEncoder {
    // Rule 1: the body holds values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowEncoder({:?}, {} rows, {} bytes)", self.table, self.rows, self.bytes())
    }
}

impl RowEncoder {
    /// An encoder without rows.
    #[must_use]
    pub fn new(table: Arc<TableVersion>) -> Self {
        let mut body = Vec::new();
        // Table id, flags (`STMT_END_F`), the length of no extra data (itself).
        body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 0, 2, 0]);
        // A table has at most 4,096 columns.
        let columns = table.columns().len();
        match u8::try_from(columns) {
            Ok(count @ 0..=250) => body.push(count),
            Ok(_) | Err(_) => {
                body.push(0xfc);
                body.extend_from_slice(&u16::try_from(columns).unwrap_or(u16::MAX).to_le_bytes());
            }
        }
        body.resize(body.len().saturating_add(columns.div_ceil(8)), 0xff);
        Self { head: body.len(), table, body, rows: 0 }
    }

    /// The table whose rows these are.
    #[must_use]
    pub const fn table(&self) -> &Arc<TableVersion> {
        &self.table
    }

    /// Rows so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the rows so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.body.len().saturating_sub(self.head)
    }

    /// Takes a row: as many cells as the table has columns, selected by [`select_list`](super::select_list). What
    /// was selected behind them is left.
    ///
    /// # Errors
    /// The row is not taken then.
    pub fn push(&mut self, cells: &mut Cells<'_>) -> Result<(), RowError> {
        let start = self.body.len();
        let pushed = self.row(cells, start);
        match pushed {
            Ok(()) => self.rows = self.rows.saturating_add(1),
            Err(_) => self.body.truncate(start),
        }
        pushed
    }

    fn row(&mut self, cells: &mut Cells<'_>, start: usize) -> Result<(), RowError> {
        let columns = self.table.columns();
        self.body.resize(start.saturating_add(columns.len().div_ceil(8)), 0);
        for (index, column) in columns.iter().enumerate() {
            let Some(bytes) = cells.cell()? else {
                if let Some(nulls) = self.body.get_mut(start.saturating_add(index / 8)) {
                    *nulls |= 1 << (index % 8);
                }
                continue;
            };
            cell::pack(&column.column_type, bytes, &mut self.body)
                .map_err(|reason| RowError::Cell { column: index, reason })?;
        }
        Ok(())
    }

    /// The same of a row of the binary protocol.
    ///
    /// # Errors
    /// The row is not taken then.
    pub fn push_binary(&mut self, row: &BinaryRow) -> Result<(), RowError> {
        let start = self.body.len();
        let pushed = self.binary(row, start);
        match pushed {
            Ok(()) => self.rows = self.rows.saturating_add(1),
            Err(_) => self.body.truncate(start),
        }
        pushed
    }

    fn binary(&mut self, row: &BinaryRow, start: usize) -> Result<(), RowError> {
        let columns = self.table.columns();
        let (are_null, mut values) = row.parts()?;
        self.body.resize(start.saturating_add(columns.len().div_ceil(8)), 0);
        let types = row.types();
        if types.len() < columns.len() {
            return Err(Malformed.into());
        }
        for (index, (column, code)) in columns.iter().zip(types).enumerate() {
            // The first two bits are of no column.
            let bit = index.saturating_add(2);
            if are_null.get(bit / 8).is_none_or(|byte| byte & 1 << (bit % 8) != 0) {
                if let Some(nulls) = self.body.get_mut(start.saturating_add(index / 8)) {
                    *nulls |= 1 << (index % 8);
                }
                continue;
            }
            binary::pack(&column.column_type, *code, &mut values, &mut self.body)
                .map_err(|reason| RowError::Cell { column: index, reason })?;
        }
        Ok(())
    }

    /// The rows as one event, and an encoder for the next; `None` if there are none.
    ///
    /// # Errors
    /// What was packed is no row event, which would be a mistake of ours.
    pub fn take(&mut self) -> Result<Option<RowsEvent>, RowError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let body = core::mem::replace(self, Self::new(Arc::clone(&self.table))).body;
        let head = RowsHead::parse(EventType::WriteRows.code(), &body)?;
        let event = RowsEvent::new(head, Arc::clone(&self.table), body.into())?;
        Ok(Some(event.validated()?))
    }
}
