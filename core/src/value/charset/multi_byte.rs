//! The East Asian character sets.
//!
//! `encoding_rs` has the tables, but those of the Encoding Standard, which joins relatives that MySQL
//! keeps apart. So each set has its own structure here (which bytes make a character), the ranges that
//! MySQL maps to nothing, and the characters that it maps elsewhere. All three were found by comparing
//! every code with a running MySQL 9.7; a live test compares them again.

use alloc::borrow::Cow;
use alloc::string::String;

use encoding_rs::Encoding;

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
type Moved = (u32, u32, char);

fn moved(ranges: &[Moved], code: u32) -> Option<char> {
    let behind = ranges.partition_point(|&(first, _, _)| first <= code);
    let &(first, last, to) = behind.checked_sub(1).and_then(|at| ranges.get(at))?;
    if code > last {
        return None;
    }
    char::from_u32(u32::from(to).saturating_add(code.saturating_sub(first)))
}

#[rustfmt::skip]
const BIG5_UNMAPPED: &[(u32, u32)] = &[
    (0xa15a, 0xa15a), (0xa1c3, 0xa1c3), (0xa1c5, 0xa1c5), (0xa1fe, 0xa1fe), (0xa240, 0xa240),
    (0xa2cc, 0xa2cc), (0xa2ce, 0xa2ce), (0xa3c0, 0xa3e1), (0xc7fd, 0xc7fe), (0xc840, 0xc87e),
    (0xc8a1, 0xc8a4), (0xc8cd, 0xc8f1), (0xc8f5, 0xc8fe), (0xf9dd, 0xf9fe),
];

#[rustfmt::skip]
const BIG5_MOVED: &[Moved] = &[
    (0xa145, 0xa145, '\u{2022}'), (0xa14e, 0xa14e, '\u{ff64}'), (0xa1c2, 0xa1c2, '\u{203e}'),
    (0xa1e3, 0xa1e3, '\u{223c}'), (0xa1f2, 0xa1f2, '\u{2641}'), (0xa1f3, 0xa1f3, '\u{2609}'),
    (0xa241, 0xa241, '\u{ff0f}'), (0xa242, 0xa242, '\u{ff3c}'), (0xa244, 0xa244, '\u{a5}'),
    (0xa246, 0xa247, '\u{a2}'), (0xc6a1, 0xc6a1, '\u{30fe}'), (0xc6a2, 0xc6a3, '\u{309d}'),
    (0xc6a4, 0xc6a4, '\u{3005}'), (0xc6a5, 0xc6f7, '\u{3041}'), (0xc6f8, 0xc6fe, '\u{30a1}'),
    (0xc740, 0xc77e, '\u{30a8}'), (0xc7a1, 0xc7b0, '\u{30e7}'), (0xc7b1, 0xc7b2, '\u{414}'),
    (0xc7b3, 0xc7b3, '\u{401}'), (0xc7b4, 0xc7ba, '\u{416}'), (0xc7bb, 0xc7cd, '\u{423}'),
    (0xc7ce, 0xc7ce, '\u{451}'), (0xc7cf, 0xc7e8, '\u{436}'), (0xc7e9, 0xc7f2, '\u{2460}'),
    (0xc7f3, 0xc7fc, '\u{2474}'),
];

#[rustfmt::skip]
const SJIS_UNMAPPED: &[(u32, u32)] = &[
    (0x8740, 0x875d), (0x875f, 0x8775), (0x877e, 0x877e), (0x8780, 0x879c), (0xed40, 0xed7e),
    (0xed80, 0xedfc), (0xee40, 0xee7e), (0xee80, 0xeeec), (0xeeef, 0xeefc), (0xf040, 0xf07e),
    (0xf080, 0xf0fc), (0xf140, 0xf17e), (0xf180, 0xf1fc), (0xf240, 0xf27e), (0xf280, 0xf2fc),
    (0xf340, 0xf37e), (0xf380, 0xf3fc), (0xf440, 0xf47e), (0xf480, 0xf4fc), (0xf540, 0xf57e),
    (0xf580, 0xf5fc), (0xf640, 0xf67e), (0xf680, 0xf6fc), (0xf740, 0xf77e), (0xf780, 0xf7fc),
    (0xf840, 0xf87e), (0xf880, 0xf8fc), (0xf940, 0xf97e), (0xf980, 0xf9fc), (0xfa40, 0xfa7e),
    (0xfa80, 0xfafc), (0xfb40, 0xfb7e), (0xfb80, 0xfbfc), (0xfc40, 0xfc4b),
];

#[rustfmt::skip]
const SJIS_MOVED: &[Moved] = &[
    (0x815f, 0x815f, '\\'), (0x8160, 0x8160, '\u{301c}'), (0x8161, 0x8161, '\u{2016}'),
    (0x817c, 0x817c, '\u{2212}'), (0x8191, 0x8192, '\u{a2}'), (0x81ca, 0x81ca, '\u{ac}'),
];

#[rustfmt::skip]
const GBK_UNMAPPED: &[(u32, u32)] = &[
    (0xa140, 0xa17e), (0xa180, 0xa1a0), (0xa240, 0xa27e), (0xa280, 0xa2a0), (0xa2ab, 0xa2b0),
    (0xa2e3, 0xa2e4), (0xa2ef, 0xa2f0), (0xa2fd, 0xa2fe), (0xa340, 0xa37e), (0xa380, 0xa3a0),
    (0xa440, 0xa47e), (0xa480, 0xa4a0), (0xa4f4, 0xa4fe), (0xa540, 0xa57e), (0xa580, 0xa5a0),
    (0xa5f7, 0xa5fe), (0xa640, 0xa67e), (0xa680, 0xa6a0), (0xa6b9, 0xa6c0), (0xa6d9, 0xa6df),
    (0xa6ec, 0xa6ed), (0xa6f3, 0xa6f3), (0xa6f6, 0xa6fe), (0xa740, 0xa77e), (0xa780, 0xa7a0),
    (0xa7c2, 0xa7d0), (0xa7f2, 0xa7fe), (0xa896, 0xa8a0), (0xa8bc, 0xa8bc), (0xa8bf, 0xa8bf),
    (0xa8c1, 0xa8c4), (0xa8ea, 0xa8fe), (0xa958, 0xa958), (0xa95b, 0xa95b), (0xa95d, 0xa95f),
    (0xa989, 0xa995), (0xa997, 0xa9a3), (0xa9f0, 0xa9fe), (0xaaa1, 0xaafe), (0xaba1, 0xabfe),
    (0xaca1, 0xacfe), (0xada1, 0xadfe), (0xaea1, 0xaefe), (0xafa1, 0xaffe), (0xd7fa, 0xd7fe),
    (0xf8a1, 0xf8fe), (0xf9a1, 0xf9fe), (0xfaa1, 0xfafe), (0xfba1, 0xfbfe), (0xfca1, 0xfcfe),
    (0xfda1, 0xfdfe), (0xfe50, 0xfe7e), (0xfe80, 0xfefe),
];

#[rustfmt::skip]
const GB2312_UNMAPPED: &[(u32, u32)] = &[
    (0xa2a1, 0xa2b0), (0xa2e3, 0xa2e4), (0xa2ef, 0xa2f0), (0xa2fd, 0xa2fe), (0xa4f4, 0xa4fe),
    (0xa5f7, 0xa5fe), (0xa6b9, 0xa6c0), (0xa6d9, 0xa6fe), (0xa7c2, 0xa7d0), (0xa7f2, 0xa7fe),
    (0xa8bb, 0xa8c4), (0xa8ea, 0xa8fe), (0xa9a1, 0xa9a3), (0xa9f0, 0xa9fe), (0xaaa1, 0xaafe),
    (0xaba1, 0xabfe), (0xaca1, 0xacfe), (0xada1, 0xadfe), (0xaea1, 0xaefe), (0xafa1, 0xaffe),
    (0xd7fa, 0xd7fe),
];

#[rustfmt::skip]
const GB2312_MOVED: &[Moved] = &[
    (0xa1a4, 0xa1a4, '\u{30fb}'), (0xa1aa, 0xa1aa, '\u{2015}'),
];

#[rustfmt::skip]
const GB18030_MOVED: &[Moved] = &[
    (0xa3a0, 0xa3a0, '\u{e5e5}'), (0xa6d9, 0xa6df, '\u{e78d}'), (0xa6ec, 0xa6ed, '\u{e794}'),
    (0xa6f3, 0xa6f3, '\u{e796}'), (0xfe59, 0xfe59, '\u{e81e}'), (0xfe61, 0xfe61, '\u{e826}'),
    (0xfe66, 0xfe67, '\u{e82b}'), (0xfe6d, 0xfe6d, '\u{e832}'), (0xfe7e, 0xfe7e, '\u{e843}'),
    (0xfe90, 0xfe90, '\u{e854}'), (0xfea0, 0xfea0, '\u{e864}'),
];

#[rustfmt::skip]
const UJIS_UNMAPPED: &[(u32, u32)] = &[
    (0xada1, 0xadbe), (0xadc0, 0xadd6), (0xaddf, 0xadfc),
];

#[rustfmt::skip]
const UJIS_MOVED: &[Moved] = &[
    (0xa1c0, 0xa1c0, '\\'), (0xa1c1, 0xa1c1, '\u{301c}'), (0xa1c2, 0xa1c2, '\u{2016}'),
    (0xa1dd, 0xa1dd, '\u{2212}'), (0xa1f1, 0xa1f2, '\u{a2}'), (0xa2cc, 0xa2cc, '\u{ac}'),
    (0x8fa2b7, 0x8fa2b7, '\u{7e}'),
];

#[rustfmt::skip]
const EUCJPMS_MOVED: &[Moved] = &[
    (0x8fa2c3, 0x8fa2c3, '\u{ffe4}'), (0x8ff3f3, 0x8ff3fc, '\u{2170}'), (0x8ff3fd, 0x8ff3fe, '\u{2160}'),
    (0x8ff4a1, 0x8ff4a8, '\u{2162}'), (0x8ff4a9, 0x8ff4a9, '\u{ff07}'), (0x8ff4aa, 0x8ff4aa, '\u{ff02}'),
    (0x8ff4ab, 0x8ff4ab, '\u{3231}'), (0x8ff4ac, 0x8ff4ac, '\u{2116}'), (0x8ff4ad, 0x8ff4ad, '\u{2121}'),
    (0x8ff4ae, 0x8ff4ae, '\u{70bb}'), (0x8ff4af, 0x8ff4af, '\u{4efc}'), (0x8ff4b0, 0x8ff4b0, '\u{50f4}'),
    (0x8ff4b1, 0x8ff4b1, '\u{51ec}'), (0x8ff4b2, 0x8ff4b2, '\u{5307}'), (0x8ff4b3, 0x8ff4b3, '\u{5324}'),
    (0x8ff4b4, 0x8ff4b4, '\u{fa0e}'), (0x8ff4b5, 0x8ff4b5, '\u{548a}'), (0x8ff4b6, 0x8ff4b6, '\u{5759}'),
    (0x8ff4b7, 0x8ff4b8, '\u{fa0f}'), (0x8ff4b9, 0x8ff4b9, '\u{589e}'), (0x8ff4ba, 0x8ff4ba, '\u{5bec}'),
    (0x8ff4bb, 0x8ff4bb, '\u{5cf5}'), (0x8ff4bc, 0x8ff4bc, '\u{5d53}'), (0x8ff4bd, 0x8ff4bd, '\u{fa11}'),
    (0x8ff4be, 0x8ff4be, '\u{5fb7}'), (0x8ff4bf, 0x8ff4bf, '\u{6085}'), (0x8ff4c0, 0x8ff4c0, '\u{6120}'),
    (0x8ff4c1, 0x8ff4c1, '\u{654e}'), (0x8ff4c2, 0x8ff4c2, '\u{663b}'), (0x8ff4c3, 0x8ff4c3, '\u{6665}'),
    (0x8ff4c4, 0x8ff4c4, '\u{fa12}'), (0x8ff4c5, 0x8ff4c5, '\u{f929}'), (0x8ff4c6, 0x8ff4c6, '\u{6801}'),
    (0x8ff4c7, 0x8ff4c8, '\u{fa13}'), (0x8ff4c9, 0x8ff4c9, '\u{6a6b}'), (0x8ff4ca, 0x8ff4ca, '\u{6ae2}'),
    (0x8ff4cb, 0x8ff4cb, '\u{6df8}'), (0x8ff4cc, 0x8ff4cc, '\u{6df2}'), (0x8ff4cd, 0x8ff4cd, '\u{7028}'),
    (0x8ff4ce, 0x8ff4cf, '\u{fa15}'), (0x8ff4d0, 0x8ff4d0, '\u{7501}'), (0x8ff4d1, 0x8ff4d1, '\u{7682}'),
    (0x8ff4d2, 0x8ff4d2, '\u{769e}'), (0x8ff4d3, 0x8ff4d3, '\u{fa17}'), (0x8ff4d4, 0x8ff4d4, '\u{7930}'),
    (0x8ff4d5, 0x8ff4d8, '\u{fa18}'), (0x8ff4d9, 0x8ff4d9, '\u{7ae7}'), (0x8ff4da, 0x8ff4db, '\u{fa1c}'),
    (0x8ff4dc, 0x8ff4dc, '\u{7da0}'), (0x8ff4dd, 0x8ff4dd, '\u{7dd6}'), (0x8ff4de, 0x8ff4de, '\u{fa1e}'),
    (0x8ff4df, 0x8ff4df, '\u{8362}'), (0x8ff4e0, 0x8ff4e0, '\u{fa1f}'), (0x8ff4e1, 0x8ff4e1, '\u{85b0}'),
    (0x8ff4e2, 0x8ff4e3, '\u{fa20}'), (0x8ff4e4, 0x8ff4e4, '\u{8807}'), (0x8ff4e5, 0x8ff4e5, '\u{fa22}'),
    (0x8ff4e6, 0x8ff4e6, '\u{8b7f}'), (0x8ff4e7, 0x8ff4e7, '\u{8cf4}'), (0x8ff4e8, 0x8ff4e8, '\u{8d76}'),
    (0x8ff4e9, 0x8ff4eb, '\u{fa23}'), (0x8ff4ec, 0x8ff4ec, '\u{90de}'), (0x8ff4ed, 0x8ff4ed, '\u{fa26}'),
    (0x8ff4ee, 0x8ff4ee, '\u{9115}'), (0x8ff4ef, 0x8ff4f0, '\u{fa27}'), (0x8ff4f1, 0x8ff4f1, '\u{9592}'),
    (0x8ff4f2, 0x8ff4f2, '\u{f9dc}'), (0x8ff4f3, 0x8ff4f3, '\u{fa29}'), (0x8ff4f4, 0x8ff4f4, '\u{973b}'),
    (0x8ff4f5, 0x8ff4f5, '\u{974d}'), (0x8ff4f6, 0x8ff4f6, '\u{9751}'), (0x8ff4f7, 0x8ff4f9, '\u{fa2a}'),
    (0x8ff4fa, 0x8ff4fa, '\u{999e}'), (0x8ff4fb, 0x8ff4fb, '\u{9ad9}'), (0x8ff4fc, 0x8ff4fc, '\u{9b72}'),
    (0x8ff4fd, 0x8ff4fd, '\u{fa2d}'), (0x8ff4fe, 0x8ff4fe, '\u{9ed1}'),
];
