//! The questions, and what their answers mean.

use std::collections::BTreeMap;

use capstan::{Code, GtidSet, Halt, core::capture::CapturedSet};
use serde_json::{Value, json};

use super::session::{Answer, Session};

/// A log kept for less than this is gone before a weekend is over.
const RETENTION_SECONDS_MIN: u64 = 3 * 24 * 3600;

/// Tables named in a finding; of more only the number is told.
const NAMED_MAX: usize = 5;

/// What a finding means for a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    Warn,
    Refuse,
    Unknown,
}

/// One finding.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) gate: &'static str,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// The halt it would be.
    pub(super) code: Option<Code>,
    remedy: Option<&'static str>,
}

impl Finding {
    pub(super) fn ok(gate: &'static str, found: impl Into<String>) -> Self {
        Self { gate, verdict: Verdict::Ok, found: found.into(), code: None, remedy: None }
    }

    fn refuse(gate: &'static str, code: Code, found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Refuse, code: Some(code), ..Self::ok(gate, found) }
    }

    fn warn(gate: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { verdict: Verdict::Warn, remedy: Some(remedy), ..Self::ok(gate, found) }
    }

    fn unknown(gate: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { verdict: Verdict::Unknown, remedy: Some(remedy), ..Self::ok(gate, found) }
    }

    fn judged(gate: &'static str, good: bool, code: Code, found: impl Into<String>) -> Self {
        if good { Self::ok(gate, found) } else { Self::refuse(gate, code, found) }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> Option<&'static str> {
        self.remedy.or(self.code.map(Code::remedy))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "gate": self.gate,
            "verdict": match self.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Refuse => "refuse",
                Verdict::Unknown => "unknown",
            },
            "found": self.found,
            "code": self.code.map(Code::as_str),
            "remedy": if self.verdict == Verdict::Ok { None } else { self.remedy() },
        })
    }
}

const GRANT_CLIENT: &str = "GRANT REPLICATION CLIENT ON *.* to the account.";
const GRANT_SELECT: &str = "GRANT SELECT on the captured tables to the account.";

/// Asks everything.
pub(super) async fn questions(
    session: &mut Session,
    captured: &CapturedSet,
    findings: &mut Vec<Finding>,
) -> Result<(), Halt> {
    let newer = |numbers| session.version.at_least(numbers);
    let replicas = if newer((8, 0, 22)) { "SHOW REPLICAS" } else { "SHOW SLAVE HOSTS" };
    let log_status = if newer((8, 2, 0)) { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" };
    let replica_status = if newer((8, 0, 22)) { "SHOW REPLICA STATUS" } else { "SHOW SLAVE STATUS" };
    let cascades_may_be_logged = newer((9, 6, 0));

    // Needs the very privilege the stream needs.
    findings.push(privilege("REPLICATION SLAVE", &session.ask(replicas).await?));
    let status = session.ask(log_status).await?;
    findings.push(privilege("REPLICATION CLIENT", &status));

    let variables = variables(&session.ask(VARIABLES).await?);
    let lower = variables.get("lower_case_table_names").and_then(|v| v.parse().ok()).unwrap_or(0);
    test_variables(&variables, findings);
    findings.push(filters(&status));
    let logged = |name| variables.get(name).is_some_and(|value| value == "OFF");
    if logged("log_replica_updates") || logged("log_slave_updates") {
        findings.push(replica_updates(&session.ask(replica_status).await?));
    } else {
        findings.push(Finding::ok("replica updates", "what it applies as a replica is logged"));
    }

    let captured = captured.clone().with_lower_case_table_names(lower);
    let tables = Tables::new(&session.ask(TABLES).await?, &captured);
    let native = variables.get("innodb_native_foreign_keys").is_some_and(|value| value == "ON");
    if cascades_may_be_logged && !native {
        findings.push(Finding::ok("foreign keys", "the server logs what they cascade"));
    } else {
        findings.push(cascades(&session.ask(CASCADES).await?, &captured, &tables));
    }
    history(&session.ask(HISTORY).await?, &variables, findings);
    tables.tell(findings);
    findings.push(Finding::unknown(
        "stored position",
        "source_behind, source_identity_mismatch, source_history_changed and data_gap depend on it",
        "Nothing: they are tested at every connect of a pipeline with a target.",
    ));
    Ok(())
}

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_checksum', \
    'binlog_expire_logs_seconds', 'binlog_format', 'binlog_row_image', 'binlog_row_metadata', \
    'binlog_row_value_options', 'gtid_mode', 'innodb_native_foreign_keys', 'innodb_read_only', 'log_bin', \
    'log_replica_updates', 'log_slave_updates', 'lower_case_table_names')";

const CASCADES: &str = "SELECT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS \
    WHERE UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') \
    OR DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')";

const HISTORY: &str = "SELECT @@global.gtid_executed, @@global.gtid_purged, @@global.server_uuid";

const TABLES: &str = "SELECT t.TABLE_SCHEMA, t.TABLE_NAME, EXISTS (SELECT 1 \
    FROM information_schema.TABLE_CONSTRAINTS c WHERE c.TABLE_SCHEMA = t.TABLE_SCHEMA \
    AND c.TABLE_NAME = t.TABLE_NAME AND c.CONSTRAINT_TYPE = 'PRIMARY KEY') \
    FROM information_schema.TABLES t WHERE t.TABLE_TYPE = 'BASE TABLE'";

fn privilege(name: &'static str, answer: &Answer) -> Finding {
    let gate = if name == "REPLICATION SLAVE" { "privilege to stream" } else { "privilege to ask" };
    match answer {
        Ok(_) => Finding::ok(gate, name),
        Err(error) => Finding::refuse(
            gate,
            Code::MissingPrivilege,
            format!("{name} is missing (server error {})", error.number()),
        ),
    }
}

/// Rows without the names.
fn rows(answer: &Answer) -> &[Vec<Option<String>>] {
    match answer {
        Ok(all) => all.get(1..).unwrap_or_default(),
        Err(_) => &[],
    }
}

fn variables(answer: &Answer) -> BTreeMap<String, String> {
    let pair = |row: &Vec<Option<String>>| match row.as_slice() {
        [Some(name), Some(value)] => Some((name.clone(), value.clone())),
        _ => None,
    };
    rows(answer).iter().filter_map(pair).collect()
}

fn test_variables(variables: &BTreeMap<String, String>, findings: &mut Vec<Finding>) {
    let value = |name: &str| variables.get(name).map_or("", String::as_str);
    let is = |name: &str, wanted: &str| value(name).eq_ignore_ascii_case(wanted);
    let log_bin = is("log_bin", "ON") || is("log_bin", "1");
    let code = if is("innodb_read_only", "ON") { Code::ReaderEndpoint } else { Code::BinlogDisabled };
    findings.push(Finding::judged("log_bin", log_bin, code, value("log_bin")));
    for (name, wanted, code) in [
        ("gtid_mode", "ON", Code::GtidModeNotOn),
        ("binlog_format", "ROW", Code::BinlogFormatNotRow),
        ("binlog_row_image", "FULL", Code::BinlogRowImageNotFull),
        ("binlog_row_metadata", "FULL", Code::BinlogRowMetadataNotFull),
    ] {
        let found = if value(name).is_empty() { "not set" } else { value(name) };
        findings.push(Finding::judged(name, is(name, wanted), code, found));
    }
    let options = value("binlog_row_value_options");
    findings.push(Finding::judged(
        "binlog_row_value_options",
        options.is_empty() || is("binlog_row_value_options", "PARTIAL_JSON"),
        Code::BinlogRowValueOptionsNotEmpty,
        if options.is_empty() { "not set" } else { options },
    ));
    let known = is("binlog_checksum", "CRC32") || is("binlog_checksum", "NONE");
    findings.push(Finding::judged(
        "binlog_checksum",
        known,
        Code::ChecksumNegotiationFailed,
        value("binlog_checksum"),
    ));
}

fn filters(status: &Answer) -> Finding {
    const GATE: &str = "log filters";
    let Ok(all) = status else {
        return Finding::unknown(GATE, "could not be asked for", GRANT_CLIENT);
    };
    let names = all.first().map(Vec::as_slice).unwrap_or_default();
    for filter in ["Binlog_Do_DB", "Binlog_Ignore_DB"] {
        let is_filter =
            |name: &Option<String>| name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(filter));
        let Some(column) = names.iter().position(is_filter) else { continue };
        for row in rows(status) {
            if let Some(Some(value)) = row.get(column)
                && !value.is_empty()
            {
                return Finding::refuse(GATE, Code::BinlogFiltered, format!("{filter} = {value}"));
            }
        }
    }
    Finding::ok(GATE, "none")
}

fn replica_updates(status: &Answer) -> Finding {
    const GATE: &str = "replica updates";
    match status {
        Err(_) => Finding::unknown(GATE, "could not be asked for", GRANT_CLIENT),
        Ok(_) if rows(status).is_empty() => Finding::ok(GATE, "it is no replica"),
        Ok(_) => {
            Finding::refuse(GATE, Code::ReplicaUpdatesNotLogged, "it is a replica, log_replica_updates = OFF")
        }
    }
}

fn cascades(answer: &Answer, captured: &CapturedSet, tables: &Tables) -> Finding {
    const GATE: &str = "foreign keys";
    let mut found: Vec<String> = rows(answer)
        .iter()
        .filter_map(|row| match row.as_slice() {
            [Some(schema), Some(table)] if captured.captures(schema, table) => {
                Some(format!("{schema}.{table}"))
            }
            _ => None,
        })
        .collect();
    found.sort();
    found.dedup();
    if !found.is_empty() {
        return Finding::refuse(
            GATE,
            Code::UnloggedCascades,
            format!("cascades that are not logged: {}", some(&found)),
        );
    }
    if answer.is_err() || tables.seen == 0 {
        // The server shows constraints only of tables the account may use.
        return Finding::unknown(GATE, "no captured table can be seen", GRANT_SELECT);
    }
    Finding::ok(GATE, "no cascades among the tables that can be seen")
}

fn history(answer: &Answer, variables: &BTreeMap<String, String>, findings: &mut Vec<Finding>) {
    let [row] = rows(answer) else {
        findings.push(Finding::unknown("history", "the server's GTID sets could not be read", GRANT_SELECT));
        return;
    };
    let set =
        |column: usize| row.get(column).cloned().flatten().and_then(|text| text.parse::<GtidSet>().ok());
    if let (Some(executed), Some(purged)) = (set(0), set(1)) {
        let (executed, purged) = (executed.count(), purged.count());
        findings.push(Finding::ok(
            "history",
            format!("{executed} transactions executed, {purged} of them purged"),
        ));
        if purged > 0u32.into() {
            findings.push(Finding::warn(
                "start",
                "the oldest transactions are purged, so --start earliest is not the whole history",
                "Start at current, or load a dump and say --seeded-at.",
            ));
        }
    } else {
        findings.push(Finding::unknown("history", "the server's GTID sets could not be read", GRANT_SELECT));
    }
    let kept = variables.get("binlog_expire_logs_seconds").and_then(|text| text.parse::<u64>().ok());
    findings.push(match kept {
        Some(0) => Finding::ok("retention", "the log is kept until it is purged by hand"),
        Some(seconds) if seconds < RETENTION_SECONDS_MIN => Finding::warn(
            "retention",
            format!("the log is kept for {:.1} h", seconds as f64 / 3600.0),
            "Raise binlog_expire_logs_seconds: a pipeline that is away for longer ends in data_gap.",
        ),
        Some(seconds) => {
            Finding::ok("retention", format!("the log is kept for {:.1} days", seconds as f64 / 86_400.0))
        }
        None => Finding::unknown(
            "retention",
            "binlog_expire_logs_seconds is not known here",
            "On managed services it is a setting of the service.",
        ),
    });
}

/// The captured tables that can be seen.
struct Tables {
    seen: usize,
    without_key: Vec<String>,
    differ_by_case: Vec<String>,
}

impl Tables {
    fn new(answer: &Answer, captured: &CapturedSet) -> Self {
        let mut this = Self { seen: 0, without_key: Vec::new(), differ_by_case: Vec::new() };
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        for row in rows(answer) {
            let [Some(schema), Some(table), Some(key)] = row.as_slice() else { continue };
            if !captured.captures(schema, table) {
                continue;
            }
            this.seen += 1;
            let name = format!("{schema}.{table}");
            let same = names.entry(name.to_lowercase()).or_default();
            *same += 1;
            if *same == 2 {
                this.differ_by_case.push(name.clone());
            }
            if key == "0" {
                this.without_key.push(name);
            }
        }
        this.without_key.sort();
        this
    }

    fn tell(&self, findings: &mut Vec<Finding>) {
        if self.seen == 0 {
            findings.push(Finding::unknown("tables", "no captured table can be seen", GRANT_SELECT));
            return;
        }
        findings.push(Finding::ok("tables", format!("captured ones that can be seen: {}", self.seen)));
        if !self.without_key.is_empty() {
            findings.push(Finding::warn(
                "primary keys",
                format!("missing: {}", some(&self.without_key)),
                "A ledger needs none; a mirror matches such rows by their whole content.",
            ));
        }
        if !self.differ_by_case.is_empty() {
            findings.push(Finding::warn(
                "names",
                format!("differ by case only: {}", some(&self.differ_by_case)),
                "A mirror gives them names of their own; see its catalogue.",
            ));
        }
    }
}

fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(all: &[&[&str]]) -> Answer {
        let cells = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
        Ok(all.iter().map(cells).collect())
    }

    #[test]
    fn every_variable_is_judged_by_its_own_code() {
        let good = [
            ("log_bin", "ON"),
            ("gtid_mode", "ON"),
            ("binlog_format", "ROW"),
            ("binlog_row_image", "FULL"),
            ("binlog_row_metadata", "FULL"),
            ("binlog_row_value_options", ""),
            ("binlog_checksum", "CRC32"),
        ];
        let codes = |change: Option<(&str, &str)>| {
            let mut variables: BTreeMap<String, String> =
                good.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            if let Some((name, value)) = change {
                variables.insert(name.to_owned(), value.to_owned());
            }
            let mut findings = Vec::new();
            test_variables(&variables, &mut findings);
            findings.into_iter().filter_map(|finding| finding.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(None), []);
        assert_eq!(codes(Some(("binlog_row_value_options", "PARTIAL_JSON"))), []);
        for (name, value, code) in [
            ("log_bin", "OFF", Code::BinlogDisabled),
            ("gtid_mode", "OFF_PERMISSIVE", Code::GtidModeNotOn),
            ("binlog_format", "MIXED", Code::BinlogFormatNotRow),
            ("binlog_row_image", "MINIMAL", Code::BinlogRowImageNotFull),
            ("binlog_row_metadata", "MINIMAL", Code::BinlogRowMetadataNotFull),
            ("binlog_row_value_options", "PARTIAL_XML", Code::BinlogRowValueOptionsNotEmpty),
            ("binlog_checksum", "CRC64", Code::ChecksumNegotiationFailed),
        ] {
            assert_eq!(codes(Some((name, value))), [code], "{name}");
        }
    }

    #[test]
    fn filters_and_tables_are_read_from_their_columns() {
        let names: &[&str] = &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"];
        assert_eq!(filters(&answer(&[names, &["b", "4", "", "", ""]])).verdict, Verdict::Ok);
        assert_eq!(filters(&answer(&[names, &["b", "4", "", "d", ""]])).code, Some(Code::BinlogFiltered));
        let captured = CapturedSet::everything();
        let tables = Tables::new(
            &answer(&[&["s", "t", "k"], &["d", "a", "1"], &["d", "A", "0"], &["mysql", "user", "1"]]),
            &captured,
        );
        assert_eq!((tables.seen, tables.without_key.len(), tables.differ_by_case.len()), (2, 1, 1));
        let nothing = Tables::new(&answer(&[&["s", "t", "k"]]), &captured);
        assert_eq!(cascades(&answer(&[&["s", "t"]]), &captured, &nothing).verdict, Verdict::Unknown);
        assert_eq!(
            cascades(&answer(&[&["s", "t"], &["d", "a"]]), &captured, &tables).verdict,
            Verdict::Refuse
        );
    }
}
