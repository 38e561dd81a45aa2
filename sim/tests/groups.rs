//! Groups of the log, event by event, and what is made of them: what no server writes in a test, and what one may
//! write in a year.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use capstan_core::{
    assemble::{Assembler, Setup},
    capture::CapturedSet,
    deliver::{Event as Delivered, LastTransaction, Position, Seq},
    gtid::{Gtid, GtidSet, Tag, Uuid},
    halt::{Code, Detail, Halt},
    link::Payload,
    probe::Mutant,
    time::{Now, SourceTime},
};
use capstan_fake_source::event::{
    ARTIFICIAL, Body, Column, Event, FormatDescription, GtidHead, IGNORABLE, Query, RowChange, Rows, Table,
    Value, status,
};
use sim::marks::{Mistake, Watched, making};

const SOURCE: Uuid = Uuid([1; 16]);
/// Bytes of a row beside its data: NULL bits, `id`, and the length of `data`.
const FRAME: usize = 13;
/// Above this a transaction is emitted while it is read.
const STREAM_ABOVE: usize = 4_000;
const ROW_EVENT_MAX: usize = 20_000;

fn setup() -> Setup {
    Setup {
        captured: CapturedSet::parse(&["shop.*"], &[], &[]).unwrap(),
        lower_case_table_names: 0,
        position: Position::new(GtidSet::new(), ""),
        verify: std::collections::BTreeMap::new(),
        until: None,
        checksum: false,
        stream_above: STREAM_ABOVE,
        row_event_max: ROW_EVENT_MAX,
        offline: false,
    }
}

fn gtid(n: u64) -> Gtid {
    Gtid::new(SOURCE, Tag::NONE, n).unwrap()
}

fn of(body: Body) -> Event {
    Event::of(1_795_000_000, 1, body)
}

/// The head of transaction `n`, which was committed at second `n`.
fn g(n: u64) -> Event {
    of(Body::Gtid(GtidHead::new(Some(gtid(n)), n * 1_000_000)))
}

fn q(text: &str) -> Event {
    of(Body::Query(Query::new("shop", text)))
}

/// A statement that wrote to these databases; `None`: it does not say.
fn wrote(text: &str, databases: Option<&[&str]>) -> Event {
    let query = Query::new("shop", text);
    of(Body::Query(match databases {
        Some(databases) => query.with(status::updated_databases(databases)),
        None => query,
    }))
}

fn table(schema: &str) -> Table {
    let columns = vec![Column::bigint("id").not_null(), Column::blob("data")];
    Table::new(if schema == "shop" { 100 } else { 101 }, schema, "t", columns)
}

fn map(schema: &str) -> Event {
    of(Body::TableMap(table(schema)))
}

/// One row of so many bytes.
fn row(schema: &str, bytes: usize, ends_statement: bool) -> Event {
    let row = RowChange::Insert(vec![Value::Int(1), Value::Bytes(vec![7; bytes])]);
    of(Body::Rows(Rows::of(&table(schema), &[row], ends_statement)))
}

/// A statement of one row.
fn insert(schema: &str, bytes: usize) -> [Event; 2] {
    [map(schema), row(schema, bytes, true)]
}

fn xid() -> Event {
    of(Body::Xid(7))
}

fn prepare(gtrid: &str, format_id: u32, one_phase: bool) -> Event {
    of(Body::XaPrepare { one_phase, format_id, gtrid: gtrid.into(), bqual: Vec::new() })
}

fn other(code: u8) -> Event {
    of(Body::Other { code, bytes: vec![0; 8] })
}

fn head(log_pos: u32) -> Event {
    let mut event = of(Body::FormatDescription(FormatDescription::of("9.7.4", 0, false)));
    event.log_pos = log_pos;
    event
}

fn rotate(position: u64) -> Event {
    of(Body::Rotate { position, file: b"bin.000002".to_vec() })
}

fn payload(events: &[Event]) -> Event {
    of(Body::payload(&events.iter().map(|event| event.encode(false)).collect::<Vec<_>>(), true))
}

/// The words of what is delivered.
fn word(event: &Delivered) -> String {
    match event {
        Delivered::TxBegin(begin) => {
            let kind = if begin.schema_change { "ddl" } else { "tx" };
            format!("{}:{kind}{}", begin.seq.0, if begin.streamed { "~" } else { "" })
        }
        Delivered::Table(table) => format!("map {}", table.schema()),
        Delivered::Rows(rows) => format!("row {}", rows.images().len() - FRAME),
        Delivered::SchemaChange(change) => format!("{:?}", change.kind),
        Delivered::TxCommit(commit) => {
            let passed = commit.passed.as_ref().map_or(0, |passed| passed.gtids.count());
            let passed = if passed > 0 { format!("+{passed}") } else { String::new() };
            format!("commit {}{passed}", commit.gtid.map_or(0, |gtid| gtid.gno()))
        }
        Delivered::TxAbort { comes_again, .. } => format!("abort {comes_again}"),
        Delivered::Progress { advance, .. } => format!("passed {}", advance.gtids.count()),
        Delivered::Claim { .. } | Delivered::SnapshotRows(_) => panic!("{event:?}"),
    }
}

/// An assembler that events are given to.
struct Stream {
    assembler: Assembler<Watched>,
    next: Seq,
    words: Vec<String>,
}

impl Stream {
    fn new(setup: Setup) -> Self {
        Self { assembler: Assembler::probed(setup), next: Seq(1), words: Vec::new() }
    }

    /// Gives one; `Ok(true)`: it was a sign of life.
    fn give(&mut self, event: &Event) -> Result<bool, Halt> {
        let bytes = event.encode(false);
        let retained = bytes.len();
        let mut done = if self.assembler.wants_pieces(&bytes[..27.min(retained)]) {
            self.in_pieces(&bytes)
        } else {
            self.assembler.event(Payload { bytes: bytes.into(), retained }, Now(0))
        };
        while done.is_ok() && self.assembler.is_inflating() {
            done = self.assembler.inflate(Now(0));
        }
        while let Some(event) = self.assembler.next_emitted(&mut self.next) {
            self.words.push(word(&event));
        }
        done
    }

    fn in_pieces(&mut self, bytes: &[u8]) -> Result<bool, Halt> {
        self.assembler.begin_pieces()?;
        for piece in bytes.chunks(100) {
            self.assembler.piece(piece)?;
            while self.assembler.is_inflating() {
                self.assembler.inflate(Now(0))?;
            }
        }
        self.assembler.end_pieces()
    }

    /// Gives all of them, and says what came of them.
    fn all(mut self, events: &[Event]) -> (String, Option<Code>) {
        let halt = events.iter().find_map(|event| self.give(event).err());
        if halt.is_none() {
            self.words.extend(self.assembler.take_progress(&mut self.next).iter().map(word));
        }
        (self.words.join(" "), halt.map(|halt| halt.code))
    }
}

fn flat(parts: &[&[Event]]) -> Vec<Event> {
    parts.concat()
}

#[test]
fn what_stands_where_it_cannot_halts() {
    let begun = [g(1), q("BEGIN")];
    let out = Code::EventOutOfPlace;
    let mut cases = vec![
        ("rows in no group", vec![row("shop", 9, true)], out),
        ("a table in no group", vec![map("shop")], out),
        ("a statement in no group", vec![q("BEGIN")], out),
        ("a schema change in no group", vec![q("DROP TABLE t")], out),
        ("a commit in no group", vec![xid()], out),
        ("COMMIT in no group", vec![q("COMMIT")], out),
        ("ROLLBACK in no group", vec![q("ROLLBACK")], out),
        ("XA PREPARE in no group", vec![prepare("x", 1, true)], out),
        ("XA COMMIT in no group", vec![q("XA COMMIT X'78',X'',1")], out),
        ("a payload in no group", vec![payload(&[xid()])], out),
        ("INTVAR in no group", vec![other(5)], out),
        ("a group in a group", vec![g(1), g(2)], out),
        ("a savepoint that nobody made", flat(&[&begun, &[q("ROLLBACK TO `s`")]]), out),
        ("XA PREPARE as text", vec![g(1), q("XA START X'78',X'',1"), q("XA PREPARE X'78',X'',1")], out),
        ("a second end", flat(&[&begun, &[xid(), xid()]]), out),
        ("more behind the end of a payload", vec![g(1), payload(&[q("BEGIN"), xid(), xid()])], out),
        ("a payload in a payload", vec![g(1), payload(&[payload(&[xid()])])], Code::PayloadMalformed),
        ("an anonymous group", vec![of(Body::Gtid(GtidHead::new(None, 5)))], Code::AnonymousTransaction),
        ("INCIDENT", vec![of(Body::Incident { number: 1, message: Vec::new() })], Code::Incident),
        (
            "a row event over the limit",
            flat(&[&begun, &insert("shop", ROW_EVENT_MAX)]),
            Code::RowEventTooLarge,
        ),
        ("rows without their table", flat(&[&begun, &[row("shop", 9, true)]]), Code::TableMapMissing),
    ];
    for event in [
        head(4),
        rotate(4),
        of(Body::PreviousGtids { set: GtidSet::new(), tagged: false }),
        of(Body::Heartbeat(b"bin.000001".to_vec())),
        of(Body::HeartbeatV2 { file: b"bin.000001".to_vec(), position: 4 }),
        g(2),
        of(Body::Gtid(GtidHead::new(Gtid::new(SOURCE, Tag::from_bytes(b"a").unwrap(), 1), 5))),
        of(Body::Gtid(GtidHead::new(None, 5))),
        other(3),
    ] {
        cases.push(("what speaks of the log, in a payload", vec![g(1), payload(&[q("BEGIN"), event])], out));
    }
    // Of times before row events, and of times to come.
    for code in [1, 6, 7, 8, 10, 12, 20, 21, 22, 77, 200] {
        cases.push(("an unknown type", flat(&[&begun, &[other(code)]]), Code::UnknownEventType));
    }
    for (name, events, want) in cases {
        let (words, halt) = Stream::new(setup()).all(&events);
        assert_eq!((words.as_str(), halt), ("", Some(want)), "{name}: {events:?}");
    }
    let mut stream = Stream::new(setup());
    let halt = stream.give(&other(77)).unwrap_err();
    assert_eq!(halt.detail.as_deref(), Some(&Detail::Number(77)));
}

#[test]
fn groups_come_out_as_units() {
    let begun = |n| [g(n), q("BEGIN")];
    let small = |n| flat(&[&begun(n), &insert("shop", 9), &[xid()]]);
    let noise = |n| flat(&[&begun(n), &insert("elsewhere", 9), &[xid()]]);
    let xa = |n, schema| {
        flat(&[
            &[g(n), q("XA START X'78',X'',1")],
            &insert(schema, 9),
            &[q("XA END X'78',X'',1"), prepare("x", 1, false)],
        ])
    };
    let xa_ends = |n, how: &str, format| [g(n), q(&format!("XA {how} X'78',X'',{format}"))];
    let mut wrong = Vec::new();
    for (name, events, want, halt) in [
        ("plain", small(1), "1:tx map shop row 9 commit 1", None),
        (
            "ended by COMMIT",
            flat(&[&begun(1), &insert("shop", 9), &[q("COMMIT")]]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        (
            "in a payload",
            vec![g(1), payload(&flat(&[&[q("BEGIN")], &insert("shop", 9), &[xid()]]))],
            "1:tx map shop row 9 commit 1",
            None,
        ),
        (
            "the same table twice is told once",
            flat(&[&small(1), &small(2)]),
            "1:tx map shop row 9 commit 1 2:tx row 9 commit 2",
            None,
        ),
        ("of another schema", noise(1), "passed 1", None),
        (
            "told with the next",
            flat(&[&noise(1), &noise(2), &small(3)]),
            "1:tx map shop row 9 commit 3+2",
            None,
        ),
        ("rolled back", flat(&[&begun(1), &insert("shop", 9), &[q("ROLLBACK")]]), "passed 1", None),
        ("a schema change", vec![g(1), q("DROP TABLE t")], "1:ddl DropTable commit 1", None),
        ("one elsewhere", vec![g(1), q("DROP TABLE elsewhere.t")], "passed 1", None),
        (
            "CREATE TABLE … SELECT",
            flat(&[
                &begun(1),
                &[q("CREATE TABLE `c` (`id` int) START TRANSACTION")],
                &insert("shop", 9),
                &[xid()],
            ]),
            "1:tx CreateTableSelect map shop row 9 commit 1",
            None,
        ),
        (
            "a schema change in a group, elsewhere",
            flat(&[&begun(1), &[wrote("DROP TABLE t", Some(&["elsewhere"])), xid()]]),
            "passed 1",
            None,
        ),
        (
            "a schema change in a group",
            flat(&[&begun(1), &[wrote("DROP TABLE t", Some(&["shop"]))]]),
            "",
            Some(Code::StatementLoggedChange),
        ),
        (
            "a temporary table in a group",
            flat(&[&begun(1), &[q("DROP TEMPORARY TABLE IF EXISTS `x`"), xid()]]),
            "passed 1",
            None,
        ),
        (
            "a statement",
            flat(&[&begun(1), &[wrote("INSERT INTO t VALUES (1)", Some(&["elsewhere", "shop"]))]]),
            "",
            Some(Code::StatementLoggedChange),
        ),
        (
            "one elsewhere",
            flat(&[&begun(1), &[wrote("INSERT INTO t VALUES (1)", Some(&["elsewhere"])), xid()]]),
            "passed 1",
            None,
        ),
        (
            "one of too many schemas",
            flat(&[&begun(1), &[wrote("INSERT INTO t VALUES (1)", Some(&[]))]]),
            "",
            Some(Code::StatementLoggedChange),
        ),
        (
            "one that does not say",
            flat(&[&begun(1), &[wrote("INSERT INTO t VALUES (1)", None)]]),
            "",
            Some(Code::StatementLoggedChange),
        ),
        (
            "pt-table-checksum",
            flat(&[
                &begun(1),
                &[
                    wrote("REPLACE INTO `percona`.`checksums` (db) SELECT 1", Some(&["percona", "shop"])),
                    xid(),
                ],
            ]),
            "passed 1",
            None,
        ),
        // Statements and their tables.
        (
            "rows of one statement in two events",
            flat(&[&begun(1), &[map("shop"), row("shop", 9, false), row("shop", 8, true), xid()]]),
            "1:tx map shop row 9 row 8 commit 1",
            None,
        ),
        (
            "no table outlives its statement",
            flat(&[&begun(1), &insert("shop", 9), &[row("shop", 9, true)]]),
            "",
            Some(Code::TableMapMissing),
        ),
        (
            "nor its group",
            flat(&[
                &begun(1),
                &[map("shop"), row("shop", 9, false), xid()],
                &begun(2),
                &[row("shop", 9, true)],
            ]),
            "1:tx map shop row 9 commit 1",
            Some(Code::TableMapMissing),
        ),
        (
            "nor a group that was rolled back",
            flat(&[
                &begun(1),
                &[map("shop"), row("shop", 9, false), q("ROLLBACK")],
                &begun(2),
                &[row("shop", 9, true)],
            ]),
            "",
            Some(Code::TableMapMissing),
        ),
        (
            "nor its file",
            flat(&[&begun(1), &[map("shop"), rotate(4), row("shop", 9, true)]]),
            "",
            Some(Code::TableMapMissing),
        ),
        (
            "nor its server",
            flat(&[&begun(1), &[map("shop"), head(0), row("shop", 9, true)]]),
            "",
            Some(Code::TableMapMissing),
        ),
        // The end of a file or of a server inside a group.
        (
            "a file ends inside a group",
            flat(&[&begun(1), &insert("shop", 9), &[rotate(4)], &insert("shop", 8), &[xid()]]),
            "1:tx map shop row 9 map shop row 8 commit 1",
            None,
        ),
        (
            "the head of a stream says nothing of a group",
            flat(&[&begun(1), &insert("shop", 9), &[head(0), head(126).flagged(ARTIFICIAL), xid()]]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        (
            "a server ends inside a group",
            flat(&[&begun(1), &insert("shop", 9), &[head(126)], &small(1)]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        (
            "a server ends inside a large group",
            flat(&[&begun(1), &insert("shop", 5_000), &[head(126)], &small(1)]),
            "1:tx~ map shop row 5000 abort true 2:tx map shop row 9 commit 1",
            None,
        ),
        // Above the limit.
        (
            "large",
            flat(&[&begun(1), &insert("shop", 5_000), &insert("shop", 9), &[xid()]]),
            "1:tx~ map shop row 5000 row 9 commit 1",
            None,
        ),
        (
            "large, rolled back",
            flat(&[&begun(1), &insert("shop", 5_000), &[q("ROLLBACK")], &small(2)]),
            "1:tx~ map shop row 5000 abort false 2:tx row 9 commit 2+1",
            None,
        ),
        (
            "large by many",
            flat(&[
                &begun(1),
                &insert("shop", 1_500),
                &insert("shop", 1_500),
                &insert("shop", 1_500),
                &[xid()],
            ]),
            "1:tx~ map shop row 1500 row 1500 row 1500 commit 1",
            None,
        ),
        ("large, and nobody's", flat(&[&begun(1), &insert("elsewhere", 5_000), &[xid()]]), "passed 1", None),
        // The same, passed by while it is read.
        (
            "its table does not outlive it",
            flat(&[&begun(1), &insert("elsewhere", 5_000), &[row("elsewhere", 9, true)]]),
            "",
            Some(Code::TableMapMissing),
        ),
        (
            "its statement goes on behind it",
            flat(&[
                &begun(1),
                &[map("elsewhere"), map("shop"), row("elsewhere", 5_000, false), row("elsewhere", 9, false)],
                &[row("shop", 9, true), xid()],
            ]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        // Savepoints.
        (
            "back, twice, in other letters",
            flat(&[
                &begun(1),
                &insert("shop", 1),
                &[q("SAVEPOINT `a`")],
                &insert("shop", 2),
                &[q("ROLLBACK TO `A`")],
                &insert("shop", 3),
                &[q("ROLLBACK TO `a`")],
                &insert("shop", 4),
                &[xid()],
            ]),
            "1:tx map shop row 1 row 4 commit 1",
            None,
        ),
        (
            "a name again is another savepoint",
            flat(&[
                &begun(1),
                &[q("SAVEPOINT `a`")],
                &insert("shop", 1),
                &[q("SAVEPOINT `a`")],
                &insert("shop", 2),
                &[q("ROLLBACK TO `a`"), xid()],
            ]),
            "1:tx map shop row 1 commit 1",
            None,
        ),
        (
            "all of it",
            flat(&[
                &begun(1),
                &[q("SAVEPOINT `a`")],
                &insert("shop", 1),
                &[q("SAVEPOINT `b`")],
                &insert("shop", 2),
                &[q("ROLLBACK TO `a`"), xid()],
            ]),
            "passed 1",
            None,
        ),
        (
            "those behind it are gone",
            flat(&[
                &begun(1),
                &[q("SAVEPOINT `a`")],
                &insert("shop", 1),
                &[q("SAVEPOINT `b`")],
                &insert("shop", 2),
                &[q("ROLLBACK TO `a`"), q("ROLLBACK TO `b`")],
            ]),
            "",
            Some(Code::EventOutOfPlace),
        ),
        (
            "released",
            flat(&[
                &begun(1),
                &insert("shop", 1),
                &[q("SAVEPOINT `a`"), q("SAVEPOINT `b`"), q("RELEASE SAVEPOINT `a`"), q("ROLLBACK TO `b`")],
            ]),
            "",
            Some(Code::EventOutOfPlace),
        ),
        (
            "released behind it",
            flat(&[
                &begun(1),
                &insert("shop", 1),
                &[q("SAVEPOINT `a`")],
                &insert("shop", 2),
                &[q("SAVEPOINT `b`"), q("RELEASE SAVEPOINT `B`"), q("ROLLBACK TO `a`"), xid()],
            ]),
            "1:tx map shop row 1 commit 1",
            None,
        ),
        (
            "what went back weighs nothing",
            flat(&[
                &begun(1),
                &[q("SAVEPOINT `a`")],
                &insert("shop", 2_500),
                &[q("ROLLBACK TO `a`")],
                &insert("shop", 2_500),
                &[xid()],
            ]),
            "1:tx row 2500 commit 1",
            None,
        ),
        (
            "what was emitted cannot go back",
            flat(&[&begun(1), &[q("SAVEPOINT `a`")], &insert("shop", 5_000), &[q("ROLLBACK TO `a`")]]),
            "1:tx~ map shop row 5000",
            Some(Code::EventOutOfPlace),
        ),
        (
            "nor to one that came later",
            flat(&[&begun(1), &insert("shop", 5_000), &[q("SAVEPOINT `a`"), q("ROLLBACK TO `a`")]]),
            "1:tx~ map shop row 5000",
            Some(Code::EventOutOfPlace),
        ),
        // XA.
        (
            "XA in one phase",
            flat(&[
                &[g(1), q("XA START X'78',X'',1")],
                &insert("shop", 9),
                &[q("XA END X'78',X'',1"), prepare("x", 1, true)],
            ]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        (
            "the same as text",
            flat(&[
                &[g(1), q("XA START X'78',X'',1")],
                &insert("shop", 9),
                &[q("XA END X'78',X'',1"), q("XA COMMIT X'78',X'',1 ONE PHASE")],
            ]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        ("XA in two phases", xa(1, "shop"), "", Some(Code::XaTransaction)),
        ("elsewhere, committed", flat(&[&xa(1, "elsewhere"), &xa_ends(2, "COMMIT", 1)]), "passed 2", None),
        (
            "elsewhere, rolled back",
            flat(&[&xa(1, "elsewhere"), &xa_ends(2, "ROLLBACK", 1)]),
            "passed 2",
            None,
        ),
        ("committed, and never prepared", xa_ends(1, "COMMIT", 1).to_vec(), "", Some(Code::XaPrepareNotSeen)),
        ("rolled back, and never prepared", xa_ends(1, "ROLLBACK", 1).to_vec(), "passed 1", None),
        (
            "another format is another XID",
            flat(&[&xa(1, "elsewhere"), &xa_ends(2, "COMMIT", 2)]),
            "",
            Some(Code::XaPrepareNotSeen),
        ),
        (
            "committed twice",
            flat(&[&xa(1, "elsewhere"), &xa_ends(2, "COMMIT", 1), &xa_ends(3, "COMMIT", 1)]),
            "",
            Some(Code::XaPrepareNotSeen),
        ),
        (
            "rolled back, then committed",
            flat(&[&xa(1, "elsewhere"), &xa_ends(2, "ROLLBACK", 1), &xa_ends(3, "COMMIT", 1)]),
            "",
            Some(Code::XaPrepareNotSeen),
        ),
        // What may be stepped over.
        (
            "an unknown type that may be ignored",
            flat(&[&begun(1), &insert("shop", 9), &[other(77).flagged(IGNORABLE), xid()]]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        (
            "rows as text, and the rest of a group",
            flat(&[
                &begun(1),
                &[other(28), other(29), other(13), other(14), other(5)],
                &insert("shop", 9),
                &[other(36), xid()],
            ]),
            "1:tx map shop row 9 commit 1",
            None,
        ),
        ("members of a group of servers", vec![g(1), q("BEGIN"), other(37), q("COMMIT")], "passed 1", None),
    ] {
        let (words, halted) = Stream::new(setup()).all(&events);
        if (words.as_str(), halted) != (want, halt) {
            wrong.push(format!("{name}: {words} {halted:?}, not {want} {halt:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whatever is in a transaction that was processed, it is read past, and nothing else is.
#[test]
fn what_was_processed_is_read_past() {
    let position = || Position::new("01010101-0101-0101-0101-010101010101:1".parse().unwrap(), "");
    let behind = flat(&[&[g(2), q("BEGIN")], &insert("shop", 9), &[xid()]]);
    let large = flat(&[&insert("shop", 5_000), &insert("shop", ROW_EVENT_MAX)]);
    for (name, events) in [
        ("rows", flat(&[&[g(1), q("BEGIN")], &large, &[xid()]])),
        ("rows without a table", vec![g(1), q("BEGIN"), row("shop", 9, true), xid()]),
        ("a table that cannot be read", vec![g(1), q("BEGIN"), other(19), xid()]),
        ("a payload", vec![g(1), payload(&[xid()])]),
        (
            "a payload that cannot be read",
            vec![g(1), of(Body::Payload { fields: Vec::new(), payload: vec![1] })],
        ),
        ("a statement", vec![g(1), q("BEGIN"), wrote("DELETE FROM t", None), xid()]),
        ("a schema change", vec![g(1), q("DROP TABLE t")]),
        ("one in a group", vec![g(1), q("BEGIN"), q("DROP TABLE t"), xid()]),
        ("a savepoint that nobody made", vec![g(1), q("BEGIN"), q("ROLLBACK TO `x`"), xid()]),
        ("one rolled back", flat(&[&[g(1), q("BEGIN")], &large, &[q("ROLLBACK")]])),
        ("XA, prepared", flat(&[&[g(1), q("XA START X'78',X'',1")], &large, &[prepare("x", 1, false)]])),
        ("XA, committed", vec![g(1), q("XA COMMIT X'78',X'',1")]),
        ("XA, rolled back", vec![g(1), q("XA ROLLBACK X'78',X'',1")]),
    ] {
        let one = || Stream::new(Setup { position: position(), ..setup() });
        let want = ("1:tx map shop row 9 commit 2".to_string(), None);
        assert_eq!(one().all(&flat(&[&events, &behind])), want, "{name}");
        // It is over, and nothing of it is told.
        assert_eq!(one().all(&events), (String::new(), None), "{name}");
    }
}

/// A transaction that comes once more must be the one that was processed, however it ends.
#[test]
fn a_transaction_that_comes_again_is_known_by_its_time() {
    let with = |at: u64| Setup {
        position: Position::new("01010101-0101-0101-0101-010101010101:1-2".parse().unwrap(), ""),
        verify: [(gtid(2).tsid(), LastTransaction { gtid: gtid(2), original_commit: SourceTime(at) })].into(),
        ..setup()
    };
    let begun = |n| [g(n), q("BEGIN")];
    for (name, events) in [
        ("committed", flat(&[&begun(2), &insert("shop", 9), &[xid()]])),
        ("rolled back", flat(&[&begun(2), &insert("shop", 9), &[q("ROLLBACK")]])),
        ("a schema change", vec![g(2), q("DROP TABLE t")]),
        ("a payload", vec![g(2), payload(&[xid()])]),
    ] {
        let mut stream = Stream::new(with(2_000_000));
        assert!(!stream.assembler.is_verified());
        // Another one of that source says nothing.
        flat(&[&begun(1), &[xid()]]).iter().for_each(|event| assert!(stream.give(event).unwrap()));
        assert!(!stream.assembler.is_verified());
        for event in &events {
            assert!(!stream.assembler.is_verified(), "{name}: before its end");
            assert_eq!(stream.give(event), Ok(true), "{name}");
        }
        assert!(stream.assembler.is_verified(), "{name}");
        assert_eq!(Stream::new(with(1_999_999)).all(&events).1, Some(Code::SourceHistoryChanged), "{name}");
        let mut stream = Stream::new(with(1_999_999));
        let halt = events.iter().find_map(|event| stream.give(event).err()).unwrap();
        assert_eq!(halt.place.unwrap().gtid, Some(gtid(2)), "{name}");
        // What a dying server left of it was never committed.
        let part = flat(&[&events[..events.len() - 1], &[head(126)]]);
        assert_eq!(Stream::new(with(1_999_999)).all(&part), (String::new(), None), "{name}");
    }
}

#[test]
fn a_goal_is_reached_when_all_of_it_has_come() {
    let set =
        |text: &str| text.replace('S', "01010101-0101-0101-0101-010101010101").parse::<GtidSet>().unwrap();
    let one = |n, end: Event| flat(&[&[g(n), q("BEGIN")], &insert("shop", 9), &[end]]);
    let mut stream = Stream::new(Setup {
        position: Position::new(set("S:1-2"), ""),
        until: Some(set("S:1-4:9")),
        ..setup()
    });
    for (events, reached) in [
        (one(1, xid()), false),
        (one(3, xid()), false),
        (one(5, xid()), false),
        (one(4, q("ROLLBACK")), false),
        (one(4, xid()), false),
        (flat(&[&[g(9), q("BEGIN")], &insert("elsewhere", 9), &[xid()]]), true),
        (one(10, xid()), true),
    ] {
        events.iter().for_each(|event| assert!(stream.give(event).unwrap()));
        assert_eq!(stream.assembler.is_reached(), reached, "{events:?}");
    }
    assert_eq!(stream.assembler.processed(), &set("S:1-5:9-10"));
    assert!(!Stream::new(setup()).assembler.is_reached(), "without a goal");
    let there = Setup { position: Position::new(set("S:1-9"), ""), until: Some(set("S:1-4:9")), ..setup() };
    assert!(Stream::new(there).assembler.is_reached());
}

/// Passed transactions are told by their number and age, but not inside one that is being emitted.
#[test]
fn passed_transactions_wait_to_be_told() {
    let mut stream = Stream::new(setup());
    assert_eq!((stream.assembler.passed_since(), stream.assembler.passed_count()), (None, 0));
    for n in 1..=3 {
        flat(&[&[g(n), q("BEGIN")], &insert("elsewhere", 9), &[xid()]]).iter().for_each(|event| {
            stream.give(event).unwrap();
        });
        assert_eq!((stream.assembler.passed_since(), stream.assembler.passed_count()), (Some(Now(0)), n));
    }
    flat(&[&[g(4), q("BEGIN")], &insert("shop", 5_000)]).iter().for_each(|event| {
        stream.give(event).unwrap();
    });
    assert_eq!((stream.assembler.passed_since(), stream.assembler.passed_count()), (None, 3));
    assert!(stream.assembler.take_progress(&mut stream.next).is_none());
    stream.give(&xid()).unwrap();
    assert_eq!((stream.assembler.passed_since(), stream.assembler.passed_count()), (None, 0));
    assert_eq!(stream.words.join(" "), "1:tx~ map shop row 5000 commit 4+3");
    assert!(stream.assembler.take_progress(&mut stream.next).is_none());
}

/// What a link that ends takes with it.
#[test]
fn a_link_that_ends_aborts_what_was_emitted() {
    for (events, want) in [
        (vec![], ""),
        (flat(&[&[g(1), q("BEGIN")], &insert("shop", 9)]), ""),
        (flat(&[&[g(1), q("BEGIN")], &insert("shop", 5_000)]), "1:tx~ map shop row 5000 abort true"),
        (flat(&[&[g(1), q("BEGIN")], &insert("shop", 5_000), &[xid()]]), "1:tx~ map shop row 5000 commit 1"),
    ] {
        let mut stream = Stream::new(setup());
        events.iter().for_each(|event| assert!(stream.give(event).unwrap()));
        let end = stream.assembler.abort();
        stream.words.extend(end.iter().map(word));
        assert_eq!(stream.words.join(" "), want);
        assert!(!stream.assembler.in_group() && stream.assembler.abort().is_none());
    }
}

/// Only what a living source sends is a sign of its life: the head of a file may come from one that refuses the next.
#[test]
fn what_is_a_sign_of_life() {
    let mut stream = Stream::new(setup());
    for (event, alive) in [
        (rotate(4).flagged(ARTIFICIAL), false),
        (head(0), false),
        (of(Body::PreviousGtids { set: GtidSet::new(), tagged: false }), false),
        (of(Body::Heartbeat(b"bin.000001".to_vec())), true),
        (of(Body::HeartbeatV2 { file: b"bin.000001".to_vec(), position: 4 }), true),
        (g(1), true),
        (q("BEGIN"), true),
        (map("shop"), true),
        (row("shop", 9, true), true),
        (xid(), true),
        (other(3), true),
        (g(2), true),
        (payload(&[q("BEGIN"), xid()]), true),
    ] {
        assert_eq!(stream.give(&event), Ok(alive), "{event:?}");
    }
}

/// Where an event is: 64 bits, though its header has 32 of them.
#[test]
fn places_are_whole() {
    const FOUR_GIB: u64 = 1 << 32;
    let mut stream = Stream::new(setup());
    let mut at = |mut event: Event, end: u64, want: u64| {
        event.log_pos = end as u32;
        stream.give(&event).unwrap();
        let size = event.encode(false).len() as u64;
        assert_eq!(stream.assembler.place().offset, Some(want), "{event:?} of {size} bytes");
        let gtid = stream.assembler.place().gtid;
        (gtid, stream.assembler.place().file.clone())
    };
    let size = |event: &Event| event.encode(false).len() as u64;
    let (gtid_event, begin, end) = (g(1), q("BEGIN"), xid());
    let (gtid_size, begin_size) = (size(&gtid_event), size(&begin));
    let from = FOUR_GIB - gtid_size - 5;
    at(rotate(from), 0, from);
    let (inside, file) = at(gtid_event, from + gtid_size, from);
    assert_eq!((inside, file.as_deref()), (Some(gtid(1)), Some("bin.000002")));
    // Over the edge of what a header can say.
    at(begin.clone(), from + gtid_size + begin_size, from + gtid_size);
    let here = from + gtid_size + begin_size;
    // What is made on the way is nowhere.
    at(other(29).flagged(ARTIFICIAL), 77, from + gtid_size);
    at(other(29), 0, from + gtid_size);
    let (inside, _) = at(end.clone(), here + size(&end), here);
    assert_eq!(inside, None, "the group is over");
    // A heartbeat of version 1 ends where the event before it did.
    let one = of(Body::Heartbeat(b"bin.000002".to_vec()));
    let now = here + size(&end);
    let last = now - size(&one);
    at(one, now, last);
    // A heartbeat stands for groups that the server has stepped over; one of what is behind says nothing.
    let beat = |position| of(Body::HeartbeatV2 { file: b"bin.000002".to_vec(), position });
    at(beat(here + FOUR_GIB), 0, last);
    at(beat(5), 0, last);
    at(g(2), here + FOUR_GIB + gtid_size, here + FOUR_GIB);
}

/// What is taken in pieces: what nobody wants and is large, inside a group, one at a time.
#[test]
fn what_is_taken_in_pieces() {
    let head = |event: &Event| event.encode(false)[..27].to_vec();
    let frame = row("elsewhere", 0, true).encode(false).len();
    let mut stream = Stream::new(setup());
    assert_eq!(stream.assembler.begin_pieces().unwrap_err().code, Code::EventOutOfPlace);
    [g(1), q("BEGIN"), map("elsewhere"), map("shop")].iter().for_each(|event| {
        stream.give(event).unwrap();
    });
    for (event, want) in [
        (row("elsewhere", STREAM_ABOVE - frame, true), false),
        (row("elsewhere", STREAM_ABOVE - frame + 1, true), true),
        (row("shop", STREAM_ABOVE - frame + 1, true), false),
    ] {
        assert_eq!(stream.assembler.wants_pieces(&head(&event)), want, "{} bytes", event.encode(false).len());
        assert!(!stream.assembler.wants_pieces(&head(&event)[..18]));
    }
    let mut stream = Stream::new(setup());
    stream.give(&g(1)).unwrap();
    let bytes = payload(&[q("BEGIN"), xid()]).encode(false);
    let retained = bytes.len();
    stream.assembler.event(Payload { bytes: bytes.into(), retained }, Now(0)).unwrap();
    assert!(stream.assembler.is_inflating());
    assert_eq!(stream.assembler.begin_pieces().unwrap_err().code, Code::EventOutOfPlace);
}

/// The commit time of the newest transaction that was passed, whoever it concerns.
#[test]
fn the_newest_commit_has_its_time() {
    let mut stream = Stream::new(setup());
    assert_eq!(stream.assembler.committed_at(), None);
    for (n, schema) in [(1, "shop"), (2, "elsewhere"), (3, "shop")] {
        let events = flat(&[&[g(n), q("BEGIN")], &insert(schema, 9)]);
        let before = stream.assembler.committed_at();
        for event in &events {
            stream.give(event).unwrap();
            assert_eq!(stream.assembler.committed_at(), before);
            assert!(stream.assembler.in_group());
        }
        stream.give(&xid()).unwrap();
        assert_eq!(stream.assembler.committed_at(), Some(SourceTime(n * 1_000_000)));
        assert!(!stream.assembler.in_group());
    }
}

/// What each of these tests is about, taken out of the core: it fails.
#[test]
fn every_guard_is_seen_to_be_gone() {
    for (mutant, test) in [
        (Mutant::PassIncident, what_stands_where_it_cannot_halts as fn()),
        (Mutant::PassAnonymous, what_stands_where_it_cannot_halts),
        (Mutant::SkipUnknown, what_stands_where_it_cannot_halts),
        (Mutant::KeepTableMaps, groups_come_out_as_units),
        (Mutant::KeepSavepointRows, groups_come_out_as_units),
        (Mutant::PassStatement, groups_come_out_as_units),
        (Mutant::PassXa, groups_come_out_as_units),
        (Mutant::NeverStream, groups_come_out_as_units),
        (Mutant::DeliverRolledBack, groups_come_out_as_units),
        (Mutant::ForgetFiltered, groups_come_out_as_units),
        (Mutant::KeepGroup, groups_come_out_as_units),
        (Mutant::DeliverAgain, what_was_processed_is_read_past),
        (Mutant::VerifyAtBegin, a_transaction_that_comes_again_is_known_by_its_time),
        (Mutant::DropAbort, a_link_that_ends_aborts_what_was_emitted),
        (Mutant::CommitPart, a_link_that_ends_aborts_what_was_emitted),
    ] {
        let _making = making(Mistake::Core(mutant));
        assert!(std::panic::catch_unwind(test).is_err(), "{} is not seen", mutant.name());
    }
}
