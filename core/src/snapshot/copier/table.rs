//! A table that was described: whether it can be copied, and along which key. All of them are looked at before
//! anything is read.

use alloc::{boxed::Box, format, sync::Arc, vec::Vec};

use sha2::{Digest as _, Sha256};

use super::{Around, Copier, Did, Step, look::LOOK_MAX};
use crate::{
    deliver::{CopiedTable, CopyState},
    halt::{Code, Detail, Halt},
    link::ResultSet,
    probe::Probe,
    snapshot::rows::{
        CopyKey, Describe, DescribeError, DescribeSome, DescribeSomeStep, DescribeStep, Described, KeyOrder,
        KeyUnsupported, TableKind,
    },
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

/// Tables that are still to be looked at, and those that are.
pub(super) struct Survey {
    left: Vec<CopiedTable>,
    /// Those whose labels are still to be had.
    unfinished: Vec<Describe>,
    asking: About,
}

/// What is asked about.
enum About {
    Some(DescribeSome),
    One(Describe),
}

impl Copier {
    /// Looks at every table before the first is read, so that what cannot be copied is told at once.
    pub(super) fn survey<P: Probe>(&mut self, around: &mut Around<'_, P>) -> Did {
        let copies = around.assembler.gate().copies();
        let begun = copies.values().any(|copy| copy.state == CopyState::Copying);
        let waiting = copies.iter().filter(|(_, copy)| copy.state == CopyState::Waiting && !begun);
        let left = if self.surveyed { Vec::new() } else { waiting.map(|(name, _)| name.clone()).collect() };
        self.surveyed = true;
        self.survey_next(left, Vec::new(), around)
    }

    fn survey_next<P: Probe>(
        &mut self,
        mut left: Vec<CopiedTable>,
        mut unfinished: Vec<Describe>,
        around: &mut Around<'_, P>,
    ) -> Did {
        let asking = match (unfinished.pop(), left.last().map(|(schema, _)| schema.clone())) {
            (Some(describe), _) => About::One(describe),
            (None, Some(schema)) => {
                let same = left.iter().rev().take(LOOK_MAX).take_while(|(of, _)| *of == schema).count();
                let some = left.split_off(left.len().saturating_sub(same));
                About::Some(DescribeSome::new(&schema, some.into_iter().map(|(_, table)| table)))
            }
            (None, None) => {
                self.step = Step::Next;
                return Did::Moved;
            }
        };
        let sql = match &asking {
            About::Some(describe) => describe.statement(),
            About::One(describe) => describe.statement(),
        };
        self.lock.ask(&sql, around.now.after(self.terms.step), around.out);
        self.step = Step::Surveying(Box::new(Survey { left, unfinished, asking }));
        Did::Moved
    }

    pub(super) fn ask_about<P: Probe>(&mut self, describe: &Describe, around: &mut Around<'_, P>) {
        self.lock.ask(&describe.statement(), around.now.after(self.terms.step), around.out);
    }

    pub(super) fn surveyed<P: Probe>(
        &mut self,
        survey: Survey,
        rows: &ResultSet,
        around: &mut Around<'_, P>,
    ) -> Did {
        let Survey { left, mut unfinished, asking } = survey;
        let each = match asking {
            About::One(describe) => {
                let (schema, table) = describe.table();
                Vec::from([((schema.into(), table.into()), describe.on_result(rows))])
            }
            About::Some(describe) => match describe.on_result(rows) {
                DescribeSomeStep::More(describe) => {
                    self.lock.ask(&describe.statement(), around.now.after(self.terms.step), around.out);
                    let asking = About::Some(describe);
                    self.step = Step::Surveying(Box::new(Survey { left, unfinished, asking }));
                    return Did::Moved;
                }
                DescribeSomeStep::Done(each) => each,
            },
        };
        for (name, step) in each {
            match step {
                Ok(DescribeStep::More(describe)) => unfinished.push(describe),
                Ok(DescribeStep::Done(described)) => {
                    if let Some(note) = refused(&described.kind) {
                        return Did::Halt(unsupported(&name, note));
                    }
                }
                // The stream will say what became of the table.
                Err(DescribeError::NoSuchTable) => {}
                Err(error) => return Did::Halt(of_description(&error).of_table(&name.0, &name.1)),
            }
        }
        self.survey_next(left, unfinished, around)
    }

    pub(super) fn described<P: Probe>(
        &mut self,
        name: CopiedTable,
        mut described: Described,
        around: &mut Around<'_, P>,
    ) -> Result<(), Halt> {
        if let Some(note) = refused(&described.kind) {
            return Err(unsupported(&name, note));
        }
        let captured = &self.terms.captured;
        described.version.leave_out(|column| captured.column_captured(&name.0, &name.1, column));
        let whole = match described.key() {
            Ok(key) => Ok(key),
            Err(reason) => Err(of_key(&reason)),
        };
        let key = match whole {
            Ok(key) => Some(Arc::new(key)),
            Err(why) => {
                if around.whole.iter().all(|(known, _)| *known != name) {
                    around.whole.push((name.clone(), why));
                }
                None
            }
        };
        let version = Arc::new(described.version);
        let fingerprint = key.as_ref().map_or(0, |key| fingerprint(&version, key));
        around.assembler.gate_mut().described(&version, key.as_ref(), fingerprint);
        self.upto = None;
        self.table = Some(Table { name, version, key, fingerprint });
        Ok(())
    }
}

/// Why a table of this kind cannot be copied at all.
const fn refused(kind: &TableKind) -> Option<&'static str> {
    match kind {
        TableKind::InnoDb => None,
        TableKind::Engine(_) => Some("Its storage engine has no consistent view"),
        TableKind::View => Some("It is a view"),
    }
}

fn unsupported(name: &CopiedTable, note: &'static str) -> Halt {
    Halt::new(Code::SnapshotKeyUnsupported).of_table(&name.0, &name.1).with(Detail::Note(note))
}

/// Tells keys apart that cannot be compared with each other: another index, other columns, other types.
fn fingerprint(version: &TableVersion, key: &CopyKey) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"capstan key 1");
    for part in key.parts() {
        if let Some(column) = version.columns().get(part.column()) {
            let collation = match part.order() {
                KeyOrder::Core => "",
                KeyOrder::Bytes { collation, .. } | KeyOrder::Server { collation, .. } => collation,
            };
            let descends = if part.descends() { "\0DESC" } else { "" };
            let text = format!("{}\0{}\0{collation}{descends}", column.name, column.column_type.type_name());
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let full: [u8; 32] = hash.finalize().into();
    full.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Why a table is copied as a whole.
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
