//! The walk over rows once more, as plainly as it can be written: column by column, slice by slice.

use super::*;

/// What an image has for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Absent,
    Null,
    Value(&'a [u8]),
}

/// The images of one change.
pub(super) type Images<'a> = Vec<Vec<Cell<'a>>>;

/// The images of every change up to the end of the event or the first error, and how it ended.
pub(super) fn rows(event: &RowsEvent) -> (Vec<Images<'_>>, Result<u64, RowsError>) {
    let (mut rows, mut rest) = (Vec::new(), &event.bytes[event.rows_at..]);
    loop {
        let before = rest.len();
        let mut images = Vec::new();
        for image in core::iter::once(event.first).chain(event.second) {
            let present = &event.bytes[image.present_at..];
            match one(event, present, &mut rest) {
                Ok(cells) => images.push(cells),
                Err(column) => {
                    let row = rows.len() as u64;
                    return (rows, Err(RowsError::Row { row, column }));
                }
            }
        }
        if rest.is_empty() {
            rows.push(images);
            let count = rows.len() as u64;
            return (rows, Ok(count));
        }
        if rest.len() == before {
            return (rows, Err(RowsError::Malformed("rows without columns")));
        }
        rows.push(images);
    }
}

fn one<'a>(event: &RowsEvent, present: &[u8], rest: &mut &'a [u8]) -> Result<Vec<Cell<'a>>, usize> {
    let columns = event.table().columns().len();
    let bit = |bitmap: &[u8], index: usize| bitmap[index / 8] >> (index % 8) & 1 == 1;
    let count = (0..columns).filter(|column| bit(present, *column)).count();
    let nulls = take(rest, count.div_ceil(8)).ok_or(columns)?;
    let (mut cells, mut place) = (Vec::new(), 0);
    for (column, step) in event.table().plan().steps.iter().enumerate() {
        if !bit(present, column) {
            cells.push(Cell::Absent);
            continue;
        }
        cells.push(if bit(nulls, place) {
            Cell::Null
        } else if step.prefix == 0 {
            Cell::Value(take(rest, step.width.into()).ok_or(column)?)
        } else {
            let length = take(rest, step.prefix.into()).ok_or(column)?;
            let length = length.iter().rfold(0, |length, byte| length << 8 | usize::from(*byte));
            Cell::Value(take(rest, length).ok_or(column)?)
        });
        place += 1;
    }
    Ok(cells)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}
