//! Tables that are captured no longer: a mirror that went on showing them would be wrong in silence.

use capstan_core::{
    capture::CapturedSet,
    deliver::{Position, SinkError},
    halt::Code,
};
use rusqlite::Connection;

use super::{
    catalogue::{Catalogue, Entry, free_name},
    table,
};

/// What a forgotten table's name ends with.
const SUFFIX: &str = "~forgotten";

/// Takes the tables that a decision leaves out of the captured set out of the catalogue. Their rows stay as they
/// were, under a name that says so; should the table be captured again, its earlier rows are not taken for its
/// history.
pub(super) fn leave(
    connection: &Connection,
    before: Option<&Position>,
    after: &Position,
) -> Result<(), SinkError> {
    let Some(before) = before.filter(|before| before.captured() != after.captured()) else { return Ok(()) };
    let (before, after) = (read(before)?, read(after)?);
    let mut catalogue = Catalogue::load(connection)?;
    for entry in catalogue.all() {
        let captured = |set: &CapturedSet| set.captures(&entry.schema, &entry.table);
        // It was captured, so the source's names compare as they do where that is so.
        let stays = if captured(&before) {
            captured(&after)
        } else {
            captured(&after.clone().with_lower_case_table_names(1))
        };
        if !stays {
            forget(connection, &mut catalogue, &entry)?;
        }
    }
    Ok(())
}

fn read(position: &Position) -> Result<CapturedSet, SinkError> {
    CapturedSet::parse_canonical(position.captured())
        .map_err(|_| SinkError::halt(Code::PositionReadFailed, "captured set"))
}

fn forget(connection: &Connection, catalogue: &mut Catalogue, entry: &Entry) -> Result<(), SinkError> {
    if entry.made {
        // The number of its entry, and with it the name of this index, may be another table's next.
        table::unindex_hashes(connection, entry)?;
        let name = free_name(connection, &entry.schema, &format!("{}{SUFFIX}", entry.table))?;
        table::rename(connection, &entry.name, &name)?;
    }
    catalogue.remove(connection, entry)
}
