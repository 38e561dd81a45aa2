//! `capstan conformance`, run as people run it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::capstan;
use serde_json::Value;

#[test]
fn the_shipped_sinks_pass_and_their_processes_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let called = capstan(&["conformance", "json_file", "json_lines", "-o", "json", "--report", path]);
    let reports: Vec<Value> = called.lines();
    assert_eq!((called.status, reports.len()), (0, 2), "{called:?}");
    for report in &reports {
        assert_eq!(report["failed"], 0, "{report}");
        assert_eq!(report["consumer"]["package"], "capstan-cli");
        assert_eq!(report["consumer"]["sha256"].as_str().unwrap().len(), 64);
    }
    assert!(reports[0]["crashes"].as_array().unwrap().contains(&"killed_process".into()), "{called:?}");
    let page = std::fs::read_to_string(folder.path().join("json_file.md")).unwrap();
    assert!(page.contains("# Conformance of `capstan::jsonl::JsonFile`"), "{page}");
}

#[test]
fn the_rules_are_listed() {
    let called = capstan(&["conformance", "--list"]);
    assert_eq!(called.status, 0);
    assert!(called.out.lines().count() >= 30 && called.out.contains("position_is_a_set"), "{called:?}");
}
