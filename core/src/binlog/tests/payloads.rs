//! Transaction payloads, inflated whole, in pieces, cut, lying and hostile.

use super::fixtures::*;
use super::*;
use proptest::prelude::*;

const LIMIT: usize = 64 << 20;

fn payloads() -> Vec<TransactionPayload> {
    bodies(PAYLOAD, EventType::TransactionPayload)
        .iter()
        .map(|body| TransactionPayload::decode(body).unwrap())
        .collect()
}

/// All events, or what stopped them.
fn drain(inflater: &mut Inflater) -> Result<Vec<Event>, (Vec<Event>, PayloadError)> {
    let mut events = Vec::new();
    loop {
        match inflater.next_event() {
            Ok(Inflated::Event(event)) => events.push(event),
            Ok(Inflated::End) => return Ok(events),
            Ok(Inflated::NeedsInput) => panic!("all input was given"),
            Err(error) => {
                assert_eq!(inflater.next_event(), Err(error), "an error stays");
                return Err((events, error));
            }
        }
    }
}

fn inflate(payload: &TransactionPayload) -> Result<Vec<Event>, PayloadError> {
    drain(&mut Inflater::whole(payload, LIMIT)?).map_err(|(_, error)| error)
}

fn types(events: &[Event]) -> Vec<EventType> {
    events.iter().map(|event| event.header.event_type).collect()
}

/// A payload of these bytes, stored or compressed.
fn payload(compression: Compression, content: &[u8], declared: Option<u64>) -> TransactionPayload {
    let payload = match compression {
        Compression::Zstd => zstd::bulk::compress(content, 3).unwrap(),
        Compression::None | Compression::Unknown(_) => content.to_vec(),
    };
    let payload_size = u64::try_from(payload.len()).unwrap();
    let header = PayloadHeader { compression, payload_size, uncompressed_size: declared };
    TransactionPayload { header, payload: payload.into() }
}

/// An event without a checksum, as payloads hold them.
fn inner(event_type: EventType, body: &[u8]) -> Vec<u8> {
    let framed = framed(event_type, 0, body);
    let mut event = framed[..framed.len() - Checksum::LENGTH].to_vec();
    let size = u32::try_from(event.len()).unwrap();
    event[9..13].copy_from_slice(&size.to_le_bytes());
    event
}

/// The groups of `payload.sql`; sizes as the server declared them.
#[test]
fn the_servers_payloads() {
    use EventType::{DeleteRows, Query, TableMap, UpdateRows, WriteRows, Xid};
    let payloads = payloads();
    assert_eq!(
        payloads.iter().map(|payload| payload.header.uncompressed_size).collect::<Vec<_>>(),
        [Some(195), Some(200_406), Some(3_000_194), Some(3_000_235)]
    );
    assert!(payloads.iter().all(|payload| payload.header.compression == Compression::Zstd));
    let groups: Vec<Vec<Event>> = payloads.iter().map(|payload| inflate(payload).unwrap()).collect();
    assert_eq!(types(&groups[0]), [Query, TableMap, WriteRows, Xid]);
    assert_eq!(
        types(&groups[1]),
        [Query, TableMap, WriteRows, TableMap, UpdateRows, TableMap, DeleteRows, Xid]
    );
    assert_eq!(types(&groups[2]), [Query, TableMap, WriteRows, Xid]);
    for (group, payload) in groups.iter().zip(&payloads) {
        let begin = super::super::Query::decode(&group[0].body).unwrap();
        assert_eq!(&begin.text[..], b"BEGIN");
        super::super::Xid::decode(&group.last().unwrap().body).unwrap();
        let size: u64 = group.iter().map(|event| u64::from(event.header.event_size)).sum();
        assert_eq!(Some(size), payload.header.uncompressed_size);
        assert!(group.iter().all(|event| event.body.len() + 19 == event.header.size()));
    }
    // `REPEAT('z', 3000000)` stands whole in its row.
    let row = &groups[2][2].body;
    assert!(row.ends_with(&[b'z'; 3_000_000]));
    assert_eq!(row.iter().filter(|&&byte| byte == b'z').count(), 3_000_000);
}

#[test]
fn the_size_of_the_pieces_does_not_matter() {
    for payload in payloads() {
        let whole = inflate(&payload).unwrap();
        for size in [1, 3, 50, 1 << 20] {
            let mut inflater = Inflater::new(&payload.header, LIMIT).unwrap();
            let mut events = Vec::new();
            for piece in payload.payload.chunks(size) {
                inflater.push(Bytes::copy_from_slice(piece));
                while let Inflated::Event(event) = inflater.next_event().unwrap() {
                    events.push(event);
                }
                // Asking again without giving more is no fault, however often.
                for _ in 0..40 {
                    assert_eq!(inflater.next_event(), Ok(Inflated::NeedsInput));
                }
            }
            inflater.finish();
            assert_eq!(inflater.next_event(), Ok(Inflated::End));
            assert_eq!(events, whole, "{size}");
        }
    }
}

#[test]
fn a_stored_payload_gives_its_events_without_a_copy() {
    let content = [inner(EventType::Query, b"BEGIN"), inner(EventType::Xid, &[1; 8])].concat();
    for declared in [None, Some(u64::try_from(content.len()).unwrap())] {
        let stored = payload(Compression::None, &content, declared);
        let events = inflate(&stored).unwrap();
        assert_eq!(types(&events), [EventType::Query, EventType::Xid]);
        assert_eq!(&events[0].body[..], b"BEGIN");
        assert!(stored.payload.as_ptr_range().contains(&events[0].body.as_ptr()));
        for size in [1, 5, 20] {
            let mut inflater = Inflater::new(&stored.header, LIMIT).unwrap();
            for piece in content.chunks(size) {
                inflater.push(Bytes::copy_from_slice(piece));
            }
            inflater.finish();
            assert_eq!(drain(&mut inflater).unwrap(), events, "{size}");
        }
    }
}

#[test]
fn a_payload_cut_anywhere_gives_no_end() {
    let original = &payloads()[1];
    let whole = inflate(original).unwrap();
    for length in 0..original.payload.len() {
        let mut cut = original.clone();
        cut.payload.truncate(length);
        let (events, error) = drain(&mut Inflater::whole(&cut, LIMIT).unwrap()).unwrap_err();
        assert!(events.len() <= whole.len() && events == whole[..events.len()], "cut at {length}");
        assert_eq!(error, PayloadError::Cut, "cut at {length}");
    }
}

#[test]
fn a_payload_of_nothing_has_lost_its_events() {
    for compression in [Compression::Zstd, Compression::None] {
        for declared in [None, Some(0)] {
            let mut empty = payload(compression, b"", declared);
            assert_eq!(
                inflate(&empty),
                Err(PayloadError::Cut),
                "{compression:?} {declared:?}, a frame of nothing"
            );
            empty.payload.truncate(0);
            assert_eq!(inflate(&empty), Err(PayloadError::Cut), "{compression:?} {declared:?}, no frame");
        }
    }
}

#[test]
fn a_damaged_payload_is_an_error_and_no_panic() {
    let original = &payloads()[1];
    for bit in 0..original.payload.len() * 8 {
        let mut bytes = original.payload.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let damaged = TransactionPayload { payload: bytes.into(), ..original.clone() };
        // zstd without its own checksum cannot see everything (the event's sum does); what it lets pass
        // must still have the size that was declared.
        if let Ok(events) = inflate(&damaged) {
            assert_eq!(events.iter().map(|event| event.header.size()).sum::<usize>(), 200_406, "bit {bit}");
        }
    }
}

#[test]
fn what_comes_out_must_be_what_was_declared() {
    let content = inner(EventType::Query, &[b'x'; 5000]);
    let size = u64::try_from(content.len()).unwrap();
    for compression in [Compression::Zstd, Compression::None] {
        for (declared, ok) in [
            (None, true),
            (Some(size), true),
            (Some(size - 1), false),
            (Some(size + 1), false),
            (Some(0), false),
            (Some(u64::MAX), false),
        ] {
            let got = inflate(&payload(compression, &content, declared));
            match got {
                Ok(events) => assert!(ok && events.len() == 1, "{declared:?}"),
                Err(PayloadError::SizeMismatch { declared: said, .. }) => assert_eq!(Some(said), declared),
                Err(error) => panic!("{declared:?}: {error}"),
            }
            assert_eq!(inflate(&payload(compression, &content, declared)).is_ok(), ok, "{declared:?}");
        }
    }
}

/// 512 MiB of zeros in 16 KiB, declared as 200 bytes: stopped after a step, not at the end.
#[test]
fn a_bomb_is_stopped_at_its_declared_size() {
    let mut event = inner(EventType::WriteRows, &[]);
    event[9..13].copy_from_slice(&u32::try_from(512 << 20).unwrap().to_le_bytes());
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    std::io::Write::write_all(&mut encoder, &event).unwrap();
    let zeros = std::vec![0; 1 << 20];
    for _ in 0..512 {
        std::io::Write::write_all(&mut encoder, &zeros).unwrap();
    }
    let compressed = encoder.finish().unwrap();
    let payload_size = u64::try_from(compressed.len()).unwrap();
    let bomb = |declared| TransactionPayload {
        header: PayloadHeader { compression: Compression::Zstd, payload_size, uncompressed_size: declared },
        payload: compressed.clone().into(),
    };
    let mut inflater = Inflater::whole(&bomb(Some(200)), usize::MAX).unwrap();
    assert!(matches!(inflater.next_event(), Err(PayloadError::SizeMismatch { declared: 200, .. })));
    assert!(inflater.inflated() <= 201, "{}", inflater.inflated());
    // Without a declared size the limit of one event stops it, as soon as the header is there.
    let mut inflater = Inflater::whole(&bomb(None), LIMIT).unwrap();
    assert_eq!(inflater.next_event(), Err(PayloadError::EventTooLarge { size: 512 << 20 }));
    let step = u64::try_from(Inflater::STEP).unwrap();
    assert!(inflater.inflated() <= step, "{}", inflater.inflated());
    // And a large event that is allowed is not inflated further than a step beyond its end.
    let events = [inner(EventType::WriteRows, &std::vec![7; 5 << 20]), inner(EventType::Query, &zeros)];
    let many = std::iter::once(&events[0]).chain(std::iter::repeat_n(&events[1], 20));
    let content: Vec<u8> = many.flatten().copied().collect();
    let mut inflater = Inflater::whole(&payload(Compression::Zstd, &content, None), LIMIT).unwrap();
    assert!(matches!(inflater.next_event(), Ok(Inflated::Event(event)) if event.body.len() == 5 << 20));
    assert!(inflater.inflated() <= step * 6 + 100, "{}", inflater.inflated());
}

#[test]
fn what_must_not_be_in_a_payload_is_refused() {
    let nested = inner(EventType::TransactionPayload, &[0]);
    let mut short = inner(EventType::Xid, &[0; 8]);
    short[9..13].copy_from_slice(&18_u32.to_le_bytes());
    let whole = inner(EventType::Xid, &[0; 8]);
    for compression in [Compression::Zstd, Compression::None] {
        for (content, want) in [
            (nested.clone(), PayloadError::Nested),
            ([whole.clone(), nested.clone()].concat(), PayloadError::Nested),
            (short.clone(), PayloadError::EventTooShort { claimed: 18 }),
            ([whole.clone(), std::vec![0; 18]].concat(), PayloadError::Cut),
            (whole[..whole.len() - 1].to_vec(), PayloadError::Cut),
        ] {
            assert_eq!(inflate(&payload(compression, &content, None)), Err(want));
        }
        let mut inflater = Inflater::whole(&payload(compression, &whole, None), whole.len() - 1).unwrap();
        assert_eq!(inflater.next_event(), Err(PayloadError::EventTooLarge { size: 27 }));
    }
    let unknown = payload(Compression::Unknown(7), &whole, None);
    assert_eq!(inflate(&unknown), Err(PayloadError::UnsupportedCompression(7)));
    let garbage = PayloadHeader { compression: Compression::Zstd, payload_size: 8, uncompressed_size: None };
    let garbage = TransactionPayload { header: garbage, payload: hex("0001020304050607") };
    assert_eq!(inflate(&garbage), Err(PayloadError::Corrupt));
}

/// A frame whose header asks for a window of 2 GiB.
#[test]
fn a_window_beyond_what_a_server_makes_is_refused() {
    let header = PayloadHeader { compression: Compression::Zstd, payload_size: 9, uncompressed_size: None };
    let frame = |window: &str| TransactionPayload {
        header,
        payload: hex(&std::format!("28b52ffd 00 {window} 010000")),
    };
    // An empty frame with a window of 128 MiB is read, and holds no event; then the next larger one.
    assert_eq!(inflate(&frame("88")), Err(PayloadError::Cut));
    assert_eq!(inflate(&frame("89")), Err(PayloadError::Corrupt));
    assert_eq!(inflate(&frame("a8")), Err(PayloadError::Corrupt));
}

#[test]
fn the_header_of_a_payload_grows_too() {
    let header = |compression, payload_size, uncompressed_size| PayloadHeader {
        compression,
        payload_size,
        uncompressed_size,
    };
    for (body, want) in [
        ("02 01 00 03 01 c3 01 01 02 00 abcd", Ok(header(Compression::Zstd, 2, Some(195)))),
        ("02 03 fcff00 01 01 02 00 abcd", Ok(header(Compression::None, 2, None))),
        ("02 01 07 01 01 02 00 abcd", Ok(header(Compression::Unknown(7), 2, None))),
        ("09 02 ffff 02 01 00 01 01 02 00 abcd", Ok(header(Compression::Zstd, 2, None))),
        ("02 01 00 00 abcd", Err(DecodeError::Field("payload size"))),
        ("01 01 02 00 abcd", Err(DecodeError::Field("compression type"))),
        ("02 01 00 01 01 03 00 abcd", Err(DecodeError::Short)),
        ("02 01 00 01 01 01 00 abcd", Err(DecodeError::Trailing(1))),
        ("02 02 00 01 01 02 00 abcd", Err(DecodeError::Trailing(1))),
        ("02 01 00 01 09 fe0000000000000010 00 abcd", Err(DecodeError::Short)),
        ("02 01 00 01 01 02", Err(DecodeError::Short)),
        ("02 fe0000000000000010 00", Err(DecodeError::Short)),
        ("", Err(DecodeError::Short)),
    ] {
        assert_eq!(TransactionPayload::decode(&hex(body)).map(|payload| payload.header), want, "{body}");
    }
    assert!(!std::format!("{:?}", payloads()).contains("ab"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_payload_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), stored in any::<bool>(),
                                 frame in any::<bool>(), piece in 1..40_usize) {
        let compression = if stored { Compression::None } else { Compression::Zstd };
        let bytes = if frame && !stored { zstd::bulk::compress(&bytes, 1).unwrap() } else { bytes };
        let header = PayloadHeader { compression, payload_size: 0, uncompressed_size: None };
        let mut inflater = Inflater::new(&header, 1 << 16).unwrap();
        for piece in bytes.chunks(piece) {
            inflater.push(Bytes::copy_from_slice(piece));
            while let Ok(Inflated::Event(_)) = inflater.next_event() {}
        }
        inflater.finish();
        while let Ok(Inflated::Event(_)) = inflater.next_event() {}
    }
}
