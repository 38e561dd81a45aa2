//! QUERY events and their status variables.

use super::fixtures::*;
use super::*;

fn queries(file: &[u8]) -> Vec<Query> {
    bodies(file, EventType::Query).iter().map(|body| Query::decode(body).unwrap()).collect()
}

fn find<'a>(queries: &'a [Query], start: &str) -> &'a Query {
    queries.iter().find(|query| query.text.starts_with(start.as_bytes())).unwrap()
}

fn names(query: &Query) -> Vec<&str> {
    match &query.status.updated_databases {
        Some(UpdatedDatabases::Names(names)) => names.iter().map(|name| text(name)).collect(),
        other => panic!("{other:?}"),
    }
}

/// The settings are those of `statements.sql`.
#[test]
fn every_status_variable_a_session_can_cause_is_read() {
    let queries = queries(STATEMENTS);
    let insert = find(&queries, "INSERT INTO t (ts,v)");
    assert_eq!(&insert.schema[..], b"a");
    let status = &insert.status;
    assert_eq!(status.time_zone.as_deref(), Some(&b"+05:30"[..]));
    assert_eq!(status.auto_increment, Some((10, 3)));
    assert_eq!(status.lc_time_names, Some(4));
    assert_eq!(status.microseconds, Some(123_456));
    assert_eq!(status.catalog.as_deref(), Some(&b"std"[..]));
    assert_eq!(status.charset, Some(SessionCharset { client: 255, connection: 255, server: 255 }));
    assert_eq!(status.default_collation_for_utf8mb4, Some(255));
    assert_eq!(names(insert), ["a"]);

    let update = find(&queries, "UPDATE d1.t, d2.t");
    assert_eq!(update.status.table_map_for_update, Some(3));
    assert_eq!(names(update), ["d2", "d1"]);

    let user = find(&queries, "CREATE USER");
    assert_eq!(names(user), ["mysql"]);
    let database = find(&queries, "CREATE DATABASE d1");
    assert_eq!(database.status.default_table_encryption, Some(0));
    assert_eq!(database.status.ddl_xid, Some(0xf0));
    let table = find(&queries, "CREATE TABLE a.t");
    assert_eq!(table.status.explicit_defaults_for_timestamp, Some(true));
    assert_eq!(table.status.sql_require_primary_key, Some(0));

    let alter = find(&queries, "ALTER TABLE t ADD");
    let status = &alter.status;
    let options = flags2::NO_FOREIGN_KEY_CHECKS | flags2::RELAXED_UNIQUE_CHECKS;
    assert_eq!(status.flags2, Some(options));
    assert_eq!(status.sql_mode, Some(sql_mode::ANSI_QUOTES | sql_mode::NO_BACKSLASH_ESCAPES));
    assert_eq!(status.charset, Some(SessionCharset { client: 28, connection: 28, server: 255 }));
}

#[test]
fn seventeen_databases_are_too_many_to_name() {
    let queries = queries(STATEMENTS);
    let drop = find(&queries, "DROP TABLE");
    assert_eq!(drop.status.updated_databases, Some(UpdatedDatabases::TooMany));
    assert_eq!(drop.status.ddl_xid, Some(0x11a), "what follows them is still read");
}

#[test]
fn the_session_of_a_create_table_select() {
    let queries = queries(BL_27);
    let created = find(&queries, "CREATE TABLE \"c 2\"");
    assert_eq!(created.status.sql_mode.unwrap() & sql_mode::ANSI_QUOTES, sql_mode::ANSI_QUOTES);
    assert!(created.text.ends_with(b"START TRANSACTION"));
    assert_eq!(created.status.ddl_xid, None, "it commits with the group");
    assert_eq!(find(&queries, "CREATE TABLE `c4`").status.sql_mode, Some(0));
    assert_eq!(&find(&queries, "BEGIN").schema[..], b"b27");
}

#[test]
fn load_data_is_a_statement_too() {
    let body = bodies(STATEMENTS, EventType::ExecuteLoadQuery).remove(0);
    let query = Query::decode_execute_load(&body).unwrap();
    assert!(query.text.starts_with(b"LOAD DATA INFILE"));
    assert_eq!(names(&query), ["a"]);
}

/// A body with these status variables, in database `d`, with statement `s`.
fn with_status(status: &str) -> Bytes {
    let status = hex(status);
    let length = u16::try_from(status.len()).unwrap().to_le_bytes();
    [&hex("07000000 00000000 01 0000")[..], &length, &status, b"d\0s"].concat().into()
}

/// One status variable after the other, each followed by a known one: a wrong width shows.
#[test]
fn the_width_of_every_status_variable() {
    let with = |status: &str| Query::decode(&with_status(&std::format!("{status} 08 2c01")));
    for status in [
        "",
        "00 01020304",
        "01 0102030405060708",
        "02 03 737464 00",
        "02 00",
        "03 0100 0200",
        "04 ff00 ff00 ff00",
        "05 03 555443",
        "06 03 737464",
        "06 00",
        "07 0400",
        "09 0300000000000000",
        "0a 10000000",
        "0b 02 7531 09 6c6f63616c686f7374",
        "0b 00 00",
        "0c 01 6100",
        "0c 02 6100 6200",
        "0c 01 00",
        "0c fe",
        "0d 40e201",
        "10 01",
        "11 f000000000000000",
        "12 ff00",
        "13 01",
        "14 01",
        "15 01",
    ] {
        let query = with(status).unwrap_or_else(|error| panic!("{status}: {error}"));
        assert_eq!(query.status.charset_database, Some(300), "{status}");
        assert_eq!((&query.schema[..], &query.text[..]), (&b"d"[..], &b"s"[..]));
    }
    let query = with("0b 02 7531 09 6c6f63616c686f7374 02 03 737464 00").unwrap();
    assert_eq!(query.status.invoker, Some(("u1".into(), "localhost".into())));
    assert_eq!(query.status.catalog, Some("std".into()));
}

#[test]
fn status_variables_that_cannot_be_read_are_refused() {
    for (status, want) in [
        ("0e 0000000000000000", DecodeError::UnknownStatusVariable(14)),
        ("0f", DecodeError::UnknownStatusVariable(15)),
        ("16", DecodeError::UnknownStatusVariable(22)),
        ("80 010203", DecodeError::UnknownStatusVariable(128)),
        ("0c 00", DecodeError::Field("number of updated databases")),
        ("0c 11 6100", DecodeError::Field("number of updated databases")),
        ("0c ff", DecodeError::Field("number of updated databases")),
        ("0c 02 6100", DecodeError::Short),
        ("0c 01 61", DecodeError::Short),
        ("0c", DecodeError::Short),
        ("05 ff 555443", DecodeError::Short),
        ("02 01 73", DecodeError::Short),
        ("11 f0", DecodeError::Short),
    ] {
        assert_eq!(Query::decode(&with_status(status)), Err(want), "{status}");
    }
}

#[test]
fn lengths_of_a_statement_must_add_up() {
    // The database's name is not where its length says.
    assert_eq!(
        Query::decode(&hex("07000000 00000000 02 0000 0000 640073")),
        Err(DecodeError::Field("schema name"))
    );
    assert_eq!(Query::decode(&hex("07000000 00000000 01 0000 0000 64")), Err(DecodeError::Short));
    assert_eq!(Query::decode(&hex("07000000 00000000 00 0000 ffff 00")), Err(DecodeError::Short));
    let empty = Query::decode(&hex("07000000 00000000 00 0500 0000 00")).unwrap();
    assert_eq!((empty.thread_id, empty.error_code, empty.schema.len(), empty.text.len()), (7, 5, 0, 0));
}

/// Rule 1, over everything these decoders give out.
#[test]
fn nothing_shown_holds_a_statement_a_name_or_a_row() {
    let planted: &[&str] = &["INSERT", "CREATE", "localhost", "d1", "05:30", "x1", "'a'", "xyz"];
    let mut shown = 0;
    for (_, file) in ALL {
        for event in events(file) {
            if event.header.event_type == EventType::FormatDescription {
                continue;
            }
            let all = std::format!("{event:?} {}", decode(&event.header, &event.body).unwrap());
            assert!(!planted.iter().any(|word| all.contains(word)), "{all}");
            shown += all.len();
        }
    }
    assert!(shown > 10_000);
}
