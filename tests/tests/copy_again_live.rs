//! A table that its mirror had to stop for is copied again while the rest streams, under writers and kills: each halt that
//! says so is passed, and in the end both sides are equal.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use capstan::core::deliver::{CopyState, TableCopy};
use capstan::sqlite::{Mirror, MirrorOptions};
use capstan::{Builder, Code, CopyLimits, Decision, Expected, Replica, Stored, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, Syncing, url_at};
use capstan_tests::mirror::{assert_equal, mirror_rows};
use capstan_tests::workload::{Numbers, quick_limits};

const SYNC_CHILD: &str = env!("CARGO_BIN_EXE_sync_child");
const ROWS: u64 = 200;

fn fill(server: &Server) {
    server
        .sql(
            "CREATE DATABASE d; CREATE DATABASE aside; USE d;
             CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(40));
             CREATE TABLE other (id INT PRIMARY KEY, v INT)",
        )
        .unwrap();
    let mut session = server.connect().unwrap();
    session.query("USE d; BEGIN").unwrap();
    for n in 0..ROWS {
        session
            .query(&format!("INSERT INTO t VALUES ({n}, {n}, 'row {n}'); INSERT INTO other VALUES ({n}, 0)"))
            .unwrap();
    }
    session.query("COMMIT").unwrap();
}

/// Writers of both tables, in transactions that hold changes of both.
struct Load {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(server: &Arc<Server>) -> Self {
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = |seed| {
            let (server, stop, made) = (Arc::clone(server), Arc::clone(&stop), Arc::clone(&made));
            std::thread::spawn(move || {
                let mut session = server.connect().unwrap();
                session.query("USE d; SET innodb_lock_wait_timeout = 1").unwrap();
                let mut numbers = Numbers(seed);
                while !stop.load(Ordering::Relaxed) {
                    let mut id = || numbers.between(0, ROWS * 2);
                    let (one, two, three, four) = (id(), id(), id(), id());
                    let done = [
                        "BEGIN".to_owned(),
                        format!("INSERT IGNORE INTO t (id, v, s) VALUES ({one}, {two}, 'new')"),
                        format!("UPDATE t SET v = v + 1 WHERE id IN ({two}, {three})"),
                        format!("UPDATE IGNORE t SET id = {four} WHERE id = {three}"),
                        format!("DELETE FROM t WHERE id = {}", four / 2),
                        format!("UPDATE other SET v = v + 1 WHERE id = {}", one / 2),
                        "COMMIT".to_owned(),
                    ]
                    .iter()
                    .all(|sql| session.query(sql).is_ok());
                    if done {
                        made.fetch_add(1, Ordering::Relaxed);
                    } else {
                        let _ = session.query("ROLLBACK");
                    }
                    std::thread::sleep(Duration::from_millis(3));
                }
            })
        };
        let threads = [3, 5, 7].map(writer).into();
        Self { stop, made, threads }
    }

    fn some_more(&self) {
        let before = self.made.load(Ordering::Relaxed);
        while self.made.load(Ordering::Relaxed) < before + 10 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn open(path: &Path) -> Mirror {
    Mirror::open(path, MirrorOptions::default()).unwrap()
}

fn copy_of_t(path: &Path) -> Option<TableCopy> {
    let position = open(path).stored().unwrap().unwrap();
    position.copies().get(&("d".to_owned(), "t".to_owned())).cloned()
}

struct Target {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn target() -> Target {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    Target { _folder: folder, path }
}

/// From the halt `code` to equality, with kills in between.
fn passed(cause: impl Fn(&Server, &Path), code: Code) {
    let server = Arc::new(Server::start().unwrap());
    fill(&server);
    let target = target();
    let (url, mirror) = (url_at(server.port()), format!("mirror:{}", target.path.display()));
    let run = |options: &[&str], fault| {
        let mut arguments = vec![url.as_str(), &mirror, "chunk=20"];
        arguments.extend_from_slice(options);
        Syncing::start(SYNC_CHILD, &arguments, fault)
    };
    run(&["snapshot=1000", "until=now"], None).finish().well();
    let load = Load::start(&server);
    load.some_more();
    cause(&server, &target.path);
    load.some_more();
    let halted = run(&["until=now"], None).finish();
    assert!(halted.stderr.starts_with(code.as_str()), "{}", halted.stderr);
    assert!(halted.stderr.contains("d.t"), "{}", halted.stderr);
    // In vain without the decision, and again.
    let halted = run(&["until=now"], None).finish();
    assert!(halted.stderr.starts_with(code.as_str()), "{}", halted.stderr);
    let again = "copy_again=d.t";
    // Before the first chunk; then within later ones, with the decision made anew each time.
    let mut before = 0;
    for nth in [1, 2, 3, 3] {
        let ended = run(&[again], Some(("snapshot_rows", nth))).finish();
        assert!(ended.is_at("snapshot_rows"), "{}", ended.stderr);
        let copy = copy_of_t(&target.path).unwrap();
        assert_eq!(copy.chunks, before + nth - 1, "it goes on where it was");
        assert_eq!(copy.state, if copy.chunks == 0 { CopyState::Waiting } else { CopyState::Copying });
        before = copy.chunks;
        load.some_more();
    }
    // It goes on without being told.
    let ended = run(&[], Some(("snapshot_rows", 2))).finish();
    assert!(ended.is_at("snapshot_rows"), "{}", ended.stderr);
    assert_eq!(copy_of_t(&target.path).unwrap().chunks, before + 1);
    run(&[again, "until=now"], None).finish().well();
    assert_eq!(copy_of_t(&target.path).unwrap().state, CopyState::Done);
    load.stop();
    run(&["until=now"], None).finish().well();
    assert_equal(&server, "d", &target.path);
}

#[test]
fn a_schema_change_that_is_not_followed() {
    let cause = |server: &Server, _: &Path| {
        server.sql("ALTER TABLE d.t ADD c INT DEFAULT (v * 3)").unwrap();
    };
    passed(cause, Code::SchemaChangeNeedsCopy);
}

/// As tools do that build a new table beside the old one.
#[test]
fn a_table_that_takes_the_place_of_a_captured_one() {
    let cause = |server: &Server, _: &Path| {
        server
            .sql(
                "CREATE TABLE aside.n LIKE d.t; ALTER TABLE aside.n ADD c INT;
                 INSERT INTO aside.n (id, v, s) SELECT id + 1000, v, 'before' FROM d.t;
                 RENAME TABLE d.t TO aside.old, aside.n TO d.t",
            )
            .unwrap();
    };
    passed(cause, Code::TableEnteredCapture);
}

#[test]
fn a_mirror_that_somebody_else_wrote_to() {
    let cause = |server: &Server, path: &Path| {
        let mirror = rusqlite::Connection::open(path).unwrap();
        assert!(mirror.execute("DELETE FROM \"d.t\" WHERE id % 3 = 0", []).unwrap() > 0);
        server.sql("UPDATE d.t SET v = v + 1").unwrap();
    };
    passed(cause, Code::MirrorDiverged);
}

fn again(server: &Server, tables: &[&str]) -> Builder {
    Replica::builder(url_at(server.port()).parse().unwrap())
        .limits(quick_limits())
        .tables(["d.*"])
        .copy(CopyLimits { chunk_rows: 20, ..CopyLimits::default() })
        .copy_again(tables.iter().copied())
        .until(Until::Now)
}

fn run(builder: Builder, path: &Path) -> Result<(), Code> {
    Follower::blocking(builder, open(path)).end().0.map(|_| ()).map_err(|halt| halt.code)
}

fn synced() -> (Arc<Server>, Target) {
    let server = Arc::new(Server::start().unwrap());
    fill(&server);
    let target = target();
    run(again(&server, &[]).snapshot(Vec::<String>::new()), &target.path).unwrap();
    (server, target)
}

/// One that was dropped since has no rows to copy, and the transaction that stopped it is passed all the same.
#[test]
fn a_table_that_is_gone_since() {
    let (server, target) = synced();
    rusqlite::Connection::open(&target.path).unwrap().execute("DELETE FROM \"d.t\"", []).unwrap();
    server.sql("BEGIN; UPDATE d.t SET v = 9; UPDATE d.other SET v = 9; COMMIT; DROP TABLE d.t").unwrap();
    assert_eq!(run(again(&server, &[]), &target.path), Err(Code::MirrorDiverged));
    run(again(&server, &["d.t"]), &target.path).unwrap();
    assert_equal(&server, "d", &target.path);
    assert!(!mirror_rows(&target.path).contains_key("d.t"));
    // Names that nobody has.
    assert_eq!(run(again(&server, &["e.t"]), &target.path), Err(Code::ConfigInvalid));
    assert_eq!(run(again(&server, &["d.no*"]), &target.path), Err(Code::ConfigInvalid));
    run(again(&server, &["d.nobody"]), &target.path).unwrap();
    assert_equal(&server, "d", &target.path);
}

/// A copy that is under way is not begun anew by who says so again, but by a decision that is recorded.
#[test]
fn what_is_under_way_begins_anew_by_a_decision_alone() {
    let (server, target) = synced();
    let spoil = || {
        let mirror = rusqlite::Connection::open(&target.path).unwrap();
        assert!(mirror.execute("DELETE FROM \"d.t\" WHERE id = 3", []).unwrap() > 0);
        server.sql("UPDATE d.t SET v = v + 1 WHERE id = 3").unwrap();
    };
    spoil();
    assert_eq!(run(again(&server, &[]), &target.path), Err(Code::MirrorDiverged));
    let (url, mirror) = (url_at(server.port()), format!("mirror:{}", target.path.display()));
    let child = [url.as_str(), &mirror, "chunk=20", "copy_again=d.t"];
    assert!(Syncing::start(SYNC_CHILD, &child, Some(("snapshot_rows", 3))).finish().is_at("snapshot_rows"));
    spoil();
    assert_eq!(run(again(&server, &["d.t"]), &target.path), Err(Code::MirrorDiverged));
    {
        let mut mirror = open(&target.path);
        let stored = mirror.stored().unwrap().unwrap();
        let anew = stored.clone().with_copies([("d".to_owned(), "t".to_owned())]).claimed(1);
        let decision =
            Decision { kind: "copy-again".into(), subject: "d.t".into(), reason: "spoiled".into() };
        mirror.decide(&Expected::new(Some(stored)), &anew, &decision).unwrap();
    }
    run(again(&server, &["d.t"]), &target.path).unwrap();
    assert_equal(&server, "d", &target.path);
}

/// What a statement does to a table while it is copied: it is copied anew, under its new name if it has one.
#[test]
fn schema_changes_while_the_table_is_copied() {
    for (statement, rows) in [
        ("ALTER TABLE d.t ADD c INT DEFAULT (v * 3)", "d.t"),
        ("ALTER TABLE d.t MODIFY v BIGINT UNSIGNED, DROP s", "d.t"),
        ("ALTER TABLE d.t ADD c INT DEFAULT 7", "d.t"),
        ("ALTER TABLE d.t CHANGE id k BIGINT", "d.t"),
        ("ALTER TABLE d.t DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY", "d.t"),
        ("RENAME TABLE d.t TO d.u", "d.u"),
        ("ALTER TABLE d.t RENAME TO d.u, ADD c INT", "d.u"),
        ("RENAME TABLE d.t TO d.u, d.other TO d.t", "d.u"),
        (
            "CREATE TABLE aside.n LIKE d.t; INSERT INTO aside.n SELECT id + 7, v, s FROM d.t; RENAME TABLE d.t TO aside.o, aside.n TO d.t",
            "d.t",
        ),
        ("TRUNCATE d.t; INSERT INTO d.t VALUES (4, 4, 'four')", "d.t"),
        ("RENAME TABLE d.t TO aside.o", "d.other"),
        ("DROP TABLE d.t", "d.other"),
    ] {
        let (server, target) = synced();
        let (url, mirror) = (url_at(server.port()), format!("mirror:{}", target.path.display()));
        let child = [url.as_str(), &mirror, "chunk=20", "copy_again=d.t"];
        let ended = Syncing::start(SYNC_CHILD, &child, Some(("snapshot_rows", 4))).finish();
        assert!(ended.is_at("snapshot_rows"), "{}", ended.stderr);
        server.sql("UPDATE d.t SET v = v + 1 WHERE id % 7 = 0").unwrap();
        server.sql(statement).unwrap();
        server.sql("UPDATE d.other SET v = 5 WHERE id < 9").ok();
        run(again(&server, &[]), &target.path).unwrap_or_else(|code| panic!("{statement}: {code}"));
        assert_equal(&server, "d", &target.path);
        assert!(mirror_rows(&target.path).contains_key(rows), "{statement}");
    }
}
