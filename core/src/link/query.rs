//! A statement and its answer in the text protocol.
//!
//! Source: `page_protocol_com_query_response`. One statement at a time; its text goes out as
//! [`command::query`](super::command::query), the answer's payloads come in here.

use super::error_packet::ServerError;
use super::packet::PACKET_LEN_MAX;
use super::response::{Capabilities, EOF_HEADER, ERR_HEADER, Malformed, OK_HEADER, OkPacket, parse_eof};
use crate::wire::{Reader, Short};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

mod prepared;
mod stream;

pub use prepared::{Prepare, PrepareStep};
pub use stream::{BinaryRow, Cells, RowStep, RowStream, RowsEnd, TextRow};

/// What a server may have at most (`MAX_FIELDS` of `sql/unireg.h`).
const COLUMNS_MAX: u64 = 4096;

/// Bounds of an answer that is kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Rows at most.
    pub rows: usize,
    /// Bytes at most: those of the packets plus what their cells take in memory.
    pub bytes: usize,
}

impl Default for QueryLimits {
    /// For the questions of a connect: the largest answer is a GTID set, which has reached megabytes.
    fn default() -> Self {
        Self { rows: 1_000_000, bytes: 64 * 1024 * 1024 }
    }
}

/// Why an answer cannot be taken. The connection is out of step afterwards and must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// More rows or bytes than the limits allow.
    #[error("the answer is over the limit")]
    TooLarge,
    /// The server asks for a file of ours (`LOAD DATA LOCAL`), which no statement of ours causes.
    #[error("the server asked for a local file")]
    LocalInfileRefused,
    /// The server announces a second result, which no statement of ours causes.
    #[error("the server announced a second result")]
    MoreResults,
    /// A packet that does not parse or has no place here. The peer is at fault.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl From<Short> for QueryError {
    fn from(_: Short) -> Self {
        Self::Malformed(Malformed)
    }
}

/// The complete answer to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryResult {
    /// It returned no rows.
    Ok(OkPacket),
    /// It returned a result set, complete to its end.
    Rows(ResultSet),
    /// It failed, at once or after some rows (which are dropped). The session can be used further.
    Failed(ServerError),
}

/// What to do next.
#[derive(Debug)]
pub enum QueryStep {
    /// Feed the next payload.
    More(Query),
    /// The answer is complete.
    Done(QueryResult),
}

/// One column of a result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name or alias.
    pub name: Box<str>,
    /// The type byte (`enum_field_types`).
    pub type_code: u8,
    /// The collation's number; 63 is binary.
    pub collation: u16,
    /// `NOT_NULL_FLAG` and the like.
    pub flags: u16,
    /// The digits after the point.
    pub decimals: u8,
}

/// Rows as text; `None` is NULL.
///
/// A cell is a slice of its packet, so a result set keeps alive the read chunks it came in: at most
/// its own length and one chunk more.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<Option<Bytes>>>,
    /// Number of warnings.
    pub warnings: u16,
}

impl fmt::Debug for ResultSet {
    // Rule 1: cells are values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResultSet({} columns, {} rows)", self.columns.len(), self.rows.len())
    }
}

impl ResultSet {
    /// The number of the column with this name, ignoring case as SQL does.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// A cell; `None` if there is none, `Some(None)` if it is NULL.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<Option<&Bytes>> {
        self.rows.get(row)?.get(column).map(Option::as_ref)
    }

    /// The only row, if there is exactly one.
    #[must_use]
    pub fn single_row(&self) -> Option<&[Option<Bytes>]> {
        match self.rows.as_slice() {
            [row] => Some(row),
            [] | [_, _, ..] => None,
        }
    }
}

/// A statement whose answer is being read.
pub struct Query {
    limits: QueryLimits,
    deprecate_eof: bool,
    bytes: usize,
    result: ResultSet,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Columns { left: usize },
    ColumnsEnd,
    Rows,
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Query({:?}, {:?})", self.state, self.result)
    }
}

impl Query {
    /// The answer to a statement that was just sent, in a session with these capabilities.
    #[must_use]
    pub const fn new(capabilities: Capabilities, limits: QueryLimits) -> Self {
        Self {
            limits,
            deprecate_eof: capabilities.contains(Capabilities::DEPRECATE_EOF),
            bytes: 0,
            result: ResultSet { columns: Vec::new(), rows: Vec::new(), warnings: 0 },
            state: State::Head,
        }
    }

    /// Takes one whole payload of the answer.
    pub fn on_payload(mut self, payload: &Bytes) -> Result<QueryStep, QueryError> {
        // 0xff starts no column count, definition or row: everywhere it is an error packet.
        if payload.first() == Some(&ERR_HEADER) {
            return Ok(QueryStep::Done(QueryResult::Failed(ServerError::parse(payload)?)));
        }
        self.bytes = self.bytes.saturating_add(payload.len());
        match self.state {
            State::Head => return self.on_head(payload),
            State::Columns { left } => self.on_column(payload, left)?,
            State::ColumnsEnd => {
                if payload.first() != Some(&EOF_HEADER) {
                    return Err(Malformed.into());
                }
                parse_eof(payload)?;
                self.state = State::Rows;
            }
            State::Rows => {
                if let Some(end) = self.end_of_rows(payload)? {
                    return self.finish(end);
                }
                self.on_row(payload)?;
            }
        }
        if self.bytes > self.limits.bytes || self.result.rows.len() > self.limits.rows {
            return Err(QueryError::TooLarge);
        }
        Ok(QueryStep::More(self))
    }

    fn on_head(mut self, payload: &Bytes) -> Result<QueryStep, QueryError> {
        match payload.first() {
            Some(&OK_HEADER) => {
                let ok = OkPacket::parse(payload)?;
                if ok.more_results() {
                    return Err(QueryError::MoreResults);
                }
                Ok(QueryStep::Done(QueryResult::Ok(ok)))
            }
            Some(&LOCAL_INFILE) => Err(QueryError::LocalInfileRefused),
            Some(_) | None => {
                let mut r = Reader::new(payload);
                let count = r.lenenc()?;
                let left = usize::try_from(count).map_err(|_| Malformed)?;
                if count == 0 || count > COLUMNS_MAX || !r.is_empty() {
                    return Err(Malformed.into());
                }
                self.state = State::Columns { left };
                Ok(QueryStep::More(self))
            }
        }
    }

    /// `Protocol::ColumnDefinition41`.
    fn on_column(&mut self, payload: &[u8], left: usize) -> Result<(), QueryError> {
        let mut r = Reader::new(payload);
        // catalogue, schema, table, original table
        for _ in 0..4 {
            r.lenenc_bytes()?;
        }
        let name = String::from_utf8_lossy(r.lenenc_bytes()?).into();
        // original name, then the length of the fields of fixed size
        r.lenenc_bytes()?;
        r.lenenc_len()?;
        let collation = r.u16()?;
        r.skip(4)?;
        let column = Column { name, collation, type_code: r.u8()?, flags: r.u16()?, decimals: r.u8()? };
        self.bytes = self.bytes.saturating_add(size_of::<Column>());
        self.result.columns.push(column);
        self.state = match left {
            2.. => State::Columns { left: left.saturating_sub(1) },
            0 | 1 if self.deprecate_eof => State::Rows,
            0 | 1 => State::ColumnsEnd,
        };
        Ok(())
    }

    /// The packet that ends the rows. A row may start with the same byte, but then its first cell is
    /// at least 2^24 bytes long and the payload longer than any packet.
    fn end_of_rows(&self, payload: &[u8]) -> Result<Option<OkPacket>, QueryError> {
        match payload.first() {
            Some(&EOF_HEADER) if self.deprecate_eof && payload.len() < PACKET_LEN_MAX => {
                Ok(Some(OkPacket::parse(payload)?))
            }
            Some(&EOF_HEADER) if !self.deprecate_eof && payload.len() < 9 => Ok(Some(parse_eof(payload)?)),
            Some(_) | None => Ok(None),
        }
    }

    fn finish(mut self, end: OkPacket) -> Result<QueryStep, QueryError> {
        if end.more_results() {
            return Err(QueryError::MoreResults);
        }
        self.result.warnings = end.warnings;
        Ok(QueryStep::Done(QueryResult::Rows(self.result)))
    }

    fn on_row(&mut self, payload: &Bytes) -> Result<(), QueryError> {
        let mut row_cells = Cells::new(payload);
        // Every cell takes a byte at least, so the packet bounds the row.
        let columns = self.result.columns.len();
        let mut row = Vec::with_capacity(columns.min(payload.len()));
        for _ in 0..columns {
            row.push(row_cells.cell()?.map(|cell| payload.slice_ref(cell)));
        }
        row_cells.end()?;
        let cells = row.len().saturating_mul(size_of::<Option<Bytes>>());
        self.bytes = self.bytes.saturating_add(cells).saturating_add(size_of::<Vec<Option<Bytes>>>());
        self.result.rows.push(row);
        Ok(())
    }
}

const LOCAL_INFILE: u8 = 0xfb;
const NULL_CELL: u8 = 0xfb;

#[cfg(test)]
mod tests;
