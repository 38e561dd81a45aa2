//! A walk over a statement's tokens with one token in hand, and the names in it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::charset::Charset;
use super::lex::{LexError, Lexer, Token, TokenKind};
use super::{Context, TableName, lower_case};

/// The text is not understood: the caller answers with the refusing default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

impl From<LexError> for Refused {
    fn from(_: LexError) -> Self {
        Self
    }
}

pub(super) type Read<T> = Result<T, Refused>;

/// A walk over a statement's tokens. A clone is a look ahead.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    held: Option<Token<'a>>,
    context: Context<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a [u8], charset: Charset, context: Context<'a>) -> Self {
        Self { lexer: Lexer::new(text, charset, context.sql_mode), held: None, context }
    }

    pub(super) const fn context(&self) -> &Context<'a> {
        &self.context
    }

    pub(super) const fn charset(&self) -> Charset {
        self.lexer.charset()
    }

    /// The next token without taking it.
    pub(super) fn peek(&mut self) -> Read<Option<Token<'a>>> {
        if self.held.is_none() {
            self.held = self.lexer.token()?;
        }
        Ok(self.held)
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Read<Option<Token<'a>>> {
        let token = self.peek()?;
        self.held = None;
        Ok(token)
    }

    /// Whether the next token is this keyword.
    pub(super) fn at(&mut self, keyword: &str) -> Read<bool> {
        Ok(self.peek()?.is_some_and(|token| token.is(keyword)))
    }

    /// Whether the next token is one of these keywords.
    pub(super) fn at_any(&mut self, keywords: &[&str]) -> Read<bool> {
        Ok(self.peek()?.is_some_and(|token| keywords.iter().any(|keyword| token.is(keyword))))
    }

    /// Whether the next token is this symbol.
    pub(super) fn at_symbol(&mut self, symbol: u8) -> Read<bool> {
        Ok(self.peek()?.is_some_and(|token| token.kind == TokenKind::Symbol(symbol)))
    }

    /// Takes this keyword if it is next.
    pub(super) fn accept(&mut self, keyword: &str) -> Read<bool> {
        let here = self.at(keyword)?;
        if here {
            self.held = None;
        }
        Ok(here)
    }

    /// Takes one of these keywords if one is next.
    pub(super) fn accept_any(&mut self, keywords: &[&str]) -> Read<bool> {
        let here = self.at_any(keywords)?;
        if here {
            self.held = None;
        }
        Ok(here)
    }

    /// Takes this symbol if it is next.
    pub(super) fn accept_symbol(&mut self, symbol: u8) -> Read<bool> {
        let here = self.at_symbol(symbol)?;
        if here {
            self.held = None;
        }
        Ok(here)
    }

    /// Takes these keywords if the first is next; then the others must follow.
    pub(super) fn accept_all(&mut self, keywords: &[&str]) -> Read<bool> {
        let Some((first, others)) = keywords.split_first() else { return Ok(false) };
        if !self.accept(first)? {
            return Ok(false);
        }
        others.iter().try_for_each(|keyword| self.expect(keyword))?;
        Ok(true)
    }

    /// Takes this keyword.
    pub(super) fn expect(&mut self, keyword: &str) -> Read<()> {
        self.accept(keyword)?.then_some(()).ok_or(Refused)
    }

    /// Takes one of these keywords.
    pub(super) fn expect_any(&mut self, keywords: &[&str]) -> Read<()> {
        self.accept_any(keywords)?.then_some(()).ok_or(Refused)
    }

    /// Takes this symbol.
    pub(super) fn expect_symbol(&mut self, symbol: u8) -> Read<()> {
        self.accept_symbol(symbol)?.then_some(()).ok_or(Refused)
    }

    /// Whether the statement ends here; a last semicolon belongs to it.
    pub(super) fn at_end(&mut self) -> Read<bool> {
        match self.peek()? {
            None => Ok(true),
            Some(token) if token.kind == TokenKind::Symbol(b';') => {
                self.held = None;
                while self.accept_symbol(b';')? {}
                if self.peek()?.is_none() { Ok(true) } else { Err(Refused) }
            }
            Some(_) => Ok(false),
        }
    }

    /// The statement must end here.
    pub(super) fn end(&mut self) -> Read<()> {
        self.at_end()?.then_some(()).ok_or(Refused)
    }

    /// Takes all that is left; it must still be readable to its end.
    pub(super) fn rest(&mut self) -> Read<()> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// Takes tokens up to a comma outside of parentheses, or to the end.
    pub(super) fn rest_of_item(&mut self) -> Read<()> {
        while !self.at_symbol(b',')? && self.peek()?.is_some() {
            self.group_or_token()?;
        }
        Ok(())
    }

    /// Takes one token, or a whole group in parentheses.
    pub(super) fn group_or_token(&mut self) -> Read<()> {
        let mut depth = 0_usize;
        loop {
            match self.next()?.map(|token| token.kind) {
                Some(TokenKind::Symbol(b'(')) => depth = depth.saturating_add(1),
                Some(TokenKind::Symbol(b')')) => depth = depth.checked_sub(1).ok_or(Refused)?,
                Some(_) => {}
                None => return Err(Refused),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// `IF EXISTS`, if it is next.
    pub(super) fn accept_if_exists(&mut self) -> Read<bool> {
        self.accept_all(&["IF", "EXISTS"])
    }

    /// `IF NOT EXISTS`, if it is next.
    pub(super) fn accept_if_not_exists(&mut self) -> Read<bool> {
        self.accept_all(&["IF", "NOT", "EXISTS"])
    }

    /// A name, unquoted, in UTF-8, as written.
    pub(super) fn name(&mut self) -> Read<String> {
        let token = self.next()?.ok_or(Refused)?;
        let charset = self.lexer.charset();
        let name = match token.kind {
            TokenKind::Word => charset.decode(token.raw).filter(|name| is_unquoted_name(charset, name)),
            TokenKind::Quoted => charset.decode(&unquoted(charset, token.raw)),
            TokenKind::String
            | TokenKind::Hex
            | TokenKind::HexNumber
            | TokenKind::Bits
            | TokenKind::Number
            | TokenKind::Symbol(_) => None,
        };
        name.filter(|name| !name.is_empty()).ok_or(Refused)
    }

    /// The name of a database, as the server stores it.
    pub(super) fn schema_name(&mut self) -> Read<String> {
        let name = self.name()?;
        Ok(self.stored(name))
    }

    /// The default database of the event.
    pub(super) fn default_schema(&self) -> Read<String> {
        let name = core::str::from_utf8(self.context.default_schema).map_err(|_| Refused)?;
        if name.is_empty() { Err(Refused) } else { Ok(self.stored(name.to_string())) }
    }

    /// `table` or `schema.table`; without a schema, the default database's.
    pub(super) fn table_name(&mut self) -> Read<TableName> {
        self.table_name_within(None)
    }

    /// As [`Cursor::table_name`], with another default.
    pub(super) fn table_name_within(&mut self, default: Option<&str>) -> Read<TableName> {
        let leading_dot = self.accept_symbol(b'.')?;
        let first = self.name()?;
        let (schema, table) = if !leading_dot && self.accept_symbol(b'.')? {
            let table = self.name()?;
            (self.stored(first), table)
        } else {
            let schema = match default {
                Some(schema) => schema.to_string(),
                None => self.default_schema()?,
            };
            (schema, first)
        };
        Ok(TableName { schema, table: self.stored(table) })
    }

    /// Names of tables with commas between.
    pub(super) fn table_names(&mut self) -> Read<Vec<TableName>> {
        let mut names = Vec::new();
        loop {
            // A list beyond any real one costs many times its text in names.
            if names.len() == MAX_NAMES {
                return Err(Refused);
            }
            names.push(self.table_name()?);
            if !self.accept_symbol(b',')? {
                return Ok(names);
            }
        }
    }

    /// A user: `name`, `name@host`, in any quotes, or `CURRENT_USER [()]`.
    pub(super) fn user(&mut self) -> Read<()> {
        if self.accept("CURRENT_USER")? {
            if self.accept_symbol(b'(')? {
                self.expect_symbol(b')')?;
            }
            return Ok(());
        }
        self.user_part()?;
        if self.accept_symbol(b'@')? {
            self.user_part()?;
        }
        Ok(())
    }

    fn user_part(&mut self) -> Read<()> {
        match self.next()?.map(|token| token.kind) {
            Some(TokenKind::Word | TokenKind::Quoted | TokenKind::String) => Ok(()),
            _ => Err(Refused),
        }
    }

    fn stored(&self, name: String) -> String {
        if self.context.lower_case_table_names == 1 { lower_case(&name) } else { name }
    }
}

/// More table names than this in one statement are not read.
pub(super) const MAX_NAMES: usize = 1 << 16;

/// Which high bytes are letters is a table per character set in the server; what is certainly none
/// (a no-break space, a sign) would end the name there, and here ends the reading.
fn is_unquoted_name(charset: Charset, name: &str) -> bool {
    !charset.high_byte_is_letter() || name.chars().all(|c| c.is_ascii() || c.is_alphanumeric())
}

/// A quoted name's bytes without its quotes and with doubled ones single.
fn unquoted(charset: Charset, raw: &[u8]) -> Vec<u8> {
    let Some((&quote, rest)) = raw.split_first() else { return Vec::new() };
    let mut rest = rest.strip_suffix(&[quote]).unwrap_or_default();
    let mut name = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (char, after) = rest.split_at_checked(charset.char_len(rest)).unwrap_or((rest, &[]));
        name.extend_from_slice(char);
        rest = if char == [quote] { after.strip_prefix(&[quote]).unwrap_or(after) } else { after };
    }
    name
}
