//! `capstan_core::link` against real servers, over plain blocking sockets.
//!
//! The machine under test has no I/O; this file gives it some. What only a real server can prove:
//! that it accepts our scrambles and RSA blocks, which plugin asks for what, how it splits long
//! payloads, and with which words it refuses a dump. TLS belongs to the adapter and is tested there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test says what it expects by panicking"
)]

mod accounts;
mod client;
mod dump;
mod queries;
