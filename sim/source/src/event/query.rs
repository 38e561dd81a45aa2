//! QUERY_EVENT.

use crate::put::{self, Take};

/// A statement and the session it ran in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The connection.
    pub thread_id: u32,
    /// Seconds it ran.
    pub exec_time: u32,
    /// The error it ended in.
    pub error_code: u16,
    /// Default database.
    pub schema: Vec<u8>,
    /// Status variables in the order they are written: code and bytes ([`status`] makes them).
    pub status: Vec<(u8, Vec<u8>)>,
    /// The statement.
    pub text: Vec<u8>,
}

impl Query {
    /// A statement in the usual session.
    #[must_use]
    pub fn new(schema: &str, text: &str) -> Self {
        Self {
            thread_id: 8,
            exec_time: 0,
            error_code: 0,
            schema: schema.into(),
            status: vec![
                status::flags2(0),
                status::sql_mode(0x4512_0000),
                status::catalog("std"),
                status::charset(255, 255, 255),
            ],
            text: text.into(),
        }
    }

    /// With one more status variable.
    #[must_use]
    pub fn with(mut self, variable: (u8, Vec<u8>)) -> Self {
        self.status.push(variable);
        self
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put::int(out, u64::from(self.thread_id), 4);
        put::int(out, u64::from(self.exec_time), 4);
        out.push(self.schema.len() as u8);
        put::int(out, u64::from(self.error_code), 2);
        let status: usize = self.status.iter().map(|(_, value)| value.len() + 1).sum();
        put::int(out, status as u64, 2);
        for (code, value) in &self.status {
            out.push(*code);
            out.extend_from_slice(value);
        }
        out.extend_from_slice(&self.schema);
        out.push(0);
        out.extend_from_slice(&self.text);
    }

    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut take = Take(body);
        let thread_id = take.int(4)? as u32;
        let exec_time = take.int(4)? as u32;
        let schema_len = take.u8()?;
        let error_code = take.int(2)? as u16;
        let status_len = take.int(2)? as usize;
        let mut variables = Take(take.bytes(status_len)?);
        let mut status = Vec::new();
        while !variables.is_empty() {
            let code = variables.u8()?;
            let before = variables;
            status::skip(code, &mut variables)?;
            let len = before.0.len() - variables.0.len();
            status.push((code, before.0[..len].to_vec()));
        }
        let schema = take.bytes(usize::from(schema_len))?.to_vec();
        (take.u8()? == 0).then_some(())?;
        Some(Self { thread_id, exec_time, error_code, schema, status, text: take.rest().to_vec() })
    }
}

/// Status variables (`Query_event_status_vars`, `libs/mysql/binlog/event/statement_events.h`).
pub mod status {
    use crate::put::Take;

    /// Session options.
    #[must_use]
    pub fn flags2(flags: u32) -> (u8, Vec<u8>) {
        (0, flags.to_le_bytes().to_vec())
    }

    /// `sql_mode`.
    #[must_use]
    pub fn sql_mode(mode: u64) -> (u8, Vec<u8>) {
        (1, mode.to_le_bytes().to_vec())
    }

    /// `std`.
    #[must_use]
    pub fn catalog(name: &str) -> (u8, Vec<u8>) {
        (6, short(name.as_bytes()))
    }

    /// Client, connection and server collation.
    #[must_use]
    pub fn charset(client: u16, connection: u16, server: u16) -> (u8, Vec<u8>) {
        (4, [client.to_le_bytes(), connection.to_le_bytes(), server.to_le_bytes()].concat())
    }

    /// The databases a statement wrote to; none: more than 16.
    #[must_use]
    pub fn updated_databases(names: &[&str]) -> (u8, Vec<u8>) {
        let mut out = vec![if names.is_empty() { 254 } else { names.len() as u8 }];
        for name in names {
            out.extend_from_slice(name.as_bytes());
            out.push(0);
        }
        (12, out)
    }

    /// The DDL's number in the data dictionary.
    #[must_use]
    pub fn ddl_xid(xid: u64) -> (u8, Vec<u8>) {
        (17, xid.to_le_bytes().to_vec())
    }

    fn short(text: &[u8]) -> Vec<u8> {
        let mut out = vec![text.len() as u8];
        out.extend_from_slice(text);
        out
    }

    pub(super) fn skip(code: u8, take: &mut Take<'_>) -> Option<()> {
        let text = |take: &mut Take<'_>| {
            let len = take.u8()?;
            take.bytes(usize::from(len)).map(|_| ())
        };
        let width = match code {
            0 | 3 | 10 => 4,
            1 | 9 | 17 => 8,
            4 => 6,
            7 | 8 | 18 => 2,
            13 => 3,
            16 | 19..=21 => 1,
            5 | 6 => return text(take),
            2 => {
                text(take)?;
                1
            }
            11 => {
                text(take)?;
                return text(take);
            }
            12 => {
                let count = take.u8()?;
                for _ in 0..if count == 254 { 0 } else { count } {
                    take.nul_terminated()?;
                }
                return Some(());
            }
            _ => return None,
        };
        take.bytes(width).map(|_| ())
    }
}
