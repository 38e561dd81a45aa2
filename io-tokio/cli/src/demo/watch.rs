//! Ctrl-C: the steps end in turn, so that server and folders go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    thread,
};

use tokio::signal::unix::{SignalKind, signal};

use crate::{failure::Failure, pipeline::runtime};

/// Whether a signal came, and which.
#[derive(Clone, Debug)]
pub(super) struct Interrupt {
    status: Arc<AtomicU8>,
    in_steps: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on. Until [`Interrupt::steps_begin`], and at the second signal, the process ends at
    /// once; the server's watchdog clears up after it.
    pub(super) fn listen() -> Result<Self, Failure> {
        let this = Self { status: Arc::default(), in_steps: Arc::default() };
        let (runtime, listener) = (runtime()?, this.clone());
        thread::spawn(move || runtime.block_on(listener.run()));
        Ok(this)
    }

    async fn run(self) {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return; // then the defaults apply, which end the process
        };
        loop {
            let status = tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            };
            let again = self.status.swap(status, Ordering::SeqCst) != 0;
            if again || !self.in_steps.load(Ordering::SeqCst) {
                std::process::exit(i32::from(status));
            }
            tell!("capstan: cleaning up");
        }
    }

    /// From here on [`Interrupt::check`] is asked often.
    pub(super) fn steps_begin(&self) {
        self.in_steps.store(true, Ordering::SeqCst);
    }

    pub(super) fn came(&self) -> bool {
        self.status.load(Ordering::SeqCst) != 0
    }

    /// Fails once a signal came.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.status.load(Ordering::SeqCst) {
            0 => Ok(()),
            status => Err(Failure::other("interrupted; server and folders are removed", status)),
        }
    }
}
