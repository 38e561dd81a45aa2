//! GTIDs, tagged GTIDs and GTID sets.
//!
//! A GTID names one transaction: the source it was first committed on ([`Tsid`]: a UUID and, since
//! MySQL 8.3, an optional tag) and its number there (gno). A [`GtidSet`] is what a server has
//! executed or a consumer has processed: per source the sorted list of intervals, gaps kept.
//!
//! Sources: the manual's "GTID Format and Storage"; `sql/rpl_gtid_set.cc` and `libs/mysql/gtid` for
//! what the manual leaves open.

mod binary;
mod interval;
mod set;
mod tag;
#[cfg(test)]
mod tests;
mod text;
mod uuid;

pub use binary::GtidSetDecodeError;
pub use interval::{GNO_MAX, Interval};
pub use set::{GtidSet, IntervalIter, Intervals, Iter};
pub use tag::{Tag, TagError};
pub use text::{Expected, GtidTextError};
pub use uuid::{Uuid, UuidError};

/// Whose transaction it is: MySQL's "transaction source identifier", a UUID and a tag.
///
/// The order is the server's: by UUID bytes, then by tag, the untagged one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tsid {
    /// The UUID of the server that committed first.
    pub uuid: Uuid,
    /// The tag, [`Tag::NONE`] for an untagged GTID.
    pub tag: Tag,
}

impl Tsid {
    /// The source of untagged transactions of `uuid`.
    #[must_use]
    pub const fn untagged(uuid: Uuid) -> Self {
        Self { uuid, tag: Tag::NONE }
    }
}

/// One transaction. Text: `uuid:gno`, or `uuid:tag:gno`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    tsid: Tsid,
    gno: u64,
}

impl Gtid {
    /// The transaction `gno` of `uuid` under `tag`; `None` unless `gno` is 1..=[`GNO_MAX`].
    #[must_use]
    pub const fn new(uuid: Uuid, tag: Tag, gno: u64) -> Option<Self> {
        if gno == 0 || gno > GNO_MAX { None } else { Some(Self { tsid: Tsid { uuid, tag }, gno }) }
    }

    /// Whose transaction it is.
    #[must_use]
    pub const fn tsid(&self) -> Tsid {
        self.tsid
    }

    /// The server that committed it first.
    #[must_use]
    pub const fn uuid(&self) -> Uuid {
        self.tsid.uuid
    }

    /// Its tag, [`Tag::NONE`] if it has none.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        self.tsid.tag
    }

    /// Its number, 1..=[`GNO_MAX`].
    #[must_use]
    pub const fn gno(&self) -> u64 {
        self.gno
    }
}

impl core::fmt::Debug for Gtid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}
