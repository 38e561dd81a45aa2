//! `capstan check`: what a pipeline would find at this source.
//!
//! Asks what the gates of a connect ask, and goes on after a refusal, so that everything is seen at once.
//! What cannot be asked for want of a privilege is *unknown*, never ok.

mod findings;
mod session;

use std::{io::IsTerminal as _, time::Duration};

use capstan::{Code, Halt};
use serde_json::{Value, json};

use self::{
    findings::{Finding, Verdict, questions},
    session::Session,
};
use crate::{
    args::{Check, Output},
    failure::Failure,
    pipeline::runtime,
    settings::{self, File},
};

/// How long the whole of it may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the command.
pub fn run(args: &Check) -> Result<u8, Failure> {
    let source = settings::source(&args.source, &File::default())?;
    let captured = settings::captured(&args.capture)?;
    let (findings, ended) = runtime()?.block_on(async {
        let mut findings = Vec::new();
        let all = async {
            let mut session = Session::open(&source).await?;
            findings.push(Finding::ok("server", session.version.to_string()));
            let link = if session.encrypted { "encrypted" } else { "not encrypted" };
            findings.push(Finding::ok("login", format!("{} is let in, the link is {link}", source.user())));
            questions(&mut session, &captured, &mut findings).await
        };
        let ended = match tokio::time::timeout(PATIENCE, all).await {
            Ok(ended) => ended,
            Err(_) => Err(Halt::new(Code::SourceUnreachable)),
        };
        (findings, ended)
    });
    let refused = findings.iter().any(|finding| finding.verdict == Verdict::Refuse);
    match args.output {
        Output::Json => {
            let all: Vec<Value> = findings.iter().map(Finding::json).collect();
            let complete = ended.is_ok();
            say!("{}", json!({ "findings": all, "complete": complete, "ready": complete && !refused }));
        }
        Output::Text => print(&findings),
    }
    ended?;
    if args.output == Output::Text {
        say!("");
        say!("{}", if refused { "A pipeline would be refused." } else { "A pipeline can start here." });
    }
    Ok(if refused { 3 } else { 0 })
}

fn print(findings: &[Finding]) {
    let colours = std::io::stdout().is_terminal();
    for finding in findings {
        let (word, colour) = match finding.verdict {
            Verdict::Ok => ("ok", "32"),
            Verdict::Warn => ("warn", "33"),
            Verdict::Refuse => ("refuse", "31"),
            Verdict::Unknown => ("unknown", "35"),
        };
        let word = format!("{word:<8}");
        let word = if colours { format!("\u{1b}[{colour}m{word}\u{1b}[0m") } else { word };
        say!("{word} {:<26} {}", finding.gate, finding.found);
        if finding.verdict != Verdict::Ok {
            if let Some(code) = finding.code {
                say!("{:35} code:       {code}", "");
            }
            if let Some(remedy) = finding.remedy() {
                say!("{:35} what to do: {remedy}", "");
            }
        }
    }
}
