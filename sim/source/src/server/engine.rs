//! What is behind the log: tables that can be read, locks on them, views of one moment, and commits that are logged,
//! counted in `gtid_executed` and visible at different moments.
//!
//! A commit holds its tables' metadata lock until it is counted and visible (`sql/binlog.cc`, `ordered_commit`;
//! `trans_commit` releases the locks behind it), so whoever gets the lock of a table sees all of it. Of other tables
//! nothing is said: their commits may be in the log and in no set, or counted and not visible yet.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use capstan_core::gtid::{Gtid, GtidSet};

use super::{Server, SessionId, answers};
use crate::{
    Group,
    event::{Column, Table, Value},
};

/// What a transaction does to a table that can be read.
#[derive(Clone, Debug)]
pub enum Write {
    /// The row of this key is this one now.
    Put(i64, Arc<Vec<Value>>),
    /// It is gone.
    Remove(i64),
    /// All are.
    Clear,
    /// The table is defined anew, perhaps with one more column.
    Define(Option<Column>),
}

/// The writes of a transaction, by the number of the table.
pub type Writes = Arc<Vec<(usize, Write)>>;

/// A table at some moment. Its first column is its primary key.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows by key; behind what a row has NULL is to be read.
    pub rows: BTreeMap<i64, Arc<Vec<Value>>>,
    /// How often it was defined.
    pub defined: u64,
}

impl State {
    /// Does this.
    pub fn write(&mut self, write: &Write) {
        match write {
            Write::Put(key, row) => {
                self.rows.insert(*key, Arc::clone(row));
            }
            Write::Remove(key) => {
                self.rows.remove(key);
            }
            Write::Clear => self.rows.clear(),
            Write::Define(column) => {
                self.defined += 1;
                self.columns.extend(column.clone());
            }
        }
    }
}

/// A commit that is in the log and not over.
#[derive(Clone, Debug)]
struct Flight {
    gtid: Option<Gtid>,
    tables: BTreeSet<usize>,
    counted: bool,
    visible: bool,
}

/// A lock of `LOCK TABLES`, held or waited for.
#[derive(Clone, Copy, Debug)]
struct Lock {
    session: SessionId,
    table: usize,
    write: bool,
}

/// A consistent view.
#[derive(Clone, Debug)]
pub(super) struct View {
    tables: Vec<Arc<State>>,
    /// Tables it has read: it holds their metadata lock.
    read: BTreeSet<usize>,
}

/// The tables after the first transactions, in front of the first that is hidden when they are looked at.
#[derive(Clone, Debug, Default)]
struct Settled {
    count: usize,
    tables: Vec<Arc<State>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Engine {
    tables: Vec<Table>,
    /// What every transaction writes, whether it is here or not.
    known: BTreeMap<Gtid, Writes>,
    /// Those that are here, in the order of the log.
    order: Vec<Gtid>,
    settled: RefCell<Settled>,
    flights: Vec<Flight>,
    /// Tables of transactions that are open or prepared.
    open: Vec<usize>,
    prepared: Vec<usize>,
    locks: Vec<Lock>,
    waiting: Vec<Lock>,
    /// A schema change waits for this table.
    alters: Option<usize>,
}

impl Engine {
    /// For another server: its tables.
    pub(super) fn twin(&self) -> Self {
        Self { tables: self.tables.clone(), ..Self::default() }
    }

    /// It was taken out of the log again.
    pub(super) fn unordered(&mut self, gtid: &Gtid) {
        self.order.retain(|known| known != gtid);
        self.settled.take();
    }

    fn number(&self, schema: &str, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.schema == schema && table.name == name)
    }

    fn is_hidden(&self, gtid: &Gtid) -> bool {
        self.flights.iter().any(|flight| !flight.visible && flight.gtid.as_ref() == Some(gtid))
    }

    /// A table as it is visible now.
    pub(super) fn state(&self, table: usize) -> Arc<State> {
        let mut settled = self.settled.borrow_mut();
        for table in self.tables.iter().skip(settled.tables.len()) {
            settled.tables.push(Arc::new(State { columns: table.columns.clone(), ..State::default() }));
        }
        let Settled { count, tables } = &mut *settled;
        let rest = &self.order[*count..];
        for gtid in rest.iter().take_while(|gtid| !self.is_hidden(gtid)) {
            *count += 1;
            for (of, write) in self.known.get(gtid).into_iter().flat_map(|writes| writes.iter()) {
                Arc::make_mut(&mut tables[*of]).write(write);
            }
        }
        let mut state = tables.get(table).cloned().unwrap_or_default();
        for gtid in self.order[*count..].iter().filter(|gtid| !self.is_hidden(gtid)) {
            let writes = self.known.get(gtid).into_iter().flat_map(|writes| writes.iter());
            writes
                .filter(|(of, _)| *of == table)
                .for_each(|(_, write)| Arc::make_mut(&mut state).write(write));
        }
        state
    }

    fn is_free(&self, lock: &Lock, viewed: &BTreeSet<usize>) -> bool {
        let table = lock.table;
        let conflicts = |other: &Lock| other.table == table && (other.write || lock.write);
        let flies = self.flights.iter().any(|flight| flight.tables.contains(&table));
        let taken = self.open.contains(&table) || self.prepared.contains(&table) || flies;
        let in_view = lock.write && viewed.contains(&table);
        !taken && !in_view && !self.locks.iter().any(conflicts)
    }

    fn forget(&mut self, session: SessionId) {
        self.locks.retain(|lock| lock.session != session);
        self.waiting.retain(|lock| lock.session != session);
    }
}

impl Server {
    /// A table that clients may read; the number by which writes name it.
    pub fn define(&mut self, table: &Table) -> usize {
        self.engine.tables.push(table.clone());
        self.engine.tables.len() - 1
    }

    /// What a transaction does to such tables, said before it is logged or appended.
    pub fn writes(&mut self, gtid: Gtid, writes: &Writes) {
        self.engine.known.insert(gtid, Arc::clone(writes));
    }

    /// A group is in the log; counted and visible it is when [`Server::moves`] has come to it.
    pub fn log(&mut self, group: &Arc<Group>) {
        if let Some(file) = self.files.last_mut() {
            file.push(group);
        }
        let gtid = group.gtid().copied();
        self.ordered(gtid);
        let writes = gtid.as_ref().and_then(|gtid| self.engine.known.get(gtid));
        let tables = writes.into_iter().flat_map(|writes| writes.iter()).map(|(table, _)| *table).collect();
        self.engine.flights.push(Flight { gtid, tables, counted: gtid.is_none(), visible: false });
    }

    pub(super) fn ordered(&mut self, gtid: Option<Gtid>) {
        self.engine.order.extend(gtid.filter(|gtid| self.engine.known.contains_key(gtid)));
    }

    /// What is in the log: `gtid_executed`, and commits that are not counted yet.
    #[must_use]
    pub fn logged(&self) -> GtidSet {
        let flights = self.engine.flights.iter().filter_map(|flight| flight.gtid);
        self.executed.union(&flights.collect())
    }

    /// Commits that are logged and not over.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.engine.flights.len()
    }

    /// Whether one of them writes this table.
    #[must_use]
    pub fn is_in_flight(&self, table: usize) -> bool {
        self.engine.flights.iter().any(|flight| flight.tables.contains(&table))
    }

    /// One of them becomes visible or is counted: which and what, says `choice`.
    pub fn moves(&mut self, choice: u32) {
        let choice = choice as usize;
        let of = self.engine.flights.len();
        let Some(flight) = self.engine.flights.get_mut(choice / 2 % of.max(1)) else { return };
        let count = !flight.counted && (flight.visible || choice.is_multiple_of(2));
        if count {
            flight.counted = true;
            if let Some(gtid) = flight.gtid {
                self.executed.add(&gtid);
            }
        } else {
            flight.visible = true;
        }
        self.land();
    }

    /// All of them are over at once.
    pub fn settles(&mut self) {
        for flight in &mut self.engine.flights {
            (flight.counted, flight.visible) = (true, true);
            if let Some(gtid) = flight.gtid {
                self.executed.add(&gtid);
            }
        }
        self.land();
    }

    fn land(&mut self) {
        self.engine.flights.retain(|flight| !(flight.counted && flight.visible));
        self.grant();
    }

    /// A transaction on the table is open (`true`), or ends.
    pub fn opens(&mut self, table: usize, open: bool) {
        if open {
            self.engine.open.push(table);
        } else if let Some(at) = self.engine.open.iter().position(|held| *held == table) {
            self.engine.open.remove(at);
        }
        self.grant();
    }

    /// An XA transaction that has the table's metadata lock is prepared (`true`), or resolved.
    pub fn prepares(&mut self, table: usize, prepared: bool) {
        if prepared {
            self.engine.prepared.push(table);
        } else {
            self.engine.prepared.retain(|held| *held != table);
        }
        self.grant();
    }

    /// Whether a transaction can write the table now.
    #[must_use]
    pub fn can_write(&self, table: usize) -> bool {
        let engine = &self.engine;
        engine.alters != Some(table)
            && !engine.locks.iter().any(|lock| lock.table == table)
            && !engine.waiting.iter().any(|lock| lock.table == table && lock.write)
    }

    /// Whether a schema change of the table can happen now; if not, it waits, and writers behind it.
    pub fn can_alter(&mut self, table: usize) -> bool {
        let lock = Lock { session: SessionId(0), table, write: true };
        let free = self.engine.is_free(&lock, &self.viewed(SessionId(0)));
        self.engine.alters = (!free).then_some(table);
        free
    }

    /// The schema change that waits is given up.
    pub const fn gives_up_altering(&mut self) {
        self.engine.alters = None;
    }

    /// The table as everybody sees it.
    #[must_use]
    pub fn table(&self, table: usize) -> Arc<State> {
        self.engine.state(table)
    }

    /// Tables whose metadata lock views of others have.
    fn viewed(&self, but: SessionId) -> BTreeSet<usize> {
        let others = self.sessions.iter().filter(|(id, _)| *id != but);
        others
            .flat_map(|(_, session)| session.view.iter().flat_map(|view| view.read.iter().copied()))
            .collect()
    }

    /// Gives locks to those who wait, in turn.
    pub(super) fn grant(&mut self) {
        let mut at = 0;
        while let Some(lock) = self.engine.waiting.get(at).copied() {
            if !self.engine.is_free(&lock, &self.viewed(lock.session)) {
                at += 1;
                continue;
            }
            self.engine.waiting.remove(at);
            self.engine.locks.push(lock);
            self.tell(lock.session, &answers::ok(0));
        }
    }

    /// Everybody is gone: a server that restarts knows of prepared transactions alone.
    pub(super) fn restart_engine(&mut self) {
        self.settles();
        self.engine.locks.clear();
        self.engine.waiting.clear();
        self.engine.open.clear();
        self.engine.alters = None;
    }

    /// What a session held is free.
    pub(super) fn releases(&mut self, session: SessionId) {
        self.engine.forget(session);
        self.grant();
    }

    /// The statements of an initial copy. `None`: it is none of them.
    pub(super) fn copy_statement(
        &mut self,
        id: SessionId,
        view: &mut Option<View>,
        sql: &str,
        to: &mut answers::Packets<'_>,
    ) -> Option<()> {
        if self.engine.tables.is_empty() {
            return None;
        }
        if let Some(rest) = sql.strip_prefix("LOCK TABLES ") {
            let (name, kind) = rest.rsplit_once(' ')?;
            let (schema, name) = name.trim_matches('`').split_once("`.`")?;
            let Some(table) = self.engine.number(schema, name) else {
                to.error(1146, "no such table");
                return Some(());
            };
            // What the session had is free first.
            self.engine.forget(id);
            self.engine.waiting.push(Lock { session: id, table, write: kind == "WRITE" });
        } else if let Some(number) = sql.strip_prefix("KILL QUERY ") {
            let victim = SessionId(number.parse().ok()?);
            let waits = self.engine.waiting.len();
            self.engine.waiting.retain(|lock| lock.session != victim);
            if self.engine.waiting.len() < waits {
                self.tell(victim, &answers::error(1317, "Query execution was interrupted", true));
            }
            to.ok();
        } else if sql == "UNLOCK TABLES" {
            self.engine.forget(id);
            to.ok();
        } else if sql.starts_with("START TRANSACTION WITH CONSISTENT SNAPSHOT") {
            let tables = (0..self.engine.tables.len()).map(|table| self.engine.state(table)).collect();
            *view = Some(View { tables, read: BTreeSet::new() });
            to.ok();
        } else if sql == "ROLLBACK" {
            *view = None;
            to.ok();
        } else if sql == "SELECT @@global.gtid_executed" {
            to.table(&["@@global.gtid_executed"], &[vec![Some(self.executed.to_string().into_bytes())]]);
        } else if sql == "SELECT @@global.server_uuid" {
            to.table(&["@@global.server_uuid"], &[vec![Some(self.uuid.to_string().into_bytes())]]);
        } else if let Some(name) = sql.strip_prefix("SHOW CREATE TABLE ") {
            let (schema, name) = name.trim_matches('`').split_once("`.`")?;
            let Some(table) = self.engine.number(schema, name) else {
                to.error(1146, "no such table");
                return Some(());
            };
            let state = self.engine.state(table);
            let columns: Vec<&str> = state.columns.iter().map(|column| column.name.as_str()).collect();
            let text =
                format!("CREATE TABLE `{name}` ({}) AUTO_INCREMENT={}", columns.join(", "), state.rows.len());
            to.table(&["Table", "Create Table"], &[vec![Some(name.into()), Some(text.into_bytes())]]);
        } else if sql == "XA RECOVER" {
            let rows: Vec<_> = self.engine.prepared.iter().map(|_| vec![Some(b"1".to_vec())]).collect();
            to.table(&["formatID"], &rows);
        } else if sql.contains("'Waiting for table metadata lock'") {
            let waiting = u8::from(self.engine.alters.is_some()) + b'0';
            to.table(&["COUNT(*)"], &[vec![Some(vec![waiting])]]);
        } else if sql.contains("performance_schema.global_status") {
            to.table(&["VARIABLE_VALUE"], &[vec![Some(self.threads_running.to_string().into_bytes())]]);
        } else if sql.starts_with("SELECT MAX(TIMESTAMPDIFF(") {
            to.table(&["MAX"], &[vec![self.lag_us.map(|lag| lag.to_string().into_bytes())]]);
        } else if sql.starts_with("DO ") {
            to.ok();
        } else if let Some(list) = sql.strip_prefix("SELECT ") {
            let (list, from) = list.split_once(" FROM ")?;
            match from.split_whitespace().next()? {
                "information_schema.TABLES"
                | "information_schema.COLUMNS"
                | "information_schema.STATISTICS" => {
                    self.catalogue(list, from, to);
                }
                name => self.rows(list, name, from, view, to)?,
            }
        } else {
            return None;
        }
        Some(())
    }

    /// What the catalogue says, column by column as it is asked for.
    fn catalogue(&self, list: &str, from: &str, to: &mut answers::Packets<'_>) {
        let names: Vec<&str> =
            list.split(", ").map(|name| name.split_once('.').map_or(name, |n| n.1)).collect();
        let named: Vec<String> = from.split("x'").skip(1).filter_map(text_of_hex).collect();
        let tables = self.engine.tables.iter().enumerate().filter(|(_, table)| {
            named.is_empty()
                || named.first() == Some(&table.schema)
                    && named.iter().skip(1).any(|name| *name == table.name)
        });
        let mut rows = Vec::new();
        for (number, table) in tables {
            let state = self.engine.state(number);
            let columns = &state.columns;
            if from.starts_with("information_schema.STATISTICS") && table.primary_key.is_empty() {
                continue;
            }
            if from.starts_with("information_schema.COLUMNS") {
                for (at, column) in columns.iter().enumerate() {
                    let cell = |name: &&str| match *name {
                        "TABLE_NAME" => Some(table.name.clone().into_bytes()),
                        name => of_column(name, at, column).map(String::into_bytes),
                    };
                    rows.push(names.iter().map(cell).collect());
                }
                continue;
            }
            let cell = |name: &&str| {
                Some(match *name {
                    "TABLE_SCHEMA" => table.schema.clone(),
                    "TABLE_NAME" => table.name.clone(),
                    "TABLE_TYPE" => "BASE TABLE".into(),
                    "ENGINE" => "InnoDB".into(),
                    "TABLE_ROWS" => "7".into(),
                    "INDEX_NAME" => "PRIMARY".into(),
                    "COLUMN_NAME" => columns.first()?.name.clone(),
                    "IS_VISIBLE" => "YES".into(),
                    _ => return None,
                })
            };
            rows.push(names.iter().map(|name| cell(name).map(String::into_bytes)).collect());
        }
        to.table(&names, &rows);
    }

    /// The rows of a table that a view sees; `None`: no such statement.
    fn rows(
        &self,
        list: &str,
        name: &str,
        rest: &str,
        view: &mut Option<View>,
        to: &mut answers::Packets<'_>,
    ) -> Option<()> {
        let (schema, name) = name.trim_matches('`').split_once("`.`")?;
        let number = self.engine.number(schema, name)?;
        let now = self.engine.state(number);
        let state = match view {
            Some(view) => {
                view.read.insert(number);
                view.tables.get(number)?.as_ref()
            }
            None => now.as_ref(),
        };
        if state.defined != now.defined {
            to.error(1412, "Table definition has changed, please retry transaction");
            return Some(());
        }
        let wanted: Vec<&str> = list.split(", ").map(|name| name.trim_matches('`')).collect();
        let place = |name: &&str| state.columns.iter().position(|column| column.name == *name);
        let places: Vec<Option<usize>> = wanted
            .iter()
            .map(|name| if *name == "NULL" { Some(None) } else { place(name).map(Some) })
            .collect::<Option<_>>()?;
        let (above, up_to) = (bound(rest, " > "), bound(rest, " <= "));
        let within =
            |key: i64| above.is_none_or(|bound| key > bound) && up_to.is_none_or(|bound| key <= bound);
        let keys: Box<dyn Iterator<Item = (&i64, &Arc<Vec<Value>>)>> = match rest.contains(" DESC") {
            true => Box::new(state.rows.iter().rev()),
            false => Box::new(state.rows.iter()),
        };
        let number = |text: Option<&str>| text.and_then(|n| n.parse().ok());
        let mut bounds = rest.rsplit_once(" LIMIT ").map_or("", |(_, n)| n).split(" OFFSET ");
        let limit = number(bounds.next()).unwrap_or(usize::MAX);
        let offset = number(bounds.next()).unwrap_or(0);
        let rows: Vec<Vec<Option<Vec<u8>>>> = keys
            .filter(|(key, _)| within(**key))
            .skip(offset)
            .take(limit)
            .map(|(_, row)| places.iter().map(|place| row.get((*place)?).and_then(shown)).collect())
            .collect();
        to.table(&wanted, &rows);
        Some(())
    }
}

/// A column in the words of the catalogue.
fn of_column(name: &str, at: usize, column: &Column) -> Option<String> {
    let data_type = match column.type_code {
        8 => "bigint",
        252 => "longblob",
        _ => "int",
    };
    Some(match name {
        "COLUMN_NAME" => column.name.clone(),
        "ORDINAL_POSITION" => (at + 1).to_string(),
        "DATA_TYPE" | "COLUMN_TYPE" => data_type.into(),
        "IS_NULLABLE" => if column.nullable { "YES" } else { "NO" }.into(),
        "CHARACTER_OCTET_LENGTH" | "CHARACTER_MAXIMUM_LENGTH" if data_type == "longblob" => {
            "4294967295".into()
        }
        "NUMERIC_PRECISION" if data_type != "longblob" => "19".into(),
        "NUMERIC_SCALE" if data_type != "longblob" => "0".into(),
        "EXTRA" => String::new(),
        _ => return None,
    })
}

/// A value in the text protocol.
fn shown(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::Int(n) => Some(n.to_string().into_bytes()),
        Value::UInt(n) => Some(n.to_string().into_bytes()),
        Value::Double(n) => Some(format!("{n:?}").into_bytes()),
        Value::Shown(text) => Some(text.clone().into_bytes()),
        Value::Bytes(bytes) => Some(bytes.clone()),
    }
}

/// What the key is compared with by this operator.
fn bound(sql: &str, operator: &str) -> Option<i64> {
    let (_, rest) = sql.split_once(operator)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The text of a literal `x'…'` from behind its quote.
fn text_of_hex(literal: &str) -> Option<String> {
    let digits = literal.split('\'').next()?;
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    String::from_utf8((0..digits.len()).step_by(2).map(byte).collect::<Option<_>>()?).ok()
}
