//! `CREATE TABLE …`.

use alloc::vec::Vec;

use super::super::column::{self, ColumnDefinition};
use super::super::cursor::{Cursor, Read, Refused};
use super::super::effect::{SchemaEffect, Unfollowed};
use super::super::generated;
use super::super::lex::TokenKind;
use super::{Ddl, DdlKind, RowsEffect, TableName, TableRole, Tables, affected, one, plain};

/// Engines whose new tables are empty. Others (MERGE, FEDERATED, …) show rows that are elsewhere.
const EMPTY_AT_FIRST: [&str; 9] =
    ["InnoDB", "MyISAM", "MEMORY", "HEAP", "CSV", "ARCHIVE", "BLACKHOLE", "NDB", "NDBCLUSTER"];

/// What follows `CREATE [TEMPORARY] TABLE`.
pub(super) fn read(cursor: &mut Cursor<'_>, temporary: bool) -> Read<Ddl> {
    let if_not_exists = cursor.accept_if_not_exists()?;
    let name = cursor.table_name()?;
    if let Some(source) = like_source(cursor)? {
        cursor.end()?;
        let effect =
            SchemaEffect::CreateTableLike { table: name.clone(), source: source.clone(), if_not_exists };
        let created = affected(name, TableRole::Created);
        let tables = Tables::Named([created, affected(source, TableRole::LikeSource)].into());
        return Ok(Ddl { tables, temporary, effect, ..plain(DdlKind::CreateTableLike) });
    }
    let columns = columns(&mut cursor.clone()).ok();
    let body = body(cursor)?;
    let (kind, rows) = match (&body, body.selects || body.in_group) {
        // The whole statement in the log: its rows are nowhere else in it.
        (Body { selects: true, .. }, _) => (DdlKind::CreateTableSelect, RowsEffect::ChangedWithoutRowEvents),
        (Body { rows_elsewhere: true, .. }, select) => {
            (if select { DdlKind::CreateTableSelect } else { DdlKind::CreateTable }, RowsEffect::Unknown)
        }
        (_, true) => (DdlKind::CreateTableSelect, RowsEffect::Unchanged),
        (_, false) => (DdlKind::CreateTable, RowsEffect::Unchanged),
    };
    let effect = if body.stores_nothing || rows != RowsEffect::Unchanged {
        SchemaEffect::Unfollowed(Unfollowed::RowsElsewhere)
    } else {
        SchemaEffect::CreateTable { table: name.clone(), if_not_exists, columns }
    };
    let tables = one(name, TableRole::Created);
    Ok(Ddl { tables, rows, temporary, create_select_in_group: body.in_group, effect, ..plain(kind) })
}

/// The columns of a definition in parentheses.
fn columns(cursor: &mut Cursor<'_>) -> Read<Vec<ColumnDefinition>> {
    let elements =
        ["INDEX", "KEY", "FULLTEXT", "SPATIAL", "CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"];
    cursor.expect_symbol(b'(')?;
    let mut columns = Vec::new();
    loop {
        if cursor.at_any(&elements)? {
            while !cursor.at_symbol(b',')? && !cursor.at_symbol(b')')? {
                cursor.group_or_token()?;
            }
        } else {
            columns.push(column::named_definition(cursor)?);
        }
        if !cursor.accept_symbol(b',')? {
            cursor.expect_symbol(b')')?;
            generated::settle(&mut columns);
            return Ok(columns);
        }
    }
}

/// `LIKE t`, `(LIKE t)`
fn like_source(cursor: &mut Cursor<'_>) -> Read<Option<TableName>> {
    if cursor.accept("LIKE")? {
        return cursor.table_name().map(Some);
    }
    let mut ahead = cursor.clone();
    if ahead.accept_symbol(b'(')? && ahead.accept("LIKE")? {
        let source = ahead.table_name()?;
        ahead.expect_symbol(b')')?;
        *cursor = ahead;
        return Ok(Some(source));
    }
    Ok(None)
}

/// What there is outside of the parentheses of a table's definition.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    /// A query gives it rows.
    selects: bool,
    /// It ends in `START TRANSACTION`.
    in_group: bool,
    /// Its engine shows rows that are elsewhere.
    rows_elsewhere: bool,
    /// Its engine drops every row it is given (BLACKHOLE), though the log has them.
    stores_nothing: bool,
}

fn body(cursor: &mut Cursor<'_>) -> Read<Body> {
    let mut body = Body::default();
    while !cursor.at_end()? {
        if at_query(cursor)? {
            body.selects = true;
            cursor.rest()?;
        } else if cursor.accept("ENGINE")? {
            cursor.accept_symbol(b'=')?;
            let engine = engine(cursor)?;
            let is = |known: &&str| engine.eq_ignore_ascii_case(known.as_bytes());
            body.rows_elsewhere |= !EMPTY_AT_FIRST.iter().any(is);
            body.stores_nothing |= is(&"BLACKHOLE");
        } else if cursor.accept_any(&["UNION", "CONNECTION"])? {
            body.rows_elsewhere = true;
        } else if cursor.accept_all(&["START", "TRANSACTION"])? {
            body.in_group = true;
        } else {
            cursor.group_or_token()?;
        }
    }
    Ok(body)
}

/// An engine's name, without its quotes.
fn engine<'a>(cursor: &mut Cursor<'a>) -> Read<&'a [u8]> {
    let token = cursor.next()?.ok_or(Refused)?;
    let written = match token.kind {
        TokenKind::Word => Some(token.raw),
        TokenKind::String | TokenKind::Quoted => token.raw.get(1..token.raw.len().saturating_sub(1)),
        TokenKind::Hex
        | TokenKind::HexNumber
        | TokenKind::Bits
        | TokenKind::Number
        | TokenKind::Symbol(_) => None,
    };
    written.ok_or(Refused)
}

/// Whether a query begins here, outside of parentheses: all its first words are reserved, and `AS`
/// comes before nothing else there.
fn at_query(cursor: &mut Cursor<'_>) -> Read<bool> {
    let first = ["AS", "SELECT", "WITH", "VALUES", "TABLE"];
    if cursor.at_any(&first)? {
        return Ok(true);
    }
    if !cursor.at_symbol(b'(')? {
        return Ok(false);
    }
    let mut ahead = cursor.clone();
    while ahead.accept_symbol(b'(')? {}
    ahead.at_any(&first)
}
