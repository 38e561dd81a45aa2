//! Tables: made, emptied, dropped, renamed, and rebuilt with other columns or another key.

use std::fmt::Write as _;

use capstan_core::{
    deliver::SinkError,
    halt::Code,
    sql::{Conversion, DeclaredType},
};
use rusqlite::{Connection, OptionalExtension as _, ffi, params_from_iter, types::Value as Owned};

use super::{
    super::failure::{Step, failed},
    catalogue::{Column, Entry, is_made},
    value::{RowHash, declaration},
};

/// A name in double quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Names of the columns that a table without a key has besides its own.
#[derive(Clone, Debug)]
pub(super) struct Hidden {
    /// The number of the row.
    pub(super) row: String,
    /// The hash of its values.
    pub(super) hash: String,
}

impl Hidden {
    pub(super) fn of(columns: &[Column]) -> Self {
        let free = |name: &str| {
            let mut name = name.to_owned();
            while columns.iter().any(|column| column.name.eq_ignore_ascii_case(&name)) {
                name.push('_');
            }
            name
        };
        Self { row: free("capstan_row"), hash: free("capstan_hash") }
    }
}

/// The columns that are here.
pub(super) fn held(columns: &[Column]) -> impl Iterator<Item = (usize, &Column)> {
    columns.iter().enumerate().filter(|(_, column)| !column.left_out)
}

fn create_sql(name: &str, columns: &[Column], key: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let has_row_id = held(columns).any(|(_, column)| is_row_id(column, key));
    for (_, column) in held(columns) {
        let primary = if is_row_id(column, key) { " PRIMARY KEY" } else { "" };
        parts.push(format!("{}{}{primary}", quoted(&column.name), declaration(column.column_type())));
    }
    let mut tail = "";
    if key.is_empty() {
        let hidden = Hidden::of(columns);
        parts.push(format!("{} INTEGER PRIMARY KEY", quoted(&hidden.row)));
        parts.push(format!("{} INTEGER NOT NULL", quoted(&hidden.hash)));
    } else if !has_row_id {
        let key: Vec<String> = key.iter().map(|name| quoted(name)).collect();
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        tail = " WITHOUT ROWID";
    }
    format!("CREATE TABLE {} ({}){tail}", quoted(name), parts.join(", "))
}

/// Whether the column is the whole key, and of a kind that SQLite's own row number can be.
fn is_row_id(column: &Column, key: &[String]) -> bool {
    matches!(key, [only] if *only == column.name)
        && matches!(column.column_type(), Some(DeclaredType::Integer { bytes, unsigned }) if *bytes < 8 || !unsigned)
}

/// Makes the table of an entry, with its columns and key as they are there.
pub(super) fn make(connection: &Connection, entry: &Entry) -> Result<(), SinkError> {
    execute(connection, &create_sql(&entry.name, &entry.columns, &entry.key))?;
    // Before its first map nothing is known of its key, and each statement here makes SQLite read all of its schema.
    if entry.key.is_empty() && entry.known { index_hashes(connection, entry) } else { Ok(()) }
}

fn index_hashes(connection: &Connection, entry: &Entry) -> Result<(), SinkError> {
    let hidden = Hidden::of(&entry.columns);
    execute(
        connection,
        &format!(
            "CREATE INDEX \"capstan_hash_{}\" ON {} ({})",
            entry.id,
            quoted(&entry.name),
            quoted(&hidden.hash)
        ),
    )
}

/// Drops the index of [`make`], where there is one.
pub(super) fn unindex_hashes(connection: &Connection, entry: &Entry) -> Result<(), SinkError> {
    execute(connection, &format!("DROP INDEX IF EXISTS \"capstan_hash_{}\"", entry.id))
}

/// Drops a table, were it not dropped by somebody else before.
pub(super) fn drop(connection: &Connection, name: &str) -> Result<(), SinkError> {
    execute(connection, &format!("DROP TABLE IF EXISTS {}", quoted(name)))
}

pub(super) fn empty(connection: &Connection, entry: &Entry) -> Result<(), SinkError> {
    execute(connection, &format!("DELETE FROM {}", quoted(&entry.name)))
        .map_err(|error| gone_or(connection, entry, error))
}

pub(super) fn rename(connection: &Connection, from: &str, to: &str) -> Result<(), SinkError> {
    execute(connection, &format!("ALTER TABLE {} RENAME TO {}", quoted(from), quoted(to)))
}

/// Whether the table holds a row of which `condition` is true.
pub(super) fn any_row(connection: &Connection, entry: &Entry, condition: &str) -> Result<bool, SinkError> {
    connection
        .query_row(
            &format!("SELECT 1 FROM {} WHERE {condition} LIMIT 1", quoted(&entry.name)),
            [],
            |_| Ok(()),
        )
        .optional()
        .map(|found| found.is_some())
        .map_err(|error| gone_or(connection, entry, failed(Step::Read, error)))
}

/// Where a column's values come from when a table is rebuilt.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// From the column that had this name.
    Column(String, Conversion),
    /// Every row gets this one.
    Value(Owned),
}

/// Makes `entry` what it is to be out of what it was (`before`): a new table, the rows copied over.
/// `sources` has one for each column of `entry`.
pub(super) fn rebuild(
    connection: &Connection,
    before: &Entry,
    entry: &Entry,
    sources: &[Source],
) -> Result<(), SinkError> {
    let own_indexes = indexes_of_others(connection, &before.name)?;
    let new = format!("capstan_new_{}", entry.id);
    execute(connection, &create_sql(&new, &entry.columns, &entry.key))?;
    let mut names: Vec<String> = Vec::new();
    let mut values: Vec<String> = Vec::new();
    let mut parameters: Vec<&Owned> = Vec::new();
    for ((_, column), source) in entry.columns.iter().enumerate().zip(sources) {
        if column.left_out {
            continue;
        }
        names.push(quoted(&column.name));
        values.push(match source {
            Source::Column(name, Conversion::Same) => quoted(name),
            Source::Column(name, Conversion::Zeros { count, point }) => {
                let zeros = "0".repeat((*count).into());
                format!("{} || '{}{zeros}'", quoted(name), if *point { "." } else { "" })
            }
            Source::Value(value) => {
                parameters.push(value);
                format!("?{}", parameters.len())
            }
        });
    }
    if entry.key.is_empty() {
        names.push(quoted(&Hidden::of(&entry.columns).hash));
        values.push("0".to_owned());
    }
    let sql = format!(
        "INSERT INTO {} ({}) SELECT {} FROM {}",
        quoted(&new),
        names.join(", "),
        values.join(", "),
        quoted(&before.name)
    );
    connection
        .execute(&sql, params_from_iter(parameters))
        .map_err(|error| diverged_or(entry, Step::Write, error))?;
    drop(connection, &before.name)?;
    rename(connection, &new, &entry.name)?;
    if entry.key.is_empty() {
        hash_all(connection, entry)?;
        index_hashes(connection, entry)?;
    }
    for sql in own_indexes {
        // One over a column that is gone goes with it, as at the source.
        if connection.execute_batch(&sql).is_err() {
            tracing::warn!("an index of the mirror's user could not be made again after a schema change");
        }
    }
    Ok(())
}

/// Statements of the indexes that somebody else made on a table.
fn indexes_of_others(connection: &Connection, name: &str) -> Result<Vec<String>, SinkError> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare_cached(
            "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 COLLATE NOCASE
                 AND sql IS NOT NULL AND name NOT LIKE 'capstan\\_%' ESCAPE '\\'",
        )?;
        statement.query_map([name], |row| row.get(0))?.collect()
    };
    read().map_err(|error| failed(Step::Read, error))
}

/// Gives every row its hash.
fn hash_all(connection: &Connection, entry: &Entry) -> Result<(), SinkError> {
    let hidden = Hidden::of(&entry.columns);
    let mut sql = format!("SELECT {}", quoted(&hidden.row));
    let mut places = Vec::new();
    for (index, column) in held(&entry.columns) {
        let _ = write!(sql, ", {}", quoted(&column.name));
        places.push(index);
    }
    let _ = write!(sql, " FROM {}", quoted(&entry.name));
    let run = || {
        let mut select = connection.prepare(&sql)?;
        let mut update = connection.prepare(&format!(
            "UPDATE {} SET {} = ?1 WHERE {} = ?2",
            quoted(&entry.name),
            quoted(&hidden.hash),
            quoted(&hidden.row)
        ))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let mut hash = RowHash::new();
            for (at, index) in places.iter().enumerate() {
                hash.add(*index, row.get_ref(at.saturating_add(1))?);
            }
            update.execute((hash.value(), row.get::<_, i64>(0)?))?;
        }
        Ok(())
    };
    run().map_err(|error| failed(Step::Write, error))
}

/// A key that is there twice, or not at all, is a mirror that is no longer equal.
pub(super) fn diverged_or(entry: &Entry, step: Step, error: rusqlite::Error) -> SinkError {
    match error.sqlite_error().map(|error| error.extended_code) {
        Some(
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_ROWID
            | ffi::SQLITE_CONSTRAINT_NOTNULL,
        ) => entry.halt(Code::MirrorDiverged, "key").caused_by(error),
        Some(_) | None => failed(step, error),
    }
}

/// A table that somebody else dropped is a mirror that is no longer equal.
pub(super) fn gone_or(connection: &Connection, entry: &Entry, error: SinkError) -> SinkError {
    match is_made(connection, &entry.name) {
        Ok(false) if entry.made => entry.halt(Code::MirrorDiverged, "table").caused_by(error),
        Ok(_) | Err(_) => error,
    }
}

pub(super) fn execute(connection: &Connection, sql: &str) -> Result<(), SinkError> {
    connection.execute_batch(sql).map_err(|error| failed(Step::Write, error))
}
