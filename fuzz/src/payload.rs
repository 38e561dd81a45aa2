//! A transaction payload of any bytes: any pieces give the same events, and zstd itself the same bytes.

use std::io::Read as _;

use bytes::Bytes;
use capstan_core::binlog::{Compression, EventHeader, Inflated, Inflater, PayloadError, TransactionPayload};

/// Longest event, and how much is looked at of what inflates to more.
const EVENT_MAX: usize = 1 << 20;
const LOOKED_AT: usize = 4 << 20;

/// The first byte says into which pieces the payload is cut; the rest is the body of the event.
pub fn check(data: &[u8]) {
    let Some((&step, body)) = data.split_first() else { return };
    let Ok(payload) = TransactionPayload::decode(&Bytes::copy_from_slice(body)) else { return };
    let whole = events(&payload, payload.payload.len().max(1));
    let pieces = events(&payload, usize::from(step).max(1));
    match (whole.1, pieces.1) {
        // How far a damaged payload is read before that shows depends on the pieces. Nothing of it takes effect.
        (Err(_), Err(_)) => {
            let both = whole.0.len().min(pieces.0.len());
            assert_eq!(whole.0[..both], pieces.0[..both], "in pieces of {step} bytes: other events");
        }
        _ => assert_eq!(whole, pieces, "in pieces of {step} bytes"),
    }
    if let (Compression::Zstd, Ok(true)) = (payload.header.compression, whole.1) {
        let mut truth = Vec::new();
        let mut decoder = zstd::stream::read::Decoder::new(&*payload.payload).expect("memory");
        decoder.read_to_end(&mut truth).expect("what was whole for us is whole for zstd");
        assert_eq!(whole.0.concat(), truth);
    }
}

/// The events as they stood there, and whether the payload was whole (`false`: more than is looked at).
fn events(payload: &TransactionPayload, step: usize) -> (Vec<Vec<u8>>, Result<bool, PayloadError>) {
    let mut seen = Vec::new();
    let mut inflater = match Inflater::new(&payload.header, EVENT_MAX) {
        Ok(inflater) => inflater,
        Err(error) => return (seen, Err(error)),
    };
    let mut pieces = payload.payload.chunks(step);
    let mut total = 0;
    loop {
        match inflater.next_event() {
            Ok(Inflated::Event(event)) => {
                assert_eq!(event.header.size(), EventHeader::LENGTH + event.body.len());
                assert!(event.header.size() <= EVENT_MAX);
                total += event.header.size();
                seen.push([&head(&event.header), &*event.body].concat());
                if total > LOOKED_AT {
                    return (seen, Ok(false));
                }
            }
            Ok(Inflated::NeedsInput) => match pieces.next() {
                Some(piece) => inflater.push(Bytes::copy_from_slice(piece)),
                None => inflater.finish(),
            },
            Ok(Inflated::End) => return (seen, Ok(true)),
            Err(error) => {
                assert_eq!(inflater.next_event(), Err(error), "an error that does not stay");
                return (seen, Err(error));
            }
        }
    }
}

/// The header, as it stood there.
fn head(header: &EventHeader) -> [u8; EventHeader::LENGTH] {
    let mut out = [0; EventHeader::LENGTH];
    out[..4].copy_from_slice(&header.timestamp.to_le_bytes());
    out[4] = header.event_type.code();
    out[5..9].copy_from_slice(&header.server_id.to_le_bytes());
    out[9..13].copy_from_slice(&header.event_size.to_le_bytes());
    out[13..17].copy_from_slice(&header.log_pos.to_le_bytes());
    out[17..].copy_from_slice(&header.flags.to_le_bytes());
    out
}
