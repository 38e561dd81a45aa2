//! Arguments, settings, and what is refused before any socket.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::fs;

use common::{capstan, command};

/// Nothing listens there, and nothing is to be dialled.
const SOURCE: &str = "mysql://u:s3cr3t-pw@127.0.0.1:1/?ssl-mode=disabled";

#[test]
fn each_kind_of_call_has_its_exit_status() {
    let ledger = "sqlite:/nonexistent/x.db?mode=ledger";
    let cases: &[(&[&str], i32)] = &[
        (&["--help"], 0),
        (&["--version"], 0),
        (&["tail", "--help"], 0),
        (&["position", "skip", "--help"], 0),
        (&[], 2),
        (&["tale"], 2),
        (&["tail"], 2),
        (&["tail", SOURCE, "--tabels", "a.b"], 2),
        (&["tail", SOURCE, "-o", "xml"], 2),
        (&["sync", SOURCE], 2),
        // Where no URL belongs: it is quoted by what refuses it.
        (&[SOURCE], 2),
        (&["tail", SOURCE, SOURCE], 2),
        (&["tail", SOURCE, "-o", SOURCE], 2),
        (&["inspect", SOURCE], 3),
        (&["position", "show", SOURCE], 3),
        (&["inspect"], 2),
        (&["position", "skip", ledger], 2),
        (&["tail", SOURCE, "--server-id", "0"], 3),
        (&["tail", SOURCE, "--server-id", "-1"], 2),
        (&["tail", "postgres://u@h/"], 3),
        (&["tail", "mysql://u@h/?ssl-mod=disabled"], 3),
        (&["tail", SOURCE, "--start", "yesterday"], 3),
        (&["tail", SOURCE, "--until", "3e11fa47:1"], 3),
        (&["tail", SOURCE, "--start", ""], 3),
        (&["tail", SOURCE, "--start", "current", "--until", " "], 3),
        (&["tail", SOURCE, "--start", "current", "--seeded-at", ""], 3),
        (&["tail", SOURCE, "--tables", "a.b.c.d"], 3),
        (&["tail", SOURCE, "--password-file", "/nonexistent/pw"], 3),
        (&["tail", SOURCE, "--config", "/nonexistent/config"], 3),
        (&["sync", SOURCE, "kafka:topic"], 3),
        (&["sync", SOURCE, "sqlite:/nonexistent/x.db"], 3),
        (&["sync", SOURCE, "checkpoint:x"], 3),
        (&["status", ledger], 3),
        (&["position", "show", ledger], 3),
    ];
    for (arguments, status) in cases {
        let called = capstan(arguments);
        assert_eq!(called.status, *status, "{arguments:?}: {called:?}");
        let said = if *status == 0 { &called.out } else { &called.err };
        assert!(!said.is_empty(), "{arguments:?} says nothing");
        assert!(!called.err.contains("panicked"), "{arguments:?}: {called:?}");
        assert!(!called.err.contains("s3cr3t"), "{arguments:?} shows the password: {called:?}");
    }
}

#[test]
fn what_a_copy_cannot_be_told_is_refused_by_name() {
    for (options, want) in [
        (
            &["--start", "current", "--copy-again", "d.t"][..],
            "Setting copy-again: goes on from what is stored",
        ),
        (&["--copy-again", "d"], "Setting --copy-again d: is not schema.table"),
        (&["--start", "current", "--snapshot"], "Setting snapshot: begins at a place of its own"),
        (&["--snapshot=d"], "Setting --snapshot d: is not schema.table"),
        (&["--snapshot", "--snapshot-rate", "0"], "Setting snapshot-rate: is zero"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let target = format!("sqlite:{}?mode=ledger", folder.path().join("l.db").display());
        let mut arguments = vec!["sync", SOURCE, &target, "-o", "json"];
        arguments.extend_from_slice(options);
        let called = capstan(&arguments);
        assert_eq!(
            (called.status, called.halt()["code"].as_str()),
            (3, Some("config_invalid")),
            "{options:?}"
        );
        assert!(called.err.contains(want), "{called:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
    }
}

#[test]
fn a_settings_file_is_read_strictly_and_never_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capstan.toml");
    for (text, code, told) in [
        ("tabels = ['a.b']", "unknown_option", "tabels"),
        ("[limits]\nheartbeat = 1", "unknown_option", "heartbeat"),
        ("password = 's3cr3t'", "unknown_option", "password"),
        ("server-id = 's3cr3t'", "config_invalid", "config, line 1"),
        ("strict = true\n\nstart = s3cr3t", "config_invalid", "config, line 3"),
        ("[limits]\nsilence-ms = 100\nheartbeat-ms = 100", "config_invalid", "silence"),
        ("[limits]\nstream-above-bytes = 1", "config_invalid", "stream_above"),
    ] {
        fs::write(&path, text).unwrap();
        let target = format!("sqlite:{}?mode=ledger", folder.path().join("l.db").display());
        let path = path.to_str().unwrap();
        let called =
            capstan(&["sync", SOURCE, &target, "--start", "current", "--config", path, "-o", "json"]);
        assert_eq!((called.status, called.halt()["code"].as_str()), (3, Some(code)), "{text}: {called:?}");
        assert!(called.err.contains(told), "{text}: {called:?}");
        assert!(!called.err.contains("s3cr3t"), "{text}: {called:?}");
    }
}

/// Every number that the settings file knows is in `--help` with its default, and no other.
#[test]
fn the_limits_are_in_the_help() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capstan.toml");
    let path = path.to_str().unwrap();
    let help = capstan(&["sync", "--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let listed = help.split("with these defaults: ").nth(1).unwrap().split(". ").next().unwrap();
    let listed = listed.replace(", ", "\n");
    assert_eq!(listed.lines().count(), 16, "{listed}");
    fs::write(path, format!("[limits]\n{listed}\ntrouble-max-ms_ = 1")).unwrap();
    let called = capstan(&["tail", SOURCE, "--config", path]);
    assert!(called.err.contains("trouble-max-ms_"), "all others are known: {called:?}");
}

#[test]
fn an_empty_target_asks_for_a_start_and_gives_commands_to_copy() {
    let folder = tempfile::tempdir().unwrap();
    let target = format!("sqlite:{}?mode=ledger", folder.path().join("l.db").display());
    let called = capstan(&["sync", SOURCE, &target]);
    assert_eq!(called.status, 3);
    assert!(called.err.contains("start_position_required"), "{called:?}");
    for start in ["--start earliest", "--start current", "--start GTIDSET", "--seeded-at GTIDSET"] {
        let want = format!("capstan sync 'mysql://u@127.0.0.1:1/?ssl-mode=disabled' '{target}' {start}");
        assert!(called.err.contains(&want), "{want} in {called:?}");
    }
    assert!(!called.err.contains("s3cr3t"), "{called:?}");
}

#[test]
fn a_server_that_is_down_is_unreachable_within_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capstan.toml");
    fs::write(&path, "[limits]\ntrouble-max-ms = 300\n").unwrap();
    let called = capstan(&["tail", SOURCE, "--config", path.to_str().unwrap()]);
    assert_eq!(called.status, 5, "{called:?}");
    assert!(called.err.contains("source_unreachable") && called.err.contains("refused"), "{called:?}");
    assert!(!called.err.contains("s3cr3t"), "{called:?}");

    let called = capstan(&["check", SOURCE, "-o", "json"]);
    assert_eq!((called.status, called.halt()["code"].as_str()), (5, Some("source_unreachable")));
    assert_eq!(called.lines()[0]["ready"], false);
}

/// A reader that goes away, as `head` does, is no failure of ours.
#[test]
fn a_closed_pipe_ends_it_in_silence() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let called = command()
        .args(["inspect", "--summary"])
        .arg(common::fixture("cases/BL-01.binlog"))
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!((called.status.code(), called.stderr.as_slice()), (Some(0), &b""[..]));
}
