//! Types as SQL writes them, and what a value becomes when its column's type changes.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use super::charset::Charset as ClientCharset;
use super::column::RowValue;
use super::cursor::{Cursor, Read, Refused};
use super::lex::TokenKind;
use super::literal::{self, Literal};
use super::{Context, lower_case};
use crate::binlog::sql_mode::{NO_BACKSLASH_ESCAPES, REAL_AS_FLOAT};
use crate::value::charset::Charset;
use crate::value::{ColumnType, Date, GeometryKind};

/// A type, as far as it decides about values. `Display` writes it as SQL, and [`DeclaredType::parse`]
/// reads that again.
#[derive(Clone, PartialEq, Eq)]
pub enum DeclaredType {
    /// TINYINT to BIGINT.
    Integer {
        /// 1, 2, 3, 4 or 8.
        bytes: u8,
        /// UNSIGNED.
        unsigned: bool,
    },
    /// FLOAT.
    Float {
        /// UNSIGNED.
        unsigned: bool,
        /// FLOAT(M,D): values are rounded when stored. The log does not tell.
        rounded: bool,
    },
    /// DOUBLE.
    Double {
        /// UNSIGNED.
        unsigned: bool,
        /// DOUBLE(M,D).
        rounded: bool,
    },
    /// DECIMAL.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
        /// UNSIGNED.
        unsigned: bool,
    },
    /// BIT.
    Bit {
        /// Width.
        bits: u8,
    },
    /// YEAR.
    Year,
    /// DATE.
    Date,
    /// TIME.
    Time {
        /// Fractional digits.
        fsp: u8,
    },
    /// DATETIME.
    DateTime {
        /// Fractional digits.
        fsp: u8,
    },
    /// TIMESTAMP.
    Timestamp {
        /// Fractional digits.
        fsp: u8,
    },
    /// CHAR.
    Char {
        /// Longest value, in characters.
        characters: u32,
    },
    /// VARCHAR.
    Varchar {
        /// Longest value, in characters.
        characters: u32,
    },
    /// TINYTEXT to LONGTEXT.
    Text {
        /// Width of the length.
        length_bytes: u8,
    },
    /// BINARY.
    Binary {
        /// Length.
        bytes: u32,
    },
    /// VARBINARY.
    Varbinary {
        /// Longest value.
        bytes: u32,
    },
    /// TINYBLOB to LONGBLOB.
    Blob {
        /// Width of the length.
        length_bytes: u8,
    },
    /// ENUM, with its members.
    Enum(Vec<String>),
    /// SET, with its members.
    Set(Vec<String>),
    /// JSON.
    Json,
    /// GEOMETRY and its kinds.
    Geometry(GeometryKind),
    /// VECTOR.
    Vector {
        /// Most entries.
        dimension: u32,
    },
}

/// What happens to a value that is there when its column's type changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// It stays as it is.
    Same,
    /// Its text gets so many zeros more behind the point, which it gets too if it has none.
    Zeros {
        /// How many.
        count: u8,
        /// Whether there is no point yet.
        point: bool,
    },
}

impl fmt::Debug for DeclaredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rule 1: members are values.
        if let Self::Enum(members) | Self::Set(members) = self {
            write!(f, "{} members", members.len())
        } else {
            write!(f, "{self}")
        }
    }
}

impl DeclaredType {
    /// The type of a column of a table map; `None` where the source did not write all of it.
    #[must_use]
    pub fn of(column_type: &ColumnType) -> Option<Self> {
        let characters = |bytes: u16, collation: Option<u16>| {
            let charset = Charset::of_collation(collation?)?;
            u32::from(bytes).checked_div(bytes_per_character(charset))
        };
        Some(match column_type {
            ColumnType::TinyInt { unsigned } => Self::Integer { bytes: 1, unsigned: *unsigned },
            ColumnType::SmallInt { unsigned } => Self::Integer { bytes: 2, unsigned: *unsigned },
            ColumnType::MediumInt { unsigned } => Self::Integer { bytes: 3, unsigned: *unsigned },
            ColumnType::Int { unsigned } => Self::Integer { bytes: 4, unsigned: *unsigned },
            ColumnType::BigInt { unsigned } => Self::Integer { bytes: 8, unsigned: *unsigned },
            ColumnType::Float { unsigned } => Self::Float { unsigned: *unsigned, rounded: false },
            ColumnType::Double { unsigned } => Self::Double { unsigned: *unsigned, rounded: false },
            ColumnType::Decimal { precision, scale, unsigned } => {
                Self::Decimal { precision: *precision, scale: *scale, unsigned: *unsigned }
            }
            ColumnType::Bit { bits } => Self::Bit { bits: *bits },
            ColumnType::Year => Self::Year,
            ColumnType::Date => Self::Date,
            ColumnType::Time { fsp } => Self::Time { fsp: *fsp },
            ColumnType::DateTime { fsp } => Self::DateTime { fsp: *fsp },
            ColumnType::Timestamp { fsp } => Self::Timestamp { fsp: *fsp },
            ColumnType::OldTime => Self::Time { fsp: 0 },
            ColumnType::OldDateTime => Self::DateTime { fsp: 0 },
            ColumnType::OldTimestamp => Self::Timestamp { fsp: 0 },
            ColumnType::Char { bytes_max, collation } => {
                Self::Char { characters: characters(*bytes_max, *collation)? }
            }
            ColumnType::Varchar { bytes_max, collation } => {
                Self::Varchar { characters: characters(*bytes_max, *collation)? }
            }
            ColumnType::Text { length_bytes, .. } => Self::Text { length_bytes: *length_bytes },
            ColumnType::Binary { bytes } => Self::Binary { bytes: (*bytes).into() },
            ColumnType::Varbinary { bytes_max } => Self::Varbinary { bytes: (*bytes_max).into() },
            ColumnType::Blob { length_bytes } => Self::Blob { length_bytes: *length_bytes },
            ColumnType::Enum { labels, .. } => Self::Enum(members_of(labels)?),
            ColumnType::Set { labels, .. } => Self::Set(members_of(labels)?),
            ColumnType::Json => Self::Json,
            ColumnType::Geometry { kind } => Self::Geometry(*kind),
            ColumnType::Vector { dimension } => Self::Vector { dimension: (*dimension)? },
        })
    }

    /// Reads what `Display` wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let context = Context {
            default_schema: b"",
            client_charset: 255,
            sql_mode: NO_BACKSLASH_ESCAPES,
            lower_case_table_names: 0,
            thread_specific: false,
        };
        let mut cursor = Cursor::new(text.as_bytes(), ClientCharset::Utf8, context);
        let found = Self::read(&mut cursor).ok()?;
        cursor.end().ok()?;
        Some(found)
    }

    /// Whether a table map can show this type as `other`: what it leaves out does not count.
    #[must_use]
    pub fn is_shown_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float { unsigned: a, .. }, Self::Float { unsigned: b, .. })
            | (Self::Double { unsigned: a, .. }, Self::Double { unsigned: b, .. }) => a == b,
            _ => self == other,
        }
    }

    /// Whether it has a character set.
    #[must_use]
    pub const fn has_charset(&self) -> bool {
        matches!(
            self,
            Self::Char { .. } | Self::Varchar { .. } | Self::Text { .. } | Self::Enum(_) | Self::Set(_)
        )
    }

    /// What a value of this type becomes in a column of type `to`; `None` where any could be lost or
    /// bent. Character sets are the caller's question.
    #[must_use]
    pub fn widened_to(&self, to: &Self) -> Option<Conversion> {
        let same = |holds: bool| holds.then_some(Conversion::Same);
        match (self, to) {
            (Self::Integer { bytes: a, unsigned: u }, Self::Integer { bytes: b, unsigned: v }) => {
                same((u == v && b >= a) || (*u && !*v && b > a))
            }
            (Self::Float { unsigned: u, .. }, Self::Float { unsigned: v, rounded: false })
            | (Self::Float { unsigned: u, .. }, Self::Double { unsigned: v, rounded: false })
            | (Self::Double { unsigned: u, .. }, Self::Double { unsigned: v, rounded: false }) => {
                same(u == v || (*u && !*v))
            }
            (
                Self::Decimal { precision: p, scale: s, unsigned: u },
                Self::Decimal { precision: q, scale: t, unsigned: v },
            ) => {
                let more_before = q.checked_sub(*t)? >= p.checked_sub(*s)?;
                let count = t.checked_sub(*s)?;
                let holds = more_before && (u == v || (*u && !*v));
                zeros(count, *s == 0).filter(|_| holds)
            }
            (Self::Bit { bits: a }, Self::Bit { bits: b }) => same(a <= b),
            (Self::Time { fsp: a }, Self::Time { fsp: b })
            | (Self::DateTime { fsp: a }, Self::DateTime { fsp: b }) => zeros(b.checked_sub(*a)?, *a == 0),
            // A TIMESTAMP that gets digits goes through the session's time zone and its doubled hour.
            (Self::Timestamp { fsp: a }, Self::Timestamp { fsp: b }) => same(a == b),
            (Self::Char { characters: a }, Self::Char { characters: b })
            | (Self::Varchar { characters: a }, Self::Varchar { characters: b }) => same(a <= b),
            (Self::Text { length_bytes: a }, Self::Text { length_bytes: b })
            | (Self::Blob { length_bytes: a }, Self::Blob { length_bytes: b }) => same(a <= b),
            (Self::Binary { bytes: a }, Self::Binary { bytes: b }) => same(a == b),
            (Self::Varbinary { bytes: a }, Self::Varbinary { bytes: b }) => same(a <= b),
            (Self::Enum(a), Self::Enum(b)) | (Self::Set(a), Self::Set(b)) => same(b.starts_with(a)),
            (Self::Vector { dimension: a }, Self::Vector { dimension: b }) => same(a <= b),
            (Self::Year, Self::Year) | (Self::Date, Self::Date) | (Self::Json, Self::Json) => {
                Some(Conversion::Same)
            }
            (Self::Geometry(a), Self::Geometry(b)) => same(a == b),
            _ => None,
        }
    }

    /// The value of a literal in a column of this type; `None` where it is not certain.
    pub(super) fn value_of(&self, literal: &Literal) -> Option<RowValue> {
        match self {
            Self::Integer { bytes, unsigned } => integer(literal.digits()?, *bytes, *unsigned),
            Self::Decimal { precision, scale, unsigned } => {
                decimal(literal.digits()?, *precision, *scale, *unsigned).map(RowValue::Text)
            }
            Self::Float { rounded: false, unsigned } => {
                #[allow(clippy::cast_possible_truncation, reason = "as Field_float::store does")]
                let value = f64::from(double(literal, *unsigned)? as f32);
                value.is_finite().then_some(RowValue::Real(value))
            }
            Self::Double { rounded: false, unsigned } => double(literal, *unsigned).map(RowValue::Real),
            Self::Float { rounded: true, .. } | Self::Double { rounded: true, .. } => None,
            Self::Bit { bits } => match literal {
                Literal::Bits(value) if *bits >= 64 || value >> *bits == 0 => unsigned_value(*value),
                Literal::Bits(_)
                | Literal::Null
                | Literal::Number(_)
                | Literal::Text(_)
                | Literal::Bytes(_) => None,
            },
            Self::Year => match literal.digits()?.parse::<i64>().ok()? {
                year @ 1901..=2155 if literal.digits()?.len() == 4 => Some(RowValue::Integer(year)),
                _ => None,
            },
            Self::Date => date(literal.ascii()?).then(|| literal.ascii().map(text))?,
            Self::DateTime { fsp } => date_time(literal.ascii()?, *fsp).map(RowValue::Text),
            Self::Time { fsp } => time(literal.ascii()?, *fsp).map(RowValue::Text),
            Self::Char { characters } => {
                let value = literal.ascii()?;
                fits(value, *characters).then(|| text(value.trim_end_matches(' ')))
            }
            Self::Varchar { characters } => {
                let value = literal.ascii()?;
                fits(value, *characters).then(|| text(value))
            }
            Self::Binary { bytes } => {
                let mut value = bytes_of(literal)?;
                let length = usize::try_from(*bytes).ok()?;
                if value.len() > length {
                    return None;
                }
                value.resize(length, 0);
                Some(RowValue::Bytes(value))
            }
            Self::Varbinary { bytes } => {
                let value = bytes_of(literal)?;
                (value.len() <= usize::try_from(*bytes).ok()?).then_some(RowValue::Bytes(value))
            }
            Self::Enum(members) => {
                let value = literal.ascii()?;
                members.iter().any(|member| member == value).then(|| text(value))
            }
            Self::Set(members) => set(literal.ascii()?, members).then(|| literal.ascii().map(text))?,
            Self::Timestamp { fsp } => timestamp(literal.ascii()?, *fsp).map(RowValue::Text),
            // These take no literal.
            Self::Text { .. } | Self::Blob { .. } | Self::Json | Self::Geometry(_) | Self::Vector { .. } => {
                None
            }
        }
    }

    /// The same for a literal in parentheses.
    pub(super) fn value_of_expression(&self, literal: &Literal) -> Option<RowValue> {
        // The most bytes of a type with so many bytes of length; a character of ASCII has four at most.
        let most = |length_bytes: u8| (1_u64 << (8 * u32::from(length_bytes.min(4)))).saturating_sub(1);
        match self {
            Self::Text { length_bytes } => {
                let value = literal.ascii()?;
                ((value.len() as u64).saturating_mul(4) <= most(*length_bytes)).then(|| text(value))
            }
            Self::Blob { length_bytes } => {
                let value = bytes_of(literal)?;
                (value.len() as u64 <= most(*length_bytes)).then_some(RowValue::Bytes(value))
            }
            Self::Json => literal.ascii().filter(|value| ["{}", "[]"].contains(value)).map(text),
            Self::Integer { .. }
            | Self::Decimal { .. }
            | Self::Float { .. }
            | Self::Double { .. }
            | Self::Bit { .. }
            | Self::Year
            | Self::Date
            | Self::DateTime { .. }
            | Self::Time { .. }
            | Self::Timestamp { .. }
            | Self::Char { .. }
            | Self::Varchar { .. }
            | Self::Binary { .. }
            | Self::Varbinary { .. }
            | Self::Enum(_)
            | Self::Set(_)
            | Self::Geometry(_)
            | Self::Vector { .. } => self.value_of(literal),
        }
    }

    /// The type at the cursor, with UNSIGNED and the like.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Self> {
        let token = cursor.next()?.ok_or(Refused)?;
        let word = match (token.kind, core::str::from_utf8(token.raw)) {
            (TokenKind::Word, Ok(word)) => word.to_ascii_uppercase(),
            _ => return Err(Refused),
        };
        numeric(cursor, &word)?.map_or_else(|| other(cursor, &word), Ok)
    }
}

impl fmt::Display for DeclaredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unsigned_word = |unsigned: bool| if unsigned { " unsigned" } else { "" };
        match self {
            Self::Integer { bytes, unsigned } => {
                let name = match bytes {
                    1 => "tinyint",
                    2 => "smallint",
                    3 => "mediumint",
                    4 => "int",
                    _ => "bigint",
                };
                write!(f, "{name}{}", unsigned_word(*unsigned))
            }
            Self::Float { unsigned, .. } => write!(f, "float{}", unsigned_word(*unsigned)),
            Self::Double { unsigned, .. } => write!(f, "double{}", unsigned_word(*unsigned)),
            Self::Decimal { precision, scale, unsigned } => {
                write!(f, "decimal({precision},{scale}){}", unsigned_word(*unsigned))
            }
            Self::Bit { bits } => write!(f, "bit({bits})"),
            Self::Year => f.write_str("year"),
            Self::Date => f.write_str("date"),
            Self::Time { fsp } => write!(f, "time({fsp})"),
            Self::DateTime { fsp } => write!(f, "datetime({fsp})"),
            Self::Timestamp { fsp } => write!(f, "timestamp({fsp})"),
            Self::Char { characters } => write!(f, "char({characters})"),
            Self::Varchar { characters } => write!(f, "varchar({characters})"),
            Self::Text { length_bytes } => write!(f, "{}text", size(*length_bytes)),
            Self::Binary { bytes } => write!(f, "binary({bytes})"),
            Self::Varbinary { bytes } => write!(f, "varbinary({bytes})"),
            Self::Blob { length_bytes } => write!(f, "{}blob", size(*length_bytes)),
            Self::Enum(members) => write_members(f, "enum", members),
            Self::Set(members) => write_members(f, "set", members),
            Self::Json => f.write_str("json"),
            Self::Geometry(kind) => f.write_str(kind.sql()),
            Self::Vector { dimension } => write!(f, "vector({dimension})"),
        }
    }
}

const fn size(length_bytes: u8) -> &'static str {
    match length_bytes {
        1 => "tiny",
        3 => "medium",
        4 => "long",
        _ => "",
    }
}

fn write_members(f: &mut fmt::Formatter<'_>, word: &str, members: &[String]) -> fmt::Result {
    write!(f, "{word}(")?;
    for (index, member) in members.iter().enumerate() {
        write!(f, "{}'{}'", if index == 0 { "" } else { "," }, member.replace('\'', "''"))?;
    }
    f.write_char(')')
}

fn members_of(labels: &crate::value::Labels) -> Option<Vec<String>> {
    let charset = Charset::of_collation(labels.collation()?)?;
    let member = |index| charset.to_utf8(labels.get(index)?).ok().map(|text| text.into_owned());
    (0..labels.count()?).map(member).collect()
}

/// The most bytes of a character (`mbmaxlen`).
const fn bytes_per_character(charset: Charset) -> u32 {
    match charset {
        Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 | Charset::Gb18030 => 4,
        Charset::Utf8mb3 | Charset::Ujis | Charset::Eucjpms => 3,
        Charset::Big5
        | Charset::Cp932
        | Charset::Euckr
        | Charset::Gb2312
        | Charset::Gbk
        | Charset::Sjis
        | Charset::Ucs2 => 2,
        Charset::Armscii8
        | Charset::Ascii
        | Charset::Binary
        | Charset::Cp1250
        | Charset::Cp1251
        | Charset::Cp1256
        | Charset::Cp1257
        | Charset::Cp850
        | Charset::Cp852
        | Charset::Cp866
        | Charset::Dec8
        | Charset::Geostd8
        | Charset::Greek
        | Charset::Hebrew
        | Charset::Hp8
        | Charset::Keybcs2
        | Charset::Koi8r
        | Charset::Koi8u
        | Charset::Latin1
        | Charset::Latin2
        | Charset::Latin5
        | Charset::Latin7
        | Charset::Macce
        | Charset::Macroman
        | Charset::Swe7
        | Charset::Tis620 => 1,
    }
}

fn numeric(cursor: &mut Cursor<'_>, word: &str) -> Read<Option<DeclaredType>> {
    let integer = match word {
        "BOOL" | "BOOLEAN" => return Ok(Some(DeclaredType::Integer { bytes: 1, unsigned: false })),
        "TINYINT" | "INT1" => Some(1),
        "SMALLINT" | "INT2" => Some(2),
        "MEDIUMINT" | "INT3" | "MIDDLEINT" => Some(3),
        "INT" | "INTEGER" | "INT4" => Some(4),
        "BIGINT" | "INT8" => Some(8),
        _ => None,
    };
    if let Some(bytes) = integer {
        numbers(cursor)?;
        let unsigned = sign(cursor)?;
        return Ok(Some(DeclaredType::Integer { bytes, unsigned }));
    }
    let real_as_float = cursor.context().sql_mode & REAL_AS_FLOAT != 0;
    Ok(Some(match word {
        "DECIMAL" | "DEC" | "NUMERIC" | "FIXED" => {
            let (precision, scale) = match numbers(cursor)?[..] {
                [] => (10, 0),
                [precision] => (precision, 0),
                [precision, scale] => (precision, scale),
                _ => return Err(Refused),
            };
            let small = |number| u8::try_from(number).map_err(|_| Refused);
            let (precision, scale) = (small(precision)?, small(scale)?);
            let precision = if precision == 0 { 10 } else { precision };
            DeclaredType::Decimal { precision, scale, unsigned: sign(cursor)? }
        }
        "FLOAT" => match numbers(cursor)?[..] {
            [] | [0..=24] => DeclaredType::Float { unsigned: sign(cursor)?, rounded: false },
            [25..=53] => DeclaredType::Double { unsigned: sign(cursor)?, rounded: false },
            [_, _] => DeclaredType::Float { unsigned: sign(cursor)?, rounded: true },
            _ => return Err(Refused),
        },
        "FLOAT4" => DeclaredType::Float { unsigned: sign(cursor)?, rounded: false },
        "REAL" if real_as_float => {
            let rounded = !numbers(cursor)?.is_empty();
            DeclaredType::Float { unsigned: sign(cursor)?, rounded }
        }
        "DOUBLE" | "FLOAT8" | "REAL" => {
            cursor.accept("PRECISION")?;
            let rounded = !numbers(cursor)?.is_empty();
            DeclaredType::Double { unsigned: sign(cursor)?, rounded }
        }
        "BIT" => match numbers(cursor)?[..] {
            [] => DeclaredType::Bit { bits: 1 },
            [bits] => DeclaredType::Bit { bits: u8::try_from(bits).map_err(|_| Refused)? },
            _ => return Err(Refused),
        },
        _ => return Ok(None),
    }))
}

fn other(cursor: &mut Cursor<'_>, word: &str) -> Read<DeclaredType> {
    Ok(match word {
        "YEAR" => {
            numbers(cursor)?;
            DeclaredType::Year
        }
        "DATE" => DeclaredType::Date,
        "TIME" => DeclaredType::Time { fsp: fsp(cursor)? },
        "DATETIME" => DeclaredType::DateTime { fsp: fsp(cursor)? },
        "TIMESTAMP" => DeclaredType::Timestamp { fsp: fsp(cursor)? },
        "CHAR" | "CHARACTER" => {
            if cursor.accept("VARYING")? {
                return varchar(cursor);
            }
            let characters = at_most_one(cursor)?.unwrap_or(1);
            binary_word(cursor)?;
            DeclaredType::Char { characters }
        }
        "VARCHAR" | "VARCHARACTER" => return varchar(cursor),
        "BINARY" => DeclaredType::Binary { bytes: at_most_one(cursor)?.unwrap_or(1) },
        "VARBINARY" => DeclaredType::Varbinary { bytes: at_most_one(cursor)?.ok_or(Refused)? },
        "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" => {
            let length_bytes = length_bytes(cursor, word)?;
            binary_word(cursor)?;
            DeclaredType::Text { length_bytes }
        }
        "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB" => {
            DeclaredType::Blob { length_bytes: length_bytes(cursor, word)? }
        }
        "ENUM" => DeclaredType::Enum(members(cursor)?),
        "SET" => DeclaredType::Set(members(cursor)?),
        "JSON" => DeclaredType::Json,
        "VECTOR" => DeclaredType::Vector { dimension: at_most_one(cursor)?.unwrap_or(2048) },
        "GEOMETRY" => DeclaredType::Geometry(GeometryKind::Geometry),
        "POINT" => DeclaredType::Geometry(GeometryKind::Point),
        "LINESTRING" => DeclaredType::Geometry(GeometryKind::LineString),
        "POLYGON" => DeclaredType::Geometry(GeometryKind::Polygon),
        "MULTIPOINT" => DeclaredType::Geometry(GeometryKind::MultiPoint),
        "MULTILINESTRING" => DeclaredType::Geometry(GeometryKind::MultiLineString),
        "MULTIPOLYGON" => DeclaredType::Geometry(GeometryKind::MultiPolygon),
        "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => DeclaredType::Geometry(GeometryKind::GeometryCollection),
        // SERIAL, LONG, NATIONAL … and whatever comes.
        _ => return Err(Refused),
    })
}

fn varchar(cursor: &mut Cursor<'_>) -> Read<DeclaredType> {
    let characters = at_most_one(cursor)?.ok_or(Refused)?;
    binary_word(cursor)?;
    Ok(DeclaredType::Varchar { characters })
}

/// `BINARY` after a type of text: its `_bin` collation. ASCII, UNICODE and BYTE are other character sets.
fn binary_word(cursor: &mut Cursor<'_>) -> Read<()> {
    cursor.accept("BINARY")?;
    if cursor.at_any(&["ASCII", "UNICODE", "BYTE"])? { Err(Refused) } else { Ok(()) }
}

/// `TEXT(n)` and `BLOB(n)` become what n bytes need, which takes the character set to know.
fn length_bytes(cursor: &mut Cursor<'_>, word: &str) -> Read<u8> {
    if cursor.at_symbol(b'(')? {
        return Err(Refused);
    }
    Ok(match word.as_bytes().first() {
        Some(b'M') => 3,
        Some(b'L') => 4,
        Some(b'T') if word.len() == 8 => 1,
        _ => 2,
    })
}

/// `(n[, n])`, if it is next.
fn numbers(cursor: &mut Cursor<'_>) -> Read<Vec<u32>> {
    let mut found = Vec::new();
    if !cursor.accept_symbol(b'(')? {
        return Ok(found);
    }
    loop {
        let token = cursor.next()?.ok_or(Refused)?;
        if token.kind != TokenKind::Number || found.len() == 2 {
            return Err(Refused);
        }
        let text = core::str::from_utf8(token.raw).map_err(|_| Refused)?;
        found.push(text.parse().map_err(|_| Refused)?);
        if !cursor.accept_symbol(b',')? {
            cursor.expect_symbol(b')')?;
            return Ok(found);
        }
    }
}

fn at_most_one(cursor: &mut Cursor<'_>) -> Read<Option<u32>> {
    match numbers(cursor)?[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Refused),
    }
}

fn fsp(cursor: &mut Cursor<'_>) -> Read<u8> {
    let digits = at_most_one(cursor)?.unwrap_or(0);
    u8::try_from(digits).ok().filter(|fsp| *fsp <= 6).ok_or(Refused)
}

/// `UNSIGNED`, `SIGNED`, `ZEROFILL` (which makes it unsigned).
fn sign(cursor: &mut Cursor<'_>) -> Read<bool> {
    let mut unsigned = false;
    loop {
        if cursor.accept_any(&["UNSIGNED", "ZEROFILL"])? {
            unsigned = true;
        } else if !cursor.accept("SIGNED")? {
            return Ok(unsigned);
        }
    }
}

/// `('a', 'b', …)`: the server cuts blanks at their ends.
fn members(cursor: &mut Cursor<'_>) -> Read<Vec<String>> {
    cursor.expect_symbol(b'(')?;
    let mut found = Vec::new();
    loop {
        let token = cursor.next()?.ok_or(Refused)?;
        if token.kind != TokenKind::String || found.len() > usize::from(u16::MAX) {
            return Err(Refused);
        }
        found.push(literal::text(cursor, token)?.trim_end_matches(' ').to_string());
        if !cursor.accept_symbol(b',')? {
            cursor.expect_symbol(b')')?;
            binary_word(cursor)?;
            return Ok(found);
        }
    }
}

fn zeros(count: u8, point: bool) -> Option<Conversion> {
    Some(if count == 0 { Conversion::Same } else { Conversion::Zeros { count, point } })
}

fn text(value: &str) -> RowValue {
    RowValue::Text(value.to_string())
}

fn fits(value: &str, characters: u32) -> bool {
    u32::try_from(value.len()).is_ok_and(|length| length <= characters)
}

fn bytes_of(literal: &Literal) -> Option<Vec<u8>> {
    match literal {
        Literal::Bytes(bytes) => Some(bytes.clone()),
        Literal::Text(_) => literal.ascii().map(|text| text.as_bytes().to_vec()),
        Literal::Null | Literal::Number(_) | Literal::Bits(_) => None,
    }
}

fn unsigned_value(value: u64) -> Option<RowValue> {
    Some(i64::try_from(value).map_or(RowValue::Unsigned(value), RowValue::Integer))
}

/// A whole number in its type's range.
fn integer(digits: &str, bytes: u8, unsigned: bool) -> Option<RowValue> {
    let plain = digits.strip_prefix('-').unwrap_or(digits);
    if plain.is_empty() || plain.len() > 20 || !plain.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: i128 = digits.parse().ok()?;
    let bits = u32::from(bytes).checked_mul(8)?;
    let (least, most) = if unsigned {
        (0, 1_i128.checked_shl(bits)?.checked_sub(1)?)
    } else {
        let half = 1_i128.checked_shl(bits.checked_sub(1)?)?;
        (half.checked_neg()?, half.checked_sub(1)?)
    };
    if value < least || value > most {
        return None;
    }
    i64::try_from(value)
        .map(RowValue::Integer)
        .ok()
        .or_else(|| u64::try_from(value).ok().and_then(unsigned_value))
}

/// A decimal with exactly its type's digits behind the point; rounding is not ours to repeat.
fn decimal(digits: &str, precision: u8, scale: u8, unsigned: bool) -> Option<String> {
    let (negative, plain) = digits.strip_prefix('-').map_or((false, digits), |plain| (true, plain));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let all = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !all(whole) || !all(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let (scale, before) = (usize::from(scale), usize::from(precision.checked_sub(scale)?));
    if fraction.len() > scale || whole.len() > before {
        return None;
    }
    let zero = whole.is_empty() && fraction.bytes().all(|b| b == b'0');
    if negative && unsigned {
        return None;
    }
    let mut text = String::new();
    if negative && !zero {
        text.push('-');
    }
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let _ = write!(text, ".{fraction:0<scale$}");
    }
    Some(text)
}

/// A number as a double. Those the server reads by way of a DECIMAL are kept within its digits.
fn double(literal: &Literal, unsigned: bool) -> Option<f64> {
    let Literal::Number(digits) = literal else { return None };
    let plain = digits.strip_prefix('-').unwrap_or(digits);
    if plain.len() > 30 || !plain.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let value: f64 = digits.parse().ok()?;
    // -0 keeps or loses its sign by the way it takes.
    (value.is_finite() && !(value == 0.0 && digits.starts_with('-')) && !(unsigned && value < 0.0))
        .then_some(value)
}

/// `YYYY-MM-DD`, a day that there is, or zero.
fn date(text: &str) -> bool {
    if text == "0000-00-00" {
        return true;
    }
    let bytes = text.as_bytes();
    let &[_, _, _, _, b'-', _, _, b'-', _, _] = bytes else { return false };
    let number = |from: usize, to: usize| {
        let part = text.get(from..to)?;
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<u64>().ok())?
    };
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    year > 0 && (1..=days).contains(&day) && Date::new(year, month, day).is_some()
}

/// `YYYY-MM-DD hh:mm:ss[.f]` with zeros up to `fsp`.
fn date_time(value: &str, fsp: u8) -> Option<String> {
    let (day, clock) = value.split_once(' ')?;
    let (whole, _) = clock.split_once('.').unwrap_or((clock, ""));
    if !date(day) || whole.len() != 8 || whole.get(..2)?.parse::<u8>().ok()? > 23 {
        return None;
    }
    Some(alloc::format!("{day} {}", time(clock, fsp)?))
}

/// A date and time that is the same in every time zone: zero, or one that says it is in UTC (from 8.0.19 on).
fn timestamp(value: &str, fsp: u8) -> Option<String> {
    if let Some(utc) = value.strip_suffix("+00:00") {
        let value = date_time(utc, fsp)?;
        let in_range = ("1970-01-01 00:00:01".."2038-01-19 03:14:07").contains(&value.get(..19)?);
        return in_range.then_some(value);
    }
    let zero = value.bytes().all(|b| b == b'0' || !b.is_ascii_digit());
    date_time(value, fsp).filter(|_| zero)
}

/// `hh:mm:ss[.f]` with zeros up to `fsp`.
fn time(value: &str, fsp: u8) -> Option<String> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if value.ends_with('.')
        || fraction.len() > usize::from(fsp)
        || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let [hours, minutes, seconds] = whole.splitn(3, ':').collect::<Vec<_>>()[..] else { return None };
    let two = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()) && part < "60";
    let hour_digits = matches!(hours.len(), 2 | 3) && hours.bytes().all(|b| b.is_ascii_digit());
    if !hour_digits || (hours.len() == 3 && hours.starts_with('0')) || !two(minutes) || !two(seconds) {
        return None;
    }
    if hours.parse::<u16>().ok()? > 837 {
        return None;
    }
    let mut text = whole.to_string();
    if fsp > 0 {
        let width = usize::from(fsp);
        let _ = write!(text, ".{fraction:0<width$}");
    }
    Some(text)
}

/// Members in their order, each once, with commas between; or none.
fn set(value: &str, members: &[String]) -> bool {
    if value.is_empty() {
        return true;
    }
    let mut left = members.iter();
    value.split(',').all(|wanted| left.any(|member| member == wanted))
}

/// Whether two names are of one column.
pub(crate) fn same_column(a: &str, b: &str) -> bool {
    a == b || lower_case(a) == lower_case(b)
}
