//! The events of a transaction payload, inflated step by step.

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Buf, Bytes};
use core::cmp::{max, min};
use core::fmt;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::{Compression, Event, EventHeader, EventType, PayloadError, PayloadHeader, TransactionPayload};

/// What an [`Inflater`] has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inflated {
    /// The next event. Events in a payload have no checksum of their own.
    Event(Event),
    /// The compressed bytes given so far are used up: push more, or say that they are all.
    NeedsInput,
    /// The payload is over and was whole.
    End,
}

/// Gives the events of a payload one by one, while the payload is still being read if need be.
///
/// Memory: the compressed bytes given and not yet used, the window the payload asks for (at most
/// 128 MiB, the largest a server makes, at compression level 22; 8 MiB at the levels up to 19), one event,
/// and at most [`Inflater::STEP`] beyond it. No length from the payload sizes an allocation: the
/// buffer grows with what has come out.
///
/// After an error the payload is lost and every further call gives the same error.
pub struct Inflater {
    engine: Engine,
    event_max: usize,
    declared: Option<u64>,
    inflated: u64,
    input: Bytes,
    input_is_all: bool,
    // Inflated, and at least the first event in it whole when it was set.
    ready: Bytes,
    // Inflated, the beginning of an event that is not whole.
    partial: Vec<u8>,
    failed: Option<PayloadError>,
}

enum Engine {
    Zstd {
        decoder: Box<Decoder<'static>>,
        /// Between two frames, where the payload may end.
        at_boundary: bool,
        /// Nothing more comes out before more goes in; zstd takes repeated tries for a fault.
        starved: bool,
    },
    Stored,
}

/// `ZSTD_WINDOWLOG_LIMIT_DEFAULT`, and the largest of all compression levels.
const WINDOW_LOG_MAX: u32 = 27;

impl Inflater {
    /// The most bytes that are inflated ahead of the event being read: 1 MiB.
    pub const STEP: usize = 1 << 20;

    /// Starts a payload whose bytes are pushed as they come. Events of more than `event_max` bytes
    /// are refused.
    pub fn new(header: &PayloadHeader, event_max: usize) -> Result<Self, PayloadError> {
        let engine = match header.compression {
            Compression::Zstd => {
                let mut decoder = Decoder::new().map_err(|_| PayloadError::OutOfMemory)?;
                decoder
                    .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))
                    .map_err(|_| PayloadError::Corrupt)?;
                Engine::Zstd { decoder: Box::new(decoder), at_boundary: true, starved: false }
            }
            Compression::None => Engine::Stored,
            Compression::Unknown(code) => return Err(PayloadError::UnsupportedCompression(code)),
        };
        Ok(Self {
            engine,
            event_max,
            declared: header.uncompressed_size,
            inflated: 0,
            input: Bytes::new(),
            input_is_all: false,
            ready: Bytes::new(),
            partial: Vec::new(),
            failed: None,
        })
    }

    /// Starts a payload that is all there.
    pub fn whole(payload: &TransactionPayload, event_max: usize) -> Result<Self, PayloadError> {
        let mut inflater = Self::new(&payload.header, event_max)?;
        inflater.push(payload.payload.clone());
        inflater.finish();
        Ok(inflater)
    }

    /// Gives more of the payload. Best called after [`Inflated::NeedsInput`]; what is not used up yet
    /// is joined with it.
    pub fn push(&mut self, compressed: Bytes) {
        if let Engine::Zstd { starved, .. } = &mut self.engine {
            *starved = false;
        }
        if self.input.is_empty() {
            self.input = compressed;
        } else {
            self.input = [self.input.as_ref(), compressed.as_ref()].concat().into();
        }
    }

    /// Says that the payload is all given.
    pub fn finish(&mut self) {
        self.input_is_all = true;
    }

    /// How many bytes have been inflated so far.
    #[must_use]
    pub const fn inflated(&self) -> u64 {
        self.inflated
    }

    /// The next event.
    pub fn next_event(&mut self) -> Result<Inflated, PayloadError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let next = self.advance();
        self.failed = next.as_ref().err().copied();
        next
    }

    fn advance(&mut self) -> Result<Inflated, PayloadError> {
        loop {
            if let Some(event) = self.take_event()? {
                return Ok(Inflated::Event(event));
            }
            if !self.inflate()? {
                return if self.input_is_all { self.end() } else { Ok(Inflated::NeedsInput) };
            }
        }
    }

    /// The first event of what is inflated, if it is whole.
    fn take_event(&mut self) -> Result<Option<Event>, PayloadError> {
        if self.ready.is_empty() {
            match self.event_size(&self.partial)? {
                Some(size) if size <= self.partial.len() => {
                    self.ready = core::mem::take(&mut self.partial).into();
                }
                _ => return Ok(None),
            }
        }
        match self.event_size(&self.ready)? {
            Some(size) if size <= self.ready.len() => {
                let mut body = self.ready.split_to(size);
                let header = EventHeader::parse(&body).map_err(|_| PayloadError::Cut)?;
                body.advance(EventHeader::LENGTH);
                Ok(Some(Event { header, body }))
            }
            _ => {
                self.partial = self.ready.to_vec();
                self.ready = Bytes::new();
                Ok(None)
            }
        }
    }

    /// The length of the event that starts here, if its header is there; an error if the event
    /// must not be.
    fn event_size(&self, event: &[u8]) -> Result<Option<usize>, PayloadError> {
        let Ok(header) = EventHeader::parse(event) else { return Ok(None) };
        if header.event_type == EventType::TransactionPayload {
            return Err(PayloadError::Nested);
        }
        if header.size() < EventHeader::LENGTH {
            return Err(PayloadError::EventTooShort { claimed: header.event_size });
        }
        if header.size() > self.event_max {
            return Err(PayloadError::EventTooLarge { size: header.event_size });
        }
        Ok(Some(header.size()))
    }

    /// Inflates one step; `false` if nothing more comes out of the input there is.
    fn inflate(&mut self) -> Result<bool, PayloadError> {
        let before = self.partial.len();
        let progress = match &mut self.engine {
            // A whole event is sliced from the input without a copy.
            Engine::Stored if before == 0 => {
                self.ready = core::mem::take(&mut self.input);
                self.ready.len()
            }
            Engine::Stored => {
                let wanted = self.event_size(&self.partial)?.unwrap_or(EventHeader::LENGTH);
                let more = self.input.split_to(min(wanted.saturating_sub(before), self.input.len()));
                self.partial.extend_from_slice(&more);
                more.len()
            }
            Engine::Zstd { .. } => {
                self.make_room()?;
                self.run_zstd()?
            }
        };
        self.inflated = self.inflated.saturating_add(u64::try_from(progress).unwrap_or(u64::MAX));
        // A bomb is stopped here, long before its end.
        match self.declared {
            Some(declared) if self.inflated > declared => {
                Err(PayloadError::SizeMismatch { declared, inflated: self.inflated })
            }
            _ => Ok(progress > 0),
        }
    }

    /// Makes room for one step: doubling what is there, but at most one step beyond the event.
    fn make_room(&mut self) -> Result<(), PayloadError> {
        let length = self.partial.len();
        if length < self.partial.capacity() {
            return Ok(());
        }
        let left = self.declared.map_or(u64::MAX, |declared| declared.saturating_sub(self.inflated));
        // One byte more than is declared shows a payload that inflates to more.
        let step = min(Self::STEP, usize::try_from(left).unwrap_or(usize::MAX).saturating_add(1));
        let event = self.event_size(&self.partial)?.unwrap_or(0);
        let room = max(step, min(length, event.saturating_sub(length)));
        self.partial.try_reserve_exact(room).map_err(|_| PayloadError::OutOfMemory)
    }

    fn run_zstd(&mut self) -> Result<usize, PayloadError> {
        let Engine::Zstd { decoder, at_boundary, starved } = &mut self.engine else { return Ok(0) };
        let before = self.partial.len();
        loop {
            if self.input.is_empty() && (*at_boundary || *starved) {
                return Ok(0);
            }
            let mut input = InBuffer::around(&self.input);
            let mut output = OutBuffer::around_pos(&mut self.partial, before);
            let left = decoder.run(&mut input, &mut output).map_err(|_| PayloadError::Corrupt)?;
            let used = input.pos();
            let produced = output.pos().saturating_sub(before);
            self.input.advance(min(used, self.input.len()));
            *at_boundary = left == 0;
            *starved = produced == 0 && used == 0;
            // Input may be used up without output (a frame's head); go on until neither moves.
            if produced > 0 || *starved {
                return Ok(produced);
            }
        }
    }

    /// The input is all used up: was the payload whole?
    fn end(&self) -> Result<Inflated, PayloadError> {
        let at_boundary = match &self.engine {
            Engine::Zstd { at_boundary, .. } => *at_boundary,
            Engine::Stored => true,
        };
        // A server compresses what it has: a payload of nothing has lost its events.
        if self.inflated == 0 || !at_boundary || !self.partial.is_empty() || !self.ready.is_empty() {
            return Err(PayloadError::Cut);
        }
        match self.declared {
            Some(declared) if declared != self.inflated => {
                Err(PayloadError::SizeMismatch { declared, inflated: self.inflated })
            }
            _ => Ok(Inflated::End),
        }
    }
}

impl fmt::Debug for Inflater {
    // Rule 1: what it holds are rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater")
            .field("declared", &self.declared)
            .field("inflated", &self.inflated)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
