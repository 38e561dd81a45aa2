//! A transaction that does not fit into memory.

use std::{fs, ops::Range, sync::LazyLock};

use crate::{
    bench::{Bench, Broken, Died, kit},
    source::{Step, Tx, insert},
};

/// Bytes of a note.
const NOTE: usize = 48 << 10;
/// Rows of the transaction, which make 48 MiB.
const ROWS: i64 = 1024;
/// What a sink's memory may grow by meanwhile, in KiB: a database's own caches among it.
const GROWTH_MAX: u64 = 16 << 10;

static TEXT: LazyLock<String> = LazyLock::new(|| "0123456789abcdef".repeat(NOTE / 16));

fn row(key: i64) -> Step {
    insert("orders", key).noted(&TEXT)
}

/// The sink reads 48 MiB in a process of its own, whose peak is looked at.
pub(crate) fn large(bench: &mut Bench<'_>) -> Result<(), Broken> {
    if bench.dies("large", 0, None)? == Died::Killed {
        return Err("its process died".into());
    }
    let megabytes = (ROWS.unsigned_abs() * (NOTE as u64)) >> 20;
    bench
        .note(format!("{megabytes} MiB handed over, peak memory grew by less than {} MiB", GROWTH_MAX >> 10));
    bench.holds(&(0..ROWS).map(row).collect::<Vec<_>>())
}

/// Its process: some rows first, so that what the sink needs in any case is there.
pub(crate) fn reads_large(bench: &mut Bench<'_>, _: u64) -> Result<(), Broken> {
    bench.start_process()?;
    let few = 16;
    reads(bench, 1, 0..few)?;
    let before = peak()?;
    reads(bench, 2, few..ROWS)?;
    let grown = peak()?.saturating_sub(before);
    if grown > GROWTH_MAX {
        return Err(format!("its peak memory grew by {} MiB: it holds back what it has read", grown >> 10));
    }
    Ok(())
}

fn reads(bench: &mut Bench<'_>, gno: u64, keys: Range<i64>) -> Result<(), Broken> {
    let mut out = bench.stream_rows(Tx::new(gno, &[row(keys.start)]), keys.start + 1..keys.end, row)?;
    let answer = bench.answer(&mut out)?;
    bench.settle(out, answer)
}

/// The most that this process has had resident, in KiB (proc(5), `VmHWM`).
fn peak() -> Result<u64, Broken> {
    let status = fs::read_to_string("/proc/self/status").map_err(|why| kit(&format!("/proc: {why}")))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number =
        line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| kit("/proc/self/status has no VmHWM"))
}
