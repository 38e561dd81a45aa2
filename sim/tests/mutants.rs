//! The alarm rings: each promise is broken once, on purpose, and its oracle must see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use capstan_core::probe::Mutant;
use sim::{
    choices::{Choices, from_hex, to_hex},
    fault::Fault,
    marks::{Mistake, making},
    mutants::{Row, TABLE, TOLD, hunt, line},
    run::{run, shrink},
    workload::Shape,
    world::World,
};

const SECOND: u64 = 1_000_000;

/// Schedules within which a mistake must be found.
const MOST: u64 = 8_000;

fn optimised() -> bool {
    env!("OPT_LEVEL") != "0"
}

fn wanted(row: &Row) -> bool {
    std::env::var("MUTANT").is_ok_and(|name| name == row.mistake.name()) || std::env::var("MUTANT").is_err()
}

#[test]
fn every_mistake_is_seen_by_its_oracle() {
    let mut missed = Vec::new();
    println!("schedules  mistake, promise, oracle");
    let most = if optimised() { MOST } else { 5 };
    for row in TABLE.iter().filter(|row| wanted(row)) {
        let hunt = hunt(row, most);
        println!("{}", line(row, &hunt));
        // Without optimisation there is time for a few schedules each: enough for the plainest mistakes.
        if hunt.caught_after.is_none() && optimised() {
            for (oracle, (seed, message)) in &hunt.seen {
                println!("         {oracle} at {seed}: {message:.300}");
            }
            missed.push(row.mistake.name());
        }
        // Without the mistake the same schedule is sound.
        if let Some(seed) = hunt.caught_after {
            let plain = run(Choices::seeded(seed), row.wishes, false);
            assert!(
                plain.result.is_ok(),
                "seed {seed} fails without {}: {:?}",
                row.mistake.name(),
                plain.result
            );
        }
    }
    assert!(missed.is_empty(), "not seen: {missed:?}");
}

/// A mistake that nobody looks for is no proof of anything.
#[test]
fn every_mistake_of_the_core_is_looked_for() {
    for mutant in Mutant::ALL {
        let in_table = TABLE.iter().any(|row| row.mistake == Mistake::Core(*mutant));
        match (in_table, TOLD.iter().find(|(told, _)| told == mutant)) {
            (true, None) => {}
            (false, Some((_, file))) => {
                let path = format!("{}/tests/{file}.rs", env!("CARGO_MANIFEST_DIR"));
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.contains(&format!("Mutant::{}", mutant.name())), "{} in {file}", mutant.name());
            }
            (true, Some(_)) => panic!("{} stands in both tables", mutant.name()),
            (false, None) => panic!("{} stands in no table", mutant.name()),
        }
    }
}

/// The plainest mistakes of such a pipeline, each with a saved run that shows it.
const SAVED: [Mutant; 8] = [
    Mutant::AckOnEmit,
    Mutant::ResumeFromMemory,
    Mutant::DropAbort,
    Mutant::AskPastEnd,
    Mutant::KeepTableMaps,
    Mutant::ForgetRolledBack,
    Mutant::ForgetFiltered,
    Mutant::DeliverAgain,
];

/// `CAPSTAN_WRITE_TAPES=1` makes them anew, for a generator that draws otherwise.
#[test]
fn saved_tapes_of_mistakes_are_seen_and_are_sound_without() {
    for mutant in SAVED {
        let row = TABLE.iter().find(|row| row.mistake == Mistake::Core(mutant)).unwrap();
        let path = format!("{}/tapes/{}.tape", env!("CARGO_MANIFEST_DIR"), row.mistake.name());
        if std::env::var("CAPSTAN_WRITE_TAPES").is_ok() {
            let seed = hunt(row, MOST).caught_after.unwrap();
            let _making = making(row.mistake);
            let whole = run(Choices::seeded(seed), row.wishes, false).tape;
            let tape = to_hex(&shrink(&whole, row.wishes, row.oracle, 2_000));
            let remark = format!("# {}: with that mistake, {} sees it.", row.mistake.name(), row.oracle);
            std::fs::write(&path, format!("{remark}\n{tape}\n")).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{path} is missing"));
        let tape = text.lines().find(|line| !line.starts_with('#')).and_then(from_hex).unwrap();
        let plain = run(Choices::replay(tape.clone()), row.wishes, false);
        assert!(plain.result.is_ok(), "{path} fails without its mistake: {:?}", plain.result);
        let _making = making(row.mistake);
        let failure = run(Choices::replay(tape), row.wishes, false).result;
        let failure = failure.expect_err(&format!("{path} no longer shows its mistake"));
        assert_eq!(failure.oracle, row.oracle, "{path}: {failure}");
    }
}

/// What needs a slower link than any schedule has: the sink's patience runs out while it waits for us.
#[test]
fn impatience_with_a_sink_that_waits_is_seen() {
    let story = || {
        let mut world = World::story(|_| {});
        world.pass(60 * SECOND)?;
        world.commits(Shape::Big);
        world.pass(1)?;
        world.happens(Fault::Trickle, 3600.0)?;
        world.pass(3600 * SECOND)?;
        world.ends_well()
    };
    assert_eq!(story(), Ok(()));
    let _making = making(Mistake::Core(Mutant::ImpatientWithWaiting));
    assert_eq!(story().unwrap_err().oracle, "patience");
}

/// A sink that has failed for as long as it may, and then works though its answer is lost: what is stored tells.
#[test]
fn a_sink_is_not_given_up_before_what_is_stored_is_read() {
    let story = |after: u64| {
        let mut world = World::story(|_| {});
        world.pass(60 * SECOND)?;
        world.happens(Fault::NothingAndLost, 3600.0)?;
        world.commits(Shape::Small);
        world.pass(after * SECOND)?;
        world.happens(Fault::AnswerLost, 3600.0)?;
        world.pass(120 * SECOND)?;
        world.ends_well()
    };
    // The first attempt behind the bound is the one that works.
    let all = || (500..600).step_by(4).map(story);
    assert!(all().all(|told| told == Ok(())));
    let _making = making(Mistake::Core(Mutant::HaltUnread));
    let seen: Vec<_> = all().filter_map(Result::err).map(|failure| failure.oracle).collect();
    assert!(!seen.is_empty() && seen.iter().all(|oracle| *oracle == "halt-soundness"), "{seen:?}");
}
