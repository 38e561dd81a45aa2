//! The `capstan-mysql` command, and what happens to a server whose starter is gone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const COMMAND: &str = env!("CARGO_BIN_EXE_capstan-mysql");

#[test]
fn a_killed_starter_takes_its_server_along() {
    let base = tempfile::tempdir().unwrap();
    let mut started = Started::new(base.path());
    assert!(runs(started.pid));
    started.starter.kill().unwrap();
    started.starter.wait().unwrap();
    until("the watchdog has ended the server", || !runs(started.pid) && !started.folder.exists());
}

#[test]
fn what_a_killed_watchdog_missed_is_swept() {
    let base = tempfile::tempdir().unwrap();
    let mut started = Started::new(base.path());
    let watchdog = watchdog_of(&started.folder);
    succeeds(Command::new("sh").args(["-c", "kill -s KILL \"$1\"", "sh", &watchdog.to_string()]));
    until("the watchdog is gone", || !runs(watchdog));
    succeeds(Command::new(COMMAND).arg("sweep").env("TMPDIR", base.path()));
    assert!(runs(started.pid), "a living owner's server is left alone");
    started.starter.kill().unwrap();
    started.starter.wait().unwrap();
    assert!(runs(started.pid));
    succeeds(Command::new(COMMAND).arg("sweep").env("TMPDIR", base.path()));
    assert!(!runs(started.pid) && !started.folder.exists());
}

#[test]
fn a_detached_server_serves_until_it_is_stopped() {
    let text =
        succeeds(Command::new(COMMAND).args(["start", "--detach", "--option", "--binlog-row-image=NOBLOB"]));
    let (folder, pid, url) =
        (value(&text, "folder"), value(&text, "pid").parse().unwrap(), value(&text, "url"));
    capstan_mysql::sweep();
    assert!(runs(pid));
    let by_folder =
        succeeds(Command::new(COMMAND).args(["sql", &folder, "SELECT @@binlog_row_image, 'ü', NULL"]));
    assert_eq!(by_folder, "NOBLOB\tü\tNULL\n");

    let mut by_url = Command::new(COMMAND)
        .args(["sql", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    by_url.stdin.take().unwrap().write_all(b"SELECT CURRENT_USER(); SHOW STATUS LIKE 'Ssl_version'").unwrap();
    let output = String::from_utf8(by_url.wait_with_output().unwrap().stdout).unwrap();
    assert!(output.starts_with("root@localhost\nSsl_version\tTLSv1."), "{output}");

    let refused = run(Command::new(COMMAND).args(["sql", &folder, "SELECT * FROM mysql.nowhere"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("error 1146"));

    succeeds(Command::new(COMMAND).args(["stop", &folder]));
    assert!(!runs(pid) && !Path::new(&folder).exists());
    let again = run(Command::new(COMMAND).args(["stop", &folder]));
    assert_eq!(again.status.code(), Some(1));
}

#[test]
fn many_processes_at_once_make_the_cache_once() {
    let cache = tempfile::tempdir().unwrap();
    // A cache of its own would be fetched anew: it stands on the fetched one by a link, so only the template is made.
    let fetched = capstan_mysql::cache_dir().unwrap();
    let mysql = capstan_mysql::Mysql::get().unwrap();
    if fetched.join("mysql").exists() {
        std::os::unix::fs::symlink(fetched.join("mysql"), cache.path().join("mysql")).unwrap();
    }
    let starters: Vec<Child> = (0..3)
        .map(|_| {
            let mut command = Command::new(COMMAND);
            command.args(["start", "--detach"]).env("CAPSTAN_MYSQL_CACHE", cache.path());
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut ports = Vec::new();
    for starter in starters {
        let output = starter.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        ports.push(value(&text, "port"));
        succeeds(Command::new(COMMAND).args(["stop", &value(&text, "folder")]));
    }
    ports.sort();
    ports.dedup();
    assert_eq!(ports.len(), 3);
    let made: Vec<_> =
        std::fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let made: Vec<_> =
        made.iter().map(|name| name.to_string_lossy()).filter(|name| name.starts_with("template")).collect();
    assert_eq!(made.len(), 2, "one template and its lock, for {}: {made:?}", mysql.version());
}

#[test]
fn what_is_not_understood_is_a_usage_error() {
    for arguments in
        [&["strat"][..], &[], &["start", "--port"], &["start", "--port", "x"], &["fetch", "oracle"]]
    {
        let output = run(Command::new(COMMAND).args(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("capstan-mysql start [OPTIONS]"));
    }
}

#[test]
fn a_machine_without_a_server_is_told_how_to_get_one() {
    let cache = tempfile::tempdir().unwrap();
    for (name, value, says) in [
        ("CAPSTAN_MYSQLD", "/no/mysqld", "CAPSTAN_MYSQLD names /no/mysqld"),
        ("PATH", "/no", "no mysql server: "),
    ] {
        let mut command = Command::new(COMMAND);
        command
            .args(["fetch", "mysql"])
            .env("CAPSTAN_MYSQL_CACHE", cache.path())
            .env_remove("CAPSTAN_MYSQLD");
        let output = run(command.env(name, value));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(says) && text.contains("To get one: put MySQL 8.0.14 or later"), "{text}");
    }
    assert!(!cache.path().join("mysql").exists(), "nothing half-made counts as there");
}

/// A `capstan-mysql start` in the foreground.
struct Started {
    starter: Child,
    folder: PathBuf,
    pid: u32,
}

impl Started {
    /// In a temporary folder of its own, in which nobody else sweeps.
    fn new(base: &Path) -> Started {
        let mut command = Command::new(COMMAND);
        let mut starter = command.arg("start").env("TMPDIR", base).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(starter.stdout.take().unwrap()).lines().map(Result::unwrap);
        let text: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let text = text.join("\n");
        Started { starter, folder: value(&text, "folder").into(), pid: value(&text, "pid").parse().unwrap() }
    }
}

fn value(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.and_then(|line| line.split_whitespace().nth(1))
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .to_owned()
}

fn succeeds(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// Whether a process of that number runs; a dead one that nobody waited for yet does not.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// The process that watches over exactly that folder.
fn watchdog_of(folder: &Path) -> u32 {
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let watchdogs: Vec<u32> = pids
        .filter(|pid: &u32| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let text = String::from_utf8_lossy(&arguments).into_owned();
            text.contains("capstan-mysql-watchdog") && text.contains(&*folder.to_string_lossy())
        })
        .collect();
    assert_eq!(watchdogs.len(), 1);
    watchdogs.into_iter().next().unwrap()
}

/// Waits for what must come; how long it takes is not what is tested.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not yet");
        std::thread::sleep(Duration::from_millis(20));
    }
}
