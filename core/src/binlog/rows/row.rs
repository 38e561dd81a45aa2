//! One row image: values on demand.

use core::fmt;

use super::walk::{Located, Places, Span, WORD, word};
use crate::value::{
    Column, Keep, Kind, Step, TableVersion, Value, ValueError, ValueFault, Visit, decode, visit_next,
};

/// One row image. Values are decoded when asked for.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    table: &'a TableVersion,
    /// The event.
    bytes: &'a [u8],
    places: &'a Places,
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Row({} columns)", self.len())
    }
}

impl<'a> Row<'a> {
    #[inline]
    pub(super) fn new(table: &'a TableVersion, bytes: &'a [u8], places: &'a Places) -> Self {
        Self { table, bytes, places }
    }

    /// Columns of the table, present or not.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        self.table.columns().len()
    }

    /// No columns at all, which no table has.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.table.columns().is_empty()
    }

    /// The table the row belongs to.
    #[must_use]
    #[inline]
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
        let step = self.table.plan().steps.get(index).ok_or_else(none)?;
        match self.place(index) {
            Place::Value(bytes) => decode(step, index, self.table.columns(), bytes).map_err(fault),
            Place::Null if step.kind != Kind::LeftOut => Ok(Value::Null),
            Place::Null | Place::Absent => Ok(Value::Absent),
        }
    }

    /// Column and value, in order.
    pub fn values(self) -> impl Iterator<Item = Result<(&'a Column, Value<'a>), ValueError>> {
        let columns = self.table.columns().iter().enumerate();
        columns.map(move |(index, column)| self.get(index).map(|value| (column, value)))
    }

    /// Calls `visit` with each column's index and value, in order.
    ///
    /// # Errors
    /// The first value that no server can have stored; those before it were visited.
    #[inline]
    pub fn each(self, mut visit: impl FnMut(usize, Value<'a>)) -> Result<(), ValueError> {
        let columns = self.table.columns();
        self.columns(|index, step, rest| {
            let mut kept = Keep(Value::Null);
            match rest {
                Some(rest) => visit_next(step, index, columns, rest, &mut kept)?,
                None if self.is_hidden(index, step) => kept.0 = Value::Absent,
                None => {}
            }
            // One place for the visitor to become part of, whatever the kind.
            visit(index, kept.0);
            Ok(())
        })
    }

    /// Hands each column's value to the method of `to` for its kind, in order. What a value costs beside its
    /// bytes is least here.
    ///
    /// # Errors
    /// As [`Row::each`], and what `to` gives.
    #[inline]
    pub fn visit(self, to: &mut impl Visit<'a>) -> Result<(), ValueError> {
        let columns = self.table.columns();
        self.columns(|index, step, rest| match rest {
            Some(rest) => visit_next(step, index, columns, rest, to),
            None if self.is_hidden(index, step) => to.value(index, Value::Absent),
            None => to.null(index),
        })
    }

    /// Calls `visit` with each column's index and plan, and with the values from this column's on if it has one.
    #[inline(always)]
    fn columns(
        self,
        mut visit: impl FnMut(usize, &Step, Option<&mut &'a [u8]>) -> Result<(), ValueFault>,
    ) -> Result<(), ValueError> {
        let mut rest = self.places.values(self.bytes);
        let mut index = 0;
        let mut lacking = self.places.lacking(self.bytes);
        for steps in self.table.plan().steps.chunks(WORD) {
            let mut bits = word(lacking);
            lacking = lacking.get(WORD / 8..).unwrap_or_default();
            for step in steps {
                let value = if bits & 1 == 0 { Some(&mut rest) } else { None };
                visit(index, step, value).map_err(|reason| ValueError { column: index, reason })?;
                bits >>= 1;
                index += 1;
            }
        }
        Ok(())
    }

    /// Of a column without a value: whether that is not to be called NULL.
    #[cold]
    fn is_hidden(self, index: usize, step: &Step) -> bool {
        step.kind == Kind::LeftOut || self.places.is_absent(index)
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
        match self.place(index) {
            Place::Value(bytes) => Some(bytes),
            Place::Null | Place::Absent => None,
        }
    }

    /// Whether the column is in this image at all (it may be NULL then).
    #[must_use]
    #[inline]
    pub fn is_present(self, index: usize) -> bool {
        !matches!(self.place(index), Place::Absent) && !self.table.is_left_out(index)
    }

    /// Whether the column is NULL. An absent one is not.
    #[must_use]
    #[inline]
    pub fn is_null(self, index: usize) -> bool {
        matches!(self.place(index), Place::Null) && !self.table.is_left_out(index)
    }

    #[inline]
    fn place(self, index: usize) -> Place<'a> {
        match self.places.lend() {
            Located::Runs(starts) => self.in_run(starts, index).map_or(Place::Absent, Place::Value),
            Located::Columns(spans) => match spans.get(index) {
                None | Some(&Span::ABSENT) => Place::Absent,
                Some(span) => self.span(*span).map_or(Place::Null, Place::Value),
            },
        }
    }

    #[inline]
    fn in_run(self, starts: &[u32], index: usize) -> Option<&'a [u8]> {
        let plan = self.table.plan();
        let (spot, step) = (plan.spots.get(index)?, plan.steps.get(index)?);
        let run = usize::from(spot.run);
        let start = (*starts.get(run)? as usize).saturating_add(spot.offset as usize);
        if step.prefix == 0 {
            return self.bytes.get(start..)?.get(..usize::from(step.width));
        }
        // It is the last of its run.
        let end = *starts.get(run.saturating_add(1))? as usize;
        self.bytes.get(start.saturating_add(usize::from(step.prefix))..end)
    }

    #[inline]
    fn span(self, span: Span) -> Option<&'a [u8]> {
        let (start, len) = (span.start as usize, span.len as usize);
        self.bytes.get(start..)?.get(..len)
    }
}

/// What an image has for a column.
enum Place<'a> {
    Value(&'a [u8]),
    Null,
    Absent,
}
