//! TABLE_MAP_EVENT: a table, its columns, and the bytes of their values.

use super::pack::packed;
use crate::put::{self, Take};
use std::collections::BTreeMap;

/// A table as its map describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Number by which row events name it.
    pub id: u64,
    /// `TM_*_F`.
    pub flags: u16,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Primary key: column, and prefix length in characters (0: all of it).
    pub primary_key: Vec<(usize, u64)>,
    /// `binlog_row_metadata=FULL`.
    pub full_metadata: bool,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Type code (`enum_field_types`).
    pub type_code: u8,
    /// Type metadata as the map carries it.
    pub meta: Vec<u8>,
    /// May be NULL.
    pub nullable: bool,
    /// UNSIGNED, of numbers.
    pub unsigned: bool,
    /// Collation, of strings, ENUM and SET.
    pub collation: u16,
    /// Members, of ENUM and SET.
    pub members: Vec<Vec<u8>>,
    /// Kind, of geometries.
    pub geometry: u64,
    /// Dimension, of vectors.
    pub dimension: u64,
    /// INVISIBLE if not.
    pub visible: bool,
}

/// A value that can be written into a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A number of a signed integer column.
    Int(i64),
    /// A number of an unsigned one, of BIT, YEAR (the byte), ENUM (index) or SET (bits).
    UInt(u64),
    /// FLOAT and DOUBLE.
    Double(f64),
    /// DECIMAL, DATE, TIME and DATETIME as `SELECT` shows them; TIMESTAMP as seconds since 1970, with its fraction.
    Shown(String),
    /// Text and blobs.
    Bytes(Vec<u8>),
}

const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const FLOAT: u8 = 4;
const DOUBLE: u8 = 5;
const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const YEAR: u8 = 13;
const VARCHAR: u8 = 15;
const BIT: u8 = 16;
const VECTOR: u8 = 242;
const NEWDECIMAL: u8 = 246;
const BLOB: u8 = 252;
const STRING: u8 = 254;
const GEOMETRY: u8 = 255;
const ENUM: u8 = 247;
const SET: u8 = 248;

impl Column {
    fn plain(name: &str, type_code: u8, meta: &[u8]) -> Self {
        Self {
            name: name.into(),
            type_code,
            meta: meta.into(),
            nullable: true,
            unsigned: false,
            collation: 0,
            members: Vec::new(),
            geometry: 0,
            dimension: 0,
            visible: true,
        }
    }

    /// INT.
    #[must_use]
    pub fn int(name: &str) -> Self {
        Self::plain(name, LONG, &[])
    }

    /// BIGINT.
    #[must_use]
    pub fn bigint(name: &str) -> Self {
        Self::plain(name, LONGLONG, &[])
    }

    /// DOUBLE.
    #[must_use]
    pub fn double(name: &str) -> Self {
        Self::plain(name, DOUBLE, &[8])
    }

    /// VARCHAR of at most so many bytes in utf8mb4.
    #[must_use]
    pub fn varchar(name: &str, bytes_max: u16) -> Self {
        Self { collation: 255, ..Self::plain(name, VARCHAR, &bytes_max.to_le_bytes()) }
    }

    /// LONGBLOB.
    #[must_use]
    pub fn blob(name: &str) -> Self {
        Self { collation: 63, ..Self::plain(name, BLOB, &[4]) }
    }

    /// ENUM.
    #[must_use]
    pub fn enumeration(name: &str, members: &[&str]) -> Self {
        Self {
            collation: 255,
            members: members.iter().map(|m| m.as_bytes().to_vec()).collect(),
            ..Self::plain(name, STRING, &[ENUM, if members.len() > 255 { 2 } else { 1 }])
        }
    }

    /// UNSIGNED.
    #[must_use]
    pub const fn unsigned(mut self) -> Self {
        self.unsigned = true;
        self
    }

    /// NOT NULL.
    #[must_use]
    pub const fn not_null(mut self) -> Self {
        self.nullable = false;
        self
    }

    /// ENUM and SET travel as STRING: the first byte of the metadata tells.
    fn real_type(&self) -> u8 {
        match (self.type_code, self.meta.first()) {
            (STRING, Some(&real @ (ENUM | SET))) => real,
            (code, _) => code,
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.type_code, TINY | SHORT | INT24 | LONG | LONGLONG | NEWDECIMAL | FLOAT | DOUBLE | YEAR)
    }

    fn is_string(&self) -> bool {
        matches!(self.real_type(), STRING | VARCHAR | 249..=252 | VECTOR)
    }

    fn is_labelled(&self) -> bool {
        matches!(self.real_type(), ENUM | SET)
    }

    fn meta_len(type_code: u8) -> Option<usize> {
        Some(match type_code {
            1..=3 | 7..=14 => 0,
            4 | 5 | 17..=19 | 242 | 245 | 249..=252 | 255 => 1,
            15 | 16 | 246..=248 | 253 | 254 => 2,
            _ => return None,
        })
    }

    /// The bytes of a value; NULL has none.
    #[must_use]
    pub fn bytes_of(&self, value: &Value) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match value {
            Value::Null => return None,
            Value::Int(n) => put::int(&mut out, n.cast_unsigned(), self.int_width()),
            Value::UInt(n) if self.type_code == BIT => {
                let width = usize::from(self.meta[1]) + usize::from(self.meta[0] > 0);
                out.extend_from_slice(&n.to_be_bytes()[8 - width..]);
            }
            Value::UInt(n) => put::int(&mut out, *n, self.int_width()),
            Value::Double(n) if self.type_code == FLOAT => out.extend_from_slice(&(*n as f32).to_le_bytes()),
            Value::Shown(text) => out = packed(self.type_code, &self.meta, text),
            Value::Double(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::Bytes(bytes) => {
                put::int(&mut out, bytes.len() as u64, self.length_width());
                out.extend_from_slice(bytes);
            }
        }
        Some(out)
    }

    fn int_width(&self) -> usize {
        match self.real_type() {
            TINY | YEAR => 1,
            SHORT => 2,
            INT24 => 3,
            LONGLONG => 8,
            ENUM | SET => usize::from(self.meta[1]),
            _ => 4,
        }
    }

    /// Bytes of the length in front of a value.
    fn length_width(&self) -> usize {
        match self.type_code {
            VARCHAR if u16::from_le_bytes([self.meta[0], self.meta[1]]) > 255 => 2,
            STRING => {
                let high = u16::from(self.meta[0] & 0x30 ^ 0x30) << 4;
                if high | u16::from(self.meta[1]) > 255 { 2 } else { 1 }
            }
            242 | 245 | 249..=252 | 255 => usize::from(self.meta[0]),
            _ => 1,
        }
    }

    /// Takes the bytes of one value, its length included.
    pub(super) fn take_value<'a>(&self, take: &mut Take<'a>) -> Option<&'a [u8]> {
        let fraction = |meta: &[u8]| usize::from(meta[0]).div_ceil(2);
        let fixed = match self.real_type() {
            TINY | YEAR => 1,
            SHORT => 2,
            INT24 | 10 | 11 | 14 => 3,
            LONG | FLOAT | 7 => 4,
            DOUBLE | LONGLONG | 12 => 8,
            17 => 4 + fraction(&self.meta),
            18 => 5 + fraction(&self.meta),
            19 => 3 + fraction(&self.meta),
            BIT => usize::from(self.meta[1]) + usize::from(self.meta[0] > 0),
            NEWDECIMAL => decimal_len(self.meta[0], self.meta[1]),
            ENUM | SET => usize::from(self.meta[1]),
            VARCHAR | STRING | 242 | 245 | 249..=252 | 255 => {
                let width = self.length_width();
                let mut ahead = *take;
                width + ahead.int(width)? as usize
            }
            _ => return None,
        };
        take.bytes(fixed)
    }
}

/// `decimal_bin_size`.
fn decimal_len(precision: u8, scale: u8) -> usize {
    const DIGITS: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let part = |digits: u8| usize::from(digits / 9) * 4 + DIGITS[usize::from(digits % 9)];
    part(precision - scale) + part(scale)
}

impl Table {
    /// A table with full metadata whose first column is its primary key.
    #[must_use]
    pub fn new(id: u64, schema: &str, name: &str, columns: Vec<Column>) -> Self {
        Self {
            id,
            flags: 1,
            schema: schema.into(),
            name: name.into(),
            columns,
            primary_key: vec![(0, 0)],
            full_metadata: true,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put::int(out, self.id, 6);
        put::int(out, u64::from(self.flags), 2);
        for name in [&self.schema, &self.name] {
            put::lenenc_bytes(out, name.as_bytes());
            out.push(0);
        }
        put::lenenc(out, self.columns.len() as u64);
        out.extend(self.columns.iter().map(|c| c.type_code));
        let meta: Vec<u8> = self.columns.iter().flat_map(|c| c.meta.iter().copied()).collect();
        put::lenenc_bytes(out, &meta);
        out.extend(bitmap(self.columns.iter().map(|c| c.nullable)));
        self.encode_optional(out);
    }

    /// In the order of `Table_map_log_event::init_metadata_fields`.
    fn encode_optional(&self, out: &mut Vec<u8>) {
        let mut field = |number: u8, value: Vec<u8>| {
            if !value.is_empty() {
                out.push(number);
                put::lenenc_bytes(out, &value);
            }
        };
        field(1, high_bits(self.columns.iter().filter(|c| c.is_number()).map(|c| c.unsigned)));
        let (number, value) = self.collations([2, 3], Column::is_string);
        field(number, value);
        field(7, self.numbers(GEOMETRY, |c| c.geometry));
        field(13, self.numbers(VECTOR, |c| c.dimension));
        if !self.full_metadata {
            return;
        }
        let mut names = Vec::new();
        self.columns.iter().for_each(|c| put::lenenc_bytes(&mut names, c.name.as_bytes()));
        field(4, names);
        let (number, value) = self.collations([10, 11], Column::is_labelled);
        field(number, value);
        field(5, self.labels(SET));
        field(6, self.labels(ENUM));
        let prefixed = self.primary_key.iter().any(|(_, prefix)| *prefix > 0);
        let mut key = Vec::new();
        for (column, prefix) in &self.primary_key {
            put::lenenc(&mut key, *column as u64);
            if prefixed {
                put::lenenc(&mut key, *prefix);
            }
        }
        field(if prefixed { 9 } else { 8 }, key);
        field(12, high_bits(self.columns.iter().map(|c| c.visible)));
    }

    /// The shorter of two forms (`init_charset_field`): a default and exceptions, or each.
    fn collations(&self, [default, each]: [u8; 2], includes: fn(&Column) -> bool) -> (u8, Vec<u8>) {
        let ids: Vec<u16> = self.columns.iter().filter(|c| includes(c)).map(|c| c.collation).collect();
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        ids.iter().for_each(|id| *counts.entry(*id).or_default() += 1);
        let mut most = (0, 0);
        for (id, count) in counts {
            if count > most.1 {
                most = (id, count);
            }
        }
        let mut out = Vec::new();
        if ids.is_empty() {
            return (default, out);
        }
        if ids.len() < 1 + 2 * (ids.len() - most.1) {
            ids.iter().for_each(|id| put::lenenc(&mut out, u64::from(*id)));
            return (each, out);
        }
        put::lenenc(&mut out, u64::from(most.0));
        for (at, id) in ids.iter().enumerate().filter(|(_, id)| **id != most.0) {
            put::lenenc(&mut out, at as u64);
            put::lenenc(&mut out, u64::from(*id));
        }
        (default, out)
    }

    fn numbers(&self, type_code: u8, of: fn(&Column) -> u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.columns.iter().filter(|c| c.type_code == type_code).for_each(|c| put::lenenc(&mut out, of(c)));
        out
    }

    fn labels(&self, real_type: u8) -> Vec<u8> {
        let mut out = Vec::new();
        for column in self.columns.iter().filter(|c| c.real_type() == real_type) {
            put::lenenc(&mut out, column.members.len() as u64);
            column.members.iter().for_each(|member| put::lenenc_bytes(&mut out, member));
        }
        out
    }

    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut take = Take(body);
        let id = take.int(6)?;
        let flags = take.int(2)? as u16;
        let mut name = || {
            let name = String::from_utf8(take.lenenc_bytes()?.to_vec()).ok()?;
            (take.u8()? == 0).then_some(name)
        };
        let (schema, name) = (name()?, name()?);
        let types = take.lenenc_bytes()?;
        let mut meta = Take(take.lenenc_bytes()?);
        let nullable = take.bytes(types.len().div_ceil(8))?;
        let mut columns = Vec::new();
        for (at, code) in types.iter().enumerate() {
            let bytes = meta.bytes(Column::meta_len(*code)?)?;
            let mut column = Column::plain("", *code, bytes);
            column.nullable = nullable[at / 8] >> (at % 8) & 1 == 1;
            columns.push(column);
        }
        let mut table =
            Self { id, flags, schema, name, columns, primary_key: Vec::new(), full_metadata: false };
        while !take.is_empty() {
            let field = take.u8()?;
            table.read_field(field, Take(take.lenenc_bytes()?))?;
        }
        Some(table)
    }

    fn read_field(&mut self, field: u8, mut take: Take<'_>) -> Option<()> {
        let columns = &mut self.columns;
        match field {
            1 => {
                for (at, c) in columns.iter_mut().filter(|c| c.is_number()).enumerate() {
                    c.unsigned = take.0.get(at / 8)? << (at % 8) & 0x80 != 0;
                }
            }
            2 | 10 => {
                let include = if field == 2 { Column::is_string } else { Column::is_labelled };
                let mut some: Vec<&mut Column> = columns.iter_mut().filter(|c| include(c)).collect();
                let default = take.lenenc()? as u16;
                some.iter_mut().for_each(|c| c.collation = default);
                while !take.is_empty() {
                    let at = take.lenenc()? as usize;
                    some.get_mut(at)?.collation = take.lenenc()? as u16;
                }
            }
            3 | 11 => {
                let include = if field == 3 { Column::is_string } else { Column::is_labelled };
                for c in columns.iter_mut().filter(|c| include(c)) {
                    c.collation = take.lenenc()? as u16;
                }
            }
            4 => {
                self.full_metadata = true;
                for c in columns {
                    c.name = String::from_utf8(take.lenenc_bytes()?.to_vec()).ok()?;
                }
            }
            5 | 6 => {
                let real = if field == 5 { SET } else { ENUM };
                for c in columns.iter_mut().filter(|c| c.real_type() == real) {
                    for _ in 0..take.lenenc()? {
                        c.members.push(take.lenenc_bytes()?.to_vec());
                    }
                }
            }
            7 | 13 => {
                let code = if field == 7 { GEOMETRY } else { VECTOR };
                for c in columns.iter_mut().filter(|c| c.type_code == code) {
                    let n = take.lenenc()?;
                    if field == 7 { c.geometry = n } else { c.dimension = n }
                }
            }
            8 | 9 => {
                while !take.is_empty() {
                    let column = take.lenenc()? as usize;
                    let prefix = if field == 9 { take.lenenc()? } else { 0 };
                    self.primary_key.push((column, prefix));
                }
            }
            12 => {
                for (at, c) in columns.iter_mut().enumerate() {
                    c.visible = take.0.get(at / 8)? << (at % 8) & 0x80 != 0;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// First bit lowest.
pub(super) fn bitmap(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            out.push(0);
        }
        out[at / 8] |= u8::from(bit) << (at % 8);
    }
    out
}

/// First bit highest.
fn high_bits(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut out = bitmap(bits);
    out.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
    out
}
