//! What a DDL means for a captured set.

use alloc::vec::Vec;

use super::CapturedSet;
use crate::sql::{AffectedTable, Ddl, RowsEffect, TableRole, Tables, lower_case};

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
        let mut effect = DdlEffect { rows: ddl.rows, entered: false, left: false };
        let Tables::Named(tables) = &ddl.tables else { return Some(effect) };
        let touched = tables
            .iter()
            .filter(|table| table.role != TableRole::LikeSource)
            .any(|table| self.captures(&table.schema, &table.table));
        if !touched && !ddl.schemas.iter().any(|schema| self.captures_schema(schema)) {
            return None;
        }
        for (from, to) in self.net_renames(tables) {
            match (self.captures(&from.schema, &from.table), self.captures(&to.schema, &to.table)) {
                (false, true) => effect.entered = true,
                (true, false) => effect.left = true,
                (true, true) | (false, false) => {}
            }
        }
        if effect.rows == RowsEffect::Unchanged {
            effect.rows = match (effect.entered, effect.left) {
                (true, _) => RowsEffect::Unknown,
                (false, true) => RowsEffect::ChangedWithoutRowEvents,
                (false, false) => RowsEffect::Unchanged,
            };
        }
        Some(effect)
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
