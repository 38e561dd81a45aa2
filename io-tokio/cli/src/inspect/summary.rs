//! Counts of a file.

use std::collections::BTreeMap;

use capstan::{
    Gtid, GtidSet,
    core::{
        binlog::{EventType, FormatDescription, rows::RowsKind},
        deliver::Event,
        sql::DdlKind,
        text::write_time,
        time::SourceTime,
    },
};
use serde_json::json;

use super::Unit;
use crate::{args::Output, shown};

/// Transactions that are named.
const LARGEST: usize = 5;

/// What a file holds.
#[derive(Default)]
pub struct Summary {
    /// As its format description says.
    pub server_version: Option<String>,
    bytes: u64,
    events: BTreeMap<String, u64>,
    transactions: u64,
    schema_changes: u64,
    /// Changes that were logged as statements, so that their rows are not counted.
    statements: u64,
    /// Of those, in which schema, as far as the log says.
    statements_in: BTreeMap<String, u64>,
    tables: BTreeMap<(String, String), Table>,
    largest: Vec<Large>,
    rows: u64,
    gtids: GtidSet,
    first: Option<SourceTime>,
    last: Option<SourceTime>,
}

#[derive(Default)]
struct Table {
    inserts: u64,
    updates: u64,
    deletes: u64,
    /// Of its row events, as they were written (decompressed).
    bytes: u64,
}

struct Large {
    gtid: Option<Gtid>,
    unit: Unit,
    rows: u64,
}

impl Summary {
    pub fn format(&mut self, body: &[u8]) {
        if let Ok(format) = FormatDescription::decode(body) {
            self.server_version = Some(format.server_version);
        }
    }

    pub fn event(&mut self, event: &capstan::core::binlog::Event) {
        if event.header.event_type == EventType::FormatDescription {
            self.format(&event.body);
        }
        self.bytes += u64::from(event.header.event_size);
        *self.events.entry(event.header.event_type.to_string()).or_default() += 1;
    }

    /// Counts an emitted event of a transaction that is looked at.
    pub fn unit(&mut self, event: &Event, unit: Unit) {
        match event {
            Event::TxBegin(begin) => {
                self.first = self.first.or(begin.committed_at);
                self.last = begin.committed_at.or(self.last);
                self.rows = 0;
                if begin.schema_change {
                    self.schema_changes += 1;
                } else {
                    self.transactions += 1;
                }
            }
            Event::Rows(rows) => {
                let name = (rows.table().schema().to_owned(), rows.table().table().to_owned());
                let table = self.tables.entry(name).or_default();
                let changes = rows.changes();
                table.bytes += rows.retained() as u64;
                self.rows += changes;
                *match rows.kind() {
                    RowsKind::Insert => &mut table.inserts,
                    RowsKind::Update | RowsKind::PartialUpdate => &mut table.updates,
                    RowsKind::Delete => &mut table.deletes,
                } += changes;
            }
            Event::TxCommit(commit) => {
                if let Some(gtid) = &commit.gtid {
                    self.gtids.add(gtid);
                }
                self.keep(Large { gtid: commit.gtid, unit, rows: self.rows });
            }
            Event::SchemaChange(change) if change.kind == DdlKind::StatementLogged => {
                self.statements += 1;
                for (schema, _) in &change.tables {
                    *self.statements_in.entry(schema.clone()).or_default() += 1;
                }
            }
            Event::Table(_)
            | Event::SchemaChange(_)
            | Event::TxAbort { .. }
            | Event::Claim { .. }
            | Event::SnapshotRows(_)
            | Event::Progress { .. } => {}
        }
    }

    fn keep(&mut self, transaction: Large) {
        let at = self.largest.partition_point(|other| other.unit.bytes >= transaction.unit.bytes);
        self.largest.insert(at, transaction);
        self.largest.truncate(LARGEST);
    }

    pub fn print(&self, name: &str, output: Output) {
        match output {
            Output::Json => self.print_json(name),
            Output::Text => self.print_text(name),
        }
    }

    fn print_json(&self, name: &str) {
        let tables: BTreeMap<String, serde_json::Value> = self
            .tables
            .iter()
            .map(|((schema, table), count)| {
                let counts = json!({
                    "inserts": count.inserts, "updates": count.updates, "deletes": count.deletes,
                    "bytes": count.bytes,
                });
                (format!("{schema}.{table}"), counts)
            })
            .collect();
        let largest: Vec<_> = self
            .largest
            .iter()
            .map(|large| {
                json!({
                    "gtid": large.gtid.map(|gtid| gtid.to_string()),
                    "offset": large.unit.offset, "bytes": large.unit.bytes, "rows": large.rows,
                })
            })
            .collect();
        say!(
            "{}",
            json!({
                "file": name,
                "server_version": self.server_version,
                "bytes": self.bytes,
                "events": self.events,
                "transactions": self.transactions,
                "schema_changes": self.schema_changes,
                "statement_changes": self.statements,
                "statement_changes_in": self.statements_in,
                "tables": tables,
                "largest": largest,
                "gtid_set": self.gtids.to_string(),
                "first_commit": time(self.first),
                "last_commit": time(self.last),
            })
        );
    }

    fn print_text(&self, name: &str) {
        let at = |time: Option<String>| time.unwrap_or_else(|| "-".to_owned());
        say!("{name}");
        say!("  written by      {}", shown::name(self.server_version.as_deref().unwrap_or("unknown")));
        say!("  event bytes     {}", self.bytes);
        say!("  transactions    {}", self.transactions);
        say!("  schema changes  {}", self.schema_changes);
        say!("  GTID set        {}", self.gtids);
        say!("  commits         {} to {}", at(time(self.first)), at(time(self.last)));
        if !self.events.is_empty() {
            say!("\n  {:>10}  event", "count");
        }
        for (name, count) in &self.events {
            say!("  {count:>10}  {name}");
        }
        if !self.tables.is_empty() {
            say!("\n  {:>10} {:>10} {:>10} {:>12}  table", "inserts", "updates", "deletes", "bytes");
        }
        for ((schema, table), Table { inserts, updates, deletes, bytes }) in &self.tables {
            let name = shown::name(&format!("{schema}.{table}"));
            say!("  {inserts:>10} {updates:>10} {deletes:>10} {bytes:>12}  {name}");
        }
        if self.statements != 0 {
            // Their rows are in no count above.
            say!("\n  {:>10}  changes logged as statements, whose rows are not in the log", self.statements);
        }
        for (schema, count) in &self.statements_in {
            say!("  {count:>10}  in {}", shown::name(schema));
        }
        if !self.largest.is_empty() {
            say!("\n  {:>12} {:>10} {:>12}  largest transactions", "bytes", "rows", "offset");
        }
        for Large { gtid, unit, rows } in &self.largest {
            let gtid = gtid.map_or_else(|| "no GTID".to_owned(), |gtid| gtid.to_string());
            say!("  {:>12} {rows:>10} {:>12}  {gtid}", unit.bytes, unit.offset);
        }
    }
}

fn time(at: Option<SourceTime>) -> Option<String> {
    at.map(|at| {
        let mut text = String::new();
        write_time(&mut text, at);
        text
    })
}
