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

macro_rules! case {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/cases/", $name, ".binlog"))
    };
}

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

#[test]
fn a_column_that_is_left_out_is_absent_and_the_others_stay() {
    let captured = CapturedSet::parse(&[], &[], &["*.t.v"]).unwrap();
    let mut reader = FileReader::new(1 << 20);
    reader.feed(case!("BL-53"));
    let mut assembler = Assembler::new(Setup { captured, ..setup(false) });
    let (mut next, mut rows) = (Seq(1), 0);
    while let Some((offset, event)) = reader.next_event().unwrap() {
        assembler.file_event(event, "bin.000001", offset).unwrap();
        while let Some(event) = assembler.next_emitted(&mut next) {
            let Event::Rows(event) = event else { continue };
            let mut walk = crate::binlog::rows::RowWalk::default();
            walk.start(&event);
            while let Some(row) = walk.next(&event).unwrap() {
                for row in row.before().into_iter().chain(row.after()) {
                    assert!(matches!(row.get(0), Ok(crate::value::Value::Int(_))));
                    assert!(matches!(row.get(2), Ok(crate::value::Value::Absent)) && !row.is_present(2));
                    assert!(row.raw(0).is_some() && row.raw(2).is_none());
                    rows += 1;
                }
            }
        }
    }
    assert_eq!(rows, 13);
}

/// What a server logged with `binlog_row_value_options=PARTIAL_JSON`, in payloads and outside: after images
/// are whole, each row is what it was before the next change of it, and at the end what `SELECT` showed.
#[test]
fn partial_updates_of_json_are_the_rows_that_the_server_shows() {
    let truth = include_str!("../../../tests/fixtures/captured/partial-json-whole.tsv");
    let captured = CapturedSet::parse(&["d.t"], &[], &[]).unwrap();
    let mut reader = FileReader::new(64 << 20);
    reader.feed(include_bytes!("../../../tests/fixtures/captured/partial-json-whole.binlog"));
    let mut assembler = Assembler::new(Setup { captured, ..setup(false) });
    let (mut next, mut state, mut updates) = (Seq(1), alloc::collections::BTreeMap::new(), 0);
    while let Some((offset, event)) = reader.next_event().unwrap() {
        assembler.file_event(event, "bin.000001", offset).unwrap();
        while let Some(event) = assembler.next_emitted(&mut next) {
            let Event::Rows(event) = event else { continue };
            assert!(event.is_full());
            let mut walk = crate::binlog::rows::RowWalk::default();
            walk.start(&event);
            while let Some(row) = walk.next(&event).unwrap() {
                if let Some(before) = row.before() {
                    updates += usize::from(row.after().is_some());
                    assert_eq!(state.remove(&key(before)), Some(shown(before)));
                }
                if let Some(after) = row.after() {
                    assert_eq!(state.insert(key(after), shown(after)), None);
                }
            }
        }
    }
    assert_eq!(updates, 46);
    let state: Vec<_> = state.into_values().collect();
    let want: Vec<_> = truth.lines().skip(1).collect();
    assert_eq!(state.len(), want.len());
    for (found, want) in state.iter().zip(want) {
        assert_eq!(found, want);
    }

    fn key(row: crate::binlog::rows::Row<'_>) -> i64 {
        let Ok(crate::value::Value::Int(id)) = row.get(0) else { panic!("an id") };
        id
    }

    /// As the fixtures' truth is written.
    fn shown(row: crate::binlog::rows::Row<'_>) -> String {
        use crate::value::Value;
        let values = row.values().map(|value| {
            let value = value.unwrap().1;
            if let Value::Int(n) = value {
                n.to_string()
            } else if let Value::Text(text) = value {
                text.to_str().unwrap().replace('\\', "\\\\")
            } else if let Value::Json(json) = value {
                let mut text = String::new();
                json.write_text(&mut text).unwrap();
                assert_eq!(json.validate(), Ok(()));
                text.replace('\\', "\\\\")
            } else {
                assert_eq!(value, Value::Null);
                String::from("\\N")
            }
        });
        values.collect::<Vec<_>>().join("\t")
    }
}

/// The units of a file, one word per event; what halts it comes last.
fn units(bytes: &[u8], setup: Setup) -> (Vec<String>, Option<Halt>) {
    let mut reader = FileReader::new(64 << 20);
    reader.feed(bytes);
    let mut assembler = Assembler::new(setup);
    let mut next = Seq(1);
    let mut seen = Vec::new();
    let halt;
    loop {
        match reader.next_event() {
            Ok(None) => {
                halt = reader.finish().err().map(|error| errors::of_file(&error.kind));
                break;
            }
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
        Event::SnapshotRows(chunk) => format!("chunk {}", chunk.number),
        Event::Progress { advance, .. } => format!("progress {}", advance.gtids.count()),
    }
}

macro_rules! binlog {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/fixtures/binlog/", $name, ".binlog"))
    };
}

#[test]
fn files_of_a_server_come_out_as_whole_units_in_order() {
    for (name, bytes, want) in [
        (
            "upserts, REPLACE",
            &case!("BL-53")[..],
            "1:ddl CreateTable commit:240 2:tx table t Insert 2 commit:241 3:tx Update 1 commit:242 \
             4:tx Insert 1 Update 1 commit:243 5:tx Delete 1 Update 1 commit:244 6:tx Insert 1 commit:245 \
             7:tx Update 1 commit:246",
        ),
        (
            "CREATE TABLE … SELECT is one group, its schema change before its rows",
            case!("BL-27"),
            "1:ddl CreateTable commit:177 2:tx table src Insert 2 commit:178 \
             3:tx CreateTableSelect table c1 Insert 2 commit:179 4:tx CreateTableSelect table c 2 Insert 1 commit:180 \
             5:tx CreateTableSelect commit:181 6:tx CreateTableSelect table c4 Insert 2 commit:182 \
             7:ddl DropTable commit:183",
        ),
        (
            "a renamed table has its new layout",
            case!("BL-43"),
            "1:ddl CreateTable commit:280 2:tx table t Insert 1 commit:281 3:ddl CreateTable commit:282 \
             4:tx table _t_new Insert 1 commit:283 5:ddl RenameTable commit:284 6:tx table t Insert 1 commit:285 \
             7:tx table _t_old Update 1 commit:286 8:ddl DropTable commit:287 9:ddl CreateDatabase commit:288 \
             10:ddl RenameTable commit:289 11:tx table t Insert 1 commit:290 12:ddl DropDatabase commit:291",
        ),
        (
            "compressed transactions",
            binlog!("payload"),
            "1:ddl CreateDatabase commit:1 2:ddl CreateTable commit:2 3:tx table t Insert 1 commit:3 \
             4:tx Insert 1 Update 1 Delete 1 commit:4 5:tx Insert 1 commit:5 6:tx Insert 1 Insert 1 commit:6",
        ),
        (
            "tagged GTIDs",
            binlog!("tagged"),
            "1:ddl CreateDatabase commit:1 2:ddl CreateTable commit:2 3:tx table t Insert 1 commit:1 \
             4:tx Insert 1 commit:2 5:tx Insert 1 commit:1 6:tx Insert 1 commit:9223372036854775806 \
             7:tx Insert 1 commit:128 8:tx Insert 1 commit:7 9:tx Insert 1 commit:5 10:tx Insert 1 commit:3",
        ),
    ] {
        let (words, halt) = units(bytes, setup(false));
        assert_eq!(words.join(" "), want, "{name}");
        assert_eq!(halt, None, "{name}");
    }
}

#[test]
fn what_a_session_overrides_halts_by_name_before_it() {
    for (name, bytes, before, code, offset) in [
        ("row image MINIMAL", &case!("BL-11")[..], "1:ddl CreateTable commit:52", Code::PartialRowImage, 836),
        ("two-phase XA", case!("BL-25"), "1:ddl CreateTable commit:156", Code::XaTransaction, 766),
        (
            "statement format",
            case!("BL-29"),
            "1:ddl CreateTable commit:199 2:tx table t Insert 1 commit:200",
            Code::StatementLoggedChange,
            944,
        ),
    ] {
        let (words, halt) = units(bytes, setup(false));
        let halt = halt.unwrap();
        assert_eq!(words.join(" "), before, "{name}");
        assert_eq!(halt.code, code, "{name}");
        let place = halt.place.unwrap();
        assert_eq!((place.offset, place.file.as_deref()), (Some(offset), Some("bin.000001")), "{name}");
        assert!(place.gtid.is_some(), "{name}");
    }
}

#[test]
fn a_table_that_comes_into_the_set_or_leaves_it_is_told_with_what_happens_to_its_rows() {
    // `t` is renamed away and `_t_new` takes its name; then `t` goes to another schema.
    let captured = CapturedSet::parse(&["d01.t"], &[], &[]).unwrap();
    let mut reader = FileReader::new(1 << 20);
    reader.feed(case!("BL-43"));
    let mut assembler = Assembler::new(Setup { captured, ..setup(false) });
    let (mut next, mut seen) = (Seq(1), Vec::new());
    while let Some((offset, event)) = reader.next_event().unwrap() {
        assembler.file_event(event, "bin.000001", offset).unwrap();
        while let Some(event) = assembler.next_emitted(&mut next) {
            if let Event::SchemaChange(change) = event {
                seen.push(format!("{:?} {:?}", change.kind, change.rows));
            }
        }
    }
    assert_eq!(
        seen.join(", "),
        "CreateTable Unchanged, RenameTable Unknown, RenameTable ChangedWithoutRowEvents"
    );
}

#[test]
fn what_is_not_captured_only_moves_the_position() {
    let other = || Setup { captured: CapturedSet::parse(&["other.*"], &[], &[]).unwrap(), ..setup(false) };
    for (name, bytes, passed) in [
        ("row image MINIMAL", &case!("BL-11")[..], 6),
        ("statement format", case!("BL-29"), 6),
        ("PARTIAL_JSON", case!("BL-21"), 5),
    ] {
        let (words, halt) = units(bytes, other());
        assert_eq!(halt, None, "{name}");
        assert_eq!(words.len(), 1, "{name}: {words:?}");
        assert!(words.iter().all(|word| word.starts_with("progress")), "{name}: {words:?} {passed}");
    }
    // An XA COMMIT whose prepare was seen and held nothing captured is no halt either.
    let (words, halt) = units(case!("BL-25"), other());
    assert_eq!((words.len(), halt), (1, None));
}

#[test]
fn an_xa_commit_whose_prepare_was_not_seen_is_never_passed_over() {
    let uuid = "afa0164b-ebef-11f1-b210-02fc00000001";
    // Up to and with the prepare of x2, as a start in between would have it.
    let mut position = Position::new(alloc::format!("{uuid}:1-159").parse().unwrap(), "");
    let started = |position: &Position| Setup { position: position.clone(), ..setup(false) };
    let (words, halt) = units(case!("BL-25"), started(&position));
    assert_eq!(words.join(" "), "1:tx table t Insert 1 commit:160");
    assert_eq!(halt.unwrap().code, Code::XaPrepareNotSeen);
    // The same position that remembers the prepare.
    position.advance(&crate::deliver::Advance {
        prepared: alloc::vec![crate::deliver::XaDigest::new(1, b"x2", b"")],
        ..crate::deliver::Advance::default()
    });
    let (_, halt) = units(case!("BL-25"), started(&position));
    assert_eq!(halt, None);
}

#[test]
fn large_transactions_are_emitted_while_they_are_read() {
    let (words, halt) = units(case!("BL-53"), Setup { stream_above: 0, ..setup(false) });
    assert_eq!(halt, None);
    assert!(words.join(" ").contains("4:tx Insert 1 Update 1 commit:243"), "{words:?}");
}

#[test]
fn what_was_processed_is_skipped_and_its_commit_time_must_be_the_same() {
    let uuid = "afa0164b-ebef-11f1-b210-02fc00000001";
    let gtid = alloc::format!("{uuid}:242").parse::<crate::gtid::Gtid>().unwrap();
    let with = |original| {
        let last =
            crate::deliver::LastTransaction { gtid, original_commit: crate::time::SourceTime(original) };
        Setup {
            position: Position::new(alloc::format!("{uuid}:1-242").parse().unwrap(), ""),
            verify: core::iter::once((gtid.tsid(), last)).collect(),
            ..setup(false)
        }
    };
    let (_, halt) = units(case!("BL-53"), with(1));
    assert_eq!(halt.unwrap().code, Code::SourceHistoryChanged);
    let true_time = commit_time(case!("BL-53"), &gtid);
    let (words, halt) = units(case!("BL-53"), with(true_time));
    assert_eq!(halt, None);
    assert!(words.join(" ").starts_with("1:tx table t Insert 1 Update 1 commit:243"), "{words:?}");
}

fn commit_time(bytes: &[u8], gtid: &crate::gtid::Gtid) -> u64 {
    let mut reader = FileReader::new(1 << 20);
    reader.feed(bytes);
    while let Some((_, event)) = reader.next_event().unwrap() {
        if event.header.event_type == crate::binlog::EventType::Gtid {
            let event = crate::binlog::GtidEvent::decode(&event.body).unwrap();
            if event.gtid == Some(*gtid) {
                return event.original_commit_timestamp.unwrap().0;
            }
        }
    }
    panic!("{gtid} is not there")
}

/// The payload events of a file, each taken in pieces of `size` bytes, after `change` was made to it.
fn in_pieces(size: usize, change: impl Fn(&mut Vec<u8>)) -> (Vec<String>, Option<Halt>) {
    let setup = Setup { stream_above: 64 << 10, ..setup(false) };
    let (seen, halt, _) =
        wanted_in_pieces(binlog!("payload"), setup, size, change, |_, event| event[4] == 40);
    (seen, halt)
}

/// A file whose `wanted` events are taken in pieces, and how many these were.
fn wanted_in_pieces(
    bytes: &[u8],
    setup: Setup,
    size: usize,
    change: impl Fn(&mut Vec<u8>),
    wanted: impl Fn(&Assembler, &[u8]) -> bool,
) -> (Vec<String>, Option<Halt>, usize) {
    let mut assembler = Assembler::new(setup);
    let (mut next, mut seen, mut taken) = (Seq(1), Vec::new(), 0);
    let mut rest = &bytes[4..];
    while rest.len() >= 19 {
        let len = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        let (event, after) = rest.split_at(len);
        rest = after;
        let mut event = event.to_vec();
        let mut run = || -> Result<(), Halt> {
            if !wanted(&assembler, &event) {
                let retained = event.len();
                let payload = crate::link::Payload { bytes: event.clone().into(), retained };
                return assembler.event(payload, crate::time::Now(0)).map(|_| ());
            }
            taken += 1;
            change(&mut event);
            assembler.begin_pieces()?;
            for piece in event.chunks(size) {
                assembler.piece(piece)?;
                while assembler.is_inflating() {
                    assembler.inflate(crate::time::Now(0))?;
                }
            }
            assembler.end_pieces()?;
            while assembler.is_inflating() {
                assembler.inflate(crate::time::Now(0))?;
            }
            assert!(!assembler.in_pieces());
            Ok(())
        };
        let done = run();
        while let Some(event) = assembler.next_emitted(&mut next) {
            seen.push(word(&event));
        }
        if let Err(halt) = done {
            seen.extend(assembler.abort().iter().map(word));
            return (seen, Some(halt), taken);
        }
    }
    seen.extend(assembler.take_progress(&mut next).iter().map(word));
    (seen, None, taken)
}

/// Red where the rows of other tables are taken for those of the captured one, where the end of a statement is missed,
/// and where a sum is not looked at.
#[test]
fn rows_that_nobody_wants_pass_by_in_pieces() {
    // Two sessions take turns with tables of one name in two schemas, and others.
    for (bytes, tables) in
        [(&case!("BL-43")[..], "d01.t"), (case!("BL-53"), "other.*"), (case!("BL-13"), "none.*")]
    {
        let one = || Setup {
            captured: CapturedSet::parse(&[tables], &[], &[]).unwrap(),
            stream_above: 0,
            row_event_max: 300,
            ..setup(false)
        };
        let unwanted =
            |assembler: &Assembler, event: &[u8]| assembler.wants_pieces(&event[..27.min(event.len())]);
        let (whole, halt) = units(bytes, Setup { row_event_max: 1 << 20, ..one() });
        assert_eq!(halt, None);
        for size in [1, 3, 26, 27, 28, 1000] {
            let (words, halt, taken) = wanted_in_pieces(bytes, one(), size, |_| {}, unwanted);
            assert_eq!((&words, halt), (&whole, None), "{tables} in pieces of {size}");
            assert!(taken >= 3, "{tables}: {taken}");
            let damaged = |event: &mut Vec<u8>| *event.last_mut().unwrap() ^= 1;
            let (_, halt, _) = wanted_in_pieces(bytes, one(), size, damaged, unwanted);
            assert_eq!(
                halt.map(|halt| halt.code),
                Some(Code::ChecksumMismatch),
                "{tables} in pieces of {size}"
            );
        }
        // The statement is over with it, and its table map is no more.
        let (_, halt, _) = wanted_in_pieces(&doubled(bytes), one(), 7, |_| {}, unwanted);
        assert_eq!(halt.map(|halt| halt.code), Some(Code::TableMapMissing), "{tables}");
    }
}

/// A file in which the first row event that ends its statement comes twice.
fn doubled(bytes: &[u8]) -> Vec<u8> {
    let mut at = 4;
    loop {
        let len = u32::from_le_bytes(bytes[at + 9..at + 13].try_into().unwrap()) as usize;
        if (30..=32).contains(&bytes[at + 4]) && bytes[at + 25] & 1 == 1 {
            return [&bytes[..at + len], &bytes[at..]].concat();
        }
        at += len;
    }
}

#[test]
fn a_payload_taken_in_pieces_gives_the_same_as_a_whole_one() {
    let (whole, _) = units(binlog!("payload"), setup(false));
    for size in [1, 2, 3, 5, 19, 20, 21, 64, 100, 1000, 1 << 20] {
        let (words, halt) = in_pieces(size, |_| {});
        assert_eq!((words, halt), (whole.clone(), None), "pieces of {size}");
    }
}

#[test]
fn a_bad_sum_at_the_end_of_a_payload_in_pieces_commits_nothing() {
    for at in [20, 25, 40, 60, usize::MAX] {
        let (words, halt) = in_pieces(7, |event| {
            let at = at.min(event.len() - 1);
            event[at] ^= 0x10;
        });
        let halt = halt.unwrap();
        assert_eq!(halt.code, Code::ChecksumMismatch, "{at}: {halt}");
        assert_eq!(words.iter().filter(|word| word.starts_with("commit")).count(), 2, "{at}: {words:?}");
    }
}

/// Damaged bytes look like anything; where the checksum holds, what was found is so.
#[test]
fn what_is_wrong_in_a_payload_in_pieces_is_told_where_its_sum_holds() {
    for at in [20, 25, 40, 60] {
        let (words, halt) = in_pieces(7, |event| {
            event[at] ^= 0x10;
            let (body, sum) = event.split_last_chunk_mut::<4>().unwrap();
            *sum = crc32fast::hash(body).to_le_bytes();
        });
        let halt = halt.unwrap();
        assert!(matches!(halt.code, Code::PayloadMalformed | Code::EventMalformed), "{at}: {halt}");
        assert_eq!(words.iter().filter(|word| word.starts_with("commit")).count(), 2, "{at}: {words:?}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let bytes = case!("BL-27");
    for cut in 0..bytes.len() {
        // Between two events a file may end; inside one it is incomplete.
        let _ = units(&bytes[..cut], setup(false));
    }
    for at in 4..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 0xff;
        let (_, halt) = units(&changed, setup(false));
        assert!(halt.is_some(), "a changed byte at {at} went unnoticed");
    }
}
