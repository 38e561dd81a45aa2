//! The captured set: which tables and columns a pipeline delivers.

use alloc::string::String;

/// Which tables and columns a pipeline delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedSet {}

/// Why a captured set was refused, before any connection is made (`config_invalid`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{option}: `{pattern}` {fault}", option = option.name())]
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
    /// The option's name without its dashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Exclude => "exclude",
            Self::ExcludeColumns => "exclude-columns",
            Self::Canonical => "captured-set",
        }
    }
}

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// No dot outside quotes.
    #[error("has the wrong number of parts")]
    Parts,
}

impl CapturedSet {
    /// Every table of every schema but the server's own.
    #[must_use]
    pub fn everything() -> Self {
        Self {}
    }

    /// A set from the options' patterns; no `tables` at all means [`CapturedSet::everything`].
    ///
    /// # Errors
    /// The first pattern that is not one, by option and fault.
    pub fn parse(
        _tables: &[&str],
        _excludes: &[&str],
        _exclude_columns: &[&str],
    ) -> Result<Self, CaptureError> {
        Ok(Self {})
    }

    /// The same set under the server's `lower_case_table_names`: with 1 and 2 names compare without
    /// regard to case.
    #[must_use]
    pub fn with_lower_case_table_names(self, _lower_case_table_names: u8) -> Self {
        self
    }

    /// Whether rows of this table are delivered.
    #[must_use]
    pub fn captures(&self, _schema: &str, _table: &str) -> bool {
        true
    }

    /// Whether any table of this schema could be delivered (for updated-database lists).
    #[must_use]
    pub fn captures_schema(&self, _schema: &str) -> bool {
        true
    }

    /// Whether this column of a captured table is delivered.
    #[must_use]
    pub fn column_captured(&self, _schema: &str, _table: &str, _column: &str) -> bool {
        true
    }

    /// The text that is stored with a position. Equal sets have equal texts.
    #[must_use]
    pub fn canonical(&self) -> String {
        String::new()
    }

    /// The set of a stored canonical text.
    ///
    /// # Errors
    /// Text that [`CapturedSet::canonical`] would not have written.
    pub fn parse_canonical(_text: &str) -> Result<Self, CaptureError> {
        Ok(Self {})
    }
}
