//! What a sink does with a batch, over a network.

use sim::workload::Shape;

use crate::{
    driver::{lock, ms, secs, target::Act},
    stage::Stage,
};

/// The claim, a small transaction, a streamed one, a schema change, another streamed one, a small one.
const HISTORY: [Shape; 5] = [Shape::Small, Shape::Big, Shape::Ddl, Shape::BigCompressed, Shape::Mixed];

#[test]
fn whatever_a_sink_does_with_any_batch_it_takes_effect_once() {
    for act in [
        Act::Slow(secs(25)),
        Act::Sips(ms(300)),
        Act::Transient,
        Act::HalfThenTransient,
        Act::AnswerLost,
        Act::NothingAndLost,
        Act::LandsLate(ms(1)),
        Act::LandsLate(secs(3)),
        Act::Hang,
        Act::CommitThenHang,
    ] {
        for at in [0, 1, 2, 4] {
            let mut stage = Stage::new(40);
            stage.origin.commit_all(&HISTORY);
            lock(&stage.target).acts.extend(std::iter::repeat_n(Act::Take, at).chain([act]));
            stage.start_until_all();
            stage.finish();
            assert!(lock(&stage.target).acted(act) > 0, "{act:?} with batch {at} has not happened");
        }
    }
}

#[test]
fn a_commit_whose_answer_was_lost_lands_late_and_once() {
    let (mut landed, mut refused) = (0, 0);
    for after in [0, 150, 2000, 70_000] {
        for at in 0..4 {
            let mut stage = Stage::new(41);
            stage.origin.commit_all(&HISTORY);
            lock(&stage.target)
                .acts
                .extend(std::iter::repeat_n(Act::Take, at).chain([Act::LandsLate(ms(after))]));
            let settings = stage.settings();
            stage.start(settings);
            stage.catch_up();
            // Long after: whatever is still under way tries to land.
            stage.pass(secs(75));
            stage.origin.commit(Shape::Small);
            stage.catch_up();
            landed += lock(&stage.target).landed_late;
            refused += lock(&stage.target).refused;
        }
    }
    assert!(landed > 3 && refused > 3, "{landed} landed late, {refused} were refused");
}

#[test]
fn what_is_wrong_with_the_sink_itself_halts() {
    for act in [Act::Permanent, Act::Panic] {
        for at in 0..5 {
            let mut stage = Stage::new(42);
            stage.origin.commit_all(&HISTORY);
            lock(&stage.target).acts.extend(std::iter::repeat_n(Act::Take, at).chain([act]));
            stage.start_until_all();
            stage.finish_halted("sink_failed");
            assert_eq!(lock(&stage.target).commits, at as u64, "nothing after it");
        }
    }
}

/// While the sink is at work the loop goes on hearing heartbeats, for as long as the acknowledgement's
/// deadline lets it.
#[test]
fn a_slow_sink_costs_no_link() {
    let mut stage = Stage::new(43);
    stage.origin.commit_all(&HISTORY);
    lock(&stage.target).acts.extend([Act::Slow(secs(25)); 6]);
    stage.start_until_all();
    stage.finish();
    assert_eq!((lock(&stage.wire).dials, stage.status().reconnects), (1, 0));
    assert!(stage.now() > secs(250), "{:?}", stage.now());
}
