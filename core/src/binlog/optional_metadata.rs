//! The optional metadata at the end of a table map: signs, collations, names, labels, key, visibility.
//!
//! Each field is a type byte, a length-encoded length and its bytes. Fields this version does not know
//! are optional by name and are passed over by their length (`BL-15`).
//!
//! Source: `Table_map_event::Optional_metadata_field_type` in `rows_event.h`, and
//! `Table_map_log_event::init_metadata_fields` in `sql/log_event.cc`.

use alloc::{sync::Arc, vec::Vec};

use super::table_map::{TableMapError, identifier};
use crate::value::{BINARY_COLLATION, Column, ColumnType, GeometryKind, KeyPart, Labels, TableFacts};
use crate::wire::Reader;

/// The fields of one table map, cut out and not yet read.
#[derive(Default)]
pub(super) struct OptionalMetadata<'a> {
    signedness: Option<&'a [u8]>,
    default_charset: Option<&'a [u8]>,
    column_charset: Option<&'a [u8]>,
    column_name: Option<&'a [u8]>,
    set_str_value: Option<&'a [u8]>,
    enum_str_value: Option<&'a [u8]>,
    geometry_type: Option<&'a [u8]>,
    simple_primary_key: Option<&'a [u8]>,
    primary_key_with_prefix: Option<&'a [u8]>,
    enum_and_set_default_charset: Option<&'a [u8]>,
    enum_and_set_column_charset: Option<&'a [u8]>,
    column_visibility: Option<&'a [u8]>,
    vector_dimensionality: Option<&'a [u8]>,
}

const fn malformed(what: &'static str) -> TableMapError {
    TableMapError::Malformed(what)
}

impl<'a> OptionalMetadata<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, TableMapError> {
        let mut fields = Self::default();
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            let field_type = r.u8()?;
            let value = r.lenenc_bytes()?;
            let field = match field_type {
                1 => &mut fields.signedness,
                2 => &mut fields.default_charset,
                3 => &mut fields.column_charset,
                4 => &mut fields.column_name,
                5 => &mut fields.set_str_value,
                6 => &mut fields.enum_str_value,
                7 => &mut fields.geometry_type,
                8 => &mut fields.simple_primary_key,
                9 => &mut fields.primary_key_with_prefix,
                10 => &mut fields.enum_and_set_default_charset,
                11 => &mut fields.enum_and_set_column_charset,
                12 => &mut fields.column_visibility,
                13 => &mut fields.vector_dimensionality,
                _ => continue,
            };
            if field.replace(value).is_some() {
                return Err(malformed("an optional metadata field comes twice"));
            }
        }
        Ok(fields)
    }

    /// Writes what the fields say into the columns and facts.
    pub(super) fn apply(&self, columns: &mut [Column], facts: &mut TableFacts) -> Result<(), TableMapError> {
        facts.signedness_known = self.signs(columns)?;
        facts.collations_known = self.collations(columns)?;
        facts.names_known = self.names(columns)?;
        facts.primary_key = self.primary_key(columns.len())?;
        self.labels(columns)?;
        self.geometry_kinds(columns)?;
        self.dimensions(columns)?;
        self.visibility(columns)
    }

    /// One bit per number, the first being the most significant. YEAR counts too.
    fn signs(&self, columns: &mut [Column]) -> Result<bool, TableMapError> {
        let numbers = columns.iter().filter(|c| is_number(&c.column_type)).count();
        let Some(bits) = self.signedness else { return Ok(numbers == 0) };
        let mut bits = Bits::new(bits, numbers, "a signedness bitmap of the wrong length")?;
        for column in columns.iter_mut().filter(|c| is_number(&c.column_type)) {
            let is_unsigned = bits.next();
            if let ColumnType::TinyInt { unsigned }
            | ColumnType::SmallInt { unsigned }
            | ColumnType::MediumInt { unsigned }
            | ColumnType::Int { unsigned }
            | ColumnType::BigInt { unsigned }
            | ColumnType::Float { unsigned }
            | ColumnType::Double { unsigned }
            | ColumnType::Decimal { unsigned, .. } = &mut column.column_type
            {
                *unsigned = is_unsigned;
            }
        }
        Ok(true)
    }

    /// Gives strings their collation, and turns those with the binary one into binary strings.
    fn collations(&self, columns: &mut [Column]) -> Result<bool, TableMapError> {
        let strings = columns.iter().filter(|c| is_string(&c.column_type)).count();
        let ids = collation_ids(self.default_charset, self.column_charset, strings)?;
        let Some(ids) = ids else { return Ok(strings == 0) };
        let strings = columns.iter_mut().filter(|c| is_string(&c.column_type));
        for (column, id) in strings.zip(ids) {
            with_collation(&mut column.column_type, id);
        }
        Ok(true)
    }

    fn names(&self, columns: &mut [Column]) -> Result<bool, TableMapError> {
        let Some(bytes) = self.column_name else { return Ok(false) };
        let mut r = Reader::new(bytes);
        for column in columns {
            column.name = identifier(r.lenenc_bytes()?)?;
        }
        all_read(r, "more column names than columns")?;
        Ok(true)
    }

    fn primary_key(&self, columns: usize) -> Result<Vec<KeyPart>, TableMapError> {
        let (bytes, with_prefix) = match (self.simple_primary_key, self.primary_key_with_prefix) {
            (Some(_), Some(_)) => return Err(malformed("two primary keys")),
            (Some(bytes), None) => (bytes, false),
            (None, Some(bytes)) => (bytes, true),
            (None, None) => return Ok(Vec::new()),
        };
        let mut r = Reader::new(bytes);
        let mut key: Vec<KeyPart> = Vec::new();
        while !r.is_empty() {
            let column = usize::try_from(r.lenenc()?).unwrap_or(usize::MAX);
            let prefix = if with_prefix { r.lenenc()? } else { 0 };
            let prefix = u32::try_from(prefix).map_err(|_| malformed("a key prefix out of range"))?;
            if column >= columns || key.iter().any(|part| part.column == column) {
                return Err(malformed("a primary key of columns that are not there"));
            }
            key.push(KeyPart { column, prefix });
        }
        Ok(key)
    }

    fn labels(&self, columns: &mut [Column]) -> Result<(), TableMapError> {
        let members = columns.iter().filter(|c| is_enum_or_set(&c.column_type)).count();
        let ids =
            collation_ids(self.enum_and_set_default_charset, self.enum_and_set_column_charset, members)?;
        let mut ids = ids.into_iter().flatten();
        let mut sets = self.set_str_value.map(Reader::new);
        let mut enums = self.enum_str_value.map(Reader::new);
        for column in columns.iter_mut() {
            let is_enum = matches!(column.column_type, ColumnType::Enum { .. });
            if let ColumnType::Enum { labels, .. } | ColumnType::Set { labels, .. } = &mut column.column_type
            {
                let source = if is_enum { &mut enums } else { &mut sets };
                let collation = ids.next();
                let known = source.as_mut().map(|r| label_list(r, collation)).transpose()?;
                *labels = Arc::new(known.unwrap_or_else(|| Labels::unknown(collation)));
            }
        }
        for (column, source) in
            [(sets, "more SET labels than columns"), (enums, "more ENUM labels than columns")]
        {
            column.map_or(Ok(()), |r| all_read(r, source))?;
        }
        Ok(())
    }

    fn geometry_kinds(&self, columns: &mut [Column]) -> Result<(), TableMapError> {
        let Some(bytes) = self.geometry_type else { return Ok(()) };
        let mut r = Reader::new(bytes);
        for column in columns {
            if let ColumnType::Geometry { kind } = &mut column.column_type {
                *kind = GeometryKind::from_code(r.lenenc()?).ok_or(malformed("an unknown geometry type"))?;
            }
        }
        all_read(r, "more geometry types than columns")
    }

    fn dimensions(&self, columns: &mut [Column]) -> Result<(), TableMapError> {
        let Some(bytes) = self.vector_dimensionality else { return Ok(()) };
        let mut r = Reader::new(bytes);
        for column in columns {
            if let ColumnType::Vector { dimension } = &mut column.column_type {
                let n =
                    u32::try_from(r.lenenc()?).map_err(|_| malformed("a vector dimension out of range"))?;
                *dimension = Some(n);
            }
        }
        all_read(r, "more vector dimensions than columns")
    }

    fn visibility(&self, columns: &mut [Column]) -> Result<(), TableMapError> {
        let Some(bits) = self.column_visibility else { return Ok(()) };
        let mut bits = Bits::new(bits, columns.len(), "a visibility bitmap of the wrong length")?;
        for column in columns {
            column.visible = bits.next();
        }
        Ok(())
    }
}

/// `is_numeric_type`, `sql/log_event.cc`.
const fn is_number(t: &ColumnType) -> bool {
    matches!(
        t,
        ColumnType::TinyInt { .. }
            | ColumnType::SmallInt { .. }
            | ColumnType::MediumInt { .. }
            | ColumnType::Int { .. }
            | ColumnType::BigInt { .. }
            | ColumnType::Float { .. }
            | ColumnType::Double { .. }
            | ColumnType::Decimal { .. }
            | ColumnType::Year
    )
}

/// `is_character_type`, `sql/log_event.cc`: VECTOR is among them, GEOMETRY and JSON are not.
const fn is_string(t: &ColumnType) -> bool {
    matches!(
        t,
        ColumnType::Char { .. }
            | ColumnType::Varchar { .. }
            | ColumnType::Text { .. }
            | ColumnType::Binary { .. }
            | ColumnType::Varbinary { .. }
            | ColumnType::Blob { .. }
            | ColumnType::Vector { .. }
    )
}

const fn is_enum_or_set(t: &ColumnType) -> bool {
    matches!(t, ColumnType::Enum { .. } | ColumnType::Set { .. })
}

/// Gives a string its collation; the binary one makes it a binary string. VECTOR is counted among
/// strings and keeps nothing of it.
fn with_collation(t: &mut ColumnType, id: u16) {
    if id != BINARY_COLLATION {
        if let ColumnType::Char { collation, .. }
        | ColumnType::Varchar { collation, .. }
        | ColumnType::Text { collation, .. } = t
        {
            *collation = Some(id);
        }
    } else if let ColumnType::Char { bytes_max, .. } = t {
        *t = ColumnType::Binary { bytes: *bytes_max };
    } else if let ColumnType::Varchar { bytes_max, .. } = t {
        *t = ColumnType::Varbinary { bytes_max: *bytes_max };
    } else if let ColumnType::Text { length_bytes, .. } = t {
        *t = ColumnType::Blob { length_bytes: *length_bytes };
    }
}

/// The collation of each of `count` columns, in either of the two forms: a default and exceptions by
/// place among these columns, or one after the other. The server takes the shorter.
fn collation_ids(
    default: Option<&[u8]>,
    each: Option<&[u8]>,
    count: usize,
) -> Result<Option<Vec<u16>>, TableMapError> {
    match (default, each) {
        (Some(_), Some(_)) => Err(malformed("collations in two forms")),
        (None, None) => Ok(None),
        (Some(bytes), None) => {
            let mut r = Reader::new(bytes);
            let mut ids = alloc::vec![collation_id(&mut r)?; count];
            while !r.is_empty() {
                let at = usize::try_from(r.lenenc()?).unwrap_or(usize::MAX);
                let id = collation_id(&mut r)?;
                *ids.get_mut(at).ok_or(malformed("a collation for a column that is not there"))? = id;
            }
            Ok(Some(ids))
        }
        (None, Some(bytes)) => {
            let mut r = Reader::new(bytes);
            let ids = (0..count).map(|_| collation_id(&mut r)).collect::<Result<_, _>>()?;
            all_read(r, "more collations than columns")?;
            Ok(Some(ids))
        }
    }
}

fn collation_id(r: &mut Reader<'_>) -> Result<u16, TableMapError> {
    u16::try_from(r.lenenc()?).map_err(|_| malformed("a collation id out of range"))
}

/// A count and so many strings.
fn label_list(r: &mut Reader<'_>, collation: Option<u16>) -> Result<Labels, TableMapError> {
    let count = r.lenenc()?;
    let start = *r;
    for _ in 0..count {
        r.lenenc_bytes()?;
    }
    // All are there: now they are taken.
    let mut members = start;
    let labels = (0..count).map_while(|_| members.lenenc_bytes().ok());
    Ok(Labels::new(labels, collation))
}

fn all_read(r: Reader<'_>, otherwise: &'static str) -> Result<(), TableMapError> {
    if r.is_empty() { Ok(()) } else { Err(malformed(otherwise)) }
}

/// A bitmap whose first bit is the most significant.
struct Bits<'a> {
    bytes: &'a [u8],
    mask: u8,
}

impl<'a> Bits<'a> {
    fn new(bytes: &'a [u8], count: usize, otherwise: &'static str) -> Result<Self, TableMapError> {
        if bytes.len() == count.div_ceil(8) {
            Ok(Self { bytes, mask: 0x80 })
        } else {
            Err(malformed(otherwise))
        }
    }

    fn next(&mut self) -> bool {
        let Some((first, rest)) = self.bytes.split_first() else { return false };
        let bit = first & self.mask != 0;
        self.mask = self.mask.rotate_right(1);
        if self.mask == 0x80 {
            self.bytes = rest;
        }
        bit
    }
}
