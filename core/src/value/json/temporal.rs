//! Dates and times as the server prints them, without the formatting machinery: a row may hold many.

use alloc::string::String;

use super::digits;
use crate::time::SourceTime;
use crate::value::{Date, DateTime, Time, civil_from_days};

/// Appends `YYYY-MM-DD`.
#[inline]
pub(crate) fn date(out: &mut String, date: Date) {
    let ([a, b, c, d], [e, f], [g, h]) =
        (four(date.year().into()), two(date.month().into()), two(date.day().into()));
    push(out, &[a, b, c, d, b'-', e, f, b'-', g, h]);
}

/// Appends `YYYY-MM-DD hh:mm:ss` and as many digits of the second as the column has.
#[inline]
pub(crate) fn date_time(out: &mut String, at: DateTime) {
    let (text, len) = date_time_text(at);
    push(out, text.get(..len).unwrap_or_default());
}

/// [`date_time`] in the first bytes of an array, and how many they are.
#[inline]
pub(crate) fn date_time_text(at: DateTime) -> ([u8; 32], usize) {
    let date = at.date();
    let part = |n: u8| u64::from(n);
    let day = digits::eight((u64::from(date.year()) * 100 + part(date.month())) * 100 + part(date.day()));
    let time = digits::eight((part(at.hour()) * 100 + part(at.minute())) * 100 + part(at.second()));
    let micros = digits::eight(at.micros().into());
    // `YYYYMMDD`, `00hhmmss` and `00ffffff`, the first character in the lowest byte.
    let words = [
        day & 0xffff_ffff | 0x2d << 32 | (day >> 32 & 0xffff) << 40 | 0x2d << 56,
        day >> 48 | 0x20 << 16 | (time >> 16 & 0xffff) << 24 | 0x3a << 40 | (time >> 32 & 0xffff) << 48,
        0x3a | time >> 48 << 8 | 0x2e << 24 | (micros >> 16 & 0xffff_ffff) << 32,
        micros >> 48,
    ];
    let mut text = [0; 32];
    for (to, word) in text.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    (text, 19 + fraction_width(at.fsp()))
}

/// Appends `[-]hh:mm:ss` and as many digits of the second as the column has.
pub(crate) fn time(out: &mut String, time: Time) {
    let [a, b, c, d] = four(time.hours().into());
    let ([e, f], [g, h]) = (two(time.minute().into()), two(time.second().into()));
    let [i, j, k, l, m, n] = six(time.micros());
    if time.is_negative() {
        out.push('-');
    }
    // A fourth digit does not occur, a third one seldom.
    let text = [a, b, c, d, b':', e, f, b':', g, h, b'.', i, j, k, l, m, n];
    let first = if time.hours() < 100 { 2 } else { 1 };
    push(out, text.get(first..10 + fraction_width(time.fsp())).unwrap_or_default());
}

/// Appends `YYYY-MM-DDThh:mm:ss.ffffffZ` (RFC 3339).
pub(crate) fn rfc3339(out: &mut String, at: SourceTime) {
    let (seconds, micros) = (at.0 / 1_000_000, at.0 % 1_000_000);
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let part = |n: u64| u32::try_from(n).unwrap_or(0);
    if year > 9_999 {
        // No server's clock; a number of 64 bits of microseconds goes that far.
        out.push_str(itoa::Buffer::new().format(year));
    } else {
        push(out, &four(part(year)));
    }
    let ([e, f], [g, h]) = (two(month.into()), two(day.into()));
    let [i, j] = two(part(second_of_day / 3_600));
    let ([k, l], [m, n]) = (two(part(second_of_day / 60 % 60)), two(part(second_of_day % 60)));
    let [o, p, q, r, s, t] = six(part(micros));
    push(out, &[b'-', e, f, b'-', g, h, b'T', i, j, b':', k, l, b':', m, n, b'.', o, p, q, r, s, t, b'Z']);
}

/// The point and as many digits as the column has.
#[inline]
fn fraction_width(fsp: u8) -> usize {
    if fsp == 0 { 0 } else { usize::from(fsp.min(6)).saturating_add(1) }
}

/// Digits only, and what stands between them.
#[inline]
fn push(out: &mut String, text: &[u8]) {
    out.push_str(core::str::from_utf8(text).unwrap_or_default());
}

/// The last two digits.
#[inline]
fn two(n: u32) -> [u8; 2] {
    small((n % 100) as u8)
}

/// A number of two digits; there are entries for all that a byte holds, so that none has to be tested.
#[inline]
fn small(n: u8) -> [u8; 2] {
    DIGITS.get(usize::from(n)).copied().unwrap_or(*b"00")
}

/// The last two digits of every byte.
static DIGITS: [[u8; 2]; 256] = {
    let (mut all, mut n) = ([[b'0'; 2]; 256], 0_u8);
    let mut rest = all.as_mut_slice();
    while let Some((digits, behind)) = rest.split_first_mut() {
        *digits = [b'0' + n / 10 % 10, b'0' + n % 10];
        n = n.wrapping_add(1);
        rest = behind;
    }
    all
};

#[inline]
fn four(n: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (two(n / 100), two(n));
    [a, b, c, d]
}

#[inline]
fn six(n: u32) -> [u8; 6] {
    let ([a, b], [c, d], [e, f]) = (two(n / 10_000), two(n / 100), two(n));
    [a, b, c, d, e, f]
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
