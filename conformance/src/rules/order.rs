//! Every change, in order.

use capstan_core::deliver::Seq;

use crate::{
    bench::{Bench, Broken, kit},
    source::{Step, Tx, delete, insert, update},
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

/// A transaction of many row events.
pub(crate) fn to_the_end(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let steps: Vec<Step> = (1..=5000).map(|key| insert("orders", key)).collect();
    bench.send(vec![Tx::new(1, &steps)])?;
    bench.drain()?;
    bench.holds(&steps)
}
