//! Strings: text with its collation, binary strings, ENUM and SET.

use alloc::{borrow::Cow, string::String, vec::Vec};
use core::fmt;

use super::charset::Charset;
use super::table::Labels;

/// A CHAR, VARCHAR or TEXT value: bytes in the character set of its collation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    bytes: &'a [u8],
    collation: Option<u16>,
    charset: Option<Charset>,
}

/// Why text cannot be shown as UTF-8. Its bytes are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// The source did not say the collation, or it is one this version does not know.
    #[error("the character set is not known")]
    UnknownCollation,
    /// The bytes are not valid in their character set.
    #[error("the bytes are not valid in their character set")]
    Invalid,
}

impl<'a> Text<'a> {
    /// Text of a collation id; `None`: the source did not say.
    #[must_use]
    pub fn new(bytes: &'a [u8], collation: Option<u16>) -> Self {
        Self { bytes, collation, charset: collation.and_then(Charset::of_collation) }
    }

    /// Text of a column, whose character set was looked up before.
    #[inline]
    pub(crate) const fn of_column(bytes: &'a [u8], collation: Option<u16>, charset: Option<Charset>) -> Self {
        Self { bytes, collation, charset }
    }

    /// The bytes as the server stores them.
    #[must_use]
    #[inline]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The collation id, where the source wrote it.
    #[must_use]
    #[inline]
    pub const fn collation(self) -> Option<u16> {
        self.collation
    }

    /// The character set, where the source wrote the collation and it is a known one.
    #[must_use]
    #[inline]
    pub const fn charset(self) -> Option<Charset> {
        self.charset
    }

    /// The text in UTF-8; borrowed where the bytes already are.
    ///
    /// # Errors
    /// [`NotText`] says why it cannot be.
    #[inline]
    pub fn to_str(self) -> Result<Cow<'a, str>, NotText> {
        let charset = self.charset.ok_or(NotText::UnknownCollation)?;
        charset.to_utf8(self.bytes).map_err(|_| NotText::Invalid)
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.bytes.len())
    }
}

/// A BINARY or VARBINARY value.
///
/// The server leaves the trailing zero bytes of BINARY(N) out of the binlog; here they are back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Binary<'a> {
    bytes: &'a [u8],
    pad_to: u16,
}

impl<'a> Binary<'a> {
    /// A value of BINARY(`pad_to`), or of VARBINARY with 0.
    #[must_use]
    pub const fn new(bytes: &'a [u8], pad_to: u16) -> Self {
        Self { bytes, pad_to }
    }

    /// The bytes in the row, without the zero bytes that pad a BINARY.
    #[must_use]
    #[inline]
    pub const fn stored(self) -> &'a [u8] {
        self.bytes
    }

    /// N of BINARY(N); 0 for VARBINARY.
    #[must_use]
    pub const fn pad_to(self) -> u16 {
        self.pad_to
    }

    /// How many zero bytes follow [`Binary::stored`].
    #[must_use]
    pub fn padding(self) -> usize {
        usize::from(self.pad_to).saturating_sub(self.bytes.len())
    }

    /// The value, padded; borrowed where nothing is to be padded.
    #[must_use]
    pub fn to_bytes(self) -> Cow<'a, [u8]> {
        match self.padding() {
            0 => Cow::Borrowed(self.bytes),
            n => {
                let mut all = Vec::with_capacity(usize::from(self.pad_to));
                all.extend_from_slice(self.bytes);
                all.extend(core::iter::repeat_n(0, n));
                Cow::Owned(all)
            }
        }
    }
}

impl fmt::Debug for Binary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binary({} bytes)", self.bytes.len())
    }
}

/// An ENUM value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Enum<'a> {
    index: u16,
    labels: &'a Labels,
}

impl<'a> Enum<'a> {
    /// Member `index` of `labels`, the first being 1; 0 is the error value. `None` if there is no
    /// such member.
    #[must_use]
    #[inline]
    pub fn new(index: u16, labels: &'a Labels) -> Option<Self> {
        let known = labels.count().is_none_or(|count| usize::from(index) <= count);
        known.then_some(Self { index, labels })
    }

    /// The member's number; 0 is the error value the server stores for what is no member when
    /// `sql_mode` is not strict.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u16 {
        self.index
    }

    /// The label; the empty text for the error value; `None` where the source did not write labels.
    #[must_use]
    pub fn label(self) -> Option<Text<'a>> {
        self.labels.count()?;
        let bytes = match self.index.checked_sub(1) {
            None => &[],
            Some(at) => self.labels.get(usize::from(at))?,
        };
        Some(Text::new(bytes, self.labels.collation()))
    }
}

impl fmt::Debug for Enum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Enum")
    }
}

/// A SET value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    bits: u64,
    labels: &'a Labels,
}

impl<'a> Set<'a> {
    /// The members of `labels` whose bits are set, the first being bit 0; `None` if a bit has no
    /// member.
    #[must_use]
    #[inline]
    pub fn new(bits: u64, labels: &'a Labels) -> Option<Self> {
        let known = labels.count().is_none_or(|count| {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            bits.checked_shr(count).unwrap_or(0) == 0
        });
        known.then_some(Self { bits, labels })
    }

    /// One bit per member.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The labels of the members that are set, in the order of the declaration; `None` where the
    /// source did not write labels.
    #[must_use]
    pub fn labels(self) -> Option<impl Iterator<Item = Text<'a>>> {
        let labels = self.labels;
        let members = (0..labels.count()?).zip(0u32..64);
        let set = members.filter(move |(_, bit)| self.bits >> bit & 1 == 1);
        Some(set.filter_map(move |(at, _)| Some(Text::new(labels.get(at)?, labels.collation()))))
    }

    /// The labels joined with commas, as the server prints a SET.
    ///
    /// # Errors
    /// [`NotText::UnknownCollation`] also where the source did not write labels.
    #[inline]
    pub fn to_str(self) -> Result<Cow<'a, str>, NotText> {
        let mut labels = self.labels().ok_or(NotText::UnknownCollation)?;
        let Some(first) = labels.next() else { return Ok(Cow::Borrowed("")) };
        let first = first.to_str()?;
        let Some(second) = labels.next() else { return Ok(first) };
        let mut all: String = first.into_owned();
        for label in core::iter::once(second).chain(labels) {
            all.push(',');
            all.push_str(&label.to_str()?);
        }
        Ok(Cow::Owned(all))
    }
}

impl<'a> Set<'a> {
    /// The labels joined with commas, in the character set of the column: what [`Set::to_str`] has no
    /// text for. `None` where the source did not write labels.
    #[must_use]
    pub fn to_bytes(self) -> Option<Cow<'a, [u8]>> {
        let mut labels = self.labels()?;
        let Some(first) = labels.next() else { return Some(Cow::Borrowed(&[])) };
        let mut all = Cow::Borrowed(first.as_bytes());
        for label in labels {
            let all = all.to_mut();
            all.extend_from_slice(comma(label.charset()));
            all.extend_from_slice(label.as_bytes());
        }
        Some(all)
    }
}

const fn comma(charset: Option<Charset>) -> &'static [u8] {
    match charset {
        Some(Charset::Ucs2 | Charset::Utf16) => &[0, b','],
        Some(Charset::Utf16le) => &[b',', 0],
        Some(Charset::Utf32) => &[0, 0, 0, b','],
        _ => b",",
    }
}

impl fmt::Debug for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Set")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8MB4: Option<u16> = Some(255);
    const LATIN1: Option<u16> = Some(8);
    const BINARY: Option<u16> = Some(63);
    const UTF16: Option<u16> = Some(54);

    fn labels(members: &[&[u8]], collation: Option<u16>) -> Labels {
        Labels::new(members.iter().copied(), collation)
    }

    #[test]
    fn text_is_utf8_on_demand_or_said_not_to_be() {
        for (bytes, collation, want) in [
            (&[0x61, 0xc3, 0xa9][..], UTF8MB4, Ok("aé")),
            (&[0x61, 0xe9], LATIN1, Ok("aé")),
            (&[0x61, 0xe9], UTF8MB4, Err(NotText::Invalid)),
            (&[0x61], BINARY, Err(NotText::Invalid)),
            (&[0x61], None, Err(NotText::UnknownCollation)),
            (&[0x61], Some(9_999), Err(NotText::UnknownCollation)),
        ] {
            let text = Text::new(bytes, collation);
            assert_eq!(text.to_str(), want.map(Cow::from), "{bytes:02x?} {collation:?}");
            assert_eq!(text.as_bytes(), bytes);
        }
    }

    #[test]
    fn binary_strings_are_padded_to_their_column() {
        for (stored, pad_to, want) in [
            (&[1, 2][..], 4, &[1, 2, 0, 0][..]),
            (&[], 2, &[0, 0]),
            (&[1, 2], 2, &[1, 2]),
            (&[1, 2, 0], 0, &[1, 2, 0]),
        ] {
            let binary = Binary::new(stored, pad_to);
            assert_eq!((binary.to_bytes(), binary.stored()), (Cow::Borrowed(want), stored));
        }
    }

    #[test]
    fn enum_indexes_have_a_label_or_are_no_value() {
        let two = labels(&[b"x", b"y"], UTF8MB4);
        for (index, want) in [(0, Some("")), (1, Some("x")), (2, Some("y")), (3, None), (u16::MAX, None)] {
            let label = Enum::new(index, &two).map(|e| e.label().unwrap().to_str().unwrap());
            assert_eq!(label.as_deref(), want, "{index}");
        }
        let unknown = Labels::unknown(None);
        let value = Enum::new(7, &unknown).unwrap();
        assert_eq!((value.index(), value.label()), (7, None));
    }

    #[test]
    fn set_bits_have_members_or_are_no_value() {
        let three = labels(&[b"p", b"q", b"r"], LATIN1);
        for (bits, want) in [(0, Some("")), (0b101, Some("p,r")), (0b111, Some("p,q,r")), (0b1000, None)] {
            let text = Set::new(bits, &three).map(|s| s.to_str().unwrap().into_owned());
            assert_eq!(text.as_deref(), want, "{bits:b}");
        }
        let sixty_four: std::vec::Vec<&[u8]> = std::vec![b"m"; 64];
        assert!(Set::new(u64::MAX, &labels(&sixty_four, LATIN1)).is_some());
        assert!(Set::new(u64::MAX, &labels(&sixty_four[1..], LATIN1)).is_none());
    }

    #[test]
    fn set_text_is_joined_in_its_own_character_set() {
        let wide = labels(&[&[0, b'p'], &[0, b'q']], UTF16);
        let set = Set::new(3, &wide).unwrap();
        assert_eq!(set.to_str().unwrap(), "p,q");
        assert_eq!(set.to_bytes().unwrap(), Cow::Borrowed(&[0, b'p', 0, b',', 0, b'q'][..]));
        let binary = labels(&[&[0xff], &[0xfe]], BINARY);
        let set = Set::new(3, &binary).unwrap();
        assert_eq!(set.to_str(), Err(NotText::Invalid));
        assert_eq!(set.to_bytes().unwrap(), Cow::Borrowed(&[0xff, b',', 0xfe][..]));
        let unknown = Labels::unknown(None);
        assert_eq!(Set::new(3, &unknown).unwrap().to_bytes(), None);
    }

    #[test]
    fn debug_shows_no_value() {
        let secret = labels(&[b"secret"], UTF8MB4);
        for said in [
            std::format!("{:?}", Text::new(b"secret", UTF8MB4)),
            std::format!("{:?}", Binary::new(b"secret", 0)),
            std::format!("{:?}", Enum::new(1, &secret).unwrap()),
            std::format!("{:?}", Set::new(1, &secret).unwrap()),
            std::format!("{secret:?}"),
        ] {
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
