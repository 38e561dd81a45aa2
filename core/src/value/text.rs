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
    pub(crate) const fn of_column(bytes: &'a [u8], collation: Option<u16>, charset: Option<Charset>) -> Self {
        Self { bytes, collation, charset }
    }

    /// The bytes as the server stores them.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The collation id, where the source wrote it.
    #[must_use]
    pub const fn collation(self) -> Option<u16> {
        self.collation
    }

    /// The character set, where the source wrote the collation and it is a known one.
    #[must_use]
    pub const fn charset(self) -> Option<Charset> {
        self.charset
    }

    /// The text in UTF-8; borrowed where the bytes already are.
    ///
    /// # Errors
    /// [`NotText`] says why it cannot be.
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
        let known = labels.members().is_none_or(|m| usize::from(index) <= m.len());
        known.then_some(Self { index, labels })
    }

    /// The member's number; 0 is the error value the server stores for what is no member when
    /// `sql_mode` is not strict.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.index
    }

    /// The label; the empty text for the error value; `None` where the source did not write labels.
    #[must_use]
    pub fn label(self) -> Option<Text<'a>> {
        let members = self.labels.members()?;
        let bytes = match self.index.checked_sub(1) {
            None => &[],
            Some(at) => &**members.get(usize::from(at))?,
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
        let known = labels.members().is_none_or(|m| {
            let count = u32::try_from(m.len()).unwrap_or(u32::MAX);
            bits.checked_shr(count).unwrap_or(0) == 0
        });
        known.then_some(Self { bits, labels })
    }

    /// One bit per member.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The labels of the members that are set, in the order of the declaration; `None` where the
    /// source did not write labels.
    #[must_use]
    pub fn labels(self) -> Option<impl Iterator<Item = Text<'a>>> {
        let members = self.labels.members()?;
        let collation = self.labels.collation();
        let set = members.iter().zip(0u32..).filter(move |(_, bit)| self.bits >> (bit & 63) & 1 == 1);
        Some(set.map(move |(label, _)| Text::new(label, collation)))
    }

    /// The labels joined with commas, as the server prints a SET.
    ///
    /// # Errors
    /// [`NotText::UnknownCollation`] also where the source did not write labels.
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

impl fmt::Debug for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Set")
    }
}
