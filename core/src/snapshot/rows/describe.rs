//! A table as the server's catalogue describes it, asked for in a few statements.

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    format,
    string::String,
    vec::Vec,
};
use core::fmt;

use super::column::{self, Typed, of_members};
use super::generation::{self, Said};
use super::key::{CopyKey, Index, IndexPart, KeyUnsupported, StringFacts};
use super::sql::{hex, text};
use crate::link::ResultSet;
use crate::value::charset::Charset;
use crate::value::json::escape;
use crate::value::{Column, ColumnType, KeyPart, Labels, TableFacts, TableVersion};

/// Why a table cannot be described. It names columns and no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// There is no such table, or not for this account.
    #[error("no such table")]
    NoSuchTable,
    /// The account does not see every column.
    #[error("a column is missing in the description: the account needs SELECT on the whole table")]
    ColumnMissing,
    /// A column of a type that is not known here.
    #[error("column {0} is of a type that is not known")]
    ColumnType(String),
    /// The catalogue shows labels in at most three bytes a character and `?` for the rest, so a `?` of a column
    /// that may hold more is not certain.
    #[error(
        "column {0} has an ENUM or SET label with a question mark, which the server may show for another character"
    )]
    Labels(String),
    /// An answer that does not fit its question: another server than is known, or a table that changed meanwhile.
    #[error("a description that does not add up")]
    Unreadable,
}

/// What kind of table it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// A table of InnoDB: it can be read as of one moment.
    InnoDb,
    /// A table of another storage engine, which cannot.
    Engine(String),
    /// A view.
    View,
}

/// A table, described.
#[derive(Clone, Debug)]
pub struct Described {
    /// The same version as the stream's, but for what is left out of it.
    pub version: TableVersion,
    /// What kind of table it is.
    pub kind: TableKind,
    indexes: Vec<Index>,
    strings: Vec<Option<StringFacts>>,
}

impl Described {
    /// The key to copy by: the primary key, else the first unique key without NULL by name.
    ///
    /// # Errors
    /// Why none can be used.
    pub fn key(&self) -> Result<CopyKey, KeyUnsupported> {
        CopyKey::choose(&self.version, &self.indexes, &self.strings)
    }
}

/// The questions about one table: send [`Describe::statement`], hand the answer to [`Describe::on_result`].
pub struct Describe {
    schema: String,
    table: String,
    question: Question,
    found: Found,
}

impl fmt::Debug for Describe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Describe({}.{}, {} columns)", self.schema, self.table, self.found.columns.len())
    }
}

/// What follows an answer.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved a few times for each table")]
pub enum DescribeStep {
    /// Ask on.
    More(Describe),
    /// All is known.
    Done(Box<Described>),
}

#[derive(Clone, Copy, Debug)]
enum Question {
    Table,
    Columns,
    Indexes,
    Labels,
}

#[derive(Default)]
struct Found {
    kind: Option<TableKind>,
    columns: Vec<Column>,
    /// Those of the primary key, or of what the server takes for one.
    primary: Vec<usize>,
    said: Vec<Said>,
    strings: Vec<Option<StringFacts>>,
    /// Columns whose members are still to be had in their own character set.
    labels: VecDeque<Pending>,
    indexes: Vec<Index>,
}

struct Pending {
    column: usize,
    is_enum: bool,
    members: Vec<String>,
    charset: &'static str,
    collation: u16,
}

impl Describe {
    /// The questions about `schema`.`table`, in a session set by [`SESSION`](super::SESSION).
    #[must_use]
    pub fn new(schema: &str, table: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            table: table.to_owned(),
            question: Question::Table,
            found: Found::default(),
        }
    }

    /// Schema and name of the table.
    #[must_use]
    pub fn table(&self) -> (&str, &str) {
        (&self.schema, &self.table)
    }

    /// What to ask now.
    #[must_use]
    pub fn statement(&self) -> String {
        let of = format!("TABLE_SCHEMA = {} AND TABLE_NAME = {}", text(&self.schema), text(&self.table));
        match self.question {
            Question::Table => of_tables("", &of),
            Question::Columns => of_columns("", &of),
            Question::Indexes => of_indexes("", &of),
            Question::Labels => self.found.labels.front().map(labels_in_charset).unwrap_or_default(),
        }
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// Why the table cannot be described.
    pub fn on_result(mut self, answer: &ResultSet) -> Result<DescribeStep, DescribeError> {
        self.question = match self.question {
            Question::Table => {
                self.found.table(answer)?;
                Question::Columns
            }
            Question::Columns => {
                self.found.columns(answer)?;
                Question::Indexes
            }
            Question::Indexes => {
                self.found.indexes(answer)?;
                Question::Labels
            }
            Question::Labels => {
                self.found.labels(answer)?;
                Question::Labels
            }
        };
        if matches!(self.question, Question::Labels) && self.found.labels.is_empty() {
            return self
                .found
                .described(self.schema, self.table)
                .map(|done| DescribeStep::Done(Box::new(done)));
        }
        Ok(DescribeStep::More(self))
    }
}

/// The questions about some tables of one schema at once: most of the time that the catalogue takes for an answer is
/// that of the statement, not that of its rows. Labels that are still to be had are asked for table by table.
#[derive(Debug)]
pub struct DescribeSome {
    schema: String,
    question: Question,
    each: Vec<SomeOf>,
}

/// A table's schema and name, and what follows.
pub type SomeOf = ((String, String), Result<DescribeStep, DescribeError>);

/// What follows an answer about some tables.
#[derive(Debug)]
pub enum DescribeSomeStep {
    /// Ask on.
    More(DescribeSome),
    /// What is known of each.
    Done(Vec<SomeOf>),
}

impl DescribeSome {
    /// The questions about these tables of `schema`.
    #[must_use]
    pub fn new(schema: &str, tables: impl IntoIterator<Item = String>) -> Self {
        let begun = |table: String| {
            let describe = Describe::new(schema, &table);
            ((schema.to_owned(), table), Ok(DescribeStep::More(describe)))
        };
        let each = tables.into_iter().map(begun).collect();
        Self { schema: schema.to_owned(), question: Question::Table, each }
    }

    /// What to ask now.
    #[must_use]
    pub fn statement(&self) -> String {
        let names: Vec<String> = self.each.iter().map(|((_, name), _)| text(name)).collect();
        let of = format!("TABLE_SCHEMA = {} AND TABLE_NAME IN ({})", text(&self.schema), names.join(", "));
        match self.question {
            Question::Table => of_tables(", TABLE_NAME", &of),
            Question::Columns => of_columns(", c.TABLE_NAME", &of),
            Question::Indexes | Question::Labels => of_indexes(", TABLE_NAME", &of),
        }
    }

    /// Takes the answer.
    #[must_use]
    pub fn on_result(mut self, answer: &ResultSet) -> DescribeSomeStep {
        let mut rows: BTreeMap<&[u8], Vec<Vec<Option<bytes::Bytes>>>> = BTreeMap::new();
        for row in &answer.rows {
            if let [cells @ .., Some(name)] = row.as_slice() {
                rows.entry(name).or_default().push(cells.to_vec());
            }
        }
        let each = self.each.into_iter().map(|(name, step)| {
            let step = match step {
                Ok(DescribeStep::More(describe)) => {
                    let rows = rows.remove(name.1.as_bytes()).unwrap_or_default();
                    describe.on_result(&ResultSet { rows, ..ResultSet::default() })
                }
                done @ (Ok(DescribeStep::Done(_)) | Err(_)) => done,
            };
            (name, step)
        });
        self.each = each.collect();
        self.question = match self.question {
            Question::Table => Question::Columns,
            Question::Columns => Question::Indexes,
            Question::Indexes | Question::Labels => return DescribeSomeStep::Done(self.each),
        };
        DescribeSomeStep::More(self)
    }
}

/// Without its size, for which the server would open each table.
fn of_tables(more: &str, of: &str) -> String {
    format!("SELECT TABLE_TYPE, ENGINE{more} FROM information_schema.TABLES WHERE {of}")
}

fn of_columns(more: &str, of: &str) -> String {
    format!(
        "SELECT c.COLUMN_NAME, c.ORDINAL_POSITION, c.DATA_TYPE, c.COLUMN_TYPE, c.IS_NULLABLE, \
         c.CHARACTER_OCTET_LENGTH, c.NUMERIC_PRECISION, c.NUMERIC_SCALE, c.DATETIME_PRECISION, \
         c.CHARACTER_SET_NAME, c.COLLATION_NAME, l.ID, c.CHARACTER_MAXIMUM_LENGTH, c.EXTRA, c.COLUMN_KEY, \
         c.GENERATION_EXPRESSION{more} \
         FROM information_schema.COLUMNS c \
         LEFT JOIN information_schema.COLLATIONS l ON l.COLLATION_NAME = c.COLLATION_NAME \
         WHERE {of} ORDER BY c.ORDINAL_POSITION"
    )
}

fn of_indexes(more: &str, of: &str) -> String {
    format!(
        "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART, IS_VISIBLE, COLLATION{more} FROM information_schema.STATISTICS \
         WHERE {of} AND NON_UNIQUE = 0 \
         ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"
    )
}

/// One row of an answer, cell by cell.
struct Cells<'a>(core::slice::Iter<'a, Option<bytes::Bytes>>);

impl<'a> Cells<'a> {
    fn optional(&mut self) -> Result<Option<&'a str>, DescribeError> {
        let cell = self.0.next().ok_or(DescribeError::Unreadable)?;
        let text = cell.as_deref().map(core::str::from_utf8).transpose();
        text.map_err(|_| DescribeError::Unreadable)
    }

    fn text(&mut self) -> Result<&'a str, DescribeError> {
        self.optional()?.ok_or(DescribeError::Unreadable)
    }

    fn owned(&mut self) -> Result<Option<String>, DescribeError> {
        Ok(self.optional()?.map(str::to_owned))
    }

    fn number(&mut self) -> Result<Option<u64>, DescribeError> {
        self.optional()?.map(|text| text.parse().map_err(|_| DescribeError::Unreadable)).transpose()
    }
}

impl Found {
    fn table(&mut self, answer: &ResultSet) -> Result<(), DescribeError> {
        let row = answer.single_row().ok_or(DescribeError::NoSuchTable)?;
        let mut cells = Cells(row.iter());
        let (table_type, engine) = (cells.text()?, cells.optional()?);
        self.kind = Some(match (table_type, engine) {
            ("BASE TABLE", Some("InnoDB")) => TableKind::InnoDb,
            ("BASE TABLE", engine) => TableKind::Engine(engine.unwrap_or_default().to_owned()),
            _ => TableKind::View,
        });
        Ok(())
    }

    fn columns(&mut self, answer: &ResultSet) -> Result<(), DescribeError> {
        for (row, place) in answer.rows.iter().zip(1_u64..) {
            let mut cells = Cells(row.iter());
            let name = cells.text()?.to_owned();
            if cells.number()? != Some(place) {
                return Err(DescribeError::ColumnMissing);
            }
            let (data_type, column_type) = (cells.text()?.to_owned(), cells.text()?.to_owned());
            let nullable = cells.text()? == "YES";
            let described = column::Described {
                data_type,
                column_type,
                octets: cells.number()?,
                precision: cells.number()?,
                scale: cells.number()?,
                fsp: cells.number()?,
                charset: cells.owned()?,
                collation: cells.owned()?,
                collation_id: cells.number()?.and_then(|id| u16::try_from(id).ok()),
            };
            let chars_max = cells.number()?.unwrap_or(0);
            let extra = cells.text()?.to_owned();
            if cells.optional()? == Some("PRI") {
                self.primary.push(self.columns.len());
            }
            let expression = cells.owned()?.unwrap_or_default();
            self.said.push(Said {
                name: name.clone(),
                column_type: described.column_type.clone(),
                extra: extra.clone(),
                expression,
            });
            let typed = described.typed().ok_or_else(|| DescribeError::ColumnType(name.clone()))?;
            let column_type = match typed {
                Typed::Type(column_type) => column_type,
                Typed::Members { is_enum, members, collation } => {
                    self.members(&name, is_enum, members, collation)?
                }
            };
            let visible = !extra.contains("INVISIBLE");
            self.columns.push(Column { name, column_type, nullable, visible });
            let names = described.charset.zip(described.collation);
            self.strings.push(names.map(|(charset, collation)| StringFacts {
                charset,
                collation,
                chars_max,
            }));
        }
        if self.columns.is_empty() { Err(DescribeError::NoSuchTable) } else { Ok(()) }
    }

    /// ENUM or SET: the catalogue has its labels in UTF-8, the binlog in the column's own character set.
    fn members(
        &mut self,
        name: &str,
        is_enum: bool,
        members: Vec<String>,
        collation: u16,
    ) -> Result<ColumnType, DescribeError> {
        let unknown = || DescribeError::ColumnType(name.to_owned());
        let charset = Charset::of_collation(collation).ok_or_else(unknown)?;
        let beyond_three_bytes = matches!(
            charset,
            Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 | Charset::Gb18030
        );
        let is_ascii = members.iter().all(|member| member.is_ascii());
        // Bytes that were converted as if they were text.
        let bent = charset == Charset::Binary && !is_ascii;
        if bent || (beyond_three_bytes && members.iter().any(|member| member.contains('?'))) {
            return Err(DescribeError::Labels(name.to_owned()));
        }
        let wide = matches!(
            charset,
            Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 | Charset::Swe7
        );
        let is_utf8 = matches!(charset, Charset::Utf8mb3 | Charset::Utf8mb4);
        if is_utf8 || (is_ascii && !wide) {
            let labels = Labels::new(members.iter().map(String::as_bytes), Some(collation));
            return of_members(is_enum, labels).ok_or_else(unknown);
        }
        let pending =
            Pending { column: self.columns.len(), is_enum, members, charset: charset.name(), collation };
        let column_type = of_members(is_enum, Labels::new(core::iter::empty(), Some(collation)));
        self.labels.push_back(pending);
        column_type.ok_or_else(unknown)
    }

    fn indexes(&mut self, answer: &ResultSet) -> Result<(), DescribeError> {
        for row in &answer.rows {
            let mut cells = Cells(row.iter());
            let name = cells.text()?;
            let column = cells.optional()?;
            let prefix = cells.number()?.unwrap_or(0);
            let visible = cells.text()? == "YES";
            let descends = cells.optional()? == Some("D");
            let part = match column {
                // A functional part has an expression and no column.
                None => None,
                Some(column) => {
                    let place = self.columns.iter().position(|c| c.name == column);
                    Some(IndexPart {
                        column: place.ok_or(DescribeError::Unreadable)?,
                        prefix: u32::try_from(prefix).map_err(|_| DescribeError::Unreadable)?,
                        descends,
                    })
                }
            };
            match self.indexes.last_mut() {
                Some(index) if index.name == name => index.parts.push(part),
                Some(_) | None => {
                    let parts = Vec::from([part]);
                    self.indexes.push(Index { name: name.to_owned(), visible, parts });
                }
            }
        }
        Ok(())
    }

    fn labels(&mut self, answer: &ResultSet) -> Result<(), DescribeError> {
        let pending = self.labels.pop_front().ok_or(DescribeError::Unreadable)?;
        if answer.rows.len() != pending.members.len() {
            return Err(DescribeError::Unreadable);
        }
        let mut members = Vec::with_capacity(answer.rows.len());
        for row in &answer.rows {
            let [Some(member)] = row.as_slice() else { return Err(DescribeError::Unreadable) };
            members.push(&member[..]);
        }
        let labels = Labels::new(members, Some(pending.collation));
        let column = self.columns.get_mut(pending.column).ok_or(DescribeError::Unreadable)?;
        column.column_type = of_members(pending.is_enum, labels).ok_or(DescribeError::Unreadable)?;
        Ok(())
    }

    fn described(self, schema: String, table: String) -> Result<Described, DescribeError> {
        let primary_key = self.primary_key()?;
        let facts = TableFacts {
            generated: Some(generation::of_columns(&self.said)),
            generated_invisible_primary_key: self.generated_invisible_primary_key(&primary_key),
            primary_key,
            names_known: true,
            signedness_known: true,
            collations_known: true,
        };
        Ok(Described {
            version: TableVersion::new(schema, table, self.columns, facts),
            kind: self.kind.ok_or(DescribeError::Unreadable)?,
            indexes: self.indexes,
            strings: self.strings,
        })
    }

    /// The primary key, else the unique key that the server takes for one in the binlog, too: its first without NULL
    /// and of whole columns (`TABLE_SHARE::primary_key`, `sql/dd_table_share.cc`).
    fn primary_key(&self) -> Result<Vec<KeyPart>, DescribeError> {
        let of = |index: &&Index| {
            let part = |part: &Option<IndexPart>| {
                part.as_ref().is_some_and(|part| part.prefix == 0 && self.primary.contains(&part.column))
            };
            index.parts.len() == self.primary.len() && index.parts.iter().all(part)
        };
        let primary = self.indexes.iter().find(|index| index.name == "PRIMARY");
        let mut primary_key = Vec::new();
        for part in primary.or_else(|| self.indexes.iter().find(of)).iter().flat_map(|index| &index.parts) {
            let part = part.as_ref().ok_or(DescribeError::Unreadable)?;
            primary_key.push(KeyPart { column: part.column, prefix: part.prefix });
        }
        Ok(primary_key)
    }

    /// As the server tells it from the definition (`table_has_generated_invisible_primary_key`,
    /// `sql/sql_gipk.cc`).
    fn generated_invisible_primary_key(&self, key: &[KeyPart]) -> bool {
        let ([KeyPart { column: 0, prefix: 0 }], Some(column), Some(extra)) =
            (key, self.columns.first(), self.said.first().map(|said| &said.extra))
        else {
            return false;
        };
        column.name.eq_ignore_ascii_case("my_row_id")
            && matches!(column.column_type, ColumnType::BigInt { unsigned: true })
            && !column.visible
            && extra.contains("auto_increment")
    }
}

/// The labels, in order, in the column's own character set.
fn labels_in_charset(pending: &Pending) -> String {
    let mut list = String::from("[");
    for (at, member) in pending.members.iter().enumerate() {
        if at > 0 {
            list.push(',');
        }
        escape::quote(&mut list, member);
    }
    list.push(']');
    let mut literal = String::new();
    hex(list.as_bytes(), &mut literal);
    let charset = pending.charset;
    format!(
        "SELECT CONVERT(l USING {charset}) FROM JSON_TABLE(CONVERT({literal} USING utf8mb4), '$[*]' COLUMNS \
         (n FOR ORDINALITY, l VARCHAR(255) CHARACTER SET utf8mb4 PATH '$')) labels ORDER BY n"
    )
}
