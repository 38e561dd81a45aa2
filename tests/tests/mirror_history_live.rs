//! Where a mirror may begin, what it captures, and names and modes that change what a statement means.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::process::Stdio;

use capstan::core::capture::CapturedSet;
use capstan::sqlite::{Mirror, MirrorOptions};
use capstan::{Builder, Code, Decision, Expected, Halt, Replica, Start, Stopped, Stored as _, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::{assert_equal, mirror_rows};
use capstan_tests::workload::quick_limits;

fn server() -> Server {
    let server = Server::start().expect("a server");
    server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    server
}

fn replica(server: &Server) -> Builder {
    Replica::builder(url_at(server.port()).parse().unwrap()).limits(quick_limits()).until(Until::Now)
}

fn run(builder: Builder, path: &Path, partial: bool) -> Result<Stopped, Halt> {
    let mut options = MirrorOptions::default();
    options.partial = partial;
    Follower::blocking(builder, Mirror::open(path, options).unwrap()).end().0
}

fn code(end: Result<Stopped, Halt>) -> Option<Code> {
    end.err().map(|halt| halt.code)
}

/// Red without the core's test of the start, and without the count of rows that a statement touched.
#[test]
fn a_mirror_begins_where_the_log_does_or_says_that_it_is_none() {
    let server = server();
    server
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let whole = |start| replica(&server).start(start).whole_history(true);
    let executed: capstan::GtidSet = server.gtid_executed().unwrap().trim().parse().unwrap();
    assert_eq!(code(run(whole(Start::Current), &at("current"), false)), Some(Code::HistoryIncomplete));
    assert_eq!(
        code(run(whole(Start::At(executed.clone())), &at("at"), false)),
        Some(Code::HistoryIncomplete)
    );
    assert_eq!(code(run(whole(Start::Earliest), &at("earliest"), false)), None);
    assert_equal(&server, "d", &at("earliest"));
    // What is stored goes on, whatever is purged before it.
    let purge =
        "FLUSH BINARY LOGS; PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY; INSERT INTO d.t VALUES (2)";
    server.sql(purge).unwrap();
    assert_eq!(code(run(whole(Start::Earliest), &at("purged"), false)), Some(Code::HistoryIncomplete));
    assert_eq!(code(run(replica(&server).whole_history(true), &at("earliest"), false)), None);
    assert_equal(&server, "d", &at("earliest"));
    // A copy of a part is one only for who says so; of a row it never had it knows what is told of it from then on.
    let part = || replica(&server).start(Start::Earliest);
    assert_eq!(code(run(part(), &at("part"), false)), Some(Code::HistoryIncomplete), "no table was created");
    assert_eq!(code(run(part(), &at("partial"), true)), None);
    assert_eq!(mirror_rows(&at("partial"))["d.t"], ["2"]);
    let more = |sql: &str| {
        server.sql(sql).unwrap();
        assert_eq!(code(run(replica(&server), &at("partial"), false)), None, "{sql}");
        mirror_rows(&at("partial")).get("d.t").cloned().unwrap_or_default()
    };
    assert_eq!(more("UPDATE d.t SET id = 5 WHERE id = 1"), ["2", "5"]);
    assert_eq!(code(run(replica(&server), &at("earliest"), false)), None);
    server.sql("SET sql_log_bin = 0; INSERT INTO d.t VALUES (8), (9)").unwrap();
    assert_eq!(more("DELETE FROM d.t WHERE id = 8"), ["2", "5"]);
    // Emptied, it is whole from then on, as one that was created is.
    assert_eq!(more("TRUNCATE d.t; INSERT INTO d.t VALUES (1)"), ["1"]);
    server.sql("CREATE TABLE d.w (id INT PRIMARY KEY); INSERT INTO d.w VALUES (1)").unwrap();
    assert_eq!(more("INSERT INTO d.t VALUES (3)"), ["1", "3"]);
    server.sql("SET sql_log_bin = 0; INSERT INTO d.t VALUES (7); INSERT INTO d.w VALUES (7)").unwrap();
    for table in ["t", "w"] {
        let copy = at(&format!("partial_{table}"));
        std::fs::copy(at("partial"), &copy).unwrap();
        server.sql(&format!("DELETE FROM d.{table} WHERE id = 7")).unwrap();
        assert_eq!(code(run(replica(&server), &copy, false)), Some(Code::MirrorDiverged), "{table}");
    }
}

#[test]
fn a_table_that_the_log_does_not_create_is_no_copy() {
    let server = server();
    server
        .sql(
            "CREATE DATABASE d; SET sql_log_bin = 0; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1);
             SET sql_log_bin = 1; CREATE TABLE d.u (id INT); INSERT INTO d.u VALUES (7); INSERT INTO d.t VALUES (2)",
        )
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let halt = run(replica(&server).start(Start::Earliest).whole_history(true), &path, false).unwrap_err();
    assert_eq!(halt.code, Code::HistoryIncomplete);
    assert!(halt.to_string().contains("d.t"), "{halt}");
    assert_eq!(mirror_rows(&path).len(), 1, "what came before it is there");
}

/// The README's recipe.
#[test]
fn a_mirror_is_seeded_by_a_dump_that_goes_through_a_scratch_server() {
    let (source, scratch) = (server(), server());
    source
        .sql(
            "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), f FLOAT, b BLOB, ts TIMESTAMP);
             INSERT INTO t VALUES (1, 'one', 0.1, X'00ff', '2024-01-01 00:00:00'), (2, NULL, -0e0, '', NULL);
             CREATE TABLE u (x JSON, y ENUM('p', 'q')); INSERT INTO u VALUES ('[1]', 'q'), ('[1]', 'q')",
        )
        .unwrap();
    source.sql("FLUSH BINARY LOGS; PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY").unwrap();
    let dump = source
        .mysql()
        .program("mysqldump")
        .unwrap()
        .args(["--user=root", "--single-transaction", "--set-gtid-purged=COMMENTED"])
        .arg(format!("--socket={}", source.socket().display()))
        .args(["--databases", "d"])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let text = String::from_utf8_lossy(&dump.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("GTID_PURGED=")).expect("the dump's GTID set");
    let parts = line.split('\'').map(|part| part.trim_start_matches('+'));
    let seeded: capstan::GtidSet =
        parts.filter(|part| part.contains(':')).find_map(|part| part.parse().ok()).expect(line);
    // The source goes on meanwhile.
    source
        .sql("UPDATE d.t SET a = 'two' WHERE id = 2; DELETE FROM d.u LIMIT 1; ALTER TABLE d.t ADD c INT")
        .unwrap();
    // The dump would keep itself out of the scratch server's log.
    let lines = dump.stdout.split_inclusive(|byte| *byte == b'\n');
    let logged: Vec<u8> =
        lines.filter(|line| !line.starts_with(b"SET @@SESSION.SQL_LOG_BIN")).flatten().copied().collect();
    scratch.connect().unwrap().query_bytes(&logged).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let tables = |server: &Server| replica(server).tables(["d.*"]);
    run(tables(&scratch).start(Start::Earliest).whole_history(true), &path, false).unwrap();
    let onto = tables(&source).start(Start::At(seeded)).override_stored(true);
    run(onto, &path, false).unwrap_or_else(|halt| panic!("{halt}"));
    assert_equal(&source, "d", &path);
    source.sql("INSERT INTO d.t (id, c) VALUES (3, 4)").unwrap();
    run(tables(&source), &path, false).unwrap();
    assert_equal(&source, "d", &path);
}

/// The server has no swap of a unique key within a statement: it refuses the first collision. In a transaction, and by
/// REPLACE and upserts over several keys, values change places row by row, in the order of the log.
///
/// Red with the source's secondary unique keys declared in the mirror and rows applied out of that order.
#[test]
fn values_of_a_unique_key_change_places() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    server
        .sql(
            "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, v INT, UNIQUE (v));
             INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3), (4, NULL, NULL), (5, NULL, NULL);
             CREATE TABLE k (u INT UNIQUE, v INT); INSERT INTO k VALUES (1, 1), (2, 2), (NULL, 1), (NULL, 1)",
        )
        .unwrap();
    let swap = "UPDATE d.t SET u = CASE u WHEN 10 THEN 20 WHEN 20 THEN 10 END WHERE id < 3";
    assert!(server.sql(swap).is_err(), "it is refused");
    server
        .sql(
            "USE d; BEGIN; UPDATE t SET u = NULL WHERE id = 1; UPDATE t SET u = 10 WHERE id = 2; UPDATE t SET u = 20 WHERE id = 1; COMMIT;
             UPDATE t SET u = u + 100, v = v + 1 ORDER BY id DESC; UPDATE t SET v = 9 - v WHERE id = 1;
             REPLACE INTO t VALUES (9, 130, 3); INSERT INTO t VALUES (10, 120, 99) ON DUPLICATE KEY UPDATE u = 77;
             SET unique_checks = 0; UPDATE t SET id = id + 100 ORDER BY id DESC; UPDATE k SET u = u + 1 ORDER BY u DESC;
             UPDATE k SET v = 9 WHERE u IS NULL LIMIT 1; REPLACE INTO k VALUES (2, 5)",
        )
        .unwrap();
    run(replica(&server).start(Start::Earliest), &path, false).unwrap_or_else(|halt| panic!("{halt}"));
    assert_equal(&server, "d", &path);
}

/// BL-49: the server empties MEMORY tables after its restart, and says so in the log when they are first used.
#[test]
fn tables_that_a_restart_empties_are_empty_here() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    server
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.h (id INT PRIMARY KEY) ENGINE=MEMORY; INSERT INTO d.h VALUES (1), (2);
             CREATE TABLE d.i (id INT PRIMARY KEY); INSERT INTO d.i VALUES (1); TRUNCATE TABLE d.i; INSERT INTO d.i VALUES (5)",
        )
        .unwrap();
    run(replica(&server).start(Start::Earliest), &path, false).unwrap();
    assert_equal(&server, "d", &path);
    server.restart().unwrap();
    server.sql("SELECT * FROM d.h; INSERT INTO d.h VALUES (2)").unwrap();
    run(replica(&server), &path, false).unwrap();
    assert_equal(&server, "d", &path);
    assert_eq!(mirror_rows(&path)["d.h"], ["2"]);
}

/// A recorded decision, as `capstan position` makes it.
fn accept(path: &Path, tables: &[&str]) {
    let mut mirror = Mirror::open(path, MirrorOptions::default()).unwrap();
    let stored = mirror.stored().unwrap().unwrap();
    let captured = CapturedSet::parse(tables, &[], &[]).unwrap().canonical();
    let moved = stored.clone().with_captured(captured.clone()).claimed(1);
    let decision = Decision { kind: "accept-tables".into(), subject: captured, reason: "a test".into() };
    mirror.decide(&Expected::new(Some(stored)), &moved, &decision).unwrap();
}

/// Red without the mirror's part in the decision: the table that left would come back with a hole in it.
#[test]
fn another_captured_set_leaves_no_hole_in_a_mirror() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let rows = |name: &str| mirror_rows(&path).get(name).cloned().unwrap_or_default();
    server
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); CREATE TABLE d.u (id INT); INSERT INTO d.t VALUES (1);
             INSERT INTO d.u VALUES (1), (1)",
        )
        .unwrap();
    let go = |tables: &str, partial| run(replica(&server).tables([tables]), &path, partial);
    run(replica(&server).tables(["d.*"]).start(Start::Earliest).whole_history(true), &path, false).unwrap();
    assert_eq!(code(go("d.t", false)), Some(Code::CaptureSetChanged));
    accept(&path, &["d.t"]);
    // Missed by the mirror.
    server.sql("INSERT INTO d.u VALUES (2); INSERT INTO d.t VALUES (2)").unwrap();
    go("d.t", false).unwrap();
    assert_eq!((rows("d.t"), rows("d.u")), (vec!["1".into(), "2".into()], vec![]));
    let forgotten: u64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM \"d.u~forgotten\"", [], |row| row.get(0))
        .unwrap();
    assert_eq!(forgotten, 2);
    accept(&path, &["d.*"]);
    server.sql("INSERT INTO d.t VALUES (3)").unwrap();
    go("d.*", false).unwrap();
    server.sql("DELETE FROM d.u WHERE id = 1; INSERT INTO d.u VALUES (3)").unwrap();
    assert_eq!(code(go("d.*", false)), Some(Code::HistoryIncomplete));
    go("d.*", true).unwrap();
    assert_eq!((rows("d.t").len(), rows("d.u")), (3, vec!["3".into()]), "a part, and said so");
    server.sql("TRUNCATE d.u; INSERT INTO d.u VALUES (4)").unwrap();
    go("d.*", false).unwrap();
    assert_equal(&server, "d", &path);
}

#[test]
fn what_is_captured_comes_and_goes_by_its_name() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let builder =
        || replica(&server).tables(["d.*"]).exclude(["d.out*"]).exclude_columns(["d.t.secret", "d.k.id"]);
    server
        .sql(
            "CREATE DATABASE d; CREATE DATABASE e; USE d;
             CREATE TABLE t (id INT PRIMARY KEY, secret TEXT, a INT); INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2);
             CREATE TABLE k (id INT PRIMARY KEY, a INT); INSERT INTO k VALUES (1, 5), (2, 5), (3, 6);
             UPDATE k SET a = 7 WHERE id = 2; DELETE FROM k WHERE id = 3;
             CREATE TABLE goes (id INT); INSERT INTO goes VALUES (1);
             CREATE TEMPORARY TABLE t2 (id INT); INSERT INTO t2 VALUES (1); DROP TEMPORARY TABLE t2;
             CREATE TEMPORARY TABLE goes (z INT); INSERT INTO goes VALUES (9); TRUNCATE goes; DROP TEMPORARY TABLE goes",
        )
        .unwrap();
    let go = || run(builder().start(Start::Earliest), &path, false);
    go().unwrap();
    let shown = |name: &str| mirror_rows(&path).get(name).cloned().unwrap_or_default();
    assert_eq!(
        (shown("d.t"), shown("d.k"), shown("d.goes")),
        (vec!["1,1".into(), "2,2".into()], vec!["5".into(), "7".into()], vec!["1".into()])
    );
    let resume = || run(builder(), &path, false);
    server.sql("RENAME TABLE d.goes TO e.gone; ALTER TABLE d.t ADD b INT DEFAULT 3, DROP secret; UPDATE d.t SET a = 4 WHERE id = 2").unwrap();
    resume().unwrap();
    assert!(shown("d.goes").is_empty());
    assert_eq!(shown("d.t"), ["1,1,3", "2,4,3"]);
    // Swapped over a name that is not captured: nothing moved in or out.
    server.sql("CREATE TABLE d.u (x INT); INSERT INTO d.u VALUES (9); RENAME TABLE d.t TO e.tmp, d.u TO d.t, e.tmp TO d.u; INSERT INTO d.t VALUES (8)").unwrap();
    resume().unwrap();
    assert_eq!(
        (shown("d.t"), shown("d.u")),
        (vec!["8".into(), "9".into()], vec!["1,1,3".into(), "2,4,3".into()])
    );
    server.sql("RENAME TABLE e.gone TO d.back").unwrap();
    assert_eq!(code(resume()), Some(Code::TableEnteredCapture));
}

#[test]
fn names_that_sqlite_cannot_hold_side_by_side_and_modes_that_change_a_text() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let mut session = server.connect().unwrap();
    let mut sql = |text: &str| session.sql(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    sql("CREATE DATABASE d; CREATE DATABASE `d.x`; CREATE DATABASE sqlite_d; CREATE DATABASE D; USE d");
    for table in ["d.T", "d.t", "D.t", "`d.x`.t", "d.`x.t`", "sqlite_d.t", "d.`q\"u``o te`", "d.`ünï`"] {
        sql(&format!(
            "CREATE TABLE {table} (`a b` INT PRIMARY KEY, `rowid` INT, `capstan_row` TEXT, `\"` INT)"
        ));
        sql(&format!("INSERT INTO {table} VALUES (1, 2, '{}', 3), (2, 3, 'x', 4)", table.len()));
        sql(&format!("UPDATE {table} SET `a b` = 5 WHERE `a b` = 2; ALTER TABLE {table} DROP PRIMARY KEY"));
        sql(&format!(
            "INSERT INTO {table} VALUES (1, 2, 'same', 3), (1, 2, 'same', 3); DELETE FROM {table} WHERE `capstan_row` = 'same' LIMIT 1"
        ));
    }
    sql("RENAME TABLE d.T TO d.tmp, d.t TO d.T, d.tmp TO d.t");
    sql(
        "SET sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'; ALTER TABLE \"t\" ADD \"n\" VARCHAR(9) DEFAULT 'a\\\\b'",
    );
    sql(
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES'; ALTER TABLE T ADD n VARCHAR(9) DEFAULT 'a\\'",
    );
    sql("SET sql_mode = 'STRICT_TRANS_TABLES'; ALTER TABLE `x.t` ADD n VARCHAR(9) DEFAULT 'a\\\\'");
    sql("/*!80000 ALTER */ TABLE `x.t` /*!99999 DROP n, */ /*!50000 ADD m INT */ -- , DROP n");
    session
        .query_bytes(b"SET NAMES gbk; ALTER TABLE `x.t` ADD `\x9a\x5c` INT DEFAULT 7, ADD z ENUM('\x9a\x5c')")
        .unwrap();
    session
        .query_bytes(
            b"SET NAMES latin1; ALTER TABLE `x.t` ADD `\xe9` INT, ADD y ENUM('\xe9', 'n') DEFAULT 'n'",
        )
        .unwrap();
    session.sql("SET NAMES utf8mb4; UPDATE `x.t` SET `é` = 3, `歕` = 8 WHERE `rowid` = 2; INSERT INTO t VALUES (9, 9, 'n', 9, 'x')").unwrap();
    run(replica(&server).start(Start::Earliest).whole_history(true), &path, false)
        .unwrap_or_else(|halt| panic!("{halt}"));
    let mut source = capstan_tests::mirror::source_rows(&server, "d");
    source.append(&mut capstan_tests::mirror::source_rows(&server, "D"));
    source.append(&mut capstan_tests::mirror::source_rows(&server, "sqlite"));
    let found = capstan_tests::mirror::differences(&source, &mirror_rows(&path));
    assert!(found.is_empty() && source.len() == 8, "{}", found.join("\n"));
}
