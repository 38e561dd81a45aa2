//! JSON lines: the file that holds every transaction once, and the stream that cannot.

use std::{
    fs,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capstan::jsonl::{JsonFile, JsonLines, JsonOptions};
use serde_json::Value;

use super::{Folder, arm, artifact, declined};
use crate::{
    artifact::Artifact,
    rule::Level,
    subject::Blocking,
    target::{Applied, Stored, Target, Trouble},
};

/// The changes of whole lines, and the newest image of a row.
fn changes(text: &str) -> Result<Vec<(Applied, Value)>, Trouble> {
    let mut all = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        for change in line.get("changes").and_then(Value::as_array).into_iter().flatten() {
            let word = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or_default();
            let image =
                change.get("after").or_else(|| change.get("before")).ok_or("a change without rows")?;
            let id = image.get("id").ok_or("a row without id")?.to_string();
            let table = format!("{}.{}", word("schema"), word("table"));
            all.push((Applied::named(word("op"), table, id), image.clone()));
        }
        // The rows of a chunk of a copy.
        let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        for row in line.get("rows").and_then(Value::as_array).into_iter().flatten() {
            let id = row.get("id").ok_or("a row without id")?.to_string();
            let table = format!("{}.{}", word("schema"), word("table"));
            all.push((Applied::named("snapshot", table, id), row.clone()));
        }
    }
    Ok(all)
}

fn newest(text: &str, table: &str, key: &str) -> Result<Option<String>, Trouble> {
    let changes = changes(text)?;
    let ours = |(applied, _): &&(Applied, Value)| applied.table == table && applied.key == key;
    Ok(changes.iter().rev().find(ours).map(|(_, image)| image.to_string()))
}

/// A target of [`JsonFile`].
#[derive(Debug)]
pub struct JsonFileTarget(Folder);

impl JsonFileTarget {
    /// In a folder of its own, which goes with it.
    ///
    /// # Errors
    /// No folder can be made.
    pub fn fresh() -> Result<Self, Trouble> {
        Ok(Self(Folder::fresh()?))
    }

    /// What the record covers, and the position in it.
    fn read(&self) -> Result<(String, Option<String>), Trouble> {
        let record = fs::read_to_string(self.0.file("changes.jsonl.position"))?;
        let (head, position) = record.split_once('\n').ok_or("the record has no head")?;
        let head: Value = serde_json::from_str(head)?;
        let length = head.get("length").and_then(Value::as_u64).ok_or("the record has no length")?;
        let mut bytes = fs::read(self.0.file("changes.jsonl"))?;
        bytes.truncate(usize::try_from(length)?);
        let position = Some(position.trim_end()).filter(|position| !position.is_empty());
        Ok((String::from_utf8(bytes)?, position.map(str::to_owned)))
    }
}

impl Target for JsonFileTarget {
    type Sink = Blocking<JsonFile>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(JsonFile::open(self.0.file("changes.jsonl"), JsonOptions::default())?))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        let (text, position) = self.read()?;
        Ok(Stored { applied: changes(&text)?.into_iter().map(|(applied, _)| applied).collect(), position })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        newest(&self.read()?.0, table, key)
    }

    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        let path = self.0.file("changes.jsonl.position");
        let record = fs::read_to_string(&path)?;
        let (head, _) = record.split_once('\n').ok_or("the record has no head")?;
        Ok(fs::write(path, format!("{head}\n{position}\n"))?)
    }

    fn backup(&mut self) -> Result<(), Trouble> {
        self.0.backup()
    }

    fn restore(&mut self) -> Result<(), Trouble> {
        self.0.restore()
    }

    fn fault_points(&self) -> &[&str] {
        &["streamed_change", "data_synced", "after_commit"]
    }

    fn arm(&mut self, _: &str, _: u64) -> Result<(), Trouble> {
        arm()
    }

    fn address(&self) -> Option<String> {
        self.0.address()
    }

    fn attach(address: &str) -> Result<Self, Trouble> {
        Ok(Self(Folder::at(address)))
    }

    fn declines(&self) -> &[(&str, &str)] {
        declined()
    }

    fn artifact(&self) -> Option<Artifact> {
        artifact()
    }

    fn name(&self) -> String {
        "capstan::jsonl::JsonFile".into()
    }
}

/// A target of [`JsonLines`], whose writer takes nothing back: at least once.
#[derive(Debug, Default)]
pub struct JsonLinesTarget(Printed);

/// What was printed.
#[derive(Clone, Debug, Default)]
pub struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> Result<String, Trouble> {
        Ok(String::from_utf8(self.bytes().clone())?)
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Target for JsonLinesTarget {
    type Sink = Blocking<JsonLines<Printed>>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(JsonLines::new(self.0.clone(), JsonOptions::default())))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        let applied = changes(&self.0.text()?)?.into_iter().map(|(applied, _)| applied).collect();
        Ok(Stored { applied, position: None })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        newest(&self.0.text()?, table, key)
    }

    fn level(&self) -> Level {
        Level::AtLeastOnce
    }

    fn artifact(&self) -> Option<Artifact> {
        artifact()
    }

    fn name(&self) -> String {
        "capstan::jsonl::JsonLines".into()
    }
}
