//! The sinks of the guide: what is red at each step, and what they pass in the end.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    dead_code,
    missing_debug_implementations,
    reason = "a test fails by panicking; examples show what they need"
)]

#[path = "../examples/postgres/cluster.rs"]
mod cluster;
#[path = "../examples/lines/sink.rs"]
mod lines;
#[path = "../examples/postgres/sink.rs"]
mod sink;
#[path = "../examples/postgres/target.rs"]
mod target;

use std::{sync::Arc, thread};

use capstan_conformance::{Check, Child, RULES, Report, Strength, Verdict, check};
use cluster::Cluster;
use lines::LinesTarget;
use sink::Step;
use target::PgTarget;
use tokio::runtime::Runtime;

fn red(report: &Report) -> String {
    let failed = report.outcomes().iter().filter(|outcome| matches!(outcome.verdict, Verdict::Failed(_)));
    failed.map(|outcome| outcome.rule.id).collect::<Vec<_>>().join(" ")
}

/// What each step leaves red, as the guide tells it.
const STEPS: [(Step, &str); 4] = [
    (
        Step::EachChange,
        "aborted_leaves_no_trace comes_again_once killed_leaves_no_part killed_at_every_step \
         batch_is_atomic given_up_is_settled dropped_leaves_no_part claim_over_another_is_fenced \
         claim_over_nothing_is_fenced wiped_target_is_refused fenced two_owners one_of_two_at_once \
         stale_is_refused late_commit_is_refused lost_answer_once chunk_again_is_refused \
         values_survive",
    ),
    (
        Step::OneTransaction,
        "claim_over_another_is_fenced claim_over_nothing_is_fenced wiped_target_is_refused \
         fenced two_owners one_of_two_at_once stale_is_refused late_commit_is_refused lost_answer_once \
         chunk_again_is_refused values_survive",
    ),
    (Step::Conditional, "values_survive"),
    (Step::Text, ""),
];

#[test]
fn a_sink_over_postgresql_comes_from_red_to_green() {
    let cluster = Cluster::start().unwrap();
    let runtime = Arc::new(Runtime::new().unwrap());
    let reports: Vec<Report> = thread::scope(|scope| {
        let (cluster, runtime) = (&cluster, &runtime);
        let check = |step| move || check(|| PgTarget::fresh(runtime, &cluster.config(), step));
        let running: Vec<_> = STEPS.iter().map(|(step, _)| scope.spawn(check(*step))).collect();
        running.into_iter().map(|running| running.join().unwrap()).collect()
    });
    let guide = include_str!("../GUIDE.md");
    let mut wrong = Vec::new();
    for ((number, (step, want)), report) in (1..).zip(STEPS).zip(&reports) {
        assert_eq!(report.skipped(), 2, "what is done in a process of its own alone: {report}");
        if red(report) != want {
            wrong.push(format!("{step:?}: {}\n{report}", red(report)));
        }
        let told = match want {
            "" => "nothing.".to_owned(),
            ids => format!("`{}`.", ids.replace(' ', "`, `")),
        };
        let (_, page) = guide.split_once(&format!("### Step {number}")).unwrap();
        let section = page.split("###").next().unwrap();
        if !section.contains(&format!("Red: {told}")) {
            wrong.push(format!("the guide does not say of {step:?}: Red: {told}"));
        }
        if step == Step::Text {
            let used = report.strengths();
            assert!(
                used.contains(&Strength::DroppedFuture) && used.contains(&Strength::FaultPoint),
                "{report}"
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_sink_over_a_plain_file_passes_at_least_once() {
    let child = Child::test("a_sink_over_a_plain_file_passes_at_least_once").unwrap();
    let report = Check::new().child(child).run(LinesTarget::fresh);
    assert!(report.is_passed(), "{report}");
    let above = RULES.iter().filter(|rule| rule.level > LEVEL).count();
    assert_eq!((report.skipped(), report.strengths().len()), (above + 1, 1), "{report}");
    assert!(report.strengths().contains(&Strength::KilledProcess));
}

const LEVEL: capstan_conformance::Level = capstan_conformance::Level::AtLeastOnce;
