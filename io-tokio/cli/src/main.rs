//! The `capstan` command.
#![forbid(unsafe_code)]

#[macro_use]
mod out;

mod args;
mod check;
mod conformance;
mod demo;
mod failure;
mod inspect;
mod people;
mod pipeline;
mod position;
mod settings;
mod shown;
mod signals;
mod status;
mod sync;
mod tail;
mod target;

use std::process::ExitCode;

use args::{Cli, Command, Output};
use clap::Parser as _;
use failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no mistakes. What is one may quote an argument that holds a password.
            let text = error.to_string();
            if error.use_stderr() && out::masked(&text) != text {
                tell!("{}", out::masked(&text).trim_end());
            } else {
                let _ = error.print();
            }
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    log();
    let (output, done) = run(cli.command);
    match done {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            failure.print(output);
            ExitCode::from(failure.exit_status())
        }
    }
}

fn run(command: Command) -> (Output, Result<u8, Failure>) {
    match command {
        Command::Demo(args) => (Output::Text, demo::run(&args)),
        Command::Check(args) => (args.output, check::run(&args)),
        Command::Tail(args) => (args.output.unwrap_or(Output::Text), tail::run(args)),
        Command::Sync(args) => (args.output, sync::run(args)),
        Command::Inspect(args) => (args.output.unwrap_or(Output::Text), inspect::run(&args)),
        Command::Position(args) => position::run(&args),
        Command::Status(args) => (args.output, status::run(&args)),
        Command::Conformance(args) => (args.output, conformance::run(&args)),
    }
}

/// Logs go to standard error, so that standard output is data and nothing else.
fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        // A halt is said in full at the end; its log line is for those who ask for logs.
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,capstan::halt=off"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init();
}
