//! The folder in which servers are kept, made once per machine however many processes ask at once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::LaunchError;

/// The cache folder: `$CAPSTAN_MYSQL_CACHE`; else `capstan-mysql` in the cargo target folder that the running
/// program lies in; else, for an installed program, the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`).
pub fn cache_dir() -> Result<PathBuf, LaunchError> {
    if let Some(dir) = variable("CAPSTAN_MYSQL_CACHE") {
        return Ok(dir);
    }
    if let Some(target) = std::env::current_exe().ok().as_deref().and_then(target_folder) {
        return Ok(target.join("capstan-mysql"));
    }
    if let Some(dir) = variable("XDG_CACHE_HOME") {
        return Ok(dir.join("capstan-mysql"));
    }
    if let Some(home) = variable("HOME") {
        return Ok(home.join(".cache").join("capstan-mysql"));
    }
    Err(LaunchError::Io {
        what: "no cache folder: set CAPSTAN_MYSQL_CACHE to a folder for the servers".to_owned(),
        source: std::io::ErrorKind::NotFound.into(),
    })
}

/// The folder `name` in the cache, made by `make` if it is not there yet.
///
/// `make` fills a folder under another name which is renamed when it is whole, so a folder that is there is whole.
/// A lock lets only one process make it; the others wait and find it.
pub(crate) fn made_once(
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), LaunchError>,
) -> Result<PathBuf, LaunchError> {
    let cache = cache_dir()?;
    let place = cache.join(name);
    if place.is_dir() {
        return Ok(place);
    }
    fs::create_dir_all(&cache).map_err(LaunchError::at(&cache))?;
    let lock_path = cache.join(format!("{name}.lock"));
    let lock = File::create(&lock_path).map_err(LaunchError::at(&lock_path))?;
    // Held until it is dropped at the end of this function, or by the kernel when this process dies.
    lock.lock().map_err(LaunchError::at(&lock_path))?;
    if place.is_dir() {
        return Ok(place);
    }
    let draft = cache.join(format!("{name}.draft"));
    remove_folder(&draft)?;
    fs::create_dir(&draft).map_err(LaunchError::at(&draft))?;
    make(&draft)?;
    fs::rename(&draft, &place).map_err(LaunchError::at(&place))?;
    Ok(place)
}

/// Removes a folder with all that is in it; that it is not there is no failure.
pub(crate) fn remove_folder(path: &Path) -> Result<(), LaunchError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LaunchError::at(path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Copies a folder of plain files and folders.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), LaunchError> {
    fs::create_dir_all(to).map_err(LaunchError::at(to))?;
    for entry in fs::read_dir(from).map_err(LaunchError::at(from))? {
        let entry = entry.map_err(LaunchError::at(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(LaunchError::at(&source))?.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(LaunchError::at(&source))?;
        }
    }
    Ok(())
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The nearest folder above `program` that cargo marked as its own.
fn target_folder(program: &Path) -> Option<&Path> {
    program.ancestors().skip(1).find(|folder| folder.join(".rustc_info.json").is_file())
}
