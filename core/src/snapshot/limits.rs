//! Numbers of the initial copy.

use core::time::Duration;

/// Numbers that bound what the initial copy keeps in memory, and how long others wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLimits {
    /// Most rows of a chunk.
    pub chunk_rows: u64,
    /// Bytes of rows that end a chunk.
    pub chunk_bytes: usize,
    /// How long one cut is read from before another is made.
    pub cut_age: Duration,
    /// How long a READ lock is waited for before a WRITE lock is asked for.
    pub lock_read: Duration,
    /// How long a WRITE lock is waited for; writers behind it wait as long.
    pub lock_write: Duration,
    /// How long others are left alone after a lock that was not granted.
    pub lock_pause: Duration,
    /// How long the lock is tried for before it is `snapshot_lock_unavailable`.
    pub lock_max: Duration,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self {
            chunk_rows: 10_000,
            chunk_bytes: 1 << 20,
            cut_age: Duration::from_secs(30),
            lock_read: Duration::from_millis(100),
            lock_write: Duration::from_secs(1),
            lock_pause: Duration::from_millis(500),
            lock_max: Duration::from_secs(300),
        }
    }
}
