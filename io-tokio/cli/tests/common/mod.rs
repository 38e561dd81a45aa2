//! The command, called as a shell calls it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// No call of the tests takes a fraction of this.
const HANG: Duration = Duration::from_secs(60);

/// What a call gave.
#[derive(Debug)]
pub struct Called {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Called {
    /// Standard error as the JSON of a halt.
    pub fn halt(&self) -> serde_json::Value {
        let last = self.err.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON on standard error: {self:?}"))
    }

    /// Standard output as JSON lines.
    pub fn lines(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A call of `capstan`, without password, terminal or logs.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.env_remove("CAPSTAN_PASSWORD").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Calls it.
pub fn capstan<A: AsRef<OsStr>>(arguments: &[A]) -> Called {
    let child = command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, (done, ended)) = (child.id(), mpsc::channel());
    let guard = thread::spawn(move || {
        // A call that hangs is a failure with a name, not a build that stands still.
        if let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(HANG) {
            let _ = Command::new("sh").args(["-c", &format!("kill -KILL {id}")]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    let _: Result<(), _> = done.send(());
    guard.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Called { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// A captured file.
pub fn fixture(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    assert!(path.is_file(), "{} is missing: it belongs to the repository", path.display());
    path
}
