//! A world that is told step by step, and lied to.

use capstan_core::replica::LostReason;
use capstan_fake_source::Server;

use super::{SOURCE_EPOCH, World};
use crate::{
    choices::Choices,
    fault::Fault,
    oracle::Failure,
    plan::{Plan, Planned},
    sink::lock,
    truth::Entry,
    workload::{Shape, Workload},
};

impl World {
    /// A world for a story that is told step by step: nothing happens by itself but the process that
    /// runs, and everything else is asked for.
    #[must_use]
    pub fn story(change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::quiet();
        change(&mut plan);
        Self::of_plan(plan, Choices::replay(Vec::new()), true, false)
    }

    /// The same, and the position is kept beside the sink.
    #[must_use]
    pub fn library_story(change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::quiet();
        change(&mut plan);
        Self::of_plan(plan, Choices::replay(Vec::new()), true, true)
    }

    /// Lets time pass.
    pub fn pass(&mut self, us: u64) -> Result<(), Failure> {
        let until = self.now + us;
        self.settle()?;
        while self.step(until)? {}
        self.now = self.now.max(until);
        self.counts.virtual_us = self.now;
        Ok(())
    }

    /// Commits a transaction of this shape at the source.
    pub fn commits(&mut self, shape: Shape) {
        self.commit_of(shape);
    }

    /// Commits a transaction of one row of so many bytes.
    pub fn commits_row_of(&mut self, bytes: usize) {
        let gtid = self.gtid();
        let at = SOURCE_EPOCH + self.now;
        let (group, entry) = Workload::default().with_lines_of(bytes).huge(1, gtid, at);
        self.append(&group, entry);
    }

    /// Commits one that is in the log at once, and counted and visible later. For worlds in which tables are copied.
    pub fn commits_uncounted(&mut self, shape: Shape, us: u64) {
        self.commit_of(shape);
        self.copy.move_at = Some(self.now + us);
    }

    /// Commits one that is counted and visible at once, whatever is under way.
    pub fn commits_overtaking(&mut self, shape: Shape) {
        let later = self.copy.move_at;
        self.commit_of(shape);
        self.copy.move_at = later;
        let server = &mut self.servers[self.primary];
        let last = 2 * (server.in_flight() as u32).saturating_sub(1);
        server.moves(last);
        server.moves(last + 1);
    }

    /// The address is another server's from now on: whoever is linked stays where they are. Links of a copy end.
    pub fn address_moves(&mut self) -> bool {
        self.primary = (self.primary + 1) % self.servers.len();
        self.loses_copy_links()
    }

    /// Every link of a copy ends. `true`: there was one.
    pub fn loses_copy_links(&mut self) -> bool {
        let mut any = false;
        while self.cut_copy(0, LostReason::Reset) {
            any = true;
        }
        any
    }

    /// Lets a fault happen now.
    pub fn happens(&mut self, fault: Fault, seconds: f64) -> Result<(), Failure> {
        let lasts = (seconds * 1e6) as u64;
        self.fault(Planned { at: self.now, lasts, fault })?;
        self.settle()
    }

    /// Heals everything and lets the world converge.
    pub fn ends_well(&mut self) -> Result<(), Failure> {
        self.heal();
        self.converge()
    }

    /// The servers, for settings that a story needs.
    pub fn servers(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// The time, µs.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// How many entries of the history the sink has behind it.
    #[must_use]
    pub const fn delivered(&self) -> usize {
        self.prefix.done
    }

    /// The next transaction has a tagged GTID.
    pub const fn tagged_next(&mut self) {
        self.tag_next = true;
    }

    /// Whether everything that was committed is where it should be.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.truth.is_reached(lock(&self.store).gtid_set())
    }

    /// The last transaction was never committed, says the truth.
    pub fn forget_last(&mut self) {
        self.truth.entries.pop();
    }

    /// The last transaction had another value.
    pub fn change_last(&mut self) {
        if let Some(Entry { content: Some((hash, _)), .. }) = self.truth.entries.last_mut() {
            *hash ^= 1;
        }
    }

    /// The last two transactions were committed the other way round.
    pub fn swap_last(&mut self) {
        let last = self.truth.entries.len() - 1;
        self.truth.entries.swap(last, last - 1);
    }

    /// There was one more transaction.
    pub fn invent_last(&mut self) {
        let gtid = self.gtid();
        self.truth.entries.push(Entry { gtid: Some(gtid), content: None, lost: false, poison: None });
    }
}
