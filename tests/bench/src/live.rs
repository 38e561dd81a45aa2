//! Rows decoded per second from MySQL over TCP.

use std::{hint::black_box, time::Instant};

use capstan::{Ack, Batch, Position, Replica, Sink, SinkError, Source, Start, Unit, Until};
use capstan_mysql::Server;
use futures_util::StreamExt as _;
use mysql_async::{BinlogStreamRequest, Conn, OptsBuilder, binlog::events::EventData};

use crate::{Error, median, memory, workload};

/// Visits every value and counts rows.
#[derive(Default)]
struct Counter {
    rows: u64,
    position: Option<Position>,
}

impl Sink for &mut Counter {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        while let Some(unit) = batch.next().await? {
            if let Unit::Transaction(mut transaction) = unit {
                while let Some(mut rows) = transaction.rows().await? {
                    while let Some(change) = rows.next()? {
                        for row in change.before.into_iter().chain(change.after) {
                            row.each(|_, value| {
                                black_box(value);
                            })?;
                        }
                        self.rows += 1;
                    }
                }
            }
        }
        let ack = batch.finish()?;
        self.position = Some(ack.position().clone());
        Ok(ack)
    }
}

async fn ours(server: &Server) -> Result<(u64, f64), Error> {
    let source: Source = format!("mysql://root@127.0.0.1:{}/?ssl-mode=disabled", server.port()).parse()?;
    let replica = Replica::builder(source).start(Start::Earliest).until(Until::Now).build()?;
    let mut counter = Counter::default();
    let began = Instant::now();
    replica.run(&mut counter).await?;
    Ok((counter.rows, began.elapsed().as_secs_f64()))
}

/// Its stream has no end, so it is told how many rows there are.
async fn peer(server: &Server, all: u64) -> Result<(u64, f64), Error> {
    let options = OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(server.port())
        .user(Some("root"))
        .prefer_socket(false);
    let conn = Conn::new(options).await?;
    let began = Instant::now();
    let first = server.binlogs()?.into_iter().next().ok_or("no binlog")?;
    let name = first.file_name().ok_or("no name")?.as_encoded_bytes().to_vec();
    let request = BinlogStreamRequest::new(4242).with_filename(&name).with_pos(4);
    let mut stream = conn.get_binlog_stream(request).await?;
    let mut rows = 0;
    while rows < all {
        let Some(event) = stream.next().await else { break };
        let event = event?;
        if let Some(EventData::RowsEvent(data)) = event.read_data()? {
            let table = stream.get_tme(data.table_id()).ok_or("no table map")?;
            for row in data.rows(table) {
                let (before, after) = row?;
                for row in before.into_iter().chain(after) {
                    for column in 0..row.len() {
                        black_box(row.as_ref(column));
                    }
                }
                rows += 1;
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    Ok((rows, took))
}

/// Runs the comparison.
pub fn run(scale: u64) -> Result<(), Error> {
    let server = Server::builder().start()?;
    println!("writing {} rows of 8 columns …", 500_000 * scale + 10_000);
    workload::wide(&server, 50 * scale, 10_000)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut ratios, mut peaks) = (Vec::new(), Vec::new());
    for round in 0..5 {
        memory::forget_peak();
        let (rows, took) = runtime.block_on(ours(&server))?;
        peaks.push(memory::peak_mib());
        let (their_rows, their_took) = runtime.block_on(peer(&server, rows))?;
        if rows != their_rows {
            return Err(format!("we saw {rows} rows, the peer {their_rows}").into());
        }
        let (ours, theirs) = (rows as f64 / took, their_rows as f64 / their_took);
        println!(
            "round {round}: capstan {ours:>10.0} rows/s · mysql_async {theirs:>10.0} rows/s · ratio {:.2} · peak {:.0} MiB",
            ours / theirs,
            peaks.last().copied().unwrap_or_default()
        );
        ratios.push(ours / theirs);
    }
    println!("median ratio {:.2} (aim: at least 6)", median(ratios));
    Ok(())
}
