//! What tables are, found out before they are locked: of several at once, for the catalogue takes about as long for one as
//! for many. Under the lock it is only seen whether the table is still that: its `CREATE TABLE` is the same, and the
//! stream has shown no change of it meanwhile. If not, it is described there.

use alloc::{boxed::Box, vec::Vec};

use sha2::{Digest as _, Sha256};

use super::{Around, Copier, Did, Step};
use crate::{
    deliver::{CopiedTable, CopyState},
    link::QueryResult,
    probe::{Mark, Mutant, Probe},
    snapshot::rows::{DescribeSome, DescribeSomeStep, DescribeStep, Described, quoted_table},
};

/// Most tables that are asked about at once: as many rows as an answer may have, were all as wide as a table can be.
pub(super) const LOOK_MAX: usize = 20;

/// A sum of a table's `CREATE TABLE`: its text is the source's (Rule 1).
type Print = [u8; 32];

/// What was found out about a table, and of what text.
pub(super) struct Looked {
    pub(super) described: Box<Described>,
    print: Print,
}

/// What is being found out.
pub(super) struct Look {
    schema: alloc::string::String,
    /// Tables of one schema, and their sums as far as they were asked for.
    tables: Vec<(CopiedTable, Option<Print>)>,
    /// How many were.
    asked: usize,
    describe: Option<DescribeSome>,
}

impl Copier {
    /// Looks at the table that is next, and at some behind it.
    pub(super) fn look<P: Probe>(&mut self, first: CopiedTable, around: &mut Around<'_, P>) -> Did {
        self.forget_altered(around);
        let copies = around.assembler.gate().copies();
        let behind = copies
            .iter()
            .filter(|((schema, _), copy)| copy.state == CopyState::Waiting && *schema == first.0);
        let behind = behind.map(|(name, _)| name).filter(|name| **name != first).cloned();
        let tables = core::iter::once(first.clone()).chain(behind).take(LOOK_MAX).map(|name| (name, None));
        let look = Look { schema: first.0.clone(), tables: tables.collect(), asked: 0, describe: None };
        self.look_on(look, around)
    }

    fn look_on<P: Probe>(&mut self, mut look: Look, around: &mut Around<'_, P>) -> Did {
        let until = around.now.after(self.terms.step);
        match look.tables.get(look.asked) {
            // Before it is described, so that a change between both is seen under the lock.
            Some((name, _)) => self.lock.ask(&show_create(name), until, around.out),
            None => {
                let names = look.tables.iter().map(|((_, table), _)| table.clone());
                let describe = look.describe.take().unwrap_or_else(|| DescribeSome::new(&look.schema, names));
                self.lock.ask(&describe.statement(), until, around.out);
                look.describe = Some(describe);
            }
        }
        self.step = Step::Looking(Box::new(look));
        Did::Moved
    }

    pub(super) fn looking<P: Probe>(
        &mut self,
        mut look: Look,
        answer: QueryResult,
        around: &mut Around<'_, P>,
    ) -> Did {
        let Some(describe) = look.describe.take() else {
            if let Some((_, sum)) = look.tables.get_mut(look.asked) {
                *sum = print(&answer);
            }
            look.asked = look.asked.saturating_add(1);
            return self.look_on(look, around);
        };
        let rows = match answer {
            QueryResult::Rows(rows) => rows,
            QueryResult::Failed(error) => return self.of_failure(&error, around),
            QueryResult::Ok(_) => return self.out_of_step(around),
        };
        match describe.on_result(&rows) {
            DescribeSomeStep::More(describe) => {
                look.describe = Some(describe);
                return self.look_on(look, around);
            }
            DescribeSomeStep::Done(each) => {
                for ((name, print), (_, step)) in look.tables.into_iter().zip(each) {
                    let looked = match (step, print) {
                        (Ok(DescribeStep::Done(described)), Some(print)) => Some(Looked { described, print }),
                        // Its labels are still to be had, or it is told under the lock what is wrong.
                        (Ok(DescribeStep::Done(_) | DescribeStep::More(_)) | Err(_), _) => None,
                    };
                    self.looked.insert(name, looked);
                }
            }
        }
        self.step = Step::Next;
        Did::Moved
    }

    /// Asks whether the table that is locked is the one that was looked at.
    pub(super) fn ask_whether_it_is<P: Probe>(&mut self, looked: Looked, around: &mut Around<'_, P>) -> Did {
        self.lock.ask(&show_create(&self.cutting), around.now.after(self.terms.step), around.out);
        self.step = Step::Comparing(Box::new(looked));
        Did::Moved
    }

    pub(super) fn compare<P: Probe>(
        &mut self,
        looked: Looked,
        answer: &QueryResult,
        around: &mut Around<'_, P>,
    ) -> Did {
        let altered = around.assembler.gate_mut().take_altered();
        self.looked.retain(|name, _| !altered.contains(name));
        let same = print(answer) == Some(looked.print) && !altered.contains(&self.cutting);
        if !same && !P::mutant(Mutant::OldDescription) {
            return self.describe_locked(around);
        }
        P::mark(Mark::LookedBefore);
        match self.described(self.cutting.clone(), *looked.described, around) {
            Ok(()) => self.unlock(around),
            Err(halt) => Did::Halt(halt),
        }
    }

    /// What the stream has shown a change of is not what was looked at.
    fn forget_altered<P: Probe>(&mut self, around: &mut Around<'_, P>) {
        let altered = around.assembler.gate_mut().take_altered();
        self.looked.retain(|name, _| !altered.contains(name));
    }
}

fn show_create((schema, table): &CopiedTable) -> alloc::string::String {
    alloc::format!("SHOW CREATE TABLE {}", quoted_table(schema, table))
}

/// The sum of the text, without the next number of an AUTO_INCREMENT column, which writers move. `None`: there is none.
fn print(answer: &QueryResult) -> Option<Print> {
    const COUNTER: &[u8] = b"AUTO_INCREMENT=";
    let QueryResult::Rows(rows) = answer else { return None };
    let mut text = rows.single_row()?.get(1)?.as_deref()?;
    let mut hash = Sha256::new();
    while let Some(at) = text.windows(COUNTER.len()).position(|window| window == COUNTER) {
        let (before, behind) = text.split_at_checked(at.checked_add(COUNTER.len())?)?;
        hash.update(before);
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
        text = behind.get(digits..)?;
    }
    hash.update(text);
    Some(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use bytes::Bytes;

    use super::*;
    use crate::link::ResultSet;

    /// A counter is left out, and nothing else.
    #[test]
    fn what_writers_move_is_not_part_of_the_sum() {
        let of = |text: &'static str| {
            let row = vec![Some(Bytes::from_static(b"t")), Some(Bytes::from_static(text.as_bytes()))];
            print(&QueryResult::Rows(ResultSet { rows: vec![row], ..ResultSet::default() })).unwrap()
        };
        let one = of(
            "CREATE TABLE `t` (\n `id` int NOT NULL AUTO_INCREMENT\n) ENGINE=InnoDB AUTO_INCREMENT=12 DEFAULT",
        );
        for (other, same) in [
            (
                "CREATE TABLE `t` (\n `id` int NOT NULL AUTO_INCREMENT\n) ENGINE=InnoDB AUTO_INCREMENT=999 DEFAULT",
                true,
            ),
            ("CREATE TABLE `t` (\n `id` int NOT NULL AUTO_INCREMENT\n) ENGINE=InnoDB DEFAULT", false),
            (
                "CREATE TABLE `t` (\n `id` bigint NOT NULL AUTO_INCREMENT\n) ENGINE=InnoDB AUTO_INCREMENT=12 DEFAULT",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(of(other) == one, same, "{other}");
        }
        assert_eq!(print(&QueryResult::Rows(ResultSet::default())), None);
    }
}
