//! The dump of a session: which event comes next (`sql/rpl_binlog_sender.cc`).

use bytes::BytesMut;

use super::{File, Server};
use crate::event::{Body, Event};
use capstan_core::gtid::{Gtid, GtidSet};

/// Where a dump stands.
#[derive(Debug)]
pub(super) struct Dump {
    /// What the replica has.
    has: GtidSet,
    /// By name: indexes move when files are purged.
    file: String,
    step: Step,
    /// Version 2 heartbeats were asked for.
    heartbeat_v2: bool,
    /// Whether events carry sums right now: the artificial ROTATE has those of the file before.
    crc32: bool,
    /// Groups were stepped over since the last event: a heartbeat tells the place.
    stepped_over: bool,
    pub(super) last_sent: u64,
    pub(super) heartbeat_every: u64,
}

#[derive(Debug)]
enum Step {
    Rotate,
    Head(usize),
    Group(usize, usize, u64),
    Tail,
}

/// The dump cannot begin: number and text of the error packet.
pub(super) type Refusal = (u16, &'static str);

pub(super) const PURGED: Refusal = (
    1236,
    "Cannot replicate because the source purged required binary logs. Replicate the missing transactions from \
     elsewhere, or provision a new replica from backup.",
);
const MORE_GTIDS: Refusal = (
    1236,
    "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate that the end \
     of the binary log was truncated or that the last binary log file was lost.",
);
pub(super) const CHECKSUM: Refusal =
    (1236, "Replica can not handle replication events with the checksum that source is configured to log");
pub(super) const REPLACED: Refusal = (
    1236,
    "A replica with the same server_uuid/server_id as this replica has connected to the source; the first event \
     '' at 4",
);
const NO_LOG: Refusal = (1236, "Binary log is not open");

impl Dump {
    /// Finds the file to start in: the newest whose predecessors the replica has whole.
    pub(super) fn open(
        server: &Server,
        has: GtidSet,
        heartbeat_v2: bool,
        heartbeat_every: u64,
        crc32: bool,
        now: u64,
    ) -> Result<Self, Refusal> {
        if server.variables.get("log_bin").is_some_and(|value| value == "OFF" || value == "0") {
            return Err(NO_LOG);
        }
        let ahead = has.subtract(&server.executed);
        if ahead.sources().any(|uuid| uuid == server.uuid) {
            return Err(MORE_GTIDS);
        }
        if !server.executed.subtract(&has).is_disjoint(&server.purged) {
            return Err(PURGED);
        }
        let file = server.files.iter().rev().find(|file| file.previous().is_subset(&has));
        let file = file.ok_or(PURGED)?.name().to_owned();
        Ok(Self {
            has,
            file,
            step: Step::Rotate,
            heartbeat_v2,
            crc32,
            stepped_over: false,
            last_sent: now,
            heartbeat_every,
        })
    }

    /// Writes the next event; `false`: everything was sent.
    pub(super) fn next(&mut self, files: &[File], out: &mut BytesMut) -> bool {
        loop {
            let Some(at) = files.iter().rposition(|file| file.name() == self.file) else { return false };
            let file = &files[at];
            match self.step {
                Step::Rotate => {
                    self.step = Step::Head(0);
                    out.extend_from_slice(&self.artificial_rotate());
                    return true;
                }
                Step::Head(n) => {
                    self.crc32 = file.crc32();
                    if let Some(event) = file.head_events().get(n) {
                        self.step = Step::Head(n + 1);
                        out.extend_from_slice(event);
                        return true;
                    }
                    self.step = Step::Group(0, 0, 0);
                }
                Step::Group(group, event, at) => {
                    let Some(current) = file.groups().get(group) else {
                        if self.stepped_over {
                            out.extend_from_slice(&self.heartbeat(file));
                            return true;
                        }
                        if !file.is_closed() && at_last(files, file) {
                            return false;
                        }
                        self.step = Step::Tail;
                        continue;
                    };
                    if event == 0 && current.gtid().is_some_and(|gtid| self.has.contains(gtid)) {
                        self.step = Step::Group(group + 1, 0, 0);
                        self.stepped_over = true;
                        continue;
                    }
                    if self.stepped_over {
                        out.extend_from_slice(&self.heartbeat(file));
                        return true;
                    }
                    let at = if event == 0 { file.start_of(group) } else { at };
                    let before = out.len();
                    if !current.write(event, at, file.crc32(), out) {
                        self.step = Step::Group(group + 1, 0, 0);
                        continue;
                    }
                    self.step = Step::Group(group, event + 1, at + (out.len() - before) as u64);
                    return true;
                }
                Step::Tail => {
                    let Some(next) = files.get(at + 1) else { return false };
                    next.name().clone_into(&mut self.file);
                    self.step = Step::Rotate;
                    if let Some(tail) = file.tail_event() {
                        out.extend_from_slice(&tail);
                        return true;
                    }
                }
            }
        }
    }

    /// The group it is inside of.
    pub(super) fn inside(&self, files: &[File]) -> Option<Gtid> {
        let Step::Group(group, 1.., _) = self.step else { return None };
        let file = files.iter().rfind(|file| file.name() == self.file)?;
        file.groups().get(group)?.gtid().copied()
    }

    /// The file it is in.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Whether events carry sums right now.
    pub(super) const fn carries_sums(&self) -> bool {
        self.crc32
    }

    /// An artificial ROTATE to the present file.
    pub(super) fn artificial_rotate(&self) -> Vec<u8> {
        let body = Body::Rotate { position: 4, file: self.file.as_bytes().to_vec() };
        Event::of(0, 1, body).flagged(crate::event::ARTIFICIAL).encode(self.crc32)
    }

    /// A heartbeat at the present place.
    pub(super) fn heartbeat_now(&mut self, files: &[File]) -> Option<Vec<u8>> {
        let file = files.iter().rfind(|file| file.name() == self.file)?;
        Some(self.heartbeat(file))
    }

    fn heartbeat(&mut self, file: &File) -> Vec<u8> {
        self.stepped_over = false;
        let position = match self.step {
            Step::Group(group, ..) => file.start_of(group),
            Step::Rotate | Step::Head(_) | Step::Tail => file.end(),
        };
        let name = file.name().as_bytes().to_vec();
        let event = if self.heartbeat_v2 {
            let body = Body::HeartbeatV2 { file: name, position };
            Event { log_pos: position as u32, ..Event::of(0, 1, body) }
        } else {
            Event { log_pos: position as u32, ..Event::of(0, 1, Body::Heartbeat(name)) }
        };
        event.encode(self.crc32)
    }
}

fn at_last(files: &[File], file: &File) -> bool {
    files.last().is_some_and(|last| last.name() == file.name())
}
