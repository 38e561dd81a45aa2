//! What texts are, by hand: each expectation is what the manual's page (or a 9.7.4 server asked)
//! says the statement does.

mod captured;
mod charsets;
mod effects;
mod hostile;
mod statements;

use alloc::format;
use alloc::string::String;

use super::*;
use crate::binlog::sql_mode::{ANSI_QUOTES, NO_BACKSLASH_ESCAPES, STRICT_ALL_TABLES, STRICT_TRANS_TABLES};

/// UTF-8, the default database `d`, strict, case-sensitive names.
const PLAIN: Context<'static> = Context {
    default_schema: b"d",
    client_charset: 255,
    sql_mode: STRICT_TRANS_TABLES,
    lower_case_table_names: 0,
    thread_specific: false,
};

/// `Kind rows schema.table:Role … {schema} …`, with rows as `=` unchanged, `!` changed without row
/// events, `?` unknown; `*` stands for every table.
fn shown(statement: &Statement) -> String {
    match statement {
        Statement::Ddl(ddl) => shown_ddl(ddl),
        Statement::Dml(Dml { verb, target: None }) => format!("dml {verb:?}"),
        Statement::Dml(Dml { verb, target: Some(t) }) => format!("dml {verb:?} {}.{}", t.schema, t.table),
        Statement::XaStart(xid) => format!("xa start {}", shown_xid(xid)),
        Statement::XaEnd(xid) => format!("xa end {}", shown_xid(xid)),
        Statement::XaPrepare(xid) => format!("xa prepare {}", shown_xid(xid)),
        Statement::XaCommit { xid, one_phase } => format!("xa commit {} {one_phase}", shown_xid(xid)),
        Statement::XaRollback { xid } => format!("xa rollback {}", shown_xid(xid)),
        Statement::Begin | Statement::Commit | Statement::Rollback => format!("{statement:?}"),
        Statement::Savepoint(name) => format!("savepoint {name}"),
        Statement::RollbackToSavepoint(name) => format!("rollback to {name}"),
        Statement::ReleaseSavepoint(name) => format!("release {name}"),
    }
}

fn shown_xid(xid: &Xid) -> String {
    format!("{:02x?} {:02x?} {}", xid.gtrid, xid.bqual, xid.format_id)
}

fn shown_ddl(ddl: &Ddl) -> String {
    let rows = match ddl.rows {
        RowsEffect::Unchanged => "=",
        RowsEffect::ChangedWithoutRowEvents => "!",
        RowsEffect::Unknown => "?",
    };
    let mut text = format!("{:?} {rows}", ddl.kind);
    match &ddl.tables {
        Tables::Every => text.push_str(" *"),
        Tables::Named(tables) => {
            for table in tables {
                text.push_str(&format!(" {}.{}:{:?}", table.schema, table.table, table.role));
            }
        }
    }
    for schema in &ddl.schemas {
        text.push_str(&format!(" {{{schema}}}"));
    }
    text.push_str(if ddl.temporary { " temporary" } else { "" });
    text.push_str(if ddl.create_select_in_group { " in-group" } else { "" });
    text
}

const UNKNOWN: &str = "Unknown ? *";

/// Every case that came out otherwise, so that one run shows all of them.
fn check<'a>(context: &Context<'_>, cases: impl IntoIterator<Item = (&'a [u8], &'a str)>) {
    let wrong: alloc::vec::Vec<String> = cases
        .into_iter()
        .filter_map(|(text, expected)| {
            let found = shown(&classify(text, context));
            (found != expected)
                .then(|| format!("{}\n    found    {found}\n    expected {expected}\n", text.escape_ascii()))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.concat());
}

fn check_text(cases: &[(&str, &str)]) {
    check(&PLAIN, cases.iter().map(|(text, expected)| (text.as_bytes(), *expected)));
}
