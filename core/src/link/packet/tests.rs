use super::*;
use alloc::vec;
use proptest::prelude::*;

/// Packets as bytes, with the ids counting from `first_id`.
fn wire(first_id: u8, payloads: &[&[u8]]) -> Vec<u8> {
    let mut sequence = Sequence(first_id);
    let mut out = BytesMut::new();
    payloads.iter().for_each(|payload| encode(payload, &mut sequence, &mut out));
    out.to_vec()
}

fn drain(framer: &mut Framer) -> Vec<Bytes> {
    core::iter::from_fn(|| framer.next_payload().unwrap()).map(|payload| payload.bytes).collect()
}

#[test]
fn a_packet_is_a_length_an_id_and_a_body() {
    // The example of the protocol manual: COM_QUIT.
    assert_eq!(wire(0, &[&[0x01]]), [0x01, 0x00, 0x00, /* id */ 0x00, /* body */ 0x01]);
    let mut framer = Framer::new(100);
    framer.push(Bytes::from_static(&[0x01, 0x00, 0x00, 0x00, 0x01]));
    assert_eq!(drain(&mut framer), [&[0x01][..]]);
    assert_eq!(*framer.sequence_mut(), Sequence(1));
    assert!(framer.is_at_boundary());
}

#[test]
fn long_payloads_are_split_and_exact_multiples_end_empty() {
    for (len, headers) in [
        (PACKET_LEN_MAX - 1, &[[0xfe, 0xff, 0xff, 0x07]][..]),
        (PACKET_LEN_MAX, &[[0xff, 0xff, 0xff, 0x07], [0x00, 0x00, 0x00, 0x08]]),
        (PACKET_LEN_MAX + 1, &[[0xff, 0xff, 0xff, 0x07], [0x01, 0x00, 0x00, 0x08]]),
        (2 * PACKET_LEN_MAX, &[[0xff, 0xff, 0xff, 0x07], [0xff, 0xff, 0xff, 0x08], [0x00, 0x00, 0x00, 0x09]]),
    ] {
        let payload: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let bytes = wire(7, &[&payload]);
        let at = |n: usize| &bytes[n * (PACKET_LEN_MAX + 4)..][..4];
        headers.iter().enumerate().for_each(|(n, header)| assert_eq!(at(n), header, "{len} {n}"));
        assert_eq!(bytes.len(), len + 4 * headers.len(), "{len}");

        // One chunk, and cuts around every header.
        let cuts = [1, 4, PACKET_LEN_MAX + 3, PACKET_LEN_MAX + 4, PACKET_LEN_MAX + 6, bytes.len()];
        for chunks in [&cuts[5..], &cuts] {
            let mut framer = Framer::new(len);
            framer.sequence = Sequence(7);
            let mut from = 0;
            let mut got = Vec::new();
            for &cut in chunks.iter().filter(|&&cut| cut <= bytes.len()) {
                framer.push(Bytes::copy_from_slice(&bytes[from..cut]));
                from = cut;
                got.extend(drain(&mut framer));
            }
            assert!(got.len() == 1 && got[0] == payload, "{len}");
        }
    }
}

#[test]
fn a_payload_in_one_chunk_is_a_slice_of_it() {
    let chunk = Bytes::from(wire(0, &[b"abc", b"", b"defg"]));
    let within = |bytes: &Bytes| chunk.as_ptr_range().contains(&bytes.as_ptr());
    let mut framer = Framer::new(100);
    framer.push(chunk.clone());
    for want in [&b"abc"[..], b"", b"defg"] {
        let payload = framer.next_payload().unwrap().unwrap();
        assert_eq!(payload.bytes, want);
        if want.is_empty() {
            assert_eq!(payload.retained, 0, "an empty payload keeps nothing");
        } else {
            assert!(within(&payload.bytes), "copied");
            assert_eq!(payload.retained, chunk.len());
        }
    }
    assert_eq!(framer.next_payload(), Ok(None));
}

#[test]
fn a_body_that_starts_a_chunk_is_sliced_too() {
    let bytes = Bytes::from(wire(0, &[b"abc"]));
    let mut framer = Framer::new(100);
    framer.push(bytes.slice(..4));
    assert_eq!(framer.next_payload(), Ok(None));
    let body = bytes.slice(4..);
    framer.push(body.clone());
    let payload = framer.next_payload().unwrap().unwrap();
    assert_eq!(payload.bytes.as_ptr(), body.as_ptr());
}

#[test]
fn a_payload_over_chunks_is_joined_into_memory_of_its_own_size() {
    let bytes = wire(0, &[&[7; 1000]]);
    let mut framer = Framer::new(1000);
    for chunk in bytes.chunks(3) {
        assert_eq!(framer.next_payload(), Ok(None));
        assert!(framer.chunks.is_empty(), "a consumed chunk is held");
        framer.push(Bytes::copy_from_slice(chunk));
    }
    let payload = framer.next_payload().unwrap().unwrap();
    assert_eq!((payload.bytes.as_ref(), payload.retained), (&[7; 1000][..], 1000));
}

#[test]
fn a_claim_without_bytes_allocates_nothing() {
    let mut framer = Framer::new(usize::MAX);
    framer.push(Bytes::from_static(&[0xff, 0xff, 0xff, 0x00, 1, 2, 3]));
    assert_eq!(framer.next_payload(), Ok(None));
    assert!(framer.joined.capacity() < 64, "{}", framer.joined.capacity());
    assert_eq!(framer.wants(), PACKET_LEN_MAX - 3);
    // And bytes never make it grow beyond the claim.
    framer.push(Bytes::from(vec![0; PACKET_LEN_MAX - 4]));
    assert_eq!(framer.next_payload(), Ok(None));
    assert!(framer.joined.capacity() <= PACKET_LEN_MAX);
    assert_eq!(framer.wants(), 1);
    // Nor does doubling.
    let mut framer = Framer::new(1000);
    framer.push(Bytes::from_static(&[0xe8, 0x03, 0x00, 0x00]));
    for len in [600, 1, 399] {
        assert_eq!(framer.next_payload(), Ok(None));
        framer.push(Bytes::from(vec![0; len]));
        assert!(framer.joined.capacity() <= 1000, "{}", framer.joined.capacity());
    }
    assert_eq!(drain(&mut framer).len(), 1);
}

#[test]
fn too_large_is_said_at_the_header() {
    let mut framer = Framer::new(10);
    framer.push(Bytes::from(wire(0, &[&[1; 10]])));
    assert_eq!(drain(&mut framer).len(), 1);
    framer.push(Bytes::from_static(&[11, 0, 0, 1]));
    let error = PacketError::PayloadTooLarge { claimed: 11, limit: 10 };
    assert_eq!(framer.next_payload(), Err(error));
    // For ever: what follows cannot be trusted to be a packet.
    framer.push(Bytes::from_static(&[1, 0, 0, 1, 0]));
    assert_eq!(framer.next_payload(), Err(error));
    assert_eq!(framer.buffered(), 0);
    assert!(!framer.is_at_boundary());
}

#[test]
fn too_large_counts_all_packets_of_a_payload() {
    let mut framer = Framer::new(PACKET_LEN_MAX + 5);
    framer.push(Bytes::from(wire(0, &[&vec![0; PACKET_LEN_MAX + 6]])));
    let claimed = PACKET_LEN_MAX + 6;
    let limit = PACKET_LEN_MAX + 5;
    assert_eq!(framer.next_payload(), Err(PacketError::PayloadTooLarge { claimed, limit }));
}

#[test]
fn sequence_ids_are_checked_and_wrap() {
    let mut framer = Framer::new(10);
    for id in (0..=255).chain(0..3) {
        framer.push(Bytes::copy_from_slice(&[1, 0, 0, id, 9]));
        assert_eq!(drain(&mut framer).len(), 1, "{id}");
    }
    framer.push(Bytes::from_static(&[1, 0, 0, 4, 9]));
    assert_eq!(framer.next_payload(), Err(PacketError::OutOfOrder { expected: 3, found: 4 }));
}

#[test]
fn a_command_starts_over_and_its_reply_goes_on() {
    let mut framer = Framer::new(10);
    framer.push(Bytes::from_static(&[1, 0, 0, 0, 9]));
    drain(&mut framer);
    framer.begin_command();
    let mut out = BytesMut::new();
    encode(&[0x0e], framer.sequence_mut(), &mut out);
    assert_eq!(&out[..], [1, 0, 0, 0, 0x0e]);
    framer.push(Bytes::from_static(&[1, 0, 0, 1, 0x00]));
    assert_eq!(drain(&mut framer).len(), 1);
}

/// Captured from 9.7.4 after `wait_timeout`: id 0 though the last answer ended with 5.
#[test]
fn a_farewell_has_an_id_of_its_own() {
    let farewell = b"\x09\x00\x00\x00\xff\xbf\x0f#HY000";
    for (expected, found) in [(1, 0), (6, 0), (255, 0), (1, 7)] {
        for cut in 0..farewell.len() {
            let mut bytes = *farewell;
            bytes[3] = found;
            let mut framer = Framer::new(10);
            framer.sequence = Sequence(expected);
            framer.push(Bytes::copy_from_slice(&bytes[..cut]));
            assert_eq!(framer.next_payload(), Ok(None), "{cut}");
            assert!(framer.wants() > 0, "{cut}");
            framer.push(Bytes::copy_from_slice(&bytes[cut..]));
            assert_eq!(drain(&mut framer), [&farewell[4..]], "{cut}");
        }
    }
    // No other packet, and no other id in the middle of an answer.
    for (expected, found, first) in [(1, 0, 0x00), (6, 0, 0x00), (1, 2, 0xfe), (2, 1, 0xff), (6, 5, 0xff)] {
        let mut framer = Framer::new(10);
        framer.sequence = Sequence(expected);
        framer.push(Bytes::copy_from_slice(&[1, 0, 0, found, first]));
        assert_eq!(framer.next_payload(), Err(PacketError::OutOfOrder { expected, found }));
    }
    // An empty packet says nothing.
    let mut framer = Framer::new(10);
    framer.sequence = Sequence(6);
    framer.push(Bytes::from_static(&[0, 0, 0, 0]));
    assert_eq!(framer.next_payload(), Err(PacketError::OutOfOrder { expected: 6, found: 0 }));
}

/// An id that starts over inside a payload is no farewell, whatever the byte.
#[test]
fn a_continued_payload_has_no_farewell() {
    let mut framer = Framer::new(1 << 25);
    let mut bytes = wire(0, &[&vec![0xff; PACKET_LEN_MAX + 1]]);
    bytes[PACKET_LEN_MAX + 4 + 3] = 0;
    framer.push(bytes.into());
    assert_eq!(framer.next_payload(), Err(PacketError::OutOfOrder { expected: 1, found: 0 }));
}

#[test]
fn debug_shows_no_bytes() {
    let mut framer = Framer::new(100);
    framer.push(Bytes::from_static(b"\x08\x00\x00\x00sentinel"));
    let payload = framer.next_payload().unwrap().unwrap();
    framer.push(Bytes::from_static(b"\x09\x00\x00\x01sentinel"));
    assert!(!alloc::format!("{framer:?} {payload:?}").contains("sentinel"));
}

proptest! {
    /// Any re-chunking gives the same payloads, and `wants` is never more than what is missing.
    #[test]
    fn any_chunking_gives_the_same_payloads(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        cuts in prop::collection::vec(0usize..20, 1..40),
    ) {
        let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let mut rest = Bytes::from(wire(0, &payloads));
        let mut framer = Framer::new(40);
        let mut got: Vec<Bytes> = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            // 0 means: exactly what the framer asks for.
            let len = if *cut == 0 { framer.wants() } else { *cut };
            prop_assert!(framer.wants() > 0 && framer.wants() <= rest.len());
            framer.push(rest.split_to(len.min(rest.len())));
            got.extend(drain(&mut framer));
        }
        prop_assert_eq!(got, payloads);
        prop_assert!(framer.is_at_boundary());
    }

    /// Nonsense gives payloads or an error, never a panic, and never more bytes than were fed.
    #[test]
    fn nonsense_is_survived(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20)) {
        let mut framer = Framer::new(1 << 24);
        let mut fed = 0;
        for chunk in chunks {
            fed += chunk.len();
            framer.push(chunk.into());
            while let Ok(Some(payload)) = framer.next_payload() {
                fed -= payload.bytes.len();
            }
            prop_assert!(framer.buffered() <= fed);
        }
    }
}
