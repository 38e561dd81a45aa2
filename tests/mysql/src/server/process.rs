//! Starting, ending and freezing the server's process.

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::Server;
use super::builder::default_options;
use crate::error::tail;
use crate::instance::{is_root, signal};
use crate::{LaunchError, Session, SqlError};

/// Far above what a start takes, also on a machine busy with builds and after a crash with much to recover.
const START_TIME_MAX: Duration = Duration::from_secs(180);
const STOP_TIME_MAX: Duration = Duration::from_secs(120);

impl Server {
    /// SIGKILL, at once: what a crash of the server looks like to its clients and to its data.
    pub fn kill9(&self) -> Result<(), LaunchError> {
        let mut child = self.child();
        let mut running = child.take().ok_or(LaunchError::NotRunning)?;
        running.kill().map_err(LaunchError::io("kill"))?;
        self.reap(running)
    }

    /// A clean shutdown; returns when the process has ended.
    pub fn stop(&self) -> Result<(), LaunchError> {
        let mut child = self.child();
        let running = child.as_mut().ok_or(LaunchError::NotRunning)?;
        signal(running.id(), "TERM")?;
        let deadline = Instant::now() + STOP_TIME_MAX;
        while running.try_wait().map_err(LaunchError::io("wait"))?.is_none() {
            if Instant::now() > deadline {
                return Err(LaunchError::NotStopped { log: tail(&self.error_log()) });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        match child.take() {
            Some(ended) => self.reap(ended),
            None => Ok(()),
        }
    }

    /// Starts it again on the same data, port and identity; one that still runs is stopped first.
    pub fn restart(&self) -> Result<(), LaunchError> {
        self.restart_with(&[])
    }

    /// Like [`restart`](Server::restart) with more options, which win over those before them and stay for later starts.
    pub fn restart_with(&self, options: &[&str]) -> Result<(), LaunchError> {
        if self.pid().is_some() {
            self.stop()?;
        }
        self.options().extend(options.iter().map(|option| (*option).to_owned()));
        self.launch()
    }

    /// Freezes the process (SIGSTOP): its connections stay open and say nothing, as on a machine that hangs.
    pub fn suspend(&self) -> Result<(), LaunchError> {
        signal(self.pid().ok_or(LaunchError::NotRunning)?, "STOP")
    }

    /// Lets a [suspended](Server::suspend) process go on.
    pub fn resume(&self) -> Result<(), LaunchError> {
        signal(self.pid().ok_or(LaunchError::NotRunning)?, "CONT")
    }

    /// Starts the process and waits until it answers.
    pub(super) fn launch(&self) -> Result<(), LaunchError> {
        let child = self.spawn()?;
        let said_before = self.error_log().len();
        self.instance.set_pid(Some(child.id()))?;
        *self.child() = Some(child);
        let deadline = Instant::now() + START_TIME_MAX;
        loop {
            match Session::connect(&self.socket(), "root") {
                // Any answer will do: a test may have given root a password.
                Ok(_) | Err(SqlError::Server { .. }) => return Ok(()),
                Err(SqlError::Link(_) | SqlError::Protocol(_)) => {}
            }
            let ended = match self.child().as_mut() {
                Some(child) => child.try_wait().map_err(LaunchError::io("wait"))?.is_some(),
                None => true, // killed from another thread
            };
            if ended || Instant::now() > deadline {
                let log = self.error_log();
                let _ = self.kill9();
                return Err(LaunchError::NotStarted { log: tail(log.get(said_before..).unwrap_or(&log)) });
            }
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    fn spawn(&self) -> Result<Child, LaunchError> {
        // What a killed server left: a new one would take the lock's process id for a living rival.
        for leftover in [self.socket(), with_suffix(self.socket(), ".lock")] {
            let _ = fs::remove_file(leftover);
        }
        let log_path = self.error_log_path();
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log_path)
            .map_err(LaunchError::at(&log_path))?;
        let mut command = self.mysql.daemon();
        command.args(default_options(self));
        if is_root(self.folder())? {
            command.arg("--user=root");
        }
        command
            .args(self.options().iter())
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(LaunchError::at(&log_path))?)
            .stderr(log)
            // Ctrl-C in a terminal is for the test or the demo, which then decides about its server.
            .process_group(0)
            .spawn()
            .map_err(LaunchError::io(self.flavour().daemon()))
    }

    fn reap(&self, mut child: Child) -> Result<(), LaunchError> {
        child.wait().map_err(LaunchError::io("wait"))?;
        self.instance.set_pid(None)
    }
}

fn with_suffix(path: PathBuf, suffix: &str) -> PathBuf {
    let mut name = path.into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}
