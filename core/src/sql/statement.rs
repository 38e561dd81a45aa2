//! What a statement is: the result types of [`super::classify`].

use alloc::string::String;
use alloc::vec::Vec;

use super::effect::{SchemaEffect, Unfollowed};

/// What the text of a QUERY event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `BEGIN`, `START TRANSACTION`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK` of the whole transaction.
    Rollback,
    /// `SAVEPOINT name`; the names of savepoints are given in lower case, as they compare so.
    Savepoint(String),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackToSavepoint(String),
    /// `RELEASE SAVEPOINT name`.
    ReleaseSavepoint(String),
    /// `XA START` or `XA BEGIN`.
    XaStart(Xid),
    /// `XA END`.
    XaEnd(Xid),
    /// `XA PREPARE` as text; servers since 5.7 log it as an event of its own.
    XaPrepare(Xid),
    /// `XA COMMIT`; `one_phase` if it says `ONE PHASE`.
    XaCommit {
        /// The branch.
        xid: Xid,
        /// Whether it says `ONE PHASE`.
        one_phase: bool,
    },
    /// `XA ROLLBACK`.
    XaRollback {
        /// The branch.
        xid: Xid,
    },
    /// A statement that commits by itself, and every text that is not understood
    /// ([`DdlKind::Unknown`]).
    Ddl(Ddl),
    /// A change logged as a statement: its rows are not in the log.
    Dml(Dml),
}

/// An XA transaction's identifier. Its `Debug` shows no part of it (Rule 1).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid {
    /// The format id; 1 unless said.
    pub format_id: u64,
    /// The global part, at most 64 bytes.
    pub gtrid: Vec<u8>,
    /// The branch qualifier, at most 64 bytes.
    pub bqual: Vec<u8>,
}

impl core::fmt::Debug for Xid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Xid(..)")
    }
}

/// A DDL statement: its kind and all that its text can say about what it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ddl {
    /// What it is.
    pub kind: DdlKind,
    /// The tables it names.
    pub tables: Tables,
    /// The databases it creates, alters or drops whole.
    pub schemas: Vec<String>,
    /// What it does to rows that are there already.
    pub rows: RowsEffect,
    /// Whether it is about temporary tables only: those are never captured ones.
    pub temporary: bool,
    /// Whether it is the CREATE inside the group of a `CREATE TABLE … SELECT` (it ends in
    /// `START TRANSACTION`): it ends no group, and the rows follow as row events.
    pub create_select_in_group: bool,
    /// What it does to tables, columns and rows, where all of it is certain.
    pub effect: SchemaEffect,
}

impl Ddl {
    /// The default for text that is not understood: any table, rows unknown.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            kind: DdlKind::Unknown,
            tables: Tables::Every,
            schemas: Vec::new(),
            rows: RowsEffect::Unknown,
            temporary: false,
            create_select_in_group: false,
            effect: SchemaEffect::Unfollowed(Unfollowed::NotUnderstood),
        }
    }
}

/// Which tables a statement touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tables {
    /// These, in the order of the text, and no other but those of [`Ddl::schemas`].
    Named(Vec<AffectedTable>),
    /// It cannot be told: every table must be taken as touched.
    Every,
}

/// A table (or view) and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectedTable {
    /// Its database: as written, or the event's default.
    pub schema: String,
    /// Its name, unquoted, in UTF-8.
    pub table: String,
    /// What the statement does to it.
    pub role: TableRole,
}

/// What a statement does to a table it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableRole {
    /// It comes to be.
    Created,
    /// Its definition or contents change in place.
    Altered,
    /// It ceases to be.
    Dropped,
    /// It is emptied.
    Truncated,
    /// It leaves this name.
    RenamedFrom,
    /// It arrives at this name: the new name of the nearest [`TableRole::RenamedFrom`] before it.
    RenamedTo,
    /// It gives up its rows for those of a partition (`EXCHANGE PARTITION … WITH TABLE`).
    Exchanged,
    /// Only its definition is read (`CREATE TABLE … LIKE`).
    LikeSource,
}

impl TableRole {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Altered => "altered",
            Self::Dropped => "dropped",
            Self::Truncated => "truncated",
            Self::RenamedFrom => "renamed_from",
            Self::RenamedTo => "renamed_to",
            Self::Exchanged => "exchanged",
            Self::LikeSource => "like_source",
        }
    }
}

/// What a DDL does to the rows already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowsEffect {
    /// Each row keeps the values of the columns it had; a renamed column is the same column.
    Unchanged,
    /// Rows or values come, go or change, and no row event says so.
    ChangedWithoutRowEvents,
    /// The text alone does not tell.
    Unknown,
}

impl RowsEffect {
    /// Its name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::ChangedWithoutRowEvents => "changed_without_row_events",
            Self::Unknown => "unknown",
        }
    }
}

/// The kinds of DDL, by MySQL's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the statement it is named after")]
pub enum DdlKind {
    CreateTable,
    CreateTableLike,
    CreateTableSelect,
    AlterTable,
    DropTable,
    RenameTable,
    TruncateTable,
    ImportTable,
    CreateIndex,
    DropIndex,
    CreateView,
    AlterView,
    DropView,
    CreateDatabase,
    AlterDatabase,
    DropDatabase,
    CreateTrigger,
    DropTrigger,
    CreateProcedure,
    AlterProcedure,
    DropProcedure,
    CreateFunction,
    AlterFunction,
    DropFunction,
    CreateLibrary,
    AlterLibrary,
    DropLibrary,
    CreateEvent,
    AlterEvent,
    DropEvent,
    CreateUser,
    AlterUser,
    DropUser,
    RenameUser,
    CreateRole,
    DropRole,
    Grant,
    Revoke,
    SetPassword,
    SetDefaultRole,
    CreateServer,
    AlterServer,
    DropServer,
    CreateTablespace,
    AlterTablespace,
    DropTablespace,
    CreateLogfileGroup,
    AlterLogfileGroup,
    DropLogfileGroup,
    CreateResourceGroup,
    AlterResourceGroup,
    DropResourceGroup,
    CreateSpatialReferenceSystem,
    DropSpatialReferenceSystem,
    AnalyzeTable,
    OptimizeTable,
    RepairTable,
    Flush,
    InstallPlugin,
    UninstallPlugin,
    InstallComponent,
    UninstallComponent,
    AlterInstance,
    /// No schema change: a statement that changed rows, which are not in the log. Only where files are read.
    StatementLogged,
    /// Not understood.
    Unknown,
}

impl DdlKind {
    /// Its name in output: the statement's words in lower case with `_` between.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateTable => "create_table",
            Self::CreateTableLike => "create_table_like",
            Self::CreateTableSelect => "create_table_select",
            Self::AlterTable => "alter_table",
            Self::DropTable => "drop_table",
            Self::RenameTable => "rename_table",
            Self::TruncateTable => "truncate_table",
            Self::ImportTable => "import_table",
            Self::CreateIndex => "create_index",
            Self::DropIndex => "drop_index",
            Self::CreateView => "create_view",
            Self::AlterView => "alter_view",
            Self::DropView => "drop_view",
            Self::CreateDatabase => "create_database",
            Self::AlterDatabase => "alter_database",
            Self::DropDatabase => "drop_database",
            Self::CreateTrigger => "create_trigger",
            Self::DropTrigger => "drop_trigger",
            Self::CreateProcedure => "create_procedure",
            Self::AlterProcedure => "alter_procedure",
            Self::DropProcedure => "drop_procedure",
            Self::CreateFunction => "create_function",
            Self::AlterFunction => "alter_function",
            Self::DropFunction => "drop_function",
            Self::CreateLibrary => "create_library",
            Self::AlterLibrary => "alter_library",
            Self::DropLibrary => "drop_library",
            Self::CreateEvent => "create_event",
            Self::AlterEvent => "alter_event",
            Self::DropEvent => "drop_event",
            Self::CreateUser => "create_user",
            Self::AlterUser => "alter_user",
            Self::DropUser => "drop_user",
            Self::RenameUser => "rename_user",
            Self::CreateRole => "create_role",
            Self::DropRole => "drop_role",
            Self::Grant => "grant",
            Self::Revoke => "revoke",
            Self::SetPassword => "set_password",
            Self::SetDefaultRole => "set_default_role",
            Self::CreateServer => "create_server",
            Self::AlterServer => "alter_server",
            Self::DropServer => "drop_server",
            Self::CreateTablespace => "create_tablespace",
            Self::AlterTablespace => "alter_tablespace",
            Self::DropTablespace => "drop_tablespace",
            Self::CreateLogfileGroup => "create_logfile_group",
            Self::AlterLogfileGroup => "alter_logfile_group",
            Self::DropLogfileGroup => "drop_logfile_group",
            Self::CreateResourceGroup => "create_resource_group",
            Self::AlterResourceGroup => "alter_resource_group",
            Self::DropResourceGroup => "drop_resource_group",
            Self::CreateSpatialReferenceSystem => "create_spatial_reference_system",
            Self::DropSpatialReferenceSystem => "drop_spatial_reference_system",
            Self::AnalyzeTable => "analyze_table",
            Self::OptimizeTable => "optimize_table",
            Self::RepairTable => "repair_table",
            Self::Flush => "flush",
            Self::InstallPlugin => "install_plugin",
            Self::UninstallPlugin => "uninstall_plugin",
            Self::InstallComponent => "install_component",
            Self::UninstallComponent => "uninstall_component",
            Self::AlterInstance => "alter_instance",
            Self::StatementLogged => "statement_logged",
            Self::Unknown => "unknown",
        }
    }
}

/// A change logged as a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dml {
    /// Its first word.
    pub verb: DmlVerb,
    /// The table it names first as its target, where that is plain. A trigger or a second table may
    /// be written all the same: only the event's updated-database list bounds that.
    pub target: Option<TableName>,
}

/// The first word of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the word it is named after")]
pub enum DmlVerb {
    Insert,
    Replace,
    Update,
    Delete,
    Load,
    With,
    Select,
    Table,
    Values,
    Call,
    Do,
    Set,
}

/// A table's full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// Its database: as written, or the event's default.
    pub schema: String,
    /// Its name, unquoted, in UTF-8.
    pub table: String,
}

/// Statement-logged changes known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedException {
    /// pt-table-checksum writes `percona.checksums` as statements on purpose.
    PtTableChecksum,
}
