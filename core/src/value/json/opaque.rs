//! Values of other column types inside JSON: decimals and temporals have a text of their own, the rest
//! is base64 with the type's number.

use alloc::string::String;
use core::fmt;

use super::escape::{self, quote};
use super::{JsonError, JsonKind, temporal};
use crate::value::{Date, DateTime, Time};
use crate::wire::Reader;

/// A value of another column type (`enum_field_types`) inside JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JsonOpaque<'a> {
    field_type: u8,
    bytes: &'a [u8],
}

impl fmt::Debug for JsonOpaque<'_> {
    // Rule 1: the type and the length only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonOpaque(type {}, {} bytes)", self.field_type, self.bytes.len())
    }
}

impl<'a> JsonOpaque<'a> {
    pub(super) const fn new(field_type: u8, bytes: &'a [u8]) -> Self {
        Self { field_type, bytes }
    }

    /// The column type's number (`enum_field_types`, `include/field_types.h`).
    #[must_use]
    pub const fn field_type(self) -> u8 {
        self.field_type
    }

    /// The type's own bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub(super) const fn kind(self) -> JsonKind {
        match self.field_type {
            NEWDECIMAL => JsonKind::Decimal,
            DATE => JsonKind::Date,
            TIME => JsonKind::Time,
            DATETIME | TIMESTAMP => JsonKind::DateTime,
            _ => JsonKind::Opaque,
        }
    }
}

const TIMESTAMP: u8 = 7;
const DATE: u8 = 10;
const TIME: u8 = 11;
const DATETIME: u8 = 12;
pub(super) const NEWDECIMAL: u8 = 246;
/// Printed as a plain string: `wrapper_to_string`, `sql-common/json_dom.cc`.
const VAR_STRING: u8 = 253;

/// Appends the value as the server does inside JSON text: a decimal as a number, a temporal in quotes
/// with six digits, all others as `"base64:typeNN:…"`.
///
/// # Errors
/// [`JsonError::Decimal`] and [`JsonError::Temporal`] for bytes that no server writes.
pub(super) fn write(out: &mut String, opaque: JsonOpaque<'_>) -> Result<(), JsonError> {
    match opaque.field_type {
        NEWDECIMAL => decimal(out, opaque.bytes),
        DATE | TIME | DATETIME | TIMESTAMP => {
            let packed: [u8; 8] = opaque.bytes.try_into().map_err(|_| JsonError::Temporal)?;
            let packed = i64::from_le_bytes(packed);
            out.push('"');
            if opaque.field_type == TIME {
                temporal::time(out, time(packed).ok_or(JsonError::Temporal)?);
            } else {
                let at = date_time(packed).ok_or(JsonError::Temporal)?;
                if opaque.field_type == DATE {
                    temporal::date(out, at.date());
                } else {
                    temporal::date_time(out, at);
                }
            }
            out.push('"');
            Ok(())
        }
        VAR_STRING => match core::str::from_utf8(opaque.bytes) {
            Ok(text) => {
                quote(out, text);
                Ok(())
            }
            // The server sends such bytes as they are; a Rust string cannot hold them.
            Err(_) => base64(out, opaque),
        },
        _ => base64(out, opaque),
    }
}

/// `"base64:typeNN:…"`, broken after every 76 characters as `base64_encode` (`mysys/base64.h`) does it;
/// the line feed is escaped like any other in a JSON string.
fn base64(out: &mut String, opaque: JsonOpaque<'_>) -> Result<(), JsonError> {
    out.push_str("\"base64:type");
    out.push_str(itoa::Buffer::new().format(opaque.field_type));
    out.push(':');
    for (at, line) in opaque.bytes.chunks(57).enumerate() {
        if at > 0 {
            out.push_str("\\n");
        }
        escape::base64(out, line);
    }
    out.push('"');
    Ok(())
}

/// A packed DECIMAL behind its precision and scale (`Json_decimal::convert_from_binary`).
fn decimal(out: &mut String, bytes: &[u8]) -> Result<(), JsonError> {
    let &[precision, scale, ref packed @ ..] = bytes else { return Err(JsonError::Decimal) };
    // A literal may be wider than a column's 65 digits, and have more than 30 behind the point: nine
    // words of nine digits (`DECIMAL_BUFF_LENGTH`).
    if precision == 0 || precision > 81 || scale > precision {
        return Err(JsonError::Decimal);
    }
    let whole = usize::from(precision.saturating_sub(scale));
    let mut groups = Groups::new(packed)?;
    if groups.negative {
        out.push('-');
    }

    let start = out.len();
    groups.digits(out, whole % 9, false)?;
    for _ in 0..whole / 9 {
        groups.digits(out, 9, out.len() > start)?;
    }
    if out.len() == start {
        out.push('0');
    }
    if scale > 0 {
        out.push('.');
        for _ in 0..scale / 9 {
            groups.digits(out, 9, true)?;
        }
        groups.digits(out, usize::from(scale % 9), true)?;
    }
    if groups.packed.is_empty() { Ok(()) } else { Err(JsonError::Decimal) }
}

/// The digit groups of a packed decimal (`decimal2bin`, `strings/decimal.cc`): big-endian, the first bit
/// flipped, every bit flipped for a negative number.
struct Groups<'a> {
    packed: Reader<'a>,
    first: bool,
    negative: bool,
}

impl<'a> Groups<'a> {
    fn new(packed: &'a [u8]) -> Result<Self, JsonError> {
        let first = packed.first().ok_or(JsonError::Decimal)?;
        Ok(Self { packed: Reader::new(packed), first: true, negative: first & 0x80 == 0 })
    }

    /// Appends the next group of `count` digits; unless `all`, without the zeros in front.
    fn digits(&mut self, out: &mut String, count: usize, all: bool) -> Result<(), JsonError> {
        let size = match count {
            0 => return Ok(()),
            1 | 2 => 1,
            3 | 4 => 2,
            5 | 6 => 3,
            _ => 4,
        };
        let mut value = 0_u32;
        for &byte in self.packed.take(size).map_err(|_| JsonError::Decimal)? {
            let byte = if self.first { byte ^ 0x80 } else { byte };
            self.first = false;
            let byte = if self.negative { !byte } else { byte };
            value = value << 8 | u32::from(byte);
        }
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(value);
        let zeros = count.checked_sub(digits.len()).ok_or(JsonError::Decimal)?;
        if all {
            out.extend(core::iter::repeat_n('0', zeros));
            out.push_str(digits);
        } else if value != 0 {
            out.push_str(digits);
        }
        Ok(())
    }
}

/// `TIME_from_longlong_time_packed` (`mysys/my_time.cc`): hours, minutes and seconds in 10, 6 and 6 bits
/// above 24 bits of microseconds, the whole negated for a negative time.
fn time(packed: i64) -> Option<Time> {
    let size = packed.unsigned_abs();
    Time::new(packed < 0, size >> 36, size >> 30 & 0x3f, size >> 24 & 0x3f, micros(size)?, 6)
}

/// `TIME_from_longlong_datetime_packed`: year × 13 + month, day, hour, minute, second, the last four in 5,
/// 5, 6 and 6 bits, above 24 bits of microseconds.
fn date_time(packed: i64) -> Option<DateTime> {
    let packed = u64::try_from(packed).ok()?;
    let months = packed >> 46;
    let date = Date::new(months / 13, months % 13, packed >> 41 & 0x1f)?;
    let (hour, minute, second) = (packed >> 36 & 0x1f, packed >> 30 & 0x3f, packed >> 24 & 0x3f);
    DateTime::new(date, hour, minute, second, micros(packed)?, 6)
}

fn micros(packed: u64) -> Option<u32> {
    u32::try_from(packed & 0xff_ffff).ok()
}
