//! Where `mysql_common` differs from the server.

use capstan_core::value::{Column, ColumnType};

use super::cell::{Cell, time_cell};

/// One pair of values that differ.
pub struct Pair<'a> {
    pub column: &'a Column,
    pub ours: &'a Cell,
    pub theirs: &'a Cell,
}

pub struct Known {
    /// What `mysql_common` does.
    pub what: &'static str,
    /// What the server says.
    pub truth: &'static str,
    pub is: fn(&Pair<'_>) -> bool,
}

pub const KNOWN: [Known; 6] = [
    Known {
        what: "MEDIUMINT below zero is unsigned",
        truth: "-8388608 and -1 in captured/types-integer.tsv",
        is: |pair| {
            let (Cell::Number(ours), Cell::Number(theirs)) = (pair.ours, pair.theirs) else { return false };
            matches!(pair.column.column_type, ColumnType::MediumInt { unsigned: false })
                && *ours < 0
                && *theirs == ours + (1 << 24)
        },
    },
    Known {
        what: "YEAR 0000 is 1900",
        truth: "0000 in captured/types-temporal.tsv; 1901 is the first year (manual, The YEAR Type)",
        is: |pair| {
            pair.column.column_type == ColumnType::Year
                && *pair.ours == text("0000")
                && *pair.theirs == text("1900")
        },
    },
    Known {
        what: "BINARY without its trailing zero bytes",
        truth: "whole in captured/types-binary.tsv; always N bytes (manual, The BINARY and VARBINARY Types)",
        is: |pair| {
            let (Cell::Bytes(ours), Cell::Bytes(theirs)) = (pair.ours, pair.theirs) else { return false };
            let ColumnType::Binary { bytes } = pair.column.column_type else { return false };
            let mut padded = theirs.clone();
            padded.resize(bytes.into(), 0);
            theirs.len() < padded.len() && *ours == padded
        },
    },
    Known {
        what: "TIME(1) and TIME(2) below zero overflow where they have a fraction (a panic in a debug build)",
        truth: "-00:00:00.1 and -838:59:58.99 in captured/types-temporal.tsv",
        is: |pair| {
            matches!(pair.column.column_type, ColumnType::Time { fsp: 1 | 2 })
                && overflown_time(pair.ours).is_some_and(|time| time == *pair.theirs)
        },
    },
    Known {
        what: "TIME before 5.6.4 has no sign, and its hours end at 255",
        truth: "838:59:59, -838:59:59 and -00:00:01 in captured/mysql56-old-temporals.tsv",
        is: |pair| {
            pair.column.column_type == ColumnType::OldTime
                && narrow_time(pair.ours).is_some_and(|time| time == *pair.theirs)
        },
    },
    Known {
        what: "JSON differences are given as they are (PARTIAL_UPDATE_ROWS_EVENT)",
        truth: "the whole documents in captured/partial-json-whole.tsv, with which other tests compare the core's",
        is: |pair| pair.column.column_type == ColumnType::Json && *pair.theirs == Cell::Differences,
    },
];

/// A negative TIME with a fraction as `my_time_packed_from_binary` packs it, whose fraction wraps in 32 bits.
fn overflown_time(time: &Cell) -> Option<Cell> {
    let (negative, [hours, minute, second, micros]) = time_parts(time)?;
    let right = -((hours << 12 | minute << 6 | second) << 24 | micros);
    let wrong = right + (10_000 << 32);
    let (size, hms) = (wrong.abs(), wrong.abs() >> 24);
    (negative && micros > 0)
        .then(|| time_cell(wrong < 0, [hms >> 12 & 1023, hms >> 6 & 63, hms & 63, size & 0xff_ffff]))
}

/// An old TIME, the signed number hhhmmss in 24 bits, read as an unsigned one with 8 bits of hours.
fn narrow_time(time: &Cell) -> Option<Cell> {
    let (negative, [hours, minute, second, micros]) = time_parts(time)?;
    let number = hours * 10_000 + minute * 100 + second;
    let number = if negative { (1 << 24) - number } else { number };
    Some(time_cell(false, [(number / 10_000) & 255, number / 100 % 100, number % 100, micros]))
}

fn time_parts(time: &Cell) -> Option<(bool, [i64; 4])> {
    let Cell::Text(text) = time else { return None };
    let size = text.strip_prefix('-');
    let parts: Option<Vec<i64>> =
        size.unwrap_or(text).split([':', '.']).map(|part| part.parse().ok()).collect();
    Some((size.is_some(), parts?.try_into().ok()?))
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}
