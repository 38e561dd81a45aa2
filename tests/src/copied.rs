//! Tables read by `SELECT` through the core's snapshot, and whether they are what the binlog has.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use capstan_core::binlog::rows::{ChangeRow, RowScratch, RowsEvent, RowsHead, RowsKind};
use capstan_core::binlog::table_map::TableMaps;
use capstan_core::binlog::{EventType, FileReader};
use capstan_core::link::command::execute;
use capstan_core::link::{Capabilities, Query, QueryLimits, QueryResult, QueryStep, ResultSet};
use capstan_core::link::{Prepare, PrepareStep, RowStep, RowStream, RowsEnd};
use capstan_core::snapshot::rows::{
    Describe, DescribeSome, DescribeSomeStep, DescribeStep, Described, RowEncoder, SESSION, SomeOf,
    quoted_table, select_list,
};
use capstan_core::value::{TableVersion, Value};
use capstan_mysql::Session;

type Fault = Box<dyn Error>;

const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 0x16;
/// The tests' client does not know newer ways to end an answer.
const CAPABILITIES: Capabilities = Capabilities(0);

/// An answer as the core reads it.
pub fn ask(session: &mut Session, statement: &str) -> Result<ResultSet, Fault> {
    session.command(COM_QUERY, statement.as_bytes())?;
    let mut query = Query::new(CAPABILITIES, QueryLimits::default());
    loop {
        match query.on_payload(&Bytes::from(session.read_packet()?))? {
            QueryStep::More(next) => query = next,
            QueryStep::Done(QueryResult::Rows(rows)) => return Ok(rows),
            QueryStep::Done(QueryResult::Ok(_)) => return Ok(ResultSet::default()),
            QueryStep::Done(QueryResult::Failed(error)) => {
                return Err(format!("{}: {statement}", error.number()).into());
            }
        }
    }
}

/// Describes a table.
pub fn describe(session: &mut Session, schema: &str, table: &str) -> Result<Described, Fault> {
    ask(session, SESSION)?;
    let mut describe = Describe::new(schema, table);
    loop {
        let answer = ask(session, &describe.statement())?;
        match describe.on_result(&answer)? {
            DescribeStep::More(next) => describe = next,
            DescribeStep::Done(described) => return Ok(*described),
        }
    }
}

/// Describes tables of one schema at once.
pub fn describe_some<'a>(
    session: &mut Session,
    schema: &str,
    tables: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<SomeOf>, Fault> {
    ask(session, SESSION)?;
    let mut describe = DescribeSome::new(schema, tables.into_iter().map(str::to_owned));
    loop {
        let answer = ask(session, &describe.statement())?;
        match describe.on_result(&answer) {
            DescribeSomeStep::More(next) => describe = next,
            DescribeSomeStep::Done(each) => return Ok(each),
        }
    }
}

/// The rows of a table as one row event; `None` if it is empty. `rest` is what follows the table's name.
pub fn copy(
    session: &mut Session,
    table: &Arc<TableVersion>,
    rest: &str,
) -> Result<Option<RowsEvent>, Fault> {
    let from = quoted_table(table.schema(), table.table());
    let statement = format!("SELECT {} FROM {from} {rest}", select_list(table));
    session.command(COM_STMT_PREPARE, statement.as_bytes())?;
    let mut prepare = Prepare::new(CAPABILITIES);
    let number = loop {
        match prepare.on_payload(&Bytes::from(session.read_packet()?))? {
            PrepareStep::More(next) => prepare = next,
            PrepareStep::Done(number) => break number,
            PrepareStep::Failed(error) => return Err(format!("{}: {statement}", error.number()).into()),
        }
    };
    let (execute, mut encoder) = (execute(number), RowEncoder::new(Arc::clone(table)));
    let (command, rest) = execute.split_first().ok_or("no command")?;
    session.command(*command, rest)?;
    let mut rows = RowStream::new(CAPABILITIES);
    loop {
        let payload = Bytes::from(session.read_packet()?);
        if let Some(row) = rows.binary_row(&payload)? {
            encoder.push_binary(&row)?;
            continue;
        }
        match rows.on_payload(&payload)? {
            RowStep::More(next) => rows = next,
            RowStep::Row(..) => return Err("a row is none".into()),
            RowStep::Done(RowsEnd::Complete) => return Ok(encoder.take()?),
            RowStep::Done(RowsEnd::NoRows(_)) => return Err("no rows".into()),
            RowStep::Done(RowsEnd::Failed(error)) => {
                return Err(format!("{}: {statement}", error.number()).into());
            }
        }
    }
}

/// The same in the text protocol.
pub fn copy_as_text(
    session: &mut Session,
    table: &Arc<TableVersion>,
    rest: &str,
) -> Result<Option<RowsEvent>, Fault> {
    let from = quoted_table(table.schema(), table.table());
    let statement = format!("SELECT {} FROM {from} {rest}", select_list(table));
    session.command(COM_QUERY, statement.as_bytes())?;
    let mut encoder = RowEncoder::new(Arc::clone(table));
    let mut rows = RowStream::new(CAPABILITIES);
    loop {
        match rows.on_payload(&Bytes::from(session.read_packet()?))? {
            RowStep::More(next) => rows = next,
            RowStep::Row(next, row) => {
                let mut cells = row.cells();
                encoder.push(&mut cells)?;
                cells.end()?;
                rows = next;
            }
            RowStep::Done(RowsEnd::Complete) => return Ok(encoder.take()?),
            RowStep::Done(RowsEnd::NoRows(_)) => return Err("no rows".into()),
            RowStep::Done(RowsEnd::Failed(error)) => {
                return Err(format!("{}: {statement}", error.number()).into());
            }
        }
    }
}

/// A value whose bytes are others in the binlog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The table.
    pub table: String,
    /// The column, or what of the table is another.
    pub column: String,
    /// The same text: two encodings of one document.
    pub same_text: bool,
}

/// Compares every table of `schema` that the binlog file at `path` has inserts of, but for those in `except`:
/// table version, and row images in the order of the first column (in which they were inserted).
/// Gives the differences and how many rows were compared.
pub fn differences(
    session: &mut Session,
    schema: &str,
    path: &Path,
    except: &[&str],
) -> Result<(Vec<Difference>, u64), Fault> {
    let (mut found, mut compared) = (Vec::new(), 0);
    for (name, streamed) in inserted(path)? {
        if except.contains(&name.as_str()) {
            continue;
        }
        let table = Arc::new(describe(session, schema, &name)?.version);
        let difference = |column: &str, same_text| Difference {
            table: name.clone(),
            column: column.to_owned(),
            same_text,
        };
        let Some(first) = streamed.first() else { continue };
        if *first.table() != table {
            found.push(difference("table version", false));
            for (ours, theirs) in table.columns().iter().zip(first.table().columns()) {
                if ours != theirs {
                    found.push(difference(&format!("{ours:?} is {theirs:?}"), false));
                }
            }
        }
        let order = table.columns().first().ok_or("no columns")?;
        let order = format!("ORDER BY `{}`", order.name);
        let copied = copy(session, &table, &order)?.ok_or("the table is empty")?;
        let images: Vec<u8> = streamed.iter().flat_map(|event| event.images()).copied().collect();
        compared += copied.changes();
        let text = copy_as_text(session, &table, &order)?.ok_or("the table is empty")?;
        if text.images() != copied.images() {
            found.push(difference("as text", false));
        }
        if copied.images() != images {
            let before = found.len();
            by_value(&copied, &streamed, |column, same_text| found.push(difference(column, same_text)))?;
            if found.len() == before {
                found.push(difference("the images as a whole", false));
            }
        }
    }
    Ok((found, compared))
}

/// The inserts of a file, by table.
fn inserted(path: &Path) -> Result<BTreeMap<String, Vec<RowsEvent>>, Fault> {
    let mut reader = FileReader::new(1 << 30);
    reader.feed(&fs::read(path)?);
    let mut maps = TableMaps::new();
    let mut tables: BTreeMap<String, Vec<RowsEvent>> = BTreeMap::new();
    while let Some((_, event)) = reader.next_event()? {
        if event.header.event_type == EventType::TableMap {
            maps.open(&event.body)?;
            continue;
        }
        let type_code = event.header.event_type.code();
        if RowsKind::of(type_code).is_none_or(|(kind, _)| kind != RowsKind::Insert) {
            continue;
        }
        let head = RowsHead::parse(type_code, &event.body)?;
        let table = Arc::clone(maps.get(head.table_id).ok_or("rows without a table map")?);
        let rows = RowsEvent::new(head, Arc::clone(&table), event.body)?.validated()?;
        tables.entry(table.table().to_owned()).or_default().push(rows);
    }
    Ok(tables)
}

fn by_value(
    copied: &RowsEvent,
    streamed: &[RowsEvent],
    mut differs: impl FnMut(&str, bool),
) -> Result<(), Fault> {
    let (mut ours, mut theirs) = (RowScratch::new(), RowScratch::new());
    let mut copied = copied.cursor(&mut ours);
    for event in streamed {
        let mut streamed = event.cursor(&mut theirs);
        while let Some(ChangeRow::Insert { after: theirs }) = streamed.next()? {
            let Some(ChangeRow::Insert { after: ours }) = copied.next()? else {
                differs("fewer rows", false);
                return Ok(());
            };
            for (index, column) in theirs.table().columns().iter().enumerate() {
                if ours.raw(index) != theirs.raw(index) || ours.is_null(index) != theirs.is_null(index) {
                    let same_text = json_text(ours.get(index)?) == json_text(theirs.get(index)?);
                    differs(&column.name, same_text && json_text(ours.get(index)?).is_some());
                }
            }
        }
    }
    if copied.next()?.is_some() {
        differs("more rows", false);
    }
    Ok(())
}

fn json_text(value: Value<'_>) -> Option<String> {
    let Value::Json(json) = value else { return None };
    let mut text = String::new();
    json.write_text(&mut text).ok().map(|()| text)
}
