//! JSON lines to a writer that is awaited.

use std::{
    fmt,
    io::{self, ErrorKind},
};

use capstan_core::deliver::{Ack, Batch, FailureClass, Position, Sink, SinkError};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::{JsonOptions, failed, gather::Gather};

/// Prints units to an asynchronous writer (a socket, the standard input of a child process, a compressing
/// encoder), whole transactions only, flushed after each batch. It needs no thread, and a reader that reads no
/// more never holds the pipeline up: the call is dropped when its time is over.
///
/// A dropped call may have sent a part of a line. What is left of it is sent before anything else, so **no line
/// is ever cut** while the writer lives, and the batch counts as printed. With a checkpoint store it is *at least
/// once*: the store was not told, so that batch is printed again, as are those that were not stored before a
/// crash. Without a store the sink remembers its position for as long as it lives, and nothing is printed
/// twice.
///
/// An acknowledged line has been taken by the writer, not by who reads it: what a connection loses when it breaks
/// is lost. A process that ends in the middle of a line leaves it without its end, which no reader takes for a
/// line.
///
/// What is gathered beyond [`JsonOptions::spill_above`] is in a temporary file, which is read and written in
/// small pieces without being awaited.
///
/// ```no_run
/// # #[cfg(all(unix, feature = "net", feature = "checkpoint-file"))]
/// # async fn example(replica: capstan::Builder) -> Result<(), Box<dyn std::error::Error>> {
/// use capstan::{checkpoint::FileCheckpoint, jsonl::{AsyncJsonLines, JsonOptions}};
///
/// let socket = tokio::net::UnixStream::connect("/run/changes.sock").await?;
/// let sink = AsyncJsonLines::new(socket, JsonOptions::default());
/// replica.blocking_checkpoint(FileCheckpoint::open("changes.position")?).run(sink).await?;
/// # Ok(())
/// # }
/// ```
pub struct AsyncJsonLines<W> {
    out: W,
    gather: Gather,
    /// What of the gathered text is being written, and how much of it was.
    piece: Vec<u8>,
    written: usize,
    /// The position behind what is being written.
    leaving: Option<Position>,
    position: Option<Position>,
    /// A write has failed, perhaps in the middle of a line: nothing may follow it.
    broken: bool,
}

impl<W> fmt::Debug for AsyncJsonLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsyncJsonLines({:?}, leaving: {})", self.gather, self.leaving.is_some())
    }
}

impl<W: AsyncWrite + Unpin> AsyncJsonLines<W> {
    /// Prints to `out`.
    pub const fn new(out: W, options: JsonOptions) -> Self {
        Self {
            out,
            gather: Gather::new(options),
            piece: Vec::new(),
            written: 0,
            leaving: None,
            position: None,
            broken: false,
        }
    }

    /// Sends what is left. May be dropped at each await and called again.
    pub(super) async fn print(&mut self) -> Result<(), SinkError> {
        if self.broken {
            return Err(SinkError::new(FailureClass::Permanent, "print", None));
        }
        if self.leaving.is_none() {
            return Ok(());
        }
        if let Err(error) = self.send().await {
            self.broken = true;
            return Err(failed(error));
        }
        self.position = self.leaving.take();
        Ok(())
    }

    async fn send(&mut self) -> io::Result<()> {
        loop {
            if self.written == self.piece.len() {
                self.written = 0;
                self.gather.next_piece(&mut self.piece)?;
                if self.piece.is_empty() {
                    return self.out.flush().await;
                }
            }
            // A dropped write has written nothing, so what is counted is what was written.
            match self.out.write(self.piece.get(self.written..).unwrap_or_default()).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                more => self.written += more,
            }
        }
    }
}

impl<W: AsyncWrite + Unpin + Send> Sink for AsyncJsonLines<W> {
    /// What was printed, with what is printed before anything else.
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.leaving.as_ref().or(self.position.as_ref()).cloned())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        self.print().await?;
        self.gather.take_awaited(&mut batch).await?;
        let ack = batch.finish()?;
        self.gather.progress(ack.position(), false);
        self.gather.rewind().map_err(failed)?;
        self.leaving = Some(ack.position().clone());
        self.print().await?;
        Ok(ack)
    }
}
