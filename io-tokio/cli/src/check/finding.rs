//! What was found, and how it is told.

use std::io::IsTerminal as _;

use capstan::{Code, Halt};
use serde_json::{Value, json};

use crate::shown;

/// Names in a finding; of more only the number is told.
const NAMED_MAX: usize = 5;

/// What a finding means for a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    Warn,
    Refuse,
    Unknown,
}

impl Verdict {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Refuse => "refuse",
            Self::Unknown => "unknown",
        }
    }

    const fn colour(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Warn => "33",
            Self::Refuse => "31",
            Self::Unknown => "35",
        }
    }
}

/// One finding.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) gate: &'static str,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// The halt it would be.
    pub(super) code: Option<Code>,
    remedy: Option<&'static str>,
    /// What to run at the server, as an account that may.
    pub(super) statements: Vec<String>,
}

impl Finding {
    fn new(verdict: Verdict, gate: &'static str, found: impl Into<String>) -> Self {
        Self { gate, verdict, found: found.into(), code: None, remedy: None, statements: Vec::new() }
    }

    pub(super) fn ok(gate: &'static str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, gate, found)
    }

    pub(super) fn warn(gate: &'static str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Warn, gate, found)
    }

    pub(super) fn unknown(gate: &'static str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, gate, found)
    }

    pub(super) fn refuse(gate: &'static str, code: Code, found: impl Into<String>) -> Self {
        Self { code: Some(code), ..Self::new(Verdict::Refuse, gate, found) }
    }

    /// A halt that it would be, or what is said where there is none.
    pub(super) fn of(gate: &'static str, test: Result<(), Halt>, good: impl Into<String>) -> Self {
        match test {
            Ok(()) => Self::ok(gate, good),
            Err(halt) => Self::halt(gate, &halt),
        }
    }

    pub(super) fn halt(gate: &'static str, halt: &Halt) -> Self {
        let mut found =
            halt.detail.as_ref().map_or_else(|| halt.code.meaning().to_owned(), |d| d.to_string());
        if let Some(number) = halt.server_error {
            found.push_str(&format!(" (server error {number})"));
        }
        Self::refuse(gate, halt.code, found)
    }

    /// What to do about it, in words.
    pub(super) const fn remedy(mut self, remedy: &'static str) -> Self {
        self.remedy = Some(remedy);
        self
    }

    /// What to do about it, as a statement.
    pub(super) fn run(mut self, statement: impl Into<String>) -> Self {
        self.statements.push(statement.into());
        self
    }

    pub(super) fn run_all(mut self, statements: impl IntoIterator<Item = String>) -> Self {
        self.statements.extend(statements);
        self
    }

    /// One of another verdict instead.
    pub(super) const fn but(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }

    fn words(&self) -> Option<&'static str> {
        self.remedy.or(self.code.map(Code::remedy))
    }

    pub(super) fn json(&self) -> Value {
        let bad = self.verdict != Verdict::Ok;
        json!({
            "gate": self.gate,
            "verdict": self.verdict.as_str(),
            "found": self.found,
            "code": self.code.map(Code::as_str),
            "remedy": self.words().filter(|_| bad),
            "statements": if bad { self.statements.as_slice() } else { &[] },
        })
    }
}

/// A table for people.
pub(super) fn print(findings: &[Finding]) {
    let colours = std::io::stdout().is_terminal();
    let width = findings.iter().map(|finding| finding.gate.len()).max().unwrap_or(0);
    let indent = width.saturating_add(9);
    for finding in findings {
        let word = format!("{:<8}", finding.verdict.as_str());
        let word =
            if colours { format!("\u{1b}[{}m{word}\u{1b}[0m", finding.verdict.colour()) } else { word };
        say!("{word} {:<width$} {}", finding.gate, shown::name(&finding.found));
        if finding.verdict == Verdict::Ok {
            continue;
        }
        if let Some(code) = finding.code {
            say!("{:indent$} code:       {code}", "");
        }
        if let Some(words) = finding.words() {
            say!("{:indent$} what to do: {words}", "");
        }
        for statement in &finding.statements {
            say!("{:indent$} run:        {};", "", shown::statement(statement));
        }
    }
}

/// The first of some names, and how many more there are.
pub(super) fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// A name in backticks.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text in quotes.
pub(super) fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}
