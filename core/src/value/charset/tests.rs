//! What MySQL 9.7.4 gave for these bytes; every code of every set is compared by a live test.

use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn text_is_what_the_server_converts_it_to() {
    use Charset::*;
    for (charset, bytes, want) in [
        (Utf8mb4, "c3a9f09f9880", Some("é😀")),
        (Utf8mb4, "c3", None),
        (Utf8mb4, "eda080", None),
        (Utf8mb3, "e4b8ad", Some("中")),
        (Ascii, "417f00", Some("A\u{7f}\0")),
        (Ascii, "80", None),
        (Binary, "41", None),
        // Latin1 is Windows-1252, with the five bytes that has not.
        (Latin1, "80 e9 81 8d 8f 90 9d", Some("€é\u{81}\u{8d}\u{8f}\u{90}\u{9d}")),
        (Latin2, "a1", Some("Ą")),
        (Cp1250, "8a", Some("Š")),
        (Cp1250, "81", None),
        (Cp1251, "cf", Some("П")),
        (Koi8r, "cf", Some("о")),
        (Greek, "e1", Some("α")),
        (Hebrew, "e0", Some("א")),
        (Swe7, "405b5c5d5e607b7c7d7e", Some("ÉÄÖÅÜéäöåü")),
        (Swe7, "7f", None),
        (Swe7, "80", None),
        (Ucs2, "00e94e2d", Some("é中")),
        (Ucs2, "d83dde00", None),
        (Ucs2, "00", None),
        (Utf16, "00e9d83dde00", Some("é😀")),
        (Utf16, "d83d", None),
        (Utf16le, "e9003dd800de", Some("é😀")),
        (Utf32, "000000e90001f600", Some("é😀")),
        (Utf32, "0000d800", None),
        (Utf32, "00110000", None),
        (Utf32, "0000", None),
        (Big5, "a4a441", Some("中A")),
        (Big5, "a145", Some("•")),
        (Big5, "a15a", None),
        (Big5, "8740", None),
        (Gbk, "d6d0815c41", Some("中乗A")),
        (Gbk, "80", None),
        (Gbk, "a140", None),
        (Gb2312, "d6d0a1a4", Some("中・")),
        (Gb2312, "8140", None),
        (Gb18030, "d6d08139ee3995328236", Some("中㐀\u{20000}")),
        (Gb18030, "8431a437", Some("\u{fffd}")),
        (Gb18030, "a6d9", Some("\u{e78d}")),
        (Euckr, "b0a18141", Some("가갂")),
        (Sjis, "82a0b1815f5c41", Some("あｱ\\\\A")),
        (Sjis, "8740", None),
        (Cp932, "82a08740815f", Some("あ①＼")),
        (Cp932, "80", None),
        (Ujis, "a4a28eb18fb0a1", Some("あｱ丂")),
        (Ujis, "a1c08fa2b7", Some("\\~")),
        (Ujis, "ada1", None),
        (Ujis, "fea1", Some("\u{e34e}")),
        (Eucjpms, "ada1a1c08ff4fe", Some("①＼黑")),
        (Eucjpms, "8ffea1", Some("\u{e6fa}")),
        (Eucjpms, "80", None),
    ] {
        let bytes = hex(bytes);
        assert_eq!(to_utf8(charset, &bytes).ok().as_deref(), want, "{charset:?} {bytes:02x?}");
        assert_eq!(to_utf8(charset, b"").ok().as_deref(), (charset != Binary).then_some(""), "{charset:?}");
    }
}

#[test]
fn what_is_utf8_already_is_borrowed() {
    for charset in Charset::ALL {
        let borrowed = matches!(to_utf8(charset, b"plain"), Ok(Cow::Borrowed("plain")));
        let own_structure =
            [Charset::Binary, Charset::Swe7, Charset::Ucs2, Charset::Utf16, Charset::Utf16le, Charset::Utf32];
        assert_eq!(borrowed, !own_structure.contains(&charset), "{charset:?}");
    }
}

#[test]
fn collations_are_found_by_id() {
    for (id, want) in [
        (0, None),
        (1, Some((Charset::Big5, "big5_chinese_ci"))),
        (8, Some((Charset::Latin1, "latin1_swedish_ci"))),
        (17, None),
        (33, Some((Charset::Utf8mb3, "utf8mb3_general_ci"))),
        (63, Some((Charset::Binary, "binary"))),
        (255, Some((Charset::Utf8mb4, "utf8mb4_0900_ai_ci"))),
        (323, Some((Charset::Utf8mb4, "utf8mb4_mn_cyrl_0900_as_cs"))),
        (324, None),
        (u16::MAX, None),
    ] {
        assert_eq!(Collation::by_id(id).map(|found| (found.charset, found.name)), want, "{id}");
    }
    assert_eq!(Collation::all().len(), 286);
    assert!(Collation::all().is_sorted_by(|a, b| a.id < b.id), "for the binary search");
    for collation in Collation::all() {
        assert!(collation.name.starts_with(collation.charset.name()), "{}", collation.name);
    }
}

#[test]
fn character_sets_are_found_by_name() {
    for charset in Charset::ALL {
        assert_eq!(Charset::by_name(charset.name()), Some(charset));
    }
    assert_eq!(Charset::by_name("UTF8MB4"), Some(Charset::Utf8mb4));
    assert_eq!(Charset::by_name("utf8"), Some(Charset::Utf8mb3));
    assert_eq!(Charset::by_name("utf9"), None);
}

const EAST_ASIAN: [Charset; 9] = [
    Charset::Big5,
    Charset::Cp932,
    Charset::Eucjpms,
    Charset::Euckr,
    Charset::Gb18030,
    Charset::Gb2312,
    Charset::Gbk,
    Charset::Sjis,
    Charset::Ujis,
];

/// Characters in most of them, some of them mapped elsewhere than the tables say in some.
const PIECES: &[&[u8]] = &[&[0x41], &[0x5c], &[0xa1, 0xc0], &[0xa1, 0xa4], &[0xa4, 0xa2], &[0xb0, 0xa1]];

proptest! {
    #[test]
    fn any_bytes_are_text_or_not(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for charset in Charset::ALL {
            if let Ok(text) = to_utf8(charset, &bytes) {
                prop_assert!(text.len() <= bytes.len() * 3);
            }
        }
    }

    /// A text is the sum of its characters: what is decoded in one piece is what single characters give.
    #[test]
    fn long_text_is_decoded_as_its_characters_are(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
    ) {
        for charset in EAST_ASIAN {
            let each: Result<Vec<_>, _> = pieces.iter().map(|piece| to_utf8(charset, piece)).collect();
            let all = to_utf8(charset, &pieces.concat()).map(Cow::into_owned);
            prop_assert_eq!(all, each.map(|each| each.into_iter().collect::<String>()));
        }
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
