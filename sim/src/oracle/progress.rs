//! No hot loop, and never stuck.

use super::Failure;
use crate::process::Process;

/// Steps without the clock moving.
#[derive(Debug, Default)]
pub struct Steps {
    at: u64,
    steps: u64,
}

/// Everything that can happen at one instant in these schedules, with room.
const STEPS_MAX: u64 = 100_000;

impl Steps {
    /// A step at `now`.
    pub fn step(&mut self, now: u64) -> Result<(), Failure> {
        if self.at == now {
            self.steps += 1;
        } else {
            (self.at, self.steps) = (now, 0);
        }
        if self.steps > STEPS_MAX {
            return Err(Failure::new("progress", "a hot loop: the clock stands still"));
        }
        Ok(())
    }
}

/// A process that waits for nothing will wait for ever.
pub fn not_stuck(process: &Process) -> Result<(), Failure> {
    if process.is_stuck() {
        return Err(Failure::new("progress", format!("stuck: {process:?}")));
    }
    Ok(())
}
