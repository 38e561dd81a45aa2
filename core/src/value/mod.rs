//! Column values: typed, lossless, borrowed from the packet.

pub mod charset;
pub mod json;

mod decimal;
mod decode;
mod plan;
mod shape;
mod table;
mod temporal;
mod text;
mod visit;
mod wkt;

pub use decimal::Decimal;
pub use json::Json;
pub use shape::{Bit, Geometry, Vector};
pub use table::{
    BINARY_COLLATION, Column, ColumnType, Generation, GeometryKind, KeyPart, Labels, TableFacts,
    TableVersion, TypeName,
};
pub use temporal::{Date, DateTime, Time, Timestamp};
pub use text::{Binary, Enum, NotText, Set, Text};
pub use visit::Visit;

pub(crate) use decimal::{is_valid_type as is_valid_decimal, pack as pack_decimal};
pub(crate) use decode::{decode, visit_next};
pub(crate) use plan::{Kind, Plan, Step};
pub(crate) use temporal::civil_from_days;
pub(crate) use visit::Keep;

/// A value of a column. Copying it copies no bytes: text, blobs and the rest borrow from the row event.
///
/// `Debug` shows the kind and never the value.
#[derive(Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// The column is not in this row image (`binlog_row_image` other than FULL). Not NULL.
    Absent,
    /// A signed TINYINT, SMALLINT, MEDIUMINT, INT or BIGINT.
    Int(i64),
    /// An UNSIGNED one.
    UInt(u64),
    /// FLOAT; always finite.
    Float(f32),
    /// DOUBLE; always finite.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal<'a>),
    /// BIT.
    Bit(Bit),
    /// YEAR: 1901 to 2155, or 0 for the zero year `0000`.
    Year(u16),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME.
    DateTime(DateTime),
    /// TIMESTAMP.
    Timestamp(Timestamp),
    /// CHAR, VARCHAR, TINYTEXT to LONGTEXT.
    Text(Text<'a>),
    /// BINARY, VARBINARY.
    Binary(Binary<'a>),
    /// TINYBLOB to LONGBLOB.
    Blob(&'a [u8]),
    /// ENUM.
    Enum(Enum<'a>),
    /// SET.
    Set(Set<'a>),
    /// JSON.
    Json(Json<'a>),
    /// GEOMETRY and its kinds.
    Geometry(Geometry<'a>),
    /// VECTOR.
    Vector(Vector<'a>),
}

impl Value<'_> {
    /// The number of an integer column; `None` for a value of any other kind.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Int(n) => Some((*n).into()),
            Self::UInt(n) => Some((*n).into()),
            Self::Null
            | Self::Absent
            | Self::Float(_)
            | Self::Double(_)
            | Self::Decimal(_)
            | Self::Bit(_)
            | Self::Year(_)
            | Self::Date(_)
            | Self::Time(_)
            | Self::DateTime(_)
            | Self::Timestamp(_)
            | Self::Text(_)
            | Self::Binary(_)
            | Self::Blob(_)
            | Self::Enum(_)
            | Self::Set(_)
            | Self::Json(_)
            | Self::Geometry(_)
            | Self::Vector(_) => None,
        }
    }
}

impl core::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Rule 1: the kind only.
        f.write_str(match self {
            Self::Null => "Null",
            Self::Absent => "Absent",
            Self::Int(_) => "Int",
            Self::UInt(_) => "UInt",
            Self::Float(_) => "Float",
            Self::Double(_) => "Double",
            Self::Decimal(_) => "Decimal",
            Self::Bit(_) => "Bit",
            Self::Year(_) => "Year",
            Self::Date(_) => "Date",
            Self::Time(_) => "Time",
            Self::DateTime(_) => "DateTime",
            Self::Timestamp(_) => "Timestamp",
            Self::Text(_) => "Text",
            Self::Binary(_) => "Binary",
            Self::Blob(_) => "Blob",
            Self::Enum(_) => "Enum",
            Self::Set(_) => "Set",
            Self::Json(_) => "Json",
            Self::Geometry(_) => "Geometry",
            Self::Vector(_) => "Vector",
        })
    }
}

/// A value that no MySQL server stores, or a column that is not there: `value_malformed`. The source
/// (or who changed the bytes on the way) caused it; it names the column and never the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {reason}")]
pub struct ValueError {
    /// Index into the table's columns.
    pub column: usize,
    /// What is wrong.
    pub reason: ValueFault,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// The table has no such column (the caller's mistake).
    #[error("no such column")]
    NoSuchColumn,
    /// The value has another length than its type.
    #[error("a value of the wrong length")]
    Length,
    /// A float that is infinite or no number.
    #[error("a number that is not finite")]
    NotFinite,
    /// A decimal group above its digits.
    #[error("a malformed DECIMAL")]
    Decimal,
    /// Bits beyond the width of the column.
    #[error("bits beyond the width of a BIT column")]
    Bit,
    /// A date or time with an impossible part.
    #[error("an impossible date or time")]
    Temporal,
    /// An ENUM or SET value without a member.
    #[error("an ENUM or SET value that has no member")]
    NoSuchMember,
    /// A geometry too short for its head.
    #[error("a malformed GEOMETRY")]
    Geometry,
    /// A vector that is not whole floats.
    #[error("a malformed VECTOR")]
    Vector,
    /// A JSON document that is malformed where its text was asked for.
    #[error("a malformed JSON document: {0}")]
    Json(json::JsonError),
}
