//! Regenerates the fixtures of this repository: binlog files, and conversations with servers, from real servers.

mod binlog;
mod recorder;
mod script;
mod sessions;

use std::path::Path;

use capstan_mysql::LaunchError;

/// The identity of every capturing server, so that a new capture changes no GTID.
const SERVER_UUID: &str = "ca957a00-0000-4000-8000-000000000001";

/// Captures what lies in `fixtures`: each `captured/NAME.sql`, each known `session/NAME.hex`; only those named, if any.
pub(crate) fn capture(fixtures: &Path, names: &[&str]) -> Result<(), LaunchError> {
    let wanted = |name: &str| names.is_empty() || names.contains(&name);
    let mut captured = 0;
    for script in binlog::scripts(&fixtures.join("captured"))? {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if wanted(&name) {
            println!("captured/{name}");
            binlog::capture(&script, &name)?;
            captured += 1;
        }
    }
    for (name, record) in sessions::ALL {
        if wanted(name) {
            println!("session/{name}");
            let path = fixtures.join("session").join(format!("{name}.hex"));
            std::fs::write(&path, record()?).map_err(io(&path))?;
            captured += 1;
        }
    }
    if captured == 0 {
        return Err(failure(format!("{} holds none of {names:?}", fixtures.display())));
    }
    Ok(())
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> LaunchError + use<> {
    let what = path.display().to_string();
    move |source| LaunchError::Io { what, source }
}

fn failure(what: String) -> LaunchError {
    LaunchError::Io { what, source: std::io::ErrorKind::InvalidData.into() }
}
