//! Who may write: one owner at a time, and each commit once, also one that lands after it was given up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use capstan::core::text::{TextOptions, write_image};
use capstan::{
    Ack, Batch, Change, Code, Expected, GtidSet, Item, Limits, Position, Sink, SinkError, Unit, Until,
};
use capstan_mysql::Server;
use capstan_tests::harness::{
    Entry, Follower, PATIENCE, Syncing, assert_same, difference, image_text, ledger, open_ledger, replica_of,
    truth, url_at,
};
use capstan_tests::workload::{OPTIONS, prepare, quick_limits, write};

const SYNC_CHILD: &str = env!("CARGO_BIN_EXE_sync_child");

fn server() -> Server {
    let server = Server::builder().options(OPTIONS.to_vec()).start().unwrap();
    prepare(&server);
    server
}

/// A store whose connection now and then takes a write and never answers.
#[derive(Default)]
struct Store {
    position: Option<Position>,
    entries: Vec<Entry>,
    /// A write that was given up and is still on its way.
    on_its_way: Option<(When, Write)>,
    landed: u32,
    refused: u32,
    /// What a wrong sink does: it writes without a look at what is stored.
    unconditional: bool,
}

struct Write {
    expected: Expected,
    position: Position,
    entries: Vec<Entry>,
}

/// When a write that was given up lands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before the position is asked for.
    AtOnce,
    /// After that, and before the next attempt.
    BeforeTheNext,
    /// After the next attempt has been stored.
    AfterTheNext,
}

impl Store {
    fn commit(&mut self, write: Write) -> Result<(), SinkError> {
        if !self.unconditional {
            write.expected.check(self.position.as_ref())?;
        }
        self.position = Some(write.position);
        self.entries.extend(write.entries);
        Ok(())
    }

    fn land(&mut self, now: When) {
        if let Some((_, write)) = self.on_its_way.take_if(|(when, _)| *when == now) {
            match self.commit(write) {
                Ok(()) => self.landed += 1,
                Err(_) => self.refused += 1,
            }
        }
    }
}

#[derive(Clone)]
struct LateSink {
    store: Arc<Mutex<Store>>,
    batches: usize,
}

impl LateSink {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }
}

impl Sink for LateSink {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.store().position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        let expected = batch.expected().clone();
        let mut entries = Vec::new();
        while let Some(unit) = batch.next().await? {
            match unit {
                Unit::Transaction(mut transaction) => {
                    let gtid = transaction.gtid().copied().unwrap();
                    while let Some(item) = transaction.next().await? {
                        match item {
                            Item::Change(change) => entries.push(format!("{gtid} {}", entry(&change))),
                            Item::SchemaChange(_) => entries.push(format!("{gtid} schema_change")),
                        }
                    }
                }
                Unit::SchemaChange(change) => entries.push(format!("{} schema_change", change.gtid.unwrap())),
                Unit::SnapshotRows(rows) => rows.skip(),
                Unit::Progress(_) => {}
            }
        }
        let ack = batch.finish()?;
        let write = Write { expected, position: ack.position().clone(), entries };
        self.batches += 1;
        let when = match self.batches % 15 {
            4 => Some(When::AtOnce),
            8 => Some(When::BeforeTheNext),
            12 => Some(When::AfterTheNext),
            _ => None,
        };
        if let Some(when) = when {
            {
                let mut store = self.store();
                store.on_its_way = Some((when, write));
                store.land(When::AtOnce);
            }
            // The connection is gone, and nobody says so.
            return std::future::pending().await;
        }
        let mut store = self.store();
        store.land(When::BeforeTheNext);
        store.commit(write)?;
        store.land(When::AfterTheNext);
        Ok(ack)
    }
}

fn entry(change: &Change<'_>) -> Entry {
    let image = |row: Option<capstan::core::binlog::rows::Row<'_>>| {
        row.map_or(String::new(), |row| {
            let mut text = String::new();
            write_image(&mut text, row.values(), TextOptions::default()).unwrap();
            image_text(&text)
        })
    };
    let (op, table) = (change.op.as_str(), change.table);
    let (before, after) = (image(change.before), image(change.after));
    format!("{op} {}.{} {before} -> {after}", table.schema(), table.table())
}

/// Red with a sink that writes unconditionally: the same run of the same test then holds changes twice.
#[test]
fn a_commit_that_lands_after_it_was_given_up() {
    let server = server();
    write(&server, 1, 1..70);
    let truth = truth(&server);
    let run = |unconditional| {
        let sink =
            LateSink { store: Arc::new(Mutex::new(Store { unconditional, ..Store::default() })), batches: 0 };
        let limits = Limits { acknowledgement: Duration::from_millis(250), ..quick_limits() };
        let builder = replica_of(server.port(), "late").limits(limits).until(Until::Now);
        (Follower::polled(builder, sink.clone()).end(), sink)
    };
    let ((end, status), sink) = run(false);
    end.unwrap();
    let store = sink.store();
    eprintln!("{} landed late, {} were refused, {} dials", store.landed, store.refused, status.dials);
    assert!(store.landed >= 4 && store.refused >= 2, "{} landed, {} refused", store.landed, store.refused);
    assert_same(&truth, &store.entries);

    let (_, sink) = run(true);
    assert!(!difference(&truth, &sink.store().entries).extra.is_empty(), "the comparison sees no repetition");
}

/// The lock, the epoch, and the epoch before the server's word about two replicas of one identity.
#[test]
fn a_second_owner_of_one_target() {
    let server = server();
    write(&server, 1, 1..20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let (url, target) = (url_at(server.port()), format!("ledger:{}", path.display()));
    let arguments = [url.as_str(), target.as_str()];

    let first = Syncing::start(SYNC_CHILD, &arguments, None);
    wait_for(&path, 1, &server);
    // Red when no lock is taken.
    let refused = Syncing::start(SYNC_CHILD, &arguments, None).finish();
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(refused.stderr.starts_with("checkpoint_in_use"), "{refused:?}");

    // Somebody takes the target over past the lock: the server ends the first one's stream, for both have the
    // target's identity, and the stored epoch says why. Red when the epoch is not asked for first
    // (`server_id_conflict`).
    std::fs::remove_file(folder.path().join("ledger.db.lock")).unwrap();
    let second = Syncing::start(SYNC_CHILD, &arguments, None);
    let fenced = first.finish();
    assert_eq!(fenced.status.code(), Some(4), "{fenced:?}");
    assert!(fenced.stderr.starts_with("fenced"), "{fenced:?}");

    // Somebody takes the epoch, without a word to the server. Red when the condition of the write is left out.
    wait_for(&path, 2, &server);
    take_epoch(&path);
    write(&server, 1, 20..30);
    let fenced = second.finish();
    assert_eq!(fenced.status.code(), Some(4), "{fenced:?}");
    assert!(fenced.stderr.starts_with("fenced"), "{fenced:?}");

    Syncing::start(SYNC_CHILD, &[&url, &target, "until=now"], None).finish().well();
    assert_same(&truth(&server), &ledger(&path));
}

/// Two targets, one identity: the older is told and stops, and the newer streams on undisturbed. Red when the older
/// dials again: then each ends the other's stream for ever.
#[test]
fn two_clients_of_one_identity() {
    let server = server();
    write(&server, 1, 1..20);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let older = Follower::blocking(replica_of(server.port(), "one"), open_ledger(&path("older.db")));
    older.wait_for(&server);
    let newer = Follower::blocking(replica_of(server.port(), "one"), open_ledger(&path("newer.db")));
    let (end, status) = older.end();
    let halt = end.expect_err("two replicas of one identity go on");
    assert_eq!((halt.code, status.dials), (Code::ServerIdConflict, 1), "{halt}");
    write(&server, 1, 20..40);
    newer.wait_for(&server);
    let (end, status) = newer.drain();
    end.unwrap();
    assert_eq!(status.dials, 1, "{status:?}");
    assert_same(&truth(&server), &ledger(&path("newer.db")));
}

fn stored(path: &Path) -> Option<Position> {
    let database = rusqlite::Connection::open(path).ok()?;
    database.busy_timeout(Duration::from_secs(10)).ok()?;
    let sql = "SELECT position FROM capstan_position";
    let text: String = database.query_row(sql, [], |row| row.get(0)).ok()?;
    Some(Position::decode(&text).unwrap())
}

/// Waits until an owner has that epoch and has stored everything: while the old owner still writes, a newcomer's
/// claim may find another position than it has read, and then the newcomer is the one who is `fenced`.
fn wait_for(path: &Path, epoch: u64, server: &Server) {
    let executed: GtidSet = server.gtid_executed().unwrap().parse().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let is_there = |position: Position| position.epoch() == epoch && executed.is_subset(position.gtid_set());
    while !stored(path).is_some_and(is_there) {
        assert!(Instant::now() < deadline, "epoch {epoch} is never taken");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What another process does that has not heard of the lock.
fn take_epoch(path: &Path) {
    let database = rusqlite::Connection::open(path).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let text: String =
        database.query_row("SELECT position FROM capstan_position", [], |row| row.get(0)).unwrap();
    let taken = Position::decode(&text).unwrap().claimed(4711).encode();
    database.execute("UPDATE capstan_position SET position = ?1", [taken]).unwrap();
    database.execute_batch("COMMIT").unwrap();
}
