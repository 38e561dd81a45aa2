//! Every column type, and what old servers wrote.

use super::*;
use crate::value::KeyPart;

/// Case of an old server: a geometry of no bytes, which is neither NULL nor malformed.
#[test]
fn a_geometry_of_no_bytes_is_a_value() {
    let file = include_bytes!("../../../../../tests/fixtures/captured/mysql56-empty-geometry.binlog");
    let (mut state, mut scratch) = (std::collections::BTreeMap::new(), RowScratch::new());
    for event in rows_of(file) {
        let event = event.unwrap();
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next().unwrap() {
            let row = change.after().unwrap();
            let Ok(Value::Geometry(p)) = row.get(row.len() - 1) else { continue };
            assert_eq!(p.is_empty(), row.raw(2) == Some(&[]));
            let hex: String = p.as_bytes().iter().map(|byte| format!("{byte:02X}")).collect();
            state.insert(shown(row.get(0).unwrap()), format!("{hex}\t{}", shown(row.get(1).unwrap())));
        }
    }
    let state: Vec<_> = state.iter().map(|(id, rest)| format!("{id}\t{rest}")).collect();
    let truth = include_str!("../../../../../tests/fixtures/captured/mysql56-empty-geometry.tsv");
    assert_eq!(state, truth.lines().skip(1).collect::<Vec<_>>());
    assert!(state.iter().any(|line| line.contains("\t\t")));
}

/// Every column type of 9.7 with its extremes, against the text of the server's own SELECT.
#[test]
fn every_type_is_what_the_server_shows() {
    let truth = include_str!("../../../../../tests/fixtures/types/types.txt");
    let mut truth = truth.lines();
    let mut scratch = RowScratch::new();
    let mut values = 0;
    for event in rows_of(TYPES) {
        let event = event.unwrap();
        event.validate().unwrap();
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next().unwrap() {
            let row = change.after().unwrap();
            let mut line = truth.next().unwrap().split('\t');
            let table = event.table().table();
            assert_eq!(line.next(), Some(table));
            let found = row_text(row);
            let names = row.table().columns().iter().map(|c| c.name.as_str());
            for ((column, found), want) in names.zip(found.split(" | ")).zip(line.by_ref()) {
                // Text of doubles differs in form (1e16, 10000000000000000); the number must not.
                let same = match (table, found.parse::<f64>(), want.parse::<f64>()) {
                    ("floats", Ok(found), Ok(want)) => found.to_bits() == want.to_bits(),
                    _ => found == want,
                };
                assert!(same, "{table}.{column}: {found} instead of {want}");
                values += 1;
            }
            assert_eq!(line.next(), None, "{table} has more columns");
        }
    }
    assert_eq!(truth.next(), None, "every row came");
    assert!(values > 1_000, "{values}");
}

#[test]
fn temporals_as_servers_before_5_6_4_wrote_them_in_row_events_of_version_1() {
    let nulls = ["NULL"].repeat(5).join(" | ");
    assert_eq!(
        changes("old-temporals"),
        [
            "insert old: 1 | -838:59:59 | 1000-01-01 00:00:00 | 1970-01-01 00:00:01 | 0000-00-00 | 1901",
            "insert old: 2 | 838:59:59 | 9999-12-31 23:59:59 | 2038-01-19 03:14:07 | 9999-12-31 | 2155",
            "insert old: 3 | -00:00:01 | 0000-00-00 00:00:00 | 0000-00-00 00:00:00 | 2023-02-31 | 0000",
            "insert old: 4 | 00:00:00 | 2023-02-31 01:02:03 | 2024-02-29 12:34:56 | 2023-00-15 | 2024",
            &format!("insert old: 5 | {nulls}"),
            "update old: 3 | -00:00:01 | 0000-00-00 00:00:00 | 0000-00-00 00:00:00 | 2023-02-31 | 0000 -> \
             3 | 12:34:56 | 0000-00-00 00:00:00 | 0000-00-00 00:00:00 | 2023-02-31 | 0000",
            "delete old: 1 | -838:59:59 | 1000-01-01 00:00:00 | 1970-01-01 00:00:01 | 0000-00-00 | 1901",
        ]
    );
}

/// VARCHAR of a table that 4.1 made (type 253), short and with a length of two bytes, beside a CHAR.
#[test]
fn varchars_as_4_1_left_them() {
    let table = Arc::clone(rows_of(file("old-varchar")).remove(0).unwrap().table());
    let types: Vec<_> = table.columns().iter().map(|c| c.column_type.type_name().to_string()).collect();
    assert_eq!(types, ["int", "varchar(20)", "varchar(300)", "char(3)"]);
    let mut scratch = RowScratch::new();
    let mut found = Vec::new();
    for event in rows_of(file("old-varchar")) {
        let event = event.unwrap();
        let mut rows = event.cursor(&mut scratch);
        while let Some(change) = rows.next().unwrap() {
            let row = change.after().unwrap();
            // No collation is known, so the bytes are looked at.
            let text = |at| row.raw(at).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            found.push((text(1), text(2), text(3)));
        }
    }
    let some = |text: &str| Some(text.to_owned());
    let long = some(&"é".repeat(100));
    assert_eq!(found, [(some("abc"), some("häuser"), some("xyz")), (None, long, some(""))]);
}

/// DECIMAL of a table that 4.1 made: nothing tells how long its value is.
#[test]
fn a_decimal_as_4_1_left_it_is_refused_by_name() {
    let decimal = include_bytes!("../../../../../tests/fixtures/types/old-decimal.binlog");
    let map = events(decimal).into_iter().find(|(type_code, _)| *type_code == 19).unwrap().1;
    assert_eq!(
        parse_table_map(&map),
        Err(crate::binlog::table_map::TableMapError::UnsupportedColumnType { column: 1, type_code: 0 })
    );
}

/// Without metadata no sign, no collation and no label is known: what can be read is read, what cannot
/// be told is said so.
#[test]
fn rows_of_a_server_that_wrote_no_metadata() {
    let unknown = "<the character set is not known>";
    let temporals = "-00:00:00.01 | 2024-02-29 23:59:59.999999 | 2024-02-29 12:34:56.789 | 1.5 | 2024";
    let rest = format!("1 | -1234567.891 | {unknown} | {unknown} | {unknown} | 2 | 5 | 2049 | {temporals}");
    let nulls = ["NULL"].repeat(14).join(" | ");
    assert_eq!(
        changes("mysql56"),
        [
            format!("insert plain: 1 | -1 | {rest}"),
            format!("insert plain: 2 | {nulls}"),
            format!("update plain: 1 | -1 | {rest} -> 1 | 2 | {rest}"),
            format!("delete plain: 2 | {nulls}"),
        ]
    );
    let table = Arc::clone(rows_of(file("mysql56")).remove(0).unwrap().table());
    assert!(!table.names_known() && !table.signedness_known() && !table.collations_known());
}

#[test]
fn types_keys_and_visibility_come_with_the_table() {
    let tables: Vec<_> = rows_of(TYPES).into_iter().map(|e| e.unwrap().table().clone()).collect();
    let table = |name: &str| tables.iter().find(|t| t.table() == name).unwrap();
    let types = |name: &str| {
        let types = table(name).columns().iter().skip(1).map(|c| c.column_type.type_name().to_string());
        types.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        types("ints"),
        "tinyint, tinyint unsigned, smallint, smallint unsigned, mediumint, mediumint unsigned, int, \
         int unsigned, bigint, bigint unsigned, tinyint, tinyint unsigned"
    );
    assert_eq!(
        types("binaries"),
        "binary(0), binary(1), binary(16), binary(255), varbinary(0), varbinary(255), varbinary(256), \
         tinyblob, blob, mediumblob, longblob, binary(4)"
    );
    assert_eq!(
        types("shapes"),
        "geometry, point, linestring, polygon, multipoint, multilinestring, multipolygon, geomcollection, \
         point"
    );
    assert_eq!(types("vectors"), "vector(1), vector(3), vector(2048)");
    assert_eq!(
        types("mixed"),
        "varchar(20), point, vector(2), json, varchar(5), int, varbinary(5), enum, varchar(20), text, year, \
         int unsigned, bit(3), int"
    );
    assert!(types("strings").starts_with("char(0), char(4), char(252), char(256), char(1020), char(255), "));
    assert!(types("temporals").starts_with("year, date, time, time(1), time(2)"));
    assert!(types("decimals").starts_with("decimal(1,0), decimal(1,1), "));

    let made = table("made");
    let shown: Vec<_> = made.columns().iter().map(|c| (c.name.as_str(), c.visible, c.nullable)).collect();
    // The hidden column of the functional index is not among them.
    assert_eq!(
        shown,
        [
            ("id", true, false),
            ("a", true, true),
            ("v", true, true),
            ("s", true, true),
            ("h", false, true),
            ("j", true, false)
        ]
    );
    let key = |column, prefix| KeyPart { column, prefix };
    assert_eq!(made.primary_key(), [key(0, 0)]);
    assert_eq!(table("prefixed").primary_key(), [key(2, 4), key(1, 0), key(0, 3)]);
    let keyless = table("keyless");
    assert!(keyless.generated_invisible_primary_key() && !made.generated_invisible_primary_key());
    assert_eq!((keyless.columns()[0].name.as_str(), keyless.columns()[0].visible), ("my_row_id", false));

    let minimal = table("minimal");
    assert!(!minimal.names_known() && minimal.signedness_known() && minimal.collations_known());
    assert_eq!(minimal.columns()[1].name, "@2");
    assert!(minimal.primary_key().is_empty());
    assert!(made.names_known() && made.signedness_known() && made.collations_known());
}
