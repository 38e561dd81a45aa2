//! Values that bite.

use capstan_fake_source::event::{Column, Table, Value};
use serde_json::{Value as Json, json};

use crate::{
    bench::{Bench, Broken, clipped, differs, kit},
    source::Tx,
};

/// A row of them, read back by the target.
pub(crate) fn survive(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let text = "a'b\"c\\d\n\0é漢🦀 ";
    let table = Table::new(
        200,
        "shop",
        "bites",
        vec![
            Column::bigint("id").not_null(),
            Column::bigint("largest").unsigned(),
            Column::bigint("least"),
            Column::double("tenth"),
            Column::varchar("text", 400),
            Column::varchar("empty", 400),
            Column::varchar("nothing", 400),
            Column::blob("bytes"),
            Column::enumeration("size", &["small", "large"]),
        ],
    );
    let row = vec![
        Value::Int(-7),
        Value::UInt(u64::MAX),
        Value::Int(i64::MIN),
        Value::Double(0.1),
        Value::Bytes(text.into()),
        Value::Bytes(Vec::new()),
        Value::Null,
        Value::Bytes(vec![0, 0xff, 0x27, 0x5c]),
        Value::UInt(2),
    ];
    // Written out by hand and not by the code that the sink may use.
    let want = json!({
        "id": -7,
        "largest": u64::MAX,
        "least": i64::MIN,
        "tenth": 0.1,
        "text": text,
        "empty": "",
        "nothing": null,
        "bytes": "AP8nXA==",
        "size": "large",
    });
    kept(bench, &table, row, -7, &want)
}

/// Bytes that are no text, and text in which every character counts.
pub(crate) fn texts(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let columns =
        vec![Column::bigint("id").not_null(), Column::varchar("text", 400), Column::varchar("quoted", 400)];
    let quoted = "'; DROP TABLE x; -- \u{7f}\t\u{2028}";
    let row = vec![Value::Int(1), Value::Bytes(vec![b'a', 0xff, 0xfe, b'b']), Value::Bytes(quoted.into())];
    let want = json!({ "id": 1, "text": { "base64": "Yf/+Yg==" }, "quoted": quoted });
    kept(bench, &Table::new(201, "shop", "texts", columns), row, 1, &want)
}

/// Numbers that no double holds.
pub(crate) fn decimals(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let decimal = |name: &str, precision: u8, scale: u8| Column {
        type_code: NEWDECIMAL,
        meta: vec![precision, scale],
        ..Column::bigint(name)
    };
    let columns = vec![Column::bigint("id").not_null(), decimal("price", 38, 10), decimal("zero", 10, 2)];
    let price = "-1234567890123456789012345678.0123456789";
    let row = vec![Value::Int(1), Value::Shown(price.into()), Value::Shown("0.00".into())];
    let want = json!({ "id": 1, "price": price, "zero": "0.00" });
    kept(bench, &Table::new(202, "shop", "prices", columns), row, 1, &want)
}

/// Moments that no calendar has.
pub(crate) fn temporals(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let of = |name: &str, type_code: u8, meta: &[u8]| Column {
        type_code,
        meta: meta.to_vec(),
        ..Column::bigint(name)
    };
    let columns = vec![
        Column::bigint("id").not_null(),
        of("day", DATE, &[]),
        of("at", DATETIME2, &[6]),
        of("span", TIME2, &[0]),
    ];
    let shown = ["0000-00-00", "2026-00-00 00:00:00.000001", "-838:59:59"];
    let row = vec![
        Value::Int(1),
        Value::Shown(shown[0].into()),
        Value::Shown(shown[1].into()),
        Value::Shown(shown[2].into()),
    ];
    let want = json!({ "id": 1, "day": shown[0], "at": shown[1], "span": shown[2] });
    kept(bench, &Table::new(203, "shop", "moments", columns), row, 1, &want)
}

/// Numbers that are no integers, labels, and bytes of a fixed length.
pub(crate) fn kinds(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let of = |name: &str, type_code: u8, meta: &[u8]| Column {
        type_code,
        meta: meta.to_vec(),
        ..Column::bigint(name)
    };
    let members = ["a", "b", "c"].map(|member| member.as_bytes().to_vec()).to_vec();
    let columns = vec![
        Column::bigint("id").not_null(),
        of("bits", BIT, &[0, 8]),
        of("year", YEAR, &[]),
        Column { collation: 255, members, ..of("choice", STRING, &[SET, 1]) },
        Column::enumeration("size", &["small", "large"]),
        of("stamp", TIMESTAMP2, &[6]),
        Column { collation: 63, ..of("fixed", STRING, &[STRING, 4]) },
    ];
    let row = vec![
        Value::Int(1),
        Value::UInt(u64::MAX),
        Value::UInt(0),
        Value::UInt(0b101),
        // What an ENUM holds that was given no label of its own.
        Value::UInt(0),
        Value::Shown("1790000000.000001".into()),
        // The log leaves the zeros at the end out.
        Value::Bytes(b"ab".to_vec()),
    ];
    let want = json!({
        "id": 1,
        "bits": u64::MAX,
        "year": 0,
        "choice": "a,c",
        "size": "",
        "stamp": "2026-09-21 14:13:20.000001",
        "fixed": "YWIAAA==",
    });
    kept(bench, &Table::new(205, "shop", "kinds", columns), row, 1, &want)
}

/// A document in its order, with a number that no double holds.
pub(crate) fn documents(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let document = Column { type_code: JSON, meta: vec![4], ..Column::bigint("document") };
    let columns = vec![Column::bigint("id").not_null(), document];
    // {"a":9223372036854775807}: a small object of one pair, its key at 11, its INT64 at 12.
    let mut binary = vec![0, 1, 0, 20, 0, 11, 0, 1, 0, 9, 12, 0, b'a'];
    binary.extend_from_slice(&i64::MAX.to_le_bytes());
    let row = vec![Value::Int(1), Value::Bytes(binary)];
    let want = json!({ "id": 1, "document": { "a": i64::MAX } });
    kept(bench, &Table::new(204, "shop", "documents", columns), row, 1, &want)
}

/// A text of more than 64 KiB, and bytes of more than 1 MiB.
pub(crate) fn volumes(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let columns = vec![
        Column::bigint("id").not_null(),
        Column { collation: 255, ..Column::blob("text") },
        Column::blob("bytes"),
    ];
    let text = "0123456789abcdef".repeat((1 << 12) + 1) + "é";
    // Three bytes are four letters of Base64.
    let times = (1 << 20) / 3 + 1;
    let bytes = [0, 0xff, 0x27].repeat(times);
    let want = json!({ "id": 1, "text": text, "bytes": "AP8n".repeat(times) });
    let row = vec![Value::Int(1), Value::Bytes(text.into()), Value::Bytes(bytes)];
    kept(bench, &Table::new(206, "shop", "volumes", columns), row, 1, &want)
}

const DATE: u8 = 10;
const YEAR: u8 = 13;
const BIT: u8 = 16;
const TIMESTAMP2: u8 = 17;
const SET: u8 = 248;
const STRING: u8 = 254;
const DATETIME2: u8 = 18;
const TIME2: u8 = 19;
const JSON: u8 = 245;
const NEWDECIMAL: u8 = 246;

/// What of a value is shown whole.
const SHOWN: usize = 200;

/// The row is stored and is read back as `want`, column by column.
fn kept(bench: &mut Bench<'_>, table: &Table, row: Vec<Value>, id: i64, want: &Json) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::row(1, table, row)])?;
    bench.drain()?;
    let have = bench.row(&format!("shop.{}", table.name), &id.to_string())?.ok_or("the row is not there")?;
    let have: Json = serde_json::from_str(&have).map_err(|why| format!("the row is no JSON: {why}"))?;
    for (column, want) in want.as_object().ok_or_else(|| kit("no object"))? {
        let have = have.get(column).ok_or_else(|| format!("column {column} is not there"))?;
        if have != want {
            let (have, want) = (have.to_string(), want.to_string());
            if want.len() > SHOWN {
                return Err(format!("column {column} {}", differs(&want, &have)));
            }
            return Err(format!("column {column} is {} instead of {want}", clipped(&have)));
        }
    }
    Ok(())
}
