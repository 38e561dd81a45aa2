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
    pub const fn meaning(&self) -> ErrorMeaning {
        meaning(self.number)
    }

    /// What the error means as the answer to a dump request or in its stream.
    ///
    /// The server sends one number, 1236 (`ER_MASTER_FATAL_ERROR_READING_BINLOG`), for most refusals
    /// and tells them apart only in its text. The phrases are those of every version since 5.6, in
    /// both vocabularies (master/slave, source/replica). They are English unless the session's
    /// `lc_messages` was changed: an unknown text is a refusal with its number, never a retry.
    #[must_use]
    pub fn dump_refusal(&self) -> DumpRefusal {
        match self.number {
            ER_SOURCE_FATAL_ERROR_READING_BINLOG | ER_SOURCE_HAS_PURGED_REQUIRED_GTIDS => {
                self.refusal_by_text()
            }
            number => match meaning(number) {
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

/// The numbers by meaning. Names from the server error reference; each list is closed, and what is in
/// none of them is `Other`.
const fn meaning(number: u16) -> ErrorMeaning {
    match number {
        1045 // ER_ACCESS_DENIED_ERROR
        | 1698 // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
        | 1130 // ER_HOST_NOT_PRIVILEGED
        | 1251 // ER_NOT_SUPPORTED_AUTH_MODE
        | 1275 // ER_SERVER_IS_IN_SECURE_AUTH_MODE
        | 1820 // ER_MUST_CHANGE_PASSWORD
        | 1862 // ER_MUST_CHANGE_PASSWORD_LOGIN
        | 3118 // ER_ACCOUNT_HAS_BEEN_LOCKED
        | 3159 // ER_SECURE_TRANSPORT_REQUIRED
        | 3955 // ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK
        => ErrorMeaning::AccessDenied,

        1044 // ER_DBACCESS_DENIED_ERROR
        | 1095 // ER_KILL_DENIED_ERROR
        | 1142 // ER_TABLEACCESS_DENIED_ERROR
        | 1143 // ER_COLUMNACCESS_DENIED_ERROR
        | 1227 // ER_SPECIFIC_ACCESS_DENIED_ERROR
        | 1370 // ER_PROCACCESS_DENIED_ERROR
        | 1410 // ER_CANT_CREATE_USER_WITH_GRANT
        => ErrorMeaning::MissingPrivilege,

        1021 // ER_DISK_FULL (the server waits for space)
        | 1037 // ER_OUTOFMEMORY
        | 1038 // ER_OUT_OF_SORTMEMORY
        | 1040 // ER_CON_COUNT_ERROR
        | 1041 // ER_OUT_OF_RESOURCES
        | 1042 // ER_BAD_HOST_ERROR
        | 1043 // ER_HANDSHAKE_ERROR (a connection cut while it was made)
        | 1053 // ER_SERVER_SHUTDOWN
        | 1077 // ER_NORMAL_SHUTDOWN
        | 1079 // ER_SHUTDOWN_COMPLETE
        | 1080 // ER_FORCING_CLOSE
        | 1129 // ER_HOST_IS_BLOCKED (until FLUSH HOSTS)
        | 1135 // ER_CANT_CREATE_THREAD
        | 1152 // ER_ABORTING_CONNECTION
        | 1158 // ER_NET_READ_ERROR
        | 1159 // ER_NET_READ_INTERRUPTED
        | 1160 // ER_NET_ERROR_ON_WRITE
        | 1161 // ER_NET_WRITE_INTERRUPTED
        | 1184 // ER_NEW_ABORTING_CONNECTION
        | 1189 // ER_SOURCE_NET_READ
        | 1190 // ER_SOURCE_NET_WRITE
        | 1203 // ER_TOO_MANY_USER_CONNECTIONS
        | 1205 // ER_LOCK_WAIT_TIMEOUT
        | 1213 // ER_LOCK_DEADLOCK
        | 1226 // ER_USER_LIMIT_REACHED
        | 1290 // ER_OPTION_PREVENTS_STATEMENT (read-only during a failover)
        | 1317 // ER_QUERY_INTERRUPTED
        | 1836 // ER_READ_ONLY_MODE
        | 1927 // MariaDB's ER_CONNECTION_KILLED
        | 2013 // CR_SERVER_LOST, as proxies pass it on
        | 3024 // ER_QUERY_TIMEOUT
        | 3032 // ER_SERVER_OFFLINE_MODE
        | 3168 // ER_SERVER_ISNT_AVAILABLE
        | 3169 // ER_SESSION_WAS_KILLED
        | 4031 // ER_CLIENT_INTERACTION_TIMEOUT
        => ErrorMeaning::Transient,

        _ => ErrorMeaning::Other,
    }
}
