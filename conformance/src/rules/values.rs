//! Values that bite.

use capstan_fake_source::event::{Column, Table, Value};
use serde_json::{Value as Json, json};

use crate::{
    bench::{Bench, Broken, kit},
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
    bench.start_process()?;
    bench.send(vec![Tx::row(1, &table, row)])?;
    bench.drain()?;
    let have = bench.row("shop.bites", "-7")?.ok_or("the row is not there")?;
    let have: Json = serde_json::from_str(&have).map_err(|why| format!("the row is no JSON: {why}"))?;
    let columns = want.as_object().ok_or_else(|| kit("no object"))?;
    for (column, want) in columns {
        let have = have.get(column).ok_or_else(|| format!("column {column} is not there"))?;
        if have != want {
            return Err(format!("column {column} is {have} instead of {want}"));
        }
    }
    Ok(())
}
