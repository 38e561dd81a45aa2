//! What the gate has to know of the order of text before it can judge: it asks, and the event waits.
//!
//! Which of two texts comes first is a fact about their collation alone, so an answer stays true whatever the copy does
//! meanwhile. Only for another key it is void.

use alloc::vec::Vec;

use super::{Gate, Waiting};
use crate::{
    halt::{Code, Halt},
    link::ResultSet,
    snapshot::rows::{Comparisons, TextPair},
};

/// Most pairs of one question, and most bytes of them: written as hexadecimal digits they fit into a packet of any
/// server.
const PAIRS_MAX: usize = 500;
const BYTES_MAX: usize = 128 << 10;

/// Most bytes of pairs that are remembered from one event to the next: what is changed once is often changed again.
const SAID_MAX: usize = 1 << 20;

/// Pairs to ask for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) pairs: Vec<TextPair>,
    bytes: usize,
}

impl Wanted {
    /// Another pair; what is beyond a question's bounds is asked for when the event is judged again.
    pub(crate) fn add(&mut self, pair: TextPair) {
        if self.pairs.len() < PAIRS_MAX && self.bytes < BYTES_MAX {
            self.bytes = self.bytes.saturating_add(pair.bytes());
            self.pairs.push(pair);
        }
    }
}

/// Questions and answers about one key.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Goes up with each key.
    key: u64,
    /// Not asked yet.
    wanted: Vec<TextPair>,
    /// What is known.
    pub(super) said: Comparisons,
}

/// A question that is on its way.
#[derive(Debug)]
pub(crate) struct Question {
    key: u64,
    pairs: Vec<TextPair>,
    /// The statement.
    pub(crate) sql: alloc::string::String,
}

impl Asking {
    /// Another key, or none.
    pub(super) fn void(&mut self) {
        *self = Self { key: self.key.wrapping_add(1), ..Self::default() };
    }

    pub(super) fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted.pairs;
    }

    /// The event was judged.
    pub(super) fn settle(&mut self) {
        self.wanted = Vec::new();
        if self.said.bytes() > SAID_MAX {
            self.said = Comparisons::default();
        }
    }
}

impl Gate {
    /// Whether the server is to be asked before anything can go on.
    pub(crate) fn wants_to_ask(&self) -> bool {
        self.waiting == Waiting::Answer && !self.asking.wanted.is_empty()
    }

    /// What to ask the server.
    pub(crate) fn question(&mut self) -> Option<Question> {
        if !self.wants_to_ask() {
            return None;
        }
        let pairs = core::mem::take(&mut self.asking.wanted);
        let sql = self.key.as_ref()?.key.question(&pairs)?;
        Some(Question { key: self.asking.key, pairs, sql })
    }

    /// What it said. The event that waits is judged again.
    pub(crate) fn answered(&mut self, question: Question, answer: &ResultSet) -> Result<(), Halt> {
        if question.key != self.asking.key {
            return Ok(());
        }
        if !self.asking.said.said(question.pairs, answer) {
            let halt = Halt::new(Code::SnapshotCollationDisagrees);
            let table = self.active.clone().unwrap_or_default();
            return Err(halt.of_table(&table.0, &table.1));
        }
        self.ask_again();
        Ok(())
    }

    /// A question was lost, or answered: what waits is judged, and asks for what it still has to know.
    pub(crate) fn ask_again(&mut self) {
        if self.waiting == Waiting::Answer {
            self.waiting = Waiting::Nothing;
        }
    }
}
