//! What the core's probe hears in a run, and the mistake it asks for.
//!
//! The core has no state of its own for it: a run stays on one thread, so that is where it is kept.

use std::cell::Cell;

use capstan_core::probe::{Mark, Mutant, Probe};

use crate::sink::Blunder;

const MARKS: usize = Mark::ALL.len();

thread_local! {
    static HEARD: [Cell<u64>; MARKS] = const { [const { Cell::new(0) }; MARKS] };
    static MISTAKE: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// One way of being wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The core is.
    Core(Mutant),
    /// What surrounds it is: sink, store or driver.
    Around(Blunder),
}

impl Mistake {
    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Core(mutant) => mutant.name().into(),
            Self::Around(blunder) => format!("{blunder:?}"),
        }
    }
}

/// The probe of the simulator.
#[derive(Clone, Copy, Debug)]
pub enum Watched {}

impl Probe for Watched {
    fn mark(mark: Mark) {
        HEARD.with(|heard| {
            let heard = &heard[mark as usize];
            heard.set(heard.get() + 1);
        });
    }

    fn mutant(mutant: Mutant) -> bool {
        MISTAKE.get() == Some(Mistake::Core(mutant))
    }
}

/// Whether what surrounds the core is to be wrong in this way.
pub(crate) fn blunders(blunder: Blunder) -> bool {
    MISTAKE.get() == Some(Mistake::Around(blunder))
}

/// Makes a mistake until this is dropped.
#[derive(Debug)]
pub struct Making(());

/// From here on, on this thread, this mistake is made.
#[must_use]
pub fn making(mistake: Mistake) -> Making {
    MISTAKE.set(Some(mistake));
    Making(())
}

impl Drop for Making {
    fn drop(&mut self) {
        MISTAKE.set(None);
    }
}

/// How often each rare branch was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks([u64; MARKS]);

impl Default for Marks {
    fn default() -> Self {
        Self([0; MARKS])
    }
}

impl Marks {
    /// What was heard on this thread since this was last asked.
    #[must_use]
    pub fn take() -> Self {
        HEARD.with(|heard| Self(std::array::from_fn(|n| heard[n].take())))
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (sum, n) in self.0.iter_mut().zip(other.0) {
            *sum += n;
        }
    }

    /// Each with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Mark, u64)> + '_ {
        Mark::ALL.iter().map(|mark| (*mark, self.0[*mark as usize]))
    }

    /// Those that were never taken.
    pub fn never(&self) -> impl Iterator<Item = Mark> + '_ {
        self.iter().filter(|(_, n)| *n == 0).map(|(mark, _)| mark)
    }
}
