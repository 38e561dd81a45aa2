//! What a rule is, and how rules are run.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use crate::{
    artifact::Artifact,
    bench::{Bench, Broken},
    process::{self, Child},
    report::{Outcome, Report, Verdict},
    subject::{be_patient, panic_text},
    table::{IN_A_PROCESS_OF_ITS_OWN, MEASURED_ON_LINUX, RULES},
    target::{Target, Trouble},
};

/// What a sink promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A checkpoint store keeps the position; what was not acknowledged comes again.
    AtLeastOnce,
    /// The sink stores the position in the same atomic write as the data.
    ExactlyOnce,
}

impl Level {
    /// Stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtLeastOnce => "at_least_once",
            Self::ExactlyOnce => "exactly_once",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A sentence of the contract, and how it is checked.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name. It never changes and is never given to another rule.
    pub id: &'static str,
    /// The lowest level that promises it.
    pub level: Level,
    /// The sentence.
    pub text: &'static str,
    pub(crate) run: fn(&mut Bench<'_>) -> Result<(), Broken>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({})", self.id)
    }
}

/// Runs every rule, each against a fresh target of `factory`: [`Check`] with nothing more said.
pub fn check<T: Target>(factory: impl FnMut() -> Result<T, Trouble>) -> Report {
    Check::new().run(factory)
}

/// Runs one rule: for a test of its own. `None`: there is no rule of this id.
pub fn check_rule<T: Target>(id: &str, target: &mut T) -> Option<Outcome> {
    RULES.iter().find(|rule| rule.id == id).map(|rule| Check::new().run_rule(rule, target))
}

/// How a check is run.
#[derive(Clone, Debug, Default)]
#[must_use = "it is run by Check::run"]
pub struct Check {
    seed: u64,
    child: Option<Child>,
    artifact: Option<Artifact>,
    patience: Option<Duration>,
}

/// The deadline after which a pipeline gives a batch up.
const PATIENCE: Duration = Duration::from_secs(60);

impl Check {
    /// In this process alone, with seed 1.
    pub fn new() -> Self {
        Self { seed: 1, ..Self::default() }
    }

    /// With another seed for what is drawn at random.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What is to die dies in a process of its own, for targets with an address.
    pub fn child(mut self, child: Child) -> Self {
        self.child = Some(child);
        self
    }

    /// With another time for which a call may wait without being woken, 60 seconds where nothing is said. An async call
    /// is dropped then and its rule fails; of a blocking one, which cannot be, standard error tells the rule.
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// The package that the sink is of, whatever its target says.
    pub fn artifact(mut self, artifact: Artifact) -> Self {
        self.artifact = Some(artifact);
        self
    }

    /// As [`Check::artifact`], where making one takes long: a child process of the kit's has no need of it.
    pub fn artifact_of(self, artifact: impl FnOnce() -> Artifact) -> Self {
        if process::is_called() { self } else { self.artifact(artifact()) }
    }

    /// Runs every rule, each against a fresh target of `factory`. In a child process of the kit's it
    /// does not return.
    pub fn run<T: Target>(&self, mut factory: impl FnMut() -> Result<T, Trouble>) -> Report {
        process::serve::<T>();
        let mut report = Report { seed: self.seed, ..Report::default() };
        for rule in RULES {
            let outcome = match fresh(&mut factory) {
                Ok(mut target) => {
                    report.learn(&target, self.artifact.as_ref());
                    self.run_rule(rule, &mut target)
                }
                Err(why) => Outcome::new(rule, Verdict::Failed(format!("no fresh target: {why}"))),
            };
            report.outcomes.push(outcome);
        }
        report
    }

    /// Runs one rule.
    pub fn run_rule<T: Target>(&self, rule: &'static Rule, target: &mut T) -> Outcome {
        process::serve::<T>();
        match skipped(rule, target) {
            Some(why) => Outcome::new(rule, Verdict::Skipped(why)),
            None => self.run_skipped(rule, target),
        }
    }

    /// Runs one rule, though the target may decline it or promise less.
    pub(crate) fn run_skipped<T: Target>(&self, rule: &'static Rule, target: &mut T) -> Outcome {
        if let Some(why) = self.lacks_process(rule, target) {
            return Outcome::new(rule, Verdict::Skipped(why));
        }
        let began = Instant::now();
        let patience = self.patience.unwrap_or(PATIENCE);
        be_patient(patience);
        let _watched = watched(rule.id, patience);
        let level = target.level();
        let mut bench = Bench::new(target, level, self.seed);
        bench.dies_by(self.child.clone());
        let verdict = match catch_unwind(AssertUnwindSafe(|| (rule.run)(&mut bench))) {
            Ok(Ok(())) => Verdict::Passed,
            Ok(Err(why)) => Verdict::Failed(why),
            Err(payload) => Verdict::Failed(format!("panicked: {}", panic_text(payload.as_ref()))),
        };
        // A sink may panic as it is dropped.
        let verdict = match (catch_unwind(AssertUnwindSafe(|| bench.close())), verdict) {
            (Err(payload), Verdict::Passed) => {
                Verdict::Failed(format!("panicked as it was closed: {}", panic_text(payload.as_ref())))
            }
            (Ok(()) | Err(_), verdict) => verdict,
        };
        let evidence = std::mem::take(&mut bench.evidence);
        Outcome { took: began.elapsed(), evidence, ..Outcome::new(rule, verdict) }
    }

    /// Why a rule that needs a process of its own has none.
    pub(crate) fn lacks_process<T: Target>(&self, rule: &Rule, target: &T) -> Option<String> {
        if !IN_A_PROCESS_OF_ITS_OWN.contains(&rule.id) {
            return None;
        }
        let lacks = match (target.address(), &self.child) {
            (None, _) => "Target::address and Target::attach",
            (_, None) => "Check::child",
            (Some(_), Some(_)) if MEASURED_ON_LINUX == rule.id && !cfg!(target_os = "linux") => "Linux",
            (Some(_), Some(_)) => return None,
        };
        Some(format!("done in a process of its own: it needs {lacks}"))
    }
}

/// A fresh target of `factory`, which may panic.
pub(crate) fn fresh<T: Target>(factory: &mut impl FnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
    catch_unwind(AssertUnwindSafe(factory))
        .unwrap_or_else(|payload| Err(format!("panicked: {}", panic_text(payload.as_ref())).into()))
}

/// Tells of a rule that takes long, until what it gives is dropped: a blocking call that hangs cannot be ended.
fn watched(id: &'static str, patience: Duration) -> Sender<()> {
    let (over, wait) = mpsc::channel();
    thread::spawn(move || {
        if wait.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            eprintln!(
                "capstan-conformance: {id} has run for {patience:?}: does a call of the sink never return?"
            );
        }
    });
    over
}

/// Why a rule is not run.
pub(crate) fn skipped<T: Target>(rule: &Rule, target: &T) -> Option<String> {
    let level = target.level();
    if level < rule.level {
        return Some(format!("the sink promises {level} only"));
    }
    let declined = target.declines().iter().find(|(id, _)| *id == rule.id);
    declined.map(|(_, reason)| format!("declined: {reason}"))
}
