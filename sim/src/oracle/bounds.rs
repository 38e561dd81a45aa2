//! Memory and dials stay within their bounds.

use std::collections::VecDeque;

use super::Failure;
use crate::process::Process;

/// Counts dials.
#[derive(Debug, Default)]
pub struct Dials {
    recent: VecDeque<u64>,
}

/// Dials in any minute: a link that lives and drops at once is dialled again after 10 ms at the earliest,
/// and each dial needs its own trouble; the schedules of this simulator never cause more.
const DIALS_PER_MINUTE_MAX: usize = 600;

impl Dials {
    /// A dial happens.
    pub fn dial(&mut self, now: u64) -> Result<(), Failure> {
        self.recent.push_back(now);
        while self.recent.front().is_some_and(|at| at + 60_000_000 < now) {
            self.recent.pop_front();
        }
        if self.recent.len() > DIALS_PER_MINUTE_MAX {
            return Err(Failure::new("bounds", format!("{} dials in a minute", self.recent.len())));
        }
        Ok(())
    }
}

/// What a unit costs at least, whatever is in it.
const UNIT_BYTES_MIN: usize = 200;

/// Retained bytes and units out.
pub fn memory(process: &Process) -> Result<(), Failure> {
    let limits = &process.config.limits;
    // One transaction is emitted whole below `stream_above`, and a row event is never cut.
    let budget = limits.retained_max + limits.stream_above + limits.row_event_max;
    let retained = process.core.retained();
    if retained > budget {
        return Err(Failure::new("bounds", format!("{retained} bytes are retained, {budget} allowed")));
    }
    let units = process.core.units_out();
    if units * UNIT_BYTES_MIN > budget {
        return Err(Failure::new("bounds", format!("{units} units are out; they alone exceed the budget")));
    }
    Ok(())
}
