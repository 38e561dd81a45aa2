//! `cargo run -p sim --profile sim -- --seed N | --tape HEX | --minutes M | --list-faults | --only FAULT`

use std::{process::ExitCode, time::Instant};

use sim::{
    choices::{Choices, from_hex, seed_of},
    fault::{ALL, Fault},
    plan::Wishes,
    run::{batch, run, tell},
};

const USAGE: &str = "usage: sim [--seed N|TEXT] [--tape HEX] [--minutes M] [--from N] [--only FAULT] [--library] [--list-faults]";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut seed, mut tape, mut minutes, mut from) = (None, None, 1.0, 0_u64);
    let mut wishes = Wishes::default();
    while let Some(arg) = args.next() {
        let value =
            if arg == "--list-faults" || arg == "--help" || arg == "--library" { None } else { args.next() };
        let taken = match (arg.as_str(), value.as_deref()) {
            ("--seed", Some(text)) => {
                seed = Some(seed_of(text));
                true
            }
            ("--tape", Some(text)) => {
                tape = from_hex(text);
                tape.is_some()
            }
            ("--minutes", Some(text)) => text.parse().map(|m| minutes = m).is_ok(),
            ("--from", Some(text)) => {
                from = seed_of(text);
                true
            }
            ("--only", Some(name)) => {
                wishes.only = Fault::by_name(name);
                wishes.only.is_some()
            }
            ("--library", None) => {
                wishes.library = true;
                true
            }
            ("--list-faults", None) => {
                ALL.iter().for_each(|fault| println!("{}", fault.name()));
                return ExitCode::SUCCESS;
            }
            _ => false,
        };
        if !taken {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    if seed.is_some() || tape.is_some() {
        let choices = tape.map_or_else(|| Choices::seeded(seed.unwrap_or(0)), Choices::replay);
        let report = run(choices, wishes, true);
        report.trace.iter().for_each(|line| println!("{line}"));
        return match &report.result {
            Ok(()) => {
                println!("passed; {:?}", report.counts);
                ExitCode::SUCCESS
            }
            Err(_) => {
                println!("{}", tell(seed, &report, wishes));
                ExitCode::FAILURE
            }
        };
    }
    let began = Instant::now();
    let done = batch(from.., wishes, |_| began.elapsed().as_secs_f64() > minutes * 60.0);
    println!("{}", done.table());
    done.marks.iter().for_each(|(mark, n)| println!("  {n:>9}  {mark:?}"));
    done.never_happened().iter().for_each(|name| println!("NEVER HAPPENED: {name}"));
    match done.failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}
