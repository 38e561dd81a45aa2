//! The character set of a statement: how long a character is, and what a name is in UTF-8.
//!
//! MySQL's lexer walks a statement in the client's own character set (`use_mb`, `my_ismbchar` in
//! `sql/sql_lex.cc`), so a second byte that looks like a backtick or a backslash is none. Walking the
//! bytes the same way, and decoding only the names found, is exact also where the text around them
//! holds bytes that are no text at all (`_binary'…'`).

use alloc::string::String;

use crate::value::charset;

/// A client's character set, as far as reading statements needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charset {
    /// utf8mb3 and utf8mb4, and binary, whose text the server takes for UTF-8 as it is.
    Utf8,
    /// Any other.
    Known(charset::Charset),
    /// No collation of MySQL 9.7: what is beyond ASCII is not read.
    Unknown,
}

impl Charset {
    /// The character set of a collation id.
    pub(super) fn of_collation(id: u16) -> Self {
        use charset::Charset::{Binary, Utf8mb3, Utf8mb4};
        match charset::Charset::of_collation(id) {
            None => Self::Unknown,
            Some(Utf8mb3 | Utf8mb4 | Binary) => Self::Utf8,
            Some(known) => Self::Known(known),
        }
    }

    /// Whether ASCII text means the same in it. Not in swe7, the only such one a client can have.
    pub(super) fn has_ascii(self) -> bool {
        self != Self::Known(charset::Charset::Swe7)
    }

    /// The length of the character `bytes` begin with: 1 also for a byte that begins none, where
    /// `my_ismbchar` gives 0. Never more than `bytes` hold.
    pub(super) fn char_len(self, bytes: &[u8]) -> usize {
        use charset::Charset as Set;
        match (self, bytes) {
            (_, [] | [..0x80, ..]) | (Self::Unknown, _) => 1,
            (Self::Utf8, _) => utf8_len(bytes),
            (Self::Known(set), _) => match (set, bytes) {
                (Set::Gbk, [0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe, ..])
                | (Set::Big5, [0xa1..=0xf9, 0x40..=0x7e | 0xa1..=0xfe, ..])
                | (Set::Sjis | Set::Cp932, [0x81..=0x9f | 0xe0..=0xfc, 0x40..=0x7e | 0x80..=0xfc, ..])
                | (Set::Euckr, [0x81..=0xfe, b'A'..=b'Z' | b'a'..=b'z' | 0x81..=0xfe, ..])
                | (Set::Gb2312, [0xa1..=0xf7, 0xa1..=0xfe, ..])
                | (Set::Gb18030, [0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe, ..])
                | (Set::Ujis | Set::Eucjpms, [0x8e, 0xa1..=0xdf, ..] | [0xa1..=0xfe, 0xa1..=0xfe, ..]) => 2,
                (Set::Ujis | Set::Eucjpms, [0x8f, 0xa1..=0xfe, 0xa1..=0xfe, ..]) => 3,
                (Set::Gb18030, [0x81..=0xfe, 0x30..=0x39, 0x81..=0xfe, 0x30..=0x39, ..]) => 4,
                _ => 1,
            },
        }
    }

    /// Whether a byte of 0x80 and above that is a character by itself can be a letter, and so part of
    /// an unquoted name. Which of them are letters is checked when a name is decoded.
    pub(super) const fn high_byte_is_letter(self) -> bool {
        use charset::Charset as Set;
        match self {
            Self::Utf8 | Self::Unknown => false,
            Self::Known(set) => !matches!(
                set,
                Set::Ascii
                    | Set::Big5
                    | Set::Eucjpms
                    | Set::Euckr
                    | Set::Gb18030
                    | Set::Gb2312
                    | Set::Gbk
                    | Set::Ujis
            ),
        }
    }

    /// `bytes` of this character set as UTF-8; `None` if they are not text of it.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        let set = match self {
            Self::Known(set) => set,
            Self::Utf8 => charset::Charset::Utf8mb4,
            Self::Unknown => charset::Charset::Ascii,
        };
        set.to_utf8(bytes).ok().map(Into::into)
    }
}

/// `my_ismbchar` of utf8mb4: a whole valid character, or a byte alone.
fn utf8_len(bytes: &[u8]) -> usize {
    let len = match bytes {
        [0xc2..=0xdf, ..] => 2,
        [0xe0..=0xef, ..] => 3,
        [0xf0..=0xf4, ..] => 4,
        _ => return 1,
    };
    match bytes.get(..len) {
        Some(char) if core::str::from_utf8(char).is_ok() => len,
        _ => 1,
    }
}
