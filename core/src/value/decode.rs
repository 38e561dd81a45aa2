//! From the bytes of one column to its [`Value`].

use super::plan::{Kind, Step};
use super::table::{Column, ColumnType, Labels};
use super::visit::{Keep, Visit};
use super::{
    Binary, Bit, Date, DateTime, Decimal, Enum, Geometry, Json, Set, Text, Time, Timestamp, Value,
    ValueFault, Vector,
};

/// The value of `bytes` in the column at `at`, whose plan is `step`. `bytes` excludes the length in front.
///
/// # Errors
/// What the server cannot have stored.
#[inline]
pub(crate) fn decode<'a>(
    step: &Step,
    at: usize,
    columns: &'a [Column],
    bytes: &'a [u8],
) -> Result<Value<'a>, ValueFault> {
    let (mut rest, mut kept) = (bytes, Keep(Value::Absent));
    visit(step, at, columns, &mut rest, |rest| Ok(core::mem::take(rest)), &mut kept)?;
    if rest.is_empty() { Ok(kept.0) } else { Err(ValueFault::Length) }
}

/// Hands the next column's value to `to`, its length in front of it if it has one; what is behind it is left.
///
/// # Errors
/// As [`decode`], and what `to` gives.
#[inline(always)]
pub(crate) fn visit_next<'a>(
    step: &Step,
    at: usize,
    columns: &'a [Column],
    rest: &mut &'a [u8],
    to: &mut impl Visit<'a>,
) -> Result<(), ValueFault> {
    visit(step, at, columns, rest, |rest| counted(step.prefix, rest), to)
}

/// The bytes of a value that has its length in front.
#[inline]
fn counted<'a>(prefix: u8, rest: &mut &'a [u8]) -> Result<&'a [u8], ValueFault> {
    let len = match prefix {
        1 => {
            let [len] = take(rest)?;
            usize::from(len)
        }
        2 => usize::from(u16::from_le_bytes(take(rest)?)),
        3 => {
            let [a, b, c] = take(rest)?;
            u32::from_le_bytes([a, b, c, 0]) as usize
        }
        _ => u32::from_le_bytes(take(rest)?) as usize,
    };
    take_slice(rest, len)
}

/// One match from the kind to the method it is handed to; `counted` takes the bytes of a value whose type does
/// not tell its length.
#[inline(always)]
fn visit<'a>(
    step: &Step,
    at: usize,
    columns: &'a [Column],
    rest: &mut &'a [u8],
    counted: impl Fn(&mut &'a [u8]) -> Result<&'a [u8], ValueFault>,
    to: &mut impl Visit<'a>,
) -> Result<(), ValueFault> {
    let width = usize::from(step.width);
    match &step.kind {
        Kind::I32 => to.int(at, i64::from(i32::from_le_bytes(take(rest)?))),
        Kind::U32 => to.uint(at, u64::from(u32::from_le_bytes(take(rest)?))),
        Kind::I64 => to.int(at, i64::from_le_bytes(take(rest)?)),
        Kind::U64 => to.uint(at, u64::from_le_bytes(take(rest)?)),
        Kind::I8 => to.int(at, i64::from(i8::from_le_bytes(take(rest)?))),
        Kind::U8 => to.uint(at, u64::from(u8::from_le_bytes(take(rest)?))),
        Kind::I16 => to.int(at, i64::from(i16::from_le_bytes(take(rest)?))),
        Kind::U16 => to.uint(at, u64::from(u16::from_le_bytes(take(rest)?))),
        Kind::I24 => {
            // Not put together as one of four bytes, which would take both apart in the same way.
            let (low, [high]) = (u16::from_le_bytes(take(rest)?), take(rest)?);
            to.int(at, i64::from(high.cast_signed()) << 16 | i64::from(low))
        }
        Kind::U24 => {
            let (low, [high]) = (u16::from_le_bytes(take(rest)?), take(rest)?);
            to.uint(at, u64::from(high) << 16 | u64::from(low))
        }
        Kind::Double => {
            let value = f64::from_le_bytes(take(rest)?);
            if !value.is_finite() {
                return Err(ValueFault::NotFinite);
            }
            to.double(at, value)
        }
        Kind::Decimal { shape } => {
            let bytes = take_slice(rest, width)?;
            to.decimal(at, Decimal::of_column(bytes, *shape).ok_or(ValueFault::Decimal)?)
        }
        Kind::Date => to.date(at, temporal(Date::from_wire(take(rest)?))?),
        Kind::DateTime { fsp: fsp @ 5..=6 } => {
            to.date_time(at, temporal(DateTime::from_wire_micros(take(rest)?, *fsp))?)
        }
        Kind::DateTime { fsp } => {
            to.date_time(at, temporal(DateTime::from_wire(take_slice(rest, width)?, *fsp))?)
        }
        Kind::Timestamp { fsp } => {
            to.timestamp(at, temporal(Timestamp::from_wire(take_slice(rest, width)?, *fsp))?)
        }
        Kind::Text { collation, charset } => {
            to.text(at, Text::of_column(counted(rest)?, *collation, *charset))
        }
        Kind::Blob => to.blob(at, counted(rest)?),
        Kind::OldDateTime => to.date_time(at, temporal(DateTime::from_old_wire(take(rest)?))?),
        Kind::OldTimestamp => to.timestamp(at, temporal(Timestamp::from_old_wire(take(rest)?))?),
        Kind::Float
        | Kind::Bit { .. }
        | Kind::Year
        | Kind::Time { .. }
        | Kind::OldTime
        | Kind::Binary { .. }
        | Kind::Enum
        | Kind::Set
        | Kind::Json
        | Kind::Geometry
        | Kind::Vector
        | Kind::LeftOut => {
            let bytes = if step.prefix == 0 { take_slice(rest, width)? } else { counted(rest)? };
            to.value(at, other(&step.kind, at, columns, bytes)?)
        }
    }
}

/// A value of a kind that [`Visit`] has no method for.
fn other<'a>(
    kind: &Kind,
    at: usize,
    columns: &'a [Column],
    bytes: &'a [u8],
) -> Result<Value<'a>, ValueFault> {
    let mut rest = bytes;
    let rest = &mut rest;
    Ok(match kind {
        Kind::Float => {
            let value = f32::from_le_bytes(take(rest)?);
            if !value.is_finite() {
                return Err(ValueFault::NotFinite);
            }
            Value::Float(value)
        }
        Kind::Time { fsp } => Value::Time(temporal(Time::from_wire(bytes, *fsp))?),
        Kind::OldTime => Value::Time(temporal(Time::from_old_wire(take(rest)?))?),
        Kind::Year => {
            let [year] = take(rest)?;
            Value::Year(if year == 0 { 0 } else { 1900 + u16::from(year) })
        }
        Kind::Bit { bits } => Value::Bit(Bit::new(big_endian(bytes)?, *bits).ok_or(ValueFault::Bit)?),
        Kind::Enum => {
            let index = u16::try_from(little_endian(bytes)?).map_err(|_| ValueFault::NoSuchMember)?;
            Value::Enum(Enum::new(index, labels(columns, at)?).ok_or(ValueFault::NoSuchMember)?)
        }
        Kind::Set => {
            let bits = little_endian(bytes)?;
            Value::Set(Set::new(bits, labels(columns, at)?).ok_or(ValueFault::NoSuchMember)?)
        }
        Kind::Binary { pad_to } => Value::Binary(Binary::new(bytes, *pad_to)),
        Kind::Json => Value::Json(Json::new(bytes)),
        Kind::Geometry => Value::Geometry(Geometry::new(bytes).ok_or(ValueFault::Geometry)?),
        Kind::Vector => Value::Vector(Vector::new(bytes).ok_or(ValueFault::Vector)?),
        Kind::LeftOut => Value::Absent,
        // Each of them is handed over where it is decoded.
        Kind::I8
        | Kind::U8
        | Kind::I16
        | Kind::U16
        | Kind::I24
        | Kind::U24
        | Kind::I32
        | Kind::U32
        | Kind::I64
        | Kind::U64
        | Kind::Double
        | Kind::Decimal { .. }
        | Kind::Date
        | Kind::DateTime { .. }
        | Kind::Timestamp { .. }
        | Kind::OldDateTime
        | Kind::OldTimestamp
        | Kind::Text { .. }
        | Kind::Blob => return Err(ValueFault::Length),
    })
}

#[inline]
fn temporal<T>(value: Option<T>) -> Result<T, ValueFault> {
    value.ok_or(ValueFault::Temporal)
}

#[inline]
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], ValueFault> {
    let (bytes, behind) = rest.split_first_chunk().ok_or(ValueFault::Length)?;
    *rest = behind;
    Ok(*bytes)
}

#[inline]
fn take_slice<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], ValueFault> {
    let (bytes, behind) = rest.split_at_checked(len).ok_or(ValueFault::Length)?;
    *rest = behind;
    Ok(bytes)
}

fn big_endian(bytes: &[u8]) -> Result<u64, ValueFault> {
    if bytes.len() > 8 {
        return Err(ValueFault::Length);
    }
    Ok(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn little_endian(bytes: &[u8]) -> Result<u64, ValueFault> {
    if bytes.len() > 8 {
        return Err(ValueFault::Length);
    }
    Ok(bytes.iter().rfold(0, |n, b| n << 8 | u64::from(*b)))
}

fn labels(columns: &[Column], at: usize) -> Result<&Labels, ValueFault> {
    let column = columns.get(at).ok_or(ValueFault::NoSuchColumn)?;
    if let ColumnType::Enum { labels, .. } | ColumnType::Set { labels, .. } = &column.column_type {
        Ok(labels)
    } else {
        Err(ValueFault::NoSuchMember)
    }
}
