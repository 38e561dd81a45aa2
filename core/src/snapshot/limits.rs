//! Numbers of the initial copy.

use core::time::Duration;

/// Numbers that bound what the initial copy keeps in memory, and how long others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLimits {
    /// Most rows of a chunk.
    pub chunk_rows: u64,
    /// Bytes of rows that end a chunk.
    pub chunk_bytes: usize,
    /// How long chunks of one cut are begun before another is made; zero: a cut for every chunk.
    pub cut_age: Duration,
    /// Views of one cut that a table is read through at the same time, each on a connection of its own; 1 to
    /// [`CopyLimits::CONNECTIONS_MAX`]. Each keeps a chunk in memory. More than one is faster where the source has cores
    /// to spare; where the key is not one whole number, it costs the source a quarter more of work. So `None` is two where
    /// the key is one, and one elsewhere ([`CopyLimits::CONNECTIONS_DEFAULT`] are opened, of which the second is idle
    /// then). Where the source refuses some for there being too many, half as many are tried, and twice as many again
    /// at the first cut a minute later.
    pub connections: Option<u8>,
    /// How long a READ lock is waited for before a WRITE lock is asked for; a quarter of it where the last was not granted.
    pub lock_read: Duration,
    /// How long a WRITE lock is waited for; writers behind it wait as long.
    pub lock_write: Duration,
    /// How long others are left alone after a lock that was not granted; half as long as the lock has been wanted (up to
    /// 15 s), where that is longer.
    pub lock_pause: Duration,
    /// How long the lock is tried for before it is `snapshot_lock_unavailable`.
    pub lock_max: Duration,
    /// How long one prepared XA transaction is seen beside a lock that is not granted before it is
    /// `snapshot_blocked_by_xa`.
    pub lock_xa: Duration,
    /// The copy waits while the source runs more threads than this (`Threads_running`); 0: it does not look.
    pub running_max: u32,
    /// The copy waits while the source itself applies transactions this much later than they were committed, where it
    /// is a replica; zero: it does not look.
    pub lag_max: Duration,
}

/// Why the initial copy waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CopyWait {
    /// Somebody asked for it.
    Paused,
    /// Somebody else holds the table that is to be locked: a transaction that is open, or prepared.
    Lock,
    /// [`CopyLimits::running_max`].
    ThreadsRunning,
    /// [`CopyLimits::lag_max`].
    ReplicationLag,
}

impl CopyWait {
    /// Stable lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Lock => "lock",
            Self::ThreadsRunning => "threads_running",
            Self::ReplicationLag => "replication_lag",
        }
    }
}

impl CopyLimits {
    /// Most connections that read.
    pub const CONNECTIONS_MAX: u8 = 16;
    /// Connections that read where nobody has said how many.
    pub const CONNECTIONS_DEFAULT: u8 = 2;
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self {
            chunk_rows: 10_000,
            chunk_bytes: 1 << 20,
            cut_age: Duration::from_secs(30),
            connections: None,
            lock_read: Duration::from_millis(100),
            lock_write: Duration::from_secs(1),
            lock_pause: Duration::from_millis(500),
            lock_max: Duration::from_secs(300),
            lock_xa: Duration::from_secs(10),
            running_max: 100,
            lag_max: Duration::from_secs(30),
        }
    }
}
