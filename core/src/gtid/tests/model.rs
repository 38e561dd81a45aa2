//! Against a model that knows single numbers only.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

/// A GTID as the model sees it: source 0..6 (two UUIDs, three tags), number 1..=40 or the 40 largest.
type Atom = (usize, u64);

const TAGS: [&str; 3] = ["", "blue", "red"];
const NUMBERS: u64 = 40;

fn number(n: u64) -> u64 {
    if n <= NUMBERS { n } else { super::super::GNO_MAX - (2 * NUMBERS - n) }
}

fn real((source, n): Atom) -> Gtid {
    let uuid = Uuid([u8::try_from(source / TAGS.len()).unwrap(); 16]);
    Gtid::new(uuid, TAGS[source % TAGS.len()].parse().unwrap(), number(n)).unwrap()
}

/// Membership without any of the code under test: the intervals of the canonical text.
fn member(text: &str, (source, n): Atom) -> bool {
    let uuid = std::format!("{:02x}", source / TAGS.len()).repeat(16);
    text.split(',').filter(|part| part.replace('-', "").starts_with(&uuid)).any(|part| {
        let mut tag = "";
        part.split(':').skip(1).any(|item| {
            if item.starts_with(|c: char| c.is_ascii_alphabetic()) {
                tag = item;
                return false;
            }
            let (start, end) = item.split_once('-').unwrap_or((item, item));
            tag == TAGS[source % TAGS.len()]
                && (start.parse::<u64>().unwrap()..=end.parse().unwrap()).contains(&number(n))
        })
    })
}

fn universe() -> impl Iterator<Item = Atom> {
    (0..2 * TAGS.len()).flat_map(|source| (1..=2 * NUMBERS).map(move |n| (source, n)))
}

fn agree(set: &GtidSet, model: &BTreeSet<Atom>) {
    let text = set.to_string();
    for atom in universe() {
        assert_eq!(set.contains(&real(atom)), model.contains(&atom), "{atom:?} in {text}");
        assert_eq!(member(&text, atom), model.contains(&atom), "{atom:?} in the text {text}");
    }
    assert_eq!(set.count(), u64::try_from(model.len()).unwrap());
    assert_eq!(set.is_empty(), model.is_empty());
    for (_, intervals) in set {
        assert!(!intervals.is_empty());
        let intervals: Vec<_> = intervals.iter().collect();
        assert!(intervals.windows(2).all(|pair| pair[0].end() + 1 < pair[1].start()), "{text}");
    }
}

/// Runs of numbers, so that neighbours meet as often as they do in life.
fn atoms() -> impl Strategy<Value = Vec<Atom>> {
    prop::collection::vec((0..2 * TAGS.len(), 1..=2 * NUMBERS, 1..=8_u64), 0..24).prop_map(|runs| {
        runs.into_iter()
            .flat_map(|(source, n, length)| (n..(n + length).min(2 * NUMBERS + 1)).map(move |n| (source, n)))
            .collect()
    })
}

fn both(atoms: &[Atom]) -> (GtidSet, BTreeSet<Atom>) {
    (atoms.iter().copied().map(real).collect(), atoms.iter().copied().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_agrees_with_single_numbers(a in atoms(), b in atoms()) {
        let ((a, model_a), (b, model_b)) = (both(&a), both(&b));
        agree(&a, &model_a);
        agree(&a.union(&b), &model_a.union(&model_b).copied().collect());
        // In place, and a copy that shared its gaps stays as it was.
        let mut joined = a.clone();
        joined.add_all(&b);
        prop_assert_eq!(&joined, &a.union(&b));
        agree(&a, &model_a);
        for gtid in b.iter().flat_map(|(tsid, all)| all.iter().map(move |one| (tsid, one.start()))) {
            joined.add(&Gtid::new(gtid.0.uuid, gtid.0.tag, gtid.1).unwrap());
        }
        prop_assert_eq!(&joined, &a.union(&b));
        agree(&a.subtract(&b), &model_a.difference(&model_b).copied().collect());
        agree(&a.intersect(&b), &model_a.intersection(&model_b).copied().collect());
        prop_assert_eq!(a.is_subset(&b), model_a.is_subset(&model_b));
        prop_assert_eq!(a.is_disjoint(&b), model_a.is_disjoint(&model_b));
        prop_assert!(a.is_subset(&a.union(&b)) && a.intersect(&b).is_subset(&a));
        prop_assert_eq!(a == b, model_a == model_b);
    }

    #[test]
    fn text_and_bytes_give_the_set_back(a in atoms(), order in any::<u64>()) {
        let (set, model) = both(&a);
        prop_assert_eq!(set.to_string().parse::<GtidSet>(), Ok(set.clone()));
        prop_assert_eq!(GtidSet::decode(&set.encode()), Ok(set.clone()));
        // The same numbers as loose text in another order.
        let mut loose: Vec<String> = a.iter().copied().map(|atom| real(atom).to_string()).collect();
        loose.sort_by_key(|text| text.bytes().fold(order, |hash, b| hash.wrapping_mul(31) ^ u64::from(b)));
        let read: GtidSet = loose.join(" ,\n").parse().unwrap();
        agree(&read, &model);
        prop_assert_eq!(read, set);
    }

    #[test]
    fn adding_says_whether_it_was_new(a in atoms(), more in atoms()) {
        let (mut set, mut model) = both(&a);
        for atom in more {
            prop_assert_eq!(set.add(&real(atom)), model.insert(atom));
        }
        agree(&set, &model);
    }

    #[test]
    fn no_bytes_and_no_text_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".{0,80}") {
        // Random bytes rarely get past the count; with a plausible head they do.
        for head in [[1, 0, 0, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0, 1]] {
            let _ = GtidSet::decode(&[&head[..], &bytes].concat());
        }
        let _ = GtidSet::decode(&bytes);
        let _ = text.parse::<GtidSet>();
        let _ = spelled(&std::format!("@:{text}")).parse::<GtidSet>();
    }
}
