//! Expressions of generated columns: which come to the same in any session.
//!
//! A server that copies a table computes its STORED columns anew, in the session of the ALTER and without row events.
//! What an expression makes of the same values there is known of a reviewed list of things only; of everything else it
//! is taken to be something else (`lc_time_names`, `div_precision_increment`, `time_zone`, `sql_mode`,
//! `default_week_format`, `block_encryption_mode`, `character_set_connection`, `collation_connection`, …).

use alloc::string::String;
use alloc::vec::Vec;

use super::column::ColumnDefinition;
use super::cursor::{Cursor, Read, Refused};
use super::declared::{DeclaredType, same_column};
use super::lex::TokenKind;
use crate::value::Generation;

/// An expression of nothing but reviewed things; what it comes to is then a matter of its columns' types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    uses: Vec<(String, Use)>,
    /// CONCAT gives NULL beyond `max_allowed_packet`, of which 1024 is the least.
    concatenates: bool,
    literal_bytes: usize,
}

/// What is done with a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It is an operand.
    Operand,
    /// Its bytes are hashed.
    Hash,
}

/// Functions that give the same for the same operands, whatever the session: no comparison of text (the collation of a
/// literal is the session's), nothing of dates (not even YEAR: NO_ZERO_IN_DATE), no division, nothing that takes the bytes
/// of a number's text (they are of `character_set_connection`). The server writes SUBSTRING as SUBSTR.
const FUNCTIONS: [&str; 15] = [
    "ABS",
    "CHAR_LENGTH",
    "COALESCE",
    "CONCAT",
    "IFNULL",
    "JSON_EXTRACT",
    "JSON_UNQUOTE",
    "LCASE",
    "LEFT",
    "LOWER",
    "RIGHT",
    "SUBSTR",
    "SUBSTRING",
    "UCASE",
    "UPPER",
];

/// Of a column of text or bytes itself.
const HASHES: [&str; 2] = ["CRC32", "SHA2"];

/// The least `max_allowed_packet` (manual, "Server System Variables").
const PACKET_MIN: usize = 1024;

impl Expression {
    /// The expression in parentheses at the cursor, if there is nothing in it but reviewed things.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Self> {
        let mut found = Self { uses: Vec::new(), concatenates: false, literal_bytes: 0 };
        cursor.expect_symbol(b'(')?;
        let mut depth = 1_usize;
        loop {
            depth = depth.saturating_add(found.operand(cursor)?);
            loop {
                if cursor.accept_symbol(b')')? {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(found);
                    }
                } else if cursor.accept_symbol(b'-')? {
                    // `column -> 'path'`, `column ->> 'path'`; a subtraction is NO_UNSIGNED_SUBTRACTION's.
                    cursor.expect_symbol(b'>')?;
                    cursor.accept_symbol(b'>')?;
                    found.literal(cursor)?;
                } else if cursor.accept_symbol(b',')?
                    || cursor.accept_symbol(b'+')?
                    || cursor.accept_symbol(b'*')?
                {
                    break;
                } else {
                    return Err(Refused);
                }
            }
        }
    }

    /// One operand, and how many parentheses it opened.
    fn operand(&mut self, cursor: &mut Cursor<'_>) -> Read<usize> {
        let mut opened = 0_usize;
        loop {
            if cursor.accept_symbol(b'(')? {
                opened = opened.saturating_add(1);
                continue;
            }
            match cursor.peek()?.ok_or(Refused)?.kind {
                TokenKind::Number => {
                    cursor.next()?;
                    return Ok(opened);
                }
                TokenKind::String => {
                    self.literal(cursor)?;
                    return Ok(opened);
                }
                TokenKind::Quoted => {
                    self.column(cursor.name()?, Use::Operand);
                    return Ok(opened);
                }
                TokenKind::Word => {
                    let name = cursor.name()?;
                    if name.starts_with('_')
                        && cursor.peek()?.is_some_and(|next| next.kind == TokenKind::String)
                    {
                        // `_utf8mb4'…'`
                        self.literal(cursor)?;
                    } else if !cursor.at_symbol(b'(')? {
                        self.column(name, Use::Operand);
                    } else if FUNCTIONS.iter().any(|function| name.eq_ignore_ascii_case(function)) {
                        self.concatenates |= name.eq_ignore_ascii_case("CONCAT");
                        continue;
                    } else {
                        self.of_column(&name, cursor)?;
                    }
                    return Ok(opened);
                }
                TokenKind::Hex | TokenKind::HexNumber | TokenKind::Bits | TokenKind::Symbol(_) => {
                    return Err(Refused);
                }
            }
        }
    }

    /// `(column)`, `(column, number)`, of a function that takes a column itself.
    fn of_column(&mut self, function: &str, cursor: &mut Cursor<'_>) -> Read<()> {
        if !HASHES.iter().any(|known| function.eq_ignore_ascii_case(known)) {
            return Err(Refused);
        }
        cursor.expect_symbol(b'(')?;
        self.column(cursor.name()?, Use::Hash);
        if cursor.accept_symbol(b',')? && cursor.next()?.is_none_or(|token| token.kind != TokenKind::Number) {
            return Err(Refused);
        }
        cursor.expect_symbol(b')')
    }

    fn column(&mut self, name: String, of: Use) {
        self.uses.push((name, of));
    }

    fn literal(&mut self, cursor: &mut Cursor<'_>) -> Read<()> {
        let token = cursor.next()?.filter(|token| token.kind == TokenKind::String).ok_or(Refused)?;
        self.literal_bytes = self.literal_bytes.saturating_add(token.raw.len());
        // Whether it can be converted at all is a matter of the session's character set.
        if token.raw.is_ascii() { Ok(()) } else { Err(Refused) }
    }

    /// Whether it comes to the same in any session, over columns of these types, in a column of type `into`.
    fn is_the_same<'a>(
        &self,
        into: &DeclaredType,
        column: impl Fn(&str) -> Option<&'a DeclaredType>,
    ) -> bool {
        let mut bytes = self.literal_bytes.saturating_mul(4);
        let fits = |(name, of): &(String, Use)| {
            let Some(found) = column(name) else { return false };
            bytes = bytes.saturating_add(bytes_max(found));
            match of {
                Use::Operand => is_plain(found),
                Use::Hash => is_plain(found) && is_bytes(found),
            }
        };
        let uses = self.uses.iter().all(fits);
        let stored = is_plain(into) || matches!(into, DeclaredType::Char { .. });
        uses && stored && (!self.concatenates || bytes <= PACKET_MIN)
    }
}

/// How the values of each column of a table come about, where the expressions are known: STORED ones that may come to
/// something else in another session are told from those that do not.
pub(super) fn settle(columns: &mut [ColumnDefinition]) {
    // An expression uses only generated columns before it.
    let mut same: Vec<bool> = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let find = |name: &str| {
            let at = columns.iter().position(|other| same_column(&other.name, name))?;
            let usable = match columns.get(at)?.generation {
                Generation::Given => true,
                Generation::Computed | Generation::BySession => at < index && *same.get(at)?,
            };
            columns.get(at).filter(|_| usable).map(|column| &column.column_type)
        };
        let expression = column.expression.as_ref();
        same.push(expression.is_some_and(|known| known.is_the_same(&column.column_type, find)));
    }
    for (column, same) in columns.iter_mut().zip(same) {
        if same && column.generation == Generation::BySession {
            column.generation = Generation::Computed;
        }
    }
}

/// Types whose values, and whose text, are the same in every session. Not a TIMESTAMP (`time_zone`), not CHAR
/// (PAD_CHAR_TO_FULL_LENGTH), nothing that is read from or rounded to a date (`sql_mode`).
const fn is_plain(of: &DeclaredType) -> bool {
    match of {
        DeclaredType::Integer { .. }
        | DeclaredType::Float { .. }
        | DeclaredType::Double { .. }
        | DeclaredType::Decimal { .. }
        | DeclaredType::Varchar { .. }
        | DeclaredType::Text { .. }
        | DeclaredType::Binary { .. }
        | DeclaredType::Varbinary { .. }
        | DeclaredType::Blob { .. }
        | DeclaredType::Json => true,
        DeclaredType::Bit { .. }
        | DeclaredType::Year
        | DeclaredType::Date
        | DeclaredType::Time { .. }
        | DeclaredType::DateTime { .. }
        | DeclaredType::Timestamp { .. }
        | DeclaredType::Char { .. }
        | DeclaredType::Enum(_)
        | DeclaredType::Set(_)
        | DeclaredType::Geometry(_)
        | DeclaredType::Vector { .. } => false,
    }
}

const fn is_bytes(of: &DeclaredType) -> bool {
    matches!(
        of,
        DeclaredType::Varchar { .. }
            | DeclaredType::Text { .. }
            | DeclaredType::Binary { .. }
            | DeclaredType::Varbinary { .. }
            | DeclaredType::Blob { .. }
    )
}

/// The most bytes of a value as text.
fn bytes_max(of: &DeclaredType) -> usize {
    let bytes = match of {
        DeclaredType::Integer { .. } => 20,
        DeclaredType::Decimal { .. } => 70,
        DeclaredType::Varchar { characters } => characters.saturating_mul(4),
        DeclaredType::Binary { bytes } | DeclaredType::Varbinary { bytes } => *bytes,
        DeclaredType::Float { .. }
        | DeclaredType::Double { .. }
        | DeclaredType::Bit { .. }
        | DeclaredType::Year
        | DeclaredType::Date
        | DeclaredType::Time { .. }
        | DeclaredType::DateTime { .. }
        | DeclaredType::Timestamp { .. }
        | DeclaredType::Char { .. }
        | DeclaredType::Text { .. }
        | DeclaredType::Blob { .. }
        | DeclaredType::Enum(_)
        | DeclaredType::Set(_)
        | DeclaredType::Json
        | DeclaredType::Geometry(_)
        | DeclaredType::Vector { .. } => u32::MAX,
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
