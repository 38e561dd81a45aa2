//! Live tests of Capstan against real MySQL servers.

pub mod charsets;
pub mod copied;
pub mod harness;
pub mod live;
pub mod mirror;
pub mod proxy;
pub mod rows;
pub mod workload;
