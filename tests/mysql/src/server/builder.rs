//! What a server is started with.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use super::{HOST, Server};
use crate::cache::copy_folder;
use crate::instance::Instance;
use crate::port::Port;
use crate::template::{storage_options, template};
use crate::{Flavour, LaunchError, Mysql};

/// How often another port is tried when a stranger took ours between our look and the server's.
const PORT_TRIES: u32 = 5;

/// Describes a server before it is started.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ServerBuilder {
    flavour: Flavour,
    options: Vec<String>,
    port: Option<u16>,
    server_uuid: Option<String>,
    durable: bool,
}

impl ServerBuilder {
    /// The kind of server; [`Flavour::Mysql97`] unless said.
    pub fn flavour(mut self, flavour: Flavour) -> ServerBuilder {
        self.flavour = flavour;
        self
    }

    /// One more option of `mysqld`, as `--binlog-checksum=NONE`. It wins over the defaults and over earlier ones.
    pub fn option(mut self, option: impl Into<String>) -> ServerBuilder {
        self.options.push(option.into());
        self
    }

    /// Several [options](ServerBuilder::option).
    pub fn options<O: Into<String>>(mut self, options: impl IntoIterator<Item = O>) -> ServerBuilder {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// That TCP port and no other; a free one unless said.
    pub fn port(mut self, port: u16) -> ServerBuilder {
        self.port = Some(port);
        self
    }

    /// That `server_uuid`; one of its own unless said. Two servers with one are two sources that look like one.
    pub fn server_uuid(mut self, uuid: impl Into<String>) -> ServerBuilder {
        self.server_uuid = Some(uuid.into());
        self
    }

    /// Every commit is flushed to the disk, as production servers do. Without it the operating system has every
    /// commit, which survives a `kill -9` of the server but not the loss of the machine, and is faster.
    pub fn durable(mut self) -> ServerBuilder {
        self.durable = true;
        self
    }

    /// Starts it and returns when it answers: about a second and a half, a few more for the first of a version.
    pub fn start(self) -> Result<Server, LaunchError> {
        let mysql = Mysql::of(self.flavour)?;
        let template = template(&mysql, &self.options)?;
        let mut tries = 1;
        loop {
            let port = match self.port {
                Some(number) => Port::exactly(number)?,
                None => Port::any()?,
            };
            let server = self.lay_out(&mysql, &template, port)?;
            match server.launch() {
                Err(LaunchError::NotStarted { log })
                    if self.port.is_none()
                        && tries < PORT_TRIES
                        && log.contains("Address already in use") =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok(server),
            }
        }
    }

    fn lay_out(&self, mysql: &Mysql, template: &Path, port: Port) -> Result<Server, LaunchError> {
        let server = Server {
            mysql: mysql.clone(),
            port,
            instance: Instance::create()?,
            durable: self.durable,
            options: Mutex::new(self.options.clone()),
            child: Mutex::new(None),
        };
        copy_folder(template, &server.datadir())?;
        if let Some(uuid) = &self.server_uuid {
            let path = server.datadir().join("auto.cnf");
            fs::write(&path, format!("[auto]\nserver-uuid={uuid}\n")).map_err(LaunchError::at(&path))?;
        }
        Ok(server)
    }
}

/// The defaults, before what the caller adds.
pub(super) fn default_options(server: &Server) -> Vec<String> {
    let folder = server.folder().display();
    let mut options = vec![
        format!("--datadir={}", server.datadir().display()),
        format!("--tmpdir={folder}"),
        format!("--socket={}", server.socket().display()),
        format!("--pid-file={folder}/mysqld.pid"),
        format!("--log-error={}", server.error_log_path().display()),
        format!("--bind-address={HOST}"),
        format!("--port={}", server.port()),
        format!("--server-id={}", server.port()),
    ];
    let mut add = |more: &[&str]| options.extend(more.iter().map(|option| (*option).to_owned()));
    add(storage_options(server.flavour()));
    // Truth from `SELECT` and from the binlog must not depend on the machine.
    add(&["--default-time-zone=+00:00", "--log-bin=bin", "--relay-log=relay", "--binlog-format=ROW"]);
    // Lean: many servers share a small machine. Native AIO takes from a system-wide limit that a dozen servers use up.
    add(&["--max-connections=100", "--table-open-cache=400", "--loose-innodb-use-native-aio=OFF"]);
    if server.durable {
        add(&["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]);
    } else {
        add(&["--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"]);
    }
    match server.flavour() {
        Flavour::Mysql97 => {
            add(&["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-row-metadata=FULL"]);
            add(&["--loose-mysqlx=OFF", "--secure-file-priv="]);
        }
        Flavour::Mysql56 => add(&["--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates"]),
        Flavour::MariaDb => add(&["--binlog-row-metadata=FULL"]),
    }
    options
}
