//! MySQL's character sets and collations, and text in them as UTF-8.
//!
//! What a server's `CONVERT(… USING utf8mb4)` gives is what comes out here, with one difference: where
//! the server has no character for some bytes it gives `?`, and here the whole text is [`Invalid`], so
//! that its bytes can be shown instead and nothing is lost.

use alloc::borrow::Cow;
use alloc::string::String;

mod collations;
mod multi_byte;
mod multi_byte_tables;
mod single_byte;
#[cfg(test)]
mod tests;

/// The bytes are no text in their character set: they are malformed, or some of them stand for no
/// character that Unicode has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no text in their character set")]
pub struct Invalid;

/// A character set, under MySQL's own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Charset {
    Armscii8,
    Ascii,
    Big5,
    Binary,
    Cp1250,
    Cp1251,
    Cp1256,
    Cp1257,
    Cp850,
    Cp852,
    Cp866,
    Cp932,
    Dec8,
    Eucjpms,
    Euckr,
    Gb18030,
    Gb2312,
    Gbk,
    Geostd8,
    Greek,
    Hebrew,
    Hp8,
    Keybcs2,
    Koi8r,
    Koi8u,
    Latin1,
    Latin2,
    Latin5,
    Latin7,
    Macce,
    Macroman,
    Sjis,
    Swe7,
    Tis620,
    Ucs2,
    Ujis,
    Utf16,
    Utf16le,
    Utf32,
    Utf8mb3,
    Utf8mb4,
}

/// A collation: how text of one character set compares. Binlogs name a column's character set by the
/// id of its collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collation {
    /// `ID` in `information_schema.COLLATIONS`.
    pub id: u16,
    /// The character set it belongs to.
    pub charset: Charset,
    /// MySQL 9.7's name (earlier servers wrote `utf8_…` for `utf8mb3_…`).
    pub name: &'static str,
}

impl Collation {
    /// The collation `id`, if MySQL 9.7 has it.
    #[must_use]
    pub fn by_id(id: u16) -> Option<&'static Self> {
        let at = collations::COLLATIONS.binary_search_by_key(&id, |collation| collation.id).ok()?;
        collations::COLLATIONS.get(at)
    }

    /// All of them, in order of their ids.
    #[must_use]
    pub fn all() -> &'static [Self] {
        collations::COLLATIONS
    }
}

impl Charset {
    /// Every character set, in order of their names.
    pub const ALL: [Self; 41] = [
        Self::Armscii8,
        Self::Ascii,
        Self::Big5,
        Self::Binary,
        Self::Cp1250,
        Self::Cp1251,
        Self::Cp1256,
        Self::Cp1257,
        Self::Cp850,
        Self::Cp852,
        Self::Cp866,
        Self::Cp932,
        Self::Dec8,
        Self::Eucjpms,
        Self::Euckr,
        Self::Gb18030,
        Self::Gb2312,
        Self::Gbk,
        Self::Geostd8,
        Self::Greek,
        Self::Hebrew,
        Self::Hp8,
        Self::Keybcs2,
        Self::Koi8r,
        Self::Koi8u,
        Self::Latin1,
        Self::Latin2,
        Self::Latin5,
        Self::Latin7,
        Self::Macce,
        Self::Macroman,
        Self::Sjis,
        Self::Swe7,
        Self::Tis620,
        Self::Ucs2,
        Self::Ujis,
        Self::Utf16,
        Self::Utf16le,
        Self::Utf32,
        Self::Utf8mb3,
        Self::Utf8mb4,
    ];

    /// The character set of collation `id`, if MySQL 9.7 has it.
    #[must_use]
    pub fn of_collation(id: u16) -> Option<Self> {
        Collation::by_id(id).map(|collation| collation.charset)
    }

    /// MySQL's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Armscii8 => "armscii8",
            Self::Ascii => "ascii",
            Self::Big5 => "big5",
            Self::Binary => "binary",
            Self::Cp1250 => "cp1250",
            Self::Cp1251 => "cp1251",
            Self::Cp1256 => "cp1256",
            Self::Cp1257 => "cp1257",
            Self::Cp850 => "cp850",
            Self::Cp852 => "cp852",
            Self::Cp866 => "cp866",
            Self::Cp932 => "cp932",
            Self::Dec8 => "dec8",
            Self::Eucjpms => "eucjpms",
            Self::Euckr => "euckr",
            Self::Gb18030 => "gb18030",
            Self::Gb2312 => "gb2312",
            Self::Gbk => "gbk",
            Self::Geostd8 => "geostd8",
            Self::Greek => "greek",
            Self::Hebrew => "hebrew",
            Self::Hp8 => "hp8",
            Self::Keybcs2 => "keybcs2",
            Self::Koi8r => "koi8r",
            Self::Koi8u => "koi8u",
            Self::Latin1 => "latin1",
            Self::Latin2 => "latin2",
            Self::Latin5 => "latin5",
            Self::Latin7 => "latin7",
            Self::Macce => "macce",
            Self::Macroman => "macroman",
            Self::Sjis => "sjis",
            Self::Swe7 => "swe7",
            Self::Tis620 => "tis620",
            Self::Ucs2 => "ucs2",
            Self::Ujis => "ujis",
            Self::Utf16 => "utf16",
            Self::Utf16le => "utf16le",
            Self::Utf32 => "utf32",
            Self::Utf8mb3 => "utf8mb3",
            Self::Utf8mb4 => "utf8mb4",
        }
    }

    /// The character set of that name, in any case; `utf8` is utf8mb3, as in MySQL 9.7.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
        Self::ALL.into_iter().find(|charset| charset.name().eq_ignore_ascii_case(name))
    }

    /// The text that `bytes` stand for; borrowed where they are UTF-8 already.
    ///
    /// # Errors
    /// [`Invalid`], always so for [`Charset::Binary`], whose bytes are no text.
    pub fn to_utf8(self, bytes: &[u8]) -> Result<Cow<'_, str>, Invalid> {
        to_utf8(self, bytes)
    }
}

/// The text that `bytes` in `charset` stand for; borrowed where they are UTF-8 already.
///
/// # Errors
/// [`Invalid`], always so for [`Charset::Binary`], whose bytes are no text.
pub fn to_utf8(charset: Charset, bytes: &[u8]) -> Result<Cow<'_, str>, Invalid> {
    match charset {
        Charset::Utf8mb4 | Charset::Utf8mb3 => utf8(bytes),
        Charset::Binary => Err(Invalid),
        Charset::Ascii => {
            if bytes.is_ascii() {
                utf8(bytes)
            } else {
                Err(Invalid)
            }
        }
        Charset::Swe7 => characters(bytes, bytes.iter().map(|&byte| swe7(byte))),
        Charset::Ucs2 => two_bytes(bytes, |unit| char::from_u32(unit.into())),
        Charset::Utf16 => utf16(bytes, u16::from_be_bytes),
        Charset::Utf16le => utf16(bytes, u16::from_le_bytes),
        Charset::Utf32 => utf32(bytes),
        Charset::Big5
        | Charset::Cp932
        | Charset::Eucjpms
        | Charset::Euckr
        | Charset::Gb18030
        | Charset::Gb2312
        | Charset::Gbk
        | Charset::Sjis
        | Charset::Ujis => {
            if bytes.is_ascii() {
                utf8(bytes)
            } else {
                multi_byte::decode(charset, bytes)
            }
        }
        Charset::Armscii8
        | Charset::Cp1250
        | Charset::Cp1251
        | Charset::Cp1256
        | Charset::Cp1257
        | Charset::Cp850
        | Charset::Cp852
        | Charset::Cp866
        | Charset::Dec8
        | Charset::Geostd8
        | Charset::Greek
        | Charset::Hebrew
        | Charset::Hp8
        | Charset::Keybcs2
        | Charset::Koi8r
        | Charset::Koi8u
        | Charset::Latin1
        | Charset::Latin2
        | Charset::Latin5
        | Charset::Latin7
        | Charset::Macce
        | Charset::Macroman
        | Charset::Tis620 => {
            if bytes.is_ascii() {
                utf8(bytes)
            } else {
                one_byte(charset, bytes)
            }
        }
    }
}

#[inline]
fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, Invalid> {
    simdutf8::basic::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| Invalid)
}

/// Collects characters; `None` among them is a byte without one.
fn characters(bytes: &[u8], found: impl Iterator<Item = Option<char>>) -> Result<Cow<'static, str>, Invalid> {
    let mut text = String::with_capacity(bytes.len());
    for character in found {
        text.push(character.ok_or(Invalid)?);
    }
    Ok(Cow::Owned(text))
}

fn one_byte(charset: Charset, bytes: &[u8]) -> Result<Cow<'static, str>, Invalid> {
    let upper = single_byte::upper_half(charset).ok_or(Invalid)?;
    characters(
        bytes,
        bytes.iter().map(|&byte| match upper.get(usize::from(byte).wrapping_sub(0x80)) {
            None => Some(char::from(byte)),
            Some(0) => None,
            Some(&unit) => char::from_u32(unit.into()),
        }),
    )
}

/// Swedish ISO 646 puts letters where ASCII has brackets, and ends at 0x7e.
const fn swe7(byte: u8) -> Option<char> {
    Some(match byte {
        0x40 => 'É',
        0x5b => 'Ä',
        0x5c => 'Ö',
        0x5d => 'Å',
        0x5e => 'Ü',
        0x60 => 'é',
        0x7b => 'ä',
        0x7c => 'ö',
        0x7d => 'å',
        0x7e => 'ü',
        0x00..0x7f => byte as char,
        0x7f..=0xff => return None,
    })
}

/// UCS-2 knows no surrogates, and so no characters beyond U+FFFF.
fn two_bytes(bytes: &[u8], character: impl Fn(u16) -> Option<char>) -> Result<Cow<'static, str>, Invalid> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Invalid);
    }
    characters(bytes, units.iter().map(|&unit| character(u16::from_be_bytes(unit))))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Cow<'static, str>, Invalid> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Invalid);
    }
    let units = units.iter().map(|&bytes| unit(bytes));
    characters(bytes, char::decode_utf16(units).map(Result::ok))
}

fn utf32(bytes: &[u8]) -> Result<Cow<'static, str>, Invalid> {
    let (units, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Invalid);
    }
    characters(bytes, units.iter().map(|&unit| char::from_u32(u32::from_be_bytes(unit))))
}
