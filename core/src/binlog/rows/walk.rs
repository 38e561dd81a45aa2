//! Where the columns of a row image lie: the loops that everything else stands on.

use crate::value::Step;

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

    #[inline]
    pub(super) fn of(value: &[u8], rest: &[u8], total: usize) -> Self {
        let end = total.saturating_sub(rest.len());
        let start = end.saturating_sub(value.len());
        // Neither exceeds the length of the event, which fits.
        Self { start: start as u32, len: value.len() as u32 }
    }
}

/// The NULL bitmap of an image, which has a bit for each column **present**, and the values behind it.
#[inline]
pub(super) fn split_nulls(rest: &[u8], present: usize) -> Option<(&[u8], &[u8])> {
    rest.split_at_checked(present.div_ceil(8))
}

/// Notes where the columns of an image with every column lie. Gives what is behind it, or the column
/// that runs past the end.
#[inline]
pub(super) fn locate_full<'a>(
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
pub(super) fn walk<'a>(
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
pub(super) fn bit(bitmap: &[u8], index: usize) -> bool {
    bitmap.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// How many of the first `count` bits are set; what is beyond them in the last byte is padding.
#[inline]
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
