//! A set of GTIDs.

use alloc::{borrow::Cow, sync::Arc, vec::Vec};
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

/// One source. A stream adds at the end of its last interval and nowhere else, and each batch keeps the set
/// before it: so what is before the last interval is shared, and a copy of a set costs the same whatever the
/// number of its gaps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry {
    tsid: Tsid,
    earlier: Arc<Vec<Interval>>,
    last: Interval,
}

impl Entry {
    /// `None` for no intervals.
    fn new(tsid: Tsid, mut intervals: Vec<Interval>) -> Option<Self> {
        let last = intervals.pop()?;
        Some(Self { tsid, earlier: Arc::new(intervals), last })
    }

    fn intervals(&self) -> Intervals<'_> {
        Intervals { earlier: &self.earlier, last: Some(&self.last) }
    }

    fn insert(&mut self, gno: u64) -> bool {
        if interval::append(&mut self.last, gno) {
            return true;
        }
        if self.last.start() <= gno {
            if gno <= self.last.end() {
                return false;
            }
            if let Some(next) = Interval::new(gno, gno) {
                Arc::make_mut(&mut self.earlier).push(core::mem::replace(&mut self.last, next));
                return true;
            }
        }
        let mut all = self.intervals().to_vec();
        let is_new = interval::insert(&mut all, gno);
        if is_new && let Some(entry) = Self::new(self.tsid, all) {
            *self = entry;
        }
        is_new
    }
}

/// The intervals of one source in a set, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Intervals<'a> {
    earlier: &'a [Interval],
    last: Option<&'a Interval>,
}

impl<'a> Intervals<'a> {
    const NONE: Self = Self { earlier: &[], last: None };

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.earlier.len().saturating_add(if self.last.is_some() { 1 } else { 0 })
    }

    /// None at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The one with the lowest numbers.
    #[must_use]
    pub fn first(&self) -> Option<&'a Interval> {
        self.earlier.first().or(self.last)
    }

    /// The one with the highest numbers.
    #[must_use]
    pub const fn last(&self) -> Option<&'a Interval> {
        self.last
    }

    /// All of them.
    pub fn iter(&self) -> IntervalIter<'a> {
        self.earlier.iter().chain(self.last)
    }

    fn to_vec(self) -> Vec<Interval> {
        self.iter().copied().collect()
    }

    fn contains(&self, gno: u64) -> bool {
        match self.last {
            Some(last) if last.start() <= gno => gno <= last.end(),
            _ => interval::contains(self.earlier, gno),
        }
    }

    fn list(&self) -> Cow<'a, [Interval]> {
        match (self.earlier, self.last) {
            ([], Some(last)) => Cow::Borrowed(core::slice::from_ref(last)),
            _ => Cow::Owned(self.to_vec()),
        }
    }
}

/// What [`Intervals`] walk by.
pub type IntervalIter<'a> =
    core::iter::Chain<core::slice::Iter<'a, Interval>, core::option::IntoIter<&'a Interval>>;

impl<'a> IntoIterator for Intervals<'a> {
    type Item = &'a Interval;
    type IntoIter = IntervalIter<'a>;

    fn into_iter(self) -> IntervalIter<'a> {
        self.iter()
    }
}

impl core::fmt::Debug for Intervals<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
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
            && interval::append(&mut entry.last, gtid.gno())
        {
            return true;
        }
        self.add_anywhere(gtid)
    }

    #[cold]
    fn add_anywhere(&mut self, gtid: &Gtid) -> bool {
        match self.find(&gtid.tsid()) {
            Ok(at) => {
                self.hint = at;
                self.entries.get_mut(at).is_some_and(|entry| entry.insert(gtid.gno()))
            }
            Err(at) => {
                self.hint = at;
                let entry = Interval::new(gtid.gno(), gtid.gno())
                    .and_then(|only| Entry::new(gtid.tsid(), Vec::from([only])));
                let Some(entry) = entry else { return false };
                self.entries.insert(at, entry);
                true
            }
        }
    }

    /// Adds what another set holds, in place: what goes on where this one ends costs no copy.
    pub fn add_all(&mut self, other: &Self) {
        for theirs in &other.entries {
            match self.find(&theirs.tsid) {
                Err(at) => self.entries.insert(at, theirs.clone()),
                Ok(at) => {
                    let Some(ours) = self.entries.get_mut(at) else { continue };
                    if theirs.earlier.is_empty() && interval::extend(&mut ours.last, theirs.last) {
                        continue;
                    }
                    let all = interval::union(&ours.intervals().list(), &theirs.intervals().list());
                    if let Some(entry) = Entry::new(theirs.tsid, all) {
                        *ours = entry;
                    }
                }
            }
        }
    }

    /// Whether the set holds `gtid`.
    #[must_use]
    pub fn contains(&self, gtid: &Gtid) -> bool {
        self.intervals(&gtid.tsid()).contains(gtid.gno())
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
        self.iter().flat_map(|(_, list)| list.iter()).fold(0, |sum: u64, iv| sum.saturating_add(iv.count()))
    }

    /// Sources with their intervals, in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { entries: self.entries.iter() }
    }

    /// The intervals of one source, sorted; empty if the set has none of it.
    #[must_use]
    pub fn intervals(&self, tsid: &Tsid) -> Intervals<'_> {
        let entry = self.find(tsid).ok().and_then(|at| self.entries.get(at));
        entry.map_or(Intervals::NONE, Entry::intervals)
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
            Pair::Both(a, b) => interval::union(&a.list(), &b.list()),
        })
    }

    /// What this set holds and `other` does not.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        combine(self, other, |pair| match pair {
            Pair::Left(only) => only.to_vec(),
            Pair::Right(_) => Vec::new(),
            Pair::Both(a, b) => interval::subtract(&a.list(), &b.list()),
        })
    }

    /// What both sets hold.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        combine(self, other, |pair| match pair {
            Pair::Left(_) | Pair::Right(_) => Vec::new(),
            Pair::Both(a, b) => interval::intersect(&a.list(), &b.list()),
        })
    }

    /// Whether `of` holds everything this set holds.
    #[must_use]
    pub fn is_subset(&self, of: &Self) -> bool {
        pairs(self, of).all(|(_, pair)| match pair {
            Pair::Left(_) => false,
            Pair::Right(_) => true,
            Pair::Both(a, b) => interval::is_subset(&a.list(), &b.list()),
        })
    }

    /// Whether the two sets have nothing in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        pairs(self, other).all(|(_, pair)| match pair {
            Pair::Left(_) | Pair::Right(_) => true,
            Pair::Both(a, b) => interval::is_disjoint(&a.list(), &b.list()),
        })
    }

    /// A set from intervals in any order, overlapping or repeated.
    pub(super) fn from_unsorted(mut all: Vec<(Tsid, Interval)>) -> Self {
        // Sorted at once rather than inserted one by one: input from outside may come in the worst
        // order, and may be long.
        all.sort_unstable();
        let mut entries: Vec<Entry> = Vec::new();
        let mut source: Option<(Tsid, Vec<Interval>)> = None;
        for (tsid, next) in all {
            match &mut source {
                Some((same, intervals)) if *same == tsid => interval::push(intervals, next),
                _ => {
                    let done = source.replace((tsid, Vec::from([next])));
                    entries.extend(done.and_then(|(tsid, intervals)| Entry::new(tsid, intervals)));
                }
            }
        }
        entries.extend(source.and_then(|(tsid, intervals)| Entry::new(tsid, intervals)));
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
    type Item = (Tsid, Intervals<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| (entry.tsid, entry.intervals()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a GtidSet {
    type Item = (Tsid, Intervals<'a>);
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
    Left(Intervals<'a>),
    Right(Intervals<'a>),
    Both(Intervals<'a>, Intervals<'a>),
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
    let entries = pairs(left, right).filter_map(|(tsid, pair)| Entry::new(tsid, by(pair))).collect();
    GtidSet { entries, hint: 0 }
}
