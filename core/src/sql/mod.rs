//! The little SQL that a binlog makes us read: what a QUERY event's text is, and the tables it touches.
//!
//! A row-format binlog still carries text: transaction control, XA, every DDL, and what a session
//! logged as a statement. [`classify`] reads that text under the event's own character set and
//! `sql_mode`, and says what kind of statement it is and which tables it names. It knows no
//! catalogue and no captured set; who decides what follows from it is the assembler.
//!
//! Refuse, never advance: text that is not understood to where it matters is [`DdlKind::Unknown`]
//! with every table affected and the rows unknown.

mod alter;
mod charset;
mod column;
mod cursor;
mod ddl;
mod declared;
mod dml;
mod effect;
mod generated;
mod lex;
mod literal;
mod statement;
#[cfg(test)]
mod tests;
mod transaction;

pub use column::{ColumnDefinition, ColumnPosition, DefaultValue, RowValue};
pub(crate) use declared::same_column;
pub use declared::{Conversion, DeclaredType};
pub use effect::{
    AlterOperation, ExistingColumn, PlannedColumn, PlannedValues, RowCopy, SchemaEffect, TableMove,
    Unfollowed, plan, recomputes,
};
pub use literal::Literal;
pub use statement::{
    AffectedTable, Ddl, DdlKind, Dml, DmlVerb, NamedException, RowsEffect, Statement, TableName, TableRole,
    Tables, Xid,
};

use alloc::string::String;

use charset::Charset;
use cursor::{Cursor, Read};

/// What a QUERY event says about its text.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The event's default database, as the event carries it (UTF-8, empty if the session had none).
    pub default_schema: &'a [u8],
    /// `character_set_client` of the session as a collation id (`Q_CHARSET_CODE`, first two bytes).
    pub client_charset: u16,
    /// [`sql_mode`](crate::binlog::sql_mode) of the session (`Q_SQL_MODE_CODE`).
    pub sql_mode: u64,
    /// `lower_case_table_names` of the server: with 1 the names found are given in lower case, as the
    /// server stores them; with 0 and 2 as written (compare them under [`lower_case`] with 2).
    pub lower_case_table_names: u8,
    /// Whether the event's header has `LOG_EVENT_THREAD_SPECIFIC_F` (0x4): the statement used a
    /// temporary table. It is the only sign that a `TRUNCATE t` of a session that logs statements
    /// emptied a temporary `t` and not the table of that name.
    pub thread_specific: bool,
}

/// What the text of a QUERY event is. Total: no text makes it fail or panic, and its time is linear
/// in the text's length.
#[must_use]
pub fn classify(statement: &[u8], context: &Context<'_>) -> Statement {
    let client = Charset::of_collation(context.client_charset);
    if client == Charset::Utf8 || (client.has_ascii() && statement.is_ascii()) {
        return read(statement, Charset::Utf8, context);
    }
    reconcile(statement, read(statement, client, context), read(statement, Charset::Utf8, context))
}

/// A change logged as a statement that is known by name to touch no table of an application, or
/// `None`. Whether it may pass is the assembler's decision.
///
/// pt-table-checksum (Percona Toolkit) sets `binlog_format=STATEMENT` and writes its results into
/// `percona.checksums`, so that each replica computes its own.
#[must_use]
pub fn named_exception(statement: &Statement) -> Option<NamedException> {
    let Statement::Dml(Dml { verb, target: Some(target) }) = statement else { return None };
    let writes_rows = matches!(verb, DmlVerb::Insert | DmlVerb::Replace | DmlVerb::Update | DmlVerb::Delete);
    (writes_rows && target.schema == "percona" && target.table == "checksums")
        .then_some(NamedException::PtTableChecksum)
}

/// A name in lower case, for comparing names under `lower_case_table_names` 1 and 2: whatever the server
/// puts into lower case comes out equal here.
///
/// Character by character, as the server's `my_casedn_str` under utf8mb3_general_ci does it: no
/// character becomes several, and the place in the word does not matter. It knows letters of later
/// Unicode versions too, which the server leaves alone; so use it on both sides of a comparison.
#[must_use]
pub fn lower_case(name: &str) -> String {
    let lower = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) => one,
            // LATIN CAPITAL LETTER I WITH DOT ABOVE, the only one that becomes two.
            _ => 'i',
        }
    };
    name.chars().map(lower).collect()
}

fn read(text: &[u8], charset: Charset, context: &Context<'_>) -> Statement {
    statement_at(&mut Cursor::new(text, charset, *context)).unwrap_or(Statement::Ddl(Ddl::unknown()))
}

fn statement_at(cursor: &mut Cursor<'_>) -> Read<Statement> {
    if let Some(statement) = transaction::read(cursor)? {
        return Ok(statement);
    }
    if let Some(change) = dml::read(cursor)? {
        return Ok(Statement::Dml(change));
    }
    ddl::read(cursor).map(Statement::Ddl)
}

/// One reading out of two: as the event's character set has it, and as UTF-8.
///
/// The server writes some texts itself, from names it keeps in UTF-8, and logs them under the
/// client's character set all the same (seen on 9.7.4 under gbk): the CREATE inside a
/// `CREATE TABLE … SELECT`, `CREATE TABLE … LIKE` of a temporary table, which it writes out in the form
/// of `SHOW CREATE TABLE`, and the heads of views, routines and account statements. Those heads may be
/// followed by a body in the client's character set. A `DROP TABLE … /* generated by server */` it does convert.
fn reconcile(text: &[u8], by_client: Statement, by_server: Statement) -> Statement {
    if by_client == by_server {
        return by_client;
    }
    if bare(&by_client) == bare(&by_server) {
        return without_columns(by_client);
    }
    let Statement::Ddl(server) = by_server else { return by_client };
    if server.kind == DdlKind::Unknown || !(is_head_only(&server) || core::str::from_utf8(text).is_ok()) {
        return by_client;
    }
    let of_server = server.create_select_in_group || is_view(server.kind);
    let Statement::Ddl(client) = by_client else {
        return if of_server { Statement::Ddl(server) } else { by_client };
    };
    if client.kind == DdlKind::Unknown || of_server {
        Statement::Ddl(server)
    } else if client.kind == DdlKind::CreateTable && is_shown_create(text) {
        // Two names, and nothing that tells which: it made a table, and no row changed.
        let effect = SchemaEffect::Unfollowed(Unfollowed::NotUnderstood);
        Statement::Ddl(Ddl { tables: Tables::Every, effect, ..client })
    } else {
        Statement::Ddl(client)
    }
}

/// A statement without its effect, which is finer than what tells two readings apart.
fn bare(statement: &Statement) -> Statement {
    let mut bare = statement.clone();
    if let Statement::Ddl(ddl) = &mut bare {
        ddl.effect = SchemaEffect::Nothing;
    }
    bare
}

/// Two readings agree but for members of an ENUM, names of columns and the like: what a new table's
/// columns are is left to its first table map, and a change of columns is the client's text.
fn without_columns(mut statement: Statement) -> Statement {
    if let Statement::Ddl(Ddl { effect: SchemaEffect::CreateTable { columns, .. }, .. }) = &mut statement {
        *columns = None;
    }
    statement
}

const fn is_view(kind: DdlKind) -> bool {
    matches!(kind, DdlKind::CreateView | DdlKind::AlterView)
}

/// Whether only its head was read, and says that no table's rows are touched.
fn is_head_only(ddl: &Ddl) -> bool {
    let no_tables = matches!(&ddl.tables, Tables::Named(tables) if tables.is_empty());
    ddl.rows == RowsEffect::Unchanged && ddl.schemas.is_empty() && (no_tables || is_view(ddl.kind))
}

/// Whether it has the form of `SHOW CREATE TABLE`, in which the server writes it.
fn is_shown_create(text: &[u8]) -> bool {
    let head = text.strip_prefix(b"CREATE TABLE ").unwrap_or_default();
    let name = head.strip_prefix(b"IF NOT EXISTS ").unwrap_or(head);
    matches!(name, [b'`' | b'"', ..])
}
