//! Error packets, and what their numbers mean to a replication client.
//!
//! Sources: `page_protocol_basic_err_packet`; the server error reference of the MySQL manual;
//! `sql/rpl_binlog_sender.cc` for the texts of a refused dump.

use super::response::{ERR_HEADER, Malformed};
use crate::wire::Reader;
use alloc::boxed::Box;
use core::fmt;

/// The text is only searched for a few phrases, and no phrase starts later than this.
const MESSAGE_KEPT_MAX: usize = 1024;

/// An error the server reported.
///
/// Its text may quote statements, values and host names, so it is kept for classification only:
/// neither `Debug` nor `Display` show it, and no method gives it out.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct ServerError {
    number: u16,
    sqlstate: Option<[u8; 5]>,
    message: Box<[u8]>,
}

impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerError({self})")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server error {}", self.number)?;
        match self.sqlstate() {
            Some(state) => write!(f, " ({state})"),
            None => Ok(()),
        }
    }
}

/// What an error number asks of the one who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorMeaning {
    /// The account may not log in: wrong password, unknown user or host, locked, expired. Trying
    /// again changes nothing (and may lock the account).
    AccessDenied,
    /// Logged in, but a privilege is missing for what was asked.
    MissingPrivilege,
    /// The server, the session or the network is going through something that passes: shutdown,
    /// KILL, too many connections, read-only during a failover, lock waits, idle disconnect.
    Transient,
    /// Anything else; the number is all there is to say.
    Other,
}

/// Why the server refused a dump, or ended one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpRefusal {
    /// The source purged transactions that are still missing here (`data_gap`).
    DataGap,
    /// Another replica with our UUID (or, lacking one, our `server_id`) took over
    /// (`server_id_conflict`).
    ServerIdConflict,
    /// The session did not announce a checksum the source is configured to send
    /// (`checksum_negotiation_failed`).
    ChecksumNegotiationFailed,
    /// The GTID set asked for holds transactions of the source that the source never executed
    /// (`source_identity_mismatch`).
    SourceIdentityMismatch,
    /// The account may not dump: `REPLICATION SLAVE` is missing.
    MissingPrivilege,
    /// Not about the dump at all: shutdown, KILL and their like. Dial again.
    Transient,
    /// A refusal without a name of its own (`dump_refused`), with the server's number.
    Refused(u16),
}

impl ServerError {
    /// Reads an error packet (first byte 0xff). The SQL state is absent when the server had not yet
    /// seen our capabilities, as in "too many connections" in place of a greeting.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8()? != ERR_HEADER {
            return Err(Malformed);
        }
        let number = r.u16()?;
        let mut sqlstate = None;
        if r.rest().first() == Some(&b'#') {
            r.skip(1)?;
            sqlstate = Some(r.array::<5>()?).filter(|state| state.iter().all(u8::is_ascii_alphanumeric));
        }
        let kept = r.len().min(MESSAGE_KEPT_MAX);
        Ok(Self { number, sqlstate, message: r.take(kept)?.into() })
    }

    /// The server's error number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The five letters of the SQL state, if the server sent them.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_ref().and_then(|state| core::str::from_utf8(state).ok())
    }

    /// What the number means, whatever it answered.
    #[must_use]
    pub fn meaning(&self) -> ErrorMeaning {
        meaning(self.number)
    }

    /// What the error means as the answer to a dump request or in its stream.
    ///
    /// The server sends one number, 1236 (`ER_MASTER_FATAL_ERROR_READING_BINLOG`), for most refusals
    /// and tells them apart only in its text. The phrases are those of every version since 5.6, in
    /// both vocabularies (master/slave, source/replica), and are not translated (9.7 with `lc_messages =
    /// de_DE` sends them in English). An unknown text is a refusal with its number, never a retry.
    #[must_use]
    pub fn dump_refusal(&self) -> DumpRefusal {
        match self.number {
            ER_SOURCE_FATAL_ERROR_READING_BINLOG | ER_SOURCE_HAS_PURGED_REQUIRED_GTIDS => {
                self.refusal_by_text()
            }
            number => match self.meaning() {
                ErrorMeaning::Transient => DumpRefusal::Transient,
                ErrorMeaning::MissingPrivilege | ErrorMeaning::AccessDenied => DumpRefusal::MissingPrivilege,
                ErrorMeaning::Other => DumpRefusal::Refused(number),
            },
        }
    }

    fn refusal_by_text(&self) -> DumpRefusal {
        DUMP_PHRASES
            .iter()
            .find(|(phrase, _)| self.says(phrase))
            .map_or(DumpRefusal::Refused(self.number), |&(_, refusal)| refusal)
    }

    fn says(&self, phrase: &str) -> bool {
        self.message.windows(phrase.len()).any(|window| window.eq_ignore_ascii_case(phrase.as_bytes()))
    }
}

/// Text of a 1236 and what it means. Phrases, not words: "checksum" alone is also in the text about a
/// corrupt event, and "purged" alone could be in a file name that the text quotes.
const DUMP_PHRASES: [(&str, DumpRefusal); 5] = [
    ("replication events with the checksum", DumpRefusal::ChecksumNegotiationFailed),
    ("more GTIDs than the", DumpRefusal::SourceIdentityMismatch),
    ("same server_uuid/server_id", DumpRefusal::ServerIdConflict),
    ("purged required binary logs", DumpRefusal::DataGap),
    ("purged binary logs containing GTIDs", DumpRefusal::DataGap),
];

const ER_SOURCE_FATAL_ERROR_READING_BINLOG: u16 = 1236;
/// `ER_MASTER_HAS_PURGED_REQUIRED_GTIDS`, in its own number where a fork sends it so.
const ER_SOURCE_HAS_PURGED_REQUIRED_GTIDS: u16 = 1789;

/// The error numbers that mean something here, with MySQL's names for them (a live test compares the
/// names with the server's own table). Each list is closed: what is not here is `Other`.
///
/// Among the passing ones: 1129 until `FLUSH HOSTS`; 1290 because a failover makes servers read-only
/// for a while.
pub const ERROR_MEANINGS: [(u16, &str, ErrorMeaning); 46] = [
    (1045, "ER_ACCESS_DENIED_ERROR", ErrorMeaning::AccessDenied),
    (1130, "ER_HOST_NOT_PRIVILEGED", ErrorMeaning::AccessDenied),
    (1251, "ER_NOT_SUPPORTED_AUTH_MODE", ErrorMeaning::AccessDenied),
    (1698, "ER_ACCESS_DENIED_NO_PASSWORD_ERROR", ErrorMeaning::AccessDenied),
    (1820, "ER_MUST_CHANGE_PASSWORD", ErrorMeaning::AccessDenied),
    (1862, "ER_MUST_CHANGE_PASSWORD_LOGIN", ErrorMeaning::AccessDenied),
    (3118, "ER_ACCOUNT_HAS_BEEN_LOCKED", ErrorMeaning::AccessDenied),
    (3159, "ER_SECURE_TRANSPORT_REQUIRED", ErrorMeaning::AccessDenied),
    (3955, "ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK", ErrorMeaning::AccessDenied),
    (1044, "ER_DBACCESS_DENIED_ERROR", ErrorMeaning::MissingPrivilege),
    (1095, "ER_KILL_DENIED_ERROR", ErrorMeaning::MissingPrivilege),
    (1142, "ER_TABLEACCESS_DENIED_ERROR", ErrorMeaning::MissingPrivilege),
    (1143, "ER_COLUMNACCESS_DENIED_ERROR", ErrorMeaning::MissingPrivilege),
    (1227, "ER_SPECIFIC_ACCESS_DENIED_ERROR", ErrorMeaning::MissingPrivilege),
    (1370, "ER_PROCACCESS_DENIED_ERROR", ErrorMeaning::MissingPrivilege),
    (1037, "ER_OUTOFMEMORY", ErrorMeaning::Transient),
    (1038, "ER_OUT_OF_SORTMEMORY", ErrorMeaning::Transient),
    (1040, "ER_CON_COUNT_ERROR", ErrorMeaning::Transient),
    (1041, "ER_OUT_OF_RESOURCES", ErrorMeaning::Transient),
    (1042, "ER_BAD_HOST_ERROR", ErrorMeaning::Transient),
    (1043, "ER_HANDSHAKE_ERROR", ErrorMeaning::Transient),
    (1053, "ER_SERVER_SHUTDOWN", ErrorMeaning::Transient),
    (1079, "ER_SHUTDOWN_COMPLETE", ErrorMeaning::Transient),
    (1080, "ER_FORCING_CLOSE", ErrorMeaning::Transient),
    (1129, "ER_HOST_IS_BLOCKED", ErrorMeaning::Transient),
    (1135, "ER_CANT_CREATE_THREAD", ErrorMeaning::Transient),
    (1152, "ER_ABORTING_CONNECTION", ErrorMeaning::Transient),
    (1158, "ER_NET_READ_ERROR", ErrorMeaning::Transient),
    (1159, "ER_NET_READ_INTERRUPTED", ErrorMeaning::Transient),
    (1160, "ER_NET_ERROR_ON_WRITE", ErrorMeaning::Transient),
    (1161, "ER_NET_WRITE_INTERRUPTED", ErrorMeaning::Transient),
    (1184, "ER_NEW_ABORTING_CONNECTION", ErrorMeaning::Transient),
    (1189, "ER_SOURCE_NET_READ", ErrorMeaning::Transient),
    (1190, "ER_SOURCE_NET_WRITE", ErrorMeaning::Transient),
    (1203, "ER_TOO_MANY_USER_CONNECTIONS", ErrorMeaning::Transient),
    (1205, "ER_LOCK_WAIT_TIMEOUT", ErrorMeaning::Transient),
    (1213, "ER_LOCK_DEADLOCK", ErrorMeaning::Transient),
    (1226, "ER_USER_LIMIT_REACHED", ErrorMeaning::Transient),
    (1290, "ER_OPTION_PREVENTS_STATEMENT", ErrorMeaning::Transient),
    (1317, "ER_QUERY_INTERRUPTED", ErrorMeaning::Transient),
    (1836, "ER_READ_ONLY_MODE", ErrorMeaning::Transient),
    (3024, "ER_QUERY_TIMEOUT", ErrorMeaning::Transient),
    (3032, "ER_SERVER_OFFLINE_MODE", ErrorMeaning::Transient),
    (3168, "ER_SERVER_ISNT_AVAILABLE", ErrorMeaning::Transient),
    (3169, "ER_SESSION_WAS_KILLED", ErrorMeaning::Transient),
    (4031, "ER_CLIENT_INTERACTION_TIMEOUT", ErrorMeaning::Transient),
];

/// `ER_CONNECTION_KILLED` of MariaDB and `CR_SERVER_LOST` of the client library, as proxies pass them on.
const FROM_PROXIES: [u16; 2] = [1927, 2013];

fn meaning(number: u16) -> ErrorMeaning {
    if FROM_PROXIES.contains(&number) {
        return ErrorMeaning::Transient;
    }
    let known = ERROR_MEANINGS.iter().find(|(listed, ..)| *listed == number);
    known.map_or(ErrorMeaning::Other, |&(.., meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    fn packet(number: u16, text: &str) -> Vec<u8> {
        [&[0xff], &number.to_le_bytes()[..], b"#HY000", text.as_bytes()].concat()
    }

    #[test]
    fn the_example_of_the_manual() {
        // "No tables used", from page_protocol_basic_err_packet.
        let bytes =
            b"\xff\x48\x04\x23\x48\x59\x30\x30\x30\x4e\x6f\x20\x74\x61\x62\x6c\x65\x73\x20\x75\x73\x65\x64";
        let error = ServerError::parse(bytes).unwrap();
        assert_eq!((error.number(), error.sqlstate()), (1096, Some("HY000")));
        assert_eq!(format!("{error}"), "server error 1096 (HY000)");
    }

    #[test]
    fn an_error_before_the_greeting_has_no_state() {
        let error = ServerError::parse(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!((error.number(), error.sqlstate()), (1040, None));
        assert_eq!(error.meaning(), ErrorMeaning::Transient);
    }

    #[test]
    fn what_is_cut_short_is_malformed() {
        for bytes in [&b""[..], b"\xff", b"\xff\x10", b"\xff\x10\x04#HY0", b"\x00\x10\x04#HY000"] {
            assert_eq!(ServerError::parse(bytes), Err(Malformed), "{bytes:02x?}");
        }
        // A state of other bytes than letters and digits is no state.
        assert_eq!(ServerError::parse(b"\xff\x10\x04#\n\n\n\n\n").unwrap().sqlstate(), None);
    }

    #[test]
    fn the_text_shows_nowhere() {
        let error = ServerError::parse(&packet(1062, "Duplicate entry 'sentinel' for key")).unwrap();
        assert!(!format!("{error} {error:?} {error:#?}").contains("sentinel"));
    }

    #[test]
    fn a_long_text_is_not_kept() {
        let error = ServerError::parse(&packet(1236, &"x".repeat(1 << 20))).unwrap();
        assert_eq!(error.message.len(), MESSAGE_KEPT_MAX);
    }

    #[test]
    fn numbers_are_listed_once_and_ascend_by_meaning() {
        for meaning in [ErrorMeaning::AccessDenied, ErrorMeaning::MissingPrivilege, ErrorMeaning::Transient] {
            let listed: Vec<u16> =
                ERROR_MEANINGS.iter().filter(|row| row.2 == meaning).map(|row| row.0).collect();
            assert!(listed.is_sorted_by(|a, b| a < b), "{listed:?}");
        }
        for (number, name, meaning) in ERROR_MEANINGS {
            assert_eq!(super::meaning(number), meaning, "{number} {name} is listed twice");
        }
    }

    #[test]
    fn numbers_by_meaning() {
        for (number, want) in [
            (1045, ErrorMeaning::AccessDenied),
            (1862, ErrorMeaning::AccessDenied),
            (1227, ErrorMeaning::MissingPrivilege),
            (1044, ErrorMeaning::MissingPrivilege),
            (1053, ErrorMeaning::Transient),
            (1927, ErrorMeaning::Transient),
            (2013, ErrorMeaning::Transient),
            (1236, ErrorMeaning::Other),
            (1064, ErrorMeaning::Other),
            (0, ErrorMeaning::Other),
            (65535, ErrorMeaning::Other),
        ] {
            assert_eq!(meaning(number), want, "{number}");
        }
    }

    /// The texts as the servers send them (5.6 to 9.7), in the vocabularies of both times.
    #[test]
    fn dump_refusals_by_text() {
        use DumpRefusal::{
            ChecksumNegotiationFailed, DataGap, MissingPrivilege, Refused, ServerIdConflict,
            SourceIdentityMismatch, Transient,
        };
        for (number, text, want) in [
            (
                1236,
                "Cannot replicate because the source purged required binary logs. Replicate the missing transactions from elsewhere, or provision a new replica from backup.",
                DataGap,
            ),
            (
                1236,
                "Cannot replicate because the master purged required binary logs. Replicate the missing transactions from elsewhere",
                DataGap,
            ),
            (
                1236,
                "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs containing GTIDs that the slave requires.",
                DataGap,
            ),
            (
                1789,
                "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs containing GTIDs that the slave requires.",
                DataGap,
            ),
            (
                1236,
                "A replica with the same server_uuid/server_id as this replica has connected to the source; the first event '' at 4",
                ServerIdConflict,
            ),
            (
                1236,
                "A slave with the same server_uuid/server_id as this slave has connected to the master; the first event 'b.000001' at 760357",
                ServerIdConflict,
            ),
            (
                1236,
                "Replica can not handle replication events with the checksum that source is configured to log; the first event 'b.000001' at 4",
                ChecksumNegotiationFailed,
            ),
            (
                1236,
                "Slave can not handle replication events with the checksum that master is configured to log",
                ChecksumNegotiationFailed,
            ),
            (
                1236,
                "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate that the end of the binary log was truncated",
                SourceIdentityMismatch,
            ),
            (
                1236,
                "Slave has more GTIDs than the master has, using the master's SERVER_UUID.",
                SourceIdentityMismatch,
            ),
            // Close, and something else: damage on the source's disk, and a position that is none.
            (
                1236,
                "event read from binlog did not pass checksum algorithm check specified on --binlog-checksum option",
                Refused(1236),
            ),
            (1236, "could not find next log; the first event 'purged.000001' at 4", Refused(1236)),
            (1236, "", Refused(1236)),
            (1773, "Malformed GTID set specification '...'.", Refused(1773)),
            (1053, "Server shutdown in progress", Transient),
            (1317, "Query execution was interrupted", Transient),
            (
                1227,
                "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s)",
                MissingPrivilege,
            ),
        ] {
            let error = ServerError::parse(&packet(number, text)).unwrap();
            assert_eq!(error.dump_refusal(), want, "{number} {text}");
        }
    }
}
