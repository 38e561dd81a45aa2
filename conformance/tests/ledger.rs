//! The SQLite ledger of `capstan` keeps the contract.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::path::PathBuf;

use capstan::sqlite::{Ledger, LedgerOptions};
use capstan_conformance::{Applied, Blocking, RULES, Stored, Target, Trouble, check};
use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value;
use tempfile::TempDir;

struct LedgerTarget(TempDir);

impl LedgerTarget {
    fn path(&self) -> PathBuf {
        self.0.path().join("ledger.db")
    }
}

impl Target for LedgerTarget {
    type Sink = Blocking<Ledger>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Ledger::open(self.path(), LedgerOptions::default())?))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        let connection = Connection::open(self.path())?;
        let mut applied = Vec::new();
        let mut rows = connection.prepare(
            "SELECT op, \"schema\" || '.' || \"table\", coalesce(after, before) FROM capstan_ledger ORDER BY seq",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let image: Value = serde_json::from_str(&row.get::<_, String>(2)?)?;
            applied.push(Applied { op: row.get(0)?, table: row.get(1)?, key: image["id"].to_string() });
        }
        let position =
            connection.query_row("SELECT position FROM capstan_position", [], |row| row.get(0)).optional()?;
        Ok(Stored { applied, position })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let connection = Connection::open(self.path())?;
        let select = "SELECT after FROM capstan_ledger
                      WHERE \"schema\" || '.' || \"table\" = ?1 AND json_extract(after, '$.id') = CAST(?2 AS INTEGER)";
        Ok(connection.query_row(select, (table, key), |row| row.get(0)).optional()?)
    }

    fn name(&self) -> String {
        "capstan::sqlite::Ledger".into()
    }
}

#[test]
fn the_sqlite_ledger_passes_every_rule() {
    let report = check(|| Ok(LedgerTarget(tempfile::tempdir()?)));
    assert!(report.is_passed(), "{report}");
    assert_eq!(report.passed(), RULES.len(), "{report}");
}
