//! `TABLE_MAP_EVENT`: the table that the row events after it speak of.
//!
//! The server writes one before every statement, so the usual answer is "as before": [`TableMaps`]
//! compares bytes and hands out the same [`TableVersion`] without parsing anything.
//!
//! Source: `libs/mysql/binlog/event/rows_event.h`, `Table_map_log_event` in `sql/log_event.cc`.

use alloc::{collections::BTreeMap, format, string::String, sync::Arc, vec::Vec};
use core::fmt;

use super::optional_metadata::OptionalMetadata;
use crate::value::{Column, ColumnType, GeometryKind, Labels, TableFacts, TableVersion, is_valid_decimal};
use crate::wire::{Reader, Short};

/// Why a table map cannot be used. The source (or who changed the bytes on the way) caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableMapError {
    /// The event does not add up: `event_malformed`.
    #[error("malformed table map: {0}")]
    Malformed(&'static str),
    /// A column of a type that no server writes, or that a newer one invented:
    /// `unsupported_column_type`.
    #[error("column {column} has the unsupported type {type_code}")]
    UnsupportedColumnType {
        /// Index of the column, from 0.
        column: usize,
        /// Its type code (`enum_field_types`, `include/field_types.h`).
        type_code: u8,
    },
}

impl From<Short> for TableMapError {
    fn from(_: Short) -> Self {
        Self::Malformed("the bytes end inside a field")
    }
}

/// The head of a table map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMapHead {
    /// The number by which the row events of this statement name the table.
    pub table_id: u64,
    /// `TM_*_F` bits.
    pub flags: u16,
}

/// `TM_GENERATED_INVISIBLE_PK_F`.
const GENERATED_INVISIBLE_PRIMARY_KEY: u16 = 1 << 2;
/// Bytes of table id and flags.
const HEAD_LEN: usize = 8;
/// `NAME_LEN`: 64 characters of at most three bytes.
const NAME_LEN: usize = 192;
/// `MAX_FIELDS`. A byte of type becomes a hundred of [`Column`], so it is tested before that.
const COLUMNS_MAX: usize = 4_096;
/// How many table maps are remembered between statements. More only cost a parse again.
const REMEMBERED_MAX: usize = 4_096;
/// And how many bytes of them; what was parsed takes a few times that.
const REMEMBERED_BYTES_MAX: usize = 8 << 20;
/// How many tables a statement may name. A join has 61 at most; triggers and cascades add to that.
const OPEN_MAX: usize = 4_096;

impl TableMapHead {
    /// Reads the head of an event's body (after the common header).
    ///
    /// # Errors
    /// Fewer than eight bytes.
    pub fn parse(body: &[u8]) -> Result<Self, TableMapError> {
        let mut r = Reader::new(body);
        Ok(Self { table_id: r.u48()?, flags: r.u16()? })
    }
}

/// Reads the body of a table map (after the common header, without the checksum) into a table version.
///
/// # Errors
/// What does not add up, or a column type that cannot be read.
pub fn parse_table_map(body: &[u8]) -> Result<TableVersion, TableMapError> {
    let mut r = Reader::new(body);
    r.u48()?;
    let flags = r.u16()?;
    let schema = name(&mut r)?;
    let table = name(&mut r)?;
    let types = r.lenenc_bytes()?;
    if types.is_empty() || types.len() > COLUMNS_MAX {
        return Err(TableMapError::Malformed("a table without columns, or of more than 4,096"));
    }
    let mut metadata = Reader::new(r.lenenc_bytes()?);
    let nullable = r.take(types.len().div_ceil(8))?;
    let optional = OptionalMetadata::parse(r.rest())?;

    let mut columns = Vec::with_capacity(types.len());
    for (index, type_code) in types.iter().enumerate() {
        let unsupported = TableMapError::UnsupportedColumnType { column: index, type_code: *type_code };
        columns.push(Column {
            name: String::new(),
            column_type: column_type(*type_code, &mut metadata)?.ok_or(unsupported)?,
            nullable: bit(nullable, index),
            visible: true,
        });
    }
    if !metadata.is_empty() {
        return Err(TableMapError::Malformed("column metadata left over"));
    }
    let mut facts = TableFacts {
        generated_invisible_primary_key: flags & GENERATED_INVISIBLE_PRIMARY_KEY != 0,
        ..TableFacts::default()
    };
    optional.apply(&mut columns, &mut facts)?;
    if !facts.names_known {
        for (n, column) in (1u32..).zip(&mut columns) {
            column.name = format!("@{n}");
        }
    }
    Ok(TableVersion::new(schema, table, columns, facts))
}

/// The table maps of a stream: which tables the open statement may write to, and what was parsed
/// before.
#[derive(Default)]
pub struct TableMaps {
    remembered: BTreeMap<u64, Remembered>,
    /// What is remembered, by description, and under how many table ids.
    versions: BTreeMap<Arc<[u8]>, (Arc<TableVersion>, usize)>,
    remembered_bytes: usize,
    open: Vec<(u64, Arc<TableVersion>)>,
}

struct Remembered {
    /// The event's body from the flags on: all that describes the table.
    description: Arc<[u8]>,
    version: Arc<TableVersion>,
}

impl fmt::Debug for TableMaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableMaps({} open, {} remembered)", self.open.len(), self.remembered.len())
    }
}

impl TableMaps {
    /// Nothing open, nothing remembered.
    #[must_use]
    pub const fn new() -> Self {
        Self { remembered: BTreeMap::new(), versions: BTreeMap::new(), remembered_bytes: 0, open: Vec::new() }
    }

    /// Takes the body of a table map and opens its table for the row events that follow. The same
    /// description gives the same `Arc`, also under another table id.
    ///
    /// # Errors
    /// As [`parse_table_map`]; nothing is opened then.
    pub fn open(&mut self, body: &[u8]) -> Result<Arc<TableVersion>, TableMapError> {
        self.open_with(body, |_| {})
    }

    /// As [`TableMaps::open`]; a version that is new is handed to `adapt` first.
    ///
    /// # Errors
    /// As [`parse_table_map`]; nothing is opened then.
    pub fn open_with(
        &mut self,
        body: &[u8],
        adapt: impl FnOnce(&mut TableVersion),
    ) -> Result<Arc<TableVersion>, TableMapError> {
        let head = TableMapHead::parse(body)?;
        let description = body.get(HEAD_LEN.saturating_sub(2)..).unwrap_or_default();
        let version = match self.remembered.get(&head.table_id) {
            Some(known) if *known.description == *description => Arc::clone(&known.version),
            Some(_) | None => self.learn(head.table_id, description, body, adapt)?,
        };
        if let Some((_, open)) = self.open.iter_mut().find(|(id, _)| *id == head.table_id) {
            *open = Arc::clone(&version);
        } else if self.open.len() < OPEN_MAX {
            self.open.push((head.table_id, Arc::clone(&version)));
        } else {
            return Err(TableMapError::Malformed("a statement of more than 4,096 tables"));
        }
        Ok(version)
    }

    /// The table that a row event of the open statement names; `None` is `table_map_missing`.
    #[must_use]
    pub fn get(&self, table_id: u64) -> Option<&Arc<TableVersion>> {
        self.open.iter().find(|(id, _)| *id == table_id).map(|(_, version)| version)
    }

    /// The statement is over (`STMT_END_F`): its tables are closed, but remembered.
    pub fn close_all(&mut self) {
        self.open.clear();
    }

    /// Forgets everything (another source, another file of another server).
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    #[cold]
    fn learn(
        &mut self,
        table_id: u64,
        description: &[u8],
        body: &[u8],
        adapt: impl FnOnce(&mut TableVersion),
    ) -> Result<Arc<TableVersion>, TableMapError> {
        let same = self.versions.get_key_value(description);
        let (description, version) = match same {
            Some((description, (version, _))) => (Arc::clone(description), Arc::clone(version)),
            None => {
                let mut version = parse_table_map(body)?;
                adapt(&mut version);
                (Arc::from(description), Arc::new(version))
            }
        };
        self.forget(table_id);
        // Table ids only grow on a server: the smallest is the longest unused, nearly always.
        while self.remembered.len() >= REMEMBERED_MAX
            || self.remembered_bytes.saturating_add(description.len()) > REMEMBERED_BYTES_MAX
        {
            let Some((&oldest, _)) = self.remembered.first_key_value() else { return Ok(version) };
            self.forget(oldest);
        }
        self.remembered_bytes = self.remembered_bytes.saturating_add(description.len());
        let under = self.versions.entry(Arc::clone(&description)).or_insert((Arc::clone(&version), 0));
        under.1 = under.1.saturating_add(1);
        self.remembered.insert(table_id, Remembered { description, version: Arc::clone(&version) });
        Ok(version)
    }

    fn forget(&mut self, table_id: u64) {
        let Some(known) = self.remembered.remove(&table_id) else { return };
        self.remembered_bytes = self.remembered_bytes.saturating_sub(known.description.len());
        if let Some((_, under)) = self.versions.get_mut(&known.description) {
            *under = under.saturating_sub(1);
            if *under == 0 {
                self.versions.remove(&known.description);
            }
        }
    }
}

/// Bit `index` of a bitmap whose first bit is the least significant.
fn bit(bitmap: &[u8], index: usize) -> bool {
    bitmap.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

fn name(r: &mut Reader<'_>) -> Result<String, TableMapError> {
    let bytes = r.lenenc_bytes()?;
    if r.u8()? != 0 {
        return Err(TableMapError::Malformed("a name without its NUL"));
    }
    if bytes.len() > NAME_LEN {
        return Err(TableMapError::Malformed("a name of more than 64 characters"));
    }
    identifier(bytes)
}

/// Identifiers are utf8mb3 in the binlog, whatever the client's character set.
pub(super) fn identifier(bytes: &[u8]) -> Result<String, TableMapError> {
    core::str::from_utf8(bytes)
        .map(String::from)
        .map_err(|_| TableMapError::Malformed("a name that is not UTF-8"))
}

/// The type of a column from its code and metadata, signed and without collation, labels and the
/// like, which the optional metadata adds. `None`: not supported.
///
/// DECIMAL of before 5.0 (0) has its length neither in the table map nor in the row: the server's own
/// `mysqlbinlog` says "not enough metadata to display the value". NULL (6) and codes 20, 243 and 244 "cannot
/// exist in a binlog" (`rows_event.h`).
fn column_type(code: u8, metadata: &mut Reader<'_>) -> Result<Option<ColumnType>, TableMapError> {
    let malformed = TableMapError::Malformed("impossible column metadata");
    let exactly = |found: u8, want: u8| if found == want { Ok(()) } else { Err(malformed) };
    let fsp = |found: u8| if found <= 6 { Ok(found) } else { Err(malformed) };
    Ok(Some(match code {
        1 => ColumnType::TinyInt { unsigned: false },
        2 => ColumnType::SmallInt { unsigned: false },
        3 => ColumnType::Int { unsigned: false },
        4 => {
            exactly(metadata.u8()?, 4)?;
            ColumnType::Float { unsigned: false }
        }
        5 => {
            exactly(metadata.u8()?, 8)?;
            ColumnType::Double { unsigned: false }
        }
        7 => ColumnType::OldTimestamp,
        8 => ColumnType::BigInt { unsigned: false },
        9 => ColumnType::MediumInt { unsigned: false },
        10 | 14 => ColumnType::Date,
        11 => ColumnType::OldTime,
        12 => ColumnType::OldDateTime,
        13 => ColumnType::Year,
        15 => ColumnType::Varchar { bytes_max: metadata.u16()?, collation: None },
        16 => {
            let [odd_bits, bytes] = metadata.array()?;
            let bits = bytes.checked_mul(8).and_then(|bits| bits.checked_add(odd_bits)).ok_or(malformed)?;
            if odd_bits > 7 || bits == 0 || bits > 64 {
                return Err(malformed);
            }
            ColumnType::Bit { bits }
        }
        17 => ColumnType::Timestamp { fsp: fsp(metadata.u8()?)? },
        18 => ColumnType::DateTime { fsp: fsp(metadata.u8()?)? },
        19 => ColumnType::Time { fsp: fsp(metadata.u8()?)? },
        242 => {
            exactly(metadata.u8()?, 4)?;
            ColumnType::Vector { dimension: None }
        }
        245 => {
            exactly(metadata.u8()?, 4)?;
            ColumnType::Json
        }
        246 => {
            let [precision, scale] = metadata.array()?;
            if !is_valid_decimal(precision, scale) {
                return Err(malformed);
            }
            ColumnType::Decimal { precision, scale, unsigned: false }
        }
        249..=252 => match metadata.u8()? {
            length_bytes @ 1..=4 => ColumnType::Text { length_bytes, collation: None },
            _ => return Err(malformed),
        },
        247 | 248 | 254 => return string_type(metadata.array()?).map(Some).ok_or(malformed),
        // VARCHAR of a table that 4.1 made and nobody altered: a CHAR that is called VAR_STRING
        // (`Field_string::type`, up to 5.7).
        253 => match string_type(metadata.array()?) {
            Some(ColumnType::Char { bytes_max, collation }) => ColumnType::Varchar { bytes_max, collation },
            Some(_) | None => return Err(malformed),
        },
        255 => {
            exactly(metadata.u8()?, 4)?;
            ColumnType::Geometry { kind: GeometryKind::Geometry }
        }
        _ => return Ok(None),
    }))
}

/// CHAR, ENUM and SET share a code: the first byte of the metadata is the real type, in which the two
/// high bits of a CHAR's length are hidden, inverted (`Field_string::do_save_field_metadata`).
fn string_type([real_type, length]: [u8; 2]) -> Option<ColumnType> {
    let labels = || Arc::new(Labels::unknown(None));
    match (real_type | 0x30, real_type & 0x30) {
        (247, 0x30) => matches!(length, 1 | 2).then(|| ColumnType::Enum { labels: labels(), bytes: length }),
        (248, 0x30) => {
            matches!(length, 1..=4 | 8).then(|| ColumnType::Set { labels: labels(), bytes: length })
        }
        (254, high) => {
            let bytes_max = u16::from(high ^ 0x30) << 4 | u16::from(length);
            Some(ColumnType::Char { bytes_max, collation: None })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
