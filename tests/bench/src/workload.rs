//! What the server is made to write.

use capstan_mysql::Server;

use crate::Error;

/// Rows of 8 columns and about 250 bytes: `transactions` of `rows` each.
pub fn wide(server: &Server, transactions: u64, rows: u64) -> Result<(), Error> {
    server.sql(
        "CREATE DATABASE b; \
         CREATE TABLE b.n (n INT PRIMARY KEY); \
         SET SESSION cte_max_recursion_depth = 1000000; \
         INSERT INTO b.n WITH RECURSIVE s AS (SELECT 1 n UNION ALL SELECT n + 1 FROM s WHERE n < 10000) SELECT n FROM s; \
         CREATE TABLE b.t (id BIGINT PRIMARY KEY, a INT, b BIGINT UNSIGNED, c VARCHAR(64), d DATETIME(6), \
                           e DECIMAL(12,2), f DOUBLE, g VARCHAR(200))",
    )?;
    let mut script = String::new();
    for k in 0..transactions {
        script.push_str(&format!(
            "INSERT INTO b.t SELECT {k} * {rows} + n, n, n * 1000003, CONCAT('customer number ', n, ' of some street'), \
             '2026-11-29 12:00:00.123456' + INTERVAL n SECOND, n * 1.07, n / 7, REPEAT('payload ', 16) FROM b.n WHERE n <= {rows};\n"
        ));
    }
    server.sql(&script)?;
    Ok(())
}

/// Small transactions of ten rows each.
pub fn small(server: &Server, transactions: u64) -> Result<(), Error> {
    server.sql(
        "CREATE DATABASE b; \
         CREATE TABLE b.t (id BIGINT PRIMARY KEY, name VARCHAR(64), total DECIMAL(12,2), at DATETIME(6), note VARCHAR(200))",
    )?;
    let mut script = String::new();
    for k in 0..transactions {
        script.push_str("INSERT INTO b.t VALUES ");
        for n in 0..10 {
            let id = k * 10 + n;
            script.push_str(&format!(
                "{}({id},'customer {id}',{}.25,'2026-11-29 12:00:00.123456','a note of some length, as notes are')",
                if n == 0 { "" } else { "," },
                id % 1000
            ));
        }
        script.push_str(";\n");
    }
    server.sql(&script)?;
    Ok(())
}
