//! Settings from the command line, a file, and the environment.

use std::{io::IsTerminal as _, path::Path, time::Duration};

use capstan::{
    BatchLimits, Builder, Code, CopyLimits, Detail, Halt, Limits, Replica, Secret, Source, Start,
    core::capture::CapturedSet, net::TokioNet,
};
use serde::Deserialize;

use crate::args::{CaptureArgs, RunArgs, SourceArgs, gtid_set, invalid, start, until};

/// The settings file: the names of the command line, and `[limits]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct File {
    tables: Vec<String>,
    exclude: Vec<String>,
    exclude_columns: Vec<String>,
    start: Option<String>,
    until: Option<String>,
    seeded_at: Option<String>,
    server_id: Option<u32>,
    password_file: Option<std::path::PathBuf>,
    strict: Option<bool>,
    partial: Option<bool>,
    allow_unlogged_cascades: Option<bool>,
    snapshot: Option<Vec<String>>,
    snapshot_rate: Option<u64>,
    snapshot_connections: Option<u8>,
    snapshot_max_running: Option<u32>,
    snapshot_max_lag: Option<u64>,
    limits: LimitsFile,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct LimitsFile {
    stream_above_bytes: Option<usize>,
    retained_max_bytes: Option<usize>,
    row_event_max_bytes: Option<usize>,
    heartbeat_ms: Option<u64>,
    silence_ms: Option<u64>,
    acknowledgement_ms: Option<u64>,
    dial_ms: Option<u64>,
    backoff_first_ms: Option<u64>,
    backoff_max_ms: Option<u64>,
    trouble_max_ms: Option<u64>,
    progress_every_ms: Option<u64>,
    progress_gtids: Option<u64>,
    batch_max_transactions: Option<usize>,
    batch_max_bytes: Option<usize>,
    copy_chunk_rows: Option<u64>,
    copy_chunk_bytes: Option<usize>,
}

impl File {
    /// Reads the file, if one is named.
    pub fn read(path: Option<&Path>) -> Result<Self, Halt> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = std::fs::read_to_string(path).map_err(|_| invalid("config", "cannot be read"))?;
        toml::from_str(&text).map_err(|error| {
            // The parser's message quotes the file, which may hold a secret: only the kind is told.
            if error.message().starts_with("unknown field") {
                let name = error.message().split('`').nth(1).unwrap_or_default().to_owned();
                Halt::new(Code::UnknownOption).with(Detail::Setting(name, "is no setting"))
            } else {
                let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
                let line = before.matches('\n').count().saturating_add(1);
                invalid(&format!("config, line {line}"), "is not valid TOML, or a value has the wrong type")
            }
        })
    }

    /// What is captured, by the command line where it says something.
    pub fn capture(&self, line: &CaptureArgs) -> CaptureArgs {
        CaptureArgs {
            tables: first(&line.tables, &self.tables),
            exclude: first(&line.exclude, &self.exclude),
            exclude_columns: first(&line.exclude_columns, &self.exclude_columns),
        }
    }

    /// `server-id`.
    pub const fn server_id(&self) -> Option<u32> {
        self.server_id
    }

    /// `allow-unlogged-cascades`.
    pub fn allow_unlogged_cascades(&self) -> bool {
        self.allow_unlogged_cascades.unwrap_or(false)
    }

    /// `partial`.
    pub fn partial(&self) -> bool {
        self.partial.unwrap_or(false)
    }

    /// Whether it has `seeded-at`.
    pub const fn is_seeded(&self) -> bool {
        self.seeded_at.is_some()
    }

    fn limits(&self) -> Limits {
        let l = &self.limits;
        let d = Limits::default();
        let ms = |given: Option<u64>, default: Duration| given.map_or(default, Duration::from_millis);
        Limits {
            stream_above: l.stream_above_bytes.unwrap_or(d.stream_above),
            retained_max: l.retained_max_bytes.unwrap_or(d.retained_max),
            row_event_max: l.row_event_max_bytes.unwrap_or(d.row_event_max),
            heartbeat: ms(l.heartbeat_ms, d.heartbeat),
            silence: ms(l.silence_ms, d.silence),
            acknowledgement: ms(l.acknowledgement_ms, d.acknowledgement),
            dial: ms(l.dial_ms, d.dial),
            backoff_first: ms(l.backoff_first_ms, d.backoff_first),
            backoff_max: ms(l.backoff_max_ms, d.backoff_max),
            trouble_max: ms(l.trouble_max_ms, d.trouble_max),
            progress_every: ms(l.progress_every_ms, d.progress_every),
            progress_gtids: l.progress_gtids.unwrap_or(d.progress_gtids),
        }
    }

    /// Which tables to copy, by the command line where it says something; `None`: none. No pattern is all of them.
    pub fn snapshot(&self, line: Option<&Vec<String>>) -> Option<Vec<String>> {
        let patterns = line.or(self.snapshot.as_ref())?.clone();
        Some(if patterns.as_slice() == ["all"] { Vec::new() } else { patterns })
    }

    /// `snapshot-rate`.
    pub fn snapshot_rate(&self) -> Option<u64> {
        self.snapshot_rate
    }

    /// Numbers of the copy, by the command line where it says something.
    pub fn copy(&self, connections: Option<u8>, running: Option<u32>, lag_s: Option<u64>) -> CopyLimits {
        let d = CopyLimits::default();
        CopyLimits {
            connections: connections.or(self.snapshot_connections).or(d.connections),
            running_max: running.or(self.snapshot_max_running).unwrap_or(d.running_max),
            lag_max: lag_s.or(self.snapshot_max_lag).map_or(d.lag_max, Duration::from_secs),
            chunk_rows: self.limits.copy_chunk_rows.unwrap_or(d.chunk_rows),
            chunk_bytes: self.limits.copy_chunk_bytes.unwrap_or(d.chunk_bytes),
            ..d
        }
    }

    fn batch(&self) -> BatchLimits {
        let d = BatchLimits::default();
        BatchLimits {
            max_transactions: self.limits.batch_max_transactions.unwrap_or(d.max_transactions),
            max_bytes: self.limits.batch_max_bytes.unwrap_or(d.max_bytes),
        }
    }
}

/// The source with its password.
pub fn source(args: &SourceArgs, file: &File) -> Result<Source, Halt> {
    let source = Source::parse(&args.source)?;
    if source.has_password() {
        return match args.password_file {
            Some(_) => Err(invalid("password-file", "and a password in the URL exclude each other")),
            None => Ok(source),
        };
    }
    if let Some(path) = args.password_file.as_ref().or(file.password_file.as_ref()) {
        let text = std::fs::read(path).map_err(|_| invalid("password-file", "cannot be read"))?;
        let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        return Ok(source.with_password(Secret::new(line)));
    }
    if let Some(password) = std::env::var_os("CAPSTAN_PASSWORD") {
        return Ok(source.with_password(Secret::new(password.into_encoded_bytes())));
    }
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let prompt = format!("Password of {} on {}: ", source.user(), source.host());
        let password =
            rpassword::prompt_password(prompt).map_err(|_| invalid("password", "could not be asked for"))?;
        return Ok(source.with_password(Secret::new(password)));
    }
    // An account without a password is legal.
    Ok(source)
}

/// A builder with everything but target and start.
pub fn builder(
    source_args: &SourceArgs,
    capture: &CaptureArgs,
    run: &RunArgs,
    file: &File,
) -> Result<Builder, Halt> {
    let source = source(source_args, file)?;
    let capture = file.capture(capture);
    // Certificates that cannot be read are found before a target is made.
    TokioNet::new(source.ssl())?;
    let mut builder = Replica::builder(source)
        .tables(capture.tables)
        .exclude(capture.exclude)
        .exclude_columns(capture.exclude_columns)
        .override_stored(run.override_stored)
        .strict(run.strict || file.strict.unwrap_or(false))
        .allow_unlogged_cascades(run.allow_unlogged_cascades || file.allow_unlogged_cascades())
        .limits(file.limits())
        .batch(file.batch());
    if let Some(id) = source_args.server_id.or(file.server_id) {
        builder = builder.server_id(id);
    }
    if let Some(text) = run.until.as_ref().or(file.until.as_ref()) {
        builder = builder.until(until(text)?);
    }
    Ok(builder)
}

/// `--start` or `--seeded-at`; `None`: neither was given.
pub fn given_start(run: &RunArgs, file: &File) -> Result<Option<Start>, Halt> {
    let seeded = run.seeded_at.as_ref().or(file.seeded_at.as_ref());
    let given = run.start.as_ref().or(file.start.as_ref());
    match (given, seeded) {
        (Some(_), Some(_)) => Err(invalid("seeded-at", "and --start exclude each other")),
        (None, Some(set)) => Ok(Some(Start::At(gtid_set("seeded-at", set)?))),
        (Some(text), None) => Ok(Some(start(text)?)),
        (None, None) => Ok(None),
    }
}

fn first(line: &[String], file: &[String]) -> Vec<String> {
    if line.is_empty() { file.to_vec() } else { line.to_vec() }
}

/// The captured set alone.
pub fn captured(args: &CaptureArgs) -> Result<CapturedSet, Halt> {
    fn refs(list: &[String]) -> Vec<&str> {
        list.iter().map(String::as_str).collect()
    }
    CapturedSet::parse(&refs(&args.tables), &refs(&args.exclude), &refs(&args.exclude_columns)).map_err(
        |error| {
            let setting = format!("--{} {}", error.option.name(), error.pattern);
            Halt::new(Code::ConfigInvalid).with(Detail::Setting(setting, "is no pattern"))
        },
    )
}
