//! Dates and times as the server stores and prints them.
//!
//! Zero dates, dates with a zero month or day, and days past the end of their month
//! (`ALLOW_INVALID_DATES`) are values the server can store; they are kept as they are. What it can
//! never store (month 15, hour 24) is refused.
//!
//! Sources: `mysys/my_time.cc` (`my_*_packed_from_binary`, `TIME_from_longlong_*_packed`).

use core::fmt;

use super::json::temporal::date_time_text;

/// A calendar day, possibly zero (`0000-00-00`) or partial (`2023-00-15`). `Display`: `YYYY-MM-DD`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// A DATETIME(fsp). `Display`: `YYYY-MM-DD hh:mm:ss` and `fsp` digits of the second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime {
    date: Date,
    hour: u8,
    minute: u8,
    second: u8,
    fsp: u8,
    micros: u32,
}

/// A TIMESTAMP(fsp): an instant in UTC, or the zero value, which is no instant. `Display` is what a
/// session with `time_zone='+00:00'` sees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: u32,
    micros: u32,
    fsp: u8,
}

/// A TIME(fsp), -838:59:59 to 838:59:59. `Display`: `[-]hh:mm:ss` and `fsp` digits of the second.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    negative: bool,
    hours: u16,
    minute: u8,
    second: u8,
    fsp: u8,
    micros: u32,
}

const YEAR_MAX: u64 = 9_999;
const HOURS_MAX: u64 = 838;
const SECOND_MICROS: u32 = 1_000_000;
/// 2038-01-19 03:14:07, the last second of a TIMESTAMP.
const TIMESTAMP_MAX: u32 = 0x7fff_ffff;

impl Date {
    /// A day; `None` for what the server cannot store: a year above 9999, a month above 12, a day
    /// above 31.
    #[must_use]
    #[inline]
    pub fn new(year: u64, month: u64, day: u64) -> Option<Self> {
        if year > YEAR_MAX || month > 12 || day > 31 {
            return None;
        }
        let (year, month, day) =
            (u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        Some(Self { year, month, day })
    }

    /// The year, 0 to 9999.
    #[must_use]
    #[inline]
    pub const fn year(self) -> u16 {
        self.year
    }

    /// The month, 0 to 12.
    #[must_use]
    #[inline]
    pub const fn month(self) -> u8 {
        self.month
    }

    /// The day of the month, 0 to 31.
    #[must_use]
    #[inline]
    pub const fn day(self) -> u8 {
        self.day
    }

    /// `0000-00-00`.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.year == 0 && self.month == 0 && self.day == 0
    }

    /// Three bytes: day in 5 bits, month in 4, year in 15 (`Field_newdate::get_date_internal`).
    #[inline]
    pub(crate) fn from_wire(bytes: [u8; 3]) -> Option<Self> {
        let [a, b, c] = bytes;
        let packed = u32::from_le_bytes([a, b, c, 0]);
        Self::new(u64::from(packed >> 9), u64::from(packed >> 5 & 15), u64::from(packed & 31))
    }
}

impl DateTime {
    /// A date and time; `None` for what the server cannot store. `micros` counts millionths whatever
    /// the `fsp`.
    #[must_use]
    #[inline]
    pub fn new(date: Date, hour: u64, minute: u64, second: u64, micros: u32, fsp: u8) -> Option<Self> {
        if hour > 23 || minute > 59 || second > 59 || micros >= SECOND_MICROS || fsp > 6 {
            return None;
        }
        let (hour, minute, second) =
            (u8::try_from(hour).ok()?, u8::try_from(minute).ok()?, u8::try_from(second).ok()?);
        Some(Self { date, hour, minute, second, fsp, micros })
    }

    /// The day.
    #[must_use]
    #[inline]
    pub const fn date(self) -> Date {
        self.date
    }

    /// 0 to 23.
    #[must_use]
    #[inline]
    pub const fn hour(self) -> u8 {
        self.hour
    }

    /// 0 to 59.
    #[must_use]
    #[inline]
    pub const fn minute(self) -> u8 {
        self.minute
    }

    /// 0 to 59.
    #[must_use]
    #[inline]
    pub const fn second(self) -> u8 {
        self.second
    }

    /// Millionths of the second, 0 to 999999.
    #[must_use]
    #[inline]
    pub const fn micros(self) -> u32 {
        self.micros
    }

    /// Digits of the second that the column holds, 0 to 6.
    #[must_use]
    #[inline]
    pub const fn fsp(self) -> u8 {
        self.fsp
    }

    /// `0000-00-00 00:00:00`.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.date.is_zero() && self.hour == 0 && self.minute == 0 && self.second == 0 && self.micros == 0
    }

    /// Five bytes big-endian, biased by 2^39 (17 bits year×13+month, 5 day, 5 hour, 6 minute,
    /// 6 second), then the fraction.
    #[inline]
    pub(crate) fn from_wire(bytes: &[u8], fsp: u8) -> Option<Self> {
        let (head, fraction) = bytes.split_first_chunk::<5>()?;
        let [a, b, c, d, e] = *head;
        let biased = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        let packed = biased.checked_sub(0x80_0000_0000)?;
        let months = packed >> 22;
        let date = Date::new(months / 13, months % 13, packed >> 17 & 31)?;
        Self::new(
            date,
            packed >> 12 & 31,
            packed >> 6 & 63,
            packed & 63,
            fraction_micros(fraction, fsp)?,
            fsp,
        )
    }

    /// [`DateTime::from_wire`] of a fraction of three bytes, which holds millionths.
    #[inline]
    pub(crate) fn from_wire_micros(bytes: [u8; 8], fsp: u8) -> Option<Self> {
        let all = u64::from_be_bytes(bytes).checked_sub(0x80_0000_0000 << 24)?;
        let (packed, micros) = (all >> 24, u32::try_from(all & 0xff_ffff).ok()?);
        let months = packed >> 22;
        let date = Date::new(months / 13, months % 13, packed >> 17 & 31)?;
        Self::new(date, packed >> 12 & 31, packed >> 6 & 63, packed & 63, micros, fsp)
    }

    /// Eight bytes little-endian: the decimal number YYYYMMDDhhmmss (`Field_datetime`, before 5.6.4).
    pub(crate) fn from_old_wire(bytes: [u8; 8]) -> Option<Self> {
        let packed = u64::from_le_bytes(bytes);
        let (date, time) = (packed / 1_000_000, packed % 1_000_000);
        let date = Date::new(date / 10_000, date / 100 % 100, date % 100)?;
        Self::new(date, time / 10_000, time / 100 % 100, time % 100, 0, 0)
    }
}

impl Timestamp {
    /// An instant from the epoch's second 1 to 2038-01-19 03:14:07, or zero (0 and 0), which is the
    /// zero value; `None` for anything else.
    #[must_use]
    #[inline]
    pub const fn new(seconds: u32, micros: u32, fsp: u8) -> Option<Self> {
        if seconds > TIMESTAMP_MAX || micros >= SECOND_MICROS || (seconds == 0 && micros != 0) || fsp > 6 {
            return None;
        }
        Some(Self { seconds, micros, fsp })
    }

    /// `0000-00-00 00:00:00`: not an instant, and not the epoch.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.seconds == 0
    }

    /// Seconds since the epoch (UTC); `None` for the zero value.
    #[must_use]
    #[inline]
    pub const fn unix_seconds(self) -> Option<u32> {
        if self.is_zero() { None } else { Some(self.seconds) }
    }

    /// Millionths of the second, 0 to 999999.
    #[must_use]
    #[inline]
    pub const fn micros(self) -> u32 {
        self.micros
    }

    /// Digits of the second that the column holds, 0 to 6.
    #[must_use]
    #[inline]
    pub const fn fsp(self) -> u8 {
        self.fsp
    }

    /// The date and time in UTC; the zero date for the zero value.
    #[must_use]
    pub fn to_utc(self) -> DateTime {
        let date = if self.is_zero() {
            Date { year: 0, month: 0, day: 0 }
        } else {
            let (year, month, day) = civil_from_days(u64::from(self.seconds / 86_400));
            Date { year: u16::try_from(year).unwrap_or(0), month, day }
        };
        let time = self.seconds % 86_400;
        let part = |n: u32| u8::try_from(n).unwrap_or(0);
        DateTime {
            date,
            hour: part(time / 3_600),
            minute: part(time / 60 % 60),
            second: part(time % 60),
            fsp: self.fsp,
            micros: self.micros,
        }
    }

    /// Four bytes big-endian, then the fraction.
    #[inline]
    pub(crate) fn from_wire(bytes: &[u8], fsp: u8) -> Option<Self> {
        let (head, fraction) = bytes.split_first_chunk::<4>()?;
        Self::new(u32::from_be_bytes(*head), fraction_micros(fraction, fsp)?, fsp)
    }

    /// Four bytes little-endian (`Field_timestamp`, before 5.6.4).
    pub(crate) const fn from_old_wire(bytes: [u8; 4]) -> Option<Self> {
        Self::new(u32::from_le_bytes(bytes), 0, 0)
    }
}

impl Time {
    /// A time; `None` for what the server cannot store. A zero has no sign.
    #[must_use]
    #[inline]
    pub fn new(negative: bool, hours: u64, minute: u64, second: u64, micros: u32, fsp: u8) -> Option<Self> {
        if hours > HOURS_MAX || minute > 59 || second > 59 || micros >= SECOND_MICROS || fsp > 6 {
            return None;
        }
        let negative = negative && (hours, minute, second, micros) != (0, 0, 0, 0);
        let (hours, minute, second) =
            (u16::try_from(hours).ok()?, u8::try_from(minute).ok()?, u8::try_from(second).ok()?);
        Some(Self { negative, hours, minute, second, fsp, micros })
    }

    /// Below zero; the other parts are then to be subtracted, all of them.
    #[must_use]
    #[inline]
    pub const fn is_negative(self) -> bool {
        self.negative
    }

    /// 0 to 838.
    #[must_use]
    #[inline]
    pub const fn hours(self) -> u16 {
        self.hours
    }

    /// 0 to 59.
    #[must_use]
    #[inline]
    pub const fn minute(self) -> u8 {
        self.minute
    }

    /// 0 to 59.
    #[must_use]
    #[inline]
    pub const fn second(self) -> u8 {
        self.second
    }

    /// Millionths of the second, 0 to 999999.
    #[must_use]
    #[inline]
    pub const fn micros(self) -> u32 {
        self.micros
    }

    /// Digits of the second that the column holds, 0 to 6.
    #[must_use]
    #[inline]
    pub const fn fsp(self) -> u8 {
        self.fsp
    }

    /// Three bytes big-endian biased by 2^23 (1 bit unused, 10 hour, 6 minute, 6 second), then the
    /// fraction. The whole is one number in two's complement: the fraction of a negative time is
    /// borrowed from the seconds, which is where decoders lose the sign.
    #[inline]
    pub(crate) fn from_wire(bytes: &[u8], fsp: u8) -> Option<Self> {
        let (&[a, b, c], fraction) = bytes.split_first_chunk::<3>()?;
        let (per_unit, width) = fraction_unit(fsp)?;
        let fraction = big_endian(fraction, width)?;
        let whole = u64::from_be_bytes([0, 0, 0, 0, 0, a, b, c]);
        let bits = u32::from(width) * 8;
        let packed = (whole << bits | u64::from(fraction)).cast_signed();
        let packed = packed.checked_sub(0x80_0000_i64 << bits)?;
        let size = packed.unsigned_abs();
        let micros = u32::try_from(size & ((1 << bits) - 1)).ok()?.checked_mul(per_unit)?;
        let hms = size >> bits;
        Self::new(packed < 0, hms >> 12, hms >> 6 & 63, hms & 63, micros, fsp)
    }

    /// Three bytes little-endian, signed: the decimal number hhhmmss (`Field_time`, before 5.6.4).
    pub(crate) fn from_old_wire(bytes: [u8; 3]) -> Option<Self> {
        let [a, b, c] = bytes;
        let packed = i32::from_le_bytes([0, a, b, c]) >> 8;
        let size = u64::from(packed.unsigned_abs());
        Self::new(packed < 0, size / 10_000, size / 100 % 100, size % 100, 0, 0)
    }
}

/// Millionths per unit of the stored fraction, and its width in bytes.
#[inline]
const fn fraction_unit(fsp: u8) -> Option<(u32, u8)> {
    match fsp {
        0 => Some((0, 0)),
        1 | 2 => Some((10_000, 1)),
        3 | 4 => Some((100, 2)),
        5 | 6 => Some((1, 3)),
        _ => None,
    }
}

#[inline]
fn fraction_micros(bytes: &[u8], fsp: u8) -> Option<u32> {
    let (per_unit, width) = fraction_unit(fsp)?;
    big_endian(bytes, width)?.checked_mul(per_unit)
}

#[inline]
fn big_endian(bytes: &[u8], width: u8) -> Option<u32> {
    match (bytes, width) {
        ([], 0) => Some(0),
        ([a], 1) => Some(u32::from(*a)),
        ([a, b], 2) => Some(u32::from_be_bytes([0, 0, *a, *b])),
        ([a, b, c], 3) => Some(u32::from_be_bytes([0, *a, *b, *c])),
        _ => None,
    }
}

/// Year, month and day of a day number since 1970-01-01, in the proleptic Gregorian calendar (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`, without the part for days before 1970).
/// Nothing overflows: a 64-bit number of seconds holds fewer than 2^48 days.
pub(crate) fn civil_from_days(days: u64) -> (u64, u8, u8) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, u8::try_from(month).unwrap_or(0), u8::try_from(day).unwrap_or(0))
}

fn write_fraction(f: &mut fmt::Formatter<'_>, micros: u32, fsp: u8) -> fmt::Result {
    let digits = usize::from(fsp.min(6));
    let shown = match fsp {
        0 => return Ok(()),
        1 => micros / 100_000,
        2 => micros / 10_000,
        3 => micros / 1_000,
        4 => micros / 100,
        5 => micros / 10,
        _ => micros,
    };
    write!(f, ".{shown:0digits$}")
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, len) = date_time_text(*self);
        f.write_str(text.get(..len).and_then(|text| core::str::from_utf8(text).ok()).unwrap_or_default())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_utc().fmt(f)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hours, self.minute, self.second)?;
        write_fraction(f, self.micros, self.fsp)
    }
}

// Rule 1: a date is a row value; only the kind is shown.
macro_rules! redacted {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}
redacted!(Date, DateTime, Timestamp, Time);

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    fn text<T: ToString>(value: Option<T>) -> Option<String> {
        value.map(|v| v.to_string())
    }

    /// Bytes from `BL-01` and `BL-03`, and the ends of the range.
    #[test]
    fn wire_temporals_become_the_servers_text() {
        for (bytes, fsp, want) in [
            (&[0x7e, 0xfd, 0xfc][..], 0, Some("-16:08:04")),
            (&[0x7f, 0xff, 0xff, 0xff], 2, Some("-00:00:00.01")),
            (&[0x7f, 0xff, 0xff, 0xf6], 1, Some("-00:00:00.1")),
            (&[0x7f, 0xff, 0xff, 0xff, 0xf6], 3, Some("-00:00:00.001")),
            (&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff], 6, Some("-00:00:00.000001")),
            (&[0x80, 0, 0], 0, Some("00:00:00")),
            // 839 hours, 60 minutes, 60 seconds; a fraction of 100 hundredths; a byte too many.
            (&[0xb4, 0x70, 0x00], 0, None),
            (&[0x80, 0x0f, 0x00], 0, None),
            (&[0x80, 0x00, 0x3c], 0, None),
            (&[0x80, 0x00, 0x00, 100], 2, None),
            (&[0x80, 0, 0, 0], 0, None),
        ] {
            assert_eq!(text(Time::from_wire(bytes, fsp)).as_deref(), want, "TIME({fsp}) {bytes:02x?}");
        }
        for (bytes, fsp, want) in [
            (&[0x80, 0, 0, 0, 0][..], 0, Some("0000-00-00 00:00:00")),
            (&[0x99, 0xb2, 0xbb, 0x7e, 0xfb, 0x0f, 0x42, 0x3f], 6, Some("2024-02-29 23:59:59.999999")),
            (&[0x8c, 0xb2, 0x42, 0, 0], 0, Some("1000-01-01 00:00:00")),
            (&[0xfe, 0xf3, 0xff, 0x7e, 0xfb], 0, Some("9999-12-31 23:59:59")),
            // A sign, year 10000 (130000 months), hour 24, minute 60.
            (&[0x7f, 0xff, 0xff, 0xff, 0xff], 0, None),
            (&[0xfe, 0xf4, 0x00, 0x00, 0x00], 0, None),
            (&[0x80, 0x00, 0x01, 0x80, 0x00], 0, None),
            (&[0x80, 0x00, 0x00, 0x0f, 0x00], 0, None),
            (&[0x80, 0, 0, 0, 0, 0x0f, 0x42, 0x40], 6, None),
        ] {
            assert_eq!(
                text(DateTime::from_wire(bytes, fsp)).as_deref(),
                want,
                "DATETIME({fsp}) {bytes:02x?}"
            );
        }
        for (bytes, fsp, want) in [
            (&[0, 0, 0, 0][..], 0, Some("0000-00-00 00:00:00")),
            (&[0, 0, 0, 0, 0, 0, 0], 6, Some("0000-00-00 00:00:00.000000")),
            (&[0, 0, 0, 1, 0, 0, 1], 6, Some("1970-01-01 00:00:01.000001")),
            (&[0x7f, 0xff, 0xff, 0xff], 0, Some("2038-01-19 03:14:07")),
            (&[0, 0, 0, 0, 0, 0, 1], 6, None),
            (&[0x80, 0, 0, 0], 0, None),
        ] {
            assert_eq!(
                text(Timestamp::from_wire(bytes, fsp)).as_deref(),
                want,
                "TIMESTAMP({fsp}) {bytes:02x?}"
            );
        }
    }

    /// Year in 15 bits, month in 4, day in 5.
    #[test]
    fn dates_that_a_server_can_store_and_others() {
        let wire = |year: u32, month: u32, day: u32| {
            let [a, b, c, _] = (year << 9 | month << 5 | day).to_le_bytes();
            text(Date::from_wire([a, b, c]))
        };
        for (year, month, day, want) in [
            (0, 0, 0, Some("0000-00-00")),
            (2023, 0, 15, Some("2023-00-15")),
            (2023, 2, 31, Some("2023-02-31")),
            (9999, 12, 31, Some("9999-12-31")),
            (10_000, 1, 1, None),
            (2023, 13, 1, None),
            (2023, 15, 31, None),
        ] {
            assert_eq!(wire(year, month, day).as_deref(), want, "{year}-{month}-{day}");
        }
    }

    /// The decimal numbers of the formats before 5.6.4 (manual, "Date and Time Data Type
    /// Representation").
    #[test]
    fn old_formats() {
        let datetime = |n: u64| text(DateTime::from_old_wire(n.to_le_bytes()));
        assert_eq!(datetime(20_240_229_235_959).as_deref(), Some("2024-02-29 23:59:59"));
        assert_eq!(datetime(0).as_deref(), Some("0000-00-00 00:00:00"));
        assert_eq!(datetime(20_241_329_235_959), None);
        assert_eq!(datetime(20_240_229_246_060), None);
        assert_eq!(datetime(u64::MAX), None);
        let time = |n: i32| {
            let [a, b, c, _] = n.to_le_bytes();
            text(Time::from_old_wire([a, b, c]))
        };
        assert_eq!(time(-8_385_959).as_deref(), Some("-838:59:59"));
        assert_eq!(time(8_385_959).as_deref(), Some("838:59:59"));
        assert_eq!(time(-1).as_deref(), Some("-00:00:01"));
        assert_eq!(time(160_860), None);
        assert_eq!(text(Timestamp::from_old_wire([0; 4])).as_deref(), Some("0000-00-00 00:00:00"));
        assert_eq!(text(Timestamp::from_old_wire([1, 0, 0, 0])).as_deref(), Some("1970-01-01 00:00:01"));
    }

    /// Known instants (`date -u -d @N`).
    #[test]
    fn instants_in_utc() {
        for (seconds, want) in [
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (951_868_800, "2000-03-01 00:00:00"),
            (1_709_164_800, "2024-02-29 00:00:00"),
            (1_735_689_599, "2024-12-31 23:59:59"),
            (68_169_600, "1972-02-29 00:00:00"),
            (4_102_444, "1970-02-17 11:34:04"),
        ] {
            assert_eq!(text(Timestamp::new(seconds, 0, 0)).as_deref(), Some(want), "{seconds}");
        }
    }

    #[test]
    fn debug_shows_no_value() {
        let date = Date::new(2024, 2, 29).unwrap();
        let datetime = DateTime::new(date, 23, 59, 58, 0, 0).unwrap();
        let timestamp = Timestamp::new(951_782_400, 0, 0).unwrap();
        let time = Time::new(true, 12, 34, 56, 0, 0).unwrap();
        let said = std::format!("{date:?} {datetime:?} {timestamp:?} {time:?}");
        assert_eq!(said, "Date DateTime Timestamp Time");
    }
}
