//! QUERY_EVENT and EXECUTE_LOAD_QUERY_EVENT: a statement and the session it ran in.

use bytes::Bytes;
use core::fmt;

use super::status_variables::StatusVariables;
use super::{DecodeError, Hidden};
use crate::wire::Reader;

/// A statement (`Query_event`): BEGIN, COMMIT, DDL, statement-logged DML, XA statements.
#[derive(Clone, PartialEq, Eq)]
pub struct Query {
    /// The connection that ran it.
    pub thread_id: u32,
    /// How long it ran, in seconds.
    pub exec_time: u32,
    /// The error it ended in, 0 for none.
    pub error_code: u16,
    /// The session's default database; may be empty.
    pub schema: Bytes,
    /// The session's settings that bear on the statement.
    pub status: StatusVariables,
    /// The statement, in the session's character set ([`StatusVariables::charset`]).
    pub text: Bytes,
}

impl fmt::Debug for Query {
    // Rule 1: no statement, and no name from it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("thread_id", &self.thread_id)
            .field("exec_time", &self.exec_time)
            .field("error_code", &self.error_code)
            .field("schema", &Hidden(&self.schema))
            .field("status", &self.status)
            .field("text", &Hidden(&self.text))
            .finish()
    }
}

impl Query {
    /// Reads the body of a QUERY_EVENT.
    pub fn decode(body: &Bytes) -> Result<Self, DecodeError> {
        Self::read(body, 0)
    }

    /// Reads the body of an EXECUTE_LOAD_QUERY_EVENT: the same with a file number, two offsets into
    /// the text and a way to treat duplicates behind the fixed part.
    pub fn decode_execute_load(body: &Bytes) -> Result<Self, DecodeError> {
        Self::read(body, 13)
    }

    fn read(body: &Bytes, extra: usize) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let thread_id = reader.u32()?;
        let exec_time = reader.u32()?;
        let schema_length = usize::from(reader.u8()?);
        let error_code = reader.u16()?;
        let status_length = usize::from(reader.u16()?);
        reader.skip(extra)?;
        let status = StatusVariables::decode(body, reader.take(status_length)?)?;
        let schema = body.slice_ref(reader.take(schema_length)?);
        if reader.u8()? != 0 {
            return Err(DecodeError::Field("schema name"));
        }
        Ok(Self { thread_id, exec_time, error_code, schema, status, text: body.slice_ref(reader.rest()) })
    }
}
