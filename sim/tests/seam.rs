//! The contract of the seam: cuts and chunks change nothing, one seed is one run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use sim::{
    choices::Choices,
    plan::{Plan, Wishes},
    run::run,
    workload::{SHAPES, Shape},
    world::World,
};

const SECOND: u64 = 1_000_000;

/// Without optimisation only every so many offsets are tried.
fn stride() -> usize {
    if env!("OPT_LEVEL") == "0" { 29 } else { 1 }
}

/// One of every small shape.
fn small(world: &mut World) {
    for shape in SHAPES {
        if !matches!(shape, Shape::Big | Shape::BigCompressed | Shape::BigRolledBack) {
            world.commits(*shape);
        }
    }
}

fn story(change: impl FnOnce(&mut Plan), commits: fn(&mut World)) -> World {
    let mut world = World::story(change);
    commits(&mut world);
    let ended = world.pass(30 * SECOND).and_then(|()| world.ends_well());
    if let Err(failure) = ended {
        panic!("{failure}\n{}", world.trace().join("\n"));
    }
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    world
}

/// Bytes of the whole dump.
fn length(commits: fn(&mut World)) -> usize {
    let mut world = World::story(|_| {});
    commits(&mut world);
    let file = &world.servers()[0].files()[1];
    usize::try_from(file.end()).unwrap() + 5 * file.groups().iter().map(|group| group.count()).sum::<usize>()
}

#[test]
fn a_cut_at_every_byte_offset_loses_nothing_and_repeats_nothing() {
    let all = length(small);
    assert!(all > 3_000, "{all} bytes");
    let (mut cut, mut tried) = (0, 0);
    for offset in (0..all).step_by(stride()) {
        tried += 1;
        let world = story(|plan| plan.cut_after = Some(offset), small);
        cut += usize::from(world.counts.dials > 1);
    }
    // What the server is not asked for again (heads of files, heartbeats) lies behind the last offsets.
    assert!(cut > tried * 9 / 10, "only {cut} of {tried} were cut");
}

#[test]
fn a_cut_inside_a_streamed_transaction_loses_nothing_and_repeats_nothing() {
    let large = |world: &mut World| {
        world.commits(Shape::Small);
        world.commits(Shape::BigCompressed);
        world.commits(Shape::Big);
        world.commits(Shape::BigRolledBack);
        world.commits(Shape::Small);
    };
    let mut aborts = 0;
    for offset in (0..length(large)).step_by(199 * stride().min(5)) {
        aborts += story(|plan| plan.cut_after = Some(offset), large).counts.aborts;
    }
    assert!(aborts > 5, "{aborts} aborts");
}

#[test]
fn any_chunks_of_the_same_bytes_give_the_same_events() {
    let digest = |reads: &'static [usize], commits: fn(&mut World)| {
        let mut world = World::story(|plan| (plan.reads, plan.latency) = (reads.to_vec(), 0));
        commits(&mut world);
        world.pass(10 * SECOND).unwrap();
        assert!(world.is_reached(), "{:?}", world.processes());
        world.processes()[0].digest
    };
    let whole = digest(&[], small);
    for reads in [&[1][..], &[2], &[3, 1], &[4], &[5, 19], &[23], &[4, 1_000], &[65_536, 1]] {
        assert_eq!(digest(reads, small), whole, "{reads:?}");
    }
    let large = |world: &mut World| {
        [Shape::Big, Shape::BigCompressed, Shape::Small].iter().for_each(|shape| world.commits(*shape));
    };
    let whole = digest(&[], large);
    for reads in [&[97][..], &[4, 5_000], &[1, 1, 1, 60_000]] {
        assert_eq!(digest(reads, large), whole, "{reads:?}");
    }
}

/// One seed twice: the same trace, to the byte.
#[test]
fn one_seed_is_one_run() {
    for seed in 0..if stride() == 1 { 200 } else { 3 } {
        let first = run(Choices::seeded(seed), Wishes::default(), true);
        let second = run(Choices::seeded(seed), Wishes::default(), true);
        assert_eq!(first.tape, second.tape, "seed {seed}");
        assert_eq!(first.trace, second.trace, "seed {seed}");
        let replayed = run(Choices::replay(first.tape.clone()), Wishes::default(), true);
        assert_eq!(replayed.trace, first.trace, "seed {seed}, from its tape");
    }
}
