//! The syncing process that the live tests kill:
//!
//! ```text
//! sync_child SOURCE ledger:PATH|mirror:PATH|jsonl:PATH|lines:PATH|checked:PATH [option=value]…
//! ```
//!
//! `lines` appends to `PATH` with a position in `PATH.checkpoint` (a file), `checked` with one in a database.
//! It begins at the source's earliest transaction where nothing is stored, or with `snapshot=ROWS` with a copy in chunks
//! of so many rows; `chunk=ROWS` is the size alone, `connections=N` how many read (2), `copy_again=TABLES` copies once more. At its end it prints its status as one
//! line of JSON; a halt's code goes to stderr.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::ExitCode;
use std::time::Duration;

use capstan::checkpoint::FileCheckpoint;
use capstan::jsonl::{JsonFile, JsonLines, JsonOptions};
use capstan::sqlite::{Ledger, LedgerOptions, Mirror, MirrorOptions, SqliteCheckpoint, Synchronous};
use capstan::{
    BatchLimits, BlockingSink, Builder, CopyLimits, Halt, Replica, Source, Start, Stopped, Stored, Until,
};
use capstan_tests::harness::Slow;
use capstan_tests::workload::quick_limits;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, options @ ..] = arguments.as_slice() else {
        panic!("usage: sync_child SOURCE KIND:PATH [option=value]…");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(run(source, target, options)) {
        Ok(status) => {
            println!("{status}");
            ExitCode::SUCCESS
        }
        Err(halt) => {
            eprintln!("{}: {halt}", halt.code);
            ExitCode::from(halt.code.class().exit_status())
        }
    }
}

async fn run(source: &str, target: &str, options: &[String]) -> Result<String, Halt> {
    let (kind, path) = target.split_once(':').expect("KIND:PATH");
    let mut builder =
        Replica::builder(source.parse::<Source>()?).identity(target).tables(["d.*"]).limits(quick_limits());
    let mut limits = quick_limits();
    let mut batch = BatchLimits::default();
    let mut slow = Duration::ZERO;
    let mut earliest = true;
    let mut copy = CopyLimits { connections: Some(2), ..CopyLimits::default() };
    for option in options {
        let (name, value) = option.split_once('=').expect("option=value");
        let number = || value.parse::<u64>().expect("a number");
        let millis = || Duration::from_millis(number());
        match name {
            "until" => builder = builder.until(Until::Now),
            "tables" => builder = builder.tables(value.split(',')),
            "identity" => builder = builder.identity(value),
            "snapshot" => {
                earliest = false;
                copy.chunk_rows = number();
                builder = builder.snapshot(Vec::<String>::new());
            }
            "chunk" => copy.chunk_rows = number(),
            // None says how many: what nobody has said.
            "connections" => copy.connections = value.parse().ok(),
            "copy_again" => builder = builder.copy_again(value.split(',')),
            "slow_ms" => slow = millis(),
            "batch" => batch.max_transactions = usize::try_from(number()).expect("a size"),
            "retained_max" => limits.retained_max = usize::try_from(number()).expect("a size"),
            "stream_above" => limits.stream_above = usize::try_from(number()).expect("a size"),
            "silence_ms" => limits.silence = millis(),
            "heartbeat_ms" => limits.heartbeat = millis(),
            _ => panic!("unknown option {name}"),
        }
    }
    builder = builder.limits(limits).batch(batch).copy(copy);
    let json = || {
        let mut options = JsonOptions::default();
        options.sync = false;
        options
    };
    let append = || {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        JsonLines::new(file.expect("an output file"), json())
    };
    match kind {
        "ledger" => {
            let mut options = LedgerOptions::default();
            options.synchronous = Synchronous::Normal;
            let sink = Ledger::open(path, options)?;
            go(builder, Slow { sink, slow }, earliest).await
        }
        "mirror" => {
            let mut options = MirrorOptions::default();
            options.synchronous = Synchronous::Normal;
            let sink = Mirror::open(path, options)?;
            go(builder, Slow { sink, slow }, earliest).await
        }
        "jsonl" => go(builder, Slow { sink: JsonFile::open(path, json())?, slow }, earliest).await,
        "lines" => {
            let mut store = FileCheckpoint::open(format!("{path}.checkpoint"))?;
            let builder = begin(builder, &mut store)?;
            finish(builder.blocking_checkpoint(store), append()).await
        }
        "checked" => {
            let mut store = SqliteCheckpoint::open(format!("{path}.checkpoint"))?;
            let builder = begin(builder, &mut store)?;
            finish(builder.blocking_checkpoint(store), append()).await
        }
        _ => panic!("unknown kind {kind}"),
    }
}

/// Begins at the earliest transaction where nothing is stored.
fn begin(builder: Builder, stored: &mut impl Stored) -> Result<Builder, Halt> {
    let fresh = stored.stored().map_err(|error| Halt::from(&error))?.is_none();
    Ok(if fresh { builder.start(Start::Earliest) } else { builder })
}

async fn go<S: BlockingSink + Stored + 'static>(
    builder: Builder,
    mut sink: Slow<S>,
    earliest: bool,
) -> Result<String, Halt> {
    let builder = if earliest { begin(builder, &mut sink.sink)? } else { builder };
    finish(builder, sink).await
}

async fn finish(builder: Builder, sink: impl BlockingSink + 'static) -> Result<String, Halt> {
    let replica = builder.build()?;
    let handle = replica.handle();
    let Stopped { .. } = replica.run_blocking(sink).await?;
    let status = serde_json::to_value(handle.status()).expect("a status");
    Ok(serde_json::json!({ "status": status, "memory_peak_kb": memory_peak_kb() }).to_string())
}

/// The most memory this process has held, as the system counts it (`VmHWM`).
fn memory_peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the system's account of this process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of kB")
}
