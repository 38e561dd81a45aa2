//! Simulated MySQL servers: bytes in, bytes out, time as an argument.
//!
//! Two halves. [`event`] describes binlog events and turns descriptions into wire bytes and back; it is
//! written from the protocol documents, shares no code with the decoder it is there to test, and is
//! proved by reading captured files of real servers and writing them again byte for byte.
//! [`server`] speaks the client/server protocol around it: handshake, the questions a replica asks,
//! the dump.
//!
//! Nothing here opens a socket or draws a random number. It is for tests alone: what a real server
//! would refuse it may accept, and a broken assumption panics.
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a simulated server whose own bookkeeping is wrong must stop at once"
)]

pub mod event;
pub mod group;
mod put;
pub mod server;

pub use group::Group;
pub use server::Server;
