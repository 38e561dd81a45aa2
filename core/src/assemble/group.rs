//! One group of the log, from its GTID to its terminator.

use alloc::{string::String, vec::Vec};

use crate::{
    deliver::{Event, XaDigest},
    gtid::Gtid,
    time::SourceTime,
};

/// A group that is being read.
pub(super) struct Group {
    pub(super) gtid: Option<Gtid>,
    pub(super) committed_at: Option<SourceTime>,
    pub(super) original_commit: SourceTime,
    /// Already processed: read past, delivered never.
    pub(super) skip: bool,
    /// BEGIN or XA START was seen, so a terminator follows.
    pub(super) begun: bool,
    pub(super) xa: Option<XaDigest>,
    /// What is to be delivered and has not been emitted.
    pub(super) events: Vec<Event>,
    /// Retained bytes of `events`.
    pub(super) bytes: usize,
    /// Emitted while it is read.
    pub(super) streamed: bool,
    /// One schema change that commits by itself.
    pub(super) schema_change: bool,
    savepoints: Vec<(String, usize)>,
}

impl Group {
    pub(super) const fn new(
        gtid: Option<Gtid>,
        committed_at: Option<SourceTime>,
        original_commit: SourceTime,
        skip: bool,
    ) -> Self {
        Self {
            gtid,
            committed_at,
            original_commit,
            skip,
            begun: false,
            xa: None,
            events: Vec::new(),
            bytes: 0,
            streamed: false,
            schema_change: false,
            savepoints: Vec::new(),
        }
    }

    /// Whether there is anything to deliver.
    pub(super) const fn has_content(&self) -> bool {
        self.streamed || !self.events.is_empty()
    }

    /// SAVEPOINT: the same name again replaces the older one (manual, "SAVEPOINT").
    pub(super) fn savepoint(&mut self, name: &str) {
        let folded = name.to_lowercase();
        self.savepoints.retain(|(known, _)| *known != folded);
        // Of a streamed transaction nothing that was emitted can be taken back.
        let at = if self.streamed { usize::MAX } else { self.events.len() };
        self.savepoints.push((folded, at));
    }

    /// ROLLBACK TO: drops what came after the savepoint. `false`: it cannot, for the savepoint is
    /// unknown or what came after has been emitted.
    pub(super) fn rollback_to(&mut self, name: &str) -> bool {
        let folded = name.to_lowercase();
        let Some(index) = self.savepoints.iter().position(|(known, _)| *known == folded) else {
            return false;
        };
        let Some((_, at)) = self.savepoints.get(index) else { return false };
        if self.streamed || *at > self.events.len() {
            return false;
        }
        self.events.truncate(*at);
        self.savepoints.truncate(index + 1);
        self.bytes = self.events.iter().map(Event::weight).sum();
        true
    }

    /// RELEASE SAVEPOINT: forgets it and those after it.
    pub(super) fn release(&mut self, name: &str) {
        let folded = name.to_lowercase();
        if let Some(index) = self.savepoints.iter().position(|(known, _)| *known == folded) {
            self.savepoints.truncate(index);
        }
    }
}
