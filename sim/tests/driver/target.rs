//! The sink: rows and position in one place, moved together, and checked against the source's history with
//! every commit.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use capstan::{
    Ack, Batch, BlockingBatch, BlockingSink, BlockingUnit, Expected, FailureClass, Item, Position, Sink,
    SinkError, Unit, core::time::Now, net::Net,
};
use sim::{
    hash::Hash,
    sink::{hash_change, hash_schema_change},
    store::Applied,
};

use super::{lock, source::Origin};

/// What the sink does with its next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    Take,
    /// Waits so long before it reads, and then before it commits.
    Slow(Duration),
    /// Waits so long after each change.
    Sips(Duration),
    Transient,
    /// Reads one change and fails.
    HalfThenTransient,
    /// Commits, and the answer is lost.
    AnswerLost,
    /// Does not commit, and the answer is lost.
    NothingAndLost,
    /// The answer is lost at once, and the commit lands so much later.
    LandsLate(Duration),
    /// Never answers, and does not commit.
    Hang,
    /// Commits and never answers.
    CommitThenHang,
    Permanent,
    Panic,
}

impl Act {
    const fn name(self) -> &'static str {
        match self {
            Self::Take => "take",
            Self::Slow(_) => "slow",
            Self::Sips(_) => "sips",
            Self::Transient => "transient",
            Self::HalfThenTransient => "half then transient",
            Self::AnswerLost => "answer lost",
            Self::NothingAndLost => "nothing and lost",
            Self::LandsLate(_) => "lands late",
            Self::Hang => "hang",
            Self::CommitThenHang => "commit then hang",
            Self::Permanent => "permanent",
            Self::Panic => "panic",
        }
    }
}

/// What is durable, and what has been asked of it.
pub struct Target {
    origin: Origin,
    pub written: Vec<Applied>,
    pub position: Option<Position>,
    late: Vec<Late>,
    /// Commits that landed after their answer was lost.
    pub landed_late: u64,
    /// Commits that their condition refused.
    pub refused: u64,
    /// Times the position was asked for.
    pub asked: u64,
    pub commits: u64,
    /// Transactions that were handed over while they were read.
    pub streamed: u64,
    /// Batches being applied right now: one, or none.
    pub applying: u64,
    /// Bytes of the rows that were handed over.
    pub changes: u64,
    /// Batches that the sink was handed, and those it has answered for.
    pub begun: u64,
    pub answered: u64,
    /// A commit has happened that was not answered for.
    unanswered: bool,
    pub acts: VecDeque<Act>,
    pub acted: BTreeMap<&'static str, u64>,
}

struct Late {
    at: Now,
    expected: Expected,
    position: Position,
    units: Vec<Applied>,
}

pub type Shared = Arc<Mutex<Target>>;

pub fn target(origin: &Origin) -> Shared {
    Arc::new(Mutex::new(Target {
        origin: origin.clone(),
        written: Vec::new(),
        position: None,
        late: Vec::new(),
        landed_late: 0,
        refused: 0,
        asked: 0,
        commits: 0,
        streamed: 0,
        applying: 0,
        changes: 0,
        begun: 0,
        answered: 0,
        unanswered: false,
        acts: VecDeque::new(),
        acted: BTreeMap::new(),
    }))
}

impl Target {
    /// One atomic write on a condition.
    fn commit(
        &mut self,
        expected: &Expected,
        position: &Position,
        units: Vec<Applied>,
    ) -> Result<(), SinkError> {
        if let Err(mismatch) = expected.check(self.position.as_ref()) {
            self.refused += 1;
            return Err(mismatch.into());
        }
        self.written.extend(units);
        self.position = Some(position.clone());
        self.commits += 1;
        self.check();
        Ok(())
    }

    /// The oracle: what is written is the source's history as far as the position says, row for row, once and
    /// in order. It knows nothing of how it came here.
    fn check(&self) {
        let Some(position) = &self.position else { return };
        let history = self.origin.history();
        let want: Vec<Applied> = history
            .iter()
            .filter(|entry| entry.gtid.as_ref().is_some_and(|gtid| position.gtid_set().contains(gtid)))
            .filter_map(|entry| {
                let (hash, changes) = entry.content?;
                Some(Applied { gtid: entry.gtid, hash, changes })
            })
            .collect();
        let numbers = |units: &[Applied]| -> Vec<u64> {
            units.iter().filter_map(|unit| unit.gtid.map(|gtid| gtid.gno())).collect()
        };
        assert!(
            self.written == want,
            "at {}: the sink holds {:?}, the history is {:?}",
            position.gtid_set(),
            numbers(&self.written),
            numbers(&want)
        );
    }

    /// Everything that was committed is here, once.
    pub fn assert_complete(&self) {
        self.check();
        let position = self.position.as_ref().map(|position| position.gtid_set().to_string());
        assert_eq!(position, Some(self.origin.executed().to_string()), "the position is not the source's");
    }

    pub fn is_complete(&self) -> bool {
        self.position.as_ref().is_some_and(|position| *position.gtid_set() == self.origin.executed())
    }

    pub fn acted(&self, act: Act) -> u64 {
        self.acted.get(act.name()).copied().unwrap_or_default()
    }

    /// The last batch was committed, and its answer has not left the sink.
    pub const fn committed_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Commits that were under way when their answer was lost land when it is time, or are refused.
    fn land(&mut self, now: Now) {
        while let Some(at) = self.late.iter().position(|late| late.at <= now) {
            let late = self.late.remove(at);
            if self.commit(&late.expected, &late.position, late.units).is_ok() {
                self.landed_late += 1;
            }
        }
    }

    fn begin(&mut self) -> Act {
        let act = self.acts.pop_front().unwrap_or(Act::Take);
        *self.acted.entry(act.name()).or_default() += 1;
        self.applying += 1;
        self.begun += 1;
        self.unanswered = false;
        act
    }
}

/// Counts a batch as being applied, until it is dropped.
struct Applying(Shared);

impl Drop for Applying {
    fn drop(&mut self) {
        lock(&self.0).applying -= 1;
    }
}

/// The async sink.
pub struct Memory<N> {
    net: N,
    target: Shared,
}

impl<N: Net> Memory<N> {
    pub fn new(net: N, target: &Shared) -> Self {
        Self { net, target: target.clone() }
    }

    async fn pass(&self, duration: Duration) {
        self.net.sleep_until(self.net.now().after(duration)).await;
    }

    /// An await point that other tasks run in.
    async fn pause(&self) {
        let mut again = true;
        std::future::poll_fn(|cx| {
            if !std::mem::take(&mut again) {
                return std::task::Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
    }

    async fn read(&self, act: Act, batch: &mut Batch<'_>) -> Result<Vec<Applied>, SinkError> {
        let mut units = Vec::new();
        while let Some(unit) = batch.next().await? {
            match unit {
                Unit::Transaction(mut transaction) => {
                    let gtid = transaction.gtid().copied();
                    if transaction.is_streamed() {
                        lock(&self.target).streamed += 1;
                    }
                    let (mut hash, mut changes) = (Hash::default(), 0);
                    while let Some(item) = transaction.next().await? {
                        match item {
                            Item::Change(change) => {
                                hash_change(&mut hash, &change)?;
                                changes += 1;
                            }
                            Item::SchemaChange(change) => hash_schema_change(&mut hash, change),
                        }
                        lock(&self.target).changes += 1;
                        match act {
                            Act::HalfThenTransient => return lost(FailureClass::Transient),
                            Act::Sips(wait) => self.pass(wait).await,
                            _ if changes % 4 == 1 => self.pause().await,
                            _ => {}
                        }
                    }
                    units.push(Applied { gtid, hash: hash.0, changes });
                }
                Unit::SchemaChange(change) => {
                    let mut hash = Hash::default();
                    hash_schema_change(&mut hash, change);
                    units.push(Applied { gtid: change.gtid, hash: hash.0, changes: 0 });
                }
                Unit::SnapshotRows(rows) => rows.skip(),
                Unit::Progress(_) => {}
            }
        }
        Ok(units)
    }
}

fn lost<T>(class: FailureClass) -> Result<T, SinkError> {
    Err(SinkError::new(class, "test", None))
}

impl<N: Net + 'static> Sink for Memory<N> {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.pause().await;
        let mut target = lock(&self.target);
        target.land(self.net.now());
        target.asked += 1;
        Ok(target.position.clone())
    }

    async fn apply(&mut self, batch: Batch<'_>) -> Result<Ack, SinkError> {
        let answer = self.take(batch).await;
        lock(&self.target).answered += 1;
        answer
    }
}

impl<N: Net> Memory<N> {
    async fn take(&self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        let act = lock(&self.target).begin();
        let _applying = Applying(self.target.clone());
        match act {
            Act::Transient => return lost(FailureClass::Transient),
            Act::NothingAndLost => return lost(FailureClass::Unknown),
            Act::Permanent => return lost(FailureClass::Permanent),
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("a sink of the tests panics"),
            Act::Slow(wait) => self.pass(wait).await,
            _ => {}
        }
        let units = self.read(act, &mut batch).await?;
        if let Act::Slow(wait) = act {
            self.pass(wait).await;
        }
        let expected = batch.expected().clone();
        let ack = batch.finish()?;
        let position = ack.position().clone();
        if let Act::LandsLate(after) = act {
            let at = self.net.now().after(after);
            lock(&self.target).late.push(Late { at, expected, position, units });
            return lost(FailureClass::Unknown);
        }
        self.pause().await;
        {
            let mut target = lock(&self.target);
            target.land(self.net.now());
            target.commit(&expected, &position, units)?;
            target.unanswered = true;
        }
        // The process may end here, between the commit and its answer.
        self.pause().await;
        if act != Act::CommitThenHang {
            lock(&self.target).unanswered = false;
        }
        match act {
            Act::AnswerLost => lost(FailureClass::Unknown),
            Act::CommitThenHang => std::future::pending().await,
            _ => Ok(ack),
        }
    }
}

/// The sink with a thread of its own. Its acts are those that need no clock; it waits at `gate` where an
/// async one would hang.
pub struct Blocking {
    target: Shared,
    gate: std::sync::mpsc::Receiver<()>,
}

impl Blocking {
    /// The sink, and what opens its gate once per message.
    pub fn new(target: &Shared) -> (Self, std::sync::mpsc::Sender<()>) {
        let (open, gate) = std::sync::mpsc::channel();
        (Self { target: target.clone(), gate }, open)
    }

    fn read(act: Act, batch: &mut BlockingBatch<'_>) -> Result<Vec<Applied>, SinkError> {
        let mut units = Vec::new();
        while let Some(unit) = batch.next()? {
            match unit {
                BlockingUnit::Transaction(mut transaction) => {
                    let gtid = transaction.gtid().copied();
                    let (mut hash, mut changes) = (Hash::default(), 0);
                    while let Some(item) = transaction.next()? {
                        match item {
                            Item::Change(change) => {
                                hash_change(&mut hash, &change)?;
                                changes += 1;
                            }
                            Item::SchemaChange(change) => hash_schema_change(&mut hash, change),
                        }
                        if act == Act::HalfThenTransient {
                            return lost(FailureClass::Transient);
                        }
                    }
                    units.push(Applied { gtid, hash: hash.0, changes });
                }
                BlockingUnit::SchemaChange(change) => {
                    let mut hash = Hash::default();
                    hash_schema_change(&mut hash, change);
                    units.push(Applied { gtid: change.gtid, hash: hash.0, changes: 0 });
                }
                BlockingUnit::SnapshotRows(rows) => rows.skip(),
                BlockingUnit::Progress(_) => {}
            }
        }
        Ok(units)
    }
}

impl BlockingSink for Blocking {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        let mut target = lock(&self.target);
        target.asked += 1;
        Ok(target.position.clone())
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let act = lock(&self.target).begin();
        let _applying = Applying(self.target.clone());
        match act {
            Act::Transient => return lost(FailureClass::Transient),
            Act::NothingAndLost => return lost(FailureClass::Unknown),
            Act::Permanent => return lost(FailureClass::Permanent),
            Act::Panic => panic!("a sink of the tests panics"),
            _ => {}
        }
        let units = Self::read(act, &mut batch)?;
        let expected = batch.expected().clone();
        if act == Act::Hang {
            let _ = self.gate.recv();
        }
        let ack = batch.finish()?;
        lock(&self.target).commit(&expected, ack.position(), units)?;
        if act == Act::AnswerLost { lost(FailureClass::Unknown) } else { Ok(ack) }
    }
}
