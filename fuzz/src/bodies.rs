//! What each target checks. Also replayed by the test suite over the corpora, without libFuzzer.

#![allow(dead_code, reason = "each target uses one of them")]

pub mod diff;
pub mod event;
pub mod handshake;
pub mod payload;
pub mod row_image;
pub mod trace;
pub mod world;

use std::collections::BTreeMap;

use bytes::Bytes;
use capstan_core::{
    assemble::{Assembler, Setup},
    binlog::{FileReader, rows::RowWalk},
    capture::CapturedSet,
    deliver::{Event, Position, Seq},
    gtid::GtidSet,
    link::Framer,
    text::{TextOptions, write_change},
    value::json::{Json, JsonDiffError, JsonError, JsonValue},
    wire::Reader,
};

/// Any cut of the same bytes gives the same payloads and the same error.
///
/// The first byte chooses how the rest is cut.
pub fn framer(data: &[u8]) {
    let Some((&step, bytes)) = data.split_first() else { return };
    let whole = payloads(bytes, bytes.len().max(1));
    let cut = payloads(bytes, usize::from(step).max(1));
    assert_eq!(whole, cut, "cut every {step} bytes");
}

fn payloads(bytes: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<String>) {
    let mut framer = Framer::new(1 << 20);
    let mut seen = Vec::new();
    for chunk in bytes.chunks(step) {
        framer.push(Bytes::copy_from_slice(chunk));
        loop {
            match framer.next_payload() {
                Ok(Some(payload)) => {
                    assert!(payload.retained >= payload.bytes.len());
                    seen.push(payload.bytes.to_vec());
                }
                Ok(None) => break,
                Err(error) => return (seen, Some(error.to_string())),
            }
        }
        assert!(framer.wants() > 0, "idle and yet nothing is wanted");
    }
    (seen, None)
}

/// A binlog file of any bytes: no panic, no unbounded memory, whole units only.
pub fn file(data: &[u8]) {
    let mut reader = FileReader::new(1 << 20);
    let mut assembler = Assembler::new(Setup {
        captured: CapturedSet::everything(),
        lower_case_table_names: 0,
        position: Position::new(GtidSet::new(), ""),
        verify: BTreeMap::new(),
        until: None,
        checksum: true,
        stream_above: 1 << 16,
        row_event_max: 1 << 20,
        offline: true,
    });
    reader.feed(data);
    let (mut next, mut open, mut walk) = (Seq(1), false, RowWalk::default());
    let mut text = String::new();
    while let Ok(Some((offset, event))) = reader.next_event() {
        let done = assembler.file_event(event, "bin.000001", offset);
        while let Some(event) = assembler.next_emitted(&mut next) {
            match event {
                Event::TxBegin(_) => assert!(!std::mem::replace(&mut open, true), "a unit inside a unit"),
                Event::TxCommit(_) | Event::TxAbort { .. } => {
                    assert!(std::mem::replace(&mut open, false), "an end without a beginning");
                }
                Event::Rows(rows) => {
                    assert!(open, "rows outside of a unit");
                    walk.start(&rows);
                    while let Ok(Some(row)) = walk.next(&rows) {
                        text.clear();
                        // A value no server can have stored is an error; what is checked is that it is one.
                        let _ = write_change(&mut text, row.before(), row.after(), TextOptions::default());
                    }
                }
                Event::Table(_) | Event::SchemaChange(_) => assert!(open, "an item outside of a unit"),
                Event::Claim { .. } | Event::SnapshotRows(_) | Event::Progress { .. } => {}
            }
        }
        if done.is_err() {
            return;
        }
    }
}

/// Text and bytes of GTID sets: what is read is written back and read again as the same set.
pub fn gtid_set(data: &[u8]) {
    if let Ok(set) = GtidSet::decode(data) {
        same_again(&set);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(set) = text.parse::<GtidSet>() else { return };
    same_again(&set);
    assert_eq!(set.subtract(&set).count(), 0);
    assert!(set.is_subset(&set.union(&set)));
}

fn same_again(set: &GtidSet) {
    assert_eq!(set.to_string().parse::<GtidSet>().as_ref(), Ok(set));
    assert_eq!(GtidSet::decode(&set.encode()).as_ref(), Ok(set));
}

/// A JSON document and differences of it: no panic, answers in proportion to the bytes, and what applies gives
/// what a plain tree of another library gives.
///
/// Two bytes say how long the document is; the differences follow it.
pub fn json(data: &[u8]) {
    let Some((&length, rest)) = data.split_first_chunk::<2>() else { return };
    let (document, diffs) = rest.split_at(usize::from(u16::from_le_bytes(length)).min(rest.len()));
    let before = text_of(document);
    match Json::new(document).patched(diffs) {
        Ok(after) => {
            assert!(after.len() <= 3 * rest.len() + 64, "{} bytes of {}", after.len(), rest.len());
            let text = text_of(&after);
            if diffs.is_empty() {
                assert_eq!(after, document);
            } else if let Some(model) = before.and_then(|before| patched(&before, diffs)) {
                // Documents in each other may be deeper than one may be.
                let too_deep = || Json::new(&after).validate() == Err(JsonError::Depth);
                assert!(text.as_ref() == Some(&model) || too_deep(), "differences applied otherwise");
            }
        }
        Err(JsonDiffError::NotThere | JsonDiffError::AlreadyThere) => {
            assert!(before.and_then(|before| patched(&before, diffs)).is_none(), "differences refused");
        }
        Err(
            JsonDiffError::Short
            | JsonDiffError::Operation(_)
            | JsonDiffError::Path
            | JsonDiffError::Root
            | JsonDiffError::Document(_)
            | JsonDiffError::TooLarge
            | JsonDiffError::TooMuchWork,
        ) => {}
    }
}

/// The tree of a document by way of its text, if it is a valid one; and everything else asked of it.
fn text_of(document: &[u8]) -> Option<serde_json::Value> {
    let json = Json::new(document);
    let mut text = String::new();
    let written = json.write_text(&mut text);
    assert!(text.len() <= document.len() * 10 + 32, "{} from {}", text.len(), document.len());
    let _ = (format!("{json:?} {:?}", json.root()), json.get("a"), json.index(1));
    if let Ok(JsonValue::Object(object)) = json.root() {
        for (key, value) in object.iter().flatten() {
            assert!(json.validate().is_err() || object.get(key) == Ok(Some(value)), "a key is not found");
        }
    }
    let valid = json.validate();
    assert!(valid.is_err() || written.is_ok(), "what is valid has a text");
    let (read, again) = (json.to::<serde_json::Value>(), serde_json::to_string(&json));
    assert!(valid.is_err() || (read.is_ok() && again.is_ok()), "what is valid is read and written by serde");
    assert_eq!(read.is_ok(), written.is_ok(), "serde and the text see the same");
    if written.is_ok() {
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "the text is JSON");
    }
    valid.ok().and_then(|()| serde_json::from_str(&text).ok())
}

/// The differences applied to a tree, where all of them and their values are well formed.
fn patched(before: &serde_json::Value, diffs: &[u8]) -> Option<serde_json::Value> {
    let (mut tree, mut r) = (before.clone(), Reader::new(diffs));
    while !r.is_empty() {
        let operation = r.u8().ok()?;
        let path = std::str::from_utf8(r.lenenc_bytes().ok()?).ok()?;
        let value = if operation == 2 { serde_json::Value::Null } else { text_of(r.lenenc_bytes().ok()?)? };
        let mut legs = legs(path)?;
        let last = legs.pop()?;
        let mut at = &mut tree;
        for leg in legs {
            at = match (leg, at) {
                (Leg::Member(name), serde_json::Value::Object(object)) => object.get_mut(&name)?,
                (Leg::Cell(cell), serde_json::Value::Array(array)) => {
                    let place = cell(array.len()).ok()?;
                    array.get_mut(place)?
                }
                (Leg::Member(_) | Leg::Cell(_), _) => return None,
            };
        }
        match (operation, last, at) {
            (0, Leg::Member(name), serde_json::Value::Object(object)) => *object.get_mut(&name)? = value,
            (0, Leg::Cell(cell), serde_json::Value::Array(array)) => {
                let place = cell(array.len()).ok()?;
                *array.get_mut(place)? = value;
            }
            (1, Leg::Member(name), serde_json::Value::Object(object)) => {
                if object.insert(name, value).is_some() {
                    return None;
                }
            }
            (1, Leg::Cell(cell), serde_json::Value::Array(array)) => {
                let place = cell(array.len()).unwrap_or_else(|end| end);
                array.insert(place, value);
            }
            (2, Leg::Member(name), serde_json::Value::Object(object)) => drop(object.remove(&name)?),
            (2, Leg::Cell(cell), serde_json::Value::Array(array)) => {
                let place = cell(array.len()).ok()?;
                array.remove(place);
            }
            (_, _, _) => return None,
        }
    }
    Some(tree)
}

enum Leg {
    Member(String),
    /// From a length to a place in it, or the end that it is beyond.
    Cell(Box<dyn Fn(usize) -> Result<usize, usize>>),
}

/// The legs of a path, by another reading than the core's.
fn legs(path: &str) -> Option<Vec<Leg>> {
    let mut chars = path.strip_prefix('$')?.chars().peekable();
    let mut legs = Vec::new();
    while let Some(first) = chars.next() {
        if first == '[' {
            let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
            let (last, digits) = match inside.strip_prefix("last") {
                Some("") => (true, "0".to_owned()),
                Some(rest) => (true, rest.strip_prefix('-')?.to_owned()),
                None => (false, inside),
            };
            let index = usize::try_from(digits.parse::<u32>().ok()?).ok()?;
            legs.push(Leg::Cell(Box::new(move |length| match (index < length, last) {
                (true, false) => Ok(index),
                (true, true) => Ok(length - 1 - index),
                (false, false) => Err(length),
                (false, true) => Err(0),
            })));
        } else if chars.peek() == Some(&'"') {
            let mut quoted = String::from(chars.next()?);
            loop {
                let next = chars.next()?;
                quoted.push(next);
                match next {
                    '\\' => quoted.push(chars.next()?),
                    '"' => break,
                    _ => {}
                }
            }
            legs.push(Leg::Member(serde_json::from_str(&quoted).ok()?));
        } else {
            let mut name = String::new();
            while let Some(next) = chars.next_if(|c| !".[".contains(*c)) {
                name.push(next);
            }
            legs.push(Leg::Member(serde_json::from_str(&format!("\"{name}\"")).ok()?));
        }
    }
    Some(legs)
}
