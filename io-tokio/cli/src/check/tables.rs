//! The captured tables: what a copy of them cannot do, or does slowly.

use std::collections::{BTreeMap, BTreeSet};

use capstan::{
    Code, Halt, Limits,
    core::{
        link::ResultSet,
        replica::requirements::{ALL_CASCADES, CASCADES, test_all_cascades, test_cascades},
    },
};

use super::{
    Facts,
    finding::{Finding, Verdict, quoted, some},
    grants::Grants,
    session::rows,
};

/// Tables for which a statement is written out.
const STATEMENTS_MAX: usize = 20;

/// Columns of a SQLite table (`SQLITE_MAX_COLUMN`), less the two that a table without a key has besides.
const COLUMNS_MAX: u64 = 1998;

const NOT_SYSTEM: &str = "NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')";

/// Types that are read, as `information_schema` names them.
const TYPES: &str = "'tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'float', 'double', 'bit', \
     'date', 'datetime', 'timestamp', 'time', 'year', 'char', 'varchar', 'binary', 'varbinary', \
     'tinyblob', 'blob', 'mediumblob', 'longblob', 'tinytext', 'text', 'mediumtext', 'longtext', 'enum', 'set', 'json', \
     'geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', \
     'geomcollection', 'geometrycollection', 'vector'";

/// One table.
#[derive(Debug, Default)]
struct Table {
    engine: String,
    primary: bool,
    /// The columns of a unique key, and whether one of them may be NULL.
    unique: Option<(Vec<String>, bool)>,
    columns: u64,
}

type Name = (String, String);

/// The captured tables that can be seen.
#[derive(Debug, Default)]
struct Tables {
    all: BTreeMap<Name, Table>,
    unknown_types: Vec<String>,
    large: Vec<String>,
}

/// Asks and judges.
pub(super) async fn ask(facts: &mut Facts, findings: &mut Vec<Finding>) -> Result<(), Halt> {
    // From 8.0.30 on; elsewhere there are no such keys.
    let _ = facts.session.ask("SET SESSION show_gipk_in_create_table_and_information_schema = ON").await?;
    let tables = look(facts).await?;
    let captured = facts.captured.canonical();
    let sees_all = facts.grants.as_ref().is_some_and(|grants| grants.on_captured("SELECT", &captured));
    let blind = |gate: &'static str| {
        Finding::unknown(gate, "SELECT is not granted on all that is captured: what is hidden is not judged")
            .run_all(Grants::statement("SELECT", &captured, &facts.account))
    };
    findings.push(if sees_all {
        Finding::ok("tables", format!("{} are captured", tables.all.len()))
    } else {
        blind("tables")
    });
    // What is bad is bad whatever else there is; what is good is so only if nothing is hidden.
    let mut judged = |gate: &'static str, bad: Option<Finding>, good: &str| {
        findings.push(match bad {
            Some(finding) => finding,
            None if sees_all => Finding::ok(gate, good),
            None => blind(gate),
        });
    };
    judged("primary keys", tables.without_key(), "every table has one");
    judged("engines", tables.engines(), "every table is in InnoDB");
    judged("names", tables.names(), "no two differ by case only");
    judged("types", tables.types(), "every column can be read");
    judged("width", tables.width(), "every table fits into a mirror");
    judged("row size", tables.size(facts), "no value can exceed the limit of a row event");
    let cascades = cascades(facts, sees_all).await?;
    findings.push(cascades);
    Ok(())
}

async fn look(facts: &mut Facts) -> Result<Tables, Halt> {
    let mut tables = Tables::default();
    let mut ask = async |sql: String| facts.session.ask(&sql).await.map(Result::ok);
    let base = ask(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES \
         WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA {NOT_SYSTEM}"
    ))
    .await?;
    let keys = ask(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NULLABLE, COLUMN_NAME, SUB_PART \
         FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0 AND TABLE_SCHEMA {NOT_SYSTEM} \
         ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    ))
    .await?;
    let counts = ask(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COUNT(*) FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA {NOT_SYSTEM} GROUP BY TABLE_SCHEMA, TABLE_NAME HAVING COUNT(*) > {COLUMNS_MAX}"
    ))
    .await?;
    let odd = ask(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA {NOT_SYSTEM} AND (DATA_TYPE NOT IN ({TYPES}) \
         OR DATA_TYPE IN ('longblob', 'longtext', 'json', 'geometry', 'geomcollection'))"
    ))
    .await?;
    let captured = &facts.captured;
    for_each(base.as_ref(), |[schema, table, engine]| {
        if captured.captures(&schema, &table) {
            tables.all.insert((schema, table), Table { engine, ..Table::default() });
        }
    });
    let mut unique: BTreeMap<(Name, String), (Vec<String>, bool, bool)> = BTreeMap::new();
    for_each(keys.as_ref(), |[schema, table, index, nullable, column, part]| {
        let key = unique.entry(((schema, table), index)).or_default();
        // A key of a part of a column, or of an expression, tells no rows apart for us.
        key.2 |= column.is_empty() || !part.is_empty();
        key.1 |= nullable == "YES";
        key.0.push(column);
    });
    for ((name, index), (columns, nullable, odd)) in unique {
        let Some(table) = tables.all.get_mut(&name) else { continue };
        if index == "PRIMARY" {
            table.primary = true;
        } else if !odd && table.unique.as_ref().is_none_or(|(_, null)| *null && !nullable) {
            table.unique = Some((columns, nullable));
        }
    }
    for_each(counts.as_ref(), |[schema, table, count]| {
        if let Some(table) = tables.all.get_mut(&(schema, table)) {
            table.columns = count.parse().unwrap_or(0);
        }
    });
    for_each(odd.as_ref(), |[schema, table, column, data_type]| {
        if tables.all.contains_key(&(schema.clone(), table.clone()))
            && captured.column_captured(&schema, &table, &column)
        {
            let name = format!("{schema}.{table}.{column}");
            match data_type.as_str() {
                "longblob" | "longtext" | "json" | "geometry" | "geomcollection" => tables.large.push(name),
                _ => tables.unknown_types.push(format!("{name} ({data_type})")),
            }
        }
    });
    Ok(tables)
}

/// Each row of an answer, NULL as an empty text.
fn for_each<const N: usize>(answer: Option<&ResultSet>, mut then: impl FnMut([String; N])) {
    for row in answer.into_iter().flat_map(rows) {
        let cells: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
        if let Ok(cells) = <[String; N]>::try_from(cells) {
            then(cells);
        }
    }
}

fn shown((schema, table): &Name) -> String {
    format!("{schema}.{table}")
}

fn sql((schema, table): &Name) -> String {
    format!("{}.{}", quoted(schema), quoted(table))
}

impl Tables {
    fn without_key(&self) -> Option<Finding> {
        let missing: Vec<(&Name, &Table)> = self.all.iter().filter(|(_, table)| !table.primary).collect();
        let names: Vec<String> = missing
            .iter()
            .map(|(name, table)| match &table.unique {
                Some((_, true)) => format!("{} (its unique keys may be NULL)", shown(name)),
                Some((_, false)) | None => shown(name),
            })
            .collect();
        let statements = missing.iter().take(STATEMENTS_MAX).map(|(name, table)| match &table.unique {
            Some((columns, false)) => {
                let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
                format!("ALTER TABLE {} ADD PRIMARY KEY ({})", sql(name), columns.join(", "))
            }
            Some((_, true)) | None => format!(
                "ALTER TABLE {} ADD COLUMN capstan_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY",
                sql(name)
            ),
        });
        (!missing.is_empty()).then(|| {
            Finding::warn("primary keys", format!("missing: {}", some(&names)))
                .remedy("A ledger needs none; a mirror finds such rows by their whole content, and copies them as a whole. A mirror that has the table already stops before this statement (schema_change_needs_copy) and copies it again with --copy-again: better run it before the mirror is made.")
                .run_all(statements)
        })
    }

    fn engines(&self) -> Option<Finding> {
        let others: Vec<(&Name, &str)> = self
            .all
            .iter()
            .map(|(name, table)| (name, table.engine.as_str()))
            .filter(|(_, engine)| !engine.eq_ignore_ascii_case("InnoDB"))
            .collect();
        let is = |engine: &str, known: &[&str]| known.iter().any(|one| engine.eq_ignore_ascii_case(one));
        // Rows of these come and go without this server's log.
        let elsewhere = |engine: &str| is(engine, &["ndbcluster", "FEDERATED", "MRG_MYISAM", "BLACKHOLE"]);
        let names: Vec<String> = others
            .iter()
            .map(|(name, engine)| {
                let why = if elsewhere(engine) {
                    "rows change without this server's log"
                } else if is(engine, &["MEMORY"]) {
                    "empty after a restart"
                } else {
                    "not in step with the log after a crash"
                };
                format!("{} ({engine}: {why})", shown(name))
            })
            .collect();
        let statements = others
            .iter()
            .filter(|(_, engine)| !elsewhere(engine))
            .take(STATEMENTS_MAX)
            .map(|(name, _)| format!("ALTER TABLE {} ENGINE = InnoDB", sql(name)));
        (!others.is_empty()).then(|| {
            Finding::warn("engines", some(&names))
                .remedy("Move them to InnoDB, or leave out with --exclude those whose rows this server does not log.")
                .run_all(statements)
        })
    }

    fn names(&self) -> Option<Finding> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let same: Vec<&Name> =
            self.all.keys().filter(|name| !seen.insert(shown(name).to_lowercase())).collect();
        let names: Vec<String> = same.iter().map(|name| shown(name)).collect();
        let statements = same.iter().take(STATEMENTS_MAX).map(|(schema, table)| {
            let to = sql(&(schema.clone(), format!("{table}_2")));
            format!("RENAME TABLE {} TO {to}", sql(&(schema.clone(), table.clone())))
        });
        (!same.is_empty()).then(|| {
            Finding::warn("names", format!("differ by case only: {}", some(&names)))
                .remedy("Not needed: a mirror gives such tables names of their own, see its catalogue.")
                .run_all(statements)
        })
    }

    fn types(&self) -> Option<Finding> {
        (!self.unknown_types.is_empty())
            .then(|| Finding::refuse("types", Code::UnsupportedColumnType, some(&self.unknown_types)))
    }

    fn width(&self) -> Option<Finding> {
        let wide: Vec<String> = self
            .all
            .iter()
            .filter(|(_, table)| table.columns > COLUMNS_MAX)
            .map(|(name, table)| format!("{} ({} columns)", shown(name), table.columns))
            .collect();
        (!wide.is_empty()).then(|| {
            Finding::warn("width", format!("more columns than a mirror's table can have: {}", some(&wide)))
                .remedy("Leave columns out with --exclude-columns, or keep a ledger.")
        })
    }

    fn size(&self, facts: &Facts) -> Option<Finding> {
        let packet = facts.variables.get("max_allowed_packet")?.parse::<usize>().ok()?;
        let limit = Limits::default().row_event_max;
        // An update holds the row twice.
        (packet.saturating_mul(2) > limit && !self.large.is_empty()).then(|| {
            let found = format!(
                "values of up to {} MiB (max_allowed_packet), twice in an update, where a row event has {} MiB at most: {}",
                packet >> 20,
                limit >> 20,
                some(&self.large)
            );
            Finding::warn("row size", found)
                .remedy("Raise row-event-max-bytes in the settings file where there are such values (row_event_too_large), or run this.")
                .run(format!("SET PERSIST max_allowed_packet = {}", limit / 2 - (1 << 20)))
        })
    }
}

async fn cascades(facts: &mut Facts, sees_all: bool) -> Result<Finding, Halt> {
    const GATE: &str = "foreign keys";
    if facts.variables.logs_cascades(&facts.session.version) {
        return Ok(Finding::ok(GATE, "the server logs what they cascade"));
    }
    let answer = facts.session.ask(CASCADES).await?;
    let Ok(seen) = answer else { return Ok(Finding::unknown(GATE, "could not be asked for")) };
    if let Err(halt) = test_cascades(&seen, &facts.captured) {
        let mut statements = Vec::new();
        if facts.session.version.at_least((9, 6, 0)) {
            statements.push("SET PERSIST_ONLY innodb_native_foreign_keys = OFF".to_owned());
        } else {
            for_each(Some(&seen), |[schema, table, name]| {
                if facts.captured.captures(&schema, &table) && statements.len() < STATEMENTS_MAX {
                    let table = sql(&(schema, table));
                    statements.push(format!("ALTER TABLE {table} DROP FOREIGN KEY {}", quoted(&name)));
                }
            });
        }
        let verdict = if facts.allow_cascades { Verdict::Warn } else { Verdict::Refuse };
        return Ok(Finding::halt(GATE, &halt).run_all(statements).but(verdict));
    }
    let all = facts.session.ask(ALL_CASCADES).await?;
    let complete = all.is_ok_and(|rows| test_all_cascades(&rows, seen.rows.len() as u64).is_ok());
    Ok(if complete || sees_all {
        Finding::ok(GATE, "none of a captured table cascades")
    } else {
        Finding::unknown(GATE, "tables that the account cannot see may have some")
            .run(format!("GRANT PROCESS ON *.* TO {}", facts.account))
            .run_all(Grants::statement("SELECT", &facts.captured.canonical(), &facts.account))
    })
}
