//! A port that stays ours: while the server runs, and between its kill and its restart.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use crate::LaunchError;
use crate::instance::{base_folder, user_id};

/// Ports above the well-known ones and, with Linux's default, below those the kernel hands out for outgoing
/// connections: such a one could be taken while our server is down.
const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

/// A reserved port: other users of this crate keep off it until it is dropped.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// A port that is free now and that no other server of this crate will take.
    pub(crate) fn any() -> Result<Port, LaunchError> {
        let count = LAST - FIRST + 1;
        let start = (RandomState::new().hash_one(std::process::id()) % u64::from(count)) as u16;
        for step in 0..count {
            let number = FIRST + (start + step) % count;
            if let Some(port) = Port::take(number)?.filter(|_| is_free(number)) {
                return Ok(port);
            }
        }
        Err(LaunchError::Io { what: "no free port".to_owned(), source: std::io::ErrorKind::AddrInUse.into() })
    }

    /// That port, which the caller chose.
    pub(crate) fn exactly(number: u16) -> Result<Port, LaunchError> {
        Port::take(number)?.filter(|_| is_free(number)).ok_or_else(|| LaunchError::Io {
            what: format!("port {number}"),
            source: std::io::ErrorKind::AddrInUse.into(),
        })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    fn take(number: u16) -> Result<Option<Port>, LaunchError> {
        let base = base_folder();
        let folder = base.join(format!("capstan-mysql-ports-{}", user_id(&base)?));
        fs::create_dir_all(&folder).map_err(LaunchError::at(&folder))?;
        let path = folder.join(number.to_string());
        // The file stays when the lock goes: a lock on a file that another unlinked would guard nothing.
        let lock = File::create(&path).map_err(LaunchError::at(&path))?;
        Ok(lock.try_lock().is_ok().then_some(Port { number, _lock: lock }))
    }
}

fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
}
