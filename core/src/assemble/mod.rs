//! From binlog events to whole transactions.
