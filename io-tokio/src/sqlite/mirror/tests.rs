//! The mirror over captured files, against what the scripts leave behind.

use std::path::Path;

use capstan_core::{
    deliver::{BatchLimits, BlockingSink as _, FailureClass},
    halt::Code,
};
use rusqlite::{Connection, types::Value};

use super::{catalogue::free_name, *};
use crate::testkit::Kit;

const UPSERTS: &[u8] = include_bytes!("../../../../tests/fixtures/cases/BL-53.binlog");
const RENAMES: &[u8] = include_bytes!("../../../../tests/fixtures/cases/BL-43.binlog");
const CREATE_SELECT: &[u8] = include_bytes!("../../../../tests/fixtures/cases/BL-27.binlog");

fn open(path: &Path) -> Mirror {
    Mirror::open(path, MirrorOptions::default()).unwrap()
}

/// Tables and their rows, as another program sees them.
fn tables(path: &Path) -> Vec<(String, Vec<String>)> {
    let connection = Connection::open(path).unwrap();
    let names: Vec<String> = connection
        .prepare("SELECT name FROM capstan_tables ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    names.into_iter().map(|name| (name.clone(), rows(&connection, &name))).collect()
}

fn rows(connection: &Connection, name: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
    let columns: Vec<usize> = statement
        .column_names()
        .iter()
        .enumerate()
        .filter(|(_, name)| !name.starts_with("capstan_"))
        .map(|(index, _)| index)
        .collect();
    let shown = |value: Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Real(value) => format!("{value:?}"),
        Value::Text(text) => format!("'{text}'"),
        Value::Blob(bytes) => format!("{bytes:02x?}"),
    };
    let mut rows: Vec<String> = statement
        .query_map([], |row| {
            Ok(columns.iter().map(|index| shown(row.get(*index).unwrap())).collect::<Vec<_>>().join(" "))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    rows.sort();
    rows
}

/// What is shown of one file after all of it.
fn mirrored(file: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    Kit::from_binlog(file).unwrap().run_blocking(&mut open(&path)).unwrap();
    shown(&path)
}

fn shown(path: &Path) -> String {
    let tables = tables(path);
    tables.iter().map(|(name, rows)| format!("{name}: {}\n", rows.join(" | "))).collect()
}

const AFTER_UPSERTS: &str = "c04.t: 1 20 7 | 3 30 5 | 6 50 7\n";

/// Red when the catalogue in memory outlives a batch that was rolled back.
#[test]
fn upserts_replace_and_moving_keys_come_out_the_same_however_they_are_cut() {
    let kit = || Kit::from_binlog(UPSERTS).unwrap();
    for (name, mut kit) in [
        ("one transaction to a batch", kit()),
        ("all in one", kit().batch(BatchLimits { max_transactions: 100, max_bytes: 1 << 20 })),
        ("streamed", kit().stream_above(0)),
        ("one broken off", kit().abort_once(3)),
        ("the first broken off", kit().stream_above(0).abort_once(1)),
        ("copied", kit().snapshot()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        kit.run_blocking(&mut open(&path)).unwrap();
        assert_eq!(shown(&path), AFTER_UPSERTS, "{name}");
        // Again from what is stored: nothing comes twice.
        kit.run_blocking(&mut open(&path)).unwrap();
        assert_eq!(shown(&path), AFTER_UPSERTS, "{name}");
    }
}

/// Red when chunk 0 leaves what was there, and when another chunk takes rows for replaced.
#[test]
fn the_first_chunk_of_a_copy_voids_what_was_there_and_a_later_one_finds_no_row_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let mut kit = Kit::from_binlog(UPSERTS).unwrap().snapshot();
    let mut mirror = open(&path);
    kit.start(None).unwrap();
    let mut chunks = 0;
    while let Some(mut state) = kit.next_batch() {
        let mut number = None;
        if let Some(BlockingUnit::SnapshotRows(rows)) = state.blocking().next().unwrap() {
            number = rows.chunk().map(|chunk| chunk.number);
        }
        kit.failed(state, mirror.position().unwrap().as_ref());
        let mut state = kit.again().unwrap();
        if let Some(number) = number {
            let other = Connection::open(&path).unwrap();
            // Until its first row came, the table here has no key.
            let stray = match number {
                0 => "(id, u, v, capstan_hash) VALUES (1, 99, 99, 0)",
                _ => "(id, u, v) VALUES (5, 99, 99)",
            };
            other.execute(&format!("INSERT INTO \"c04.t\" {stray}"), []).unwrap();
            chunks += 1;
        }
        match mirror.apply(state.blocking()) {
            Ok(ack) => kit.accept(state, ack).unwrap(),
            Err(error) => {
                assert_eq!((error.code(), number), (Code::MirrorDiverged, Some(1)));
                return assert_eq!(chunks, 2);
            }
        }
    }
    panic!("the key was there");
}

#[test]
fn renames_swaps_and_created_copies_are_followed() {
    assert_eq!(mirrored(CREATE_SELECT), "b27.c 2: 1 'a'\nb27.c1: 1 'a' | 2 'b'\nb27.src: 1 'a' | 2 'b'\n");
    // The file drops its databases at its end.
    assert_eq!(mirrored(RENAMES), "");
}

/// Red when the number of rows that a statement touched is not looked at.
#[test]
fn a_statement_that_touches_no_row_or_finds_its_key_halts_and_leaves_all_as_it_was() {
    for spoil in [
        "DELETE FROM \"c04.t\" WHERE id = 1",
        "UPDATE \"c04.t\" SET id = 9 WHERE id = 1",
        "INSERT INTO \"c04.t\" VALUES (3, 0, 0)",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let mut mirror = open(&path);
        let mut kit = Kit::from_binlog(UPSERTS).unwrap();
        kit.start(None).unwrap();
        // The claim, the table, two rows.
        for _ in 0..3 {
            let mut state = kit.next_batch().unwrap();
            let ack = mirror.apply(state.blocking()).unwrap();
            kit.accept(state, ack).unwrap();
        }
        Connection::open(&path).unwrap().execute_batch(spoil).unwrap();
        let (mut failed, mut before) = (None, String::new());
        while let Some(mut state) = kit.next_batch() {
            before = shown(&path);
            match mirror.apply(state.blocking()) {
                Ok(ack) => kit.accept(state, ack).unwrap(),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let error = failed.expect(spoil);
        assert_eq!((error.code(), error.class()), (Code::MirrorDiverged, FailureClass::Permanent), "{spoil}");
        assert_eq!(shown(&path), before, "{spoil}");
    }
}

#[test]
fn a_table_whose_creation_was_not_seen_is_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let first = |mirror: &mut Mirror| {
        let mut kit = Kit::from_binlog(UPSERTS).unwrap();
        kit.start(None).unwrap();
        // The claim and the table.
        for _ in 0..2 {
            let mut state = kit.next_batch().unwrap();
            let ack = mirror.apply(state.blocking()).unwrap();
            kit.accept(state, ack).unwrap();
        }
    };
    for (name, partial) in [("whole", false), ("partial", true)] {
        let path = folder.path().join(name);
        first(&mut open(&path));
        Connection::open(&path)
            .unwrap()
            .execute_batch("DROP TABLE \"c04.t\"; DELETE FROM capstan_tables")
            .unwrap();
        let options = MirrorOptions { partial, ..MirrorOptions::default() };
        drop(Mirror::open(&path, options).unwrap());
        // It is remembered.
        let done = Kit::from_binlog(UPSERTS).unwrap().run_blocking(&mut open(&path));
        match done {
            Ok(_) => assert_eq!((name, shown(&path).as_str()), ("partial", AFTER_UPSERTS)),
            Err(error) => assert_eq!((name, error.code()), ("whole", Code::HistoryIncomplete)),
        }
    }
}

/// Red without the look for the table: `sink_failed`, which names no table to copy again.
#[test]
fn a_table_that_somebody_dropped_is_no_mirror_and_says_which() {
    // Before its first row, and once statements for it are prepared.
    for batches in [2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let mut mirror = open(&path);
        let mut kit = Kit::from_binlog(UPSERTS).unwrap();
        kit.start(None).unwrap();
        for _ in 0..batches {
            let mut state = kit.next_batch().unwrap();
            let ack = mirror.apply(state.blocking()).unwrap();
            kit.accept(state, ack).unwrap();
        }
        Connection::open(&path).unwrap().execute_batch("DROP TABLE \"c04.t\"").unwrap();
        let error = kit.run_blocking(&mut mirror).unwrap_err();
        assert_eq!(error.code(), Code::MirrorDiverged, "after {batches}");
        let table = Halt::from(&error).place.and_then(|place| place.table);
        assert_eq!(table, Some(("c04".to_owned(), "t".to_owned())));
    }
}

/// Red without the flag of a table that was never here whole: it halts, or takes what was whole for a part.
#[test]
fn only_a_table_that_was_never_whole_may_lack_rows() {
    for (partial, lacks) in [(false, Some(Code::MirrorDiverged)), (true, None)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let mut mirror = open(&path);
        let mut kit = Kit::from_binlog(UPSERTS).unwrap();
        kit.start(None).unwrap();
        // The claim, the table, its rows.
        for _ in 0..3 {
            let mut state = kit.next_batch().unwrap();
            let ack = mirror.apply(state.blocking()).unwrap();
            kit.accept(state, ack).unwrap();
        }
        // As if it had begun behind the rows.
        let spoil = format!("DELETE FROM \"c04.t\"; UPDATE capstan_tables SET partial = {partial}");
        Connection::open(&path).unwrap().execute_batch(&spoil).unwrap();
        (mirror.catalogue, mirror.plans) = (None, HashMap::new());
        let mut failed = None;
        while let Some(mut state) = kit.next_batch() {
            match mirror.apply(state.blocking()) {
                Ok(ack) => kit.accept(state, ack).unwrap(),
                Err(error) => {
                    failed = Some(error.code());
                    break;
                }
            }
        }
        assert_eq!(failed, lacks);
        if partial {
            // Every row was touched, so every row is here.
            assert_eq!(shown(&path), AFTER_UPSERTS);
        }
    }
}

/// Red without [`forgotten`]: the table would be shown as it was, and found again as if nothing had been missed.
#[test]
fn a_table_that_is_captured_no_longer_says_so_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let mut mirror = open(&path);
    Kit::from_binlog(UPSERTS).unwrap().run_blocking(&mut mirror).unwrap();
    let mut decide = |captured: &str| {
        let stored = mirror.stored().unwrap().unwrap();
        let moved = stored.clone().with_captured(captured);
        let decision = Decision { kind: "forget-table".into(), subject: "c04.t".into(), reason: "r".into() };
        mirror.decide(&Expected::new(Some(stored)), &moved, &decision).unwrap();
    };
    decide("tables=*.*;exclude=`other`.`t`;exclude-columns=");
    assert_eq!(shown(&path), AFTER_UPSERTS, "it is captured still");
    decide("tables=*.*;exclude=`c04`.`t`;exclude-columns=");
    assert_eq!(shown(&path), "");
    let connection = Connection::open(&path).unwrap();
    assert_eq!(rows(&connection, "c04.t~forgotten").len(), 3, "its rows are not lost");
    decide("tables=*.*;exclude=;exclude-columns=");
    assert_eq!(shown(&path), "", "nor are they its history once it comes back");
}

#[test]
fn a_name_is_free_reads_back_and_is_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = open(&folder.path().join("m.db"));
    let connection = mirror.database.connection();
    connection.execute_batch("CREATE TABLE \"D.taken\" (x); CREATE VIEW \"d.seen\" AS SELECT 1").unwrap();
    for (schema, table, name) in [
        ("d", "t", "d.t"),
        ("d", "taken", "d.taken~1"),
        ("D", "SEEN", "D.SEEN~1"),
        ("d.e", "t", "d_e.t~1"),
        ("d", "e.t", "d.e_t~1"),
        ("sqlite_x", "t", "_sqlite_x.t~1"),
        ("Capstan_x", "t", "_Capstan_x.t~1"),
        ("d", "q\"uote", "d.q\"uote"),
    ] {
        assert_eq!(free_name(connection, schema, table).unwrap(), name);
    }
}
