//! The initial copy while eight writers go on, its process is killed with SIGKILL and its connections with KILL: in the
//! end the mirror holds what `SELECT` gives, and the ledger has told of each key as often as it may.
//!
//! `CAPSTAN_COPY_KILLS` sets how often the process is killed for each size of chunks (6), `CAPSTAN_COPY_SEED` repeats
//! the choices of a run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use capstan::sqlite::{Mirror, MirrorOptions, Synchronous};
use capstan::{Builder, Code, CopyLimits, Replica, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, PATIENCE, Syncing, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::workload::{Numbers, quick_limits};

const SYNC_CHILD: &str = env!("CARGO_BIN_EXE_sync_child");
const WRITERS: u64 = 8;
/// Rows of each table at the start.
const ROWS: u64 = 300;

const TABLES: &str = "CREATE DATABASE d; CREATE DATABASE aside; USE d;
    CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY, v INT);
    CREATE TABLE big (id BIGINT UNSIGNED PRIMARY KEY, v INT, j JSON, f FLOAT, t VARCHAR(50) CHARACTER SET latin1);
    CREATE TABLE pair (a SMALLINT, b TINYINT UNSIGNED, v INT, PRIMARY KEY (b, a));
    CREATE TABLE at_ (k DATETIME(6) PRIMARY KEY, v INT);";

const KEYED: [&str; 3] = ["big", "pair", "at_"];

/// The key of row `n`, as assignments.
fn key(table: &str, n: u64) -> String {
    match table {
        // All over the range, above the signed one too.
        "big" => format!("id = {}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        "pair" => format!("a = {}, b = {}", n as i64 % 40 - 20, n / 40),
        "at_" => format!("k = '2024-01-{:02} 0{}:00:00.{:06}'", n % 28 + 1, n % 10, n * 7_919 % 1_000_000),
        _ => panic!("{table}"),
    }
}

fn fill(server: &Server) {
    server.sql(TABLES).unwrap();
    let mut session = server.connect().unwrap();
    session.query("USE d; BEGIN").unwrap();
    for n in 0..ROWS {
        session.query(&format!("INSERT INTO ids (v) VALUES ({n})")).unwrap();
        for table in KEYED {
            session.query(&format!("INSERT INTO {table} SET {}, v = {n}", key(table, n))).unwrap();
        }
    }
    session
        .query("UPDATE big SET j = JSON_OBJECT('n', v, 'd', 1.50), f = v / 7, t = CONCAT('é', v); COMMIT")
        .unwrap();
}

struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    made: Arc<AtomicU64>,
    /// Connections that are not the copy's.
    own: Vec<u32>,
}

impl Load {
    /// Writers whose transactions stay open for 1 to 50 ms, and one who changes the schema of neighbours.
    fn start(server: &Arc<Server>, seed: u64) -> Self {
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (mut threads, mut own) = (Vec::new(), Vec::new());
        for writer in 0..=WRITERS {
            let mut session = server.connect().unwrap();
            own.push(session.connection_id());
            let (stop, made, mut numbers) = (Arc::clone(&stop), Arc::clone(&made), Numbers(seed + writer));
            threads.push(std::thread::spawn(move || {
                session.query("USE d; SET innodb_lock_wait_timeout = 1").unwrap();
                let mut begun = 0;
                // However soon the copy is done, each has written a few.
                while !stop.load(Ordering::Relaxed) || begun < 4 {
                    begun += 1;
                    if writer == WRITERS {
                        let n = numbers.between(0, 3);
                        let _ = session.query(&format!(
                            "CREATE TABLE aside.n{n} (id INT PRIMARY KEY); ALTER TABLE aside.n{n} ADD x INT; DROP TABLE aside.n{n}"
                        ));
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    }
                    let mut done = session.query("BEGIN").is_ok();
                    for _ in 0..numbers.between(1, 3) {
                        done = done && session.query(&change(&mut numbers)).is_ok();
                    }
                    std::thread::sleep(Duration::from_millis(numbers.between(1, 50)));
                    let _ = session.query(if done && numbers.between(0, 9) > 0 { "COMMIT" } else { "ROLLBACK" });
                    made.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        Self { stop, threads, made, own }
    }

    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.made.load(Ordering::Relaxed)
    }
}

fn change(numbers: &mut Numbers) -> String {
    let table = KEYED[usize::try_from(numbers.between(0, 2)).unwrap()];
    let (one, other) = (numbers.between(0, ROWS * 2), numbers.between(0, ROWS * 2));
    let (v, id) = (numbers.between(0, 1_000_000), numbers.between(1, ROWS * 2));
    let at = |n: u64| key(table, n).replace(", ", " AND ");
    match numbers.between(0, 7) {
        0 | 1 => format!("INSERT IGNORE INTO {table} SET {}, v = {v}", key(table, one)),
        2 => format!("UPDATE {table} SET v = {v} WHERE {}", at(one)),
        3 => format!("UPDATE IGNORE {table} SET {} WHERE {}", key(table, other), at(one)),
        4 => format!("DELETE FROM {table} WHERE {}", at(one)),
        5 => format!("UPDATE ids SET v = {v} WHERE id BETWEEN {id} AND {}", id + 3),
        6 => format!("UPDATE IGNORE ids SET id = {} WHERE id = {id}", id + 7),
        _ => format!("INSERT INTO ids (v) VALUES ({v}), ({v} + 1)"),
    }
}

/// KILLs what belongs to nobody else: the stream, and the connections of the copy.
fn kill_connections(server: &Server, own: &[u32]) -> usize {
    let mut session = server.connect().unwrap();
    let ids = session
        .sql("SELECT ID FROM performance_schema.processlist WHERE USER = 'root' AND ID <> CONNECTION_ID()")
        .unwrap();
    let foreign = ids.lines().filter(|id| !own.contains(&id.parse().unwrap_or(0)));
    foreign.filter(|id| session.sql(&format!("KILL {id}")).is_ok()).count()
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Copies into `kind` under writers and kills, for each size of chunks; then `judge` looks at the target.
fn killed(kind: &str, sizes: &[u64], judge: impl Fn(&Server, &Path)) {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let seed = setting("CAPSTAN_COPY_SEED").unwrap_or(u64::try_from(clock & 0xffff_ffff).unwrap());
    let kills = setting("CAPSTAN_COPY_KILLS").unwrap_or(6);
    println!("CAPSTAN_COPY_SEED={seed}");
    let mut numbers = Numbers(seed);
    for rows in sizes {
        let server = Arc::new(Server::start().unwrap());
        fill(&server);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let target = format!("{kind}:{}", path.display());
        let (url, chunk) = (url_at(server.port()), format!("snapshot={rows}"));
        let load = Load::start(&server, seed ^ rows);
        let mut connections = 0;
        for kill in 0..kills {
            let mut process = Syncing::start(SYNC_CHILD, &[&url, &target, &chunk], None);
            let until = Instant::now() + Duration::from_millis(numbers.between(200, 900));
            while Instant::now() < until {
                std::thread::sleep(Duration::from_millis(numbers.between(20, 150)));
                if kill % 2 == 1 {
                    connections += kill_connections(&server, &load.own);
                }
            }
            if let Some(ended) = process.wait(Duration::ZERO) {
                panic!("seed {seed}, {rows} rows: it ended by itself: {ended:?}");
            }
            assert!(process.kill9().is_killed());
        }
        // The copy ends while they go on writing, what comes behind it is the stream's.
        let copied = Syncing::start(SYNC_CHILD, &[&url, &target, &chunk, "until=now"], None).finish();
        assert!(copied.status.success(), "seed {seed}, {rows} rows: {}", copied.stderr);
        let made = load.stop();
        let ended = Syncing::start(SYNC_CHILD, &[&url, &target, "until=now", &chunk], None).finish();
        assert!(ended.status.success(), "seed {seed}, {rows} rows: {}", ended.stderr);
        println!("{rows} rows a chunk: {made} transactions, {kills} kills, {connections} connections killed");
        assert!(made > 20, "{made} transactions");
        judge(&server, &path);
    }
}

#[test]
fn a_mirror_made_under_writers_and_kills_is_the_tables() {
    killed("mirror", &[1, 7, 100, 10_000], |server, path| assert_equal(server, "d", path));
}

/// Each row of the copy and each change of the stream finds the key as the ones before it left it.
#[test]
fn a_ledger_made_under_writers_and_kills_tells_of_each_key_once() {
    killed("ledger", &[5, 100], |server, path| {
        let ledger = rusqlite::Connection::open(path).unwrap();
        let mut entries =
            ledger.prepare("SELECT seq, op, \"table\", before, after FROM capstan_ledger WHERE \"schema\" = 'd' ORDER BY seq").unwrap();
        let mut rows = entries.query([]).unwrap();
        let mut held: BTreeMap<(String, String), String> = BTreeMap::new();
        let mut copied = 0;
        while let Some(row) = rows.next().unwrap() {
            let (seq, op, table): (i64, String, String) =
                (row.get(0).unwrap(), row.get(1).unwrap(), row.get(2).unwrap());
            let (before, after): (Option<String>, Option<String>) =
                (row.get(3).unwrap(), row.get(4).unwrap());
            copied += u64::from(op == "snapshot");
            if op == "snapshot_begins" {
                held.retain(|(of, _), _| *of != table);
            }
            if let Some(before) = before {
                assert!(
                    held.remove(&identity(&table, &before)).is_some(),
                    "{seq}: {op} of what is not there"
                );
            }
            if let Some(after) = after {
                let at = identity(&table, &after);
                assert!(held.insert(at, after).is_none(), "{seq}: {op} of what is there");
            }
        }
        assert!(copied > 100, "{copied} rows of the copy");
        let held: BTreeSet<_> = held.keys().map(|(table, key)| format!("{table} {key}")).collect();
        assert_eq!(held, keys(server));
    });
}

/// The key of an image, as text.
fn identity(table: &str, image: &str) -> (String, String) {
    let image: serde_json::Value = serde_json::from_str(image).unwrap();
    let text = |name: &str| image[name].as_str().map_or_else(|| image[name].to_string(), str::to_owned);
    let key = match table {
        "pair" => format!("{} {}", text("a"), text("b")),
        "at_" => text("k"),
        _ => text("id"),
    };
    (table.to_owned(), key)
}

/// The keys of every table, as [`identity`] writes them.
fn keys(server: &Server) -> BTreeSet<String> {
    let rows = server
        .sql(
            "SELECT CONCAT('ids ', id) FROM d.ids UNION ALL SELECT CONCAT('big ', id) FROM d.big
             UNION ALL SELECT CONCAT('pair ', a, ' ', b) FROM d.pair UNION ALL SELECT CONCAT('at_ ', k) FROM d.at_",
        )
        .unwrap();
    rows.lines().map(str::to_owned).collect()
}

fn copying(server: &Server, limits: CopyLimits) -> Builder {
    Replica::builder(url_at(server.port()).parse().unwrap())
        .limits(quick_limits())
        .tables(["d.*"])
        .snapshot(Vec::<String>::new())
        .copy(limits)
        .until(Until::Now)
}

fn mirror(path: &Path) -> Mirror {
    let mut options = MirrorOptions::default();
    options.synchronous = Synchronous::Off;
    Mirror::open(path, options).unwrap()
}

/// Red where the ranges are handed over in another order than that of their keys, or where one is read from another cut.
#[test]
fn ranges_that_are_read_beside_each_other_under_writers_and_kills() {
    // Their ends are guessed along one whole number, and looked for along any other key.
    for (key, is_guessed) in [("id", true), ("id, k", false)] {
        ranges_under_writers_and_kills(key, is_guessed);
    }
}

fn ranges_under_writers_and_kills(key: &str, is_guessed: bool) {
    let server =
        Arc::new(Server::builder().options(vec!["--general-log=1", "--log-output=TABLE"]).start().unwrap());
    server
        .sql(&format!(
            "CREATE DATABASE d; USE d;
             CREATE TABLE t (id INT AUTO_INCREMENT, v INT, s VARCHAR(200), k INT DEFAULT 0, PRIMARY KEY ({key}));
             SET cte_max_recursion_depth = 20000;
             INSERT INTO t (v, s) WITH RECURSIVE n AS (SELECT 1 v UNION ALL SELECT v + 1 FROM n WHERE v < 12000)
             SELECT v, REPEAT('s', v % 190) FROM n"
        ))
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    // Where it is copied already, and behind its end: so that a cut lasts.
    let writer = {
        let (server, stop) = (Arc::clone(&server), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut session = server.connect().unwrap();
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                session
                    .query(&format!(
                        "USE d; BEGIN; UPDATE t SET v = {n} WHERE id = {n} % 20 + 1; INSERT INTO t (v) VALUES ({n}); COMMIT"
                    ))
                    .unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
            n
        })
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (url, target) = (url_at(server.port()), format!("mirror:{}", path.display()));
    let executed = |what: &str, like: &str| -> u64 {
        let sql = format!(
            "SELECT {what} FROM mysql.general_log WHERE command_type = 'Execute' AND argument LIKE '%FORCE INDEX%' AND argument {like}"
        );
        server.sql(&sql).unwrap().trim().parse().unwrap()
    };
    let ranges = |what| executed(what, "NOT LIKE '%LIMIT%'");
    for kill in 1..=3 {
        let before = ranges("COUNT(*)");
        let process = Syncing::start(SYNC_CHILD, &[&url, &target, "snapshot=30"], None);
        let deadline = Instant::now() + PATIENCE;
        while ranges("COUNT(*)") < before + 12 {
            assert!(Instant::now() < deadline, "no ranges are read");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(process.kill9().is_killed());
        assert!(ranges("COUNT(DISTINCT thread_id)") > kill, "one connection reads them all");
    }
    let (ranges, borders) = (ranges("COUNT(*)"), executed("COUNT(*)", "LIKE '%LIMIT 1 OFFSET%'"));
    assert_eq!(borders < ranges / 2, is_guessed, "{borders} borders of {ranges} ranges");
    let copied = Syncing::start(SYNC_CHILD, &[&url, &target, "snapshot=30", "until=now"], None).finish();
    assert!(copied.status.success(), "{}", copied.stderr);
    stop.store(true, Ordering::Relaxed);
    assert!(writer.join().unwrap() > 0);
    let ended = Syncing::start(SYNC_CHILD, &[&url, &target, "snapshot=30", "until=now"], None).finish();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_equal(&server, "d", &path);
}

/// A prepared XA transaction that nobody resolves holds its table for ever: it is named, and once it is resolved the
/// copy goes on.
#[test]
fn an_orphaned_xa_transaction_is_named() {
    let server = Server::start().unwrap();
    server
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2)")
        .unwrap();
    let mut session = server.connect().unwrap();
    session
        .query("XA START 'orphan'; INSERT INTO d.t VALUES (3); XA END 'orphan'; XA PREPARE 'orphan'")
        .unwrap();
    drop(session);
    let limits = CopyLimits {
        lock_write: Duration::from_millis(200),
        lock_pause: Duration::from_millis(50),
        lock_xa: Duration::from_secs(1),
        ..CopyLimits::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let halt = Follower::blocking(copying(&server, limits), mirror(&path)).end().0.unwrap_err();
    assert_eq!(halt.code, Code::SnapshotBlockedByXa);
    server.sql("XA ROLLBACK 'orphan'").unwrap();
    Follower::blocking(copying(&server, limits), mirror(&path)).end().0.unwrap();
    assert_equal(&server, "d", &path);
}

/// Case BL-45: borders of chunks at keys that are easily got wrong, while they change; connections that the server
/// closes when they are idle.
#[test]
fn odd_keys_in_chunks_of_two() {
    let server = Arc::new(Server::start().unwrap());
    server
        .sql(
            "CREATE DATABASE d; USE d;
             CREATE TABLE u (k BIGINT UNSIGNED PRIMARY KEY, v INT);
             INSERT INTO u (k) VALUES (1), (9223372036854775807), (9223372036854775808), (18446744073709551615);
             CREATE TABLE c2 (a INT, b INT, v INT, PRIMARY KEY (b, a)); INSERT INTO c2 (a, b) VALUES (1, 3), (2, 2), (3, 1);
             CREATE TABLE de (k DECIMAL(20,5) PRIMARY KEY, v INT); INSERT INTO de (k) VALUES (-1.5), (-0.00001), (0), (9.99999), (10);
             CREATE TABLE dt (k DATETIME(6) PRIMARY KEY, v INT);
             INSERT INTO dt (k) VALUES ('1000-01-01'), ('2024-02-29 23:59:59.999999'), ('2024-03-01'), ('9999-12-31');
             CREATE TABLE bi (k BINARY(4) PRIMARY KEY, v INT);
             INSERT INTO bi (k) VALUES (x'00'), (x'0100'), (x'010001'), (x'20'), (x'2000ff'), (x'ff');
             CREATE TABLE en (k ENUM('z','y','x') PRIMARY KEY, v INT); INSERT INTO en (k) VALUES ('x'), ('y'), ('z');
             CREATE TABLE s (k VARCHAR(10) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v INT);
             INSERT INTO s VALUES ('a',1),('B',2),('c',3),('É',4),('f',5),('ß',6),('t',7),('',8),('Z',9),('10',10),('9',11);
             SET GLOBAL wait_timeout = 1",
        )
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (server, stop) = (Arc::clone(&server), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut session = server.connect().unwrap();
            session.query("SET wait_timeout = 100; USE d").unwrap();
            let mut n = 0;
            // However soon the copies are done, each table has been written to under some of them.
            while !stop.load(Ordering::Relaxed) || n < 4 {
                n += 1;
                for table in ["u", "c2", "de", "dt", "bi", "en", "s"] {
                    let key = if table == "c2" { "b, a" } else { "k" };
                    let all = if table == "c2" { "a, b" } else { "k" };
                    for sql in [
                        format!("UPDATE {table} SET v = {n} ORDER BY {key} LIMIT 2"),
                        format!(
                            "CREATE TEMPORARY TABLE saved AS SELECT {all} FROM {table} ORDER BY {key} LIMIT {}, 1",
                            n % 3
                        ),
                        format!("DELETE t FROM {table} t JOIN saved USING ({all})"),
                        format!("INSERT INTO {table} ({all}) SELECT {all} FROM saved"),
                        "DROP TEMPORARY TABLE saved".to_owned(),
                    ] {
                        let _ = session.query(&sql);
                    }
                    // A source that outruns the target for good is not what this is about.
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            n
        })
    };
    for round in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let limits = CopyLimits { chunk_rows: 2, ..CopyLimits::default() };
        let follower = Follower::blocking(copying(&server, limits), mirror(&path));
        follower.end().0.unwrap();
        if round == 2 {
            stop.store(true, Ordering::Relaxed);
            while !writer.is_finished() {
                std::thread::sleep(Duration::from_millis(10));
            }
            Follower::blocking(copying(&server, limits), mirror(&path)).end().0.unwrap();
            assert_equal(&server, "d", &path);
        }
    }
    writer.join().unwrap();
}
