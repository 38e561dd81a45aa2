//! What the sink holds is the committed history up to its position: row for row, in order, once, and
//! rows and position move together.

use capstan_core::{deliver::Position, gtid::GtidSet};

use super::Failure;
use crate::{
    store::{Applied, Commit},
    truth::Truth,
};

/// How far the sink has come.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    /// Entries of the truth that lie behind.
    pub done: usize,
    /// What the pipeline started after: never delivered.
    base: Option<GtidSet>,
}

impl Prefix {
    /// Looks at one commit.
    pub fn check(&mut self, truth: &Truth, commit: &Commit) -> Result<(), Failure> {
        let fail = |message: String| Err(Failure::new("prefix", message));
        let after = commit.after.gtid_set();
        if commit.before.is_none() {
            // The first claim: the start was chosen, and what lies before it is nobody's business.
            self.base = Some(after.clone());
            if !commit.units.is_empty() {
                return fail("the claim came with units".into());
            }
        }
        let known = |gtid| self.base.as_ref().is_some_and(|base| base.contains(gtid));
        let empty = GtidSet::new();
        let before = commit.before.as_deref().map_or(&empty, Position::gtid_set);
        let (mut at, mut walked, mut units) = (self.done, 0, commit.units.iter().peekable());
        let reaches = |entry: &crate::truth::Entry| entry.gtid.as_ref().is_some_and(|g| after.contains(g));
        // Wherever it comes, it comes once.
        let errant = |units: &mut std::iter::Peekable<std::slice::Iter<'_, Applied>>| {
            let is = |unit: &&Applied| unit.gtid.is_some_and(|gtid| truth.errant.contains_key(&gtid));
            while let Some(unit) = units.next_if(is) {
                let Some(gtid) = unit.gtid else { continue };
                let content = truth.errant.get(&gtid);
                if before.contains(&gtid) || content != Some(&(unit.hash, unit.changes)) {
                    return fail(format!("{gtid} came again, or with other values"));
                }
            }
            Ok(())
        };
        for gtid in truth.errant.keys().filter(|gtid| after.contains(gtid) && !before.contains(gtid)) {
            walked += 1;
            if !known(gtid) && !commit.units.iter().any(|unit| unit.gtid.as_ref() == Some(gtid)) {
                return fail(format!("{gtid} is in the position and its rows are not there"));
            }
        }
        while let Some(entry) = truth.entries.get(at) {
            errant(&mut units)?;
            if !reaches(entry) {
                // Entries that were lost with their server may be missing, if the history goes on.
                let next = truth.entries[at..].iter().position(|entry| !entry.lost);
                match next {
                    Some(skip) if skip > 0 && reaches(&truth.entries[at + skip]) => at += skip,
                    Some(_) | None => break,
                }
                continue;
            }
            at += 1;
            let Some(gtid) = &entry.gtid else { break };
            if !before.contains(gtid) {
                walked += 1;
            }
            if known(gtid) {
                continue;
            }
            if let Some(poison) = entry.poison {
                return fail(format!("{gtid} ({poison:?}) was passed"));
            }
            if truth.writes.of(gtid).is_some() {
                // Of a table that is copied: row by row, that is another oracle's business.
                units.next_if(|unit| unit.gtid.as_ref() == Some(gtid));
                continue;
            }
            let Some((hash, changes)) = entry.content else { continue };
            match units.next() {
                None => return fail(format!("{gtid} is in the position and its rows are not there")),
                Some(unit) if unit.gtid.as_ref() != Some(gtid) => {
                    return fail(format!("{:?} came where {gtid} was due", unit.gtid));
                }
                Some(unit) if (unit.hash, unit.changes) != (hash, changes) => {
                    return fail(format!(
                        "{gtid} has {} changes of {changes}, or other values",
                        unit.changes
                    ));
                }
                Some(_) => {}
            }
        }
        errant(&mut units)?;
        if let Some(unit) = units.next() {
            return fail(format!(
                "{:?} came and is not due (again, too early, or never committed)",
                unit.gtid
            ));
        }
        // What was before is in it: that is another oracle's business.
        let grown = after.count().saturating_sub(before.count());
        if commit.before.is_some() && grown != walked {
            return fail(format!("the position grew by {grown} and the history by {walked}"));
        }
        self.done = at;
        Ok(())
    }
}
