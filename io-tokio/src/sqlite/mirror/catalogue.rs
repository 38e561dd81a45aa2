//! `capstan_tables`: which table of the source is which table here, and what is known of its columns.

use std::collections::HashMap;

use capstan_core::{
    deliver::SinkError,
    halt::Code,
    sql::{ColumnDefinition, DeclaredType, lower_case},
    value::{self, Generation, TableVersion, charset::Charset},
};
use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};

use super::{
    super::failure::{Step, failed},
    table::held,
};

pub(super) const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS capstan_tables (
    id INTEGER PRIMARY KEY,
    "schema" TEXT NOT NULL,
    "table" TEXT NOT NULL,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    made INTEGER NOT NULL,
    known INTEGER NOT NULL,
    partial INTEGER NOT NULL,
    columns TEXT NOT NULL,
    "key" TEXT NOT NULL,
    UNIQUE ("schema", "table")
) STRICT;"#;

/// A column as it is expected in the next table map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Column {
    pub(super) name: String,
    /// As SQL; nothing where the source did not write all of it.
    #[serde(rename = "type")]
    type_text: Option<String>,
    /// Where it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    charset: Option<String>,
    /// What text is from that was there when a statement named no character set.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text_of: Option<String>,
    pub(super) nullable: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(super) left_out: bool,
    /// Whether its values are computed from others; nothing where that is not known.
    #[serde(skip_serializing_if = "Option::is_none", default, with = "generation")]
    pub(super) generation: Option<Generation>,
    /// `type_text`, read.
    #[serde(skip)]
    column_type: Option<DeclaredType>,
}

impl Column {
    /// A column of a table map.
    fn of(version: &TableVersion, index: usize, column: &value::Column) -> Self {
        let charset = column.column_type.collation().and_then(Charset::of_collation);
        let seen = Self::new(
            column.name.clone(),
            DeclaredType::of(&column.column_type),
            charset,
            column.nullable,
            version.is_left_out(index),
        );
        Self { generation: version.generation(index), ..seen }
    }

    fn new(
        name: String,
        column_type: Option<DeclaredType>,
        charset: Option<Charset>,
        nullable: bool,
        left_out: bool,
    ) -> Self {
        let charset = charset.filter(|_| column_type.as_ref().is_some_and(DeclaredType::has_charset));
        Self {
            name,
            type_text: column_type.as_ref().map(ToString::to_string),
            charset: charset.map(|charset| charset.name().to_owned()),
            text_of: None,
            nullable,
            left_out,
            generation: None,
            column_type,
        }
    }

    /// A column of a statement. Where that names no character set it is the table's, whatever the column had.
    pub(super) fn defined(definition: &ColumnDefinition) -> Self {
        let nullable = definition.nullable.unwrap_or(!definition.primary_key) && !definition.primary_key;
        let column_type = Some(definition.column_type.clone());
        let defined = Self::new(
            definition.name.clone(),
            column_type,
            definition.charset,
            nullable,
            definition.left_out,
        );
        Self { generation: Some(definition.generation), ..defined }
    }

    /// A column whose rows are there, under a new definition.
    pub(super) fn redefined(&self, definition: &ColumnDefinition) -> Self {
        let defined = Self::defined(definition);
        let has_charset = defined.column_type.as_ref().is_some_and(DeclaredType::has_charset);
        let unsaid = has_charset && defined.charset.is_none();
        let text_of = self.charset.clone().or_else(|| self.text_of.clone()).filter(|_| unsaid);
        Self { text_of, ..defined }
    }

    /// A column of which nothing is known but its name.
    pub(super) fn unknown(name: &str) -> Self {
        Self::new(name.to_owned(), None, None, true, false)
    }

    /// The same column under another name.
    pub(super) fn renamed(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    pub(super) const fn column_type(&self) -> Option<&DeclaredType> {
        self.column_type.as_ref()
    }

    pub(super) fn charset(&self) -> Option<Charset> {
        self.charset.as_deref().and_then(Charset::by_name)
    }

    /// Whether the table map shows this column: what a statement does not say may be anything.
    fn is_shown_as(&self, seen: &Self) -> bool {
        let same_type = match (&self.column_type, &seen.column_type) {
            (Some(expected), Some(seen)) => expected.is_shown_as(seen),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let same_charset = match (&self.charset, &self.text_of) {
            (Some(_), _) => self.charset == seen.charset,
            (None, None) => true,
            // Outside of Unicode some characters become others without an error (U+6661 under cp932, many under
            // tis620, seen on 9.7.4); what Unicode's own lack is refused.
            (None, Some(before)) => {
                seen.charset.as_ref() == Some(before) || seen.charset().is_some_and(is_unicode)
            }
        };
        let same_name = self.name == seen.name || lower_case(&self.name) == lower_case(&seen.name);
        same_name && same_type && same_charset && self.left_out == seen.left_out
    }
}

const fn is_unicode(charset: Charset) -> bool {
    matches!(
        charset,
        Charset::Utf8mb4
            | Charset::Utf8mb3
            | Charset::Utf16
            | Charset::Utf16le
            | Charset::Utf32
            | Charset::Ucs2
    )
}

/// [`Generation`] as text.
mod generation {
    use super::Generation;
    use serde::{Deserialize as _, Deserializer, Serializer};

    const NAMES: [(Generation, &str); 3] = [
        (Generation::Given, "given"),
        (Generation::Computed, "computed"),
        (Generation::BySession, "by_session"),
    ];

    pub(super) fn serialize<S: Serializer>(of: &Option<Generation>, to: S) -> Result<S::Ok, S::Error> {
        let name = NAMES.iter().find(|(known, _)| Some(*known) == *of).map_or("", |(_, name)| name);
        to.serialize_str(name)
    }

    /// A name from a later version says nothing here.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Generation>, D::Error> {
        let name = String::deserialize(from)?;
        Ok(NAMES.iter().find(|(_, known)| *known == name).map(|(of, _)| *of))
    }
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) schema: String,
    pub(super) table: String,
    /// Its name here.
    pub(super) name: String,
    /// There is a table of that name, and it is ours.
    pub(super) made: bool,
    /// It may have had rows that were never here.
    pub(super) partial: bool,
    /// Its columns are those of a table map, or follow from them. Otherwise it has no rows, its columns
    /// are what the text said if it could be read, and the next table map says what it is.
    pub(super) known: bool,
    pub(super) columns: Vec<Column>,
    /// Names of the columns rows are matched by; none: the whole row.
    pub(super) key: Vec<String>,
}

/// The columns and the key of a table map.
pub(super) fn shape_of(version: &TableVersion) -> (Vec<Column>, Vec<String>) {
    let columns: Vec<Column> = version
        .columns()
        .iter()
        .enumerate()
        .map(|(index, column)| Column::of(version, index, column))
        .collect();
    let key: Vec<&Column> =
        version.primary_key().iter().filter_map(|part| columns.get(part.column)).collect();
    let whole = key.len() == version.primary_key().len() && key.iter().all(|column| !column.left_out);
    let key = if whole { key.into_iter().map(|column| column.name.clone()).collect() } else { Vec::new() };
    (columns, key)
}

impl Entry {
    /// Whether these columns of a table map are the ones that are expected.
    pub(super) fn expects(&self, seen: &[Column]) -> bool {
        self.columns.len() == seen.len()
            && self.columns.iter().zip(seen).all(|(expected, seen)| expected.is_shown_as(seen))
    }

    /// What a table map does not tell of its columns, from what is known of those that were there.
    pub(super) fn recall(&self, seen: &mut [Column]) {
        for column in seen.iter_mut().filter(|column| column.generation.is_none()) {
            let name = lower_case(&column.name);
            let before = self.columns.iter().find(|before| lower_case(&before.name) == name);
            column.generation = before.and_then(|before| before.generation);
        }
    }

    /// Whether the server may compute values of its columns.
    pub(super) fn computes(&self) -> bool {
        held(&self.columns).any(|(_, column)| column.generation != Some(Generation::Given))
    }

    /// Whether the server may compute other values of its columns when it copies the table; `None`: nobody has told.
    pub(super) fn computes_by_session(&self) -> Option<bool> {
        let any = |of| held(&self.columns).any(|(_, column)| column.generation == of);
        if any(Some(Generation::BySession)) { Some(true) } else { (!any(None)).then_some(false) }
    }

    pub(super) fn halt(&self, code: Code, step: &'static str) -> SinkError {
        SinkError::halt(code, step).of_table(&self.schema, &self.table)
    }
}

/// All tables, by the names they have at the source.
#[derive(Debug)]
pub(super) struct Catalogue {
    entries: HashMap<(String, String), Entry>,
}

impl Catalogue {
    pub(super) fn load(connection: &Connection) -> Result<Self, SinkError> {
        let fault = |error| failed(Step::Read, error);
        let mut statement = connection
            .prepare(r#"SELECT id, "schema", "table", name, made, known, columns, "key", partial FROM capstan_tables"#)
            .map_err(fault)?;
        let mut rows = statement.query([]).map_err(fault)?;
        let mut entries = HashMap::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let entry = read_entry(row).map_err(fault)?;
            let entry = entry.ok_or_else(|| SinkError::halt(Code::PositionReadFailed, "catalogue"))?;
            entries.insert((entry.schema.clone(), entry.table.clone()), entry);
        }
        Ok(Self { entries })
    }

    pub(super) fn get(&self, schema: &str, table: &str) -> Option<&Entry> {
        // Asked once per table map and schema change, so the owned names cost nothing that counts.
        self.entries.get(&(schema.to_owned(), table.to_owned()))
    }

    /// By what a version's rows are found here.
    pub(super) fn shape(&self, version: &TableVersion) -> Option<(String, Vec<String>)> {
        let entry = self.get(version.schema(), version.table())?;
        Some((entry.name.clone(), entry.key.clone()))
    }

    pub(super) fn all(&self) -> Vec<Entry> {
        self.entries.values().cloned().collect()
    }

    pub(super) fn of_schema(&self, schema: &str) -> Vec<Entry> {
        self.entries.values().filter(|entry| entry.schema == schema).cloned().collect()
    }

    /// A new table that is not made yet.
    pub(super) fn add(
        &mut self,
        connection: &Connection,
        schema: &str,
        table: &str,
    ) -> Result<Entry, SinkError> {
        let name = free_name(connection, schema, table)?;
        connection
            .prepare_cached(
                r#"INSERT INTO capstan_tables ("schema", "table", name, made, known, partial, columns, "key")
                   VALUES (?1, ?2, ?3, 0, 0, 0, '[]', '[]')"#,
            )
            .and_then(|mut statement| statement.insert((schema, table, &name)))
            .map_err(|error| failed(Step::Write, error))
            .map(|id| {
                let entry = Entry {
                    id,
                    schema: schema.to_owned(),
                    table: table.to_owned(),
                    name,
                    made: false,
                    partial: false,
                    known: false,
                    columns: Vec::new(),
                    key: Vec::new(),
                };
                self.entries.insert((schema.to_owned(), table.to_owned()), entry.clone());
                entry
            })
    }

    /// Stores what changed of a table.
    pub(super) fn save(&mut self, connection: &Connection, entry: Entry) -> Result<(), SinkError> {
        let json = |list: Result<String, serde_json::Error>| {
            list.map_err(|error| SinkError::halt(Code::PositionWriteFailed, "catalogue").caused_by(error))
        };
        let columns = json(serde_json::to_string(&entry.columns))?;
        let key = json(serde_json::to_string(&entry.key))?;
        connection
            .prepare_cached(
                r#"UPDATE capstan_tables SET "schema" = ?2, "table" = ?3, name = ?4, made = ?5, known = ?6,
                       columns = ?7, "key" = ?8, partial = ?9 WHERE id = ?1"#,
            )
            .and_then(|mut statement| {
                statement.execute((
                    entry.id,
                    &entry.schema,
                    &entry.table,
                    &entry.name,
                    entry.made,
                    entry.known,
                    columns,
                    key,
                    entry.partial,
                ))
            })
            .map_err(|error| failed(Step::Write, error))?;
        // Among ten thousand tables only one that moved is looked for.
        if self.get(&entry.schema, &entry.table).is_none_or(|known| known.id != entry.id) {
            self.entries.retain(|_, other| other.id != entry.id);
        }
        self.entries.insert((entry.schema.clone(), entry.table.clone()), entry);
        Ok(())
    }

    /// Forgets a table.
    pub(super) fn remove(&mut self, connection: &Connection, entry: &Entry) -> Result<(), SinkError> {
        self.entries.retain(|_, other| other.id != entry.id);
        connection
            .execute("DELETE FROM capstan_tables WHERE id = ?1", [entry.id])
            .map(|_| ())
            .map_err(|error| failed(Step::Write, error))
    }
}

fn read_entry(row: &rusqlite::Row<'_>) -> Result<Option<Entry>, rusqlite::Error> {
    let columns: String = row.get(6)?;
    let key: String = row.get(7)?;
    let (Ok(mut columns), Ok(key)) =
        (serde_json::from_str::<Vec<Column>>(&columns), serde_json::from_str::<Vec<String>>(&key))
    else {
        return Ok(None);
    };
    for column in &mut columns {
        column.column_type = column.type_text.as_deref().and_then(DeclaredType::parse);
        if column.type_text.is_some() && column.column_type.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(Entry {
        id: row.get(0)?,
        schema: row.get(1)?,
        table: row.get(2)?,
        name: row.get(3)?,
        made: row.get(4)?,
        known: row.get(5)?,
        partial: row.get(8)?,
        columns,
        key,
    }))
}

/// A name that nothing here has, without regard to case: `schema.table` where it can be, so that it reads
/// back as what it is.
pub(super) fn free_name(connection: &Connection, schema: &str, table: &str) -> Result<String, SinkError> {
    let plain = format!("{schema}.{table}");
    let reserved = ["sqlite_", "capstan_"]
        .iter()
        .any(|prefix| plain.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix)));
    let usable = !reserved && !schema.contains('.') && !table.contains('.') && !plain.contains('\0');
    if usable && !is_taken(connection, &plain)? {
        return Ok(plain);
    }
    let clean = |name: &str| name.replace(['.', '\0'], "_");
    let base = format!("{}{}.{}", if reserved { "_" } else { "" }, clean(schema), clean(table));
    for number in 1_u64.. {
        let name = format!("{base}~{number}");
        if !is_taken(connection, &name)? {
            return Ok(name);
        }
    }
    Err(SinkError::halt(Code::SinkFailed, "name"))
}

fn is_taken(connection: &Connection, name: &str) -> Result<bool, SinkError> {
    if is_made(connection, name)? {
        return Ok(true);
    }
    exists(connection, "SELECT 1 FROM capstan_tables WHERE name = ?1", name)
}

/// Whether a table, view or index has this name, without regard to case. Found at once: a look into `sqlite_schema` reads
/// all of it.
pub(super) fn is_made(connection: &Connection, name: &str) -> Result<bool, SinkError> {
    let sql = "SELECT 1 FROM pragma_table_xinfo(?1) UNION ALL SELECT 1 FROM pragma_index_xinfo(?1)";
    exists(connection, sql, name)
}

fn exists(connection: &Connection, sql: &str, name: &str) -> Result<bool, SinkError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([name], |_| Ok(())).optional())
        .map(|found| found.is_some())
        .map_err(|error| failed(Step::Read, error))
}
