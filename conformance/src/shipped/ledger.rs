//! The SQLite ledger.

use capstan::sqlite::{Ledger, LedgerOptions};
use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value;

use super::{Folder, arm, artifact, declined};
use crate::{
    artifact::Artifact,
    subject::Blocking,
    target::{Applied, Stored, Target, Trouble},
};

/// A target of [`Ledger`].
#[derive(Debug)]
pub struct LedgerTarget(Folder);

impl LedgerTarget {
    /// In a folder of its own, which goes with it.
    ///
    /// # Errors
    /// No folder can be made.
    pub fn fresh() -> Result<Self, Trouble> {
        Ok(Self(Folder::fresh()?))
    }

    fn connection(&self) -> rusqlite::Result<Connection> {
        Connection::open(self.0.file("ledger.db"))
    }
}

impl Target for LedgerTarget {
    type Sink = Blocking<Ledger>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Ledger::open(self.0.file("ledger.db"), LedgerOptions::default())?))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        let connection = self.connection()?;
        let mut applied = Vec::new();
        let mut rows = connection.prepare(
            "SELECT op, \"schema\" || '.' || \"table\", coalesce(after, before) FROM capstan_ledger
             WHERE op NOT IN ('schema_change', 'snapshot_begins') ORDER BY seq",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let image: Value = serde_json::from_str(&row.get::<_, String>(2)?)?;
            let id = image.get("id").ok_or("a row without id")?.to_string();
            applied.push(Applied::named(row.get::<_, String>(0)?, row.get::<_, String>(1)?, id));
        }
        let position =
            connection.query_row("SELECT position FROM capstan_position", [], |row| row.get(0)).optional()?;
        Ok(Stored { applied, position })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let select = "SELECT after FROM capstan_ledger
                      WHERE \"schema\" || '.' || \"table\" = ?1
                        AND json_extract(after, '$.id') = CAST(?2 AS INTEGER)
                      ORDER BY seq DESC LIMIT 1";
        Ok(self.connection()?.query_row(select, (table, key), |row| row.get(0)).optional()?)
    }

    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        self.connection()?.execute("UPDATE capstan_position SET position = ?1", [position])?;
        Ok(())
    }

    fn backup(&mut self) -> Result<(), Trouble> {
        self.0.backup()
    }

    fn restore(&mut self) -> Result<(), Trouble> {
        self.0.restore()
    }

    fn fault_points(&self) -> &[&str] {
        &["streamed_change", "before_commit", "after_commit"]
    }

    fn arm(&mut self, _: &str, _: u64) -> Result<(), Trouble> {
        arm()
    }

    fn address(&self) -> Option<String> {
        self.0.address()
    }

    fn attach(address: &str) -> Result<Self, Trouble> {
        Ok(Self(Folder::at(address)))
    }

    fn declines(&self) -> &[(&str, &str)] {
        declined()
    }

    fn artifact(&self) -> Option<Artifact> {
        artifact()
    }

    fn name(&self) -> String {
        "capstan::sqlite::Ledger".into()
    }
}
