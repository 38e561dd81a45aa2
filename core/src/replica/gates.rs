//! The questions of a connect, in the order of the contract, and what their answers mean.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    config::Config,
    gtid::{GtidSet, Uuid},
    halt::{Code, Detail, Halt},
    link::{ErrorMeaning, QueryResult, ResultSet, ServerError, ServerVersion},
};

/// Why a gate does not open.
#[derive(Debug)]
pub(super) enum Closed {
    /// For good.
    Halt(Halt),
    /// Perhaps only for now: tried again until the budget ends, then a halt by its own name.
    Retry(Halt),
}

impl Closed {
    fn new(code: Code) -> Self {
        Self::Halt(Halt::new(code))
    }
}

/// What the gates learned.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) executed: GtidSet,
    pub(super) purged: GtidSet,
    pub(super) source_uuid: Option<Uuid>,
    pub(super) lower_case_table_names: u8,
    /// What the server said it will send: `true` for CRC32.
    pub(super) checksum: bool,
}

/// Which question is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Variables,
    LogStatus,
    ReplicaStatus,
    Cascades,
    /// Whether the answer to [`Question::Cascades`], of so many rows, was all there is.
    HiddenCascades(u64),
    History,
    Session,
    Checksum,
}

/// The gates of one connect.
#[derive(Debug)]
pub(super) struct Gates {
    version: ServerVersion,
    variables: BTreeMap<String, String>,
    question: Question,
    findings: Findings,
}

/// What follows an answer.
pub(super) enum Next {
    /// Ask this.
    Ask(String, Gates),
    /// The history is known; the caller tests the position, then goes on with [`Gates::session`].
    History(Gates),
    /// All open.
    Open(Findings),
}

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_format','binlog_row_image',\
    'binlog_row_metadata','binlog_row_value_options','gtid_mode','innodb_native_foreign_keys','innodb_read_only',\
    'log_bin','log_replica_updates','log_slave_updates','lower_case_table_names')";

impl Gates {
    /// The first question.
    pub(super) fn open(version: ServerVersion) -> (String, Self) {
        let gates = Self {
            version,
            variables: BTreeMap::new(),
            question: Question::Variables,
            findings: Findings::default(),
        };
        (VARIABLES.to_string(), gates)
    }

    /// What is known so far.
    pub(super) const fn findings(&self) -> &Findings {
        &self.findings
    }

    /// After the position was tested: sets the session up.
    pub(super) fn session(mut self, config: &Config) -> (String, Self) {
        self.question = Question::Session;
        let nanoseconds = config.limits.heartbeat.as_nanos();
        let uuid = config.replica_uuid;
        // Both spellings: 8.4 and later know only the first, servers before 8.0.26 only the second.
        // A paused reader must not be cut off after the default 60 s: net_write_timeout.
        let sql = format!(
            "SET @source_binlog_checksum = @@global.binlog_checksum, \
             @master_binlog_checksum = @@global.binlog_checksum, \
             @source_heartbeat_period = {nanoseconds}, @master_heartbeat_period = {nanoseconds}, \
             @replica_uuid = '{uuid}', @slave_uuid = '{uuid}', \
             SESSION net_write_timeout = 3600"
        );
        (sql, self)
    }

    /// Takes the answer to the open question.
    pub(super) fn on_answer(mut self, answer: QueryResult, config: &Config) -> Result<Next, Closed> {
        let rows = match answer {
            QueryResult::Rows(rows) => rows,
            QueryResult::Ok(_) => ResultSet::default(),
            QueryResult::Failed(error) => return self.failed(&error),
        };
        match self.question {
            Question::Variables => {
                for row in &rows.rows {
                    if let [Some(name), Some(value)] = row.as_slice() {
                        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
                        self.variables.insert(text(name), text(value));
                    }
                }
                self.test_variables()?;
                self.question = Question::LogStatus;
                let sql = if self.version.at_least((8, 2, 0)) {
                    "SHOW BINARY LOG STATUS"
                } else {
                    "SHOW MASTER STATUS"
                };
                Ok(Next::Ask(sql.to_string(), self))
            }
            Question::LogStatus => {
                test_filters(&rows)?;
                if self.is("log_replica_updates", "OFF") || self.is("log_slave_updates", "OFF") {
                    self.question = Question::ReplicaStatus;
                    let sql = if self.version.at_least((8, 0, 22)) {
                        "SHOW REPLICA STATUS"
                    } else {
                        "SHOW SLAVE STATUS"
                    };
                    return Ok(Next::Ask(sql.to_string(), self));
                }
                Ok(self.cascades_or_history(config))
            }
            Question::ReplicaStatus => {
                if !rows.rows.is_empty() {
                    return Err(Closed::new(Code::ReplicaUpdatesNotLogged));
                }
                Ok(self.cascades_or_history(config))
            }
            Question::Cascades => {
                test_cascades(&rows, config, self.findings.lower_case_table_names)?;
                // That view leaves out tables the account may not see, without a word. This one is InnoDB's own
                // list of all of them, and needs PROCESS; bits 1 to 8 of TYPE are the rules asked for above
                // (manual, "The INFORMATION_SCHEMA INNODB_FOREIGN Table").
                self.question = Question::HiddenCascades(rows.rows.len() as u64);
                let sql = "SELECT COUNT(*) FROM information_schema.INNODB_FOREIGN WHERE TYPE & 15 <> 0";
                Ok(Next::Ask(sql.to_string(), self))
            }
            Question::HiddenCascades(seen) => {
                test_hidden_cascades(&rows, seen)?;
                Ok(self.history())
            }
            Question::History => {
                self.read_history(&rows)?;
                Ok(Next::History(self))
            }
            Question::Session => {
                self.question = Question::Checksum;
                Ok(Next::Ask("SELECT @source_binlog_checksum".to_string(), self))
            }
            Question::Checksum => {
                self.findings.checksum = match rows.cell(0, 0) {
                    Some(Some(value)) if value.eq_ignore_ascii_case(b"CRC32") => true,
                    Some(Some(value)) if value.eq_ignore_ascii_case(b"NONE") => false,
                    _ => return Err(Closed::new(Code::ChecksumNegotiationFailed)),
                };
                Ok(Next::Open(self.findings))
            }
        }
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.variables.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    fn failed(&self, error: &ServerError) -> Result<Next, Closed> {
        let number = error.number();
        let privilege = match self.question {
            Question::LogStatus | Question::ReplicaStatus => "REPLICATION CLIENT",
            Question::HiddenCascades(_) => "PROCESS",
            Question::Variables
            | Question::Cascades
            | Question::History
            | Question::Session
            | Question::Checksum => "SELECT",
        };
        Err(match error.meaning() {
            ErrorMeaning::MissingPrivilege => Closed::Halt(
                Halt::new(Code::MissingPrivilege)
                    .with_server_error(number)
                    .with(Detail::Privilege(privilege)),
            ),
            ErrorMeaning::AccessDenied => {
                Closed::Halt(Halt::new(Code::AccessDenied).with_server_error(number))
            }
            // Nothing in our questions can fail for a lasting reason of its own, so a failure is
            // taken as the server's present state and tried again within the budget.
            ErrorMeaning::Transient | ErrorMeaning::Other => {
                Closed::Retry(Halt::new(Code::SourceUnreachable).with_server_error(number))
            }
        })
    }

    fn test_variables(&mut self) -> Result<(), Closed> {
        if !self.is("log_bin", "ON") && !self.is("log_bin", "1") {
            // A failover may say so for a while; a reader endpoint says so for ever.
            return Err(if self.is("innodb_read_only", "ON") || self.is("innodb_read_only", "1") {
                Closed::new(Code::ReaderEndpoint)
            } else {
                Closed::Retry(Halt::new(Code::BinlogDisabled))
            });
        }
        for (name, wanted, code) in [
            ("gtid_mode", "ON", Code::GtidModeNotOn),
            ("binlog_format", "ROW", Code::BinlogFormatNotRow),
            ("binlog_row_image", "FULL", Code::BinlogRowImageNotFull),
            ("binlog_row_metadata", "FULL", Code::BinlogRowMetadataNotFull),
            // Partial updates are made whole; what another version may add is not known.
            ("binlog_row_value_options", "PARTIAL_JSON", Code::BinlogRowValueOptionsNotEmpty),
        ] {
            let empty = code == Code::BinlogRowValueOptionsNotEmpty && self.is(name, "");
            if !empty && !self.is(name, wanted) {
                let found = self.variables.get(name).cloned().unwrap_or_default();
                return Err(Closed::Halt(Halt::new(code).with(Detail::Variable(name, found))));
            }
        }
        self.findings.lower_case_table_names =
            self.variables.get("lower_case_table_names").and_then(|v| v.parse().ok()).unwrap_or(0);
        Ok(())
    }

    fn cascades_or_history(mut self, config: &Config) -> Next {
        // From 9.6 the server logs what its foreign keys cascade, unless InnoDB does it natively.
        let logged = self.version.at_least((9, 6, 0)) && !self.is("innodb_native_foreign_keys", "ON");
        if logged || config.allow_unlogged_cascades {
            return self.history();
        }
        self.question = Question::Cascades;
        let sql = "SELECT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS \
                   WHERE UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') \
                   OR DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')";
        Next::Ask(sql.to_string(), self)
    }

    fn history(mut self) -> Next {
        self.question = Question::History;
        // Not SHOW VARIABLES, which cuts a set at 1,024 characters.
        Next::Ask(
            "SELECT @@global.gtid_executed, @@global.gtid_purged, @@global.server_uuid".to_string(),
            self,
        )
    }

    fn read_history(&mut self, rows: &ResultSet) -> Result<(), Closed> {
        let cell = |column| match rows.cell(0, column) {
            Some(Some(value)) => core::str::from_utf8(value).ok(),
            _ => None,
        };
        let set = |column| cell(column).and_then(|text| text.parse::<GtidSet>().ok());
        let unreadable = || {
            Closed::Retry(
                Halt::new(Code::SourceUnreachable)
                    .with(Detail::Note("The server's GTID sets could not be read")),
            )
        };
        self.findings.executed = set(0).ok_or_else(unreadable)?;
        self.findings.purged = set(1).ok_or_else(unreadable)?;
        self.findings.source_uuid = cell(2).and_then(|text| text.parse().ok());
        Ok(())
    }
}

/// Filters of the log hide rows and their GTIDs alike, so nothing downstream could ever notice.
fn test_filters(rows: &ResultSet) -> Result<(), Closed> {
    for name in ["Binlog_Do_DB", "Binlog_Ignore_DB"] {
        let Some(column) = rows.column(name) else { continue };
        for row in 0..rows.rows.len() {
            if let Some(Some(value)) = rows.cell(row, column)
                && !value.is_empty()
            {
                let found = String::from_utf8_lossy(value).into_owned();
                let name = if name == "Binlog_Do_DB" { "binlog-do-db" } else { "binlog-ignore-db" };
                return Err(Closed::Halt(
                    Halt::new(Code::BinlogFiltered).with(Detail::Variable(name, found)),
                ));
            }
        }
    }
    Ok(())
}

fn test_cascades(rows: &ResultSet, config: &Config, lower_case_table_names: u8) -> Result<(), Closed> {
    let captured = config.captured.clone().with_lower_case_table_names(lower_case_table_names);
    let mut tables = Vec::new();
    for row in &rows.rows {
        if let [Some(schema), Some(table)] = row.as_slice() {
            let (schema, table) = (String::from_utf8_lossy(schema), String::from_utf8_lossy(table));
            if captured.captures(&schema, &table) {
                tables.push(format!("{schema}.{table}"));
            }
        }
    }
    if tables.is_empty() {
        return Ok(());
    }
    tables.sort();
    tables.dedup();
    Err(Closed::Halt(Halt::new(Code::UnloggedCascades).with(Detail::Tables(tables))))
}

/// A table that cannot be seen may be a captured one, so what is not known is not taken as good.
fn test_hidden_cascades(rows: &ResultSet, seen: u64) -> Result<(), Closed> {
    let there = match rows.cell(0, 0) {
        Some(Some(value)) => core::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()),
        _ => None,
    };
    match there {
        Some(there) if there <= seen => Ok(()),
        Some(_) | None => {
            Err(Closed::Halt(Halt::new(Code::MissingPrivilege).with(Detail::Privilege("SELECT"))))
        }
    }
}

/// The tests of a position against the server's history.
pub(super) fn test_history(position: &GtidSet, found: &Findings) -> Result<(), Closed> {
    let missing = position.subtract(&found.executed);
    if !missing.is_empty() {
        let tail = missing.iter().all(|(tsid, intervals)| {
            let known = found.executed.intervals(&tsid);
            match (intervals.first(), known.last()) {
                (Some(first), Some(last)) => first.start() > last.end(),
                _ => false,
            }
        });
        let code = if tail { Code::SourceBehind } else { Code::SourceIdentityMismatch };
        let halt = Halt::new(code).with(Detail::Missing(missing));
        return Err(if tail { Closed::Retry(halt) } else { Closed::Halt(halt) });
    }
    let gone = found.executed.subtract(position).intersect(&found.purged);
    if !gone.is_empty() {
        return Err(Closed::Halt(Halt::new(Code::DataGap).with(Detail::Missing(gone))));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
    const B: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";

    #[test]
    fn cascades_that_cannot_be_seen_are_not_taken_for_none() {
        let count = |text: &str| ResultSet {
            rows: alloc::vec![alloc::vec![Some(text.as_bytes().to_vec().into())]],
            ..ResultSet::default()
        };
        assert!(test_hidden_cascades(&count("2"), 2).is_ok());
        assert!(test_hidden_cascades(&count("0"), 1).is_ok(), "of an engine other than InnoDB");
        for (rows, seen) in [(count("3"), 2), (count("x"), 2), (ResultSet::default(), 0)] {
            let Err(Closed::Halt(halt)) = test_hidden_cascades(&rows, seen) else { panic!("{seen}") };
            assert_eq!(halt.code, Code::MissingPrivilege);
        }
    }

    #[test]
    fn a_position_is_tested_against_identity_first_and_gaps_second() {
        let set = |text: &str| text.replace('A', A).replace('B', B).parse::<GtidSet>().unwrap();
        for (position, executed, purged, want) in [
            ("A:1-5", "A:1-9", "", None),
            ("A:1-5", "A:1-9", "A:1-5", None),
            ("A:1-5", "A:1-9", "A:1-6", Some(Code::DataGap)),
            ("A:1-3:5", "A:1-9", "A:1-5", Some(Code::DataGap)),
            ("", "A:1-9", "A:1", Some(Code::DataGap)),
            ("A:1-9", "A:1-5", "", Some(Code::SourceBehind)),
            ("A:1-9", "A:1-5:7", "", Some(Code::SourceIdentityMismatch)),
            ("A:1-9", "A:2-9", "", Some(Code::SourceIdentityMismatch)),
            ("A:1-5,B:1", "A:1-9", "", Some(Code::SourceIdentityMismatch)),
            ("B:1-5", "A:1-9", "", Some(Code::SourceIdentityMismatch)),
        ] {
            let found = Findings { executed: set(executed), purged: set(purged), ..Findings::default() };
            let got = match test_history(&set(position), &found) {
                Ok(()) => None,
                Err(Closed::Halt(halt)) => Some(halt.code),
                Err(Closed::Retry(halt)) => {
                    assert_eq!(halt.code, Code::SourceBehind);
                    Some(halt.code)
                }
            };
            assert_eq!(got, want, "{position} against {executed} without {purged}");
        }
    }
}
