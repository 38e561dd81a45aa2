//! Values out of a server's binlog against what the server's own `SELECT` shows.
//!
//! The truth is always the server: rows are written, read back with `SELECT`, and decoded from the file.

// A test that cannot go on ends there; clippy knows only the functions that are tests themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use capstan_core::binlog::EventType;
use capstan_core::binlog::FileReader;
use capstan_core::binlog::rows::{ChangeRow, Row, RowScratch, RowsEvent, RowsHead};
use capstan_core::binlog::table_map::TableMaps;
use capstan_core::value::charset::Charset;
use capstan_core::value::{Text, Value};
use capstan_mysql::Server;
use capstan_tests::copied::{self, Difference};

#[test]
fn every_column_type_with_its_extremes() {
    let server = Server::start().expect("a server");
    let script = include_str!("../fixtures/types/types.sql");
    let (truth, found) = written_and_read(&server, script);
    compare(&truth, &found);
    assert!(found.len() > 60, "{}", found.len());
    // What the text of a document does not tell: its date and decimal, and that it is empty.
    let two_encodings = [("jsons", "j"), ("made", "j")];
    copied_alike(&server, &["minimal"], &two_encodings);
}

/// Tables of random columns with random values, odd and even ones; another seed with `CAPSTAN_SEED`.
#[test]
fn random_rows_of_random_tables() {
    let server = Server::start().expect("a server");
    let seed = std::env::var("CAPSTAN_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_129);
    println!("CAPSTAN_SEED={seed}");
    let mut random = Random(seed);
    let mut script = String::from("SET NAMES utf8mb4, time_zone='+00:00', sql_mode='ALLOW_INVALID_DATES';\n");
    let mut selects = String::new();
    for n in 0..12 {
        let columns: Vec<Kind> = (0..random.below(24) + 1).map(|_| Kind::random(&mut random)).collect();
        let declared: Vec<_> = columns.iter().zip(0..).map(|(c, i)| format!("c{i} {}", c.sql())).collect();
        writeln!(script, "CREATE TABLE t{n} (id INT PRIMARY KEY, {});", declared.join(", ")).unwrap();
        for id in 0..30 {
            let values: Vec<_> = columns.iter().map(|c| c.value(&mut random)).collect();
            writeln!(script, "INSERT IGNORE INTO t{n} VALUES ({id}, {});", values.join(", ")).unwrap();
        }
        let shown: Vec<_> = columns.iter().zip(0..).map(|(c, i)| c.shown(&format!("c{i}"))).collect();
        writeln!(selects, "SELECT 't{n}', id, {} FROM t{n} ORDER BY id;", shown.join(", ")).unwrap();
    }
    let (truth, found) = written_and_read(&server, &format!("{script}{selects}"));
    assert_eq!(found.len(), 12 * 30);
    compare(&truth, &found);
    copied_alike(&server, &[], &[]);
}

/// Every row of the file before this one, read by `SELECT`, has the table version and the bytes it has in the
/// binlog; but for `two_encodings`, each of which has one value with other bytes and the same text.
fn copied_alike(server: &Server, except: &[&str], two_encodings: &[(&str, &str)]) {
    let binlogs = server.binlogs().expect("binlogs");
    let file = &binlogs[binlogs.len() - 2];
    let mut session = server.connect().expect("a session");
    let (found, compared) = copied::differences(&mut session, "v", file, except).expect("a copy");
    let want: Vec<_> = two_encodings
        .iter()
        .map(|(table, column)| Difference {
            table: (*table).to_owned(),
            column: (*column).to_owned(),
            same_text: true,
        })
        .collect();
    assert_eq!(found, want);
    assert!(compared > 60, "{compared}");
}

/// Runs a script that writes rows and then selects them; gives what it selected and what the binlog has.
fn written_and_read(server: &Server, script: &str) -> (Vec<String>, Vec<String>) {
    let start = "RESET BINARY LOGS AND GTIDS; CREATE DATABASE v; USE v;";
    let truth = server.sql(&format!("{start}\n{script}")).expect("the script runs");
    let status = server.sql("SHOW BINARY LOG STATUS").expect("a binlog");
    let file = status.split('\t').next().expect("a file name");
    server.sql("FLUSH BINARY LOGS").expect("the file is closed");
    (truth.lines().map(str::to_owned).collect(), inserted(&server.datadir().join(file)))
}

/// Every inserted row of a file as its `SELECT` shows it: the table's name and its values.
fn inserted(file: &Path) -> Vec<String> {
    let mut reader = FileReader::new(64 << 20);
    reader.feed(&fs::read(file).expect("the binlog file"));
    let (mut maps, mut scratch, mut lines) = (TableMaps::new(), RowScratch::new(), Vec::new());
    while let Some((_, event)) = reader.next_event().expect("a whole event") {
        let type_code = event.header.event_type;
        if type_code == EventType::TableMap {
            maps.open(&event.body).expect("a table map");
        } else if let Ok(head) = RowsHead::parse(type_code.code(), &event.body) {
            let table = maps.get(head.table_id).expect("its table map").clone();
            let rows = RowsEvent::new(head, table, event.body).expect("a row event");
            rows.validate().expect("rows inside the event");
            let mut cursor = rows.cursor(&mut scratch);
            while let Some(change) = cursor.next().expect("a row") {
                let ChangeRow::Insert { after } = change else { panic!("only inserts") };
                lines.push(line(after));
            }
        }
    }
    reader.finish().expect("the file ends between two events");
    lines
}

fn compare(truth: &[String], found: &[String]) {
    for (line, found) in truth.iter().zip(found) {
        let pairs = line.split('\t').zip(found.split('\t'));
        for (n, (want, found)) in pairs.enumerate() {
            let same = match found.strip_prefix("double ").map(|d| (d.parse::<f64>(), want.parse::<f64>())) {
                Some((Ok(found), Ok(want))) => found.to_bits() == want.to_bits(),
                Some(_) => false,
                None => found == want,
            };
            assert!(same, "{found} instead of {want}: value {n} of\n{line}");
        }
        assert_eq!(line.matches('\t').count(), found.matches('\t').count(), "{line}");
    }
    assert_eq!(truth.len(), found.len(), "as many rows");
}

fn line(row: Row<'_>) -> String {
    let mut line = row.table().table().to_owned();
    for value in row.values() {
        let (column, value) = value.unwrap_or_else(|e| panic!("{}: {e}", row.table().table()));
        write!(line, "\t{}", shown(value)).unwrap_or_else(|_| panic!("{}", column.name));
    }
    line
}

fn shown(value: Value<'_>) -> String {
    let text = |t: Text<'_>| t.to_str().map_or_else(|e| format!("<{e}>"), |t| t.into_owned());
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Absent => "absent".to_owned(),
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Float(n) => double(n.into()),
        Value::Double(n) => double(n),
        Value::Decimal(d) => d.to_string(),
        Value::Bit(b) => b.value().to_string(),
        Value::Year(y) => format!("{y:04}"),
        Value::Date(d) => d.to_string(),
        Value::Time(t) => t.to_string(),
        Value::DateTime(t) => t.to_string(),
        Value::Timestamp(t) => t.to_string(),
        Value::Text(t) => text(t),
        Value::Binary(b) => hex(&b.to_bytes()),
        Value::Blob(b) => hex(b),
        Value::Enum(e) => match e.label() {
            Some(l) if l.charset() == Some(Charset::Binary) => format!("{}:{}", e.index(), hex(l.as_bytes())),
            Some(label) => format!("{}:{}", e.index(), text(label)),
            None => e.index().to_string(),
        },
        Value::Set(s) if s.labels().is_none() => s.bits().to_string(),
        Value::Set(s) => s.to_str().map_or_else(|e| format!("<{e}>"), |t| t.into_owned()),
        Value::Json(j) => {
            let mut text = String::new();
            j.write_text(&mut text).map_or_else(|e| format!("<{e}>"), |()| text)
        }
        Value::Geometry(g) => format!("SRID {} {}", g.srid(), hex(g.wkb())),
        Value::Vector(v) => hex(v.as_bytes()),
    }
}

/// Marked, for the server writes the same digits in another form (1e16, 10000000000000000).
fn double(n: f64) -> String {
    format!("double {n:e}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        text.push_str(&format!("{b:02X}"));
        text
    })
}

/// A random number generator (xorshift64*), so that a seed is all that a failure needs.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).expect("small")]
    }

    fn digits(&mut self, n: u64) -> String {
        (0..n).map(|_| self.pick(&['0', '0', '1', '4', '5', '9', '9'])).collect()
    }
}

/// A kind of column.
#[derive(Clone, Debug)]
enum Kind {
    Integer { name: &'static str, bits: u32, unsigned: bool },
    Decimal { precision: u64, scale: u64 },
    Float(&'static str),
    Bit(u64),
    Year,
    Date,
    Time(u64),
    DateTime { name: &'static str, fsp: u64 },
    Text { name: String, charset: &'static str, alphabet: &'static [char], chars_max: u64 },
    Binary { name: String, bytes_max: u64 },
    Enum(u64),
    Set(u64),
    Json,
    Point,
    Vector(u64),
}

impl Kind {
    fn random(random: &mut Random) -> Self {
        let fsp = random.below(7);
        match random.below(15) {
            0 | 1 => {
                let (name, bits) = random.pick(&[
                    ("TINYINT", 8),
                    ("SMALLINT", 16),
                    ("MEDIUMINT", 24),
                    ("INT", 32),
                    ("BIGINT", 64),
                ]);
                Self::Integer { name, bits, unsigned: random.below(2) == 0 }
            }
            2 => {
                let precision = random.below(65) + 1;
                Self::Decimal { precision, scale: random.below(precision.min(30) + 1) }
            }
            3 => Self::Float(random.pick(&["FLOAT", "DOUBLE"])),
            4 => Self::Bit(random.below(64) + 1),
            5 => Self::Year,
            6 => Self::Date,
            7 => Self::Time(fsp),
            8 => Self::DateTime { name: random.pick(&["DATETIME", "TIMESTAMP"]), fsp },
            9 | 10 => {
                let (charset, alphabet) = random.pick(&[
                    ("utf8mb4", &['a', 'é', '中', '𝄞', ' '][..]),
                    ("latin1", &['a', 'é', '€', ' ']),
                    ("utf16", &['a', 'é', '𝄞', ' ']),
                    ("ucs2", &['a', '中', ' ']),
                    ("gbk", &['a', '中', ' ']),
                    ("cp1251", &['a', 'я', ' ']),
                    ("ascii", &['a', ' ']),
                ]);
                let n = random.pick(&[1, 20, 63, 64, 127, 128, 255]);
                let (name, chars_max) =
                    random.pick(&[("CHAR", n), ("VARCHAR", n), ("TINYTEXT", 50), ("TEXT", 300)]);
                let name = if name.ends_with("CHAR") { format!("{name}({n})") } else { name.to_owned() };
                Self::Text { name, charset, alphabet, chars_max }
            }
            11 => {
                let n = random.pick(&[1, 8, 16, 255]);
                let (name, bytes_max) =
                    random.pick(&[("BINARY", n), ("VARBINARY", n), ("BLOB", 300), ("LONGBLOB", 400)]);
                let name = if name.ends_with("ARY") { format!("{name}({n})") } else { name.to_owned() };
                Self::Binary { name, bytes_max }
            }
            12 => Self::Enum(random.pick(&[1, 3, 255, 256, 300])),
            13 => Self::Set(random.pick(&[1, 8, 9, 24, 33, 63, 64])),
            _ => match random.below(3) {
                0 => Self::Json,
                1 => Self::Point,
                _ => Self::Vector(random.below(5) + 1),
            },
        }
    }

    /// The declaration. The name is not the server's type name alone: signs, sizes and character sets.
    fn sql(&self) -> String {
        let members = |n: u64| (1..=n).map(|i| format!("'m{i}'")).collect::<Vec<_>>().join(",");
        match self {
            Self::Integer { name, unsigned, .. } => {
                format!("{name}{}", if *unsigned { " UNSIGNED" } else { "" })
            }
            Self::Decimal { precision, scale } => format!("DECIMAL({precision},{scale})"),
            Self::Float(name) => (*name).to_owned(),
            Self::Bit(n) => format!("BIT({n})"),
            Self::Year => "YEAR".to_owned(),
            Self::Date => "DATE".to_owned(),
            Self::Time(fsp) => format!("TIME({fsp})"),
            Self::DateTime { name, fsp } => format!("{name}({fsp}) NULL"),
            Self::Text { name, charset, .. } => format!("{name} CHARACTER SET {charset}"),
            Self::Binary { name, .. } => name.clone(),
            Self::Enum(n) => format!("ENUM({})", members(*n)),
            Self::Set(n) => format!("SET({})", members(*n)),
            Self::Json => "JSON".to_owned(),
            Self::Point => "POINT".to_owned(),
            Self::Vector(n) => format!("VECTOR({n})"),
        }
    }

    /// What `SELECT` is asked for, so that it shows what [`shown`] does.
    fn shown(&self, column: &str) -> String {
        match self {
            Self::Bit(_) => format!("{column}+0"),
            Self::Float(_) => format!("CAST({column} AS DOUBLE)"),
            Self::Year => format!("LPAD({column},4,'0')"),
            Self::Text { .. } => format!("CONVERT({column} USING utf8mb4)"),
            Self::Binary { .. } | Self::Vector(_) => format!("HEX({column})"),
            Self::Enum(_) => format!("CONCAT({column}+0,':',{column})"),
            Self::Point => format!("CONCAT('SRID ',ST_SRID({column}),' ',SUBSTR(HEX({column}),9))"),
            Self::Integer { .. }
            | Self::Decimal { .. }
            | Self::Date
            | Self::Time(_)
            | Self::DateTime { .. }
            | Self::Set(_)
            | Self::Json => column.to_owned(),
        }
    }

    fn value(&self, r: &mut Random) -> String {
        if r.below(8) == 0 {
            return "NULL".to_owned();
        }
        let fraction =
            |r: &mut Random| if r.below(2) == 0 { String::new() } else { format!(".{}", r.digits(6)) };
        match self {
            Self::Integer { bits, unsigned, .. } => {
                // Of any size, not only near the end of the range.
                let n = r.next() >> (64 - bits) >> r.below(u64::from(*bits));
                if *unsigned || r.below(2) == 0 { n.to_string() } else { format!("-{n}") }
            }
            Self::Decimal { precision, scale } => {
                let sign = r.pick(&["", "-"]);
                format!("{sign}{}.{}", r.digits(precision - scale), r.digits(*scale))
            }
            Self::Float(name) => {
                let bits = r.next();
                let n =
                    if *name == "FLOAT" { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) };
                if n.is_finite() { format!("{n:e}") } else { "0".to_owned() }
            }
            Self::Bit(n) => (r.next() >> (64 - n)).to_string(),
            Self::Year => r.pick(&["0", "1901", "1999", "2024", "2155"]).to_owned(),
            Self::Date => format!("'{:04}-{:02}-{:02}'", r.below(10_000), r.below(13), r.below(32)),
            Self::Time(_) => {
                let (sign, fraction) = (r.pick(&["", "-"]), fraction(r));
                let hours = r.below(839) >> r.below(10);
                format!("'{sign}{hours:02}:{:02}:{:02}{fraction}'", r.below(60), r.below(60))
            }
            Self::DateTime { name, .. } => {
                let year = if *name == "DATETIME" { r.below(10_000) } else { 1_971 + r.below(66) };
                let (month, day, fraction) = (r.below(12) + 1, r.below(28) + 1, fraction(r));
                let (hour, minute, second) = (r.below(24), r.below(60), r.below(60));
                format!("'{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}'")
            }
            Self::Text { alphabet, chars_max, .. } => {
                let n = r.below(chars_max + 1);
                let text: String = (0..n).map(|_| r.pick(alphabet)).collect();
                format!("'{text}'")
            }
            Self::Binary { bytes_max, .. } => {
                let n = r.below(bytes_max + 1);
                let bytes: Vec<u8> = (0..n).map(|_| r.pick(&[0, 0, 0x20, 0x7f, 0x80, 0xff])).collect();
                format!("x'{}'", hex(&bytes))
            }
            Self::Enum(n) => (r.below(*n) + 1).to_string(),
            Self::Set(n) => (r.next() >> (64 - n) >> r.below(*n)).to_string(),
            Self::Json => {
                let n = r.next();
                format!("JSON_OBJECT('n', {n}, 'a', JSON_ARRAY({}, NULL, TRUE, 'é'))", r.below(100_000))
            }
            Self::Point => format!("POINT({}, -{})", r.below(1_000), r.below(1_000)),
            Self::Vector(n) => {
                let floats: Vec<_> = (0..r.below(*n) + 1).map(|_| r.below(1_000).to_string()).collect();
                format!("TO_VECTOR('[{}]')", floats.join(","))
            }
        }
    }
}
