//! The I/O-free core of Capstan.
//!
//! Bytes of a MySQL replication link go in, committed transactions come out. Nothing here opens a
//! socket, reads a clock, starts a thread or draws a random number: time and entropy are inputs.
//! Who wants to run it takes the `capstan` crate (tokio); who wants to prove it takes `sim`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod assemble;
pub mod binlog;
pub mod capture;
pub mod config;
pub mod deliver;
pub mod gtid;
pub mod halt;
pub mod link;
pub mod probe;
#[cfg(feature = "serde")]
pub mod read;
pub mod replica;
pub mod snapshot;
pub mod sql;
pub mod text;
pub mod time;
pub mod value;
pub mod wire;
