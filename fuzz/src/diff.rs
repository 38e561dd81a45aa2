//! Row events that servers wrote, with values changed, read by the core and by `mysql_common`.
//!
//! Where the core gives a value that `mysql_common` gives too, they are the same, or the difference is one of those
//! that the second decoder of the tests is known by. What the core refuses no server stores, and what `mysql_common`
//! cannot read (it panics on some of it) says nothing.

use std::{
    cell::Cell as Flag,
    collections::BTreeSet,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Once, OnceLock},
};

use bytes::Bytes;
use capstan_core::{
    binlog::{
        EventHeader,
        rows::{Row, RowScratch, RowsEvent, RowsHead, RowsKind},
        table_map::TableMaps,
    },
    value::{ColumnType, TableVersion, Value},
};
use mysql_common::binlog::{EventStreamReader, consts::BinlogVersion, events::EventData, row::BinlogRow};

use self::cell::{Cell, ours_as_cell, theirs_as_cell};
use self::known::{KNOWN, Pair};
use super::row_image;

#[path = "../../tests/tests/second_decoder/cell.rs"]
mod cell;
#[path = "../../tests/tests/second_decoder/known.rs"]
mod known;

macro_rules! captured {
    ($($name:literal)*) => {
        [$(include_bytes!(concat!("../../tests/fixtures/", $name, ".binlog")).as_slice()),*]
    };
}

/// Every column type, and images without some columns.
const FILES: [&[u8]; 17] = captured!(
    "captured/types-binary" "captured/types-bit" "captured/types-decimal" "captured/types-enum-set"
    "captured/types-float" "captured/types-geometry" "captured/types-integer" "captured/types-json"
    "captured/types-temporal" "captured/types-text" "captured/types-vector" "captured/partial-json"
    "captured/mysql56-old-temporals" "cases/BL-11" "cases/BL-13" "cases/BL-15" "text/every-type"
);

/// A row event, and what stands before it that a decoder needs.
pub struct Captured {
    table: Arc<TableVersion>,
    /// Format description and table map, whole.
    before: [&'static [u8]; 2],
    event: &'static [u8],
    /// Where the rows begin, counted from the head of the event.
    rows_at: usize,
}

impl Captured {
    /// Bytes of its rows.
    pub fn rows_len(&self) -> usize {
        self.event.len() - 4 - self.rows_at
    }

    /// The table map, its type code and the event, as [`row_image`] takes them.
    pub fn as_row_image(&self) -> Vec<u8> {
        let body = |event: &'static [u8]| &event[EventHeader::LENGTH..event.len() - 4];
        let map = body(self.before[1]);
        let length = u16::try_from(map.len()).expect("a table map of less than 64 KiB");
        [&length.to_le_bytes(), map, &[self.event[4]], body(self.event)].concat()
    }
}

/// The row events of [`FILES`].
pub fn events() -> &'static [Captured] {
    static EVENTS: OnceLock<Vec<Captured>> = OnceLock::new();
    EVENTS.get_or_init(|| FILES.into_iter().flat_map(of_file).collect())
}

fn of_file(file: &'static [u8]) -> Vec<Captured> {
    let (mut maps, mut found, mut rest) = (TableMaps::new(), Vec::new(), &file[4..]);
    let (mut format, mut map) = (None, None);
    while rest.len() >= EventHeader::LENGTH {
        let size = EventHeader::parse(rest).expect("a header").size();
        let (event, behind) = rest.split_at(size);
        rest = behind;
        // The captured files have checksums.
        let (code, body) = (event[4], &event[EventHeader::LENGTH..size - 4]);
        match code {
            15 => format = Some(event),
            19 => map = maps.open(body).ok().map(|table| (event, table)),
            _ if RowsKind::of(code).is_some() => {
                let (Some(format), Some((map, table))) = (format, &map) else { continue };
                let Some((_, at)) = row_image::head(code, body, table.columns().len()) else { continue };
                let (table, rows_at) = (Arc::clone(table), EventHeader::LENGTH + at);
                // One with another table map in between is left out.
                if RowsHead::parse(code, body).is_ok_and(|head| maps.get(head.table_id) == Some(&table)) {
                    found.push(Captured { table, before: [format, map], event, rows_at });
                }
            }
            _ => {}
        }
    }
    assert!(!found.is_empty(), "no row events in a captured file");
    found
}

/// Two bytes choose an event; each three after them change a byte of its rows: where, and by what.
pub fn check(data: &[u8]) {
    let mut found = Found::default();
    compare(data, &mut found);
    assert!(found.differences.is_empty(), "{:?}", found.differences);
}

/// What comparing came to.
#[derive(Default)]
pub struct Found {
    /// Values compared.
    pub compared: usize,
    /// Those that differ, each once.
    pub differences: BTreeSet<String>,
}

/// As [`check`], but goes on.
pub fn compare(data: &[u8], found: &mut Found) {
    let Some((chosen, changes)) = data.split_first_chunk::<2>() else { return };
    let all = events();
    let captured = &all[usize::from(u16::from_le_bytes(*chosen)) % all.len()];
    let mut event = captured.event.to_vec();
    let end = event.len() - 4;
    for [low, high, by] in changes.as_chunks::<3>().0 {
        let at = captured.rows_at + usize::from(u16::from_le_bytes([*low, *high])) % (end - captured.rows_at);
        event[at] ^= by;
    }
    let body = Bytes::copy_from_slice(&event[EventHeader::LENGTH..end]);
    let Ok(head) = RowsHead::parse(event[4], &body) else { return };
    let Ok(ours) = RowsEvent::with_limit(head, Arc::clone(&captured.table), body, 1 << 20) else { return };
    let Some(theirs) = guarded(|| theirs(captured, &event)).flatten() else { return };
    let mut scratch = RowScratch::new();
    let (mut rows, mut theirs) = (ours.cursor(&mut scratch), theirs.iter());
    while let Ok(Some(change)) = rows.next() {
        let Some((before, after)) = theirs.next() else {
            found.differences.insert("mysql_common has fewer rows".to_owned());
            return;
        };
        for (ours, theirs) in [(change.before(), before), (change.after(), after)] {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                image(ours, theirs, found);
            }
        }
    }
}

fn image(ours: Row<'_>, theirs: &BinlogRow, found: &mut Found) {
    let mut at = 0;
    for (index, column) in ours.table().columns().iter().enumerate() {
        if !ours.is_present(index) {
            continue;
        }
        let place = at;
        at += 1;
        let Ok(value) = ours.get(index) else { continue };
        // A document that does not add up is read as far as each of the two goes, and `mysql_common` takes a
        // DECIMAL in one at its word: it asks for as much memory as that has digits, and the process ends.
        if matches!(value, Value::Json(json) if json.validate().is_err() || json.write_text(&mut String::new()).is_err())
        {
            continue;
        }
        let Some(theirs) = theirs.as_ref(place).and_then(|value| guarded(|| theirs_as_cell(value, column)))
        else {
            continue;
        };
        if matches!(theirs, Cell::Unreadable(_)) {
            continue;
        }
        let ours = ours_as_cell(value);
        let pair = Pair { column, ours: &ours, theirs: &theirs };
        found.compared += 1;
        if ours != theirs && !KNOWN.iter().any(|known| (known.is)(&pair)) && !minus_zero(&pair) {
            let said = format!("{:?}: {} instead of {}", column.column_type, theirs.shown(), ours.shown());
            found.differences.insert(said);
        }
    }
}

/// `mysql_common` shows a DECIMAL of zero with its minus bit as `-0.0`, the server and the core as `0.0`. Servers do
/// not store it, so no captured file has one.
fn minus_zero(pair: &Pair<'_>) -> bool {
    let (Cell::Text(ours), Cell::Text(theirs)) = (pair.ours, pair.theirs) else { return false };
    matches!(pair.column.column_type, ColumnType::Decimal { .. })
        && theirs.strip_prefix('-') == Some(ours)
        && ours.chars().all(|c| c == '0' || c == '.')
}

type Rows = Vec<(Option<BinlogRow>, Option<BinlogRow>)>;

fn theirs(captured: &Captured, event: &[u8]) -> Option<Rows> {
    let mut reader = EventStreamReader::new(BinlogVersion::Version4);
    for before in captured.before {
        reader.read(before).ok()?;
    }
    let event = reader.read(event).ok()??;
    let Ok(Some(EventData::RowsEvent(rows))) = event.read_data() else { return None };
    rows.rows(reader.get_tme(rows.table_id())?).collect::<Result<_, _>>().ok()
}

/// What `run` gives, or nothing if it panics: a panic in there is no finding, whatever libFuzzer's hook makes of one.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    thread_local!(static GUARDED: Flag<bool> = const { Flag::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                hook(info);
            }
        }));
    });
    GUARDED.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(false);
    done.ok()
}
