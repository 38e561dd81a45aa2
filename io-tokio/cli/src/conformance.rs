//! `capstan conformance`: the shipped sinks against the rules of the contract.

use std::{fs, path::Path};

use capstan_conformance::{
    Artifact, Check, Child, RULES, Report, Target, Trouble,
    shipped::{
        AsyncJsonLinesTarget, JsonFileTarget, JsonLinesTarget, LedgerTarget, MirrorTarget, StrictMirrorTarget,
    },
};
use clap::ValueEnum as _;
use serde_json::json;

use crate::{
    args::{Conformance, Output, ShippedSink},
    failure::Failure,
};

pub fn run(args: &Conformance) -> Result<u8, Failure> {
    if args.list {
        list(args.output);
        return Ok(0);
    }
    let sinks = if args.sinks.is_empty() { ShippedSink::value_variants() } else { &args.sinks };
    let mut status = 0;
    for sink in sinks {
        let report = check(*sink, args.seed)?;
        match args.output {
            Output::Text => say!("{report}\n"),
            Output::Json => say!("{}", report.to_json()),
        }
        if let Some(folder) = &args.report {
            write(&report, folder, sink.name())?;
        }
        if !report.is_passed() {
            status = 4;
        }
    }
    Ok(status)
}

fn list(output: Output) {
    for rule in RULES {
        match output {
            Output::Text => say!("{:<28} {:<13} {}", rule.id, rule.level.as_str(), rule.text),
            Output::Json => {
                say!("{}", json!({ "id": rule.id, "level": rule.level.as_str(), "text": rule.text }));
            }
        }
    }
}

fn check(sink: ShippedSink, seed: u64) -> Result<Report, Failure> {
    // What is to die dies in a process of its own: this command once more, which comes to the same check.
    let child = Child::program(["conformance", sink.name()])
        .map_err(|why| Failure::other(format!("this program cannot start itself: {why}"), 4))?;
    let check = Check::new().seed(seed).child(child);
    Ok(match sink {
        ShippedSink::Ledger => of(check, LedgerTarget::fresh),
        ShippedSink::Mirror => of(check, MirrorTarget::fresh),
        ShippedSink::StrictMirror => of(check, StrictMirrorTarget::fresh),
        ShippedSink::JsonFile => of(check, JsonFileTarget::fresh),
        ShippedSink::JsonLines => of(check, || Ok(JsonLinesTarget::default())),
        ShippedSink::AsyncJsonLines => of(check, || Ok(AsyncJsonLinesTarget::default())),
    })
}

fn of<T: Target>(check: Check, factory: fn() -> Result<T, Trouble>) -> Report {
    // A child needs no digest of itself.
    check.artifact_of(|| Artifact::of_program("capstan-cli", env!("CARGO_PKG_VERSION"))).run(factory)
}

fn write(report: &Report, folder: &Path, name: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path.with_extension("json"), report.to_json()))
        .and_then(|()| fs::write(path.with_extension("md"), report.to_markdown()))
        .map_err(|why| Failure::other(format!("{}: {why}", path.display()), 4))
}
