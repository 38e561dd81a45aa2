//! GTID sets against the server's own answers, a naive model, and bytes from real binlogs.

mod binary;
mod model;
mod text;

use super::{Gtid, GtidSet, Interval, Tag, Tsid, Uuid};
use std::string::{String, ToString};
use std::vec::Vec;

/// `@` for the first UUID, `#` for the second: the cases stay readable.
fn spelled(text: &str) -> String {
    text.replace('@', "3e11fa47-71ca-11e1-9e33-c80aa9429562")
        .replace('#', "ffffffff-eeee-dddd-cccc-00017f80ff7e")
}

fn set(text: &str) -> GtidSet {
    spelled(text).parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn gtid(text: &str) -> Gtid {
    spelled(text).parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn an_added_gtid_is_counted_once_and_joins_its_neighbours() {
    let mut set = GtidSet::new();
    for (added, is_new, want) in [
        ("@:5", true, "@:5"),
        ("@:5", false, "@:5"),
        ("@:6", true, "@:5-6"),
        ("@:3", true, "@:3:5-6"),
        ("@:4", true, "@:3-6"),
        ("#:9", true, "@:3-6,#:9"),
        ("@:7", true, "@:3-7,#:9"),
        ("@:10", true, "@:3-7:10,#:9"),
        ("@:9", true, "@:3-7:9-10,#:9"),
        ("@:1", true, "@:1:3-7:9-10,#:9"),
        ("@:2", true, "@:1-7:9-10,#:9"),
        ("@:8", true, "@:1-10,#:9"),
        ("@:blue:8", true, "@:1-10:blue:8,#:9"),
        ("@:blue:8", false, "@:1-10:blue:8,#:9"),
        ("@:a:1", true, "@:1-10:a:1:blue:8,#:9"),
        ("@:9223372036854775806", true, "@:1-10:9223372036854775806:a:1:blue:8,#:9"),
        ("@:9223372036854775805", true, "@:1-10:9223372036854775805-9223372036854775806:a:1:blue:8,#:9"),
        ("@:9223372036854775806", false, "@:1-10:9223372036854775805-9223372036854775806:a:1:blue:8,#:9"),
        ("@:10", false, "@:1-10:9223372036854775805-9223372036854775806:a:1:blue:8,#:9"),
    ] {
        assert_eq!(set.add(&gtid(added)), is_new, "{added}");
        assert_eq!(set.to_string(), spelled(want), "after {added}");
        assert!(set.contains(&gtid(added)));
    }
}

/// BL-35: a gap is a transaction that was not processed. Closing it loses the transaction, and a set
/// that counts only what was captured cannot be resumed from.
#[test]
fn gaps_are_kept() {
    for (text, canonical, inside, outside) in [
        ("@:1-7:9-10", "@:1-7:9-10", "@:9", "@:8"),
        ("@:1-100,@:200-300", "@:1-100:200-300", "@:200", "@:150"),
        ("@:5:3:1-2", "@:1-3:5", "@:3", "@:4"),
        ("@:1-3:2-5", "@:1-5", "@:5", "@:6"),
        ("@:1:2:3", "@:1-3", "@:2", "@:4"),
        ("@:1-5:blue:7:9-10", "@:1-5:blue:7:9-10", "@:blue:9", "@:blue:8"),
        ("@:1-5:blue:7", "@:1-5:blue:7", "@:5", "@:7"),
        ("#:1,@:blue:2,@:1", "@:1:blue:2,#:1", "#:1", "#:blue:1"),
        ("@:9223372036854775806", "@:9223372036854775806", "@:9223372036854775806", "@:9223372036854775805"),
    ] {
        let set = set(text);
        assert_eq!(set.to_string(), spelled(canonical), "{text}");
        assert!(set.contains(&gtid(inside)), "{text}");
        assert!(!set.contains(&gtid(outside)), "{text}");
        assert_eq!(GtidSet::decode(&set.encode()), Ok(set.clone()), "{text}");
    }
}

#[test]
fn sets_of_many_sources_are_not_cut() {
    // 40 sources are 1,788 characters; SHOW VARIABLES would give 1,024 of them.
    let text: Vec<String> =
        (0..40).map(|i| std::format!("aaaaaaaa-aaaa-aaaa-aaaa-0000000000{i:02}:1-1000")).collect();
    let set: GtidSet = text.join(",\n").parse().unwrap();
    assert_eq!(set.sources().count(), 40);
    assert_eq!(set.count(), 40_000);
    assert_eq!(set.to_string(), text.join(","));
}

#[test]
fn sources_come_once_and_in_order() {
    let set = set("#:red:1,@:blue:1,@:1,#:2");
    let uuids: Vec<Uuid> = set.sources().collect();
    assert_eq!(uuids, [gtid("@:1").uuid(), gtid("#:1").uuid()]);
    let tsids: Vec<Tsid> = set.iter().map(|(tsid, _)| tsid).collect();
    assert_eq!(
        tsids,
        [gtid("@:1").tsid(), gtid("@:blue:1").tsid(), gtid("#:1").tsid(), gtid("#:red:1").tsid()]
    );
    let intervals = set.intervals(&gtid("#:9").tsid());
    assert_eq!(intervals.iter().copied().collect::<Vec<_>>(), [Interval::new(2, 2).unwrap()]);
    assert!(set.intervals(&gtid("#:blue:9").tsid()).is_empty());
}

#[test]
fn equality_does_not_depend_on_the_way_a_set_was_made() {
    use core::hash::{Hash, Hasher};
    let hash = |set: &GtidSet| {
        let mut hasher = std::hash::DefaultHasher::new();
        set.hash(&mut hasher);
        hasher.finish()
    };
    let parsed = set("@:1-3,#:1");
    let added: GtidSet = ["#:1", "@:2", "@:1", "@:3"].map(gtid).into_iter().collect();
    assert_eq!(parsed, added);
    assert_eq!(hash(&parsed), hash(&added));
    assert_eq!(parsed.cmp(&added), core::cmp::Ordering::Equal);
    assert_ne!(parsed, set("@:1-3,#:2"));
    assert_ne!(hash(&parsed), hash(&set("@:1-3,#:2")), "a table of sets would be a list");
    assert_eq!(parsed.partial_cmp(&set("@:1-3,#:2")), Some(parsed.cmp(&set("@:1-3,#:2"))));
    assert_eq!(GtidSet::from(gtid("@:2")), set("@:2"));
}

#[test]
fn a_count_beyond_64_bits_is_the_largest() {
    assert_eq!(set("@:1-9223372036854775806").count(), 9_223_372_036_854_775_806);
    let three = set("@:1-9223372036854775806:a:1-9223372036854775806:b:1-9223372036854775806");
    assert_eq!(three.count(), u64::MAX);
}
