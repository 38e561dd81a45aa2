//! A committed group of the log, encoded once and shared by every server that has it.

use std::sync::Arc;

use bytes::BytesMut;

use crate::event::{self, Body, CHECKSUM_LEN, Event, GtidHead, Query, RowChange, Rows, Table};
use capstan_core::gtid::Gtid;

/// A group: its events without sums, at no place yet.
#[derive(Debug)]
pub struct Group {
    gtid: Option<Gtid>,
    head: Vec<u8>,
    body: Arc<Content>,
}

/// What is behind a group's head: encoded once, and shared by every group that says the same.
#[derive(Debug, Default)]
pub struct Content {
    events: Vec<Vec<u8>>,
    bytes: usize,
}

impl Content {
    /// Encodes these bodies.
    #[must_use]
    pub fn new(bodies: Vec<Body>, timestamp: u32, server_id: u32) -> Arc<Self> {
        let plain = |body| Event::of(timestamp, server_id, body).encode(false);
        Arc::new(Self::of(bodies.into_iter().map(plain).collect()))
    }

    fn of(events: Vec<Vec<u8>>) -> Self {
        let bytes = events.iter().map(Vec::len).sum();
        Self { events, bytes }
    }
}

/// How a group of row changes ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// XID.
    Xid,
    /// QUERY `COMMIT`, of engines without transactions.
    Commit,
    /// QUERY `ROLLBACK`: non-transactional tables were written before, so it is in the log.
    Rollback,
    /// XA_PREPARE with the one-phase flag.
    XaOnePhase,
}

impl Group {
    /// A group from its head and the bodies behind it.
    #[must_use]
    pub fn new(head: GtidHead, server_id: u32, bodies: Vec<Body>) -> Arc<Self> {
        let timestamp = (head.original_commit / 1_000_000) as u32;
        Self::with(head, server_id, &Content::new(bodies, timestamp, server_id))
    }

    /// A group from its head and what was encoded before.
    #[must_use]
    pub fn with(mut head: GtidHead, server_id: u32, content: &Arc<Content>) -> Arc<Self> {
        let gtid = head.gtid;
        let timestamp = (head.original_commit / 1_000_000) as u32;
        head.transaction_length = content.bytes as u64;
        let head = Event::of(timestamp, server_id, Body::Gtid(head)).encode(false);
        Arc::new(Self { gtid, head, body: Arc::clone(content) })
    }

    /// A group of events that were encoded elsewhere, the GTID event first.
    #[must_use]
    pub fn of_events(gtid: Option<Gtid>, mut events: Vec<Vec<u8>>) -> Arc<Self> {
        let head = if events.is_empty() { Vec::new() } else { events.remove(0) };
        Arc::new(Self { gtid, head, body: Arc::new(Content::of(events)) })
    }

    /// The bodies of a group of row changes: BEGIN, one statement per element, the end.
    #[must_use]
    pub fn changes(statements: &[(&Table, Vec<RowChange>)], end: &End) -> Vec<Body> {
        let mut bodies = vec![Body::Query(Query::new("", "BEGIN"))];
        if *end == End::XaOnePhase {
            bodies[0] = Body::Query(Query::new("", "XA START X'6378',X'',1"));
        }
        for (table, changes) in statements {
            bodies.push(Body::TableMap((*table).clone()));
            let events = row_events(table, changes);
            let last = events.len();
            for (n, changes) in events.into_iter().enumerate() {
                bodies.push(Body::Rows(Rows::of(table, changes, n + 1 == last)));
            }
        }
        if *end == End::XaOnePhase {
            bodies.push(Body::Query(Query::new("", "XA END X'6378',X'',1")));
        }
        bodies.push(match end {
            End::Xid => Body::Xid(7),
            End::Commit => Body::Query(Query::new("", "COMMIT")),
            End::Rollback => Body::Query(Query::new("", "ROLLBACK")),
            End::XaOnePhase => {
                Body::XaPrepare { one_phase: true, format_id: 1, gtrid: b"cx".to_vec(), bqual: Vec::new() }
            }
        });
        bodies
    }

    /// The same bodies in one payload event.
    #[must_use]
    pub fn in_payload(bodies: Vec<Body>, timestamp: u32, server_id: u32, compress: bool) -> Vec<Body> {
        let plain = |body| Event::of(timestamp, server_id, body).encode(false);
        let inner: Vec<Vec<u8>> = bodies.into_iter().map(plain).collect();
        vec![Body::payload(&inner, compress)]
    }

    /// Its GTID; `None`: anonymous.
    #[must_use]
    pub const fn gtid(&self) -> Option<&Gtid> {
        self.gtid.as_ref()
    }

    /// Bytes in a log with sums or without.
    #[must_use]
    pub fn len(&self, crc32: bool) -> u64 {
        let sums = if crc32 { CHECKSUM_LEN * self.count() } else { 0 };
        (self.head.len() + self.body.bytes + sums) as u64
    }

    /// Events in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.body.events.len() + 1
    }

    /// Writes one event at its place in a log: `at` is where it starts. `false`: there is none.
    pub fn write(&self, index: usize, at: u64, crc32: bool, out: &mut BytesMut) -> bool {
        let event = match index.checked_sub(1) {
            None => &self.head,
            Some(index) => match self.body.events.get(index) {
                Some(event) => event,
                None => return false,
            },
        };
        let start = out.len();
        out.extend_from_slice(event);
        let sum = if crc32 { CHECKSUM_LEN } else { 0 };
        event::place(&mut out[start..], (at + (event.len() + sum) as u64) as u32);
        event::seal_at(out, start, crc32);
        true
    }
}

/// Runs of changes that fit one event: of one kind, and at most about 8 KiB
/// (`binlog_row_event_max_size`).
fn row_events<'a>(table: &Table, changes: &'a [RowChange]) -> Vec<&'a [RowChange]> {
    let size = |change: &RowChange| -> usize {
        let image = |values: &Vec<event::Value>| -> usize {
            let bytes =
                |(c, v): (&event::Column, &event::Value)| c.bytes_of(v).map_or(0, |bytes| bytes.len());
            table.columns.iter().zip(values).map(bytes).sum::<usize>() + 4
        };
        match change {
            RowChange::Insert(row) | RowChange::Delete(row) => image(row),
            RowChange::Update(before, after) => image(before) + image(after),
        }
    };
    let (mut out, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, change) in changes.iter().enumerate() {
        if at > start && (change.code() != changes[start].code() || bytes + size(change) > 8192) {
            out.push(&changes[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += size(change);
    }
    out.push(&changes[start..]);
    out
}
