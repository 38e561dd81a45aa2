//! One event of any bytes, to the decoder of its type.

use bytes::Bytes;
use capstan_core::{
    binlog::{
        Checksum, EventDecoder, EventHeader, EventType, FormatDescription, GtidEvent, Heartbeat, Incident,
        Query, Rotate, TransactionPayload, XaPrepare, Xid, previous_gtids,
        rows::RowsHead,
        table_map::{TableMapHead, parse_table_map},
    },
    gtid::GtidSet,
};

/// No panic, and what is decoded lies within what was given.
///
/// Bit 0 of the first byte: the link has checksums. The size field is made true, or nearly every change of
/// length would end at the first test.
pub fn check(data: &[u8]) {
    let Some((&options, bytes)) = data.split_first() else { return };
    let mut event = bytes.to_vec();
    if let (Some(size), Ok(length)) = (event.get_mut(9..13), u32::try_from(bytes.len())) {
        size.copy_from_slice(&length.to_le_bytes());
    }
    let checksum = if options & 1 == 1 { Checksum::Crc32 } else { Checksum::None };
    let mut decoder = EventDecoder::for_link(checksum);
    let Ok(event) = decoder.decode(Bytes::from(event)) else {
        assert_eq!(decoder.checksum(), checksum, "an event that is refused changes nothing");
        return;
    };
    let sum = bytes.len() - EventHeader::LENGTH - event.body.len();
    assert!(sum == 0 || sum == Checksum::LENGTH, "{sum} bytes between body and end");
    body(&event.header, &event.body);
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the decoder of rows says itself which types it takes")]
fn body(header: &EventHeader, body: &Bytes) {
    match header.event_type {
        EventType::Gtid => {
            if let Ok(event) = GtidEvent::decode(body) {
                assert!(event.gtid.is_some());
            }
        }
        EventType::GtidTagged => drop(GtidEvent::decode_tagged(body)),
        EventType::AnonymousGtid => {
            if let Ok(event) = GtidEvent::decode_anonymous(body) {
                assert!(event.gtid.is_none());
            }
        }
        EventType::Query => query(Query::decode(body).ok(), body),
        EventType::ExecuteLoadQuery => query(Query::decode_execute_load(body).ok(), body),
        EventType::Rotate => {
            if let Ok(rotate) = Rotate::decode(body) {
                assert!(rotate.file.len() <= body.len(), "a name longer than its event");
            }
        }
        EventType::FormatDescription => {
            if let Ok(description) = FormatDescription::decode(body) {
                let _ = (description.version(), description.post_header_length(EventType::Query));
            }
        }
        EventType::PreviousGtids => {
            if let Ok(set) = previous_gtids(body) {
                assert_eq!(GtidSet::decode(&set.encode()), Ok(set));
            }
        }
        EventType::TableMap => {
            let (head, table) = (TableMapHead::parse(body), parse_table_map(body));
            if let Ok(table) = table {
                assert!(head.is_ok(), "a table without a head");
                assert!(table.columns().len() <= body.len(), "a column is at least a byte");
            }
        }
        EventType::TransactionPayload => {
            if let Ok(payload) = TransactionPayload::decode(body) {
                assert_eq!(u64::try_from(payload.payload.len()), Ok(payload.header.payload_size));
            }
        }
        EventType::Xid => drop(Xid::decode(body)),
        EventType::XaPrepare => drop(XaPrepare::decode(body)),
        EventType::Heartbeat => drop(Heartbeat::decode(header, body)),
        EventType::HeartbeatV2 => drop(Heartbeat::decode_v2(body)),
        EventType::Incident => drop(Incident::decode(body)),
        other => {
            // Of a type without rows it says so.
            if let Ok(head) = RowsHead::parse(other.code(), body) {
                assert!(body.len() >= 8 && head.table_id < 1 << 48, "a head from nowhere");
            }
        }
    }
}

fn query(query: Option<Query>, body: &Bytes) {
    let Some(query) = query else { return };
    assert!(query.schema.len() + query.text.len() < body.len(), "more text than there are bytes");
}
