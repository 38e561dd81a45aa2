//! What a run is judged by: the server's own reading of its binlog, against what the target holds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use capstan::sqlite::{Ledger, LedgerOptions, Synchronous};
use capstan::{
    Ack, BlockingBatch, BlockingSink, Builder, GtidSet, Halt, Handle, Position, Replica, Sink, SinkError,
    Start, Status, Stopped,
};
use capstan_mysql::Server;
use serde_json::Value;

use crate::workload::quick_limits;

/// Text values longer than this are compared by their length and hash.
const SHOWN_MAX: usize = 40;

/// How long anything may take before a test is said to hang. Far above what it takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// One change, as `gtid op schema.table before -> after`.
pub type Entry = String;

/// Every change of the captured schema `d` in the server's binlog files, in their order, as the server's own
/// `mysqlbinlog` reads them. What a group with `ROLLBACK` at its end holds is left out.
pub fn truth(server: &Server) -> Vec<Entry> {
    let files = server.binlogs().unwrap();
    let mut arguments = vec!["-v".into(), "--base64-output=DECODE-ROWS".into()];
    arguments.extend(files.into_iter().map(|path| path.into_os_string()));
    let text = server.mysqlbinlog(&arguments).unwrap();
    let mut reader = BinlogText::default();
    for line in text.split(|byte| *byte == b'\n') {
        reader.line(&String::from_utf8_lossy(line));
    }
    reader.close_group();
    reader.entries
}

/// Reads what `mysqlbinlog -v` prints.
#[derive(Default)]
struct BinlogText {
    entries: Vec<Entry>,
    gtid: Option<String>,
    group: Vec<Entry>,
    op: String,
    before: Vec<String>,
    after: Vec<String>,
    in_after: bool,
}

impl BinlogText {
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("SET @@SESSION.GTID_NEXT= '") {
            self.close_group();
            let gtid = rest.split('\'').next().unwrap_or_default();
            self.gtid = (gtid != "AUTOMATIC").then(|| gtid.to_owned());
        } else if let Some(rest) = line.strip_prefix("### ") {
            self.row(rest);
        } else {
            self.close_row();
            if line == "ROLLBACK" || line.starts_with("ROLLBACK/*!*/") {
                self.group.clear();
            } else if ["CREATE TABLE d.", "DROP TABLE `d`."].iter().any(|text| line.starts_with(text)) {
                self.push("schema_change".to_owned());
            }
        }
    }

    fn row(&mut self, text: &str) {
        if let Some(column) = text.strip_prefix("  @") {
            let value = column.split_once('=').map_or("", |(_, value)| value);
            let value = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')).unwrap_or(value);
            let side = if self.in_after { &mut self.after } else { &mut self.before };
            side.push(if value == "NULL" { "null".to_owned() } else { short(value) });
        } else if text == "WHERE" {
            self.in_after = false;
        } else if text == "SET" {
            self.in_after = true;
        } else {
            self.close_row();
            let (op, table) = text.rsplit_once(' ').unwrap_or_default();
            let op = op.split(' ').next().unwrap_or_default().to_lowercase();
            if table.starts_with("`d`.") {
                self.op = format!("{op} {}", table.replace('`', ""));
            }
        }
    }

    fn close_row(&mut self) {
        let (before, after) = (std::mem::take(&mut self.before), std::mem::take(&mut self.after));
        let op = std::mem::take(&mut self.op);
        if !op.is_empty() {
            self.push(format!("{op} {} -> {}", before.join(","), after.join(",")));
        }
    }

    fn push(&mut self, what: String) {
        if let Some(gtid) = &self.gtid {
            self.group.push(format!("{gtid} {what}"));
        }
    }

    fn close_group(&mut self) {
        self.close_row();
        self.entries.append(&mut self.group);
    }
}

/// Every row of a ledger, by `seq`.
pub fn ledger(path: &Path) -> Vec<Entry> {
    let database = rusqlite::Connection::open(path).unwrap();
    let sql = r#"SELECT gtid, op, "schema", "table", before, after FROM capstan_ledger ORDER BY seq"#;
    let mut statement = database.prepare(sql).unwrap();
    let text = |row: &rusqlite::Row<'_>, i| row.get::<_, Option<String>>(i).unwrap().unwrap_or_default();
    let rows = statement.query_map([], |row| {
        let (gtid, op) = (text(row, 0), text(row, 1));
        Ok(match op.as_str() {
            "schema_change" => format!("{gtid} {op}"),
            _ => {
                let (before, after) = (image_text(&text(row, 4)), image_text(&text(row, 5)));
                format!("{gtid} {op} {}.{} {before} -> {after}", text(row, 2), text(row, 3))
            }
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Every change in JSON lines. A last line that a kill has cut is left out.
pub fn json_lines(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        let line: Value = serde_json::from_str(line).expect("a line that is whole is JSON");
        let gtid = line["gtid"].as_str().unwrap_or_default().to_owned();
        match line["kind"].as_str().unwrap() {
            "transaction" => {
                for change in line["changes"].as_array().unwrap() {
                    let name = |key: &str| change[key].as_str().unwrap().to_owned();
                    let (op, schema, table) = (name("op"), name("schema"), name("table"));
                    let (before, after) = (image(&change["before"]), image(&change["after"]));
                    entries.push(format!("{gtid} {op} {schema}.{table} {before} -> {after}"));
                }
            }
            "schema_change" => entries.push(format!("{gtid} schema_change")),
            "progress" => {}
            kind => panic!("a line of kind {kind}"),
        }
    }
    entries
}

/// A row image that was written as JSON, in the terms of an [`Entry`]; nothing where there is none.
pub fn image_text(text: &str) -> String {
    if text.is_empty() { String::new() } else { image(&serde_json::from_str(text).unwrap()) }
}

fn image(row: &Value) -> String {
    let Some(columns) = row.as_object() else { return String::new() };
    // The columns of the workload are named in alphabetical order.
    let mut columns: Vec<_> = columns.iter().collect();
    columns.sort_by_key(|(name, _)| name.as_str());
    let text = |value: &Value| match value {
        Value::String(text) => short(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    columns.into_iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join(",")
}

fn short(text: &str) -> String {
    if text.len() <= SHOWN_MAX {
        return text.to_owned();
    }
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    format!("{}..{}:{:x}", &text[..8], text.len(), hash.finish())
}

/// How what a target holds differs from the truth.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Changes that are missing.
    pub lost: Vec<Entry>,
    /// Changes that are there too often, or were never made.
    pub extra: Vec<Entry>,
    /// The first change that is not where it belongs, if all are there.
    pub out_of_place: Option<Entry>,
}

/// Compares, counting each change and keeping their order.
pub fn difference(truth: &[Entry], held: &[Entry]) -> Difference {
    let mut counts: HashMap<&Entry, i64> = HashMap::new();
    for entry in truth {
        *counts.entry(entry).or_default() += 1;
    }
    for entry in held {
        *counts.entry(entry).or_default() -= 1;
    }
    let of = |sign: i64| {
        let mut entries: Vec<Entry> = Vec::new();
        for (entry, count) in &counts {
            for _ in 0..(count * sign).max(0) {
                entries.push((*entry).clone());
            }
        }
        entries.sort();
        entries
    };
    let (lost, extra) = (of(1), of(-1));
    let out_of_place = truth.iter().zip(held).find(|(a, b)| a != b).map(|(_, held)| held.clone());
    let out_of_place = out_of_place.filter(|_| lost.is_empty() && extra.is_empty());
    Difference { lost, extra, out_of_place }
}

/// Fails unless both are the same changes in the same order.
pub fn assert_same(truth: &[Entry], held: &[Entry]) {
    assert!(!truth.is_empty(), "nothing was written: the comparison proves nothing");
    let Difference { lost, extra, out_of_place } = difference(truth, held);
    assert!(
        lost.is_empty() && extra.is_empty() && out_of_place.is_none(),
        "of {} changes {} lost, {} too many; first lost {:?}, first too many {:?}, out of place {:?}",
        truth.len(),
        lost.len(),
        extra.len(),
        lost.first(),
        extra.first(),
        out_of_place,
    );
}

/// A replica that runs on a thread of this process.
#[derive(Debug)]
pub struct Follower {
    handle: Handle,
    thread: JoinHandle<Result<Stopped, Halt>>,
}

impl Follower {
    /// Runs `builder` into a sink of its own thread.
    pub fn blocking(builder: Builder, sink: impl BlockingSink + 'static) -> Follower {
        Follower::start(builder, move |replica| Box::pin(replica.run_blocking(sink)))
    }

    /// Runs `builder` into an async sink.
    pub fn polled(builder: Builder, sink: impl Sink + 'static) -> Follower {
        Follower::start(builder, move |replica| Box::pin(replica.run(sink)))
    }

    fn start(builder: Builder, run: impl FnOnce(Replica) -> Run + Send + 'static) -> Follower {
        let replica = builder.build().unwrap();
        let handle = replica.handle();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let patient = tokio::time::timeout(PATIENCE, run(replica));
                patient.await.expect("the replica does not come to its end")
            })
        });
        Follower { handle, thread }
    }

    /// The way to steer it.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What it says of itself.
    pub fn status(&self) -> Status {
        self.handle.status()
    }

    /// Waits for what its status must come to.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Status) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(&self.status()) {
            let status = self.status();
            assert!(!self.thread.is_finished(), "it has ended before {what}: {:?}", status.trouble);
            assert!(Instant::now() < deadline, "never {what}: {status:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until everything the server has executed is durable.
    pub fn wait_for(&self, server: &Server) {
        let executed: GtidSet = server.gtid_executed().unwrap().parse().unwrap();
        self.wait_until("everything is durable", |status| {
            status.gtid_set.as_ref().is_some_and(|set| executed.is_subset(set))
        });
    }

    /// Drains it, and tells its last status with how it ended.
    pub fn drain(self) -> (Result<Stopped, Halt>, Status) {
        self.handle.drain();
        self.end()
    }

    /// Waits for its end.
    pub fn end(self) -> (Result<Stopped, Halt>, Status) {
        let end = self.thread.join().expect("the replica panicked");
        (end, self.handle.status())
    }
}

/// A replica at work.
type Run = Pin<Box<dyn Future<Output = Result<Stopped, Halt>>>>;

/// A replica of the source at `port`, into a target that is named `identity`, with quick limits.
pub fn replica_of(port: u16, identity: &str) -> Builder {
    let source = url_at(port).parse().unwrap();
    Replica::builder(source).identity(identity).tables(["d.*"]).limits(quick_limits()).start(Start::Earliest)
}

/// A ledger whose commits survive a crash of this process.
pub fn open_ledger(path: &Path) -> Ledger {
    let mut options = LedgerOptions::default();
    options.synchronous = Synchronous::Normal;
    Ledger::open(path, options).unwrap()
}

/// A sink that takes its time, so that work waits for it.
#[derive(Debug)]
pub struct Slow<S> {
    /// The sink.
    pub sink: S,
    /// How long it sleeps before each batch.
    pub slow: Duration,
}

impl<S: BlockingSink> BlockingSink for Slow<S> {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.sink.position()
    }

    fn apply(&mut self, batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        std::thread::sleep(self.slow);
        self.sink.apply(batch)
    }
}

/// The same server over TCP without TLS, at another port (a proxy's).
pub fn url_at(port: u16) -> String {
    format!("mysql://root@127.0.0.1:{port}/?ssl-mode=disabled")
}

/// A syncing process of its own.
#[derive(Debug)]
pub struct Syncing {
    child: Child,
}

/// How a syncing process ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it printed: its last status as JSON.
    pub stdout: String,
    /// What it said of its end.
    pub stderr: String,
}

impl Ended {
    /// Whether it was ended by SIGKILL.
    pub fn is_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// Whether it ended itself at that fault point.
    pub fn is_at(&self, point: &str) -> bool {
        self.is_killed() && self.stderr.contains(&format!("fault point {point}: SIGKILL"))
    }

    /// Fails unless it ended well.
    pub fn well(self) -> Ended {
        assert!(self.status.success(), "{:?}: {}", self.status, self.stderr);
        self
    }

    /// A number of its last status.
    pub fn number(&self, name: &str) -> u64 {
        let told = self.told();
        told["status"][name].as_u64().unwrap_or_else(|| panic!("no number {name} in {told}"))
    }

    /// The most memory it has held, in KiB.
    pub fn memory_peak_kb(&self) -> u64 {
        self.told()["memory_peak_kb"].as_u64().unwrap()
    }

    fn told(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl Syncing {
    /// Starts `program` with arguments, and with a fault point if one is named.
    pub fn start(program: &str, arguments: &[&str], fault: Option<(&str, u64)>) -> Syncing {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("CAPSTAN_FAULT");
        if let Some((point, count)) = fault {
            command.env("CAPSTAN_FAULT", format!("{point}:{count}"));
        }
        Syncing { child: command.spawn().unwrap() }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; `None` if it still runs after `patience`.
    pub fn wait(&mut self, patience: Duration) -> Option<Ended> {
        let deadline = Instant::now() + patience;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Some(self.end())
    }

    /// Waits for its end and fails if it does not come.
    pub fn finish(mut self) -> Ended {
        self.wait(PATIENCE).expect("the syncing process does not end")
    }

    /// SIGKILL.
    pub fn kill9(mut self) -> Ended {
        self.child.kill().unwrap();
        self.end()
    }

    fn end(&mut self) -> Ended {
        let status = self.child.wait().unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        // What it prints fits into a pipe.
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ended { status, stdout, stderr }
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &str) -> Vec<Entry> {
        names.split(' ').map(ToOwned::to_owned).collect()
    }

    #[test]
    fn one_planted_difference_is_found() {
        let truth = entries("a b c d");
        assert_eq!(difference(&truth, &truth), Difference::default());
        assert_eq!(difference(&truth, &entries("a b d")).lost, ["c"]);
        assert_eq!(difference(&truth, &entries("a b c c d")).extra, ["c"]);
        assert_eq!(difference(&truth, &entries("a c b d")).out_of_place.as_deref(), Some("c"));
    }

    #[test]
    fn what_mysqlbinlog_prints_reads_as_entries() {
        let mut reader = BinlogText::default();
        let text = "SET @@SESSION.GTID_NEXT= 'u:1'/*!*/;\n### UPDATE `d`.`w`\n### WHERE\n###   @1=1\n###   @2='x'\n\
                    ### SET\n###   @1=1\n###   @2=NULL\n### DELETE FROM `d`.`w`\n### WHERE\n###   @1=2\n# at 4\n\
                    COMMIT/*!*/;\nSET @@SESSION.GTID_NEXT= 'u:2'/*!*/;\n### INSERT INTO `d`.`w`\n### SET\n###   @1=3\n\
                    ROLLBACK\n/*!*/;\nSET @@SESSION.GTID_NEXT= 'AUTOMATIC' /* added by mysqlbinlog */ /*!*/;";
        for line in text.lines() {
            reader.line(line);
        }
        reader.close_group();
        assert_eq!(reader.entries, ["u:1 update d.w 1,x -> 1,null", "u:1 delete d.w 2 -> "]);
    }
}
