//! Against bytes that a real server wrote.

mod bodies;
mod files;
mod fixtures;
mod frames;
mod payloads;
mod statements;

use super::*;
use bytes::Bytes;
use std::string::String;
use std::vec::Vec;

/// Bytes from hexadecimal digits; blanks are for the reader.
fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect::<Vec<u8>>()
        .into()
}

/// All events of a file, which must be whole.
fn events(file: &[u8]) -> Vec<Event> {
    let mut reader = FileReader::new(1 << 30);
    reader.feed(file);
    let mut events = Vec::new();
    while let Some((_, event)) = reader.next_event().unwrap() {
        events.push(event);
    }
    assert_eq!(reader.finish(), Ok(()));
    events
}

/// The bodies of a file's events of one type.
fn bodies(file: &[u8], event_type: EventType) -> Vec<Bytes> {
    let of_type = events(file).into_iter().filter(|event| event.header.event_type == event_type);
    of_type.map(|event| event.body).collect()
}

/// An event with a right size and a right checksum around any body.
fn framed(event_type: EventType, flags: u16, body: &[u8]) -> Bytes {
    let mut event = vec_of(&[0, 0, 0, 0, event_type.code(), 1, 0, 0, 0]);
    let size = u32::try_from(EventHeader::LENGTH + body.len() + Checksum::LENGTH).unwrap();
    event.extend_from_slice(&size.to_le_bytes());
    event.extend_from_slice(&[0; 4]);
    event.extend_from_slice(&flags.to_le_bytes());
    event.extend_from_slice(body);
    let sum = crc32fast::hash(&event);
    event.extend_from_slice(&sum.to_le_bytes());
    event.into()
}

fn vec_of(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap()
}

/// Runs the decoder of the event's type, if there is one, and says what it says.
fn decode(header: &EventHeader, body: &Bytes) -> Result<String, DecodeError> {
    use std::format;
    match header.event_type {
        EventType::FormatDescription => match FormatDescription::decode(body) {
            Ok(description) => Ok(format!("{description:?}")),
            Err(EventError::FormatDescription(error)) => Err(error),
            Err(_) => Err(DecodeError::Field("checksum algorithm")),
        },
        EventType::Rotate => Rotate::decode(body).map(|event| format!("{event:?}")),
        EventType::PreviousGtids => previous_gtids(body).map(|event| format!("{event:?}")),
        EventType::Gtid => GtidEvent::decode(body).map(|event| format!("{event:?}")),
        EventType::AnonymousGtid => GtidEvent::decode_anonymous(body).map(|event| format!("{event:?}")),
        EventType::GtidTagged => GtidEvent::decode_tagged(body).map(|event| format!("{event:?}")),
        EventType::Query => Query::decode(body).map(|event| format!("{event:?}")),
        EventType::ExecuteLoadQuery => Query::decode_execute_load(body).map(|event| format!("{event:?}")),
        EventType::Xid => Xid::decode(body).map(|event| format!("{event:?}")),
        EventType::XaPrepare => XaPrepare::decode(body).map(|event| format!("{event:?}")),
        EventType::Heartbeat => Heartbeat::decode(header, body).map(|event| format!("{event:?}")),
        EventType::HeartbeatV2 => Heartbeat::decode_v2(body).map(|event| format!("{event:?}")),
        EventType::Incident => Incident::decode(body).map(|event| format!("{event:?}")),
        EventType::TransactionPayload => TransactionPayload::decode(body).map(|event| format!("{event:?}")),
        EventType::StartV3
        | EventType::Stop
        | EventType::Intvar
        | EventType::Load
        | EventType::Slave
        | EventType::CreateFile
        | EventType::AppendBlock
        | EventType::ExecLoad
        | EventType::DeleteFile
        | EventType::NewLoad
        | EventType::Rand
        | EventType::UserVar
        | EventType::BeginLoadQuery
        | EventType::TableMap
        | EventType::PreGaWriteRows
        | EventType::PreGaUpdateRows
        | EventType::PreGaDeleteRows
        | EventType::WriteRowsV1
        | EventType::UpdateRowsV1
        | EventType::DeleteRowsV1
        | EventType::Ignorable
        | EventType::RowsQuery
        | EventType::WriteRows
        | EventType::UpdateRows
        | EventType::DeleteRows
        | EventType::TransactionContext
        | EventType::ViewChange
        | EventType::PartialUpdateRows
        | EventType::Unknown(_) => Ok(String::new()),
    }
}
