//! Counts what goes by, for the status and the metrics.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use capstan_core::{
    binlog::rows::RowsEvent,
    deliver::{CopyState, Delivery, Event, Position, Seq},
    gtid::GtidSet,
    halt::{Code, Halt},
    replica::{Facts, Replica},
    snapshot::CopyWait,
    time::Now,
};

use crate::{
    metrics::{Counter, Gauge, Histogram, Recorder},
    status::{CopyStatus, Handle, Status, lag_ms},
};

/// How old a published status may be. Publishing copies GTID sets, so it is not done with every event.
const EVERY: Duration = Duration::from_millis(250);

/// What one unit holds.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    seq: Seq,
    transaction: bool,
    rows: u64,
}

/// The counts.
pub(super) struct Watch {
    handle: Handle,
    recorder: Arc<dyn Recorder>,
    status: Status,
    /// As of the last publication, for the counters' steps.
    told: Status,
    units: VecDeque<Tally>,
    published: Option<Now>,
    state: &'static str,
    /// The sink's last failure, until it takes a batch.
    sink_trouble: Option<Code>,
    link_trouble: Option<Code>,
    dirty: bool,
    /// How many tables that are copied as a whole were told of.
    told_whole: usize,
    /// How many connections read for the copy, and how many were to, as it was told last.
    connections: Option<(u8, u8)>,
    /// Since when this process copies, and how many rows there were.
    copy_began: Option<(Now, u64)>,
    /// Where to stop, until it was looked at.
    until: Option<GtidSet>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({})", self.state)
    }
}

impl Watch {
    pub(super) fn new(handle: Handle, recorder: Arc<dyn Recorder>, until: Option<GtidSet>) -> Self {
        Self {
            handle,
            recorder,
            status: Status::default(),
            told: Status::default(),
            units: VecDeque::new(),
            published: None,
            state: "",
            sink_trouble: None,
            link_trouble: None,
            dirty: true,
            told_whole: 0,
            connections: None,
            copy_began: None,
            until,
        }
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::TxBegin(begin) => {
                self.units.push_back(Tally { seq: begin.seq, transaction: true, rows: 0 });
            }
            Event::Claim { seq, .. } | Event::Progress { seq, .. } => {
                self.units.push_back(Tally { seq: *seq, ..Tally::default() });
            }
            Event::SnapshotRows(chunk) => {
                let rows = chunk.rows.as_ref().map_or(0, RowsEvent::changes);
                self.units.push_back(Tally { seq: chunk.seq, rows, ..Tally::default() });
            }
            Event::Rows(rows) => {
                if let Some(unit) = self.units.back_mut() {
                    unit.rows += rows.changes();
                }
            }
            Event::TxAbort { .. } => {
                if let Some(unit) = self.units.back_mut() {
                    *unit = Tally { seq: unit.seq, ..Tally::default() };
                }
            }
            Event::Table(_) | Event::SchemaChange(_) | Event::TxCommit(_) => {}
        }
    }

    /// A batch is durable up to `upto`, and the sink took so long.
    pub(super) fn durable(&mut self, upto: Seq, took: Duration) {
        let mut units = 0;
        while let Some(unit) = self.units.front().copied().filter(|unit| unit.seq <= upto) {
            self.units.pop_front();
            units += 1;
            self.status.transactions += u64::from(unit.transaction);
            self.status.rows += unit.rows;
        }
        self.status.batches += 1;
        self.status.last_batch_units = units;
        self.status.sink_us = Some(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.sink_trouble = None;
        self.recorder.observe(Histogram::SinkSeconds, took.as_secs_f64());
        #[allow(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 units")]
        self.recorder.observe(Histogram::BatchUnits, units as f64);
        self.dirty = true;
    }

    pub(super) fn sink_failed(&mut self, code: Code) {
        self.status.sink_failures += 1;
        self.sink_trouble = Some(code);
        self.dirty = true;
    }

    /// Everything not durable is forgotten.
    pub(super) fn restarted(&mut self) {
        self.units.clear();
        self.dirty = true;
    }

    /// When the next publication is due.
    pub(super) fn due(&self) -> Option<Now> {
        match self.published {
            Some(at) if self.dirty => Some(at.after(EVERY)),
            Some(_) | None => None,
        }
    }

    /// Publishes, if it is time or the state has changed.
    pub(super) fn publish(&mut self, now: Now, unix: impl FnOnce() -> Duration, of: Of<'_>) {
        let Of { replica, delivery, halt } = of;
        let changed = replica.state() != self.state;
        let facts = replica.facts();
        if facts.trouble != self.link_trouble {
            self.link_trouble = facts.trouble;
            if let Some(code) = facts.trouble {
                // Once per cause: tried again within the budget, so whoever waits should know for what.
                tracing::warn!(code = code.as_str(), "no stream from the source at the moment; trying again");
            }
        }
        for ((schema, table), why) in facts.copied_whole.iter().skip(self.told_whole) {
            tracing::warn!(
                // A name is the source's: what a terminal would obey is written out.
                table = %format_args!("{}.{}", schema.escape_debug(), table.escape_debug()),
                why,
                "copied as a whole: its view stays open to the last row, the stream waits where the table was \
                 changed meanwhile, and a lost connection begins it anew"
            );
        }
        self.told_whole = facts.copied_whole.len();
        if facts.copy_connections != self.connections {
            let fewer = |of: Option<(u8, u8)>| of.is_some_and(|(reading, wanted)| reading < wanted);
            if let Some((reading, wanted)) = facts.copy_connections {
                if reading < wanted {
                    tracing::warn!(
                        reading,
                        wanted,
                        "the source has no room for so many connections of the copy"
                    );
                } else if fewer(self.connections) {
                    tracing::info!(reading, "the source has room for all connections of the copy again");
                }
            }
            self.connections = facts.copy_connections;
            self.dirty = true;
        }
        if let Some(executed) = &facts.executed
            && let Some(until) = self.until.take()
        {
            let missing = until.subtract(executed);
            if !missing.is_empty() {
                tracing::warn!(%missing, "the end is not reached before the source has executed these, too");
            }
        }
        self.dirty |= facts.copy_waits.map(CopyWait::as_str) != self.told.copy_waits;
        self.dirty |= changed || facts.bytes != self.told.bytes || facts.dials != self.told.dials;
        if !changed && (!self.dirty || self.published.is_some_and(|at| now < at.after(EVERY))) {
            return;
        }
        self.dirty = false;
        self.published = Some(now);
        let unix = unix();
        if changed {
            self.state = replica.state();
            tracing::debug!(state = self.state, "state");
            self.status.state = self.state;
            self.status.state_since_unix_ms = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
        }
        self.fill(now, replica, delivery, halt);
        self.record(unix);
        self.told.clone_from(&self.status);
        self.handle.shared().lock().clone_from(&self.status);
    }

    fn fill(&mut self, now: Now, replica: &Replica, delivery: &Delivery, halt: Option<&Halt>) {
        let facts = replica.facts();
        let durable = delivery.durable();
        let status = &mut self.status;
        status.epoch = durable.map_or(0, Position::epoch);
        status.gtid_set = durable.map(|position| position.gtid_set().clone());
        status.processed = replica.processed().cloned();
        status.committed_at_unix_us = facts.committed_at.map(|at| at.0);
        status.bytes = facts.bytes;
        status.events = facts.events;
        status.dials = facts.dials;
        status.reconnects = facts.reconnects;
        status.retained_bytes = replica.retained() as u64;
        let set = status.gtid_set.as_ref();
        status.behind_executed =
            facts.executed.as_ref().zip(set).map(|(executed, set)| executed.subtract(set).count());
        status.ahead_of_purged =
            facts.purged.as_ref().zip(set).map(|(purged, set)| set.subtract(purged).count());
        status.history_unverified = facts.history_unverified;
        status.copies = durable.map(|durable| copies(durable, facts)).unwrap_or_default();
        status.copy_waits = facts.copy_waits.map(CopyWait::as_str);
        status.copy_connections = facts.copy_connections.map(|(reading, _)| reading);
        (status.copy_rows_per_second, status.copy_left_s) =
            progress(&mut self.copy_began, now, &status.copies);
        let trouble = halt.map(|halt| halt.code).or(self.sink_trouble).or(facts.trouble);
        status.trouble = trouble.map(Code::as_str);
    }

    fn record(&self, unix: Duration) {
        let (now, told) = (&self.status, &self.told);
        for (counter, now, told) in [
            (Counter::Bytes, now.bytes, told.bytes),
            (Counter::Events, now.events, told.events),
            (Counter::Rows, now.rows, told.rows),
            (Counter::Transactions, now.transactions, told.transactions),
            (Counter::Batches, now.batches, told.batches),
            (Counter::SinkFailures, now.sink_failures, told.sink_failures),
            (Counter::Reconnects, now.reconnects, told.reconnects),
            (Counter::Dials, now.dials, told.dials),
        ] {
            if now > told {
                self.recorder.count(counter, now - told);
            }
        }
        let lag_ms = now.committed_at_unix_us.map(|at| lag_ms(unix, at));
        for (gauge, value, unit) in [
            (Gauge::LagSeconds, lag_ms, 1e-3),
            (Gauge::RetainedBytes, Some(now.retained_bytes), 1.0),
            (Gauge::BehindExecuted, now.behind_executed, 1.0),
            (Gauge::AheadOfPurged, now.ahead_of_purged, 1.0),
        ] {
            if let Some(value) = value {
                #[allow(clippy::cast_precision_loss, reason = "a gauge is an approximation")]
                self.recorder.gauge(gauge, value as f64 * unit);
            }
        }
    }
}

/// The tables of a copy that is not at its end.
fn copies(durable: &Position, facts: &Facts) -> Vec<CopyStatus> {
    let copies = durable.copies();
    if copies.values().all(|copy| copy.state == CopyState::Done) {
        return Vec::new();
    }
    let whole = |table| facts.copied_whole.iter().find(|(name, _)| name == table).map(|(_, why)| *why);
    let told = copies.iter().map(|(name, copy)| CopyStatus {
        schema: name.0.clone(),
        table: name.1.clone(),
        estimated_rows: facts.copy_estimates.get(name).copied(),
        bytes: copy.bytes,
        whole: whole(name),
        state: copy.state.as_str(),
        rows: copy.rows,
        chunks: copy.chunks,
    });
    told.collect()
}

/// Rows a second, and seconds that are left.
fn progress(began: &mut Option<(Now, u64)>, now: Now, copies: &[CopyStatus]) -> (Option<u64>, Option<u64>) {
    if copies.is_empty() {
        *began = None;
        return (None, None);
    }
    let rows: u64 = copies.iter().map(|copy| copy.rows).sum();
    let (since, before) = *began.get_or_insert((now, rows));
    let Some(copied) = rows.checked_sub(before) else {
        // A table was begun anew.
        *began = Some((now, rows));
        return (None, None);
    };
    let ms = now.since(since).as_millis();
    if copied == 0 || ms == 0 {
        return (None, None);
    }
    let left = copies.iter().filter(|copy| copy.state != "done");
    let left = left.map(|copy| Some(copy.estimated_rows?.saturating_sub(copy.rows))).sum::<Option<u64>>();
    let seconds = left.map(|left| u128::from(left) * ms / u128::from(copied) / 1000);
    let rate = u64::try_from(u128::from(copied) * 1000 / ms).unwrap_or(u64::MAX);
    (Some(rate), seconds.and_then(|seconds| u64::try_from(seconds).ok()))
}

impl Drop for Watch {
    /// A run that was dropped is not running any more.
    fn drop(&mut self) {
        if !matches!(self.state, "stopped" | "halted") {
            self.handle.shared().lock().state = "dropped";
        }
    }
}

/// Whose status it is.
pub(super) struct Of<'a> {
    pub(super) replica: &'a Replica,
    pub(super) delivery: &'a Delivery,
    pub(super) halt: Option<&'a Halt>,
}
