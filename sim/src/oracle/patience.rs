//! Nobody is blamed for waiting: not the peer while we do not read, not the sink while it waits for us.

use capstan_core::{
    replica::{Read, WakeReason},
    time::Now,
};

use super::Failure;

/// The peer's silence counts only while it is listened to.
pub fn silence_counts_while_reading(wake: Option<(Now, WakeReason)>, read: Read) -> Result<(), Failure> {
    match (wake, read) {
        (Some((_, WakeReason::Silence)), Read::Paused) => {
            Err(Failure::new("patience", "the peer's silence counts while nothing is read"))
        }
        _ => Ok(()),
    }
}

/// A batch is given up. `waiting`: the sink had read all there was of a transaction that is still being read.
pub fn sink_was_slow(waiting: bool) -> Result<(), Failure> {
    if waiting {
        return Err(Failure::new(
            "patience",
            "the sink's batch was given up while the sink waited for its rest",
        ));
    }
    Ok(())
}
