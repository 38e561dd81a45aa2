//! Statements and their answers: shapes, sizes, errors in the middle, the end of a session.

use crate::client::{Client, login, root};
use bytes::Bytes;
use capstan_core::link::error_packet::ERROR_MEANINGS;
use capstan_core::link::packet::PACKET_LEN_MAX;
use capstan_core::link::{
    Capabilities, ErrorMeaning, Query, QueryError, QueryLimits, QueryResult, QueryStep, RegisterReplica,
    command,
};
use capstan_mysql::{Flavour, Server};

/// The same answers in the form with EOF packets (5.6) and in the one without (9.7), and however the
/// socket cuts them.
#[test]
fn answers_of_both_forms() {
    for (flavour, deprecate_eof) in [(Flavour::Mysql97, true), (Flavour::Mysql56, false)] {
        let server = Server::builder().flavour(flavour).start().unwrap();
        for read_len in [1, 7, 16 * 1024] {
            let mut client = Client::connect_reading(&server, login("root", ""), read_len).unwrap();
            assert_eq!(client.session.capabilities.contains(Capabilities::DEPRECATE_EOF), deprecate_eof);

            let rows = client.rows("SELECT 7 AS a, NULL AS b, 'x' AS `ö` UNION ALL SELECT 8, 'y', ''");
            let names: Vec<&str> = rows.columns.iter().map(|column| &*column.name).collect();
            assert_eq!(names, ["a", "b", "ö"]);
            let text = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
            assert_eq!(rows.rows, [[text("7"), None, text("x")], [text("8"), text("y"), text("")]]);

            assert!(client.rows("SELECT 1 FROM DUAL WHERE 1 = 0").rows.is_empty());
            client.run("DO 1");
            failed(&mut client, "SELECT nope", 1054);
            // After two rows are out.
            let sql =
                "SELECT exp(710 * (n = 3)) FROM (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3) t";
            failed(&mut client, sql, 1690);
            // The session is in step after all of it.
            assert_eq!(client.text("SELECT 'still here'"), "still here");
        }
    }
}

fn failed(client: &mut Client, sql: &str, number: u16) {
    match client.try_query(sql).unwrap() {
        QueryResult::Failed(error) => assert_eq!(error.number(), number, "{sql}"),
        other => panic!("{sql}: {other:?}"),
    }
}

/// More packets than sequence ids, and payloads around the longest packet.
#[test]
fn many_rows_and_long_rows() {
    let server = Server::builder().option("--max-allowed-packet=64M").start().unwrap();
    let mut client = root(&server);
    client.run("SET SESSION cte_max_recursion_depth = 2000");
    let sql =
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1500) SELECT i FROM n";
    let rows = client.rows(sql);
    let numbers: Vec<String> =
        rows.rows.iter().map(|row| String::from_utf8(row[0].as_ref().unwrap().to_vec()).unwrap()).collect();
    assert_eq!(numbers, (1..=1500).map(|i| i.to_string()).collect::<Vec<_>>());

    // A row is its cell behind 4 bytes of length, from 2^24 bytes on behind 9.
    let exact = PACKET_LEN_MAX - 4;
    for len in [exact - 1, exact, exact + 1, PACKET_LEN_MAX, PACKET_LEN_MAX + 1, 2 * PACKET_LEN_MAX - 9] {
        let rows = client.rows(&format!("SELECT REPEAT('x', {len}) AS long_one, 'end' AS e"));
        let cell = rows.cell(0, 0).unwrap().unwrap();
        assert!(cell.len() == len && cell.iter().all(|&byte| byte == b'x'), "{len}");
        assert_eq!(rows.cell(0, 1), Some(Some(&Bytes::from_static(b"end"))));
        let alone = client.rows(&format!("SELECT REPEAT('x', {len})"));
        assert_eq!(alone.cell(0, 0).unwrap().unwrap().len(), len);
    }
    // And in the other direction: a statement longer than a packet.
    for len in [PACKET_LEN_MAX - 18, PACKET_LEN_MAX + 10] {
        let sql = format!("SELECT LENGTH('{}')", "y".repeat(len));
        assert_eq!(client.text(&sql), len.to_string());
    }
}

#[test]
fn an_answer_over_the_limit() {
    let server = Server::builder().start().unwrap();
    let few = QueryLimits { rows: 2, bytes: 10_000 };
    for sql in ["SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3", "SELECT REPEAT('x', 20000)"] {
        let mut client = root(&server);
        assert_eq!(client.query_within(sql, few), Err(QueryError::TooLarge), "{sql}");
    }
}

/// The names and numbers by which errors are judged are the server's own.
#[test]
fn error_numbers_have_the_names_we_think() {
    let server = Server::builder().start().unwrap();
    let sql = "SELECT ERROR_NUMBER, ERROR_NAME FROM performance_schema.events_errors_summary_global_by_error";
    let rows = root(&server).rows(sql).rows;
    assert!(rows.len() > 1000);
    for (number, name, _) in ERROR_MEANINGS {
        let number = number.to_string();
        let row = rows.iter().find(|row| row[0].as_deref() == Some(number.as_bytes())).unwrap();
        // 8.0 still says MASTER where later versions say SOURCE.
        let found = String::from_utf8_lossy(row[1].as_deref().unwrap()).replace("MASTER", "SOURCE");
        assert_eq!(found, name, "{number}");
    }
}

/// `wait_timeout` ends a session with an error that answers no command and has id 0.
#[test]
fn an_idle_session_is_told_why_it_ends() {
    let server = Server::builder().start().unwrap();
    // Read before a command, and as the answer to one.
    for ask in [false, true] {
        let mut client = root(&server);
        client.rows("SELECT 1 UNION ALL SELECT 2");
        client.run("SET SESSION wait_timeout = 1");
        let mut watch = root(&server);
        let id = client.session.connection_id;
        let alive = format!("SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_ID = {id}");
        while watch.text(&alive) != "0" {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        if ask {
            client.send(&command::query(b"SELECT 1"));
        }
        let payload = client.receive().expect("closed without a word");
        let query = Query::new(client.session.capabilities, QueryLimits::default());
        let step = query.on_payload(&payload.bytes).unwrap();
        let QueryStep::Done(QueryResult::Failed(error)) = step else { panic!("{step:?}") };
        assert_eq!((error.number(), error.meaning()), (4031, ErrorMeaning::Transient));
        assert!(client.receive().is_none());
    }
}

#[test]
fn operators_can_see_us() {
    let server = Server::builder().start().unwrap();
    let mut client = root(&server);
    let attributes = "SELECT GROUP_CONCAT(ATTR_NAME, '=', ATTR_VALUE ORDER BY ATTR_NAME) \
        FROM performance_schema.session_connect_attrs WHERE PROCESSLIST_ID = CONNECTION_ID()";
    let want =
        concat!("_client_name=capstan,_client_version=", env!("CARGO_PKG_VERSION"), ",program_name=capstan");
    assert_eq!(client.text(attributes), want);
    assert_eq!(client.text("SELECT CONNECTION_ID()"), client.session.connection_id.to_string());

    client.send(&RegisterReplica { server_id: 4_000_000_007, host: "capstan.test", port: 3307 }.encode());
    assert_eq!(client.receive().unwrap().bytes[0], 0);
    let replicas = root(&server).rows("SHOW REPLICAS");
    let row: Vec<_> = replicas.single_row().unwrap().iter().map(|cell| cell.as_deref()).collect();
    assert_eq!(row[..3], [Some(&b"4000000007"[..]), Some(b"capstan.test"), Some(b"3307")]);

    client.send(&command::ping());
    assert_eq!(client.receive().unwrap().bytes[0], 0);
    client.send(&command::quit());
    assert!(client.receive().is_none());
}
