//! The driver over madsim: an executor that picks the next task at random, TCP with random latencies, nodes that
//! are killed and restarted. One seed is one interleaving; the same seed is the same run to the last poll.
//!
//! `RUSTFLAGS="--cfg madsim" cargo test -p sim --test madsim --target-dir target/madsim`; without the flag nothing
//! of this is built. A failure names its seed: `MADSIM_SEED=17` in front repeats it alone. There are no threads in
//! madsim, so no blocking sink.
#![cfg(madsim)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

#[path = "../driver/mod.rs"]
mod driver;
mod faults;
mod links;
mod stage;
