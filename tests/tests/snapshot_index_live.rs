//! Which index a table is walked along, whatever its columns and directions are, while its writers go on: afterwards the
//! mirror holds what `SELECT` gives.
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
use std::time::Duration;

use capstan::sqlite::{Mirror, MirrorOptions, Synchronous};
use capstan::{Builder, CopyLimits, Replica, Until};
use capstan_core::snapshot::rows::DescribeStep;
use capstan_mysql::Server;
use capstan_tests::copied;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::workload::{Numbers, quick_limits};

/// Tables with a column `a` that all others follow from, and `v`; the columns that each is walked along.
const TABLES: &[(&str, &str, &[&str])] = &[
    ("desc_", "a INT, v INT, PRIMARY KEY (a DESC)", &["a"]),
    (
        "mixed",
        "a INT, v INT, t VARCHAR(5) COLLATE utf8mb4_0900_ai_ci AS (CHAR(65 + 32 * (a % 2) + a % 5)) STORED NOT NULL,
         PRIMARY KEY (t DESC, a)",
        &["t", "a"],
    ),
    ("gen", "a INT, b INT AS (a * -2) STORED, v INT, PRIMARY KEY (b)", &["b"]),
    ("virt", "a INT NOT NULL, b INT AS (7 - a) VIRTUAL NOT NULL, v INT, UNIQUE KEY (b)", &["b"]),
    ("unseen", "v INT, a INT INVISIBLE PRIMARY KEY", &["a"]),
    ("own", "a INT, v INT", &["my_row_id"]),
    ("uniq", "v INT, a INT NOT NULL, UNIQUE KEY (a)", &["a"]),
    ("nulls", "c INT DEFAULT 1, a INT NOT NULL, v INT, UNIQUE KEY n (c, a), UNIQUE KEY z (a)", &["a"]),
    (
        "part",
        "a INT NOT NULL, t VARCHAR(20) AS (CONCAT('abc', a)) STORED NOT NULL, v INT, UNIQUE KEY p (t(4), a),
         UNIQUE KEY q (a)",
        &["a"],
    ),
    ("sum", "a INT NOT NULL, v INT, UNIQUE KEY f ((a + 1)), UNIQUE KEY g (a)", &["a"]),
    ("off", "a INT NOT NULL, v INT, b INT AS (a) STORED NOT NULL, UNIQUE KEY f (b), UNIQUE KEY g (a)", &["b"]),
];

fn fill(server: &Server) {
    let mut session = server.connect().unwrap();
    session.query("CREATE DATABASE snap").unwrap();
    for (table, columns, _) in TABLES {
        let own = if *table == "own" { "ON" } else { "OFF" };
        session.query(&format!("SET sql_generate_invisible_primary_key = {own}")).unwrap();
        session.query(&format!("CREATE TABLE snap.{table} ({columns})")).unwrap();
        let rows: Vec<String> = (0..200).map(|n| format!("({}, {n})", n * 3 - 100)).collect();
        session.query(&format!("INSERT INTO snap.{table} (a, v) VALUES {}", rows.join(","))).unwrap();
    }
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

fn writers(server: &Arc<Server>, count: u64, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let writer = |w: u64| {
        let (server, stop) = (Arc::clone(server), Arc::clone(stop));
        std::thread::spawn(move || {
            let mut session = server.connect().unwrap();
            session.query("SET innodb_lock_wait_timeout = 1").unwrap();
            let (mut numbers, mut written) = (Numbers(w), 0);
            while !stop.load(Ordering::Relaxed) || written < 40 {
                let table = TABLES[numbers.between(0, TABLES.len() as u64 - 1) as usize].0;
                let mut some = || numbers.between(0, 700) as i64 - 150;
                let (one, other, third) = (some(), some(), some());
                for sql in [
                    "BEGIN".to_owned(),
                    format!("INSERT IGNORE INTO snap.{table} (a, v) VALUES ({one}, {written})"),
                    format!(
                        "UPDATE IGNORE snap.{table} SET a = {one} + 1 WHERE a BETWEEN {other} AND {other} + 2"
                    ),
                    format!("UPDATE snap.{table} SET v = {written} WHERE a BETWEEN {third} AND {third} + 9"),
                    format!("DELETE FROM snap.{table} WHERE a = {third}"),
                    "COMMIT".to_owned(),
                ] {
                    if session.query(&sql).is_err() {
                        let _ = session.query("ROLLBACK");
                        break;
                    }
                }
                written += 1;
                // A source that outruns the target for good is not what this is about.
                std::thread::sleep(Duration::from_millis(2));
            }
        })
    };
    (1..=count).map(writer).collect()
}

#[test]
fn tables_are_walked_along_the_index_that_orders_them() {
    let server = Arc::new(Server::start().unwrap());
    fill(&server);
    let mut session = server.connect().unwrap();
    for (table, _, want) in TABLES {
        let described = copied::describe(&mut session, "snap", table).unwrap();
        let key = described.key().unwrap_or_else(|why| panic!("{table}: {why}"));
        let columns = described.version.columns();
        let found: Vec<&str> = key.parts().iter().map(|part| columns[part.column()].name.as_str()).collect();
        assert_eq!(&found, want, "{table}");
    }
    // All of them at once are what each is.
    for ((_, table), step) in
        copied::describe_some(&mut session, "snap", TABLES.iter().map(|of| of.0)).unwrap()
    {
        let DescribeStep::Done(all) = step.unwrap() else { panic!("{table}: no labels to be had") };
        let one = copied::describe(&mut session, "snap", &table).unwrap();
        let (all_key, one_key) = (all.key().unwrap(), one.key().unwrap());
        assert_eq!((&all.version, all_key.name()), (&one.version, one_key.name()), "{table}");
    }
    for (rows, count) in [(1_000, 0), (4, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let stop = Arc::new(AtomicBool::new(false));
        let load = writers(&server, count, &stop);
        let (copied, _) = Follower::blocking(copying(&server, rows), mirror(&path)).end();
        stop.store(true, Ordering::Relaxed);
        load.into_iter().for_each(|writer| writer.join().unwrap());
        copied.unwrap();
        Follower::blocking(copying(&server, rows), mirror(&path)).end().0.unwrap();
        assert_equal(&server, "snap", &path);
    }
}

/// The table of a chunk is that of the stream, its key too: a sink has one table and not two.
#[test]
fn a_described_table_is_the_one_of_the_stream() {
    let server = Server::start().unwrap();
    fill(&server);
    let mut session = server.connect().unwrap();
    session.query("FLUSH BINARY LOGS").unwrap();
    let mut found = Vec::new();
    for path in server.binlogs().unwrap() {
        found.extend(copied::differences(&mut session, "snap", &path, &[]).unwrap().0);
    }
    assert_eq!(found, []);
}
