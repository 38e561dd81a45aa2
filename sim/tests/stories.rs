//! The classic disasters, told step by step. Each names what must not happen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use capstan_core::probe::{Mark, Mutant};
use sim::{
    fault::Fault,
    marks::{Marks, Mistake, making},
    oracle::Failure,
    plan::Begin,
    workload::{SHAPES, Shape},
    world::World,
};

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;

#[expect(clippy::panic, reason = "it is how a test fails")]
/// Runs a story; a failure shows the last things that happened.
fn told(mut world: World, story: impl FnOnce(&mut World) -> Result<(), Failure>) -> World {
    if let Err(failure) = story(&mut world) {
        let trace = world.trace();
        let last: Vec<String> = trace.iter().rev().take(60).rev().cloned().collect();
        panic!("{failure}\n{}", last.join("\n"));
    }
    world
}

fn quiet() -> World {
    World::story(|_| {})
}

#[test]
fn every_shape_of_transaction_arrives() {
    for begin in [Begin::Earliest, Begin::Current, Begin::At] {
        for version in ["9.7.4", "8.4.2", "8.0.36"] {
            let world = told(World::story(|plan| (plan.begin, plan.version) = (begin, version)), |world| {
                SHAPES.iter().for_each(|shape| world.commits(*shape));
                world.pass(10 * SECOND)?;
                SHAPES.iter().for_each(|shape| world.commits(*shape));
                world.ends_well()
            });
            assert!(world.counts.commits > 10 && world.halted().is_none(), "{:?}", world.counts);
        }
    }
}

#[test]
fn a_thousand_benign_drops_over_days_and_it_still_runs() {
    let world = told(quiet(), |world| {
        for n in 0..1000 {
            let fault =
                [Fault::Eof, Fault::Reset, Fault::HalfOpen, Fault::ServerError, Fault::CutEvent][n % 5];
            world.commits(SHAPES[n % SHAPES.len()]);
            world.pass(5 * MINUTE)?;
            world.happens(fault, 1.0)?;
        }
        world.ends_well()
    });
    assert_eq!(world.halted(), None);
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    assert!(world.now() > 3 * 24 * 60 * MINUTE);
}

#[test]
fn an_idle_source_over_a_link_that_flaps_each_minute() {
    let world = told(quiet(), |world| {
        world.commits(Shape::Small);
        for _ in 0..24 * 60 {
            world.pass(MINUTE)?;
            world.happens(Fault::Reset, 0.0)?;
        }
        world.commits(Shape::Small);
        world.ends_well()
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
}

#[test]
fn a_slow_sink_at_full_write_rate_for_an_hour_keeps_memory_flat() {
    let mut most = (0, 0);
    let world = told(quiet(), |world| {
        world.happens(Fault::SlowSink, 3600.0)?;
        for n in 0..3600 {
            for _ in 0..3 {
                world.commits(if n % 100 == 50 { Shape::Big } else { Shape::Mixed });
            }
            world.pass(SECOND)?;
            let process = &world.processes()[0];
            most = (most.0.max(process.core.retained()), most.1.max(process.core.units_out()));
        }
        Ok(())
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    let limits = &world.processes()[0].config.limits;
    assert!(most.0 >= limits.retained_max, "back-pressure never came: {most:?}");
    assert!(most.0 <= limits.retained_max + limits.stream_above + 10_000, "{most:?}");
    assert!(most.1 < 2_000, "{most:?}");
}

#[test]
fn log_bin_reads_off_for_a_minute() {
    let world = told(quiet(), |world| {
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        world.happens(Fault::LogBinOff, 60.0)?;
        world.pass(30 * SECOND)?;
        assert_eq!(world.processes()[0].core.state(), "backoff");
        world.pass(5 * MINUTE)?;
        world.commits(Shape::Small);
        world.ends_well()
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
}

#[test]
fn a_promoted_replica_that_still_applies_is_waited_for() {
    let world = told(quiet(), |world| {
        for _ in 0..10 {
            world.commits(Shape::Small);
        }
        world.pass(MINUTE)?;
        world.happens(Fault::FailoverApplying, 0.0)?;
        world.pass(5 * MINUTE)?;
        world.commits(Shape::Small);
        world.ends_well()
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
}

#[test]
fn a_half_open_link_is_noticed() {
    let world = told(quiet(), |world| {
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        world.happens(Fault::HalfOpen, 0.0)?;
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        assert!(world.is_reached(), "{:?}", world.processes());
        world.ends_well()
    });
    assert_eq!(world.counts.dials, 2);
}

#[test]
fn a_second_owner_fences_the_first() {
    let world = told(quiet(), |world| {
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        world.happens(Fault::Zombie, 0.0)?;
        world.pass(MINUTE)?;
        world.commits(Shape::Small);
        world.ends_well()
    });
    assert_eq!(world.counts.halts.get("fenced"), Some(&1), "{:?}", world.counts.halts);
}

#[test]
fn an_owner_that_goes_on_while_a_second_one_starts_is_no_fence() {
    let world = told(World::story(|plan| plan.latency = 200_000), |world| {
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        world.happens(Fault::Zombie, 0.0)?;
        // Between the newcomer's first question and its claim the owner commits, and the link drops.
        world.pass(SECOND / 2)?;
        world.commits(Shape::Small);
        world.pass(SECOND / 10)?;
        world.happens(Fault::Eof, 0.0)?;
        world.pass(MINUTE)?;
        world.ends_well()
    });
    assert_eq!(world.counts.halts.get("fenced"), Some(&1), "{:?}", world.counts.halts);
}

#[test]
fn what_became_of_a_batch_is_read_back() {
    for fault in [Fault::AnswerLost, Fault::NothingAndLost, Fault::SinkTransient] {
        for shape in [Shape::Small, Shape::Ddl, Shape::Big, Shape::Filtered] {
            let world = told(quiet(), |world| {
                world.commits(Shape::Small);
                world.pass(MINUTE)?;
                world.happens(fault, 1.5)?;
                world.commits(shape);
                world.pass(MINUTE)?;
                assert!(world.is_reached(), "{fault:?} {shape:?}");
                world.ends_well()
            });
            assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
            assert!(world.counts.faults.contains_key(fault.name()), "{fault:?} {shape:?} did not happen");
        }
    }
}

#[test]
fn a_commit_that_lands_late_lands_once() {
    for fault in [Fault::LateCommit, Fault::HangsAndLands] {
        for (first, second) in
            [(Shape::Small, Shape::Small), (Shape::Big, Shape::Mixed), (Shape::Ddl, Shape::Big)]
        {
            for seconds in [0, 1, 5, 70] {
                let world = told(quiet(), |world| {
                    world.commits(Shape::Small);
                    world.pass(MINUTE)?;
                    world.happens(fault, 0.0)?;
                    world.commits(first);
                    world.pass(seconds * SECOND)?;
                    world.commits(second);
                    world.pass(5 * MINUTE)?;
                    world.ends_well()
                });
                assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
                assert!(world.counts.faults.contains_key(fault.name()));
            }
        }
    }
}

#[test]
fn a_late_claim_is_still_the_claim() {
    for begin in [Begin::Earliest, Begin::Current, Begin::At] {
        for fault in [Fault::LateCommit, Fault::HangsAndLands, Fault::AnswerLost] {
            let world = told(World::story(|plan| plan.begin = begin), |world| {
                world.commits(Shape::Small);
                world.happens(fault, 0.0)?;
                world.pass(5 * MINUTE)?;
                world.commits(Shape::Small);
                world.ends_well()
            });
            assert!(world.counts.halts.is_empty(), "{begin:?} {fault:?} {:?}", world.counts.halts);
        }
    }
}

#[test]
fn a_drain_asked_for_before_a_halt_stands_when_what_lay_before_it_is_not_durable() {
    let world = told(quiet(), |world| {
        world.pass(MINUTE)?;
        world.happens(Fault::HangsAndLands, 0.0)?;
        world.commits(Shape::Small);
        world.happens(Fault::Poison(sim::truth::Poison::PartialImage), 0.0)?;
        world.pass(SECOND)?;
        world.happens(Fault::Drain, 0.0)?;
        world.pass(2 * MINUTE)?;
        world.ends_well()
    });
    assert_eq!((world.counts.stopped, world.delivered()), (1, 1));
    assert!(world.halted().is_some());
}

#[test]
fn a_streamed_transaction_that_is_cut_comes_again_and_one_that_is_rolled_back_leaves_nothing() {
    let world = told(World::story(|plan| plan.latency = 400_000), |world| {
        world.pass(MINUTE)?;
        for fault in [Fault::Reset, Fault::CutEvent, Fault::Eof, Fault::HalfOpen] {
            world.commits(Shape::Big);
            world.pass(1)?;
            world.happens(Fault::Trickle, 260.0)?;
            world.pass(4 * MINUTE)?;
            world.happens(fault, 0.0)?;
            world.pass(6 * MINUTE)?;
        }
        assert!(world.processes()[0].aborts >= 2, "{} aborts", world.processes()[0].aborts);
        let before = world.processes()[0].aborts;
        for _ in 0..3 {
            world.commits(Shape::BigRolledBack);
            world.commits(Shape::BigCompressed);
            world.pass(MINUTE)?;
        }
        assert!(world.processes()[0].aborts >= before + 3);
        world.ends_well()
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
}

#[test]
fn a_streamed_transaction_over_a_link_slower_than_the_sinks_patience() {
    // A row event takes longer than the sink is given for a batch, and the sink has read all before it.
    let world = told(quiet(), |world| {
        world.pass(MINUTE)?;
        world.commits(Shape::Big);
        world.pass(1)?;
        world.happens(Fault::Trickle, 3600.0)?;
        world.pass(60 * MINUTE)?;
        world.ends_well()
    });
    assert!(world.counts.streamed > 0, "it was not streamed");
    assert_eq!(world.counts.aborts, 0, "the transaction was given up for nothing");
}

#[test]
fn a_gap_halts_with_what_is_missing_and_what_was_processed_may_be_purged() {
    let world = told(quiet(), |world| {
        for _ in 0..5 {
            world.commits(Shape::Small);
        }
        world.pass(MINUTE)?;
        world.happens(Fault::Purge, 0.0)?;
        world.happens(Fault::Eof, 0.0)?;
        world.pass(MINUTE)?;
        assert!(world.counts.halts.is_empty());
        world.happens(Fault::PurgeRace, 0.0)?;
        world.pass(MINUTE)?;
        assert!(world.counts.faults.contains_key("purge-race"));
        world.happens(Fault::PurgeGap, 5.0)?;
        world.ends_well()
    });
    assert_eq!(world.halted(), Some(capstan_core::halt::Code::DataGap), "{:?}", world.counts.halts);
}

#[test]
fn a_purge_between_the_questions_and_the_dump_after_a_restart_is_no_gap() {
    let world = told(quiet(), |world| {
        for _ in 0..5 {
            world.commits(Shape::Small);
        }
        world.pass(MINUTE)?;
        world.happens(Fault::Crash, 2.0)?;
        world.happens(Fault::PurgeRace, 0.0)?;
        world.pass(MINUTE)?;
        assert!(world.counts.faults.contains_key("purge-race"));
        world.commits(Shape::Small);
        world.ends_well()
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
}

#[test]
fn a_history_that_was_reset_is_recognised() {
    let world = told(quiet(), |world| {
        for _ in 0..5 {
            world.commits(Shape::Small);
        }
        world.pass(MINUTE)?;
        world.happens(Fault::ResetHistory, 0.0)?;
        world.ends_well()
    });
    assert_eq!(world.halted(), Some(capstan_core::halt::Code::SourceHistoryChanged));
}

#[test]
fn a_position_that_cannot_be_read_now_and_then_over_days_is_no_halt() {
    let world = told(quiet(), |world| {
        world.commits(Shape::Small);
        for _ in 0..50 {
            world.pass(60 * MINUTE)?;
            world.happens(Fault::PositionUnreadable, 2.0)?;
        }
        world.commits(Shape::Small);
        world.ends_well()
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
}

#[test]
fn a_machine_that_sleeps_is_no_halt() {
    for fault in [Fault::PositionHangs, Fault::SinkHangs, Fault::DialFails, Fault::Eof] {
        let world = told(quiet(), |world| {
            world.commits(Shape::Small);
            world.pass(MINUTE)?;
            for _ in 0..10 {
                world.happens(fault, 30.0)?;
                world.commits(Shape::Small);
                world.pass(20 * SECOND)?;
                // Ten times as long: 50 minutes.
                world.happens(Fault::TimeJump, 300.0)?;
                world.pass(5 * MINUTE)?;
            }
            world.ends_well()
        });
        assert!(world.counts.halts.is_empty(), "{fault:?} {:?}", world.counts.halts);
    }
}

#[test]
fn schema_changes_and_tiny_transactions_do_not_pile_up_before_a_sink_that_stands_still() {
    for shape in [Shape::Ddl, Shape::Small, Shape::Mixed] {
        let mut most = (0, 0);
        let world = told(quiet(), |world| {
            world.happens(Fault::SlowSink, 3600.0)?;
            for _ in 0..600 {
                (0..10).for_each(|_| world.commits(shape));
                world.pass(SECOND)?;
                let process = &world.processes()[0];
                most = (most.0.max(process.core.units_out()), most.1.max(process.core.retained()));
            }
            Ok(())
        });
        assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
        // 32 KiB are allowed; a unit takes a kilobyte whatever is in it, and a read chunk is let in whole.
        assert!(most.0 < 150 && most.0 > 15, "{shape:?}: {most:?}");
    }
}

#[test]
fn what_lies_before_something_that_cannot_be_delivered_is_delivered() {
    use sim::truth::Poison;
    for poison in [Poison::PartialImage, Poison::StatementLogged, Poison::Incident, Poison::TwoPhaseXa] {
        for fault in [Fault::SlowSink, Fault::AnswerLost, Fault::SinkTransient, Fault::HangsAndLands] {
            let world = told(quiet(), |world| {
                world.pass(MINUTE)?;
                world.happens(fault, 2.0)?;
                // All of it comes in one read.
                (0..5).for_each(|_| world.commits(Shape::Mixed));
                world.commits(Shape::Filtered);
                world.happens(Fault::Poison(poison), 0.0)?;
                world.commits(Shape::Small);
                world.ends_well()
            });
            assert!(world.halted().is_some());
            assert_eq!(world.delivered(), 6, "{poison:?} {fault:?}");
        }
    }
}

#[test]
fn a_sink_that_never_takes_a_streamed_transaction_is_not_tried_for_ever_however_often_others_are_rolled_back()
{
    let world = told(quiet(), |world| {
        world.pass(MINUTE)?;
        world.happens(Fault::SinkTransient, 100_000.0)?;
        world.commits(Shape::BigRolledBack);
        world.commits(Shape::Big);
        world.pass(30 * MINUTE)
    });
    assert!(world.counts.halts.get("sink_failed").is_some_and(|n| *n <= 3), "{:?}", world.counts);
    assert!(world.counts.dials < 200, "{} dials", world.counts.dials);
}

#[test]
fn a_question_for_the_position_that_gets_lost_is_asked_again() {
    let world = told(quiet(), |world| {
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        world.happens(Fault::PositionHangs, 0.0)?;
        world.pass(30 * SECOND)?;
        world.happens(Fault::PositionHangs, 0.0)?;
        world.commits(Shape::Small);
        world.pass(3 * MINUTE)?;
        assert!(world.is_reached(), "{:?}", world.processes());
        world.ends_well()
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    assert_eq!(world.counts.faults.get("position-hangs"), Some(&2));
}

#[test]
fn a_history_that_was_reset_is_recognised_by_each_tag_of_its_own() {
    let world = told(World::story(|plan| plan.tagged = 2), |world| {
        world.tagged_next();
        for n in 0..10 {
            if n % 3 == 0 {
                world.tagged_next();
            }
            world.commits(Shape::Small);
        }
        world.pass(MINUTE)?;
        // More than the sink has: without a memory of every tag the rest would be delivered.
        world.happens(Fault::SinkTransient, 1.0)?;
        world.commits(Shape::Small);
        world.commits(Shape::Small);
        world.happens(Fault::ResetHistory, 0.0)?;
        world.ends_well()
    });
    assert_eq!(world.halted(), Some(capstan_core::halt::Code::SourceHistoryChanged));
}

#[test]
fn a_pipeline_that_has_a_goal_stops_there_and_nowhere_else() {
    let goal = "01010101-0101-0101-0101-010101010101:1-4";
    let world = told(World::story(|plan| plan.until = Some(goal.parse().unwrap())), |world| {
        (0..3).for_each(|_| world.commits(Shape::Small));
        world.pass(MINUTE)?;
        assert_eq!((world.delivered(), world.counts.stopped), (3, 0));
        // What is behind the goal comes in the same read.
        [Shape::Filtered, Shape::Small, Shape::Big].iter().for_each(|shape| world.commits(*shape));
        world.pass(MINUTE)?;
        assert_eq!(world.delivered(), 4);
        // Who starts again has reached it.
        assert!(world.counts.stopped > 1);
        Ok(())
    });
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
}

#[test]
fn a_number_that_a_dying_server_had_begun_to_write_is_no_other_history() {
    let tagged = || World::story(|plan| plan.tagged = 2);
    let story = |world: &mut World| {
        // The newest of its tag, so that the file that the server died in is read once more.
        world.tagged_next();
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        world.happens(Fault::ServerCrash, 1.0)?;
        world.pass(MINUTE)?;
        // Under the number of the group that was never finished.
        world.commits(Shape::Small);
        world.pass(MINUTE)?;
        assert!(world.is_reached(), "{:?}", world.processes());
        world.happens(Fault::Crash, 1.0)?;
        world.pass(MINUTE)?;
        world.commits(Shape::Small);
        world.ends_well()
    };
    let world = told(tagged(), story);
    assert!(world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    let _making = making(Mistake::Core(Mutant::VerifyAtBegin));
    assert_eq!(story(&mut tagged()).unwrap_err().oracle, "halt-soundness");
}

/// A packet holds less than 16 MiB: what is as long as that, or longer, comes in several.
#[test]
fn row_events_around_the_length_of_a_packet() {
    const PACKET_MAX: usize = 0xff_ffff;
    let world = told(World::story(|plan| plan.huge = true), |world| {
        world.commits(Shape::Small);
        for bytes in [PACKET_MAX - 100, PACKET_MAX - 50, PACKET_MAX, PACKET_MAX + 1_000_000] {
            world.commits_row_of(bytes);
        }
        world.pass(10 * SECOND)?;
        // Inside one of them the link ends.
        world.commits_row_of(PACKET_MAX + 1);
        world.happens(Fault::Reset, 1.0)?;
        world.commits(Shape::Small);
        world.ends_well()
    });
    assert!(world.is_reached() && world.halted().is_none(), "{:?}", world.counts);
}

/// Whether a rare branch was taken since this was last asked of any.
fn taken(mark: Mark) -> bool {
    Marks::take().iter().any(|(known, n)| known == mark && n > 0)
}

/// A commit is in the log, and sent, before it is counted: a server that lacks only that lacks nothing.
#[test]
fn what_a_server_has_sent_and_not_counted_yet_is_waited_for() {
    let story = |world: &mut World| {
        world.commits(Shape::Copied);
        world.pass(10 * SECOND)?;
        // The first one of its tag, so that the server knows of none.
        world.tagged_next();
        world.commits_uncounted(Shape::Small, 3 * MINUTE);
        world.pass(10 * SECOND)?;
        world.happens(Fault::Eof, 0.0)?;
        world.pass(20 * SECOND)?;
        assert_eq!(world.processes().first().map(|process| process.core.state()), Some("backoff"));
        world.pass(10 * MINUTE)?;
        world.ends_well()
    };
    let copies = || World::story(|plan| (plan.copy, plan.tagged) = (true, 0));
    let _ = Marks::take();
    let world = told(copies(), story);
    assert!(taken(Mark::NotCountedYet) && world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    let _making = making(Mistake::Core(Mutant::ForgetSent));
    assert_eq!(story(&mut copies()).unwrap_err().oracle, "halt-soundness");
}

/// The same by a process that has not been sent it, where later ones are counted before it: for a minute.
#[test]
fn a_hole_in_what_a_server_counts_is_waited_for() {
    let story = |hole: u64| {
        move |world: &mut World| {
            world.commits(Shape::Copied);
            world.pass(10 * SECOND)?;
            world.commits_uncounted(Shape::Small, hole);
            world.commits_overtaking(Shape::Small);
            world.pass(5 * SECOND)?;
            world.happens(Fault::Crash, 1.0)?;
            world.pass(5 * MINUTE)?;
            world.ends_well()
        }
    };
    let copies = || World::story(|plan| (plan.copy, plan.tagged) = (true, 0));
    let _ = Marks::take();
    let world = told(copies(), story(40 * SECOND));
    assert!(taken(Mark::NotCountedYet) && world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    assert_eq!(story(10 * MINUTE)(&mut copies()).unwrap_err().oracle, "halt-soundness");
}

/// The stream's link is left over at a server that its address is no more: a copy cannot come there.
#[test]
fn a_copy_whose_connections_come_elsewhere_takes_the_stream_with_it() {
    let story = |world: &mut World| {
        (0..20).for_each(|_| world.commits(Shape::Copied));
        world.pass(SECOND / 2)?;
        assert!(world.address_moves(), "no link of a copy");
        world.pass(MINUTE)?;
        world.commits(Shape::Copied);
        world.ends_well()
    };
    let copies = || World::story(|plan| (plan.copy, plan.latency) = (true, 20_000));
    let _ = Marks::take();
    let world = told(copies(), story);
    assert!(taken(Mark::CopyElsewhere) && world.counts.halts.is_empty(), "{:?}", world.counts.halts);
    assert!(world.counts.dials > 1, "the stream stayed where it was");
    let _making = making(Mistake::Core(Mutant::StayElsewhere));
    assert_eq!(story(&mut copies()).unwrap_err().oracle, "halt-soundness");
}

/// The end of the table is what it was at the cut that its first chunk comes of, and none before.
#[test]
fn a_copy_that_is_interrupted_at_any_moment_has_what_came_behind_its_end() {
    let story = |at: u64| {
        let mut world = World::story(|plan| (plan.copy, plan.latency) = (true, 20_000));
        (0..12).for_each(|_| world.commits(Shape::Copied));
        world.pass(at)?;
        let lost = world.loses_copy_links();
        for _ in 0..4 {
            world.commits(Shape::CopiedMoved);
            world.pass(1_000)?;
        }
        world.ends_well().map(|()| lost)
    };
    let all = || (0..3 * SECOND).step_by(20_000).map(story);
    let lost = all().map(|told| told.unwrap_or_else(|failure| panic!("{failure}")));
    assert!(lost.filter(|lost| *lost).count() > 40);
    let _making = making(Mistake::Core(Mutant::KeepEnd));
    let seen: Vec<_> = all().filter_map(Result::err).map(|failure| failure.oracle).collect();
    assert!(!seen.is_empty() && seen.iter().all(|oracle| *oracle == "copy"), "{seen:?}");
}
