//! Which table a row event belongs to, and whether it is captured.

use alloc::{boxed::Box, collections::BTreeMap, string::String, sync::Arc, vec::Vec};

use bytes::Bytes;

use super::errors;
use crate::{
    binlog::{
        rows::{RowsError, RowsEvent, RowsHead},
        table_map::{TableMapHead, TableMaps},
    },
    capture::{CapturedSet, DdlEffect},
    halt::{Code, Halt},
    probe::{Mutant, Probe},
    sql::Ddl,
    value::TableVersion,
    wire::{Reader, Short},
};

/// How many decisions about names are remembered.
const REMEMBERED_MAX: usize = 16_384;

/// Rows of a captured table, with its version if it is another one than before.
pub(super) type Taken = Option<(Option<Arc<TableVersion>>, RowsEvent)>;

/// The tables of the stream as the captured set sees them.
pub(super) struct Tables {
    captured: CapturedSet,
    offline: bool,
    row_event_max: usize,
    maps: TableMaps,
    /// Tables of the open statement that are not captured.
    filtered: Vec<u64>,
    /// By the raw names of a table map: whether it is captured.
    decided: BTreeMap<Box<[u8]>, bool>,
    /// The version that was last announced under a table id.
    announced: BTreeMap<u64, Arc<TableVersion>>,
}

impl Tables {
    pub(super) const fn new(captured: CapturedSet, offline: bool, row_event_max: usize) -> Self {
        Self {
            captured,
            offline,
            row_event_max,
            maps: TableMaps::new(),
            filtered: Vec::new(),
            decided: BTreeMap::new(),
            announced: BTreeMap::new(),
        }
    }

    pub(super) fn captures(&self, schema: &str, table: &str) -> bool {
        self.captured.captures(schema, table)
    }

    pub(super) fn effect_of(&self, ddl: &Ddl) -> Option<DdlEffect> {
        self.captured.effect_of(ddl)
    }

    pub(super) fn captures_schema(&self, schema: &str) -> bool {
        self.captured.captures_schema(schema)
    }

    /// Takes a table map. Tables that are not captured are not parsed beyond their names, so what
    /// they hold can trouble nobody.
    pub(super) fn map(&mut self, body: &Bytes) -> Result<(), Halt> {
        let head = TableMapHead::parse(body).map_err(|_| Halt::new(Code::EventMalformed))?;
        let names = Names::read(body).map_err(|_| Halt::new(Code::EventMalformed))?;
        self.filtered.retain(|id| *id != head.table_id);
        if !self.decide(&names) {
            self.filtered.push(head.table_id);
            return Ok(());
        }
        let captured = &self.captured;
        let opened = self.maps.open_with(body, |version| {
            let (schema, table) = names.text();
            version.leave_out(|column| captured.column_captured(&schema, &table, column));
        });
        match opened {
            Ok(version) if version.names_known() || self.offline => Ok(()),
            Ok(_) => {
                let (schema, table) = names.text();
                Err(Halt::new(Code::ColumnNamesMissing).of_table(&schema, &table))
            }
            Err(error) => {
                let (schema, table) = names.text();
                Err(errors::of_table_map(&error, &schema, &table))
            }
        }
    }

    /// Whether this number is that of a table that is not captured.
    pub(super) fn is_filtered(&self, table_id: u64) -> bool {
        self.filtered.contains(&table_id)
    }

    /// Takes a row event: `None` if its table is not captured; else the rows, and the table version
    /// if it is another one than before.
    pub(super) fn rows<P: Probe>(&mut self, type_code: u8, body: Bytes, sliced: bool) -> Result<Taken, Halt> {
        let head = RowsHead::parse(type_code, &body).map_err(|_| Halt::new(Code::EventMalformed))?;
        let taken = self.take_rows::<P>(head, body, sliced);
        if head.ends_statement() && !P::mutant(Mutant::KeepTableMaps) {
            self.close();
        }
        taken
    }

    fn take_rows<P: Probe>(&mut self, head: RowsHead, body: Bytes, sliced: bool) -> Result<Taken, Halt> {
        if head.is_dummy() || self.is_filtered(head.table_id) {
            return Ok(None);
        }
        let Some(table) = self.maps.get(head.table_id) else { return Err(Halt::new(Code::TableMapMissing)) };
        let table = Arc::clone(table);
        let body = if sliced { Bytes::copy_from_slice(&body) } else { body };
        let rows = RowsEvent::with_limit(head, Arc::clone(&table), body, self.row_event_max)
            .map_err(|e| errors::of_rows(&e, &table))?;
        if !rows.is_full() && !self.offline && !P::mutant(Mutant::PassPartialImage) {
            return Err(errors::of_rows(&RowsError::PartialRowImage, &table));
        }
        // Once, here: behind this point every length in the event is known to lie inside it.
        let rows = rows.validated().map_err(|e| errors::of_rows(&e, &table))?;
        let same = self.announced.get(&head.table_id).is_some_and(|known| Arc::ptr_eq(known, &table));
        if same {
            return Ok(Some((None, rows)));
        }
        if self.announced.len() >= REMEMBERED_MAX {
            self.announced.clear();
        }
        self.announced.insert(head.table_id, Arc::clone(&table));
        Ok(Some((Some(table), rows)))
    }

    /// What was said to be another version than before was not told on: it is said once more.
    pub(super) fn forget_announced(&mut self) {
        self.announced.clear();
    }

    /// The statement or the group is over.
    pub(super) fn close(&mut self) {
        self.maps.close_all();
        self.filtered.clear();
    }

    /// Another file: table ids start anew.
    pub(super) fn clear(&mut self) {
        self.maps.clear();
        self.filtered.clear();
        self.announced.clear();
    }

    fn decide(&mut self, names: &Names<'_>) -> bool {
        if let Some(decided) = self.decided.get(names.raw) {
            return *decided;
        }
        let (schema, table) = names.text();
        let captured = self.captured.captures(&schema, &table);
        if self.decided.len() >= REMEMBERED_MAX {
            self.decided.clear();
        }
        self.decided.insert(names.raw.into(), captured);
        captured
    }
}

/// The names in a table map: each with a length in front and a NUL behind.
struct Names<'a> {
    raw: &'a [u8],
    schema: &'a [u8],
    table: &'a [u8],
}

impl<'a> Names<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Short> {
        let mut r = Reader::new(body);
        r.skip(8)?;
        let from = r.rest();
        let mut name = || {
            let len = usize::try_from(r.lenenc()?).map_err(|_| Short)?;
            let name = r.take(len)?;
            r.skip(1)?;
            Ok::<_, Short>(name)
        };
        let (schema, table) = (name()?, name()?);
        let raw = from.get(..from.len().saturating_sub(r.len())).ok_or(Short)?;
        Ok(Self { raw, schema, table })
    }

    fn text(&self) -> (String, String) {
        (String::from_utf8_lossy(self.schema).into_owned(), String::from_utf8_lossy(self.table).into_owned())
    }
}
