//! SQLite: the ledger, and positions for library-owned mode.

mod checkpoint;
mod database;
mod failure;
mod ledger;
#[cfg(test)]
mod tests;

pub use checkpoint::SqliteCheckpoint;
pub use database::Synchronous;
pub use ledger::{Ledger, LedgerOptions};
