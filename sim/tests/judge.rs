//! The second judge of a mutant, behind the core's own tests (`sim/mutants/run`).

#![allow(clippy::panic, reason = "a test fails by panicking")]

use sim::{plan::Wishes, run::batch};

/// By number and not by the clock, so that a busy machine judges like an idle one.
fn schedules(wishes: Wishes, usual: u64) {
    let set = std::env::var("JUDGE_SCHEDULES").ok().and_then(|n| n.parse().ok());
    let most = set.unwrap_or(usual);
    let done = batch(1.., wishes, |done| done.schedules >= most);
    if let Some(failure) = &done.failure {
        panic!("{failure}");
    }
}

/// What ten seconds hold on a core that has nothing else to do.
#[test]
#[ignore = "the judge of sim/mutants/run; the other tests run these seeds and more"]
fn ten_seconds_of_schedules() {
    schedules(Wishes::default(), 2_000);
}

/// The same with an initial copy in each.
#[test]
#[ignore = "the judge of sim/mutants/run; the other tests run these seeds and more"]
fn schedules_with_a_copy() {
    schedules(Wishes { copy: true, ..Wishes::default() }, 500);
}
