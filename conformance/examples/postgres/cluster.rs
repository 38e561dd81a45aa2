//! A private PostgreSQL in a temporary folder.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use capstan_conformance::Trouble;
use tempfile::TempDir;

/// A running server, which listens in its folder alone.
pub struct Cluster {
    folder: TempDir,
    server: Child,
}

/// How often it is asked whether it is there, every 100 ms.
const PATIENCE: u32 = 300;

impl Cluster {
    pub fn start() -> Result<Self, Trouble> {
        let programs = programs()?;
        let folder = tempfile::tempdir()?;
        let account = account()?;
        let data = folder.path().join("data");
        let command = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .current_dir(folder.path());
            if let Some((user, group)) = account {
                command.uid(user).gid(group);
            }
            command
        };
        if let Some((user, group)) = account {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let made = command("initdb")
            .args(["-A", "trust", "-U", "capstan", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data)
            .status()?;
        if !made.success() {
            return Err(format!("{}/initdb ended with {made}", programs.display()).into());
        }
        let server = command("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            // Nothing here has to outlive a loss of power.
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"])
            .spawn()?;
        let cluster = Self { folder, server };
        for _ in 0..PATIENCE {
            // The last line of the lock file says so.
            let lock = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
            if lock.lines().any(|line| line.trim() == "ready") {
                return Ok(cluster);
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err("the server did not start".into())
    }

    /// How it is reached.
    pub fn config(&self) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.folder.path()).user("capstan").dbname("postgres");
        config
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A fast shutdown, so that its children go with it.
        let _ = Command::new("kill").args(["-INT", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }
}

/// The folder of the newest installed server.
fn programs() -> Result<PathBuf, Trouble> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let number = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .filter(|(_, folder)| folder.join("initdb").exists())
        .collect();
    found.sort();
    let remedy = "no PostgreSQL server in /usr/lib/postgresql: apt-get install postgresql";
    found.pop().map(|(_, folder)| folder).ok_or_else(|| remedy.into())
}

/// The account of the server: it refuses to run as root.
fn account() -> Result<Option<(u32, u32)>, Trouble> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ours = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    if ours.split_whitespace().nth(1) != Some("0") {
        return Ok(None);
    }
    let accounts = fs::read_to_string("/etc/passwd")?;
    for name in ["postgres", "nobody"] {
        for line in accounts.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            if let [account, _, user, group, ..] = fields.as_slice()
                && *account == name
            {
                return Ok(Some((user.parse()?, group.parse()?)));
            }
        }
    }
    Err("the server refuses to run as root, and there is no account postgres or nobody".into())
}
