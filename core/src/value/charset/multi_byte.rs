//! The East Asian character sets.
//!
//! `encoding_rs` has the tables, but those of the Encoding Standard, which joins relatives that MySQL
//! keeps apart. So each set has its own structure here (which bytes make a character), the ranges that
//! MySQL maps to nothing, and the characters that it maps elsewhere. All three were found by comparing
//! every code with a running MySQL 9.7; a live test compares them again.

use alloc::borrow::Cow;
use alloc::string::String;

use encoding_rs::Encoding;

use super::multi_byte_tables::{
    BIG5_MOVED, BIG5_UNMAPPED, EUCJPMS_MOVED, GB2312_MOVED, GB2312_UNMAPPED, GB18030_MOVED, GBK_UNMAPPED,
    SJIS_MOVED, SJIS_UNMAPPED, UJIS_MOVED, UJIS_UNMAPPED,
};
use super::{Charset, Invalid};

/// Decodes text of which some bytes are beyond ASCII.
pub(super) fn decode(charset: Charset, bytes: &[u8]) -> Result<Cow<'static, str>, Invalid> {
    let set = set(charset).ok_or(Invalid)?;
    let mut text = String::with_capacity(bytes.len().saturating_mul(3).div_ceil(2));
    // From `bytes` on nothing is decoded yet; from `rest` on nothing is looked at.
    let (mut bytes, mut rest) = (bytes, bytes);
    loop {
        let ascii = rest.iter().take_while(|byte| byte.is_ascii()).count();
        rest = rest.get(ascii..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let length = (set.length)(rest).ok_or(Invalid)?;
        let (character, behind) = rest.split_at_checked(length).ok_or(Invalid)?;
        let code = character.iter().fold(0_u32, |code, &byte| code << 8 | u32::from(byte));
        if within(set.unmapped, code) {
            return Err(Invalid);
        }
        if let Some(elsewhere) = (set.elsewhere)(code) {
            let plain = bytes.get(..bytes.len().saturating_sub(rest.len())).ok_or(Invalid)?;
            push(&mut text, set.encoding, plain)?;
            text.push(elsewhere);
            bytes = behind;
        }
        rest = behind;
    }
    push(&mut text, set.encoding, bytes)?;
    Ok(Cow::Owned(text))
}

fn push(text: &mut String, encoding: &'static Encoding, bytes: &[u8]) -> Result<(), Invalid> {
    let decoded = encoding.decode_without_bom_handling_and_without_replacement(bytes).ok_or(Invalid)?;
    text.push_str(&decoded);
    Ok(())
}

/// How one character set differs from the encoding whose tables it takes.
struct Set {
    encoding: &'static Encoding,
    /// How many bytes the character takes that starts with these, the first not being ASCII
    /// (`ismbchar` of the set in `strings/ctype-….cc`).
    length: fn(&[u8]) -> Option<usize>,
    /// Codes, first and last, that the encoding has and MySQL has not.
    unmapped: &'static [(u32, u32)],
    /// The character of a code that MySQL maps otherwise than the encoding.
    elsewhere: fn(u32) -> Option<char>,
}

fn set(charset: Charset) -> Option<Set> {
    let plain = |encoding, length| Set { encoding, length, unmapped: &[], elsewhere: |_| None };
    Some(match charset {
        Charset::Euckr => plain(encoding_rs::EUC_KR, euckr),
        Charset::Cp932 => plain(encoding_rs::SHIFT_JIS, shift_jis),
        Charset::Sjis => Set {
            unmapped: SJIS_UNMAPPED,
            elsewhere: |code| moved(SJIS_MOVED, code),
            ..plain(encoding_rs::SHIFT_JIS, shift_jis)
        },
        Charset::Big5 => Set {
            unmapped: BIG5_UNMAPPED,
            elsewhere: |code| moved(BIG5_MOVED, code),
            ..plain(encoding_rs::BIG5, big5)
        },
        Charset::Gbk => Set { unmapped: GBK_UNMAPPED, ..plain(encoding_rs::GBK, gbk) },
        Charset::Gb2312 => Set {
            unmapped: GB2312_UNMAPPED,
            elsewhere: |code| moved(GB2312_MOVED, code),
            ..plain(encoding_rs::GBK, gb2312)
        },
        Charset::Gb18030 => {
            Set { elsewhere: |code| moved(GB18030_MOVED, code), ..plain(encoding_rs::GB18030, gb18030) }
        }
        Charset::Ujis => Set {
            unmapped: UJIS_UNMAPPED,
            elsewhere: |code| user_defined(code).or_else(|| moved(UJIS_MOVED, code)),
            ..plain(encoding_rs::EUC_JP, euc_jp)
        },
        Charset::Eucjpms => Set {
            elsewhere: |code| user_defined(code).or_else(|| moved(EUCJPMS_MOVED, code)),
            ..plain(encoding_rs::EUC_JP, euc_jp)
        },
        Charset::Armscii8
        | Charset::Ascii
        | Charset::Binary
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
        | Charset::Swe7
        | Charset::Tis620
        | Charset::Ucs2
        | Charset::Utf16
        | Charset::Utf16le
        | Charset::Utf32
        | Charset::Utf8mb3
        | Charset::Utf8mb4 => return None,
    })
}

fn shift_jis(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        [0xa1..=0xdf, ..] => Some(1),
        [0x81..=0x9f | 0xe0..=0xfc, 0x40..=0x7e | 0x80..=0xfc, ..] => Some(2),
        _ => None,
    }
}

fn big5(bytes: &[u8]) -> Option<usize> {
    matches!(*bytes, [0xa1..=0xf9, 0x40..=0x7e | 0xa1..=0xfe, ..]).then_some(2)
}

fn gbk(bytes: &[u8]) -> Option<usize> {
    matches!(*bytes, [0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe, ..]).then_some(2)
}

fn gb2312(bytes: &[u8]) -> Option<usize> {
    matches!(*bytes, [0xa1..=0xf7, 0xa1..=0xfe, ..]).then_some(2)
}

fn gb18030(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        [0x81..=0xfe, 0x30..=0x39, 0x81..=0xfe, 0x30..=0x39, ..] => Some(4),
        _ => gbk(bytes),
    }
}

fn euckr(bytes: &[u8]) -> Option<usize> {
    matches!(*bytes, [0x81..=0xfe, 0x41..=0x5a | 0x61..=0x7a | 0x81..=0xfe, ..]).then_some(2)
}

fn euc_jp(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        [0x8e, 0xa1..=0xdf, ..] | [0xa1..=0xfe, 0xa1..=0xfe, ..] => Some(2),
        [0x8f, 0xa1..=0xfe, 0xa1..=0xfe, ..] => Some(3),
        _ => None,
    }
}

/// The user-defined rows 0xf5 to 0xfe of both planes of EUC-JP lie in Unicode's private area, 94 to a row.
fn user_defined(code: u32) -> Option<char> {
    let (plane, row, cell) = (code >> 16, code >> 8 & 0xff, code & 0xff);
    let row = row.checked_sub(0xf5)?.saturating_mul(94);
    let cell = cell.checked_sub(0xa1)?;
    let start = if plane == 0 { 0xe000 } else { 0xe3ac };
    char::from_u32(row.saturating_add(cell).saturating_add(start))
}

fn within(ranges: &[(u32, u32)], code: u32) -> bool {
    let behind = ranges.partition_point(|&(first, _)| first <= code);
    behind.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|&(_, last)| code <= last)
}

/// Codes, first and last, and the character of the first: the others follow one by one.
pub(super) type Moved = (u32, u32, char);

fn moved(ranges: &[Moved], code: u32) -> Option<char> {
    let behind = ranges.partition_point(|&(first, _, _)| first <= code);
    let &(first, last, to) = behind.checked_sub(1).and_then(|at| ranges.get(at))?;
    if code > last {
        return None;
    }
    char::from_u32(u32::from(to).saturating_add(code.saturating_sub(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables are searched by halves.
    #[test]
    fn ranges_are_in_order_and_apart() {
        for ranges in [SJIS_UNMAPPED, BIG5_UNMAPPED, GBK_UNMAPPED, GB2312_UNMAPPED, UJIS_UNMAPPED] {
            assert!(ranges.is_sorted_by(|before, after| before.1 < after.0));
            assert!(ranges.iter().all(|(first, last)| first <= last));
        }
        for ranges in [SJIS_MOVED, BIG5_MOVED, GB2312_MOVED, GB18030_MOVED, UJIS_MOVED, EUCJPMS_MOVED] {
            assert!(ranges.is_sorted_by(|before, after| before.1 < after.0));
            assert!(ranges.iter().all(|(first, last, _)| first <= last));
        }
    }
}
