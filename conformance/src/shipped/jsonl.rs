//! JSON lines, and the file that holds every transaction once.

use std::fs;

use capstan::jsonl::{JsonFile, JsonOptions};
use serde_json::Value;

use super::{Folder, in_a_folder};
use crate::{
    subject::Blocking,
    target::{Applied, Stored, Target, Trouble},
};

/// The changes of whole lines, each with the newest image of its row.
pub(super) fn changes(text: &str) -> Result<Vec<(Applied, Value)>, Trouble> {
    let mut all = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        for change in line.get("changes").and_then(Value::as_array).into_iter().flatten() {
            let word = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or_default();
            if word("op") == "schema_change" {
                continue;
            }
            let image =
                change.get("after").or_else(|| change.get("before")).ok_or("a change without rows")?;
            let id = image.get("id").ok_or("a row without id")?.to_string();
            let table = format!("{}.{}", word("schema"), word("table"));
            all.push((Applied::named(word("op"), table, id), image.clone()));
        }
        // The rows of a chunk of a copy.
        let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        let table = format!("{}.{}", word("schema"), word("table"));
        if line.get("chunk").and_then(Value::as_u64) == Some(0) {
            all.push((Applied::begins(&*table), Value::Null));
        }
        for row in line.get("rows").and_then(Value::as_array).into_iter().flatten() {
            let id = row.get("id").ok_or("a row without id")?.to_string();
            all.push((Applied::named("snapshot", &*table, id), row.clone()));
        }
    }
    Ok(all)
}

pub(super) fn newest(text: &str, table: &str, key: &str) -> Result<Option<String>, Trouble> {
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

    in_a_folder!("capstan::jsonl::JsonFile", ["streamed_change", "data_synced", "after_commit"]);
}
