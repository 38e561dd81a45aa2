//! An answer whose rows are taken one by one: as long as a table, and never whole in memory.

use super::{Malformed, NULL_CELL, Query, QueryError, QueryLimits, QueryResult, QueryStep, State};
use crate::link::error_packet::ServerError;
use crate::link::response::{Capabilities, ERR_HEADER, OkPacket};
use crate::wire::Reader;
use alloc::sync::Arc;
use bytes::Bytes;
use core::fmt;

/// A statement whose rows are handed out as they come.
pub struct RowStream(Query, Option<Arc<[u8]>>);

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowStream({:?}, {} columns)", self.0.state, self.0.result.columns.len())
    }
}

/// What a payload was.
#[derive(Debug)]
pub enum RowStep {
    /// Part of the head. Feed the next payload.
    More(RowStream),
    /// A row. Feed the next payload.
    Row(RowStream, TextRow),
    /// The answer is complete.
    Done(RowsEnd),
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowsEnd {
    /// It is complete to its end.
    Complete,
    /// The statement returns no rows at all.
    NoRows(OkPacket),
    /// It failed, at once or after some rows. The session can be used further.
    Failed(ServerError),
}

/// A row of the text protocol: a slice of its packet.
#[derive(Clone, PartialEq, Eq)]
pub struct TextRow {
    payload: Bytes,
    columns: usize,
}

impl fmt::Debug for TextRow {
    // Rule 1: cells are values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextRow({} columns, {} bytes)", self.columns, self.payload.len())
    }
}

impl RowStream {
    /// The answer to a statement that was just sent, in a session with these capabilities.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self(Query::new(capabilities, QueryLimits::default()), None)
    }

    /// Takes one whole payload of the answer.
    ///
    /// # Errors
    /// As [`Query::on_payload`].
    pub fn on_payload(self, payload: &Bytes) -> Result<RowStep, QueryError> {
        if let Some(row) = self.row(payload)? {
            return Ok(RowStep::Row(self, row));
        }
        Ok(match self.0.on_payload(payload)? {
            QueryStep::More(query) => RowStep::More(Self(query, None)),
            QueryStep::Done(QueryResult::Rows(_)) => RowStep::Done(RowsEnd::Complete),
            QueryStep::Done(QueryResult::Ok(ok)) => RowStep::Done(RowsEnd::NoRows(ok)),
            QueryStep::Done(QueryResult::Failed(error)) => RowStep::Done(RowsEnd::Failed(error)),
        })
    }
}

impl RowStream {
    /// As [`RowStream::row`], where the statement was a prepared one.
    ///
    /// # Errors
    /// As [`Query::on_payload`].
    pub fn binary_row(&mut self, payload: &Bytes) -> Result<Option<BinaryRow>, QueryError> {
        if self.row(payload)?.is_none() {
            return Ok(None);
        }
        let types = self
            .1
            .get_or_insert_with(|| self.0.result.columns.iter().map(|column| column.type_code).collect());
        Ok(Some(BinaryRow { payload: payload.clone(), types: Arc::clone(types) }))
    }

    /// The payload as a row, which changes nothing here; `None`: it is something else, for [`RowStream::on_payload`].
    ///
    /// # Errors
    /// As [`Query::on_payload`].
    pub fn row(&self, payload: &Bytes) -> Result<Option<TextRow>, QueryError> {
        let is_row = matches!(self.0.state, State::Rows)
            && payload.first() != Some(&ERR_HEADER)
            && self.0.end_of_rows(payload)?.is_none();
        let columns = self.0.result.columns.len();
        Ok(is_row.then(|| TextRow { payload: payload.clone(), columns }))
    }
}

/// A row of the binary protocol: a slice of its packet, and the type byte of each column.
#[derive(Clone)]
pub struct BinaryRow {
    payload: Bytes,
    types: Arc<[u8]>,
}

impl fmt::Debug for BinaryRow {
    // Rule 1: cells are values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BinaryRow({} columns, {} bytes)", self.types.len(), self.payload.len())
    }
}

impl BinaryRow {
    /// A row over its payload, with columns of these types (`enum_field_types`).
    #[must_use]
    pub const fn new(payload: Bytes, types: Arc<[u8]>) -> Self {
        Self { payload, types }
    }

    /// The types of its columns.
    #[must_use]
    pub fn types(&self) -> &[u8] {
        &self.types
    }

    /// Which columns are NULL, bit by bit from the third on, and the others behind each other.
    ///
    /// # Errors
    /// It is no row.
    pub(crate) fn parts(&self) -> Result<(&[u8], Reader<'_>), Malformed> {
        let mut reader = Reader::new(&self.payload);
        if reader.u8()? != 0 {
            return Err(Malformed);
        }
        let nulls = reader.take(self.types.len().saturating_add(9) / 8)?;
        Ok((nulls, reader))
    }
}

impl TextRow {
    /// A row over its payload, of so many columns.
    #[must_use]
    pub const fn new(payload: Bytes, columns: usize) -> Self {
        Self { payload, columns }
    }

    /// How many cells it has.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes of the packet.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The cells in order.
    #[must_use]
    pub fn cells(&self) -> Cells<'_> {
        Cells(Reader::new(&self.payload))
    }
}

/// The cells of a row, from [`TextRow::cells`].
#[derive(Clone, Debug)]
pub struct Cells<'a>(Reader<'a>);

impl<'a> Cells<'a> {
    /// A walk over the payload of a row.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self(Reader::new(payload))
    }

    /// The next cell; `None` is NULL.
    ///
    /// # Errors
    /// The row ends here, or inside the cell.
    pub fn cell(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if self.0.rest().first() == Some(&NULL_CELL) {
            self.0.skip(1)?;
            return Ok(None);
        }
        Ok(Some(self.0.lenenc_bytes()?))
    }

    /// The row is over.
    ///
    /// # Errors
    /// There is more.
    pub const fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}
