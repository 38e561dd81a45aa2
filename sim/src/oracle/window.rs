//! Where the library owns the position: everything comes at least once, whole and in order, and what comes
//! again is exactly what was not acknowledged.

use std::sync::Arc;

use capstan_core::{deliver::Position, gtid::GtidSet};

use super::{Failure, prefix::Prefix};
use crate::{
    store::{Application, Commit},
    truth::Truth,
};

/// What a sink whose position is kept elsewhere was given.
#[derive(Debug, Default)]
pub struct Window {
    /// What every applied batch came to: its process and position. A store may be late, so none is forgotten.
    applied: Vec<(u32, Arc<Position>)>,
    /// From where the last batch with units went on.
    from: Option<GtidSet>,
    /// Batches that came again.
    pub again: u64,
}

impl Window {
    /// A batch was applied.
    pub fn applied(
        &mut self,
        truth: &Truth,
        prefix: &Prefix,
        stored: Option<&Position>,
        application: &Application,
    ) -> Result<(), Failure> {
        let fail = |message: String| Err(Failure::new("window", message));
        let Application { writer, at_hand_over, expected, after, units } = application;
        self.applied.push((*writer, Arc::clone(after)));
        // A former owner finds out when it stores.
        if at_hand_over.as_deref() != expected.as_ref() {
            return Ok(());
        }
        if let Some(expected) = expected {
            if !units.is_empty() {
                self.again += u64::from(self.from.as_ref() == Some(expected.gtid_set()));
                self.from = Some(expected.gtid_set().clone());
            }
            let acknowledged =
                units.iter().filter_map(|unit| unit.gtid).find(|gtid| expected.gtid_set().contains(gtid));
            if let Some(gtid) = acknowledged {
                return fail(format!("{gtid} came again though it was acknowledged"));
            }
        }
        if stored == expected.as_ref() {
            // As if it were stored now: whole transactions, in order, as they were committed.
            let commit = Commit {
                before: expected.clone().map(Arc::new),
                after: Arc::clone(after),
                units: units.clone(),
                writer: *writer,
            };
            prefix
                .clone()
                .check(truth, &commit)
                .map_err(|failure| Failure::new("window", failure.message))?;
        }
        Ok(())
    }

    /// A position was stored.
    pub fn stored(&self, commit: &Commit) -> Result<(), Failure> {
        let there =
            self.applied.iter().any(|(process, after)| *process == commit.writer && *after == commit.after);
        if there {
            return Ok(());
        }
        Err(Failure::new("window", format!("{} was stored before its batch was applied", commit.after)))
    }
}
