//! `CREATE …` and `ALTER …` up to the object they are about, past `OR REPLACE`, `DEFINER` and the like.

use alloc::vec;

use super::super::cursor::{Cursor, Read, Refused};
use super::{Ddl, DdlKind, TableRole, affected, alter as alter_table, create_table, index, one, plain};

/// What follows `CREATE`.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    let temporary = cursor.accept("TEMPORARY")?;
    if temporary || cursor.at("TABLE")? {
        cursor.expect("TABLE")?;
        return create_table::read(cursor, temporary);
    }
    if cursor.accept_any(&["DATABASE", "SCHEMA"])? {
        cursor.accept_if_not_exists()?;
        let schemas = vec![cursor.schema_name()?];
        return Ok(Ddl { schemas, ..plain(DdlKind::CreateDatabase) });
    }
    cursor.accept_any(&["ONLINE", "OFFLINE"])?;
    if cursor.accept_any(&["UNIQUE", "FULLTEXT"])? {
        cursor.expect("INDEX")?;
        return index(cursor, DdlKind::CreateIndex);
    }
    if cursor.accept("INDEX")? {
        return index(cursor, DdlKind::CreateIndex);
    }
    modifiers(cursor)?;
    if cursor.accept("SPATIAL")? {
        if cursor.accept("INDEX")? {
            return index(cursor, DdlKind::CreateIndex);
        }
        cursor.expect("REFERENCE")?;
        cursor.expect("SYSTEM")?;
        return Ok(plain(DdlKind::CreateSpatialReferenceSystem));
    }
    if cursor.accept("TRIGGER")? {
        return create_trigger(cursor);
    }
    if at_view(cursor)? {
        cursor.accept_if_not_exists()?;
        let tables = one(cursor.table_name()?, TableRole::Created);
        return Ok(Ddl { tables, ..plain(DdlKind::CreateView) });
    }
    let objects = [
        (["PROCEDURE", ""], DdlKind::CreateProcedure),
        (["FUNCTION", ""], DdlKind::CreateFunction),
        (["LIBRARY", ""], DdlKind::CreateLibrary),
        (["EVENT", ""], DdlKind::CreateEvent),
        (["USER", ""], DdlKind::CreateUser),
        (["ROLE", ""], DdlKind::CreateRole),
        (["SERVER", ""], DdlKind::CreateServer),
        (["TABLESPACE", ""], DdlKind::CreateTablespace),
        (["UNDO", "TABLESPACE"], DdlKind::CreateTablespace),
        (["LOGFILE", "GROUP"], DdlKind::CreateLogfileGroup),
        (["RESOURCE", "GROUP"], DdlKind::CreateResourceGroup),
    ];
    object(cursor, &objects)
}

/// What follows `ALTER`.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    while cursor.accept_any(&["ONLINE", "OFFLINE", "IGNORE"])? {}
    if cursor.accept("TABLE")? {
        return alter_table::read(cursor);
    }
    if cursor.accept_any(&["DATABASE", "SCHEMA"])? {
        // The name may be left out; what then follows is an option.
        let options = ["DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ"];
        let unnamed = cursor.at_any(&options)?;
        let schema = if unnamed { cursor.default_schema()? } else { cursor.schema_name()? };
        return Ok(Ddl { schemas: vec![schema], ..plain(DdlKind::AlterDatabase) });
    }
    modifiers(cursor)?;
    if at_view(cursor)? {
        let tables = one(cursor.table_name()?, TableRole::Altered);
        return Ok(Ddl { tables, ..plain(DdlKind::AlterView) });
    }
    let objects = [
        (["PROCEDURE", ""], DdlKind::AlterProcedure),
        (["FUNCTION", ""], DdlKind::AlterFunction),
        (["LIBRARY", ""], DdlKind::AlterLibrary),
        (["EVENT", ""], DdlKind::AlterEvent),
        (["USER", ""], DdlKind::AlterUser),
        (["SERVER", ""], DdlKind::AlterServer),
        (["TABLESPACE", ""], DdlKind::AlterTablespace),
        (["UNDO", "TABLESPACE"], DdlKind::AlterTablespace),
        (["LOGFILE", "GROUP"], DdlKind::AlterLogfileGroup),
        (["RESOURCE", "GROUP"], DdlKind::AlterResourceGroup),
        (["INSTANCE", ""], DdlKind::AlterInstance),
    ];
    object(cursor, &objects)
}

/// An object whose statement is told by one or two words.
fn object(cursor: &mut Cursor<'_>, objects: &[([&str; 2], DdlKind)]) -> Read<Ddl> {
    for ([first, second], kind) in objects {
        if cursor.accept(first)? {
            if !second.is_empty() {
                cursor.expect(second)?;
            }
            return Ok(plain(*kind));
        }
    }
    Err(Refused)
}

/// `OR REPLACE`, `ALGORITHM = …`, `MATERIALIZED`, `DEFINER = …`, `SQL SECURITY …`, `AGGREGATE`.
fn modifiers(cursor: &mut Cursor<'_>) -> Read<()> {
    loop {
        if cursor.accept_all(&["OR", "REPLACE"])? || cursor.accept_any(&["AGGREGATE", "MATERIALIZED"])? {
        } else if cursor.accept("ALGORITHM")? {
            cursor.accept_symbol(b'=')?;
            cursor.name()?;
        } else if cursor.accept("DEFINER")? {
            cursor.accept_symbol(b'=')?;
            cursor.user()?;
        } else if cursor.accept_all(&["SQL", "SECURITY"])? {
            cursor.expect_any(&["DEFINER", "INVOKER"])?;
        } else {
            return Ok(());
        }
    }
}

/// `[JSON [RELATIONAL] DUALITY] VIEW`
fn at_view(cursor: &mut Cursor<'_>) -> Read<bool> {
    if cursor.accept("JSON")? {
        cursor.accept("RELATIONAL")?;
        cursor.expect("DUALITY")?;
        cursor.expect("VIEW")?;
        return Ok(true);
    }
    cursor.accept("VIEW")
}

/// `[IF NOT EXISTS] [schema.]trigger {BEFORE | AFTER} {INSERT | UPDATE | DELETE} ON table …`: a table
/// without a schema is of the trigger's schema, whatever the default database is (seen on 9.7.4).
fn create_trigger(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    cursor.accept_if_not_exists()?;
    let trigger = cursor.table_name()?;
    cursor.expect_any(&["BEFORE", "AFTER"])?;
    cursor.expect_any(&["INSERT", "UPDATE", "DELETE"])?;
    cursor.expect("ON")?;
    let table = cursor.table_name_within(Some(&trigger.schema))?;
    let tables = super::Tables::Named(vec![affected(table, TableRole::Altered)]);
    Ok(Ddl { tables, ..plain(DdlKind::CreateTrigger) })
}
