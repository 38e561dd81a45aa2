//! The types of binlog events, by MySQL's names.

use core::fmt;

macro_rules! event_types {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// The type of an event (`libs/mysql/binlog/event/binlog_event.h`, `Log_event_type`).
        ///
        /// Every match names all of them: what a match forgets, a stream loses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventType {
            $($(#[$doc])* $name,)*
            /// A code MySQL has not given to a type up to 9.7: skipped if the event is flagged
            /// [`flags::IGNORABLE`](super::flags::IGNORABLE), else a reason to stop.
            Unknown(u8),
        }

        impl EventType {
            /// Every known type.
            pub const KNOWN: &'static [Self] = &[$(Self::$name,)*];

            /// The type with this code.
            #[must_use]
            pub const fn from_code(code: u8) -> Self {
                match code {
                    $($code => Self::$name,)*
                    unknown => Self::Unknown(unknown),
                }
            }

            /// The code of the type.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                    Self::Unknown(code) => code,
                }
            }
        }

        impl fmt::Display for EventType {
            /// The name as in the server's enumeration; `unknown event type N` for others.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)*
                    Self::Unknown(code) => write!(f, "unknown event type {code}"),
                }
            }
        }
    };
}

event_types! {
    /// Before 5.0.
    StartV3 = 1, "START_EVENT_V3";
    /// A statement: BEGIN, COMMIT, DDL, statement-logged DML, XA statements.
    Query = 2, "QUERY_EVENT";
    /// The server was shut down.
    Stop = 3, "STOP_EVENT";
    /// The next file; in front of a stream also the current one (artificial).
    Rotate = 4, "ROTATE_EVENT";
    /// `LAST_INSERT_ID` or `INSERT_ID` of the statement that follows.
    Intvar = 5, "INTVAR_EVENT";
    /// Before 5.0.
    Load = 6, "LOAD_EVENT";
    /// Never written.
    Slave = 7, "SLAVE_EVENT";
    /// Before 5.0.
    CreateFile = 8, "CREATE_FILE_EVENT";
    /// More of a file of a statement-logged LOAD DATA.
    AppendBlock = 9, "APPEND_BLOCK_EVENT";
    /// Before 5.0.
    ExecLoad = 10, "EXEC_LOAD_EVENT";
    /// The file of a statement-logged LOAD DATA is not needed after all.
    DeleteFile = 11, "DELETE_FILE_EVENT";
    /// Before 5.0.
    NewLoad = 12, "NEW_LOAD_EVENT";
    /// The seed of `RAND()` for the statement that follows.
    Rand = 13, "RAND_EVENT";
    /// A user variable of the statement that follows.
    UserVar = 14, "USER_VAR_EVENT";
    /// The head of every file: versions, lengths, checksum algorithm.
    FormatDescription = 15, "FORMAT_DESCRIPTION_EVENT";
    /// The commit of a transaction.
    Xid = 16, "XID_EVENT";
    /// The first of the file of a statement-logged LOAD DATA.
    BeginLoadQuery = 17, "BEGIN_LOAD_QUERY_EVENT";
    /// A statement-logged LOAD DATA.
    ExecuteLoadQuery = 18, "EXECUTE_LOAD_QUERY_EVENT";
    /// The table of the row events that follow.
    TableMap = 19, "TABLE_MAP_EVENT";
    /// 5.1 before its release.
    PreGaWriteRows = 20, "PRE_GA_WRITE_ROWS_EVENT";
    /// 5.1 before its release.
    PreGaUpdateRows = 21, "PRE_GA_UPDATE_ROWS_EVENT";
    /// 5.1 before its release.
    PreGaDeleteRows = 22, "PRE_GA_DELETE_ROWS_EVENT";
    /// Inserted rows, 5.1 to 5.6.
    WriteRowsV1 = 23, "WRITE_ROWS_EVENT_V1";
    /// Updated rows, 5.1 to 5.6.
    UpdateRowsV1 = 24, "UPDATE_ROWS_EVENT_V1";
    /// Deleted rows, 5.1 to 5.6.
    DeleteRowsV1 = 25, "DELETE_ROWS_EVENT_V1";
    /// Events were lost at the source.
    Incident = 26, "INCIDENT_EVENT";
    /// Nothing happened; the position as 32 bits.
    Heartbeat = 27, "HEARTBEAT_LOG_EVENT";
    /// Whatever may be passed over.
    Ignorable = 28, "IGNORABLE_LOG_EVENT";
    /// The text of the statement whose rows follow.
    RowsQuery = 29, "ROWS_QUERY_LOG_EVENT";
    /// Inserted rows.
    WriteRows = 30, "WRITE_ROWS_EVENT";
    /// Updated rows.
    UpdateRows = 31, "UPDATE_ROWS_EVENT";
    /// Deleted rows.
    DeleteRows = 32, "DELETE_ROWS_EVENT";
    /// The GTID of the group that follows.
    Gtid = 33, "GTID_LOG_EVENT";
    /// A group without a GTID follows.
    AnonymousGtid = 34, "ANONYMOUS_GTID_LOG_EVENT";
    /// The GTIDs of all earlier files.
    PreviousGtids = 35, "PREVIOUS_GTIDS_LOG_EVENT";
    /// Group Replication: certification data of a transaction.
    TransactionContext = 36, "TRANSACTION_CONTEXT_EVENT";
    /// Group Replication: the members changed.
    ViewChange = 37, "VIEW_CHANGE_EVENT";
    /// An XA transaction was prepared, or committed in one phase.
    XaPrepare = 38, "XA_PREPARE_LOG_EVENT";
    /// Updated rows with JSON columns as differences.
    PartialUpdateRows = 39, "PARTIAL_UPDATE_ROWS_EVENT";
    /// A whole group, compressed.
    TransactionPayload = 40, "TRANSACTION_PAYLOAD_EVENT";
    /// Nothing happened; the position as 64 bits.
    HeartbeatV2 = 41, "HEARTBEAT_LOG_EVENT_V2";
    /// The tagged GTID of the group that follows.
    GtidTagged = 42, "GTID_TAGGED_LOG_EVENT";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_one_type_and_back() {
        for code in 0..=u8::MAX {
            let event_type = EventType::from_code(code);
            assert_eq!(event_type.code(), code);
            assert_eq!(matches!(event_type, EventType::Unknown(_)), code == 0 || code > 42, "{code}");
        }
        assert_eq!(EventType::KNOWN.len(), 42);
    }
}
