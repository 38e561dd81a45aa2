//! SQLite: the mirror, the ledger, and positions for library-owned mode.

mod checkpoint;
mod database;
mod failure;
mod ledger;
mod mirror;
#[cfg(test)]
mod tests;

pub use checkpoint::SqliteCheckpoint;
pub use database::{Synchronous, peek};
pub use ledger::{Ledger, LedgerOptions};
pub use mirror::{Mirror, MirrorOptions};
