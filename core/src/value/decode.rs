//! From the bytes of one column to its [`Value`].

use super::plan::{Kind, Step};
use super::table::{Column, ColumnType, Labels};
use super::{
    Binary, Bit, Date, DateTime, Decimal, Enum, Geometry, Json, Set, Text, Time, Timestamp, Value,
    ValueFault, Vector,
};

/// The value of `bytes` in a column with this plan. `bytes` excludes the length in front.
///
/// # Errors
/// What the server cannot have stored.
#[inline]
pub(crate) fn decode<'a>(step: Step, column: &'a Column, bytes: &'a [u8]) -> Result<Value<'a>, ValueFault> {
    if step.prefix != 0 {
        return counted(step.kind, bytes);
    }
    let mut rest = bytes;
    let value = fixed(step, column, &mut rest)?;
    if rest.is_empty() { Ok(value) } else { Err(ValueFault::Length) }
}

/// The value of the next column, its length in front of it if it has one; what is behind it is left.
///
/// # Errors
/// As [`decode`].
#[inline]
pub(crate) fn decode_next<'a>(
    step: Step,
    column: &'a Column,
    rest: &mut &'a [u8],
) -> Result<Value<'a>, ValueFault> {
    let len = match step.prefix {
        0 => return fixed(step, column, rest),
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
    counted(step.kind, take_slice(rest, len)?)
}

/// A value that has its length in front.
#[inline]
fn counted(kind: Kind, bytes: &[u8]) -> Result<Value<'_>, ValueFault> {
    Ok(match kind {
        Kind::Text { collation, charset } => Value::Text(Text::of_column(bytes, collation, charset)),
        Kind::Binary { pad_to } => Value::Binary(Binary::new(bytes, pad_to)),
        Kind::Blob => Value::Blob(bytes),
        Kind::Json => Value::Json(Json::new(bytes)),
        Kind::Geometry => Value::Geometry(Geometry::new(bytes).ok_or(ValueFault::Geometry)?),
        Kind::Vector => Value::Vector(Vector::new(bytes).ok_or(ValueFault::Vector)?),
        Kind::LeftOut => Value::Absent,
        // None of them has a length in a plan.
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
        | Kind::Float
        | Kind::Double
        | Kind::Decimal { .. }
        | Kind::Bit { .. }
        | Kind::Year
        | Kind::Date
        | Kind::Time { .. }
        | Kind::DateTime { .. }
        | Kind::Timestamp { .. }
        | Kind::OldTime
        | Kind::OldDateTime
        | Kind::OldTimestamp
        | Kind::Enum
        | Kind::Set => return Err(ValueFault::Length),
    })
}

/// A value whose type tells its length.
#[inline]
fn fixed<'a>(step: Step, column: &'a Column, rest: &mut &'a [u8]) -> Result<Value<'a>, ValueFault> {
    let width = usize::from(step.width);
    Ok(match step.kind {
        Kind::I32 => Value::Int(i64::from(i32::from_le_bytes(take(rest)?))),
        Kind::U32 => Value::UInt(u64::from(u32::from_le_bytes(take(rest)?))),
        Kind::I64 => Value::Int(i64::from_le_bytes(take(rest)?)),
        Kind::U64 => Value::UInt(u64::from_le_bytes(take(rest)?)),
        Kind::I8 => Value::Int(i64::from(i8::from_le_bytes(take(rest)?))),
        Kind::U8 => Value::UInt(u64::from(u8::from_le_bytes(take(rest)?))),
        Kind::I16 => Value::Int(i64::from(i16::from_le_bytes(take(rest)?))),
        Kind::U16 => Value::UInt(u64::from(u16::from_le_bytes(take(rest)?))),
        Kind::I24 => {
            let [a, b, c] = take(rest)?;
            Value::Int(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8))
        }
        Kind::U24 => {
            let [a, b, c] = take(rest)?;
            Value::UInt(u64::from(u32::from_le_bytes([a, b, c, 0])))
        }
        Kind::Float => {
            let value = f32::from_le_bytes(take(rest)?);
            if !value.is_finite() {
                return Err(ValueFault::NotFinite);
            }
            Value::Float(value)
        }
        Kind::Double => {
            let value = f64::from_le_bytes(take(rest)?);
            if !value.is_finite() {
                return Err(ValueFault::NotFinite);
            }
            Value::Double(value)
        }
        Kind::Decimal { shape } => {
            let bytes = take_slice(rest, width)?;
            Value::Decimal(Decimal::of_column(bytes, shape).ok_or(ValueFault::Decimal)?)
        }
        Kind::Date => temporal(Date::from_wire(take(rest)?).map(Value::Date))?,
        Kind::DateTime { fsp: fsp @ 5..=6 } => {
            temporal(DateTime::from_wire_micros(take(rest)?, fsp).map(Value::DateTime))?
        }
        Kind::DateTime { fsp } => {
            temporal(DateTime::from_wire(take_slice(rest, width)?, fsp).map(Value::DateTime))?
        }
        Kind::Timestamp { fsp } => {
            temporal(Timestamp::from_wire(take_slice(rest, width)?, fsp).map(Value::Timestamp))?
        }
        Kind::Time { fsp } => temporal(Time::from_wire(take_slice(rest, width)?, fsp).map(Value::Time))?,
        Kind::Year => {
            let [year] = take(rest)?;
            Value::Year(if year == 0 { 0 } else { 1900 + u16::from(year) })
        }
        Kind::Bit { bits } => {
            let value = big_endian(take_slice(rest, width)?)?;
            Value::Bit(Bit::new(value, bits).ok_or(ValueFault::Bit)?)
        }
        Kind::Enum => {
            let index = little_endian(take_slice(rest, width)?)?;
            let index = u16::try_from(index).map_err(|_| ValueFault::NoSuchMember)?;
            Value::Enum(Enum::new(index, labels(column)?).ok_or(ValueFault::NoSuchMember)?)
        }
        Kind::Set => {
            let bits = little_endian(take_slice(rest, width)?)?;
            Value::Set(Set::new(bits, labels(column)?).ok_or(ValueFault::NoSuchMember)?)
        }
        Kind::OldTime => temporal(Time::from_old_wire(take(rest)?).map(Value::Time))?,
        Kind::OldDateTime => temporal(DateTime::from_old_wire(take(rest)?).map(Value::DateTime))?,
        Kind::OldTimestamp => temporal(Timestamp::from_old_wire(take(rest)?).map(Value::Timestamp))?,
        Kind::LeftOut => {
            take_slice(rest, width)?;
            Value::Absent
        }
        // They have a length in every plan.
        Kind::Text { .. } | Kind::Binary { .. } | Kind::Blob | Kind::Json | Kind::Geometry | Kind::Vector => {
            return Err(ValueFault::Length);
        }
    })
}

#[inline]
fn temporal(value: Option<Value<'_>>) -> Result<Value<'_>, ValueFault> {
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

fn labels(column: &Column) -> Result<&Labels, ValueFault> {
    if let ColumnType::Enum { labels, .. } | ColumnType::Set { labels, .. } = &column.column_type {
        Ok(labels)
    } else {
        Err(ValueFault::NoSuchMember)
    }
}
