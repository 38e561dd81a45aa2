//! `capstan check` against real servers: what is wrong is found by name, and what it says to run mends it.
//!
//! That each finding is seen bad, and good after its own statement and nothing else, is what tells that the
//! statement is the remedy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::{path::Path, time::Duration};

use capstan::{
    Decision, Expected, GtidSet, Position, Stored as _,
    checkpoint::FileCheckpoint,
    jsonl::{JsonFile, JsonOptions},
    sqlite::{Ledger, LedgerOptions, Mirror, MirrorOptions},
};
use capstan_mysql::Server;
use common::capstan;
use serde_json::Value;

/// The findings of one call.
struct Findings {
    status: i32,
    all: Value,
}

fn check(url: &str, more: &[&str]) -> Findings {
    let called = capstan(&[&["check", url, "-o", "json"][..], more].concat());
    let all = called.lines().first().unwrap_or_else(|| panic!("{called:?}")).clone();
    let findings = Findings { status: called.status, all };
    let refused = findings.list().iter().any(|finding| finding["verdict"] == "refuse");
    assert_eq!(findings.all["ready"], !refused && findings.all["complete"] == true, "{}", findings.all);
    assert_eq!(findings.status, i32::from(refused) * 3, "{}", findings.all);
    findings
}

impl Findings {
    fn list(&self) -> &[Value] {
        self.all["findings"].as_array().unwrap()
    }

    fn of(&self, gate: &str) -> &Value {
        let found: Vec<&Value> = self.list().iter().filter(|finding| finding["gate"] == gate).collect();
        let [one] = found.as_slice() else { panic!("{gate}: {}", self.all) };
        one
    }

    fn verdict(&self, gate: &str) -> &str {
        self.of(gate)["verdict"].as_str().unwrap()
    }

    /// The gates of one verdict.
    fn with(&self, verdict: &str) -> Vec<&str> {
        let all = self.list().iter().filter(|finding| finding["verdict"] == verdict);
        all.map(|finding| finding["gate"].as_str().unwrap()).collect()
    }
}

/// Runs what a finding says to run.
fn run_remedy(server: &Server, finding: &Value) {
    let statements = finding["statements"].as_array().unwrap();
    assert!(!statements.is_empty(), "nothing to run: {finding}");
    for statement in statements {
        let statement = statement.as_str().unwrap();
        server.sql(statement).unwrap_or_else(|error| panic!("{statement}: {error}\n{finding}"));
    }
}

/// The same for settings of the start. The servers here read no files, so what was persisted is given as an option.
fn restart_with_remedy(server: &Server, finding: &Value) {
    run_remedy(server, finding);
    let statement = finding["statements"][0].as_str().unwrap();
    let (name, value) = statement.strip_prefix("SET PERSIST_ONLY ").unwrap().split_once(" = ").unwrap();
    server.restart_with(&[&format!("--{}={value}", name.replace('_', "-"))]).unwrap();
}

/// A finding is of that verdict and code, and good once its statements were run.
fn mended(server: &Server, url: &str, more: &[&str], (gate, verdict, code): (&str, &str, Option<&str>)) {
    let before = check(url, more);
    let finding = before.of(gate);
    assert_eq!((finding["verdict"].as_str(), finding["code"].as_str()), (Some(verdict), code), "{finding}");
    assert_eq!(before.status, if verdict == "refuse" { 3 } else { before.status });
    run_remedy(server, finding);
    let after = check(url, more);
    assert_eq!(after.verdict(gate), "ok", "{}", after.of(gate));
}

#[test]
fn each_setting_that_is_wrong_is_named_and_its_remedy_mends_it() {
    let server = Server::builder().durable().start().expect("a server");
    let url = server.url();
    let good = check(&url, &[]);
    assert_eq!((good.with("refuse").len(), good.with("unknown").len()), (0, 0), "{}", good.all);
    for (spoil, finding) in [
        ("SET GLOBAL gtid_mode = ON_PERMISSIVE", ("gtid_mode", "refuse", Some("gtid_mode_not_on"))),
        (
            "SET GLOBAL gtid_mode = ON_PERMISSIVE; SET GLOBAL gtid_mode = OFF_PERMISSIVE; SET GLOBAL gtid_mode = OFF;
             SET GLOBAL enforce_gtid_consistency = OFF",
            ("gtid_mode", "refuse", Some("gtid_mode_not_on")),
        ),
        ("SET GLOBAL binlog_format = MIXED", ("binlog_format", "refuse", Some("binlog_format_not_row"))),
        (
            "SET GLOBAL binlog_row_image = NOBLOB",
            ("binlog_row_image", "refuse", Some("binlog_row_image_not_full")),
        ),
        (
            "SET GLOBAL binlog_row_metadata = MINIMAL",
            ("binlog_row_metadata", "refuse", Some("binlog_row_metadata_not_full")),
        ),
        ("SET GLOBAL server_id = 0", ("server_id", "refuse", Some("dump_refused"))),
        ("SET GLOBAL sync_binlog = 0", ("sync_binlog", "warn", None)),
        ("SET GLOBAL innodb_flush_log_at_trx_commit = 2", ("innodb_flush_log_at_trx_commit", "warn", None)),
        ("SET GLOBAL binlog_error_action = IGNORE_ERROR", ("binlog_error_action", "warn", None)),
        ("SET GLOBAL binlog_expire_logs_seconds = 3600", ("retention", "warn", None)),
        ("CREATE DATABASE d; CREATE TABLE d.none (a INT)", ("primary keys", "warn", None)),
        ("CREATE TABLE d.maybe (a INT UNIQUE)", ("primary keys", "warn", None)),
        ("CREATE TABLE d.unique_one (a INT, `b``x` INT NOT NULL UNIQUE)", ("primary keys", "warn", None)),
        ("CREATE TABLE d.a_part (a VARCHAR(9) NOT NULL, UNIQUE (a(3)))", ("primary keys", "warn", None)),
        ("CREATE TABLE d.my (a INT PRIMARY KEY) ENGINE = MyISAM", ("engines", "warn", None)),
        ("CREATE TABLE d.me (a INT PRIMARY KEY) ENGINE = MEMORY", ("engines", "warn", None)),
        (
            "CREATE TABLE d.`t``x` (a INT PRIMARY KEY); CREATE TABLE d.`T``x` (a INT PRIMARY KEY)",
            ("names", "warn", None),
        ),
        (
            "CREATE TABLE d.large (a INT PRIMARY KEY, b LONGBLOB); SET GLOBAL max_allowed_packet = 1073741824",
            ("row size", "warn", None),
        ),
    ] {
        server.sql(spoil).unwrap_or_else(|error| panic!("{spoil}: {error}"));
        mended(&server, &url, &[], finding);
    }
    // What is left out is nobody's business.
    server.sql("CREATE TABLE d.bad (a INT) ENGINE = MyISAM").unwrap();
    assert_eq!(check(&url, &["--tables", "d.*"]).with("warn"), check(&url, &[]).with("warn"));
    for more in [&["--exclude", "d.bad"][..], &["--tables", "other.*"]] {
        let found = check(&url, more);
        assert_eq!((found.verdict("primary keys"), found.verdict("engines")), ("ok", "ok"), "{more:?}");
    }
    server.sql("SET sql_generate_invisible_primary_key = ON; CREATE TABLE d.gipk (a INT)").unwrap();
    assert_eq!(check(&url, &["--tables", "d.gipk"]).verdict("primary keys"), "ok");
}

#[test]
fn settings_of_the_start_are_named_and_mended_by_a_restart() {
    let server = Server::builder().option("--innodb-native-foreign-keys=ON").start().expect("a server");
    let url = server.url();
    server
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.p (id INT PRIMARY KEY);
             CREATE TABLE d.c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE)",
        )
        .unwrap();
    let found = check(&url, &[]);
    assert_eq!(found.of("foreign keys")["code"], "unlogged_cascades");
    assert!(found.of("foreign keys")["found"].as_str().unwrap().contains("d.c"));
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("c.toml");
    std::fs::write(&config, "allow-unlogged-cascades = true\n").unwrap();
    let allowed = check(&url, &["--config", config.to_str().unwrap()]);
    assert_eq!((allowed.verdict("foreign keys"), allowed.status), ("warn", 0));
    std::fs::write(&config, "tables = ['other.*']\n").unwrap();
    assert_eq!(check(&url, &["--config", config.to_str().unwrap()]).verdict("foreign keys"), "ok");
    // Who cannot see the table has not seen that it has none.
    server.user("blind", "secret", &["REPLICATION CLIENT ON *.*", "REPLICATION SLAVE ON *.*"]).unwrap();
    let blind = server.url_for("blind", "secret");
    let found = check(&blind, &[]);
    assert_eq!(found.verdict("foreign keys"), "unknown");
    assert_eq!(found.of("privilege to see cascades")["code"], "missing_privilege");
    run_remedy(&server, found.of("privilege to see cascades"));
    let found = check(&blind, &[]);
    assert_eq!(
        (found.verdict("privilege to see cascades"), found.verdict("foreign keys")),
        ("ok", "unknown"),
        "{}",
        found.all
    );
    run_remedy(&server, found.of("foreign keys"));
    assert_eq!(check(&blind, &[]).of("foreign keys")["code"], "unlogged_cascades");

    restart_with_remedy(&server, check(&url, &[]).of("foreign keys"));
    assert_eq!(check(&url, &[]).verdict("foreign keys"), "ok");

    server.restart_with(&["--binlog-ignore-db=junk"]).unwrap();
    assert_eq!(check(&url, &[]).of("log filters")["code"], "binlog_filtered");
    server.restart_with(&["--skip-log-bin"]).unwrap();
    let no_log = check(&url, &[]);
    assert_eq!(no_log.of("log_bin")["code"], "binlog_disabled");
    // Nothing that a grant would show.
    let oldest = no_log.of("oldest log file");
    assert_eq!(
        (&oldest["found"], oldest["statements"].as_array().unwrap().len()),
        (&"the server writes no log".into(), 0)
    );
    server.restart_with(&["--innodb-read-only"]).unwrap();
    assert_eq!(check(&url, &[]).of("log_bin")["code"], "reader_endpoint");
}

/// Red when what could not be asked for is taken as good.
#[test]
fn what_an_account_cannot_see_is_unknown_and_its_remedy_shows_it() {
    let server = Server::start().expect("a server");
    server.sql("CREATE DATABASE d_x; CREATE TABLE d_x.t (a INT PRIMARY KEY)").unwrap();
    let tables = ["primary keys", "engines", "names", "types", "width", "row size", "tables"];
    for (user, grants, refused, unknown) in [
        (
            "none",
            &[][..],
            &["privilege to stream", "privilege to ask"][..],
            &["log filters", "our server id", "semi-sync", "oldest log file"][..],
        ),
        ("slave", &["REPLICATION SLAVE ON *.*"], &["privilege to ask"], &["log filters", "oldest log file"]),
        ("enough", &["REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*"], &[], &[]),
    ] {
        server.user(user, "secret", grants).unwrap();
        let url = server.url_for(user, "secret");
        let found = check(&url, &["--tables", "d_x.*"]);
        assert_eq!(found.with("refuse"), refused, "{user}");
        let mut hidden = found.with("unknown");
        hidden.retain(|gate| !tables.contains(gate));
        assert_eq!(hidden, unknown, "{user}: {}", found.all);
        for gate in tables {
            assert_eq!(found.verdict(gate), "unknown", "{user}, {gate}");
        }
        for gate in refused.iter().chain(unknown).chain(&["tables", "privileges to copy", "tls required"]) {
            let gate = *gate;
            let now = check(&url, &["--tables", "d_x.*"]);
            if now.verdict(gate) != "ok" {
                run_remedy(&server, now.of(gate));
                let after = check(&url, &["--tables", "d_x.*"]);
                assert_eq!(after.verdict(gate), "ok", "{user}: {}", after.of(gate));
            }
        }
        let all = check(&url, &["--tables", "d_x.*"]);
        assert_eq!((all.status, all.with("unknown")), (0, vec![]), "{user}: {}", all.all);
        // Of what lies beyond, nothing is known still.
        assert_eq!(check(&url, &[]).verdict("tables"), "unknown", "{user}");
    }
}

#[test]
fn roles_and_partial_revokes_are_taken_into_account() {
    let server = Server::start().expect("a server");
    server
        .sql(
            "CREATE DATABASE d; CREATE DATABASE hidden; CREATE TABLE d.t (a INT PRIMARY KEY); CREATE TABLE hidden.t (a INT);
             CREATE ROLE stream; GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT, LOCK TABLES ON *.* TO stream",
        )
        .unwrap();
    server.user("by_role", "secret", &[]).unwrap();
    server.sql("GRANT stream TO by_role").unwrap();
    let url = server.url_for("by_role", "secret");
    let found = check(&url, &["--tables", "d.*"]);
    assert_eq!(found.verdict("privilege to stream"), "refuse");
    run_remedy(&server, found.of("roles"));
    let found = check(&url, &["--tables", "d.*"]);
    for gate in ["privilege to stream", "privilege to ask", "privileges to copy", "tables"] {
        assert_eq!(found.verdict(gate), "ok", "{}", found.of(gate));
    }
    server.sql("SET GLOBAL partial_revokes = ON").unwrap();
    server.user("partly", "secret", &["SELECT ON *.*"]).unwrap();
    server.sql("REVOKE SELECT ON hidden.* FROM partly").unwrap();
    let url = server.url_for("partly", "secret");
    for (tables, verdict) in
        [("d.*", "ok"), ("*.*", "unknown"), ("hidden.*", "unknown"), ("d.t,hidden.t", "unknown")]
    {
        assert_eq!(check(&url, &["--tables", tables]).verdict("primary keys"), verdict, "{tables}");
    }
}

#[test]
fn an_account_and_its_link_are_looked_at() {
    let server = Server::start().expect("a server");
    let all = ["ALL ON *.*"];
    server.user("u", "secret", &all).unwrap();
    let url = server.url_for("u", "secret");
    assert_eq!(check(&url, &[]).verdict("certificate"), "ok");
    assert_eq!(check(&url, &[]).verdict("certificate expiry"), "ok");
    assert!(check(&url, &[]).of("tls")["found"].as_str().unwrap().starts_with("TLSv1."));
    mended(&server, &url, &[], ("tls required", "warn", None));
    let lax = format!("mysql://u:secret@127.0.0.1:{}/?ssl-mode=required", server.port());
    assert_eq!(check(&lax, &[]).verdict("certificate"), "warn");
    for (sql, gate) in [
        ("ALTER USER u PASSWORD EXPIRE INTERVAL 90 DAY", "password expiry"),
        ("ALTER USER u PASSWORD EXPIRE DEFAULT; SET GLOBAL default_password_lifetime = 9", "password expiry"),
    ] {
        server.sql(sql).unwrap();
        mended(&server, &url, &[], (gate, "warn", None));
    }
    server
        .sql("CREATE USER old IDENTIFIED WITH sha256_password BY 'secret'; GRANT ALL ON *.* TO old")
        .unwrap();
    assert_eq!(check(&server.url_for("old", "secret"), &[]).verdict("login plugin"), "warn");
    let plain = format!(
        "mysql://old:secret@127.0.0.1:{}/?ssl-mode=disabled&allow-public-key-retrieval=true",
        server.port()
    );
    assert_eq!(check(&plain, &[]).verdict("tls"), "warn");
    // Shut out: told as a finding, too.
    server.sql("ALTER USER u PASSWORD EXPIRE").unwrap();
    let expired = check_shut_out(&url);
    assert!(expired["found"].as_str().unwrap().contains("expired"), "{expired}");
    server.sql("ALTER USER u IDENTIFIED BY 'secret'").unwrap();
    server.sql("ALTER USER u ACCOUNT LOCK").unwrap();
    mended_login(&server, &url);
    let wrong = check_shut_out(&server.url_for("u", "wrong"));
    assert_eq!(wrong["code"], "access_denied");
    let ours = server.port().to_string();
    let found = check(&url, &["--server-id", &ours]);
    assert_eq!((found.of("our server id")["code"].as_str(), found.status), (Some("server_id_conflict"), 3));
    assert_eq!(check(&url, &["--server-id", "77"]).verdict("our server id"), "ok");
}

/// The finding of a login that failed.
fn check_shut_out(url: &str) -> Value {
    let called = capstan(&["check", url, "-o", "json"]);
    assert_eq!(called.status, 3, "{called:?}");
    assert!(!called.out.contains("secret") && !called.err.contains("secret"), "{called:?}");
    let all = &called.lines()[0];
    assert_eq!((&all["complete"], &all["ready"]), (&Value::Bool(false), &Value::Bool(false)), "{all}");
    let finding = all["findings"][0].clone();
    assert_eq!((finding["gate"].as_str(), finding["verdict"].as_str()), (Some("login"), Some("refuse")));
    finding
}

fn mended_login(server: &Server, url: &str) {
    run_remedy(server, &check_shut_out(url));
    assert_eq!(check(url, &[]).verdict("login"), "ok");
}

/// Targets of each kind that stand at this set.
fn targets(folder: &Path, set: &GtidSet) -> Vec<String> {
    let decision = Decision { kind: "test".into(), subject: "all".into(), reason: "to begin with".into() };
    let position = Position::new(set.clone(), "tables=`d`.*;exclude=;exclude-columns=").claimed(7);
    let nothing = Expected::new(None);
    let at = |name: &str| folder.join(name);
    Mirror::open(at("m"), MirrorOptions::default()).unwrap().decide(&nothing, &position, &decision).unwrap();
    Ledger::open(at("l"), LedgerOptions::default()).unwrap().decide(&nothing, &position, &decision).unwrap();
    JsonFile::open(at("j"), JsonOptions::default()).unwrap().decide(&nothing, &position, &decision).unwrap();
    FileCheckpoint::open(at("p")).unwrap().decide(&nothing, &position, &decision).unwrap();
    ["sqlite:m", "sqlite:l?mode=ledger", "jsonl:j", "checkpoint:p"]
        .map(|target| target.replace(':', &format!(":{}/", folder.display())))
        .to_vec()
}

#[test]
fn a_stored_position_is_tested_as_a_connect_would() {
    let server = Server::start().expect("a server");
    server
        .sql("RESET BINARY LOGS AND GTIDS; CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)")
        .unwrap();
    let url = server.url();
    let fresh = check(&url, &[]);
    assert_eq!((fresh.verdict("start earliest"), fresh.verdict("oldest log file")), ("ok", "ok"));
    server
        .sql("INSERT INTO d.t VALUES (1); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (2); FLUSH BINARY LOGS; FLUSH BINARY LOGS")
        .unwrap();
    let oldest = check(&url, &[]);
    let told = oldest.of("oldest log file")["found"].as_str().unwrap();
    assert!(told.contains("expires in 29 days") || told.contains("expires in 30 days"), "{told}");
    let uuid = server.sql("SELECT @@server_uuid").unwrap().trim().to_owned();
    let set = |text: &str| text.replace('U', &uuid).parse::<GtidSet>().unwrap();
    let purge = "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY";
    for (at, purged, verdict, code) in [
        ("U:1-3", false, "ok", None),
        ("U:1-9", false, "refuse", Some("source_behind")),
        ("U:1-3,aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1", false, "refuse", Some("source_identity_mismatch")),
        ("U:1-2", true, "refuse", Some("data_gap")),
        ("U:1-4", true, "ok", None),
    ] {
        if purged {
            server.sql(purge).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let targets = targets(folder.path(), &set(at));
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        let file = folder.path().join("p");
        // In use by another process, which goes on.
        let _held = Ledger::open(folder.path().join("l"), LedgerOptions::default()).unwrap();
        for more in targets
            .iter()
            .map(|target| vec![target.as_str()])
            .chain([vec!["--checkpoint", file.to_str().unwrap()]])
        {
            let found = check(&url, &more);
            let finding = found.of("stored position");
            assert_eq!(
                (finding["verdict"].as_str(), finding["code"].as_str()),
                (Some(verdict), code),
                "{at}, {more:?}: {finding}"
            );
            assert_eq!(found.verdict("captured set"), "ok");
            let other = check(&url, &[&more[..], &["--tables", "e.*"]].concat());
            assert_eq!(other.of("captured set")["code"], "capture_set_changed");
        }
        let now = std::fs::read_dir(folder.path()).unwrap().filter(|entry| {
            // What SQLite keeps beside a database that is open.
            let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
            !name.ends_with("-wal") && !name.ends_with("-shm")
        });
        assert!(now.count() <= names, "nothing was made");
    }
    assert_eq!(check(&url, &[]).verdict("start earliest"), "warn");
    let none = tempfile::tempdir().unwrap();
    let target = format!("sqlite:{}", none.path().join("new").display());
    assert_eq!(check(&url, &[&target]).verdict("start current"), "ok", "nothing is stored yet");
    assert_eq!(std::fs::read_dir(none.path()).unwrap().count(), 0);
}

#[test]
fn what_a_failover_could_lose_is_said() {
    let source = Server::start().expect("a server");
    let replica = Server::builder()
        .options([
            "--log-replica-updates=OFF",
            "--replica-parallel-workers=4",
            "--replica-preserve-commit-order=OFF",
        ])
        .start()
        .expect("a server");
    let url = source.url();
    assert_eq!(check(&url, &[]).verdict("semi-sync"), "ok");
    assert_eq!(check(&replica.url(), &[]).verdict("applier order"), "ok", "no replica yet");
    replica.replica_of(&source).unwrap();
    let ours = replica.port().to_string();
    let begun = std::time::Instant::now();
    while source.sql("SHOW REPLICAS").unwrap().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the replica does not come");
        std::thread::sleep(Duration::from_millis(50));
    }
    let found = check(&url, &["--server-id", &ours]);
    assert_eq!(found.of("our server id")["code"], "server_id_conflict", "{}", found.all);
    mended(&source, &url, &[], ("semi-sync", "warn", None));
    mended(&replica, &replica.url(), &[], ("applier order", "warn", None));
    let found = check(&replica.url(), &[]);
    assert_eq!(found.of("replica updates")["code"], "replica_updates_not_logged");
    restart_with_remedy(&replica, found.of("replica updates"));
    assert_eq!(check(&replica.url(), &[]).verdict("replica updates"), "ok");
}
