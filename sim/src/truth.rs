//! What was committed, in order: the truth that a sink is held against.

use std::collections::BTreeMap;

use capstan_core::gtid::{Gtid, GtidSet};

use crate::copied::History;

/// One committed group.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its GTID; an anonymous group has none and never gets past the core.
    pub gtid: Option<Gtid>,
    /// What a sink must get of it, as hash and number of changes; `None`: nothing but a position.
    pub content: Option<(u64, u64)>,
    /// It was lost with the server that had it: it may have been delivered, and need not be.
    pub lost: bool,
    /// It cannot be delivered.
    pub poison: Option<Poison>,
}

/// Why a group cannot be delivered; each has a halt of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Poison {
    /// `binlog_row_image=MINIMAL` in one session.
    PartialImage,
    /// `binlog_format=STATEMENT` in one session.
    StatementLogged,
    /// `gtid_mode` was off.
    Anonymous,
    /// The server lost events.
    Incident,
    /// A type of a newer server, not to be ignored.
    UnknownType,
    /// Two-phase XA with captured rows.
    TwoPhaseXa,
    /// Rows whose table was never named.
    RowsWithoutTable,
    /// A row event above `row_event_max`.
    RowTooLarge,
}

/// The committed history.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// In the order of the log.
    pub entries: Vec<Entry>,
    /// Transactions that came to light with a failover, and what a sink must get of each, once, at any place.
    pub errant: BTreeMap<Gtid, (u64, u64)>,
    /// What those that concern tables that are copied wrote: they may be delivered in part, or not at all.
    pub writes: History,
}

impl Truth {
    /// Whether everything that can be delivered is in `position`.
    #[must_use]
    pub fn is_reached(&self, position: Option<&GtidSet>) -> bool {
        let Some(position) = position else { return false };
        let wanted = |entry: &&Entry| !entry.lost;
        // What is missing is missing at the end.
        self.entries
            .iter()
            .rev()
            .filter(wanted)
            .all(|e| e.gtid.as_ref().is_some_and(|g| position.contains(g)))
    }

    /// The first group that is not in `position`.
    #[must_use]
    pub fn next_after(&self, position: Option<&GtidSet>) -> Option<&Entry> {
        let known =
            |entry: &Entry| entry.gtid.as_ref().is_some_and(|g| position.is_some_and(|set| set.contains(g)));
        self.entries.iter().find(|entry| !entry.lost && !known(entry))
    }
}
