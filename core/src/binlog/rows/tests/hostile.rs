//! Bytes that no server writes: errors, never a panic, never another meaning.

use super::reference::Cell;
use super::*;
use crate::value::{TableVersion, ValueError, Visit};

/// The values as they come by the methods of their kinds.
#[derive(Default)]
struct ByKind(Vec<String>);

impl<'a> Visit<'a> for ByKind {
    fn value(&mut self, column: usize, value: Value<'a>) -> Result<(), ValueFault> {
        assert_eq!(column, self.0.len());
        self.0.push(shown(value));
        Ok(())
    }
}

/// The values of all rows, a list for each image; the last one may be half full.
#[derive(Default)]
struct ByEvent(Vec<(RowImage, ByKind, bool)>);

impl VisitRows<'_> for ByEvent {
    fn begin(&mut self, image: RowImage) {
        self.0.push((image, ByKind::default(), false));
    }

    fn end(&mut self, image: RowImage) {
        let last = self.0.last_mut().unwrap();
        assert_eq!((last.0, last.2), (image, false));
        last.2 = true;
    }
}

impl<'a> Visit<'a> for ByEvent {
    fn value(&mut self, column: usize, value: Value<'a>) -> Result<(), ValueFault> {
        let last = self.0.last_mut().unwrap();
        assert!(!last.2);
        last.1.value(column, value)
    }
}

/// The visit of the whole event gives what the images give one by one, up to the first fault of either kind.
fn visit_all(
    event: &RowsEvent,
    images: &[(RowImage, Vec<String>, Result<(), ValueError>)],
    end: Result<u64, RowsError>,
) {
    let mut all = ByEvent::default();
    let ended = event.visit(&mut all);
    let fault = images.iter().position(|(.., fault)| fault.is_err());
    match fault {
        Some(at) => assert_eq!(ended, Err(VisitError::Value(images[at].2.unwrap_err()))),
        None => match (ended, end) {
            // It lies in the first image of a row whose second does not lie in the event.
            (Err(VisitError::Value(_)), Err(_)) => {
                assert!(event.second.is_some() && all.0.len() == images.len() + 1);
            }
            _ => assert_eq!(ended, end.map(|_| ()).map_err(VisitError::Rows)),
        },
    }
    let whole = fault.map_or(images, |at| &images[..=at]);
    for (found, (image, values, fault)) in all.0.iter().zip(whole) {
        assert_eq!((&found.0, &found.1.0, found.2), (image, values, fault.is_ok()));
    }
    assert!(all.0.len() >= whole.len(), "an image is missing");
    assert!(ended.is_err() || all.0.len() == whole.len(), "an image too many");
}

/// Everything that can be asked of an event, so that a panic anywhere shows; and the plain walk says the same.
fn ask_everything(event: &RowsEvent, scratch: &mut RowScratch) {
    let counted = event.validate();
    let (plain, plain_end) = reference::rows(event);
    let mut walked = 0;
    let mut images = Vec::new();
    let mut cursor = event.cursor(scratch);
    let end = loop {
        match cursor.next() {
            Ok(Some(change)) => {
                let cells = &plain[walked];
                walked += 1;
                let both = [(RowImage::Before, change.before()), (RowImage::After, change.after())];
                let both = both.into_iter().filter_map(|(image, row)| Some((image, row?)));
                for ((image, row), cells) in both.zip(cells) {
                    let mut visited = Vec::new();
                    assert_eq!(cells.len(), row.len());
                    let fault = row.each(|_, value| visited.push(shown(value)));
                    let mut given = ByKind::default();
                    assert_eq!((row.visit(&mut given), given.0), (fault, visited.clone()), "visit and each");
                    images.push((image, visited.clone(), fault));
                    for (index, expected) in cells.iter().enumerate() {
                        let cell = match (row.is_present(index), row.is_null(index), row.raw(index)) {
                            (false, false, None) => Cell::Absent,
                            (true, true, None) => Cell::Null,
                            (true, false, Some(bytes)) => Cell::Value(bytes),
                            other => panic!("{other:?}"),
                        };
                        assert_eq!(cell, *expected, "column {index}");
                        match (row.get(index), visited.get(index)) {
                            (Ok(value), Some(visited)) => assert_eq!(shown(value), *visited),
                            (_, None) => assert!(fault.unwrap_err().column <= index),
                            (Err(_), Some(_)) => panic!("each gives what get refuses"),
                        }
                        if let Ok(value) = row.get(index) {
                            assert!(shown(value).len() < 1 << 20);
                        }
                    }
                }
            }
            Ok(None) => break Ok(walked as u64),
            Err(e) => break Err(e),
        }
    };
    assert_eq!((walked, end), (plain.len(), plain_end), "the cursor and the plain walk agree");
    assert_eq!(counted, end, "validate and the cursor agree");
    visit_all(event, &images, end);
}

/// All events of a case again, with one byte of one of them changed, or cut short.
#[test]
fn no_changed_or_missing_byte_panics() {
    let mut scratch = RowScratch::new();
    let mut refused = 0;
    for (name, bytes) in ALL {
        let mut maps = TableMaps::new();
        for (type_code, body) in events(bytes) {
            // The long ones by samples: every byte of the head, then every 97th.
            let spots = (0..body.len()).filter(|at| *at < 120 || at % 97 == 0);
            if type_code == 19 {
                for at in spots {
                    refused += usize::from(parse_table_map(&body[..at]).is_err());
                    for flip in [1, 0x80, 0xff] {
                        let mut changed = body.to_vec();
                        changed[at] ^= flip;
                        refused += usize::from(parse_table_map(&changed).is_err());
                    }
                }
                maps.open(&body).unwrap();
            } else if RowsKind::of(type_code).is_some() {
                let mut attempt = |body: Bytes| {
                    let Ok(head) = RowsHead::parse(type_code, &body) else { return 1 };
                    let Some(table) = maps.get(head.table_id) else { return 1 };
                    let Ok(event) = RowsEvent::new(head, Arc::clone(table), body) else { return 1 };
                    ask_everything(&event, &mut scratch);
                    0
                };
                for at in spots {
                    refused += attempt(body.slice(..at));
                    for flip in [1, 2, 0x10, 0x80, 0xff] {
                        let mut changed = body.to_vec();
                        changed[at] ^= flip;
                        refused += attempt(changed.into());
                    }
                }
            }
        }
        assert!(refused > 0, "{name}: some of it must be refused");
    }
}

#[test]
fn an_event_cut_anywhere_in_its_rows_is_not_valid() {
    for (name, bytes) in ALL {
        for event in rows_of(bytes).into_iter().flatten() {
            let whole = event.validate().unwrap();
            for end in event.rows_at..event.bytes.len() {
                let cut = RowsEvent { bytes: event.bytes.slice(..end), ..event.clone() };
                // A cut between two rows is a shorter event; the checksum is there for that.
                assert!(cut.validate().map_or(true, |rows| rows < whole), "{name} at {end}");
            }
            let mut longer = event.bytes.to_vec();
            longer.push(0);
            let longer = RowsEvent { bytes: longer.into(), ..event.clone() };
            assert_ne!(longer.validate(), Ok(whole), "{name}");
        }
    }
}

#[test]
fn nothing_of_a_row_is_in_debug_output() {
    let mut scratch = RowScratch::new();
    for event in rows_of(file("BL-43")).into_iter().flatten() {
        let mut said = format!("{event:?}");
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next().unwrap() {
            said += &format!("{change:?}");
            for row in [change.before(), change.after()].into_iter().flatten() {
                row.each(|_, value| said += &format!("{value:?}")).unwrap();
            }
        }
        for secret in ["one", "two", "three", "2024", "100"] {
            assert!(!said.contains(secret), "{said}");
        }
    }
}

#[test]
fn heads_of_both_versions() {
    // Version 1 has no extra data; version 2 with an NDB chunk has it stepped over.
    let v1 = [0x6f, 0, 0, 0, 0, 0, 0x01, 0x00, 0x01, 0xff, 0x00, 0x07];
    let head = RowsHead::parse(23, &v1).unwrap();
    assert_eq!((head.kind, head.table_id, head.flags, head.body_at), (RowsKind::Insert, 0x6f, 1, 8));
    let v2 = [0x6f, 0, 0, 0, 0, 0, 0x12, 0x00, 0x05, 0x00, 0x00, 0x03, 0x01, 0x01, 0xff, 0x00, 0x07];
    let head = RowsHead::parse(31, &v2).unwrap();
    assert_eq!((head.kind, head.body_at, head.ends_statement()), (RowsKind::Update, 13, false));
    assert!(RowsHead::parse(32, &[0x6f, 0, 0, 0, 0, 0, 1, 0, 1, 0]).is_err(), "extra length of 1");
    assert_eq!(RowsHead::parse(2, &v1), Err(RowsError::NotRows(2)));
    let dummy = [0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 2, 0];
    assert!(RowsHead::parse(32, &dummy).unwrap().is_dummy());
}

#[test]
fn another_number_of_columns_than_the_table_map_is_a_mismatch() {
    let event = rows_of(file("BL-05")).remove(0).unwrap();
    let narrow = Arc::clone(rows_of(file("BL-29")).remove(0).unwrap().table());
    let error = RowsEvent::new(event.head, narrow, event.bytes.clone()).unwrap_err();
    assert_eq!(error, RowsError::TableMapMismatch { mapped: 2, found: 4 });
}

#[test]
fn a_row_without_columns_is_one_row_or_malformed() {
    // INSERT without values under MINIMAL: no column present, no byte of rows.
    let table = Arc::clone(rows_of(file("BL-29")).remove(0).unwrap().table());
    for (rows, want) in [(&[][..], Ok(1)), (&[1, 2, 3], Err(RowsError::Malformed("rows without columns")))] {
        let mut body = std::vec![0x6f, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 0b1111_1100];
        body.extend(rows);
        let head = RowsHead::parse(30, &body).unwrap();
        let event = RowsEvent::new(head, Arc::clone(&table), body.into()).unwrap();
        assert_eq!(event.validate(), want);
        ask_everything(&event, &mut RowScratch::new());
    }
}

#[test]
fn the_columns_of_a_wide_table_are_visited_in_order() {
    for event in rows_of(file("BL-15")) {
        ask_everything(&event.unwrap(), &mut RowScratch::new());
    }
}

/// Column types with their metadata.
const TYPES_AND_METADATA: [(u8, &[u8]); 30] = [
    (1, &[]),
    (2, &[]),
    (3, &[]),
    (4, &[4]),
    (5, &[8]),
    (7, &[]),
    (8, &[]),
    (9, &[]),
    (10, &[]),
    (11, &[]),
    (12, &[]),
    (13, &[]),
    (15, &[200, 0]),
    (15, &[44, 1]),
    (16, &[3, 1]),
    (17, &[3]),
    (18, &[6]),
    (19, &[1]),
    (242, &[4]),
    (245, &[4]),
    (246, &[20, 7]),
    (252, &[1]),
    (252, &[2]),
    (252, &[3]),
    (252, &[4]),
    (254, &[0xfe, 10]),
    (254, &[0xee, 10]),
    (254, &[0xf7, 2]),
    (254, &[0xf8, 3]),
    (255, &[4]),
];

fn table_of(picks: &[usize]) -> Arc<TableVersion> {
    let picked = || picks.iter().map(|n| TYPES_AND_METADATA[n % TYPES_AND_METADATA.len()]);
    let mut body = std::vec![1, 0, 0, 0, 0, 0, 1, 0, 1, b'd', 0, 1, b't', 0, picks.len() as u8];
    body.extend(picked().map(|(type_code, _)| type_code));
    let metadata: Vec<u8> = picked().flat_map(|(_, metadata)| metadata.iter().copied()).collect();
    body.push(metadata.len() as u8);
    body.extend(metadata);
    body.extend(std::vec![0xff; picks.len().div_ceil(8)]);
    Arc::new(parse_table_map(&body).unwrap())
}

proptest::proptest! {
    /// Any table, any bytes for rows: an error or values, and `validate` says the same as the walk.
    #[test]
    fn any_bytes_under_any_table(
        picks in proptest::collection::vec(0usize..30, 1..72),
        // Small bytes are short lengths, so that more than the first column is reached.
        present in proptest::collection::vec(proptest::prelude::any::<u8>(), 18),
        full: bool,
        rows in proptest::collection::vec(proptest::prop_oneof![0u8..4, proptest::prelude::any::<u8>()], 0..600),
        type_code in proptest::sample::select(std::vec![23u8, 24, 25, 30, 31, 32]),
    ) {
        let mut body = std::vec![1, 0, 0, 0, 0, 0, 1, 0];
        if type_code >= 30 {
            body.extend([2, 0]);
        }
        body.push(picks.len() as u8);
        let bitmap = picks.len().div_ceil(8);
        for image in 0..if matches!(type_code, 24 | 31) { 2 } else { 1 } {
            let bits = &present[image * bitmap..][..bitmap];
            body.extend(bits.iter().map(|b| if full { 0xff } else { *b }));
        }
        body.extend(rows);
        let head = RowsHead::parse(type_code, &body).unwrap();
        let event = RowsEvent::new(head, table_of(&picks), body.into()).unwrap();
        ask_everything(&event, &mut RowScratch::new());
    }
}
