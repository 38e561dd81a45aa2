//! How the values of a table's columns come about, in the words of the catalogue.

use alloc::{string::String, vec::Vec};

use crate::sql::{self, Context, Ddl, SchemaEffect, Statement};
use crate::value::Generation;

/// A column's row in `information_schema.COLUMNS`.
pub(super) struct Said {
    pub(super) name: String,
    /// COLUMN_TYPE
    pub(super) column_type: String,
    /// EXTRA
    pub(super) extra: String,
    /// GENERATION_EXPRESSION
    pub(super) expression: String,
}

impl Said {
    fn is_stored(&self) -> bool {
        self.extra.contains("STORED GENERATED")
    }

    /// By EXTRA alone. A computed default says DEFAULT_GENERATED.
    fn generation(&self) -> Generation {
        if self.is_stored() {
            Generation::BySession
        } else if self.extra.contains("VIRTUAL GENERATED") {
            Generation::Computed
        } else {
            Generation::Given
        }
    }

    /// As `CREATE TABLE` has it; `None`: it cannot be told.
    fn definition(&self) -> Option<String> {
        let (name, of) = (self.name.replace('`', "``"), &self.column_type);
        Some(match self.generation() {
            Generation::Given => alloc::format!("`{name}` {of}"),
            Generation::Computed => alloc::format!("`{name}` {of} AS ({}) VIRTUAL", plain(&self.expression)?),
            Generation::BySession => alloc::format!("`{name}` {of} AS ({}) STORED", plain(&self.expression)?),
        })
    }
}

/// How each column's values come about. What an expression comes to is judged as that of a `CREATE TABLE`; where one
/// cannot be read, it is taken to depend on the session.
pub(super) fn of_columns(said: &[Said]) -> Vec<Generation> {
    let mut all: Vec<Generation> = said.iter().map(Said::generation).collect();
    if !said.iter().any(Said::is_stored) {
        return all;
    }
    let Some(definitions) = said.iter().map(Said::definition).collect::<Option<Vec<_>>>() else { return all };
    let text = alloc::format!("CREATE TABLE `t` ({})", definitions.join(", "));
    let context = Context {
        default_schema: b"s",
        // utf8mb4_0900_ai_ci
        client_charset: 255,
        sql_mode: 0,
        lower_case_table_names: 0,
        thread_specific: false,
    };
    let Statement::Ddl(Ddl { effect: SchemaEffect::CreateTable { columns: Some(columns), .. }, .. }) =
        sql::classify(text.as_bytes(), &context)
    else {
        return all;
    };
    if columns.len() == said.len() {
        for ((generation, column), said) in all.iter_mut().zip(&columns).zip(said) {
            if said.is_stored() && column.name == said.name && column.generation == Generation::Computed {
                *generation = Generation::Computed;
            }
        }
    }
    all
}

/// An expression as it was written. The catalogue has a backslash before each quote (`_utf8mb4\'x\'`); `None` where
/// there are others, or quotes without one.
fn plain(expression: &str) -> Option<String> {
    let mut plain = String::with_capacity(expression.len());
    let mut rest = expression.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.next() == Some('\'') => plain.push('\''),
            '\\' | '\'' => return None,
            c => plain.push(c),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Generation::{BySession, Computed, Given};

    /// As 9.7.4 shows them (`information_schema.COLUMNS`).
    #[test]
    fn a_stored_column_is_the_sessions_unless_its_expression_is_reviewed() {
        for (of, column_type, expression, want) in [
            ("int", "bigint", "(`a` + 1)", Computed),
            ("varchar(10)", "varchar(20)", r"concat(`a`,_utf8mb4\'-\',`a`)", Computed),
            ("json", "varchar(20)", r"json_unquote(json_extract(`a`,_utf8mb4\'$.x\'))", Computed),
            ("date", "varchar(20)", "dayname(`a`)", BySession),
            ("int", "decimal(20,9)", "(`a` / 7)", BySession),
            ("timestamp", "varchar(30)", "concat(`a`)", BySession),
            ("varchar(10)", "varchar(20)", r"concat(`a`,_utf8mb4\'\\\'\')", BySession),
            ("varchar(10)", "varchar(20)", r"concat(`a`,_utf8mb4'x')", BySession),
            ("varchar(10)", "varchar(20)", r"concat('\'', dayname(`a`), '\'b')", BySession),
            ("int", "int", "", BySession),
        ] {
            let one = |name: &str, column_type: &str, extra: &str, expression: &str| Said {
                name: name.into(),
                column_type: column_type.into(),
                extra: extra.into(),
                expression: expression.into(),
            };
            let table = [
                one("id", "int unsigned", "auto_increment", ""),
                one("a", of, "", ""),
                one("b", column_type, "STORED GENERATED", expression),
                one("c`d", "int", "VIRTUAL GENERATED", "(`id` + 1)"),
            ];
            assert_eq!(of_columns(&table), [Given, Given, want, Computed], "{expression}");
        }
    }
}
