//! The initial copy against a real server whose writers do not stop: afterwards the mirror holds what `SELECT` gives.
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

use capstan::sqlite::{Ledger, LedgerOptions, Mirror, MirrorOptions, Synchronous};
use capstan::{Builder, Code, CopyLimits, Replica, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::workload::{Numbers, quick_limits};

fn server() -> Server {
    Server::builder().start().expect("a server")
}

fn mirror(path: &Path) -> Mirror {
    let mut options = MirrorOptions::default();
    options.synchronous = Synchronous::Off;
    Mirror::open(path, options).unwrap()
}

fn copying(server: &Server, rows: u64) -> Builder {
    let limits = CopyLimits { chunk_rows: rows, chunk_bytes: 20_000, ..CopyLimits::default() };
    Replica::builder(url_at(server.port()).parse().unwrap())
        .limits(quick_limits())
        .tables(["snap.*"])
        .snapshot(Vec::<String>::new())
        .copy(limits)
        .until(Until::Now)
}

const TABLES: &str = "CREATE DATABASE snap;
    CREATE TABLE snap.ids (id INT AUTO_INCREMENT PRIMARY KEY, v INT, t VARCHAR(200));
    CREATE TABLE snap.big (k BIGINT UNSIGNED PRIMARY KEY, v INT);
    CREATE TABLE snap.pair (a INT, b INT, v INT, PRIMARY KEY (b, a));
    CREATE TABLE snap.fixed (v INT, k BINARY(4) PRIMARY KEY);
    CREATE TABLE snap.var (k VARBINARY(8) PRIMARY KEY, v INT);
    CREATE TABLE snap.dec_ (k DECIMAL(12,3) PRIMARY KEY, v INT);
    CREATE TABLE snap.at_ (k DATETIME(6) PRIMARY KEY, v INT);
    CREATE TABLE snap.uniq (u SMALLINT NOT NULL, v INT, w INT, UNIQUE KEY (u));
    CREATE TABLE snap.none (id INT PRIMARY KEY);";

/// The key of row `n` of every table but the first, as SQL.
fn key(table: &str, n: u64) -> String {
    match table {
        "big" => format!("k = {}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        "pair" => format!("a = {}, b = {}", n % 7, n / 7),
        "fixed" => format!("k = x'{:08x}'", (n as u32).wrapping_mul(0x0100_0193) & 0xffff_ff00),
        "var" => {
            format!("k = x'{}'", &format!("{:016x}", n.wrapping_mul(0x9e37_79b9))[..2 * (n as usize % 8 + 1)])
        }
        "dec_" => format!("k = {}.{:03}", n as i64 - 300, n * 37 % 1000),
        "at_" => format!("k = '2024-01-{:02} 0{}:00:00.{:06}'", n % 28 + 1, n % 10, n * 7919 % 1_000_000),
        "uniq" => format!("u = {}", n as i64 * 13 - 4000),
        _ => panic!("{table}"),
    }
}

const KEYED: [&str; 7] = ["big", "pair", "fixed", "var", "dec_", "at_", "uniq"];

fn fill(server: &Server, rows: u64) {
    server.sql(TABLES).unwrap();
    let mut session = server.connect().unwrap();
    let values: Vec<String> = (0..rows).map(|n| format!("({n}, REPEAT('x', {}))", n % 150)).collect();
    session.query(&format!("INSERT INTO snap.ids (v, t) VALUES {}", values.join(","))).unwrap();
    for table in KEYED {
        session.query("BEGIN").unwrap();
        for n in 0..rows {
            session
                .query(&format!("INSERT IGNORE INTO snap.{table} SET {}, v = {n}", key(table, n)))
                .unwrap();
        }
        session.query("COMMIT").unwrap();
    }
}

/// Writers that insert, change, move and delete rows all over the tables.
struct Writers(Arc<AtomicBool>, Vec<JoinHandle<u64>>);

impl Writers {
    fn start(server: &Arc<Server>, count: u64, rows: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let writer = |w: u64| {
            let (server, stop) = (Arc::clone(server), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut session = server.connect().unwrap();
                let (mut numbers, mut written) = (Numbers(w), 0);
                while !stop.load(Ordering::Relaxed) || written < 21 {
                    let table = KEYED[numbers.between(0, 6) as usize];
                    let at = |n: u64| key(table, n).replace(", ", " AND ");
                    let (one, other) = (numbers.between(0, rows * 2), numbers.between(0, rows * 2));
                    let id = numbers.between(1, rows * 2);
                    for sql in [
                        "BEGIN".to_owned(),
                        format!("INSERT IGNORE INTO snap.{table} SET {}, v = {written}", key(table, one)),
                        format!("UPDATE snap.{table} SET v = -{written} WHERE {}", at(other)),
                        format!("UPDATE IGNORE snap.{table} SET {} WHERE {}", key(table, one + 1), at(other)),
                        format!("DELETE FROM snap.{table} WHERE {}", at(one + 2)),
                        format!("UPDATE snap.ids SET v = {written} WHERE id = {id}"),
                        format!("UPDATE IGNORE snap.ids SET id = {} WHERE id = {}", id + 5, id + 1),
                        format!("INSERT INTO snap.ids (v, t) VALUES ({written}, 'n'), ({written}, 'm')"),
                        "COMMIT".to_owned(),
                    ] {
                        if session.query(&sql).is_err() {
                            let _ = session.query("ROLLBACK");
                            break;
                        }
                    }
                    written += 1;
                }
                written
            })
        };
        Self(Arc::clone(&stop), (1..=count).map(writer).collect())
    }

    fn stop(self) -> u64 {
        self.0.store(true, Ordering::Relaxed);
        self.1.into_iter().map(|writer| writer.join().unwrap()).sum()
    }
}

#[test]
fn a_copy_made_under_writers_is_the_table() {
    let server = Arc::new(server());
    fill(&server, 400);
    for (rows, writers) in [(1000, 0), (7, 1), (50, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let load = Writers::start(&server, writers, 400);
        let (copied, _) = Follower::blocking(copying(&server, rows), mirror(&path)).end();
        let written = load.stop();
        copied.unwrap();
        assert!(writers == 0 || written > 0, "nothing was written");
        // What came behind the copy's end, by the stream alone.
        Follower::blocking(copying(&server, rows), mirror(&path)).end().0.unwrap();
        assert_equal(&server, "snap", &path);
    }
}

#[test]
fn a_copy_goes_on_where_it_was() {
    let server = Arc::new(server());
    fill(&server, 300);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let load = Writers::start(&server, 2, 300);
    for patience in 0..8 {
        let follower = Follower::blocking(copying(&server, 20), mirror(&path));
        std::thread::sleep(Duration::from_millis(60 + 40 * patience));
        follower.drain().0.unwrap();
    }
    Follower::blocking(copying(&server, 20), mirror(&path)).end().0.unwrap();
    load.stop();
    Follower::blocking(copying(&server, 20), mirror(&path)).end().0.unwrap();
    assert_equal(&server, "snap", &path);
}

#[test]
fn what_cannot_be_copied_is_refused_by_name() {
    let server = server();
    for (table, code) in [
        ("CREATE TABLE snap.t (a INT PRIMARY KEY) ENGINE = MEMORY", Code::SnapshotKeyUnsupported),
        ("CREATE TABLE snap.t (a INT PRIMARY KEY) ENGINE = MyISAM", Code::SnapshotKeyUnsupported),
    ] {
        server.sql(&format!("CREATE DATABASE snap; {table}")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.db");
        let ledger = Ledger::open(&path, LedgerOptions::default()).unwrap();
        let halt = Follower::blocking(copying(&server, 5), ledger).end().0.unwrap_err();
        assert_eq!(halt.code, code, "{table}");
        server.sql("DROP DATABASE snap").unwrap();
    }
}
