//! The simulator's front door for people: explores, repeats a run, runs a written schedule.

use std::{process::ExitCode, time::Instant};

use sim::{
    choices::{Choices, from_hex, seed_of},
    fault::{ALL, FATAL, Fault},
    plan::Wishes,
    run::{batch, run, tell},
    schedule,
};

const USAGE: &str = "\
usage: sim [--minutes M | --count N] [--from SEED] [KIND]
       sim --seed SEED [KIND]                             repeats one run; a number, or any text such as a commit
       sim --tape HEX|FILE [KIND]                         repeats one run from its choices
       sim --schedule NAME|FILE                           runs a written schedule
       sim --list-faults | --list-schedules | --help
KIND: --only FAULT | --swarm FAULT,FAULT,...   faults of these classes alone
      --library                                the position is kept beside the sink
      --copy                                   two tables are copied while they change";

enum Task {
    Explore { minutes: f64, count: u64, from: u64 },
    Seed(u64),
    Tape(Vec<u32>),
    Schedule(String),
    ListFaults,
    ListSchedules,
    Help,
}

fn main() -> ExitCode {
    match asked(std::env::args().skip(1)) {
        Ok((task, wishes)) => perform(task, wishes),
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// What the arguments ask for.
fn asked(mut args: impl Iterator<Item = String>) -> Result<(Task, Wishes), String> {
    let (mut minutes, mut count, mut from) = (None, None, None);
    let mut task = None;
    let mut wishes = Wishes::default();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let one = match arg.as_str() {
            "--help" | "-h" => Some(Task::Help),
            "--list-faults" => Some(Task::ListFaults),
            "--list-schedules" => Some(Task::ListSchedules),
            "--seed" => Some(Task::Seed(seed_of(&value()?))),
            "--tape" => Some(Task::Tape(tape(&value()?)?)),
            "--schedule" => Some(Task::Schedule(value()?)),
            "--minutes" => {
                let text = value()?;
                let number = text.parse().ok().filter(|m: &f64| m.is_finite() && *m > 0.0);
                minutes = Some(number.ok_or_else(|| format!("--minutes {text}: no number above 0"))?);
                None
            }
            "--count" => {
                let text = value()?;
                let number = text.parse().ok().filter(|n| *n > 0);
                count = Some(number.ok_or_else(|| format!("--count {text}: no number above 0"))?);
                None
            }
            "--from" => {
                from = Some(seed_of(&value()?));
                None
            }
            "--library" => {
                wishes.library = true;
                None
            }
            "--copy" => {
                wishes.copy = true;
                None
            }
            "--only" => {
                wishes.only = Some(fault(&value()?)?);
                None
            }
            "--swarm" => {
                for name in value()?.split(',') {
                    wishes.swarm |= fault(name)?.bit();
                }
                None
            }
            _ => return Err(format!("{arg} is not known")),
        };
        if one.is_some() && std::mem::replace(&mut task, one).is_some() {
            return Err(format!("{arg}: one thing at a time"));
        }
    }
    if task.is_some() && (minutes.is_some() || count.is_some() || from.is_some()) {
        return Err("--minutes, --count and --from explore; nothing else can be asked for beside them".into());
    }
    if wishes.only.is_some() && wishes.swarm != 0 {
        return Err("--only or --swarm, not both".into());
    }
    let explore = Task::Explore {
        minutes: minutes.unwrap_or(if count.is_some() { f64::INFINITY } else { 1.0 }),
        count: count.unwrap_or(u64::MAX),
        from: from.unwrap_or(1),
    };
    Ok((task.unwrap_or(explore), wishes))
}

fn fault(name: &str) -> Result<Fault, String> {
    Fault::by_name(name).ok_or_else(|| format!("no fault is named {name:?}; --list-faults names them"))
}

/// A tape as it was printed, or a file that holds one (lines with # are remarks).
fn tape(text: &str) -> Result<Vec<u32>, String> {
    let file = std::fs::read_to_string(text).ok();
    let line = match &file {
        Some(file) => file.lines().find(|line| !line.starts_with('#')).unwrap_or_default(),
        None => text,
    };
    from_hex(line).ok_or_else(|| format!("--tape {text}: neither hexadecimal digits nor a file of them"))
}

fn perform(task: Task, wishes: Wishes) -> ExitCode {
    match task {
        Task::Help => println!("{USAGE}"),
        Task::ListFaults => {
            for (at, fault) in ALL.iter().enumerate() {
                println!("{}{}", fault.name(), if at >= FATAL { "   (halts, by design)" } else { "" });
            }
        }
        Task::ListSchedules => {
            for (name, _) in schedule::shipped() {
                match schedule::load(&name) {
                    Ok(schedule) => println!("{name}\n    {}", schedule.title),
                    Err(wrong) => println!("{name}\n    {wrong}"),
                }
            }
        }
        Task::Seed(seed) => return repeat(Some(seed), Choices::seeded(seed), wishes),
        Task::Tape(tape) => return repeat(None, Choices::replay(tape), wishes),
        Task::Schedule(name) => return written(&name),
        Task::Explore { minutes, count, from } => return explore(minutes, count, from, wishes),
    }
    ExitCode::SUCCESS
}

fn repeat(seed: Option<u64>, choices: Choices, wishes: Wishes) -> ExitCode {
    let report = run(choices, wishes, true);
    report.trace.iter().for_each(|line| println!("{line}"));
    if report.result.is_err() {
        println!("{}", tell(seed, &report, wishes));
        return ExitCode::FAILURE;
    }
    println!("passed; {:?}", report.counts);
    ExitCode::SUCCESS
}

fn written(name: &str) -> ExitCode {
    let schedule = match schedule::load(name) {
        Ok(schedule) => schedule,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    println!("{}", schedule.title);
    let told = schedule.run(1);
    if told.result.is_err() {
        println!("{}", schedule::tell(name, &told));
        return ExitCode::FAILURE;
    }
    told.world.trace().iter().for_each(|line| println!("{line}"));
    println!("passed, in {} worlds; the last: {:?}", told.worlds, told.world.counts);
    ExitCode::SUCCESS
}

fn explore(minutes: f64, count: u64, from: u64, wishes: Wishes) -> ExitCode {
    let began = Instant::now();
    let done = batch(from.., wishes, |done| {
        done.schedules >= count || began.elapsed().as_secs_f64() > minutes * 60.0
    });
    println!("seeds from {from}\n{}", done.table());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<(Task, Wishes), String> {
        asked(line.split_whitespace().map(String::from))
    }

    #[test]
    fn arguments_do_what_they_say_or_are_refused() {
        assert!(matches!(of(""), Ok((Task::Explore { from: 1, .. }, _))));
        assert!(matches!(of("--count 5 --from 7"), Ok((Task::Explore { count: 5, from: 7, .. }, _))));
        assert!(matches!(
            of("--seed 39 --only eof"),
            Ok((Task::Seed(39), Wishes { only: Some(Fault::Eof), .. }))
        ));
        assert!(matches!(of("--tape 0001"), Ok((Task::Tape(tape), _)) if tape == [0, 1]));
        assert!(matches!(of("--swarm eof,reset"), Ok((_, Wishes { swarm, .. })) if swarm.count_ones() == 2));
        for wrong in [
            "--seed",
            "--minutes x",
            "--minutes 0",
            "--minutes -1",
            "--count 0",
            "--tape xyz",
            "--only rain",
            "--swarm eof,rain",
            "--swarm eof --only eof",
            "--seed 1 --tape 00",
            "--seed 1 --minutes 2",
            "--help --list-faults",
            "--fast",
            "39",
        ] {
            assert!(of(wrong).is_err(), "{wrong} was taken");
        }
    }
}
