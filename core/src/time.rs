//! Time as an input.

use core::time::Duration;

/// A moment on the driver's clock: microseconds from an origin that only the driver knows.
///
/// Never compared with a time of the source: that is another type
/// ([`SourceTime`]), because the two clocks have nothing in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now(pub u64);

impl Now {
    /// This moment plus `by`; saturates at the end of time.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// A moment on the source's clock: microseconds since 1970-01-01T00:00:00Z, as the
/// commit timestamps of GTID events carry it (`sql/log_event.h`, `Gtid_log_event`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceTime(pub u64);
