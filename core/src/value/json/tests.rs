//! Documents that MySQL 9.7.4 wrote into a binlog, with the text that its `SELECT` gave for them; then
//! the same documents cut and bent.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

#[rustfmt::skip]
const WRITTEN: &[(&str, &str)] = &[
    // BL-17: what other column types leave inside JSON.
    ("0004005a00200001002100010022000200240003000f27000f31000f3b000f4500647464746465630a080000000000bab2190b0875d8fffbfdfeffff0c083f420ffb7ebbb219f613250a7ffffff3eb655bcaf204c72dff439eb1f6", r#"{"d": "2024-02-29", "t": "-16:08:04.010123", "dt": "2024-02-29 23:59:59.999999", "dec": -12345678901234567890.0123456789}"#),
    ("02030019000f0d000f10000f16000f010a0f04deadbeef0f0161", r#"["base64:type15:Cg==", "base64:type15:3q2+7w==", "base64:type15:YQ=="]"#),
    ("020100070006e807", r#"[2024]"#),
    ("00010017000b0002000f0d0074730c08000000000042b219", r#"{"ts": "2024-01-01 00:00:00.000000"}"#),
    ("000100a4000b000100000c006703009800190003001c00040020000b00002b000c7800027e0063727374797065636f6f7264696e6174657302004d001200040016000a000c20000025007479706570726f70657274696573046e616d65010028000b0004000c0f006e616d651875726e3a6f67633a6465663a6372733a4d7953514c3a3a3005506f696e7402001a000b0a000b1200000000000000f03f0000000000000040", r#"{"g": {"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:MySQL::0"}}, "type": "Point", "coordinates": [1.0, 2.0]}}"#),
    ("02030029000f0d000f17000f21000b0800000000000000000b08000000fb6e340000f606090080000000", r#"["00:00:00.000000", "838:59:59.000000", 0]"#),
    ("0207003b000f190006e8070f1d000f27000c2b000c2d000f3100100202010708000000000042b219fc0200ff017903702c710c0878e001000042b219", r#"["base64:type16:AgE=", 2024, "2024-01-01 00:00:00.000000", "base64:type252:AP8=", "y", "p,q", "2024-01-01 00:00:00.123000"]"#),
    ("0203002b000f0d000f17000f21000a0800000000000000000a080000000000deae190c080000000000000000", r#"["0000-00-00", "2023-00-15", "0000-00-00 00:00:00.000000"]"#),
    // BL-19: in-place updates left holes; the first, and what is left at the end.
    ("0004005500200001002100010022000100230003000c26000c3b000246000c53006162636475701461616161616161616161616161616161616161610a6262626262626262626203000d000501000502000503000132", r#"{"a": "aaaaaaaaaaaaaaaaaaaa", "b": "bbbbbbbbbb", "c": [1, 2, 3], "dup": "2"}"#),
    ("0004005500200001002100010022000100230003000c26000c3b000246000c5300616263647570027a7a6161616161616161616161616161616161610a6262626262626262626203000d000501000502000503000132", r#"{"a": "zz", "b": "bbbbbbbbbb", "c": [1, 2, 3], "dup": "2"}"#),
    ("0004003c00200001002100010022000100230003000c26000c2900022b000c3a00616263647570027a7a017903000f000501000c0d0005030001710132", r#"{"a": "zz", "b": "y", "c": [1, "q", 3], "dup": "2"}"#),
    ("0003003c002100010022000100230003000c2900022b000c3a0000022b000c3a00616263647570027a7a017903000f000501000c0d0005030001710132", r#"{"b": "y", "c": [1, "q", 3], "dup": "2"}"#),
    // The corners of each type.
    ("020f00c3000f31000f3a000f43000f4d000f6f000f7b000f83000f8b000f93000f9c000fa2000fa8000fae000fb7000fbc00f6070b028000000032f6070b027ffffffffaf6080c03800000000000f620421e7a0a1f00c4653600c4653600c4653600c4653600c4653600c4653600fc18f60a12008000000100000000f6060900875bcd15f606090980000001f606090080000001f6070a018000000000f60402018001f6040302810af60404048d05f6070b028000000219f603010185f6050502800c32", r#"[0.50, -0.05, 0.000, -99999999999999999999999999999999999.999999999999999999999999999999, 1000000000, 123456789, 0.000000001, 1, 0.0, 0.1, 1.10, 0.3333, 2.25, 0.5, 12.50]"#),
    ("0208006d000f1c000f26000f30000c3a000f45000f4f000f59000f63000b08ffffffffffffffff0b08000000fb6e3400000b080000000591cbffff0a303030302d30302d30300c083f420ffb7efff37e0a08000000000042b20c0b0800000000300600000b080000000040060000", r#"["-00:00:00.000001", "838:59:59.000000", "-838:59:59.000000", "0000-00-00", "9999-12-31 23:59:59.999999", "1000-01-01", "99:00:00.000000", "100:00:00.000000"]"#),
    ("0c206101080c0a0d09225c2f2f207f20c3a920f09f988020f09f988020e280a82000", r#""a\u0001\b\f\n\r\t\"\\//  é 😀 😀   \u0000""#),
    ("0000000400", r#"{}"#),
    ("0200000400", r#"[]"#),
    ("0202001200020a00000e000000040000000400", r#"[[], {}]"#),
    ("0401", r#"true"#),
    ("050080", r#"-32768"#),
    ("0700800000", r#"32768"#),
    ("0700000080", r#"-2147483648"#),
    ("090000008000000000", r#"2147483648"#),
    ("090000000000000080", r#"-9223372036854775808"#),
    ("0affffffffffffffff", r#"18446744073709551615"#),
    ("0b000000000000f043", r#"1.8446744073709552e19"#),
    ("0b000000000000f03f", r#"1.0"#),
    ("0c00", r#""""#),
    ("0001000b000b000000050100", r#"{"": 1}"#),
    ("0400", r#"null"#),
    ("0205002f00071300071700071b00091f000a2700ff7fffffffff000000000100ffffffff000000000000000001000000", r#"[-32769, 65535, 65536, 4294967295, 4294967296]"#),
    ("020a0072000b22000b2a000b32000b3a000b42000b4a000b52000b5a000b62000b6a0000003426f56b0c430000901ec4bcd64200000000000000801656e79eaf03d23cbc89d897b2d29c3c010000000000000003eb2af2548b11436bfe9b81703dd63c6bfe9b81703dd6bc691d554d1075ef3e", r#"[1e15, 100000000000000.0, -0.0, 0.000000000000001, 1e-16, 5e-324, 1234567890123456.8, 0.0000000000000012345678901234568, -0.0000000000000012345678901234568, 0.000015]"#),
    ("02080021010c1c000f200006e8070f8600040100040000060100008900036161610f64626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262626262620f010103009800190003001c00040020000b00002b000c7800027e0063727374797065636f6f7264696e6174657302004d001200040016000a000c20000025007479706570726f70657274696573046e616d65010028000b0004000c0f006e616d651875726e3a6f67633a6465663a6372733a4d7953514c3a3a3005506f696e7402001a000b0a000b1200000000000000f03f0000000000000040", r#"["aaa", "base64:type15:YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi\nYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYg==", 2024, "base64:type15:AQ==", true, null, 1, {"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:MySQL::0"}}, "type": "Point", "coordinates": [1.0, 2.0]}]"#),
    // Decimals wider than a column may be.
    ("020a0061010f22000f4a000f6f000f94000fbc000fe4000f0c010f31010f56010f5c01f626500080a98ac7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc7f62347468013de435513de435513de435513de435513de435513de435513de43550032dcd5f62347468113de435513de435513de435513de435513de435513de435513de43550032dcd5f62650007f567538f9609438f9609438f9609438f9609438f9609438f9609438f9609438f9609438f626510080a98ac7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc7069f6bc8f6265100bb9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9fff6234948803b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9ff3b9ac9fff62347467fec21bcaaec21bcaaec21bcaaec21bcaaec21bcaaec21bcaaec21bcaaffcd232af60402018005f603010081", r#"[11111111111111111111111111111111111111111111111111111111111111111111111111111111, 0.3333333333333333333333333333333333333333333333333333333333333333333333, 1.3333333333333333333333333333333333333333333333333333333333333333333333, -11111111111111111111111111111111111111111111111111111111111111111111111111111111, 11111111111111111111111111111111111111111111111111111111111111111111111111111112, 999999999999999999999999999999999999999999999999999999999999999999999999999999999, 0.999999999999999999999999999999999999999999999999999999999999999999999999, -0.3333333333333333333333333333333333333333333333333333333333333333333333, 0.5, 1]"#),
];

#[test]
fn a_document_has_the_text_that_the_server_gives_it() {
    for (bytes, want) in WRITTEN {
        assert_eq!(text(&hex(bytes)).as_deref(), Ok(*want));
        assert_eq!(Json::new(&hex(bytes)).validate(), Ok(()), "{want}");
    }
}

#[test]
fn no_bytes_are_null() {
    assert_eq!(text(&[]).as_deref(), Ok("null"));
    assert_eq!(Json::new(&[]).kind(), Ok(JsonKind::Null));
}

#[test]
fn members_are_found_by_key_and_elements_by_place() {
    let bytes = hex(BL_19_LAST);
    let json = Json::new(&bytes);
    assert_eq!(json.get("b"), Ok(Some(JsonValue::String("y"))));
    assert_eq!(json.get("dup"), Ok(Some(JsonValue::String("2"))));
    for absent in ["a", "", "bb", "dux", "zzzz"] {
        assert_eq!(json.get(absent), Ok(None), "{absent}");
    }
    let c = json.get("c").unwrap().unwrap();
    assert_eq!(c.kind(), JsonKind::Array);
    assert_eq!(c.index(0), Ok(Some(JsonValue::Integer(1))));
    assert_eq!(c.index(1), Ok(Some(JsonValue::String("q"))));
    assert_eq!(c.index(3), Ok(None));
    assert_eq!(c.get("q"), Ok(None));
    assert_eq!(json.index(0), Ok(None));

    let JsonValue::Object(object) = json.root().unwrap() else { panic!("an object") };
    let keys: Vec<_> = object.iter().map(|member| member.unwrap().0).collect();
    assert_eq!((object.len(), keys), (3, vec!["b", "c", "dup"]));
}

#[test]
fn a_large_document_has_wide_offsets_and_inlines_32_bits() {
    // Laid out by hand as JSON_OBJECT('n',NULL,'i',100000,'u',70000,'b',REPEAT('x',70000)) is.
    let mut bytes = hex("01 04000000 ad110100 2e000000 0100 2f000000 0100 30000000 0100 31000000 0100");
    bytes.extend(hex("0c 32000000 07 a0860100 04 00000000 07 70110100 62 69 6e 75 f0a204"));
    // Key offsets count from the container's start: 8 + 4 × (6 + 5) = 52.
    for (at, key) in (0_u8..).zip([52, 53, 54, 55]) {
        bytes[9 + usize::from(at) * 6] = key;
    }
    bytes[34] = 56;
    bytes.resize(1 + 59, 0);
    bytes.extend(core::iter::repeat_n(b'x', 70_000));
    let size = u32::try_from(bytes.len() - 1).unwrap();
    bytes[5..9].copy_from_slice(&size.to_le_bytes());
    let want = format!(r#"{{"b": "{}", "i": 100000, "n": null, "u": 70000}}"#, "x".repeat(70_000));
    assert_eq!(text(&bytes), Ok(want));
}

#[test]
fn a_hundred_levels_are_read_and_one_more_is_refused() {
    let nested = |levels: u16| {
        let mut bytes = vec![2];
        for level in (1..levels).rev() {
            bytes.extend([1, 0]);
            bytes.extend((level * 7 + 4).to_le_bytes());
            bytes.extend([2, 7, 0]);
        }
        bytes.extend([0, 0, 4, 0]);
        bytes
    };
    assert_eq!(text(&nested(100)), Ok(format!("{}{}", "[".repeat(100), "]".repeat(100))));
    assert_eq!(text(&nested(101)), Err(JsonError::Depth));
    assert_eq!(Json::new(&nested(101)).validate(), Err(JsonError::Depth));
}

#[test]
fn what_no_server_writes_is_refused_by_name() {
    use JsonError::*;
    for (bytes, want) in [
        ("0d", Type(0x0d)),
        ("10", Type(0x10)),
        ("04 03", Literal),
        ("05 01", Short),
        ("0b 00", Short),
        ("0b 000000000000f07f", NotFinite),
        ("0c 05 6161", Short),
        ("0c ffffffff7f 61", Short),
        ("0c 8080808010 61", Short),
        ("0c 8080808080 00", Short),
        ("0c 01 ff", Utf8),
        ("0f", Short),
        // An array that claims more elements, or more bytes, than there are.
        ("02 ffff 0400", Short),
        ("02 0000 0500", Short),
        ("03 ffffffff ffffffff 00", Short),
        // An offset to itself, back to the start, past the end.
        ("02 0100 0700 02 0400", Offset),
        ("02 0100 0700 02 0000", Offset),
        ("02 0100 0700 0c ff00", Offset),
        ("02 0100 0700 0c 0700", Short),
        // A key inside the header, one past the end.
        ("00 0100 0c00 0a00 0100 050100 61", Offset),
        ("00 0100 0c00 0b00 0200 050100 61", Short),
        // Keys that repeat, keys that go down.
        ("00 0200 1400 1200 0100 1300 0100 050100 050200 6161", KeyOrder),
        ("00 0200 1400 1200 0100 1300 0100 050100 050200 6261", KeyOrder),
        // Decimals: no digits, too many, a group above 999999999, one byte too few, one too many.
        ("0f f602 0000", Decimal),
        ("0f f603 5200 80", Decimal),
        ("0f f603 0102 80", Decimal),
        ("0f f606 0900 ffffffff", Decimal),
        ("0f f605 0900 800000", Decimal),
        ("0f f604 0100 8000", Decimal),
        ("0f f603 0100 8a", Decimal),
        // Temporals: a wrong length, minute 60, hour 839, year 10000, a negative date.
        ("0f 0c07 00000000000000", Temporal),
        ("0f 0b08 000000000f000000", Temporal),
        ("0f 0b08 0000000070340000", Temporal),
        ("0f 0c08 00000000000034 7f", Temporal),
        ("0f 0a08 ffffffffffffffff", Temporal),
    ] {
        let bytes = hex(bytes);
        assert_eq!(Json::new(&bytes).validate(), Err(want), "{bytes:02x?}");
        if want != KeyOrder {
            assert_eq!(text(&bytes), Err(want), "{bytes:02x?}");
        }
    }
}

#[test]
fn entries_that_share_a_value_do_not_unfold_it_again_and_again() {
    // 10,000 elements that all point to one string of 30,000 bytes: 60 KB would become 300 MB.
    let (count, length) = (10_000_u16, 30_000_u16);
    let start = 4 + count * 3;
    let mut bytes = vec![2];
    bytes.extend(count.to_le_bytes());
    bytes.extend((start + length + 3).to_le_bytes());
    for _ in 0..count {
        bytes.push(0x0c);
        bytes.extend(start.to_le_bytes());
    }
    bytes.extend([0xb0, 0xea, 0x01]);
    bytes.extend(core::iter::repeat_n(b'x', usize::from(length)));
    let mut out = String::new();
    assert_eq!(Json::new(&bytes).write_text(&mut out), Err(JsonError::Overlap));
    assert!(out.len() < bytes.len() * 2, "{}", out.len());
    assert_eq!(Json::new(&bytes).validate(), Err(JsonError::Overlap));
}

#[test]
fn nested_entries_that_share_a_value_do_not_unfold_by_powers() {
    // 60 levels of two elements, both the next level: 2^60 values in under 700 bytes.
    let levels = 60_u16;
    let mut bytes = vec![2];
    for level in (1..=levels).rev() {
        bytes.extend([2, 0]);
        bytes.extend((level * 10 + 4).to_le_bytes());
        bytes.extend([2, 10, 0, 2, 10, 0]);
    }
    bytes.extend([0, 0, 4, 0]);
    assert_eq!(text(&bytes), Err(JsonError::Overlap));
    assert_eq!(Json::new(&bytes).validate(), Err(JsonError::Overlap));
}

#[test]
fn a_document_cut_anywhere_is_an_error_or_another_document() {
    for (bytes, _) in WRITTEN {
        let bytes = hex(bytes);
        for end in 0..bytes.len() {
            poke(&bytes[..end]);
        }
    }
}

#[test]
fn a_document_with_any_byte_changed_is_an_error_or_another_document() {
    for (bytes, _) in WRITTEN {
        let mut bytes = hex(bytes);
        for at in 0..bytes.len() {
            let was = bytes[at];
            for mask in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff] {
                bytes[at] = was ^ mask;
                poke(&bytes);
            }
            bytes[at] = was;
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_an_error_or_a_document(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        poke(&bytes);
    }

    #[test]
    fn random_bytes_behind_a_plausible_head_are_an_error_or_a_document(
        kind in 0_u8..4,
        count in 0_u8..8,
        tail in prop::collection::vec(prop_oneof![0_u8..64, any::<u8>()], 0..200),
    ) {
        let mut bytes = vec![kind, count, 0];
        if kind & 1 == 1 {
            bytes.extend([0, 0]);
        }
        let size = u8::try_from(tail.len()).unwrap();
        bytes.extend([size, 0]);
        bytes.extend(tail);
        poke(&bytes);
    }

    #[test]
    fn a_string_is_escaped_into_json_that_reads_back(text in any::<String>()) {
        let mut out = String::new();
        escape::quote(&mut out, &text);
        prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }

    #[test]
    fn a_double_is_written_as_json_that_reads_back_to_the_last_bit(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let mut out = String::new();
        if number::double(&mut out, value).is_ok() {
            prop_assert_eq!(out.parse::<f64>().unwrap().to_bits(), bits);
        }
    }
}

/// `double_quote` and `escape_character` of `sql-common/json_dom.cc`.
#[test]
fn a_string_has_the_servers_escapes_and_no_others() {
    for code in 0..=0x100_u32 {
        let character = char::from_u32(code).unwrap();
        let want = match code {
            0x08 => "\\b".to_string(),
            0x09 => "\\t".to_string(),
            0x0a => "\\n".to_string(),
            0x0c => "\\f".to_string(),
            0x0d => "\\r".to_string(),
            0x00..=0x1f => format!("\\u{code:04x}"),
            0x22 | 0x5c => format!("\\{character}"),
            _ => character.to_string(),
        };
        let mut out = String::new();
        escape::quote(&mut out, &format!("é{character}x"));
        assert_eq!(out, format!("\"é{want}x\""));
    }
}

/// The vectors of RFC 4648, section 10, and lengths around the pieces it is written in.
#[test]
fn base64_is_that_of_rfc_4648() {
    for (bytes, want) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        let mut out = String::new();
        escape::base64(&mut out, bytes.as_bytes());
        assert_eq!(out, want);
    }
    for length in 46..=98 {
        let mut out = String::new();
        escape::base64(&mut out, &b"foo".repeat(40)[..length]);
        let end = ["", "Zg==", "Zm8="][length % 3];
        assert_eq!(out, "Zm9v".repeat(length / 3) + end);
    }
    let mut out = String::new();
    escape::base64(&mut out, &[0xfb, 0xff, 0xfe, 0x00, 0x10, 0x83]);
    assert_eq!(out, "+//+ABCD");
}

#[test]
fn nothing_of_a_value_is_in_debug_or_in_errors() {
    let bytes = hex("02 0300 1300 0c0d00 050700 0f0f00 0141 fe02 4142");
    let bytes = &bytes[..bytes.len() - 1];
    for value in [hex(BL_19_LAST), hex("0c 06 736563726574"), hex("0f fc 06 736563726574"), bytes.to_vec()] {
        let json = Json::new(&value);
        let seen = format!("{json:?} {:?} {:?}", json.root(), json.write_text(&mut String::new()));
        assert!(!seen.contains("secret") && !seen.contains("dup") && !seen.contains("115"), "{seen}");
    }
}

const BL_19_LAST: &str = "00 0300 3c00 21000100 22000100 23000300 0c2900 022b00 0c3a00 00022b000c3a00 616263647570 \
     027a7a 0179 03000f00 050100 0c0d00 050300 0171 0132";

/// Everything that can be asked of a document, without a panic, and with an answer in proportion.
fn poke(bytes: &[u8]) {
    let json = Json::new(bytes);
    let mut out = String::new();
    let written = json.write_text(&mut out);
    assert!(out.len() <= bytes.len() * 10 + 32, "{} from {}", out.len(), bytes.len());
    if written.is_ok() {
        assert!(serde_json::from_str::<serde::de::IgnoredAny>(&out).is_ok(), "{out}");
    }
    let valid = json.validate();
    assert!(valid.is_err() || written.is_ok(), "what is valid has a text");
    let _ = (json.kind(), json.get("dup"), json.get(""), json.index(1));
    let _ = format!("{json:?} {:?}", json.root());
}

fn text(bytes: &[u8]) -> Result<String, JsonError> {
    let mut out = String::new();
    Json::new(bytes).write_text(&mut out)?;
    Ok(out.to_string())
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
