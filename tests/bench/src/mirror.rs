//! Changes per second into the SQLite mirror, against bare prepared statements of the same kind in equal
//! transactions; and deletes per second from a table without a key.

use std::{path::Path, time::Instant};

use capstan::{
    Replica, Source, Start, Until,
    sqlite::{Mirror, MirrorOptions, Synchronous},
};
use capstan_mysql::Server;
use rusqlite::{Connection, params};

use crate::{Error, median, workload};

/// Rows of one transaction.
const ROWS: u64 = 10;

async fn ours(server: &Server, path: &Path, synchronous: Synchronous) -> Result<f64, Error> {
    let source: Source = format!("mysql://root@127.0.0.1:{}/?ssl-mode=disabled", server.port()).parse()?;
    let start = if path.exists() { Start::Stored } else { Start::Earliest };
    let replica = Replica::builder(source).tables(["b.*"]).start(start).until(Until::Now).build()?;
    let mut options = MirrorOptions::default();
    options.synchronous = synchronous;
    let mirror = Mirror::open(path, options)?;
    let began = Instant::now();
    replica.run_blocking(mirror).await?;
    Ok(began.elapsed().as_secs_f64())
}

type Row = (i64, String, String, String, String);

fn rows(path: &Path) -> Result<Vec<Row>, Error> {
    let database = Connection::open(path)?;
    let mut statement = database.prepare("SELECT id, name, total, at, note FROM \"b.t\" ORDER BY id")?;
    let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The same changes by hand: seconds of the inserts, the updates, the deletes.
fn bare(path: &Path, rows: &[Row], synchronous: &str) -> Result<[f64; 3], Error> {
    let database = Connection::open(path)?;
    database.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
         CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, total, at, note TEXT)"
    ))?;
    let mut took = [0.0; 3];
    // As at the source: SQLite writes nothing where a row becomes what it was.
    let changed: Vec<Row> =
        rows.iter().cloned().map(|(id, name, total, at, note)| (id, name + "!", total, at, note)).collect();
    let sql = [
        "INSERT INTO t (name, total, at, note, id) VALUES (?, ?, ?, ?, ?)",
        "UPDATE t SET name = ?, total = ?, at = ?, note = ? WHERE id = ?",
        "DELETE FROM t WHERE id = ?",
    ];
    for (phase, sql) in sql.into_iter().enumerate() {
        let began = Instant::now();
        let rows = if phase == 1 { changed.as_slice() } else { rows };
        for chunk in rows.chunks(ROWS as usize) {
            database.execute_batch("BEGIN IMMEDIATE")?;
            {
                let mut statement = database.prepare_cached(sql)?;
                for (id, name, total, at, note) in chunk {
                    if phase == 2 {
                        statement.execute([id])?;
                    } else {
                        statement.execute(params![name, total, at, note, id])?;
                    }
                }
            }
            database.execute_batch("COMMIT")?;
        }
        if let Some(slot) = took.get_mut(phase) {
            *slot = began.elapsed().as_secs_f64();
        }
    }
    Ok(took)
}

/// One transaction for each ten rows.
fn each(transactions: u64, statement: impl Fn(u64, u64) -> String) -> String {
    (0..transactions).map(|k| statement(k * ROWS, (k + 1) * ROWS) + ";\n").collect()
}

/// Runs the comparison.
pub fn run(scale: u64) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // With FULL it is the disk that is measured: fewer will do.
    for (synchronous, name, transactions) in
        [(Synchronous::Off, "OFF", 10_000 * scale), (Synchronous::Full, "FULL", 1_000 * scale)]
    {
        let mut ratios = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..3 {
            let server = Server::builder().start()?;
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("mirror.db");
            workload::small(&server, transactions)?;
            let mut took = [runtime.block_on(ours(&server, &path, synchronous))?, 0.0, 0.0];
            let all = rows(&path)?;
            let statements = [
                each(transactions, |from, to| {
                    format!("UPDATE b.t SET name = CONCAT(name, '!') WHERE id >= {from} AND id < {to}")
                }),
                each(transactions, |from, to| format!("DELETE FROM b.t WHERE id >= {from} AND id < {to}")),
            ];
            for (script, slot) in statements.iter().zip(took.iter_mut().skip(1)) {
                server.sql(script)?;
                *slot = runtime.block_on(ours(&server, &path, synchronous))?;
            }
            let bare = bare(&folder.path().join("bare.db"), &all, name)?;
            let phases = ["inserts", "updates", "deletes"];
            for (((phase, ours), bare), ratios) in phases.iter().zip(took).zip(bare).zip(&mut ratios) {
                println!(
                    "synchronous {name}, {phase}: capstan {:>8.0}/s · bare {:>8.0}/s · ratio {:.2}",
                    all.len() as f64 / ours,
                    all.len() as f64 / bare,
                    bare / ours
                );
                ratios.push(bare / ours);
            }
        }
        for (phase, ratios) in ["inserts", "updates", "deletes"].iter().zip(ratios) {
            println!("synchronous {name}, {phase}: median ratio {:.2} (aim: at least 0.5)", median(ratios));
        }
    }
    keyless(1_000_000 * scale, &runtime)
}

/// How long a start takes with ten thousand tables, and what a row of one of many costs against a row of one.
pub fn many(tables: u64) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Server::builder().option("--table-open-cache=20000").start()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mirror.db");
    let all =
        |statement: &dyn Fn(u64) -> String| (0..tables).map(|n| statement(n) + ";\n").collect::<String>();
    server.sql("CREATE DATABASE b")?;
    server.sql(&all(&|n| format!("CREATE TABLE b.t{n} (id INT PRIMARY KEY, a INT, c VARCHAR(20))")))?;
    let created = runtime.block_on(ours(&server, &path, Synchronous::Off))?;
    let mut took = Vec::new();
    for of_one in [false, true] {
        let table = |n: u64| if of_one { 0 } else { n };
        for _ in 0..3 {
            // Ten rows to a transaction, as elsewhere.
            let script = all(&|n| {
                let row = format!("REPLACE INTO b.t{} VALUES ({n}, {n}, 'a row')", table(n));
                if n % ROWS == 0 { format!("COMMIT; BEGIN; {row}") } else { row }
            });
            server.sql(&(script + "COMMIT"))?;
            took.push(runtime.block_on(ours(&server, &path, Synchronous::Off))?);
        }
    }
    let mut starts = Vec::new();
    for _ in 0..3 {
        starts.push(runtime.block_on(ours(&server, &path, Synchronous::Off))?);
    }
    let (of_many, of_one) = took.split_at(3);
    println!(
        "{tables} tables: created {:.0}/s · start {:.2} s (aim: under 2) · a row each {:.0}/s (first time {:.0}/s), as many of one table {:.0}/s",
        tables as f64 / created,
        median(starts),
        tables as f64 / median(of_many.to_vec()),
        tables as f64 / of_many.first().copied().unwrap_or(f64::NAN),
        tables as f64 / median(of_one.to_vec()),
    );
    Ok(())
}

/// All rows of a table without a key, deleted by one statement.
fn keyless(count: u64, runtime: &tokio::runtime::Runtime) -> Result<(), Error> {
    let server = Server::builder().start()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("mirror.db");
    server.sql(&format!(
        "CREATE DATABASE b; CREATE TABLE b.k (a INT, b VARCHAR(40), c DOUBLE);
         SET SESSION cte_max_recursion_depth = {count};
         INSERT INTO b.k WITH RECURSIVE s AS (SELECT 1 n UNION ALL SELECT n + 1 FROM s WHERE n < {count})
             SELECT n, CONCAT('row number ', n), n / 7 FROM s"
    ))?;
    let inserted = runtime.block_on(ours(&server, &path, Synchronous::Full))?;
    server.sql("DELETE FROM b.k")?;
    let deleted = runtime.block_on(ours(&server, &path, Synchronous::Full))?;
    println!(
        "no key, {count} rows: inserts {:.0}/s · deletes {:.0}/s (aim: at least 20000)",
        count as f64 / inserted,
        count as f64 / deleted
    );
    Ok(())
}
