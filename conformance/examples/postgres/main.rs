//! A sink over PostgreSQL on its way from failing to passing; the guide tells the story.
//!
//! `cargo run -p capstan-conformance --example postgres`: starts a private server and prints a report for
//! each step.

#![allow(clippy::indexing_slicing, missing_debug_implementations, reason = "an example")]

mod cluster;
mod sink;
mod target;

use std::sync::Arc;

use capstan_conformance::{Trouble, check};
use tokio::runtime::Runtime;

use crate::{cluster::Cluster, sink::Step, target::PgTarget};

fn main() -> Result<(), Trouble> {
    let cluster = Cluster::start()?;
    let runtime = Arc::new(Runtime::new()?);
    for step in Step::ALL {
        println!("{}\n", check(|| PgTarget::fresh(&runtime, &cluster.config(), step)));
    }
    Ok(())
}
