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
    Ok(match step.kind {
        Kind::I32 => Value::Int(i64::from(i32::from_le_bytes(array(bytes)?))),
        Kind::U32 => Value::UInt(u64::from(u32::from_le_bytes(array(bytes)?))),
        Kind::I64 => Value::Int(i64::from_le_bytes(array(bytes)?)),
        Kind::U64 => Value::UInt(u64::from_le_bytes(array(bytes)?)),
        Kind::I8 => Value::Int(i64::from(i8::from_le_bytes(array(bytes)?))),
        Kind::U8 => Value::UInt(u64::from(u8::from_le_bytes(array(bytes)?))),
        Kind::I16 => Value::Int(i64::from(i16::from_le_bytes(array(bytes)?))),
        Kind::U16 => Value::UInt(u64::from(u16::from_le_bytes(array(bytes)?))),
        Kind::I24 => {
            let [a, b, c] = array(bytes)?;
            Value::Int(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8))
        }
        Kind::U24 => {
            let [a, b, c] = array(bytes)?;
            Value::UInt(u64::from(u32::from_le_bytes([a, b, c, 0])))
        }
        Kind::Text { collation, charset } => Value::Text(Text::of_column(bytes, collation, charset)),
        Kind::Binary { pad_to } => Value::Binary(Binary::new(bytes, pad_to)),
        Kind::Blob => Value::Blob(bytes),
        Kind::Float => {
            let value = f32::from_le_bytes(array(bytes)?);
            if !value.is_finite() {
                return Err(ValueFault::NotFinite);
            }
            Value::Float(value)
        }
        Kind::Double => {
            let value = f64::from_le_bytes(array(bytes)?);
            if !value.is_finite() {
                return Err(ValueFault::NotFinite);
            }
            Value::Double(value)
        }
        Kind::Decimal { precision, scale } => {
            Value::Decimal(Decimal::new(bytes, precision, scale).ok_or(ValueFault::Decimal)?)
        }
        Kind::Date => temporal(Date::from_wire(array(bytes)?).map(Value::Date))?,
        Kind::DateTime { fsp } => temporal(DateTime::from_wire(bytes, fsp).map(Value::DateTime))?,
        Kind::Timestamp { fsp } => temporal(Timestamp::from_wire(bytes, fsp).map(Value::Timestamp))?,
        Kind::Time { fsp } => temporal(Time::from_wire(bytes, fsp).map(Value::Time))?,
        Kind::Year => {
            let [year] = array(bytes)?;
            Value::Year(if year == 0 { 0 } else { 1900 + u16::from(year) })
        }
        Kind::Bit { bits } => Value::Bit(Bit::new(big_endian(bytes)?, bits).ok_or(ValueFault::Bit)?),
        Kind::Enum => {
            let index = u16::try_from(little_endian(bytes)?).map_err(|_| ValueFault::NoSuchMember)?;
            Value::Enum(Enum::new(index, labels(column)?).ok_or(ValueFault::NoSuchMember)?)
        }
        Kind::Set => {
            Value::Set(Set::new(little_endian(bytes)?, labels(column)?).ok_or(ValueFault::NoSuchMember)?)
        }
        Kind::Json => Value::Json(Json::new(bytes)),
        Kind::Geometry => Value::Geometry(Geometry::new(bytes).ok_or(ValueFault::Geometry)?),
        Kind::LeftOut => Value::Absent,
        Kind::Vector => Value::Vector(Vector::new(bytes).ok_or(ValueFault::Vector)?),
        Kind::OldTime => temporal(Time::from_old_wire(array(bytes)?).map(Value::Time))?,
        Kind::OldDateTime => temporal(DateTime::from_old_wire(array(bytes)?).map(Value::DateTime))?,
        Kind::OldTimestamp => temporal(Timestamp::from_old_wire(array(bytes)?).map(Value::Timestamp))?,
    })
}

fn temporal(value: Option<Value<'_>>) -> Result<Value<'_>, ValueFault> {
    value.ok_or(ValueFault::Temporal)
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueFault> {
    bytes.try_into().map_err(|_| ValueFault::Length)
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
