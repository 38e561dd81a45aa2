//! One session, for questions only.

use bytes::{Bytes, BytesMut};
use capstan::{
    Code, Detail, Halt, Source,
    core::{
        link::{
            Capabilities, ErrorMeaning, Framer, Handshake, HandshakeError, Query, QueryLimits, QueryResult,
            QueryStep, ServerError, ServerVersion, Step, packet::encode,
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

/// An open session.
pub(super) struct Session {
    stream: TokioStream,
    framer: Framer,
    capabilities: Capabilities,
    pub(super) version: ServerVersion,
    pub(super) encrypted: bool,
}

/// An answer, or the server's refusal to give one.
pub(super) type Answer = Result<Vec<Vec<Option<String>>>, ServerError>;

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
                QueryStep::Done(QueryResult::Ok(_)) => return Ok(Ok(Vec::new())),
                QueryStep::Done(QueryResult::Failed(error)) => return Ok(Err(error)),
                QueryStep::Done(QueryResult::Rows(rows)) => {
                    let text = |cell: Option<Bytes>| cell.map(|b| String::from_utf8_lossy(&b).into_owned());
                    let named = rows.columns.into_iter().map(|column| Some(column.name.into_string()));
                    // The first row holds the names.
                    let mut all = vec![named.collect()];
                    all.extend(rows.rows.into_iter().map(|row| row.into_iter().map(text).collect()));
                    return Ok(Ok(all));
                }
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
