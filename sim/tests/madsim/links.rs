//! One thing at a time, under random interleaving.

use std::collections::BTreeSet;

use sim::workload::Shape;

use crate::{
    driver::{
        Settings, lock, ms, polled, secs,
        source::Fate,
        target::{Act, Memory, Shared, target},
        wire::Cut,
    },
    stage::{Network, seeds},
};

const HISTORY: [Shape; 6] =
    [Shape::Small, Shape::Mixed, Shape::Big, Shape::Ddl, Shape::Compressed, Shape::Small];

#[test]
fn a_session_brings_every_shape_of_transaction_once_and_in_order() {
    seeds(10, |mut stage| async move {
        stage.origin.commit_one_of_each();
        stage.origin.rotate();
        stage.origin.commit_one_of_each();
        stage.start_until_all();
        stage.finish().await;
        assert!(lock(&stage.target).streamed > 0);
        assert_eq!((lock(&stage.wire).dials, stage.origin.accepted()), (1, 1));
    });
}

#[test]
fn dials_that_are_refused_or_never_answered_are_tried_again() {
    seeds(10, |mut stage| async move {
        stage.origin.commit_all(&HISTORY);
        stage.origin.listen(false);
        lock(&stage.wire).cuts.extend([Cut::Never, Cut::BlackHole, Cut::Never]);
        stage.start_until_all();
        stage.pass(secs(25)).await;
        assert_eq!(stage.status().trouble, Some("source_unreachable"));
        stage.origin.listen(true);
        stage.finish().await;
        let wire = lock(&stage.wire);
        assert!(wire.refused > 2 && wire.dials_dropped == 1, "{wire:?}");
    });
}

#[test]
fn links_that_end_or_are_reset_anywhere_are_dialled_again() {
    let reconnects = seeds(36, |mut stage| async move {
        stage.origin.commit_all(&HISTORY);
        let at = stage.seed * 2777;
        stage.origin.fates([Fate::Eof(at), Fate::Lasts, Fate::Eof(stage.seed * 41)]);
        lock(&stage.wire).cuts.extend([Cut::Never, Cut::Reset(at)]);
        lock(&stage.wire).piece = [0, 30, 1000][stage.seed as usize % 3];
        stage.start_until_all();
        stage.finish().await;
        if at < 90_000 {
            let wire = lock(&stage.wire);
            assert!(wire.eofs > 0 && wire.resets > 0 && wire.dials >= 3, "{wire:?}");
        }
        stage.status().reconnects
    });
    assert!(reconnects.iter().sum::<u64>() > 20 || !crate::stage::is_whole());
}

/// Nothing comes through and nothing says so. What is late arrives on a link that is nobody's any more.
#[test]
fn a_link_that_goes_silent_is_left_and_one_that_stalls_is_kept() {
    seeds(10, |mut stage| async move {
        let settings = stage.settings();
        stage.start(settings);
        stage.origin.commit_all(&HISTORY);
        stage.catch_up().await;
        stage.clog(true, true);
        stage.origin.commit_all(&HISTORY);
        stage.pass(secs(8)).await;
        stage.unclog();
        stage.catch_up().await;
        assert_eq!((lock(&stage.wire).dials, stage.status().reconnects), (1, 0));
        stage.pass(secs(15)).await;

        stage.clog(stage.seed % 2 == 0 || stage.seed % 3 == 0, stage.seed % 3 != 0);
        if stage.seed % 2 == 0 || stage.seed % 3 == 0 {
            let noticed =
                stage.until("the silence is noticed", secs(60), |s| s.status().state != "streaming").await;
            assert!(noticed > secs(15), "{noticed:?}");
            stage.pass(secs(20)).await;
            assert!(lock(&stage.wire).dials > 1);
        }
        stage.unclog();
        stage.origin.commit_all(&HISTORY);
        stage.catch_up().await;
    });
}

#[test]
fn whatever_a_sink_does_with_a_batch_it_takes_effect_once() {
    seeds(60, |mut stage| async move {
        let acts = [
            Act::Slow(secs(20)),
            Act::Sips(ms(300)),
            Act::Transient,
            Act::HalfThenTransient,
            Act::AnswerLost,
            Act::NothingAndLost,
            Act::LandsLate(ms(50)),
            Act::LandsLate(secs(30)),
            Act::Hang,
            Act::CommitThenHang,
        ];
        let act = acts[stage.seed as usize % acts.len()];
        let at = stage.seed as usize / acts.len();
        stage.origin.commit_all(&HISTORY);
        lock(&stage.target).acts.extend(std::iter::repeat_n(Act::Take, at).chain([act, act]));
        stage.start_until_all();
        stage.finish().await;
        assert!(lock(&stage.target).acted(act) > 0, "{act:?} with batch {at} has not happened");
    });
}

/// What is paused is not read, for longer than any deadline.
#[test]
fn a_paused_replica_reads_nothing_and_goes_on() {
    seeds(10, |mut stage| async move {
        let settings = stage.settings();
        stage.start(settings);
        stage.origin.commit_all(&HISTORY);
        stage.catch_up().await;
        stage.outside.handle().pause();
        stage.pass(secs(1)).await;
        let read = lock(&stage.wire).bytes_in;
        stage.origin.commit_all(&HISTORY);
        stage.pass(secs(200)).await;
        assert_eq!((lock(&stage.wire).bytes_in, stage.outside.state()), (read, "paused"));
        stage.outside.handle().resume();
        stage.catch_up().await;
        assert_eq!(lock(&stage.wire).dials, 1);
        stage.outside.handle().drain();
        stage.finish().await;
    });
}

async fn run(settings: &Settings, net: &Network, target: &Shared, polls: u64) -> (bool, &'static str) {
    let replica = settings.build(target);
    let handle = replica.handle();
    let mut state = "";
    let end = {
        let mut running = Box::pin(replica.run_on(net, Memory::new(net.clone(), target)));
        let watched = std::future::poll_fn(|cx| {
            let polled = running.as_mut().poll(cx);
            state = handle.status().state;
            polled
        });
        polled(watched, polls).await
    };
    match end {
        None => (false, state),
        Some(Ok(_)) => (true, state),
        Some(Err(halt)) => panic!("dropped after {polls} polls: {halt}"),
    }
}

/// The caller's future is dropped after so many polls, again and again; another interleaving with each seed.
#[test]
fn a_future_dropped_at_any_await_and_begun_again_loses_and_repeats_nothing() {
    let states: BTreeSet<&'static str> = seeds(24, |stage| async move {
        stage.origin.commit_all(&HISTORY);
        {
            let mut wire = lock(&stage.wire);
            (wire.piece, wire.breathe) = (3000, true);
        }
        let (settings, net, seed) = (stage.settings().until_all_of(&stage.origin), stage.net(), stage.seed);
        let target = target(&stage.origin);
        lock(&target).acts.extend([Act::Take, Act::AnswerLost, Act::Take, Act::LandsLate(ms(20))]);
        let node = stage.node();
        let dropped = node.spawn(async move {
            let (mut states, mut polls) = (BTreeSet::new(), seed % 7);
            loop {
                let (ended, state) = run(&settings, &net, &target, polls).await;
                states.insert(state);
                assert_eq!(lock(&target).applying, 0);
                if ended {
                    lock(&target).assert_complete();
                    return states;
                }
                polls += 4 + seed % 5;
                assert!(polls < 5000, "no end");
            }
        });
        dropped.await.unwrap()
    })
    .into_iter()
    .flatten()
    .collect();
    for state in ["loading", "dialling", "authenticating", "checking", "streaming"] {
        assert!(states.contains(state), "never dropped while {state}: {states:?}");
    }
}
