//! Schema changes: followed where their effect on the rows is certain, refused before them where not.

use capstan_core::{
    deliver::{SchemaChange, SinkError},
    halt::Code,
    sql::{
        AlterOperation, Conversion, DeclaredType, ExistingColumn, PlannedColumn, PlannedValues, RowCopy,
        RowValue, SchemaEffect, TableMove, TableName, Unfollowed, plan, recomputes,
    },
    value::TableVersion,
};
use rusqlite::Connection;

use super::{
    catalogue::{Catalogue, Column, Entry, free_name, is_made, shape_of},
    table::{self, Source, held, quoted},
    value::{declaration, of_row_value},
};

/// Follows a schema change, or halts before it.
pub(super) fn follow(
    connection: &Connection,
    catalogue: &mut Catalogue,
    change: &SchemaChange,
    partial: bool,
) -> Result<(), SinkError> {
    match &change.effect {
        SchemaEffect::Nothing => Ok(()),
        SchemaEffect::CreateTable { table, if_not_exists, columns } => {
            let columns = columns.iter().flatten().map(Column::defined);
            create(connection, catalogue, table, (*if_not_exists, partial), columns.collect())
        }
        SchemaEffect::CreateTableLike { table, source, if_not_exists } => {
            let like = catalogue.get(&source.schema, &source.table);
            let columns = like.map(|entry| entry.columns.clone()).unwrap_or_default();
            create(connection, catalogue, table, (*if_not_exists, partial), columns)
        }
        SchemaEffect::AlterTable { table, operations, strict, copies, moves } => {
            if let Some(entry) = catalogue.get(&table.schema, &table.table).cloned() {
                if let Some(copy) = copies {
                    copied(connection, &entry, *copy)?;
                }
                if !operations.is_empty() {
                    alter(connection, catalogue, entry, operations, *strict)?;
                }
            }
            rename(connection, catalogue, moves)
        }
        SchemaEffect::CopyTables(tables, copy) => {
            let entries = tables.iter().filter_map(|table| catalogue.get(&table.schema, &table.table));
            entries.into_iter().try_for_each(|entry| copied(connection, entry, *copy))
        }
        SchemaEffect::RenameTables(moves) => rename(connection, catalogue, moves),
        SchemaEffect::TruncateTable(table) => match catalogue.get(&table.schema, &table.table) {
            Some(entry) => {
                if entry.made {
                    table::empty(connection, entry)?;
                }
                // From here on every row of it is here.
                let whole = Entry { partial: false, ..entry.clone() };
                if entry.partial { catalogue.save(connection, whole) } else { Ok(()) }
            }
            None => Ok(()),
        },
        SchemaEffect::DropTables(tables) => {
            for table in tables {
                if let Some(entry) = catalogue.get(&table.schema, &table.table).cloned() {
                    remove(connection, catalogue, &entry)?;
                }
            }
            Ok(())
        }
        SchemaEffect::DropDatabase(schema) => {
            catalogue.of_schema(schema).iter().try_for_each(|entry| remove(connection, catalogue, entry))
        }
        SchemaEffect::TableEntered { entered, .. } => {
            let halt = SinkError::halt(Code::TableEnteredCapture, "schema change");
            Err(match entered.first() {
                Some(table) => halt.of_table(&table.schema, &table.table),
                None => halt,
            })
        }
        SchemaEffect::Unfollowed(why) => {
            tracing::warn!(why = why.as_str(), kind = change.kind.name(), "a schema change is not followed");
            Err(refused(change, Code::SchemaChangeNeedsCopy))
        }
    }
}

fn refused(change: &SchemaChange, code: Code) -> SinkError {
    let halt = SinkError::halt(code, "schema change");
    match change.tables.first() {
        Some((schema, table)) => halt.of_table(schema, table),
        None => halt,
    }
}

/// What a table is whose first sign is its map, not its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// No copy: it may have had rows before.
    Refused,
    /// Perhaps only a part (`--partial`).
    Part,
    /// Whole: what it had before is being copied, and a change of what is not copied yet does not come.
    Copied,
}

/// The initial copy of a table begins: what is here of it is from before.
pub(super) fn begin_copy(
    connection: &Connection,
    catalogue: &mut Catalogue,
    version: &TableVersion,
) -> Result<(), SinkError> {
    if let Some(entry) = catalogue.get(version.schema(), version.table()).cloned() {
        remove(connection, catalogue, &entry)?;
    }
    see(connection, catalogue, version, Unseen::Copied).map(|_| ())
}

/// A table of the source whose map has come: its entry, with the table here as the map has it.
pub(super) fn see(
    connection: &Connection,
    catalogue: &mut Catalogue,
    version: &TableVersion,
    unseen: Unseen,
) -> Result<Entry, SinkError> {
    let (mut columns, key) = shape_of(version);
    let entry = match catalogue.get(version.schema(), version.table()) {
        Some(entry) => entry.clone(),
        None => match unseen {
            Unseen::Part | Unseen::Copied => Entry {
                partial: unseen == Unseen::Part,
                ..catalogue.add(connection, version.schema(), version.table())?
            },
            Unseen::Refused => {
                let halt = SinkError::halt(Code::HistoryIncomplete, "table");
                return Err(halt.of_table(version.schema(), version.table()));
            }
        },
    };
    entry.recall(&mut columns);
    if !entry.known {
        return remake(connection, catalogue, Entry { known: true, columns, key, ..entry });
    }
    if !entry.expects(&columns) {
        return Err(entry.halt(Code::SchemaChangeNeedsCopy, "columns"));
    }
    if entry.columns == columns && entry.key == key {
        return Ok(entry);
    }
    let after = Entry { columns, key, ..entry.clone() };
    // An index came or went, and with it what tells rows apart; or a name changed its case.
    if is_made_alike(&entry, &after) {
        catalogue.save(connection, after.clone())?;
        return Ok(after);
    }
    let sources: Vec<Source> =
        entry.columns.iter().map(|column| Source::Column(column.name.clone(), Conversion::Same)).collect();
    table::rebuild(connection, &entry, &after, &sources)?;
    catalogue.save(connection, after.clone())?;
    Ok(after)
}

/// Whether the table here is the same for both.
fn is_made_alike(a: &Entry, b: &Entry) -> bool {
    let columns = |entry: &Entry| {
        held(&entry.columns)
            .map(|(_, column)| (column.name.clone(), declaration(column.column_type())))
            .collect::<Vec<_>>()
    };
    a.key == b.key && columns(a) == columns(b)
}

fn create(
    connection: &Connection,
    catalogue: &mut Catalogue,
    name: &TableName,
    (if_not_exists, partial): (bool, bool),
    columns: Vec<Column>,
) -> Result<(), SinkError> {
    if let Some(entry) = catalogue.get(&name.schema, &name.table) {
        // A table that is there cannot be created, so what we have is another one.
        return if if_not_exists { Ok(()) } else { Err(entry.halt(Code::MirrorDiverged, "create")) };
    }
    let entry = catalogue.add(connection, &name.schema, &name.table)?;
    // Where not every table is here, one that was to be created if it is not there may have been there.
    let entry = Entry { partial: if_not_exists && partial, ..entry };
    remake(connection, catalogue, Entry { columns, ..entry }).map(|_| ())
}

/// Makes the table of an entry without rows anew.
fn remake(connection: &Connection, catalogue: &mut Catalogue, mut entry: Entry) -> Result<Entry, SinkError> {
    if entry.made {
        if table::any_row(connection, &entry, "1")? {
            return Err(entry.halt(Code::MirrorDiverged, "rows"));
        }
        table::drop(connection, &entry.name)?;
        entry.made = false;
    } else if entry.known || !entry.columns.is_empty() {
        // The name may have been taken by somebody else meanwhile, but not by us: it is in the catalogue.
        entry.name = own_name(connection, &entry)?;
    }
    if held(&entry.columns).next().is_some() || entry.known {
        table::make(connection, &entry)?;
        entry.made = true;
    }
    catalogue.save(connection, entry.clone())?;
    Ok(entry)
}

/// The entry's name if nothing else has it.
fn own_name(connection: &Connection, entry: &Entry) -> Result<String, SinkError> {
    if is_made(connection, &entry.name)? {
        free_name(connection, &entry.schema, &entry.table)
    } else {
        Ok(entry.name.clone())
    }
}

fn remove(connection: &Connection, catalogue: &mut Catalogue, entry: &Entry) -> Result<(), SinkError> {
    if entry.made {
        table::drop(connection, &entry.name)?;
    }
    catalogue.remove(connection, entry)
}

/// All moves at once, as their names say before and after the statement.
fn rename(connection: &Connection, catalogue: &mut Catalogue, moves: &[TableMove]) -> Result<(), SinkError> {
    let mut moved = Vec::new();
    for TableMove { from, to } in moves {
        let Some(mut entry) = catalogue.get(&from.schema, &from.table).cloned() else { continue };
        let Some(to) = to else {
            remove(connection, catalogue, &entry)?;
            continue;
        };
        let aside = format!("capstan_move_{}", entry.id);
        if entry.made {
            table::rename(connection, &entry.name, &aside)?;
        }
        entry.name.clone_from(&aside);
        // Names of the source cannot be empty, so nothing is there.
        entry.schema.clear();
        entry.table = aside;
        catalogue.save(connection, entry.clone())?;
        moved.push((entry, to));
    }
    for (mut entry, to) in moved {
        if let Some(there) = catalogue.get(&to.schema, &to.table) {
            return Err(there.halt(Code::MirrorDiverged, "rename"));
        }
        let name = free_name(connection, &to.schema, &to.table)?;
        if entry.made {
            table::rename(connection, &entry.name, &name)?;
        }
        entry.name = name;
        entry.schema.clone_from(&to.schema);
        entry.table.clone_from(&to.table);
        catalogue.save(connection, entry)?;
    }
    Ok(())
}

/// The server may copy a table: of what that changes there are no row events.
fn copied(connection: &Connection, entry: &Entry, copy: RowCopy) -> Result<(), SinkError> {
    let by_session = entry.computes_by_session();
    if by_session.is_none() {
        // A table whose making was not seen (`--partial`, `--seeded-at`) would halt before every ALTER.
        tracing::warn!(
            // A name is the source's: what a terminal would obey is written out.
            table = %format_args!("{}.{}", entry.schema.escape_debug(), entry.table.escape_debug()),
            "what its columns are computed from is not known: a STORED one that depends on the session (DAYNAME under \
             lc_time_names) may be another after this statement; --copy-again makes it known"
        );
    }
    let changes = if by_session == Some(true) { Some("1".to_owned()) } else { bent_dates(entry, copy) };
    let Some(changes) = changes.filter(|_| entry.made) else { return Ok(()) };
    if !table::any_row(connection, entry, &changes)? {
        return Ok(());
    }
    tracing::warn!(why = Unfollowed::Values.as_str(), "a copy of a table may change its rows");
    Err(entry.halt(Code::SchemaChangeNeedsCopy, "schema change"))
}

/// The condition of rows with a date that the copy makes another; `None`: there can be none.
fn bent_dates(entry: &Entry, copy: RowCopy) -> Option<String> {
    let terms: Vec<String> = held(&entry.columns)
        .filter(|(_, column)| {
            matches!(column.column_type(), Some(DeclaredType::Date | DeclaredType::DateTime { .. }))
        })
        .flat_map(|(_, column)| {
            let name = quoted(&column.name);
            let date = format!("substr({name}, 1, 10)");
            let partial =
                format!("ltrim({name}, '0-:. ') <> '' AND ({date} LIKE '%-00-%' OR {date} LIKE '%-00')");
            // SQLite moves a day that a month has not into the next; a year 0 had a February 29 to it alone.
            let invalid = format!("date({date}) <> {date} OR {date} = '0000-02-29'");
            let partial = (!copy.keeps_partial_dates).then_some(partial);
            partial.into_iter().chain((!copy.keeps_invalid_dates).then_some(invalid))
        })
        .collect();
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

fn alter(
    connection: &Connection,
    catalogue: &mut Catalogue,
    entry: Entry,
    operations: &[AlterOperation],
    strict: bool,
) -> Result<(), SinkError> {
    let existing: Vec<ExistingColumn<'_>> = entry
        .columns
        .iter()
        .map(|column| ExistingColumn {
            name: &column.name,
            column_type: column.column_type(),
            charset: column.charset(),
            nullable: column.nullable,
        })
        .collect();
    let computed = entry.computes() && recomputes(operations);
    let plan = if computed { Err(Unfollowed::Values) } else { plan(&existing, operations, strict) };
    let planned = match plan {
        Ok(planned) if no_zero_gets_a_number(connection, &entry, &planned)? => planned,
        // What a change does to the rows of a table without any is known; what its columns are then, the
        // next table map says.
        Ok(_) | Err(_) if !entry.made || !table::any_row(connection, &entry, "1")? => {
            let mut columns = entry.columns.clone();
            columns.iter_mut().for_each(|column| column.generation = None);
            return catalogue.save(connection, Entry { known: false, columns, ..entry });
        }
        Ok(_) => return Err(entry.halt(Code::SchemaChangeNeedsCopy, "schema change")),
        Err(why) => {
            tracing::warn!(why = why.as_str(), "a schema change is not followed");
            return Err(entry.halt(Code::SchemaChangeNeedsCopy, "schema change"));
        }
    };
    let columns: Vec<Column> = planned.iter().map(|column| after(&entry, column)).collect();
    let key = key_after(&entry, &planned);
    let changed = Entry { columns, key, ..entry.clone() };
    if !entry.known {
        return remake(connection, catalogue, changed).map(|_| ());
    }
    if let Some(added) = nulls_added(&entry, &changed, &planned) {
        for column in added {
            let sql = format!(
                "ALTER TABLE {} ADD COLUMN {}{}",
                quoted(&entry.name),
                quoted(&column.name),
                declaration(column.column_type())
            );
            table::execute(connection, &sql)?;
        }
    } else {
        let sources: Vec<Source> = planned.iter().map(|column| source(&entry, column)).collect();
        table::rebuild(connection, &entry, &changed, &sources)?;
    }
    catalogue.save(connection, changed)
}

/// Whether no value that is there could be taken for "the next number" by an AUTO_INCREMENT that is new:
/// one that was there before keeps zeros, but the log does not tell which it is.
fn no_zero_gets_a_number(
    connection: &Connection,
    entry: &Entry,
    planned: &[PlannedColumn],
) -> Result<bool, SinkError> {
    for column in planned {
        if let PlannedValues::Column { index, numbers_zeros: true, .. } = &column.values
            && entry.made
            && let Some(before) = entry.columns.get(*index).filter(|column| !column.left_out)
        {
            let name = quoted(&before.name);
            if table::any_row(connection, entry, &format!("{name} IS NULL OR {name} = 0"))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn after(entry: &Entry, planned: &PlannedColumn) -> Column {
    let before = match &planned.values {
        PlannedValues::Column { index, .. } => entry.columns.get(*index),
        PlannedValues::Value(_) => None,
    };
    match (&planned.definition, before) {
        (Some(definition), Some(before)) => before.redefined(definition),
        (Some(definition), None) => Column::defined(definition),
        (None, Some(before)) => before.renamed(&planned.name),
        // A plan's columns come from somewhere.
        (None, None) => Column::unknown(&planned.name),
    }
}

/// The key under the names its columns have now; none if one of them is gone, until the next table map says.
fn key_after(entry: &Entry, planned: &[PlannedColumn]) -> Vec<String> {
    let renamed = |name: &String| {
        let at = entry.columns.iter().position(|column| column.name == *name)?;
        planned
            .iter()
            .find(|column| matches!(&column.values, PlannedValues::Column { index, .. } if *index == at))
            .map(|column| column.name.clone())
    };
    entry.key.iter().map(renamed).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The columns that are new, if all the change comes to here is columns of NULLs behind the others.
fn nulls_added<'a>(entry: &Entry, changed: &'a Entry, planned: &[PlannedColumn]) -> Option<Vec<&'a Column>> {
    let (kept, added) = changed.columns.split_at_checked(entry.columns.len())?;
    let stays = |((index, column), (before, plan)): ((usize, &Column), (&Column, &PlannedColumn))| {
        let from = PlannedValues::Column { index, conversion: Conversion::Same, numbers_zeros: false };
        let numbered = PlannedValues::Column { index, conversion: Conversion::Same, numbers_zeros: true };
        (plan.values == from || plan.values == numbered)
            && column.name == before.name
            && declaration(column.column_type()) == declaration(before.column_type())
    };
    let all_stay = kept.iter().enumerate().zip(entry.columns.iter().zip(planned)).all(stays);
    let all_null = planned
        .iter()
        .skip(entry.columns.len())
        .all(|column| column.values == PlannedValues::Value(RowValue::Null));
    // A hidden column of a table without a key must not get in the way of a new name.
    let hidden = table::Hidden::of(&entry.columns);
    let free = added.iter().all(|column| {
        !column.name.eq_ignore_ascii_case(&hidden.row) && !column.name.eq_ignore_ascii_case(&hidden.hash)
    });
    (all_stay && all_null && free && entry.key == changed.key)
        .then(|| added.iter().filter(|column| !column.left_out).collect())
}

fn source(entry: &Entry, planned: &PlannedColumn) -> Source {
    match &planned.values {
        PlannedValues::Column { index, conversion, .. } => {
            let name = entry.columns.get(*index).map_or_else(String::new, |column| column.name.clone());
            Source::Column(name, *conversion)
        }
        PlannedValues::Value(value) => Source::Value(of_row_value(value)),
    }
}
