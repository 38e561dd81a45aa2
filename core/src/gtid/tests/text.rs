//! Text, and the server's own answers.

use super::super::{Expected, GtidTextError};
use super::*;
use std::vec::Vec;

/// What MySQL 9.7.4 made of 120 pairs of sets: see `tests/fixtures/gtid/README.md`.
const SERVER: &str = include_str!("../../../../tests/fixtures/gtid/sets.tsv");

#[test]
fn the_server_agrees_on_text_difference_and_inclusion() {
    let (mut rows, mut subsets) = (0, 0);
    for row in SERVER.lines() {
        let fields: Vec<String> =
            row.split('\t').map(|field| field.replace("\\n", "\n").replace("\\t", "\t")).collect();
        let [a, b, a_canonical, b_canonical, difference, is_subset] = fields.as_slice() else {
            panic!("six fields: {row}")
        };
        let (a, b): (GtidSet, GtidSet) = (a.parse().unwrap(), b.parse().unwrap());
        assert_eq!(&a.to_string(), a_canonical);
        assert_eq!(&b.to_string(), b_canonical);
        assert_eq!(&a.subtract(&b).to_string(), difference, "{a} minus {b}");
        assert_eq!(a.is_subset(&b), is_subset == "1", "{a} within {b}");
        assert_eq!(a.subtract(&b).union(&a.intersect(&b)), a);
        assert_eq!(a.is_disjoint(&b), a.intersect(&b).is_empty());
        assert_eq!(GtidSet::decode(&a.encode()), Ok(a));
        rows += 1;
        subsets += usize::from(is_subset == "1");
    }
    assert!(rows == 120 && subsets > 20 && subsets < 100, "{rows} rows, {subsets} subsets");
}

#[test]
fn the_grammar_of_the_server_is_read() {
    for (text, canonical) in [
        ("", ""),
        (" \n", ""),
        (",", ""),
        ("@:1", "@:1"),
        (" @ : 1 - 5 : 7 ", "@:1-5:7"),
        ("@:1,\n#:2", "@:1,#:2"),
        (" , ,@ : 1 - 5 : blue : 3, ", "@:1-5:blue:3"),
        ("@:BLUE:1", "@:blue:1"),
        ("@:blue:1:red:2:3", "@:blue:1:red:2-3"),
        ("@:1-1", "@:1"),
        ("3E11FA47-71CA-11E1-9E33-C80AA9429562:1", "@:1"),
        ("3e11fa4771ca11e19e33c80aa9429562:5,{3e11fa47-71ca-11e1-9e33-c80aa9429562}:6", "@:5-6"),
        ("@:_a_tag_of_thirty_two_characters:1", "@:_a_tag_of_thirty_two_characters:1"),
    ] {
        let spelled_out = spelled(text);
        let set: GtidSet = spelled_out.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(set.to_string(), spelled(canonical), "{text}");
    }
}

#[test]
fn what_could_lose_something_is_refused_where_it_stands() {
    // A UUID has 36 characters, so what stands behind `@:` stands at 37.
    for (text, at, expected) in [
        ("x", 0, Expected::Uuid),
        ("@:1,x", 39, Expected::Uuid),
        ("+@:1", 0, Expected::Uuid),
        ("AUTOMATIC", 0, Expected::Uuid),
        ("@", 36, Expected::Colon),
        ("@ 1", 37, Expected::Colon),
        ("@:", 37, Expected::Number),
        ("@::1", 37, Expected::Number),
        ("@:1:", 39, Expected::Number),
        ("@:0", 37, Expected::Number),
        ("@:01", 37, Expected::Number),
        ("@:-1", 37, Expected::Number),
        ("@:9223372036854775807", 37, Expected::Number),
        ("@:99999999999999999999999999", 37, Expected::Number),
        ("@:1-", 39, Expected::Number),
        ("@:1-9223372036854775807", 39, Expected::Number),
        ("@:5-3", 37, Expected::Interval),
        ("@:5-0", 39, Expected::Number),
        ("@:blue", 41, Expected::Colon),
        ("@:blue:", 42, Expected::Number),
        ("@:blue:red:1", 42, Expected::Number),
        ("@:a_tag_of_thirty_three_characters_:1", 37, Expected::Tag),
        ("@:bl-ue:1", 39, Expected::Colon),
        ("@:1a", 38, Expected::End),
        ("@:1 #:2", 39, Expected::End),
        ("@:1;#:2", 38, Expected::End),
        ("@:0x10", 37, Expected::Number),
        ("@:é", 37, Expected::Number),
    ] {
        assert_eq!(spelled(text).parse::<GtidSet>(), Err(GtidTextError { at, expected }), "{text}");
    }
}

#[test]
fn one_gtid_is_one_number() {
    for (text, want) in [
        ("@:1", Ok("@:1")),
        (" @ : 7 ", Ok("@:7")),
        ("@:Blue:9223372036854775806", Ok("@:blue:9223372036854775806")),
        ("@:1-2", Err(Expected::End)),
        ("@:1:2", Err(Expected::End)),
        ("@:1,", Err(Expected::End)),
        ("@:9223372036854775807", Err(Expected::Number)),
        ("@:0", Err(Expected::Number)),
        ("@", Err(Expected::Colon)),
        ("", Err(Expected::Uuid)),
    ] {
        let got = spelled(text).parse::<Gtid>();
        let want = want.map(spelled);
        assert_eq!(got.map(|gtid| gtid.to_string()).map_err(|error| error.expected), want, "{text}");
    }
}

#[test]
fn numbers_outside_the_range_make_no_gtid_and_no_interval() {
    let uuid = gtid("@:1").uuid();
    for (gno, ok) in
        [(0, false), (1, true), (super::super::GNO_MAX, true), (i64::MAX as u64, false), (u64::MAX, false)]
    {
        assert_eq!(Gtid::new(uuid, Tag::NONE, gno).is_some(), ok, "{gno}");
        assert_eq!(Interval::new(gno, gno).is_some(), ok, "{gno}");
    }
    assert_eq!(Interval::new(2, 1), None);
}
