//! The decode plan of a table version: per column what a walk over rows needs, in eight bytes.
//!
//! Made once per table version, so that a row is a loop over the plan: no match on names, no
//! allocation, no hash lookup.

use alloc::{boxed::Box, vec::Vec};

use super::charset::Charset;
use super::decimal::Shape;
use super::table::{Column, ColumnType};

/// How one column lies in a row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Bytes of the length in front of the value: 0 (none: `width` bytes follow) to 4.
    pub(crate) prefix: u8,
    /// Bytes of the value, for those without a length.
    pub(crate) width: u8,
    /// What the value is.
    pub(crate) kind: Kind,
}

/// What the bytes of a column are, stripped of everything a match does not need. Its tag is a byte of its own, which
/// a match reads as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    I8,
    U8,
    I16,
    U16,
    I24,
    U24,
    I32,
    U32,
    I64,
    U64,
    Float,
    Double,
    Decimal {
        shape: Shape,
    },
    Bit {
        bits: u8,
    },
    Year,
    Date,
    Time {
        fsp: u8,
    },
    DateTime {
        fsp: u8,
    },
    Timestamp {
        fsp: u8,
    },
    OldTime,
    OldDateTime,
    OldTimestamp,
    Text {
        collation: Option<u16>,
        charset: Option<Charset>,
    },
    Binary {
        pad_to: u16,
    },
    Blob,
    Enum,
    Set,
    Json,
    Geometry,
    Vector,
    /// Stepped over and never shown: the column is left out of the captured set.
    LeftOut,
}

/// Columns that lie together when nothing is NULL: some without a length, then one with a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Bytes of the columns without a length.
    fixed: u32,
    /// Bytes of the length that follows them; 0: the row ends without one.
    prefix: u8,
    /// The bits of that length in four bytes.
    mask: u32,
    /// Its columns among the first 64, a bit for each.
    columns: u64,
    /// Its columns: the first, and the one behind them.
    first: u16,
    end: u16,
}

impl Run {
    /// What is behind the value that has its length at the head of `rest`.
    #[inline]
    fn behind_length<'a>(&self, rest: &'a [u8]) -> Option<&'a [u8]> {
        // Nearly always four bytes are there, and then one way to read is enough.
        let len = match rest.first_chunk() {
            Some(four) => u32::from_le_bytes(*four) & self.mask,
            None => u32::try_from(length(self.prefix, rest, 0)?).ok()?,
        };
        rest.get(usize::try_from(u64::from(len) + u64::from(self.prefix)).ok()?..)
    }

    const fn starting_at(first: u16) -> Self {
        Self { fixed: 0, prefix: 0, mask: 0, columns: 0, first, end: first }
    }
}

/// Where a column lies when nothing is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// In which run.
    pub(crate) run: u16,
    /// How far from the start of the run.
    pub(crate) offset: u32,
}

impl Step {
    /// Where the column's value starts and how long it is, if the column starts at `at`. Whether the value
    /// lies inside `bytes` is not looked at.
    #[inline]
    pub(crate) fn place(&self, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        if self.prefix == 0 {
            return Some((at, usize::from(self.width)));
        }
        Some((at.saturating_add(usize::from(self.prefix)), length(self.prefix, bytes, at)?))
    }
}

/// The length of `prefix` bytes at `at` (little-endian).
#[inline]
fn length(prefix: u8, bytes: &[u8], at: usize) -> Option<usize> {
    match prefix {
        1 => bytes.get(at).map(|len| usize::from(*len)),
        2 => {
            let len = bytes.get(at..)?.first_chunk()?;
            Some(usize::from(u16::from_le_bytes(*len)))
        }
        3 => {
            let [a, b, c] = bytes.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes([*a, *b, *c, 0]) as usize)
        }
        4 => {
            let len = bytes.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*len) as usize)
        }
        _ => None,
    }
}

/// The plan of a table version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Box<[Step]>,
    pub(crate) runs: Box<[Run]>,
    pub(crate) spots: Box<[Spot]>,
    /// Bytes of the NULL bitmap of an image that has every column.
    pub(crate) nulls_len: usize,
    /// A bit for each column; 0 where they are more than 64.
    pub(crate) null_mask: u64,
}

impl Plan {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let steps: Box<[Step]> = columns.iter().map(|c| step(&c.column_type)).collect();
        let (runs, spots) = runs(&steps);
        let nulls_len = steps.len().div_ceil(8);
        let null_mask = match u32::try_from(steps.len()) {
            Ok(count @ 1..=64) => u64::MAX >> (64 - count),
            _ => 0,
        };
        Self { steps, runs, spots, nulls_len, null_mask }
    }

    /// The column's values are stepped over from here on.
    pub(crate) fn leave_out(&mut self, column: usize) {
        if let Some(step) = self.steps.get_mut(column) {
            step.kind = Kind::LeftOut;
        }
    }

    /// Steps over the values of a row that has every column and no NULL, from `at` in `bytes` on, and says
    /// where each run starts. Gives where the row ends; `None` if that is beyond `bytes`.
    #[inline]
    pub(crate) fn walk(&self, bytes: &[u8], mut at: usize, mut start: impl FnMut(usize)) -> Option<usize> {
        let mut rest = bytes.get(at..)?;
        for run in &self.runs {
            start(at);
            rest = rest.get(run.fixed as usize..)?;
            if run.prefix != 0 {
                rest = run.behind_length(rest)?;
            }
            at = bytes.len().saturating_sub(rest.len());
        }
        Some(at)
    }

    /// [`Self::walk`] over a row of which some columns are NULL, of a table of at most 64: a run without one is
    /// stepped over as there.
    pub(crate) fn walk_some(&self, bytes: &[u8], at: usize, nulls: u64) -> Option<usize> {
        let mut rest = bytes.get(at..)?;
        for run in &self.runs {
            if nulls & run.columns == 0 {
                rest = rest.get(run.fixed as usize..)?;
                if run.prefix != 0 {
                    rest = run.behind_length(rest)?;
                }
                continue;
            }
            let steps = self.steps.get(run.first.into()..run.end.into())?;
            for (step, column) in steps.iter().zip(u32::from(run.first)..) {
                if nulls.checked_shr(column).unwrap_or(0) & 1 == 0 {
                    let (start, len) = step.place(rest, 0)?;
                    rest = rest.get(start.saturating_add(len)..)?;
                }
            }
        }
        Some(bytes.len().saturating_sub(rest.len()))
    }
}

fn runs(steps: &[Step]) -> (Box<[Run]>, Box<[Spot]>) {
    let (mut runs, mut spots) = (Vec::new(), Vec::with_capacity(steps.len()));
    let mut run = Run::starting_at(0);
    for step in steps {
        // A table has at most 4,096 columns.
        let number = u16::try_from(runs.len()).unwrap_or(u16::MAX);
        spots.push(Spot { run: number, offset: run.fixed });
        run.fixed = run.fixed.saturating_add(u32::from(step.width));
        run.columns |= 1u64.checked_shl(run.end.into()).unwrap_or(0);
        run.end = run.end.saturating_add(1);
        if step.prefix != 0 {
            run.prefix = step.prefix;
            run.mask = u32::MAX.checked_shr(32u32.saturating_sub(u32::from(step.prefix) * 8)).unwrap_or(0);
            let next = Run::starting_at(run.end);
            runs.push(core::mem::replace(&mut run, next));
        }
    }
    if run.end != run.first {
        runs.push(run);
    }
    (runs.into_boxed_slice(), spots.into_boxed_slice())
}

fn step(t: &ColumnType) -> Step {
    let fixed = |width, kind| Step { prefix: 0, width, kind };
    let counted = |prefix, kind| Step { prefix, width: 0, kind };
    match t {
        ColumnType::TinyInt { unsigned } => fixed(1, if *unsigned { Kind::U8 } else { Kind::I8 }),
        ColumnType::SmallInt { unsigned } => fixed(2, if *unsigned { Kind::U16 } else { Kind::I16 }),
        ColumnType::MediumInt { unsigned } => fixed(3, if *unsigned { Kind::U24 } else { Kind::I24 }),
        ColumnType::Int { unsigned } => fixed(4, if *unsigned { Kind::U32 } else { Kind::I32 }),
        ColumnType::BigInt { unsigned } => fixed(8, if *unsigned { Kind::U64 } else { Kind::I64 }),
        ColumnType::Float { .. } => fixed(4, Kind::Float),
        ColumnType::Double { .. } => fixed(8, Kind::Double),
        ColumnType::Decimal { precision, scale, .. } => {
            let kind = Kind::Decimal { shape: Shape::of(*precision, *scale) };
            fixed(super::decimal::packed_len(*precision, *scale), kind)
        }
        ColumnType::Bit { bits } => fixed(bits.div_ceil(8), Kind::Bit { bits: *bits }),
        ColumnType::Year => fixed(1, Kind::Year),
        ColumnType::Date => fixed(3, Kind::Date),
        ColumnType::Time { fsp } => fixed(3 + fsp.div_ceil(2), Kind::Time { fsp: *fsp }),
        ColumnType::DateTime { fsp } => fixed(5 + fsp.div_ceil(2), Kind::DateTime { fsp: *fsp }),
        ColumnType::Timestamp { fsp } => fixed(4 + fsp.div_ceil(2), Kind::Timestamp { fsp: *fsp }),
        ColumnType::OldTime => fixed(3, Kind::OldTime),
        ColumnType::OldDateTime => fixed(8, Kind::OldDateTime),
        ColumnType::OldTimestamp => fixed(4, Kind::OldTimestamp),
        ColumnType::Char { bytes_max, collation } | ColumnType::Varchar { bytes_max, collation } => {
            counted(string_prefix(*bytes_max), text(*collation))
        }
        ColumnType::Text { length_bytes, collation } => counted(*length_bytes, text(*collation)),
        ColumnType::Binary { bytes } => counted(string_prefix(*bytes), Kind::Binary { pad_to: *bytes }),
        ColumnType::Varbinary { bytes_max } => counted(string_prefix(*bytes_max), Kind::Binary { pad_to: 0 }),
        ColumnType::Blob { length_bytes } => counted(*length_bytes, Kind::Blob),
        ColumnType::Enum { bytes, .. } => fixed(*bytes, Kind::Enum),
        ColumnType::Set { bytes, .. } => fixed(*bytes, Kind::Set),
        ColumnType::Json => counted(4, Kind::Json),
        ColumnType::Geometry { .. } => counted(4, Kind::Geometry),
        ColumnType::Vector { .. } => counted(4, Kind::Vector),
    }
}

fn text(collation: Option<u16>) -> Kind {
    Kind::Text { collation, charset: collation.and_then(Charset::of_collation) }
}

/// Strings of at most 255 bytes have a length of one byte, longer ones of two
/// (`Field_string::pack`, `Field_varstring::pack`).
const fn string_prefix(bytes_max: u16) -> u8 {
    if bytes_max > 255 { 2 } else { 1 }
}
