//! Streams every change of a MySQL server into JSON lines, once:
//!
//! ```text
//! cargo run -p capstan --example jsonl -- 'mysql://repl:secret@localhost/' out.jsonl [now]
//! cargo run -p capstan --example jsonl -- 'mysql://repl:secret@localhost/' - position [now]
//! ```
//!
//! The second form prints to standard output and keeps the position in a file: *at least once*.

use capstan::{
    BlockingCheckpointStore as _, Halt, Replica, Source, Start, Stored as _, Until,
    checkpoint::FileCheckpoint,
    jsonl::{JsonFile, JsonLines, JsonOptions},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Halt> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let now = arguments.last().is_some_and(|word| word == "now");
    if now {
        arguments.pop();
    }
    let (source, target, checkpoint) = match arguments.as_slice() {
        [source, target] => (source, target, None),
        [source, target, checkpoint] if target == "-" => (source, target, Some(checkpoint)),
        _ => {
            eprintln!("usage: jsonl SOURCE FILE [now] | jsonl SOURCE - CHECKPOINT [now]");
            std::process::exit(2);
        }
    };
    let source: Source = source.parse()?;
    let mut builder = Replica::builder(source).identity(checkpoint.unwrap_or(target));
    if now {
        builder = builder.until(Until::Now);
    }
    if let Some(checkpoint) = checkpoint {
        let mut store = FileCheckpoint::open(checkpoint)?;
        if store.load().map_err(|error| Halt::from(&error))?.is_none() {
            builder = builder.start(Start::Earliest);
        }
        let sink = JsonLines::new(std::io::stdout(), JsonOptions::default());
        builder.blocking_checkpoint(store).run_blocking(sink).await?;
    } else {
        let mut file = JsonFile::open(target, JsonOptions::default())?;
        if file.stored().map_err(|error| Halt::from(&error))?.is_none() {
            builder = builder.start(Start::Earliest);
        }
        builder.run_blocking(file).await?;
    }
    Ok(())
}
