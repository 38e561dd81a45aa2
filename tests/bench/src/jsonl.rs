//! A binlog file as JSON lines.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
};

use capstan::core::{
    binlog::rows::RowWalk,
    deliver::Event,
    text::{TextOptions, TransactionLine},
};

use crate::{Error, file, median, offline::timed};

/// Text that is held before it is written.
const WRITE_ABOVE: usize = 256 << 10;

/// Writes every transaction of the file as a line; gives how many bytes of text that were.
fn lines(path: &Path, out: &mut impl Write) -> Result<u64, Error> {
    let (mut text, mut walk, mut written) = (String::new(), RowWalk::default(), 0);
    let mut line = None;
    file::units(path, |event| {
        match event {
            Event::TxBegin(begin) if !begin.schema_change => {
                line = Some(TransactionLine::begin(&mut text, begin.gtid.as_ref(), begin.committed_at));
            }
            Event::Rows(rows) => {
                let Some(line) = &mut line else { return Ok(()) };
                walk.start(&rows);
                while let Some(row) = walk.next(&rows)? {
                    line.change(&mut text, row.before(), row.after(), TextOptions::default())?;
                }
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
    let mut rates = Vec::new();
    for round in 0..rounds.max(3) {
        let mut out = OpenOptions::new().write(true).open("/dev/null")?;
        let (text, took) = timed(|| lines(&path, &mut out))?;
        let text = text as f64;
        println!(
            "round {round}: {:.2} GB/s of binlog, {:.2} GB/s of text",
            bytes / took / 1e9,
            text / took / 1e9
        );
        rates.push(bytes / took / 1e9);
    }
    println!("median {:.2} GB/s of binlog (aim: 0.5)", median(rates));
    Ok(())
}
