//! One line to a transaction, appended to a plain file.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use capstan_conformance::{Applied, Artifact, Blocking, Level, Stored, Target, Trouble};
use capstan_core::{
    deliver::{
        Ack, BlockingBatch, BlockingSink, BlockingUnit, Change, Item, Position, SinkError, SinkResultExt as _,
    },
    text::{SnapshotLine, TextOptions, TransactionLine},
};
use serde_json::Value;
use tempfile::TempDir;

/// The sink. A position cannot be stored in the same write as the lines, so a checkpoint store keeps it.
pub struct Lines(File);

impl Lines {
    /// A crash may have left a part of a line: it was not acknowledged, and comes again.
    pub fn open(path: &Path) -> Result<Self, Trouble> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let whole = fs::read(path)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(u64::try_from(whole)?)?;
        Ok(Self(file))
    }
}

impl BlockingSink for Lines {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(None) // never asked where a checkpoint store is configured
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        // Nothing can be taken back, so nothing is written before all of it is there.
        let mut text = String::new();
        while let Some(unit) = batch.next()? {
            match unit {
                BlockingUnit::Transaction(mut transaction) => {
                    let mut line = TransactionLine::begin(&mut text, None, None);
                    while let Some(item) = transaction.next()? {
                        if let Item::Change(change) = item {
                            line.change(&mut text, change.before, change.after, TextOptions::default())?;
                        }
                    }
                    line.end(&mut text);
                }
                BlockingUnit::SnapshotRows(mut rows) => {
                    let Some(chunk) = rows.chunk() else { continue };
                    let (table, set) = (&chunk.table, &chunk.gtid_set);
                    let mut line = SnapshotLine::begin(&mut text, table, chunk.number, set, chunk.last);
                    while let Some(Change { after: Some(row), .. }) = rows.next()? {
                        line.row(&mut text, row.values(), TextOptions::default())?;
                    }
                    line.end(&mut text);
                }
                BlockingUnit::SchemaChange(_) | BlockingUnit::Progress(_) => {}
            }
        }
        let ack = batch.finish()?;
        self.0.write_all(text.as_bytes()).unknown("append")?;
        self.0.sync_data().unknown("sync")?;
        Ok(ack)
    }
}

/// A file in a folder of its own.
pub struct LinesTarget {
    path: PathBuf,
    /// Says more of itself than is true.
    boasts: bool,
    _folder: Option<TempDir>,
}

impl LinesTarget {
    pub fn fresh() -> Result<Self, Trouble> {
        let folder = tempfile::tempdir()?;
        Ok(Self { path: folder.path().join("changes"), boasts: false, _folder: Some(folder) })
    }

    /// One that claims to hold nothing back.
    pub fn boastful() -> Result<Self, Trouble> {
        Ok(Self { boasts: true, ..Self::fresh()? })
    }

    fn changes(&self) -> Result<Vec<(Applied, Value)>, Trouble> {
        let mut all = Vec::new();
        for line in fs::read_to_string(&self.path)?.split_inclusive('\n').filter(|line| line.ends_with('\n'))
        {
            let line: Value = serde_json::from_str(line)?;
            for change in line["changes"].as_array().into_iter().flatten() {
                let word = |name: &str| change[name].as_str().unwrap_or_default();
                let image = change.get("after").unwrap_or(&change["before"]);
                let table = format!("{}.{}", word("schema"), word("table"));
                all.push((Applied::named(word("op"), table, image["id"].to_string()), image.clone()));
            }
            let word = |name: &str| line[name].as_str().unwrap_or_default();
            let table = format!("{}.{}", word("schema"), word("table"));
            if line["chunk"] == 0 {
                all.push((Applied::begins(&*table), Value::Null));
            }
            for row in line["rows"].as_array().into_iter().flatten() {
                all.push((Applied::named("snapshot", &*table, row["id"].to_string()), row.clone()));
            }
        }
        Ok(all)
    }
}

impl Target for LinesTarget {
    type Sink = Blocking<Lines>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Lines::open(&self.path)?))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(Stored {
            applied: self.changes()?.into_iter().map(|(applied, _)| applied).collect(),
            position: None,
        })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        let changes = self.changes()?;
        let ours = |(applied, _): &&(Applied, Value)| applied.table == table && applied.key == key;
        Ok(changes.iter().rev().find(ours).map(|(_, image)| image.to_string()))
    }

    fn level(&self) -> Level {
        Level::AtLeastOnce
    }

    fn declines(&self) -> &[(&str, &str)] {
        if self.boasts {
            return &[];
        }
        &[(
            "large_fits_in_memory",
            "what is appended cannot be taken back, so a transaction waits in memory for its end",
        )]
    }

    fn address(&self) -> Option<String> {
        self.path.to_str().map(str::to_owned)
    }

    fn attach(address: &str) -> Result<Self, Trouble> {
        Ok(Self { path: address.into(), boasts: false, _folder: None })
    }

    fn artifact(&self) -> Option<Artifact> {
        Some(capstan_conformance::artifact!())
    }

    fn name(&self) -> String {
        "lines in a file".into()
    }
}
