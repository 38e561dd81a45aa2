//! Column definitions: what a DDL's text says a column is, and what becomes of values under it.
//!
//! Only what is certain: whatever is not read here to its end makes the whole clause one that is not
//! followed.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::cursor::{Cursor, Read, Refused};
use super::declared::DeclaredType;
use super::generated::Expression;
use super::lex::TokenKind;
use super::literal::Literal;
use crate::value::{Generation, charset::Charset};

/// A column as `CREATE TABLE` or `ALTER TABLE` defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: DeclaredType,
    /// The character set that the text names, also by a collation; `None`: the table's.
    pub charset: Option<Charset>,
    /// What the text says about NULL; `None`: nothing.
    pub nullable: Option<bool>,
    /// What rows get that say nothing of the column.
    pub default: DefaultValue,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// Whether its values are computed from other columns.
    pub generation: Generation,
    /// What from, where that is a reviewed expression.
    pub(super) expression: Option<Expression>,
    /// `PRIMARY KEY` or `KEY` is part of it.
    pub primary_key: bool,
    /// It is not captured ([`crate::capture::CapturedSet::column_captured`]).
    pub left_out: bool,
}

/// The `DEFAULT` of a column.
#[derive(Clone, PartialEq, Eq)]
pub enum DefaultValue {
    /// None is said.
    Unsaid,
    /// A literal.
    Literal(Literal),
    /// A literal in parentheses, an expression to the server: TEXT and BLOB take no other default.
    Expression(Literal),
    /// An expression, a function, or a literal of a form that is not read.
    Computed,
}

impl fmt::Debug for DefaultValue {
    // Rule 1: a default is a value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsaid => "Unsaid",
            Self::Literal(_) => "Literal",
            Self::Expression(_) => "Expression",
            Self::Computed => "Computed",
        })
    }
}

/// Where a column goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPosition {
    /// Where it is, or last if it is new.
    Unsaid,
    /// `FIRST`.
    First,
    /// `AFTER` this column.
    After(String),
}

/// A value that every row gets, in the form it has outside of MySQL.
#[derive(Clone, PartialEq)]
pub enum RowValue {
    /// NULL.
    Null,
    /// Integers, BIT, YEAR.
    Integer(i64),
    /// Integers beyond `i64`.
    Unsigned(u64),
    /// FLOAT (widened) and DOUBLE.
    Real(f64),
    /// Text, DECIMAL, temporals, ENUM, SET: as `SELECT` prints it.
    Text(String),
    /// BINARY, VARBINARY.
    Bytes(Vec<u8>),
}

impl fmt::Debug for RowValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowValue(..)")
    }
}

impl ColumnDefinition {
    /// What rows that are already there hold in this column once it is added; `None` where that is not
    /// certain from the text.
    ///
    /// Source: manual, "ALTER TABLE Statement", "Data Type Default Values"; each form is proved against
    /// a 9.7 server by the tests.
    #[must_use]
    pub fn value_when_added(&self) -> Option<RowValue> {
        if self.generation != Generation::Given || self.auto_increment || self.primary_key {
            return None;
        }
        match &self.default {
            DefaultValue::Computed => None,
            DefaultValue::Unsaid
            | DefaultValue::Literal(Literal::Null)
            | DefaultValue::Expression(Literal::Null) => match self.nullable {
                Some(true) => Some(RowValue::Null),
                // Without explicit_defaults_for_timestamp a TIMESTAMP is NOT NULL unless NULL is said.
                None if !matches!(self.column_type, DeclaredType::Timestamp { .. }) => Some(RowValue::Null),
                None | Some(false) => None,
            },
            DefaultValue::Literal(literal) => self.column_type.value_of(literal),
            DefaultValue::Expression(literal) => self.column_type.value_of_expression(literal),
        }
    }
}

/// `name definition`, up to what is no part of it.
pub(super) fn named_definition(cursor: &mut Cursor<'_>) -> Read<ColumnDefinition> {
    let name = column_name(cursor)?;
    definition(cursor, name)
}

/// `name`, or `table.name` and `schema.table.name`, which the server takes too.
pub(super) fn column_name(cursor: &mut Cursor<'_>) -> Read<String> {
    let name = cursor.name()?;
    if cursor.at_symbol(b'.')? { Err(Refused) } else { Ok(name) }
}

/// `type attribute …`
pub(super) fn definition(cursor: &mut Cursor<'_>, name: String) -> Read<ColumnDefinition> {
    let column_type = DeclaredType::read(cursor)?;
    let mut column = ColumnDefinition {
        name,
        column_type,
        charset: None,
        nullable: None,
        default: DefaultValue::Unsaid,
        auto_increment: false,
        generation: Generation::Given,
        expression: None,
        primary_key: false,
        left_out: false,
    };
    while attribute(cursor, &mut column)? {}
    if column.charset == Some(Charset::Binary) {
        // CHAR becomes BINARY, and so on: not worth following.
        return Err(Refused);
    }
    Ok(column)
}

/// `[FIRST | AFTER name]`
pub(super) fn position(cursor: &mut Cursor<'_>) -> Read<ColumnPosition> {
    if cursor.accept("FIRST")? {
        Ok(ColumnPosition::First)
    } else if cursor.accept("AFTER")? {
        cursor.name().map(ColumnPosition::After)
    } else {
        Ok(ColumnPosition::Unsaid)
    }
}

/// One attribute; `false` where none is next.
fn attribute(cursor: &mut Cursor<'_>, column: &mut ColumnDefinition) -> Read<bool> {
    if cursor.accept("NULL")? {
        column.nullable = Some(true);
    } else if cursor.accept("NOT")? {
        // NOT NULL; NOT SECONDARY is of the HeatWave kind.
        if cursor.accept("NULL")? {
            column.nullable = Some(false);
        } else {
            cursor.expect("SECONDARY")?;
        }
    } else if cursor.accept("DEFAULT")? {
        column.default = default_value(cursor)?;
    } else if cursor.accept("ON")? {
        cursor.expect("UPDATE")?;
        now(cursor)?;
    } else if cursor.accept("AUTO_INCREMENT")? {
        column.auto_increment = true;
    } else if cursor.accept("UNIQUE")? {
        cursor.accept("KEY")?;
    } else if cursor.accept("PRIMARY")? || cursor.at("KEY")? {
        cursor.accept("KEY")?;
        column.primary_key = true;
    } else if cursor.accept("COLLATE")? {
        let collation = word_or_string(cursor)?;
        let charset = collation.split('_').next().unwrap_or_default();
        column.charset = Some(Charset::by_name(charset).ok_or(Refused)?);
    } else if cursor.accept_any(&["CHARSET"])? {
        column.charset = Some(charset_name(cursor)?);
    } else if cursor.accept_any(&["CHARACTER", "CHAR"])? {
        cursor.expect("SET")?;
        column.charset = Some(charset_name(cursor)?);
    } else if cursor.accept("GENERATED")? {
        cursor.expect("ALWAYS")?;
        cursor.expect("AS")?;
        generated(cursor, column)?;
    } else if cursor.accept("AS")? {
        generated(cursor, column)?;
    } else if cursor.accept("REFERENCES")? {
        references(cursor)?;
    } else if cursor.accept("CONSTRAINT")? {
        if !cursor.at("CHECK")? {
            cursor.name()?;
        }
        cursor.expect("CHECK")?;
        check(cursor)?;
    } else if cursor.accept("CHECK")? {
        check(cursor)?;
    } else {
        return harmless(cursor);
    }
    Ok(true)
}

/// Attributes without a say in any value.
fn harmless(cursor: &mut Cursor<'_>) -> Read<bool> {
    if cursor.accept_any(&["VISIBLE", "INVISIBLE"])? {
    } else if cursor.accept_any(&["COMMENT", "COLUMN_FORMAT", "STORAGE", "SRID"])? {
        single(cursor)?;
    } else if cursor.accept_any(&["ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"])? {
        cursor.accept_symbol(b'=')?;
        single(cursor)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// One token that is no symbol.
fn single(cursor: &mut Cursor<'_>) -> Read<()> {
    match cursor.next()?.map(|token| token.kind) {
        Some(TokenKind::Symbol(_)) | None => Err(Refused),
        Some(_) => Ok(()),
    }
}

/// What follows `DEFAULT`.
fn default_value(cursor: &mut Cursor<'_>) -> Read<DefaultValue> {
    if cursor.at_symbol(b'(')? {
        let mut ahead = cursor.clone();
        ahead.accept_symbol(b'(')?;
        if let Ok(literal) = Literal::read(&mut ahead)
            && ahead.accept_symbol(b')')?
        {
            *cursor = ahead;
            return Ok(DefaultValue::Expression(literal));
        }
        cursor.group_or_token()?;
        return Ok(DefaultValue::Computed);
    }
    if cursor.at_any(&["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"])? {
        now(cursor)?;
        return Ok(DefaultValue::Computed);
    }
    Literal::read(cursor).map(DefaultValue::Literal)
}

/// `CURRENT_TIMESTAMP [([fsp])]` and its synonyms.
fn now(cursor: &mut Cursor<'_>) -> Read<()> {
    cursor.expect_any(&["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"])?;
    if cursor.at_symbol(b'(')? { cursor.group_or_token() } else { Ok(()) }
}

/// `(expression) [VIRTUAL | STORED]`
fn generated(cursor: &mut Cursor<'_>, column: &mut ColumnDefinition) -> Read<()> {
    column.expression = Expression::read(&mut cursor.clone()).ok();
    group(cursor)?;
    column.generation = if cursor.accept("STORED")? { Generation::BySession } else { Generation::Computed };
    cursor.accept("VIRTUAL")?;
    Ok(())
}

/// `(expression) [[NOT] ENFORCED]`
fn check(cursor: &mut Cursor<'_>) -> Read<()> {
    group(cursor)?;
    let mut ahead = cursor.clone();
    let not = ahead.accept("NOT")?;
    if ahead.accept("ENFORCED")? {
        *cursor = ahead;
    } else if not && !ahead.at_any(&["NULL", "SECONDARY"])? {
        return Err(Refused);
    }
    Ok(())
}

/// `table [(columns)] [MATCH …] [ON DELETE …] [ON UPDATE …]`
fn references(cursor: &mut Cursor<'_>) -> Read<()> {
    cursor.table_name()?;
    if cursor.at_symbol(b'(')? {
        group(cursor)?;
    }
    if cursor.accept("MATCH")? {
        cursor.expect_any(&["FULL", "PARTIAL", "SIMPLE"])?;
    }
    while cursor.accept("ON")? {
        cursor.expect_any(&["DELETE", "UPDATE"])?;
        if cursor.accept("SET")? {
            cursor.expect_any(&["NULL", "DEFAULT"])?;
        } else if cursor.accept("NO")? {
            cursor.expect("ACTION")?;
        } else {
            cursor.expect_any(&["RESTRICT", "CASCADE"])?;
        }
    }
    Ok(())
}

fn group(cursor: &mut Cursor<'_>) -> Read<()> {
    if cursor.at_symbol(b'(')? { cursor.group_or_token() } else { Err(Refused) }
}

fn charset_name(cursor: &mut Cursor<'_>) -> Read<Charset> {
    let name = word_or_string(cursor)?;
    Charset::by_name(&name).ok_or(Refused)
}

/// A name of a character set or collation, in quotes or not.
fn word_or_string(cursor: &mut Cursor<'_>) -> Read<String> {
    let token = cursor.peek()?.ok_or(Refused)?;
    if token.kind == TokenKind::String {
        let text = Literal::read(cursor)?;
        return text.ascii().map(ToString::to_string).ok_or(Refused);
    }
    cursor.name()
}
