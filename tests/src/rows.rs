//! The rows in a server's binlog files, read by the core.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use capstan_core::binlog::rows::{ChangeRow, RowScratch, RowsEvent, RowsHead, RowsKind};
use capstan_core::binlog::table_map::TableMaps;
use capstan_core::binlog::{EventType, FileReader};

/// Calls `visit` with each change in the binlog file at `path`, in order.
pub fn each_change(path: &Path, mut visit: impl FnMut(ChangeRow<'_>)) -> Result<(), Box<dyn Error>> {
    let mut reader = FileReader::new(1 << 30);
    reader.feed(&fs::read(path)?);
    let mut maps = TableMaps::new();
    let mut scratch = RowScratch::new();
    while let Some((_, event)) = reader.next_event()? {
        if event.header.event_type == EventType::TableMap {
            maps.open(&event.body)?;
            continue;
        }
        let type_code = event.header.event_type.code();
        if RowsKind::of(type_code).is_none() {
            continue;
        }
        let head = RowsHead::parse(type_code, &event.body)?;
        let table = Arc::clone(maps.get(head.table_id).ok_or("rows without a table map")?);
        let event = RowsEvent::new(head, table, event.body)?;
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next()? {
            visit(change);
        }
        if head.ends_statement() {
            maps.close_all();
        }
    }
    Ok(())
}
