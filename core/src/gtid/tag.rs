//! The tag of a tagged GTID.

use core::fmt;
use core::str::FromStr;

/// The tag of a GTID (MySQL 8.3): up to 32 letters, digits and underscores, no digit first; stored
/// in lower case, as the server normalises it. Empty means untagged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    // Padded with NUL, so that the derived order is the order of the texts.
    bytes: [u8; Self::LENGTH_MAX],
    length: u8,
}

/// The text is no tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a GTID tag")]
pub struct TagError;

impl Tag {
    /// The longest tag (`libs/mysql/gtid/gtid_constants.h`, `tag_max_length`).
    pub const LENGTH_MAX: usize = 32;

    /// No tag.
    pub const NONE: Self = Self { bytes: [0; Self::LENGTH_MAX], length: 0 };

    /// Whether there is no tag.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.length == 0
    }

    /// The text, lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let (text, _) = self.bytes.split_at_checked(usize::from(self.length)).unwrap_or_default();
        core::str::from_utf8(text).unwrap_or_default()
    }

    /// Reads a tag from bytes; empty bytes are [`Tag::NONE`].
    pub fn from_bytes(text: &[u8]) -> Result<Self, TagError> {
        let mut tag = Self::NONE;
        let slots = tag.bytes.get_mut(..text.len()).ok_or(TagError)?;
        for (i, (slot, byte)) in slots.iter_mut().zip(text).enumerate() {
            *slot = match byte {
                b'a'..=b'z' | b'_' => *byte,
                b'A'..=b'Z' => byte.to_ascii_lowercase(),
                b'0'..=b'9' if i > 0 => *byte,
                _ => return Err(TagError),
            };
        }
        tag.length = u8::try_from(text.len()).map_err(|_| TagError)?;
        Ok(tag)
    }
}

impl Default for Tag {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({})", self.as_str())
    }
}

impl FromStr for Tag {
    type Err = TagError;

    /// Reads a tag, any case; the empty text is [`Tag::NONE`].
    fn from_str(text: &str) -> Result<Self, TagError> {
        Self::from_bytes(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_digits_underscores_up_to_32_and_lower_case() {
        for (text, want) in [
            ("", Ok("")),
            ("a", Ok("a")),
            ("_", Ok("_")),
            ("Domain_1", Ok("domain_1")),
            ("abcdefghijklmnopqrstuvwxyz_12345", Ok("abcdefghijklmnopqrstuvwxyz_12345")),
            ("abcdefghijklmnopqrstuvwxyz_123456", Err(TagError)),
            ("1a", Err(TagError)),
            ("a-b", Err(TagError)),
            (" a", Err(TagError)),
            ("ä", Err(TagError)),
        ] {
            assert_eq!(text.parse::<Tag>().as_ref().map(Tag::as_str), want.as_ref().copied(), "{text}");
        }
    }

    #[test]
    fn the_order_is_that_of_the_texts() {
        let mut tags = ["b", "ab", "", "a", "a_", "a1"].map(|t| t.parse::<Tag>().unwrap());
        tags.sort();
        assert_eq!(tags.map(|t| std::string::String::from(t.as_str())), ["", "a", "a1", "a_", "ab", "b"]);
    }
}
