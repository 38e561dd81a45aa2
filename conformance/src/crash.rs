//! How a sink is made to die.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::subject::kill;

/// How hard a crash is. The report says which were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// The future of an async call is dropped at an await.
    DroppedFuture,
    /// A blocking call is unwound where it waits for more of a transaction.
    UnwoundCall,
    /// The sink dies at a place that it declares ([`crate::Target::fault_points`]).
    FaultPoint,
    /// A child process is killed by SIGKILL.
    KilledProcess,
}

impl Strength {
    /// Stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DroppedFuture => "dropped_future",
            Self::UnwoundCall => "unwound_call",
            Self::FaultPoint => "fault_point",
            Self::KilledProcess => "killed_process",
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Fault points inside a sink: the target arms one, and the sink dies where it passes it.
///
/// Give a clone to the sink, call [`Faults::pass`] at the places that matter (before a commit, behind it),
/// name them in [`crate::Target::fault_points`] and hand [`crate::Target::arm`] on to [`Faults::arm`].
/// [`Faults::default`] is never armed, so a product build may keep it.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Option<(String, u64)>>>);

impl Faults {
    /// The `count`th passage of `point` from now on is the last; 0: none is.
    pub fn arm(&self, point: &str, count: u64) {
        *self.armed() = (count > 0).then(|| (point.to_owned(), count));
    }

    /// A place called `point`. It dies here, where it was armed so: by unwinding, or with its whole
    /// process.
    pub fn pass(&self, point: &str) {
        let mut armed = self.armed();
        match armed.as_mut() {
            Some((wanted, count)) if wanted == point && *count > 1 => *count -= 1,
            Some((wanted, _)) if wanted == point => {
                *armed = None;
                drop(armed);
                kill();
            }
            Some(_) | None => {}
        }
    }

    fn armed(&self) -> MutexGuard<'_, Option<(String, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
