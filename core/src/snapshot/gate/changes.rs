//! Schema changes of tables in every state of their copy: what is left of the effect, and what the copies are then.

use alloc::{format, string::ToString, vec, vec::Vec};

use super::*;
use crate::{
    capture::CapturedSet,
    sql::{Context, Statement, Tables, classify},
};

/// `a` is whole, `b` is being copied, `c` waits, of `d` nothing was ever copied; `out` is not captured.
fn gate() -> Gate {
    let named = |table: &str| ("d".to_string(), table.to_string());
    let begun = TableCopy {
        state: CopyState::Copying,
        key: Some(KeyParts([[1].into()].into())),
        ..TableCopy::waiting()
    };
    Gate::new(&Copies::from([
        (named("a"), TableCopy::waiting().done()),
        (named("b"), begun),
        (named("c"), TableCopy::waiting()),
    ]))
}

fn change(text: &str) -> SchemaChange {
    let context = Context {
        default_schema: b"d",
        client_charset: 255,
        sql_mode: 0,
        lower_case_table_names: 0,
        thread_specific: false,
    };
    let Statement::Ddl(ddl) = classify(text.as_bytes(), &context) else { panic!("{text}") };
    let effect = captured().effect_of(&ddl).unwrap_or_else(|| panic!("not captured: {text}"));
    let Tables::Named(named) = &ddl.tables else { panic!("{text}") };
    SchemaChange {
        gtid: None,
        committed_at: None,
        kind: ddl.kind,
        tables: named.iter().map(|table| (table.schema.clone(), table.table.clone())).collect(),
        rows: effect.rows,
        effect: effect.effect,
        statement: String::new(),
        default_schema: "d".into(),
    }
}

fn captured() -> CapturedSet {
    CapturedSet::parse(&["d.*"], &["d.out*"], &[]).unwrap()
}

/// The effect on tables that were delivered, as text.
fn told(change: &SchemaChange) -> String {
    match &change.effect {
        SchemaEffect::RenameTables(moves) | SchemaEffect::AlterTable { moves, .. } if !moves.is_empty() => {
            let to = |one: &TableMove| one.to.as_ref().map_or("-".to_string(), |to| to.table.clone());
            moves.iter().map(|one| format!("{}>{}", one.from.table, to(one))).collect::<Vec<_>>().join(" ")
        }
        SchemaEffect::RenameTables(_) => "nothing".into(),
        SchemaEffect::AlterTable { table, .. } => format!("alter {}", table.table),
        SchemaEffect::DropTables(tables) => format!("drop {}", tables.len()),
        SchemaEffect::DropDatabase(_) => "drop all".into(),
        SchemaEffect::TableEntered { .. } => "entered".into(),
        SchemaEffect::Unfollowed(_) => format!("unfollowed {}", change.tables[0].1),
        SchemaEffect::CopyTables(..)
        | SchemaEffect::Nothing
        | SchemaEffect::CreateTable { .. }
        | SchemaEffect::CreateTableLike { .. }
        | SchemaEffect::TruncateTable(_) => "followed".into(),
    }
}

/// `a=done b=copying`: what is not done, or was and is in these copies.
fn states(gate: &Gate) -> String {
    let states =
        gate.copies().iter().map(|((_, table), copy)| format!("{table}={}", &copy.state.as_str()[..1]));
    states.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_not_delivered_is_not_changed_and_what_cannot_go_on_begins_anew() {
    let cases = vec![
        // What the target has whole is followed.
        ("RENAME TABLE a TO x", "a>x", "a=d b=c c=w"),
        ("ALTER TABLE a ADD p DOUBLE AS (1)", "alter a", "a=d b=c c=w"),
        // All of it will be in the copy.
        ("ALTER TABLE c MODIFY v TINYINT", "-", "a=d b=c c=w"),
        ("ALTER TABLE c ADD p INT DEFAULT (RAND())", "-", "a=d b=c c=w"),
        ("TRUNCATE TABLE c", "-", "a=d b=c c=w"),
        ("CREATE TABLE c (id INT PRIMARY KEY)", "-", "a=d b=c c=w"),
        // What was delivered follows where that is certain, else it is copied anew.
        ("ALTER TABLE b ADD p INT, ADD INDEX (v)", "alter b", "a=d b=c c=w"),
        ("TRUNCATE TABLE b", "followed", "a=d b=c c=w"),
        ("ALTER TABLE b ADD p INT DEFAULT (RAND())", "-", "a=d b=w c=w"),
        ("ALTER TABLE b MODIFY v TINYINT", "-", "a=d b=w c=w"),
        ("ALTER TABLE b DROP v", "-", "a=d b=w c=w"),
        ("ALTER TABLE b DROP PARTITION p", "-", "a=d b=w c=w"),
        // Both change, and one of them was whole.
        ("ALTER TABLE b EXCHANGE PARTITION p WITH TABLE a", "unfollowed a", "a=d b=c c=w"),
        ("ALTER TABLE b EXCHANGE PARTITION p WITH TABLE out1", "-", "a=d b=w c=w"),
        // Gone.
        ("DROP TABLE b, a", "drop 2", "a=d b=d c=w"),
        ("DROP TABLE c", "drop 1", "a=d b=c c=d"),
        // What moves before its end is dropped here and copied under its new name.
        ("RENAME TABLE b TO x", "b>-", "a=d b=d c=w x=w"),
        ("RENAME TABLE c TO x", "c>-", "a=d b=c c=d x=w"),
        ("RENAME TABLE b TO out1", "b>-", "a=d b=d c=w"),
        ("ALTER TABLE b RENAME TO x, ADD p INT", "b>-", "a=d b=d c=w x=w"),
        ("ALTER TABLE a RENAME TO x, ADD p INT", "a>x", "a=d b=c c=w"),
        // A whole one comes where there was one that was not.
        ("RENAME TABLE b TO out1, a TO b", "b>- a>b", "a=d b=d c=w"),
        ("RENAME TABLE b TO x, a TO b, x TO a", "b>- a>b", "a=w b=d c=w"),
        ("RENAME TABLE a TO c", "a>c c>-", "a=d b=c c=d"),
        // One of unknown rows.
        ("RENAME TABLE out1 TO x", "entered", "a=d b=c c=w"),
        ("RENAME TABLE out1 TO a", "entered", "a=d b=c c=w"),
        ("RENAME TABLE b TO out2, out1 TO b", "b>-", "a=d b=w c=w"),
        ("RENAME TABLE out1 TO c, a TO x", "a>x c>-", "a=d b=c c=w"),
        ("RENAME TABLE out1 TO c, out2 TO x", "entered", "a=d b=c c=w"),
    ];
    for (text, want, then) in cases {
        let (mut gate, mut change) = (gate(), change(text));
        let captured = captured();
        let delivered = gate.judge_change(&mut change, |schema, table| captured.captures(schema, table));
        let got = if delivered { told(&change) } else { "-".to_string() };
        assert_eq!((got.as_str(), states(&gate).as_str()), (want, then), "{text}");
        let told = gate.take_untold();
        let fresh = self::gate();
        for (table, copy) in gate.copies() {
            let same = fresh.copies().get(table) == Some(copy);
            assert!(same || told.get(table) == Some(copy), "{text}: {table:?} has changed untold");
        }
    }
}

#[test]
fn what_takes_a_captured_name_is_copied_where_that_was_asked_for() {
    for (text, want, then) in [
        ("RENAME TABLE out1 TO x", "x>-", "a=d b=c c=w x=w"),
        ("RENAME TABLE a TO out2, out1 TO a", "a>-", "a=w b=c c=w"),
        ("RENAME TABLE out1 TO x, a TO y", "a>y x>-", "a=d b=c c=w x=w"),
        ("RENAME TABLE out1 TO z", "entered", "a=d b=c c=w"),
        ("RENAME TABLE out1 TO x, out2 TO z", "entered", "a=d b=c c=w"),
    ] {
        for finished in [false, true] {
            let mut gate = if finished { Gate::new(&Copies::new()) } else { gate() };
            gate.copy_what_enters(CapturedSet::parse(&["d.*"], &["d.z"], &[]).unwrap());
            let mut change = change(text);
            let captured = captured();
            assert!(gate.judge_change(&mut change, |schema, table| captured.captures(schema, table)));
            assert_eq!(told(&change), want, "{text}");
            if finished {
                assert_eq!(gate.is_done(), want == "entered", "{text}");
            } else {
                assert_eq!(states(&gate), then, "{text}");
            }
        }
    }
}
