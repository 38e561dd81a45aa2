//! The oracles, asked after every step.

use capstan_core::{config::Start, deliver::Position, halt::Code, replica::Link};

use super::{Backup, World};
use crate::{
    oracle::{Failure, bounds, copy, halts, monotone, progress, start},
    process::Process,
    sink::lock,
    store::Commit,
    truth::Poison,
};

impl World {
    /// Looks at everything that can have changed.
    pub(super) fn look(&mut self) -> Result<(), Failure> {
        let (commits, applied) = {
            let mut store = lock(&self.store);
            self.counts.commits = store.commits;
            self.counts.refused = store.refused;
            (std::mem::take(&mut store.unseen), std::mem::take(&mut store.applied))
        };
        for application in &applied {
            self.note(|| format!("applied: {} with {} units", application.after, application.units.len()));
            // What was stored when it was applied: nothing is stored between two looks but these commits.
            let stored =
                commits.first().map_or_else(|| lock(&self.store).position.clone(), |c| c.before.clone());
            self.window.applied(&self.truth, &self.prefix, stored.as_deref(), application)?;
            self.counts.again = self.window.again;
        }
        for commit in &commits {
            if self.library {
                self.window.stored(commit)?;
            }
            self.fencing.check(commit)?;
            self.begins_right(commit)?;
            self.note(|| format!("stored: {} with {} units", commit.after, commit.units.len()));
            monotone::check(commit)?;
            self.prefix.check(&self.truth, commit)?;
            self.facts.sink_trouble = None;
        }
        if self.plan.copy && !commits.is_empty() {
            self.copy_is_exact()?;
        }
        if !commits.is_empty() && self.counts.commits % 5 == 1 && self.backup.is_none() {
            self.backup = Some(self.copy());
        }
        for process in &self.processes {
            bounds::memory(process)?;
            progress::not_stuck(process)?;
        }
        Ok(())
    }

    /// Whether the target holds what it should of the tables that are copied.
    fn copy_is_exact(&mut self) -> Result<(), Failure> {
        let store = lock(&self.store);
        self.counts.chunks = store.target.chunks;
        // Where batches may come again, the target may be ahead of the position.
        match store.position.as_deref() {
            Some(position) if !self.library => copy::check(&self.truth.writes, position, &store.target),
            Some(_) | None => Ok(()),
        }
    }

    /// The target as it is now.
    pub(super) fn copy(&self) -> Backup {
        let store = lock(&self.store);
        Backup {
            position: store.position.clone(),
            target: store.target.clone(),
            prefix: self.prefix.clone(),
            fencing: self.fencing.clone(),
        }
    }

    /// The first claim is where the pipeline was told to begin.
    fn begins_right(&self, commit: &Commit) -> Result<(), Failure> {
        let writer = self.processes.iter().find(|process| process.id == commit.writer);
        let (None, Some(process)) = (&commit.before, writer) else { return Ok(()) };
        let Some(floor) = &process.floor else {
            return Err(Failure::new("start", "something was stored before the first dial"));
        };
        let server = self.links.get(&(process.id, Link::Stream)).map_or(self.primary, |link| link.server);
        let server = &self.servers[server];
        let all = self.truth.entries.iter().filter_map(|entry| entry.gtid);
        let all = all.chain(self.truth.errant.keys().copied()).collect();
        start::check(&process.config.start, commit.after.gtid_set(), floor, server.purged(), &all)
    }

    /// The group that cannot be delivered. With a sink that works, everything before it is stored.
    fn poison_after(&self, stored: Option<&Position>, process: &Process) -> Option<Poison> {
        let stored = stored.map(Position::gtid_set);
        if self.facts.sink_trouble.is_none() && process.claimed() {
            return self.truth.next_after(stored).and_then(|entry| entry.poison);
        }
        self.truth.entries.iter().find_map(|entry| entry.poison)
    }

    /// Whether a halt has a cause.
    pub(super) fn halt_is_sound(&self, process: &Process, code: Code) -> Result<(), Failure> {
        let store = lock(&self.store);
        let stored = store.position.as_deref();
        let left = || self.facts.left.get(&process.id).copied().unwrap_or(self.primary);
        let server = self.links.get(&(process.id, Link::Stream)).map_or_else(left, |link| link.server);
        let server = &self.servers[server];
        let mine = process.config.start.clone();
        let has = stored.is_some();
        let facts = &self.facts;
        // What it goes on from, where nothing is stored.
        let begins = match &process.config.start {
            Start::At(set) => Some(set),
            Start::Stored | Start::Earliest | Start::Current => None,
        };
        // Where two write one position, what is in it may have been sent to the other one.
        let alone = self.processes.is_empty();
        let logged = if alone { server.logged() } else { server.executed().clone() };
        let told = process.told.as_deref().map(Position::gtid_set).or(begins);
        halts::sound(&halts::World {
            code,
            told,
            stored: stored.map(Position::gtid_set).or(begins),
            foreign_owner: process.is_not_owner_of(stored),
            executed: server.executed(),
            logged: &logged,
            purged: server.purged(),
            poison: self.poison_after(stored, process),
            lifeless: self.now - facts.life.get(&process.id).copied().unwrap_or(0),
            damaged: facts.damaged,
            unknown: facts.unknown,
            reset: facts.reset,
            sink_permanent: facts.sink_permanent,
            sink_trouble: facts.sink_trouble.map_or(0, |since| self.now - since),
            rival: facts.replaced.contains(&process.id),
            start_conflict: has != (mine == Start::Stored) && !self.plan.copy,
            lock: facts.locks.get(&process.id).map(|lock| lock.asked).unwrap_or_default(),
            restored: facts.restored,
            log_bin_off: server.variables.get("log_bin").is_some_and(|value| value == "OFF"),
        })
    }
}
