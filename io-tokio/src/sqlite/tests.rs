//! The ledger over captured files, against SQLite itself.

use std::path::Path;

use capstan_core::{
    deliver::{BatchLimits, BlockingSink as _, Expected, FailureClass, Holds, Position},
    halt::Code,
};
use rusqlite::Connection;

use super::*;
use crate::{BlockingCheckpointStore as _, Decision, Stored as _, checkpoint::lock::beside, testkit::Kit};

const UPSERTS: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-53.binlog");
const CREATE_SELECT: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-27.binlog");

const WIDE: &[u8] = include_bytes!("../../../tests/fixtures/cases/BL-15.binlog");

fn kit() -> Kit {
    Kit::from_binlog(UPSERTS).unwrap()
}

fn open(path: &Path) -> Ledger {
    Ledger::open(path, LedgerOptions::default()).unwrap()
}

/// `op schema.table before after` of every row, as another program sees them.
fn rows(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT op || ' ' || coalesce(\"schema\", '-') || '.' || coalesce(\"table\", '-')
                 || ' ' || coalesce(before, '-') || ' ' || coalesce(after, '-')
             FROM capstan_ledger ORDER BY seq",
        )
        .unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn changes(path: &Path) -> Vec<String> {
    rows(path).into_iter().filter(|row| !row.starts_with("schema_change")).collect()
}

/// What the statements of BL-53.sql do, as a person reads them.
const CHANGES: [&str; 9] = [
    r#"insert c04.t - {"id":1,"u":10,"v":0}"#,
    r#"insert c04.t - {"id":2,"u":20,"v":0}"#,
    r#"update c04.t {"id":1,"u":10,"v":0} {"id":1,"u":10,"v":1}"#,
    r#"insert c04.t - {"id":3,"u":30,"v":5}"#,
    r#"update c04.t {"id":2,"u":20,"v":0} {"id":2,"u":20,"v":1}"#,
    r#"delete c04.t {"id":1,"u":10,"v":1} -"#,
    r#"update c04.t {"id":2,"u":20,"v":1} {"id":1,"u":20,"v":7}"#,
    r#"insert c04.t - {"id":5,"u":50,"v":7}"#,
    r#"update c04.t {"id":5,"u":50,"v":7} {"id":6,"u":50,"v":7}"#,
];

#[test]
fn a_file_becomes_a_row_for_each_change_however_it_is_cut() {
    for (name, kit) in [
        ("one transaction to a batch", kit()),
        ("all in one", kit().batch(BatchLimits { max_transactions: 100, max_bytes: 1 << 20 })),
        ("streamed", kit().stream_above(0)),
        ("one broken off", kit().abort_once(3)),
        ("the first broken off", kit().stream_above(0).abort_once(1)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.db");
        let mut kit = kit;
        let position = kit.run_blocking(&mut open(&path)).unwrap().unwrap();
        assert_eq!(position.gtid_set().count(), 7, "{name}");
        assert_eq!(changes(&path), CHANGES, "{name}");
        // Again from what is stored: nothing comes twice.
        assert_eq!(kit.run_blocking(&mut open(&path)).unwrap().unwrap().epoch(), 2, "{name}");
        assert_eq!(changes(&path), CHANGES, "{name}");
    }
}

#[test]
fn a_row_of_the_copy_is_a_row_with_the_set_it_is_exact_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    let position = kit().snapshot().run_blocking(&mut open(&path)).unwrap().unwrap();
    assert_eq!(position.gtid_set().count(), 7);
    let (copied, others): (Vec<_>, Vec<_>) =
        changes(&path).into_iter().partition(|row| row.starts_with("snapshot "));
    let inserted = |row: &String| row.replacen("snapshot", "insert", 1);
    assert_eq!(copied.iter().map(inserted).collect::<Vec<_>>(), [CHANGES[0], CHANGES[1], CHANGES[7]]);
    // What may be there from a copy that was begun before is void from here on.
    let begins: Vec<_> = others.iter().filter(|row| row.starts_with("snapshot_begins")).collect();
    assert_eq!((others.len(), begins.len()), (7, 1));
    let connection = Connection::open(&path).unwrap();
    let set =
        "SELECT count(*) FROM capstan_ledger WHERE op = 'snapshot' AND gtid IS NOT NULL AND before IS NULL";
    assert_eq!(connection.query_row(set, [], |row| row.get::<_, u32>(0)).unwrap(), 3);
}

#[test]
fn a_schema_change_is_a_row_too_with_its_line_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    Kit::from_binlog(CREATE_SELECT).unwrap().run_blocking(&mut open(&path)).unwrap();
    let ops: Vec<String> =
        rows(&path).iter().map(|row| row.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        ops.join(", "),
        "schema_change b27.src, insert b27.src, insert b27.src, schema_change b27.c1, insert b27.c1, insert b27.c1, \
         schema_change b27.c, insert b27.c, schema_change b27.c3, schema_change b27.c4, insert b27.c4, \
         insert b27.c4, schema_change b27.c4"
    );
    assert!(rows(&path)[0].contains("\"statement\":\"CREATE TABLE"), "{}", rows(&path)[0]);
}

#[test]
fn what_fails_or_is_dropped_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    let mut ledger = open(&path);
    let mut kit = kit();
    kit.start(None).unwrap();
    for _ in 0..2 {
        let mut state = kit.next_batch().unwrap();
        let ack = ledger.apply(state.blocking()).unwrap();
        kit.accept(state, ack).unwrap();
    }
    let before = (rows(&path), ledger.position().unwrap());
    // A table that is in the way of the position: the batch's rows must go with it.
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER t BEFORE UPDATE ON capstan_position BEGIN SELECT raise(ABORT, 'SENTINEL'); END",
        )
        .unwrap();
    let mut state = kit.next_batch().unwrap();
    let error = ledger.apply(state.blocking()).unwrap_err();
    assert_eq!((error.class(), error.step()), (FailureClass::Permanent, "write"));
    assert!(!format!("{error} {error:?}").contains("SENTINEL"));
    assert_eq!((rows(&path), ledger.position().unwrap()), before);
    other.execute_batch("DROP TRIGGER t").unwrap();
    // Another program that holds the database makes it wait, not fail.
    ledger.busy_for_test();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(kit.failed(state, before.1.as_ref()), Holds::Expected);
    let mut state = kit.again().unwrap();
    assert_eq!(ledger.apply(state.blocking()).unwrap_err().class(), FailureClass::Transient);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(kit.failed(state, before.1.as_ref()), Holds::Expected);
    let mut state = kit.again().unwrap();
    let ack = ledger.apply(state.blocking()).unwrap();
    kit.accept(state, ack).unwrap();
    assert_eq!(changes(&path), CHANGES[..2]);
}

#[test]
fn nothing_is_written_over_another_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    let mut ledger = open(&path);
    let mut kit = kit();
    kit.start(None).unwrap();
    let mut state = kit.next_batch().unwrap();
    let ack = ledger.apply(state.blocking()).unwrap();
    let ours = ack.position().clone();
    kit.accept(state, ack).unwrap();
    let mut later = ours.clone();
    later
        .add(&"afa0164b-ebef-11f1-b210-02fc00000001:240".parse().unwrap(), capstan_core::time::SourceTime(1));
    for (stored, class) in [(ours.clone().claimed(9), FailureClass::Fenced), (later, FailureClass::Stale)] {
        let other = Connection::open(&path).unwrap();
        other.execute("UPDATE capstan_position SET position = ?1", [stored.encode()]).unwrap();
        let before = rows(&path);
        let mut state = kit.next_batch().unwrap();
        assert_eq!(ledger.apply(state.blocking()).unwrap_err().class(), class);
        assert_eq!(rows(&path), before);
        assert_eq!(ledger.position().unwrap(), Some(stored));
        other.execute("UPDATE capstan_position SET position = ?1", [ours.encode()]).unwrap();
        assert_eq!(kit.failed(state, Some(&ours)), Holds::Expected);
        kit.start(Some(ours.clone())).unwrap();
    }
}

#[test]
fn targets_that_are_not_ours_are_refused_and_left_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let refused = |name: &str| {
        let before = std::fs::read(path(name)).ok();
        let halt = Ledger::open(path(name), LedgerOptions::default()).unwrap_err();
        assert_eq!(std::fs::read(path(name)).ok(), before, "{name}");
        (halt.code, halt.to_string())
    };
    let database = |name: &str, sql: &str| Connection::open(path(name)).unwrap().execute_batch(sql).unwrap();

    std::fs::write(path("text"), "this is no database, but it is long enough to have a header of one")
        .unwrap();
    let (code, text) = refused("text");
    assert_eq!(code, Code::ConfigInvalid);
    assert!(text.contains("is not a SQLite database"), "{text}");

    drop(SqliteCheckpoint::open(path("checkpoint")).unwrap());
    assert_eq!(refused("checkpoint").0, Code::TargetOfAnotherSource);
    database("mirror", "CREATE TABLE capstan_tables (x)");
    assert_eq!(refused("mirror").0, Code::TargetOfAnotherSource);

    drop(open(&path("newer")));
    database("newer", "UPDATE capstan_meta SET value = '2' WHERE key = 'format'");
    assert_eq!(refused("newer").0, Code::PositionFormatNewer);
    drop(open(&path("position")));
    database("position", "INSERT INTO capstan_position VALUES (1, '{\"format\":3}')");
    assert_eq!(refused("position").0, Code::PositionFormatNewer);
    database("position", "UPDATE capstan_position SET position = 'x'");
    assert_eq!(refused("position").0, Code::PositionReadFailed);

    std::fs::create_dir(path("folder")).unwrap();
    assert!(refused("folder").1.contains("is a folder"));
    assert!(refused("no/such/folder").1.contains("does not exist"));

    let held = open(&path("held"));
    assert_eq!(refused("held").0, Code::CheckpointInUse);
    drop(held);
    drop(open(&path("held")));
    assert!(beside(&path("held"), ".lock").exists());

    // Tables of somebody else are no pipeline's: the ledger goes beside them.
    database("theirs", "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    drop(open(&path("theirs")));
}

/// Red without the look at its links: two processes hold one file under two locks and two logs.
#[test]
fn a_file_with_two_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("l.db"), folder.path().join("other.db"));
    drop(open(&path));
    std::fs::hard_link(&path, &other).unwrap();
    for name in [&path, &other] {
        let halt = Ledger::open(name, LedgerOptions::default()).unwrap_err();
        assert_eq!(halt.code, Code::ConfigInvalid, "{halt}");
    }
    std::fs::remove_file(&other).unwrap();
    drop(open(&path));
}

#[test]
fn a_decision_moves_the_position_and_is_recorded_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    let mut ledger = open(&path);
    kit().run_blocking(&mut ledger).unwrap();
    let before = ledger.stored().unwrap().unwrap();
    let mut after = before.clone();
    let gtid = "afa0164b-ebef-11f1-b210-02fc00000001:247";
    after.advance(&capstan_core::deliver::Advance {
        gtids: gtid.parse().unwrap(),
        ..capstan_core::deliver::Advance::default()
    });
    let decision = Decision { kind: "skip".into(), subject: gtid.into(), reason: "a test".into() };
    let other = Expected::new(Some(before.clone().claimed(3)));
    assert_eq!(ledger.decide(&other, &after, &decision).unwrap_err().class(), FailureClass::Fenced);
    ledger.decide(&Expected::new(Some(before)), &after, &decision).unwrap();
    assert_eq!(ledger.stored().unwrap(), Some(after));
    let connection = Connection::open(&path).unwrap();
    let recorded: (i64, String, String, String) = connection
        .query_row("SELECT count(*), kind, subject, reason FROM capstan_decisions", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(recorded, (1, "skip".into(), gtid.into(), "a test".into()));
}

#[test]
fn a_checkpoint_is_stored_over_what_is_expected_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = SqliteCheckpoint::open(folder.path().join("c.db")).unwrap();
    crate::checkpoint::tests::is_conditional(&mut store);
    drop(store);
    let mut again = SqliteCheckpoint::open(folder.path().join("c.db")).unwrap();
    assert!(again.load().unwrap().is_some());
}

#[test]
fn a_full_disk_says_so_and_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    let mut ledger = open(&path);
    ledger.full_for_test();
    let error = Kit::from_binlog(WIDE).unwrap().run_blocking(&mut ledger).unwrap_err();
    assert_eq!((error.code(), error.class()), (Code::TargetFull, FailureClass::Permanent));
    let halt = crate::Halt::from(&error);
    assert_eq!(halt.exit_status(), 4);
    let stored: Option<Position> = ledger.position().unwrap();
    let count = stored.map_or(0, |position| position.gtid_set().count());
    assert_eq!(rows(&path).is_empty(), count == 0, "rows and position stand and fall together");
}
