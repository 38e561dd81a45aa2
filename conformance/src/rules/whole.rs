//! A transaction, whole or not at all.

use capstan_core::deliver::FailureClass;

use crate::{
    bench::{Bench, Broken, Died, Out, kit, told},
    source::{Comes, Step, Tx, insert, update},
    subject::Ended,
};

const FIRST: Step = insert("orders", 1);
const STREAMED: [Step; 3] = [insert("orders", 2), update("orders", 1), insert("lines", 1)];

/// A process that has applied one transaction.
fn started(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()
}

/// The source rolled it back.
pub(crate) fn aborted(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    let out = bench.stream(Tx::rolled_back(2, &STREAMED), Comes::Streamed)?;
    takes_back(bench, out)?;
    bench.redial()?;
    bench.holds(&[FIRST])
}

/// The link dropped before its end.
pub(crate) fn comes_again(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    let out = bench.stream(Tx::new(2, &STREAMED), Comes::Cut)?;
    takes_back(bench, out)?;
    bench.redial()?;
    bench.send(vec![Tx::new(2, &STREAMED)])?;
    bench.drain()?;
    let [a, b, c] = STREAMED;
    bench.holds(&[FIRST, a, b, c])
}

/// The sink must say that it was aborted.
fn takes_back(bench: &mut Bench<'_>, mut out: Out) -> Result<(), Broken> {
    match bench.answer(&mut out)? {
        Ok(_) => return Err("a transaction without an end was acknowledged".into()),
        Err(error) if error.class() == FailureClass::Aborted => {}
        Err(error) => {
            return Err(format!(
                "an aborted transaction is no failure, yet the sink reports {}",
                told(error)
            ));
        }
    }
    bench.failed(out);
    Ok(())
}

/// The process dies while it waits for the rest.
pub(crate) fn killed(bench: &mut Bench<'_>) -> Result<(), Broken> {
    if bench.dies("inside", 0, None)? == Died::Finished {
        return Err(kit("it did not die"));
    }
    bench.holds(&[FIRST])?;
    bench.start_process()?;
    bench.send(vec![Tx::new(2, &STREAMED)])?;
    bench.drain()?;
    let [a, b, c] = STREAMED;
    bench.holds(&[FIRST, a, b, c])
}

/// Its process.
pub(crate) fn dies_inside(bench: &mut Bench<'_>, _: u64) -> Result<(), Broken> {
    started(bench)?;
    let out = bench.stream(Tx::new(2, &STREAMED), Comes::Stopped)?;
    waits_for_more(bench, out)
}

/// Hands over what there is of a transaction; the sink must wait for the rest.
pub(crate) fn waits_for_more(bench: &mut Bench<'_>, mut out: Out) -> Result<(), Broken> {
    match bench.apply(&mut out)? {
        Ended::Killed => Ok(()),
        Ended::Broke(why) => Err(why),
        Ended::Answered(Ok(_)) => Err("a transaction without an end was acknowledged".into()),
        Ended::Answered(Err(error)) => {
            Err(format!("a transaction that has not come to its end was refused: {}", told(error)))
        }
    }
}

/// It comes to its end while it is read.
pub(crate) fn streamed(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    let mut out = bench.stream(Tx::new(2, &STREAMED), Comes::Streamed)?;
    let answer = bench.answer(&mut out)?;
    bench.settle(out, answer)?;
    bench.send(vec![Tx::new(3, &[insert("orders", 3)])])?;
    bench.drain()?;
    let [a, b, c] = STREAMED;
    bench.holds(&[FIRST, a, b, c, insert("orders", 3)])
}
