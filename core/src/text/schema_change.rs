//! Schema changes: their parts and their names.

use alloc::string::String;

use crate::sql::{DdlKind, RowsEffect};
use crate::value::json::escape;

/// What a schema change says, whoever holds it.
#[derive(Clone, Copy)]
pub struct SchemaChangeText<'a> {
    /// What it does.
    pub kind: DdlKind,
    /// The tables it touches, `(schema, table)`; a whole schema has an empty table name. Empty: it may
    /// touch every captured table.
    pub tables: &'a [(String, String)],
    /// What happens to the rows that are already there.
    pub rows: RowsEffect,
    /// The statement in UTF-8.
    pub statement: &'a str,
}

impl core::fmt::Debug for SchemaChangeText<'_> {
    // Rule 1: no DDL text.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SchemaChangeText({})", kind_name(self.kind))
    }
}

impl SchemaChangeText<'_> {
    /// Appends `,"change":…,"tables":[…],"rows":…,"statement":…`.
    pub(super) fn write(&self, out: &mut String) {
        out.push_str(",\"change\":\"");
        out.push_str(kind_name(self.kind));
        out.push_str("\",\"tables\":[");
        for (at, (schema, table)) in self.tables.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str("{\"schema\":");
            escape::quote(out, schema);
            out.push_str(",\"table\":");
            if table.is_empty() {
                out.push_str("null")
            } else {
                escape::quote(out, table)
            }
            out.push('}');
        }
        out.push_str("],\"rows\":\"");
        out.push_str(rows_effect_name(self.rows));
        out.push_str("\",\"statement\":");
        escape::quote(out, self.statement);
    }
}

/// The word for what a statement does to rows that are already there.
#[must_use]
pub const fn rows_effect_name(rows: RowsEffect) -> &'static str {
    match rows {
        RowsEffect::Unchanged => "unchanged",
        RowsEffect::ChangedWithoutRowEvents => "changed_without_row_events",
        RowsEffect::Unknown => "unknown",
    }
}

/// The word for a kind of schema change.
#[must_use]
pub const fn kind_name(kind: DdlKind) -> &'static str {
    match kind {
        DdlKind::CreateTable => "create_table",
        DdlKind::CreateTableLike => "create_table_like",
        DdlKind::CreateTableSelect => "create_table_select",
        DdlKind::AlterTable => "alter_table",
        DdlKind::DropTable => "drop_table",
        DdlKind::RenameTable => "rename_table",
        DdlKind::TruncateTable => "truncate_table",
        DdlKind::ImportTable => "import_table",
        DdlKind::CreateIndex => "create_index",
        DdlKind::DropIndex => "drop_index",
        DdlKind::CreateView => "create_view",
        DdlKind::AlterView => "alter_view",
        DdlKind::DropView => "drop_view",
        DdlKind::CreateDatabase => "create_database",
        DdlKind::AlterDatabase => "alter_database",
        DdlKind::DropDatabase => "drop_database",
        DdlKind::CreateTrigger => "create_trigger",
        DdlKind::DropTrigger => "drop_trigger",
        DdlKind::CreateProcedure => "create_procedure",
        DdlKind::AlterProcedure => "alter_procedure",
        DdlKind::DropProcedure => "drop_procedure",
        DdlKind::CreateFunction => "create_function",
        DdlKind::AlterFunction => "alter_function",
        DdlKind::DropFunction => "drop_function",
        DdlKind::CreateLibrary => "create_library",
        DdlKind::AlterLibrary => "alter_library",
        DdlKind::DropLibrary => "drop_library",
        DdlKind::CreateEvent => "create_event",
        DdlKind::AlterEvent => "alter_event",
        DdlKind::DropEvent => "drop_event",
        DdlKind::CreateUser => "create_user",
        DdlKind::AlterUser => "alter_user",
        DdlKind::DropUser => "drop_user",
        DdlKind::RenameUser => "rename_user",
        DdlKind::CreateRole => "create_role",
        DdlKind::DropRole => "drop_role",
        DdlKind::Grant => "grant",
        DdlKind::Revoke => "revoke",
        DdlKind::SetPassword => "set_password",
        DdlKind::SetDefaultRole => "set_default_role",
        DdlKind::CreateServer => "create_server",
        DdlKind::AlterServer => "alter_server",
        DdlKind::DropServer => "drop_server",
        DdlKind::CreateTablespace => "create_tablespace",
        DdlKind::AlterTablespace => "alter_tablespace",
        DdlKind::DropTablespace => "drop_tablespace",
        DdlKind::CreateLogfileGroup => "create_logfile_group",
        DdlKind::AlterLogfileGroup => "alter_logfile_group",
        DdlKind::DropLogfileGroup => "drop_logfile_group",
        DdlKind::CreateResourceGroup => "create_resource_group",
        DdlKind::AlterResourceGroup => "alter_resource_group",
        DdlKind::DropResourceGroup => "drop_resource_group",
        DdlKind::CreateSpatialReferenceSystem => "create_spatial_reference_system",
        DdlKind::DropSpatialReferenceSystem => "drop_spatial_reference_system",
        DdlKind::AnalyzeTable => "analyze_table",
        DdlKind::OptimizeTable => "optimize_table",
        DdlKind::RepairTable => "repair_table",
        DdlKind::Flush => "flush",
        DdlKind::InstallPlugin => "install_plugin",
        DdlKind::UninstallPlugin => "uninstall_plugin",
        DdlKind::InstallComponent => "install_component",
        DdlKind::UninstallComponent => "uninstall_component",
        DdlKind::AlterInstance => "alter_instance",
        DdlKind::StatementLogged => "statement_logged",
        DdlKind::Unknown => "unknown",
    }
}
