//! The gate: which changes of a table that is being copied reach the sink.
//!
//! The rule it keeps: **at every position the target holds exactly the rows of the table with keys up to the last
//! one that was delivered, and behind the last one there was at the first cut.** So
//!
//! - a change whose key lies there is delivered, and any other is dropped (of an update each image is judged by its
//!   own key, so that it may become an insert or a delete);
//! - a chunk may only be delivered when it holds what the table held at that very position: when every transaction
//!   of its GTID set was processed, and no change between its keys was dropped whose transaction is not in the set.
//!
//! The second part is not waited for but watched: a dropped change that the open cut does not have spoils the cut,
//! and another one is made. Where it can be put off (its transaction was not emitted yet) it waits for the chunk that
//! is on its way instead, so that a busy table is copied, too.
//!
//! A table whose keys cannot be compared here is copied as a whole, from one cut: until its last chunk is delivered
//! nothing of it is covered, and a change that the cut does not have waits, with everything behind it. What was
//! delivered of it when the cut is lost is void.
//!
//! Of two texts the server alone knows which comes first. A change whose key is text therefore waits until the server
//! has compared it with the borders ([`ask`]), which nothing else waits for.
//!
//! Nothing here depends on the order in which a server
//! logs, counts and shows its transactions, nor on that being one server.

use alloc::{boxed::Box, collections::BTreeSet, string::String, sync::Arc, vec::Vec};
use core::cmp::Ordering;

use self::ask::{Asking, Wanted as Asked};
use super::rows::{Compared, Comparisons, CopyKey};
use crate::{
    binlog::rows::{Row, RowsError, RowsEvent, RowsKind, Wanted},
    capture::CapturedSet,
    deliver::{CopiedTable, Copies, CopyState, KeyParts, SchemaChange, TableCopy},
    gtid::{Gtid, GtidSet},
    halt::{Code, Detail, Halt},
    probe::{Mutant, Probe},
    sql::{AlterOperation, SchemaEffect, TableMove, TableName, same_column},
    value::{ColumnType, Generation, TableVersion},
};

pub(crate) mod ask;

/// Whether a mistake is asked for: in tests of this file alone.
macro_rules! wrong {
    ($gate:ident, $mistake:ident) => {
        wrong!($gate.mistake, $mistake)
    };
    ($gate:ident.mistake, $mistake:ident) => {{
        #[cfg(test)]
        let wrong = $gate.mistake == Some(tests::Mistake::$mistake);
        #[cfg(not(test))]
        let wrong = false;
        wrong
    }};
}

/// What becomes of a row event.
pub(crate) enum Judged {
    /// It goes on as it is.
    Pass(RowsEvent),
    /// What is left of it goes on.
    Parts(Vec<RowsEvent>),
    /// It has to wait, and everything behind it.
    Wait(RowsEvent),
}

/// What is known of the cut that the next chunk comes from.
#[derive(Debug)]
enum Cut {
    /// None is open.
    None,
    /// The lock was asked for. Transactions with changes that were dropped since then must turn out to be in it.
    Pending { processed: GtidSet, dropped: GtidSet },
    /// A chunk is being read from it, or waits to be delivered.
    Open { gtid_set: GtidSet },
    /// A change that it does not have was dropped.
    Spoiled,
}

/// What a row event waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// None waits.
    Nothing,
    /// The chunk that is on its way, or what the key of its table is.
    Chunk,
    /// What the server says of its key.
    Answer,
}

/// The tables that are being copied, as the stream sees them.
#[derive(Debug)]
pub(crate) struct Gate {
    copies: Copies,
    /// What has changed without a chunk and is to be told with the next unit.
    untold: Copies,
    /// The table whose cut is open, and its key, once described.
    active: Option<CopiedTable>,
    key: Option<Keyed>,
    /// The active table is described: without a key it is copied as a whole.
    described: bool,
    /// The server may compute values of the described table anew when it copies it.
    computes: bool,
    cut: Cut,
    /// The last transaction of which something was dropped: it may not be processed to its end yet.
    last_dropped: Option<Gtid>,
    /// What a row event waits for.
    waiting: Waiting,
    asking: Asking,
    /// Tables that are not done.
    open: usize,
    /// Tables that are copied when they take a captured name.
    entering: Option<CapturedSet>,
    /// Tables of which a schema change was seen: what was known of them before is of no use.
    altered: BTreeSet<CopiedTable>,
    #[cfg(test)]
    mistake: Option<tests::Mistake>,
}

/// The key of the active table, and where its columns are in the version that was seen last.
#[derive(Debug)]
struct Keyed {
    key: Arc<CopyKey>,
    columns: Vec<(String, ColumnType)>,
    seen: Option<(Arc<TableVersion>, Box<[usize]>)>,
}

impl Gate {
    pub(crate) fn new(copies: &Copies) -> Self {
        let mut gate = Self {
            copies: copies.clone(),
            untold: Copies::new(),
            active: None,
            key: None,
            described: false,
            computes: false,
            cut: Cut::None,
            last_dropped: None,
            waiting: Waiting::Nothing,
            asking: Asking::default(),
            open: 0,
            entering: None,
            altered: BTreeSet::new(),
            #[cfg(test)]
            mistake: None,
        };
        let begun = gate.copies.iter().filter(|(_, copy)| is_begun_whole(copy));
        for table in begun.map(|(table, _)| table.clone()).collect::<Vec<_>>() {
            gate.begin_anew(table);
        }
        gate.count();
        gate
    }

    fn count(&mut self) {
        self.open = self.copies.values().filter(|copy| copy.state != CopyState::Done).count();
    }

    /// Begins the copy of a table anew that a statement has made another: no open cut and no description of it is of use.
    fn restart(&mut self, table: CopiedTable) {
        if self.active.as_ref() == Some(&table) {
            self.cut = Cut::Spoiled;
            self.described = false;
        }
        self.begin_anew(table);
    }

    fn begin_anew(&mut self, table: CopiedTable) {
        self.copies.insert(table.clone(), TableCopy::waiting());
        self.untold.insert(table, TableCopy::waiting());
    }

    /// Tables of this set are copied when they take a captured name.
    pub(crate) fn copy_what_enters(&mut self, set: CapturedSet) {
        self.entering = Some(set);
    }

    /// Whether everything is copied.
    pub(crate) const fn is_done(&self) -> bool {
        self.open == 0
    }

    /// How far each copy is.
    pub(crate) const fn copies(&self) -> &Copies {
        &self.copies
    }

    /// What is to be told with the next unit.
    pub(crate) fn take_untold(&mut self) -> Copies {
        core::mem::take(&mut self.untold)
    }

    /// Tables of which a schema change was seen since this was asked last.
    pub(crate) fn take_altered(&mut self) -> BTreeSet<CopiedTable> {
        core::mem::take(&mut self.altered)
    }

    /// Whether there is something to be told.
    pub(crate) fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Whether a row event waits for what is to come from the copy.
    pub(crate) const fn holds_back(&self) -> bool {
        !matches!(self.waiting, Waiting::Nothing)
    }

    /// Whether it waits for a chunk.
    pub(crate) const fn waits_for_chunk(&self) -> bool {
        matches!(self.waiting, Waiting::Chunk)
    }

    /// A chunk, or nothing, comes for what waits for one.
    fn let_go(&mut self) {
        if self.waits_for_chunk() {
            self.waiting = Waiting::Nothing;
        }
    }

    // ---- what the copy does ------------------------------------------------------------------

    /// The table to copy now: one that was begun, else the first.
    pub(crate) fn next_table(&self) -> Option<&CopiedTable> {
        let of =
            |state| self.copies.iter().find(move |(_, copy)| copy.state == state).map(|(table, _)| table);
        of(CopyState::Copying).or_else(|| of(CopyState::Waiting))
    }

    /// The lock for a cut of `table` is being asked for, when these transactions were processed.
    pub(crate) fn begin_cut(&mut self, table: &CopiedTable, processed: &GtidSet) {
        if self.active.as_ref() != Some(table) {
            self.active = Some(table.clone());
            self.key = None;
            self.described = false;
            self.computes = false;
            self.asking.void();
            self.ask_again();
        }
        let last_dropped = self.last_dropped.filter(|_| !wrong!(self, ForgetOpenGroup));
        let dropped = last_dropped.into_iter().collect();
        self.cut = Cut::Pending { processed: processed.clone(), dropped };
    }

    /// What the cut is exact for is known. `false`: something that was dropped is not in it, so it is of no use.
    pub(crate) fn cut_is(&mut self, gtid_set: &GtidSet) -> bool {
        let good = match &self.cut {
            Cut::Pending { processed, dropped } => {
                (processed.is_subset(gtid_set) || wrong!(self, TakeOldCut)) && dropped.is_subset(gtid_set)
            }
            Cut::None | Cut::Open { .. } | Cut::Spoiled => false,
        };
        self.cut = if good { Cut::Open { gtid_set: gtid_set.clone() } } else { Cut::None };
        good
    }

    /// Nothing more comes of the cut.
    pub(crate) fn end_cut(&mut self) {
        self.cut = Cut::None;
        self.let_go();
        let whole = |table: &&CopiedTable| self.copies.get(*table).is_some_and(is_begun_whole);
        if let Some(table) = self.active.as_ref().filter(whole).cloned()
            && !wrong!(self, KeepHalfOfWhole)
        {
            self.begin_anew(table);
        }
    }

    /// Whether the cut can still give a chunk.
    pub(crate) const fn is_cut_good(&self) -> bool {
        matches!(self.cut, Cut::Pending { .. } | Cut::Open { .. })
    }

    /// Whether a chunk of the open cut may be delivered now.
    pub(crate) fn is_reached(&self, processed: &GtidSet) -> bool {
        match &self.cut {
            Cut::Open { gtid_set } => gtid_set.is_subset(processed) || wrong!(self, DeliverEarly),
            Cut::None | Cut::Pending { .. } | Cut::Spoiled => false,
        }
    }

    /// Whether the active table is described, and was not changed since.
    pub(crate) const fn is_described(&self) -> bool {
        self.described
    }

    /// The active table is described; without a key it is copied as a whole. A copy that was begun by another key
    /// begins anew.
    pub(crate) fn described(&mut self, version: &TableVersion, key: Option<&Arc<CopyKey>>, fingerprint: u64) {
        let name = |part: usize| {
            version.columns().get(part).map(|column| (column.name.clone(), column.column_type.clone()))
        };
        self.key = key.map(|key| {
            let columns = key.parts().iter().filter_map(|part| name(part.column())).collect();
            Keyed { key: Arc::clone(key), columns, seen: None }
        });
        self.described = true;
        self.computes = computes_by_session(version);
        self.asking.void();
        self.waiting = Waiting::Nothing;
        let Some(table) = self.active.clone() else { return };
        let begun = self.copies.get(&table).filter(|copy| copy.state == CopyState::Copying);
        if begun.is_some_and(|copy| copy.key_columns != fingerprint) {
            self.begin_anew(table);
        }
    }

    /// A chunk was delivered, and this is how far the copy is.
    pub(crate) fn delivered(&mut self, table: &CopiedTable, copy: TableCopy) {
        let half = is_begun_whole(&copy);
        self.copies.insert(table.clone(), copy);
        self.count();
        if half {
            // What waits does so until all of it is there.
            return;
        }
        if self.waits_for_chunk() {
            // What waited goes on now; if it is beyond this chunk, the next one needs another cut.
            self.cut = Cut::None;
        }
        // What waits for an answer is judged by the new border.
        self.waiting = Waiting::Nothing;
    }

    /// The source has no such table now: what was delivered of it cannot be gone on with, and rows of it wait for no
    /// description.
    pub(crate) fn is_missing(&mut self, table: &CopiedTable) {
        if self.copies.get(table).is_some_and(|copy| copy.state == CopyState::Copying) {
            self.restart(table.clone());
        }
        self.waiting = Waiting::Nothing;
    }

    /// The source has no such table, and the stream has come to where that is so.
    pub(crate) fn not_there(&mut self, table: &CopiedTable) {
        self.gone(table);
        self.count();
        if self.active.as_ref() == Some(table) {
            self.cut = Cut::None;
            self.waiting = Waiting::Nothing;
        }
    }

    // ---- what the stream does ----------------------------------------------------------------

    /// Judges a row event of transaction `gtid`. `emitted`: part of that transaction is on its way already.
    pub(crate) fn judge<P: Probe>(
        &mut self,
        rows: RowsEvent,
        gtid: Option<&Gtid>,
        emitted: bool,
    ) -> Result<Judged, Halt> {
        if self.open == 0 {
            return Ok(Judged::Pass(rows));
        }
        let table = rows.table();
        let name = (String::from(table.schema()), String::from(table.table()));
        let Some(copy) = self.copies.get(&name) else { return Ok(Judged::Pass(rows)) };
        let is_active = self.active.as_ref() == Some(&name);
        let parts = match copy.state {
            CopyState::Done => return Ok(Judged::Pass(rows)),
            CopyState::Waiting => Vec::new(),
            CopyState::Copying if copy.key.is_none() => Vec::new(),
            CopyState::Copying => {
                let Some(keyed) = self.key.as_mut().filter(|_| is_active) else {
                    // Its key is not known in this process yet.
                    self.waiting = Waiting::Chunk;
                    return Ok(Judged::Wait(rows));
                };
                let mut wanted = Asked::default();
                let (parts, dropped) = keyed.split::<P>(&rows, copy, &self.asking.said, &mut wanted)?;
                if !wanted.pairs.is_empty() && !wrong!(self.mistake, JudgeUnanswered) {
                    self.asking.want(wanted);
                    self.waiting = Waiting::Answer;
                    return Ok(Judged::Wait(rows));
                }
                self.asking.settle();
                #[cfg(test)]
                let (parts, dropped) = tests::bent(self.mistake, &rows, parts, dropped);
                if !dropped {
                    return Ok(Judged::Parts(parts));
                }
                parts
            }
        };
        if is_active {
            match &mut self.cut {
                Cut::None | Cut::Spoiled => {}
                Cut::Pending { dropped, .. } => {
                    if let Some(gtid) = gtid
                        && !wrong!(self.mistake, ForgetDropped)
                    {
                        dropped.add(gtid);
                    }
                }
                Cut::Open { gtid_set } if gtid.is_some_and(|gtid| gtid_set.contains(gtid)) => {}
                Cut::Open { .. } if wrong!(self.mistake, KeepSpoiled) => {}
                Cut::Open { .. } if P::mutant(Mutant::UseSpoiledCut) => {}
                Cut::Open { .. } if !emitted => {
                    self.waiting = Waiting::Chunk;
                    return Ok(Judged::Wait(rows));
                }
                Cut::Open { .. } => self.cut = Cut::Spoiled,
            }
        }
        self.last_dropped = gtid.copied().or(self.last_dropped);
        Ok(Judged::Parts(parts))
    }

    /// Judges a schema change, and leaves of its effect what concerns what was delivered. `captures`: whether a table
    /// is captured. `false`: all it does will be in the copy.
    pub(crate) fn judge_change(
        &mut self,
        change: &mut SchemaChange,
        captures: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let open = self.touched(change);
        if open.is_empty() && !self.enters(change) {
            return true;
        }
        if self.active.as_ref().is_some_and(|active| open.contains(active)) {
            self.cut = Cut::Spoiled;
            self.described = false;
        }
        self.altered.extend(open.iter().cloned());
        let whole = |(schema, table): &CopiedTable| {
            (table.is_empty() || captures(schema, table)) && !open.contains(&(schema.clone(), table.clone()))
        };
        let only = !change.tables.is_empty() && !change.tables.iter().any(whole);
        let mut moves = None;
        match &change.effect {
            SchemaEffect::DropTables(tables) => tables.iter().for_each(|table| self.gone(&key_of(table))),
            SchemaEffect::DropDatabase(schema) => {
                open.iter().filter(|(of, _)| of == schema).for_each(|table| self.gone(table));
            }
            SchemaEffect::RenameTables(all) => moves = Some(self.moved(&open, all, &[])),
            SchemaEffect::TableEntered { entered, moves: all } => {
                // Of one that is not copied the rows are not known: nothing is taken from the statement.
                let copied = |table: &TableName| {
                    let entering = self.entering.as_ref();
                    open.contains(&key_of(table))
                        || entering.is_some_and(|set| set.captures(&table.schema, &table.table))
                };
                if entered.iter().all(copied) {
                    moves = Some(self.moved(&open, all, entered));
                }
            }
            SchemaEffect::AlterTable { table, operations, copies, moves: all, .. } => {
                if !all.is_empty() {
                    moves = Some(self.moved(&open, all, &[]));
                } else if self.cannot_follow(&key_of(table), operations)
                    || (copies.is_some() && self.computes_anew(&key_of(table)))
                {
                    self.restart(key_of(table));
                }
            }
            SchemaEffect::Unfollowed(_) if only => {
                // Nobody can tell what it does to the rows that were delivered, so they are copied again.
                open.iter().for_each(|table| self.restart(table.clone()));
            }
            // Whoever halts before it names a table that a copy would mend.
            SchemaEffect::Unfollowed(_) => change.tables.sort_by_key(|table| open.contains(table)),
            SchemaEffect::CopyTables(tables, _) => {
                for table in tables.iter().map(key_of) {
                    if self.computes_anew(&table) {
                        self.restart(table);
                    }
                }
            }
            SchemaEffect::Nothing
            | SchemaEffect::CreateTable { .. }
            | SchemaEffect::CreateTableLike { .. }
            | SchemaEffect::TruncateTable(_) => {}
        }
        self.count();
        if let Some(moves) = moves {
            if let SchemaEffect::AlterTable { table, moves: all, .. } = &mut change.effect
                && !open.contains(&key_of(table))
            {
                *all = moves;
            } else {
                change.effect = SchemaEffect::RenameTables(moves);
            }
            return true;
        }
        let waiting =
            |table: &CopiedTable| self.copies.get(table).is_some_and(|copy| copy.state == CopyState::Waiting);
        if let SchemaEffect::CopyTables(tables, _) = &mut change.effect {
            tables.retain(|table| !waiting(&key_of(table)));
        }
        !(only && open.iter().all(waiting))
    }

    /// Whether a table that is to be copied then takes a captured name.
    fn enters(&self, change: &SchemaChange) -> bool {
        matches!(change.effect, SchemaEffect::TableEntered { .. }) && self.entering.is_some()
    }

    /// Tables that are not done and that a change touches.
    fn touched(&self, change: &SchemaChange) -> Vec<CopiedTable> {
        if self.open == 0 {
            return Vec::new();
        }
        let touches = |(schema, table): &CopiedTable| {
            change.tables.is_empty()
                || change.tables.iter().any(|(s, t)| s == schema && (t.is_empty() || t == table))
        };
        let open = self.copies.iter().filter(|(table, copy)| copy.state != CopyState::Done && touches(table));
        open.map(|(table, _)| table.clone()).collect()
    }

    /// Nothing is left to copy of a table: it is gone, or what has its name is whole.
    fn gone(&mut self, table: &CopiedTable) {
        if let Some(copy) = self.copies.get_mut(table) {
            *copy = copy.done();
            self.untold.insert(table.clone(), copy.clone());
        }
    }

    /// Tables move, some of which are not copied to their end (`open`): those are copied anew under their new names,
    /// and what the target has of them goes. Told are the moves that the target can make.
    fn moved(&mut self, open: &[CopiedTable], moves: &[TableMove], entered: &[TableName]) -> Vec<TableMove> {
        let is_open = |name: &TableName| open.contains(&key_of(name));
        let left = |name: &TableName| TableMove { from: name.clone(), to: None };
        let mut made: Vec<TableMove> =
            moves.iter().map(|one| if is_open(&one.from) { left(&one.from) } else { one.clone() }).collect();
        let arrived = moves.iter().filter_map(|one| one.to.as_ref()).filter(|name| is_open(name));
        for name in arrived.chain(entered) {
            // What is here under that name is from before, and makes room.
            if !made.iter().any(|one| one.from == *name) {
                made.push(left(name));
            }
        }
        open.iter().filter(|table| moves.iter().any(|one| key_of(&one.from) == **table)).for_each(|table| {
            self.gone(table);
        });
        for TableMove { from, to } in moves {
            match to {
                Some(to) if is_open(from) => self.restart(key_of(to)),
                Some(to) => self.gone(&key_of(to)),
                None => {}
            }
        }
        entered.iter().for_each(|name| self.restart(key_of(name)));
        made
    }

    /// Whether what was delivered of a table cannot go on under these clauses with certainty: its copy begins anew.
    fn cannot_follow(&self, table: &CopiedTable, operations: &[AlterOperation]) -> bool {
        let copying = self.copies.get(table).is_some_and(|copy| copy.state == CopyState::Copying);
        let key = self.key.as_ref().filter(|_| self.active.as_ref() == Some(table));
        let of_key = |name: &str| {
            key.is_none_or(|key| key.columns.iter().any(|(column, _)| same_column(column, name)))
        };
        let uncertain = |operation: &AlterOperation| match operation {
            AlterOperation::Add(column, _) => column.value_when_added().is_none(),
            AlterOperation::Drop(name) => of_key(name),
            AlterOperation::Rename { from, .. } => of_key(from),
            AlterOperation::Change { .. } | AlterOperation::Default | AlterOperation::Unfollowed(_) => true,
        };
        copying && operations.iter().any(uncertain)
    }

    /// Whether what was delivered of a table is something else after the server copied it. Where that is not known yet
    /// (before it is described), whoever has the rows halts.
    fn computes_anew(&self, table: &CopiedTable) -> bool {
        let copying = self.copies.get(table).is_some_and(|copy| copy.state == CopyState::Copying);
        copying && self.computes && self.active.as_ref() == Some(table)
    }
}

/// Whether the server may compute values of its columns anew when it copies the table.
fn computes_by_session(version: &TableVersion) -> bool {
    let by_session = |column| version.generation(column) == Some(Generation::BySession);
    (0..version.columns().len()).any(|column| !version.is_left_out(column) && by_session(column))
}

fn key_of(name: &TableName) -> CopiedTable {
    (name.schema.clone(), name.table.clone())
}

/// Copied as a whole, and not to its end.
fn is_begun_whole(copy: &TableCopy) -> bool {
    copy.state == CopyState::Copying && copy.key.is_none()
}

impl Keyed {
    /// What of the rows is covered, and whether something is not; of no use where something is `wanted`.
    fn split<P: Probe>(
        &mut self,
        rows: &RowsEvent,
        copy: &TableCopy,
        said: &Comparisons,
        wanted: &mut Asked,
    ) -> Result<(Vec<RowsEvent>, bool), Halt> {
        let table = rows.table();
        if !self.seen.as_ref().is_some_and(|(seen, _)| Arc::ptr_eq(seen, table)) {
            self.seen = Some((Arc::clone(table), self.places(table)?));
        }
        let places = self.seen.as_ref().map(|(_, places)| &**places).unwrap_or_default();
        let mut dropped = false;
        let mut covers = |row: Option<Row<'_>>| -> Result<bool, Unjudged> {
            let Some(row) = row else { return Ok(false) };
            let parts: Option<_> = places.iter().map(|place| row.raw(*place).map(Box::from)).collect();
            let key = KeyParts(parts.ok_or(Unjudged::Key)?);
            let mut is =
                |border: &Option<KeyParts>, covered: fn(Ordering) -> bool| -> Result<bool, Unjudged> {
                    let Some(border) = border else { return Ok(false) };
                    match self.key.compare_by(&key, border, said, |pair| wanted.add(pair)) {
                        Compared::Order(order) => Ok(covered(order)),
                        Compared::Unknown => Ok(false),
                        Compared::NoKey => Err(Unjudged::Key),
                    }
                };
            let up_to_last = is(&copy.key, Ordering::is_le)?;
            let behind_end = is(&copy.upto, Ordering::is_gt)?;
            Ok(up_to_last || behind_end)
        };
        let kind = rows.kind();
        let parts = rows.filtered(|before, after| {
            let mut wanted = Wanted { before: covers(before)?, after: covers(after)? };
            if P::mutant(Mutant::JudgeUpdateAsOne) && kind == RowsKind::Update {
                wanted.before = wanted.after;
            }
            dropped |= match kind {
                RowsKind::Insert => !wanted.after,
                RowsKind::Delete => !wanted.before,
                RowsKind::Update | RowsKind::PartialUpdate => !wanted.before || !wanted.after,
            };
            Ok::<_, Unjudged>(wanted)
        });
        match parts {
            Ok(parts) => Ok((parts, dropped)),
            Err(Unjudged::Key) => Err(changed(table)),
            Err(Unjudged::Rows) => Err(Halt::new(Code::EventMalformed)),
        }
    }

    /// Where the key's columns are in a version of the table: they have the same names and types.
    fn places(&self, table: &TableVersion) -> Result<Box<[usize]>, Halt> {
        let place = |(name, column_type): &(String, ColumnType)| {
            table
                .columns()
                .iter()
                .position(|column| column.name == *name && column.column_type == *column_type)
        };
        let places: Option<Box<[usize]>> = self.columns.iter().map(place).collect();
        places.filter(|places| places.len() == self.key.parts().len()).ok_or_else(|| changed(table))
    }
}

fn changed(table: &TableVersion) -> Halt {
    let note = Detail::Note("The table's key was changed while it was copied");
    Halt::new(Code::SnapshotSourceChanged).of_table(table.schema(), table.table()).with(note)
}

/// Why a row cannot be judged.
enum Unjudged {
    /// It has no key to compare.
    Key,
    /// The event does not add up.
    Rows,
}

impl From<RowsError> for Unjudged {
    fn from(_: RowsError) -> Self {
        Self::Rows
    }
}

#[cfg(test)]
mod changes;
#[cfg(test)]
mod tests;
