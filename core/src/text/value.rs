//! One value, and one row image.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::draft::{self, Draft, Proof, VALUE};
use super::{Bigint, TextOptions};
use crate::binlog::rows::{RowImage, RowsEvent, RowsKind, VisitRows};
use crate::time::SourceTime;
use crate::value::charset::Charset;
use crate::value::json::{escape, number, temporal};
use crate::value::{
    Column, ColumnType, DateTime, Decimal, Enum, NotText, Set, TableVersion, Text, Timestamp, Value,
    ValueError, ValueFault, Visit,
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

/// The images of rows as objects.
pub(super) struct RowText<'o, 't> {
    pub(super) draft: Draft<'o>,
    table: &'t TableVersion,
    options: TextOptions,
    /// The object has no member yet, nor its brace.
    first: bool,
}

impl<'o, 't> RowText<'o, 't> {
    #[inline]
    pub(super) fn new(
        out: &'o mut String,
        table: &'t TableVersion,
        options: TextOptions,
        proof: Proof,
    ) -> Self {
        Self { draft: Draft::new(out, proof), table, options, first: true }
    }

    /// Ends the object, and what it stands in with more than one of the `braces`.
    #[inline]
    pub(super) fn end_object<const N: usize>(&mut self, braces: [u8; N]) {
        if core::mem::replace(&mut self.first, true) {
            self.draft.push(b'{');
        }
        self.draft.push_array(braces);
    }

    /// The comma in front of a member is the brace of the first one.
    #[inline(always)]
    fn comma(&mut self) -> u8 {
        if core::mem::take(&mut self.first) { b'{' } else { b',' }
    }

    /// The column's name and a short value, which `write` writes in place.
    #[inline(always)]
    fn short(&mut self, column: usize, write: impl FnOnce(&mut [u8; VALUE]) -> usize) {
        if let Some((key, len)) = self.table.short_json_key(column) {
            let first = self.comma();
            return self.draft.push_member((first, key, len), write);
        }
        self.key(column);
        self.draft.push_value(write);
    }

    /// The column's name and what stands around it.
    #[inline(always)]
    fn key(&mut self, column: usize) {
        let first = self.comma();
        if let Some((key, len)) = self.table.short_json_key(column) {
            return self.draft.push_key(first, key, len);
        }
        self.draft.push(first);
        self.draft.push_str(self.table.json_key(column).get(1..).unwrap_or_default());
    }

    fn other(&mut self, column: usize, value: Value<'_>) -> Result<(), ValueFault> {
        let of = self.table.columns().get(column).ok_or(ValueFault::NoSuchColumn)?;
        write(self.draft.settle(), of, value, self.options)
    }

    #[cold]
    fn other_text(&mut self, value: Text<'_>) {
        match value.to_str() {
            Ok(text) => self.draft.quote(&text),
            text @ Err(_) => string(self.draft.settle(), text, value.as_bytes()),
        }
    }
}

/// All rows of an event, as changes with a comma in front of each but the first.
pub(super) struct EventText<'o, 't> {
    row: RowText<'o, 't>,
    kind: RowsKind,
    first: bool,
}

impl<'o, 't> EventText<'o, 't> {
    #[inline]
    pub(super) fn new(
        out: &'o mut String,
        rows: &'t RowsEvent,
        options: TextOptions,
        first: bool,
        proof: Proof,
    ) -> Self {
        Self { row: RowText::new(out, rows.table(), options, proof), kind: rows.kind(), first }
    }

    /// See [`Draft::is_whole`].
    #[must_use]
    pub(super) fn is_whole(&mut self) -> bool {
        self.row.draft.is_whole()
    }
}

impl VisitRows<'_> for EventText<'_, '_> {
    #[inline]
    fn begin(&mut self, image: RowImage) {
        let draft = &mut self.row.draft;
        if self.kind != RowsKind::Insert && image == RowImage::After {
            return draft.push_str(AFTER);
        }
        let first = core::mem::take(&mut self.first);
        draft.push_str(self.row.table.json_head(self.kind, first));
    }

    #[inline]
    fn end(&mut self, image: RowImage) {
        if image == RowImage::After || self.kind == RowsKind::Delete {
            self.row.end_object(*b"}}");
        } else {
            self.row.end_object([b'}']);
        }
    }
}

/// What stands between the images of an update.
pub(super) const AFTER: &str = ",\"after\":";

impl<'a> Visit<'a> for EventText<'_, '_> {
    #[inline]
    fn value(&mut self, column: usize, value: Value<'a>) -> Result<(), ValueFault> {
        self.row.value(column, value)
    }

    #[inline]
    fn null(&mut self, column: usize) -> Result<(), ValueFault> {
        self.row.null(column)
    }

    #[inline]
    fn int(&mut self, column: usize, value: i64) -> Result<(), ValueFault> {
        self.row.int(column, value)
    }

    #[inline]
    fn uint(&mut self, column: usize, value: u64) -> Result<(), ValueFault> {
        self.row.uint(column, value)
    }

    #[inline]
    fn decimal(&mut self, column: usize, value: Decimal<'a>) -> Result<(), ValueFault> {
        self.row.decimal(column, value)
    }

    #[inline]
    fn date_time(&mut self, column: usize, value: DateTime) -> Result<(), ValueFault> {
        self.row.date_time(column, value)
    }

    #[inline]
    fn timestamp(&mut self, column: usize, value: Timestamp) -> Result<(), ValueFault> {
        self.row.timestamp(column, value)
    }

    #[inline]
    fn text(&mut self, column: usize, value: Text<'a>) -> Result<(), ValueFault> {
        self.row.text(column, value)
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
        self.draft.push_str("null");
        Ok(())
    }

    #[inline]
    fn int(&mut self, column: usize, value: i64) -> Result<(), ValueFault> {
        match self.options.bigint {
            Bigint::Number => self.short(column, |to| draft::integer(to, value < 0, value.unsigned_abs())),
            Bigint::String => return self.value(column, Value::Int(value)),
        }
        Ok(())
    }

    #[inline]
    fn uint(&mut self, column: usize, value: u64) -> Result<(), ValueFault> {
        match self.options.bigint {
            Bigint::Number => self.short(column, |to| draft::integer(to, false, value)),
            Bigint::String => return self.value(column, Value::UInt(value)),
        }
        Ok(())
    }

    #[inline]
    fn decimal(&mut self, column: usize, value: Decimal<'a>) -> Result<(), ValueFault> {
        match draft::decimal(value) {
            Some(write) => self.short(column, write),
            None => return self.value(column, Value::Decimal(value)),
        }
        Ok(())
    }

    #[inline]
    fn date_time(&mut self, column: usize, value: DateTime) -> Result<(), ValueFault> {
        self.short(column, |to| draft::date_time(to, value));
        Ok(())
    }

    #[inline]
    fn timestamp(&mut self, column: usize, value: Timestamp) -> Result<(), ValueFault> {
        self.date_time(column, value.to_utc())
    }

    #[inline]
    fn text(&mut self, column: usize, value: Text<'a>) -> Result<(), ValueFault> {
        self.key(column);
        let bytes = value.as_bytes();
        let charset = value.charset();
        let quoted = if matches!(charset, Some(Charset::Utf8mb4 | Charset::Utf8mb3)) {
            self.draft.quote_utf8(bytes)
        } else {
            // In these ASCII stands for itself.
            matches!(charset, Some(Charset::Ascii | Charset::Latin1)) && self.draft.quote_plain(bytes)
        };
        if !quoted {
            self.other_text(value);
        }
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
