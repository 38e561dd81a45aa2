//! The SQLite mirror.

use capstan::sqlite::{Mirror, MirrorOptions};
use rusqlite::{Connection, OptionalExtension as _, types::ValueRef};
use serde_json::{Map, Value, json};

use super::{Folder, in_a_folder, plant, position};
use crate::{
    subject::Blocking,
    target::{Applied, Keeps, Stored, Target, Trouble},
};

/// A target of [`Mirror`], which is strict or of a part.
#[derive(Debug)]
pub struct AnyMirrorTarget<const STRICT: bool>(Folder);

/// Of a part: its tables were there before the stream begins.
pub type MirrorTarget = AnyMirrorTarget<false>;

/// Strict: it has seen the creation of every table, and a change of a row that it has not is a divergence.
pub type StrictMirrorTarget = AnyMirrorTarget<true>;

impl<const STRICT: bool> AnyMirrorTarget<STRICT> {
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

impl<const STRICT: bool> Target for AnyMirrorTarget<STRICT> {
    type Sink = Blocking<Mirror>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        let mut options = MirrorOptions::default();
        options.partial = !STRICT;
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
        Ok(Stored { applied, position: position(&connection)? })
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

    fn needs_creations(&self) -> bool {
        STRICT
    }

    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        plant(&self.connection()?, position)
    }

    in_a_folder!(
        if STRICT { "capstan::sqlite::Mirror" } else { "capstan::sqlite::Mirror of a part" },
        ["streamed_change", "before_commit", "after_commit"]
    );
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
            "document" | "largest" | "bits" => serde_json::from_slice(text)?,
            _ => json!(std::str::from_utf8(text)?),
        },
        ValueRef::Blob(bytes) if ["bytes", "fixed"].contains(&column) => json!(base64(bytes)),
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
