//! Sinks that are wrong in exactly one way each, and right ones.

mod fault;
mod files;
mod later;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use capstan_conformance::{
    Applied, Blocking, Faults, Keeps, Stored, Target, Trouble,
    reference::{Disk, Kept, begun, followed, keep},
};
use capstan_core::{
    deliver::{
        Ack, BlockingBatch, BlockingSink, BlockingTransaction, BlockingUnit, Change, FailureClass,
        Incomplete, Item, Mismatch, Position, SchemaChange, SinkError, SnapshotRows,
    },
    gtid::{Gtid, GtidSet},
    sql::{SchemaEffect, TableName},
    text::{TextOptions, write_image},
};

pub use fault::Fault;
pub use files::FilesTarget;
pub use later::{LaterTarget, Slip};

/// The reference sink with a fault.
#[derive(Debug)]
pub struct Faulty {
    disk: Disk,
    fault: Fault,
    faults: Faults,
    beside: Arc<Mutex<Beside>>,
    /// One writes at a time.
    turn: Arc<Mutex<()>>,
    commits: u32,
    calls: u32,
    /// Batches without changes in a row.
    empty: u32,
    /// Rows of an aborted transaction.
    later: Vec<Kept>,
    /// A position that should have been written.
    pending: Option<Position>,
    /// A write that should have been done.
    behind: Option<(Vec<Kept>, String)>,
    /// The position as last seen.
    seen: Option<Option<Position>>,
    /// The columns of each table when it was first seen.
    columns: HashMap<String, Vec<String>>,
    /// Chunks that wait for the last.
    copied: Vec<Kept>,
    /// The table whose chunk came first.
    copying: Option<String>,
    batch: Seen,
}

/// What a batch holds besides rows.
#[derive(Debug, Default)]
struct Seen {
    schema_change: bool,
    creation: bool,
    empty_chunk: bool,
    refused: bool,
    streamed: bool,
}

/// What is kept beside the storage.
#[derive(Debug, Default)]
struct Beside {
    position: Option<String>,
    /// Rows before the last transaction and rows of the last batch, if that had several.
    journal: Option<(usize, Vec<Kept>)>,
}

impl BlockingSink for Faulty {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.catch_up();
        self.beside.lock().unwrap().journal = None;
        let position = match (&self.pending, self.fault) {
            (Some(position), _) => Some(position.clone()),
            (None, Fault::UnreadableIsNothing) => self.disk.position().unwrap_or_default(),
            (None, Fault::PositionElsewhere) => {
                let elsewhere = self.beside.lock().unwrap().position.clone();
                elsewhere.as_deref().map(Position::decode).transpose()?
            }
            (None, _) => self.disk.position()?,
        };
        self.seen = Some(position.clone());
        Ok(position)
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        self.calls += 1;
        let busy = || SinkError::new(FailureClass::Transient, "busy", None);
        if self.fault == Fault::IsBusy && self.calls % 6 == 3 {
            return Err(busy());
        }
        let turn = Arc::clone(&self.turn);
        let alone = (self.fault != Fault::ChecksThenWrites).then(|| turn.lock());
        let seen = self.seen.clone();
        let mut stored = self.position()?;
        if self.fault == Fault::TrustsItsMemory {
            stored = seen.unwrap_or(stored);
        }
        let expected = batch.expected().position().cloned();
        let mismatch = batch.expected().check(stored.as_ref()).err();
        self.batch = Seen { refused: mismatch.is_some(), ..Seen::default() };
        let held = self.disk.kept().len();
        let mut groups = vec![std::mem::take(&mut self.later)];
        if let Err(why) = self.read(&mut batch, &mut groups) {
            return Err(self.aborted(why, groups, held, stored));
        }
        let ack = batch.finish()?;
        if let Some(mismatch) = mismatch {
            let empty = groups.iter().all(Vec::is_empty);
            self.refuses(mismatch, empty, expected.as_ref(), stored.as_ref(), ack.position())?;
        }
        if self.fault == Fault::IsBusy && self.calls.is_multiple_of(6) && !self.batch.streamed {
            return Err(busy());
        }
        if alone.is_none() {
            thread::sleep(Duration::from_millis(3));
        }
        self.faults.pass("before_write");
        self.write(groups, stored.as_ref(), ack.position(), held);
        self.faults.pass("after_write");
        self.commits += 1;
        let lost = match self.fault {
            Fault::NeverAcknowledges => true,
            Fault::LosesAnswers => self.commits.is_multiple_of(2),
            _ => false,
        };
        if lost { Err(SinkError::new(FailureClass::Unknown, "commit", None)) } else { Ok(ack) }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.catch_up();
    }
}

impl Faulty {
    fn catch_up(&mut self) {
        if let Some((rows, position)) = self.behind.take() {
            self.disk.write_text(rows, position);
        }
    }

    fn read(&mut self, batch: &mut BlockingBatch<'_>, groups: &mut Vec<Vec<Kept>>) -> Result<(), Incomplete> {
        while let Some(unit) = batch.next()? {
            match unit {
                BlockingUnit::Transaction(transaction) => {
                    let mut rows = Vec::new();
                    let read = self.transaction(transaction, &groups.concat(), &mut rows);
                    if read.is_ok() && self.fault == Fault::WritesEachTransaction && !self.batch.refused {
                        self.disk.write_rows(std::mem::take(&mut rows));
                    }
                    groups.push(rows);
                    read?;
                }
                BlockingUnit::SchemaChange(change) => {
                    self.batch.schema_change = true;
                    self.batch.creation = matches!(change.effect, SchemaEffect::CreateTable { .. });
                    groups.push(self.followed(change));
                }
                BlockingUnit::SnapshotRows(chunk) => {
                    let rows = self.chunk(chunk)?;
                    groups.push(rows);
                }
                BlockingUnit::Progress(_) => {}
            }
        }
        Ok(())
    }

    fn followed(&self, change: &SchemaChange) -> Vec<Kept> {
        let mut kept = followed(change);
        match (self.fault, &change.effect) {
            (Fault::ForgetsTruncate, SchemaEffect::TruncateTable(_))
            | (Fault::ForgetsDrop, SchemaEffect::DropTables(_))
            | (Fault::KeepsDatabase, SchemaEffect::DropDatabase(_))
            | (Fault::ForgetsRename, SchemaEffect::RenameTables(_))
            | (Fault::ForgetsAlterRename, SchemaEffect::AlterTable { .. }) => kept.clear(),
            (Fault::DropsOneTable, SchemaEffect::DropTables(_)) => kept.truncate(1),
            (Fault::KeepsWhatLeft, SchemaEffect::RenameTables(_)) => {
                kept.retain(|kept| kept.applied.op == "rename");
            }
            (Fault::RenamesInTurn, SchemaEffect::RenameTables(moves)) => {
                kept.retain(|kept| kept.applied.op != "rename");
                let name = |name: &TableName| format!("{}.{}", name.schema, name.table);
                for (from, to) in moves.iter().filter_map(|step| Some((&step.from, step.to.as_ref()?))) {
                    kept.push(told("rename", name(from), &name(to)));
                }
            }
            (Fault::EmptiesExisting, SchemaEffect::CreateTable { table, if_not_exists: true, .. }) => {
                kept.push(told("truncate", format!("{}.{}", table.schema, table.table), ""));
            }
            _ => {}
        }
        kept
    }

    fn chunk(&mut self, mut chunk: SnapshotRows<'_>) -> Result<Vec<Kept>, Incomplete> {
        let Some(head) = chunk.chunk() else { return Ok(Vec::new()) };
        let (number, last) = (head.number, head.last);
        let first = self.copying.get_or_insert_with(|| head.table.table().to_owned()) == head.table.table();
        if self.fault == Fault::CopiesOneTable && !first {
            chunk.skip();
            return Ok(Vec::new());
        }
        let mut rows: Vec<Kept> = begun(head)
            .filter(|_| !matches!(self.fault, Fault::KeepsBeforeCopy | Fault::HidesBeginnings))
            .into_iter()
            .collect();
        self.batch.empty_chunk = head.rows.is_none();
        self.batch.schema_change = true;
        if self.fault == Fault::FirstChunkOnly && number > 0 {
            chunk.skip();
            return Ok(rows);
        }
        while let Some(change) = chunk.next()? {
            rows.push(keep(&change).unwrap());
        }
        if self.fault == Fault::ChunksAtTheEnd {
            self.copied.extend(rows);
            return Ok(if last { std::mem::take(&mut self.copied) } else { Vec::new() });
        }
        Ok(rows)
    }

    fn transaction(
        &mut self,
        mut transaction: BlockingTransaction<'_>,
        earlier: &[Kept],
        rows: &mut Vec<Kept>,
    ) -> Result<(), Incomplete> {
        let streamed = transaction.is_streamed();
        self.batch.streamed |= streamed;
        if streamed && self.fault == Fault::SkipsStreamed {
            return transaction.skip();
        }
        while let Some(item) = transaction.next()? {
            let Item::Change(change) = item else {
                if self.fault == Fault::StopsAtSchemaChange {
                    return transaction.skip();
                }
                continue;
            };
            let mut kept = self.bent(&change, keep(&change).unwrap());
            match self.fault {
                Fault::StopsAtAbsent
                    if kept.applied.op != "insert" && self.holds(earlier, rows, &kept, true) == 0 =>
                {
                    return transaction.skip();
                }
                Fault::DropsDuplicates
                    if kept.applied.op == "insert" && self.holds(earlier, rows, &kept, false) > 0 =>
                {
                    continue;
                }
                Fault::UpdatesAllAlike if kept.applied.op == "update" => {
                    for _ in 1..self.holds(earlier, rows, &kept, true) {
                        let (table, key) = (kept.applied.table.clone(), kept.was.clone());
                        let gone = Applied::named("delete", table.clone(), key.clone());
                        rows.push(Kept { applied: gone, image: String::new(), was: key.clone() });
                        let there = Applied::named("insert", table, key.clone());
                        rows.push(Kept { applied: there, image: kept.image.clone(), was: key });
                    }
                }
                Fault::LeavesTheOldKey if kept.applied.op == "update" && kept.was != kept.applied.key => {
                    kept.applied.op = "insert".into();
                }
                Fault::KeysByBefore if kept.applied.op == "update" => kept.applied.key = kept.was.clone(),
                _ => {}
            }
            rows.push(kept);
            let part = match self.fault {
                Fault::WritesThrough => 1,
                Fault::WritesParts => 50,
                _ => usize::MAX,
            };
            if streamed && rows.len() >= part {
                self.disk.write_rows(std::mem::take(rows));
            }
            if self.fault == Fault::SkipsTheRest && rows.len() == 1000 {
                return transaction.skip();
            }
        }
        if streamed && self.fault == Fault::LosesTheRemainder && rows.len() > 1000 {
            rows.truncate(rows.len() / 1000 * 1000);
        }
        Ok(())
    }

    /// How often the row is there.
    fn holds(&self, earlier: &[Kept], rows: &[Kept], kept: &Kept, before: bool) -> i32 {
        let key = if before { &kept.was } else { &kept.applied.key };
        let ours = |other: &&Kept| other.applied.table == kept.applied.table;
        let mut there = 0;
        for other in self.disk.kept().iter().chain(earlier).chain(rows).filter(ours) {
            match other.applied.op.as_str() {
                "truncate" | "rename" | "begins" => there = 0,
                op => {
                    there -= i32::from(op != "insert" && other.was == *key);
                    there += i32::from(op != "delete" && other.applied.key == *key);
                }
            }
        }
        there
    }

    fn bent(&mut self, change: &Change<'_>, mut kept: Kept) -> Kept {
        let image = &mut kept.image;
        match self.fault {
            Fault::IgnoresSchema => {
                kept.applied.table = kept.applied.table.replace("store.", "shop.");
            }
            Fault::KeysAsDoubles => {
                for key in [&mut kept.applied.key, &mut kept.was] {
                    *key = key.parse::<f64>().map_or_else(|_| String::new(), |number| number.to_string());
                }
            }
            Fault::CutsText => {
                if let Some((head, text)) = image.split_once("\"text\":\"")
                    && let Some((text, tail)) = text.split_once("\",\"bytes\"")
                    && let Some(cut) = text.get(..65_535)
                {
                    *image = format!("{head}\"text\":\"{cut}\",\"bytes\"{tail}");
                }
            }
            Fault::KeepsOldForNull if change.after.is_some() => {
                if let Some(before) = change.before {
                    let mut old = String::new();
                    write_image(&mut old, before.values(), TextOptions::default()).unwrap();
                    let old: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&old).unwrap();
                    let mut new: serde_json::Map<String, serde_json::Value> =
                        serde_json::from_str(image).unwrap();
                    for (name, value) in new.iter_mut().filter(|(_, value)| value.is_null()) {
                        *value = old[name].clone();
                    }
                    *image = serde_json::Value::Object(new).to_string();
                }
            }
            Fault::FoldsCase => kept.applied.table = kept.applied.table.to_lowercase(),
            Fault::Signed => *image = image.replace(r#""largest":18446744073709551615"#, r#""largest":-1"#),
            Fault::NullIsEmpty => *image = image.replace("null", "\"\""),
            Fault::LosesBytes => *image = image.replace(r#"{"base64":"Yf/+Yg=="}"#, r#""a??b""#),
            Fault::FloatsDecimals => {
                *image =
                    image.replace("\"-1234567890123456789012345678.0123456789\"", "-1.2345678901234568e27");
            }
            Fault::ZeroDateIsNull => *image = image.replace("\"0000-00-00\"", "null"),
            Fault::YearsAfter1900 => *image = image.replace(r#""year":0"#, r#""year":1900"#),
            Fault::StripsZeros => *image = image.replace("YWIAAA==", "YWI="),
            Fault::FloatsDocuments => {
                *image = image.replace("9223372036854775807", "9.223372036854775807e18")
            }
            Fault::StoresBefore if change.after.is_some() => {
                if let Some(before) = change.before {
                    image.clear();
                    write_image(image, before.values(), TextOptions::default()).unwrap();
                }
            }
            Fault::CachesColumns if change.after.is_some() => {
                let names = change.table.columns().iter().map(|column| column.name.to_string()).collect();
                let known = self.columns.entry(kept.applied.table.clone()).or_insert(names);
                let mut json: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(image).unwrap();
                json.retain(|name, _| known.contains(name));
                *image = serde_json::Value::Object(json).to_string();
            }
            _ => {}
        }
        kept
    }

    fn aborted(
        &mut self,
        why: Incomplete,
        groups: Vec<Vec<Kept>>,
        held: usize,
        stored: Option<Position>,
    ) -> SinkError {
        match (self.fault, why) {
            (Fault::KeepsRolledBack, Incomplete::Aborted { comes_again: false }) => {
                self.disk.write_rows(groups.concat());
            }
            (Fault::PassesRolledBack, Incomplete::Aborted { comes_again: false }) => {
                let skipped = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:2".parse().unwrap();
                self.disk.write(Vec::new(), &stored.unwrap().with_skipped(&skipped));
            }
            (Fault::FailsOnAbort, Incomplete::Aborted { comes_again: false }) => {
                return Incomplete::Unread.into();
            }
            (Fault::KeepsForLater, Incomplete::Aborted { comes_again: true }) if groups.len() == 2 => {
                self.later = groups.concat();
            }
            (Fault::WritesThrough | Fault::WritesParts, _) => self.disk.truncate(held),
            _ => {}
        }
        why.into()
    }

    /// Refuses, unless the fault says otherwise.
    fn refuses(
        &self,
        mismatch: Mismatch,
        empty: bool,
        expected: Option<&Position>,
        stored: Option<&Position>,
        new: &Position,
    ) -> Result<(), SinkError> {
        let set = |position: Option<&Position>| position.map(|p| p.gtid_set().clone()).unwrap_or_default();
        let epoch = |position: Option<&Position>| position.map(Position::epoch);
        let same_set = set(expected) == set(stored);
        let both = expected.is_some() && stored.is_some();
        let stored_already = new.gtid_set().is_subset(&set(stored));
        let written = match (self.fault, mismatch) {
            (Fault::ClaimsAlways, Mismatch::Fenced) => empty && both,
            (Fault::NothingMeansAnything, Mismatch::Fenced) => expected.is_none(),
            (Fault::EmptyTakesAll, Mismatch::Fenced) => stored.is_none(),
            (Fault::IgnoresOwner, Mismatch::Fenced) => same_set && !empty && both,
            (Fault::IgnoresMark, Mismatch::Fenced) => same_set && both && epoch(expected) == epoch(stored),
            (Fault::FencedIsStale, Mismatch::Fenced) if both && !empty => return Err(SinkError::stale()),
            (Fault::ComparesSets, Mismatch::Stale) => same_set,
            (Fault::OverwritesStale, Mismatch::Stale) => !stored_already,
            (Fault::OverwritesOlder, Mismatch::Stale) => stored_already && set(stored) != *new.gtid_set(),
            (Fault::AcceptsSupersets, Mismatch::Stale) => set(stored).is_subset(new.gtid_set()),
            _ => false,
        };
        if written { Ok(()) } else { Err(mismatch.into()) }
    }

    fn write(&mut self, mut groups: Vec<Vec<Kept>>, stored: Option<&Position>, new: &Position, held: usize) {
        match self.fault {
            Fault::ReversesChanges => groups.iter_mut().for_each(|group| group.reverse()),
            Fault::ReversesTransactions => groups.reverse(),
            Fault::HoldsSix => groups.truncate(7),
            _ => {}
        }
        let transactions = groups.iter().filter(|group| !group.is_empty()).count();
        let last = groups.last().map_or(0, Vec::len);
        let rows = groups.concat();
        let claim = stored.is_none_or(|stored| !stored.same_owner(new));
        let empty = rows.is_empty() && self.disk.kept().len() == held && !self.batch.schema_change;
        self.empty = if empty && !claim { self.empty + 1 } else { 0 };
        self.seen = Some(Some(new.clone()));
        let text = self.written(new);
        match self.fault {
            Fault::DropsProgress if empty && !claim => return,
            Fault::ThrottlesProgress if self.empty > 1 => return,
            Fault::ForgetsCreation if self.batch.creation => return,
            Fault::IgnoresEmptyChunks if self.batch.empty_chunk => return,
            Fault::LazyClaim if empty && claim => {
                self.pending = Some(new.clone());
                return;
            }
            Fault::PositionInMemory if !claim && new.prepared().len() == 2 => {
                self.pending = Some(new.clone());
                self.disk.write_rows(rows);
                return;
            }
            Fault::WritesBehind if rows.len() == 2 => {
                self.behind = Some((rows, text));
                return;
            }
            Fault::TwoWrites => {
                self.disk.write_rows(rows);
                self.faults.pass("between");
                self.disk.write_text(Vec::new(), text);
                return;
            }
            _ => self.pending = None,
        }
        let mut beside = self.beside.lock().unwrap();
        beside.position = Some(text.clone());
        beside.journal = (transactions > 1).then(|| (held + rows.len() - last, rows.clone()));
        self.disk.write_text(rows, text);
    }

    fn written(&self, position: &Position) -> String {
        let text = position.encode();
        let set = position.gtid_set().to_string();
        let bent = match self.fault {
            Fault::AsciiPosition => text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect(),
            Fault::Ordinal => text.replace(&set, &ordinal(position.gtid_set())),
            Fault::OneSource => text.replace(&set, set.split(',').next().unwrap()),
            Fault::DropsTags => text.replace(&set, &without_tags(&set)),
            Fault::CutsPosition => return text.chars().take(65_535).collect(),
            Fault::EpochsAsDoubles => text.replace("9007199254740993", "9007199254740992"),
            Fault::DropsCopies => {
                let (head, _) = text.split_once(",\"copies\"").unwrap_or((&text, ""));
                if head == text { text.clone() } else { format!("{head},\"crc32\":0}}") }
            }
            _ => return text,
        };
        if bent == text {
            return text;
        }
        // Who writes it in a way of their own has no sum of ours.
        let (bent, _) = bent.rsplit_once(",\"crc32\"").unwrap();
        format!("{bent}}}")
    }
}

/// What is kept of a schema change.
fn told(op: &str, table: String, key: &str) -> Kept {
    Kept { applied: Applied::named(op, table, key), image: String::new(), was: String::new() }
}

/// Each source up to its largest number.
fn ordinal(set: &GtidSet) -> String {
    let mut whole = GtidSet::new();
    for (tsid, intervals) in set.iter() {
        let first = GtidSet::from(Gtid::new(tsid.uuid, tsid.tag, 1).unwrap()).to_string();
        let last = intervals.last().unwrap().end();
        whole = whole.union(&format!("{first}-{last}").parse().unwrap());
    }
    whole.to_string()
}

/// Each source's numbers, whatever their tag.
fn without_tags(set: &str) -> String {
    let plain = set.replace(":blue", "").replace(":red", "");
    plain.parse::<GtidSet>().map_or(plain, |set| set.to_string())
}

/// A target of [`Faulty`].
#[derive(Debug)]
pub struct FaultyTarget {
    disk: Disk,
    fault: Fault,
    keeps: Keeps,
    faults: Faults,
    beside: Arc<Mutex<Beside>>,
    turn: Arc<Mutex<()>>,
}

impl FaultyTarget {
    pub fn new(fault: Fault) -> Self {
        let rows = [
            Fault::ForgetsTruncate,
            Fault::ForgetsDrop,
            Fault::ForgetsRename,
            Fault::DropsOneTable,
            Fault::KeepsDatabase,
            Fault::ForgetsAlterRename,
            Fault::RenamesInTurn,
            Fault::KeepsWhatLeft,
            Fault::EmptiesExisting,
            Fault::KeepsBeforeCopy,
            Fault::LeavesTheOldKey,
            Fault::UpdatesAllAlike,
        ];
        let keeps = if rows.contains(&fault) { Keeps::Rows } else { Keeps::Changes };
        let (disk, faults) = (Disk::default(), Faults::default());
        Self { disk, fault, keeps, faults, beside: Arc::default(), turn: Arc::default() }
    }

    pub fn of_rows(fault: Fault) -> Self {
        Self { keeps: Keeps::Rows, ..Self::new(fault) }
    }
}

impl Target for FaultyTarget {
    type Sink = Blocking<Faulty>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        let journal = self.beside.lock().unwrap().journal.take();
        match (self.fault, journal) {
            (Fault::ReplaysItsJournal, Some((_, rows))) => self.disk.write_rows(rows),
            (Fault::ForgetsTheLast, Some((keep, _))) => self.disk.truncate(keep),
            _ => {}
        }
        Ok(Blocking(Faulty {
            disk: self.disk.clone(),
            fault: self.fault,
            faults: self.faults.clone(),
            beside: self.beside.clone(),
            turn: self.turn.clone(),
            commits: 0,
            calls: 0,
            empty: 0,
            later: Vec::new(),
            pending: None,
            behind: None,
            seen: None,
            columns: HashMap::new(),
            copied: Vec::new(),
            copying: None,
            batch: Seen::default(),
        }))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(match self.keeps {
            Keeps::Changes => self.disk.stored(),
            Keeps::Rows => self.disk.stored_rows(),
        })
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        Ok(self.disk.row(table, key))
    }

    fn keeps(&self) -> Keeps {
        self.keeps
    }

    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        self.disk.plant(position);
        self.beside.lock().unwrap().position = Some(position.to_owned());
        Ok(())
    }

    fn backup(&mut self) -> Result<(), Trouble> {
        self.disk.backup();
        Ok(())
    }

    fn restore(&mut self) -> Result<(), Trouble> {
        self.disk.restore();
        Ok(())
    }

    fn fault_points(&self) -> &[&str] {
        if self.fault == Fault::TwoWrites {
            &["before_write", "between", "after_write"]
        } else {
            &["before_write", "after_write"]
        }
    }

    fn arm(&mut self, point: &str, count: u64) -> Result<(), Trouble> {
        self.faults.arm(point, count);
        Ok(())
    }

    fn name(&self) -> String {
        format!("{:?}", self.fault)
    }
}
