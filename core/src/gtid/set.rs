//! A set of GTIDs.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::iter::Peekable;

use super::interval::{self, Interval};
use super::{Gtid, Tsid, Uuid};

/// A set of GTIDs: per source the numbers it holds, as sorted intervals with their gaps.
///
/// Text is the server's (`@@GLOBAL.gtid_executed`), on one line; see [`core::str::FromStr`] for
/// what is read. Bytes are those of `PREVIOUS_GTIDS` and `COM_BINLOG_DUMP_GTID`:
/// [`GtidSet::encode`], [`GtidSet::decode`].
///
/// ```
/// use capstan_core::gtid::{Gtid, GtidSet};
/// let mut set: GtidSet = "3E11FA47-71CA-11E1-9E33-C80AA9429562:5:1-3".parse()?;
/// set.add(&"3e11fa47-71ca-11e1-9e33-c80aa9429562:4".parse()?);
/// assert_eq!(set.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5");
/// # Ok::<(), capstan_core::gtid::GtidTextError>(())
/// ```
#[derive(Clone, Default)]
pub struct GtidSet {
    // Sorted by source; no source without intervals.
    entries: Vec<Entry>,
    // Where the last GTID was added: the next one of a stream is nearly always its successor. A
    // stale hint is harmless, the source is compared.
    hint: usize,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry {
    tsid: Tsid,
    intervals: Vec<Interval>,
}

impl GtidSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), hint: 0 }
    }

    /// Adds one GTID in place; whether it is new. The successor of the last one added costs no
    /// search and no allocation.
    #[inline]
    pub fn add(&mut self, gtid: &Gtid) -> bool {
        if let Some(entry) = self.entries.get_mut(self.hint)
            && entry.tsid == gtid.tsid()
            && interval::append(&mut entry.intervals, gtid.gno())
        {
            return true;
        }
        self.add_anywhere(gtid)
    }

    #[cold]
    fn add_anywhere(&mut self, gtid: &Gtid) -> bool {
        let at = match self.find(&gtid.tsid()) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, Entry { tsid: gtid.tsid(), intervals: Vec::new() });
                at
            }
        };
        self.hint = at;
        self.entries.get_mut(at).is_some_and(|entry| interval::insert(&mut entry.intervals, gtid.gno()))
    }

    /// Whether the set holds `gtid`.
    #[must_use]
    pub fn contains(&self, gtid: &Gtid) -> bool {
        interval::contains(self.intervals(&gtid.tsid()), gtid.gno())
    }

    /// Whether the set holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether any GTID of the set is tagged: then its bytes have the layout that only MySQL 8.3
    /// and later reads.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        self.entries.iter().any(|entry| !entry.tsid.tag.is_none())
    }

    /// How many GTIDs the set holds; `u64::MAX` if they are more.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.iter().flat_map(|(_, list)| list).fold(0, |sum: u64, iv| sum.saturating_add(iv.count()))
    }

    /// Sources with their intervals, in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { entries: self.entries.iter() }
    }

    /// The intervals of one source, sorted; empty if the set has none of it.
    #[must_use]
    pub fn intervals(&self, tsid: &Tsid) -> &[Interval] {
        match self.find(tsid).ok().and_then(|at| self.entries.get(at)) {
            Some(entry) => &entry.intervals,
            None => &[],
        }
    }

    /// The UUIDs of the set, each once, in order.
    pub fn sources(&self) -> impl Iterator<Item = Uuid> + '_ {
        let mut last = None;
        self.entries
            .iter()
            .map(|entry| entry.tsid.uuid)
            .filter(move |uuid| last.replace(*uuid) != Some(*uuid))
    }

    /// What either set holds.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        combine(self, other, |pair| match pair {
            Pair::Left(only) | Pair::Right(only) => only.to_vec(),
            Pair::Both(a, b) => interval::union(a, b),
        })
    }

    /// What this set holds and `other` does not.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        combine(self, other, |pair| match pair {
            Pair::Left(only) => only.to_vec(),
            Pair::Right(_) => Vec::new(),
            Pair::Both(a, b) => interval::subtract(a, b),
        })
    }

    /// What both sets hold.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        combine(self, other, |pair| match pair {
            Pair::Left(_) | Pair::Right(_) => Vec::new(),
            Pair::Both(a, b) => interval::intersect(a, b),
        })
    }

    /// Whether `of` holds everything this set holds.
    #[must_use]
    pub fn is_subset(&self, of: &Self) -> bool {
        pairs(self, of).all(|(_, pair)| match pair {
            Pair::Left(_) => false,
            Pair::Right(_) => true,
            Pair::Both(a, b) => interval::is_subset(a, b),
        })
    }

    /// Whether the two sets have nothing in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        pairs(self, other).all(|(_, pair)| match pair {
            Pair::Left(_) | Pair::Right(_) => true,
            Pair::Both(a, b) => interval::is_disjoint(a, b),
        })
    }

    /// A set from intervals in any order, overlapping or repeated.
    pub(super) fn from_unsorted(mut all: Vec<(Tsid, Interval)>) -> Self {
        // Sorted at once rather than inserted one by one: input from outside may come in the worst
        // order, and may be long.
        all.sort_unstable();
        let mut entries: Vec<Entry> = Vec::new();
        for (tsid, next) in all {
            match entries.last_mut() {
                Some(entry) if entry.tsid == tsid => interval::push(&mut entry.intervals, next),
                _ => entries.push(Entry { tsid, intervals: Vec::from([next]) }),
            }
        }
        Self { entries, hint: 0 }
    }

    fn find(&self, tsid: &Tsid) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.tsid.cmp(tsid))
    }
}

/// Sources with their intervals, in order: [`GtidSet::iter`].
#[derive(Clone)]
pub struct Iter<'a> {
    entries: core::slice::Iter<'a, Entry>,
}

impl core::fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (Tsid, &'a [Interval]);

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| (entry.tsid, entry.intervals.as_slice()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a GtidSet {
    type Item = (Tsid, &'a [Interval]);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Extend<Gtid> for GtidSet {
    fn extend<T: IntoIterator<Item = Gtid>>(&mut self, gtids: T) {
        for gtid in gtids {
            self.add(&gtid);
        }
    }
}

impl FromIterator<Gtid> for GtidSet {
    fn from_iter<T: IntoIterator<Item = Gtid>>(gtids: T) -> Self {
        let mut set = Self::new();
        set.extend(gtids);
        set
    }
}

impl From<Gtid> for GtidSet {
    fn from(gtid: Gtid) -> Self {
        Self::from_iter([gtid])
    }
}

impl PartialEq for GtidSet {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for GtidSet {}

/// An order for sorted containers; it says nothing of inclusion, for that see
/// [`GtidSet::is_subset`].
impl Ord for GtidSet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.entries.cmp(&other.entries)
    }
}

impl PartialOrd for GtidSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for GtidSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entries.hash(state);
    }
}

impl core::fmt::Debug for GtidSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "GtidSet({self})")
    }
}

/// The intervals of one source in two sets.
enum Pair<'a> {
    Left(&'a [Interval]),
    Right(&'a [Interval]),
    Both(&'a [Interval], &'a [Interval]),
}

/// Walks two sets side by side, by source.
fn pairs<'a>(left: &'a GtidSet, right: &'a GtidSet) -> Pairs<'a> {
    Pairs { left: left.iter().peekable(), right: right.iter().peekable() }
}

struct Pairs<'a> {
    left: Peekable<Iter<'a>>,
    right: Peekable<Iter<'a>>,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Tsid, Pair<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.left.peek(), self.right.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => self.left.next().map(|(tsid, a)| (tsid, Pair::Left(a))),
            Ordering::Greater => self.right.next().map(|(tsid, b)| (tsid, Pair::Right(b))),
            Ordering::Equal => {
                let (tsid, a) = self.left.next()?;
                let (_, b) = self.right.next()?;
                Some((tsid, Pair::Both(a, b)))
            }
        }
    }
}

fn combine(left: &GtidSet, right: &GtidSet, by: impl Fn(Pair<'_>) -> Vec<Interval>) -> GtidSet {
    let entries = pairs(left, right)
        .map(|(tsid, pair)| Entry { tsid, intervals: by(pair) })
        .filter(|entry| !entry.intervals.is_empty())
        .collect();
    GtidSet { entries, hint: 0 }
}
