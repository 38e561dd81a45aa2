//! The initial copy: rows a second into a sink that counts them, against `mysqldump --single-transaction` to `/dev/null`,
//! and into the SQLite mirror, against bare prepared inserts; what it takes of memory, and what writers bear of its locks.

use std::{
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use capstan::{
    Ack, Batch, Builder, CopyLimits, Position, Replica, Sink, SinkError, Source, Unit, Until,
    sqlite::{Mirror, MirrorOptions, Synchronous},
};
use capstan_mysql::Server;
use rusqlite::{Connection, types::Value};

use crate::{Error, median, memory, workload};

/// Rows of the smallest table, for each unit of the scale.
const ROWS: u64 = 100_000;

#[derive(Default)]
struct Counting {
    rows: u64,
    position: Option<Position>,
}

impl Sink for &mut Counting {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        while let Some(unit) = batch.next().await? {
            match unit {
                Unit::SnapshotRows(mut rows) => {
                    while rows.next()?.is_some() {
                        self.rows += 1;
                    }
                }
                Unit::Transaction(transaction) => transaction.skip().await?,
                _ => {}
            }
        }
        let ack = batch.finish()?;
        self.position = Some(ack.position().clone());
        Ok(ack)
    }
}

fn copying(server: &Server, limits: CopyLimits) -> Result<Builder, Error> {
    let source: Source = format!("mysql://root@127.0.0.1:{}/?ssl-mode=disabled", server.port()).parse()?;
    Ok(Replica::builder(source).tables(["b.t"]).snapshot(Vec::<String>::new()).copy(limits).until(Until::Now))
}

fn counted(server: &Server, connections: u8) -> Result<u64, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limits = CopyLimits { connections: Some(connections), ..CopyLimits::default() };
    let (replica, mut sink) = (copying(server, limits)?.build()?, Counting::default());
    runtime.block_on(replica.run(&mut sink))?;
    Ok(sink.rows)
}

fn dumped(server: &Server) -> Result<(), Error> {
    let status = server
        .mysql()
        .program("mysqldump")?
        .args(["--user=root", "--single-transaction", "--set-gtid-purged=OFF", "--socket"])
        .arg(server.socket())
        .args(["b", "t"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err("mysqldump failed".into());
    }
    Ok(())
}

fn mirrored(server: &Server, path: &Path) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut options = MirrorOptions::default();
    options.synchronous = Synchronous::Off;
    let mirror = Mirror::open(path, options)?;
    let replica = copying(server, CopyLimits::default())?.build()?;
    runtime.block_on(replica.run_blocking(mirror))?;
    Ok(())
}

/// The rows of the mirror.
fn held(mirror: &Path) -> Result<Vec<Vec<Value>>, Error> {
    let from = Connection::open(mirror)?;
    let mut statement = from.prepare("SELECT id, a, b, c, d, e, f, g FROM \"b.t\"")?;
    let rows = statement
        .query_map([], |row| (0..8).map(|n| row.get::<_, Value>(n)).collect::<Result<Vec<_>, _>>())?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?)
}

/// These once more, by prepared inserts in transactions of as many rows as a chunk has.
fn bare(rows: &[Vec<Value>], path: &Path) -> Result<(), Error> {
    let to = Connection::open(path)?;
    to.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
         CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b, c TEXT, d, e, f REAL, g TEXT)",
    )?;
    for chunk in rows.chunks(4_000) {
        to.execute_batch("BEGIN IMMEDIATE")?;
        {
            let mut insert = to.prepare_cached("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?;
            for row in chunk {
                insert.execute(rusqlite::params_from_iter(row))?;
            }
        }
        to.execute_batch("COMMIT")?;
    }
    Ok(())
}

/// Runs it: rates, then locks.
pub fn run(scale: u64) -> Result<(), Error> {
    rates(scale)?;
    for (name, writers, open_ms) in
        [("4 autocommit writers", 4, 0), ("16 writers of 20 ms", 16, 20), ("32 writers of 50 ms", 32, 50)]
    {
        locks(name, writers, open_ms)?;
    }
    Ok(())
}

/// What rounds took: seconds on the clock, and of processor time in this process and its children, and in the server.
#[derive(Default)]
struct Took {
    clock: Vec<f64>,
    here: Vec<f64>,
    server: Vec<f64>,
}

impl Took {
    fn round<T>(&mut self, server: &Server, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let pid = server.sql_rows("SELECT @@pid_file")?.concat().into_iter().flatten().collect::<String>();
        let pid = std::fs::read_to_string(pid)?.trim().to_owned();
        let (before, began) =
            ((memory::process_seconds("self")?, memory::process_seconds(&pid)?), Instant::now());
        let done = work()?;
        self.clock.push(began.elapsed().as_secs_f64());
        self.here.push(memory::process_seconds("self")? - before.0);
        self.server.push(memory::process_seconds(&pid)? - before.1);
        Ok(done)
    }
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [clock, here, server] = [&self.clock, &self.here, &self.server].map(|of| median(of.clone()));
        write!(f, "{clock:.2} s (processor: {here:.2}, the server's {server:.2})")
    }
}

/// How many times as fast `one` is as `other`, round by round: by the clock, and by the processor time here.
fn ratios(one: &Took, other: &Took) -> String {
    let ratio =
        |one: &[f64], other: &[f64]| median(one.iter().zip(other).map(|(one, other)| other / one).collect());
    let all = |took: &Took| {
        took.here.iter().zip(&took.server).map(|(here, server)| here + server).collect::<Vec<_>>()
    };
    let (clock, here) = (ratio(&one.clock, &other.clock), ratio(&one.here, &other.here));
    let all = ratio(&all(one), &all(other));
    format!("ratio {clock:.2} by the clock, by processor time {here:.2} here and {all:.2} with the server's")
}

fn rates(scale: u64) -> Result<(), Error> {
    for times in [1, 4] {
        let server = Server::start()?;
        workload::wide(&server, ROWS * scale * times / 10_000, 10_000)?;
        // All of it into the server's memory: it would wait for the disk as long for the one as for the other.
        server.sql("SET GLOBAL innodb_buffer_pool_size = 1073741824")?;
        dumped(&server)?;
        let (mut copies, mut dumps) = ([1, 2, 4].map(|n| (n, Took::default(), 0_f64)), Took::default());
        let mut rows = 0;
        for _ in 0..7 {
            for (connections, took, peak) in &mut copies {
                memory::forget_peak();
                rows = took.round(&server, || counted(&server, *connections))?;
                *peak = peak.max(memory::peak_mib());
            }
            dumps.round(&server, || dumped(&server))?;
        }
        println!("{rows} rows, mysqldump: {dumps}");
        for (connections, took, peak) in &copies {
            println!(
                "  into a sink that counts, {connections} reading: {took}; {}; peak {peak:.1} MiB",
                ratios(took, &dumps)
            );
        }
    }
    let server = Server::start()?;
    workload::wide(&server, ROWS * scale / 10_000, 10_000)?;
    let (mut mirrors, mut inserts, mut rows) = (Took::default(), Took::default(), 0);
    for _ in 0..5 {
        let folder = tempfile::tempdir()?;
        let mirror = folder.path().join("m.db");
        mirrors.round(&server, || mirrored(&server, &mirror))?;
        let held = held(&mirror)?;
        rows = held.len();
        assert_eq!(rows as u64, ROWS * scale, "the mirror has every row");
        inserts.round(&server, || bare(&held, &folder.path().join("b.db")))?;
    }
    println!("{rows} rows into the mirror: {mirrors}, bare inserts {inserts}");
    println!("  {}", ratios(&mirrors, &inserts));
    Ok(())
}

/// What a writer saw, in µs.
#[derive(Default)]
struct Seen {
    /// The longest that a statement took.
    longest: AtomicU64,
    /// The longest that a transaction was open.
    open: AtomicU64,
    written: AtomicU64,
}

fn write(server: &Server, writer: u64, open_ms: u64, stop: &AtomicBool, seen: &Seen) -> Result<(), Error> {
    let mut session = server.connect()?;
    let us = |since: Instant| u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    let mut n = writer;
    while !stop.load(Ordering::Relaxed) {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if open_ms > 0 {
            session.query("BEGIN")?;
        }
        let began = Instant::now();
        session.query(&format!("UPDATE b.t SET a = a + 1 WHERE id = {}", (n >> 33) % 20_000 + 1))?;
        seen.longest.fetch_max(us(began), Ordering::Relaxed);
        let opened = Instant::now();
        if open_ms > 0 {
            std::thread::sleep(Duration::from_millis(open_ms));
            session.query("COMMIT")?;
            seen.open.fetch_max(us(opened), Ordering::Relaxed);
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
        seen.written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn locks(name: &str, writers: u64, open_ms: u64) -> Result<(), Error> {
    let server = Arc::new(Server::builder().option("--performance-schema=ON").start()?);
    workload::wide(&server, 2, 10_000)?;
    server.sql(
        "UPDATE performance_schema.setup_instruments SET ENABLED = IF(NAME LIKE 'statement/abstract/%' OR NAME IN ('statement/sql/lock_tables', 'statement/sql/unlock_tables'), 'YES', 'NO'), TIMED = 'YES' WHERE NAME LIKE 'statement/%';
         UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_statements_history_long'",
    )?;
    let (stop, quiet, seen) =
        (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()), Arc::new(Seen::default()));
    let load = |seen: &Arc<Seen>, stop: &Arc<AtomicBool>| -> Vec<std::thread::JoinHandle<()>> {
        let writer = |writer| {
            let (server, stop, seen) = (Arc::clone(&server), Arc::clone(stop), Arc::clone(seen));
            std::thread::spawn(move || write(&server, writer, open_ms, &stop, &seen).expect("a writer"))
        };
        (1..=writers).map(writer).collect()
    };
    // What they wait for each other, without a copy.
    let threads = load(&quiet, &stop);
    std::thread::sleep(Duration::from_secs(4));
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("a writer"));
    let stop = Arc::new(AtomicBool::new(false));
    let threads = load(&seen, &stop);
    std::thread::sleep(Duration::from_millis(300));

    // A cut for every chunk.
    let limits =
        CopyLimits { chunk_rows: 400, cut_age: Duration::ZERO, running_max: 0, ..CopyLimits::default() };
    let replica = copying(&server, limits)?.build()?;
    let handle = replica.handle();
    let done = Arc::new(AtomicBool::new(false));
    let lags = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            let mut lags = Vec::new();
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                lags.extend(handle.status().lag_ms.map(|ms| ms as f64));
            }
            lags
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut sink = Counting::default();
    let began = Instant::now();
    runtime.block_on(replica.run(&mut sink))?;
    let took = began.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("a writer"));
    let mut lags = lags.join().expect("a watcher");

    let (waits, held, writes) = locked(&server)?;
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let ms = |us: &AtomicU64| us.load(Ordering::Relaxed) as f64 / 1000.0;
    println!(
        "{name}: {} rows, {} cuts in {took:.1} s, {writes} of the locks were WRITE",
        sink.rows,
        waits.len()
    );
    println!(
        "  the lock was waited for {:.1} ms in the median, {:.1} at most",
        median(waits.clone()),
        most(&waits)
    );
    println!("  it was held {:.2} ms in the median, {:.2} at most", median(held.clone()), most(&held));
    println!(
        "  longest a writer waited {:.1} ms ({:.1} without a copy), longest open transaction {:.1} ms, {} transactions",
        ms(&seen.longest),
        ms(&quiet.longest),
        ms(&seen.open),
        seen.written.load(Ordering::Relaxed)
    );
    lags.sort_by(f64::total_cmp);
    println!("  stream lag {:.0} ms in the median, {:.0} at most", median(lags.clone()), most(&lags));
    Ok(())
}

/// How long each lock was waited for, from the first time it was asked for, and held; and how many were WRITE locks: in
/// ms, by the server's own clock.
fn locked(server: &Server) -> Result<(Vec<f64>, Vec<f64>, u64), Error> {
    let rows = server.sql_rows(
        "SELECT EVENT_NAME, TIMER_START, TIMER_END, MYSQL_ERRNO, SQL_TEXT FROM performance_schema.events_statements_history_long
         WHERE EVENT_NAME IN ('statement/sql/lock_tables', 'statement/sql/unlock_tables') ORDER BY TIMER_START",
    )?;
    let (mut waits, mut held, mut writes) = (Vec::new(), Vec::new(), 0);
    let (mut asked, mut granted) = (None, None);
    for row in rows {
        let text = |n: usize| row.get(n).cloned().flatten().unwrap_or_default();
        let ms = |n: usize| text(n).parse::<f64>().unwrap_or(f64::NAN) / 1e9;
        if text(0).ends_with("unlock_tables") {
            if let Some(at) = granted.take() {
                held.push(ms(2) - at);
            }
            continue;
        }
        let since = *asked.get_or_insert(ms(1));
        if text(3) == "0" {
            waits.push(ms(2) - since);
            writes += u64::from(text(4).trim_end().ends_with("WRITE"));
            (asked, granted) = (None, Some(ms(2)));
        }
    }
    Ok((waits, held, writes))
}
