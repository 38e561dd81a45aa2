//! The little SQL that a binlog makes us read: statement kinds and the tables they touch.
