//! What DDLs do to the columns and rows of a table, against what a 9.7.4 server does (the live tests ask
//! it the same).
#![allow(clippy::wildcard_enum_match_arm, reason = "it shows whatever it is")]

use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::value::charset::Charset;

/// The table every case changes: `id INT NOT NULL, a VARCHAR(10), n INT UNSIGNED NOT NULL, d DECIMAL(5,2),
/// e ENUM('x','y'), ts DATETIME, f FLOAT, b VARBINARY(4)`.
const TABLE: [(&str, &str, bool); 8] = [
    ("id", "int", false),
    ("a", "varchar(10)", true),
    ("n", "int unsigned", false),
    ("d", "decimal(5,2)", true),
    ("e", "enum('x','y')", true),
    ("ts", "datetime(0)", true),
    ("f", "float", true),
    ("b", "varbinary(4)", true),
];

fn value(value: &RowValue) -> String {
    match value {
        RowValue::Null => "NULL".to_string(),
        RowValue::Integer(value) => value.to_string(),
        RowValue::Unsigned(value) => value.to_string(),
        RowValue::Real(value) => format!("{value:?}"),
        RowValue::Text(text) => format!("'{text}'"),
        RowValue::Bytes(bytes) => format!("{bytes:02x?}"),
    }
}

/// The columns after it, as `name` where one stays what it is, `name<old` where it is another's, `+n` or
/// `+.n` for zeros added, `name=value` for a new one; or why it is not followed.
fn planned(effect: &SchemaEffect) -> String {
    let types: Vec<DeclaredType> =
        TABLE.iter().map(|(_, text, _)| DeclaredType::parse(text).unwrap()).collect();
    let existing: Vec<ExistingColumn<'_>> = TABLE
        .iter()
        .zip(&types)
        .map(|((name, _, nullable), column_type)| ExistingColumn {
            name,
            column_type: Some(column_type),
            charset: column_type.has_charset().then_some(Charset::Utf8mb4),
            nullable: *nullable,
        })
        .collect();
    let SchemaEffect::AlterTable { operations, strict, .. } = effect else {
        return match effect {
            SchemaEffect::Nothing => "nothing".to_string(),
            SchemaEffect::CopyTables(..) => "copied".to_string(),
            SchemaEffect::Unfollowed(why) => format!("never: {}", why.as_str()),
            other => format!("{other:?}"),
        };
    };
    match plan(&existing, operations, *strict) {
        Err(why) => format!("copy: {}", why.as_str()),
        Ok(planned) => {
            let shown: Vec<String> = planned.iter().map(shown_column).collect();
            shown.join(" ")
        }
    }
}

fn shown_column(column: &PlannedColumn) -> String {
    match &column.values {
        PlannedValues::Value(given) => format!("{}={}", column.name, value(given)),
        PlannedValues::Column { index, conversion, numbers_zeros } => {
            let old = TABLE[*index].0;
            let mut text = column.name.clone();
            if column.name != old {
                text.push_str(&format!("<{old}"));
            }
            if let Conversion::Zeros { count, point } = conversion {
                text.push_str(&format!("+{}{count}", if *point { "." } else { "" }));
            }
            text.push_str(if *numbers_zeros { "#" } else { "" });
            text
        }
    }
}

fn effect_of(text: &str, context: &Context<'_>) -> SchemaEffect {
    match classify(text.as_bytes(), context) {
        Statement::Ddl(ddl) => ddl.effect,
        other => panic!("{}", shown(&other)),
    }
}

fn check_plans(context: &Context<'_>, cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(clauses, expected)| {
            let found = planned(&effect_of(&format!("ALTER TABLE t {clauses}"), context));
            let expected = expected.replace("…", "id a n d e ts f b");
            (found != expected).then(|| format!("{clauses}\n    found    {found}\n    expected {expected}\n"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.concat());
}

const NO_STRICT: Context<'static> = Context { sql_mode: 0, ..PLAIN };

#[test]
fn columns_that_come() {
    check_plans(
        &PLAIN,
        &[
            ("ADD COLUMN c INT", "… c=NULL"),
            ("ADD c INT NULL", "… c=NULL"),
            ("ADD c INT DEFAULT NULL", "… c=NULL"),
            ("ADD c INT FIRST", "c=NULL id a n d e ts f b"),
            ("ADD c INT AFTER a", "id a c=NULL n d e ts f b"),
            ("ADD c INT AFTER A, ADD COLUMN g INT AFTER c", "id a c=NULL g=NULL n d e ts f b"),
            ("ADD (c INT, g TEXT)", "… c=NULL g=NULL"),
            ("ADD COLUMN (c INT DEFAULT 5)", "… c=5"),
            ("ADD c INT AFTER c", "copy: no_such_column"),
            ("ADD c INT AFTER nosuch", "copy: no_such_column"),
            ("ADD a INT", "copy: not_understood"),
            ("ADD c TIMESTAMP", "copy: values"),
            ("ADD c TIMESTAMP NULL", "… c=NULL"),
            ("ADD c TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00'", "copy: values"),
            ("ADD c TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00+00:00'", "… c='2024-01-01 00:00:00'"),
            ("ADD c TIMESTAMP(2) NULL DEFAULT '2024-01-01 00:00:00.5+00:00'", "… c='2024-01-01 00:00:00.50'"),
            ("ADD c TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00+01:00'", "copy: values"),
            ("ADD c TIMESTAMP NULL DEFAULT '2038-01-19 03:14:08+00:00'", "copy: values"),
            ("ADD c TIMESTAMP NULL DEFAULT '1970-01-01 00:00:00+00:00'", "copy: values"),
            ("ADD c TIMESTAMP(1) NOT NULL DEFAULT '0000-00-00 00:00:00'", "… c='0000-00-00 00:00:00.0'"),
            ("ADD c DATETIME DEFAULT '2024-01-01 00:00:00+00:00'", "copy: values"),
            ("ADD c TEXT DEFAULT ('abc')", "… c='abc'"),
            ("ADD c TEXT NOT NULL DEFAULT ('')", "… c=''"),
            ("ADD c TEXT NOT NULL DEFAULT ''", "copy: values"),
            ("ADD c TEXT DEFAULT ('é')", "copy: values"),
            ("ADD c TEXT DEFAULT (NULL)", "… c=NULL"),
            ("ADD c TEXT DEFAULT ('a' 'b')", "copy: values"),
            ("ADD c TEXT DEFAULT (UPPER('a'))", "copy: values"),
            ("ADD c JSON DEFAULT ('{}')", "… c='{}'"),
            ("ADD c JSON DEFAULT ('[ ]')", "copy: values"),
            ("ADD c INT DEFAULT (7)", "… c=7"),
            ("ADD c INT DEFAULT (7 + 1)", "copy: values"),
            ("ADD c DATETIME NULL ON UPDATE CURRENT_TIMESTAMP(3)", "… c=NULL"),
            ("ADD c INT NOT NULL", "copy: values"),
            ("ADD c INT NOT NULL DEFAULT 7", "… c=7"),
            ("ADD c INT NOT NULL DEFAULT -7", "… c=-7"),
            ("ADD c INT NOT NULL DEFAULT '7'", "… c=7"),
            ("ADD c INT DEFAULT 7.5", "copy: values"),
            ("ADD c TINYINT DEFAULT 127", "… c=127"),
            ("ADD c TINYINT DEFAULT 128", "copy: values"),
            ("ADD c TINYINT UNSIGNED DEFAULT 255", "… c=255"),
            ("ADD c TINYINT UNSIGNED DEFAULT -1", "copy: values"),
            ("ADD c BOOL DEFAULT TRUE", "… c=1"),
            ("ADD c BOOLEAN NOT NULL DEFAULT false", "… c=0"),
            ("ADD c BIGINT UNSIGNED DEFAULT 18446744073709551615", "… c=18446744073709551615"),
            ("ADD c BIGINT DEFAULT -9223372036854775808", "… c=-9223372036854775808"),
            ("ADD c BIGINT DEFAULT 9223372036854775808", "copy: values"),
            ("ADD c DECIMAL(5,2) DEFAULT 1.5", "… c='1.50'"),
            ("ADD c DECIMAL(5,2) DEFAULT '-0.00'", "… c='0.00'"),
            ("ADD c DECIMAL(5,2) DEFAULT -.5", "… c='-0.50'"),
            ("ADD c DECIMAL(5,2) DEFAULT 1.005", "copy: values"),
            ("ADD c DECIMAL(5,2) DEFAULT 1000", "copy: values"),
            ("ADD c DECIMAL DEFAULT 12", "… c='12'"),
            ("ADD c DOUBLE DEFAULT 0.1", "… c=0.1"),
            ("ADD c FLOAT DEFAULT 0.1", "… c=0.10000000149011612"),
            ("ADD c FLOAT(7,2) DEFAULT 0.1", "copy: values"),
            ("ADD c DOUBLE DEFAULT 1e3", "copy: values"),
            ("ADD c DOUBLE DEFAULT -0", "copy: values"),
            ("ADD c DOUBLE DEFAULT -0.25", "… c=-0.25"),
            ("ADD c FLOAT(7,2)", "… c=NULL"),
            ("ADD c BIT(3) DEFAULT b'101'", "… c=5"),
            ("ADD c BIT(3) DEFAULT b'1101'", "copy: values"),
            (
                "ADD c BIT(64) DEFAULT 0b1111111111111111111111111111111111111111111111111111111111111111",
                "… c=18446744073709551615",
            ),
            ("ADD c YEAR DEFAULT 2024", "… c=2024"),
            ("ADD c YEAR DEFAULT '24'", "copy: values"),
            ("ADD c DATE DEFAULT '2024-02-29'", "… c='2024-02-29'"),
            ("ADD c DATE DEFAULT '2023-02-29'", "copy: values"),
            ("ADD c DATE DEFAULT '2024-2-9'", "copy: values"),
            ("ADD c DATE DEFAULT 20240229", "copy: values"),
            ("ADD c DATE DEFAULT '0000-00-00'", "… c='0000-00-00'"),
            ("ADD c DATETIME(3) DEFAULT '2024-02-29 23:59:59.5'", "… c='2024-02-29 23:59:59.500'"),
            ("ADD c DATETIME DEFAULT '2024-02-29 23:59:59.5'", "copy: values"),
            ("ADD c DATETIME DEFAULT '2024-02-29 24:00:00'", "copy: values"),
            ("ADD c DATETIME DEFAULT CURRENT_TIMESTAMP", "copy: values"),
            ("ADD c DATETIME DEFAULT NOW(6) ON UPDATE NOW(6)", "copy: values"),
            ("ADD c TIME(2) DEFAULT '100:00:00'", "… c='100:00:00.00'"),
            ("ADD c TIME DEFAULT '10:00'", "copy: values"),
            ("ADD c CHAR(5) DEFAULT 'ab  '", "… c='ab'"),
            ("ADD c VARCHAR(5) DEFAULT 'ab  '", "… c='ab  '"),
            ("ADD c VARCHAR(5) DEFAULT ''", "… c=''"),
            ("ADD c VARCHAR(5) NOT NULL DEFAULT 'it''s'", "… c='it's'"),
            ("ADD c VARCHAR(5) NOT NULL DEFAULT 'a\\tb'", "… c='a\tb'"),
            ("ADD c VARCHAR(5) DEFAULT \"q\"", "… c='q'"),
            ("ADD c VARCHAR(5) DEFAULT 'é'", "copy: values"),
            ("ADD c VARCHAR(5) DEFAULT 5", "copy: values"),
            ("ADD c VARCHAR(2) DEFAULT 'abc'", "copy: values"),
            ("ADD c VARCHAR(5) DEFAULT 'a' 'b'", "copy: not_understood"),
            ("ADD c VARCHAR(5) DEFAULT _latin1'a'", "copy: not_understood"),
            (
                "ADD c VARCHAR(5) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'a' COMMENT 'x, y'",
                "… c='a'",
            ),
            ("ADD c VARCHAR(5) DEFAULT (UUID())", "copy: values"),
            ("ADD c VARCHAR(5) CHARACTER SET binary", "copy: not_understood"),
            ("ADD c BINARY(3) DEFAULT 'a'", "… c=[61, 00, 00]"),
            ("ADD c VARBINARY(3) DEFAULT x'00ff'", "… c=[00, ff]"),
            ("ADD c VARBINARY(3) DEFAULT 0xf", "… c=[0f]"),
            ("ADD c ENUM('x','y') DEFAULT 'y'", "… c='y'"),
            ("ADD c ENUM('x','y') DEFAULT 'Y'", "copy: values"),
            ("ADD c ENUM('x','y') DEFAULT 2", "copy: values"),
            ("ADD c SET('x','y','z') NOT NULL DEFAULT 'x,z'", "… c='x,z'"),
            ("ADD c SET('x','y','z') DEFAULT 'z,x'", "copy: values"),
            ("ADD c SET('x','y','z') DEFAULT ''", "… c=''"),
            ("ADD c JSON, ADD g POINT SRID 4326, ADD v VECTOR(3)", "… c=NULL g=NULL v=NULL"),
            ("ADD c JSON DEFAULT (JSON_ARRAY())", "copy: values"),
            ("ADD c INT AS (id + 1)", "copy: values"),
            ("ADD c INT GENERATED ALWAYS AS (id + 1) STORED", "copy: values"),
            ("ADD c INT AUTO_INCREMENT UNIQUE", "copy: values"),
            ("ADD c INT PRIMARY KEY", "copy: values"),
            ("ADD c INT KEY", "copy: values"),
            ("ADD c SERIAL", "copy: not_understood"),
            ("ADD c INT UNIQUE KEY", "… c=NULL"),
            ("ADD c INT INVISIBLE", "… c=NULL"),
            ("ADD c INT CHECK (c > 0) NOT ENFORCED", "… c=NULL"),
            ("ADD c INT REFERENCES p (id) ON DELETE SET NULL", "… c=NULL"),
            ("ADD c INT, ADD INDEX (c), ALGORITHM=INPLACE, LOCK=NONE", "… c=NULL"),
            ("ADD c NCHAR(3)", "copy: not_understood"),
            ("ADD c TEXT(100)", "copy: not_understood"),
            ("ADD c NEWTYPE", "copy: not_understood"),
        ],
    );
}

#[test]
fn columns_that_go_and_change_their_names() {
    check_plans(
        &PLAIN,
        &[
            ("DROP a", "id n d e ts f b"),
            ("DROP COLUMN a, DROP COLUMN `b`", "id n d e ts f"),
            ("DROP A", "id n d e ts f b"),
            ("DROP COLUMN nosuch", "copy: no_such_column"),
            ("DROP COLUMN a, ADD COLUMN a INT", "id n d e ts f b a=NULL"),
            ("RENAME COLUMN a TO c", "id c<a n d e ts f b"),
            ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "id b<a n d e ts f a<b"),
            ("RENAME COLUMN a TO n", "copy: not_understood"),
            ("CHANGE a c VARCHAR(10)", "id c<a n d e ts f b"),
            ("CHANGE COLUMN a c VARCHAR(20) FIRST", "c<a id n d e ts f b"),
            ("CHANGE a c VARCHAR(20), ADD g INT AFTER c", "id c<a g=NULL n d e ts f b"),
            ("MODIFY a VARCHAR(10) AFTER d", "id n d a e ts f b"),
            ("RENAME COLUMN a TO c, DROP COLUMN a", "copy: not_understood"),
        ],
    );
}

#[test]
fn types_that_widen_and_types_that_do_not() {
    check_plans(
        &PLAIN,
        &[
            ("MODIFY id BIGINT NOT NULL", "…"),
            ("MODIFY id BIGINT NOT NULL AUTO_INCREMENT", "id# a n d e ts f b"),
            ("MODIFY id BIGINT UNSIGNED NOT NULL", "copy: type"),
            ("MODIFY id SMALLINT NOT NULL", "copy: type"),
            ("MODIFY n BIGINT NOT NULL", "…"),
            ("MODIFY n INT NOT NULL", "copy: type"),
            ("MODIFY a VARCHAR(20)", "…"),
            ("MODIFY a VARCHAR(9)", "copy: type"),
            ("MODIFY a VARCHAR(20) CHARACTER SET utf8mb4", "…"),
            ("MODIFY a VARCHAR(20) COLLATE utf8mb4_bin", "…"),
            ("MODIFY a VARCHAR(20) CHARSET latin1", "copy: type"),
            ("MODIFY a TEXT", "copy: type"),
            ("MODIFY a CHAR(10)", "copy: type"),
            ("MODIFY a VARCHAR(10) NOT NULL", "…"),
            ("MODIFY d DECIMAL(7,2)", "…"),
            ("MODIFY d DECIMAL(7,4)", "id a n d+2 e ts f b"),
            ("MODIFY d DECIMAL(6,4)", "copy: type"),
            ("MODIFY d DECIMAL(6,1)", "copy: type"),
            ("MODIFY d DECIMAL(7,2) UNSIGNED", "copy: type"),
            ("MODIFY e ENUM('x','y','z')", "…"),
            ("MODIFY e ENUM('y','x')", "copy: type"),
            ("MODIFY e ENUM('x')", "copy: type"),
            ("MODIFY ts DATETIME(3)", "id a n d e ts+.3 f b"),
            ("MODIFY ts TIMESTAMP NULL", "copy: type"),
            ("MODIFY f DOUBLE", "…"),
            ("MODIFY f DOUBLE(9,2)", "copy: type"),
            ("MODIFY f FLOAT(7,2)", "copy: type"),
            ("MODIFY b VARBINARY(8)", "…"),
            ("MODIFY b BINARY(4)", "copy: type"),
            ("MODIFY b BLOB", "copy: type"),
            ("MODIFY n INT UNSIGNED NOT NULL DEFAULT 5 COMMENT 'x'", "…"),
            ("MODIFY n INT AS (id)", "copy: values"),
            ("CONVERT TO CHARACTER SET utf8mb4", "copy: type"),
            ("MODIFY nosuch INT", "copy: no_such_column"),
        ],
    );
    // What does not fit is bent without a strict mode.
    check_plans(
        &NO_STRICT,
        &[
            ("MODIFY a VARCHAR(20)", "copy: type"),
            ("MODIFY a VARCHAR(20) CHARACTER SET utf8mb4", "…"),
            ("MODIFY a VARCHAR(20) CHARACTER SET utf8mb4 NOT NULL", "copy: values"),
            ("MODIFY d DECIMAL(7,2) NOT NULL", "copy: values"),
            ("ADD PRIMARY KEY (a)", "copy: values"),
            ("ADD CONSTRAINT PRIMARY KEY (a)", "copy: values"),
        ],
    );
}

#[test]
fn what_is_about_no_column() {
    check_plans(
        &PLAIN,
        &[
            ("ADD INDEX (a)", "copied"),
            ("ADD UNIQUE KEY u (a), DROP INDEX v, RENAME INDEX a TO b", "copied"),
            ("ADD PRIMARY KEY (id)", "copied"),
            ("DROP PRIMARY KEY", "copied"),
            ("DROP FOREIGN KEY x, DROP CHECK y, DROP CONSTRAINT z", "copied"),
            ("ALTER INDEX i INVISIBLE, ALTER CHECK c NOT ENFORCED, ALTER CONSTRAINT c ENFORCED", "copied"),
            ("ALTER a SET INVISIBLE, ALTER COLUMN n SET VISIBLE", "copied"),
            // Of generated columns, for which somebody else looks.
            ("ALTER a SET DEFAULT 'x', ALTER COLUMN n DROP DEFAULT", "id a n d e ts f b"),
            ("COMMENT='x', AUTO_INCREMENT=5 ENGINE=InnoDB", "copied"),
            ("DEFAULT CHARACTER SET latin1", "copied"),
            ("ORDER BY a, n", "copied"),
            ("ADD PARTITION (PARTITION p VALUES LESS THAN (9))", "copied"),
            ("PARTITION BY HASH (id) PARTITIONS 4", "copied"),
            ("COALESCE PARTITION 2", "copied"),
            ("REMOVE PARTITIONING", "copied"),
            ("REORGANIZE PARTITION", "copied"),
            ("REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (`IN`))", "copied"),
            ("REORGANIZE PARTITION p INTO (PARTITION q VALUES IN (1))", "copy: rows_elsewhere"),
            ("FORCE, ALGORITHM=COPY", "copied"),
            ("DROP PARTITION p", "copy: rows_elsewhere"),
            ("TRUNCATE PARTITION p", "copy: rows_elsewhere"),
            ("EXCHANGE PARTITION p WITH TABLE u", "never: rows_elsewhere"),
            ("DISCARD TABLESPACE", "never: rows_elsewhere"),
            ("IMPORT TABLESPACE", "never: rows_elsewhere"),
            ("ENGINE=BLACKHOLE", "never: rows_elsewhere"),
            ("ENGINE=MERGE UNION=(u)", "never: rows_elsewhere"),
            ("SOMETHING_NEW 5", "never: rows_elsewhere"),
        ],
    );
}

#[test]
fn the_way_text_is_read_follows_sql_mode_and_character_set() {
    let ansi = Context { sql_mode: PLAIN.sql_mode | ANSI_QUOTES, ..PLAIN };
    check_plans(
        &ansi,
        &[("ADD \"c\" INT", "… c=NULL"), ("ADD c VARCHAR(5) DEFAULT \"q\"", "copy: not_understood")],
    );
    let plain = Context { sql_mode: PLAIN.sql_mode | NO_BACKSLASH_ESCAPES, ..PLAIN };
    check_plans(&plain, &[("ADD c VARCHAR(5) DEFAULT 'a\\'", "… c='a\\'")]);
    let real = Context { sql_mode: PLAIN.sql_mode | 1, ..PLAIN };
    check_plans(&real, &[("ADD c REAL DEFAULT 0.1", "… c=0.10000000149011612")]);
    check_plans(
        &PLAIN,
        &[
            ("ADD c REAL DEFAULT 0.1", "… c=0.1"),
            ("/*!80000 ADD c INT */", "… c=NULL"),
            ("ADD c INT /* , DROP a */ -- x", "… c=NULL"),
        ],
    );
    // In gbk the second byte of 歕 is a backslash.
    let gbk = Context { client_charset: 28, ..PLAIN };
    let text = b"ALTER TABLE t ADD `\x9a\x5c` VARCHAR(5) DEFAULT 'a'";
    let Statement::Ddl(ddl) = classify(text, &gbk) else { panic!() };
    assert_eq!(planned(&ddl.effect), "id a n d e ts f b 歕='a'");
}

#[test]
fn tables_that_come_and_go() {
    let name = |table: &str| TableName { schema: "d".into(), table: table.into() };
    let columns = |effect: SchemaEffect| match effect {
        SchemaEffect::CreateTable { columns: Some(columns), .. } => columns
            .iter()
            .map(|column| format!("{} {}", column.name, column.column_type))
            .collect::<Vec<_>>()
            .join(", "),
        other => format!("{other:?}"),
    };
    let of = |text: &str| effect_of(text, &PLAIN);
    assert_eq!(
        columns(of(
            "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, `a` varchar(5) DEFAULT 'x', PRIMARY KEY (id), \
             KEY k (a(3)), g INT AS (id+1) VIRTUAL, CONSTRAINT c CHECK (id > 0)) ENGINE=InnoDB"
        )),
        "id int, a varchar(5), g int"
    );
    assert_eq!(of("DROP TABLE IF EXISTS t, u"), SchemaEffect::DropTables([name("t"), name("u")].into()));
    assert_eq!(of("TRUNCATE t"), SchemaEffect::TruncateTable(name("t")));
    assert_eq!(of("DROP DATABASE x"), SchemaEffect::DropDatabase("x".into()));
    let like = SchemaEffect::CreateTableLike { table: name("t"), source: name("u"), if_not_exists: true };
    assert_eq!(of("CREATE TABLE IF NOT EXISTS t LIKE u"), like);
    for text in [
        "CREATE TABLE t (a INT) ENGINE=BLACKHOLE",
        "CREATE TABLE t (a INT) ENGINE=MERGE UNION=(u)",
        "CREATE TABLE t SELECT 1",
        "REPAIR TABLE t",
        "IMPORT TABLE FROM 'x'",
    ] {
        assert_eq!(of(text), SchemaEffect::Unfollowed(Unfollowed::RowsElsewhere), "{text}");
    }
    for text in [
        "CREATE VIEW v AS SELECT 1",
        "DROP VIEW v",
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
        "ANALYZE TABLE t",
        "GRANT SELECT ON t TO u",
        "CREATE DATABASE x",
        "ALTER DATABASE x CHARACTER SET latin1",
    ] {
        assert_eq!(of(text), SchemaEffect::Nothing, "{text}");
    }
    assert_eq!(of("WHAT IS THIS"), SchemaEffect::Unfollowed(Unfollowed::NotUnderstood));
}

#[test]
fn what_is_left_out_may_become_anything() {
    use crate::capture::CapturedSet;
    let set = CapturedSet::parse(&["d.t"], &[], &["d.t.a", "d.t.z"]).unwrap();
    let planned = |clauses: &str| {
        let text = format!("ALTER TABLE t {clauses}");
        let Statement::Ddl(ddl) = classify(text.as_bytes(), &PLAIN) else { panic!("{text}") };
        planned(&set.effect_of(&ddl).unwrap().effect)
    };
    for (clauses, expected) in [
        ("MODIFY a INT NOT NULL", "id a n d e ts f b"),
        ("CHANGE a z BLOB FIRST", "z<a id n d e ts f b"),
        ("ADD z INT NOT NULL DEFAULT (RAND())", "id a n d e ts f b z=NULL"),
        ("MODIFY n TINYINT", "copy: type"),
        ("CHANGE a y VARCHAR(10)", "copy: left_out_column"),
        ("CHANGE n z INT UNSIGNED", "copy: left_out_column"),
        ("ADD y INT NOT NULL", "copy: values"),
    ] {
        assert_eq!(planned(clauses), expected, "{clauses}");
    }
}

/// What decides is `old_alter_table` at times, which is not in the log: then it may.
#[test]
fn what_a_server_may_do_by_copying() {
    let may_copy = |text: &str| match effect_of(text, &PLAIN) {
        SchemaEffect::CopyTables(tables, _) => !tables.is_empty(),
        SchemaEffect::AlterTable { copies, .. } => copies.is_some(),
        SchemaEffect::Nothing => false,
        other => panic!("{text}: {other:?}"),
    };
    for (text, expected) in [
        ("ALTER TABLE t", false),
        ("ALTER TABLE t ADD z INT", true),
        ("ALTER TABLE t RENAME COLUMN a TO b", true),
        ("ALTER TABLE t RENAME INDEX a TO b", true),
        ("ALTER TABLE t RENAME u", false),
        ("ALTER TABLE t RENAME TO u, ALGORITHM=COPY", true),
        ("ALTER TABLE t RENAME u, COMMENT 'x'", true),
        ("ALTER TABLE t COMMENT 'ALGORITHM=INPLACE'", true),
        ("ALTER TABLE t ADD `algorithm` INT", true),
        ("ALTER TABLE t ADD z INT, ALGORITHM INPLACE", false),
        ("ALTER TABLE t ADD z INT, algorithm = instant", false),
        ("ALTER TABLE t ALGORITHM=COPY, ADD z INT, ALGORITHM=INPLACE", false),
        ("ALTER TABLE t ALGORITHM=INPLACE, ADD z INT, ALGORITHM=DEFAULT", true),
        ("ALTER TABLE t ADD z INT, LOCK=NONE", false),
        ("ALTER TABLE t ADD z INT, LOCK=NONE, LOCK=SHARED", true),
        ("ALTER TABLE t LOCK=NONE, ALGORITHM=COPY", true),
        ("ALTER TABLE t DISABLE KEYS", false),
        ("ALTER TABLE t ANALYZE PARTITION p", false),
        ("ALTER TABLE t REBUILD PARTITION p", true),
        ("ALTER TABLE t ADD PARTITION PARTITIONS 2", true),
        ("CREATE INDEX i ON t (a)", true),
        ("CREATE INDEX i ON t (a) COMMENT 'x' ALGORITHM = INPLACE LOCK DEFAULT", false),
        ("CREATE UNIQUE INDEX i ON t ((algorithm + 1)) LOCK NONE", false),
        ("DROP INDEX i ON t ALGORITHM COPY", true),
        ("DROP INDEX i ON t", true),
        ("OPTIMIZE NO_WRITE_TO_BINLOG TABLE t, u", true),
        ("ANALYZE TABLE t", false),
        ("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1", false),
    ] {
        assert_eq!(may_copy(text), expected, "{text}");
    }
}

/// The live tests ask a server the same.
#[test]
fn expressions_of_generated_columns() {
    use crate::value::Generation::{self, BySession, Computed, Given};
    let generations = |columns: &str| -> Vec<Generation> {
        match effect_of(&format!("CREATE TABLE t ({columns})"), &PLAIN) {
            SchemaEffect::CreateTable { columns: Some(columns), .. } => {
                columns.iter().map(|column| column.generation).collect()
            }
            other => panic!("{columns}: {other:?}"),
        }
    };
    for (columns, expected) in [
        ("a INT, b INT AS (a + 1)", [Given, Computed]),
        ("a INT, b INT AS (a - 1) VIRTUAL", [Given, Computed]),
        ("a INT, b INT GENERATED ALWAYS AS (a + 1) STORED NOT NULL", [Given, Computed]),
        ("a INT, b INT AS (A * `a`) STORED", [Given, Computed]),
        ("b INT AS (a + 1) STORED, a INT", [Computed, Given]),
        ("a INT, b INT AS (a - 1) STORED", [Given, BySession]),
        ("a INT, b INT AS (-a) STORED", [Given, BySession]),
        ("a INT, b INT AS (a / 1) STORED", [Given, BySession]),
        ("a INT, b INT AS (nosuch + 1) STORED", [Given, BySession]),
        ("a TIMESTAMP NULL, b BIGINT AS (a + 1) STORED", [Given, BySession]),
        ("a CHAR(3), b VARCHAR(9) AS (a) STORED", [Given, BySession]),
        ("a VARCHAR(3), b VARCHAR(9) AS (CONCAT(a, 'x')) STORED", [Given, Computed]),
        ("a VARCHAR(3), b VARCHAR(9) AS (CONCAT(a, 'ü')) STORED", [Given, BySession]),
        ("a VARCHAR(3), b VARCHAR(9) AS (concat(_utf8mb4'x', a)) STORED", [Given, Computed]),
        ("a VARCHAR(256), b TEXT AS (CONCAT(a)) STORED", [Given, Computed]),
        ("a VARCHAR(257), b TEXT AS (CONCAT(a)) STORED", [Given, BySession]),
        ("a TEXT, b TEXT AS (CONCAT(a)) STORED", [Given, BySession]),
        ("a TEXT, b TEXT AS (LEFT(a, 3)) STORED", [Given, Computed]),
        ("a JSON, b INT AS (a->'$.x') STORED", [Given, Computed]),
        ("a JSON, b INT AS (a->>\"$.x\") STORED", [Given, Computed]),
        ("a JSON, b DATE AS (a->>'$.x') STORED", [Given, BySession]),
        ("a DATE, b INT AS (YEAR(a)) STORED", [Given, BySession]),
        ("a DATE, b INT AS (a + 1) STORED", [Given, BySession]),
        ("a VARCHAR(9), b INT AS (YEAR(a)) STORED", [Given, BySession]),
        ("a INT, b CHAR(64) AS (SHA2(a, 256)) STORED", [Given, BySession]),
        ("a VARCHAR(9), b CHAR(64) AS (SHA2((a), 256)) STORED", [Given, BySession]),
        ("a VARCHAR(9), b CHAR(64) AS (`SHA2`(a, 256)) STORED", [Given, BySession]),
        ("a VARCHAR(9), b CHAR(64) AS (SHA2(a, 256)) STORED", [Given, Computed]),
        ("`div` INT, b INT AS (`div` DIV 2) STORED", [Given, BySession]),
    ] {
        assert_eq!(generations(columns), expected, "{columns}");
    }
    // One is as good as those it is made of.
    let chain = "a INT, b INT AS (a + 1) STORED, c INT AS (b + 1) STORED, d INT AS (a - 1), e INT AS (d + 1) STORED, \
                 f INT AS (e + b) STORED";
    assert_eq!(generations(chain), [Given, Computed, Computed, Computed, BySession, BySession]);
}

#[test]
fn a_type_is_read_as_it_is_written() {
    for text in [
        "tinyint",
        "bigint unsigned",
        "float",
        "double unsigned",
        "decimal(65,30)",
        "bit(64)",
        "year",
        "date",
        "time(6)",
        "datetime(0)",
        "timestamp(3)",
        "char(255)",
        "varchar(16383)",
        "tinytext",
        "longtext",
        "binary(255)",
        "varbinary(65535)",
        "mediumblob",
        "json",
        "geometry",
        "multilinestring",
        "vector(16383)",
        "enum('a','it''s','\\','')",
        "set('x','ü')",
    ] {
        let read = DeclaredType::parse(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(read.to_string(), text);
    }
}

#[test]
fn nothing_of_a_value_is_shown() {
    let effect = effect_of("ALTER TABLE t ADD c ENUM('SENTINEL') DEFAULT 'SENTINEL'", &PLAIN);
    let shown = format!("{effect:?} {:?}", RowValue::Text("SENTINEL".into()));
    assert!(!shown.contains("SENTINEL"), "{shown}");
}
