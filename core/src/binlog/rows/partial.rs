//! PARTIAL_UPDATE_ROWS_EVENT (39) made whole: an update whose after images have documents where the event has
//! differences of them (`binlog_row_value_options=PARTIAL_JSON`).
//!
//! An after image has value options in front and, if they say so, a bit for every JSON column of the table
//! that tells documents from differences (`pack_row`, `sql/rpl_record.cc`). Both have a length of four
//! bytes, so the plan of the table walks them alike.

use alloc::vec::Vec;

use bytes::Bytes;

use super::walk::{Places, bit};
use super::{Image, Row, RowsError, RowsEvent, RowsKind};
use crate::value::json::{DiffEffort, Json, JsonDiffError, apply_diffs};
use crate::value::{ColumnType, Kind};
use crate::wire::Reader;

/// `enum_binlog_row_value_options`.
const PARTIAL_JSON_UPDATES: u64 = 1;

/// What the making of one event needs.
struct Whole<'a> {
    event: &'a RowsEvent,
    after: Image,
    json_columns: usize,
    /// Where the columns of the row as it was lie.
    before: Places,
    effort: DiffEffort,
    bytes_max: usize,
    out: Vec<u8>,
}

impl RowsEvent {
    /// The update that this partial update is. It may grow to `bytes_max` bytes, and does not grow beyond three
    /// times its own.
    pub(super) fn whole(&self, bytes_max: usize) -> Result<Self, RowsError> {
        let Some(after) = self.second else { return Err(RowsError::Malformed("no after image")) };
        let columns = self.table.columns();
        let mut whole = Whole {
            event: self,
            after,
            json_columns: columns.iter().filter(|column| column.column_type == ColumnType::Json).count(),
            before: Places::new(),
            effort: DiffEffort::default(),
            bytes_max: bytes_max.min(u32::MAX as usize),
            out: Vec::with_capacity(self.bytes.len()),
        };
        whole.copy(0, self.rows_at);
        let (mut at, mut row) = (self.rows_at, 0);
        loop {
            let before_end = self.locate(self.first, at, row, &mut whole.before)?;
            whole.copy(at, before_end);
            let end = whole.after_image(before_end, row)?;
            row = row.saturating_add(1);
            if end == self.bytes.len() {
                break;
            }
            at = self.moved_on(at, end)?;
        }
        if whole.out.len() > whole.bytes_max {
            return Err(RowsError::TooLarge);
        }
        let mut event = self.clone();
        event.bytes = Bytes::from(whole.out);
        event.head.kind = RowsKind::Update;
        Ok(event)
    }
}

impl<'a> Whole<'a> {
    fn copy(&mut self, from: usize, to: usize) {
        self.out.extend_from_slice(self.event.bytes.get(from..to).unwrap_or_default());
    }

    /// Appends the after image at `at`, whole; gives where the event goes on.
    fn after_image(&mut self, at: usize, row: u64) -> Result<usize, RowsError> {
        let event = self.event;
        let columns = event.table.columns();
        let short = |column| RowsError::Row { row, column };
        let mut r = Reader::new(event.bytes.get(at..).unwrap_or_default());
        let options = r.lenenc()?;
        if options & !PARTIAL_JSON_UPDATES != 0 {
            return Err(RowsError::Malformed("unknown row value options"));
        }
        let partial = if options == 0 { &[][..] } else { r.take(self.json_columns.div_ceil(8))? };
        let nulls = r.take(self.after.present.div_ceil(8)).map_err(|_| short(columns.len()))?;
        let mut at = event.bytes.len().saturating_sub(r.len());
        let present = event.layout(self.after).present;
        self.out.extend_from_slice(nulls);
        let (mut json, mut place) = (0_usize, 0_usize);
        for (index, (column, step)) in columns.iter().zip(&event.table.plan().steps).enumerate() {
            let mut differences = false;
            if column.column_type == ColumnType::Json {
                differences = bit(partial, json);
                json = json.saturating_add(1);
            }
            if present.is_some_and(|present| !bit(present, index)) {
                continue;
            }
            let null = bit(nulls, place);
            place = place.saturating_add(1);
            if null {
                continue;
            }
            let (start, len) = step.place(&event.bytes, at).ok_or_else(|| short(index))?;
            let end = start.saturating_add(len);
            let value = event.bytes.get(start..end).ok_or_else(|| short(index))?;
            if differences {
                self.document(index, row, value, step.kind == Kind::LeftOut)?;
            } else {
                self.copy(at, end);
            }
            at = end;
        }
        Ok(at)
    }

    /// Appends the document after `differences`, with its length in front. Of a column that is left out
    /// nothing is ever read: it becomes one of no bytes.
    fn document(
        &mut self,
        column: usize,
        row: u64,
        differences: &'a [u8],
        left_out: bool,
    ) -> Result<(), RowsError> {
        let length_at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        if left_out {
            return Ok(());
        }
        let row_before = Row::new(&self.event.table, &self.event.bytes, &self.before);
        if !row_before.is_present(column) {
            return Err(RowsError::PartialRowImage);
        }
        // There is no difference to NULL.
        let before = row_before.raw(column).map(Json::new).ok_or(JsonDiffError::NotThere);
        let applied = before.and_then(|before| {
            apply_diffs(before, differences, &mut self.effort, self.bytes_max, &mut self.out)
        });
        match applied {
            Ok(()) => {}
            Err(JsonDiffError::TooLarge) => return Err(RowsError::TooLarge),
            Err(reason) => return Err(RowsError::PartialUpdate { row, column, reason }),
        }
        let length = self.out.len().saturating_sub(length_at).saturating_sub(4);
        let length = u32::try_from(length).map_err(|_| RowsError::TooLarge)?;
        if let Some(slot) = self.out.get_mut(length_at..).and_then(<[u8]>::first_chunk_mut) {
            *slot = length.to_le_bytes();
        }
        Ok(())
    }
}
