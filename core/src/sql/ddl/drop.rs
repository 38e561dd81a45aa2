//! `DROP …`.

use alloc::vec;

use super::super::cursor::{Cursor, Read};
use super::super::effect::SchemaEffect;
use super::{Ddl, DdlKind, RowsEffect, TableRole, index, named, plain};

/// What follows `DROP`.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    let temporary = cursor.accept("TEMPORARY")?;
    if temporary || cursor.at_any(&["TABLE", "TABLES"])? {
        return table(cursor, temporary);
    }
    if cursor.accept_any(&["DATABASE", "SCHEMA"])? {
        cursor.accept_if_exists()?;
        let schema = cursor.schema_name()?;
        cursor.end()?;
        let rows = RowsEffect::ChangedWithoutRowEvents;
        let effect = SchemaEffect::DropDatabase(schema.clone());
        let schemas = vec![schema];
        return Ok(Ddl { schemas, rows, effect, ..plain(DdlKind::DropDatabase) });
    }
    if cursor.accept("VIEW")? {
        cursor.accept_if_exists()?;
        let tables = named(cursor.table_names()?, TableRole::Dropped);
        cursor.accept_any(&["RESTRICT", "CASCADE"])?;
        cursor.end()?;
        return Ok(Ddl { tables, ..plain(DdlKind::DropView) });
    }
    cursor.accept_any(&["ONLINE", "OFFLINE"])?;
    if cursor.accept("INDEX")? {
        return index(cursor, DdlKind::DropIndex);
    }
    without_tables(cursor).map(plain)
}

/// `[TEMPORARY] {TABLE | TABLES} [IF EXISTS] t [, t] … [RESTRICT | CASCADE]`
fn table(cursor: &mut Cursor<'_>, temporary: bool) -> Read<Ddl> {
    cursor.expect_any(&["TABLE", "TABLES"])?;
    cursor.accept_if_exists()?;
    let names = cursor.table_names()?;
    let effect = SchemaEffect::DropTables(names.clone());
    let tables = named(names, TableRole::Dropped);
    cursor.accept_any(&["RESTRICT", "CASCADE"])?;
    cursor.end()?;
    let rows = RowsEffect::ChangedWithoutRowEvents;
    Ok(Ddl { tables, rows, temporary, effect, ..plain(DdlKind::DropTable) })
}

fn without_tables(cursor: &mut Cursor<'_>) -> Read<DdlKind> {
    let single = [
        ("TRIGGER", DdlKind::DropTrigger),
        ("PROCEDURE", DdlKind::DropProcedure),
        ("FUNCTION", DdlKind::DropFunction),
        ("LIBRARY", DdlKind::DropLibrary),
        ("EVENT", DdlKind::DropEvent),
        ("USER", DdlKind::DropUser),
        ("ROLE", DdlKind::DropRole),
        ("SERVER", DdlKind::DropServer),
        ("TABLESPACE", DdlKind::DropTablespace),
    ];
    for (word, kind) in single {
        if cursor.accept(word)? {
            return Ok(kind);
        }
    }
    if cursor.accept_all(&["UNDO", "TABLESPACE"])? {
        Ok(DdlKind::DropTablespace)
    } else if cursor.accept_all(&["LOGFILE", "GROUP"])? {
        Ok(DdlKind::DropLogfileGroup)
    } else if cursor.accept_all(&["RESOURCE", "GROUP"])? {
        Ok(DdlKind::DropResourceGroup)
    } else {
        cursor.expect("SPATIAL")?;
        cursor.expect("REFERENCE")?;
        cursor.expect("SYSTEM")?;
        Ok(DdlKind::DropSpatialReferenceSystem)
    }
}
