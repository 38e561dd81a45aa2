//! What exactly was checked, and by what.

use std::{fmt::Write as _, fs, path::Path, sync::LazyLock};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A package, and a digest of what it was built from or into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// What was digested, and its SHA-256 in hex.
    pub digest: Option<(String, String)>,
}

impl Artifact {
    /// A package with the lock file that it is built under: `Cargo.lock` in its folder or above it. What
    /// [`crate::artifact!`] gives.
    #[must_use]
    pub fn of_package(package: &str, version: &str, folder: &str) -> Self {
        let lock = Path::new(folder).ancestors().map(|folder| folder.join("Cargo.lock"));
        let bytes = lock.into_iter().find_map(|lock| fs::read(lock).ok());
        let digest = bytes.map(|bytes| ("Cargo.lock".to_owned(), sha256(&bytes)));
        Self { package: package.into(), version: version.into(), digest }
    }

    /// A package with the program that it was built into: this one.
    #[must_use]
    pub fn of_program(package: &str, version: &str) -> Self {
        let digest = program_sha256().map(|sha256| ("program".to_owned(), sha256.to_owned()));
        Self { package: package.into(), version: version.into(), digest }
    }

    pub(crate) fn json(&self) -> Value {
        let (of, sha256) = self.digest.clone().unzip();
        json!({ "package": self.package, "version": self.version, "digest_of": of, "sha256": sha256 })
    }
}

/// The package that calls it, as an [`Artifact`].
#[macro_export]
macro_rules! artifact {
    () => {
        $crate::Artifact::of_package(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            env!("CARGO_MANIFEST_DIR"),
        )
    };
}

/// The program that this is: producer and consumer of the units, and what compared the two.
pub(crate) fn program_sha256() -> Option<&'static str> {
    static DIGEST: LazyLock<Option<String>> =
        LazyLock::new(|| Some(sha256(&std::env::current_exe().and_then(fs::read).ok()?)));
    DIGEST.as_deref()
}

fn sha256(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
