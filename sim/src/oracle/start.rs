//! A pipeline begins where it was told to.

use capstan_core::{config::Start, gtid::GtidSet};

use super::Failure;

/// The first position stored by a process that was told to begin at `start`. `floor`: what every server it had
/// dialled had executed by then; `purged` and `executed`: what its server has now.
pub fn check(
    start: &Start,
    first: &GtidSet,
    floor: &GtidSet,
    purged: &GtidSet,
    executed: &GtidSet,
) -> Result<(), Failure> {
    let right = match start {
        // Something was stored: monotone and prefix tell.
        Start::Stored => true,
        Start::Earliest => first.is_subset(purged),
        Start::Current => floor.is_subset(first) && first.is_subset(executed),
        Start::At(set) => first == set,
    };
    if right {
        return Ok(());
    }
    Err(Failure::new(
        "start",
        format!("told {start:?}, it began at {first}; purged {purged}, executed {executed}"),
    ))
}
