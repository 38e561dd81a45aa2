//! Debian packages, unpacked beside the system: apt with private folders, no root needed, nothing installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::run;

const ARCHIVE_KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Dependencies by name that no program we run needs.
const LEFT_OUT: [&str; 4] = ["perl", "libperl", "libgdbm", "libdb5"];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    /// Debian's unstable suite, the only one that carries MySQL.
    Sid,
    /// The suite the machine itself was installed from.
    Own,
}

/// Downloads `packages` with all they depend on, down to the C library, and unpacks them into `root`.
pub(super) fn fetch(root: &Path, suite: Suite, packages: &[&str]) -> Result<(), String> {
    let home = tempfile::Builder::new()
        .prefix("capstan-mysql-apt-")
        .tempdir()
        .map_err(|error| format!("no temporary folder: {error}"))?;
    let apt = PrivateApt::new(home.path().to_owned())?;
    let mirror = mirror()?;
    let codename = match suite {
        Suite::Sid => "sid",
        Suite::Own => &mirror.codename,
    };
    let signed_by = match Path::new(ARCHIVE_KEYRING).exists() {
        true => format!("[signed-by={ARCHIVE_KEYRING}] "),
        false => String::new(),
    };
    apt.write("sources.list", &format!("deb {signed_by}{} {codename} main\n", mirror.url))?;
    run(apt.command().arg("update"))?;
    run(apt.command().args(["--yes", "--download-only", "install"]).args(packages))?;
    unpack(&apt.archives(), root)
}

fn unpack(archives: &Path, root: &Path) -> Result<(), String> {
    let entries = fs::read_dir(archives).map_err(|error| format!("{}: {error}", archives.display()))?;
    let mut unpacked = 0;
    for entry in entries {
        let package = entry.map_err(|error| format!("{}: {error}", archives.display()))?.path();
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".deb") || LEFT_OUT.iter().any(|left_out| name.starts_with(left_out)) {
            continue;
        }
        run(Command::new("dpkg").arg("-x").arg(&package).arg(root))?;
        unpacked += 1;
    }
    if unpacked == 0 { Err("apt downloaded no package".to_owned()) } else { Ok(()) }
}

/// The mirror the machine uses.
struct Mirror {
    url: String,
    codename: String,
}

/// Read from the machine's own apt configuration, so no host is ever written down.
fn mirror() -> Result<Mirror, String> {
    if !Path::new("/etc/debian_version").exists() {
        return Err("this machine is not Debian".to_owned());
    }
    let known = index_targets(Command::new("apt-get"))?;
    if let Some(mirror) = main_mirror(&known) {
        return Ok(mirror);
    }
    // A machine whose package lists were never fetched, as a fresh container: fetch them into a folder of ours.
    let home = tempfile::Builder::new()
        .prefix("capstan-mysql-apt-")
        .tempdir()
        .map_err(|error| format!("no temporary folder: {error}"))?;
    let apt = PrivateApt::new(home.path().to_owned())?;
    let own_sources = || {
        let mut command = Command::new("apt-get");
        command.args(apt.options());
        command
    };
    run(own_sources().arg("update"))?;
    main_mirror(&index_targets(own_sources())?)
        .ok_or_else(|| "apt knows no Debian mirror (its sources name none with a main suite)".to_owned())
}

fn index_targets(mut apt_get: Command) -> Result<String, String> {
    run(apt_get.args([
        "indextargets",
        "--format",
        "$(ORIGIN)|$(COMPONENT)|$(CODENAME)|$(REPO_URI)",
        "Created-By: Packages",
    ]))
}

/// The first suite of Debian proper: not security, not updates or backports, whose codenames have a hyphen.
fn main_mirror(index_targets: &str) -> Option<Mirror> {
    index_targets.lines().find_map(|line| {
        let mut fields = line.splitn(4, '|');
        let (origin, component) = (fields.next()?, fields.next()?);
        let (codename, url) = (fields.next()?, fields.next()?);
        let main = origin == "Debian" && component == "main" && !codename.contains('-');
        main.then(|| Mirror { url: url.to_owned(), codename: codename.to_owned() })
    })
}

/// apt with folders of its own; the machine's configuration (mirror, proxy, credentials) still holds.
struct PrivateApt {
    home: PathBuf,
}

impl PrivateApt {
    fn new(home: PathBuf) -> Result<PrivateApt, String> {
        let apt = PrivateApt { home };
        for folder in ["lists/partial", "archives/partial"] {
            let path = apt.home.join(folder);
            fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        // An empty status file: nothing counts as installed, so the C library comes along too.
        apt.write("status", "")?;
        Ok(apt)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.home.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn archives(&self) -> PathBuf {
        self.home.join("archives")
    }

    /// The options that keep the machine's own state out of it, for the machine's own sources.
    fn options(&self) -> Vec<String> {
        let home = self.home.display();
        [
            format!("Dir::State::lists={home}/lists"),
            format!("Dir::State::status={home}/status"),
            format!("Dir::Cache::archives={home}/archives"),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            "APT::Install-Recommends=false".to_owned(),
            "Acquire::Retries=3".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            // Root would hand the download to a user who cannot look into a private temporary folder.
            "APT::Sandbox::User=root".to_owned(),
        ]
        .into_iter()
        .map(|option| format!("-o{option}"))
        .collect()
    }

    /// apt-get with the private sources too.
    fn command(&self) -> Command {
        let home = self.home.display();
        let mut command = Command::new("apt-get");
        command
            .arg("--quiet")
            .args(self.options())
            .arg(format!("-oDir::Etc::sourcelist={home}/sources.list"))
            .arg("-oDir::Etc::sourceparts=/dev/null")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_mirror_is_neither_security_nor_updates_nor_another_vendor() {
        let targets = "Docker|main|bookworm|http://vendor.invalid/\n\
                       Debian|main|bookworm-security|http://mirror.invalid/debian-security/\n\
                       Debian|main|bookworm-updates|http://mirror.invalid/debian/\n\
                       Debian|contrib|bookworm|http://mirror.invalid/contrib/\n\
                       Debian|main|bookworm|http://mirror.invalid/debian/\n";
        let mirror = main_mirror(targets).unwrap();
        assert_eq!(
            (mirror.url.as_str(), mirror.codename.as_str()),
            ("http://mirror.invalid/debian/", "bookworm")
        );
        assert!(main_mirror("Ubuntu|main|jammy|http://mirror.invalid/\n").is_none());
        assert!(main_mirror("\n||\n").is_none());
    }
}
