//! Tables and their rows: what comes, changes and goes.

use capstan_core::deliver::FailureClass;
use capstan_fake_source::event::{Column, RowChange, Table, Value};
use serde_json::{Value as Json, json};

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

/// Two tables are dropped at once, and another one takes the name of one of them; then a database goes with its tables.
pub(crate) fn dropped(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let before =
        [insert("orders", 1), insert("orders", 2), insert("lines", 1), insert("orders", 1).of("store")];
    let after = insert("orders", 1).noted("another");
    let gone = [emptied("orders"), emptied("lines")];
    bench.start_process()?;
    bench.send(vec![
        Tx::new(1, &before),
        Tx::ddl(2, "DROP TABLE orders, `lines`"),
        Tx::ddl(3, CREATE_ORDERS),
        Tx::new(4, &[after]),
    ])?;
    bench.drain()?;
    let all = [before.as_slice(), &gone, &[after]].concat();
    bench.holds(&all)?;
    bench.start_process()?;
    bench.send(vec![Tx::ddl(5, "DROP DATABASE store")])?;
    bench.drain()?;
    bench
        .holds(&[all.as_slice(), &[emptied("orders").of("store")]].concat())
        .map_err(|why| format!("a database was dropped: {why}"))
}

/// A table is made that is there.
pub(crate) fn made_again(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let steps = [insert("orders", 1), insert("orders", 2), update("orders", 1)];
    let again = CREATE_ORDERS.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS");
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &steps[..2]), Tx::ddl(2, &again), Tx::new(3, &steps[2..])])?;
    bench.drain()?;
    bench.holds(&steps)
}

/// A table takes another name, and another one takes its own; the two change places; one moves by an ALTER, and one
/// to where nobody looks.
pub(crate) fn renamed(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let before = [insert("orders", 1), insert("lines", 7)];
    let after = [insert("orders", 1).noted("another"), insert("older", 2)];
    let rows = bench.storage().kept() == Keeps::Rows;
    let mut all = before.to_vec();
    let mut holds = |bench: &mut Bench<'_>, steps: &[Step], now: &[Step], how: &str| {
        all.extend_from_slice(steps);
        bench.holds(if rows { now } else { &all }).map_err(|why| format!("{how}: {why}"))
    };
    bench.start_process()?;
    bench.send(vec![
        Tx::new(1, &before),
        Tx::ddl(2, "RENAME TABLE orders TO older"),
        Tx::ddl(3, CREATE_ORDERS),
        Tx::new(4, &after),
    ])?;
    bench.drain()?;
    let [line, first, second] = [before[1], insert("older", 1), insert("older", 2)];
    holds(bench, &after, &[line, first, second, after[0]], "a table was renamed")?;
    bench.start_process()?;
    bench.send(vec![Tx::ddl(5, "RENAME TABLE orders TO aside, older TO orders, aside TO older")])?;
    bench.drain()?;
    let another = insert("older", 1).noted("another");
    let [first, second] = [insert("orders", 1), insert("orders", 2)];
    holds(bench, &[], &[line, first, second, another], "two tables changed places")?;
    bench.start_process()?;
    bench.send(vec![Tx::ddl(6, "ALTER TABLE older RENAME TO oldest")])?;
    bench.drain()?;
    let another = insert("oldest", 1).noted("another");
    holds(bench, &[], &[line, first, second, another], "a table was renamed by ALTER")?;
    bench.start_process()?;
    bench.send(vec![Tx::ddl(7, "RENAME TABLE orders TO elsewhere.orders")])?;
    bench.drain()?;
    holds(bench, &[], &[line, another], "a table left the captured ones")
}

/// Keys that are one where they are kept as less than 64 bits with a sign, or as a floating-point number.
const KEYS: [i64; 8] = [i64::MIN, -1, 0, 1, (1 << 32) + 1, 1 << 53, (1 << 53) + 1, i64::MAX];

/// Rows of such keys, of which one changes and one goes.
pub(crate) fn keys_apart(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let inserts = KEYS.map(|key| insert("orders", key));
    let then = [update("orders", (1 << 53) + 1), delete("orders", (1 << 32) + 1).noted("new")];
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &inserts), Tx::new(2, &then)])?;
    bench.drain()?;
    bench.holds(&[inserts.as_slice(), &then].concat())
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

/// An update is what it leaves behind, NULL too.
pub(crate) fn after_image(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let columns = vec![Column::bigint("id").not_null(), Column::varchar("note", 400)];
    let orders = Table::new(121, "shop", "orders", columns);
    let row = |note: Value| vec![Value::Int(3), note];
    let nulled = RowChange::Update(row(Value::Bytes(b"new".to_vec())), row(Value::Null));
    bench.start_process()?;
    bench.send(vec![
        Tx::new(1, &[insert("orders", 1)]),
        Tx::new(2, &[update("orders", 1)]),
        // A probe that took another table's row for it, or another key's, would prove nothing.
        Tx::new(3, &[insert("orders", 2), insert("lines", 1), insert("orders", 3)]),
        Tx::change(4, &orders, nulled),
    ])?;
    bench.drain()?;
    for (key, want) in [("1", json!("changed")), ("3", Json::Null)] {
        let have = bench.row("shop.orders", key)?.ok_or("the row is not there")?;
        let have: Json = serde_json::from_str(&have).map_err(|why| format!("the row is no JSON: {why}"))?;
        match have.get("note") {
            Some(note) if *note == want => {}
            Some(note) => return Err(format!("after an update the row says {note} instead of {want}")),
            None => return Err("the column note is not there".into()),
        }
    }
    Ok(())
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
