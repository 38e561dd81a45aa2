//! Sinks that are wrong in exactly one way each, and one that is right and async.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use capstan_conformance::{
    Async, Blocking, Stored, Target, Trouble,
    reference::{Disk, Kept, keep},
};
use capstan_core::{
    deliver::{
        Ack, Batch, BlockingBatch, BlockingSink, BlockingTransaction, BlockingUnit, FailureClass, Incomplete,
        Item, Mismatch, Position, Sink, SinkError, Unit,
    },
    gtid::{Gtid, GtidSet},
};

/// What is wrong with a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Nothing, but it loses the answer of every other commit.
    LosesAnswers,
    /// Writes the changes of a transaction newest first.
    ReversesChanges,
    /// Writes the transactions of a batch newest first.
    ReversesTransactions,
    /// Takes the first thousand changes of a transaction and skips the rest.
    SkipsTheRest,
    /// Commits what it has when the source rolls a transaction back.
    KeepsRolledBack,
    /// Stores a position of its own making when the source rolls a transaction back.
    PassesRolledBack,
    /// Reports an aborted transaction as a permanent failure.
    FailsOnAbort,
    /// Keeps what it has read of a transaction whose link dropped for when it goes on.
    KeepsForLater,
    /// Writes row by row, and tidies up where it is told that the transaction is aborted.
    WritesThrough,
    /// Stores text as ASCII.
    AsciiPosition,
    /// Holds the position in memory and writes the first one only.
    PositionInMemory,
    /// Stores the largest number per source.
    Ordinal,
    /// Stores GTIDs without their tags.
    DropsTags,
    /// Writes nothing for a batch without changes.
    DropsProgress,
    /// Writes an owner's claim with its first data.
    LazyClaim,
    /// Looks at the set and not at whose it is.
    IgnoresOwner,
    /// Looks at the epoch and not at the owner's mark.
    IgnoresMark,
    /// Says stale where it is fenced.
    FencedIsStale,
    /// Refuses the batch it has just written, and no other one.
    OverwritesStale,
    /// Writes whatever adds to what is stored or equals it.
    AcceptsSupersets,
    /// Reads BIGINT UNSIGNED as signed.
    Signed,
    /// Reads NULL as the empty string.
    NullIsEmpty,
}

/// The reference sink with a fault.
#[derive(Debug)]
pub struct Faulty {
    disk: Disk,
    fault: Fault,
    commits: u32,
    /// Rows of an aborted transaction.
    later: Vec<Kept>,
    /// A position that should have been written.
    pending: Option<Position>,
}

impl BlockingSink for Faulty {
    fn position(&mut self) -> Result<Option<Position>, SinkError> {
        match &self.pending {
            Some(position) => Ok(Some(position.clone())),
            None => self.disk.position(),
        }
    }

    fn apply(&mut self, mut batch: BlockingBatch<'_>) -> Result<Ack, SinkError> {
        let stored = self.position()?;
        let expected = batch.expected().position().cloned();
        let mismatch = batch.expected().check(stored.as_ref()).err();
        let held = self.disk.stored().applied.len();
        let mut groups = vec![std::mem::take(&mut self.later)];
        let read = self.read(&mut batch, &mut groups);
        if let Err(why) = read {
            return Err(self.aborted(why, groups, held, stored));
        }
        let ack = batch.finish()?;
        if let Some(mismatch) = mismatch {
            self.refuses(mismatch, expected.as_ref(), stored.as_ref(), ack.position())?;
        }
        self.write(groups, stored.as_ref(), ack.position(), held);
        self.commits += 1;
        if self.fault == Fault::LosesAnswers && self.commits.is_multiple_of(2) {
            return Err(SinkError::new(FailureClass::Unknown, "commit", None));
        }
        Ok(ack)
    }
}

impl Faulty {
    fn read(&mut self, batch: &mut BlockingBatch<'_>, groups: &mut Vec<Vec<Kept>>) -> Result<(), Incomplete> {
        while let Some(unit) = batch.next()? {
            if let BlockingUnit::Transaction(transaction) = unit {
                groups.push(Vec::new());
                self.transaction(transaction, groups.last_mut().unwrap())?;
            }
        }
        Ok(())
    }

    fn transaction(
        &mut self,
        mut transaction: BlockingTransaction<'_>,
        rows: &mut Vec<Kept>,
    ) -> Result<(), Incomplete> {
        let through = self.fault == Fault::WritesThrough && transaction.is_streamed();
        while let Some(item) = transaction.next()? {
            let Item::Change(change) = item else { continue };
            let mut kept = keep(&change).unwrap();
            match self.fault {
                Fault::Signed => kept.image = kept.image.replace(&u64::MAX.to_string(), "-1"),
                Fault::NullIsEmpty => kept.image = kept.image.replace("null", "\"\""),
                _ => {}
            }
            if through {
                self.disk.write_rows(vec![kept]);
            } else {
                rows.push(kept);
            }
            if self.fault == Fault::SkipsTheRest && rows.len() == 1000 {
                return transaction.skip();
            }
        }
        Ok(())
    }

    fn aborted(
        &mut self,
        why: Incomplete,
        groups: Vec<Vec<Kept>>,
        held: usize,
        stored: Option<Position>,
    ) -> SinkError {
        match (self.fault, why) {
            (Fault::KeepsRolledBack, Incomplete::Aborted { comes_again: false }) => {
                self.disk.write_rows(groups.concat());
            }
            (Fault::PassesRolledBack, Incomplete::Aborted { comes_again: false }) => {
                let skipped = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:2".parse().unwrap();
                self.disk.write(Vec::new(), &stored.unwrap().with_skipped(&skipped));
            }
            (Fault::FailsOnAbort, Incomplete::Aborted { comes_again: false }) => {
                return Incomplete::Unread.into();
            }
            (Fault::KeepsForLater, Incomplete::Aborted { comes_again: true }) => self.later = groups.concat(),
            (Fault::WritesThrough, _) => self.disk.truncate(held),
            _ => {}
        }
        why.into()
    }

    /// Refuses, unless the fault says otherwise.
    fn refuses(
        &self,
        mismatch: Mismatch,
        expected: Option<&Position>,
        stored: Option<&Position>,
        new: &Position,
    ) -> Result<(), SinkError> {
        let set = |position: Option<&Position>| position.map(|p| p.gtid_set().clone()).unwrap_or_default();
        let epoch = |position: Option<&Position>| position.map(Position::epoch);
        let same_set = set(expected) == set(stored);
        let written = match (self.fault, mismatch) {
            (Fault::IgnoresOwner, Mismatch::Fenced) => same_set,
            (Fault::IgnoresMark, Mismatch::Fenced) => same_set && epoch(expected) == epoch(stored),
            (Fault::OverwritesStale, Mismatch::Stale) => set(stored) != *new.gtid_set(),
            (Fault::AcceptsSupersets, Mismatch::Stale) => set(stored).is_subset(new.gtid_set()),
            (Fault::FencedIsStale, Mismatch::Fenced) => return Err(SinkError::stale()),
            _ => false,
        };
        if written { Ok(()) } else { Err(mismatch.into()) }
    }

    fn write(&mut self, mut groups: Vec<Vec<Kept>>, stored: Option<&Position>, new: &Position, held: usize) {
        match self.fault {
            Fault::ReversesChanges => groups.iter_mut().for_each(|group| group.reverse()),
            Fault::ReversesTransactions => groups.reverse(),
            _ => {}
        }
        let rows = groups.concat();
        let claim = stored.is_none_or(|stored| !stored.same_owner(new));
        let empty = rows.is_empty() && self.disk.stored().applied.len() == held;
        match self.fault {
            Fault::DropsProgress if empty && !claim => return,
            Fault::LazyClaim if empty && claim => {
                self.pending = Some(new.clone());
                return;
            }
            Fault::PositionInMemory if !claim && new.prepared().len() == 2 => {
                self.pending = Some(new.clone());
                self.disk.write_rows(rows);
                return;
            }
            _ => self.pending = None,
        }
        self.disk.write_text(rows, self.written(new));
    }

    fn written(&self, position: &Position) -> String {
        let text = position.encode();
        let set = position.gtid_set().to_string();
        match self.fault {
            Fault::AsciiPosition => text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect(),
            Fault::Ordinal => text.replace(&set, &ordinal(position.gtid_set())),
            Fault::DropsTags => text.replace(&set, &set.replace(":blue", "")),
            _ => text,
        }
    }
}

/// Each source up to its largest number.
fn ordinal(set: &GtidSet) -> String {
    let mut whole = GtidSet::new();
    for (tsid, intervals) in set.iter() {
        let first = GtidSet::from(Gtid::new(tsid.uuid, tsid.tag, 1).unwrap()).to_string();
        let last = intervals.last().unwrap().end();
        whole = whole.union(&format!("{first}-{last}").parse().unwrap());
    }
    whole.to_string()
}

/// A target of [`Faulty`].
#[derive(Debug)]
pub struct FaultyTarget(pub Disk, pub Fault);

impl Target for FaultyTarget {
    type Sink = Blocking<Faulty>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Blocking(Faulty {
            disk: self.0.clone(),
            fault: self.1,
            commits: 0,
            later: Vec::new(),
            pending: None,
        }))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(self.0.stored())
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        Ok(self.0.row(table, key))
    }
}

/// The reference sink once more, async, with another thread to wait for.
#[derive(Debug)]
pub struct Later(Disk);

impl Sink for Later {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Elsewhere(false).await;
        self.0.position()
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        Elsewhere(false).await;
        batch.expected().check(self.0.position()?.as_ref())?;
        let mut rows = Vec::new();
        while let Some(unit) = batch.next().await? {
            let Unit::Transaction(mut transaction) = unit else { continue };
            while let Some(item) = transaction.next().await? {
                if let Item::Change(change) = item {
                    rows.push(keep(&change)?);
                }
            }
        }
        let ack = batch.finish()?;
        self.0.write(rows, ack.position());
        Ok(ack)
    }
}

/// Done when another thread has said so.
struct Elsewhere(bool);

impl Future for Elsewhere {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        thread::spawn(move || waker.wake());
        Poll::Pending
    }
}

/// A target of [`Later`].
#[derive(Debug)]
pub struct LaterTarget(pub Disk);

impl Target for LaterTarget {
    type Sink = Async<Later>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Async(Later(self.0.clone())))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(self.0.stored())
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        Ok(self.0.row(table, key))
    }
}
