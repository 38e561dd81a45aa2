//! A mirror against its source, value by value: the server's own text of every value of every row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use capstan_mysql::Server;
use rusqlite::{Connection, types::Value};

/// Rows as text, each table's sorted, by `schema.table`. Tables without rows are left out.
pub type Rows = BTreeMap<String, Vec<String>>;

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The bytes as hexadecimal digits.
    Hex,
    /// The number's own bits.
    Real,
    /// The text.
    Text,
}

/// Every row of the schemas whose names begin with `prefix`, by the server's account.
pub fn source_rows(server: &Server, prefix: &str) -> Rows {
    let mut session = server.connect().unwrap();
    session.sql("SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = ''").unwrap();
    let names = session
        .query(&format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
             WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA LIKE '{prefix}%'"
        ))
        .unwrap()
        .pop()
        .unwrap();
    let mut found = Rows::new();
    for row in names.rows {
        let [schema, table] = [0, 1].map(|index| text(row[index].as_deref()));
        let columns = session
            .query(&format!(
                "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS
                 WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{table}' ORDER BY ORDINAL_POSITION"
            ))
            .unwrap()
            .pop()
            .unwrap();
        let mut selected = Vec::new();
        let mut forms = Vec::new();
        for column in columns.rows {
            let name = format!("`{}`", text(column[0].as_deref()).replace('`', "``"));
            let (expression, form) = selection(&name, &text(column[1].as_deref()));
            selected.push(expression);
            forms.push(form);
        }
        let sql = format!("SELECT {} FROM `{schema}`.`{}`", selected.join(", "), table.replace('`', "``"));
        let result = session.query(&sql).unwrap().pop().unwrap();
        let mut rows: Vec<String> = result
            .rows
            .iter()
            .map(|row| {
                let values = row.iter().zip(&forms).map(|(value, form)| match (value, form) {
                    (None, _) => "NULL".to_owned(),
                    (Some(value), Form::Real) => {
                        let number: f64 = text(Some(value)).parse().unwrap();
                        format!("{:016x}", number.to_bits())
                    }
                    (Some(value), Form::Hex | Form::Text) => text(Some(value)),
                });
                values.collect::<Vec<_>>().join(",")
            })
            .collect();
        rows.sort();
        if !rows.is_empty() {
            found.insert(name_of(&schema, &table), rows);
        }
    }
    found
}

/// `schema.table`, in backticks where a name has a dot itself.
fn name_of(schema: &str, table: &str) -> String {
    let part = |name: &str| if name.contains('.') { format!("`{name}`") } else { name.to_owned() };
    format!("{}.{}", part(schema), part(table))
}

/// What is selected for a column, and how it compares.
fn selection(name: &str, data_type: &str) -> (String, Form) {
    match data_type {
        "float" | "double" => (format!("CAST({name} AS DOUBLE)"), Form::Real),
        "bit" => (format!("CAST({name} AS UNSIGNED)"), Form::Text),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "geometry" | "point"
        | "linestring" | "polygon" | "multipoint" | "multilinestring" | "multipolygon" | "geomcollection"
        | "vector" => (format!("HEX({name})"), Form::Hex),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" => {
            (format!("HEX(CONVERT({name} USING utf8mb4))"), Form::Hex)
        }
        "json" => (format!("HEX(CAST({name} AS CHAR CHARACTER SET utf8mb4))"), Form::Hex),
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" | "date" | "time"
        | "datetime" | "timestamp" => (
            if data_type == "year" { format!("CAST({name} AS UNSIGNED)") } else { name.to_owned() },
            Form::Text,
        ),
        other => panic!("a column of type {other}"),
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap()
}

/// Every row of a mirror, in the same form; the types are those the catalogue has.
pub fn mirror_rows(path: &Path) -> Rows {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection
        .prepare(r#"SELECT "schema", "table", name, columns FROM capstan_tables WHERE made"#)
        .unwrap();
    let entries: Vec<[String; 4]> = statement
        .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut found = Rows::new();
    for [schema, table, name, columns] in entries {
        let columns: Vec<serde_json::Value> = serde_json::from_str(&columns).unwrap();
        let types: HashMap<String, Form> = columns
            .iter()
            .map(|column| {
                let text = column["type"].as_str().unwrap_or_default();
                let word: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
                (column["name"].as_str().unwrap().to_owned(), selection("", &word).1)
            })
            .collect();
        let mut select =
            connection.prepare(&format!("SELECT * FROM \"{}\"", name.replace('"', "\"\""))).unwrap();
        // The columns are read in the catalogue's order.
        let order: Vec<(usize, Form)> = columns
            .iter()
            .filter_map(|column| {
                let name = column["name"].as_str().unwrap();
                let index = select.column_index(name).ok()?;
                Some((index, types[name]))
            })
            .collect();
        let mut rows: Vec<String> = select
            .query_map([], |row| {
                let values = order.iter().map(|(index, form)| shown(row.get(*index).unwrap(), *form));
                Ok(values.collect::<Vec<_>>().join(","))
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        rows.sort();
        if !rows.is_empty() {
            found.insert(name_of(&schema, &table), rows);
        }
    }
    found
}

fn shown(value: Value, form: Form) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    match (value, form) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::Integer(value), Form::Text) => value.to_string(),
        (Value::Text(text), Form::Text) => text,
        (Value::Real(value), Form::Real) => format!("{:016x}", value.to_bits()),
        (Value::Text(text), Form::Hex) => hex(text.as_bytes()),
        (Value::Blob(bytes), Form::Hex) => hex(&bytes),
        // Another class than the one it should have.
        (value, form) => format!("!{form:?} {:?}", value.data_type()),
    }
}

/// How the mirror differs, a line for each table.
pub fn differences(source: &Rows, mirror: &Rows) -> Vec<String> {
    let mut names: Vec<&String> = source.keys().chain(mirror.keys()).collect();
    names.sort();
    names.dedup();
    let none = Vec::new();
    let mut found = Vec::new();
    for name in names {
        let (here, there) = (source.get(name).unwrap_or(&none), mirror.get(name).unwrap_or(&none));
        if here != there {
            let first = here.iter().zip(there).find(|(a, b)| a != b).map(|(a, b)| first_of(a, b));
            let only = |a: &[String], b: &[String]| a.iter().filter(|row| !b.contains(row)).count();
            found.push(format!(
                "{name}: {} rows at the source ({} not here), {} here ({} not there); first: {first:?}",
                here.len(),
                only(here, there),
                there.len(),
                only(there, here)
            ));
        }
    }
    found
}

/// The first value of two rows that differs, cut where it is long.
fn first_of(a: &str, b: &str) -> String {
    let cut = |text: &str| text.chars().take(60).collect::<String>();
    let pair = a.split(',').zip(b.split(',')).enumerate().find(|(_, (a, b))| a != b);
    pair.map_or_else(
        || "a value is missing".to_owned(),
        |(index, (a, b))| format!("value {index}: {} and here {}", cut(a), cut(b)),
    )
}

/// Fails unless both are equal.
pub fn assert_equal(server: &Server, prefix: &str, mirror: &Path) {
    let found = differences(&source_rows(server, prefix), &mirror_rows(mirror));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
