//! Who may write, and on what.

use capstan_core::deliver::{Event, FailureClass, Holds, Position, Seq, SinkError};

use crate::{
    bench::{Bench, Broken, kit, told},
    source::{Step, Tx, insert},
};

const FIRST: Step = insert("orders", 1);
const SECOND: Step = insert("orders", 2);
const INTRUDER: Step = insert("orders", 99);

/// A new owner's claim, over nothing and over an earlier owner's position.
pub(crate) fn claim(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    claimed(bench)?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    bench.claim()?;
    claimed(bench)?;
    bench.holds(&[FIRST])
}

/// What is stored, seen by a new process, must be the claim.
fn claimed(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let want = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    bench.open()?;
    let have = bench.position()?;
    if have.as_ref() == Some(&want) {
        return Ok(());
    }
    let epoch = have.map_or("nothing".into(), |have| format!("epoch {}", have.epoch()));
    Err(format!("the claim of epoch {} was acknowledged; stored is {epoch}", want.epoch()))
}

/// An owner that another one has followed.
pub(crate) fn fenced(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    let old = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    // Of two that took the same epoch at once, this one lost.
    let rival = bench.next_owner(old.clone());
    bench.claim()?;
    for (who, position) in [("the owner before", &old), ("a rival of the same epoch", &rival)] {
        refused(bench, position, FailureClass::Fenced).map_err(|why| format!("{who}: {why}"))?;
    }
    bench.send(vec![Tx::new(2, &[SECOND])])?;
    bench.drain()?;
    bench.open()?;
    refused(bench, &old, FailureClass::Fenced).map_err(|why| format!("after a new start: {why}"))?;
    bench.holds(&[FIRST, SECOND])
}

/// A batch of the same owner that goes on from an earlier position: a commit that lands late.
pub(crate) fn stale(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let old = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    refused(bench, &old, FailureClass::Stale)?;
    bench.holds(&[FIRST])
}

/// A batch that goes on from `believed` must be refused as `class`, with the position unmoved.
pub(crate) fn refused(bench: &mut Bench<'_>, believed: &Position, class: FailureClass) -> Result<(), Broken> {
    let before = bench.position()?;
    if before.as_ref() == Some(believed) {
        return Err(kit("the position has not moved on"));
    }
    match beside(bench, believed, Tx::new(2, &[INTRUDER]))? {
        Ok(()) => return Err(format!("a batch was acknowledged that had to be refused as {class:?}")),
        Err(error) if error.class() == class => {}
        Err(error) => {
            return Err(format!("a batch had to be refused as {class:?}, the sink reports {}", told(error)));
        }
    }
    if bench.position()? == before { Ok(()) } else { Err("the refused batch moved the position".into()) }
}

/// Applies a transaction of another sequence, which believes `believed` to be stored.
pub(crate) fn beside(
    bench: &mut Bench<'_>,
    believed: &Position,
    tx: Tx,
) -> Result<Result<(), SinkError>, Broken> {
    let mut other = bench.delivery_from(Some(believed));
    std::mem::swap(bench.delivery(), &mut other);
    let out = bench.send(vec![tx]).and_then(|()| bench.take());
    std::mem::swap(bench.delivery(), &mut other);
    let mut out = out?.ok_or_else(|| kit("no batch"))?;
    Ok(bench.answer(&mut out)?.map(|_lost| ()))
}

/// The batch is applied, its answer is lost, and it is sent once more by who believes the old position.
pub(crate) fn lost_answer(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let old = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    let mut out = bench.take()?.ok_or_else(|| kit("no batch"))?;
    match bench.answer(&mut out)? {
        // The kit loses the one answer; with the other one the sink has lost its own.
        Ok(_lost) => {}
        Err(error) if error.class() == FailureClass::Unknown => {}
        Err(error) => return Err(format!("a batch was refused: {}", told(error))),
    }
    bench.failed(out);
    let stored = bench.position()?;
    let Holds::Committed { .. } = bench.delivery().read_back(stored.as_ref()) else {
        return Err("the batch was written, yet the position does not say so".into());
    };
    if beside(bench, &old, Tx::new(1, &[FIRST]))?.is_ok() {
        return Err("the same batch was acknowledged twice".into());
    }
    bench.send(vec![Tx::new(2, &[SECOND])])?;
    bench.drain()?;
    bench.holds(&[FIRST, SECOND])
}

/// An attempt that was given up lands after the next one, and after more.
pub(crate) fn late(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let old = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    bench.send(vec![Tx::new(1, &[FIRST]), Tx::new(2, &[SECOND])])?;
    bench.drain()?;
    let before = bench.position()?;
    if beside(bench, &old, Tx::new(1, &[FIRST]))?.is_ok() {
        return Err("a commit that landed late was acknowledged".into());
    }
    if bench.position()? != before {
        return Err("a commit that landed late moved the position".into());
    }
    bench.holds(&[FIRST, SECOND])
}

/// Two newcomers have read the same position; one of them claims first.
pub(crate) fn two_claims(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    let read = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    let second = bench.next_owner(read.clone());
    bench.claim()?;
    claim_refused(bench, Some(&read), second)?;
    bench.holds(&[FIRST])
}

/// A newcomer that has found nothing, where something is.
pub(crate) fn claim_over_nothing(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    let second = bench.next_owner(Position::new(capstan_core::gtid::GtidSet::new(), "`shop`.*"));
    claim_refused(bench, None, second)?;
    bench.holds(&[FIRST])
}

/// A claim of who has read `read` must be refused as fenced, with the position unmoved.
fn claim_refused(bench: &mut Bench<'_>, read: Option<&Position>, claim: Position) -> Result<(), Broken> {
    let before = bench.position()?;
    let mut other = bench.delivery_from(read);
    let _ = other.push(Event::Claim { seq: Seq(0), position: Box::new(claim) });
    std::mem::swap(bench.delivery(), &mut other);
    let out = bench.take();
    std::mem::swap(bench.delivery(), &mut other);
    let mut out = out?.ok_or_else(|| kit("no claim"))?;
    match bench.answer(&mut out)? {
        Ok(_) => return Err("a claim was acknowledged over an owner that it had not seen".into()),
        Err(error) if error.class() == FailureClass::Fenced => {}
        Err(error) => {
            return Err(format!("a claim had to be refused as Fenced, the sink reports {}", told(error)));
        }
    }
    if bench.position()? == before { Ok(()) } else { Err("the refused claim moved the position".into()) }
}
