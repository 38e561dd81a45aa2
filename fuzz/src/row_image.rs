//! A row event of any bytes under a table map of any bytes: no panic, and every way to a value says what a walk
//! over the bytes says that is written as plainly as can be.

use bytes::Bytes;
use capstan_core::{
    binlog::{
        rows::{Row, RowScratch, RowsEvent, RowsHead, RowsKind},
        table_map::TableMaps,
    },
    text::{TextOptions, TransactionLine, write_change},
    value::{
        Column, ColumnType, Date, DateTime, Decimal, TableVersion, Text, Timestamp, Value, ValueFault, Visit,
    },
};

/// What a partial update may grow to.
const EVENT_MAX: usize = 1 << 20;

/// Two bytes say how long the table map is, which follows; then the type code of the row event, and its body.
/// The table id is made true, or nearly every change of it would end at the first test.
pub fn check(data: &[u8]) {
    let Some((map, code, body)) = parts(data) else { return };
    let mut body = body.to_vec();
    if let (Some(id), Some(of_map)) = (body.first_chunk_mut::<6>(), map.first_chunk::<6>()) {
        *id = *of_map;
    }
    let mut maps = TableMaps::new();
    let (Ok(table), Ok(head)) = (maps.open(map), RowsHead::parse(code, &body)) else { return };
    let bytes = Bytes::from(body);
    let Ok(event) = RowsEvent::with_limit(head, table.clone(), bytes.clone(), EVENT_MAX) else { return };
    assert!(event.retained() <= EVENT_MAX.max(bytes.len()), "a partial update grew beyond its limit");
    // A partial update is another event when it is whole.
    let plain =
        (RowsKind::of(code) != Some((RowsKind::PartialUpdate, 2))).then(|| images(code, &bytes, &table));
    let (mut scratch, mut text, mut walked) = (RowScratch::new(), String::new(), 0);
    let mut changes = Some(String::new());
    let mut rows = event.cursor(&mut scratch);
    let whole = loop {
        match rows.next() {
            Ok(Some(change)) => {
                for (n, row) in [change.before(), change.after()].into_iter().flatten().enumerate() {
                    let plain = plain.as_ref().map(|(rows, _)| &rows[walked][n]);
                    image(row, plain.map(Vec::as_slice));
                }
                text.clear();
                if write_change(&mut text, change.before(), change.after(), TextOptions::default()).is_ok() {
                    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "the text is JSON");
                    if let Some(changes) = &mut changes {
                        changes.push_str(if walked == 0 { "" } else { "," });
                        changes.push_str(&text);
                    }
                } else {
                    assert!(text.is_empty(), "half a change");
                    changes = None;
                }
                walked += 1;
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    at_once(&event, changes.filter(|_| whole));
    assert_eq!(event.validate().ok(), whole.then_some(walked as u64), "the walk and the count of the rows");
    if let Some((rows, ends_well)) = plain {
        assert_eq!((rows.len(), ends_well), (walked, whole), "the plain walk");
    }
}

/// The event as a whole says what its rows say, or nothing where one of them is malformed.
fn at_once(event: &RowsEvent, changes: Option<String>) {
    let mut text = String::new();
    let mut line = TransactionLine::begin(&mut text, None, None);
    let start = text.len();
    let written = line.rows(&mut text, event, TextOptions::default());
    assert_eq!(written.is_ok(), changes.is_some(), "rows one by one and at once");
    assert!(text[start..] == changes.unwrap_or_default(), "the same text");
}

/// Table map, type code and body of a row event.
pub fn parts(data: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let (length, rest) = data.split_first_chunk::<2>()?;
    let (map, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let (code, body) = rest.split_first()?;
    Some((map, *code, body))
}

/// Every way to the values of an image.
fn image(row: Row<'_>, plain: Option<&[Plain<'_>]>) {
    let mut visited = Seen::default();
    let visit = row.visit(&mut visited);
    let mut each = Vec::new();
    assert_eq!(row.each(|index, value| each.push((index, value))), visit, "each and visit end alike");
    assert_eq!(each, visited.0, "each and visit");
    for index in 0..row.len() {
        let got = row.get(index);
        match (each.get(index), &visit) {
            (Some(seen), _) => assert_eq!(Ok(*seen), got.map(|value| (index, value)), "get"),
            (None, Err(error)) if error.column == index => assert_eq!(got, Err(*error), "get"),
            (None, end) => assert!(end.is_err(), "a column is not visited"),
        }
        let Some(plain) = plain else { continue };
        let found = match (row.raw(index), row.is_present(index)) {
            (Some(bytes), _) => Plain::Value(bytes),
            (None, true) => Plain::Null,
            (None, false) => Plain::Absent,
        };
        assert!(found == plain[index], "column {index} lies elsewhere");
        assert_eq!(row.is_null(index), found == Plain::Null);
        match got {
            Ok(Value::Null) => assert!(found == Plain::Null),
            Ok(Value::Absent) => assert!(found == Plain::Absent),
            Ok(_) | Err(_) => assert!(matches!(found, Plain::Value(_))),
        }
    }
}

/// The values as they came, each by the method of its kind.
#[derive(Default)]
struct Seen<'a>(Vec<(usize, Value<'a>)>);

impl<'a> Visit<'a> for Seen<'a> {
    fn value(&mut self, column: usize, value: Value<'a>) -> Result<(), ValueFault> {
        self.0.push((column, value));
        Ok(())
    }

    fn null(&mut self, column: usize) -> Result<(), ValueFault> {
        self.value(column, Value::Null)
    }

    fn int(&mut self, column: usize, value: i64) -> Result<(), ValueFault> {
        self.value(column, Value::Int(value))
    }

    fn uint(&mut self, column: usize, value: u64) -> Result<(), ValueFault> {
        self.value(column, Value::UInt(value))
    }

    fn decimal(&mut self, column: usize, value: Decimal<'a>) -> Result<(), ValueFault> {
        let digits: String = value.to_string().chars().filter(|c| *c != '.').collect();
        assert_eq!(value.unscaled(), digits.parse().ok().filter(|_| value.precision() <= 38), "digits");
        self.value(column, Value::Decimal(value))
    }

    fn date(&mut self, column: usize, value: Date) -> Result<(), ValueFault> {
        self.value(column, Value::Date(value))
    }

    fn date_time(&mut self, column: usize, value: DateTime) -> Result<(), ValueFault> {
        self.value(column, Value::DateTime(value))
    }

    fn timestamp(&mut self, column: usize, value: Timestamp) -> Result<(), ValueFault> {
        self.value(column, Value::Timestamp(value))
    }

    fn text(&mut self, column: usize, value: Text<'a>) -> Result<(), ValueFault> {
        let _ = value.to_str();
        self.value(column, Value::Text(value))
    }
}

/// What an image has for a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain<'a> {
    Absent,
    Null,
    Value(&'a [u8]),
}

/// The images of one change.
type Images<'a> = Vec<Vec<Plain<'a>>>;

/// Where the rows begin in the body of a row event: behind table id, flags, extra data, the number of columns and
/// the bitmaps of the columns that are present, which are given.
pub fn head(code: u8, body: &[u8], columns: usize) -> Option<(Vec<&[u8]>, usize)> {
    let (kind, version) = RowsKind::of(code)?;
    let mut at = 8;
    if version == 2 {
        at += usize::from(u16::from_le_bytes(*body.get(8..)?.first_chunk()?));
    }
    at += match body.get(at)? {
        0..251 => 1,
        252 => 3,
        253 => 4,
        254 => 9,
        251 | 255 => return None,
    };
    let mut bitmaps = Vec::new();
    for _ in 0..if matches!(kind, RowsKind::Insert | RowsKind::Delete) { 1 } else { 2 } {
        let end = at + columns.div_ceil(8);
        bitmaps.push(body.get(at..end)?);
        at = end;
    }
    Some((bitmaps, at))
}

/// The images of every change up to the first that does not lie in the event, and whether there was none.
fn images<'a>(code: u8, body: &'a [u8], table: &TableVersion) -> (Vec<Images<'a>>, bool) {
    let mut rows = Vec::new();
    let Some((bitmaps, at)) = head(code, body, table.columns().len()) else { return (rows, false) };
    let mut rest = &body[at..];
    loop {
        let before = rest.len();
        let images: Option<Images<'a>> =
            bitmaps.iter().map(|present| one(table.columns(), present, &mut rest)).collect();
        let Some(images) = images else { return (rows, false) };
        if rest.is_empty() {
            rows.push(images);
            return (rows, true);
        }
        if rest.len() == before {
            return (rows, false);
        }
        rows.push(images);
    }
}

fn one<'a>(columns: &[Column], present: &[u8], rest: &mut &'a [u8]) -> Option<Vec<Plain<'a>>> {
    let bit = |bitmap: &[u8], index: usize| bitmap[index / 8] >> (index % 8) & 1 == 1;
    let count = (0..columns.len()).filter(|column| bit(present, *column)).count();
    let nulls = take(rest, count.div_ceil(8))?;
    let mut place = 0;
    let cell = |(index, column): (usize, &Column)| {
        if !bit(present, index) {
            return Some(Plain::Absent);
        }
        place += 1;
        if bit(nulls, place - 1) {
            return Some(Plain::Null);
        }
        let length = match width(&column.column_type) {
            Width::Fixed(bytes) => bytes,
            Width::Counted(bytes) => {
                take(rest, bytes)?.iter().rfold(0, |length, byte| length << 8 | usize::from(*byte))
            }
        };
        take(rest, length).map(Plain::Value)
    };
    columns.iter().enumerate().map(cell).collect()
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

enum Width {
    Fixed(usize),
    /// So many bytes of length in front.
    Counted(usize),
}

/// Manual, "Data Type Storage Requirements".
fn width(of: &ColumnType) -> Width {
    let of_string = |bytes_max: u16| Width::Counted(if bytes_max > 255 { 2 } else { 1 });
    Width::Fixed(match of {
        ColumnType::TinyInt { .. } | ColumnType::Year => 1,
        ColumnType::SmallInt { .. } => 2,
        ColumnType::MediumInt { .. } | ColumnType::Date | ColumnType::OldTime => 3,
        ColumnType::Int { .. } | ColumnType::Float { .. } | ColumnType::OldTimestamp => 4,
        ColumnType::BigInt { .. } | ColumnType::Double { .. } | ColumnType::OldDateTime => 8,
        ColumnType::Decimal { precision, scale, .. } => {
            let digits = |n: u8| usize::from(n / 9) * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][usize::from(n % 9)];
            digits(precision - scale) + digits(*scale)
        }
        ColumnType::Bit { bits } => usize::from(bits.div_ceil(8)),
        ColumnType::Time { fsp } => 3 + usize::from(fsp.div_ceil(2)),
        ColumnType::DateTime { fsp } => 5 + usize::from(fsp.div_ceil(2)),
        ColumnType::Timestamp { fsp } => 4 + usize::from(fsp.div_ceil(2)),
        ColumnType::Enum { bytes, .. } | ColumnType::Set { bytes, .. } => usize::from(*bytes),
        ColumnType::Char { bytes_max, .. }
        | ColumnType::Varchar { bytes_max, .. }
        | ColumnType::Binary { bytes: bytes_max }
        | ColumnType::Varbinary { bytes_max } => return of_string(*bytes_max),
        ColumnType::Text { length_bytes, .. } | ColumnType::Blob { length_bytes } => {
            return Width::Counted(usize::from(*length_bytes));
        }
        ColumnType::Json | ColumnType::Geometry { .. } | ColumnType::Vector { .. } => {
            return Width::Counted(4);
        }
    })
}
