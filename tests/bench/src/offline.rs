//! A binlog file, every value of every row folded: our decoder and two others over the same file.

use std::{
    fs::File,
    io::{BufReader, Read as _},
    path::Path,
    sync::Arc,
    time::Instant,
};

use capstan::{
    core::{
        binlog::{
            EventType, FileReader,
            rows::{RowImage, RowsEvent, RowsHead, RowsKind, VisitRows},
            table_map::TableMaps,
        },
        deliver::Event,
        value::{DateTime, Decimal, Text, Value, ValueFault, Visit},
    },
    file::Pieces,
};
use mysql_cdc::{
    binlog_reader::BinlogReader,
    events::{
        binlog_event::BinlogEvent,
        row_events::{mysql_value::MySqlValue, row_data::RowData},
    },
};
use mysql_common::{
    Value as CommonValue,
    binlog::{BinlogFile, consts::BinlogVersion, events::EventData, row::BinlogRow, value::BinlogValue},
};

use crate::{
    Error, file,
    fold::{Fold, digits_of_text, micros},
    median, memory,
};

const CHUNK: usize = 256 << 10;

/// Reads the file in large pieces and checks every event's CRC32: what no reader of it can do without.
pub fn floor(path: &Path) -> Result<u64, Error> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; CHUNK];
    let (mut filled, mut events) = (0, 0);
    let mut at_head = true;
    loop {
        let read = file.read(&mut buffer[filled..])?;
        if read == 0 {
            return Ok(events);
        }
        filled += read;
        let mut rest = &buffer[..filled];
        if at_head {
            rest = &rest[4..];
            at_head = false;
        }
        while let Some(size) = rest.get(9..13) {
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
            let Some(event) = rest.get(..size) else { break };
            let (content, sum) = event.split_at(size - 4);
            if crc32fast::hash(content).to_le_bytes() != sum {
                return Err("a checksum does not match".into());
            }
            events += 1;
            rest = &rest[size..];
        }
        let (done, left) = (filled - rest.len(), rest.len());
        buffer.copy_within(done..filled, 0);
        filled = left;
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
    }
}

impl VisitRows<'_> for Fold {
    #[inline]
    fn end(&mut self, _: RowImage) {
        self.image();
    }
}

impl<'a> Visit<'a> for Fold {
    #[inline(always)]
    fn value(&mut self, _: usize, value: Value<'a>) -> Result<(), ValueFault> {
        panic!("no {value:?} in this file")
    }

    #[inline]
    fn null(&mut self, _: usize) -> Result<(), ValueFault> {
        Self::null(self);
        Ok(())
    }

    #[inline]
    fn int(&mut self, _: usize, value: i64) -> Result<(), ValueFault> {
        self.word(value as u64);
        Ok(())
    }

    #[inline]
    fn uint(&mut self, _: usize, value: u64) -> Result<(), ValueFault> {
        self.word(value);
        Ok(())
    }

    #[inline]
    fn double(&mut self, _: usize, value: f64) -> Result<(), ValueFault> {
        self.word(value.to_bits());
        Ok(())
    }

    #[inline]
    fn decimal(&mut self, _: usize, value: Decimal<'a>) -> Result<(), ValueFault> {
        self.digits(value.unscaled().expect("at most 38 digits"));
        Ok(())
    }

    #[inline]
    fn date_time(&mut self, _: usize, at: DateTime) -> Result<(), ValueFault> {
        let date = at.date();
        let (y, m, d) = (date.year(), date.month(), date.day());
        self.word(micros(y, m, d, at.hour(), at.minute(), at.second(), at.micros()));
        Ok(())
    }

    #[inline]
    fn text(&mut self, _: usize, value: Text<'a>) -> Result<(), ValueFault> {
        self.bytes(value.as_bytes());
        Ok(())
    }
}

fn ours(path: &Path) -> Result<Fold, Error> {
    let mut pieces = Pieces::new(File::open(path)?);
    let mut reader = FileReader::new(1 << 30);
    let mut maps = TableMaps::new();
    let mut fold = Fold::default();
    while let Some(piece) = pieces.next_piece()? {
        reader.feed_bytes(piece);
        while let Some((_, event)) = reader.next_event()? {
            let code = event.header.event_type.code();
            if event.header.event_type == EventType::TableMap {
                maps.open(&event.body)?;
            } else if RowsKind::of(code).is_some() {
                let head = RowsHead::parse(code, &event.body)?;
                let table = Arc::clone(maps.get(head.table_id).ok_or("no table map")?);
                let event = RowsEvent::new(head, table, event.body)?;
                fold_event(&mut fold, &event)?;
            }
        }
    }
    reader.finish()?;
    Ok(fold)
}

/// Every value of every row.
#[inline]
pub fn fold_event(fold: &mut Fold, event: &RowsEvent) -> Result<(), Error> {
    if event.table().table() == "n" {
        return Ok(());
    }
    // A copy of its own stays in registers while the rows are visited.
    let mut of_rows = *fold;
    event.visit(&mut of_rows)?;
    *fold = of_rows;
    Ok(())
}

/// As [`ours`], by whole transactions: what a sink gets.
fn units(path: &Path) -> Result<Fold, Error> {
    let mut fold = Fold::default();
    file::units(path, |event| match event {
        Event::Rows(rows) => fold_event(&mut fold, &rows),
        _ => Ok(()),
    })?;
    Ok(fold)
}

fn fold_cdc(fold: &mut Fold, row: &RowData) {
    // It leaves signs to its user: the columns are known here.
    for cell in &row.cells {
        match cell {
            None => fold.null(),
            Some(MySqlValue::BigInt(n)) => fold.word(*n),
            Some(MySqlValue::Int(n)) => fold.word(i64::from(n.cast_signed()) as u64),
            Some(MySqlValue::TinyInt(n)) => fold.word(i64::from(n.cast_signed()) as u64),
            Some(MySqlValue::Decimal(text)) => fold.digits(digits_of_text(text.as_bytes())),
            Some(MySqlValue::DateTime(at)) => {
                fold.word(micros(at.year, at.month, at.day, at.hour, at.minute, at.second, at.millis * 1000));
            }
            Some(MySqlValue::String(text)) => fold.bytes(text.as_bytes()),
            Some(other) => panic!("no {other:?} in this file"),
        }
    }
    fold.image();
}

fn cdc(path: &Path) -> Result<Fold, Error> {
    let mut fold = Fold::default();
    let reader = BinlogReader::new(File::open(path)?).map_err(|e| format!("{e:?}"))?;
    let mut skip = 0;
    for event in reader.read_events() {
        match event.map_err(|e| format!("{e:?}"))?.1 {
            BinlogEvent::TableMapEvent(map) if map.table_name == "n" => skip = map.table_id,
            BinlogEvent::WriteRowsEvent(rows) if rows.table_id != skip => {
                rows.rows.iter().for_each(|row| fold_cdc(&mut fold, row));
            }
            BinlogEvent::UpdateRowsEvent(rows) => {
                for row in &rows.rows {
                    fold_cdc(&mut fold, &row.before_update);
                    fold_cdc(&mut fold, &row.after_update);
                }
            }
            BinlogEvent::DeleteRowsEvent(rows) => rows.rows.iter().for_each(|row| fold_cdc(&mut fold, row)),
            _ => {}
        }
    }
    Ok(fold)
}

/// In column 4 lies the decimal, which it gives as text as it does strings.
fn fold_common(fold: &mut Fold, row: &BinlogRow) {
    for column in 0..row.len() {
        let Some(BinlogValue::Value(value)) = row.as_ref(column) else {
            panic!("no such value in this file")
        };
        match value {
            CommonValue::NULL => fold.null(),
            CommonValue::Int(n) => fold.word(*n as u64),
            CommonValue::UInt(n) => fold.word(*n),
            CommonValue::Bytes(text) if column == 4 => fold.digits(digits_of_text(text)),
            CommonValue::Bytes(bytes) => fold.bytes(bytes),
            CommonValue::Date(y, m, d, h, min, s, us) => fold.word(micros(*y, *m, *d, *h, *min, *s, *us)),
            other => panic!("no {other:?} in this file"),
        }
    }
    fold.image();
}

fn common(path: &Path) -> Result<Fold, Error> {
    let mut fold = Fold::default();
    let mut file =
        BinlogFile::new(BinlogVersion::Version4, BufReader::with_capacity(CHUNK, File::open(path)?))?;
    while let Some(event) = file.next() {
        let event = event?;
        if let Some(EventData::RowsEvent(data)) = event.read_data()? {
            let table = file.reader().get_tme(data.table_id()).ok_or("no table map")?;
            if table.table_name() == "n" {
                continue;
            }
            for row in data.rows(table) {
                let (before, after) = row?;
                for row in before.iter().chain(&after) {
                    fold_common(&mut fold, row);
                }
            }
        }
    }
    Ok(fold)
}

/// Seconds of processor time.
pub fn timed<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<(T, f64), Error> {
    let (began, clock) = (memory::cpu_seconds(), Instant::now());
    let done = run()?;
    let cpu = memory::cpu_seconds().zip(began).map(|(now, then)| now - then);
    Ok((done, cpu.unwrap_or_else(|| clock.elapsed().as_secs_f64())))
}

/// Runs the comparison in interleaved rounds.
pub fn run(rounds: u64) -> Result<(), Error> {
    let path = file::wide()?;
    let bytes = std::fs::metadata(&path)?.len() as f64;
    let rate = |seconds: f64| bytes / seconds / 1e9;
    println!("{:.0} MB, every value of every row; one core's own time, from the page cache", bytes / 1e6);
    floor(&path)?;
    let mut ratios: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds.max(3) {
        let (mut best, mut folds) = ([f64::INFINITY; 3], Vec::new());
        for _ in 0..2 {
            best[0] = best[0].min(timed(|| floor(&path))?.1);
            for (at, run) in [(1, ours as fn(&Path) -> _), (2, units)] {
                let (fold, took) = timed(|| run(&path))?;
                folds.push(fold);
                best[at] = best[at].min(took);
            }
        }
        let (fold, cdc) = timed(|| cdc(&path))?;
        folds.push(fold);
        let (fold, common) = timed(|| common(&path))?;
        if folds.iter().any(|other| *other != fold) {
            return Err(format!("the folds differ: {fold:?}, {folds:?}").into());
        }
        let [floor, took, units] = best;
        println!(
            "round {round}: capstan {:.2} GB/s, by transactions {:.2} · mysql_cdc {:.3} · mysql_common {:.3} · \
             read and checksum {:.2} · {} row images, equal folds",
            rate(took),
            rate(units),
            rate(cdc),
            rate(common),
            rate(floor),
            fold.images
        );
        for (all, ratio) in ratios.iter_mut().zip([cdc / took, common / took, floor / took, floor / units]) {
            all.push(ratio);
        }
    }
    let [cdc, common, floor, units] = ratios.map(median);
    println!(
        "median: {cdc:.1} times mysql_cdc (aim: 6), {common:.1} times mysql_common (aim: 20), \
         {floor:.2} of read and checksum (aim: 0.7; by transactions {units:.2})"
    );
    Ok(())
}

/// Ours alone, for a profiler.
pub fn profile(rounds: u64) -> Result<(), Error> {
    let path = file::wide()?;
    let bytes = std::fs::metadata(&path)?.len() as f64;
    for _ in 0..rounds {
        let (_, floor) = timed(|| floor(&path))?;
        let (fold, took) = timed(|| ours(&path))?;
        let (_, units) = timed(|| units(&path))?;
        println!(
            "{:.2} GB/s, by transactions {:.2}, read and checksum {:.2}: {:.2} {:.2}; {fold:?}",
            bytes / took / 1e9,
            bytes / units / 1e9,
            bytes / floor / 1e9,
            floor / took,
            floor / units
        );
    }
    Ok(())
}
