//! Binlog events: header, checksum, and one decoder per event type.

mod optional_metadata;
pub mod rows;
pub mod table_map;
