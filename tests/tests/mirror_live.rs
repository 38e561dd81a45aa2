//! The mirror against a real server: after each script, schema change and kill it holds what `SELECT` gives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::Path;

use capstan::sqlite::{Mirror, MirrorOptions, Synchronous};
use capstan::{Builder, Code, Decision, Expected, Halt, Replica, Start, Stopped, Stored as _, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::{assert_equal, differences, mirror_rows, source_rows};
use capstan_tests::workload::quick_limits;

fn server(options: &[&str]) -> Server {
    let server = Server::builder().options(options.to_vec()).start().expect("a server");
    server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    server
}

fn mirror(path: &Path) -> Mirror {
    let mut options = MirrorOptions::default();
    options.synchronous = Synchronous::Off;
    Mirror::open(path, options).unwrap()
}

fn replica(server: &Server) -> Builder {
    Replica::builder(url_at(server.port()).parse().unwrap()).limits(quick_limits()).until(Until::Now)
}

/// Brings the mirror to where the server is.
fn sync_with(builder: Builder, path: &Path) -> Result<Stopped, Halt> {
    let mut mirror = mirror(path);
    let builder = match mirror.stored().unwrap() {
        Some(_) => builder,
        None => builder.start(Start::Earliest).whole_history(true),
    };
    Follower::blocking(builder, mirror).end().0
}

fn sync(server: &Server, path: &Path) -> Result<Stopped, Halt> {
    sync_with(replica(server), path)
}

/// Steps over everything, as a person would by hand.
fn step_over(server: &Server, path: &Path) {
    let mut mirror = mirror(path);
    let stored = mirror.stored().unwrap().unwrap();
    let mut position = stored.clone();
    position.advance(&capstan_core::deliver::Advance {
        gtids: server.gtid_executed().unwrap().trim().parse().unwrap(),
        ..Default::default()
    });
    let decision = Decision { kind: "skip".into(), subject: "all".into(), reason: "a test".into() };
    mirror.decide(&Expected::new(Some(stored)), &position, &decision).unwrap();
}

/// Scripts whose groups a stream does not take (yet), and with what it halts.
const HALTING: [(&str, &[Code]); 5] = [
    ("BL-11", &[Code::PartialRowImage]),
    ("BL-13", &[Code::PartialRowImage]),
    ("BL-21", &[Code::PartialRowImage]),
    ("BL-25", &[Code::XaTransaction]),
    ("BL-29", &[Code::StatementLoggedChange]),
];

#[test]
fn every_script_of_the_cases_leaves_the_same_tables() {
    let server = server(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/cases");
    let mut names: Vec<_> = fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    names.sort();
    assert!(names.len() > 15, "{names:?}");
    for script in names {
        let name = script.file_stem().unwrap().to_str().unwrap().to_owned();
        let database = format!("case_{}", name.replace('-', "_").to_lowercase());
        let text = fs::read_to_string(&script).unwrap();
        // What is before a session makes its own kind of log is a case of its own.
        let whole = text.split("SET SESSION binlog_row_image=MINIMAL").next().unwrap();
        for (database, text) in [(format!("{database}_begin"), whole), (database, text.as_str())] {
            let mut session = server.connect().unwrap();
            session.sql(&format!("CREATE DATABASE {database}; USE {database}")).unwrap();
            for statement in text.split(";\n") {
                // Some are there to be refused.
                let _ = session.sql(statement);
            }
            match (sync(&server, &path), HALTING.iter().find(|(halting, _)| *halting == name)) {
                (Ok(_), _) => assert_equal(&server, &database, &path),
                (Err(halt), Some((_, codes))) if codes.contains(&halt.code) => {
                    step_over(&server, &path);
                }
                (Err(halt), _) => panic!("{name}: {halt}"),
            }
            // A halt leaves a database half followed: it is of no use to those after it.
            server.sql(&format!("DROP DATABASE {database}")).unwrap();
            sync(&server, &path).unwrap_or_else(|halt| panic!("{name}, dropped: {halt}"));
        }
    }
    assert!(mirror_rows(&path).is_empty(), "every database is dropped");
}

/// A table of every type but those that rows of every kind need, with rows.
const ROWS: &str =
    "(id INT NOT NULL, a VARCHAR(10), n INT UNSIGNED NOT NULL, d DECIMAL(5,2), e ENUM('x','y'),
     ts DATETIME, f FLOAT, b VARBINARY(4), s SET('p','q'), ti TIME, k SMALLINT, t TINYTEXT, l VARCHAR(5) CHARACTER SET latin1, c CHAR(3))";
const VALUES: &str = "(0, 'one', 4294967295, -1.5, 'x', '2024-02-29 12:00:00', 0.1, X'00ff', 'p,q', '-10:00:00', -1, 't', 'ü', 'c'),
     (2, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
     (3, 'é ', 7, 0, 'y', '0000-00-00 00:00:00', -3.4e38, X'', '', '838:59:59', 32767, '', '', '')";

/// Clauses that are followed, over tables with and without a key.
const FOLLOWED: &[&str] = &[
    "ADD COLUMN z INT",
    "ADD z INT NULL FIRST",
    "ADD z INT AFTER a, ADD COLUMN y INT AFTER z",
    "ADD (z INT, y TEXT, x JSON, w POINT, v VECTOR(3), u GEOMETRY SRID 4326, r TIMESTAMP NULL, q MEDIUMBLOB)",
    "ADD z INT NOT NULL DEFAULT -7",
    "ADD z INT NOT NULL DEFAULT '7' COMMENT 'a, b'",
    "ADD z TINYINT DEFAULT 127, ADD y SMALLINT UNSIGNED DEFAULT 65535, ADD x MEDIUMINT DEFAULT -8388608",
    "ADD z BIGINT UNSIGNED DEFAULT 18446744073709551615, ADD y BIGINT DEFAULT -9223372036854775808",
    "ADD z BOOL DEFAULT TRUE, ADD y BOOLEAN NOT NULL DEFAULT false",
    "ADD z DECIMAL(5,2) DEFAULT 1.5, ADD y DECIMAL(5,2) DEFAULT '-0.00', ADD x DECIMAL(5,2) DEFAULT -.5",
    "ADD z DECIMAL(30,10) DEFAULT 12345678901234567890.1, ADD y DECIMAL DEFAULT 12",
    "ADD z DOUBLE DEFAULT 0.1, ADD y FLOAT DEFAULT 0.1, ADD x DOUBLE DEFAULT -12345.678901234567",
    "ADD z FLOAT DEFAULT 16777217, ADD y FLOAT UNSIGNED DEFAULT 3.4028234",
    "ADD z FLOAT(7,2), ADD y DOUBLE(7,2)",
    "ADD z BIT(3) DEFAULT b'101', ADD y BIT(64) DEFAULT b'1000000000000000000000000000000000000000000000000000000000000001', ADD x BIT",
    "ADD z YEAR DEFAULT 2024, ADD y YEAR DEFAULT '2155'",
    "ADD z DATE DEFAULT '2024-02-29', ADD y DATE DEFAULT '0000-00-00'",
    "ADD z DATETIME(3) DEFAULT '2024-02-29 23:59:59.5', ADD y DATETIME DEFAULT '1000-01-01 00:00:00'",
    "ADD z TIME(2) DEFAULT '100:00:00', ADD y TIME DEFAULT '00:00:01'",
    "ADD z CHAR(5) DEFAULT 'ab  ', ADD y VARCHAR(5) DEFAULT 'ab  ', ADD x VARCHAR(5) NOT NULL DEFAULT ''",
    "ADD z VARCHAR(9) DEFAULT 'it''s', ADD y VARCHAR(9) DEFAULT 'a\\tb\\\\', ADD x VARCHAR(9) DEFAULT \"q\\%\"",
    "ADD z VARCHAR(5) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'a', ADD y VARCHAR(5) CHARSET utf16 DEFAULT 'b'",
    "ADD z BINARY(3) DEFAULT 'a', ADD y VARBINARY(3) DEFAULT X'00ff', ADD x VARBINARY(3) DEFAULT 0xf",
    "ADD z ENUM('x','y') DEFAULT 'y', ADD y SET('x','y','z') NOT NULL DEFAULT 'x,z', ADD x SET('x') DEFAULT ''",
    "ADD z INT UNIQUE KEY, ADD y INT INVISIBLE DEFAULT 3, ADD x INT CHECK (x > 0) NOT ENFORCED",
    "ADD z DATETIME NULL ON UPDATE CURRENT_TIMESTAMP",
    "ADD z INT DEFAULT 5, ADD INDEX (z), ALGORITHM=COPY, LOCK=SHARED",
    "ADD z TEXT DEFAULT ('abc'), ADD y TEXT NOT NULL DEFAULT (''), ADD x BLOB DEFAULT (X'00ff'), ADD w JSON DEFAULT ('{}')",
    "ADD z INT DEFAULT (7), ADD y VARCHAR(3) DEFAULT (NULL), ADD x DECIMAL(5,2) NOT NULL DEFAULT (1.5)",
    "ADD z TIMESTAMP(1) NULL DEFAULT '2024-01-01 00:00:00.5+00:00', ADD y TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'",
    "DROP a",
    "DROP COLUMN a, DROP COLUMN b, ADD COLUMN a INT",
    "RENAME COLUMN a TO z",
    "RENAME COLUMN a TO c, RENAME COLUMN c TO a",
    "RENAME COLUMN id TO nr",
    "CHANGE id nr BIGINT NOT NULL FIRST",
    "CHANGE a z VARCHAR(20) AFTER d, ADD y INT AFTER z",
    "MODIFY id BIGINT NOT NULL",
    "MODIFY A VARCHAR(20)",
    "MODIFY n BIGINT UNSIGNED NOT NULL",
    "MODIFY n BIGINT NOT NULL",
    "MODIFY a VARCHAR(20)",
    "MODIFY a VARCHAR(20) COLLATE utf8mb4_bin",
    "MODIFY c CHAR(9)",
    // It takes the table's character set.
    "MODIFY l VARCHAR(9)",
    "CHANGE l m VARCHAR(5) FIRST",
    "MODIFY d DECIMAL(9,4)",
    "MODIFY d DECIMAL(9,2)",
    "MODIFY e ENUM('x','y','z')",
    "MODIFY s SET('p','q','r')",
    "MODIFY ts DATETIME(3)",
    "MODIFY ti TIME(6)",
    "MODIFY f DOUBLE",
    "MODIFY b VARBINARY(8)",
    "MODIFY k INT",
    "MODIFY t LONGTEXT",
    "ADD INDEX (a), ADD UNIQUE (n), COMMENT 'x', AUTO_INCREMENT 9",
    "ALTER a SET DEFAULT 'q', ALTER COLUMN d SET INVISIBLE",
    "DEFAULT CHARACTER SET latin1, ADD z VARCHAR(3)",
    "PARTITION BY HASH (id) PARTITIONS 3",
    "ENGINE=InnoDB, ROW_FORMAT=DYNAMIC, FORCE",
];

/// What gives a table its key, and takes it: each is followed, and the next table map says what it is.
const KEYS: &[&str] = &[
    "ADD PRIMARY KEY (id)",
    "ADD PRIMARY KEY (n, id)",
    "ADD UNIQUE u (n)",
    "ADD PRIMARY KEY (id), ADD z INT",
];

/// Red when a rebuilt table without a key keeps the hashes it had: its rows are not found again.
#[test]
fn every_followed_form_leaves_what_the_server_has() {
    let server = server(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let mut session = server.connect().unwrap();
    // Zero dates are values too.
    session.sql("SET sql_mode = 'STRICT_TRANS_TABLES'; CREATE DATABASE d; USE d").unwrap();
    let mut count = 0;
    for key in ["", ", PRIMARY KEY (id)", ", PRIMARY KEY (n, id)", ", UNIQUE (n)"] {
        for clauses in FOLLOWED {
            count += 1;
            let table = format!("t{count}");
            let with_key = ROWS.trim_end_matches(')').to_owned() + ")" + key + ")";
            let define = format!("CREATE TABLE {table} {with_key}; INSERT INTO {table} VALUES {VALUES}");
            // A key over `id` must not be nullable, and partitioning needs it in every unique key.
            if clauses.starts_with("PARTITION") && key.contains("UNIQUE") {
                continue;
            }
            session.sql(&define).unwrap_or_else(|error| panic!("{define}: {error}"));
            let alter = format!("ALTER TABLE {table} {clauses}");
            session.sql(&alter).unwrap_or_else(|error| panic!("{alter}: {error}"));
            // The next table map must be the expected one, and rows must still be found.
            touch(&mut session, &table);
        }
    }
    for (index, clauses) in KEYS.iter().enumerate() {
        let table = format!("k{index}");
        session.sql(&format!("CREATE TABLE {table} {ROWS}; INSERT INTO {table} VALUES {VALUES}")).unwrap();
        session.sql(&format!("ALTER TABLE {table} {clauses}")).unwrap();
        touch(&mut session, &table);
        let drop = if clauses.contains("PRIMARY") { "DROP PRIMARY KEY" } else { "DROP INDEX u" };
        session.sql(&format!("ALTER TABLE {table} {drop}")).unwrap();
        touch(&mut session, &table);
    }
    sync(&server, &path).unwrap_or_else(|halt| panic!("{halt}"));
    assert_equal(&server, "d", &path);
    eprintln!("{count} tables");
}

/// Changes every row, adds one, takes one away.
fn touch(session: &mut capstan_mysql::Session, table: &str) {
    let id = session
        .query(&format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'd'
             AND TABLE_NAME = '{table}' AND COLUMN_NAME IN ('id', 'nr')"
        ))
        .unwrap();
    let id = String::from_utf8(id[0].rows[0][0].clone().unwrap()).unwrap();
    let sql = format!(
        "UPDATE {table} SET k = 5 WHERE {id} > 0; UPDATE {table} SET {id} = {id} + 10 ORDER BY {id} DESC;
         DELETE FROM {table} WHERE {id} = 12"
    );
    session.sql(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Statements before which the mirror stops. `t` holds rows.
const UNFOLLOWED: &[&str] = &[
    "ALTER TABLE t ADD z INT NOT NULL",
    "ALTER TABLE t ADD z VARCHAR(40) DEFAULT (CONCAT('a', 'b'))",
    "ALTER TABLE t ADD z DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE t ADD z TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00'",
    "ALTER TABLE t ADD z INT AS (id + 1) VIRTUAL",
    "ALTER TABLE t ADD z INT AS (id + 1) STORED",
    "ALTER TABLE t ADD z INT AUTO_INCREMENT UNIQUE",
    "ALTER TABLE t ADD z DECIMAL(5,2) DEFAULT 1.005",
    "ALTER TABLE t ADD z INT DEFAULT 1.5",
    "ALTER TABLE t ADD z VARCHAR(9) DEFAULT 'é'",
    "ALTER TABLE t ADD z VARCHAR(9) DEFAULT 5",
    "ALTER TABLE t ADD z DATE DEFAULT 20240229",
    "ALTER TABLE t ADD z YEAR DEFAULT '24'",
    "ALTER TABLE t ADD z ENUM('x','y') DEFAULT 'Y'",
    "ALTER TABLE t ADD z ENUM('x','y') NOT NULL",
    "ALTER TABLE t MODIFY a VARCHAR(5)",
    "ALTER TABLE t MODIFY a TEXT",
    "ALTER TABLE t MODIFY a VARCHAR(10) CHARACTER SET latin1",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb3",
    "ALTER TABLE t MODIFY n INT NOT NULL",
    "ALTER TABLE t MODIFY n SMALLINT UNSIGNED NOT NULL",
    "ALTER TABLE t MODIFY d DECIMAL(5,1)",
    "ALTER TABLE t MODIFY e ENUM('y','x')",
    "ALTER TABLE t MODIFY ts TIMESTAMP NULL",
    "ALTER TABLE t MODIFY ts DATE",
    "ALTER TABLE t MODIFY f DECIMAL(10,5)",
    "ALTER TABLE t MODIFY b BINARY(4)",
    "ALTER TABLE t MODIFY k TINYINT",
    "SET sql_mode = ''; ALTER TABLE t MODIFY a VARCHAR(20) NOT NULL",
    "SET sql_mode = ''; ALTER TABLE t MODIFY a VARCHAR(20)",
    "ALTER TABLE t ENGINE=MyISAM",
    "ALTER TABLE t DROP PARTITION p0",
    "ALTER TABLE t TRUNCATE PARTITION p0",
    "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
    "ALTER TABLE t PARTITION BY LIST (n) (PARTITION p0 VALUES IN (0, 7), PARTITION p1 VALUES IN (4294967295)); \
     ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION p0 VALUES IN (7))",
    "ALTER TABLE t DISCARD TABLESPACE",
    "REPAIR TABLE t",
    "RENAME TABLE outside.o TO d.entered",
];

/// Red when a NOT NULL column without a default is followed as one of NULLs.
#[test]
fn before_every_other_form_it_stops_and_holds_what_was_there() {
    let server = server(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let builder = || replica(&server).tables(["d.*"]);
    server.sql("CREATE DATABASE d; CREATE DATABASE outside").unwrap();
    let mut wrong = Vec::new();
    for statement in UNFOLLOWED {
        let partitioned = if statement.contains("PARTITION") {
            "PARTITION BY RANGE (n) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN MAXVALUE)"
        } else {
            ""
        };
        server
            .sql(&format!(
                "SET sql_mode = 'STRICT_TRANS_TABLES'; USE d; CREATE TABLE t {ROWS} {partitioned};
                 INSERT INTO t VALUES {VALUES}; CREATE TABLE u {ROWS}; INSERT INTO u VALUES {VALUES};
                 UPDATE u SET n = 1; CREATE TABLE outside.o (id INT); INSERT INTO outside.o VALUES (1)"
            ))
            .unwrap();
        sync_with(builder(), &path).unwrap_or_else(|halt| panic!("before {statement}: {halt}"));
        let before = source_rows(&server, "d");
        let position = server.gtid_executed().unwrap();
        // Narrowing is refused by a strict server where a value does not fit: so it fits.
        let fit =
            "UPDATE t SET n = 7, k = 1, a = 'x', ts = '2024-01-01 00:00:00', f = 1, b = X'01020304', d = 1.0";
        let narrows = ["MODIFY", "CONVERT"].iter().any(|word| statement.contains(word));
        let mut session = server.connect().unwrap();
        session.sql("SET sql_mode = 'STRICT_TRANS_TABLES'; USE d").unwrap();
        let before = if narrows {
            session.sql(fit).unwrap();
            sync_with(builder(), &path).unwrap_or_else(|halt| panic!("before {statement}: {halt}"));
            source_rows(&server, "d")
        } else {
            before
        };
        let _ = position;
        session.sql(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let want = if statement.starts_with("RENAME") {
            Code::TableEnteredCapture
        } else {
            Code::SchemaChangeNeedsCopy
        };
        match sync_with(builder(), &path) {
            Err(halt) if halt.code == want => {}
            Err(halt) => wrong.push(format!("{statement}: {halt}")),
            Ok(_) => wrong.push(format!("{statement}: followed")),
        }
        let found = differences(&before, &mirror_rows(&path));
        if !found.is_empty() {
            wrong.push(format!("{statement}: {}", found.join("; ")));
        }
        step_over(&server, &path);
        server.sql("DROP DATABASE d; DROP TABLE IF EXISTS outside.o; CREATE DATABASE d").unwrap();
        sync_with(builder(), &path).unwrap_or_else(|halt| panic!("after {statement}: {halt}"));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A generated column, and what has the server compute it anew: the log has no rows of that.
const COMPUTED: &[(&str, &str)] = &[
    ("x DECIMAL(5,2) DEFAULT 1.5, g VARCHAR(20) AS (CONCAT(x)) STORED", "MODIFY x DECIMAL(9,4)"),
    ("x DECIMAL(5,2) DEFAULT 1.5, g VARCHAR(20) AS (CONCAT(x)) VIRTUAL", "MODIFY x DECIMAL(9,4)"),
    ("x FLOAT DEFAULT 0.1, g VARCHAR(30) AS (CONCAT(x)) STORED", "CHANGE x x DOUBLE"),
    ("x DATETIME DEFAULT '2024-02-29', g VARCHAR(30) AS (CONCAT(x)) VIRTUAL", "MODIFY x DATETIME(3)"),
    (
        "x VARCHAR(9) CHARACTER SET latin1 DEFAULT 'ü', g VARCHAR(30) AS (HEX(x)) STORED",
        "MODIFY x VARCHAR(9)",
    ),
    ("x INT DEFAULT 3, g INT AS (DEFAULT(x)) VIRTUAL", "ALTER x SET DEFAULT 9"),
];

/// Red without the look for generated columns: each is followed, and `g` stays what it was.
#[test]
fn what_the_server_computes_anew_is_not_guessed() {
    let server = server(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    server.sql("CREATE DATABASE d").unwrap();
    // What is known of a table from the text that made it, and from its initial copy.
    for copied in [false, true] {
        for (index, (columns, clauses)) in COMPUTED.iter().enumerate() {
            let path =
                folder.path().join(if copied { format!("{index}.db") } else { "stream.db".to_owned() });
            let catches_up = || {
                let mirror_is_new = mirror(&path).stored().unwrap().is_none();
                if copied && mirror_is_new {
                    let builder = replica(&server).start(Start::Stored).snapshot(["*.*"]);
                    return Follower::blocking(builder, mirror(&path)).end().0;
                }
                sync(&server, &path)
            };
            server
                .sql(&format!(
                    "USE d; CREATE TABLE t (id INT PRIMARY KEY, {columns}); INSERT INTO t (id) VALUES (1);
                     CREATE TABLE u (id INT PRIMARY KEY, x INT, y DATETIME DEFAULT CURRENT_TIMESTAMP);
                     INSERT INTO u (id, x) VALUES (1, 1)"
                ))
                .unwrap_or_else(|error| panic!("{columns}: {error}"));
            catches_up().unwrap_or_else(|halt| panic!("before {clauses}: {halt}"));
            let before = source_rows(&server, "d");
            // A table without any is followed.
            server.sql("ALTER TABLE d.u MODIFY x BIGINT, ALTER y SET DEFAULT '2024-01-01'").unwrap();
            if let Err(error) = server.sql(&format!("ALTER TABLE d.t {clauses}")) {
                panic!("{clauses}: {error}");
            }
            match catches_up() {
                Err(halt) if halt.code == Code::SchemaChangeNeedsCopy => {
                    let table = halt.place.and_then(|place| place.table).map(|(_, table)| table);
                    assert_eq!(table.as_deref(), Some("t"), "{clauses}");
                }
                Err(halt) => wrong.push(format!("{clauses}: {halt}")),
                Ok(_) => wrong.push(format!("{clauses}: followed")),
            }
            let found = differences(&before, &mirror_rows(&path));
            if !found.is_empty() {
                wrong.push(format!("{clauses}: {}", found.join("; ")));
            }
            step_over(&server, &path);
            server.sql("DROP TABLE d.t, d.u").unwrap();
            catches_up().unwrap_or_else(|halt| panic!("after {clauses}: {halt}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
