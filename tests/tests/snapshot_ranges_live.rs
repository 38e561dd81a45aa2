//! Ranges whose ends are guessed, where guessing is hard: gaps, what is dense behind what is sparse, both ends of each
//! integer, tables that grow at both ends; while they are altered, connections are killed, and the process is killed
//! and comes back with another number of connections and another size of chunks.
//!
//! `CAPSTAN_COPY_KILLS` sets how often the process is killed for each size (3), `CAPSTAN_COPY_SEED` repeats the choices.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use capstan_mysql::Server;
use capstan_tests::harness::{Syncing, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::workload::Numbers;

const SYNC_CHILD: &str = env!("CARGO_BIN_EXE_sync_child");

/// A table's name, the definition of its key, and where row `n` of `of` rows lies.
type Table = (&'static str, &'static str, fn(i128, i128) -> i128);

const I64_MIN: i128 = i64::MIN as i128;
const I64_MAX: i128 = i64::MAX as i128;
const U64_MAX: i128 = u64::MAX as i128;

const TABLES: &[Table] = &[
    ("gaps", "INT PRIMARY KEY", |n, _| n * n % 1_999_999_973),
    ("dense_behind", "BIGINT PRIMARY KEY", |n, of| if n < of / 2 { n << 40 } else { (of << 40) + n }),
    ("sparse_behind", "BIGINT PRIMARY KEY", |n, of| if n < of / 2 { n } else { n << 40 }),
    ("heaps", "INT UNSIGNED PRIMARY KEY", |n, _| (n / 50) * 30_000 + n % 50),
    ("negative", "MEDIUMINT PRIMARY KEY", |n, _| -8_388_608 + n),
    ("around", "BIGINT PRIMARY KEY", |n, of| n * 3 - of),
    ("lowest", "BIGINT PRIMARY KEY", |n, of| if n < of / 2 { I64_MIN + n } else { I64_MAX - of + n + 1 }),
    ("highest", "BIGINT UNSIGNED PRIMARY KEY", |n, of| if n < of / 2 { n } else { U64_MAX - of + n + 1 }),
    ("middle", "BIGINT UNSIGNED PRIMARY KEY", |n, of| I64_MAX - of / 2 + n),
    ("down", "INT, PRIMARY KEY (id DESC)", |n, _| n * 5),
    ("uniq", "SMALLINT UNSIGNED NOT NULL, UNIQUE KEY (id)", |n, of| n * 65_535 / of),
];

fn name(table: usize) -> String {
    format!("d.{}", TABLES[table].0)
}

fn fill(server: &Server, rows: i128) {
    let mut session = server.connect().unwrap();
    session.query("CREATE DATABASE d").unwrap();
    for (at, (_, key, place)) in TABLES.iter().enumerate() {
        session.query(&format!("CREATE TABLE {} (v INT, s VARCHAR(60), id {key})", name(at))).unwrap();
        let rows: Vec<String> =
            (0..rows).map(|n| format!("({}, {n}, REPEAT('s', {n} % 50))", place(n, rows))).collect();
        for some in rows.chunks(5_000) {
            let sql = format!("INSERT IGNORE INTO {} (id, v, s) VALUES {}", name(at), some.join(","));
            session.query(&sql).unwrap();
        }
    }
    session.query("CREATE TABLE d.tiny (id TINYINT UNSIGNED PRIMARY KEY, v INT)").unwrap();
    let all: Vec<String> = (0..256).map(|n| format!("({n}, {n})")).collect();
    session.query(&format!("INSERT INTO d.tiny VALUES {}", all.join(","))).unwrap();
}

struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    own: Vec<u32>,
}

impl Load {
    fn start(server: &Arc<Server>, rows: i128, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut own = Vec::new();
        let mut writer = |w: u64| {
            let mut session = server.connect().unwrap();
            own.push(session.connection_id());
            let (stop, mut numbers) = (Arc::clone(&stop), Numbers(seed + w));
            std::thread::spawn(move || {
                session.query("SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 2").unwrap();
                let mut made = 0;
                while !stop.load(Ordering::Relaxed) || made < 20 {
                    made += 1;
                    // What fails (a key that is there, a lock, the end of a type) is left.
                    let _ = session.query(&change(&mut numbers, rows, made));
                    std::thread::sleep(Duration::from_millis(numbers.between(1, 15)));
                }
            })
        };
        let threads = (0..3).map(&mut writer).collect();
        Self { stop, threads, own }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn change(numbers: &mut Numbers, rows: i128, made: u64) -> String {
    let at = numbers.between(0, TABLES.len() as u64 - 1) as usize;
    let (table, place) = (name(at), TABLES[at].2);
    let mut some = || place(i128::from(numbers.between(0, rows as u64 - 1)), rows);
    let (one, other) = (some(), some());
    match numbers.between(0, 9) {
        0 => format!("INSERT INTO {table} (id, v) SELECT MAX(id) + 1, {made} FROM {table}"),
        1 => format!("INSERT INTO {table} (id, v) SELECT MIN(id) - 1, {made} FROM {table}"),
        2 => format!("INSERT INTO {table} (id, v) VALUES ({one} + 1, {made}), ({other} + 2, {made})"),
        3 => format!("DELETE FROM {table} WHERE id BETWEEN {one} AND {one} + 3"),
        4 => format!("UPDATE {table} SET id = {other} + 1 WHERE id = {one}"),
        5 if made.is_multiple_of(3) => format!("ALTER TABLE {table} ADD COLUMN c{made} INT DEFAULT {made}"),
        6 if made.is_multiple_of(5) => "TRUNCATE TABLE d.tiny".to_owned(),
        7 => format!("REPLACE INTO d.tiny VALUES ({}, {made})", made % 256),
        _ => format!("UPDATE {table} SET v = {made} WHERE id >= {one} ORDER BY id LIMIT 5"),
    }
}

/// KILLs what belongs to nobody else.
fn kill_connections(server: &Server, own: &[u32]) {
    let mut session = server.connect().unwrap();
    let ids = session
        .sql("SELECT ID FROM performance_schema.processlist WHERE USER = 'root' AND ID <> CONNECTION_ID()")
        .unwrap();
    for id in ids.lines().filter(|id| !own.contains(&id.parse().unwrap_or(0))) {
        let _ = session.sql(&format!("KILL {id}"));
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn ranges_that_are_hard_to_guess_are_the_tables() {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let seed = setting("CAPSTAN_COPY_SEED").unwrap_or(u64::try_from(clock & 0xffff_ffff).unwrap());
    let kills = setting("CAPSTAN_COPY_KILLS").unwrap_or(3);
    println!("CAPSTAN_COPY_SEED={seed}");
    let mut numbers = Numbers(seed);
    for (size, rows) in [(1, 60), (9, 600), (100, 3_000), (1_000, 9_000), (10_000, 12_000)] {
        let server = Arc::new(Server::start().unwrap());
        fill(&server, rows);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let (url, target) = (url_at(server.port()), format!("mirror:{}", path.display()));
        let load = Load::start(&server, rows, seed ^ size);
        let begin = |numbers: &mut Numbers, more: &[&str]| {
            let connections = ["none", "1", "2", "3", "8"][numbers.between(0, 4) as usize];
            let size = if numbers.between(0, 3) == 0 { 1 + size * 3 } else { size };
            let (size, connections) = (format!("snapshot={size}"), format!("connections={connections}"));
            Syncing::start(SYNC_CHILD, &[&[url.as_str(), &target, &size, &connections], more].concat(), None)
        };
        for kill in 0..kills {
            let mut process = begin(&mut numbers, &[]);
            std::thread::sleep(Duration::from_millis(numbers.between(300, 1_500)));
            if kill % 2 == 1 {
                kill_connections(&server, &load.own);
                std::thread::sleep(Duration::from_millis(numbers.between(100, 600)));
            }
            if let Some(ended) = process.wait(Duration::ZERO) {
                panic!("seed {seed}, {size} rows: it ended by itself: {ended:?}");
            }
            assert!(process.kill9().is_killed());
        }
        begin(&mut numbers, &["until=now"]).finish().well();
        load.stop();
        begin(&mut numbers, &["until=now"]).finish().well();
        assert_equal(&server, "d", &path);
    }
}
