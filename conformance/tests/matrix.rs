//! The kit's own proof: what is right passes, and what is wrong in one way fails the rule of that way.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

#[path = "../examples/lines/sink.rs"]
#[allow(missing_debug_implementations, dead_code, reason = "an example shows what it needs")]
mod lines;
mod sinks;

use std::{collections::BTreeMap, mem::ManuallyDrop, time::Duration};

use capstan_conformance::{
    Async, Blocking, Check, Child, Level, RULES, Report, Stored, Target, Trouble, Verdict, check, check_rule,
    reference::{Disk, Memory},
};
use capstan_core::deliver::{Ack, Batch, BlockingBatch, BlockingSink, Position, Sink, SinkError};
use lines::LinesTarget;
use sinks::{Fault, FaultyTarget, FilesTarget, LaterTarget, Slip};

/// Every wrong sink, the rules it breaks, and a word of what the report says of it.
const MATRIX: &[(Fault, &str, &str)] = &[
    (
        Fault::ReversesChanges,
        "order_within copy_begins_anew handoff_is_once",
        "first difference is at change 1",
    ),
    (Fault::ReversesTransactions, "order_across", "first difference is at change 1"),
    (Fault::HoldsSix, "any_cut_is_the_same", "were committed"),
    (Fault::SkipsTheRest, "read_to_the_end", "2000 changes are stored, 5006 were committed"),
    (Fault::LosesTheRemainder, "read_to_the_end", "4503 changes are stored, 5006 were committed"),
    (
        Fault::SkipsStreamed,
        "read_to_the_end streamed_takes_effect dies_at_fault_points",
        "2 changes are stored, 5 were committed",
    ),
    (Fault::KeepsRolledBack, "aborted_leaves_no_trace", "4 changes are stored, 1 were committed"),
    (Fault::PassesRolledBack, "aborted_leaves_no_trace", "the position moved"),
    (Fault::FailsOnAbort, "aborted_leaves_no_trace", "an aborted transaction is no failure"),
    (Fault::KeepsForLater, "comes_again_once", "changes are stored, 4 were committed"),
    (
        Fault::WritesThrough,
        "killed_leaves_no_part killed_at_every_step dies_at_fault_points",
        "changes are stored, 1 were committed",
    ),
    (Fault::WritesParts, "killed_at_every_step", "changes are stored, 0 were committed"),
    (
        Fault::WritesEachTransaction,
        "batch_is_atomic dies_at_fault_points",
        "2 changes are stored, 0 were committed",
    ),
    (Fault::NeverAcknowledges, "acknowledged_is_durable", "nothing was acknowledged"),
    (Fault::WritesBehind, "acknowledged_is_durable", "while the sink is open: 0 changes are stored"),
    (Fault::ReplaysItsJournal, "killed_after_the_write_once", "6 changes are stored, 4 were committed"),
    (Fault::ForgetsTheLast, "duplicates_are_bounded killed_after_the_write_once", "is stored 0 times"),
    (Fault::TwoWrites, "dies_at_fault_points", "killed at between"),
    (Fault::AsciiPosition, "position_reads_back", "refused"),
    (Fault::PositionInMemory, "position_reads_back", "the acknowledgement said"),
    (Fault::Ordinal, "position_is_a_set position_of_any_length", "1-9\",\"last\""),
    (Fault::OneSource, "position_keeps_sources", "refused"),
    (Fault::CutsPosition, "position_of_any_length", "position_read_failed"),
    (Fault::EpochsAsDoubles, "position_reads_back", "the position that it gives back is …"),
    (
        Fault::DropsCopies,
        "position_reads_back snapshot_chunks_are_stored empty_table_is_copied copy_begins_anew handoff_is_once \
         chunk_again_is_refused",
        "\"copies\":",
    ),
    (Fault::DropsTags, "position_keeps_tags", "refused"),
    (Fault::DropsProgress, "progress_is_stored idle_stream_moves_on", "instead of"),
    (Fault::ThrottlesProgress, "idle_stream_moves_on", "Progress 2 of an idle stream"),
    (Fault::UnreadableIsNothing, "newer_format_is_refused", "told as nothing"),
    (Fault::PositionElsewhere, "backup_goes_on", "its data ends at"),
    (
        Fault::LazyClaim,
        "batch_is_atomic claim_is_stored two_owners",
        "the claim of epoch 1 was acknowledged; stored is nothing",
    ),
    (Fault::ClaimsAlways, "claim_over_another_is_fenced", "a claim was acknowledged over an owner"),
    (Fault::NothingMeansAnything, "claim_over_nothing_is_fenced", "a claim was acknowledged over an owner"),
    (Fault::EmptyTakesAll, "wiped_target_is_refused", "acknowledged that had to be refused as Fenced"),
    (Fault::IgnoresOwner, "fenced two_owners", "the owner before: a batch was acknowledged"),
    (Fault::IgnoresMark, "fenced", "a rival of the same epoch: a batch was acknowledged"),
    (Fault::ChecksThenWrites, "one_of_two_at_once", "the same position were both acknowledged"),
    (Fault::FencedIsStale, "fenced two_owners", "had to be refused as Fenced"),
    (
        Fault::TrustsItsMemory,
        "two_owners one_of_two_at_once",
        "the first, of whom it was taken: a batch was acknowledged",
    ),
    (Fault::OverwritesStale, "stale_is_refused", "acknowledged that had to be refused as Stale"),
    (Fault::OverwritesOlder, "late_commit_is_refused", "a commit that landed late was acknowledged"),
    (
        Fault::AcceptsSupersets,
        "one_of_two_at_once lost_answer_once chunk_again_is_refused",
        "the same batch was acknowledged twice",
    ),
    (Fault::CachesColumns, "schema_change_in_place", "the new column is not there"),
    (
        Fault::ForgetsCreation,
        "schema_change_moves_position dropped_table_is_gone existing_table_is_kept renamed_table_keeps_its_rows",
        "its position is not stored",
    ),
    (Fault::ForgetsTruncate, "truncate_empties", "were committed"),
    (Fault::ForgetsDrop, "dropped_table_is_gone", "5 rows are stored, 2 were committed"),
    (Fault::DropsOneTable, "dropped_table_is_gone", "3 rows are stored, 2 were committed"),
    (Fault::KeepsDatabase, "dropped_table_is_gone", "a database was dropped: 2 rows are stored, 1 were"),
    (Fault::EmptiesExisting, "existing_table_is_kept", "0 rows are stored, 2 were committed"),
    (
        Fault::ForgetsRename,
        "renamed_table_keeps_its_rows",
        "row shop.older 2 new instead of row shop.older 1 new",
    ),
    (Fault::ForgetsAlterRename, "renamed_table_keeps_its_rows", "a table was renamed by ALTER: 4 rows are"),
    (Fault::RenamesInTurn, "renamed_table_keeps_its_rows", "two tables changed places: 4 rows are"),
    (Fault::KeepsWhatLeft, "renamed_table_keeps_its_rows", "a table left the captured ones: 4 rows are"),
    (Fault::KeysAsDoubles, "keys_are_told_apart", "change 3: insert shop.orders -9223372036854776000"),
    (Fault::KeysByBefore, "key_change_moves_the_row", "update shop.orders 1 instead of update shop.orders 3"),
    (Fault::LeavesTheOldKey, "key_change_moves_the_row", "3 rows are stored, 2 were committed"),
    (Fault::IgnoresSchema, "tables_are_told_apart dropped_table_is_gone", "instead of"),
    (Fault::FoldsCase, "tables_are_told_apart", "instead of delete shop.Orders 1"),
    (Fault::StopsAtSchemaChange, "create_select_is_one", "1 changes are stored, 3 were committed"),
    (Fault::StoresBefore, "update_stores_the_new_row", "says \"new\" instead of"),
    (Fault::KeepsOldForNull, "update_stores_the_new_row", "says \"new\" instead of null"),
    (Fault::StopsAtAbsent, "absent_row_is_settled", "2 changes are stored, 4 were committed"),
    (Fault::DropsDuplicates, "rows_without_key_are_kept", "4 changes are stored, 6 were committed"),
    (Fault::UpdatesAllAlike, "rows_without_key_are_kept", "instead of row shop.heap 1 new"),
    (
        Fault::FirstChunkOnly,
        "snapshot_chunks_are_stored handoff_is_once",
        "4 changes are stored, 5 were committed",
    ),
    (Fault::CopiesOneTable, "snapshot_chunks_are_stored", "3 changes are stored, 5 were committed"),
    (Fault::IgnoresEmptyChunks, "empty_table_is_copied", "stored of it is waiting"),
    (Fault::KeepsBeforeCopy, "copy_begins_anew", "were committed"),
    (Fault::HidesBeginnings, "copy_begins_anew", "a copy began twice; 0 beginnings are stored"),
    (Fault::ChunksAtTheEnd, "handoff_is_once", "first difference is at change 1"),
    (Fault::ComparesSets, "chunk_again_is_refused", "the same chunk was acknowledged twice"),
    (Fault::Signed, "values_survive", "column largest is -1"),
    (Fault::NullIsEmpty, "update_stores_the_new_row values_survive", "column nothing"),
    (Fault::LosesBytes, "text_survives", "column text"),
    (Fault::FloatsDecimals, "decimals_survive", "column price"),
    (Fault::ZeroDateIsNull, "temporals_survive", "column day is null"),
    (Fault::YearsAfter1900, "kinds_survive", "column year is 1900"),
    (Fault::StripsZeros, "kinds_survive", "column fixed"),
    (Fault::FloatsDocuments, "documents_survive", "column document"),
    (Fault::CutsText, "long_values_survive", "column text is …"),
];

fn failed(report: &Report) -> Vec<&'static str> {
    let of = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
    report.outcomes().iter().filter(|o| of(&o.verdict)).map(|o| o.rule.id).collect()
}

#[test]
fn a_right_sink_passes_every_rule() {
    for report in [
        check(|| Ok(FaultyTarget::new(Fault::None))),
        check(|| Ok(FaultyTarget::of_rows(Fault::None))),
        check(|| Ok(FaultyTarget::new(Fault::LosesAnswers))),
        check(|| Ok(FaultyTarget::new(Fault::IsBusy))),
    ] {
        assert!(report.is_passed(), "{report}");
        assert_eq!(report.passed() + MEASURED, RULES.len(), "{report}");
    }
    let report = check(|| Ok(LaterTarget::default()));
    assert!(report.is_passed(), "{report}");
    assert_eq!(report.passed() + 1 + MEASURED, RULES.len(), "{report}");
    let report = check(|| Ok(Right(Disk::default(), Level::ExactlyOnce, NOT_WRITTEN)));
    assert!(report.is_passed(), "{report}");
    assert_eq!(report.passed() + NOT_WRITTEN.len() + MEASURED, RULES.len(), "{report}");
}

/// Rules that are for a process of its own, which none of these has.
const MEASURED: usize = 2;

/// What a target of few methods declines.
const NOT_WRITTEN: &[(&str, &str)] =
    &[("dies_at_fault_points", "none"), ("newer_format_is_refused", "none"), ("backup_goes_on", "none")];

/// Async sinks that are wrong where they are dropped.
const SLIPS: &[(Slip, &str, &str)] = &[
    (Slip::TwoSteps, "given_up_is_settled", "changes are stored"),
    (Slip::TidiesUpLater, "given_up_is_settled", "changes are stored"),
    (Slip::RowByRow, "dropped_leaves_no_part", "a part is there"),
];

/// Which rules each wrong sink breaks.
fn matrix() -> BTreeMap<String, Vec<&'static str>> {
    let (mut rows, mut wrong) = (BTreeMap::new(), Vec::new());
    for (fault, rules, says) in MATRIX {
        let report = check(|| Ok(FaultyTarget::new(*fault)));
        let broken = failed(&report);
        if broken.join(" ") != *rules || !report.to_string().contains(says) || report.is_passed() {
            wrong.push(format!(
                "{fault:?} breaks {broken:?} instead of {rules}, or does not say {says:?}: {report}"
            ));
        }
        rows.insert(format!("{fault:?}"), broken);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    for (slip, rule, says) in SLIPS {
        let report = check(|| Ok(LaterTarget { slip: *slip, ..LaterTarget::default() }));
        assert_eq!((failed(&report), report.to_string().contains(says)), (vec![*rule], true), "{report}");
        rows.insert(format!("{slip:?}"), vec![*rule]);
    }
    rows.insert("HoldsBack".into(), vec![HOLDS_BACK]);
    rows.insert("PositionFirst".into(), vec![POSITION_FIRST]);
    rows
}

/// What a sink breaks that holds a transaction in memory until its end and says that it does not.
const HOLDS_BACK: &str = "large_fits_in_memory";

/// What a sink breaks that writes its position, and then its rows.
const POSITION_FIRST: &str = "killed_at_any_moment";

#[test]
fn files_that_are_replaced_one_after_the_other_break_the_rule_of_kills() {
    let child = Child::test("files_that_are_replaced_one_after_the_other_break_the_rule_of_kills").unwrap();
    let check = Check::new().child(child);
    let [one, two] = [false, true].map(|two| check.run(|| FilesTarget::fresh(two)));
    assert!(one.is_passed(), "{one}");
    assert_eq!(failed(&two), [POSITION_FIRST], "{two}");
    assert!(two.to_string().contains("the position says"), "{two}");
}

#[test]
fn a_sink_that_holds_a_transaction_back_breaks_the_rule_of_memory() {
    let child = Child::test("a_sink_that_holds_a_transaction_back_breaks_the_rule_of_memory").unwrap();
    let report = Check::new().child(child).run(LinesTarget::boastful);
    assert_eq!(failed(&report), [HOLDS_BACK], "{report}");
    assert!(report.to_string().contains("it holds back what it has read"), "{report}");
}

#[test]
fn a_wrong_sink_fails_the_rule_it_breaks_and_every_rule_has_one_of_its_own() {
    let matrix = matrix();
    published(&matrix);
    let mut rows: BTreeMap<Vec<&String>, &str> = BTreeMap::new();
    for rule in RULES {
        let breakers: Vec<&String> =
            matrix.iter().filter(|(_, rules)| rules.contains(&rule.id)).map(|(sink, _)| sink).collect();
        // A rule that no wrong sink breaks proves nothing.
        assert!(!breakers.is_empty(), "no wrong sink breaks {}", rule.id);
        // Two rules that the same ones break are one rule.
        if let Some(same) = rows.insert(breakers, rule.id) {
            panic!("{same} and {} have the same row", rule.id);
        }
    }
}

/// The matrix as it is published.
fn published(matrix: &BTreeMap<String, Vec<&'static str>>) {
    let mut page = String::from(
        "# Rules and wrong sinks\n\nGenerated by `CAPSTAN_WRITE_RECEIPTS=1 cargo test -p capstan-conformance --test matrix` and compared by \
         it. Every rule is broken by a sink that is wrong in that way, and no two rules by the same ones. What each sink does wrong stands \
         in `tests/sinks/fault.rs`.\n\n| rule | wrong sinks that break it |\n|---|---|\n",
    );
    for rule in RULES {
        let breakers = matrix.iter().filter(|(_, rules)| rules.contains(&rule.id)).map(|(sink, _)| &**sink);
        page += &format!("| `{}` | {} |\n", rule.id, breakers.collect::<Vec<_>>().join(", "));
    }
    page += "\n| wrong sink | rules it breaks |\n|---|---|\n";
    for (sink, rules) in matrix {
        page += &format!("| {sink} | `{}` |\n", rules.join("`, `"));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/MATRIX.md");
    if std::env::var_os("CAPSTAN_WRITE_RECEIPTS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, page, "CAPSTAN_WRITE_RECEIPTS=1 cargo test -p capstan-conformance --test matrix");
}

#[test]
fn ids_are_permanent() {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let want = "order_within order_across any_cut_is_the_same read_to_the_end streamed_takes_effect large_fits_in_memory \
                aborted_leaves_no_trace comes_again_once killed_leaves_no_part killed_at_every_step \
                batch_is_atomic acknowledged_is_durable duplicates_are_bounded \
                killed_after_the_write_once killed_at_any_moment dies_at_fault_points given_up_is_settled dropped_leaves_no_part \
                position_reads_back position_is_a_set position_keeps_sources position_keeps_tags position_of_any_length \
                progress_is_stored idle_stream_moves_on newer_format_is_refused backup_goes_on \
                claim_is_stored claim_over_another_is_fenced claim_over_nothing_is_fenced \
                wiped_target_is_refused fenced two_owners one_of_two_at_once stale_is_refused late_commit_is_refused \
                lost_answer_once schema_change_in_place schema_change_moves_position create_select_is_one tables_are_told_apart truncate_empties dropped_table_is_gone existing_table_is_kept renamed_table_keeps_its_rows \
                key_change_moves_the_row keys_are_told_apart update_stores_the_new_row absent_row_is_settled \
                rows_without_key_are_kept snapshot_chunks_are_stored empty_table_is_copied \
                copy_begins_anew handoff_is_once chunk_again_is_refused values_survive text_survives \
                decimals_survive temporals_survive kinds_survive documents_survive long_values_survive";
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
    let report = check(|| {
        Ok(Right(
            Disk::default(),
            Level::AtLeastOnce,
            &[
                ("fenced", "x"),
                ("order_within", "why"),
                ("duplicates_are_bounded", "it looks at its position"),
                ("dropped_leaves_no_part", "it looks at its position"),
            ],
        ))
    });
    assert!(report.is_passed(), "{report}");
    assert_eq!(report.passed() + report.failed() + report.skipped(), RULES.len());
    let above = RULES.iter().filter(|rule| rule.level > Level::AtLeastOnce).count();
    assert_eq!(report.skipped(), above + 3 + MEASURED);
    let shown = report.to_string();
    assert!(shown.contains("declined: why") && shown.contains("promises at_least_once only"), "{shown}");

    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["kit"], "capstan-conformance");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["contract"], 1);
    assert_eq!((&json["sink"], &json["level"]), (&"right".into(), &"at_least_once".into()));
    assert_eq!(json["crashes"], serde_json::json!(["unwound_call"]));
    assert_eq!(json["seed"], 1);
    assert_eq!(json["skipped"], above + 3 + MEASURED);
    assert_eq!(json["rules"].as_array().unwrap().len(), RULES.len());
    assert_eq!(json["rules"][0]["why"], "declined: why");
}

#[test]
fn a_declined_rule_that_does_not_exist_is_no_pass() {
    let report = check(|| Ok(Right(Disk::default(), Level::ExactlyOnce, &[("fence", "misspelt")])));
    assert_eq!(report.failed(), NOT_WRITTEN.len());
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
    assert!(outcome.verdict.why().is_some_and(|why| why.contains("Target::row is not written")));
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

/// Answers nothing, and nobody wakes who waits for it.
struct Silent;

impl Sink for Silent {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(None)
    }

    async fn apply(&mut self, _: Batch<'_>) -> Result<Ack, SinkError> {
        std::future::pending().await
    }
}

impl Target for Silent {
    type Sink = Async<Self>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Async(Self))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(Stored::default())
    }
}

#[test]
fn a_sink_that_never_answers_fails_and_does_not_hang() {
    let check = Check::new().patience(Duration::from_millis(50));
    let outcome = check.run_rule(&RULES[0], &mut Silent);
    assert!(
        outcome.verdict.why().is_some_and(|why| why.contains("apply has not answered for 50ms")),
        "{outcome:?}"
    );
}

/// Panics as it is dropped, and so does what makes it from the second time on.
struct Brittle(Disk);

impl BlockingSink for Brittle {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        self.0.position()
    }

    fn apply(&mut self, batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        Memory::open(&self.0).apply(batch)
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        panic!("closed badly")
    }
}

impl Target for Brittle {
    type Sink = Blocking<Self>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Self(self.0.clone())))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(self.0.stored())
    }
}

#[test]
fn what_is_made_and_dropped_badly_is_told_by_its_rule() {
    let mut target = ManuallyDrop::new(Brittle(Disk::default()));
    let outcome = check_rule("acknowledged_is_durable", &mut *target).unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed("panicked as it was closed: closed badly".into()));
    let one = Disk::default();
    let report = check(|| Ok(Right(one.clone(), Level::ExactlyOnce, NOT_WRITTEN)));
    assert!(report.to_string().contains("a fresh target has a position: the factory"), "{report}");
    let mut times = 0;
    let report = check(|| {
        times += 1;
        assert!(times < 2, "no room");
        Ok(Right(Disk::default(), Level::ExactlyOnce, NOT_WRITTEN))
    });
    assert_eq!((report.passed(), report.failed()), (1, RULES.len() - 1), "{report}");
    assert!(report.to_string().contains("no fresh target: panicked: no room"), "{report}");
}
