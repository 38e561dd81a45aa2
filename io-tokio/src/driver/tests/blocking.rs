//! Sinks on a thread of their own, in real time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use capstan_core::{
    deliver::{Ack, BlockingBatch, BlockingSink, BlockingUnit, FailureClass, Position, SinkError},
    halt::Code,
};

use super::{
    super::{Threaded, Worker, drive},
    Target, target,
    world::{Act, Run, World},
    written,
};
use crate::status::Handle;

/// [`super::world::Memory`] on a thread. `Hang` waits until the test lets it go on.
struct Blocking {
    target: Arc<Mutex<Target>>,
    acts: VecDeque<Act>,
    gate: mpsc::Receiver<()>,
    ended: Arc<Mutex<bool>>,
}

impl BlockingSink for Blocking {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.target.lock().unwrap().position.clone())
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let act = self.acts.pop_front().unwrap_or(Act::Take);
        assert_ne!(act, Act::Panic, "a sink of the tests panics");
        let mut seen = Vec::new();
        while let Some(unit) = batch.next()? {
            let BlockingUnit::Transaction(mut transaction) = unit else { continue };
            let number = transaction.gtid().unwrap().gno();
            let mut changes = 0;
            while transaction.next()?.is_some() {
                changes += 1;
                if act == Act::HalfThenTransient {
                    return Err(SinkError::new(FailureClass::Transient, "test", None));
                }
            }
            seen.push((number, changes));
        }
        let expected = batch.expected().clone();
        if act == Act::Hang {
            let _ = self.gate.recv();
        }
        let ack = batch.finish()?;
        let mut target = self.target.lock().unwrap();
        expected.check(target.position.as_ref())?;
        target.written.extend(seen);
        target.position = Some(ack.position().clone());
        if act == Act::CommitThenUnknown {
            return Err(SinkError::new(FailureClass::Unknown, "test", None));
        }
        Ok(ack)
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        *self.ended.lock().unwrap() = true;
    }
}

type Parts = (Blocking, Arc<Mutex<Target>>, mpsc::Sender<()>, Arc<Mutex<bool>>);

fn sink(acts: impl IntoIterator<Item = Act>) -> Parts {
    let (target, ended) = (target(), Arc::<Mutex<bool>>::default());
    let (open, gate) = mpsc::channel();
    let sink =
        Blocking { target: target.clone(), acts: acts.into_iter().collect(), gate, ended: ended.clone() };
    (sink, target, open, ended)
}

fn world() -> World {
    let world = World::new();
    world.commit(1, 2, 100);
    world.commit(2, 300, 1000);
    world.commit(3, 1, 100);
    world
}

const WANT: [(u64, u64); 3] = [(1, 2), (2, 300), (3, 1)];

async fn run(run: Run, world: &World, sink: Blocking) -> Result<crate::Stopped, crate::Halt> {
    let (handle, commands) = Handle::new();
    let worker = Worker::start("test", sink).unwrap();
    drive(run.setup(world, handle, commands), Threaded(worker), None).await
}

#[tokio::test]
async fn it_takes_everything_once_whatever_it_does() {
    for act in [Act::Take, Act::HalfThenTransient, Act::CommitThenUnknown] {
        for at in 0..4 {
            let world = world();
            world.cut_links_after([20_000]);
            let (sink, target, _open, ended) = sink(std::iter::repeat_n(Act::Take, at).chain([act]));
            run(Run::until(3), &world, sink).await.unwrap();
            assert_eq!(written(&target), WANT, "{act:?} with batch {at}");
            assert!(
                *ended.lock().unwrap(),
                "the sink is gone, and its locks with it, before the run returns"
            );
        }
    }
}

#[tokio::test]
async fn a_panic_on_its_thread_halts() {
    let (sink, target, _open, _) = sink([Act::Take, Act::Panic]);
    assert_eq!(run(Run::until(3), &world(), sink).await.unwrap_err().code, Code::SinkFailed);
    assert_eq!(written(&target), []);
}

/// Its thread cannot be killed: what it does after its batch was given up must not count twice.
#[tokio::test]
async fn a_commit_that_lands_after_its_batch_was_given_up_lands_once() {
    for at in 1..4 {
        let world = world();
        let mut settings = Run::until(3);
        settings.config.limits.acknowledgement = Duration::from_millis(100);
        let (sink, target, open, _) = sink(std::iter::repeat_n(Act::Take, at).chain([Act::Hang]));
        let late = async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let _ = open.send(());
        };
        let (end, ()) = tokio::join!(run(settings, &world, sink), late);
        end.unwrap();
        assert_eq!(written(&target), WANT, "batch {at}");
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_its_thread() {
    let world = world();
    world.cut_links_after([30_000]);
    let (sink, target, open, ended) = sink([Act::Take, Act::Hang]);
    let running = run(Run::until(3), &world, sink);
    assert!(tokio::time::timeout(Duration::from_millis(300), running).await.is_err());
    let _ = open.send(());
    for _ in 0..1000 {
        if *ended.lock().unwrap() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(*ended.lock().unwrap());
    // The batch it was at when the run was dropped may have been committed: the position says so.
    let (mut sink, again, ..) = self::sink([]);
    sink.target = target.clone();
    drop(again);
    run(Run::until(3).stored(), &world, sink).await.unwrap();
    assert_eq!(written(&target), WANT);
}
