//! A table that was described: whether it can be copied, and along which key.

use alloc::{format, sync::Arc};

use sha2::{Digest as _, Sha256};

use super::{Around, Copier};
use crate::{
    deliver::CopiedTable,
    halt::{Code, Detail, Halt},
    probe::Probe,
    snapshot::rows::{CopyKey, DescribeError, Described, KeyOrder, KeyUnsupported, TableKind},
    value::TableVersion,
};

/// A table that was described.
pub(super) struct Table {
    pub(super) name: CopiedTable,
    pub(super) version: Arc<TableVersion>,
    /// What it is copied along; `None`: it is copied as a whole.
    pub(super) key: Option<Arc<CopyKey>>,
    pub(super) fingerprint: u64,
}

impl Copier {
    pub(super) fn described<P: Probe>(
        &mut self,
        name: CopiedTable,
        mut described: Described,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        let refused = |note| {
            let halt = Halt::new(Code::SnapshotKeyUnsupported).of_table(&name.0, &name.1);
            halt.with(Detail::Note(note))
        };
        match &described.kind {
            TableKind::InnoDb => {}
            TableKind::Engine(_) => return Err(refused("Its storage engine has no consistent view")),
            TableKind::View => return Err(refused("It is a view")),
        }
        let captured = &self.terms.captured;
        described.version.leave_out(|column| captured.column_captured(&name.0, &name.1, column));
        let key = described.key().map_err(|reason| refused(of_key(&reason)))?;
        // The gate could copy it as a whole, from one cut; that is not tried against servers yet.
        if !key.is_ordered_here() {
            return Err(refused("Keys of text are not copied yet"));
        }
        let key = Some(Arc::new(key));
        let version = Arc::new(described.version);
        let fingerprint = key.as_ref().map_or(0, |key| fingerprint(&version, key));
        around.assembler.gate_mut().described(&version, key.as_ref(), fingerprint);
        self.upto = None;
        self.table = Some(Table { name, version, key, fingerprint });
        Ok(())
    }
}

/// Tells keys apart that cannot be compared with each other: another index, other columns, other types.
fn fingerprint(version: &TableVersion, key: &CopyKey) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"capstan key 1");
    for part in key.parts() {
        if let Some(column) = version.columns().get(part.column()) {
            let collation = match part.order() {
                KeyOrder::Core => "",
                KeyOrder::Server { collation, .. } => collation,
            };
            let text = format!("{}\0{}\0{collation}", column.name, column.column_type.type_name());
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let full: [u8; 32] = hash.finalize().into();
    full.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

const fn of_key(reason: &KeyUnsupported) -> &'static str {
    match reason {
        KeyUnsupported::NoKey => "It has no primary key and no unique key without NULL",
        KeyUnsupported::Expression(_) => "Part of its key is an expression",
        KeyUnsupported::Prefix { .. } => "Its key holds only the beginning of a column",
        KeyUnsupported::LeftOut(_) => "A column of its key is left out",
        KeyUnsupported::Collation { .. } => {
            "A column of its key has a collation whose weights are not its order"
        }
        KeyUnsupported::Type(_) => "A column of its key is of a type that no key has",
    }
}

pub(super) fn of_description(error: &DescribeError) -> Halt {
    match error {
        DescribeError::NoSuchTable => Halt::new(Code::SnapshotSourceChanged),
        DescribeError::ColumnMissing => {
            Halt::new(Code::MissingPrivilege).with(Detail::Privilege("SELECT on the whole table"))
        }
        DescribeError::ColumnType(_) | DescribeError::Labels(_) => Halt::new(Code::UnsupportedColumnType),
        DescribeError::Unreadable => Halt::new(Code::SnapshotSourceChanged)
            .with(Detail::Note("The table's description does not add up")),
    }
}
