//! Those who watch and steer a copy, and what the source has to bear: each is seen to happen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use capstan::sqlite::{Mirror, MirrorOptions};
use capstan::{Builder, CopyLimits, Replica, Status, Until};
use capstan_mysql::{Server, SqlError};
use capstan_tests::harness::{Follower, PATIENCE, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::proxy::Proxy;
use capstan_tests::workload::quick_limits;

const ROWS: u64 = 600;

fn fill(server: &Server) {
    let mut session = server.connect().unwrap();
    session
        .query(
            "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(200)); CREATE TABLE u LIKE t; BEGIN",
        )
        .unwrap();
    for n in 0..ROWS {
        session.query(&format!("INSERT INTO t VALUES ({n}, 0, REPEAT('x', 150))")).unwrap();
    }
    session.query("COMMIT; INSERT INTO u VALUES (1, 1, 'u'); ANALYZE TABLE t").unwrap();
}

/// Says each statement into a table.
fn logging() -> Server {
    Server::builder().options(vec!["--general-log=1", "--log-output=TABLE"]).start().unwrap()
}

/// How often a statement was said.
fn said(server: &Server, like: &str) -> u64 {
    // What is prepared is logged once more when it is run.
    let sql = format!(
        "SELECT COUNT(*) FROM mysql.general_log WHERE command_type <> 'Prepare' AND argument LIKE '{like}'"
    );
    server.sql(&sql).unwrap().trim().parse().unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
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

fn open(path: &Path) -> Mirror {
    Mirror::open(path, MirrorOptions::default()).unwrap()
}

fn limits() -> CopyLimits {
    CopyLimits { chunk_rows: 10, running_max: 0, ..CopyLimits::default() }
}

fn copying(port: u16, limits: CopyLimits) -> Builder {
    Replica::builder(url_at(port).parse().unwrap())
        .limits(quick_limits())
        .tables(["d.*"])
        .snapshot(Vec::<String>::new())
        .copy(limits)
}

fn rows(status: &Status) -> u64 {
    status.copies.iter().map(|copy| copy.rows).sum()
}

/// Drains it, and lets it come to its end without a bound.
fn finish(follower: Follower, server: &Server, target: &Target) {
    follower.drain().0.unwrap();
    let rest = copying(server.port(), CopyLimits::default()).until(Until::Now);
    Follower::blocking(rest, open(&target.path)).end().0.unwrap();
    assert_equal(server, "d", &target.path);
}

#[test]
fn a_copy_tells_how_far_it_is_and_pauses_while_the_stream_goes_on() {
    let server = Server::start().unwrap();
    fill(&server);
    let target = target();
    let follower = Follower::blocking(copying(server.port(), limits()).copy_rate(20_000), open(&target.path));
    follower.wait_until("some rows", |status| rows(status) > 20 && status.copy_left_s.is_some());
    let status = follower.status();
    let t = status.copies.iter().find(|copy| copy.table == "t").unwrap();
    assert!(t.bytes > t.rows * 150, "{t:?}");
    assert!(t.estimated_rows.unwrap() > ROWS / 3, "{t:?}");
    assert!(status.copy_rows_per_second.is_some(), "{status:?}");
    follower.handle().pause_copy();
    follower.wait_until("it pauses", |status| status.copy_waits == Some("paused"));
    let (paused, transactions) = (rows(&follower.status()), follower.status().transactions);
    for n in 0..20 {
        server.sql(&format!("UPDATE d.t SET v = {n} WHERE id < 5")).unwrap();
    }
    follower.wait_until("the stream goes on", |status| status.transactions > transactions + 15);
    // No view is left that would keep the server's old rows.
    until("no view is open", || {
        server.sql("SELECT COUNT(*) FROM information_schema.INNODB_TRX").unwrap().trim() == "0"
    });
    // One chunk may have been on its way.
    let now = rows(&follower.status());
    assert!(now <= paused + 10, "{now} rows, {paused} when it paused");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(rows(&follower.status()), now, "it was paused");
    follower.handle().resume_copy();
    follower.wait_until("it goes on", |status| rows(status) > now);
    finish(follower, &server, &target);
}

#[test]
fn a_copy_waits_while_the_source_is_busy() {
    let server = Arc::new(Server::start().unwrap());
    fill(&server);
    let target = target();
    let stop = Arc::new(AtomicBool::new(false));
    // More than the bound also while some are between two statements.
    let busy: Vec<_> = (0..12)
        .map(|_| {
            let (server, stop) = (Arc::clone(&server), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut session = server.connect().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    session.query("SELECT SLEEP(0.5)").unwrap();
                }
            })
        })
        .collect();
    let running = || server.sql("SHOW GLOBAL STATUS LIKE 'Threads_running'").unwrap();
    until("many run", || running().split_whitespace().nth(1).is_some_and(|n| n.parse::<u64>().unwrap() > 8));
    let follower = Follower::blocking(
        copying(server.port(), CopyLimits { running_max: 3, ..limits() }),
        open(&target.path),
    );
    follower.wait_until("it waits", |status| status.copy_waits == Some("threads_running"));
    let before = rows(&follower.status());
    std::thread::sleep(Duration::from_millis(1500));
    assert!(rows(&follower.status()) <= before + 10, "it was held back");
    stop.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    follower.wait_until("it is copied", |status| status.state == "streaming" && status.copies.is_empty());
    follower.drain().0.unwrap();
    assert_equal(&server, "d", &target.path);
}

/// A replica that cannot apply what its source has committed.
#[test]
fn a_copy_waits_while_its_replica_lags_and_a_read_only_one_is_copied_from() {
    let (first, second) = (Server::start().unwrap(), logging());
    second.replica_of(&first).unwrap();
    fill(&first);
    assert!(second.wait_for_gtids(&first.gtid_executed().unwrap(), PATIENCE).unwrap());
    second.sql("SET GLOBAL super_read_only = 1").unwrap();
    let target = target();
    let mut holder = second.connect().unwrap();
    holder.query("BEGIN; SELECT * FROM d.u FOR SHARE").unwrap();
    first.sql("UPDATE d.u SET v = 2").unwrap();
    let bound = CopyLimits { lag_max: Duration::from_millis(300), ..limits() };
    let follower = Follower::blocking(copying(second.port(), bound), open(&target.path));
    follower.wait_until("it waits", |status| status.copy_waits == Some("replication_lag"));
    holder.query("ROLLBACK").unwrap();
    assert!(second.wait_for_gtids(&first.gtid_executed().unwrap(), PATIENCE).unwrap());
    follower.wait_until("it is copied", |status| status.state == "streaming" && status.copies.is_empty());
    follower.drain().0.unwrap();
    assert_equal(&first, "d", &target.path);

    // A lock that is not granted: WRITE is refused there, and READ is asked for until it is.
    let target = self::target();
    second.sql("SET GLOBAL super_read_only = 0").unwrap();
    holder.query("BEGIN; UPDATE d.t SET v = 1 WHERE id = 1").unwrap();
    second.sql("SET GLOBAL super_read_only = 1").unwrap();
    let bound = CopyLimits { lock_pause: Duration::from_millis(50), ..limits() };
    let follower = Follower::blocking(copying(second.port(), bound), open(&target.path));
    until("WRITE was asked for, and READ again", || {
        said(&second, "LOCK TABLES%WRITE") > 0 && said(&second, "KILL QUERY%") > 1
    });
    holder.query("ROLLBACK").unwrap();
    follower.wait_until("it is copied", |status| status.state == "streaming" && status.copies.is_empty());
    follower.drain().0.unwrap();
    assert_equal(&first, "d", &target.path);
    assert_eq!(said(&second, "LOCK TABLES%WRITE"), 1, "it is known then");
}

/// Writers whose transactions overlap without end: a READ lock is never granted, a WRITE lock is, for those who come later
/// wait behind it. One transaction that does not end: the statement that waits is killed, so that others do not wait
/// behind it, and asked again.
#[test]
fn a_lock_that_is_not_granted_is_asked_for_as_write_and_given_up_again() {
    let server = Arc::new(logging());
    fill(&server);
    let target = target();
    let mut holder = server.connect().unwrap();
    holder.query("BEGIN; UPDATE d.t SET v = 1 WHERE id = 1").unwrap();
    let bound = CopyLimits {
        lock_write: Duration::from_millis(300),
        lock_pause: Duration::from_millis(50),
        ..limits()
    };
    let follower = Follower::blocking(copying(server.port(), bound), open(&target.path));
    until("both were asked for and given up", || {
        said(&server, "LOCK TABLES%`t` READ") > 1
            && said(&server, "LOCK TABLES%`t` WRITE") > 1
            && said(&server, "KILL QUERY%") > 2
    });
    // Who comes later is let through.
    server.sql("UPDATE d.t SET v = 2 WHERE id = 2").unwrap();

    // There is always one open: each ends when the other has begun, or does not come to it.
    let stop = Arc::new(AtomicBool::new(false));
    let turn = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let writers: Vec<_> = (0..2_u64)
        .map(|writer| {
            let (server, stop, turn) = (Arc::clone(&server), Arc::clone(&stop), Arc::clone(&turn));
            std::thread::spawn(move || {
                let mut session = server.connect().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    session
                        .query(&format!("BEGIN; UPDATE d.t SET v = v + 1 WHERE id = {}", writer + 10))
                        .unwrap();
                    let mine = turn.fetch_add(1, Ordering::SeqCst);
                    let patience = Instant::now() + Duration::from_millis(250);
                    while turn.load(Ordering::SeqCst) == mine + 1 && Instant::now() < patience {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    std::thread::sleep(Duration::from_millis(20));
                    session.query("COMMIT").unwrap();
                }
            })
        })
        .collect();
    until("both write", || turn.load(Ordering::SeqCst) > 4);
    holder.query("COMMIT").unwrap();
    follower.wait_until("it is copied", |status| status.state == "streaming" && status.copies.is_empty());
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    follower.wait_for(&server);
    follower.drain().0.unwrap();
    assert_equal(&server, "d", &target.path);
}

/// One that is named is refused (`snapshot_key_unsupported`); under a pattern the tables are meant.
#[test]
fn a_view_under_a_pattern_is_passed_over() {
    let server = Server::start().unwrap();
    fill(&server);
    server.sql("CREATE VIEW d.seen AS SELECT id FROM d.t").unwrap();
    let target = target();
    let builder = copying(server.port(), CopyLimits::default()).until(Until::Now);
    Follower::blocking(builder, open(&target.path)).end().0.unwrap();
    let mirror = rusqlite::Connection::open(&target.path).unwrap();
    let mut tables = mirror
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'd.%' ORDER BY 1")
        .unwrap();
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(tables, ["d.t", "d.u"]);
}

/// Red without the watch: it would wait until the table is copied.
#[test]
fn who_waits_for_our_view_waits_for_a_chunk() {
    let server = Arc::new(Server::start().unwrap());
    fill(&server);
    let target = target();
    let bound = CopyLimits { cut_age: Duration::from_secs(3600), ..limits() };
    let follower = Follower::blocking(copying(server.port(), bound).copy_rate(4_000), open(&target.path));
    follower.wait_until("some rows", |status| rows(status) >= 20);
    let before = rows(&follower.status());
    server.sql("ALTER TABLE d.t ADD c INT").unwrap();
    let status = follower.status();
    let t = status.copies.iter().find(|copy| copy.table == "t").expect("it is still being copied");
    assert!(t.state != "done" && t.rows < ROWS && before > 0, "{t:?}");
    finish(follower, &server, &target);
}

/// Red where the end of the table, once it was found, outlives the cut it was found in.
#[test]
fn a_cut_that_is_lost_before_its_first_chunk_is_delivered() {
    let server = logging();
    fill(&server);
    let target = target();
    let bound = CopyLimits { chunk_rows: ROWS, ..limits() };
    let follower = Follower::blocking(copying(server.port(), bound).copy_rate(15_000), open(&target.path));
    until("the first chunk is read", || said(&server, "SELECT%`d`.`t`%LIMIT 600") > 0);
    // The connection that holds no view: the loss of it is noticed at once.
    let lock = server
        .sql(
            "SELECT ID FROM performance_schema.processlist WHERE USER = 'root' AND COMMAND = 'Sleep' AND ID <> CONNECTION_ID()
             AND ID NOT IN (SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX)",
        )
        .unwrap();
    assert_eq!(rows(&follower.status()), 0, "it is on its way");
    server.sql(&format!("INSERT INTO d.t VALUES ({}, 1, 'behind the end')", ROWS + 7)).unwrap();
    for id in lock.lines() {
        match server.sql(&format!("KILL {id}")) {
            // A session of this test that was about to end when it was listed.
            Err(SqlError::Server { code: 1094, .. }) => {}
            killed => drop(killed.unwrap()),
        }
    }
    until("it is read once more", || said(&server, "SELECT%`d`.`t`%LIMIT 600") > 1);
    follower.wait_until("it is delivered", |status| status.copies.is_empty() || rows(status) >= ROWS);
    finish(follower, &server, &target);
}

/// In the middle of the copy of a table, under writers: the other server has everything and goes on.
#[test]
fn a_failover_in_the_middle_of_a_copy() {
    let (first, second) = (Arc::new(Server::start().unwrap()), Arc::new(Server::start().unwrap()));
    second.replica_of(&first).unwrap();
    fill(&first);
    let proxy = Proxy::start(first.port());
    let target = target();
    let write = |server: &Server, n: u64| {
        server
            .sql(&format!(
                "BEGIN; UPDATE d.t SET v = v + 1 WHERE id % 37 = {n} % 37; DELETE FROM d.t WHERE id = {n} * 7;
                 INSERT INTO d.t VALUES ({n} * 1000 + 5000, {n}, 'new'); UPDATE d.t SET id = -id - 1 WHERE id = {n} * 11 + 3; COMMIT"
            ))
            .unwrap();
    };
    let follower = Follower::blocking(copying(proxy.port(), limits()).copy_rate(30_000), open(&target.path));
    let mut n = 0;
    while rows(&follower.status()) < 40 {
        n += 1;
        write(&first, n);
        std::thread::sleep(Duration::from_millis(30));
    }
    let copied = rows(&follower.status());
    assert!(follower.status().copies.iter().any(|copy| copy.state == "copying"), "{:?}", follower.status());
    assert!(second.wait_for_gtids(&first.gtid_executed().unwrap(), PATIENCE).unwrap());
    second.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
    first.kill9().unwrap();
    let dials = follower.status().dials;
    follower.wait_until("nobody answers", |status| status.dials > dials + 1);
    proxy.retarget(second.port());
    while rows(&follower.status()) < copied + 40 {
        n += 1;
        write(&second, n);
        std::thread::sleep(Duration::from_millis(30));
    }
    assert!(follower.status().reconnects >= 1);
    finish(follower, &second, &target);
}
