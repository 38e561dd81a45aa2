//! Every change, in order.

use capstan_core::deliver::Seq;

use crate::{
    bench::{Bench, Broken, kit},
    source::{Comes, Step, Tx, delete, insert, update},
};

/// Two tables and every kind of change in one transaction.
pub(crate) fn within(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let steps = [
        insert("orders", 1),
        insert("orders", 2),
        insert("lines", 1),
        update("orders", 1),
        delete("lines", 1),
        insert("lines", 1),
        delete("orders", 2),
    ];
    bench.send(vec![Tx::new(1, &steps)])?;
    bench.drain()?;
    bench.holds_in_order(&steps)
}

/// Transactions of one change each: three in one batch, two in the next.
pub(crate) fn across(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.batches_of(3);
    bench.start_process()?;
    let steps = [
        insert("orders", 3),
        insert("lines", 1),
        update("orders", 3),
        insert("orders", 1),
        delete("lines", 1),
    ];
    bench.send(steps.iter().zip(1..).map(|(step, gno)| Tx::new(gno, &[*step])).collect())?;
    if bench.deliver()? != Some(Seq(3)) {
        return Err(kit("the first batch does not hold three transactions"));
    }
    bench.drain()?;
    bench.holds_in_order(&steps)
}

/// Rows of each transaction of [`to_the_end`]: no round number.
const MANY: i64 = 2503;

/// Transactions of many row events: one that is there whole, and one that is handed over while it is read.
pub(crate) fn to_the_end(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let steps: Vec<Step> = (1..=2 * MANY).map(|key| insert("orders", key)).collect();
    let (whole, streamed) = steps.split_at(steps.len() / 2);
    bench.send(vec![Tx::new(1, whole)])?;
    bench.drain()?;
    let mut out = bench.stream(Tx::new(2, streamed), Comes::Streamed)?;
    let answer = bench.answer(&mut out)?;
    bench.settle(out, answer)?;
    bench.holds(&steps)
}
