//! The seeds of the fuzz targets are what the captured bytes give. `CAPSTAN_WRITE_SEEDS=1` writes them anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use capstan_core::{
    binlog::EventHeader,
    gtid::{Gtid, Tag, Uuid},
};
use capstan_fake_source::Server;
use sim::workload::{SHAPES, Shape, Workload};

#[path = "../../fuzz/src/bodies.rs"]
mod bodies;

use bodies::trace::{self, kind};

type Seeds = BTreeMap<String, Vec<u8>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The events of every captured binlog below a folder, with the file's name.
fn events(folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("tests/fixtures").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut out = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "binlog")) {
        let bytes = fs::read(path).unwrap();
        let mut rest = &bytes[4..];
        while rest.len() >= EventHeader::LENGTH {
            let size = EventHeader::parse(rest).unwrap().size();
            let (event, behind) = rest.split_at(size.min(rest.len()));
            out.push((path.file_stem().unwrap().to_string_lossy().into_owned(), event.to_vec()));
            rest = behind;
        }
    }
    assert!(out.len() > 20, "{folder}: only {} events", out.len());
    out
}

/// The two smallest events of each type and each rounded size, with their checksums off and on.
fn event_seeds() -> Seeds {
    let mut seeds = Seeds::new();
    let mut all = events("captured");
    all.extend(events("binlog"));
    all.sort_by_key(|(_, event)| event.len());
    let mut taken = BTreeMap::<(u8, u32), usize>::new();
    for (_, event) in all.iter().filter(|(_, event)| event.len() < 600) {
        let code = event[4];
        let count = taken.entry((code, event.len().ilog2())).or_default();
        *count += 1;
        if *count == 1 {
            seeds.insert(format!("{code:02}-{}-sum", event.len()), [&[1], &**event].concat());
            seeds.insert(format!("{code:02}-{}", event.len()), [&[0], &event[..event.len() - 4]].concat());
        }
    }
    seeds
}

/// The payloads of payload events.
fn payload_seeds() -> Seeds {
    let mut seeds = Seeds::new();
    for (file, event) in [events("captured"), events("binlog")].concat() {
        if event[4] == 40 && event.len() < 3_000 {
            let body = &event[EventHeader::LENGTH..event.len() - 4];
            seeds.insert(format!("{file}-{}", event.len()), [&[13], body].concat());
        }
    }
    seeds
}

/// What servers say in each captured conversation until the login is done.
fn handshake_seeds() -> Seeds {
    let mut seeds = Seeds::new();
    for name in
        ["caching-sha2", "native-5.6", "sha256", "refused", "greeting-mariadb", "tls-request", "queries"]
    {
        let text = fs::read_to_string(root().join(format!("tests/fixtures/session/{name}.hex"))).unwrap();
        for (n, connection) in text.split("\n\n").enumerate() {
            let mut said = Vec::new();
            for line in connection.lines().filter_map(|line| line.strip_prefix('<')).take(6) {
                let packet: Vec<u8> =
                    line.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
                said.extend_from_slice(&u16::try_from(packet.len() - 4).unwrap().to_le_bytes());
                said.extend_from_slice(&packet[4..]);
            }
            for options in [4, 5, 6] {
                seeds.insert(format!("{name}-{n}-{options}"), [&[options], &*said].concat());
            }
        }
    }
    seeds
}

/// Conversations of the core with a simulated server: dial, login, gates, claim, dump, acknowledgements.
fn trace_seeds() -> Seeds {
    let small: Vec<Shape> = SHAPES
        .iter()
        .copied()
        .filter(|shape| !matches!(shape, Shape::Big | Shape::BigCompressed | Shape::BigRolledBack))
        .collect();
    [
        ("plain", 0, vec![Shape::Small, Shape::Mixed, Shape::Empty]),
        ("all", 0, small),
        ("streamed", 0, vec![Shape::BigCompressed]),
        ("until", 32, vec![Shape::Small, Shape::Filtered]),
        ("tight", 1, vec![Shape::Compressed, Shape::Stored]),
    ]
    .into_iter()
    .map(|(name, options, shapes)| (name.to_string(), conversation(options, &shapes)))
    .collect()
}

fn conversation(options: u8, shapes: &[Shape]) -> Vec<u8> {
    let mut server = Server::new(trace::SOURCE.parse().unwrap(), 1, "9.7.4");
    let mut workload = Workload::default();
    for (gno, shape) in (1..).zip(shapes) {
        let gtid = Gtid::new(Uuid([1; 16]), Tag::NONE, gno).unwrap();
        let (group, _) = workload.make(*shape, gtid, 1_795_000_000_000_000 + gno);
        server.append(&group);
    }
    let mut run = trace::Run::new(options, usize::MAX);
    let (mut tape, mut session, mut durable, mut quiet) = (vec![options, 7], None, 0, 0);
    while !run.ended && quiet < 3 {
        for bytes in run.sent.drain(..) {
            server.receive(session.unwrap(), &bytes, 0);
        }
        let mut said = match session {
            _ if run.asked => vec![kind::LOADED, 0],
            _ if run.dialling => {
                session = Some(server.connect());
                vec![kind::CONNECTED, 0]
            }
            _ if run.complete.0 > durable => {
                durable = run.complete.0;
                vec![kind::DURABLE, 0]
            }
            Some(session) if run.reads_more() => {
                let bytes = server.pull(session, 20_000, 0);
                [&[kind::BYTES], &u16::try_from(bytes.len()).unwrap().to_le_bytes()[..], &bytes].concat()
            }
            Some(_) | None => vec![kind::TICK],
        };
        if said == [kind::BYTES, 0, 0] {
            said = vec![8 << 4 | kind::TICK];
        }
        quiet = if said[0] & 15 == kind::TICK { quiet + 1 } else { 0 };
        run.feed(&said);
        tape.extend_from_slice(&said);
    }
    let tail = [kind::DRAIN, kind::DURABLE, 0, kind::TICK];
    run.feed(&tail);
    tape.extend_from_slice(&tail);
    assert!(run.ended, "the conversation has no end");
    tape
}

/// Choices of the simulator: any bytes are some.
fn world_seeds() -> Seeds {
    let mut state = 39_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..12_usize).map(|n| (format!("{n}"), (0..40 * n).map(|_| byte()).collect())).collect()
}

/// The smallest row events of each captured table and type code, with their table maps.
fn row_image_seeds() -> Seeds {
    let mut seeds = Seeds::new();
    for captured in bodies::diff::events() {
        let bytes = captured.as_row_image();
        let (map, code, _) = bodies::row_image::parts(&bytes).unwrap();
        let name = format!("{code}-{:08x}", map.iter().fold(0u32, |n, b| n.rotate_left(5) ^ u32::from(*b)));
        let smaller = seeds.get(&name).is_none_or(|seed: &Vec<u8>| bytes.len() < seed.len());
        if bytes.len() < 4_000 && smaller {
            seeds.insert(name, bytes);
        }
    }
    seeds
}

/// Each captured row event as it is, and with a byte of its rows changed.
fn diff_seeds() -> Seeds {
    let mut seeds = Seeds::new();
    for (n, _) in (0u16..).zip(bodies::diff::events()) {
        seeds.insert(format!("{n}"), n.to_le_bytes().to_vec());
        seeds.insert(format!("{n}-changed"), [&n.to_le_bytes()[..], &n.to_be_bytes(), &[1]].concat());
    }
    seeds
}

fn compare(target: &str, seeds: &Seeds) {
    let folder = root().join("fuzz/corpus").join(target);
    if std::env::var_os("CAPSTAN_WRITE_SEEDS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            // What fuzzing found stays; it is in no captured byte.
            if !entry.file_name().to_string_lossy().starts_with("found-") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
    let there: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for (name, bytes) in seeds {
        let same = there.contains(name) && fs::read(folder.join(name)).unwrap() == *bytes;
        assert!(
            same,
            "{target}/{name}: write the seeds anew: CAPSTAN_WRITE_SEEDS=1 cargo test -p capstan-tests --test fuzz_seeds"
        );
    }
}

#[test]
fn event() {
    compare("event", &event_seeds());
}

#[test]
fn row_image() {
    compare("row_image", &row_image_seeds());
}

#[test]
fn diff() {
    compare("diff", &diff_seeds());
}

#[test]
fn payload() {
    compare("payload", &payload_seeds());
}

#[test]
fn handshake() {
    compare("handshake", &handshake_seeds());
}

#[test]
fn trace() {
    compare("trace", &trace_seeds());
}

#[test]
fn world() {
    compare("world", &world_seeds());
}
