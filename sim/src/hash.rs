//! One hash over the changes of a transaction, computed from descriptions on one side and from what the
//! sink was handed on the other. The two share nothing but this file.

/// FNV-1a, 64 bits.
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
        self.mix(u64::from(tag) << 32 | bytes.len() as u64);
        // Eight at a time: the simulator hashes every byte of every value twice.
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    /// A number under a tag.
    pub fn number(&mut self, tag: u8, number: u64) {
        self.mix(u64::from(tag) << 32 | 8);
        self.mix(number);
    }

    const fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
        self.0 ^= self.0 >> 29;
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
