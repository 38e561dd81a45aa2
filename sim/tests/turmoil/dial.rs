//! Dials: one that succeeds, names nobody knows, ports nobody listens at, dials nobody answers.

use crate::{
    driver::{HOST, lock, ms, secs, source::Fate, wire::Cut},
    stage::{Stage, US},
};

#[test]
fn a_session_brings_every_shape_of_transaction_once_and_in_order() {
    let mut stage = Stage::new(1);
    stage.origin.commit_one_of_each();
    stage.origin.rotate();
    stage.origin.commit_one_of_each();
    stage.start_until_all();
    stage.finish();
    let (wire, target) = (lock(&stage.wire), lock(&stage.target));
    assert_eq!((wire.dials, wire.connected, stage.origin.accepted()), (1, 1, 1));
    assert!(target.streamed > 0 && target.written.len() > 20);
    drop((wire, target));
    assert_eq!(stage.status().state, "stopped");
}

/// The source is not up yet: the host is, and nobody listens.
#[test]
fn a_refused_dial_is_tried_again_until_somebody_listens() {
    let mut stage = Stage::new(2);
    stage.origin.commit_one_of_each();
    stage.origin.listen(false);
    stage.start_until_all();
    stage.pass(secs(20));
    let refused = lock(&stage.wire).refused;
    assert!((3..60).contains(&refused), "{refused} dials in 20 s: backoff");
    assert_eq!(stage.status().trouble, Some("source_unreachable"));
    stage.origin.listen(true);
    stage.finish();
}

#[test]
fn a_refusal_that_never_ends_halts_when_patience_does() {
    let mut stage = Stage::new(3);
    stage.origin.listen(false);
    let settings = stage.settings();
    stage.start(settings);
    stage.finish_halted("source_unreachable");
    assert!(stage.now() >= secs(590), "{:?}", stage.now());
}

/// The network holds what is sent, then: no answer ever comes.
#[test]
fn a_dial_that_nobody_answers_is_given_up_at_its_deadline_and_tried_again() {
    let mut stage = Stage::new(4);
    stage.origin.commit_one_of_each();
    stage.start_until_all();
    stage.sim.hold(HOST, US);
    let given_up =
        stage.until("the first dial is given up", secs(60), |stage| lock(&stage.wire).dials_dropped == 1);
    assert!((secs(10)..secs(11)).contains(&given_up), "{given_up:?}");
    stage.until("the second, too", secs(60), |stage| lock(&stage.wire).dials_dropped == 2);
    assert_eq!(lock(&stage.wire).connected, 0);
    // What was held arrives now: the source answers dials that nobody waits for any more.
    stage.sim.release(HOST, US);
    stage.finish();
    assert_eq!(lock(&stage.wire).connected, 1);

    let mut stage = Stage::new(5);
    stage.origin.commit_one_of_each();
    lock(&stage.wire).cuts.extend([Cut::BlackHole; 3]);
    stage.start_until_all();
    stage.finish();
    let wire = lock(&stage.wire);
    assert_eq!((wire.dials_dropped, wire.dials), (3, 4));
}

/// A load balancer with nothing behind it takes the dial and says nothing.
#[test]
fn a_server_that_never_says_hello_is_left_at_its_deadline() {
    let mut stage = Stage::new(6);
    stage.origin.commit_one_of_each();
    stage.origin.fates([Fate::Mute]);
    stage.start_until_all();
    stage.until("the link is taken", secs(5), |stage| stage.origin.accepted() == 1);
    let left = stage.until("another dial", secs(60), |stage| lock(&stage.wire).dials == 2);
    assert!((secs(9)..secs(12)).contains(&left), "{left:?}");
    stage.finish();
}

#[test]
fn a_server_that_refuses_by_its_number_is_dialled_until_it_does_not() {
    let mut stage = Stage::new(7);
    stage.origin.commit_one_of_each();
    stage.origin.refuse(Some((1040, "Too many connections")));
    stage.start_until_all();
    stage.pass(secs(30));
    assert!(stage.origin.accepted() > 3, "{}", stage.origin.accepted());
    assert_eq!(lock(&stage.target).written.len(), 0);
    stage.origin.refuse(None);
    stage.finish();
    assert!(stage.now() > ms(30_000));
}
