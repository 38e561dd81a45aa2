//! What a table looked like when a row was written: its names, columns and key.
//!
//! With `binlog_row_metadata=FULL` all of it comes with the rows (`TABLE_MAP_EVENT`), so nothing is
//! looked up on the side and an old row under a newer schema still decodes right.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};
use core::fmt;

use super::plan::Plan;
use crate::binlog::rows::RowsKind;

/// The collation id of binary strings (`binary`), by which BINARY, VARBINARY and BLOB are told
/// from CHAR, VARCHAR and TEXT: on the wire they share one type code.
pub const BINARY_COLLATION: u16 = 63;

/// One version of a table. Shared by every row event written under it: two events carry the same
/// `Arc` when, and only when, the table map before them said the same.
///
/// `Debug` shows names, types and counts only; labels of ENUM and SET are data and stay hidden.
#[derive(Clone, PartialEq, Eq)]
pub struct TableVersion {
    schema: String,
    table: String,
    columns: Box<[Column]>,
    primary_key: Box<[KeyPart]>,
    names_known: bool,
    signedness_known: bool,
    collations_known: bool,
    generated_invisible_primary_key: bool,
    generated: Generated,
    plan: Plan,
    keys: Keys,
}

/// Which columns are generated. A table map does not say, so it makes no other version of a table.
#[derive(Clone, Default)]
struct Generated(Option<Box<[Generation]>>);

impl PartialEq for Generated {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Generated {}

/// How the values of a column come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// As they are given.
    Given,
    /// Computed from other columns; a server that copies the table leaves them as they are: they are VIRTUAL, or STORED
    /// and of an expression that comes to the same in any session.
    Computed,
    /// Computed and STORED; the expression may come to something else in another session (`lc_time_names`, `sql_mode`,
    /// …), and does when a server copies the table in that session. There are no row events of that.
    BySession,
}

/// Names as they stand in JSON: those of the columns are keys of an object, with quotes and colon and a comma in
/// front, in one piece. Written once for every row there is.
#[derive(Clone, PartialEq, Eq)]
struct Keys {
    /// `,"schema":"…","table":"…"`.
    names: String,
    /// What stands before the first image of a change: `,{"op":"…"`, the names, and `,"before":` or `,"after":`.
    inserted: String,
    updated: String,
    deleted: String,
    text: String,
    ends: Box<[usize]>,
    /// Those that are short, once more: in the first bytes of an array, and how many they are; else 0.
    short: Box<[ShortKey]>,
}

/// A text in the first bytes of an array, and how many they are.
type ShortKey = ([u8; 32], u8);

impl Keys {
    fn new(schema: &str, table: &str, columns: &[Column]) -> Self {
        let mut names = String::from(",\"schema\":");
        super::json::escape::quote(&mut names, schema);
        names.push_str(",\"table\":");
        super::json::escape::quote(&mut names, table);
        let mut text = String::new();
        let mut ends = Vec::with_capacity(columns.len());
        let mut short = Vec::with_capacity(columns.len());
        for column in columns {
            let start = text.len();
            text.push(',');
            super::json::escape::quote(&mut text, &column.name);
            text.push(':');
            ends.push(text.len());
            short.push(short_key(text.get(start..).unwrap_or_default().as_bytes()));
        }
        let head = |op: &str, image: &str| alloc::format!(",{{\"op\":\"{op}\"{names},\"{image}\":");
        Self {
            inserted: head("insert", "after"),
            updated: head("update", "before"),
            deleted: head("delete", "before"),
            names,
            text,
            ends: ends.into_boxed_slice(),
            short: short.into_boxed_slice(),
        }
    }
}

fn short_key(key: &[u8]) -> ShortKey {
    let mut short = ([0; 32], 0);
    if let (Some(to), Ok(len), true) = (short.0.get_mut(..key.len()), u8::try_from(key.len()), key.is_ascii())
    {
        to.copy_from_slice(key);
        short.1 = len;
    }
    short
}

/// One column of the primary key, in key order (which need not be column order).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Index into [`TableVersion::columns`].
    pub column: usize,
    /// How many characters (bytes, for binary strings) of the column are in the key; 0: all of it.
    pub prefix: u32,
}

/// A column as the table map describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name; `@1`, `@2`, … where the source wrote none (`binlog_row_metadata=MINIMAL`,
    /// servers before 8.0).
    pub name: String,
    /// Type, with all that is needed to read a value.
    pub column_type: ColumnType,
    /// May hold NULL.
    pub nullable: bool,
    /// `false` for an INVISIBLE column. `true` where the source did not say.
    pub visible: bool,
}

/// Every type a MySQL column can have in a binlog.
///
/// Sources: `libs/mysql/binlog/event/rows_event.h` (the table of column types) and the manual,
/// "Data Types". `fsp` is the number of fractional digits shown, 0 to 6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// TINYINT, 8 bits. BOOL is TINYINT(1) to the binlog.
    TinyInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// SMALLINT, 16 bits.
    SmallInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// MEDIUMINT, 24 bits.
    MediumInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// INT, 32 bits.
    Int {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// BIGINT, 64 bits.
    BigInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// FLOAT.
    Float {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// DOUBLE.
    Double {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// DECIMAL(precision, scale).
    Decimal {
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits behind the point, 0 to 30.
        scale: u8,
        /// UNSIGNED.
        unsigned: bool,
    },
    /// BIT(bits), 1 to 64.
    Bit {
        /// Width in bits.
        bits: u8,
    },
    /// YEAR.
    Year,
    /// DATE.
    Date,
    /// TIME(fsp).
    Time {
        /// Fractional digits.
        fsp: u8,
    },
    /// DATETIME(fsp).
    DateTime {
        /// Fractional digits.
        fsp: u8,
    },
    /// TIMESTAMP(fsp).
    Timestamp {
        /// Fractional digits.
        fsp: u8,
    },
    /// TIME in the format before MySQL 5.6.4.
    OldTime,
    /// DATETIME in the format before MySQL 5.6.4.
    OldDateTime,
    /// TIMESTAMP in the format before MySQL 5.6.4.
    OldTimestamp,
    /// CHAR. The server stores it without trailing spaces, and so it is given.
    Char {
        /// Longest value, in bytes.
        bytes_max: u16,
        /// Collation id; `None` where the source did not say (servers before 8.0): it may then
        /// as well be BINARY.
        collation: Option<u16>,
    },
    /// VARCHAR.
    Varchar {
        /// Longest value, in bytes.
        bytes_max: u16,
        /// Collation id; `None` where the source did not say: it may then as well be VARBINARY.
        collation: Option<u16>,
    },
    /// TINYTEXT, TEXT, MEDIUMTEXT, LONGTEXT.
    Text {
        /// Width of the length, 1 to 4 bytes: TINYTEXT to LONGTEXT.
        length_bytes: u8,
        /// Collation id; `None` where the source did not say: it may then as well be a BLOB.
        collation: Option<u16>,
    },
    /// BINARY(N): values are given padded back to N.
    Binary {
        /// N.
        bytes: u16,
    },
    /// VARBINARY.
    Varbinary {
        /// Longest value, in bytes.
        bytes_max: u16,
    },
    /// TINYBLOB, BLOB, MEDIUMBLOB, LONGBLOB.
    Blob {
        /// Width of the length, 1 to 4 bytes: TINYBLOB to LONGBLOB.
        length_bytes: u8,
    },
    /// ENUM.
    Enum {
        /// The members, in order; index 1 is the first.
        labels: Arc<Labels>,
        /// Width of an index on the wire, 1 or 2 bytes.
        bytes: u8,
    },
    /// SET.
    Set {
        /// The members, in order; bit 0 is the first.
        labels: Arc<Labels>,
        /// Width of the bitmap on the wire, 1, 2, 3, 4 or 8 bytes.
        bytes: u8,
    },
    /// JSON.
    Json,
    /// GEOMETRY and its kinds.
    Geometry {
        /// Which; [`GeometryKind::Geometry`] where the source did not say.
        kind: GeometryKind,
    },
    /// VECTOR(dimension).
    Vector {
        /// Most entries of a value; `None` where the source did not say.
        dimension: Option<u32>,
    },
}

/// The members of an ENUM or SET, in one piece: an ENUM may have 65,535.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Labels {
    bytes: Box<[u8]>,
    /// Where each member ends; `None`: the source did not write them.
    ends: Option<Box<[u32]>>,
    collation: Option<u16>,
}

impl Labels {
    /// Members in order, as bytes in the character set of the collation id.
    #[must_use]
    pub fn new<'a>(members: impl IntoIterator<Item = &'a [u8]>, collation: Option<u16>) -> Self {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for member in members {
            bytes.extend_from_slice(member);
            ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        Self { bytes: bytes.into_boxed_slice(), ends: Some(ends.into_boxed_slice()), collation }
    }

    /// Members that the source did not write (`binlog_row_metadata=MINIMAL`).
    #[must_use]
    pub fn unknown(collation: Option<u16>) -> Self {
        Self { collation, ..Self::default() }
    }

    /// How many members; `None` where the source did not write them.
    #[must_use]
    pub fn count(&self) -> Option<usize> {
        self.ends.as_ref().map(|ends| ends.len())
    }

    /// The member at `index`, from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let ends = self.ends.as_ref()?;
        let end = *ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(start as usize..end as usize)
    }

    /// The collation id, where the source wrote it.
    #[must_use]
    pub const fn collation(&self) -> Option<u16> {
        self.collation
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rule 1: labels are values.
        match self.count() {
            Some(count) => write!(f, "Labels({count})"),
            None => f.write_str("Labels(unknown)"),
        }
    }
}

/// The kind of a geometry column (`Field::geometry_type`, `sql/spatial.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryKind {
    /// Any.
    Geometry,
    /// POINT.
    Point,
    /// LINESTRING.
    LineString,
    /// POLYGON.
    Polygon,
    /// MULTIPOINT.
    MultiPoint,
    /// MULTILINESTRING.
    MultiLineString,
    /// MULTIPOLYGON.
    MultiPolygon,
    /// GEOMETRYCOLLECTION.
    GeometryCollection,
}

impl GeometryKind {
    pub(crate) const fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            0 => Self::Geometry,
            1 => Self::Point,
            2 => Self::LineString,
            3 => Self::Polygon,
            4 => Self::MultiPoint,
            5 => Self::MultiLineString,
            6 => Self::MultiPolygon,
            7 => Self::GeometryCollection,
            _ => return None,
        })
    }

    pub(crate) const fn sql(self) -> &'static str {
        match self {
            Self::Geometry => "geometry",
            Self::Point => "point",
            Self::LineString => "linestring",
            Self::Polygon => "polygon",
            Self::MultiPoint => "multipoint",
            Self::MultiLineString => "multilinestring",
            Self::MultiPolygon => "multipolygon",
            Self::GeometryCollection => "geomcollection",
        }
    }
}

/// What a table map says beyond its columns; all of it `false` or empty for an old source.
#[derive(Clone, Debug, Default)]
pub struct TableFacts {
    /// Columns of the primary key, in key order.
    pub primary_key: Vec<KeyPart>,
    /// Column names were written.
    pub names_known: bool,
    /// Which numbers are UNSIGNED was written, or there is no number.
    pub signedness_known: bool,
    /// Collations were written, or there is no string.
    pub collations_known: bool,
    /// The key is the server's own (`sql_generate_invisible_primary_key`).
    pub generated_invisible_primary_key: bool,
    /// How the values of its columns come about, where the table was described by its definition.
    pub generated: Option<Vec<Generation>>,
}

impl TableVersion {
    /// A table of these columns, with its decode plan.
    #[must_use]
    pub fn new(schema: String, table: String, columns: Vec<Column>, facts: TableFacts) -> Self {
        let plan = Plan::new(&columns);
        let keys = Keys::new(&schema, &table, &columns);
        Self {
            schema,
            table,
            columns: columns.into_boxed_slice(),
            primary_key: facts.primary_key.into_boxed_slice(),
            names_known: facts.names_known,
            signedness_known: facts.signedness_known,
            collations_known: facts.collations_known,
            generated_invisible_primary_key: facts.generated_invisible_primary_key,
            generated: Generated(facts.generated.map(Vec::into_boxed_slice)),
            plan,
            keys,
        }
    }

    /// The schema (database) of the table.
    #[must_use]
    #[inline]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The table's name.
    #[must_use]
    #[inline]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The columns, in order. Generated columns are among them as any other: the binlog does not
    /// tell them apart.
    #[must_use]
    #[inline]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column's index by its exact name.
    #[must_use]
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The primary key in key order; empty where there is none **or** the source did not say
    /// (then [`TableVersion::names_known`] is false too).
    #[must_use]
    pub fn primary_key(&self) -> &[KeyPart] {
        &self.primary_key
    }

    /// Whether the source wrote column names (`binlog_row_metadata=FULL`). Without them a stream
    /// halts with `column_names_missing`; old files are shown with `@1`, `@2`, ….
    #[must_use]
    pub const fn names_known(&self) -> bool {
        self.names_known
    }

    /// Whether the source wrote which numbers are UNSIGNED (every server from 8.0.1 does, also with
    /// MINIMAL). Where not, all were read as signed and may be wrong above the signed range.
    #[must_use]
    pub const fn signedness_known(&self) -> bool {
        self.signedness_known
    }

    /// Whether the source wrote the collations of strings (every server from 8.0.1 does).
    #[must_use]
    pub const fn collations_known(&self) -> bool {
        self.collations_known
    }

    /// Whether the primary key is the invisible one the server made itself.
    #[must_use]
    pub const fn generated_invisible_primary_key(&self) -> bool {
        self.generated_invisible_primary_key
    }

    /// Whether the server computes the column's values from others; `None` where that is not known: the binlog does not
    /// tell generated columns apart, the initial copy does.
    #[must_use]
    pub fn generation(&self, column: usize) -> Option<Generation> {
        self.generated.0.as_ref()?.get(column).copied()
    }

    /// Leaves the columns out of which `captured` says no: their values read as
    /// [`super::Value::Absent`] and are never decoded.
    pub fn leave_out(&mut self, captured: impl Fn(&str) -> bool) {
        for (index, column) in self.columns.iter().enumerate() {
            if !captured(&column.name) {
                self.plan.leave_out(index);
            }
        }
    }

    /// Whether this column is left out.
    #[must_use]
    #[inline]
    pub fn is_left_out(&self, column: usize) -> bool {
        self.plan.steps.get(column).is_some_and(|step| step.kind == super::plan::Kind::LeftOut)
    }

    /// Schema and table as members of a JSON object, behind another: `,"schema":"…","table":"…"`.
    #[inline]
    pub(crate) fn json_names(&self) -> &str {
        &self.keys.names
    }

    /// What stands in JSON before the first image of a change: `{"op":"insert","schema":"…","table":"…","after":`, and
    /// `"before"` of others. A comma in front of it if it is not the `first`.
    #[inline]
    pub(crate) fn json_head(&self, kind: RowsKind, first: bool) -> &str {
        let head = match kind {
            RowsKind::Insert => &self.keys.inserted,
            RowsKind::Update | RowsKind::PartialUpdate => &self.keys.updated,
            RowsKind::Delete => &self.keys.deleted,
        };
        if first { head.get(1..).unwrap_or_default() } else { head }
    }

    /// The column's name as the key of a JSON object, behind another: `,"name":`.
    #[inline]
    pub(crate) fn json_key(&self, column: usize) -> &str {
        let start = column.checked_sub(1).and_then(|before| self.keys.ends.get(before)).copied().unwrap_or(0);
        let end = self.keys.ends.get(column).copied().unwrap_or(start);
        self.keys.text.get(start..end).unwrap_or_default()
    }

    /// [`Self::json_key`] in the first bytes of an array, and how many they are; `None` if it does not fit there.
    #[inline]
    pub(crate) fn short_json_key(&self, column: usize) -> Option<(&[u8; 32], usize)> {
        let (key, len) = self.keys.short.get(column)?;
        (*len != 0).then_some((key, usize::from(*len)))
    }

    #[inline]
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl fmt::Debug for TableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableVersion({}.{}, {} columns)", self.schema, self.table, self.columns.len())
    }
}

impl ColumnType {
    /// The type as SQL writes it, as far as the binlog knows it (CHAR lengths are in bytes there).
    #[must_use]
    pub const fn type_name(&self) -> TypeName<'_> {
        TypeName(self)
    }

    /// UNSIGNED, for numbers.
    #[must_use]
    pub const fn is_unsigned(&self) -> bool {
        match self {
            Self::TinyInt { unsigned }
            | Self::SmallInt { unsigned }
            | Self::MediumInt { unsigned }
            | Self::Int { unsigned }
            | Self::BigInt { unsigned }
            | Self::Float { unsigned }
            | Self::Double { unsigned }
            | Self::Decimal { unsigned, .. } => *unsigned,
            Self::Bit { .. } | Self::Year => true,
            Self::Date
            | Self::Time { .. }
            | Self::DateTime { .. }
            | Self::Timestamp { .. }
            | Self::OldTime
            | Self::OldDateTime
            | Self::OldTimestamp
            | Self::Char { .. }
            | Self::Varchar { .. }
            | Self::Text { .. }
            | Self::Binary { .. }
            | Self::Varbinary { .. }
            | Self::Blob { .. }
            | Self::Enum { .. }
            | Self::Set { .. }
            | Self::Json
            | Self::Geometry { .. }
            | Self::Vector { .. } => false,
        }
    }

    /// The collation id of text, ENUM and SET, where the source wrote it.
    #[must_use]
    pub fn collation(&self) -> Option<u16> {
        match self {
            Self::Char { collation, .. } | Self::Varchar { collation, .. } | Self::Text { collation, .. } => {
                *collation
            }
            Self::Enum { labels, .. } | Self::Set { labels, .. } => labels.collation(),
            Self::Binary { .. } | Self::Varbinary { .. } | Self::Blob { .. } => Some(BINARY_COLLATION),
            Self::TinyInt { .. }
            | Self::SmallInt { .. }
            | Self::MediumInt { .. }
            | Self::Int { .. }
            | Self::BigInt { .. }
            | Self::Float { .. }
            | Self::Double { .. }
            | Self::Decimal { .. }
            | Self::Bit { .. }
            | Self::Year
            | Self::Date
            | Self::Time { .. }
            | Self::DateTime { .. }
            | Self::Timestamp { .. }
            | Self::OldTime
            | Self::OldDateTime
            | Self::OldTimestamp
            | Self::Json
            | Self::Geometry { .. }
            | Self::Vector { .. } => None,
        }
    }
}

/// Writes a column type as SQL does. Made by [`ColumnType::type_name`].
#[derive(Clone, Copy, Debug)]
pub struct TypeName<'a>(&'a ColumnType);

impl fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ColumnType::TinyInt { .. } => f.write_str("tinyint")?,
            ColumnType::SmallInt { .. } => f.write_str("smallint")?,
            ColumnType::MediumInt { .. } => f.write_str("mediumint")?,
            ColumnType::Int { .. } => f.write_str("int")?,
            ColumnType::BigInt { .. } => f.write_str("bigint")?,
            ColumnType::Float { .. } => f.write_str("float")?,
            ColumnType::Double { .. } => f.write_str("double")?,
            ColumnType::Decimal { precision, scale, .. } => write!(f, "decimal({precision},{scale})")?,
            ColumnType::Bit { bits } => return write!(f, "bit({bits})"),
            ColumnType::Year => return f.write_str("year"),
            ColumnType::Date => f.write_str("date")?,
            ColumnType::Time { fsp } => with_fsp(f, "time", *fsp)?,
            ColumnType::DateTime { fsp } => with_fsp(f, "datetime", *fsp)?,
            ColumnType::Timestamp { fsp } => with_fsp(f, "timestamp", *fsp)?,
            ColumnType::OldTime => f.write_str("time")?,
            ColumnType::OldDateTime => f.write_str("datetime")?,
            ColumnType::OldTimestamp => f.write_str("timestamp")?,
            ColumnType::Char { bytes_max, .. } => write!(f, "char({bytes_max})")?,
            ColumnType::Varchar { bytes_max, .. } => write!(f, "varchar({bytes_max})")?,
            ColumnType::Text { length_bytes, .. } => write!(f, "{}text", size_prefix(*length_bytes))?,
            ColumnType::Binary { bytes } => write!(f, "binary({bytes})")?,
            ColumnType::Varbinary { bytes_max } => write!(f, "varbinary({bytes_max})")?,
            ColumnType::Blob { length_bytes } => write!(f, "{}blob", size_prefix(*length_bytes))?,
            ColumnType::Enum { .. } => f.write_str("enum")?,
            ColumnType::Set { .. } => f.write_str("set")?,
            ColumnType::Json => f.write_str("json")?,
            ColumnType::Geometry { kind } => f.write_str(kind.sql())?,
            ColumnType::Vector { dimension: Some(n) } => write!(f, "vector({n})")?,
            ColumnType::Vector { dimension: None } => f.write_str("vector")?,
        }
        if self.0.is_unsigned() { f.write_str(" unsigned") } else { Ok(()) }
    }
}

fn with_fsp(f: &mut fmt::Formatter<'_>, name: &str, fsp: u8) -> fmt::Result {
    if fsp == 0 { f.write_str(name) } else { write!(f, "{name}({fsp})") }
}

const fn size_prefix(length_bytes: u8) -> &'static str {
    match length_bytes {
        1 => "tiny",
        3 => "medium",
        4 => "long",
        _ => "",
    }
}
