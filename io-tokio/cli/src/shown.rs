//! Values and statements as people read them.

use std::fmt::Write as _;

use capstan::core::{
    text::{TextOptions, write_value},
    value::{Column, Value, ValueFault},
};

/// `12 of about 90`, where that is known.
pub fn of_about(count: u64, estimate: Option<u64>) -> String {
    // Statistics that were outrun are no estimate any more.
    match estimate.filter(|estimate| *estimate >= count) {
        Some(estimate) => format!("{count} of about {estimate}"),
        None => count.to_string(),
    }
}

/// Appends a value: JSON text, but `0x…` for bytes, `NULL`, and `(absent)` for a column that is not in the image.
/// Beyond `most` characters it is cut, and its whole length is told.
pub fn value(
    out: &mut String,
    column: &Column,
    value: Value<'_>,
    options: TextOptions,
    most: usize,
) -> Result<(), ValueFault> {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Absent => out.push_str("(absent)"),
        Value::Binary(bytes) => hex(out, &bytes.to_bytes(), most),
        Value::Blob(bytes) => hex(out, bytes, most),
        Value::Vector(vector) => hex(out, vector.as_bytes(), most),
        Value::Geometry(geometry) => {
            let start = out.len();
            match geometry.to_wkt() {
                Some(wkt) => out.push_str(&wkt),
                None => hex(out, geometry.as_bytes(), most),
            }
            cut(out, start, most);
            if geometry.srid() != 0 {
                let _ = write!(out, " (SRID {})", geometry.srid());
            }
        }
        Value::Enum(member) => {
            let start = out.len();
            write_value(out, column, value, options)?;
            disarm(out, start);
            if member.label().is_some() {
                let _ = write!(out, " ({})", member.index());
            }
        }
        Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Bit(_)
        | Value::Year(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Timestamp(_)
        | Value::Text(_)
        | Value::Set(_)
        | Value::Json(_) => {
            let start = out.len();
            write_value(out, column, value, options)?;
            cut(out, start, most);
            disarm(out, start);
        }
    }
    Ok(())
}

/// A statement in one line, without what a terminal would obey.
pub fn statement(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_obeyed(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// A name, without what a terminal would obey.
pub fn name(text: &str) -> String {
    statement(text)
}

/// Whether a terminal obeys a character instead of showing it: controls, those of the upper half too (U+009B begins a
/// sequence as ESC [ does), marks that turn the direction of what follows, and those without a width.
const fn is_obeyed(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Writes such characters of JSON text out: it holds those below U+0020 as escapes, and the others as they are.
fn disarm(out: &mut String, start: usize) {
    let Some(text) = out.get(start..).filter(|text| text.chars().any(is_obeyed)) else { return };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    out.truncate(start);
    out.push_str(&shown);
}

fn hex(out: &mut String, bytes: &[u8], most: usize) {
    out.push_str("0x");
    let shown = bytes.get(..most / 2).unwrap_or(bytes);
    for byte in shown {
        let _ = write!(out, "{byte:02x}");
    }
    if shown.len() < bytes.len() {
        let _ = write!(out, "… ({} bytes)", bytes.len());
    }
}

fn cut(out: &mut String, start: usize, most: usize) {
    let Some(text) = out.get(start..) else { return };
    let Some((at, _)) = text.char_indices().nth(most) else { return };
    let whole = text.len();
    out.truncate(start.saturating_add(at));
    let _ = write!(out, "… ({whole} bytes)");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(
            statement("CREATE\tTABLE t (\n a INT) -- \u{1b}[2J "),
            "CREATE TABLE t (  a INT) -- \\u{1b}[2J"
        );
    }

    /// Red with the controls of ASCII alone: a value is shown as it is.
    #[test]
    fn a_value_is_shown_without_what_a_terminal_would_obey() {
        for (text, want) in [
            ("=\"a\u{9b}2Jb\"", "=\"a\\u009b2Jb\""),
            ("=\"\u{202e}abc\u{feff}\"", "=\"\\u202eabc\\ufeff\""),
            ("=\"\u{7f}\u{200b}\"", "=\"\\u007f\\u200b\""),
            ("=\"\u{1f468}\u{200d}\u{1f469} é\"", "=\"\u{1f468}\u{200d}\u{1f469} é\""),
        ] {
            let mut out = text.to_owned();
            disarm(&mut out, 1);
            assert_eq!(out, want);
        }
        assert_eq!(name("a\u{9b}b\u{202e}"), "a\\u{9b}b\\u{202e}");
    }

    #[test]
    fn what_is_long_is_cut_and_says_so() {
        let mut out = String::from("x=");
        hex(&mut out, &[0xab; 5], 6);
        assert_eq!(out, "x=0xababab… (5 bytes)");
        let mut out = String::from("=\"äöü\"");
        cut(&mut out, 1, 3);
        assert_eq!(out, "=\"äö… (8 bytes)");
        let mut out = String::from("=abc");
        cut(&mut out, 1, 3);
        assert_eq!(out, "=abc");
    }
}
