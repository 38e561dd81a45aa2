//! Row events: WRITE, UPDATE and DELETE_ROWS_EVENT, versions 1 and 2.
//!
//! A row event stays one allocation. [`RowsEvent::new`] reads its head, [`RowsEvent::validate`] proves
//! once that every row lies inside it, and a [`RowsCursor`] walks it with a scratch that is used again
//! for every row and every event.
//!
//! Source: `Rows_event` in `libs/mysql/binlog/event/rows_event.h`, `pack_row` in `sql/rpl_record.cc`.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use bytes::Bytes;

use crate::value::{Column, Step, TableVersion, Value, ValueError, ValueFault, decode};
use crate::wire::{Reader, Short};

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
    /// `PARTIAL_UPDATE_ROWS_EVENT` (39): its after image holds differences of JSON documents, which
    /// this version does not apply: `partial_row_image`.
    #[error("a partial JSON update")]
    PartialRowImage,
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
const STMT_END: u16 = 1;
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
    /// What does not add up, and [`RowsError::PartialRowImage`] for event 39.
    pub fn new(head: RowsHead, table: Arc<TableVersion>, bytes: Bytes) -> Result<Self, RowsError> {
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
            RowsKind::Update => Some(image()?),
            RowsKind::PartialUpdate => return Err(RowsError::PartialRowImage),
        };
        let rows_at = bytes.len().saturating_sub(r.len());
        Ok(Self { head, table, bytes, first, second, rows_at })
    }

    /// Insert, update or delete.
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
    pub const fn table(&self) -> &Arc<TableVersion> {
        &self.table
    }

    /// Whether every image has every column (`binlog_row_image=FULL`). If not, some values are
    /// [`Value::Absent`].
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
        let mut at = self.rows_at;
        let mut row = 0;
        loop {
            let end = self.skip(self.first, at, row)?;
            let end = self.second.map_or(Ok(end), |image| self.skip(image, end, row))?;
            row += 1;
            if end == self.bytes.len() {
                return Ok(row);
            }
            at = self.moved_on(at, end)?;
        }
    }

    /// A walk over the rows. `scratch` is filled anew and can be used again for the next event.
    pub fn cursor<'a>(&'a self, scratch: &'a mut RowScratch) -> RowsCursor<'a> {
        let columns = self.table.columns().len();
        scratch.reset(columns, self.second.is_some());
        RowsCursor { event: self, scratch, at: Some(self.rows_at), row: 0 }
    }

    /// A row without bytes has no successor: only an event without any bytes of rows may hold one (an
    /// insert without values under `binlog_row_image=MINIMAL`).
    fn moved_on(&self, from: usize, to: usize) -> Result<usize, RowsError> {
        if to > from { Ok(to) } else { Err(RowsError::Malformed("rows without columns")) }
    }

    fn present(&self, image: Image) -> &[u8] {
        self.bytes.get(image.present_at..).unwrap_or_default()
    }

    /// Steps over one image.
    #[inline]
    fn skip(&self, image: Image, at: usize, row: u64) -> Result<usize, RowsError> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let plan = self.table.plan();
        let (nulls, values) = split_nulls(rest, image.present)
            .ok_or(RowsError::Row { row, column: self.table.columns().len() })?;
        // Nothing NULL: columns of fixed width are stepped over together.
        let together = image.full && ones(nulls, image.present) == 0;
        let rest = match together.then(|| plan.skip(values)).flatten() {
            Some(rest) => rest,
            None => walk(&plan.steps, self.present(image), image.full, nulls, values, |_, _, _| {})
                .map_err(|column| RowsError::Row { row, column })?,
        };
        Ok(self.bytes.len().saturating_sub(rest.len()))
    }

    /// Steps over one image and notes where its columns lie.
    #[inline]
    fn locate(&self, image: Image, at: usize, row: u64, spans: &mut [Span]) -> Result<usize, RowsError> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let total = self.bytes.len();
        let (nulls, values) = split_nulls(rest, image.present)
            .ok_or(RowsError::Row { row, column: self.table.columns().len() })?;
        let steps = &self.table.plan().steps;
        let rest = if image.full {
            locate_full(steps, nulls, values, total, spans)
        } else {
            walk(steps, self.present(image), false, nulls, values, |column, value, rest| {
                if let Some(span) = spans.get_mut(column) {
                    *span = value.map_or(Span::NULL, |value| Span::of(value, rest, total));
                }
            })
        };
        let rest = rest.map_err(|column| RowsError::Row { row, column })?;
        Ok(total.saturating_sub(rest.len()))
    }
}

/// Where the columns of the current row lie. One can serve every cursor, one at a time.
#[derive(Default)]
pub struct RowScratch {
    first: Vec<Span>,
    second: Vec<Span>,
}

impl RowScratch {
    /// An empty scratch; it grows to the widest table it meets.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Vec::new(), second: Vec::new() }
    }

    fn reset(&mut self, columns: usize, two: bool) {
        self.first.clear();
        self.first.resize(columns, Span::ABSENT);
        self.second.clear();
        self.second.resize(if two { columns } else { 0 }, Span::ABSENT);
    }
}

impl fmt::Debug for RowScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowScratch")
    }
}

/// Place of a column's value in the event, behind its length if it has one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Events are shorter than 4 GiB, so no value starts there.
    const NULL: Self = Self { start: u32::MAX, len: 0 };
    const ABSENT: Self = Self { start: u32::MAX, len: 1 };

    #[inline]
    fn of(value: &[u8], rest: &[u8], total: usize) -> Self {
        let end = total.saturating_sub(rest.len());
        let start = end.saturating_sub(value.len());
        // Neither exceeds the length of the event, which fits.
        Self { start: start as u32, len: value.len() as u32 }
    }
}

/// A walk over the rows of one event, from [`RowsEvent::cursor`].
pub struct RowsCursor<'a> {
    event: &'a RowsEvent,
    scratch: &'a mut RowScratch,
    at: Option<usize>,
    row: u64,
}

impl fmt::Debug for RowsCursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowsCursor(row {})", self.row)
    }
}

impl RowsCursor<'_> {
    /// The next change; `None` behind the last.
    ///
    /// # Errors
    /// What [`RowsEvent::validate`] would have found; the walk is over then.
    #[expect(clippy::should_implement_trait, reason = "the rows borrow from the cursor")]
    pub fn next(&mut self) -> Result<Option<ChangeRow<'_>>, RowsError> {
        next_row(self.event, self.scratch, &mut self.at, &mut self.row)
    }
}

/// A walk that owns its place and lends its rows: for who holds event and walk side by side.
#[derive(Default)]
pub struct RowWalk {
    scratch: RowScratch,
    at: Option<usize>,
    row: u64,
}

impl fmt::Debug for RowWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowWalk(row {})", self.row)
    }
}

impl RowWalk {
    /// To the first row of `event`.
    pub fn start(&mut self, event: &RowsEvent) {
        self.scratch.reset(event.table.columns().len(), event.second.is_some());
        self.at = Some(event.rows_at);
        self.row = 0;
    }

    /// Whether a row is left.
    #[must_use]
    pub const fn has_next(&self) -> bool {
        self.at.is_some()
    }

    /// The next change of the event it was started with; `None` behind the last.
    ///
    /// # Errors
    /// As [`RowsCursor::next`].
    pub fn next<'a>(&'a mut self, event: &'a RowsEvent) -> Result<Option<ChangeRow<'a>>, RowsError> {
        next_row(event, &mut self.scratch, &mut self.at, &mut self.row)
    }
}

fn next_row<'a>(
    event: &'a RowsEvent,
    scratch: &'a mut RowScratch,
    place: &mut Option<usize>,
    row: &mut u64,
) -> Result<Option<ChangeRow<'a>>, RowsError> {
    let Some(at) = place.take() else { return Ok(None) };
    let end = event.locate(event.first, at, *row, &mut scratch.first)?;
    let end = match event.second {
        Some(image) => event.locate(image, end, *row, &mut scratch.second)?,
        None => end,
    };
    *row += 1;
    if end != event.bytes.len() {
        *place = Some(event.moved_on(at, end)?);
    }
    let view = |spans| Row { table: &event.table, bytes: &event.bytes, spans };
    Ok(Some(match event.head.kind {
        RowsKind::Insert => ChangeRow::Insert { after: view(&scratch.first) },
        RowsKind::Delete => ChangeRow::Delete { before: view(&scratch.first) },
        RowsKind::Update => ChangeRow::Update { before: view(&scratch.first), after: view(&scratch.second) },
        RowsKind::PartialUpdate => return Err(RowsError::PartialRowImage),
    }))
}

/// One change: the row before it, after it, or both.
#[derive(Clone, Copy, Debug)]
pub enum ChangeRow<'a> {
    /// A new row.
    Insert {
        /// The row.
        after: Row<'a>,
    },
    /// A changed row.
    Update {
        /// As it was.
        before: Row<'a>,
        /// As it is now.
        after: Row<'a>,
    },
    /// A row that is gone.
    Delete {
        /// As it was.
        before: Row<'a>,
    },
}

impl<'a> ChangeRow<'a> {
    /// The row as it was; `None` for an insert.
    #[must_use]
    pub const fn before(self) -> Option<Row<'a>> {
        match self {
            Self::Insert { .. } => None,
            Self::Update { before, .. } | Self::Delete { before } => Some(before),
        }
    }

    /// The row as it is now; `None` for a delete.
    #[must_use]
    pub const fn after(self) -> Option<Row<'a>> {
        match self {
            Self::Delete { .. } => None,
            Self::Update { after, .. } | Self::Insert { after } => Some(after),
        }
    }
}

/// One row image. Values are decoded when asked for.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    table: &'a TableVersion,
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Row({} columns)", self.spans.len())
    }
}

impl<'a> Row<'a> {
    /// Columns of the table, present or not.
    #[must_use]
    pub const fn len(self) -> usize {
        self.spans.len()
    }

    /// No columns at all, which no table has.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The table the row belongs to.
    #[must_use]
    pub const fn table(self) -> &'a TableVersion {
        self.table
    }

    /// The value of the column at `index`.
    ///
    /// # Errors
    /// [`ValueFault::NoSuchColumn`], or what no server can have stored.
    #[inline]
    pub fn get(self, index: usize) -> Result<Value<'a>, ValueError> {
        let fault = |reason| ValueError { column: index, reason };
        let none = || fault(ValueFault::NoSuchColumn);
        let span = self.spans.get(index).ok_or_else(none)?;
        let step = self.table.plan().steps.get(index).ok_or_else(none)?;
        let column = self.table.columns().get(index).ok_or_else(none)?;
        self.value(*span, *step, column).map_err(fault)
    }

    /// Column and value, in order.
    pub fn values(self) -> impl Iterator<Item = Result<(&'a Column, Value<'a>), ValueError>> {
        let columns = self.table.columns().iter().zip(&self.table.plan().steps).zip(self.spans).enumerate();
        columns.map(move |(index, ((column, step), span))| {
            let value = self.value(*span, *step, column);
            value.map(|v| (column, v)).map_err(|reason| ValueError { column: index, reason })
        })
    }

    /// Calls `visit` with each column's index and value, in order.
    ///
    /// # Errors
    /// The first value that no server can have stored; those before it were visited.
    #[inline]
    pub fn each(self, mut visit: impl FnMut(usize, Value<'a>)) -> Result<(), ValueError> {
        let columns = self.table.columns().iter().zip(&self.table.plan().steps).zip(self.spans).enumerate();
        for (index, ((column, step), span)) in columns {
            let value = self.value(*span, *step, column);
            visit(index, value.map_err(|reason| ValueError { column: index, reason })?);
        }
        Ok(())
    }

    /// The bytes of a column as the binlog has them, without the length in front; `None` if it is NULL,
    /// absent, or not there at all. Two rows of one table version hold the same value in a column when
    /// these bytes are equal, so keys can be compared and hashed without decoding.
    #[must_use]
    #[inline]
    pub fn raw(self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).and_then(|span| self.span(*span))
    }

    /// Whether the column is in this image at all (it may be NULL then).
    #[must_use]
    pub fn is_present(self, index: usize) -> bool {
        self.spans.get(index).is_some_and(|span| *span != Span::ABSENT)
    }

    /// Whether the column is NULL. An absent one is not.
    #[must_use]
    pub fn is_null(self, index: usize) -> bool {
        self.spans.get(index) == Some(&Span::NULL)
    }

    #[inline]
    fn span(self, span: Span) -> Option<&'a [u8]> {
        let (start, len) = (span.start as usize, span.len as usize);
        self.bytes.get(start..)?.get(..len)
    }

    #[inline]
    fn value(self, span: Span, step: Step, column: &'a Column) -> Result<Value<'a>, ValueFault> {
        match self.span(span) {
            Some(bytes) => decode(step, column, bytes),
            None if span == Span::ABSENT => Ok(Value::Absent),
            None => Ok(Value::Null),
        }
    }
}

/// The NULL bitmap of an image, which has a bit for each column **present**, and the values behind it.
#[inline]
fn split_nulls(rest: &[u8], present: usize) -> Option<(&[u8], &[u8])> {
    rest.split_at_checked(present.div_ceil(8))
}

/// Notes where the columns of an image with every column lie. Gives what is behind it, or the column
/// that runs past the end.
#[inline]
fn locate_full<'a>(
    steps: &[Step],
    nulls: &[u8],
    values: &'a [u8],
    total: usize,
    spans: &mut [Span],
) -> Result<&'a [u8], usize> {
    let mut rest = values;
    let mut done = 0usize;
    for ((nulls, steps), spans) in nulls.iter().zip(steps.chunks(8)).zip(spans.chunks_mut(8)) {
        let mut nulls = *nulls;
        for (step, span) in steps.iter().zip(spans) {
            if nulls & 1 == 0 {
                let (value, behind) = step.split(rest).ok_or(done)?;
                *span = Span::of(value, behind, total);
                rest = behind;
            } else {
                *span = Span::NULL;
            }
            nulls >>= 1;
            done += 1;
        }
    }
    Ok(rest)
}

/// Walks an image in which columns may be missing. `visit` gets the column, its value (`None`: NULL) and
/// what is behind it. Gives what is behind the image, or the column that runs past the end.
#[inline]
fn walk<'a>(
    steps: &[Step],
    present: &[u8],
    full: bool,
    nulls: &[u8],
    values: &'a [u8],
    mut visit: impl FnMut(usize, Option<&'a [u8]>, &'a [u8]),
) -> Result<&'a [u8], usize> {
    let mut rest = values;
    let mut place = 0;
    for (column, step) in steps.iter().enumerate() {
        if !full && !bit(present, column) {
            continue;
        }
        if bit(nulls, place) {
            visit(column, None, rest);
        } else {
            let (value, behind) = step.split(rest).ok_or(column)?;
            rest = behind;
            visit(column, Some(value), behind);
        }
        place += 1;
    }
    Ok(rest)
}

/// Bit `index` of a bitmap whose first bit is the least significant.
#[inline]
fn bit(bitmap: &[u8], index: usize) -> bool {
    bitmap.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// How many of the first `count` bits are set; what is beyond them in the last byte is padding.
#[inline]
fn ones(bitmap: &[u8], count: usize) -> usize {
    let mut left = count;
    let mut ones = 0;
    for byte in bitmap {
        let mask = if left >= 8 { 0xff } else { (1u8 << left) - 1 };
        ones += (byte & mask).count_ones() as usize;
        left = left.saturating_sub(8);
    }
    ones
}

#[cfg(test)]
mod tests;
