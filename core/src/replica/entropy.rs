//! Randomness from a seed that was given.

use sha2::{Digest as _, Sha256};

/// A stream of numbers from a 32-byte seed. Good for jitter, marks and padding seeds.
pub(super) struct Entropy {
    seed: [u8; 32],
    drawn: u64,
}

impl Entropy {
    pub(super) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    /// 32 fresh bytes.
    pub(super) fn bytes(&mut self) -> [u8; 32] {
        self.drawn = self.drawn.wrapping_add(1);
        let mut hash = Sha256::new();
        hash.update(b"capstan entropy 1");
        hash.update(self.seed);
        hash.update(self.drawn.to_le_bytes());
        hash.finalize().into()
    }

    /// A fresh number.
    pub(super) fn number(&mut self) -> u64 {
        let bytes = self.bytes();
        bytes.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b))
    }

    /// A number from 0 to `end` inclusive.
    pub(super) fn upto(&mut self, end: u64) -> u64 {
        match end.checked_add(1) {
            Some(n) => self.number() % n,
            None => self.number(),
        }
    }
}
