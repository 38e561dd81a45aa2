//! Both sides, change by change.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use capstan_mysql::Server;
use sha2::{Digest as _, Sha256};

use super::{
    ledger::{Change, Reader},
    sql,
    tables::WRITERS,
    watch::Interrupt,
};
use crate::failure::Failure;

/// Rows of the server's notes read at once.
const PAGE: usize = 20_000;

/// One side.
struct Side {
    counts: BTreeMap<(String, String), u64>,
    /// For each session that writes, its changes in order.
    chains: BTreeMap<u8, Chain>,
}

/// The changes of one session: a hash over all, and one for each so that a difference can be placed.
struct Chain {
    all: Sha256,
    each: Vec<[u8; 32]>,
    names: Vec<(String, String)>,
    transaction: Option<String>,
    transactions: u64,
}

impl Side {
    fn new() -> Self {
        let chain = || Chain {
            all: Sha256::new(),
            each: Vec::new(),
            names: Vec::new(),
            transaction: None,
            transactions: 0,
        };
        Self {
            counts: BTreeMap::new(),
            chains: WRITERS.into_iter().map(|writer| (writer, chain())).collect(),
        }
    }

    fn change(&mut self, writer: u8, change: Change) {
        *self.counts.entry((change.table.clone(), change.op.clone())).or_default() += 1;
        if let Some(chain) = self.chains.get_mut(&writer) {
            chain.change(change);
        }
    }

    fn changes(&self) -> u64 {
        self.counts.values().sum()
    }

    fn transactions(&self) -> u64 {
        self.chains.values().map(|chain| chain.transactions).sum()
    }

    /// One hash over the hashes of the sessions.
    fn digest(&self) -> String {
        let mut all = Sha256::new();
        for chain in self.chains.values() {
            all.update(chain.all.clone().finalize());
        }
        hex(&all.finalize())
    }
}

impl Chain {
    fn change(&mut self, change: Change) {
        // Where transactions begin is part of the hash: none may be torn apart or melted together.
        let first = self.transaction.as_ref() != Some(&change.transaction);
        if first {
            self.transactions += 1;
        }
        let line = format!(
            "{} {} {} {} {}\n",
            if first { "begin" } else { "then" },
            change.op,
            change.table,
            change.was.as_deref().unwrap_or("-"),
            change.becomes.as_deref().unwrap_or("-"),
        );
        self.all.update(&line);
        self.each.push(Sha256::digest(&line).into());
        self.names.push((change.table, change.op));
        self.transaction = Some(change.transaction);
    }
}

/// What came out.
pub(super) struct Verdict {
    source: Side,
    ledger: Side,
    schema_changes: u64,
    kills: u32,
}

/// Reads both sides.
pub(super) fn compare(
    server: &Server,
    reader: &Reader,
    kills: u32,
    interrupt: &Interrupt,
) -> Result<Verdict, Failure> {
    let mut ledger = Side::new();
    reader.each(|writer, change| ledger.change(writer, change))?;
    let mut source = Side::new();
    for writer in WRITERS {
        let mut after = "0".to_owned();
        loop {
            interrupt.check()?;
            let rows = server
                .sql_rows(&format!(
                    "SELECT id, trx, op, tbl, was, becomes FROM audit.log \
                     WHERE writer = {writer} AND id > {after} ORDER BY id LIMIT {PAGE}"
                ))
                .map_err(|error| sql(&error))?;
            let Some(last) = rows.last() else { break };
            after = last.first().cloned().flatten().unwrap_or_default();
            for row in rows {
                if let [_, Some(transaction), Some(op), Some(table), was, becomes] = row.as_slice() {
                    let (transaction, op, table) = (transaction.clone(), op.clone(), table.clone());
                    let (was, becomes) = (was.clone(), becomes.clone());
                    source.change(writer, Change { transaction, op, table, was, becomes });
                }
            }
        }
    }
    Ok(Verdict { source, ledger, schema_changes: reader.schema_changes()?, kills })
}

impl Verdict {
    pub(super) fn equal(&self) -> bool {
        self.source.counts == self.ledger.counts
            && self.source.digest() == self.ledger.digest()
            // Nothing against nothing proves nothing.
            && self.source.changes() > 0
    }

    fn first_difference(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (writer, source) in &self.source.chains {
            let Some(ledger) = self.ledger.chains.get(writer) else { continue };
            let same = source.each.iter().zip(&ledger.each).take_while(|(a, b)| a == b).count();
            if same == source.each.len() && same == ledger.each.len() {
                continue;
            }
            let name = source.names.get(same).or_else(|| ledger.names.get(same));
            let (table, op) = name.map_or(("-", "-"), |(table, op)| (table, op));
            writeln!(
                f,
                "  writer {writer}: equal up to change {same}; the next one is the {op} on shop.{table}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:<26} {:>10} {:>10}", "changes", "source", "ledger")?;
        let mut names: Vec<_> = self.source.counts.keys().chain(self.ledger.counts.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let count = |side: &Side| side.counts.get(name).copied().unwrap_or(0);
            let (source, ledger) = (count(&self.source), count(&self.ledger));
            let mark = if source == ledger { "" } else { "   <- differs" };
            writeln!(f, "  {:<26} {source:>10} {ledger:>10}{mark}", format!("{} {}", name.0, name.1))?;
        }
        let (source, ledger) = (&self.source, &self.ledger);
        writeln!(f, "  {:<26} {:>10} {:>10}", "all changes", source.changes(), ledger.changes())?;
        writeln!(
            f,
            "  {:<26} {:>10} {:>10}",
            "transactions with changes",
            source.transactions(),
            ledger.transactions()
        )?;
        writeln!(f, "  {:<26} {:>10} {:>10}", "schema changes", "-", self.schema_changes)?;
        writeln!(f, "  hash of all changes, whole rows, in order:")?;
        writeln!(f, "    source {}", source.digest())?;
        writeln!(f, "    ledger {}", ledger.digest())?;
        if !self.equal() {
            self.first_difference(f)?;
        }
        writeln!(f)?;
        if self.equal() {
            write!(
                f,
                "EQUAL: {} changes in {} transactions, each once and in order, across {} SIGKILLs of the syncing process.",
                source.changes(),
                source.transactions(),
                self.kills
            )
        } else {
            write!(f, "DIFFERENT: the ledger is not what the source did.")
        }
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (&'static str, &'static str, &'static str);

    fn side(changes: &[Told]) -> Side {
        let mut side = Side::new();
        for (transaction, op, becomes) in changes {
            let change = Change {
                transaction: (*transaction).to_owned(),
                op: (*op).to_owned(),
                table: "orders".to_owned(),
                was: None,
                becomes: Some((*becomes).to_owned()),
            };
            side.change(1, change);
        }
        side
    }

    #[test]
    fn a_loss_a_double_a_swap_a_tear_and_another_value_are_each_seen() {
        let source: [Told; 3] = [("1", "insert", "a"), ("1", "insert", "b"), ("2", "insert", "c")];
        let cases: [(&str, &[Told], bool); 7] = [
            ("same", &[("x", "insert", "a"), ("x", "insert", "b"), ("y", "insert", "c")], true),
            ("lost", &[("x", "insert", "a"), ("y", "insert", "c")], false),
            (
                "doubled",
                &[("x", "insert", "a"), ("x", "insert", "b"), ("y", "insert", "c"), ("y", "insert", "c")],
                false,
            ),
            ("swapped", &[("x", "insert", "b"), ("x", "insert", "a"), ("y", "insert", "c")], false),
            ("torn", &[("x", "insert", "a"), ("z", "insert", "b"), ("y", "insert", "c")], false),
            ("melted", &[("x", "insert", "a"), ("x", "insert", "b"), ("x", "insert", "c")], false),
            ("another", &[("x", "insert", "a"), ("x", "insert", "b"), ("y", "insert", "d")], false),
        ];
        for (name, ledger, want) in cases {
            let verdict =
                Verdict { source: side(&source), ledger: side(ledger), schema_changes: 0, kills: 1 };
            assert_eq!(verdict.equal(), want, "{name}");
            assert_eq!(verdict.to_string().contains("EQUAL: 3 changes in 2"), want, "{name}");
            assert_eq!(verdict.to_string().contains("equal up to change"), !want, "{name}");
        }
        let nothing = Verdict { source: side(&[]), ledger: side(&[]), schema_changes: 0, kills: 1 };
        assert!(!nothing.equal());
    }
}
