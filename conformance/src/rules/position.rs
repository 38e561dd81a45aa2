//! What is stored of the position.

use capstan_core::{
    deliver::{Advance, Position, XaDigest},
    gtid::GtidSet,
};

use crate::{
    bench::{Bench, Broken, differs, kit},
    source::{SOURCE, Tx, copied, insert, without_creations},
};

/// A position with everything in it that a position can have.
pub(crate) fn reads_back(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let mut start = Position::new(set(&format!("{SOURCE}:1-3"))?, "`shöp \"x\"\\`.*,`a``b`.`'`");
    let prepared = vec![XaDigest([0; 16]), XaDigest([0xff; 16])];
    start.advance(&Advance { prepared, ..Advance::default() });
    // Of the epoch that the claim makes of it no double holds the last digit.
    bench.start_at(start.with_epoch(1 << 53).with_copies([copied()]).with_snapshot("`shop`.*"));
    bench.start_process()?;
    bench.send(vec![Tx::new(4, &[insert("orders", 1)])])?;
    bench.drain()?;
    let want = bench.delivery().durable().map(Position::encode).ok_or_else(|| kit("nothing is durable"))?;
    told_as(&want, bench.position()?.as_ref(), "after the write")?;
    let stored = bench.stored()?.position;
    if stored.as_deref() != Some(want.as_str()) {
        let stored = stored.unwrap_or_default();
        return Err(format!("the acknowledgement said another position: stored {}", differs(&want, &stored)));
    }
    bench.open()?;
    told_as(&want, bench.position()?.as_ref(), "after a new start")
}

fn told_as(want: &str, have: Option<&Position>, when: &str) -> Result<(), Broken> {
    let have = have.map(Position::encode).unwrap_or_default();
    if have == want { Ok(()) } else { Err(format!("{when} the position {}", differs(want, &have))) }
}

/// Gaps, filled out of order.
pub(crate) fn is_a_set(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let gtids = [format!("{SOURCE}:5"), format!("{SOURCE}:4"), format!("{SOURCE}:12")];
    keeps(bench, &format!("{SOURCE}:1-3:7:9"), &gtids, &format!("{SOURCE}:1-5:7:9:12"))
}

/// Numbers of several sources, the largest among them.
pub(crate) fn keeps_sources(bench: &mut Bench<'_>) -> Result<(), Broken> {
    const B: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";
    const C: &str = "cccccccc-cccc-cccc-cccc-cccccccccccc";
    let gtids = [format!("{B}:6"), format!("{SOURCE}:4"), format!("{C}:9223372036854775806")];
    let want = format!("{SOURCE}:1-4,{B}:1-6,{C}:1-9223372036854775806");
    keeps(bench, &format!("{SOURCE}:1-3,{B}:1-5,{C}:1-9223372036854775805"), &gtids, &want)
}

/// Tagged ones beside untagged ones of the same source.
pub(crate) fn keeps_tags(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let gtids = [format!("{SOURCE}:blue:3"), format!("{SOURCE}:4"), format!("{SOURCE}:red:1")];
    keeps(bench, &format!("{SOURCE}:1-3:blue:1-2"), &gtids, &format!("{SOURCE}:1-4:blue:1-3:red:1"))
}

/// A set with more gaps than 64 KiB have room for.
pub(crate) fn of_any_length(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let gaps: String = (2..14_000).map(|n| format!(":{}", 2 * n + 1)).collect();
    let want = format!("{SOURCE}:1-3{gaps}");
    if want.len() <= 1 << 16 {
        return Err(kit("the set is too short"));
    }
    keeps(bench, &format!("{SOURCE}:1:3{gaps}"), &[format!("{SOURCE}:2")], &want)?;
    bench.note(format!("{} KiB", want.len() >> 10));
    Ok(())
}

/// From `start` and these transactions comes `want`.
fn keeps(bench: &mut Bench<'_>, start: &str, gtids: &[String], want: &str) -> Result<(), Broken> {
    bench.start_at(Position::new(set(start)?, "`shop`.*"));
    bench.start_process()?;
    bench.send(gtids.iter().zip(1..).map(|(gtid, key)| Tx::of(gtid, &[insert("orders", key)])).collect())?;
    bench.drain()?;
    let want = set(want)?;
    if bench.delivery().durable().map(own) != Some(want.clone()) {
        return Err(kit("the set it folded is another one"));
    }
    bench.open()?;
    let have = bench.position()?.as_ref().map(own).unwrap_or_default();
    if have == want {
        Ok(())
    } else {
        Err(format!("the set {}", differs(&want.to_string(), &have.to_string())))
    }
}

/// Nothing but filtered transactions for a while, each of which moves the position durably.
pub(crate) fn idle(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    for gno in 1..=5 {
        bench.send(vec![Tx::filtered(gno)])?;
        bench.drain()?;
        let want = bench.delivery().durable().cloned();
        if bench.position()? != want {
            return Err(format!("Progress {gno} of an idle stream was acknowledged and is not stored"));
        }
    }
    bench.holds(&[])
}

/// Transactions of other tables alone, then one more of ours.
pub(crate) fn progress(bench: &mut Bench<'_>) -> Result<(), Broken> {
    let first = insert("orders", 1);
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[first])])?;
    bench.drain()?;
    let before = bench.delivery().durable().cloned();
    bench.send(vec![Tx::filtered(2), Tx::filtered(3)])?;
    bench.drain()?;
    if bench.delivery().durable() == before.as_ref() {
        return Err(kit("no Progress was sent"));
    }
    bench.open()?;
    let want = set(&format!("{SOURCE}:1-3"))?;
    let have = bench.position()?.as_ref().map(own).unwrap_or_default();
    if have != want {
        return Err(format!("after filtered transactions the set is {have} instead of {want}"));
    }
    bench.holds(&[first])
}

fn own(position: &Position) -> GtidSet {
    without_creations(position.gtid_set())
}

fn set(text: &str) -> Result<GtidSet, Broken> {
    text.parse().map_err(|_| kit("its own set is none"))
}
