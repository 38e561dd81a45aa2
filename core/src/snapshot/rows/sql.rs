//! Names, byte strings and the column list of the statements that read a table.

use alloc::{borrow::ToOwned, string::String};

use crate::value::{ColumnType, TableVersion};

/// What a session that reads rows is set to, so that every text is exact: bytes as they are stored, TIMESTAMP in
/// UTC, no padding of CHAR, invalid dates as they are, the server's own key visible; and patience with a reader
/// that stops for a while.
pub const SESSION: &str = "SET SESSION character_set_client = utf8mb4, collation_connection = utf8mb4_bin, \
     character_set_results = binary, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES', \
     sql_select_limit = DEFAULT, sql_big_selects = 1, max_execution_time = 0, net_write_timeout = 3600, \
     max_sort_length = 8388608, \
     transaction_isolation = 'REPEATABLE-READ' \
     /*!80030 , show_gipk_in_create_table_and_information_schema = ON */";

/// Appends a name in backticks.
pub fn quoted(name: &str, out: &mut String) {
    out.push('`');
    for c in name.chars() {
        if c == '`' {
            out.push('`');
        }
        out.push(c);
    }
    out.push('`');
}

/// A table's full name.
#[must_use]
pub fn quoted_table(schema: &str, table: &str) -> String {
    let mut name = String::new();
    quoted(schema, &mut name);
    name.push('.');
    quoted(table, &mut name);
    name
}

/// Appends bytes as the literal `x'…'`, which no character set and no quote can bend.
pub fn hex(bytes: &[u8], out: &mut String) {
    out.push_str("x'");
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    out.push('\'');
}

/// Text as a literal.
#[must_use]
pub fn text(text: &str) -> String {
    let mut out = "_utf8mb4 ".to_owned();
    hex(text.as_bytes(), &mut out);
    out
}

/// What to select of a table, a column of the result for each of its own, so that
/// [`RowEncoder`](super::RowEncoder) can read it: numbers in a form that loses nothing, ENUM and SET by number.
/// Of columns that are left out NULL is selected.
#[must_use]
pub fn select_list(table: &TableVersion) -> String {
    select_some(table, |_| true)
}

/// As [`select_list`], and NULL for columns that are not wanted.
pub(crate) fn select_some(table: &TableVersion, wanted: impl Fn(usize) -> bool) -> String {
    let mut out = String::new();
    for (index, column) in table.columns().iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        if table.is_left_out(index) || !wanted(index) {
            out.push_str("NULL");
        } else {
            exact(&column.name, &column.column_type, &mut out);
        }
    }
    out
}

/// A column whose text, or order, is that of its value.
pub(super) fn exact(name: &str, column: &ColumnType, out: &mut String) {
    let cast = match column {
        // A FLOAT prints six digits; FLOAT(M,D) and DOUBLE(M,D) print D behind the point.
        ColumnType::Float { .. } | ColumnType::Double { .. } => Some("DOUBLE"),
        // `s + 0` is a DOUBLE: of 64 members the lowest would be lost.
        ColumnType::Enum { .. } | ColumnType::Set { .. } => Some("UNSIGNED"),
        ColumnType::TinyInt { .. }
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. }
        | ColumnType::Decimal { .. }
        | ColumnType::Bit { .. }
        | ColumnType::Year
        | ColumnType::Date
        | ColumnType::Time { .. }
        | ColumnType::DateTime { .. }
        | ColumnType::Timestamp { .. }
        | ColumnType::OldTime
        | ColumnType::OldDateTime
        | ColumnType::OldTimestamp
        | ColumnType::Char { .. }
        | ColumnType::Varchar { .. }
        | ColumnType::Text { .. }
        | ColumnType::Binary { .. }
        | ColumnType::Varbinary { .. }
        | ColumnType::Blob { .. }
        | ColumnType::Json
        | ColumnType::Geometry { .. }
        | ColumnType::Vector { .. } => None,
    };
    match cast {
        None => quoted(name, out),
        Some(to) => {
            out.push_str("CAST(");
            quoted(name, out);
            out.push_str(" AS ");
            out.push_str(to);
            out.push(')');
        }
    }
}
