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
