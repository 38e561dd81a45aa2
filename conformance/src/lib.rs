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
//!     fn declines(&self) -> &[(&str, &str)] {
//!         &[("values_survive", "the example does not read rows back")]
//!     }
//! }
//!
//! let report = check(|| Ok(Mine(Disk::default())));
//! assert!(report.is_passed(), "{report}");
//! assert_eq!(report.skipped(), 1);
//! ```
//!
//! One `#[test]` per rule is [`check_rule`]. An async sink that needs a runtime is checked inside one:
//! hold the guard of a multi-threaded runtime's `enter()` around [`check`].
//!
//! Levels: a sink that stores the position with the data is checked at [`Level::ExactlyOnce`]; one whose
//! position a checkpoint store keeps declares [`Level::AtLeastOnce`], and the rules above it are skipped
//! and say so.
#![forbid(unsafe_code)]

mod bench;
pub mod reference;
mod report;
mod rule;
mod rules;
mod source;
mod subject;
mod target;

pub use report::{Outcome, Report, Verdict};
pub use rule::{Level, RULES, Rule, check, check_rule};
pub use subject::{Async, Blocking, Subject};
pub use target::{Applied, Stored, Target, Trouble};

/// The number of the contract whose sentences the rules are.
pub const CONTRACT: u32 = 1;
