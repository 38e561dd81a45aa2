//! The end of a run: everything is healed, and must come about.

use capstan_core::{gtid::Gtid, replica::Input};
use capstan_fake_source::Server;

use super::{CONVERGE_WITHIN, Directed, Regimes, SECOND, World};
use crate::{
    copied::NAMES,
    oracle::{Failure, copy},
    process::Reading,
    sink::lock,
    workload::Shape,
};

impl World {
    /// Every regime ends, everything works again.
    pub(super) fn heal(&mut self) {
        self.note(|| "everything is healed".into());
        self.healed = true;
        self.planned.clear();
        self.regimes = Regimes::default();
        self.directed = Directed::default();
        self.commits_left = 0;
        self.no_more_open();
        self.copy.alter_at = None;
        self.servers.iter_mut().for_each(Server::settles);
        for server in &mut self.servers {
            server.set("log_bin", "ON");
            server.refuses = None;
            (0..NAMES.len()).for_each(|table| server.prepares(table, false));
        }
        let now = self.now;
        for process in &mut self.processes {
            let _ = process.input(now, Input::Resume);
            if let Some((at, reading)) = &mut process.answer {
                (*at, *reading) = (now, Reading::Ok);
            }
        }
    }

    /// Everything that can be delivered must be there before long; what cannot must have halted.
    pub(super) fn converge(&mut self) -> Result<(), Failure> {
        self.settle()?;
        let until = self.now + CONVERGE_WITHIN;
        let mut goes_on_at = self.now;
        loop {
            if self.facts.halted.is_some() {
                return Ok(());
            }
            if self.has_converged() {
                self.copied_whole()?;
                return self.drained();
            }
            let unaware = self.processes.len() > 1 || self.facts.restored;
            if unaware && self.now >= goes_on_at && self.can_go_on() {
                // Who is fenced, or whose target is an older copy, learns it when it has something to write.
                self.commit_of(Shape::Small);
                goes_on_at = self.now + 60 * SECOND;
            }
            if self.now >= until || !self.step(until)? {
                return Err(Failure::new("liveness", self.pending()));
            }
        }
    }

    /// Whether everything has been delivered and more can be committed.
    pub(super) fn can_go_on(&self) -> bool {
        let poisoned = self.truth.entries.iter().any(|entry| entry.poison.is_some());
        !self.facts.reset
            && !poisoned
            && self.backlog.is_empty()
            && (self.facts.restored || self.truth.is_reached(lock(&self.store).gtid_set()))
    }

    pub(super) fn has_converged(&self) -> bool {
        // A history that is not the source's any more must end in a halt.
        let quiet = !self.facts.reset
            && self.respawn_at.is_none()
            && self.deferred.is_empty()
            && self.backlog.is_empty()
            && self.processes.len() == 1;
        if !quiet {
            return false;
        }
        let store = lock(&self.store);
        let position = store.gtid_set();
        let executed = self.servers[self.primary].executed();
        let has = |gtid: &Gtid| position.is_some_and(|position| position.contains(gtid));
        if self.truth.errant.keys().any(|gtid| executed.contains(gtid) && !has(gtid)) {
            return false;
        }
        let copied = !self.plan.copy || copy::is_done(store.position.as_deref());
        copied
            && self.truth.is_reached(position)
            && position.is_none_or(|position| position.is_subset(executed))
    }

    /// What was copied is what there is, however it came.
    fn copied_whole(&self) -> Result<(), Failure> {
        let store = lock(&self.store);
        match store.position.as_deref() {
            Some(position) if self.plan.copy && !store.target.overtaken => {
                copy::check(&self.truth.writes, position, &store.target)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What has not come about.
    pub(super) fn pending(&self) -> String {
        let store = lock(&self.store);
        let position = store.gtid_set();
        let next = self.truth.next_after(position);
        format!(
            "not converged: {:?}; the next entry is {next:?}; stored is {:?}",
            self.processes, store.position
        )
    }

    /// A pipeline that is where it should be stops when it is asked to.
    pub(super) fn drained(&mut self) -> Result<(), Failure> {
        let Some(process) = self.processes.first() else { return Ok(()) };
        let id = process.id;
        self.input(id, Input::Drain)?;
        let until = self.now + 120 * SECOND;
        loop {
            self.settle()?;
            if self.processes.iter().all(|process| process.id != id) {
                return if self.facts.halted.is_some() {
                    Err(Failure::new("liveness", "a halt while it drained"))
                } else {
                    Ok(())
                };
            }
            if !self.step(until)? {
                return Err(Failure::new("liveness", format!("it does not drain: {:?}", self.processes)));
            }
        }
    }
}
