//! The binlog file that the offline benches read: made once on a live server, then kept.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
};

use capstan::{
    GtidSet, Limits, Position,
    core::{
        assemble::{Assembler, Setup},
        binlog::FileReader,
        capture::CapturedSet,
        deliver::{Event, Seq},
    },
    file::Pieces,
};
use capstan_mysql::Server;

use crate::Error;

/// Where files are kept: `$CAPSTAN_BENCH_CACHE`, else a folder in this package's `target`.
pub fn cache() -> PathBuf {
    std::env::var_os("CAPSTAN_BENCH_CACHE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench-cache"), PathBuf::from)
}

/// A binlog of at least 500 MB: wide rows in bulk inserts and updates, deletes, and single-row transactions.
pub fn wide() -> Result<PathBuf, Error> {
    let path = cache().join("wide.binlog");
    if path.is_file() {
        return Ok(path);
    }
    fs::create_dir_all(cache())?;
    println!("making a binlog of wide rows on a live server (once) …");
    let server = Server::builder()
        .options(["--max-binlog-size=1073741824", "--innodb-buffer-pool-size=256M"])
        .options(["--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite"])
        .start()?;
    server.sql("FLUSH BINARY LOGS")?;
    let file = server.binlogs()?.pop().ok_or("no binlog")?;
    server.sql(&script())?;
    server.sql("FLUSH BINARY LOGS")?;
    let draft = cache().join("wide.draft");
    fs::copy(file, &draft)?;
    fs::rename(draft, &path)?;
    Ok(path)
}

/// What an assembler of a file starts from.
pub fn setup() -> Result<Setup, Error> {
    Ok(Setup {
        captured: CapturedSet::parse(&["*.*"], &[], &[]).map_err(|e| format!("{e:?}"))?,
        lower_case_table_names: 0,
        position: Position::new(GtidSet::new(), ""),
        verify: BTreeMap::new(),
        until: None,
        checksum: true,
        stream_above: Limits::default().stream_above,
        row_event_max: 1 << 30,
        offline: true,
    })
}

/// Reads a file by whole transactions and gives what is to be delivered.
pub fn units(path: &Path, mut visit: impl FnMut(Event) -> Result<(), Error>) -> Result<(), Error> {
    let mut pieces = Pieces::new(File::open(path)?);
    let mut reader = FileReader::new(1 << 30);
    let mut assembler = Assembler::new(setup()?);
    let mut next = Seq(1);
    while let Some(piece) = pieces.next_piece()? {
        reader.feed_bytes(piece);
        while let Some((offset, event)) = reader.next_event()? {
            assembler.file_event(event, "wide.binlog", offset).map_err(|halt| format!("{halt:?}"))?;
            while let Some(event) = assembler.next_emitted(&mut next) {
                visit(event)?;
            }
        }
    }
    reader.finish()?;
    Ok(())
}

/// Whole milliseconds only: `mysql_cdc` reads no finer part of a DATETIME, and the folds are to be equal.
fn script() -> String {
    let mut script = String::from(
        "CREATE DATABASE b; USE b;
         CREATE TABLE n (n INT PRIMARY KEY);
         SET SESSION cte_max_recursion_depth = 1000000;
         INSERT INTO n WITH RECURSIVE s AS (SELECT 1 n UNION ALL SELECT n + 1 FROM s WHERE n < 10000) SELECT n FROM s;
         CREATE TABLE w (id BIGINT UNSIGNED PRIMARY KEY, n INT, c CHAR(120), d CHAR(60), amount DECIMAL(20,4),
                         at DATETIME(6), flag TINYINT, note VARCHAR(100)) CHARSET utf8mb4;
         CREATE PROCEDURE single(first BIGINT, last BIGINT) BEGIN
           WHILE first <= last DO
             INSERT INTO w VALUES (first, -first, REPEAT('single row ', 10), 'one transaction each', first * 1.5 - 1000000,
               '2026-11-29 12:00:00' + INTERVAL first * 1000 MICROSECOND, first % 200 - 100, CONCAT('note ', first));
             SET first = first + 1;
           END WHILE;
         END;\n",
    );
    for k in 0..100 {
        script.push_str(&format!(
            "INSERT INTO w SELECT 18446744073709551615 - {k} * 10000 - n, {k} * 10000 + n - 500000,
               CONCAT(SHA2(n + {k}, 256), LEFT(SHA2(n * 3, 256), 55)), LEFT(SHA2(n + 7, 256), 59),
               (n - 5000) * 1234567.8912 * ({k} + 1), '1999-12-31 23:59:59.999' + INTERVAL n * 1000 * ({k} + 1) SECOND,
               n % 256 - 128, IF(n % 10 = 0, NULL, CONCAT('note number ', n * {k}, ' äöü')) FROM n;\n"
        ));
    }
    for k in 0..50 {
        script.push_str(&format!(
            "UPDATE w SET amount = -amount - 0.0001, flag = -1 - flag, at = at + INTERVAL 1001 MICROSECOND - INTERVAL 1 MICROSECOND
             WHERE id > 18446744073709551615 - {k} * 10000 - 10001 AND id < 18446744073709551615 - {k} * 10000;\n"
        ));
    }
    script.push_str("CALL single(1, 70000);\nDELETE FROM w WHERE id <= 20000;\n");
    script
}
