//! Partial updates of JSON documents: event 39.

use std::collections::BTreeMap;

use super::*;
use crate::value::json::{JsonDiffError, JsonError};

const CAPTURED: &[u8] = include_bytes!("../../../../../tests/fixtures/captured/partial-json.binlog");

#[test]
fn a_partial_update_has_whole_images() {
    let pad = "x".repeat(500);
    let (one, two) = (format!(r#"{{"n": 1, "pad": "{pad}"}}"#), format!(r#"{{"n": 2, "pad": "{pad}"}}"#));
    let none = format!(r#"{{"pad": "{pad}"}}"#);
    assert_eq!(
        changes("BL-21"),
        [
            format!("insert t: 1 | {one} | 1"),
            format!("insert t: 2 | {one} | 1"),
            format!("update t: 1 | {one} | 1 -> 1 | {two} | 2"),
            format!("update t: 2 | {one} | 1 -> 2 | {none} | 1"),
            format!("update t: 2 | {none} | 1 -> 2 | {none} | 9"),
        ]
    );
    assert!(rows_of(file("BL-21")).iter().flatten().all(|event| event.kind() != RowsKind::PartialUpdate));
}

/// Every form that a session may log, MINIMAL and NOBLOB images among them.
#[test]
fn a_document_without_its_before_image_is_a_partial_row_image() {
    let (mut state, mut refused) = (BTreeMap::new(), Vec::new());
    let mut scratch = RowScratch::new();
    for event in rows_of(CAPTURED) {
        let event = match event {
            Ok(event) => event,
            Err(why) => {
                refused.push(why);
                continue;
            }
        };
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next().unwrap() {
            let id = shown(change.before().or(change.after()).unwrap().get(0).unwrap());
            match change.after() {
                Some(after) => state.insert(id.parse::<u32>().unwrap(), row_text(after).replace(" | ", "\t")),
                None => state.remove(&id.parse::<u32>().unwrap()),
            };
        }
    }
    // The statement with MINIMAL images. That with NOBLOB has the documents that it changes.
    assert_eq!(refused, [RowsError::PartialRowImage]);
    let truth = include_str!("../../../../../tests/fixtures/captured/partial-json.tsv");
    for line in truth.lines().skip(1) {
        let id: u32 = line.split('\t').next().unwrap().parse().unwrap();
        // Rows 1 and 3 are those that were changed under such images.
        if ![1, 3].contains(&id) {
            let want = line.replace("\\\\", "\\").replace("\\N", "NULL");
            assert_eq!(state.remove(&id), Some(want));
        }
    }
    assert!(state.keys().all(|id| [1, 3].contains(id)));
}

/// The update of row 1 of `BL-21`, with the after image from its value options on replaced.
fn forged(after: &str) -> Result<RowsEvent, RowsError> {
    let mut maps = TableMaps::new();
    for (type_code, body) in events(file("BL-21")) {
        if type_code == 19 {
            maps.open(&body).unwrap();
        }
        if type_code == 39 {
            let head = RowsHead::parse(39, &body).unwrap();
            let table = Arc::clone(maps.get(head.table_id).unwrap());
            let image = [0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00];
            let at = body.windows(image.len()).position(|bytes| bytes == image).unwrap();
            let after: Vec<u8> = after
                .split_whitespace()
                .flat_map(|word| (0..word.len()).step_by(2).map(move |i| &word[i..i + 2]))
                .map(|byte| u8::from_str_radix(byte, 16).unwrap())
                .collect();
            return RowsEvent::with_limit(head, table, [&body[..at], &after].concat().into(), 2_000);
        }
    }
    panic!("a partial update")
}

#[test]
fn what_no_server_writes_is_refused_with_its_column() {
    use JsonDiffError::*;
    let refused = |reason| Err(RowsError::PartialUpdate { row: 0, column: 1, reason });
    // Value options, partial bits, NULL bits, id, differences with their length, c.
    let differences = |hex: &str| format!("01 01 00 01000000 {:02x}000000 {hex} 02000000", hex.len() / 2);
    for (after, want) in [
        (differences(""), Ok(())),
        // $.n becomes 5, is removed; $.m becomes 5.
        (differences("0003242e6e03050500"), Ok(())),
        (differences("0203242e6e"), Ok(())),
        (differences("0103242e6d03050500"), Ok(())),
        // A whole document instead, and no options at all.
        ("01 00 00 01000000 03000000 050500 02000000".to_owned(), Ok(())),
        ("00 00 01000000 03000000 050500 02000000".to_owned(), Ok(())),
        // NULL, which no differences follow.
        ("01 01 02 01000000 02000000".to_owned(), Ok(())),
        (
            "02 00 01000000 03000000 050500 02000000".to_owned(),
            Err(RowsError::Malformed("unknown row value options")),
        ),
        ("01".to_owned(), Err(RowsError::Malformed("the bytes end inside a field"))),
        ("01 01 00 01000000 05000000 0203242e".to_owned(), Err(RowsError::Row { row: 0, column: 1 })),
        ("01 01 00 01000000 00000000".to_owned(), Err(RowsError::Row { row: 0, column: 2 })),
        (differences("0303242e6e"), refused(Operation(3))),
        (differences("0003242e6e"), refused(Short)),
        (differences("0003242e6e040505"), refused(Short)),
        (differences("00fb"), refused(Short)),
        (differences("00012403050500"), refused(Root)),
        (differences("0203242a2a"), refused(Path)),
        (differences("0203242e78"), refused(NotThere)),
        (differences("02045b302e6e"), refused(Path)),
        (differences("0204245b305d"), refused(NotThere)),
        (differences("0005242e6e2e6e03050500"), refused(NotThere)),
        (differences("0103242e6e03050500"), refused(AlreadyThere)),
        (differences("0003242e6e020505"), refused(Document(JsonError::Short))),
        (differences("0003242e6e0110"), refused(Document(JsonError::Type(16)))),
    ] {
        let found = forged(&after).and_then(|event| event.validate().map(|_| ()));
        assert_eq!(found, want, "{after}");
    }
}

/// A partial update that is small on the wire and large when it is whole has the limit of any event.
#[test]
fn a_whole_image_above_the_limit_is_refused() {
    let pad = "61".repeat(1_000);
    // $.m becomes a string of 1,000 bytes: with two documents of 500 that is above 2,000.
    let differences = format!("0103242e6dfceb030ce807{pad}");
    let length = u32::try_from(differences.len() / 2).unwrap().swap_bytes();
    let found = forged(&format!("01 01 00 01000000 {length:08x} {differences} 02000000"));
    assert_eq!(found.map(|_| ()), Err(RowsError::TooLarge));
}
