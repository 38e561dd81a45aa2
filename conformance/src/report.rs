//! What held and what did not.

use std::{
    collections::BTreeSet,
    fmt::{self, Write as _},
    time::Duration,
};

use serde_json::json;

use crate::{
    CONTRACT,
    artifact::{self, Artifact},
    bench::Evidence,
    crash::Strength,
    rule::{Level, Rule},
    table::RULES,
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
    pub(crate) evidence: Evidence,
    pub(crate) took: Duration,
}

impl Outcome {
    pub(crate) fn new(rule: &'static Rule, verdict: Verdict) -> Self {
        Self { rule, verdict, evidence: Evidence::default(), took: Duration::ZERO }
    }

    /// What was seen on the way.
    #[must_use]
    pub fn evidence(&self) -> &[String] {
        &self.evidence.notes
    }

    /// Batches that were handed to the sink.
    #[must_use]
    pub const fn batches(&self) -> u64 {
        self.evidence.batches
    }

    /// How hard its crashes were.
    pub fn strengths(&self) -> impl Iterator<Item = Strength> + '_ {
        self.evidence.strengths.iter().copied()
    }

    /// How long it took.
    #[must_use]
    pub const fn took(&self) -> Duration {
        self.took
    }
}

/// What was checked, and how.
#[derive(Clone, Debug)]
pub(crate) struct About {
    sink: String,
    level: Level,
    artifact: Option<Artifact>,
}

/// Every rule and what it came to. `{}` shows it to people, [`Report::to_json`] to programs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) seed: u64,
    pub(crate) about: Option<About>,
    /// Declined ids that no rule has.
    pub(crate) unknown: Vec<String>,
}

impl Report {
    pub(crate) fn learn<T: Target>(&mut self, target: &T, artifact: Option<&Artifact>) {
        if self.about.is_some() {
            return;
        }
        self.about = Some(About {
            sink: target.name(),
            level: target.level(),
            artifact: artifact.cloned().or_else(|| target.artifact()),
        });
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

    /// How hard the crashes were that the rules used.
    #[must_use]
    pub fn strengths(&self) -> BTreeSet<Strength> {
        self.outcomes.iter().flat_map(Outcome::strengths).collect()
    }

    fn crash_names(&self) -> Vec<&'static str> {
        self.strengths().into_iter().map(Strength::as_str).collect()
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
            .map(|outcome| {
                let Outcome { rule, verdict, .. } = outcome;
                json!({
                    "id": rule.id,
                    "level": rule.level.as_str(),
                    "text": rule.text,
                    "verdict": verdict.as_str(),
                    "why": verdict.why(),
                    "evidence": outcome.evidence(),
                    "crashes": outcome.strengths().map(Strength::as_str).collect::<Vec<_>>(),
                    "batches": outcome.batches(),
                    "took_ms": u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
                })
            })
            .collect();
        json!({
            "kit": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "producer": PRODUCER.map(|package| json!({ "package": package, "version": env!("CARGO_PKG_VERSION") })),
            "program_sha256": artifact::program_sha256(),
            "consumer": self.about.as_ref().and_then(|about| about.artifact.as_ref()).map(Artifact::json),
            "contract": CONTRACT,
            "sink": self.about.as_ref().map(|about| &about.sink),
            "level": self.about.as_ref().map(|about| about.level.as_str()),
            "crashes": self.crash_names(),
            "seed": self.seed,
            "passed": self.passed(),
            "failed": self.failed(),
            "skipped": self.skipped(),
            "unknown_declines": self.unknown,
            "rules": rules,
        })
        .to_string()
    }
}

impl Report {
    /// A page for people. What changes from run to run is in the table at its top.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_markdown(&mut out);
        out
    }

    fn write_markdown(&self, out: &mut String) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        let name = self.about.as_ref().map_or("nothing", |about| &about.sink);
        writeln!(out, "# Conformance of `{name}`\n")?;
        writeln!(
            out,
            "{} passed, {} failed, {} skipped of {} rules.\n\n| | |\n|---|---|",
            self.passed(),
            self.failed(),
            self.skipped(),
            self.outcomes.len()
        )?;
        if let Some(about) = &self.about {
            writeln!(out, "| level | {} |", about.level)?;
            if let Some(artifact) = &about.artifact {
                writeln!(out, "| consumer | {} {} |", artifact.package, artifact.version)?;
                if let Some((of, sha256)) = &artifact.digest {
                    writeln!(out, "| digest | SHA-256 of its {of}: {sha256} |")?;
                }
            }
        }
        writeln!(out, "| producer | {} {version} |", PRODUCER.join(", "))?;
        if let Some(sha256) = artifact::program_sha256() {
            writeln!(out, "| digest of both | SHA-256 of this program: {sha256} |")?;
        }
        writeln!(out, "| contract | {CONTRACT} |\n| seed | {} |", self.seed)?;
        writeln!(out, "| crashes | {} |", self.crash_names().join(", "))?;
        let took: Duration = self.outcomes.iter().map(Outcome::took).sum();
        writeln!(out, "| took | {} ms |\n\n| rule | | what was seen |\n|---|---|---|", took.as_millis())?;
        for outcome in &self.outcomes {
            let mut seen = vec![format!("{} batches", outcome.batches())];
            seen.extend(outcome.strengths().map(|strength| strength.to_string()));
            seen.extend(outcome.evidence().iter().cloned());
            if let Verdict::Skipped(_) = outcome.verdict {
                seen.clear();
            }
            seen.extend(outcome.verdict.why().map(str::to_owned));
            let seen = seen.join("; ").replace('|', "\\|").replace('\n', " ");
            writeln!(
                out,
                "| `{}`: {} | {} | {seen} |",
                outcome.rule.id,
                outcome.rule.text,
                outcome.verdict.as_str()
            )?;
        }
        writeln!(
            out,
            "\nIt certifies what it ran: not what the tables mean to you, nor how the storage survives a loss of power."
        )
    }
}

/// What made the units.
const PRODUCER: [&str; 3] = ["capstan-core", "capstan-fake-source", "capstan-conformance"];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kit, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        write!(f, "{kit} {version}, contract {CONTRACT}")?;
        if let Some(About { sink, level, .. }) = &self.about {
            write!(f, ": {sink} at {level}")?;
        }
        writeln!(f, ", crashes: {}, seed {}", self.crash_names().join(" "), self.seed)?;
        for Outcome { rule, verdict, .. } in &self.outcomes {
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
