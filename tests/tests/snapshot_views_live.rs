//! Tables read through views of a server that has little room: for statements, for connections, for long documents.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use capstan::sqlite::{Mirror, MirrorOptions};
use capstan::{Builder, Code, CopyLimits, Replica, Until};
use capstan_mysql::Server;
use capstan_tests::harness::{Follower, url_at};
use capstan_tests::mirror::assert_equal;
use capstan_tests::workload::quick_limits;

fn fill(server: &Server) {
    server
        .sql(
            "SET cte_max_recursion_depth = 10000; CREATE DATABASE d; USE d;
             CREATE TABLE t (k BIGINT UNSIGNED PRIMARY KEY, f FLOAT, de DECIMAL(20,5), ts TIMESTAMP(3) NULL, s VARCHAR(50), b BLOB,
                             j JSON, bi BIT(12), e ENUM('a','b'), se SET('x','y'), y YEAR, ti TIME(2), da DATE, dt DATETIME(6));
             INSERT INTO t WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 400)
               SELECT 18446744073709551615 - i * 3, i / 7, i / 9, FROM_UNIXTIME(i * 86399 + 1), CONCAT('é', i), REPEAT(x'00ff', i),
                 JSON_OBJECT('i', i, 'n', NULL), i, i % 2 + 1, i % 4, 1901 + i % 200, SEC_TO_TIME(-i * 999), '2024-02-29',
                 TIMESTAMP('2024-02-29 23:59:59.999999') FROM n;
             CREATE TABLE u (s VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, n INT);
             INSERT INTO u WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 200)
               SELECT CONCAT(ELT(i % 4 + 1, 'a', 'B', 'é', ''), i), NULLIF(i % 5, 0) FROM n;
             CREATE TABLE w (n INT, s TEXT); INSERT INTO w SELECT n, s FROM u;",
        )
        .unwrap();
}

fn copying(server: &Server, connections: u8) -> Builder {
    Replica::builder(url_at(server.port()).parse().unwrap())
        .limits(quick_limits())
        .tables(["d.*"])
        .snapshot(Vec::<String>::new())
        .copy(CopyLimits {
            connections: Some(connections),
            chunk_rows: 20,
            running_max: 0,
            ..CopyLimits::default()
        })
        .until(Until::Now)
}

fn open(path: &Path) -> Mirror {
    Mirror::open(path, MirrorOptions::default()).unwrap()
}

/// Red where rows are read by prepared statements alone, and where a refused connection is only dialled again: then neither is
/// copied, `source_unreachable`.
#[test]
fn a_server_without_room_for_statements_and_connections() {
    let server = Server::start().unwrap();
    fill(&server);
    let others = server.sql("SELECT COUNT(*) FROM performance_schema.processlist").unwrap();
    let others: u64 = others.trim().parse().unwrap();
    for (setting, connections) in [
        ("max_prepared_stmt_count = 0".to_owned(), 1),
        ("max_prepared_stmt_count = 0".to_owned(), 4),
        // The last of its statements finds no room now and then.
        ("max_prepared_stmt_count = 2".to_owned(), 8),
        // The stream, the lock, the comparisons, and two views.
        (format!("max_connections = {}", others + 4), 8),
    ] {
        server.sql(&format!("SET GLOBAL {setting}")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let (end, status) = Follower::blocking(copying(&server, connections), open(&path)).end();
        end.unwrap_or_else(|halt| panic!("{setting}: {halt:?}"));
        server.sql("SET GLOBAL max_prepared_stmt_count = 16382; SET GLOBAL max_connections = 151").unwrap();
        assert_equal(&server, "d", &path);
        assert_eq!(status.reconnects, 0, "{setting}");
    }
}

/// Of a document whose text is longer than `max_allowed_packet` the server sends an empty text and a warning (1301). Red where an
/// empty text is taken for a document.
#[test]
fn a_document_that_the_server_does_not_send_is_named() {
    let server = Server::start().unwrap();
    server
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.j (id INT PRIMARY KEY, doc JSON);
             INSERT INTO d.j VALUES (1, '[1]'), (2, JSON_ARRAY(REPEAT('x', 5000)))",
        )
        .unwrap();
    server.sql("SET GLOBAL max_allowed_packet = 4096").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let halt = Follower::blocking(copying(&server, 1), open(&path)).end().0.unwrap_err();
    assert_eq!(halt.code, Code::ValueMalformed);
    assert_eq!(halt.place.as_ref().and_then(|place| place.column.as_deref()), Some("doc"));
    assert!(format!("{halt}").contains("max_allowed_packet"), "{halt}");
    server.sql("SET GLOBAL max_allowed_packet = 67108864").unwrap();
    Follower::blocking(copying(&server, 1), open(&path)).end().0.unwrap();
    assert_equal(&server, "d", &path);
}
