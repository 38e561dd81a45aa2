//! Changes for people to read on a terminal.

use std::{
    collections::HashMap,
    io::{self, IsTerminal as _, Write as _},
    sync::Arc,
};

use capstan::{
    Ack, BlockingBatch, BlockingSink, BlockingTransaction, BlockingUnit, Change, Item, Op, Position,
    SchemaChange, SinkError, SinkResultExt as _, TableVersion,
    core::{
        binlog::rows::{Row, RowsEvent},
        text::{TextOptions, write_time},
        value::ValueError,
    },
};

use crate::{out::end_if_closed, shown};

/// Lines of a transaction that are held until it is whole.
const HELD_MAX: usize = 64 << 20;

/// Prints units for people. The position lives as long as the process.
pub struct People {
    text: TextOptions,
    out: String,
    colours: bool,
    position: Option<Position>,
    /// Tables whose columns were shown, in the version they were shown in.
    tables: HashMap<(String, String), Arc<TableVersion>>,
}

impl People {
    pub fn new(text: TextOptions) -> Self {
        Self {
            text,
            out: String::new(),
            colours: io::stdout().is_terminal(),
            position: None,
            tables: HashMap::new(),
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn transaction(&mut self, mut transaction: BlockingTransaction<'_>) -> Result<(), SinkError> {
        let gtid = transaction.gtid().map_or_else(|| "no GTID".to_owned(), ToString::to_string);
        let mut at = String::new();
        if let Some(time) = transaction.committed_at() {
            write_time(&mut at, time);
        }
        let head = self.paint("2", &format!("── {at}  {gtid}"));
        self.out.push_str(&head);
        self.out.push('\n');
        let mut left_out = 0_u64;
        while let Some(item) = transaction.next()? {
            if self.out.len() > HELD_MAX {
                // Nobody reads this far; what is held until the end must stay bounded.
                left_out += 1;
                continue;
            }
            match item {
                Item::Change(change) => self.change(&change)?,
                Item::SchemaChange(change) => self.schema_change(change),
            }
        }
        if left_out > 0 {
            self.out.push_str(&format!("   … and {left_out} more changes (all of them with -o json)\n"));
        }
        Ok(())
    }

    fn change(&mut self, change: &Change<'_>) -> Result<(), SinkError> {
        self.table(change.table);
        let (colour, sign) = match change.op {
            Op::Insert => ("32", "+ insert"),
            Op::Update => ("33", "~ update"),
            Op::Delete => ("31", "- delete"),
        };
        let line = format!("   {} {}", self.paint(colour, sign), self.paint("1", &full_name(change.table)));
        self.out.push_str(&line);
        let columns = change.table.columns();
        let key: Vec<usize> = change.table.primary_key().iter().map(|part| part.column).collect();
        for (index, column) in columns.iter().enumerate() {
            let name = shown::name(&column.name);
            let before = value(change.before, index, self.text)?;
            let after = value(change.after, index, self.text)?;
            match (before, after) {
                (Some(before), Some(after)) if before == after && !key.contains(&index) => {}
                (Some(before), Some(after)) if before == after => {
                    self.out.push_str(&format!(" {name}={after}"));
                }
                (Some(before), Some(after)) => self.out.push_str(&format!(" {name}={before} → {after}")),
                (Some(only), None) | (None, Some(only)) => self.out.push_str(&format!(" {name}={only}")),
                (None, None) => {}
            }
        }
        self.out.push('\n');
        Ok(())
    }

    /// The columns of a table and their types, before its first change and whenever they are others.
    fn table(&mut self, table: &Arc<TableVersion>) {
        let name = (table.schema().to_owned(), table.table().to_owned());
        // A new link describes the same table once more.
        let known = self.tables.insert(name, Arc::clone(table));
        if known.is_some_and(|known| Arc::ptr_eq(&known, table) || known == *table) {
            return;
        }
        let columns: Vec<String> = table
            .columns()
            .iter()
            .enumerate()
            .filter(|(index, _)| !table.is_left_out(*index))
            .map(|(_, column)| format!("{} {}", shown::name(&column.name), column.column_type.type_name()))
            .collect();
        let line = format!("   {} ({})", full_name(table), columns.join(", "));
        let line = self.paint("2", &line);
        self.out.push_str(&line);
        self.out.push('\n');
    }

    fn schema_change(&mut self, change: &SchemaChange) {
        let line = format!("   {} {}\n", self.paint("36", "! schema"), shown::statement(&change.statement));
        self.out.push_str(&line);
    }
}

fn full_name(table: &TableVersion) -> String {
    shown::name(&format!("{}.{}", table.schema(), table.table()))
}

/// A value, shortened for a line; `None` where the row has none.
fn value(row: Option<Row<'_>>, index: usize, options: TextOptions) -> Result<Option<String>, SinkError> {
    /// Characters of a value that are shown.
    const SHOWN: usize = 120;
    let Some(row) = row else { return Ok(None) };
    if !row.is_present(index) {
        return Ok(None);
    }
    let mut text = String::new();
    let value = row.get(index)?;
    let Some(column) = row.table().columns().get(index) else { return Ok(None) };
    shown::value(&mut text, column, value, options, SHOWN)
        .map_err(|reason| ValueError { column: index, reason })?;
    Ok(Some(text))
}

impl BlockingSink for People {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.position.clone())
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        self.out.clear();
        while let Some(unit) = batch.next()? {
            match unit {
                BlockingUnit::Transaction(transaction) => self.transaction(transaction)?,
                BlockingUnit::SchemaChange(change) => {
                    let gtid = change.gtid.map_or_else(|| "no GTID".to_owned(), |gtid| gtid.to_string());
                    let head = self.paint("2", &format!("── {gtid}"));
                    self.out.push_str(&head);
                    self.out.push('\n');
                    self.schema_change(change);
                }
                BlockingUnit::SnapshotRows(rows) => {
                    if let Some(chunk) = rows.chunk() {
                        let (schema, table) = (chunk.table.schema(), chunk.table.table());
                        let count = chunk.rows.as_ref().map_or(0, RowsEvent::changes);
                        let last = if chunk.last { ", the last" } else { "" };
                        let head = format!(
                            "── copy of {schema}.{table}, chunk {}{last}: {count} rows",
                            chunk.number
                        );
                        let head = self.paint("2", &head);
                        self.out.push_str(&head);
                        self.out.push('\n');
                    }
                    rows.skip();
                }
                BlockingUnit::Progress(_) => {}
            }
        }
        let ack = batch.finish()?;
        let mut out = io::stdout().lock();
        out.write_all(self.out.as_bytes())
            .and_then(|()| out.flush())
            .inspect_err(end_if_closed)
            .permanent("print")?;
        self.position = Some(ack.position().clone());
        Ok(ack)
    }
}
