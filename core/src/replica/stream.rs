//! One link from the dial to its end.

use alloc::{boxed::Box, collections::BTreeMap, format, string::String, vec::Vec};

use bytes::{Bytes, BytesMut};

use super::{
    Claim, HOLES_MAX, Replica, Served,
    gates::{Closed, Findings, Gates, Next, test_history},
    phase::{Phase, Wire},
    seam::{ApiMisuse, DialEpoch, Link, LoadReason, LostReason, Output},
};
use crate::{
    assemble::{Assembler, Setup},
    capture::CapturedSet,
    config::{Start, Until},
    deliver::{Event, Position},
    gtid::{Gtid, GtidSet, Intervals, Tsid},
    halt::{Code, Detail, Halt},
    link::{
        BinlogDump, DumpRefusal, ErrorMeaning, Framer, Handshake, HandshakeError, OkPacket, PacketError,
        Payload, Query, QueryLimits, QueryResult, QueryStep, RegisterReplica, ServerError, Session, Step,
        StreamPacket,
        command::{BINLOG_THROUGH_GTID, query},
        packet::{HEADER_LEN, Piece, encode},
    },
    probe::{Mark, Mutant, Probe},
};

/// Room for what surrounds a row event: its packet's marker byte and a checksum.
const EVENT_SLACK: usize = 64;

/// Longest payload before the stream begins; a GTID set has reached megabytes.
const ANSWER_MAX: usize = 64 << 20;

const NOT_MYSQL: &str = "What answers there does not speak MySQL's protocol";

impl<P: Probe> Replica<P> {
    pub(super) fn dial(&mut self) {
        self.epoch = DialEpoch(self.epoch.0.wrapping_add(1));
        self.facts.dials += 1;
        self.phase = Phase::Dialling;
        self.link_open = true;
        self.step_deadline();
        self.outputs.push_back(Output::Connect(Link::Stream, self.epoch));
    }

    fn step_deadline(&mut self) {
        self.link_deadline = Some(self.now.after(self.config.limits.dial));
    }

    /// Whether something said about `epoch` is about the open link.
    fn is_current(&self, epoch: DialEpoch) -> bool {
        if self.link_open && epoch != self.epoch {
            P::mark(Mark::OldDial);
        }
        self.link_open && (epoch == self.epoch || P::mutant(Mutant::AnyDial))
    }

    pub(super) fn on_connected(&mut self, epoch: DialEpoch) -> Result<(), ApiMisuse> {
        if !self.is_current(epoch) {
            return Ok(());
        }
        if !matches!(self.phase, Phase::Dialling) {
            return Err(ApiMisuse::UnaskedAnswer);
        }
        let handshake = Handshake::new(self.config.login.clone(), self.entropy.bytes());
        self.phase = Phase::Login(Box::new(Framer::new(ANSWER_MAX)), Box::new(handshake));
        self.step_deadline();
        Ok(())
    }

    pub(super) fn on_secured(&mut self, epoch: DialEpoch) -> Result<(), ApiMisuse> {
        if !self.is_current(epoch) {
            return Ok(());
        }
        match core::mem::replace(&mut self.phase, Phase::Parked) {
            Phase::Securing(framer, pending) => {
                if !framer.is_at_boundary() {
                    // Bytes that came in the clear would be taken for the server's.
                    self.nonsense();
                    return Ok(());
                }
                self.step_deadline();
                let step = pending.secured();
                self.on_login_step(framer, step);
                Ok(())
            }
            other @ (Phase::Parked
            | Phase::Loading
            | Phase::Backoff(_)
            | Phase::Dialling
            | Phase::Login(..)
            | Phase::Gating(..)
            | Phase::Claiming(..)
            | Phase::Registering(..)
            | Phase::Streaming(..)) => {
                self.phase = other;
                Err(ApiMisuse::UnaskedAnswer)
            }
        }
    }

    pub(super) fn on_bytes(&mut self, epoch: DialEpoch, bytes: Bytes) {
        if !self.is_current(epoch) || bytes.is_empty() {
            return;
        }
        self.last_heard = self.now;
        self.facts.bytes = self.facts.bytes.saturating_add(bytes.len() as u64);
        if let Some(framer) = self.phase.framer_mut() {
            framer.push(bytes);
        }
    }

    pub(super) fn on_lost(&mut self, epoch: DialEpoch, reason: LostReason) {
        if !self.is_current(epoch) {
            return;
        }
        match reason {
            LostReason::CertificateUntrusted => self.halt(Halt::new(Code::CertificateUntrusted)),
            LostReason::CertificateNameMismatch => self.halt(Halt::new(Code::CertificateNameMismatch)),
            LostReason::Unresolved => self.trouble_noted("The host name could not be resolved"),
            LostReason::Refused => self.trouble_noted("The connection was refused"),
            LostReason::DialTimeout => self.trouble_noted("The connection took too long"),
            LostReason::Eof => self.trouble_noted("The server closed the connection"),
            LostReason::Reset => self.trouble_noted("The connection was reset"),
            LostReason::TlsFailed => self.trouble_noted("TLS could not be established"),
        }
    }

    fn trouble_noted(&mut self, note: &'static str) {
        self.trouble(Halt::new(Code::SourceUnreachable).with(Detail::Note(note)));
    }

    /// Something that may pass: the link is given up and tried again, until `halt` is due.
    pub(super) fn trouble(&mut self, halt: Halt) {
        if self.end.is_some() {
            return;
        }
        if self.phase.assembler().is_some() {
            self.facts.reconnects += 1;
        }
        self.leave_link();
        self.facts.trouble = Some(halt.code);
        let since = *self.trouble_since.get_or_insert(self.now);
        if self.now.since(since) >= self.config.limits.trouble_max || P::mutant(Mutant::HaltOnDrop) {
            P::mark(Mark::TroubleTooLong);
            return self.halt(halt);
        }
        self.trouble = Some(halt);
        if self.asked.is_some() {
            P::mark(Mark::TroubleWhileAsked);
        }
        if self.draining.is_none() && self.asked.is_none_or(|(reason, _)| reason == LoadReason::AfterFailure)
        {
            let at = self.backoff(self.attempts);
            self.attempts = self.attempts.saturating_add(1);
            self.phase = Phase::Backoff(at);
        }
    }

    /// The stream is alive: trouble is forgotten.
    fn alive(&mut self) {
        self.attempts = 0;
        if P::mutant(Mutant::NeverForgive) {
            return;
        }
        self.trouble_since = None;
        self.trouble = None;
        self.facts.trouble = None;
        self.refused_for_lack = false;
    }

    /// Closes the link, if there is one, and ends what was being emitted.
    pub(super) fn leave_link(&mut self) {
        if let Phase::Streaming(_, mut assembler) = core::mem::replace(&mut self.phase, Phase::Parked) {
            self.served.sent = assembler.processed().subtract(&self.served.from);
            if let Some(end) = assembler.abort() {
                self.emit(end);
            }
        }
        self.link_deadline = None;
        self.copy_terms = None;
        if let Some(mut copier) = self.copier.take() {
            copier.close(&mut self.outputs);
        }
        if core::mem::take(&mut self.link_open) {
            self.outputs.push_back(Output::Close(Link::Stream, self.epoch));
        }
    }

    fn transmit(&mut self, framer: &mut Framer, payload: &[u8]) {
        let mut out = BytesMut::with_capacity(payload.len().saturating_add(HEADER_LEN));
        encode(payload, framer.sequence_mut(), &mut out);
        self.outputs.push_back(Output::Transmit(Link::Stream, self.epoch, out.freeze()));
    }

    fn command(&mut self, framer: &mut Framer, payload: &[u8]) {
        framer.begin_command();
        self.transmit(framer, payload);
    }

    /// Works on one packet, or one piece of an inflating one. `false`: nothing can be done now.
    pub(super) fn step(&mut self) -> bool {
        if self.end.is_some() || self.draining.is_some() {
            return false;
        }
        if self.copy_step() {
            return true;
        }
        match core::mem::replace(&mut self.phase, Phase::Parked) {
            Phase::Login(mut framer, handshake) => match framer.next_payload() {
                Ok(Some(payload)) => {
                    let step = handshake.on_payload(&payload.bytes);
                    self.on_login_step(framer, step);
                    true
                }
                Ok(None) => self.park(Phase::Login(framer, handshake)),
                Err(error) => self.on_packet_error(error),
            },
            Phase::Gating(wire, gates, query) => self.on_answers(wire, gates, *query),
            Phase::Registering(mut wire, found) => match wire.framer.next_payload() {
                Ok(Some(payload)) => self.on_registered(wire, &found, &payload),
                Ok(None) => self.park(Phase::Registering(wire, found)),
                Err(error) => self.on_packet_error(error),
            },
            Phase::Streaming(wire, assembler) => self.stream_step(wire, assembler),
            other @ (Phase::Parked
            | Phase::Loading
            | Phase::Backoff(_)
            | Phase::Dialling
            | Phase::Securing(..)
            | Phase::Claiming(..)) => self.park(other),
        }
    }

    fn park(&mut self, phase: Phase<P>) -> bool {
        self.phase = phase;
        false
    }

    fn on_packet_error(&mut self, error: PacketError) -> bool {
        match error {
            PacketError::PayloadTooLarge { .. } | PacketError::OutOfOrder { .. } => self.nonsense(),
        }
        true
    }

    /// The peer does not speak the protocol, or lost its thread.
    fn nonsense(&mut self) {
        self.trouble_noted(NOT_MYSQL);
    }

    // ---- login -------------------------------------------------------------------------------

    fn on_login_step(&mut self, mut framer: Box<Framer>, step: Result<Step, HandshakeError>) {
        match step {
            Ok(Step::Send(payload, handshake)) => {
                self.transmit(&mut framer, &payload);
                self.phase = Phase::Login(framer, Box::new(handshake));
            }
            Ok(Step::Wait(handshake)) => self.phase = Phase::Login(framer, Box::new(handshake)),
            Ok(Step::StartTls(payload, pending)) => {
                if !framer.is_at_boundary() {
                    // Bytes injected before encryption would be taken for the server's.
                    return self.nonsense();
                }
                self.transmit(&mut framer, &payload);
                self.phase = Phase::Securing(framer, Box::new(pending));
                self.outputs.push_back(Output::Secure(Link::Stream, self.epoch));
            }
            Ok(Step::Done(session)) => self.on_session(framer, session),
            Err(error) => self.on_login_error(error),
        }
    }

    fn on_login_error(&mut self, error: HandshakeError) {
        match error {
            HandshakeError::Refused(refused) => self.on_refused(&refused),
            HandshakeError::Unsupported(_) => self.halt(Halt::new(Code::UnsupportedServer)),
            HandshakeError::TlsNotOffered => self.halt(Halt::new(Code::TlsNotOffered)),
            HandshakeError::PluginUnsupported(_) | HandshakeError::SwitchedTwice => {
                self.halt(Halt::new(Code::AuthPluginUnsupported));
            }
            HandshakeError::KeyNotTrusted | HandshakeError::BadPublicKey(_) => {
                self.halt(Halt::new(Code::ServerKeyNotTrusted));
            }
            HandshakeError::PasswordTooLong(_) => self.halt(
                Halt::new(Code::ConfigInvalid)
                    .with(Detail::Setting("password".into(), "is too long for this exchange")),
            ),
            HandshakeError::ProtocolUnsupported | HandshakeError::Malformed(_)
                if self.facts.events == 0 && !P::mutant(Mutant::RetryNonsense) =>
            {
                // Never a stream from there: a wrong port, not a passing fault.
                self.halt(Halt::new(Code::UnsupportedServer).with(Detail::Note(NOT_MYSQL)));
            }
            HandshakeError::ProtocolUnsupported | HandshakeError::Malformed(_) => self.nonsense(),
        }
    }

    fn on_refused(&mut self, refused: &ServerError) {
        let number = refused.number();
        if P::mutant(Mutant::RetryRefused) {
            return self.trouble(Halt::new(Code::SourceUnreachable).with_server_error(number));
        }
        match refused.meaning() {
            ErrorMeaning::AccessDenied => self.halt(Halt::new(Code::AccessDenied).with_server_error(number)),
            ErrorMeaning::MissingPrivilege => {
                self.halt(Halt::new(Code::MissingPrivilege).with_server_error(number))
            }
            ErrorMeaning::Transient | ErrorMeaning::Other => {
                self.trouble(Halt::new(Code::SourceUnreachable).with_server_error(number));
            }
        }
    }

    fn on_session(&mut self, framer: Box<Framer>, session: Session) {
        let (sql, gates) = Gates::open(session.version);
        self.question(Box::new(Wire { framer, session }), gates, &sql);
    }

    // ---- gates -------------------------------------------------------------------------------

    fn question(&mut self, mut wire: Box<Wire>, gates: Gates, sql: &str) {
        self.step_deadline();
        self.command(&mut wire.framer, &query(sql.as_bytes()));
        let query = Query::new(wire.session.capabilities, QueryLimits::default());
        self.phase = Phase::Gating(wire, Box::new(gates), Box::new(query));
    }

    /// Takes what there is of an answer. `false`: more must be read first.
    fn on_answers(&mut self, mut wire: Box<Wire>, gates: Box<Gates>, mut query: Query) -> bool {
        loop {
            let payload = match wire.framer.next_payload() {
                Ok(Some(payload)) => payload,
                Ok(None) => return self.park(Phase::Gating(wire, gates, Box::new(query))),
                Err(error) => return self.on_packet_error(error),
            };
            match query.on_payload(&payload.bytes) {
                Ok(QueryStep::More(more)) => query = more,
                Ok(QueryStep::Done(result)) => {
                    self.on_result(wire, *gates, result);
                    return true;
                }
                Err(_) => {
                    self.nonsense();
                    return true;
                }
            }
        }
    }

    fn on_result(&mut self, wire: Box<Wire>, gates: Gates, result: QueryResult) {
        match gates.on_answer(result, &self.config) {
            Ok(Next::Ask(sql, gates)) => self.question(wire, gates, &sql),
            Ok(Next::History(gates)) => self.on_history(wire, gates),
            Ok(Next::Open(found)) => self.register(wire, found),
            Err(Closed::Retry(halt)) if !P::mutant(Mutant::HaltOnGateRetry) => {
                P::mark(Mark::GateRetry);
                self.trouble(halt);
            }
            Err(Closed::Halt(halt) | Closed::Retry(halt)) => self.halt(halt),
        }
    }

    /// Whether what the server lacks may be there and not counted in `gtid_executed` yet. A commit is in the log, and sent, before
    /// it is counted, for long where it waits for a replica (`rpl_semi_sync_source_wait_point`): what it has itself sent
    /// over the last link is waited for. What somebody else got of it shows as holes in what it counts (`binlog_order_commits`),
    /// and so does what a promoted replica applies out of order (`replica_preserve_commit_order`): these for [`HOLES_MAX`].
    fn is_counted_later(&mut self, halt: &Halt, position: &GtidSet, found: &Findings) -> bool {
        if halt.code != Code::SourceIdentityMismatch {
            return false;
        }
        let missing = position.subtract(&found.executed);
        let was_sent = found.source_uuid.is_some()
            && found.source_uuid == self.served.source
            && missing.is_subset(&self.served.sent)
            && !P::mutant(Mutant::ForgetSent);
        let is_hole = |tsid: &Tsid| {
            found.source_uuid == Some(tsid.uuid) || found.executed.intervals(tsid).last().is_some()
        };
        let since = *self.holes_since.get_or_insert(self.now);
        was_sent || missing.iter().all(|(tsid, _)| is_hole(&tsid)) && self.now.since(since) < HOLES_MAX
    }

    /// The server's history is known: the position is tested, then claimed.
    fn on_history(&mut self, wire: Box<Wire>, gates: Gates) {
        let found = gates.findings();
        let position = self.position(found);
        self.facts.executed = Some(found.executed.clone());
        self.facts.purged = Some(found.purged.clone());
        match test_history(position.gtid_set(), found) {
            Ok(()) => self.holes_since = None,
            Err(Closed::Halt(Halt { code: Code::DataGap, .. })) if P::mutant(Mutant::SkipGap) => {}
            Err(Closed::Halt(halt)) if self.is_counted_later(&halt, position.gtid_set(), found) => {
                P::mark(Mark::NotCountedYet);
                return self.trouble(Halt { code: Code::SourceBehind, ..halt });
            }
            Err(_) if P::mutant(Mutant::TrustAnySource) => {}
            Err(Closed::Halt(halt)) => {
                P::mark(Mark::HistoryHalt);
                return self.halt(halt);
            }
            Err(Closed::Retry(halt)) => {
                P::mark(Mark::SourceBehind);
                return self.trouble(halt);
            }
        }
        let behind = found.executed.subtract(position.gtid_set()).count();
        if P::mutant(Mutant::RefuseOlder) && self.claim == Claim::Open && behind > 5 {
            return self.halt(Halt::new(Code::DataGap));
        }
        if self.config.whole_history
            && self.claim != Claim::Done
            && self.config.start != Start::Stored
            && !position.gtid_set().is_empty()
        {
            // What is before this start will never come.
            let missing = Detail::Missing(position.gtid_set().clone());
            return self.halt(Halt::new(Code::HistoryIncomplete).with(missing));
        }
        if self.config.copy_again.is_some() && self.claim != Claim::Done && found.again.is_empty() {
            let note = Detail::Setting("copy-again".into(), "names no captured table");
            return self.halt(Halt::new(Code::ConfigInvalid).with(note));
        }
        if self.claim != Claim::Done
            && let Some(stored) = self.stored.as_ref().and_then(Option::as_deref)
            && let Some(uncovered) = uncovered(stored, found)
        {
            let halt = Halt::new(Code::CaptureSetChanged).with(Detail::Tables(uncovered));
            return self.halt(halt);
        }
        if let Some(Until::Now) = self.config.until {
            // Now is the first dial, not a later one.
            self.config.until = Some(Until::Set(found.executed.clone()));
        }
        if self.claim == Claim::Done {
            P::mark(Mark::Resumed);
            return self.set_session_up(wire, gates);
        }
        let seq = self.seq();
        self.claim = Claim::Sent(seq);
        self.link_deadline = None;
        self.phase = Phase::Claiming(wire, Box::new(gates));
        self.emit(Event::Claim { seq, position: Box::new(position) });
    }

    /// Where this link goes on from.
    fn position(&self, found: &Findings) -> Position {
        match (self.claim, &self.stored) {
            (Claim::Done, Some(Some(stored))) => (**stored).clone(),
            _ => self.claim_position(found),
        }
    }

    pub(super) fn go_on_after_claim(&mut self) {
        match core::mem::replace(&mut self.phase, Phase::Parked) {
            Phase::Claiming(wire, gates) => {
                let claimed = self.claim_position(gates.findings());
                self.stored = Some(Some(Box::new(claimed)));
                self.set_session_up(wire, *gates);
            }
            // The link was lost while the claim was on its way: the next one finds it done.
            other @ (Phase::Parked
            | Phase::Loading
            | Phase::Backoff(_)
            | Phase::Dialling
            | Phase::Login(..)
            | Phase::Securing(..)
            | Phase::Gating(..)
            | Phase::Registering(..)
            | Phase::Streaming(..)) => {
                P::mark(Mark::ClaimedWithoutLink);
                self.phase = other;
            }
        }
    }

    fn set_session_up(&mut self, wire: Box<Wire>, gates: Gates) {
        let (sql, gates) = gates.session(&self.config);
        self.question(wire, gates, &sql);
    }

    // ---- register and dump -------------------------------------------------------------------

    fn register(&mut self, mut wire: Box<Wire>, found: Findings) {
        self.step_deadline();
        let register =
            RegisterReplica { server_id: self.config.server_id, host: &self.config.report_host, port: 0 }
                .encode();
        self.command(&mut wire.framer, &register);
        self.phase = Phase::Registering(wire, Box::new(found));
    }

    fn on_registered(&mut self, wire: Box<Wire>, found: &Findings, payload: &Payload) -> bool {
        match ServerError::parse(&payload.bytes) {
            Ok(error) => self.on_dump_refused(&error),
            Err(_) if OkPacket::parse(&payload.bytes).is_ok() => self.dump(wire, found),
            Err(_) => self.nonsense(),
        }
        true
    }

    fn dump(&mut self, mut wire: Box<Wire>, found: &Findings) {
        let position = self.position(found);
        let until = match &self.config.until {
            Some(Until::Set(set)) => Some(set.clone()),
            Some(Until::Now) | None => None,
        };
        let mut request = position.gtid_set().clone();
        let mut verify = BTreeMap::new();
        if !self.verified && !P::mutant(Mutant::NoVerify) {
            // The last processed transaction of each source and tag is asked for once more: it is skipped,
            // and its commit timestamp tells a history that was reset and has grown again (BL-37).
            for (tsid, last) in position.last() {
                let one: GtidSet = core::iter::once(&last.gtid).fold(GtidSet::new(), |mut set, gtid| {
                    set.add(gtid);
                    set
                });
                if found.purged.contains(&last.gtid) {
                    P::mark(Mark::HistoryUnverified);
                    self.facts.history_unverified = true;
                    if self.config.strict {
                        return self.halt(Halt::new(Code::SourceHistoryUnverified));
                    }
                } else if position.gtid_set().contains(&last.gtid) {
                    P::mark(Mark::VerifyAsked);
                    request = request.subtract(&one);
                    verify.insert(*tsid, last.clone());
                }
            }
        }
        let setup = Setup {
            captured: self.config.captured.clone().with_lower_case_table_names(found.lower_case_table_names),
            lower_case_table_names: found.lower_case_table_names,
            position,
            verify,
            until: until.clone(),
            checksum: found.checksum,
            stream_above: self.config.limits.stream_above,
            row_event_max: self.config.limits.row_event_max,
            offline: false,
        };
        let mut assembler = Assembler::<P>::probed(setup);
        if until.is_some_and(|until| until.is_subset(&found.executed)) {
            assembler.expect_goal();
        }
        if let Some(wanted) = &self.config.snapshot {
            let wanted = wanted.clone().with_lower_case_table_names(found.lower_case_table_names);
            assembler.gate_mut().copy_what_enters(wanted);
        }
        if assembler.is_reached() && assembler.gate().is_done() && !P::mutant(Mutant::GoalUnseen) {
            return self.reached();
        }
        self.served =
            Served { source: found.source_uuid, from: assembler.processed().clone(), sent: GtidSet::new() };
        self.begin_copy(found);
        if request.iter().any(|(_, intervals)| intervals.len() > 1) {
            P::mark(Mark::PositionHasGaps);
        }
        if request.has_tags() {
            P::mark(Mark::PositionHasTags);
        }
        let encoded = mistaken::<P>(request, found).encode();
        let dump = BinlogDump {
            flags: BINLOG_THROUGH_GTID,
            server_id: self.config.server_id,
            file: b"",
            position: 4,
            gtid_set: &encoded,
        };
        wire.framer.set_payload_max(self.config.limits.row_event_max.saturating_add(EVENT_SLACK));
        self.command(&mut wire.framer, &dump.encode());
        self.link_deadline = None;
        self.last_heard = self.now;
        self.phase = Phase::Streaming(wire, Box::new(assembler));
    }

    fn on_dump_refused(&mut self, error: &ServerError) {
        let number = error.number();
        let by = |code| Halt::new(code).with_server_error(number);
        if P::mutant(Mutant::RetryRefused) {
            return self.trouble(by(Code::SourceUnreachable));
        }
        match error.dump_refusal() {
            DumpRefusal::DataGap => self.lacks(by(Code::DataGap)),
            DumpRefusal::ServerIdConflict => {
                // A second owner of the same target is told by its epoch, so that is asked first.
                P::mark(Mark::ServerIdConflict);
                self.leave_link();
                self.conflict = Some(number);
                self.start_over();
            }
            DumpRefusal::ChecksumNegotiationFailed => self.halt(by(Code::ChecksumNegotiationFailed)),
            DumpRefusal::SourceIdentityMismatch => self.lacks(by(Code::SourceIdentityMismatch)),
            DumpRefusal::MissingPrivilege => {
                self.halt(by(Code::MissingPrivilege).with(Detail::Privilege("REPLICATION SLAVE")));
            }
            DumpRefusal::Transient => self.trouble(by(Code::SourceUnreachable)),
            DumpRefusal::Refused(_) => self.halt(by(Code::DumpRefused)),
        }
    }

    /// The server's history is not what the gates saw a moment ago: something was purged in between
    /// (perhaps only what would have been sent once more), or another server answers. The gates of the
    /// next dial tell what is missing, if anything is.
    fn lacks(&mut self, halt: Halt) {
        if core::mem::replace(&mut self.refused_for_lack, true) {
            self.halt(halt);
        } else {
            P::mark(Mark::RefusedForLack);
            self.trouble(halt);
        }
    }

    // ---- the stream --------------------------------------------------------------------------

    fn stream_step(&mut self, mut wire: Box<Wire>, mut assembler: Box<Assembler<P>>) -> bool {
        if self.paused || self.is_spent() {
            return self.park(Phase::Streaming(wire, assembler));
        }
        let done = if assembler.is_held() {
            match assembler.release() {
                Ok(false) => return self.park(Phase::Streaming(wire, assembler)),
                released => released,
            }
        } else if assembler.is_inflating() {
            assembler.inflate(self.now)
        } else if assembler.in_pieces() {
            match wire.framer.next_piece() {
                Ok(Piece::Bytes(bytes)) => assembler.piece(&bytes),
                Ok(Piece::End) => assembler.end_pieces(),
                Ok(Piece::Wait) => {
                    P::mark(Mark::PieceAwaited);
                    return self.park(Phase::Streaming(wire, assembler));
                }
                Err(error) => {
                    self.phase = Phase::Streaming(wire, assembler);
                    return self.on_packet_error(error);
                }
            }
        } else {
            match wire.framer.next_payload() {
                Ok(Some(payload)) => match StreamPacket::classify(payload) {
                    Ok(StreamPacket::Event(event)) => {
                        self.facts.events += 1;
                        assembler.event(event, self.now)
                    }
                    Ok(StreamPacket::End) => {
                        self.phase = Phase::Streaming(wire, assembler);
                        self.trouble_noted("The server ended the stream");
                        return true;
                    }
                    Ok(StreamPacket::Error(error)) => {
                        P::mark(Mark::StreamError);
                        self.phase = Phase::Streaming(wire, assembler);
                        self.on_dump_refused(&error);
                        return true;
                    }
                    Err(_) => {
                        self.phase = Phase::Streaming(wire, assembler);
                        self.nonsense();
                        return true;
                    }
                },
                Ok(None) => match wire.framer.head().split_first() {
                    Some((&0, head)) if assembler.wants_pieces(head) => {
                        self.begin_pieces(&mut wire, &mut assembler)
                    }
                    _ => return self.park(Phase::Streaming(wire, assembler)),
                },
                // Nothing larger than the limit is legal in the stream, whatever its kind.
                Err(PacketError::PayloadTooLarge { claimed, .. }) if !P::mutant(Mutant::RetryTooLarge) => {
                    Err(Halt::new(Code::RowEventTooLarge).with(Detail::Bytes(claimed as u64)))
                }
                Err(error) => {
                    self.phase = Phase::Streaming(wire, assembler);
                    return self.on_packet_error(error);
                }
            }
        };
        self.after_event(wire, assembler, done);
        true
    }

    /// A large event is taken while it is read; the packet's marker byte goes first.
    fn begin_pieces(&mut self, wire: &mut Wire, assembler: &mut Assembler<P>) -> Result<bool, Halt> {
        P::mark(Mark::InPieces);
        self.facts.events += 1;
        assembler.begin_pieces()?;
        match wire.framer.next_piece() {
            Ok(Piece::Bytes(bytes)) => assembler.piece(bytes.get(1..).unwrap_or_default()),
            Ok(Piece::End | Piece::Wait) | Err(_) => Err(Halt::new(Code::EventMalformed)),
        }
    }

    fn after_event(&mut self, wire: Box<Wire>, mut assembler: Box<Assembler<P>>, done: Result<bool, Halt>) {
        while let Some(event) = assembler.next_emitted(&mut self.next_seq) {
            self.emit(event);
        }
        let reached = assembler.is_reached() && assembler.gate().is_done();
        let verified = assembler.is_verified();
        let missing = assembler.goal_missing(self.now, self.config.limits.silence);
        if let Some(at) = assembler.committed_at() {
            self.facts.committed_at = Some(at);
        }
        let done = done.map_err(|halt| halt.at(assembler.place()));
        self.phase = Phase::Streaming(wire, assembler);
        match done {
            Ok(alive) => {
                if alive {
                    self.alive();
                }
                self.verified |= verified;
                if reached {
                    self.reached();
                } else if let Some(missing) = missing {
                    self.halt_behind_units(Halt::new(Code::DataGap).with(Detail::Missing(missing)));
                } else {
                    self.tell_progress(false);
                }
            }
            Err(halt) => self.halt_behind_units(halt),
        }
    }

    /// Tells of passed transactions when it is time, or in any case.
    pub(super) fn tell_progress(&mut self, now: bool) {
        let limits = self.config.limits;
        let Phase::Streaming(_, assembler) = &mut self.phase else { return };
        let Some(since) = assembler.passed_since() else { return };
        let in_time = self.now >= since.after(limits.progress_every);
        let due = now || in_time || assembler.passed_count() >= limits.progress_gtids;
        if due {
            P::mark(if in_time { Mark::ProgressByTime } else { Mark::ProgressBeforeTime });
        }
        if due
            && !P::mutant(Mutant::NeverTell)
            && let Some(event) = assembler.take_progress(&mut self.next_seq)
        {
            self.emit(event);
        }
    }
}

/// Tables that the captured set has gained and that no copy covers.
fn uncovered(stored: &Position, found: &Findings) -> Option<Vec<String>> {
    let captured = CapturedSet::parse_canonical(stored.captured()).ok()?;
    let captured = captured.with_lower_case_table_names(found.lower_case_table_names);
    let gained = found.uncovered.iter().filter(|(schema, table)| !captured.captures(schema, table));
    let names: Vec<String> = gained.map(|(schema, table)| format!("{schema}.{table}")).collect();
    (!names.is_empty()).then_some(names)
}

/// The request as it is, unless a mistake is asked for.
fn mistaken<P: Probe>(request: GtidSet, found: &Findings) -> GtidSet {
    if P::mutant(Mutant::SkipGap) {
        return request.union(&found.purged);
    }
    if P::mutant(Mutant::TrustAnySource) {
        return request.intersect(&found.executed);
    }
    if !P::mutant(Mutant::AskPastEnd) {
        return request;
    }
    let past = |(tsid, intervals): (Tsid, Intervals<'_>)| {
        intervals.last().and_then(|last| Gtid::new(tsid.uuid, tsid.tag, last.end().saturating_add(1)))
    };
    let next: GtidSet =
        request.iter().filter_map(past).filter(|gtid| found.executed.contains(gtid)).collect();
    request.union(&next)
}
