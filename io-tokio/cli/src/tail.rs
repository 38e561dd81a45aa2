//! `capstan tail`: changes on standard output.

use std::io::{self, IsTerminal as _, Write};

use capstan::{
    Handle, Start,
    checkpoint::FileCheckpoint,
    jsonl::{JsonLines, JsonOptions},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    args::{BigintText, Output, Tail},
    failure::Failure,
    out::end_if_closed,
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
    runtime()?.block_on(async {
        let watch = |handle: &Handle| {
            if reader_is_gone() {
                handle.drain();
            }
        };
        match output {
            Output::Json => {
                let sink = JsonLines::new(Quiet(io::stdout()), options);
                pipeline::to_end(replica.run_blocking(sink), handle, watch).await
            }
            Output::Text => {
                pipeline::to_end(replica.run_blocking(People::new(options.text)), handle, watch).await
            }
        }
    })
}

/// Whether standard output is a pipe that nobody reads any more: `tail … | head` must end, though nothing
/// is committed that would be written.
fn reader_is_gone() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut polled, Some(&at_once)), Ok(1..))
        && polled.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
}

/// Standard output that ends the process when its reader went away.
struct Quiet(io::Stdout);

impl Write for Quiet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(end_if_closed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(end_if_closed)
    }
}
