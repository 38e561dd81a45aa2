//! A small file that is replaced as a whole.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
};

use super::lock::beside;
use crate::fault::fault_point;

/// Writes beside, syncs, renames over, syncs the folder: after a crash at any point there is the old
/// content or the new one, whole. Without `sync` that holds for a crash of the process only.
pub(crate) fn replace(path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let fresh = beside(path, ".new");
    let mut file = File::create(&fresh)?;
    file.write_all(content)?;
    if sync {
        file.sync_all()?;
    }
    drop(file);
    fault_point!("checkpoint_before_rename");
    std::fs::rename(&fresh, path)?;
    if !sync {
        return Ok(());
    }
    // Without this the rename itself may be lost with the power.
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    File::open(folder)?.sync_all()
}
