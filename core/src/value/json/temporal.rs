//! Dates and times as the server prints them, without the formatting machinery: a row may hold many.

use alloc::string::String;

use crate::time::SourceTime;
use crate::value::{Date, DateTime, Time, civil_from_days};

/// Appends `YYYY-MM-DD`.
pub(crate) fn date(out: &mut String, date: Date) {
    day(out, date.year().into(), date.month(), date.day());
}

/// Appends `YYYY-MM-DD hh:mm:ss` and as many digits of the second as the column has.
pub(crate) fn date_time(out: &mut String, at: DateTime) {
    date(out, at.date());
    out.push(' ');
    padded(out, at.hour().into(), 2);
    clock(out, at.minute(), at.second());
    fraction(out, at.micros(), at.fsp());
}

/// Appends `[-]hh:mm:ss` and as many digits of the second as the column has.
pub(crate) fn time(out: &mut String, time: Time) {
    if time.is_negative() {
        out.push('-');
    }
    padded(out, time.hours().into(), 2);
    clock(out, time.minute(), time.second());
    fraction(out, time.micros(), time.fsp());
}

/// Appends `YYYY-MM-DDThh:mm:ss.ffffffZ` (RFC 3339).
pub(crate) fn rfc3339(out: &mut String, at: SourceTime) {
    let (seconds, micros) = (at.0 / 1_000_000, at.0 % 1_000_000);
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day_of_month) = civil_from_days(days);
    day(out, year, month, day_of_month);
    out.push('T');
    padded(out, second_of_day / 3_600, 2);
    let part = |n: u64| u8::try_from(n).unwrap_or(0);
    clock(out, part(second_of_day / 60 % 60), part(second_of_day % 60));
    out.push('.');
    padded(out, micros, 6);
    out.push('Z');
}

fn day(out: &mut String, year: u64, month: u8, day: u8) {
    padded(out, year, 4);
    out.push('-');
    padded(out, month.into(), 2);
    out.push('-');
    padded(out, day.into(), 2);
}

fn clock(out: &mut String, minute: u8, second: u8) {
    out.push(':');
    padded(out, minute.into(), 2);
    out.push(':');
    padded(out, second.into(), 2);
}

fn fraction(out: &mut String, micros: u32, fsp: u8) {
    let shown = match fsp {
        0 => return,
        1 => micros / 100_000,
        2 => micros / 10_000,
        3 => micros / 1_000,
        4 => micros / 100,
        5 => micros / 10,
        _ => micros,
    };
    out.push('.');
    padded(out, shown.into(), usize::from(fsp.min(6)));
}

/// A number with zeros in front up to `width`.
fn padded(out: &mut String, value: u64, width: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value);
    for _ in digits.len()..width {
        out.push('0');
    }
    out.push_str(digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn moments_of_the_source_are_rfc_3339() {
        for (micros, want) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_709_164_800_000_001, "2024-02-29T00:00:00.000001Z"),
            (1_795_953_600_123_456, "2026-11-29T12:00:00.123456Z"),
            (4_107_542_399_999_999, "2100-02-28T23:59:59.999999Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
        ] {
            let mut out = String::new();
            rfc3339(&mut out, SourceTime(micros));
            assert_eq!(out, want);
        }
        rfc3339(&mut String::new(), SourceTime(u64::MAX));
    }

    /// The words of `Display`, which has its own tests against the server.
    #[test]
    fn temporals_are_what_display_says() {
        for fsp in 0..=6 {
            for micros in [0, 1, 9_999, 123_456, 999_999] {
                for (year, month, day, hour) in [(0, 0, 0, 0), (2023, 0, 15, 9), (9999, 12, 31, 23)] {
                    let at = DateTime::new(Date::new(year, month, day).unwrap(), hour, 5, 59, micros, fsp)
                        .unwrap();
                    let mut out = String::new();
                    date_time(&mut out, at);
                    assert_eq!(out, at.to_string());
                }
                for (negative, hours) in [(true, 0), (false, 9), (true, 838), (false, 100)] {
                    let value = Time::new(negative, hours, 0, 7, micros, fsp).unwrap();
                    let mut out = String::new();
                    time(&mut out, value);
                    assert_eq!(out, value.to_string());
                }
            }
        }
    }
}
