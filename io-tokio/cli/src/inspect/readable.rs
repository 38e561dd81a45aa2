//! A unit for people: every column with its name and type, in the order of the log.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
};

use capstan::{
    SchemaChange, TableVersion,
    core::{
        binlog::rows::{ChangeRow, Row, RowWalk, RowsEvent},
        deliver::Event,
        sql::DdlKind,
        text::{TextOptions, write_time},
        value::ValueError,
    },
};

use super::{Trouble, Unit, held::Held, of_value};
use crate::shown;

/// Characters of a value that are shown.
const SHOWN: usize = 1024;
/// A name or type is padded up to this width, so that one long name moves no column out of sight.
const WIDTH_MAX: usize = 30;

/// Writes units for people.
pub struct Readable {
    options: TextOptions,
    colours: bool,
    walk: RowWalk,
    changes: u64,
}

impl Readable {
    pub fn new(options: TextOptions) -> Self {
        Self { options, colours: io::stdout().is_terminal(), walk: RowWalk::default(), changes: 0 }
    }

    pub fn event(&mut self, held: &mut Held, event: &Event, unit: Unit) -> Result<(), Trouble> {
        let out = &mut held.text;
        match event {
            Event::TxBegin(begin) => {
                let gtid = begin.gtid.map_or_else(|| "no GTID".to_owned(), |gtid| gtid.to_string());
                let mut head = format!("── at {}  {gtid}", unit.offset);
                if let Some(at) = begin.committed_at {
                    head.push_str("  ");
                    write_time(&mut head, at);
                }
                out.push_str(&self.paint("2", &head));
                out.push('\n');
                self.changes = 0;
            }
            Event::Rows(rows) => self.rows(held, rows)?,
            Event::SchemaChange(change) => self.schema_change(out, change),
            Event::TxCommit(commit) => {
                let state = commit.xa.map_or_else(String::new, |xa| format!("XA {}, ", xa.as_str()));
                let end = format!("   {state}{} changes, {} bytes", self.changes, unit.bytes);
                out.push_str(&self.paint("2", &end));
                out.push('\n');
            }
            Event::TxAbort { .. }
            | Event::Table(_)
            | Event::Claim { .. }
            | Event::SnapshotRows(_)
            | Event::Progress { .. } => {}
        }
        Ok(())
    }

    fn rows(&mut self, held: &mut Held, rows: &RowsEvent) -> Result<(), Trouble> {
        let mut walk = std::mem::take(&mut self.walk);
        walk.start(rows);
        while let Ok(Some(change)) = walk.next(rows) {
            self.changes += 1;
            self.change(&mut held.text, rows.table(), change)
                .map_err(|why| of_value(rows.table(), why.column))?;
            held.settle()?;
        }
        self.walk = walk;
        Ok(())
    }

    fn change(
        &self,
        out: &mut String,
        table: &TableVersion,
        change: ChangeRow<'_>,
    ) -> Result<(), ValueError> {
        let (colour, sign) = match change {
            ChangeRow::Insert { .. } => ("32", "+ insert"),
            ChangeRow::Update { .. } => ("33", "~ update"),
            ChangeRow::Delete { .. } => ("31", "- delete"),
        };
        let name = shown::name(&format!("{}.{}", table.schema(), table.table()));
        let _ = writeln!(out, "   {} {}", self.paint(colour, sign), self.paint("1", &name));
        let types: Vec<String> =
            table.columns().iter().map(|column| column.column_type.type_name().to_string()).collect();
        let names: Vec<String> = table.columns().iter().map(|column| shown::name(&column.name)).collect();
        let width = |texts: &[String]| {
            texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).min(WIDTH_MAX)
        };
        let (name_width, type_width) = (width(&names), width(&types));
        for (index, (name, type_name)) in names.iter().zip(&types).enumerate() {
            if table.is_left_out(index) {
                continue;
            }
            let changed = changed(change, index);
            let mark = if changed { '*' } else { ' ' };
            let _ = write!(out, "     {mark} {name:<name_width$}  {type_name:<type_width$}  ");
            match (change.before(), change.after()) {
                (Some(before), Some(_)) if !changed => self.value(out, before, index)?,
                (Some(before), Some(after)) => {
                    self.value(out, before, index)?;
                    out.push_str(" → ");
                    self.value(out, after, index)?;
                }
                (Some(only), None) | (None, Some(only)) => self.value(out, only, index)?,
                (None, None) => {}
            }
            out.push('\n');
        }
        Ok(())
    }

    fn value(&self, out: &mut String, row: Row<'_>, index: usize) -> Result<(), ValueError> {
        let value = row.get(index)?;
        let Some(column) = row.table().columns().get(index) else { return Ok(()) };
        shown::value(out, column, value, self.options, SHOWN)
            .map_err(|reason| ValueError { column: index, reason })
    }

    fn schema_change(&self, out: &mut String, change: &SchemaChange) {
        let what = if change.kind == DdlKind::StatementLogged { "! statement" } else { "! schema" };
        let _ = writeln!(out, "   {} {}", self.paint("36", what), shown::statement(&change.statement));
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Whether an update gave the column another value. A column that is in one image only says nothing of the other.
fn changed(change: ChangeRow<'_>, index: usize) -> bool {
    match change {
        ChangeRow::Update { before, after } => {
            (before.raw(index), before.is_null(index), before.is_present(index))
                != (after.raw(index), after.is_null(index), after.is_present(index))
        }
        ChangeRow::Insert { .. } | ChangeRow::Delete { .. } => false,
    }
}
