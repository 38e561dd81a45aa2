//! Column values: typed, lossless, borrowed from the packet.
