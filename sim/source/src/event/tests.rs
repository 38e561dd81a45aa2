//! Every captured file of a real server, read and written again byte for byte.

use std::{fs, path::PathBuf};

use super::*;

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures"));
    let mut found = Vec::new();
    for folder in ["cases", "binlog", "text"] {
        for entry in fs::read_dir(root.join(folder)).expect("the fixtures of the repository") {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ext| ext == "binlog" || ext == "events") {
                found.push((path.display().to_string(), fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 25, "only {} fixtures", found.len());
    found
}

/// The events of a captured file or link, as bytes.
fn split(name: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let link = name.ends_with(".events");
    let mut rest = if link { bytes } else { bytes.strip_prefix(b"\xfebin").unwrap() };
    while !rest.is_empty() {
        let (at, skip) = if link { (0, 4) } else { (9, 0) };
        let size = u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        out.push(rest[skip..skip + size].to_vec());
        rest = &rest[skip + size..];
    }
    out
}

#[test]
fn every_captured_event_is_read_and_written_again_byte_for_byte() {
    let mut seen = std::collections::BTreeMap::new();
    for (name, bytes) in fixtures() {
        let mut reader = Reader::new(!name.contains("link-none") && !name.contains("link-v1"));
        for (n, bytes) in split(&name, &bytes).iter().enumerate() {
            let event = reader.event(bytes);
            if name.contains("link-none") && bytes[4] == code::FORMAT_DESCRIPTION && event.is_err() {
                // The dump thread changed it and left the sum as it was.
                continue;
            }
            let event = event.unwrap_or_else(|e| panic!("{name}, event {n}: {e:?}\n{bytes:02x?}"));
            *seen.entry(event.body.code()).or_insert(0) += 1;
            assert_eq!(hex(&event.encode(reader.crc32())), hex(bytes), "{name}, event {n}: {event:?}");
            if matches!(event.body, Body::Payload { .. }) {
                let inner =
                    reader.payload(&event.body).unwrap_or_else(|e| panic!("{name}, inside {n}: {e:?}"));
                assert!(inner.len() > 2, "{name}");
            }
        }
    }
    for code in [2, 4, 15, 16, 19, 27, 30, 31, 32, 33, 35, 38, 40, 41, 42] {
        assert!(seen.get(&code).is_some_and(|n| *n > 0), "no captured event of type {code}: {seen:?}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The head that this package's own servers write is the head that a 9.7.4 server writes.
#[test]
fn a_format_description_of_our_own_is_the_captured_one() {
    let (name, bytes) = fixtures().into_iter().find(|(name, _)| name.contains("BL-01")).unwrap();
    let mut reader = Reader::new(true);
    let event = reader.event(&split(&name, &bytes)[0]).unwrap();
    let Body::FormatDescription(captured) = &event.body else { panic!("{event:?}") };
    assert_eq!(*captured, FormatDescription::of("9.7.4-2", captured.created, true));
}
