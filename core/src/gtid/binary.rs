//! GTID sets as bytes: `PREVIOUS_GTIDS` events and `COM_BINLOG_DUMP_GTID`.
//!
//! Two layouts (`sql/rpl_gtid_set.cc`, `Gtid_set::encode`; `libs/mysql/gtid/tsid.cpp`), all integers
//! little-endian:
//!
//! | | untagged | tagged (8.3 and later, if any GTID of the set has a tag) |
//! |---|---|---|
//! | head, 8 bytes | number of sources; the top byte is 0 | `01`, number of sources in 6 bytes, `01` |
//! | per source | UUID, 16 bytes | UUID, 16 bytes; tag: length × 2 in one byte, then its text |
//! | | number of intervals, 8 bytes | the same |
//! | per interval | start, 8 bytes; end + 1, 8 bytes | the same |

use alloc::vec::Vec;

use super::{GtidSet, Interval, Tag, Tsid, Uuid};
use crate::wire::{Reader, Short};

/// The format byte of the tagged layout (`libs/mysql/gtid/gtid_format.h`).
const FORMAT_TAGGED: u8 = 1;

/// Bytes that are no GTID set. The sender is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GtidSetDecodeError {
    /// The bytes end before what they announce.
    #[error("the GTID set is cut short")]
    Short,
    /// A layout newer than this reader.
    #[error("the GTID set has the unknown format {0}")]
    UnknownFormat(u8),
    /// A tag that no server can have made.
    #[error("the GTID set holds a malformed tag")]
    Tag,
    /// Intervals that are empty, out of range or out of order (the server's error 1773).
    #[error("the GTID set holds an interval that is empty or out of order")]
    Interval,
    /// More bytes than the set has.
    #[error("the GTID set is followed by {0} more bytes")]
    Trailing(usize),
}

impl From<Short> for GtidSetDecodeError {
    fn from(Short: Short) -> Self {
        Self::Short
    }
}

impl GtidSet {
    /// The bytes of the set, in the tagged layout exactly if a GTID of it has a tag.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let tagged = self.has_tags();
        let sources = u64::try_from(self.iter().len()).unwrap_or(u64::MAX);
        let format = u64::from(FORMAT_TAGGED);
        let head = if tagged { format << 56 | sources << 8 | format } else { sources };
        let mut out = Vec::new();
        out.extend_from_slice(&head.to_le_bytes());
        for (tsid, intervals) in self {
            out.extend_from_slice(&tsid.uuid.0);
            if tagged {
                let tag = tsid.tag.as_str().as_bytes();
                // A variable-length integer below 128 is its double in one byte; tags have at most 32.
                out.push(u8::try_from(tag.len()).unwrap_or_default() << 1);
                out.extend_from_slice(tag);
            }
            out.extend_from_slice(&u64::try_from(intervals.len()).unwrap_or_default().to_le_bytes());
            for interval in intervals {
                for bound in to_wire(interval) {
                    out.extend_from_slice(&bound.to_le_bytes());
                }
            }
        }
        out
    }

    /// Reads a set in either layout. All bytes must belong to it; a repeated source is joined, as
    /// the server does.
    pub fn decode(bytes: &[u8]) -> Result<Self, GtidSetDecodeError> {
        let mut reader = Reader::new(bytes);
        let (tagged, sources) = head(&mut reader)?;
        // Grows with the bytes that are there, not with the number they claim.
        let mut all = Vec::new();
        for _ in 0..sources {
            let uuid = Uuid(reader.array()?);
            let tag = if tagged { tag(&mut reader)? } else { Tag::NONE };
            let count = reader.u64()?;
            let mut last_end = 0;
            for _ in 0..count {
                let (start, end) = (reader.u64()?, reader.u64()?);
                let interval = from_wire(start, end).ok_or(GtidSetDecodeError::Interval)?;
                // Intervals that touch are refused too: the server joins them before it writes.
                if start <= last_end {
                    return Err(GtidSetDecodeError::Interval);
                }
                last_end = end;
                all.push((Tsid { uuid, tag }, interval));
            }
        }
        if !reader.is_empty() {
            return Err(GtidSetDecodeError::Trailing(reader.len()));
        }
        Ok(Self::from_unsorted(all))
    }
}

/// The wire's end is the first number that is *not* in the interval. This function and the next are
/// the only place that knows.
fn to_wire(interval: &Interval) -> [u64; 2] {
    [interval.start(), interval.end().saturating_add(1)]
}

fn from_wire(start: u64, end_exclusive: u64) -> Option<Interval> {
    Interval::new(start, end_exclusive.checked_sub(1)?)
}

/// Whether the layout is the tagged one, and how many sources follow.
fn head(reader: &mut Reader<'_>) -> Result<(bool, u64), GtidSetDecodeError> {
    let head = reader.u64()?;
    let [low, .., format] = head.to_le_bytes();
    match format {
        0 => Ok((false, head)),
        FORMAT_TAGGED if low == FORMAT_TAGGED => Ok((true, head << 8 >> 16)),
        FORMAT_TAGGED => Err(GtidSetDecodeError::UnknownFormat(low)),
        unknown => Err(GtidSetDecodeError::UnknownFormat(unknown)),
    }
}

fn tag(reader: &mut Reader<'_>) -> Result<Tag, GtidSetDecodeError> {
    let length = usize::try_from(reader.varlen()?).map_err(|_| GtidSetDecodeError::Tag)?;
    if length > Tag::LENGTH_MAX {
        return Err(GtidSetDecodeError::Tag);
    }
    Tag::from_bytes(reader.take(length)?).map_err(|_| GtidSetDecodeError::Tag)
}
