//! What a pipeline is told before it starts.

use alloc::string::String;
use core::time::Duration;

use crate::{
    capture::CapturedSet,
    gtid::{GtidSet, Uuid},
    halt::{Code, Detail, Halt},
    link::Login,
    snapshot::CopyLimits,
};

/// Where to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the stored position; refused (`start_position_required`) if there is none.
    Stored,
    /// At the oldest transaction the source still has.
    Earliest,
    /// After everything the source has executed at the moment of the first dial.
    Current,
    /// After these transactions.
    At(GtidSet),
}

/// Where to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// When everything the source had executed at the first dial is processed.
    Now,
    /// When these transactions are processed.
    Set(GtidSet),
}

/// Numbers that bound memory and patience. [`Limits::default`] holds the documented defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A transaction with more bytes of row events than this is handed over while it is read.
    /// At least 4 KiB.
    pub stream_above: usize,
    /// Bytes that may be emitted and neither durable nor released. At least twice `stream_above`.
    pub retained_max: usize,
    /// Longest row event, at most 1 GiB.
    pub row_event_max: usize,
    /// Heartbeat period asked of the server.
    pub heartbeat: Duration,
    /// Silence that ends a link; at least two heartbeats.
    pub silence: Duration,
    /// How long the sink may take to move on before its batch is given up.
    pub acknowledgement: Duration,
    /// How long a dial, and each step from there to the stream, may take.
    pub dial: Duration,
    /// First wait after trouble; doubles with each failure.
    pub backoff_first: Duration,
    /// Longest wait after trouble.
    pub backoff_max: Duration,
    /// How long trouble may last without a sign of life in between.
    pub trouble_max: Duration,
    /// Longest time passed transactions stay untold.
    pub progress_every: Duration,
    /// Most passed transactions that stay untold.
    pub progress_gtids: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stream_above: 8 << 20,
            retained_max: 64 << 20,
            row_event_max: 64 << 20,
            heartbeat: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            acknowledgement: Duration::from_secs(60),
            dial: Duration::from_secs(10),
            backoff_first: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            trouble_max: Duration::from_secs(600),
            progress_every: Duration::from_secs(1),
            progress_gtids: 1000,
        }
    }
}

/// Everything the core needs to know. Checked by [`Config::check`] before anything is dialled.
#[derive(Clone, Debug)]
pub struct Config {
    /// Account, TLS policy and key trust.
    pub login: Login,
    /// Which tables are delivered.
    pub captured: CapturedSet,
    /// Where to begin.
    pub start: Start,
    /// Whether an explicit start may abandon a stored position.
    pub override_stored: bool,
    /// Where to stop; `None`: never.
    pub until: Option<Until>,
    /// Our server id; unique among the replicas of the source.
    pub server_id: u32,
    /// Our replica UUID; stable per target.
    pub replica_uuid: Uuid,
    /// The name operators see in `SHOW REPLICAS`.
    pub report_host: String,
    /// Whether a history that cannot be verified halts instead of warning.
    pub strict: bool,
    /// Whether cascades that the server does not log are accepted.
    pub allow_unlogged_cascades: bool,
    /// Whether a start that leaves history out is refused (`history_incomplete`): the target is to be a
    /// copy, and was not loaded with what came before.
    pub whole_history: bool,
    /// Which of the captured tables are copied before the stream alone speaks of them, where nothing is stored yet.
    /// What was begun is finished whatever this says.
    pub snapshot: Option<CapturedSet>,
    /// Which of the captured tables are copied once more, as a recorded decision: the copy of each begins anew where it
    /// is not under way, and what the stream says of it until then is in the copy. Names without wildcards may be of
    /// tables that are gone.
    pub copy_again: Option<CapturedSet>,
    /// Numbers of the copy.
    pub copy: CopyLimits,
    /// Numbers.
    pub limits: Limits,
}

impl Config {
    /// Settings that contradict each other.
    pub fn check(&self) -> Result<(), Halt> {
        let l = &self.limits;
        let wrong = [
            (l.stream_above < 4 << 10, "stream_above", "is below 4 KiB"),
            (l.retained_max < 2 * l.stream_above, "retained_max", "is below twice stream_above"),
            (l.row_event_max > 1 << 30, "row_event_max", "is above 1 GiB"),
            (l.row_event_max < 1 << 16, "row_event_max", "is below 64 KiB"),
            (l.silence < 2 * l.heartbeat, "silence", "is below two heartbeats"),
            (l.heartbeat.is_zero(), "heartbeat", "is zero"),
            (l.backoff_first.is_zero(), "backoff_first", "is zero"),
            (l.backoff_max < l.backoff_first, "backoff_max", "is below backoff_first"),
            (l.dial.is_zero() || l.acknowledgement.is_zero(), "dial", "a deadline is zero"),
            (l.progress_every.is_zero() || l.progress_gtids == 0, "progress_every", "is zero"),
            (self.server_id == 0, "server_id", "is zero"),
            (
                self.snapshot.is_some() && self.start != Start::Stored,
                "snapshot",
                "begins at a place of its own: it goes with no other start",
            ),
            (
                self.copy_again.is_some() && self.start != Start::Stored,
                "copy-again",
                "goes on from what is stored: it goes with no other start",
            ),
            (self.copy.chunk_rows == 0 || self.copy.chunk_bytes == 0, "copy", "a chunk holds nothing"),
            (
                self.copy.lock_read.is_zero() || self.copy.lock_write.is_zero(),
                "copy",
                "a lock is not waited for",
            ),
        ];
        match wrong.iter().find(|(wrong, ..)| *wrong) {
            Some((_, name, why)) => {
                Err(Halt::new(Code::ConfigInvalid).with(Detail::Setting(String::from(*name), why)))
            }
            None => Ok(()),
        }
    }
}
