//! Numbers for a metrics system. The names are a closed list, so no value of the data can become one.

/// Something that only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Counter {
    /// Bytes received from the source.
    Bytes,
    /// Events received from the source.
    Events,
    /// Changed rows that became durable.
    Rows,
    /// Transactions that became durable, of those with captured changes.
    Transactions,
    /// Batches that became durable.
    Batches,
    /// Batches the sink did not take.
    SinkFailures,
    /// Links lost after the stream had begun.
    Reconnects,
    /// Dials.
    Dials,
}

impl Counter {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "capstan_bytes_total",
            Self::Events => "capstan_events_total",
            Self::Rows => "capstan_rows_total",
            Self::Transactions => "capstan_transactions_total",
            Self::Batches => "capstan_batches_total",
            Self::SinkFailures => "capstan_sink_failures_total",
            Self::Reconnects => "capstan_reconnects_total",
            Self::Dials => "capstan_dials_total",
        }
    }
}

/// Something that goes up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Gauge {
    /// Now less the commit time of the newest transaction that was passed, in seconds.
    LagSeconds,
    /// Bytes emitted and neither durable nor released.
    RetainedBytes,
    /// Transactions the source had executed at the last connect and that are not durable here.
    BehindExecuted,
    /// Durable transactions that the source had not purged at the last connect: what is left before a
    /// gap if nothing more were processed.
    AheadOfPurged,
}

impl Gauge {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LagSeconds => "capstan_lag_seconds",
            Self::RetainedBytes => "capstan_retained_bytes",
            Self::BehindExecuted => "capstan_behind_executed_transactions",
            Self::AheadOfPurged => "capstan_ahead_of_purged_transactions",
        }
    }
}

/// Something whose distribution matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Histogram {
    /// How long the sink took for a batch, in seconds.
    SinkSeconds,
    /// Units in a batch.
    BatchUnits,
}

impl Histogram {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SinkSeconds => "capstan_sink_seconds",
            Self::BatchUnits => "capstan_batch_units",
        }
    }
}

/// Takes numbers to a metrics system. Called on the loop's task: it must not block.
pub trait Recorder: Send + Sync {
    /// `counter` grew.
    fn count(&self, counter: Counter, by: u64);
    /// `gauge` is now so much.
    fn gauge(&self, gauge: Gauge, value: f64);
    /// One more observation.
    fn observe(&self, histogram: Histogram, value: f64);
}

/// Takes them nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn count(&self, _: Counter, _: u64) {}
    fn gauge(&self, _: Gauge, _: f64) {}
    fn observe(&self, _: Histogram, _: f64) {}
}
