//! Sizes and checksums, in files and on links (BL-41).

use super::fixtures::*;
use super::*;

/// The raw events of a file, cut by their size fields alone.
fn raw(file: &[u8]) -> Vec<Bytes> {
    let mut rest = &file[4..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let size = usize::try_from(u32::from_le_bytes(rest[9..13].try_into().unwrap())).unwrap();
        let (event, behind) = rest.split_at(size);
        events.push(Bytes::copy_from_slice(event));
        rest = behind;
    }
    events
}

/// The raw events of a captured link.
fn link(capture: &[u8]) -> Vec<Bytes> {
    let mut rest = capture;
    let mut events = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (event, behind) = behind.split_at(usize::try_from(u32::from_le_bytes(*length)).unwrap());
        events.push(Bytes::copy_from_slice(event));
        rest = behind;
    }
    events
}

#[test]
fn a_header_is_read_as_documented() {
    let header = EventHeader::parse(&hex("b2c50365 10 e7030000 1f000000 9a010000 8000 ff")).unwrap();
    assert_eq!(
        header,
        EventHeader {
            timestamp: 0x6503_c5b2,
            event_type: EventType::Xid,
            server_id: 999,
            event_size: 31,
            log_pos: 410,
            flags: 0x80
        }
    );
    assert!(header.has(flags::IGNORABLE) && !header.has(flags::ARTIFICIAL));
    assert!(EventHeader::parse(&[0; 18]).is_err());
}

#[test]
fn one_flipped_bit_is_never_delivered() {
    for (name, file) in [("BL-01", BL_01), ("BL-25", BL_25), ("tagged", TAGGED), ("in use", IN_USE)] {
        let mut decoder = EventDecoder::for_file();
        for (at, event) in raw(file).into_iter().enumerate() {
            for bit in 0..event.len() * 8 {
                let mut flipped = event.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let got = decoder.clone().decode(flipped.into());
                let in_use_flag = event[4] == EventType::FormatDescription.code() && bit == 17 * 8;
                let size = (9 * 8..13 * 8).contains(&bit);
                let what = std::format!("{name}: event {at}, bit {bit}");
                match got {
                    // The sum of a format description is made without this bit.
                    Ok(_) => assert!(in_use_flag, "{what}"),
                    Err(EventError::SizeMismatch { .. }) => assert!(size, "{what}"),
                    Err(EventError::ChecksumMismatch) => assert!(!size && !in_use_flag, "{what}"),
                    Err(error) => panic!("{what}: {error}"),
                }
            }
            decoder.decode(event).unwrap();
        }
    }
}

#[test]
fn an_event_cut_or_grown_is_refused() {
    let mut decoder = EventDecoder::for_file();
    for event in raw(BL_01) {
        for length in 0..event.len() {
            let want = if length < EventHeader::LENGTH {
                EventError::TooShort { given: length }
            } else {
                EventError::SizeMismatch { claimed: u32::try_from(event.len()).unwrap(), given: length }
            };
            assert_eq!(decoder.clone().decode(event.slice(..length)), Err(want));
        }
        let grown = [event.as_ref(), &[0]].concat();
        let want =
            EventError::SizeMismatch { claimed: u32::try_from(event.len()).unwrap(), given: grown.len() };
        assert_eq!(decoder.clone().decode(grown.into()), Err(want));
        decoder.decode(event).unwrap();
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for (size, given) in [(0_u32, 19), (18, 18), (18, 19), (u32::MAX, 19), (19, 19), (22, 22)] {
        let mut event = std::vec![0; given];
        event[4] = EventType::Xid.code();
        event[9..13].copy_from_slice(&size.to_le_bytes());
        let got = EventDecoder::for_link(Checksum::Crc32).decode(event.into());
        assert!(got.is_err(), "{size} in {given} bytes: {got:?}");
    }
}

#[test]
fn a_file_says_itself_which_checksum_it_has() {
    for (file, checksum, body_of_last) in [
        (CHECKSUM_1, Checksum::Crc32, "0400000000000000 62696e2e303030303032"),
        (CHECKSUM_2, Checksum::None, "0400000000000000 62696e2e303030303033"),
        (CHECKSUM_3, Checksum::Crc32, "0400000000000000 62696e2e303030303034"),
    ] {
        let mut decoder = EventDecoder::for_file();
        let all: Vec<Event> = raw(file).into_iter().map(|event| decoder.decode(event).unwrap()).collect();
        assert_eq!(decoder.checksum(), checksum);
        // With the wrong algorithm the body would be four bytes longer or shorter.
        assert_eq!(all.last().unwrap().body, hex(body_of_last));
    }
}

#[test]
fn the_format_description_of_a_file_without_checksums_is_checked_too() {
    let description = raw(CHECKSUM_2).remove(0);
    let mut flipped = description.to_vec();
    flipped[30] ^= 1;
    assert_eq!(EventDecoder::for_file().decode(flipped.into()), Err(EventError::ChecksumMismatch));
    EventDecoder::for_file().decode(description).unwrap();
}

#[test]
fn the_file_in_use_is_checked_without_that_bit() {
    let events = events(IN_USE);
    assert!(events[0].header.has(flags::BINLOG_IN_USE));
    let description = raw(IN_USE).remove(0);
    // As it stands the sum does not hold: the test would not notice a bit that is not cleared otherwise.
    let (content, sum) = description.split_last_chunk::<4>().unwrap();
    assert_ne!(crc32fast::hash(content), u32::from_le_bytes(*sum));
}

#[test]
fn on_a_link_the_artificial_rotate_has_the_checksum_of_the_file_before() {
    let mut decoder = EventDecoder::for_link(Checksum::Crc32);
    let mut rotates = Vec::new();
    let mut heartbeats = Vec::new();
    for event in link(LINK_V2) {
        let length = event.len();
        let event = decoder.decode(event).unwrap();
        if event.header.event_type == EventType::Rotate {
            let rotate = Rotate::decode(&event.body).unwrap();
            let artificial = event.header.has(flags::ARTIFICIAL);
            rotates.push((String::from(text(&rotate.file)), rotate.position, artificial, length));
        }
        if event.header.event_type == EventType::HeartbeatV2 {
            heartbeats.push(Heartbeat::decode_v2(&event.body).unwrap());
        }
    }
    let rotate = |file: &str, artificial, length| (String::from(file), 4, artificial, length);
    assert_eq!(
        rotates,
        [
            rotate("bin.000001", true, 41),
            rotate("bin.000002", false, 41),
            rotate("bin.000002", true, 41),
            rotate("bin.000003", false, 37),
            rotate("bin.000003", true, 37),
            rotate("bin.000004", true, 41),
        ]
    );
    let want = Heartbeat { file: "bin.000004".into(), position: 194 };
    assert_eq!(heartbeats, [want.clone(), want.clone(), want]);
    assert_eq!(decoder.checksum(), Checksum::None);
}

#[test]
fn a_link_starts_with_the_checksum_that_was_negotiated() {
    let first = link(LINK_V2).remove(0);
    // Taken for NONE, the sum becomes part of the file's name: the state must be right before the
    // first format description.
    let event = EventDecoder::for_link(Checksum::None).decode(first.clone()).unwrap();
    assert_ne!(Rotate::decode(&event.body).unwrap().file, "bin.000001");
    let event = EventDecoder::for_link(Checksum::Crc32).decode(first).unwrap();
    assert_eq!(Rotate::decode(&event.body).unwrap().file, "bin.000001");
}

/// The dump thread cleared `created` in it and left the sum: only for checksum NONE, and only there.
#[test]
fn a_format_description_that_the_dump_thread_changed_is_accepted_on_a_link_only() {
    let events = link(LINK_NONE);
    let mut decoder = EventDecoder::for_link(Checksum::None);
    for event in &events {
        decoder.decode(event.clone()).unwrap();
    }
    let description = events.iter().find(|event| event[4] == EventType::FormatDescription.code()).unwrap();
    let (content, sum) = description.split_last_chunk::<4>().unwrap();
    assert_ne!(crc32fast::hash(content), u32::from_le_bytes(*sum), "the capture shows what it is for");
    let mismatch = Err(EventError::ChecksumMismatch);
    assert_eq!(EventDecoder::for_file().decode(description.clone()), mismatch);
    // Behind the head of a relay log it stands as the replica received it.
    let mut decoder = EventDecoder::for_file();
    decoder.decode(raw(CHECKSUM_3).remove(0)).unwrap();
    decoder.decode(description.clone()).unwrap();
    // With a `created` it was not changed, and with CRC32 the sum is renewed.
    for (at, value) in [(19 + 52, 1), (description.len() - 5, 1)] {
        let mut other = description.to_vec();
        other[at] = value;
        assert_eq!(EventDecoder::for_link(Checksum::None).decode(other.into()), mismatch, "{at}");
    }
}

#[test]
fn version_1_heartbeats_are_the_bare_name() {
    let mut decoder = EventDecoder::for_link(Checksum::None);
    for event in link(LINK_V1) {
        let event = decoder.decode(event).unwrap();
        let heartbeat = Heartbeat::decode(&event.header, &event.body).unwrap();
        assert_eq!(heartbeat, Heartbeat { file: "bin.000004".into(), position: 194 });
    }
}

#[test]
fn a_format_description_of_another_layout_is_refused() {
    let description = bodies(BL_01, EventType::FormatDescription).remove(0);
    for (at, value, want) in [
        (0, 3, EventError::FormatDescription(DecodeError::Field("binlog version"))),
        (2, b'4', EventError::FormatDescription(DecodeError::Field("server version"))),
        (2, 0xff, EventError::FormatDescription(DecodeError::Field("server version"))),
        (2, 0, EventError::FormatDescription(DecodeError::Field("server version"))),
        (56, 27, EventError::FormatDescription(DecodeError::Field("header length"))),
        // The fixed parts of QUERY, TABLE_MAP and WRITE_ROWS.
        (57 + 1, 12, EventError::FormatDescription(DecodeError::Field("post-header length"))),
        (57 + 18, 6, EventError::FormatDescription(DecodeError::Field("post-header length"))),
        (57 + 29, 8, EventError::FormatDescription(DecodeError::Field("post-header length"))),
        (description.len() - 1, 2, EventError::UnknownChecksum(2)),
        (description.len() - 1, 255, EventError::UnknownChecksum(255)),
    ] {
        let mut other = description.to_vec();
        other[at] = value;
        assert_eq!(FormatDescription::decode(&other), Err(want), "byte {at}");
        // In a whole event with a right sum the stream stops there too.
        let event = framed(EventType::FormatDescription, 0, &other);
        assert_eq!(EventDecoder::for_link(Checksum::Crc32).decode(event), Err(want), "byte {at}");
    }
}

#[test]
fn a_format_description_says_who_wrote_the_file() {
    let description = FormatDescription::decode(&bodies(BL_01, EventType::FormatDescription)[0]).unwrap();
    assert_eq!(description.version(), [9, 7, 4]);
    assert!(description.server_version.starts_with("9.7.4"));
    assert_eq!(description.checksum, Checksum::Crc32);
    for (event_type, length) in [
        (EventType::StartV3, Some(0)),
        (EventType::Query, Some(13)),
        (EventType::TableMap, Some(8)),
        (EventType::WriteRows, Some(10)),
        (EventType::Gtid, Some(42)),
        // The server writes the number of the type here, by mistake; the event has no fixed part.
        (EventType::TransactionPayload, Some(40)),
        (EventType::GtidTagged, Some(0)),
        (EventType::Unknown(43), None),
        (EventType::Unknown(0), None),
    ] {
        assert_eq!(description.post_header_length(event_type), length, "{event_type}");
    }
}
