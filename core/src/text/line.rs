//! JSON lines: one unit to a line, each line with its line feed.

use alloc::string::String;
use core::fmt::{Display, Write as _};

use super::draft::Proof;
use super::schema_change::SchemaChangeText;
use super::value::{AFTER, EventText, RowText};
use super::{TextOptions, write_image};
use crate::binlog::rows::{Row, RowsEvent, RowsKind, VisitError};
use crate::deliver::XaState;
use crate::gtid::{Gtid, GtidSet};
use crate::sql::DdlKind;
use crate::time::SourceTime;
use crate::value::json::{number, temporal};
use crate::value::{Column, TableVersion, Value, ValueError};

/// The line of a transaction, written piece by piece so that one of any size needs no memory of its
/// own:
///
/// `{"kind":"transaction","gtid":"…","committed_at":"…","changes":[…]}`
///
/// The line is whole when, and only when, [`TransactionLine::end`] wrote its end: a transaction that is
/// aborted on the way leaves a part without a line feed, which the caller takes back.
#[derive(Debug)]
#[must_use = "a line without its end is no line"]
pub struct TransactionLine {
    pub(super) first: bool,
}

impl TransactionLine {
    /// Begins the line. `gtid` is `None` in files written without GTIDs, `committed_at` in those of old
    /// servers; both are `null` then.
    pub fn begin(out: &mut String, gtid: Option<&Gtid>, committed_at: Option<SourceTime>) -> Self {
        out.push_str("{\"kind\":\"transaction\"");
        head(out, gtid, committed_at);
        out.push_str(",\"changes\":[");
        Self { first: true }
    }

    /// Appends one change: as [`write_change`].
    ///
    /// # Errors
    /// A value that no server can have stored; `out` is as it was then.
    pub fn change(
        &mut self,
        out: &mut String,
        before: Option<Row<'_>>,
        after: Option<Row<'_>>,
        options: TextOptions,
    ) -> Result<(), ValueError> {
        let start = out.len();
        separate(out, self.first);
        match write_change(out, before, after, options) {
            Ok(()) => {
                self.first = false;
                Ok(())
            }
            Err(why) => {
                out.truncate(start);
                Err(why)
            }
        }
    }

    /// Appends every change of an event: as [`TransactionLine::change`] each of them, in half the time.
    ///
    /// # Errors
    /// What [`RowsEvent::visit`] gives; `out` is as it was before the event then.
    pub fn rows(
        &mut self,
        out: &mut String,
        rows: &RowsEvent,
        options: TextOptions,
    ) -> Result<(), VisitError> {
        let start = out.len();
        let written = match self.attempt(out, rows, options, Proof::Together) {
            Ok(false) => {
                out.truncate(start);
                self.attempt(out, rows, options, Proof::Each)
            }
            written => written,
        };
        match written {
            Ok(_) => {
                self.first = false;
                Ok(())
            }
            Err(why) => {
                out.truncate(start);
                Err(why)
            }
        }
    }

    /// Gives whether all texts were found to be what they must be.
    fn attempt(
        &self,
        out: &mut String,
        rows: &RowsEvent,
        options: TextOptions,
        proof: Proof,
    ) -> Result<bool, VisitError> {
        let mut text = EventText::new(out, rows, options, self.first, proof);
        rows.visit(&mut text)?;
        Ok(text.is_whole())
    }

    /// Appends a schema change that is part of the group (`CREATE TABLE … SELECT`), with
    /// `"op":"schema_change"`; and a change that was logged as a statement, with `"op":"statement"`.
    pub fn schema_change(&mut self, out: &mut String, change: &SchemaChangeText<'_>) {
        separate(out, self.first);
        self.first = false;
        let logged = change.kind == DdlKind::StatementLogged;
        out.push_str(if logged { "{\"op\":\"statement\"" } else { "{\"op\":\"schema_change\"" });
        change.write(out);
        out.push('}');
    }

    /// Ends the line.
    pub fn end(self, out: &mut String) {
        out.push_str("]}\n");
    }

    /// Ends the line of a two-phase XA transaction with what became of it: only where files are read.
    pub fn end_xa(self, out: &mut String, state: XaState) {
        out.push_str("],\"xa\":\"");
        out.push_str(state.as_str());
        out.push_str("\"}\n");
    }
}

/// The line of one chunk of a snapshot, written row by row:
///
/// `{"kind":"snapshot_rows","schema":"…","table":"…","chunk":0,"gtid_set":"…","last":false,"rows":[{…}]}`
#[derive(Debug)]
#[must_use = "a line without its end is no line"]
pub struct SnapshotLine {
    first: bool,
}

impl SnapshotLine {
    /// Begins the line: chunk `chunk` of `table`, exact for `gtid_set`, the table's last or not.
    pub fn begin(out: &mut String, table: &TableVersion, chunk: u64, gtid_set: &GtidSet, last: bool) -> Self {
        out.push_str("{\"kind\":\"snapshot_rows\"");
        out.push_str(table.json_names());
        out.push_str(",\"chunk\":");
        number::unsigned(out, chunk);
        out.push_str(",\"gtid_set\":");
        plain(out, gtid_set);
        out.push_str(if last { ",\"last\":true" } else { ",\"last\":false" });
        out.push_str(",\"rows\":[");
        Self { first: true }
    }

    /// Appends one row: as [`write_image`].
    ///
    /// # Errors
    /// A value that no server can have stored; `out` is as it was then.
    pub fn row<'a>(
        &mut self,
        out: &mut String,
        values: impl Iterator<Item = Result<(&'a Column, Value<'a>), ValueError>>,
        options: TextOptions,
    ) -> Result<(), ValueError> {
        let start = out.len();
        separate(out, self.first);
        match write_image(out, values, options) {
            Ok(()) => {
                self.first = false;
                Ok(())
            }
            Err(why) => {
                out.truncate(start);
                Err(why)
            }
        }
    }

    /// Ends the line.
    pub fn end(self, out: &mut String) {
        out.push_str("]}\n");
    }
}

/// Appends one change, without a line feed:
///
/// `{"op":"update","schema":"…","table":"…","before":{…},"after":{…}}`
///
/// A row without one before it is an insert, one without one after it a delete; the image that is not
/// there is left out. Both images are of one table version.
///
/// # Errors
/// A value that no server can have stored; `out` is as it was then.
pub fn write_change(
    out: &mut String,
    before: Option<Row<'_>>,
    after: Option<Row<'_>>,
    options: TextOptions,
) -> Result<(), ValueError> {
    let Some(either) = after.or(before) else { return Ok(()) };
    let start = out.len();
    let written = match change(out, either.table(), before, after, options, Proof::Together) {
        Ok(false) => {
            out.truncate(start);
            change(out, either.table(), before, after, options, Proof::Each)
        }
        written => written,
    };
    if written.is_err() {
        out.truncate(start);
    }
    written.map(|_| ())
}

/// Gives whether all texts were found to be what they must be.
fn change(
    out: &mut String,
    table: &TableVersion,
    before: Option<Row<'_>>,
    after: Option<Row<'_>>,
    options: TextOptions,
    proof: Proof,
) -> Result<bool, ValueError> {
    let mut text = RowText::new(out, table, options, proof);
    let kind = match (before, after) {
        (None, _) => RowsKind::Insert,
        (Some(_), Some(_)) => RowsKind::Update,
        (Some(_), None) => RowsKind::Delete,
    };
    text.draft.push_str(table.json_head(kind, true));
    for (at, row) in [before, after].into_iter().flatten().enumerate() {
        text.draft.push_str(if at == 0 { "" } else { AFTER });
        row.visit(&mut text)?;
        text.end_object([b'}']);
    }
    text.draft.push(b'}');
    Ok(text.draft.is_whole())
}

/// Appends the line of a schema change with a GTID of its own:
///
/// `{"kind":"schema_change","gtid":"…","committed_at":"…","change":"create_table",
/// "tables":[{"schema":"…","table":"…"}],"rows":"unchanged","statement":"…"}`
pub fn write_schema_change(
    out: &mut String,
    gtid: Option<&Gtid>,
    committed_at: Option<SourceTime>,
    change: &SchemaChangeText<'_>,
) {
    out.push_str("{\"kind\":\"schema_change\"");
    head(out, gtid, committed_at);
    change.write(out);
    out.push_str("}\n");
}

/// Appends the line of a position: the set of all transactions that are processed.
///
/// `{"kind":"progress","gtid_set":"…"}`
pub fn write_progress(out: &mut String, processed: &GtidSet) {
    out.push_str("{\"kind\":\"progress\",\"gtid_set\":");
    plain(out, processed);
    out.push_str("}\n");
}

fn head(out: &mut String, gtid: Option<&Gtid>, committed_at: Option<SourceTime>) {
    out.push_str(",\"gtid\":");
    match gtid {
        Some(gtid) => plain(out, gtid),
        None => out.push_str("null"),
    }
    out.push_str(",\"committed_at\":");
    match committed_at {
        Some(at) => {
            out.push('"');
            temporal::rfc3339(out, at);
            out.push('"');
        }
        None => out.push_str("null"),
    }
}

/// A GTID or a set of them: hexadecimal, tags and punctuation, nothing to escape.
fn plain(out: &mut String, value: impl Display) {
    out.push('"');
    // Writing into a string does not fail.
    let _ = write!(out, "{value}");
    out.push('"');
}

fn separate(out: &mut String, first: bool) {
    if !first {
        out.push(',');
    }
}
