//! Which tables are copied: sets that grow, tables that enter while the stream goes on, tables without rows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use capstan::core::deliver::{CopyState, TableCopy};
use capstan::sqlite::{Mirror, MirrorOptions};
use capstan::{Builder, Code, CopyLimits, Halt, Replica, Stored, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::{assert_equal, differences, mirror_rows, source_rows};
use capstan_tests::workload::quick_limits;

fn open(path: &Path) -> Mirror {
    Mirror::open(path, MirrorOptions::default()).unwrap()
}

fn builder(server: &Server, tables: &[&str], snapshot: Option<&[&str]>) -> Builder {
    let builder = Replica::builder(url_at(server.port()).parse().unwrap())
        .limits(quick_limits())
        .tables(tables.iter().copied())
        .copy(CopyLimits { chunk_rows: 3, ..CopyLimits::default() });
    match snapshot {
        Some(patterns) => builder.snapshot(patterns.iter().copied()),
        None => builder,
    }
}

struct Target {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Target {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        Self { _folder: folder, path }
    }

    fn run(&self, builder: Builder) -> Result<(), Halt> {
        Follower::blocking(builder.until(Until::Now), open(&self.path)).end().0.map(|_| ())
    }

    fn copy(&self, schema: &str, table: &str) -> Option<TableCopy> {
        let position = open(&self.path).stored().unwrap().unwrap();
        position.copies().get(&(schema.to_owned(), table.to_owned())).cloned()
    }
}

/// Both databases.
fn assert_both_equal(server: &Server, target: &Target) {
    let mut source = source_rows(server, "d");
    source.append(&mut source_rows(server, "e"));
    let found = differences(&source, &mirror_rows(&target.path));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn server() -> Server {
    let server = Server::start().unwrap();
    server
        .sql(
            "CREATE DATABASE d; CREATE DATABASE e; CREATE DATABASE aside;
             CREATE TABLE d.t (id INT PRIMARY KEY, v INT); INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5);
             CREATE TABLE d.none (id INT PRIMARY KEY, v INT);
             CREATE TABLE e.t (id INT PRIMARY KEY, v INT); INSERT INTO e.t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
        )
        .unwrap();
    server
}

#[test]
fn a_set_that_grows_is_copied_where_the_snapshot_covers_it() {
    let (server, target) = (server(), Target::new());
    target.run(builder(&server, &["d.*"], Some(&[]))).unwrap();
    let of_none = target.copy("d", "none").unwrap();
    assert_eq!((of_none.state, of_none.chunks, of_none.rows), (CopyState::Done, 1, 0), "one empty chunk");
    let before = target.copy("d", "t").unwrap();
    // Made since: the stream has all of it.
    server.sql("CREATE TABLE d.later (id INT PRIMARY KEY); INSERT INTO d.later VALUES (1); UPDATE d.t SET v = 9; UPDATE e.t SET v = 8").unwrap();
    let code = |tables: &[&str], snapshot: Option<&[&str]>| {
        target.run(builder(&server, tables, snapshot)).map_err(|halt| (halt.code, halt.to_string()))
    };
    let changed = |run: Result<(), (Code, String)>| match run {
        Err((Code::CaptureSetChanged, text)) => text,
        other => panic!("{other:?}"),
    };
    changed(code(&["d.*", "e.*"], None));
    changed(code(&["e.*"], Some(&[])));
    changed(code(&["d.t", "e.*"], Some(&[])));
    assert!(changed(code(&["d.*", "e.*"], Some(&["d.*"]))).contains("e.t"));
    target.run(builder(&server, &["d.*", "e.*"], Some(&[]))).unwrap();
    assert_both_equal(&server, &target);
    assert_eq!(target.copy("d", "t").unwrap(), before, "not again");
    assert_eq!((target.copy("d", "later"), target.copy("e", "t").unwrap().rows), (None, 4));
    // With the sets as they are now it goes on, with or without the option.
    server.sql("INSERT INTO e.t VALUES (7, 7)").unwrap();
    target.run(builder(&server, &["d.*", "e.*"], None)).unwrap();
    target.run(builder(&server, &["d.*", "e.*"], Some(&[]))).unwrap();
    assert_both_equal(&server, &target);
}

#[test]
fn more_tables_of_the_set_are_copied_when_they_are_named() {
    let (server, target) = (server(), Target::new());
    target.run(builder(&server, &["*.*"], Some(&["d.t"]))).unwrap();
    assert!(target.copy("e", "t").is_none() && !mirror_rows(&target.path).contains_key("e.t"));
    server.sql("UPDATE e.t SET v = 5 WHERE id = 3").unwrap();
    assert_eq!(target.run(builder(&server, &["*.*"], None)).unwrap_err().code, Code::HistoryIncomplete);
    target.run(builder(&server, &["*.*"], Some(&["e.*"]))).unwrap();
    assert_both_equal(&server, &target);
}

#[test]
fn nothing_to_copy_is_a_beginning_too() {
    let (server, target) = (Server::start().unwrap(), Target::new());
    target.run(builder(&server, &["d.*"], Some(&[]))).unwrap();
    server
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")
        .unwrap();
    target.run(builder(&server, &["d.*"], Some(&[]))).unwrap();
    assert_equal(&server, "d", &target.path);
    assert!(target.copy("d", "t").is_none());
}

/// Red without the snapshot: `table_entered_capture`.
#[test]
fn a_table_that_enters_is_copied_while_the_rest_streams() {
    let (server, target) = (server(), Target::new());
    let follower = Follower::blocking(builder(&server, &["d.*"], Some(&[])), open(&target.path));
    follower.wait_until("it is copied", |status| status.state == "streaming" && status.copies.is_empty());
    for n in 0..4 {
        // A new one, one in the place of another, one that goes out and comes again.
        server
            .sql(&format!(
                "CREATE TABLE aside.x (id INT PRIMARY KEY, v INT); INSERT INTO aside.x VALUES (1, {n}), (2, 2), (3, 3), (4, 4);
                 RENAME TABLE aside.x TO d.x{n}; INSERT INTO d.x{n} VALUES (9, 9);
                 CREATE TABLE aside.new (id INT PRIMARY KEY, v INT); INSERT INTO aside.new SELECT id + 10, v FROM d.t;
                 RENAME TABLE d.t TO aside.old, aside.new TO d.t; DROP TABLE aside.old; UPDATE d.t SET v = v + 1;
                 RENAME TABLE d.none TO aside.none; INSERT INTO aside.none VALUES ({n}, 1); RENAME TABLE aside.none TO d.none"
            ))
            .unwrap();
        std::thread::sleep(Duration::from_millis(n * 100));
    }
    follower.wait_for(&server);
    follower.wait_until("all is copied", |status| status.copies.is_empty());
    follower.drain().0.unwrap();
    assert_equal(&server, "d", &target.path);
    assert_eq!(target.copy("d", "x3").unwrap().state, CopyState::Done);
    server.sql("CREATE TABLE aside.y (id INT PRIMARY KEY); INSERT INTO aside.y VALUES (1); RENAME TABLE aside.y TO d.y").unwrap();
    let halt = target.run(builder(&server, &["d.*"], None)).unwrap_err();
    assert_eq!(halt.code, Code::TableEnteredCapture);
    target.run(builder(&server, &["d.*"], Some(&[]))).unwrap();
    assert_equal(&server, "d", &target.path);
}
