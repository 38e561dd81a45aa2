//! The kit's own proof: what is right passes, and what is wrong in one way fails the rule of that way.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

mod sinks;

use std::collections::BTreeMap;

use capstan_conformance::{
    Blocking, Level, RULES, Report, Stored, Target, Trouble, Verdict, check, check_rule,
    reference::{Disk, Memory},
};
use sinks::{Fault, FaultyTarget, LaterTarget};

/// Every wrong sink, the one rule it breaks, and a word of what the report says of it.
const MATRIX: &[(Fault, &str, &str)] = &[
    (Fault::ReversesChanges, "order_within", "first difference is at change 1"),
    (Fault::ReversesTransactions, "order_across", "first difference is at change 1"),
    (Fault::SkipsTheRest, "read_to_the_end", "1000 changes are stored, 5000 were committed"),
    (Fault::KeepsRolledBack, "aborted_leaves_no_trace", "4 changes are stored, 1 were committed"),
    (Fault::PassesRolledBack, "aborted_leaves_no_trace", "the position moved"),
    (Fault::FailsOnAbort, "aborted_leaves_no_trace", "an aborted transaction is no failure"),
    (Fault::KeepsForLater, "comes_again_once", "changes are stored, 4 were committed"),
    (Fault::WritesThrough, "killed_leaves_no_part", "changes are stored, 1 were committed"),
    (Fault::AsciiPosition, "position_reads_back", "refused"),
    (Fault::PositionInMemory, "position_reads_back", "the acknowledgement said"),
    (Fault::Ordinal, "position_is_a_set", "refused"),
    (Fault::DropsTags, "position_is_a_set", "refused"),
    (Fault::DropsProgress, "progress_is_stored", "instead of"),
    (Fault::LazyClaim, "claim_is_stored", "the claim of epoch 1 was acknowledged; stored is nothing"),
    (Fault::IgnoresOwner, "fenced", "the owner before: a batch was acknowledged"),
    (Fault::IgnoresMark, "fenced", "a rival of the same epoch: a batch was acknowledged"),
    (Fault::FencedIsStale, "fenced", "had to be refused as Fenced"),
    (Fault::OverwritesStale, "stale_is_refused", "acknowledged that had to be refused as Stale"),
    (Fault::AcceptsSupersets, "lost_answer_once", "the same batch was acknowledged twice"),
    (Fault::Signed, "values_survive", "column largest is -1"),
    (Fault::NullIsEmpty, "values_survive", "column nothing"),
];

fn failed(report: &Report) -> Vec<&'static str> {
    let of = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
    report.outcomes().iter().filter(|o| of(&o.verdict)).map(|o| o.rule.id).collect()
}

#[test]
fn a_right_sink_passes_every_rule() {
    for report in [
        check(|| Ok(FaultyTarget(Disk::default(), Fault::None))),
        check(|| Ok(FaultyTarget(Disk::default(), Fault::LosesAnswers))),
        check(|| Ok(LaterTarget(Disk::default()))),
        check(|| Ok(Right(Disk::default(), Level::ExactlyOnce, &[]))),
    ] {
        assert!(report.is_passed(), "{report}");
        assert_eq!(report.passed(), RULES.len(), "{report}");
    }
}

#[test]
fn a_wrong_sink_fails_the_rule_it_breaks_and_no_other() {
    let mut breakers: BTreeMap<&str, usize> = BTreeMap::new();
    for (fault, rule, says) in MATRIX {
        let report = check(|| Ok(FaultyTarget(Disk::default(), *fault)));
        assert_eq!(failed(&report), [*rule], "{fault:?}: {report}");
        assert!(report.to_string().contains(says), "{fault:?}: {report}");
        assert!(!report.is_passed());
        *breakers.entry(rule).or_default() += 1;
    }
    // A rule that no wrong sink breaks proves nothing. As each one breaks a single rule, no two rules are
    // broken by the same ones: those would be one rule.
    for rule in RULES {
        assert!(breakers.contains_key(rule.id), "no wrong sink breaks {}", rule.id);
    }
}

#[test]
fn ids_are_permanent() {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let want = "order_within order_across read_to_the_end aborted_leaves_no_trace comes_again_once \
                killed_leaves_no_part position_reads_back position_is_a_set progress_is_stored claim_is_stored \
                fenced stale_is_refused lost_answer_once values_survive";
    assert_eq!(ids.join(" "), want);
}

/// The reference sink as told.
struct Right(Disk, Level, &'static [(&'static str, &'static str)]);

impl Target for Right {
    type Sink = Blocking<Memory>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Memory::open(&self.0)))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(self.0.stored())
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        Ok(self.0.row(table, key))
    }

    fn level(&self) -> Level {
        self.1
    }

    fn declines(&self) -> &[(&str, &str)] {
        self.2
    }

    fn name(&self) -> String {
        "right".into()
    }
}

#[test]
fn what_is_not_run_is_said_and_counted() {
    let report =
        check(|| Ok(Right(Disk::default(), Level::AtLeastOnce, &[("fenced", "x"), ("order_across", "why")])));
    assert!(report.is_passed(), "{report}");
    assert_eq!(report.passed() + report.failed() + report.skipped(), RULES.len());
    let above = RULES.iter().filter(|rule| rule.level > Level::AtLeastOnce).count();
    assert_eq!(report.skipped(), above + 1);
    let shown = report.to_string();
    assert!(shown.contains("declined: why") && shown.contains("promises at_least_once only"), "{shown}");

    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["kit"], "capstan-conformance");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["contract"], 1);
    assert_eq!((&json["sink"], &json["level"]), (&"right".into(), &"at_least_once".into()));
    assert_eq!(json["crash"], "unwound_call");
    assert_eq!(json["skipped"], above + 1);
    assert_eq!(json["rules"].as_array().unwrap().len(), RULES.len());
    assert_eq!(json["rules"][1]["why"], "declined: why");
}

#[test]
fn a_declined_rule_that_does_not_exist_is_no_pass() {
    let report = check(|| Ok(Right(Disk::default(), Level::ExactlyOnce, &[("fence", "misspelt")])));
    assert_eq!(report.failed(), 0);
    assert!(!report.is_passed() && report.to_string().contains("no such rule"), "{report}");
}

#[test]
fn a_target_that_cannot_be_made_or_read_fails_and_never_skips() {
    let report = check(|| Err::<Right, Trouble>("no disk".into()));
    assert_eq!(report.failed(), RULES.len());
    assert!(report.to_string().contains("no fresh target: no disk"));

    struct Unread(Disk);
    impl Target for Unread {
        type Sink = Blocking<Memory>;
        fn open(&mut self) -> Result<Self::Sink, Trouble> {
            Ok(Blocking(Memory::open(&self.0)))
        }
        fn probe(&mut self) -> Result<Stored, Trouble> {
            Ok(self.0.stored())
        }
    }
    let outcome = check_rule("values_survive", &mut Unread(Disk::default())).unwrap();
    assert!(outcome.verdict.why().is_some_and(|why| why.contains("decline `values_survive`")));
    assert!(check_rule("no_rule", &mut Unread(Disk::default())).is_none());
    assert_eq!(check_rule("fenced", &mut Unread(Disk::default())).unwrap().verdict, Verdict::Passed);
}

#[test]
fn a_panic_is_the_failure_of_its_rule() {
    struct Panics;
    impl Target for Panics {
        type Sink = Blocking<Memory>;
        fn open(&mut self) -> Result<Self::Sink, Trouble> {
            panic!("cannot open")
        }
        fn probe(&mut self) -> Result<Stored, Trouble> {
            Ok(Stored::default())
        }
    }
    let outcome = check_rule("order_within", &mut Panics).unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed("panicked: cannot open".into()));
}
