//! What `tail` and `sync` share: run to the end, drain on signals, watch on the way.

use std::{future::Future, time::Duration};

use capstan::{Halt, Handle, Stopped};

use crate::{
    failure::Failure,
    signals::{Waiting, drain_on_signal, steer_copy},
};

/// How often the watcher is called.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// A runtime for one pipeline.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("no runtime: {error}"), 4))
}

/// Runs a pipeline to its end. `watch` is called each second, and once at the end.
pub async fn to_end(
    pipeline: impl Future<Output = Result<Stopped, Halt>>,
    handle: Handle,
    mut watch: impl FnMut(&Handle),
) -> Result<u8, Failure> {
    let mut pipeline = std::pin::pin!(pipeline);
    let mut signal = std::pin::pin!(drain_on_signal(handle.clone()));
    let mut steer = std::pin::pin!(steer_copy(handle.clone()));
    let mut ticks = tokio::time::interval(WATCH_EVERY);
    let mut status = None;
    let mut waiting = Waiting::new();
    let done = loop {
        tokio::select! {
            biased;
            done = &mut pipeline => break done,
            by = &mut signal, if status.is_none() => status = Some(by),
            () = &mut steer => {}
            _ = ticks.tick() => {
                watch(&handle);
                if status.is_some() {
                    waiting.see(&handle);
                }
            }
        }
    };
    watch(&handle);
    match done {
        Ok(_) => Ok(status.unwrap_or(0)),
        Err(halt) => Err(halt.into()),
    }
}
