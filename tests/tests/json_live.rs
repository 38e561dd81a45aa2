//! JSON documents that a running server wrote into its binlog, against the text its `SELECT` gives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use capstan_core::binlog::{EventType, FileReader};
use capstan_core::value::Value;
use capstan_core::value::json::Json;
use capstan_mysql::{Server, Session};
use capstan_tests::rows::each_change;

/// Documents made by expressions: what other column types leave inside JSON (case BL-17), decimals wider
/// than a column, both sides of each number's width.
const EXPRESSIONS: &[&str] = &[
    "JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('0000-00-00' AS DATE), CAST('2023-00-15' AS DATE))",
    "JSON_ARRAY(CAST('-16:08:04.010123' AS TIME(6)), TIME'838:59:59', TIME'-838:59:59', TIME'00:00:00', TIME'100:00:00')",
    "JSON_ARRAY(TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP'1000-01-01 00:00:00', CAST('0000-00-00 00:00:00' AS DATETIME))",
    "JSON_ARRAY(0.50, -0.05, 0.000, 1e0, 99999999999999999999999999999999999.999999999999999999999999999999, .000000001)",
    "JSON_ARRAY(-11111111111111111111111111111111111111111111111111111111111111111111111111111111, 999999999999999999999999999999999999999999999999999999999999999999999999999999999)",
    "JSON_ARRAY(-0.333333333333333333333333333333333333333333333333333333333333333333333333, 1.3333333333333333333333333333333333333333333333333333333333333333333333)",
    "JSON_ARRAY(b'1010', x'DEADBEEF', CAST('a' AS BINARY), CAST(REPEAT('b', 56) AS BINARY), CAST(REPEAT('b', 57) AS BINARY), CAST(REPEAT('b', 58) AS BINARY), CAST(REPEAT('b', 300) AS BINARY))",
    "JSON_OBJECT('point', ST_GeomFromText('POINT(1 2)'), 'year', CAST(2024 AS YEAR))",
    "CAST('[-32769,-32768,32767,32768,65535,65536,-2147483649,-2147483648,2147483647,2147483648,4294967295,4294967296]' AS JSON)",
    "CAST('[9223372036854775807,9223372036854775808,-9223372036854775808,18446744073709551615,18446744073709551616]' AS JSON)",
    "CAST('[1e14,1e15,-1e15,123456789012345.0,1234567890123456.8,12345678901234567.0,0.1,-0.0,1e-14,1e-15,1e-16,5e-324,1.7976931348623157e308]' AS JSON)",
    "CAST(CONCAT(REPEAT('[', 100), REPEAT(']', 100)) AS JSON)",
    "CAST(CONCAT('[', REPEAT('1,', 30000), '1.5]') AS JSON)",
    "JSON_OBJECT('big', REPEAT('x', 70000), 'i', 100000, 'u', 70000, 'n', NULL, 't', TRUE, 'd', 1e300)",
    "CAST('{}' AS JSON)",
    "CAST('[]' AS JSON)",
    "CAST('null' AS JSON)",
    "CAST('true' AS JSON)",
    "CAST('\"\"' AS JSON)",
    "CAST('-1' AS JSON)",
    "CAST('{\"\": {\"\": [[], {}, [{}]]}}' AS JSON)",
    "CAST(1.99 AS JSON)",
];

#[test]
fn expressions_of_every_type_have_the_servers_text() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    session
        .query("SET sql_mode = ''; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, j JSON NOT NULL)")
        .unwrap();
    for (id, expression) in EXPRESSIONS.iter().enumerate() {
        session.query(&format!("INSERT INTO d.t SELECT {id}, {expression}")).expect(expression);
    }
    // Columns of other types; and a NULL where none may be, which is stored as a document of no bytes.
    let id = EXPRESSIONS.len();
    session
        .query(&format!(
            "CREATE TABLE d.s (b BIT(10), y YEAR, ts TIMESTAMP NULL, bl BLOB, e ENUM('x','y'), st SET('p','q'), dt DATETIME(3), vb VARBINARY(9));
             INSERT INTO d.s VALUES (b'1000000001', 2024, '2024-01-01', x'00FF', 'y', 'p,q', '2024-01-01 00:00:00.123', x'FE');
             INSERT INTO d.t SELECT {id}, JSON_ARRAY(b, y, ts, bl, e, st, dt, vb, CONCAT(vb, bl)) FROM d.s;
             INSERT INTO d.t SELECT {id} + 1, NULL"
        ))
        .unwrap();
    assert_eq!(compare(&server, &mut session), EXPRESSIONS.len() + 2);
}

/// Case BL-19: in-place updates leave holes, and values of other sizes in old places.
#[test]
fn documents_with_holes_have_the_servers_text() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    session.query("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, j JSON)").unwrap();
    let mut random = Random(0x0bad_5eed);
    for id in 0..40 {
        session
            .query(&format!(
                "INSERT INTO d.t VALUES ({id}, JSON_OBJECT('a', REPEAT('a', 40), 'b', REPEAT('b', 20),
                   'c', JSON_ARRAY(1, 2.5, 'three', NULL, JSON_OBJECT('k', REPEAT('v', 30))), 'd', 1, 'e', 1e100))"
            ))
            .unwrap();
    }
    for _ in 0..400 {
        let id = random.below(40);
        let path =
            ["$.a", "$.b", "$.c", "$.c[0]", "$.c[2]", "$.c[4].k", "$.c[4]", "$.d", "$.e"][random.below(9)];
        let value =
            ["''", "'zz'", "NULL", "TRUE", "7", "70000", "1.25", "1e200", "REPEAT('y', 25)", "JSON_ARRAY(1)"]
                [random.below(10)];
        let change = match random.below(4) {
            0 => format!("JSON_REMOVE(j, '{path}')"),
            1 => format!("JSON_REPLACE(j, '{path}', {value})"),
            _ => format!("JSON_SET(j, '{path}', {value})"),
        };
        session.query(&format!("UPDATE d.t SET j = {change} WHERE id = {id}")).unwrap();
    }
    let holes = session.sql("SELECT COUNT(*) FROM d.t WHERE JSON_STORAGE_FREE(j) > 0").unwrap();
    assert!(holes.trim().parse::<u32>().unwrap() > 5, "documents with holes: {holes}");
    assert_eq!(compare(&server, &mut session), 40);
}

/// Event 39: what a session logs as differences is the whole document again.
#[test]
fn partial_updates_have_the_servers_text() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    session
        .query(
            "CREATE DATABASE d;
             CREATE TABLE d.t (id INT PRIMARY KEY, j JSON, other JSON, n JSON AS (j->'$.c') VIRTUAL,
               s VARCHAR(99) AS (LEFT(j->>'$.a', 99)) STORED, KEY ((CAST(j->'$.list' AS UNSIGNED ARRAY))));
             SET SESSION binlog_row_value_options = PARTIAL_JSON",
        )
        .unwrap();
    let mut random = Random(0x00c0_ffee_0bad_f00d);
    let rows = 30;
    for id in 0..rows {
        // Every third is large: wide offsets, and numbers of 32 bits in the entries.
        let pad = if id % 3 == 0 { 70_000 } else { 60 };
        session
            .query(&format!(
                "INSERT INTO d.t (id, j, other) VALUES ({id}, JSON_OBJECT('a', REPEAT('a', 40), 'b', REPEAT('b', {pad}),
                   'c', JSON_ARRAY(1, 70000, 'three', NULL, JSON_OBJECT('k', REPEAT('v', 30), 'deep', JSON_ARRAY())),
                   'd', 1, 'list', JSON_ARRAY(1, 2, 3), '\u{e9} \"q\"', 5), JSON_ARRAY(1, REPEAT('o', 30)))"
            ))
            .unwrap();
    }
    let paths = [
        "$.a",
        "$.c",
        "$.c[0]",
        "$.c[2]",
        "$.c[4].k",
        "$.c[4].deep[0]",
        "$.c[4].deep[last]",
        "$.c[last]",
        "$.c[last-1]",
        "$.c[99]",
        "$.d",
        "$.d[0]",
        "$.d[3]",
        "$.list[1]",
        "$.\u{e9}",
        "$.new",
        "$.c[4].new.er",
        "$.\"\u{e9} \\\"q\\\"\"",
        "$.\"\"",
        "$.\"1\"",
    ];
    let values = [
        "''",
        "'zz'",
        "NULL",
        "TRUE",
        "7",
        "-70000",
        "1.25",
        "1e200",
        "REPEAT('y', 300)",
        "18446744073709551615",
        "JSON_ARRAY(1, JSON_OBJECT('x', 1.5))",
        "JSON_OBJECT()",
        "CAST('-12:34:56.789' AS TIME(3))",
        "TIMESTAMP'2024-02-29 23:59:59.5'",
        "CAST('2024-02-29' AS DATE)",
        "x'DEADBEEF'",
        "CAST(2024 AS YEAR)",
    ];
    for _ in 0..500 {
        let mut change = String::from("j");
        for _ in 0..=random.below(3) {
            let path = paths[random.below(paths.len())].replace('\\', "\\\\").replace('\'', "''");
            let value = values[random.below(values.len())];
            change = match random.below(5) {
                // The list has an index over numbers.
                _ if path.contains("list") => format!("JSON_SET({change}, '{path}', {})", random.below(9)),
                0 => format!("JSON_REMOVE({change}, '{path}')"),
                1 => format!("JSON_REPLACE({change}, '{path}', {value})"),
                _ => format!("JSON_SET({change}, '{path}', {value})"),
            };
        }
        let other = ["", ", other = JSON_SET(other, '$[0]', 2)", ", other = NULL", ", other = '[1, 2]'"];
        let other = other[random.below(9).min(3)];
        let (from, to) = (random.below(rows), random.below(3));
        session
            .query(&format!("UPDATE d.t SET j = {change}{other} WHERE id BETWEEN {from} AND {}", from + to))
            .unwrap_or_else(|error| panic!("{change}: {error}"));
    }
    let mut partial = 0;
    for path in server.binlogs().unwrap() {
        let mut reader = FileReader::new(1 << 30);
        reader.feed(&std::fs::read(path).unwrap());
        while let Some((_, event)) = reader.next_event().unwrap() {
            partial += usize::from(event.header.event_type == EventType::PartialUpdateRows);
        }
    }
    assert!(partial > 100, "partial updates: {partial}");
    // Its text is the server's, and so is that of each row before each change.
    assert_eq!(compare(&server, &mut session), rows);
}

#[test]
fn thousands_of_random_documents_have_the_servers_text() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    session.query("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, j JSON)").unwrap();
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut id = 0;
    for _ in 0..100 {
        let mut insert = String::from("INSERT INTO d.t VALUES ");
        for _ in 0..20 {
            let mut text = String::new();
            random.document(&mut text, 4);
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            write!(insert, "({id}, CONVERT(x'{hex}' USING utf8mb4)),").unwrap();
            id += 1;
        }
        insert.pop();
        session.query(&insert).unwrap();
    }
    assert_eq!(compare(&server, &mut session), id);
}

/// Compares the last image of every row with what `SELECT` shows, and tells how many there were.
fn compare(server: &Server, session: &mut Session) -> usize {
    let mut documents: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    let text = |document: &[u8]| {
        let mut text = String::new();
        Json::new(document).write_text(&mut text).unwrap();
        text
    };
    for path in server.binlogs().unwrap() {
        each_change(&path, |change| {
            // What the server says was there is what the changes so far came to.
            if let Some(row) = change.before()
                && let (Value::Int(id), Value::Json(before)) = (row.get(0).unwrap(), row.get(1).unwrap())
            {
                assert_eq!(text(before.as_bytes()), text(&documents[&id]));
            }
            let Some(row) = change.after().filter(|row| row.table().table() == "t") else { return };
            let (Value::Int(id), Value::Json(document)) = (row.get(0).unwrap(), row.get(1).unwrap()) else {
                panic!("an id and a document")
            };
            documents.insert(id, document.as_bytes().to_vec());
        })
        .unwrap();
    }
    let shown = session.query("SELECT id, j FROM d.t ORDER BY id").unwrap().remove(0).rows;
    assert_eq!(shown.len(), documents.len());
    for (row, (id, document)) in shown.iter().zip(&documents) {
        assert_eq!(row[0].as_deref(), Some(id.to_string().as_bytes()));
        let want = String::from_utf8(row[1].clone().unwrap()).unwrap();
        let (json, mut text) = (Json::new(document), String::new());
        assert_eq!(json.write_text(&mut text), Ok(()), "{want}");
        assert_eq!(text, want);
        assert_eq!(json.validate(), Ok(()), "{want}");
    }
    documents.len()
}

/// A small generator (xorshift64), so that a run is the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn document(&mut self, out: &mut String, depth: u8) {
        let containers = if depth == 0 { 0 } else { 4 };
        match self.below(10 + containers) {
            0 => out.push_str(["null", "true", "false"][self.below(3)]),
            1 | 2 => write!(out, "{}", self.next().cast_signed() >> self.below(64)).unwrap(),
            3 => write!(out, "{}", self.next()).unwrap(),
            4 | 5 => {
                let value = f64::from_bits(self.next());
                write!(out, "{:e}", if value.is_finite() { value } else { 0.0 }).unwrap();
            }
            6 => {
                // Around the borders between plain digits and exponents.
                let digits = self.next() >> self.below(64);
                write!(out, "{digits}e{}", self.below(50) as i64 - 35).unwrap();
            }
            7..10 => self.string(out),
            10 | 11 => {
                out.push('[');
                for at in 0..[0, 1, 2, 5, 20, 200][self.below(if depth == 4 { 6 } else { 5 })] {
                    if at > 0 {
                        out.push(',');
                    }
                    self.document(out, depth - 1);
                }
                out.push(']');
            }
            _ => {
                out.push('{');
                for at in 0..[0, 1, 2, 5, 20][self.below(5)] {
                    if at > 0 {
                        out.push(',');
                    }
                    self.string(out);
                    out.push(':');
                    self.document(out, depth - 1);
                }
                out.push('}');
            }
        }
    }

    fn string(&mut self, out: &mut String) {
        out.push('"');
        for _ in 0..self.below(9) {
            out.push_str(
                [
                    "a",
                    "z",
                    "é",
                    "中",
                    "😀",
                    "\\\"",
                    "\\\\",
                    "\\/",
                    "\\n",
                    "\\t",
                    "\\b",
                    "\\f",
                    "\\r",
                    "\\u0000",
                    "\\u001f",
                    "\u{7f}",
                    "\u{2028}",
                    "\\ud83d\\ude00",
                ][self.below(18)],
            );
        }
        out.push('"');
    }
}
