//! `capstan sync` as a child process.

use std::{
    cell::Cell,
    fs::{self, OpenOptions},
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child as Process, Command, Stdio},
    time::{Duration, Instant},
};

use super::watch::Interrupt;
use crate::failure::Failure;

/// The ledger's file in the folder.
pub(super) const LEDGER: &str = "shop.db";

const SIGKILL: i32 = 9;

/// A child that outlives a killed demo ends by itself: its server is gone then.
const CONFIG: &str = "[limits]\ntrouble-max-ms = 30000\n";

/// How `sync` is called.
pub(super) struct Sync {
    source: String,
    password: &'static str,
    folder: PathBuf,
    started: Cell<bool>,
}

impl Sync {
    pub(super) fn new(source: String, password: &'static str, folder: &Path) -> io::Result<Self> {
        fs::write(folder.join("capstan.toml"), CONFIG)?;
        Ok(Self { source, password, folder: folder.to_owned(), started: Cell::new(false) })
    }

    pub(super) fn ledger(&self) -> PathBuf {
        self.folder.join(LEDGER)
    }

    /// Starts it: the first time at the earliest, then from what is stored, as anybody would.
    pub(super) fn spawn(&self, until: Option<&str>) -> Result<Child, Failure> {
        let failed = |error: io::Error| Failure::other(format!("capstan sync: {error}"), 4);
        let log_path = self.folder.join("sync.log");
        let log = OpenOptions::new().create(true).append(true).open(&log_path).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command
            .arg("sync")
            .arg(&self.source)
            .arg(format!("sqlite:{}?mode=ledger", self.ledger().display()))
            .args(["--tables", "shop.*", "--config"])
            .arg(self.folder.join("capstan.toml"))
            .env("CAPSTAN_PASSWORD", self.password);
        if !self.started.replace(true) {
            command.args(["--start", "earliest"]);
        }
        if let Some(until) = until {
            command.args(["--until", until]);
        }
        let process = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            // Ctrl-C is for the demo, which ends its child itself.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(Child { process, log_path })
    }
}

/// A running `sync`, killed when it is dropped.
pub(super) struct Child {
    process: Process,
    log_path: PathBuf,
}

impl Child {
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Fails if it ended by itself.
    pub(super) fn must_live(&mut self) -> Result<(), Failure> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(self.failure("ended before its time")),
            Err(error) => Err(Failure::other(format!("capstan sync: {error}"), 4)),
        }
    }

    /// SIGKILL, and proof that this is what it died of.
    pub(super) fn kill(mut self) -> Result<(), Failure> {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        match ended {
            Ok(status) if status.signal() == Some(SIGKILL) => Ok(()),
            Ok(_) => Err(self.failure("ended before the kill")),
            Err(error) => Err(Failure::other(format!("capstan sync: {error}"), 4)),
        }
    }

    /// Waits for its own good end.
    pub(super) fn wait(&mut self, patience: Duration, interrupt: &Interrupt) -> Result<(), Failure> {
        let deadline = Instant::now() + patience;
        loop {
            interrupt.check()?;
            match self.process.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) => return Err(self.failure("failed")),
                Ok(None) if Instant::now() > deadline => return Err(self.failure("did not get to its end")),
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(Failure::other(format!("capstan sync: {error}"), 4)),
            }
        }
    }

    /// What it said last.
    pub(super) fn failure(&self, what: &str) -> Failure {
        let said = fs::read_to_string(&self.log_path).unwrap_or_default();
        let mut lines: Vec<&str> = said.lines().rev().take(12).collect();
        lines.reverse();
        Failure::other(format!("sync {what}. It said:\n{}", lines.join("\n")), 4)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
