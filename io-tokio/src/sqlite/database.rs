//! A database with one stored position.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use capstan_core::{
    deliver::{Ack, BlockingBatch, Expected, Position, SinkError},
    halt::{Code, Detail, Halt},
};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior};

use super::failure::{Step, failed, opening};
use crate::{
    checkpoint::lock::{Lock, unusable},
    decision::{Decision, decided_at},
    fault::fault_point,
    source::invalid,
};

/// The newest format of our tables.
const FORMAT: u64 = 1;

/// How long another program's lock is waited for before the batch is tried again later.
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS capstan_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS capstan_position (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS capstan_decisions (
    seq INTEGER PRIMARY KEY,
    decided_at TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT NOT NULL,
    position_before TEXT,
    position_after TEXT NOT NULL
) STRICT;";

/// `PRAGMA synchronous`: how far a commit is on the disk when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Survives a crash of the machine.
    #[default]
    Full,
    /// Under WAL a crash of the machine can lose the newest commits, never one of the process. What was
    /// lost comes again: position and data are lost together.
    Normal,
    /// As [`Synchronous::Normal`], and a crash of the machine can damage the database.
    Off,
}

impl Synchronous {
    const fn word(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
            Self::Off => "OFF",
        }
    }
}

/// An open database of ours.
pub(super) struct Database {
    connection: Connection,
    /// The stored text as last seen and what it says, so that it is read once and compared afterwards.
    seen: Option<(String, Position)>,
    /// Used again for each position.
    text: String,
    _lock: Lock,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({:?})", self.seen.as_ref().map(|(_, position)| position))
    }
}

impl Database {
    /// Opens `path` for a pipeline of `kind`, and makes `tables` of its own.
    pub(super) fn open(
        path: &Path,
        kind: &str,
        tables: &str,
        synchronous: Synchronous,
    ) -> Result<Self, Halt> {
        let name = || path.display().to_string();
        if path.is_dir() {
            return Err(unusable(path, &std::io::ErrorKind::IsADirectory.into()));
        }
        // SQLite keeps its log beside the name it was opened by: of a file with two names there would be two
        // (sqlite.org/howtocorrupt.html, "Multiple links to the same file").
        #[cfg(unix)]
        if path.metadata().is_ok_and(|found| std::os::unix::fs::MetadataExt::nlink(&found) > 1) {
            return Err(invalid(
                &name(),
                "has a second name (a hard link): SQLite would keep two logs of it",
            ));
        }
        // What is somebody else's is refused before anything of ours lies beside it.
        if path.metadata().is_ok_and(|found| found.len() > 0) {
            match look(path, kind) {
                Ok(_) => {}
                // A log that a crash left is not for who may only read.
                Err(Foreign::Sqlite(error)) if !is_no_database(&error) => {}
                Err(why) => return Err(why.halt(path)),
            }
        }
        let lock = Lock::take(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let fault = |error: rusqlite::Error| opening(path, &error);
        // Not as a URI: a path is a path, whatever characters it has.
        let mut connection = Connection::open_with_flags(PathBuf::from(path), flags).map_err(fault)?;
        connection.busy_timeout(BUSY).map_err(fault)?;
        if connection.is_readonly("main").map_err(fault)? {
            return Err(invalid(&name(), "may not be written"));
        }
        // And looked at again before anything is written: a file that is not ours stays as it was.
        check_kind(&connection, kind).map_err(|why| why.halt(path))?;
        connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
            .map_err(fault)?;
        connection.pragma_update(None, "synchronous", synchronous.word()).map_err(fault)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        transaction.execute_batch(TABLES).map_err(fault)?;
        transaction.execute_batch(tables).map_err(fault)?;
        transaction
            .execute(
                "INSERT OR IGNORE INTO capstan_meta VALUES ('kind', ?1), ('format', ?2)",
                (kind, FORMAT.to_string()),
            )
            .map_err(fault)?;
        transaction.commit().map_err(fault)?;
        let mut database = Self { connection, seen: None, text: String::new(), _lock: lock };
        // A damaged or newer position is found now, before anything is dialled.
        database.position().map_err(|error| Halt::from(&error).with(Detail::Setting(name(), "holds it")))?;
        Ok(database)
    }

    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What is stored.
    pub(super) fn position(&mut self) -> Result<Option<Position>, SinkError> {
        let text = stored_text(&self.connection)?;
        Ok(see(&mut self.seen, text)?.cloned())
    }

    /// Begins a batch: nothing but `expected` may be stored.
    pub(super) fn begin(&mut self, expected: &Expected) -> Result<Batch<'_>, SinkError> {
        let Self { connection, seen, text, .. } = self;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| failed(Step::Begin, error))?;
        let stored = stored_text(&transaction)?;
        expected.check(see(seen, stored)?)?;
        Ok(Batch { transaction, seen, text })
    }

    /// Takes a batch: what `write` writes and the position in one transaction.
    pub(super) fn apply<'b>(
        &mut self,
        mut batch: BlockingBatch<'b>,
        write: impl FnOnce(&Connection, &mut BlockingBatch<'b>) -> Result<(), SinkError>,
    ) -> Result<Ack, SinkError> {
        let open = self.begin(batch.expected())?;
        write(&open.transaction, &mut batch)?;
        let ack = batch.finish()?;
        open.commit(ack.position())?;
        Ok(ack)
    }

    /// Moves the position by hand, with what `also` changes.
    pub(super) fn decide(
        &mut self,
        expected: &Expected,
        position: &Position,
        decision: &Decision,
        also: impl FnOnce(&Connection) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let batch = self.begin(expected)?;
        also(&batch.transaction)?;
        batch
            .transaction
            .execute(
                "INSERT INTO capstan_decisions
                     (decided_at, kind, subject, reason, position_before, position_after)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                (
                    decided_at(),
                    &decision.kind,
                    &decision.subject,
                    &decision.reason,
                    expected.position().map(Position::encode),
                    position.encode(),
                ),
            )
            .map_err(|error| failed(Step::Write, error))?;
        batch.commit(position)
    }
}

/// `Stored` for a target whose field is a [`Database`].
macro_rules! stored_in_database {
    ($target:ty, $field:tt) => {
        impl $crate::decision::Stored for $target {
            fn stored(&mut self) -> Result<Option<Position>, SinkError> {
                self.$field.position()
            }

            fn decide(
                &mut self,
                expected: &Expected,
                position: &Position,
                decision: &$crate::decision::Decision,
            ) -> Result<(), SinkError> {
                self.$field.decide(expected, position, decision, |_| Ok(()))
            }
        }
    };
}
pub(super) use stored_in_database;

/// An open transaction. Dropped, it is rolled back.
pub(super) struct Batch<'a> {
    transaction: Transaction<'a>,
    seen: &'a mut Option<(String, Position)>,
    text: &'a mut String,
}

impl Batch<'_> {
    /// Stores the position and commits both.
    pub(super) fn commit(self, position: &Position) -> Result<(), SinkError> {
        let Self { transaction, seen, text } = self;
        text.clear();
        position.write(text);
        transaction
            .prepare_cached(
                "INSERT INTO capstan_position VALUES (1, ?1)
                 ON CONFLICT (id) DO UPDATE SET position = excluded.position",
            )
            .and_then(|mut statement| statement.execute([text.as_str()]))
            .map_err(|error| failed(Step::Write, error))?;
        fault_point!("before_commit");
        transaction.commit().map_err(|error| failed(Step::Commit, error))?;
        fault_point!("after_commit");
        *seen = Some((text.clone(), position.clone()));
        Ok(())
    }
}

/// What is stored in the database of a pipeline of `kind` (`mirror`, `ledger`, `checkpoint`), at a glance: nothing is
/// locked or made, and whoever writes it goes on.
///
/// # Errors
/// `target_of_another_source`, `position_read_failed`, `position_format_newer`; `config_invalid` where it cannot be read.
pub fn peek(path: &Path, kind: &str) -> Result<Option<Position>, Halt> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = look(path, kind).map_err(|why| why.halt(path))?;
    let ours = connection.table_exists(None, "capstan_position").map_err(|error| opening(path, &error))?;
    let text = if ours { stored_text(&connection).map_err(|error| Halt::from(&error))? } else { None };
    text.map(|text| Position::decode(&text).map_err(|error| Halt::from(&SinkError::from(error)))).transpose()
}

fn look(path: &Path, kind: &str) -> Result<Connection, Foreign> {
    let connection = Connection::open_with_flags(PathBuf::from(path), OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(Foreign::Sqlite)?;
    check_kind(&connection, kind).map(|()| connection)
}

fn stored_text(connection: &Connection) -> Result<Option<String>, SinkError> {
    connection
        .prepare_cached("SELECT position FROM capstan_position")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)).optional())
        .map_err(|error| failed(Step::Read, error))
}

/// What the stored text says, reading it only where it is not the text seen last.
fn see(
    seen: &mut Option<(String, Position)>,
    stored: Option<String>,
) -> Result<Option<&Position>, SinkError> {
    if seen.as_ref().map(|(text, _)| text) != stored.as_ref() {
        *seen = match stored {
            Some(text) => {
                let position = Position::decode(&text)?;
                Some((text, position))
            }
            None => None,
        };
    }
    Ok(seen.as_ref().map(|(_, position)| position))
}

/// Why a database is not ours to write to.
enum Foreign {
    Sqlite(rusqlite::Error),
    Kind,
    Newer,
}

impl Foreign {
    fn halt(self, path: &Path) -> Halt {
        let name = path.display().to_string();
        match self {
            Self::Sqlite(error) => opening(path, &error),
            Self::Kind => Halt::new(Code::TargetOfAnotherSource)
                .with(Detail::Setting(name, "holds the tables of another kind of pipeline")),
            Self::Newer => Halt::new(Code::PositionFormatNewer)
                .with(Detail::Setting(name, "was written by a newer version")),
        }
    }
}

fn is_no_database(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase)
}

fn check_kind(connection: &Connection, kind: &str) -> Result<(), Foreign> {
    let count =
        |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(Foreign::Sqlite);
    let ours = count("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'capstan\\_%' ESCAPE '\\'")?;
    if ours == 0 {
        return Ok(());
    }
    if count("SELECT count(*) FROM sqlite_schema WHERE name = 'capstan_meta'")? == 0 {
        return Err(Foreign::Kind);
    }
    let meta = |key: &str| {
        connection
            .query_row("SELECT value FROM capstan_meta WHERE key = ?1", [key], |row| row.get::<_, String>(0))
            .optional()
            .map_err(Foreign::Sqlite)
    };
    if meta("kind")?.as_deref() != Some(kind) {
        return Err(Foreign::Kind);
    }
    match meta("format")?.and_then(|format| format.parse::<u64>().ok()) {
        Some(format) if format <= FORMAT => Ok(()),
        Some(_) | None => Err(Foreign::Newer),
    }
}
