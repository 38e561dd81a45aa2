//! `capstan status`: what the process that keeps a target said last.

use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use indicatif::{HumanBytes, HumanDuration};
use serde_json::{Value, json};

use crate::{
    args::{Output, Status},
    failure::Failure,
    shown::{self, of_about},
    target::Target,
};

/// Older than this, the process is not writing any more.
const STALE_MS: u64 = 5_000;

/// Runs the command.
pub fn run(args: &Status) -> Result<u8, Failure> {
    let target = Target::parse(&args.target)?;
    let path = target.status_path();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::other(
            format!("{}: {error}. No process of this version has kept this target yet.", path.display()),
            3,
        )
    })?;
    let mut value: Value = serde_json::from_str(&text).map_err(|_| {
        Failure::other(format!("{} is damaged; the next second replaces it", path.display()), 3)
    })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let written = value.get("written_unix_ms").and_then(Value::as_u64).unwrap_or(0);
    let age_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(written);
    let pid = value.get("pid").and_then(Value::as_u64).unwrap_or(0);
    let alive = Path::new(&format!("/proc/{pid}")).exists();
    if let Some(object) = value.as_object_mut() {
        object.insert("age_ms".to_owned(), json!(age_ms));
        object.insert("running".to_owned(), json!(alive));
        object.insert("stale".to_owned(), json!(age_ms > STALE_MS));
    }
    if args.output == Output::Json {
        say!("{value}");
        return Ok(0);
    }
    let field = |name: &str| match value.get(name) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let process = if alive { "running" } else { "no longer running" };
    say!("process        {pid}, {process}; said {:.1} s ago", age_ms as f64 / 1000.0);
    for (label, name) in [
        ("state", "state"),
        ("epoch", "epoch"),
        ("GTID set", "gtid_set"),
        ("lag (ms)", "lag_ms"),
        ("transactions", "transactions"),
        ("rows", "rows"),
        ("batches", "batches"),
        ("reconnects", "reconnects"),
        ("retained bytes", "retained_bytes"),
        ("behind source", "behind_executed"),
        ("until purged", "ahead_of_purged"),
        ("trouble", "trouble"),
    ] {
        say!("{label:<14} {}", field(name));
    }
    for copy in value.get("copies").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| copy.get(name).and_then(Value::as_str).unwrap_or("-");
        let number = |name: &str| copy.get(name).and_then(Value::as_u64);
        let rows = of_about(number("rows").unwrap_or(0), number("estimated_rows"));
        let bytes = HumanBytes(number("bytes").unwrap_or(0));
        let name = shown::name(&format!("{}.{}", field("schema"), field("table")));
        say!("{:<14} {name}: {}, {rows} rows, {bytes}", "copy", field("state"));
    }
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    if let Some(rate) = number("copy_rows_per_second") {
        let left = number("copy_left_s")
            .map_or_else(String::new, |s| format!(", about {} left", HumanDuration(Duration::from_secs(s))));
        say!("{:<14} {rate} rows/s{left}", "copying");
    }
    if let Some(reading) = number("copy_connections") {
        say!("{:<14} {reading} connections", "copy reads by");
    }
    if let Some(why) = value.get("copy_waits").and_then(Value::as_str) {
        say!("{:<14} {why}", "copy waits for");
    }
    Ok(0)
}
