//! The conversations that are captured.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use capstan_mysql::{Flavour, HOST, LaunchError, Mysql, Server, Session};

use super::recorder::Recorder;
use super::{SERVER_UUID, failure};

/// A name, and what records it.
pub(super) type Conversation = (&'static str, fn() -> Result<String, LaunchError>);

pub(super) const ALL: &[Conversation] = &[
    ("caching-sha2", caching_sha2),
    ("sha256", sha256),
    ("native-5.6", native_5_6),
    ("greeting-mariadb", greeting_mariadb),
    ("refused", refused),
    ("tls-request", tls_request),
    ("queries", queries),
    ("queries-without-deprecate-eof", queries_without_deprecate_eof),
    ("dump", dump),
    ("dump-mysqlbinlog", dump_mysqlbinlog),
    ("dump-replica", dump_replica),
    ("dump-refused", dump_refused),
];

/// Of every account in a fixture; it guards nothing.
const PASSWORD: &str = "capstan-fixture-1";

const COM_REGISTER_REPLICA: u8 = 0x15;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;
const BINLOG_THROUGH_GTID: u16 = 0x04;
const SEND_HEARTBEAT_V2: u16 = 0x02;

/// The first login of an account goes through RSA, the second is fast: then an empty password, and none asked for.
fn caching_sha2() -> Result<String, LaunchError> {
    let server = server(&[])?;
    server.sql(&format!(
        "CREATE USER u IDENTIFIED WITH caching_sha2_password BY '{PASSWORD}'; CREATE USER nobody"
    ))?;
    let recorder = Recorder::before(&server)?;
    for (user, password) in [("u", PASSWORD), ("u", PASSWORD), ("nobody", "")] {
        client(&recorder, user, password, "SELECT CURRENT_USER()", &["--get-server-public-key"])?;
    }
    Ok(recorder.text("caching_sha2_password without TLS: cold, warm, without a password"))
}

/// The client begins with another plugin and is switched; the key is asked for; the account's name is not ASCII.
fn sha256() -> Result<String, LaunchError> {
    let server = server(&[])?;
    server.sql(&format!("CREATE USER `name-with-é` IDENTIFIED WITH sha256_password BY '{PASSWORD}'"))?;
    let recorder = Recorder::before(&server)?;
    client(&recorder, "name-with-é", PASSWORD, "SELECT 1", &["--get-server-public-key"])?;
    Ok(recorder.text("sha256_password without TLS, after an authentication switch"))
}

fn native_5_6() -> Result<String, LaunchError> {
    let server = Server::builder()
        .flavour(Flavour::Mysql56)
        .option("--server-id=1")
        .server_uuid(SERVER_UUID)
        .start()?;
    server.sql(&format!("CREATE USER u IDENTIFIED BY '{PASSWORD}'"))?;
    let recorder = Recorder::before(&server)?;
    client(&recorder, "u", PASSWORD, "SELECT @@version", &["--default-auth=mysql_native_password"])?;
    client(&recorder, "u", PASSWORD, "SELECT @@version", &["--default-auth=caching_sha2_password"])?;
    Ok(recorder.text("mysql_native_password at 5.6: at once, after an authentication switch"))
}

fn greeting_mariadb() -> Result<String, LaunchError> {
    let server = Server::builder().flavour(Flavour::MariaDb).option("--server-id=1").start()?;
    let recorder = Recorder::before(&server)?;
    Session::connect_tcp(recorder.address(), "root")?.sql("SELECT @@version")?;
    Ok(recorder.text("MariaDB: a login without a password and a query"))
}

fn refused() -> Result<String, LaunchError> {
    let server = server(&["--max-connections=1"])?;
    server.sql(&format!("CREATE USER u IDENTIFIED BY '{PASSWORD}'; CREATE USER locked ACCOUNT LOCK; CREATE USER old IDENTIFIED BY '' PASSWORD EXPIRE"))?;
    let recorder = Recorder::before(&server)?;
    for (user, password) in [("u", "wrong"), ("nobody", ""), ("locked", ""), ("old", "")] {
        let _ = client(&recorder, user, password, "SELECT 1", &["--get-server-public-key"]);
    }
    // One connection is allowed and one more for an administrator.
    let holders = (server.connect()?, server.connect()?);
    let _ = client(&recorder, "u", PASSWORD, "SELECT 1", &[]);
    drop(holders);
    Ok(recorder.text("refused: wrong password, unknown account, locked, expired, too many connections"))
}

fn tls_request() -> Result<String, LaunchError> {
    let server = server(&[])?;
    server.sql(&format!("CREATE USER u IDENTIFIED BY '{PASSWORD}' REQUIRE SSL"))?;
    let recorder = Recorder::before(&server)?;
    client(&recorder, "u", PASSWORD, "SELECT 1", &["--ssl-mode=REQUIRED"])?;
    let _ = client(&recorder, "u", PASSWORD, "SELECT 1", &["--get-server-public-key"]);
    Ok(recorder.text("an account that requires TLS: with it, without it"))
}

const QUERIES: &[&str] = &[
    "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20), n BIGINT UNSIGNED, b BLOB, d DECIMAL(5,2)) ",
    "INSERT INTO d.t VALUES (1, 'é', 18446744073709551615, X'00FF', 1.50), (2, NULL, NULL, NULL, NULL), (3, '', 0, '', 0), (710, 'x', 1, 'x', 1)",
    "SELECT * FROM d.t ORDER BY id",
    "SELECT * FROM d.t WHERE FALSE",
    "SELECT REPEAT('x', 251), REPEAT('y', 300)",
    "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged, @@server_uuid, @@version",
    "SELECT * FROM d.nowhere",
    "SELEC",
    "SELECT id, EXP(id) FROM d.t ORDER BY id",
    "SHOW BINARY LOG STATUS",
    "UPDATE d.t SET v = 'y' WHERE id < 3",
];

/// As today's clients ask: a resultset ends in an OK packet.
fn queries() -> Result<String, LaunchError> {
    let server = server(&[])?;
    let recorder = Recorder::before(&server)?;
    client(&recorder, "root", "", &QUERIES.join(";\n"), &["--force"])?;
    Ok(recorder.text("queries of the mysql program"))
}

/// As older clients ask: a resultset ends in an EOF packet; the last is several statements at once.
fn queries_without_deprecate_eof() -> Result<String, LaunchError> {
    let server = server(&[])?;
    let recorder = Recorder::before(&server)?;
    let mut session = Session::connect_tcp(recorder.address(), "root")?;
    for query in QUERIES {
        let _ = session.query(query); // the recording tells what came
    }
    session.query("SELECT 1; DO 2; SELECT 3, 4")?;
    Ok(recorder.text("queries of a client without CLIENT_DEPRECATE_EOF"))
}

/// Two transactions, and heartbeats of version 2; then, of another connection, of version 1.
fn dump() -> Result<String, LaunchError> {
    let server = server(&[])?;
    write_some(&server)?;
    let recorder = Recorder::before(&server)?;
    for flags in [BINLOG_THROUGH_GTID | SEND_HEARTBEAT_V2, BINLOG_THROUGH_GTID] {
        let mut session = Session::connect_tcp(recorder.address(), "root")?;
        start_dump(&mut session, flags, &[])?;
        let mut packets = 0;
        let mut heartbeats = 0;
        while heartbeats < 2 {
            let packet = session.read_packet()?;
            packets += 1;
            // The type of an event is its fifth byte, after the packet's status.
            heartbeats += u32::from(matches!(packet.get(5), Some(27 | 41)));
            if packets > 60 {
                return Err(failure("no heartbeat came".to_owned()));
            }
        }
    }
    Ok(recorder.text("COM_BINLOG_DUMP_GTID from the start: heartbeats of version 2, of version 1"))
}

/// What `mysqlbinlog` asks for and gets: a dump that ends, once from the start, once without what it has.
fn dump_mysqlbinlog() -> Result<String, LaunchError> {
    let server = server(&[])?;
    write_some(&server)?;
    let recorder = Recorder::before(&server)?;
    let address = recorder.address();
    let excluded =
        format!("--exclude-gtids={SERVER_UUID}:1-2:tag:1,11111111-2222-3333-4444-555555555555:1-3:5");
    for more in [None, Some(excluded.as_str())] {
        let mut arguments = vec![
            "--read-from-remote-source=BINLOG-DUMP-GTIDS".to_owned(),
            format!("--host={HOST}"),
            format!("--port={}", address.port()),
            "--user=root".to_owned(),
            "--ssl-mode=DISABLED".to_owned(),
            "bin.000001".to_owned(),
        ];
        arguments.extend(more.map(str::to_owned));
        server.mysqlbinlog(&arguments)?;
    }
    Ok(recorder.text("mysqlbinlog: the whole history, without some of it"))
}

/// A real replica: everything it asks before it dumps, the dump, and what follows when it is stopped.
fn dump_replica() -> Result<String, LaunchError> {
    let source = server(&[])?;
    write_some(&source)?;
    source.sql(&format!(
        "SET sql_log_bin = 0; CREATE USER r IDENTIFIED BY '{PASSWORD}'; GRANT REPLICATION SLAVE ON *.* TO r"
    ))?;
    let replica = Server::builder()
        .option("--server-id=2")
        .option("--report-host=replica.invalid")
        .server_uuid("ca957a00-0000-4000-8000-000000000002")
        .start()?;
    let recorder = Recorder::before(&source)?;
    replica.sql(&format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{HOST}', SOURCE_PORT = {}, SOURCE_USER = 'r', SOURCE_PASSWORD = '{PASSWORD}',
           SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_HEARTBEAT_PERIOD = 0.2;
         START REPLICA",
        recorder.address().port()
    ))?;
    if !replica.wait_for_gtids(&source.gtid_executed()?, Duration::from_secs(120))? {
        return Err(failure("the replica did not follow".to_owned()));
    }
    let so_far = recorder.server_packets();
    wait(|| recorder.server_packets() >= so_far + 2)?; // heartbeats
    replica.sql("STOP REPLICA")?;
    Ok(recorder.text("a replica of 9.7 follows"))
}

/// Dumps that the server refuses: no checksum agreed, a set ahead of its own, a set that needs what is purged, intervals
/// out of order, an unknown file; and the older of two links with one identity is ended.
fn dump_refused() -> Result<String, LaunchError> {
    let server = server(&[])?;
    write_some(&server)?;
    let recorder = Recorder::before(&server)?;
    let mut session = Session::connect_tcp(recorder.address(), "root")?;
    session.command(COM_BINLOG_DUMP_GTID, &dump_argument(BINLOG_THROUGH_GTID, "", &[]))?;
    until_refused(&mut session)?;

    let attempt = |file: &str, set: &[(u64, u64)]| {
        let mut session = prepared(recorder.address())?;
        let set = binary_set(set);
        session.command(COM_BINLOG_DUMP_GTID, &dump_argument(BINLOG_THROUGH_GTID, file, &set))?;
        until_refused(&mut session)
    };
    attempt("", &[(1, 1_000_001)])?;
    attempt("", &[(5, 7), (1, 3)])?;
    attempt("bin.999999", &[])?;

    let mut older = prepared(recorder.address())?;
    older.command(COM_BINLOG_DUMP_GTID, &dump_argument(BINLOG_THROUGH_GTID, "", &[]))?;
    older.read_packet()?;
    let mut newer = prepared(recorder.address())?;
    newer.command(COM_BINLOG_DUMP_GTID, &dump_argument(BINLOG_THROUGH_GTID, "", &[]))?;
    newer.read_packet()?;
    until_refused(&mut older)?;

    server.sql("FLUSH BINARY LOGS")?;
    let newest = server.binlogs()?;
    let newest =
        newest.last().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    server.sql(&format!("PURGE BINARY LOGS TO '{newest}'"))?;
    attempt("", &[(1, 2)])?;
    Ok(recorder.text("refused dumps: no checksum, ahead, out of order, unknown file, two of one identity (older, newer), purged"))
}

fn server(options: &[&str]) -> Result<Server, LaunchError> {
    Server::builder()
        .option("--server-id=1")
        .server_uuid(SERVER_UUID)
        .options(options.iter().copied())
        .start()
}

fn write_some(server: &Server) -> Result<(), LaunchError> {
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO d.t VALUES (1, 'a');
         SET gtid_next = 'AUTOMATIC:tag'; BEGIN; INSERT INTO d.t VALUES (2, 'b'); UPDATE d.t SET v = 'c' WHERE id = 1; COMMIT",
    )?;
    Ok(())
}

/// Runs statements in the real `mysql` program through the recorder, without TLS unless said.
fn client(
    recorder: &Recorder,
    user: &str,
    password: &str,
    sql: &str,
    more: &[&str],
) -> Result<(), LaunchError> {
    let mut command = Mysql::get()?.program("mysql")?;
    command
        .args([format!("--host={HOST}"), format!("--port={}", recorder.address().port())])
        .args([format!("--user={user}"), format!("--password={password}"), format!("--execute={sql}")])
        .arg("--default-character-set=utf8mb4");
    if !more.iter().any(|option| option.starts_with("--ssl-mode")) {
        command.arg("--ssl-mode=DISABLED");
    }
    let status = command
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|source| LaunchError::Io { what: "mysql".to_owned(), source })?;
    if status.success() { Ok(()) } else { Err(failure(format!("mysql as {user} failed"))) }
}

/// A session that has said what a dump needs.
fn prepared(address: SocketAddr) -> Result<Session, LaunchError> {
    let mut session = Session::connect_tcp(address, "root")?;
    session.query("SET @source_binlog_checksum = 'CRC32', @source_heartbeat_period = 200000000")?;
    session.query("SET @replica_uuid = 'ca957a00-0000-4000-8000-00000000000a'")?;
    Ok(session)
}

fn start_dump(session: &mut Session, flags: u16, set: &[(u64, u64)]) -> Result<(), LaunchError> {
    session.query("SET @source_binlog_checksum = 'CRC32', @source_heartbeat_period = 200000000")?;
    session.query("SET @replica_uuid = 'ca957a00-0000-4000-8000-00000000000a'")?;
    let mut argument = 77_u32.to_le_bytes().to_vec();
    for text in ["capstan.invalid", "", ""] {
        argument.push(text.len() as u8);
        argument.extend(text.as_bytes());
    }
    argument.extend(3306_u16.to_le_bytes());
    argument.extend([0; 8]); // rank, the source's id
    session.command(COM_REGISTER_REPLICA, &argument)?;
    session.read_packet()?;
    session.command(COM_BINLOG_DUMP_GTID, &dump_argument(flags, "", &binary_set(set)))?;
    Ok(())
}

fn dump_argument(flags: u16, file: &str, set: &[u8]) -> Vec<u8> {
    let mut argument = flags.to_le_bytes().to_vec();
    argument.extend(77_u32.to_le_bytes());
    argument.extend((file.len() as u32).to_le_bytes());
    argument.extend(file.as_bytes());
    argument.extend(4_u64.to_le_bytes());
    let empty = 0_u64.to_le_bytes();
    let set = if set.is_empty() { &empty[..] } else { set };
    argument.extend((set.len() as u32).to_le_bytes());
    argument.extend(set);
    argument
}

/// The server's own UUID with those intervals, whose ends are exclusive.
fn binary_set(intervals: &[(u64, u64)]) -> Vec<u8> {
    if intervals.is_empty() {
        return Vec::new();
    }
    let mut set = 1_u64.to_le_bytes().to_vec();
    let digits: Vec<u8> = SERVER_UUID.bytes().filter(|byte| *byte != b'-').collect();
    for pair in digits.chunks(2) {
        let byte = std::str::from_utf8(pair).ok().and_then(|text| u8::from_str_radix(text, 16).ok());
        set.push(byte.unwrap_or_default());
    }
    set.extend((intervals.len() as u64).to_le_bytes());
    for (start, end) in intervals {
        set.extend(start.to_le_bytes());
        set.extend(end.to_le_bytes());
    }
    set
}

/// Reads until the server sends an error packet.
fn until_refused(session: &mut Session) -> Result<(), LaunchError> {
    for _ in 0..100 {
        if session.read_packet()?.first() == Some(&0xff) {
            return Ok(());
        }
    }
    Err(failure("a dump was to be refused and was not".to_owned()))
}

fn wait(mut holds: impl FnMut() -> bool) -> Result<(), LaunchError> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        if Instant::now() > deadline {
            return Err(failure("what was waited for did not come".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
