//! `capstan inspect`: binlog files, decoded offline.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io::{self, BufWriter, Read as _, Seek as _, Write},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use capstan::{
    Code, Detail,
    core::{
        assemble::{Assembler, Setup, errors},
        binlog::{EventType, FileError, FileReader, FormatDescription, compare_names, rows::RowWalk},
        capture::CapturedSet,
        config::Limits,
        deliver::{Event, Position, SchemaChange, Seq},
        gtid::GtidSet,
        halt::{Halt, Place},
        text::{SchemaChangeText, TextOptions, TransactionLine, write_schema_change, write_time},
        time::SourceTime,
    },
};
use serde_json::json;

use crate::{
    args::{BigintText, Inspect, Output, gtid_set, invalid},
    failure::Failure,
};

/// Longest row event a file may hold.
const EVENT_MAX: usize = 1 << 30;

/// Text of a transaction that is held in memory; beyond that it waits in a temporary file.
const SPILL_ABOVE: usize = 8 << 20;

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// Runs the command.
pub fn run(args: &Inspect) -> Result<u8, Failure> {
    let mut files = args.files.clone();
    sort(&mut files);
    if args.start_offset.is_some() && files.len() > 1 {
        return Err(invalid("start-offset", "goes with one file only").into());
    }
    let wanted = match &args.gtid {
        Some(text) => Some(gtid_set("gtid", text)?),
        None => None,
    };
    let patterns: Vec<&str> = args.table.iter().map(String::as_str).collect();
    let captured = CapturedSet::parse(&patterns, &[], &[])
        .map_err(|_| invalid("table", "is no pattern like `shop.orders` or `shop.*`"))?;
    let mut walk = Walk {
        wanted,
        text: BigintText::options(args.bigint),
        lines: (!args.summary).then(|| Lines::new(io::stdout().lock())),
        summary: Summary::default(),
        next: Seq(1),
    };
    for path in &files {
        let done = walk.file(path, &captured, args.start_offset);
        if args.summary {
            walk.summary.print(path, args.output);
            walk.summary = Summary::default();
        }
        match done {
            Err(Failure::Other { status: 0, .. }) => return Ok(0),
            done => done?,
        }
    }
    Ok(0)
}

/// In the order of the log, where the names tell one; else as given.
fn sort(files: &mut [PathBuf]) {
    let name = |path: &Path| path.file_name().unwrap_or_else(|| OsStr::new("")).as_bytes().to_owned();
    let comparable =
        files.windows(2).all(|pair| matches!(pair, [a, b] if compare_names(&name(a), &name(b)).is_some()));
    if comparable {
        files.sort_by(|a, b| compare_names(&name(a), &name(b)).unwrap_or(std::cmp::Ordering::Equal));
    }
}

struct Walk<'a> {
    wanted: Option<GtidSet>,
    text: TextOptions,
    lines: Option<Lines<'a>>,
    summary: Summary,
    next: Seq,
}

impl Walk<'_> {
    fn file(&mut self, path: &Path, captured: &CapturedSet, start: Option<u64>) -> Result<(), Failure> {
        let shown = path.display().to_string();
        let cannot = |error: &io::Error| Failure::other(format!("{shown}: {error}"), 3);
        let mut file = File::open(path).map_err(|error| cannot(&error))?;
        if file.metadata().map_err(|error| cannot(&error))?.is_dir() {
            return Err(Failure::other(format!("{shown} is a folder, not a binlog file"), 3));
        }
        let mut reader = FileReader::new(EVENT_MAX);
        let mut assembler = Assembler::new(setup(captured));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let at = |halt: Halt, offset| {
            halt.at(Place { file: Some(name.clone()), offset: Some(offset), ..Place::default() })
        };
        let unread = |error: &FileError| {
            let halt = if start == Some(error.offset) {
                let note = "No event begins at --start-offset, or it is damaged";
                Halt::new(Code::EventMalformed).with(Detail::Note(note))
            } else {
                errors::of_file(&error.kind)
            };
            at(halt, error.offset)
        };
        let mut seek = start;
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = file.read(&mut chunk).map_err(|error| cannot(&error))?;
            if read == 0 {
                break;
            }
            reader.feed(chunk.get(..read).unwrap_or_default());
            loop {
                match reader.next_event() {
                    Ok(None) => break,
                    Err(error) => return Err(unread(&error).into()),
                    Ok(Some((offset, event))) => {
                        if event.header.event_type == EventType::FormatDescription
                            && let Some(to) = seek.take()
                        {
                            // The format description tells how to read the rest; only then may one leap.
                            self.summary.format(&event.body);
                            let length = file.metadata().map_err(|error| cannot(&error))?.len();
                            if to > length {
                                return Err(invalid("start-offset", "lies beyond the end of the file").into());
                            }
                            assembler
                                .file_event(event, &name, offset)
                                .map_err(|halt| halt.at(assembler.place()))?;
                            reader
                                .seek(to)
                                .map_err(|_| invalid("start-offset", "lies before the first event"))?;
                            file.seek(io::SeekFrom::Start(to)).map_err(|error| cannot(&error))?;
                            break;
                        }
                        self.event(&mut assembler, event, &name, offset)?;
                    }
                }
            }
        }
        reader.finish().map_err(|error| unread(&error))?;
        if assembler.in_group() {
            // Cut between two events: nothing of the file is damaged, and yet a transaction is not whole.
            let note = Detail::Note("The file is incomplete: it ends inside a transaction");
            let halt = Halt::new(capstan::Code::EventMalformed).with(note);
            let end = Place { offset: Some(reader.offset()), ..Place::default() };
            return Err(halt.at(end).at(assembler.place()).into());
        }
        Ok(())
    }

    fn event(
        &mut self,
        assembler: &mut Assembler,
        event: capstan::core::binlog::Event,
        name: &str,
        offset: u64,
    ) -> Result<(), Failure> {
        self.summary.event(&event);
        let done = assembler.file_event(event, name, offset);
        while let Some(event) = assembler.next_emitted(&mut self.next) {
            self.summary.unit(&event);
            if let Some(lines) = &mut self.lines {
                lines.event(&event, self.wanted.as_ref(), self.text).map_err(|why| match why {
                    Trouble::Value(halt) => Failure::from(halt.at(assembler.place())),
                    // Whoever read our output has seen enough.
                    Trouble::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::other("", 0),
                    Trouble::Io(error) => Failure::other(format!("standard output: {error}"), 4),
                })?;
            }
        }
        done.map_err(|halt| {
            let foreign =
                self.summary.server_version.as_ref().is_some_and(|version| version.contains("MariaDB"));
            let halt = if foreign && halt.code == capstan::Code::UnknownEventType {
                Halt::new(capstan::Code::UnsupportedServer)
                    .with(Detail::Note("The file was written by MariaDB"))
            } else {
                halt
            };
            Failure::from(halt.at(assembler.place()))
        })
    }
}

fn setup(captured: &CapturedSet) -> Setup {
    Setup {
        captured: captured.clone(),
        lower_case_table_names: 0,
        position: Position::new(GtidSet::new(), ""),
        verify: BTreeMap::new(),
        until: None,
        checksum: true,
        stream_above: Limits::default().stream_above,
        row_event_max: EVENT_MAX,
        offline: true,
    }
}

enum Trouble {
    Value(Halt),
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Lines on standard output, each transaction only once it is whole.
struct Lines<'a> {
    out: BufWriter<io::StdoutLock<'a>>,
    text: String,
    spill: Option<File>,
    line: Option<TransactionLine>,
    show: bool,
    walk: RowWalk,
}

impl<'a> Lines<'a> {
    fn new(out: io::StdoutLock<'a>) -> Self {
        Self {
            out: BufWriter::new(out),
            text: String::new(),
            spill: None,
            line: None,
            show: true,
            walk: RowWalk::default(),
        }
    }

    fn event(&mut self, event: &Event, wanted: Option<&GtidSet>, text: TextOptions) -> Result<(), Trouble> {
        match event {
            Event::TxBegin(begin) => {
                self.text.clear();
                self.spill = None;
                self.show = wanted.is_none_or(|set| begin.gtid.is_some_and(|gtid| set.contains(&gtid)));
                if !begin.schema_change {
                    self.line =
                        Some(TransactionLine::begin(&mut self.text, begin.gtid.as_ref(), begin.committed_at));
                }
            }
            Event::Rows(rows) if self.show => {
                let Some(line) = &mut self.line else { return Ok(()) };
                self.walk.start(rows);
                while let Ok(Some(row)) = self.walk.next(rows) {
                    let table = rows.table();
                    line.change(&mut self.text, row.before(), row.after(), text).map_err(|why| {
                        let column = table.columns().get(why.column).map(|column| column.name.clone());
                        Trouble::Value(
                            Halt::new(Code::ValueMalformed)
                                .of_table(table.schema(), table.table())
                                .at(Place { column, ..Place::default() }),
                        )
                    })?;
                    if self.text.len() > SPILL_ABOVE {
                        let spill = match &mut self.spill {
                            Some(spill) => spill,
                            None => self.spill.insert(tempfile::tempfile()?),
                        };
                        spill.write_all(self.text.as_bytes())?;
                        self.text.clear();
                    }
                }
            }
            Event::SchemaChange(change) if self.show => match &mut self.line {
                Some(line) => line.schema_change(&mut self.text, &text_of(change)),
                None => write_schema_change(
                    &mut self.text,
                    change.gtid.as_ref(),
                    change.committed_at,
                    &text_of(change),
                ),
            },
            Event::TxCommit(commit) => {
                if let Some(line) = self.line.take() {
                    match commit.xa {
                        Some(state) => line.end_xa(&mut self.text, state),
                        None => line.end(&mut self.text),
                    }
                }
                if self.show {
                    self.print()?;
                }
            }
            Event::TxAbort { .. } => {
                self.line = None;
                self.text.clear();
                self.spill = None;
            }
            Event::Rows(_)
            | Event::SchemaChange(_)
            | Event::Table(_)
            | Event::Claim { .. }
            | Event::Progress { .. } => {}
        }
        Ok(())
    }

    fn print(&mut self) -> io::Result<()> {
        if let Some(mut spill) = self.spill.take() {
            spill.rewind()?;
            io::copy(&mut spill, &mut self.out)?;
        }
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.out.flush()
    }
}

fn text_of(change: &SchemaChange) -> SchemaChangeText<'_> {
    SchemaChangeText {
        kind: change.kind,
        tables: &change.tables,
        rows: change.rows,
        statement: &change.statement,
    }
}

/// Counts of a file.
#[derive(Default)]
struct Summary {
    server_version: Option<String>,
    bytes: u64,
    events: BTreeMap<String, u64>,
    transactions: u64,
    schema_changes: u64,
    tables: BTreeMap<String, [u64; 3]>,
    gtids: GtidSet,
    first: Option<SourceTime>,
    last: Option<SourceTime>,
}

impl Summary {
    fn format(&mut self, body: &[u8]) {
        if let Ok(format) = FormatDescription::decode(body) {
            self.server_version = Some(format.server_version);
        }
    }

    fn event(&mut self, event: &capstan::core::binlog::Event) {
        if event.header.event_type == EventType::FormatDescription {
            self.format(&event.body);
        }
        self.bytes += u64::from(event.header.event_size);
        *self.events.entry(event.header.event_type.to_string()).or_default() += 1;
    }

    fn unit(&mut self, event: &Event) {
        match event {
            Event::TxBegin(begin) => {
                self.first = self.first.or(begin.committed_at);
                self.last = begin.committed_at.or(self.last);
                if begin.schema_change {
                    self.schema_changes += 1;
                } else {
                    self.transactions += 1;
                }
            }
            Event::Rows(rows) => {
                let name = format!("{}.{}", rows.table().schema(), rows.table().table());
                let at = match rows.kind() {
                    capstan::core::binlog::rows::RowsKind::Insert => 0,
                    capstan::core::binlog::rows::RowsKind::Update
                    | capstan::core::binlog::rows::RowsKind::PartialUpdate => 1,
                    capstan::core::binlog::rows::RowsKind::Delete => 2,
                };
                if let Some(count) = self.tables.entry(name).or_default().get_mut(at) {
                    *count += rows.validate().unwrap_or(0);
                }
            }
            Event::TxCommit(commit) => {
                if let Some(gtid) = &commit.gtid {
                    self.gtids.add(gtid);
                }
            }
            Event::Table(_)
            | Event::SchemaChange(_)
            | Event::TxAbort { .. }
            | Event::Claim { .. }
            | Event::Progress { .. } => {}
        }
    }

    fn print(&self, path: &Path, output: Output) {
        let time = |at: Option<SourceTime>| {
            at.map(|at| {
                let mut text = String::new();
                write_time(&mut text, at);
                text
            })
        };
        let tables: BTreeMap<&str, serde_json::Value> = self
            .tables
            .iter()
            .map(|(name, [inserts, updates, deletes])| {
                (name.as_str(), json!({ "inserts": inserts, "updates": updates, "deletes": deletes }))
            })
            .collect();
        if output == Output::Json {
            say!(
                "{}",
                json!({
                    "file": path.display().to_string(),
                    "server_version": self.server_version,
                    "bytes": self.bytes,
                    "events": self.events,
                    "transactions": self.transactions,
                    "schema_changes": self.schema_changes,
                    "tables": tables,
                    "gtid_set": self.gtids.to_string(),
                    "first_commit": time(self.first),
                    "last_commit": time(self.last),
                })
            );
            return;
        }
        say!("{}", path.display());
        say!("  written by      {}", self.server_version.as_deref().unwrap_or("unknown"));
        say!("  event bytes     {}", self.bytes);
        say!("  transactions    {}", self.transactions);
        say!("  schema changes  {}", self.schema_changes);
        say!("  GTID set        {}", self.gtids);
        say!(
            "  commits         {} to {}",
            time(self.first).as_deref().unwrap_or("-"),
            time(self.last).as_deref().unwrap_or("-")
        );
        for (name, count) in &self.events {
            say!("  {count:>10}  {name}");
        }
        for (name, [inserts, updates, deletes]) in &self.tables {
            say!("  {name}: {inserts} inserts, {updates} updates, {deletes} deletes");
        }
    }
}
