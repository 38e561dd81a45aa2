//! Drives one sink as the driver of a pipeline would.

use std::{collections::BTreeSet, ops::Range, sync::Barrier, thread, time::Duration};

use capstan_core::{
    deliver::{
        Ack, BatchLimits, BatchState, Delivery, Event, FailureClass, Feed, Holds, Position, Push, Seq,
        SinkError,
    },
    gtid::GtidSet,
};

use crate::{
    crash::Strength,
    process::{self, Call, Child},
    rule::Level,
    rules,
    source::{self, Comes, Step, Tx, applied, events, present},
    subject::{Ended, Pipe, Subject},
    target::{Applied, Keeps, Storage, Stored},
};

/// Why a rule did not hold.
pub(crate) type Broken = String;

/// Attempts at one batch that fails transiently.
const ATTEMPTS_MAX: u32 = 5;

/// A storage, the sink that is open on it, and the sequence that feeds it.
pub(crate) struct Bench<'t> {
    storage: &'t mut dyn Storage,
    level: Level,
    sink: Option<Box<dyn Subject>>,
    delivery: Delivery,
    limits: BatchLimits,
    next: Seq,
    /// Pipelines and owners are numbered by it.
    count: u64,
    /// What the library's own store holds, where the sink stores no position.
    checkpoint: Option<Position>,
    start: Position,
    /// A call was killed.
    killed: bool,
    child: Option<Child>,
    /// How long the next child may write before it is killed, and what it then had acknowledged.
    left: Option<Duration>,
    heard: Option<u64>,
    seed: u64,
    acknowledged: u64,
    pub(crate) evidence: Evidence,
}

/// What a rule saw, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(crate) notes: Vec<String>,
    pub(crate) strengths: BTreeSet<Strength>,
    pub(crate) batches: u64,
}

/// How a script that was to die came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Died {
    /// It died.
    Killed,
    /// It never came to the place where it was to die.
    Finished,
}

/// What a process does until it dies, once more for each step.
pub(crate) type Script = fn(&mut Bench<'_>, u64) -> Result<(), Broken>;

/// A batch out of the sequence, with what feeds it.
pub(crate) struct Out {
    pub(crate) state: BatchState,
    pipe: Pipe,
}

impl<'t> Bench<'t> {
    pub(crate) fn new(storage: &'t mut dyn Storage, level: Level, seed: u64) -> Self {
        let limits = BatchLimits::default();
        Self {
            storage,
            level,
            sink: None,
            delivery: Delivery::new(limits, 0),
            limits,
            next: Seq(1),
            count: 0,
            checkpoint: None,
            start: Position::new(GtidSet::new(), "`shop`.*"),
            killed: false,
            child: None,
            left: None,
            heard: None,
            seed,
            acknowledged: 0,
            evidence: Evidence::default(),
        }
    }

    pub(crate) fn storage(&mut self) -> &mut dyn Storage {
        self.storage
    }

    /// A batch of one change that goes on from `position`.
    pub(crate) fn batch_behind(&mut self, position: &Position, gno: u64, step: Step) -> Result<Out, Broken> {
        let mut other = self.delivery_from(Some(position));
        std::mem::swap(&mut self.delivery, &mut other);
        let out = self.send(vec![Tx::new(gno, &[step])]).and_then(|()| self.take());
        std::mem::swap(&mut self.delivery, &mut other);
        out?.ok_or_else(|| kit("no batch"))
    }

    /// The open sink and `second` are each handed a batch at the same moment; the class of each that it refuses.
    pub(crate) fn both_apply(
        &mut self,
        second: &mut Box<dyn Subject>,
        [mut one, mut other]: [Out; 2],
    ) -> Result<[Option<FailureClass>; 2], Broken> {
        let first = self.sink.as_mut().ok_or_else(|| kit("no sink is open"))?;
        self.evidence.batches += 2;
        let ready = Barrier::new(2);
        let apply = |sink: &mut Box<dyn Subject>, out: &mut Out| {
            ready.wait();
            match patiently(sink, out) {
                Ended::Answered(answer) => Ok(answer.err().map(|error| error.class())),
                Ended::Killed => Err(kit("a call was killed")),
                Ended::Broke(why) => Err(format!("apply {why}")),
            }
        };
        let [one, other] = thread::scope(|scope| {
            let beside = scope.spawn(|| apply(second, &mut other));
            let one = apply(first, &mut one);
            [one, beside.join().unwrap_or_else(|_| Err(kit("a thread panicked")))]
        });
        Ok([one?, other?])
    }

    /// What dies, dies in such a process.
    pub(crate) fn dies_by(&mut self, child: Option<Child>) {
        self.child = child;
    }

    /// What a parent has left to its child.
    pub(crate) fn goes_on_from(&mut self, count: u64, checkpoint: Option<Position>) {
        (self.count, self.checkpoint) = (count, checkpoint);
    }

    pub(crate) const fn is_at_the_brink(&self) -> bool {
        self.killed
    }

    pub(crate) const fn level(&self) -> Level {
        self.level
    }

    /// Something for the report.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.evidence.notes.push(note.into());
    }

    /// A process does what `script` says and dies of it: at its end or, where a fault point is given, at
    /// its `count`th passage.
    pub(crate) fn dies(
        &mut self,
        script: &str,
        step: u64,
        fault: Option<(&str, u64)>,
    ) -> Result<Died, Broken> {
        if let (Some(child), Some(address)) = (self.child.clone(), self.storage.place()) {
            return self.dies_in_child(&child, &address, script, step, fault);
        }
        let run = rules::script(script).ok_or_else(|| kit("no such script"))?;
        if let Some((point, count)) = fault {
            self.storage.arm_point(point, count).map_err(|why| why.to_string())?;
        }
        self.killed = false;
        let ran = run(self, step);
        let killed = std::mem::take(&mut self.killed);
        let by = self.sink.take().map(|sink| sink.killed_by());
        if let Some((point, _)) = fault {
            self.storage.arm_point(point, 0).map_err(|why| why.to_string())?;
        }
        match (killed, ran) {
            (true, _) => {
                let by = if fault.is_some() { Some(Strength::FaultPoint) } else { by };
                self.evidence.strengths.extend(by);
                Ok(Died::Killed)
            }
            (false, Err(why)) => Err(why),
            (false, Ok(())) => Ok(Died::Finished),
        }
    }

    /// A process does what `script` says and is killed a while after it has said that it writes. Gives the number
    /// of the last transaction that it says was acknowledged, too.
    pub(crate) fn dies_within(
        &mut self,
        left: Duration,
        script: &str,
    ) -> Result<(Died, Option<u64>), Broken> {
        self.left = Some(left);
        self.heard = None;
        let died = self.dies(script, 0, None);
        self.left = None;
        Ok((died?, self.heard.take()))
    }

    fn dies_in_child(
        &mut self,
        child: &Child,
        address: &str,
        script: &str,
        step: u64,
        fault: Option<(&str, u64)>,
    ) -> Result<Died, Broken> {
        self.sink = None;
        let call = Call {
            sink: self.storage.type_name(),
            address,
            script,
            step,
            fault,
            count: self.count,
            seed: self.seed,
            checkpoint: self.checkpoint.as_ref().map(Position::encode),
            left: self.left,
        };
        let ended = call.run(child)?;
        // Its owners have marks of their own.
        self.count += 1_000_000;
        if let Some(text) = ended.heard.checkpoint {
            self.checkpoint = Some(Position::decode(&text).map_err(|_| kit("the checkpoint is none"))?);
        }
        self.heard = ended.heard.acknowledged;
        self.evidence.strengths.extend(ended.strengths);
        Ok(ended.died)
    }

    /// Its process ends here: what a script says at its end.
    pub(crate) const fn is_killed_here(&mut self) {
        self.killed = true;
    }

    /// With as many transactions in a batch.
    pub(crate) fn batches_of(&mut self, max_transactions: usize) {
        self.limits.max_transactions = max_transactions;
    }

    /// With another position to start from where nothing is stored.
    pub(crate) fn start_at(&mut self, start: Position) {
        self.start = start;
    }

    /// A process starts: opens the sink, asks it, and claims the target as the next owner.
    pub(crate) fn start_process(&mut self) -> Result<(), Broken> {
        self.open()?;
        self.claim()
    }

    /// Opens the sink anew over what is stored.
    pub(crate) fn open(&mut self) -> Result<(), Broken> {
        self.sink = None;
        let opened = process::opening(|| self.storage.open_sink());
        self.sink = Some(opened.map_err(|why| format!("the sink did not open: {why}"))?);
        Ok(())
    }

    /// Closes the sink, if one is open.
    pub(crate) fn close(&mut self) {
        self.sink = None;
    }

    /// The next owner takes over; its claim is acknowledged.
    pub(crate) fn claim(&mut self) -> Result<(), Broken> {
        let stored = self.position()?;
        if self.count == 0 && stored.is_some() {
            return Err(
                "a fresh target has a position: the factory makes a storage of its own for each rule".into(),
            );
        }
        let claim = self.next_owner(stored.clone().unwrap_or_else(|| self.start.clone()));
        self.delivery = self.delivery_from(stored.as_ref());
        self.next = Seq(1);
        let _ = self.delivery.push(Event::Claim { seq: Seq(0), position: Box::new(claim) });
        self.drain().map_err(|why| format!("the claim of a new owner was not taken: {why}"))?;
        if self.storage.wants_creations() { self.create_tables() } else { Ok(()) }
    }

    /// The stream begins with the creation of its tables.
    fn create_tables(&mut self) -> Result<(), Broken> {
        let durable = self.delivery.durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
        let creations = source::creations(&durable);
        if creations.is_empty() {
            return Ok(());
        }
        self.send(creations)?;
        self.drain().map_err(|why| format!("the creation of a table was not taken: {why}"))?;
        // Rules count from their own first unit.
        let durable = self.delivery.durable().cloned();
        self.delivery = self.delivery_from(durable.as_ref());
        self.next = Seq(1);
        Ok(())
    }

    /// The same position for an owner who has not been seen.
    pub(crate) fn next_owner(&mut self, position: Position) -> Position {
        self.count += 1;
        // Beyond i64: a storage that keeps marks as signed numbers shows it.
        position.claimed(0xF000_0000_0000_0000 | self.count)
    }

    /// A sequence that believes `stored` to be stored.
    pub(crate) fn delivery_from(&mut self, stored: Option<&Position>) -> Delivery {
        self.count += 1;
        let mut delivery = Delivery::new(self.limits, self.count);
        let _ = delivery.restart(stored);
        delivery
    }

    /// The link dropped and is there again.
    pub(crate) fn redial(&mut self) -> Result<(), Broken> {
        let stored = self.position()?;
        match self.delivery.restart(stored.as_ref()) {
            Holds::Expected => Ok(()),
            Holds::Committed { .. } | Holds::Moved | Holds::Foreign(_) => {
                Err("the position moved though the transaction was taken back".into())
            }
        }
    }

    /// The source sends transactions.
    pub(crate) fn send(&mut self, transactions: Vec<Tx>) -> Result<(), Broken> {
        for event in self.events(transactions, Comes::Whole)? {
            let Push::Queued = self.delivery.push(event) else {
                return Err(kit("a whole unit was streamed"));
            };
        }
        Ok(())
    }

    /// The events of transactions after what is durable.
    pub(crate) fn events(&mut self, transactions: Vec<Tx>, comes: Comes) -> Result<Vec<Event>, Broken> {
        let position = self.delivery.durable().cloned().unwrap_or_else(|| self.start.clone());
        events(transactions, comes, &position, &mut self.next).map_err(|why| kit(&why))
    }

    /// A chunk of the copy of `table`, with these rows.
    pub(crate) fn chunk(&mut self, rows: &[Step], number: u64, last: bool) -> Result<(), Broken> {
        let event = self.chunk_event(rows, number, last)?;
        let _ = self.delivery.push(event);
        Ok(())
    }

    /// Its event. Where there are no rows, those tell of the table alone that are left out.
    pub(crate) fn chunk_event(&mut self, rows: &[Step], number: u64, last: bool) -> Result<Event, Broken> {
        let position = self.delivery.durable().cloned().unwrap_or_else(|| self.start.clone());
        let chunk = source::chunk(rows, number, last, &position, &mut self.next).map_err(|why| kit(&why))?;
        Ok(Event::SnapshotRows(Box::new(chunk)))
    }

    /// A transaction that is handed over while it is read, its first row event with the batch.
    pub(crate) fn stream(&mut self, tx: Tx, comes: Comes) -> Result<Out, Broken> {
        let events = self.events(vec![tx], comes)?;
        self.stream_events(events)
    }

    /// As [`Bench::stream`], of a transaction that stops after so many row events.
    pub(crate) fn stream_part(&mut self, tx: Tx, row_events: usize) -> Result<Out, Broken> {
        let mut events = self.events(vec![tx], Comes::Stopped)?;
        let rows = |event: &Event| matches!(event, Event::Rows(_));
        if events.iter().filter(|event| rows(event)).count() < row_events {
            return Err(kit("the transaction has too few row events"));
        }
        let mut left = row_events;
        events.retain(|event| !rows(event) || left.checked_sub(1).inspect(|less| left = *less).is_some());
        self.stream_events(events)
    }

    /// As [`Bench::stream`], of a transaction with a row event for each of `keys` between its first and its end,
    /// made when the sink asks for it.
    pub(crate) fn stream_rows(
        &mut self,
        tx: Tx,
        mut keys: Range<i64>,
        row: impl Fn(i64) -> Step + Send + 'static,
    ) -> Result<Out, Broken> {
        let out = self.stream(tx, Comes::Streamed)?;
        let (position, mut next) = (self.start.clone(), Seq(1));
        out.pipe.make(move || {
            // One that cannot be made is missed in what is stored.
            let (_, event) = source::row_event(&[row(keys.next()?)], &position, &mut next).ok()?;
            Some(Event::Rows(event))
        });
        Ok(out)
    }

    fn stream_events(&mut self, events: Vec<Event>) -> Result<Out, Broken> {
        let mut events = events.into_iter();
        for event in events.by_ref() {
            let rows = matches!(event, Event::Rows(_));
            let _ = self.delivery.push(event);
            if rows {
                break;
            }
        }
        let out = self.take()?.ok_or_else(|| kit("no batch"))?;
        if !out.state.is_streamed() {
            return Err(kit("the transaction is not streamed"));
        }
        for event in events {
            if let Push::Feed(event) = self.delivery.push(event) {
                out.pipe.push(event);
            }
        }
        Ok(out)
    }

    /// The next batch of the sequence.
    pub(crate) fn take(&mut self) -> Result<Option<Out>, Broken> {
        let pipe = Pipe::default();
        let feed = pipe.clone();
        let state = self.delivery.next_batch(move || Box::new(feed) as Box<dyn Feed>);
        Ok(state.map(|state| Out { state, pipe }))
    }

    /// Calls the sink with a batch.
    pub(crate) fn apply(&mut self, out: &mut Out) -> Result<Ended<Result<Ack, SinkError>>, Broken> {
        let sink = self.sink.as_mut().ok_or_else(|| kit("no sink is open"))?;
        self.evidence.batches += 1;
        let ended = patiently(sink, out);
        self.killed |= matches!(ended, Ended::Killed);
        match ended {
            Ended::Broke(why) => Err(format!("apply {why}")),
            ended @ (Ended::Answered(_) | Ended::Killed) => Ok(ended),
        }
    }

    /// Calls the sink with a batch and drops the call once it has waited so many times; `None`: it was
    /// dropped. A blocking call cannot be.
    pub(crate) fn answer_or_drop(
        &mut self,
        out: &mut Out,
        waits: usize,
    ) -> Result<Option<Result<Ack, SinkError>>, Broken> {
        out.pipe.drop_after(waits);
        match self.apply(out)? {
            Ended::Answered(answer) => Ok(Some(answer)),
            Ended::Killed => {
                self.evidence.strengths.insert(Strength::DroppedFuture);
                Ok(None)
            }
            Ended::Broke(why) => Err(why),
        }
    }

    /// Opens a second sink beside the first, which is handed back.
    pub(crate) fn open_beside(&mut self) -> Result<Box<dyn Subject>, String> {
        let second = process::opening(|| self.storage.open_sink()).map_err(|why| why.to_string())?;
        self.sink.replace(second).ok_or_else(|| kit("no sink is open"))
    }

    /// The one sink in the place of the other.
    pub(crate) fn swap_sink(&mut self, sink: &mut Box<dyn Subject>) {
        if let Some(open) = &mut self.sink {
            std::mem::swap(open, sink);
        }
    }

    /// As [`Bench::apply`], where the batch has an end.
    pub(crate) fn answer(&mut self, out: &mut Out) -> Result<Result<Ack, SinkError>, Broken> {
        match self.apply(out)? {
            Ended::Answered(answer) => Ok(answer),
            Ended::Killed | Ended::Broke(_) => Err("the sink read beyond the end of its batch".into()),
        }
    }

    /// Delivers everything that waits.
    pub(crate) fn drain(&mut self) -> Result<(), Broken> {
        while self.deliver()?.is_some() {}
        Ok(())
    }

    /// Delivers one batch; its last unit.
    pub(crate) fn deliver(&mut self) -> Result<Option<Seq>, Broken> {
        let Some(mut out) = self.take()? else { return Ok(None) };
        for _ in 0..ATTEMPTS_MAX {
            let error = match self.answer(&mut out)? {
                Ok(ack) => return self.accept(out, ack).map(Some),
                Err(error) => error,
            };
            if !matches!(error.class(), FailureClass::Transient | FailureClass::Unknown) {
                return Err(self.refused(error));
            }
            self.delivery.failed(out.state);
            let stored = self.position()?;
            match self.delivery.read_back(stored.as_ref()) {
                Holds::Committed { upto } => return Ok(Some(upto)),
                Holds::Expected => {}
                Holds::Moved | Holds::Foreign(_) => {
                    return Err(
                        "after a failed batch the stored position is neither the old nor the new one".into(),
                    );
                }
            }
            let Some(state) = self.delivery.reapply() else { return Err(told(error)) };
            out = Out { state, pipe: Pipe::default() };
        }
        Err(format!("a batch failed {ATTEMPTS_MAX} times"))
    }

    /// A batch was refused that goes on from what was acknowledged last: told with what became of that position.
    fn refused(&mut self, error: SinkError) -> Broken {
        let conditional = matches!(error.class(), FailureClass::Stale | FailureClass::Fenced);
        let mut why = format!("a batch was refused: {}", told(error));
        let want = self.delivery.durable().map(Position::encode).unwrap_or_default();
        if let (true, Ok(have)) = (conditional && self.level == Level::ExactlyOnce, self.position()) {
            let have = have.as_ref().map(Position::encode).unwrap_or_default();
            if want != have {
                why += &format!(" ← the position that it gives back {}", differs(&want, &have));
            }
        }
        why
    }

    /// The end of an attempt whose answer may have been lost on the way.
    pub(crate) fn settle(&mut self, out: Out, answer: Result<Ack, SinkError>) -> Result<(), Broken> {
        let error = match answer {
            Ok(ack) => return self.accept(out, ack).map(|_| ()),
            Err(error) => error,
        };
        self.failed(out);
        let stored = self.position()?;
        match self.delivery.read_back(stored.as_ref()) {
            Holds::Committed { .. } => Ok(()),
            Holds::Expected | Holds::Moved | Holds::Foreign(_) => {
                Err(format!("a batch was refused: {}", told(error)))
            }
        }
    }

    pub(crate) fn accept(&mut self, out: Out, ack: Ack) -> Result<Seq, Broken> {
        self.delivery.check(&out.state, &ack).map_err(|why| why.to_string())?;
        if self.level == Level::AtLeastOnce {
            self.checkpoint = Some(ack.position().clone());
            if process::in_child() {
                process::say("checkpoint", &ack.position().encode());
            }
        }
        self.acknowledged += 1;
        self.delivery.accept(out.state, ack).map_err(|why| why.to_string())
    }

    /// Batches that the sink has acknowledged itself.
    pub(crate) const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// A batch that is applied once more.
    pub(crate) fn out(&self, state: BatchState) -> Out {
        Out { state, pipe: Pipe::default() }
    }

    /// What is drawn at random is drawn from it.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// The batch that is out was given up.
    pub(crate) fn failed(&mut self, out: Out) {
        self.delivery.failed(out.state);
    }

    pub(crate) fn delivery(&mut self) -> &mut Delivery {
        &mut self.delivery
    }

    /// What the owner of the position says is stored.
    pub(crate) fn position(&mut self) -> Result<Option<Position>, Broken> {
        if self.level == Level::AtLeastOnce {
            return Ok(self.checkpoint.clone());
        }
        self.told_position()?.map_err(|error| format!("position failed: {}", told(error)))
    }

    /// What the sink says is stored.
    pub(crate) fn told_position(&mut self) -> Result<Result<Option<Position>, SinkError>, Broken> {
        let sink = self.sink.as_mut().ok_or_else(|| kit("no sink is open"))?;
        match sink.position() {
            Ended::Answered(answer) => Ok(answer),
            Ended::Broke(why) => Err(format!("position {why}")),
            Ended::Killed => {
                self.killed = true;
                Err("the sink died as it was asked for the position".into())
            }
        }
    }

    /// Closes the sink and looks at the storage.
    pub(crate) fn stored(&mut self) -> Result<Stored, Broken> {
        self.sink = None;
        self.stored_beside()
    }

    /// Looks at the storage beside the open sink.
    pub(crate) fn stored_beside(&mut self) -> Result<Stored, Broken> {
        let mut stored = self.look()?;
        stored.applied.retain(|change| !change.is_beginning());
        Ok(stored)
    }

    /// As [`Bench::stored`], with the places where copies begin.
    pub(crate) fn stored_with_beginnings(&mut self) -> Result<Stored, Broken> {
        self.sink = None;
        self.look()
    }

    fn look(&mut self) -> Result<Stored, Broken> {
        self.storage.look().map_err(|why| format!("the probe failed: {why}"))
    }

    pub(crate) fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Broken> {
        self.sink = None;
        self.storage.row_text(table, key).map_err(|why| why.to_string())
    }

    /// What must be stored after these.
    pub(crate) fn want(&self, steps: &[Step]) -> Vec<Applied> {
        match self.storage.kept() {
            Keeps::Changes => applied(steps),
            Keeps::Rows => present(steps),
        }
    }

    /// Closes the sink; the storage must hold exactly these changes, in whatever order.
    pub(crate) fn holds(&mut self, steps: &[Step]) -> Result<(), Broken> {
        let (mut want, mut have) = (self.want(steps), self.stored()?.applied);
        want.sort();
        have.sort();
        same(&want, &have)
    }

    /// Closes the sink; the storage must hold exactly these changes in this order. Rows have none.
    pub(crate) fn holds_in_order(&mut self, steps: &[Step]) -> Result<(), Broken> {
        match self.storage.kept() {
            Keeps::Changes => same(&applied(steps), &self.stored()?.applied),
            Keeps::Rows => self.holds(steps),
        }
    }
}

/// Calls a sink with a batch, and once more where it has written nothing and says that it may work the next time: what
/// a rule asks of it may come true only then.
fn patiently(sink: &mut Box<dyn Subject>, out: &mut Out) -> Ended<Result<Ack, SinkError>> {
    for _ in 1..ATTEMPTS_MAX {
        match sink.apply(&mut out.state, &out.pipe) {
            Ended::Answered(Err(error))
                if error.class() == FailureClass::Transient && out.state.read_again() => {}
            ended @ (Ended::Answered(_) | Ended::Killed | Ended::Broke(_)) => return ended,
        }
    }
    sink.apply(&mut out.state, &out.pipe)
}

/// A fault of the kit and not of the sink.
pub(crate) fn kit(why: &str) -> Broken {
    format!("the kit itself failed: {why}")
}

/// A sink's error with its cause: there is nobody's data in it but the kit's.
pub(crate) fn told(error: SinkError) -> String {
    let text = error.to_string();
    error.into_inner().map_or(text.clone(), |inner| format!("{text}: {inner}"))
}

/// Where two texts differ, with a little around it.
pub(crate) fn differs(want: &str, have: &str) -> String {
    let same = want.char_indices().zip(have.chars()).find(|((_, want), have)| want != have);
    let at = same.map_or(want.len().min(have.len()), |((at, _), _)| at);
    let from = want.char_indices().map(|(from, _)| from).find(|from| from + 24 >= at).unwrap_or(0);
    let part = |text: &str| {
        let dots = if from > 0 { "…" } else { "" };
        text.get(from..).map_or_else(|| "nothing".into(), |text| format!("{dots}{}", clipped(text)))
    };
    format!("is {} instead of {} (byte {at} of {})", part(have), part(want), want.len())
}

/// A text that may be long, for a person.
pub(crate) fn clipped(text: &str) -> String {
    match text.char_indices().nth(120) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} bytes)", text.get(..at).unwrap_or_default(), text.len()),
    }
}

pub(crate) fn same(want: &[Applied], have: &[Applied]) -> Result<(), Broken> {
    let at = want.iter().zip(have).take_while(|(want, have)| want == have).count();
    if want.len() == have.len() && at == want.len() {
        return Ok(());
    }
    let one = |list: &[Applied]| {
        list.get(at).map_or("nothing".into(), |a| {
            clipped(format!("{} {} {} {}", a.op, a.table, a.key, a.note).trim_end())
        })
    };
    let (all, each) = match want.iter().chain(have).all(|applied| applied.op == "row") {
        true => ("rows are stored", "row"),
        false => ("changes are stored", "change"),
    };
    Err(format!(
        "{} {all}, {} were committed; the first difference is at {each} {}: {} instead of {}",
        have.len(),
        want.len(),
        at + 1,
        one(have),
        one(want)
    ))
}
