//! Generated columns that a server computes anew when it copies a table, in the session of the ALTER and without row
//! events: before each form that copies under any setting the mirror stops, if an expression may come to something else
//! there; every other form, and every other expression, is followed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};

use capstan::sqlite::{Mirror, MirrorOptions, Synchronous};
use capstan::{Code, Decision, Expected, Halt, Replica, Start, Stopped, Stored as _, Until};
use capstan_mysql::{Server, Session};
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::{assert_equal, differences, mirror_rows, source_rows};
use capstan_tests::workload::quick_limits;

struct Bench {
    server: Server,
    session: Session,
    folder: tempfile::TempDir,
    /// The mirror begins with an initial copy, not with the statements that made the tables.
    copied: bool,
    turn: usize,
}

impl Bench {
    fn new(copied: bool) -> Self {
        let server = Server::builder().start().expect("a server");
        server.sql("RESET BINARY LOGS AND GTIDS; CREATE DATABASE d").unwrap();
        let mut session = server.connect().unwrap();
        session.sql("USE d").unwrap();
        Self { server, session, folder: tempfile::tempdir().unwrap(), copied, turn: 0 }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("{}.db", if self.copied { self.turn } else { 0 }))
    }

    fn mirror(&self) -> Mirror {
        let mut options = MirrorOptions::default();
        options.synchronous = Synchronous::Off;
        Mirror::open(self.path(), options).unwrap()
    }

    fn sync(&self) -> Result<Stopped, Halt> {
        let mut mirror = self.mirror();
        let builder = Replica::builder(url_at(self.server.port()).parse().unwrap())
            .limits(quick_limits())
            .until(Until::Now);
        let builder = match (mirror.stored().unwrap(), self.copied) {
            (Some(_), _) => builder,
            (None, false) => builder.start(Start::Earliest).whole_history(true),
            (None, true) => builder.start(Start::Stored).snapshot(["d.*"]),
        };
        Follower::blocking(builder, mirror).end().0
    }

    fn step_over(&self) {
        let mut mirror = self.mirror();
        let stored = mirror.stored().unwrap().unwrap();
        let mut position = stored.clone();
        position.advance(&capstan_core::deliver::Advance {
            gtids: self.server.gtid_executed().unwrap().trim().parse().unwrap(),
            ..Default::default()
        });
        let decision = Decision { kind: "skip".into(), subject: "all".into(), reason: "a test".into() };
        mirror.decide(&Expected::new(Some(stored)), &position, &decision).unwrap();
    }

    fn run(&mut self, sql: &str) {
        self.session.sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// What a mirror of this table makes of a change that the table's rows survive: whether it followed it. Either way
    /// it holds what it has to hold.
    fn follows(&mut self, table: &str, change: &str) -> bool {
        self.turn += 1;
        self.run(table);
        self.sync().unwrap_or_else(|halt| panic!("before {change}: {halt}"));
        let before = source_rows(&self.server, "d");
        self.run(change);
        let followed = match self.sync() {
            Ok(_) => {
                assert_equal(&self.server, "d", &self.path());
                true
            }
            Err(halt) => {
                assert_eq!(halt.code, Code::SchemaChangeNeedsCopy, "{change}: {halt}");
                let table = halt.place.and_then(|place| place.table).map(|(_, table)| table);
                assert_eq!(table.as_deref(), Some("t"), "{change}");
                let found = differences(&before, &mirror_rows(Path::new(&self.path())));
                assert!(found.is_empty(), "{change}: {}", found.join("; "));
                self.step_over();
                false
            }
        };
        self.run(
            "SET SESSION old_alter_table = DEFAULT, lc_time_names = DEFAULT; DROP TABLE IF EXISTS t, t2",
        );
        self.sync().unwrap_or_else(|halt| panic!("after {change}: {halt}"));
        followed
    }
}

/// Forms that a server carries out by copying, be it only under `old_alter_table`.
const COPYING: &[&str] = &[
    "ALTER TABLE t ADD z INT",
    "ALTER TABLE t ADD z INT, ALGORITHM=COPY",
    "ALTER TABLE t ADD z INT, ALGORITHM=DEFAULT, LOCK=SHARED",
    "ALTER TABLE t ADD z INT, LOCK=NONE, LOCK=DEFAULT",
    "ALTER TABLE t ALGORITHM=INPLACE, ADD z INT, ALGORITHM=COPY",
    "ALTER TABLE t DROP m",
    "ALTER TABLE t RENAME COLUMN m TO mm",
    "ALTER TABLE t ALTER m SET INVISIBLE",
    "ALTER TABLE t ADD INDEX i (m)",
    "ALTER TABLE t DROP INDEX k",
    "ALTER TABLE t RENAME INDEX k TO l",
    "ALTER TABLE t ALTER INDEX k INVISIBLE",
    "ALTER TABLE t DROP PRIMARY KEY",
    "ALTER TABLE t ADD CHECK (m > 0)",
    "CREATE INDEX i ON t (m)",
    "CREATE INDEX i ON t (m) COMMENT 'ALGORITHM=INPLACE' LOCK=SHARED",
    "CREATE FULLTEXT INDEX i ON t (v)",
    "DROP INDEX k ON t",
    "DROP INDEX `PRIMARY` ON t",
    "ALTER TABLE t ENGINE=InnoDB",
    "ALTER TABLE t FORCE",
    "ALTER TABLE t ROW_FORMAT=DYNAMIC",
    "ALTER TABLE t AUTO_INCREMENT 9",
    "ALTER TABLE t COMMENT 'x'",
    "ALTER TABLE t ALGORITHM=COPY",
    "ALTER TABLE t DEFAULT CHARACTER SET latin1",
    "ALTER TABLE t ORDER BY m",
    "ALTER TABLE t RENAME t2, ALGORITHM=COPY",
    "ALTER TABLE t RENAME t2, ADD z INT",
    "ALTER TABLE t ENABLE KEYS, ALGORITHM=COPY",
    "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 2",
    "OPTIMIZE TABLE t",
];

const COPYING_PARTITIONED: &[&str] = &[
    "ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))",
    "ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION a VALUES LESS THAN (2), PARTITION b VALUES LESS THAN (10))",
    "ALTER TABLE t REBUILD PARTITION ALL",
    "ALTER TABLE t OPTIMIZE PARTITION p0",
    "ALTER TABLE t REMOVE PARTITIONING",
];

/// Forms that never copy.
const NOT_COPYING: &[&str] = &[
    "ALTER TABLE t",
    "ALTER TABLE t ADD z INT, ALGORITHM=INSTANT",
    "ALTER TABLE t ADD z INT FIRST, ALGORITHM=INPLACE, LOCK=SHARED",
    "ALTER TABLE t ALGORITHM=COPY, ADD INDEX (m), ALGORITHM=INPLACE",
    "ALTER TABLE t FORCE, ALGORITHM=INPLACE",
    "ALTER TABLE t DROP m, ALGORITHM=INPLACE",
    "ALTER TABLE t RENAME t2",
    "ALTER TABLE t DISABLE KEYS",
    "CREATE INDEX i ON t (m) ALGORITHM=INPLACE",
    "CREATE INDEX i ON t (m) LOCK=DEFAULT ALGORITHM INPLACE",
    "DROP INDEX k ON t ALGORITHM=INPLACE",
    "RENAME TABLE t TO t2",
    "ANALYZE TABLE t",
    "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
    "TRUNCATE t",
    "DROP TABLE t",
];

const NOT_COPYING_UNLOCKED: &[&str] =
    &["ALTER TABLE t ADD z INT, LOCK=NONE", "ALTER TABLE t FORCE, LOCK=NONE", "DROP INDEX k ON t LOCK=NONE"];

const NOT_COPYING_PARTITIONED: &[&str] = &[
    "ALTER TABLE t ANALYZE PARTITION p0",
    "ALTER TABLE t CHECK PARTITION p0",
    "ALTER TABLE t ALGORITHM=INPLACE, REBUILD PARTITION ALL",
];

/// A table whose STORED column is the name of a day, or a sum.
fn table(expression: &str, tail: &str) -> String {
    format!(
        "SET SESSION lc_time_names = 'en_US', old_alter_table = OFF;
         CREATE TABLE t (id INT PRIMARY KEY, da DATE, m INT, v VARCHAR(20), n VARCHAR(20) AS ({expression}) STORED, KEY k (m)) {tail};
         INSERT INTO t (id, da, m, v) VALUES (1, '2024-01-01', 1, 'x'), (2, '2024-01-02', 2, 'y')"
    )
}

/// Red where what may copy a table is taken for what does nothing: `n` stays what it was. Each form that is halted
/// before is seen to change `n` under some setting, and no other.
#[test]
fn what_may_copy_a_table_is_not_followed_where_a_copy_computes_something_else() {
    let mut bench = Bench::new(false);
    let range =
        "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))";
    let mut wrong = Vec::new();
    let lists = [
        (COPYING, "", true),
        (COPYING_PARTITIONED, range, true),
        (NOT_COPYING, "", false),
        (NOT_COPYING_UNLOCKED, "", false),
        (NOT_COPYING_PARTITIONED, range, false),
    ];
    for (forms, tail, copies) in lists {
        for form in forms {
            // A copy is not capable of LOCK=NONE.
            let old = if forms == NOT_COPYING_UNLOCKED { "OFF" } else { "ON" };
            let change = format!("SET SESSION lc_time_names = 'de_DE', old_alter_table = {old}; {form}");
            bench.run("SET SESSION sql_log_bin = OFF");
            bench.run(&table("DAYNAME(da)", tail));
            bench.run(&change);
            let named = "SELECT COUNT(*) FROM {t} WHERE n = 'Montag'";
            let mut renamed =
                ["t", "t2"].iter().filter_map(|name| bench.session.sql(&named.replace("{t}", name)).ok());
            let changed = renamed.any(|count| count.trim() == "1");
            bench.run("DROP TABLE IF EXISTS t, t2; SET SESSION sql_log_bin = ON");
            if changed != copies {
                wrong.push(format!("{form}: the server copies: {changed}"));
            }
            if bench.follows(&table("DAYNAME(da)", tail), &change) == copies {
                wrong.push(format!("{form}: followed: {copies}"));
            }
            if !bench.follows(&table("id + 1", tail), &change) {
                wrong.push(format!("{form}: halted, though nothing is computed by the session"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Columns that expressions are made of, with what bites.
const COLUMNS: &str = "id INT PRIMARY KEY, i INT, bu BIGINT UNSIGNED, de DECIMAL(20,6), f FLOAT, o DOUBLE, v VARCHAR(40),
     l VARCHAR(40) CHARACTER SET latin1, t TEXT, bi BINARY(4), vb VARBINARY(9), bl BLOB, j JSON, da DATE, dt DATETIME(3),
     ts TIMESTAMP(3) NULL, c CHAR(8), ti TIME, e ENUM('x', 'y')";
const VALUES: &str = r#"INSERT INTO t (id, i, bu, de, f, o, v, l, t, bi, vb, bl, j, da, dt, ts, c, ti, e) VALUES
     (1, 7, 18446744073709551615, 1.234567, 0.1, 1e300, 'straße X', 'é\\', REPEAT('ü', 800), 'a', X'00ff', 'b',
      '{"a": "é", "n": 5, "o": [1, 2.50]}', '2024-12-30', '2024-12-30 23:59:59.999', '2024-12-30 23:59:59.999', 'ab', '10:11:12', 'y'),
     (2, -7, 0, -0.5, -3e38, -0e0, '', '', '', '', '', '', '{"a": "x\\"y", "n": 0}', '0000-00-00', '0000-00-00 00:00:00', 0, '', '-10:00:00', 'x'),
     (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
     (4, 0, 1, 99, 1e-40, 0.1, 'İıẞ', 'ÿ', 'a', 'abcd', 'abc', X'ff', '[1]', '2024-02-29', '2024-03-10 01:02:03.5', '1970-01-01 00:00:01', ' x', '0:0:0', NULL)"#;

/// What comes to the same in any session.
const SAME: &[(&str, &str)] = &[
    ("BIGINT", "id + i * 2"),
    ("BIGINT", "(id) + (3 * (i))"),
    ("DECIMAL(40,10)", "de * i + 1.5"),
    ("DOUBLE", "f * 2 + o"),
    ("FLOAT", "f"),
    ("VARCHAR(99)", "CONCAT(v, '-', l)"),
    ("VARCHAR(99)", "CONCAT(i, ':', v, de)"),
    ("VARCHAR(99)", "CONCAT(UPPER(v), LOWER(l), '!')"),
    ("VARBINARY(40)", "CONCAT(vb, bi)"),
    ("VARCHAR(99)", "UCASE(v)"),
    ("VARCHAR(99)", "LCASE(l)"),
    ("TEXT", "JSON_UNQUOTE(JSON_EXTRACT(j, '$.a'))"),
    ("JSON", "j->'$.o'"),
    ("INT", "j->'$.n'"),
    ("VARCHAR(99)", "j ->> '$.a'"),
    ("CHAR(64)", "SHA2(t, 256)"),
    ("BIGINT UNSIGNED", "CRC32(vb)"),
    ("INT", "CHAR_LENGTH(v) + CHAR_LENGTH(i)"),
    ("VARCHAR(9)", "LEFT(v, 2)"),
    ("VARCHAR(9)", "RIGHT(i, 1)"),
    ("TEXT", "SUBSTRING(t, 2, 30)"),
    ("VARCHAR(99)", "COALESCE(v, l, 'none')"),
    ("INT", "IFNULL(i, 0)"),
    ("INT", "ABS(i)"),
];

/// What comes to something else, and where.
const OTHER: &[(&str, &str, &str)] = &[
    ("VARCHAR(20)", "DAYNAME(da)", "lc_time_names = 'de_DE'"),
    ("VARCHAR(20)", "MONTHNAME(da)", "lc_time_names = 'de_DE'"),
    ("VARCHAR(20)", "DATE_FORMAT(da, '%a')", "lc_time_names = 'de_DE'"),
    ("VARCHAR(40)", "CONCAT(ts)", "time_zone = '+09:00'"),
    ("DATETIME", "ts", "time_zone = '+09:00'"),
    ("BIGINT", "ts + 0", "time_zone = '+09:00'"),
    ("INT", "HOUR(ts)", "time_zone = '+09:00'"),
    ("VARCHAR(40)", "CONCAT(c, '|')", "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'"),
    ("INT", "CHAR_LENGTH(c)", "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'"),
    (
        "VARBINARY(64)",
        "AES_ENCRYPT(v, 'k', 'a long enough initial vector')",
        "block_encryption_mode = 'aes-256-cbc'",
    ),
    ("DATETIME", "dt", "sql_mode = 'TIME_TRUNCATE_FRACTIONAL'"),
    ("TEXT", "CONCAT(t, t)", "max_allowed_packet"),
    ("TEXT", "CONCAT(v, t)", "max_allowed_packet"),
    // Of these it is not known.
    ("INT", "YEAR(dt)", ""),
    ("DATE", "DATE(dt)", ""),
    ("DECIMAL(30,15)", "i / 7", ""),
    ("INT", "WEEK(da)", ""),
    ("CHAR(64)", "SHA2(i, 256)", ""),
    ("INT", "LENGTH(v)", ""),
    ("BIGINT", "bu - 0", ""),
    ("INT", "v = 'STRASSE x'", ""),
    ("INT", "i > 3", ""),
    ("VARCHAR(9)", "IF(v = 'a', 'b', e)", ""),
    ("DATE", "da", ""),
    ("INT", "YEAR(v)", ""),
    ("VARCHAR(9)", "e", ""),
    ("VARCHAR(9)", "CONCAT('ü')", ""),
    ("INT", "i DIV 2", ""),
    ("INT", "-i", ""),
];

const SESSIONS: &[&str] = &[
    "lc_time_names = 'de_DE'",
    "div_precision_increment = 9",
    "time_zone = '+09:00'",
    "default_week_format = 3",
    "block_encryption_mode = 'aes-256-cbc'",
    "collation_connection = 'utf16_bin'",
    "collation_connection = 'utf8mb4_bin'",
    "collation_connection = 'utf8mb4_de_pb_0900_as_cs'",
    "collation_connection = 'latin1_german2_ci'",
    "default_collation_for_utf8mb4 = 'utf8mb4_general_ci'",
    "NAMES latin1",
    "NAMES gbk",
    "group_concat_max_len = 4, end_markers_in_json = ON, timestamp = 1, old_alter_table = ON",
    "optimizer_switch = 'derived_merge=off,condition_fanout_filter=off'",
    "sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
    "sql_mode = 'NO_UNSIGNED_SUBTRACTION,ERROR_FOR_DIVISION_BY_ZERO,HIGH_NOT_PRECEDENCE'",
    "sql_mode = 'TIME_TRUNCATE_FRACTIONAL'",
    "sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'",
    "sql_mode = 'ALLOW_INVALID_DATES'",
    "sql_mode = 'NO_ZERO_DATE,NO_ZERO_IN_DATE'",
    "sql_mode = 'STRICT_ALL_TABLES'",
    "max_allowed_packet",
];

/// A session with that setting in the database.
fn session(server: &Server, setting: &str) -> Session {
    let packet = setting == "max_allowed_packet";
    if packet {
        server.sql("SET GLOBAL max_allowed_packet = 1024").unwrap();
    }
    let mut session = server.connect().unwrap();
    if packet {
        server.sql("SET GLOBAL max_allowed_packet = DEFAULT").unwrap();
    }
    session.sql("USE d; SET SESSION sql_mode = ''").unwrap();
    if let Some(names) = setting.strip_prefix("NAMES") {
        session.sql(&format!("SET NAMES {names}")).unwrap();
    } else if !packet {
        session.sql(&format!("SET SESSION {}", setting.replace(", ", ", SESSION "))).unwrap();
    }
    session
}

/// Red with `CONCAT` unbounded, and with TIMESTAMP or CHAR taken for plain; of a copied table, where it is not asked what a
/// column is computed from.
#[test]
fn an_expression_is_trusted_where_it_comes_to_the_same_in_every_session() {
    for copied in [false, true] {
        let mut bench = Bench::new(copied);
        let columns: Vec<String> = SAME
            .iter()
            .enumerate()
            .map(|(at, (into, expression))| format!("x{at} {into} AS ({expression}) STORED"))
            .collect();
        let table = format!(
            "SET SESSION sql_mode = ''; CREATE TABLE t ({COLUMNS}, {}, y BIGINT AS (x0 + 1) STORED, w INT AS (i + 1) VIRTUAL);
             {VALUES}",
            columns.join(", ")
        );
        bench.run(&table);
        bench.sync().unwrap();
        let before = source_rows(&bench.server, "d");
        for setting in SESSIONS {
            session(&bench.server, setting)
                .sql("ALTER TABLE t FORCE, ALGORITHM=COPY")
                .unwrap_or_else(|error| panic!("{setting}: {error}"));
            let found = differences(&before, &source_rows(&bench.server, "d"));
            assert!(found.is_empty(), "{setting}: {}", found.join("; "));
        }
        bench.sync().unwrap_or_else(|halt| panic!("{halt}"));
        assert_equal(&bench.server, "d", &bench.path());
        bench.run("DROP TABLE t");
        bench.sync().unwrap();
        let mut wrong = Vec::new();
        for (into, expression, setting) in OTHER {
            let table = format!(
                "SET SESSION sql_mode = ''; CREATE TABLE t ({COLUMNS}, x {into} AS ({expression}) STORED); {VALUES}"
            );
            if !setting.is_empty() && !copied {
                bench.run(&format!("SET SESSION sql_log_bin = OFF; {table}"));
                let rows = "SELECT HEX(CAST(x AS CHAR)) FROM t ORDER BY id";
                let before = bench.session.sql(rows).unwrap();
                session(&bench.server, setting)
                    .sql("SET SESSION sql_log_bin = OFF; ALTER TABLE t FORCE, ALGORITHM=COPY")
                    .unwrap();
                if bench.session.sql(rows).unwrap() == before {
                    wrong.push(format!("{expression}: the same under {setting}"));
                }
                bench.run("DROP TABLE t; SET SESSION sql_log_bin = ON");
            }
            if bench.follows(&table, "ALTER TABLE t FORCE, ALGORITHM=COPY") {
                wrong.push(format!("{expression}: followed"));
            }
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }
}

/// A column without a character set of its own becomes the table's, which no statement and no event names before the next table
/// map. Red where that may be any: the row keeps what it was.
#[test]
fn text_that_becomes_other_text_is_told_by_the_next_table_map() {
    let mut bench = Bench::new(false);
    for (of, now, text, follows) in [
        ("utf8mb4", "cp932", "\u{6661}", false),
        ("latin1", "utf8mb4", "\u{fc}", true),
        ("utf8mb4", "utf8mb4", "\u{6661}", true),
    ] {
        bench.run(&format!(
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET {of}) DEFAULT CHARSET {now};
             INSERT INTO t VALUES (1, '{text}')"
        ));
        bench.sync().unwrap();
        bench.run("ALTER TABLE t MODIFY v VARCHAR(30); INSERT INTO t VALUES (2, 'a')");
        let held = bench.session.sql("SELECT v FROM t WHERE id = 1").unwrap();
        assert_eq!(held.trim() == text, follows, "the server has {held}");
        match bench.sync() {
            Ok(_) => assert_equal(&bench.server, "d", &bench.path()),
            Err(halt) => {
                assert_eq!((halt.code, follows), (Code::SchemaChangeNeedsCopy, false), "{of}, {now}: {halt}");
                bench.step_over();
            }
        }
        bench.run("DROP TABLE t");
        bench.sync().unwrap();
    }
}

/// Dates that are none, what copies them, and whether they are then others.
const DATES: &[(&str, &str, bool)] = &[
    ("2024-00-10", "", false),
    ("2024-00-10", "NO_ZERO_IN_DATE", true),
    ("2024-01-00", "NO_ZERO_IN_DATE,ALLOW_INVALID_DATES", true),
    ("2024-02-31", "", true),
    ("2023-02-29", "NO_ZERO_DATE", true),
    ("0000-02-29", "", true),
    ("2024-02-31", "ALLOW_INVALID_DATES", false),
    ("0000-00-00", "NO_ZERO_DATE,NO_ZERO_IN_DATE", false),
    ("0000-00-00 00:00:00.1", "", false),
    ("0000-00-00 00:00:00.1", "NO_ZERO_DATE", true),
    ("0000-01-00 00:00:00", "NO_ZERO_IN_DATE", true),
    ("0000-01-01", "NO_ZERO_DATE,NO_ZERO_IN_DATE", false),
    ("2024-02-29", "NO_ZERO_DATE,NO_ZERO_IN_DATE", false),
    ("2000-02-29", "", false),
    ("9999-12-31", "NO_ZERO_DATE,NO_ZERO_IN_DATE", false),
];

/// Red without the look for them: the mirror keeps what has become a zero date.
#[test]
fn a_date_that_is_none_is_lost_in_a_copy() {
    let mut bench = Bench::new(false);
    let mut wrong = Vec::new();
    for (date, mode, changes) in DATES {
        let date_time = match date {
            &"0000-00-00" => format!("NULL, '{date} 00:00:00'"),
            _ if date.contains(' ') => format!("NULL, '{date}'"),
            _ => format!("NULL, '{date} 01:02:03.5'"),
        };
        let only_date = if date.contains(' ') { "NULL, NULL".to_owned() } else { format!("'{date}', NULL") };
        for values in [only_date, date_time] {
            let changes = *changes && values != "NULL, NULL";
            let table = format!(
                "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'; CREATE TABLE t (id INT PRIMARY KEY, da DATE, dt DATETIME(1));
                 INSERT INTO t VALUES (1, {values})"
            );
            let copy = format!("SET SESSION sql_mode = '{mode}'; ALTER TABLE t FORCE, ALGORITHM=COPY");
            bench.run(&format!("SET SESSION sql_log_bin = OFF; {table}"));
            let shown = "SELECT CONCAT_WS(',', da, dt) FROM t";
            let before = bench.session.sql(shown).unwrap();
            bench.run(&copy);
            if (bench.session.sql(shown).unwrap() != before) != changes {
                wrong.push(format!("{values} under {mode}: the server changes it: {}", !changes));
            }
            bench.run("DROP TABLE t; SET SESSION sql_log_bin = ON");
            if bench.follows(&table, &copy) == changes {
                wrong.push(format!("{values} under {mode}: followed: {changes}"));
            }
            // Where it is not copied it stays what it is.
            let in_place = format!("SET SESSION sql_mode = '{mode}'; ALTER TABLE t FORCE, ALGORITHM=INPLACE");
            if !bench.follows(&table, &in_place) {
                wrong.push(format!("{values} under {mode}: halted in place"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
