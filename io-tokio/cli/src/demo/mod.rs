//! `capstan demo`: the whole story on this machine, with numbers.
//!
//! A private MySQL, two writers, `capstan sync` as a child that is killed with SIGKILL while it is provably
//! at work, and a comparison in which neither side is asked for the other's account: the server's triggers
//! hash every changed row as the server prints it, the ledger's rows are read back from their JSON.

mod child;
mod compare;
mod ledger;
mod tables;
mod watch;
mod workload;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use capstan_mysql::{LaunchError, Server, SqlError};

use self::{
    child::{Child, Sync},
    compare::Verdict,
    ledger::Reader,
    watch::Interrupt,
    workload::Writers,
};
use crate::{args::Demo, failure::Failure};

/// The account that reads the binlog: these three, and nothing else.
const USER: &str = "capstan";
const PASSWORD: &str = "demo-only: no secret";
const GRANTS: [&str; 3] = ["REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*", "SELECT ON *.*"];

/// How long a child may take to get to work, or to the end.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs the command.
pub fn run(args: &Demo) -> Result<u8, Failure> {
    let interrupt = Interrupt::listen()?;
    let story = Story { began: Instant::now() };
    story.say("Starting a private MySQL server: own folder, own port, nothing installed.");
    let server = Server::builder().start().map_err(|error| launch(&error))?;
    // From here on there is a folder to clean up, so a signal ends the steps in turn instead of the process.
    interrupt.steps_begin();
    let folder = tempfile::Builder::new()
        .prefix("capstan-demo-")
        .tempdir()
        .map_err(|error| Failure::other(format!("no temporary folder: {error}"), 4))?;
    story.say(&format!("MySQL {} answers on port {}.", server.version(), server.port()));

    let done = play(args, &story, &server, folder.path(), &interrupt);
    if args.keep {
        keep(server, folder)?;
    }
    let verdict = done?;
    say!("");
    say!("{verdict}");
    Ok(u8::from(!verdict.equal()))
}

fn play(
    args: &Demo,
    story: &Story,
    server: &Server,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<Verdict, Failure> {
    server.sql(&tables::script()).map_err(|error| sql(&error))?;
    server.user(USER, PASSWORD, &GRANTS).map_err(|error| sql(&error))?;
    story.say(&format!(
        "{} tables in schema shop, each with triggers that note every change in schema audit; user \
         '{USER}' has {}, and no more.",
        tables::TABLES.len(),
        GRANTS.map(|grant| grant.trim_end_matches(" ON *.*")).join(", ")
    ));
    let sync = Sync::new(server.url_for(USER, ""), PASSWORD, folder)
        .map_err(|error| Failure::other(format!("{}: {error}", folder.display()), 4))?;
    let mut reader = Reader::new(sync.ledger());

    let duration = Duration::from_secs(args.seconds);
    story.say(&format!(
        "Two writers work for {} s: inserts, updates, deletes in transactions of many statements, \
         rollbacks, and one transaction of over 10 MB.",
        args.seconds
    ));
    let writers = Writers::start(server, duration, interrupt)?;
    let killed = kill_in_turn(args, story, &sync, &mut reader, interrupt, duration)?;
    let wrote = writers.join(interrupt)?;
    story.say(&format!(
        "The writers are done: {} transactions committed, {} rolled back, the largest {:.1} MB.",
        wrote.committed,
        wrote.rolled_back,
        wrote.largest_bytes as f64 / 1e6
    ));

    let before = reader.count()?;
    let mut last = sync.spawn(Some("now"))?;
    story.say(&format!("sync starts a last time, at {before} ledger rows, to end at what is executed now."));
    last.wait(PATIENCE, interrupt)?;
    let after = reader.count()?;
    story.say(&format!("sync ended by itself, {} rows later.", after.saturating_sub(before)));

    if args.break_it {
        reader.break_one()?;
        story.say("--break-it: one value in one row of the ledger is changed by hand.");
    }
    story.say("Comparing: the server's own notes against the ledger, row by row, in order.");
    compare::compare(server, &reader, killed, interrupt)
}

/// Runs `sync` and kills it, as often as was asked, each time while it writes.
fn kill_in_turn(
    args: &Demo,
    story: &Story,
    sync: &Sync,
    reader: &mut Reader,
    interrupt: &Interrupt,
    duration: Duration,
) -> Result<u32, Failure> {
    let began = Instant::now();
    for turn in 1..=args.kills {
        // The last kill comes while the writers still write.
        let at = duration.mul_f64(f64::from(turn) / (f64::from(args.kills) + 0.3));
        let before = reader.count()?;
        let mut child = sync.spawn(None)?;
        story.say(&format!("sync started (process {}), ledger at {before} rows.", child.id()));
        let seen = until_busy(&mut child, reader, before, began + at, interrupt)?;
        child.kill()?;
        let after = reader.count()?;
        story.say(&format!(
            "SIGKILL {turn} of {}: it had written {} rows and was writing; {after} rows are on disk.",
            args.kills,
            seen.saturating_sub(before),
        ));
    }
    Ok(args.kills)
}

/// Waits until it is time and the ledger has grown since the start, and once more just now: the process is
/// at work at this moment.
fn until_busy(
    child: &mut Child,
    reader: &mut Reader,
    before: u64,
    at: Instant,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    let deadline = at.max(Instant::now()) + PATIENCE;
    let mut last = before;
    while Instant::now() < deadline {
        interrupt.check()?;
        child.must_live()?;
        let now = reader.count()?;
        let grew = now > last && last >= before;
        last = now;
        if grew && Instant::now() >= at {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_millis(15));
    }
    Err(child.failure("did not write anything in time"))
}

fn keep(server: Server, folder: tempfile::TempDir) -> Result<(), Failure> {
    let (url, pid) = (server.url(), server.pid().unwrap_or_default());
    let server_folder = server.detach().map_err(|error| launch(&error))?;
    let folder = folder.keep();
    say!("");
    say!("Kept:");
    say!("  server   {url}");
    say!("           process {pid}, folder {}", server_folder.display());
    say!("  ledger   {}", folder.join(child::LEDGER).display());
    say!("  to end:  kill {pid}; rm -r {} {}", server_folder.display(), folder.display());
    Ok(())
}

fn launch(error: &LaunchError) -> Failure {
    Failure::other(format!("the private MySQL server: {error}"), 3)
}

fn sql(error: &SqlError) -> Failure {
    Failure::other(format!("the private MySQL server: {error}"), 4)
}

/// Says what happens, and when.
struct Story {
    began: Instant,
}

impl Story {
    fn say(&self, text: &str) {
        say!("[{:5.1} s] {text}", self.began.elapsed().as_secs_f64());
    }
}
