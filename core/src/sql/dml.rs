//! Changes logged as statements. Only the head is read: their rows are not in the log whatever the
//! rest says.

use super::cursor::{Cursor, Read};
use super::{Dml, DmlVerb, TableName};

/// The change, if the first word is one of a change.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Option<Dml>> {
    if cursor.at_symbol(b'(')? {
        return Ok(Some(Dml { verb: DmlVerb::Select, target: None }));
    }
    let (verb, target) = if cursor.accept("INSERT")? {
        (DmlVerb::Insert, inserted(cursor).unwrap_or_default())
    } else if cursor.accept("REPLACE")? {
        (DmlVerb::Replace, inserted(cursor).unwrap_or_default())
    } else if cursor.accept("UPDATE")? {
        (DmlVerb::Update, updated(cursor).unwrap_or_default())
    } else if cursor.accept("DELETE")? {
        (DmlVerb::Delete, deleted(cursor).unwrap_or_default())
    } else if cursor.accept("LOAD")? {
        // LOAD INDEX INTO CACHE is no change, and is not logged.
        cursor.expect_any(&["DATA", "XML"])?;
        (DmlVerb::Load, None)
    } else if cursor.at("SET")? {
        // SET PASSWORD and SET DEFAULT ROLE are account statements.
        let mut ahead = cursor.clone();
        ahead.next()?;
        if ahead.at_any(&["PASSWORD", "DEFAULT"])? {
            return Ok(None);
        }
        (DmlVerb::Set, None)
    } else {
        let verbs = [
            ("WITH", DmlVerb::With),
            ("SELECT", DmlVerb::Select),
            ("TABLE", DmlVerb::Table),
            ("VALUES", DmlVerb::Values),
            ("CALL", DmlVerb::Call),
            ("DO", DmlVerb::Do),
        ];
        let mut found = None;
        for (word, verb) in verbs {
            if cursor.at(word)? {
                found = Some(verb);
            }
        }
        let Some(verb) = found else { return Ok(None) };
        (verb, None)
    };
    Ok(Some(Dml { verb, target }))
}

/// `[LOW_PRIORITY | DELAYED | HIGH_PRIORITY] [IGNORE] [INTO] table`
fn inserted(cursor: &mut Cursor<'_>) -> Read<Option<TableName>> {
    cursor.accept_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"])?;
    cursor.accept("IGNORE")?;
    cursor.accept("INTO")?;
    cursor.table_name().map(Some)
}

/// `[LOW_PRIORITY] [IGNORE] table SET …`: one table, without an alias.
fn updated(cursor: &mut Cursor<'_>) -> Read<Option<TableName>> {
    cursor.accept("LOW_PRIORITY")?;
    cursor.accept("IGNORE")?;
    let table = cursor.table_name()?;
    Ok(cursor.at("SET")?.then_some(table))
}

/// `[LOW_PRIORITY] [QUICK] [IGNORE] FROM table [WHERE | ORDER | LIMIT …]`: one table.
fn deleted(cursor: &mut Cursor<'_>) -> Read<Option<TableName>> {
    while cursor.accept_any(&["LOW_PRIORITY", "QUICK", "IGNORE"])? {}
    cursor.expect("FROM")?;
    let table = cursor.table_name()?;
    let single = cursor.at_any(&["WHERE", "ORDER", "LIMIT"])? || cursor.at_end()?;
    Ok(single.then_some(table))
}
