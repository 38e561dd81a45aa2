//! Binlog events: header, checksum, and one decoder per event type.
