//! One column: from the server's description to what the table map says of it.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::labels;
use crate::value::{BINARY_COLLATION, ColumnType, GeometryKind, Labels, is_valid_decimal};

/// A row of `information_schema.COLUMNS`, with the collation's own facts.
#[derive(Clone, Debug, Default)]
pub(super) struct Described {
    pub(super) data_type: String,
    pub(super) column_type: String,
    pub(super) octets: Option<u64>,
    pub(super) precision: Option<u64>,
    pub(super) scale: Option<u64>,
    pub(super) fsp: Option<u64>,
    pub(super) charset: Option<String>,
    pub(super) collation: Option<String>,
    pub(super) collation_id: Option<u16>,
}

/// What a description comes to.
pub(super) enum Typed {
    /// The type.
    Type(ColumnType),
    /// ENUM or SET, whose members are here in UTF-8 and still to be had in the column's own character set.
    Members { is_enum: bool, members: Vec<String>, collation: u16 },
}

impl Described {
    /// The type; `None` for one that is not known.
    pub(super) fn typed(&self) -> Option<Typed> {
        let unsigned = self.column_type.contains(" unsigned");
        let collation = self.collation_id;
        let byte = |n: Option<u64>| n.and_then(|n| u8::try_from(n).ok());
        let fsp = || byte(self.fsp).filter(|fsp| *fsp <= 6);
        let octets = || self.octets.and_then(|n| u16::try_from(n).ok());
        // A temporal that a server before 5.6.4 wrote, where the server says so (`show_old_temporals`).
        let old = self.column_type.contains("5.5 binary format");
        Some(Typed::Type(match self.data_type.as_str() {
            "tinyint" => ColumnType::TinyInt { unsigned },
            "smallint" => ColumnType::SmallInt { unsigned },
            "mediumint" => ColumnType::MediumInt { unsigned },
            "int" => ColumnType::Int { unsigned },
            "bigint" => ColumnType::BigInt { unsigned },
            "float" => ColumnType::Float { unsigned },
            "double" => ColumnType::Double { unsigned },
            "decimal" => {
                let (precision, scale) = (byte(self.precision)?, byte(self.scale)?);
                is_valid_decimal(precision, scale).then_some(())?;
                ColumnType::Decimal { precision, scale, unsigned }
            }
            "bit" => ColumnType::Bit { bits: byte(self.precision).filter(|bits| (1..=64).contains(bits))? },
            "year" => ColumnType::Year,
            "date" => ColumnType::Date,
            "time" | "datetime" | "timestamp" if old => return None,
            "time" => ColumnType::Time { fsp: fsp()? },
            "datetime" => ColumnType::DateTime { fsp: fsp()? },
            "timestamp" => ColumnType::Timestamp { fsp: fsp()? },
            "char" => ColumnType::Char { bytes_max: octets()?, collation: Some(collation?) },
            "varchar" => ColumnType::Varchar { bytes_max: octets()?, collation: Some(collation?) },
            "binary" => ColumnType::Binary { bytes: octets()? },
            "varbinary" => ColumnType::Varbinary { bytes_max: octets()? },
            "tinytext" => ColumnType::Text { length_bytes: 1, collation: Some(collation?) },
            "text" => ColumnType::Text { length_bytes: 2, collation: Some(collation?) },
            "mediumtext" => ColumnType::Text { length_bytes: 3, collation: Some(collation?) },
            "longtext" => ColumnType::Text { length_bytes: 4, collation: Some(collation?) },
            "tinyblob" => ColumnType::Blob { length_bytes: 1 },
            "blob" => ColumnType::Blob { length_bytes: 2 },
            "mediumblob" => ColumnType::Blob { length_bytes: 3 },
            "longblob" => ColumnType::Blob { length_bytes: 4 },
            "json" => ColumnType::Json,
            "vector" => ColumnType::Vector { dimension: Some(in_parentheses(&self.column_type)?) },
            "enum" | "set" => {
                let members = labels::members(&self.column_type)?;
                let collation = collation.unwrap_or(BINARY_COLLATION);
                return Some(Typed::Members { is_enum: self.data_type == "enum", members, collation });
            }
            other => ColumnType::Geometry { kind: geometry(other)? },
        }))
    }
}

/// ENUM or SET of these members.
pub(super) fn of_members(is_enum: bool, labels: Labels) -> Option<ColumnType> {
    let count = labels.count()?;
    let labels = Arc::new(labels);
    Some(if is_enum {
        // `get_enum_pack_length`
        ColumnType::Enum { labels, bytes: if count < 256 { 1 } else { 2 } }
    } else {
        // `get_set_pack_length`
        let bytes = match count.div_ceil(8) {
            bytes @ 0..=4 => u8::try_from(bytes.max(1)).ok()?,
            _ => 8,
        };
        ColumnType::Set { labels, bytes }
    })
}

fn geometry(name: &str) -> Option<GeometryKind> {
    Some(match name {
        "geometry" => GeometryKind::Geometry,
        "point" => GeometryKind::Point,
        "linestring" => GeometryKind::LineString,
        "polygon" => GeometryKind::Polygon,
        "multipoint" => GeometryKind::MultiPoint,
        "multilinestring" => GeometryKind::MultiLineString,
        "multipolygon" => GeometryKind::MultiPolygon,
        "geomcollection" | "geometrycollection" => GeometryKind::GeometryCollection,
        _ => return None,
    })
}

fn in_parentheses(column_type: &str) -> Option<u32> {
    let (_, behind) = column_type.split_once('(')?;
    let (number, _) = behind.split_once(')')?;
    number.parse().ok()
}
