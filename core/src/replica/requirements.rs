//! What a server must be, in one table: the questions, and what their answers mean. A connect asks them and ends
//! at the first that closes; `capstan check` asks them all.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    capture::CapturedSet,
    gtid::{GtidSet, Uuid},
    halt::{Code, Detail, Halt},
    link::{ResultSet, ServerVersion},
};

/// A server variable, the values of it under which the log is whole, and the halt any other is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Its name.
    pub variable: &'static str,
    /// The values that are good, without regard to case. The first is the one to set.
    pub accepted: &'static [&'static str],
    /// The halt otherwise.
    pub code: Code,
}

/// The variables of the gates, in the order of the contract.
pub const REQUIREMENTS: &[Requirement] = &[
    Requirement { variable: "gtid_mode", accepted: &["ON"], code: Code::GtidModeNotOn },
    Requirement { variable: "binlog_format", accepted: &["ROW"], code: Code::BinlogFormatNotRow },
    Requirement { variable: "binlog_row_image", accepted: &["FULL"], code: Code::BinlogRowImageNotFull },
    Requirement {
        variable: "binlog_row_metadata",
        accepted: &["FULL"],
        code: Code::BinlogRowMetadataNotFull,
    },
    // Partial updates are made whole; what another version may add is not known.
    Requirement {
        variable: "binlog_row_value_options",
        accepted: &["", "PARTIAL_JSON"],
        code: Code::BinlogRowValueOptionsNotEmpty,
    },
];

impl Requirement {
    /// Tests a value.
    ///
    /// # Errors
    /// Its code, with the value that was found.
    pub fn test(&self, found: Option<&str>) -> Result<(), Halt> {
        let value = found.unwrap_or_default();
        // No value is not the empty one, except where nothing is good.
        if self.accepted.iter().any(|good| good.eq_ignore_ascii_case(value)) {
            return Ok(());
        }
        Err(Halt::new(self.code).with(Detail::Variable(self.variable, value.to_string())))
    }
}

/// The question for the variables of the gates: those of [`REQUIREMENTS`], and those that decide beside them.
pub const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_format','binlog_row_image',\
    'binlog_row_metadata','binlog_row_value_options','gtid_mode','innodb_native_foreign_keys','innodb_read_only',\
    'log_bin','log_replica_updates','log_slave_updates','lower_case_table_names')";

/// Global variables of a server, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// [`VARIABLES`] and `more`.
    #[must_use]
    pub fn question(more: &[&str]) -> String {
        let names: Vec<String> = more.iter().map(|name| format!(",'{name}'")).collect();
        format!("{}{})", VARIABLES.trim_end_matches(')'), names.concat())
    }

    /// Reads the answer.
    #[must_use]
    pub fn read(rows: &ResultSet) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs = rows.rows.iter().filter_map(|row| match row.as_slice() {
            [Some(name), Some(value)] => Some((text(name).to_ascii_lowercase(), text(value))),
            _ => None,
        });
        Self(pairs.collect())
    }

    /// A variable's value, if the server has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether it has this value, without regard to case.
    #[must_use]
    pub fn is(&self, name: &str, value: &str) -> bool {
        self.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.is(name, "ON") || self.is(name, "1")
    }

    /// `lower_case_table_names`.
    #[must_use]
    pub fn lower_case_table_names(&self) -> u8 {
        self.get("lower_case_table_names").and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Whether there is a log.
    ///
    /// # Errors
    /// `reader_endpoint` for good; `binlog_disabled`, which a failover may say for a while.
    pub fn test_log(&self) -> Result<(), Halt> {
        match (self.is_on("log_bin"), self.is_on("innodb_read_only")) {
            (true, _) => Ok(()),
            (false, true) => Err(Halt::new(Code::ReaderEndpoint)),
            (false, false) => Err(Halt::new(Code::BinlogDisabled)),
        }
    }

    /// Whether it would log what it applies, were it a replica.
    #[must_use]
    pub fn logs_replica_updates(&self) -> bool {
        !self.is("log_replica_updates", "OFF") && !self.is("log_slave_updates", "OFF")
    }

    /// Whether the server logs what its foreign keys cascade: from 9.6 on, unless InnoDB does it natively.
    #[must_use]
    pub fn logs_cascades(&self, version: &ServerVersion) -> bool {
        version.at_least((9, 6, 0)) && !self.is_on("innodb_native_foreign_keys")
    }
}

/// Asks for the log's filters; needs REPLICATION CLIENT.
#[must_use]
pub fn log_status_question(version: &ServerVersion) -> &'static str {
    if version.at_least((8, 2, 0)) { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" }
}

/// Filters of the log hide rows and their GTIDs alike, so nothing downstream could ever notice.
///
/// # Errors
/// `binlog_filtered`, with the filter.
pub fn test_filters(rows: &ResultSet) -> Result<(), Halt> {
    for (column, option) in [("Binlog_Do_DB", "binlog-do-db"), ("Binlog_Ignore_DB", "binlog-ignore-db")] {
        let Some(column) = rows.column(column) else { continue };
        for row in 0..rows.rows.len() {
            if let Some(Some(value)) = rows.cell(row, column)
                && !value.is_empty()
            {
                let found = String::from_utf8_lossy(value).into_owned();
                return Err(Halt::new(Code::BinlogFiltered).with(Detail::Variable(option, found)));
            }
        }
    }
    Ok(())
}

/// Asks whether it is a replica; needs REPLICATION CLIENT.
#[must_use]
pub fn replica_status_question(version: &ServerVersion) -> &'static str {
    if version.at_least((8, 0, 22)) { "SHOW REPLICA STATUS" } else { "SHOW SLAVE STATUS" }
}

/// Foreign keys that change rows of the table that has them.
pub const CASCADES: &str = "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME \
     FROM information_schema.REFERENTIAL_CONSTRAINTS \
     WHERE UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') \
     OR DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')";

/// Tests the answer to [`CASCADES`]. `captured` knows the server's `lower_case_table_names`.
///
/// # Errors
/// `unlogged_cascades`, with the tables.
pub fn test_cascades(rows: &ResultSet, captured: &CapturedSet) -> Result<(), Halt> {
    let mut tables = Vec::new();
    for row in &rows.rows {
        if let [Some(schema), Some(table), ..] = row.as_slice() {
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
    Err(Halt::new(Code::UnloggedCascades).with(Detail::Tables(tables)))
}

/// How many there are. The view of [`CASCADES`] leaves out tables the account may not see, without a word. This
/// is InnoDB's own list of all of them, and needs PROCESS; bits 1 to 8 of TYPE are the rules asked for there
/// (manual, "The INFORMATION_SCHEMA INNODB_FOREIGN Table").
pub const ALL_CASCADES: &str = "SELECT COUNT(*) FROM information_schema.INNODB_FOREIGN WHERE TYPE & 15 <> 0";

/// A table that cannot be seen may be a captured one, so what is not known is not taken as good. `seen` is the
/// number of rows of the answer to [`CASCADES`].
///
/// # Errors
/// `missing_privilege`: SELECT.
pub fn test_all_cascades(rows: &ResultSet, seen: u64) -> Result<(), Halt> {
    let there = match rows.cell(0, 0) {
        Some(Some(value)) => core::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()),
        _ => None,
    };
    match there {
        Some(there) if there <= seen => Ok(()),
        Some(_) | None => Err(Halt::new(Code::MissingPrivilege).with(Detail::Privilege("SELECT"))),
    }
}

/// Asks for the server's history. Not SHOW VARIABLES, which cuts a set at 1,024 characters.
pub const HISTORY: &str = "SELECT @@global.gtid_executed, @@global.gtid_purged, @@global.server_uuid";

/// What a server has executed, and what of it is in its log no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// `gtid_executed`
    pub executed: GtidSet,
    /// `gtid_purged`
    pub purged: GtidSet,
    /// `server_uuid`
    pub source_uuid: Option<Uuid>,
}

impl History {
    /// Reads the answer to [`HISTORY`]; `None` where a set is not one.
    #[must_use]
    pub fn read(rows: &ResultSet) -> Option<Self> {
        let cell = |column| match rows.cell(0, column) {
            Some(Some(value)) => core::str::from_utf8(value).ok(),
            _ => None,
        };
        let set = |column| cell(column).and_then(|text| text.parse::<GtidSet>().ok());
        Some(Self {
            executed: set(0)?,
            purged: set(1)?,
            source_uuid: cell(2).and_then(|text| text.parse().ok()),
        })
    }

    /// Tests what is processed against it: identity first, gaps second.
    ///
    /// # Errors
    /// `source_behind` if only a tail of UUIDs the server knows is missing, which may come yet;
    /// `source_identity_mismatch`; `data_gap`. Each with the missing set.
    pub fn test(&self, processed: &GtidSet) -> Result<(), Halt> {
        test_position(processed, &self.executed, &self.purged)
    }
}

/// [`History::test`] on its parts.
pub(super) fn test_position(processed: &GtidSet, executed: &GtidSet, purged: &GtidSet) -> Result<(), Halt> {
    let missing = processed.subtract(executed);
    if !missing.is_empty() {
        let tail = missing.iter().all(|(tsid, intervals)| {
            let known = executed.intervals(&tsid);
            match (intervals.first(), known.last()) {
                (Some(first), Some(last)) => first.start() > last.end(),
                _ => false,
            }
        });
        let code = if tail { Code::SourceBehind } else { Code::SourceIdentityMismatch };
        return Err(Halt::new(code).with(Detail::Missing(missing)));
    }
    let gone = executed.subtract(processed).intersect(purged);
    if !gone.is_empty() {
        return Err(Halt::new(Code::DataGap).with(Detail::Missing(gone)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
    const B: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        Variables(pairs.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect())
    }

    #[test]
    fn every_variable_is_judged_by_its_own_code() {
        for (name, good, bad, code) in [
            ("gtid_mode", "on", Some("OFF_PERMISSIVE"), Code::GtidModeNotOn),
            ("binlog_format", "ROW", Some("MIXED"), Code::BinlogFormatNotRow),
            ("binlog_row_image", "full", Some("NOBLOB"), Code::BinlogRowImageNotFull),
            ("binlog_row_metadata", "FULL", None, Code::BinlogRowMetadataNotFull),
            ("binlog_row_value_options", "", Some("X"), Code::BinlogRowValueOptionsNotEmpty),
            ("binlog_row_value_options", "PARTIAL_JSON", Some("X"), Code::BinlogRowValueOptionsNotEmpty),
        ] {
            let requirement = REQUIREMENTS.iter().find(|one| one.variable == name).unwrap();
            assert!(VARIABLES.contains(&format!("'{name}'")), "{name} is asked for");
            assert_eq!(requirement.test(Some(good)), Ok(()), "{name}");
            let halt = requirement.test(bad).unwrap_err();
            assert_eq!(halt.code, code, "{name}");
            let found = Detail::Variable(requirement.variable, bad.unwrap_or_default().to_string());
            assert_eq!(halt.detail.as_deref(), Some(&found));
        }
        for (pairs, want) in [
            (&[("log_bin", "1")][..], Ok(())),
            (&[("log_bin", "ON"), ("innodb_read_only", "ON")][..], Ok(())),
            (&[("log_bin", "OFF")][..], Err(Code::BinlogDisabled)),
            (&[][..], Err(Code::BinlogDisabled)),
            (&[("log_bin", "0"), ("innodb_read_only", "1")][..], Err(Code::ReaderEndpoint)),
        ] {
            assert_eq!(variables(pairs).test_log().map_err(|halt| halt.code), want, "{pairs:?}");
        }
    }

    #[test]
    fn cascades_that_cannot_be_seen_are_not_taken_for_none() {
        let count = |text: &str| ResultSet {
            rows: alloc::vec![alloc::vec![Some(text.as_bytes().to_vec().into())]],
            ..ResultSet::default()
        };
        assert!(test_all_cascades(&count("2"), 2).is_ok());
        assert!(test_all_cascades(&count("0"), 1).is_ok(), "of an engine other than InnoDB");
        for (rows, seen) in [(count("3"), 2), (count("x"), 2), (ResultSet::default(), 0)] {
            assert_eq!(test_all_cascades(&rows, seen).unwrap_err().code, Code::MissingPrivilege);
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
            let history = History { executed: set(executed), purged: set(purged), source_uuid: None };
            let got = history.test(&set(position)).err().map(|halt| halt.code);
            assert_eq!(got, want, "{position} against {executed} without {purged}");
        }
    }
}
