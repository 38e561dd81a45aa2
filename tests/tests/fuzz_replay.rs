//! The fuzz targets' checks over their corpora, saved crashes and every captured file, without libFuzzer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{fs, path::Path};

#[path = "../../fuzz/src/bodies.rs"]
mod bodies;

/// Every file below a folder; at least `least` of them.
fn each(folder: &str, least: usize, check: impl Fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut seen = 0;
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                check(&fs::read(&path).unwrap());
                seen += 1;
            }
        }
    }
    assert!(seen >= least, "{}: only {seen} files", root.display());
}

#[test]
fn framer() {
    each("fuzz/corpus/framer", 2, bodies::framer);
    each("tests/fixtures/session", 5, |bytes| {
        for step in [1, 3, 7, 250] {
            bodies::framer(&[&[step], bytes].concat());
        }
    });
}

#[test]
fn file() {
    each("fuzz/corpus/file", 6, bodies::file);
    each("tests/fixtures", 50, bodies::file);
}

#[test]
fn json() {
    each("fuzz/corpus/json", 20, |bytes| {
        bodies::json(bytes);
        // Any one byte of a seed changed, or the seed cut there.
        for at in 0..bytes.len() {
            bodies::json(bytes.get(..at).unwrap());
            for flip in [1, 0x80, 0xff] {
                let mut changed = bytes.to_vec();
                *changed.get_mut(at).unwrap() ^= flip;
                bodies::json(&changed);
            }
        }
    });
}

#[test]
fn gtid_set() {
    each("fuzz/corpus/gtid_set", 2, bodies::gtid_set);
}

#[test]
fn event() {
    each("fuzz/corpus/event", 20, bodies::event::check);
}

#[test]
fn row_image() {
    each("fuzz/corpus/row_image", 20, |bytes| {
        bodies::row_image::check(bytes);
        // Any one byte of a small seed changed, or the seed cut there.
        for at in 0..bytes.len().min(400) {
            bodies::row_image::check(bytes.get(..at).unwrap());
            for flip in [1, 0x80, 0xff] {
                let mut changed = bytes.to_vec();
                changed[at] ^= flip;
                bodies::row_image::check(&changed);
            }
        }
    });
}

/// Every byte of the rows of each captured event changed, one at a time.
#[test]
fn diff() {
    each("fuzz/corpus/diff", 40, bodies::diff::check);
    let mut found = bodies::diff::Found::default();
    for (n, event) in (0u16..).zip(bodies::diff::events()) {
        for at in 0..u16::try_from(event.rows_len()).unwrap().min(400) {
            bodies::diff::compare(&[&n.to_le_bytes()[..], &at.to_le_bytes(), &[1]].concat(), &mut found);
            bodies::diff::compare(&[&n.to_le_bytes()[..], &at.to_le_bytes(), &[0x90]].concat(), &mut found);
        }
    }
    assert!(found.differences.is_empty(), "{:#?}", found.differences);
    assert!(found.compared > 10_000, "only {} values were compared", found.compared);
}

#[test]
fn handshake() {
    each("fuzz/corpus/handshake", 10, bodies::handshake::check);
}

#[test]
fn payload() {
    each("fuzz/corpus/payload", 4, bodies::payload::check);
}

#[test]
fn trace() {
    each("fuzz/corpus/trace", 4, bodies::trace::check);
}

#[test]
fn world() {
    each("fuzz/corpus/world", 8, bodies::world::check);
}
