//! The SQLite ledger.

use capstan::sqlite::{Ledger, LedgerOptions};
use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value;

use super::{Folder, in_a_folder, plant, position};
use crate::{
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
             WHERE op <> 'schema_change' ORDER BY seq",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (op, table): (String, String) = (row.get(0)?, row.get(1)?);
            if op == "snapshot_begins" {
                applied.push(Applied::begins(table));
                continue;
            }
            let image: Value = serde_json::from_str(&row.get::<_, String>(2)?)?;
            let id = image.get("id").ok_or("a row without id")?.to_string();
            applied.push(Applied::named(op, table, id));
        }
        Ok(Stored { applied, position: position(&connection)? })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let select = "SELECT after FROM capstan_ledger
                      WHERE \"schema\" || '.' || \"table\" = ?1
                        AND json_extract(after, '$.id') = CAST(?2 AS INTEGER)
                      ORDER BY seq DESC LIMIT 1";
        Ok(self.connection()?.query_row(select, (table, key), |row| row.get(0)).optional()?)
    }

    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        plant(&self.connection()?, position)
    }

    in_a_folder!("capstan::sqlite::Ledger", ["streamed_change", "before_commit", "after_commit"]);
}
