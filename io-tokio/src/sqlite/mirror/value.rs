//! Values in the classes of SQLite: nothing is lost, and one value has one form.

use std::fmt::Write as _;

use capstan_core::{
    sql::{DeclaredType, RowValue},
    value::{Value, ValueFault},
};
use rusqlite::types::ValueRef;

/// Calls `then` with the value as SQLite holds it. `scratch` is used again for each.
pub(super) fn with_cell<R>(
    value: Value<'_>,
    scratch: &mut String,
    then: impl FnOnce(ValueRef<'_>) -> R,
) -> Result<R, ValueFault> {
    scratch.clear();
    let cell = match value {
        Value::Null => ValueRef::Null,
        // Every column that is captured is in a full image; the core has seen to it.
        Value::Absent => return Err(ValueFault::NoSuchColumn),
        Value::Int(value) => ValueRef::Integer(value),
        Value::UInt(value) => unsigned(value, scratch),
        Value::Bit(bit) => unsigned(bit.value(), scratch),
        Value::Year(year) => ValueRef::Integer(year.into()),
        Value::Float(value) => ValueRef::Real(value.into()),
        Value::Double(value) => ValueRef::Real(value),
        Value::Decimal(value) => printed(value, scratch),
        Value::Date(value) => printed(value, scratch),
        Value::Time(value) => printed(value, scratch),
        Value::DateTime(value) => printed(value, scratch),
        Value::Timestamp(value) => printed(value, scratch),
        Value::Json(document) => {
            document.write_text(scratch).map_err(ValueFault::Json)?;
            ValueRef::Text(scratch.as_bytes())
        }
        Value::Text(text) => {
            return Ok(match text.to_str() {
                Ok(text) => then(ValueRef::Text(text.as_bytes())),
                Err(_) => then(ValueRef::Blob(text.as_bytes())),
            });
        }
        Value::Enum(value) => {
            return Ok(match value.label() {
                Some(label) => match label.to_str() {
                    Ok(text) => then(ValueRef::Text(text.as_bytes())),
                    Err(_) => then(ValueRef::Blob(label.as_bytes())),
                },
                None => then(ValueRef::Integer(value.index().into())),
            });
        }
        Value::Set(value) => {
            return Ok(match (value.to_str(), value.to_bytes()) {
                (Ok(text), _) => then(ValueRef::Text(text.as_bytes())),
                (Err(_), Some(bytes)) => then(ValueRef::Blob(&bytes)),
                (Err(_), None) => then(unsigned(value.bits(), scratch)),
            });
        }
        Value::Binary(value) => return Ok(then(ValueRef::Blob(&value.to_bytes()))),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
        Value::Geometry(value) => ValueRef::Blob(value.as_bytes()),
        Value::Vector(value) => ValueRef::Blob(value.as_bytes()),
    };
    Ok(then(cell))
}

/// An integer, as text where SQLite has none so large.
fn unsigned(value: u64, scratch: &mut String) -> ValueRef<'_> {
    match i64::try_from(value) {
        Ok(value) => ValueRef::Integer(value),
        Err(_) => printed(value, scratch),
    }
}

fn printed(value: impl std::fmt::Display, scratch: &mut String) -> ValueRef<'_> {
    // Writing to a string cannot fail.
    let _ = write!(scratch, "{value}");
    ValueRef::Text(scratch.as_bytes())
}

/// A value that a schema change gives to every row.
pub(super) fn of_row_value(value: &RowValue) -> rusqlite::types::Value {
    use rusqlite::types::Value as Owned;
    match value {
        RowValue::Null => Owned::Null,
        RowValue::Integer(value) => Owned::Integer(*value),
        RowValue::Unsigned(value) => {
            i64::try_from(*value).map_or_else(|_| Owned::Text(value.to_string()), Owned::Integer)
        }
        RowValue::Real(value) => Owned::Real(*value),
        RowValue::Text(text) => Owned::Text(text.clone()),
        RowValue::Bytes(bytes) => Owned::Blob(bytes.clone()),
    }
}

/// The type a column is declared with: an affinity that changes no value of it, or none.
pub(super) const fn declaration(column_type: Option<&DeclaredType>) -> &'static str {
    match column_type {
        Some(
            DeclaredType::Integer { bytes: 8, unsigned: true }
            | DeclaredType::Bit { bits: 64.. }
            // With the affinity REAL, -0 would become 0.
            | DeclaredType::Float { .. }
            | DeclaredType::Double { .. }
            | DeclaredType::Decimal { .. }
            | DeclaredType::Date
            | DeclaredType::Time { .. }
            | DeclaredType::DateTime { .. }
            | DeclaredType::Timestamp { .. },
        )
        | None => "",
        Some(DeclaredType::Integer { .. } | DeclaredType::Bit { .. } | DeclaredType::Year) => " INTEGER",
        Some(
            DeclaredType::Char { .. }
            | DeclaredType::Varchar { .. }
            | DeclaredType::Text { .. }
            | DeclaredType::Enum(_)
            | DeclaredType::Set(_)
            | DeclaredType::Json,
        ) => " TEXT",
        Some(
            DeclaredType::Binary { .. }
            | DeclaredType::Varbinary { .. }
            | DeclaredType::Blob { .. }
            | DeclaredType::Geometry(_)
            | DeclaredType::Vector { .. },
        ) => " BLOB",
    }
}

/// A hash of a row's values, for finding rows of tables without a key. Equal rows have equal hashes; which
/// of several with one hash is meant is decided by comparing. Stored, so it never changes: FNV-1a of 64
/// bits over each value that is not NULL, with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowHash(u64);

impl RowHash {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds the value of the `index`th column. NULLs are left out, so that a column of NULLs can be added
    /// behind the others without a new hash for each row.
    pub(super) fn add(&mut self, index: usize, cell: ValueRef<'_>) {
        let (tag, number, bytes): (u8, [u8; 8], &[u8]) = match cell {
            ValueRef::Null => return,
            ValueRef::Integer(value) => (1, value.to_le_bytes(), &[]),
            // 0 and -0 are equal in SQLite, and not here.
            ValueRef::Real(value) => (2, value.to_bits().to_le_bytes(), &[]),
            ValueRef::Text(text) => (3, (text.len() as u64).to_le_bytes(), text),
            ValueRef::Blob(bytes) => (4, (bytes.len() as u64).to_le_bytes(), bytes),
        };
        self.bytes(&(index as u64).to_le_bytes());
        self.bytes(&[tag]);
        self.bytes(&number);
        self.bytes(bytes);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// As SQLite holds it.
    pub(super) const fn value(self) -> i64 {
        self.0.cast_signed()
    }
}
