//! Row events: WRITE, UPDATE and DELETE_ROWS_EVENT, versions 1 and 2, and PARTIAL_UPDATE_ROWS_EVENT, which
//! becomes an update with whole images when it is read.
//!
//! A row event stays one allocation. [`RowsEvent::new`] reads its head, [`RowsEvent::validate`] proves
//! once that every row lies inside it, and a [`RowsCursor`] walks it with a scratch that is used again
//! for every row and every event.
//!
//! Source: `Rows_event` in `libs/mysql/binlog/event/rows_event.h`, `pack_row` in `sql/rpl_record.cc`.

use alloc::sync::Arc;
use core::fmt;

use bytes::Bytes;

use self::walk::{Layout, Places, ones};
use crate::value::TableVersion;
use crate::value::json::JsonDiffError;
use crate::wire::{Reader, Short};

mod cursor;
mod filter;
mod partial;
mod row;
#[cfg(test)]
mod tests;
mod visit;
mod walk;

pub use cursor::{ChangeRow, RowScratch, RowWalk, RowsCursor};
pub use filter::Wanted;
pub use row::Row;
pub use visit::{RowImage, VisitError, VisitRows};

/// Why a row event cannot be used. The source (or who changed the bytes on the way) caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// Not the type code of a row event (the caller's mistake).
    #[error("event type {0} is no row event")]
    NotRows(u8),
    /// The event does not add up: `event_malformed`.
    #[error("malformed row event: {0}")]
    Malformed(&'static str),
    /// It has another number of columns than its table map: `table_map_mismatch`.
    #[error("a row event of {found} columns for a table of {mapped}")]
    TableMapMismatch {
        /// Columns in the table map.
        mapped: usize,
        /// Columns the event claims.
        found: u64,
    },
    /// A partial image: `partial_row_image`. Also of a `PARTIAL_UPDATE_ROWS_EVENT` (39) whose before image
    /// lacks a document that the after image has differences of.
    #[error("a partial row image")]
    PartialRowImage,
    /// The differences of a JSON document do not apply to it as it was: `value_malformed`.
    #[error("row {row}, column {column}: {reason}")]
    PartialUpdate {
        /// Number of the change in the event, from 0.
        row: u64,
        /// Index of the column.
        column: usize,
        /// What is wrong.
        reason: JsonDiffError,
    },
    /// A partial update whose whole images exceed the limit of one event: `row_event_too_large`.
    #[error("a partial update that is too large when it is whole")]
    TooLarge,
    /// A row runs past the end of the event: `event_malformed`.
    #[error("row {row} ends inside column {column}")]
    Row {
        /// Number of the change in the event, from 0.
        row: u64,
        /// Index of the column; the number of columns stands for the NULL bitmap.
        column: usize,
    },
}

impl From<Short> for RowsError {
    fn from(_: Short) -> Self {
        Self::Malformed("the bytes end inside a field")
    }
}

/// What a row event does to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowsKind {
    /// WRITE_ROWS_EVENT (23, 30).
    Insert,
    /// UPDATE_ROWS_EVENT (24, 31).
    Update,
    /// DELETE_ROWS_EVENT (25, 32).
    Delete,
    /// PARTIAL_UPDATE_ROWS_EVENT (39).
    PartialUpdate,
}

impl RowsKind {
    /// The kind and the version (1, 2) of an event type code; `None` for other events.
    #[must_use]
    pub const fn of(type_code: u8) -> Option<(Self, u8)> {
        Some(match type_code {
            23 => (Self::Insert, 1),
            24 => (Self::Update, 1),
            25 => (Self::Delete, 1),
            30 => (Self::Insert, 2),
            31 => (Self::Update, 2),
            32 => (Self::Delete, 2),
            39 => (Self::PartialUpdate, 2),
            _ => return None,
        })
    }
}

/// The head of a row event: enough to find its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsHead {
    /// What it does.
    pub kind: RowsKind,
    /// The number its table map gave the table.
    pub table_id: u64,
    /// `Rows_event::enum_flag` bits; unknown ones are no fault (9.6 added 0x10).
    pub flags: u16,
    /// Where the columns begin.
    body_at: usize,
}

/// `STMT_END_F`: the last row event of its statement.
pub(crate) const STMT_END: u16 = 1;
/// The table id of an event that holds no rows and only ends a statement (`Table_id`, `sql/table_id.h`).
const DUMMY_TABLE_ID: u64 = 0x00ff_ffff;

impl RowsHead {
    /// Reads the head of a row event's body (after the common header).
    ///
    /// # Errors
    /// [`RowsError::NotRows`] for other type codes, otherwise what does not add up.
    pub fn parse(type_code: u8, body: &[u8]) -> Result<Self, RowsError> {
        let (kind, version) = RowsKind::of(type_code).ok_or(RowsError::NotRows(type_code))?;
        let mut r = Reader::new(body);
        let (table_id, flags) = (r.u48()?, r.u16()?);
        if version == 2 {
            // Its own two bytes included. NDB and partition numbers are in there; we need neither.
            let extra = usize::from(r.u16()?);
            r.skip(extra.checked_sub(2).ok_or(RowsError::Malformed("extra data shorter than its length"))?)?;
        }
        Ok(Self { kind, table_id, flags, body_at: body.len().saturating_sub(r.len()) })
    }

    /// The statement ends with this event, and with it the life of its table maps.
    #[must_use]
    pub const fn ends_statement(self) -> bool {
        self.flags & STMT_END != 0
    }

    /// No rows and no table: only the end of a statement.
    #[must_use]
    pub const fn is_dummy(self) -> bool {
        self.table_id == DUMMY_TABLE_ID && self.ends_statement()
    }
}

/// A row event: a table version and 1…n changed rows in one piece of bytes, decoded on demand.
#[derive(Clone)]
pub struct RowsEvent {
    head: RowsHead,
    table: Arc<TableVersion>,
    /// The whole body.
    bytes: Bytes,
    /// Of an insert: the row. Of a delete or update: the row as it was.
    first: Image,
    /// Of an update: the row as it is now.
    second: Option<Image>,
    rows_at: usize,
    /// 0 until it was walked.
    changes: u64,
}

/// Which columns a row image has.
#[derive(Clone, Copy)]
struct Image {
    /// Where the bitmap of present columns lies.
    present_at: usize,
    /// How many columns are present.
    present: usize,
    full: bool,
}

impl fmt::Debug for RowsEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RowsEvent({:?} {}.{}, {} bytes)",
            self.head.kind,
            self.table.schema(),
            self.table.table(),
            self.bytes.len()
        )
    }
}

impl RowsEvent {
    /// A row event of `table` from its body (after the common header, without the checksum).
    ///
    /// # Errors
    /// What does not add up.
    pub fn new(head: RowsHead, table: Arc<TableVersion>, bytes: Bytes) -> Result<Self, RowsError> {
        Self::with_limit(head, table, bytes, u32::MAX as usize)
    }

    /// [`RowsEvent::new`] with a limit for the one event that grows when it is read: the differences of a
    /// partial update are applied, and `bytes_max` is what it may be then.
    ///
    /// # Errors
    /// As there, and [`RowsError::TooLarge`].
    pub fn with_limit(
        head: RowsHead,
        table: Arc<TableVersion>,
        bytes: Bytes,
        bytes_max: usize,
    ) -> Result<Self, RowsError> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(RowsError::Malformed("more than 4 GiB"));
        }
        let columns = table.columns().len();
        let mut r = Reader::new(&bytes);
        r.skip(head.body_at)?;
        let found = r.lenenc()?;
        if usize::try_from(found) != Ok(columns) {
            return Err(RowsError::TableMapMismatch { mapped: columns, found });
        }
        let mut image = || {
            let present_at = bytes.len().saturating_sub(r.len());
            let present = ones(r.take(columns.div_ceil(8))?, columns);
            Ok::<_, RowsError>(Image { present_at, present, full: present == columns })
        };
        let first = image()?;
        let second = match head.kind {
            RowsKind::Insert | RowsKind::Delete => None,
            RowsKind::Update | RowsKind::PartialUpdate => Some(image()?),
        };
        let rows_at = bytes.len().saturating_sub(r.len());
        let event = Self { head, table, bytes, first, second, rows_at, changes: 0 };
        if head.kind == RowsKind::PartialUpdate { event.whole(bytes_max) } else { Ok(event) }
    }

    /// Insert, update or delete; a partial update is an update.
    #[must_use]
    pub const fn kind(&self) -> RowsKind {
        self.head.kind
    }

    /// The event's head: flags, table id.
    #[must_use]
    pub const fn head(&self) -> RowsHead {
        self.head
    }

    /// The table the rows belong to.
    #[must_use]
    #[inline]
    pub const fn table(&self) -> &Arc<TableVersion> {
        &self.table
    }

    /// Whether every image has every column (`binlog_row_image=FULL`). If not, some values are
    /// [`Value::Absent`](crate::value::Value::Absent).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.first.full && self.second.is_none_or(|image| image.full)
    }

    /// Bytes this event keeps alive, at least: its own. What they were sliced from may be larger, see
    /// [`RowsEvent::detach`].
    #[must_use]
    pub const fn retained(&self) -> usize {
        self.bytes.len()
    }

    /// The images of all rows, one behind the other, as the binlog has them.
    #[must_use]
    pub fn images(&self) -> &[u8] {
        self.bytes.get(self.rows_at..).unwrap_or_default()
    }

    /// A copy that shares no bytes with the chunk it was read in.
    #[must_use]
    pub fn detach(&self) -> Self {
        Self { bytes: Bytes::copy_from_slice(&self.bytes), ..self.clone() }
    }

    /// Walks all rows once without decoding them: every length lies inside the event, and the last row
    /// ends where it ends. Gives the number of changes (an update is one).
    ///
    /// # Errors
    /// The row and column that run past the end.
    pub fn validate(&self) -> Result<u64, RowsError> {
        let (plan, first) = (self.table.plan(), self.layout(self.first));
        let second = self.second.map(|image| self.layout(image));
        let (mut at, mut row) = (self.rows_at, 0);
        loop {
            let fault = |column| RowsError::Row { row, column };
            let mut end = first.skip(plan, at).map_err(fault)?;
            if let Some(second) = second {
                end = second.skip(plan, end).map_err(fault)?;
            }
            row += 1;
            if end == self.bytes.len() {
                return Ok(row);
            }
            at = self.moved_on(at, end)?;
        }
    }

    /// [`RowsEvent::validate`], and remembers the number.
    ///
    /// # Errors
    /// As there.
    pub fn validated(mut self) -> Result<Self, RowsError> {
        self.changes = self.validate()?;
        Ok(self)
    }

    /// How many changes it holds (an update is one); 0 before [`RowsEvent::validated`].
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// A row without bytes has no successor: only an event without any bytes of rows may hold one (an
    /// insert without values under `binlog_row_image=MINIMAL`).
    #[inline]
    fn moved_on(&self, from: usize, to: usize) -> Result<usize, RowsError> {
        if to > from { Ok(to) } else { Err(RowsError::Malformed("rows without columns")) }
    }

    #[inline]
    fn layout(&self, image: Image) -> Layout<'_> {
        let present = || self.bytes.get(image.present_at..).unwrap_or_default();
        Layout { bytes: &self.bytes, present: (!image.full).then(present), count: image.present }
    }

    /// Steps over one image.
    #[inline]
    fn skip(&self, image: Image, at: usize, row: u64) -> Result<usize, RowsError> {
        self.layout(image).skip(self.table.plan(), at).map_err(|column| RowsError::Row { row, column })
    }

    /// Steps over one image and notes where its columns lie.
    #[inline]
    fn locate(&self, image: Image, at: usize, row: u64, places: &mut Places) -> Result<usize, RowsError> {
        let end = places.locate(self.table.plan(), self.layout(image), at);
        end.map_err(|column| RowsError::Row { row, column })
    }
}
