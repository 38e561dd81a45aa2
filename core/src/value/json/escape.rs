//! JSON strings with the escapes that the server uses (`double_quote`, `sql-common/json_dom.cc`).

use alloc::string::String;

/// Appends `text` in quotes. Everything from U+0020 on but `"` and `\` stays as it is.
#[inline]
pub(crate) fn quote(out: &mut String, text: &str) {
    out.reserve(text.len().saturating_add(2));
    out.push('"');
    escape(out, text);
    out.push('"');
}

/// Appends `text` as it stands between the quotes.
#[inline]
pub(crate) fn escape(out: &mut String, mut text: &str) {
    // Every byte that needs an escape is ASCII, so a split there is at a character.
    while let Some(at) = special(text.as_bytes()) {
        let (plain, rest) = text.split_at(at);
        out.push_str(plain);
        let mut chars = rest.chars();
        if let Some(special) = chars.next() {
            escape_one(out, special);
        }
        text = chars.as_str();
    }
    out.push_str(text);
}

/// Where the first byte is that needs an escape.
#[inline]
fn special(bytes: &[u8]) -> Option<usize> {
    let needs_escape = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    let (blocks, _) = bytes.as_chunks::<16>();
    // Without a way out inside of a block, so that its bytes are compared all at once.
    let found = |block: &[u8; 16]| block.iter().fold(false, |found, byte| found | needs_escape(*byte));
    let clean = blocks.iter().take_while(|block| !found(block)).count().saturating_mul(16);
    let rest = bytes.get(clean..).unwrap_or_default();
    rest.iter().position(|byte| needs_escape(*byte)).map(|behind| clean.saturating_add(behind))
}

fn escape_one(out: &mut String, special: char) {
    out.push('\\');
    match special {
        '"' | '\\' => out.push(special),
        '\u{8}' => out.push('b'),
        '\t' => out.push('t'),
        '\n' => out.push('n'),
        '\u{c}' => out.push('f'),
        '\r' => out.push('r'),
        control => {
            out.push_str("u00");
            for shift in [4, 0] {
                let digit = (u32::from(control) >> shift) & 0xf;
                out.push(char::from_digit(digit, 16).unwrap_or('0'));
            }
        }
    }
}

/// Appends `bytes` as base64 (RFC 4648, with padding, without line breaks).
pub(crate) fn base64(out: &mut String, bytes: &[u8]) {
    out.reserve(bytes.len().div_ceil(3).saturating_mul(4));
    // Sixteen groups at a time: a string takes a piece faster than single characters.
    for piece in bytes.chunks(48) {
        let mut text = [b'='; 64];
        let (groups, rest) = piece.as_chunks::<3>();
        for (to, &[a, b, c]) in text.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
            *to = quartet([a, b, c]);
        }
        let mut length = groups.len().saturating_mul(4);
        if let Some(to) = text.get_mut(length..).and_then(<[u8]>::first_chunk_mut::<4>) {
            length = length.saturating_add(if rest.is_empty() { 0 } else { 4 });
            match *rest {
                [a] => to[..2].copy_from_slice(&quartet([a, 0, 0])[..2]),
                [a, b] => to[..3].copy_from_slice(&quartet([a, b, 0])[..3]),
                _ => {}
            }
        }
        out.push_str(text.get(..length).and_then(|text| core::str::from_utf8(text).ok()).unwrap_or_default());
    }
}

/// Three bytes as four digits.
fn quartet(bytes: [u8; 3]) -> [u8; 4] {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let [a, b, c] = bytes;
    [a >> 2, (a & 0x03) << 4 | b >> 4, (b & 0x0f) << 2 | c >> 6, c & 0x3f]
        .map(|digit| ALPHABET.get(usize::from(digit)).copied().unwrap_or(b'='))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    proptest::proptest! {
        /// Sixteen bytes at a time find what one at a time does.
        #[test]
        fn the_first_special_byte(bytes in proptest::collection::vec(
            proptest::prop_oneof![8 => 0x20u8..0xff, 1 => proptest::prelude::any::<u8>(), 1 => proptest::sample::select(std::vec![b'"', b'\\', 0x1f, 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff])],
            0..70,
        )) {
            let plain = bytes.iter().position(|b| *b < 0x20 || *b == b'"' || *b == b'\\');
            proptest::prop_assert_eq!(special(&bytes), plain);
        }
    }

    #[test]
    fn every_character_below_a_space_and_the_two_others() {
        let text: Vec<char> = (0..0x80u8).map(char::from).collect();
        let text: String = text.into_iter().collect();
        let mut out = String::new();
        quote(&mut out, &text);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}
