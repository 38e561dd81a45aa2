//! How a command fails: with a halt, or with a sentence of its own.

use std::io::IsTerminal as _;

use capstan::Halt;
use serde_json::json;

use crate::{args::Output, out::masked, shown};

/// Why a command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// By a code of the contract.
    Halt(Box<Halt>),
    /// By something that has no code: a file that is not there, a comparison that failed.
    Other {
        /// What happened, and what to do.
        what: String,
        /// The exit status.
        status: u8,
    },
}

impl Failure {
    /// A failure without a code.
    pub fn other(what: impl Into<String>, status: u8) -> Self {
        // A URL in the place of a path is named as it was given, but for its secret.
        Self::Other { what: masked(&what.into()), status }
    }

    /// The exit status it ends the command with.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Halt(halt) => halt.exit_status(),
            Self::Other { status, .. } => *status,
        }
    }

    /// Says it on standard error.
    pub fn print(&self, output: Output) {
        match (self, output) {
            (Self::Halt(halt), Output::Json) => tell!("{}", halt_json(halt)),
            (Self::Halt(halt), Output::Text) => print_halt(halt),
            (Self::Other { what, status }, Output::Json) => {
                tell!("{}", json!({ "error": what, "exit_status": status }));
            }
            (Self::Other { what, .. }, Output::Text) => tell!("capstan: {what}"),
        }
    }
}

impl From<Halt> for Failure {
    fn from(halt: Halt) -> Self {
        Self::Halt(Box::new(halt))
    }
}

fn print_halt(halt: &Halt) {
    let (bold, plain) = if std::io::stderr().is_terminal() { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    tell!("capstan: {bold}{}{plain} (stage {})", halt.code, halt.stage().as_str());
    tell!("  {}", halt.code.meaning());
    if let Some(place) = &halt.place {
        tell!("  where:       {}", shown::name(place.to_string().trim_start_matches(", ")));
    }
    if let Some(detail) = &halt.detail {
        tell!("  what:        {}", shown::name(&detail.to_string()));
    }
    if let Some(number) = halt.server_error {
        tell!("  server says: error {number}");
    }
    tell!("  what to do:  {}", shown::name(&remedy(halt)));
}

/// What to do, with the very table and transaction where it is about one.
fn remedy(halt: &Halt) -> String {
    let mut text = halt.remedy().to_owned();
    let Some(place) = halt.place.as_ref() else { return text };
    if let Some((schema, table)) = &place.table {
        let name = format!("{}.{}", pattern(schema), pattern(table)).replace('\'', r"'\''");
        text = text.replace("SCHEMA.TABLE", &format!("'{name}'"));
    }
    if let Some(gtid) = &place.gtid {
        text = text.replace("--gtid GTID", &format!("--gtid {gtid}"));
    }
    text
}

/// A name as options take it.
fn pattern(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '#');
    if name.chars().all(plain) { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

/// A halt for programs.
pub fn halt_json(halt: &Halt) -> serde_json::Value {
    let place = halt.place.as_ref();
    json!({
        "code": halt.code.as_str(),
        "class": halt.code.class().as_str(),
        "stage": halt.stage().as_str(),
        "meaning": halt.code.meaning(),
        "remedy": remedy(halt),
        "detail": halt.detail.as_ref().map(ToString::to_string),
        "server_error": halt.server_error,
        "file": place.and_then(|p| p.file.clone()),
        "offset": place.and_then(|p| p.offset),
        "gtid": place.and_then(|p| p.gtid).map(|g| g.to_string()),
        "table": place.and_then(|p| p.table.as_ref()).map(|(schema, table)| format!("{schema}.{table}")),
        "column": place.and_then(|p| p.column.clone()),
        "exit_status": halt.exit_status(),
    })
}

#[cfg(test)]
mod tests {
    use capstan::{Code, Place};

    use super::*;

    /// Red where names are not quoted for a shell, or the transaction is not named.
    #[test]
    fn a_remedy_can_be_run_as_it_is_told() {
        let place = Place {
            gtid: "3e11fa47-71ca-11e1-9e33-c80aa9429562:23".parse().ok(),
            table: Some(("d".to_owned(), "it's".to_owned())),
            ..Place::default()
        };
        let halt = Halt::new(Code::PartialRowImage).at(place);
        let told = remedy(&halt);
        assert!(
            told.contains("skip --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --reason WHY TARGET`"),
            "{told}"
        );
        assert!(told.contains(r"--copy-again 'd.`it'\''s`'`"), "{told}");
        assert_eq!(remedy(&Halt::new(Code::PartialRowImage)), Code::PartialRowImage.remedy());
    }
}
