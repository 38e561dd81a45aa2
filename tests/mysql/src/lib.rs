//! Fetches, starts and stops real MySQL servers for tests and demos, beside the system.
//!
//! ```no_run
//! use capstan_mysql::Server;
//!
//! # fn main() -> Result<(), capstan_mysql::LaunchError> {
//! let server = Server::builder().option("--binlog-checksum=NONE").start()?;
//! server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2)")?;
//! assert_eq!(server.sql("SELECT COUNT(*) FROM d.t")?, "2\n");
//! server.kill9()?;
//! server.restart()?;
//! # Ok(())
//! # } // the server is killed and its folder removed here, also when a test panics
//! ```
//!
//! # Where a server comes from
//!
//! In this order, for [`Flavour::Mysql97`]:
//!
//! 1. the `mysqld` that the environment variable `CAPSTAN_MYSQLD` names;
//! 2. a `mysqld` on `PATH`, if it is MySQL 8.0.14 or later (a MariaDB is passed over);
//! 3. on Debian, the packages of the *sid* suite from the mirror the machine already uses, unpacked beside the
//!    system (never installed) into the [cache folder](cache_dir), once per machine.
//!
//! Where none is possible, [`LaunchError::NoServer`] says how to get one. Nothing is ever skipped in silence.
//! [`Flavour::Mysql56`] comes from an npm package, [`Flavour::MariaDb`] from the machine's own Debian suite.
//!
//! # What a server is
//!
//! A private folder in the temporary folder with the data, the socket and the error log; a free port on 127.0.0.1;
//! its own `server_id`, `server_uuid` and certificates; `root` without a password. It serves until its [`Server`] is
//! dropped. A watchdog process ends it when the process that started it dies in any other way, and what even that
//! missed is swept at the next start.
//!
//! What this crate never does: install anything, write outside its cache folder and the temporary folder, listen
//! on anything but the loopback address.

mod cache;
mod client;
mod error;
mod fetch;
mod flavour;
mod install;
mod instance;
mod port;
mod server;
mod template;

pub use cache::cache_dir;
pub use client::{ResultSet, Session, as_text};
pub use error::{LaunchError, SqlError};
pub use flavour::Flavour;
pub use install::Mysql;
pub use instance::sweep;
pub use server::{HOST, Server, ServerBuilder, stop_detached};
