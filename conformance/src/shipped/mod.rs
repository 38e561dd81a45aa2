//! The sinks that Capstan ships, as targets.

mod jsonl;
mod ledger;
mod mirror;
mod printed;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use rusqlite::{Connection, OptionalExtension as _};

pub use self::{
    jsonl::JsonFileTarget,
    ledger::LedgerTarget,
    mirror::{AnyMirrorTarget, MirrorTarget, StrictMirrorTarget},
    printed::{AsyncJsonLinesTarget, JsonLinesTarget},
};
use crate::{artifact::Artifact, process::in_child, target::Trouble};

/// Why the fault points are left out where the sinks were built without.
const NO_FAULT_POINTS: &[(&str, &str)] =
    &[("dies_at_fault_points", "this build has none: they belong to a test build (feature `fault-points`)")];

/// What a target of one of them declines.
const fn declined() -> &'static [(&'static str, &'static str)] {
    if cfg!(feature = "fault-points") { &[] } else { NO_FAULT_POINTS }
}

/// They are all of one package, in step with this one.
fn artifact() -> Option<Artifact> {
    Some(Artifact::of_package("capstan", env!("CARGO_PKG_VERSION"), env!("CARGO_MANIFEST_DIR")))
}

/// Their fault points end the process, so only a process of their own has them armed: by its environment.
fn arm() -> Result<(), Trouble> {
    if in_child() { Ok(()) } else { Err("its fault points need a child process: say Check::child".into()) }
}

/// What the targets over a [`Folder`] have in common.
macro_rules! in_a_folder {
    ($name:expr, $points:expr) => {
        fn backup(&mut self) -> Result<(), Trouble> {
            self.0.backup()
        }

        fn restore(&mut self) -> Result<(), Trouble> {
            self.0.restore()
        }

        fn fault_points(&self) -> &[&str] {
            &$points
        }

        fn arm(&mut self, _: &str, _: u64) -> Result<(), Trouble> {
            $crate::shipped::arm()
        }

        fn address(&self) -> Option<String> {
            self.0.address()
        }

        fn attach(address: &str) -> Result<Self, Trouble> {
            Ok(Self($crate::shipped::Folder::at(address)))
        }

        fn declines(&self) -> &[(&str, &str)] {
            $crate::shipped::declined()
        }

        fn artifact(&self) -> Option<$crate::Artifact> {
            $crate::shipped::artifact()
        }

        fn name(&self) -> String {
            $name.into()
        }
    };
}
use in_a_folder;

/// The position in a database of ours.
fn position(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT position FROM capstan_position", [], |row| row.get(0)).optional()
}

fn plant(connection: &Connection, position: &str) -> Result<(), Trouble> {
    connection.execute("UPDATE capstan_position SET position = ?1", [position])?;
    Ok(())
}

/// A folder of files that are one storage.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Removes it.
    _fresh: Option<TempDir>,
}

impl Folder {
    fn fresh() -> io::Result<Self> {
        let fresh = tempfile::tempdir()?;
        fs::create_dir(fresh.path().join(HERE))?;
        Ok(Self { path: fresh.path().to_owned(), _fresh: Some(fresh) })
    }

    fn at(address: &str) -> Self {
        Self { path: address.into(), _fresh: None }
    }

    fn address(&self) -> Option<String> {
        self.path.to_str().map(str::to_owned)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(HERE).join(name)
    }

    fn backup(&self) -> Result<(), Trouble> {
        Ok(copy(&self.path.join(HERE), &self.path.join(ASIDE))?)
    }

    fn restore(&self) -> Result<(), Trouble> {
        Ok(copy(&self.path.join(ASIDE), &self.path.join(HERE))?)
    }
}

const HERE: &str = "here";
const ASIDE: &str = "aside";

/// The files of one folder in the place of those of another.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}
