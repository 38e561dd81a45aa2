//! The smallest driver that can carry the machine: one socket, blocking reads.

use bytes::{Bytes, BytesMut};
use capstan_core::link::packet::{self, DUMP_PAYLOAD_MAX, HANDSHAKE_PAYLOAD_MAX};
use capstan_core::link::{
    Framer, Handshake, HandshakeError, KeyTrust, Login, PacketError, Payload, Query, QueryError, QueryLimits,
    QueryResult, QueryStep, ResultSet, Secret, Session, Step, TlsMode, VersionGate, command,
};
use capstan_mysql::{HOST, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Long enough for any answer on a busy machine; only a hang runs into it.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    tcp: TcpStream,
    framer: Framer,
    read_len: usize,
    pub session: Session,
}

/// Login terms of these tests: plain TCP, any version.
pub fn login(user: &str, password: &str) -> Login {
    Login::new(user, Secret::new(password)).unwrap().tls(TlsMode::Disabled).gate(VersionGate::Any)
}

pub fn root(server: &Server) -> Client {
    Client::connect(server, login("root", "")).unwrap()
}

/// Logs in and leaves; what most of the account tests want to know.
pub fn try_login(server: &Server, login: Login) -> Result<Session, HandshakeError> {
    Client::connect(server, login).map(|client| client.session)
}

impl Client {
    pub fn connect(server: &Server, login: Login) -> Result<Self, HandshakeError> {
        Self::connect_reading(server, login, 16 * 1024)
    }

    /// With reads of at most `read_len` bytes.
    pub fn connect_reading(server: &Server, login: Login, read_len: usize) -> Result<Self, HandshakeError> {
        let mut tcp = TcpStream::connect((HOST, server.port())).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut framer = Framer::new(HANDSHAKE_PAYLOAD_MAX);
        // Any seed will do here: nothing is kept from anyone.
        let mut handshake = Handshake::new(login, [42; 32]);
        loop {
            let payload = receive(&mut tcp, &mut framer, read_len).unwrap().expect("closed in the handshake");
            handshake = match handshake.on_payload(&payload.bytes)? {
                Step::Send(bytes, next) => {
                    transmit(&mut tcp, &mut framer, &bytes);
                    next
                }
                Step::Wait(next) => next,
                Step::StartTls(..) => panic!("TLS was not asked for"),
                Step::Done(session) => {
                    framer.set_payload_max(DUMP_PAYLOAD_MAX);
                    return Ok(Self { tcp, framer, read_len, session });
                }
            };
        }
    }

    pub fn send(&mut self, payload: &[u8]) {
        self.framer.begin_command();
        transmit(&mut self.tcp, &mut self.framer, payload);
    }

    /// The next payload; `None` when the server has closed.
    pub fn receive(&mut self) -> Option<Payload> {
        receive(&mut self.tcp, &mut self.framer, self.read_len).unwrap()
    }

    pub fn try_query(&mut self, sql: &str) -> Result<QueryResult, QueryError> {
        self.query_within(sql, QueryLimits::default())
    }

    pub fn query_within(&mut self, sql: &str, limits: QueryLimits) -> Result<QueryResult, QueryError> {
        self.send(&command::query(sql.as_bytes()));
        let mut query = Query::new(self.session.capabilities, limits);
        loop {
            let payload = self.receive().expect("closed in an answer");
            query = match query.on_payload(&payload.bytes)? {
                QueryStep::More(next) => next,
                QueryStep::Done(result) => return Ok(result),
            };
        }
    }

    pub fn rows(&mut self, sql: &str) -> ResultSet {
        match self.try_query(sql).unwrap() {
            QueryResult::Rows(rows) => rows,
            QueryResult::Ok(ok) => panic!("{sql}: {ok:?}"),
            QueryResult::Failed(error) => panic!("{sql}: {error}"),
        }
    }

    pub fn run(&mut self, sql: &str) {
        let result = self.try_query(sql).unwrap();
        assert!(matches!(result, QueryResult::Ok(_)), "{sql}: {result:?}");
    }

    /// One cell as text.
    pub fn text(&mut self, sql: &str) -> String {
        let rows = self.rows(sql);
        let cell = rows.cell(0, 0).unwrap().expect("NULL").clone();
        String::from_utf8(cell.to_vec()).unwrap()
    }
}

/// The key the server would send, as it lies in its data folder.
pub fn own_key(server: &Server) -> Vec<u8> {
    std::fs::read(server.datadir().join("public_key.pem")).unwrap()
}

pub fn pinned(pem: &[u8]) -> KeyTrust {
    KeyTrust::Pinned(Box::new(capstan_core::link::ServerPublicKey::from_pem(pem).unwrap()))
}

fn transmit(tcp: &mut TcpStream, framer: &mut Framer, payload: &[u8]) {
    let mut out = BytesMut::new();
    packet::encode(payload, framer.sequence_mut(), &mut out);
    tcp.write_all(&out).unwrap();
}

fn receive(
    tcp: &mut TcpStream,
    framer: &mut Framer,
    read_len: usize,
) -> Result<Option<Payload>, PacketError> {
    loop {
        if let Some(payload) = framer.next_payload()? {
            return Ok(Some(payload));
        }
        let mut chunk = vec![0; read_len];
        match tcp.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(len) => {
                chunk.truncate(len);
                framer.push(Bytes::from(chunk));
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => panic!("reading: {error}"),
        }
    }
}
