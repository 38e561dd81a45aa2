//! Writers that keep a server busy with transactions of every shape the tests need.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use capstan::Limits;
use capstan_mysql::{Server, Session, SqlError};

/// Options that make every server of these tests start its binlog anew often, so that a dial does not read
/// through all of it again.
pub const OPTIONS: &[&str] = &["--max-binlog-size=1M"];

/// Rows of a large transaction: about 140 KB, twice the smallest `stream_above`.
const LARGE_ROWS: u64 = 140;

/// Limits that let a syncing process start and try again at once, and that the workload's large transactions exceed.
pub fn quick_limits() -> Limits {
    Limits {
        stream_above: 64 << 10,
        retained_max: 128 << 10,
        backoff_first: Duration::from_millis(10),
        backoff_max: Duration::from_millis(50),
        progress_every: Duration::from_millis(100),
        ..Limits::default()
    }
}

/// Makes the tables. The schema `skip` is for what is not captured.
pub fn prepare(server: &Server) {
    server
        .sql(
            "SET sql_log_bin = 0;
             CREATE DATABASE d; CREATE DATABASE skip;
             SET sql_log_bin = 1;
             CREATE TABLE d.w (a BIGINT AUTO_INCREMENT PRIMARY KEY, b INT, c INT, d INT, e VARCHAR(1100), KEY (b, c));
             CREATE TABLE skip.w (a BIGINT AUTO_INCREMENT PRIMARY KEY, b INT)",
        )
        .unwrap();
}

/// The statements of transaction number `c` of writer `b`.
pub fn transaction(b: u64, c: u64) -> String {
    let previous = c.saturating_sub(1);
    match c % 60 {
        // Above `stream_above`, in several row events.
        7 => large(b, c, LARGE_ROWS),
        // Not captured: nothing but a position moves.
        20 | 40 => format!("INSERT INTO skip.w (b) VALUES ({c})"),
        29 => format!("CREATE TABLE d.x_{b}_{c} (a INT)"),
        59 => format!("DROP TABLE d.x_{b}_{}", c - 30),
        n if n % 3 == 0 => format!(
            "BEGIN;
             INSERT INTO d.w (b, c, d, e) VALUES ({b}, {c}, 1, 'one'), ({b}, {c}, 2, NULL);
             UPDATE d.w SET d = d + 1000 WHERE b = {b} AND c = {previous};
             INSERT INTO d.w (b, c, d, e) VALUES ({b}, {c}, 3, REPEAT('z', {n}));
             COMMIT"
        ),
        n if n % 3 == 1 => format!(
            "BEGIN;
             SAVEPOINT s;
             INSERT INTO d.w (b, c, d, e) VALUES ({b}, {c}, 0, 'never');
             ROLLBACK TO s;
             INSERT INTO d.w (b, c, d, e) VALUES ({b}, {c}, 1, 'kept');
             DELETE FROM d.w WHERE b = {b} AND c = {previous} AND d = 2;
             COMMIT"
        ),
        _ => format!("INSERT INTO d.w (b, c, d, e) VALUES ({b}, {c}, 1, 'single')"),
    }
}

/// A transaction of `rows` rows of a kilobyte each.
pub fn large(b: u64, c: u64, rows: u64) -> String {
    format!(
        "SET SESSION cte_max_recursion_depth = 1000000;
         INSERT INTO d.w (b, c, d, e)
           WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
           SELECT {b}, {c}, i, RPAD(CONCAT({b}, '-', {c}, '-', i, '-'), 1000, 'x') FROM n"
    )
}

/// Writes transactions `from..to` of one writer, now.
pub fn write(server: &Server, b: u64, numbers: std::ops::Range<u64>) {
    let mut session = server.connect().unwrap();
    for c in numbers {
        session.query(&transaction(b, c)).unwrap();
    }
}

/// Writers at work.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    writers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts `writers`, each of which waits for `pause` after a transaction. They live through restarts of the
    /// server.
    pub fn start(server: &Arc<Server>, writers: u64, pause: Duration) -> Load {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = |b| {
            let (server, stop, written) = (Arc::clone(server), Arc::clone(&stop), Arc::clone(&written));
            std::thread::spawn(move || {
                let mut session = None;
                let mut c = 1;
                while !stop.load(Ordering::Relaxed) {
                    match step(&server, &mut session, b, c) {
                        Ok(()) => {
                            written.fetch_add(1, Ordering::Relaxed);
                            c += 1;
                        }
                        // Whether it was committed is not known, and need not be: the binlog says so.
                        Err(SqlError::Link(_) | SqlError::Protocol(_)) => (session, c) = (None, c + 1),
                        // Shutting down; or the table of a transaction that was lost.
                        Err(SqlError::Server { .. }) => (session, c) = (None, c + 1),
                    }
                    std::thread::sleep(pause);
                }
            })
        };
        let writers = (1..=writers).map(writer).collect();
        Load { stop, written, writers }
    }

    /// Transactions written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Ends it, and tells how many transactions were written.
    pub fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writers.drain(..) {
            writer.join().unwrap();
        }
        self.written()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn step(server: &Server, session: &mut Option<Session>, b: u64, c: u64) -> Result<(), SqlError> {
    let session = match session {
        Some(session) => session,
        None => session.insert(server.connect()?),
    };
    session.query(&transaction(b, c)).map(drop)
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// One of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        // xorshift64*, by Marsaglia and Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        low + (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % (high - low + 1)
    }
}
