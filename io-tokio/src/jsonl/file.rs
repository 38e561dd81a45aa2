//! JSON lines in a file that holds every transaction once.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use capstan_core::{
    deliver::{Ack, BlockingBatch, BlockingSink, Expected, Position, SinkError},
    halt::{Code, Detail, Halt},
};
use serde::{Deserialize, Serialize};

use super::{JsonOptions, gather::Gather};
use crate::{
    checkpoint::{
        decisions,
        lock::{Lock, beside, unusable},
        replace::replace,
    },
    decision::{Decision, Stored},
    fault::fault_point,
    io_failure::{reading, writing},
};

/// The newest format of the record.
const FORMAT: u64 = 1;

/// Appends lines to a file, and keeps the position and the length it covers in one record beside it.
///
/// For each batch: the lines are written and synced, then the record `PATH.position` (position and length
/// together) is replaced as a whole. At open the file is cut to the recorded length. So after a crash at
/// any point the file holds every transaction of the recorded position once, and nothing else: exactly
/// once, for readers that read up to the recorded length. A reader that follows the very end of the file
/// may see lines that a crash takes back and the next run writes again.
///
/// Beside the file lie `PATH.position`, `PATH.lock` (held while this lives, never removed) and, after a
/// decision of a person, `PATH.decisions`.
#[derive(Debug)]
pub struct JsonFile {
    path: PathBuf,
    file: File,
    length: u64,
    position: Option<Position>,
    /// Something may have been written behind `length`.
    dirty: bool,
    /// A batch was taken since it was opened.
    worked: bool,
    gather: Gather,
    /// The record's text, made anew for each batch.
    record: String,
    options: JsonOptions,
    _lock: Lock,
}

#[derive(Serialize, Deserialize)]
struct Head {
    kind: String,
    format: u64,
    length: u64,
    /// The CRC-32 of the length and of the position behind it: by a smaller length the file would be cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc32: Option<u32>,
}

/// What `PATH.position` says.
struct Record {
    length: u64,
    position: Option<Position>,
}

impl JsonFile {
    /// Where the record of the file lies: `PATH.position`.
    #[must_use]
    pub fn record_path(path: &Path) -> PathBuf {
        beside(path, ".position")
    }

    /// Takes the lock, reads the record, cuts the file to the length it covers.
    ///
    /// # Errors
    /// `checkpoint_in_use`; `config_invalid` where the file cannot be written; `target_of_another_source`
    /// where a file with content has no record; `position_read_failed` where the record is damaged or the
    /// file is shorter than it says; `position_format_newer`.
    pub fn open(path: impl Into<PathBuf>, options: JsonOptions) -> Result<Self, Halt> {
        let path = path.into();
        if path.is_dir() {
            return Err(unusable(&path, &std::io::ErrorKind::IsADirectory.into()));
        }
        let foreign = || {
            let why = "has content, but no record of ours beside it";
            Halt::new(Code::TargetOfAnotherSource).with(Detail::Setting(path.display().to_string(), why))
        };
        // What is somebody else's is refused before anything of ours lies beside it.
        if path.metadata().is_ok_and(|found| found.len() > 0) && !Self::record_path(&path).exists() {
            return Err(foreign());
        }
        let lock = Lock::take(&path)?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| unusable(&path, &error))?;
        let name = || path.display().to_string();
        let size = file.metadata().map_err(|error| unusable(&path, &error))?.len();
        let record = read(&path)
            .map_err(|error| Halt::from(&error).with(Detail::Setting(name(), "has a record that is none")))?;
        let record = match record {
            Some(record) => record,
            None if size > 0 => return Err(foreign()),
            None => {
                // Before the first byte: a file with content and no record is somebody else's.
                write(&path, 0, None, options.sync, &mut String::new())
                    .map_err(|error| Halt::from(&error))?;
                Record { length: 0, position: None }
            }
        };
        if size < record.length {
            let why = "is shorter than what was acknowledged";
            return Err(Halt::new(Code::PositionReadFailed).with(Detail::Setting(name(), why)));
        }
        let Record { length, position } = record;
        let gather = Gather::new(options);
        let (dirty, worked, record) = (true, false, String::new());
        let mut this =
            Self { path, file, length, position, dirty, worked, gather, record, options, _lock: lock };
        this.cut().map_err(|error| Halt::from(&error))?;
        Ok(this)
    }

    /// What is stored beside the file, at a glance: nothing is locked, made or cut.
    ///
    /// # Errors
    /// `position_read_failed`, `position_format_newer`, `target_of_another_source`.
    pub fn peek(path: impl AsRef<Path>) -> Result<Option<Position>, Halt> {
        let record = read(path.as_ref()).map_err(|error| Halt::from(&error))?;
        Ok(record.and_then(|record| record.position))
    }

    /// Bytes of the file that the position covers.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Cuts off what the position does not cover.
    fn cut(&mut self) -> Result<(), SinkError> {
        self.file
            .set_len(self.length)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.length)))
            .map_err(|error| writing("truncate", error))?;
        self.dirty = false;
        Ok(())
    }

    /// Whether `path` still is the file that is written to, as long as what was acknowledged: a file that was moved,
    /// removed or emptied by somebody else must not be written to as if nothing had happened.
    fn is_there(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        let found = match self.path.metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(same_file(&ours, &found) && ours.len() >= self.length)
    }

    fn reread(&mut self) -> Result<(), SinkError> {
        if !self.is_there().map_err(|error| reading("file", error))? {
            return Err(SinkError::halt(Code::PositionReadFailed, "file"));
        }
        let record = read(&self.path)?;
        let Some(Record { length, position }) = record else {
            return Err(SinkError::halt(Code::PositionReadFailed, "record"));
        };
        if (length, &position) != (self.length, &self.position) {
            (self.length, self.position) = (length, position);
            self.dirty = true;
        }
        if self.dirty { self.cut() } else { Ok(()) }
    }

    /// Appends what was gathered and moves the record over it. Where it fails, what was written behind
    /// the record is cut off before the next attempt.
    fn append(&mut self, position: &Position) -> Result<(), SinkError> {
        self.dirty = true;
        let length = self.gather.write_to(&mut self.file).map_err(|error| writing("append", error))?;
        if self.options.sync && length > 0 {
            self.file.sync_data().map_err(|error| writing("append", error))?;
        }
        fault_point!("data_synced");
        write(&self.path, self.length + length, Some(position), self.options.sync, &mut self.record)?;
        fault_point!("after_commit");
        self.length += length;
        self.position = Some(position.clone());
        self.dirty = false;
        Ok(())
    }
}

#[cfg(unix)]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same_file(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len()
}

impl BlockingSink for JsonFile {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.reread()?;
        Ok(self.position.clone())
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        self.reread()?;
        batch.expected().check(self.position.as_ref())?;
        self.gather.take(&mut batch)?;
        let ack = batch.finish()?;
        self.gather.progress(ack.position(), false);
        self.append(ack.position())?;
        self.worked = true;
        Ok(ack)
    }
}

impl Stored for JsonFile {
    fn stored(&mut self) -> Result<Option<Position>, SinkError> {
        self.position()
    }

    fn decide(
        &mut self,
        expected: &Expected,
        position: &Position,
        decision: &Decision,
    ) -> Result<(), SinkError> {
        self.reread()?;
        expected.check(self.position.as_ref())?;
        decisions::record(&self.path, decision, expected.position(), position)?;
        write(&self.path, self.length, Some(position), true, &mut self.record)?;
        self.position = Some(position.clone());
        Ok(())
    }
}

impl Drop for JsonFile {
    /// The last line is the whole position.
    fn drop(&mut self) {
        self.gather.clear();
        let Some(position) = self.position.clone() else { return };
        // Another owner's file is left as it is, and one that is no longer there.
        let ours = self.worked
            && self.is_there().unwrap_or(false)
            && matches!(
                read(&self.path),
                Ok(Some(record)) if record.length == self.length && record.position.as_ref() == Some(&position)
            );
        if ours {
            self.gather.progress(&position, true);
            // Nobody is left to be told of a failure, and no line depends on this one.
            let _ = self.cut().and_then(|()| self.append(&position));
        }
    }
}

fn read(path: &Path) -> Result<Option<Record>, SinkError> {
    let text = match std::fs::read_to_string(JsonFile::record_path(path)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(reading("record", error)),
    };
    let damaged = || SinkError::halt(Code::PositionReadFailed, "record");
    let (head, rest) = text.split_once('\n').ok_or_else(damaged)?;
    let head: Head = serde_json::from_str(head).map_err(|_| damaged())?;
    if head.kind != "jsonl" {
        return Err(SinkError::halt(Code::TargetOfAnotherSource, "record"));
    }
    if head.format > FORMAT {
        return Err(SinkError::halt(Code::PositionFormatNewer, "record"));
    }
    let rest = rest.trim_end();
    if head.crc32.is_some_and(|sum| sum != sum_of(head.length, rest)) {
        return Err(damaged());
    }
    let position = match rest {
        "" => None,
        text => Some(Position::decode(text)?),
    };
    Ok(Some(Record { length: head.length, position }))
}

/// `text` is a buffer that is used again.
fn write(
    path: &Path,
    length: u64,
    position: Option<&Position>,
    sync: bool,
    text: &mut String,
) -> Result<(), SinkError> {
    text.clear();
    if let Some(position) = position {
        position.write(text);
    }
    let crc32 = Some(sum_of(length, text));
    let head = Head { kind: "jsonl".to_owned(), format: FORMAT, length, crc32 };
    let mut head =
        serde_json::to_string(&head).map_err(|_| SinkError::halt(Code::PositionWriteFailed, "record"))?;
    head.push('\n');
    if position.is_some() {
        text.push('\n');
    }
    text.insert_str(0, &head);
    replace(&JsonFile::record_path(path), text.as_bytes(), sync)
        .map_err(|error| writing("record", error).or_code(Code::PositionWriteFailed))
}

fn sum_of(length: u64, position: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_be_bytes());
    hasher.update(position.as_bytes());
    hasher.finalize()
}
