//! Whole files, in any pieces and cut anywhere (BL-55).

use super::fixtures::*;
use super::*;

/// Where events end, by the size fields alone.
fn boundaries(file: &[u8]) -> Vec<u64> {
    let mut ends = std::vec![4_u64];
    let mut at = 4_usize;
    while at < file.len() {
        at += usize::try_from(u32::from_le_bytes(file[at + 9..at + 13].try_into().unwrap())).unwrap();
        ends.push(u64::try_from(at).unwrap());
    }
    ends
}

#[test]
fn every_event_of_every_file_is_read() {
    for (name, file) in ALL {
        let mut decoded = 0;
        for event in events(file) {
            assert!(!matches!(event.header.event_type, EventType::Unknown(_)), "{name}");
            decode(&event.header, &event.body).unwrap_or_else(|error| panic!("{name}: {error}"));
            decoded += 1;
        }
        assert_eq!(decoded + 1, boundaries(file).len(), "{name}");
    }
}

/// Counted by another program from the size fields.
#[test]
fn the_types_of_events_in_a_file() {
    let counts = |file| {
        let mut counts = std::collections::BTreeMap::new();
        for event in events(file) {
            *counts.entry(event.header.event_type.code()).or_insert(0) += 1;
        }
        counts.into_iter().collect::<Vec<(u8, i32)>>()
    };
    assert_eq!(
        counts(BL_21),
        [(2, 5), (4, 1), (15, 1), (16, 4), (19, 4), (30, 1), (33, 5), (35, 1), (39, 3)]
    );
    assert_eq!(
        counts(BL_25),
        [(2, 11), (4, 1), (15, 1), (16, 2), (19, 5), (30, 5), (33, 8), (35, 1), (38, 3)]
    );
    assert_eq!(
        counts(BL_29),
        [(2, 9), (4, 1), (5, 1), (14, 1), (15, 1), (16, 5), (19, 2), (30, 2), (33, 6), (35, 1)]
    );
}

/// Every prefix of every file: "whole" between two events, "cut" with the start of the event inside one,
/// and what was read before is the same.
#[test]
fn a_file_cut_at_every_byte_is_incomplete_and_not_over() {
    for (name, file) in ALL {
        let (ends, whole) = (boundaries(file), events(file));
        let mut reader = FileReader::new(1 << 30);
        let mut read = 0;
        assert_eq!(reader.finish(), Err(FileError { offset: 0, kind: FileErrorKind::Cut }), "{name}");
        for (i, byte) in file.iter().enumerate() {
            reader.feed(core::slice::from_ref(byte));
            while let Some((offset, event)) = reader.next_event().unwrap() {
                assert_eq!(offset, ends[read], "{name}");
                assert_eq!(event, whole[read], "{name}");
                read += 1;
            }
            let length = u64::try_from(i + 1).unwrap();
            let want = if ends.contains(&length) {
                Ok(())
            } else {
                let offset = ends.iter().rev().find(|&&end| end < length).copied().unwrap_or(0);
                Err(FileError { offset, kind: FileErrorKind::Cut })
            };
            assert_eq!(reader.finish(), want, "{name}: cut at {length}");
        }
        assert_eq!(read, whole.len(), "{name}");
    }
}

#[test]
fn the_size_of_the_pieces_does_not_matter() {
    let whole = events(BL_15);
    for size in [1, 2, 3, 7, 19, 64, 1000, 4096, 1 << 20] {
        let mut reader = FileReader::new(1 << 30);
        let mut read = Vec::new();
        for piece in BL_15.chunks(size) {
            reader.feed(piece);
            while let Some((_, event)) = reader.next_event().unwrap() {
                read.push(event);
            }
        }
        assert_eq!(read, whole, "{size}");
    }
}

#[test]
fn what_is_no_binlog_is_named() {
    let reader = |bytes: &[u8]| {
        let mut reader = FileReader::new(1 << 30);
        reader.feed(bytes);
        reader.next_event().map(|_| reader.finish())
    };
    let error = |offset, kind| Err(FileError { offset, kind });
    assert_eq!(reader(b"\xfdbin rest"), error(0, FileErrorKind::Encrypted));
    assert_eq!(reader(b"SQLite format 3\0"), error(0, FileErrorKind::NotABinlog));
    assert_eq!(reader(&[0; 40]), error(0, FileErrorKind::NotABinlog));
    assert_eq!(reader(b"\xfebi"), Ok(Err(FileError { offset: 0, kind: FileErrorKind::Cut })));
    let headless = [b"\xfebin", framed(EventType::Xid, 0, &[0; 8]).as_ref()].concat();
    assert_eq!(reader(&headless), error(4, FileErrorKind::FormatDescriptionMissing));
}

#[test]
fn a_damaged_event_stops_the_file_at_its_offset_for_good() {
    let ends = boundaries(BL_01);
    let (third, fourth) = (usize::try_from(ends[2]).unwrap(), usize::try_from(ends[3]).unwrap());
    for (at, value, kind) in [
        (fourth - 1, 0x55, FileErrorKind::Event(EventError::ChecksumMismatch)),
        (third + 30, 0x55, FileErrorKind::Event(EventError::ChecksumMismatch)),
        // A size below a header, and one above the limit: neither waits for more bytes.
        (third + 9, 18, FileErrorKind::Event(EventError::TooShort { given: 18 })),
        (third + 12, 0xff, FileErrorKind::EventTooLarge { size: 0xff00_004f }),
    ] {
        let mut file = BL_01.to_vec();
        assert_ne!(file[at], value);
        file[at] = value;
        let mut reader = FileReader::new(1 << 30);
        reader.feed(&file);
        assert!(reader.next_event().unwrap().is_some() && reader.next_event().unwrap().is_some());
        let want = FileError { offset: ends[2], kind };
        assert_eq!(reader.next_event(), Err(want), "byte {at}");
        assert_eq!(reader.next_event(), Err(want), "again");
        assert_eq!(reader.finish(), Err(want));
        assert_eq!(reader.offset(), ends[2]);
    }
}

#[test]
fn reading_goes_on_at_another_offset_once_the_head_is_known() {
    let ends = boundaries(BL_25);
    let mut reader = FileReader::new(1 << 30);
    assert!(reader.seek(ends[5]).is_err());
    reader.feed(&BL_25[..usize::try_from(ends[1]).unwrap()]);
    assert!(reader.next_event().unwrap().is_some());
    reader.seek(ends[5]).unwrap();
    reader.feed(&BL_25[usize::try_from(ends[5]).unwrap()..]);
    let (offset, event) = reader.next_event().unwrap().unwrap();
    assert_eq!((offset, &event), (ends[5], &events(BL_25)[5]));
    // Offsets are 64 bits, whatever the position in the header says.
    let far = u64::from(u32::MAX) + 5;
    reader.seek(far).unwrap();
    reader.feed(&BL_25[usize::try_from(ends[6]).unwrap()..usize::try_from(ends[7]).unwrap()]);
    assert_eq!(reader.next_event().unwrap().unwrap().0, far);
    assert_eq!(reader.offset(), far + (ends[7] - ends[6]));
}
