//! Links that end, stall, tear and go silent.

use std::time::Duration;

use sim::workload::Shape;

use crate::{
    driver::{HOST, lock, ms, secs, source::Fate, wire::Cut},
    stage::{Stage, US},
};

/// A history with a streamed transaction in its middle.
fn history(stage: &Stage) {
    stage.origin.commit_all(&[
        Shape::Small,
        Shape::Mixed,
        Shape::Big,
        Shape::Ddl,
        Shape::Compressed,
        Shape::Small,
    ]);
}

/// Bytes a whole session of [`history`] takes.
fn whole_session(seed: u64) -> u64 {
    let mut stage = Stage::new(seed);
    history(&stage);
    stage.start_until_all();
    stage.finish();
    stage.origin.bytes_out()
}

/// An end that was not heard would be noticed by a deadline: 10 s for a step of the handshake, 30 s for silence.
fn assert_noticed_at_once(stage: &Stage) {
    assert!(stage.now() < secs(9), "noticed by a deadline: {:?}", stage.now());
}

/// Every place a link can end at, in the greeting, the login, the questions, the dump, a streamed transaction.
fn cut_everywhere(seed: u64, cut: impl Fn(&Stage, u64), happened: impl Fn(&Stage) -> u64) {
    let whole = whole_session(seed);
    assert!(whole > 90_000, "{whole}");
    let mut cuts: Vec<u64> = (0..2500).step_by(83).collect();
    cuts.extend((2500..whole).step_by(4801));
    let mut reconnects = 0;
    for at in cuts {
        let mut stage = Stage::new(seed);
        history(&stage);
        cut(&stage, at);
        cut(&stage, at + 41);
        stage.start_until_all();
        stage.finish();
        assert!(happened(&stage) >= 1, "the cut at {at} has not happened");
        assert!(lock(&stage.wire).dials >= 2, "cut at {at}");
        assert_noticed_at_once(&stage);
        reconnects += stage.status().reconnects;
    }
    assert!(reconnects > 10, "{reconnects} links were lost after their stream had begun");
}

#[test]
fn a_link_that_ends_anywhere_is_dialled_again_and_nothing_comes_twice() {
    cut_everywhere(
        11,
        |stage, at| stage.origin.fates([Fate::Eof(at)]),
        |stage| {
            let wire = lock(&stage.wire);
            wire.eofs + wire.resets
        },
    );
}

#[test]
fn a_link_that_is_reset_anywhere_is_dialled_again_and_nothing_comes_twice() {
    cut_everywhere(
        12,
        |stage, at| lock(&stage.wire).cuts.push_back(Cut::Reset(at)),
        |stage| lock(&stage.wire).resets,
    );
}

/// Turmoil sends RST where a socket is closed with something unread in it.
#[test]
fn a_server_that_closes_without_reading_resets_the_link() {
    let mut stage = Stage::new(13);
    history(&stage);
    stage.origin.fates([Fate::UnreadReset, Fate::UnreadReset]);
    stage.start_until_all();
    stage.finish();
    assert_eq!(lock(&stage.wire).resets, 2);
    assert_noticed_at_once(&stage);
}

#[test]
fn a_link_that_cannot_be_written_any_more_is_left_and_dialled_again() {
    for after in [0, 50, 200, 700] {
        let mut stage = Stage::new(14);
        history(&stage);
        lock(&stage.wire).cuts.push_back(Cut::DeafAfter(after));
        stage.start_until_all();
        stage.finish();
        let wire = lock(&stage.wire);
        assert_eq!((wire.deaf, wire.dials), (1, 2), "deaf after {after}");
        assert_noticed_at_once(&stage);
    }
}

/// The peer is gone and nothing says so: the reads stay pending, heartbeats stay away.
#[test]
fn a_half_open_link_is_left_when_it_was_silent_for_too_long() {
    let mut stage = Stage::new(15);
    history(&stage);
    let settings = stage.settings();
    stage.start(settings);
    stage.catch_up();
    stage.pass(secs(300));
    assert_eq!((lock(&stage.wire).dials, stage.status().reconnects), (1, 0), "heartbeats keep an idle link");

    // Nothing is retransmitted in turmoil: what was on the way when the network broke never arrives.
    stage.sim.partition(HOST, US);
    stage.origin.commit(Shape::Small);
    let noticed =
        stage.until("the silence is noticed", secs(120), |stage| stage.status().state != "streaming");
    assert!((secs(19)..secs(31)).contains(&noticed), "{noticed:?}");
    stage.pass(secs(60));
    assert!(lock(&stage.wire).refused > 2, "dials into the partition are refused");
    stage.sim.repair(HOST, US);
    stage.catch_up();
    assert_eq!(stage.status().reconnects, 1);
}

/// As in a firewall that forgot the connection: one direction only, and in the middle of the stream.
#[test]
fn silence_in_one_direction_or_anywhere_in_the_stream_is_silence() {
    let whole = whole_session(16);
    for at in [0, 70, 500, 1500, 30_000, whole - 40] {
        let mut stage = Stage::new(16);
        history(&stage);
        lock(&stage.wire).cuts.push_back(Cut::Silence(at));
        stage.start_until_all();
        let took = stage.until("another dial", secs(120), |stage| lock(&stage.wire).dials == 2);
        assert!(took >= secs(9), "a silence at {at} was taken for an end after {took:?}");
        stage.finish();
        assert_eq!(lock(&stage.wire).silences, 1, "at {at}");
    }
    let mut stage = Stage::new(17);
    let settings = stage.settings();
    stage.start(settings);
    history(&stage);
    stage.catch_up();
    stage.sim.partition_oneway(HOST, US);
    stage.origin.commit(Shape::Mixed);
    let noticed =
        stage.until("the silence is noticed", secs(60), |stage| stage.status().state != "streaming");
    assert!(noticed > secs(15), "{noticed:?}");
    stage.sim.repair_oneway(HOST, US);
    stage.catch_up();
    assert_eq!(stage.status().reconnects, 1);
}

/// A stall shorter than patience is nobody's business: everything arrives late and in order.
#[test]
fn a_link_that_stalls_and_goes_on_is_kept() {
    let mut stage = Stage::new(18);
    let settings = stage.settings();
    stage.start(settings);
    history(&stage);
    stage.catch_up();
    for stall in [1, 5, 12, 17] {
        stage.sim.hold(HOST, US);
        history(&stage);
        let before = lock(&stage.target).written.len();
        stage.pass(secs(stall));
        assert_eq!(lock(&stage.target).written.len(), before, "nothing comes through");
        stage.sim.release(HOST, US);
        let late = stage.until("it is made up for", secs(20), |stage| lock(&stage.target).is_complete());
        assert!(late > Duration::ZERO);
        stage.pass(secs(15));
    }
    lock(&stage.target).assert_complete();
    assert_eq!((lock(&stage.wire).dials, stage.status().reconnects), (1, 0));

    // Longer than patience: it is left, and what arrives on it at last is nobody's.
    stage.sim.hold(HOST, US);
    stage.origin.commit(Shape::Big);
    stage.pass(secs(45));
    stage.sim.release(HOST, US);
    stage.catch_up();
    assert!(stage.status().reconnects == 1 && lock(&stage.wire).dials >= 2);
}

/// One byte at a time, in both directions, with pauses between the writes.
#[test]
fn torn_reads_and_writes_change_nothing() {
    let mut stage = Stage::new(19);
    history(&stage);
    lock(&stage.wire).piece = 1;
    stage.start_until_all();
    stage.finish();
    let wire = lock(&stage.wire);
    assert!(wire.dials == 1 && wire.torn == wire.bytes_in && wire.torn > 90_000, "{wire:?}");
    drop(wire);

    for piece in [2, 3, 5, 1000] {
        let mut stage = Stage::new(20 + piece as u64);
        history(&stage);
        lock(&stage.wire).piece = piece;
        stage.origin.pieces_of(piece * 7 % 40 + 1);
        stage.start_until_all();
        stage.finish();
        assert_eq!(lock(&stage.wire).dials, 1);
    }
}

/// An idle source over a link that flaps each minute, for an hour: no halt, and nothing is missed.
#[test]
fn a_link_that_flaps_for_hours_halts_nothing() {
    let mut stage = Stage::new(31);
    let settings = stage.settings();
    stage.start(settings);
    for minute in 0..60 {
        stage.pass(secs(58));
        stage.sim.partition(HOST, US);
        stage.pass(ms(1500 + minute * 20));
        stage.sim.repair(HOST, US);
        if minute % 10 == 0 {
            stage.origin.commit(Shape::Small);
        }
    }
    stage.catch_up();
    assert_eq!(stage.outside.end(), None);
    assert!(stage.status().reconnects > 10, "{}", stage.status().reconnects);
}
