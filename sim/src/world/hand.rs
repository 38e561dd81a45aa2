//! How the sink takes its batches, and how its position is read.

use std::sync::Arc;

use super::{SECOND, World};
use crate::{
    fault::Fault,
    process::Reading,
    sink::{Deferred, Outcome, Script, lock},
};

impl World {
    pub(super) fn hand_over(&mut self, index: usize) {
        let Some(process) = self.processes.get(index) else { return };
        if !process.is_alive() || process.is_applying() || process.load().is_some() {
            return;
        }
        let stage = Arc::clone(&process.stage);
        let script = self.script();
        lock(&stage).script = script;
        let Some(process) = self.processes.get_mut(index) else { return };
        if process.next_batch() {
            self.script_used(script);
        }
    }

    /// How the sink will take its next batch.
    pub(super) fn script(&self) -> Script {
        let now = self.now;
        let slow = self.regimes.slow_sink > now;
        let (change_us, commit_us) = if slow { (30_000, 9 * SECOND) } else { (0, 300) };
        let outcome = match (self.directed.next_outcome, self.regimes.outcome) {
            (Some(outcome), _) => outcome,
            (None, Some((outcome, until))) if until > now => outcome,
            (None, _) => Outcome::Ok,
        };
        // Where the position is kept beside the sink, either of the two fails.
        let at_store = self.library && self.counts.steps % 2 == 1;
        Script { begin_at: now, change_us, commit_us, outcome, at_store }
    }

    pub(super) fn script_used(&mut self, script: Script) {
        if self.directed.next_outcome.take().is_some() || script.outcome != Outcome::Ok {
            let fault = match script.outcome {
                Outcome::Ok => return,
                Outcome::Transient => Fault::SinkTransient,
                Outcome::AnswerLost => Fault::AnswerLost,
                Outcome::NothingAndLost => Fault::NothingAndLost,
                Outcome::Late => Fault::LateCommit,
                Outcome::Hang => Fault::SinkHangs,
                Outcome::HangLate => Fault::HangsAndLands,
                Outcome::Permanent => Fault::SinkPermanent,
            };
            if script.outcome == Outcome::Permanent {
                self.facts.sink_permanent = true;
            }
            self.facts.sink_trouble.get_or_insert(self.now);
            self.count(fault);
            self.note(|| format!("the sink's batch will end: {:?}", script.outcome));
        }
    }

    pub(super) fn reading(&mut self) -> Reading {
        if let Some(reading) = self.directed.reading.take() {
            self.facts.sink_trouble.get_or_insert(self.now);
            self.count(Fault::PositionHangs);
            // The link does not wait for the answer.
            self.plan_soon(Fault::Reset, 2 * SECOND);
            return reading;
        }
        if self.regimes.unreadable > self.now {
            self.facts.sink_trouble.get_or_insert(self.now);
            self.count(Fault::PositionUnreadable);
            return Reading::Transient;
        }
        Reading::Ok
    }

    pub(super) fn collect_deferred(&mut self, index: usize) {
        let Some(process) = self.processes.get(index) else { return };
        let mut stage = lock(&process.stage);
        if stage.deferred.is_empty() {
            return;
        }
        let landed = std::mem::take(&mut stage.deferred);
        drop(stage);
        for deferred in landed {
            let after = self.choices.pick(&[3 * SECOND, 1_000, 30 * SECOND, 100 * SECOND]);
            self.deferred.push((self.now + after, deferred));
        }
    }

    /// A write that was given up lands, if its condition still holds.
    pub(super) fn land(&mut self) {
        let Some(at) = self.deferred.iter().position(|(at, _)| *at <= self.now) else { return };
        let (_, deferred) = self.deferred.remove(at);
        let Deferred { expected, position, units, ops, writer } = deferred;
        let landed = lock(&self.store).commit(&expected, &position, units, &ops, writer);
        self.note(|| format!("a late write of {position} lands: {landed:?}"));
    }
}
