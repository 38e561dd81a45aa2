//! Tables that no key orders are copied as a whole, from one view, while their writers go on: afterwards the mirror holds
//! what `SELECT` gives, each row as often. What was copied of one when its view is lost is void.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use capstan::sqlite::{Mirror, MirrorOptions, Synchronous};
use capstan::{Builder, Code, CopyLimits, Replica, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::workload::{Numbers, quick_limits};

/// Tables, why each is copied as a whole, and a row of it.
const TABLES: &[(&str, &str, &str, &str)] = &[
    ("none", "a INT, b VARCHAR(20)", "no primary key", "{n} % 7, 'x'"),
    ("nulls", "u INT, v INT, UNIQUE KEY (u)", "no primary key", "NULLIF({n} % 300, 5), 1"),
    ("part", "k TEXT, v INT, PRIMARY KEY (k(6))", "beginning of a column", "CONCAT({n} % 300, 'é'), 1"),
    ("bytes", "v INT, k BLOB NOT NULL, UNIQUE KEY (k(4))", "beginning of a column", "1, {n} % 300"),
    ("strokes", "k VARCHAR(9) CHARACTER SET big5, v INT, PRIMARY KEY (k)", "collation", "{n} % 300, 1"),
    ("sum", "a INT, b INT, UNIQUE KEY ((COALESCE(a, 0) + 1))", "expression", "{n} % 300, 1"),
];

fn server() -> Arc<Server> {
    Arc::new(Server::builder().start().expect("a server"))
}

fn mirror(path: &Path) -> Mirror {
    let mut options = MirrorOptions::default();
    options.synchronous = Synchronous::Off;
    Mirror::open(path, options).unwrap()
}

fn copying(server: &Server, rows: u64) -> Builder {
    let limits = CopyLimits { chunk_rows: rows, ..CopyLimits::default() };
    Replica::builder(url_at(server.port()).parse().unwrap())
        .limits(quick_limits())
        .tables(["snap.*"])
        .snapshot(Vec::<String>::new())
        .copy(limits)
        .until(Until::Now)
}

fn fill(server: &Server) {
    server.sql("CREATE DATABASE snap").unwrap();
    for (table, columns, _, row) in TABLES {
        server.sql(&format!("CREATE TABLE snap.{table} ({columns})")).unwrap();
        let rows: Vec<String> =
            (0..250).map(|n| format!("({})", row.replace("{n}", &n.to_string()))).collect();
        server.sql(&format!("INSERT IGNORE INTO snap.{table} VALUES {}", rows.join(","))).unwrap();
    }
}

/// Writers that insert, change and delete rows of all of them; rows that are equal one by one.
struct Writers(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Writers {
    fn start(server: &Arc<Server>, count: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let writer = |w: u64| {
            let (server, stop) = (Arc::clone(server), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut session = server.connect().unwrap();
                let (mut numbers, mut written) = (Numbers(w), 0);
                while !stop.load(Ordering::Relaxed) || written < 30 {
                    let (table, _, _, row) = TABLES[numbers.between(0, TABLES.len() as u64 - 1) as usize];
                    let row = row.replace("{n}", &numbers.between(0, 400).to_string());
                    let last = if table == "none" { "a" } else { "v" };
                    let last = if table == "sum" { "b" } else { last };
                    for sql in [
                        "BEGIN".to_owned(),
                        format!("INSERT IGNORE INTO snap.{table} VALUES ({row})"),
                        format!("UPDATE snap.{table} SET {last} = {} ORDER BY RAND() LIMIT 1", written % 5),
                        format!("DELETE FROM snap.{table} ORDER BY RAND() LIMIT 1"),
                        "COMMIT".to_owned(),
                    ] {
                        if session.query(&sql).is_err() {
                            let _ = session.query("ROLLBACK");
                            break;
                        }
                    }
                    written += 1;
                }
            })
        };
        Self(Arc::clone(&stop), (1..=count).map(writer).collect())
    }

    fn stop(self) {
        self.0.store(true, Ordering::Relaxed);
        for writer in self.1 {
            writer.join().unwrap();
        }
    }
}

#[test]
fn a_table_without_a_key_that_is_copied_under_writers_is_the_table() {
    let server = server();
    fill(&server);
    for (rows, writers) in [(1000, 0), (3, 2), (40, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let load = Writers::start(&server, writers);
        let (copied, _) = Follower::blocking(copying(&server, rows), mirror(&path)).end();
        load.stop();
        copied.unwrap();
        Follower::blocking(copying(&server, rows), mirror(&path)).end().0.unwrap();
        assert_equal(&server, "snap", &path);
    }
}

/// A row that was copied before the view was lost is copied anew, or is gone.
#[test]
fn what_was_copied_before_the_view_was_lost_is_void() {
    let server = server();
    fill(&server);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    for (table, _, why, _) in TABLES {
        let whole = || {
            let builder = copying(&server, 5).tables([format!("snap.{table}")]);
            builder.snapshot([format!("snap.{table}")])
        };
        let path = folder.path().join(format!("{table}.db"));
        // Slowly, so that it is found between two chunks.
        let follower = Follower::blocking(whole().copy_rate(2_000), mirror(&path));
        follower.wait_until("some of it is there", |status| {
            status.copies.iter().any(|copy| {
                assert!(copy.chunks == 0 || copy.whole.is_some_and(|told| told.contains(why)), "{copy:?}");
                copy.state == "copying" && copy.chunks > 1
            })
        });
        follower.drain().0.unwrap();
        let held = rusqlite::Connection::open(&path).unwrap();
        let rows = |held: &rusqlite::Connection| -> u64 {
            let sql = format!("SELECT COUNT(*) FROM \"snap.{table}\"");
            held.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert!(rows(&held) > 0, "{table}");
        drop(held);
        server.sql(&format!("DELETE FROM snap.{table} LIMIT 100")).unwrap();
        Follower::blocking(whole(), mirror(&path)).end().0.unwrap();
        let left = server.sql(&format!("SELECT COUNT(*) FROM snap.{table}")).unwrap();
        assert_eq!(rows(&rusqlite::Connection::open(&path).unwrap()).to_string(), left.trim(), "{table}");
    }
    Follower::blocking(copying(&server, 100), mirror(&path)).end().0.unwrap();
    assert_equal(&server, "snap", &path);
}

/// The process goes on; its connections are killed in the middle of a table.
#[test]
fn a_lost_view_begins_its_table_anew() {
    let server = server();
    fill(&server);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    server
        .sql("INSERT INTO snap.none SELECT a.a, REPEAT('y', 20) FROM snap.none a, snap.none b LIMIT 3000")
        .unwrap();
    let builder = copying(&server, 5).snapshot(["snap.none"]).copy_rate(10_000);
    let follower = Follower::blocking(builder, mirror(&path));
    follower.wait_until("some of it is there", |status| {
        status.copies.iter().any(|copy| copy.table == "none" && copy.state == "copying" && copy.chunks > 2)
    });
    let mut session = server.connect().unwrap();
    session.query("DELETE FROM snap.none WHERE a = 3").unwrap();
    let ids = "SELECT ID FROM performance_schema.processlist WHERE USER = 'root' AND ID <> CONNECTION_ID()";
    let mut killed = 0;
    // The stream and two connections of the copy.
    while killed < 3 {
        let ids = session.sql(ids).unwrap();
        killed += ids.lines().filter(|id| session.query(&format!("KILL {id}")).is_ok()).count();
    }
    follower.end().0.unwrap();
    Follower::blocking(copying(&server, 5).snapshot(["snap.none"]), mirror(&path)).end().0.unwrap();
    let held = rusqlite::Connection::open(&path).unwrap();
    let held: u64 = held.query_row("SELECT COUNT(*) FROM \"snap.none\"", [], |row| row.get(0)).unwrap();
    assert_eq!(held.to_string(), session.sql("SELECT COUNT(*) FROM snap.none").unwrap().trim());
}

/// What cannot be copied is told before the first table is.
#[test]
fn nothing_is_copied_before_every_table_was_looked_at() {
    let server = server();
    for (last, code) in [
        ("TABLE snap.z (a INT PRIMARY KEY) ENGINE = MyISAM", Code::SnapshotKeyUnsupported),
        ("TABLE snap.z (a INT PRIMARY KEY, b ENUM('?') CHARACTER SET utf16)", Code::UnsupportedColumnType),
    ] {
        server
            .sql(&format!(
                "DROP DATABASE IF EXISTS snap; CREATE DATABASE snap; CREATE {last};
                 CREATE TABLE snap.a (id INT PRIMARY KEY); INSERT INTO snap.a VALUES (1), (2)"
            ))
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let (end, status) = Follower::blocking(copying(&server, 1), mirror(&path)).end();
        let halt = end.unwrap_err();
        assert_eq!(halt.code, code);
        assert!(format!("{halt}").contains("snap.z"), "{halt}");
        assert!(status.copies.iter().all(|copy| copy.chunks == 0), "{:?}", status.copies);
    }
}
