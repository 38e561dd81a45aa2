//! DECIMAL as the row holds it: groups of nine digits in big-endian order (`decimal2bin`, `strings/decimal.cc`).

use core::fmt;

/// The first number that has more digits than the group may have.
const GROUP_LIMIT: [u32; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
const DIGITS_PER_GROUP: u8 = 9;
/// `DECIMAL_MAX_PRECISION`.
const PRECISION_MAX: u8 = 65;
/// `DECIMAL_MAX_SCALE`.
const SCALE_MAX: u8 = 30;

/// A DECIMAL value. `Display` writes it as the server does: all digits of the scale, and zero without
/// a sign.
///
/// Two decimals are equal when they are the same value of the same column type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Decimal<'a> {
    bytes: &'a [u8],
    precision: u8,
    scale: u8,
}

/// Whether a column can be declared so: precision 1 to 65, scale 0 to 30 and not above the precision.
pub(crate) const fn is_valid_type(precision: u8, scale: u8) -> bool {
    precision >= 1 && precision <= PRECISION_MAX && scale <= SCALE_MAX && scale <= precision
}

/// Bytes of a value of that type (`decimal_binary_size`).
pub(crate) fn packed_len(precision: u8, scale: u8) -> u8 {
    groups(precision, scale).map(|g| group_bytes(g.digits)).fold(0, u8::saturating_add)
}

impl<'a> Decimal<'a> {
    /// A value over its packed bytes; `None` if the length is not that of the type or a group holds
    /// more digits than it may.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8], precision: u8, scale: u8) -> Option<Self> {
        if !is_valid_type(precision, scale) {
            return None;
        }
        let value = Self { bytes, precision, scale };
        let mut rest = value.unsigned_bytes();
        for group in groups(precision, scale) {
            if rest.group(group.digits)? >= *GROUP_LIMIT.get(usize::from(group.digits))? {
                return None;
            }
        }
        rest.is_done().then_some(value)
    }

    /// The packed bytes, as in the row.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Digits in all, as declared.
    #[must_use]
    pub const fn precision(self) -> u8 {
        self.precision
    }

    /// Digits behind the point, as declared.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// Below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.has_minus_bit() && !self.is_zero()
    }

    /// Zero, whatever its sign bit says.
    #[must_use]
    pub fn is_zero(self) -> bool {
        let mut rest = self.unsigned_bytes();
        groups(self.precision, self.scale).all(|g| rest.group(g.digits) == Some(0))
    }

    // The first bit is inverted, so that positive numbers sort behind negative ones.
    fn has_minus_bit(self) -> bool {
        self.bytes.first().is_some_and(|b| b & 0x80 == 0)
    }

    fn unsigned_bytes(self) -> Groups<'a> {
        Groups { rest: self.bytes, flip: if self.has_minus_bit() { 0xff } else { 0 }, sign: 0x80 }
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Digits::new();
        let mut rest = self.unsigned_bytes();
        let whole = self.precision.saturating_sub(self.scale);
        let mut seen = 0;
        for group in groups(self.precision, self.scale) {
            if seen == whole && self.scale != 0 {
                text.point();
            }
            text.push(rest.group(group.digits).ok_or(fmt::Error)?, group.digits, seen >= whole);
            seen = seen.saturating_add(group.digits);
        }
        f.pad_integral(!self.is_negative(), "", text.as_str())
    }
}

impl fmt::Debug for Decimal<'_> {
    // Rule 1: the type only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decimal({},{})", self.precision, self.scale)
    }
}

#[derive(Clone, Copy)]
struct Group {
    digits: u8,
}

/// The groups in order of their bytes: the odd digits of the whole part come first, those of the
/// fraction last.
fn groups(precision: u8, scale: u8) -> impl Iterator<Item = Group> {
    let whole = precision.saturating_sub(scale);
    let full = |n: u8| core::iter::repeat_n(DIGITS_PER_GROUP, usize::from(n / DIGITS_PER_GROUP));
    core::iter::once(whole % DIGITS_PER_GROUP)
        .chain(full(whole))
        .chain(full(scale))
        .chain(core::iter::once(scale % DIGITS_PER_GROUP))
        .filter(|digits| *digits != 0)
        .map(|digits| Group { digits })
}

/// Bytes of a group of so many digits, at most nine (`dig2bytes`).
const fn group_bytes(digits: u8) -> u8 {
    match digits {
        0 => 0,
        1 | 2 => 1,
        3 | 4 => 2,
        5 | 6 => 3,
        _ => 4,
    }
}

/// Reads groups, undoing the inversion of negative numbers.
struct Groups<'a> {
    rest: &'a [u8],
    flip: u8,
    sign: u8,
}

impl Groups<'_> {
    #[inline]
    fn group(&mut self, digits: u8) -> Option<u32> {
        let (group, rest) = self.rest.split_at_checked(usize::from(group_bytes(digits)))?;
        self.rest = rest;
        let mut value = 0;
        for byte in group {
            value = value << 8 | u32::from(byte ^ self.flip ^ self.sign);
            self.sign = 0;
        }
        Some(value)
    }

    const fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Text of at most 65 digits and a point, built without a heap.
struct Digits {
    text: [u8; 68],
    len: usize,
}

impl Digits {
    const fn new() -> Self {
        Self { text: [b'0'; 68], len: 0 }
    }

    fn byte(&mut self, byte: u8) {
        if let Some(at) = self.text.get_mut(self.len) {
            *at = byte;
            self.len = self.len.saturating_add(1);
        }
    }

    fn point(&mut self) {
        if self.len == 0 {
            self.byte(b'0');
        }
        self.byte(b'.');
    }

    /// Appends a group; before the point leading zeros are left out.
    fn push(&mut self, value: u32, digits: u8, fraction: bool) {
        for power in GROUP_LIMIT.iter().take(usize::from(digits)).rev() {
            let digit = u8::try_from(value / power % 10).unwrap_or(0);
            if fraction || self.len != 0 || digit != 0 {
                self.byte(b'0'.saturating_add(digit));
            }
        }
    }

    fn as_str(&self) -> &str {
        match self.text.get(..self.len).and_then(|t| core::str::from_utf8(t).ok()) {
            Some("") | None => "0",
            Some(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;

    fn text(hex: &[u8], precision: u8, scale: u8) -> Option<std::string::String> {
        Decimal::new(hex, precision, scale).map(|d| d.to_string())
    }

    /// The first two are the worked examples of `decimal2bin`'s comment.
    #[test]
    fn packed_digits_become_the_servers_text() {
        for (bytes, precision, scale, want) in [
            (&[0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2][..], 14, 4, "1234567890.1234"),
            (&[0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d], 14, 4, "-1234567890.1234"),
            (&[0x83, 0xe7, 0x09], 4, 1, "999.9"),
            (&[0x80, 0x00, 0x00], 4, 1, "0.0"),
            (&[0x7f, 0xff, 0xff], 4, 1, "0.0"),
            (&[0x80, 0x00, 0x01], 4, 1, "0.1"),
            (&[0x7f, 0xff, 0xfe], 4, 1, "-0.1"),
            (&[0x80], 1, 0, "0"),
            (&[0x89], 1, 0, "9"),
            (&[0x76], 1, 0, "-9"),
            (&[0x80, 5], 3, 2, "0.05"),
            (&[0xe3], 2, 2, "0.99"),
        ] {
            assert_eq!(text(bytes, precision, scale).as_deref(), Some(want), "{bytes:02x?}");
        }
    }

    #[test]
    fn groups_beyond_their_digits_and_wrong_lengths_are_no_decimals() {
        // 10 where one digit may be; 1,000,000,000 where nine may be; a byte too few, one too many.
        assert_eq!(text(&[0x80, 0x00, 0x0a], 4, 1), None);
        assert_eq!(text(&[0xbb, 0x9a, 0xca, 0x00], 9, 0), None);
        assert_eq!(text(&[0xbb, 0x9a, 0xc9, 0xff], 9, 0).as_deref(), Some("999999999"));
        assert_eq!(text(&[0x80, 0x00], 4, 1), None);
        assert_eq!(text(&[0x80, 0x00, 0x00, 0x00], 4, 1), None);
        assert_eq!(text(&[0x80; 90], 200, 0), None);
    }

    /// `decimal_binary_size` in `libs/mysql/binlog/event/binary_log_funcs.cpp`.
    #[test]
    fn packed_lengths_are_the_servers() {
        for (precision, scale, want) in
            [(10, 0, 5), (65, 30, 30), (65, 0, 29), (30, 30, 14), (1, 1, 1), (18, 9, 8), (4, 1, 3)]
        {
            assert_eq!(packed_len(precision, scale), want, "DECIMAL({precision},{scale})");
        }
    }

    #[test]
    fn the_longest_decimal_keeps_every_digit() {
        let mut bytes = vec![0xff, 0xff, 0xff, 0xff];
        for _ in 0..3 {
            bytes.extend([0x3b, 0x9a, 0xc9, 0xff]);
        }
        bytes[..4].copy_from_slice(&[0x85, 0xf5, 0xe0, 0xff]);
        for _ in 0..3 {
            bytes.extend([0x3b, 0x9a, 0xc9, 0xff]);
        }
        bytes.extend([0x03, 0xe7]);
        let want = std::format!("{}.{}", "9".repeat(35), "9".repeat(30));
        assert_eq!(text(&bytes, 65, 30), Some(want));
    }
}
