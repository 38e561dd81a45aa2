//! Where the columns of a row image lie: the loops that everything else stands on.

use alloc::vec::Vec;

use crate::value::{Plan, Step};

/// Place of a column's value in the event, behind its length if it has one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Span {
    /// Events are shorter than 4 GiB, so no value starts there.
    pub(super) const NULL: Self = Self { start: u32::MAX, len: 0 };
    pub(super) const ABSENT: Self = Self { start: u32::MAX, len: 1 };
}

/// Where the columns of one row image lie. Filled anew for every row, without an allocation once it has
/// met the widest table.
#[derive(Default)]
pub(super) struct Places {
    /// Where each run of the plan starts, and behind them the end of the row: all there is to know of a row
    /// with every column and no NULL.
    starts: Vec<u32>,
    /// Of every other row: each column.
    spans: Vec<Span>,
    whole: bool,
    /// Of an image without some columns: a bit for each that has no value, absent or NULL.
    lacking: Vec<u8>,
    partial: bool,
    /// Where the NULL bitmap starts; the values start behind it.
    nulls_at: usize,
    /// Where the values start.
    values_at: usize,
    end: usize,
}

/// [`Places`] of a row, as it lends them.
#[derive(Clone, Copy)]
pub(super) enum Located<'a> {
    /// Every column and no NULL: where each run starts, and the end of the row.
    Runs(&'a [u32]),
    /// Each column.
    Columns(&'a [Span]),
}

impl Places {
    pub(super) const fn new() -> Self {
        Self {
            starts: Vec::new(),
            spans: Vec::new(),
            whole: false,
            lacking: Vec::new(),
            partial: false,
            nulls_at: 0,
            values_at: 0,
            end: 0,
        }
    }

    #[inline]
    pub(super) fn lend(&self) -> Located<'_> {
        if self.whole { Located::Runs(&self.starts) } else { Located::Columns(&self.spans) }
    }

    /// Locates the columns of the image at `at`. Gives where it ends, or the column that runs past the end.
    #[inline]
    pub(super) fn locate(&mut self, plan: &Plan, layout: Layout<'_>, at: usize) -> Result<usize, usize> {
        self.nulls_at = at;
        let (nulls, at) = layout.nulls(at).ok_or(plan.steps.len())?;
        self.partial = layout.present.is_some();
        self.whole = !self.partial && !has_null(plan, layout.bytes, self.nulls_at, nulls);
        self.values_at = at;
        if self.whole {
            let count = plan.runs.len().saturating_add(1);
            if self.starts.len() != count {
                self.starts.resize(count, 0);
            }
            let Some((last, slots)) = self.starts.split_last_mut() else { return Err(plan.steps.len()) };
            let mut slots = slots.iter_mut();
            // Every place lies inside the event, whose length fits.
            let end = plan.walk(layout.bytes, at, |place| {
                if let Some(slot) = slots.next() {
                    *slot = place as u32;
                }
            });
            let Some(end) = end else { return Err(layout.broken(&plan.steps, nulls, at)) };
            *last = end as u32;
            self.end = end;
            return Ok(end);
        }
        if self.spans.len() != plan.steps.len() {
            self.spans.resize(plan.steps.len(), Span::ABSENT);
        }
        let mut spans = self.spans.iter_mut();
        let end = layout.walk(&plan.steps, nulls, at, |span| {
            if let Some(place) = spans.next() {
                *place = span;
            }
        })?;
        if self.partial {
            self.note_lacking();
        }
        self.end = end;
        Ok(end)
    }

    #[cold]
    fn note_lacking(&mut self) {
        self.lacking.clear();
        self.lacking.extend(self.spans.chunks(8).map(|spans| {
            let bits = spans.iter().rev().map(|span| u8::from(matches!(*span, Span::NULL | Span::ABSENT)));
            bits.fold(0, |byte, bit| byte << 1 | bit)
        }));
    }

    /// A bit for each column of the table, set if the image has no value of it; then other bytes.
    #[inline]
    pub(super) fn lacking<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        if self.partial {
            return &self.lacking;
        }
        bytes.get(self.nulls_at..).unwrap_or_default()
    }

    /// Of an image without some columns: whether this is one of them.
    #[cold]
    pub(super) fn is_absent(&self, column: usize) -> bool {
        self.partial && self.spans.get(column).is_none_or(|span| *span == Span::ABSENT)
    }

    /// The values of the row, one behind the other.
    #[inline]
    pub(super) fn values<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.values_at..self.end).unwrap_or_default()
    }
}

/// How an image lies in the event.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    /// The event.
    pub(super) bytes: &'a [u8],
    /// Which columns the image has; `None`: all of them.
    pub(super) present: Option<&'a [u8]>,
    /// How many columns it has.
    pub(super) count: usize,
}

impl<'a> Layout<'a> {
    /// Steps over the image at `at`. Gives where it ends, or the column that runs past the end.
    #[inline]
    pub(super) fn skip(self, plan: &Plan, at: usize) -> Result<usize, usize> {
        let nulls_at = at;
        let (nulls, at) = self.nulls(at).ok_or(plan.steps.len())?;
        let broken = || self.broken(&plan.steps, nulls, at);
        match (self.present, plan.null_mask) {
            (None, 0) if !any(nulls, plan.steps.len()) => {
                plan.walk(self.bytes, at, |_| {}).ok_or_else(broken)
            }
            (Some(_), _) | (None, 0) => self.walk(&plan.steps, nulls, at, |_| {}),
            (None, mask) => match word(self.bytes.get(nulls_at..).unwrap_or_default()) & mask {
                0 => plan.walk(self.bytes, at, |_| {}).ok_or_else(broken),
                nulls => plan.walk_some(self.bytes, at, nulls).ok_or_else(broken),
            },
        }
    }

    /// The NULL bitmap, which has a bit for each column **present**, and where the values start.
    #[inline]
    fn nulls(self, at: usize) -> Option<(&'a [u8], usize)> {
        let end = at.checked_add(self.count.div_ceil(8))?;
        Some((self.bytes.get(at..end)?, end))
    }

    /// Walks the columns one by one. Gives where the image ends, or the column that runs past the end.
    #[inline]
    fn walk(
        self,
        steps: &[Step],
        nulls: &[u8],
        mut at: usize,
        mut visit: impl FnMut(Span),
    ) -> Result<usize, usize> {
        let mut place = 0;
        for (column, step) in steps.iter().enumerate() {
            if self.present.is_some_and(|present| !bit(present, column)) {
                visit(Span::ABSENT);
                continue;
            }
            if bit(nulls, place) {
                visit(Span::NULL);
            } else {
                let (start, len) = step.place(self.bytes, at).ok_or(column)?;
                at = start.saturating_add(len);
                if at > self.bytes.len() {
                    return Err(column);
                }
                // Both lie inside the event, whose length fits.
                visit(Span { start: start as u32, len: len as u32 });
            }
            place += 1;
        }
        Ok(at)
    }

    /// The column at which a row that is known to run past the end does so.
    #[cold]
    fn broken(self, steps: &[Step], nulls: &[u8], at: usize) -> usize {
        self.walk(steps, nulls, at, |_| {}).err().unwrap_or(steps.len())
    }
}

/// Bit `index` of a bitmap whose first bit is the least significant.
#[inline]
pub(super) fn bit(bitmap: &[u8], index: usize) -> bool {
    bitmap.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// Columns whose bits are looked at together.
pub(super) const WORD: usize = 64;

/// The first bits of a bitmap, and whatever is behind it.
#[inline]
pub(super) fn word(bitmap: &[u8]) -> u64 {
    match bitmap.first_chunk() {
        // Nearly always there are so many bytes, if not of the bitmap.
        Some(word) => u64::from_le_bytes(*word),
        None => bitmap.iter().rfold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Whether a bit is set in the NULL bitmap of an image that has every column: `nulls`, which starts at `at`.
#[inline]
fn has_null(plan: &Plan, bytes: &[u8], at: usize, nulls: &[u8]) -> bool {
    match plan.null_mask {
        0 => any(nulls, plan.steps.len()),
        mask => word(bytes.get(at..).unwrap_or_default()) & mask != 0,
    }
}

/// Whether one of the first `count` bits is set; what is beyond them in the last byte is padding.
#[inline]
fn any(bitmap: &[u8], count: usize) -> bool {
    let Some((last, whole)) = bitmap.split_last() else { return false };
    let used = count.saturating_sub(whole.len() * 8);
    let mask = if used >= 8 { 0xff } else { (1u8 << used) - 1 };
    whole.iter().fold(last & mask, |all, byte| all | byte) != 0
}

/// How many of the first `count` bits are set; what is beyond them in the last byte is padding.
pub(super) fn ones(bitmap: &[u8], count: usize) -> usize {
    let mut left = count;
    let mut ones = 0;
    for byte in bitmap {
        let mask = if left >= 8 { 0xff } else { (1u8 << left) - 1 };
        ones += (byte & mask).count_ones() as usize;
        left = left.saturating_sub(8);
    }
    ones
}
