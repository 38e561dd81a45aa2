//! A binlog file as JSON lines.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
};

use capstan::core::{
    deliver::Event,
    text::{TextOptions, TransactionLine},
};

use crate::{
    Error, file, median,
    offline::{self, timed},
};

/// Text that is held before it is written.
const WRITE_ABOVE: usize = 256 << 10;

/// Writes every transaction of the file as a line; gives how many bytes of text that were.
fn lines(path: &Path, out: &mut impl Write) -> Result<u64, Error> {
    let (mut text, mut written) = (String::new(), 0);
    let mut line = None;
    file::units(path, |event| {
        match event {
            Event::TxBegin(begin) if !begin.schema_change => {
                line = Some(TransactionLine::begin(&mut text, begin.gtid.as_ref(), begin.committed_at));
            }
            Event::Rows(rows) => {
                let Some(line) = &mut line else { return Ok(()) };
                line.rows(&mut text, &rows, TextOptions::default())?;
            }
            Event::TxCommit(_) => {
                if let Some(line) = line.take() {
                    line.end(&mut text);
                }
            }
            _ => {}
        }
        if text.len() > WRITE_ABOVE {
            out.write_all(text.as_bytes())?;
            written += text.len() as u64;
            text.clear();
        }
        Ok(())
    })?;
    out.write_all(text.as_bytes())?;
    Ok(written + text.len() as u64)
}

/// How much text there is, and how many lines.
#[derive(Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Measures it.
pub fn run(rounds: u64) -> Result<(), Error> {
    let path = file::wide()?;
    let bytes = std::fs::metadata(&path)?.len() as f64;
    let mut count = Count::default();
    lines(&path, &mut count)?;
    println!("{:.0} MB of binlog, {:.0} MB of text", bytes / 1e6, count.0 as f64 / 1e6);
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    for round in 0..rounds.max(3) {
        let (_, floor) = timed(|| offline::floor(&path))?;
        let mut out = OpenOptions::new().write(true).open("/dev/null")?;
        let (text, took) = timed(|| lines(&path, &mut out))?;
        let text = text as f64;
        println!(
            "round {round}: {:.2} GB/s of binlog, {:.2} GB/s of text; read and checksum {:.2}",
            bytes / took / 1e9,
            text / took / 1e9,
            bytes / floor / 1e9
        );
        rates.push(bytes / took / 1e9);
        ratios.push(floor / took);
    }
    println!(
        "median {:.2} GB/s of binlog (aim: 0.5), {:.2} of read and checksum",
        median(rates),
        median(ratios)
    );
    Ok(())
}
