//! `capstan check`: what a pipeline would find at this source.
//!
//! Asks what the gates of a connect ask, by the core's own table, and goes on after a refusal, so that everything
//! is seen at once. What cannot be asked for want of a privilege is *unknown*, never ok.

mod account;
mod finding;
mod grants;
mod history;
mod server;
mod session;
mod tables;

use std::time::Duration;

use capstan::{
    Code, Halt, Position, Source,
    core::{capture::CapturedSet, replica::requirements::Variables},
};
use serde_json::{Value, json};

use self::{
    finding::{Finding, Verdict, print, text},
    grants::Grants,
    session::{Session, cell},
};
use crate::{
    args::{Check, Output, invalid},
    failure::Failure,
    pipeline::runtime,
    settings::{self, File},
    target::{Target, peek_checkpoint},
};

/// How long the whole of it may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What each question may need.
struct Facts {
    session: Session,
    variables: Variables,
    /// `'user'@'host'`
    account: String,
    grants: Option<Grants>,
    captured: CapturedSet,
    server_id: Option<u32>,
    allow_cascades: bool,
}

/// What was said on the command line and in the file.
struct Asked {
    source: Source,
    captured: CapturedSet,
    is_captured_said: bool,
    server_id: Option<u32>,
    allow_cascades: bool,
    stored: Option<Position>,
}

/// Runs the command.
pub fn run(args: &Check) -> Result<u8, Failure> {
    let file = File::read(args.config.as_deref())?;
    let capture = file.capture(&args.capture);
    let stored = match (&args.target, &args.checkpoint) {
        (Some(_), Some(_)) => return Err(invalid("checkpoint", "and a TARGET exclude each other").into()),
        (Some(target), None) => Target::parse(target)?.peek()?,
        (None, Some(path)) => peek_checkpoint(path)?,
        (None, None) => None,
    };
    let asked = Asked {
        source: settings::source(&args.source, &file)?,
        captured: settings::captured(&capture)?,
        is_captured_said: !capture.tables.is_empty()
            || !capture.exclude.is_empty()
            || !capture.exclude_columns.is_empty(),
        server_id: args.source.server_id.or_else(|| file.server_id()),
        allow_cascades: file.allow_unlogged_cascades(),
        stored,
    };
    let (findings, ended) = runtime()?.block_on(async {
        let mut findings = Vec::new();
        let ended = match tokio::time::timeout(PATIENCE, questions(&asked, &mut findings)).await {
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

async fn questions(asked: &Asked, findings: &mut Vec<Finding>) -> Result<(), Halt> {
    let mut session = match Session::open(&asked.source).await {
        Ok(session) => session,
        Err(halt) => {
            findings.push(shut_out(&asked.source, &halt));
            return Err(halt);
        }
    };
    findings.push(Finding::ok("server", session.version.to_string()));
    let link = if session.encrypted { "encrypted" } else { "not encrypted" };
    findings.push(Finding::ok("login", format!("{} is let in, the link is {link}", asked.source.user())));
    // The texts that are read here are written under these.
    let _ = session.ask("SET SESSION sql_mode = '', sql_quote_show_create = 1, time_zone = '+00:00'").await?;
    let variables = session.ask(&Variables::question(server::VARIABLES)).await?;
    let variables = variables.map(|rows| Variables::read(&rows)).unwrap_or_default();
    let user = session.ask("SELECT CURRENT_USER()").await?.ok().and_then(|rows| cell(&rows, 0, 0));
    let account = user.as_deref().and_then(|user| user.rsplit_once('@'));
    let account = account
        .map_or_else(|| "CURRENT_USER()".to_owned(), |(user, host)| format!("{}@{}", text(user), text(host)));
    let grants = account::grants(&mut session, variables.is_on("partial_revokes")).await?;
    let lower_case = variables.lower_case_table_names();
    let stored_set = asked.stored.as_ref().filter(|_| !asked.is_captured_said);
    let captured = stored_set
        .and_then(|position| CapturedSet::parse_canonical(position.captured()).ok())
        .unwrap_or_else(|| asked.captured.clone())
        .with_lower_case_table_names(lower_case);
    let mut facts = Facts {
        session,
        variables,
        account,
        grants,
        captured,
        server_id: asked.server_id,
        allow_cascades: asked.allow_cascades,
    };
    account::link(&mut facts, &asked.source, findings).await?;
    account::account(&mut facts, findings).await?;
    account::privileges(&facts, findings);
    server::ask(&mut facts, findings).await?;
    server::replicas(&mut facts, findings).await?;
    tables::ask(&mut facts, findings).await?;
    if let Some(position) = &asked.stored {
        findings.push(history::captured(position, &facts.captured, lower_case));
    }
    history::ask(&mut facts, asked.stored.as_ref(), findings).await
}

/// Why there is no session, with what an administrator would run.
fn shut_out(source: &Source, halt: &Halt) -> Finding {
    /// `ER_MUST_CHANGE_PASSWORD`, `ER_MUST_CHANGE_PASSWORD_LOGIN`, `ER_ACCOUNT_HAS_BEEN_LOCKED`
    const EXPIRED: [Option<u16>; 2] = [Some(1820), Some(1862)];
    const LOCKED: Option<u16> = Some(3118);
    let user = text(source.user());
    let finding = Finding::halt("login", halt);
    if EXPIRED.contains(&halt.server_error) {
        Finding::refuse("login", halt.code, "the account's password has expired").remedy(
            "ALTER USER … IDENTIFIED BY a new password; PASSWORD EXPIRE NEVER keeps it from expiring again.",
        )
    } else if halt.server_error == LOCKED {
        Finding::refuse("login", halt.code, "the account is locked")
            .remedy("Run this with the account's host.")
            .run(format!("ALTER USER {user} ACCOUNT UNLOCK"))
    } else {
        finding
    }
}
