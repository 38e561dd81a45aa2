//! Processes: how they start, and how they end.

use std::sync::Arc;

use capstan_core::{
    config::{Config, Limits, Start, Until},
    gtid::{Gtid, GtidSet},
    halt::Code,
    replica::Input,
    snapshot::CopyLimits,
};

use super::{SECOND, SETTINGS, World, copying::COPYING};
use crate::{
    fault::Fault,
    oracle::Failure,
    plan::Begin,
    process::{End, Process, Reading},
    sink::{Stage, lock},
};

impl World {
    pub(super) fn config(&mut self) -> Config {
        let stored = lock(&self.store).position.is_some();
        let start = match self.plan.begin {
            _ if stored => Start::Stored,
            Begin::Earliest => Start::Earliest,
            Begin::Current => Start::Current,
            Begin::At => {
                let executed = self.servers[self.primary].executed();
                let some: GtidSet = executed
                    .iter()
                    .filter_map(|(tsid, intervals)| {
                        let first = intervals.first()?;
                        Gtid::new(tsid.uuid, tsid.tag, first.start())
                    })
                    .collect();
                Start::At(some)
            }
        };
        let until = self.plan.until.clone().map(Until::Set);
        if self.plan.huge {
            let limits = Limits { row_event_max: 64 << 20, retained_max: 64 << 20, ..SETTINGS.limits };
            return Config { start, until, limits, ..SETTINGS.clone() };
        }
        if self.plan.copy {
            // One process after the other reads through one view, two, three, or as many as nobody has asked for.
            let connections = u8::try_from(self.next_process % 4).ok().filter(|n| *n > 0);
            let copy = CopyLimits { connections, ..COPYING.copy };
            return Config { start: Start::Stored, until, copy, ..COPYING.clone() };
        }
        Config { start, until, ..SETTINGS.clone() }
    }

    pub(super) fn spawn(&mut self) {
        self.respawn_at = None;
        let config = self.config();
        let id = self.next_process;
        self.next_process += 1;
        self.note(|| format!("process {id} starts with {:?}", config.start));
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&id.to_le_bytes());
        seed[4..8].copy_from_slice(&self.choices.below(1 << 20).to_le_bytes());
        let stage = Stage {
            now: self.now,
            wake: None,
            script: self.script(),
            deferred: Vec::new(),
            changes: 0,
            streamed: false,
            committed: false,
            writer: id,
            library: self.library,
            at_hand_over: None,
        };
        match Process::start(
            id,
            config,
            self.plan.batch,
            seed,
            Arc::clone(&self.store),
            stage,
            self.trace.is_some(),
        ) {
            Ok(process) => self.processes.push(process),
            Err(failure) => self.note(|| format!("{failure}")),
        }
        let twin = self.planned.iter().any(|planned| planned.fault == Fault::Zombie);
        if id == 1 && twin {
            // Somebody starts it twice, and the second one is late.
            self.spawn();
            if let Some(process) = self.processes.last_mut() {
                process.answer = Some((self.now + 5 * SECOND, Reading::Ok));
            }
        }
        self.facts.life.insert(id, self.now);
        if self.processes.len() == 1 {
            self.facts.restored = false;
            self.facts.damaged = false;
            self.facts.unknown = false;
            self.facts.sink_trouble = None;
        }
    }

    /// A process is gone without a word.
    pub(super) fn crash(&mut self, index: usize, after: u64) {
        if index >= self.processes.len() {
            return;
        }
        self.collect_deferred(index);
        let process = self.processes.remove(index);
        self.note(|| format!("process {} is killed", process.id));
        self.tally(&process);
        self.drop_links(process.id);
        if self.processes.is_empty() {
            self.respawn_at = Some(self.now + after);
        }
    }

    pub(super) fn tally(&mut self, process: &Process) {
        self.counts.aborts += process.aborts;
        self.counts.streamed += process.streamed;
        self.counts.dials += process.core.facts().dials;
    }

    pub(super) fn crash_at_commit(&mut self, index: usize) {
        let between = self.processes.get(index).is_some_and(|process| lock(&process.stage).committed);
        if between && self.directed.crash_at_commit {
            self.directed.crash_at_commit = false;
            self.count(Fault::CrashAtCommit);
            self.crash(index, SECOND);
        }
    }

    pub(super) fn input(&mut self, id: u32, input: Input) -> Result<(), Failure> {
        let now = self.now;
        match self.processes.iter_mut().find(|process| process.id == id) {
            Some(process) => process.input(now, input),
            None => Ok(()),
        }
    }

    /// Deals with processes that have ended by themselves.
    pub(super) fn ends(&mut self) -> Result<(), Failure> {
        let Some(index) = self.processes.iter().position(|process| !process.is_alive()) else {
            return Ok(());
        };
        self.collect_deferred(index);
        let process = self.processes.remove(index);
        self.tally(&process);
        let last = self.processes.is_empty();
        match process.end.clone() {
            Some(End::Halted(halt)) => {
                *self.counts.halts.entry(halt.code.as_str()).or_default() += 1;
                self.note(|| format!("process {} halts: {:?} {:?}", process.id, halt.code, halt.place));
                self.halt_is_sound(&process, halt.code)?;
                self.drop_links(process.id);
                // What an operator mends by starting again.
                let again = matches!(
                    halt.code,
                    Code::ChecksumMismatch
                        | Code::StartPositionConflict
                        | Code::StartPositionRequired
                        | Code::Fenced
                        | Code::ServerIdConflict
                        | Code::SourceUnreachable
                        | Code::StreamStalled
                        | Code::BinlogDisabled
                        | Code::PositionReadFailed
                        | Code::SnapshotBlockedByXa
                        | Code::SnapshotLockUnavailable
                ) || (halt.code == Code::UnknownEventType && self.facts.unknown)
                    || (halt.code == Code::SinkFailed && !self.facts.sink_permanent)
                    || self.facts.restored;
                if !last {
                    return Ok(());
                }
                if again {
                    self.respawn_at = Some(self.now + 5 * SECOND);
                } else {
                    self.facts.halted = Some(halt.code);
                }
            }
            Some(End::Stopped) => {
                self.counts.stopped += 1;
                self.note(|| format!("process {} has stopped", process.id));
                self.drop_links(process.id);
                if last {
                    self.respawn_at = Some(self.now + SECOND);
                }
            }
            None => {}
        }
        Ok(())
    }
}
