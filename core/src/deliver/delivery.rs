//! Cuts the sequence into batches and checks what comes back.

use alloc::{boxed::Box, collections::VecDeque, sync::Arc, vec::Vec};
use core::{fmt, marker::PhantomData};

use super::{
    batch::{Ack, Attempt, BatchState, Feed},
    event::{Event, Seq},
    position::{Expected, Position},
};
use crate::{
    binlog::rows::RowsEvent,
    halt::Code,
    probe::{Mark, Mutant, Probe, Quiet},
};

/// How much one batch may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Most units; at least 1.
    pub max_transactions: usize,
    /// Most bytes of row events, unless a single unit has more.
    pub max_bytes: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { max_transactions: 1, max_bytes: 4 << 20 }
    }
}

/// Where a pushed event went.
#[derive(Debug)]
#[must_use = "an event for the feed is lost if it is not carried there"]
pub enum Push {
    /// It waits for its batch.
    Queued,
    /// It belongs to the transaction that is being handed over: carry it to its [`Feed`].
    Feed(Event),
}

/// What a position that was read back says about the batch that was out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What it is expected to hold: nothing of a batch that was out took effect.
    Expected,
    /// The batch that was out, up to this unit: it took effect though its answer was lost.
    Committed {
        /// Its last unit.
        upto: Seq,
    },
    /// An earlier attempt of ours that was given up has landed since, or, before we claimed the target,
    /// its owner has gone on: a new dial goes on from there.
    Moved,
    /// Something this pipeline did not write; the code says what.
    Foreign(Code),
}

/// Why an acknowledgement is not taken. Always a bug of the sink or the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckRefused {
    /// It belongs to another attempt or another pipeline.
    #[error("the acknowledgement belongs to another attempt")]
    OtherAttempt,
    /// No batch is out.
    #[error("no batch is out")]
    NothingOut,
}

/// The sequence between the core and the sink.
pub struct Delivery<P: Probe = Quiet> {
    limits: BatchLimits,
    pipeline: u64,
    attempts: u64,
    /// What is durable, as far as we know; `None` until the first answer.
    durable: Option<Option<Arc<Position>>>,
    /// Our epoch and mark, once the claim was pushed.
    me: Option<(u64, u64)>,
    queue: VecDeque<Event>,
    out: Option<Out>,
    /// A batch that failed and may be wanted again.
    kept: Option<BatchState>,
    /// The vector of the last batch, used again.
    spare: Vec<Event>,
    /// The sink gave a streamed transaction back before its end: what still comes of it is no unit.
    discards: bool,
    /// What failed can only come again over a new link, so nothing behind it may overtake it.
    waits_for_restart: bool,
    probe: PhantomData<fn() -> P>,
}

/// The batch that is out.
struct Out {
    attempt: Attempt,
    upto: Seq,
    next: Option<Arc<Position>>,
    streamed: bool,
    /// A streamed transaction whose end has not been pushed yet.
    open: bool,
    /// A streamed transaction that its source took back.
    aborted: bool,
}

impl<P: Probe> fmt::Debug for Delivery<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Delivery({} events queued, batch out: {})", self.queue.len(), self.out.is_some())
    }
}

impl Delivery {
    /// `pipeline` must be unique among the pipelines of a process.
    #[must_use]
    pub const fn new(limits: BatchLimits, pipeline: u64) -> Self {
        Self::probed(limits, pipeline)
    }
}

impl<P: Probe> Delivery<P> {
    /// [`Delivery::new`] under a probe.
    #[must_use]
    pub const fn probed(limits: BatchLimits, pipeline: u64) -> Self {
        Self {
            limits,
            pipeline,
            attempts: 0,
            durable: None,
            me: None,
            queue: VecDeque::new(),
            out: None,
            kept: None,
            spare: Vec::new(),
            discards: false,
            waits_for_restart: false,
            probe: PhantomData,
        }
    }

    /// Takes an event of the core.
    pub fn push(&mut self, event: Event) -> Push {
        if let Event::Claim { position, .. } = &event {
            self.me = Some((position.epoch(), position.owner()));
        }
        let end = matches!(event, Event::TxCommit(_) | Event::TxAbort { .. });
        let abort = matches!(event, Event::TxAbort { .. });
        if self.discards {
            P::mark(Mark::Discarded);
            self.discards = !end;
            if let Some(out) = &mut self.out {
                out.aborted |= abort;
            }
            return Push::Queued;
        }
        if let Some(out) = self.out.as_mut().filter(|out| out.open) {
            out.open = !end;
            out.aborted |= abort;
            return Push::Feed(event);
        }
        self.queue.push_back(event);
        Push::Queued
    }

    /// What was last read back or acknowledged.
    #[must_use]
    pub fn durable(&self) -> Option<&Position> {
        self.durable.as_ref().and_then(Option::as_deref)
    }

    /// Whether a batch is out.
    #[must_use]
    pub const fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// The next batch, if none is out and one can be cut. `feed` is asked for where its transaction
    /// is handed over while it is read.
    pub fn next_batch(&mut self, feed: impl FnOnce() -> Box<dyn Feed>) -> Option<BatchState> {
        if self.waits_for_restart && self.out.is_none() && !self.queue.is_empty() {
            P::mark(Mark::OvertakingRefused);
        }
        let waits = self.waits_for_restart && !P::mutant(Mutant::Overtake);
        if self.out.is_some() || self.kept.is_some() || waits {
            return None;
        }
        if P::mutant(Mutant::SwapUnits) {
            self.swap_units();
        }
        let stored = self.durable.clone()?;
        let cut = self.cut()?;
        let mut events = core::mem::take(&mut self.spare);
        events.extend(self.queue.drain(..cut.events));
        let attempt = self.attempt();
        // Before the claim there may be nothing stored, and then the claim is the whole position.
        let base = stored.clone().unwrap_or_else(|| Arc::new(Position::new(crate::gtid::GtidSet::new(), "")));
        let (upto, open, streamed) = (cut.upto, cut.open, cut.streamed);
        let aborted = matches!(events.last(), Some(Event::TxAbort { .. }));
        self.out = Some(Out { attempt, upto, next: None, streamed, open, aborted });
        let feed = if cut.streamed { Some(feed()) } else { None };
        Some(BatchState::new(events, feed, base, Expected::shared(stored), attempt, cut.upto))
    }

    /// The sink says that the batch is durable.
    pub fn accept(&mut self, state: BatchState, ack: Ack) -> Result<Seq, AckRefused> {
        let out = self.out.as_ref().ok_or(AckRefused::NothingOut)?;
        if out.attempt != ack.attempt || state.attempt != ack.attempt {
            return Err(AckRefused::OtherAttempt);
        }
        let upto = state.upto;
        self.out = None;
        self.settled(ack.position);
        self.recycle(state);
        Ok(upto)
    }

    /// In library-owned mode: the position of the acknowledgement has been stored, or not, by the
    /// caller before [`Delivery::accept`]. This checks that the acknowledgement is of this batch.
    pub fn check(&self, state: &BatchState, ack: &Ack) -> Result<(), AckRefused> {
        let out = self.out.as_ref().ok_or(AckRefused::NothingOut)?;
        if out.attempt == ack.attempt && state.attempt == ack.attempt {
            Ok(())
        } else {
            Err(AckRefused::OtherAttempt)
        }
    }

    /// The sink did not return `Ok(Ack)`. The batch is kept until the position is known.
    pub fn failed(&mut self, state: BatchState) {
        if let Some(out) = &mut self.out {
            out.next = Some(next_position(&state));
            self.discards |= core::mem::take(&mut out.open);
        }
        if state.is_streamed() {
            // Its events are gone; it can only come again over the link.
            P::mark(Mark::StreamedFailed);
            self.recycle(state);
        } else if !P::mutant(Mutant::LoseFailed) {
            self.kept = Some(state);
        }
    }

    /// The batch that is out was dropped without an answer.
    pub fn dropped(&mut self) {
        P::mark(Mark::GivenUp);
        if let Some(out) = &mut self.out {
            self.discards |= core::mem::take(&mut out.open);
        }
    }

    /// The same batch once more, after [`Delivery::failed`] and a position that still is the
    /// expected one.
    pub fn reapply(&mut self) -> Option<BatchState> {
        let mut state = self.kept.take()?;
        let attempt = self.attempt();
        state.rewind(attempt);
        self.out =
            Some(Out { attempt, upto: state.upto, next: None, streamed: false, open: false, aborted: false });
        Some(state)
    }

    /// What was read back after a failure. Afterwards the batch is settled ([`Holds::Committed`]),
    /// or [`Delivery::reapply`] gives it again ([`Holds::Expected`]), or the link starts anew.
    pub fn read_back(&mut self, stored: Option<&Position>) -> Holds {
        let holds = self.compare(stored);
        match holds {
            Holds::Committed { .. } => {
                self.out = None;
                if let Some(state) = self.kept.take() {
                    self.recycle(state);
                }
                if let Some(position) = stored {
                    self.settled(Arc::new(position.clone()));
                }
            }
            Holds::Expected => {
                let out = self.out.take();
                self.waits_for_restart |= out.is_some_and(|out| out.streamed && !out.aborted);
                if self.durable.is_none() {
                    self.durable = Some(stored.cloned().map(Arc::new));
                }
            }
            Holds::Moved => {
                self.out = None;
                self.kept = None;
                self.waits_for_restart = true;
                self.durable = Some(stored.cloned().map(Arc::new));
            }
            // Nothing of ours may be written over it.
            Holds::Foreign(_) => {
                self.out = None;
                self.kept = None;
            }
        }
        holds
    }

    /// As [`Delivery::read_back`], before a dial: everything that waits is forgotten, for the
    /// source sends it again.
    pub fn restart(&mut self, stored: Option<&Position>) -> Holds {
        let holds = self.read_back(stored);
        if !self.queue.is_empty() {
            P::mark(Mark::QueueForgotten);
        }
        if !P::mutant(Mutant::KeepQueue) {
            self.queue.clear();
        }
        self.kept = None;
        self.out = None;
        self.discards = false;
        self.waits_for_restart = false;
        holds
    }

    fn compare(&self, stored: Option<&Position>) -> Holds {
        let Some(durable) = &self.durable else { return Holds::Expected };
        if durable.as_deref() == stored {
            return Holds::Expected;
        }
        let Some(stored) = stored else { return Holds::Foreign(Code::PositionRegressed) };
        if let Some(out) = &self.out
            && out.next.as_deref() == Some(stored)
        {
            return Holds::Committed { upto: out.upto };
        }
        let lost = durable.as_ref().is_some_and(|durable| !durable.gtid_set().is_subset(stored.gtid_set()));
        let epoch = durable.as_deref().map_or(0, Position::epoch);
        // Under our own mark only we write: an attempt that was given up has landed late. And as long
        // as we have not claimed the target, its owner may well go on.
        let ours = self.me == Some((stored.epoch(), stored.owner()));
        let owner_went_on = durable.as_ref().is_some_and(|durable| durable.same_owner(stored));
        if ours && !lost && P::mutant(Mutant::IgnoreLateCommit) {
            Holds::Expected
        } else if (ours || owner_went_on) && !lost {
            P::mark(if ours { Mark::LateAttempt } else { Mark::FormerOwnerWentOn });
            Holds::Moved
        } else if ours || owner_went_on || stored.epoch() < epoch {
            P::mark(Mark::Regressed);
            Holds::Foreign(Code::PositionRegressed)
        } else {
            P::mark(Mark::Fenced);
            Holds::Foreign(Code::Fenced)
        }
    }

    fn settled(&mut self, position: Arc<Position>) {
        self.durable = Some(Some(position));
    }

    fn recycle(&mut self, state: BatchState) {
        let mut events = state.events;
        events.clear();
        self.spare = events;
    }

    const fn attempt(&mut self) -> Attempt {
        self.attempts += 1;
        Attempt { pipeline: self.pipeline, number: self.attempts }
    }

    /// The first two whole transactions that wait change places: a mistake that a probe may ask for.
    fn swap_units(&mut self) {
        let plain = |event: &Event| matches!(event, Event::TxBegin(begin) if !begin.streamed);
        let end = |event: &Event| matches!(event, Event::TxCommit(_));
        let Some(first) = self.queue.iter().position(end) else { return };
        let Some(second) = self.queue.iter().skip(first + 1).position(end) else { return };
        if self.queue.front().is_some_and(plain) && self.queue.get(first + 1).is_some_and(plain) {
            let behind: Vec<Event> = self.queue.drain(..=first).collect();
            let rest: Vec<Event> = self.queue.drain(second + 1..).collect();
            self.queue.extend(behind);
            self.queue.extend(rest);
        }
    }

    /// Finds the end of the next batch in the queue.
    fn cut(&self) -> Option<Cut> {
        let mut cut: Option<Cut> = None;
        let (mut units, mut bytes) = (0_usize, 0_usize);
        let mut open: Option<(bool, bool)> = None; // (streamed, schema change) of the unit being walked
        for (i, event) in self.queue.iter().enumerate() {
            let end = match event {
                Event::Claim { seq, .. } => Some((*seq, true)),
                Event::Progress { seq, .. } => Some((*seq, false)),
                Event::SnapshotRows(chunk) => {
                    bytes = bytes.saturating_add(chunk.rows.as_ref().map_or(0, RowsEvent::retained));
                    Some((chunk.seq, false))
                }
                Event::TxBegin(begin) => {
                    if begin.streamed {
                        if units > 0 {
                            P::mark(Mark::EndsBeforeStreamed);
                            return cut;
                        }
                        return Some(self.streamed_cut(i, begin.seq));
                    }
                    if begin.schema_change && units > 0 {
                        P::mark(Mark::EndsBeforeSchemaChange);
                        return cut;
                    }
                    open = Some((begin.streamed, begin.schema_change));
                    None
                }
                Event::Rows(rows) => {
                    bytes = bytes.saturating_add(rows.retained());
                    None
                }
                Event::Table(_) | Event::SchemaChange(_) => None,
                Event::TxCommit(commit) => {
                    Some((commit.seq, open.is_some_and(|(_, schema_change)| schema_change)))
                }
                Event::TxAbort { seq, .. } => Some((*seq, false)),
            };
            let Some((upto, alone)) = end else { continue };
            if units > 0 && bytes > self.limits.max_bytes {
                P::mark(Mark::FullByBytes);
                return cut;
            }
            units += 1;
            cut = Some(Cut { events: i + 1, upto, streamed: false, open: false });
            if alone || units >= self.limits.max_transactions.max(1) {
                if units > 1 {
                    P::mark(Mark::FullByUnits);
                }
                return cut;
            }
        }
        cut
    }

    /// A streamed transaction starts the queue: all of it that is there goes along.
    fn streamed_cut(&self, begin: usize, seq: Seq) -> Cut {
        let end = self
            .queue
            .iter()
            .skip(begin)
            .position(|event| matches!(event, Event::TxCommit(_) | Event::TxAbort { .. }));
        if end.is_some() {
            P::mark(Mark::StreamedWhole);
        }
        let events = end.map_or(self.queue.len(), |end| begin + end + 1);
        Cut { events, upto: seq, streamed: true, open: end.is_none() }
    }
}

struct Cut {
    events: usize,
    upto: Seq,
    streamed: bool,
    open: bool,
}

/// The position a complete batch would store, folded from its events however far the sink has read.
fn next_position(state: &BatchState) -> Arc<Position> {
    if let Some(folded) = &state.folded {
        return Arc::clone(folded);
    }
    if state.is_streamed() {
        return Arc::new(state.position.clone());
    }
    let mut position = (*state.base).clone();
    for event in &state.events {
        match event {
            Event::Claim { position: claim, .. } => position = (**claim).clone(),
            Event::Progress { advance, .. } => position.advance(advance),
            Event::SnapshotRows(chunk) => position.advance(&chunk.advance),
            Event::TxCommit(commit) => {
                if let Some(passed) = &commit.passed {
                    position.advance(passed);
                }
                if let Some(gtid) = &commit.gtid {
                    position.add(gtid, commit.original_commit);
                }
            }
            Event::TxBegin(_)
            | Event::Table(_)
            | Event::Rows(_)
            | Event::SchemaChange(_)
            | Event::TxAbort { .. } => {}
        }
    }
    Arc::new(position)
}
