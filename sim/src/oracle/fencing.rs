//! Each owner takes the next epoch and a mark of its own before it writes anything, and nobody writes after
//! a newer owner.

use super::Failure;
use crate::store::Commit;

/// Who wrote last.
#[derive(Clone, Debug, Default)]
pub struct Fencing {
    last: Option<u32>,
}

impl Fencing {
    /// Looks at one commit.
    pub fn check(&mut self, commit: &Commit) -> Result<(), Failure> {
        let known = self.last.replace(commit.writer);
        let Some(before) = &commit.before else { return Ok(()) };
        let fail = |message: String| Err(Failure::new("fencing", message));
        if known == Some(commit.writer) {
            if !commit.after.same_owner(before) {
                return fail(format!("process {} changed its epoch or mark", commit.writer));
            }
            return Ok(());
        }
        if commit.after.epoch() <= before.epoch() || commit.after.owner() == before.owner() {
            return fail(format!("process {} wrote without a claim", commit.writer));
        }
        if !commit.units.is_empty() {
            return fail(format!("the claim of process {} came with units", commit.writer));
        }
        Ok(())
    }
}
