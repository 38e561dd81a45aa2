//! The text that a server's `SELECT` gives for a document, back into its binary form.
//!
//! The result has the same text, number by number. Its bytes are those of the server's own serializer
//! (`sql-common/json_binary.cc`) but for what the text does not tell: a decimal that reads like a double
//! becomes a double, one that reads like an integer an integer, an unsigned integer within the signed range
//! a signed one; dates, times and values of other column types become the strings they are printed as.
//!
//! Two walks over the text, one to measure and one to write: what is kept between them are the sizes of the
//! containers.

use alloc::{string::String, vec::Vec};

use super::encode::{Slots, inline_bits, kind, payload, write_payload};
use super::opaque::{JsonOpaque, NEWDECIMAL};
use super::{
    INT16, JsonValue, LARGE_ARRAY, LARGE_OBJECT, MAX_DEPTH, SMALL_ARRAY, SMALL_OBJECT, UINT16, inlined,
    key_entry, number, offset_size, value_entry,
};
use crate::value::pack_decimal;

/// Why text is no document as a server prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonTextError {
    /// Not UTF-8.
    #[error("JSON text that is not UTF-8")]
    Utf8,
    /// Something else than a value, or something behind it.
    #[error("JSON text that is malformed")]
    Syntax,
    /// More than [`MAX_DEPTH`] containers in each other.
    #[error("JSON text nested more than 100 deep")]
    Depth,
    /// A number that neither a double nor a decimal of the server prints like this.
    #[error("a number in JSON text that no server prints")]
    Number,
    /// The keys of an object are not in the server's order (by length, then by bytes) or repeat.
    #[error("JSON keys are out of order")]
    KeyOrder,
    /// A key above 65,535 bytes, or a document of 4 GiB.
    #[error("JSON text of a document that is too large")]
    TooLarge,
}

/// Appends the binary form of the document whose text this is.
///
/// # Errors
/// What is wrong with the text; `out` may hold a part then, which the caller cuts off.
pub(crate) fn binary_of(text: &[u8], out: &mut Vec<u8>) -> Result<(), JsonTextError> {
    let text = core::str::from_utf8(text).map_err(|_| JsonTextError::Utf8)?;
    let mut measure = Measure { shapes: Vec::new(), scratch: Scratch::default() };
    let mut source = Source { text, at: 0 };
    match source.token()? {
        Token::Open { object } => {
            measure.container(&mut source, object, 1)?;
            source.end()?;
            let mut write = Write { shapes: measure.shapes.iter().copied(), scratch: measure.scratch };
            let mut source = Source { text, at: 1 };
            let shape = write.shapes.next().ok_or(JsonTextError::Syntax)?;
            out.reserve(shape.size.saturating_add(1));
            out.push(shape.kind(object));
            write.container(&mut source, object, shape, out)
        }
        token @ (Token::Null | Token::Boolean(_) | Token::Number(_) | Token::String { .. }) => {
            source.end()?;
            let value = measure.scratch.value(token)?;
            out.push(kind(value));
            if matches!(kind(value), INT16 | UINT16) {
                out.extend_from_slice(&(inline_bits(value) as u16).to_le_bytes());
            } else {
                write_payload(value, out);
            }
            Ok(())
        }
    }
}

/// What the text goes on with.
#[derive(Clone, Copy)]
enum Token<'a> {
    Null,
    Boolean(bool),
    Number(&'a str),
    /// What is between the quotes.
    String {
        raw: &'a str,
        escaped: bool,
    },
    Open {
        object: bool,
    },
}

/// The text, and how far it is read.
struct Source<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Source<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at = self.at.saturating_add(1);
        }
        bytes.get(self.at).copied()
    }

    /// Steps over `byte` if it comes next.
    fn skip(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.at = self.at.saturating_add(1);
        }
        there
    }

    fn end(&mut self) -> Result<(), JsonTextError> {
        if self.peek().is_none() { Ok(()) } else { Err(JsonTextError::Syntax) }
    }

    fn token(&mut self) -> Result<Token<'a>, JsonTextError> {
        let first = self.peek().ok_or(JsonTextError::Syntax)?;
        if matches!(first, b'{' | b'[') {
            self.at = self.at.saturating_add(1);
            return Ok(Token::Open { object: first == b'{' });
        }
        if first == b'"' {
            return self.string();
        }
        let rest = self.rest();
        let word = rest.find([',', ']', '}', ' ', '\n']).and_then(|end| rest.get(..end)).unwrap_or(rest);
        self.at = self.at.saturating_add(word.len());
        Ok(match word {
            "null" => Token::Null,
            "true" => Token::Boolean(true),
            "false" => Token::Boolean(false),
            number => Token::Number(number),
        })
    }

    fn string(&mut self) -> Result<Token<'a>, JsonTextError> {
        let bytes = self.rest().as_bytes();
        let (mut at, mut escaped) = (1_usize, false);
        loop {
            match bytes.get(at).ok_or(JsonTextError::Syntax)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    at = at.saturating_add(2);
                }
                _ => at = at.saturating_add(1),
            }
        }
        let raw = self.rest().get(1..at).ok_or(JsonTextError::Syntax)?;
        self.at = self.at.saturating_add(at).saturating_add(1);
        Ok(Token::String { raw, escaped })
    }

    /// The key of the next member, and the colon behind it.
    fn key(&mut self) -> Result<Token<'a>, JsonTextError> {
        if self.peek() != Some(b'"') {
            return Err(JsonTextError::Syntax);
        }
        let key = self.string()?;
        if self.skip(b':') { Ok(key) } else { Err(JsonTextError::Syntax) }
    }

    /// Whether another element comes, of which `count` were read: steps over the comma, or over the end.
    fn another(&mut self, object: bool, count: usize) -> Result<bool, JsonTextError> {
        if self.skip(if object { b'}' } else { b']' }) {
            return Ok(false);
        }
        if count == 0 || self.skip(b',') { Ok(true) } else { Err(JsonTextError::Syntax) }
    }
}

/// Room for values that are not in the text as they are stored.
#[derive(Default)]
struct Scratch {
    text: String,
    packed: Vec<u8>,
}

impl Scratch {
    fn value<'s>(&'s mut self, token: Token<'s>) -> Result<JsonValue<'s>, JsonTextError> {
        Ok(match token {
            Token::Null => JsonValue::Null,
            Token::Boolean(value) => JsonValue::Boolean(value),
            Token::Number(digits) => return self.number(digits),
            Token::String { .. } => JsonValue::String(self.text(token)?),
            Token::Open { .. } => return Err(JsonTextError::Syntax),
        })
    }

    /// As the server's parser types them: integers while they fit into 64 bits. What is no double by its
    /// digits is a decimal, which keeps every digit it was given.
    fn number(&mut self, digits: &str) -> Result<JsonValue<'_>, JsonTextError> {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let whole = digits.strip_prefix('-').unwrap_or(digits);
        if !whole.as_bytes().first().is_some_and(is_digit) {
            return Err(JsonTextError::Number);
        }
        if whole.as_bytes().iter().all(is_digit) {
            if let Ok(value) = digits.parse() {
                return Ok(JsonValue::Integer(value));
            }
            if let Ok(value) = digits.parse() {
                return Ok(JsonValue::UnsignedInteger(value));
            }
            return self.decimal(digits);
        }
        let value: f64 = digits.parse().map_err(|_| JsonTextError::Number)?;
        self.text.clear();
        if number::double(&mut self.text, value).is_ok() && self.text == digits {
            return Ok(JsonValue::Double(value));
        }
        self.decimal(digits)
    }

    fn decimal(&mut self, digits: &str) -> Result<JsonValue<'_>, JsonTextError> {
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('-').trim_start_matches('0');
        let length = whole.len().saturating_add(fraction.len()).max(1);
        let precision = u8::try_from(length).ok().filter(|n| *n <= DECIMAL_DIGITS_MAX);
        let precision = precision.ok_or(JsonTextError::Number)?;
        let scale = u8::try_from(fraction.len()).map_err(|_| JsonTextError::Number)?;
        self.packed.clear();
        self.packed.extend([precision, scale]);
        pack_decimal(digits, precision, scale, &mut self.packed).ok_or(JsonTextError::Number)?;
        Ok(JsonValue::Opaque(JsonOpaque::new(NEWDECIMAL, &self.packed)))
    }

    fn text<'s>(&'s mut self, token: Token<'s>) -> Result<&'s str, JsonTextError> {
        let Token::String { raw, escaped } = token else { return Err(JsonTextError::Syntax) };
        if !escaped {
            return Ok(raw);
        }
        self.text.clear();
        let mut rest = raw;
        while let Some((before, behind)) = rest.split_once('\\') {
            self.text.push_str(before);
            let mut chars = behind.chars();
            let decoded = match chars.next().ok_or(JsonTextError::Syntax)? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => unit(&mut chars)?,
                other @ ('"' | '\\' | '/') => other,
                _ => return Err(JsonTextError::Syntax),
            };
            self.text.push(decoded);
            rest = chars.as_str();
        }
        self.text.push_str(rest);
        Ok(&self.text)
    }
}

/// `DECIMAL_BUFF_LENGTH`: nine words of nine digits.
const DECIMAL_DIGITS_MAX: u8 = 81;

/// The four digits behind `\u`. The server writes control characters so, and nothing else.
fn unit(chars: &mut core::str::Chars<'_>) -> Result<char, JsonTextError> {
    let mut code = 0_u32;
    for _ in 0..4 {
        let digit = chars.next().and_then(|digit| digit.to_digit(16)).ok_or(JsonTextError::Syntax)?;
        code = code << 4 | digit;
    }
    char::from_u32(code).ok_or(JsonTextError::Syntax)
}

/// A container, in the order in which they open.
#[derive(Clone, Copy, Default)]
struct Shape {
    count: usize,
    /// Bytes of all keys.
    keys: usize,
    large: bool,
    size: usize,
}

impl Shape {
    const fn kind(self, object: bool) -> u8 {
        match (object, self.large) {
            (true, false) => SMALL_OBJECT,
            (true, true) => LARGE_OBJECT,
            (false, false) => SMALL_ARRAY,
            (false, true) => LARGE_ARRAY,
        }
    }

    const fn header(self, object: bool, large: bool) -> usize {
        let keys = if object { key_entry(large) } else { 0 };
        let each = keys.saturating_add(value_entry(large));
        self.count.saturating_mul(each).saturating_add(offset_size(large).saturating_mul(2))
    }
}

struct Measure {
    shapes: Vec<Shape>,
    scratch: Scratch,
}

impl Measure {
    /// Measures the container whose bracket was just read. Recursion ends with [`MAX_DEPTH`].
    fn container(
        &mut self,
        source: &mut Source<'_>,
        object: bool,
        depth: u8,
    ) -> Result<usize, JsonTextError> {
        if depth > MAX_DEPTH {
            return Err(JsonTextError::Depth);
        }
        let slot = self.shapes.len();
        self.shapes.push(Shape::default());
        let mut shape = Shape::default();
        let (mut small, mut large) = (0_usize, 0_usize);
        while source.another(object, shape.count)? {
            if object {
                let key = self.scratch.text(source.key()?)?;
                if u16::try_from(key.len()).is_err() {
                    return Err(JsonTextError::TooLarge);
                }
                shape.keys = shape.keys.saturating_add(key.len());
            }
            shape.count = shape.count.saturating_add(1);
            match source.token()? {
                Token::Open { object } => {
                    let size = self.container(source, object, depth.saturating_add(1))?;
                    small = small.saturating_add(size);
                    large = large.saturating_add(size);
                }
                token @ (Token::Null | Token::Boolean(_) | Token::Number(_) | Token::String { .. }) => {
                    let value = self.scratch.value(token)?;
                    small = small.saturating_add(payload(value, false));
                    large = large.saturating_add(payload(value, true));
                }
            }
        }
        let size = |is_large, values: usize| {
            shape.header(object, is_large).saturating_add(shape.keys).saturating_add(values)
        };
        let (small, large) = (size(false, small), size(true, large));
        shape.large = u16::try_from(small).is_err();
        shape.size = if shape.large { large } else { small };
        u32::try_from(shape.size).map_err(|_| JsonTextError::TooLarge)?;
        if let Some(slot) = self.shapes.get_mut(slot) {
            *slot = shape;
        }
        Ok(shape.size)
    }
}

struct Write<S> {
    shapes: S,
    scratch: Scratch,
}

impl<S: Iterator<Item = Shape>> Write<S> {
    /// Writes the container whose bracket was just read.
    fn container(
        &mut self,
        source: &mut Source<'_>,
        object: bool,
        shape: Shape,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonTextError> {
        let large = shape.large;
        let (start, header) = (out.len(), shape.header(object, large));
        out.resize(start.saturating_add(header).saturating_add(shape.keys), 0);
        let mut keys = Slots { at: start, large };
        keys.offset(out, shape.count);
        keys.offset(out, shape.size);
        let entries = if object { shape.count.saturating_mul(key_entry(large)) } else { 0 };
        let mut values = Slots { at: keys.at.saturating_add(entries), large };
        // Keys lie behind the header, one after the other; the last one is where it is compared with.
        let mut key_at = start.saturating_add(header);
        let (mut last, mut count) = (key_at..key_at, 0_usize);
        while source.another(object, count)? {
            if object {
                let key = self.scratch.text(source.key()?)?.as_bytes();
                let before = out.get(last).unwrap_or_default();
                if count > 0 && (before.len(), before) >= (key.len(), key) {
                    return Err(JsonTextError::KeyOrder);
                }
                keys.offset(out, key_at.saturating_sub(start));
                keys.put(out, &u16::try_from(key.len()).unwrap_or(u16::MAX).to_le_bytes());
                let mut slot = Slots { at: key_at, large };
                slot.put(out, key);
                last = key_at..slot.at;
                key_at = slot.at;
            } else {
                last = key_at..key_at;
            }
            count = count.saturating_add(1);
            self.value(source, start, &mut values, out)?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        source: &mut Source<'_>,
        start: usize,
        values: &mut Slots,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonTextError> {
        let at = out.len().saturating_sub(start);
        let token = source.token()?;
        if let Token::Open { object } = token {
            let shape = self.shapes.next().ok_or(JsonTextError::Syntax)?;
            values.put(out, &[shape.kind(object)]);
            values.offset(out, at);
            return self.container(source, object, shape, out);
        }
        let value = self.scratch.value(token)?;
        let kind = kind(value);
        values.put(out, &[kind]);
        if inlined(kind, values.large) {
            values.offset(out, inline_bits(value));
        } else {
            values.offset(out, at);
            write_payload(value, out);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json::Json;
    use std::format;

    fn binary(text: &str) -> Result<Vec<u8>, JsonTextError> {
        let mut out = Vec::new();
        binary_of(text.as_bytes(), &mut out).map(|()| out)
    }

    /// Documents of `JSON_ARRAY(…)` and the like as `LOAD DATA` and binlogs of 9.7.4 have them.
    #[test]
    fn the_bytes_are_the_servers() {
        for (text, want) in [
            ("null", &[0x04, 0][..]),
            ("-2", &[0x05, 0xfe, 0xff]),
            ("65535", &[0x07, 0xff, 0xff, 0, 0]),
            ("18446744073709551615", &[0x0a, 255, 255, 255, 255, 255, 255, 255, 255]),
            ("1.5", &[0x0b, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
            ("1.50", &[0x0f, 246, 4, 3, 2, 0x81, 50]),
            ("\"a\\n\\u0001\"", &[0x0c, 3, b'a', b'\n', 1]),
            ("[]", &[0x02, 0, 0, 4, 0]),
            ("[1, true]", &[0x02, 2, 0, 10, 0, 0x05, 1, 0, 0x04, 1, 0]),
            (
                "{\"a\": [\"x\"]}",
                &[0, 1, 0, 21, 0, 11, 0, 1, 0, 2, 12, 0, b'a', 1, 0, 9, 0, 12, 7, 0, 1, b'x'],
            ),
        ] {
            assert_eq!(binary(text).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn the_text_stays_the_same() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let long =
            format!("{{\"k\": \"{}\", \"kk\": [{}1e100]}}", "é".repeat(40_000), "70000, ".repeat(20_000));
        let members: Vec<_> = (10_000..30_000).map(|n| format!("\"{n}\": {n}")).collect();
        let members = format!("{{{}}}", members.join(", "));
        for text in [
            "0",
            "-0.0",
            "1e100",
            "0.1",
            "1.10",
            "-1.10",
            "0.000",
            "123456789012345678901234567890",
            "-99999999999999999999.5",
            "\"\\\"\\\\\\b\\f\\n\\r\\t\\u001f/é𝄞\"",
            "{\"\": null, \"b\": {}, \"aa\": [[], {}, false]}",
            "{\"d\": \"2024-02-29\", \"x\": \"base64:type15:YWJj\"}",
            &deep,
            &long,
            &members,
        ] {
            let (bytes, mut back) = (binary(text).unwrap(), String::new());
            Json::new(&bytes).validate().unwrap();
            Json::new(&bytes).write_text(&mut back).unwrap();
            assert!(back == text, "{}", text.chars().take(60).collect::<String>());
        }
    }

    #[test]
    fn what_no_server_prints_is_refused() {
        let deep = format!("{}1{}", "[".repeat(101), "]".repeat(101));
        for (text, want) in [
            ("", JsonTextError::Syntax),
            ("[1", JsonTextError::Syntax),
            ("[1,]", JsonTextError::Number),
            ("[1 2]", JsonTextError::Syntax),
            ("1 2", JsonTextError::Syntax),
            ("{\"a\" 1}", JsonTextError::Syntax),
            ("{1: 2}", JsonTextError::Syntax),
            ("\"\\x\"", JsonTextError::Syntax),
            ("\"\\ud800\"", JsonTextError::Syntax),
            ("\"a", JsonTextError::Syntax),
            ("nul", JsonTextError::Number),
            ("1e1", JsonTextError::Number),
            ("1.2.3", JsonTextError::Number),
            ("inf", JsonTextError::Number),
            ("{\"bb\": 1, \"a\": 2}", JsonTextError::KeyOrder),
            ("{\"a\": 1, \"a\": 2}", JsonTextError::KeyOrder),
            (&deep, JsonTextError::Depth),
        ] {
            assert_eq!(binary(text), Err(want), "{}", text.chars().take(20).collect::<String>());
        }
        let digits = "9".repeat(82);
        assert_eq!(binary(&digits), Err(JsonTextError::Number));
        assert_eq!(binary_of(b"\"\xff\"", &mut Vec::new()), Err(JsonTextError::Utf8));
    }

    proptest::proptest! {
        /// Any text gives an error or a document that is valid.
        #[test]
        fn never_a_malformed_document(text in "[\\[\\]{}\",:\\\\u0-9a-z.eE+ -]{0,40}") {
            if let Ok(bytes) = binary(&text) {
                proptest::prop_assert_eq!(Json::new(&bytes).validate(), Ok(()));
            }
        }
    }
}
