//! The driver over turmoil: real tokio, simulated TCP between a host that is the source and a host that is
//! us, virtual time. What turmoil cannot do (torn packets, a dial nobody answers) is done by [`driver::wire`].
//!
//! `RUSTFLAGS="--cfg tokio_unstable" cargo test -p sim --test turmoil --target-dir target/turmoil`. Without
//! the flag turmoil swallows panics of spawned tasks, so without it nothing of this is built.
#![cfg(tokio_unstable)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod blocking;
mod cancel;
mod dial;
#[path = "../driver/mod.rs"]
mod driver;
mod hosts;
mod link;
mod pressure;
mod sink;
mod stage;
mod steer;
