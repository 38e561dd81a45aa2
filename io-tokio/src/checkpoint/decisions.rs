//! Decisions beside a file: one JSON object to a line, only ever appended.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
};

use capstan_core::deliver::{Position, SinkError};

use super::lock::beside;
use crate::{
    decision::{Decision, decided_at},
    io_failure::writing,
};

/// Where decisions about `path` are recorded.
pub(crate) fn decisions_path(path: &Path) -> PathBuf {
    beside(path, ".decisions")
}

/// Appends one, durably, before the position is moved: a decision that took no effect is seen there, one
/// that took effect is never missing.
pub(crate) fn record(
    path: &Path,
    decision: &Decision,
    before: Option<&Position>,
    after: &Position,
) -> Result<(), SinkError> {
    let gtids = |position: &Position| position.gtid_set().to_string();
    let mut line = serde_json::json!({
        "decided_at": decided_at(),
        "kind": decision.kind,
        "subject": decision.subject,
        "reason": decision.reason,
        "gtid_set_before": before.map(gtids),
        "gtid_set_after": gtids(after),
    })
    .to_string();
    line.push('\n');
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(decisions_path(path))
        .and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_all()))
        .map_err(|error| writing("decision", error))
}
