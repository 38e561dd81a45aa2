//! From binlog events to whole transactions.
//!
//! One [`Assembler`] lives as long as one link: a lost link takes the open transaction and its table
//! maps with it, and the source sends the transaction again from its start. Every event type is named
//! here; what is not understood halts.

pub mod errors;
mod group;
mod pieces;
mod statement;
mod tables;
#[cfg(test)]
mod tests;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, VecDeque},
    string::String,
    sync::Arc,
};
use core::{fmt, marker::PhantomData, time::Duration};

use self::{group::Group, pieces::Pieces, tables::Tables};
use crate::{
    binlog::{
        Checksum, EventDecoder, EventHeader, EventType, GtidEvent, Heartbeat, Inflated, Inflater, Rotate,
        TransactionPayload, XaPrepare, flags, rows::RowsEvent,
    },
    capture::CapturedSet,
    deliver::{
        Advance, CopiedTable, Event, LastTransaction, Position, Seq, SnapshotChunk, TableCopy, TxBegin,
        TxCommit, XaDigest, XaState,
    },
    gtid::{GtidSet, Tsid},
    halt::{Code, Detail, Halt, Place},
    link::Payload,
    probe::{Mark, Mutant, Probe, Quiet},
    snapshot::gate::{Gate, Judged},
    time::{Now, SourceTime},
    value::TableVersion,
};

/// What an assembler starts from.
#[derive(Debug)]
pub struct Setup {
    /// Which tables are delivered; knows the server's `lower_case_table_names`.
    pub captured: CapturedSet,
    /// The server's `lower_case_table_names`.
    pub lower_case_table_names: u8,
    /// Where the stream goes on from.
    pub position: Position,
    /// Transactions that come once more, with the commit timestamp they must have.
    pub verify: BTreeMap<Tsid, LastTransaction>,
    /// Where the stream ends, if it does.
    pub until: Option<GtidSet>,
    /// Whether events carry a CRC32 before the first format description says so.
    pub checksum: bool,
    /// Bytes of row events above which a transaction is emitted while it is read.
    pub stream_above: usize,
    /// Longest row event.
    pub row_event_max: usize,
    /// Reading files: groups without GTID, tables without column names, partial row images,
    /// prepared XA transactions and changes logged as statements are shown as they are instead of halting.
    pub offline: bool,
}

/// Puts transactions together. See the [module's page](self).
pub struct Assembler<P: Probe = Quiet> {
    decoder: EventDecoder,
    tables: Tables,
    group: Option<Group>,
    processed: GtidSet,
    prepared: BTreeSet<XaDigest>,
    verify: BTreeMap<Tsid, LastTransaction>,
    until: Option<(GtidSet, u64)>,
    /// The server counts all of `until` as executed, so its log should have it.
    until_is_there: bool,
    /// Where the server has nothing to send.
    idle: Option<Idle>,
    passed: Box<Advance>,
    passed_count: u64,
    passed_since: Option<Now>,
    emitted: VecDeque<Event>,
    /// The number of the unit that is being emitted.
    emitting: Option<Seq>,
    inflating: Option<Box<Inflater>>,
    /// An event that is taken in pieces.
    pieces: Option<Box<Pieces>>,
    /// Whether the pieces given so far may hold another event.
    pieces_ready: bool,
    /// The terminator was met inside pieces whose checksum is still to come.
    held_commit: bool,
    committed_at: Option<SourceTime>,
    place: Place,
    /// Offset in the file behind the last event.
    offset: u64,
    lower_case_table_names: u8,
    stream_above: usize,
    row_event_max: usize,
    offline: bool,
    gate: Gate,
    /// Rows that wait for the copy, and the version they announce.
    held: Option<(Option<Arc<TableVersion>>, RowsEvent)>,
    probe: PhantomData<fn() -> P>,
}

/// A place at which heartbeats came and nothing else.
struct Idle {
    at: Heartbeat,
    since: Now,
}

impl<P: Probe> fmt::Debug for Assembler<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Assembler(in a group: {}, inflating: {})", self.group.is_some(), self.inflating.is_some())
    }
}

impl Assembler {
    /// An assembler at the start of a stream or file.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self::probed(setup)
    }
}

impl<P: Probe> Assembler<P> {
    /// [`Assembler::new`] under a probe.
    #[must_use]
    pub fn probed(setup: Setup) -> Self {
        let until = setup.until.map(|until| {
            let left = until.subtract(setup.position.gtid_set()).count();
            (until, left)
        });
        let checksum = if setup.checksum { Checksum::Crc32 } else { Checksum::None };
        Self {
            decoder: EventDecoder::for_link(checksum),
            tables: Tables::new(setup.captured, setup.offline, setup.row_event_max),
            group: None,
            processed: setup.position.gtid_set().clone(),
            prepared: setup.position.prepared().clone(),
            verify: setup.verify,
            until,
            until_is_there: false,
            idle: None,
            passed: Box::default(),
            passed_count: 0,
            passed_since: None,
            emitted: VecDeque::new(),
            emitting: None,
            inflating: None,
            pieces: None,
            pieces_ready: false,
            held_commit: false,
            committed_at: None,
            place: Place::default(),
            offset: 0,
            lower_case_table_names: setup.lower_case_table_names,
            stream_above: setup.stream_above,
            row_event_max: setup.row_event_max,
            offline: setup.offline,
            gate: Gate::new(setup.position.copies()),
            held: None,
            probe: PhantomData,
        }
    }

    /// Takes one event from the link. `Ok(true)`: it is a sign of life.
    pub fn event(&mut self, payload: Payload, now: Now) -> Result<bool, Halt> {
        let sliced = payload.retained > payload.bytes.len().saturating_mul(2);
        let bytes = if P::mutant(Mutant::IgnoreChecksum) { resealed(payload.bytes) } else { payload.bytes };
        let event = self.decoder.decode(bytes).map_err(|e| errors::of_event(&e))?;
        // A row event that shares a read chunk with others would keep all of it alive, so what is
        // delivered is copied out; the copy is small, for large events have memory of their own.
        self.take(event, sliced, now)
    }

    /// Takes one event of a file, at `offset`.
    pub fn file_event(&mut self, event: crate::binlog::Event, file: &str, offset: u64) -> Result<(), Halt> {
        if self.place.file.as_deref() != Some(file) {
            self.place.file = Some(String::from(file));
        }
        self.offset = offset;
        self.take(event, false, Now(0))?;
        while self.is_inflating() {
            self.inflate(Now(0))?;
        }
        Ok(())
    }

    /// Whether a payload is being inflated and its next event may be had: [`Assembler::inflate`].
    #[must_use]
    pub const fn is_inflating(&self) -> bool {
        self.inflating.is_some() || self.pieces_ready
    }

    /// Takes the next event of the payload. `Ok(true)`: it is a sign of life.
    pub fn inflate(&mut self, now: Now) -> Result<bool, Halt> {
        self.inflate_next(now).or_else(|halt| match &mut self.pieces {
            Some(pieces) => {
                self.pieces_ready = false;
                pieces.is_wrong(halt).map(|()| true)
            }
            None => Err(halt),
        })
    }

    fn inflate_next(&mut self, now: Now) -> Result<bool, Halt> {
        let in_pieces = self.pieces.as_mut().and_then(|pieces| pieces.inflater.as_mut());
        let whole = self.inflating.as_mut();
        let Some(inflater) = whole.or(in_pieces) else {
            self.pieces_ready = false;
            return Ok(false);
        };
        match inflater.next_event().map_err(|e| errors::of_payload(&e))? {
            Inflated::Event(event) => {
                // An inflated event shares one step of inflation with its neighbours: a small one that is
                // delivered is copied out, or it would keep all of them alive.
                let sliced = event.body.len() < Inflater::STEP / 2;
                self.dispatch(event, sliced, true, now)
            }
            Inflated::End => {
                self.inflating = None;
                self.pieces = None;
                self.pieces_ready = false;
                if core::mem::take(&mut self.held_commit) {
                    P::mark(Mark::HeldCommitReleased);
                    self.commit(now)?;
                }
                Ok(true)
            }
            Inflated::NeedsInput if self.pieces.is_some() => {
                self.pieces_ready = false;
                Ok(true)
            }
            // All of the payload was given, so there is nothing to wait for.
            Inflated::NeedsInput => Err(Halt::new(Code::PayloadMalformed)),
        }
    }

    /// Whether an event of which only `head` is there (its header at least) is to be taken in pieces: a large
    /// payload event, or a large row event that nobody wants.
    #[must_use]
    pub fn wants_pieces(&self, head: &[u8]) -> bool {
        EventHeader::parse(head).is_ok_and(|header| {
            header.size() > self.stream_above
                && (header.event_type == EventType::TransactionPayload || self.is_unwanted(head))
        })
    }

    /// Whether an event of which only `head` is there holds rows of a table that is not captured, or of a
    /// transaction that is stepped over.
    fn is_unwanted(&self, head: &[u8]) -> bool {
        pieces::rows_start(head).is_some_and(|(table_id, _)| {
            self.group.as_ref().is_some_and(|group| group.skip) || self.tables.is_filtered(table_id)
        })
    }

    /// Whether an event is being taken in pieces.
    #[must_use]
    pub const fn in_pieces(&self) -> bool {
        self.pieces.is_some()
    }

    /// Begins an event that is taken in pieces.
    pub fn begin_pieces(&mut self) -> Result<(), Halt> {
        if self.group.is_none() || self.inflating.is_some() {
            return Err(Halt::new(Code::EventOutOfPlace));
        }
        self.pieces = Some(Box::new(Pieces::new(self.decoder.checksum(), self.row_event_max)));
        self.pieces_ready = false;
        self.held_commit = false;
        Ok(())
    }

    /// Takes the next bytes of it.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<bool, Halt> {
        if let Some(pieces) = &mut self.pieces {
            pieces.push(bytes)?;
            self.pieces_ready = pieces.is_ready();
        }
        Ok(true)
    }

    /// It is over; what it still holds comes by [`Assembler::inflate`].
    pub fn end_pieces(&mut self) -> Result<bool, Halt> {
        if let Some(pieces) = &mut self.pieces {
            pieces.end()?;
            let passed = pieces.passed;
            self.pieces_ready = passed.is_none();
            if passed.is_some() {
                P::mark(Mark::RowsPassedBy);
                self.pieces = None;
            }
            if passed == Some(true) {
                self.close_tables();
            }
        }
        Ok(true)
    }

    /// The next event to deliver, numbered.
    pub fn next_emitted(&mut self, next: &mut Seq) -> Option<Event> {
        let mut event = self.emitted.pop_front()?;
        match &mut event {
            Event::TxBegin(begin) => {
                begin.seq = number(next);
                self.emitting = Some(begin.seq);
            }
            Event::TxCommit(commit) => commit.seq = self.emitting.take().unwrap_or_default(),
            Event::TxAbort { seq, .. } => *seq = self.emitting.take().unwrap_or_default(),
            Event::Claim { .. }
            | Event::Progress { .. }
            | Event::SnapshotRows(_)
            | Event::Table(_)
            | Event::Rows(_)
            | Event::SchemaChange(_) => {}
        }
        Some(event)
    }

    /// The link is gone: what ends the transaction that is being emitted, if there is one.
    pub fn abort(&mut self) -> Option<Event> {
        self.held = None;
        let gtid = self.group.take().and_then(|group| group.gtid);
        match &self.emitting {
            Some(_) => P::mark(Mark::AbortedByLink),
            None if gtid.is_some() => P::mark(Mark::GroupDroppedByLink),
            None => {}
        }
        if P::mutant(Mutant::DropAbort) {
            return None;
        }
        if P::mutant(Mutant::CommitPart) && gtid.is_some() {
            let commit = |seq| TxCommit { seq, gtid, original_commit: SourceTime(0), passed: None, xa: None };
            return self.emitting.take().map(|seq| Event::TxCommit(commit(seq)));
        }
        self.inflating = None;
        self.pieces = None;
        self.pieces_ready = false;
        self.emitting.take().map(|seq| Event::TxAbort { seq, comes_again: true })
    }

    /// Since when passed transactions are untold; `None` also while a transaction is being emitted,
    /// for they are told with it.
    #[must_use]
    pub const fn passed_since(&self) -> Option<Now> {
        if self.emitting.is_some() { None } else { self.passed_since }
    }

    /// How many passed transactions are untold.
    #[must_use]
    pub const fn passed_count(&self) -> u64 {
        self.passed_count
    }

    /// Tells of them.
    pub fn take_progress(&mut self, next: &mut Seq) -> Option<Event> {
        if self.emitting.is_some() {
            return None;
        }
        let advance = self.take_passed()?;
        Some(Event::Progress { seq: number(next), advance })
    }

    /// Everything that was read to its end on this link, and what was there before.
    #[must_use]
    pub const fn processed(&self) -> &GtidSet {
        &self.processed
    }

    /// Whether the goal of `until` is reached, in a history that is the one it was.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.until.as_ref().is_some_and(|(_, left)| *left == 0) && self.is_verified()
    }

    /// Says that the server counts all of the goal of `until` as executed.
    pub const fn expect_goal(&mut self) {
        self.until_is_there = true;
    }

    /// What the server counts as executed and will not send, of the goal and of what was to come once more: its log
    /// ended before, and for as long as `idle`. A server puts a transaction into its log before it counts it as
    /// executed, and repeats a heartbeat at one place only where its log ends (`sql/rpl_binlog_sender.cc`: between
    /// groups that it steps over the place moves).
    #[must_use]
    pub fn goal_missing(&self, now: Now, idle: Duration) -> Option<GtidSet> {
        let since = self.idle.as_ref()?.since;
        let (until, _) = self.until.as_ref().filter(|_| self.until_is_there && self.group.is_none())?;
        if self.is_reached() || now < since.after(idle) || P::mutant(Mutant::GoalUnseen) {
            return None;
        }
        let mut missing = until.subtract(&self.processed);
        for last in self.verify.values() {
            missing.add(&last.gtid);
        }
        Some(missing)
    }

    /// Whether every transaction that was to come once more has come.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.verify.is_empty()
    }

    /// Commit time of the newest transaction that was passed.
    #[must_use]
    pub const fn committed_at(&self) -> Option<SourceTime> {
        self.committed_at
    }

    /// Where in the log this is.
    #[must_use]
    pub fn place(&self) -> Place {
        let gtid = self.group.as_ref().and_then(|group| group.gtid);
        Place { gtid, ..self.place.clone() }
    }

    /// Whether a group is open: a file that ends here is incomplete.
    #[must_use]
    pub const fn in_group(&self) -> bool {
        self.group.is_some()
    }

    // ---- events ------------------------------------------------------------------------------

    fn take(&mut self, event: crate::binlog::Event, sliced: bool, now: Now) -> Result<bool, Halt> {
        self.locate(&event.header);
        if !matches!(event.header.event_type, EventType::Heartbeat | EventType::HeartbeatV2) {
            self.idle = None;
        }
        self.dispatch(event, sliced, false, now)
    }

    /// Keeps the 64-bit offset: a header carries the low 32 bits of where its event ends, and the
    /// artificial ROTATE at the head of a stream the whole of it.
    fn locate(&mut self, header: &EventHeader) {
        let size = u64::from(header.event_size);
        if self.offline {
            self.place.offset = Some(self.offset);
            return;
        }
        if header.has(flags::ARTIFICIAL) || header.log_pos == 0 {
            return;
        }
        let low = u64::from(header.log_pos);
        let mut end = (self.offset & !0xffff_ffff) | low;
        if end < self.offset {
            end = end.saturating_add(1 << 32);
        }
        self.offset = end;
        self.place.offset = Some(end.saturating_sub(size));
    }

    fn dispatch(
        &mut self,
        event: crate::binlog::Event,
        sliced: bool,
        inner: bool,
        now: Now,
    ) -> Result<bool, Halt> {
        let crate::binlog::Event { header, body } = event;
        if inner && (self.held_commit || !belongs_into_payload(header.event_type)) {
            return Err(Halt::new(Code::EventOutOfPlace));
        }
        match header.event_type {
            EventType::FormatDescription => {
                self.forget_tables();
                if !header.has(flags::ARTIFICIAL) && header.log_pos != 0 {
                    // The server ended inside a group and started again: the group was rolled back.
                    self.drop_group();
                }
                return Ok(false);
            }
            EventType::Rotate => {
                self.on_rotate(&Rotate::decode(&body).map_err(|e| errors::of_decode(&e))?);
                return Ok(false);
            }
            EventType::PreviousGtids => return Ok(false),
            EventType::Heartbeat => {
                self.on_heartbeat(
                    &Heartbeat::decode(&header, &body).map_err(|e| errors::of_decode(&e))?,
                    now,
                );
            }
            EventType::HeartbeatV2 => {
                self.on_heartbeat(&Heartbeat::decode_v2(&body).map_err(|e| errors::of_decode(&e))?, now);
            }
            EventType::Gtid => self.on_gtid(&GtidEvent::decode(&body).map_err(|e| errors::of_decode(&e))?)?,
            EventType::GtidTagged => {
                self.on_gtid(&GtidEvent::decode_tagged(&body).map_err(|e| errors::of_decode(&e))?)?;
            }
            EventType::AnonymousGtid => {
                self.on_gtid(&GtidEvent::decode_anonymous(&body).map_err(|e| errors::of_decode(&e))?)?;
            }
            EventType::Query => {
                let query = crate::binlog::Query::decode(&body).map_err(|e| errors::of_decode(&e))?;
                self.on_query(&query, &header, now)?;
            }
            EventType::ExecuteLoadQuery => {
                let query =
                    crate::binlog::Query::decode_execute_load(&body).map_err(|e| errors::of_decode(&e))?;
                self.open_group(&header)?;
                self.on_statement_logged(&query, now)?;
            }
            EventType::Xid => self.commit(now)?,
            EventType::XaPrepare => {
                let prepare = XaPrepare::decode(&body).map_err(|e| errors::of_decode(&e))?;
                self.on_xa_prepare(&prepare, now)?;
            }
            EventType::TableMap => {
                self.open_group(&header)?;
                if !self.skips() {
                    self.tables.map(&body)?;
                }
            }
            EventType::WriteRows
            | EventType::UpdateRows
            | EventType::DeleteRows
            | EventType::WriteRowsV1
            | EventType::UpdateRowsV1
            | EventType::DeleteRowsV1
            | EventType::PartialUpdateRows => self.on_rows(header.event_type, body, sliced)?,
            EventType::TransactionPayload => self.on_payload(&body, inner, now)?,
            // Group Replication's own: the members changed (inside a group of its own), or what a
            // transaction was certified with. Neither changes a row.
            EventType::ViewChange | EventType::TransactionContext => {}
            // They only prepare a statement that is judged when it comes itself.
            EventType::Intvar
            | EventType::Rand
            | EventType::UserVar
            | EventType::BeginLoadQuery
            | EventType::AppendBlock
            | EventType::DeleteFile => self.open_group(&header)?,
            EventType::Stop | EventType::Ignorable | EventType::RowsQuery => {}
            EventType::Incident if P::mutant(Mutant::PassIncident) => self.commit(now)?,
            EventType::Incident => return Err(Halt::new(Code::Incident)),
            EventType::StartV3
            | EventType::Load
            | EventType::Slave
            | EventType::CreateFile
            | EventType::ExecLoad
            | EventType::NewLoad
            | EventType::PreGaWriteRows
            | EventType::PreGaUpdateRows
            | EventType::PreGaDeleteRows
            | EventType::Unknown(_) => {
                if header.has(flags::IGNORABLE) {
                    P::mark(Mark::UnknownIgnored);
                } else if !P::mutant(Mutant::SkipUnknown) {
                    let code = u64::from(header.event_type.code());
                    return Err(Halt::new(Code::UnknownEventType).with(Detail::Number(code)));
                }
            }
        }
        Ok(true)
    }

    fn on_rotate(&mut self, rotate: &Rotate) {
        if self.group.is_some() {
            P::mark(Mark::RotateInGroup);
        }
        self.forget_tables();
        self.place.file = Some(String::from_utf8_lossy(&rotate.file).into_owned());
        self.offset = rotate.position;
        self.place.offset = Some(rotate.position);
    }

    fn on_heartbeat(&mut self, heartbeat: &Heartbeat, now: Now) {
        if self.group.is_some() {
            P::mark(Mark::HeartbeatInGroup);
        }
        if self.idle.as_ref().is_none_or(|idle| idle.at != *heartbeat) {
            // Copied: it would keep a read chunk alive.
            let at = Heartbeat { file: bytes::Bytes::copy_from_slice(&heartbeat.file), ..*heartbeat };
            self.idle = Some(Idle { at, since: now });
        }
        // Heartbeats stand in for groups the server steps over, so the place moves with them.
        if heartbeat.position >= self.offset {
            self.offset = heartbeat.position;
        }
    }

    fn on_gtid(&mut self, event: &GtidEvent) -> Result<(), Halt> {
        if self.group.is_some() {
            return Err(Halt::new(Code::EventOutOfPlace));
        }
        let original = event.original_commit_timestamp.unwrap_or_default();
        let mut skip = false;
        match event.gtid {
            Some(gtid) => {
                skip = self.processed.contains(&gtid);
                if skip {
                    P::mark(Mark::Skipped);
                }
                skip &= !P::mutant(Mutant::DeliverAgain);
            }
            None if self.offline || P::mutant(Mutant::PassAnonymous) => {}
            None => return Err(Halt::new(Code::AnonymousTransaction)),
        }
        let group = Group::new(event.gtid, event.immediate_commit_timestamp, original, skip);
        if P::mutant(Mutant::VerifyAtBegin) {
            self.verify(&group)?;
        }
        self.group = Some(group);
        Ok(())
    }

    /// The newest transaction of a source comes once more after a start: the same number with another
    /// original commit timestamp is another transaction, of a history that was reset. Asked at the end of a
    /// group: what a dying server left unfinished was never committed, and its number is used again.
    fn verify(&mut self, group: &Group) -> Result<(), Halt> {
        let Some(gtid) = &group.gtid else { return Ok(()) };
        let tsid = gtid.tsid();
        let Some(last) = self.verify.get(&tsid) else { return Ok(()) };
        if last.gtid != *gtid {
            return Ok(());
        }
        if last.original_commit != group.original_commit {
            P::mark(Mark::HistoryChanged);
            return Err(
                Halt::new(Code::SourceHistoryChanged).at(Place { gtid: Some(*gtid), ..Place::default() })
            );
        }
        P::mark(Mark::Verified);
        self.verify.remove(&tsid);
        Ok(())
    }

    fn on_payload(&mut self, body: &bytes::Bytes, inner: bool, now: Now) -> Result<(), Halt> {
        if inner || self.inflating.is_some() {
            return Err(Halt::new(Code::PayloadMalformed));
        }
        if self.group.is_none() {
            return Err(Halt::new(Code::EventOutOfPlace));
        }
        if self.skips() {
            // Its terminator is inside, so the group ends here.
            P::mark(Mark::SkippedPayload);
            return self.commit(now);
        }
        let payload = TransactionPayload::decode(body).map_err(|e| match errors::of_decode(&e) {
            halt if halt.code == Code::EventMalformed => Halt::new(Code::PayloadMalformed),
            halt => halt,
        })?;
        let inflater = Inflater::whole(&payload, self.row_event_max).map_err(|e| errors::of_payload(&e))?;
        self.inflating = Some(Box::new(inflater));
        Ok(())
    }

    fn on_rows(&mut self, event_type: EventType, body: bytes::Bytes, sliced: bool) -> Result<(), Halt> {
        let Some(group) = self.group.as_ref() else { return Err(Halt::new(Code::EventOutOfPlace)) };
        if group.skip {
            return Ok(());
        }
        if body.len() > self.row_event_max {
            return Err(Halt::new(Code::RowEventTooLarge));
        }
        let Some((table, rows)) = self.tables.rows::<P>(event_type.code(), body, sliced)? else {
            return Ok(());
        };
        self.offer(table, rows)
    }

    /// Rows on their way past the initial copy.
    fn offer(&mut self, table: Option<Arc<TableVersion>>, rows: RowsEvent) -> Result<(), Halt> {
        let (gtid, emitted) = self.group.as_ref().map_or((None, false), |group| (group.gtid, group.streamed));
        let parts = match self.gate.judge::<P>(rows, gtid.as_ref(), emitted)? {
            Judged::Pass(rows) => {
                if let Some(table) = table {
                    self.push(Event::Table(table));
                }
                self.push(Event::Rows(rows));
                return Ok(());
            }
            Judged::Parts(parts) => {
                P::mark(Mark::CopyJudged);
                parts
            }
            Judged::Wait(rows) => {
                P::mark(Mark::CopyWaits);
                self.held = Some((table, rows));
                return Ok(());
            }
        };
        if parts.is_empty() {
            if table.is_some() {
                // Nothing was announced, after all.
                self.tables.forget_announced();
            }
            return Ok(());
        }
        if let Some(table) = table {
            self.push(Event::Table(table));
        }
        for rows in parts {
            self.push(Event::Rows(rows));
        }
        Ok(())
    }

    /// Whether rows wait for the initial copy: nothing more may be taken until they have gone on.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Lets rows that wait go on, if they may.
    pub fn release(&mut self) -> Result<bool, Halt> {
        if self.gate.holds_back() {
            return Ok(false);
        }
        let Some((table, rows)) = self.held.take() else { return Ok(false) };
        self.offer(table, rows)?;
        Ok(true)
    }

    /// The gate of the initial copy.
    pub(crate) const fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The same, to tell it of the copy.
    pub(crate) const fn gate_mut(&mut self) -> &mut Gate {
        &mut self.gate
    }

    /// Nothing can be copied of a table that is not there.
    pub(crate) fn table_is_gone(&mut self, table: &CopiedTable, now: Now) {
        self.gate.not_there(table);
        self.passed_since.get_or_insert(now);
    }

    /// Whether no transaction is being emitted: another unit may stand here.
    pub(crate) fn is_between_units(&self) -> bool {
        self.emitting.is_none() && self.emitted.is_empty()
    }

    /// A chunk of the initial copy stands here.
    pub(crate) fn chunk(&mut self, mut chunk: Box<SnapshotChunk>, copy: TableCopy, next: &mut Seq) -> Event {
        let name = (String::from(chunk.table.schema()), String::from(chunk.table.table()));
        self.gate.delivered(&name, copy.clone());
        if let Some(mut passed) = self.take_passed() {
            core::mem::swap(&mut chunk.advance, &mut passed);
        }
        if !P::mutant(Mutant::ForgetProgress) {
            chunk.advance.copies.insert(name, copy);
        }
        chunk.seq = number(next);
        Event::SnapshotRows(chunk)
    }

    /// Adds an item to the open group; above the limit the group is emitted from here on.
    fn push(&mut self, event: Event) {
        let Some(group) = self.group.as_mut() else { return };
        if group.streamed {
            self.emitted.push_back(event);
            return;
        }
        // A schema change is never taken apart, however long its text.
        let rows = matches!(event, Event::Rows(_));
        group.bytes = group.bytes.saturating_add(event.weight());
        group.events.push(event);
        // Without a GTID (offline only) nothing could be aborted, and files are small enough.
        if rows && group.bytes > self.stream_above && !P::mutant(Mutant::NeverStream) {
            P::mark(Mark::StreamingBegins);
            group.streamed = true;
            self.emitted.push_back(begin(group));
            self.emitted.extend(group.events.drain(..));
            group.bytes = 0;
        }
    }

    /// Files of servers without GTIDs open a group by BEGIN alone.
    fn open_group(&mut self, header: &EventHeader) -> Result<(), Halt> {
        if self.group.is_some() {
            return Ok(());
        }
        if !self.offline {
            return Err(Halt::new(Code::EventOutOfPlace));
        }
        let at = SourceTime(u64::from(header.timestamp).saturating_mul(1_000_000));
        self.group = Some(Group::new(None, Some(at), at, false));
        Ok(())
    }

    fn skips(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.skip)
    }

    // ---- terminators -------------------------------------------------------------------------

    /// XID, COMMIT, one-phase XA, self-committing DDL.
    fn commit(&mut self, now: Now) -> Result<(), Halt> {
        if self.pieces.is_some() && !P::mutant(Mutant::CommitUnchecked) {
            // The checksum is still to come.
            P::mark(Mark::CommitHeld);
            self.held_commit = true;
            return Ok(());
        }
        self.finish(None, now)
    }

    fn finish(&mut self, xa: Option<XaState>, now: Now) -> Result<(), Halt> {
        let Some(mut group) = self.group.take() else { return Err(Halt::new(Code::EventOutOfPlace)) };
        self.close_tables();
        self.verify(&group)?;
        if group.skip {
            return Ok(());
        }
        self.committed_at = group.committed_at.or(self.committed_at);
        if !group.has_content() && xa.is_none() {
            P::mark(Mark::Passed);
            self.count(&group);
            self.pass(&group, now);
            return Ok(());
        }
        if !group.streamed {
            self.emitted.push_back(begin(&group));
            self.emitted.extend(group.events.drain(..));
        }
        let passed = self.take_passed();
        if passed.is_some() {
            P::mark(Mark::PassedWithCommit);
        }
        self.emitted.push_back(Event::TxCommit(TxCommit {
            seq: Seq(0),
            gtid: group.gtid,
            original_commit: group.original_commit,
            passed,
            xa,
        }));
        self.count(&group);
        Ok(())
    }

    /// ROLLBACK: the rows go, the GTID counts.
    fn rollback(&mut self, now: Now) -> Result<(), Halt> {
        if P::mutant(Mutant::DeliverRolledBack) {
            return self.commit(now);
        }
        let taken = if self.pieces.is_some() { None } else { self.group.take() };
        let Some(group) = taken else { return Err(Halt::new(Code::EventOutOfPlace)) };
        self.close_tables();
        self.verify(&group)?;
        if group.skip {
            return Ok(());
        }
        P::mark(Mark::RolledBack);
        if P::mutant(Mutant::ForgetRolledBack) {
            return Ok(());
        }
        if group.streamed {
            P::mark(Mark::StreamedRolledBack);
            self.emitted.push_back(Event::TxAbort { seq: Seq(0), comes_again: false });
        }
        self.count(&group);
        self.pass(&group, now);
        Ok(())
    }

    /// The server ended inside the group.
    fn drop_group(&mut self) {
        if self.group.is_some() {
            P::mark(Mark::ServerEndedInGroup);
        }
        if P::mutant(Mutant::KeepGroup) {
            return;
        }
        self.close_tables();
        if self.group.take().is_some_and(|group| group.streamed) {
            self.emitted.push_back(Event::TxAbort { seq: Seq(0), comes_again: true });
        }
    }

    fn on_xa_prepare(&mut self, prepare: &XaPrepare, now: Now) -> Result<(), Halt> {
        let Some(group) = self.group.as_ref() else { return Err(Halt::new(Code::EventOutOfPlace)) };
        if prepare.one_phase {
            return self.commit(now);
        }
        let xid = &prepare.xid;
        let digest = XaDigest::new(xid.format_id.cast_unsigned(), &xid.gtrid, &xid.bqual);
        if group.skip {
            return self.commit(now);
        }
        if P::mutant(Mutant::PassXa) {
            return self.commit(now);
        }
        if group.has_content() {
            if !self.offline {
                return Err(Halt::new(Code::XaTransaction));
            }
            return self.finish(Some(XaState::Prepared), now);
        }
        P::mark(Mark::XaPrepared);
        self.prepared.insert(digest);
        self.passed.prepare(digest);
        self.commit(now)
    }

    /// XA COMMIT or XA ROLLBACK of a prepared transaction, in a group of its own.
    fn resolve_xa(&mut self, digest: XaDigest, committed: bool, now: Now) -> Result<(), Halt> {
        let Some(group) = self.group.as_ref() else { return Err(Halt::new(Code::EventOutOfPlace)) };
        if !group.skip && !self.prepared.remove(&digest) && committed && !self.offline {
            // Its rows lie before the start of this stream, and nobody can say whether they are ours.
            return Err(Halt::new(Code::XaPrepareNotSeen));
        }
        if !group.skip {
            P::mark(Mark::XaResolved);
            self.passed.resolve(digest);
        }
        if self.offline {
            let state = if committed { XaState::Committed } else { XaState::RolledBack };
            return self.finish(Some(state), now);
        }
        self.commit(now)
    }

    /// The statement or the group is over.
    fn close_tables(&mut self) {
        if !P::mutant(Mutant::KeepTableMaps) {
            self.tables.close();
        }
    }

    /// Another file, or another server process.
    fn forget_tables(&mut self) {
        if !P::mutant(Mutant::KeepTableMaps) {
            self.tables.clear();
        }
    }

    fn count(&mut self, group: &Group) {
        let Some(gtid) = &group.gtid else { return };
        self.processed.add(gtid);
        if let Some((until, left)) = &mut self.until
            && until.contains(gtid)
        {
            *left = left.saturating_sub(1);
        }
    }

    fn pass(&mut self, group: &Group, now: Now) {
        let Some(gtid) = group.gtid else { return };
        if P::mutant(Mutant::ForgetFiltered) {
            return;
        }
        self.passed.add(gtid, group.original_commit);
        self.passed_count = self.passed_count.saturating_add(1);
        self.passed_since.get_or_insert(now);
    }

    fn take_passed(&mut self) -> Option<Box<Advance>> {
        if self.gate.has_untold() {
            self.passed.copies.extend(self.gate.take_untold());
        }
        self.passed_count = 0;
        self.passed_since = None;
        if self.passed.is_empty() { None } else { Some(core::mem::take(&mut self.passed)) }
    }
}

/// What a payload may hold: the events of one group between its GTID and its end, and nothing that
/// speaks of the log itself.
const fn belongs_into_payload(event_type: EventType) -> bool {
    !matches!(
        event_type,
        EventType::FormatDescription
            | EventType::Rotate
            | EventType::PreviousGtids
            | EventType::Heartbeat
            | EventType::HeartbeatV2
            | EventType::Gtid
            | EventType::GtidTagged
            | EventType::AnonymousGtid
            | EventType::Stop
    )
}

fn begin(group: &Group) -> Event {
    Event::TxBegin(TxBegin {
        seq: Seq(0),
        gtid: group.gtid,
        committed_at: group.committed_at,
        streamed: group.streamed,
        schema_change: group.schema_change,
    })
}

const fn number(next: &mut Seq) -> Seq {
    let seq = *next;
    next.0 = next.0.saturating_add(1);
    seq
}

/// The event under the checksum it should have: a mistake that a probe may ask for.
fn resealed(event: bytes::Bytes) -> bytes::Bytes {
    let mut event = alloc::vec::Vec::from(event);
    if let Some((content, sum)) = event.split_last_chunk_mut::<{ Checksum::LENGTH }>() {
        *sum = crc32fast::hash(content).to_le_bytes();
    }
    event.into()
}
