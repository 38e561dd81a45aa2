//! `capstan position`: the stored position, shown or moved by a recorded decision.

use capstan::{
    Code, Decision, Detail, Expected, Halt, Stored,
    checkpoint::FileCheckpoint,
    core::capture::CapturedSet,
    jsonl::{JsonFile, JsonOptions},
    sqlite::{Ledger, LedgerOptions, Mirror, MirrorOptions},
};
use serde_json::json;

use crate::{
    args::{Output, Position, PositionCommand, PositionOf, invalid},
    failure::Failure,
    settings, shown,
    target::Target,
};

/// Runs the command.
pub fn run(args: &Position) -> (Output, Result<u8, Failure>) {
    let of = match &args.command {
        PositionCommand::Show(of)
        | PositionCommand::Export(of)
        | PositionCommand::Skip { of, .. }
        | PositionCommand::AcceptTables { of, .. }
        | PositionCommand::CopyAgain { of, .. }
        | PositionCommand::ForgetTable { of, .. } => of,
    };
    (of.output, run_on(&args.command, of))
}

fn run_on(command: &PositionCommand, of: &PositionOf) -> Result<u8, Failure> {
    let mut target = open(&Target::parse(&of.target)?)?;
    let stored = target.stored().map_err(|error| Halt::from(&error))?;
    let Some(stored) = stored else {
        return Err(Failure::other(format!("{}: no position is stored yet", of.target), 3));
    };
    match command {
        PositionCommand::Show(_) => show(&stored, of.output),
        PositionCommand::Export(_) => say!("{}", stored.gtid_set()),
        PositionCommand::Skip { gtid, ahead, reason, .. } => {
            let gtid: capstan::Gtid = gtid.parse().map_err(|_| invalid("gtid", "is no GTID"))?;
            if stored.gtid_set().contains(&gtid) {
                return Err(invalid("gtid", "is processed already").into());
            }
            let newest =
                stored.gtid_set().intervals(&gtid.tsid()).last().map_or(0, |interval| interval.end());
            if gtid.gno() > newest.saturating_add(1) && !ahead {
                // One that does not exist would leave the source behind its target until it does.
                let next = newest.saturating_add(1);
                tell!("capstan: the next transaction of that source is number {next}");
                return Err(
                    invalid("gtid", "is not the next one of its source (--ahead if it is meant)").into()
                );
            }
            let moved = stored.clone().with_skipped(&gtid);
            decide(&mut *target, &stored, moved, "skip", &gtid.to_string(), reason)?;
            say!("{gtid} will not be delivered.");
        }
        PositionCommand::AcceptTables { capture, reason, .. } => {
            let captured = settings::captured(capture)?.canonical();
            let moved = stored.clone().with_captured(captured.clone());
            decide(&mut *target, &stored, moved, "accept-tables", &captured, reason)?;
            say!("The captured set is now {captured}.");
        }
        PositionCommand::CopyAgain { table, reason, .. } => {
            let one = CapturedSet::parse(&[table], &[], &[]).ok();
            let named: Vec<(String, String)> =
                one.iter().flat_map(CapturedSet::named_tables).map(owned).collect();
            let [(schema, name)] = named.as_slice() else {
                return Err(invalid("TABLE", "is no table like `shop.orders`").into());
            };
            let captured = CapturedSet::parse_canonical(stored.captured())
                .map_err(|_| Halt::new(Code::PositionReadFailed))?;
            if !captured.with_lower_case_table_names(1).captures(schema, name) {
                return Err(invalid("TABLE", "is not captured").into());
            }
            let moved = stored.clone().with_copies(named.iter().cloned());
            decide(&mut *target, &stored, moved, "copy-again", table, reason)?;
            say!("{table} will be copied from its beginning.");
        }
        PositionCommand::ForgetTable { table, reason, .. } => {
            let captured = CapturedSet::parse_canonical(stored.captured())
                .map_err(|_| Halt::new(Code::PositionReadFailed))?
                .without(table)
                .map_err(|error| {
                    Halt::new(Code::ConfigInvalid)
                        .with(Detail::Setting(error.pattern, "is no table like `shop.orders`"))
                })?
                .canonical();
            let moved = stored.clone().with_captured(captured.clone());
            decide(&mut *target, &stored, moved, "forget-table", table, reason)?;
            say!("{table} is captured no longer; start with the same: {captured}");
        }
    }
    Ok(0)
}

fn owned((schema, table): (&str, &str)) -> (String, String) {
    (schema.to_owned(), table.to_owned())
}

fn open(target: &Target) -> Result<Box<dyn Stored>, Halt> {
    if !target.path().exists() {
        return Err(invalid("TARGET", "does not exist"));
    }
    Ok(match target {
        Target::Mirror(path) => Box::new(Mirror::open(path, MirrorOptions::default())?),
        Target::Ledger(path) => Box::new(Ledger::open(path, LedgerOptions::default())?),
        Target::JsonLines(path) => Box::new(JsonFile::open(path, JsonOptions::default())?),
        Target::Checkpoint(path) => Box::new(FileCheckpoint::open(path)?),
    })
}

/// Moves the position under the next epoch, so that a process that still runs is fenced.
fn decide(
    target: &mut dyn Stored,
    stored: &capstan::Position,
    moved: capstan::Position,
    kind: &str,
    subject: &str,
    reason: &str,
) -> Result<(), Halt> {
    if reason.trim().is_empty() {
        return Err(invalid("reason", "is empty"));
    }
    let decision = Decision { kind: kind.to_owned(), subject: subject.to_owned(), reason: reason.to_owned() };
    let owner = u64::from(std::process::id());
    let expected = Expected::new(Some(stored.clone()));
    target.decide(&expected, &moved.claimed(owner), &decision).map_err(|error| Halt::from(&error))
}

fn show(position: &capstan::Position, output: Output) {
    if output == Output::Json {
        say!("{}", position.encode());
        return;
    }
    say!("GTID set       {}", position.gtid_set());
    say!("transactions   {}", position.gtid_set().count());
    say!("epoch          {}", position.epoch());
    say!("captured set   {}", shown::name(position.captured()));
    for last in position.last().values() {
        say!("last of source {}", last.gtid);
    }
    for ((schema, table), copy) in position.copies() {
        let name = shown::name(&format!("{schema}.{table}"));
        say!("copy           {name}: {}, {} rows", copy.state.as_str(), copy.rows);
    }
    if !position.prepared().is_empty() {
        say!("prepared XA    {}", json!(position.prepared().len()));
    }
}
