//! The decode plan of a table version: per column what a walk over rows needs, in eight bytes.
//!
//! Made once per table version, so that a row is a loop over the plan: no match on names, no
//! allocation, no hash lookup.

use alloc::{boxed::Box, vec::Vec};

use super::charset::Charset;
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

/// What the bytes of a column are, stripped of everything a match does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        precision: u8,
        scale: u8,
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

/// Columns that lie together when nothing is NULL: a run without lengths, then one with a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Bytes of the columns without a length.
    fixed: u32,
    /// Bytes of the length that follows them; 0 at the end of the row.
    prefix: u8,
}

impl Step {
    /// The column's value at the start of `bytes`, without its length, and what is behind it.
    #[inline]
    pub(crate) fn split<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        split(self.prefix, usize::from(self.width), bytes)
    }
}

/// `width` bytes, or as many as the length of `prefix` bytes in front says (little-endian).
#[inline]
fn split(prefix: u8, width: usize, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match prefix {
        0 => bytes.split_at_checked(width),
        1 => {
            let (&len, rest) = bytes.split_first()?;
            rest.split_at_checked(usize::from(len))
        }
        2 => {
            let (&len, rest) = bytes.split_first_chunk()?;
            rest.split_at_checked(usize::from(u16::from_le_bytes(len)))
        }
        3 => {
            let (&[a, b, c], rest) = bytes.split_first_chunk()?;
            rest.split_at_checked(u32::from_le_bytes([a, b, c, 0]) as usize)
        }
        4 => {
            let (&len, rest) = bytes.split_first_chunk()?;
            rest.split_at_checked(u32::from_le_bytes(len) as usize)
        }
        _ => None,
    }
}

/// The plan of a table version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Box<[Step]>,
    runs: Box<[Run]>,
}

impl Plan {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let steps: Box<[Step]> = columns.iter().map(|c| step(&c.column_type)).collect();
        let runs = runs(&steps);
        Self { steps, runs }
    }

    /// The column's values are stepped over from here on.
    pub(crate) fn leave_out(&mut self, column: usize) {
        if let Some(step) = self.steps.get_mut(column) {
            step.kind = Kind::LeftOut;
        }
    }

    /// Steps over the values of a row that has every column and no NULL; `None` if they do not fit.
    #[inline]
    pub(crate) fn skip<'a>(&self, values: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = values;
        for run in &self.runs {
            rest = rest.get(run.fixed as usize..)?;
            rest = split(run.prefix, 0, rest)?.1;
        }
        Some(rest)
    }
}

fn runs(steps: &[Step]) -> Box<[Run]> {
    let mut runs = Vec::new();
    let mut fixed = 0u32;
    for step in steps {
        fixed = fixed.saturating_add(u32::from(step.width));
        if step.prefix != 0 {
            runs.push(Run { fixed, prefix: step.prefix });
            fixed = 0;
        }
    }
    if fixed != 0 {
        runs.push(Run { fixed, prefix: 0 });
    }
    runs.into_boxed_slice()
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
            let kind = Kind::Decimal { precision: *precision, scale: *scale };
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
