//! JSON lines to writers that take nothing back: at least once.

use std::{
    io::{self, Write},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use capstan::jsonl::{AsyncJsonLines, JsonLines, JsonOptions};
use tokio::io::AsyncWrite;

use super::{
    artifact,
    jsonl::{changes, newest},
};
use crate::{
    artifact::Artifact,
    rule::Level,
    subject::{Async, Blocking},
    target::{Applied, Stored, Target, Trouble},
};

/// What was printed, by one process after the other: each has a connection of its own.
#[derive(Clone, Debug, Default)]
pub struct Printed(Arc<Mutex<Vec<Vec<u8>>>>);

impl Printed {
    fn connections(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connected(&self) -> Self {
        self.connections().push(Vec::new());
        self.clone()
    }

    /// What a reader has of it: what is behind the last end of a line is none.
    fn text(&self) -> Result<String, Trouble> {
        let mut text = String::new();
        for bytes in self.connections().iter() {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            text += std::str::from_utf8(bytes.get(..whole).unwrap_or_default())?;
        }
        Ok(text)
    }

    fn stored(&self) -> Result<Stored, Trouble> {
        let applied = changes(&self.text()?)?.into_iter().map(|(applied, _): (Applied, _)| applied).collect();
        Ok(Stored { applied, position: None })
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut connections = self.connections();
        let connection = connections.last_mut().ok_or(io::ErrorKind::NotConnected)?;
        connection.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that a [`Narrow`] takes at once: a few waits to a line.
const WIDTH: usize = 61;

/// A connection whose reader is slow: every other call waits, and the others take little.
#[derive(Debug)]
pub struct Narrow {
    printed: Printed,
    waits: bool,
}

impl Narrow {
    fn turn(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.waits = !self.waits;
        if self.waits {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

impl AsyncWrite for Narrow {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let part = bytes.get(..WIDTH).unwrap_or(bytes);
        self.turn(cx).map(|()| self.printed.write(part))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.turn(cx).map(Ok)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

macro_rules! printed {
    ($(#[$doc:meta])* $target:ident, $sink:ty, $name:literal, $open:expr) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $target(Printed);

        impl Target for $target {
            type Sink = $sink;

            fn open(&mut self) -> Result<Self::Sink, Trouble> {
                Ok($open(self.0.connected()))
            }

            fn probe(&mut self) -> Result<Stored, Trouble> {
                self.0.stored()
            }

            fn row(&mut self, table: &str, key: &str) -> Result<Option<String>, Trouble> {
                newest(&self.0.text()?, table, key)
            }

            fn level(&self) -> Level {
                Level::AtLeastOnce
            }

            fn artifact(&self) -> Option<Artifact> {
                artifact()
            }

            fn name(&self) -> String {
                $name.into()
            }
        }
    };
}

printed!(
    /// A target of [`JsonLines`].
    JsonLinesTarget,
    Blocking<JsonLines<Printed>>,
    "capstan::jsonl::JsonLines",
    |printed| Blocking(JsonLines::new(printed, JsonOptions::default()))
);

printed!(
    /// A target of [`AsyncJsonLines`], over connections that make it wait.
    AsyncJsonLinesTarget,
    Async<AsyncJsonLines<Narrow>>,
    "capstan::jsonl::AsyncJsonLines",
    |printed| Async(AsyncJsonLines::new(Narrow { printed, waits: false }, JsonOptions::default()))
);
