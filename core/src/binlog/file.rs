//! A binlog file, cut into events.

use core::ops::Range;

use bytes::{Buf as _, Bytes, BytesMut};

use super::{Event, EventDecoder, EventError, EventHeader, EventType};

/// Cuts the bytes of a binlog or relay log file into checked events, without I/O: bytes are fed in any
/// pieces, events are taken out with their offsets, and the end of the input is judged.
///
/// ```
/// use capstan_core::binlog::{FileErrorKind, FileReader};
/// let mut reader = FileReader::new(1 << 30);
/// reader.feed(&[0xfe, 0x62, 0x69, 0x6e]);
/// assert_eq!(reader.next_event(), Ok(None));
/// assert_eq!(reader.finish(), Ok(()));
/// reader.feed(&[0; 7]);
/// assert_eq!(reader.finish().unwrap_err().kind, FileErrorKind::Cut);
/// ```
#[derive(Clone, Debug)]
pub struct FileReader {
    decoder: EventDecoder,
    event_max: usize,
    expects: Expects,
    offset: u64,
    input: Input,
    failed: Option<FileError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Magic,
    FormatDescription,
    Event,
}

/// A file cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset}: {kind}")]
pub struct FileError {
    /// Where the event in question starts, in bytes from the head of the file.
    pub offset: u64,
    /// What is wrong there.
    pub kind: FileErrorKind,
}

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileErrorKind {
    /// It does not start as a binlog.
    #[error("not a binlog file")]
    NotABinlog,
    /// It is encrypted (`binlog_encryption`): only the server can read it.
    #[error("the binlog file is encrypted")]
    Encrypted,
    /// The first event is no format description, so nothing says how to read what follows.
    #[error("the file has no format description")]
    FormatDescriptionMissing,
    /// The event is larger than allowed (the caller's limit).
    #[error("an event of {size} bytes is larger than allowed")]
    EventTooLarge {
        /// Its length.
        size: u32,
    },
    /// The event is malformed or damaged.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The file ends inside an event (or its own head).
    #[error("the file ends inside an event")]
    Cut,
}

/// `BINLOG_MAGIC`.
const MAGIC: [u8; 4] = *b"\xfebin";
/// `Rpl_encryption_header::ENCRYPTION_MAGIC`.
const MAGIC_ENCRYPTED: [u8; 4] = *b"\xfdbin";

impl FileReader {
    /// For a file from its head. Events of more than `event_max` bytes are refused.
    #[must_use]
    pub fn new(event_max: usize) -> Self {
        Self {
            decoder: EventDecoder::for_file(),
            event_max,
            expects: Expects::Magic,
            offset: 0,
            input: Input::default(),
            failed: None,
        }
    }

    /// Goes on at another offset of the file, where an event must start. What was fed and not taken
    /// is dropped; the checksum algorithm stays. The head must have been read before: the events up to
    /// and including the format description.
    pub fn seek(&mut self, offset: u64) -> Result<(), FileError> {
        if self.expects != Expects::Event {
            return Err(self.error(FileErrorKind::FormatDescriptionMissing));
        }
        self.offset = offset;
        self.input = Input::default();
        Ok(())
    }

    /// Gives the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.feed(Bytes::copy_from_slice(bytes));
    }

    /// As [`feed`](Self::feed), without a copy: events that lie whole in `bytes` share its memory.
    pub fn feed_bytes(&mut self, bytes: Bytes) {
        self.input.feed(bytes);
    }

    /// The next event and the offset it starts at; `None` if more bytes are needed for it.
    ///
    /// After an error every further call gives the same error.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<(u64, Event)>, FileError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance().map_err(|kind| {
            let error = self.error(kind);
            self.failed = Some(error);
            error
        })
    }

    /// Where the next event starts, in bytes from the head of the file.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Says that the file is over: `Ok` if it ended between two events (call after
    /// [`next_event`](Self::next_event) gave `None`).
    pub fn finish(&self) -> Result<(), FileError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.expects == Expects::Magic || !self.input.is_empty() => {
                Err(self.error(FileErrorKind::Cut))
            }
            None => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<Option<(u64, Event)>, FileErrorKind> {
        if self.expects == Expects::Magic {
            match self.input.take(MAGIC.len()) {
                None => return Ok(None),
                Some(magic) if magic == MAGIC[..] => {}
                Some(magic) if magic == MAGIC_ENCRYPTED[..] => return Err(FileErrorKind::Encrypted),
                Some(_) => return Err(FileErrorKind::NotABinlog),
            }
            self.offset = HEAD;
            self.expects = Expects::FormatDescription;
        }
        let Ok(header) = EventHeader::parse(self.input.peek(EventHeader::LENGTH)) else {
            self.input.join(usize::MAX);
            return Ok(None);
        };
        // Looked at before its end is there: a wrong size must not swallow the rest of the file.
        if self.expects == Expects::FormatDescription && header.event_type != EventType::FormatDescription {
            return Err(FileErrorKind::FormatDescriptionMissing);
        }
        if header.size() < EventHeader::LENGTH {
            return Err(EventError::TooShort { given: header.size() }.into());
        }
        if header.size() > self.event_max {
            return Err(FileErrorKind::EventTooLarge { size: header.event_size });
        }
        let Some(event) = self.input.whole(header.size()) else {
            // Its memory may be wanted for the next piece.
            self.input.join(usize::MAX);
            return Ok(None);
        };
        let length = self.decoder.check(&header, event)?;
        let body = self.input.take_part(EventHeader::LENGTH..length, header.size());
        let offset = self.offset;
        self.expects = Expects::Event;
        self.offset = offset.saturating_add(u64::from(header.event_size));
        Ok(Some((offset, Event { header, body })))
    }

    const fn error(&self, kind: FileErrorKind) -> FileError {
        FileError { offset: self.offset, kind }
    }
}

/// Where the first event starts (`BIN_LOG_HEADER_SIZE`).
const HEAD: u64 = 4;

/// Bytes fed and not yet taken.
#[derive(Clone, Default)]
struct Input {
    /// What was left of earlier pieces, in front of `piece`: the head of an event that spans pieces.
    joined: BytesMut,
    piece: Bytes,
}

impl core::fmt::Debug for Input {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "<{} bytes>", self.joined.len().saturating_add(self.piece.len()))
    }
}

impl Input {
    fn feed(&mut self, piece: Bytes) {
        self.join(usize::MAX);
        self.piece = piece;
    }

    /// The next `n` bytes.
    #[inline]
    fn whole(&mut self, n: usize) -> Option<&[u8]> {
        self.peek(n).get(..n)
    }

    /// Takes `n` bytes and gives those of `part`, which lies in them.
    #[inline]
    fn take_part(&mut self, part: Range<usize>, n: usize) -> Bytes {
        if self.joined.is_empty() && n <= self.piece.len() && part.start <= part.end && part.end <= n {
            let taken = self.piece.slice(part);
            self.piece.advance(n);
            return taken;
        }
        let mut taken = self.take(n).unwrap_or_default();
        taken.truncate(part.end);
        taken.advance(part.start.min(taken.len()));
        taken
    }

    /// The next bytes, `n` of them if so many are there.
    #[inline]
    fn peek(&mut self, n: usize) -> &[u8] {
        if self.joined.is_empty() && self.piece.len() >= n {
            return &self.piece;
        }
        self.join(n.saturating_sub(self.joined.len()));
        &self.joined
    }

    fn is_empty(&self) -> bool {
        self.joined.is_empty() && self.piece.is_empty()
    }

    fn take(&mut self, n: usize) -> Option<Bytes> {
        if self.joined.is_empty() && n <= self.piece.len() {
            return Some(self.piece.split_to(n));
        }
        // What is left of a piece is copied, so that its memory can be used again.
        self.join(n.saturating_sub(self.joined.len()));
        (n <= self.joined.len()).then(|| self.joined.split_to(n).freeze())
    }

    /// Moves up to `n` bytes of the piece behind those of earlier ones.
    fn join(&mut self, n: usize) {
        let n = n.min(self.piece.len());
        self.joined.extend_from_slice(self.piece.get(..n).unwrap_or_default());
        self.piece.advance(n);
        if self.piece.is_empty() {
            self.piece = Bytes::new();
        }
    }
}
