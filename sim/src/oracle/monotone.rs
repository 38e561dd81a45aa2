//! A stored position only grows, and an owner's epoch never goes back.

use super::Failure;
use crate::store::Commit;

/// Looks at one commit.
pub fn check(commit: &Commit) -> Result<(), Failure> {
    let Some(before) = &commit.before else { return Ok(()) };
    if !before.gtid_set().is_subset(commit.after.gtid_set()) {
        return Err(Failure::new("monotone", format!("{before} became {}", commit.after)));
    }
    if commit.after.epoch() < before.epoch() {
        return Err(Failure::new("monotone", "the epoch went back"));
    }
    Ok(())
}
