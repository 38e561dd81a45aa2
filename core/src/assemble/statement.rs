//! QUERY events: transaction control, XA, schema changes, and changes logged as statements.

use alloc::{
    boxed::Box,
    string::{String, ToString},
    vec::Vec,
};

use super::Assembler;
use crate::{
    binlog::{EventHeader, Query, UpdatedDatabases, flags},
    deliver::{Event, SchemaChange, XaDigest},
    halt::{Code, Halt},
    probe::{Mark, Mutant, Probe},
    sql::{
        self, Context, Ddl, DdlKind, NamedException, RowsEffect, SchemaEffect, Statement, TableRole,
        Tables as Touched, Unfollowed, Xid,
    },
    time::Now,
    value::charset::Charset,
};

/// `utf8mb4_0900_ai_ci`, where the event does not say.
const DEFAULT_COLLATION: u16 = 255;

impl<P: Probe> Assembler<P> {
    pub(super) fn on_query(&mut self, query: &Query, header: &EventHeader, now: Now) -> Result<(), Halt> {
        self.open_group(header)?;
        match query.text.as_ref() {
            b"BEGIN" => {
                self.begun();
                return Ok(());
            }
            b"COMMIT" => return self.commit(now),
            _ => {}
        }
        let context = Context {
            default_schema: &query.schema,
            client_charset: query.status.charset.as_ref().map_or(DEFAULT_COLLATION, |charset| charset.client),
            sql_mode: query.status.sql_mode.unwrap_or(0),
            lower_case_table_names: self.lower_case_table_names,
            thread_specific: header.has(flags::THREAD_SPECIFIC),
        };
        let statement = sql::classify(&query.text, &context);
        match statement {
            Statement::Begin => self.begun(),
            Statement::Commit => return self.commit(now),
            Statement::Rollback => return self.rollback(now),
            Statement::Savepoint(name) => self.with_group(|group| group.savepoint(&name)),
            Statement::ReleaseSavepoint(name) => self.with_group(|group| group.release(&name)),
            Statement::RollbackToSavepoint(_) if P::mutant(Mutant::KeepSavepointRows) => {}
            Statement::RollbackToSavepoint(name) => {
                P::mark(Mark::SavepointRolledBack);
                let done = self.group.as_mut().is_some_and(|group| group.skip || group.rollback_to(&name));
                if !done {
                    return Err(Halt::new(Code::EventOutOfPlace));
                }
            }
            Statement::XaStart(xid) => {
                let digest = digest(&xid);
                self.with_group(|group| {
                    group.begun = true;
                    group.xa = Some(digest);
                });
            }
            Statement::XaEnd(_) => {}
            // As text only servers before 5.7 log it, without which nothing could be recovered.
            Statement::XaPrepare(_) => return Err(Halt::new(Code::EventOutOfPlace)),
            Statement::XaCommit { xid, one_phase } => {
                if one_phase {
                    return self.commit(now);
                }
                return self.resolve_xa(digest(&xid), true, now);
            }
            Statement::XaRollback { xid } => return self.resolve_xa(digest(&xid), false, now),
            Statement::Ddl(ddl) => return self.on_ddl(ddl, query, now),
            Statement::Dml(_) => {
                // Known by name, and of weight only to who captures its table.
                let excepted = match sql::named_exception(&statement) {
                    Some(NamedException::PtTableChecksum) => !self.tables.captures("percona", "checksums"),
                    None => false,
                };
                if !excepted {
                    return self.on_statement_logged(query, now);
                }
            }
        }
        Ok(())
    }

    /// A change whose rows are not in the log. The text names one table, but a trigger may write
    /// another, so the list of databases decides; without one, or when it overflowed, any may be
    /// concerned. Who reads a file loses nothing by it, and is shown the statement.
    pub(super) fn on_statement_logged(&mut self, query: &Query, now: Now) -> Result<(), Halt> {
        if self.skips() {
            return Ok(());
        }
        let captured = match &query.status.updated_databases {
            Some(UpdatedDatabases::Names(names)) if !names.is_empty() => {
                names.iter().any(|name| self.tables.captures_schema(&String::from_utf8_lossy(name)))
            }
            Some(UpdatedDatabases::Names(_) | UpdatedDatabases::TooMany) | None => true,
        };
        if captured && self.offline {
            if let Some(change) = self.statement_logged(query) {
                self.push(Event::SchemaChange(Box::new(change)));
            }
        } else if captured && !P::mutant(Mutant::PassStatement) {
            return Err(Halt::new(Code::StatementLoggedChange));
        } else {
            P::mark(Mark::StatementElsewhere);
        }
        // Before 5.0 no BEGIN stands before a statement that is a transaction by itself.
        let alone = self.offline && self.group.as_ref().is_some_and(|group| !group.begun);
        if alone { self.commit(now) } else { Ok(()) }
    }

    /// The statement as it is shown; its tables are all of the databases that it updated.
    fn statement_logged(&self, query: &Query) -> Option<SchemaChange> {
        let tables = match &query.status.updated_databases {
            Some(UpdatedDatabases::Names(names)) => {
                names.iter().map(|name| (String::from_utf8_lossy(name).into_owned(), String::new())).collect()
            }
            Some(UpdatedDatabases::TooMany) | None => Vec::new(),
        };
        let effect = SchemaEffect::Unfollowed(Unfollowed::RowsElsewhere);
        self.statement(query, DdlKind::StatementLogged, tables, RowsEffect::ChangedWithoutRowEvents, effect)
    }

    fn on_ddl(&mut self, ddl: Ddl, query: &Query, now: Now) -> Result<(), Halt> {
        let Some(group) = self.group.as_ref() else { return Err(Halt::new(Code::EventOutOfPlace)) };
        let (begun, skip) = (group.begun, group.skip);
        if begun && !ddl.create_select_in_group && !ddl.temporary {
            // Inside a group nothing commits by itself, and what is not understood changes rows
            // for all we know.
            return if skip { Ok(()) } else { self.on_statement_logged(query, now) };
        }
        if !skip
            && !ddl.temporary
            && let Some(mut change) = self.schema_change(ddl, query)
            && self.gate.judge_change(&mut change, |schema, table| self.tables.captures(schema, table))
        {
            self.with_group(|group| group.schema_change = !begun);
            self.push(Event::SchemaChange(Box::new(change)));
        }
        if begun { Ok(()) } else { self.commit(now) }
    }

    /// The schema change as it is delivered, if it concerns the captured set.
    fn schema_change(&self, ddl: Ddl, query: &Query) -> Option<SchemaChange> {
        let effect = self.tables.effect_of(&ddl)?;
        let mut tables: Vec<(String, String)> = Vec::new();
        if let Touched::Named(named) = &ddl.tables {
            // What is only read to copy its definition is not touched.
            let touched = named.iter().filter(|table| table.role != TableRole::LikeSource);
            tables.extend(touched.map(|t| (t.schema.clone(), t.table.clone())));
            tables.extend(ddl.schemas.iter().map(|schema| (schema.clone(), String::new())));
        }
        if ddl.kind == DdlKind::Unknown {
            tables.clear();
        }
        self.statement(query, ddl.kind, tables, effect.rows, effect.effect)
    }

    fn statement(
        &self,
        query: &Query,
        kind: DdlKind,
        tables: Vec<(String, String)>,
        rows: RowsEffect,
        effect: SchemaEffect,
    ) -> Option<SchemaChange> {
        let group = self.group.as_ref()?;
        let collation = query.status.charset.as_ref().map_or(DEFAULT_COLLATION, |charset| charset.client);
        let statement = Charset::of_collation(collation)
            .and_then(|charset| charset.to_utf8(&query.text).ok())
            .map_or_else(|| String::from_utf8_lossy(&query.text).into_owned(), |text| text.to_string());
        Some(SchemaChange {
            gtid: group.gtid,
            committed_at: group.committed_at,
            kind,
            tables,
            rows,
            effect,
            statement,
            default_schema: String::from_utf8_lossy(&query.schema).into_owned(),
        })
    }

    fn begun(&mut self) {
        self.with_group(|group| group.begun = true);
    }

    fn with_group(&mut self, act: impl FnOnce(&mut super::group::Group)) {
        if let Some(group) = self.group.as_mut() {
            act(group);
        }
    }
}

fn digest(xid: &Xid) -> XaDigest {
    XaDigest::new(u32::try_from(xid.format_id).unwrap_or(u32::MAX), &xid.gtrid, &xid.bqual)
}
