//! Builds every mutant of `cargo mutants --list --json` at once, each behind a switch.
//!
//! A build takes a hundred times as long as the tests of one mutant, so a build per mutant is hopeless on a
//! small machine. Here an expression with a mutant becomes `(if on(7) { mutant } else { expression })`, a
//! function gets `if on(7) { return value }` in front of its body, and the environment variable `MUTANT` says
//! which one is on. Only one is on at a time, so the text of a mutant holds no switches itself.
//!
//! `capstan-mutants LIST.json TREE` rewrites the sources below TREE, leaves out what does not compile, and
//! prints `id<tab>name` of each mutant that can be switched on, `-<tab>name` of each other.
#![forbid(unsafe_code)]

mod rewrite;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, ExitCode},
};

use rewrite::Rewritten;
use serde::Deserialize;

/// A mutant as cargo-mutants lists it. Lines and columns count from 1.
#[derive(Debug, Deserialize)]
struct Mutant {
    name: String,
    file: String,
    span: Span,
    replacement: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Span {
    start: Place,
    end: Place,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    line: usize,
    column: usize,
}

/// What the switch is, at the end of the crate's `lib.rs`.
const SWITCH: &str = "
mod mutant_switch { extern crate std;
/// Whether this mutant is on.
pub fn mutant_is_on(id: u32) -> bool {
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static ON: AtomicU32 = AtomicU32::new(u32::MAX);
    let mut on = ON.load(Relaxed);
    if on == u32::MAX {
        on = std::env::var(\"MUTANT\").ok().and_then(|on| on.parse().ok()).unwrap_or(0);
        ON.store(on, Relaxed);
    }
    on == id
}
}
pub use mutant_switch::mutant_is_on;
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [list, tree] = args.as_slice() else {
        eprintln!("usage: capstan-mutants LIST.json TREE");
        return ExitCode::from(2);
    };
    let mutants: Vec<Mutant> =
        serde_json::from_str(&fs::read_to_string(list).expect("the list")).expect("a list of cargo-mutants");
    let tree = Path::new(tree);
    let core = tree.join("core/src");
    let lib = fs::read_to_string(core.join("lib.rs")).expect("core/src/lib.rs");
    fs::write(core.join("lib.rs"), lib + SWITCH).expect("written");

    let mut originals = BTreeMap::new();
    sources(&core, &mut |path| {
        let text = fs::read_to_string(path).expect("a source");
        originals.insert(path.strip_prefix(tree).expect("below").to_string_lossy().into_owned(), text);
    });
    let mut unviable = BTreeSet::new();
    let mut keep_const = BTreeSet::new();
    loop {
        let mut rewritten: BTreeMap<&str, Rewritten> = BTreeMap::new();
        for (file, text) in &originals {
            let here = mutants
                .iter()
                .enumerate()
                .filter(|(id, mutant)| mutant.file == *file && !unviable.contains(id));
            let done =
                rewrite::file(text, here, |name| keep_const.contains(&(file.clone(), name.to_string())));
            if fs::read_to_string(tree.join(file)).ok().as_ref() != Some(&done.text) {
                fs::write(tree.join(file), &done.text).expect("written");
            }
            rewritten.insert(file, done);
        }
        let errors = check(tree);
        if errors.is_empty() {
            let switched: BTreeSet<usize> =
                rewritten.values().flat_map(|done| done.ids.iter().map(|(id, _)| *id)).collect();
            for (id, mutant) in mutants.iter().enumerate() {
                let id = if switched.contains(&id) { (id + 1).to_string() } else { "-".to_string() };
                println!("{id}\t{}", mutant.name);
            }
            return ExitCode::SUCCESS;
        }
        let before = unviable.len() + keep_const.len();
        for error in &errors {
            let Some(done) = rewritten.get(error.file.as_str()) else { continue };
            let innermost = |ranges: &[(usize, std::ops::Range<usize>)]| {
                let here = ranges.iter().filter(|(_, range)| range.contains(&error.at));
                let shortest = here.clone().map(|(_, range)| range.len()).min();
                here.filter(|(_, range)| Some(range.len()) == shortest).map(|(id, _)| *id).collect::<Vec<_>>()
            };
            // The text of a mutant, or else the expression that it shares its type with.
            let mut guilty = innermost(&done.ids);
            if guilty.is_empty() && !error.wants_const {
                guilty = innermost(&done.wholes);
            }
            if guilty.is_empty() && error.message.contains("not covered") {
                // An arm of this match cannot be taken out; which one, the next rounds tell.
                let behind = done.ids.iter().filter(|(_, range)| range.start > error.at);
                guilty.extend(behind.min_by_key(|(_, range)| range.start).map(|(id, _)| *id));
            }
            if !guilty.is_empty() {
                unviable.extend(guilty);
            } else if error.wants_const {
                // A constant calls it, or a function that stayed constant does.
                for name in &error.names {
                    let homes: Vec<String> = originals
                        .iter()
                        .filter(|(_, text)| text.contains(&format!("const fn {name}")))
                        .map(|(f, _)| f.clone())
                        .collect();
                    keep_const.extend(homes.into_iter().map(|file| (file, name.clone())));
                }
            }
        }
        eprintln!(
            "{} errors, {} left out, {} functions stay constant",
            errors.len(),
            unviable.len(),
            keep_const.len()
        );
        if unviable.len() + keep_const.len() == before {
            eprintln!("it does not compile, and not for a mutant: {:?}", errors.first());
            return ExitCode::FAILURE;
        }
    }
}

fn sources(folder: &Path, each: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("src/lib.rs")
        {
            each(&path);
        }
    }
}

#[derive(Debug)]
#[allow(dead_code, reason = "shown where nothing can be done about it")]
struct Error {
    file: String,
    at: usize,
    wants_const: bool,
    /// What its message quotes: `Type::<T>::name`, by the last part.
    names: Vec<String>,
    message: String,
}

/// The errors of the compiler.
fn check(tree: &Path) -> Vec<Error> {
    let out = Command::new("cargo")
        .args([
            "check",
            "-q",
            "-p",
            "capstan-core",
            "--lib",
            "--profile",
            "mutants",
            "--message-format",
            "json",
        ])
        .current_dir(tree)
        .output()
        .expect("cargo");
    let mut errors = Vec::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let message = &value["message"];
        if message["level"] != "error" {
            continue;
        }
        let text = message["message"].as_str().unwrap_or_default().to_string();
        for span in
            message["spans"].as_array().into_iter().flatten().filter(|span| span["is_primary"] == true)
        {
            // Inside a macro of ours or of others: where it was called.
            let mut span = span;
            while span["expansion"]["span"].is_object() {
                span = &span["expansion"]["span"];
            }
            let names = text.split('`').skip(1).step_by(2);
            let names = names
                .filter_map(|name| name.rsplit("::").next())
                .map(|name| name.trim_end_matches("()").to_string());
            errors.push(Error {
                file: span["file_name"].as_str().unwrap_or_default().to_string(),
                at: span["byte_start"].as_u64().unwrap_or_default() as usize,
                wants_const: message["code"]["code"] == "E0015",
                names: names.collect(),
                message: text.clone(),
            });
        }
    }
    assert!(out.status.success() || !errors.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    errors
}
