//! What each fault does to the world.

use std::collections::VecDeque;

use capstan_core::{
    deliver::Position,
    gtid::{Gtid, GtidSet, Tag, Tsid},
    replica::{Input, LostReason},
};
use capstan_fake_source::server::Damage;

use super::{Backup, SECOND, World, net::State};
use crate::{
    copied::Target,
    extras,
    fault::Fault,
    oracle::Failure,
    plan::Planned,
    process::Reading,
    sink::{Outcome, lock},
    truth::{Entry, Poison},
    workload::{Shape, Workload},
};

impl World {
    /// A planned fault begins.
    pub(super) fn fault(&mut self, planned: Planned) -> Result<(), Failure> {
        let Planned { fault, lasts, .. } = planned;
        let until = self.now + lasts;
        self.note(|| format!("FAULT {} for {} s", fault.name(), lasts as f64 / 1e6));
        // Faults that only take hold later are counted where they do.
        let happened = match fault {
            Fault::TornReads => {
                self.regimes.torn = until;
                false
            }
            Fault::Trickle => {
                self.regimes.trickle = until;
                false
            }
            Fault::Stall => {
                self.regimes.stall = until;
                !self.dumps().is_empty()
            }
            Fault::Eof => self.cut(LostReason::Eof),
            Fault::Reset => self.cut(LostReason::Reset),
            Fault::HalfOpen => self.half_open(),
            Fault::DialFails => {
                self.regimes.dial_fails = self.now + 3 * lasts;
                self.cut(LostReason::Reset);
                false
            }
            Fault::SlowDial => {
                self.regimes.slow_dial = until;
                self.cut(LostReason::Reset);
                false
            }
            Fault::ServerError => self.server_error(),
            Fault::TooManyConnections => {
                self.regimes.too_many = until;
                self.cut(LostReason::Eof);
                false
            }
            Fault::FakeRotate => self.damage(Damage::Rotate),
            Fault::OddHeartbeat => self.damage(Damage::Heartbeat),
            Fault::UnknownIgnorable => self.damage(Damage::Unknown { ignorable: true }),
            Fault::CutEvent => self.damage(Damage::Cut),
            Fault::LogBinOff => {
                self.regimes.log_bin_off = self.now + lasts.min(60 * SECOND);
                self.servers[self.primary].set("log_bin", "OFF");
                self.cut(LostReason::Eof);
                true
            }
            Fault::Restart | Fault::ServerCrash => {
                self.cut(if fault == Fault::Restart { LostReason::Eof } else { LostReason::Reset });
                self.regimes.dial_fails = self.now + lasts.min(20 * SECOND);
                if fault == Fault::ServerCrash && !self.facts.reset {
                    self.dies_in_group();
                }
                self.no_more_open();
                self.servers[self.primary].restart(fault == Fault::Restart, 9);
                true
            }
            Fault::Failover => self.failover(0, false),
            Fault::FailoverApplying => {
                let behind = 1 + self.choices.below(4) as usize;
                self.failover(behind, false)
            }
            Fault::FailoverErrant => self.failover_errant(),
            Fault::FailoverLost => {
                let behind = 1 + self.choices.below(4) as usize;
                self.failover(behind, true)
            }
            Fault::Rotate => {
                self.servers[self.primary].rotate();
                true
            }
            Fault::Purge => self.purge_processed(),
            Fault::PurgeRace => {
                self.directed.purge_race = true;
                // Only the first link of a process asks for what is purged then.
                if self.counts.steps.is_multiple_of(2) {
                    self.crash(0, SECOND);
                }
                self.cut(LostReason::Eof);
                false
            }
            Fault::PurgeGap => self.purge_gap(lasts),
            Fault::ResetHistory => self.reset_history(),
            Fault::Crash => {
                let index = self.choices.below(self.processes.len() as u32) as usize;
                let any = !self.processes.is_empty();
                self.crash(index, lasts.min(60 * SECOND));
                any
            }
            Fault::CrashAtCommit => {
                self.directed.crash_at_commit = true;
                false
            }
            Fault::OldBackup => self.old_backup(),
            Fault::Zombie => self.zombie(),
            Fault::SlowSink => {
                self.regimes.slow_sink = until;
                true
            }
            Fault::SinkTransient => self.outcome(Outcome::Transient, self.now + 3 * lasts),
            Fault::AnswerLost => self.outcome(Outcome::AnswerLost, until),
            Fault::NothingAndLost => self.outcome(Outcome::NothingAndLost, until),
            Fault::LateCommit => self.next_outcome(Outcome::Late),
            Fault::SinkHangs => self.next_outcome(Outcome::Hang),
            Fault::HangsAndLands => self.next_outcome(Outcome::HangLate),
            Fault::SinkPermanent => self.next_outcome(Outcome::Permanent),
            Fault::PositionUnreadable => {
                self.regimes.unreadable = self.now + 3 * lasts;
                self.cut(LostReason::Eof);
                false
            }
            Fault::PositionHangs => {
                self.directed.reading = Some(Reading::Hang);
                if self.counts.steps.is_multiple_of(2) {
                    self.cut(LostReason::Eof);
                } else {
                    self.directed.next_outcome = Some(Outcome::NothingAndLost);
                }
                false
            }
            Fault::CopyLinkLost => {
                let which = self.choices.below(4);
                self.cut_copy(which, LostReason::Reset)
            }
            Fault::PreparedXa => self.prepared_xa(until),
            Fault::AlterCopied => self.alter_copied(),
            Fault::TimeJump => {
                self.now += lasts * 10;
                true
            }
            Fault::OddTicks => self.odd_ticks()?,
            Fault::Pause => self.pause(until)?,
            Fault::Drain => self.drain()?,
            Fault::Corrupt => {
                let done = self.damage(Damage::Flip);
                self.facts.damaged |= done;
                done
            }
            Fault::CorruptPayload => {
                let done = self.damage(Damage::FlipPayload);
                self.facts.damaged |= done;
                if done && self.backlog.is_empty() {
                    // One that is taken in pieces, so that its end is read before its sum.
                    self.commit_of(Shape::BigCompressed);
                }
                done
            }
            Fault::UnknownFatal => {
                let done = self.damage(Damage::Unknown { ignorable: false });
                self.facts.unknown |= done;
                done
            }
            Fault::Poison(poison) => self.poison(poison),
        };
        if happened {
            self.count(fault);
        }
        Ok(())
    }

    /// The primary was writing a group when it died.
    fn dies_in_group(&mut self) {
        let uuid = self.servers[self.primary].uuid;
        let tsid = Tsid { uuid, tag: Tag::NONE };
        let next = self.gnos.get(&tsid).copied().unwrap_or(0) + 1;
        let large = self.counts.transactions.is_multiple_of(2);
        if let Some(gtid) = Gtid::new(uuid, Tag::NONE, next) {
            let part = extras::part(gtid, super::SOURCE_EPOCH + self.now, large);
            self.servers[self.primary].append(&part);
        }
    }

    fn half_open(&mut self) -> bool {
        let mut any = false;
        for link in self.links.values_mut() {
            if let State::Open(session) = link.state {
                link.half_open = true;
                // The host is gone: nobody serves that session any more.
                self.servers[link.server].close(session);
                any = true;
            }
        }
        any
    }

    fn server_error(&mut self) -> bool {
        let (number, text) = self.choices.pick(&[
            (1053, "Server shutdown in progress"),
            (1317, "Query execution was interrupted"),
            (1184, "Aborted connection"),
        ]);
        let dumps = self.dumps();
        for (server, session) in &dumps {
            self.servers[*server].kill(*session, number, text);
        }
        !dumps.is_empty()
    }

    fn damage(&mut self, damage: Damage) -> bool {
        let dumps = self.dumps();
        for (server, session) in &dumps {
            self.servers[*server].damage(*session, damage);
        }
        !dumps.is_empty()
    }

    /// Another server takes over. `behind`: how many of the newest groups it has not applied yet, or
    /// never will.
    fn failover(&mut self, behind: usize, lost: bool) -> bool {
        if !self.backlog.is_empty() || self.facts.reset {
            return false;
        }
        self.no_more_open();
        let reason = if self.choices.chance(1, 2) { LostReason::Reset } else { LostReason::Eof };
        self.cut(reason);
        let old = self.primary;
        self.primary = (old + 1) % self.servers.len();
        // Parts of groups that died with a server are nobody's.
        let mut missing = self.servers[self.primary].take_back(behind);
        missing.retain(|group| group.gtid().is_some());
        if lost {
            // What was prepared may be gone.
            self.extras = extras::Extras::default();
            let gone: GtidSet = missing.iter().filter_map(|group| group.gtid().copied()).collect();
            for entry in &mut self.truth.entries {
                entry.lost |= entry.gtid.as_ref().is_some_and(|gtid| gone.contains(gtid));
            }
            let entries = &self.truth.entries;
            let lost: GtidSet =
                entries.iter().filter(|entry| entry.lost).filter_map(|entry| entry.gtid).collect();
            self.copy.copied.rebuilt(&self.truth.writes, |gtid| !lost.contains(gtid));
            // Nobody has to begin behind what is gone.
            let executed = self.servers[self.primary].executed();
            for process in &mut self.processes {
                process.floor = process.floor.take().map(|floor| floor.intersect(executed));
            }
            // The others are made its replicas anew.
            for (index, server) in self.servers.iter_mut().enumerate() {
                if index != self.primary {
                    server.take_back(behind);
                }
            }
        } else {
            self.backlog = VecDeque::from(missing);
            self.backlog_at = self.now + 5 * SECOND;
        }
        self.regimes.log_bin_off = 0;
        self.servers[self.primary].set("log_bin", "ON");
        self.servers[old].set("log_bin", "ON");
        true
    }

    /// Another server takes over that has everything, and among it a transaction that nobody knew of. It is new to a
    /// pipeline wherever that stands, and comes first.
    fn failover_errant(&mut self) -> bool {
        if self.plan.copy || !self.failover(0, false) {
            return false;
        }
        let behind = self.choices.below(5) as usize;
        let gtid = self.gtid();
        let at = super::SOURCE_EPOCH + self.now;
        let (group, entry) = self.workload.make(Shape::Small, gtid, at);
        for (index, server) in self.servers.iter_mut().enumerate() {
            // The others get it from their new source, so it comes last there.
            let newer = server.take_back(if index == self.primary { behind } else { 0 });
            server.append(&group);
            newer.iter().for_each(|group| server.append(group));
        }
        self.counts.transactions += 1;
        self.note(|| format!("it has {gtid} behind the newest {behind}"));
        self.truth.errant.extend(entry.content.map(|content| (gtid, content)));
        true
    }

    /// Purges what every pipeline has processed, as far as files allow.
    pub(super) fn purge_processed(&mut self) -> bool {
        let stored = lock(&self.store).position.clone();
        let Some(stored) = stored.filter(|_| !self.facts.reset) else { return false };
        let server = &mut self.servers[self.primary];
        server.rotate();
        let done = stored.gtid_set();
        let keep = server.files().iter().position(|file| !file.gtids().is_subset(done));
        let keep = keep.map_or(1, |first| server.files().len() - first);
        server.purge(keep);
        true
    }

    /// Purges what was not processed.
    fn purge_gap(&mut self, lasts: u64) -> bool {
        if !self.backlog.is_empty() {
            return false;
        }
        self.cut(LostReason::Reset);
        self.regimes.dial_fails = self.now + lasts.clamp(SECOND, 20 * SECOND);
        for _ in 0..=self.choices.below(3) {
            self.commit();
        }
        let server = &mut self.servers[self.primary];
        server.rotate();
        server.purge(1);
        true
    }

    /// RESET, and a new history that reaches as far as the old one.
    fn reset_history(&mut self) -> bool {
        // A history is known by its transactions that were processed: where none of a source was, only
        // skipped at the start, its new ones may come before anything that could be recognised.
        let executed = self.servers[self.primary]
            .executed()
            .union(lock(&self.store).gtid_set().unwrap_or(&GtidSet::new()));
        let all_known = |p: &Position| executed.iter().all(|(tsid, _)| p.last().contains_key(&tsid));
        let knows = lock(&self.store).position.as_ref().is_some_and(|p| !p.last().is_empty() && all_known(p));
        if !self.backlog.is_empty() || !knows || self.plan.copy {
            return false;
        }
        while !self.processes.is_empty() {
            self.crash(0, SECOND);
        }
        let old = self.servers[self.primary].executed().clone();
        self.facts.reset = true;
        self.commits_left = 0;
        self.truth.entries.iter_mut().for_each(|entry| entry.lost = true);
        let shorter = self.choices.chance(1, 3);
        let primary = self.primary;
        self.servers[primary].reset();
        for (tsid, intervals) in &old {
            for interval in intervals {
                for gno in interval.start()..=interval.end() {
                    if shorter && gno == interval.end() {
                        continue;
                    }
                    let Some(gtid) = Gtid::new(tsid.uuid, tsid.tag, gno) else {
                        continue;
                    };
                    let at = super::SOURCE_EPOCH + self.now + 1_000_000_000;
                    let (group, _) = self.workload.make(Shape::Small, gtid, at + gno);
                    self.servers[primary].append(&group);
                }
            }
        }
        true
    }

    /// The target is restored from an older copy while nobody uses it.
    fn old_backup(&mut self) -> bool {
        if self.facts.reset {
            // An older position may not know the history that is gone.
            return false;
        }
        let current = self.copy();
        let Some(Backup { position, target, prefix, fencing }) = self.backup.replace(current) else {
            return false;
        };
        if position.is_none() {
            return false;
        }
        if self.counts.steps.is_multiple_of(2) {
            while !self.processes.is_empty() {
                self.crash(0, 2 * SECOND);
            }
        } else {
            // Under the eyes of who uses it.
            self.facts.restored = true;
            self.cut(LostReason::Reset);
        }
        self.deferred.clear();
        self.note(|| format!("the target is restored at {position:?}"));
        {
            let mut store = lock(&self.store);
            store.position = position;
            // What schema changes did in between is known all the same.
            let alterations = std::mem::take(&mut store.target.alterations);
            store.target = Target { alterations, ..target };
        }
        self.prefix = prefix;
        self.fencing = fencing;
        true
    }

    /// A second process while the first one lives.
    fn zombie(&mut self) -> bool {
        let claimed = lock(&self.store).position.as_ref().is_some_and(|p| p.epoch() > 0);
        if self.processes.len() != 1 || !claimed {
            return false;
        }
        self.spawn();
        true
    }

    fn outcome(&mut self, outcome: Outcome, until: u64) -> bool {
        self.regimes.outcome = Some((outcome, until));
        false
    }

    fn next_outcome(&mut self, outcome: Outcome) -> bool {
        self.directed.next_outcome = Some(outcome);
        false
    }

    fn odd_ticks(&mut self) -> Result<bool, Failure> {
        let now = self.now;
        for process in &mut self.processes {
            process.tick(now, true)?;
        }
        Ok(!self.processes.is_empty())
    }

    fn pause(&mut self, until: u64) -> Result<bool, Failure> {
        let now = self.now;
        if self.regimes.paused == 0 {
            for process in &mut self.processes {
                process.input(now, Input::Pause)?;
            }
            self.regimes.paused = until;
            self.plan_soon(Fault::Pause, until - self.now);
            return Ok(!self.processes.is_empty());
        }
        self.regimes.paused = 0;
        for process in &mut self.processes {
            process.input(now, Input::Resume)?;
        }
        Ok(false)
    }

    fn drain(&mut self) -> Result<bool, Failure> {
        let now = self.now;
        for process in &mut self.processes {
            process.input(now, Input::Drain)?;
        }
        Ok(!self.processes.is_empty())
    }

    fn poison(&mut self, poison: Poison) -> bool {
        if !self.backlog.is_empty() {
            return false;
        }
        if poison == Poison::Anonymous {
            // A server looks for the file to start in by GTIDs alone: over a new link, a group without
            // one is stepped over with its file, and nobody can tell. So no file may follow.
            if self.dumps().is_empty() {
                return false;
            }
            self.commits_left = 0;
            self.planned.clear();
        }
        let gtid = self.gtid();
        let at = super::SOURCE_EPOCH + self.now;
        let (group, entry) = Workload::poison(poison, gtid, at);
        let entry = Entry { gtid: entry.gtid, ..entry };
        self.append(&group, entry);
        true
    }
}
