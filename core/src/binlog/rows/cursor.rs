//! The walk over the rows of an event, one change at a time.

use core::fmt;

use super::row::Row;
use super::walk::Places;
use super::{RowsError, RowsEvent, RowsKind};

impl RowsEvent {
    /// A walk over the rows. `scratch` is filled anew and can be used again for the next event.
    #[inline]
    pub fn cursor<'a>(&'a self, scratch: &'a mut RowScratch) -> RowsCursor<'a> {
        RowsCursor { event: self, scratch, at: Some(self.rows_at), row: 0 }
    }
}

/// Where the columns of the current row lie. One can serve every cursor, one at a time.
#[derive(Default)]
pub struct RowScratch {
    first: Places,
    second: Places,
}

impl RowScratch {
    /// An empty scratch; it grows to the widest table it meets.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self { first: Places::new(), second: Places::new() }
    }
}

impl fmt::Debug for RowScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowScratch")
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
    #[inline]
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
    #[inline]
    pub fn start(&mut self, event: &RowsEvent) {
        self.at = Some(event.rows_at);
        self.row = 0;
    }

    /// Whether a row is left.
    #[must_use]
    #[inline]
    pub const fn has_next(&self) -> bool {
        self.at.is_some()
    }

    /// The next change of the event it was started with; `None` behind the last.
    ///
    /// # Errors
    /// As [`RowsCursor::next`].
    #[inline]
    pub fn next<'a>(&'a mut self, event: &'a RowsEvent) -> Result<Option<ChangeRow<'a>>, RowsError> {
        next_row(event, &mut self.scratch, &mut self.at, &mut self.row)
    }
}

#[inline]
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
    let view = |places| Row::new(&event.table, &event.bytes, places);
    Ok(Some(match event.head.kind {
        RowsKind::Insert => ChangeRow::Insert { after: view(&scratch.first) },
        RowsKind::Delete => ChangeRow::Delete { before: view(&scratch.first) },
        RowsKind::Update | RowsKind::PartialUpdate => {
            ChangeRow::Update { before: view(&scratch.first), after: view(&scratch.second) }
        }
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
    #[inline]
    pub const fn before(self) -> Option<Row<'a>> {
        match self {
            Self::Insert { .. } => None,
            Self::Update { before, .. } | Self::Delete { before } => Some(before),
        }
    }

    /// The row as it is now; `None` for a delete.
    #[must_use]
    #[inline]
    pub const fn after(self) -> Option<Row<'a>> {
        match self {
            Self::Delete { .. } => None,
            Self::Update { after, .. } | Self::Insert { after } => Some(after),
        }
    }
}
