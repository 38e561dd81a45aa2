//! The loop against simulated servers, in virtual time.

mod blocking;
mod link;
mod links;
mod world;

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use capstan_core::{
    deliver::{Expected, FailureClass, Position, SinkError},
    gtid::GtidSet,
    halt::Code,
};
use capstan_fake_source::group::End;

use self::world::{Act, Memory, Random, Run, Target, World, gtid};
use super::{Driver, Store};
use crate::{checkpoint::CheckpointStore, status::Handle};

fn target() -> Arc<Mutex<Target>> {
    Arc::default()
}

fn written(target: &Arc<Mutex<Target>>) -> Vec<(u64, u64)> {
    target.lock().unwrap().written.clone()
}

/// A world with transactions of these numbers of rows, of 100 bytes each.
fn world(rows: &[u64]) -> World {
    let world = World::new();
    for (n, rows) in rows.iter().enumerate() {
        world.commit(n as u64 + 1, *rows, 100);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn every_transaction_arrives_once_in_order_and_the_run_ends_at_its_goal() {
    let world = world(&[1, 3, 0, 2, 1]);
    let target = target();
    let stopped = Run::until(5).run(&world, Memory::new(&target, [])).await.unwrap();
    assert_eq!(written(&target), [(1, 1), (2, 3), (4, 2), (5, 1)], "an empty one is only passed");
    let position = stopped.position.unwrap();
    assert_eq!(position.gtid_set().count(), 5);
    assert_eq!(target.lock().unwrap().position.as_ref(), Some(&position));
}

#[tokio::test(start_paused = true)]
async fn a_transaction_larger_than_the_budget_is_streamed_through_it() {
    let world = World::new();
    world.commit(1, 1, 10);
    // 1 MB, four times the budget.
    world.commit(2, 500, 2000);
    world.commit(3, 1, 10);
    let target = target();
    let handle = Handle::new();
    let watch = handle.0.clone();
    Run::until(3).run_with(&world, Memory::new(&target, []), None, handle).await.unwrap();
    assert_eq!(written(&target), [(1, 1), (2, 500), (3, 1)]);
    let status = watch.status();
    assert_eq!((status.state, status.transactions, status.batches), ("stopped", 3, 4));
    assert_eq!(status.rows, 502);
    assert_eq!(status.retained_bytes, 0);
    assert_eq!((status.behind_executed, status.ahead_of_purged), (Some(0), Some(3)));
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_cut_anywhere_loses_and_repeats_nothing() {
    let rows = [1, 2, 1, 3];
    let want = [(1, 1), (2, 2), (3, 1), (4, 3), (5, 200)];
    for cut in (0..6000).step_by(67) {
        let world = world(&rows);
        world.commit(5, 200, 1000);
        world.pieces_of(113);
        world.cut_links_after([cut, cut + 61, 100_000 + cut]);
        let target = target();
        Run::until(5).run(&world, Memory::new(&target, [])).await.unwrap();
        assert_eq!(written(&target), want, "cut at {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_a_sink_does_with_a_batch_it_takes_effect_once() {
    for act in [
        Act::Transient,
        Act::HalfThenTransient,
        Act::CommitThenUnknown,
        Act::UnknownWithoutCommit,
        Act::Hang,
        Act::CommitThenHang,
        Act::Slow(50_000),
    ] {
        for at in 0..4 {
            // The claim, a small transaction, a streamed one, a small one.
            let world = World::new();
            world.commit(1, 2, 100);
            world.commit(2, 300, 1000);
            world.commit(3, 1, 100);
            let target = target();
            let acts = std::iter::repeat_n(Act::Take, at).chain([act]);
            Run::until(3).run(&world, Memory::new(&target, acts)).await.unwrap();
            assert_eq!(written(&target), [(1, 2), (2, 300), (3, 1)], "{act:?} with batch {at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_sink_itself_halts() {
    for (acts, code) in [
        (vec![Act::Permanent], Code::SinkFailed),
        (vec![Act::Take, Act::Permanent], Code::SinkFailed),
        (vec![Act::Panic], Code::SinkFailed),
        (vec![Act::Take, Act::Panic], Code::SinkFailed),
        // The acknowledgement of an earlier batch: the one it was for has taken effect all the same.
        (vec![Act::OldAck, Act::OldAck], Code::SinkFailed),
    ] {
        let world = world(&[1, 1]);
        let target = target();
        let halt = Run::until(2).run(&world, Memory::new(&target, acts.clone())).await.unwrap_err();
        assert_eq!(halt.code, code, "{acts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_takes_a_streamed_transaction_back_leaves_nothing_of_it() {
    let world = World::new();
    world.commit(1, 1, 100);
    world.commit_ending(2, 300, 1000, &End::Rollback);
    world.commit(3, 1, 100);
    let target = target();
    Run::until(3).run(&world, Memory::new(&target, [])).await.unwrap();
    assert_eq!(written(&target), [(1, 1), (3, 1)]);
    let position = target.lock().unwrap().position.clone().unwrap();
    assert!(position.gtid_set().contains(&gtid(2)), "its GTID is processed all the same");
}

#[tokio::test(start_paused = true)]
async fn another_owner_is_noticed_and_nothing_more_is_written() {
    let world = world(&[1, 1]);
    let target = target();
    let mut run = Run::until(0);
    run.config.until = None;
    let handle = Handle::new();
    let watch = handle.0.clone();
    let taking = run.run_with(&world, Memory::new(&target, []), None, handle);
    let mut taking = pin!(taking);
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut taking).await.is_err(), "it goes on");
    {
        let mut target = target.lock().unwrap();
        let taken = target.position.clone().unwrap().claimed(99);
        target.position = Some(taken);
    }
    world.commit(3, 1, 100);
    assert_eq!(taking.await.unwrap_err().code, Code::Fenced);
    assert_eq!((watch.status().state, watch.status().trouble), ("halted", Some("fenced")));
    assert_eq!(written(&target), [(1, 1), (2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_anywhere_and_begun_again_loses_and_repeats_nothing() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let world = World::new();
        let mut want = Vec::new();
        for n in 1..=12 {
            let (rows, bytes) =
                if random.one_in(4) { (70 + random.below(60), 1000) } else { (1 + random.below(3), 50) };
            world.commit(n, rows, bytes);
            want.push((n, rows));
        }
        world.pieces_of(100 + random.below(3000) as usize);
        let target = target();
        let mut runs = 0;
        loop {
            runs += 1;
            assert!(runs < 500, "seed {seed}: no end");
            world.cut_links_after((0..random.below(3)).map(|_| random.below(40_000)));
            let acts: Vec<Act> = (0..random.below(8))
                .map(|_| match random.below(8) {
                    0 => Act::Transient,
                    1 => Act::HalfThenTransient,
                    2 => Act::CommitThenUnknown,
                    3 => Act::UnknownWithoutCommit,
                    4 => Act::Slow(random.below(100_000)),
                    5 => Act::CommitThenHang,
                    _ => Act::Take,
                })
                .collect();
            let first = target.lock().unwrap().position.is_none();
            let mut run = Run::until(12);
            run.seed = runs as u8;
            run.batch.max_transactions = 1 + random.below(4) as usize;
            let run = if first { run } else { run.stored() };
            let sink = Memory::new(&target, acts);
            let mut running = pin!(run.run(&world, sink));
            // Dropped after so many polls, at whatever await it stands then.
            let polls = random.below(100 * runs);
            let mut polled = 0;
            let end = std::future::poll_fn(|cx| {
                polled += 1;
                if polled > polls {
                    std::task::Poll::Ready(None)
                } else {
                    running.as_mut().poll(cx).map(Some)
                }
            })
            .await;
            match end {
                None => {}
                Some(Ok(_)) => break,
                Some(Err(halt)) => panic!("seed {seed}: {halt}"),
            }
        }
        assert_eq!(written(&target), want, "seed {seed}, {runs} runs");
    }
}

#[derive(Clone)]
struct Memo {
    stored: Arc<Mutex<Option<Position>>>,
    fails: Arc<Mutex<Vec<(u32, FailureClass)>>>,
    calls: u32,
}

impl CheckpointStore for Memo {
    async fn load(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.stored.lock().unwrap().clone())
    }

    async fn store(&mut self, expected: &Expected, position: &Position) -> Result<(), SinkError> {
        self.calls += 1;
        let fails = self.fails.lock().unwrap().iter().find(|(call, _)| *call == self.calls).copied();
        if let Some((_, class)) = fails {
            return Err(SinkError::new(class, "store", None));
        }
        let mut stored = self.stored.lock().unwrap();
        expected.check(stored.as_ref())?;
        *stored = Some(position.clone());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_store_the_sink_is_never_asked_and_only_the_batch_in_flight_comes_again() {
    let run = |fails: &[(u32, FailureClass)]| {
        let memo = Memo { stored: Arc::default(), fails: Arc::new(Mutex::new(fails.to_vec())), calls: 0 };
        let target = target();
        let ours = (memo.clone(), target.clone());
        async move {
            let world = world(&[1, 2, 3]);
            // The position of this sink is of no use in this mode: it must not be compared with.
            let sink = Blind(target.clone());
            let store = Some(Store::Polled(Box::new(memo)));
            let end = Run::until(3).run_with(&world, sink, store, Handle::new()).await;
            (end.map(|_| ()).map_err(|halt| halt.code), ours)
        }
    };
    let (end, (memo, target)) = run(&[]).await;
    assert_eq!(end, Ok(()));
    assert_eq!(written(&target), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(memo.stored.lock().unwrap().as_ref().unwrap().gtid_set().count(), 3);
    assert_eq!(target.lock().unwrap().asked, 0);

    let (end, (_, target)) = run(&[(3, FailureClass::Transient), (4, FailureClass::Unknown)]).await;
    assert_eq!(end, Ok(()));
    assert_eq!(written(&target), [(1, 1), (2, 2), (2, 2), (2, 2), (3, 3)]);

    let (end, (_, target)) = run(&[(3, FailureClass::Permanent)]).await;
    assert_eq!(end, Err(Code::PositionWriteFailed));
    assert_eq!(written(&target), [(1, 1), (2, 2)]);
}

/// Takes everything and knows no position.
struct Blind(Arc<Mutex<Target>>);

impl crate::Sink for Blind {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.0.lock().unwrap().asked += 1;
        Err(SinkError::halt(Code::SinkFailed, "asked"))
    }

    async fn apply(&mut self, mut batch: crate::Batch<'_>) -> Result<crate::Ack, SinkError> {
        let mut seen = Vec::new();
        while let Some(unit) = batch.next().await? {
            let crate::Unit::Transaction(mut transaction) = unit else { continue };
            let number = transaction.gtid().unwrap().gno();
            let mut changes = 0;
            while transaction.next().await?.is_some() {
                changes += 1;
            }
            seen.push((number, changes));
        }
        self.0.lock().unwrap().written.extend(seen);
        Ok(batch.finish()?)
    }
}

#[tokio::test(start_paused = true)]
async fn a_handle_pauses_resumes_and_drains() {
    let world = world(&[1]);
    let target = target();
    let mut run = Run::until(0);
    run.config.until = None;
    let (handle, commands) = Handle::new();
    let steer = async {
        let second = || tokio::time::sleep(Duration::from_secs(1));
        second().await;
        assert_eq!(handle.status().state, "streaming");
        handle.pause();
        second().await;
        assert_eq!(handle.status().state, "paused");
        world.commit(2, 1, 100);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(written(&target), [(1, 1)], "paused for longer than any deadline");
        handle.resume();
        second().await;
        assert_eq!(written(&target), [(1, 1), (2, 1)]);
        handle.drain();
    };
    let running = run.run_with(&world, Memory::new(&target, []), None, (handle.clone(), commands));
    let (end, ()) = tokio::join!(running, steer);
    assert_eq!(
        end.unwrap().position.unwrap().gtid_set(),
        &[gtid(1), gtid(2)].into_iter().collect::<GtidSet>()
    );
    assert_eq!(handle.status().state, "stopped");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_dialled_until_patience_ends() {
    let world = world(&[1]);
    world.server().refuses = Some((1040, "Too many connections".to_owned()));
    let halt = Run::until(1).run(&world, Memory::new(&target(), [])).await.unwrap_err();
    assert_eq!((halt.code, halt.server_error), (Code::SourceUnreachable, Some(1040)));
}

/// Else the next streamed transaction would be credited with what it still holds.
#[tokio::test(start_paused = true)]
async fn what_a_settled_batch_released_is_settled_with_it() {
    let world = World::new();
    let (handle, commands) = Handle::new();
    let mut driver = Driver::new(Run::until(1).setup(&world, handle, commands));
    driver.freed.send(7).unwrap();
    driver.settle(None, None, true, driver.now);
    assert!(driver.released.try_recv().is_err());
}

#[test]
fn a_run_can_be_spawned() {
    fn is_send<T: Send>(_: T) {}
    let world_of_pipes = || -> World { panic!("never run") };
    if false {
        let world = world_of_pipes();
        is_send(Run::until(1).run(&world, Memory::new(&target(), [])));
    }
}
