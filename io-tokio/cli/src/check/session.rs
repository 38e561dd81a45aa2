//! One session, for questions only.

use bytes::{Bytes, BytesMut};
use capstan::{
    Code, Detail, Halt, Source,
    core::{
        link::{
            Capabilities, ErrorMeaning, Framer, Handshake, HandshakeError, Query, QueryLimits, QueryResult,
            QueryStep, ResultSet, ServerError, ServerVersion, Step, packet::encode,
        },
        replica::LostReason,
    },
    net::{Net as _, TokioNet, TokioStream},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longest answer.
const ANSWER_MAX: usize = 64 << 20;

/// `COM_QUERY`.
const COM_QUERY: u8 = 0x03;

/// `COM_BINLOG_DUMP`, the log from a place in a file.
const COM_BINLOG_DUMP: u8 = 0x12;

/// `BIN_LOG_HEADER_SIZE`: where the first event is.
const BINLOG_START: u32 = 4;

/// `BINLOG_DUMP_NON_BLOCK`: end at the log's end.
const BINLOG_DUMP_NON_BLOCK: u16 = 1;

/// Ours for that one look: the last of the range that replicas draw from.
const SERVER_ID: u32 = *capstan::SERVER_ID_RANGE.end();

/// `FORMAT_DESCRIPTION_EVENT`.
const FORMAT_DESCRIPTION: u8 = 15;

/// An open session.
pub(super) struct Session {
    stream: TokioStream,
    framer: Framer,
    capabilities: Capabilities,
    pub(super) version: ServerVersion,
    pub(super) encrypted: bool,
}

/// An answer, or the server's refusal to give one.
pub(super) type Answer = Result<ResultSet, ServerError>;

/// The rows of an answer, as text.
pub(super) fn rows(answer: &ResultSet) -> impl Iterator<Item = Vec<Option<String>>> + '_ {
    let text = |cell: &Option<Bytes>| cell.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    answer.rows.iter().map(move |row| row.iter().map(text).collect())
}

/// A cell that is there and not NULL.
pub(super) fn cell(answer: &ResultSet, row: usize, column: usize) -> Option<String> {
    answer.cell(row, column).flatten().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

impl Session {
    /// Dials, encrypts, logs in.
    pub(super) async fn open(source: &Source) -> Result<Self, Halt> {
        let net = TokioNet::new(source.ssl())?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| note("The system gives no random numbers"))?;
        let mut stream = net.connect(source.host(), source.port()).await.map_err(lost)?;
        let mut framer = Framer::new(ANSWER_MAX);
        let mut handshake = Handshake::new(source.login()?, seed);
        loop {
            let payload = receive(&mut stream, &mut framer).await?;
            let mut step = handshake.on_payload(&payload).map_err(refused)?;
            if let Step::StartTls(payload, pending) = step {
                if !framer.is_at_boundary() {
                    return Err(note("The server sent bytes before encryption began"));
                }
                send(&mut stream, &mut framer, &payload).await?;
                stream = net.secure(stream, source.host()).await.map_err(lost)?;
                step = pending.secured().map_err(refused)?;
            }
            match step {
                Step::Send(payload, next) => {
                    send(&mut stream, &mut framer, &payload).await?;
                    handshake = next;
                }
                Step::Wait(next) => handshake = next,
                Step::StartTls(..) => return Err(note("The server asked for encryption twice")),
                Step::Done(session) => {
                    return Ok(Self {
                        stream,
                        framer,
                        capabilities: session.capabilities,
                        version: session.version,
                        encrypted: session.encrypted,
                    });
                }
            }
        }
    }

    /// Asks one question.
    pub(super) async fn ask(&mut self, sql: &str) -> Result<Answer, Halt> {
        self.framer.begin_command();
        let mut payload = BytesMut::with_capacity(sql.len() + 1);
        payload.extend_from_slice(&[COM_QUERY]);
        payload.extend_from_slice(sql.as_bytes());
        send(&mut self.stream, &mut self.framer, &payload).await?;
        let mut query = Query::new(self.capabilities, QueryLimits::default());
        loop {
            let payload = receive(&mut self.stream, &mut self.framer).await?;
            match query.on_payload(&payload).map_err(|_| note("The server's answer cannot be read"))? {
                QueryStep::More(next) => query = next,
                QueryStep::Done(QueryResult::Ok(_)) => return Ok(Ok(ResultSet::default())),
                QueryStep::Done(QueryResult::Failed(error)) => return Ok(Err(error)),
                QueryStep::Done(QueryResult::Rows(rows)) => return Ok(Ok(rows)),
            }
        }
    }

    /// When a file of the log was begun, in seconds since 1970, by its first event; `None` where the account may not
    /// read the log. The session is the log's from then on.
    pub(super) async fn file_began(&mut self, file: &str) -> Result<Option<u32>, Halt> {
        let checksum = "SET @source_binlog_checksum = @@global.binlog_checksum, \
                        @master_binlog_checksum = @@global.binlog_checksum";
        if self.ask(checksum).await?.is_err() {
            return Ok(None);
        }
        self.framer.begin_command();
        let mut dump = vec![COM_BINLOG_DUMP];
        dump.extend_from_slice(&BINLOG_START.to_le_bytes());
        dump.extend_from_slice(&BINLOG_DUMP_NON_BLOCK.to_le_bytes());
        dump.extend_from_slice(&SERVER_ID.to_le_bytes());
        dump.extend_from_slice(file.as_bytes());
        send(&mut self.stream, &mut self.framer, &dump).await?;
        loop {
            let payload = receive(&mut self.stream, &mut self.framer).await?;
            // 0x00, then the event's header: when, which type.
            match payload.as_ref() {
                [0, a, b, c, d, FORMAT_DESCRIPTION, ..] => {
                    return Ok(Some(u32::from_le_bytes([*a, *b, *c, *d])));
                }
                // The rotate event that names the file.
                [0, ..] => {}
                _ => return Ok(None),
            }
        }
    }
}

async fn receive(stream: &mut TokioStream, framer: &mut Framer) -> Result<Bytes, Halt> {
    loop {
        match framer.next_payload() {
            Ok(Some(payload)) => return Ok(payload.bytes),
            Ok(None) => {}
            Err(_) => return Err(note("What answers there does not speak MySQL's protocol")),
        }
        let mut chunk = BytesMut::with_capacity(16 << 10);
        match stream.read_buf(&mut chunk).await {
            Ok(0) => return Err(lost(LostReason::Eof)),
            Ok(_) => framer.push(chunk.freeze()),
            Err(_) => return Err(lost(LostReason::Reset)),
        }
    }
}

async fn send(stream: &mut TokioStream, framer: &mut Framer, payload: &[u8]) -> Result<(), Halt> {
    let mut out = BytesMut::new();
    encode(payload, framer.sequence_mut(), &mut out);
    stream.write_all(&out).await.map_err(|_| lost(LostReason::Reset))?;
    stream.flush().await.map_err(|_| lost(LostReason::Reset))
}

fn note(text: &'static str) -> Halt {
    Halt::new(Code::SourceUnreachable).with(Detail::Note(text))
}

/// As the replica says it.
fn lost(reason: LostReason) -> Halt {
    match reason {
        LostReason::CertificateUntrusted => Halt::new(Code::CertificateUntrusted),
        LostReason::CertificateNameMismatch => Halt::new(Code::CertificateNameMismatch),
        LostReason::Unresolved => note("The host name could not be resolved"),
        LostReason::Refused => note("The connection was refused"),
        LostReason::DialTimeout => note("The connection took too long"),
        LostReason::Eof => note("The server closed the connection"),
        LostReason::Reset => note("The connection was reset"),
        LostReason::TlsFailed => note("TLS could not be established"),
    }
}

fn refused(error: HandshakeError) -> Halt {
    match error {
        HandshakeError::Refused(error) => {
            let code = match error.meaning() {
                ErrorMeaning::AccessDenied => Code::AccessDenied,
                ErrorMeaning::MissingPrivilege => Code::MissingPrivilege,
                ErrorMeaning::Transient | ErrorMeaning::Other => Code::SourceUnreachable,
            };
            Halt::new(code).with_server_error(error.number())
        }
        HandshakeError::Unsupported(_) => Halt::new(Code::UnsupportedServer),
        HandshakeError::TlsNotOffered => Halt::new(Code::TlsNotOffered),
        HandshakeError::PluginUnsupported(_) | HandshakeError::SwitchedTwice => {
            Halt::new(Code::AuthPluginUnsupported)
        }
        HandshakeError::KeyNotTrusted | HandshakeError::BadPublicKey(_) => {
            Halt::new(Code::ServerKeyNotTrusted)
        }
        HandshakeError::PasswordTooLong(_) => {
            crate::args::invalid("password", "is too long for this exchange")
        }
        HandshakeError::ProtocolUnsupported | HandshakeError::Malformed(_) => {
            Halt::new(Code::UnsupportedServer)
                .with(Detail::Note("What answers there does not speak MySQL's protocol"))
        }
    }
}
