//! The private folder of one server, and the three ways it is cleaned up: by its owner, by the watchdog when the
//! owner was killed, by the next start when the watchdog was killed too.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::LaunchError;
use crate::cache::remove_folder;

const PREFIX: &str = "capstan-mysql-";

/// Locked by the owner for as long as it lives. Its absence marks a server that was started to outlive its starter.
const OWNER_FILE: &str = "owner";

/// The server's process id, empty while it does not run.
const PID_FILE: &str = "pid";

/// A socket's path has at most 107 bytes on Linux and 103 elsewhere.
const SOCKET_PATH_BYTES_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Instance {
    folder: PathBuf,
    owner: Option<File>,
    watchdog: Option<Child>,
}

impl Instance {
    /// A new private folder, watched.
    pub(crate) fn create() -> Result<Instance, LaunchError> {
        let base = base_folder();
        sweep_in(&base);
        let folder =
            tempfile::Builder::new().prefix(PREFIX).tempdir_in(&base).map_err(LaunchError::at(&base))?.keep();
        let mut instance = Instance { folder, owner: None, watchdog: None };
        // Locked under another name first: no sweep may find it unlocked.
        let (draft, owner) = (instance.folder.join("owner.draft"), instance.folder.join(OWNER_FILE));
        let file = File::create(&draft).map_err(LaunchError::at(&draft))?;
        file.lock().map_err(LaunchError::at(&draft))?;
        fs::rename(&draft, &owner).map_err(LaunchError::at(&owner))?;
        instance.owner = Some(file);
        instance.watchdog = Some(watchdog(&instance.folder)?);
        Ok(instance)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(&self.folder)
    }

    /// Says which process the watchdog and the sweep have to end.
    pub(crate) fn set_pid(&self, pid: Option<u32>) -> Result<(), LaunchError> {
        let path = self.folder.join(PID_FILE);
        fs::write(&path, pid.map(|pid| pid.to_string()).unwrap_or_default()).map_err(LaunchError::at(&path))
    }

    /// Removes the folder. The server must have ended.
    pub(crate) fn remove(&mut self) -> Result<(), LaunchError> {
        let removed = remove_folder(&self.folder);
        self.dismiss_watchdog();
        removed
    }

    /// Leaves the folder and its server to themselves, until [`stop_detached`] or for ever.
    pub(crate) fn detach(&mut self) -> Result<(), LaunchError> {
        let owner = self.folder.join(OWNER_FILE);
        fs::remove_file(&owner).map_err(LaunchError::at(&owner))?;
        self.owner = None;
        self.dismiss_watchdog();
        Ok(())
    }

    fn dismiss_watchdog(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            if let Some(mut stdin) = watchdog.stdin.take() {
                let _ = stdin.write_all(b"done\n");
            }
            let _ = watchdog.wait();
        }
    }
}

/// Ends a server that was started to outlive its starter, and removes its folder.
pub(crate) fn stop_detached(folder: &Path) -> Result<(), LaunchError> {
    if let Some(server) = server_of(folder) {
        signal(server.pid, "TERM")?;
        if !server.ends_within(Duration::from_secs(60)) {
            kill_server_of(folder);
        }
    }
    remove_folder(folder)
}

/// Ends the servers, and removes the folders, of owners that are gone. Each start does this by itself.
pub fn sweep() {
    sweep_in(&base_folder());
}

/// The temporary folder; the system's, where the user's own is too deep for a socket's path.
pub(crate) fn base_folder() -> PathBuf {
    let folder = std::env::temp_dir();
    let longest = socket_in(&folder.join(format!("{PREFIX}123456")));
    if longest.as_os_str().len() <= SOCKET_PATH_BYTES_MAX { folder } else { PathBuf::from("/tmp") }
}

pub(crate) fn socket_in(folder: &Path) -> PathBuf {
    folder.join("sock")
}

/// Whether this process runs as root, told by a folder it made.
pub(crate) fn is_root(made_by_us: &Path) -> Result<bool, LaunchError> {
    Ok(fs::metadata(made_by_us).map_err(LaunchError::at(made_by_us))?.uid() == 0)
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) -> Result<(), LaunchError> {
    // The shell's own kill: there is always a shell, and std has only SIGKILL for one's own children.
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(LaunchError::io("sh"))?;
    if status.success() { Ok(()) } else { Err(LaunchError::NotRunning) }
}

/// The user this process makes files as.
pub(crate) fn user_id(base: &Path) -> Result<u32, LaunchError> {
    let probe = tempfile::tempfile_in(base).map_err(LaunchError::at(base))?;
    Ok(probe.metadata().map_err(LaunchError::at(base))?.uid())
}

fn sweep_in(base: &Path) {
    let (Ok(user), Ok(entries)) = (user_id(base), fs::read_dir(base)) else { return };
    for entry in entries.filter_map(Result::ok) {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        let Some(owner) = ours.then(|| File::open(entry.path().join(OWNER_FILE)).ok()).flatten() else {
            continue;
        };
        // Held to the end of this turn, so that two sweeps do not meet in one folder.
        if owner.try_lock().is_ok() {
            kill_server_of(&entry.path());
            let _ = remove_folder(&entry.path());
        }
    }
}

fn kill_server_of(folder: &Path) {
    if let Some(server) = server_of(folder) {
        let _ = signal(server.pid, "KILL");
        server.ends_within(Duration::from_secs(10));
    }
}

/// The process that serves the folder. Its number alone could be another's by now: its arguments must name the folder.
fn server_of(folder: &Path) -> Option<Process> {
    let pid: u32 = fs::read_to_string(folder.join(PID_FILE)).ok()?.trim().parse().ok()?;
    let server = Process { pid, started: started(pid) };
    if !has_proc() {
        return server.runs().then_some(server);
    }
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let needle = folder.as_os_str().as_encoded_bytes();
    arguments.windows(needle.len().max(1)).any(|window| window == needle).then_some(server)
}

/// A process that is not a child of this one.
struct Process {
    pid: u32,
    /// What the kernel says of its start: another process of that number has another.
    started: Option<String>,
}

impl Process {
    fn runs(&self) -> bool {
        if has_proc() {
            self.started.is_some() && started(self.pid) == self.started
        } else {
            signal(self.pid, "0").is_ok()
        }
    }

    fn ends_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.runs() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

fn has_proc() -> bool {
    Path::new("/proc/self").exists()
}

/// When a process was started; nothing once it has ended, waited for or not.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; behind it come the state and, as the 20th field, the start (proc(5)).
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") { None } else { fields.nth(18).map(str::to_owned) }
}

/// A process that waits for the end of this one, however it comes: then its end of the pipe closes.
fn watchdog(folder: &Path) -> Result<Child, LaunchError> {
    Command::new("sh")
        .args(["-c", WATCHDOG, "capstan-mysql-watchdog"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Out of the terminal's and the test runner's group, whose signals are not meant for it.
        .process_group(0)
        .spawn()
        .map_err(LaunchError::io("sh"))
}

const WATCHDOG: &str = r#"
trap '' INT TERM HUP QUIT
if read -r _; then exit; fi
pid=$(cat "$1/pid" 2>/dev/null)
if [ -n "$pid" ] && { [ ! -d /proc/self ] || grep -qF -- "$1" "/proc/$pid/cmdline"; }; then
  kill -s KILL "$pid"
fi
for _ in 1 2 3 4 5; do rm -rf -- "$1" && break; sleep 0.2; done
"#;
