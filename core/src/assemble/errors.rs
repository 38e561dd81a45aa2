//! Errors of the decoders as halts.

use crate::{
    binlog::{
        DecodeError, EventError, FileErrorKind, PayloadError, rows::RowsError, table_map::TableMapError,
    },
    halt::{Code, Detail, Halt, Place},
    value::TableVersion,
};

/// A whole event that does not hold together.
pub(crate) fn of_event(error: &EventError) -> Halt {
    match error {
        EventError::ChecksumMismatch => Halt::new(Code::ChecksumMismatch),
        EventError::TooShort { .. }
        | EventError::SizeMismatch { .. }
        | EventError::UnknownChecksum(_)
        | EventError::FormatDescription(_) => Halt::new(Code::EventMalformed),
    }
}

/// A body that does not parse.
pub(crate) fn of_decode(error: &DecodeError) -> Halt {
    match error {
        DecodeError::UnknownStatusVariable(code) => {
            Halt::new(Code::EventMalformed).with(Detail::Number(u64::from(*code)))
        }
        DecodeError::Short
        | DecodeError::Trailing(_)
        | DecodeError::Field(_)
        | DecodeError::UnknownField(_)
        | DecodeError::GtidSet(_) => Halt::new(Code::EventMalformed),
    }
}

/// A file that cannot be read on.
pub fn of_file(kind: &FileErrorKind) -> Halt {
    match kind {
        FileErrorKind::Encrypted => Halt::new(Code::EncryptedBinlog),
        FileErrorKind::NotABinlog => {
            Halt::new(Code::EventMalformed).with(Detail::Note("This is not a binlog file"))
        }
        FileErrorKind::FormatDescriptionMissing => Halt::new(Code::EventMalformed),
        FileErrorKind::EventTooLarge { .. } => Halt::new(Code::RowEventTooLarge),
        FileErrorKind::Event(error) => of_event(error),
        FileErrorKind::Cut => Halt::new(Code::EventMalformed)
            .with(Detail::Note("The file is incomplete: it ends inside an event")),
    }
}

/// A payload that cannot be inflated.
pub(crate) fn of_payload(error: &PayloadError) -> Halt {
    match error {
        PayloadError::UnsupportedCompression(code) => {
            Halt::new(Code::PayloadCompressionUnsupported).with(Detail::Number(*code))
        }
        PayloadError::EventTooLarge { .. } => Halt::new(Code::RowEventTooLarge),
        PayloadError::Corrupt
        | PayloadError::OutOfMemory
        | PayloadError::Cut
        | PayloadError::SizeMismatch { .. }
        | PayloadError::EventTooShort { .. }
        | PayloadError::Nested => Halt::new(Code::PayloadMalformed),
    }
}

/// A table map that cannot be used.
pub(crate) fn of_table_map(error: &TableMapError, schema: &str, table: &str) -> Halt {
    match error {
        TableMapError::Malformed(_) => Halt::new(Code::EventMalformed),
        TableMapError::UnsupportedColumnType { column, type_code } => Halt::new(Code::UnsupportedColumnType)
            .with(Detail::Number(u64::from(*type_code)))
            .at(Place { column: Some(alloc::format!("@{}", column.saturating_add(1))), ..Place::default() }),
    }
    .of_table(schema, table)
}

/// Rows that cannot be delivered.
pub(crate) fn of_rows(error: &RowsError, table: &TableVersion) -> Halt {
    match error {
        RowsError::TableMapMismatch { .. } => Halt::new(Code::TableMapMismatch),
        RowsError::PartialRowImage => Halt::new(Code::PartialRowImage),
        RowsError::NotRows(_) | RowsError::Malformed(_) => Halt::new(Code::EventMalformed),
        RowsError::TooLarge => Halt::new(Code::RowEventTooLarge),
        RowsError::Row { column, .. } | RowsError::PartialUpdate { column, .. } => {
            let column = table.columns().get(*column).map(|column| column.name.clone());
            Halt::new(Code::ValueMalformed).at(Place { column, ..Place::default() })
        }
    }
    .of_table(table.schema(), table.table())
}
