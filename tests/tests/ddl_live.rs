//! What `capstan_core::sql` says of a statement against what the statement did to a real server.
//!
//! Each statement is run, its QUERY events are read back from the binlog and classified, and the
//! server's state before and after is compared with what was said: which names there are, whose
//! definition changed, whose rows changed. Saying too much (rows unknown) is allowed, saying too
//! little is not.

// A test that cannot go on ends there; clippy knows only the functions that are tests themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use capstan_core::binlog::{Event, EventType, FileReader, Query, flags};
use capstan_core::sql::{Context, Ddl, DdlKind, RowsEffect, Statement, TableRole, Tables, classify};
use capstan_mysql::{Server, Session};

type Name = (String, String);

/// What a table is at one moment.
#[derive(Clone, Debug, PartialEq)]
struct Table {
    definition: String,
    columns: Vec<String>,
    /// Sorted; `None` for a view, and for a table that cannot be read (its tablespace is discarded).
    rows: Option<Vec<Vec<Option<Vec<u8>>>>>,
}

type State = BTreeMap<Name, Table>;

/// A server, a session that runs the statements, one that looks, and the binlog as far as it was read.
struct Watch {
    server: Server,
    runs: Session,
    looks: Session,
    reader: FileReader,
    read: usize,
    lower_case_table_names: u8,
    checked: usize,
    faults: Vec<String>,
}

impl Watch {
    fn start() -> Self {
        let server = Server::builder().option("--innodb-file-per-table=ON").start().expect("a server");
        server.sql("RESET BINARY LOGS AND GTIDS").expect("a fresh binlog");
        let (runs, looks) = (server.connect().unwrap(), server.connect().unwrap());
        let lower_case_table_names =
            server.sql("SELECT @@lower_case_table_names").unwrap().trim().parse().unwrap();
        let reader = FileReader::new(1 << 24);
        Self { server, runs, looks, reader, read: 0, lower_case_table_names, checked: 0, faults: Vec::new() }
    }

    /// The events written since the last call.
    fn events(&mut self) -> Vec<Event> {
        let path = self.server.binlogs().unwrap().pop().unwrap();
        let file = fs::read(path).unwrap();
        self.reader.feed(&file[self.read..]);
        self.read = file.len();
        std::iter::from_fn(|| self.reader.next_event().unwrap()).map(|(_, event)| event).collect()
    }

    fn state(&mut self) -> State {
        let names = self
            .looks
            .sql(
                "SELECT CONCAT_WS('\t', HEX(TABLE_SCHEMA), HEX(TABLE_NAME), TABLE_TYPE) FROM information_schema.TABLES
                 WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')",
            )
            .unwrap();
        let mut state = State::new();
        for line in names.lines() {
            let mut fields = line.split('\t');
            let mut name = || unhex(fields.next().unwrap());
            let name = (name(), name());
            let is_view = fields.next() == Some("VIEW");
            state.insert(name.clone(), self.table(&name, is_view));
        }
        state
    }

    fn table(&mut self, (schema, table): &Name, is_view: bool) -> Table {
        let name = format!("{}.{}", quoted(schema), quoted(table));
        let definition = match self.looks.sql(&format!("SHOW CREATE TABLE {name}")) {
            // The next AUTO_INCREMENT is a count of rows, not a definition.
            Ok(text) => text.split(' ').filter(|word| !word.starts_with("AUTO_INCREMENT=")).collect(),
            Err(error) => error.to_string(),
        };
        // `*` leaves out invisible columns.
        let columns = format!(
            "SET SESSION group_concat_max_len = 100000;
             SELECT GROUP_CONCAT('`', REPLACE(COLUMN_NAME, '`', '``'), '`' ORDER BY ORDINAL_POSITION)
             FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = X'{}' AND TABLE_NAME = X'{}'",
            hex(schema),
            hex(table)
        );
        let columns = self.looks.sql(&columns).unwrap();
        let selected =
            if is_view { None } else { self.looks.query(&format!("SELECT {columns} FROM {name}")).ok() };
        match selected.and_then(|mut results| results.pop()) {
            Some(mut result) => {
                result.rows.sort();
                Table { definition, columns: result.columns, rows: Some(result.rows) }
            }
            None => Table { definition, columns: Vec::new(), rows: None },
        }
    }

    /// Runs a statement and compares.
    fn run(&mut self, statement: &[u8]) {
        let shown = statement.escape_ascii().to_string();
        let before = self.state();
        self.events();
        if let Err(error) = self.runs.query_bytes(statement) {
            self.faults.push(format!("{shown}\n    the server refuses it: {error}"));
            return;
        }
        let events = self.events();
        let after = self.state();
        let row_events = events.iter().any(|event| {
            matches!(
                event.header.event_type,
                EventType::WriteRows | EventType::UpdateRows | EventType::DeleteRows
            )
        });
        let mut ddl = Vec::new();
        for event in events.iter().filter(|event| event.header.event_type == EventType::Query) {
            if let Statement::Ddl(one) = self.classified(event) {
                ddl.push(one);
            }
        }
        self.checked += usize::from(!ddl.is_empty());
        for fault in faults(&ddl, &before, &after, row_events) {
            self.faults.push(format!("{shown}\n    {fault}\n    said {ddl:?}"));
        }
    }

    fn classified(&self, event: &Event) -> Statement {
        let query = Query::decode(&event.body).unwrap();
        let context = Context {
            default_schema: &query.schema,
            client_charset: query.status.charset.as_ref().map_or(255, |charset| charset.client),
            sql_mode: query.status.sql_mode.unwrap_or(0),
            lower_case_table_names: self.lower_case_table_names,
            thread_specific: event.header.has(flags::THREAD_SPECIFIC),
        };
        classify(&query.text, &context)
    }

    fn script(&mut self, script: &[&str]) {
        script.iter().for_each(|statement| self.run(statement.as_bytes()));
    }

    fn end(self, least: usize) {
        assert!(
            self.faults.is_empty(),
            "{} of {}:\n{}",
            self.faults.len(),
            self.checked,
            self.faults.join("\n")
        );
        assert!(self.checked >= least, "only {} statements were checked", self.checked);
    }
}

/// Where what was said of the statements is less than what they did.
fn faults(ddl: &[Ddl], before: &State, after: &State, row_events: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let every = ddl.iter().any(|ddl| ddl.tables == Tables::Every);
    if ddl.iter().any(|ddl| ddl.kind == DdlKind::Unknown) {
        faults.push("is unknown".to_owned());
    }
    let moved = moves(ddl, before);
    let expected: BTreeSet<&Name> = moved.keys().collect();
    let found: BTreeSet<&Name> = after.keys().collect();
    if !every && expected != found {
        let (missed, said): (Vec<_>, Vec<_>) =
            (found.difference(&expected).collect(), expected.difference(&found).collect());
        faults.push(format!("there are {missed:?} too, and there are not {said:?}"));
    }
    let named: BTreeSet<Name> = ddl.iter().filter(|ddl| !ddl.temporary).flat_map(names).collect();
    let rows_may_change = |names: [&Name; 2]| {
        row_events
            || ddl
                .iter()
                .filter(|ddl| !ddl.temporary && ddl.rows != RowsEffect::Unchanged)
                .any(|ddl| ddl.tables == Tables::Every || names_of(ddl).any(|name| names.contains(&&name)))
    };
    for (name, table) in after {
        let origin = if every {
            before.get_key_value(name).map(|(name, _)| name)
        } else {
            moved.get(name).and_then(Option::as_ref)
        };
        let Some((origin, old)) = origin.and_then(|origin| before.get_key_value(origin)) else {
            let has_rows = table.rows.as_ref().is_some_and(|rows| !rows.is_empty());
            if has_rows && !rows_may_change([name, name]) {
                faults.push(format!("{name:?} is new and has rows"));
            }
            continue;
        };
        if old.definition != table.definition && !every && !named.contains(name) {
            faults.push(format!("{name:?} was altered"));
        }
        if !rows_may_change([origin, name]) && !same_rows(old, table) {
            faults.push(format!("the rows of {name:?} changed"));
        }
    }
    faults
}

/// Whether the new table shows the old rows, its columns taken by name, or by place (renamed columns
/// are the same columns, also where they swap names).
fn same_rows(old: &Table, new: &Table) -> bool {
    let by_name: Option<Vec<usize>> =
        new.columns.iter().map(|column| old.columns.iter().position(|c| c == column)).collect();
    let by_place = (old.columns.len() == new.columns.len()).then(|| (0..old.columns.len()).collect());
    old.rows == new.rows
        || [by_name, by_place].into_iter().flatten().any(|places| projected(old, &places) == new.rows)
}

fn projected(old: &Table, places: &[usize]) -> Option<Vec<Vec<Option<Vec<u8>>>>> {
    let rows = old.rows.as_ref()?.iter();
    let mut rows: Vec<Vec<_>> =
        rows.map(|row| places.iter().map(|&place| row[place].clone()).collect()).collect();
    rows.sort();
    Some(rows)
}

/// Every name there is afterwards, by what was said, and the name its table had before.
fn moves(ddl: &[Ddl], before: &State) -> BTreeMap<Name, Option<Name>> {
    let mut there: BTreeMap<Name, Option<Name>> =
        before.keys().map(|name| (name.clone(), Some(name.clone()))).collect();
    for ddl in ddl.iter().filter(|ddl| !ddl.temporary) {
        let mut in_hand = None;
        if let Tables::Named(tables) = &ddl.tables {
            for table in tables {
                let name = (table.schema.clone(), table.table.clone());
                match table.role {
                    TableRole::Created => drop(there.entry(name).or_insert(None)),
                    TableRole::Dropped => drop(there.remove(&name)),
                    TableRole::RenamedFrom => in_hand = there.remove(&name),
                    TableRole::RenamedTo => drop(there.insert(name, in_hand.take().flatten())),
                    TableRole::Altered
                    | TableRole::Truncated
                    | TableRole::Exchanged
                    | TableRole::LikeSource => {}
                }
            }
        }
        if ddl.kind == DdlKind::DropDatabase {
            there.retain(|(schema, _), _| !ddl.schemas.contains(schema));
        }
    }
    there
}

fn names(ddl: &Ddl) -> Vec<Name> {
    names_of(ddl).collect()
}

fn names_of(ddl: &Ddl) -> impl Iterator<Item = Name> + '_ {
    let tables = match &ddl.tables {
        Tables::Named(tables) => tables.as_slice(),
        Tables::Every => &[],
    };
    tables.iter().map(|table| (table.schema.clone(), table.table.clone()))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(hex: &str) -> String {
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

#[test]
fn tables_are_made_moved_and_dropped() {
    let mut watch = Watch::start();
    watch.script(&[
        "CREATE DATABASE a",
        "create schema if not exists `b.c` default character set latin1",
        "USE a",
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10))",
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "create table if not exists t (a int)",
        "CREATE TABLE `b.c`.`a``b` (a INT, KEY (a)) ENGINE=InnoDB COMMENT='LIKE t'",
        "CREATE TABLE `b.c` . 1t (a INT)",
        "CREATE TABLE a.123 (a INT)",
        "CREATE TABLE 1ea(a INT)",
        "CREATE TABLE _$(a INT)",
        "CREATE TABLE tä (a INT)",
        "/* leading */ CREATE /* c */ TABLE -- x\n # y\n `select` (a INT DEFAULT (1), b INT AS (a + 1) STORED)",
        "/*!50000 CREATE TABLE `v` (a INT) */ /*!99999 ENGINE=NOSUCH */ /*!80000 COMMENT='START TRANSACTION' */",
        "CREATE TABLE p (a INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
        "CREATE TABLE me (a INT) ENGINE=MEMORY",
        "CREATE TABLE my (a INT) ENGINE 'MyISAM'",
        "INSERT INTO my VALUES (1)",
        "CREATE TABLE mg (a INT) ENGINE=MERGE UNION=(my) INSERT_METHOD=LAST",
        "CREATE TABLE l LIKE t",
        "CREATE TABLE IF NOT EXISTS `b.c`.l (LIKE t)",
        "CREATE TABLE s1 SELECT * FROM t",
        "CREATE TABLE s2 (PRIMARY KEY (id)) AS SELECT * FROM t WHERE 0",
        "CREATE TABLE s3 (SELECT 1 AS a)",
        "CREATE TABLE s4 (a INT) IGNORE AS (SELECT 1 AS a)",
        "CREATE TABLE s5 ENGINE=InnoDB (VALUES ROW(1,2))",
        "CREATE TABLE s6 WITH q AS (SELECT 1 z) SELECT z FROM q",
        "CREATE TABLE s7 TABLE t",
        "CREATE TEMPORARY TABLE tt (a INT)",
        "CREATE TABLE l2 LIKE tt",
        "DROP TEMPORARY TABLE tt",
        "CREATE VIEW w AS SELECT * FROM t",
        "CREATE OR REPLACE VIEW w AS SELECT 1 AS a",
        "CREATE DEFINER=CURRENT_USER SQL SECURITY INVOKER VIEW `b.c`.w2 AS SELECT * FROM a.t",
        "ALTER VIEW w AS SELECT 2 AS a",
        "RENAME TABLE w TO w3",
        "DROP VIEW w3, `b.c`.w2",
        "RENAME TABLE t TO t_old, l TO t",
        "RENAME TABLES t TO x, t_old TO t, x TO l",
        "RENAME TABLE `b.c`.l TO l9",
        "ALTER TABLE `b.c`.`1t` RENAME TO moved",
        "ALTER TABLE moved RENAME AS `b.c`.moved",
        "ALTER TABLE `b.c`.moved RENAME = moved2, ADD COLUMN n INT",
        "TRUNCATE s1",
        // A MERGE table shows the rows of others: those it would lose with them.
        "DROP TABLE mg",
        "TRUNCATE TABLE /* c */ a.my",
        "TRUNCATE me",
        "DROP TABLE IF EXISTS `s1`, a.s3 , `nosuch` CASCADE",
        "DROP TABLES s4, s5 RESTRICT",
        "DROP TABLE s7 -- end",
        "CREATE DATABASE z1",
        "CREATE TABLE z1.t (a INT) ENGINE=MyISAM",
        "CREATE TABLE z1.u (a INT)",
        "DROP DATABASE z1",
        "DROP SCHEMA IF EXISTS `b.c`",
    ]);
    watch.end(44);
}

#[test]
fn tables_are_altered() {
    let mut watch = Watch::start();
    let t = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10), n INT NULL, g POINT NOT NULL SRID 0, e ENUM('x','y'), CONSTRAINT c CHECK (id > 0))";
    let p = "CREATE TABLE p (a INT, b INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))";
    watch.script(&[
        "CREATE DATABASE a",
        "CREATE DATABASE b",
        "USE a",
        t,
        "INSERT INTO t VALUES (1, 'x', NULL, POINT(1,2), 'x'), (2, 'y', 1, POINT(3,4), 'y')",
        "CREATE TABLE u (id INT PRIMARY KEY, k INT)",
        "INSERT INTO u VALUES (1, 1)",
        "ALTER TABLE t",
        "ALTER TABLE t ADD INDEX (n)",
        "ALTER TABLE t ADD KEY k (n, v DESC) COMMENT 'a, b', ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE t ADD FULLTEXT INDEX f (v) WITH PARSER ngram",
        "ALTER TABLE t ADD SPATIAL KEY sp (g)",
        "ALTER TABLE t ADD UNIQUE (n)",
        "ALTER TABLE t ADD CONSTRAINT uq UNIQUE KEY (v)",
        "ALTER TABLE t ADD CONSTRAINT CHECK (id > -5) NOT ENFORCED, ADD CHECK (id < 100)",
        "ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (n) REFERENCES t (id) ON DELETE CASCADE, DROP CHECK c, ALGORITHM=COPY",
        "ALTER TABLE t DROP FOREIGN KEY fk, DROP CONSTRAINT uq, DROP KEY k, DROP INDEX f",
        "ALTER TABLE t ALTER n SET DEFAULT 5, ALTER COLUMN v SET DEFAULT 'a,b'",
        "ALTER TABLE t ALTER COLUMN v DROP DEFAULT, ALTER COLUMN n SET INVISIBLE",
        "ALTER TABLE t ALTER COLUMN n SET VISIBLE, ALTER INDEX sp INVISIBLE",
        "ALTER TABLE t RENAME COLUMN v TO vv, RENAME INDEX sp TO sq",
        "ALTER TABLE t RENAME COLUMN vv TO n, RENAME COLUMN n TO vv",
        "ALTER TABLE t MODIFY e ENUM('y','x')",
        "ALTER TABLE t CHANGE COLUMN e ee VARCHAR(3)",
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
        "ALTER TABLE t ADD COLUMN c1 INT DEFAULT 7 AFTER id",
        "ALTER TABLE t ADD c2 TIMESTAMP DEFAULT CURRENT_TIMESTAMP, ADD (c3 INT, c4 INT)",
        "ALTER TABLE t ADD `index` INT AS (id + 1) VIRTUAL",
        "ALTER TABLE t DROP COLUMN c1, DROP c2",
        "ALTER TABLE t ORDER BY ee, id DESC",
        "ALTER TABLE t FORCE",
        "ALTER TABLE t ENGINE=InnoDB",
        "ALTER TABLE u ENGINE = MyISAM, COMMENT 'x'",
        "ALTER TABLE t DISABLE KEYS, ENABLE KEYS",
        "ALTER TABLE t COMMENT='x' ENGINE=InnoDB ROW_FORMAT=DYNAMIC MAX_ROWS 5, ADD INDEX (c3)",
        "ALTER TABLE t AUTO_INCREMENT 5, STATS_PERSISTENT=1 STATS_AUTO_RECALC DEFAULT STATS_SAMPLE_PAGES 5",
        "ALTER TABLE t DEFAULT CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin",
        "ALTER TABLE t CHAR SET utf8mb4 CHECKSUM 1 DELAY_KEY_WRITE=0 PACK_KEYS DEFAULT AVG_ROW_LENGTH 100 MIN_ROWS 1",
        "ALTER TABLE t COMPRESSION='NONE', SECONDARY_ENGINE=NULL, AUTOEXTEND_SIZE 4M",
        "ALTER TABLE t TABLESPACE innodb_system",
        "ALTER TABLE t TABLESPACE innodb_file_per_table",
        "ALTER TABLE t SECONDARY_ENGINE_ATTRIBUTE '{}'",
        "ALTER TABLE t DROP PRIMARY KEY, ADD CONSTRAINT PRIMARY KEY (id)",
        "SET sql_mode=''",
        "CREATE TABLE nul (a INT)",
        "INSERT INTO nul VALUES (NULL), (1)",
        "ALTER TABLE nul ADD PRIMARY KEY (a)",
        "SET sql_mode=DEFAULT",
        "CREATE INDEX i USING BTREE ON t (ee DESC) ALGORITHM INPLACE LOCK NONE",
        "CREATE UNIQUE INDEX `on` ON a.t (id)",
        "CREATE FULLTEXT INDEX ff ON t (ee)",
        "DROP INDEX `on` ON t",
        "DROP INDEX i ON a.t ALGORITHM=INPLACE",
        "CREATE TABLE tr (a INT)",
        "CREATE TRIGGER tg BEFORE INSERT ON tr FOR EACH ROW SET NEW.a = 'drop table t'",
        "DROP TRIGGER tg",
        "ANALYZE TABLE t, u",
        "ANALYZE TABLE t UPDATE HISTOGRAM ON id WITH 8 BUCKETS",
        "OPTIMIZE TABLE t",
        "CREATE TABLE my (a INT) ENGINE=MyISAM",
        "REPAIR TABLE my QUICK",
        "FLUSH TABLES",
        p,
        "INSERT INTO p VALUES (1, 1), (11, 11)",
        "ALTER TABLE p ADD PARTITION (PARTITION p2 VALUES LESS THAN (30), PARTITION p3 VALUES LESS THAN (40))",
        "ALTER TABLE p REORGANIZE PARTITION p2, p3 INTO (PARTITION p2 VALUES LESS THAN (40))",
        "ALTER TABLE p ANALYZE PARTITION p0, p1",
        "ALTER TABLE p CHECK PARTITION ALL",
        "ALTER TABLE p OPTIMIZE PARTITION p0",
        "ALTER TABLE p REBUILD PARTITION p0, p1",
        "ALTER TABLE p REPAIR PARTITION p0",
        "CREATE TABLE x (a INT, b INT)",
        "INSERT INTO x VALUES (5, 5), (6, 6)",
        "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE x",
        "CREATE TABLE b.x LIKE x",
        "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE b.x WITHOUT VALIDATION",
        "ALTER TABLE p TRUNCATE PARTITION p1",
        "INSERT INTO p VALUES (11, 11)",
        "ALTER TABLE p DROP PARTITION p1, p2",
        "ALTER TABLE p REMOVE PARTITIONING",
        "ALTER TABLE p PARTITION BY HASH (a) PARTITIONS 2",
        "ALTER TABLE p ADD PARTITION PARTITIONS 2",
        "ALTER TABLE p COALESCE PARTITION 1",
        "ALTER TABLE p COMMENT='x' REMOVE PARTITIONING",
        "ALTER TABLE p ADD c INT DEFAULT 3 PARTITION BY KEY (a, b)",
        "ALTER TABLE x DISCARD TABLESPACE",
        "ALTER TABLE u WITHOUT VALIDATION, ADD w INT AS (k) VIRTUAL",
    ]);
    watch.end(75);
}

#[test]
fn what_touches_no_table() {
    let mut watch = Watch::start();
    watch.script(&[
        "CREATE DATABASE a",
        "USE a",
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1)",
        "ALTER DATABASE a CHARACTER SET utf8mb4",
        "ALTER SCHEMA DEFAULT COLLATE utf8mb4_bin",
        "CREATE PROCEDURE p() BEGIN DROP TABLE t; SELECT 'x;y'; END",
        "ALTER PROCEDURE p COMMENT 'x'",
        "DROP PROCEDURE p",
        "CREATE DEFINER='root'@'localhost' FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1",
        "ALTER FUNCTION f SQL SECURITY INVOKER",
        "DROP FUNCTION IF EXISTS f",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO DROP TABLE t",
        "ALTER EVENT e RENAME TO e2",
        "DROP EVENT e2",
        "CREATE USER u IDENTIFIED BY 'secret', u2",
        "ALTER USER u COMMENT 'x'",
        "RENAME USER u2 TO u3",
        "CREATE ROLE r",
        "GRANT SELECT, INSERT (a) ON a.t TO u",
        "GRANT r TO u",
        "SET DEFAULT ROLE r TO u",
        "SET PASSWORD FOR u = 'other'",
        "REVOKE SELECT ON a.t FROM u",
        "DROP ROLE r",
        "DROP USER u, u3",
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')",
        "ALTER SERVER s OPTIONS (USER 'u')",
        "DROP SERVER s",
        "CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd'",
        "ALTER TABLESPACE ts RENAME TO tt",
        "DROP TABLESPACE tt",
        "CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 990001 NAME 'x' DEFINITION 'GEOGCS[\"WGS 84\",DATUM[\"World Geodetic System 1984\",SPHEROID[\"WGS 84\",6378137,298.257223563,AUTHORITY[\"EPSG\",\"7030\"]],AUTHORITY[\"EPSG\",\"6326\"]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],UNIT[\"degree\",0.017453292519943278,AUTHORITY[\"EPSG\",\"9122\"]],AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST]]'",
        "DROP SPATIAL REFERENCE SYSTEM IF EXISTS 990001",
        "CREATE LIBRARY lib LANGUAGE JAVASCRIPT AS $$ export function f() { return 'it`s' } $$",
        "DROP LIBRARY lib",
        "CREATE TABLE k (id INT PRIMARY KEY)",
        "CREATE JSON RELATIONAL DUALITY VIEW dv AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM k",
        "FLUSH PRIVILEGES",
        "FLUSH TABLES t",
        "XA START 'x', 'b', 7",
        "XA END 'x', 'b', 7",
        "XA COMMIT 'x', 'b', 7 ONE PHASE",
    ]);
    watch.end(30);
}

#[test]
fn names_in_other_character_sets_and_modes() {
    let mut watch = Watch::start();
    watch.script(&["CREATE DATABASE a", "USE a", "SET NAMES gbk"]);
    let gbk: &[&[u8]] = &[
        b"CREATE TABLE `\xd5\\` (id INT)",
        b"CREATE TABLE `\x81`` (id INT) COMMENT '\x81\\'",
        b"CREATE TABLE \x81`b AS SELECT 1 a",
        b"CREATE TABLE `\xc1\xaa` (id INT) COMMENT '\xc1\xaa\xcd\xa8'",
        b"INSERT INTO `\xd5\\` VALUES (1)",
        b"ALTER TABLE `\xd5\\` COMMENT '\xd5\\', ADD n INT DEFAULT 5",
        b"RENAME TABLE `\x81`` TO `\x81`2`, `\xd5\\` TO `\x81``",
        b"TRUNCATE `\x81``",
        b"CREATE TEMPORARY TABLE tt (a INT)",
        b"CREATE TABLE `\xb1\xed` LIKE tt",
        b"DROP TEMPORARY TABLE tt",
        b"CREATE VIEW `\x81`v` AS SELECT '\x81`' a",
        b"DROP VIEW `\x81`v`",
        b"DROP TABLE `\x81``, \x81`b, `\x81`2`",
    ];
    gbk.iter().for_each(|statement| watch.run(statement));
    watch.script(&["SET NAMES sjis"]);
    watch.run(b"CREATE TABLE \x95\x5c2 (a INT)");
    watch.run(b"RENAME TABLE \x95\x5c2 TO `\x83\x60`");
    watch.script(&["SET NAMES big5"]);
    watch.run(b"CREATE TABLE `\xa5\x5c` (a INT)");
    watch.script(&["SET NAMES gb18030"]);
    watch.run(b"CREATE TABLE `\x81\x5c\x81\x30\x84\x36` (a INT)");
    watch.script(&["SET NAMES latin1"]);
    watch.run(b"CREATE TABLE `\xd5\\` (a INT)");
    watch.run(b"CREATE TABLE t\xe9 AS SELECT 1 a");
    watch.run(b"DROP TABLE t\xe9");
    watch.script(&[
        "SET NAMES utf8mb4, sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
        "CREATE TABLE \"c 2\" AS SELECT 1 a",
        "CREATE TABLE \"a\"\"b\" (a INT COMMENT '\\')",
        "ALTER TABLE \"a\"\"b\" COMMENT '\\', RENAME \"z\\\"",
        "DROP TABLE \"c 2\", \"z\\\"",
        // A temporary table of a name, and the table of that name under it.
        "SET sql_mode=DEFAULT",
        "CREATE TABLE hidden (a INT)",
        "INSERT INTO hidden VALUES (1)",
        "SET binlog_format=STATEMENT",
        "CREATE TEMPORARY TABLE hidden (a INT)",
        "TRUNCATE hidden",
        "ALTER TABLE hidden ADD COLUMN b INT",
        "CREATE INDEX i ON hidden (a)",
        "DROP TEMPORARY TABLE hidden",
        "TRUNCATE hidden",
    ]);
    watch.end(27);
}
