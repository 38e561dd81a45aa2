//! GTIDs and GTID sets as text.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::{GNO_MAX, Gtid, GtidSet, Interval, Tag, Tsid, Uuid};

/// The text is no GTID or GTID set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed GTID text: expected {expected} at byte {at}")]
pub struct GtidTextError {
    /// Where, in bytes from the start of the text.
    pub at: usize,
    /// What should stand there.
    pub expected: Expected,
}

/// What a malformed GTID text should have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A UUID, in any of its spellings.
    Uuid,
    /// `:`
    Colon,
    /// A tag: up to 32 letters, digits and underscores.
    Tag,
    /// A number 1..=9223372036854775806 in decimal without leading zeros (some versions of the server
    /// read those as octal).
    Number,
    /// An interval whose end does not lie before its start (the server drops such an interval, and
    /// what its writer meant is lost).
    Interval,
    /// A comma or the end (of a set), the end (of a GTID).
    End,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uuid => "a UUID",
            Self::Colon => "a colon",
            Self::Tag => "a tag",
            Self::Number => "a transaction number",
            Self::Interval => "an interval",
            Self::End => "the end",
        })
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.uuid())?;
        if !self.tag().is_none() {
            write!(f, "{}:", self.tag())?;
        }
        write!(f, "{}", self.gno())
    }
}

impl fmt::Display for GtidSet {
    /// As the server prints it, on one line: `uuid:1-3:5:tag:7,uuid:1`. The server breaks the line
    /// after each comma.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last: Option<Uuid> = None;
        for (tsid, intervals) in self {
            if last != Some(tsid.uuid) {
                let comma = if last.is_some() { "," } else { "" };
                write!(f, "{comma}{}", tsid.uuid)?;
                last = Some(tsid.uuid);
            }
            if !tsid.tag.is_none() {
                write!(f, ":{}", tsid.tag)?;
            }
            for interval in intervals {
                write!(f, ":{}", interval.start())?;
                if interval.end() > interval.start() {
                    write!(f, "-{}", interval.end())?;
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Gtid {
    type Err = GtidTextError;

    /// Reads `uuid:gno` or `uuid:tag:gno`; blanks around the parts are allowed, as in the server.
    fn from_str(text: &str) -> Result<Self, GtidTextError> {
        let mut text = Text::new(text);
        let uuid = text.uuid()?;
        text.colon()?;
        let tag = if text.at_tag() {
            let tag = text.tag()?;
            text.colon()?;
            tag
        } else {
            Tag::NONE
        };
        let at = text.at;
        let gno = text.number()?;
        text.blanks();
        if text.peek().is_some() {
            return Err(text.error(Expected::End));
        }
        Self::new(uuid, tag, gno).ok_or(GtidTextError { at, expected: Expected::Number })
    }
}

impl FromStr for GtidSet {
    type Err = GtidTextError;

    /// Reads what MySQL's grammar allows: UUIDs in any case and repeated, intervals in any order
    /// and overlapping, blanks and newlines between the parts, empty items between commas; a tag
    /// holds for the intervals behind it up to the next tag or UUID.
    ///
    /// Refused although the server lets it pass, because it would lose something in silence: a UUID
    /// or tag without intervals, an interval that ends before it starts, leading zeros.
    fn from_str(text: &str) -> Result<Self, GtidTextError> {
        let mut text = Text::new(text);
        let mut all = Vec::new();
        loop {
            text.blanks();
            match text.peek() {
                None => return Ok(Self::from_unsorted(all)),
                Some(b',') => text.step(),
                Some(_) => text.uuid_set(&mut all)?,
            }
        }
    }
}

/// Text being read.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Self {
        let mut text = Self { bytes: text.as_bytes(), at: 0 };
        text.blanks();
        text
    }

    /// One UUID with its tags and intervals, up to a comma or the end.
    fn uuid_set(&mut self, all: &mut Vec<(Tsid, Interval)>) -> Result<(), GtidTextError> {
        let mut tsid = Tsid::untagged(self.uuid()?);
        self.colon()?;
        loop {
            if self.at_tag() {
                tsid.tag = self.tag()?;
                self.colon()?;
                if self.at_tag() {
                    return Err(self.error(Expected::Number));
                }
            }
            all.push((tsid, self.interval()?));
            match self.peek() {
                None | Some(b',') => return Ok(()),
                Some(b':') => self.colon()?,
                Some(_) => return Err(self.error(Expected::End)),
            }
        }
    }

    /// `n` or `n-m`, and the blanks behind it.
    fn interval(&mut self) -> Result<Interval, GtidTextError> {
        let at = self.at;
        let start = self.number()?;
        self.blanks();
        let end = if self.peek() == Some(b'-') {
            self.step();
            self.blanks();
            let end = self.number()?;
            self.blanks();
            end
        } else {
            start
        };
        Interval::new(start, end).ok_or(GtidTextError { at, expected: Expected::Interval })
    }

    fn uuid(&mut self) -> Result<Uuid, GtidTextError> {
        let error = self.error(Expected::Uuid);
        let word = self.run(|b| b.is_ascii_hexdigit() || matches!(b, b'-' | b'{' | b'}'));
        let uuid = Uuid::from_bytes(word).map_err(|_| error)?;
        self.blanks();
        Ok(uuid)
    }

    fn colon(&mut self) -> Result<(), GtidTextError> {
        if self.peek() != Some(b':') {
            return Err(self.error(Expected::Colon));
        }
        self.step();
        self.blanks();
        Ok(())
    }

    /// Whether a tag starts here, and not a number.
    fn at_tag(&self) -> bool {
        matches!(self.peek(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_'))
    }

    fn tag(&mut self) -> Result<Tag, GtidTextError> {
        let error = self.error(Expected::Tag);
        let word = self.run(|b| b.is_ascii_alphanumeric() || b == b'_');
        let tag = Tag::from_bytes(word).map_err(|_| error)?;
        self.blanks();
        Ok(tag)
    }

    fn number(&mut self) -> Result<u64, GtidTextError> {
        let error = self.error(Expected::Number);
        let digits = self.run(|b| b.is_ascii_digit());
        if digits.first().is_none_or(|&first| first == b'0') {
            return Err(error);
        }
        digits
            .iter()
            .try_fold(0_u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0'))))
            .filter(|&n| n <= GNO_MAX)
            .ok_or(error)
    }

    fn run(&mut self, of: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|&b| !of(b)).unwrap_or(rest.len());
        self.at = self.at.saturating_add(length);
        rest.get(..length).unwrap_or_default()
    }

    fn blanks(&mut self) {
        self.run(|b| matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r'));
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn error(&self, expected: Expected) -> GtidTextError {
        GtidTextError { at: self.at, expected }
    }
}
