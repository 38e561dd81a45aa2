//! The status variables of a QUERY event: the session's settings that bear on the statement.

use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

use super::{DecodeError, Hidden};
use crate::wire::Reader;

/// The status variables of a statement (`Query_event_status_vars`); `None` is "not written".
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StatusVariables {
    /// The session's options that are logged: see [`flags2`].
    pub flags2: Option<u32>,
    /// The session's `sql_mode`: see [`sql_mode`].
    pub sql_mode: Option<u64>,
    /// Always `std`.
    pub catalog: Option<Bytes>,
    /// `auto_increment_increment` and `auto_increment_offset`.
    pub auto_increment: Option<(u16, u16)>,
    /// The character sets of the session, as numbers of collations.
    pub charset: Option<SessionCharset>,
    /// The session's `time_zone`, as text.
    pub time_zone: Option<Bytes>,
    /// The session's `lc_time_names`, as a number.
    pub lc_time_names: Option<u16>,
    /// The collation of the default database, as a number.
    pub charset_database: Option<u16>,
    /// The tables a multi-table UPDATE writes, as bits.
    pub table_map_for_update: Option<u64>,
    /// Relay logs of a source before 5.0 only: the original length of the event.
    pub master_data_written: Option<u32>,
    /// The account that ran the statement, where CURRENT_USER matters: user and host.
    pub invoker: Option<(Bytes, Bytes)>,
    /// The databases the statement wrote to, also through triggers and functions. `None` says
    /// nothing about them.
    pub updated_databases: Option<UpdatedDatabases>,
    /// The microseconds of the event's timestamp.
    pub microseconds: Option<u32>,
    /// The session's `explicit_defaults_for_timestamp`.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// The number under which the data dictionary commits the DDL.
    pub ddl_xid: Option<u64>,
    /// The session's `default_collation_for_utf8mb4`, as a number.
    pub default_collation_for_utf8mb4: Option<u16>,
    /// The session's `sql_require_primary_key`.
    pub sql_require_primary_key: Option<u8>,
    /// The session's `default_table_encryption`.
    pub default_table_encryption: Option<u8>,
    /// Whether the statement's cascades fire triggers (after 9.7).
    pub enable_cascade_triggers: Option<u8>,
}

/// `character_set_client`, `collation_connection` and `collation_server` of a session, each as the
/// number of a collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCharset {
    /// What the statement's text is in.
    pub client: u16,
    /// What its literals are in.
    pub connection: u16,
    /// The server's default.
    pub server: u16,
}

/// The databases a statement wrote to.
#[derive(Clone, PartialEq, Eq)]
pub enum UpdatedDatabases {
    /// These, 1 to 16.
    Names(Vec<Bytes>),
    /// More than 16 (`OVER_MAX_DBS_IN_EVENT_MTS`): any.
    TooMany,
}

impl fmt::Debug for UpdatedDatabases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Names(names) => write!(f, "{} databases", names.len()),
            Self::TooMany => f.write_str("too many databases"),
        }
    }
}

/// Bits of [`StatusVariables::flags2`] (`OPTIONS_WRITTEN_TO_BIN_LOG`).
pub mod flags2 {
    /// `sql_auto_is_null`.
    pub const AUTO_IS_NULL: u32 = 0x0000_4000;
    /// `autocommit` is off.
    pub const NOT_AUTOCOMMIT: u32 = 0x0008_0000;
    /// `foreign_key_checks` is off.
    pub const NO_FOREIGN_KEY_CHECKS: u32 = 0x0400_0000;
    /// `unique_checks` is off.
    pub const RELAXED_UNIQUE_CHECKS: u32 = 0x0800_0000;
}

/// Bits of [`StatusVariables::sql_mode`] that change how a statement is read.
pub mod sql_mode {
    /// REAL is FLOAT.
    pub const REAL_AS_FLOAT: u64 = 0x1;
    /// `||` concatenates.
    pub const PIPES_AS_CONCAT: u64 = 0x2;
    /// Double quotes enclose names.
    pub const ANSI_QUOTES: u64 = 0x4;
    /// Blanks between a function and its parenthesis are allowed.
    pub const IGNORE_SPACE: u64 = 0x8;
    /// A backslash in a string is a backslash.
    pub const NO_BACKSLASH_ESCAPES: u64 = 0x10_0000;
    /// What does not fit a transactional table is an error, and not bent.
    pub const STRICT_TRANS_TABLES: u64 = 0x20_0000;
    /// What does not fit any table is an error.
    pub const STRICT_ALL_TABLES: u64 = 0x40_0000;
    /// A date with a month or day of zero is one that does not fit.
    pub const NO_ZERO_IN_DATE: u64 = 0x80_0000;
    /// Nor does a date of zeros.
    pub const NO_ZERO_DATE: u64 = 0x100_0000;
    /// A day that its month has not fits.
    pub const ALLOW_INVALID_DATES: u64 = 0x200_0000;
}

/// The codes (`Query_event_status_vars`).
mod code {
    pub const FLAGS2: u8 = 0;
    pub const SQL_MODE: u8 = 1;
    pub const CATALOG: u8 = 2;
    pub const AUTO_INCREMENT: u8 = 3;
    pub const CHARSET: u8 = 4;
    pub const TIME_ZONE: u8 = 5;
    pub const CATALOG_NZ: u8 = 6;
    pub const LC_TIME_NAMES: u8 = 7;
    pub const CHARSET_DATABASE: u8 = 8;
    pub const TABLE_MAP_FOR_UPDATE: u8 = 9;
    pub const MASTER_DATA_WRITTEN: u8 = 10;
    pub const INVOKER: u8 = 11;
    pub const UPDATED_DB_NAMES: u8 = 12;
    pub const MICROSECONDS: u8 = 13;
    // 14 and 15 were COMMIT_TS and COMMIT_TS2 in versions of 5.7 before its release: their widths
    // changed there, so they are as unknown as any other.
    pub const EXPLICIT_DEFAULTS_FOR_TIMESTAMP: u8 = 16;
    pub const DDL_LOGGED_WITH_XID: u8 = 17;
    pub const DEFAULT_COLLATION_FOR_UTF8MB4: u8 = 18;
    pub const SQL_REQUIRE_PRIMARY_KEY: u8 = 19;
    pub const DEFAULT_TABLE_ENCRYPTION: u8 = 20;
    pub const ENABLE_CASCADE_TRIGGERS: u8 = 21;
}

/// The most databases that are named (`MAX_DBS_IN_EVENT_MTS`).
const DATABASES_MAX: u8 = 16;
/// Their number when they are more (`OVER_MAX_DBS_IN_EVENT_MTS`).
const DATABASES_OVER_MAX: u8 = 254;

impl StatusVariables {
    /// Reads the status variables, which are `bytes` of `body`. An unknown one is an error, because
    /// its width is unknown and so where the next one starts.
    pub(super) fn decode(body: &Bytes, bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut status = Self::default();
        while !reader.is_empty() {
            status.next(body, &mut reader)?;
        }
        Ok(status)
    }

    fn next(&mut self, body: &Bytes, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        match reader.u8()? {
            code::FLAGS2 => self.flags2 = Some(reader.u32()?),
            code::SQL_MODE => self.sql_mode = Some(reader.u64()?),
            code::CATALOG => {
                let catalog = short_text(body, reader)?;
                // 5.0.0 to 5.0.3 wrote a NUL behind a catalog that is not empty.
                if !catalog.is_empty() {
                    reader.skip(1)?;
                }
                self.catalog = Some(catalog);
            }
            code::AUTO_INCREMENT => self.auto_increment = Some((reader.u16()?, reader.u16()?)),
            code::CHARSET => {
                let (client, connection, server) = (reader.u16()?, reader.u16()?, reader.u16()?);
                self.charset = Some(SessionCharset { client, connection, server });
            }
            code::TIME_ZONE => self.time_zone = Some(short_text(body, reader)?),
            code::CATALOG_NZ => self.catalog = Some(short_text(body, reader)?),
            code::LC_TIME_NAMES => self.lc_time_names = Some(reader.u16()?),
            code::CHARSET_DATABASE => self.charset_database = Some(reader.u16()?),
            code::TABLE_MAP_FOR_UPDATE => self.table_map_for_update = Some(reader.u64()?),
            code::MASTER_DATA_WRITTEN => self.master_data_written = Some(reader.u32()?),
            code::INVOKER => self.invoker = Some((short_text(body, reader)?, short_text(body, reader)?)),
            code::UPDATED_DB_NAMES => self.updated_databases = Some(updated_databases(body, reader)?),
            code::MICROSECONDS => self.microseconds = Some(reader.u24()?),
            code::EXPLICIT_DEFAULTS_FOR_TIMESTAMP => {
                self.explicit_defaults_for_timestamp = Some(reader.u8()? != 0);
            }
            code::DDL_LOGGED_WITH_XID => self.ddl_xid = Some(reader.u64()?),
            code::DEFAULT_COLLATION_FOR_UTF8MB4 => self.default_collation_for_utf8mb4 = Some(reader.u16()?),
            code::SQL_REQUIRE_PRIMARY_KEY => self.sql_require_primary_key = Some(reader.u8()?),
            code::DEFAULT_TABLE_ENCRYPTION => self.default_table_encryption = Some(reader.u8()?),
            code::ENABLE_CASCADE_TRIGGERS => self.enable_cascade_triggers = Some(reader.u8()?),
            unknown => return Err(DecodeError::UnknownStatusVariable(unknown)),
        }
        Ok(())
    }
}

fn short_text(body: &Bytes, reader: &mut Reader<'_>) -> Result<Bytes, DecodeError> {
    let length = usize::from(reader.u8()?);
    Ok(body.slice_ref(reader.take(length)?))
}

fn updated_databases(body: &Bytes, reader: &mut Reader<'_>) -> Result<UpdatedDatabases, DecodeError> {
    match reader.u8()? {
        DATABASES_OVER_MAX => Ok(UpdatedDatabases::TooMany),
        count @ 1..=DATABASES_MAX => {
            let mut names = Vec::new();
            for _ in 0..count {
                names.push(body.slice_ref(reader.nul_terminated()?));
            }
            Ok(UpdatedDatabases::Names(names))
        }
        _ => Err(DecodeError::Field("number of updated databases")),
    }
}

impl fmt::Debug for StatusVariables {
    // Rule 1: numbers only; names and accounts by their length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |text: &Option<Bytes>| text.as_ref().map(|text| text.len());
        f.debug_struct("StatusVariables")
            .field("flags2", &self.flags2)
            .field("sql_mode", &self.sql_mode)
            .field("auto_increment", &self.auto_increment)
            .field("charset", &self.charset)
            .field("time_zone_length", &hidden(&self.time_zone))
            .field("charset_database", &self.charset_database)
            .field("invoker", &self.invoker.as_ref().map(|(user, _)| Hidden(user)))
            .field("updated_databases", &self.updated_databases)
            .field("explicit_defaults_for_timestamp", &self.explicit_defaults_for_timestamp)
            .field("default_table_encryption", &self.default_table_encryption)
            .finish_non_exhaustive()
    }
}
