//! Tables that are copied: who writes them, who holds them, who alters them.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use capstan_core::{capture::CapturedSet, config::Config, snapshot::CopyLimits};
use capstan_fake_source::{Group, event::GtidHead, server::Writes};

use super::{
    SETTINGS, SOURCE_EPOCH, World,
    net::{LinkId, name},
};
use crate::{
    copied::{ALTERATIONS, Alteration, Copied, NAMES},
    fault::Fault,
    oracle::halts::LockAsked,
    sink::lock,
    truth::Entry,
    workload::Shape,
};

/// What every process is told that copies.
pub(super) static COPYING: LazyLock<Config> = LazyLock::new(|| Config {
    snapshot: Some(CapturedSet::parse(&["shop.*"], &[], &[]).expect("a pattern")),
    copy: CopyLimits {
        chunk_rows: 3,
        chunk_bytes: 600,
        cut_age: Duration::from_secs(2),
        lock_max: Duration::from_secs(8),
        ..CopyLimits::default()
    },
    ..SETTINGS.clone()
});

/// What goes on at the tables.
#[derive(Debug, Default)]
pub(super) struct Copying {
    pub(super) copied: Copied,
    /// When something that was logged becomes visible or is counted.
    pub(super) move_at: Option<u64>,
    /// When a schema change is tried again, and which.
    pub(super) alter_at: Option<u64>,
    alter: Option<(usize, Alteration)>,
    /// The server and table of a transaction that is open.
    open: Option<(usize, usize)>,
    /// The table of a prepared transaction.
    prepared: Option<(usize, u64)>,
}

/// A lock that a process wants: since when, what it saw when it asked last, and since when it has seen a prepared
/// transaction.
#[derive(Debug, Default)]
pub(super) struct WantedLock {
    since: Option<u64>,
    xa_since: Option<u64>,
    pub(super) asked: LockAsked,
}

impl WantedLock {
    /// A query of the copy's arrives at the server.
    fn asks(&mut self, sql: &[u8], now: u64, prepared: bool) {
        if sql.starts_with(b"LOCK TABLES ") {
            self.since.get_or_insert(now);
        } else if sql == b"UNLOCK TABLES" {
            // Who lets go of it had it.
            self.since = None;
        } else if sql == b"XA RECOVER" {
            self.xa_since = prepared.then(|| self.xa_since.unwrap_or(now));
            let ago = |since| now - since;
            self.asked = LockAsked { wanted: self.since.map_or(0, ago), xa: self.xa_since.map(ago) };
        }
    }
}

impl Copying {
    pub(super) fn new(whole: bool) -> Self {
        Self { copied: Copied::new(whole), ..Self::default() }
    }

    /// Whether a transaction holds a table already, and the other one is free.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

impl World {
    /// Whether the next transaction is still open, or has to wait for a lock.
    pub(super) fn has_to_wait(&mut self) -> bool {
        if !self.plan.copy {
            return false;
        }
        let primary = self.primary;
        if (0..NAMES.len()).any(|table| self.servers[primary].is_in_flight(table)) {
            // Who changes a row again has waited for its lock.
            self.servers[primary].settles();
        }
        let held = self.copy.open.map(|(_, table)| table);
        let free = |table: &usize| held == Some(*table) || self.servers[primary].can_write(*table);
        if !(0..NAMES.len()).all(|table| free(&table)) {
            self.commit_at = self.now + 2_000;
            return true;
        }
        if held.is_none() && self.choices.chance(1, 3) {
            let table = self.choices.below(NAMES.len() as u32) as usize;
            self.servers[primary].opens(table, true);
            self.copy.open = Some((primary, table));
            self.commit_at = self.now + self.choices.pick(&[20_000, 5_000, 150_000, 700_000]);
            self.note(|| format!("a transaction on {} is open", NAMES[table]));
            return true;
        }
        false
    }

    /// Whether nobody has locked the tables.
    pub(super) fn can_write_copied(&mut self) -> bool {
        let server = &mut self.servers[self.primary];
        if (0..NAMES.len()).any(|table| server.is_in_flight(table)) {
            server.settles();
        }
        (0..NAMES.len()).all(|table| server.can_write(table))
    }

    /// The transaction that was open is over: committed, or gone with its server.
    pub(super) fn ends_open(&mut self) {
        if let Some((server, table)) = self.copy.open.take() {
            self.servers[server].opens(table, false);
        }
    }

    /// Every commit under way is over, and nobody waits at the servers.
    pub(super) fn no_more_open(&mut self) {
        self.ends_open();
        for server in &mut self.servers {
            server.settles();
            server.gives_up_altering();
        }
    }

    pub(super) fn commit_copied(&mut self, shape: Shape) {
        let (bodies, writes) = self.copy.copied.transaction(&mut self.choices, shape);
        self.write(bodies, &writes, shape.name());
    }

    fn write(&mut self, bodies: Vec<capstan_fake_source::event::Body>, writes: &Writes, what: &str) {
        let gtid = self.gtid();
        let group = Group::new(GtidHead::new(Some(gtid), SOURCE_EPOCH + self.now), 1, bodies);
        self.servers.iter_mut().for_each(|server| server.writes(gtid, writes));
        self.truth.writes.push(gtid, Arc::clone(writes));
        let writes = crate::copied::shown(writes);
        self.note(|| format!("the source commits {gtid}: {what}: {writes}"));
        self.append(&group, Entry { gtid: Some(gtid), content: None, lost: false, poison: None });
    }

    /// Something that was logged becomes visible, or is counted.
    pub(super) fn moves(&mut self) {
        let choice = self.choices.below(8);
        let server = &mut self.servers[self.primary];
        server.moves(choice);
        let left = server.in_flight() > 0;
        let after = self.choices.pick(&[0, 200, 5_000, 60_000]);
        self.copy.move_at = left.then_some(self.now + after);
    }

    pub(super) fn alter_copied(&mut self) -> bool {
        if !self.plan.copy || self.copy.alter_at.is_some() {
            return false;
        }
        let table = self.choices.below(NAMES.len() as u32) as usize;
        self.copy.alter = Some((table, self.choices.pick(&ALTERATIONS)));
        self.copy.alter_at = Some(self.now + self.choices.pick(&[0, 300_000, 1_000_000, 2_000_000]));
        if self.choices.chance(1, 2) {
            // So that a chunk has to wait, and its view is in the way.
            self.regimes.stall_stream = self.now + 6_000_000;
        }
        true
    }

    /// The schema change happens, if nobody holds the table.
    pub(super) fn alters(&mut self) {
        let Some((table, kind)) = self.copy.alter.filter(|_| !self.facts.reset) else {
            self.copy.alter_at = None;
            return;
        };
        if !self.backlog.is_empty() || !self.servers[self.primary].can_alter(table) {
            self.copy.alter_at = Some(self.now + 20_000);
            return;
        }
        self.copy.alter_at = None;
        let (bodies, writes) = self.copy.copied.alteration(table, kind);
        self.counts.schema_changes += 1;
        self.write(bodies, &writes, &format!("{kind:?} of {}", NAMES[table]));
        self.servers[self.primary].settles();
        let last = self.truth.entries.last().and_then(|entry| entry.gtid);
        if let Some(gtid) = last {
            lock(&self.store).target.alterations.insert(gtid, writes);
        }
    }

    /// A prepared transaction takes the lock of a table, or is resolved.
    pub(super) fn prepared_xa(&mut self, until: u64) -> bool {
        if !self.plan.copy {
            return false;
        }
        if let Some((table, until)) = self.copy.prepared {
            if until <= self.now {
                self.copy.prepared = None;
                self.servers.iter_mut().for_each(|server| server.prepares(table, false));
            }
            return false;
        }
        let table = self.choices.below(NAMES.len() as u32) as usize;
        self.servers.iter_mut().for_each(|server| server.prepares(table, true));
        self.copy.prepared = Some((table, until));
        self.plan_soon(Fault::PreparedXa, until - self.now);
        true
    }

    /// Counts what a copy asks.
    pub(super) fn asked_of_copy(&mut self, id: LinkId, bytes: &[u8]) {
        // COM_QUERY, COM_STMT_PREPARE.
        let Some(sql) = bytes.get(5..).filter(|_| matches!(bytes[4], 3 | 0x16)) else { return };
        self.note(|| {
            let sql = String::from_utf8_lossy(sql);
            let end = sql.find(", c.ORDINAL").or(sql.find("_client")).unwrap_or(sql.len());
            format!("process {}{} asks {}", id.0, name(id), &sql[..end])
        });
        let prepared = self.copy.prepared.is_some();
        self.facts.locks.entry(id.0).or_default().asks(sql, self.now, prepared);
        if sql.starts_with(b"LOCK TABLES ") {
            let write = sql.ends_with(b" WRITE");
            *(if write { &mut self.counts.locks.1 } else { &mut self.counts.locks.0 }) += 1;
        } else if sql.starts_with(b"KILL QUERY ") {
            self.counts.interrupted += 1;
        } else if sql == b"UNLOCK TABLES" && self.copy.alter_at.is_some() {
            // Who waited for the lock is next.
            self.copy.alter_at = Some(self.now);
        }
    }
}
