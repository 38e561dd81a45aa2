//! Batches: of many transactions, given up, acknowledged.

use capstan_core::deliver::{Event, FailureClass, Holds, Seq};

use super::crash::{holds_gtids, whole};
use crate::{
    bench::{Bench, Broken, kit, same, told},
    rule::Level,
    source::{Comes, Step, Tx, delete, insert, update},
};

/// Of three transactions in one batch the last one has no end.
pub(crate) fn atomic(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.batches_of(3);
    bench.start_process()?;
    let steps = [insert("orders", 1), update("orders", 1), insert("orders", 2)];
    let transactions = || steps.iter().zip(1..).map(|(step, gno)| Tx::new(gno, &[*step])).collect();
    let mut events = bench.events(transactions(), Comes::Whole)?;
    let Some(Event::TxCommit(commit)) = events.pop() else { return Err(kit("no end")) };
    events.push(Event::TxAbort { seq: commit.seq, comes_again: true });
    for event in events {
        let _ = bench.delivery().push(event);
    }
    let mut out = bench.take()?.ok_or_else(|| kit("no batch"))?;
    match bench.answer(&mut out)? {
        Ok(_) => return Err("a batch without an end was acknowledged".into()),
        Err(error) if error.class() == FailureClass::Aborted => bench.failed(out),
        Err(error) => return Err(format!("an abort is no failure, yet the sink reports {}", told(error))),
    }
    bench.holds(&[]).map_err(|why| format!("of a batch that had no end: {why}"))?;
    bench.open()?;
    bench.redial()?;
    bench.send(transactions())?;
    if bench.deliver()? != Some(Seq(6)) {
        return Err(kit("the three are not one batch"));
    }
    bench.holds(&steps)
}

/// What was acknowledged is there for others, before the sink is closed.
pub(crate) fn acknowledged(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let mut steps = Vec::new();
    let before = bench.acknowledged();
    // What is written a moment later is not seen at once every time.
    for key in 1..=5_i64 {
        let more = [insert("orders", key), insert("lines", key)];
        steps.extend(more);
        bench.send(vec![Tx::new(key.unsigned_abs(), &more)])?;
        bench.drain()?;
        let stored = bench.stored_beside()?;
        let (mut want, mut have) = (bench.want(&steps), stored.applied);
        want.sort();
        have.sort();
        same(&want, &have).map_err(|why| format!("while the sink is open: {why}"))?;
        let durable = bench.delivery().durable().map(capstan_core::deliver::Position::encode);
        if bench.level() == Level::ExactlyOnce && stored.position != durable {
            return Err("while the sink is open another position is stored than was acknowledged".into());
        }
    }
    if bench.acknowledged() == before {
        return Err("nothing was acknowledged: each batch was written and then reported as a failure".into());
    }
    Ok(())
}

/// Batches that are dropped at each of their awaits, or whose answer comes too late: once.
pub(crate) fn given_up(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let transactions = drops(bench)?;
    bench.holds(&transactions.concat())
}

/// The same, where what was not acknowledged may be there twice, though not in part.
pub(crate) fn dropped(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let transactions = drops(bench)?;
    whole(bench, &transactions, transactions.len(), 2)
}

/// Most awaits of an apply that are tried.
const AWAITS: i64 = 100;

/// What it delivers: first the same sink goes on after each drop, then a new process.
fn drops(bench: &mut Bench<'_>) -> Result<Vec<Vec<Step>>, Broken> {
    bench.start_process()?;
    let mut transactions = Vec::new();
    for dies in [false, true] {
        let (mut drops, mut waits) = (0, 0);
        for _ in 0..AWAITS {
            let key = 1 + i64::try_from(transactions.len()).unwrap_or(0);
            let steps = vec![insert("orders", key), insert("lines", key)];
            transactions.push(steps.clone());
            bench.send(vec![Tx::new(key.unsigned_abs(), &steps)])?;
            let mut out = bench.take()?.ok_or_else(|| kit("no batch"))?;
            let answered = match bench.answer_or_drop(&mut out, waits)? {
                None => false,
                Some(Ok(_too_late)) => true,
                Some(Err(error)) if error.class() == FailureClass::Unknown => true,
                Some(Err(error)) => return Err(format!("a batch was refused: {}", told(error))),
            };
            bench.failed(out);
            let settled = if dies { goes_on_anew } else { goes_on };
            settled(bench, key.unsigned_abs(), &steps, answered)?;
            drops += u32::from(!answered);
            waits += 1;
            if answered {
                break;
            }
        }
        let who = if dies { "a new process" } else { "the same sink" };
        let dropped = if drops > 0 { format!("dropped at {drops} awaits, then ") } else { String::new() };
        bench.note(format!("{dropped}answered too late: {who} goes on"));
    }
    Ok(transactions)
}

const UNSAID: &str = "a batch was acknowledged, yet the position does not say so";

fn goes_on(bench: &mut Bench<'_>, _: u64, _: &[Step], answered: bool) -> Result<(), Broken> {
    let stored = bench.position()?;
    match bench.delivery().read_back(stored.as_ref()) {
        Holds::Committed { .. } => Ok(()),
        Holds::Expected if answered && bench.level() == Level::ExactlyOnce => Err(UNSAID.into()),
        Holds::Expected => reapply(bench),
        Holds::Moved | Holds::Foreign(_) => {
            Err("after a dropped batch the position is neither the old nor the new one".into())
        }
    }
}

fn goes_on_anew(bench: &mut Bench<'_>, gno: u64, steps: &[Step], answered: bool) -> Result<(), Broken> {
    bench.start_process()?;
    match holds_gtids(bench.delivery().durable()) {
        held if held >= gno => Ok(()),
        held if held + 1 < gno => Err(format!("after transaction {gno} the position says {held}")),
        _ if answered && bench.level() == Level::ExactlyOnce => Err(UNSAID.into()),
        _ => {
            bench.send(vec![Tx::new(gno, steps)])?;
            bench.drain().map_err(|why| format!("after it was dropped once: {why}"))
        }
    }
}

fn reapply(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let state = bench.delivery().reapply().ok_or_else(|| kit("nothing to apply again"))?;
    let mut out = bench.out(state);
    let answer = bench.answer(&mut out)?;
    bench.settle(out, answer).map_err(|why| format!("after it was dropped once: {why}"))
}

/// Sequences of transactions, and how they are cut into batches.
const SEEDS: u64 = 3;

/// The same transactions, cut into batches at random, over several processes.
pub(crate) fn any_cut(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let mut all: Vec<Step> = Vec::new();
    let mut gno = 0;
    for seed in 0..SEEDS {
        let mut random = Random(bench.seed().wrapping_add(seed));
        let mut there: Vec<i64> = Vec::new();
        for _ in 0..6 {
            bench.batches_of(1 + random.below(9));
            bench.start_process()?;
            let mut transactions = Vec::new();
            for _ in 0..=5 + random.below(10) {
                gno += 1;
                let steps = random.steps(&mut there, i64::try_from(gno).unwrap_or(0));
                transactions.push(Tx::new(gno, &steps));
                all.extend(steps);
            }
            bench.send(transactions)?;
            bench.drain()?;
            bench.redial()?;
        }
    }
    bench.note(format!("{gno} transactions, {} changes", all.len()));
    bench.holds(&all)
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % end.max(1) as u64).unwrap_or(0)
    }

    /// A new row, perhaps an update or a delete of an earlier one.
    fn steps(&mut self, there: &mut Vec<i64>, key: i64) -> Vec<Step> {
        let mut steps = vec![insert("orders", key)];
        if !there.is_empty() {
            let at = self.below(there.len());
            match (self.below(3), there.get(at).copied()) {
                (0, Some(old)) => steps.push(update("orders", old)),
                (1, Some(old)) => {
                    steps.push(delete("orders", old));
                    there.remove(at);
                }
                _ => {}
            }
        }
        there.push(key);
        steps
    }
}
