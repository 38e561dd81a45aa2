//! The state machine that drives a replication link and decides what happens next.
