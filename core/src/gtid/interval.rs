//! Intervals of transaction numbers, and sorted lists of them.
//!
//! A list is canonical when its intervals are sorted and neither overlap nor touch; every function
//! here takes and gives canonical lists.

use alloc::vec::Vec;
use core::cmp::{max, min};

/// The largest transaction number: `GNO_END` (2^63 − 1) is itself no number (`sql/rpl_gtid.h`).
pub const GNO_MAX: u64 = 0x7fff_ffff_ffff_fffe;

/// Transaction numbers `start..=end`, both included, both 1..=[`GNO_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    start: u64,
    end: u64,
}

impl Interval {
    /// `start..=end`; `None` if it is empty or leaves 1..=[`GNO_MAX`].
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Option<Self> {
        if start == 0 || start > end || end > GNO_MAX { None } else { Some(Self { start, end }) }
    }

    /// The first number.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The last number, included.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// How many numbers it holds.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.end.wrapping_sub(self.start).wrapping_add(1)
    }

    /// The first number behind it; cannot overflow, because the end is at most [`GNO_MAX`].
    const fn behind(&self) -> u64 {
        self.end.wrapping_add(1)
    }
}

impl core::fmt::Debug for Interval {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{}", self.start, self.end)
    }
}

/// Grows the last interval by the number behind its end: the case of every transaction in order.
#[inline]
pub(super) fn append(last: &mut Interval, gno: u64) -> bool {
    let grows = last.behind() == gno && gno <= GNO_MAX;
    if grows {
        last.end = gno;
    }
    grows
}

/// Grows the last interval by one that starts in it or right behind it; `false` if it starts elsewhere.
pub(super) fn extend(last: &mut Interval, next: Interval) -> bool {
    let grows = last.start <= next.start && next.start <= last.behind();
    if grows {
        last.end = max(last.end, next.end);
    }
    grows
}

/// Adds one number; whether it is new.
pub(super) fn insert(list: &mut Vec<Interval>, gno: u64) -> bool {
    let at = list.partition_point(|iv| iv.behind() < gno);
    // `iv` is the first that contains, touches or lies behind `gno`.
    let Some(iv) = list.get_mut(at) else {
        list.push(Interval { start: gno, end: gno });
        return true;
    };
    if iv.start <= gno && gno <= iv.end {
        return false;
    }
    if iv.behind() == gno {
        iv.end = gno;
        let grown = *iv;
        let next = at.saturating_add(1);
        if let Some(following) = list.get(next).copied().filter(|f| f.start == grown.behind()) {
            list.remove(next);
            if let Some(iv) = list.get_mut(at) {
                iv.end = following.end;
            }
        }
    } else if iv.start == gno.wrapping_add(1) {
        iv.start = gno;
    } else {
        list.insert(at, Interval { start: gno, end: gno });
    }
    true
}

/// Appends an interval that does not start before the last one does, and joins what touches.
pub(super) fn push(list: &mut Vec<Interval>, next: Interval) {
    match list.last_mut() {
        Some(last) if next.start <= last.behind() => last.end = max(last.end, next.end),
        _ => list.push(next),
    }
}

pub(super) fn contains(list: &[Interval], gno: u64) -> bool {
    let at = list.partition_point(|iv| iv.end < gno);
    list.get(at).is_some_and(|iv| iv.start <= gno)
}

pub(super) fn union(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::with_capacity(max(a.len(), b.len()));
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.start <= y.start => a.next(),
            (Some(_), None) => a.next(),
            (_, Some(_)) => b.next(),
            (None, None) => None,
        };
        match next {
            Some(next) => push(&mut out, next),
            None => return out,
        }
    }
}

pub(super) fn subtract(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    let mut cuts = b.iter().peekable();
    for iv in a {
        let mut start = iv.start;
        while cuts.next_if(|cut| cut.end < start).is_some() {}
        while let Some(cut) = cuts.peek().filter(|cut| cut.start <= iv.end) {
            if cut.start > start {
                out.push(Interval { start, end: cut.start.wrapping_sub(1) });
            }
            start = cut.behind();
            if cut.end > iv.end {
                // It may reach into the next interval too.
                break;
            }
            cuts.next();
        }
        if start <= iv.end {
            out.push(Interval { start, end: iv.end });
        }
    }
    out
}

pub(super) fn intersect(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    meet(a, b, |both| {
        out.push(both);
        true
    });
    out
}

pub(super) fn is_disjoint(a: &[Interval], b: &[Interval]) -> bool {
    meet(a, b, |_| false)
}

pub(super) fn is_subset(sub: &[Interval], of: &[Interval]) -> bool {
    let mut covers = of.iter().peekable();
    sub.iter().all(|iv| {
        while covers.next_if(|cover| cover.end < iv.start).is_some() {}
        covers.peek().is_some_and(|cover| cover.start <= iv.start && iv.end <= cover.end)
    })
}

/// Calls `each` with every common interval in order until it says `false`; whether it never did.
fn meet(a: &[Interval], b: &[Interval], mut each: impl FnMut(Interval) -> bool) -> bool {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let (start, end) = (max(x.start, y.start), min(x.end, y.end));
        if start <= end && !each(Interval { start, end }) {
            return false;
        }
        if x.end < y.end {
            a.next();
        } else {
            b.next();
        }
    }
    true
}
