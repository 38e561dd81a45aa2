//! Targets: their positions, their status files, and odd ones.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{fs, path::Path};

use capstan::{
    Decision, Expected, GtidSet, Position, Stored as _,
    checkpoint::FileCheckpoint,
    jsonl::{JsonFile, JsonOptions},
    sqlite::{Ledger, LedgerOptions, Mirror, MirrorOptions},
};
use common::capstan;

const SOURCE: &str = "mysql://u:s3cr3t@127.0.0.1:1/?ssl-mode=disabled";
const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const EVERYTHING: &str = "tables=*.*;exclude=;exclude-columns=";

fn position() -> Position {
    let set: GtidSet = format!("{UUID}:1-5").parse().unwrap();
    Position::new(set, EVERYTHING).claimed(7)
}

/// A target of each kind with a position, made by the library.
fn targets(folder: &Path) -> Vec<String> {
    let decision = Decision { kind: "test".into(), subject: "all".into(), reason: "to begin with".into() };
    let nothing = Expected::new(None);
    let ledger = folder.join("l.db");
    Ledger::open(&ledger, LedgerOptions::default())
        .unwrap()
        .decide(&nothing, &position(), &decision)
        .unwrap();
    let mirror = folder.join("m.db");
    Mirror::open(&mirror, MirrorOptions::default())
        .unwrap()
        .decide(&nothing, &position(), &decision)
        .unwrap();
    let lines = folder.join("l.jsonl");
    JsonFile::open(&lines, JsonOptions::default()).unwrap().decide(&nothing, &position(), &decision).unwrap();
    let file = folder.join("p.position");
    FileCheckpoint::open(&file).unwrap().decide(&nothing, &position(), &decision).unwrap();
    vec![
        format!("sqlite:{}?mode=ledger", ledger.display()),
        format!("sqlite:{}", mirror.display()),
        format!("jsonl:{}", lines.display()),
        format!("checkpoint:{}", file.display()),
    ]
}

#[test]
fn a_position_is_shown_exported_and_moved_by_a_recorded_decision() {
    let folder = tempfile::tempdir().unwrap();
    for target in targets(folder.path()) {
        let export = || capstan(&["position", "export", &target]).out;
        assert_eq!(export(), format!("{UUID}:1-5\n"), "{target}");
        let shown = capstan(&["position", "show", &target, "-o", "json"]);
        let before = &shown.lines()[0];
        assert_eq!(
            (before["gtid_set"].as_str(), before["epoch"].as_u64()),
            (Some(&*format!("{UUID}:1-5")), Some(1))
        );

        let gtid = format!("{UUID}:6");
        let skip = |gtid: &str, reason: &str| {
            capstan(&["position", "skip", "--gtid", gtid, "--reason", reason, &target, "-o", "json"])
        };
        let (processed, ahead) = (format!("{UUID}:5"), format!("{UUID}:60"));
        for (gtid, reason) in [("nonsense", "r"), (&*gtid, "  "), (&*processed, "r"), (&*ahead, "r")] {
            let called = skip(gtid, reason);
            assert_eq!(
                (called.status, called.halt()["code"].as_str()),
                (3, Some("config_invalid")),
                "{called:?}"
            );
        }
        assert_eq!(export(), format!("{UUID}:1-5\n"), "nothing moved");
        assert_eq!(skip(&gtid, "a poison pill").status, 0);
        assert_eq!(export(), format!("{UUID}:1-6\n"), "{target}");
        let after = &capstan(&["position", "show", &target, "-o", "json"]).lines()[0];
        assert_eq!(after["epoch"], 2, "a process that still runs is fenced");
        // Its commit time is not known, so it must not be what the source's history is verified by.
        assert_eq!(after["last"], before["last"], "{target}");

        let accept = ["position", "accept-tables", "--tables", "shop.*", "--reason", "narrower", &target];
        assert_eq!(capstan(&accept).status, 0);
        assert_eq!(capstan(&["position", "forget-table", "shop.t", "--reason", "gone", &target]).status, 0);
        let after = &capstan(&["position", "show", &target, "-o", "json"]).lines()[0];
        assert_eq!(after["captured"], "tables=`shop`.*;exclude=`shop`.`t`;exclude-columns=");
        assert_eq!(after["epoch"], 4);
    }
    let connection = rusqlite::Connection::open(folder.path().join("l.db")).unwrap();
    let kinds: String = connection
        .query_row(
            "SELECT group_concat(kind || ':' || reason) FROM capstan_decisions ORDER BY seq",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(kinds, "test:to begin with,skip:a poison pill,accept-tables:narrower,forget-table:gone");
    let lines = fs::read_to_string(folder.path().join("l.jsonl.decisions")).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
}

#[test]
fn another_start_or_captured_set_than_the_stored_one_is_refused_before_any_socket() {
    let folder = tempfile::tempdir().unwrap();
    for target in targets(folder.path()).into_iter().take(2) {
        for (option, code) in [
            (["--start", "earliest"], "start_position_conflict"),
            (["--tables", "other.*"], "capture_set_changed"),
        ] {
            let called = capstan(&["sync", SOURCE, &target, option[0], option[1], "-o", "json"]);
            assert_eq!((called.status, called.halt()["code"].as_str()), (3, Some(code)), "{called:?}");
        }
    }
}

#[test]
fn a_target_in_use_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.db");
    let target = format!("sqlite:{}?mode=ledger", path.display());
    let _held = Ledger::open(&path, LedgerOptions::default()).unwrap();
    for arguments in [
        &["sync", SOURCE, &target, "--start", "current", "-o", "json"][..],
        &[
            "position",
            "skip",
            "--gtid",
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:9",
            "--reason",
            "r",
            &target,
            "-o",
            "json",
        ],
    ] {
        let called = capstan(arguments);
        assert_eq!(
            (called.status, called.halt()["code"].as_str()),
            (3, Some("checkpoint_in_use")),
            "{called:?}"
        );
    }
}

#[test]
fn odd_targets_are_refused_and_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("notes.txt"), "this is no database, but long enough to look at ".repeat(40)).unwrap();
    let other = rusqlite::Connection::open(at("other.db")).unwrap();
    other.execute_batch("CREATE TABLE capstan_meta (key TEXT PRIMARY KEY, value TEXT); INSERT INTO capstan_meta VALUES ('kind', 'mirror')").unwrap();
    drop(other);
    let (notes, database) = (fs::read(at("notes.txt")).unwrap(), fs::read(at("other.db")).unwrap());
    for (target, code) in [
        (format!("sqlite:{}?mode=ledger", at("folder").display()), "config_invalid"),
        (format!("jsonl:{}", at("folder").display()), "config_invalid"),
        (format!("sqlite:{}?mode=ledger", at("missing/l.db").display()), "config_invalid"),
        (format!("jsonl:{}", at("missing/l.jsonl").display()), "config_invalid"),
        (format!("sqlite:{}?mode=ledger", at("notes.txt").display()), "config_invalid"),
        (format!("sqlite:{}?mode=ledger", at("other.db").display()), "target_of_another_source"),
        ("sqlite:/proc/l.db?mode=ledger".to_owned(), "config_invalid"),
        ("jsonl:/proc/l.jsonl".to_owned(), "config_invalid"),
    ] {
        let called = capstan(&["sync", SOURCE, &target, "--start", "current", "-o", "json"]);
        assert_eq!((called.status, called.halt()["code"].as_str()), (3, Some(code)), "{target}: {called:?}");
    }
    assert_eq!(fs::read(at("notes.txt")).unwrap(), notes);
    assert_eq!(fs::read(at("other.db")).unwrap(), database);
    assert_eq!(names(folder.path()), ["folder", "notes.txt", "other.db"], "nothing lies beside them");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Red when the target is opened before the rest was looked at.
#[test]
fn a_target_is_made_once_everything_else_is_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("capstan.toml");
    fs::write(&config, "[limits]\nheartbeat-ms = 20000\nsilence-ms = 1000\n").unwrap();
    let config = config.to_str().unwrap();
    for kind in ["sqlite:NAME", "sqlite:NAME?mode=ledger", "jsonl:NAME"] {
        let target = kind.replace("NAME", folder.path().join("new").to_str().unwrap());
        for (arguments, code) in [
            (&[][..], "start_position_required"),
            (&["--start", "earliest", "--tables", "a.b.c.d"][..], "config_invalid"),
            (&["--start", "earliest", "--config", config][..], "config_invalid"),
            (&["--start", "earliest", "--seeded-at", ""][..], "config_invalid"),
        ] {
            let called = capstan(&[&["sync", SOURCE, &target, "-o", "json"][..], arguments].concat());
            assert_eq!(
                (called.status, called.halt()["code"].as_str()),
                (3, Some(code)),
                "{arguments:?}: {called:?}"
            );
        }
        let source = "mysql://u@127.0.0.1:1/?ssl-ca=/no/such.pem";
        assert_eq!(capstan(&["sync", source, &target, "--start", "earliest"]).status, 3, "{target}");
        assert_eq!(names(folder.path()), ["capstan.toml"], "{target}");
    }
    let mirror = format!("sqlite:{}", folder.path().join("new").display());
    let called =
        capstan(&["sync", SOURCE, &mirror, "--start", "earliest", "--bigint", "string", "-o", "json"]);
    assert_eq!((called.status, called.halt()["code"].as_str()), (3, Some("config_invalid")), "{called:?}");
    assert!(called.err.contains("bigint"), "{called:?}");
    assert_eq!(names(folder.path()), ["capstan.toml"]);
}

#[test]
fn status_tells_what_was_said_last_and_whether_anybody_still_speaks() {
    let folder = tempfile::tempdir().unwrap();
    let target = format!("jsonl:{}", folder.path().join("l.jsonl").display());
    let status = folder.path().join("l.jsonl.status.json");
    assert_eq!(capstan(&["status", &target]).status, 3);
    fs::write(&status, "{half").unwrap();
    let called = capstan(&["status", &target]);
    assert!(called.status == 3 && called.err.contains("damaged"), "{called:?}");
    // No process has this number: it is beyond the highest that Linux gives.
    fs::write(&status, r#"{"pid":4194305,"written_unix_ms":1,"state":"streaming","epoch":3}"#).unwrap();
    let told = &capstan(&["status", &target, "-o", "json"]).lines()[0];
    assert_eq!(
        (&told["running"], &told["stale"], &told["state"]),
        (&false.into(), &true.into(), &"streaming".into())
    );
    let text = capstan(&["status", &target]).out;
    assert!(text.contains("4194305, no longer running") && text.contains("streaming"), "{text}");

    // A process that ends by a halt has said so.
    let config = folder.path().join("capstan.toml");
    fs::write(&config, "[limits]\ntrouble-max-ms = 200\n").unwrap();
    let called =
        capstan(&["sync", SOURCE, &target, "--start", "current", "--config", config.to_str().unwrap()]);
    assert_eq!(called.status, 5, "{called:?}");
    let told = &capstan(&["status", &target, "-o", "json"]).lines()[0];
    assert_eq!((&told["running"], &told["stale"]), (&false.into(), &false.into()), "{told}");
    assert!(told["pid"].as_u64() < Some(4_194_305) && !told.to_string().contains("s3cr3t"), "{told}");
}
