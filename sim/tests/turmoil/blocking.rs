//! A sink on a thread of its own. The thread runs in real time, the rest in virtual time, so time is let
//! pass only while the thread has nothing to do, or is made to wait.

use std::time::Duration;

use sim::workload::Shape;

use crate::{
    driver::{lock, secs, source::Fate, target::Act},
    stage::Stage,
};

/// Runs to the end, and gives the thread real time for what it is at.
fn run_to_end(stage: &mut Stage, waits_on_purpose: impl Fn(&Stage) -> bool) {
    let mut steps = 0;
    while stage.outside.end().is_none() {
        steps += 1;
        assert!(steps < 2_000_000, "no end: {:?}", stage.outside.state());
        if !waits_on_purpose(stage) {
            std::thread::sleep(Duration::from_micros(200));
        }
        stage.pass(Duration::from_millis(1));
    }
}

#[test]
fn it_takes_everything_once_whatever_it_does() {
    for act in [Act::Take, Act::Transient, Act::HalfThenTransient, Act::AnswerLost, Act::NothingAndLost] {
        for at in 0..4 {
            let mut stage = Stage::new(301);
            stage.origin.commit_all(&[Shape::Small, Shape::Big, Shape::Mixed]);
            stage.origin.fates([Fate::Eof(30_000)]);
            lock(&stage.target).acts.extend(std::iter::repeat_n(Act::Take, at).chain([act]));
            let settings = stage.settings().until_all_of(&stage.origin);
            let _open = stage.start_blocking(settings);
            run_to_end(&mut stage, |_| false);
            stage.finish();
            let (acted, dials) = (lock(&stage.target).acted(act), lock(&stage.wire).dials);
            assert!(acted > 0 && dials >= 2, "{act:?} with batch {at}: acted {acted} times, {dials} dials");
        }
    }
}

/// Its thread cannot be taken back: a commit that lands after the batch was given up counts once.
#[test]
fn a_commit_that_lands_after_its_batch_was_given_up_lands_once() {
    for at in 0..3 {
        let mut stage = Stage::new(302);
        stage.origin.commit_all(&[Shape::Small, Shape::Big, Shape::Mixed]);
        lock(&stage.target).acts.extend(std::iter::repeat_n(Act::Take, at).chain([Act::Hang]));
        let settings = stage.settings().until_all_of(&stage.origin);
        let open = stage.start_blocking(settings);
        let hangs = |stage: &Stage| {
            let target = lock(&stage.target);
            target.acted(Act::Hang) == 1 && target.applying == 1
        };
        let mut began = None;
        while stage.outside.end().is_none() {
            if hangs(&stage) {
                let began = *began.get_or_insert(stage.now());
                // Twice the acknowledgement's deadline.
                if stage.now() - began > secs(120) {
                    let _ = open.send(());
                    std::thread::sleep(Duration::from_millis(5));
                }
            } else {
                std::thread::sleep(Duration::from_micros(200));
            }
            stage.pass(Duration::from_millis(1));
            assert!(stage.now() < secs(3600), "no end");
        }
        stage.finish();
        assert!(stage.now() > secs(120) && lock(&stage.target).asked >= 2, "batch {at}");
    }
}

#[test]
fn a_panic_on_its_thread_halts() {
    let mut stage = Stage::new(303);
    stage.origin.commit_all(&[Shape::Small, Shape::Mixed]);
    lock(&stage.target).acts.extend([Act::Take, Act::Panic]);
    let settings = stage.settings().until_all_of(&stage.origin);
    let _open = stage.start_blocking(settings);
    run_to_end(&mut stage, |_| false);
    stage.finish_halted("sink_failed");
    assert_eq!(lock(&stage.target).written.len(), 0);
}
