//! Character sets of statements: how long a character is, and what a name is in UTF-8.
//!
//! MySQL's lexer walks a statement in the client's own character set (`use_mb`, `my_ismbchar` in
//! `sql/sql_lex.cc`), so a second byte that looks like a backtick or a backslash is none. Walking the
//! bytes the same way, and decoding only the names found, is exact also where the text around them
//! holds bytes that are no text at all (`_binary'…'`).

use alloc::borrow::ToOwned;
use alloc::string::String;

use encoding_rs::Encoding;

/// A client character set, as far as reading statements needs it. Character sets that are not
/// supersets of ASCII (ucs2, utf16, utf32) cannot be a client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    /// utf8mb3, utf8mb4, ascii, and binary, whose text the server takes for UTF-8 as it is.
    Utf8,
    Gbk,
    Gb18030,
    Big5,
    /// sjis and cp932: they differ in what a character means, not in how long it is.
    Sjis(bool),
    /// gb2312 and euckr: no second byte below 0x80 but letters.
    EucKr,
    Gb2312,
    /// ujis and eucjpms.
    EucJp(bool),
    /// One byte per character.
    Single(&'static Encoding),
    /// Unknown to us, or no superset of ASCII (swe7): names in plain letters are read, others refused.
    Unknown,
}

impl Charset {
    /// The character set of a collation id (`information_schema.COLLATIONS` of MySQL 9.7).
    pub(super) fn of_collation(id: u16) -> Self {
        match id {
            11 | 33 | 45 | 46 | 63 | 65 | 76 | 83 | 192..=215 | 223..=247 | 255..=323 => Self::Utf8,
            28 | 87 => Self::Gbk,
            248..=250 => Self::Gb18030,
            1 | 84 => Self::Big5,
            13 | 88 => Self::Sjis(false),
            95 | 96 => Self::Sjis(true),
            19 | 85 => Self::EucKr,
            24 | 86 => Self::Gb2312,
            12 | 91 => Self::EucJp(false),
            97 | 98 => Self::EucJp(true),
            5 | 8 | 15 | 31 | 47..=49 | 94 => Self::Single(encoding_rs::WINDOWS_1252),
            2 | 9 | 21 | 27 | 77 => Self::Single(encoding_rs::ISO_8859_2),
            26 | 34 | 44 | 66 | 99 => Self::Single(encoding_rs::WINDOWS_1250),
            14 | 23 | 50..=52 => Self::Single(encoding_rs::WINDOWS_1251),
            57 | 67 => Self::Single(encoding_rs::WINDOWS_1256),
            29 | 58 | 59 => Self::Single(encoding_rs::WINDOWS_1257),
            36 | 68 => Self::Single(encoding_rs::IBM866),
            25 | 70 => Self::Single(encoding_rs::ISO_8859_7),
            16 | 71 => Self::Single(encoding_rs::ISO_8859_8),
            7 | 74 => Self::Single(encoding_rs::KOI8_R),
            22 | 75 => Self::Single(encoding_rs::KOI8_U),
            30 | 78 => Self::Single(encoding_rs::WINDOWS_1254),
            20 | 41 | 42 | 79 => Self::Single(encoding_rs::ISO_8859_13),
            39 | 53 => Self::Single(encoding_rs::MACINTOSH),
            18 | 89 => Self::Single(encoding_rs::WINDOWS_874),
            _ => Self::Unknown,
        }
    }

    /// The length of the character `bytes` begin with: 1 also for a byte that begins none, as
    /// `my_ismbchar` has it (0 there). Never more than `bytes` hold.
    pub(super) fn char_len(self, bytes: &[u8]) -> usize {
        let Some((&lead, rest)) = bytes.split_first() else { return 1 };
        if lead < 0x80 {
            return 1;
        }
        let second = rest.first().copied().unwrap_or(0);
        let two = |leads: bool, seconds: bool| if leads && seconds { 2 } else { 1 };
        match self {
            Self::Single(_) | Self::Unknown => 1,
            Self::Utf8 => utf8_len(bytes),
            Self::Gbk => two(
                matches!(lead, 0x81..=0xfe), //
                matches!(second, 0x40..=0x7e | 0x80..=0xfe),
            ),
            Self::Big5 => two(
                matches!(lead, 0xa1..=0xf9), //
                matches!(second, 0x40..=0x7e | 0xa1..=0xfe),
            ),
            Self::Sjis(_) => two(
                matches!(lead, 0x81..=0x9f | 0xe0..=0xfc), //
                matches!(second, 0x40..=0x7e | 0x80..=0xfc),
            ),
            Self::EucKr => two(
                matches!(lead, 0x81..=0xfe), //
                matches!(second, b'A'..=b'Z' | b'a'..=b'z' | 0x81..=0xfe),
            ),
            Self::Gb2312 => two(
                matches!(lead, 0xa1..=0xf7), //
                matches!(second, 0xa1..=0xfe),
            ),
            Self::Gb18030 => gb18030_len(lead, rest),
            Self::EucJp(_) => eucjp_len(lead, rest),
        }
    }

    /// Whether a byte of 0x80 and above that begins no character of several bytes is a letter, and so
    /// part of an unquoted name. Which of them are letters is checked when a name is decoded.
    pub(super) const fn high_byte_is_letter(self) -> bool {
        matches!(self, Self::Single(_) | Self::Sjis(_))
    }

    /// `bytes` of this character set as UTF-8; `None` if they are not text of it, or if it cannot be
    /// told what text. The one place where statements meet character set conversion.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        if self == Self::Unknown {
            let plain = |&b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b' ' | b'-' | b'.');
            return bytes.iter().all(plain).then(|| String::from_utf8_lossy(bytes).into_owned());
        }
        if self == Self::Utf8 || bytes.is_ascii() {
            return core::str::from_utf8(bytes).ok().map(ToOwned::to_owned);
        }
        let encoding = match self {
            Self::Gbk | Self::Gb2312 => encoding_rs::GBK,
            Self::Gb18030 => encoding_rs::GB18030,
            Self::Big5 => encoding_rs::BIG5,
            Self::Sjis(_) => encoding_rs::SHIFT_JIS,
            Self::EucKr => encoding_rs::EUC_KR,
            Self::EucJp(_) => encoding_rs::EUC_JP,
            Self::Single(encoding) => encoding,
            Self::Utf8 | Self::Unknown => return None,
        };
        encoding.decode_without_bom_handling_and_without_replacement(bytes).map(|text| text.into_owned())
    }
}

/// `my_ismbchar` of utf8mb4: a whole valid character, or a byte alone.
fn utf8_len(bytes: &[u8]) -> usize {
    let Some(&lead) = bytes.first() else { return 1 };
    let len = match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return 1,
    };
    match bytes.get(..len) {
        Some(char) if core::str::from_utf8(char).is_ok() => len,
        _ => 1,
    }
}

fn gb18030_len(lead: u8, rest: &[u8]) -> usize {
    if !matches!(lead, 0x81..=0xfe) {
        return 1;
    }
    match rest {
        [0x40..=0x7e | 0x80..=0xfe, ..] => 2,
        [0x30..=0x39, 0x81..=0xfe, 0x30..=0x39, ..] => 4,
        _ => 1,
    }
}

fn eucjp_len(lead: u8, rest: &[u8]) -> usize {
    match (lead, rest) {
        (0x8e, [0xa1..=0xdf, ..]) | (0xa1..=0xfe, [0xa1..=0xfe, ..]) => 2,
        (0x8f, [0xa1..=0xfe, 0xa1..=0xfe, ..]) => 3,
        _ => 1,
    }
}
