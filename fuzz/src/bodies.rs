//! What each target checks. Also replayed by the test suite over the corpora, without libFuzzer.

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
                Event::Claim { .. } | Event::Progress { .. } => {}
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
