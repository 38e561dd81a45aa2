//! Rows and JSON documents into types of your own (serde).
//!
//! ```
//! use capstan_core::binlog::rows::Row;
//! use capstan_core::read::{ReadError, RowReader};
//!
//! #[derive(serde::Deserialize)]
//! struct Order<'a> {
//!     id: u64,
//!     customer: &'a str,       // borrowed from the row event
//!     total: String,           // DECIMAL: text with full scale
//!     note: Option<String>,    // NULL is None
//!     items: Vec<Item>,        // a JSON column
//! }
//!
//! #[derive(serde::Deserialize)]
//! struct Item {
//!     sku: String,
//!     count: u32,
//! }
//!
//! /// `reader` is kept: it remembers where the columns are.
//! fn pieces(reader: &mut RowReader, row: Row<'_>) -> Result<u32, ReadError> {
//!     let order: Order<'_> = reader.read(row)?;
//!     Ok(order.items.iter().map(|item| item.count).sum())
//! }
//! ```
//!
//! # What a column becomes
//!
//! | column | as | also |
//! |---|---|---|
//! | integers, YEAR, BIT | the integer, of any width that holds it | `bool` for 0 and 1 |
//! | FLOAT, DOUBLE | `f32`, `f64` | |
//! | DECIMAL | text with full scale: `String`, or a type that is read from text | |
//! | DATE, TIME, DATETIME, TIMESTAMP | text as the server prints it, TIMESTAMP in UTC | |
//! | CHAR, VARCHAR, TEXT | `String`; `&str` where the column is in UTF-8 or ASCII | bytes, by a type that asks for them (`serde_bytes`) |
//! | BINARY, VARBINARY, BLOB, GEOMETRY | bytes (`serde_bytes`); `&[u8]` but for a padded BINARY | `String`, if they are UTF-8 |
//! | VECTOR | `Vec<f32>` | bytes |
//! | ENUM | its label: `&str`, `String`, or an `enum` without fields | |
//! | SET | the labels with commas between them | `Vec<String>` of them |
//! | JSON | what the document holds, see below | |
//! | NULL | `Option` | |
//!
//! In a JSON document integers, doubles, booleans, strings, arrays and objects are what they are anywhere.
//! Decimals are text here too (also `f64` where that is asked for), temporals are text as the server prints
//! them in JSON, and values of other column types are bytes, or the server's `base64:typeNN:…` where text is
//! asked for. NULL of the column and the document `null` are both `None`.
//!
//! Errors name the column and what is wrong, and never the value.

use alloc::string::String;
use core::fmt::{self, Display};

use ::serde::de::{self, Expected, Unexpected};

use crate::value::ValueFault;
use crate::value::json::JsonError;

mod json;
mod row;
#[cfg(test)]
mod tests;
mod value;

pub use row::RowReader;

/// Why a row, or a document, could not be read into a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ReadError {
    /// The column; `None` for a document on its own, and where the type as a whole is at fault.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: ReadFault,
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(f, "column {column}: {}", self.reason),
            None => self.reason.fmt(f),
        }
    }
}

/// What is wrong with a value for the type that it is read into. It never holds any of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The table has no column of that name, and the type needs it (the caller's mistake).
    #[error("the table has no such column")]
    NoSuchColumn,
    /// The column is not in this row image, or it is left out of the captured set. It is not NULL.
    #[error("the column is not in this row")]
    Absent,
    /// NULL, for a type that is no `Option`.
    #[error("NULL where a value is needed")]
    Null,
    /// A value of another type than is read.
    #[error("a value of another type")]
    Type,
    /// A value of the right type that the type read cannot hold: a number out of its range, say.
    #[error("a value that the type cannot hold")]
    Range,
    /// Another number of elements than the type has.
    #[error("another number of elements")]
    Length,
    /// A label or name that is no variant of the enum.
    #[error("no variant of that name")]
    Variant,
    /// A member of a document that a type does not know which refuses those.
    #[error("a member that the type does not know")]
    Field,
    /// The named field has no value (a member of a document, or the type's own field).
    #[error("nothing for the field `{0}`")]
    Missing(&'static str),
    /// The named field has two values.
    #[error("two values for the field `{0}`")]
    Twice(&'static str),
    /// Text that is not valid in its character set, or whose character set is not known: read it as bytes.
    #[error("text that cannot be shown as UTF-8")]
    NotText,
    /// A value that no server can have stored.
    #[error("{0}")]
    Value(ValueFault),
    /// The document is malformed.
    #[error("a malformed JSON document: {0}")]
    Json(JsonError),
    /// The type refused the value; its words are not kept, since they may quote it.
    #[error("the type refused the value")]
    Refused,
}

impl From<ReadFault> for ReadError {
    fn from(reason: ReadFault) -> Self {
        Self { column: None, reason }
    }
}

impl From<JsonError> for ReadError {
    fn from(why: JsonError) -> Self {
        ReadFault::Json(why).into()
    }
}

/// Rule 1: what serde would say quotes values, so only its kind is kept.
impl de::Error for ReadError {
    fn custom<T: Display>(_: T) -> Self {
        ReadFault::Refused.into()
    }

    fn invalid_type(found: Unexpected<'_>, _: &dyn Expected) -> Self {
        let null = matches!(found, Unexpected::Unit | Unexpected::Option);
        if null { ReadFault::Null.into() } else { ReadFault::Type.into() }
    }

    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        ReadFault::Range.into()
    }

    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        ReadFault::Length.into()
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        ReadFault::Variant.into()
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        ReadFault::Field.into()
    }

    fn missing_field(field: &'static str) -> Self {
        ReadFault::Missing(field).into()
    }

    fn duplicate_field(field: &'static str) -> Self {
        ReadFault::Twice(field).into()
    }
}
