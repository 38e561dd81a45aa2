//! `ALTER TABLE`: the tables it touches and what it does to their rows.
//!
//! Coarse on purpose: each clause is sorted by its first words into *rows unchanged*, *changed* or
//! *unknown*. Who needs more of a clause (types, defaults) reads it from the same
//! [`Cursor`] where [`clause`] steps over it.

use alloc::vec::Vec;

use super::column::{self, ColumnPosition};
use super::cursor::{Cursor, Read, Refused};
use super::ddl::{affected, plain};
use super::effect::{AlterOperation, RowCopy, SchemaEffect, Unfollowed};
use super::lex::TokenKind;
use super::{AffectedTable, Ddl, DdlKind, RowsEffect, TableName, TableRole, Tables};
use crate::binlog::sql_mode::{STRICT_ALL_TABLES, STRICT_TRANS_TABLES};

use RowsEffect::{ChangedWithoutRowEvents as Changed, Unchanged, Unknown};

/// What follows `ALTER TABLE`.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Read<Ddl> {
    let name = cursor.table_name()?;
    let mut alter = Alter {
        rows: Unchanged,
        clause: Unchanged,
        operations: Vec::new(),
        rows_elsewhere: false,
        copying: Copying::default(),
        renamed_to: None,
        exchanged: None,
    };
    while !cursor.at_end()? {
        let mut again = cursor.clone();
        alter.clause = Unchanged;
        clause(cursor, &mut alter)?;
        operation(&mut again, &mut alter);
        // Only a list of clauses goes on after a comma; partitioning may follow without one.
        if !cursor.accept_symbol(b',')? && !cursor.at_any(&["PARTITION", "REMOVE"])? {
            cursor.end()?;
        }
    }
    let rows = alter.rows;
    let effect = alter.effect(&name, cursor);
    let tables = Tables::Named(alter.tables(name));
    let temporary = cursor.context().thread_specific;
    Ok(Ddl { tables, rows, temporary, effect, ..plain(DdlKind::AlterTable) })
}

/// The clause at the cursor once more, finer: what it does to columns. The clause was stepped over
/// before, so what is not read here to the same end costs no more than its being followed.
fn operation(cursor: &mut Cursor<'_>, alter: &mut Alter) {
    let read = match alter.clause {
        Unchanged => operations_without_rows(cursor),
        Changed | Unknown => operations(cursor),
    };
    match read {
        Ok(Some(operations)) => alter.operations.extend(operations),
        Ok(None) => alter.rows_elsewhere = true,
        Err(Refused) => alter.operations.push(AlterOperation::Unfollowed(Unfollowed::NotUnderstood)),
    }
}

/// A clause that keeps the rows' values: only `RENAME COLUMN`, and another default where a column is generated from
/// it, are more than nothing.
fn operations_without_rows(cursor: &mut Cursor<'_>) -> Read<Option<Vec<AlterOperation>>> {
    let mut operations = Vec::new();
    if cursor.accept("RENAME")? && cursor.accept("COLUMN")? {
        let from = column::column_name(cursor)?;
        cursor.expect("TO")?;
        let to = column::column_name(cursor)?;
        clause_ends(cursor)?;
        operations.push(AlterOperation::Rename { from, to });
    } else if cursor.accept("ALTER")? && !cursor.at_any(&["INDEX", "CHECK", "CONSTRAINT"])? {
        cursor.accept("COLUMN")?;
        column::column_name(cursor)?;
        if cursor.accept_any(&["SET", "DROP"])? && cursor.at("DEFAULT")? {
            operations.push(AlterOperation::Default);
        }
    }
    Ok(Some(operations))
}

/// A clause that may change the rows; `None`: they come from elsewhere or go there.
fn operations(cursor: &mut Cursor<'_>) -> Read<Option<Vec<AlterOperation>>> {
    let unfollowed = |why| Ok(Some(Vec::from([AlterOperation::Unfollowed(why)])));
    let mut operations = Vec::new();
    if cursor.accept("ADD")? {
        if cursor.at_any(&["PRIMARY", "CONSTRAINT"])? {
            return unfollowed(Unfollowed::Values);
        }
        cursor.accept("COLUMN")?;
        if cursor.accept_symbol(b'(')? {
            loop {
                let definition = column::named_definition(cursor)?;
                operations.push(AlterOperation::Add(definition.into(), ColumnPosition::Unsaid));
                if !cursor.accept_symbol(b',')? {
                    break;
                }
            }
            cursor.expect_symbol(b')')?;
        } else {
            let definition = column::named_definition(cursor)?;
            let position = column::position(cursor)?;
            operations.push(AlterOperation::Add(definition.into(), position));
        }
    } else if cursor.accept("DROP")? {
        if cursor.at("PARTITION")? {
            return unfollowed(Unfollowed::RowsElsewhere);
        }
        cursor.accept("COLUMN")?;
        operations.push(AlterOperation::Drop(column::column_name(cursor)?));
        cursor.accept_any(&["RESTRICT", "CASCADE"])?;
    } else if cursor.at_any(&["MODIFY", "CHANGE"])? {
        let change = cursor.accept("CHANGE")?;
        if !change {
            cursor.expect("MODIFY")?;
        }
        cursor.accept("COLUMN")?;
        let from = column::column_name(cursor)?;
        let column = if change {
            column::named_definition(cursor)?
        } else {
            column::definition(cursor, from.clone())?
        };
        let position = column::position(cursor)?;
        operations.push(AlterOperation::Change { from, column: column.into(), position });
    } else if cursor.at("CONVERT")? {
        return unfollowed(Unfollowed::Type);
    } else if cursor.at_any(&["TRUNCATE", "REPAIR", "REORGANIZE"])? {
        return unfollowed(Unfollowed::RowsElsewhere);
    } else {
        return Ok(None);
    }
    clause_ends(cursor)?;
    Ok(Some(operations))
}

fn clause_ends(cursor: &mut Cursor<'_>) -> Read<()> {
    let over = cursor.at_symbol(b',')? || cursor.at_any(&["PARTITION", "REMOVE"])? || cursor.at_end()?;
    if over { Ok(()) } else { Err(Refused) }
}

/// What the clauses read so far come to.
#[derive(Debug)]
struct Alter {
    rows: RowsEffect,
    /// What the present clause comes to.
    clause: RowsEffect,
    /// What its clauses do to columns.
    operations: Vec<AlterOperation>,
    /// Also a table without rows may have some after it.
    rows_elsewhere: bool,
    copying: Copying,
    renamed_to: Option<TableName>,
    exchanged: Option<TableName>,
}

impl Alter {
    /// The stronger statement wins: what is changed by one clause is changed.
    fn rows(&mut self, effect: RowsEffect) {
        let both = |a, b| match (a, b) {
            (Changed, _) | (_, Changed) => Changed,
            (Unknown, _) | (_, Unknown) => Unknown,
            (Unchanged, Unchanged) => Unchanged,
        };
        self.rows = both(self.rows, effect);
        self.clause = both(self.clause, effect);
    }

    fn effect(&mut self, table: &TableName, cursor: &Cursor<'_>) -> SchemaEffect {
        if self.rows_elsewhere {
            return SchemaEffect::Unfollowed(Unfollowed::RowsElsewhere);
        }
        let operations = core::mem::take(&mut self.operations);
        let copies = self.copying.may_copy(cursor.context().sql_mode);
        if operations.is_empty() && self.renamed_to.is_none() {
            return match copies.filter(|_| self.rows == Unchanged) {
                Some(copy) => SchemaEffect::CopyTables([table.clone()].into(), copy),
                None => SchemaEffect::Nothing,
            };
        }
        let strict = cursor.context().sql_mode & (STRICT_TRANS_TABLES | STRICT_ALL_TABLES) != 0;
        // Where it moves to is said by the captured set.
        SchemaEffect::AlterTable { table: table.clone(), operations, strict, copies, moves: Vec::new() }
    }

    fn tables(self, name: TableName) -> Vec<AffectedTable> {
        let mut tables = Vec::new();
        match self.renamed_to {
            Some(new) => {
                tables.push(affected(name, TableRole::RenamedFrom));
                tables.push(affected(new, TableRole::RenamedTo));
            }
            None => tables.push(affected(name, TableRole::Altered)),
        }
        tables.extend(self.exchanged.map(|partner| affected(partner, TableRole::Exchanged)));
        tables
    }
}

/// What of a statement decides whether the server copies a table, row by row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copying {
    /// It does something that is done by copying, be it only under `old_alter_table`.
    copied: bool,
    /// `ALGORITHM`: `COPY`, or one that never copies; `None`: the server's choice. The last one counts.
    algorithm: Option<bool>,
    /// `LOCK=NONE`, of which a copy is not capable: the server refuses it then.
    unlocked: bool,
}

impl Copying {
    /// Of a statement that may be done by copying.
    pub(super) const fn possible() -> Self {
        Self { copied: true, algorithm: None, unlocked: false }
    }

    /// `ALGORITHM` or `LOCK`, if it is next.
    pub(super) fn accept(&mut self, cursor: &mut Cursor<'_>) -> Read<bool> {
        let algorithm = cursor.accept("ALGORITHM")?;
        if !algorithm && !cursor.accept("LOCK")? {
            return Ok(false);
        }
        cursor.accept_symbol(b'=')?;
        let value = cursor.name()?;
        let is = |word: &str| value.eq_ignore_ascii_case(word);
        if algorithm {
            self.algorithm =
                if is("COPY") { Some(true) } else { (is("INPLACE") || is("INSTANT")).then_some(false) };
        } else {
            self.unlocked = is("NONE");
        }
        Ok(true)
    }

    /// Seen on 9.7.4 of each form, with `old_alter_table` on and off.
    pub(super) fn may_copy(self, sql_mode: u64) -> Option<RowCopy> {
        self.algorithm.unwrap_or(self.copied && !self.unlocked).then(|| RowCopy::under(sql_mode))
    }
}

/// One clause, up to its comma or the end.
fn clause(cursor: &mut Cursor<'_>, alter: &mut Alter) -> Read<()> {
    if alter.copying.accept(cursor)? {
        return Ok(());
    }
    // RENAME of the table moves it, of anything else see there.
    alter.copying.copied |=
        !cursor.at_any(&["ANALYZE", "CHECK", "DISABLE", "ENABLE", "RENAME", "WITH", "WITHOUT"])?;
    if cursor.accept("ADD")? {
        add(cursor, alter)
    } else if cursor.accept("DROP")? {
        let keeps_rows = cursor.at_any(&["INDEX", "KEY", "PRIMARY", "FOREIGN", "CHECK", "CONSTRAINT"])?;
        let partition = cursor.at("PARTITION")?;
        finish(cursor, alter, if keeps_rows { Unchanged } else { Changed }, partition)
    } else if cursor.accept_any(&["MODIFY", "CHANGE", "CONVERT"])? {
        // A type or character set may lose or bend values; telling which is a finer reader's work.
        finish(cursor, alter, Unknown, false)
    } else if cursor.accept("ALTER")? {
        // [COLUMN] SET | DROP DEFAULT, visibility, INDEX, CHECK, CONSTRAINT: new rows only.
        finish(cursor, alter, Unchanged, false)
    } else if cursor.accept("RENAME")? {
        rename(cursor, alter)
    } else if cursor.accept("ORDER")? {
        // Its commas are the list's own, and no clause can come after it.
        cursor.expect("BY")?;
        finish(cursor, alter, Unchanged, true)
    } else if cursor.accept_any(&["DISABLE", "ENABLE"])? {
        cursor.expect("KEYS")
    } else if cursor.accept("FORCE")? {
        Ok(())
    } else if cursor.accept_any(&["WITH", "WITHOUT"])? {
        cursor.expect("VALIDATION")
    } else if cursor.accept_any(&["SECONDARY_LOAD", "SECONDARY_UNLOAD"])? {
        finish(cursor, alter, Unchanged, true)
    } else {
        partitions_or_option(cursor, alter)
    }
}

/// Notes the effect and steps over the rest: of the clause, or, where commas are inside it, of the
/// statement.
fn finish(cursor: &mut Cursor<'_>, alter: &mut Alter, effect: RowsEffect, whole: bool) -> Read<()> {
    alter.rows(effect);
    if whole { cursor.rest() } else { cursor.rest_of_item() }
}

/// What follows `ADD`.
fn add(cursor: &mut Cursor<'_>, alter: &mut Alter) -> Read<()> {
    if cursor.at("PARTITION")? {
        return finish(cursor, alter, Unchanged, true);
    }
    if cursor.accept("CONSTRAINT")? && !cursor.at_any(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"])? {
        cursor.name()?;
        if !cursor.at_any(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"])? {
            return Err(Refused);
        }
    }
    let effect = if cursor.at("PRIMARY")? {
        // Without a strict mode a NULL in a column of the new key becomes 0 or '' (seen on 9.7.4).
        let strict = STRICT_TRANS_TABLES | STRICT_ALL_TABLES;
        if cursor.context().sql_mode & strict == 0 { Unknown } else { Unchanged }
    } else if cursor.at_any(&["INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"])? {
        Unchanged
    } else {
        Changed
    };
    finish(cursor, alter, effect, false)
}

/// What follows `RENAME`: a column or an index keeps the rows, `[TO | AS | =] table` moves them.
fn rename(cursor: &mut Cursor<'_>, alter: &mut Alter) -> Read<()> {
    if cursor.at_any(&["COLUMN", "INDEX", "KEY"])? {
        alter.copying.copied = true;
        return finish(cursor, alter, Unchanged, false);
    }
    if !cursor.accept_any(&["TO", "AS"])? {
        cursor.accept_symbol(b'=')?;
    }
    // Without a schema it is the default database's, not the old table's (seen on 9.7.4).
    alter.renamed_to = Some(cursor.table_name()?);
    Ok(())
}

/// Clauses about partitions and tablespaces, and the table's options.
fn partitions_or_option(cursor: &mut Cursor<'_>, alter: &mut Alter) -> Read<()> {
    if cursor.accept_any(&["DISCARD", "IMPORT"])? {
        // TABLESPACE, PARTITION … TABLESPACE: the file goes, or another comes.
        return finish(cursor, alter, Changed, true);
    }
    if cursor.accept("EXCHANGE")? {
        return exchange(cursor, alter);
    }
    if cursor.accept("PARTITION")? {
        cursor.expect("BY")?;
        return finish(cursor, alter, Unchanged, true);
    }
    // Rows whose value no LIST partition has any more are dropped, without a word (seen on 9.7.4); the ranges of RANGE
    // partitions cannot become smaller.
    let reorganized = if cursor.at("REORGANIZE")? && mentions(cursor, "IN")? { Changed } else { Unchanged };
    let partition_clauses = [
        ("TRUNCATE", "PARTITION", Changed),
        ("REORGANIZE", "PARTITION", reorganized),
        ("COALESCE", "PARTITION", Unchanged),
        ("REBUILD", "PARTITION", Unchanged),
        ("OPTIMIZE", "PARTITION", Unchanged),
        ("ANALYZE", "PARTITION", Unchanged),
        ("CHECK", "PARTITION", Unchanged),
        ("REPAIR", "PARTITION", Unknown),
        ("REMOVE", "PARTITIONING", Unchanged),
        ("UPGRADE", "PARTITIONING", Unchanged),
    ];
    for (word, object, effect) in partition_clauses {
        if cursor.accept(word)? {
            cursor.expect(object)?;
            return finish(cursor, alter, effect, true);
        }
    }
    option(cursor, alter)
}

/// Whether this keyword is anywhere in the rest of the statement.
fn mentions(cursor: &Cursor<'_>, keyword: &str) -> Read<bool> {
    let mut ahead = cursor.clone();
    while let Some(token) = ahead.next()? {
        if token.is(keyword) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What follows `EXCHANGE`: `PARTITION p WITH TABLE t [{WITH | WITHOUT} VALIDATION]`.
fn exchange(cursor: &mut Cursor<'_>, alter: &mut Alter) -> Read<()> {
    cursor.expect("PARTITION")?;
    cursor.name()?;
    cursor.expect("WITH")?;
    cursor.expect("TABLE")?;
    alter.exchanged = Some(cursor.table_name()?);
    alter.rows(Changed);
    if cursor.accept_any(&["WITH", "WITHOUT"])? {
        cursor.expect("VALIDATION")?;
    }
    cursor.end()
}

/// Options that have no say in what the rows are.
const HARMLESS_OPTIONS: [&str; 29] = [
    "AUTOEXTEND_SIZE",
    "AUTO_INCREMENT",
    "AVG_ROW_LENGTH",
    "CHARSET",
    "CHECKSUM",
    "COLLATE",
    "COMMENT",
    "COMPRESSION",
    "DELAY_KEY_WRITE",
    "ENCRYPTION",
    "ENGINE_ATTRIBUTE",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "MAX_ROWS",
    "MIN_ROWS",
    "NODEGROUP",
    "PACK_KEYS",
    "PAGE_CHECKSUM",
    "PASSWORD",
    "ROW_FORMAT",
    "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "STORAGE",
    "TABLE_CHECKSUM",
    "TABLESPACE",
    "TRANSACTIONAL",
];

/// `name [=] value`. One we do not know is about this table at least, as it can name no other.
fn option(cursor: &mut Cursor<'_>, alter: &mut Alter) -> Read<()> {
    loop {
        option_one(cursor, alter)?;
        // Options may follow each other without a comma.
        let over = cursor.at_symbol(b',')? || cursor.at_any(&["PARTITION", "REMOVE"])? || cursor.at_end()?;
        if over {
            return Ok(());
        }
    }
}

fn option_one(cursor: &mut Cursor<'_>, alter: &mut Alter) -> Read<()> {
    cursor.accept("DEFAULT")?;
    let effect = if cursor.accept_all(&["CHARACTER", "SET"])? || cursor.accept_all(&["CHAR", "SET"])? {
        Unchanged
    } else if cursor.accept_any(&["DATA", "INDEX"])? {
        cursor.expect("DIRECTORY")?;
        Unchanged
    } else if cursor.accept_any(&HARMLESS_OPTIONS)? {
        Unchanged
    } else if cursor.accept("ENGINE")? {
        cursor.accept_symbol(b'=')?;
        // Every row is copied; into another engine not always (BLACKHOLE keeps none).
        let innodb = cursor.peek()?.is_some_and(|token| token.is("InnoDB"));
        cursor.group_or_token()?;
        alter.rows(if innodb { Unchanged } else { Unknown });
        return Ok(());
    } else {
        // UNION and CONNECTION point at other rows; any other is news to us.
        let token = cursor.next()?.ok_or(Refused)?;
        if token.kind != TokenKind::Word {
            return Err(Refused);
        }
        Unknown
    };
    cursor.accept_symbol(b'=')?;
    let value = cursor.peek()?.ok_or(Refused)?;
    if matches!(value.kind, TokenKind::Symbol(symbol) if symbol != b'(') {
        return Err(Refused);
    }
    cursor.group_or_token()?;
    alter.rows(effect);
    Ok(())
}
