//! The caller's future is dropped at every await it can stand at.

use std::collections::BTreeSet;

use sim::workload::Shape;

use crate::{
    driver::{
        Settings, lock, ms, polled,
        source::Origin,
        target::{Act, Memory, Shared, target},
        wire::Wire,
    },
    stage::{Network, Stage, US},
};

/// One run, dropped after so many polls; whether it had ended before.
async fn run(settings: &Settings, net: &Network, target: &Shared, polls: u64) -> (bool, &'static str) {
    let replica = settings.build(target);
    let handle = replica.handle();
    let mut state = "";
    let end = {
        let running = replica.run_on(net, Memory::new(net.clone(), target));
        let watched = async {
            let mut running = std::pin::pin!(running);
            std::future::poll_fn(|cx| {
                let polled = running.as_mut().poll(cx);
                state = handle.status().state;
                polled
            })
            .await
        };
        polled(watched, polls).await
    };
    match end {
        None => {
            assert!(polls == 0 || handle.status().state == "dropped");
            (false, state)
        }
        Some(Ok(_)) => (true, state),
        Some(Err(halt)) => panic!("dropped after {polls} polls: {halt}"),
    }
}

fn fresh(origin: &Origin, acts: &[Act]) -> Shared {
    let target = target(origin);
    lock(&target).acts.extend(acts);
    target
}

/// More awaits: small reads, with pauses between them.
fn disturb(stage: &Stage, piece: usize) {
    let mut wire = lock(&stage.wire);
    (wire.piece, wire.breathe) = (piece, true);
}

/// Dropped once after `k` polls, for every `k` a whole run has; then run to its end.
#[test]
fn a_future_dropped_at_any_await_and_begun_again_loses_and_repeats_nothing() {
    for (seed, acts) in [
        (71, vec![]),
        (72, vec![Act::Take, Act::AnswerLost, Act::HalfThenTransient, Act::Take, Act::LandsLate(ms(5))]),
    ] {
        let mut stage = Stage::new(seed);
        stage.origin.commit_all(&[Shape::Small, Shape::Big, Shape::Ddl, Shape::Mixed]);
        let settings = stage.settings().until_all_of(&stage.origin);
        disturb(&stage, 1500);
        let (net, origin) = (stage.net(), stage.origin.clone());
        stage.sim.client(US, async move {
            let (mut states, mut in_sink, mut after_commit) = (BTreeSet::new(), 0, 0);
            let mut whole = 0;
            for polls in 0.. {
                let target = fresh(&origin, &acts);
                let (ended, state) = run(&settings, &net, &target, polls).await;
                states.insert(state);
                {
                    let target = lock(&target);
                    in_sink += u64::from(target.begun > target.answered);
                    after_commit += u64::from(target.committed_unanswered());
                    assert_eq!(target.applying, 0, "the sink's future is gone with it");
                }
                if ended {
                    whole = polls;
                    break;
                }
                assert!(run(&settings, &net, &target, u64::MAX).await.0);
                lock(&target).assert_complete();
            }
            assert!(whole > 60, "{whole} polls");
            for state in ["loading", "dialling", "authenticating", "checking", "streaming"] {
                assert!(states.contains(state), "never dropped while {state}: {states:?}");
            }
            assert!(
                in_sink > 5 && after_commit > 2,
                "{in_sink} in the sink, {after_commit} after its commit"
            );
            Ok(())
        });
        stage.sim.run().unwrap();
    }
}

/// Dropped again and again, a little later each time, until one run gets through.
#[test]
fn a_future_dropped_again_and_again_gets_there() {
    for seed in 0..12 {
        let mut stage = Stage::new(80 + seed);
        stage.origin.commit_all(&[
            Shape::Small,
            Shape::Mixed,
            Shape::Big,
            Shape::Small,
            Shape::Ddl,
            Shape::Small,
        ]);
        let settings = stage.settings().until_all_of(&stage.origin);
        disturb(&stage, 1500);
        let (net, origin) = (stage.net(), stage.origin.clone());
        stage.sim.client(US, async move {
            let target = fresh(&origin, &[Act::Take, Act::AnswerLost, Act::Take, Act::LandsLate(ms(20))]);
            let (mut runs, mut polls) = (0, seed);
            while !run(&settings, &net, &target, polls).await.0 {
                runs += 1;
                polls += 5;
                assert!(runs < 1000, "no end");
            }
            assert!(runs > 5, "{runs} runs");
            lock(&target).assert_complete();
            Ok(())
        });
        stage.sim.run().unwrap();
    }
}

/// Waiting to dial again, and in a dial nobody answers: nothing is stored, nothing is left behind.
#[test]
fn a_future_dropped_in_backoff_or_in_a_dial_leaves_nothing() {
    let mut stage = Stage::new(95);
    stage.origin.commit_all(&[Shape::Small, Shape::Big]);
    stage.origin.refuse(Some((1040, "Too many connections")));
    let settings = stage.settings().until_all_of(&stage.origin);
    let (net, origin, wire) = (stage.net(), stage.origin.clone(), stage.wire.clone());
    stage.sim.client(US, async move {
        let target = fresh(&origin, &[]);
        let mut states = BTreeSet::new();
        for polls in 0..60 {
            if polls % 2 == 0 {
                lock(&wire).cuts.push_front(crate::driver::wire::Cut::BlackHole);
            }
            states.insert(run(&settings, &net, &target, polls).await.1);
            *lock(&wire) = Wire::default();
        }
        for state in ["dialling", "backoff"] {
            assert!(states.contains(state), "never dropped in {state}: {states:?}");
        }
        assert_eq!(lock(&target).commits, 0);
        origin.refuse(None);
        assert!(run(&settings, &net, &target, u64::MAX).await.0);
        lock(&target).assert_complete();
        Ok(())
    });
    stage.sim.run().unwrap();
}
