//! The captured binlog files and the server's list of their events belong together, byte for byte.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"\xfebin";
const HEADER_BYTES: usize = 19;

#[test]
fn every_captured_file_is_whole_and_is_what_its_server_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/captured");
    let mut scripts = 0;
    let mut types = BTreeMap::new();
    for path in files(&folder, "sql") {
        scripts += 1;
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let truth_asked = fs::read(&path).unwrap().windows(9).any(|window| window == b"-- truth:");
        assert_eq!(truth_asked, folder.join(format!("{name}.tsv")).exists(), "{name}");
        let listed = fs::read(folder.join(format!("{name}.events.tsv"))).unwrap();
        let listed = String::from_utf8(listed).unwrap();
        let mut listed_by_file: BTreeMap<&str, Vec<[&str; 4]>> = BTreeMap::new();
        for line in listed.strip_suffix('\n').unwrap().split('\n').skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [log_name, position, kind, server_id, end] = fields[..5].try_into().unwrap();
            if position == end {
                continue; // inside a transaction payload
            }
            listed_by_file.entry(log_name).or_default().push([position, kind, server_id, end]);
        }
        let single = listed_by_file.len() == 1;
        for (at, (log_name, expected)) in listed_by_file.iter().enumerate() {
            let suffix = if single { String::new() } else { format!(".{}", at + 1) };
            let bytes = fs::read(folder.join(format!("{name}{suffix}.binlog"))).unwrap();
            // Small, but for the documents that need more than 64 KiB.
            let most = if name == "partial-json-whole" { 500_000 } else { 100_000 };
            assert!(bytes.len() < most, "{name}: {}", bytes.len());
            let events = events(&bytes);
            assert_eq!(events.len(), expected.len(), "{name} {log_name}");
            for (event, [position, kind, server_id, end]) in events.iter().zip(expected) {
                let read = [event.position, event.server_id, event.end].map(|number| number.to_string());
                assert_eq!(
                    [&read[0], &read[1], &read[2]],
                    [*position, *server_id, *end],
                    "{name} {log_name} {kind}"
                );
                // One type by number has one name, everywhere.
                let named =
                    *types.entry((event.kind, name.starts_with("mariadb"))).or_insert((*kind).to_owned())
                        == *kind;
                assert!(named, "{name}: event type {} is named {kind}", event.kind);
            }
        }
    }
    assert!(scripts >= 40, "{scripts}");
    assert!(types.len() >= 30, "{types:?}");
}

struct Event {
    position: u32,
    kind: u8,
    server_id: u32,
    end: u32,
}

/// The headers of a file's events, which must fill the file exactly.
fn events(bytes: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    assert_eq!(&bytes[..4], MAGIC);
    let mut at = 4;
    while at < bytes.len() {
        let header = &bytes[at..at + HEADER_BYTES];
        let number = |from: usize| u32::from_le_bytes(header[from..from + 4].try_into().unwrap());
        let size = number(9) as usize;
        assert!(size >= HEADER_BYTES && at + size <= bytes.len());
        events.push(Event { position: at as u32, kind: header[4], server_id: number(5), end: number(13) });
        at += size;
    }
    events
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}
