//! `capstan tail`: changes on standard output.

use std::io::{self, IsTerminal as _, Write};

use capstan::{
    Code, Start,
    checkpoint::FileCheckpoint,
    jsonl::{JsonLines, JsonOptions},
};

use crate::{
    args::{BigintText, Output, Tail},
    failure::Failure,
    people::People,
    pipeline::{self, runtime},
    settings::{self, File},
};

/// Runs the command.
pub fn run(args: Tail) -> Result<u8, Failure> {
    let file = File::read(args.run.config.as_deref())?;
    let mut builder = settings::builder(&args.source, &args.capture, &args.run, &file)?;
    let given = settings::given_start(&args.run, &file)?;
    let start = match (&args.checkpoint, given) {
        (_, Some(start)) => start,
        (None, None) => Start::Current,
        (Some(_), None) => Start::Stored,
    };
    builder = builder.start(start);
    if let Some(path) = &args.checkpoint {
        builder = builder.identity(
            std::path::absolute(path).unwrap_or_else(|_| path.clone()).as_os_str().as_encoded_bytes(),
        );
        builder = builder.blocking_checkpoint(FileCheckpoint::open(path)?);
    }
    let mut options = JsonOptions::default();
    options.text = BigintText::options(args.run.bigint);
    let output = args.output.unwrap_or(if io::stdout().is_terminal() { Output::Text } else { Output::Json });
    let replica = builder.build()?;
    let handle = replica.handle();
    let done = runtime()?.block_on(async {
        match output {
            Output::Json => {
                pipeline::to_end(
                    replica.run_blocking(JsonLines::new(Quiet(io::stdout()), options)),
                    handle,
                    |_| {},
                )
                .await
            }
            Output::Text => {
                pipeline::to_end(replica.run_blocking(People::new(options.text)), handle, |_| {}).await
            }
        }
    });
    match done {
        // Whoever read our output has seen enough.
        Err(Failure::Halt(halt)) if halt.code == Code::SinkFailed && pipe_is_closed() => Ok(0),
        done => done,
    }
}

static PIPE_CLOSED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Remembers that standard output was closed by its reader.
pub fn note_closed_pipe(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        PIPE_CLOSED.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

fn pipe_is_closed() -> bool {
    PIPE_CLOSED.load(std::sync::atomic::Ordering::Relaxed)
}

/// Standard output that remembers when its reader went away.
struct Quiet(io::Stdout);

impl Write for Quiet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(note_closed_pipe)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(note_closed_pipe)
    }
}
