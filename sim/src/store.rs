//! What the sink holds durably: rows and position in one place, written in one step on a condition.

use std::sync::{Arc, Mutex};

use capstan_core::{
    deliver::{Expected, Mismatch, Position},
    gtid::{Gtid, GtidSet},
};

use crate::{
    copied::{Op, Target},
    marks::blunders,
    sink::Blunder,
};

/// One unit as the sink has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its transaction.
    pub gtid: Option<Gtid>,
    /// A hash over all its changes and values, in order.
    pub hash: u64,
    /// Its changes.
    pub changes: u64,
}

/// A commit, as the oracles look at it.
#[derive(Clone, Debug)]
pub struct Commit {
    /// What was stored before.
    pub before: Option<Arc<Position>>,
    /// What is stored now.
    pub after: Arc<Position>,
    /// The units that came with it.
    pub units: Vec<Applied>,
    /// The process that wrote it.
    pub writer: u32,
}

/// A batch that a sink has applied whose position is kept elsewhere.
#[derive(Clone, Debug)]
pub struct Application {
    /// The process that applied it.
    pub writer: u32,
    /// What was stored when the batch was handed over.
    pub at_hand_over: Option<Arc<Position>>,
    /// What must be stored for its position to be.
    pub expected: Option<Position>,
    /// The position that is to be stored next.
    pub after: Arc<Position>,
    /// Its units.
    pub units: Vec<Applied>,
}

/// The durable side.
#[derive(Debug, Default)]
pub struct Store {
    /// The stored position.
    pub position: Option<Arc<Position>>,
    /// The tables that are copied, as the target has them.
    pub target: Target,
    /// Commits that no oracle has seen yet.
    pub unseen: Vec<Commit>,
    /// Applied batches that no oracle has seen yet, where the position is kept elsewhere.
    pub applied: Vec<Application>,
    /// Commits so far.
    pub commits: u64,
    /// Writes that were refused by their condition.
    pub refused: u64,
}

impl Store {
    /// The transactions that are behind the stored position.
    #[must_use]
    pub fn gtid_set(&self) -> Option<&GtidSet> {
        self.position.as_deref().map(Position::gtid_set)
    }

    /// One atomic write, if what is stored is what the writer expects.
    pub fn commit(
        &mut self,
        expected: &Expected,
        position: &Arc<Position>,
        units: Vec<Applied>,
        ops: &[Op],
        writer: u32,
    ) -> Result<(), Mismatch> {
        if let Err(mismatch) = expected.check(self.position.as_deref())
            && !blunders(Blunder::Unconditional)
        {
            self.refused += 1;
            return Err(mismatch);
        }
        self.target.apply(ops);
        let before = self.position.replace(Arc::clone(position));
        self.unseen.push(Commit { before, after: Arc::clone(position), units, writer });
        self.commits += 1;
        Ok(())
    }
}

/// The store as world and sinks share it.
pub type Shared = Arc<Mutex<Store>>;
