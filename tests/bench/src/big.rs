//! One transaction of 4.4 GB in a small process.
//!
//! A server writes it into a BLACKHOLE table, which keeps nothing but the binlog; a child process of its own
//! reads it over TCP into the fold, and says how much memory it had at most (`VmHWM`, proc(5)). Then the same
//! with `binlog_transaction_compression`, where one event holds all of it.

use std::{process::Command, time::Instant};

use capstan::{Ack, Batch, Limits, Position, Replica, Sink, SinkError, Source, Start, Unit, Until, Value};
use capstan_mysql::Server;

use crate::{Error, fold::Fold, memory};

const MIB: usize = 1 << 20;

/// Folds every value, and counts the rows it was taken back.
#[derive(Default)]
struct Folder {
    fold: Fold,
    bytes: u64,
    position: Option<Position>,
}

impl Sink for &mut Folder {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        while let Some(unit) = batch.next().await? {
            let Unit::Transaction(mut transaction) = unit else { continue };
            while let Some(mut rows) = transaction.rows().await? {
                while let Some(change) = rows.next()? {
                    for row in change.before.into_iter().chain(change.after) {
                        let fold = &mut self.fold;
                        let bytes = &mut self.bytes;
                        row.each(|_, value| match value {
                            Value::Int(n) => fold.word(n as u64),
                            Value::Blob(blob) => {
                                fold.bytes(blob);
                                *bytes += blob.len() as u64;
                            }
                            other => panic!("no {other:?} in this table"),
                        })?;
                        self.fold.image();
                    }
                }
            }
        }
        let ack = batch.finish()?;
        self.position = Some(ack.position().clone());
        Ok(ack)
    }
}

/// What the child does: reads `b.big` from the server at that port.
pub fn child(port: u16) -> Result<(), Error> {
    let source: Source = format!("mysql://root@127.0.0.1:{port}/?ssl-mode=disabled").parse()?;
    let limits = Limits { retained_max: 32 * MIB, ..Limits::default() };
    let replica = Replica::builder(source)
        .tables(["b.big"])
        .start(Start::Earliest)
        .until(Until::Now)
        .limits(limits)
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut folder = Folder::default();
    let began = Instant::now();
    runtime.block_on(replica.run(&mut folder))?;
    let took = began.elapsed().as_secs_f64();
    println!(
        "  {} rows, {:.2} GB of blobs in {took:.1} s; at most {:.1} MiB resident (bound: 64)",
        folder.fold.images,
        folder.bytes as f64 / 1e9,
        memory::peak_mib()
    );
    if memory::peak_mib() >= 64.0 {
        return Err("more memory than the bound".into());
    }
    Ok(())
}

/// Runs both, of `rows` blobs each.
pub fn run(rows: u64) -> Result<(), Error> {
    let rows = if rows < 2 { 4_400 } else { rows };
    let server = Server::builder()
        .options(["--max-allowed-packet=1G", "--max-binlog-size=1G", "--innodb-flush-log-at-trx-commit=0"])
        .start()?;
    // Compiled in, or a plugin of its own.
    let _ = server.sql("INSTALL PLUGIN blackhole SONAME 'ha_blackhole.so'");
    server.sql("CREATE DATABASE b; CREATE TABLE b.big (id INT, data LONGBLOB) ENGINE=BLACKHOLE")?;
    // Random bytes come by the kilobyte.
    let random = |kilobytes: usize| format!("CONCAT({})", vec!["RANDOM_BYTES(1024)"; kilobytes].join(","));
    let cases = [
        ("random blobs", false, random(1024)),
        ("compressed", true, format!("CONCAT({}, REPEAT('x', 860160))", random(184))),
    ];
    for (name, compressed, blob) in cases {
        server.sql("RESET BINARY LOGS AND GTIDS")?;
        let began = Instant::now();
        server.sql(&format!(
            "SET SESSION binlog_transaction_compression = {compressed};
             USE b;
             DROP PROCEDURE IF EXISTS fill;
             CREATE PROCEDURE fill(n INT) BEGIN
               START TRANSACTION;
               WHILE n > 0 DO INSERT INTO big VALUES (n, {blob}); SET n = n - 1; END WHILE;
               COMMIT;
             END;
             CALL fill({rows})"
        ))?;
        let mut bytes = 0;
        for file in server.binlogs()? {
            bytes += std::fs::metadata(file)?.len();
        }
        println!(
            "{name}: {rows} rows of 1 MB, {:.2} GB of binlog, written in {:.0} s",
            bytes as f64 / 1e9,
            began.elapsed().as_secs_f64()
        );
        let status = Command::new(std::env::current_exe()?)
            .args(["big-child", &server.port().to_string()])
            .status()?;
        if !status.success() {
            return Err(format!("the child failed: {status}").into());
        }
    }
    Ok(())
}
