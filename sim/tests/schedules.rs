//! The front door: fault schedules, as many as there is time for, each class of faults alone, every schedule
//! that ships, every saved tape.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;

use capstan_core::probe::Mark;
use sim::{
    choices::{Choices, from_hex, seed_of},
    fault::{ALL, Fault},
    marks::Marks,
    oracle::Failure,
    plan::Wishes,
    run::{Batch, Report, batch, run, tell},
    schedule,
};

fn optimised() -> bool {
    env!("OPT_LEVEL") != "0"
}

/// Past what the test runner keeps to itself: this is what the command is for.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Seeds that no run before this commit has had: its hash, or `CAPSTAN_SIM_SEED`.
fn fresh() -> (String, u64) {
    let named = std::env::var("CAPSTAN_SIM_SEED").ok().or_else(|| {
        let mut git = std::process::Command::new("git");
        let out = git.args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    });
    let named = named.unwrap_or_else(|| concat!("capstan ", env!("CARGO_PKG_VERSION")).to_owned());
    let seed = seed_of(&named) >> 1;
    (named, seed)
}

/// Everything has happened but what an initial copy has a test of its own for.
fn is_complete(done: &Batch) -> bool {
    let open = |mark: &Mark| !OF_COPY.contains(mark) && !RARE.contains(mark);
    done.full > 0 && done.never_happened().is_empty() && !done.marks.never().any(|mark| open(&mark))
}

#[test]
fn schedules_keep_every_promise() {
    let (named, seed) = fresh();
    // By number and not by time: what a commit has passed once, it passes on any machine.
    let (least, most) = if optimised() { (5_000, 60_000) } else { (60, 60) };
    let done = batch(seed.., Wishes::default(), |done| {
        done.schedules >= most || done.schedules >= least && is_complete(done)
    });
    if let Some(failure) = &done.failure {
        panic!("{failure}");
    }
    say(&format!("seeds of {named}: from {seed}\n{}", done.table()));
    done.marks.iter().for_each(|(mark, n)| say(&format!("  {n:>9}  branch {mark:?}")));
    if optimised() {
        let never = done.never_happened();
        assert!(never.is_empty(), "NEVER HAPPENED, so nothing was proved of it: {never:?}");
        let elsewhere = |mark: &Mark| OF_COPY.contains(mark) || RARE.contains(mark);
        let never = done.marks.never().filter(|mark| !elsewhere(mark));
        let never: Vec<_> = never.map(|mark| format!("{mark:?}:{}", mark.text())).collect();
        assert!(never.is_empty(), "NEVER TAKEN, so nothing was proved of these branches: {never:#?}");
        assert!(done.full > 0, "no run of full size");
    }
}

/// The same where the library owns the position: everything comes at least once, and again only what was not
/// acknowledged.
#[test]
fn schedules_keep_every_promise_of_a_position_beside_the_sink() {
    let (least, most) = if optimised() { (2_000, 20_000) } else { (30, 30) };
    let (_, seed) = fresh();
    let done = batch(seed.., Wishes { library: true, ..Wishes::default() }, |done| {
        let all = done.counts.again > 0 && done.never_happened().is_empty();
        done.schedules >= most || done.schedules >= least && all
    });
    if let Some(failure) = &done.failure {
        panic!("{failure}");
    }
    say(&format!("with a position beside the sink: {}", done.table()));
    if optimised() {
        let never = done.never_happened();
        assert!(never.is_empty(), "NEVER HAPPENED, so nothing was proved of it: {never:?}");
        assert!(done.counts.again > 0, "NEVER HAPPENED: a batch that came again");
    }
}

/// The same while two tables are copied.
#[test]
fn schedules_keep_every_promise_of_an_initial_copy() {
    let (_, seed) = fresh();
    let mut marks = Marks::default();
    for (library, only, schedules) in [
        (false, None, 1_000),
        (true, None, 500),
        (false, Some(Fault::AlterCopied), 600),
        (false, Some(Fault::PreparedXa), 200),
    ] {
        let most = if optimised() { schedules } else { 10 };
        let wishes = Wishes { library, only, copy: true, ..Wishes::default() };
        let done = batch(seed.., wishes, |done| done.schedules >= most);
        if let Some(failure) = &done.failure {
            panic!("{failure}");
        }
        say(&format!("with an initial copy: {}", done.table()));
        marks.add(&done.marks);
    }
    let never: Vec<_> = marks.never().filter(|mark| OF_COPY.contains(mark)).collect();
    assert!(
        never.is_empty() || !optimised(),
        "NEVER TAKEN, so nothing was proved of these branches: {never:?}"
    );
}

/// Branches of the core that only an initial copy has.
const OF_COPY: &[Mark] = &[
    Mark::CopyJudged,
    Mark::CopyWaits,
    Mark::CutGivenUp,
    Mark::CutTooOld,
    Mark::CutAged,
    Mark::LockToWrite,
    Mark::LockPaused,
    Mark::LockTooLong,
    Mark::ViewWaitedFor,
    Mark::ChunkFailed,
    Mark::ReadAhead,
    Mark::RangeGuessed,
    Mark::CopyLost,
];

/// Those that few thousand schedules do not always take, so each has a story (`stories.rs`).
const RARE: &[Mark] = &[Mark::NotCountedYet, Mark::CopyElsewhere];

/// Each class alone, until it has taken hold: a fault that never happens proves nothing.
#[test]
fn every_fault_happens_and_is_survived_or_halts_by_its_name() {
    for fault in ALL {
        let wishes = Wishes { only: Some(*fault), ..Wishes::default() };
        let seeds = if optimised() { 60 } else { 30 };
        let mut happened = false;
        for seed in 0..seeds {
            let report = run(Choices::seeded(seed), wishes, false);
            if report.result.is_err() {
                panic!("{}", tell(Some(seed), &report, wishes));
            }
            happened |= report.counts.faults.contains_key(fault.name());
            if happened && !optimised() {
                break;
            }
        }
        assert!(happened, "{} never happened", fault.name());
    }
}

/// The schedules that ship end as they say, and what they are about has happened.
#[test]
fn shipped_schedules_end_as_they_say() {
    let shipped = schedule::shipped();
    assert!(shipped.len() >= 20, "{} schedules", shipped.len());
    for (name, path) in &shipped {
        let schedule = schedule::load(name).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
        let told = schedule.run(if optimised() { 1 } else { 97 });
        assert!(told.result.is_ok(), "{}", schedule::tell(name, &told));
    }
    say(&format!("{} written schedules ended as they say", shipped.len()));
}

/// A schedule that does not end as it says, or in which nothing happens, fails.
#[test]
fn a_schedule_that_is_not_true_fails() {
    let text = |expect: &str, when: &str| {
        format!(
            "title = \"t\"\nexpect = \"{expect}\"\n[workload]\nduring = [\"small*5\"]\n[[fault]]\nname = \"corrupt\"\nwhen = \"{when}\"\n"
        )
    };
    for (text, oracle) in [
        (text("equal", "at 2s"), "no-false-halt"),
        (text("halt data_gap", "at 2s"), "end"),
        (text("equal", "at byte 1000000 of the dump"), "did-it-happen"),
    ] {
        let failure = schedule::parse(&text).unwrap().run(1).result.unwrap_err();
        assert_eq!(failure.oracle, oracle, "{failure}");
    }
}

/// What earlier versions of the core failed at, and what versions with a mistake did.
#[test]
fn saved_tapes_pass() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tapes");
    let mut played = 0;
    for entry in std::fs::read_dir(folder).expect("the saved tapes") {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "tape") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let tape = text.lines().find(|line| !line.starts_with('#')).and_then(from_hex);
        let tape = tape.unwrap_or_else(|| panic!("{}: no tape", path.display()));
        let of = |kind: &str| text.lines().any(|line| line.starts_with('#') && line.contains(kind));
        let wishes = Wishes { library: of("--library"), copy: of("--copy"), ..Wishes::default() };
        let report = run(Choices::replay(tape), wishes, false);
        assert!(report.result.is_ok(), "{}: {}", path.display(), tell(None, &report, wishes));
        played += 1;
    }
    assert!(played >= 8, "{played} tapes");
    say(&format!("{played} saved tapes passed"));
}

/// One seed is one run: every step, byte for byte.
#[test]
fn one_seed_is_one_run() {
    let (_, seed) = fresh();
    for seed in seed..seed + if optimised() { 20 } else { 3 } {
        let [first, second] = [(); 2].map(|()| run(Choices::seeded(seed), Wishes::default(), true));
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert_eq!((first.tape, first.result), (second.tape, second.result), "seed {seed}");
    }
}

/// The canary: a failure is seen, told with one line to repeat it, written to a file, and made small.
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
    let path = told.lines().find_map(|line| line.strip_prefix("all of it: ")).expect("the file is named");
    assert!(std::fs::read_to_string(path).unwrap().contains("whole tape: "));
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
