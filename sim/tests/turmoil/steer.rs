//! Pause, resume, drain, and a future that is dropped.

use sim::workload::Shape;

use crate::{
    driver::{HOST, lock, ms, secs, target::Act, wire::Cut},
    stage::{Stage, US},
};

#[test]
fn a_paused_replica_reads_nothing_keeps_its_link_and_goes_on() {
    let mut stage = Stage::new(61);
    let settings = stage.settings();
    stage.start(settings);
    stage.origin.commit_one_of_each();
    stage.catch_up();
    stage.outside.handle().pause();
    stage.pass(secs(1));
    let (read, written) = (lock(&stage.wire).bytes_in, lock(&stage.target).written.len());
    for _ in 0..10 {
        stage.origin.commit_one_of_each();
        stage.pass(secs(60));
    }
    assert_eq!(stage.outside.state(), "paused");
    assert_eq!((lock(&stage.wire).bytes_in, lock(&stage.target).written.len()), (read, written));
    stage.outside.handle().resume();
    stage.catch_up();
    assert!(lock(&stage.target).written.len() > written + 100);
    assert_eq!(
        (lock(&stage.wire).dials, stage.status().reconnects),
        (1, 0),
        "it was our silence, not the peer's"
    );
}

/// A drain ends with what is stored, wherever it finds the replica.
#[test]
fn a_drain_finds_the_replica_anywhere_and_ends_it_with_what_is_stored() {
    type Find = fn(&mut Stage);
    let cases: [(&str, &str, Find); 6] = [
        ("idle in the stream", "streaming", |stage| stage.catch_up()),
        ("with a batch in the sink", "streaming", |stage| {
            lock(&stage.target).acts.extend([Act::Take, Act::Take, Act::Slow(secs(20))]);
            stage.until("the sink is at work", secs(20), |stage| stage.is_at_work_after(2));
        }),
        ("with half a streamed transaction in the sink", "streaming", |stage| {
            lock(&stage.target).acts.extend([Act::Take, Act::Take, Act::Sips(ms(200))]);
            stage.until("it is in the middle", secs(20), |stage| {
                let target = lock(&stage.target);
                target.streamed == 1 && target.applying == 1
            });
        }),
        ("with a dial in flight", "dialling", |stage| {
            lock(&stage.wire).cuts.push_back(Cut::BlackHole);
            stage.until("it dials", secs(5), |stage| stage.outside.state() == "dialling");
            stage.pass(secs(1));
        }),
        ("in backoff", "backoff", |stage| {
            stage.sim.crash(HOST);
            stage.pass(secs(5));
            stage.until("it waits", secs(60), |stage| stage.outside.state() == "backoff");
        }),
        ("with the network broken", "streaming", |stage| {
            stage.catch_up();
            stage.sim.partition(HOST, US);
            stage.origin.commit(Shape::Big);
            stage.pass(secs(1));
        }),
    ];
    for (case, state, find) in cases {
        let mut stage = Stage::new(62);
        stage.origin.commit_all(&[Shape::Small, Shape::Big, Shape::Mixed]);
        let settings = stage.settings();
        stage.start(settings);
        find(&mut stage);
        assert_eq!(stage.outside.state(), state, "{case}");
        stage.outside.handle().drain();
        stage.until(case, secs(90), |stage| stage.outside.end().is_some());
        let target = lock(&stage.target);
        let stored = target.position.as_ref().map_or(0, |position| position.gtid_set().count());
        assert_eq!(stage.outside.end(), Some(Ok(stored)), "{case}");
        assert_eq!((stage.outside.state(), target.applying), ("stopped", 0), "{case}");
        drop(target);

        // And the next run goes on from there.
        stage.sim.repair(HOST, US);
        stage.sim.bounce(HOST);
        stage.sim.bounce(US);
        stage.catch_up();
    }
}

/// What is complete is delivered first.
#[test]
fn a_drain_delivers_what_it_has_begun() {
    let mut stage = Stage::new(63);
    stage.origin.commit_all(&[Shape::Small, Shape::Small, Shape::Mixed]);
    lock(&stage.target).acts.extend([Act::Take, Act::Slow(secs(5))]);
    let settings = stage.settings();
    stage.start(settings);
    stage.until("the sink is at work", secs(20), |stage| stage.is_at_work_after(1));
    stage.pass(secs(1));
    stage.outside.handle().drain();
    stage.finish();
}

/// A pause and a drain at any moment of a run, each in many runs.
#[test]
fn commands_at_any_moment_lose_and_repeat_nothing() {
    let mut drained = 0;
    for at in 0..60 {
        let mut stage = Stage::new(64);
        stage.origin.commit_all(&[Shape::Small, Shape::Big, Shape::Mixed, Shape::Ddl]);
        lock(&stage.target).acts.extend([Act::Take, Act::AnswerLost, Act::Sips(ms(9))]);
        let settings = stage.settings();
        stage.start(settings);
        stage.pass(ms(at * 10));
        let handle = stage.outside.handle();
        handle.pause();
        stage.pass(ms(at * 7 % 50));
        handle.resume();
        stage.pass(ms(at * 3 % 40));
        handle.drain();
        stage.until("it has stopped", secs(60), |stage| stage.outside.end().is_some());
        assert!(stage.outside.end().is_some_and(|end| end.is_ok()), "{:?}", stage.outside.end());
        drained += u64::from(!lock(&stage.target).is_complete());
        stage.sim.bounce(US);
        stage.catch_up();
    }
    assert!(drained > 10, "only {drained} were ended before everything was there");
}
