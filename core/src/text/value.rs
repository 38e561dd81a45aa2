//! One value, and one row image.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Bigint, TextOptions};
use crate::binlog::rows::Row;
use crate::time::SourceTime;
use crate::value::json::{escape, number, temporal};
use crate::value::{
    Column, ColumnType, DateTime, Decimal, Enum, NotText, Set, TableVersion, Text, Value, ValueError,
    ValueFault, Visit,
};

/// Appends a moment of the source as `YYYY-MM-DDThh:mm:ss.ffffffZ` (RFC 3339), without quotes.
pub fn write_time(out: &mut String, at: SourceTime) {
    temporal::rfc3339(out, at);
}

/// Appends `{"column":value,…}`, without the columns that are absent.
///
/// Takes what [`crate::binlog::rows::Row::values`] gives, or any other source of columns and values.
///
/// # Errors
/// The first value that no server can have stored; `out` is as it was then.
pub fn write_image<'a>(
    out: &mut String,
    values: impl Iterator<Item = Result<(&'a Column, Value<'a>), ValueError>>,
    options: TextOptions,
) -> Result<(), ValueError> {
    let start = out.len();
    let written = image(out, values, options);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn image<'a>(
    out: &mut String,
    values: impl Iterator<Item = Result<(&'a Column, Value<'a>), ValueError>>,
    options: TextOptions,
) -> Result<(), ValueError> {
    out.push('{');
    let mut first = true;
    for (index, value) in values.enumerate() {
        let (column, value) = value?;
        if matches!(value, Value::Absent) {
            continue;
        }
        if !first {
            out.push(',');
        }
        first = false;
        escape::quote(out, &column.name);
        out.push(':');
        write(out, column, value, options).map_err(|reason| ValueError { column: index, reason })?;
    }
    out.push('}');
    Ok(())
}

/// As [`write_image`], of a row; `out` is not cut back after an error.
pub(super) fn write_row(out: &mut String, row: Row<'_>, options: TextOptions) -> Result<(), ValueError> {
    out.push('{');
    let table = row.table();
    row.visit(&mut RowText { out, table, options, first: true })?;
    out.push('}');
    Ok(())
}

/// The columns of a row as the members of an object.
struct RowText<'o, 'a> {
    out: &'o mut String,
    table: &'a TableVersion,
    options: TextOptions,
    first: bool,
}

impl RowText<'_, '_> {
    /// The column's name and what stands around it.
    #[inline]
    fn key(&mut self, column: usize) {
        // With its comma in front, which the first column goes without.
        let key = self.table.json_key(column);
        let key = if core::mem::take(&mut self.first) { key.get(1..).unwrap_or_default() } else { key };
        self.out.push_str(key);
    }

    fn other(&mut self, column: usize, value: Value<'_>) -> Result<(), ValueFault> {
        let of = self.table.columns().get(column).ok_or(ValueFault::NoSuchColumn)?;
        write(self.out, of, value, self.options)
    }
}

impl<'a> Visit<'a> for RowText<'_, '_> {
    fn value(&mut self, column: usize, value: Value<'a>) -> Result<(), ValueFault> {
        if matches!(value, Value::Absent) {
            return Ok(());
        }
        self.key(column);
        self.other(column, value)
    }

    #[inline]
    fn null(&mut self, column: usize) -> Result<(), ValueFault> {
        self.key(column);
        self.out.push_str("null");
        Ok(())
    }

    #[inline]
    fn int(&mut self, column: usize, value: i64) -> Result<(), ValueFault> {
        self.key(column);
        match self.options.bigint {
            Bigint::Number => number::integer(self.out, value),
            Bigint::String => self.other(column, Value::Int(value))?,
        }
        Ok(())
    }

    #[inline]
    fn uint(&mut self, column: usize, value: u64) -> Result<(), ValueFault> {
        self.key(column);
        match self.options.bigint {
            Bigint::Number => number::unsigned(self.out, value),
            Bigint::String => self.other(column, Value::UInt(value))?,
        }
        Ok(())
    }

    #[inline]
    fn decimal(&mut self, column: usize, value: Decimal<'a>) -> Result<(), ValueFault> {
        self.key(column);
        quoted(self.out, |out| out.push_str(value.text().as_str()));
        Ok(())
    }

    #[inline]
    fn date_time(&mut self, column: usize, value: DateTime) -> Result<(), ValueFault> {
        self.key(column);
        quoted(self.out, |out| temporal::date_time(out, value));
        Ok(())
    }

    #[inline]
    fn text(&mut self, column: usize, value: Text<'a>) -> Result<(), ValueFault> {
        self.key(column);
        string(self.out, value.to_str(), value.as_bytes());
        Ok(())
    }
}

/// Appends one value as JSON; nothing for one that is absent.
///
/// # Errors
/// A value that no server can have stored; `out` is as it was then.
pub fn write_value(
    out: &mut String,
    column: &Column,
    value: Value<'_>,
    options: TextOptions,
) -> Result<(), ValueFault> {
    let start = out.len();
    let written = write(out, column, value, options);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write(
    out: &mut String,
    column: &Column,
    value: Value<'_>,
    options: TextOptions,
) -> Result<(), ValueFault> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Absent => {}
        Value::Int(value) => wide(out, column, options, |out| number::integer(out, value)),
        Value::UInt(value) => wide(out, column, options, |out| number::unsigned(out, value)),
        Value::Bit(bit) => wide(out, column, options, |out| number::unsigned(out, bit.value())),
        Value::Year(year) => number::unsigned(out, year.into()),
        Value::Float(value) => number::float(out, value).map_err(|_| ValueFault::NotFinite)?,
        Value::Double(value) => number::double(out, value).map_err(|_| ValueFault::NotFinite)?,
        Value::Decimal(decimal) => quoted(out, |out| out.push_str(decimal.text().as_str())),
        Value::Date(date) => quoted(out, |out| temporal::date(out, date)),
        Value::Time(time) => quoted(out, |out| temporal::time(out, time)),
        Value::DateTime(at) => quoted(out, |out| temporal::date_time(out, at)),
        Value::Timestamp(at) => quoted(out, |out| temporal::date_time(out, at.to_utc())),
        Value::Text(text) => string(out, text.to_str(), text.as_bytes()),
        Value::Enum(value) => enumeration(out, value),
        Value::Set(value) => set(out, column, value, options),
        Value::Binary(value) => quoted(out, |out| escape::base64(out, &value.to_bytes())),
        Value::Blob(bytes) => quoted(out, |out| escape::base64(out, bytes)),
        Value::Geometry(value) => quoted(out, |out| escape::base64(out, value.as_bytes())),
        Value::Vector(value) => quoted(out, |out| escape::base64(out, value.as_bytes())),
        Value::Json(document) => document.write_text(out).map_err(ValueFault::Json)?,
    }
    Ok(())
}

/// A number that may have more bits than a double holds exactly.
fn wide(out: &mut String, column: &Column, options: TextOptions, write: impl FnOnce(&mut String)) {
    let is_wide = match &column.column_type {
        ColumnType::BigInt { .. } => true,
        ColumnType::Bit { bits } => *bits > 53,
        ColumnType::Set { bytes, .. } => *bytes == 8,
        ColumnType::TinyInt { .. }
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::Float { .. }
        | ColumnType::Double { .. }
        | ColumnType::Decimal { .. }
        | ColumnType::Year
        | ColumnType::Date
        | ColumnType::Time { .. }
        | ColumnType::DateTime { .. }
        | ColumnType::Timestamp { .. }
        | ColumnType::OldTime
        | ColumnType::OldDateTime
        | ColumnType::OldTimestamp
        | ColumnType::Char { .. }
        | ColumnType::Varchar { .. }
        | ColumnType::Text { .. }
        | ColumnType::Binary { .. }
        | ColumnType::Varbinary { .. }
        | ColumnType::Blob { .. }
        | ColumnType::Enum { .. }
        | ColumnType::Json
        | ColumnType::Geometry { .. }
        | ColumnType::Vector { .. } => false,
    };
    match options.bigint {
        Bigint::String if is_wide => quoted(out, write),
        Bigint::String | Bigint::Number => write(out),
    }
}

/// The label; the member's number where the source wrote no labels.
fn enumeration(out: &mut String, value: Enum<'_>) {
    match value.label() {
        Some(label) => string(out, label.to_str(), label.as_bytes()),
        None => number::unsigned(out, value.index().into()),
    }
}

/// The labels with commas between them; the bits as a number where the source wrote no labels.
fn set(out: &mut String, column: &Column, value: Set<'_>, options: TextOptions) {
    match (value.to_str(), value.labels()) {
        (Ok(text), _) => escape::quote(out, &text),
        (Err(why), Some(labels)) => {
            let labels: Vec<&[u8]> = labels.map(Text::as_bytes).collect();
            string(out, Err(why), &labels.join(&b','));
        }
        (Err(_), None) => wide(out, column, options, |out| number::unsigned(out, value.bits())),
    }
}

/// Text as a string; `{"base64":"…"}` where it is none, so that no byte is lost or bent.
#[inline]
fn string(out: &mut String, text: Result<Cow<'_, str>, NotText>, bytes: &[u8]) {
    match text {
        Ok(text) => escape::quote(out, &text),
        Err(NotText::UnknownCollation | NotText::Invalid) => {
            out.push_str("{\"base64\":\"");
            escape::base64(out, bytes);
            out.push_str("\"}");
        }
    }
}

/// What `write` writes needs no escapes.
#[inline]
fn quoted(out: &mut String, write: impl FnOnce(&mut String)) {
    out.push('"');
    write(out);
    out.push('"');
}
