//! The checksum that every decoder's values go into: equal folds mean that all saw the same values.

/// An order-sensitive fold, cheap enough not to hide what it measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    state: u64,
    /// Row images folded.
    pub images: u64,
}

const K: u64 = 0x9e37_79b9_7f4a_7c15;

impl Fold {
    /// An integer, the bits of a float, microseconds.
    #[inline]
    pub fn word(&mut self, word: u64) {
        // The product waits for nothing before it: only the sum is one behind the other.
        self.state = self.state.rotate_left(23).wrapping_add((word ^ word >> 32).wrapping_mul(K));
    }

    /// A decimal: its digits as an integer, scale and all.
    #[inline]
    pub fn digits(&mut self, digits: i128) {
        self.word(digits as u64);
        self.word((digits >> 64) as u64);
    }

    /// Bytes: every one of them, eight at a time in four lanes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut lanes = [1u64, 2, 3, 4];
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(K);
            }
        }
        let (words, tail) = rest.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(K);
        }
        // The last eight bytes, some of them for the second time: no copy of a few bytes.
        let last = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last),
            None => tail.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        lanes[3] = (lanes[3] ^ last).wrapping_mul(K);
        let [a, b, c, d] = lanes;
        self.word(a ^ b.rotate_left(13) ^ c.rotate_left(29) ^ d.rotate_left(47) ^ bytes.len() as u64);
    }

    /// NULL.
    #[inline]
    pub fn null(&mut self) {
        self.word(0x6e75_6c6c);
    }

    /// The row image is over.
    #[inline]
    pub fn image(&mut self) {
        self.images += 1;
    }
}

/// Microseconds since 1970 of a date and time (H. Hinnant, `days_from_civil`, for years after 0).
#[inline]
pub fn micros(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8, micros: u32) -> u64 {
    let year = u32::from(year) - u32::from(month <= 2);
    let from_march = u32::from(month) + if month > 2 { 0 } else { 12 } - 3;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5 + u32::from(day);
    let of_day = (u32::from(hour) * 60 + u32::from(minute)) * 60 + u32::from(second);
    let days = i64::from(days) - 719_469;
    ((days * 86_400 + i64::from(of_day)) * 1_000_000 + i64::from(micros)) as u64
}

/// The digits of a decimal in text, as an integer.
pub fn digits_of_text(text: &[u8]) -> i128 {
    let mut digits = 0i128;
    for byte in text {
        if byte.is_ascii_digit() {
            digits = digits * 10 + i128::from(byte - b'0');
        }
    }
    if text.first() == Some(&b'-') { -digits } else { digits }
}
