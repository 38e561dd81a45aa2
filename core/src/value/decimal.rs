//! DECIMAL as the row holds it: groups of nine digits in big-endian order (`decimal2bin`, `strings/decimal.cc`).

use alloc::vec::Vec;
use core::fmt;

/// The first number that has more digits than the group may have.
/// There are as many as four bits say, so that no index is beyond them.
const GROUP_LIMIT: [u32; 16] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    POWER,
    POWER,
    POWER,
    POWER,
    POWER,
    POWER,
    POWER,
];
const DIGITS_PER_GROUP: u8 = 9;
/// The first number that has more digits than a full group.
const POWER: u32 = 1_000_000_000;
/// `DECIMAL_MAX_PRECISION`.
const PRECISION_MAX: u8 = 65;
/// `DECIMAL_MAX_SCALE`.
const SCALE_MAX: u8 = 30;

/// Digits that one number of 128 bits holds, whatever they are.
const NUMBER_MAX: u8 = 38;

/// A DECIMAL value. `Display` writes it as the server does: all digits of the scale, and zero without
/// a sign.
///
/// Two decimals are equal when they are the same value of the same column type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Decimal<'a> {
    bytes: &'a [u8],
    shape: Shape,
    /// All digits as one number, low and high half, where there are at most 38: to see that they are digits
    /// is most of the way to it.
    digits: [u64; 2],
}

/// Whether a column can be declared so: precision 1 to 65, scale 0 to 30 and not above the precision.
pub(crate) const fn is_valid_type(precision: u8, scale: u8) -> bool {
    precision >= 1 && precision <= PRECISION_MAX && scale <= SCALE_MAX && scale <= precision
}

/// Bytes of a value of that type (`decimal_binary_size`).
pub(crate) const fn packed_len(precision: u8, scale: u8) -> u8 {
    let shape = Shape::of(precision, scale);
    let full = shape.whole.saturating_add(shape.fraction).saturating_mul(4);
    shape.lead_bytes.saturating_add(full).saturating_add(shape.tail_bytes)
}

/// Appends the packed bytes of a decimal from its text, as a column or a JSON document of that type holds it;
/// `None` if it is no decimal, or one that does not fit. (`decimal2bin`)
pub(crate) fn pack(text: &str, precision: u8, scale: u8, out: &mut Vec<u8>) -> Option<()> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let in_front = usize::from(precision.checked_sub(scale)?).checked_sub(whole.len())?;
    let behind = usize::from(scale).checked_sub(fraction.len())?;
    let zeros = |count| core::iter::repeat_n(b'0', count);
    let mut digits = zeros(in_front).chain(whole.bytes()).chain(fraction.bytes()).chain(zeros(behind));

    let (start, shape) = (out.len(), Shape::of(precision, scale));
    let mut any = false;
    let full =
        core::iter::repeat_n(DIGITS_PER_GROUP, usize::from(shape.whole.saturating_add(shape.fraction)));
    for count in core::iter::once(shape.lead).chain(full).chain([shape.tail]).filter(|count| *count != 0) {
        let group = digits.by_ref().take(usize::from(count));
        let group = group.fold(0_u32, |n, digit| n.wrapping_mul(10).wrapping_add(u32::from(digit & 15)));
        any |= group != 0;
        let unused = 4_usize.saturating_sub(usize::from(group_bytes(count)));
        out.extend_from_slice(group.to_be_bytes().get(unused..).unwrap_or_default());
    }
    let packed = out.get_mut(start..).unwrap_or_default();
    if negative && any {
        packed.iter_mut().for_each(|byte| *byte = !*byte);
    }
    *packed.first_mut()? ^= 0x80;
    Some(())
}

impl<'a> Decimal<'a> {
    /// A value over its packed bytes; `None` if the length is not that of the type or a group holds
    /// more digits than it may.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8], precision: u8, scale: u8) -> Option<Self> {
        if !is_valid_type(precision, scale) || bytes.len() != usize::from(packed_len(precision, scale)) {
            return None;
        }
        Self::of_column(bytes, Shape::of(precision, scale))
    }

    /// A value of a column: its type is a valid one, and `bytes` has the length of it.
    #[inline(always)]
    pub(crate) fn of_column(bytes: &'a [u8], shape: Shape) -> Option<Self> {
        let digits = match shape.number(bytes) {
            Some(digits) => digits?,
            None => Self { bytes, shape, digits: [0; 2] }.number()?,
        };
        Some(Self { bytes, shape, digits: [digits as u64, (digits >> 64) as u64] })
    }

    /// All digits as one number, group by group; `None` if a group has more of them than it may. Of more than 38
    /// digits it is no number, and none is given.
    #[cold]
    fn number(self) -> Option<u128> {
        let (mut valid, mut all) = (true, 0u128);
        self.groups(|group, digits| {
            let power = power(digits);
            valid &= group < power;
            all = all.wrapping_mul(u128::from(power)).wrapping_add(u128::from(group));
        });
        valid.then_some(all)
    }

    /// The packed bytes, as in the row.
    #[must_use]
    #[inline]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Digits in all, as declared.
    #[must_use]
    #[inline]
    pub const fn precision(self) -> u8 {
        self.shape.precision()
    }

    /// Digits behind the point, as declared.
    #[must_use]
    #[inline]
    pub const fn scale(self) -> u8 {
        self.shape.scale()
    }

    /// Below zero.
    #[must_use]
    #[inline]
    pub fn is_negative(self) -> bool {
        self.has_minus_bit() && !self.is_zero()
    }

    /// Zero, whatever its sign bit says.
    #[must_use]
    #[inline]
    pub fn is_zero(self) -> bool {
        if self.shape.precision() <= NUMBER_MAX {
            return self.digits == [0; 2];
        }
        let mut zero = true;
        self.groups(|group, _| zero &= group == 0);
        zero
    }

    /// All digits as one number, without the point: the value times ten to the power of its scale. `None`
    /// where there are more than 38 of them, which a number of this width may not hold.
    #[must_use]
    #[inline]
    pub fn unscaled(self) -> Option<i128> {
        if self.shape.precision() > NUMBER_MAX {
            return None;
        }
        let [low, high] = self.digits;
        // 38 nines are below 2^127.
        let all = (u128::from(high) << 64 | u128::from(low)).cast_signed();
        Some(if self.has_minus_bit() { all.wrapping_neg() } else { all })
    }

    /// All digits as one number without its sign, where 64 bits hold it.
    #[inline]
    pub(crate) fn short(self) -> Option<u64> {
        match self.digits {
            [low, 0] if self.shape.precision() <= NUMBER_MAX => Some(low),
            _ => None,
        }
    }

    /// The text of [`Display`](fmt::Display), without the formatting machinery.
    #[inline]
    pub(crate) fn text(self) -> DecimalText {
        let mut text = DecimalText { bytes: [b'0'; TEXT_MAX], len: 0 };
        if self.is_negative() {
            text.push(b'-');
        }
        let scale = self.shape.scale();
        if let Some(low) = self.short() {
            text.number(itoa::Buffer::new().format(low).as_bytes(), scale.into());
            return text;
        }
        let whole = self.shape.precision().saturating_sub(scale);
        let (mut seen, first) = (0u8, text.len);
        self.groups(|group, digits| {
            if seen == whole && scale != 0 {
                text.point(first);
            }
            let is_first = text.len == first && seen < whole;
            text.group(group, digits, is_first);
            seen = seen.saturating_add(digits);
        });
        if text.len == first {
            text.push(b'0');
        }
        text
    }

    // The first bit is inverted, so that positive numbers sort behind negative ones.
    #[inline]
    fn has_minus_bit(self) -> bool {
        self.bytes.first().is_some_and(|b| b & 0x80 == 0)
    }

    /// Calls `visit` with each group and how many digits it has, in order, the sign taken off.
    #[inline]
    fn groups(self, mut visit: impl FnMut(u32, u8)) {
        let shape = self.shape;
        // Negative numbers are inverted as a whole, and then the first bit of all.
        let mut flip = if self.has_minus_bit() { 0x7fff_ffff } else { 0x8000_0000 };
        let rest_flip = if self.has_minus_bit() { u32::MAX } else { 0 };
        let mut rest = self.bytes;
        if shape.lead != 0 {
            visit(part(&mut rest, shape.lead, flip), shape.lead);
            flip = rest_flip;
        }
        for _ in 0..shape.whole.saturating_add(shape.fraction) {
            visit(part(&mut rest, DIGITS_PER_GROUP, flip), DIGITS_PER_GROUP);
            flip = rest_flip;
        }
        if shape.tail != 0 {
            visit(part(&mut rest, shape.tail, flip), shape.tail);
        }
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        let text = text.as_str();
        if f.width().is_none() && !f.sign_plus() {
            // As it nearly always is, and in one piece.
            return f.write_str(text);
        }
        match text.strip_prefix('-') {
            Some(digits) => f.pad_integral(false, "", digits),
            None => f.pad_integral(true, "", text),
        }
    }
}

impl fmt::Debug for Decimal<'_> {
    // Rule 1: the type only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decimal({},{})", self.shape.precision(), self.shape.scale())
    }
}

/// The groups in order of their bytes: the odd digits of the whole part come first, those of the
/// fraction last, and between them groups of nine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    lead: u8,
    whole: u8,
    fraction: u8,
    tail: u8,
    lead_bytes: u8,
    tail_bytes: u8,
}

impl Shape {
    #[inline]
    const fn precision(self) -> u8 {
        // Of at most 65 digits.
        let full = self.whole.wrapping_add(self.fraction).wrapping_mul(DIGITS_PER_GROUP);
        self.lead.wrapping_add(full).wrapping_add(self.tail)
    }

    #[inline]
    const fn scale(self) -> u8 {
        self.fraction.saturating_mul(DIGITS_PER_GROUP).saturating_add(self.tail)
    }

    /// The digits of nearly every decimal as one number: it has at least four bytes, and at most two groups of nine
    /// digits. The outer `None`: it is another; the inner: a group has more digits than it may.
    #[inline(always)]
    fn number(self, bytes: &[u8]) -> Option<Option<u128>> {
        let (head, last) = (bytes.first_chunk::<4>()?, bytes.last_chunk::<4>()?);
        let (head, last) = (u32::from_be_bytes(*head), u32::from_be_bytes(*last));
        // All ones if it is below zero: then all bits are inverted, and the first one of all always.
        let sign = (head >> 31).wrapping_sub(1);
        let lead = u32::from(self.lead_bytes);
        // The first four bytes are those in front of the groups and the beginning of one, or a group.
        let first = (u64::from(head ^ sign ^ 0x8000_0000) >> (32 - lead * 8)) as u32;
        let flip = if lead == 0 { 0x8000_0000 } else { 0 };
        let group = |at: u32| {
            let group = bytes.get(at as usize..)?.first_chunk()?;
            Some(u32::from_be_bytes(*group) ^ sign)
        };
        let (before, valid) = match self.whole.wrapping_add(self.fraction) {
            0 if lead != 0 => (u128::from(first), true),
            1 => {
                let group = group(lead)? ^ flip;
                // Below 2^64: at most 18 digits, or bits that are found not to be digits.
                (u128::from(u64::from(first) * u64::from(POWER) + u64::from(group)), group < POWER)
            }
            2 => {
                let (high, low) = (group(lead)? ^ flip, group(lead + 4)?);
                let two = u64::from(high) * u64::from(POWER) + u64::from(low);
                let all = u128::from(first) * (u128::from(POWER) * u128::from(POWER)) + u128::from(two);
                (all, high < POWER && low < POWER)
            }
            _ => return None,
        };
        // The last digits are the end of the last four bytes.
        let unused = 32 - u32::from(self.tail_bytes) * 8;
        let tail = (u64::from(last ^ sign) & (u64::from(u32::MAX) >> unused)) as u32;
        let power = power(self.tail);
        // No branch for each of them: what is no number is seldom met.
        let valid = valid & (first < self::power(self.lead)) & (tail < power);
        Some(valid.then_some(before * u128::from(power) + u128::from(tail)))
    }

    #[inline]
    pub(crate) const fn of(precision: u8, scale: u8) -> Self {
        let whole = precision.saturating_sub(scale);
        let (lead, tail) = (whole % DIGITS_PER_GROUP, scale % DIGITS_PER_GROUP);
        Self {
            lead,
            whole: whole / DIGITS_PER_GROUP,
            fraction: scale / DIGITS_PER_GROUP,
            tail,
            lead_bytes: group_bytes(lead),
            tail_bytes: group_bytes(tail),
        }
    }
}

/// The first number that has more digits than a group of so many may have.
#[inline]
fn power(digits: u8) -> u32 {
    GROUP_LIMIT.get(usize::from(digits & 15)).copied().unwrap_or(POWER)
}

/// Bytes of a group of so many digits, at most nine (`dig2bytes`).
#[inline]
const fn group_bytes(digits: u8) -> u8 {
    // Half as many, rounded up; and nine have no more than eight.
    let bytes = digits.div_ceil(2);
    if bytes > 4 { 4 } else { bytes }
}

/// Takes a group of so many digits off, big-endian; `flip` is laid over its bytes from the first on.
#[inline]
fn part(rest: &mut &[u8], digits: u8, flip: u32) -> u32 {
    let (value, unused, behind) = match (group_bytes(digits), *rest) {
        (4, [a, b, c, d, behind @ ..]) => (u32::from_be_bytes([*a, *b, *c, *d]), 0, behind),
        (2, [a, b, behind @ ..]) => (u32::from_be_bytes([0, 0, *a, *b]), 16, behind),
        (3, [a, b, c, behind @ ..]) => (u32::from_be_bytes([0, *a, *b, *c]), 8, behind),
        (1, [a, behind @ ..]) => (u32::from(*a), 24, behind),
        // The length was compared with that of the type.
        _ => return 0,
    };
    *rest = behind;
    value ^ (flip >> unused)
}

/// A sign, at most 65 digits, a point and a zero in front of it.
const TEXT_MAX: usize = 68;

/// Text of a decimal, built without a heap.
pub(crate) struct DecimalText {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl DecimalText {
    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(at) = self.bytes.get_mut(self.len) {
            *at = byte;
            self.len = self.len.saturating_add(1);
        }
    }

    /// The point, behind a zero if there is no digit since `first`.
    #[inline]
    fn point(&mut self, first: usize) {
        if self.len == first {
            self.push(b'0');
        }
        self.push(b'.');
    }

    /// Appends a group; zeros in front of the first digit of all are left out.
    #[inline]
    fn group(&mut self, value: u32, digits: u8, first: bool) {
        let text = nine_digits(value);
        let text = text.get(9usize.saturating_sub(digits.into())..).unwrap_or_default();
        let zeros = if first { text.iter().take_while(|digit| **digit == b'0').count() } else { 0 };
        self.extend(text.get(zeros..).unwrap_or_default());
    }

    /// Appends a number without zeros in front, of which the last `scale` digits stand behind the point.
    fn number(&mut self, digits: &[u8], scale: usize) {
        let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
        self.extend(if whole.is_empty() { b"0" } else { whole });
        if scale != 0 {
            self.push(b'.');
            for _ in fraction.len()..scale {
                self.push(b'0');
            }
            self.extend(fraction);
        }
    }

    #[inline]
    fn extend(&mut self, text: &[u8]) {
        let end = self.len.saturating_add(text.len());
        if let Some(to) = self.bytes.get_mut(self.len..end) {
            to.copy_from_slice(text);
            self.len = end;
        }
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|text| core::str::from_utf8(text).ok()).unwrap_or("0")
    }
}

/// The last nine digits.
#[inline]
fn nine_digits(value: u32) -> [u8; 9] {
    // Below ten, each.
    let digit = |n: u32| b'0' + (n % 10) as u8;
    let four = |n: u32| {
        let (high, low) = (n / 100, n % 100);
        [digit(high / 10), digit(high), digit(low / 10), digit(low)]
    };
    let (high, low) = (value / 10_000, value % 10_000);
    let ([b, c, d, e], [f, g, h, i]) = (four(high % 10_000), four(low));
    [digit(high / 10_000), b, c, d, e, f, g, h, i]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::strategy::Strategy as _;
    use std::string::{String, ToString};
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

    /// The way back, over the same examples and what does not fit.
    #[test]
    fn text_becomes_packed_digits() {
        for (text, precision, scale, want) in [
            ("1234567890.1234", 14, 4, Some(&[0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2][..])),
            ("-1234567890.1234", 14, 4, Some(&[0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d])),
            ("999.9", 4, 1, Some(&[0x83, 0xe7, 0x09])),
            ("-0.1", 4, 1, Some(&[0x7f, 0xff, 0xfe])),
            ("-0.0", 4, 1, Some(&[0x80, 0x00, 0x00])),
            ("0007", 1, 0, Some(&[0x87])),
            ("0.05", 3, 2, Some(&[0x80, 5])),
            ("0.99", 2, 2, Some(&[0xe3])),
            ("10", 1, 0, None),
            ("0.123", 4, 2, None),
            ("1e3", 9, 0, None),
            ("", 9, 0, None),
            ("-", 9, 0, None),
            ("1.2.3", 9, 4, None),
        ] {
            let mut packed = vec![];
            let found = pack(text, precision, scale, &mut packed).map(|()| &packed[..]);
            assert_eq!(found, want, "{text}");
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

    proptest::proptest! {
        /// The number that is put together from a few words is that of the groups, and refuses what they do.
        #[test]
        fn two_ways_to_a_number(
            (precision, scale) in (1u8..=65).prop_flat_map(|p| (proptest::prelude::Just(p), 0..=p.min(30))),
            bytes in proptest::collection::vec(proptest::prop_oneof![0u8..0x40, 0x78u8..0x84, proptest::prelude::any::<u8>()], 34),
            digits in proptest::collection::vec(0u8..10, 65),
            negative: bool,
        ) {
            let shape = Shape::of(precision, scale);
            let mut number = String::from(if negative { "-" } else { "" });
            number.extend(digits[..usize::from(precision - scale)].iter().map(|d| char::from(b'0' + d)));
            number.push('.');
            number.extend(digits[..usize::from(scale)].iter().map(|d| char::from(b'0' + d)));
            let mut packed = vec![];
            pack(&number, precision, scale, &mut packed).unwrap();
            for bytes in [&bytes[..packed.len()], &packed] {
                let slow = Decimal { bytes, shape, digits: [0; 2] }.number();
                if let Some(fast) = shape.number(bytes) {
                    proptest::prop_assert_eq!(fast, slow);
                }
                let ours = Decimal::new(bytes, precision, scale);
                proptest::prop_assert_eq!(ours.is_some(), slow.is_some());
                if let Some(unscaled) = ours.and_then(Decimal::unscaled) {
                    let text: String = ours.unwrap().to_string().chars().filter(|c| *c != '.').collect();
                    proptest::prop_assert_eq!(text.parse(), Ok(unscaled));
                }
            }
        }
    }

    /// All digits, the point left out; too many are said so.
    #[test]
    fn digits_as_one_number() {
        for (bytes, precision, scale, want) in [
            (&[0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2][..], 14, 4, Some(12_345_678_901_234)),
            (&[0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d], 14, 4, Some(-12_345_678_901_234)),
            (&[0x7f, 0xff, 0xff], 4, 1, Some(0)),
            (&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 39, 0, None),
        ] {
            let found = Decimal::new(bytes, precision, scale).unwrap().unscaled();
            assert_eq!(found, want, "{bytes:02x?}");
        }
        let mut widest = vec![0xe3];
        for _ in 0..4 {
            widest.extend([0x3b, 0x9a, 0xc9, 0xff]);
        }
        let widest = Decimal::new(&widest, 38, 9).unwrap();
        assert_eq!(widest.unscaled(), Some(10i128.pow(38) - 1));
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
