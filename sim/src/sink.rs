//! A sink on the real interface: reads every value of a batch, then commits as its script says.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
};

use capstan_core::{
    binlog::rows::Row,
    deliver::{
        Ack, Batch, Change, Copies, Expected, FailureClass, Item, KeyParts, Op, Position, SchemaChange, Sink,
        SinkError, SnapshotRows, TableCopy, Unit,
    },
    value::Value,
};

use crate::{
    copied,
    hash::{Hash, tag},
    marks::blunders,
    store::{Application, Applied, Shared},
};

/// How an attempt at a batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Ok,
    /// Nothing is written; it may work the next time.
    Transient,
    /// It is written, and the answer is lost.
    AnswerLost,
    /// Nothing is written, and the answer is lost.
    NothingAndLost,
    /// The answer is lost now, and the write lands later.
    Late,
    /// It never answers, and nothing is written.
    Hang,
    /// It never answers, and the write lands later.
    HangLate,
    /// It will never work.
    Permanent,
}

/// A mistake of sink, store or driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blunder {
    /// A write does not ask what is stored.
    Unconditional,
    /// Part of a transaction that was aborted is kept.
    KeepAborted,
    /// Where the library owns the position, it is stored before the sink has applied the batch.
    StoreFirst,
    /// The canary: nothing is wrong, and it is told as a failure.
    Canary,
}

/// What the sink does with its next batch; times are absolute, µs.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// When it begins to read.
    pub begin_at: u64,
    /// How long it takes for each change.
    pub change_us: u64,
    /// How long it takes from the last change to its end.
    pub commit_us: u64,
    /// How that goes.
    pub outcome: Outcome,
    /// Where the library owns the position: it goes so with the store rather than with the sink.
    pub at_store: bool,
}

/// A write that lands when the world says so.
#[derive(Debug)]
pub struct Deferred {
    pub(crate) expected: Expected,
    pub(crate) position: Arc<Position>,
    pub(crate) units: Vec<Applied>,
    pub(crate) ops: Vec<copied::Op>,
    pub(crate) writer: u32,
}

/// What the world and the sink tell each other.
#[derive(Debug)]
pub struct Stage {
    /// The time.
    pub now: u64,
    /// When the sink wants to be polled next.
    pub wake: Option<u64>,
    /// What it is to do.
    pub script: Script,
    /// Writes that are under way and will land.
    pub deferred: Vec<Deferred>,
    /// What a batch was: its largest transaction in changes, and whether it was streamed.
    pub changes: u64,
    /// Whether the batch being read is a streamed one.
    pub streamed: bool,
    /// Whether a commit has happened whose answer is not given yet.
    pub committed: bool,
    /// The process.
    pub writer: u32,
    /// The position is kept beside the sink rather than in it.
    pub library: bool,
    /// What was stored when the batch was handed over.
    pub at_hand_over: Option<Arc<Position>>,
}

/// The sink.
#[derive(Clone, Debug)]
pub struct SimSink {
    store: Shared,
    stage: Arc<Mutex<Stage>>,
}

impl SimSink {
    /// A sink over this store.
    #[must_use]
    pub const fn new(store: Shared, stage: Arc<Mutex<Stage>>) -> Self {
        Self { store, stage }
    }

    /// Waits until a moment.
    async fn until(&self, at: u64) {
        poll_fn(|_| {
            let mut stage = lock(&self.stage);
            if stage.now >= at {
                stage.wake = None;
                return Poll::Ready(());
            }
            stage.wake = Some(at);
            Poll::Pending
        })
        .await;
    }

    fn now(&self) -> u64 {
        lock(&self.stage).now
    }

    async fn read(
        &self,
        batch: &mut Batch<'_>,
        script: Script,
        part: &mut Option<Applied>,
    ) -> Result<(Vec<Applied>, Vec<copied::Op>), SinkError> {
        let (mut units, mut ops) = (Vec::new(), Vec::new());
        let mut copies = batch.expected().position().map(|p| p.copies().clone()).unwrap_or_default();
        while let Some(unit) = batch.next().await? {
            match unit {
                Unit::Transaction(mut transaction) => {
                    let gtid = transaction.gtid().copied();
                    lock(&self.stage).streamed = transaction.is_streamed();
                    let (mut hash, mut changes) = (Hash::default(), 0);
                    loop {
                        match transaction.next().await? {
                            None => break,
                            Some(Item::Change(change)) => {
                                hash_change(&mut hash, &change)?;
                                copied_change(&change, &mut ops)?;
                                changes += 1;
                                *part = Some(Applied { gtid, hash: hash.0, changes });
                            }
                            Some(Item::SchemaChange(change)) => {
                                hash_schema_change(&mut hash, change);
                                ops.extend(change.gtid.map(copied::Op::Altered));
                            }
                        }
                        if script.change_us > 0 {
                            self.until(self.now() + script.change_us).await;
                        }
                        if script.outcome == Outcome::Transient && changes == 3 && transaction.is_streamed() {
                            // In the middle of it, with more to come.
                            return Err(SinkError::new(FailureClass::Transient, "write", None));
                        }
                    }
                    *part = None;
                    lock(&self.stage).changes += changes;
                    units.push(Applied { gtid, hash: hash.0, changes });
                }
                Unit::SchemaChange(change) => {
                    let mut hash = Hash::default();
                    hash_schema_change(&mut hash, change);
                    units.push(Applied { gtid: change.gtid, hash: hash.0, changes: 0 });
                    ops.extend(change.gtid.map(copied::Op::Altered));
                }
                Unit::SnapshotRows(rows) => copied_rows(rows, &mut copies, &mut ops)?,
                Unit::Progress(_) => {}
            }
        }
        Ok((units, ops))
    }
}

impl Sink for SimSink {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(lock(&self.store).position.as_deref().cloned())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        let script = lock(&self.stage).script;
        self.until(script.begin_at).await;
        let mut part = None;
        let expected = batch.expected().clone();
        let (units, ops) = match self.read(&mut batch, script, &mut part).await {
            Ok(read) => read,
            Err(error) => {
                if let Some(part) = part
                    && blunders(Blunder::KeepAborted)
                    && let Some(kept) = expected.position()
                {
                    let writer = lock(&self.stage).writer;
                    lock(&self.store).commit(&expected, &Arc::new(kept.clone()), vec![part], &[], writer)?;
                }
                return Err(error);
            }
        };
        let ack = batch.finish()?;
        if script.commit_us > 0 {
            self.until(self.now() + script.commit_us).await;
        }
        let write = Write { expected, position: Arc::new(ack.position().clone()), units, ops };
        if lock(&self.stage).library {
            self.apply_then_store(write, script).await?;
        } else {
            self.commit(write, script.outcome).await?;
        }
        Ok(ack)
    }
}

/// What a batch comes down to.
struct Write {
    expected: Expected,
    position: Arc<Position>,
    units: Vec<Applied>,
    ops: Vec<copied::Op>,
}

impl SimSink {
    /// The library owns the position: the sink applies, then the store stores, and anything may come between.
    async fn apply_then_store(&self, mut write: Write, script: Script) -> Result<(), SinkError> {
        let at = |here: bool| if here { script.outcome } else { Outcome::Ok };
        let at_sink = at(!script.at_store);
        let first = blunders(Blunder::StoreFirst);
        if first {
            self.commit(Write { units: write.units.clone(), ..write_of(&write) }, Outcome::Ok).await?;
        }
        match at_sink {
            Outcome::Ok => self.applied(&mut write),
            // What lands late lands at the store only; here it is as good as an answer that is lost.
            Outcome::AnswerLost | Outcome::Late => {
                self.applied(&mut write);
                return failed(FailureClass::Unknown);
            }
            Outcome::Transient => return failed(FailureClass::Transient),
            Outcome::NothingAndLost => return failed(FailureClass::Unknown),
            Outcome::Hang => return std::future::pending().await,
            Outcome::HangLate => {
                self.applied(&mut write);
                return std::future::pending().await;
            }
            Outcome::Permanent => return failed(FailureClass::Permanent),
        }
        // The world may end the process here, between the sink's write and the store's.
        self.linger().await;
        if first {
            return Ok(());
        }
        self.commit(write, at(script.at_store)).await
    }

    fn applied(&self, write: &mut Write) {
        let stage = lock(&self.stage);
        let mut store = lock(&self.store);
        let target = &mut store.target;
        target.apply(&std::mem::take(&mut write.ops));
        target.overtaken |= stage.writer < target.youngest;
        target.youngest = target.youngest.max(stage.writer);
        let application = Application {
            writer: stage.writer,
            at_hand_over: stage.at_hand_over.clone(),
            expected: write.expected.position().cloned(),
            after: Arc::clone(&write.position),
            units: write.units.clone(),
        };
        store.applied.push(application);
    }

    /// One atomic write on its condition, as the script wants it.
    async fn commit(&self, write: Write, outcome: Outcome) -> Result<(), SinkError> {
        let writer = lock(&self.stage).writer;
        let Write { expected, position, units, ops } = write;
        match outcome {
            Outcome::Ok => {
                lock(&self.store).commit(&expected, &position, units, &ops, writer)?;
                // The world may end the process here, between commit and answer.
                self.linger().await;
                Ok(())
            }
            Outcome::Transient => failed(FailureClass::Transient),
            Outcome::AnswerLost => {
                lock(&self.store).commit(&expected, &position, units, &ops, writer)?;
                failed(FailureClass::Unknown)
            }
            Outcome::NothingAndLost => failed(FailureClass::Unknown),
            Outcome::Late => {
                lock(&self.stage).deferred.push(Deferred { expected, position, units, ops, writer });
                failed(FailureClass::Unknown)
            }
            Outcome::Hang => std::future::pending().await,
            Outcome::HangLate => {
                lock(&self.stage).deferred.push(Deferred { expected, position, units, ops, writer });
                std::future::pending().await
            }
            Outcome::Permanent => failed(FailureClass::Permanent),
        }
    }

    /// A moment in which something is durable and nobody knows it yet.
    async fn linger(&self) {
        lock(&self.stage).committed = true;
        let mut again = true;
        poll_fn(|_| match std::mem::take(&mut again) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        lock(&self.stage).committed = false;
    }
}

fn write_of(write: &Write) -> Write {
    Write {
        expected: write.expected.clone(),
        position: Arc::clone(&write.position),
        units: Vec::new(),
        ops: Vec::new(),
    }
}

fn failed(class: FailureClass) -> Result<(), SinkError> {
    Err(SinkError::new(class, "commit", None))
}

/// Locks what nothing ever poisons: the simulator has one thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("one thread")
}

/// A row of a table that is copied: its key and its hash.
fn handed(row: Option<Row<'_>>) -> Result<copied::Handed, SinkError> {
    let (mut key, mut hash) = (0, Hash::default());
    let Some(row) = row else { return Ok((key, hash.0)) };
    row.each(|at, value| {
        if let Value::Int(n) = value {
            if at == 0 {
                key = n;
            }
            hash.number(at as u8, n.cast_unsigned());
        } else if let Value::Blob(bytes) = value {
            hash.bytes(at as u8, bytes);
        } else if !matches!(value, Value::Null) {
            hash_value(&mut hash, value);
        }
    })?;
    Ok((key, hash.0))
}

fn copied_change(change: &Change<'_>, ops: &mut Vec<copied::Op>) -> Result<(), SinkError> {
    let Some(table) = copied::number(change.table.schema(), change.table.table()) else { return Ok(()) };
    ops.push(match change.op {
        Op::Insert => copied::Op::Insert(table, handed(change.after)?),
        Op::Update => copied::Op::Update(table, handed(change.before)?, handed(change.after)?),
        Op::Delete => copied::Op::Delete(table, handed(change.before)?),
    });
    Ok(())
}

/// A chunk, and how far it takes its table's copy.
fn copied_rows(
    mut rows: SnapshotRows<'_>,
    copies: &mut Copies,
    ops: &mut Vec<copied::Op>,
) -> Result<(), SinkError> {
    let Some(chunk) = rows.chunk() else { return Ok(()) };
    let Some(table) = copied::number(chunk.table.schema(), chunk.table.table()) else {
        rows.skip();
        return Ok(());
    };
    let name = (String::from(chunk.table.schema()), String::from(chunk.table.table()));
    let before = copies.get(&name).cloned().unwrap_or_else(TableCopy::waiting);
    let after = chunk.advance.copies.get(&name).cloned().unwrap_or_else(|| before.clone());
    let key = |key: &Option<KeyParts>| key.as_ref().and_then(crate::oracle::copy::key);
    let to = if chunk.last { key(&before.upto) } else { key(&after.key) };
    ops.push(copied::Op::Chunk { table, first: chunk.number == 0, range: (key(&before.key), to) });
    copies.insert(name, after);
    while let Some(change) = rows.next()? {
        ops.push(copied::Op::Copied(table, handed(change.after)?));
    }
    Ok(())
}

/// Adds a change as a sink was handed it.
///
/// # Errors
/// A value that cannot be decoded.
pub fn hash_change(hash: &mut Hash, change: &Change<'_>) -> Result<(), SinkError> {
    let op = match change.op {
        Op::Insert => tag::INSERT,
        Op::Update => tag::UPDATE,
        Op::Delete => tag::DELETE,
    };
    hash.bytes(op, change.table.schema().as_bytes());
    hash.bytes(op, change.table.table().as_bytes());
    for row in change.before.iter().chain(&change.after) {
        row.each(|_, value| hash_value(hash, value))?;
    }
    Ok(())
}

fn hash_value(hash: &mut Hash, value: Value<'_>) {
    match value {
        Value::Null => hash.number(tag::NULL, 0),
        Value::Int(n) => hash.number(tag::INT, n.cast_unsigned()),
        Value::UInt(n) => hash.number(tag::UINT, n),
        Value::Double(n) => hash.number(tag::DOUBLE, n.to_bits()),
        Value::Text(text) => hash.bytes(tag::TEXT, text.as_bytes()),
        Value::Blob(bytes) => hash.bytes(tag::BLOB, bytes),
        Value::Enum(member) => hash.number(tag::ENUM, u64::from(member.index())),
        Value::Absent
        | Value::Float(_)
        | Value::Decimal(_)
        | Value::Bit(_)
        | Value::Year(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Timestamp(_)
        | Value::Binary(_)
        | Value::Set(_)
        | Value::Json(_)
        | Value::Geometry(_)
        | Value::Vector(_) => hash.number(tag::OTHER, 0),
    }
}

/// Adds a schema change as a sink was handed it.
pub fn hash_schema_change(hash: &mut Hash, change: &SchemaChange) {
    hash.bytes(tag::SCHEMA_CHANGE, change.statement.as_bytes());
}
