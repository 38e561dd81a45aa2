//! Streams every change of a MySQL server into a SQLite ledger, once, whatever kills it in between:
//!
//! ```text
//! cargo run -p capstan --example ledger -- 'mysql://repl:secret@localhost/' ledger.db [now]
//! ```
//!
//! With `now` it stops when it has reached what the server had executed at its start.

use capstan::{
    Halt, Replica, Source, Start, Stored as _, Until,
    sqlite::{Ledger, LedgerOptions},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Halt> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: ledger SOURCE TARGET [now]");
        std::process::exit(2);
    };
    let mut ledger = Ledger::open(target, LedgerOptions::default())?;
    let fresh = ledger.stored().map_err(|error| Halt::from(&error))?.is_none();
    let mut builder = Replica::builder(source.parse::<Source>()?).identity(target);
    if fresh {
        builder = builder.start(Start::Earliest);
    }
    if rest.iter().any(|word| word == "now") {
        builder = builder.until(Until::Now);
    }
    let replica = builder.build()?;
    let handle = replica.handle();
    let stopped = replica.run_blocking(ledger).await?;
    let status = handle.status();
    eprintln!("{}", serde_json::to_string(&status).unwrap_or_default());
    if let Some(position) = stopped.position {
        println!("{position}");
    }
    Ok(())
}
