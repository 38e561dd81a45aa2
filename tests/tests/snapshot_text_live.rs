//! Tables whose keys are text, under many collations, are copied along them in small chunks while their writers go on:
//! afterwards the mirror holds what `SELECT` gives.
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
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::workload::{Numbers, quick_limits};

/// Collations with and without padding, case, accents, contractions and tailorings; in the order of bytes, too.
const COLLATIONS: &[(&str, &str)] = &[
    ("utf8mb4", "utf8mb4_0900_ai_ci"),
    ("utf8mb4", "utf8mb4_0900_as_cs"),
    ("utf8mb4", "utf8mb4_0900_bin"),
    ("utf8mb4", "utf8mb4_bin"),
    ("utf8mb4", "utf8mb4_general_ci"),
    ("utf8mb4", "utf8mb4_unicode_ci"),
    ("utf8mb4", "utf8mb4_unicode_520_ci"),
    ("utf8mb4", "utf8mb4_czech_ci"),
    ("utf8mb4", "utf8mb4_es_trad_0900_ai_ci"),
    ("utf8mb4", "utf8mb4_de_pb_0900_ai_ci"),
    ("utf8mb4", "utf8mb4_ja_0900_as_cs_ks"),
    ("utf8mb4", "utf8mb4_zh_0900_as_cs"),
    ("utf8mb3", "utf8mb3_general_ci"),
    ("utf8mb3", "utf8mb3_bin"),
    ("latin1", "latin1_swedish_ci"),
    ("latin1", "latin1_german2_ci"),
    ("latin1", "latin1_bin"),
    ("latin2", "latin2_czech_cs"),
    ("cp932", "cp932_japanese_ci"),
    ("sjis", "sjis_japanese_ci"),
    ("gbk", "gbk_chinese_ci"),
    ("gbk", "gbk_bin"),
    ("utf16", "utf16_unicode_ci"),
    ("utf32", "utf32_bin"),
];

/// Words that are the same under some collations and others under others.
const WORDS: &[&str] = &[
    "", "a", "A", "á", "Ä", "ae", "b", "B", "c", "ch", "CZ", "d", "h", "i", "I", "l", "ll", "LL", "m", "n",
    "ñ", "o", "ö", "oe", "Oe", "s", "ss", "ß", "SZ", "z", "Ž", "9", "10", "-", "_", "'", "я", "λ", "ς", "中",
    "文", "ア", "あ", "한",
];
/// What follows a word.
const TAILS: &[&str] = &["", " ", "\t", "!", "x", "X", "é"];

fn word(n: u64) -> String {
    let tail = TAILS[n as usize / WORDS.len() % TAILS.len()];
    let text = format!("{}{tail}", WORDS[n as usize % WORDS.len()]);
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Of word `n`, as SQL.
fn literal(charset: &str, n: u64) -> String {
    format!("CONVERT(_utf8mb4 x'{}' USING {charset})", word(n))
}

struct Table {
    name: String,
    charset: &'static str,
    columns: String,
}

fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for (n, (charset, collation)) in COLLATIONS.iter().enumerate() {
        let kind = if n % 2 == 0 { "VARCHAR" } else { "CHAR" };
        let text = format!("k {kind}(12) CHARACTER SET {charset} COLLATE {collation}");
        let key = match n % 3 {
            0 => "PRIMARY KEY (k)",
            1 => "PRIMARY KEY (k, a)",
            _ => "PRIMARY KEY (a, k)",
        };
        tables.push(Table {
            name: format!("t{n}"),
            charset,
            columns: format!("{text}, a TINYINT NOT NULL DEFAULT 1, v INT, {key}"),
        });
    }
    tables
}

fn fill(server: &Server) {
    server.sql("CREATE DATABASE snap").unwrap();
    let mut session = server.connect().unwrap();
    for Table { name, charset, columns } in tables() {
        let words = (WORDS.len() * TAILS.len()) as u64;
        let rows: Vec<String> =
            (0..words).step_by(2).map(|n| format!("({}, {}, {n})", literal(charset, n), n % 3)).collect();
        session.query(&format!("CREATE TABLE snap.{name} ({columns})")).unwrap();
        session.query(&format!("INSERT IGNORE INTO snap.{name} VALUES {}", rows.join(","))).unwrap();
    }
}

fn mirror(path: &Path) -> Mirror {
    let mut options = MirrorOptions::default();
    options.synchronous = Synchronous::Off;
    Mirror::open(path, options).unwrap()
}

fn copying(server: &Server, rows: u64, bytes: usize) -> Builder {
    let limits = CopyLimits { chunk_rows: rows, chunk_bytes: bytes, ..CopyLimits::default() };
    Replica::builder(url_at(server.port()).parse().unwrap())
        .limits(quick_limits())
        .tables(["snap.*"])
        .snapshot(Vec::<String>::new())
        .copy(limits)
        .until(Until::Now)
}

/// Writers that change texts into others that are the same under some collations.
fn writers(server: &Arc<Server>, count: u64, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let writer = |w: u64| {
        let (server, stop) = (Arc::clone(server), Arc::clone(stop));
        std::thread::spawn(move || {
            let mut session = server.connect().unwrap();
            session.query("SET innodb_lock_wait_timeout = 1").unwrap();
            let (tables, mut numbers, mut written) = (tables(), Numbers(w), 0);
            while !stop.load(Ordering::Relaxed) || written < 50 {
                // Mostly all of them at one table, in the order in which they are copied.
                let Table { name, charset, .. } =
                    &tables[numbers.between(0, tables.len() as u64 - 1) as usize];
                let mut some = || {
                    let n = numbers.between(0, 307);
                    (literal(charset, n), n % 3)
                };
                let ((one, a), (other, b), (third, c)) = (some(), some(), some());
                for sql in [
                    "BEGIN".to_owned(),
                    format!("INSERT IGNORE INTO snap.{name} VALUES ({one}, {a}, {written})"),
                    format!("UPDATE IGNORE snap.{name} SET k = {one} WHERE k = {other}"),
                    format!("UPDATE snap.{name} SET v = {written} WHERE k = {third} AND a = {c}"),
                    format!("UPDATE IGNORE snap.{name} SET k = UPPER(k), a = {b} WHERE k = {other}"),
                    format!("DELETE FROM snap.{name} WHERE k = {third} AND a = {c}"),
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
fn tables_with_keys_of_text_that_are_copied_under_writers_are_the_tables() {
    let server = Arc::new(Server::start().unwrap());
    fill(&server);
    for (rows, bytes, count) in [(10_000, 1 << 20, 0), (3, 1 << 20, 3), (40, 300, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let stop = Arc::new(AtomicBool::new(false));
        let load = writers(&server, count, &stop);
        let (copied, _) = Follower::blocking(copying(&server, rows, bytes), mirror(&path)).end();
        stop.store(true, Ordering::Relaxed);
        load.into_iter().for_each(|writer| writer.join().unwrap());
        copied.unwrap();
        Follower::blocking(copying(&server, rows, bytes), mirror(&path)).end().0.unwrap();
        assert_equal(&server, "snap", &path);
    }
}

/// The copy ends in the middle of a table, and goes on from a border of text.
#[test]
fn a_copy_goes_on_behind_a_text() {
    let server = Arc::new(Server::start().unwrap());
    fill(&server);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let stop = Arc::new(AtomicBool::new(false));
    let load = writers(&server, 2, &stop);
    for chunk in 0..4 {
        let follower = Follower::blocking(copying(&server, 7, 1 << 20), mirror(&path));
        follower.wait_until("some of a table is there", |status| {
            let copied: u64 = status.copies.iter().map(|copy| copy.chunks).sum();
            status.copies.is_empty() || copied > 40 * chunk
        });
        follower.drain().0.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    load.into_iter().for_each(|writer| writer.join().unwrap());
    Follower::blocking(copying(&server, 7, 1 << 20), mirror(&path)).end().0.unwrap();
    Follower::blocking(copying(&server, 7, 1 << 20), mirror(&path)).end().0.unwrap();
    assert_equal(&server, "snap", &path);
}
