//! Transactions of every shape, as bytes for the servers and as truth for the oracles.

use std::sync::{Arc, LazyLock, OnceLock};

use capstan_core::gtid::Gtid;
use capstan_fake_source::{
    Group,
    event::{self, Body, Column, GtidHead, Query, RowChange, Rows, Table, Value, status},
    group::{Content, End},
};

use crate::{
    choices::Choices,
    hash::{Hash, tag},
    truth::{Entry, Poison},
};

/// The captured schema; every other one only moves the position.
pub const CAPTURED: &str = "shop";

/// What a transaction looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// A few inserted rows.
    Small,
    /// Inserts, updates and deletes in two tables.
    Mixed,
    /// Rows of a table that is not captured.
    Filtered,
    /// BEGIN, COMMIT.
    Empty,
    /// A schema change of the captured schema.
    Ddl,
    /// A schema change of another one.
    DdlElsewhere,
    /// CREATE TABLE … SELECT: a schema change and rows in one group.
    CreateSelect,
    /// Ended by QUERY COMMIT.
    NonTransactional,
    /// Ended by ROLLBACK.
    RolledBack,
    /// With rows that a ROLLBACK TO SAVEPOINT takes back.
    Savepoint,
    /// XA, committed in one phase.
    XaOnePhase,
    /// In a payload event, zstd.
    Compressed,
    /// In a payload event, stored.
    Stored,
    /// Above `stream_above`.
    Big,
    /// Above it, in a payload event.
    BigCompressed,
    /// Above it, ended by ROLLBACK.
    BigRolledBack,
    /// Changes of tables that are copied; of no pool.
    Copied,
    /// The same, above `stream_above`.
    CopiedLarge,
    /// Changes of their keys.
    CopiedMoved,
}

impl Shape {
    /// Whether it is above `stream_above`.
    #[must_use]
    pub const fn is_big(self) -> bool {
        matches!(self, Self::Big | Self::BigCompressed | Self::BigRolledBack)
    }

    /// Its name in a schedule.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Mixed => "mixed",
            Self::Filtered => "filtered",
            Self::Empty => "empty",
            Self::Ddl => "ddl",
            Self::DdlElsewhere => "ddl-elsewhere",
            Self::CreateSelect => "create-select",
            Self::NonTransactional => "non-transactional",
            Self::RolledBack => "rolled-back",
            Self::Savepoint => "savepoint",
            Self::XaOnePhase => "xa-one-phase",
            Self::Compressed => "compressed",
            Self::Stored => "stored",
            Self::Big => "big",
            Self::BigCompressed => "big-compressed",
            Self::BigRolledBack => "big-rolled-back",
            Self::Copied => "copied",
            Self::CopiedLarge => "copied-large",
            Self::CopiedMoved => "copied-moved",
        }
    }
}

/// Every shape, the plainest first.
pub const SHAPES: &[Shape] = &[
    Shape::Small,
    Shape::Mixed,
    Shape::Filtered,
    Shape::Empty,
    Shape::Ddl,
    Shape::DdlElsewhere,
    Shape::CreateSelect,
    Shape::NonTransactional,
    Shape::RolledBack,
    Shape::Savepoint,
    Shape::XaOnePhase,
    Shape::Compressed,
    Shape::Stored,
    Shape::Big,
    Shape::BigCompressed,
    Shape::BigRolledBack,
];

/// Those of tables that are copied.
pub const COPIED_SHAPES: [Shape; 3] = [Shape::Copied, Shape::CopiedLarge, Shape::CopiedMoved];

/// Makes transactions. What is in them comes from a pool that is encoded once for all runs; a group's head,
/// with its GTID and time, is its own.
#[derive(Debug)]
pub struct Workload {
    made: usize,
    line: usize,
}

impl Default for Workload {
    fn default() -> Self {
        Self::seeded(0)
    }
}

/// Bytes of a large row: all is an eighth of what a server's rows may be, and so are the limits of the core here.
pub const LINE: usize = 750;

/// Bytes of a row that no row event may hold here.
const TOO_LARGE: usize = 70_000;

/// Bytes of a row of a table that is not captured, in some contents.
const LARGE_ELSEWHERE: usize = 20_000;

/// Contents of each shape: no two transactions in a row are the same.
const VARIANTS: usize = 8;

/// A content of the pool, and what a sink must get of it.
#[derive(Debug)]
struct Made {
    content: Arc<Content>,
    delivered: Option<(u64, u64)>,
}

impl Made {
    fn committed(&self, gtid: Gtid, at: u64) -> (Arc<Group>, Entry) {
        let group = Group::with(GtidHead::new(Some(gtid), at), SERVER_ID, &self.content);
        (group, Entry { gtid: Some(gtid), content: self.delivered, lost: false, poison: None })
    }
}

static POOL: LazyLock<Vec<OnceLock<Made>>> =
    LazyLock::new(|| (0..SHAPES.len() * VARIANTS).map(|_| OnceLock::new()).collect());

impl Workload {
    /// One that begins elsewhere in the pool.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { made: seed as usize % VARIANTS, line: LINE }
    }

    /// Its large rows have so many bytes. Contents of other than [`LINE`] are not of the pool.
    #[must_use]
    pub const fn with_lines_of(mut self, bytes: usize) -> Self {
        self.line = bytes;
        self
    }

    /// A transaction of this shape, committed at `at` (µs on the source's clock).
    pub fn make(&mut self, shape: Shape, gtid: Gtid, at: u64) -> (Arc<Group>, Entry) {
        self.made += 1;
        let place = shape as usize * VARIANTS + self.made % VARIANTS;
        if self.line != LINE {
            return Maker::new(place, self.line).make(shape).committed(gtid, at);
        }
        POOL[place].get_or_init(|| Maker::new(place, LINE).make(shape)).committed(gtid, at)
    }

    /// A transaction of so many large rows.
    pub fn huge(&mut self, rows: usize, gtid: Gtid, at: u64) -> (Arc<Group>, Entry) {
        self.made += 1;
        Maker::new(1_000 + self.made, self.line).huge(rows).committed(gtid, at)
    }

    /// A group that cannot be delivered.
    #[must_use]
    pub fn poison(poison: Poison, gtid: Gtid, at: u64) -> (Arc<Group>, Entry) {
        let gtid = (poison != Poison::Anonymous).then_some(gtid);
        let bodies = Maker::new(0, LINE).poison(poison);
        let group = Group::new(GtidHead::new(gtid, at), SERVER_ID, bodies);
        (group, Entry { gtid, content: None, lost: false, poison: Some(poison) })
    }
}

/// Makes contents.
struct Maker {
    orders: Table,
    lines: Table,
    noise: Table,
    heap: Table,
    next_row: i64,
    /// Bytes of a large row.
    line: usize,
    /// Whether rows of other tables are among it that no memory should hold.
    large_elsewhere: bool,
    choices: Choices,
}

const SERVER_ID: u32 = 1;

/// The time in the headers of pooled events; a group's own is in its head.
const TIMESTAMP: u32 = 1_795_000_000;

impl Maker {
    fn new(place: usize, line: usize) -> Self {
        let orders = Table::new(
            100,
            CAPTURED,
            "orders",
            vec![
                Column::bigint("id").not_null(),
                Column::varchar("name", 400),
                Column::bigint("total").unsigned(),
                Column::double("weight"),
                Column::enumeration("state", &["new", "paid", "sent"]),
            ],
        );
        let lines = Table::new(
            101,
            CAPTURED,
            "lines",
            vec![Column::bigint("id").not_null(), Column::int("n"), Column::blob("data")],
        );
        let noise = Table::new(102, "elsewhere", "noise", vec![Column::bigint("id").not_null()]);
        let heap = vec![Column::bigint("id").not_null(), Column::int("n"), Column::blob("data")];
        let heap = Table::new(103, "elsewhere", "heap", heap);
        // Rows of different contents have different numbers.
        let next_row = place as i64 * 1_000;
        Self {
            orders,
            lines,
            noise,
            heap,
            next_row,
            line,
            large_elsewhere: place % VARIANTS == 3,
            choices: Choices::seeded(place as u64),
        }
    }

    fn make(&mut self, shape: Shape) -> Made {
        let mut hash = Truthful::default();
        let mut bodies = match shape {
            Shape::Empty => vec![begin(), Body::Query(Query::new("", "COMMIT"))],
            Shape::Ddl => {
                let text = format!("CREATE TABLE shop.t{} (id INT PRIMARY KEY)", self.next());
                hash.schema_change(&text);
                vec![ddl(CAPTURED, &text)]
            }
            Shape::DdlElsewhere => {
                vec![ddl("elsewhere", &format!("CREATE TABLE elsewhere.t{} (id INT)", self.next()))]
            }
            Shape::CreateSelect => self.create_select(&mut hash),
            Shape::Savepoint => self.savepoint(&mut hash),
            Shape::Filtered => {
                let rows = vec![RowChange::Insert(vec![Value::Int(self.next())])];
                let large = self.elsewhere();
                let mut statements = vec![(&self.noise, rows)];
                statements.extend(large.map(|rows| (&self.heap, rows)));
                Group::changes(&statements, &End::Xid)
            }
            Shape::Small
            | Shape::Mixed
            | Shape::NonTransactional
            | Shape::RolledBack
            | Shape::XaOnePhase
            | Shape::Compressed
            | Shape::Stored
            | Shape::Big
            | Shape::BigCompressed
            | Shape::BigRolledBack
            | Shape::Copied
            | Shape::CopiedLarge
            | Shape::CopiedMoved => self.rows(shape, &mut hash),
        };
        if let Shape::Compressed | Shape::Stored | Shape::BigCompressed = shape {
            let compress = shape != Shape::Stored;
            bodies = Group::in_payload(bodies, TIMESTAMP, SERVER_ID, compress);
        }
        let delivered = !matches!(
            shape,
            Shape::Empty | Shape::DdlElsewhere | Shape::Filtered | Shape::RolledBack | Shape::BigRolledBack
        );
        let delivered = delivered.then_some((hash.hash.0, hash.changes));
        Made { content: Content::new(bodies, TIMESTAMP, SERVER_ID), delivered }
    }

    /// Large rows.
    fn huge(&mut self, rows: usize) -> Made {
        let lines: Vec<RowChange> = (0..rows).map(|_| RowChange::Insert(self.line(self.line))).collect();
        let mut hash = Truthful::default();
        hash.changes(&self.lines, &lines);
        let bodies = Group::changes(&[(&self.lines, lines)], &End::Xid);
        let delivered = Some((hash.hash.0, hash.changes));
        Made { content: Content::new(bodies, TIMESTAMP, SERVER_ID), delivered }
    }

    fn poison(&mut self, poison: Poison) -> Vec<Body> {
        let row = self.order();
        let rows = Rows::of(&self.orders, &[RowChange::Insert(row.clone())], true);
        let map = Body::TableMap(self.orders.clone());
        let xid = Body::Xid(9);
        match poison {
            Poison::PartialImage => vec![begin(), map, Body::Rows(rows.without(3)), xid],
            Poison::StatementLogged => {
                let text = "INSERT INTO orders VALUES (1)";
                let query = Query::new(CAPTURED, text).with(status::updated_databases(&[CAPTURED]));
                vec![begin(), Body::Query(query), xid]
            }
            Poison::Anonymous => vec![begin(), map, Body::Rows(rows), xid],
            Poison::Incident => vec![Body::Incident { number: 1, message: b"lost".to_vec() }],
            Poison::UnknownType => vec![begin(), Body::Other { code: 77, bytes: vec![1] }, xid],
            // The table of its number was named before, in another group.
            Poison::RowsWithoutTable => vec![begin(), Body::Rows(rows), xid],
            Poison::RowTooLarge => {
                let row = RowChange::Insert(self.line(TOO_LARGE));
                let rows = Rows::of(&self.lines, &[row], true);
                vec![begin(), Body::TableMap(self.lines.clone()), Body::Rows(rows), xid]
            }
            Poison::TwoPhaseXa => vec![
                Body::Query(Query::new("", "XA START X'7032',X'',1")),
                map,
                Body::Rows(rows),
                Body::Query(Query::new("", "XA END X'7032',X'',1")),
                Body::XaPrepare { one_phase: false, format_id: 1, gtrid: b"p2".to_vec(), bqual: Vec::new() },
            ],
        }
    }

    fn next(&mut self) -> i64 {
        self.next_row += 1;
        self.next_row
    }

    fn order(&mut self) -> Vec<Value> {
        let id = self.next();
        let name = ["", "a", "München", "日本語のとても長い名前"][self.choices.below(4) as usize];
        let or_null = |null: bool, value| if null { Value::Null } else { value };
        vec![
            Value::Int(id),
            Value::Bytes(name.as_bytes().to_vec()),
            or_null(self.choices.chance(1, 8), Value::UInt(u64::MAX - id.cast_unsigned())),
            Value::Double(id as f64 / 3.0),
            Value::UInt(u64::from(self.choices.below(4))),
        ]
    }

    fn line(&mut self, bytes: usize) -> Vec<Value> {
        let id = self.next();
        // Numbers that zstd cannot fold.
        let mut state = id.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut data = Vec::with_capacity(bytes + 8);
        while data.len() < bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            data.extend_from_slice(&(state ^ state >> 31).to_le_bytes());
        }
        data.truncate(bytes);
        vec![Value::Int(id), Value::Int(-1), Value::Bytes(data)]
    }

    /// In some contents: a row event of a table that is not captured, so large that it is passed by while it is read.
    fn elsewhere(&mut self) -> Option<Vec<RowChange>> {
        self.large_elsewhere.then(|| vec![RowChange::Insert(self.line(LARGE_ELSEWHERE))])
    }

    fn rows(&mut self, shape: Shape, hash: &mut Truthful) -> Vec<Body> {
        let mut orders = Vec::new();
        for _ in 0..=self.choices.below(3) {
            orders.push(RowChange::Insert(self.order()));
        }
        if shape == Shape::Mixed {
            let (before, after) = (self.order(), self.order());
            orders.push(RowChange::Update(before, after));
            orders.push(RowChange::Delete(self.order()));
        }
        let mut lines = Vec::new();
        if let Shape::Big | Shape::BigCompressed | Shape::BigRolledBack = shape {
            // stream_above is 8 KiB here, and 32 KiB are held at most: some are larger than that.
            let rows = if self.next_row % 8_000 >= 7_000 { 60 } else { 14 + self.choices.below(8) };
            for _ in 0..rows {
                lines.push(RowChange::Insert(self.line(self.line)));
            }
        } else if self.choices.chance(1, 3) {
            lines.push(RowChange::Insert(self.line(20)));
        }
        hash.changes(&self.orders, &orders);
        let large = if shape == Shape::Mixed { self.elsewhere() } else { None };
        let mut statements: Vec<_> = large.map(|rows| (&self.heap, rows)).into_iter().collect();
        statements.push((&self.orders, orders));
        hash.changes(&self.lines, &lines);
        statements.extend(lines.chunks(2).map(|lines| (&self.lines, lines.to_vec())));
        let end = match shape {
            Shape::NonTransactional => End::Commit,
            Shape::RolledBack | Shape::BigRolledBack => End::Rollback,
            Shape::XaOnePhase => End::XaOnePhase,
            Shape::Small
            | Shape::Mixed
            | Shape::Filtered
            | Shape::Empty
            | Shape::Ddl
            | Shape::DdlElsewhere
            | Shape::CreateSelect
            | Shape::Savepoint
            | Shape::Compressed
            | Shape::Stored
            | Shape::Big
            | Shape::BigCompressed
            | Shape::Copied
            | Shape::CopiedLarge
            | Shape::CopiedMoved => End::Xid,
        };
        Group::changes(&statements, &end)
    }

    fn create_select(&mut self, hash: &mut Truthful) -> Vec<Body> {
        let text = format!("CREATE TABLE `c{}` (`id` bigint NOT NULL) START TRANSACTION", self.next());
        hash.schema_change(&text);
        let changes = vec![RowChange::Insert(self.order()), RowChange::Insert(self.order())];
        hash.changes(&self.orders, &changes);
        let rows = Rows::of(&self.orders, &changes, true);
        let create = Query::new(CAPTURED, &text).with(status::ddl_xid(3));
        vec![
            begin(),
            Body::Query(create),
            Body::TableMap(self.orders.clone()),
            Body::Rows(rows),
            Body::Xid(5),
        ]
    }

    fn savepoint(&mut self, hash: &mut Truthful) -> Vec<Body> {
        let mut bodies = vec![begin()];
        let back = "ROLLBACK TO `s`";
        for text in ["SAVEPOINT `s`", back, back, ""] {
            let changes = vec![RowChange::Insert(self.order())];
            if text != back {
                hash.changes(&self.orders, &changes);
            }
            bodies.push(Body::TableMap(self.orders.clone()));
            bodies.push(Body::Rows(Rows::of(&self.orders, &changes, true)));
            if !text.is_empty() {
                bodies.push(Body::Query(Query::new("", text)));
            }
        }
        bodies.push(Body::Xid(6));
        bodies
    }
}

fn begin() -> Body {
    Body::Query(Query::new("", "BEGIN"))
}

fn ddl(schema: &str, text: &str) -> Body {
    let query = Query::new(schema, text);
    Body::Query(query.with(status::updated_databases(&[schema])).with(status::ddl_xid(4)))
}

/// The hash of what was written, from the descriptions alone.
#[derive(Default)]
struct Truthful {
    hash: Hash,
    changes: u64,
}

impl Truthful {
    fn changes(&mut self, table: &Table, changes: &[RowChange]) {
        for change in changes {
            self.changes += 1;
            let (op, rows) = match change {
                RowChange::Insert(row) => (tag::INSERT, vec![row]),
                RowChange::Update(before, after) => (tag::UPDATE, vec![before, after]),
                RowChange::Delete(row) => (tag::DELETE, vec![row]),
            };
            self.hash.bytes(op, table.schema.as_bytes());
            self.hash.bytes(op, table.name.as_bytes());
            for (column, value) in rows.into_iter().flat_map(|row| table.columns.iter().zip(row)) {
                self.value(column, value);
            }
        }
    }

    fn value(&mut self, column: &event::Column, value: &Value) {
        match value {
            Value::Null => self.hash.number(tag::NULL, 0),
            Value::Int(n) => self.hash.number(tag::INT, n.cast_unsigned()),
            Value::UInt(n) if column.members.is_empty() => self.hash.number(tag::UINT, *n),
            Value::UInt(n) => self.hash.number(tag::ENUM, *n),
            Value::Double(n) => self.hash.number(tag::DOUBLE, n.to_bits()),
            Value::Shown(text) => self.hash.bytes(tag::OTHER, text.as_bytes()),
            Value::Bytes(bytes) if column.collation == 63 => self.hash.bytes(tag::BLOB, bytes),
            Value::Bytes(bytes) => self.hash.bytes(tag::TEXT, bytes),
        }
    }

    fn schema_change(&mut self, text: &str) {
        self.hash.bytes(tag::SCHEMA_CHANGE, text.as_bytes());
    }
}
