//! Changes per second into the SQLite ledger, against bare prepared inserts.

use std::{path::Path, time::Instant};

use capstan::{
    Replica, Source, Start, Until,
    sqlite::{Ledger, LedgerOptions, Synchronous},
};
use capstan_mysql::Server;
use rusqlite::{Connection, params};

use crate::{Error, median, workload};

type Row =
    (Option<String>, Option<String>, String, Option<String>, Option<String>, Option<String>, Option<String>);

async fn ours(server: &Server, path: &Path, synchronous: Synchronous) -> Result<f64, Error> {
    let source: Source = format!("mysql://root@127.0.0.1:{}/?ssl-mode=disabled", server.port()).parse()?;
    let replica =
        Replica::builder(source).tables(["b.t"]).start(Start::Earliest).until(Until::Now).build()?;
    let mut options = LedgerOptions::default();
    options.synchronous = synchronous;
    let ledger = Ledger::open(path, options)?;
    let began = Instant::now();
    replica.run_blocking(ledger).await?;
    Ok(began.elapsed().as_secs_f64())
}

fn rows(path: &Path) -> Result<Vec<Vec<Row>>, Error> {
    let database = Connection::open(path)?;
    let mut statement = database.prepare(
        "SELECT gtid, committed_at, op, \"schema\", \"table\", before, after FROM capstan_ledger ORDER BY seq",
    )?;
    let mut transactions: Vec<Vec<Row>> = Vec::new();
    let mut last = None;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let row: Row =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
        if last != row.0 {
            last.clone_from(&row.0);
            transactions.push(Vec::new());
        }
        if let Some(transaction) = transactions.last_mut() {
            transaction.push(row);
        }
    }
    Ok(transactions)
}

fn bare(path: &Path, transactions: &[Vec<Row>], synchronous: &str) -> Result<f64, Error> {
    let database = Connection::open(path)?;
    database.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; \
         CREATE TABLE capstan_ledger (seq INTEGER PRIMARY KEY, gtid TEXT, committed_at TEXT, op TEXT, \
         \"schema\" TEXT, \"table\" TEXT, before TEXT, after TEXT)"
    ))?;
    let began = Instant::now();
    for rows in transactions {
        database.execute_batch("BEGIN IMMEDIATE")?;
        {
            let mut insert = database.prepare_cached(
                "INSERT INTO capstan_ledger (gtid, committed_at, op, \"schema\", \"table\", before, after) \
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
            )?;
            for row in rows {
                insert.execute(params![row.0, row.1, row.2, row.3, row.4, row.5, row.6])?;
            }
        }
        database.execute_batch("COMMIT")?;
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Runs the comparison.
pub fn run(scale: u64) -> Result<(), Error> {
    let server = Server::builder().start()?;
    let transactions = 10_000 * scale;
    println!("writing {transactions} transactions of ten rows …");
    workload::small(&server, transactions)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for (synchronous, name) in [(Synchronous::Full, "FULL"), (Synchronous::Off, "OFF")] {
        let mut ratios = Vec::new();
        for round in 0..3 {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("ledger.db");
            let took = runtime.block_on(ours(&server, &path, synchronous))?;
            let all = rows(&path)?;
            let count: usize = all.iter().map(Vec::len).sum();
            let bare = bare(&folder.path().join("bare.db"), &all, name)?;
            println!(
                "synchronous {name}, round {round}: capstan {:>8.0} changes/s · bare inserts {:>8.0} changes/s · ratio {:.2}",
                count as f64 / took,
                count as f64 / bare,
                bare / took
            );
            ratios.push(bare / took);
        }
        println!("synchronous {name}: median ratio {:.2} (aim: at least 0.5)", median(ratios));
    }
    Ok(())
}
