//! Files that a real server wrote, as text; what is expected comes from the statements and from what
//! `SELECT` gave for them.

use std::borrow::ToOwned;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use bytes::Bytes;

use super::*;
use crate::binlog::rows::{ChangeRow, RowScratch, RowsEvent, RowsHead, RowsKind, VisitError};
use crate::binlog::table_map::TableMaps;
use crate::gtid::{Gtid, GtidSet};
use crate::sql::{DdlKind, RowsEffect};
use crate::time::SourceTime;
use crate::value::json::JsonError;
use crate::value::{Bit, Column, ColumnType, Decimal, Json, TableVersion, Value, ValueError, ValueFault};

const NUMBERS: TextOptions = TextOptions { bigint: Bigint::Number };
const STRINGS: TextOptions = TextOptions { bigint: Bigint::String };

const EVERY_TYPE: &[u8] = include_bytes!("../../../tests/fixtures/text/every-type.binlog");
const BL_11: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-11.binlog");
const BL_17: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-17.binlog");
const BL_19: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-19.binlog");

/// Every column type at an end of its range, with names and text that need escapes.
#[test]
fn every_type_has_its_text() {
    let lines = changes(EVERY_TYPE, NUMBERS);
    let want = [
        r#""i8":-128,"u8":255,"i16":-32768,"i24":-8388608,"i32":-2147483648"#,
        r#""i64":-9223372036854775808,"u64":18446744073709551615,"f":0.1,"d":0.1"#,
        r#""n":"-12345678901234567890123456789012345.123456789012345678901234567890","n2":"-0.05""#,
        r#""b1":1,"b53":9007199254740991,"b64":18446744073709551615,"y":2155"#,
        r#""dt":"9999-12-31","t0":"-838:59:59","t6":"-00:00:00.000001","dt0":"1000-01-01 00:00:00""#,
        r#""dt3":"9999-12-31 23:59:59.999","ts0":"2038-01-19 03:14:07","ts6":"1970-01-01 00:00:01.000001""#,
        r#""c":"ab","v":"\"\\\u0000\né😀","l":"é€","s":"ソ表","tx":"ttt""#,
        r#""bin":"AQAAAA==","vb":"AP8=","bl":"3q2+7wA=""#,
        r#""e":"é\"","st":"x,ü","st64":"0,63""#,
        r#""j":{"k": [1, 1.0, 1e15, "a\"", null, true]}"#,
        // SRID 4326, little-endian point 1 2 as the server stores it: longitude, latitude.
        r#""g":"5hAAAAEBAAAAAAAAAAAAAEAAAAAAAADwPw==","ve":"AADAPwAAAMA=","odd \"name\"":1"#,
    ];
    let want =
        format!(r#"{{"op":"insert","schema":"text","table":"every_type","after":{{{}}}}}"#, want.join(","));
    assert_eq!(lines[0], want);
}

#[test]
fn zeros_stay_zeros_and_the_error_value_of_an_enum_is_empty() {
    let lines = changes(EVERY_TYPE, NUMBERS);
    let want = [
        r#""i8":0,"u8":0,"i16":0,"i24":0,"i32":0,"i64":0,"u64":0,"f":0.0,"d":-0.0"#,
        r#""n":"0.000000000000000000000000000000","n2":"0.00","b1":0,"b53":0,"b64":0,"y":0"#,
        r#""dt":"0000-00-00","t0":"00:00:00","t6":"00:00:00.000000","dt0":"0000-00-00 00:00:00""#,
        r#""dt3":"2023-00-15 00:00:00.000","ts0":"0000-00-00 00:00:00","ts6":"0000-00-00 00:00:00.000000""#,
        r#""c":"","v":"","l":"","s":"","tx":"","bin":"AAAAAA==","vb":"","bl":"","e":"","st":"","st64":"""#,
        r#""j":null,"g":null,"ve":null,"odd \"name\"":null"#,
    ];
    assert!(lines[1].ends_with(&format!(r#""after":{{{}}}}}"#, want.join(","))), "{}", lines[1]);
}

#[test]
fn floats_and_doubles_are_the_shortest_that_read_back() {
    let lines = changes(EVERY_TYPE, NUMBERS);
    for (line, want) in lines[2..7].iter().zip([
        r#""f":3.4028235e38,"d":1.7976931348623157e308"#,
        r#""f":1.1754944e-38,"d":5e-324"#,
        r#""f":16777216.0,"d":1e15"#,
        r#""f":0.0000001,"d":0.0000001"#,
        r#""f":-15000000000.0,"d":1.2345678901234568e17"#,
    ]) {
        assert!(line.contains(want), "{line}");
    }
}

#[test]
fn text_that_is_none_in_its_character_set_keeps_its_bytes() {
    let lines = changes(EVERY_TYPE, NUMBERS);
    // sjis 8740 has no character in MySQL; latin1 81 is U+0081.
    assert!(lines[7].contains(r#""l":""#) && lines[7].contains('\u{81}'), "{}", lines[7]);
    assert!(lines[7].contains(r#""s":{"base64":"h0A="}"#), "{}", lines[7]);
}

#[test]
fn an_update_has_both_images_and_a_delete_the_one_before() {
    let lines = changes(EVERY_TYPE, NUMBERS);
    let update = &lines[8];
    assert!(
        update.starts_with(r#"{"op":"update","schema":"text","table":"every_type","before":{"i8":0,"#),
        "{update}"
    );
    let (before, after) = update.split_once(r#","after":"#).unwrap();
    assert!(before.contains(r#""i32":0,"#) && before.contains(r#""v":"""#), "{before}");
    assert!(after.contains(r#""i32":7,"#) && after.contains(r#""v":null"#), "{after}");
    let delete = &lines[9];
    assert!(delete.starts_with(r#"{"op":"delete""#) && delete.contains(r#""before":{"#), "{delete}");
    assert!(!delete.contains(r#""after""#) && !lines[0].contains(r#""before""#), "{delete}");
}

#[test]
fn every_line_is_json() {
    for file in [EVERY_TYPE, BL_11, BL_17, BL_19] {
        for options in [NUMBERS, STRINGS] {
            for line in changes(file, options) {
                let read: Result<serde_json::Value, _> = serde_json::from_str(&line);
                assert!(read.is_ok() && !line.contains('\n'), "{line}");
            }
        }
    }
}

#[test]
fn numbers_that_doubles_cannot_hold_are_strings_where_asked() {
    let line = &changes(EVERY_TYPE, STRINGS)[0];
    for want in [
        r#""i64":"-9223372036854775808","u64":"18446744073709551615""#,
        r#""b53":9007199254740991,"b64":"18446744073709551615""#,
        r#""i32":-2147483648"#,
        r#""j":{"k": [1,"#,
    ] {
        assert!(line.contains(want), "{line}");
    }
    // A double holds 53 bits.
    for (bits, want) in [(53, "7"), (54, "\"7\"")] {
        let column = column(ColumnType::Bit { bits });
        let mut out = String::new();
        write_value(&mut out, &column, Value::Bit(Bit::new(7, bits).unwrap()), STRINGS).unwrap();
        assert_eq!(out, want);
    }
    // The type decides, not the value, so a column does not change its JSON type from row to row.
    assert!(changes(EVERY_TYPE, STRINGS)[1].contains(r#""i64":"0","u64":"0""#));
}

/// BL-11: MINIMAL images hold few columns, and one of them NULL.
#[test]
fn columns_that_are_absent_are_left_out() {
    let lines = changes(BL_11, NUMBERS);
    assert!(lines[0].ends_with(r#""after":{"id":1,"c17":17}}"#), "{}", lines[0]);
    assert!(lines[1].ends_with(r#""after":{"id":2,"c17":null}}"#), "{}", lines[1]);
    let changed = lines[3..].iter().find(|line| line.contains(r#""c16""#)).unwrap();
    assert!(changed.ends_with(r#""before":{"id":1},"after":{"c09":9,"c16":null}}"#), "{changed}");
    let deleted = lines.last().unwrap();
    assert!(deleted.ends_with(r#""op":"delete","schema":"b11","table":"t","before":{"id":1}}"#), "{deleted}");
}

/// BL-17 and BL-19: opaque values, and holes from in-place updates.
#[test]
fn json_columns_are_embedded_in_the_servers_text() {
    let all = changes(BL_17, NUMBERS).join("\n") + &changes(BL_19, NUMBERS).join("\n");
    for want in [
        r#""j":{"d": "2024-02-29", "t": "-16:08:04.010123", "dt": "2024-02-29 23:59:59.999999", "dec": -12345678901234567890.0123456789}"#,
        r#""j":["base64:type15:Cg==", "base64:type15:3q2+7w==", "base64:type15:YQ=="]"#,
        r#""j":["00:00:00.000000", "838:59:59.000000", 0]"#,
        r#""j":["0000-00-00", "2023-00-15", "0000-00-00 00:00:00.000000"]"#,
        r#""after":{"id":1,"j":{"b": "y", "c": [1, "q", 3], "dup": "2"}}"#,
    ] {
        assert!(all.contains(want), "{want}");
    }
}

#[test]
fn a_transaction_of_any_size_is_one_line() {
    let gtid: Gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23".parse().unwrap();
    let mut out = String::new();
    let mut line = TransactionLine::begin(&mut out, Some(&gtid), Some(SourceTime(1_795_953_600_123_456)));
    each(BL_11, |before, after| line.change(&mut out, before, after, NUMBERS).unwrap());
    line.end(&mut out);
    let head = r#"{"kind":"transaction","gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:23","committed_at":"2026-11-29T12:00:00.123456Z","changes":["#;
    assert_eq!(out, format!("{head}{}]}}\n", changes(BL_11, NUMBERS).join(",")));

    let mut out = String::new();
    TransactionLine::begin(&mut out, None, None).end(&mut out);
    assert_eq!(out, "{\"kind\":\"transaction\",\"gtid\":null,\"committed_at\":null,\"changes\":[]}\n");
}

#[test]
fn schema_changes_say_kind_tables_rows_and_statement() {
    let tables = [("d".to_owned(), "a\"b".to_owned()), ("e".to_owned(), String::new())];
    let change = SchemaChangeText {
        kind: DdlKind::CreateTableSelect,
        tables: &tables,
        rows: RowsEffect::ChangedWithoutRowEvents,
        statement: "CREATE TABLE `a\"b`\nAS SELECT 1",
    };
    let body = r#""change":"create_table_select","tables":[{"schema":"d","table":"a\"b"},{"schema":"e","table":null}],"rows":"changed_without_row_events","statement":"CREATE TABLE `a\"b`\nAS SELECT 1"}"#;

    let mut out = String::new();
    write_schema_change(&mut out, None, Some(SourceTime(0)), &change);
    let head = r#"{"kind":"schema_change","gtid":null,"committed_at":"1970-01-01T00:00:00.000000Z","#;
    assert_eq!(out, format!("{head}{body}\n"));

    let mut out = String::new();
    let mut line = TransactionLine::begin(&mut out, None, None);
    line.schema_change(&mut out, &change);
    line.schema_change(&mut out, &change);
    line.end(&mut out);
    assert!(
        out.ends_with(&format!("[{{\"op\":\"schema_change\",{body},{{\"op\":\"schema_change\",{body}]}}\n")),
        "{out}"
    );
    assert!(!format!("{change:?}").contains("SELECT"), "no statement in Debug");
}

#[test]
fn progress_is_the_set_of_processed_transactions() {
    let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7".parse().unwrap();
    let mut out = String::new();
    write_progress(&mut out, &set);
    assert_eq!(out, "{\"kind\":\"progress\",\"gtid_set\":\"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7\"}\n");
}

#[test]
fn a_chunk_of_a_snapshot_is_one_line() {
    let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse().unwrap();
    let mut out = String::new();
    let mut line = None;
    each(BL_11, |_, after| {
        let Some(row) = after else { return };
        let line = line.get_or_insert_with(|| SnapshotLine::begin(&mut out, row.table(), 3, &set, true));
        line.row(&mut out, row.values(), NUMBERS).unwrap();
    });
    line.unwrap().end(&mut out);
    let read: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((read["chunk"].as_u64(), read["last"].as_bool()), (Some(3), Some(true)));
    assert_eq!(read["table"], "t");
    assert_eq!(read["gtid_set"], set.to_string());
    assert_eq!(read["rows"].as_array().map(Vec::len), Some(5));
    assert_eq!(read["rows"][0]["c17"], 17);
    assert!(out.ends_with("]}\n"));
}

#[test]
fn a_malformed_value_leaves_no_half_of_it() {
    let json = column(ColumnType::Json);
    let cut = [0x02, 0x02, 0x00, 0x0a, 0x00, 0x05, 0x01, 0x00, 0x0c, 0xff, 0x00];
    let bad = Value::Json(Json::new(&cut));
    let mut out = "before".to_owned();
    let why = Err(ValueFault::Json(JsonError::Offset));
    assert_eq!(write_value(&mut out, &json, bad, NUMBERS), why);
    let values = vec![Ok((&json, Value::Null)), Ok((&json, bad))];
    let found = write_image(&mut out, values.into_iter(), NUMBERS);
    assert_eq!(found, Err(ValueError { column: 1, reason: ValueFault::Json(JsonError::Offset) }));

    let double = column(ColumnType::Double { unsigned: false });
    for value in [Value::Double(f64::NAN), Value::Float(f32::INFINITY)] {
        assert_eq!(write_value(&mut out, &double, value, NUMBERS), Err(ValueFault::NotFinite));
    }
    assert_eq!(out, "before");
    assert_eq!(write_value(&mut out, &double, Value::Absent, NUMBERS), Ok(()));
    assert_eq!(out, "before");
    let decimal = Value::Decimal(Decimal::new(&[0x80], 1, 0).unwrap());
    write_value(&mut out, &double, decimal, NUMBERS).unwrap();
    assert_eq!(out, "before\"0\"");
}

/// A row whose JSON document turns out malformed (BL-19 with another size in its first document) leaves
/// the line as it was before the row, comma and all.
#[test]
fn a_malformed_row_leaves_the_line_as_it_was() {
    let mut file = BL_19.to_vec();
    let size = file.windows(4).position(|bytes| bytes == [0x55, 0x00, 0x20, 0x00]).unwrap();
    file[size] = 0xff;
    let mut failed = 0;
    each(&file, |before, after| {
        let mut out = String::new();
        let mut line = TransactionLine::begin(&mut out, None, None);
        each(BL_11, |before, after| line.change(&mut out, before, after, NUMBERS).unwrap());
        let whole = out.clone();
        if let Err(why) = line.change(&mut out, before, after, NUMBERS) {
            failed += 1;
            assert_eq!(why, ValueError { column: 1, reason: ValueFault::Json(JsonError::Short) });
            assert_eq!(out, whole);
            assert_eq!(write_change(&mut out, before, after, NUMBERS), Err(why));
            assert_eq!(out, whole);

            let set = GtidSet::default();
            let row = after.unwrap();
            let mut out = String::new();
            let mut line = SnapshotLine::begin(&mut out, row.table(), 0, &set, false);
            let id = || row.values().take(1);
            line.row(&mut out, id(), NUMBERS).unwrap();
            let whole = out.clone();
            assert_eq!(line.row(&mut out, row.values(), NUMBERS), Err(why));
            assert_eq!(out, whole);
            line.row(&mut out, id(), NUMBERS).unwrap();
            line.end(&mut out);
            assert!(out.ends_with("\"rows\":[{\"id\":1},{\"id\":1}]}\n"), "{out}");
        }
    });
    assert_eq!(failed, 1);
}

fn column(column_type: ColumnType) -> Column {
    Column { name: "c".to_owned(), column_type, nullable: true, visible: true }
}

fn changes(file: &[u8], options: TextOptions) -> Vec<String> {
    let mut lines = Vec::new();
    each(file, |before, after| {
        let mut out = String::new();
        write_change(&mut out, before, after, options).unwrap();
        lines.push(out);
    });
    lines
}

/// Calls `visit` with the images of every change in a file: 4 bytes of magic, then events of a 19-byte
/// header, a body and a 4-byte checksum each.
fn each(
    file: &[u8],
    mut visit: impl FnMut(Option<crate::binlog::rows::Row<'_>>, Option<crate::binlog::rows::Row<'_>>),
) {
    let mut scratch = RowScratch::new();
    events(file, |event| {
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next().unwrap() {
            let change: ChangeRow<'_> = change;
            visit(change.before(), change.after());
        }
    });
}

fn events(file: &[u8], mut visit: impl FnMut(&RowsEvent)) {
    bodies(file, |head, body, table| {
        visit(&RowsEvent::new(head, Arc::clone(table), Bytes::copy_from_slice(body)).unwrap());
    });
}

fn bodies(file: &[u8], mut visit: impl FnMut(RowsHead, &[u8], &Arc<TableVersion>)) {
    let mut maps = TableMaps::new();
    let mut rest = &file[4..];
    while !rest.is_empty() {
        let size = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        let (type_code, body) = (rest[4], &rest[19..size - 4]);
        rest = &rest[size..];
        if type_code == 19 {
            maps.open(body).unwrap();
        } else if RowsKind::of(type_code).is_some() {
            let head = RowsHead::parse(type_code, body).unwrap();
            visit(head, body, maps.get(head.table_id).unwrap());
        }
    }
}

/// The changes of an event at once are those one by one.
#[test]
fn an_event_at_once() {
    for file in [EVERY_TYPE, BL_11, BL_17, BL_19] {
        for options in [NUMBERS, STRINGS] {
            let (mut at_once, mut one_by_one) = (String::new(), String::new());
            let mut line = TransactionLine::begin(&mut at_once, None, None);
            let mut other = TransactionLine::begin(&mut one_by_one, None, None);
            events(file, |event| line.rows(&mut at_once, event, options).unwrap());
            each(file, |before, after| other.change(&mut one_by_one, before, after, options).unwrap());
            line.end(&mut at_once);
            other.end(&mut one_by_one);
            assert_eq!(at_once, one_by_one);
        }
    }
}

/// An event with a row that does not lie in it, or a value that no server stores, leaves no text behind; any other is
/// written as its values are one by one, whichever of its texts is none.
#[test]
fn half_an_event_is_no_text() {
    let (mut of_rows, mut of_values, mut not_text) = (0, 0, 0);
    for file in [EVERY_TYPE, BL_11, BL_19] {
        bodies(file, |head, body, table| {
            for at in 12..body.len() {
                let mut body = body.to_vec();
                body[at] ^= 0xff;
                let Ok(event) = RowsEvent::new(head, Arc::clone(table), body.into()) else { continue };
                let mut out = String::from("before");
                let mut line = TransactionLine { first: false };
                match line.rows(&mut out, &event, NUMBERS) {
                    Ok(()) => {
                        assert_eq!(out, format!("before,{}", by_values(&event)));
                        not_text += u64::from(out.contains("base64"));
                    }
                    Err(why) => {
                        assert_eq!(out, "before");
                        match why {
                            VisitError::Rows(_) => of_rows += 1,
                            VisitError::Value(_) => of_values += 1,
                        }
                    }
                }
            }
        });
    }
    assert!(of_rows > 0 && of_values > 0 && not_text > 0, "{of_rows} {of_values} {not_text}");
}

/// The changes of an event, value by value.
fn by_values(event: &RowsEvent) -> String {
    let mut changes = Vec::new();
    let mut scratch = RowScratch::new();
    let mut rows = event.cursor(&mut scratch);
    while let Some(change) = rows.next().unwrap() {
        let mut images = Vec::new();
        for row in [change.before(), change.after()].into_iter().flatten() {
            images.push(String::new());
            write_image(images.last_mut().unwrap(), row.values(), NUMBERS).unwrap();
        }
        let head = event.table().json_head(event.kind(), true);
        changes.push(format!("{head}{}}}", images.join(",\"after\":")));
    }
    changes.join(",")
}
