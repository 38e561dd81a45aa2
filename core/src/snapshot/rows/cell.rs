//! A cell of the text protocol as the binlog packs it.
//!
//! Sources: `Field_*::pack` (`sql/field.cc`), `my_*_packed_to_binary` (`mysys/my_time.cc`).

use alloc::vec::Vec;

use super::encode::CellFault;
use crate::value::json::binary_of;
use crate::value::{ColumnType, Date, DateTime, Time, Timestamp, pack_decimal};

/// Appends `cell`, which is not NULL, as a row image holds it: with its length in front where it has one.
///
/// # Errors
/// The text is none that the server prints for the type.
pub(super) fn pack(column: &ColumnType, cell: &[u8], out: &mut Vec<u8>) -> Result<(), CellFault> {
    match column {
        ColumnType::TinyInt { unsigned } => integer(cell, *unsigned, 1, out),
        ColumnType::SmallInt { unsigned } => integer(cell, *unsigned, 2, out),
        ColumnType::MediumInt { unsigned } => integer(cell, *unsigned, 3, out),
        ColumnType::Int { unsigned } => integer(cell, *unsigned, 4, out),
        ColumnType::BigInt { unsigned } => integer(cell, *unsigned, 8, out),
        ColumnType::Float { .. } => float(cell, out),
        ColumnType::Double { .. } => {
            out.extend_from_slice(&double(cell)?.to_le_bytes());
            Ok(())
        }
        ColumnType::Decimal { precision, scale, .. } => {
            pack_decimal(ascii(cell)?, *precision, *scale, out).ok_or(CellFault::Number)
        }
        ColumnType::Bit { bits } => {
            if cell.len() != usize::from(bits.div_ceil(8)) {
                return Err(CellFault::Length);
            }
            out.extend_from_slice(cell);
            Ok(())
        }
        ColumnType::Year => year(cell, out),
        ColumnType::Date => {
            put_date(date(cell).ok_or(CellFault::Temporal)?, out);
            Ok(())
        }
        ColumnType::Time { fsp } => time(cell, *fsp, out).ok_or(CellFault::Temporal),
        ColumnType::DateTime { fsp } => {
            date_time(cell, *fsp).and_then(|value| put_date_time(value, out)).ok_or(CellFault::Temporal)
        }
        ColumnType::Timestamp { fsp } => timestamp(cell, *fsp, out).ok_or(CellFault::Temporal),
        // Made only of tables that servers before 5.6.4 wrote; no description names them.
        ColumnType::OldTime | ColumnType::OldDateTime | ColumnType::OldTimestamp => Err(CellFault::Temporal),
        ColumnType::Char { bytes_max, .. }
        | ColumnType::Varchar { bytes_max, .. }
        | ColumnType::Varbinary { bytes_max } => counted(cell, if *bytes_max > 255 { 2 } else { 1 }, out),
        ColumnType::Binary { bytes } => {
            // `Field_string::pack` strips the padding, which is 0 for binary strings.
            let end = cell.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
            counted(cell.get(..end).unwrap_or_default(), if *bytes > 255 { 2 } else { 1 }, out)
        }
        ColumnType::Text { length_bytes, .. } | ColumnType::Blob { length_bytes } => {
            counted(cell, *length_bytes, out)
        }
        ColumnType::Enum { bytes, .. } | ColumnType::Set { bytes, .. } => {
            integer(cell, true, usize::from(*bytes), out)
        }
        ColumnType::Json => {
            if cell.is_empty() {
                return Err(CellFault::NoJson);
            }
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            binary_of(cell, out).map_err(CellFault::Json)?;
            let length = out.len().saturating_sub(start).saturating_sub(4);
            let length = u32::try_from(length).map_err(|_| CellFault::Length)?;
            if let Some(slot) = out.get_mut(start..start.saturating_add(4)) {
                slot.copy_from_slice(&length.to_le_bytes());
            }
            Ok(())
        }
        ColumnType::Geometry { .. } | ColumnType::Vector { .. } => counted(cell, 4, out),
    }
}

pub(super) fn put_date(date: Date, out: &mut Vec<u8>) {
    let packed = u32::from(date.year()) << 9 | u32::from(date.month()) << 5 | u32::from(date.day());
    out.extend_from_slice(packed.to_le_bytes().get(..3).unwrap_or_default());
}

fn ascii(cell: &[u8]) -> Result<&str, CellFault> {
    core::str::from_utf8(cell).map_err(|_| CellFault::Number)
}

fn counted(cell: &[u8], prefix: u8, out: &mut Vec<u8>) -> Result<(), CellFault> {
    let length = u32::try_from(cell.len()).map_err(|_| CellFault::Length)?;
    let bytes = length.to_le_bytes();
    let (used, unused) = bytes.split_at_checked(usize::from(prefix)).ok_or(CellFault::Length)?;
    if unused.iter().any(|byte| *byte != 0) {
        return Err(CellFault::Length);
    }
    out.extend_from_slice(used);
    out.extend_from_slice(cell);
    Ok(())
}

fn integer(cell: &[u8], unsigned: bool, width: usize, out: &mut Vec<u8>) -> Result<(), CellFault> {
    let text = ascii(cell)?;
    let (bytes, sign) = if unsigned {
        (text.parse::<u64>().map_err(|_| CellFault::Number)?.to_le_bytes(), 0)
    } else {
        let value: i64 = text.parse().map_err(|_| CellFault::Number)?;
        (value.to_le_bytes(), if value < 0 { 0xff } else { 0 })
    };
    put_integer(&bytes, sign, unsigned, width, out)
}

/// Little endian; what lies beyond the width must be the sign alone.
pub(super) fn put_integer(
    bytes: &[u8],
    sign: u8,
    unsigned: bool,
    width: usize,
    out: &mut Vec<u8>,
) -> Result<(), CellFault> {
    let (used, unused) = bytes.split_at_checked(width).ok_or(CellFault::Number)?;
    let sign_bit = used.last().map_or(0, |byte| byte & 0x80);
    if unused.iter().any(|byte| *byte != sign) || (!unsigned && sign_bit != sign & 0x80) {
        return Err(CellFault::Number);
    }
    out.extend_from_slice(used);
    Ok(())
}

fn double(cell: &[u8]) -> Result<f64, CellFault> {
    let value: f64 = ascii(cell)?.parse().map_err(|_| CellFault::Number)?;
    if value.is_finite() { Ok(value) } else { Err(CellFault::Number) }
}

/// The text is that of the float as a double, which holds it exactly.
fn float(cell: &[u8], out: &mut Vec<u8>) -> Result<(), CellFault> {
    put_float(double(cell)?, out)
}

pub(super) fn put_float(value: f64, out: &mut Vec<u8>) -> Result<(), CellFault> {
    let narrow = value as f32;
    if f64::from(narrow).to_bits() != value.to_bits() {
        return Err(CellFault::Number);
    }
    out.extend_from_slice(&narrow.to_le_bytes());
    Ok(())
}

fn year(cell: &[u8], out: &mut Vec<u8>) -> Result<(), CellFault> {
    put_year(ascii(cell)?.parse().map_err(|_| CellFault::Number)?, out)
}

pub(super) fn put_year(year: u16, out: &mut Vec<u8>) -> Result<(), CellFault> {
    let stored = match year {
        0 => 0,
        year => year.checked_sub(1900).and_then(|n| u8::try_from(n).ok()).ok_or(CellFault::Number)?,
    };
    out.push(stored);
    Ok(())
}

/// The number in a run of digits; `None` for anything else.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |n, digit| n * 10 + u64::from(digit & 15)))
}

fn date(cell: &[u8]) -> Option<Date> {
    let [year, month, day] = parts(cell, b'-')?;
    Date::new(number(year)?, number(month)?, number(day)?)
}

fn parts(text: &[u8], between: u8) -> Option<[&[u8]; 3]> {
    let mut parts = text.split(|byte| *byte == between);
    let three = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(three)
}

/// Cuts the fraction off: what is in front of it, and millionths.
fn fraction(text: &[u8], fsp: u8) -> Option<(&[u8], u32)> {
    let Some(point) = text.iter().position(|byte| *byte == b'.') else {
        return (fsp == 0).then_some((text, 0));
    };
    let (whole, digits) = (text.get(..point)?, text.get(point.checked_add(1)?..)?);
    if digits.len() != usize::from(fsp) || fsp > 6 {
        return None;
    }
    let scale = 10_u32.checked_pow(u32::from(6_u8.checked_sub(fsp)?))?;
    Some((whole, u32::try_from(number(digits)?).ok()?.checked_mul(scale)?))
}

/// The stored fraction: its width in bytes and what it counts.
fn stored_fraction(micros: u32, fsp: u8) -> (u32, u32) {
    match fsp {
        0 => (0, 0),
        1 | 2 => (1, micros / 10_000),
        3 | 4 => (2, micros / 100),
        _ => (3, micros),
    }
}

fn put_big_endian(value: u64, width: u32, out: &mut Vec<u8>) -> Option<()> {
    let unused = 8_usize.checked_sub(width as usize)?;
    out.extend_from_slice(value.to_be_bytes().get(unused..)?);
    Some(())
}

fn time(cell: &[u8], fsp: u8, out: &mut Vec<u8>) -> Option<()> {
    let (negative, text) = cell.strip_prefix(b"-").map_or((false, cell), |rest| (true, rest));
    let (whole, micros) = fraction(text, fsp)?;
    let [hours, minute, second] = parts(whole, b':')?;
    let time = Time::new(negative, number(hours)?, number(minute)?, number(second)?, micros, fsp)?;
    put_time(time, fsp, out)
}

pub(super) fn put_time(time: Time, fsp: u8, out: &mut Vec<u8>) -> Option<()> {
    let (width, fraction) = stored_fraction(time.micros(), fsp);
    let bits = width * 8;
    let hms = u64::from(time.hours()) << 12 | u64::from(time.minute()) << 6 | u64::from(time.second());
    let size = hms << bits | u64::from(fraction);
    let bias = 0x80_0000_u64 << bits;
    let packed = if time.is_negative() { bias.checked_sub(size)? } else { bias.checked_add(size)? };
    put_big_endian(packed, width + 3, out)
}

fn date_time(cell: &[u8], fsp: u8) -> Option<DateTime> {
    let (whole, micros) = fraction(cell, fsp)?;
    let space = whole.iter().position(|byte| *byte == b' ')?;
    let [hour, minute, second] = parts(whole.get(space.checked_add(1)?..)?, b':')?;
    DateTime::new(date(whole.get(..space)?)?, number(hour)?, number(minute)?, number(second)?, micros, fsp)
}

pub(super) fn put_date_time(value: DateTime, out: &mut Vec<u8>) -> Option<()> {
    let date = value.date();
    let months = u64::from(date.year()) * 13 + u64::from(date.month());
    let time = u64::from(value.hour()) << 12 | u64::from(value.minute()) << 6 | u64::from(value.second());
    let packed = (months << 22 | u64::from(date.day()) << 17 | time) + 0x80_0000_0000;
    put_big_endian(packed, 5, out)?;
    let (width, fraction) = stored_fraction(value.micros(), value.fsp());
    put_big_endian(u64::from(fraction), width, out)
}

/// The session's time zone is UTC.
fn timestamp(cell: &[u8], fsp: u8, out: &mut Vec<u8>) -> Option<()> {
    put_timestamp(date_time(cell, fsp)?, fsp, out)
}

pub(super) fn put_timestamp(value: DateTime, fsp: u8, out: &mut Vec<u8>) -> Option<()> {
    let seconds = if value.is_zero() {
        0
    } else {
        let date = value.date();
        let days = days_from_civil(u64::from(date.year()), u64::from(date.month()), u64::from(date.day()))?;
        let time =
            u64::from(value.hour()) * 3_600 + u64::from(value.minute()) * 60 + u64::from(value.second());
        u32::try_from(days.checked_mul(86_400)?.checked_add(time)?).ok().filter(|seconds| *seconds != 0)?
    };
    // The range is looked at there.
    let value = Timestamp::new(seconds, value.micros(), fsp)?;
    put_big_endian(u64::from(seconds), 4, out)?;
    let (width, fraction) = stored_fraction(value.micros(), fsp);
    put_big_endian(u64::from(fraction), width, out)
}

/// Days since 1970-01-01; `None` for days before it or that no calendar has (H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `days_from_civil`).
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    if month == 0 || day == 0 {
        return None;
    }
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{GeometryKind, Labels};
    use alloc::sync::Arc;

    fn packed(column: &ColumnType, cell: &[u8]) -> Result<Vec<u8>, CellFault> {
        let mut out = Vec::new();
        pack(column, cell, &mut out).map(|()| out)
    }

    /// The wire bytes are those of `BL-01`, `BL-03`, `BL-05` and `BL-07`; the ends of ranges by the types.
    #[test]
    fn text_becomes_the_bytes_of_the_binlog() {
        let labels = Arc::new(Labels::unknown(None));
        for (column, cell, want) in [
            (ColumnType::TinyInt { unsigned: false }, &b"-128"[..], &[0x80][..]),
            (ColumnType::TinyInt { unsigned: true }, b"255", &[0xff]),
            (ColumnType::MediumInt { unsigned: false }, b"-1", &[0xff; 3]),
            (ColumnType::MediumInt { unsigned: true }, b"00000065535", &[0xff, 0xff, 0]),
            (ColumnType::BigInt { unsigned: true }, b"18446744073709551615", &[0xff; 8]),
            (ColumnType::BigInt { unsigned: false }, b"-9223372036854775808", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
            (ColumnType::Float { unsigned: false }, b"1.100000023841858", &[0xcd, 0xcc, 0x8c, 0x3f]),
            (ColumnType::Float { unsigned: false }, b"-0", &[0, 0, 0, 0x80]),
            (
                ColumnType::Double { unsigned: false },
                b"1e-5",
                &[0xf1, 0x68, 0xe3, 0x88, 0xb5, 0xf8, 0xe4, 0x3e],
            ),
            (ColumnType::Decimal { precision: 4, scale: 1, unsigned: false }, b"-0.1", &[0x7f, 0xff, 0xfe]),
            (ColumnType::Bit { bits: 12 }, &[0x08, 0x01], &[0x08, 0x01]),
            (ColumnType::Year, b"0000", &[0]),
            (ColumnType::Year, b"2155", &[255]),
            (ColumnType::Date, b"0000-00-00", &[0, 0, 0]),
            (ColumnType::Date, b"2024-02-29", &[0x5d, 0xd0, 0x0f]),
            (ColumnType::Time { fsp: 0 }, b"-16:08:04", &[0x7e, 0xfd, 0xfc]),
            (ColumnType::Time { fsp: 2 }, b"-00:00:00.01", &[0x7f, 0xff, 0xff, 0xff]),
            (ColumnType::Time { fsp: 1 }, b"-00:00:00.1", &[0x7f, 0xff, 0xff, 0xf6]),
            (ColumnType::Time { fsp: 6 }, b"-838:59:58.999999", &[0x4b, 0x91, 0x05, 0xf0, 0xbd, 0xc1]),
            (ColumnType::DateTime { fsp: 0 }, b"1000-01-01 00:00:00", &[0x8c, 0xb2, 0x42, 0, 0]),
            (
                ColumnType::DateTime { fsp: 6 },
                b"2024-02-29 23:59:59.999999",
                &[0x99, 0xb2, 0xbb, 0x7e, 0xfb, 0x0f, 0x42, 0x3f],
            ),
            (ColumnType::Timestamp { fsp: 6 }, b"0000-00-00 00:00:00.000000", &[0; 7]),
            (ColumnType::Timestamp { fsp: 6 }, b"1970-01-01 00:00:01.000001", &[0, 0, 0, 1, 0, 0, 1]),
            (ColumnType::Timestamp { fsp: 0 }, b"2038-01-19 03:14:07", &[0x7f, 0xff, 0xff, 0xff]),
            (ColumnType::Varchar { bytes_max: 255, collation: None }, b"ab", &[2, b'a', b'b']),
            (ColumnType::Varchar { bytes_max: 256, collation: None }, b"ab", &[2, 0, b'a', b'b']),
            (ColumnType::Binary { bytes: 4 }, &[0, 1, 0, 0], &[2, 0, 1]),
            (ColumnType::Binary { bytes: 4 }, &[0; 4], &[0]),
            (ColumnType::Blob { length_bytes: 3 }, b"x", &[1, 0, 0, b'x']),
            (ColumnType::Enum { labels: labels.clone(), bytes: 2 }, b"256", &[0, 1]),
            (
                ColumnType::Set { labels: labels.clone(), bytes: 8 },
                b"9223372036854775809",
                &[1, 0, 0, 0, 0, 0, 0, 0x80],
            ),
            (ColumnType::Json, b"[]", &[5, 0, 0, 0, 2, 0, 0, 4, 0]),
            (ColumnType::Geometry { kind: GeometryKind::Point }, b"", &[0; 4]),
        ] {
            assert_eq!(packed(&column, cell).as_deref(), Ok(want), "{}", column.type_name());
        }
    }

    #[test]
    fn what_the_server_does_not_print_is_refused() {
        let labels = Arc::new(Labels::unknown(None));
        for (column, cells) in [
            (
                ColumnType::TinyInt { unsigned: false },
                &[&b"128"[..], b"-129", b"", b"x", b"1.0", b"\xff"][..],
            ),
            (ColumnType::TinyInt { unsigned: true }, &[b"256", b"-1"]),
            (ColumnType::MediumInt { unsigned: false }, &[b"8388608", b"-8388609"]),
            (ColumnType::BigInt { unsigned: false }, &[b"9223372036854775808"]),
            (ColumnType::Float { unsigned: false }, &[b"1.1", b"1e39", b"inf", b"nan"]),
            (ColumnType::Double { unsigned: false }, &[b"1e309", b"NaN", b""]),
            (ColumnType::Decimal { precision: 4, scale: 1, unsigned: false }, &[b"1000.0", b"1.05", b"x"]),
            (ColumnType::Bit { bits: 12 }, &[b"1", b"123"]),
            (ColumnType::Year, &[b"1899", b"2156", b"20-4"]),
            (
                ColumnType::Date,
                &[b"2024-13-01", b"2024-02", b"2024-02-01-01", b"-1-02-03", b"2024-02-01 00:00:00"],
            ),
            (ColumnType::Time { fsp: 1 }, &[b"10:11:12", b"10:11:12.55", b"839:00:00.0", b"10:60:00.0"]),
            (
                ColumnType::DateTime { fsp: 0 },
                &[b"2024-02-29", b"2024-02-29 24:00:00", b"2024-02-29 10:00:00.5"],
            ),
            (
                ColumnType::Timestamp { fsp: 0 },
                &[b"1969-12-31 23:59:59", b"1970-01-01 00:00:00", b"2038-01-19 03:14:08"],
            ),
            (ColumnType::Enum { labels, bytes: 1 }, &[b"256", b"-1", b"a"]),
            (ColumnType::Json, &[b"", b"[", b"nul"]),
        ] {
            for cell in cells {
                assert!(packed(&column, cell).is_err(), "{} {cell:?}", column.type_name());
            }
        }
        let short = ColumnType::Varchar { bytes_max: 255, collation: None };
        assert_eq!(packed(&short, &[b'x'; 256]), Err(CellFault::Length));
    }

    /// Every 37th day of the range, there and back.
    #[test]
    fn days_are_counted_as_they_are_shown() {
        for days in (0..24_855).step_by(37) {
            let (year, month, day) = crate::value::civil_from_days(days);
            assert_eq!(days_from_civil(year, month.into(), day.into()), Some(days));
        }
    }
}
