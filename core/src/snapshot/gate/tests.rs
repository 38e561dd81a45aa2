//! The gate against a modelled server whose log, GTID set and visible rows move at different moments, with cuts at any
//! of them, crashes, and other servers that log in another order. At every step the target must hold exactly the rows
//! that the position says it has, and at the end the table; every change must find what it changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    format, println,
    string::ToString,
    vec,
};

use bytes::Bytes;

use super::*;
use crate::probe::Quiet;
use crate::{
    binlog::rows::{ChangeRow, RowWalk, RowsHead},
    deliver::{Advance, Position},
    link::{Cells, ResultSet},
    snapshot::rows::{Describe, DescribeStep, RowEncoder},
    value::Value,
};

/// What may be done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A cut is taken that lacks what the stream has shown before it.
    TakeOldCut,
    /// What is dropped while a cut is being made is not looked for in it.
    ForgetDropped,
    /// Neither is what was dropped of a transaction that has not ended.
    ForgetOpenGroup,
    /// A chunk is delivered before the stream has come to its set.
    DeliverEarly,
    /// A cut is read on though a change that it lacks was dropped.
    KeepSpoiled,
    /// Rows that are not copied yet are delivered.
    PassUncovered,
    /// Rows that are copied are dropped.
    DropCovered,
    /// Of an update only the row as it was is judged.
    JudgeBefore,
    /// Half of a table that is copied as a whole is kept when its cut is lost.
    KeepHalfOfWhole,
    /// A change whose key the server has not compared yet is judged as if it lay behind the border.
    JudgeUnanswered,
}

const MISTAKES: [Mistake; 10] = [
    Mistake::TakeOldCut,
    Mistake::ForgetDropped,
    Mistake::ForgetOpenGroup,
    Mistake::DeliverEarly,
    Mistake::KeepSpoiled,
    Mistake::PassUncovered,
    Mistake::DropCovered,
    Mistake::JudgeBefore,
    Mistake::KeepHalfOfWhole,
    Mistake::JudgeUnanswered,
];

/// Mistakes in what is covered.
pub(super) fn bent(
    mistake: Option<Mistake>,
    rows: &RowsEvent,
    parts: Vec<RowsEvent>,
    dropped: bool,
) -> (Vec<RowsEvent>, bool) {
    match mistake {
        Some(Mistake::PassUncovered) => (vec![rows.clone()], false),
        Some(Mistake::DropCovered) => (Vec::new(), true),
        Some(Mistake::JudgeBefore) if rows.kind() == RowsKind::Update && dropped => {
            let deleted = parts.iter().any(|part| part.kind() == RowsKind::Delete);
            if deleted { (vec![rows.clone()], false) } else { (Vec::new(), true) }
        }
        Some(
            Mistake::JudgeBefore
            | Mistake::TakeOldCut
            | Mistake::ForgetDropped
            | Mistake::ForgetOpenGroup
            | Mistake::DeliverEarly
            | Mistake::KeepSpoiled
            | Mistake::KeepHalfOfWhole
            | Mistake::JudgeUnanswered,
        )
        | None => (parts, dropped),
    }
}

type Rows = BTreeMap<i32, i32>;
/// A changed row: as it was, as it is.
type Change = (Option<(i32, i32)>, Option<(i32, i32)>);

#[derive(Clone)]
struct Tx {
    gtid: Gtid,
    changes: Vec<Change>,
    /// Large: part of it is on its way before its end is read.
    streamed: bool,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// What the table is copied along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Along {
    /// A number.
    Number,
    /// Nothing: as a whole.
    Whole,
    /// A text whose letters may be small or large, of which the server alone knows that they are the same.
    Text,
}

const ALONG: [Along; 3] = [Along::Number, Along::Whole, Along::Text];

impl Along {
    /// The key of a row, as an image holds it: of text another one in each version of the row.
    fn key(self, id: i32, v: i32) -> Vec<u8> {
        match self {
            Self::Text => format!("{}{id:02}", if v % 2 == 0 { 'k' } else { 'K' }).into_bytes(),
            Self::Number | Self::Whole => id.to_le_bytes().to_vec(),
        }
    }

    fn id(self, key: &[u8]) -> i32 {
        match self {
            Self::Text => core::str::from_utf8(&key[1..]).unwrap().parse().unwrap(),
            Self::Number | Self::Whole => i32::from_le_bytes(key.try_into().unwrap()),
        }
    }
}

fn table(along: Along) -> (Arc<TableVersion>, Arc<CopyKey>) {
    let answer = |rows: &[&[&str]]| {
        let cell = |text: &&str| (*text != "-").then(|| Bytes::copy_from_slice(text.as_bytes()));
        ResultSet {
            rows: rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
            ..ResultSet::default()
        }
    };
    let mut describe = Describe::new("d", "t");
    for answer in [
        answer(&[&["BASE TABLE", "InnoDB"]]),
        answer(&[
            match along {
                Along::Number | Along::Whole => {
                    &["id", "1", "int", "int", "NO", "-", "10", "0", "-", "-", "-", "-", "-", "", "", ""]
                }
                Along::Text => &[
                    "id",
                    "1",
                    "varchar",
                    "varchar(8)",
                    "NO",
                    "32",
                    "-",
                    "-",
                    "-",
                    "utf8mb4",
                    "utf8mb4_0900_ai_ci",
                    "255",
                    "8",
                    "",
                    "",
                    "",
                ],
            },
            &["v", "2", "int", "int", "NO", "-", "10", "0", "-", "-", "-", "-", "-", "", "", ""],
        ]),
        answer(&[&["PRIMARY", "id", "-", "YES", "A"]]),
    ] {
        match describe.on_result(&answer).unwrap() {
            DescribeStep::More(next) => describe = next,
            DescribeStep::Done(done) => {
                let key = done.key().unwrap();
                return (Arc::new(done.version), Arc::new(key));
            }
        }
    }
    panic!("not described");
}

fn name() -> CopiedTable {
    ("d".into(), "t".into())
}

/// A row event of one change.
fn event(table: &Arc<TableVersion>, along: Along, change: Change) -> RowsEvent {
    let (code, bitmaps): (u8, &[u8]) = match change {
        (None, _) => (30, &[0xff]),
        (_, None) => (32, &[0xff]),
        _ => (31, &[0xff, 0xff]),
    };
    let mut body = vec![0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2];
    body.extend_from_slice(bitmaps);
    for (id, v) in [change.0, change.1].into_iter().flatten() {
        body.push(0);
        let key = along.key(id, v);
        if along == Along::Text {
            body.push(u8::try_from(key.len()).unwrap());
        }
        body.extend_from_slice(&key);
        body.extend_from_slice(&v.to_le_bytes());
    }
    let head = RowsHead::parse(code, &body).unwrap();
    RowsEvent::new(head, Arc::clone(table), body.into()).unwrap().validated().unwrap()
}

fn int(value: Value<'_>) -> i32 {
    if let Value::Text(text) = value {
        return Along::Text.id(text.as_bytes());
    }
    let Value::Int(n) = value else { panic!("{value:?}") };
    i32::try_from(n).unwrap()
}

fn apply(rows: &mut Rows, change: Change) -> Result<(), String> {
    if let Some((id, v)) = change.0
        && rows.remove(&id) != Some(v)
    {
        return Err(format!("{change:?} does not find its row"));
    }
    if let Some((id, v)) = change.1
        && rows.insert(id, v).is_some()
    {
        return Err(format!("{change:?} finds another row"));
    }
    Ok(())
}

fn changes(event: &RowsEvent) -> Vec<Change> {
    let (mut walk, mut out) = (RowWalk::default(), Vec::new());
    walk.start(event);
    let image = |row: Row<'_>| (int(row.get(0).unwrap()), int(row.get(1).unwrap()));
    while let Some(change) = walk.next(event).unwrap() {
        let change: ChangeRow<'_> = change;
        out.push((change.before().map(image), change.after().map(image)));
    }
    out
}

/// A cut as the copier holds it.
struct View {
    rows: Rows,
    gtid_set: GtidSet,
    good: bool,
}

/// The world: a server, the stream's place in its log, the gate, the copier, the target.
struct World {
    random: Random,
    version: Arc<TableVersion>,
    key: Arc<CopyKey>,
    along: Along,
    /// What the server is asked.
    question: Option<super::ask::Question>,
    mistake: Option<Mistake>,
    log: Vec<Tx>,
    pending: Vec<usize>,
    /// What this server has received and not begun, from here to the end: it holds no locks.
    backlog: Option<usize>,
    counted: GtidSet,
    current: Rows,
    visible: Rows,
    gno: u64,
    gate: Gate,
    processed: GtidSet,
    /// What is read next: a transaction and a change of it.
    at: usize,
    held: Option<(RowsEvent, Vec<RowsEvent>)>,
    inside: Option<(Vec<Change>, Vec<RowsEvent>)>,
    asked: bool,
    locked: bool,
    view: Option<View>,
    upto: Option<i32>,
    chunk: Option<(Rows, bool)>,
    read: usize,
    target: Rows,
    position: Position,
    told: BTreeMap<&'static str, u64>,
}

impl World {
    fn new(seed: u64, along: Along, mistake: Option<Mistake>) -> Self {
        let (version, key) = table(along);
        let position = Position::new(GtidSet::new(), "").with_copies([name()]);
        let mut world = Self {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            version,
            key,
            along,
            question: None,
            mistake,
            log: Vec::new(),
            pending: Vec::new(),
            backlog: None,
            counted: GtidSet::new(),
            current: Rows::new(),
            visible: Rows::new(),
            gno: 0,
            gate: Gate::new(position.copies()),
            processed: GtidSet::new(),
            at: 0,
            held: None,
            inside: None,
            asked: false,
            locked: false,
            view: None,
            upto: None,
            chunk: None,
            read: 0,
            target: Rows::new(),
            position,
            told: BTreeMap::new(),
        };
        world.gate.mistake = mistake;
        world
    }

    fn tell(&mut self, what: &'static str) {
        *self.told.entry(what).or_default() += 1;
    }

    // ---- the server --------------------------------------------------------------------------

    fn commit(&mut self) {
        if self.backlog.is_some() {
            return;
        }
        self.gno += 1;
        let gtid: Gtid = format!("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:{}", self.gno).parse().unwrap();
        let mut changes = Vec::new();
        if !self.locked && self.random.below(4) > 0 {
            for _ in 0..=self.random.below(3) {
                let id = i32::try_from(self.random.below(12)).unwrap();
                let other = i32::try_from(self.random.below(14)).unwrap();
                let v = i32::try_from(self.gno).unwrap();
                let was = self.current.get(&id).map(|v| (id, *v));
                let change = match (was, self.random.below(3)) {
                    (None, _) => (None, Some((id, v))),
                    (was, 0) => (was, None),
                    (was, 1) if !self.current.contains_key(&other) => (was, Some((other, v))),
                    (was, _) => (was, Some((id, v))),
                };
                apply(&mut self.current, change).unwrap();
                changes.push(change);
            }
        }
        self.pending.push(self.log.len());
        let streamed = self.random.below(4) == 0;
        self.log.push(Tx { gtid, changes, streamed });
    }

    /// A transaction is counted and seen; those of the table in order, for their locks see to it.
    fn complete(&mut self) {
        if let Some(next) = self.backlog {
            match self.log.get(next) {
                None => self.backlog = None,
                Some(tx) if self.locked && !tx.changes.is_empty() => {}
                Some(_) => {
                    self.pending.push(next);
                    self.backlog = Some(next + 1);
                }
            }
        }
        if self.pending.is_empty() {
            return;
        }
        let pick = usize::try_from(self.random.below(self.pending.len() as u64)).unwrap();
        let first = self.pending.iter().position(|index| !self.log[*index].changes.is_empty());
        let chosen =
            if self.log[self.pending[pick]].changes.is_empty() { pick } else { first.unwrap_or(pick) };
        let tx = self.log[self.pending.remove(chosen)].clone();
        for change in &tx.changes {
            apply(&mut self.visible, *change).unwrap();
        }
        self.counted.add(&tx.gtid);
    }

    // ---- the stream --------------------------------------------------------------------------

    /// Reads one row event, or one end of a transaction.
    fn stream(&mut self) -> Result<(), String> {
        if self.held.is_some() && self.gate.holds_back() {
            return Ok(());
        }
        let Some(tx) = self.log.get(self.at).cloned() else { return Ok(()) };
        if self.processed.contains(&tx.gtid) {
            self.at += 1;
            return Ok(());
        }
        let (mut left, mut passed) = match (self.held.take(), self.inside.take()) {
            (Some((rows, passed)), Some((left, _))) => return self.offer(&tx, rows, left, passed),
            (None, Some(inside)) => inside,
            _ => (tx.changes.clone(), Vec::new()),
        };
        if !left.is_empty() {
            let rows = event(&self.version, self.along, left.remove(0));
            return self.offer(&tx, rows, left, passed);
        }
        // Its end: a unit, or a step of the position.
        let mut advance = Advance { copies: self.gate.take_untold(), ..Advance::default() };
        advance.gtids.add(&tx.gtid);
        for rows in passed.drain(..) {
            for change in changes(&rows) {
                apply(&mut self.target, change)?;
            }
        }
        self.position.advance(&advance);
        self.processed.add(&tx.gtid);
        self.at += 1;
        self.check()
    }

    fn offer(
        &mut self,
        tx: &Tx,
        rows: RowsEvent,
        left: Vec<Change>,
        mut passed: Vec<RowsEvent>,
    ) -> Result<(), String> {
        // Rows of another table went before.
        let emitted = tx.streamed;
        match self.gate.judge::<Quiet>(rows, Some(&tx.gtid), emitted).map_err(|halt| format!("{halt:?}"))? {
            Judged::Pass(rows) => passed.push(rows),
            Judged::Parts(parts) => {
                if parts.is_empty() {
                    self.tell("dropped");
                }
                passed.extend(parts);
            }
            Judged::Wait(rows) => {
                self.tell(if self.gate.waits_for_chunk() { "waited" } else { "asked" });
                self.held = Some((rows, passed.clone()));
            }
        }
        self.inside = Some((left, passed));
        Ok(())
    }

    fn is_emitting(&self) -> bool {
        let tx = self.log.get(self.at);
        self.inside.is_some() && tx.is_some_and(|tx| tx.streamed)
    }

    // ---- the copier --------------------------------------------------------------------------

    fn copy(&mut self) -> Result<(), String> {
        if self.gate.is_done() {
            return Ok(());
        }
        if self.view.as_ref().is_some_and(|view| view.good) && !self.locked {
            return self.chunks();
        }
        if self.view.take().is_some() || !self.asked {
            self.chunk = None;
            self.gate.end_cut();
            self.gate.begin_cut(&name(), &self.processed);
            self.asked = true;
            return Ok(());
        }
        if !self.locked {
            // Granted when nothing of the table is on its way.
            self.locked = self.pending.iter().all(|index| self.log[*index].changes.is_empty());
            return Ok(());
        }
        if !self.gate.is_described() {
            let (key, print) = if self.is_whole() { (None, 0) } else { (Some(&self.key), 1) };
            self.gate.described(&self.version, key, print);
        }
        let good = self.gate.cut_is(&self.counted);
        self.view = Some(View { rows: self.visible.clone(), gtid_set: self.counted.clone(), good });
        self.locked = false;
        self.asked = false;
        self.read = 0;
        self.tell(if good { "cut" } else { "cut of no use" });
        Ok(())
    }

    fn chunks(&mut self) -> Result<(), String> {
        if !self.gate.is_cut_good() {
            self.tell("spoiled");
            self.view.as_mut().unwrap().good = false;
            return Ok(());
        }
        let copy = self.gate.copies()[&name()].clone();
        let Some((rows, last)) = self.chunk.clone() else {
            self.read_chunk(&copy);
            return Ok(());
        };
        let reached = self.gate.is_reached(&self.processed);
        if !reached && self.gate.waits_for_chunk() {
            self.view.as_mut().unwrap().good = false;
            return Ok(());
        }
        if !reached || self.is_emitting() {
            return Ok(());
        }
        self.chunk = None;
        if copy.chunks == 0 {
            self.target.clear();
        }
        let mut encoder = RowEncoder::new(Arc::clone(&self.version));
        for (id, v) in &rows {
            let id = match self.along {
                Along::Text => String::from_utf8(self.along.key(*id, *v)).unwrap(),
                Along::Number | Along::Whole => id.to_string(),
            };
            let v = v.to_string();
            let mut payload = vec![u8::try_from(id.len()).unwrap()];
            payload.extend_from_slice(id.as_bytes());
            payload.push(u8::try_from(v.len()).unwrap());
            payload.extend_from_slice(v.as_bytes());
            encoder.push(&mut Cells::new(&payload)).unwrap();
        }
        if let Some(rows) = encoder.take().unwrap() {
            for change in changes(&rows) {
                apply(&mut self.target, change)?;
            }
        }
        let along = self.along;
        let parts = |id: i32, v: i32| KeyParts([along.key(id, v).into_boxed_slice()].into());
        let mut next = TableCopy {
            state: CopyState::Copying,
            key: rows
                .iter()
                .next_back()
                .map(|(id, v)| parts(*id, *v))
                .or(copy.key)
                .filter(|_| !self.is_whole()),
            upto: self.upto.map(|id| parts(id, copy.rows as i32)).filter(|_| !self.is_whole()),
            key_columns: u64::from(!self.is_whole()),
            gtid_set: self.view.as_ref().unwrap().gtid_set.clone(),
            chunks: copy.chunks + 1,
            rows: 0,
            bytes: 0,
        };
        if last {
            next = next.done();
        }
        self.gate.delivered(&name(), next.clone());
        let mut advance = Advance { copies: self.gate.take_untold(), ..Advance::default() };
        advance.copies.insert(name(), next);
        self.position.advance(&advance);
        self.tell("chunk");
        self.check()
    }

    fn read_chunk(&mut self, copy: &TableCopy) {
        let view = self.view.as_ref().unwrap();
        let along = self.along;
        let id = |parts: &KeyParts| along.id(&parts.0[0]);
        if copy.state == CopyState::Waiting && self.read == 0 {
            self.upto = view.rows.keys().next_back().copied();
        } else if !self.is_whole() {
            self.upto = copy.upto.as_ref().map(id);
        }
        let rows = view.rows.iter().map(|(id, v)| (*id, *v));
        let (skip, limit) = (self.read, 1 + usize::try_from(self.random.below(4)).unwrap());
        let rows: Rows = if self.is_whole() {
            rows.skip(skip).take(limit).collect()
        } else {
            let (last, upto) = (copy.key.as_ref().map(id), self.upto);
            let wanted = rows
                .filter(|(id, _)| last.is_none_or(|last| *id > last) && upto.is_none_or(|upto| *id <= upto));
            wanted.take(limit).collect()
        };
        self.read += rows.len();
        let last = rows.len() < limit;
        self.chunk = Some((rows, last));
    }

    fn is_whole(&self) -> bool {
        self.along == Along::Whole
    }

    /// The server compares what it is asked, without regard to small and large letters.
    fn answer(&mut self) {
        let Some(question) = self.question.take() else {
            self.question = self.gate.question();
            return;
        };
        let texts: Vec<String> = question.sql.split("x'").skip(1).map(unhexed).collect();
        let cell = |pair: &[String]| {
            let [one, other] = pair else { panic!("{}", question.sql) };
            let order = one.to_lowercase().cmp(&other.to_lowercase());
            Some(Bytes::from((order as i8).to_string()))
        };
        let row = texts.chunks(2).map(cell).collect();
        let answer = ResultSet { rows: vec![row], ..ResultSet::default() };
        self.gate.answered(question, &answer).unwrap();
    }

    // ---- the process -------------------------------------------------------------------------

    /// It dies and comes back, perhaps to a server that logged in another order.
    fn crash(&mut self) {
        self.tell("crash");
        self.processed = self.position.gtid_set().clone();
        self.gate = Gate::new(self.position.copies());
        self.gate.mistake = self.mistake;
        (self.held, self.inside, self.view, self.chunk, self.upto) = (None, None, None, None, None);
        self.question = None;
        (self.asked, self.locked, self.at, self.read) = (false, false, 0, 0);
        if self.random.below(2) == 0 {
            self.tell("another order");
            while !self.pending.is_empty() || self.backlog.is_some() {
                self.complete();
            }
            for _ in 0..self.log.len() {
                let at = usize::try_from(self.random.below(self.log.len() as u64)).unwrap();
                let keys = |tx: &Tx| -> BTreeSet<i32> {
                    let images = tx.changes.iter().flat_map(|change| [change.0, change.1]);
                    images.flatten().map(|(id, _)| id).collect()
                };
                if at + 1 < self.log.len() && keys(&self.log[at]).is_disjoint(&keys(&self.log[at + 1])) {
                    self.log.swap(at, at + 1);
                }
            }
            if self.random.below(2) == 0 {
                self.tell("a server behind");
                let applied = usize::try_from(self.random.below(self.log.len() as u64 + 1)).unwrap();
                (self.visible, self.counted, self.backlog) = (Rows::new(), GtidSet::new(), Some(applied));
                for tx in self.log.iter().take(applied) {
                    for change in &tx.changes {
                        apply(&mut self.visible, *change).unwrap();
                    }
                    self.counted.add(&tx.gtid);
                }
            }
        }
    }

    /// The target holds the rows that the position says it has.
    fn check(&self) -> Result<(), String> {
        let mut rows = Rows::new();
        for tx in self.log.iter().filter(|tx| self.position.gtid_set().contains(&tx.gtid)) {
            for change in &tx.changes {
                apply(&mut rows, *change)?;
            }
        }
        let copy = &self.position.copies()[&name()];
        let id = |parts: &KeyParts| self.along.id(&parts.0[0]);
        let (last, upto) = (copy.key.as_ref().map(id), copy.upto.as_ref().map(id));
        let covered = |id: i32| match copy.state {
            CopyState::Done => true,
            CopyState::Waiting => false,
            CopyState::Copying => last.is_some_and(|last| id <= last) || upto.is_some_and(|upto| id > upto),
        };
        if copy.state == CopyState::Waiting || (copy.state == CopyState::Copying && last.is_none()) {
            // Void, or half of a whole.
            return Ok(());
        }
        rows.retain(|id, _| covered(*id));
        if rows == self.target { Ok(()) } else { Err(format!("{:?} where {rows:?} should be", self.target)) }
    }

    fn run(&mut self) -> Result<(), String> {
        for step in 0..400 {
            match self.random.below(14) {
                0..=1 if step < 300 => self.commit(),
                2..=4 => self.complete(),
                5..=7 => self.stream()?,
                8..=10 => self.copy()?,
                11..=12 => self.answer(),
                _ if self.random.below(40) == 0 => self.crash(),
                _ => {}
            }
        }
        for _ in 0..4000 {
            self.complete();
            self.stream()?;
            self.answer();
            self.copy()?;
            if self.gate.is_done() && self.at == self.log.len() {
                break;
            }
        }
        if !self.gate.is_done() {
            return Err(format!("not done: {:?}", self.told));
        }
        if self.target != self.current {
            return Err("the target is not the table".into());
        }
        Ok(())
    }
}

/// The text of a literal that begins here.
fn unhexed(part: &str) -> String {
    let digits = &part[..part.find('\'').unwrap()];
    let bytes = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

const SEEDS: u64 = 2_000;

#[test]
fn the_target_holds_what_the_position_says_wherever_the_cuts_lie() {
    let mut told: BTreeMap<&str, u64> = BTreeMap::new();
    for along in ALONG {
        for seed in 1..=SEEDS {
            let mut world = World::new(seed, along, None);
            if let Err(why) = world.run() {
                panic!("seed {seed}, along {along:?}: {why}");
            }
            for (what, count) in world.told {
                *told.entry(what).or_default() += count;
            }
        }
    }
    println!("{told:?}");
    for what in [
        "dropped",
        "waited",
        "asked",
        "cut",
        "cut of no use",
        "spoiled",
        "chunk",
        "crash",
        "another order",
        "a server behind",
    ] {
        assert!(told.contains_key(what), "{what} never happened: {told:?}");
    }
}

#[test]
fn every_mistake_of_the_gate_shows() {
    let mut unseen = Vec::new();
    for mistake in MISTAKES {
        let all = (1..=SEEDS).flat_map(|seed| ALONG.map(|along| (seed, along)));
        let shown = all.filter_map(|(seed, along)| {
            World::new(seed, along, Some(mistake)).run().err().map(|why| (seed, along, why))
        });
        match shown.into_iter().next() {
            Some((seed, along, why)) => println!("{mistake:?}: seed {seed}, along {along:?}: {why}"),
            None => unseen.push(mistake),
        }
    }
    assert_eq!(unseen, [], "seen by nobody");
}
