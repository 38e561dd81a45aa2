//! The questions of a connect, in the order of the contract, and what their answers mean.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::requirements::{
    ALL_CASCADES, CASCADES, HISTORY, History, REQUIREMENTS, VARIABLES, Variables, log_status_question,
    replica_status_question, test_all_cascades, test_cascades, test_filters, test_position,
};
use crate::{
    capture::CapturedSet,
    config::Config,
    deliver::CopiedTable,
    gtid::{GtidSet, Uuid},
    halt::{Code, Detail, Halt},
    link::{ErrorMeaning, QueryResult, ResultSet, ServerError, ServerVersion},
    sql,
};

/// Why a gate does not open.
#[derive(Debug)]
pub(super) enum Closed {
    /// For good.
    Halt(Halt),
    /// Perhaps only for now: tried again until the budget ends, then a halt by its own name.
    Retry(Halt),
}

impl From<Halt> for Closed {
    /// By its code: what a failover may say for a while is tried again.
    fn from(halt: Halt) -> Self {
        if matches!(halt.code, Code::BinlogDisabled | Code::SourceBehind) {
            Self::Retry(halt)
        } else {
            Self::Halt(halt)
        }
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
    /// Captured tables that are to be copied, where nothing is stored yet.
    pub(super) tables: Vec<CopiedTable>,
    /// Captured tables that are not among those to be copied.
    pub(super) uncovered: Vec<CopiedTable>,
    /// Captured tables that are to be copied once more.
    pub(super) again: Vec<CopiedTable>,
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
    /// After the history: a table that comes between the two is in the stream.
    Tables,
    Session,
    Checksum,
}

/// The gates of one connect.
#[derive(Debug)]
pub(super) struct Gates {
    version: ServerVersion,
    variables: Variables,
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

impl Gates {
    /// The first question.
    pub(super) fn open(version: ServerVersion) -> (String, Self) {
        let gates = Self {
            version,
            variables: Variables::default(),
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
                self.variables = Variables::read(&rows);
                self.test_variables()?;
                self.question = Question::LogStatus;
                Ok(Next::Ask(log_status_question(&self.version).to_string(), self))
            }
            Question::LogStatus => {
                test_filters(&rows)?;
                if !self.variables.logs_replica_updates() {
                    self.question = Question::ReplicaStatus;
                    return Ok(Next::Ask(replica_status_question(&self.version).to_string(), self));
                }
                Ok(self.cascades_or_history(config))
            }
            Question::ReplicaStatus => {
                if !rows.rows.is_empty() {
                    return Err(Halt::new(Code::ReplicaUpdatesNotLogged).into());
                }
                Ok(self.cascades_or_history(config))
            }
            Question::Cascades => {
                let lower_case = self.findings.lower_case_table_names;
                test_cascades(&rows, &config.captured.clone().with_lower_case_table_names(lower_case))?;
                self.question = Question::HiddenCascades(rows.rows.len() as u64);
                Ok(Next::Ask(ALL_CASCADES.to_string(), self))
            }
            Question::HiddenCascades(seen) => {
                test_all_cascades(&rows, seen)?;
                Ok(self.history())
            }
            Question::History => {
                self.read_history(&rows)?;
                if config.snapshot.is_none() && config.copy_again.is_none() {
                    return Ok(Next::History(self));
                }
                self.question = Question::Tables;
                let sql = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES \
                           WHERE TABLE_TYPE = 'BASE TABLE'";
                Ok(Next::Ask(sql.to_string(), self))
            }
            Question::Tables => {
                let lower_case = self.findings.lower_case_table_names;
                let captured = config.captured.clone().with_lower_case_table_names(lower_case);
                let wanted = |set: &Option<CapturedSet>| {
                    set.as_ref().map(|set| set.clone().with_lower_case_table_names(lower_case))
                };
                if let Some(wanted) = wanted(&config.snapshot) {
                    self.findings.tables = tables_of(&rows, &captured, &wanted);
                    let all = tables_of(&rows, &captured, &captured);
                    let uncovered = all.into_iter().filter(|(schema, table)| !wanted.captures(schema, table));
                    self.findings.uncovered = uncovered.collect();
                }
                if let Some(wanted) = wanted(&config.copy_again) {
                    self.findings.again = tables_of(&rows, &captured, &wanted);
                    let named = wanted.named_tables().filter(|(s, t)| captured.captures(s, t));
                    let named: Vec<CopiedTable> =
                        named.map(|(s, t)| (s.to_string(), t.to_string())).collect();
                    let found = |named: &CopiedTable| {
                        let same = |a: &str, b: &str| a == b || (lower_case != 0 && sql::lower_case(a) == b);
                        self.findings.again.iter().any(|(s, t)| same(s, &named.0) && same(t, &named.1))
                    };
                    let gone: Vec<CopiedTable> = named.into_iter().filter(|table| !found(table)).collect();
                    self.findings.again.extend(gone);
                }
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
                    _ => return Err(Halt::new(Code::ChecksumNegotiationFailed).into()),
                };
                Ok(Next::Open(self.findings))
            }
        }
    }

    fn failed(&self, error: &ServerError) -> Result<Next, Closed> {
        let number = error.number();
        let privilege = match self.question {
            Question::LogStatus | Question::ReplicaStatus => "REPLICATION CLIENT",
            Question::HiddenCascades(_) => "PROCESS",
            Question::Variables
            | Question::Cascades
            | Question::Tables
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
        self.variables.test_log()?;
        for requirement in REQUIREMENTS {
            requirement.test(self.variables.get(requirement.variable))?;
        }
        self.findings.lower_case_table_names = self.variables.lower_case_table_names();
        Ok(())
    }

    fn cascades_or_history(mut self, config: &Config) -> Next {
        if self.variables.logs_cascades(&self.version) || config.allow_unlogged_cascades {
            return self.history();
        }
        self.question = Question::Cascades;
        Next::Ask(CASCADES.to_string(), self)
    }

    fn history(mut self) -> Next {
        self.question = Question::History;
        Next::Ask(HISTORY.to_string(), self)
    }

    fn read_history(&mut self, rows: &ResultSet) -> Result<(), Closed> {
        let Some(History { executed, purged, source_uuid }) = History::read(rows) else {
            let unreadable = Detail::Note("The server's GTID sets could not be read");
            return Err(Closed::Retry(Halt::new(Code::SourceUnreachable).with(unreadable)));
        };
        self.findings.executed = executed;
        self.findings.purged = purged;
        self.findings.source_uuid = source_uuid;
        Ok(())
    }
}

/// Tables of the source that are in both sets.
fn tables_of(rows: &ResultSet, captured: &CapturedSet, wanted: &CapturedSet) -> Vec<CopiedTable> {
    let mut tables = Vec::new();
    for row in &rows.rows {
        if let [Some(schema), Some(table)] = row.as_slice() {
            let (schema, table) = (String::from_utf8_lossy(schema), String::from_utf8_lossy(table));
            if captured.captures(&schema, &table) && wanted.captures(&schema, &table) {
                tables.push((schema.into_owned(), table.into_owned()));
            }
        }
    }
    tables
}

/// The tests of a position against the server's history.
pub(super) fn test_history(position: &GtidSet, found: &Findings) -> Result<(), Closed> {
    Ok(test_position(position, &found.executed, &found.purged)?)
}
