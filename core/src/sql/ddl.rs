//! DDL by its head: kind, tables, and what becomes of the rows.

mod create_table;
mod drop;
mod heads;

use alloc::vec;
use alloc::vec::Vec;

use super::alter::{self, Copying};
use super::cursor::{Cursor, MAX_NAMES, Read, Refused};
use super::effect::{RowCopy, SchemaEffect, Unfollowed};
use super::{AffectedTable, Ddl, DdlKind, RowsEffect, TableName, TableRole, Tables};

/// The statement, if it is a DDL that is understood.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    let mut ddl = statement(cursor)?;
    // What changes rows and says no more of it is not followed, whatever it is.
    if ddl.rows != RowsEffect::Unchanged && ddl.effect == SchemaEffect::Nothing {
        ddl.effect = SchemaEffect::Unfollowed(Unfollowed::RowsElsewhere);
    }
    Ok(ddl)
}

fn statement(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    if cursor.accept("CREATE")? {
        heads::create(cursor)
    } else if cursor.accept("ALTER")? {
        heads::alter(cursor)
    } else if cursor.accept("DROP")? {
        drop::read(cursor)
    } else if cursor.accept("RENAME")? {
        rename(cursor)
    } else if cursor.accept("TRUNCATE")? {
        truncate(cursor)
    } else if cursor.accept("IMPORT")? {
        // The files name the tables, the text does not.
        cursor.expect("TABLE")?;
        cursor.expect("FROM")?;
        let rows = RowsEffect::ChangedWithoutRowEvents;
        Ok(Ddl { tables: Tables::Every, rows, ..plain(DdlKind::ImportTable) })
    } else {
        other(cursor)
    }
}

/// Statements that name no table whose rows could change, or none at all.
fn other(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    let kind = if cursor.accept("ANALYZE")? {
        return maintained(cursor, DdlKind::AnalyzeTable, RowsEffect::Unchanged);
    } else if cursor.accept("OPTIMIZE")? {
        return maintained(cursor, DdlKind::OptimizeTable, RowsEffect::Unchanged);
    } else if cursor.accept("REPAIR")? {
        // What a repair cannot read is gone.
        return maintained(cursor, DdlKind::RepairTable, RowsEffect::Unknown);
    } else if cursor.accept("FLUSH")? {
        DdlKind::Flush
    } else if cursor.accept("GRANT")? {
        DdlKind::Grant
    } else if cursor.accept("REVOKE")? {
        DdlKind::Revoke
    } else if cursor.accept("INSTALL")? {
        one_of(cursor, DdlKind::InstallPlugin, DdlKind::InstallComponent)?
    } else if cursor.accept("UNINSTALL")? {
        one_of(cursor, DdlKind::UninstallPlugin, DdlKind::UninstallComponent)?
    } else if cursor.accept("SET")? {
        if cursor.accept("PASSWORD")? {
            DdlKind::SetPassword
        } else {
            cursor.accept_all(&["DEFAULT", "ROLE"])?.then_some(DdlKind::SetDefaultRole).ok_or(Refused)?
        }
    } else {
        return Err(Refused);
    };
    Ok(plain(kind))
}

fn one_of(cursor: &mut Cursor<'_>, plugin: DdlKind, component: DdlKind) -> Read<DdlKind> {
    if cursor.accept("PLUGIN")? {
        return Ok(plugin);
    }
    cursor.expect("COMPONENT")?;
    Ok(component)
}

/// `[NO_WRITE_TO_BINLOG | LOCAL] TABLE t [, t] …`
fn maintained(cursor: &mut Cursor<'_>, kind: DdlKind, rows: RowsEffect) -> Read<Ddl> {
    cursor.accept_any(&["NO_WRITE_TO_BINLOG", "LOCAL"])?;
    cursor.expect_any(&["TABLE", "TABLES"])?;
    let names = cursor.table_names()?;
    cursor.rest()?;
    let effect = if kind == DdlKind::OptimizeTable {
        SchemaEffect::CopyTables(names.clone(), RowCopy::under(cursor.context().sql_mode))
    } else {
        SchemaEffect::Nothing
    };
    Ok(Ddl { tables: named(names, TableRole::Altered), rows, effect, ..plain(kind) })
}

/// `{TABLE | TABLES} a TO b [, c TO d] …`, `USER …`
fn rename(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    if cursor.accept("USER")? {
        return Ok(plain(DdlKind::RenameUser));
    }
    cursor.expect_any(&["TABLE", "TABLES"])?;
    let mut tables = Vec::new();
    loop {
        if tables.len() >= MAX_NAMES {
            return Err(Refused);
        }
        tables.push(affected(cursor.table_name()?, TableRole::RenamedFrom));
        cursor.expect("TO")?;
        tables.push(affected(cursor.table_name()?, TableRole::RenamedTo));
        if !cursor.accept_symbol(b',')? {
            break;
        }
    }
    cursor.end()?;
    // Which goes where in the end is said by the captured set.
    let effect = SchemaEffect::RenameTables(Vec::new());
    Ok(Ddl { tables: Tables::Named(tables), effect, ..plain(DdlKind::RenameTable) })
}

/// `[TABLE] t`
fn truncate(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    cursor.accept("TABLE")?;
    let name = cursor.table_name()?;
    let effect = SchemaEffect::TruncateTable(name.clone());
    let tables = one(name, TableRole::Truncated);
    cursor.end()?;
    Ok(Ddl {
        tables,
        effect,
        rows: RowsEffect::ChangedWithoutRowEvents,
        temporary: cursor.context().thread_specific,
        ..plain(DdlKind::TruncateTable)
    })
}

/// `name ON table …`, after `INDEX`. Which rows there are and what they hold stays as it is.
fn index(cursor: &mut Cursor<'_>, kind: DdlKind) -> Read<Ddl> {
    cursor.name()?;
    while cursor.accept("USING")? {
        cursor.expect_any(&["BTREE", "HASH", "RTREE"])?;
    }
    cursor.expect("ON")?;
    let name = cursor.table_name()?;
    let mut copying = Copying::possible();
    while cursor.peek()?.is_some() {
        if !copying.accept(cursor)? {
            cursor.group_or_token()?;
        }
    }
    let effect = match copying.may_copy(cursor.context().sql_mode) {
        Some(copy) => SchemaEffect::CopyTables([name.clone()].into(), copy),
        None => SchemaEffect::Nothing,
    };
    let temporary = cursor.context().thread_specific;
    Ok(Ddl { tables: one(name, TableRole::Altered), temporary, effect, ..plain(kind) })
}

/// A statement that touches no table.
pub(super) const fn plain(kind: DdlKind) -> Ddl {
    Ddl {
        kind,
        tables: Tables::Named(Vec::new()),
        schemas: Vec::new(),
        rows: RowsEffect::Unchanged,
        temporary: false,
        create_select_in_group: false,
        effect: SchemaEffect::Nothing,
    }
}

pub(super) fn affected(name: TableName, role: TableRole) -> AffectedTable {
    AffectedTable { schema: name.schema, table: name.table, role }
}

fn one(name: TableName, role: TableRole) -> Tables {
    Tables::Named(vec![affected(name, role)])
}

fn named(names: Vec<TableName>, role: TableRole) -> Tables {
    Tables::Named(names.into_iter().map(|name| affected(name, role)).collect())
}
