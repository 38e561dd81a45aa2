//! The other decoders: values from the server's own tools and documents, and bytes that are no events.

use super::fixtures::*;
use super::*;
use crate::gtid::Gtid;
use crate::time::SourceTime;
use proptest::prelude::*;

fn gtid(text: &str) -> Option<Gtid> {
    Some(text.parse().unwrap())
}

/// What mysqlbinlog 9.7.4 prints of the same files.
#[test]
fn tagged_gtids_are_what_the_servers_tool_prints() {
    let tagged: Vec<GtidEvent> = bodies(TAGGED, EventType::GtidTagged)
        .iter()
        .map(|body| GtidEvent::decode_tagged(body).unwrap())
        .collect();
    let event = |text: &str, last_committed, sequence_number, immediate, length| GtidEvent {
        gtid: gtid(text),
        flags: 0,
        last_committed: Some(last_committed),
        sequence_number: Some(sequence_number),
        immediate_commit_timestamp: Some(SourceTime(immediate)),
        original_commit_timestamp: Some(SourceTime(immediate)),
        transaction_length: Some(length),
        immediate_server_version: Some(90704),
        original_server_version: Some(90704),
        commit_group_ticket: None,
    };
    assert_eq!(
        tagged,
        [
            event("ba99c66a-ebff-11f1-b66f-02fc00000001:blue:1", 2, 3, 1_795_961_944_720_503, 278),
            event("ba99c66a-ebff-11f1-b66f-02fc00000001:blue:2", 2, 4, 1_795_961_944_728_467, 278),
            event(
                "ba99c66a-ebff-11f1-b66f-02fc00000001:an_other_tag_of_32_characters_0a:1",
                2,
                5,
                1_795_961_944_730_680,
                306
            ),
            event(
                "ffffffff-eeee-dddd-cccc-00017f80ff7e:blue:9223372036854775806",
                2,
                6,
                1_795_961_944_744_515,
                290
            ),
            // A replica's: committed first elsewhere, by 8.0.36.
            GtidEvent {
                original_commit_timestamp: Some(SourceTime(1_000_000_000_000_001)),
                original_server_version: Some(80036),
                ..event("ffffffff-eeee-dddd-cccc-00017f80ff7e:blue:7", 2, 8, 1_795_961_944_757_625, 295)
            },
        ]
    );
}

#[test]
fn untagged_gtids_are_what_the_servers_tool_prints() {
    let events: Vec<GtidEvent> =
        bodies(TAGGED, EventType::Gtid).iter().map(|body| GtidEvent::decode(body).unwrap()).collect();
    let gtids: Vec<Option<Gtid>> = events.iter().map(|event| event.gtid).collect();
    assert_eq!(
        gtids,
        [
            gtid("ba99c66a-ebff-11f1-b66f-02fc00000001:1"),
            gtid("ba99c66a-ebff-11f1-b66f-02fc00000001:2"),
            gtid("ffffffff-eeee-dddd-cccc-00017f80ff7e:128"),
            gtid("ffffffff-eeee-dddd-cccc-00017f80ff7e:5"),
            gtid("ba99c66a-ebff-11f1-b66f-02fc00000001:3"),
        ]
    );
    // rbr_only=no for the DDL, yes for the rows.
    assert_eq!(events.iter().map(|event| event.flags).collect::<Vec<u8>>(), [1, 1, 0, 0, 0]);
    let replicated = events[3];
    assert_eq!((replicated.last_committed, replicated.sequence_number), (Some(2), Some(9)));
    assert_eq!(replicated.immediate_commit_timestamp, Some(SourceTime(1_795_961_944_764_502)));
    assert_eq!(replicated.original_commit_timestamp, Some(SourceTime(1_000_000_000_000_002)));
    assert_eq!(replicated.transaction_length, Some(287));
    assert_eq!(replicated.immediate_server_version, Some(90704));
    assert_eq!(replicated.original_server_version, Some(80036));
    assert_eq!(replicated.commit_group_ticket, None);
}

/// An event that another project published, of MySQL 8.4 or 9.x: a tag of ten letters.
#[test]
fn a_tagged_gtid_from_elsewhere() {
    let event = GtidEvent::decode_tagged(&hex(
        "02 78 00 00 00 02 aaaaaaaa 8888 6666 4444 222222222222 04 73201b 06 14 7365636f6e6474657374
         08 c10e 0a d10e 0c 7f23354861bd2606 10 5904 12 a3ff0a",
    ))
    .unwrap();
    assert_eq!(event.gtid, gtid("55555555-4444-3333-2222-111111111111:secondtest:111111"));
    assert_eq!((event.last_committed, event.sequence_number), (Some(472), Some(474)));
    assert_eq!(event.immediate_commit_timestamp, Some(SourceTime(1_731_444_683_060_515)));
    assert_eq!(event.transaction_length, Some(278));
    assert_eq!(event.immediate_server_version, Some(90100));
}

#[test]
fn anonymous_groups_are_what_the_servers_tool_prints() {
    let events: Vec<GtidEvent> = bodies(ANONYMOUS, EventType::AnonymousGtid)
        .iter()
        .map(|body| GtidEvent::decode_anonymous(body).unwrap())
        .collect();
    assert!(events.iter().all(|event| event.gtid.is_none()));
    assert_eq!(events.iter().map(|event| event.flags).collect::<Vec<u8>>(), [1, 1, 0]);
    assert_eq!(
        events.iter().map(|event| event.original_commit_timestamp.unwrap().0).collect::<Vec<u64>>(),
        [1_795_964_236_895_939, 1_795_964_236_974_121, 1_795_964_237_006_776]
    );
    assert_eq!(
        events.iter().map(|event| event.transaction_length.unwrap()).collect::<Vec<u64>>(),
        [176, 195, 276]
    );
    // Read as the other kind, it has no number.
    let body = &bodies(ANONYMOUS, EventType::AnonymousGtid)[0];
    assert_eq!(GtidEvent::decode(body), Err(DecodeError::Field("gno")));
}

const UUID: &str = "3e11fa4771ca11e19e33c80aa9429562";

/// A GTID event as each generation of servers wrote it; the body may end between them only.
#[test]
fn a_gtid_event_grew_over_the_years() {
    let generations =
        ["02 0500000000000000 0600000000000000", "40e2018d3ac205", "fc1601", "50620100", "0700000000000000"];
    let mut body = std::format!("00 {UUID} 0100000000000000");
    let mut ends = std::vec![hex(&body).len()];
    for generation in generations {
        body.push_str(generation);
        ends.push(hex(&body).len());
    }
    let whole = hex(&body);
    for length in 0..=whole.len() {
        let got = GtidEvent::decode(&whole[..length]);
        if ends.contains(&length) {
            let got = got.unwrap();
            assert_eq!(got.gtid, gtid("3e11fa47-71ca-11e1-9e33-c80aa9429562:1"));
            assert_eq!(got.sequence_number, (length >= ends[1]).then_some(6));
            assert_eq!(got.original_commit_timestamp.is_some(), length >= ends[2]);
            assert_eq!(got.transaction_length, (length >= ends[3]).then_some(278));
            assert_eq!(got.original_server_version, (length >= ends[4]).then_some(90704));
            assert_eq!(got.commit_group_ticket, (length >= ends[5]).then_some(7));
        } else {
            assert_eq!(got, Err(DecodeError::Short), "{length}");
        }
    }
    let more = [&whole[..], &[0]].concat();
    assert_eq!(GtidEvent::decode(&more), Err(DecodeError::Trailing(1)));
}

#[test]
fn numbers_that_are_no_gtid_are_refused() {
    for (gno, decoded, anonymous) in [
        ("0000000000000000", false, true),
        ("0100000000000000", true, false),
        ("feffffffffffff7f", true, false),
        ("ffffffffffffff7f", false, false),
        ("ffffffffffffffff", false, false),
    ] {
        let body = hex(&std::format!("00 {UUID} {gno}"));
        assert_eq!(GtidEvent::decode(&body).is_ok(), decoded, "{gno}");
        let got = GtidEvent::decode_anonymous(&body);
        assert_eq!(got.is_ok(), anonymous, "{gno}");
        assert!(got.is_err() || got.unwrap().gtid.is_none());
    }
    let body = hex(&std::format!("00 {UUID} 0100000000000000 03 0500000000000000 0600000000000000"));
    assert_eq!(GtidEvent::decode(&body), Err(DecodeError::Field("logical timestamp")));
}

/// A tagged GTID event of the given fields, with the size its head needs.
fn message(last_field: &str, fields: &str) -> Bytes {
    let fields = hex(&std::format!("{last_field} {fields}"));
    let size = u8::try_from(2 + fields.len()).unwrap();
    assert!(size < 128);
    [&[2, size << 1][..], &fields].concat().into()
}

#[test]
fn fields_of_a_tagged_gtid_come_in_order_and_may_grow() {
    let uuid = "02 00020406080a0c0e10121416181a1c1e";
    let known = std::format!("00 00 {uuid} 04 04 06 02 61 08 04 0a 08 0c 0a 10 0c 12 0e");
    let event = GtidEvent::decode_tagged(&message("00", &known)).unwrap();
    assert_eq!(event.gtid, gtid("00010203-0405-0607-0809-0a0b0c0d0e0f:a:1"));
    let ticket = std::format!("{known} 16 10");
    assert_eq!(GtidEvent::decode_tagged(&message("00", &ticket)).unwrap().commit_group_ticket, Some(8));
    // A field of a newer server, ignorable; then one that is not (12 and 13 are unknown).
    let newer = std::format!("{known} 18 abcdef");
    assert_eq!(GtidEvent::decode_tagged(&message("00", &newer)), Ok(event));
    assert_eq!(GtidEvent::decode_tagged(&message("18", &newer)), Ok(event));
    assert_eq!(GtidEvent::decode_tagged(&message("1a", &newer)), Err(DecodeError::UnknownField(12)));
    for (fields, want) in [
        (std::format!("{uuid} 04 04 06 02 61"), DecodeError::Field("flags")),
        ("00 00 04 04 06 02 61".into(), DecodeError::Field("uuid")),
        (std::format!("00 00 {uuid} 06 02 61"), DecodeError::Field("gno")),
        (
            std::format!("00 00 {uuid} 04 00 06 02 61 08 04 0a 08 0c 0a 10 0c 12 0e"),
            DecodeError::Field("gno"),
        ),
        (
            std::format!("00 00 {uuid} 04 02 06 02 61 08 04 0a 08 0c 0a 10 0c 12 0e"),
            DecodeError::Field("gno"),
        ),
        (
            std::format!("00 00 {uuid} 04 04 06 02 31 08 04 0a 08 0c 0a 10 0c 12 0e"),
            DecodeError::Field("tag"),
        ),
        (std::format!("{known} 08 04"), DecodeError::Field("field order")),
        (std::format!("{known} 16 01"), DecodeError::Short),
    ] {
        assert_eq!(GtidEvent::decode_tagged(&message("00", &fields)), Err(want), "{fields}");
    }
    let whole = message("00", &known);
    assert_eq!(GtidEvent::decode_tagged(&[&whole[..], &[0]].concat()), Err(DecodeError::Trailing(1)));
    let version_2 = [&[4], &whole[1..]].concat();
    assert_eq!(GtidEvent::decode_tagged(&version_2), Err(DecodeError::Field("serialization version")));
}

/// BL-25, and the bytes of its entry.
#[test]
fn xa_prepare_says_which_phase_and_which_transaction() {
    let prepared: Vec<XaPrepare> =
        bodies(BL_25, EventType::XaPrepare).iter().map(|body| XaPrepare::decode(body).unwrap()).collect();
    let xid = |format_id, gtrid: &'static str, bqual: &'static str| XaXid {
        format_id,
        gtrid: gtrid.into(),
        bqual: bqual.into(),
    };
    assert_eq!(
        prepared,
        [
            XaPrepare { one_phase: false, xid: xid(1, "x1", "") },
            XaPrepare { one_phase: false, xid: xid(1, "x2", "") },
            XaPrepare { one_phase: true, xid: xid(7, "x3", "b") },
        ]
    );
    assert!(!std::format!("{prepared:?}").contains("x1"));
    assert_eq!(
        XaPrepare::decode(&hex("00 01000000 02000000 00000000 7831")),
        Ok(XaPrepare { one_phase: false, xid: xid(1, "x1", "") })
    );
    for (body, want) in [
        ("02 01000000 02000000 00000000 7831", DecodeError::Field("one-phase flag")),
        ("00 01000000 41000000 00000000 7831", DecodeError::Field("XID")),
        ("00 01000000 00000000 ffffffff 7831", DecodeError::Field("XID")),
        ("00 01000000 02000000 01000000 7831", DecodeError::Short),
        ("00 01000000 01000000 00000000 7831", DecodeError::Trailing(1)),
    ] {
        assert_eq!(XaPrepare::decode(&hex(body)), Err(want), "{body}");
    }
}

/// BL-31.
#[test]
fn heartbeats_of_version_2_grow_too() {
    let heartbeat = |position| Heartbeat { file: "bin.000145".into(), position };
    let name = "01 0a 62696e2e303030313435";
    for (body, want) in [
        (std::format!("{name} 02 03 fcb901 00"), Ok(heartbeat(441))),
        (std::format!("02 03 fcb901 {name} 00"), Ok(heartbeat(441))),
        (std::format!("{name} 02 09 fe0000000001000000 00"), Ok(heartbeat(1 << 32))),
        // A field of a newer server.
        (std::format!("{name} 07 02 abcd 02 01 04 00"), Ok(heartbeat(4))),
        (std::format!("{name} 00"), Err(DecodeError::Field("position"))),
        ("02 01 04 00".into(), Err(DecodeError::Field("file name"))),
        ("01 00 02 01 04 00".into(), Err(DecodeError::Field("file name"))),
        (std::format!("{name} 02 02 04 00"), Err(DecodeError::Trailing(1))),
        (std::format!("{name} 02 01 fc 00"), Err(DecodeError::Short)),
        (std::format!("{name} 02 01 04"), Err(DecodeError::Short)),
        (std::format!("{name} 02 01 04 00 00"), Err(DecodeError::Trailing(1))),
        ("01 feffffffffffffffff 62".into(), Err(DecodeError::Short)),
    ] {
        assert_eq!(Heartbeat::decode_v2(&hex(&body)), want, "{body}");
    }
}

#[test]
fn small_events() {
    let rotate = Rotate::decode(&bodies(BL_01, EventType::Rotate)[0]).unwrap();
    assert_eq!(rotate.position, 4);
    assert!(rotate.file.starts_with(b"bin"));
    let far = Rotate::decode(&hex("0000000001000000 62696e2e31")).unwrap();
    assert_eq!((far.position, text(&far.file)), (1 << 32, "bin.1"));
    assert_eq!(Rotate::decode(&hex("0400000000000000")), Err(DecodeError::Field("file name")));
    assert_eq!(Rotate::decode(&hex("0400000000000000 6200")), Err(DecodeError::Field("file name")));
    let long = [&[4, 0, 0, 0, 0, 0, 0, 0][..], &[b'a'; 512]].concat();
    assert_eq!(Rotate::decode(&long.into()), Err(DecodeError::Field("file name")));

    assert_eq!(Xid::decode(&hex("2e00000000000000")), Ok(Xid { xid: 46 }));
    assert_eq!(Xid::decode(&hex("2e000000000000")), Err(DecodeError::Short));
    assert_eq!(Xid::decode(&hex("2e0000000000000000")), Err(DecodeError::Trailing(1)));
    assert_eq!(std::format!("{:?}", Xid { xid: 46 }), "Xid(..)");

    let incident = Incident::decode(&hex("0100 06 6c6f73746576")).unwrap();
    assert_eq!((incident.number, text(&incident.message)), (1, "lostev"));
    assert!(!std::format!("{incident:?}").contains("lost"));
    assert_eq!(Incident::decode(&hex("0100 07 6c6f73746576")), Err(DecodeError::Short));
    assert_eq!(Incident::decode(&hex("0100 05 6c6f73746576")), Err(DecodeError::Trailing(1)));
}

#[test]
fn previous_gtids_in_both_layouts() {
    let of = |file| previous_gtids(&bodies(file, EventType::PreviousGtids)[0]).unwrap();
    assert!(of(TAGGED).is_empty());
    // `SELECT @@gtid_executed` when the file was opened: the first file's groups.
    let executed: crate::gtid::GtidSet = bodies(TAGGED, EventType::Gtid)
        .iter()
        .map(|body| GtidEvent::decode(body).unwrap())
        .chain(
            bodies(TAGGED, EventType::GtidTagged).iter().map(|body| GtidEvent::decode_tagged(body).unwrap()),
        )
        .filter_map(|event| event.gtid)
        .collect();
    assert_eq!(of(TAGGED_NEXT), executed);
    assert_eq!(executed.count(), 10);
}

/// Every real body, cut at every byte: an error or a shorter body that the format allows, never a panic,
/// and never the whole event's content.
#[test]
fn bodies_cut_at_every_byte() {
    let may_end_early = |event_type| {
        matches!(
            event_type,
            // The name or the statement runs to the end, older GTIDs end early.
            EventType::Rotate
                | EventType::Query
                | EventType::ExecuteLoadQuery
                | EventType::Gtid
                | EventType::AnonymousGtid
                | EventType::FormatDescription
        )
    };
    for (name, file) in ALL {
        for event in events(file) {
            let event_type = event.header.event_type;
            let whole = decode(&event.header, &event.body).unwrap();
            if whole.is_empty() || event.body.len() > 3000 {
                continue;
            }
            for length in 0..event.body.len() {
                if let Ok(cut) = decode(&event.header, &event.body.slice(..length)) {
                    assert!(may_end_early(event_type), "{name}: {event_type} cut at {length}");
                    assert_ne!(cut, whole, "{name}: {event_type} cut at {length}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_body_makes_a_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..120)) {
        for event_type in EventType::KNOWN {
            let header = EventHeader {
                timestamp: 0, event_type: *event_type, server_id: 1, event_size: 0, log_pos: 4, flags: 0
            };
            let _ = decode(&header, &body.clone().into());
        }
    }

    #[test]
    fn no_changed_body_makes_a_decoder_panic(file in 0..ALL.len(), at in any::<prop::sample::Index>(),
                                              from in any::<prop::sample::Index>(), value in any::<u8>()) {
        let events = events(ALL[file].1);
        let event = &events[at.index(events.len())];
        if !event.body.is_empty() {
            let mut body = event.body.to_vec();
            let from = from.index(body.len());
            body[from] = value;
            let _ = decode(&event.header, &body.into());
        }
    }

    #[test]
    fn no_bytes_make_a_frame_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), crc in any::<bool>()) {
        let checksum = if crc { Checksum::Crc32 } else { Checksum::None };
        let _ = EventDecoder::for_link(checksum).decode(bytes.clone().into());
        let mut sized = bytes.clone();
        if sized.len() >= 19 {
            let size = u32::try_from(sized.len()).unwrap();
            sized[9..13].copy_from_slice(&size.to_le_bytes());
            sized[4] = 15;
            let _ = EventDecoder::for_link(checksum).decode(sized.into());
        }
        let mut reader = FileReader::new(1 << 20);
        reader.feed(b"\xfebin");
        reader.feed(&bytes);
        while let Ok(Some(_)) = reader.next_event() {}
    }
}
