//! WRITE, UPDATE and DELETE_ROWS_EVENT of version 2.

use super::code;
use super::table::{Table, Value, bitmap};
use crate::put::{self, Take};

/// A row event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// 30, 31 or 32.
    pub code: u8,
    /// The table's number in the map before it.
    pub table_id: u64,
    /// Bit 0 (`STMT_END_F`): the last of its statement.
    pub flags: u16,
    /// Extra data behind its length.
    pub extra: Vec<u8>,
    /// Columns of the table.
    pub columns: usize,
    /// Which columns the first image has, first bit lowest; of an update also the second.
    pub present: Vec<Vec<bool>>,
    /// The images in the order they are written.
    pub images: Vec<Image>,
}

/// A row image: the bytes of each present column, `None` for NULL.
pub type Image = Vec<Option<Vec<u8>>>;

/// A change of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// INSERT.
    Insert(Vec<Value>),
    /// UPDATE: before and after.
    Update(Vec<Value>, Vec<Value>),
    /// DELETE.
    Delete(Vec<Value>),
}

impl RowChange {
    /// The type code of its event.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Insert(_) => code::WRITE_ROWS,
            Self::Update(..) => code::UPDATE_ROWS,
            Self::Delete(_) => code::DELETE_ROWS,
        }
    }
}

impl Rows {
    /// A row event with every column. The changes must be of one kind.
    #[must_use]
    pub fn of(table: &Table, changes: &[RowChange], ends_statement: bool) -> Self {
        let code = changes.first().map_or(code::WRITE_ROWS, RowChange::code);
        let image = |values: &Vec<Value>| -> Image {
            table.columns.iter().zip(values).map(|(column, value)| column.bytes_of(value)).collect()
        };
        let mut images = Vec::new();
        for change in changes {
            assert_eq!(change.code(), code, "one kind per event");
            match change {
                RowChange::Insert(row) | RowChange::Delete(row) => images.push(image(row)),
                RowChange::Update(before, after) => images.extend([image(before), image(after)]),
            }
        }
        let columns = table.columns.len();
        let bitmaps = if code == code::UPDATE_ROWS { 2 } else { 1 };
        Self {
            code,
            table_id: table.id,
            // 0x10 came with 9.6.
            flags: 0x10 | u16::from(ends_statement),
            extra: Vec::new(),
            columns,
            present: vec![vec![true; columns]; bitmaps],
            images,
        }
    }

    /// The same event as `binlog_row_image=MINIMAL` would write it: without the column `column`.
    #[must_use]
    pub fn without(mut self, column: usize) -> Self {
        self.present.iter_mut().for_each(|present| present[column] = false);
        self.images.iter_mut().for_each(|image| drop(image.remove(column)));
        self
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put::int(out, self.table_id, 6);
        put::int(out, u64::from(self.flags), 2);
        put::int(out, self.extra.len() as u64 + 2, 2);
        out.extend_from_slice(&self.extra);
        put::lenenc(out, self.columns as u64);
        for present in &self.present {
            // Bits behind the last column are set with the rest (`bitmap_set_all`), or not at all.
            let all = present.iter().all(|bit| *bit);
            let whole = present.len().next_multiple_of(8);
            out.extend(bitmap(present.iter().copied().chain([all; 8]).take(whole)));
        }
        for image in &self.images {
            out.extend(bitmap(image.iter().map(Option::is_none)));
            for value in image.iter().flatten() {
                out.extend_from_slice(value);
            }
        }
    }

    pub(super) fn read(code: u8, body: &[u8], find: impl Fn(u64) -> Option<Table>) -> Option<Self> {
        let mut take = Take(body);
        let table_id = take.int(6)?;
        let flags = take.int(2)? as u16;
        let extra = take.int(2)? as usize;
        let extra = take.bytes(extra.checked_sub(2)?)?.to_vec();
        let columns = take.lenenc()? as usize;
        let mut present = Vec::new();
        for _ in 0..if code == code::UPDATE_ROWS { 2 } else { 1 } {
            let bits = take.bytes(columns.div_ceil(8))?;
            present.push((0..columns).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect::<Vec<bool>>());
        }
        let mut rows = Self { code, table_id, flags, extra, columns, present, images: Vec::new() };
        if take.is_empty() {
            return Some(rows);
        }
        let table = find(table_id)?;
        (table.columns.len() == columns).then_some(())?;
        while !take.is_empty() {
            for at in 0..rows.present.len() {
                let there: Vec<usize> = (0..columns).filter(|c| rows.present[at][*c]).collect();
                let nulls = take.bytes(there.len().div_ceil(8))?;
                let mut image = Image::new();
                for (bit, column) in there.iter().enumerate() {
                    let null = nulls[bit / 8] >> (bit % 8) & 1 == 1;
                    image.push(match null {
                        true => None,
                        false => Some(table.columns[*column].take_value(&mut take)?.to_vec()),
                    });
                }
                rows.images.push(image);
            }
        }
        Some(rows)
    }
}
