//! Groups that no shape of the workload makes: what moves the position in rare ways, and what a server that
//! died leaves in its log.

use std::sync::Arc;

use capstan_core::gtid::Gtid;
use capstan_fake_source::{
    Group,
    event::{Body, Column, Event, GtidHead, Query, RowChange, Rows, Table, Value, status},
};

use crate::{
    truth::Entry,
    workload::{CAPTURED, LINE},
};

const SERVER_ID: u32 = 1;

/// Makes them.
#[derive(Debug, Default)]
pub struct Extras {
    made: u64,
    /// An XA transaction of another schema is prepared.
    prepared: bool,
}

impl Extras {
    /// Instead of an empty transaction, now and then: one that concerns nothing captured in a rarer way.
    pub fn instead_of_empty(&mut self, gtid: Gtid, at: u64) -> Option<(Arc<Group>, Entry)> {
        self.made += 1;
        let query = |text: &str| Body::Query(Query::new("elsewhere", text));
        let noise = Table::new(102, "elsewhere", "noise", vec![Column::bigint("id").not_null()]);
        let rows = [RowChange::Insert(vec![Value::Int(1)])];
        let xid = "X'6e6f',X'',1";
        let bodies = match self.made % 4 {
            _ if self.prepared => {
                self.prepared = false;
                let how = if self.made.is_multiple_of(2) { "COMMIT" } else { "ROLLBACK" };
                vec![query(&format!("XA {how} {xid}"))]
            }
            1 => {
                self.prepared = true;
                vec![
                    query(&format!("XA START {xid}")),
                    Body::TableMap(noise.clone()),
                    Body::Rows(Rows::of(&noise, &rows, true)),
                    query(&format!("XA END {xid}")),
                    Body::XaPrepare {
                        one_phase: false,
                        format_id: 1,
                        gtrid: b"no".to_vec(),
                        bqual: Vec::new(),
                    },
                ]
            }
            3 => {
                let insert = Query::new("elsewhere", "INSERT INTO noise VALUES (1)");
                let insert = insert.with(status::updated_databases(&["elsewhere"]));
                vec![query("BEGIN"), Body::Query(insert), Body::Xid(8)]
            }
            _ => return None,
        };
        let group = Group::new(GtidHead::new(Some(gtid), at), SERVER_ID, bodies);
        Some((group, Entry { gtid: Some(gtid), content: None, lost: false, poison: None }))
    }
}

/// What a server leaves behind that dies while it writes a group: everything but the terminator. The group was
/// never committed, so the next one gets its number.
#[must_use]
pub fn part(gtid: Gtid, at: u64, large: bool) -> Arc<Group> {
    let table =
        Table::new(101, CAPTURED, "lines", vec![Column::bigint("id").not_null(), Column::blob("data")]);
    let row = |n: i64| RowChange::Insert(vec![Value::Int(n), Value::Bytes(vec![7; LINE])]);
    let mut bodies = vec![Body::Gtid(GtidHead::new(Some(gtid), at)), Body::Query(Query::new("", "BEGIN"))];
    for n in 0..if large { 16 } else { 1 } {
        bodies.push(Body::TableMap(table.clone()));
        bodies.push(Body::Rows(Rows::of(&table, &[row(n)], true)));
    }
    let encode = |body| Event::of((at / 1_000_000) as u32, SERVER_ID, body).encode(false);
    // Nothing was executed, so it is in no set.
    Group::of_events(None, bodies.into_iter().map(encode).collect())
}
