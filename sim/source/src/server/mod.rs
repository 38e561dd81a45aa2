//! One simulated server: its binlog files, its GTID sets, its sessions.

mod answers;
mod dump;
mod engine;
mod log;
mod session;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;

pub use engine::{State, Write, Writes};
pub use log::File;
pub use session::{Damage, SessionId};
pub use variables::Variables;

use self::session::Session;
use crate::group::Group;
use capstan_core::gtid::{GtidSet, Uuid};

/// The password of a server's only account, if no other is set.
const PASSWORD: &[u8] = b"secret";

/// A simulated server. Times are microseconds from any origin.
#[derive(Debug)]
pub struct Server {
    /// `server_uuid`.
    pub uuid: Uuid,
    /// `server_id`.
    pub server_id: u32,
    /// As the greeting says it.
    pub version: String,
    /// Global variables by lower-case name.
    pub variables: Variables,
    /// `binlog_checksum` of the files written from now on.
    pub crc32: bool,
    /// Tables under cascades that the log does not hold.
    pub cascades: Vec<(String, String)>,
    /// Whether it replicates from another server.
    pub is_replica: bool,
    /// `binlog-do-db` and `binlog-ignore-db`.
    pub filters: (String, String),
    /// The only account's password.
    pub password: Vec<u8>,
    /// What every greeting is replaced by: number and text.
    pub refuses: Option<(u16, String)>,
    /// `max_connections`; `None`: as many as come.
    pub connections_max: Option<usize>,
    /// Whether `max_prepared_stmt_count` lets statements be prepared.
    pub prepares_statements: bool,
    /// `Threads_running`.
    pub threads_running: u64,
    /// How much later than its source it applies transactions, in µs.
    pub lag_us: Option<u64>,
    files: Vec<File>,
    executed: GtidSet,
    purged: GtidSet,
    engine: engine::Engine,
    sessions: Vec<(SessionId, Box<Session>)>,
    next_session: u32,
}

impl Server {
    /// A server with the settings that are asked for, and an empty log.
    #[must_use]
    pub fn new(uuid: Uuid, server_id: u32, version: &str) -> Self {
        Self {
            uuid,
            server_id,
            version: version.into(),
            variables: Variables::default(),
            crc32: true,
            cascades: Vec::new(),
            is_replica: false,
            filters: (String::new(), String::new()),
            password: PASSWORD.to_vec(),
            refuses: None,
            connections_max: None,
            prepares_statements: true,
            threads_running: 2,
            lag_us: None,
            files: vec![File::first(version, true)],
            executed: GtidSet::new(),
            purged: GtidSet::new(),
            engine: engine::Engine::default(),
            sessions: Vec::new(),
            next_session: 1,
        }
    }

    /// Another server of the same settings and log, to which nobody is connected.
    #[must_use]
    pub fn twin(&self, uuid: Uuid, server_id: u32) -> Self {
        Self {
            uuid,
            server_id,
            version: self.version.clone(),
            variables: self.variables.clone(),
            cascades: self.cascades.clone(),
            filters: self.filters.clone(),
            password: self.password.clone(),
            refuses: self.refuses.clone(),
            files: self.files.clone(),
            executed: self.executed.clone(),
            purged: self.purged.clone(),
            engine: self.engine.twin(),
            sessions: Vec::new(),
            ..*self
        }
    }

    /// Sets a global variable.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.set(name, value);
    }

    /// `gtid_executed`.
    #[must_use]
    pub const fn executed(&self) -> &GtidSet {
        &self.executed
    }

    /// `gtid_purged`.
    #[must_use]
    pub const fn purged(&self) -> &GtidSet {
        &self.purged
    }

    /// Its binlog files, the one being written last.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Commits a group: it is in the log and executed.
    pub fn append(&mut self, group: &Arc<Group>) {
        if let Some(gtid) = group.gtid() {
            self.executed.add(gtid);
        }
        if let Some(file) = self.files.last_mut() {
            file.push(group);
        }
        self.ordered(group.gtid().copied());
    }

    /// `FLUSH BINARY LOGS`: the next file.
    pub fn rotate(&mut self) {
        // It waits for commits that are under way (`MYSQL_BIN_LOG::wait_for_prep_xids`).
        self.settles();
        let next = File::after(self.files.last(), &self.version, self.crc32, &self.executed, 0);
        if let Some(file) = self.files.last_mut() {
            file.rotate_to(&next);
        }
        self.files.push(next);
    }

    /// Shuts down or dies, and starts again: every session ends, a new file begins.
    pub fn restart(&mut self, clean: bool, created: u32) {
        self.restart_engine();
        self.sessions.clear();
        let next = File::after(self.files.last(), &self.version, self.crc32, &self.executed, created);
        if let Some(file) = self.files.last_mut()
            && clean
        {
            file.stop();
        }
        self.files.push(next);
    }

    /// `PURGE BINARY LOGS`: drops the oldest files but the last `keep` of them, and those that a dump
    /// reads (the manual: "if you have active replicas that are currently reading one of the log files
    /// you are trying to delete, this statement does not delete the log file that is in use").
    pub fn purge(&mut self, keep: usize) {
        let mut drop = self.files.len().saturating_sub(keep.max(1));
        for name in self.sessions.iter().filter_map(|(_, session)| session.reads()) {
            if let Some(used) = self.files.iter().position(|file| file.name() == name) {
                drop = drop.min(used);
            }
        }
        for file in self.files.drain(..drop) {
            self.purged = self.purged.union(file.gtids());
        }
    }

    /// Takes the newest `count` groups out of the log again: what a replica has not applied yet.
    pub fn take_back(&mut self, count: usize) -> Vec<Arc<Group>> {
        self.settles();
        let mut taken = Vec::new();
        for file in self.files.iter_mut().rev() {
            while taken.len() < count {
                let Some(group) = file.pop() else { break };
                if let Some(gtid) = group.gtid() {
                    self.engine.unordered(gtid);
                    self.executed = self.executed.subtract(&GtidSet::from(*gtid));
                }
                taken.push(group);
            }
        }
        let executed = self.executed.clone();
        // Files that began behind what is gone begin earlier now.
        self.files.retain(|file| file.previous().is_subset(&executed));
        if let Some(file) = self.files.last_mut() {
            file.reopen();
        }
        taken.reverse();
        taken
    }

    /// `RESET BINARY LOGS AND GTIDS`.
    pub fn reset(&mut self) {
        self.files = vec![File::first(&self.version, self.crc32)];
        self.executed = GtidSet::new();
        self.purged = GtidSet::new();
        self.engine = self.engine.twin();
        self.sessions.clear();
    }

    /// `SET GLOBAL gtid_purged` on an empty server, as a restored backup does.
    pub fn seed(&mut self, set: &GtidSet) {
        self.executed = self.executed.union(set);
        self.purged = self.purged.union(set);
        self.files = vec![File::after(None, &self.version, self.crc32, &self.executed, 0)];
    }

    /// Counts these as executed, though no log of it has them.
    pub fn counts(&mut self, set: &GtidSet) {
        self.executed = self.executed.union(set);
    }

    /// Replaces its files by these, as captured from a real server.
    pub fn with_files(mut self, files: Vec<File>) -> Self {
        self.executed = files.iter().fold(GtidSet::new(), |set, file| set.union(file.gtids()));
        self.files = files;
        self
    }
}
