//! Tables that are copied while they change: transactions that change them, what they hold as of a position, and what
//! the target has of them, row by row.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use capstan_core::gtid::{Gtid, GtidSet};
use capstan_fake_source::{
    Group,
    event::{Body, Column, Query, RowChange, Table, Value, status},
    group::End,
    server::{State, Write, Writes},
};

use crate::{
    choices::Choices,
    hash::{Hash, tag},
    workload::{CAPTURED, Shape},
};

/// Their names, in the order in which they are copied.
pub const NAMES: [&str; 2] = ["items", "parts"];

/// The number of a table of this name.
#[must_use]
pub fn number(schema: &str, name: &str) -> Option<usize> {
    NAMES.iter().position(|known| schema == CAPTURED && name == *known)
}

/// Bytes of a row of a large transaction: above `stream_above` together.
const LARGE: usize = 700;

/// What a schema change of such a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// Nothing about the rows.
    Comment,
    /// No row is left.
    Truncate,
    /// One more column, NULL in all rows.
    AddColumn,
    /// Rows are gone and nobody says which.
    DropPartition,
}

/// Every one of them.
pub const ALTERATIONS: [Alteration; 4] =
    [Alteration::Comment, Alteration::Truncate, Alteration::AddColumn, Alteration::DropPartition];

/// A table as a server is made with. `whole`: the second has no key, so that it is copied as a whole.
#[must_use]
pub fn table(number: usize, whole: bool) -> Table {
    let columns = vec![Column::bigint("id").not_null(), Column::int("n"), Column::blob("data")];
    let table = Table::new(200 + number as u64, CAPTURED, NAMES[number], columns);
    let primary_key = if whole && number == 1 { Vec::new() } else { vec![(0, 0)] };
    Table { primary_key, ..table }
}

/// Writes for a person: keys, `-` before those that are gone.
#[must_use]
pub fn shown(writes: &Writes) -> String {
    let one = |(at, write): &(usize, Write)| match write {
        Write::Put(key, _) => format!("{} {key}", NAMES[*at]),
        Write::Remove(key) => format!("{} -{key}", NAMES[*at]),
        Write::Clear => format!("{} cleared", NAMES[*at]),
        Write::Define(_) => format!("{} defined", NAMES[*at]),
    };
    writes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The tables as the source has them, and what is to be done with them next.
#[derive(Debug)]
pub struct Copied {
    states: [State; 2],
    made: i64,
    whole: bool,
}

impl Default for Copied {
    fn default() -> Self {
        Self { states: [0, 1].map(fresh), made: 0, whole: false }
    }
}

fn fresh(number: usize) -> State {
    State { columns: table(number, false).columns, ..State::default() }
}

/// The table's map in its present definition.
fn map(number: usize, state: &State, whole: bool) -> Table {
    let id = 200 + number as u64 + 10 * state.defined;
    Table { id, columns: state.columns.clone(), ..table(number, whole) }
}

impl Copied {
    /// The second table has no key, or has one.
    #[must_use]
    pub fn new(whole: bool) -> Self {
        Self { whole, ..Self::default() }
    }

    /// A transaction that changes one of them or both.
    pub fn transaction(&mut self, choices: &mut Choices, shape: Shape) -> (Vec<Body>, Writes) {
        let moves = shape == Shape::CopiedMoved;
        let mut writes = Vec::new();
        let mut statements: Vec<(usize, Vec<RowChange>)> = Vec::new();
        for _ in 0..=choices.below(2) {
            let at = choices.below(4) as usize / 3;
            let changes =
                (0..=choices.below(3)).map(|_| self.change(at, choices, 3, moves, &mut writes)).collect();
            statements.push((at, changes));
        }
        if shape == Shape::CopiedLarge {
            let at = choices.below(2) as usize;
            for _ in 0..16 {
                let change = self.change(at, choices, LARGE, false, &mut writes);
                statements.push((at, vec![change]));
            }
        }
        let maps = [0, 1].map(|at| map(at, &self.states[at], self.whole));
        let statements: Vec<_> = statements.into_iter().map(|(at, changes)| (&maps[at], changes)).collect();
        (Group::changes(&statements, &End::Xid), Arc::new(writes))
    }

    fn change(
        &mut self,
        at: usize,
        choices: &mut Choices,
        bytes: usize,
        moves: bool,
        writes: &mut Vec<(usize, Write)>,
    ) -> RowChange {
        let state = &mut self.states[at];
        let keys: Vec<i64> = state.rows.keys().copied().collect();
        // Most keys are drawn from few; some lie behind all others.
        let mut free = i64::from(choices.below(48)) - 12;
        if choices.chance(1, 5) {
            free = keys.last().map_or(40, |last| last + 1);
        }
        if moves {
            // From one end of the table to the other, and behind both.
            let back = self.made % 2 == 0;
            free = if back {
                keys.last().map_or(0, |last| last + 1)
            } else {
                keys.first().map_or(0, |first| first - 9)
            };
        }
        while state.rows.contains_key(&free) {
            free += 1;
        }
        self.made += 1;
        let made = self.made;
        let columns = state.columns.len();
        let row = |key: i64| {
            let mut data = made.to_le_bytes().repeat(bytes / 8 + 1);
            data.truncate(bytes);
            let mut row = vec![Value::Int(key), Value::Int(made % 1_000), Value::Bytes(data)];
            row.extend((3..columns).map(|n| Value::Int(made + n as i64)));
            row
        };
        let old = |key: i64| {
            let mut row = state.rows[&key].to_vec();
            row.resize(columns, Value::Null);
            row
        };
        let some = |choices: &mut Choices| match moves {
            true => keys[made as usize * 7 % keys.len()],
            false => keys[choices.below(keys.len() as u32) as usize],
        };
        let kind = match (keys.len() < 3 || bytes == LARGE, moves) {
            (true, _) => 0,
            (false, true) => 3,
            (false, false) => choices.below(6),
        };
        let (change, done): (RowChange, Vec<Write>) = match kind {
            1 | 2 => {
                let key = some(choices);
                (RowChange::Update(old(key), row(key)), vec![Write::Put(key, Arc::new(row(key)))])
            }
            3 => {
                let key = some(choices);
                let done = vec![Write::Remove(key), Write::Put(free, Arc::new(row(free)))];
                (RowChange::Update(old(key), row(free)), done)
            }
            4 => {
                let key = some(choices);
                (RowChange::Delete(old(key)), vec![Write::Remove(key)])
            }
            _ => (RowChange::Insert(row(free)), vec![Write::Put(free, Arc::new(row(free)))]),
        };
        for write in done {
            self.states[at].write(&write);
            writes.push((at, write));
        }
        change
    }

    /// A schema change of one of them.
    pub fn alteration(&mut self, at: usize, kind: Alteration) -> (Vec<Body>, Writes) {
        let name = format!("{CAPTURED}.{}", NAMES[at]);
        let state = &self.states[at];
        let (text, writes) = match kind {
            Alteration::Comment => (format!("ALTER TABLE {name} COMMENT = 'x'"), vec![Write::Define(None)]),
            Alteration::Truncate => {
                (format!("TRUNCATE TABLE {name}"), vec![Write::Clear, Write::Define(None)])
            }
            Alteration::AddColumn => {
                let column = format!("c{}", state.columns.len());
                let text = format!("ALTER TABLE {name} ADD COLUMN {column} BIGINT");
                (text, vec![Write::Define(Some(Column::bigint(&column)))])
            }
            Alteration::DropPartition => {
                let gone = state.rows.keys().filter(|key| *key % 3 == 0).map(|key| Write::Remove(*key));
                let writes = gone.chain([Write::Define(None)]).collect();
                (format!("ALTER TABLE {name} DROP PARTITION p0"), writes)
            }
        };
        writes.iter().for_each(|write| self.states[at].write(write));
        let query = Query::new(CAPTURED, &text);
        let query = query.with(status::updated_databases(&[CAPTURED])).with(status::ddl_xid(4));
        (vec![Body::Query(query)], Arc::new(writes.into_iter().map(|write| (at, write)).collect()))
    }

    /// What was lost with a server is not there.
    pub fn rebuilt(&mut self, history: &History, keeps: impl Fn(&Gtid) -> bool) {
        self.states = history.states(keeps);
    }
}

/// What every transaction wrote, in the order of the log.
#[derive(Clone, Debug, Default)]
pub struct History {
    all: Vec<(Gtid, Writes)>,
    by_gtid: BTreeMap<Gtid, usize>,
    as_of: RefCell<AsOf>,
}

impl History {
    /// One more.
    pub fn push(&mut self, gtid: Gtid, writes: Writes) {
        self.by_gtid.insert(gtid, self.all.len());
        self.all.push((gtid, writes));
    }

    /// What this one wrote.
    #[must_use]
    pub fn of(&self, gtid: &Gtid) -> Option<&Writes> {
        self.by_gtid.get(gtid).map(|at| &self.all[*at].1)
    }

    fn states(&self, keeps: impl Fn(&Gtid) -> bool) -> [State; 2] {
        let mut states = [0, 1].map(fresh);
        for (_, writes) in self.all.iter().filter(|(gtid, _)| keeps(gtid)) {
            writes.iter().for_each(|(at, write)| states[*at].write(write));
        }
        states
    }

    /// Looks at the rows of a table as of these transactions, as a target knows them.
    pub fn rows<T>(&self, at: usize, set: &GtidSet, look: impl FnOnce(&BTreeMap<i64, u64>) -> T) -> T {
        let mut as_of = self.as_of.borrow_mut();
        as_of.move_to(&self.all, set);
        look(&as_of.tables[at])
    }
}

/// What the tables hold as of the set that was asked for last: the next one mostly adds to it.
#[derive(Clone, Debug, Default)]
struct AsOf {
    set: GtidSet,
    /// Behind the last transaction of the set.
    end: usize,
    /// Those in front of it that are not in the set.
    passed: Vec<usize>,
    tables: [BTreeMap<i64, u64>; 2],
}

impl AsOf {
    fn move_to(&mut self, all: &[(Gtid, Writes)], set: &GtidSet) {
        if !self.set.is_subset(set) || self.passed.iter().any(|at| set.contains(&all[*at].0)) {
            *self = Self::default();
        }
        self.set.clone_from(set);
        let end = all.iter().rposition(|(gtid, _)| set.contains(gtid)).map_or(0, |last| last + 1);
        let begin = core::mem::replace(&mut self.end, end);
        for (at, (gtid, writes)) in all.iter().enumerate().take(end).skip(begin) {
            if !set.contains(gtid) {
                self.passed.push(at);
                continue;
            }
            for (table, write) in writes.iter() {
                let rows = &mut self.tables[*table];
                match write {
                    Write::Put(key, row) => drop(rows.insert(*key, hash_of(row))),
                    Write::Remove(key) => drop(rows.remove(key)),
                    Write::Clear => rows.clear(),
                    Write::Define(_) => {}
                }
            }
        }
    }
}

/// A row as a target knows it. NULLs do not count: a column that was added changes no row.
fn hash_of(row: &[Value]) -> u64 {
    let mut hash = Hash::default();
    for (at, value) in row.iter().enumerate() {
        match value {
            Value::Int(n) => hash.number(at as u8, n.cast_unsigned()),
            Value::Bytes(bytes) => hash.bytes(at as u8, bytes),
            Value::Null => {}
            Value::UInt(_) | Value::Double(_) | Value::Shown(_) => hash.number(tag::OTHER, 0),
        }
    }
    hash.0
}

/// A row as a sink was handed it: its key and its hash.
pub type Handed = (i64, u64);

/// What a batch does to the target's tables, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A chunk begins. The first one of a copy voids what is there.
    Chunk {
        /// Of which table.
        table: usize,
        /// It is the copy's first.
        first: bool,
        /// The last key that had been delivered, and the last one that is now; `None`: no end.
        range: (Option<i64>, Option<i64>),
    },
    /// A row of a chunk.
    Copied(usize, Handed),
    /// An insert.
    Insert(usize, Handed),
    /// An update.
    Update(usize, Handed, Handed),
    /// A delete.
    Delete(usize, Handed),
    /// A schema change.
    Altered(Gtid),
}

/// The target's tables.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Rows by key.
    pub tables: [BTreeMap<i64, u64>; 2],
    /// What a strict target had to refuse.
    pub wrong: Option<String>,
    /// What comes may have come before, so it is made so rather than done.
    pub again: bool,
    /// What schema changes do, for a sink that follows them.
    pub alterations: BTreeMap<Gtid, Writes>,
    /// Chunks so far.
    pub chunks: u64,
    /// The youngest process that has applied a batch where the library owns the position.
    pub youngest: u32,
    /// A former owner's batch was applied behind its successor's. Only the store fences it there: nothing is said any
    /// more of what the target holds.
    pub overtaken: bool,
}

impl Target {
    /// Applies a batch.
    pub fn apply(&mut self, ops: &[Op]) {
        for op in ops {
            let refused = match op {
                Op::Chunk { table, first, range: (from, to) } => {
                    self.chunks += 1;
                    let rows = &mut self.tables[*table];
                    if *first {
                        rows.clear();
                    } else if self.again && from.is_some() {
                        // It says what there is between two keys: what an earlier delivery of it left there is void.
                        let behind = |key: i64| from.is_none_or(|from| key > from);
                        rows.retain(|key, _| !behind(*key) || to.is_some_and(|to| *key > to));
                    }
                    false
                }
                Op::Copied(table, (key, row)) | Op::Insert(table, (key, row)) => {
                    self.tables[*table].insert(*key, *row).is_some()
                }
                Op::Update(table, (old, before), (key, row)) => {
                    let found = self.tables[*table].remove(old);
                    let other = self.tables[*table].insert(*key, *row);
                    found != Some(*before) || other.is_some()
                }
                Op::Delete(table, (key, row)) => self.tables[*table].remove(key) != Some(*row),
                Op::Altered(gtid) => {
                    for (table, write) in self.alterations.get(gtid).into_iter().flat_map(|w| w.iter()) {
                        match write {
                            Write::Remove(key) => {
                                self.tables[*table].remove(key);
                            }
                            Write::Clear => self.tables[*table].clear(),
                            Write::Put(..) | Write::Define(_) => {}
                        }
                    }
                    false
                }
            };
            if refused && !self.again && self.wrong.is_none() {
                self.wrong = Some(format!("{op:?} does not fit what is there"));
            }
        }
    }
}
