//! Live tests of Capstan against real MySQL servers.
