//! `capstan sync`: keeps a target up to date.

use std::{
    io::{IsTerminal as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use capstan::{
    BlockingSink, Builder, Code, Halt, Handle, Position, SinkError, Start,
    jsonl::{JsonFile, JsonOptions},
    sqlite::{Ledger, LedgerOptions, Mirror, MirrorOptions},
};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{
    args::{BigintText, Output, Sync, invalid},
    failure::Failure,
    pipeline::{runtime, to_end},
    settings::{self, File},
    shown::{self, of_about},
    target::Target,
};

/// Runs the command.
pub fn run(args: Sync) -> Result<u8, Failure> {
    let file = File::read(args.run.config.as_deref())?;
    let target = Target::parse(&args.target)?;
    let mut builder =
        settings::builder(&args.source, &args.capture, &args.run, &file)?.identity(target.identity());
    let given = settings::given_start(&args.run, &file)?;
    let snapshot = file.snapshot(args.snapshot.as_ref());
    // A copy begins at a place of its own.
    let copies = snapshot.is_some() || !args.copy_again.is_empty();
    let given = if copies { given.or(Some(Start::Stored)) } else { given };
    if let Some(patterns) = snapshot {
        builder = builder.snapshot(patterns);
    }
    builder = builder
        .copy(file.copy(args.snapshot_connections, args.snapshot_max_running, args.snapshot_max_lag))
        .copy_again(&args.copy_again);
    if let Some(rate) = args.snapshot_rate.or(file.snapshot_rate()) {
        builder = builder.copy_rate(rate);
    }
    let text = BigintText::options(args.run.bigint);
    let watch = Watcher::new(&target, args.output);
    let stored = |position: Result<Option<Position>, SinkError>| {
        position.map(|position| position.is_some()).map_err(|error| Halt::from(&error))
    };
    match &target {
        Target::Mirror(path) => {
            if args.run.bigint.is_some() {
                return Err(invalid("bigint", "is for text: a mirror holds integers as such").into());
            }
            let partial = args.run.partial || file.partial();
            let seeded = args.run.seeded_at.is_some() || file.is_seeded();
            builder = builder.whole_history(!partial && !seeded);
            let mut options = MirrorOptions::default();
            options.partial = partial;
            let open = || Mirror::open(path, options);
            run_into(path, open, |mirror| stored(mirror.position()), builder, given, &args, watch)
        }
        Target::Ledger(path) => {
            let mut options = LedgerOptions::default();
            options.text = text;
            let open = || Ledger::open(path, options);
            run_into(path, open, |ledger| stored(ledger.position()), builder, given, &args, watch)
        }
        Target::JsonLines(path) => {
            let mut options = JsonOptions::default();
            options.text = text;
            let open = || JsonFile::open(path, options);
            run_into(path, open, |lines| stored(lines.position()), builder, given, &args, watch)
        }
        Target::Checkpoint(_) => Err(invalid("TARGET", "is a checkpoint, which holds no changes").into()),
    }
}

/// Runs the pipeline into a target. One that is not there yet is made once everything else is in order.
fn run_into<S: BlockingSink + 'static>(
    path: &Path,
    open: impl Fn() -> Result<S, Halt>,
    is_stored: impl Fn(&mut S) -> Result<bool, Halt>,
    builder: Builder,
    given: Option<Start>,
    args: &Sync,
    mut watch: Watcher,
) -> Result<u8, Failure> {
    // A file of lines that is gone is not a new one while the record of what it held is there: opening it says so.
    let mut sink = if path.exists() || JsonFile::record_path(path).exists() { Some(open()?) } else { None };
    let stored = sink.as_mut().map_or(Ok(false), is_stored)?;
    let replica = builder.start(start(given, stored, args)?).build()?;
    let sink = sink.map_or_else(open, Ok)?;
    let handle = replica.handle();
    let done = runtime()?.block_on(to_end(replica.run_blocking(sink), handle, |handle| watch.see(handle)));
    watch.end();
    done
}

/// The start to run with. An empty target needs one to be said; which ones there are is told as commands.
fn start(given: Option<Start>, stored: bool, args: &Sync) -> Result<Start, Failure> {
    match given {
        Some(start) => Ok(start),
        None if stored => Ok(Start::Stored),
        None => {
            if args.output == Output::Text {
                let source = without_password(&args.source.source);
                tell!("The target is empty. Say where to begin:");
                tell!(
                    "  capstan sync '{source}' '{}' --snapshot   # with a copy of what is there",
                    args.target
                );
                for start in ["earliest", "current", "GTIDSET"] {
                    tell!("  capstan sync '{source}' '{}' --start {start}", args.target);
                }
                tell!(
                    "  capstan sync '{source}' '{}' --seeded-at GTIDSET   # loaded from a dump made there",
                    args.target
                );
            }
            Err(Halt::new(Code::StartPositionRequired).into())
        }
    }
}

/// A source's URL, to be shown.
fn without_password(url: &str) -> String {
    let scheme_end = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(scheme_end);
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    match authority.rsplit_once('@') {
        Some((account, host)) => {
            let user = account.split(':').next().unwrap_or_default();
            format!("{scheme}{user}@{host}{tail}")
        }
        None => url.to_owned(),
    }
}

/// Tells people and other processes how it goes.
struct Watcher {
    path: std::path::PathBuf,
    bar: Option<ProgressBar>,
    lines: bool,
    last: Option<(Instant, u64)>,
    copying: Copying,
}

/// What was said of the initial copy.
#[derive(Default)]
struct Copying {
    said: Option<Instant>,
    active: bool,
}

/// Where nobody draws, a line is written as often.
const COPY_LINE_EVERY: Duration = Duration::from_secs(10);

impl Copying {
    /// How far the copy is, in a line; `None` without one.
    fn line(status: &capstan::Status) -> Option<String> {
        let copies = &status.copies;
        if copies.is_empty() {
            return None;
        }
        let done = copies.iter().filter(|copy| copy.state == "done").count();
        let rows: u64 = copies.iter().map(|copy| copy.rows).sum();
        let size: u64 = copies.iter().map(|copy| copy.bytes).sum();
        let mut line = format!("copied {done} of {} tables, {rows} rows, {}", copies.len(), HumanBytes(size));
        if let Some(rate) = status.copy_rows_per_second {
            line.push_str(&format!(" · {rate}/s"));
        }
        if let Some(left) = status.copy_left_s {
            line.push_str(&format!(" · about {} left", HumanDuration(Duration::from_secs(left))));
        }
        if let Some(copy) = copies.iter().find(|copy| copy.state == "copying") {
            let rows = of_about(copy.rows, copy.estimated_rows);
            let name = shown::name(&format!("{}.{}", copy.schema, copy.table));
            line.push_str(&format!(" · {name}: {rows} rows"));
        }
        if let Some(why) = status.copy_waits {
            line.push_str(&format!(" · waits: {why}"));
        }
        Some(line)
    }

    /// Says it on a line of its own, now and then.
    fn say(&mut self, line: Option<&String>) {
        match line {
            Some(line) if self.said.is_none_or(|at| at.elapsed() >= COPY_LINE_EVERY) => {
                self.said = Some(Instant::now());
                self.active = true;
                tell!("{line}");
            }
            None if std::mem::take(&mut self.active) => tell!("The initial copy is done."),
            Some(_) | None => {}
        }
    }
}

impl Watcher {
    fn new(target: &Target, output: Output) -> Self {
        let bar = (output == Output::Text && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        let lines = output == Output::Text && bar.is_none();
        Self { path: target.status_path(), bar, lines, last: None, copying: Copying::default() }
    }

    fn see(&mut self, handle: &Handle) {
        let status = handle.status();
        let copy = Copying::line(&status);
        if self.lines {
            self.copying.say(copy.as_ref());
        }
        if let Some(bar) = &self.bar {
            let rate = match self.last {
                Some((at, before)) if at.elapsed().as_secs_f64() > 0.0 => {
                    (status.transactions.saturating_sub(before)) as f64 / at.elapsed().as_secs_f64()
                }
                _ => 0.0,
            };
            self.last = Some((Instant::now(), status.transactions));
            let lag =
                status.lag_ms.map_or_else(|| "-".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
            let trouble = status.trouble.map_or_else(String::new, |code| format!(" · {code}"));
            bar.set_message(format!(
                "{} · {}{} transactions · {rate:.0}/s · newest {lag} old{trouble}",
                status.state,
                copy.map_or_else(String::new, |copy| format!("{copy} · ")),
                status.transactions
            ));
            bar.tick();
        }
        let mut value = serde_json::to_value(&status).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.insert("pid".to_owned(), json!(std::process::id()));
            let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            object.insert("written_unix_ms".to_owned(), json!(u64::try_from(at.as_millis()).unwrap_or(0)));
        }
        // Of no weight for correctness, so a failure here must not stop the pipeline.
        if let Err(error) = replace(&self.path, value.to_string().as_bytes()) {
            tracing::warn!(kind = ?error.kind(), "the status file could not be written");
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}

/// Replaces a file as a whole.
fn replace(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = std::path::PathBuf::from(name);
    let mut file = std::fs::File::create(&new)?;
    file.write_all(bytes)?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_has_no_password() {
        for (url, want) in [
            ("mysql://u:p@h:1/?ssl-ca=a", "mysql://u@h:1/?ssl-ca=a"),
            ("mysql://u:p:q@h/", "mysql://u@h/"),
            ("mysql://u:p%40@h?x=y@z", "mysql://u@h?x=y@z"),
            ("mysql://u@h/", "mysql://u@h/"),
            ("mysql://h/", "mysql://h/"),
        ] {
            assert_eq!(without_password(url), want);
        }
    }
}
