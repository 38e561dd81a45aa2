//! Lines of a batch, held back until it is complete.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    time::Instant,
};

use capstan_core::{
    deliver::{
        Batch, BlockingBatch, BlockingTransaction, BlockingUnit, Part, Position, SchemaChange, SinkError,
        SnapshotRows, Transaction, Unit,
    },
    gtid::GtidSet,
    text::{SchemaChangeText, SnapshotLine, TransactionLine, write_progress, write_schema_change},
};

use super::JsonOptions;
use crate::io_failure::writing;

/// What a batch prints. Nothing of it is shown before the batch is complete: what was printed cannot be
/// taken back.
pub(super) struct Gather {
    options: JsonOptions,
    text: String,
    spill: Option<File>,
    progress: Progress,
}

/// When the position was last told, and what it was.
struct Progress {
    at: Option<Instant>,
    told: Option<GtidSet>,
}

impl fmt::Debug for Gather {
    // Rule 1: the text holds row values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gather({} bytes, spilled: {})", self.text.len(), self.spill.is_some())
    }
}

impl Gather {
    pub(super) const fn new(options: JsonOptions) -> Self {
        Self { options, text: String::new(), spill: None, progress: Progress { at: None, told: None } }
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(self.options.spill_above.saturating_mul(2));
        self.spill = None;
    }

    /// Takes the units of a batch, from its first.
    pub(super) fn take(&mut self, batch: &mut BlockingBatch<'_>) -> Result<(), SinkError> {
        self.clear();
        while let Some(unit) = batch.next()? {
            match unit {
                BlockingUnit::Transaction(transaction) => self.transaction(transaction)?,
                BlockingUnit::SchemaChange(change) => self.schema_change(change),
                BlockingUnit::SnapshotRows(rows) => self.snapshot_rows(rows)?,
                BlockingUnit::Progress(_) => self.passed(),
            }
        }
        Ok(())
    }

    /// As [`Gather::take`]. What a dropped call has gathered, the next one clears.
    pub(super) async fn take_awaited(&mut self, batch: &mut Batch<'_>) -> Result<(), SinkError> {
        self.clear();
        while let Some(unit) = batch.next().await? {
            match unit {
                Unit::Transaction(transaction) => self.awaited_transaction(transaction).await?,
                Unit::SchemaChange(change) => self.schema_change(change),
                Unit::SnapshotRows(rows) => self.snapshot_rows(rows)?,
                Unit::Progress(_) => self.passed(),
            }
        }
        Ok(())
    }

    fn schema_change(&mut self, change: &SchemaChange) {
        write_schema_change(&mut self.text, change.gtid.as_ref(), change.committed_at, &text_of(change));
    }

    /// Told now, at whatever cadence it comes: nothing else tells of it.
    const fn passed(&mut self) {
        self.progress.at = None;
    }

    async fn awaited_transaction(&mut self, mut transaction: Transaction<'_>) -> Result<(), SinkError> {
        let (gtid, at) = (transaction.gtid().copied(), transaction.committed_at());
        let mut line = TransactionLine::begin(&mut self.text, gtid.as_ref(), at);
        while let Some(part) = transaction.next_part().await? {
            self.part(&mut line, part)?;
        }
        line.end(&mut self.text);
        Ok(())
    }

    fn transaction(&mut self, mut transaction: BlockingTransaction<'_>) -> Result<(), SinkError> {
        let (gtid, at) = (transaction.gtid().copied(), transaction.committed_at());
        let mut line = TransactionLine::begin(&mut self.text, gtid.as_ref(), at);
        let streamed = transaction.is_streamed();
        while let Some(part) = transaction.next_part()? {
            let changes = self.part(&mut line, part)?;
            if streamed {
                for _ in 0..changes {
                    crate::fault::fault_point!("streamed_change");
                }
            }
        }
        line.end(&mut self.text);
        Ok(())
    }

    /// Gives how many changes it is.
    fn part(&mut self, line: &mut TransactionLine, part: Part<'_>) -> Result<u64, SinkError> {
        let (text, options, mut changes) = (&mut self.text, self.options.text, 1);
        match part {
            Part::Rows(rows) => rows.take(|rows| {
                changes = rows.changes();
                line.rows(text, rows, options)
            })?,
            Part::SchemaChange(change) => line.schema_change(text, &text_of(change)),
        }
        self.settle()?;
        Ok(changes)
    }

    fn snapshot_rows(&mut self, mut rows: SnapshotRows<'_>) -> Result<(), SinkError> {
        let Some(chunk) = rows.chunk() else { return Ok(()) };
        let mut line =
            SnapshotLine::begin(&mut self.text, &chunk.table, chunk.number, &chunk.gtid_set, chunk.last);
        while let Some(change) = rows.next()? {
            let (table, Some(after)) = (change.table, change.after) else { continue };
            line.row(&mut self.text, after.values(), self.options.text)
                .map_err(|why| SinkError::from(why).of_table(table.schema(), table.table()))?;
            self.settle()?;
        }
        line.end(&mut self.text);
        crate::fault::fault_point!("snapshot_rows");
        Ok(())
    }

    /// Moves the text to a temporary file, once there is too much of it.
    fn settle(&mut self) -> Result<(), SinkError> {
        if self.text.len() <= self.options.spill_above {
            return Ok(());
        }
        let spilled = (|| {
            let file = match &mut self.spill {
                Some(file) => file,
                None => self.spill.insert(tempfile::tempfile()?),
            };
            file.write_all(self.text.as_bytes())
        })();
        self.text.clear();
        spilled.map_err(|error| writing("spill", error))
    }

    /// Appends the position, if it is time or `now` is said, and it is not what was told last.
    pub(super) fn progress(&mut self, position: &Position, now: bool) {
        let told = self.progress.told.as_ref() == Some(position.gtid_set());
        let due = self.progress.at.is_none_or(|at| at.elapsed() >= self.options.progress_every);
        if !told && (now || due) {
            write_progress(&mut self.text, position.gtid_set());
            self.progress = Progress { at: Some(Instant::now()), told: Some(position.gtid_set().clone()) };
        }
    }

    /// Writes everything gathered; gives its length in bytes.
    pub(super) fn write_to(&mut self, out: &mut impl Write) -> io::Result<u64> {
        let mut length = self.text.len() as u64;
        if let Some(file) = &mut self.spill {
            file.seek(SeekFrom::Start(0))?;
            length += io::copy(file, out)?;
        }
        out.write_all(self.text.as_bytes())?;
        Ok(length)
    }
}

impl Gather {
    /// From here on [`Gather::next_piece`] gives everything gathered.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.spill.as_mut().map_or(Ok(()), |file| file.seek(SeekFrom::Start(0)).map(|_| ()))
    }

    /// Moves the next piece of what was gathered into `piece`; an empty one is the end.
    pub(super) fn next_piece(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        piece.clear();
        if let Some(file) = &mut self.spill {
            if file.take(PIECE).read_to_end(piece)? > 0 {
                return Ok(());
            }
            self.spill = None;
        }
        // The text's allocation comes back with the piece that follows it.
        let text =
            std::mem::replace(&mut self.text, String::from_utf8(std::mem::take(piece)).unwrap_or_default());
        *piece = text.into_bytes();
        Ok(())
    }
}

/// Bytes of a spilled batch that are in memory at once.
const PIECE: u64 = 256 << 10;

fn text_of(change: &SchemaChange) -> SchemaChangeText<'_> {
    SchemaChangeText {
        kind: change.kind,
        tables: &change.tables,
        rows: change.rows,
        statement: &change.statement,
    }
}
