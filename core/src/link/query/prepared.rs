//! The answer to a statement that is prepared, so that its rows come in the binary protocol: numbers, dates and times
//! cost the server less that way than as text.
//!
//! Sources: `page_protocol_com_stmt_prepare`, `page_protocol_binary_resultset`. The statements have no parameters.

use bytes::Bytes;

use super::{COLUMNS_MAX, QueryError};
use crate::{
    link::{
        error_packet::ServerError,
        response::{Capabilities, EOF_HEADER, ERR_HEADER, Malformed, OK_HEADER, parse_eof},
    },
    wire::Reader,
};

/// A statement that is being prepared.
#[derive(Debug)]
pub struct Prepare {
    deprecate_eof: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    /// Definitions of the columns that it will return, which come with the rows again.
    Columns {
        id: u32,
        left: u16,
    },
    End {
        id: u32,
    },
}

/// What to do next.
#[derive(Debug)]
pub enum PrepareStep {
    /// Feed the next payload.
    More(Prepare),
    /// It is prepared, under this number.
    Done(u32),
    /// It is refused. The session can be used further.
    Failed(ServerError),
}

impl Prepare {
    /// The answer to a statement without parameters that was just sent.
    #[must_use]
    pub const fn new(capabilities: Capabilities) -> Self {
        Self { deprecate_eof: capabilities.contains(Capabilities::DEPRECATE_EOF), state: State::Head }
    }

    /// Takes one whole payload of the answer.
    ///
    /// # Errors
    /// It does not parse, or tells of parameters or of no columns. The connection is out of step then.
    pub fn on_payload(mut self, payload: &Bytes) -> Result<PrepareStep, QueryError> {
        if payload.first() == Some(&ERR_HEADER) {
            return Ok(PrepareStep::Failed(ServerError::parse(payload)?));
        }
        self.state = match self.state {
            State::Head => {
                let mut r = Reader::new(payload);
                let (status, id, columns, parameters) = (r.u8()?, r.u32()?, r.u16()?, r.u16()?);
                if status != OK_HEADER || parameters != 0 || columns == 0 || u64::from(columns) > COLUMNS_MAX
                {
                    return Err(Malformed.into());
                }
                State::Columns { id, left: columns }
            }
            State::Columns { id, left: left @ 2.. } => State::Columns { id, left: left.saturating_sub(1) },
            State::Columns { id, left: 0 | 1 } if self.deprecate_eof => return Ok(PrepareStep::Done(id)),
            State::Columns { id, left: 0 | 1 } => State::End { id },
            State::End { id } => {
                if payload.first() != Some(&EOF_HEADER) {
                    return Err(Malformed.into());
                }
                parse_eof(payload)?;
                return Ok(PrepareStep::Done(id));
            }
        };
        Ok(PrepareStep::More(self))
    }
}
