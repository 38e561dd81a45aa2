//! The connection: at most one, in one of four states, polled by the loop.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use capstan_core::replica::{DialEpoch, LostReason, Read};
use tokio::io::AsyncReadExt as _;

use crate::net::Net;

/// How much is asked for at once. A row that is kept for long keeps the whole chunk it was read in, so
/// this is less than the core allows.
const CHUNK: usize = 64 << 10;

/// Room left in a chunk below which the next one is begun: short reads cost a system call each.
const CHUNK_LEFT_MIN: usize = 8 << 10;

/// What the link has to say.
pub(super) enum Said {
    Connected,
    Secured,
    Bytes(Bytes),
    Lost(LostReason),
}

type Opening<'n, S> = Pin<Box<dyn Future<Output = Result<S, LostReason>> + Send + 'n>>;

enum State<'n, S> {
    Closed,
    Dialling(Opening<'n, S>),
    Open(Open<S>),
    Securing(Opening<'n, S>),
}

struct Open<S> {
    stream: S,
    out: VecDeque<Bytes>,
    unflushed: bool,
    /// Writing has failed. What the server said before it closed is still read: it tells why.
    deaf: bool,
    /// TLS starts as soon as everything is written. Nothing is read until then.
    secure: bool,
}

/// The one connection.
pub(super) struct Link<'n, N: Net> {
    net: &'n N,
    host: &'n str,
    port: u16,
    epoch: DialEpoch,
    state: State<'n, N::Stream>,
    chunk: BytesMut,
}

impl<N: Net> fmt::Debug for Link<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Closed => "Link(closed)",
            State::Dialling(_) => "Link(dialling)",
            State::Open(_) => "Link(open)",
            State::Securing(_) => "Link(securing)",
        })
    }
}

impl<'n, N: Net> Link<'n, N> {
    pub(super) fn new(net: &'n N, host: &'n str, port: u16) -> Self {
        Self { net, host, port, epoch: DialEpoch::default(), state: State::Closed, chunk: BytesMut::new() }
    }

    pub(super) const fn epoch(&self) -> DialEpoch {
        self.epoch
    }

    pub(super) fn connect(&mut self, epoch: DialEpoch) {
        self.epoch = epoch;
        self.state = State::Dialling(Box::pin(self.net.connect(self.host, self.port)));
    }

    pub(super) fn secure(&mut self, epoch: DialEpoch) {
        if let Some(open) = self.open(epoch) {
            open.secure = true;
        }
    }

    pub(super) fn transmit(&mut self, epoch: DialEpoch, bytes: Bytes) {
        if let Some(open) = self.open(epoch) {
            open.out.push_back(bytes);
        }
    }

    pub(super) fn close(&mut self, epoch: DialEpoch) {
        if epoch == self.epoch {
            self.state = State::Closed;
        }
    }

    fn open(&mut self, epoch: DialEpoch) -> Option<&mut Open<N::Stream>> {
        match &mut self.state {
            State::Open(open) if epoch == self.epoch => Some(open),
            State::Open(_) | State::Closed | State::Dialling(_) | State::Securing(_) => None,
        }
    }

    /// Writes what there is to write and hears what there is to hear.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, read: Read) -> Poll<Said> {
        if self.poll_out(cx) {
            self.start_tls();
        }
        let said = match &mut self.state {
            State::Closed => return Poll::Pending,
            State::Dialling(opening) => match opening.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(stream)) => {
                    self.state = State::Open(Open::new(stream));
                    Said::Connected
                }
                Poll::Ready(Err(reason)) => Said::Lost(reason),
            },
            State::Securing(opening) => match opening.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(stream)) => {
                    self.state = State::Open(Open::new(stream));
                    Said::Secured
                }
                Poll::Ready(Err(reason)) => Said::Lost(reason),
            },
            State::Open(open) => match open.poll_in(&mut self.chunk, cx, read) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(said) => said,
            },
        };
        if matches!(said, Said::Lost(_)) {
            self.state = State::Closed;
        }
        Poll::Ready(said)
    }

    /// Writes; `true`: everything is out, and TLS was asked for.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> bool {
        let State::Open(open) = &mut self.state else { return false };
        match open.poll_out(cx) {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => open.secure,
            Poll::Ready(Err(error)) => {
                tracing::debug!(kind = ?error.kind(), "writing failed");
                open.deaf = true;
                false
            }
        }
    }

    fn start_tls(&mut self) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Open(open) => {
                self.state = State::Securing(Box::pin(self.net.secure(open.stream, self.host)));
            }
            other @ (State::Closed | State::Dialling(_) | State::Securing(_)) => self.state = other,
        }
    }
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Open<S> {
    fn new(stream: S) -> Self {
        Self { stream, out: VecDeque::new(), unflushed: false, deaf: false, secure: false }
    }

    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deaf {
            return Poll::Pending;
        }
        while let Some(front) = self.out.front_mut() {
            match Pin::new(&mut self.stream).poll_write(cx, front)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(written) => {
                    self.unflushed = true;
                    front.advance(written);
                    if !front.has_remaining() {
                        self.out.pop_front();
                    }
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.unflushed {
            match Pin::new(&mut self.stream).poll_flush(cx)? {
                Poll::Ready(()) => self.unflushed = false,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_in(&mut self, chunk: &mut BytesMut, cx: &mut Context<'_>, read: Read) -> Poll<Said> {
        let most = match read {
            Read::UpTo(most) if !self.secure => most.min(CHUNK),
            Read::UpTo(_) | Read::Paused => {
                return if self.deaf { Poll::Ready(Said::Lost(LostReason::Reset)) } else { Poll::Pending };
            }
        };
        if chunk.capacity() < CHUNK_LEFT_MIN {
            chunk.reserve(CHUNK);
        }
        let result = {
            let mut room = (&mut *chunk).limit(most);
            // This future holds nothing of its own: dropping it between polls loses nothing.
            let read = pin!(self.stream.read_buf(&mut room));
            read.poll(cx)
        };
        match result {
            Poll::Ready(Ok(0)) => Poll::Ready(Said::Lost(LostReason::Eof)),
            Poll::Ready(Ok(_)) => Poll::Ready(Said::Bytes(chunk.split().freeze())),
            Poll::Ready(Err(error)) => {
                tracing::debug!(kind = ?error.kind(), "reading failed");
                Poll::Ready(Said::Lost(LostReason::Reset))
            }
            Poll::Pending if self.deaf => Poll::Ready(Said::Lost(LostReason::Reset)),
            Poll::Pending => Poll::Pending,
        }
    }
}
