//! The statements a replica asks before it asks for the log, and their answers.

use bytes::BytesMut;

use super::Server;
use crate::put;

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

/// Where the packets of an answer go.
pub(super) struct Packets<'a> {
    pub(super) out: &'a mut BytesMut,
    pub(super) sequence: &'a mut u8,
    pub(super) deprecate_eof: bool,
    /// Rows are those of a prepared statement.
    pub(super) binary: bool,
}

impl Packets<'_> {
    /// One packet, shorter than 16 MiB.
    pub(super) fn packet(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0, 0, 0, *self.sequence]);
        *self.sequence = self.sequence.wrapping_add(1);
        write(self.out);
        let len = self.out.len() - start - 4;
        assert!(len < 0xff_ffff, "an answer of one packet");
        self.out[start..start + 3].copy_from_slice(&(len as u32).to_le_bytes()[..3]);
    }

    pub(super) fn ok(&mut self) {
        self.packet(|out| out.extend_from_slice(&ok(0)));
    }

    pub(super) fn error(&mut self, number: u16, text: &str) {
        self.packet(|out| out.extend_from_slice(&error(number, text, true)));
    }

    /// The head of a result set in text.
    fn columns(&mut self, names: &[&str]) {
        self.packet(|out| out.extend_from_slice(&[names.len() as u8]));
        for name in names {
            self.packet(|out| {
                // Catalog `def`, no schema, no tables; a VAR_STRING in utf8mb4.
                out.extend_from_slice(b"\x03def\0\0\0");
                cell(out, name.as_bytes());
                out.extend_from_slice(b"\0\x0c\xff\0\0\x04\0\0\xfd\0\0\x1f\0\0");
            });
        }
        if !self.deprecate_eof {
            self.packet(|out| out.extend_from_slice(EOF));
        }
    }

    fn row(&mut self, cells: &[&[u8]]) {
        self.packet(|out| cells.iter().for_each(|bytes| cell(out, bytes)));
    }

    /// The answer to a statement that is prepared: its number is 1.
    pub(super) fn prepared(&mut self, columns: u16) {
        self.packet(|out| {
            out.extend_from_slice(&[0, 1, 0, 0, 0]);
            out.extend_from_slice(&columns.to_le_bytes());
            out.extend_from_slice(&[0; 5]);
        });
        for _ in 0..columns {
            self.packet(|out| {
                out.extend_from_slice(b"\x03def\0\0\0\x01x\0\x0c\xff\0\0\x04\0\0\xfd\0\0\x1f\0\0")
            });
        }
        if !self.deprecate_eof {
            self.packet(|out| out.extend_from_slice(EOF));
        }
    }

    /// A whole result set, of rows that may be long and have NULLs.
    pub(super) fn table(&mut self, names: &[&str], rows: &[Vec<Option<Vec<u8>>>]) {
        self.columns(names);
        let binary = self.binary;
        for row in rows {
            self.packet(|out| {
                if binary {
                    // Strings with a bit for each that is NULL in front, from the third on.
                    let mut nulls = vec![0; 1 + (row.len() + 9) / 8];
                    for (at, _) in row.iter().enumerate().filter(|(_, value)| value.is_none()) {
                        nulls[1 + (at + 2) / 8] |= 1 << ((at + 2) % 8);
                    }
                    out.extend_from_slice(&nulls);
                }
                for value in row {
                    match value {
                        Some(bytes) => cell(out, bytes),
                        None if binary => {}
                        None => out.extend_from_slice(&[0xfb]),
                    }
                }
            });
        }
        self.end();
    }

    fn end(&mut self) {
        if self.deprecate_eof {
            self.packet(|out| out.extend_from_slice(&ok(0xfe)));
        } else {
            self.packet(|out| out.extend_from_slice(EOF));
        }
    }
}

const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];

fn cell(out: &mut BytesMut, bytes: &[u8]) {
    if bytes.len() <= 250 {
        out.extend_from_slice(&[bytes.len() as u8]);
    } else {
        let mut len = Vec::new();
        put::lenenc(&mut len, bytes.len() as u64);
        out.extend_from_slice(&len);
    }
    out.extend_from_slice(bytes);
}

impl Server {
    /// Answers a statement.
    pub(super) fn answer(&self, sql: &str, settings: &mut Settings, to: &mut Packets<'_>) {
        if let Some(list) = sql.strip_prefix("SHOW GLOBAL VARIABLES WHERE Variable_name IN ") {
            to.columns(&["Variable_name", "Value"]);
            for name in list.split('\'').skip(1).step_by(2) {
                if let Some(value) = self.variables.get(name) {
                    to.row(&[name.as_bytes(), value.as_bytes()]);
                }
            }
            return to.end();
        }
        match sql {
            "SHOW BINARY LOG STATUS" | "SHOW MASTER STATUS" => {
                let file = &self.files[self.files.len() - 1];
                let (do_db, ignore_db) = &self.filters;
                let (position, executed) = (file.end().to_string(), self.executed.to_string());
                to.columns(&["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"]);
                let cells = [file.name(), &position, do_db, ignore_db, &executed];
                to.row(&cells.map(str::as_bytes));
                to.end();
            }
            "SHOW REPLICA STATUS" | "SHOW SLAVE STATUS" => {
                to.columns(&["Replica_IO_State"]);
                if self.is_replica {
                    to.row(&[b"Waiting for source"]);
                }
                to.end();
            }
            "SELECT @@global.gtid_executed, @@global.gtid_purged, @@global.server_uuid" => {
                to.columns(&["@@global.gtid_executed", "@@global.gtid_purged", "@@global.server_uuid"]);
                let cells = [self.executed.to_string(), self.purged.to_string(), self.uuid.to_string()];
                to.row(&[cells[0].as_bytes(), cells[1].as_bytes(), cells[2].as_bytes()]);
                to.end();
            }
            "SELECT @source_binlog_checksum" => {
                let value: &[u8] = match settings.checksum {
                    Some(true) => b"CRC32",
                    Some(false) => b"NONE",
                    None => return to.error(1064, "not set"),
                };
                to.columns(&["@source_binlog_checksum"]);
                to.row(&[value]);
                to.end();
            }
            sql if sql.starts_with("SET ") => {
                self.set_session(&sql[4..], settings);
                to.ok();
            }
            sql if sql.starts_with(
                "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS ",
            ) =>
            {
                to.columns(&["CONSTRAINT_SCHEMA", "TABLE_NAME", "CONSTRAINT_NAME"]);
                for (schema, table) in &self.cascades {
                    to.row(&[schema.as_bytes(), table.as_bytes(), b"to_parent"]);
                }
                to.end();
            }
            sql if sql.starts_with("SELECT COUNT(*) FROM information_schema.INNODB_FOREIGN") => {
                to.columns(&["COUNT(*)"]);
                to.row(&[self.cascades.len().to_string().as_bytes()]);
                to.end();
            }
            _ => to.error(1064, "You have an error in your SQL syntax"),
        }
    }

    fn set_session(&self, assignments: &str, settings: &mut Settings) {
        for assignment in assignments.split(',') {
            let Some((name, value)) = assignment.split_once('=') else { continue };
            let value = value.trim_ascii().trim_matches('\'');
            match name.trim_ascii() {
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

pub(super) const fn ok(header: u8) -> [u8; 7] {
    [header, 0, 0, 2, 0, 0, 0]
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
