//! Every row of every captured binlog, read by the core and by `mysql_common`, value by value.
//!
//! Where the two differ the server decides, and the difference is in [`KNOWN`] with what the server says and the very
//! value that `mysql_common` gives instead. A difference that is not there fails, and so does an entry that no file
//! needs any more.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cell;
mod known;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use capstan_core::{
    binlog::{
        Event, EventType, FileReader, Inflated, Inflater, TransactionPayload,
        rows::{Row, RowScratch, RowsError, RowsEvent, RowsHead, RowsKind},
        table_map::TableMaps,
    },
    value::{Column, Value},
};
use mysql_common::binlog::{
    EventStreamReader, consts::BinlogVersion, events, events::EventData, row::BinlogRow,
};

use self::cell::{Cell, ours_as_cell, theirs_as_cell};
use self::known::{KNOWN, Known, Pair};

/// The core refuses differences of a document that the before image lacks (`partial-json`, image MINIMAL): there is
/// no whole row to give.
const NO_DOCUMENT: &str = "differences without their document";

/// A VARCHAR of 4.1 (type 253) has two bytes of metadata, which `mysql_common` does not read: it panics. The values are in
/// `types/README.md`.
const OLD_VARCHAR: &str = "old-varchar";

/// The DECIMAL of 4.1 (type 0) has a length that no table map tells: the core refuses its table, and a test of its own
/// says so.
const OLD_DECIMAL: &str = "old-decimal";

/// Every column type, NULL, and values that are in no image; each must be compared.
const TYPES: &str = "NULL absent TinyInt SmallInt MediumInt Int BigInt Float Double Decimal Bit Year Date Time DateTime \
    Timestamp OldTime OldDateTime OldTimestamp Char Varchar Text Binary Varbinary Blob Enum Set Json Geometry Vector";

#[test]
fn both_decoders_read_the_same_values() {
    let mut found = Found::default();
    for path in binlogs() {
        found.file(&path);
    }
    for (name, count) in &found.compared {
        println!("{count:>7} {name}");
    }
    for (what, count) in &found.known {
        println!("{count:>7} known: {what}");
    }
    assert!(found.unknown.is_empty(), "{} differences:\n{}", found.unknown.len(), found.unknown.join("\n"));
    let compared: BTreeSet<&str> = found.compared.keys().map(String::as_str).collect();
    assert_eq!(compared, TYPES.split(' ').collect(), "the types compared");
    for what in [NO_DOCUMENT, OLD_VARCHAR] {
        assert!(found.known.contains_key(what), "no file shows this any more: {what}");
    }
    for Known { what, truth, .. } in &KNOWN {
        assert!(found.known.contains_key(what), "no file shows this any more: {what} (the server: {truth})");
    }
}

/// All captured files, in the order of their paths.
fn binlogs() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let folders =
        fs::read_dir(&fixtures).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "binlog"))
        .filter(|path| path.file_stem().is_some_and(|name| name != OLD_DECIMAL))
        .collect();
    files.sort();
    files
}

#[derive(Default)]
struct Found {
    compared: BTreeMap<String, u64>,
    known: BTreeMap<&'static str, u64>,
    unknown: Vec<String>,
}

impl Found {
    fn file(&mut self, path: &Path) {
        let bytes = fs::read(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        let (ours, theirs) = (rows_ours(&bytes), rows_theirs(&bytes));
        assert_eq!(ours.len(), theirs.len(), "{name}: row events");
        for (n, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            let place = format!("{name}: row event {n}");
            match (ours, theirs) {
                (Ok(ours), Ok(theirs)) => self.event(&place, ours, &theirs),
                (Err(RowsError::PartialRowImage), Ok(_)) => *self.known.entry(NO_DOCUMENT).or_default() += 1,
                (Err(error), _) => panic!("{place}: {error}"),
                (Ok(_), Err(error)) if name == OLD_VARCHAR && error == "a panic" => {
                    *self.known.entry(OLD_VARCHAR).or_default() += 1;
                }
                (Ok(_), Err(error)) => self.unknown.push(format!("{place}: {error}")),
            }
        }
    }

    fn event(&mut self, place: &str, ours: &RowsEvent, theirs: &[(Option<BinlogRow>, Option<BinlogRow>)]) {
        let mut scratch = RowScratch::new();
        let mut cursor = ours.cursor(&mut scratch);
        let mut theirs = theirs.iter();
        while let Some(change) = cursor.next().unwrap_or_else(|error| panic!("{place}: {error}")) {
            let (before, after) =
                theirs.next().unwrap_or_else(|| panic!("{place}: mysql_common has fewer rows"));
            self.image(place, change.before(), before.as_ref());
            self.image(place, change.after(), after.as_ref());
        }
        assert!(theirs.next().is_none(), "{place}: mysql_common has more rows");
    }

    fn image(&mut self, place: &str, ours: Option<Row<'_>>, theirs: Option<&BinlogRow>) {
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            assert_eq!(ours.is_some(), theirs.is_some(), "{place}: an image of one alone");
            return;
        };
        let mut at = 0;
        for (index, column) in ours.table().columns().iter().enumerate() {
            let value = ours.get(index).unwrap_or_else(|error| panic!("{place}: {error}"));
            if value == Value::Absent {
                *self.compared.entry("absent".to_owned()).or_default() += 1;
                continue;
            }
            let place = format!("{place}: {}.{} {:?}", ours.table().table(), column.name, column.column_type);
            let name = theirs.columns_ref()[at].name_str().into_owned();
            assert!(name == column.name || name == format!("@{index}"), "{place}: {name}");
            self.value(
                &place,
                column,
                &ours_as_cell(value),
                &theirs_as_cell(theirs.as_ref(at).unwrap(), column),
            );
            at += 1;
        }
        assert_eq!(at, theirs.len(), "{place}: values present");
    }

    fn value(&mut self, place: &str, column: &Column, ours: &Cell, theirs: &Cell) {
        if ours == theirs {
            let kind = format!("{:?}", column.column_type);
            let kind = if *ours == Cell::Null { "NULL" } else { kind.split(' ').next().unwrap() };
            *self.compared.entry(kind.to_owned()).or_default() += 1;
            return;
        }
        let pair = Pair { column, ours, theirs };
        match KNOWN.iter().find(|known| (known.is)(&pair)) {
            Some(known) => *self.known.entry(known.what).or_default() += 1,
            None => self.unknown.push(format!("{place}: {} instead of {}", theirs.shown(), ours.shown())),
        }
    }
}

/// The row events of a file in order, those in payloads among them.
fn rows_ours(file: &[u8]) -> Vec<OurRows> {
    let mut reader = FileReader::new(64 << 20);
    reader.feed(file);
    let (mut maps, mut rows) = (TableMaps::new(), Vec::new());
    while let Some((_, event)) = reader.next_event().expect("a whole event") {
        if event.header.event_type != EventType::TransactionPayload {
            row_event(event, &mut maps, &mut rows);
            continue;
        }
        let payload = TransactionPayload::decode(&event.body).expect("a payload");
        let mut inflater = Inflater::whole(&payload, 64 << 20).expect("a known compression");
        while let Inflated::Event(event) = inflater.next_event().expect("a whole payload") {
            row_event(event, &mut maps, &mut rows);
        }
    }
    rows
}

fn row_event(event: Event, maps: &mut TableMaps, rows: &mut Vec<OurRows>) {
    let code = event.header.event_type.code();
    if event.header.event_type == EventType::TableMap {
        maps.open(&event.body).expect("a table map");
    } else if RowsKind::of(code).is_some() {
        let head = RowsHead::parse(code, &event.body).expect("the head of a row event");
        if !head.is_dummy() {
            let table = maps.get(head.table_id).expect("its table map").clone();
            rows.push(RowsEvent::new(head, table, event.body));
        }
    }
}

type OurRows = Result<RowsEvent, RowsError>;
type TheirRows = Result<Vec<(Option<BinlogRow>, Option<BinlogRow>)>, String>;

/// The same from `mysql_common`, which must not end the test where it panics.
fn rows_theirs(file: &[u8]) -> Vec<TheirRows> {
    let mut input = &file[4..];
    let mut reader = EventStreamReader::new(BinlogVersion::Version4);
    let mut rows = Vec::new();
    while let Some(event) = reader.read(&mut input).expect("mysql_common frames the file") {
        match event.read_data() {
            Ok(Some(EventData::TransactionPayloadEvent(payload))) => {
                let mut inner = payload.decompressed().unwrap();
                while inner.has_data_left().unwrap() {
                    let event = reader.read_decompressed(&mut inner).unwrap().unwrap();
                    rows.extend(their_rows(&event, &reader));
                }
            }
            Ok(_) | Err(_) => rows.extend(their_rows(&event, &reader)),
        }
    }
    rows
}

/// `None` for an event that is no row event.
fn their_rows(event: &events::Event, reader: &EventStreamReader) -> Option<TheirRows> {
    RowsKind::of(event.header().event_type_raw())?;
    let read = || match event.read_data() {
        Ok(Some(EventData::RowsEvent(rows))) => match reader.get_tme(rows.table_id()) {
            Some(table) => rows.rows(table).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string()),
            None => Err("no table map".to_owned()),
        },
        other => Err(format!("no row event: {:?}", other.err())),
    };
    Some(catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("a panic".to_owned())))
}
