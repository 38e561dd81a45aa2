//! The reference sink once more, async, with another thread to wait for.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    thread,
};

use capstan_conformance::{
    Async, Level, Stored, Target, Trouble,
    reference::{Disk, begun, followed, keep},
};
use capstan_core::deliver::{Ack, Batch, Item, Position, Sink, SinkError, Unit};

/// What is wrong with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slip {
    /// Nothing.
    #[default]
    Nothing,
    /// Waits between the write of the rows and that of the position.
    TwoSteps,
    /// The same, and takes the rows back with the next call: if there is one.
    TidiesUpLater,
    /// Promises at least once, and waits between the rows of a transaction.
    RowByRow,
}

/// An async sink, right or wrong.
#[derive(Debug)]
pub struct Later {
    disk: Disk,
    slip: Slip,
    busy: Arc<AtomicBool>,
    /// Rows that are there before those to be taken back.
    untidy: Option<usize>,
}

impl Later {
    fn tidy_up(&mut self) {
        if let Some(keep) = self.untidy.take() {
            self.disk.truncate(keep);
        }
    }
}

impl Sink for Later {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Elsewhere(false).await;
        self.tidy_up();
        self.disk.position()
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        let _turn = Turn::of(&self.busy).await;
        self.tidy_up();
        Elsewhere(false).await;
        if self.slip != Slip::RowByRow {
            batch.expected().check(self.disk.position()?.as_ref())?;
        }
        let mut rows = Vec::new();
        while let Some(unit) = batch.next().await? {
            match unit {
                Unit::Transaction(mut transaction) => {
                    while let Some(item) = transaction.next().await? {
                        if let Item::Change(change) = item {
                            rows.push(keep(&change)?);
                        }
                    }
                }
                Unit::SchemaChange(change) => rows.extend(followed(change)),
                Unit::SnapshotRows(mut chunk) => {
                    rows.extend(chunk.chunk().and_then(begun));
                    while let Some(change) = chunk.next()? {
                        rows.push(keep(&change)?);
                    }
                }
                Unit::Progress(_) => {}
            }
        }
        let ack = batch.finish()?;
        match self.slip {
            Slip::Nothing => {}
            Slip::TwoSteps | Slip::TidiesUpLater => {
                self.untidy = Some(self.disk.kept().len()).filter(|_| self.slip == Slip::TidiesUpLater);
                self.disk.write_rows(std::mem::take(&mut rows));
                Elsewhere(false).await;
                self.untidy = None;
            }
            Slip::RowByRow => {
                for row in std::mem::take(&mut rows) {
                    self.disk.write_rows(vec![row]);
                    Elsewhere(false).await;
                }
            }
        }
        self.disk.write(rows, ack.position());
        Elsewhere(false).await;
        Ok(ack)
    }
}

/// One writes at a time.
struct Turn(Arc<AtomicBool>);

impl Turn {
    async fn of(busy: &Arc<AtomicBool>) -> Self {
        while busy.swap(true, Ordering::AcqRel) {
            Elsewhere(false).await;
        }
        Self(Arc::clone(busy))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
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
#[derive(Debug, Default)]
pub struct LaterTarget {
    pub disk: Disk,
    pub slip: Slip,
    pub busy: Arc<AtomicBool>,
}

impl Target for LaterTarget {
    type Sink = Async<Later>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Async(Later { disk: self.disk.clone(), slip: self.slip, busy: self.busy.clone(), untidy: None }))
    }

    fn probe(&mut self) -> Result<Stored, Trouble> {
        Ok(self.disk.stored())
    }

    fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
        Ok(self.disk.row(table, key))
    }

    fn plant(&mut self, position: &str) -> Result<(), Trouble> {
        self.disk.plant(position);
        Ok(())
    }

    fn backup(&mut self) -> Result<(), Trouble> {
        self.disk.backup();
        Ok(())
    }

    fn restore(&mut self) -> Result<(), Trouble> {
        self.disk.restore();
        Ok(())
    }

    fn level(&self) -> Level {
        if self.slip == Slip::RowByRow { Level::AtLeastOnce } else { Level::ExactlyOnce }
    }

    fn declines(&self) -> &[(&str, &str)] {
        &[("dies_at_fault_points", "it is dropped at its awaits instead")]
    }
}
