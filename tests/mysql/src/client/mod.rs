//! A small text-protocol client, so that tests need no `mysql` program and can hold several sessions open.
//!
//! It knows accounts without a password only; its answers come from a server this crate started, so it is written
//! for plainness and still reads every byte with its bounds checked.

mod packet;

use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::SqlError;
use packet::{Fields, Link, Stream};

const CLIENT_LONG_PASSWORD: u32 = 0x0000_0001;
const CLIENT_LONG_FLAG: u32 = 0x0000_0004;
const CLIENT_PROTOCOL_41: u32 = 0x0000_0200;
const CLIENT_TRANSACTIONS: u32 = 0x0000_2000;
const CLIENT_SECURE_CONNECTION: u32 = 0x0000_8000;
const CLIENT_MULTI_STATEMENTS: u32 = 0x0001_0000;
const CLIENT_MULTI_RESULTS: u32 = 0x0002_0000;
const CLIENT_PLUGIN_AUTH: u32 = 0x0008_0000;
const CAPABILITIES: u32 = CLIENT_LONG_PASSWORD
    | CLIENT_LONG_FLAG
    | CLIENT_PROTOCOL_41
    | CLIENT_TRANSACTIONS
    | CLIENT_SECURE_CONNECTION
    | CLIENT_MULTI_STATEMENTS
    | CLIENT_MULTI_RESULTS
    | CLIENT_PLUGIN_AUTH;

const SERVER_MORE_RESULTS_EXISTS: u16 = 0x0008;

const UTF8MB4_GENERAL_CI: u8 = 45;
const UTF8MB4_0900_AI_CI: u8 = 255;

const COM_QUERY: u8 = 0x03;

/// One open connection: it keeps its transaction, its session variables and its temporary tables.
///
/// The session's character set is utf8mb4.
pub struct Session {
    link: Link,
    connection_id: u32,
    server_version: String,
}

/// The result of one statement.
#[derive(Clone, PartialEq, Eq)]
pub struct ResultSet {
    /// Column names; empty for a statement without rows.
    pub columns: Vec<String>,
    /// Per row and column the text the server gave, `None` for NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// Rows changed, for a statement without rows.
    pub affected_rows: u64,
}

impl Session {
    /// Connects to a server's socket file as an account without a password.
    pub fn connect(socket: &Path, user: &str) -> Result<Session, SqlError> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let session = Session::authenticate(Box::new(stream.try_clone()?), user)?;
        stream.set_read_timeout(None)?; // of the socket, so of the clone too
        Ok(session)
    }

    /// Connects over TCP, without TLS, as an account without a password.
    pub fn connect_tcp(address: SocketAddr, user: &str) -> Result<Session, SqlError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Session::authenticate(Box::new(stream), user)
    }

    fn authenticate(stream: Box<dyn Stream>, user: &str) -> Result<Session, SqlError> {
        let mut link = Link::new(stream);
        let greeting = link.read()?;
        let mut fields = Fields::new(&greeting);
        match fields.u8()? {
            0x0a => {}
            0xff => return Err(server_error(&greeting)),
            _ => return Err(SqlError::Protocol("the greeting has an unknown protocol version")),
        }
        let server_version = String::from_utf8_lossy(fields.until_nul()?).into_owned();
        let connection_id = fields.u32()?;
        fields.take(8 + 1 + 2 + 1 + 2 + 2 + 1 + 10)?; // salt, filler, capabilities, charset, status, salt length
        fields.until_nul()?;
        let plugin = fields.until_nul().unwrap_or_default().to_vec();

        let mut answer = Vec::new();
        answer.extend(CAPABILITIES.to_le_bytes());
        answer.extend(0x0100_0000_u32.to_le_bytes());
        answer.push(charset_for(&server_version));
        answer.extend([0; 23]);
        answer.extend(user.as_bytes());
        answer.extend([0, 0]); // end of the name; an authentication response of length 0: no password
        answer.extend(&plugin);
        answer.push(0);
        link.write(&answer)?;
        loop {
            let packet = link.read()?;
            match packet.first() {
                Some(0x00) => return Ok(Session { link, connection_id, server_version }),
                Some(0xff) => return Err(server_error(&packet)),
                Some(0xfe) => link.write(&[])?, // another plugin: still no password
                Some(0x01) if packet.get(1) == Some(&0x03) => {}
                Some(_) | None => return Err(SqlError::Protocol("the server asks for a password")),
            }
        }
    }

    /// The server's id of this connection, as `KILL` takes it.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The version the server announced.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Runs one or more statements, divided by `;`, and returns the result of each.
    /// The first refused statement ends the script, as it does in the `mysql` program.
    pub fn query(&mut self, sql: &str) -> Result<Vec<ResultSet>, SqlError> {
        self.query_bytes(sql.as_bytes())
    }

    /// Like [`query`](Session::query), for a script that is not UTF-8.
    pub fn query_bytes(&mut self, sql: &[u8]) -> Result<Vec<ResultSet>, SqlError> {
        self.command(COM_QUERY, sql)?;
        let mut results = Vec::new();
        loop {
            let (result, status) = self.read_result()?;
            results.push(result);
            if status & SERVER_MORE_RESULTS_EXISTS == 0 {
                return Ok(results);
            }
        }
    }

    /// Runs statements and returns their rows as text: columns divided by a tab, rows ended by a line feed,
    /// NULL as `NULL`, without column names. What is not UTF-8 is shown with replacement characters.
    pub fn sql(&mut self, sql: &str) -> Result<String, SqlError> {
        Ok(as_text(&self.query(sql)?))
    }

    /// Sends one command without reading its answer: for commands that answer with a stream.
    pub fn command(&mut self, command: u8, argument: &[u8]) -> Result<(), SqlError> {
        let mut packet = Vec::with_capacity(1 + argument.len());
        packet.push(command);
        packet.extend(argument);
        self.link.start_command();
        self.link.write(&packet)
    }

    /// Reads one packet as it came, without its header.
    pub fn read_packet(&mut self) -> Result<Vec<u8>, SqlError> {
        self.link.read()
    }

    fn read_result(&mut self) -> Result<(ResultSet, u16), SqlError> {
        let head = self.link.read()?;
        let mut fields = Fields::new(&head);
        match head.first() {
            Some(0x00) => {
                fields.u8()?;
                let affected_rows = fields.lenenc()?;
                fields.lenenc()?;
                let result = ResultSet { columns: Vec::new(), rows: Vec::new(), affected_rows };
                return Ok((result, fields.u16()?));
            }
            Some(0xff) => return Err(server_error(&head)),
            Some(0xfb) => return Err(SqlError::Protocol("LOAD DATA LOCAL is not served")),
            Some(_) | None => {}
        }
        let column_count = fields.lenenc()?;
        let mut columns = Vec::new();
        for _ in 0..column_count {
            let definition = self.link.read()?;
            let mut fields = Fields::new(&definition);
            for _ in 0..4 {
                fields.lenenc_bytes()?; // catalogue, schema, table, original table
            }
            columns.push(String::from_utf8_lossy(fields.lenenc_bytes()?).into_owned());
        }
        self.read_eof()?;
        let mut rows = Vec::new();
        loop {
            let packet = self.link.read()?;
            match packet.first() {
                Some(0xff) => return Err(server_error(&packet)),
                Some(0xfe) if packet.len() < 9 => {
                    let status = eof_status(&packet)?;
                    return Ok((ResultSet { columns, rows, affected_rows: 0 }, status));
                }
                Some(_) | None => rows.push(row(&packet, column_count)?),
            }
        }
    }

    fn read_eof(&mut self) -> Result<(), SqlError> {
        let packet = self.link.read()?;
        match packet.first() {
            Some(0xfe) => Ok(()),
            Some(0xff) => Err(server_error(&packet)),
            Some(_) | None => Err(SqlError::Protocol("the column list has no end")),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("connection_id", &self.connection_id).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResultSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultSet")
            .field("columns", &self.columns.len())
            .field("rows", &self.rows.len())
            .field("affected_rows", &self.affected_rows)
            .finish()
    }
}

/// The rows of all results as [`Session::sql`] gives them.
pub fn as_text(results: &[ResultSet]) -> String {
    let mut text = String::new();
    for row in results.iter().flat_map(|result| &result.rows) {
        for (at, value) in row.iter().enumerate() {
            if at > 0 {
                text.push('\t');
            }
            match value {
                Some(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
                None => text.push_str("NULL"),
            }
        }
        text.push('\n');
    }
    text
}

fn row(packet: &[u8], column_count: u64) -> Result<Vec<Option<Vec<u8>>>, SqlError> {
    let mut fields = Fields::new(packet);
    let mut row = Vec::new();
    for _ in 0..column_count {
        row.push(fields.value()?.map(<[u8]>::to_vec));
    }
    Ok(row)
}

fn eof_status(packet: &[u8]) -> Result<u16, SqlError> {
    let mut fields = Fields::new(packet);
    fields.take(3)?; // 0xfe, warnings
    fields.u16()
}

fn server_error(packet: &[u8]) -> SqlError {
    let mut fields = Fields::new(packet);
    let mut read = || {
        fields.u8()?;
        let code = fields.u16()?;
        let rest = fields.rest();
        // Before the capabilities are agreed on there is no state.
        let (sql_state, message) = match rest.strip_prefix(b"#").and_then(|rest| rest.split_at_checked(5)) {
            Some((state, message)) => (state, message),
            None => (&b"HY000"[..], rest),
        };
        Ok(SqlError::Server {
            code,
            sql_state: String::from_utf8_lossy(sql_state).into_owned(),
            message: String::from_utf8_lossy(message).into_owned(),
        })
    };
    read().unwrap_or_else(|error: SqlError| error)
}

/// utf8mb4 by the collation that is its default there, so that binlogs show what an ordinary client leaves.
fn charset_for(server_version: &str) -> u8 {
    let modern = server_version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if modern.is_some_and(|major| (8..10).contains(&major)) && !server_version.contains("MariaDB") {
        UTF8MB4_0900_AI_CI
    } else {
        UTF8MB4_GENERAL_CI
    }
}
