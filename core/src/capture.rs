//! The captured set: which tables and columns a pipeline delivers.
//!
//! It is what `--tables`, `--exclude` and `--exclude-columns` say. It is stored with the position, as
//! its [canonical text](CapturedSet::canonical): a pipeline that goes on with another set would have
//! a hole where the two differ.

mod ddl;
mod pattern;
#[cfg(test)]
mod tests;

pub use ddl::DdlEffect;
pub use pattern::{CaptureError, CaptureOption, PatternFault};

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use crate::sql::lower_case;
use pattern::{Pattern, canonical_list, parse_list};

/// The server's own schemas. They are never captured: their tables are the server's state, and most
/// changes to them are not in the log.
const SYSTEM_SCHEMAS: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];

/// Which tables and columns a pipeline delivers.
///
/// Patterns are `schema.table` (and `schema.table.column`). Each part is a name as in SQL, in
/// backticks where it holds anything but letters, digits, `_`, `$`, `-` or `#`; in a part without
/// backticks `*` stands for any characters. TEMPORARY tables are never captured ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedSet {
    tables: Tables,
    excludes: Tables,
    exclude_columns: Vec<Pattern<3>>,
    fold: bool,
}

impl Default for CapturedSet {
    fn default() -> Self {
        Self::everything()
    }
}

impl CapturedSet {
    /// Every table of every schema but the server's own.
    #[must_use]
    pub fn everything() -> Self {
        let mut every = Tables::default();
        every.wild.push(Pattern::any());
        Self { tables: every, excludes: Tables::default(), exclude_columns: Vec::new(), fold: false }
    }

    /// A set from the options' values, each a pattern or a list of patterns with commas between; no
    /// `tables` at all means [`CapturedSet::everything`].
    ///
    /// # Errors
    /// The first pattern that is not one, by option and fault: `config_invalid`, before any socket.
    pub fn parse(tables: &[&str], excludes: &[&str], exclude_columns: &[&str]) -> Result<Self, CaptureError> {
        let mut set = Self::everything();
        if !tables.is_empty() {
            let patterns = parse_list(CaptureOption::Tables, tables)?;
            if let Some((given, _)) = patterns.iter().find(|(_, pattern)| names_system_schema(pattern)) {
                return Err(CaptureError {
                    option: CaptureOption::Tables,
                    pattern: (*given).into(),
                    fault: PatternFault::SystemSchema,
                });
            }
            set.tables = patterns.into_iter().map(|(_, pattern)| pattern).collect();
        }
        let without_text = |(_, pattern)| pattern;
        set.excludes = parse_list(CaptureOption::Exclude, excludes)?.into_iter().map(without_text).collect();
        set.exclude_columns = parse_list(CaptureOption::ExcludeColumns, exclude_columns)?
            .into_iter()
            .map(|(_, pattern)| pattern.folded_from(2))
            .collect();
        set.exclude_columns.sort();
        set.exclude_columns.dedup();
        Ok(set)
    }

    /// The same set under the server's `lower_case_table_names`: with 1 and 2 the names of schemas and
    /// tables compare without regard to case, with 0 as they are. Names of columns never regard it.
    ///
    /// Two sets are to be compared after this: `--tables D.t` and `--tables d.t` differ before it.
    #[must_use]
    pub fn with_lower_case_table_names(mut self, lower_case_table_names: u8) -> Self {
        self.fold = lower_case_table_names != 0;
        if self.fold {
            self.tables = self.tables.folded();
            self.excludes = self.excludes.folded();
            self.exclude_columns =
                self.exclude_columns.into_iter().map(|pattern| pattern.folded_from(0)).collect();
            self.exclude_columns.sort();
            self.exclude_columns.dedup();
        }
        self
    }

    /// The same set without one more table (or pattern of tables).
    ///
    /// # Errors
    /// As [`CapturedSet::parse`].
    pub fn without(mut self, table: &str) -> Result<Self, CaptureError> {
        let more = Self::parse(&[], &[table], &[])?;
        let fold = self.fold;
        self.excludes.whole.extend(more.excludes.whole);
        self.excludes.wild.extend(more.excludes.wild);
        self.excludes.wild.sort();
        self.excludes.wild.dedup();
        Ok(if fold { self.with_lower_case_table_names(1) } else { self })
    }

    /// Whether rows of this table are delivered.
    #[must_use]
    pub fn captures(&self, schema: &str, table: &str) -> bool {
        let (schema, table) = (self.name(schema), self.name(table));
        !is_system_schema(&schema)
            && self.tables.matches(&schema, &table)
            && !self.excludes.matches(&schema, &table)
    }

    /// Whether this set certainly holds all that the other does, the same columns too: by its patterns, so that tables
    /// that nobody has heard of count.
    #[must_use]
    pub fn holds(&self, other: &Self) -> bool {
        self.exclude_columns == other.exclude_columns
            && self.tables.covers(&other.tables)
            && other.excludes.covers(&self.excludes)
    }

    /// The set of all that one of two sets names; each without excludes, as for an initial copy.
    #[must_use]
    pub fn with_tables_of(mut self, other: &Self) -> Self {
        self.tables.whole.extend(other.tables.whole.iter().cloned());
        self.tables.wild.extend(other.tables.wild.iter().cloned());
        self.tables.wild.sort();
        self.tables.wild.dedup();
        self
    }

    /// The tables that are named outright, whether there are such or not.
    pub fn named_tables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables.whole.iter().map(|(schema, table)| (schema.as_str(), table.as_str()))
    }

    /// Whether any table of this schema could be delivered, whatever its name: for statements of
    /// which only the updated databases are known. True in doubt.
    #[must_use]
    pub fn captures_schema(&self, schema: &str) -> bool {
        let schema = self.name(schema);
        !is_system_schema(&schema)
            && self.tables.could_match_in(&schema)
            && !self.excludes.matches_all_of(&schema)
    }

    /// Whether this column of a captured table is delivered.
    #[must_use]
    pub fn column_captured(&self, schema: &str, table: &str, column: &str) -> bool {
        if self.exclude_columns.is_empty() {
            return true;
        }
        let names = [self.name(schema), self.name(table), lower_case(column)];
        let names = names.each_ref().map(String::as_str);
        !self.exclude_columns.iter().any(|pattern| pattern.matches(names))
    }

    /// Whether some column of this table could be left out: if not, its columns need no asking.
    #[must_use]
    pub fn leaves_out_columns_of(&self, schema: &str, table: &str) -> bool {
        let (schema, table) = (self.name(schema), self.name(table));
        self.exclude_columns.iter().any(|pattern| pattern.matches_first([&schema, &table]))
    }

    /// The text that is stored with a position. Equal sets have equal texts.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::from("tables=");
        text.push_str(&self.tables.canonical());
        text.push_str(";exclude=");
        text.push_str(&self.excludes.canonical());
        text.push_str(";exclude-columns=");
        text.push_str(&canonical_list(self.exclude_columns.iter()));
        text
    }

    /// The set of a stored canonical text.
    ///
    /// # Errors
    /// Text that [`CapturedSet::canonical`] would not have written.
    pub fn parse_canonical(text: &str) -> Result<Self, CaptureError> {
        let fault = || CaptureError {
            option: CaptureOption::Canonical,
            pattern: text.into(),
            fault: PatternFault::NotCanonical,
        };
        let sections = pattern::split_unquoted(text, ';');
        let [tables, excludes, columns] = sections.as_slice() else { return Err(fault()) };
        let tables = tables.strip_prefix("tables=").ok_or_else(fault)?;
        let excludes = excludes.strip_prefix("exclude=").ok_or_else(fault)?;
        let columns = columns.strip_prefix("exclude-columns=").ok_or_else(fault)?;
        let values = |list| if str::is_empty(list) { Vec::new() } else { alloc::vec![list] };
        let set = Self::parse(&[tables], &values(excludes), &values(columns)).map_err(|_| fault())?;
        if set.canonical() == text { Ok(set) } else { Err(fault()) }
    }

    fn name(&self, name: &str) -> String {
        if self.fold { lower_case(name) } else { name.into() }
    }
}

/// Whether a schema is one of the server's own. `information_schema` is so in any case of letters,
/// the others are folders and follow the server's rule.
fn is_system_schema(schema: &str) -> bool {
    SYSTEM_SCHEMAS.contains(&schema) || schema.eq_ignore_ascii_case("information_schema")
}

/// Whether a pattern of tables names one of the server's schemas outright.
fn names_system_schema(pattern: &Pattern<2>) -> bool {
    pattern
        .literal(0)
        .is_some_and(|schema| SYSTEM_SCHEMAS.iter().any(|system| schema.eq_ignore_ascii_case(system)))
}

/// Patterns of tables: whole names, found at once also among ten thousand, and the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tables {
    whole: BTreeSet<(String, String)>,
    wild: Vec<Pattern<2>>,
}

impl Tables {
    fn matches(&self, schema: &str, table: &str) -> bool {
        // Names are compared as pairs of owned text: the set is asked once per table map.
        self.whole.contains(&(schema.into(), table.into()))
            || self.wild.iter().any(|pattern| pattern.matches([schema, table]))
    }

    /// Whether certainly everything that the other patterns match is matched by these.
    fn covers(&self, other: &Self) -> bool {
        let any = |pattern: &&Pattern<2>| pattern.is_any(0) && pattern.is_any(1);
        let every = self.wild.iter().any(|pattern| any(&pattern));
        let wild = |pattern: &Pattern<2>| {
            let schema = pattern.literal(0).is_some_and(|schema| self.matches_all_of(schema));
            schema || self.wild.contains(pattern)
        };
        let whole = |(schema, table): &(String, String)| self.matches(schema, table);
        every || (other.wild.iter().all(wild) && other.whole.iter().all(whole))
    }

    fn could_match_in(&self, schema: &str) -> bool {
        let from = (String::from(schema), String::new());
        let whole = self.whole.range(from..).next().is_some_and(|(first, _)| first == schema);
        whole || self.wild.iter().any(|pattern| pattern.matches_first([schema]))
    }

    /// Whether certainly every table of the schema is matched.
    fn matches_all_of(&self, schema: &str) -> bool {
        self.wild.iter().any(|pattern| pattern.matches_first([schema]) && pattern.is_any(1))
    }

    fn folded(self) -> Self {
        let whole = self.whole.into_iter().map(|(schema, table)| Pattern::whole([schema, table]));
        whole.chain(self.wild).map(|pattern| pattern.folded_from(0)).collect()
    }

    fn canonical(&self) -> String {
        let whole = self.whole.iter().map(|(schema, table)| Pattern::whole([schema.clone(), table.clone()]));
        let mut all: Vec<_> = whole.chain(self.wild.iter().cloned()).collect();
        all.sort();
        canonical_list(all.iter())
    }
}

impl FromIterator<Pattern<2>> for Tables {
    fn from_iter<I: IntoIterator<Item = Pattern<2>>>(patterns: I) -> Self {
        let mut tables = Self::default();
        for pattern in patterns {
            match pattern.into_whole() {
                Ok([schema, table]) => {
                    tables.whole.insert((schema, table));
                }
                Err(wild) => tables.wild.push(wild),
            }
        }
        tables.wild.sort();
        tables.wild.dedup();
        tables
    }
}
