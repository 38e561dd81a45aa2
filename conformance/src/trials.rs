//! Named trials: a test binary of its own (`harness = false`) with one test for each rule.

use std::{env, fs};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    process::{self, Child},
    report::{Report, Verdict},
    rule::{Check, fresh},
    table::RULES,
    target::{Target, Trouble},
};

/// The `main` of a test target with `harness = false`: every rule is a test that `cargo test` and
/// `cargo nextest` list, filter and run by its id.
///
/// Takes how a fresh target is made, a `fn() -> Result<impl Target, Trouble>`. Rules that the target
/// declines or that are above its level are shown as ignored, and run with `--ignored`. With `CAPSTAN_CONFORMANCE_REPORT=PATH` in
/// the environment, where no test is picked or listed, everything is run once and `PATH.json` and `PATH.md` are written instead.
#[macro_export]
macro_rules! main {
    ($factory:expr) => {
        fn main() -> std::process::ExitCode {
            $crate::trials::main($factory, $crate::artifact!())
        }
    };
}

/// What [`crate::main!`] calls.
#[must_use]
pub fn main<T: Target + 'static>(
    factory: fn() -> Result<T, Trouble>,
    artifact: crate::Artifact,
) -> std::process::ExitCode {
    process::serve::<T>();
    // Without it everything is killed in this process.
    let check = Child::program::<String>([]).map_or_else(|_| Check::new(), |child| Check::new().child(child));
    let check = check.artifact(artifact);
    let arguments = Arguments::from_args();
    // Who lists or picks tests, as `cargo nextest` does, wants tests.
    let whole = !arguments.list && arguments.filter.is_none();
    if let (true, Ok(path)) = (whole, env::var("CAPSTAN_CONFORMANCE_REPORT")) {
        return report(&check.run(factory), &path);
    }
    let trials = RULES.iter().map(|rule| {
        let check = check.clone();
        let skipped = fresh(&mut || factory()).ok().and_then(|target| {
            crate::rule::skipped(rule, &target).or_else(|| check.lacks_process(rule, &target))
        });
        let run = move || {
            let mut target =
                fresh(&mut || factory()).map_err(|why| Failed::from(format!("no fresh target: {why}")))?;
            // What is ignored runs where it is asked for: a rule that was left out is never shown as one that holds.
            let outcome = check.run_skipped(rule, &mut target);
            match outcome.verdict {
                Verdict::Passed => Ok(()),
                Verdict::Skipped(why) => Err(format!("not run: {why}").into()),
                Verdict::Failed(why) => Err(format!("{}\n  → {why}", rule.text).into()),
            }
        };
        Trial::test(rule.id, run).with_ignored_flag(skipped.is_some())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn report(report: &Report, path: &str) -> std::process::ExitCode {
    println!("{report}");
    let written = fs::write(format!("{path}.json"), report.to_json())
        .and_then(|()| fs::write(format!("{path}.md"), report.to_markdown()));
    if let Err(why) = &written {
        eprintln!("the report is not written to {path}.json and {path}.md: {why}");
    }
    if written.is_ok() && report.is_passed() { 0.into() } else { 1.into() }
}
