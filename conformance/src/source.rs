//! Transactions as a server would log them, read by the core.

use std::collections::BTreeMap;

use bytes::BytesMut;
use capstan_core::{
    assemble::{Assembler, Setup},
    binlog::FileReader,
    capture::CapturedSet,
    deliver::{Event, Op, Position, Seq},
    gtid::Gtid,
};
use capstan_fake_source::{
    Group,
    event::{Body, Column, FormatDescription, GtidHead, RowChange, Table, Value},
    group::End,
};

use crate::target::Applied;

/// The untagged source of most transactions.
pub(crate) const SOURCE: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";

/// `binlog` magic.
const MAGIC: [u8; 4] = *b"\xfebin";
const STARTED_AT: u32 = 1_790_000_000;
const SERVER_ID: u32 = 1;
const ROW_EVENT_MAX: usize = 1 << 20;
/// Above every transaction of the kit, so that it is handed over whole.
const WHOLE: usize = 64 << 20;

/// One change of a row whose key alone matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    op: Op,
    table: &'static str,
    key: i64,
}

pub(crate) const fn insert(table: &'static str, key: i64) -> Step {
    Step { op: Op::Insert, table, key }
}

pub(crate) const fn update(table: &'static str, key: i64) -> Step {
    Step { op: Op::Update, table, key }
}

pub(crate) const fn delete(table: &'static str, key: i64) -> Step {
    Step { op: Op::Delete, table, key }
}

/// What a storage holds once these took effect.
pub(crate) fn applied(steps: &[Step]) -> Vec<Applied> {
    steps
        .iter()
        .map(|step| Applied::new(step.op, format!("shop.{}", step.table), step.key.to_string()))
        .collect()
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
        let bodies = Group::changes(&[(table, vec![RowChange::Insert(row)])], &End::Xid);
        Self { gtid: parse(&format!("{SOURCE}:{gno}")), bodies }
    }

    fn ending(gtid: &str, steps: &[Step], end: &End) -> Self {
        let tables: BTreeMap<&str, Table> = steps
            .iter()
            .map(|step| step.table)
            .zip(100..)
            .map(|(name, id)| (name, table(id, name)))
            .collect();
        let mut statements: Vec<(&Table, Vec<RowChange>)> = Vec::new();
        let mut before: Option<&Step> = None;
        for step in steps {
            let Some(table) = tables.get(step.table) else { continue };
            let same = before.is_some_and(|before| before.op == step.op && before.table == step.table);
            match statements.last_mut() {
                Some((_, changes)) if same => changes.push(change(step)),
                _ => statements.push((table, vec![change(step)])),
            }
            before = Some(step);
        }
        Self { gtid: parse(gtid), bodies: Group::changes(&statements, end) }
    }
}

fn parse(gtid: &str) -> Result<Gtid, String> {
    gtid.parse().map_err(|_| format!("the kit's own GTID {gtid} is none"))
}

fn table(id: u64, name: &str) -> Table {
    Table::new(id, "shop", name, vec![Column::bigint("id").not_null(), Column::varchar("note", 400)])
}

fn change(step: &Step) -> RowChange {
    let row = |note: &str| vec![Value::Int(step.key), Value::Bytes(note.as_bytes().to_vec())];
    match step.op {
        Op::Insert => RowChange::Insert(row("new")),
        Op::Update => RowChange::Update(row("new"), row("changed")),
        Op::Delete => RowChange::Delete(row("changed")),
    }
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

fn read(bytes: &[u8], comes: Comes, position: &Position, next: &mut Seq) -> Result<Vec<Event>, String> {
    let captured = CapturedSet::parse(&["shop.*"], &[], &[]).map_err(|e| e.to_string())?;
    let mut reader = FileReader::new(ROW_EVENT_MAX);
    reader.feed(bytes);
    let mut assembler = Assembler::new(Setup {
        captured,
        lower_case_table_names: 0,
        position: position.clone(),
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
