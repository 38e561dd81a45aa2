//! The second judge of a mutant, behind the core's own tests (`sim/mutants/run`).

#![allow(clippy::panic, reason = "a test fails by panicking")]

use sim::{plan::Wishes, run::batch};

/// What ten seconds hold on a core that has nothing else to do.
#[test]
#[ignore = "the judge of sim/mutants/run; the other tests run these seeds and more"]
fn ten_seconds_of_schedules() {
    let done = batch(1.., Wishes::default(), |done| done.schedules >= 2_000);
    if let Some(failure) = &done.failure {
        panic!("{failure}");
    }
}
