//! A committed group of the log, encoded once and shared by every server that has it.

use std::sync::Arc;

use crate::event::{self, Body, CHECKSUM_LEN, Event, GtidHead, Query, RowChange, Rows, Table};
use capstan_core::gtid::Gtid;

/// A group: its events without sums, at no place yet.
#[derive(Debug)]
pub struct Group {
    gtid: Option<Gtid>,
    events: Vec<Vec<u8>>,
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
        let plain = |body| Event::of(timestamp, server_id, body).encode(false);
        let mut events: Vec<Vec<u8>> = bodies.into_iter().map(plain).collect();
        let mut head = head;
        let gtid = head.gtid;
        head.transaction_length = events.iter().map(|event| event.len() as u64).sum();
        events.insert(0, plain(Body::Gtid(head)));
        Arc::new(Self { gtid, events })
    }

    /// A group of events that were encoded elsewhere, the GTID event first.
    #[must_use]
    pub fn of_events(gtid: Option<Gtid>, events: Vec<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self { gtid, events })
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
        let sums = if crc32 { CHECKSUM_LEN * self.events.len() } else { 0 };
        (self.events.iter().map(Vec::len).sum::<usize>() + sums) as u64
    }

    /// Events in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// One event at its place in a log: `at` is where it starts.
    #[must_use]
    pub fn event(&self, index: usize, at: u64, crc32: bool) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.events.get(index)?.len() + CHECKSUM_LEN);
        bytes.extend_from_slice(&self.events[index]);
        let end = at + bytes.len() as u64 + if crc32 { CHECKSUM_LEN as u64 } else { 0 };
        event::place(&mut bytes, end as u32);
        event::seal(&mut bytes, crc32);
        Some(bytes)
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
