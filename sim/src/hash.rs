//! One hash over the changes of a transaction, computed from descriptions on one side and from what the
//! sink was handed on the other. The two share nothing but this file.

/// 64 bits that every bit of what was mixed in has changed, by folded multiplication. Not for strangers'
/// input: nobody here looks for collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Bytes with their length, under a tag.
    pub fn bytes(&mut self, tag: u8, bytes: &[u8]) {
        // Sixteen at a time: the simulator hashes every byte of every value twice.
        let (chunks, rest) = bytes.as_chunks::<16>();
        for chunk in chunks {
            let word = u128::from_le_bytes(*chunk);
            self.mix(word as u64, (word >> 64) as u64);
        }
        let last = rest.iter().rev().fold(0_u128, |word, byte| word << 8 | u128::from(*byte));
        self.mix(last as u64, (last >> 64) as u64);
        self.mix(u64::from(tag), bytes.len() as u64);
    }

    /// A number under a tag.
    pub fn number(&mut self, tag: u8, number: u64) {
        self.mix(u64::from(tag) << 32 | 8, number);
    }

    const fn mix(&mut self, a: u64, b: u64) {
        let product = (a ^ self.0) as u128 * (b ^ 0x9e37_79b9_7f4a_7c15) as u128;
        // The state goes in again, so that a factor of zero forgets nothing.
        self.0 = self.0.rotate_left(23) ^ product as u64 ^ (product >> 64) as u64;
    }
}

/// Tags of values and items.
pub mod tag {
    #![allow(missing_docs, reason = "each is what it is named after")]
    pub const NULL: u8 = 0;
    pub const INT: u8 = 1;
    pub const UINT: u8 = 2;
    pub const DOUBLE: u8 = 3;
    pub const TEXT: u8 = 4;
    pub const BLOB: u8 = 5;
    pub const ENUM: u8 = 6;
    pub const OTHER: u8 = 7;
    pub const INSERT: u8 = 10;
    pub const UPDATE: u8 = 11;
    pub const DELETE: u8 = 12;
    pub const SCHEMA_CHANGE: u8 = 13;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_its_place_and_its_tag_count() {
        let of = |tag, bytes: &[u8]| {
            let mut hash = Hash::default();
            hash.bytes(tag, bytes);
            hash.0
        };
        let mut seen = std::collections::BTreeSet::new();
        for len in 0..70 {
            let zeros = vec![0; len];
            assert!(seen.insert(of(1, &zeros)));
            assert!(seen.insert(of(2, &zeros)));
            for at in 0..len {
                let mut one = zeros.clone();
                one[at] = 1;
                assert!(seen.insert(of(1, &one)), "{len} {at}");
            }
        }
    }
}
