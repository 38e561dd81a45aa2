//! Fault schedules, as many as there is time for. `cargo test -p sim --profile sim` runs ten thousand;
//! without optimisation a hundred have to do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use sim::{
    choices::{Choices, from_hex},
    fault::{ALL, Fault},
    oracle::Failure,
    plan::Wishes,
    run::{Report, batch, run, tell},
};

fn optimised() -> bool {
    env!("OPT_LEVEL") != "0"
}

#[test]
fn schedules_keep_every_promise() {
    let schedules = if optimised() { 6_000 } else { 60 };
    let done = batch(1.., Wishes::default(), |n| n >= schedules);
    println!("{}", done.table());
    if let Some(failure) = &done.failure {
        panic!("{failure}");
    }
    if optimised() {
        let never = done.never_happened();
        assert!(never.is_empty(), "NEVER HAPPENED, so nothing was proved of it: {never:?}");
        let never: Vec<_> = done.marks.never().map(|mark| format!("{mark:?}:{}", mark.text())).collect();
        assert!(never.is_empty(), "NEVER TAKEN, so nothing was proved of these branches: {never:#?}");
    }
}

/// The same where the library owns the position: everything comes at least once, and again only what was not
/// acknowledged.
#[test]
fn schedules_keep_every_promise_of_a_position_beside_the_sink() {
    let schedules = if optimised() { 2_000 } else { 30 };
    let done = batch(1.., Wishes { library: true, ..Wishes::default() }, |n| n >= schedules);
    println!("{}", done.table());
    if let Some(failure) = &done.failure {
        panic!("{failure}");
    }
    if optimised() {
        let never = done.never_happened();
        assert!(never.is_empty(), "NEVER HAPPENED, so nothing was proved of it: {never:?}");
        assert!(done.counts.again > 0, "NEVER HAPPENED: a batch that came again");
    }
}

/// Each class alone, until it has taken hold: a fault that never happens proves nothing.
#[test]
fn every_fault_happens_and_is_survived_or_halts_by_its_name() {
    for fault in ALL {
        let wishes = Wishes { only: Some(*fault), ..Wishes::default() };
        let seeds = if optimised() { 200 } else { 30 };
        let mut happened = false;
        for seed in 0..seeds {
            let report = run(Choices::seeded(seed), wishes, false);
            if report.result.is_err() {
                panic!("{}", tell(Some(seed), &report, wishes));
            }
            happened |= report.counts.faults.contains_key(&fault.name());
            if happened && !optimised() {
                break;
            }
        }
        assert!(happened, "{} never happened", fault.name());
    }
}

/// What earlier versions of the core failed at.
#[test]
fn saved_tapes_pass() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tapes");
    let mut played = 0;
    for entry in std::fs::read_dir(folder).expect("the saved tapes") {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let tape = text.lines().find(|line| !line.starts_with('#')).and_then(from_hex);
        let tape = tape.unwrap_or_else(|| panic!("{}: no tape", path.display()));
        let report = run(Choices::replay(tape), Wishes::default(), false);
        assert!(report.result.is_ok(), "{}: {}", path.display(), tell(None, &report, Wishes::default()));
        played += 1;
    }
    assert!(played > 0);
}

/// The canary: a failure is seen, told with one line to repeat it, and made small.
#[test]
fn a_failure_is_told_and_made_small() {
    // A run that "fails" as soon as a streamed transaction is aborted.
    let fails = |report: &Report| report.counts.aborts > 0;
    let seed = (0..10_000).find(|seed| fails(&run(Choices::seeded(*seed), Wishes::default(), false)));
    let seed = seed.expect("some run aborts a transaction");
    let mut report = run(Choices::seeded(seed), Wishes::default(), false);
    report.result = Err(Failure::new("canary", "sings"));
    let told = tell(Some(seed), &report, Wishes::default());
    assert!(told.starts_with("FAILED canary: sings\n"), "{told}");
    let line = format!("REPRO cargo run -p sim --profile sim -- --seed {seed}\n");
    assert!(told.contains(&line) && told.contains("--tape "), "{told}");
}

/// The oracles see what they are there for: a world that is told a wrong truth fails.
#[test]
fn a_wrong_truth_is_seen() {
    use sim::{workload::Shape, world::World};
    for (what, expected) in [
        (World::forget_last as fn(&mut World), "prefix"),
        (World::change_last, "prefix"),
        (World::swap_last, "prefix"),
        (World::invent_last, "liveness"),
    ] {
        let mut world = World::story(|_| {});
        (0..4).for_each(|_| world.commits(Shape::Mixed));
        what(&mut world);
        let failure = world.ends_well().unwrap_err();
        assert_eq!(failure.oracle, expected, "{failure}");
    }
    assert_eq!(Fault::by_name("eof"), Some(Fault::Eof));
}
