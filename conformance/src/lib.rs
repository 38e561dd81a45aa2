//! The checks a user runs against their own Capstan sink.
