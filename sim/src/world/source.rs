//! What the servers commit.

use std::{cell::RefCell, sync::Arc};

use capstan_core::gtid::{Gtid, Tag, Tsid, Uuid};
use capstan_fake_source::{Group, Server};

use super::{SECOND, SOURCE_EPOCH, World};
use crate::{
    copied::{self, NAMES},
    plan::Plan,
    sink::lock,
    truth::Entry,
    workload::{COPIED_SHAPES, Shape},
};

impl World {
    pub(super) fn gtid(&mut self) -> Gtid {
        let uuid = self.servers[self.primary].uuid;
        let drawn = self.plan.tagged > 0 && self.choices.chance(1, self.plan.tagged);
        let tagged = drawn || std::mem::take(&mut self.tag_next);
        let tag = if tagged { Tag::from_bytes(b"batch").unwrap_or(Tag::NONE) } else { Tag::NONE };
        let gno = self.gnos.entry(Tsid { uuid, tag }).or_default();
        // Numbers are left out where a transaction failed after it had got one.
        *gno += if *gno % 16 == 6 { 2 } else { 1 };
        Gtid::new(uuid, tag, *gno).expect("small numbers")
    }

    /// Commits a transaction at the primary; replicas have it at once.
    pub(super) fn commit(&mut self) {
        if let Some(shape) = self.script.pop_front() {
            self.tag_next = self.plan.tagged > 0 && self.counts.transactions % 2 == 1;
            return self.commit_of(shape);
        }
        if self.plan.copy && self.choices.chance(2, 3) && (self.copy.is_open() || self.can_write_copied()) {
            let large = self.choices.chance(1, 12);
            return self.commit_of(if large { Shape::CopiedLarge } else { Shape::Copied });
        }
        let shape = if self.choices.chance(2, 3) {
            self.choices.pick(&self.plan.shapes)
        } else {
            self.plan.shapes[0]
        };
        self.commit_of(shape);
        if self.choices.chance(1, 12) {
            self.servers[self.primary].rotate();
        }
    }

    pub(super) fn commit_of(&mut self, shape: Shape) {
        if COPIED_SHAPES.contains(&shape) {
            return self.commit_copied(shape);
        }
        let gtid = self.gtid();
        let at = SOURCE_EPOCH + self.now;
        // Whoever starts behind a prepared transaction rightly halts at its end.
        let begun = lock(&self.store).position.is_some();
        let extra =
            (shape == Shape::Empty && begun).then(|| self.extras.instead_of_empty(gtid, at)).flatten();
        let (group, entry) = extra.unwrap_or_else(|| self.workload.make(shape, gtid, at));
        self.note(|| format!("the source commits {gtid}: {shape:?}"));
        if let Shape::Ddl | Shape::CreateSelect = shape {
            self.counts.schema_changes += 1;
        }
        self.append(&group, entry);
    }

    pub(super) fn append(&mut self, group: &Arc<Group>, entry: Entry) {
        self.counts.transactions += 1;
        let primary = self.primary;
        for (index, server) in self.servers.iter_mut().enumerate() {
            if self.plan.copy && index == primary {
                server.log(group);
            } else {
                server.append(group);
            }
        }
        if self.plan.copy {
            self.copy.move_at.get_or_insert(self.now);
            self.ends_open();
        }
        self.truth.entries.push(entry);
    }

    pub(super) fn apply_backlog(&mut self) {
        let next = self.backlog.front().and_then(|group| self.truth.writes.of(group.gtid()?));
        if next.is_some() && !self.can_write_copied() {
            // The applier waits for a lock as everybody does.
            self.backlog_at = self.now + 20_000;
            return;
        }
        if let Some(group) = self.backlog.pop_front() {
            let primary = self.primary;
            for (index, server) in self.servers.iter_mut().enumerate() {
                // The others have it: they received it when it was committed.
                if index == primary {
                    server.append(&group);
                }
            }
            self.backlog_at = self.now + 2 * SECOND;
        }
    }
}

/// Three servers of an empty history. All runs begin with the same ones, so they are made once.
pub(super) fn servers(plan: &Plan) -> Vec<Server> {
    type Made = Vec<(&'static str, bool, Server)>;
    thread_local!(static MADE: RefCell<Made> = const { RefCell::new(Vec::new()) });
    MADE.with_borrow_mut(|made| {
        let known =
            |made: &Made| made.iter().position(|(v, sums, _)| (*v, *sums) == (plan.version, plan.crc32));
        let at = known(made).unwrap_or_else(|| {
            let mut server = Server::new(Uuid([1; 16]), 1, plan.version);
            server.crc32 = plan.crc32;
            server.restart(true, 1);
            made.push((plan.version, plan.crc32, server));
            made.len() - 1
        });
        let mut servers: Vec<Server> =
            (1..=3).map(|n| made[at].2.twin(Uuid([n; 16]), u32::from(n))).collect();
        if plan.copy {
            for server in &mut servers {
                (0..NAMES.len()).for_each(|n| {
                    server.define(&copied::table(n, plan.whole));
                });
            }
        }
        servers
    })
}
