//! The sink as the loop sees it: async or on its own thread, with its own position or a store's.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context, Poll},
};

use capstan_core::deliver::{Ack, BatchState, BlockingSink, Expected, Position, Sink, SinkError};

use super::worker::{Panicked, Worker};
use crate::checkpoint::{BlockingCheckpointStore, ErasedStore};

/// What one piece of work of a target ends in.
pub(crate) type Outcome<T> = Result<Result<T, SinkError>, Panicked>;

/// A sink.
pub(crate) trait Target: Send {
    /// Whether a future of this target may be dropped before its end. Work on a thread cannot be taken
    /// back: its end is waited for, and what it says is not believed.
    const DROPPABLE: bool;

    fn position(&mut self) -> impl Future<Output = Outcome<Option<Position>>> + Send;

    /// Takes the batch out of `slot` for as long as it needs it, and puts it back.
    fn apply(&mut self, slot: &mut Option<BatchState>) -> impl Future<Output = Outcome<Ack>> + Send;

    /// Waits until nothing of it runs any more.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// A sink that is polled inside the loop.
pub(crate) struct Polled<S>(pub(crate) S);

impl<S: Sink> Target for Polled<S> {
    const DROPPABLE: bool = true;

    async fn position(&mut self) -> Outcome<Option<Position>> {
        caught(async { self.0.position().await }).await
    }

    async fn apply(&mut self, slot: &mut Option<BatchState>) -> Outcome<Ack> {
        let Some(state) = slot.as_mut() else { return Err(Panicked) };
        caught(async { self.0.apply(state.batch()).await }).await
    }

    async fn close(self) {}
}

/// A sink on a thread of its own.
pub(crate) struct Threaded<S>(pub(crate) Worker<S>);

impl<S: BlockingSink + 'static> Target for Threaded<S> {
    const DROPPABLE: bool = false;

    async fn position(&mut self) -> Outcome<Option<Position>> {
        self.0.call(S::position).await
    }

    async fn apply(&mut self, slot: &mut Option<BatchState>) -> Outcome<Ack> {
        let Some(mut state) = slot.take() else { return Err(Panicked) };
        let (state, result) = self
            .0
            .call(move |sink| {
                let result = sink.apply(state.blocking());
                (state, result)
            })
            .await?;
        *slot = Some(state);
        Ok(result)
    }

    async fn close(self) {
        self.0.close().await;
    }
}

/// Where a library-owned position is.
pub(crate) enum Store {
    Polled(Box<dyn ErasedStore>),
    Threaded(Worker<Box<dyn BlockingCheckpointStore>>),
}

impl Store {
    pub(crate) const fn droppable(&self) -> bool {
        matches!(self, Self::Polled(_))
    }

    pub(crate) async fn load(&mut self) -> Outcome<Option<Position>> {
        match self {
            Self::Polled(store) => caught(store.load()).await,
            Self::Threaded(worker) => worker.call(|store| store.load()).await,
        }
    }

    pub(crate) async fn store(&mut self, expected: &Expected, position: &Position) -> Outcome<()> {
        match self {
            Self::Polled(store) => caught(store.store(expected, position)).await,
            Self::Threaded(worker) => {
                let (expected, position) = (expected.clone(), position.clone());
                worker.call(move |store| store.store(&expected, &position)).await
            }
        }
    }

    pub(crate) async fn close(self) {
        match self {
            Self::Polled(_) => {}
            Self::Threaded(worker) => worker.close().await,
        }
    }
}

/// Runs `future` and turns a panic in it into a value.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    poll_fn(|cx| poll_caught(future.as_mut(), cx)).await
}

fn poll_caught<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<Result<F::Output, Panicked>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(_) => Poll::Ready(Err(Panicked)),
    }
}
