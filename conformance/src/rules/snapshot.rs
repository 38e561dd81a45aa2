//! The initial copy of a table, chunk by chunk, and the stream between the chunks.

use capstan_core::{
    deliver::{CopyState, Holds, Position},
    gtid::GtidSet,
};

use crate::{
    bench::{Bench, Broken, kit, same, told},
    source::{Step, Tx, applied, copied, copy_of, delete, emptied, insert, update},
    target::{Applied, Keeps},
};

/// An owner who is to copy a table, and then another one.
fn started(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let tables = [copied(), copy_of("lines")];
    bench.start_at(Position::new(GtidSet::new(), "`shop`.*").with_copies(tables));
    bench.start_process()
}

/// What the storage must hold, in whatever order.
fn holds(bench: &mut Bench<'_>, steps: &[Step]) -> Result<(), Broken> {
    compared(bench, steps, <[Applied]>::sort)
}

/// A storage of changes may name the rows of a chunk as it likes.
fn compared(bench: &mut Bench<'_>, steps: &[Step], order: fn(&mut [Applied])) -> Result<(), Broken> {
    if bench.storage().kept() == Keeps::Rows {
        return bench.holds(steps);
    }
    let mut have = bench.stored()?.applied;
    for change in &mut have {
        if !matches!(&*change.op, "update" | "delete") {
            change.op = "insert".into();
        }
    }
    let mut want = applied(steps);
    order(&mut want);
    order(&mut have);
    same(&want, &have)
}

/// Two chunks of a table, and one of the next.
pub(crate) fn chunks(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    let all = [
        insert("orders", 1),
        insert("orders", 2),
        insert("orders", 3),
        insert("lines", 1),
        insert("lines", 2),
    ];
    for (rows, number, last) in [(&all[..2], 0, false), (&all[2..3], 1, true), (&all[3..], 0, true)] {
        bench.chunk(rows, number, last)?;
        bench.drain()?;
    }
    holds(bench, &all)
}

/// A table without rows.
pub(crate) fn empty(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    bench.chunk(&[], 0, true)?;
    bench.drain()?;
    bench.open()?;
    let state = bench.position()?.and_then(|position| Some(position.copies().get(&copied())?.state));
    if state != Some(CopyState::Done) {
        let state = state.map_or("nothing", CopyState::as_str);
        return Err(format!("the copy of an empty table was acknowledged as done; stored of it is {state}"));
    }
    holds(bench, &[])
}

/// A table is copied once more.
pub(crate) fn anew(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    let (first, again) =
        ([insert("orders", 1), insert("orders", 2)], [insert("orders", 1), insert("orders", 3)]);
    bench.chunk(&first, 0, false)?;
    bench.drain()?;
    bench.chunk(&again, 0, true)?;
    bench.drain()?;
    let ([a, b], [c, d]) = (first, again);
    if bench.storage().kept() == Keeps::Rows {
        return bench.holds(&[a, b, emptied("orders"), c, d]);
    }
    // Whoever reads a storage of changes must be told what of it is void.
    let stored = bench.stored_with_beginnings()?.applied;
    let copies: Vec<Vec<&str>> = stored
        .split(Applied::is_beginning)
        .map(|changes| changes.iter().map(|change| &*change.key).collect())
        .collect();
    match copies.as_slice() {
        [before, first, again] if before.is_empty() && *first == ["1", "2"] && *again == ["1", "3"] => Ok(()),
        [_, _, _] => Err(format!("between the beginnings of the copies are the rows {copies:?}")),
        _ => Err(format!(
            "a copy began twice; {} beginnings are stored: without them nobody knows what is void (Applied::begins)",
            copies.len().saturating_sub(1)
        )),
    }
}

/// Changes of what the chunks before them delivered.
pub(crate) fn handoff(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    let first = [insert("orders", 1), insert("orders", 2)];
    let between = [update("orders", 1), delete("orders", 2).noted("new")];
    let second = [insert("orders", 3)];
    let behind = [update("orders", 3), insert("orders", 4)];
    bench.chunk(&first, 0, false)?;
    bench.drain()?;
    bench.send(vec![Tx::new(1, &between)])?;
    bench.drain()?;
    bench.chunk(&second, 1, true)?;
    bench.drain()?;
    bench.send(vec![Tx::new(2, &behind)])?;
    bench.drain()?;
    compared(bench, &[first.as_slice(), &between, &second, &behind].concat(), |_| {})
}

/// The answer to a chunk is lost, and it is sent once more.
pub(crate) fn again(bench: &mut Bench<'_>) -> Result<(), Broken> {
    started(bench)?;
    let old = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    let rows = [insert("orders", 1), insert("orders", 2)];
    bench.chunk(&rows, 0, true)?;
    let mut out = bench.take()?.ok_or_else(|| kit("no batch"))?;
    let answered = bench.answer(&mut out)?;
    bench.failed(out);
    let stored = bench.position()?;
    let Holds::Committed { .. } = bench.delivery().read_back(stored.as_ref()) else {
        let why = answered.err().map(told).unwrap_or_default();
        return Err(format!("the chunk was written, yet the position does not say so {why}")
            .trim_end()
            .into());
    };
    let mut other = bench.delivery_from(Some(&old));
    std::mem::swap(bench.delivery(), &mut other);
    let out = bench.chunk(&rows, 0, true).and_then(|()| bench.take());
    std::mem::swap(bench.delivery(), &mut other);
    let mut out = out?.ok_or_else(|| kit("no batch"))?;
    if bench.answer(&mut out)?.is_ok() {
        return Err(
            "the same chunk was acknowledged twice: it moves the position, though not its GTID set".into()
        );
    }
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[update("orders", 1)])])?;
    bench.drain()?;
    let [a, b] = rows;
    holds(bench, &[a, b, update("orders", 1)])
}
