//! The reference sink once more, async, with another thread to wait for.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use capstan_conformance::{
    Async, Stored, Target, Trouble,
    reference::{Disk, begun, emptied, keep},
};
use capstan_core::deliver::{Ack, Batch, Item, Position, Sink, SinkError, Unit};

/// An async sink, right or wrong.
#[derive(Debug)]
pub struct Later {
    disk: Disk,
    /// Waits between the write of the rows and that of the position.
    two_steps: bool,
}

impl Sink for Later {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Elsewhere(false).await;
        self.disk.position()
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        Elsewhere(false).await;
        batch.expected().check(self.disk.position()?.as_ref())?;
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
                Unit::SchemaChange(change) => rows.extend(emptied(change)),
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
        if self.two_steps {
            self.disk.write_rows(std::mem::take(&mut rows));
            Elsewhere(false).await;
        }
        self.disk.write(rows, ack.position());
        Elsewhere(false).await;
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
#[derive(Debug, Default)]
pub struct LaterTarget {
    pub disk: Disk,
    pub two_steps: bool,
}

impl Target for LaterTarget {
    type Sink = Async<Later>;

    fn open(&mut self) -> Result<Self::Sink, Trouble> {
        Ok(Async(Later { disk: self.disk.clone(), two_steps: self.two_steps }))
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

    fn declines(&self) -> &[(&str, &str)] {
        &[("dies_at_fault_points", "it is dropped at its awaits instead")]
    }
}
