//! A lexer for MySQL's SQL, after `lex_one_token` of `sql/sql_lex.cc`.
//!
//! Why an own one and not `sqlparser`'s tokenizer: that one takes UTF-8 text, so a statement with a
//! `_binary'…'` literal would have to be bent before it can be read; it makes an owned string of
//! every token, also of the megabytes after a statement's head; and version comments, the blank that
//! `-- ` needs, `db.1t`, `user@host` and the two `sql_mode` bits would each need a way around it.
//! Reading the log is what this crate is for, and this is what it takes.
//!
//! Version comments (`/*!80000 … */`) are read as SQL: a server that does not execute one writes a
//! blank over its `!` before it logs the statement (seen on 9.7.4), so what still has it was executed.

use super::charset::Charset;
use crate::binlog::sql_mode::{ANSI_QUOTES, NO_BACKSLASH_ESCAPES};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or an unquoted name.
    Word,
    /// A name in backticks, or in double quotes under ANSI_QUOTES.
    Quoted,
    /// A string literal in quotes.
    String,
    /// `X'…'`.
    Hex,
    /// `0x…`.
    HexNumber,
    /// `B'…'`, `0b…`.
    Bits,
    /// A number.
    Number,
    /// Any other single byte.
    Symbol(u8),
}

/// A token: its kind and its bytes as written, with quotes.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) raw: &'a [u8],
}

impl Token<'_> {
    /// Whether it is this keyword, given in ASCII.
    pub(super) fn is(&self, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.raw.eq_ignore_ascii_case(keyword.as_bytes())
    }
}

impl core::fmt::Debug for Token<'_> {
    // Rule 1: a token may be a literal of the statement.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Token({:?}, {} bytes)", self.kind, self.raw.len())
    }
}

/// The text is no SQL of its character set and `sql_mode`: an open quote or comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LexError;

/// What the token before was, where the next depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Name,
    /// A dot that followed a name: all letters and digits after it are a name (`db.1t`).
    NameDot,
    /// `@`: what follows may be a host name.
    At,
    Other,
}

/// Tokens of a statement, one after another. Linear: no byte is looked at more than a few times.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    charset: Charset,
    ansi_quotes: bool,
    backslash_escapes: bool,
    in_version_comment: bool,
    before: Before,
}

impl core::fmt::Debug for Lexer<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Lexer(at {} of {} bytes)", self.at, self.text.len())
    }
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a [u8], charset: Charset, sql_mode: u64) -> Self {
        Self {
            text,
            at: 0,
            charset,
            ansi_quotes: sql_mode & ANSI_QUOTES != 0,
            backslash_escapes: sql_mode & NO_BACKSLASH_ESCAPES == 0,
            in_version_comment: false,
            before: Before::Other,
        }
    }

    pub(super) const fn charset(&self) -> Charset {
        self.charset
    }

    /// The next token; `None` at the end.
    pub(super) fn token(&mut self) -> Result<Option<Token<'a>>, LexError> {
        let blanks_from = self.at;
        self.skip_blanks()?;
        let adjacent = self.at == blanks_from;
        let Some(first) = self.peek(0) else {
            // An open version comment at the end: the server would have refused it.
            return if self.in_version_comment { Err(LexError) } else { Ok(None) };
        };
        let from = self.at;
        let kind = self.scan(first, adjacent)?;
        self.before = match kind {
            TokenKind::Word | TokenKind::Quoted => Before::Name,
            TokenKind::Symbol(b'.') if self.before == Before::Name => Before::NameDot,
            TokenKind::Symbol(b'@') => Before::At,
            TokenKind::String
            | TokenKind::Hex
            | TokenKind::HexNumber
            | TokenKind::Bits
            | TokenKind::Number
            | TokenKind::Symbol(_) => Before::Other,
        };
        Ok(Some(Token { kind, raw: self.text.get(from..self.at).unwrap_or_default() }))
    }

    /// Steps over the token that begins with `first` and says what it is.
    fn scan(&mut self, first: u8, adjacent: bool) -> Result<TokenKind, LexError> {
        let quote_next = self.peek(1) == Some(b'\'');
        match first {
            _ if adjacent && self.before == Before::At && self.is_host_byte(first) => {
                self.skip_host();
                Ok(TokenKind::Word)
            }
            _ if adjacent && self.before == Before::NameDot && self.name_len(self.at) > 0 => {
                self.skip_name();
                Ok(TokenKind::Word)
            }
            b'`' => self.quoted_name(b'`'),
            b'"' if self.ansi_quotes => self.quoted_name(b'"'),
            b'\'' | b'"' => self.string(first),
            b'x' | b'X' if quote_next => self.radix_string(TokenKind::Hex, 16),
            b'b' | b'B' if quote_next => self.radix_string(TokenKind::Bits, 2),
            b'n' | b'N' if quote_next => {
                self.step(1);
                self.string(b'\'')
            }
            b'0'..=b'9' => Ok(self.number_or_name()),
            b'.' if self.before != Before::Name && self.digit_at(1) => {
                self.fraction();
                Ok(TokenKind::Number)
            }
            _ if self.name_len(self.at) > 0 => {
                self.skip_name();
                Ok(TokenKind::Word)
            }
            symbol => {
                self.step(1);
                Ok(TokenKind::Symbol(symbol))
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at.saturating_add(ahead)).copied()
    }

    fn digit_at(&self, ahead: usize) -> bool {
        self.peek(ahead).is_some_and(|b| b.is_ascii_digit())
    }

    fn step(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.text.len());
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Steps over blanks and comments, into and out of version comments.
    fn skip_blanks(&mut self) -> Result<(), LexError> {
        loop {
            match self.rest() {
                [b' ' | b'\t'..=b'\r', ..] => self.step(1),
                [b'#', ..] => self.skip_line(),
                // `a--1` is a subtraction: a blank or control character makes the comment.
                [b'-', b'-'] => self.skip_line(),
                [b'-', b'-', after, ..] if *after <= b' ' || *after == 0x7f => self.skip_line(),
                [b'/', b'*', b'!', after @ ..] => {
                    let digits = after.iter().take(6).take_while(|b| b.is_ascii_digit()).count();
                    self.step(if digits >= 5 { 3 + digits } else { 3 });
                    self.in_version_comment = true;
                }
                [b'/', b'*', ..] => self.skip_comment()?,
                [b'*', b'/', ..] if self.in_version_comment => {
                    self.step(2);
                    self.in_version_comment = false;
                }
                _ => return Ok(()),
            }
        }
    }

    /// To the end of the line, or to a NUL, where the server's lexer stops too.
    fn skip_line(&mut self) {
        let rest = self.rest();
        self.step(rest.iter().position(|&b| b == b'\n' || b == 0).unwrap_or(rest.len()));
    }

    fn skip_comment(&mut self) -> Result<(), LexError> {
        let body = self.rest().get(2..).unwrap_or_default();
        let end = body.windows(2).position(|pair| pair == b"*/").ok_or(LexError)?;
        self.step(end.saturating_add(4));
        Ok(())
    }

    /// How many bytes of a name's character there are at `at`; 0 if none.
    fn name_len(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        match rest.first() {
            Some(b) if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') => 1,
            Some(0x80..) => match self.charset.char_len(rest) {
                1 if self.charset.high_byte_is_letter() => 1,
                1 => 0,
                len => len,
            },
            Some(_) | None => 0,
        }
    }

    fn skip_name(&mut self) {
        loop {
            match self.name_len(self.at) {
                0 => return,
                len => self.step(len),
            }
        }
    }

    /// `MY_LEX_HOSTNAME`: letters, digits, `.`, `_` and `$`.
    fn is_host_byte(&self, byte: u8) -> bool {
        byte == b'.' || self.name_len(self.at) > 0
    }

    fn skip_host(&mut self) {
        loop {
            match self.name_len(self.at) {
                0 if self.peek(0) == Some(b'.') => self.step(1),
                0 => return,
                len => self.step(len),
            }
        }
    }

    /// `MY_LEX_USER_VARIABLE_DELIMITER`: a doubled quote stands for one, a NUL ends the text.
    fn quoted_name(&mut self, quote: u8) -> Result<TokenKind, LexError> {
        self.step(1);
        loop {
            match self.peek(0) {
                None | Some(0) => return Err(LexError),
                Some(b) if b == quote => {
                    self.step(1);
                    if self.peek(0) != Some(quote) {
                        return Ok(TokenKind::Quoted);
                    }
                    self.step(1);
                }
                Some(_) => self.step(self.charset.char_len(self.rest())),
            }
        }
    }

    /// `get_text`: a doubled quote stands for one, a backslash takes the next byte with it.
    fn string(&mut self, quote: u8) -> Result<TokenKind, LexError> {
        self.step(1);
        loop {
            match self.peek(0) {
                None => return Err(LexError),
                Some(b'\\') if self.backslash_escapes => {
                    if self.peek(1).is_none() {
                        return Err(LexError);
                    }
                    self.step(2);
                }
                Some(b) if b == quote => {
                    self.step(1);
                    if self.peek(0) != Some(quote) {
                        return Ok(TokenKind::String);
                    }
                    self.step(1);
                }
                Some(_) => self.step(self.charset.char_len(self.rest())),
            }
        }
    }

    /// `X'…'` and `B'…'`: nothing but digits of the radix up to the quote.
    fn radix_string(&mut self, kind: TokenKind, radix: u32) -> Result<TokenKind, LexError> {
        self.step(2);
        let digits = self.rest().iter().take_while(|&&b| char::from(b).is_digit(radix)).count();
        self.step(digits);
        if self.peek(0) != Some(b'\'') || (kind == TokenKind::Hex && digits % 2 != 0) {
            return Err(LexError);
        }
        self.step(1);
        Ok(kind)
    }

    /// `MY_LEX_NUMBER_IDENT`: `12`, `1.5e3`, `0x1f`, `0b01`, or a name that begins with a digit.
    fn number_or_name(&mut self) -> TokenKind {
        if let Some(kind) = self.radix_number() {
            return kind;
        }
        while self.digit_at(0) {
            self.step(1);
        }
        match self.peek(0) {
            Some(b'.') => {
                self.fraction();
                TokenKind::Number
            }
            Some(b'e' | b'E') if self.exponent_len() > 0 => {
                self.skip_exponent();
                TokenKind::Number
            }
            _ if self.name_len(self.at) > 0 => {
                self.skip_name();
                TokenKind::Word
            }
            _ => TokenKind::Number,
        }
    }

    /// `0x` and `0b` with at least one digit and no letter after them.
    fn radix_number(&mut self) -> Option<TokenKind> {
        let (kind, radix) = match self.rest() {
            [b'0', b'x', ..] => (TokenKind::HexNumber, 16),
            [b'0', b'b', ..] => (TokenKind::Bits, 2),
            _ => return None,
        };
        let digits = self.rest().iter().skip(2).take_while(|&&b| char::from(b).is_digit(radix)).count();
        let end = self.at.saturating_add(2).saturating_add(digits);
        if digits == 0 || self.name_len(end) > 0 {
            return None;
        }
        self.at = end;
        Some(kind)
    }

    /// `.5e3`, from the dot on.
    fn fraction(&mut self) {
        self.step(1);
        while self.digit_at(0) {
            self.step(1);
        }
        self.skip_exponent();
    }

    fn exponent_len(&self) -> usize {
        match self.rest() {
            [b'e' | b'E', b'0'..=b'9', ..] => 1,
            [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] => 2,
            _ => 0,
        }
    }

    fn skip_exponent(&mut self) {
        let sign = self.exponent_len();
        if sign > 0 {
            self.step(sign);
            while self.digit_at(0) {
                self.step(1);
            }
        }
    }
}
