//! What a DDL does to tables, their columns and the rows that are there, where its text tells all of it.
//!
//! For who keeps copies of tables: a copy follows what is certain and stops before the rest. The binlog
//! holds no rows for what a DDL does, so a wrong guess would be a copy that is wrong in silence.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::column::{ColumnDefinition, ColumnPosition, RowValue};
use super::declared::{Conversion, DeclaredType, same_column};
use super::{TableName, lower_case};
use crate::binlog::sql_mode::{
    ALLOW_INVALID_DATES, NO_ZERO_DATE, NO_ZERO_IN_DATE, STRICT_ALL_TABLES, STRICT_TRANS_TABLES,
};
use crate::value::{Generation, charset::Charset};

/// What a DDL does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaEffect {
    /// No table, column or row comes, goes or changes: indexes, views, routines, accounts and the like.
    Nothing,
    /// A new and empty table; its rows follow as row events if it has any (`CREATE TABLE … SELECT`).
    CreateTable {
        /// The table.
        table: TableName,
        /// With `IF NOT EXISTS`: it may have been there, and then nothing happened.
        if_not_exists: bool,
        /// Its columns, where the text could be read.
        columns: Option<Vec<ColumnDefinition>>,
    },
    /// A new and empty table with the columns of another.
    CreateTableLike {
        /// The table.
        table: TableName,
        /// The other.
        source: TableName,
        /// With `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// A table's columns or rows change.
    AlterTable {
        /// The table, by the name it had.
        table: TableName,
        /// What its clauses do, in their order; see [`plan`].
        operations: Vec<AlterOperation>,
        /// Under a strict `sql_mode` what does not fit is refused and not bent.
        strict: bool,
        /// How the server may copy the table, see [`SchemaEffect::CopyTables`]; `None`: it does not.
        copies: Option<RowCopy>,
        /// Where it is after that, if it moves.
        moves: Vec<TableMove>,
    },
    /// Columns and rows stay, but a server may copy these tables, and then computes their STORED generated columns anew
    /// in the session of the statement ([`Generation::BySession`]). Whether it does may be `old_alter_table`'s to say,
    /// which is not in the log.
    CopyTables(Vec<TableName>, RowCopy),
    /// Tables move to other names, all at once.
    RenameTables(Vec<TableMove>),
    /// A table is emptied.
    TruncateTable(TableName),
    /// Tables are gone, if they were there.
    DropTables(Vec<TableName>),
    /// All tables of a database are gone.
    DropDatabase(String),
    /// Tables of unknown rows took captured names (`table_entered_capture`).
    TableEntered {
        /// These names.
        entered: Vec<TableName>,
        /// Where captured tables went by the same statement.
        moves: Vec<TableMove>,
    },
    /// Nothing certain can be said.
    Unfollowed(Unfollowed),
}

/// What a server that copies rows within a table does to dates that are none; there are no row events of that. Without a
/// strict `sql_mode` they become `0000-00-00`, with one they are refused (seen on 9.7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCopy {
    /// DATE and DATETIME with a month or day of zero, as `2024-00-10` and `0000-00-00 01:00:00`: kept (but under
    /// `NO_ZERO_IN_DATE` or `NO_ZERO_DATE`).
    pub keeps_partial_dates: bool,
    /// DATE and DATETIME with a day that the month has not, as `2024-02-31`: kept (under `ALLOW_INVALID_DATES`).
    pub keeps_invalid_dates: bool,
}

impl RowCopy {
    pub(super) const fn under(sql_mode: u64) -> Self {
        let strict = sql_mode & (STRICT_TRANS_TABLES | STRICT_ALL_TABLES) != 0;
        Self {
            keeps_partial_dates: strict || sql_mode & (NO_ZERO_IN_DATE | NO_ZERO_DATE) == 0,
            keeps_invalid_dates: strict || sql_mode & ALLOW_INVALID_DATES != 0,
        }
    }
}

/// A table that goes to another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMove {
    /// Its name before the statement.
    pub from: TableName,
    /// Its name after it; `None`: one that is not captured.
    pub to: Option<TableName>,
}

/// What a clause of an `ALTER TABLE` does to columns and rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterOperation {
    /// `ADD COLUMN`.
    Add(Box<ColumnDefinition>, ColumnPosition),
    /// `DROP COLUMN`.
    Drop(String),
    /// `RENAME COLUMN`.
    Rename {
        /// The name it had.
        from: String,
        /// The name it has.
        to: String,
    },
    /// `MODIFY`, `CHANGE`.
    Change {
        /// The name it had.
        from: String,
        /// What it is now.
        column: Box<ColumnDefinition>,
        /// Where it goes.
        position: ColumnPosition,
    },
    /// `ALTER COLUMN … SET DEFAULT` or `DROP DEFAULT`: of new rows only, but for what a generated column makes of
    /// `DEFAULT(column)`.
    Default,
    /// What becomes of rows that are there is not certain. A table without rows has none after it.
    Unfollowed(Unfollowed),
}

/// Why a change is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfollowed {
    /// The text is not understood.
    NotUnderstood,
    /// Rows come from elsewhere, or go.
    RowsElsewhere,
    /// Rows get values that are computed, or depend on more than the text.
    Values,
    /// A type or character set changes so that values may.
    Type,
    /// The text names a column that the table has not.
    NoSuchColumn,
    /// A column enters or leaves the captured ones.
    LeftOutColumn,
}

impl Unfollowed {
    /// Its name in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotUnderstood => "not_understood",
            Self::RowsElsewhere => "rows_elsewhere",
            Self::Values => "values",
            Self::Type => "type",
            Self::NoSuchColumn => "no_such_column",
            Self::LeftOutColumn => "left_out_column",
        }
    }
}

/// A column of a table that a change is planned for.
#[derive(Clone, Debug)]
pub struct ExistingColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type, where it is known.
    pub column_type: Option<&'a DeclaredType>,
    /// The character set of text, where it is known.
    pub charset: Option<Charset>,
    /// Whether it may hold NULL.
    pub nullable: bool,
}

/// A column of the table as it is after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedColumn {
    /// Its name.
    pub name: String,
    /// Where its values come from.
    pub values: PlannedValues,
    /// Its definition, where the statement has one.
    pub definition: Option<Box<ColumnDefinition>>,
}

/// Where the values of a column come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedValues {
    /// From the column of this index, as they are or converted.
    Column {
        /// Index into the columns before the change.
        index: usize,
        /// What becomes of them.
        conversion: Conversion,
        /// The column has `AUTO_INCREMENT` now: a 0 or NULL could have got a number.
        numbers_zeros: bool,
    },
    /// Every row gets this one.
    Value(RowValue),
}

/// The most columns of a table (manual, "Limits on Table Column Count and Row Size").
const COLUMNS_MAX: usize = 4096;

/// More clauses than this about columns are not followed: each is looked up among all columns.
const OPERATIONS_MAX: usize = 1024;

/// Whether these clauses could have the server compute anew what its generated columns hold: another type, character
/// set or default of a column. (Another column under the name of one that a generated column needs is refused by the server.)
/// Expressions that give something else for the same values are a matter of [`SchemaEffect::CopyTables`].
#[must_use]
pub fn recomputes(operations: &[AlterOperation]) -> bool {
    operations.iter().any(|operation| match operation {
        AlterOperation::Change { .. } | AlterOperation::Default => true,
        AlterOperation::Add(..)
        | AlterOperation::Drop(_)
        | AlterOperation::Rename { .. }
        | AlterOperation::Unfollowed(_) => false,
    })
}

/// What the columns of a table are after these clauses, all taken as one as the server does
/// (`prepare_fields_and_keys` of `sql/sql_table.cc`): names of columns that were there are the old ones,
/// names behind `AFTER` the new ones.
///
/// # Errors
/// What is not certain.
pub fn plan(
    columns: &[ExistingColumn<'_>],
    operations: &[AlterOperation],
    strict: bool,
) -> Result<Vec<PlannedColumn>, Unfollowed> {
    if columns.len() > COLUMNS_MAX || operations.len() > OPERATIONS_MAX {
        return Err(Unfollowed::NotUnderstood);
    }
    let find = |name: &str| columns.iter().position(|column| same_column(column.name, name));
    // What happens to each column that is there; one clause each at most.
    let mut fates: Vec<Option<&AlterOperation>> = columns.iter().map(|_| None).collect();
    for operation in operations {
        let name = match operation {
            AlterOperation::Add(..) | AlterOperation::Default => continue,
            AlterOperation::Unfollowed(why) => return Err(*why),
            AlterOperation::Drop(name) => name,
            AlterOperation::Rename { from, .. } | AlterOperation::Change { from, .. } => from,
        };
        let fate = find(name).and_then(|index| fates.get_mut(index)).ok_or(Unfollowed::NoSuchColumn)?;
        if fate.replace(operation).is_some() {
            return Err(Unfollowed::NotUnderstood);
        }
    }
    let mut planned: Vec<PlannedColumn> = Vec::with_capacity(columns.len());
    for (index, (column, fate)) in columns.iter().zip(&fates).enumerate() {
        let kept = |name: &str| PlannedColumn {
            name: name.to_string(),
            values: PlannedValues::Column { index, conversion: Conversion::Same, numbers_zeros: false },
            definition: None,
        };
        match fate {
            None => planned.push(kept(column.name)),
            Some(AlterOperation::Rename { to, .. }) => planned.push(kept(to)),
            Some(AlterOperation::Change { column: definition, position: ColumnPosition::Unsaid, .. }) => {
                planned.push(changed(index, column, definition, strict)?);
            }
            // Those with a place go there in the order of the text; dropped ones nowhere.
            Some(AlterOperation::Change { .. } | AlterOperation::Drop(_)) => {}
            Some(AlterOperation::Add(..) | AlterOperation::Default | AlterOperation::Unfollowed(_)) => {
                return Err(Unfollowed::NotUnderstood);
            }
        }
    }
    for operation in operations {
        let (column, position) = match operation {
            AlterOperation::Add(definition, position) => {
                // Of what is left out no value is needed.
                let nothing = definition.left_out.then_some(RowValue::Null);
                let value = nothing.or_else(|| definition.value_when_added()).ok_or(Unfollowed::Values)?;
                let column = PlannedColumn {
                    name: definition.name.clone(),
                    values: PlannedValues::Value(value),
                    definition: Some(definition.clone()),
                };
                (column, position)
            }
            AlterOperation::Change { position: ColumnPosition::Unsaid, .. } => continue,
            AlterOperation::Change { from, column, position } => {
                let index = find(from).ok_or(Unfollowed::NoSuchColumn)?;
                let existing = columns.get(index).ok_or(Unfollowed::NoSuchColumn)?;
                (changed(index, existing, column, strict)?, position)
            }
            AlterOperation::Drop(_)
            | AlterOperation::Rename { .. }
            | AlterOperation::Default
            | AlterOperation::Unfollowed(_) => continue,
        };
        place(&mut planned, column, position)?;
    }
    let mut names = BTreeSet::new();
    let doubled = planned.iter().any(|column| !names.insert(lower_case(&column.name)));
    // Two columns of one name, or none at all: the server would have refused.
    if doubled || planned.is_empty() { Err(Unfollowed::NotUnderstood) } else { Ok(planned) }
}

fn place(
    planned: &mut Vec<PlannedColumn>,
    column: PlannedColumn,
    position: &ColumnPosition,
) -> Result<(), Unfollowed> {
    let at = match position {
        ColumnPosition::Unsaid => planned.len(),
        ColumnPosition::First => 0,
        ColumnPosition::After(name) => planned
            .iter()
            .position(|column| same_column(&column.name, name))
            .and_then(|before| before.checked_add(1))
            .ok_or(Unfollowed::NoSuchColumn)?,
    };
    planned.insert(at.min(planned.len()), column);
    Ok(())
}

/// A column under a new definition.
fn changed(
    index: usize,
    column: &ExistingColumn<'_>,
    definition: &ColumnDefinition,
    strict: bool,
) -> Result<PlannedColumn, Unfollowed> {
    let planned = |conversion| PlannedColumn {
        name: definition.name.clone(),
        values: PlannedValues::Column { index, conversion, numbers_zeros: definition.auto_increment },
        definition: Some(Box::new(definition.clone())),
    };
    if definition.left_out {
        return Ok(planned(Conversion::Same));
    }
    if definition.generation != Generation::Given {
        return Err(Unfollowed::Values);
    }
    let from = column.column_type.ok_or(Unfollowed::Type)?;
    let conversion = from.widened_to(&definition.column_type).ok_or(Unfollowed::Type)?;
    if from.has_charset() {
        let certain = match definition.charset {
            Some(charset) => column.charset == Some(charset),
            // The table's, which is seldom another; a strict mode would not have bent the text.
            None => strict,
        };
        if !certain {
            return Err(Unfollowed::Type);
        }
    }
    let becomes_not_null = column.nullable
        && (definition.nullable == Some(false)
            || definition.primary_key
            || (definition.nullable.is_none()
                && matches!(definition.column_type, DeclaredType::Timestamp { .. })));
    if becomes_not_null && !strict {
        return Err(Unfollowed::Values);
    }
    Ok(planned(conversion))
}
