//! A freshly initialized data folder, made once per server version and copied for each instance.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::made_once;
use crate::error::tail;
use crate::instance::is_root;
use crate::{Flavour, LaunchError, Mysql};

/// Changed with every change to how a template is made, so that none of an earlier form is used.
const REVISION: u32 = 2;

/// An option that a data folder is made with for good.
const MADE_WITH: &str = "--lower-case-table-names=";

/// The folder to copy; it has no `auto.cnf` and no certificates, so that each instance makes its own.
pub(crate) fn template(mysql: &Mysql, options: &[String]) -> Result<PathBuf, LaunchError> {
    let made_with = options.iter().rfind(|option| option.starts_with(MADE_WITH));
    let suffix = made_with
        .map_or_else(String::new, |option| format!("-lower{}", option.trim_start_matches(MADE_WITH)));
    made_once(&format!("template-{REVISION}-{}{suffix}", mysql.key()), |draft| match mysql.flavour() {
        Flavour::Mysql97 => initialize(mysql, draft, made_with),
        Flavour::Mysql56 => {
            let scripts = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];
            bootstrap(mysql, draft, &scripts, "DELETE FROM user WHERE User = '';")
        }
        Flavour::MariaDb => bootstrap(
            mysql,
            draft,
            &["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"],
            "DELETE FROM global_priv WHERE User = '';",
        ),
    })
}

/// Options that must be the same when the data folder is made and when it is used.
pub(crate) fn storage_options(flavour: Flavour) -> &'static [&'static str] {
    match flavour {
        Flavour::Mysql97 => &["--loose-innodb-redo-log-capacity=32M", "--innodb-buffer-pool-size=64M"],
        // These two cannot change their log's size without making it anew.
        Flavour::Mysql56 => &["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"],
        Flavour::MariaDb => &["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"],
    }
}

fn initialize(mysql: &Mysql, draft: &Path, made_with: Option<&String>) -> Result<(), LaunchError> {
    let modes: Vec<&str> =
        ["--initialize-insecure"].into_iter().chain(made_with.map(String::as_str)).collect();
    run_daemon(mysql, draft, &modes, None)?;
    for entry in fs::read_dir(draft).map_err(LaunchError::at(draft))?.filter_map(Result::ok) {
        let name = entry.file_name();
        if name == "auto.cnf" || name.to_string_lossy().ends_with(".pem") {
            fs::remove_file(entry.path()).map_err(LaunchError::at(&entry.path()))?;
        }
    }
    Ok(())
}

/// What `--initialize` does, for servers that do not know it: the system tables from the shipped scripts, less the
/// anonymous accounts, which would be taken before any account for any host.
fn bootstrap(mysql: &Mysql, draft: &Path, scripts: &[&str], less_anonymous: &str) -> Result<(), LaunchError> {
    for schema in ["mysql", "test"] {
        let folder = draft.join(schema);
        fs::create_dir(&folder).map_err(LaunchError::at(&folder))?;
    }
    let mut script = b"use mysql;\n".to_vec();
    for name in scripts {
        let path = mysql.scripts().join(name);
        script.extend(fs::read(&path).map_err(LaunchError::at(&path))?);
    }
    script.extend(less_anonymous.as_bytes());
    script.push(b'\n');
    run_daemon(mysql, draft, &["--bootstrap"], Some(&script))?;
    let grants = ["user.MYD", "global_priv.MAD"].map(|name| draft.join("mysql").join(name));
    if grants.iter().any(|path| path.is_file()) {
        return Ok(());
    }
    Err(LaunchError::NotInitialized { log: "the scripts ran, but there are no accounts".to_owned() })
}

fn run_daemon(mysql: &Mysql, draft: &Path, modes: &[&str], script: Option<&[u8]>) -> Result<(), LaunchError> {
    // Beside the draft, not in it: --initialize wants an empty folder.
    let log_path = draft.with_extension("log");
    let log = File::create(&log_path).map_err(LaunchError::at(&log_path))?;
    let mut command = mysql.daemon();
    command
        .args(storage_options(mysql.flavour()))
        .arg("--loose-innodb-use-native-aio=OFF")
        .arg(format!("--datadir={}", draft.display()))
        .args(modes)
        .stdin(if script.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(log.try_clone().map_err(LaunchError::at(&log_path))?)
        .stderr(log);
    if is_root(draft)? {
        command.arg("--user=root");
    }
    let result = feed(&mut command, script);
    let said = fs::read(&log_path).unwrap_or_default();
    fs::remove_file(&log_path).map_err(LaunchError::at(&log_path))?;
    match result {
        Ok(true) => Ok(()),
        Ok(false) => Err(LaunchError::NotInitialized { log: tail(&String::from_utf8_lossy(&said)) }),
        Err(error) => Err(LaunchError::io(mysql.flavour().daemon())(error)),
    }
}

fn feed(command: &mut Command, script: Option<&[u8]>) -> std::io::Result<bool> {
    let mut child = command.spawn()?;
    if let (Some(script), Some(mut stdin)) = (script, child.stdin.take()) {
        // A server that ends early closes the pipe; its exit status says more than the broken pipe.
        let _ = stdin.write_all(script);
    }
    Ok(child.wait()?.success())
}
