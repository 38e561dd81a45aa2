//! Every statement form of the manual's chapter "Data Definition Statements" (and those of accounts, servers and
//! maintenance that are logged) with a mirror behind it: followed, so that both sides are equal; of no
//! concern, so that nothing happens; or halted before by name, so that the mirror is what it was.
//!
//! Each under the settings that change what a text means: ANSI_QUOTES, NO_BACKSLASH_ESCAPES, names in gbk that
//! hold a backslash's byte, `lower_case_table_names` 0 and 1.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use capstan::sqlite::{Mirror, MirrorOptions, Synchronous};
use capstan::{Builder, Code, Decision, Expected, GtidSet, Halt, Replica, Start, Stored as _, Until};
use capstan_mysql::{Server, Session};
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::{Rows, differences, mirror_rows, source_rows};
use capstan_tests::workload::quick_limits;

use Want::{Followed, Halts, Refused};

/// What becomes of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Want {
    /// No halt, and both sides are equal.
    Followed,
    /// A halt before it, and the mirror is what it was.
    Halts(Code),
    /// The server itself does not take it: not built in, or of another engine.
    Refused,
}

const COPY: Want = Halts(Code::SchemaChangeNeedsCopy);

/// A form of the manual, what it needs, the statement. `{name}` is an identifier, quoted as the settings have it;
/// `{\}` a string of one backslash.
type Form = (&'static str, &'static str, &'static str, Want);

const T: &str = "CREATE TABLE {t} (id INT PRIMARY KEY, {a} VARCHAR(20), n INT, e ENUM('x','y'), d DECIMAL(6,2), g POINT NOT NULL SRID 0);
     INSERT INTO {t} VALUES (1, 'one', 5, 'x', 1.5, POINT(0, 0)), (2, NULL, NULL, NULL, NULL, POINT(1, 1)), (3, 'three', 7, 'y', -2, POINT(2, 2))";
const KEYLESS: &str =
    "CREATE TABLE {t} (id INT, {a} VARCHAR(20)); INSERT INTO {t} VALUES (1, 'x'), (1, 'x'), (2, NULL)";
const RANGE: &str = "CREATE TABLE {t} (id INT PRIMARY KEY, n INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (10));
     INSERT INTO {t} VALUES (1, 1), (2, 2), (3, 3); CREATE TABLE {u} (id INT PRIMARY KEY, n INT)";
const HASH: &str = "CREATE TABLE {t} (id INT PRIMARY KEY, n INT) PARTITION BY HASH (id) PARTITIONS 3; INSERT INTO {t} VALUES (1, 1), (2, 2), (3, 3)";
const PAIR: &str =
    "CREATE TABLE {t} (id INT PRIMARY KEY, n INT, KEY (n)); INSERT INTO {t} VALUES (1, 1), (2, 1);
     CREATE TABLE {u} (id INT PRIMARY KEY, n INT, KEY (n)); INSERT INTO {u} VALUES (1, 1)";
const MYISAM: &str = "CREATE TABLE {t} (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE=MyISAM; INSERT INTO {t} VALUES (1, 1), (2, 1)";

#[rustfmt::skip]
const FORMS: &[Form] = &[
    // ALTER and CREATE DATABASE, DROP DATABASE
    ("CREATE DATABASE", "", "CREATE DATABASE {db} CHARACTER SET latin1 COLLATE latin1_bin; CREATE TABLE {db}.{t} (id INT)", Followed),
    ("CREATE SCHEMA IF NOT EXISTS", "", "CREATE SCHEMA IF NOT EXISTS {d}", Followed),
    ("CREATE DATABASE ENCRYPTION", "", "CREATE DATABASE {db} DEFAULT ENCRYPTION 'N'", Followed),
    ("ALTER DATABASE charset", "CREATE DATABASE {db}", "ALTER DATABASE {db} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", Followed),
    ("ALTER DATABASE READ ONLY", "CREATE DATABASE {db}", "ALTER DATABASE {db} READ ONLY = 1; ALTER DATABASE {db} READ ONLY = 0", Followed),
    ("ALTER DATABASE ENCRYPTION", "CREATE DATABASE {db}", "ALTER SCHEMA {db} ENCRYPTION 'N'", Followed),
    ("DROP DATABASE", "CREATE DATABASE {db}; CREATE TABLE {db}.{t} (id INT); INSERT INTO {db}.{t} VALUES (1); CREATE TABLE {db}.{u} (id INT)", "DROP DATABASE {db}", Followed),
    ("DROP SCHEMA IF EXISTS", "CREATE DATABASE {db}; CREATE TABLE {db}.{t} (id INT); INSERT INTO {db}.{t} VALUES (1)", "DROP SCHEMA IF EXISTS {db}", Followed),
    ("DROP DATABASE IF EXISTS of none", "", "DROP DATABASE IF EXISTS {nosuch}", Followed),
    // EVENT, FUNCTION, PROCEDURE, TRIGGER, VIEW
    ("CREATE EVENT", T, "CREATE EVENT {ev} ON SCHEDULE EVERY 1 YEAR COMMENT {\\} DO DELETE FROM {t}", Followed),
    ("ALTER EVENT", "CREATE EVENT {ev} ON SCHEDULE EVERY 1 YEAR DO DO 1", "ALTER EVENT {ev} DISABLE COMMENT 'ALTER TABLE'", Followed),
    ("ALTER EVENT RENAME", "CREATE EVENT {ev} ON SCHEDULE EVERY 1 YEAR DO DO 1", "ALTER EVENT {ev} ON SCHEDULE EVERY 2 YEAR RENAME TO {ev2}", Followed),
    ("DROP EVENT", "CREATE EVENT {ev} ON SCHEDULE EVERY 1 YEAR DO DO 1", "DROP EVENT {ev}", Followed),
    ("CREATE FUNCTION", "", "CREATE FUNCTION {f}() RETURNS INT DETERMINISTIC RETURN 1", Followed),
    ("ALTER FUNCTION", "CREATE FUNCTION {f}() RETURNS INT DETERMINISTIC RETURN 1", "ALTER FUNCTION {f} COMMENT {\\}", Followed),
    ("DROP FUNCTION", "CREATE FUNCTION {f}() RETURNS INT DETERMINISTIC RETURN 1", "DROP FUNCTION {f}", Followed),
    ("CREATE FUNCTION SONAME", "", "CREATE FUNCTION nosuch RETURNS INTEGER SONAME 'nosuch.so'", Refused),
    ("CREATE PROCEDURE", T, "CREATE PROCEDURE {p}() BEGIN TRUNCATE {t}; DROP TABLE {t}; END", Followed),
    ("CREATE OR ALTER by IF NOT EXISTS", T, "CREATE PROCEDURE IF NOT EXISTS {p}(IN x INT) SQL SECURITY INVOKER UPDATE {t} SET n = x", Followed),
    ("ALTER PROCEDURE", "CREATE PROCEDURE {p}() DO 1", "ALTER PROCEDURE {p} SQL SECURITY INVOKER", Followed),
    ("DROP PROCEDURE", "CREATE PROCEDURE {p}() DO 1", "DROP PROCEDURE IF EXISTS {p}", Followed),
    ("CALL that changes rows", "CREATE TABLE {t} (id INT PRIMARY KEY); CREATE PROCEDURE {p}() BEGIN INSERT INTO {t} VALUES (1), (2); DELETE FROM {t} WHERE id = 1; END", "CALL {p}()", Followed),
    ("CALL that changes tables", "CREATE TABLE {t} (id INT PRIMARY KEY); CREATE PROCEDURE {p}() BEGIN INSERT INTO {t} VALUES (1); ALTER TABLE {t} ADD {z} INT DEFAULT 4; INSERT INTO {t} VALUES (2, 2); END", "CALL {p}()", Followed),
    ("CREATE TRIGGER", PAIR, "CREATE TRIGGER {tr} AFTER INSERT ON {t} FOR EACH ROW INSERT INTO {u} VALUES (NEW.id, NEW.n); INSERT INTO {t} VALUES (7, 7)", Followed),
    ("DROP TRIGGER", "CREATE TABLE {t} (id INT); CREATE TRIGGER {tr} BEFORE INSERT ON {t} FOR EACH ROW SET NEW.id = 5", "DROP TRIGGER {tr}", Followed),
    ("CREATE VIEW", T, "CREATE VIEW {v} AS SELECT * FROM {t}", Followed),
    ("CREATE OR REPLACE VIEW", T, "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=CURRENT_USER SQL SECURITY INVOKER VIEW {v} (x) AS SELECT id FROM {t} WITH CHECK OPTION", Followed),
    ("ALTER VIEW", "CREATE VIEW {v} AS SELECT 1 a", "ALTER VIEW {v} AS SELECT 2 b", Followed),
    ("DROP VIEW", "CREATE VIEW {v} AS SELECT 1 a", "DROP VIEW IF EXISTS {v}, {nosuch} RESTRICT", Followed),
    ("RENAME TABLE of a view", "CREATE VIEW {v} AS SELECT 1 a", "RENAME TABLE {v} TO {w}", Followed),
    ("an updatable view", "CREATE TABLE {t} (id INT PRIMARY KEY, n INT); INSERT INTO {t} VALUES (1, 1); CREATE VIEW {v} AS SELECT * FROM {t}", "UPDATE {v} SET n = 2; INSERT INTO {v} VALUES (2, 2)", Followed),
    ("CREATE JSON RELATIONAL DUALITY VIEW", "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", "CREATE JSON RELATIONAL DUALITY VIEW {v} AS SELECT JSON_DUALITY_OBJECT(WITH(INSERT, UPDATE, DELETE) '_id': id, 'n': n) FROM {t}", Followed),
    ("ALTER JSON RELATIONAL DUALITY VIEW", "CREATE TABLE {t} (id INT PRIMARY KEY, n INT); CREATE JSON RELATIONAL DUALITY VIEW {v} AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM {t}", "ALTER JSON RELATIONAL DUALITY VIEW {v} AS SELECT JSON_DUALITY_OBJECT('_id': id, 'n': n) FROM {t}", Followed),
    ("DROP VIEW of a duality view", "CREATE TABLE {t} (id INT PRIMARY KEY, n INT); CREATE JSON RELATIONAL DUALITY VIEW {v} AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM {t}", "DROP VIEW {v}", Followed),
    ("CREATE MATERIALIZED VIEW", T, "CREATE MATERIALIZED VIEW {v} AS SELECT id FROM {t}", Followed),
    ("CREATE OR REPLACE MATERIALIZED VIEW", T, "CREATE OR REPLACE MATERIALIZED VIEW {v} AS SELECT id FROM {t}; ALTER MATERIALIZED VIEW {v} AS SELECT n FROM {t}; DROP VIEW {v}", Followed),
    ("CREATE LIBRARY", "", "CREATE LIBRARY {l} LANGUAGE JAVASCRIPT AS 'export function f() { return 1 }'", Followed),
    ("ALTER LIBRARY", "CREATE LIBRARY {l} LANGUAGE JAVASCRIPT AS 'export function f() { return 1 }'", "ALTER LIBRARY {l} COMMENT {\\}", Followed),
    ("DROP LIBRARY", "CREATE LIBRARY {l} LANGUAGE JAVASCRIPT AS 'export function f() { return 1 }'", "DROP LIBRARY {l}", Followed),
    // INDEX
    ("CREATE INDEX", T, "CREATE INDEX {i} USING BTREE ON {t} (n DESC, {a}(3)) COMMENT {\\} ALGORITHM INPLACE LOCK NONE", Followed),
    ("CREATE UNIQUE INDEX", T, "CREATE UNIQUE INDEX {i} ON {t} (n)", Followed),
    ("CREATE FULLTEXT INDEX", T, "CREATE FULLTEXT INDEX {i} ON {t} ({a}) WITH PARSER ngram", Followed),
    ("CREATE SPATIAL INDEX", T, "CREATE SPATIAL INDEX {i} ON {t} (g)", Followed),
    ("CREATE INDEX functional", T, "CREATE INDEX {i} ON {t} ((n + 1), (UPPER({a}))) INVISIBLE", Followed),
    ("CREATE INDEX multi-valued", "CREATE TABLE {t} (id INT PRIMARY KEY, j JSON); INSERT INTO {t} VALUES (1, '[1,2]')", "CREATE INDEX {i} ON {t} ((CAST(j AS UNSIGNED ARRAY)))", Followed),
    ("CREATE INDEX without key", KEYLESS, "CREATE INDEX {i} ON {t} ({a})", Followed),
    ("DROP INDEX", PAIR, "DROP INDEX n ON {t} ALGORITHM=INPLACE LOCK=DEFAULT", Followed),
    ("DROP INDEX primary", T, "DROP INDEX `PRIMARY` ON {t}", Followed),
    // INSTANCE, LOGFILE GROUP, SERVER, TABLESPACE, SPATIAL REFERENCE SYSTEM
    ("ALTER INSTANCE", "", "ALTER INSTANCE RELOAD TLS; ALTER INSTANCE DISABLE INNODB REDO_LOG; ALTER INSTANCE ENABLE INNODB REDO_LOG", Followed),
    ("CREATE LOGFILE GROUP", "", "CREATE LOGFILE GROUP lg ADD UNDOFILE 'u.dat' ENGINE NDB", Refused),
    ("ALTER LOGFILE GROUP", "", "ALTER LOGFILE GROUP lg ADD UNDOFILE 'u2.dat' ENGINE NDB", Refused),
    ("DROP LOGFILE GROUP", "", "DROP LOGFILE GROUP lg ENGINE NDB", Refused),
    ("CREATE SERVER", "", "CREATE SERVER {s} FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h', DATABASE 'd')", Followed),
    ("ALTER SERVER", "CREATE SERVER {s} FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h', DATABASE 'd')", "ALTER SERVER {s} OPTIONS (USER 'v')", Followed),
    ("DROP SERVER", "CREATE SERVER {s} FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h', DATABASE 'd')", "DROP SERVER IF EXISTS {s}", Followed),
    ("CREATE TABLESPACE", "", "CREATE TABLESPACE {ts} ADD DATAFILE 'ts_#.ibd' ENGINE=InnoDB", Followed),
    ("CREATE TABLE in a tablespace", "CREATE TABLESPACE {ts} ADD DATAFILE 'ts_#.ibd'", "CREATE TABLE {t} (id INT PRIMARY KEY) TABLESPACE {ts}; INSERT INTO {t} VALUES (1)", Followed),
    ("ALTER TABLESPACE", "CREATE TABLESPACE {ts} ADD DATAFILE 'ts_#.ibd'", "ALTER TABLESPACE {ts} RENAME TO {ts2}; ALTER TABLESPACE {ts2} AUTOEXTEND_SIZE 4M", Followed),
    ("DROP TABLESPACE", "CREATE TABLESPACE {ts} ADD DATAFILE 'ts_#.ibd'", "DROP TABLESPACE {ts}", Followed),
    ("UNDO TABLESPACE", "", "CREATE UNDO TABLESPACE {un} ADD DATAFILE 'un_#.ibu'; ALTER UNDO TABLESPACE {un} SET INACTIVE", Followed),
    ("SPATIAL REFERENCE SYSTEM", "", "CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 99# NAME 'n #' DEFINITION 'GEOGCS[\"WGS 84\",DATUM[\"World Geodetic System 1984\",SPHEROID[\"WGS 84\",6378137,298.257223563,AUTHORITY[\"EPSG\",\"7030\"]],AUTHORITY[\"EPSG\",\"6326\"]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],UNIT[\"degree\",0.017453292519943278,AUTHORITY[\"EPSG\",\"9122\"]],AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST]]'; DROP SPATIAL REFERENCE SYSTEM IF EXISTS 99#", Followed),
    // CREATE TABLE
    ("CREATE TABLE", "", "CREATE TABLE {t} (id INT PRIMARY KEY COMMENT {\\}, {a} TEXT); INSERT INTO {t} VALUES (1, 'x')", Followed),
    ("CREATE TABLE IF NOT EXISTS", T, "CREATE TABLE IF NOT EXISTS {t} (other INT)", Followed),
    ("CREATE TABLE generated", "", "CREATE TABLE {t} (id INT PRIMARY KEY, v INT AS (id + 1) VIRTUAL, s INT GENERATED ALWAYS AS (id * 2) STORED NOT NULL, i INT INVISIBLE); INSERT INTO {t} (id, i) VALUES (1, 5)", Followed),
    ("CREATE TABLE GIPK", "", "SET sql_generate_invisible_primary_key = ON; CREATE TABLE {t} (a INT); INSERT INTO {t} VALUES (1), (1); SET sql_generate_invisible_primary_key = OFF", Followed),
    ("CREATE TABLE partitioned", "", "CREATE TABLE {t} (id INT, y DATE, PRIMARY KEY (id, y)) PARTITION BY LIST COLUMNS (y) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION p0 VALUES IN ('2024-01-01'), PARTITION p1 VALUES IN (NULL, '2025-01-01')); INSERT INTO {t} VALUES (1, '2024-01-01'), (2, '2025-01-01')", Followed),
    ("CREATE TABLE by list", "", "CREATE TABLE {t} (id INT, y INT, PRIMARY KEY (id, y)) PARTITION BY LIST (y) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION p0 VALUES IN (1), PARTITION p1 VALUES IN (2, 3)); INSERT INTO {t} VALUES (1, 1), (2, 3)", Followed),
    ("CREATE TABLE LIKE", T, "CREATE TABLE {u} LIKE {t}; INSERT INTO {u} SELECT * FROM {t}", Followed),
    ("CREATE TABLE (LIKE)", RANGE, "CREATE TABLE IF NOT EXISTS {w} (LIKE {t}); INSERT INTO {w} SELECT * FROM {t}", Followed),
    ("CREATE TABLE SELECT", T, "CREATE TABLE {u} SELECT * FROM {t}", Followed),
    ("CREATE TABLE … AS SELECT with columns", T, "CREATE TABLE {u} (x INT AUTO_INCREMENT PRIMARY KEY, n BIGINT) ENGINE=InnoDB AS SELECT n, {a} FROM {t}", Followed),
    ("CREATE TABLE IGNORE SELECT", KEYLESS, "CREATE TABLE {u} (id INT PRIMARY KEY) IGNORE SELECT * FROM {t}", Followed),
    ("CREATE TABLE TABLE", T, "CREATE TABLE {u} TABLE {t}", Followed),
    ("CREATE TABLE VALUES", "", "CREATE TABLE {u} VALUES ROW(1, 'a'), ROW(2, 'b')", Followed),
    ("CREATE TABLE START TRANSACTION", "", "CREATE TABLE {t} (id INT PRIMARY KEY) START TRANSACTION; COMMIT; INSERT INTO {t} VALUES (1)", Followed),
    ("CREATE TEMPORARY TABLE", T, "CREATE TEMPORARY TABLE {t} (z INT); INSERT INTO {t} VALUES (9); ALTER TABLE {t} ADD y INT; TRUNCATE {t}; DROP TEMPORARY TABLE {t}", Followed),
    ("CREATE EXTERNAL TABLE", "", "CREATE EXTERNAL TABLE {t} (id INT)", Refused),
    // DROP, RENAME, TRUNCATE TABLE
    ("DROP TABLE", PAIR, "DROP TABLE {t}, {u}", Followed),
    ("DROP TABLE IF EXISTS", T, "DROP TABLES IF EXISTS {nosuch}, {t} CASCADE", Followed),
    ("DROP TEMPORARY TABLE", T, "CREATE TEMPORARY TABLE {t} (z INT); DROP TEMPORARY TABLE IF EXISTS {t}", Followed),
    ("RENAME TABLE", T, "RENAME TABLE {t} TO {u}", Followed),
    ("RENAME TABLE swap", PAIR, "RENAME TABLES {t} TO {x}, {u} TO {t}, {x} TO {u}", Followed),
    ("RENAME TABLE over databases", "CREATE DATABASE {db}; CREATE TABLE {t} (id INT); INSERT INTO {t} VALUES (1)", "RENAME TABLE {t} TO {db}.{u}", Followed),
    ("TRUNCATE", T, "TRUNCATE {t}", Followed),
    ("TRUNCATE TABLE partitioned", RANGE, "TRUNCATE TABLE {t}", Followed),
    // ALTER TABLE: table options
    ("AUTOEXTEND_SIZE", T, "ALTER TABLE {t} AUTOEXTEND_SIZE = 4M", Followed),
    ("AUTO_INCREMENT", T, "ALTER TABLE {t} AUTO_INCREMENT = 100", Followed),
    ("AVG_ROW_LENGTH …", T, "ALTER TABLE {t} AVG_ROW_LENGTH 10 CHECKSUM 1 DELAY_KEY_WRITE 1 INSERT_METHOD NO KEY_BLOCK_SIZE 0 MAX_ROWS 10 MIN_ROWS 1 PACK_KEYS DEFAULT PASSWORD 'x'", Followed),
    ("DEFAULT CHARACTER SET", T, "ALTER TABLE {t} DEFAULT CHARACTER SET = latin1 COLLATE = latin1_bin", Followed),
    ("COMMENT", T, "ALTER TABLE {t} COMMENT {\\}", Followed),
    ("COMPRESSION", T, "ALTER TABLE {t} COMPRESSION 'NONE'", Followed),
    ("CONNECTION", "CREATE TABLE {t} (id INT PRIMARY KEY); INSERT INTO {t} VALUES (1)", "ALTER TABLE {t} CONNECTION 'x'", COPY),
    ("ENCRYPTION", T, "ALTER TABLE {t} ENCRYPTION 'N'", Followed),
    ("ENGINE same", T, "ALTER TABLE {t} ENGINE = InnoDB", Followed),
    ("ENGINE other", KEYLESS, "ALTER TABLE {t} ENGINE = MyISAM", COPY),
    ("ENGINE_ATTRIBUTE", T, "ALTER TABLE {t} SECONDARY_ENGINE_ATTRIBUTE = '{}'", Followed),
    ("ROW_FORMAT", T, "ALTER TABLE {t} ROW_FORMAT = DYNAMIC", Followed),
    ("SECONDARY_ENGINE", T, "ALTER TABLE {t} SECONDARY_ENGINE = NULL", Followed),
    ("SECONDARY_LOAD", T, "ALTER TABLE {t} SECONDARY_LOAD", Refused),
    ("STATS_…", T, "ALTER TABLE {t} STATS_AUTO_RECALC 1, STATS_PERSISTENT = 1, STATS_SAMPLE_PAGES 7", Followed),
    ("TABLESPACE", T, "ALTER TABLE {t} TABLESPACE innodb_system; ALTER TABLE {t} TABLESPACE innodb_file_per_table", Followed),
    ("CREATE TABLE UNION", "CREATE TABLE {t} (id INT) ENGINE=MyISAM", "CREATE TABLE {m} (id INT) ENGINE=MERGE UNION=({t})", COPY),
    // ALTER TABLE: columns
    ("ADD COLUMN", T, "ALTER TABLE {t} ADD COLUMN {z} INT AFTER id", Followed),
    ("ADD COLUMN literal", T, "ALTER TABLE {t} ADD {z} VARCHAR(9) NOT NULL DEFAULT {\\} FIRST", Followed),
    ("ADD COLUMN text", T, "ALTER TABLE {t} ADD {z} TEXT DEFAULT ('abc'), ADD {y} TEXT NOT NULL DEFAULT (''), ADD {x} BLOB DEFAULT (X'00ff'), ADD {w} JSON DEFAULT ('{}'), ADD {v} JSON DEFAULT ('[]')", Followed),
    ("ADD COLUMN expression of a literal", KEYLESS, "ALTER TABLE {t} ADD {z} INT DEFAULT (7), ADD {y} DECIMAL(5,2) DEFAULT (1.5), ADD {x} DOUBLE DEFAULT (0.1), ADD {w} DATE DEFAULT ('2024-02-29'), ADD {v} CHAR(3) DEFAULT ('a '), ADD {u} ENUM('p','q') DEFAULT ('q'), ADD {s} FLOAT DEFAULT (0.1), ADD {r} BIT(3) DEFAULT (b'101')", Followed),
    ("ADD COLUMN timestamp in UTC", T, "SET time_zone = '+05:00'; ALTER TABLE {t} ADD {z} TIMESTAMP(1) NULL DEFAULT '2024-01-01 00:00:00.5+00:00', ADD {y} TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'; SET time_zone = '+00:00'", Followed),
    ("ADD COLUMN timestamp of the session", T, "ALTER TABLE {t} ADD {z} TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00'", COPY),
    ("ADD (columns)", T, "ALTER TABLE {t} ADD COLUMN ({z} INT, {y} BIGINT DEFAULT 3)", Followed),
    ("ADD COLUMN NOT NULL", T, "ALTER TABLE {t} ADD {z} INT NOT NULL", COPY),
    ("ADD COLUMN computed", T, "ALTER TABLE {t} ADD {z} INT DEFAULT (1 + 1)", COPY),
    ("ADD COLUMN generated", T, "ALTER TABLE {t} ADD {z} INT AS (id + 1) VIRTUAL", COPY),
    ("ADD COLUMN AUTO_INCREMENT", T, "ALTER TABLE {t} ADD {z} INT NOT NULL AUTO_INCREMENT UNIQUE", COPY),
    ("ADD COLUMN now", T, "ALTER TABLE {t} ADD {z} DATETIME DEFAULT CURRENT_TIMESTAMP", COPY),
    ("ALTER COLUMN SET DEFAULT", T, "ALTER TABLE {t} ALTER COLUMN {a} SET DEFAULT {\\}, ALTER n SET DEFAULT (1 + 1)", Followed),
    ("ALTER COLUMN SET INVISIBLE", T, "ALTER TABLE {t} ALTER COLUMN {a} SET INVISIBLE", Followed),
    ("ALTER COLUMN DROP DEFAULT", T, "ALTER TABLE {t} ALTER COLUMN {a} DROP DEFAULT", Followed),
    ("CHANGE", T, "ALTER TABLE {t} CHANGE COLUMN {a} {z} VARCHAR(40) FIRST", Followed),
    ("CHANGE swap", T, "ALTER TABLE {t} CHANGE n {z} INT, ADD n INT DEFAULT 8", Followed),
    ("MODIFY wider", T, "ALTER TABLE {t} MODIFY n BIGINT, MODIFY d DECIMAL(9,4) AFTER id, MODIFY e ENUM('x','y','z')", Followed),
    ("MODIFY narrower", T, "ALTER TABLE {t} MODIFY n SMALLINT", COPY),
    ("MODIFY charset", T, "ALTER TABLE {t} MODIFY {a} VARCHAR(20) CHARACTER SET latin1", COPY),
    ("MODIFY labels", T, "ALTER TABLE {t} MODIFY e ENUM('y','x')", COPY),
    ("CONVERT TO CHARACTER SET", T, "ALTER TABLE {t} CONVERT TO CHARACTER SET latin1", COPY),
    ("DROP COLUMN", T, "ALTER TABLE {t} DROP COLUMN {a}, DROP n", Followed),
    ("RENAME COLUMN", T, "ALTER TABLE {t} RENAME COLUMN {a} TO n, RENAME COLUMN n TO {a}", Followed),
    ("ORDER BY", KEYLESS, "ALTER TABLE {t} ORDER BY {a} DESC", Followed),
    // ALTER TABLE: keys, constraints
    ("ADD INDEX", T, "ALTER TABLE {t} ADD INDEX {i} (n) USING BTREE, ADD FULLTEXT KEY ({a}), ADD SPATIAL INDEX (g)", Followed),
    ("ADD PRIMARY KEY", "CREATE TABLE {t} (id INT NOT NULL, n INT); INSERT INTO {t} VALUES (1, 1), (2, 1)", "ALTER TABLE {t} ADD CONSTRAINT PRIMARY KEY (id)", Followed),
    ("ADD UNIQUE", T, "ALTER TABLE {t} ADD CONSTRAINT {c} UNIQUE KEY {i} (n)", Followed),
    ("ADD FOREIGN KEY", PAIR, "ALTER TABLE {u} ADD CONSTRAINT {c} FOREIGN KEY (n) REFERENCES {t} (id) ON DELETE CASCADE; DELETE FROM {t} WHERE id = 1", Followed),
    ("ADD CHECK", T, "ALTER TABLE {t} ADD CONSTRAINT {c} CHECK (id > 0) NOT ENFORCED, ADD CHECK (id < 9000)", Followed),
    ("ALTER CHECK, DROP CHECK", "CREATE TABLE {t} (id INT PRIMARY KEY, CONSTRAINT {c} CHECK (id > 0)); INSERT INTO {t} VALUES (1)", "ALTER TABLE {t} ALTER CHECK {c} NOT ENFORCED; ALTER TABLE {t} DROP CONSTRAINT {c}", Followed),
    ("ALTER INDEX", PAIR, "ALTER TABLE {t} ALTER INDEX n INVISIBLE", Followed),
    ("DROP INDEX, RENAME INDEX", PAIR, "ALTER TABLE {t} RENAME INDEX n TO {i}; ALTER TABLE {t} DROP KEY {i}", Followed),
    ("DROP PRIMARY KEY", T, "ALTER TABLE {t} DROP PRIMARY KEY", Followed),
    ("DROP FOREIGN KEY", "CREATE TABLE {t} (id INT PRIMARY KEY); CREATE TABLE {u} (id INT, CONSTRAINT {c} FOREIGN KEY (id) REFERENCES {t} (id))", "ALTER TABLE {u} DROP FOREIGN KEY {c}", Followed),
    ("DISABLE KEYS", MYISAM, "ALTER TABLE {t} DISABLE KEYS; ALTER TABLE {t} ENABLE KEYS", Followed),
    // ALTER TABLE: the whole table
    ("ALGORITHM, LOCK", T, "ALTER TABLE {t} ADD {z} INT, ALGORITHM=COPY, LOCK=SHARED", Followed),
    ("WITHOUT VALIDATION", T, "ALTER TABLE {t} WITHOUT VALIDATION, ADD {z} INT", Followed),
    ("FORCE", T, "ALTER TABLE {t} FORCE", Followed),
    ("RENAME", T, "ALTER TABLE {t} RENAME TO {u}", Followed),
    ("RENAME with columns", T, "ALTER TABLE {t} RENAME AS {u}, ADD {z} INT DEFAULT 3, DROP n", Followed),
    ("nothing", T, "ALTER TABLE {t}", Followed),
    ("DISCARD TABLESPACE", "CREATE TABLE {t} (id INT PRIMARY KEY); INSERT INTO {t} VALUES (1)", "ALTER TABLE {t} DISCARD TABLESPACE", COPY),
    // ALTER TABLE: partitions
    ("PARTITION BY", T, "ALTER TABLE {t} DROP COLUMN g PARTITION BY KEY (id) PARTITIONS 2", Followed),
    ("ADD PARTITION", RANGE, "ALTER TABLE {t} ADD PARTITION (PARTITION p2 VALUES LESS THAN (20))", Followed),
    ("ADD PARTITION PARTITIONS", HASH, "ALTER TABLE {t} ADD PARTITION PARTITIONS 2", Followed),
    ("DROP PARTITION", RANGE, "ALTER TABLE {t} DROP PARTITION p0", COPY),
    ("DISCARD PARTITION", RANGE, "ALTER TABLE {t} DISCARD PARTITION p0 TABLESPACE", COPY),
    ("TRUNCATE PARTITION", RANGE, "ALTER TABLE {t} TRUNCATE PARTITION p0", COPY),
    ("COALESCE PARTITION", HASH, "ALTER TABLE {t} COALESCE PARTITION 1", Followed),
    ("REORGANIZE PARTITION", RANGE, "ALTER TABLE {t} REORGANIZE PARTITION p0, p1 INTO (PARTITION q VALUES LESS THAN (10))", Followed),
    ("EXCHANGE PARTITION", RANGE, "ALTER TABLE {t} EXCHANGE PARTITION p0 WITH TABLE {u} WITH VALIDATION", COPY),
    ("ANALYZE PARTITION", RANGE, "ALTER TABLE {t} ANALYZE PARTITION p0, p1", Followed),
    ("CHECK PARTITION", RANGE, "ALTER TABLE {t} CHECK PARTITION ALL", Followed),
    ("OPTIMIZE PARTITION", RANGE, "ALTER TABLE {t} OPTIMIZE PARTITION p0", Followed),
    ("REBUILD PARTITION", RANGE, "ALTER TABLE {t} REBUILD PARTITION ALL", Followed),
    ("REPAIR PARTITION", RANGE, "ALTER TABLE {t} REPAIR PARTITION p0", COPY),
    ("REMOVE PARTITIONING", RANGE, "ALTER TABLE {t} REMOVE PARTITIONING", Followed),
    // Accounts
    ("CREATE USER", "", "CREATE USER {us} IDENTIFIED BY 'p' REQUIRE SSL PASSWORD EXPIRE NEVER COMMENT 'DROP TABLE'", Followed),
    ("ALTER USER", "CREATE USER {us}", "ALTER USER {us} IDENTIFIED BY 'q' ACCOUNT LOCK; ALTER USER {us} DEFAULT ROLE NONE", Followed),
    ("RENAME USER", "CREATE USER {us}", "RENAME USER {us} TO {us2}", Followed),
    ("DROP USER", "CREATE USER {us}", "DROP USER IF EXISTS {us}, {nosuch}", Followed),
    ("CREATE ROLE, DROP ROLE", "", "CREATE ROLE {r}; DROP ROLE {r}", Followed),
    ("GRANT, REVOKE", "CREATE USER {us}; CREATE TABLE {t} (id INT)", "GRANT SELECT (id), INSERT ON {t} TO {us} WITH GRANT OPTION; REVOKE INSERT ON {t} FROM {us}; REVOKE ALL PRIVILEGES, GRANT OPTION FROM {us}", Followed),
    ("GRANT role, SET DEFAULT ROLE", "CREATE USER {us}; CREATE ROLE {r}", "GRANT {r} TO {us}; SET DEFAULT ROLE {r} TO {us}", Followed),
    ("GRANT PROXY", "CREATE USER {us}; CREATE USER {us2}", "GRANT PROXY ON {us} TO {us2}; REVOKE PROXY ON {us} FROM {us2}", Followed),
    ("SET PASSWORD", "CREATE USER {us}", "SET PASSWORD FOR {us} = 'x'", Followed),
    // SET, maintenance, components
    ("SET", "", "SET PERSIST max_connections = 90; RESET PERSIST max_connections; SET @x = 'DROP TABLE t', @y := 1", Followed),
    ("SET RESOURCE GROUP", "", "SET RESOURCE GROUP USR_default", Followed),
    ("ANALYZE TABLE", T, "ANALYZE TABLE {t}; ANALYZE TABLE {t} UPDATE HISTOGRAM ON n WITH 4 BUCKETS; ANALYZE TABLE {t} DROP HISTOGRAM ON n", Followed),
    ("CHECK, CHECKSUM TABLE", T, "CHECK TABLE {t} EXTENDED; CHECKSUM TABLE {t}", Followed),
    ("OPTIMIZE TABLE", T, "OPTIMIZE TABLE {t}", Followed),
    ("REPAIR TABLE", MYISAM, "REPAIR TABLE {t} QUICK", COPY),
    ("FLUSH", T, "FLUSH TABLES {t}; FLUSH TABLES; FLUSH PRIVILEGES; FLUSH STATUS; FLUSH BINARY LOGS; FLUSH OPTIMIZER_COSTS", Followed),
    ("FLUSH TABLES WITH READ LOCK", T, "FLUSH TABLES {t} WITH READ LOCK; UNLOCK TABLES; FLUSH TABLES {t} FOR EXPORT; UNLOCK TABLES", Followed),
    ("INSTALL COMPONENT", "", "INSTALL COMPONENT 'file://component_nosuch'", Refused),
    ("INSTALL PLUGIN", "", "INSTALL PLUGIN nosuch SONAME 'nosuch.so'", Refused),
    ("KILL, SHOW, USE", "", "USE mysql; SHOW TABLES; USE {d}", Followed),
    ("LOCK INSTANCE", "", "LOCK INSTANCE FOR BACKUP; UNLOCK INSTANCE", Followed),
    // Row statements with words of DDL in them
    ("a comment", T, "/* DROP TABLE t */ UPDATE {t} SET {a} = 'ALTER TABLE t' -- TRUNCATE t", Followed),
    ("a version comment", T, "/*!80000 ALTER */ TABLE {t} /*!99999 DROP n, */ ADD /*!50000 {z} */ INT # x", Followed),
];

/// How the texts are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Plain,
    AnsiQuotes,
    NoBackslashEscapes,
    Gbk,
    /// `lower_case_table_names = 1`, every other name in capitals.
    Folded,
}

impl Mode {
    fn server(self) -> Server {
        let options = ["--innodb-file-per-table=ON", "--local-infile=OFF", "--event-scheduler=OFF"];
        let mut builder = Server::builder().options(options);
        if self == Self::Folded {
            builder = builder.option("--lower-case-table-names=1");
        }
        let server = builder.start().expect("a server");
        server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
        server
    }

    fn session(self, server: &Server) -> Session {
        let mut session = server.connect().unwrap();
        let modes = match self {
            Self::AnsiQuotes => "STRICT_TRANS_TABLES,ANSI_QUOTES",
            Self::NoBackslashEscapes => "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES",
            Self::Plain | Self::Gbk | Self::Folded => "STRICT_TRANS_TABLES",
        };
        let names = if self == Self::Gbk { "gbk" } else { "utf8mb4" };
        session.sql(&format!("SET NAMES {names}, sql_mode = '{modes}', time_zone = '+00:00'")).unwrap();
        session
    }

    /// An identifier.
    fn name(self, name: &str, number: usize, turn: usize) -> Vec<u8> {
        // The schema of all of them is one.
        let base = name;
        let name = if name == "d" { name.to_owned() } else { format!("{name}_{number}") };
        match self {
            Self::Plain | Self::NoBackslashEscapes => format!("`{name}`").into_bytes(),
            Self::AnsiQuotes => format!("\"{name}\"").into_bytes(),
            // Names of tables, and so of what shares their folder; those of accounts and tablespaces are as they are.
            Self::Folded if turn % 2 == 1 && ["t", "u", "v", "w", "x", "m", "db"].contains(&base) => {
                format!("`{}`", name.to_uppercase()).into_bytes()
            }
            Self::Folded => name.into_bytes(),
            Self::Gbk if base == "d" => name.into_bytes(),
            // A character whose second byte is a backslash, and one whose second byte is a backtick.
            Self::Gbk => [b"`\xd5\\", name.as_bytes(), b"\x81``"].concat(),
        }
    }

    /// A statement with its identifiers.
    fn text(self, template: &str, number: usize) -> Vec<u8> {
        let mut text = Vec::new();
        let mut rest = template;
        let mut turn = 0;
        while let Some((before, after)) = rest.split_once('{') {
            text.extend(before.replace('#', &number.to_string()).bytes());
            let (inner, tail) = after.split_once('}').unwrap();
            match inner {
                "" => text.extend(b"{}"),
                "\\" if self == Self::NoBackslashEscapes => text.extend(b"'\\'"),
                "\\" => text.extend(b"'\\\\'"),
                name => {
                    turn += 1;
                    text.extend(self.name(name, number, turn));
                }
            }
            rest = tail;
        }
        // A `#` is the entry's number, but for the comment at a text's end.
        text.extend(
            rest.strip_suffix("# x")
                .map_or_else(|| rest.replace('#', &number.to_string()), |rest| format!("{rest}# x"))
                .bytes(),
        );
        if self == Self::AnsiQuotes {
            text.iter().map(|b| if *b == b'`' { b'"' } else { *b }).collect()
        } else {
            text
        }
    }
}

struct Bench {
    server: Server,
    session: Session,
    mode: Mode,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(mode: Mode) -> Self {
        let server = mode.server();
        let mut session = mode.session(&server);
        session.sql("CREATE DATABASE d; USE d").unwrap();
        Self { server, session, mode, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("m.db")
    }

    fn run(&mut self, template: &str, number: usize) -> Result<(), String> {
        if template.is_empty() {
            return Ok(());
        }
        // The server itself trips over such names in and around a trigger.
        let mode =
            if FORMS[number].2.contains("{tr}") && self.mode == Mode::Gbk { Mode::Plain } else { self.mode };
        let text = mode.text(template, number);
        self.session
            .query_bytes(&text)
            .map(|_| ())
            .map_err(|error| format!("{error}: {}", text.escape_ascii()))
    }

    fn sync(&self) -> Result<(), Halt> {
        let path = self.path();
        let builder: Builder = Replica::builder(url_at(self.server.port()).parse().unwrap())
            .limits(quick_limits())
            .until(Until::Now)
            .start(if path.exists() { Start::Stored } else { Start::Earliest });
        Follower::blocking(builder, mirror(&path)).end().0.map(|_| ())
    }

    /// Every row, by the source.
    fn source(&self) -> Rows {
        source_rows(&self.server, "d").into_iter().chain(source_rows(&self.server, "%db")).collect()
    }

    fn executed(&self) -> GtidSet {
        self.server.gtid_executed().unwrap().trim().parse().unwrap()
    }
}

fn mirror(path: &Path) -> Mirror {
    let mut options = MirrorOptions::default();
    options.synchronous = Synchronous::Off;
    Mirror::open(path, options).unwrap()
}

/// What is followed and what is of no concern, one after another: no halt, and equal in the end.
fn followed(mode: Mode) -> Vec<String> {
    let mut bench = Bench::new(mode);
    let mut ran: Vec<(String, GtidSet)> = Vec::new();
    let mut wrong = Vec::new();
    for (number, (form, before, statement, want)) in FORMS.iter().enumerate() {
        if matches!(want, Halts(_)) {
            continue;
        }
        let end = bench.run(before, number).and_then(|()| bench.run(statement, number));
        match (end, want) {
            (Ok(()), Followed) | (Err(_), Refused) => {}
            (Ok(()), _) => wrong.push(format!("{form}: the server takes it")),
            (Err(error), _) => wrong.push(format!("{form}: the server refuses it: {error}")),
        }
        // Where the table is there still, its rows must be found still.
        let _ = bench.run("UPDATE {t} SET id = id + 100 ORDER BY id DESC", number);
        let _ = bench.run("DELETE FROM {t} WHERE id = 102", number);
        let _ = bench.session.sql("ROLLBACK; UNLOCK TABLES; USE d");
        ran.push(((*form).to_owned(), bench.executed()));
    }
    // Each halt is told, and stepped over, so that one run tells all.
    while let Err(halt) = bench.sync() {
        let stored = mirror(&bench.path()).stored().unwrap().unwrap();
        let missed = |(_, executed): &&(String, GtidSet)| !executed.subtract(stored.gtid_set()).is_empty();
        let Some((form, executed)) = ran.iter().find(missed) else { panic!("{mode:?}: {halt}") };
        wrong.push(format!("{form}: is halted at: {halt}"));
        step_over(&bench, executed.clone());
    }
    if wrong.is_empty() {
        wrong.extend(differences(&bench.source(), &mirror_rows(&bench.path())));
    }
    wrong
}

/// The others, each with a mirror of what was there before it.
fn halted(mode: Mode) -> Vec<String> {
    let mut bench = Bench::new(mode);
    let mut wrong = Vec::new();
    for (number, (form, before, statement, want)) in FORMS.iter().enumerate() {
        let Halts(code) = want else { continue };
        bench.run(before, number).unwrap();
        bench.sync().unwrap_or_else(|halt| panic!("{mode:?}, before {form}: {halt}"));
        let rows = bench.source();
        if let Err(error) = bench.run(statement, number) {
            wrong.push(format!("{form}: the server refuses it: {error}"));
        }
        match bench.sync() {
            Err(halt) if halt.code == *code => {}
            Err(halt) => wrong.push(format!("{form}: {halt}")),
            Ok(()) => wrong.push(format!("{form}: followed")),
        }
        wrong.extend(
            differences(&rows, &mirror_rows(&bench.path())).iter().map(|fault| format!("{form}: {fault}")),
        );
        step_over(&bench, bench.executed());
        // With the tables goes what is not equal any more.
        let _ = bench.run("DROP TABLE IF EXISTS {m}, {t}, {u}", number);
        bench.sync().unwrap_or_else(|halt| panic!("{mode:?}, after {form}: {halt}"));
    }
    assert!(mirror_rows(&bench.path()).is_empty());
    wrong
}

/// Steps over these, as a person would by hand.
fn step_over(bench: &Bench, gtids: GtidSet) {
    let mut mirror = mirror(&bench.path());
    let stored = mirror.stored().unwrap().unwrap();
    let mut position = stored.clone();
    position.advance(&capstan_core::deliver::Advance { gtids, ..Default::default() });
    let decision = Decision { kind: "skip".into(), subject: "all".into(), reason: "a test".into() };
    mirror.decide(&Expected::new(Some(stored)), &position, &decision).unwrap();
}

fn all(mode: Mode) {
    let mut wrong = followed(mode);
    wrong.extend(halted(mode));
    assert!(wrong.is_empty(), "{mode:?}:\n{}", wrong.join("\n"));
}

#[test]
fn as_usual() {
    all(Mode::Plain);
}

#[test]
fn under_ansi_quotes() {
    all(Mode::AnsiQuotes);
}

#[test]
fn under_no_backslash_escapes() {
    all(Mode::NoBackslashEscapes);
}

#[test]
fn in_gbk() {
    all(Mode::Gbk);
}

#[test]
fn under_lower_case_table_names() {
    all(Mode::Folded);
}
