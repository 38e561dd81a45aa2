//! Binlog files as a server keeps them.

use std::sync::Arc;

use crate::{
    event::{self, Body, CHECKSUM_LEN, Event, FormatDescription, code},
    group::Group,
};
use capstan_core::gtid::GtidSet;

/// A binlog file.
#[derive(Clone, Debug)]
pub struct File {
    name: String,
    crc32: bool,
    /// What was executed before it.
    previous: GtidSet,
    /// What is in it.
    own: GtidSet,
    /// Format description and PREVIOUS_GTIDS at their places; `created` is kept, as from the start of a
    /// file.
    head: Vec<Vec<u8>>,
    groups: Vec<Arc<Group>>,
    /// Where each group starts.
    starts: Vec<u64>,
    end: u64,
    /// ROTATE or STOP.
    tail: Option<Vec<u8>>,
}

/// Where the first event of a file starts.
const HEAD: u64 = 4;

impl File {
    pub(super) fn first(version: &str, crc32: bool) -> Self {
        Self::after(None, version, crc32, &GtidSet::new(), 0)
    }

    pub(super) fn after(
        before: Option<&Self>,
        version: &str,
        crc32: bool,
        previous: &GtidSet,
        created: u32,
    ) -> Self {
        let number = before.map_or(0, |file| file.number()) + 1;
        let description = FormatDescription::of(version, created, crc32);
        let tagged = previous.iter().any(|(tsid, _)| !tsid.tag.is_none());
        let head = vec![
            Event::of(1, 1, Body::FormatDescription(description)),
            Event::of(1, 1, Body::PreviousGtids { set: previous.clone(), tagged }).flagged(event::IGNORABLE),
        ];
        Self::new(format!("bin.{number:06}"), crc32, previous.clone(), head)
    }

    /// An empty file with this head.
    #[must_use]
    pub fn new(name: String, crc32: bool, previous: GtidSet, head: Vec<Event>) -> Self {
        let mut end = HEAD;
        let head = head.iter().map(|event| placed(&without_sum(event), &mut end, crc32)).collect();
        let (own, groups, starts) = (GtidSet::new(), Vec::with_capacity(16), Vec::with_capacity(16));
        Self { name, crc32, previous, own, head, groups, starts, end, tail: None }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its events carry sums.
    #[must_use]
    pub const fn crc32(&self) -> bool {
        self.crc32
    }

    /// What had been executed before it.
    #[must_use]
    pub const fn previous(&self) -> &GtidSet {
        &self.previous
    }

    /// The GTIDs in it.
    #[must_use]
    pub const fn gtids(&self) -> &GtidSet {
        &self.own
    }

    /// Its groups.
    #[must_use]
    pub fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// Where the next group will start.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Adds a group.
    pub fn push(&mut self, group: &Arc<Group>) {
        if let Some(gtid) = group.gtid() {
            self.own.add(gtid);
        }
        self.starts.push(self.end);
        self.end += group.len(self.crc32);
        self.groups.push(Arc::clone(group));
    }

    /// Ends it with this event.
    pub fn close(&mut self, tail: &Event) {
        self.tail = Some(without_sum(tail));
    }

    pub(super) fn rotate_to(&mut self, next: &Self) {
        let body = Body::Rotate { position: HEAD, file: next.name.clone().into_bytes() };
        self.close(&Event::of(1, 1, body));
    }

    pub(super) fn stop(&mut self) {
        self.close(&Event::of(1, 1, Body::Other { code: code::STOP, bytes: Vec::new() }));
    }

    /// Whether another file follows or will.
    pub(super) const fn is_closed(&self) -> bool {
        self.tail.is_some()
    }

    pub(super) fn start_of(&self, group: usize) -> u64 {
        self.starts.get(group).copied().unwrap_or(self.end)
    }

    /// The events it starts with.
    pub(super) fn head_events(&self) -> &[Vec<u8>] {
        &self.head
    }

    pub(super) fn tail_event(&self) -> Option<Vec<u8>> {
        let mut at = self.end;
        self.tail.as_ref().map(|event| placed(event, &mut at, self.crc32))
    }

    /// Takes the newest group out again.
    pub(super) fn pop(&mut self) -> Option<Arc<Group>> {
        let group = self.groups.pop()?;
        self.end = self.starts.pop().unwrap_or(self.end);
        if let Some(gtid) = group.gtid() {
            self.own = self.own.subtract(&GtidSet::from(*gtid));
        }
        Some(group)
    }

    pub(super) fn reopen(&mut self) {
        self.tail = None;
    }

    fn number(&self) -> u64 {
        self.name.rsplit('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

fn without_sum(event: &Event) -> Vec<u8> {
    let mut bytes = event.encode(false);
    if bytes[4] == code::FORMAT_DESCRIPTION {
        bytes.truncate(bytes.len() - CHECKSUM_LEN);
    }
    bytes
}

fn placed(event: &[u8], at: &mut u64, crc32: bool) -> Vec<u8> {
    let mut bytes = event.to_vec();
    let sum = crc32 || bytes[4] == code::FORMAT_DESCRIPTION;
    *at += bytes.len() as u64 + if sum { CHECKSUM_LEN as u64 } else { 0 };
    event::place(&mut bytes, *at as u32);
    event::seal(&mut bytes, sum);
    bytes
}
