//! Patterns of names: `` `my.db`.orders_* ``.

use alloc::string::String;
use alloc::vec::Vec;

use crate::sql::lower_case;

/// Why a captured set was refused, before any connection is made (`config_invalid`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: `{pattern}` {fault}", option = option.name())]
pub struct CaptureError {
    /// The option the pattern was given to.
    pub option: CaptureOption,
    /// The pattern as given.
    pub pattern: String,
    /// What is wrong with it, with the remedy.
    pub fault: PatternFault,
}

/// The options that make a captured set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureOption {
    /// `--tables`
    Tables,
    /// `--exclude`
    Exclude,
    /// `--exclude-columns`
    ExcludeColumns,
    /// Not an option: the canonical text stored with a position.
    Canonical,
}

impl CaptureOption {
    /// The option as it is written on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tables => "--tables",
            Self::Exclude => "--exclude",
            Self::ExcludeColumns => "--exclude-columns",
            Self::Canonical => "stored captured set",
        }
    }
}

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// No name at all, also between two commas.
    #[error("is empty: write schema.table, schema.* or *.*")]
    Empty,
    /// Another number of names than the option takes.
    #[error("has {found} part(s) where {expected} are needed: write {form}", form = form(*expected))]
    Parts {
        /// How many names it has.
        found: usize,
        /// How many it needs.
        expected: usize,
    },
    /// A name between two dots, or in backticks, that is empty.
    #[error("holds an empty name")]
    EmptyName,
    /// A backtick that opens and does not close.
    #[error("has a backtick that is not closed (a backtick inside a name is written twice)")]
    OpenQuote,
    /// Text next to a name in backticks.
    #[error("has text right beside a name in backticks: the backticks must hold the whole name")]
    BesideQuote,
    /// A character that a name without backticks cannot have.
    #[error("holds {0:?}: put that name into backticks (and the wildcard is *)")]
    Character(char),
    /// A schema of the server's own, which is never captured.
    #[error("names a schema of the server's own, which is never captured")]
    SystemSchema,
    /// A stored text that is not as it was written.
    #[error("is not a stored captured set")]
    NotCanonical,
}

const fn form(parts: usize) -> &'static str {
    if parts == 3 { "schema.table.column" } else { "schema.table, schema.* or *.*" }
}

/// `N` names with dots between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern<const N: usize>([Part; N]);

/// One name of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// This name.
    Literal(String),
    /// Names of this form, in which `*` is any characters.
    Wild(String),
}

impl Pattern<2> {
    pub(super) fn any() -> Self {
        Self([Part::Wild("*".into()), Part::Wild("*".into())])
    }

    pub(super) fn whole(names: [String; 2]) -> Self {
        Self(names.map(Part::Literal))
    }

    /// The names, if there is no wildcard; itself otherwise.
    pub(super) fn into_whole(self) -> Result<[String; 2], Self> {
        match self {
            Self([Part::Literal(schema), Part::Literal(table)]) => Ok([schema, table]),
            wild => Err(wild),
        }
    }
}

impl<const N: usize> Pattern<N> {
    pub(super) fn matches(&self, names: [&str; N]) -> bool {
        self.0.iter().zip(names).all(|(part, name)| part.matches(name))
    }

    /// Whether the first names match.
    pub(super) fn matches_first<const M: usize>(&self, names: [&str; M]) -> bool {
        self.0.iter().zip(names).all(|(part, name)| part.matches(name))
    }

    /// The name of a part that has no wildcard.
    pub(super) fn literal(&self, part: usize) -> Option<&str> {
        match self.0.get(part) {
            Some(Part::Literal(name)) => Some(name),
            Some(Part::Wild(_)) | None => None,
        }
    }

    /// Whether a part matches every name.
    pub(super) fn is_any(&self, part: usize) -> bool {
        matches!(self.0.get(part), Some(Part::Wild(form)) if form.bytes().all(|b| b == b'*'))
    }

    /// The pattern with its names in lower case from this part on.
    pub(super) fn folded_from(self, first: usize) -> Self {
        let mut at = 0_usize;
        Self(self.0.map(|part| {
            let fold = at >= first;
            at = at.saturating_add(1);
            match part {
                Part::Literal(name) if fold => Part::Literal(lower_case(&name)),
                Part::Wild(form) if fold => Part::Wild(lower_case(&form)),
                part @ (Part::Literal(_) | Part::Wild(_)) => part,
            }
        }))
    }
}

impl Part {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == name,
            Self::Wild(form) => wild_matches(form.as_bytes(), name.as_bytes()),
        }
    }

    fn write(&self, text: &mut String) {
        match self {
            Self::Literal(name) => {
                text.push('`');
                text.push_str(&name.replace('`', "``"));
                text.push('`');
            }
            Self::Wild(form) => text.push_str(form),
        }
    }
}

/// Whether `name` has the form; after a mismatch only the last `*` takes one byte more. In UTF-8 the
/// bytes of a character never match those of another.
fn wild_matches(form: &[u8], name: &[u8]) -> bool {
    let (mut form, mut name) = (form, name);
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (form.split_first(), name.split_first()) {
            (Some((b'*', after)), _) => {
                form = after;
                retry = Some((after, name));
            }
            (Some((f, form_after)), Some((n, name_after))) if f == n => {
                form = form_after;
                name = name_after;
            }
            (None, None) => return true,
            _ => {
                let Some((after_star, [_, rest @ ..])) = retry else { return false };
                form = after_star;
                name = rest;
                retry = Some((after_star, rest));
            }
        }
    }
}

/// The patterns of an option's values, each beside its text.
pub(super) fn parse_list<'a, const N: usize>(
    option: CaptureOption,
    values: &[&'a str],
) -> Result<Vec<(&'a str, Pattern<N>)>, CaptureError> {
    let texts = values.iter().flat_map(|value| split_unquoted(value, ',')).map(str::trim);
    texts
        .map(|text| match parse_pattern(text) {
            Ok(pattern) => Ok((text, pattern)),
            Err(fault) => Err(CaptureError { option, pattern: text.into(), fault }),
        })
        .collect()
}

fn parse_pattern<const N: usize>(text: &str) -> Result<Pattern<N>, PatternFault> {
    if text.is_empty() {
        return Err(PatternFault::Empty);
    }
    if !text.matches('`').count().is_multiple_of(2) {
        return Err(PatternFault::OpenQuote);
    }
    let parts = split_unquoted(text, '.');
    let found = parts.len();
    let parts = parts.into_iter().map(parse_part).collect::<Result<Vec<_>, _>>()?;
    parts.try_into().map(Pattern).map_err(|_| PatternFault::Parts { found, expected: N })
}

fn parse_part(text: &str) -> Result<Part, PatternFault> {
    if text.is_empty() || text == "``" {
        return Err(PatternFault::EmptyName);
    }
    if text.contains('`') {
        let inner = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
        let inner = inner.ok_or(PatternFault::BesideQuote)?;
        // Within the quotes backticks come in pairs; a single one closed a name before the end.
        if inner.replace("``", "").contains('`') {
            return Err(PatternFault::BesideQuote);
        }
        return Ok(Part::Literal(inner.replace("``", "`")));
    }
    match text.chars().find(|&c| !is_plain(c)) {
        Some(character) => Err(PatternFault::Character(character)),
        None if text.contains('*') => Ok(Part::Wild(text.into())),
        None => Ok(Part::Literal(text.into())),
    }
}

/// What a name may hold without backticks; `*` is the wildcard. `%` and `?` are other tools'
/// wildcards, and would silently match nothing here.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '#' | '*')
}

/// The pieces of a text between separators that stand outside of backticks.
pub(super) fn split_unquoted(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c| {
        quoted ^= c == '`';
        c == separator && !quoted
    })
    .collect()
}

/// Patterns as stored: literal names always in backticks.
pub(super) fn canonical_list<'a, const N: usize>(patterns: impl Iterator<Item = &'a Pattern<N>>) -> String {
    let mut text = String::new();
    for (at, pattern) in patterns.enumerate() {
        if at > 0 {
            text.push(',');
        }
        for (at, part) in pattern.0.iter().enumerate() {
            if at > 0 {
                text.push('.');
            }
            part.write(&mut text);
        }
    }
    text
}
