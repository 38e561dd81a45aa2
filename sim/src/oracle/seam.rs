//! The seam's own contract, on every step.

use capstan_core::{
    halt::Halt,
    probe::Probe,
    replica::{Output, Read, Replica, WakeReason},
    time::Now,
};

use super::Failure;

/// Outputs of one drain: far more than any input of this simulator can cause.
const OUTPUTS_MAX: u64 = 200_000;

/// The drain reaches idle.
pub fn drain_is_bounded(outputs: u64) -> Result<(), Failure> {
    if outputs > OUTPUTS_MAX {
        return Err(Failure::new("seam", "the drain does not end"));
    }
    Ok(())
}

/// A deadline at or before now never survives an input.
pub fn no_deadline_left_behind(wake: Option<(Now, WakeReason)>, now: u64) -> Result<(), Failure> {
    match wake {
        Some((at, reason)) if at.0 <= now => {
            Err(Failure::new("seam", format!("{reason:?} at {} was handed out at {now}", at.0)))
        }
        Some(_) | None => Ok(()),
    }
}

/// Two ticks at one instant give the same idle.
pub fn same_idle(
    first: (Option<(Now, WakeReason)>, Read),
    second: (Option<(Now, WakeReason)>, Read),
) -> Result<(), Failure> {
    if first == second {
        return Ok(());
    }
    Err(Failure::new("seam", format!("two ticks at one instant: {first:?}, then {second:?}")))
}

/// Behind a halt there is only the halt.
pub fn halt_is_sticky<P: Probe>(core: &mut Replica<P>, halt: &Halt) -> Result<(), Failure> {
    let again = core.poll_output();
    if matches!(&again, Output::Halt(again) if again == halt) {
        return Ok(());
    }
    Err(Failure::new("seam", format!("behind a halt: {again:?}")))
}
