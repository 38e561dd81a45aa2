//! `capstan inspect`: binlog files, decoded offline.

mod held;
mod input;
mod lines;
mod readable;
mod summary;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::{self, IsTerminal as _},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use capstan::{
    Code, Detail, Halt, Limits, Place, Position, TableVersion,
    core::{
        assemble::{Assembler, Setup, errors},
        binlog::{self, EventType, FileError, FileReader, compare_names},
        capture::CapturedSet,
        deliver::{Event, Seq},
        gtid::GtidSet,
    },
    file::Pieces,
};

use self::{held::Held, input::Input, lines::Lines, readable::Readable, summary::Summary};
use crate::{
    args::{BigintText, Inspect, Output, gtid_set, invalid},
    failure::Failure,
};

/// Longest row event a file may hold.
const EVENT_MAX: usize = 1 << 30;

/// The first event of a file.
const FIRST: u64 = 4;

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
    let options = BigintText::options(args.bigint);
    let terminal = io::stdout().is_terminal();
    let printer = match args.output {
        _ if args.summary => Printer::Nothing,
        Some(Output::Text) => Printer::Readable(Box::new(Readable::new(options)), Held::new()),
        None if terminal => Printer::Readable(Box::new(Readable::new(options)), Held::new()),
        Some(Output::Json) | None => Printer::Lines(Lines::new(options), Held::new()),
    };
    let mut walk = Walk {
        wanted,
        printer,
        summary: Summary::default(),
        unit: Unit::default(),
        show: true,
        next: Seq(1),
    };
    for path in &files {
        let mut pieces = Pieces::new(Input::open(path)?);
        let done = walk.file(&mut pieces, path, &captured, args.start_offset);
        if args.summary {
            walk.summary.print(pieces.get_mut().name(), args.output.unwrap_or(Output::Text));
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

/// Where a unit lies in its file.
#[derive(Clone, Copy, Default)]
struct Unit {
    /// Of its first event.
    offset: u64,
    /// Of its events so far, as the file has them.
    bytes: u64,
}

enum Printer {
    Nothing,
    Lines(Lines, Held),
    Readable(Box<Readable>, Held),
}

impl Printer {
    fn event(&mut self, event: &Event, unit: Unit) -> Result<(), Trouble> {
        let held = match self {
            Self::Nothing => return Ok(()),
            Self::Lines(lines, held) => {
                lines.event(held, event)?;
                held
            }
            Self::Readable(readable, held) => {
                readable.event(held, event, unit)?;
                held
            }
        };
        match event {
            Event::TxCommit(_) => held.print()?,
            Event::TxAbort { .. } => held.discard(),
            Event::TxBegin(_)
            | Event::Rows(_)
            | Event::SchemaChange(_)
            | Event::Table(_)
            | Event::Claim { .. }
            | Event::SnapshotRows(_)
            | Event::Progress { .. } => {}
        }
        Ok(())
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

/// A value that no server can have stored.
fn of_value(table: &TableVersion, column: usize) -> Trouble {
    let column = table.columns().get(column).map(|column| column.name.clone());
    Trouble::Value(
        Halt::new(Code::ValueMalformed)
            .of_table(table.schema(), table.table())
            .at(Place { column, ..Place::default() }),
    )
}

struct Walk {
    wanted: Option<GtidSet>,
    printer: Printer,
    summary: Summary,
    unit: Unit,
    /// Whether the transaction at hand is one of those that are wanted.
    show: bool,
    next: Seq,
}

impl Walk {
    fn file(
        &mut self,
        pieces: &mut Pieces<Input>,
        path: &Path,
        captured: &CapturedSet,
        start: Option<u64>,
    ) -> Result<(), Failure> {
        let mut reader = FileReader::new(EVENT_MAX);
        let mut assembler = Assembler::new(setup(captured));
        let name = match path.file_name() {
            Some(name) if path.as_os_str() != "-" => name.to_string_lossy().into_owned(),
            _ => pieces.get_mut().name().to_owned(),
        };
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
        let mut seek = start.filter(|to| *to != FIRST);
        let mut end = 0;
        while let Some(piece) = pieces.next_piece().map_err(|error| pieces.get_mut().failed(&error))? {
            end += piece.len() as u64;
            // Kept only where it may be read again: its memory is used for the next one.
            let again = seek.map(|_| piece.clone()).unwrap_or_default();
            reader.feed_bytes(piece);
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
                            assembler
                                .file_event(event, &name, offset)
                                .map_err(|halt| halt.at(assembler.place()))?;
                            if to < FIRST {
                                return Err(invalid("start-offset", "lies before the first event").into());
                            }
                            let again = pieces
                                .get_mut()
                                .seek(to, &again, end)?
                                .ok_or_else(|| invalid("start-offset", "lies beyond the end of the file"))?;
                            reader
                                .seek(to)
                                .map_err(|_| invalid("start-offset", "lies before the first event"))?;
                            end = to + again.len() as u64;
                            reader.feed_bytes(again);
                            continue;
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
            let halt = Halt::new(Code::EventMalformed).with(note);
            let end = Place { offset: Some(reader.offset()), ..Place::default() };
            return Err(halt.at(end).at(assembler.place()).into());
        }
        Ok(())
    }

    fn event(
        &mut self,
        assembler: &mut Assembler,
        event: binlog::Event,
        name: &str,
        offset: u64,
    ) -> Result<(), Failure> {
        self.summary.event(&event);
        if !assembler.in_group() {
            self.unit = Unit { offset, bytes: 0 };
        }
        self.unit.bytes += u64::from(event.header.event_size);
        let done = assembler.file_event(event, name, offset);
        while let Some(event) = assembler.next_emitted(&mut self.next) {
            if let Event::TxBegin(begin) = &event {
                self.show =
                    self.wanted.as_ref().is_none_or(|set| begin.gtid.is_some_and(|gtid| set.contains(&gtid)));
            }
            if !self.show {
                continue;
            }
            self.summary.unit(&event, self.unit);
            self.printer.event(&event, self.unit).map_err(|why| match why {
                Trouble::Value(halt) => Failure::from(halt.at(assembler.place())),
                // Whoever read our output has seen enough.
                Trouble::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::other("", 0),
                Trouble::Io(error) => Failure::other(format!("standard output: {error}"), 4),
            })?;
        }
        done.map_err(|halt| {
            let foreign =
                self.summary.server_version.as_ref().is_some_and(|version| version.contains("MariaDB"));
            let halt = if foreign && halt.code == Code::UnknownEventType {
                Halt::new(Code::UnsupportedServer).with(Detail::Note("The file was written by MariaDB"))
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
