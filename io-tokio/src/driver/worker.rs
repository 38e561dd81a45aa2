//! A thread that owns a value and does one thing after another with it.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
};

use tokio::sync::oneshot;

/// The value panicked, or its thread is gone: it must not be touched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

type Work<T> = Box<dyn FnOnce(&mut T) + Send>;

/// Owns the thread. When it is dropped the thread ends with the work it has begun.
pub(crate) struct Worker<T> {
    work: Option<mpsc::Sender<Work<T>>>,
    ended: oneshot::Receiver<()>,
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worker")
    }
}

impl<T: Send + 'static> Worker<T> {
    /// Starts the thread, named `name`.
    pub(crate) fn start(name: &str, mut value: T) -> std::io::Result<Self> {
        let (work, works) = mpsc::channel::<Work<T>>();
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Ok(work) = works.recv() {
                work(&mut value);
            }
            // A target's locks end with the value: only then may a successor be told.
            drop(value);
            let _ = end.send(());
        })?;
        Ok(Self { work: Some(work), ended })
    }

    /// Does `work` with the value. Dropping the future leaves the work running and its result unheard.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> impl Future<Output = Result<R, Panicked>> + Send + 'static {
        let (answer, answered) = oneshot::channel();
        let work: Work<T> = Box::new(move |value| {
            if let Ok(result) = catch_unwind(AssertUnwindSafe(|| work(value))) {
                let _ = answer.send(result);
            }
        });
        if let Some(works) = &self.work {
            let _ = works.send(work);
        }
        async move { answered.await.map_err(|_| Panicked) }
    }

    /// Lets the thread end and waits until the value is dropped.
    pub(crate) async fn close(mut self) {
        self.work = None;
        let _ = (&mut self.ended).await;
    }
}
