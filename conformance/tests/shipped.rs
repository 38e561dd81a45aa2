//! The sinks that Capstan ships keep the contract, and the receipts say so.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, env, fs, path::Path};

use capstan_conformance::{
    Check, Child, RULES, Report, Strength, Target, Trouble,
    shipped::{
        AsyncJsonLinesTarget, JsonFileTarget, JsonLinesTarget, LedgerTarget, MirrorTarget, StrictMirrorTarget,
    },
};
use serde_json::Value;

#[test]
fn ledger() {
    let report = passes("ledger", LedgerTarget::fresh);
    assert_eq!(report.passed(), RULES.len(), "{report}");
    assert_eq!(report.strengths(), BTreeSet::from([Strength::FaultPoint, Strength::KilledProcess]));
}

#[test]
fn mirror() {
    let report = passes("mirror", MirrorTarget::fresh);
    assert_eq!(report.passed(), RULES.len(), "{report}");
    assert_eq!(report.strengths(), BTreeSet::from([Strength::FaultPoint, Strength::KilledProcess]));
}

#[test]
fn strict_mirror() {
    let report = passes("strict_mirror", StrictMirrorTarget::fresh);
    assert_eq!(report.passed(), RULES.len(), "{report}");
    assert_eq!(report.strengths(), BTreeSet::from([Strength::FaultPoint, Strength::KilledProcess]));
}

#[test]
fn json_file() {
    let report = passes("json_file", JsonFileTarget::fresh);
    assert_eq!(report.passed(), RULES.len(), "{report}");
    assert_eq!(report.strengths(), BTreeSet::from([Strength::FaultPoint, Strength::KilledProcess]));
}

#[test]
fn json_lines() {
    let report = passes("json_lines", || Ok(JsonLinesTarget::default()));
    assert_eq!(report.strengths(), BTreeSet::from([Strength::UnwoundCall]));
}

#[test]
fn async_json_lines() {
    let report = passes("async_json_lines", || Ok(AsyncJsonLinesTarget::default()));
    assert_eq!(report.strengths(), BTreeSet::from([Strength::DroppedFuture]));
    let dropped =
        report.outcomes().iter().find(|outcome| outcome.rule.id == "dropped_leaves_no_part").unwrap();
    assert!(dropped.evidence().iter().all(|note| note.starts_with("dropped at ")), "{report}");
}

/// `test` is the name of the test that calls this, and of the receipt.
fn passes<T: Target>(test: &str, factory: fn() -> Result<T, Trouble>) -> Report {
    let report = Check::new().child(Child::test(test).unwrap()).run(factory);
    assert!(report.is_passed(), "{report}");
    let receipt = Path::new(env!("CARGO_MANIFEST_DIR")).join("receipts").join(test);
    let (json, page) = (receipt.with_extension("json"), receipt.with_extension("md"));
    let now: Value = serde_json::from_str(&report.to_json()).unwrap();
    if env::var_os("CAPSTAN_WRITE_RECEIPTS").is_some() {
        fs::write(&json, format!("{now:#}\n")).unwrap();
        fs::write(&page, report.to_markdown()).unwrap();
    }
    let remedy = "CAPSTAN_WRITE_RECEIPTS=1 cargo test -p capstan-conformance --test shipped";
    let read = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}: {remedy}", path.display()))
    };
    let kept: Value = serde_json::from_str(&read(&json)).unwrap();
    assert_eq!(lasting(kept), lasting(now), "the receipt is out of date: {remedy}");
    assert_eq!(lines(&read(&page)), lines(&report.to_markdown()), "the receipt is out of date: {remedy}");
    report
}

/// Without what differs from run to run and from build to build.
fn lasting(mut report: Value) -> Value {
    report["consumer"]["sha256"] = Value::Null;
    report["program_sha256"] = Value::Null;
    for rule in report["rules"].as_array_mut().unwrap() {
        rule["took_ms"] = Value::Null;
    }
    report
}

fn lines(page: &str) -> Vec<&str> {
    page.lines().filter(|line| !line.starts_with("| took") && !line.starts_with("| digest")).collect()
}
