//! What is harmless never halts and never loses: a link that is cut anywhere, one that says nothing any more, a server
//! that is restarted or killed, a failover, a sink that is slower than its source.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use capstan::{Limits, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{
    Follower, PATIENCE, Slow, Syncing, assert_same, ledger, open_ledger, replica_of, truth, url_at,
};
use capstan_tests::proxy::{Fate, Proxy};
use capstan_tests::workload::{Load, Numbers, OPTIONS, large, prepare, quick_limits, write};

const SYNC_CHILD: &str = env!("CARGO_BIN_EXE_sync_child");

fn server() -> Server {
    let server = Server::builder().options(OPTIONS.to_vec()).start().unwrap();
    prepare(&server);
    server
}

struct Target {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn target() -> Target {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    Target { _folder: folder, path }
}

/// In the login and the gates, in each byte of the first packets of the stream, in events, between them, in the middle
/// of transactions, of small ones and of one of 2 MB, while others wait for the sink. Red when what waits for the sink
/// is kept when a link drops: it comes again.
#[test]
fn the_link_cut_at_two_hundred_places() {
    let server = server();
    for writer in 1..=3 {
        // Small ones only, several to a cut.
        write(&server, writer, 8..60);
    }
    server.sql(&large(5, 1, 2000)).unwrap();
    write(&server, 4, 1..70);
    let proxy = Proxy::start(server.port());
    let mut numbers = Numbers(0xc0ffee);
    let mut fates: Vec<Fate> = (0..40).map(|n| Fate::Cut(n * 70)).collect();
    fates.extend((1..=60).map(Fate::CutStream));
    fates.extend((0..70).map(|_| Fate::CutStream(numbers.between(61, 2500))));
    fates.extend((0..30).map(|_| Fate::CutStream(numbers.between(60_000, 1_900_000))));
    let planned = fates.len() as u64;
    proxy.plan(fates);
    let target = target();
    let builder = replica_of(proxy.port(), "cut").until(Until::Now);
    // What waits for the sink when the link drops is sent again.
    let sink = Slow { sink: open_ledger(&target.path), slow: Duration::from_millis(15) };
    let (end, status) = Follower::blocking(builder, sink).end();
    end.unwrap();
    eprintln!("{planned} cuts planned, {} met, {} dials", proxy.met(), status.dials);
    assert_eq!((proxy.left(), proxy.met()), (0, planned), "not every cut was met");
    assert_same(&truth(&server), &ledger(&target.path));
}

/// Red when silence ends no link: then it never comes to its end.
#[test]
fn a_half_open_link_is_left_for_a_new_one() {
    let server = server();
    write(&server, 1, 1..70);
    let proxy = Proxy::start(server.port());
    proxy.delay(Duration::from_micros(200));
    // In the first header, in an event, in the large transaction.
    proxy.plan([2, 700, 60_000].map(Fate::Stall));
    let target = target();
    let limits =
        Limits { silence: Duration::from_secs(2), heartbeat: Duration::from_secs(1), ..quick_limits() };
    let builder = replica_of(proxy.port(), "half-open").limits(limits).until(Until::Now);
    let (end, status) = Follower::blocking(builder, open_ledger(&target.path)).end();
    end.unwrap();
    assert_eq!(proxy.met(), 3);
    assert!(status.dials >= 4, "{status:?}");
    assert_same(&truth(&server), &ledger(&target.path));
}

/// Red when a refused dial or an ended stream halts.
#[test]
fn a_server_that_is_restarted_and_killed_under_load() {
    let server = Server::builder().durable().options(OPTIONS.to_vec()).start().unwrap();
    prepare(&server);
    let server = Arc::new(server);
    let load = Load::start(&server, 2, Duration::from_millis(3));
    let target = target();
    let follower = Follower::blocking(replica_of(server.port(), "server"), open_ledger(&target.path));
    let some_more = || {
        let (before, read) = (load.written(), follower.status().transactions);
        follower
            .wait_until("both went on", |now| now.transactions > read + 50 && load.written() > before + 50);
    };
    some_more();
    server.restart().unwrap();
    some_more();
    for _ in 0..2 {
        server.kill9().unwrap();
        server.restart().unwrap();
        some_more();
    }
    let written = load.stop();
    follower.wait_for(&server);
    let (end, status) = follower.drain();
    end.unwrap();
    eprintln!("{written} transactions, {} reconnects, {} dials", status.reconnects, status.dials);
    assert!(status.reconnects >= 3, "{status:?}");
    assert_same(&truth(&server), &ledger(&target.path));
}

/// The same address, another server that has everything and goes on. Red when a refused dial halts.
#[test]
fn a_failover_that_kept_everything() {
    let (first, second) = (server(), Server::builder().options(OPTIONS.to_vec()).start().unwrap());
    second.sql("SET sql_log_bin = 0; CREATE DATABASE d; CREATE DATABASE skip").unwrap();
    second.replica_of(&first).unwrap();
    write(&first, 1, 1..40);
    let proxy = Proxy::start(first.port());
    let target = target();
    let follower = Follower::blocking(replica_of(proxy.port(), "failover"), open_ledger(&target.path));
    follower.wait_for(&first);
    write(&first, 1, 40..70);
    assert!(second.wait_for_gtids(&first.gtid_executed().unwrap(), PATIENCE).unwrap());
    second.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
    first.kill9().unwrap();
    let dials = follower.status().dials;
    follower.wait_until("nobody answers", |status| status.dials > dials + 1);
    proxy.retarget(second.port());
    write(&second, 2, 1..70);
    follower.wait_for(&second);
    let (end, status) = follower.drain();
    end.unwrap();
    assert!(status.reconnects >= 1, "{status:?}");
    assert_same(&truth(&second), &ledger(&target.path));
}

/// 25 MB into a sink that sleeps: the peak memory of the syncing process stays where a small load puts it, and the
/// silence that back-pressure makes ends no link. The measure itself is shown to go red: with a large budget the same
/// load takes far more.
#[test]
fn a_slow_sink_holds_the_source_back() {
    let server = server();
    for c in 1..=4 {
        server.sql(&large(1, c, 50)).unwrap();
    }
    let url = url_at(server.port());
    let run = |options: &[&str]| {
        let target = target();
        let name = format!("ledger:{}", target.path.display());
        let arguments = [&[url.as_str(), &name, "until=now"], options].concat();
        let ended = Syncing::start(SYNC_CHILD, &arguments, None).finish().well();
        (ended, ledger(&target.path))
    };
    let (slow, held) = run(&["slow_ms=2500", "silence_ms=2000", "heartbeat_ms=1000"]);
    assert_eq!((slow.number("reconnects"), slow.number("dials")), (0, 1));
    assert_same(&truth(&server), &held);
    let little = slow.memory_peak_kb();

    let mut session = server.connect().unwrap();
    for c in 5..=300 {
        session.query(&large(1, c, if c % 30 == 0 { 1000 } else { 50 })).unwrap();
    }
    let (much, held) = run(&["slow_ms=5"]);
    assert_same(&truth(&server), &held);
    let (unbounded, _) = run(&["slow_ms=5", "retained_max=67108864", "stream_above=16777216"]);
    let grown = |ended: &capstan_tests::harness::Ended| ended.memory_peak_kb().saturating_sub(little);
    eprintln!("little {little} kB, much +{} kB, unbounded +{} kB", grown(&much), grown(&unbounded));
    assert!(grown(&much) < 4096, "memory grew by {} kB", grown(&much));
    assert!(grown(&unbounded) > 8192, "the measure sees nothing: {} kB", grown(&unbounded));
}
