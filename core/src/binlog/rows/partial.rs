//! PARTIAL_UPDATE_ROWS_EVENT (39) made whole: an update whose after images have documents where the event has
//! differences of them (`binlog_row_value_options=PARTIAL_JSON`).
//!
//! An after image has value options in front and, if they say so, a bit for every JSON column of the table
//! that tells documents from differences (`pack_row`, `sql/rpl_record.cc`). Both have a length of four
//! bytes, so the plan of the table walks them alike.

use alloc::{vec, vec::Vec};

use bytes::Bytes;

use super::walk::{Span, bit, split_nulls};
use super::{Image, RowsError, RowsEvent, RowsKind};
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
    before: Vec<Span>,
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
            before: vec![Span::ABSENT; columns.len()],
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
        let (nulls, mut rest) =
            split_nulls(r.rest(), self.after.present).ok_or_else(|| short(columns.len()))?;
        self.out.extend_from_slice(nulls);
        let (mut json, mut place) = (0_usize, 0_usize);
        for (index, (column, step)) in columns.iter().zip(&event.table.plan().steps).enumerate() {
            let mut differences = false;
            if column.column_type == ColumnType::Json {
                differences = bit(partial, json);
                json = json.saturating_add(1);
            }
            if !self.after.full && !bit(event.present(self.after), index) {
                continue;
            }
            let null = bit(nulls, place);
            place = place.saturating_add(1);
            if null {
                continue;
            }
            let (value, behind) = step.split(rest).ok_or_else(|| short(index))?;
            if differences {
                self.document(index, row, value, step.kind == Kind::LeftOut)?;
            } else {
                let length = rest.len().saturating_sub(behind.len());
                self.out.extend_from_slice(rest.get(..length).unwrap_or_default());
            }
            rest = behind;
        }
        Ok(event.bytes.len().saturating_sub(rest.len()))
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
        let span = self.before.get(column).copied().unwrap_or(Span::ABSENT);
        if span == Span::ABSENT {
            return Err(RowsError::PartialRowImage);
        }
        let bytes =
            self.event.bytes.get(span.start as usize..).and_then(|from| from.get(..span.len as usize));
        // There is no difference to NULL.
        let before = bytes.map(Json::new).ok_or(JsonDiffError::NotThere);
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
