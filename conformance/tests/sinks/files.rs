//! The reference sink in files: one that is replaced as a whole, or two that are replaced one after the other.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use capstan_conformance::{
    Applied, Blocking, Stored, Target, Trouble,
    reference::{Disk, Kept, Memory},
};
use capstan_core::deliver::{Ack, BlockingBatch, BlockingSink, FailureClass, Position, SinkError};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A sink in files.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    two: bool,
}

/// One writes at a time; another process never does.
static TURN: Mutex<()> = Mutex::new(());

impl BlockingSink for Files {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.load()?.position()
    }

    fn apply(&mut self, batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let _alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = self.load()?;
        let ack = Memory::open(&disk).apply(batch)?;
        let failed = |why| SinkError::new(FailureClass::Unknown, "write", None).caused_by(why);
        save(&self.folder, &disk, self.two).map_err(failed)?;
        Ok(ack)
    }
}

impl Files {
    fn load(&self) -> Result<Disk, SinkError> {
        let failed = |why| SinkError::new(FailureClass::Permanent, "read", None).caused_by(why);
        load(&self.folder).map_err(failed)
    }
}

fn save(folder: &Path, disk: &Disk, two: bool) -> Result<(), Trouble> {
    let row =
        |kept: Kept| json!([kept.applied.op, kept.applied.table, kept.applied.key, kept.image, kept.was]);
    let rows: Vec<Value> = disk.kept().into_iter().map(row).collect();
    let position = disk.stored().position;
    if two {
        replace(&folder.join("position"), &json!(position))?;
        thread::sleep(Duration::from_millis(3));
        return replace(&folder.join("rows"), &json!(rows));
    }
    replace(&folder.join("all"), &json!([position, rows]))
}

fn replace(path: &Path, what: &Value) -> Result<(), Trouble> {
    let new = path.with_extension("new");
    fs::write(&new, what.to_string())?;
    Ok(fs::rename(new, path)?)
}

fn load(folder: &Path) -> Result<Disk, Trouble> {
    let read = |name: &str| match fs::read(folder.join(name)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(Trouble::from),
        Err(_) => Ok(Value::Null),
    };
    let (mut position, mut rows) = (read("position")?, read("rows")?);
    if let Value::Array(all) = read("all")? {
        (position, rows) = (all[0].clone(), all[1].clone());
    }
    let disk = Disk::default();
    let row = |row: &Value| {
        let text = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
        Kept { applied: Applied::named(text(0), text(1), text(2)), image: text(3), was: text(4) }
    };
    disk.write_rows(rows.as_array().into_iter().flatten().map(row).collect());
    if let Some(position) = position.as_str() {
        disk.plant(position);
    }
    Ok(disk)
}

/// A target of [`Files`].
#[derive(Debug)]
pub struct FilesTarget {
    folder: PathBuf,
    two: bool,
    _fresh: Option<TempDir>,
}

impl FilesTarget {
    pub fn fresh(two: bool) -> Result<Self, Trouble> {
        let fresh = tempfile::tempdir()?;
        Ok(Self { folder: fresh.path().into(), two, _fresh: Some(fresh) })
    }
}

impl Target for FilesTarget {
    type Sink = Blocking<Files>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Files { folder: self.folder.clone(), two: self.two }))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(load(&self.folder)?.stored())
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        Ok(load(&self.folder)?.row(table, key))
    }

    fn address(&self) -> Option<String> {
        Some(format!("{} {}", u8::from(self.two), self.folder.display()))
    }

    fn attach(address: &str) -> Result<Self, Trouble> {
        let (two, folder) = address.split_once(' ').ok_or("no address")?;
        Ok(Self { folder: folder.into(), two: two == "1", _fresh: None })
    }

    fn declines(&self) -> &[(&str, &str)] {
        &[
            ("dies_at_fault_points", "it has none"),
            ("newer_format_is_refused", "nobody plants a position"),
            ("backup_goes_on", "nobody makes one"),
            ("large_fits_in_memory", "its files are replaced as a whole"),
        ]
    }
}
