//! Collations and character sets against a running server: every collation, every code of every set.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use capstan_core::value::Value;
use capstan_core::value::charset::{Charset, Collation, to_utf8};
use capstan_mysql::{Server, Session};
use capstan_tests::charsets::{self, Answer, Conversion};
use capstan_tests::rows::each_change;

#[test]
fn the_servers_collations_are_those_of_the_table() {
    let server = Server::start().unwrap();
    let rows = server
        .sql("SELECT id, character_set_name, collation_name FROM information_schema.collations ORDER BY id")
        .unwrap();
    let ours: String = Collation::all()
        .iter()
        .map(|collation| format!("{}\t{}\t{}\n", collation.id, collation.charset.name(), collation.name))
        .collect();
    assert_eq!(ours, rows);
    let names =
        server.sql("SELECT character_set_name FROM information_schema.character_sets ORDER BY 1").unwrap();
    let ours: Vec<_> = Charset::ALL.map(Charset::name).into();
    assert_eq!(ours, names.lines().collect::<Vec<_>>());
}

/// What the server converts, we convert alike; what it refuses or has no character for, we refuse.
#[test]
fn every_code_of_every_character_set_is_converted_as_the_server_does() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    charsets::prepare(&mut session).unwrap();
    let mut wrong = String::new();
    for charset in Charset::ALL {
        if charset == Charset::Binary {
            continue;
        }
        let mut texts = 0_u32;
        for (bytes, answer) in codes(&mut session, charset) {
            let ours = to_utf8(charset, &bytes);
            let alike = match &answer {
                Answer::Text(text) => ours.as_deref() == Ok(text),
                Answer::Malformed | Answer::NoCharacter => ours.is_err(),
            };
            texts += u32::from(matches!(answer, Answer::Text(_)));
            if !alike {
                writeln!(wrong, "{} {bytes:02x?}: server {answer:?}, we {ours:?}", charset.name()).unwrap();
            }
        }
        let least = match charset {
            Charset::Ascii | Charset::Swe7 => 127,
            Charset::Utf8mb3 | Charset::Ucs2 => 60_000,
            Charset::Utf8mb4 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32 | Charset::Gb18030 => {
                120_000
            }
            east_asian if charsets::EAST_ASIAN.contains(&east_asian) => 7_000,
            _ => 200,
        };
        assert!(texts >= least, "only {texts} characters of {} were compared", charset.name());
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.lines().count(),
        wrong.lines().take(40).collect::<Vec<_>>().join("\n")
    );
}

/// All characters of each set in one column, through the binlog: the collation's id leads to the right
/// set, and long text comes out as its characters do.
#[test]
fn a_column_of_each_character_set_comes_out_of_the_binlog_as_select_shows_it() {
    let server = Server::start().unwrap();
    let mut session = server.connect().unwrap();
    charsets::prepare(&mut session).unwrap();
    session.query("CREATE DATABASE d").unwrap();
    let mut want = BTreeMap::new();
    for charset in Charset::ALL {
        if charset == Charset::Binary {
            continue;
        }
        let name = charset.name();
        let mut all = Vec::new();
        for (bytes, answer) in codes(&mut session, charset) {
            if matches!(answer, Answer::Text(_)) {
                all.extend(bytes);
            }
        }
        let hex: String = all.iter().map(|byte| format!("{byte:02X}")).collect();
        session
            .query(&format!(
                "CREATE TABLE d.{name} (id INT PRIMARY KEY, t LONGTEXT CHARACTER SET {name});
                 INSERT INTO d.{name} VALUES (1, x'{hex}')"
            ))
            .unwrap();
        let shown = session.query(&format!("SELECT CONVERT(t USING utf8mb4) FROM d.{name}")).unwrap();
        let shown = shown[0].rows[0][0].clone().unwrap();
        want.insert(name.to_owned(), String::from_utf8(shown).unwrap());
    }
    let mut compared = 0;
    for path in server.binlogs().unwrap() {
        each_change(&path, |change| {
            let Some(row) = change.after().filter(|row| row.table().schema() == "d") else { return };
            let Value::Text(text) = row.get(1).unwrap() else { panic!("a text column") };
            let table = row.table().table();
            assert!(text.to_str().as_deref() == Ok(&want[table]), "{table} differs");
            compared += 1;
        })
        .unwrap();
    }
    assert_eq!(compared, Charset::ALL.len() - 1);
}

/// Every code that the set may have, by its own structure, and every character by Unicode's.
fn codes(session: &mut Session, charset: Charset) -> Vec<Conversion> {
    let mut codes = charsets::characters(session, charset).unwrap();
    if !matches!(charset, Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le | Charset::Utf32) {
        codes.extend(charsets::conversions(session, charset, 1).unwrap());
    }
    if matches!(charset, Charset::Ucs2 | Charset::Utf16 | Charset::Utf16le)
        || charsets::EAST_ASIAN.contains(&charset)
    {
        codes.extend(charsets::conversions(session, charset, 2).unwrap());
    }
    if matches!(charset, Charset::Ujis | Charset::Eucjpms) {
        codes.extend(charsets::conversions(session, charset, 3).unwrap());
    }
    codes
}
