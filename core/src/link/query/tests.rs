//! Answers captured from MySQL 9.7.4 (with and without DEPRECATE_EOF) and 5.6.24, and bent ones.

use super::*;
use alloc::format;
use alloc::vec;
use proptest::prelude::*;

/// `SELECT 7 AS a, NULL AS b, 'x' AS c`
const HEAD: &[u8] = b"\x03";
const COLUMN_A: &[u8] = b"\x03def\x00\x00\x00\x01a\x00\x0c\x3f\x00\x02\x00\x00\x00\x08\x81\x00\x00\x00\x00";
const COLUMN_B: &[u8] = b"\x03def\x00\x00\x00\x01b\x00\x0c\x3f\x00\x00\x00\x00\x00\x06\x80\x00\x00\x00\x00";
const COLUMN_C: &[u8] = b"\x03def\x00\x00\x00\x01c\x00\x0c\x2d\x00\x04\x00\x00\x00\xfd\x01\x00\x1f\x00\x00";
const ROW: &[u8] = b"\x01\x37\xfb\x01\x78";
const EOF: &[u8] = b"\xfe\x00\x00\x02\x00";
const END: &[u8] = b"\xfe\x00\x00\x02\x00\x00\x00";
/// `DO 1`
const OK: &[u8] = b"\x00\x00\x00\x02\x00\x00\x00";
/// `SELECT exp(710 * (n = 3)) …`, after two rows.
const OUT_OF_RANGE: &[u8] = b"\xff\x9a\x06#22003DOUBLE value is out of range in 'exp((710 * (`t`.`n` = 3)))'";

const NEW: Capabilities = Capabilities::DEPRECATE_EOF;
const OLD: Capabilities = Capabilities(0);

fn play_within(
    limits: QueryLimits,
    capabilities: Capabilities,
    server: &[&[u8]],
) -> Result<Option<QueryResult>, QueryError> {
    let mut query = Query::new(capabilities, limits);
    for (n, payload) in server.iter().enumerate() {
        match query.on_payload(&Bytes::copy_from_slice(payload))? {
            QueryStep::More(next) => query = next,
            QueryStep::Done(result) => {
                assert_eq!(n + 1, server.len(), "ended early");
                return Ok(Some(result));
            }
        }
    }
    Ok(None)
}

fn play(capabilities: Capabilities, server: &[&[u8]]) -> Result<Option<QueryResult>, QueryError> {
    play_within(QueryLimits::default(), capabilities, server)
}

fn rows(result: Result<Option<QueryResult>, QueryError>) -> ResultSet {
    match result {
        Ok(Some(QueryResult::Rows(rows))) => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_set_with_and_without_eof_packets() {
    let new: &[&[u8]] = &[HEAD, COLUMN_A, COLUMN_B, COLUMN_C, ROW, ROW, END];
    let old: &[&[u8]] = &[HEAD, COLUMN_A, COLUMN_B, COLUMN_C, EOF, ROW, ROW, EOF];
    for (capabilities, server) in [(NEW, new), (OLD, old)] {
        let result = rows(play(capabilities, server));
        let names: Vec<&str> = result.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        // LONGLONG, NULL, VAR_STRING; binary, binary, utf8mb4_general_ci
        let types: Vec<_> = result.columns.iter().map(|c| (c.type_code, c.collation, c.decimals)).collect();
        assert_eq!(types, [(0x08, 63, 0), (0x06, 63, 0), (0xfd, 45, 0x1f)]);
        assert_eq!(result.columns[0].flags, 0x81);
        let row = [Some(Bytes::from_static(b"7")), None, Some(Bytes::from_static(b"x"))];
        assert_eq!(result.rows, [row.clone(), row]);
        assert_eq!(result.column("C"), Some(2));
        assert_eq!(result.cell(1, 2), Some(Some(&Bytes::from_static(b"x"))));
        assert_eq!(result.cell(1, 1), Some(None));
        assert_eq!((result.cell(2, 0), result.cell(0, 3)), (None, None));
        assert_eq!(result.single_row(), None);
        assert_eq!(format!("{result:?}"), "ResultSet(3 columns, 2 rows)");
    }
}

#[test]
fn no_rows_at_all() {
    assert!(rows(play(NEW, &[b"\x01", COLUMN_A, END])).rows.is_empty());
    assert!(rows(play(OLD, &[b"\x01", COLUMN_A, EOF, EOF])).rows.is_empty());
    let ok = play(NEW, &[OK]).unwrap();
    assert_eq!(ok, Some(QueryResult::Ok(OkPacket { status: 2, ..OkPacket::default() })));
}

#[test]
fn an_error_anywhere_is_the_answer() {
    let column = COLUMN_A;
    for (capabilities, server) in [
        (NEW, &[OUT_OF_RANGE][..]),
        (NEW, &[b"\x01", OUT_OF_RANGE]),
        (OLD, &[b"\x01", column, OUT_OF_RANGE]),
        (NEW, &[b"\x01", column, b"\x011", b"\x011", OUT_OF_RANGE]),
        (OLD, &[b"\x01", column, EOF, b"\x011", b"\x011", OUT_OF_RANGE]),
    ] {
        let result = play(capabilities, server).unwrap();
        let Some(QueryResult::Failed(error)) = result else { panic!("{result:?}") };
        assert_eq!((error.number(), error.sqlstate()), (1690, Some("22003")));
    }
}

/// `0xfe` starts the end of the rows, and a row whose first cell is longer than any packet.
#[test]
fn a_row_that_starts_like_its_end() {
    let len = PACKET_LEN_MAX + 1;
    let row = [&[0xfe][..], &(len as u64).to_le_bytes(), &vec![b'x'; len]].concat();
    for (capabilities, server) in
        [(NEW, &[b"\x01", COLUMN_A, &row, END][..]), (OLD, &[b"\x01", COLUMN_A, EOF, &row, EOF])]
    {
        let result = rows(play(capabilities, server));
        assert_eq!(result.single_row().unwrap()[0].as_ref().unwrap().len(), len);
    }
    // In the old form 9 bytes are enough to be a row.
    let short = b"\xfe\x00\x00\x00\x00\x00\x00\x00\x00";
    let result = rows(play(OLD, &[b"\x01", COLUMN_A, EOF, short, EOF]));
    assert_eq!(result.cell(0, 0), Some(Some(&Bytes::new())));
}

#[test]
fn what_no_statement_of_ours_causes() {
    for (server, want) in [
        (&[&b"\xfb/etc/passwd"[..]][..], QueryError::LocalInfileRefused),
        (&[b"\x00\x00\x00\x0a\x00\x00\x00"], QueryError::MoreResults),
        (&[b"\x01", COLUMN_A, b"\xfe\x00\x00\x0a\x00\x00\x00"], QueryError::MoreResults),
    ] {
        assert_eq!(play(NEW, server), Err(want), "{server:02x?}");
    }
    assert_eq!(play(OLD, &[b"\x01", COLUMN_A, EOF, b"\xfe\x00\x00\x0a\x00"]), Err(QueryError::MoreResults));
}

#[test]
fn what_does_not_add_up() {
    for server in [
        &[&b""[..]][..],
        &[b"\x01\x00"],
        // 0 in a long form, and more columns than a table can have
        &[b"\xfc\x00\x00"],
        &[b"\xfc\x01\x10"],
        &[b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"],
        &[b"\x01", b""],
        &[b"\x01", &COLUMN_A[..COLUMN_A.len() - 3]],
        &[b"\x01", COLUMN_A, b""],
        &[b"\x01", COLUMN_A, b"\xfe"],
        // A cell longer than its row, a cell too many, a cell too few
        &[b"\x01", COLUMN_A, b"\x02x"],
        &[b"\x01", COLUMN_A, b"\x01x\x01y"],
        &[b"\x02", COLUMN_A, COLUMN_B, b"\x01x"],
    ] {
        assert_eq!(play(NEW, server), Err(QueryError::Malformed(Malformed)), "{server:02x?}");
    }
    assert_eq!(play(OLD, &[b"\x01", COLUMN_A, ROW]), Err(QueryError::Malformed(Malformed)));
}

#[test]
fn limits() {
    let few = QueryLimits { rows: 2, ..QueryLimits::default() };
    let server: &[&[u8]] = &[b"\x01", COLUMN_A, b"\x011", b"\x011", b"\x011", END];
    assert_eq!(play_within(few, NEW, server), Err(QueryError::TooLarge));
    let enough = QueryLimits { rows: 3, ..QueryLimits::default() };
    assert_eq!(rows(play_within(enough, NEW, server)).rows.len(), 3);

    let small = QueryLimits { bytes: 1000, ..QueryLimits::default() };
    assert_eq!(
        play_within(small, NEW, &[b"\x01", COLUMN_A, &[100; 900]]),
        Err(QueryError::Malformed(Malformed))
    );
    let cell = [&b"\xfc\x84\x03"[..], &[b'x'; 900]].concat();
    assert_eq!(play_within(small, NEW, &[b"\x01", COLUMN_A, &cell]), Err(QueryError::TooLarge));
    // Empty cells cost a byte on the wire and more than that in memory.
    let row = [0; 3];
    let mut server: Vec<&[u8]> = vec![b"\x03", COLUMN_A, COLUMN_B, COLUMN_C];
    server.extend(core::iter::repeat_n(&row[..], 20));
    assert_eq!(play_within(small, NEW, &server), Err(QueryError::TooLarge));
}

#[test]
fn debug_shows_no_value() {
    let query = Query::new(NEW, QueryLimits::default());
    let QueryStep::More(query) = query.on_payload(&Bytes::from_static(b"\x01")).unwrap() else { panic!() };
    let QueryStep::More(query) = query.on_payload(&Bytes::from_static(COLUMN_A)).unwrap() else { panic!() };
    let step = query.on_payload(&Bytes::from_static(b"\x08sentinel")).unwrap();
    assert!(!format!("{step:?}").contains("115, 101") && !format!("{step:?}").contains("sentinel"));
    let QueryStep::More(query) = step else { panic!() };
    let step = query.on_payload(&Bytes::from_static(END)).unwrap();
    assert!(!format!("{step:?}").contains("sentinel"));
}

proptest! {
    /// Any cells come back as they were sent, sliced and not copied.
    #[test]
    fn cells_round_trip(
        sent in prop::collection::vec(prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..300)), 2), 0..5),
    ) {
        let packets: Vec<Vec<u8>> = sent.iter().map(|row| {
            row.iter().flat_map(|cell| match cell {
                None => vec![0xfb],
                Some(cell) if cell.len() < 251 => [&[cell.len() as u8][..], cell].concat(),
                Some(cell) => [&[0xfc][..], &(cell.len() as u16).to_le_bytes(), cell].concat(),
            }).collect()
        }).collect();
        let mut server: Vec<&[u8]> = vec![b"\x02", COLUMN_A, COLUMN_B];
        server.extend(packets.iter().map(Vec::as_slice));
        server.push(END);
        let got: Vec<Vec<Option<Vec<u8>>>> = rows(play(NEW, &server)).rows.iter()
            .map(|row| row.iter().map(|cell| cell.as_ref().map(|bytes| bytes.to_vec())).collect())
            .collect();
        prop_assert_eq!(got, sent);
    }

    /// Nonsense ends in a result or an error, never in a panic.
    #[test]
    fn nonsense_is_survived(
        server in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            Just(HEAD.to_vec()), Just(COLUMN_A.to_vec()), Just(ROW.to_vec()), Just(EOF.to_vec()),
        ], 0..12),
        old in any::<bool>(),
    ) {
        let mut query = Query::new(if old { OLD } else { NEW }, QueryLimits::default());
        for payload in server {
            match query.on_payload(&payload.into()) {
                Ok(QueryStep::More(next)) => query = next,
                Ok(QueryStep::Done(_)) | Err(_) => return Ok(()),
            }
        }
    }
}

/// The same answers, row by row.
#[test]
fn rows_are_handed_out_as_they_come() {
    let play = |capabilities, server: &[&[u8]]| {
        let mut stream = RowStream::new(capabilities);
        let mut rows = Vec::new();
        for payload in server {
            match stream.on_payload(&Bytes::copy_from_slice(payload)).unwrap() {
                RowStep::More(next) => stream = next,
                RowStep::Row(next, row) => {
                    rows.push(row);
                    stream = next;
                }
                RowStep::Done(end) => return (rows, Some(end)),
            }
        }
        (rows, None)
    };
    let new: &[&[u8]] = &[HEAD, COLUMN_A, COLUMN_B, COLUMN_C, ROW, ROW, END];
    let old: &[&[u8]] = &[HEAD, COLUMN_A, COLUMN_B, COLUMN_C, EOF, ROW, ROW, EOF];
    for (capabilities, server) in [(NEW, new), (OLD, old)] {
        let (rows, end) = play(capabilities, server);
        assert_eq!((rows.len(), end), (2, Some(RowsEnd::Complete)));
        let mut cells = rows[0].cells();
        assert_eq!(rows[0].columns(), 3);
        for want in [Some(&b"7"[..]), None, Some(b"x")] {
            assert_eq!(cells.cell(), Ok(want));
        }
        assert_eq!(cells.clone().cell(), Err(Malformed));
        assert_eq!(cells.end(), Ok(()));
    }
    let (rows, end) = play(NEW, &[HEAD, COLUMN_A, COLUMN_B, COLUMN_C, ROW, OUT_OF_RANGE]);
    assert!(matches!(end, Some(RowsEnd::Failed(error)) if error.number() == 1690));
    assert_eq!(rows.len(), 1);
    assert!(matches!(play(NEW, &[OK]).1, Some(RowsEnd::NoRows(_))));
    assert_eq!(play(NEW, &[HEAD, COLUMN_A]), (Vec::new(), None));
}

/// `page_protocol_com_stmt_prepare`: a number, columns, no parameters.
#[test]
fn a_statement_is_prepared_and_its_rows_are_binary() {
    let head: &[u8] = b"\x00\x07\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00";
    let prepared = |capabilities, server: &[&[u8]]| {
        let mut prepare = Prepare::new(capabilities);
        for (n, payload) in server.iter().enumerate() {
            match prepare.on_payload(&Bytes::copy_from_slice(payload)) {
                Ok(PrepareStep::More(next)) => prepare = next,
                Ok(PrepareStep::Done(number)) => return Ok((number, n + 1)),
                Ok(PrepareStep::Failed(error)) => return Err(Some(error.number())),
                Err(_) => return Err(None),
            }
        }
        Ok((0, 0))
    };
    for (capabilities, server, want) in [
        (NEW, &[head, COLUMN_A, COLUMN_B][..], Ok((263, 3))),
        (OLD, &[head, COLUMN_A, COLUMN_B, EOF], Ok((263, 4))),
        (NEW, &[head, COLUMN_A], Ok((0, 0))),
        (NEW, &[OUT_OF_RANGE], Err(Some(1690))),
        // No columns, a parameter, no such packet, no end.
        (NEW, &[b"\x00\x07\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"], Err(None)),
        (NEW, &[b"\x00\x07\x01\x00\x00\x02\x00\x01\x00\x00\x00\x00"], Err(None)),
        (NEW, &[b"\x01\x07\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00"], Err(None)),
        (NEW, &[b"\x00\x07"], Err(None)),
        (OLD, &[head, COLUMN_A, COLUMN_B, COLUMN_C], Err(None)),
    ] {
        assert_eq!(prepared(capabilities, server), want, "{server:02x?}");
    }
    // 7, NULL, `x`.
    let row: &[u8] = b"\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x01x";
    let mut stream = RowStream::new(NEW);
    for payload in [HEAD, COLUMN_A, COLUMN_B, COLUMN_C] {
        let payload = Bytes::copy_from_slice(payload);
        assert!(stream.binary_row(&payload).unwrap().is_none());
        let RowStep::More(next) = stream.on_payload(&payload).unwrap() else { panic!("the head goes on") };
        stream = next;
    }
    let found = stream.binary_row(&Bytes::copy_from_slice(row)).unwrap().expect("a row");
    assert_eq!(
        (found.types(), format!("{found:?}").as_str()),
        (&[0x08, 0x06, 0xfd][..], "BinaryRow(3 columns, 12 bytes)")
    );
    let (nulls, mut values) = found.parts().unwrap();
    assert_eq!((nulls, values.u64(), values.lenenc_bytes()), (&[0x08][..], Ok(7), Ok(&b"x"[..])));
    assert!(BinaryRow::new(Bytes::from_static(b"\x01\x00"), [8].into()).parts().is_err());
    assert!(BinaryRow::new(Bytes::from_static(b"\x00"), [8].into()).parts().is_err());
    assert!(stream.binary_row(&Bytes::from_static(END)).unwrap().is_none());
}
