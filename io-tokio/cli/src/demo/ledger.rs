//! The ledger as any program would read it: with SQL.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};
use serde_json::value::RawValue;

use super::tables::{Kind, TABLES, Table, quote};
use crate::failure::Failure;

const BUSY: Duration = Duration::from_secs(10);

/// Reads a ledger beside the process that writes it.
pub(super) struct Reader {
    path: PathBuf,
    connection: Option<Connection>,
}

/// A change, its rows as hashes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Names its transaction: the GTID here, the writer's own number on the source.
    pub(super) transaction: String,
    pub(super) op: String,
    pub(super) table: String,
    pub(super) was: Option<String>,
    pub(super) becomes: Option<String>,
}

impl Reader {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, connection: None }
    }

    fn open(&mut self) -> rusqlite::Result<Option<&Connection>> {
        if self.connection.is_none() {
            if !self.path.exists() {
                return Ok(None);
            }
            // Writable: the first reader after a crash brings the write-ahead log in order.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY)?;
            let ready: Option<i64> = connection
                .query_row("SELECT 1 FROM sqlite_master WHERE name = 'capstan_ledger'", [], |row| row.get(0))
                .optional()?;
            if ready.is_none() {
                return Ok(None);
            }
            self.connection = Some(connection);
        }
        Ok(self.connection.as_ref())
    }

    /// Rows so far.
    pub(super) fn count(&mut self) -> Result<u64, Failure> {
        let count = match self.open() {
            Ok(None) => return Ok(0),
            Ok(Some(connection)) => {
                connection.query_row("SELECT IFNULL(MAX(seq), 0) FROM capstan_ledger", [], |row| {
                    row.get::<_, i64>(0)
                })
            }
            Err(error) => Err(error),
        };
        match count {
            Ok(count) => Ok(u64::try_from(count).unwrap_or(0)),
            // Being made, or being brought in order, just now.
            Err(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                ) =>
            {
                Ok(0)
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// Changes one value of one row in the middle.
    pub(super) fn break_one(&mut self) -> Result<(), Failure> {
        let Ok(Some(connection)) = self.open() else {
            return Err(Failure::other("there is no ledger to break", 4));
        };
        let broken = connection.execute(
            "UPDATE capstan_ledger SET after = json_set(after, '$.total', '0.01') WHERE seq =
             (SELECT seq FROM capstan_ledger WHERE \"table\" = 'orders' AND after IS NOT NULL
              ORDER BY seq LIMIT 1 OFFSET
              (SELECT COUNT(*) / 2 FROM capstan_ledger WHERE \"table\" = 'orders' AND after IS NOT NULL))",
            [],
        );
        match broken {
            Ok(1) => Ok(()),
            Ok(_) => Err(Failure::other("there is no row to break; write for longer", 4)),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Schema changes in the ledger.
    pub(super) fn schema_changes(&self) -> Result<u64, Failure> {
        let connection = self.connection()?;
        let count: i64 = connection
            .query_row("SELECT COUNT(*) FROM capstan_ledger WHERE op = 'schema_change'", [], |row| row.get(0))
            .map_err(|error| failed(&error))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Every change in order, each with the session that made it.
    pub(super) fn each(&self, mut visit: impl FnMut(u8, Change)) -> Result<(), Failure> {
        let connection = self.connection()?;
        let mut statement = connection
            .prepare(
                "SELECT gtid, op, \"table\", before, after FROM capstan_ledger
                 WHERE op <> 'schema_change' ORDER BY seq",
            )
            .map_err(|error| failed(&error))?;
        let mut rows = statement.query([]).map_err(|error| failed(&error))?;
        while let Some(row) = rows.next().map_err(|error| failed(&error))? {
            let text = |column| row.get::<_, Option<String>>(column).map_err(|error| failed(&error));
            let name = text(2)?.unwrap_or_default();
            let table = TABLES.iter().find(|table| table.name == name);
            let hash = |image: Option<String>| image.map(|image| hash(table, &image));
            visit(
                table.map_or(0, |table| table.writer),
                Change {
                    transaction: text(0)?.unwrap_or_default(),
                    op: text(1)?.unwrap_or_default(),
                    was: hash(text(3)?),
                    becomes: hash(text(4)?),
                    table: name,
                },
            );
        }
        Ok(())
    }

    fn connection(&self) -> Result<&Connection, Failure> {
        self.connection.as_ref().ok_or_else(|| Failure::other("there is no ledger", 4))
    }
}

fn failed(error: &rusqlite::Error) -> Failure {
    Failure::other(format!("reading the ledger: {error}"), 4)
}

/// The hash of a row image; of a text that no server makes where it cannot be read.
fn hash(table: Option<&Table>, image: &str) -> String {
    let text = table.and_then(|table| row_text(table, image)).unwrap_or_else(|| "unreadable".to_owned());
    super::compare::sha256(text.as_bytes())
}

fn row_text(table: &Table, image: &str) -> Option<String> {
    let values: BTreeMap<&str, &RawValue> = serde_json::from_str(image).ok()?;
    if values.len() != table.columns.len() {
        return None;
    }
    let mut text = String::new();
    for (at, (name, kind)) in table.columns.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        let raw = values.get(name)?.get();
        if raw == "null" {
            quote(&mut text, None);
            continue;
        }
        match kind {
            Kind::Json => quote(&mut text, Some(raw)),
            Kind::Text if raw.starts_with('"') => {
                quote(&mut text, Some(&serde_json::from_str::<String>(raw).ok()?));
            }
            Kind::Text => quote(&mut text, Some(raw)),
            Kind::Binary => {
                quote(&mut text, Some(&hexadecimal(&serde_json::from_str::<String>(raw).ok()?)?));
            }
        }
    }
    Some(text)
}

/// Base64 (RFC 4648) as the server's `HEX` prints the bytes.
fn hexadecimal(base64: &str) -> Option<String> {
    let mut out = String::with_capacity(base64.len() * 3 / 2);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for c in base64.trim_end_matches('=').bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(six)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            let byte = bits >> held & 0xff;
            for half in [byte >> 4, byte & 15] {
                out.push(char::from_digit(half, 16)?.to_ascii_uppercase());
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_becomes_hexadecimal() {
        // The vectors of RFC 4648, section 10.
        for (base64, want) in [
            ("", ""),
            ("Zg==", "66"),
            ("Zm8=", "666F"),
            ("Zm9v", "666F6F"),
            ("Zm9vYg==", "666F6F62"),
            ("Zm9vYmE=", "666F6F6261"),
            ("Zm9vYmFy", "666F6F626172"),
        ] {
            assert_eq!(hexadecimal(base64).as_deref(), Some(want));
        }
        assert_eq!(hexadecimal("Zm9v?"), None);
    }

    #[test]
    fn a_row_becomes_the_servers_text() {
        let [customers, _, lines, _] = &TABLES;
        let image = r#"{"id":18446744073709551615,"name":"O'Brien","born":null,"profile":{"a": [1.50, "x"]},"orders":0,"seen":"2026-01-01 00:00:00.000001"}"#;
        assert_eq!(
            row_text(customers, image).as_deref(),
            Some(
                r#"'18446744073709551615','O\'Brien',NULL,'{"a": [1.50, "x"]}','0','2026-01-01 00:00:00.000001'"#
            )
        );
        let image = r#"{"order_id":1,"line":-2,"sku":"AAEC/w==","quantity":3,"price":"1.5000000000"}"#;
        assert_eq!(row_text(lines, image).as_deref(), Some("'1','-2','000102FF','3','1.5000000000'"));
        assert_eq!(row_text(lines, r#"{"order_id":1}"#), None);
    }
}
