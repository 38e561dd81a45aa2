//! Batches for unit tests of a sink, made from the bytes of a binlog file.
//!
//! A [`Kit`] plays the library's part: it asks the sink for its position, takes the target over, hands out
//! batches and checks what comes back, without a server and without a loop.
//!
//! ```
//! use capstan::testkit::Kit;
//! # fn example(binlog: &[u8], sink: &mut impl capstan::BlockingSink) -> Result<(), Box<dyn std::error::Error>> {
//! let mut kit = Kit::from_binlog(binlog)?.stream_above(64 << 10).abort_once(2);
//! let position = kit.run_blocking(sink)?; // every batch, each once, as a pipeline would
//! # let _ = position;
//! # Ok(())
//! # }
//! ```

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use capstan_core::{
    assemble::{Assembler, Setup},
    binlog::{FileReader, rows::RowsKind},
    capture::CapturedSet,
    deliver::{
        Ack, BatchLimits, BatchState, BlockingSink, Copies, CopyState, Delivery, Event, Feed, Holds,
        Position, Push, Seq, Sink, SinkError, SnapshotChunk, TableCopy, TxBegin,
    },
    gtid::GtidSet,
    halt::{Code, Halt},
};

/// A pipeline without a server. See the [module's page](self).
pub struct Kit {
    file: Vec<u8>,
    stream_above: usize,
    limits: BatchLimits,
    abort: Option<usize>,
    snapshot: bool,
    owner: u64,
    delivery: Delivery,
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kit({} bytes, {:?})", self.file.len(), self.delivery)
    }
}

impl Kit {
    /// A kit over the bytes of a whole binlog file, as a server with `gtid_mode=ON` and full row images and
    /// metadata writes it.
    ///
    /// # Errors
    /// The halt that such a file would cause.
    pub fn from_binlog(file: impl Into<Vec<u8>>) -> Result<Self, Halt> {
        let kit = Self {
            file: file.into(),
            stream_above: 8 << 20,
            limits: BatchLimits::default(),
            abort: None,
            snapshot: false,
            owner: 1,
            delivery: Delivery::new(BatchLimits::default(), 0),
        };
        kit.events(&fresh())?;
        Ok(kit)
    }

    /// Transactions with more bytes of row events than this are streamed; 0: all of them.
    #[must_use]
    pub const fn stream_above(mut self, bytes: usize) -> Self {
        self.stream_above = bytes;
        self
    }

    /// How much a batch may hold.
    #[must_use]
    pub fn batch(mut self, limits: BatchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The `n`th transaction with rows of each start (from 1) is streamed, breaks off behind its first row
    /// event, and comes again.
    #[must_use]
    pub const fn abort_once(mut self, n: usize) -> Self {
        self.abort = Some(n);
        self
    }

    /// Transactions that are one row event of inserts come as chunks of an initial copy of their table.
    #[must_use]
    pub const fn snapshot(mut self) -> Self {
        self.snapshot = true;
        self
    }

    /// Another process: the number its position is marked with.
    #[must_use]
    pub const fn owner(mut self, mark: u64) -> Self {
        self.owner = mark;
        self
    }

    /// Starts from what the sink says it has stored; the first batch will take it over.
    ///
    /// # Errors
    /// The halt that the file causes behind that position.
    pub fn start(&mut self, stored: Option<Position>) -> Result<(), Halt> {
        self.delivery = Delivery::new(self.limits, self.owner);
        let _ = self.delivery.restart(stored.as_ref());
        let position = stored.unwrap_or_else(fresh).claimed(self.owner);
        let claim = Event::Claim { seq: Seq(0), position: Box::new(position.clone()) };
        let events = self.events(&position)?;
        for event in std::iter::once(claim).chain(events) {
            // No batch is out, so every event is queued.
            let (Push::Queued | Push::Feed(_)) = self.delivery.push(event);
        }
        Ok(())
    }

    /// The next batch; `None`: all were handed out, or one is.
    pub fn next_batch(&mut self) -> Option<BatchState> {
        self.delivery.next_batch(|| Box::new(Nothing))
    }

    /// The sink took the batch.
    ///
    /// # Errors
    /// An acknowledgement that is not this batch's.
    pub fn accept(&mut self, state: BatchState, ack: Ack) -> Result<(), capstan_core::deliver::AckRefused> {
        self.delivery.accept(state, ack).map(|_| ())
    }

    /// The sink did not take the batch and says that `stored` is stored: what that means. After
    /// [`Holds::Expected`] the same batch comes again by [`Kit::again`].
    pub fn failed(&mut self, state: BatchState, stored: Option<&Position>) -> Holds {
        self.delivery.failed(state);
        self.delivery.read_back(stored)
    }

    /// The batch that failed, once more.
    pub fn again(&mut self) -> Option<BatchState> {
        self.delivery.reapply()
    }

    /// Hands every batch to a blocking sink; gives the position it ends with.
    ///
    /// # Errors
    /// The sink's first failure. An abort is none.
    pub fn run_blocking(&mut self, sink: &mut impl BlockingSink) -> Result<Option<Position>, SinkError> {
        let stored = sink.position()?;
        self.start(stored).map_err(|halt| SinkError::halt(halt.code, "binlog"))?;
        while let Some(mut state) = self.next_batch() {
            let result = sink.apply(state.blocking());
            let failed = result.as_ref().err().map(SinkError::class);
            self.settle(state, result, failed.map(|_| sink.position()).transpose()?)?;
        }
        sink.position()
    }

    /// Hands every batch to a sink that never has to wait for anything but itself.
    ///
    /// # Errors
    /// The sink's first failure. An abort is none.
    pub async fn run(&mut self, sink: &mut impl Sink) -> Result<Option<Position>, SinkError> {
        let stored = sink.position().await?;
        self.start(stored).map_err(|halt| SinkError::halt(halt.code, "binlog"))?;
        while let Some(mut state) = self.next_batch() {
            let result = sink.apply(state.batch()).await;
            let stored = match result {
                Ok(_) => None,
                Err(_) => Some(sink.position().await?),
            };
            self.settle(state, result, stored)?;
        }
        sink.position().await
    }

    fn settle(
        &mut self,
        state: BatchState,
        result: Result<Ack, SinkError>,
        stored: Option<Option<Position>>,
    ) -> Result<(), SinkError> {
        match result {
            Ok(ack) => self.accept(state, ack).map_err(|_| SinkError::halt(Code::SinkFailed, "acknowledge")),
            Err(error) if error.class() == capstan_core::deliver::FailureClass::Aborted => {
                match self.failed(state, stored.flatten().as_ref()) {
                    Holds::Expected => Ok(()),
                    // Something of an aborted transaction took effect.
                    Holds::Committed { .. } | Holds::Moved | Holds::Foreign(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The file's events behind `position`.
    fn events(&self, position: &Position) -> Result<VecDeque<Event>, Halt> {
        let events = self.assemble(position)?;
        if self.snapshot {
            return Ok(copied(events, position));
        }
        let Some(nth) = self.abort else { return Ok(events) };
        let (mut out, mut copy) = (VecDeque::new(), self.assemble(position)?.into_iter());
        let mut seen = 0;
        let mut shift = 0;
        for event in events {
            let begins = matches!(&event, Event::TxBegin(begin) if !begin.schema_change);
            seen += usize::from(begins);
            if begins && seen == nth {
                // One number for the part, the next for the whole, and so on behind it.
                out.extend(broken_off(&mut copy));
                shift = 1;
            } else {
                let _ = copy.next();
            }
            out.push_back(shifted(event, shift));
        }
        Ok(out)
    }

    fn assemble(&self, position: &Position) -> Result<VecDeque<Event>, Halt> {
        let mut reader = FileReader::new(1 << 30);
        reader.feed(&self.file);
        let mut assembler = Assembler::new(Setup {
            captured: CapturedSet::everything(),
            lower_case_table_names: 0,
            position: position.clone().without_copies(),
            verify: BTreeMap::new(),
            until: None,
            checksum: true,
            stream_above: self.stream_above,
            row_event_max: 1 << 30,
            offline: false,
        });
        let (mut next, mut out) = (Seq(1), VecDeque::new());
        loop {
            match reader.next_event() {
                Ok(Some((offset, event))) => {
                    assembler.file_event(event, "binlog", offset)?;
                    while let Some(event) = assembler.next_emitted(&mut next) {
                        out.push_back(event);
                    }
                }
                Ok(None) if reader.finish().is_ok() => break,
                Ok(None) | Err(_) => return Err(Halt::new(Code::EventMalformed)),
            }
        }
        out.extend(assembler.take_progress(&mut next));
        Ok(out)
    }
}

/// Nothing processed, everything captured.
fn fresh() -> Position {
    Position::new(GtidSet::new(), CapturedSet::everything().canonical())
}

/// The same events with chunks of a copy where inserts were.
fn copied(events: VecDeque<Event>, position: &Position) -> VecDeque<Event> {
    let mut copies = position.copies().clone();
    let (mut out, mut held) = (VecDeque::new(), Vec::new());
    for event in events {
        let ends = matches!(event, Event::TxCommit(_) | Event::TxAbort { .. });
        held.push(event);
        if ends {
            match chunk(&held, &mut copies) {
                Some(chunk) => out.push_back(Event::SnapshotRows(Box::new(chunk))),
                None => out.extend(held.drain(..)),
            }
            held.clear();
        }
    }
    out.extend(held);
    let mut ended = BTreeSet::new();
    for event in out.iter_mut().rev() {
        if let Event::SnapshotRows(chunk) = event
            && ended.insert((chunk.table.schema().to_owned(), chunk.table.table().to_owned()))
        {
            chunk.last = true;
            for copy in chunk.advance.copies.values_mut() {
                *copy = copy.done();
            }
        }
    }
    out
}

/// The chunk that a transaction of inserts is.
fn chunk(transaction: &[Event], copies: &mut Copies) -> Option<SnapshotChunk> {
    let mut rows = None;
    for event in transaction {
        match event {
            Event::Rows(event) if rows.is_none() && event.kind() == RowsKind::Insert => {
                rows = Some(event.clone())
            }
            Event::TxBegin(_) | Event::Table(_) | Event::TxCommit(_) => {}
            Event::Rows(_)
            | Event::SchemaChange(_)
            | Event::TxAbort { .. }
            | Event::Claim { .. }
            | Event::SnapshotRows(_)
            | Event::Progress { .. } => return None,
        }
    }
    let (Some(rows), Some(Event::TxCommit(commit))) = (rows, transaction.last()) else { return None };
    let table = Arc::clone(rows.table());
    let name = (table.schema().to_owned(), table.table().to_owned());
    let copy = copies.entry(name.clone()).or_insert_with(TableCopy::waiting);
    let (number, gtid) = (copy.chunks, commit.gtid?);
    let gtid_set: GtidSet = std::iter::once(gtid).collect();
    copy.state = CopyState::Copying;
    copy.chunks += 1;
    copy.rows += rows.changes();
    copy.gtid_set = gtid_set.clone();
    let mut advance = commit.passed.clone().unwrap_or_default();
    advance.add(gtid, commit.original_commit);
    advance.copies.insert(name, copy.clone());
    Some(SnapshotChunk { seq: commit.seq, table, rows: Some(rows), number, gtid_set, last: false, advance })
}

/// The beginning of the transaction that `copy` stands before, up to its first row event, and an abort.
fn broken_off(copy: &mut impl Iterator<Item = Event>) -> Vec<Event> {
    let mut out = Vec::new();
    let mut number = Seq::default();
    for event in copy.by_ref() {
        match event {
            Event::TxBegin(begin) => {
                number = begin.seq;
                out.push(Event::TxBegin(TxBegin { streamed: true, ..begin }));
            }
            Event::Rows(_) => {
                out.push(event);
                break;
            }
            Event::TxCommit(_) | Event::TxAbort { .. } => break,
            Event::Claim { .. }
            | Event::Table(_)
            | Event::SchemaChange(_)
            | Event::SnapshotRows(_)
            | Event::Progress { .. } => {
                out.push(event);
            }
        }
    }
    out.push(Event::TxAbort { seq: number, comes_again: true });
    out
}

fn shifted(event: Event, by: u64) -> Event {
    let shift = |seq: Seq| Seq(seq.0 + by);
    match event {
        Event::Claim { seq, position } => Event::Claim { seq: shift(seq), position },
        Event::TxBegin(begin) => Event::TxBegin(TxBegin { seq: shift(begin.seq), ..begin }),
        Event::TxCommit(mut commit) => {
            commit.seq = shift(commit.seq);
            Event::TxCommit(commit)
        }
        Event::TxAbort { seq, comes_again } => Event::TxAbort { seq: shift(seq), comes_again },
        Event::Progress { seq, advance } => Event::Progress { seq: shift(seq), advance },
        Event::SnapshotRows(mut chunk) => {
            chunk.seq = shift(chunk.seq);
            Event::SnapshotRows(chunk)
        }
        Event::Table(_) | Event::Rows(_) | Event::SchemaChange(_) => event,
    }
}

/// Everything is in the batch already.
struct Nothing;

impl Feed for Nothing {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Event>> {
        Poll::Ready(None)
    }

    fn wait_next(&mut self) -> Option<Event> {
        None
    }

    fn released(&mut self, _: usize) {}
}

/// Runs a future that has nothing to wait for. `None`: it waits.
pub fn ready<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
