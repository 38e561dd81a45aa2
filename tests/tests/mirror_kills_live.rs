//! A workload of every type, every kind of key and every kind of schema change that is followed, while the
//! mirroring process is killed again and again: in the end both sides hold the same.
//!
//! `CAPSTAN_MIRROR_SECONDS` sets how long it writes (20), `CAPSTAN_MIRROR_SEED` repeats a run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use capstan_mysql::{Server, Session};
use capstan_tests::harness::{Syncing, url_at};
use capstan_tests::mirror::{assert_equal, source_rows};
use capstan_tests::workload::Numbers;

/// What is captured.
const TABLES: &str = "tables=d.*,d2.*";

const SYNC_CHILD: &str = env!("CARGO_BIN_EXE_sync_child");

/// Columns with literals of their edges.
const COLUMNS: &[(&str, &str, &[&str])] = &[
    ("c_ti", "TINYINT", &["-128", "0", "127"]),
    ("c_bu", "BIGINT UNSIGNED", &["0", "9223372036854775807", "9223372036854775808", "18446744073709551615"]),
    ("c_b", "BIGINT", &["-9223372036854775808", "0", "9223372036854775807"]),
    ("c_mu", "MEDIUMINT UNSIGNED", &["0", "16777215"]),
    ("c_f", "FLOAT", &["0.1", "-3.4e38", "1e-38", "16777217", "0"]),
    ("c_d", "DOUBLE", &["0.1", "1.7976931348623157e308", "-2.2250738585072014e-308", "-0e0", "0"]),
    ("c_dec", "DECIMAL(30,10)", &["0", "-0.0000000001", "12345678901234567890.0123456789", "7"]),
    ("c_bit", "BIT(64)", &["b'0'", "b'1'", "X'8000000000000001'"]),
    ("c_y", "YEAR", &["0", "1901", "2155"]),
    ("c_da", "DATE", &["'0000-00-00'", "'2024-00-10'", "'9999-12-31'"]),
    ("c_t", "TIME(3)", &["'-838:59:59'", "'-00:00:00.001'", "'838:59:59'"]),
    ("c_dt", "DATETIME(6)", &["'0000-00-00 00:00:00'", "'2024-02-29 23:59:59.999999'"]),
    ("c_ts", "TIMESTAMP(2) NULL", &["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.49'", "0"]),
    ("c_c", "CHAR(8)", &["''", "'a  '", "'ü'", "'A'"]),
    ("c_v", "VARCHAR(40)", &["''", "'a '", "'12'", "'it''s \\0 x'", "REPEAT('é', 40)"]),
    ("c_l", "VARCHAR(20) CHARACTER SET latin1", &["''", "'é'", "'\\\\'"]),
    ("c_tx", "MEDIUMTEXT", &["''", "REPEAT('x', 3000)", "'1e5'"]),
    ("c_bi", "BINARY(4)", &["''", "X'01'", "X'20202020'", "X'FF000000'"]),
    ("c_vb", "VARBINARY(9)", &["''", "X'00'", "X'FFFE'"]),
    ("c_bl", "BLOB", &["''", "X'00FF00'", "REPEAT('z', 2000)"]),
    ("c_e", "ENUM('x','','ü')", &["'x'", "''", "3"]),
    ("c_s", "SET('p','q','r')", &["''", "'p,r'", "7"]),
    ("c_j", "JSON", &["'null'", "'{\"a\": [1, 2.5, \"ü\"]}'", "CAST(1.50 AS JSON)", "'[]'"]),
    ("c_g", "POINT", &["POINT(1, 2)", "ST_GeomFromText('POINT(-1 0.5)', 4326)"]),
    ("c_ve", "VECTOR(4)", &["STRING_TO_VECTOR('[1.05, -17.8]')"]),
];

/// What the rows of each table are told apart by.
const KEYS: [&str; 7] = [
    "k INT PRIMARY KEY",
    "k BIGINT UNSIGNED PRIMARY KEY",
    "k VARCHAR(20) PRIMARY KEY",
    "k INT NOT NULL, m BINARY(3) NOT NULL, PRIMARY KEY (m, k)",
    "k DECIMAL(20,4) NOT NULL, u INT, UNIQUE (u), UNIQUE (k)",
    "k INT, KEY (k)",
    "k INT NOT NULL, g INT AS (k + 1) STORED, v INT AS (k + 2) VIRTUAL INVISIBLE, PRIMARY KEY (g)",
];

struct Writer {
    session: Session,
    numbers: Numbers,
    made: u64,
    refused: u64,
}

impl Writer {
    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[usize::try_from(self.numbers.between(0, from.len() as u64 - 1)).unwrap()]
    }

    fn key(&mut self) -> u64 {
        self.numbers.between(1, 60)
    }

    fn table(&mut self) -> String {
        format!("w{}", self.numbers.between(0, KEYS.len() as u64 - 1))
    }

    fn value(&mut self, column: usize) -> &'static str {
        if self.numbers.between(0, 3) == 0 { "NULL" } else { self.pick(COLUMNS[column].2) }
    }

    fn create(&mut self, number: usize) -> String {
        let columns: Vec<String> =
            COLUMNS.iter().map(|(name, column_type, _)| format!("{name} {column_type}")).collect();
        format!("CREATE TABLE w{number} ({}, {})", columns.join(", "), KEYS[number])
    }

    /// Errors are part of it: a key that is there already, a column that is gone.
    fn run(&mut self, sql: &str) {
        match self.session.sql(sql) {
            Ok(_) => self.made += 1,
            Err(_) => self.refused += 1,
        }
    }

    fn insert(&mut self, table: &str) -> String {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
        let mut rows = Vec::new();
        for _ in 0..self.numbers.between(1, 4) {
            let values: Vec<&str> = (0..COLUMNS.len()).map(|column| self.value(column)).collect();
            rows.push(format!("({}, {})", self.key(), values.join(", ")));
        }
        let verb = self.pick(&["INSERT", "INSERT IGNORE", "REPLACE"]);
        let upsert = verb == "INSERT" && self.numbers.between(0, 1) == 0;
        let tail = if upsert { " ON DUPLICATE KEY UPDATE c_ti = 1, k = k + 100" } else { "" };
        format!("{verb} INTO {table} (k, {}) VALUES {}{tail}", names.join(", "), rows.join(", "))
    }

    fn change(&mut self, table: &str) -> String {
        let column = usize::try_from(self.numbers.between(0, COLUMNS.len() as u64 - 1)).unwrap();
        let (value, key) = (self.value(column), self.key());
        match self.numbers.between(0, 7) {
            0 => format!("DELETE FROM {table} WHERE k < {key} LIMIT 2"),
            1 => format!("UPDATE {table} SET k = k + 1 ORDER BY k DESC"),
            2 => format!("UPDATE {table} SET k = k - 1 ORDER BY k"),
            3 => format!("UPDATE {table} SET k = {key} WHERE k > {key} LIMIT 1"),
            4 => format!("UPDATE w4 SET u = NULL WHERE k = {key}; UPDATE w4 SET u = k"),
            _ => format!("UPDATE {table} SET {} = {value} WHERE k >= {key} LIMIT 3", COLUMNS[column].0),
        }
    }

    /// What has the server compute columns anew is not followed: `mirror_live` has that.
    fn computes(&mut self, table: &str) -> bool {
        let count = "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()";
        let count = format!("{count} AND TABLE_NAME = '{table}' AND GENERATION_EXPRESSION <> ''");
        self.session.sql(&count).unwrap().trim() != "0"
    }

    fn schema_change(&mut self, table: &str) -> String {
        let n = self.numbers.between(0, 3);
        // Types only ever widen.
        let wide = (self.made / 100).min(8);
        match self.numbers.between(0, 15) {
            13.. if self.computes(table) => format!("ALTER TABLE {table} COMMENT 'c{n}'"),
            0 => format!("ALTER TABLE {table} ADD x{n} INT"),
            1 => format!("ALTER TABLE {table} ADD x{n} VARCHAR(9) NOT NULL DEFAULT 'ab', ADD y{n} DECIMAL(6,2) DEFAULT 1.5 FIRST"),
            2 => format!("ALTER TABLE {table} DROP x{n}"),
            3 => format!("ALTER TABLE {table} RENAME COLUMN x{n} TO x{}", (n + 1) % 4),
            4 => format!("ALTER TABLE {table} ADD INDEX i{n} (k), ADD x{n} BIGINT DEFAULT -1 AFTER c_v"),
            5 => format!("ALTER TABLE {table} DROP INDEX i{n}"),
            6 => format!("TRUNCATE {table}"),
            7 => format!("RENAME TABLE {table} TO aside, w0 TO {table}, aside TO w0"),
            // As gh-ost and pt-osc do it.
            8 => format!(
                "DROP TABLE IF EXISTS _new, _old; CREATE TABLE _new LIKE {table}; ALTER TABLE _new ADD z{n} INT; INSERT INTO _new SELECT *, NULL FROM {table};
                 RENAME TABLE {table} TO _old, _new TO {table}; DROP TABLE _old"
            ),
            9 => format!("DROP TABLE IF EXISTS copy{n}; CREATE TABLE copy{n} AS SELECT * FROM {table}"),
            10 => format!("RENAME TABLE copy{n} TO d2.copy{n}"),
            11 => format!("DROP DATABASE d2; CREATE DATABASE d2; CREATE TABLE d2.e (a INT); INSERT INTO d2.e VALUES ({n})"),
            12 => format!("ALTER TABLE {table} RENAME TO moved; ALTER TABLE moved RENAME {table}"),
            13 => format!("ALTER TABLE {table} MODIFY c_v VARCHAR({})", 40 + self.made.min(4000)),
            14 => format!("DELETE FROM copy{n} LIMIT 1; UPDATE copy{n} SET c_ti = 3 LIMIT 2"),
            _ => format!("ALTER TABLE {table} MODIFY c_dec DECIMAL({},{})", 31 + 2 * wide, 10 + wide),
        }
    }

    fn step(&mut self) {
        let table = self.table();
        let sql = match self.numbers.between(0, 19) {
            0 => self.schema_change(&table),
            1..=9 => self.insert(&table),
            10..=17 => self.change(&table),
            _ => {
                let other = self.table();
                let (a, b, c) = (self.insert(&table), self.change(&other), self.change(&table));
                let end = self.pick(&["COMMIT", "COMMIT", "ROLLBACK"]);
                format!("BEGIN; {a}; SAVEPOINT s; {b}; ROLLBACK TO s; {c}; {end}")
            }
        };
        self.run(&sql);
        // A statement that was refused leaves its transaction open.
        self.run("ROLLBACK");
    }
}

fn write(
    server: &Arc<Server>,
    seed: u64,
    over: Arc<AtomicBool>,
    steps: Arc<AtomicU64>,
) -> JoinHandle<(u64, u64)> {
    let session = server.connect().unwrap();
    std::thread::spawn(move || {
        let mut writer = Writer { session, numbers: Numbers(seed), made: 0, refused: 0 };
        // Strict, but zero and partial dates are values.
        writer.session.sql("SET sql_mode = 'STRICT_TRANS_TABLES', time_zone = '+00:00'; USE d").unwrap();
        for number in 0..KEYS.len() {
            let create = writer.create(number);
            writer.session.sql(&create).unwrap_or_else(|error| panic!("{create}: {error}"));
        }
        while !over.load(Ordering::SeqCst) {
            writer.step();
            steps.fetch_add(1, Ordering::SeqCst);
        }
        (writer.made, writer.refused)
    })
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn any_workload_over_any_kill_leaves_both_sides_equal() {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let seed = setting("CAPSTAN_MIRROR_SEED").unwrap_or(u64::try_from(clock & 0xffff_ffff).unwrap());
    let lasts = Duration::from_secs(setting("CAPSTAN_MIRROR_SECONDS").unwrap_or(20));
    eprintln!("CAPSTAN_MIRROR_SEED={seed}");
    let server = Arc::new(Server::builder().option("--max-binlog-size=1M").start().unwrap());
    server.sql("RESET BINARY LOGS AND GTIDS; CREATE DATABASE d; CREATE DATABASE d2").unwrap();
    let (over, steps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = write(&server, seed, Arc::clone(&over), Arc::clone(&steps));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let target = format!("mirror:{}", path.display());
    let url = url_at(server.port());
    let mut numbers = Numbers(seed ^ 0x5eed);
    let begun = Instant::now();
    let mut kills = 0;
    while begun.elapsed() < lasts {
        let point = ["before_commit", "after_commit", "before_accept", "any moment"]
            [usize::try_from(numbers.between(0, 3)).unwrap()];
        let ended = if point == "any moment" {
            let process = Syncing::start(SYNC_CHILD, &[&url, &target, TABLES], None);
            std::thread::sleep(Duration::from_millis(numbers.between(50, 1500)));
            process.kill9()
        } else {
            let fault = Some((point, numbers.between(1, 200)));
            let mut process = Syncing::start(SYNC_CHILD, &[&url, &target, TABLES], fault);
            match process.wait(Duration::from_secs(20)) {
                Some(ended) => ended,
                None => process.kill9(),
            }
        };
        assert!(ended.is_killed(), "seed {seed}: it ended by itself: {ended:?}");
        kills += 1;
    }
    over.store(true, Ordering::SeqCst);
    let (made, refused) = writer.join().unwrap();
    let ended = Syncing::start(SYNC_CHILD, &[&url, &target, TABLES, "until=now"], None).finish();
    assert!(ended.status.success(), "seed {seed}: {}", ended.stderr);
    let source = source_rows(&server, "d");
    let rows: usize = source.values().map(Vec::len).sum();
    eprintln!("{made} statements ({refused} refused), {kills} kills, {rows} rows in {} tables", source.len());
    assert!(made > 20 && rows > 0, "it wrote hardly anything");
    assert_equal(&server, "d", &path);
}
