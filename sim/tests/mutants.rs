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
    choices::Choices,
    fault::Fault,
    marks::{Mistake, making},
    mutants::{Row, TABLE, hunt, line},
    run::run,
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
