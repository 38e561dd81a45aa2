//! Transactions as a server would log them, read by the core.

use std::{collections::BTreeMap, sync::Arc};

use bytes::BytesMut;
use capstan_core::{
    assemble::{Assembler, Setup},
    binlog::{FileReader, rows::RowsEvent},
    capture::CapturedSet,
    deliver::{Advance, CopiedTable, CopyState, Event, Op, Position, Seq, SnapshotChunk, TableCopy},
    gtid::{Gtid, GtidSet},
};
use capstan_fake_source::{
    Group,
    event::{Body, Column, FormatDescription, GtidHead, Query, RowChange, Table, Value},
    group::End,
};

use crate::target::Applied;

/// The untagged source of most transactions.
pub(crate) const SOURCE: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";

/// The source of the tables' creations.
const CREATOR: &str = "dddddddd-dddd-dddd-dddd-dddddddddddd";

/// How every table of the kit comes to be, for targets that must see it.
const CREATIONS: &[&str] = &[
    "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(100) CHARACTER SET utf8mb4)",
    "CREATE TABLE `lines` (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(100) CHARACTER SET utf8mb4)",
    "CREATE TABLE heap (id BIGINT NOT NULL, note VARCHAR(100) CHARACTER SET utf8mb4)",
    "CREATE TABLE Orders (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(100) CHARACTER SET utf8mb4)",
    "CREATE TABLE store.orders (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(100) CHARACTER SET utf8mb4)",
    "CREATE TABLE `o\"r'd.ers` (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(100) CHARACTER SET utf8mb4)",
    "CREATE TABLE bites (id BIGINT NOT NULL PRIMARY KEY, largest BIGINT UNSIGNED, least BIGINT, tenth DOUBLE, \
     text VARCHAR(100) CHARACTER SET utf8mb4, empty VARCHAR(100) CHARACTER SET utf8mb4, \
     nothing VARCHAR(100) CHARACTER SET utf8mb4, bytes LONGBLOB, \
     size ENUM('small','large') CHARACTER SET utf8mb4)",
    "CREATE TABLE texts (id BIGINT NOT NULL PRIMARY KEY, text VARCHAR(100) CHARACTER SET utf8mb4, \
     quoted VARCHAR(100) CHARACTER SET utf8mb4)",
    "CREATE TABLE prices (id BIGINT NOT NULL PRIMARY KEY, price DECIMAL(38,10), zero DECIMAL(10,2))",
    "CREATE TABLE moments (id BIGINT NOT NULL PRIMARY KEY, day DATE, at DATETIME(6), span TIME)",
    "CREATE TABLE kinds (id BIGINT NOT NULL PRIMARY KEY, bits BIT(64), year YEAR, \
     choice SET('a','b','c') CHARACTER SET utf8mb4, size ENUM('small','large') CHARACTER SET utf8mb4, \
     stamp TIMESTAMP(6) NULL, fixed BINARY(4))",
    "CREATE TABLE documents (id BIGINT NOT NULL PRIMARY KEY, document JSON)",
    "CREATE TABLE volumes (id BIGINT NOT NULL PRIMARY KEY, text LONGTEXT CHARACTER SET utf8mb4, bytes LONGBLOB)",
];

/// The creations that a position does not hold.
pub(crate) fn creations(position: &Position) -> Vec<Tx> {
    let all =
        CREATIONS.iter().zip(1..).map(|(statement, n)| Tx::statement(&format!("{CREATOR}:{n}"), statement));
    let missing = |tx: &Tx| tx.gtid.as_ref().is_ok_and(|gtid| !position.gtid_set().contains(gtid));
    all.filter(missing).collect()
}

/// A set without the creations.
pub(crate) fn without_creations(set: &GtidSet) -> GtidSet {
    let all = format!("{CREATOR}:1-{}", CREATIONS.len()).parse();
    all.map_or_else(|_| set.clone(), |all| set.subtract(&all))
}

/// The table without a primary key.
pub(crate) const KEYLESS: &str = "heap";

/// `binlog` magic.
const MAGIC: [u8; 4] = *b"\xfebin";
const STARTED_AT: u32 = 1_790_000_000;
const SERVER_ID: u32 = 1;
const ROW_EVENT_MAX: usize = 4 << 20;
/// Above every transaction of the kit, so that it is handed over whole.
const WHOLE: usize = 64 << 20;

/// Long enough for a few rows to fill a row event.
pub(crate) const LONG: &str = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\
                               0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\
                               0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

/// One change of a row whose key and note alone matter, or a table that is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// `None`: the table is emptied.
    op: Option<Op>,
    schema: &'static str,
    table: &'static str,
    /// After the change; of a deleted row before it.
    key: i64,
    /// The key before an update.
    was: i64,
    /// The note after the change; of a deleted row before it.
    note: &'static str,
    /// The note before an update.
    old: &'static str,
}

const fn step(op: Option<Op>, table: &'static str, (was, key): (i64, i64), note: &'static str) -> Step {
    Step { op, schema: "shop", table, key, was, note, old: "new" }
}

pub(crate) const fn insert(table: &'static str, key: i64) -> Step {
    step(Some(Op::Insert), table, (key, key), "new")
}

pub(crate) const fn update(table: &'static str, key: i64) -> Step {
    step(Some(Op::Update), table, (key, key), "changed")
}

/// An update that changes the key.
pub(crate) const fn moved(table: &'static str, was: i64, key: i64) -> Step {
    step(Some(Op::Update), table, (was, key), "changed")
}

pub(crate) const fn delete(table: &'static str, key: i64) -> Step {
    step(Some(Op::Delete), table, (key, key), "changed")
}

/// What a TRUNCATE does. It is no row of a transaction.
pub(crate) const fn emptied(table: &'static str) -> Step {
    step(None, table, (0, 0), "")
}

impl Step {
    pub(crate) const fn noted(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// Of a row that was noted so before.
    pub(crate) const fn from(self, old: &'static str) -> Self {
        Self { old, ..self }
    }

    /// In another schema.
    pub(crate) const fn of(self, schema: &'static str) -> Self {
        Self { schema, ..self }
    }

    fn name(&self) -> String {
        format!("{}.{}", self.schema, self.table)
    }
}

/// The changes a storage of changes holds once these took effect.
pub(crate) fn applied(steps: &[Step]) -> Vec<Applied> {
    let change = |step: &Step| Some(Applied::new(step.op?, step.name(), step.key.to_string()));
    steps.iter().filter_map(change).collect()
}

/// The rows a storage of rows holds once these took effect.
pub(crate) fn present(steps: &[Step]) -> Vec<Applied> {
    let mut rows: Vec<(String, i64, &str)> = Vec::new();
    for step in steps {
        let here = |row: &(String, i64, &str)| row.0 == step.name() && row.1 == step.was;
        match step.op {
            None => rows.retain(|(table, ..)| *table != step.name()),
            Some(Op::Insert) => rows.push((step.name(), step.key, step.note)),
            Some(op @ (Op::Update | Op::Delete)) => {
                let Some(at) = rows.iter().position(here) else { continue };
                let after = (op == Op::Update).then(|| (step.name(), step.key, step.note));
                rows.splice(at..=at, after).for_each(drop);
            }
        }
    }
    rows.into_iter().map(|(table, key, note)| Applied::row(table, key.to_string(), note)).collect()
}

/// A transaction.
#[derive(Debug)]
pub(crate) struct Tx {
    gtid: Result<Gtid, String>,
    bodies: Vec<Body>,
}

impl Tx {
    /// Of the untagged source.
    pub(crate) fn new(gno: u64, steps: &[Step]) -> Self {
        Self::of(&format!("{SOURCE}:{gno}"), steps)
    }

    pub(crate) fn of(gtid: &str, steps: &[Step]) -> Self {
        Self::ending(gtid, steps, &End::Xid)
    }

    /// Ends in `ROLLBACK`: a statement touched a table that cannot roll back.
    pub(crate) fn rolled_back(gno: u64, steps: &[Step]) -> Self {
        Self::ending(&format!("{SOURCE}:{gno}"), steps, &End::Rollback)
    }

    /// Changes tables that are not captured.
    pub(crate) fn filtered(gno: u64) -> Self {
        let table = Table::new(90, "elsewhere", "noise", vec![Column::bigint("id").not_null()]);
        let bodies = Group::changes(&[(&table, vec![RowChange::Insert(vec![Value::Int(1)])])], &End::Xid);
        Self { gtid: parse(&format!("{SOURCE}:{gno}")), bodies }
    }

    /// Inserts one row into a table of its own.
    pub(crate) fn row(gno: u64, table: &Table, row: Vec<Value>) -> Self {
        Self::change(gno, table, RowChange::Insert(row))
    }

    /// Changes one row of a table of its own.
    pub(crate) fn change(gno: u64, table: &Table, change: RowChange) -> Self {
        let bodies = Group::changes(&[(table, vec![change])], &End::Xid);
        Self { gtid: parse(&format!("{SOURCE}:{gno}")), bodies }
    }

    /// `CREATE TABLE summary … SELECT`: these are its rows.
    pub(crate) fn created(gno: u64, rows: &[Step]) -> Self {
        let mut this = Self::new(gno, rows);
        let statement = "CREATE TABLE `summary` (`id` bigint NOT NULL, `note` varchar(100) CHARACTER SET utf8mb4, \
                         PRIMARY KEY (`id`)) START TRANSACTION";
        this.bodies.insert(1, Body::Query(Query::new("shop", statement)));
        this
    }

    /// A schema change with a GTID of its own.
    pub(crate) fn ddl(gno: u64, statement: &str) -> Self {
        Self::statement(&format!("{SOURCE}:{gno}"), statement)
    }

    fn statement(gtid: &str, statement: &str) -> Self {
        Self { gtid: parse(gtid), bodies: vec![Body::Query(Query::new("shop", statement))] }
    }

    fn ending(gtid: &str, steps: &[Step], end: &End) -> Self {
        let tables: BTreeMap<_, Table> = steps
            .iter()
            .map(|step| (step.schema, step.table))
            .zip(100..)
            .map(|((schema, name), id)| ((schema, name), table(id, schema, name)))
            .collect();
        let mut statements: Vec<(&Table, Vec<RowChange>)> = Vec::new();
        let mut before: Option<&Step> = None;
        for step in steps {
            let table = tables.get(&(step.schema, step.table));
            let (Some(table), Some(change)) = (table, change(step)) else { continue };
            let alike = |step: &Step| (step.op, step.schema, step.table);
            let same = before.is_some_and(|before| alike(before) == alike(step));
            match statements.last_mut() {
                Some((_, changes)) if same => changes.push(change),
                _ => statements.push((table, vec![change])),
            }
            before = Some(step);
        }
        Self { gtid: parse(gtid), bodies: Group::changes(&statements, end) }
    }
}

fn parse(gtid: &str) -> Result<Gtid, String> {
    gtid.parse().map_err(|_| format!("the kit's own GTID {gtid} is none"))
}

fn table(id: u64, schema: &str, name: &str) -> Table {
    let columns = vec![Column::bigint("id").not_null(), Column::varchar("note", 400)];
    let mut table = Table::new(id, schema, name, columns);
    if name == KEYLESS {
        table.primary_key.clear();
    }
    table
}

fn change(step: &Step) -> Option<RowChange> {
    let row = |key: i64, note: &str| vec![Value::Int(key), Value::Bytes(note.as_bytes().to_vec())];
    Some(match step.op? {
        Op::Insert => RowChange::Insert(row(step.key, step.note)),
        Op::Update => RowChange::Update(row(step.was, step.old), row(step.key, step.note)),
        Op::Delete => RowChange::Delete(row(step.key, step.note)),
    })
}

/// How far a transaction comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comes {
    /// All are complete before they are handed over.
    Whole,
    /// Handed over while it is read.
    Streamed,
    /// Streamed, and the link drops before its end.
    Cut,
    /// Streamed, and then nothing more.
    Stopped,
}

/// The core's events for transactions on one link that goes on from `position`.
pub(crate) fn events(
    transactions: Vec<Tx>,
    comes: Comes,
    position: &Position,
    next: &mut Seq,
) -> Result<Vec<Event>, String> {
    let mut bytes = BytesMut::from(&MAGIC[..]);
    let head = Body::FormatDescription(FormatDescription::of("9.7.4", STARTED_AT, true));
    bytes.extend_from_slice(&capstan_fake_source::event::Event::of(STARTED_AT, SERVER_ID, head).encode(true));
    for (n, tx) in (1..).zip(transactions) {
        let at = (u64::from(STARTED_AT) + n) * 1_000_000 + 123_456;
        let group = Group::new(GtidHead::new(Some(tx.gtid?), at), SERVER_ID, tx.bodies);
        // What ends the last transaction is its last event.
        let lost = usize::from(matches!(comes, Comes::Cut | Comes::Stopped));
        for index in 0..group.count() - lost {
            let start = bytes.len() as u64;
            if !group.write(index, start, true, &mut bytes) {
                return Err("the kit's own group has too few events".into());
            }
        }
    }
    read(&bytes, comes, position, next)
}

/// The table that is copied.
pub(crate) fn copied() -> CopiedTable {
    copy_of("orders")
}

/// A table that is copied.
pub(crate) fn copy_of(table: &str) -> CopiedTable {
    ("shop".into(), table.into())
}

/// The last row event of a transaction of its own, and the number of that transaction.
pub(crate) fn row_event(
    steps: &[Step],
    position: &Position,
    next: &mut Seq,
) -> Result<(Seq, RowsEvent), String> {
    let transaction = Tx::of("eeeeeeee-eeee-eeee-eeee-eeeeeeeeeeee:1", steps);
    let mut found = None;
    let mut seq = *next;
    for event in events(vec![transaction], Comes::Whole, position, next)? {
        match event {
            Event::Rows(event) => found = Some(event),
            Event::TxCommit(commit) => seq = commit.seq,
            Event::TxBegin(_)
            | Event::Table(_)
            | Event::SchemaChange(_)
            | Event::SnapshotRows(_)
            | Event::TxAbort { .. }
            | Event::Claim { .. }
            | Event::Progress { .. } => {}
        }
    }
    Ok((seq, found.ok_or("a transaction without rows")?))
}

/// A chunk of the copy of the table that these rows are of.
pub(crate) fn chunk(
    rows: &[Step],
    number: u64,
    last: bool,
    position: &Position,
    next: &mut Seq,
) -> Result<SnapshotChunk, String> {
    let none = [insert("orders", 0)];
    let (seq, event) = row_event(if rows.is_empty() { &none } else { rows }, position, next)?;
    let table = Arc::clone(event.table());
    let name = copy_of(table.table());
    let mut copy = position.copies().get(&name).cloned().unwrap_or_else(TableCopy::waiting);
    copy.state = CopyState::Copying;
    copy.gtid_set = position.gtid_set().clone();
    copy.chunks = number + 1;
    copy.rows += rows.len() as u64;
    let copy = if last { copy.done() } else { copy };
    Ok(SnapshotChunk {
        seq,
        table,
        rows: (!rows.is_empty()).then_some(event),
        number,
        gtid_set: position.gtid_set().clone(),
        last,
        advance: Box::new(Advance { copies: [(name, copy)].into(), ..Advance::default() }),
    })
}

fn read(bytes: &[u8], comes: Comes, position: &Position, next: &mut Seq) -> Result<Vec<Event>, String> {
    let captured = CapturedSet::parse(&["shop.*", "store.*"], &[], &[]).map_err(|e| e.to_string())?;
    let mut reader = FileReader::new(ROW_EVENT_MAX);
    reader.feed(bytes);
    let mut assembler = Assembler::new(Setup {
        captured,
        lower_case_table_names: 0,
        // What the stream may say of a table that is being copied, the rules decide.
        position: position.clone().without_copies(),
        verify: BTreeMap::new(),
        until: None,
        checksum: true,
        stream_above: if comes == Comes::Whole { WHOLE } else { 0 },
        row_event_max: ROW_EVENT_MAX,
        offline: false,
    });
    let mut out = Vec::new();
    while let Some((offset, event)) = reader.next_event().map_err(|e| e.to_string())? {
        assembler.file_event(event, "binlog.000001", offset).map_err(|halt| halt.to_string())?;
        while let Some(event) = assembler.next_emitted(next) {
            out.push(event);
        }
    }
    if comes == Comes::Cut {
        out.extend(assembler.abort());
    }
    out.extend(assembler.take_progress(next));
    Ok(out)
}
