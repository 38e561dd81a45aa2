//! One running server.

mod builder;
mod process;
mod use_it;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::instance::{self, Instance};
use crate::port::Port;
use crate::{Flavour, LaunchError, Mysql};

pub use builder::ServerBuilder;

/// The address every server listens on.
pub const HOST: &str = "127.0.0.1";

/// A server of its own: its folder, port, identity and certificates are nobody else's.
///
/// All methods take `&self`, so that one test can write from several threads while another kills the server.
/// Dropping it kills the server and removes its folder (unless the environment variable `CAPSTAN_MYSQL_KEEP` is
/// set: then the folder stays for a look at its logs and binlogs).
pub struct Server {
    mysql: Mysql,
    port: Port,
    instance: Instance,
    durable: bool,
    options: Mutex<Vec<String>>,
    child: Mutex<Option<Child>>,
}

impl Server {
    /// A server to be described and started.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// A server with the default options: the MySQL that Capstan supports, as Capstan wants its sources.
    pub fn start() -> Result<Server, LaunchError> {
        Server::builder().start()
    }

    /// The programs it runs from.
    pub fn mysql(&self) -> &Mysql {
        &self.mysql
    }

    /// What kind of server it is.
    pub fn flavour(&self) -> Flavour {
        self.mysql.flavour()
    }

    /// Its version as its program tells it.
    pub fn version(&self) -> &str {
        self.mysql.version()
    }

    /// `127.0.0.1`.
    pub fn host(&self) -> &'static str {
        HOST
    }

    /// The TCP port: the same through kill and restart. It is the `server_id` too.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The socket file; its path has at most 100 bytes.
    pub fn socket(&self) -> PathBuf {
        self.instance.socket()
    }

    /// The private folder that all of it lies in.
    pub fn folder(&self) -> &Path {
        self.instance.folder()
    }

    /// The data folder.
    pub fn datadir(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// The server's process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether the process runs: a look at the process, not at what this crate did to it.
    pub fn is_running(&self) -> bool {
        self.child().as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Everything it wrote to its error log so far.
    pub fn error_log(&self) -> String {
        let bytes = std::fs::read(self.error_log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The file of the authority that signed the server's certificate. The server makes both at its first start, so
    /// two servers have two authorities. The certificate names no host: only verify-ca can succeed with it.
    pub fn ca_path(&self) -> PathBuf {
        self.datadir().join("ca.pem")
    }

    /// The text of [`ca_path`](Server::ca_path).
    pub fn ca_pem(&self) -> Result<String, LaunchError> {
        self.pem("ca.pem")
    }

    /// The RSA key that `caching_sha2_password` uses without TLS, without the NUL byte that the server's file ends in.
    pub fn public_key_pem(&self) -> Result<String, LaunchError> {
        self.pem("public_key.pem")
    }

    /// Where to reach it, as `root` without a password.
    pub fn url(&self) -> String {
        self.url_for("root", "")
    }

    /// Where to reach it as that account: with TLS against its own authority where it offers TLS.
    pub fn url_for(&self, user: &str, password: &str) -> String {
        let password = if password.is_empty() { String::new() } else { format!(":{}", percent(password)) };
        let ca = self.ca_path();
        let tls = if ca.is_file() {
            // A path reads better with its slashes, and a query may hold them; a password may not.
            format!("ssl-mode=verify-ca&ssl-ca={}", percent(&ca.to_string_lossy()).replace("%2F", "/"))
        } else {
            "ssl-mode=disabled".to_owned()
        };
        format!("mysql://{}{password}@{HOST}:{}/?{tls}", percent(user), self.port())
    }

    /// Lets the server outlive this process; [`stop_detached`] ends it. Returns its folder.
    pub fn detach(mut self) -> Result<PathBuf, LaunchError> {
        self.instance.detach()?;
        *self.child() = None;
        Ok(self.folder().to_owned())
    }

    fn pem(&self, name: &str) -> Result<String, LaunchError> {
        let path = self.datadir().join(name);
        let text = std::fs::read_to_string(&path).map_err(LaunchError::at(&path))?;
        Ok(text.trim_end_matches('\0').to_owned())
    }

    fn error_log_path(&self) -> PathBuf {
        self.folder().join("error.log")
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self) -> MutexGuard<'_, Vec<String>> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a server that was [detached](Server::detach), by its folder, and removes the folder.
pub fn stop_detached(folder: &Path) -> Result<(), LaunchError> {
    if !folder.join("data").is_dir() || folder.join("owner").exists() {
        return Err(LaunchError::Io {
            what: format!("{} is not the folder of a server that was started detached", folder.display()),
            source: std::io::ErrorKind::InvalidInput.into(),
        });
    }
    instance::stop_detached(folder)
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child().is_none() && !self.folder().join("owner").exists() {
            return; // detached
        }
        let _ = self.kill9();
        if std::env::var_os("CAPSTAN_MYSQL_KEEP").is_some() {
            eprintln!("capstan-mysql: kept {}", self.folder().display());
            let _ = self.instance.detach();
        } else {
            let _ = self.instance.remove();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("version", &self.version())
            .field("port", &self.port())
            .field("folder", &self.folder())
            .finish_non_exhaustive()
    }
}

/// Percent-encoding as RFC 3986 has it: all but the unreserved characters.
fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}
