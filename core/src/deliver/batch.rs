//! What a sink is handed: a batch of whole units, read once from front to back.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::{
    fmt,
    future::poll_fn,
    task::{Context, Poll},
};

use super::{
    copy::SnapshotChunk,
    event::{Event, SchemaChange, Seq, TxBegin},
    position::{Expected, Position},
    sink::SinkError,
};
use crate::{
    binlog::rows::{Row, RowWalk, RowsEvent, RowsKind, VisitError, VisitRows},
    gtid::Gtid,
    time::SourceTime,
    value::TableVersion,
};

/// Brings the rest of a transaction that is handed over while it is still being read.
pub trait Feed: Send {
    /// The next event; `None`: there will be none, the driver has given the transaction up.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>>;

    /// As [`Feed::poll_next`], blocking the thread.
    fn wait_next(&mut self) -> Option<Event>;

    /// The sink has moved past an event that retained `bytes`.
    fn released(&mut self, bytes: usize);
}

/// Why a batch cannot be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// The source aborted the transaction: take back what was written of it and return this error.
    #[error("the transaction was aborted")]
    Aborted {
        /// It comes again from its start (the link dropped); otherwise it ended in `ROLLBACK`.
        comes_again: bool,
    },
    /// The sink left something unread without saying so ([`Transaction::skip`]).
    #[error("part of the batch was not read")]
    Unread,
}

/// Proof that a batch was read to its end, and the position to store with it.
///
/// Not `Clone`, and of use for its own batch only: it carries a number that is unique per attempt
/// and process.
#[must_use = "return it from apply once batch and position are durable"]
pub struct Ack {
    pub(super) position: Arc<Position>,
    pub(super) attempt: Attempt,
}

impl Ack {
    /// The position to store in the same atomic write as the batch.
    pub fn position(&self) -> &Position {
        &self.position
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ack({:?})", self.position)
    }
}

/// Names one attempt at one batch of one pipeline of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) pipeline: u64,
    pub(super) number: u64,
}

/// How far the sink has read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Between two units.
    Boundary,
    /// Inside a transaction, before the next item.
    Items,
    /// The item before was handed out by reference and is stepped over now.
    Handed,
    /// Inside a row event.
    Rows,
}

/// Everything a batch owns; moved to the sink's thread and back as one value.
pub struct BatchState {
    pub(super) events: Vec<Event>,
    pub(super) next: usize,
    pub(super) feed: Option<Box<dyn Feed>>,
    pub(super) expected: Expected,
    pub(super) base: Arc<Position>,
    /// The position as far as the batch was read.
    pub(super) position: Position,
    /// The position of the whole batch, once it was read to its end.
    pub(super) folded: Option<Arc<Position>>,
    pub(super) attempt: Attempt,
    pub(super) upto: Seq,
    at: At,
    poison: Option<Incomplete>,
    walk: RowWalk,
}

impl fmt::Debug for BatchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchState({} events, at {}, {:?})", self.events.len(), self.next, self.poison)
    }
}

impl BatchState {
    pub(super) fn new(
        events: Vec<Event>,
        feed: Option<Box<dyn Feed>>,
        base: Arc<Position>,
        expected: Expected,
        attempt: Attempt,
        upto: Seq,
    ) -> Self {
        Self {
            events,
            next: 0,
            feed,
            expected,
            position: (*base).clone(),
            folded: None,
            base,
            attempt,
            upto,
            at: At::Boundary,
            poison: None,
            walk: RowWalk::default(),
        }
    }

    /// The batch, to be read from its start.
    pub fn batch(&mut self) -> Batch<'_> {
        Batch { state: self }
    }

    /// The batch for a [`super::BlockingSink`].
    pub fn blocking(&mut self) -> BlockingBatch<'_> {
        BlockingBatch(Batch { state: self })
    }

    /// Whether its one transaction is handed over while it is read.
    #[must_use]
    pub const fn is_streamed(&self) -> bool {
        self.feed.is_some()
    }

    /// Back to its start within the same attempt, for who calls a sink once more that has written nothing; `false`: it
    /// is handed over while it is read, and what was read of it is gone.
    pub fn read_again(&mut self) -> bool {
        let is_here = self.feed.is_none() || (self.next == 0 && self.at == At::Boundary);
        if is_here {
            self.rewind(self.attempt);
        }
        is_here
    }

    /// Back to its start, for another attempt.
    pub(super) fn rewind(&mut self, attempt: Attempt) {
        self.next = 0;
        self.position = (*self.base).clone();
        self.folded = None;
        self.at = At::Boundary;
        self.poison = None;
        self.attempt = attempt;
    }

    /// Whether an event is there without waiting; `None`: the feed must be asked.
    fn ready(&self) -> Option<bool> {
        if self.next < self.events.len() {
            Some(true)
        } else if self.feed.is_some() && self.at != At::Boundary {
            None
        } else {
            Some(false)
        }
    }

    /// Waits for the current event; `false`: the batch is at its end.
    async fn fill(&mut self) -> Result<bool, Incomplete> {
        loop {
            if let Some(ready) = self.ready() {
                return Ok(ready);
            }
            let Some(feed) = self.feed.as_mut() else { return Ok(false) };
            let event = poll_fn(|cx| feed.poll_next(cx)).await;
            self.fed(event)?;
        }
    }

    /// [`BatchState::fill`] on a thread of the sink's own.
    fn wait_fill(&mut self) -> Result<bool, Incomplete> {
        loop {
            if let Some(ready) = self.ready() {
                return Ok(ready);
            }
            let Some(feed) = self.feed.as_mut() else { return Ok(false) };
            let event = feed.wait_next();
            self.fed(event)?;
        }
    }

    fn fed(&mut self, event: Option<Event>) -> Result<(), Incomplete> {
        let Some(event) = event else { return Err(self.poisoned(Incomplete::Aborted { comes_again: true })) };
        // What was read of a streamed transaction is gone: keeping it would keep its bytes.
        self.events.clear();
        self.next = 0;
        self.events.push(event);
        Ok(())
    }

    const fn poisoned(&mut self, why: Incomplete) -> Incomplete {
        self.poison = Some(why);
        why
    }

    fn check(&self) -> Result<(), Incomplete> {
        match self.poison {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// Steps over the current event and gives its bytes back.
    fn step(&mut self) {
        if let (Some(feed), Some(event)) = (self.feed.as_mut(), self.events.get(self.next)) {
            match event.weight() {
                0 => {}
                weight => feed.released(weight),
            }
        }
        self.next += 1;
    }

    /// Steps to the next item of the transaction, as far as the events at hand go.
    fn step_in_transaction(&mut self) -> Result<Step, Incomplete> {
        self.check()?;
        if self.at == At::Handed {
            self.step();
            self.at = At::Items;
        }
        loop {
            let Some(event) = self.events.get(self.next) else { return Ok(Step::Wait) };
            match event {
                Event::Rows(_) if self.at == At::Rows => {
                    if self.walk.has_next() {
                        return Ok(Step::Row);
                    }
                    self.at = At::Items;
                    self.step();
                }
                Event::Rows(rows) => {
                    self.walk.start(rows);
                    self.at = At::Rows;
                }
                Event::SchemaChange(_) => {
                    self.at = At::Handed;
                    return Ok(Step::SchemaChange);
                }
                Event::Table(_) => self.step(),
                Event::TxCommit(commit) => {
                    if let Some(passed) = &commit.passed {
                        self.position.advance(passed);
                    }
                    if let Some(gtid) = &commit.gtid {
                        self.position.add(gtid, commit.original_commit);
                    }
                    self.upto = self.upto.max(commit.seq);
                    self.at = At::Boundary;
                    self.step();
                    return Ok(Step::End);
                }
                Event::TxAbort { comes_again, .. } => {
                    let comes_again = *comes_again;
                    return Err(self.poisoned(Incomplete::Aborted { comes_again }));
                }
                Event::Claim { .. } | Event::TxBegin(_) | Event::SnapshotRows(_) | Event::Progress { .. } => {
                    return Err(self.poisoned(Incomplete::Unread));
                }
            }
        }
    }

    /// The unit at a boundary: what it is, with everything but the borrow done.
    fn open_unit(&mut self) -> Result<bool, Incomplete> {
        self.check()?;
        match self.at {
            At::Boundary => {}
            At::Handed if self.schema_change_unit() => {
                // The one item of a schema change unit has been seen; its commit follows.
                while self.step_in_transaction()? != Step::End {}
            }
            At::Rows if self.in_chunk() && !self.walk.has_next() => self.end_chunk(),
            At::Handed | At::Items | At::Rows => return Err(self.poisoned(Incomplete::Unread)),
        }
        Ok(self.next < self.events.len())
    }

    fn in_chunk(&self) -> bool {
        matches!(self.events.get(self.next), Some(Event::SnapshotRows(_)))
    }

    const fn end_chunk(&mut self) {
        self.next += 1;
        self.at = At::Boundary;
    }

    fn schema_change_unit(&self) -> bool {
        matches!(
            self.next.checked_sub(1).and_then(|before| self.events.get(before)),
            Some(Event::TxBegin(TxBegin { schema_change: true, .. }))
        )
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Row,
    SchemaChange,
    End,
    Wait,
}

/// Whole units in order, read once, and the way to acknowledge them.
#[derive(Debug)]
pub struct Batch<'a> {
    state: &'a mut BatchState,
}

/// One unit of a batch.
#[derive(Debug)]
pub enum Unit<'a> {
    /// A committed transaction.
    Transaction(Transaction<'a>),
    /// A schema change with its own GTID.
    SchemaChange(&'a SchemaChange),
    /// A chunk of a table's initial copy.
    SnapshotRows(SnapshotRows<'a>),
    /// Nothing but a position: see [`Ack::position`].
    Progress(Progress<'a>),
}

/// Transactions were passed that hold nothing for this sink, or a new owner took over.
#[derive(Debug)]
pub struct Progress<'a> {
    position: &'a Position,
}

impl Progress<'_> {
    /// The position after it.
    pub const fn position(&self) -> &Position {
        self.position
    }
}

impl Batch<'_> {
    /// The next unit; `None` at the end. A transaction that was begun must be read to its end or
    /// skipped first.
    pub async fn next(&mut self) -> Result<Option<Unit<'_>>, Incomplete> {
        if !self.state.open_unit()? {
            return Ok(None);
        }
        self.unit()
    }

    /// What must still be stored for this batch to be written.
    #[must_use]
    pub const fn expected(&self) -> &Expected {
        &self.state.expected
    }

    /// The acknowledgement, once everything was read.
    pub fn finish(self) -> Result<Ack, Incomplete> {
        let state = self.state;
        if state.open_unit()? {
            return Err(state.poisoned(Incomplete::Unread));
        }
        // Cloning a set costs more than reading a small transaction, so the folded position is moved out
        // and shared from here on.
        let empty = Position::new(crate::gtid::GtidSet::new(), "");
        let position = match &state.folded {
            Some(folded) => Arc::clone(folded),
            None => Arc::new(core::mem::replace(&mut state.position, empty)),
        };
        state.folded = Some(Arc::clone(&position));
        Ok(Ack { position, attempt: state.attempt })
    }

    fn unit(&mut self) -> Result<Option<Unit<'_>>, Incomplete> {
        let state = &mut *self.state;
        let at = state.next;
        match state.events.get(at) {
            Some(Event::TxBegin(begin)) => {
                let schema_change = begin.schema_change;
                state.next += 1;
                state.at = At::Items;
                if !schema_change {
                    return Ok(Some(Unit::Transaction(Transaction { begin: at, state, gone: None })));
                }
                state.at = At::Handed;
                match state.events.get(state.next) {
                    Some(Event::SchemaChange(change)) => Ok(Some(Unit::SchemaChange(change))),
                    _ => {
                        state.poison = Some(Incomplete::Unread);
                        Err(Incomplete::Unread)
                    }
                }
            }
            Some(Event::SnapshotRows(chunk)) => {
                state.position.advance(&chunk.advance);
                state.upto = state.upto.max(chunk.seq);
                state.at = At::Rows;
                state.walk = RowWalk::default();
                if let Some(rows) = &chunk.rows {
                    state.walk.start(rows);
                }
                Ok(Some(Unit::SnapshotRows(SnapshotRows { state })))
            }
            Some(Event::Progress { advance, seq }) => {
                state.position.advance(advance);
                state.upto = state.upto.max(*seq);
                state.next += 1;
                Ok(Some(Unit::Progress(Progress { position: &state.position })))
            }
            Some(Event::Claim { position, seq }) => {
                state.position = (**position).clone();
                state.upto = state.upto.max(*seq);
                state.next += 1;
                Ok(Some(Unit::Progress(Progress { position: &state.position })))
            }
            Some(
                Event::Table(_)
                | Event::Rows(_)
                | Event::SchemaChange(_)
                | Event::TxCommit(_)
                | Event::TxAbort { .. },
            )
            | None => Err(state.poisoned(Incomplete::Unread)),
        }
    }
}

/// A committed transaction: a single-pass stream of items.
///
/// One above `stream_above` is handed over while it is read: then the next item may be
/// [`Incomplete::Aborted`].
#[derive(Debug)]
pub struct Transaction<'a> {
    state: &'a mut BatchState,
    /// Where its beginning is among the events, until the feed has replaced them.
    begin: usize,
    gone: Option<TxBegin>,
}

/// One item of a transaction.
#[derive(Debug)]
pub enum Item<'a> {
    /// A changed row.
    Change(Change<'a>),
    /// A schema change that is part of the group (`CREATE TABLE … SELECT`).
    SchemaChange(&'a SchemaChange),
}

/// One part of a transaction: what is handed over at once.
#[derive(Debug)]
pub enum Part<'a> {
    /// The rows of one row event, or what is left of them.
    Rows(Rows<'a>),
    /// A schema change that is part of the group (`CREATE TABLE … SELECT`).
    SchemaChange(&'a SchemaChange),
}

/// What happened to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// It came: `after` only.
    Insert,
    /// It changed: `before` and `after`.
    Update,
    /// It went: `before` only.
    Delete,
}

impl Op {
    /// Stable lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    const fn of(kind: RowsKind) -> Self {
        match kind {
            RowsKind::Insert => Self::Insert,
            RowsKind::Update | RowsKind::PartialUpdate => Self::Update,
            RowsKind::Delete => Self::Delete,
        }
    }
}

/// One changed row.
#[derive(Debug)]
pub struct Change<'a> {
    /// What happened.
    pub op: Op,
    /// The version of the table the row was written under.
    pub table: &'a Arc<TableVersion>,
    /// The row before, for update and delete.
    pub before: Option<Row<'a>>,
    /// The row after, for insert and update.
    pub after: Option<Row<'a>>,
}

impl Transaction<'_> {
    /// Its GTID; `None` only in files written without GTIDs.
    #[must_use]
    pub fn gtid(&self) -> Option<&Gtid> {
        self.begin().and_then(|begin| begin.gtid.as_ref())
    }

    /// When it was committed on the server we read from.
    #[must_use]
    pub fn committed_at(&self) -> Option<SourceTime> {
        self.begin().and_then(|begin| begin.committed_at)
    }

    /// Whether it is handed over while it is still being read: it can then end in
    /// [`Incomplete::Aborted`], so nothing of it may be shown before its end.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.begin().is_some_and(|begin| begin.streamed)
    }

    /// The next item; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<Item<'_>>, Incomplete> {
        let step = self.advance().await?;
        item(self.state, step)
    }

    /// The next part, or the rest of the current one; `None` at the transaction's end. As [`Transaction::next`], but
    /// a row event is handed over whole.
    pub async fn next_part(&mut self) -> Result<Option<Part<'_>>, Incomplete> {
        let step = self.advance().await?;
        part(self.state, step)
    }

    /// The rest of the current row event, or the next one, row by row without waiting in between;
    /// `None` at the transaction's end. A schema change in the group is an error here: read
    /// [`Transaction::next`] where those matter.
    pub async fn rows(&mut self) -> Result<Option<Rows<'_>>, Incomplete> {
        match self.advance().await? {
            Step::Row => Ok(Some(Rows { state: self.state })),
            Step::SchemaChange => Err(self.state.poisoned(Incomplete::Unread)),
            Step::End | Step::Wait => Ok(None),
        }
    }

    /// Reads no further, and says so.
    pub async fn skip(mut self) -> Result<(), Incomplete> {
        loop {
            match self.advance().await? {
                Step::Row => self.state.drop_rows(),
                Step::SchemaChange => {}
                Step::End | Step::Wait => return Ok(()),
            }
        }
    }

    fn begin(&self) -> Option<&TxBegin> {
        if self.gone.is_some() {
            return self.gone.as_ref();
        }
        match self.state.events.get(self.begin) {
            Some(Event::TxBegin(begin)) => Some(begin),
            _ => None,
        }
    }

    /// The feed is about to replace the events, so what is still needed of them is kept.
    fn keep_begin(&mut self) {
        if self.gone.is_none() && self.state.feed.is_some() {
            self.gone = self.begin().cloned();
        }
    }

    async fn advance(&mut self) -> Result<Step, Incomplete> {
        if self.state.at == At::Boundary {
            return Ok(Step::End);
        }
        loop {
            match self.state.step_in_transaction()? {
                Step::Wait => {
                    self.keep_begin();
                    if !self.state.fill().await? {
                        return Err(self.state.poisoned(Incomplete::Unread));
                    }
                }
                step @ (Step::Row | Step::SchemaChange | Step::End) => return Ok(step),
            }
        }
    }

    fn wait_advance(&mut self) -> Result<Step, Incomplete> {
        if self.state.at == At::Boundary {
            return Ok(Step::End);
        }
        loop {
            match self.state.step_in_transaction()? {
                Step::Wait => {
                    self.keep_begin();
                    if !self.state.wait_fill()? {
                        return Err(self.state.poisoned(Incomplete::Unread));
                    }
                }
                step @ (Step::Row | Step::SchemaChange | Step::End) => return Ok(step),
            }
        }
    }
}

impl BatchState {
    /// Steps over the rest of the current row event.
    fn drop_rows(&mut self) {
        if self.in_chunk() {
            return self.end_chunk();
        }
        self.at = At::Items;
        self.step();
    }
}

fn item(state: &mut BatchState, step: Step) -> Result<Option<Item<'_>>, Incomplete> {
    match step {
        Step::Row => change(state).map(|change| Some(Item::Change(change))),
        Step::SchemaChange => schema_change(state).map(|change| Some(Item::SchemaChange(change))),
        Step::End | Step::Wait => Ok(None),
    }
}

fn part(state: &mut BatchState, step: Step) -> Result<Option<Part<'_>>, Incomplete> {
    match step {
        Step::Row => Ok(Some(Part::Rows(Rows { state }))),
        Step::SchemaChange => schema_change(state).map(|change| Some(Part::SchemaChange(change))),
        Step::End | Step::Wait => Ok(None),
    }
}

fn schema_change(state: &BatchState) -> Result<&SchemaChange, Incomplete> {
    match state.events.get(state.next) {
        Some(Event::SchemaChange(change)) => Ok(change),
        _ => Err(Incomplete::Unread),
    }
}

fn change(state: &mut BatchState) -> Result<Change<'_>, Incomplete> {
    let Some(rows) = state.events.get(state.next).and_then(Event::rows) else {
        return Err(Incomplete::Unread);
    };
    match state.walk.next(rows) {
        Ok(Some(row)) => Ok(Change {
            op: Op::of(rows.kind()),
            table: rows.table(),
            before: row.before(),
            after: row.after(),
        }),
        // The core walked this event before it was emitted, so this is no outcome of outside bytes.
        Ok(None) | Err(_) => {
            state.poison = Some(Incomplete::Unread);
            Err(Incomplete::Unread)
        }
    }
}

/// The rows of one row event.
#[derive(Debug)]
pub struct Rows<'a> {
    state: &'a mut BatchState,
}

impl Rows<'_> {
    /// What happened to all of them.
    #[must_use]
    pub fn op(&self) -> Option<Op> {
        self.event().map(|rows| Op::of(rows.kind()))
    }

    /// The version of the table they were written under.
    #[must_use]
    pub fn table(&self) -> Option<&Arc<TableVersion>> {
        self.event().map(RowsEvent::table)
    }

    /// The next row; `None` at the end of the event. All must be read, or [`Rows::skip`] said.
    #[allow(clippy::should_implement_trait, reason = "it lends")]
    pub fn next(&mut self) -> Result<Option<Change<'_>>, Incomplete> {
        self.state.check()?;
        let more = match self.state.events.get(self.state.next) {
            Some(Event::Rows(_) | Event::SnapshotRows(_)) if self.state.at == At::Rows => {
                self.state.walk.has_next()
            }
            _ => false,
        };
        if more { change(self.state).map(Some) } else { Ok(None) }
    }

    /// Hands every value of every row to the method of `to` for its kind ([`RowsEvent::visit`]), also those that
    /// [`Rows::next`] gave before. What a row costs beside its bytes is least here.
    ///
    /// # Errors
    /// A value that no server can have stored, and what `to` gives.
    pub fn visit(self, to: &mut impl for<'r> VisitRows<'r>) -> Result<(), SinkError> {
        self.take(|rows| rows.visit(to))
    }

    /// Hands the row event itself over: every row of it, also those that [`Rows::next`] gave before. Where `take`
    /// gives no error they are read.
    ///
    /// # Errors
    /// What `take` gives.
    pub fn take(self, take: impl FnOnce(&RowsEvent) -> Result<(), VisitError>) -> Result<(), SinkError> {
        self.state.check()?;
        let Some(rows) = self.event() else { return Ok(()) };
        match take(rows) {
            Ok(()) => {}
            Err(VisitError::Value(why)) => {
                return Err(SinkError::from(why).of_table(rows.table().schema(), rows.table().table()));
            }
            // The core walked this event before it was emitted, so this is no outcome of outside bytes.
            Err(VisitError::Rows(_)) => return Err(self.state.poisoned(Incomplete::Unread).into()),
        }
        self.state.drop_rows();
        Ok(())
    }

    /// Reads no further in this event, and says so.
    pub fn skip(self) {
        self.state.drop_rows();
    }

    fn event(&self) -> Option<&RowsEvent> {
        self.state.events.get(self.state.next).and_then(Event::rows)
    }
}

/// A chunk of a table's initial copy: rows that are in the table beside those of other chunks, and the
/// transactions they are exact for. All of it is there at once, so nothing in it waits.
///
/// Chunks of a table come in the order of its key, with the transactions of the stream between them. Those
/// change only what earlier chunks, or the stream itself, have delivered of the table.
///
/// Where the position is the library's, a chunk may come again, with the same number, and it is read anew then: from
/// another cut, with other rows, and its end may be another. What was deleted meanwhile is in it no more, and no delete
/// tells of that. So with a chunk that comes again all is void that the target has of the table behind the last row of
/// the chunk before it, up to its own last row (with [`SnapshotChunk::last`]: up to the end).
#[derive(Debug)]
pub struct SnapshotRows<'a> {
    state: &'a mut BatchState,
}

impl<'a> SnapshotRows<'a> {
    /// The chunk: its table version, number, GTID set and whether it is the table's last.
    ///
    /// With [`SnapshotChunk::number`] 0 the copy of the table begins: what the target has of it from before
    /// is void. A table without rows gives one chunk without rows that is the last.
    #[must_use]
    pub fn chunk(&self) -> Option<&SnapshotChunk> {
        match self.state.events.get(self.state.next) {
            Some(Event::SnapshotRows(chunk)) => Some(chunk),
            _ => None,
        }
    }

    /// Its next row, as an insert; `None` behind the last. All must be read, or [`SnapshotRows::skip`] said.
    #[allow(clippy::should_implement_trait, reason = "it lends")]
    pub fn next(&mut self) -> Result<Option<Change<'_>>, Incomplete> {
        self.state.check()?;
        let more = self.state.at == At::Rows && self.state.in_chunk() && self.state.walk.has_next();
        if more { change(self.state).map(Some) } else { Ok(None) }
    }

    /// Its rows as those of one row event.
    #[must_use]
    pub const fn rows(self) -> Rows<'a> {
        Rows { state: self.state }
    }

    /// Reads no further in this chunk, and says so.
    pub fn skip(self) {
        self.state.end_chunk();
    }
}

/// [`Batch`] without `async`.
#[derive(Debug)]
pub struct BlockingBatch<'a>(Batch<'a>);

/// [`Unit`] without `async`.
#[derive(Debug)]
pub enum BlockingUnit<'a> {
    /// A committed transaction.
    Transaction(BlockingTransaction<'a>),
    /// A schema change with its own GTID.
    SchemaChange(&'a SchemaChange),
    /// A chunk of a table's initial copy.
    SnapshotRows(SnapshotRows<'a>),
    /// Nothing but a position.
    Progress(Progress<'a>),
}

/// [`Transaction`] without `async`.
#[derive(Debug)]
pub struct BlockingTransaction<'a>(Transaction<'a>);

impl BlockingBatch<'_> {
    /// As [`Batch::next`].
    #[allow(clippy::should_implement_trait, reason = "it lends")]
    pub fn next(&mut self) -> Result<Option<BlockingUnit<'_>>, Incomplete> {
        if !self.0.state.open_unit()? {
            return Ok(None);
        }
        Ok(self.0.unit()?.map(|unit| match unit {
            Unit::Transaction(transaction) => BlockingUnit::Transaction(BlockingTransaction(transaction)),
            Unit::SchemaChange(change) => BlockingUnit::SchemaChange(change),
            Unit::SnapshotRows(rows) => BlockingUnit::SnapshotRows(rows),
            Unit::Progress(progress) => BlockingUnit::Progress(progress),
        }))
    }

    /// As [`Batch::expected`].
    #[must_use]
    pub const fn expected(&self) -> &Expected {
        self.0.expected()
    }

    /// As [`Batch::finish`].
    pub fn finish(self) -> Result<Ack, Incomplete> {
        self.0.finish()
    }
}

impl BlockingTransaction<'_> {
    /// As [`Transaction::gtid`].
    #[must_use]
    pub fn gtid(&self) -> Option<&Gtid> {
        self.0.gtid()
    }

    /// As [`Transaction::committed_at`].
    #[must_use]
    pub fn committed_at(&self) -> Option<SourceTime> {
        self.0.committed_at()
    }

    /// As [`Transaction::is_streamed`].
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.0.is_streamed()
    }

    /// As [`Transaction::next`].
    #[allow(clippy::should_implement_trait, reason = "it lends")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Incomplete> {
        let step = self.0.wait_advance()?;
        item(self.0.state, step)
    }

    /// As [`Transaction::next_part`].
    pub fn next_part(&mut self) -> Result<Option<Part<'_>>, Incomplete> {
        let step = self.0.wait_advance()?;
        part(self.0.state, step)
    }

    /// As [`Transaction::skip`].
    pub fn skip(mut self) -> Result<(), Incomplete> {
        loop {
            match self.0.wait_advance()? {
                Step::Row => self.0.state.drop_rows(),
                Step::SchemaChange => {}
                Step::End | Step::Wait => return Ok(()),
            }
        }
    }
}
