//! The statements a replica asks before it asks for the log, and their answers.

use super::Server;
use crate::put;

/// A result set in text, or nothing but OK.
pub(super) enum Answer {
    Ok,
    Rows(Vec<&'static str>, Vec<Vec<String>>),
    Error(u16, &'static str),
}

/// What a session has set.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// `@source_binlog_checksum`, if set.
    pub(super) checksum: Option<bool>,
    /// `@source_heartbeat_period`, µs.
    pub(super) heartbeat_us: u64,
    /// `@replica_uuid`.
    pub(super) replica_uuid: String,
}

impl Server {
    pub(super) fn answer(&self, sql: &str, settings: &mut Settings) -> Answer {
        if let Some(list) = sql.strip_prefix("SHOW GLOBAL VARIABLES WHERE Variable_name IN ") {
            let rows = list
                .split('\'')
                .skip(1)
                .step_by(2)
                .filter_map(|name| Some(vec![name.to_string(), self.variables.get(name)?.clone()]));
            return Answer::Rows(vec!["Variable_name", "Value"], rows.collect());
        }
        match sql {
            "SHOW BINARY LOG STATUS" | "SHOW MASTER STATUS" => {
                let file = &self.files[self.files.len() - 1];
                let (do_db, ignore_db) = self.filters.clone();
                let executed = self.executed.to_string();
                let row = vec![file.name().into(), file.end().to_string(), do_db, ignore_db, executed];
                Answer::Rows(
                    vec!["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"],
                    vec![row],
                )
            }
            "SHOW REPLICA STATUS" | "SHOW SLAVE STATUS" => {
                let rows =
                    if self.is_replica { vec![vec!["Waiting for source".to_string()]] } else { vec![] };
                Answer::Rows(vec!["Replica_IO_State"], rows)
            }
            "SELECT @@global.gtid_executed, @@global.gtid_purged, @@global.server_uuid" => Answer::Rows(
                vec!["@@global.gtid_executed", "@@global.gtid_purged", "@@global.server_uuid"],
                vec![vec![self.executed.to_string(), self.purged.to_string(), self.uuid.to_string()]],
            ),
            "SELECT @source_binlog_checksum" => {
                let value = match settings.checksum {
                    Some(true) => "CRC32",
                    Some(false) => "NONE",
                    None => return Answer::Error(1064, "not set"),
                };
                Answer::Rows(vec!["@source_binlog_checksum"], vec![vec![value.into()]])
            }
            sql if sql.contains("information_schema.REFERENTIAL_CONSTRAINTS") => {
                let rows = self.cascades.iter().map(|(schema, table)| vec![schema.clone(), table.clone()]);
                Answer::Rows(vec!["CONSTRAINT_SCHEMA", "TABLE_NAME"], rows.collect())
            }
            sql if sql.contains("information_schema.INNODB_FOREIGN") => {
                Answer::Rows(vec!["COUNT(*)"], vec![vec![self.cascades.len().to_string()]])
            }
            sql if sql.starts_with("SET ") => {
                self.set_session(&sql[4..], settings);
                Answer::Ok
            }
            _ => Answer::Error(1064, "You have an error in your SQL syntax"),
        }
    }

    fn set_session(&self, assignments: &str, settings: &mut Settings) {
        for assignment in assignments.split(", ") {
            let Some((name, value)) = assignment.split_once(" = ") else { continue };
            let value = value.trim_matches('\'');
            match name {
                "@source_binlog_checksum" => {
                    settings.checksum = Some(match value {
                        "@@global.binlog_checksum" => self.crc32,
                        other => other == "CRC32",
                    });
                }
                "@source_heartbeat_period" => settings.heartbeat_us = value.parse().unwrap_or(0) / 1000,
                "@replica_uuid" => settings.replica_uuid = value.into(),
                _ => {}
            }
        }
    }
}

/// The payloads of an answer.
pub(super) fn payloads(answer: Answer, deprecate_eof: bool) -> Vec<Vec<u8>> {
    let (columns, rows) = match answer {
        Answer::Ok => return vec![ok(0x00)],
        Answer::Error(number, text) => return vec![error(number, text, true)],
        Answer::Rows(columns, rows) => (columns, rows),
    };
    let mut out = vec![vec![columns.len() as u8]];
    for name in columns {
        let mut definition = Vec::new();
        for text in ["def", "", "", "", name, ""] {
            put::lenenc_bytes(&mut definition, text.as_bytes());
        }
        definition.push(0x0c);
        put::int(&mut definition, 255, 2);
        put::int(&mut definition, 1024, 4);
        definition.push(0xfd);
        put::int(&mut definition, 0, 2);
        definition.push(0x1f);
        put::int(&mut definition, 0, 2);
        out.push(definition);
    }
    let eof = vec![0xfe, 0, 0, 2, 0];
    if !deprecate_eof {
        out.push(eof.clone());
    }
    for row in rows {
        let mut payload = Vec::new();
        row.iter().for_each(|cell| put::lenenc_bytes(&mut payload, cell.as_bytes()));
        out.push(payload);
    }
    out.push(if deprecate_eof { ok(0xfe) } else { eof });
    out
}

pub(super) fn ok(header: u8) -> Vec<u8> {
    vec![header, 0, 0, 2, 0, 0, 0]
}

/// An error packet; before the greeting it has no SQL state.
pub(super) fn error(number: u16, text: &str, with_state: bool) -> Vec<u8> {
    let mut out = vec![0xff];
    put::int(&mut out, u64::from(number), 2);
    if with_state {
        out.extend_from_slice(b"#HY000");
    }
    out.extend_from_slice(text.as_bytes());
    out
}
