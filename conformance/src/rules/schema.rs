//! Tables and their rows: what comes, changes and goes.

use capstan_core::deliver::FailureClass;
use capstan_fake_source::event::{Column, Table, Value};
use serde_json::Value as Json;

use crate::{
    bench::{Bench, Broken, kit},
    rule::Level,
    source::{KEYLESS, Step, Tx, delete, emptied, insert, moved, update},
    target::Keeps,
};

/// A column comes, and rows with it.
pub(crate) fn in_place(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let columns =
        vec![Column::bigint("id").not_null(), Column::varchar("note", 400), Column::bigint("extra")];
    let wider = Table::new(120, "shop", "orders", columns);
    let row = vec![Value::Int(2), Value::Bytes(b"new".to_vec()), Value::Int(42)];
    bench.start_process()?;
    bench.send(vec![
        Tx::new(1, &[insert("orders", 1)]),
        Tx::ddl(2, "ALTER TABLE orders ADD COLUMN extra BIGINT"),
        Tx::row(3, &wider, row),
    ])?;
    bench.drain()?;
    let have = bench.row("shop.orders", "2")?.ok_or("the row is not there")?;
    let have: Json = serde_json::from_str(&have).map_err(|why| format!("the row is no JSON: {why}"))?;
    match have.get("extra") {
        Some(extra) if *extra == 42 => {}
        Some(extra) => return Err(format!("the new column is {extra} instead of 42")),
        None => return Err("the new column is not there".into()),
    }
    bench.holds(&[insert("orders", 1), insert("orders", 2)])
}

/// A schema change has a GTID, like everything else.
pub(crate) fn moves_position(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[insert("orders", 1)])])?;
    bench.drain()?;
    bench.send(vec![Tx::ddl(2, "CREATE TABLE orders_by_day (id BIGINT PRIMARY KEY)")])?;
    bench.drain()?;
    let want = bench.delivery().durable().cloned();
    bench.open()?;
    if bench.position()? != want {
        return Err("a schema change was acknowledged, and its position is not stored".into());
    }
    bench.holds(&[insert("orders", 1)])
}

/// A table is emptied, and its keys come again.
pub(crate) fn truncated(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let before = [insert("orders", 1), insert("orders", 2), insert("lines", 1)];
    let after = [insert("orders", 1)];
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &before), Tx::ddl(2, "TRUNCATE TABLE orders"), Tx::new(3, &after)])?;
    bench.drain()?;
    let ([a, b, c], [d]) = (before, after);
    bench.holds(&[a, b, c, emptied("orders"), d])
}

/// As a table of the kit is made.
const CREATE_ORDERS: &str =
    "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(100) CHARACTER SET utf8mb4)";

/// A table is dropped, and another one takes its name.
pub(crate) fn dropped(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let before = [insert("orders", 1), insert("orders", 2), insert("lines", 1)];
    let after = insert("orders", 1).noted("another");
    bench.start_process()?;
    bench.send(vec![
        Tx::new(1, &before),
        Tx::ddl(2, "DROP TABLE orders"),
        Tx::ddl(3, CREATE_ORDERS),
        Tx::new(4, &[after]),
    ])?;
    bench.drain()?;
    let [a, b, c] = before;
    bench.holds(&[a, b, c, emptied("orders"), after])
}

/// A table takes another name, and another one takes its own.
pub(crate) fn renamed(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let (before, after) = (insert("orders", 1), [insert("orders", 1).noted("another"), insert("older", 2)]);
    bench.start_process()?;
    bench.send(vec![
        Tx::new(1, &[before]),
        Tx::ddl(2, "RENAME TABLE orders TO older"),
        Tx::ddl(3, CREATE_ORDERS),
        Tx::new(4, &after),
    ])?;
    bench.drain()?;
    let [a, b] = after;
    let first = match bench.storage().kept() {
        Keeps::Changes => before,
        Keeps::Rows => insert("older", 1),
    };
    bench.holds(&[first, a, b])
}

/// An update changes the key, then another row takes the old one: in the end the two have changed places.
pub(crate) fn key_changes(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let away = [insert("orders", 1), insert("orders", 2).noted("second"), moved("orders", 1, 3)];
    let back = [moved("orders", 2, 1).from("second").noted("second"), moved("orders", 3, 2).from("changed")];
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &away)])?;
    bench.drain()?;
    bench.holds(&away)?;
    bench.start_process()?;
    bench.send(vec![Tx::new(2, &back)])?;
    bench.drain()?;
    bench.holds(&[away.as_slice(), &back].concat())
}

/// Tables whose names differ in their schema, in the case of a letter, or hold what a statement would read otherwise.
pub(crate) fn told_apart(bench: &mut Bench<'_>) -> Result<(), Broken> {
    const ODD: &str = "o\"r'd.ers";
    let all = [
        insert("orders", 1),
        insert("Orders", 1),
        insert("orders", 1).of("store"),
        insert(ODD, 1),
        update("orders", 1).of("store"),
        delete("Orders", 1).noted("new"),
        insert("orders", 2).of("store"),
    ];
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &all[..4]), Tx::new(2, &all[4..])])?;
    bench.drain()?;
    bench.holds(&all)
}

/// A table is made and filled by one statement, which is one transaction.
pub(crate) fn create_select(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let rows = [insert("summary", 1), insert("summary", 2)];
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[insert("orders", 1)]), Tx::created(2, &rows)])?;
    bench.drain()?;
    let [a, b] = rows;
    bench.holds(&[insert("orders", 1), a, b])
}

/// An update is what it leaves behind.
pub(crate) fn after_image(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![
        Tx::new(1, &[insert("orders", 1)]),
        Tx::new(2, &[update("orders", 1)]),
        // A probe that took another table's row for it, or another key's, would prove nothing.
        Tx::new(3, &[insert("orders", 2), insert("lines", 1)]),
    ])?;
    bench.drain()?;
    let have = bench.row("shop.orders", "1")?.ok_or("the row is not there")?;
    let have: Json = serde_json::from_str(&have).map_err(|why| format!("the row is no JSON: {why}"))?;
    match have.get("note").and_then(Json::as_str) {
        Some("changed") => Ok(()),
        Some(note) => Err(format!("after an update the row says {note:?} instead of \"changed\"")),
        None => Err("the column note is not there".into()),
    }
}

/// A delete of a row that is not there, between two inserts.
pub(crate) fn absent(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let (first, steps) =
        (insert("orders", 1), [insert("orders", 5), delete("orders", 99), insert("orders", 6)]);
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[first])])?;
    bench.drain()?;
    let before = bench.position()?;
    bench.send(vec![Tx::new(2, &steps)])?;
    let mut out = bench.take()?.ok_or_else(|| kit("no batch"))?;
    match bench.answer(&mut out)? {
        Err(error) if error.class() == FailureClass::Permanent => {
            bench.failed(out);
            bench.note(format!("refused with {}", error.code()));
            if bench.level() == Level::ExactlyOnce && bench.position()? != before {
                return Err("a refused transaction moved the position".into());
            }
            bench.holds(&[first])
        }
        answer => {
            bench.settle(out, answer).map_err(|why| format!("it would come again for ever: {why}"))?;
            bench.note("taken");
            let [a, b, c] = steps;
            bench.holds(&[first, a, b, c])
        }
    }
}

/// Rows that nothing tells apart.
pub(crate) fn without_key(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let heap = |key| insert(KEYLESS, key);
    let steps: [Step; 6] =
        [heap(1), heap(1), heap(2), heap(1), delete(KEYLESS, 1).noted("new"), update(KEYLESS, 1)];
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &steps)])?;
    bench.drain()?;
    bench.holds(&steps)
}
