//! Keys of every kind against a running server: the order in which it reads them, and the conditions that cut it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::cmp::Ordering;
use std::sync::Arc;

use capstan_core::binlog::rows::{ChangeRow, RowScratch};
use capstan_core::deliver::KeyParts;
use capstan_core::snapshot::rows::{Compared, Comparisons, CopyKey, KeyOrder, KeyUnsupported};
use capstan_core::value::charset::Collation;
use capstan_mysql::{Server, Session};
use capstan_tests::copied::{ask, copy, describe};

/// Columns, key, and rows with values at the ends of their ranges and next to each other.
const TABLES: &[(&str, &str, &[&str])] = &[
    ("a TINYINT", "a", &["-128", "-1", "0", "1", "127"]),
    ("a TINYINT UNSIGNED", "a", &["0", "1", "127", "128", "255"]),
    ("a SMALLINT", "a", &["-32768", "-256", "-1", "0", "255", "256", "32767"]),
    ("a SMALLINT UNSIGNED", "a", &["0", "255", "256", "32768", "65535"]),
    ("a MEDIUMINT", "a", &["-8388608", "-65536", "-1", "0", "65536", "8388607"]),
    ("a MEDIUMINT UNSIGNED ZEROFILL", "a", &["0", "65536", "8388608", "16777215"]),
    ("a INT", "a", &["-2147483648", "-16777216", "-1", "0", "1", "2147483647"]),
    ("a INT UNSIGNED", "a", &["0", "2147483648", "4294967295"]),
    (
        "a BIGINT",
        "a",
        &["-9223372036854775808", "-9007199254740993", "-1", "0", "9007199254740993", "9223372036854775807"],
    ),
    (
        "a BIGINT UNSIGNED",
        "a",
        &["0", "9007199254740992", "9007199254740993", "9223372036854775808", "18446744073709551615"],
    ),
    (
        "a DECIMAL(20,5)",
        "a",
        &[
            "-999999999999999.99999",
            "-1.00001",
            "-1",
            "-0.00001",
            "0",
            "0.00001",
            "1",
            "999999999999999.99999",
        ],
    ),
    (
        "a DECIMAL(65,30)",
        "a",
        &[
            "-1.5",
            "-1e-30",
            "0",
            "1e-30",
            "9007199254740993",
            "99999999999999999999999999999999999.999999999999999999999999999999",
        ],
    ),
    ("a FLOAT", "a", &["-3.4e38", "-1.1", "-1e-38", "0", "1e-38", "0.1", "1.1", "3.4e38"]),
    (
        "a DOUBLE",
        "a",
        &["-1.7976931348623157e308", "-0.1", "-5e-324", "0", "5e-324", "0.1", "0.10000000000000002", "1e300"],
    ),
    ("a BIT(9)", "a", &["0", "1", "255", "256", "511"]),
    (
        "a BIT(64)",
        "a",
        &["0", "9007199254740992", "9007199254740993", "9223372036854775808", "18446744073709551615"],
    ),
    ("a YEAR", "a", &["0", "1901", "1999", "2000", "2155"]),
    (
        "a DATE",
        "a",
        &["'0000-00-00'", "'0001-01-01'", "'2023-00-15'", "'2023-02-31'", "'2023-03-01'", "'9999-12-31'"],
    ),
    ("a TIME", "a", &["'-838:59:59'", "'-00:00:01'", "'00:00:00'", "'00:00:01'", "'838:59:59'"]),
    (
        "a TIME(3)",
        "a",
        &[
            "'-838:59:58.999'",
            "'-00:00:00.010'",
            "'-00:00:00.001'",
            "'00:00:00'",
            "'00:00:00.001'",
            "'838:59:58.999'",
        ],
    ),
    ("a DATETIME", "a", &["'0000-00-00'", "'1000-01-01'", "'2023-02-31 10:11:12'", "'9999-12-31 23:59:59'"]),
    (
        "a DATETIME(6)",
        "a",
        &["'0000-00-00'", "'2024-02-29 23:59:59.999999'", "'2024-03-01'", "'2024-03-01 00:00:00.000001'"],
    ),
    (
        "a TIMESTAMP",
        "a",
        &["'0000-00-00'", "'1970-01-01 00:00:01'", "'2024-03-31 02:30:00'", "'2038-01-19 03:14:07'"],
    ),
    (
        "a TIMESTAMP(6)",
        "a",
        &["'0000-00-00'", "'1970-01-01 00:00:01.000001'", "'2038-01-19 03:14:07.499999'"],
    ),
    ("a BINARY(3)", "a", &["x''", "x'01'", "x'0100ff'", "x'0101'", "x'20'", "x'7f'", "x'80'", "x'ffffff'"]),
    (
        "a VARBINARY(5)",
        "a",
        &["x''", "x'00'", "x'0000'", "x'01'", "x'0100'", "x'20'", "x'2020'", "x'80'", "x'ff'", "x'275c'"],
    ),
    ("a ENUM('z','y','x')", "a", &["0", "1", "2", "3"]),
    (
        "a SET('s1','s2','s3','s4','s5','s6','s7','s8','s9','s10','s11','s12','s13','s14','s15','s16','s17','s18','s19','s20','s21','s22','s23','s24','s25','s26','s27','s28','s29','s30','s31','s32','s33','s34','s35','s36','s37','s38','s39','s40','s41','s42','s43','s44','s45','s46','s47','s48','s49','s50','s51','s52','s53','s54','s55','s56','s57','s58','s59','s60','s61','s62','s63','s64')",
        "a",
        &[
            "0",
            "1",
            "2",
            "3",
            "256",
            "9007199254740992",
            "9007199254740993",
            "9223372036854775808",
            "9223372036854775809",
            "18446744073709551615",
        ],
    ),
    (
        "a INT, b BIGINT UNSIGNED",
        "b, a",
        &["1, 1", "2, 1", "1, 2", "-5, 18446744073709551615", "7, 18446744073709551615"],
    ),
    (
        "a DATE, b TIME(2), c VARBINARY(4)",
        "c, b, a",
        &[
            "'2024-01-01', '10:00:00', 'x'",
            "'2024-01-01', '-10:00:00', 'x'",
            "'2023-01-01', '10:00:00', 'x'",
            "'2024-01-01', '10:00:00', ''",
        ],
    ),
    ("a VARCHAR(10), b INT", "a, b", &["'a', 2", "'a', 10", "'B', 1", "'c''\\\\', 1", "'', 5", "'é', 3"]),
    (
        "a INT, b VARCHAR(10) COLLATE utf8mb4_bin, c ENUM('q','p')",
        "c, b, a",
        &["1, 'a', 1", "1, 'a ', 2", "2, 'B', 1", "3, 'a', 1", "4, '𝄞', 2"],
    ),
    ("a INT", "a DESC", &["9", "4", "-3"]),
    ("a INT, b INT", "b DESC, a", &["1, 9", "2, 9", "3, 8", "0, 7", "5, 7"]),
    ("a VARCHAR(9), b INT", "a, b DESC", &["'', 7", "'a', 9", "'B', 2", "'b ', 1", "'c', 3"]),
    ("a VARCHAR(9) COLLATE utf8mb4_bin, b INT", "a DESC, b", &["'c', 3", "'b', 2", "'B', 1", "'', 7"]),
    ("a INT AS (b * -2) STORED, b INT INVISIBLE", "a", &["DEFAULT, 1", "DEFAULT, 2", "DEFAULT, -3"]),
];

#[test]
fn keys_are_read_and_cut_in_the_order_that_is_known_here() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    session.query("CREATE DATABASE k; SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'").unwrap();
    for (n, (columns, key, rows)) in TABLES.iter().enumerate() {
        let count = rows[0].split(", ").count();
        let names = ["a", "b", "c"][..count].join(", ");
        session.query(&format!("CREATE TABLE k.t{n} ({columns}, note INT, PRIMARY KEY ({key}))")).unwrap();
        // The other way round, so that the order is the server's doing.
        for row in rows.iter().rev() {
            session.query(&format!("INSERT INTO k.t{n} ({names}) VALUES ({row})")).unwrap();
        }
        let keys = read(&mut session, &format!("t{n}"), columns);
        assert_eq!(keys.len(), rows.len(), "{columns}");
        cut(&mut session, &format!("t{n}"), columns, &keys);
    }
}

/// Some text under every collation there is: weights order it as the server reads it, and find it again.
#[test]
fn text_is_ordered_by_the_servers_weights_under_every_collation() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    session.query("CREATE DATABASE k").unwrap();
    let words = [
        "", " ", "a", "A", "a ", "a\t", "ab", "á", "ä", "ae", "b", "B", "c", "ch", "cz", "h", "i", "I", "ı",
        "l", "ll", "n", "ñ", "o", "ö", "oe", "s", "ss", "ß", "z", "ž", "0", "10", "-", "_", "'\\", "я", "λ",
        "ς", "σ", "中", "文", "ｱ", "ア", "あ", "한", "א", "𝄞", "abc def",
    ];
    let mut refused = Vec::new();
    for (n, collation) in Collation::all().iter().enumerate() {
        let (charset, name) = (collation.charset.name(), collation.name);
        if name == "binary" {
            continue;
        }
        let kind = if n % 2 == 0 { "CHAR" } else { "VARCHAR" };
        session
            .query(&format!(
                "CREATE TABLE k.t{n} (a {kind}(10) CHARACTER SET {charset} COLLATE {name} PRIMARY KEY)"
            ))
            .unwrap();
        for word in words {
            let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
            let row =
                format!("INSERT IGNORE INTO k.t{n} VALUES (CONVERT(_utf8mb4 x'{hex}' USING {charset}))");
            session.query(&row).unwrap();
        }
        if let Err(KeyUnsupported::Collation { .. }) =
            describe(&mut session, "k", &format!("t{n}")).unwrap().key()
        {
            refused.push(name);
            session.query(&format!("DROP TABLE k.t{n}")).unwrap();
            continue;
        }
        let keys = read(&mut session, &format!("t{n}"), name);
        assert!(keys.len() > 10, "{name}: {}", keys.len());
        if n % 8 == 0 {
            cut(&mut session, &format!("t{n}"), name, &keys);
        }
        session.query(&format!("DROP TABLE k.t{n}")).unwrap();
    }
    refused.sort_unstable();
    let disorderly = ["big5_chinese_ci", "gb18030_chinese_ci", "latin7_estonian_cs", "latin7_general_ci"];
    assert_eq!(refused, [&disorderly[..], &["latin7_general_cs", "tis620_thai_ci"]].concat());
}

/// The keys in the server's order, which is the core's, or that of the weights.
fn read(session: &mut Session, table: &str, of: &str) -> Vec<KeyParts> {
    let described = describe(session, "k", table).unwrap();
    let key = described.key().unwrap_or_else(|why| panic!("{of}: {why}"));
    let version = Arc::new(described.version);
    let order = key.order_by();
    let rows = copy(session, &version, &format!("ORDER BY {order}")).unwrap().expect("rows");
    let mut scratch = RowScratch::new();
    let mut cursor = rows.cursor(&mut scratch);
    let mut keys = Vec::new();
    while let Some(ChangeRow::Insert { after }) = cursor.next().unwrap() {
        keys.push(key.value(after).expect("a key"));
    }
    for (n, pair) in keys.windows(2).enumerate() {
        let found = key.compare(&pair[0], &pair[1]);
        let wanted = if key.is_ordered_here() {
            found == Some(Ordering::Less)
        } else {
            found != Some(Ordering::Greater)
        };
        assert!(wanted, "{of}: {found:?} between rows {n} and {}", n + 1);
        assert_eq!(key.compare(&pair[0], &pair[0]), Some(Ordering::Equal), "{of}");
    }
    weights(session, table, of, &key, &keys);
    compared(session, of, &key, &keys);
    keys
}

/// Asked about the bare values, the server puts them in the order in which it reads the rows, neighbours and others.
fn compared(session: &mut Session, of: &str, key: &CopyKey, keys: &[KeyParts]) {
    let mut said = Comparisons::default();
    let distant = keys.iter().zip(keys.iter().skip(7));
    let all: Vec<_> = keys.iter().zip(keys.iter().skip(1)).chain(distant).collect();
    let mut pairs = Vec::new();
    for (one, other) in &all {
        key.compare_by(one, other, &said, |pair| pairs.push(pair));
    }
    assert_eq!(pairs.is_empty(), key.is_ordered_here() || keys.len() < 2, "{of}");
    if !pairs.is_empty() {
        let answer = ask(session, &key.question(&pairs).expect("a question")).unwrap();
        assert!(said.said(pairs, &answer), "{of}: {answer:?}");
    }
    for (one, other) in all {
        let found = key.compare_by(one, other, &said, |pair| panic!("{of}: {pair:?} was not asked"));
        assert_eq!(found, Compared::Order(Ordering::Less), "{of}: {one:?} {other:?}");
    }
}

/// Weights are in the order of the rows, and those of a literal are those of its row.
fn weights(session: &mut Session, table: &str, of: &str, key: &CopyKey, keys: &[KeyParts]) {
    for (place, part) in key.parts().iter().enumerate() {
        let KeyOrder::Server { .. } = part.order() else { continue };
        let weight = part.weight(&part.expression()).unwrap();
        let rows =
            ask(session, &format!("SELECT {weight} FROM k.{table} ORDER BY {}", key.order_by())).unwrap();
        let rows: Vec<_> = rows.rows.iter().map(|row| row[0].clone().expect("a weight")).collect();
        if key.parts().len() == 1 {
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{of}: {rows:?}");
        }
        for (value, row) in keys.iter().zip(&rows) {
            let raw = &value.0[place];
            let weight = part.weight(&part.literal(raw).unwrap()).unwrap();
            let found = ask(session, &format!("SELECT {weight}")).unwrap();
            assert_eq!(found.rows[0][0].as_ref(), Some(row), "{of}");
        }
    }
}

/// Each key cuts the table in two: what is behind it, and itself with what is before.
fn cut(session: &mut Session, table: &str, of: &str, keys: &[KeyParts]) {
    let key = describe(session, "k", table).unwrap().key().unwrap();
    for (n, value) in keys.iter().enumerate() {
        for (condition, want) in [(key.behind(value), keys.len() - n - 1), (key.up_to(value), n + 1)] {
            let condition = condition.expect("a condition");
            let found = ask(session, &format!("SELECT COUNT(*) FROM k.{table} WHERE {condition}")).unwrap();
            let found = found.rows[0][0]
                .as_deref()
                .and_then(|text| std::str::from_utf8(text).ok())
                .map(str::to_owned);
            assert_eq!(found, Some(want.to_string()), "{of}: {condition}");
        }
    }
}
