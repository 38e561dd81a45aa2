//! A sink over a plain file, which honestly says: at least once.
//!
//! `cargo run -p capstan-conformance --example lines` prints its report; with `boast` behind it, that of a sink which
//! also claims to hold nothing back in memory.

#![allow(clippy::indexing_slicing, missing_debug_implementations, reason = "an example")]

mod sink;

use capstan_conformance::{Check, Child, Trouble};

use crate::sink::LinesTarget;

fn main() -> Result<(), Trouble> {
    let check = Check::new().child(Child::program::<String>([])?);
    let factory =
        if std::env::args().any(|word| word == "boast") { LinesTarget::boastful } else { LinesTarget::fresh };
    println!("{}", check.run(factory));
    Ok(())
}
