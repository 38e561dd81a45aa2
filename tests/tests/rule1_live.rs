//! No row value, schema change's text, query text, XID or password is in any error, log, status, metric or
//! `Debug` output, whether a run succeeds or fails.
//!
//! Sentinels are planted in each of these places of a real server. All that is shown of every run is gathered and
//! searched; and for each sentinel something that must hold it (what was delivered, the server's log) is searched
//! the same way, so that a search that finds nothing is seen to be able to find.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test says what it expects by panicking"
)]

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use capstan::metrics::{Counter, Gauge, Histogram, Recorder};
use capstan::{
    Ack, Batch, Builder, Code, FailureClass, Item, Position, Sink, SinkError, SinkResultExt as _, Source,
    Start, Unit, Until,
};
use capstan_mysql::Server;
use capstan_tests::live::{Memory, hasty, replica_at, replica_of};

const TEXT: &str = "sentinelTEXT7f3a";
const BLOB: &str = "sentinelBLOB9c1d";
const JSON: &str = "sentinelJSON44e0";
const LABEL: &str = "sentinelLABEL2b6";
const DDL: &str = "sentinelDDL81aa";
const QUERY: &str = "sentinelQUERY5d02";
const XID: &str = "sentinelXID33fb";
const PASSWORD: &str = "sentinelPASSWORDe7";
const WRONG: &str = "sentinelWRONG0c9";
const CAUSE: &str = "sentinelCAUSE61d";
const NUMBER: &str = "771199337755";
const ALL: &[&str] = &[TEXT, BLOB, JSON, LABEL, DDL, QUERY, XID, PASSWORD, WRONG, CAUSE, NUMBER];

/// Everything that is shown, to whomever: logs at every level, errors, status, metrics, `Debug`.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Shown {
    fn add(&self, text: impl AsRef<str>) {
        let mut all = self.0.lock().unwrap();
        all.extend(text.as_ref().as_bytes());
        all.push(b'\n');
    }

    fn all(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl io::Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Recorder for Shown {
    fn count(&self, counter: Counter, by: u64) {
        self.add(format!("{} {by}", counter.as_str()));
    }

    fn gauge(&self, gauge: Gauge, value: f64) {
        self.add(format!("{} {value}", gauge.as_str()));
    }

    fn observe(&self, histogram: Histogram, value: f64) {
        self.add(format!("{} {value}", histogram.as_str()));
    }
}

/// The ways in which a value's bytes come to be shown: as they are, as hexadecimal digits, as base64, as the
/// numbers that a derived `Debug` prints.
fn forms(sentinel: &str) -> Vec<Vec<u8>> {
    let bytes = sentinel.as_bytes();
    let hex = |upper: bool| {
        let mut text = String::new();
        for byte in bytes {
            let _ = if upper { write!(text, "{byte:02X}") } else { write!(text, "{byte:02x}") };
        }
        text
    };
    let list = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    // Base64 of the same bytes has three shapes, by what stands before them; the inner characters are enough.
    let mut forms = vec![bytes.to_vec(), hex(true).into(), hex(false).into(), list.into()];
    for before in 0..3 {
        let text = base64(&[&b"___"[..before], bytes].concat());
        let (from, to) = ([0, 2, 3][before], text.len().saturating_sub(4));
        forms.push(text.as_bytes().get(from..to).unwrap().to_vec());
    }
    forms
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = 0_u32;
        for n in 0..3 {
            word = word << 8 | u32::from(chunk.get(n).copied().unwrap_or(0));
        }
        for n in 0..4 {
            text.push(char::from(DIGITS[(word >> (18 - 6 * n)) as usize & 63]));
        }
    }
    text
}

fn found(sentinel: &str, text: &[u8]) -> bool {
    forms(sentinel).iter().any(|form| text.windows(form.len()).any(|window| window == form.as_slice()))
}

/// A sink that shows all it is handed by `Debug`, and fails with an error that quotes a value.
struct Loud {
    memory: Memory,
    shown: Shown,
    fails: Fails,
}

#[derive(Clone, Copy, PartialEq)]
enum Fails {
    Never,
    /// With that class, then no more.
    Once(FailureClass),
    Always(FailureClass),
    /// When it is asked for its position.
    Position(FailureClass),
}

impl Loud {
    fn quote(&self, class: FailureClass, step: &'static str) -> SinkError {
        let cause = format!("duplicate entry '{CAUSE}' '{TEXT}'");
        let error = match class {
            FailureClass::Unknown => Err::<(), _>(cause).unknown(step),
            FailureClass::Transient => Err::<(), _>(cause).transient(step),
            _ => Err::<(), _>(cause).permanent(step),
        }
        .unwrap_err();
        self.shown.add(format!("{error} {error:?} {:?}", error.failure()));
        error
    }
}

impl Sink for Loud {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        if let Fails::Position(class) = self.fails {
            return Err(self.quote(class, "position"));
        }
        Ok(self.memory.lock().position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        // The first batch takes the target over and holds no rows: those are what a failure would quote.
        if self.memory.lock().position.is_some() {
            match self.fails {
                Fails::Always(class) => return Err(self.quote(class, "insert")),
                Fails::Once(class) => {
                    self.fails = Fails::Never;
                    return Err(self.quote(class, "insert"));
                }
                Fails::Never | Fails::Position(_) => {}
            }
        }
        self.shown.add(format!("{batch:?} {:?}", batch.expected()));
        while let Some(unit) = batch.next().await? {
            self.shown.add(format!("{unit:?} {unit:#?}"));
            match unit {
                Unit::Transaction(mut transaction) => {
                    while let Some(item) = transaction.next().await? {
                        self.shown.add(format!("{item:?} {item:#?}"));
                        let Item::Change(change) = item else { continue };
                        self.shown.add(format!("{:?} {:?}", change.op, change.table));
                        for row in [change.before, change.after].into_iter().flatten() {
                            for value in row.values() {
                                self.shown.add(format!("{value:?}"));
                            }
                        }
                    }
                }
                Unit::SchemaChange(change) => self.shown.add(format!("{change:?}")),
                Unit::SnapshotRows(rows) => rows.skip(),
                Unit::Progress(progress) => self.shown.add(format!("{progress:?}")),
            }
        }
        let ack = batch.finish()?;
        self.shown.add(format!("{ack:?} {:?} {}", ack.position(), ack.position().encode()));
        self.memory.lock().position = Some(ack.position().clone());
        Ok(ack)
    }
}

/// Runs it to its end; all it shows on the way is gathered. The halt's code, if it halts.
fn run(shown: &Shown, builder: Builder, memory: &Memory, fails: Fails) -> Option<Code> {
    let builder = builder.until(Until::Now).limits(hasty()).recorder(Arc::new(shown.clone()));
    shown.add(format!("{builder:?} {builder:#?}"));
    let replica = match builder.build() {
        Ok(replica) => replica,
        Err(halt) => {
            shown.add(format!("{halt} {halt:?}"));
            return Some(halt.code);
        }
    };
    shown.add(format!("{replica:?} {replica:#?}"));
    let handle = replica.handle();
    let sink = Loud { memory: memory.clone(), shown: shown.clone(), fails };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let end = runtime.block_on(async {
        tokio::time::timeout(std::time::Duration::from_secs(120), replica.run(sink)).await.expect("it hangs")
    });
    let status = handle.status();
    shown.add(format!("{handle:?} {status:?} {}", serde_json::to_string(&status).unwrap()));
    match end {
        Ok(stopped) => {
            shown.add(format!("{stopped:?}"));
            None
        }
        Err(halt) => {
            shown.add(format!("{halt} {halt:?} {halt:#?} {:?} {:?}", halt.detail, halt.place));
            Some(halt.code)
        }
    }
}

fn plant(server: &Server) {
    server.user("repl", PASSWORD, &["REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*"]).unwrap();
    // The account's own statement is in the log too, with a hash of the password.
    server.sql("RESET BINARY LOGS AND GTIDS; CREATE DATABASE d").unwrap();
    server
        .sql(&format!(
            "CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(99), b BLOB, j JSON, e ENUM('a', '{LABEL}'))
               COMMENT '{DDL}';
             INSERT INTO d.t VALUES ({NUMBER}, '{TEXT}', '{BLOB}', '{{\"{JSON}\": \"{JSON}\"}}', '{LABEL}');
             UPDATE d.t SET v = CONCAT(v, '{TEXT}');
             CREATE TABLE d.c COMMENT '{DDL}' AS SELECT * FROM d.t;
             XA START '{XID}1'; INSERT INTO d.t VALUES (2, '{TEXT}', NULL, NULL, NULL); XA END '{XID}1';
             XA COMMIT '{XID}1' ONE PHASE;
             ALTER TABLE d.t ADD COLUMN n VARCHAR(30) DEFAULT '{DDL}';
             DELETE FROM d.t WHERE id = {NUMBER}"
        ))
        .unwrap();
}

#[test]
fn nothing_that_is_shown_holds_a_value() {
    let shown = Shown::default();
    let logs = shown.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(move || logs.clone())
        .init();
    let server = Server::start().expect("a server");
    plant(&server);

    let delivered = Memory::new();
    let everything = replica_of(&server).start(Start::Earliest).limits(hasty()).until(Until::Now);
    capstan_tests::live::run(everything, delivered.clone()).unwrap();

    // All is well, with every kind of item; twice, so that a position is gone on from.
    let memory = Memory::new();
    let good = || replica_at(&server.url_for("repl", PASSWORD));
    assert_eq!(run(&shown, good().start(Start::Earliest), &memory, Fails::Never), None);
    assert_eq!(run(&shown, good(), &memory, Fails::Never), None);

    // Sinks whose errors quote what they could not take.
    use FailureClass::{Permanent, Transient, Unknown};
    for (fails, code) in [
        (Fails::Always(Permanent), Some(Code::SinkFailed)),
        (Fails::Always(Transient), Some(Code::SinkFailed)),
        (Fails::Always(Unknown), Some(Code::SinkFailed)),
        (Fails::Once(Transient), None),
        (Fails::Position(Permanent), Some(Code::PositionReadFailed)),
        (Fails::Position(Transient), Some(Code::PositionReadFailed)),
    ] {
        assert_eq!(run(&shown, good().start(Start::Earliest), &Memory::new(), fails), code);
    }

    // Halts by what a session wrote.
    for (code, write) in [
        (
            Code::StatementLoggedChange,
            format!("SET SESSION binlog_format = STATEMENT; INSERT INTO d.t (id, v) VALUES (3, '{QUERY}')"),
        ),
        (
            Code::PartialRowImage,
            format!("SET SESSION binlog_row_image = MINIMAL; UPDATE d.t SET v = '{TEXT}2' WHERE id = 2"),
        ),
        (
            Code::PartialRowImage,
            format!(
                "UPDATE d.c SET j = JSON_OBJECT('pad', REPEAT('x', 500), 'n', 1);
                 SET SESSION binlog_row_value_options = PARTIAL_JSON, SESSION binlog_row_image = MINIMAL;
                 UPDATE d.c SET j = JSON_SET(j, '$.n', '{JSON}')"
            ),
        ),
        (
            Code::ColumnNamesMissing,
            format!(
                "SET GLOBAL binlog_row_metadata = MINIMAL; INSERT INTO d.t (id, v) VALUES (4, '{TEXT}');
                 SET GLOBAL binlog_row_metadata = FULL"
            ),
        ),
        (
            Code::XaTransaction,
            format!(
                "XA START '{XID}2'; INSERT INTO d.t (id, v) VALUES (5, '{TEXT}'); XA END '{XID}2'; XA PREPARE '{XID}2'"
            ),
        ),
        (Code::XaPrepareNotSeen, format!("XA COMMIT '{XID}2'")),
    ] {
        // Each from where the one before it ended.
        let from = Memory::new();
        assert_eq!(run(&shown, good().start(Start::Current), &from, Fails::Never), None);
        server.sql(&write).unwrap();
        assert_eq!(run(&shown, good(), &from, Fails::Never), Some(code), "{write}");
    }

    // Logins that fail, and settings that are refused.
    let plain = format!("mysql://repl:{PASSWORD}@127.0.0.1:{}/?ssl-mode=disabled", server.port());
    server.sql("FLUSH PRIVILEGES").unwrap();
    for (url, code) in [
        (server.url_for("repl", WRONG), Code::AccessDenied),
        (format!("mysql://repl:{WRONG}@127.0.0.1:{}/?ssl-mode=required", server.port()), Code::AccessDenied),
        (plain.clone(), Code::ServerKeyNotTrusted),
        (format!("mysql://repl:{PASSWORD}@127.0.0.1:1/?ssl-mode=disabled"), Code::SourceUnreachable),
    ] {
        assert_eq!(
            run(&shown, replica_at(&url).start(Start::Current), &Memory::new(), Fails::Never),
            Some(code)
        );
    }
    for bad in [
        format!("mysql://repl:{PASSWORD}#@h/"),
        format!("mysql://repl:{PASSWORD}@x@h/"),
        format!("mysql://repl:{PASSWORD}%@h/"),
        format!("mysql://repl:{PASSWORD}@h:x/"),
        format!("repl:{PASSWORD}@h"),
        format!("mysql://repl:{PASSWORD}@h/?ssl-mode=none"),
    ] {
        let halt = bad.parse::<Source>().expect_err("no URL");
        shown.add(format!("{halt} {halt:?}"));
    }
    let source: Source = plain.parse().unwrap();
    shown.add(format!("{source} {source:?} {source:#?} {:?}", source.login()));
    let (end, until) = (replica_of(&server).server_id(0), Memory::new());
    assert_eq!(run(&shown, end, &until, Fails::Never), Some(Code::ConfigInvalid));

    // That something was shown at all, by each that shows.
    let all = shown.all();
    for part in [
        "DEBUG",
        "capstan_bytes_total",
        "statement_logged_change",
        "access_denied",
        "\"state\":",
        "Halt(",
        "Row(",
        "halted",
        "SinkError(",
    ] {
        assert!(all.windows(part.len()).any(|window| window == part.as_bytes()), "{part} was not shown");
    }
    // And of that, nothing.
    for sentinel in ALL {
        if let Some(form) =
            forms(sentinel).iter().find(|form| all.windows(form.len()).any(|w| w == form.as_slice()))
        {
            let at = all.windows(form.len()).position(|window| window == form.as_slice()).unwrap();
            let near = &all[at.saturating_sub(300)..all.len().min(at + 100)];
            panic!("{sentinel} is shown: {}", String::from_utf8_lossy(near));
        }
    }
    controls(&server, &delivered, &plain);
}

/// Every sentinel is where it was planted, and is found there by the same search.
fn controls(server: &Server, delivered: &Memory, url: &str) {
    let delivered = delivered.items().join("\n");
    for sentinel in [TEXT, BLOB, JSON, LABEL, DDL, NUMBER] {
        assert!(found(sentinel, delivered.as_bytes()), "{sentinel} was never delivered");
    }
    let mut log = Vec::new();
    for path in server.binlogs().unwrap() {
        log.extend(std::fs::read(path).unwrap());
    }
    for sentinel in [QUERY, XID] {
        assert!(found(sentinel, &log), "{sentinel} was never logged");
    }
    assert!(found(PASSWORD, url.as_bytes()));
    let cause = Err::<(), _>(CAUSE).permanent("insert").unwrap_err().into_inner().unwrap().to_string();
    assert!(found(CAUSE, cause.as_bytes()));
    assert!(found(WRONG, server.url_for("repl", WRONG).as_bytes()));
    // Each form is found, not only the plain one.
    for sentinel in ALL {
        let bytes = sentinel.as_bytes();
        for text in [
            format!("{bytes:?}"),
            base64(bytes),
            base64(&[b"x", bytes].concat()),
            base64(&[b"xy", bytes].concat()),
        ] {
            assert!(found(sentinel, text.as_bytes()), "{sentinel} as {text}");
        }
    }
}
