//! How far the initial copy is: the part of a position that belongs to it.

use alloc::{
    boxed::Box,
    collections::BTreeMap,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::fmt::{self, Write as _};

use super::position::{Advance, PositionError};
use crate::{binlog::rows::RowsEvent, deliver::Seq, gtid::GtidSet, value::TableVersion};

/// A table of the copy: its schema and name.
pub type CopiedTable = (String, String);

/// The copy of every table that is or was to be copied.
pub type Copies = BTreeMap<CopiedTable, TableCopy>;

/// The key of a row as its image holds it: a value for each column of the key, in the key's order.
///
/// It is data and is written down with the position; `Debug` shows how many values only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyParts(pub Box<[Box<[u8]>]>);

impl fmt::Debug for KeyParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyParts({})", self.0.len())
    }
}

/// What is left to do for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// Nothing of it was delivered; changes of it that come are in the copy.
    Waiting,
    /// Rows up to the last key were delivered.
    Copying,
    /// All of it was: only the stream speaks of it now.
    Done,
}

impl CopyState {
    /// Stable lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Copying => "copying",
            Self::Done => "done",
        }
    }
}

/// How far the copy of one table is.
///
/// At the position it is stored with, the target holds exactly the rows with keys up to `key` and
/// behind `upto`. Between the two is what is still to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCopy {
    /// What is left to do.
    pub state: CopyState,
    /// The last key that was delivered.
    pub key: Option<KeyParts>,
    /// The last key there was at the first cut; what comes behind it is in the stream alone. `None`:
    /// nothing is.
    pub upto: Option<KeyParts>,
    /// Fingerprint of the key's columns: what makes two keys comparable.
    pub key_columns: u64,
    /// What the last chunk was exact for.
    pub gtid_set: GtidSet,
    /// Chunks delivered.
    pub chunks: u64,
    /// Rows delivered in them.
    pub rows: u64,
    /// Bytes of these rows, as they were delivered.
    pub bytes: u64,
}

impl TableCopy {
    /// A table of which nothing was delivered.
    #[must_use]
    pub const fn waiting() -> Self {
        Self {
            state: CopyState::Waiting,
            key: None,
            upto: None,
            key_columns: 0,
            gtid_set: GtidSet::new(),
            chunks: 0,
            rows: 0,
            bytes: 0,
        }
    }

    /// The same table when nothing is left to do.
    #[must_use]
    pub fn done(&self) -> Self {
        Self { state: CopyState::Done, key: None, upto: None, gtid_set: GtidSet::new(), ..self.clone() }
    }
}

/// One chunk of a table's initial copy, exact for a GTID set.
#[derive(Debug)]
pub struct SnapshotChunk {
    /// Its number in the sequence.
    pub seq: Seq,
    /// The version of the table the rows were read under.
    pub table: Arc<TableVersion>,
    /// The rows, as inserts; `None` where there are none.
    pub rows: Option<RowsEvent>,
    /// The chunk's number within the table's copy, from 0. With 0 the copy begins: what a target has of
    /// the table from before is void.
    pub number: u64,
    /// The transactions whose effect on the table the rows have, and no others.
    pub gtid_set: GtidSet,
    /// Whether it is the table's last.
    pub last: bool,
    /// What the position gains: how far the copy is then, and transactions passed and not told yet.
    pub advance: Box<Advance>,
}

/// Appends the copies as JSON.
pub(super) fn write(copies: &Copies, out: &mut String) {
    out.push('[');
    for (i, ((schema, table), copy)) in copies.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let text = |name: &str| serde_json::to_string(name).unwrap_or_default();
        let key = |key: &Option<KeyParts>| key.as_ref().map_or_else(|| "null".to_string(), hex);
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "{comma}{{\"schema\":{},\"table\":{},\"state\":\"{}\",\"key\":{},\"upto\":{},\
             \"key_columns\":\"{:016x}\",\"gtid_set\":\"{}\",\"chunks\":{},\"rows\":{},\"bytes\":{}}}",
            text(schema),
            text(table),
            copy.state.as_str(),
            key(&copy.key),
            key(&copy.upto),
            copy.key_columns,
            copy.gtid_set,
            copy.chunks,
            copy.rows,
            copy.bytes,
        );
    }
    out.push(']');
}

/// One table's copy as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    schema: String,
    table: String,
    state: String,
    key: Option<Vec<String>>,
    upto: Option<Vec<String>>,
    key_columns: String,
    gtid_set: String,
    chunks: u64,
    rows: u64,
    #[serde(default)]
    bytes: u64,
}

/// Reads what [`write`] wrote.
pub(super) fn read(written: Vec<Written>) -> Result<Copies, PositionError> {
    let key = |hex: Option<Vec<String>>| match hex {
        None => Ok(None),
        Some(hex) => from_hex(&hex).map(Some).ok_or(PositionError::Malformed),
    };
    let mut copies = Copies::new();
    for entry in written {
        let state = [CopyState::Waiting, CopyState::Copying, CopyState::Done]
            .into_iter()
            .find(|state| state.as_str() == entry.state)
            .ok_or(PositionError::Malformed)?;
        let copy = TableCopy {
            state,
            key: key(entry.key)?,
            upto: key(entry.upto)?,
            key_columns: u64::from_str_radix(&entry.key_columns, 16).map_err(|_| PositionError::Malformed)?,
            gtid_set: entry.gtid_set.parse().map_err(|_| PositionError::Malformed)?,
            chunks: entry.chunks,
            rows: entry.rows,
            bytes: entry.bytes,
        };
        copies.insert((entry.schema, entry.table), copy);
    }
    Ok(copies)
}

/// `["0a","0b"]`
fn hex(key: &KeyParts) -> String {
    let mut out = String::from("[");
    for (i, part) in key.0.iter().enumerate() {
        out.push_str(if i == 0 { "\"" } else { ",\"" });
        for byte in part {
            let _ = write!(out, "{byte:02x}");
        }
        out.push('"');
    }
    out.push(']');
    out
}

fn from_hex(parts: &[String]) -> Option<KeyParts> {
    let part = |hex: &String| {
        if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(hex.get(at..at.checked_add(2)?)?, 16).ok();
        (0..hex.len()).step_by(2).map(byte).collect::<Option<Box<[u8]>>>()
    };
    parts.iter().map(part).collect::<Option<_>>().map(KeyParts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_key_is_not_shown() {
        let key = KeyParts([b"sentinel".as_slice().into()].into());
        assert_eq!(format!("{key:?}"), "KeyParts(1)");
    }
}
