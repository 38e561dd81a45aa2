//! Exactly-once MySQL change streams over tokio.
