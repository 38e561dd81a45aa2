//! Dumps that run, and dumps that are refused: each refusal is told by the server's own words.

use crate::client::{Client, login, root};
use capstan_core::gtid::GtidSet;
use capstan_core::link::command::{BINLOG_DUMP_NON_BLOCK, BINLOG_THROUGH_GTID};
use capstan_core::link::{BinlogDump, DumpRefusal, StreamPacket};
use capstan_mysql::Server;

/// A session that is ready to dump.
fn replica(server: &Server, uuid: &str) -> Client {
    let mut client = root(server);
    client.run(ANNOUNCE_CHECKSUM);
    client.run(&format!("SET @replica_uuid = '{uuid}', @slave_uuid = '{uuid}'"));
    client
}

fn ask(client: &mut Client, flags: u16, gtid_set: &[u8]) {
    let flags = flags | BINLOG_THROUGH_GTID;
    client.send(&BinlogDump { flags, server_id: 4_000_000_001, file: b"", position: 4, gtid_set }.encode());
}

fn next(client: &mut Client) -> StreamPacket {
    StreamPacket::classify(client.receive().expect("closed")).unwrap()
}

/// Reads past events to the refusal.
fn refusal(client: &mut Client) -> DumpRefusal {
    loop {
        match next(client) {
            StreamPacket::Event(_) => {}
            StreamPacket::End => panic!("ended without an error"),
            StreamPacket::Error(error) => return error.dump_refusal(),
        }
    }
}

fn refused(client: &mut Client, gtid_set: &[u8]) -> DumpRefusal {
    ask(client, BINLOG_DUMP_NON_BLOCK, gtid_set);
    refusal(client)
}

fn encode(set: &str) -> Vec<u8> {
    set.parse::<GtidSet>().unwrap().encode()
}

const ANNOUNCE_CHECKSUM: &str = "SET @source_binlog_checksum = 'CRC32', @master_binlog_checksum = 'CRC32'";
const UUID_A: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
const UUID_B: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";

#[test]
fn a_dump_that_does_not_wait_ends() {
    let server = Server::builder().start().unwrap();
    root(&server).run("CREATE DATABASE d");
    let mut client = replica(&server, UUID_A);
    ask(&mut client, BINLOG_DUMP_NON_BLOCK, &encode(""));
    let mut kinds = Vec::new();
    loop {
        match next(&mut client) {
            // The type is the fifth byte of an event's header.
            StreamPacket::Event(payload) => kinds.push(payload.bytes[4]),
            StreamPacket::End => break,
            StreamPacket::Error(error) => panic!("{error}"),
        }
    }
    // ROTATE, FORMAT_DESCRIPTION, …, GTID and QUERY of the CREATE DATABASE.
    assert_eq!(kinds[..2], [4, 15]);
    assert_eq!(kinds[kinds.len() - 2..], [33, 2]);
}

#[test]
fn refusals_by_their_meaning() {
    let server = Server::builder().start().unwrap();
    let mut admin = root(&server);
    admin.run("CREATE DATABASE d");
    let own = admin.text("SELECT @@server_uuid");
    // The texts that tell refusals apart are English even where errors are German.
    admin.run("SET GLOBAL lc_messages = 'de_DE'");
    admin.run("CREATE USER plain@'%' IDENTIFIED BY ''");

    // No checksum was agreed on.
    assert_eq!(refused(&mut root(&server), &encode("")), DumpRefusal::ChecksumNegotiationFailed);
    // More of the source's own transactions than the source has.
    let ahead = encode(&format!("{own}:1-1000000"));
    assert_eq!(refused(&mut replica(&server, UUID_A), &ahead), DumpRefusal::SourceIdentityMismatch);
    // Intervals out of order.
    let set = encode(&format!("{own}:1-2:5-6"));
    let (head, intervals) = set.split_at(set.len() - 32);
    let swapped = [head, &intervals[16..], &intervals[..16]].concat();
    assert_eq!(refused(&mut replica(&server, UUID_A), &swapped), DumpRefusal::Refused(1773));
    // No REPLICATION SLAVE.
    let mut plain = Client::connect(&server, login("plain", "")).unwrap();
    plain.run(ANNOUNCE_CHECKSUM);
    assert_eq!(refused(&mut plain, &encode("")), DumpRefusal::MissingPrivilege);
    // What is missing here was purged there.
    admin.run("FLUSH BINARY LOGS");
    let files = admin.rows("SHOW BINARY LOGS").rows;
    let newest = files.last().unwrap()[0].as_ref().unwrap();
    admin.run(&format!("PURGE BINARY LOGS TO '{}'", String::from_utf8_lossy(newest)));
    assert_eq!(refused(&mut replica(&server, UUID_A), &encode("")), DumpRefusal::DataGap);
}

/// The newcomer stays, the older one goes; other UUIDs do not disturb each other.
#[test]
fn two_dumps_of_one_identity() {
    let server = Server::builder().start().unwrap();
    let wait = |uuid| {
        let mut client = replica(&server, uuid);
        ask(&mut client, 0, &encode(""));
        assert!(matches!(next(&mut client), StreamPacket::Event(_)));
        client
    };
    let mut old = wait(UUID_A);
    let mut other = wait(UUID_B);
    let mut new = wait(UUID_A);
    assert_eq!(refusal(&mut old), DumpRefusal::ServerIdConflict);
    root(&server).run("CREATE DATABASE seen_by_the_living");
    for client in [&mut other, &mut new] {
        loop {
            let StreamPacket::Event(payload) = next(client) else { panic!("the wrong one was ended") };
            if payload.bytes.windows(18).any(|window| window == b"seen_by_the_living") {
                break;
            }
        }
    }
}

/// A server that stops ends its dumps; whatever it says or leaves unsaid, it is no refusal.
#[test]
fn a_server_that_stops() {
    let server = Server::builder().start().unwrap();
    let mut client = replica(&server, UUID_A);
    ask(&mut client, 0, &encode(""));
    assert!(matches!(next(&mut client), StreamPacket::Event(_)));
    // The server may be gone before it has answered.
    root(&server).send(&capstan_core::link::command::query(b"SHUTDOWN"));
    while let Some(payload) = client.receive() {
        match StreamPacket::classify(payload).unwrap() {
            StreamPacket::Event(_) | StreamPacket::End => {}
            StreamPacket::Error(error) => assert_eq!(error.dump_refusal(), DumpRefusal::Transient, "{error}"),
        }
    }
}
