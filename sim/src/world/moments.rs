//! Faults at moments that have a name.

use capstan_core::gtid::Gtid;

use super::World;
use crate::{fault::Fault, oracle::Failure, plan::Planned, sink::lock};

/// A moment. Transactions are counted from 1, in the order of their commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So many bytes of dumps have been read.
    Byte(u64),
    /// Each of these, a world for each.
    EveryByte,
    /// This transaction is committed at the source.
    Committed(u64),
    /// A part of this transaction has been read.
    Inside(u64),
    /// The sink has committed this transaction and not answered yet.
    Unanswered(u64),
}

/// A fault at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// When.
    pub when: When,
    /// What.
    pub fault: Fault,
    /// How long it lasts, µs.
    pub lasts: u64,
}

impl World {
    /// Lets every fault happen whose moment this is.
    pub(super) fn moments(&mut self) -> Result<(), Failure> {
        let mut at = 0;
        while let Some(moment) = self.moments.get(at).copied() {
            if self.is_now(moment.when) {
                self.moments.remove(at);
                self.note(|| format!("this is the moment: {:?}", moment.when));
                self.fault(Planned { at: self.now, lasts: moment.lasts, fault: moment.fault })?;
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// A read ends where a moment is.
    pub(super) fn bytes_to_moment(&self) -> Option<usize> {
        let left = self.moments.iter().filter_map(|moment| match moment.when {
            When::Byte(bytes) => bytes.checked_sub(self.counts.dump_bytes).filter(|left| *left > 0),
            When::EveryByte | When::Committed(_) | When::Inside(_) | When::Unanswered(_) => None,
        });
        left.min().and_then(|left| usize::try_from(left).ok())
    }

    fn is_now(&self, when: When) -> bool {
        match when {
            When::Byte(bytes) => self.counts.dump_bytes >= bytes,
            When::EveryByte => false,
            When::Committed(n) => self.counts.transactions >= n,
            When::Inside(n) => {
                let Some(gtid) = self.nth(n) else { return false };
                self.dumps().iter().any(|(server, id)| self.servers[*server].inside(*id) == Some(gtid))
            }
            When::Unanswered(n) => {
                let Some(gtid) = self.nth(n) else { return false };
                let between = self.processes.iter().any(|process| lock(&process.stage).committed);
                let store = lock(&self.store);
                between && store.gtid_set().is_some_and(|set| set.contains(&gtid))
            }
        }
    }

    fn nth(&self, n: u64) -> Option<Gtid> {
        let index = usize::try_from(n).ok()?.checked_sub(1)?;
        self.truth.entries.get(index)?.gtid
    }
}
