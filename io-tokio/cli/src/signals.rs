//! SIGINT and SIGTERM drain; the second does not wait. SIGUSR1 pauses the initial copy, SIGUSR2 has it go on.

use std::time::{Duration, Instant};

use capstan::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for a signal, drains, and gives the exit status that says which it was. A second signal ends the
/// process at once: what was not acknowledged comes again.
pub async fn drain_on_signal(handle: Handle) -> u8 {
    let status = next().await;
    tell!("capstan: finishing what is complete; it waits until the target has taken that");
    tell!("capstan: a second signal stops at once: nothing is lost, what was not taken comes again");
    handle.drain();
    tokio::spawn(async move {
        let status = next().await;
        std::process::exit(i32::from(status));
    });
    status
}

/// Says again and again what a drain waits for: a target that refuses holds it without end.
pub struct Waiting {
    said: Option<Instant>,
}

impl Waiting {
    /// Between two lines.
    const EVERY: Duration = Duration::from_secs(5);

    pub const fn new() -> Self {
        Self { said: None }
    }

    /// Called now and then after the signal.
    pub fn see(&mut self, handle: &Handle) {
        let said = *self.said.get_or_insert_with(Instant::now);
        if said.elapsed() < Self::EVERY {
            return;
        }
        self.said = Some(Instant::now());
        let status = handle.status();
        let why = status.trouble.map_or_else(String::new, |code| format!(" ({code})"));
        tell!(
            "capstan: still waiting for the target{why}: {} bytes are not taken, {} refusals; a second signal stops at once",
            status.retained_bytes,
            status.sink_failures
        );
    }
}

async fn next() -> u8 {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers the defaults apply, which end the process.
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = interrupt.recv() => 130,
        _ = terminate.recv() => 143,
    }
}

/// Pauses and resumes the initial copy.
pub async fn steer_copy(handle: Handle) {
    let (Ok(mut pause), Ok(mut resume)) =
        (signal(SignalKind::user_defined1()), signal(SignalKind::user_defined2()))
    else {
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            biased;
            _ = pause.recv() => {
                tell!("capstan: the copy pauses (SIGUSR2: it goes on); the stream goes on");
                handle.pause_copy();
            }
            _ = resume.recv() => {
                tell!("capstan: the copy goes on");
                handle.resume_copy();
            }
        }
    }
}
