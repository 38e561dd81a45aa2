//! The storage under the sink: written by a newer version, restored, emptied, opened twice.

use capstan_core::deliver::{FailureClass, Position};

use super::owner::{beside, refused};
use crate::{
    bench::{Bench, Broken, kit, told},
    source::{SOURCE, Step, Tx, insert, without_creations},
};

const FIRST: Step = insert("orders", 1);
const SECOND: Step = insert("orders", 2);

/// A format nobody has written yet.
const NEWER: &str = r#"{"format":999,"what":"comes next"}"#;

/// A newer version wrote the position.
pub(crate) fn newer_format(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    bench.stored()?;
    bench.storage().plant_position(NEWER).map_err(|why| why.to_string())?;
    match bench.open() {
        Err(_) => bench.note("refused at open"),
        Ok(()) => match bench.told_position()? {
            Ok(None) => return Err("a position of a newer format is told as nothing".into()),
            Ok(Some(_)) => return Err("a position of a newer format is told as another one".into()),
            Err(error) if error.class() == FailureClass::Permanent => {
                bench.note(format!("refused with {}", error.code()));
            }
            Err(error) => {
                return Err(format!("a newer format would be asked for for ever: {}", told(error)));
            }
        },
    }
    let stored = bench.stored()?;
    if stored.position.as_deref() != Some(NEWER) {
        return Err("a position of a newer format was overwritten".into());
    }
    bench.holds(&[FIRST])
}

/// Data and position come from one backup.
pub(crate) fn backup(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    bench.stored()?;
    bench.storage().copy_aside().map_err(|why| why.to_string())?;
    bench.start_process()?;
    bench.send(vec![Tx::new(2, &[SECOND])])?;
    bench.drain()?;
    bench.holds(&[FIRST, SECOND])?;
    bench.storage().put_back().map_err(|why| why.to_string())?;
    bench.holds(&[FIRST]).map_err(|why| kit(&format!("the backup is another one: {why}")))?;
    bench.open()?;
    let have = bench.position()?.map(|position| without_creations(position.gtid_set()).to_string());
    let have = have.unwrap_or_default();
    if have != format!("{SOURCE}:1") {
        return Err(format!(
            "after the backup was restored the position says {have}, its data ends at {SOURCE}:1"
        ));
    }
    bench.start_process()?;
    bench.send(vec![Tx::new(2, &[SECOND])])?;
    bench.drain()?;
    bench.holds(&[FIRST, SECOND])
}

/// A batch goes on from a position, and there is none.
pub(crate) fn wiped(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.open()?;
    if bench.position()?.is_some() {
        return Err("a fresh target has a position".into());
    }
    let set = format!("{SOURCE}:1").parse().map_err(|_| kit("no set"))?;
    let believed = Position::new(set, "`shop`.*").claimed(7);
    refused(bench, &believed, FailureClass::Fenced)?;
    bench.holds(&[])
}

/// How often two write at once.
const ROUNDS: u64 = 40;

/// Two sinks are handed a batch each at the same moment, and both batches go on from what is stored.
pub(crate) fn at_once(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    let mut second = match bench.open_beside() {
        Err(_) => {
            bench.note("the second is refused at open");
            bench.send(vec![Tx::new(1, &[FIRST])])?;
            bench.drain()?;
            return bench.holds(&[FIRST]);
        }
        Ok(second) => second,
    };
    let mut steps = Vec::new();
    for round in 1..=ROUNDS {
        let before = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
        let key = i64::try_from(round * 2).unwrap_or(0);
        let rows = [insert("orders", key), insert("orders", key + 1)];
        let batches =
            [bench.batch_behind(&before, round, rows[0])?, bench.batch_behind(&before, round, rows[1])?];
        let [one, other] = bench.both_apply(&mut second, batches)?;
        let unknown = Some(FailureClass::Unknown);
        match (one, other) {
            (None, None) => {
                return Err(format!(
                    "round {round}: two batches that go on from the same position were both acknowledged"
                ));
            }
            (None, Some(_)) => steps.push(rows[0]),
            (Some(_), None) => steps.push(rows[1]),
            // An answer was lost.
            (one, other) if one == unknown && other != unknown => steps.push(rows[0]),
            (one, other) if one != unknown && other == unknown => steps.push(rows[1]),
            (one, other) => {
                return Err(format!(
                    "round {round}: of two batches none was acknowledged: {one:?}, {other:?}"
                ));
            }
        }
        let stored = bench.position()?.ok_or("nothing is stored")?;
        if !stored.gtid_set().contains(&format!("{SOURCE}:{round}").parse().map_err(|_| kit("no GTID"))?) {
            return Err(format!("round {round}: a batch was acknowledged, yet the position does not say so"));
        }
        *bench.delivery() = bench.delivery_from(Some(&stored));
    }
    bench.note("of two at once one was refused");
    drop(second);
    bench.holds(&steps)
}

/// A second sink over the same storage.
pub(crate) fn two_owners(bench: &mut Bench<'_>) -> Result<(), Broken> {
    bench.start_process()?;
    bench.send(vec![Tx::new(1, &[FIRST])])?;
    bench.drain()?;
    let old = bench.delivery().durable().cloned().ok_or_else(|| kit("nothing is durable"))?;
    let mut first = match bench.open_beside() {
        Err(_) => {
            bench.note("the second is refused at open");
            bench.send(vec![Tx::new(2, &[SECOND])])?;
            bench.drain()?;
            return bench.holds(&[FIRST, SECOND]);
        }
        Ok(first) => first,
    };
    bench.note("the second takes over");
    bench.claim()?;
    bench.swap_sink(&mut first);
    // It is not asked for the position first: what it remembers is what it goes by, or not.
    match beside(bench, &old, Tx::new(2, &[insert("orders", 99)]))? {
        Ok(()) => return Err("the first, of whom it was taken: a batch was acknowledged".into()),
        Err(error) if error.class() == FailureClass::Fenced => {}
        Err(error) => {
            return Err(format!(
                "the first, of whom it was taken, must be Fenced; it reports {}",
                told(error)
            ));
        }
    }
    bench.swap_sink(&mut first);
    drop(first);
    bench.send(vec![Tx::new(2, &[SECOND])])?;
    bench.drain()?;
    bench.holds(&[FIRST, SECOND])
}
