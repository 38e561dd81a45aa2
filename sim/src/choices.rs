//! The tape: every choice of a run, to record, replay and shrink.
//!
//! Nothing else in the simulator is random. **0 is the quiet choice** everywhere, so a tape that is cut
//! short or zeroed is a calmer run, and the empty tape is a run in which nothing happens.

/// Draws choices and remembers them.
#[derive(Clone, Debug)]
pub struct Choices {
    tape: Vec<u32>,
    at: usize,
    /// What a fuzzer chose, last byte first.
    bytes: Vec<u8>,
    /// `None`: past the end of the tape everything is 0.
    random: Option<u64>,
}

impl Choices {
    /// Choices from a seed, recorded.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { tape: Vec::new(), at: 0, bytes: Vec::new(), random: Some(seed ^ 0x5851_f42d_4c95_7f2d) }
    }

    /// Choices from a tape.
    #[must_use]
    pub const fn replay(tape: Vec<u32>) -> Self {
        Self { tape, at: 0, bytes: Vec::new(), random: None }
    }

    /// Choices from the bytes of a fuzzer, recorded: as many bytes for each as its bound needs.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.iter().rev().copied().collect(), ..Self::replay(Vec::new()) }
    }

    /// A number below `n`; 0 is quiet.
    pub fn below(&mut self, n: u32) -> u32 {
        if n <= 1 {
            return 0;
        }
        let drawn = match (self.tape.get(self.at), &mut self.random) {
            (Some(drawn), _) => *drawn % n,
            (None, Some(state)) => {
                let drawn = (next(state) >> 32) as u32 % n;
                self.tape.push(drawn);
                drawn
            }
            (None, None) if self.bytes.is_empty() => 0,
            (None, None) => {
                let drawn = self.byte_choice(n);
                self.tape.push(drawn);
                drawn
            }
        };
        self.at += 1;
        drawn
    }

    /// From as many bytes as `n` needs.
    fn byte_choice(&mut self, n: u32) -> u32 {
        let width = 4 - (n - 1).leading_zeros() / 8;
        (0..width).fold(0, |drawn, at| drawn | u32::from(self.bytes.pop().unwrap_or(0)) << (8 * at)) % n
    }

    /// Whether something happens that happens `numerator` times in `of`; quiet is no.
    pub fn chance(&mut self, numerator: u32, of: u32) -> bool {
        self.below(of) > of - 1 - numerator.min(of - 1)
    }

    /// One of these; quiet is the first.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// A number from `low` to `high` inclusive; quiet is `low`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        let span = u32::try_from(high - low).unwrap_or(u32::MAX - 1);
        low + u64::from(self.below(span + 1))
    }

    /// What was drawn so far.
    #[must_use]
    pub fn tape(&self) -> &[u32] {
        &self.tape[..self.at.min(self.tape.len())]
    }
}

/// splitmix64.
const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A tape as text: numbers of 7 bits a byte, in hex.
#[must_use]
pub fn to_hex(tape: &[u32]) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for number in tape {
        let mut rest = *number;
        loop {
            let more = if rest > 0x7f { 0x80 } else { 0 };
            let _ = write!(out, "{:02x}", rest & 0x7f | more);
            rest >>= 7;
            if rest == 0 {
                break;
            }
        }
    }
    out
}

/// Reads what [`to_hex`] writes.
#[must_use]
pub fn from_hex(text: &str) -> Option<Vec<u32>> {
    let text = text.trim().trim_start_matches("0x");
    let (mut tape, mut number, mut shift) = (Vec::new(), 0_u32, 0);
    for at in (0..text.len()).step_by(2) {
        let byte = u32::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        number |= (byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            tape.push(number);
            (number, shift) = (0, 0);
        }
    }
    Some(tape)
}

/// A seed from a number or from any text, such as the hash of a commit.
#[must_use]
pub fn seed_of(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| {
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_replays_and_is_quiet_behind_its_end() {
        let mut first = Choices::seeded(7);
        let drawn: Vec<u32> = (1..100).map(|n| first.below(n * 1000)).collect();
        let text = to_hex(first.tape());
        let mut again = Choices::replay(from_hex(&text).unwrap());
        assert_eq!((1..100).map(|n| again.below(n * 1000)).collect::<Vec<_>>(), drawn);
        assert_eq!((again.below(100), again.chance(99, 100), again.pick(&[1, 2])), (0, false, 1));
    }

    #[test]
    fn bytes_are_choices_of_their_bounds_width() {
        let mut choices = Choices::of_bytes(&[3, 0xff, 2, 1, 0x40, 0x42, 0x0f, 9]);
        let bounds = [4, 256, 1, 257, 2_000_000, 5, 5];
        let drawn = bounds.map(|n| choices.below(n));
        assert_eq!(drawn, [3, 255, 0, 1, 1_000_000, 4, 0]);
        let mut again = Choices::replay(choices.tape().to_vec());
        assert_eq!(bounds.map(|n| again.below(n)), drawn);
    }

    #[test]
    fn a_hash_is_a_seed() {
        assert_eq!(seed_of("39"), 39);
        assert_ne!(seed_of("1a2b3c4"), seed_of("1a2b3c5"));
    }
}
