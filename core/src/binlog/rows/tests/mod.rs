//! Files written by real servers, against what `SELECT` shows there.
//!
//! Here: the captured cases. `types`: every column type, old servers. `partial`: differences of JSON
//! documents. `hostile`: bytes that no server writes.

use std::borrow::ToOwned;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::binlog::table_map::{TableMaps, parse_table_map};
use crate::value::charset::Charset;
use crate::value::{Text, Value, ValueFault};

mod hostile;
mod partial;
mod reference;
mod types;

macro_rules! case {
    ($name:literal) => {
        include_bytes!(concat!("../../../../../tests/fixtures/cases/", $name, ".binlog")).as_slice()
    };
}

const ALL: [(&str, &[u8]); 17] = [
    ("BL-01", case!("BL-01")),
    ("BL-03", case!("BL-03")),
    ("BL-05", case!("BL-05")),
    ("BL-07", case!("BL-07")),
    ("BL-09", case!("BL-09")),
    ("BL-11", case!("BL-11")),
    ("BL-13", case!("BL-13")),
    ("BL-15", case!("BL-15")),
    ("BL-21", case!("BL-21")),
    ("BL-29", case!("BL-29")),
    ("BL-43", case!("BL-43")),
    ("BL-47", case!("BL-47")),
    ("BL-53", case!("BL-53")),
    ("types", TYPES),
    ("old-temporals", include_bytes!("../../../../../tests/fixtures/types/old-temporals.binlog")),
    ("old-varchar", include_bytes!("../../../../../tests/fixtures/types/old-varchar.binlog")),
    ("mysql56", include_bytes!("../../../../../tests/fixtures/types/mysql56.binlog")),
];

const TYPES: &[u8] = include_bytes!("../../../../../tests/fixtures/types/types.binlog");

fn file(name: &str) -> &'static [u8] {
    ALL.iter().find(|(n, _)| *n == name).map(|(_, bytes)| *bytes).expect("a case of that name")
}

/// Type codes and bodies of a file's events: 4 bytes of magic, then a 19-byte header, the body and a
/// 4-byte checksum each.
fn events(file: &[u8]) -> Vec<(u8, Bytes)> {
    let mut rest = &file[4..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let size = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        events.push((rest[4], Bytes::copy_from_slice(&rest[19..size - 4])));
        rest = &rest[size..];
    }
    events
}

/// The row events of a file, with their tables.
fn rows_of(file: &[u8]) -> Vec<Result<RowsEvent, RowsError>> {
    let mut maps = TableMaps::new();
    let mut rows = Vec::new();
    for (type_code, body) in events(file) {
        if type_code == 19 {
            maps.open(&body).unwrap();
        } else if RowsKind::of(type_code).is_some() {
            let head = RowsHead::parse(type_code, &body).unwrap();
            let table = Arc::clone(maps.get(head.table_id).unwrap());
            rows.push(RowsEvent::new(head, table, body));
            if head.ends_statement() {
                maps.close_all();
            }
        }
    }
    rows
}

/// A value as `SELECT` shows it; binary strings in hexadecimal, NULL as `NULL`, what is absent as `-`.
fn shown(value: Value<'_>) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02X}")).collect::<String>();
    let text = |t: Text<'_>| t.to_str().map_or_else(|e| format!("<{e}>"), |t| t.into_owned());
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Absent => "-".to_owned(),
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Float(n) => f64::from(n).to_string(),
        Value::Double(n) => n.to_string(),
        Value::Decimal(d) => d.to_string(),
        Value::Bit(b) => b.value().to_string(),
        Value::Year(y) => format!("{y:04}"),
        Value::Date(d) => d.to_string(),
        Value::Time(t) => t.to_string(),
        Value::DateTime(t) => t.to_string(),
        Value::Timestamp(t) => t.to_string(),
        Value::Text(t) => text(t),
        Value::Binary(b) => hex(&b.to_bytes()),
        Value::Blob(b) => hex(b),
        Value::Enum(e) => match e.label() {
            Some(label) if label.charset() == Some(Charset::Binary) => {
                format!("{}:{}", e.index(), hex(label.as_bytes()))
            }
            Some(label) => format!("{}:{}", e.index(), text(label)),
            None => e.index().to_string(),
        },
        Value::Set(s) if s.labels().is_none() => s.bits().to_string(),
        Value::Set(s) => s.to_str().map_or_else(|e| format!("<{e}>"), |t| t.into_owned()),
        Value::Json(j) => {
            let mut text = String::new();
            j.write_text(&mut text).map_or_else(|e| format!("<{e}>"), |()| text)
        }
        Value::Geometry(g) => format!("SRID {} {}", g.srid(), hex(g.wkb())),
        Value::Vector(v) => {
            assert_eq!(v.iter().flat_map(f32::to_le_bytes).collect::<Vec<_>>(), v.as_bytes());
            hex(v.as_bytes())
        }
    }
}

fn row_text(row: Row<'_>) -> String {
    let values: Vec<_> = row.values().map(|v| shown(v.unwrap().1)).collect();
    // The three ways to a value agree.
    let mut visited = Vec::new();
    row.each(|_, value| visited.push(shown(value))).unwrap();
    assert_eq!(visited, values);
    for (index, value) in values.iter().enumerate() {
        assert_eq!(shown(row.get(index).unwrap()), *value);
        assert_eq!(row.raw(index).is_none(), row.is_null(index) || !row.is_present(index));
    }
    assert_eq!(row.get(row.len()).unwrap_err().reason, ValueFault::NoSuchColumn);
    values.join(" | ")
}

/// Every change of a file as `op table: before -> after`.
fn changes(name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut scratch = RowScratch::new();
    for event in rows_of(file(name)) {
        let event = event.unwrap();
        let expected = event.validate().unwrap();
        let table = format!("{}.{}", event.table().schema(), event.table().table());
        let table = table.split_once('.').map(|(_, t)| t).unwrap();
        let mut found = 0;
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next().unwrap() {
            found += 1;
            lines.push(match change {
                ChangeRow::Insert { after } => format!("insert {table}: {}", row_text(after)),
                ChangeRow::Delete { before } => format!("delete {table}: {}", row_text(before)),
                ChangeRow::Update { before, after } => {
                    format!("update {table}: {} -> {}", row_text(before), row_text(after))
                }
            });
        }
        assert_eq!(found, expected, "{name}: validate counts what the cursor walks");
    }
    lines
}

#[test]
fn negative_times_keep_their_sign_and_their_fraction() {
    assert_eq!(
        changes("BL-01"),
        [
            "insert t: 1 | -16:08:04 | -16:08:04.2 | -16:08:04.25 | -16:08:04.250 | -16:08:04.2501 | -16:08:04.010123",
            "insert t: 2 | -00:00:01 | -00:00:00.1 | -00:00:00.01 | -00:00:00.001 | -00:00:00.0001 | -00:00:00.000001",
            "insert t: 3 | -838:59:59 | -838:59:58.9 | -838:59:58.99 | -838:59:58.999 | -838:59:58.9999 | -838:59:58.999999",
            "insert t: 4 | 838:59:59 | 838:59:58.9 | 838:59:58.99 | 838:59:58.999 | 838:59:58.9999 | 838:59:58.999999",
            "insert t: 5 | 00:00:00 | 00:00:00.0 | 00:00:00.00 | 00:00:00.000 | 00:00:00.0000 | 00:00:00.000000",
        ]
    );
}

#[test]
fn zero_timestamps_are_zero_and_not_the_epoch() {
    let zero = "0000-00-00 00:00:00.000000";
    assert_eq!(
        changes("BL-03"),
        [
            format!("insert t: 1 | {zero} | {zero} | 2024-02-29 23:59:59.999999"),
            "insert t: 2 | 1970-01-01 00:00:01.000001 | 1000-01-01 00:00:00.000000 | 9999-12-31 23:59:59.999999".to_owned(),
            format!("insert t: 3 | 2038-01-19 03:14:07.499999 | 2024-12-31 00:00:00.500000 | {zero}"),
            "insert t: 4 | NULL | NULL | NULL".to_owned(),
        ]
    );
}

#[test]
fn bits_are_unsigned_and_big_endian() {
    assert_eq!(
        changes("BL-05"),
        [
            "insert t: 1 | 1 | 2049 | 9223372036854775809",
            "insert t: 2 | 0 | 240 | 72623859790382856",
            "insert t: 3 | 1 | 4095 | 18446744073709551615",
        ]
    );
}

#[test]
fn enum_indexes_above_127_and_255_and_the_error_value() {
    assert_eq!(
        changes("BL-07"),
        [
            "insert t: 1 | 256:e256 | 200:f200",
            "insert t: 2 | 300:e300 | 128:f128",
            "insert t: 3 | 255:e255 | 127:f127",
            "insert t: 4 | 0: | 0:",
        ]
    );
}

#[test]
fn signs_are_counted_over_the_numbers() {
    assert_eq!(
        changes("BL-09"),
        [
            "insert t: 255 | 2024 | 65535 | 999.9 | 16777215 | 1.5 | 4294967295 | -1 | 18446744073709551615 | -1",
            "insert t: 200 | 2155 | 40000 | 0.0 | 8388608 | 0 | 2147483648 | -2147483648 | 9223372036854775808 | -9223372036854775808",
        ]
    );
}

#[test]
fn absent_columns_are_absent_and_null_ones_null() {
    let absent = |n: usize| ["-"].repeat(n).join(" | ");
    assert_eq!(
        changes("BL-11"),
        [
            format!("insert t: 1 | {} | 17", absent(16)),
            format!("insert t: 2 | {} | NULL", absent(16)),
            format!("insert t: 3 | {} | 9", ["NULL"].repeat(16).join(" | ")),
            format!("update t: 1 | {} -> {} | 9 | {} | NULL | -", absent(17), absent(9), absent(6)),
            format!(
                "update t: 2 | {} -> - | 1 | 2 | 3 | 4 | NULL | 6 | 7 | 8 | NULL | {}",
                absent(17),
                absent(8)
            ),
            format!("delete t: 1 | {}", absent(17)),
        ]
    );
    let full: Vec<_> = rows_of(file("BL-11")).into_iter().map(|e| e.unwrap().is_full()).collect();
    assert_eq!(full, [false, true, false, false, false]);
}

#[test]
fn binary_is_padded_back_and_char_is_not() {
    assert_eq!(
        changes("BL-13"),
        [
            "insert t: 01020000 | AB00000000000000 | AB0000 | ab | é",
            "insert t: 00000000 | 0000000000000000 |  |  | ",
            "insert t: 20202020 | 2020000000000000 | 2020 |  | ",
            "insert p: 1 | - | -",
            "delete p: 1 |  | 00000000",
        ]
    );
}

#[test]
fn long_metadata_vectors_points_and_three_hundred_columns() {
    let point = "SRID 0 0101000000000000000000F03F0000000000000040";
    let nulls = |n: usize| ["NULL"].repeat(n).join(" | ");
    assert_eq!(
        changes("BL-15"),
        [
            format!("insert t: 1 | {} | 7 | 6666863F66668EC100000042 | {point}", nulls(7)),
            format!("insert m: 1 | a | {} | b", nulls(297)),
        ]
    );
    let tables: Vec<_> = rows_of(file("BL-15")).into_iter().map(|e| e.unwrap().table().clone()).collect();
    let t = tables[0].columns();
    assert_eq!(t[7].name.len(), 63);
    assert!(t[7].name.starts_with("c007_xxx"));
    let hidden: Vec<_> = t.iter().filter(|c| !c.visible).map(|c| c.name.as_str()).collect();
    assert_eq!(hidden, ["hid"]);
    let types: Vec<_> = t.iter().skip(7).map(|c| c.column_type.type_name().to_string()).collect();
    assert_eq!(types, ["int", "int", "vector(3)", "point"]);
    // Four character sets in turn: utf8mb4, binary, ascii, latin1.
    let m = tables[1].columns();
    let types: Vec<_> = m[1..5].iter().map(|c| c.column_type.type_name().to_string()).collect();
    assert_eq!(types, ["varchar(20)", "varbinary(5)", "varchar(5)", "varchar(5)"]);
    for (n, column) in m.iter().enumerate().skip(1) {
        let collation = [Some(255), Some(63), Some(11), Some(8)][(n - 1) % 4];
        assert_eq!(column.column_type.collation(), collation, "c{n}");
    }
}

#[test]
fn the_rows_among_statement_logged_changes() {
    assert_eq!(changes("BL-29"), ["insert t: 1 | 1", "insert t: 3 | 6"]);
}

#[test]
fn a_renamed_table_brings_its_own_columns() {
    assert_eq!(
        changes("BL-43"),
        [
            "insert t: 1 | one | 1",
            "insert _t_new: 1 | 1 | one | NULL",
            "insert t: 2 | 2 | two | 2024-01-01 00:00:00",
            "update _t_old: 1 | one | 1 -> 1 | one | 100",
            "insert t: 3 | 3 | three | NULL",
        ]
    );
}

#[test]
fn only_the_parent_is_logged_under_native_foreign_keys() {
    assert_eq!(
        changes("BL-47"),
        [
            "insert p: 1",
            "insert p: 2",
            "insert c: 10 | 1",
            "insert c: 20 | 2",
            "insert g: 100 | 10",
            "insert g: 200 | 20",
            "update p: 2 -> 3",
            "delete p: 1",
            "delete p: 3",
        ]
    );
}

#[test]
fn upserts_and_replaces_in_their_order() {
    assert_eq!(
        changes("BL-53"),
        [
            "insert t: 1 | 10 | 0",
            "insert t: 2 | 20 | 0",
            "update t: 1 | 10 | 0 -> 1 | 10 | 1",
            "insert t: 3 | 30 | 5",
            "update t: 2 | 20 | 0 -> 2 | 20 | 1",
            "delete t: 1 | 10 | 1",
            "update t: 2 | 20 | 1 -> 1 | 20 | 7",
            "insert t: 5 | 50 | 7",
            "update t: 5 | 50 | 7 -> 6 | 50 | 7",
        ]
    );
}
