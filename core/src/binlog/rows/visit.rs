//! All values of an event, handed over while they are walked: nothing is noted of where a column lies.

use super::walk::{WORD, bit, word};
use super::{Image, RowsError, RowsEvent, RowsKind};
use crate::value::{Column, Kind, Step, Value, ValueError, ValueFault, Visit, visit_next};

/// Which of the images of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowImage {
    /// The row as it was: of updates and deletes.
    Before,
    /// The row as it is now: of inserts and updates.
    After,
}

/// Takes the rows of an event in order ([`RowsEvent::visit`]): of each change its images, an update's before image
/// first, and of each image its columns.
pub trait VisitRows<'a>: Visit<'a> {
    /// An image begins.
    #[inline]
    fn begin(&mut self, _image: RowImage) {}

    /// The image is over. With [`RowImage::After`], or that of a delete, so is the change.
    #[inline]
    fn end(&mut self, _image: RowImage) {}
}

/// Why a visit ended early. What was visited before it is good; the image in which it ended is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VisitError {
    /// The row does not lie in the event: what [`RowsEvent::validate`] would have found.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// A value that no server can have stored, or what the visitor gave.
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl RowsEvent {
    /// Hands every value of every row to the method of `to` for its kind, in order. What a row costs beside its
    /// bytes is least here; who asks for columns by number takes a [`RowsCursor`](super::RowsCursor).
    ///
    /// # Errors
    /// The first row that does not lie in the event, or the first value that no server can have stored, and what
    /// `to` gives. What lies before it was visited.
    #[inline]
    pub fn visit<'a>(&'a self, to: &mut impl VisitRows<'a>) -> Result<(), VisitError> {
        if !self.is_full() {
            return self.visit_partial(to);
        }
        if self.table.plan().steps.len() > WORD {
            return self.visit_wide(to);
        }
        self.visit_full(to, narrow)
    }

    /// [`RowsEvent::visit`] of a table of more than 64 columns.
    #[inline(never)]
    fn visit_wide<'a, V: VisitRows<'a>>(&'a self, to: &mut V) -> Result<(), VisitError> {
        self.visit_full(to, wide)
    }

    /// [`RowsEvent::visit`] of an event whose images have every column; `values` hands over those of one.
    #[inline(always)]
    fn visit_full<'a, V: VisitRows<'a>>(
        &'a self,
        to: &mut V,
        values: impl Fn(&[Step], usize, &'a [Column], &mut &'a [u8], &mut V) -> Result<(), (usize, ValueFault)>,
    ) -> Result<(), VisitError> {
        let mut rest = self.images();
        let (plan, columns) = (self.table.plan(), self.table.columns());
        let (steps, nulls_len) = (&*plan.steps, plan.nulls_len);
        let (first, last) = self.order();
        let (mut image, mut row) = (first, 0);
        loop {
            to.begin(image);
            let from = rest.len();
            if let Err((column, reason)) = values(steps, nulls_len, columns, &mut rest, to) {
                return Err(self.fault(image, from, row, ValueError { column, reason }));
            }
            to.end(image);
            if image != last {
                image = last;
                continue;
            }
            // An image has bytes, for its NULL bitmap.
            if rest.is_empty() {
                return Ok(());
            }
            image = first;
            row += 1;
        }
    }

    /// [`RowsEvent::visit`] of an event whose images lack columns.
    #[cold]
    fn visit_partial<'a>(&'a self, to: &mut impl VisitRows<'a>) -> Result<(), VisitError> {
        let mut rest = self.images();
        let (first, last) = self.order();
        let (mut image, mut row, mut left) = (first, 0, rest.len());
        loop {
            to.begin(image);
            let from = rest.len();
            if let Err((column, reason)) = self.partial_values(self.image(image), &mut rest, to) {
                return Err(self.fault(image, from, row, ValueError { column, reason }));
            }
            to.end(image);
            if image != last {
                image = last;
                continue;
            }
            if rest.is_empty() {
                return Ok(());
            }
            self.moved_on(rest.len(), left)?;
            (image, left) = (first, rest.len());
            row += 1;
        }
    }

    /// The first image of a change and its last.
    #[inline]
    const fn order(&self) -> (RowImage, RowImage) {
        match self.head.kind {
            RowsKind::Insert => (RowImage::After, RowImage::After),
            RowsKind::Delete => (RowImage::Before, RowImage::Before),
            RowsKind::Update | RowsKind::PartialUpdate => (RowImage::Before, RowImage::After),
        }
    }

    fn image(&self, image: RowImage) -> Image {
        match image {
            RowImage::Before => self.first,
            RowImage::After => self.second.unwrap_or(self.first),
        }
    }

    /// Whether the image that starts `left` bytes before the end lies in the event at all decides what a fault in it
    /// is.
    #[cold]
    fn fault(&self, image: RowImage, left: usize, row: u64, fault: ValueError) -> VisitError {
        let at = self.bytes.len().saturating_sub(left);
        match self.skip(self.image(image), at, row) {
            Err(of_rows) => VisitError::Rows(of_rows),
            Ok(_) => VisitError::Value(fault),
        }
    }

    /// [`values`] of an image that lacks columns.
    #[cold]
    fn partial_values<'a>(
        &'a self,
        image: Image,
        rest: &mut &'a [u8],
        to: &mut impl Visit<'a>,
    ) -> Result<(), (usize, ValueFault)> {
        let (table, present) = (&*self.table, self.bytes.get(image.present_at..).unwrap_or_default());
        let nulls = take(rest, image.present.div_ceil(8))?;
        let mut place = 0;
        for (index, step) in table.plan().steps.iter().enumerate() {
            let found = if !bit(present, index) {
                to.value(index, Value::Absent)
            } else {
                place += 1;
                match (bit(nulls, place - 1), step.kind) {
                    (false, _) => visit_next(step, index, table.columns(), rest, to),
                    (true, Kind::LeftOut) => to.value(index, Value::Absent),
                    (true, _) => to.null(index),
                }
            };
            found.map_err(|reason| (index, reason))?;
        }
        Ok(())
    }
}

/// Hands over the values of an image that has every column, at most 64 of them, and steps over it.
#[inline(always)]
fn narrow<'a>(
    steps: &[Step],
    nulls_len: usize,
    columns: &'a [Column],
    rest: &mut &'a [u8],
    to: &mut impl Visit<'a>,
) -> Result<(), (usize, ValueFault)> {
    let nulls = word(rest);
    take(rest, nulls_len)?;
    some(steps, 0, nulls, columns, rest, to)
}

/// [`narrow`], however many columns there are.
#[inline(always)]
fn wide<'a>(
    steps: &[Step],
    nulls_len: usize,
    columns: &'a [Column],
    rest: &mut &'a [u8],
    to: &mut impl Visit<'a>,
) -> Result<(), (usize, ValueFault)> {
    let mut nulls = *rest;
    take(rest, nulls_len)?;
    for (at, steps) in steps.chunks(WORD).enumerate() {
        some(steps, at * WORD, word(nulls), columns, rest, to)?;
        nulls = nulls.get(WORD / 8..).unwrap_or_default();
    }
    Ok(())
}

/// Hands over the values of some columns, from `first` on, whose NULL bits are given.
#[inline(always)]
fn some<'a>(
    steps: &[Step],
    first: usize,
    mut nulls: u64,
    columns: &'a [Column],
    rest: &mut &'a [u8],
    to: &mut impl Visit<'a>,
) -> Result<(), (usize, ValueFault)> {
    for (index, step) in (first..).zip(steps) {
        let found = if nulls & 1 == 0 {
            visit_next(step, index, columns, rest, to)
        } else if step.kind == Kind::LeftOut {
            to.value(index, Value::Absent)
        } else {
            to.null(index)
        };
        found.map_err(|reason| (index, reason))?;
        nulls >>= 1;
    }
    Ok(())
}

/// The NULL bitmap. That it is cut short is seen once more by who says what is wrong.
#[inline]
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], (usize, ValueFault)> {
    let (taken, behind) = rest.split_at_checked(count).ok_or((0, ValueFault::Length))?;
    *rest = behind;
    Ok(taken)
}
