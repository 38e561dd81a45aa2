//! Column values: typed, lossless, borrowed from the packet.

pub mod json;
