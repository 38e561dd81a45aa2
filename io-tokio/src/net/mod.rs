//! What the loop needs of the world: streams, a clock, TLS.
//!
//! The loop itself knows no socket and no runtime. [`TokioNet`] is the real world; a simulated network
//! (turmoil, madsim, a pair of pipes in a test) is another implementation of the same few functions.

#[cfg(feature = "net")]
mod real;

use std::{future::Future, time::Duration};

use capstan_core::{replica::LostReason, time::Now};
use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(feature = "net")]
pub use real::{TokioNet, TokioStream};

/// A network and its clock.
pub trait Net: Send + Sync {
    /// A connection, encrypted or not. It must report end of stream as a read of 0 bytes.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send;

    /// Opens a connection. Dropping the future gives the dial up.
    ///
    /// # Errors
    /// [`LostReason::Unresolved`], [`LostReason::Refused`] or another reason that fits.
    fn connect(&self, host: &str, port: u16)
    -> impl Future<Output = Result<Self::Stream, LostReason>> + Send;

    /// Encrypts an open connection to `host` and checks its certificate as it was told to.
    ///
    /// # Errors
    /// [`LostReason::CertificateUntrusted`] and [`LostReason::CertificateNameMismatch`] halt the
    /// replica; every other reason is tried again.
    fn secure(
        &self,
        stream: Self::Stream,
        host: &str,
    ) -> impl Future<Output = Result<Self::Stream, LostReason>> + Send {
        let _ = (stream, host);
        async { Err(LostReason::TlsFailed) }
    }

    /// The present moment of a clock that never goes back.
    fn now(&self) -> Now;

    /// Time since 1970-01-01T00:00:00Z, for comparison with the source's commit times only.
    fn unix_time(&self) -> Duration;

    /// Ends at `at`, or at once if that has passed.
    fn sleep_until(&self, at: Now) -> impl Future<Output = ()> + Send;
}
