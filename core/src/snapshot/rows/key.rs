//! The key a table is copied by: which, how its values are written into a statement, and how two compare.

use alloc::{borrow::ToOwned, boxed::Box, format, string::String, vec::Vec};
use core::cmp::Ordering;

use super::sql::{exact, hex, quoted};
use crate::binlog::rows::Row;
use crate::deliver::KeyParts;
use crate::value::{Column, ColumnType, Kind, Step, TableVersion, Value, decode};

/// Why a table has no key that it can be copied by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyUnsupported {
    /// No primary key, and no unique key whose columns are all NOT NULL.
    #[error("no primary key and no unique key without NULL")]
    NoKey,
    /// Part of the key is an expression.
    #[error("key {0} has a part that is an expression")]
    Expression(String),
    /// Part of the key is only the beginning of a column.
    #[error("key {key} holds only the beginning of column {column}")]
    Prefix {
        /// The key.
        key: String,
        /// The column.
        column: String,
    },
    /// A column of the key is left out of the captured set.
    #[error("column {0} of the key is left out")]
    LeftOut(String),
    /// A column under a collation whose weights (`WEIGHT_STRING`) are not in the order in which it compares.
    #[error("column {column} of the key is under {collation}, whose weights are not its order")]
    Collation {
        /// The column.
        column: String,
        /// The collation, by the server's name.
        collation: String,
    },
    /// A column of a type that no key has.
    #[error("column {0} of the key is of a type that no key has")]
    Type(String),
}

/// A unique key as the catalogue has it.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) visible: bool,
    /// In index order; `None` is an expression.
    pub(super) parts: Vec<Option<IndexPart>>,
}

#[derive(Clone, Debug)]
pub(super) struct IndexPart {
    pub(super) column: usize,
    pub(super) prefix: u32,
}

/// What the catalogue says of a string column.
#[derive(Clone, Debug)]
pub(super) struct StringFacts {
    pub(super) charset: String,
    pub(super) collation: String,
    pub(super) chars_max: u64,
}

/// A key whose parts are whole columns without NULL, in the order of the index.
#[derive(Clone, Debug)]
pub struct CopyKey {
    name: String,
    parts: Vec<CopyKeyPart>,
}

/// One column of a key.
#[derive(Clone, Debug)]
pub struct CopyKeyPart {
    index: usize,
    column: Column,
    step: Step,
    order: KeyOrder,
}

/// Who knows the order of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// The order is that of bytes made here: [`CopyKey::compare`].
    Core,
    /// Text: the server's weights under the column's own collation, see [`CopyKeyPart::weight`].
    Server {
        /// The character set, by the server's name.
        charset: String,
        /// The collation, by the server's name.
        collation: String,
        /// Longest value in characters, to which shorter ones are padded; `None` under a collation that does
        /// not pad.
        pad_to: Option<u64>,
    },
}

impl CopyKey {
    pub(super) fn choose(
        table: &TableVersion,
        indexes: &[Index],
        strings: &[Option<StringFacts>],
    ) -> Result<Self, KeyUnsupported> {
        let mut refused = None;
        for index in indexes.iter().filter(|index| index.visible) {
            let nullable = |part: &Option<IndexPart>| {
                let column = part.as_ref().and_then(|part| table.columns().get(part.column));
                column.is_some_and(|column| column.nullable)
            };
            if index.parts.iter().any(nullable) {
                continue;
            }
            match Self::of(table, index, strings) {
                Ok(key) => return Ok(key),
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
        Err(refused.unwrap_or(KeyUnsupported::NoKey))
    }

    fn of(
        table: &TableVersion,
        index: &Index,
        strings: &[Option<StringFacts>],
    ) -> Result<Self, KeyUnsupported> {
        let mut parts = Vec::with_capacity(index.parts.len());
        for part in &index.parts {
            let expression = || KeyUnsupported::Expression(index.name.clone());
            let part = part.as_ref().ok_or_else(expression)?;
            let column = table.columns().get(part.column).ok_or_else(expression)?;
            let step = *table.plan().steps.get(part.column).ok_or_else(expression)?;
            if part.prefix != 0 {
                let column = column.name.clone();
                return Err(KeyUnsupported::Prefix { key: index.name.clone(), column });
            }
            if table.is_left_out(part.column) {
                return Err(KeyUnsupported::LeftOut(column.name.clone()));
            }
            let facts = strings.get(part.column).and_then(Option::as_ref);
            if let Some(StringFacts { collation, .. }) = facts
                && DISORDERLY.contains(&collation.as_str())
                && !matches!(column.column_type, ColumnType::Enum { .. } | ColumnType::Set { .. })
            {
                let (column, collation) = (column.name.clone(), collation.clone());
                return Err(KeyUnsupported::Collation { column, collation });
            }
            let order = order(&column.column_type, facts);
            let order = order.ok_or_else(|| KeyUnsupported::Type(column.name.clone()))?;
            parts.push(CopyKeyPart { index: part.column, column: column.clone(), step, order });
        }
        if parts.is_empty() {
            return Err(KeyUnsupported::NoKey);
        }
        Ok(Self { name: index.name.clone(), parts })
    }

    /// The index's name: `PRIMARY`, or that of a unique key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The columns in index order.
    #[must_use]
    pub fn parts(&self) -> &[CopyKeyPart] {
        &self.parts
    }

    /// Whether [`CopyKey::compare`] always has an answer.
    #[must_use]
    pub fn is_ordered_here(&self) -> bool {
        self.parts.iter().all(|part| part.order == KeyOrder::Core)
    }

    /// The key of a row of the same table version; `None` where a column is absent or NULL.
    #[must_use]
    pub fn value(&self, row: Row<'_>) -> Option<KeyParts> {
        let parts = self.parts.iter().map(|part| row.raw(part.index).map(Box::from));
        Some(KeyParts(parts.collect::<Option<_>>()?))
    }

    /// `ORDER BY` without the words: the columns in index order.
    #[must_use]
    pub fn order_by(&self) -> String {
        let mut out = String::new();
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            quoted(&part.column.name, &mut out);
        }
        out
    }

    /// The condition that a row lies behind `value`, in a form whose first part the server finds by the index:
    /// `a > 1 OR a = 1 AND b > 2`. `None` for the value of another key.
    #[must_use]
    pub fn behind(&self, value: &KeyParts) -> Option<String> {
        self.condition(value, ">", ">")
    }

    /// The condition that a row is at `value` or before it.
    #[must_use]
    pub fn up_to(&self, value: &KeyParts) -> Option<String> {
        self.condition(value, "<", "<=")
    }

    fn condition(&self, value: &KeyParts, inner: &str, last: &str) -> Option<String> {
        if value.0.len() != self.parts.len() {
            return None;
        }
        let mut out = String::new();
        let mut equal = String::new();
        for (at, (part, raw)) in self.parts.iter().zip(&value.0).enumerate() {
            let (expression, literal) = (part.expression(), part.literal(raw)?);
            let is_last = at.saturating_add(1) == self.parts.len();
            let comparison = if is_last { last } else { inner };
            if at > 0 {
                out.push_str(" OR ");
            }
            out.push_str(&format!("({equal}{expression} {comparison} {literal})"));
            equal.push_str(&format!("{expression} = {literal} AND "));
        }
        Some(out)
    }

    /// How two keys of one table version compare; `None` where the server has to say (text that differs), or
    /// where they are no values of this key.
    #[must_use]
    pub fn compare(&self, one: &KeyParts, other: &KeyParts) -> Option<Ordering> {
        if one.0.len() != self.parts.len() || other.0.len() != self.parts.len() {
            return None;
        }
        for (part, (one, other)) in self.parts.iter().zip(one.0.iter().zip(&other.0)) {
            if one == other {
                continue;
            }
            let order = part.sortable(one)?.cmp(&part.sortable(other)?);
            if order != Ordering::Equal {
                return Some(order);
            }
        }
        Some(Ordering::Equal)
    }
}

impl CopyKeyPart {
    /// Index into the table's columns.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.index
    }

    /// Who knows the order of its values.
    #[must_use]
    pub const fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// What a literal is compared with. A SET is not compared as it is: the server would do it as a DOUBLE.
    #[must_use]
    pub fn expression(&self) -> String {
        let mut out = String::new();
        match self.order {
            // The cast of a FLOAT would hide the index, and changes nothing.
            KeyOrder::Core if !matches!(self.step.kind, Kind::Float | Kind::Double) => {
                exact(&self.column.name, &self.column.column_type, &mut out);
            }
            KeyOrder::Core | KeyOrder::Server { .. } => quoted(&self.column.name, &mut out),
        }
        out
    }

    /// A value of this column as a literal that no session variable bends; `None` if it is none.
    #[must_use]
    pub fn literal(&self, raw: &[u8]) -> Option<String> {
        Some(match decode(&self.step, 0, core::slice::from_ref(&self.column), raw).ok()? {
            Value::Int(n) => format!("{n}"),
            Value::UInt(n) => format!("{n}"),
            // Compared as doubles: every digit of the float's double.
            Value::Float(n) => format!("{:e}", f64::from(n)),
            Value::Double(n) => format!("{n:e}"),
            Value::Decimal(n) => format!("{n}"),
            Value::Bit(bit) => format!("{}", bit.value()),
            Value::Year(year) => format!("{year}"),
            Value::Date(date) => format!("DATE'{date}'"),
            Value::Time(time) => format!("TIME'{time}'"),
            Value::DateTime(at) => format!("TIMESTAMP'{at}'"),
            Value::Timestamp(at) => format!("TIMESTAMP'{at}'"),
            Value::Enum(member) => format!("{}", member.index()),
            Value::Set(set) => format!("{}", set.bits()),
            Value::Binary(bytes) => {
                let mut out = String::new();
                hex(&bytes.to_bytes(), &mut out);
                out
            }
            Value::Text(text) => {
                let KeyOrder::Server { charset, collation, .. } = &self.order else { return None };
                let mut out = format!("_{charset} ");
                hex(text.as_bytes(), &mut out);
                out.push_str(" COLLATE ");
                out.push_str(collation);
                out
            }
            Value::Null
            | Value::Absent
            | Value::Blob(_)
            | Value::Json(_)
            | Value::Geometry(_)
            | Value::Vector(_) => return None,
        })
    }

    /// The server's weights of an expression of this column's type ([`CopyKeyPart::expression`],
    /// [`CopyKeyPart::literal`]): bytes in whose order the values are. `None` where the core has an order.
    #[must_use]
    pub fn weight(&self, expression: &str) -> Option<String> {
        match &self.order {
            KeyOrder::Core => None,
            KeyOrder::Server { pad_to: None, .. } => Some(format!("WEIGHT_STRING({expression})")),
            KeyOrder::Server { pad_to: Some(n), .. } => {
                Some(format!("WEIGHT_STRING({expression} AS CHAR({n}))"))
            }
        }
    }

    /// Bytes in whose order the values are; `None` for text, whose order the server knows.
    fn sortable(&self, raw: &[u8]) -> Option<Vec<u8>> {
        if self.order != KeyOrder::Core {
            return None;
        }
        let mut bytes = raw.to_owned();
        match self.step.kind {
            Kind::I8 | Kind::I16 | Kind::I24 | Kind::I32 | Kind::I64 => {
                bytes.reverse();
                *bytes.first_mut()? ^= 0x80;
            }
            Kind::U8
            | Kind::U16
            | Kind::U24
            | Kind::U32
            | Kind::U64
            | Kind::Date
            | Kind::Enum
            | Kind::Set => {
                bytes.reverse();
            }
            Kind::Float | Kind::Double => {
                bytes.reverse();
                let first = bytes.first_mut()?;
                if *first & 0x80 == 0 {
                    *first ^= 0x80;
                } else if raw.iter().rev().skip(1).all(|byte| *byte == 0) && *first == 0x80 {
                    // Minus zero is zero, whose bytes these are now.
                } else {
                    bytes.iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
            // Big-endian, biased: made to be compared. Binary strings lack their padding, which is the least
            // byte there is.
            Kind::Decimal { .. }
            | Kind::Bit { .. }
            | Kind::Year
            | Kind::Time { .. }
            | Kind::DateTime { .. }
            | Kind::Timestamp { .. }
            | Kind::Binary { .. } => {}
            Kind::Text { .. }
            | Kind::Blob
            | Kind::Json
            | Kind::Geometry
            | Kind::Vector
            | Kind::OldTime
            | Kind::OldDateTime
            | Kind::OldTimestamp
            | Kind::LeftOut => return None,
        }
        Some(bytes)
    }
}

/// Collations whose sort keys are not in the order in which they compare: `big5_chinese_ci` compares by code and
/// makes keys by strokes, `gb18030_chinese_ci` folds four-byte letters in keys alone, and the others pad a key with
/// another weight than that of a space. Found by trying all 285 collations of 9.7.4 with 400 to 5,500 texts each.
const DISORDERLY: &[&str] = &[
    "big5_chinese_ci",
    "gb18030_chinese_ci",
    "latin7_estonian_cs",
    "latin7_general_ci",
    "latin7_general_cs",
    "tis620_thai_ci",
];

/// Who knows the order of a type; `None` for one that no whole-column key has.
fn order(column: &ColumnType, facts: Option<&StringFacts>) -> Option<KeyOrder> {
    match column {
        ColumnType::TinyInt { .. }
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. }
        | ColumnType::Float { .. }
        | ColumnType::Double { .. }
        | ColumnType::Decimal { .. }
        | ColumnType::Bit { .. }
        | ColumnType::Year
        | ColumnType::Date
        | ColumnType::Time { .. }
        | ColumnType::DateTime { .. }
        | ColumnType::Timestamp { .. }
        | ColumnType::Binary { .. }
        | ColumnType::Varbinary { .. }
        | ColumnType::Enum { .. }
        | ColumnType::Set { .. } => Some(KeyOrder::Core),
        ColumnType::Char { .. } | ColumnType::Varchar { .. } => {
            let facts = facts?;
            // `PAD_ATTRIBUTE` is NO PAD for the collations of UCA 9.0.0 and `binary`, and PAD SPACE for others.
            let pads = !facts.collation.contains("_0900_");
            Some(KeyOrder::Server {
                charset: facts.charset.clone(),
                collation: facts.collation.clone(),
                pad_to: pads.then_some(facts.chars_max.max(1)),
            })
        }
        ColumnType::OldTime
        | ColumnType::OldDateTime
        | ColumnType::OldTimestamp
        | ColumnType::Text { .. }
        | ColumnType::Blob { .. }
        | ColumnType::Json
        | ColumnType::Geometry { .. }
        | ColumnType::Vector { .. } => None,
    }
}
