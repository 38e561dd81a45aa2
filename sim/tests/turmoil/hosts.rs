//! Hosts that crash and come back: the source's, and ours.

use sim::{choices::Choices, workload::Shape};

use crate::{
    driver::{HOST, lock, ms, secs, target::Act},
    stage::{Stage, US},
};

#[test]
fn a_source_that_crashes_and_comes_back_is_followed_on() {
    let mut stage = Stage::new(101);
    let settings = stage.settings();
    stage.start(settings);
    let mut choices = Choices::seeded(101);
    for _ in 0..15 {
        stage.origin.commit_some(4, &mut choices);
        stage.pass(ms(choices.range(0, 600)));
        stage.sim.crash(HOST);
        stage.pass(ms(choices.range(0, 8000)));
        stage.sim.bounce(HOST);
        stage.pass(ms(choices.range(0, 3000)));
    }
    stage.catch_up();
    let wire = lock(&stage.wire);
    assert!(wire.eofs + wire.resets > 5 && wire.refused > 5, "{wire:?}");
    drop(wire);
    assert!(stage.status().reconnects > 3, "{}", stage.status().reconnects);
}

/// The power goes: no FIN, no RST. And a bounce at once: the new server knows nothing of our link.
#[test]
fn a_source_that_loses_its_power_is_missed_after_the_silence() {
    let mut stage = Stage::new(102);
    let settings = stage.settings();
    stage.start(settings);
    stage.origin.commit_one_of_each();
    stage.catch_up();
    stage.sim.partition(HOST, US);
    stage.sim.crash(HOST);
    stage.pass(secs(3));
    stage.sim.repair(HOST, US);
    stage.sim.bounce(HOST);
    stage.origin.commit_one_of_each();
    let took = stage.until("it is followed on", secs(60), |stage| lock(&stage.target).is_complete());
    assert!(took > secs(10), "{took:?}");
    assert_eq!(stage.status().reconnects, 1);
}

/// Our process dies wherever it stands; what it leaves behind is what the sink holds.
#[test]
fn a_replica_that_crashes_anywhere_and_comes_back_loses_and_repeats_nothing() {
    let (mut in_sink, mut zombies) = (0, 0);
    for seed in 0..6 {
        let mut stage = Stage::new(110 + seed);
        let settings = stage.settings();
        stage.start(settings);
        let mut choices = Choices::seeded(seed);
        for n in 0..14 {
            stage.origin.commit_some(3, &mut choices);
            let acts =
                [Act::Take, Act::Slow(ms(100)), Act::Sips(ms(20)), Act::LandsLate(ms(60)), Act::AnswerLost];
            for _ in 0..3 {
                let act = choices.pick(&acts);
                lock(&stage.target).acts.push_back(act);
            }
            stage.pass(ms(choices.range(0, 700)));
            in_sink += lock(&stage.target).applying;
            // Every third time without a word to the source, which goes on serving a link nobody reads.
            if n % 3 == 0 {
                stage.sim.partition(HOST, US);
                zombies += 1;
            }
            stage.sim.crash(US);
            assert_eq!(lock(&stage.target).applying, 0);
            stage.pass(ms(choices.range(0, 300)));
            stage.sim.repair(HOST, US);
            stage.sim.bounce(US);
        }
        stage.catch_up();
    }
    assert!(in_sink > 10 && zombies > 10, "{in_sink} with a batch in the sink");
}

#[test]
fn both_crash_and_the_network_breaks_at_random() {
    let mut reconnects = 0;
    for seed in 0..16 {
        let mut stage = Stage::new(200 + seed);
        let settings = stage.settings();
        stage.start(settings);
        let mut choices = Choices::seeded(seed);
        for _ in 0..25 {
            stage.origin.commit_some(choices.range(0, 3), &mut choices);
            match choices.below(10) {
                0 => stage.sim.crash(HOST),
                1 => stage.sim.bounce(HOST),
                2 => stage.sim.crash(US),
                3 => stage.sim.bounce(US),
                4 => stage.sim.partition(HOST, US),
                5 => stage.sim.repair(HOST, US),
                6 => stage.sim.hold(HOST, US),
                7 => stage.sim.release(HOST, US),
                8 => lock(&stage.wire).piece = choices.pick(&[0, 1, 7, 300]),
                _ => lock(&stage.target).acts.push_back(choices.pick(&[
                    Act::Transient,
                    Act::AnswerLost,
                    Act::Hang,
                ])),
            }
            stage.pass(ms(choices.range(0, 5000)));
        }
        // The world heals.
        stage.sim.release(HOST, US);
        stage.sim.repair(HOST, US);
        stage.sim.bounce(HOST);
        stage.sim.bounce(US);
        stage.origin.commit(Shape::Small);
        stage.catch_up();
        reconnects += lock(&stage.wire).dials;
    }
    assert!(reconnects > 60, "{reconnects}");
}
