//! `(TxBegin (Table | Rows | SchemaChange)* (TxCommit | TxAbort) | SnapshotRows | Progress | Claim)*`, numbers dense.

use capstan_core::deliver::{Event, Seq};

use super::Failure;

/// The grammar of the events of one process.
#[derive(Debug, Default)]
pub struct Grammar {
    last: u64,
    open: Option<(Seq, bool)>,
    claimed: Option<u64>,
}

impl Grammar {
    /// Takes the next event.
    pub fn check(&mut self, event: &Event) -> Result<(), Failure> {
        let wrong = |what: &str| Err(Failure::new("grammar", format!("{what} ({:?})", self.open)));
        match event {
            Event::Claim { seq, .. } | Event::Progress { seq, .. } => {
                if let Event::Claim { position, .. } = event {
                    self.claimed = Some(position.owner());
                }
                if self.open.is_some() {
                    return wrong("a unit inside a transaction");
                }
                self.number(*seq)
            }
            Event::SnapshotRows(chunk) => {
                if self.open.is_some() {
                    return wrong("a chunk inside a transaction");
                }
                if chunk.rows.is_none() && !chunk.last {
                    return wrong("a chunk without rows that is not the last");
                }
                self.number(chunk.seq)
            }
            Event::TxBegin(begin) => {
                if self.open.is_some() {
                    return wrong("a transaction begins inside a transaction");
                }
                self.open = Some((begin.seq, begin.streamed));
                self.number(begin.seq)
            }
            Event::Table(_) | Event::Rows(_) | Event::SchemaChange(_) => {
                if self.open.is_none() {
                    wrong("an item outside a transaction")
                } else {
                    Ok(())
                }
            }
            Event::TxCommit(commit) => match self.open.take() {
                Some((seq, _)) if seq == commit.seq => Ok(()),
                open => Err(Failure::new("grammar", format!("{:?} ends {open:?}", commit.seq))),
            },
            Event::TxAbort { seq, .. } => match self.open.take() {
                // What is not streamed is complete before it is emitted.
                Some((open, true)) if open == *seq => Ok(()),
                open => Err(Failure::new("grammar", format!("{seq:?} aborts {open:?}"))),
            },
        }
    }

    /// The mark under which this process claimed the target.
    #[must_use]
    pub const fn claimed(&self) -> Option<u64> {
        self.claimed
    }

    fn number(&mut self, seq: Seq) -> Result<(), Failure> {
        if seq.0 != self.last + 1 {
            return Err(Failure::new("grammar", format!("unit {} follows {}", seq.0, self.last)));
        }
        self.last = seq.0;
        Ok(())
    }
}
