//! The captured set: which tables and columns a pipeline delivers.
