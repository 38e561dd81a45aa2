//! The checks you run against your own Capstan sink.
//!
//! Exactly once is a promise of two parties. Each [`Rule`] is a sentence of the contract; the kit drives
//! your sink with the real core and a fake MySQL source, looks at what is stored, and says rule by rule
//! what held. It certifies what it ran and nothing more: not what your tables mean, not how your storage
//! survives a loss of power.
//!
//! You write a [`Target`]: how to open the sink, and how to see what it stored. A fresh one is made for
//! each rule.
//!
//! ```
//! use capstan_conformance::{Blocking, Stored, Target, Trouble, check, reference::{Disk, Memory}};
//!
//! struct Mine(Disk);
//!
//! impl Target for Mine {
//!     type Sink = Blocking<Memory>; // your sink; `Async<…>` around an async one
//!     fn open(&mut self) -> Result<Self::Sink, Trouble> {
//!         Ok(Blocking(Memory::open(&self.0)))
//!     }
//!     fn probe(&mut self) -> Result<Stored, Trouble> {
//!         Ok(self.0.stored())
//!     }
//!     fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
//!         Ok(self.0.row(table, key))
//!     }
//!     fn declines(&self) -> &[(&str, &str)] {
//!         &[
//!             ("dies_at_fault_points", "it has none"),
//!             ("newer_format_is_refused", "the example plants no positions"),
//!             ("backup_goes_on", "there is nothing to back up"),
//!         ]
//!     }
//! }
//!
//! let report = check(|| Ok(Mine(Disk::default())));
//! assert!(report.is_passed(), "{report}");
//! assert_eq!(report.skipped(), 5); // and what is done in a process of its own, which needs `Target::address`
//! ```
//!
//! One named test per rule is [`main!`]; what is to die dies by SIGKILL where the target has an address and
//! the check a [`Child`]. `GUIDE.md` beside this crate tells how to write a sink, and how to read a report.
//! The rules of a [`driver`] are for who carries the core over another runtime than tokio.
//!
//! An async sink that needs a runtime opens itself on one: its futures are polled on the calling thread,
//! outside of it.
//!
//! Levels: a sink that stores the position with the data is checked at [`Level::ExactlyOnce`]; one whose
//! position a checkpoint store keeps declares [`Level::AtLeastOnce`], and the rules above it are skipped
//! and say so.
#![forbid(unsafe_code)]

mod artifact;
mod bench;
mod crash;
pub mod driver;
mod process;
pub mod reference;
mod report;
mod rule;
mod rules;
#[cfg(feature = "shipped")]
pub mod shipped;
mod source;
mod subject;
mod table;
mod target;
#[cfg(feature = "trials")]
pub mod trials;

pub use artifact::Artifact;
pub use crash::{Faults, Strength};
pub use process::{Child, in_child};
pub use report::{Outcome, Report, Verdict};
pub use rule::{Check, Level, Rule, check, check_rule};
pub use subject::{Async, Blocking, Subject};
pub use table::RULES;
pub use target::{Applied, Keeps, Stored, Target, Trouble};

/// The number of the contract whose sentences the rules are.
pub const CONTRACT: u32 = 1;

/// The page for newcomers; its example must compile.
#[cfg(doctest)]
#[doc = include_str!("../GUIDE.md")]
struct Guide;
