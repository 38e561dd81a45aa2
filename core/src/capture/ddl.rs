//! What a DDL means for a captured set.

use alloc::vec::Vec;

use super::CapturedSet;
use crate::sql::{
    AffectedTable, AlterOperation, ColumnDefinition, Ddl, RowsEffect, SchemaEffect, TableMove, TableName,
    TableRole, Tables, Unfollowed, lower_case,
};

/// What a DDL does to the captured tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DdlEffect {
    /// What becomes of captured rows: as the statement has it, but unknown where a table of other
    /// rows took a captured name, and changed where a captured table left the set.
    pub rows: RowsEffect,
    /// A table came under a captured name by RENAME from one that is not captured: its rows were
    /// never delivered (`table_entered_capture`).
    pub entered: bool,
    /// A captured table went to a name that is not captured: to the sink it is dropped.
    pub left: bool,
    /// What it does to captured tables, their columns and rows, where all of it is certain.
    pub effect: SchemaEffect,
}

impl CapturedSet {
    /// What a DDL does to the captured tables; `None` if it touches none of them.
    ///
    /// Renames are judged by what the whole statement comes to: swapping two captured tables over a
    /// name outside of the set moves nothing in or out.
    #[must_use]
    pub fn effect_of(&self, ddl: &Ddl) -> Option<DdlEffect> {
        if ddl.temporary {
            return None;
        }
        let mut effect =
            DdlEffect { rows: ddl.rows, entered: false, left: false, effect: ddl.effect.clone() };
        let Tables::Named(tables) = &ddl.tables else { return Some(effect) };
        let touched = tables
            .iter()
            .filter(|table| table.role != TableRole::LikeSource)
            .any(|table| self.captures(&table.schema, &table.table));
        if !touched && !ddl.schemas.iter().any(|schema| self.captures_schema(schema)) {
            return None;
        }
        let (mut moves, mut entered) = (Vec::new(), Vec::new());
        for (from, to) in self.net_renames(tables) {
            let captured = (self.captures(&from.schema, &from.table), self.captures(&to.schema, &to.table));
            match captured {
                (false, true) => entered.push(name_of(to)),
                (true, false) => effect.left = true,
                (true, true) | (false, false) => {}
            }
            if captured.0 {
                let to = captured.1.then(|| name_of(to));
                moves.push(TableMove { from: name_of(from), to });
            }
        }
        effect.entered = !entered.is_empty();
        effect.effect = if effect.entered {
            SchemaEffect::TableEntered { entered, moves }
        } else if self.fold
            && !(tables.iter().all(is_lower_case) && ddl.schemas.iter().all(|name| lower_case(name) == *name))
        {
            // lower_case_table_names=2: which of its spellings a table goes by is not known here.
            SchemaEffect::Unfollowed(Unfollowed::NotUnderstood)
        } else {
            self.captured_part(effect.effect, moves)
        };
        if effect.rows == RowsEffect::Unchanged {
            effect.rows = match (effect.entered, effect.left) {
                (true, _) => RowsEffect::Unknown,
                (false, true) => RowsEffect::ChangedWithoutRowEvents,
                (false, false) => RowsEffect::Unchanged,
            };
        }
        Some(effect)
    }

    /// The effect on what is captured.
    fn captured_part(&self, effect: SchemaEffect, moves: Vec<TableMove>) -> SchemaEffect {
        match effect {
            SchemaEffect::CreateTable { table, if_not_exists, columns } => {
                let columns = columns.map(|mut columns| {
                    columns.iter_mut().for_each(|column| self.leave_out(&table, column));
                    columns
                });
                SchemaEffect::CreateTable { table, if_not_exists, columns }
            }
            SchemaEffect::AlterTable { table, operations, strict, copies, .. } => {
                let operations =
                    operations.into_iter().map(|operation| self.captured_operation(&table, operation));
                SchemaEffect::AlterTable { operations: operations.collect(), table, strict, copies, moves }
            }
            SchemaEffect::RenameTables(_) => SchemaEffect::RenameTables(moves),
            SchemaEffect::CopyTables(mut tables, copy) => {
                tables.retain(|table| self.captures(&table.schema, &table.table));
                SchemaEffect::CopyTables(tables, copy)
            }
            SchemaEffect::DropTables(mut tables) => {
                tables.retain(|table| self.captures(&table.schema, &table.table));
                SchemaEffect::DropTables(tables)
            }
            effect @ (SchemaEffect::Nothing
            | SchemaEffect::CreateTableLike { .. }
            | SchemaEffect::TruncateTable(_)
            | SchemaEffect::DropDatabase(_)
            | SchemaEffect::TableEntered { .. }
            | SchemaEffect::Unfollowed(_)) => effect,
        }
    }

    fn leave_out(&self, table: &TableName, column: &mut ColumnDefinition) {
        column.left_out = !self.column_captured(&table.schema, &table.table, &column.name);
    }

    fn captured_operation(&self, table: &TableName, mut operation: AlterOperation) -> AlterOperation {
        let captured = |name: &str| self.column_captured(&table.schema, &table.table, name);
        let crosses = match &mut operation {
            AlterOperation::Add(column, _) => {
                self.leave_out(table, column);
                false
            }
            AlterOperation::Change { from, column, .. } => {
                self.leave_out(table, column);
                captured(from) == column.left_out
            }
            AlterOperation::Rename { from, to } => captured(from) != captured(to),
            AlterOperation::Drop(_) | AlterOperation::Default | AlterOperation::Unfollowed(_) => false,
        };
        if crosses { AlterOperation::Unfollowed(Unfollowed::LeftOutColumn) } else { operation }
    }

    /// Each renamed table's first and last name.
    fn net_renames<'a>(&self, tables: &'a [AffectedTable]) -> Vec<(&'a AffectedTable, &'a AffectedTable)> {
        let mut moves: Vec<(&AffectedTable, &AffectedTable)> = Vec::new();
        let mut from = None;
        for table in tables {
            match table.role {
                TableRole::RenamedFrom => from = Some(table),
                TableRole::RenamedTo => {
                    let Some(from) = from.take() else { continue };
                    // A table that arrived at this name earlier in the list goes on from it.
                    match moves.iter_mut().find(|(_, at)| self.same_name(at, from)) {
                        Some((_, at)) => *at = table,
                        None => moves.push((from, table)),
                    }
                }
                TableRole::Created
                | TableRole::Altered
                | TableRole::Dropped
                | TableRole::Truncated
                | TableRole::Exchanged
                | TableRole::LikeSource => {}
            }
        }
        moves
    }

    fn same_name(&self, a: &AffectedTable, b: &AffectedTable) -> bool {
        let same = |a: &str, b: &str| a == b || (self.fold && lower_case(a) == lower_case(b));
        same(&a.schema, &b.schema) && same(&a.table, &b.table)
    }
}

fn name_of(table: &AffectedTable) -> TableName {
    TableName { schema: table.schema.clone(), table: table.table.clone() }
}

fn is_lower_case(table: &AffectedTable) -> bool {
    lower_case(&table.schema) == table.schema && lower_case(&table.table) == table.table
}
