//! The initial copy: at every position the target holds exactly the rows with keys up to the last one delivered, and
//! behind the last one there was at the first cut, as they were at that position; each came once.

use std::collections::BTreeMap;

use capstan_core::deliver::{CopyState, KeyParts, Position};

use super::Failure;
use crate::copied::{History, NAMES, Target};

/// Looks at a target at the position that is stored with it.
pub fn check(history: &History, position: &Position, target: &Target) -> Result<(), Failure> {
    if let Some(wrong) = &target.wrong {
        return Err(Failure::new("copy", format!("a row came twice, or never before: {wrong}")));
    }
    for ((_, name), copy) in position.copies() {
        let Some(table) = NAMES.iter().position(|known| known == name) else { continue };
        let (last, end) = (copy.key.as_ref().and_then(key), copy.upto.as_ref().and_then(key));
        let covered = |row: i64| match copy.state {
            CopyState::Waiting => false,
            CopyState::Copying => last.is_some_and(|last| row <= last) || end.is_some_and(|end| row > end),
            CopyState::Done => true,
        };
        let part_of_whole = copy.state == CopyState::Copying && copy.key_columns == 0;
        if copy.state == CopyState::Waiting || part_of_whole {
            // What the target has of it is void, or will be if no more comes.
            continue;
        }
        let there = &target.tables[table];
        history.rows(table, position.gtid_set(), |rows| {
            let due = || rows.iter().filter(|(key, _)| covered(**key));
            if due().eq(there) {
                return Ok(());
            }
            let due: BTreeMap<_, _> = due().collect();
            let missing: Vec<_> = due.keys().filter(|key| !there.contains_key(key)).collect();
            let extra: Vec<_> = there.keys().filter(|key| !due.contains_key(key)).collect();
            let other: Vec<_> = due.iter().filter(|(k, row)| there.get(k).is_some_and(|r| r != **row)).collect();
            Err(Failure::new(
                "copy",
                format!(
                    "{name} ({last:?}, {end:?}): {missing:?} are missing, {extra:?} are not due, {other:?} differ"
                ),
            ))
        })?;
    }
    Ok(())
}

/// Whether all of it is there.
#[must_use]
pub fn is_done(position: Option<&Position>) -> bool {
    position.is_some_and(|position| position.copies().values().all(|copy| copy.state == CopyState::Done))
}

/// The key of these tables: a BIGINT.
#[must_use]
pub fn key(parts: &KeyParts) -> Option<i64> {
    let bytes: &[u8] = parts.0.first()?;
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}
