//! The way of a transaction that is handed over while it is read: events to the sink, freed bytes back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use capstan_core::deliver::{Event, Feed};
use tokio::sync::mpsc;

/// The loop's end.
#[derive(Debug)]
pub(super) struct FeedSender {
    // Unbounded is bounded here: nothing is read beyond the core's credit.
    events: mpsc::UnboundedSender<Event>,
    closed: Arc<AtomicBool>,
}

impl FeedSender {
    pub(super) fn send(&self, event: Event) {
        // A sink that has returned already reads no more.
        let _ = self.events.send(event);
    }
}

impl Drop for FeedSender {
    fn drop(&mut self) {
        // What still waits is not worth reading either.
        self.closed.store(true, Ordering::Release);
    }
}

/// The sink's end.
struct FeedReceiver {
    events: mpsc::UnboundedReceiver<Event>,
    released: mpsc::UnboundedSender<usize>,
    closed: Arc<AtomicBool>,
}

/// A feed whose freed bytes go to `released`.
pub(super) fn feed(released: mpsc::UnboundedSender<usize>) -> (FeedSender, Box<dyn Feed>) {
    let (events, receiver) = mpsc::unbounded_channel();
    let closed = Arc::new(AtomicBool::new(false));
    let sender = FeedSender { events, closed: closed.clone() };
    (sender, Box::new(FeedReceiver { events: receiver, released, closed }))
}

impl Feed for FeedReceiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.closed.load(Ordering::Acquire) {
            return Poll::Ready(None);
        }
        self.events.poll_recv(cx)
    }

    fn wait_next(&mut self) -> Option<Event> {
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        self.events.blocking_recv()
    }

    fn released(&mut self, bytes: usize) {
        let _ = self.released.send(bytes);
    }
}
