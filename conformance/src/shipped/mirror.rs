//! The SQLite mirror.

use capstan::sqlite::{Mirror, MirrorOptions};
use rusqlite::{Connection, OptionalExtension as _, types::ValueRef};
use serde_json::{Map, Value, json};

use super::{Folder, arm, artifact, declined};
use crate::{
    artifact::Artifact,
    subject::Blocking,
    target::{Applied, Keeps, Stored, Target, Trouble},
};

/// A target of [`Mirror`].
#[derive(Debug)]
pub struct MirrorTarget(Folder);

impl MirrorTarget {
    /// In a folder of its own, which goes with it.
    ///
    /// # Errors
    /// No folder can be made.
    pub fn fresh() -> Result<Self, Trouble> {
        Ok(Self(Folder::fresh()?))
    }

    fn connection(&self) -> rusqlite::Result<Connection> {
        Connection::open(self.0.file("mirror.db"))
    }
}

/// What this table is called here.
fn name(connection: &Connection, table: &str) -> Result<Option<String>, Trouble> {
    let select = "SELECT name FROM capstan_tables WHERE \"schema\" || '.' || \"table\" = ?1";
    Ok(connection.query_row(select, [table], |row| row.get(0)).optional()?)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Target for MirrorTarget {
    type Sink = Blocking<Mirror>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        let mut options = MirrorOptions::default();
        // The kit's tables are there before the stream begins.
        options.partial = true;
        Ok(Blocking(Mirror::open(self.0.file("mirror.db"), options)?))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        let connection = self.connection()?;
        let mut tables =
            connection.prepare("SELECT \"schema\" || '.' || \"table\", name FROM capstan_tables")?;
        let tables: Vec<(String, String)> =
            tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        let mut applied = Vec::new();
        for (table, name) in tables {
            let has_note = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = 'note'";
            if connection.query_row(has_note, [&name], |row| row.get::<_, i64>(0))? == 0 {
                continue;
            }
            let mut rows = connection.prepare(&format!("SELECT id, note FROM {}", quoted(&name)))?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let (id, note): (i64, String) = (row.get(0)?, row.get(1)?);
                applied.push(Applied::row(&*table, id.to_string(), note));
            }
        }
        let position =
            connection.query_row("SELECT position FROM capstan_position", [], |row| row.get(0)).optional()?;
        Ok(Stored { applied, position })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let connection = self.connection()?;
        let Some(name) = name(&connection, table)? else { return Ok(None) };
        let mut select =
            connection.prepare(&format!("SELECT * FROM {} WHERE id = CAST(?1 AS INTEGER)", quoted(&name)))?;
        let columns: Vec<String> = select.column_names().into_iter().map(str::to_owned).collect();
        let mut rows = select.query([key])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut image = Map::new();
        for (at, column) in columns.into_iter().enumerate() {
            let value = value(&column, row.get_ref(at)?)?;
            image.insert(column, value);
        }
        Ok(Some(Value::Object(image).to_string()))
    }

    fn keeps(&self) -> Keeps {
        Keeps::Rows
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
        "capstan::sqlite::Mirror of a part".into()
    }
}

/// What the mirror has for a value, in the contract's text form: what its column is at the source is
/// known by the kit's names.
fn value(column: &str, value: ValueRef<'_>) -> Result<Value, Trouble> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => match column {
            // JSON as it is; integers beyond 64 bits with sign as their digits.
            "document" | "largest" => serde_json::from_slice(text)?,
            _ => json!(std::str::from_utf8(text)?),
        },
        ValueRef::Blob(bytes) if column == "bytes" => json!(base64(bytes)),
        ValueRef::Blob(bytes) => json!({ "base64": base64(bytes) }),
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4_usize {
            let index = (bits >> (18 - 6 * digit)) & 63;
            let digit = if digit <= chunk.len() { DIGITS.get(index as usize).copied() } else { Some(b'=') };
            out.extend(digit.map(char::from));
        }
    }
    out
}
