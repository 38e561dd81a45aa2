//! One connection of the copy: from the dial to a session that is set up, then a statement at a time.

use alloc::{borrow::ToOwned as _, boxed::Box, collections::VecDeque, string::String};

use bytes::{Bytes, BytesMut};

use crate::{
    halt::{Code, Detail, Halt},
    link::{
        BinaryRow, ErrorMeaning, Framer, Handshake, HandshakeError, Login, Prepare, PrepareStep, Query,
        QueryError, QueryLimits, QueryResult, QueryStep, RowStep, RowStream, RowsEnd, ServerError, Session,
        Step, TextRow,
        command::{close_statement, execute, prepare, query},
        handshake::TlsPending,
        packet::{HEADER_LEN, encode},
    },
    replica::{CopyLink, DialEpoch, Link, LostReason, Output},
    time::Now,
};

/// Room for what surrounds a row: lengths of its cells.
const ROW_SLACK: usize = 64 << 10;

/// Longest answer that is kept whole: a GTID set has reached megabytes.
const ANSWER_MAX: usize = 64 << 20;

/// `max_prepared_stmt_count` is reached: 0 forbids all.
const ER_MAX_PREPARED_STMT_COUNT_REACHED: u16 = 1461;
/// What stands between us and the server prepares nothing.
const ER_UNSUPPORTED_PS: u16 = 1295;

/// A connection.
pub(super) struct Client {
    link: CopyLink,
    epoch: DialEpoch,
    state: State,
    /// Until when the present step must be done.
    pub(super) deadline: Option<Now>,
    /// The server's number of it.
    pub(super) id: u32,
}

enum State {
    Closed,
    Dialling,
    Login(Box<Framer>, Box<Handshake>),
    Securing(Box<Framer>, Box<TlsPending>),
    Idle(Box<Framer>, Session),
    Asking(Box<Framer>, Session, Box<Query>),
    /// The statement is kept, to be asked as text where it cannot be prepared.
    Preparing(Box<Framer>, Session, Prepare, Box<str>),
    /// Rows of the prepared statement of this number; `None`: as text.
    Reading(Box<Framer>, Session, Box<RowStream>, Option<u32>),
}

/// A row of what is read.
#[derive(Debug)]
pub(super) enum CopyRow {
    Binary(BinaryRow),
    /// The server prepares no statement now.
    Text(TextRow),
}

/// What a connection has to say.
#[derive(Debug)]
pub(super) enum Said {
    /// Nothing now.
    Nothing,
    /// It went a step.
    Moved,
    /// It is logged in.
    LoggedIn,
    /// The answer to what was asked.
    Answer(QueryResult),
    /// A row of what is read.
    Row(CopyRow),
    /// The end of what is read.
    End(RowsEnd),
    /// It is of no use any more; another dial may be.
    Lost(Halt),
    /// Another dial would not help.
    Refused(Halt),
}

impl Client {
    pub(super) const fn new(link: CopyLink) -> Self {
        Self { link, epoch: DialEpoch(0), state: State::Closed, deadline: None, id: 0 }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle(..))
    }

    pub(super) const fn is_current(&self, epoch: DialEpoch) -> bool {
        !self.is_closed() && epoch.0 == self.epoch.0
    }

    pub(super) fn dial(&mut self, epoch: DialEpoch, until: Now, out: &mut VecDeque<Output>) {
        self.epoch = epoch;
        self.state = State::Dialling;
        self.deadline = Some(until);
        out.push_back(Output::Connect(Link::Copy(self.link), epoch));
    }

    pub(super) fn close(&mut self, out: &mut VecDeque<Output>) {
        if !self.is_closed() {
            out.push_back(Output::Close(Link::Copy(self.link), self.epoch));
        }
        self.state = State::Closed;
        self.deadline = None;
    }

    /// `false`: nobody asked.
    pub(super) fn on_connected(&mut self, login: &Login, seed: [u8; 32]) -> bool {
        if !matches!(self.state, State::Dialling) {
            return false;
        }
        let handshake = Handshake::new(login.clone(), seed);
        self.state = State::Login(Box::new(Framer::new(ANSWER_MAX)), Box::new(handshake));
        true
    }

    /// `None`: nobody asked.
    pub(super) fn on_secured(&mut self, out: &mut VecDeque<Output>) -> Option<Said> {
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Securing(framer, pending) => {
                if !framer.is_at_boundary() {
                    return Some(lost("Bytes came before encryption"));
                }
                Some(self.on_step(framer, pending.secured(), out))
            }
            other @ (State::Closed
            | State::Dialling
            | State::Login(..)
            | State::Idle(..)
            | State::Asking(..)
            | State::Preparing(..)
            | State::Reading(..)) => {
                self.state = other;
                None
            }
        }
    }

    pub(super) fn on_bytes(&mut self, bytes: Bytes) {
        match &mut self.state {
            State::Login(framer, _)
            | State::Securing(framer, _)
            | State::Idle(framer, _)
            | State::Asking(framer, ..)
            | State::Preparing(framer, ..)
            | State::Reading(framer, ..) => framer.push(bytes),
            State::Closed | State::Dialling => {}
        }
    }

    /// Asks a statement whose answer is kept whole.
    pub(super) fn ask(&mut self, sql: &str, until: Now, out: &mut VecDeque<Output>) {
        if let State::Idle(mut framer, session) = core::mem::replace(&mut self.state, State::Closed) {
            self.send(&mut framer, &query(sql.as_bytes()), out);
            let query = Query::new(session.capabilities, QueryLimits { rows: 100_000, bytes: ANSWER_MAX });
            self.state = State::Asking(framer, session, Box::new(query));
            self.deadline = Some(until);
        }
    }

    /// Asks a statement whose rows come one by one, each at most `row_max` bytes.
    pub(super) fn read(&mut self, sql: &str, row_max: usize, until: Now, out: &mut VecDeque<Output>) {
        if let State::Idle(mut framer, session) = core::mem::replace(&mut self.state, State::Closed) {
            framer.set_payload_max(row_max.saturating_mul(2).saturating_add(ROW_SLACK));
            self.send(&mut framer, &prepare(sql.as_bytes()), out);
            let prepare = Prepare::new(session.capabilities);
            self.state = State::Preparing(framer, session, prepare, sql.to_owned().into());
            self.deadline = Some(until);
        }
    }

    fn send(&self, framer: &mut Framer, command: &[u8], out: &mut VecDeque<Output>) {
        framer.begin_command();
        self.transmit(framer, command, out);
    }

    fn transmit(&self, framer: &mut Framer, payload: &[u8], out: &mut VecDeque<Output>) {
        let mut bytes = BytesMut::with_capacity(payload.len().saturating_add(HEADER_LEN));
        encode(payload, framer.sequence_mut(), &mut bytes);
        out.push_back(Output::Transmit(Link::Copy(self.link), self.epoch, bytes.freeze()));
    }

    /// Works on one packet.
    pub(super) fn poll(&mut self, out: &mut VecDeque<Output>) -> Said {
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Login(mut framer, handshake) => match framer.next_payload() {
                Ok(Some(payload)) => {
                    let step = handshake.on_payload(&payload.bytes);
                    self.on_step(framer, step, out)
                }
                Ok(None) => self.park(State::Login(framer, handshake)),
                Err(_) => lost(NOT_MYSQL),
            },
            State::Asking(mut framer, session, query) => match framer.next_payload() {
                Ok(Some(payload)) => match query.on_payload(&payload.bytes) {
                    Ok(QueryStep::More(query)) => {
                        self.state = State::Asking(framer, session, Box::new(query));
                        Said::Moved
                    }
                    Ok(QueryStep::Done(result)) => {
                        self.idle(framer, session);
                        Said::Answer(result)
                    }
                    Err(_) => lost(NOT_MYSQL),
                },
                Ok(None) => self.park(State::Asking(framer, session, query)),
                Err(_) => lost(NOT_MYSQL),
            },
            State::Preparing(mut framer, session, prepare, sql) => match framer.next_payload() {
                Ok(Some(payload)) => match prepare.on_payload(&payload.bytes) {
                    Ok(PrepareStep::More(prepare)) => {
                        self.state = State::Preparing(framer, session, prepare, sql);
                        Said::Moved
                    }
                    Ok(PrepareStep::Done(statement)) => {
                        self.send(&mut framer, &execute(statement), out);
                        let rows = Box::new(RowStream::new(session.capabilities));
                        self.state = State::Reading(framer, session, rows, Some(statement));
                        Said::Moved
                    }
                    Ok(PrepareStep::Failed(error)) if is_unprepared(&error) => {
                        self.send(&mut framer, &query(sql.as_bytes()), out);
                        let rows = Box::new(RowStream::new(session.capabilities));
                        self.state = State::Reading(framer, session, rows, None);
                        Said::Moved
                    }
                    Ok(PrepareStep::Failed(error)) => {
                        self.idle(framer, session);
                        Said::End(RowsEnd::Failed(error))
                    }
                    Err(_) => lost(NOT_MYSQL),
                },
                Ok(None) => self.park(State::Preparing(framer, session, prepare, sql)),
                Err(_) => lost(NOT_MYSQL),
            },
            State::Reading(mut framer, session, mut rows, statement) => match framer.next_payload() {
                Ok(Some(payload)) => match row_of(&mut rows, &payload.bytes, statement.is_some()) {
                    Ok(Some(row)) => {
                        self.state = State::Reading(framer, session, rows, statement);
                        Said::Row(row)
                    }
                    Ok(None) => match rows.on_payload(&payload.bytes) {
                        Ok(RowStep::More(rows)) => {
                            self.state = State::Reading(framer, session, Box::new(rows), statement);
                            Said::Moved
                        }
                        Ok(RowStep::Done(end)) => {
                            if let Some(statement) = statement {
                                self.send(&mut framer, &close_statement(statement), out);
                            }
                            self.idle(framer, session);
                            Said::End(end)
                        }
                        Ok(RowStep::Row(..)) | Err(_) => lost(NOT_MYSQL),
                    },
                    Err(_) => lost(NOT_MYSQL),
                },
                Ok(None) => self.park(State::Reading(framer, session, rows, statement)),
                Err(crate::link::PacketError::PayloadTooLarge { claimed, .. }) => {
                    Said::Refused(Halt::new(Code::RowEventTooLarge).with(Detail::Bytes(claimed as u64)))
                }
                Err(crate::link::PacketError::OutOfOrder { .. }) => lost(NOT_MYSQL),
            },
            State::Idle(mut framer, session) => match framer.next_payload() {
                Ok(None) => self.park(State::Idle(framer, session)),
                // The server says why it is about to close.
                Ok(Some(_)) | Err(_) => lost("The server ended the session"),
            },
            other @ (State::Closed | State::Dialling | State::Securing(..)) => self.park(other),
        }
    }

    fn park(&mut self, state: State) -> Said {
        self.state = state;
        Said::Nothing
    }

    fn idle(&mut self, framer: Box<Framer>, session: Session) {
        self.state = State::Idle(framer, session);
        self.deadline = None;
    }

    fn on_step(
        &mut self,
        mut framer: Box<Framer>,
        step: Result<Step, HandshakeError>,
        out: &mut VecDeque<Output>,
    ) -> Said {
        match step {
            Ok(Step::Send(payload, handshake)) => {
                self.transmit(&mut framer, &payload, out);
                self.state = State::Login(framer, Box::new(handshake));
                Said::Moved
            }
            Ok(Step::Wait(handshake)) => {
                self.state = State::Login(framer, Box::new(handshake));
                Said::Moved
            }
            Ok(Step::StartTls(payload, pending)) => {
                if !framer.is_at_boundary() {
                    return lost("Bytes came before encryption");
                }
                self.transmit(&mut framer, &payload, out);
                self.state = State::Securing(framer, Box::new(pending));
                out.push_back(Output::Secure(Link::Copy(self.link), self.epoch));
                Said::Moved
            }
            Ok(Step::Done(session)) => {
                self.id = session.connection_id;
                self.idle(framer, session);
                Said::LoggedIn
            }
            Err(error) => refused(&error),
        }
    }
}

/// Whether the statement can be asked as text though it cannot be prepared.
fn is_unprepared(error: &ServerError) -> bool {
    matches!(error.number(), ER_MAX_PREPARED_STMT_COUNT_REACHED | ER_UNSUPPORTED_PS)
}

fn row_of(rows: &mut RowStream, payload: &Bytes, binary: bool) -> Result<Option<CopyRow>, QueryError> {
    Ok(match binary {
        true => rows.binary_row(payload)?.map(CopyRow::Binary),
        false => rows.row(payload)?.map(CopyRow::Text),
    })
}

/// The stream's link has logged in with the same account, so only what is certain is for good.
fn refused(error: &HandshakeError) -> Said {
    match error {
        HandshakeError::Refused(error) => {
            let by = |code| Halt::new(code).with_server_error(error.number());
            match error.meaning() {
                ErrorMeaning::AccessDenied => Said::Refused(by(Code::AccessDenied)),
                ErrorMeaning::MissingPrivilege => Said::Refused(by(Code::MissingPrivilege)),
                ErrorMeaning::Transient | ErrorMeaning::Other => Said::Lost(by(Code::SourceUnreachable)),
            }
        }
        HandshakeError::KeyNotTrusted | HandshakeError::BadPublicKey(_) => {
            Said::Refused(Halt::new(Code::ServerKeyNotTrusted))
        }
        HandshakeError::Unsupported(_)
        | HandshakeError::TlsNotOffered
        | HandshakeError::PluginUnsupported(_)
        | HandshakeError::SwitchedTwice
        | HandshakeError::PasswordTooLong(_)
        | HandshakeError::ProtocolUnsupported
        | HandshakeError::Malformed(_) => lost(NOT_MYSQL),
    }
}

const NOT_MYSQL: &str = "What answers there does not speak MySQL's protocol";

fn lost(note: &'static str) -> Said {
    Said::Lost(Halt::new(Code::SourceUnreachable).with(Detail::Note(note)))
}

/// What a lost link means: another dial, or a halt.
pub(super) fn of_loss(reason: LostReason) -> Said {
    match reason {
        LostReason::CertificateUntrusted => Said::Refused(Halt::new(Code::CertificateUntrusted)),
        LostReason::CertificateNameMismatch => Said::Refused(Halt::new(Code::CertificateNameMismatch)),
        LostReason::Unresolved
        | LostReason::Refused
        | LostReason::DialTimeout
        | LostReason::Eof
        | LostReason::Reset
        | LostReason::TlsFailed => lost("A connection of the initial copy was lost"),
    }
}

/// A statement that failed, by what it means for the copy.
pub(super) fn failed(error: &ServerError, privilege: &'static str) -> Said {
    let by = |code| Halt::new(code).with_server_error(error.number());
    match error.meaning() {
        ErrorMeaning::AccessDenied => Said::Refused(by(Code::AccessDenied)),
        ErrorMeaning::MissingPrivilege => {
            Said::Refused(by(Code::MissingPrivilege).with(Detail::Privilege(privilege)))
        }
        ErrorMeaning::Transient | ErrorMeaning::Other => Said::Lost(by(Code::SourceUnreachable)),
    }
}

/// What a session says of itself, one word for who watches.
impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let state = match &self.state {
            State::Closed => "closed",
            State::Dialling => "dialling",
            State::Login(..) | State::Securing(..) => "authenticating",
            State::Idle(..) => "idle",
            State::Asking(..) => "asking",
            State::Preparing(..) | State::Reading(..) => "reading",
        };
        f.write_str(&String::from(state))
    }
}
