//! Live tests of Capstan against real MySQL servers.

pub mod charsets;
pub mod rows;
