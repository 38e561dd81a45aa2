//! One run, a batch of runs, and what is said of a failure.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    choices::{Choices, to_hex},
    marks::{Marks, blunders},
    oracle::Failure,
    plan::Wishes,
    sink::Blunder,
    world::{Counts, World},
};

/// What came of one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was found.
    pub result: Result<(), Failure>,
    /// The choices.
    pub tape: Vec<u32>,
    /// What happened.
    pub counts: Counts,
    /// Rare branches of the core.
    pub marks: Marks,
    /// The last things that happened, if they were written down.
    pub trace: Vec<String>,
}

/// Runs one schedule.
#[must_use]
pub fn run(choices: Choices, wishes: Wishes, traced: bool) -> Report {
    let _ = Marks::take();
    let mut world = World::new(choices, wishes, traced);
    let mut result = world.run();
    if blunders(Blunder::Canary) {
        result = Err(Failure::new("canary", "sings"));
    }
    let marks = Marks::take();
    Report { result, tape: world.tape().to_vec(), counts: world.counts.clone(), marks, trace: world.trace() }
}

/// Steps of all runs of a shrinking together: what never converges has long runs, and is to be told within a minute, too.
const SHRINK_STEPS_MAX: u64 = 3_000_000;

/// Makes a failing tape shorter and calmer while it fails in the same way.
#[must_use]
pub fn shrink(tape: &[u32], wishes: Wishes, oracle: &'static str, runs_max: u32) -> Vec<u32> {
    let (mut runs, mut steps) = (0, 0);
    let mut fails = |tape: &[u32]| {
        if runs >= runs_max || steps >= SHRINK_STEPS_MAX {
            return false;
        }
        let report = run(Choices::replay(tape.to_vec()), wishes, false);
        (runs, steps) = (runs + 1, steps + report.counts.steps);
        report.result.is_err_and(|failure| failure.oracle == oracle)
    };
    let mut best = tape.to_vec();
    // The tail first: most of a tape lies behind the failure.
    let (mut low, mut high) = (0, best.len());
    while low < high {
        let middle = low.midpoint(high);
        if fails(&best[..middle]) { high = middle } else { low = middle + 1 }
    }
    if fails(&best[..high]) {
        best.truncate(high);
    }
    loop {
        let before = best.clone();
        let mut size = best.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < best.len() {
                let end = (at + size).min(best.len());
                let cut = [&best[..at], &best[end..]].concat();
                let mut zeroed = best.clone();
                zeroed[at..end].fill(0);
                if fails(&cut) {
                    best = cut;
                } else if zeroed != best && fails(&zeroed) {
                    best = zeroed;
                    at = end;
                } else {
                    at = end;
                }
            }
            size /= 2;
        }
        for at in 0..best.len() {
            while best[at] > 0 {
                let mut smaller = best.clone();
                smaller[at] /= 2;
                if !fails(&smaller) {
                    break;
                }
                best = smaller;
            }
        }
        if best == before {
            return best;
        }
    }
}

/// What a failure looks like to a person: the oracle, one line to repeat it, the shrunk run. All of it, with
/// the whole tape and trace, is also written to a file.
#[must_use]
pub fn tell(seed: Option<u64>, failed: &Report, wishes: Wishes) -> String {
    let mut out = String::new();
    let Err(failure) = &failed.result else { return out };
    let shrunk = shrink(&failed.tape, wishes, failure.oracle, 3_000);
    let again = run(Choices::replay(shrunk.clone()), wishes, true);
    let arguments = wishes.arguments();
    let _ = writeln!(out, "FAILED {failure}");
    if let Some(seed) = seed {
        let _ = writeln!(out, "REPRO cargo run -p sim --profile sim -- --seed {seed}{arguments}");
    }
    let nonzero = shrunk.iter().filter(|n| **n > 0).count();
    let _ = writeln!(
        out,
        "REPRO cargo run -p sim --profile sim -- --tape {}{arguments}   (shrunk from {} choices to {}, {nonzero} not quiet)",
        to_hex(&shrunk),
        failed.tape.len(),
        shrunk.len(),
    );
    if let Err(failure) = &again.result {
        let _ = writeln!(out, "shrunk: {failure}");
    }
    let whole = format!("{out}whole tape: {}\n{}\n", to_hex(&failed.tape), again.trace.join("\n"));
    for line in again.trace.iter().rev().take(60).rev() {
        let _ = writeln!(out, "  {line}");
    }
    let name = seed.map_or_else(|| "tape".into(), |seed| format!("seed-{seed}"));
    match written(&name, &whole) {
        Ok(path) => {
            let _ = writeln!(out, "all of it: {}", path.display());
        }
        Err(error) => {
            let _ = writeln!(out, "it could not be written to a file: {error}");
        }
    }
    out
}

/// Writes a failure into the build's folder.
fn written(name: &str, text: &str) -> std::io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/sim-failures");
    std::fs::create_dir_all(&folder)?;
    let path = folder.canonicalize()?.join(format!("{name}.txt"));
    std::fs::write(&path, text)?;
    Ok(path)
}

/// What came of many runs.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Runs.
    pub schedules: u64,
    /// Those of full size.
    pub full: u64,
    /// Everything that happened in them.
    pub counts: Counts,
    /// Rare branches of the core.
    pub marks: Marks,
    /// How many runs had so many transactions, faults, reconnects and schema changes, for the medians.
    sizes: [BTreeMap<u64, u64>; 4],
    /// Wall time, seconds.
    pub seconds: f64,
    /// Time on the processor, seconds: what a busy machine does not change.
    pub cpu_seconds: f64,
    /// The first failure, told.
    pub failure: Option<String>,
}

/// Runs the seeds of an iterator until one fails or `enough` says so.
pub fn batch(
    seeds: impl IntoIterator<Item = u64>,
    wishes: Wishes,
    mut enough: impl FnMut(&Batch) -> bool,
) -> Batch {
    let (began, cpu_began) = (Instant::now(), cpu_seconds());
    let mut batch = Batch::default();
    for seed in seeds {
        let report = run(Choices::seeded(seed), wishes, false);
        batch.schedules += 1;
        batch.add(&report.counts);
        batch.marks.add(&report.marks);
        if report.result.is_err() {
            batch.failure = Some(tell(Some(seed), &report, wishes));
            break;
        }
        if enough(&batch) {
            break;
        }
    }
    batch.seconds = began.elapsed().as_secs_f64();
    batch.cpu_seconds = match (cpu_began, cpu_seconds()) {
        (Some(began), Some(ended)) => ended - began,
        _ => batch.seconds,
    };
    batch
}

/// What this thread has used of a processor so far; Linux alone tells.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

impl Batch {
    /// Whether everything has happened that a batch has to have seen.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.full > 0 && self.never_happened().is_empty() && self.marks.never().next().is_none()
    }

    fn add(&mut self, counts: &Counts) {
        let total = &mut self.counts;
        for (name, n) in &counts.faults {
            *total.faults.entry(name).or_default() += n;
        }
        for (code, n) in &counts.halts {
            *total.halts.entry(code).or_default() += n;
        }
        total.transactions += counts.transactions;
        total.schema_changes += counts.schema_changes;
        total.dials += counts.dials;
        total.steps += counts.steps;
        total.dump_bytes += counts.dump_bytes;
        total.commits += counts.commits;
        total.again += counts.again;
        total.refused += counts.refused;
        total.streamed += counts.streamed;
        total.chunks += counts.chunks;
        total.locks.0 += counts.locks.0;
        total.locks.1 += counts.locks.1;
        total.interrupted += counts.interrupted;
        total.aborts += counts.aborts;
        total.virtual_us += counts.virtual_us;
        let faults = counts.faults.values().sum();
        let reconnects = counts.dials.saturating_sub(1);
        if counts.transactions >= 20 && faults >= 3 && reconnects >= 2 && counts.schema_changes >= 1 {
            self.full += 1;
        }
        let sizes = [counts.transactions, faults, reconnects, counts.schema_changes];
        for (runs, size) in self.sizes.iter_mut().zip(sizes) {
            *runs.entry(size).or_default() += 1;
        }
    }

    /// What did not happen in any run, by name: a simulator that never does it proves nothing.
    #[must_use]
    pub fn never_happened(&self) -> Vec<&'static str> {
        let mut never: Vec<&'static str> = crate::fault::ALL
            .iter()
            .map(|fault| fault.name())
            .filter(|name| !self.counts.faults.contains_key(name))
            .collect();
        let marks = [
            ("a write refused by its condition", self.counts.refused),
            ("a streamed transaction", self.counts.streamed),
            ("a chunk of an initial copy", self.counts.chunks),
            ("a lock to write for a cut", self.counts.locks.1),
            ("a statement that an initial copy had interrupted", self.counts.interrupted),
            ("an aborted transaction", self.counts.aborts),
            ("a schema change", self.counts.schema_changes),
        ];
        never.extend(marks.iter().filter(|(_, n)| *n == 0).map(|(name, _)| *name));
        never
    }

    /// The table that a run of the tests prints.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::new();
        let c = &self.counts;
        let median = |of: usize| {
            let mut left = self.schedules / 2;
            let half = self.sizes[of].iter().find(|(_, runs)| match left.checked_sub(**runs) {
                Some(less) => {
                    left = less;
                    false
                }
                None => true,
            });
            half.map_or(0, |(size, _)| *size)
        };
        let per_second = |n: u64| n as f64 / self.cpu_seconds.max(1e-9);
        let _ = writeln!(
            out,
            "{} schedules in {:.1} s of processor time, {:.1} s by the clock, {:.1} virtual days: {:.0}/s on one core",
            self.schedules,
            self.cpu_seconds,
            self.seconds,
            c.virtual_us as f64 / 86_400e6,
            per_second(self.schedules),
        );
        let _ = writeln!(
            out,
            "{} of them have at least 20 transactions, 3 faults, 2 reconnects and 1 schema change: {:.0}/s",
            self.full,
            per_second(self.full),
        );
        let _ = writeln!(
            out,
            "medians per schedule: {} transactions, {} faults, {} reconnects, {} schema changes",
            median(0),
            median(1),
            median(2),
            median(3),
        );
        let _ = writeln!(
            out,
            "{} transactions, {} sink commits, {} refused, {} streamed, {} aborted, {} dials, {} steps, {} bytes",
            c.transactions, c.commits, c.refused, c.streamed, c.aborts, c.dials, c.steps, c.dump_bytes
        );
        let _ = writeln!(
            out,
            "{} chunks of initial copies, {} locks asked for to read and {} to write, {} statements interrupted",
            c.chunks, c.locks.0, c.locks.1, c.interrupted
        );
        for (name, n) in &c.faults {
            let _ = writeln!(out, "  {n:>9}  {name}");
        }
        for (code, n) in &c.halts {
            let _ = writeln!(out, "  {n:>9}  halted: {code}");
        }
        out
    }
}
