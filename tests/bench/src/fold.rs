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
        self.state = self.state.rotate_left(23).wrapping_add(word.wrapping_mul(K));
    }

    /// A decimal: its digits as an integer, scale and all.
    #[inline]
    pub fn digits(&mut self, digits: i128) {
        self.word(digits as u64);
        self.word((digits >> 64) as u64);
    }

    /// Bytes: every one of them, eight at a time in four lanes. The last block lies over the one before it, so that
    /// none is of another size.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut lanes = [1u64, 2, 3, 4];
        let mut block = |words: [&[u8; 8]; 4]| {
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(K);
            }
        };
        if let Some(last) = bytes.last_chunk::<32>() {
            for all in bytes.as_chunks::<32>().0 {
                block(words(all));
            }
            block(words(last));
        } else if let (Some(first), Some(last)) = (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
            let ([a, b], [c, d]) = (two(first), two(last));
            block([a, b, c, d]);
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            block([first, last, first, last]);
        } else {
            let word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            lanes[0] ^= word;
        }
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

#[inline(always)]
fn words(block: &[u8; 32]) -> [&[u8; 8]; 4] {
    let ([a, b, c, d], []) = block.as_chunks::<8>() else { unreachable!() };
    [a, b, c, d]
}

#[inline(always)]
fn two(half: &[u8; 16]) -> [&[u8; 8]; 2] {
    let ([a, b], []) = half.as_chunks::<8>() else { unreachable!() };
    [a, b]
}

/// Microseconds since 1970 of a date and time (H. Hinnant, `days_from_civil`, for years after 0).
#[inline]
pub fn micros(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8, micros: u32) -> u64 {
    let year = u32::from(year) - u32::from(month <= 2);
    let from_march = u32::from(month) + if month > 2 { 0 } else { 12 } - 3;
    let century = year / 100;
    let days = year * 1461 / 4 - century + century / 4 + (153 * from_march + 2) / 5 + u32::from(day);
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
