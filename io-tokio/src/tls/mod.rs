//! TLS by rustls: what is checked, and what each failure is called.

#[cfg(feature = "tls")]
mod client;
#[cfg(not(feature = "tls"))]
mod none;
#[cfg(test)]
#[cfg(feature = "tls")]
mod tests;
#[cfg(feature = "tls")]
mod verify;

#[cfg(feature = "tls")]
pub use client::{Tls, TlsStream};
#[cfg(not(feature = "tls"))]
pub use none::Tls;
