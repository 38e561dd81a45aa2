//! Every gate by its own code, on a server made so.
//!
//! Each case begins and ends with the same replica passing every gate, so that it is the one thing that
//! was changed which closes it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test says what it expects by panicking"
)]

use std::time::Duration;

use capstan::{Builder, Code, Detail, Halt, Start, Until};
use capstan_mysql::{Flavour, Server};
use capstan_tests::live::{Memory, hasty, replica_at, replica_of, run};

/// Dials, passes the gates and ends; or the halt.
fn gates(builder: Builder) -> Result<(), Halt> {
    run(builder.start(Start::Current).until(Until::Now).limits(hasty()), Memory::new()).map(drop)
}

fn opens(server: &Server, why: &str) {
    gates(replica_of(server)).unwrap_or_else(|halt| panic!("{why}: {halt}"));
}

/// What exactly it found, once it has ended by that code and named it.
fn closed(server: &Server, code: Code, named: &str) -> Option<Detail> {
    let halt = gates(replica_of(server)).expect_err(code.as_str());
    assert_eq!(halt.code, code, "{halt}");
    assert_eq!(halt.exit_status(), 3, "{halt}");
    assert!(halt.to_string().contains(named), "{named:?} not in: {halt}");
    halt.detail.map(|detail| *detail)
}

#[test]
fn settings_of_a_running_server() {
    let server = Server::start().expect("a server");
    opens(&server, "a server as it should be");
    let ladder = ["ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"];
    for mode in ladder {
        server
            .sql(&format!("SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = {mode}"))
            .unwrap();
        let found = closed(&server, Code::GtidModeNotOn, mode);
        assert_eq!(found, Some(Detail::Variable("gtid_mode", mode.to_owned())));
    }
    for mode in ["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"] {
        server.sql(&format!("SET GLOBAL gtid_mode = {mode}")).unwrap();
    }
    opens(&server, "gtid_mode is back");
    for (variable, value, good, code) in [
        ("binlog_format", "STATEMENT", "ROW", Code::BinlogFormatNotRow),
        ("binlog_format", "MIXED", "ROW", Code::BinlogFormatNotRow),
        ("binlog_row_image", "MINIMAL", "FULL", Code::BinlogRowImageNotFull),
        ("binlog_row_image", "NOBLOB", "FULL", Code::BinlogRowImageNotFull),
        ("binlog_row_metadata", "MINIMAL", "FULL", Code::BinlogRowMetadataNotFull),
    ] {
        server.sql(&format!("SET GLOBAL {variable} = '{value}'")).unwrap();
        let found = closed(&server, code, value);
        assert_eq!(found, Some(Detail::Variable(variable, value.to_owned())));
        server.sql(&format!("SET GLOBAL {variable} = '{good}'")).unwrap();
        opens(&server, variable);
    }
    server.sql("SET GLOBAL binlog_row_value_options = PARTIAL_JSON").unwrap();
    opens(&server, "partial updates are made whole");
    server.sql("SET GLOBAL binlog_row_value_options = ''").unwrap();
    privileges(&server);
}

/// Each privilege is named when it is missing, and the two are enough.
fn privileges(server: &Server) {
    for (user, grants, missing) in [
        ("none", &[][..], Some("REPLICATION CLIENT")),
        ("no_client", &["REPLICATION SLAVE ON *.*"][..], Some("REPLICATION CLIENT")),
        ("no_slave", &["REPLICATION CLIENT ON *.*"][..], Some("REPLICATION SLAVE")),
        ("enough", &["REPLICATION CLIENT ON *.*", "REPLICATION SLAVE ON *.*"][..], None),
    ] {
        server.user(user, "secret", grants).unwrap();
        let end = gates(replica_at(&server.url_for(user, "secret")));
        match (end, missing) {
            (Ok(()), None) => {}
            (Err(halt), Some(missing)) => {
                assert_eq!(halt.code, Code::MissingPrivilege, "{user}: {halt}");
                let Some(Detail::Privilege(named)) = halt.detail.as_deref() else { panic!("{user}: {halt}") };
                assert!(named.contains(missing), "{user}: {halt}");
                assert!(halt.server_error.is_some(), "{user}: {halt}");
            }
            (end, _) => panic!("{user}: {end:?}"),
        }
    }
}

#[test]
fn settings_that_need_a_restart() {
    let server = Server::builder()
        .options(["--innodb-native-foreign-keys=ON", "--log-replica-updates=OFF"])
        .start()
        .expect("a server");
    opens(&server, "no replica, so that it does not log what it applies is of no account");
    cascades(&server);
    // A replica that waits for its source in vain is one all the same.
    server
        .sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1, SOURCE_AUTO_POSITION = 1")
        .unwrap();
    closed(&server, Code::ReplicaUpdatesNotLogged, "log_replica_updates");
    server.sql("RESET REPLICA ALL").unwrap();
    opens(&server, "no replica any more");

    server.restart_with(&["--binlog-do-db=shop"]).unwrap();
    closed(&server, Code::BinlogFiltered, "binlog-do-db");
    server.restart_with(&["--skip-log-bin"]).unwrap();
    disabled(&server);
    server.restart_with(&["--innodb-read-only"]).unwrap();
    closed(&server, Code::ReaderEndpoint, "reader");
}

#[test]
fn an_ignored_schema() {
    let server = Server::builder().option("--binlog-ignore-db=junk").start().expect("a server");
    closed(&server, Code::BinlogFiltered, "junk");
}

/// Only captured tables are concerned, and an option allows it.
fn cascades(server: &Server) {
    server
        .sql(
            "CREATE DATABASE d; CREATE DATABASE other;
             CREATE TABLE d.p (id INT PRIMARY KEY);
             CREATE TABLE d.plain (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id))",
        )
        .unwrap();
    opens(server, "a foreign key that cascades nothing");
    for (n, rule) in ["ON DELETE CASCADE", "ON UPDATE CASCADE", "ON DELETE SET NULL", "ON UPDATE SET NULL"]
        .into_iter()
        .enumerate()
    {
        server
            .sql(&format!(
                "CREATE TABLE d.c{n} (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) {rule})"
            ))
            .unwrap();
        let found = closed(server, Code::UnloggedCascades, "cascade");
        assert_eq!(found, Some(Detail::Tables(vec![format!("d.c{n}")])), "{rule}");
        gates(replica_of(server).allow_unlogged_cascades(true)).expect("the option allows it");
        gates(replica_of(server).tables(["other.*"])).expect("the table is not captured");
        gates(replica_of(server).exclude([format!("d.c{n}")])).expect("the table is left out");
        blind(server);
        server.sql(&format!("DROP TABLE d.c{n}")).unwrap();
        opens(server, "the cascade is gone");
    }
}

/// The server shows nobody a foreign key of a table they may not see, so an account that sees none has seen nothing.
fn blind(server: &Server) {
    let replication = ["REPLICATION CLIENT ON *.*", "REPLICATION SLAVE ON *.*"];
    server.sql("DROP USER IF EXISTS blind").unwrap();
    server.user("blind", "secret", &replication).unwrap();
    let end = |grant: &str| {
        server.sql(&format!("GRANT {grant} TO blind")).unwrap();
        gates(replica_at(&server.url_for("blind", "secret"))).expect_err(grant)
    };
    for (grant, code, detail) in [
        ("USAGE ON *.*", Code::MissingPrivilege, Some(Detail::Privilege("PROCESS"))),
        ("PROCESS ON *.*", Code::MissingPrivilege, Some(Detail::Privilege("SELECT"))),
        ("SELECT ON d.*", Code::UnloggedCascades, None),
    ] {
        let halt = end(grant);
        assert_eq!(halt.code, code, "{grant}: {halt}");
        assert!(detail.is_none() || halt.detail.as_deref() == detail.as_ref(), "{grant}: {halt}");
    }
    let allowed = replica_at(&server.url_for("blind", "secret")).allow_unlogged_cascades(true);
    gates(allowed).expect("the option allows it");
}

/// A failover may say so for a while, so this one is tried again first.
fn disabled(server: &Server) {
    let limits = capstan::Limits { trouble_max: Duration::from_secs(4), ..hasty() };
    let memory = Memory::new();
    let replica = replica_of(server).start(Start::Current).limits(limits).build().unwrap();
    let handle = replica.handle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let halt = runtime.block_on(replica.run(memory)).expect_err("no log");
    assert_eq!(halt.code, Code::BinlogDisabled, "{halt}");
    assert!(handle.status().dials >= 2, "it was tried {} times", handle.status().dials);
}

#[test]
fn servers_that_are_not_supported() {
    for flavour in [Flavour::Mysql56, Flavour::MariaDb] {
        let server = Server::builder().flavour(flavour).start().expect("a server");
        let found = closed(&server, Code::UnsupportedServer, "8.0.14");
        assert_eq!(found, None, "it was understood, and refused");
    }
}
