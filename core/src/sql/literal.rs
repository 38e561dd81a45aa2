//! Literals of a statement, as far as their value is the same under every connection's settings.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::charset::Charset;
use super::cursor::{Cursor, Read, Refused};
use super::lex::{Token, TokenKind};
use crate::binlog::sql_mode::NO_BACKSLASH_ESCAPES;

/// A literal.
#[derive(Clone, PartialEq, Eq)]
pub enum Literal {
    /// `NULL`.
    Null,
    /// A number as written, with its sign; TRUE and FALSE are 1 and 0.
    Number(String),
    /// A string in quotes, in UTF-8.
    Text(String),
    /// `X'…'`, `0x…`.
    Bytes(Vec<u8>),
    /// `B'…'`, `0b…`, up to 64 bits.
    Bits(u64),
}

impl fmt::Debug for Literal {
    // Rule 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Literal(..)")
    }
}

impl Literal {
    /// Its text, if it is a string of ASCII: the same under every `character_set_connection`.
    #[must_use]
    pub fn ascii(&self) -> Option<&str> {
        match self {
            Self::Text(text) if text.is_ascii() => Some(text),
            Self::Null | Self::Number(_) | Self::Text(_) | Self::Bytes(_) | Self::Bits(_) => None,
        }
    }

    /// The digits of a number, also of one in quotes, as `SHOW CREATE TABLE` writes it.
    #[must_use]
    pub fn digits(&self) -> Option<&str> {
        match self {
            Self::Number(text) | Self::Text(text) => Some(text),
            Self::Null | Self::Bytes(_) | Self::Bits(_) => None,
        }
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Self> {
        let negative = cursor.accept_symbol(b'-')?;
        let signed = negative || cursor.accept_symbol(b'+')?;
        let token = cursor.next()?.ok_or(Refused)?;
        if signed && token.kind != TokenKind::Number {
            return Err(Refused);
        }
        match token.kind {
            TokenKind::Number => {
                let digits = core::str::from_utf8(token.raw).map_err(|_| Refused)?;
                Ok(Self::Number(if negative { alloc::format!("-{digits}") } else { digits.to_string() }))
            }
            TokenKind::String => {
                // 'a' 'b' is one literal to the server.
                if cursor.peek()?.is_some_and(|next| next.kind == TokenKind::String) {
                    return Err(Refused);
                }
                text(cursor, token).map(Self::Text)
            }
            TokenKind::Hex | TokenKind::HexNumber => hex(token.raw).map(Self::Bytes).ok_or(Refused),
            TokenKind::Bits => bits(token.raw).map(Self::Bits).ok_or(Refused),
            TokenKind::Word if token.is("NULL") => Ok(Self::Null),
            TokenKind::Word if token.is("TRUE") => Ok(Self::Number("1".into())),
            TokenKind::Word if token.is("FALSE") => Ok(Self::Number("0".into())),
            TokenKind::Word | TokenKind::Quoted | TokenKind::Symbol(_) => Err(Refused),
        }
    }
}

/// A string in quotes, in UTF-8.
pub(super) fn text(cursor: &Cursor<'_>, token: Token<'_>) -> Read<String> {
    let charset = cursor.charset();
    let escapes = cursor.context().sql_mode & NO_BACKSLASH_ESCAPES == 0;
    let raw = match token.raw {
        [b'n' | b'N', rest @ ..] => rest,
        raw => raw,
    };
    charset.decode(&unescaped(charset, raw, escapes)).ok_or(Refused)
}

/// `get_text` of `sql/sql_lex.cc`: the bytes a string literal stands for.
fn unescaped(charset: Charset, raw: &[u8], escapes: bool) -> Vec<u8> {
    let Some((&quote, rest)) = raw.split_first() else { return Vec::new() };
    let mut rest = rest.strip_suffix(&[quote]).unwrap_or_default();
    let mut bytes = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (char, after) = rest.split_at_checked(charset.char_len(rest)).unwrap_or((rest, &[]));
        rest = after;
        match (char, after) {
            ([b'\\'], [next, tail @ ..]) if escapes => {
                rest = tail;
                match next {
                    b'0' => bytes.push(0),
                    b'b' => bytes.push(8),
                    b'n' => bytes.push(b'\n'),
                    b'r' => bytes.push(b'\r'),
                    b't' => bytes.push(b'\t'),
                    b'Z' => bytes.push(0x1a),
                    // For LIKE: the backslash stays.
                    b'%' | b'_' => bytes.extend([b'\\', *next]),
                    _ => bytes.push(*next),
                }
            }
            ([one], [next, tail @ ..]) if *one == quote && *next == quote => {
                bytes.push(quote);
                rest = tail;
            }
            _ => bytes.extend_from_slice(char),
        }
    }
    bytes
}

/// `X'…'` and `0x…`.
fn hex(raw: &[u8]) -> Option<Vec<u8>> {
    let digits = match raw {
        [b'0', b'x', digits @ ..] => digits,
        [b'x' | b'X', b'\'', digits @ .., b'\''] => digits,
        _ => return None,
    };
    let nibble = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::with_capacity(digits.len().div_ceil(2));
    // An odd number of digits has a 0 before the first.
    let (first, pairs) = if digits.len() % 2 == 1 { digits.split_at_checked(1)? } else { (&[][..], digits) };
    if let [one] = first {
        bytes.push(nibble(*one)?);
    }
    let (pairs, _) = pairs.as_chunks::<2>();
    for [high, low] in pairs {
        bytes.push((nibble(*high)? << 4) | nibble(*low)?);
    }
    Some(bytes)
}

/// `B'…'` and `0b…`.
fn bits(raw: &[u8]) -> Option<u64> {
    let digits = match raw {
        [b'0', b'b', digits @ ..] => digits,
        [b'b' | b'B', b'\'', digits @ .., b'\''] => digits,
        _ => return None,
    };
    let text = core::str::from_utf8(digits).ok()?;
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 2).ok() }
}
