//! Against bytes that a real server wrote.
