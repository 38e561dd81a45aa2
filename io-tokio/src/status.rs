//! What a running replica says about itself, and the way to steer it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use capstan_core::gtid::GtidSet;
use serde::{Serialize, Serializer};
use tokio::sync::mpsc;

/// Everything there is to know about a running replica, at one moment.
///
/// Serialized, a set of GTIDs is its text, and times carry their unit in the name.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// What it is doing: `starting`, `loading`, `backoff`, `dialling`, `authenticating`, `securing`, `checking`,
    /// `claiming`, `registering`, `streaming`, `paused`, `draining`, `stopped`, `halted`, or `dropped` where the
    /// run was dropped before its end.
    pub state: &'static str,
    /// Since when, in milliseconds since 1970.
    pub state_since_unix_ms: u64,
    /// The owner's epoch; 0 before this process has taken the target over.
    pub epoch: u64,
    /// Every transaction that is durable here.
    #[serde(serialize_with = "text_of")]
    pub gtid_set: Option<GtidSet>,
    /// Every transaction read and put in order, durable or not. Only while streaming.
    #[serde(serialize_with = "text_of")]
    pub processed: Option<GtidSet>,
    /// Commit time of the newest transaction that was passed, in microseconds since 1970 on the source's
    /// clock.
    pub committed_at_unix_us: Option<u64>,
    /// Now less that commit time, in milliseconds: how old what we know is. Grows while the source is
    /// idle, too. Zero where the two clocks disagree.
    pub lag_ms: Option<u64>,
    /// Bytes received.
    pub bytes: u64,
    /// Events received.
    pub events: u64,
    /// Changed rows that are durable here.
    pub rows: u64,
    /// Transactions that are durable here, of those with captured changes; a schema change is one.
    pub transactions: u64,
    /// Batches that are durable here.
    pub batches: u64,
    /// Units in the last of them.
    pub last_batch_units: u64,
    /// How long the sink took for it, in microseconds.
    pub sink_us: Option<u64>,
    /// Batches the sink did not take.
    pub sink_failures: u64,
    /// Dials so far.
    pub dials: u64,
    /// Links lost after the stream had begun.
    pub reconnects: u64,
    /// Bytes emitted and neither durable nor released.
    pub retained_bytes: u64,
    /// Transactions the source had executed at the last connect and that are not durable here.
    pub behind_executed: Option<u64>,
    /// Durable transactions that the source had not purged at the last connect: what is left before
    /// `data_gap` if nothing more were processed.
    pub ahead_of_purged: Option<u64>,
    /// The last processed transaction was purged, so that the source still has the history this position
    /// comes from could not be verified.
    pub history_unverified: bool,
    /// The tables of an initial copy, until nothing is left to copy; empty without one.
    pub copies: Vec<CopyStatus>,
    /// Rows a second of the copy, over the time that this process has copied.
    pub copy_rows_per_second: Option<u64>,
    /// About how many seconds the copy still takes at that rate, by the source's statistics; `None` where they do not
    /// tell of every table that is left.
    pub copy_left_s: Option<u64>,
    /// Why the copy waits: `paused`, `threads_running`, `replication_lag`.
    pub copy_waits: Option<&'static str>,
    /// How many connections read for the copy: fewer than `--snapshot-connections` where the source has no room for so
    /// many. `None` before they are there.
    pub copy_connections: Option<u8>,
    /// Code of the last trouble of the link or the sink, until it has passed; the halt's, when halted.
    pub trouble: Option<&'static str>,
}

/// How far the initial copy of a table is, as it is durable here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CopyStatus {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// `waiting`, `copying` or `done`.
    pub state: &'static str,
    /// Rows copied.
    pub rows: u64,
    /// About how many there are, by the source's statistics when this process began; they may be a day old.
    pub estimated_rows: Option<u64>,
    /// Bytes of the rows that were copied, as they were delivered.
    pub bytes: u64,
    /// Chunks they came in.
    pub chunks: u64,
    /// Why this process copies it as a whole, from one view that stays open to its last row; `None` where it
    /// walks along a key, or has not come to it.
    pub whole: Option<&'static str>,
}

fn text_of<S: Serializer>(set: &Option<GtidSet>, serializer: S) -> Result<S::Ok, S::Error> {
    match set {
        Some(set) => serializer.collect_str(set),
        None => serializer.serialize_none(),
    }
}

/// What a handle asks of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Pause,
    Resume,
    PauseCopy,
    ResumeCopy,
    Drain,
}

/// The way to watch and steer a replica from anywhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Handle {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Command>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        (Self { shared: Arc::new(Shared::default()), commands }, receiver)
    }

    /// What it is doing. Never waits for the loop; at most a quarter of a second old.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = self.shared.lock().clone();
        let now_us = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        status.lag_ms = status.committed_at_unix_us.map(|at| lag_ms(now_us, at));
        status
    }

    /// Reads no further. What was read is still delivered.
    pub fn pause(&self) {
        self.send(Command::Pause);
    }

    /// Goes on after [`Handle::pause`].
    pub fn resume(&self) {
        self.send(Command::Resume);
    }

    /// Begins no further chunk of the initial copy, and keeps no view open; the stream goes on. A table that is copied as
    /// a whole comes to its end first.
    pub fn pause_copy(&self) {
        self.send(Command::PauseCopy);
    }

    /// Goes on after [`Handle::pause_copy`].
    pub fn resume_copy(&self) {
        self.send(Command::ResumeCopy);
    }

    /// Delivers what is complete, then stops: `run` returns `Ok`.
    pub fn drain(&self) {
        self.send(Command::Drain);
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn send(&self, command: Command) {
        // The loop has ended: there is nothing left to steer.
        let _ = self.commands.send(command);
    }
}

/// Milliseconds from a commit time to now.
pub(crate) fn lag_ms(unix_time: Duration, committed_at_us: u64) -> u64 {
    let now_us = u64::try_from(unix_time.as_micros()).unwrap_or(u64::MAX);
    now_us.saturating_sub(committed_at_us) / 1000
}

/// The last published status. The lock is held for a copy only, and never across an await.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Status>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Status> {
        // A status is plain data: no panic can leave it half made in a way that matters.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_json_object_with_sets_as_text() {
        let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7".parse().unwrap();
        let status = Status { state: "streaming", gtid_set: Some(set), ..Status::default() };
        let text = serde_json::to_string(&status).unwrap();
        assert!(text.starts_with("{\"state\":\"streaming\","), "{text}");
        assert!(text.contains("\"gtid_set\":\"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7\""), "{text}");
        assert!(text.contains("\"processed\":null"), "{text}");
    }

    #[test]
    fn lag_is_told_at_the_moment_it_is_asked_for() {
        let (handle, _commands) = Handle::new();
        assert_eq!(handle.status().lag_ms, None);
        handle.shared().lock().committed_at_unix_us = Some(1_000_000);
        assert!(handle.status().lag_ms.unwrap() > 1_700_000_000_000);
        assert_eq!(lag_ms(Duration::from_secs(3), 1_500_000), 1500);
        assert_eq!(lag_ms(Duration::from_secs(1), 1_500_000), 0, "clocks that disagree");
    }
}
