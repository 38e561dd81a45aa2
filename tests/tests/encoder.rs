//! The fake source's encoder of values: proved by what real servers wrote, and then turned against the decoder with
//! values that no captured file has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use bytes::Bytes;
use capstan_core::{
    binlog::{
        rows::{Row, RowScratch, RowsEvent, RowsHead},
        table_map::TableMaps,
    },
    value::{ColumnType, Value},
};
use capstan_fake_source::event::{self, Body, Column, Reader, RowChange, Rows, Table};
use proptest::{collection::vec, prelude::*, strategy::Union};

/// Files with whole images alone, of every type but the old ones.
const FILES: &str = "text/every-type types/types captured/types-binary captured/types-bit captured/types-decimal \
    captured/types-enum-set captured/types-float captured/types-geometry captured/types-integer captured/types-json \
    captured/types-json-large captured/types-temporal captured/types-text captured/types-vector";

/// Reads captured rows with the core and writes them again with the encoder: the server's bytes come out.
#[test]
fn captured_rows_are_written_again_byte_for_byte() {
    let mut types = BTreeSet::new();
    for file in FILES.split_whitespace() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/{file}.binlog"));
        let mut tables = BTreeMap::new();
        for event in Reader::default().file(&fs::read(path).unwrap()).unwrap() {
            if let Body::TableMap(table) = &event.body {
                tables.insert(table.id, table.clone());
            }
            let Body::Rows(rows) = &event.body else { continue };
            let table = &tables[&rows.table_id];
            let mut images = rows.images.iter();
            each_row(table, rows, |row| {
                for (index, bytes) in images.next().unwrap().iter().enumerate() {
                    let of = &row.table().columns()[index].column_type;
                    let written = table.columns[index].bytes_of(&described(row.get(index).unwrap(), of));
                    assert_eq!(written, *bytes, "{file}: {of:?}");
                    types.insert(format!("{of:?}").split(' ').next().unwrap().to_owned());
                }
            });
            assert!(images.next().is_none(), "{file}");
        }
    }
    let packed = ["Decimal", "Date", "Time", "DateTime", "Timestamp", "Year", "Bit", "Float", "Enum", "Set"];
    assert!(packed.iter().all(|name| types.contains(*name)), "{types:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rows of 1 to 40 columns, each with NULLs: what the encoder writes the core reads.
    #[test]
    fn generated_rows_are_read_as_they_were_written(
        columns in vec(column(), 1..40),
    ) {
        let (columns, values): (Vec<Column>, Vec<[event::Value; 3]>) = columns.into_iter().unzip();
        let table = Table::new(7, "d", "t", columns);
        let written: Vec<Vec<event::Value>> =
            (0..3).map(|n| values.iter().map(|of_column| of_column[n].clone()).collect()).collect();
        let changes: Vec<RowChange> = written.iter().cloned().map(RowChange::Insert).collect();
        let mut found = Vec::new();
        each_row(&table, &Rows::of(&table, &changes, true), |row| {
            let value = |(column, value): (&capstan_core::value::Column, _)| described(value, &column.column_type);
            found.push(row.values().map(|pair| value(pair.unwrap())).collect::<Vec<_>>());
        });
        prop_assert_eq!(found, written);
    }
}

/// The row images of an event in order, as the core reads them.
fn each_row(table: &Table, rows: &Rows, mut visit: impl FnMut(Row<'_>)) {
    let body = |body: Body| {
        let event = event::Event { timestamp: 0, server_id: 1, log_pos: 0, flags: 0, body };
        Bytes::from(event.encode(false)).slice(event::HEADER_LEN..)
    };
    let mut maps = TableMaps::new();
    let map = maps.open(&body(Body::TableMap(table.clone()))).unwrap();
    let bytes = body(Body::Rows(rows.clone()));
    let event = RowsEvent::new(RowsHead::parse(rows.code, &bytes).unwrap(), map, bytes).unwrap();
    let mut scratch = RowScratch::new();
    let mut cursor = event.cursor(&mut scratch);
    while let Some(change) = cursor.next().unwrap() {
        change.before().into_iter().chain(change.after()).for_each(&mut visit);
    }
}

/// A value of the core as the encoder describes it.
fn described(value: Value<'_>, column_type: &ColumnType) -> event::Value {
    match value {
        Value::Null => event::Value::Null,
        Value::Absent => panic!("a partial image"),
        Value::Int(n) => event::Value::Int(n),
        Value::UInt(n) => event::Value::UInt(n),
        Value::Float(n) => event::Value::Double(n.into()),
        Value::Double(n) => event::Value::Double(n),
        Value::Decimal(n) => event::Value::Shown(n.to_string()),
        Value::Bit(bit) => event::Value::UInt(bit.value()),
        Value::Year(year) => event::Value::UInt(u64::from(year.saturating_sub(1900))),
        Value::Date(date) => event::Value::Shown(date.to_string()),
        Value::Time(time) => event::Value::Shown(time.to_string()),
        Value::DateTime(time) => event::Value::Shown(time.to_string()),
        Value::Timestamp(t) => {
            let ColumnType::Timestamp { fsp } = *column_type else { panic!("a new TIMESTAMP") };
            event::Value::Shown(with_fraction(t.unix_seconds().unwrap_or(0).to_string(), t.micros(), fsp))
        }
        Value::Text(text) => event::Value::Bytes(text.as_bytes().to_vec()),
        Value::Binary(binary) => event::Value::Bytes(binary.stored().to_vec()),
        Value::Blob(bytes) => event::Value::Bytes(bytes.to_vec()),
        Value::Enum(member) => event::Value::UInt(member.index().into()),
        Value::Set(set) => event::Value::UInt(set.bits()),
        Value::Json(json) => event::Value::Bytes(json.as_bytes().to_vec()),
        Value::Geometry(shape) => event::Value::Bytes(shape.as_bytes().to_vec()),
        Value::Vector(vector) => event::Value::Bytes(vector.as_bytes().to_vec()),
    }
}

fn with_fraction(text: String, micros: u32, fsp: u8) -> String {
    match fsp {
        0 => text,
        _ => format!("{text}.{}", &format!("{micros:06}")[..usize::from(fsp)]),
    }
}

/// A column and three values of it, some NULL.
fn column() -> impl Strategy<Value = (Column, [event::Value; 3])> {
    let some = |type_code: u8, meta: Vec<u8>| Column { type_code, meta, ..Column::int("c") };
    let int = (prop::sample::select(vec![(1_u8, 8_u32), (2, 16), (9, 24), (3, 32), (8, 64)]), any::<bool>())
        .prop_flat_map(move |((code, bits), unsigned)| {
            let column = Column { unsigned, ..some(code, vec![]) };
            let value = any::<i64>().prop_map(move |n| match unsigned {
                true => event::Value::UInt(n.cast_unsigned() >> (64 - bits)),
                false => event::Value::Int(n >> (64 - bits)),
            });
            three(column, value.boxed())
        });
    let float = any::<f32>().prop_filter("finite", |n| n.is_finite());
    let float = three(some(4, vec![4]), float.prop_map(|n| event::Value::Double(n.into())).boxed());
    let double = any::<f64>().prop_filter("finite", |n| n.is_finite());
    let double = three(some(5, vec![8]), double.prop_map(event::Value::Double).boxed());
    let decimal = (1_u8..=65)
        .prop_flat_map(|precision| (Just(precision), 0..=precision.min(30)))
        .prop_flat_map(move |(precision, scale)| {
            let digits = vec(0_u8..10, usize::from(precision));
            let value =
                (digits, any::<bool>(), 0..=precision).prop_map(move |(mut digits, negative, zeros)| {
                    digits[..usize::from(zeros)].fill(0);
                    event::Value::Shown(decimal_text(&digits, usize::from(scale), negative))
                });
            three(some(246, vec![precision, scale]), value.boxed())
        });
    let bit = (1_u8..=64).prop_flat_map(move |bits| {
        let value = any::<u64>().prop_map(move |n| event::Value::UInt(n >> (64 - bits)));
        three(some(16, vec![bits % 8, bits / 8]), value.boxed())
    });
    let year = three(some(13, vec![]), (0_u64..256).prop_map(event::Value::UInt).boxed());
    let date =
        || (0..=9999_u32, 0..=12_u32, 0..=31_u32).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"));
    let dates = three(some(10, vec![]), date().prop_map(event::Value::Shown).boxed());
    let micros = |fsp: u8| (0..10_u32.pow(fsp.into())).prop_map(move |n| n * 10_u32.pow(u32::from(6 - fsp)));
    let minutes = || (0..60_u32, 0..60_u32);
    let time = (0_u8..=6).prop_flat_map(move |fsp| {
        let value =
            (any::<bool>(), 0..=838_u32, minutes(), micros(fsp)).prop_map(move |(minus, h, (m, s), us)| {
                let sign = if minus && (h, m, s, us) != (0, 0, 0, 0) { "-" } else { "" };
                event::Value::Shown(with_fraction(format!("{sign}{h:02}:{m:02}:{s:02}"), us, fsp))
            });
        three(some(19, vec![fsp]), value.boxed())
    });
    let datetime = (0_u8..=6).prop_flat_map(move |fsp| {
        let value = (date(), 0..24_u32, minutes(), micros(fsp)).prop_map(move |(date, h, (m, s), us)| {
            event::Value::Shown(with_fraction(format!("{date} {h:02}:{m:02}:{s:02}"), us, fsp))
        });
        three(some(18, vec![fsp]), value.boxed())
    });
    let timestamp = (0_u8..=6).prop_flat_map(move |fsp| {
        let value = (0..=0x7fff_ffff_u32, micros(fsp)).prop_map(move |(seconds, us)| {
            let us = if seconds == 0 { 0 } else { us };
            event::Value::Shown(with_fraction(seconds.to_string(), us, fsp))
        });
        three(some(17, vec![fsp]), value.boxed())
    });
    let text = prop::sample::select(vec![20_u16, 255, 256, 65_532]).prop_flat_map(|most| {
        let value = vec(any::<u8>(), 0..usize::from(most.min(400)));
        three(Column::varchar("c", most), value.prop_map(event::Value::Bytes).boxed())
    });
    let blob = vec(any::<u8>(), 0..300).prop_map(event::Value::Bytes);
    let blob = three(Column::blob("c"), blob.boxed());
    let members = prop::sample::select(vec![1_usize, 8, 255, 256, 700]).prop_flat_map(|count| {
        let members: Vec<String> = (0..count).map(|n| format!("m{n}")).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let value = (0..=count as u64).prop_map(event::Value::UInt);
        three(Column::enumeration("c", &members), value.boxed())
    });
    let set = (1_usize..=64).prop_flat_map(move |count| {
        let width = match count.div_ceil(8) {
            5.. => 8,
            width => width as u8,
        };
        let members = (0..count).map(|n| format!("m{n}").into_bytes()).collect();
        let column = Column { members, collation: 255, ..some(254, vec![248, width]) };
        let value = any::<u64>().prop_map(move |bits| event::Value::UInt(bits >> (64 - count)));
        three(column, value.boxed())
    });
    Union::new([
        int.boxed(),
        float.boxed(),
        double.boxed(),
        decimal.boxed(),
        bit.boxed(),
        year.boxed(),
        dates.boxed(),
        time.boxed(),
        datetime.boxed(),
        timestamp.boxed(),
        text.boxed(),
        blob.boxed(),
        members.boxed(),
        set.boxed(),
    ])
}

fn three(
    column: Column,
    value: BoxedStrategy<event::Value>,
) -> impl Strategy<Value = (Column, [event::Value; 3])> {
    let value = prop_oneof![1 => Just(event::Value::Null), 5 => value];
    (Just(column), prop::array::uniform3(value))
}

/// As the server shows it: a zero before the point, no other in front, no minus zero.
fn decimal_text(digits: &[u8], scale: usize, negative: bool) -> String {
    let text = |digits: &[u8]| digits.iter().map(|digit| char::from(b'0' + digit)).collect::<String>();
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let (whole, fraction) = (text(whole), text(fraction));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let sign = if negative && digits.iter().any(|digit| *digit != 0) { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}
