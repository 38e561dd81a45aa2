//! A process dies, and the next one goes on.

use std::{collections::BTreeMap, time::Duration};

use capstan_core::deliver::{FailureClass, Position};

use super::{batch::Random, whole::waits_for_more};
use crate::{
    bench::{Bench, Broken, Died, kit, told},
    process,
    rule::Level,
    source::{Comes, LONG, SOURCE, Step, Tx, insert, update},
    target::Applied,
};

/// Row events of the transaction inside which it dies.
const ROW_EVENTS: u64 = 5;

/// Its rows, of which about twenty fit one event.
fn rows() -> Vec<Step> {
    (1..=120).map(|key| insert("orders", key).noted(LONG)).collect()
}

/// Inside a transaction, after each row event of it.
pub(crate) fn at_every_step(bench: &mut Bench<'_>) -> Result<(), Broken> {
    for step in 0..=ROW_EVENTS {
        if bench.dies("at_step", step, None)? == Died::Finished {
            return Err(kit("it did not die"));
        }
        bench.holds(&[]).map_err(|why| format!("killed after row event {step}: {why}"))?;
    }
    bench.note(format!("killed after each of {ROW_EVENTS} row events"));
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &rows())])?;
    bench.drain()?;
    bench.holds(&rows())
}

/// Its process.
pub(crate) fn dies_at_step(bench: &mut Bench<'_>, step: u64) -> Result<(), Broken> {
    bench.start_process()?;
    // The first row event goes along with the batch.
    let out = bench.stream_part(Tx::new(1, &rows()), usize::try_from(step).unwrap_or(0).max(1))?;
    waits_for_more(bench, out)
}

const ACKNOWLEDGED: [Step; 2] = [insert("orders", 1), insert("orders", 2)];
const WRITTEN: [Step; 2] = [insert("orders", 3), update("orders", 1)];

/// After the write and before anybody has heard of it: once.
pub(crate) fn after_the_write(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let [a, b, c, d] = again(bench)?;
    bench.holds(&[a, b, c, d])
}

/// The same, where what was not acknowledged may be there twice.
pub(crate) fn duplicates(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let all = again(bench)?;
    let have = bench.stored()?.applied;
    let want = bench.want(&all);
    if let Some(foreign) = have.iter().find(|change| !want.contains(change)) {
        return Err(format!("{} {} {} was never committed", foreign.op, foreign.table, foreign.key));
    }
    let unacknowledged = bench.want(&WRITTEN);
    for change in &want {
        let times = have.iter().filter(|have| *have == change).count();
        let most = if unacknowledged.contains(change) { 2 } else { 1 };
        if times == 0 || times > most {
            let Some(allowed) = ["", "once", "once or twice"].get(most) else { continue };
            return Err(format!(
                "{} {} {} is stored {times} times instead of {allowed}",
                change.op, change.table, change.key
            ));
        }
    }
    Ok(())
}

/// Of these transactions, each of which inserts rows of its own, every one is there whole: the first `acknowledged` of
/// them at least once, none more than `most` times. Nothing else is.
pub(crate) fn whole(
    bench: &mut Bench<'_>,
    transactions: &[Vec<Step>],
    acknowledged: usize,
    most: usize,
) -> Result<(), Broken> {
    let mut have: BTreeMap<Applied, usize> = BTreeMap::new();
    for change in bench.stored()?.applied {
        *have.entry(change).or_default() += 1;
    }
    for (steps, number) in transactions.iter().zip(1..) {
        let mut times = bench.want(steps).into_iter().map(|change| have.remove(&change).unwrap_or(0));
        let first = times.next().unwrap_or(0);
        if let Some(other) = times.find(|other| *other != first) {
            return Err(format!(
                "of transaction {number} a part is there: its first change {first} times, another one {other} times"
            ));
        }
        let least = usize::from(number <= acknowledged);
        if !(least..=most).contains(&first) {
            return Err(format!("transaction {number} is stored {first} times instead of {least} to {most}"));
        }
    }
    have.pop_first().map_or(Ok(()), |(change, _)| {
        Err(format!("{} {} {} was never committed", change.op, change.table, change.key))
    })
}

/// Four transactions in two batches; a process dies between the second and its acknowledgement.
fn again(bench: &mut Bench<'_>) -> Result<[Step; 4], Broken> {
    bench.batches_of(2);
    if bench.dies("after_the_write", 0, None)? == Died::Finished {
        return Err(kit("it did not die"));
    }
    bench.start_process()?;
    let done = holds_gtids(bench.delivery().durable());
    let missing: Vec<Tx> =
        transactions().into_iter().zip(1..).filter(|(_, gno)| *gno > done).map(|(tx, _)| tx).collect();
    bench.note(format!("the next process goes on after {done} of 4 transactions"));
    bench.send(missing)?;
    bench.drain()?;
    let ([a, b], [c, d]) = (ACKNOWLEDGED, WRITTEN);
    Ok([a, b, c, d])
}

fn transactions() -> Vec<Tx> {
    ACKNOWLEDGED.iter().chain(&WRITTEN).zip(1..).map(|(step, gno)| Tx::new(gno, &[*step])).collect()
}

/// How many of the transactions from 1 on a position holds.
pub(crate) fn holds_gtids(position: Option<&Position>) -> u64 {
    let Some(position) = position else { return 0 };
    let holds =
        |gno: &u64| format!("{SOURCE}:{gno}").parse().is_ok_and(|gtid| position.gtid_set().contains(&gtid));
    (1..).take_while(holds).last().unwrap_or(0)
}

/// Its process.
pub(crate) fn dies_after_the_write(bench: &mut Bench<'_>, _: u64) -> Result<(), Broken> {
    bench.batches_of(2);
    bench.start_process()?;
    bench.send(transactions())?;
    bench.deliver()?;
    let mut out = bench.take()?.ok_or_else(|| kit("no second batch"))?;
    match bench.answer(&mut out)? {
        Ok(_unheard) => {}
        Err(error) if error.class() == FailureClass::Unknown => {}
        Err(error) => return Err(format!("a batch was refused: {}", told(error))),
    }
    bench.is_killed_here();
    Ok(())
}

/// Kills of a process that writes.
const KILLS: usize = 16;
/// Microseconds after which it is killed at the latest.
const LEFT_MAX: usize = 20_000;
/// Transactions that it writes if nobody kills it.
const WRITES_MAX: u64 = 2000;

/// A process writes one transaction after the other and is killed in the midst of it.
pub(crate) fn at_any_moment(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let mut random = Random(bench.seed());
    let (mut acknowledged, mut kills) = (0, 0);
    for kill in 1..=KILLS {
        let left = Duration::from_micros(random.below(LEFT_MAX * kill / KILLS) as u64);
        let (died, heard) = bench.dies_within(left, "writes_on")?;
        kills += u32::from(died == Died::Killed);
        acknowledged = heard.unwrap_or(0).max(acknowledged);
        bench.start_process()?;
        let done = holds_gtids(bench.delivery().durable());
        if done < acknowledged {
            return Err(format!(
                "transaction {acknowledged} was acknowledged, after kill {kill} the position says {done}"
            ));
        }
        let written: Vec<Vec<Step>> = (1..=done + 1).map(written).collect();
        let held = usize::try_from(done).unwrap_or(0);
        let looked = if bench.level() == Level::ExactlyOnce {
            bench.holds(&written.get(..held).unwrap_or_default().concat())
        } else {
            whole(bench, &written, held, KILLS + 1)
        };
        looked.map_err(|why| format!("after kill {kill} the position says {done}: {why}"))?;
    }
    if kills == 0 {
        return Err(kit("it was never killed"));
    }
    bench.note("killed while it wrote, at moments drawn at random");
    Ok(())
}

/// Small transactions, and every third one of a few hundred rows: of those, a part takes long enough to be seen.
fn written(gno: u64) -> Vec<Step> {
    let rows = if gno.is_multiple_of(3) { 300 } else { 3 };
    let key = i64::try_from(gno * 1000).unwrap_or(0);
    let orders = (key..key + rows).map(|key| insert("orders", key));
    orders.chain([insert("lines", key)]).collect()
}

/// Its process.
pub(crate) fn writes_on(bench: &mut Bench<'_>, _: u64) -> Result<(), Broken> {
    bench.start_process()?;
    let first = 1 + holds_gtids(bench.delivery().durable());
    process::say("writes", "");
    for gno in first..first + WRITES_MAX {
        bench.send(vec![Tx::new(gno, &written(gno))])?;
        bench.drain()?;
        process::say("acknowledged", &gno.to_string());
    }
    Ok(())
}

/// Most passages of one point that are tried.
const PASSAGES: u64 = 3;

/// At each place that the sink declares.
pub(crate) fn at_fault_points(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let points = bench.storage().points();
    if points.is_empty() {
        return Err("Target::fault_points names none: name some, or decline this rule with a reason".into());
    }
    let mut round = 0;
    for point in &points {
        let mut deaths = 0;
        for count in 1..=PASSAGES {
            let died = bench.dies("at_a_point", round, Some((point, count)))?;
            let at = |why: String| format!("killed at {point}, passage {count}: {why}");
            goes_on(bench, round).map_err(at)?;
            round += 1;
            if died == Died::Finished {
                break;
            }
            deaths += 1;
        }
        if deaths == 0 {
            return Err(format!("the fault point {point} was never passed"));
        }
        bench.note(format!("killed {deaths} times at {point}"));
    }
    Ok(())
}

/// The transactions of a round.
fn round_of(round: u64) -> [Vec<Step>; 3] {
    let key = i64::try_from(round * 10).unwrap_or(0);
    [
        vec![insert("orders", key), insert("orders", key + 1)],
        vec![update("orders", key), insert("lines", key)],
        vec![insert("orders", key + 2)],
    ]
}

fn gno(round: u64, n: u64) -> u64 {
    round * 3 + n
}

/// Its process: a small transaction, a streamed one, a small one.
pub(crate) fn passes_points(bench: &mut Bench<'_>, round: u64) -> Result<(), Broken> {
    let [a, b, c] = round_of(round);
    bench.start_process()?;
    bench.send(vec![Tx::new(gno(round, 1), &a)])?;
    bench.drain()?;
    let mut out = bench.stream(Tx::new(gno(round, 2), &b), Comes::Streamed)?;
    let answer = bench.answer(&mut out)?;
    bench.settle(out, answer)?;
    bench.send(vec![Tx::new(gno(round, 3), &c)])?;
    bench.drain()
}

/// The next process finds what the position says, and does the rest.
fn goes_on(bench: &mut Bench<'_>, round: u64) -> Result<(), Broken> {
    bench.start_process()?;
    let done = holds_gtids(bench.delivery().durable());
    let first = gno(round, 1);
    let all: Vec<Vec<Step>> = (0..=round).flat_map(round_of).collect();
    let stored: Vec<Step> = all.iter().take(usize::try_from(done).unwrap_or(0)).flatten().copied().collect();
    bench.holds(&stored)?;
    bench.start_process()?;
    let left = all.iter().zip(1..).filter(|(_, gno)| *gno > done && *gno >= first);
    let left: Vec<Tx> = left.map(|(steps, gno)| Tx::new(gno, steps)).collect();
    bench.send(left)?;
    bench.drain()?;
    bench.holds(&all.concat())
}
