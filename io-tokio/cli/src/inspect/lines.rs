//! A unit as a JSON line.

use capstan::{
    SchemaChange,
    core::{
        binlog::rows::VisitError,
        deliver::Event,
        text::{SchemaChangeText, TextOptions, TransactionLine, write_schema_change},
    },
};

use super::{Trouble, held::Held, of_value};

/// Writes JSON lines.
pub struct Lines {
    options: TextOptions,
    line: Option<TransactionLine>,
}

impl Lines {
    pub fn new(options: TextOptions) -> Self {
        Self { options, line: None }
    }

    pub fn event(&mut self, held: &mut Held, event: &Event) -> Result<(), Trouble> {
        match event {
            Event::TxBegin(begin) if !begin.schema_change => {
                self.line =
                    Some(TransactionLine::begin(&mut held.text, begin.gtid.as_ref(), begin.committed_at));
            }
            Event::Rows(rows) => {
                let Some(line) = &mut self.line else { return Ok(()) };
                match line.rows(&mut held.text, rows, self.options) {
                    Err(VisitError::Value(why)) => return Err(of_value(rows.table(), why.column)),
                    // That all rows lie in the event was seen before it came here.
                    Ok(()) | Err(VisitError::Rows(_)) => {}
                }
                held.settle()?;
            }
            Event::SchemaChange(change) => match &mut self.line {
                Some(line) => line.schema_change(&mut held.text, &text_of(change)),
                None => {
                    let (gtid, at) = (change.gtid.as_ref(), change.committed_at);
                    write_schema_change(&mut held.text, gtid, at, &text_of(change));
                }
            },
            Event::TxCommit(commit) => {
                if let Some(line) = self.line.take() {
                    match commit.xa {
                        Some(state) => line.end_xa(&mut held.text, state),
                        None => line.end(&mut held.text),
                    }
                }
            }
            Event::TxAbort { .. } => self.line = None,
            Event::TxBegin(_)
            | Event::Table(_)
            | Event::Claim { .. }
            | Event::SnapshotRows(_)
            | Event::Progress { .. } => {}
        }
        Ok(())
    }
}

fn text_of(change: &SchemaChange) -> SchemaChangeText<'_> {
    SchemaChangeText {
        kind: change.kind,
        tables: &change.tables,
        rows: change.rows,
        statement: &change.statement,
    }
}
