//! What a pipeline is told before it starts.
