//! What things cost that must not grow: columns, tables, the size of the GTID set.
//!
//! The events come from the fake source's encoder and are encoded before the clock runs.

use std::{hint::black_box, time::Instant};

use bytes::{Bytes, BytesMut};
use capstan::{
    BatchLimits, BlockingUnit, GtidSet, Position, Uuid,
    core::{
        assemble::{Assembler, Setup},
        binlog::{Checksum, EventDecoder, rows::RowWalk},
        deliver::{Delivery, Event, Seq},
        gtid::{Gtid, Tag},
    },
};
use capstan_fake_source::{
    event::{Column, GtidHead, RowChange, Table, Value},
    group::{End, Group},
};

use crate::{Error, file, median, memory};

/// 2026-11-29, in microseconds.
const COMMITTED: u64 = 1_795_953_600_000_000;
const ROUNDS: usize = 5;

/// The events of one transaction of `changes` in `table`.
fn transaction(table: &Table, changes: Vec<RowChange>, gno: u64) -> Result<Vec<Bytes>, Error> {
    let gtid = Gtid::new(Uuid([7; 16]), Tag::NONE, gno).ok_or("no GTID")?;
    let group = Group::new(
        GtidHead::new(Some(gtid), COMMITTED + gno),
        1,
        Group::changes(&[(table, changes)], &End::Xid),
    );
    let event = |n| {
        let mut bytes = BytesMut::new();
        group.write(n, 4, true, &mut bytes).then(|| bytes.freeze())
    };
    Ok((0..group.count()).filter_map(event).collect())
}

fn setup(set: GtidSet) -> Result<Setup, Error> {
    Ok(Setup { position: Position::new(set, ""), offline: false, ..file::setup()? })
}

/// Runs the events through decoder and assembler; `visit` gets what is to be delivered.
fn run_events(
    setup: Setup,
    events: &[Bytes],
    mut visit: impl FnMut(Event) -> Result<(), Error>,
) -> Result<f64, Error> {
    let mut decoder = EventDecoder::for_link(Checksum::Crc32);
    let mut assembler = Assembler::new(setup);
    let mut next = Seq(1);
    let (cpu, clock) = (memory::cpu_seconds(), Instant::now());
    for event in events {
        let event = decoder.decode(event.clone())?;
        assembler.file_event(event, "bin.000001", 4).map_err(|halt| format!("{halt:?}"))?;
        while let Some(event) = assembler.next_emitted(&mut next) {
            visit(event)?;
        }
    }
    let cpu = memory::cpu_seconds().zip(cpu).map(|(now, then)| now - then);
    Ok(cpu.unwrap_or_else(|| clock.elapsed().as_secs_f64()) * 1e9)
}

/// Visits every value of a row event.
fn walk(walk: &mut RowWalk, event: &Event) -> Result<(), Error> {
    if let Event::Rows(rows) = event {
        walk.start(rows);
        while let Some(row) = walk.next(rows)? {
            for row in row.before().into_iter().chain(row.after()) {
                row.each(|_, value| {
                    black_box(value);
                })?;
            }
        }
    }
    Ok(())
}

fn table(id: u64, columns: usize) -> Table {
    let columns = (0..columns).map(|n| match n % 2 {
        0 => Column::int(&format!("number_{n}")),
        _ => Column::varchar(&format!("text_{n}"), 100),
    });
    Table::new(id, "costs", &format!("table_{id}"), columns.collect())
}

fn row(columns: usize, salt: usize) -> RowChange {
    RowChange::Insert(
        (0..columns)
            .map(|n| match n % 2 {
                0 => Value::Int((n + salt) as i64),
                _ => Value::Bytes(format!("text {n}").into_bytes()),
            })
            .collect(),
    )
}

fn columns() -> Result<(), Error> {
    println!("\ncolumns (INT and VARCHAR in turn), rows of one transaction each 100 rows");
    println!("{:>10} {:>12} {:>14}", "columns", "ns per row", "ns per column");
    for columns in [1, 3, 10, 30, 100, 300, 1000] {
        let table = table(9, columns);
        let mut events = Vec::new();
        for n in 0..(20_000 / columns).max(20) {
            let rows = (0..100).map(|salt| row(columns, salt)).collect();
            events.extend(transaction(&table, rows, n as u64 + 1)?);
        }
        let rows = (20_000 / columns).max(20) as f64 * 100.0;
        let mut scratch = RowWalk::default();
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            all.push(run_events(setup(GtidSet::new())?, &events, |event| walk(&mut scratch, &event))?);
        }
        let ns = median(all) / rows;
        println!("{columns:>10} {ns:>12.0} {:>14.1}", ns / columns as f64);
    }
    Ok(())
}

fn tables() -> Result<(), Error> {
    println!("\ntables written to in turn, transactions of one row of four columns");
    println!("{:>10} {:>19}", "tables", "ns per transaction");
    for tables in [1, 10, 100, 1000, 10_000] {
        let all: Vec<Table> = (0..tables).map(|id| table(id + 1, 4)).collect();
        let mut events = Vec::new();
        let transactions = 40_000;
        for (n, table) in (0..transactions).zip(all.iter().cycle()) {
            events.extend(transaction(table, vec![row(4, n)], n as u64 + 1)?);
        }
        let mut scratch = RowWalk::default();
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            all.push(run_events(setup(GtidSet::new())?, &events, |event| walk(&mut scratch, &event))?);
        }
        println!("{tables:>10} {:>19.0}", median(all) / f64::from(transactions as u32));
    }
    Ok(())
}

/// A set of so many intervals of the stream's own source, the last of which the stream goes on from.
fn set_of(intervals: u64) -> GtidSet {
    let tsid = Uuid([7; 16]);
    (0..intervals).filter_map(|n| Gtid::new(tsid, Tag::NONE, 1 + 2 * n)).collect()
}

fn gtids() -> Result<(), Error> {
    println!("\nintervals of the GTID set, transactions of one row, each a batch that is acknowledged");
    println!("{:>10} {:>19}", "intervals", "ns per transaction");
    let table = table(9, 4);
    for intervals in [1u64, 10, 100, 1000, 10_000] {
        let transactions = 20_000u64;
        let mut events = Vec::new();
        for n in 0..transactions {
            events.extend(transaction(&table, vec![row(4, n as usize)], 2 * intervals + n)?);
        }
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let position = Position::new(set_of(intervals), "");
            let mut delivery = Delivery::new(BatchLimits::default(), 1);
            let _ = delivery.restart(Some(&position));
            let mut stored = position;
            let took = run_events(setup(set_of(intervals))?, &events, |event| {
                let _ = delivery.push(event);
                let Some(mut state) = delivery.next_batch(|| unreachable!("nothing is streamed")) else {
                    return Ok(());
                };
                let mut batch = state.blocking();
                while let Some(unit) = batch.next()? {
                    if let BlockingUnit::Transaction(mut transaction) = unit {
                        while let Some(item) = transaction.next()? {
                            black_box(&item);
                        }
                    }
                }
                let ack = batch.finish()?;
                stored = ack.position().clone();
                delivery.accept(state, ack)?;
                Ok(())
            })?;
            black_box(&stored);
            all.push(took);
        }
        println!("{intervals:>10} {:>19.0}", median(all) / transactions as f64);
    }
    Ok(())
}

/// Prints the three tables.
pub fn run() -> Result<(), Error> {
    columns()?;
    tables()?;
    gtids()
}
