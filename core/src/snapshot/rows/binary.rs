//! A value of the binary protocol as the binlog packs it.
//!
//! Sources: `page_protocol_binary_resultset`, `Protocol_binary` (`sql/protocol_classic.cc`).

use alloc::vec::Vec;

use super::{
    cell::{self, put_date, put_date_time, put_float, put_integer, put_time, put_timestamp, put_year},
    encode::CellFault,
};
use crate::{
    value::{ColumnType, Date, DateTime, Time},
    wire::{Reader, Short},
};

impl From<Short> for CellFault {
    fn from(_: Short) -> Self {
        Self::Length
    }
}

/// Appends the next value, which is not NULL and whose type byte is `code`, as a row image holds it.
///
/// # Errors
/// It is none that the server sends for the column.
pub(super) fn pack(
    column: &ColumnType,
    code: u8,
    r: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), CellFault> {
    match code {
        // TINY; SHORT and YEAR; LONG and INT24; LONGLONG.
        1 => integer(column, &r.array::<1>()?, out),
        2 | 13 => integer(column, &r.array::<2>()?, out),
        3 | 9 => integer(column, &r.array::<4>()?, out),
        8 => integer(column, &r.array::<8>()?, out),
        // FLOAT, DOUBLE.
        4 => real(column, f32::from_le_bytes(r.array()?).into(), out),
        5 => real(column, f64::from_le_bytes(r.array()?), out),
        // TIMESTAMP, DATE, DATETIME; TIME.
        7 | 10 | 12 => moment(column, r, out),
        11 => time(column, r, out),
        // Everything else comes with its length in front, as text or as bytes.
        _ => cell::pack(column, r.lenenc_bytes()?, out),
    }
}

fn integer(column: &ColumnType, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CellFault> {
    let (unsigned, width) = match column {
        ColumnType::TinyInt { unsigned } => (*unsigned, 1),
        ColumnType::SmallInt { unsigned } => (*unsigned, 2),
        ColumnType::MediumInt { unsigned } => (*unsigned, 3),
        ColumnType::Int { unsigned } => (*unsigned, 4),
        ColumnType::BigInt { unsigned } => (*unsigned, 8),
        ColumnType::Enum { bytes, .. } | ColumnType::Set { bytes, .. } => (true, usize::from(*bytes)),
        ColumnType::Year => {
            let year = bytes.first_chunk::<2>().filter(|_| bytes.len() == 2).ok_or(CellFault::Number)?;
            return put_year(u16::from_le_bytes(*year), out);
        }
        ColumnType::Float { .. }
        | ColumnType::Double { .. }
        | ColumnType::Decimal { .. }
        | ColumnType::Bit { .. }
        | ColumnType::Date
        | ColumnType::Time { .. }
        | ColumnType::DateTime { .. }
        | ColumnType::Timestamp { .. }
        | ColumnType::OldTime
        | ColumnType::OldDateTime
        | ColumnType::OldTimestamp
        | ColumnType::Char { .. }
        | ColumnType::Varchar { .. }
        | ColumnType::Text { .. }
        | ColumnType::Binary { .. }
        | ColumnType::Varbinary { .. }
        | ColumnType::Blob { .. }
        | ColumnType::Json
        | ColumnType::Geometry { .. }
        | ColumnType::Vector { .. } => return Err(CellFault::Number),
    };
    let negative = !unsigned && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    put_integer(bytes, if negative { 0xff } else { 0 }, unsigned, width, out)
}

fn real(column: &ColumnType, value: f64, out: &mut Vec<u8>) -> Result<(), CellFault> {
    if !value.is_finite() {
        return Err(CellFault::Number);
    }
    if matches!(column, ColumnType::Float { .. }) {
        return put_float(value, out);
    }
    if !matches!(column, ColumnType::Double { .. }) {
        return Err(CellFault::Number);
    }
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

fn moment(column: &ColumnType, r: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), CellFault> {
    let length = r.u8()?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(CellFault::Temporal);
    }
    let (year, month, day) = if length >= 4 { (r.u16()?, r.u8()?, r.u8()?) } else { (0, 0, 0) };
    let (hour, minute, second) = if length >= 7 { (r.u8()?, r.u8()?, r.u8()?) } else { (0, 0, 0) };
    let micros = if length >= 11 { r.u32()? } else { 0 };
    let date = Date::new(year.into(), month.into(), day.into()).ok_or(CellFault::Temporal)?;
    let (hour, minute, second) = (hour.into(), minute.into(), second.into());
    let of = |fsp: u8| DateTime::new(date, hour, minute, second, micros, fsp);
    let put = if let ColumnType::DateTime { fsp } = column {
        of(*fsp).and_then(|value| put_date_time(value, out))
    } else if let ColumnType::Timestamp { fsp } = column {
        of(*fsp).and_then(|value| put_timestamp(value, *fsp, out))
    } else {
        matches!(column, ColumnType::Date if length <= 4).then(|| put_date(date, out))
    };
    put.ok_or(CellFault::Temporal)
}

fn time(column: &ColumnType, r: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), CellFault> {
    let length = r.u8()?;
    if !matches!(length, 0 | 8 | 12) {
        return Err(CellFault::Temporal);
    }
    let (negative, days) = if length >= 8 { (r.u8()? != 0, r.u32()?) } else { (false, 0) };
    let (hour, minute, second) = if length >= 8 { (r.u8()?, r.u8()?, r.u8()?) } else { (0, 0, 0) };
    let micros = if length >= 12 { r.u32()? } else { 0 };
    let hours = u64::from(days).saturating_mul(24).saturating_add(hour.into());
    let ColumnType::Time { fsp } = column else { return Err(CellFault::Temporal) };
    Time::new(negative, hours, minute.into(), second.into(), micros, *fsp)
        .and_then(|value| put_time(value, *fsp, out))
        .ok_or(CellFault::Temporal)
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, vec};

    use super::*;
    use crate::value::Labels;

    fn packed(column: &ColumnType, code: u8, value: &[u8]) -> Result<Vec<u8>, CellFault> {
        let (mut reader, mut out) = (Reader::new(value), Vec::new());
        pack(column, code, &mut reader, &mut out)?;
        assert!(reader.is_empty(), "{}", column.type_name());
        Ok(out)
    }

    /// Values as the protocol's pages show them, and the text that means the same: the other tests hold that to the bytes
    /// of binlogs, and a live one all types to both.
    #[test]
    fn a_value_becomes_what_its_text_becomes() {
        let labels = Arc::new(Labels::unknown(None));
        for (column, code, value, text) in [
            (ColumnType::TinyInt { unsigned: false }, 1, &[0x80][..], &b"-128"[..]),
            (ColumnType::TinyInt { unsigned: true }, 1, &[0xff], b"255"),
            (ColumnType::SmallInt { unsigned: false }, 2, &[0xff, 0xff], b"-1"),
            (ColumnType::MediumInt { unsigned: false }, 9, &[0xfe, 0xff, 0xff, 0xff], b"-2"),
            (ColumnType::MediumInt { unsigned: true }, 9, &[0xff, 0xff, 0xff, 0], b"16777215"),
            (ColumnType::Int { unsigned: true }, 3, &[1, 0, 0, 0xff], b"4278190081"),
            (
                ColumnType::BigInt { unsigned: false },
                8,
                &[0, 0, 0, 0, 0, 0, 0, 0x80],
                b"-9223372036854775808",
            ),
            (ColumnType::Year, 13, &[0x6b, 0x08], b"2155"),
            (ColumnType::Year, 13, &[0, 0], b"0000"),
            (ColumnType::Enum { labels: labels.clone(), bytes: 2 }, 8, &[0, 1, 0, 0, 0, 0, 0, 0], b"256"),
            (ColumnType::Set { labels, bytes: 8 }, 8, &[1, 0, 0, 0, 0, 0, 0, 0x80], b"9223372036854775809"),
            (ColumnType::Float { unsigned: false }, 4, &[0xcd, 0xcc, 0x8c, 0x3f], b"1.100000023841858"),
            (
                ColumnType::Float { unsigned: false },
                5,
                &[0, 0, 0, 0xa0, 0x99, 0x99, 0xf1, 0x3f],
                b"1.100000023841858",
            ),
            (
                ColumnType::Double { unsigned: false },
                5,
                &[0xf1, 0x68, 0xe3, 0x88, 0xb5, 0xf8, 0xe4, 0x3e],
                b"1e-5",
            ),
            (ColumnType::Date, 10, &[4, 0xe8, 0x07, 2, 29], b"2024-02-29"),
            (ColumnType::Date, 10, &[0], b"0000-00-00"),
            (ColumnType::DateTime { fsp: 0 }, 12, &[4, 0xe8, 0x03, 1, 1], b"1000-01-01 00:00:00"),
            (
                ColumnType::DateTime { fsp: 0 },
                12,
                &[7, 0xe8, 0x07, 2, 29, 23, 59, 58],
                b"2024-02-29 23:59:58",
            ),
            (
                ColumnType::DateTime { fsp: 6 },
                12,
                &[11, 0xe8, 0x07, 2, 29, 23, 59, 59, 0x3f, 0x42, 0x0f, 0],
                b"2024-02-29 23:59:59.999999",
            ),
            (ColumnType::Timestamp { fsp: 0 }, 7, &[0], b"0000-00-00 00:00:00"),
            (ColumnType::Timestamp { fsp: 0 }, 7, &[7, 0xb2, 0x07, 1, 1, 0, 0, 1], b"1970-01-01 00:00:01"),
            (ColumnType::Time { fsp: 0 }, 11, &[0], b"00:00:00"),
            (ColumnType::Time { fsp: 0 }, 11, &[8, 1, 34, 0, 0, 0, 22, 59, 59], b"-838:59:59"),
            (ColumnType::Time { fsp: 6 }, 11, &[12, 0, 0, 0, 0, 0, 1, 2, 3, 1, 0, 0, 0], b"01:02:03.000001"),
            (ColumnType::Decimal { precision: 4, scale: 1, unsigned: false }, 246, b"\x04-0.1", b"-0.1"),
            (ColumnType::Varchar { bytes_max: 9, collation: None }, 253, b"\x02ab", b"ab"),
            (ColumnType::Bit { bits: 12 }, 16, &[2, 0x08, 0x01], &[0x08, 0x01]),
        ] {
            let mut want = Vec::new();
            cell::pack(&column, text, &mut want).unwrap();
            assert_eq!(packed(&column, code, value), Ok(want), "{}", column.type_name());
        }
    }

    #[test]
    fn what_the_server_does_not_send_is_refused() {
        for (column, code, value) in [
            (ColumnType::TinyInt { unsigned: false }, 2, &[0x80, 0][..]),
            (ColumnType::MediumInt { unsigned: true }, 9, &[0, 0, 0, 1]),
            (ColumnType::MediumInt { unsigned: false }, 9, &[0, 0, 0x80, 0]),
            (ColumnType::Int { unsigned: false }, 5, &[0; 8]),
            (ColumnType::Int { unsigned: false }, 3, &[0; 3]),
            (ColumnType::Year, 13, &[1, 0]),
            (ColumnType::Double { unsigned: false }, 5, &[0, 0, 0, 0, 0, 0, 0xf0, 0x7f]),
            (ColumnType::Float { unsigned: false }, 5, &[0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xf1, 0x3f]),
            (ColumnType::Date, 10, &[4, 0xe8, 0x07, 13, 1]),
            (ColumnType::Date, 12, &[7, 0xe8, 0x07, 1, 1, 0, 0, 0]),
            (ColumnType::DateTime { fsp: 0 }, 12, &[5, 0xe8, 0x07, 1, 1, 0]),
            (ColumnType::DateTime { fsp: 0 }, 12, &[7, 0xe8, 0x07, 1, 1, 24, 0, 0]),
            (ColumnType::DateTime { fsp: 0 }, 11, &[0]),
            (ColumnType::Time { fsp: 0 }, 11, &[8, 0, 0, 0, 0, 1, 0, 0, 0]),
            (ColumnType::Time { fsp: 0 }, 12, &[0]),
            (ColumnType::Varchar { bytes_max: 9, collation: None }, 253, b"\x03ab"),
        ] {
            assert!(packed(&column, code, value).is_err(), "{} {code} {value:?}", column.type_name());
        }
        assert_eq!(vec![0; 3], packed(&ColumnType::Date, 10, &[0]).unwrap());
    }
}
