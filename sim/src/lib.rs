//! A simulated world around the core that production runs.
//!
//! `cargo test -p sim` runs fault schedules: a source group that speaks the real wire format, a network,
//! a sink, processes that die, and a clock, all inside one thread and one loop. Every choice comes from
//! one tape, so a failure is repeated by one line, and made small before it is shown.
//!
//! [`run::run`] runs one schedule, [`run::batch`] many. The oracles ([`oracle`]) know nothing of the core:
//! they compare what a sink holds with what was committed.
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::disallowed_types,
    reason = "a simulator whose own bookkeeping is wrong must stop at once; it measures its own speed"
)]

pub mod choices;
pub mod copied;
pub mod extras;
pub mod fault;
pub mod hash;
pub mod marks;
pub mod mutants;
pub mod oracle;
pub mod plan;
pub mod process;
pub mod run;
pub mod schedule;
pub mod sink;
pub mod store;
pub mod truth;
pub mod workload;
pub mod world;

/// Half of what a schedule costs with the system's allocator is the allocator.
#[cfg(not(fuzzing))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
