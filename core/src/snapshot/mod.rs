//! The initial snapshot: what a table held when its first change was streamed.

pub mod rows;
