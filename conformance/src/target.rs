//! What a user gives: a sink, and a way to see what it stored.

use std::error::Error;

use capstan_core::deliver::Op;

use crate::{artifact::Artifact, rule::Level, subject::Subject};

/// Whatever went wrong in opening or probing; it is shown in the report.
pub type Trouble = Box<dyn Error + Send + Sync>;

/// What a storage keeps of what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Every change, one after the other: a ledger, a log, a queue.
    Changes,
    /// The rows as they are after all changes: a copy of the tables.
    Rows,
}

/// One storage and the sink that writes to it.
///
/// The kit's tables lie in the schema `shop`. Each has a first column `id` (BIGINT, the primary key but
/// in `shop.heap`, which has none) and, but for those of values, a column `note`.
///
/// A method that is not written fails the rules that need it and says which: write it, or decline them.
pub trait Target {
    /// [`crate::Blocking`] or [`crate::Async`] around the sink.
    type Sink: Subject + 'static;

    /// Opens the sink: the first time over empty storage, from then on over what is there. Called once
    /// while an earlier one lives (`two_owners`): it may be refused then.
    fn open(&mut self) -> Result<Self::Sink, Trouble>;

    /// What is stored, as any other reader would see it. Called while no sink is open and, by
    /// `acknowledged_is_durable`, while one is open and at rest.
    fn probe(&mut self) -> Result<Stored, Trouble>;

    /// The row of `table` (`schema.table`) whose `id` is `key`, as it is now: a JSON object in the
    /// contract's text forms (`capstan_core::text`). For the rules of values, of schema changes, and
    /// `update_stores_the_new_row`.
    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let _ = (table, key);
        Err(unwritten("row"))
    }

    /// Whether it keeps changes or rows.
    fn keeps(&self) -> Keeps {
        Keeps::Changes
    }

    /// Whether it refuses rows of a table whose creation it has not seen. Then the stream begins with a `CREATE TABLE`
    /// for each of the kit's tables.
    fn needs_creations(&self) -> bool {
        false
    }

    /// Puts `position` where the sink stores its own, while no sink is open. For
    /// `newer_format_is_refused`.
    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        let _ = position;
        Err(unwritten("plant"))
    }

    /// Copies the storage aside, while no sink is open. For `backup_goes_on`.
    fn backup(&mut self) -> Result<(), Trouble> {
        Err(unwritten("backup"))
    }

    /// Puts the copy of [`Target::backup`] in its place, while no sink is open.
    fn restore(&mut self) -> Result<(), Trouble> {
        Err(unwritten("restore"))
    }

    /// Places inside the sink where it can be made to die ([`crate::Faults`]). For `dies_at_fault_points`.
    fn fault_points(&self) -> &[&str] {
        &[]
    }

    /// The sink dies at the `count`th passage of `point` from now on; 0: at none.
    fn arm(&mut self, point: &str, count: u64) -> Result<(), Trouble> {
        let _ = (point, count);
        Err(unwritten("arm"))
    }

    /// How another process finds this storage. With it, and with a [`crate::Child`], what is to die dies in
    /// a process of its own, by SIGKILL.
    fn address(&self) -> Option<String> {
        None
    }

    /// The same storage in another process.
    ///
    /// # Errors
    /// It is not there, or this method is not written.
    fn attach(address: &str) -> Result<Self, Trouble>
    where
        Self: Sized,
    {
        let _ = address;
        Err(unwritten("attach"))
    }

    /// What the sink promises.
    fn level(&self) -> Level {
        Level::ExactlyOnce
    }

    /// Rules that are not to be run, by id, each with its reason. The report shows them.
    fn declines(&self) -> &[(&str, &str)] {
        &[]
    }

    /// The package that the sink is of, for the report: [`crate::artifact!`].
    fn artifact(&self) -> Option<Artifact> {
        None
    }

    /// The sink's name in the report.
    fn name(&self) -> String {
        std::any::type_name::<Self>().into()
    }
}

fn unwritten(method: &str) -> Trouble {
    format!("Target::{method} is not written: write it, or decline this rule with a reason").into()
}

/// What a storage holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// [`Keeps::Changes`]: every change that took effect, in the order in which the storage has them, with an
    /// [`Applied::begins`] where a copy of a table began (chunk 0).
    /// [`Keeps::Rows`]: every row that is there ([`Applied::row`]), in any order.
    pub applied: Vec<Applied>,
    /// The position as it is written ([`capstan_core::deliver::Position::encode`]), if this sink
    /// stores one.
    pub position: Option<String>,
}

const BEGINS: &str = "begins";

/// A change that took effect, or a row that is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Applied {
    /// `insert`, `update` or `delete` ([`Op::as_str`]); `row` for a row that is there; `begins` where a copy begins.
    pub op: String,
    /// `schema.table`.
    pub table: String,
    /// The column `id` as text: of the row after the change, of a deleted row before it.
    pub key: String,
    /// The column `note` of a row that is there.
    pub note: String,
}

impl Applied {
    /// A change.
    pub fn new(op: Op, table: impl Into<String>, key: impl Into<String>) -> Self {
        Self::named(op.as_str(), table, key)
    }

    /// A change by the name of what it does.
    pub fn named(op: impl Into<String>, table: impl Into<String>, key: impl Into<String>) -> Self {
        Self { op: op.into(), table: table.into(), key: key.into(), note: String::new() }
    }

    /// Here a copy of the table begins: what is above it of that table is void.
    pub fn begins(table: impl Into<String>) -> Self {
        Self::named(BEGINS, table, "")
    }

    pub(crate) fn is_beginning(&self) -> bool {
        self.op == BEGINS
    }

    /// A row that is there.
    pub fn row(table: impl Into<String>, key: impl Into<String>, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..Self::named("row", table, key) }
    }
}

/// [`Target`] without its type.
pub(crate) trait Storage {
    fn open_sink(&mut self) -> Result<Box<dyn Subject>, Trouble>;
    fn look(&mut self) -> Result<Stored, Trouble>;
    fn row_text(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble>;
    fn kept(&self) -> Keeps;
    fn wants_creations(&self) -> bool;
    fn plant_position(&mut self, position: &str) -> Result<(), Trouble>;
    fn copy_aside(&mut self) -> Result<(), Trouble>;
    fn put_back(&mut self) -> Result<(), Trouble>;
    fn points(&self) -> Vec<String>;
    fn place(&self) -> Option<String>;
    fn type_name(&self) -> &'static str;
    fn arm_point(&mut self, point: &str, count: u64) -> Result<(), Trouble>;
}

impl<T: Target> Storage for T {
    fn open_sink(&mut self) -> Result<Box<dyn Subject>, Trouble> {
        Ok(Box::new(self.open()?))
    }

    fn look(&mut self) -> Result<Stored, Trouble> {
        self.probe()
    }

    fn row_text(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        self.row(table, key)
    }

    fn kept(&self) -> Keeps {
        self.keeps()
    }

    fn wants_creations(&self) -> bool {
        self.needs_creations()
    }

    fn plant_position(&mut self, position: &str) -> Result<(), Trouble> {
        self.plant(position)
    }

    fn copy_aside(&mut self) -> Result<(), Trouble> {
        self.backup()
    }

    fn put_back(&mut self) -> Result<(), Trouble> {
        self.restore()
    }

    fn points(&self) -> Vec<String> {
        self.fault_points().iter().map(|point| (*point).to_owned()).collect()
    }

    fn place(&self) -> Option<String> {
        self.address()
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn arm_point(&mut self, point: &str, count: u64) -> Result<(), Trouble> {
        self.arm(point, count)
    }
}
