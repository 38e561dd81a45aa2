//! JSON strings with the escapes that the server uses (`double_quote`, `sql-common/json_dom.cc`).

use alloc::string::String;

/// Appends `text` in quotes. Everything from U+0020 on but `"` and `\` stays as it is.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.reserve(text.len().saturating_add(2));
    out.push('"');
    escape(out, text);
    out.push('"');
}

/// Appends `text` as it stands between the quotes.
pub(crate) fn escape(out: &mut String, mut text: &str) {
    // Every byte that needs an escape is ASCII, so a split there is at a character.
    while let Some(at) = text.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\') {
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
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |group: u32, shift: u32| {
        let at = usize::try_from(group >> shift & 0x3f).unwrap_or(0);
        char::from(ALPHABET.get(at).copied().unwrap_or(b'='))
    };
    out.reserve(bytes.len().div_ceil(3).saturating_mul(4));
    let (groups, rest) = bytes.as_chunks::<3>();
    for &[a, b, c] in groups {
        let group = u32::from_be_bytes([0, a, b, c]);
        out.extend([digit(group, 18), digit(group, 12), digit(group, 6), digit(group, 0)]);
    }
    match *rest {
        [a] => {
            let group = u32::from_be_bytes([0, a, 0, 0]);
            out.extend([digit(group, 18), digit(group, 12), '=', '=']);
        }
        [a, b] => {
            let group = u32::from_be_bytes([0, a, b, 0]);
            out.extend([digit(group, 18), digit(group, 12), digit(group, 6), '=']);
        }
        _ => {}
    }
}
