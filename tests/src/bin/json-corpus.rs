//! Makes the seeds of the fuzz target `json` out of captured files: documents, and documents with the
//! differences that a server logged for them.
//!
//! `cargo run -p capstan-tests --bin json-corpus` in the repository's folder.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a tool that cannot go on ends")]

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use capstan_core::binlog::rows::{RowScratch, RowsEvent, RowsHead, RowsKind};
use capstan_core::binlog::table_map::TableMaps;
use capstan_core::binlog::{EventType, FileReader};
use capstan_core::value::ColumnType;

/// Longer ones only slow the fuzzer down.
const LONGEST: usize = 700;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seeds = BTreeSet::new();
    for name in ["types-json", "partial-json", "partial-json-whole"] {
        let path = root.join(format!("tests/fixtures/captured/{name}.binlog"));
        seeds_of(&fs::read(path).unwrap(), &mut seeds);
    }
    // Of seeds that differ in little only the first few are of use.
    let mut shapes = std::collections::BTreeMap::<usize, u32>::new();
    let folder = root.join("fuzz/corpus/json");
    fs::create_dir_all(&folder).unwrap();
    let mut number = 0;
    for seed in seeds.into_iter().filter(|seed| seed.len() <= LONGEST) {
        let seen = shapes.entry(seed.len()).or_default();
        *seen += 1;
        if *seen <= 2 {
            fs::write(folder.join(format!("{number:03}")), seed).unwrap();
            number += 1;
        }
    }
    println!("{number} seeds");
}

fn seeds_of(file: &[u8], seeds: &mut BTreeSet<Vec<u8>>) {
    let mut reader = FileReader::new(1 << 30);
    reader.feed(file);
    let (mut maps, mut scratch) = (TableMaps::new(), RowScratch::new());
    while let Some((_, event)) = reader.next_event().unwrap() {
        if event.header.event_type == EventType::TableMap {
            maps.open(&event.body).unwrap();
            continue;
        }
        let type_code = event.header.event_type.code();
        let Some((kind, _)) = RowsKind::of(type_code) else { continue };
        let head = RowsHead::parse(type_code, &event.body).unwrap();
        let table = Arc::clone(maps.get(head.table_id).unwrap());
        let rows = if kind == RowsKind::PartialUpdate {
            // Without value options and partial bits (two bytes somewhere) it reads as an update whose documents
            // are the differences.
            let as_update = (0..event.body.len().saturating_sub(1)).find_map(|at| {
                let (front, back) = event.body.split_at(at);
                let [1, 1..=3, back @ ..] = back else { return None };
                let body = [front, back].concat();
                let head = RowsHead::parse(31, &body).ok()?;
                let rows = RowsEvent::new(head, Arc::clone(&table), body.into()).ok()?;
                (rows.validate() == Ok(1)).then_some(rows)
            });
            let Some(rows) = as_update else { continue };
            rows
        } else {
            RowsEvent::new(head, table, event.body).unwrap()
        };
        let mut cursor = rows.cursor(&mut scratch);
        while let Some(change) = cursor.next().unwrap() {
            for (index, column) in rows.table().columns().iter().enumerate() {
                if column.column_type != ColumnType::Json {
                    continue;
                }
                let before = change.before().and_then(|row| row.raw(index));
                let after = change.after().and_then(|row| row.raw(index));
                let (document, differences) = match kind {
                    RowsKind::PartialUpdate => (before, after),
                    RowsKind::Insert | RowsKind::Update | RowsKind::Delete => (after, None),
                };
                let Some(document) = document else { continue };
                let Ok(length) = u16::try_from(document.len()) else { continue };
                seeds.insert([&length.to_le_bytes(), document, differences.unwrap_or_default()].concat());
            }
        }
    }
}
