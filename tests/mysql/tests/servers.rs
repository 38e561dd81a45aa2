//! The launcher against real servers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::time::Duration;

use capstan_mysql::{Flavour, LaunchError, Mysql, Server};

#[test]
fn two_servers_at_once_share_nothing() {
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| Server::start().unwrap());
        let two = scope.spawn(|| Server::start().unwrap());
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_ne!(one.port(), two.port());
    assert_ne!(one.folder(), two.folder());
    let identity = "SELECT @@server_uuid, @@server_id, @@port";
    assert_ne!(one.sql(identity).unwrap(), two.sql(identity).unwrap());
    one.sql("CREATE DATABASE only_one").unwrap();
    assert_eq!(two.sql("SHOW DATABASES LIKE 'only_one'").unwrap(), "");
    assert_ne!(one.ca_pem().unwrap(), two.ca_pem().unwrap());
}

#[test]
fn a_source_is_as_capstan_wants_it_and_its_answers_are_the_servers_own() {
    let server = Server::builder().option("--binlog-row-image=MINIMAL").start().unwrap();
    let settings = "SELECT @@gtid_mode, @@binlog_format, @@binlog_row_metadata, @@binlog_row_image, @@log_bin, @@time_zone";
    assert_eq!(server.sql(settings).unwrap(), "ON\tROW\tFULL\tMINIMAL\t1\t+00:00\n");
    assert_eq!(server.gtid_executed().unwrap(), "", "a new server has no history");

    let text = server.sql("SELECT NULL, 'ü😀', X'FF'; DO 1; SELECT 2 UNION SELECT 3").unwrap();
    assert_eq!(text, "NULL\tü😀\t\u{fffd}\n2\n3\n");
    let rows = server.sql_rows("SELECT 1; SELECT NULL, '', REPEAT('x', 70000)").unwrap();
    assert_eq!(rows, [[None, Some(String::new()), Some("x".repeat(70_000))]]);
    let error = server.sql("SELECT 1; SELECT * FROM nowhere.t; SELECT 2").unwrap_err();
    assert_eq!(error.code(), Some(1049));

    // A script with a stored program and more than one packet of text.
    let script = format!(
        "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT);
         CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.id = NEW.id + 1; SET NEW.id = NEW.id * 10; END;
         INSERT INTO t VALUES (1, '{}')",
        "y".repeat(17 << 20)
    );
    let file = server.folder().join("script.sql");
    std::fs::write(&file, script).unwrap();
    server.sql_file(&file).unwrap();
    assert_eq!(server.sql("SELECT id, LENGTH(v) FROM d.t").unwrap(), format!("20\t{}\n", 17 << 20));

    let binlogs = server.binlogs().unwrap();
    assert_eq!(&std::fs::read(binlogs.last().unwrap()).unwrap()[..4], b"\xfebin");
    let events = server.mysqlbinlog(&[binlogs.last().unwrap()]).unwrap();
    assert!(String::from_utf8_lossy(&events).contains("CREATE DATABASE d"));
}

#[test]
fn accounts_keys_and_certificates_are_there() {
    let server = Server::start().unwrap();
    server.user("o'brien", "p\\'w", &["REPLICATION SLAVE ON *.*", "SELECT ON mysql.*"]).unwrap();
    let mut mysql = server.mysql().program("mysql").unwrap();
    let output = mysql
        .args(["--host=127.0.0.1", "--user=o'brien", "--password=p\\'w", "--ssl-mode=VERIFY_CA", "--batch"])
        .args([format!("--port={}", server.port()), format!("--ssl-ca={}", server.ca_path().display())])
        .args(["--skip-column-names", "--execute=SELECT CURRENT_USER(); SHOW STATUS LIKE 'Ssl_version'"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("o'brien@%\nSsl_version\tTLSv1."),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for (pem, kind) in [(server.ca_pem(), "CERTIFICATE"), (server.public_key_pem(), "PUBLIC KEY")] {
        let pem = pem.unwrap();
        assert!(pem.starts_with(&format!("-----BEGIN {kind}-----\n")), "{pem}");
        assert!(pem.ends_with(&format!("-----END {kind}-----\n")), "{pem}");
    }
    assert!(
        server.url().starts_with(&format!("mysql://root@127.0.0.1:{}/?ssl-mode=verify-ca", server.port()))
    );
    assert!(server.url_for("a@b", "p:w/ü").contains("//a%40b:p%3Aw%2F%C3%BC@"));
    assert!(server.socket().as_os_str().len() <= 100);
}

#[test]
fn a_killed_server_comes_back_on_its_port_with_its_data() {
    let server = Server::start().unwrap();
    server
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")
        .unwrap();
    let (uuid, port, pid) = (server.sql("SELECT @@server_uuid").unwrap(), server.port(), server.pid());
    server.kill9().unwrap();
    assert!(server.pid().is_none());
    assert!(server.sql("SELECT 1").is_err());
    assert!(matches!(server.kill9(), Err(LaunchError::NotRunning)));

    server.restart_with(&["--binlog-checksum=NONE"]).unwrap();
    assert_ne!(server.pid(), pid);
    assert_eq!(server.port(), port);
    assert_eq!(server.sql("SELECT @@server_uuid").unwrap(), uuid);
    assert_eq!(server.sql("SELECT id, @@binlog_checksum FROM d.t").unwrap(), "1\tNONE\n");
    assert_eq!(server.binlogs().unwrap().len(), 2);

    server.restart().unwrap();
    assert_eq!(server.sql("SELECT id, @@binlog_checksum FROM d.t").unwrap(), "1\tNONE\n");
    server.stop().unwrap();
    assert!(server.error_log().contains("Shutdown complete"));
}

#[test]
fn a_replica_follows_its_source() {
    let source = Server::start().unwrap();
    let replica = Server::builder().option("--super-read-only=ON").start().unwrap();
    replica.replica_of(&source).unwrap();
    assert_eq!(source.gtid_executed().unwrap(), "", "the replica's account leaves no trace");
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (7)")
        .unwrap();
    assert!(replica.wait_for_gtids(&source.gtid_executed().unwrap(), Duration::from_secs(60)).unwrap());
    assert_eq!(replica.sql("SELECT id FROM d.t").unwrap(), "7\n");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let error = Server::builder().option("--no-such-option").start().unwrap_err();
    assert!(matches!(&error, LaunchError::NotStarted { .. }));
    assert!(error.to_string().contains("no-such-option"), "{error}");
}

#[test]
fn dropping_a_server_leaves_nothing_also_when_a_test_panics() {
    let server = Server::start().unwrap();
    let (folder, pid) = (server.folder().to_owned(), server.pid().unwrap());
    assert!(runs(pid));
    let panicked = std::thread::spawn(move || {
        let _server = server;
        std::panic::resume_unwind(Box::new("as a failed assertion does"));
    });
    assert!(panicked.join().is_err());
    assert!(!runs(pid));
    assert!(!folder.exists());
}

#[test]
fn the_old_mysql_says_its_version() {
    let server = Server::builder().flavour(Flavour::Mysql56).start().unwrap();
    assert_eq!(server.sql("SELECT @@version, @@gtid_mode, @@log_bin").unwrap(), "5.6.24-log\tON\t1\n");
    server
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")
        .unwrap();
    server.kill9().unwrap();
    server.restart().unwrap();
    assert_eq!(server.sql("SELECT id FROM d.t").unwrap(), "1\n");
    assert!(server.url().ends_with("/?ssl-mode=disabled"));
}

#[test]
fn mariadb_says_its_version() {
    let server = Server::builder().flavour(Flavour::MariaDb).start().unwrap();
    let version = server.sql("SELECT @@version").unwrap();
    assert!(version.contains("-MariaDB"), "{version}");
    assert!(version.starts_with(server.version()), "{version} and {}", server.version());
    assert_eq!(server.sql("SELECT @@log_bin, @@binlog_format").unwrap(), "1\tROW\n");
}

#[test]
fn a_missing_program_is_named() {
    let mysql56 = Mysql::of(Flavour::Mysql56).unwrap();
    let error = mysql56.program("mysqlbinlog").unwrap_err();
    assert_eq!(error.to_string(), "this server comes without the program mysqlbinlog");
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
