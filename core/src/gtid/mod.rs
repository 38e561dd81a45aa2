//! GTIDs, tagged GTIDs and GTID sets.
