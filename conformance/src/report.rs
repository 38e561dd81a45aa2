//! What held and what did not.

use std::fmt;

use serde_json::json;

use crate::{
    CONTRACT,
    rule::{Level, RULES, Rule},
    subject::sealed::Calls,
    target::Target,
};

/// What a rule came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It held.
    Passed,
    /// It did not, and why.
    Failed(String),
    /// It was not run, and why.
    Skipped(String),
}

impl Verdict {
    /// Stable name.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Why, where there is something to say.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(why) | Self::Skipped(why) => Some(why),
        }
    }
}

/// A rule and what it came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The rule.
    pub rule: &'static Rule,
    /// What it came to.
    pub verdict: Verdict,
}

/// What was checked, and how.
#[derive(Clone, Debug)]
struct About {
    sink: String,
    level: Level,
    crash: &'static str,
}

/// Every rule and what it came to. `{}` shows it to people, [`Report::to_json`] to programs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(crate) outcomes: Vec<Outcome>,
    about: Option<About>,
    /// Declined ids that no rule has.
    unknown: Vec<String>,
}

impl Report {
    pub(crate) fn learn<T: Target>(&mut self, target: &T) {
        if self.about.is_some() {
            return;
        }
        let crash = <T::Sink as Calls>::killed_by();
        self.about = Some(About { sink: target.name(), level: target.level(), crash });
        let unknown = |id: &str| RULES.iter().all(|rule| rule.id != id);
        self.unknown =
            target.declines().iter().filter(|(id, _)| unknown(id)).map(|(id, _)| (*id).to_owned()).collect();
    }

    /// In the order of [`RULES`].
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Rules that held.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.count("passed")
    }

    /// Rules that did not.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count("failed")
    }

    /// Rules that were not run.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.count("skipped")
    }

    /// Nothing failed, something held, and nothing was declined that does not exist.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.failed() == 0 && self.passed() > 0 && self.unknown.is_empty()
    }

    fn count(&self, verdict: &str) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.verdict.as_str() == verdict).count()
    }

    /// One JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let rules: Vec<_> = self
            .outcomes
            .iter()
            .map(|Outcome { rule, verdict }| {
                json!({
                    "id": rule.id,
                    "level": rule.level.as_str(),
                    "text": rule.text,
                    "verdict": verdict.as_str(),
                    "why": verdict.why(),
                })
            })
            .collect();
        json!({
            "kit": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "contract": CONTRACT,
            "sink": self.about.as_ref().map(|about| &about.sink),
            "level": self.about.as_ref().map(|about| about.level.as_str()),
            "crash": self.about.as_ref().map(|about| about.crash),
            "passed": self.passed(),
            "failed": self.failed(),
            "skipped": self.skipped(),
            "unknown_declines": self.unknown,
            "rules": rules,
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kit, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        write!(f, "{kit} {version}, contract {CONTRACT}")?;
        if let Some(About { sink, level, crash }) = &self.about {
            write!(f, ": {sink} at {level}, killed by {crash}")?;
        }
        writeln!(f)?;
        for Outcome { rule, verdict } in &self.outcomes {
            writeln!(f, "{:>8}  {:<24}  {}", verdict.as_str(), rule.id, rule.text)?;
            if let Some(why) = verdict.why() {
                writeln!(f, "{:>8}  {:<24}  → {why}", "", "")?;
            }
        }
        for id in &self.unknown {
            writeln!(f, "  failed  {id:<24}  declined, but there is no such rule")?;
        }
        write!(
            f,
            "{} passed, {} failed, {} skipped of {} rules",
            self.passed(),
            self.failed(),
            self.skipped(),
            self.outcomes.len()
        )
    }
}
