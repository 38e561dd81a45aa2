//! Files that a MySQL 9.7.4 server wrote, and what they are put together to.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Assembler, Setup, errors};
use crate::{
    binlog::FileReader,
    capture::CapturedSet,
    deliver::{Event, Position, Seq},
    gtid::GtidSet,
    halt::{Code, Halt},
};

fn setup(offline: bool) -> Setup {
    Setup {
        captured: CapturedSet::everything(),
        lower_case_table_names: 0,
        position: Position::new(GtidSet::new(), ""),
        verify: alloc::collections::BTreeMap::new(),
        until: None,
        checksum: true,
        stream_above: 8 << 20,
        row_event_max: 64 << 20,
        offline,
    }
}

/// The units of a file, one word per event; what halts it comes last.
fn units(bytes: &[u8], setup: Setup) -> (Vec<String>, Option<Halt>) {
    let mut reader = FileReader::new(64 << 20);
    reader.feed(bytes);
    let mut assembler = Assembler::new(setup);
    let mut next = Seq(1);
    let mut seen = Vec::new();
    let mut halt = None;
    loop {
        match reader.next_event() {
            Ok(None) => break,
            Err(error) => {
                halt = Some(errors::of_file(&error.kind));
                break;
            }
            Ok(Some((offset, event))) => {
                let done = assembler.file_event(event, "bin.000001", offset);
                while let Some(event) = assembler.next_emitted(&mut next) {
                    seen.push(word(&event));
                }
                if let Err(error) = done {
                    halt = Some(error.at(assembler.place()));
                    break;
                }
            }
        }
    }
    if let Some(progress) = assembler.take_progress(&mut next) {
        seen.push(word(&progress));
    }
    (seen, halt)
}

fn word(event: &Event) -> String {
    match event {
        Event::Claim { .. } => "claim".to_string(),
        Event::TxBegin(begin) if begin.schema_change => format!("{}:ddl", begin.seq.0),
        Event::TxBegin(begin) => format!("{}:tx", begin.seq.0),
        Event::Table(table) => format!("table {}", table.table()),
        Event::Rows(rows) => format!("{:?} {}", rows.kind(), rows.validate().unwrap()),
        Event::SchemaChange(change) => format!("{:?}", change.kind),
        Event::TxCommit(commit) => format!("commit:{}", commit.gtid.map_or(0, |gtid| gtid.gno())),
        Event::TxAbort { comes_again, .. } => format!("abort {comes_again}"),
        Event::Progress { advance, .. } => format!("progress {}", advance.gtids.count()),
    }
}

macro_rules! case {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/cases/", $name, ".binlog"))
    };
}

#[test]
fn dump_cases() {
    for (name, bytes) in [("27", &case!("BL-27")[..]), ("29", case!("BL-29")), ("53", case!("BL-53"))] {
        std::println!("{name} {:?}", units(bytes, setup(false)));
    }
    let _ = Code::ALL;
}
