//! What tests do with a running server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::{HOST, Server};
use crate::client::as_text;
use crate::error::tail;
use crate::{LaunchError, Session, SqlError};

/// The account by which one server follows another.
const REPLICA_ACCOUNT: &str = "capstan_replica";

impl Server {
    /// A new session as `root`, to hold a transaction open, run `XA`, set session variables.
    pub fn connect(&self) -> Result<Session, SqlError> {
        Session::connect(&self.socket(), "root")
    }

    /// Runs one or more statements in a session of their own and returns their rows as text, as [`Session::sql`] does.
    /// Stored programs need no `DELIMITER`. The first refused statement ends it.
    pub fn sql(&self, sql: &str) -> Result<String, SqlError> {
        self.connect()?.sql(sql)
    }

    /// Like [`sql`](Server::sql), with the rows of the last statement as text values, `None` for NULL.
    /// What is not UTF-8 is shown with replacement characters.
    pub fn sql_rows(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        let last = self.connect()?.query(sql)?.pop();
        let text = |value: Option<Vec<u8>>| value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let rows = last.map(|result| result.rows).unwrap_or_default();
        Ok(rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    /// Runs the statements of a file.
    pub fn sql_file(&self, path: &Path) -> Result<String, LaunchError> {
        let script = fs::read(path).map_err(LaunchError::at(path))?;
        Ok(as_text(&self.connect()?.query_bytes(&script)?))
    }

    /// Makes an account for any host with that password and those grants, each as `REPLICATION SLAVE ON *.*`.
    pub fn user(&self, name: &str, password: &str, grants: &[&str]) -> Result<(), SqlError> {
        let account = format!("{}@'%'", quote(name));
        let mut script = format!("CREATE USER {account} IDENTIFIED BY {};", quote(password));
        for grant in grants {
            script.push_str(&format!("GRANT {grant} TO {account};"));
        }
        self.sql(&script).map(drop)
    }

    /// Makes this server a replica of `source`, by GTIDs, and starts it. The account it uses is made on the source
    /// without a trace in its binlog.
    pub fn replica_of(&self, source: &Server) -> Result<(), SqlError> {
        let account = quote(REPLICA_ACCOUNT);
        source.sql(&format!(
            "SET sql_log_bin = 0;
             CREATE USER IF NOT EXISTS {account}@'%' IDENTIFIED BY {account};
             GRANT REPLICATION SLAVE ON *.* TO {account}@'%'"
        ))?;
        self.sql(&format!(
            "STOP REPLICA;
             CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{HOST}', SOURCE_PORT = {},
               SOURCE_USER = {account}, SOURCE_PASSWORD = {account}, SOURCE_AUTO_POSITION = 1,
               GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1;
             START REPLICA",
            source.port()
        ))
        .map(drop)
    }

    /// `@@GLOBAL.gtid_executed`, without line breaks.
    pub fn gtid_executed(&self) -> Result<String, SqlError> {
        Ok(self.sql("SELECT @@GLOBAL.gtid_executed")?.replace('\n', ""))
    }

    /// Waits until this server has executed `gtid_set`; whether it did within `patience`.
    pub fn wait_for_gtids(&self, gtid_set: &str, patience: Duration) -> Result<bool, SqlError> {
        let seconds = patience.as_secs_f64();
        let answer =
            self.sql(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET({}, {seconds})", quote(gtid_set)))?;
        Ok(answer.trim() == "0")
    }

    /// The binlog files, oldest first, as the index on disk lists them (also while the server is down).
    pub fn binlogs(&self) -> Result<Vec<PathBuf>, LaunchError> {
        let datadir = self.datadir();
        let index = datadir.join("bin.index");
        let names = fs::read_to_string(&index).map_err(LaunchError::at(&index))?;
        Ok(names.lines().map(|name| datadir.join(name.trim_start_matches("./"))).collect())
    }

    /// What the server's own `mysqlbinlog` prints when it is called with those arguments.
    pub fn mysqlbinlog<A: AsRef<std::ffi::OsStr>>(&self, arguments: &[A]) -> Result<Vec<u8>, LaunchError> {
        let output = self
            .mysql
            .program("mysqlbinlog")?
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(LaunchError::io("mysqlbinlog"))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = tail(&String::from_utf8_lossy(&output.stderr));
        Err(LaunchError::Program { name: "mysqlbinlog".to_owned(), output: said })
    }
}

/// A string literal of SQL.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
