//! The UUID of a server.

use core::fmt;
use core::str::FromStr;

/// The UUID of a server (`@@server_uuid`), in the byte order of its text.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

/// The text is no UUID in any of the three spellings MySQL reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID")]
pub struct UuidError;

impl Uuid {
    /// Reads the three spellings of `libs/mysql/gtid/uuid.h`, any case: canonical (36 characters, four
    /// dashes), canonical in braces, and 32 digits without dashes.
    pub fn from_bytes(text: &[u8]) -> Result<Self, UuidError> {
        match text {
            [b'{', inner @ .., b'}'] => Self::read(inner, &[4, 2, 2, 2, 6]),
            _ if text.len() == 32 => Self::read(text, &[16]),
            _ => Self::read(text, &[4, 2, 2, 2, 6]),
        }
        .ok_or(UuidError)
    }

    fn read(text: &[u8], sections: &[usize]) -> Option<Self> {
        let mut digits = Digits { text, uuid: Self::default(), filled: 0 };
        for (i, bytes) in sections.iter().enumerate() {
            if i > 0 {
                digits.dash()?;
            }
            digits.section(*bytes)?;
        }
        digits.text.is_empty().then_some(digits.uuid)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In one piece: sets are written at every dial, and a formatter per byte costs ten times as much.
        let hex = |digit: u8| if digit < 10 { b'0' | digit } else { b'W'.wrapping_add(digit) };
        let mut text = [b'-'; 36];
        let mut digits = self.0.iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]);
        for (i, place) in text.iter_mut().enumerate() {
            if !matches!(i, 8 | 13 | 18 | 23) {
                *place = digits.next().unwrap_or(b'0');
            }
        }
        f.write_str(core::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = UuidError;

    /// As [`Uuid::from_bytes`].
    fn from_str(text: &str) -> Result<Self, UuidError> {
        Self::from_bytes(text.as_bytes())
    }
}

/// Hexadecimal digits being read into a UUID.
struct Digits<'a> {
    text: &'a [u8],
    uuid: Uuid,
    filled: usize,
}

impl Digits<'_> {
    fn section(&mut self, bytes: usize) -> Option<()> {
        for _ in 0..bytes {
            let ([high, low], rest) = self.text.split_first_chunk::<2>()?;
            let byte = nibble(*high)? << 4 | nibble(*low)?;
            *self.uuid.0.get_mut(self.filled)? = byte;
            self.filled = self.filled.checked_add(1)?;
            self.text = rest;
        }
        Some(())
    }

    fn dash(&mut self) -> Option<()> {
        let (b'-', rest) = self.text.split_first()? else { return None };
        self.text = rest;
        Some(())
    }
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(digit.wrapping_sub(b'a').wrapping_add(10)),
        b'A'..=b'F' => Some(digit.wrapping_sub(b'A').wrapping_add(10)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn three_spellings_one_canonical_text() {
        let want = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        for text in [
            want,
            "3E11FA47-71CA-11E1-9E33-C80AA9429562",
            "{3e11fa47-71ca-11e1-9e33-c80aa9429562}",
            "3e11fa4771ca11e19e33c80aa9429562",
        ] {
            assert_eq!(text.parse::<Uuid>().map(|u| u.to_string()), Ok(want.to_string()), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "3e11fa47-71ca-11e1-9e33-c80aa942956",
            "3e11fa47-71ca-11e1-9e33-c80aa94295622",
            "3e11fa47+71ca-11e1-9e33-c80aa9429562",
            "3e11fa477-1ca-11e1-9e33-c80aa9429562",
            "{3e11fa47-71ca-11e1-9e33-c80aa9429562",
            "{3e11fa4771ca11e19e33c80aa9429562}",
            "3g11fa4771ca11e19e33c80aa9429562",
            "3e11fa47-71ca-11e1-9e33-c80aa942956é",
        ] {
            assert_eq!(text.parse::<Uuid>(), Err(UuidError), "{text}");
        }
    }
}
