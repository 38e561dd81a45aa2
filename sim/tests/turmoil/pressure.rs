//! Back-pressure through the real hand-over: what the sink does not take is not read.

use sim::workload::Shape;

use crate::{
    driver::{RETAINED_MAX, lock, ms, secs, target::Act},
    stage::Stage,
};

/// What may be read beyond the budget: one chunk, one row event and the packet it is in.
const OVER: u64 = 96 << 10;

/// Bytes read since a mark, every `every`, while `n` passes.
fn samples(stage: &mut Stage, n: usize, every: std::time::Duration) -> Vec<u64> {
    (0..n)
        .map(|_| {
            stage.pass(every);
            lock(&stage.wire).bytes_in
        })
        .collect()
}

#[test]
fn a_sink_that_stands_still_stops_the_reading_within_the_budget() {
    let mut stage = Stage::new(51);
    // About 2 MB in small transactions and streamed ones.
    for _ in 0..20 {
        stage.origin.commit_all(&[Shape::Small, Shape::Big, Shape::Mixed]);
    }
    // The claim is taken, the first transaction takes its time.
    lock(&stage.target).acts.extend([Act::Take, Act::Slow(secs(20))]);
    stage.start_until_all();
    stage.until("the sink is at work", secs(10), |stage| stage.is_at_work_after(1));
    let read = samples(&mut stage, 35, secs(1));
    assert!(read[2] == read[34], "it goes on reading: {read:?}");
    assert!(read[34] <= RETAINED_MAX as u64 + OVER, "{} bytes are held", read[34]);
    assert!(read[34] >= RETAINED_MAX as u64 / 2, "and the budget is used: {}", read[34]);
    assert!(stage.status().retained_bytes <= RETAINED_MAX as u64 + OVER);
    let dials = lock(&stage.wire).dials;
    stage.finish();
    assert!(lock(&stage.wire).bytes_in > 1_500_000);
    assert_eq!((dials, lock(&stage.wire).dials), (1, 1), "the peer's silence was our doing");
}

/// A transaction of many times the budget, taken in sips: read as it is released, never much further.
#[test]
fn a_transaction_larger_than_the_budget_is_read_as_the_sink_moves_on() {
    let mut stage = Stage::new(52);
    stage.origin.commit_huge(120);
    stage.origin.commit(Shape::Small);
    lock(&stage.target).acts.extend([Act::Take, Act::Sips(ms(500))]);
    stage.start_until_all();
    let mut most = 0;
    let mut steady = 0;
    while stage.outside.end().is_none() {
        let before = lock(&stage.wire).bytes_in;
        stage.pass(secs(1));
        let (read, taken) = (lock(&stage.wire).bytes_in, lock(&stage.target).changes * 6000);
        most = most.max(read.saturating_sub(taken));
        steady += u64::from(read - before < 30_000 && read > before);
        assert!(read <= taken + RETAINED_MAX as u64 + OVER, "{read} bytes read, {taken} taken");
    }
    stage.finish();
    assert!(most > RETAINED_MAX as u64 / 2, "the budget was never used: {most}");
    assert!(steady > 20, "it was read in one gulp");
    assert_eq!(lock(&stage.target).streamed, 1);
    assert_eq!(lock(&stage.wire).dials, 1);
}

/// Longer than the acknowledgement's deadline: the batch is given up, its outcome asked for, the work done once.
#[test]
fn a_sink_that_stands_still_for_too_long_is_given_up_and_asked() {
    let mut stage = Stage::new(53);
    stage.origin.commit_all(&[Shape::Small, Shape::Big, Shape::Mixed, Shape::Big]);
    lock(&stage.target).acts.extend([
        Act::Take,
        Act::Take,
        Act::Slow(secs(50)),
        Act::CommitThenHang,
        Act::Hang,
    ]);
    stage.start_until_all();
    stage.finish();
    let target = lock(&stage.target);
    assert!(target.asked >= 3, "the position was asked for {} times", target.asked);
    assert!(target.acted(Act::Hang) == 1 && target.acted(Act::CommitThenHang) == 1);
    assert!(stage.now() > secs(170), "{:?}", stage.now());
}
