//! Decimal digits eight at a time, by multiplications: no table, no loop, and written where they belong, so that none is
//! copied (adr/0017).

/// Powers of ten up to 10^16, with as many zeros as their index says.
pub(crate) const POWERS: [u64; 17] = {
    let (mut all, mut power) = ([1; 17], 1);
    let mut rest = all.as_mut_slice();
    while let Some((first, behind)) = rest.split_first_mut() {
        *first = power;
        power *= 10;
        rest = behind;
    }
    all
};

const EIGHT: u64 = 100_000_000;
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Writes a number without zeros in front into the first bytes, and anything behind it; gives how many digits it has.
#[inline]
pub(crate) fn write(to: &mut [u8; 24], n: u64) -> usize {
    if n < EIGHT {
        return write_first(to, n);
    }
    let (high, low) = (n / EIGHT, n % EIGHT);
    let len = if high < EIGHT {
        write_first(to, high)
    } else {
        let len = write_first(to, high / EIGHT);
        put(to, len, eight(high % EIGHT));
        len + 8
    };
    put(to, len, eight(low));
    len + 8
}

/// Writes the last `count` digits of a number, at most 16, and anything behind them.
#[inline]
pub(crate) fn write_exactly(to: &mut [u8; 24], n: u64, count: usize) {
    match count {
        ..=8 => put(to, 0, shifted(eight(n % EIGHT), 8 - count)),
        _ => {
            put(to, 0, shifted(eight(n / EIGHT % EIGHT), 16 - count.min(16)));
            put(to, count.min(16) - 8, eight(n % EIGHT));
        }
    }
}

/// Up to eight digits, the first not zero unless it is the only one.
#[inline(always)]
fn write_first(to: &mut [u8; 24], n: u64) -> usize {
    let digits = values(n);
    // Whole bytes of zeros; the last digit stands whatever it is.
    let zeros = (digits | 1 << 56).trailing_zeros() as usize / 8;
    put(to, 0, shifted(digits | ZEROS, zeros));
    8 - zeros
}

#[inline(always)]
fn put(to: &mut [u8; 24], at: usize, text: u64) {
    if let Some(to) = to.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *to = text.to_le_bytes();
    }
}

/// Without so many digits in front.
#[inline(always)]
const fn shifted(text: u64, digits: usize) -> u64 {
    text >> ((digits * 8) & 63)
}

/// Eight digits of a number below 10^8, the first one in the lowest byte.
#[inline(always)]
pub(crate) const fn eight(n: u64) -> u64 {
    values(n) | ZEROS
}

/// The digits as numbers. Each step splits all lanes into their upper and lower half: n / 100 is n * 10486 / 2^20 up to
/// 43,698, and n / 10 is n * 103 / 2^10 up to 178.
#[inline(always)]
const fn values(n: u64) -> u64 {
    let (high, low) = (n / 10_000, n % 10_000);
    let fours = high | low << 32;
    let hundreds = (fours * 10_486) >> 20 & 0x7f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{format, string::ToString};

    #[test]
    fn every_number_of_four_digits_in_both_halves() {
        for n in 0..10_000 {
            for n in [n, n * 10_000, n * 10_000 + 9_999] {
                assert_eq!(eight(n).to_le_bytes().as_slice(), format!("{n:08}").as_bytes());
            }
        }
    }

    fn is_written(n: u64) {
        let mut to = [b'x'; 24];
        let len = write(&mut to, n);
        assert_eq!(&to[..len], n.to_string().as_bytes());
        for count in 1..=16 {
            let last = n % POWERS[count];
            write_exactly(&mut to, last, count);
            assert_eq!(&to[..count], format!("{last:0count$}").as_bytes());
        }
    }

    #[test]
    fn numbers_around_every_power_of_ten_and_of_two() {
        for power in POWERS.into_iter().chain([10u64.pow(17), 10u64.pow(18), 10u64.pow(19)]) {
            [power - 1, power, power + 1].into_iter().for_each(is_written);
        }
        (0..64).for_each(|bit| [(1 << bit) - 1, 1 << bit, u64::MAX >> bit].into_iter().for_each(is_written));
    }

    proptest::proptest! {
        #[test]
        fn any_number(n: u64, shift in 0u32..64) {
            is_written(n >> shift);
        }
    }
}
