//! Units and values as text: JSON lines and ledger images.
//!
//! Everything is written straight into one `String`: no tree in between, nothing copied twice. Where a
//! value turns out malformed the text is cut back to where the call began, so a caller never holds half
//! a value.
//!
//! | column | text |
//! |---|---|
//! | integers, BIT, YEAR | number ([`Bigint`] decides for those of 64 bits) |
//! | FLOAT, DOUBLE | the shortest number that reads back as the same |
//! | DECIMAL | string with every digit of its scale |
//! | DATE, TIME, DATETIME, TIMESTAMP | string as the server prints it, TIMESTAMP in UTC |
//! | CHAR, VARCHAR, TEXT, ENUM, SET | string; `{"base64":"…"}` where it is no text in its character set |
//! | BINARY, VARBINARY, BLOB, GEOMETRY (SRID and WKB), VECTOR | base64 string |
//! | JSON | the document itself, in the server's own text |
//! | NULL | `null` |
//!
//! A column that is not in a row image is left out.

mod draft;
mod line;
mod schema_change;
#[cfg(test)]
mod tests;
mod value;

pub use line::{SnapshotLine, TransactionLine, write_change, write_progress, write_schema_change};
pub use schema_change::{SchemaChangeText, kind_name, rows_effect_name};
pub use value::{write_image, write_time, write_value};

/// How integers of 64 bits are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bigint {
    /// As numbers, digit for digit. Readers that put every number into a double lose some.
    #[default]
    Number,
    /// As strings: every value of a BIGINT column, and of a BIT or SET column of more than 53 bits.
    String,
}

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// How integers of 64 bits are written.
    pub bigint: Bigint,
}
