//! Every change once and in order, over `kill -9` of the syncing process while the server is written to.
//!
//! Truth is what the server's own `mysqlbinlog` reads in its binlog files. Half of the kills happen at named fault
//! points, so that the rare moments (committed and not acknowledged, position read and not dialled, inside a
//! transaction that is handed over while it is read) are met for certain; the others at any moment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use capstan_mysql::{Server, SqlError};
use capstan_tests::harness::{Entry, Syncing, assert_same, json_lines, ledger, truth, url_at};
use capstan_tests::workload::{Load, Numbers, OPTIONS, large, prepare};

const SYNC_CHILD: &str = env!("CARGO_BIN_EXE_sync_child");

/// How long a fault point is waited for before the process is killed where it is.
const POINT_PATIENCE: Duration = Duration::from_secs(20);

/// Any moment: the test kills, not the process itself.
const ANY_MOMENT: &str = "any moment";

/// A fault point, how often the process is to be killed there, and at most at which passage.
type Wanted = (&'static str, u32, u64);

/// Kills one process after another until every point has its number.
fn kill_all(
    arguments: &[&str],
    wanted: &[Wanted],
    seed: u64,
    mut after_each: impl FnMut(),
) -> BTreeMap<&'static str, u32> {
    let mut numbers = Numbers(seed);
    let mut kills: BTreeMap<&str, u32> = BTreeMap::new();
    loop {
        let open: Vec<&Wanted> = wanted
            .iter()
            .filter(|(point, number, _)| kills.get(point).copied().unwrap_or(0) < *number)
            .collect();
        if open.is_empty() {
            return kills;
        }
        let choice = usize::try_from(numbers.between(0, open.len() as u64 - 1)).unwrap();
        let (point, _, passages) = *open[choice];
        if point == ANY_MOMENT {
            let process = Syncing::start(SYNC_CHILD, arguments, None);
            std::thread::sleep(Duration::from_millis(numbers.between(10, passages)));
            let ended = process.kill9();
            assert!(ended.is_killed(), "it ended by itself: {ended:?}");
        } else {
            let fault = Some((point, numbers.between(1, passages)));
            let ended = Syncing::start(SYNC_CHILD, arguments, fault).wait(POINT_PATIENCE);
            let ended = ended.unwrap_or_else(|| panic!("the fault point {fault:?} is never passed"));
            assert!(ended.is_at(point), "it did not end at {fault:?}: {ended:?}");
        }
        *kills.entry(point).or_default() += 1;
        after_each();
    }
}

fn busy_server() -> (Arc<Server>, Load, String) {
    let server = Arc::new(Server::builder().options(OPTIONS.to_vec()).start().unwrap());
    prepare(&server);
    let load = Load::start(&server, 2, Duration::from_millis(5));
    let url = url_at(server.port());
    (server, load, url)
}

/// Red when rows and position are not one transaction: with rows that are committed by themselves, thousands of
/// changes are there too often.
#[test]
fn a_ledger_over_two_hundred_kills() {
    let (server, load, url) = busy_server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let target = format!("ledger:{}", path.display());
    let wanted = [
        ("after_commit", 40, 25),
        ("before_commit", 12, 25),
        ("before_accept", 12, 25),
        ("position_read", 24, 1),
        ("streamed_change", 24, 280),
        (ANY_MOMENT, 100, 180),
    ];
    let kills = kill_all(&[&url, &target], &wanted, 0x1d87_2b41, || {});
    let written = load.stop();
    let ended = Syncing::start(SYNC_CHILD, &[&url, &target, "until=now"], None).finish().well();
    let total: u32 = kills.values().sum();
    eprintln!("{total} kills {kills:?} over {written} transactions; status {}", ended.stdout);
    assert!(total >= 200 && total - kills[ANY_MOMENT] >= 100, "{kills:?}");
    let truth = truth(&server);
    assert_same(&truth, &ledger(&path));
    // The target is there: another run ends at once and adds nothing.
    Syncing::start(SYNC_CHILD, &[&url, &target, "until=now"], None).finish().well();
    assert_same(&truth, &ledger(&path));
}

/// A transaction of 3 MB, 24 times what may be retained, killed at fourteen places: never a part of it is seen, and in
/// the end the whole. Red when rows are committed by themselves.
#[test]
fn a_large_transaction_is_there_whole_or_not_at_all() {
    let server = Server::builder().options(OPTIONS.to_vec()).start().unwrap();
    prepare(&server);
    server.sql("INSERT INTO d.w (b, c, d) VALUES (9, 9, 9)").unwrap();
    server.sql(&large(1, 1, 3000)).unwrap();
    server.sql("INSERT INTO d.w (b, c, d) VALUES (9, 9, 10)").unwrap();
    // A statement that fails at its 200th row and cannot be taken back: its rows stay, and a QUERY `COMMIT` ends them.
    server.sql("CREATE TABLE d.m (a INT PRIMARY KEY, b VARCHAR(1100)) ENGINE = MyISAM").unwrap();
    let refused = server.sql(
        "INSERT INTO d.m WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
           SELECT IF(i = 200, 1, i), RPAD(i, 1000, 'y') FROM n",
    );
    assert!(matches!(refused, Err(SqlError::Server { code: 1062, .. })), "{refused:?}");
    // Of a ROLLBACK only what cannot be taken back is in the binlog.
    server
        .sql("BEGIN; INSERT INTO d.m VALUES (999, 'stays'); INSERT INTO d.w (b) VALUES (0); ROLLBACK")
        .unwrap();
    let url = url_at(server.port());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let target = format!("ledger:{}", path.display());
    let places = [1, 2, 7, 8, 65, 130, 500, 1000, 1717, 2500, 2999, 3000].map(|place| (place, 1));
    // The last two are in the statement that failed, with the large transaction already there.
    for (place, held) in places.into_iter().chain([(3100, 3002), (150, 3002)]) {
        let fault = Some(("streamed_change", place));
        let ended = Syncing::start(SYNC_CHILD, &[&url, &target], fault).finish();
        assert!(ended.is_at("streamed_change"), "{ended:?}");
        let rows = ledger(&path).iter().filter(|entry| entry.contains(" insert ")).count();
        assert_eq!(rows, held, "killed at change {place}");
    }
    let ended = Syncing::start(SYNC_CHILD, &[&url, &target, "until=now"], None).finish().well();
    eprintln!("peak memory {} kB", ended.memory_peak_kb());
    assert_same(&truth(&server), &ledger(&path));
}

/// A file of JSON lines that holds its own position: exactly once, also between a sync and a rename. Red when the
/// file is not cut to the recorded length at open.
#[test]
fn a_file_of_json_lines_over_sixty_kills() {
    let (server, load, url) = busy_server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let target = format!("jsonl:{}", path.display());
    let wanted = [
        ("data_synced", 12, 20),
        ("checkpoint_before_rename", 12, 20),
        ("after_commit", 8, 20),
        ("position_read", 4, 1),
        ("streamed_change", 8, 280),
        (ANY_MOMENT, 20, 180),
    ];
    let kills = kill_all(&[&url, &target], &wanted, 0x5eed_0002, || {});
    let written = load.stop();
    Syncing::start(SYNC_CHILD, &[&url, &target, "until=now"], None).finish().well();
    eprintln!("{kills:?} over {written} transactions");
    assert_same(&truth(&server), &json_lines(&fs::read_to_string(&path).unwrap()));
}

/// JSON lines that cannot be taken back, with the position in a file and in a database: none lost, and twice at most
/// the transaction that was in flight. Red when lines are not flushed before the position is stored (then many are
/// lost).
#[test]
fn printed_json_lines_with_a_checkpoint_come_again_only_in_flight() {
    let (server, load, url) = busy_server();
    let folder = tempfile::tempdir().unwrap();
    let file_points: &[Wanted] = &[
        ("checkpoint_before_rename", 14, 20),
        ("before_accept", 6, 20),
        ("position_read", 3, 1),
        ("streamed_change", 6, 280),
        (ANY_MOMENT, 15, 180),
    ];
    let database_points: &[Wanted] =
        &[("before_commit", 8, 20), ("after_commit", 8, 20), (ANY_MOMENT, 8, 180)];
    let mut runs = Vec::new();
    for (kind, points) in [("lines", file_points), ("checked", database_points)] {
        let path = folder.path().join(kind);
        let target = format!("{kind}:{}", path.display());
        let kills = kill_all(&[&url, &target], points, 0x5eed_0003, || cut_torn_line(&path));
        runs.push((path, target, kills));
    }
    let written = load.stop();
    let truth = truth(&server);
    for (path, target, kills) in runs {
        Syncing::start(SYNC_CHILD, &[&url, &target, "until=now"], None).finish().well();
        let (once, again) = repeated(&fs::read_to_string(&path).unwrap());
        eprintln!("{target}: {kills:?} over {written} transactions, {again} in flight came again");
        assert_same(&truth, &once);
        assert!(again <= kills.values().sum(), "{again} repetitions for {kills:?}");
        // Killed after the line and before the position: the window is real.
        assert!(again > 0, "no kill met a transaction in flight");
    }
}

/// What a kill has cut of a line is no line: a reader drops it.
fn cut_torn_line(path: &Path) {
    let Ok(text) = fs::read(path) else { return };
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(whole as u64).unwrap();
}

/// The changes without lines that are the transaction line before them over again, and the number of these.
fn repeated(text: &str) -> (Vec<Entry>, u32) {
    let (mut once, mut again, mut last) = (Vec::new(), 0, Vec::new());
    for line in text.lines() {
        let entries = json_lines(&format!("{line}\n"));
        if entries.is_empty() {
            continue;
        }
        if entries == last {
            again += 1;
        } else {
            once.extend(entries.iter().cloned());
            last = entries;
        }
    }
    (once, again)
}
