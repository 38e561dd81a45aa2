//! The real world: tokio's sockets, names and clock.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime},
};

use capstan_core::{replica::LostReason, time::Now};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::Net;
use crate::{halt::Halt, source::SslSettings, tls::Tls};

/// Idle time before the first keepalive probe, and between probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// How long sent bytes may stay unacknowledged before the kernel gives the link up. Keepalive does not
/// run while something is unacknowledged, so a half-open link is only found by this (`TCP_USER_TIMEOUT`).
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long one address of a host is tried before the next: a dead first address must leave time for a
/// living second one within the dial's deadline.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(4);

/// Tokio's sockets, the system's resolver, and rustls.
#[derive(Debug)]
pub struct TokioNet {
    origin: Instant,
    #[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "it has refused every mode but one"))]
    tls: Tls,
}

impl TokioNet {
    /// Reads certificates, so that a missing file is found before any socket.
    ///
    /// # Errors
    /// `config_invalid` with the setting's name.
    pub fn new(ssl: &SslSettings) -> Result<Self, Halt> {
        Ok(Self { origin: Instant::now(), tls: Tls::new(ssl)? })
    }
}

/// A TCP connection, encrypted or not.
pub struct TokioStream(Layer);

enum Layer {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<crate::tls::TlsStream<TcpStream>>),
}

impl fmt::Debug for TokioStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Layer::Plain(_) => "TokioStream(plain)",
            #[cfg(feature = "tls")]
            Layer::Tls(_) => "TokioStream(tls)",
        })
    }
}

impl Net for TokioNet {
    type Stream = TokioStream;

    async fn connect(&self, host: &str, port: u16) -> Result<TokioStream, LostReason> {
        let addresses = tokio::net::lookup_host((host, port)).await.map_err(|error| {
            tracing::debug!(kind = ?error.kind(), "the host name was not resolved");
            LostReason::Unresolved
        })?;
        let mut last = LostReason::Unresolved;
        for address in addresses {
            match tokio::time::timeout(ADDRESS_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    prepare(&stream);
                    return Ok(TokioStream(Layer::Plain(stream)));
                }
                Ok(Err(error)) => {
                    tracing::debug!(%address, kind = ?error.kind(), "the dial failed");
                    last = reason(error.kind());
                }
                Err(_) => {
                    tracing::debug!(%address, "the dial took too long");
                    last = LostReason::DialTimeout;
                }
            }
        }
        Err(last)
    }

    #[cfg(feature = "tls")]
    async fn secure(&self, stream: TokioStream, host: &str) -> Result<TokioStream, LostReason> {
        match stream.0 {
            Layer::Plain(stream) => {
                let stream = self.tls.connect(stream, host).await?;
                Ok(TokioStream(Layer::Tls(Box::new(stream))))
            }
            // The core asks once per link.
            Layer::Tls(_) => Err(LostReason::TlsFailed),
        }
    }

    fn now(&self) -> Now {
        Now(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    async fn sleep_until(&self, at: Now) {
        tokio::time::sleep(at.since(self.now())).await;
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the system may report anything")]
fn reason(kind: io::ErrorKind) -> LostReason {
    match kind {
        io::ErrorKind::ConnectionRefused => LostReason::Refused,
        io::ErrorKind::TimedOut => LostReason::DialTimeout,
        _ => LostReason::Reset,
    }
}

/// None of these options is needed to be right, so a platform that refuses one loses only speed or the
/// early discovery of a dead peer.
fn prepare(stream: &TcpStream) {
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_EVERY)
        .with_retries(KEEPALIVE_PROBES);
    let socket = socket2::SockRef::from(stream);
    let refused = [
        ("TCP_NODELAY", stream.set_nodelay(true)),
        ("SO_KEEPALIVE", socket.set_tcp_keepalive(&keepalive)),
        #[cfg(target_os = "linux")]
        ("TCP_USER_TIMEOUT", socket.set_tcp_user_timeout(Some(USER_TIMEOUT))),
    ];
    for (option, result) in refused {
        if let Err(error) = result {
            tracing::debug!(option, kind = ?error.kind(), "a socket option was refused");
        }
    }
}

impl AsyncRead for TokioStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Layer::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(feature = "tls")]
            Layer::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for TokioStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Layer::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            #[cfg(feature = "tls")]
            Layer::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Layer::Plain(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "tls")]
            Layer::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Layer::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Layer::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
