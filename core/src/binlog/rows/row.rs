//! One row image: values on demand.

use core::fmt;

use super::walk::Span;
use crate::value::{Column, Kind, Step, TableVersion, Value, ValueError, ValueFault, decode};

/// One row image. Values are decoded when asked for.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub(super) table: &'a TableVersion,
    pub(super) bytes: &'a [u8],
    pub(super) spans: &'a [Span],
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
    /// absent, left out, or not there at all. Two rows of one table version hold the same value in a column when
    /// these bytes are equal, so keys can be compared and hashed without decoding.
    #[must_use]
    #[inline]
    pub fn raw(self, index: usize) -> Option<&'a [u8]> {
        if self.table.is_left_out(index) {
            return None;
        }
        self.spans.get(index).and_then(|span| self.span(*span))
    }

    /// Whether the column is in this image at all (it may be NULL then).
    #[must_use]
    pub fn is_present(self, index: usize) -> bool {
        self.spans.get(index).is_some_and(|span| *span != Span::ABSENT) && !self.table.is_left_out(index)
    }

    /// Whether the column is NULL. An absent one is not.
    #[must_use]
    pub fn is_null(self, index: usize) -> bool {
        self.spans.get(index) == Some(&Span::NULL) && !self.table.is_left_out(index)
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
            None if span == Span::ABSENT || step.kind == Kind::LeftOut => Ok(Value::Absent),
            None => Ok(Value::Null),
        }
    }
}
