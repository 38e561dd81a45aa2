//! Capstan against its peers, as ratios measured in one run.
//!
//! `cargo run --release --manifest-path tests/bench/Cargo.toml -- live`: rows decoded per second from a real
//! MySQL over TCP into a counting sink, against `mysql_async`'s binlog stream over the same file.
//!
//! `… -- ledger`: changes per second from a real MySQL into the SQLite ledger, against bare prepared inserts of
//! the same rows in equal transactions.
//!
//! `… -- mirror`: the same into the SQLite mirror, against bare prepared statements of the same kind; and
//! deletes from a table without a key.
#![forbid(unsafe_code)]

mod ledger;
mod live;
mod memory;
mod mirror;
mod workload;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let scale: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    match what.as_str() {
        "live" => live::run(scale.max(1)),
        "ledger" => ledger::run(scale.max(1)),
        "mirror" => mirror::run(scale.max(1)),
        _ => {
            eprintln!("usage: capstan-bench live|ledger|mirror [SCALE]");
            std::process::exit(2);
        }
    }
}

/// The median of three or more.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
