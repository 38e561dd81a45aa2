//! The dump of a captured history is the captured dump, byte for byte.

use std::{fs, path::PathBuf};

use super::*;
use crate::event::{Body, Event, Reader, code};
use capstan_core::gtid::GtidSet;

fn fixture(name: &str) -> Vec<u8> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/binlog"));
    fs::read(root.join(name)).expect("the fixtures of the repository")
}

/// The files that a dump was made from, as a server would keep them.
fn files_of(dump: &[Vec<u8>]) -> Vec<File> {
    let mut reader = Reader::new(true);
    let mut files = Vec::new();
    for events in dump.split(|event| event[4] == code::ROTATE && event[17] & 0x20 != 0).skip(1) {
        let name = format!("bin.{:06}", files.len() + 1);
        files.push(file(name, events.iter().map(|bytes| reader.event(bytes).unwrap()).collect()));
    }
    files
}

fn file(name: String, events: Vec<Event>) -> File {
    let Body::FormatDescription(description) = &events[0].body else { panic!("it comes first") };
    let Body::PreviousGtids { set, .. } = &events[1].body else { panic!("it comes second") };
    let mut file = File::new(name, description.checksum == 1, set.clone(), events[..2].to_vec());
    let mut group: Vec<Event> = Vec::new();
    let flush = |file: &mut File, group: &mut Vec<Event>| {
        if let Some(Body::Gtid(head)) = group.first().map(|event| &event.body) {
            let gtid = head.gtid;
            file.push(&Group::of_events(gtid, group.drain(..).map(|event| event.encode(false)).collect()));
        }
    };
    for event in &events[2..] {
        match event.body.code() {
            code::ROTATE | code::STOP => {
                flush(&mut file, &mut group);
                file.close(event);
            }
            code::GTID | code::GTID_TAGGED => {
                flush(&mut file, &mut group);
                group.push(event.clone());
            }
            _ => group.push(event.clone()),
        }
    }
    flush(&mut file, &mut group);
    file
}

fn packets(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let len = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize;
        out.push(bytes[4..4 + len].to_vec());
        bytes = &bytes[4 + len..];
    }
    out
}

#[test]
fn the_dump_of_a_captured_history_is_the_captured_dump() {
    let captured = fixture("link-v2.events");
    let mut want = Vec::new();
    let mut rest = captured.as_slice();
    while !rest.is_empty() {
        let size = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        want.push(rest[4..4 + size].to_vec());
        rest = &rest[4 + size..];
    }
    // What follows the head of the last file are heartbeats, whose time is not ours to say.
    want.retain(|event| event[4] != code::HEARTBEAT_V2);
    let mut server = Server::new(Uuid::default(), 1, "9.7.4-2").with_files(files_of(&want));
    assert_eq!(server.executed().count(), 5);

    let mut session = dump(&mut server, &GtidSet::new());
    let got: Vec<Vec<u8>> = packets(&server.pull(session, usize::MAX, 0))
        .into_iter()
        .map(|packet| packet[1..].to_vec())
        .collect();
    let show = |events: &[Vec<u8>]| -> Vec<String> { events.iter().map(|e| format!("{e:02x?}")).collect() };
    assert_eq!(show(&got), show(&want));

    // From the middle: heartbeats stand in for what is stepped over.
    let has: GtidSet = "ba99c66a-ebff-11f1-b66f-02fc00000001:1-2".parse().unwrap();
    session = dump(&mut server, &has);
    let codes: Vec<u8> =
        packets(&server.pull(session, usize::MAX, 0)).iter().map(|packet| packet[5]).collect();
    assert_eq!(codes[..6], [4, 15, 35, 41, 33, 2]);
}

/// A session in its dump.
fn dump(server: &mut Server, has: &GtidSet) -> SessionId {
    let id = server.connect();
    let say = |server: &mut Server, payload: &[u8]| {
        let mut packet = vec![payload.len() as u8, (payload.len() >> 8) as u8, 0, 0];
        packet.extend_from_slice(payload);
        server.receive(id, &packet, 0);
    };
    let password = core::mem::take(&mut server.password);
    let mut login = (1_u32 << 9 | 1 << 24).to_le_bytes().to_vec();
    login.resize(32, 0);
    login.extend_from_slice(b"repl\0\0");
    say(server, &login);
    server.password = password;
    say(
        server,
        b"\x03SET @source_binlog_checksum = @@global.binlog_checksum, @source_heartbeat_period = 1000",
    );
    server.pull(id, usize::MAX, 0);
    let mut request = vec![0x1e, 0x06, 0, 7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
    let set = has.encode();
    request.extend_from_slice(&(set.len() as u32).to_le_bytes());
    request.extend_from_slice(&set);
    say(server, &request);
    id
}
