//! The position: what has been processed, whose it is, and how it is written down.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

use super::copy::{self, CopiedTable, Copies, CopyState, TableCopy};
use crate::{
    capture::CapturedSet,
    gtid::{Gtid, GtidSet, Tsid},
    time::SourceTime,
};

/// The newest format of a written position: with an initial copy in it.
const FORMAT: u64 = 2;
/// What is written where there is none, so that earlier versions read it.
const FORMAT_WITHOUT_COPY: u64 = 1;

/// The newest processed transaction of one source UUID and tag, remembered so that a source whose history
/// was reset and has grown again is recognised (case BL-37): the number is there again, but with
/// another original commit timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastTransaction {
    /// The transaction.
    pub gtid: Gtid,
    /// When it was committed where it was first executed.
    pub original_commit: SourceTime,
}

/// A fingerprint of an XID. The XID itself is chosen by users and may hold data, so it is never
/// written anywhere (Rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct XaDigest(pub [u8; 16]);

impl XaDigest {
    /// The fingerprint of an XID's three parts.
    #[must_use]
    pub fn new(format_id: u32, gtrid: &[u8], bqual: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"capstan xid 1");
        hash.update(format_id.to_le_bytes());
        // Lengths first: ("a", "bc") and ("ab", "c") are different XIDs.
        hash.update((gtrid.len() as u64).to_le_bytes());
        hash.update(gtrid);
        hash.update((bqual.len() as u64).to_le_bytes());
        hash.update(bqual);
        let full: [u8; 32] = hash.finalize().into();
        let mut short = [0; 16];
        for (to, from) in short.iter_mut().zip(full) {
            *to = from;
        }
        Self(short)
    }
}

/// What one step along the log adds to a position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// Transactions that are now processed: delivered, filtered or empty.
    pub gtids: GtidSet,
    /// The newest of them per source UUID and tag.
    pub last: BTreeMap<Tsid, LastTransaction>,
    /// XA transactions without captured rows that are prepared now.
    pub prepared: Vec<XaDigest>,
    /// XA transactions that are committed or rolled back now.
    pub resolved: Vec<XaDigest>,
    /// How far the copies of these tables are now.
    pub copies: Copies,
}

impl Advance {
    /// Adds one processed transaction.
    pub fn add(&mut self, gtid: Gtid, original_commit: SourceTime) {
        self.gtids.add(&gtid);
        self.last.insert(gtid.tsid(), LastTransaction { gtid, original_commit });
    }

    /// An XA transaction is prepared now, perhaps under an XID that was in use before.
    pub fn prepare(&mut self, xid: XaDigest) {
        self.resolved.retain(|known| *known != xid);
        self.prepared.push(xid);
    }

    /// An XA transaction is resolved now, prepared in this step or before it.
    pub fn resolve(&mut self, xid: XaDigest) {
        self.prepared.retain(|known| *known != xid);
        self.resolved.push(xid);
    }

    /// Whether it adds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gtids.is_empty()
            && self.prepared.is_empty()
            && self.resolved.is_empty()
            && self.copies.is_empty()
    }
}

/// Where a pipeline stands: the set of processed transactions, and what must never part from it.
///
/// The order of two positions is set inclusion; there is no ordinal in it. [`Position::encode`] and
/// [`Position::decode`] are inverse to each other, byte for byte.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "store it in the same transaction as the rows it covers"]
pub struct Position {
    epoch: u64,
    owner: u64,
    gtid_set: GtidSet,
    last: BTreeMap<Tsid, LastTransaction>,
    captured: String,
    prepared: BTreeSet<XaDigest>,
    copies: Arc<Copies>,
    snapshot: Option<Arc<str>>,
}

impl Position {
    /// A position that has processed `gtid_set`, owned by nobody yet (epoch 0). `captured` is the
    /// canonical text of the captured set.
    pub fn new(gtid_set: GtidSet, captured: impl Into<String>) -> Self {
        Self {
            epoch: 0,
            owner: 0,
            gtid_set,
            last: BTreeMap::new(),
            captured: captured.into(),
            prepared: BTreeSet::new(),
            copies: Arc::default(),
            snapshot: None,
        }
    }

    /// The owner's epoch: each owner takes the next one when it starts.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The owner's own mark: two processes that take the same epoch at once are told apart by it.
    #[must_use]
    pub const fn owner(&self) -> u64 {
        self.owner
    }

    /// Whether both were written by one owner.
    #[must_use]
    pub const fn same_owner(&self, other: &Self) -> bool {
        self.epoch == other.epoch && self.owner == other.owner
    }

    /// Every processed transaction, captured or not.
    #[must_use]
    pub const fn gtid_set(&self) -> &GtidSet {
        &self.gtid_set
    }

    /// The newest processed transaction per source UUID and tag: those of one tag come in order, so a
    /// history that was reset shows before anything of it is delivered.
    #[must_use]
    pub const fn last(&self) -> &BTreeMap<Tsid, LastTransaction> {
        &self.last
    }

    /// Canonical text of the captured set the position was made under.
    #[must_use]
    pub fn captured(&self) -> &str {
        &self.captured
    }

    /// Whether this XA transaction was prepared without captured rows and is not resolved yet.
    #[must_use]
    pub fn is_prepared(&self, xid: &XaDigest) -> bool {
        self.prepared.contains(xid)
    }

    /// XA transactions that were prepared without captured rows and are not resolved yet.
    #[must_use]
    pub const fn prepared(&self) -> &BTreeSet<XaDigest> {
        &self.prepared
    }

    /// How far the initial copy of each of its tables is; empty where nothing was ever to be copied.
    #[must_use]
    pub fn copies(&self) -> &Copies {
        &self.copies
    }

    /// The same position with these tables to be copied, from their beginning.
    pub fn with_copies(mut self, tables: impl IntoIterator<Item = CopiedTable>) -> Self {
        let copies = Arc::make_mut(&mut self.copies);
        copies.extend(tables.into_iter().map(|table| (table, TableCopy::waiting())));
        self
    }

    /// The same position with these tables to be copied from their beginning, but for those whose copy is under way: a
    /// recorded decision of a person that can be made twice.
    pub fn with_copies_again(self, tables: impl IntoIterator<Item = CopiedTable>) -> Self {
        let done =
            |table: &CopiedTable| self.copies.get(table).is_none_or(|copy| copy.state == CopyState::Done);
        let tables: Vec<CopiedTable> = tables.into_iter().filter(done).collect();
        self.with_copies(tables)
    }

    /// Canonical text of the set that the initial copy was asked for: a table of it that was not there when it was,
    /// and is none of [`Position::copies`], came later and is whole. `None`: there was no initial copy.
    #[must_use]
    pub fn snapshot(&self) -> Option<&str> {
        self.snapshot.as_deref()
    }

    /// The same position with an initial copy of this set.
    pub fn with_snapshot(mut self, set: impl AsRef<str>) -> Self {
        self.snapshot = Some(Arc::from(set.as_ref()));
        self
    }

    /// The same position with nothing to be copied, nor copied before.
    pub fn without_copies(mut self) -> Self {
        self.copies = Arc::default();
        self.snapshot = None;
        self
    }

    /// The same position for the next owner, who is known by `owner` (drawn at random).
    pub fn claimed(mut self, owner: u64) -> Self {
        self.epoch = self.epoch.saturating_add(1);
        self.owner = owner;
        self
    }

    /// The same position after an earlier owner's epoch, for a start that abandons what was stored.
    pub const fn with_epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// The same position with one more transaction processed, though nobody has seen it: a recorded decision
    /// of a person. It never counts as the newest one, for its commit time is not known.
    pub fn with_skipped(mut self, gtid: &Gtid) -> Self {
        self.gtid_set.add(gtid);
        self
    }

    /// The same position under another captured set: a recorded decision of a person. Of a table that it does not
    /// hold nothing is copied any more.
    pub fn with_captured(mut self, captured: impl Into<String>) -> Self {
        self.captured = captured.into();
        // In doubt about the case of letters a copy stays.
        let set = CapturedSet::parse_canonical(&self.captured).map(|set| set.with_lower_case_table_names(1));
        if let Ok(set) = set
            && self.copies.keys().any(|(schema, table)| !set.captures(schema, table))
        {
            Arc::make_mut(&mut self.copies).retain(|(schema, table), _| set.captures(schema, table));
        }
        self
    }

    /// Adds one step.
    pub fn advance(&mut self, step: &Advance) {
        self.gtid_set.add_all(&step.gtids);
        for (tsid, last) in &step.last {
            self.last.insert(*tsid, last.clone());
        }
        self.prepared.extend(step.prepared.iter().copied());
        for xid in &step.resolved {
            self.prepared.remove(xid);
        }
        if !step.copies.is_empty() {
            let copies = Arc::make_mut(&mut self.copies);
            copies.extend(step.copies.iter().map(|(table, copy)| (table.clone(), copy.clone())));
        }
    }

    /// Adds one transaction, in place.
    pub fn add(&mut self, gtid: &Gtid, original_commit: SourceTime) {
        self.gtid_set.add(gtid);
        self.last.insert(gtid.tsid(), LastTransaction { gtid: *gtid, original_commit });
    }

    /// Writes it down: one line of JSON with its keys in fixed order, and the CRC-32 of what stands before it.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = String::with_capacity(256);
        self.write(&mut out);
        out
    }

    /// [`Position::encode`] into a buffer that is used again.
    pub fn write(&self, out: &mut String) {
        let without_copy = self.copies.is_empty() && self.snapshot.is_none();
        let format = if without_copy { FORMAT_WITHOUT_COPY } else { FORMAT };
        let begin = out.len();
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "{{\"format\":{format},\"epoch\":{},\"owner\":\"{:016x}\",\"gtid_set\":\"{}\",\"last\":[",
            self.epoch, self.owner, self.gtid_set
        );
        for (i, last) in self.last.values().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(out, "{comma}[\"{}\",{}]", last.gtid, last.original_commit.0);
        }
        out.push_str("],\"captured\":");
        out.push_str(&serde_json::to_string(&self.captured).unwrap_or_default());
        out.push_str(",\"prepared\":[");
        for (i, xid) in self.prepared.iter().enumerate() {
            out.push_str(if i == 0 { "\"" } else { ",\"" });
            for byte in xid.0 {
                let _ = write!(out, "{byte:02x}");
            }
            out.push('"');
        }
        out.push(']');
        if !self.copies.is_empty() {
            out.push_str(",\"copies\":");
            copy::write(&self.copies, out);
        }
        if let Some(snapshot) = &self.snapshot {
            out.push_str(",\"snapshot\":");
            out.push_str(&serde_json::to_string(&**snapshot).unwrap_or_default());
        }
        let sum = crc32fast::hash(out.as_bytes().get(begin..).unwrap_or_default());
        out.push_str(&ending(sum));
    }

    /// Reads what [`Position::encode`] wrote. A changed digit would be another position, so its `crc32` must
    /// fit; where a person has left it out, nothing is compared.
    pub fn decode(text: &str) -> Result<Self, PositionError> {
        #[derive(serde::Deserialize)]
        struct Format {
            format: u64,
        }
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            #[allow(dead_code, reason = "read above; named so that unknown fields can be refused")]
            format: u64,
            epoch: u64,
            owner: String,
            gtid_set: String,
            last: Vec<(String, u64)>,
            captured: String,
            prepared: Vec<String>,
            #[serde(default)]
            copies: Vec<copy::Written>,
            #[serde(default)]
            snapshot: Option<String>,
            #[serde(default)]
            crc32: Option<u32>,
        }
        let Format { format } = serde_json::from_str(text).map_err(|_| PositionError::Malformed)?;
        if format > FORMAT {
            return Err(PositionError::Newer { format });
        }
        if format < FORMAT_WITHOUT_COPY {
            return Err(PositionError::Malformed);
        }
        let written: Written = serde_json::from_str(text).map_err(|_| PositionError::Malformed)?;
        let mut last = BTreeMap::new();
        for (gtid, at) in written.last {
            let gtid: Gtid = gtid.parse().map_err(|_| PositionError::Malformed)?;
            last.insert(gtid.tsid(), LastTransaction { gtid, original_commit: SourceTime(at) });
        }
        let prepared = written
            .prepared
            .iter()
            .map(|hex| digest_from_hex(hex).ok_or(PositionError::Malformed))
            .collect::<Result<_, _>>()?;
        let position = Self {
            epoch: written.epoch,
            owner: u64::from_str_radix(&written.owner, 16).map_err(|_| PositionError::Malformed)?,
            gtid_set: written.gtid_set.parse().map_err(|_| PositionError::Malformed)?,
            last,
            captured: written.captured,
            prepared,
            copies: Arc::new(copy::read(written.copies)?),
            snapshot: written.snapshot.map(Arc::from),
        };
        // Where it was set out in another way, the sum is of what it says.
        let fits = |sum| is_sum_of_text(text, sum) || position.encode().ends_with(&ending(sum));
        match written.crc32 {
            Some(sum) if !fits(sum) => Err(PositionError::Malformed),
            Some(_) | None => Ok(position),
        }
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Position(epoch {}, {})", self.epoch, self.gtid_set)
    }
}

/// The last of its fields.
fn ending(sum: u32) -> String {
    alloc::format!("{SUM}{sum}}}")
}

const SUM: &str = ",\"crc32\":";

/// Whether the text ends with the sum, and it is that of what stands before it.
fn is_sum_of_text(text: &str, sum: u32) -> bool {
    text.rsplit_once(SUM).is_some_and(|(before, end)| {
        end.trim_ascii_end().strip_suffix('}').and_then(|digits| digits.parse().ok()) == Some(sum)
            && crc32fast::hash(before.as_bytes()) == sum
    })
}

fn digest_from_hex(hex: &str) -> Option<XaDigest> {
    let mut bytes = [0; 16];
    if hex.len() != 32 || !hex.is_ascii() {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(XaDigest(bytes))
}

/// Why a written position could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// A newer version of Capstan wrote it (`position_format_newer`).
    #[error("the position has format {format}, newer than this program knows")]
    Newer {
        /// Its format number.
        format: u64,
    },
    /// It is not a position, or was damaged.
    #[error("this is not a position")]
    Malformed,
}

/// What must still be stored for a batch to be written: the condition of its atomic write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    stored: Option<Arc<Position>>,
}

/// Why a stored position does not let a batch be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Another owner's epoch.
    Fenced,
    /// The same owner, but not the position this batch goes on from.
    Stale,
}

impl Expected {
    /// Nothing but `stored` may be there.
    #[must_use]
    pub fn new(stored: Option<Position>) -> Self {
        Self { stored: stored.map(Arc::new) }
    }

    pub(super) const fn shared(stored: Option<Arc<Position>>) -> Self {
        Self { stored }
    }

    /// The position that must be stored; `None`: nothing may be stored yet.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        self.stored.as_deref()
    }

    /// Compares with what is stored, inside the sink's transaction.
    pub fn check(&self, stored: Option<&Position>) -> Result<(), Mismatch> {
        if self.position() == stored {
            return Ok(());
        }
        match (self.position(), stored) {
            (Some(expected), Some(stored)) if expected.same_owner(stored) => Err(Mismatch::Stale),
            _ => Err(Mismatch::Fenced),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.gtid_set.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> Position {
        let mut position =
            Position::new("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7:9-10".parse().unwrap(), "`shop`.*");
        position.add(
            &"3e11fa47-71ca-11e1-9e33-c80aa9429562:12".parse().unwrap(),
            SourceTime(1_700_000_000_000_001),
        );
        position
            .advance(&Advance { prepared: alloc::vec![XaDigest::new(1, b"g", b"b")], ..Advance::default() });
        position.claimed(7)
    }

    #[test]
    fn what_is_written_reads_back_byte_for_byte() {
        let text = position().encode();
        let again = Position::decode(&text).unwrap();
        assert_eq!(again, position());
        assert_eq!(again.encode(), text);
        assert!(text.contains("1-7:9-10:12"), "gaps are kept: {text}");
    }

    #[test]
    fn a_table_is_copied_again_unless_that_is_under_way_and_never_once_it_is_left() {
        let (t, u) = (("d".to_string(), "t".to_string()), ("d".to_string(), "u".to_string()));
        let mut position = position().with_copies_again([t.clone(), u.clone()]);
        let copying = TableCopy { state: CopyState::Copying, rows: 7, ..TableCopy::waiting() };
        let done = TableCopy { rows: 9, ..TableCopy::waiting() }.done();
        let copies = [(t.clone(), copying.clone()), (u.clone(), done)].into();
        position.advance(&Advance { copies, ..Advance::default() });
        let again = position.with_copies_again([t.clone(), u.clone()]);
        assert_eq!(again.copies().get(&t), Some(&copying), "under way");
        assert_eq!(again.copies().get(&u), Some(&TableCopy::waiting()), "begun anew");
        let left = again.with_captured("tables=`d`.*;exclude=`d`.`u`;exclude-columns=");
        assert_eq!(left.copies().keys().collect::<Vec<_>>(), [&t]);
    }

    #[test]
    fn the_copy_is_written_with_the_position_and_only_where_there_is_one() {
        assert!(position().encode().starts_with("{\"format\":1,"));
        let name = |table: &str| ("a\"b".to_string(), table.to_string());
        let mut position = position().with_copies([name("t"), name("u")]).with_snapshot("tables=`a\"b`.*");
        let copy = TableCopy {
            state: CopyState::Copying,
            key: Some(super::copy::KeyParts([[0, 0xff, 7].into(), [].into()].into())),
            upto: Some(super::copy::KeyParts([[9].into()].into())),
            key_columns: 77,
            gtid_set: position.gtid_set().clone(),
            chunks: 3,
            rows: 99,
            bytes: 1234,
        };
        position.advance(&Advance { copies: [(name("t"), copy.clone())].into(), ..Advance::default() });
        let text = position.encode();
        assert!(text.starts_with("{\"format\":2,"), "{text}");
        let again = Position::decode(&text).unwrap();
        assert_eq!((again.encode(), again.copies().get(&name("t"))), (text.clone(), Some(&copy)));
        assert_eq!(again.copies().get(&name("u")), Some(&TableCopy::waiting()));
        assert_eq!(again.snapshot(), Some("tables=`a\"b`.*"));
        for (from, to) in [("copying", "copyng"), ("00ff07", "0ff07"), ("chunks", "chnks")] {
            assert_eq!(Position::decode(&text.replace(from, to)), Err(PositionError::Malformed), "{to}");
        }
    }

    #[test]
    fn an_xid_that_is_used_again_within_one_step_stays_prepared() {
        let xid = XaDigest::new(1, b"again", b"");
        let (mut step, mut position) = (Advance::default(), position());
        step.prepare(xid);
        step.resolve(xid);
        step.prepare(xid);
        position.advance(&step);
        assert!(position.is_prepared(&xid));
        let mut step = Advance::default();
        step.resolve(xid);
        position.advance(&step);
        assert!(!position.is_prepared(&xid));
    }

    #[test]
    fn a_newer_format_is_named_and_damage_is_not_a_position() {
        assert_eq!(Position::decode("{\"format\":3,\"x\":1}"), Err(PositionError::Newer { format: 3 }));
        let text = position().encode();
        for cut in 0..text.len() {
            assert_eq!(Position::decode(&text[..cut]), Err(PositionError::Malformed), "cut at {cut}");
        }
        assert_eq!(Position::decode(&text.replace("epoch", "epoxy")), Err(PositionError::Malformed));
    }

    #[test]
    fn another_epoch_is_fenced_and_another_position_is_stale() {
        let ours = position();
        let mut later = ours.clone();
        later.add(&"3e11fa47-71ca-11e1-9e33-c80aa9429562:13".parse().unwrap(), SourceTime(1));
        let expected = Expected::new(Some(ours.clone()));
        assert_eq!(expected.check(Some(&ours)), Ok(()));
        assert_eq!(expected.check(Some(&later)), Err(Mismatch::Stale));
        assert_eq!(expected.check(Some(&ours.claimed(7))), Err(Mismatch::Fenced));
        assert_eq!(expected.check(None), Err(Mismatch::Fenced));
    }

    #[test]
    fn a_skipped_transaction_is_processed_and_never_the_newest() {
        let skipped = "3e11fa47-71ca-11e1-9e33-c80aa9429562:13".parse().unwrap();
        let moved = position().with_skipped(&skipped);
        assert!(moved.gtid_set().contains(&skipped));
        assert_eq!(moved.last(), position().last());
    }

    #[test]
    fn xid_digests_do_not_confuse_where_the_parts_end() {
        assert_ne!(XaDigest::new(1, b"a", b"bc"), XaDigest::new(1, b"ab", b"c"));
        assert_ne!(XaDigest::new(1, b"a", b"b"), XaDigest::new(2, b"a", b"b"));
    }
}
