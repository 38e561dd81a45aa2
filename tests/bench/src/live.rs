//! Every value of every row folded, from a real MySQL over TCP.

use std::time::Instant;

use capstan::{Ack, Batch, Position, Replica, Sink, SinkError, Source, Start, Unit, Until};
use capstan_mysql::Server;
use futures_util::StreamExt as _;
use mysql_async::{
    BinlogStreamRequest, Conn, OptsBuilder, Value,
    binlog::{events::EventData, row::BinlogRow, value::BinlogValue},
};

use crate::{
    Error,
    fold::{Fold, digits_of_text, micros},
    median, memory,
    workload,
};

/// Folds every value.
#[derive(Default)]
struct Folder {
    fold: Fold,
    position: Option<Position>,
}

impl Sink for &mut Folder {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        while let Some(unit) = batch.next().await? {
            if let Unit::Transaction(mut transaction) = unit {
                while let Some(rows) = transaction.rows().await? {
                    let mut of_rows = self.fold;
                    rows.visit(&mut of_rows)?;
                    self.fold = of_rows;
                }
            }
        }
        let ack = batch.finish()?;
        self.position = Some(ack.position().clone());
        Ok(ack)
    }
}

async fn ours(server: &Server) -> Result<(Fold, f64), Error> {
    let source: Source = format!("mysql://root@127.0.0.1:{}/?ssl-mode=disabled", server.port()).parse()?;
    let replica =
        Replica::builder(source).tables(["b.t"]).start(Start::Earliest).until(Until::Now).build()?;
    let mut folder = Folder::default();
    let began = Instant::now();
    replica.run(&mut folder).await?;
    Ok((folder.fold, began.elapsed().as_secs_f64()))
}

/// In column 5 lies the decimal, which it gives as text as it does strings.
fn fold_peer(fold: &mut Fold, row: &BinlogRow) {
    for column in 0..row.len() {
        let Some(BinlogValue::Value(value)) = row.as_ref(column) else {
            panic!("no such value in this table")
        };
        match value {
            Value::NULL => fold.null(),
            Value::Int(n) => fold.word(*n as u64),
            Value::UInt(n) => fold.word(*n),
            Value::Double(x) => fold.word(x.to_bits()),
            Value::Bytes(text) if column == 5 => fold.digits(digits_of_text(text)),
            Value::Bytes(bytes) => fold.bytes(bytes),
            Value::Date(y, m, d, h, min, s, us) => fold.word(micros(*y, *m, *d, *h, *min, *s, *us)),
            other => panic!("no {other:?} in this table"),
        }
    }
    fold.image();
}

/// The peer's stream has no end of its own, so it is told how many row events there are; `rows`: decodes and
/// folds them, else it only takes the events off the wire.
async fn peer(server: &Server, rows: bool, all: u64) -> Result<(Fold, u64, f64), Error> {
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
    let (mut fold, mut events) = (Fold::default(), 0);
    while events < all {
        let Some(event) = stream.next().await else { break };
        let event = event?;
        // WRITE_ROWS_EVENT.
        if event.header().event_type_raw() != 30 {
            continue;
        }
        events += 1;
        if !rows {
            continue;
        }
        if let Some(EventData::RowsEvent(data)) = event.read_data()? {
            let table = stream.get_tme(data.table_id()).ok_or("no table map")?;
            if table.table_name() == "n" {
                continue;
            }
            for row in data.rows(table) {
                let (before, after) = row?;
                for row in before.iter().chain(&after) {
                    fold_peer(&mut fold, row);
                }
            }
        }
    }
    Ok((fold, events, began.elapsed().as_secs_f64()))
}

/// How many row events the server's files hold.
fn row_events(server: &Server) -> Result<u64, Error> {
    let mut events = 0;
    for file in server.binlogs()? {
        let bytes = std::fs::read(file)?;
        let mut rest = bytes.get(4..).unwrap_or_default();
        while let Some(header) = rest.first_chunk::<19>() {
            events += u64::from(header[4] == 30);
            let size = u32::from_le_bytes([header[9], header[10], header[11], header[12]]) as usize;
            rest = rest.get(size..).unwrap_or_default();
        }
    }
    Ok(events)
}

/// Runs the comparison.
pub fn run(scale: u64) -> Result<(), Error> {
    let server = Server::builder().start()?;
    println!("writing {} rows of 8 columns …", 500_000 * scale);
    workload::wide(&server, 50 * scale, 10_000)?;
    let events = row_events(&server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut of_rows, mut of_frames) = (Vec::new(), Vec::new());
    println!("the server and its reader share the machine's cores");
    for round in 0..5 {
        memory::forget_peak();
        let (fold, took) = runtime.block_on(ours(&server))?;
        let peak = memory::peak_mib();
        let (_, _, framed) = runtime.block_on(peer(&server, false, events))?;
        let (their_fold, _, theirs) = runtime.block_on(peer(&server, true, events))?;
        if fold != their_fold {
            return Err(format!("the folds differ: {fold:?}, {their_fold:?}").into());
        }
        let rows = fold.images as f64;
        println!(
            "round {round}: capstan {:>10.0} rows/s, peak {peak:.0} MiB · mysql_async {:>10.0} rows/s ({:.2}x), \
             framing alone {:>10.0} rows/s ({:.2})",
            rows / took,
            rows / theirs,
            theirs / took,
            rows / framed,
            framed / took
        );
        of_rows.push(theirs / took);
        of_frames.push(framed / took);
    }
    println!(
        "median: {:.2} times mysql_async's rows (aim: 8), {:.2} of its framing (aim: 0.7)",
        median(of_rows),
        median(of_frames)
    );
    Ok(())
}
