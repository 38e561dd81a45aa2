//! Keys of text: the connection on which the server compares them, for the gate and for the canary.
//!
//! The canary: the rows of a chunk must come in the order in which the server compares their keys when it is asked, for
//! by that the stream's changes are judged. It is asked of every row of a small chunk, and of 256 of a large one.

use alloc::vec::Vec;

use super::{Around, Copier, Did, Step};
use crate::{
    binlog::rows::{RowWalk, RowsEvent},
    deliver::KeyParts,
    halt::{Code, Halt},
    link::{QueryResult, ResultSet},
    probe::Probe,
    snapshot::{
        gate::ask::{Question, Wanted},
        rows::{Compared, Comparisons, CopyKey, TextPair},
    },
};

/// Most neighbours that the canary looks at.
const CANARIES: u64 = 256;

const ER_INVALID_CHARACTER_STRING: u16 = 1300;

/// What the server compares now.
pub(super) enum Asked {
    /// Keys of the stream, for the gate.
    Keys(Question),
    /// Keys of the chunk that is ready.
    Canary(Vec<TextPair>),
    /// What nobody wants to know any more.
    Nothing,
}

/// Rows of a chunk that is complete.
pub(super) struct Ready {
    pub(super) rows: Option<RowsEvent>,
    /// The last key.
    pub(super) key: Option<KeyParts>,
    /// Keys in the order of the rows, to be found ascending.
    canary: Vec<KeyParts>,
    said: Comparisons,
}

/// What came of looking.
pub(super) enum Order {
    Ascends,
    Asks(Vec<TextPair>),
    Disagrees,
}

impl Ready {
    /// Of the rows of a chunk behind `before`.
    pub(super) fn new(
        rows: Option<RowsEvent>,
        of: Option<&CopyKey>,
        before: Option<KeyParts>,
    ) -> Result<Self, Code> {
        let mut ready = Self { rows, key: None, canary: Vec::new(), said: Comparisons::default() };
        let (Some(rows), Some(of)) = (&ready.rows, of) else { return Ok(ready) };
        let asks = !of.is_ordered_here();
        ready.canary.extend(before.filter(|_| asks));
        let stride = rows.changes().div_ceil(CANARIES).max(1);
        let (mut walk, mut place) = (RowWalk::default(), 0_u64);
        walk.start(rows);
        while let Some(change) = walk.next(rows).map_err(|_| Code::ValueMalformed)? {
            place = place.saturating_add(1);
            let last = place == rows.changes();
            if last || (asks && place.is_multiple_of(stride)) {
                let key = change.after().and_then(|row| of.value(row));
                ready.canary.extend(key.clone().filter(|_| asks));
                ready.key = key.filter(|_| last);
            }
        }
        Ok(ready)
    }

    /// Whether the keys ascend, by what the server has said.
    pub(super) fn order(&self, key: Option<&CopyKey>) -> Order {
        let Some(key) = key else { return Order::Ascends };
        let mut wanted = Wanted::default();
        for pair in self.canary.windows(2) {
            let [one, other] = pair else { continue };
            match key.compare_by(one, other, &self.said, |pair| wanted.add(pair)) {
                Compared::Order(core::cmp::Ordering::Less) | Compared::Unknown => {}
                Compared::Order(_) | Compared::NoKey => return Order::Disagrees,
            }
        }
        if wanted.pairs.is_empty() { Order::Ascends } else { Order::Asks(wanted.pairs) }
    }
}

impl Copier {
    /// Whether there is, or will be, something to compare.
    fn compares(&self, wants: bool) -> bool {
        let key = self.table.as_ref().and_then(|table| table.key.as_ref());
        wants || key.is_some_and(|key| !key.is_ordered_here())
    }

    /// Asks for the gate, and keeps the connection. `None`: nothing to do.
    pub(super) fn ask_to_compare<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Option<Did> {
        let gate = around.assembler.gate_mut();
        if !self.compares(gate.wants_to_ask()) || matches!(self.step, Step::Connecting | Step::Pausing(_)) {
            return None;
        }
        let until = around.now.after(self.terms.step);
        if self.compare.is_closed() {
            *around.epochs = around.epochs.wrapping_add(1);
            self.compare_setup = 0;
            self.compare.dial(crate::replica::DialEpoch(*around.epochs), until, around.out);
            return Some(Did::Moved);
        }
        if !self.can_compare() {
            return None;
        }
        let question = gate.question()?;
        self.compare.ask(&question.sql, until, around.out);
        self.asked = Some(Asked::Keys(question));
        Some(Did::Moved)
    }

    fn can_compare(&self) -> bool {
        self.compare_setup == super::sessions::SETUP_COMPARE.len()
            && self.compare.is_idle()
            && self.asked.is_none()
    }

    /// Whether the chunk's keys come in the order that the server gives them. `Some`: not known yet, or not so.
    pub(super) fn canary<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Option<Did> {
        let table = self.table.as_ref()?;
        let key = table.key.as_deref();
        let pairs = match self.ready.as_ref()?.order(key) {
            Order::Ascends => return None,
            Order::Asks(pairs) => pairs,
            Order::Disagrees => {
                let halt = Halt::new(Code::SnapshotCollationDisagrees);
                return Some(Did::Halt(halt.of_table(&table.name.0, &table.name.1)));
            }
        };
        let sql = key?.question(&pairs);
        if !self.can_compare() {
            return Some(Did::Nothing);
        }
        let Some(sql) = sql else { return Some(Did::Halt(Halt::new(Code::ValueMalformed))) };
        self.compare.ask(&sql, around.now.after(self.terms.step), around.out);
        self.asked = Some(Asked::Canary(pairs));
        Some(Did::Moved)
    }

    /// The chunk that the canary looks at is given up.
    pub(super) fn forget_ready(&mut self) {
        self.ready = None;
        if matches!(self.asked, Some(Asked::Canary(_))) {
            self.asked = Some(Asked::Nothing);
        }
    }

    pub(super) fn compared<P: Probe>(&mut self, result: QueryResult, around: &mut Around<'_, P>) -> Did {
        let rows: ResultSet = match result {
            QueryResult::Rows(rows) => rows,
            QueryResult::Failed(error) if error.number() == ER_INVALID_CHARACTER_STRING => {
                // A key that is no text in its own character set.
                let halt = Halt::new(Code::SnapshotCollationDisagrees).with_server_error(error.number());
                let name = self.table.as_ref().map(|table| table.name.clone()).unwrap_or_default();
                return Did::Halt(halt.of_table(&name.0, &name.1));
            }
            QueryResult::Failed(error) => return self.of_failure(&error, around),
            QueryResult::Ok(_) => return self.out_of_step(around),
        };
        match self.asked.take() {
            Some(Asked::Keys(question)) => match around.assembler.gate_mut().answered(question, &rows) {
                Ok(()) => Did::Moved,
                Err(halt) => Did::Halt(halt),
            },
            Some(Asked::Canary(pairs)) => {
                let (Some(ready), Some(table)) = (&mut self.ready, &self.table) else { return Did::Moved };
                if ready.said.said(pairs, &rows) {
                    return Did::Moved;
                }
                let halt = Halt::new(Code::SnapshotCollationDisagrees);
                Did::Halt(halt.of_table(&table.name.0, &table.name.1))
            }
            Some(Asked::Nothing) | None => Did::Moved,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, vec};

    use bytes::Bytes;

    use super::*;
    use crate::{
        binlog::rows::RowsHead,
        snapshot::rows::{Describe, DescribeStep},
        value::TableVersion,
    };

    fn table() -> (Arc<TableVersion>, CopyKey) {
        let answer = |rows: &[&[&str]]| ResultSet {
            rows: rows
                .iter()
                .map(|row| {
                    row.iter().map(|cell| (*cell != "-").then(|| Bytes::copy_from_slice(cell.as_bytes())))
                })
                .map(Iterator::collect)
                .collect(),
            ..ResultSet::default()
        };
        let text = ["utf8mb4", "utf8mb4_0900_ai_ci", "255", "8", "", "", ""];
        let name = [&["k", "1", "varchar", "varchar(8)", "NO", "32", "-", "-", "-"][..], &text].concat();
        let mut describe = Describe::new("d", "t");
        for answer in [
            answer(&[&["BASE TABLE", "InnoDB", "1", "1"]]),
            answer(&[&name]),
            answer(&[&["PRIMARY", "k", "-", "YES", "A"]]),
        ] {
            match describe.on_result(&answer).unwrap() {
                DescribeStep::More(next) => describe = next,
                DescribeStep::Done(done) => {
                    let key = done.key().unwrap();
                    return (Arc::new(done.version), key);
                }
            }
        }
        panic!("not described");
    }

    fn rows(table: &Arc<TableVersion>, keys: &[&str]) -> RowsEvent {
        let mut body = vec![0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0xff];
        for key in keys {
            body.extend([0, u8::try_from(key.len()).unwrap()]);
            body.extend(key.as_bytes());
        }
        let head = RowsHead::parse(30, &body).unwrap();
        RowsEvent::new(head, Arc::clone(table), body.into()).unwrap().validated().unwrap()
    }

    /// Rows `a`, `B`, `c` behind `before`, of whose neighbours the server says `said`.
    fn judged(before: Option<&str>, said: &[&str]) -> &'static str {
        let (table, key) = table();
        let before = before.map(|key| KeyParts([key.as_bytes().into()].into()));
        let mut ready = Ready::new(Some(rows(&table, &["a", "B", "c"])), Some(&key), before).unwrap();
        assert_eq!(ready.key, Some(KeyParts([b"c".as_slice().into()].into())));
        let Order::Asks(pairs) = ready.order(Some(&key)) else { return "nothing to ask" };
        assert_eq!(pairs.len(), said.len());
        let row = said.iter().map(|cell| (*cell != "NULL").then(|| Bytes::copy_from_slice(cell.as_bytes())));
        if !ready.said.said(pairs, &ResultSet { rows: vec![row.collect()], ..ResultSet::default() }) {
            return "no answer";
        }
        match ready.order(Some(&key)) {
            Order::Ascends => "ascends",
            Order::Disagrees => "disagrees",
            Order::Asks(_) => "asks again",
        }
    }

    #[test]
    fn rows_that_the_server_would_order_otherwise_are_noticed() {
        for (before, said, want) in [
            (None, &["-1", "-1"][..], "ascends"),
            (Some("Z"), &["-1", "-1", "-1"], "ascends"),
            (None, &["-1", "1"], "disagrees"),
            (None, &["0", "-1"], "disagrees"),
            // The chunk before this one ended with a key that comes behind.
            (Some("Z"), &["1", "-1", "-1"], "disagrees"),
            (None, &["-1", "NULL"], "no answer"),
            (None, &["-1", "2"], "no answer"),
        ] {
            assert_eq!(judged(before, said), want, "{before:?} {said:?}");
        }
    }

    #[test]
    fn a_large_chunk_is_looked_at_here_and_there() {
        let (table, key) = table();
        let keys: Vec<alloc::string::String> = (0..5_000).map(|n| alloc::format!("{n:05}")).collect();
        let keys: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
        let ready = Ready::new(Some(rows(&table, &keys)), Some(&key), None).unwrap();
        assert!(ready.canary.len() <= 257 && ready.canary.len() > 100, "{}", ready.canary.len());
        assert_eq!(ready.canary.last(), ready.key.as_ref());
    }
}
