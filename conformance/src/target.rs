//! What a user gives: a sink, and a way to see what it stored.

use std::error::Error;

use capstan_core::deliver::Op;

use crate::{rule::Level, subject::Subject};

/// Whatever went wrong in opening or probing; it is shown in the report.
pub type Trouble = Box<dyn Error + Send + Sync>;

/// One storage and the sink that writes to it.
pub trait Target {
    /// [`crate::Blocking`] or [`crate::Async`] around the sink.
    type Sink: Subject + 'static;

    /// Opens the sink: the first time over empty storage, from then on over what is there. Never
    /// called while an earlier one lives.
    fn open(&mut self) -> Result<Self::Sink, Trouble>;

    /// What is stored. Called while no sink is open.
    fn probe(&mut self) -> Result<Stored, Trouble>;

    /// The row of `table` (`schema.table`) whose key is `key`, as it was inserted: a JSON object in the
    /// contract's text forms (`capstan_core::text`). For the rule `values_survive`.
    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let _ = (table, key);
        Err("Target::row is not written: write it, or decline `values_survive` with a reason".into())
    }

    /// What the sink promises.
    fn level(&self) -> Level {
        Level::ExactlyOnce
    }

    /// Rules that are not to be run, by id, each with its reason. The report shows them.
    fn declines(&self) -> &[(&str, &str)] {
        &[]
    }

    /// The sink's name in the report.
    fn name(&self) -> String {
        std::any::type_name::<Self>().into()
    }
}

/// What a storage holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Every change that took effect, in the order in which the storage has them.
    pub applied: Vec<Applied>,
    /// The position as it is written ([`capstan_core::deliver::Position::encode`]), if this sink
    /// stores one.
    pub position: Option<String>,
}

/// A change that took effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Applied {
    /// `insert`, `update` or `delete` ([`Op::as_str`]).
    pub op: String,
    /// `schema.table`.
    pub table: String,
    /// The primary key as text: of the row after the change, of a deleted row before it.
    pub key: String,
}

impl Applied {
    /// A change.
    pub fn new(op: Op, table: impl Into<String>, key: impl Into<String>) -> Self {
        Self { op: op.as_str().into(), table: table.into(), key: key.into() }
    }
}

/// [`Target`] without its type.
pub(crate) trait Storage {
    fn open_sink(&mut self) -> Result<Box<dyn Subject>, Trouble>;
    fn look(&mut self) -> Result<Stored, Trouble>;
    fn row_text(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble>;
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
}
