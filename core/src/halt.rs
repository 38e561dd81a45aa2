//! Every reason to stop, in one table: code, class, stage, remedy.
