//! Every reason to stop, in one table: code, class, stage, remedy.
//!
//! The table is the contract (its documentation and its tests are generated from it). A code never
//! changes its class with the moment it appears in, so an operator's runbook can be keyed on it.

use alloc::{borrow::ToOwned, boxed::Box, string::String, vec::Vec};
use core::fmt;

use crate::gtid::{Gtid, GtidSet};

/// What kind of trouble a [`Code`] is; decides retry and the exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Settings, start position or a server that is not set up for row-based GTID replication.
    Configuration,
    /// Who we are, or who the server is, could not be established.
    Authentication,
    /// The source cannot be reached; only after the retry budget is spent.
    Transport,
    /// The stream says something that cannot be delivered without loss or guessing.
    Data,
    /// The sink or the position store failed or disagrees.
    Sink,
    /// The initial copy cannot go on.
    Snapshot,
}

impl Class {
    /// Exit status of the command for a halt of this class.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Configuration | Self::Authentication => 3,
            Self::Data | Self::Sink | Self::Snapshot => 4,
            Self::Transport => 5,
        }
    }

    /// Stable lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Authentication => "authentication",
            Self::Transport => "transport",
            Self::Data => "data",
            Self::Sink => "sink",
            Self::Snapshot => "snapshot",
        }
    }
}

/// Where on the way from the server to the sink a halt arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Reading settings and the stored position, before any socket.
    Start,
    /// Dialling and TLS.
    Dial,
    /// Handshake and authentication.
    Authentication,
    /// The tests of the server's settings.
    Gate,
    /// The tests of the stored position against the server's history.
    Resume,
    /// The server's answer to the request for the stream.
    Dump,
    /// Reading events.
    Decode,
    /// Putting transactions together.
    Assemble,
    /// The user's sink.
    Sink,
    /// The stored position.
    Store,
    /// The initial copy.
    Snapshot,
}

impl Stage {
    /// Stable lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Dial => "dial",
            Self::Authentication => "authentication",
            Self::Gate => "gate",
            Self::Resume => "resume",
            Self::Dump => "dump",
            Self::Decode => "decode",
            Self::Assemble => "assemble",
            Self::Sink => "sink",
            Self::Store => "store",
            Self::Snapshot => "snapshot",
        }
    }
}

macro_rules! codes {
    ($( $variant:ident, $code:literal, $class:ident, $stage:ident, $meaning:literal, $remedy:literal; )*) => {
        /// A reason to stop. The string form is public interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $( #[doc = $meaning] $variant, )*
        }

        impl Code {
            /// Every code, in the order of the contract.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The stable name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $code, )* }
            }

            /// Its class.
            #[must_use]
            pub const fn class(self) -> Class {
                match self { $( Self::$variant => Class::$class, )* }
            }

            /// Where it arises.
            #[must_use]
            pub const fn stage(self) -> Stage {
                match self { $( Self::$variant => Stage::$stage, )* }
            }

            /// One sentence: what happened.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => $meaning, )* }
            }

            /// One sentence a person can act on.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $( Self::$variant => $remedy, )* }
            }
        }
    };
}

codes! {
    ConfigInvalid, "config_invalid", Configuration, Start, "A setting is missing, malformed or contradicts another.", "Correct the named setting.";
    UnknownOption, "unknown_option", Configuration, Start, "An option or key is not known.", "Remove it or correct its spelling; `--help` lists what exists.";
    StartPositionRequired, "start_position_required", Configuration, Start, "The target holds no position and no start was given.", "Say where to begin: --start current, --start earliest, or --start GTIDSET.";
    StartPositionConflict, "start_position_conflict", Configuration, Start, "A start was given, but the target already holds a position.", "Drop --start to resume, or add --override to abandon the stored position.";
    CaptureSetChanged, "capture_set_changed", Configuration, Start, "The captured tables differ from those stored with the position.", "Restore the old --tables, or record the change with `capstan position accept-tables`.";
    HistoryIncomplete, "history_incomplete", Configuration, Resume, "What was before this start, or before the table was first seen, is not in the target and will not come: it would be no copy.", "Take an initial snapshot, load a dump and say --seeded-at, copy the named table with --copy-again SCHEMA.TABLE, or accept a partial copy with --partial.";
    TargetOfAnotherSource, "target_of_another_source", Configuration, Start, "The target belongs to another kind of pipeline.", "Choose an empty target or the one that belongs to this pipeline.";
    CheckpointInUse, "checkpoint_in_use", Configuration, Start, "Another live process holds the target.", "Stop the other process, or wait until it has ended.";
    PositionFormatNewer, "position_format_newer", Configuration, Start, "The stored position was written by a newer version.", "Run that version or a newer one.";
    UnsupportedServer, "unsupported_server", Configuration, Gate, "The server is not MySQL 8.0.14 or later.", "Use a supported MySQL server; MariaDB and 5.x speak another dialect of the log.";
    MissingPrivilege, "missing_privilege", Configuration, Gate, "The account lacks a privilege.", "Grant the named privilege to the account.";
    BinlogDisabled, "binlog_disabled", Configuration, Gate, "The server writes no binary log.", "Enable log_bin (on managed services: the parameter that enables binary logging) and restart the server.";
    ReaderEndpoint, "reader_endpoint", Configuration, Gate, "This is a reader endpoint: read-only storage and no binary log.", "Use the writer (cluster) endpoint.";
    GtidModeNotOn, "gtid_mode_not_on", Configuration, Gate, "gtid_mode is not ON.", "Set gtid_mode=ON and enforce_gtid_consistency=ON.";
    BinlogFormatNotRow, "binlog_format_not_row", Configuration, Gate, "binlog_format is not ROW.", "SET PERSIST binlog_format = 'ROW'; then let old sessions end.";
    BinlogRowImageNotFull, "binlog_row_image_not_full", Configuration, Gate, "binlog_row_image is not FULL.", "SET PERSIST binlog_row_image = 'FULL'; then let old sessions end.";
    BinlogRowMetadataNotFull, "binlog_row_metadata_not_full", Configuration, Gate, "binlog_row_metadata is not FULL.", "SET PERSIST binlog_row_metadata = 'FULL';";
    BinlogRowValueOptionsNotEmpty, "binlog_row_value_options_not_empty", Configuration, Gate, "binlog_row_value_options has a value that this version does not know; it knows PARTIAL_JSON, whose updates it makes whole.", "SET PERSIST binlog_row_value_options = '';";
    BinlogFiltered, "binlog_filtered", Configuration, Gate, "binlog-do-db or binlog-ignore-db hides rows and their GTIDs from the log.", "Remove the filter from the server's configuration and restart it.";
    ReplicaUpdatesNotLogged, "replica_updates_not_logged", Configuration, Gate, "The server is a replica that does not log what it applies.", "Set log_replica_updates=ON and restart it, or connect to its source.";
    UnloggedCascades, "unlogged_cascades", Configuration, Gate, "A captured table has a foreign key whose cascades the server does not log.", "Upgrade to 9.6 or later without innodb_native_foreign_keys, remove the cascade, or accept the loss with --allow-unlogged-cascades.";
    SourceBehind, "source_behind", Configuration, Resume, "The server lacks the newest transactions of the stored position.", "Wait until it has caught up, or connect to the server that has them.";
    SourceIdentityMismatch, "source_identity_mismatch", Configuration, Resume, "The stored position holds transactions that this server never had.", "Connect to the source this target belongs to, or start a new target.";
    SourceHistoryChanged, "source_history_changed", Configuration, Resume, "The last processed transaction is another one on this server: its history was reset and has grown again.", "Start a new target from a fresh copy; the stored position means nothing on this history.";
    SourceHistoryUnverified, "source_history_unverified", Configuration, Resume, "The last processed transaction is purged, so the server's history could not be verified, and --strict is set.", "Verify the server by hand and run without --strict, or start a new target.";
    DataGap, "data_gap", Configuration, Resume, "The source's log lacks transactions that were not processed: they are purged, or it lost them.", "Start a new target with a copy (`capstan sync SOURCE TARGET --snapshot`); keep the log longer (binlog_expire_logs_seconds).";
    ServerIdConflict, "server_id_conflict", Configuration, Dump, "Another replica with the same identity took over the stream.", "Stop the other client, or give this one another --server-id and target.";
    ChecksumNegotiationFailed, "checksum_negotiation_failed", Configuration, Dump, "The server refused the checksum that was negotiated.", "Check binlog_checksum (CRC32 or NONE) and proxies between us and the server.";
    DumpRefused, "dump_refused", Configuration, Dump, "The server refused the stream.", "Look the server's error number up; it is shown with this halt.";

    AccessDenied, "access_denied", Authentication, Authentication, "The server refused the account or its password.", "Check user, password and the host the account is allowed from.";
    AuthPluginUnsupported, "auth_plugin_unsupported", Authentication, Authentication, "The account uses an authentication plugin we do not speak.", "Use caching_sha2_password for this account.";
    ServerKeyNotTrusted, "server_key_not_trusted", Authentication, Authentication, "The password would go over an unencrypted link under a key nobody vouches for.", "Use TLS, pin the key with server-public-key=FILE, or accept the risk with allow-public-key-retrieval=true.";
    TlsNotOffered, "tls_not_offered", Authentication, Dial, "TLS is required, but the server does not offer it.", "Enable TLS on the server, or say ssl-mode=disabled for a link you trust.";
    CertificateUntrusted, "certificate_untrusted", Authentication, Dial, "The server's certificate is not signed by a trusted authority.", "Give the authority's certificate with ssl-ca=FILE.";
    CertificateNameMismatch, "certificate_name_mismatch", Authentication, Dial, "The server's certificate does not name the host that was dialled; the one MySQL makes for itself has no name to check.", "Give the server a certificate with its host name, or check the chain alone with ssl-mode=verify-ca and ssl-ca=FILE.";

    SourceUnreachable, "source_unreachable", Transport, Dial, "The source could not be reached within the retry budget.", "Check host, port, firewall and whether the server runs.";
    StreamStalled, "stream_stalled", Transport, Decode, "The link kept falling silent within the retry budget.", "Check the network between us and the server, and proxies that cut idle links.";

    ChecksumMismatch, "checksum_mismatch", Data, Decode, "An event's checksum is wrong: its bytes changed on disk or on the way.", "Check the server's disk and the network; resume after the file or link is repaired.";
    EventMalformed, "event_malformed", Data, Decode, "An event's sizes do not add up.", "Report it with file and offset; resume from another server that has the transaction.";
    EventOutOfPlace, "event_out_of_place", Data, Assemble, "An event stands where the log's grammar does not allow it.", "Report it with file and offset. If a rolled back savepoint of a huge transaction is the cause, raise stream_above.";
    UnknownEventType, "unknown_event_type", Data, Decode, "An event type is not known, and the server does not mark it as ignorable.", "Upgrade; if none helps, report the type with file and offset.";
    Incident, "incident", Data, Decode, "The server says that its log is incomplete here.", "Start a new target with a copy (`capstan sync SOURCE TARGET --snapshot`), which is taken after the incident.";
    TableMapMissing, "table_map_missing", Data, Assemble, "Rows refer to a table that the log has not described.", "Report it with file and offset.";
    TableMapMismatch, "table_map_mismatch", Data, Assemble, "Rows and the description of their table disagree.", "Report it with file and offset.";
    ColumnNamesMissing, "column_names_missing", Data, Assemble, "A table is described without column names.", "SET PERSIST binlog_row_metadata = 'FULL'; then step over the transaction with `capstan position skip --gtid GTID --reason WHY TARGET` and copy the table again: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    UnsupportedColumnType, "unsupported_column_type", Data, Decode, "A column's type is not known.", "Leave the column out with --exclude-columns, or upgrade.";
    ValueMalformed, "value_malformed", Data, Decode, "A value's bytes do not fit its type.", "Report it with file, offset and column; leave the column out to go on.";
    RowEventTooLarge, "row_event_too_large", Data, Decode, "A row event exceeds the limit.", "Raise `row-event-max-bytes` under `[limits]` of the settings file (`--config`; up to 1 GiB), leave the table out, or step over the transaction with `capstan position skip` and copy the table again.";
    PayloadMalformed, "payload_malformed", Data, Decode, "A compressed transaction cannot be inflated.", "Check the server's disk; resume from another server that has the transaction.";
    PayloadCompressionUnsupported, "payload_compression_unsupported", Data, Decode, "A transaction is compressed in a way that is not known.", "SET PERSIST binlog_transaction_compression = OFF; and upgrade.";
    EncryptedBinlog, "encrypted_binlog", Data, Decode, "The file is an encrypted binary log.", "Read it through its server, which decrypts it.";
    PartialRowImage, "partial_row_image", Data, Assemble, "A session wrote partial row images for a captured table.", "Find the session that sets binlog_row_image; step over the transaction with `capstan position skip --gtid GTID --reason WHY TARGET` and copy the table again: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    StatementLoggedChange, "statement_logged_change", Data, Assemble, "A session logged a change of a captured schema as a statement: its rows are not in the log.", "Find the session that sets binlog_format; step over the transaction with `capstan position skip --gtid GTID --reason WHY TARGET` and copy again what it changed: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    AnonymousTransaction, "anonymous_transaction", Data, Assemble, "A transaction has no GTID.", "Set gtid_mode=ON; resume from a position after the last anonymous transaction.";
    XaTransaction, "xa_transaction", Data, Assemble, "A two-phase XA transaction changes captured tables; these are not tracked yet.", "Commit in one phase, or leave the tables out. Or step over the transaction with `capstan position skip --gtid GTID --reason WHY TARGET`, then over its XA COMMIT where that halts, and copy again what it changed: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    XaPrepareNotSeen, "xa_prepare_not_seen", Data, Assemble, "An XA transaction is committed whose rows lie before the start of this stream.", "Start before its prepare; or step over the transaction with `capstan position skip --gtid GTID --reason WHY TARGET` and copy again what it changed: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    XaPreparePurged, "xa_prepare_purged", Data, Assemble, "An XA transaction is committed whose rows are purged.", "Step over the transaction with `capstan position skip --gtid GTID --reason WHY TARGET` and copy again what it changed: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    SchemaChangeNeedsCopy, "schema_change_needs_copy", Data, Assemble, "A schema change alters rows in a way the log does not tell.", "Copy the table again while the rest streams: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`. Where no table is named, step over the transaction with `capstan position skip` and copy again what it may have changed.";
    TableEnteredCapture, "table_entered_capture", Data, Assemble, "A table entered the captured set under a new name; its earlier rows were not captured.", "Copy the table while the rest streams: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    PositionRegressed, "position_regressed", Data, Store, "The stored position has lost transactions that were durable.", "Restore the target, or start a new one; nobody else may write its position.";

    SinkFailed, "sink_failed", Sink, Sink, "The sink failed for good.", "Read the sink's own error; mend its cause and start again.";
    MirrorDiverged, "mirror_diverged", Sink, Sink, "The copy did not hold what the source's change expects.", "Find who else writes to the target; then copy the table again while the rest streams: `capstan sync SOURCE TARGET --copy-again SCHEMA.TABLE`.";
    Fenced, "fenced", Sink, Store, "Another process has taken the target over.", "Nothing, if that was meant; otherwise stop the other process first.";
    PositionReadFailed, "position_read_failed", Sink, Store, "The stored position could not be read.", "Check the target or the checkpoint file.";
    PositionWriteFailed, "position_write_failed", Sink, Store, "The position could not be stored.", "Check the checkpoint's storage.";
    TargetFull, "target_full", Sink, Sink, "The target's storage is full.", "Free space; nothing is lost, start again.";

    SnapshotKeyUnsupported, "snapshot_key_unsupported", Snapshot, Snapshot, "A table is a view, or of a storage engine that has no consistent view.", "Leave it out, or make it an InnoDB table.";
    SnapshotLockUnavailable, "snapshot_lock_unavailable", Snapshot, Snapshot, "The short table lock of the initial copy was not granted.", "Look for long transactions on the table; grant LOCK TABLES.";
    SnapshotBlockedByXa, "snapshot_blocked_by_xa", Snapshot, Snapshot, "A prepared XA transaction holds the table.", "Resolve it: XA RECOVER, then XA COMMIT or XA ROLLBACK.";
    SnapshotCollationDisagrees, "snapshot_collation_disagrees", Snapshot, Snapshot, "The server's order of a string key is not the order of its weights.", "Report the collation; leave the table out.";
    SnapshotSourceChanged, "snapshot_source_changed", Snapshot, Snapshot, "The initial copy and the stream read from different servers.", "Start again once the endpoint names one server.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Every code as a page of documentation (Markdown). `HALTS.md` is this text; a test compares them.
#[must_use]
pub fn table() -> String {
    use fmt::Write as _;
    let mut out = String::from(
        "# Halts\n\n\
         Every reason for which Capstan stops. A halt never moves the position: what was not acknowledged comes again.\n\
         The exit status is that of the command. Generated from the table in the code\n\
         (`cargo run -q -p capstan-core --example halts > HALTS.md`).\n",
    );
    let mut class = None;
    for code in Code::ALL {
        if class != Some(code.class()) {
            class = Some(code.class());
            let _ = write!(
                out,
                "\n## {} (exit {})\n\n| code | stage | what happened | what to do |\n| --- | --- | --- | --- |\n",
                code.class().as_str(),
                code.class().exit_status()
            );
        }
        let _ = writeln!(
            out,
            "| `{code}` | {} | {} | {} |",
            code.stage().as_str(),
            code.meaning(),
            code.remedy()
        );
    }
    out
}

/// A place in the log, as far as it is known. Holds names and numbers only, never values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Binlog file name.
    pub file: Option<String>,
    /// 64-bit offset of the event in that file.
    pub offset: Option<u64>,
    /// The transaction.
    pub gtid: Option<Gtid>,
    /// Schema and table.
    pub table: Option<(String, String)>,
    /// Column name.
    pub column: Option<String>,
}

/// A fact that makes a halt actionable and holds no value of a row, statement or secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// Transactions that are missing.
    Missing(GtidSet),
    /// The privilege that is missing.
    Privilege(&'static str),
    /// A server variable and what it was found to be.
    Variable(&'static str, String),
    /// Tables concerned, as `schema.table`.
    Tables(Vec<String>),
    /// The number of an event type or column type.
    Number(u64),
    /// How many bytes there are at least.
    Bytes(u64),
    /// A setting by its public name, with what is wrong about it.
    Setting(String, &'static str),
    /// A fixed sentence of this program.
    Note(&'static str),
}

/// A terminal stop. Sticky: nothing comes after it.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a halt must reach an operator"]
#[non_exhaustive]
pub struct Halt {
    /// Why.
    pub code: Code,
    /// The server's error number, where it gave one. Never its text: that can quote data.
    pub server_error: Option<u16>,
    /// Where in the log.
    pub place: Option<Box<Place>>,
    /// What exactly.
    pub detail: Option<Box<Detail>>,
}

impl Halt {
    /// A halt by `code` alone.
    pub const fn new(code: Code) -> Self {
        Self { code, server_error: None, place: None, detail: None }
    }

    /// With the server's error number.
    pub const fn with_server_error(mut self, number: u16) -> Self {
        self.server_error = Some(number);
        self
    }

    /// With a place; keeps what an inner layer already knows better.
    pub fn at(mut self, outer: Place) -> Self {
        let mut place = self.place.take().map_or_else(Place::default, |p| *p);
        place.file = place.file.or(outer.file);
        place.offset = place.offset.or(outer.offset);
        place.gtid = place.gtid.or(outer.gtid);
        place.table = place.table.or(outer.table);
        place.column = place.column.or(outer.column);
        self.place = Some(Box::new(place));
        self
    }

    /// With the table it concerns.
    pub fn of_table(self, schema: &str, table: &str) -> Self {
        self.at(Place { table: Some((schema.to_owned(), table.to_owned())), ..Place::default() })
    }

    /// With a detail.
    pub fn with(mut self, detail: Detail) -> Self {
        self.detail = Some(Box::new(detail));
        self
    }

    /// Where it arose.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.code.stage()
    }

    /// What to do.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        self.code.remedy()
    }

    /// Exit status of the command.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        self.code.class().exit_status()
    }
}

impl From<Code> for Halt {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

impl fmt::Debug for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Halt({self})")
    }
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (stage {})", self.code, self.stage().as_str())?;
        if let Some(number) = self.server_error {
            write!(f, ", server error {number}")?;
        }
        if let Some(place) = &self.place {
            write!(f, "{place}")?;
        }
        write!(f, ": {}", self.code.meaning())?;
        if let Some(detail) = &self.detail {
            write!(f, " {detail}.")?;
        }
        write!(f, " What to do: {}", self.remedy())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, ", file {file}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        if let Some(gtid) = &self.gtid {
            write!(f, ", transaction {gtid}")?;
        }
        if let Some((schema, table)) = &self.table {
            write!(f, ", table {schema}.{table}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(set) => write!(f, "Missing: {set}"),
            Self::Privilege(name) => write!(f, "Privilege: {name}"),
            Self::Variable(name, found) => write!(f, "Found: {name} = {found:?}"),
            Self::Tables(tables) => {
                f.write_str("Tables:")?;
                for table in tables {
                    write!(f, " {table}")?;
                }
                Ok(())
            }
            Self::Number(n) => write!(f, "Number: {n}"),
            Self::Bytes(n) => write!(f, "Bytes: {n} at least"),
            Self::Setting(name, wrong) => write!(f, "Setting {name}: {wrong}"),
            Self::Note(text) => f.write_str(text),
        }
    }
}

impl core::error::Error for Halt {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, string::ToString};

    #[test]
    fn codes_are_unique_and_every_one_tells_what_to_do() {
        let mut seen = BTreeSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code} twice");
            assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
            assert!(code.meaning().ends_with('.') && code.remedy().len() > 10, "{code}");
        }
    }

    #[test]
    fn the_page_of_halts_is_the_table() {
        assert!(
            table() == include_str!("../../HALTS.md"),
            "HALTS.md is out of date: cargo run -q -p capstan-core --example halts > HALTS.md"
        );
    }

    #[test]
    fn a_halt_reads_as_a_sentence_with_code_place_and_remedy() {
        let halt = Halt::new(Code::ValueMalformed).of_table("shop", "orders").at(Place {
            file: Some("bin.000007".to_string()),
            offset: Some(5_000_000_000),
            ..Place::default()
        });
        let text = halt.to_string();
        for part in
            ["value_malformed", "stage decode", "bin.000007", "5000000000", "shop.orders", "What to do"]
        {
            assert!(text.contains(part), "{part} not in: {text}");
        }
    }

    #[test]
    fn exit_status_follows_the_class() {
        assert_eq!(Halt::new(Code::BinlogDisabled).exit_status(), 3);
        assert_eq!(Halt::new(Code::ChecksumMismatch).exit_status(), 4);
        assert_eq!(Halt::new(Code::SourceUnreachable).exit_status(), 5);
    }
}
