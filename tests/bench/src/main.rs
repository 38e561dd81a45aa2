//! Capstan against its peers, as ratios measured in one run: `cargo run --release -- COMMAND [SCALE]` in this
//! folder.
//!
//! | command | measures |
//! |---|---|
//! | `offline` | a binlog file of 500 MB, every value folded: against `mysql_cdc`, `mysql_common`, and reading alone |
//! | `live` | the same over TCP from a real MySQL: against `mysql_async`'s rows, and its mere framing |
//! | `jsonl` | the same file as JSON lines |
//! | `big` | a transaction of 4.4 GB, plain and compressed: the memory it takes |
//! | `costs` | cost against columns, tables and the size of the GTID set |
//! | `ledger` | changes per second into the SQLite ledger: against bare prepared inserts |
//! | `snapshot` | the initial copy: against `mysqldump` and bare prepared inserts; its memory, and what its locks cost |
//! | `mirror` | the same into the SQLite mirror, against bare prepared statements; and deletes without a key |
//! | `tables` | a mirror of ten thousand tables: how long a start takes, and a row of each against as many of one |
#![forbid(unsafe_code)]

mod big;
mod costs;
mod file;
mod fold;
mod jsonl;
mod ledger;
mod live;
mod memory;
mod mirror;
mod offline;
mod snapshot;
mod workload;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let scale: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1).max(1);
    match what.as_str() {
        "live" => live::run(scale),
        "offline" => offline::run(scale),
        "offline-profile" => offline::profile(scale),
        "big" => big::run(scale),
        "big-child" => big::child(u16::try_from(scale)?),
        "costs" => costs::run(),
        "jsonl" => jsonl::run(scale),
        "ledger" => ledger::run(scale),
        "mirror" => mirror::run(scale),
        "tables" => mirror::many(10_000 * scale),
        "snapshot" => snapshot::run(scale),
        _ => {
            eprintln!("usage: capstan-bench offline|live|jsonl|big|costs|ledger|mirror|tables|snapshot [SCALE]");
            std::process::exit(2);
        }
    }
}

/// The median of three or more.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
