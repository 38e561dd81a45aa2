//! A network that counts what goes over it, and tears, cuts and swallows what it is told to.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
    time::Duration,
};

use capstan::{
    core::{replica::LostReason, time::Now},
    net::Net,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::lock;

/// What becomes of a dial and its link, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It lasts as long as the network lets it.
    Never,
    /// Reading fails after so many bytes.
    Reset(u64),
    /// Reading is silent for ever after so many bytes: half open.
    Silence(u64),
    /// Writing fails after so many bytes, then the link ends.
    DeafAfter(u64),
    /// The dial is never answered.
    BlackHole,
}

/// What has been seen, and what is to be done.
#[derive(Debug, Default)]
pub struct Wire {
    /// Longest read and write; 0: as it comes.
    pub piece: usize,
    /// Whether every read is followed by a pause: the reader is polled once more for each.
    pub breathe: bool,
    /// Of the dials to come, in order; then they last.
    pub cuts: VecDeque<Cut>,
    pub dials: u64,
    pub connected: u64,
    pub refused: u64,
    pub unresolved: u64,
    /// Dials that were dropped before their answer.
    pub dials_dropped: u64,
    pub bytes_in: u64,
    pub eofs: u64,
    pub resets: u64,
    pub silences: u64,
    pub deaf: u64,
    /// Reads of one byte.
    pub torn: u64,
}

impl Wire {
    pub fn shared() -> Arc<Mutex<Self>> {
        Arc::default()
    }
}

/// `N`, watched and disturbed.
#[derive(Clone, Debug)]
pub struct Watched<N> {
    net: N,
    wire: Arc<Mutex<Wire>>,
}

impl<N: Net> Watched<N> {
    pub const fn new(net: N, wire: Arc<Mutex<Wire>>) -> Self {
        Self { net, wire }
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        lock(&self.wire)
    }
}

/// A dial under way.
struct Dial {
    wire: Arc<Mutex<Wire>>,
    answered: bool,
}

impl Drop for Dial {
    fn drop(&mut self) {
        if !self.answered {
            lock(&self.wire).dials_dropped += 1;
        }
    }
}

impl<N: Net + Clone + Unpin + 'static> Net for Watched<N> {
    type Stream = Disturbed<N>;

    async fn connect(&self, host: &str, port: u16) -> Result<Disturbed<N>, LostReason> {
        let cut = {
            let mut wire = self.wire();
            wire.dials += 1;
            wire.cuts.pop_front().unwrap_or(Cut::Never)
        };
        let mut dial = Dial { wire: self.wire.clone(), answered: false };
        if cut == Cut::BlackHole {
            std::future::pending::<()>().await;
        }
        let answer = self.net.connect(host, port).await;
        dial.answered = true;
        let mut wire = self.wire();
        match answer {
            Ok(stream) => {
                wire.connected += 1;
                Ok(Disturbed {
                    stream,
                    wire: self.wire.clone(),
                    cut,
                    read: 0,
                    written: 0,
                    breath: false,
                    read_breath: false,
                    told: false,
                    scratch: Vec::new(),
                })
            }
            Err(reason) => {
                wire.refused += u64::from(reason == LostReason::Refused);
                wire.unresolved += u64::from(reason == LostReason::Unresolved);
                Err(reason)
            }
        }
    }

    fn now(&self) -> Now {
        self.net.now()
    }

    fn unix_time(&self) -> Duration {
        self.net.unix_time()
    }

    async fn sleep_until(&self, at: Now) {
        self.net.sleep_until(at).await;
    }
}

/// A stream of [`Watched`].
#[derive(Debug)]
pub struct Disturbed<N: Net> {
    stream: N::Stream,
    wire: Arc<Mutex<Wire>>,
    cut: Cut,
    read: u64,
    written: u64,
    /// The last piece of a torn write was followed by a pause.
    breath: bool,
    read_breath: bool,
    told: bool,
    scratch: Vec<u8>,
}

impl<N: Net> Disturbed<N> {
    fn tell(&mut self, count: impl FnOnce(&mut Wire)) {
        if !std::mem::replace(&mut self.told, true) {
            count(&mut lock(&self.wire));
        }
    }
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl<N: Net + Unpin> AsyncRead for Disturbed<N> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let (piece, breathe) = {
            let wire = lock(&this.wire);
            (wire.piece, wire.breathe)
        };
        if std::mem::take(&mut this.read_breath) && breathe {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut most = if piece == 0 { buf.remaining() } else { piece.min(buf.remaining()) };
        match this.cut {
            Cut::Reset(at) if this.read >= at => {
                this.tell(|wire| wire.resets += 1);
                return Poll::Ready(Err(reset()));
            }
            Cut::Silence(at) if this.read >= at => {
                this.tell(|wire| wire.silences += 1);
                return Poll::Pending;
            }
            Cut::Reset(at) | Cut::Silence(at) => {
                most = most.min(usize::try_from(at - this.read).unwrap_or(usize::MAX));
            }
            Cut::Never | Cut::DeafAfter(_) | Cut::BlackHole => {}
        }
        this.scratch.resize(most, 0);
        let mut part = ReadBuf::new(&mut this.scratch);
        match Pin::new(&mut this.stream).poll_read(cx, &mut part) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                this.tell(|wire| wire.resets += 1);
                return Poll::Ready(Err(error));
            }
        }
        let n = part.filled().len();
        buf.put_slice(part.filled());
        if n == 0 && most > 0 {
            this.tell(|wire| wire.eofs += 1);
        }
        this.read += n as u64;
        this.read_breath = true;
        let mut wire = lock(&this.wire);
        wire.bytes_in += n as u64;
        wire.torn += u64::from(n == 1);
        Poll::Ready(Ok(()))
    }
}

impl<N: Net + Unpin> AsyncWrite for Disturbed<N> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if matches!(this.cut, Cut::DeafAfter(at) if this.written >= at) {
            this.tell(|wire| wire.deaf += 1);
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let piece = lock(&this.wire).piece;
        if piece > 0 {
            // A pause between two pieces: the writer has to come again by itself.
            this.breath = !this.breath;
            if this.breath {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let most = if piece == 0 { buf.len() } else { piece.min(buf.len()) };
        match Pin::new(&mut this.stream).poll_write(cx, &buf[..most]) {
            Poll::Ready(Ok(n)) => {
                this.written += n as u64;
                Poll::Ready(Ok(n))
            }
            other => other,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
