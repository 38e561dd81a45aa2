//! Rows and documents that a server wrote, read into types.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ::serde::Deserialize;

use super::*;
use crate::binlog::FileReader;
use crate::binlog::rows::{Row, RowScratch, RowsEvent, RowsHead, RowsKind};
use crate::binlog::table_map::TableMaps;
use crate::value::TableVersion;
use crate::value::json::Json;

macro_rules! captured {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/", $name, ".binlog")).as_slice()
    };
}

/// Calls `visit` with each row after a change.
fn each_after(file: &[u8], visit: impl FnMut(Row<'_>)) {
    each_after_of(file, |_| true, visit);
}

/// The same, with the columns left out that `captured` refuses.
fn each_after_of(file: &[u8], captured: fn(&str) -> bool, mut visit: impl FnMut(Row<'_>)) {
    let mut reader = FileReader::new(1 << 30);
    reader.feed(file);
    let (mut maps, mut scratch) = (TableMaps::new(), RowScratch::new());
    while let Some((_, event)) = reader.next_event().unwrap() {
        let type_code = event.header.event_type.code();
        if type_code == 19 {
            maps.open_with(&event.body, |version: &mut TableVersion| version.leave_out(captured)).unwrap();
        } else if RowsKind::of(type_code).is_some() {
            let head = RowsHead::parse(type_code, &event.body).unwrap();
            let table = Arc::clone(maps.get(head.table_id).unwrap());
            let Ok(event) = RowsEvent::new(head, table, event.body) else { continue };
            let mut cursor = event.cursor(&mut scratch);
            while let Some(change) = cursor.next().unwrap() {
                if let Some(after) = change.after() {
                    visit(after);
                }
            }
        }
    }
}

#[derive(Debug, Deserialize, PartialEq)]
struct Deep<'a> {
    z: i64,
    #[serde(borrow)]
    deep: Option<(&'a str, BTreeMap<String, Vec<i64>>)>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Document<'a> {
    n: u64,
    name: &'a str,
    a: Vec<i64>,
    o: Deep<'a>,
    #[serde(rename = "ключ")]
    key: u8,
}

#[derive(Debug, Deserialize)]
struct Typed<'a> {
    id: u64,
    #[serde(borrow)]
    j: Option<Document<'a>>,
    c: Option<i32>,
    name: Option<&'a str>,
}

#[test]
fn a_row_becomes_a_struct_with_its_documents_and_nulls() {
    let (mut reader, mut seen) = (RowReader::new(), 0);
    each_after(captured!("captured/partial-json-whole"), |row| {
        if row.table().table() != "t" {
            return;
        }
        // Rows that the script gave another shape are refused by name, all others are read.
        match reader.read::<Typed<'_>>(row) {
            Ok(typed) if typed.id == 13 => {
                let j = typed.j.unwrap();
                assert_eq!((j.n, j.name, j.key, typed.name), (1, "n13", 1, Some("n13")));
                assert_eq!((j.a, j.o.z), ([1, 2, 3].into(), 70_000));
                let (word, map) = j.o.deep.unwrap();
                assert_eq!((word, &map["q"][..]), ("p", &[0][..]));
                seen |= 1;
            }
            Ok(typed) if typed.id == 12 && typed.j.is_none() => {
                assert!(typed.name.is_none() && typed.c.is_some());
                seen |= 2;
            }
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.column.as_deref(), Some("j"), "{error}");
                seen |= 4;
            }
        }
    });
    assert_eq!(seen, 7);
}

/// Column `name` of the `nth` row that has one, as a `T`.
fn column<T: for<'de> Deserialize<'de>>(file: &[u8], name: &str, nth: usize) -> Result<T, ReadFault> {
    let (mut rows, mut at) = (Vec::new(), 0);
    each_after(file, |row| {
        let Some(index) = row.table().column_index(name) else { return };
        if at == nth {
            rows.push(super::row::read_column(row, index, core::marker::PhantomData::<T>));
        }
        at += 1;
    });
    rows.remove(0).map_err(|error| {
        assert_eq!(error.column.as_deref(), Some(name));
        error.reason
    })
}

/// Bytes, as `serde_bytes` asks for them.
#[derive(Debug, PartialEq)]
struct Raw(Vec<u8>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl ::serde::de::Visitor<'_> for Bytes {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Raw, E> {
                Ok(Raw(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[derive(Debug, Deserialize, PartialEq)]
enum Letter {
    #[serde(rename = "a")]
    A,
    #[serde(rename = "B c")]
    B,
}

#[test]
fn each_type_becomes_what_the_table_of_the_module_says() {
    let bl_01 = captured!("cases/BL-01");
    assert_eq!(column(bl_01, "id", 2), Ok(3_u8));
    assert_eq!(column(bl_01, "id", 0), Ok(true));
    assert_eq!(column::<bool>(bl_01, "id", 2), Err(ReadFault::Range));
    assert_eq!(column(bl_01, "id", 2), Ok(Some(3_i128)));
    assert_eq!(column::<String>(bl_01, "id", 2), Err(ReadFault::Type));
    assert_eq!(column::<(u8, u8)>(bl_01, "id", 2), Err(ReadFault::Type));

    let integers = captured!("captured/types-integer");
    assert_eq!(column(integers, "bu", 1), Ok(u64::MAX));
    assert_eq!(column::<i64>(integers, "bu", 1), Err(ReadFault::Range));
    assert_eq!(column::<u64>(integers, "bi", 0), Err(ReadFault::Range));
    assert_eq!((column(integers, "y", 0), column(integers, "y", 1)), (Ok(0_u16), Ok(2155_u16)));
    assert_eq!((column(integers, "b", 0), column(integers, "b", 1)), (Ok(false), Ok(true)));
    let floats = captured!("captured/types-float");
    assert_eq!((column(floats, "f", 2), column(floats, "d", 2)), (Ok(f32::MAX), Ok(f64::MAX)));

    let sets = captured!("captured/types-enum-set");
    assert_eq!((column(sets, "e2", 0), column(sets, "e2", 1)), (Ok(Letter::A), Ok(Letter::B)));
    assert_eq!(column(sets, "e2", 1), Ok(String::from("B c")));
    // The error value 0 is the empty label.
    assert_eq!(column(sets, "e2", 2), Ok(String::new()));
    assert_eq!(column::<Letter>(sets, "e2", 2), Err(ReadFault::Variant));
    assert_eq!(column(sets, "e2", 3), Ok(None::<Letter>));
    assert_eq!(column::<Letter>(sets, "e2", 3), Err(ReadFault::Null));
    assert_eq!(column(sets, "en", 1), Ok(String::from("\u{ff}")));
    assert_eq!(column(sets, "s8", 4), Ok(String::from("m01,m03,m08")));
    assert_eq!(column(sets, "s8", 4), Ok(["m01", "m03", "m08"].map(String::from)));
    assert_eq!(column(sets, "s8", 6), Ok(Vec::<String>::new()));
    assert_eq!(column::<[String; 2]>(sets, "s8", 4), Err(ReadFault::Length));

    let binary = captured!("captured/types-binary");
    assert_eq!(column(binary, "b4", 3), Ok(Raw([1, 2, 0, 0].into())));
    assert_eq!(column(binary, "bl", 3), Ok(Raw([2; 256].into())));
    // A string takes bytes that are UTF-8, as serde has it.
    assert_eq!(column::<String>(binary, "b1", 3), Err(ReadFault::Range));
    let vectors = captured!("captured/types-vector");
    assert_eq!(column(vectors, "v3", 0), Ok([1.05_f32, -17.8, 32.0]));
    assert_eq!(column(vectors, "v1", 0), Ok(Raw([0; 4].into())));
    assert_eq!(column(vectors, "v3", 2), Ok(None::<Vec<f32>>));

    let mut texts = Vec::new();
    each_after(bl_01, |row| {
        texts.push(RowReader::new().read::<(u8, String, String, String, String, String, String)>(row));
    });
    let first = texts.remove(0).unwrap();
    assert_eq!((first.0, &*first.1, &*first.6), (1, "-16:08:04", "-16:08:04.010123"));
    // A tuple takes all columns, and no others.
    each_after(bl_01, |row| {
        let fault = |result: Result<(), ReadError>| result.unwrap_err().reason;
        let mut reader = RowReader::new();
        assert_eq!(fault(reader.read::<(u8, String)>(row).map(|_| ())), ReadFault::Length);
        type Eight = (u8, String, String, String, String, String, String, String);
        assert_eq!(fault(reader.read::<Eight>(row).map(|_| ())), ReadFault::Length);
    });
}

#[test]
fn a_column_that_is_not_there_is_named_and_never_none_in_silence() {
    #[derive(Debug, Deserialize)]
    struct Renamed {
        #[expect(dead_code, reason = "only read")]
        id: u32,
        new_name: Option<String>,
    }
    each_after_of(
        captured!("cases/BL-53"),
        |column| column != "v",
        |row| {
            let named = |name: &str, reason| ReadError { column: Some(name.into()), reason };
            let mut reader = RowReader::new();
            let refused = reader.read::<Renamed>(row).unwrap_err();
            assert_eq!(refused, named("new_name", ReadFault::NoSuchColumn));
            assert_eq!(format!("{refused}"), "column new_name: the table has no such column");
            let read = RowReader::new().may_lack(["new_name"]).read::<Renamed>(row).unwrap();
            assert_eq!(read.new_name, None);
            // Left out of the captured set: not NULL, and not silent.
            #[derive(Debug, Deserialize)]
            struct Left {
                v: Option<i64>,
            }
            let refused = reader.read::<Left>(row).unwrap_err();
            assert_eq!(refused, named("v", ReadFault::Absent));
            assert_eq!(RowReader::new().may_lack(["v"]).read::<Left>(row).unwrap().v, None);
            let map = reader.read::<BTreeMap<String, i64>>(row).unwrap();
            assert!(map.contains_key("id") && !map.contains_key("v"));
        },
    );
}

/// One reader over tables whose columns lie at other places, in turns.
#[test]
fn a_plan_never_reads_the_columns_of_another_table() {
    #[derive(Debug, Deserialize)]
    struct OnlyC {
        c: i64,
    }
    let (mut reader, mut places) = (RowReader::new(), Vec::new());
    let (third, fourth) = (captured!("cases/BL-21"), captured!("captured/partial-json-whole"));
    for file in [third, fourth, third] {
        each_after(file, |row| {
            let Some(index) = row.table().column_index("c") else { return };
            let crate::value::Value::Int(want) = row.get(index).unwrap() else { panic!("an integer") };
            assert_eq!(reader.read::<OnlyC>(row).unwrap().c, want);
            places.push(index);
        });
    }
    places.dedup();
    assert_eq!(places, [2, 3, 2]);
}

fn read<T: for<'de> Deserialize<'de>>(hex: &str) -> Result<T, ReadFault> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    Json::new(&bytes).to().map_err(|error: ReadError| error.reason)
}

#[test]
fn documents_become_types() {
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        b: String,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    enum Shape {
        Dot,
        #[serde(rename = "b")]
        Named(String),
    }
    // {"b": "y", "c": [1, "q", 3], "dup": "2"}
    let object = "00 0300 3c00 21000100 22000100 23000300 0c2900 022b00 0c3a00 00022b000c3a00616263647570 \
                  027a7a 0179 03000f00 050100 0c0d00 050300 0171 0132";
    let one = "00 0100 0e00 0b00 0100 0c0c00 62 0179";
    let text = "02 0000 0400";
    assert_eq!(read(one), Ok(Strict { b: "y".into() }));
    assert_eq!(read::<Strict>(object), Err(ReadFault::Field));
    assert_eq!(read(one), Ok(Shape::Named("y".into())));
    assert_eq!(read("0c 03 446f74"), Ok(Shape::Dot));
    assert_eq!(read::<Shape>("0c 03 446f75"), Err(ReadFault::Variant));
    assert_eq!(read::<Shape>(text), Err(ReadFault::Type));
    assert_eq!(read(text), Ok(Vec::<u8>::new()));
    assert_eq!(read::<[u8; 1]>(text), Err(ReadFault::Length));
    assert_eq!(read::<(u8,)>("02 0200 0a00 050100 050200"), Err(ReadFault::Length));
    assert_eq!(read("0a ffffffffffffffff"), Ok(u64::MAX));
    assert_eq!(read::<i64>("0a ffffffffffffffff"), Err(ReadFault::Range));
    assert_eq!(read::<u8>("05 ffff"), Err(ReadFault::Range));
    assert_eq!(read("0b 000000000000f03f"), Ok(1.0_f64));
    assert_eq!(read::<u8>("0b 000000000000f03f"), Err(ReadFault::Type));
    assert_eq!(read("0400"), Ok(None::<u8>));
    assert_eq!(read(""), Ok(None::<u8>));
    assert_eq!(read::<u8>("0400"), Err(ReadFault::Null));
    // Decimals and temporals are text; a decimal is a double where one is asked for.
    assert_eq!(read("0f f604 0302 8132"), Ok(String::from("1.50")));
    assert_eq!(read("0f f604 0302 8132"), Ok(1.5_f64));
    assert_eq!(read("0f 0a08 000000000042b219"), Ok(String::from("2024-01-01")));
    assert_eq!(read("0f 0f04 deadbeef"), Ok(String::from("base64:type15:3q2+7w==")));
    // What is malformed is said so, also deep inside.
    assert_eq!(read::<Vec<u8>>("02 0100 0700 0c 0700"), Err(ReadFault::Json(JsonError::Short)));
    assert_eq!(read::<f64>("0b 000000000000f07f"), Err(ReadFault::Json(JsonError::NotFinite)));
}

/// 60 levels of two elements, both the next level: 2^60 values in under 700 bytes.
#[test]
fn a_document_that_unfolds_by_powers_ends_in_an_error() {
    #[derive(Debug, Deserialize)]
    struct Nested(#[expect(dead_code, reason = "only read")] Vec<Nested>);
    let levels = 60_u16;
    let mut bytes = alloc::vec![2];
    for level in (1..=levels).rev() {
        bytes.extend([2, 0]);
        bytes.extend((level * 10 + 4).to_le_bytes());
        bytes.extend([2, 10, 0, 2, 10, 0]);
    }
    bytes.extend([0, 0, 4, 0]);
    let read = Json::new(&bytes).to::<Nested>().map(|_| ()).map_err(|error| error.reason);
    assert_eq!(read, Err(ReadFault::Json(JsonError::Overlap)));
    assert!(serde_json::to_string(&Json::new(&bytes)).is_err());
}

/// What a server wrote, through serde: the same tree as its text, but for decimals, which are text.
#[test]
fn a_document_is_written_by_any_serializer_as_its_text_reads() {
    let mut documents = 0;
    for file in [captured!("captured/types-json"), captured!("captured/partial-json-whole")] {
        each_after(file, |row| {
            for value in row.values() {
                let crate::value::Value::Json(json) = value.unwrap().1 else { continue };
                documents += 1;
                let mut text = String::new();
                json.write_text(&mut text).unwrap();
                let want: serde_json::Value = serde_json::from_str(&text).unwrap();
                let written: serde_json::Value =
                    serde_json::from_str(&serde_json::to_string(&json).unwrap()).unwrap();
                let read: serde_json::Value = json.to().unwrap();
                same(&read, &written);
                same(&read, &want);
            }
        });
    }
    assert!(documents > 100, "{documents}");

    // This reader of text may miss the last bit of a double.
    fn close(found: f64, want: f64) {
        assert!((found - want).abs() <= want.abs() * 1e-15, "{found} {want}");
    }

    fn same(found: &serde_json::Value, want: &serde_json::Value) {
        use serde_json::Value;
        if let (Value::Array(found), Value::Array(want)) = (found, want) {
            assert_eq!(found.len(), want.len());
            found.iter().zip(want).for_each(|(found, want)| same(found, want));
        } else if let (Value::Object(found), Value::Object(want)) = (found, want) {
            assert_eq!(found.len(), want.len());
            for (key, value) in found {
                same(value, &want[key]);
            }
        } else if let (Value::String(decimal), Value::Number(number)) = (found, want) {
            close(decimal.parse().unwrap(), number.as_f64().unwrap());
        } else if let (Some(found), Some(want)) = (found.as_f64(), want.as_f64()) {
            close(found, want);
        } else {
            assert_eq!(found, want);
        }
    }
}

#[test]
fn no_error_holds_a_value() {
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "String")]
    struct Picky;
    impl TryFrom<String> for Picky {
        type Error = String;
        fn try_from(text: String) -> Result<Self, String> {
            Err(format!("not {text}"))
        }
    }
    let json = [&[12, 6][..], b"secret"].concat();
    let json = Json::new(&json);
    let mut said = format!("{:?} {:?}", json.to::<Picky>(), json.to::<u8>());
    said += &format!("{:?} {:?}", json.to::<Letter>(), json.to::<char>());
    said += &format!("{}", json.to::<Picky>().unwrap_err());
    assert!(said.contains("Refused") && said.contains("Variant"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}
