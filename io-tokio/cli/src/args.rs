//! The command line.

use std::path::PathBuf;

use capstan::{
    GtidSet, Start, Until,
    core::{
        halt::{Code, Detail, Halt},
        text::{Bigint, TextOptions},
    },
};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Exactly-once MySQL change streams.
///
/// Reads the row-based binlog of a MySQL server as a replica does, puts committed transactions together, and
/// keeps a target equal to it. Whatever could lose or bend data in silence stops it by name.
///
/// Exit status: 0 done · 2 usage · 3 refused (settings, server, account) · 4 halted (data, sink, store) ·
/// 5 source unreachable · 130/143 after SIGINT/SIGTERM.
#[derive(Debug, Parser)]
#[command(name = "capstan", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows on this machine, in about a minute, that nothing is lost or doubled.
    ///
    /// Starts a private MySQL, writes a workload, syncs it to a SQLite ledger in a child process that is
    /// killed with SIGKILL midway, resumes it, and compares both sides: counts and an order-keeping hash
    /// over all changes.
    Demo(Demo),
    /// Connects and says what a pipeline would find: ok, warn, refuse or unknown.
    ///
    /// Each gate, privilege, table and setting with what to do about it, as a statement to run where there is one.
    /// What cannot be seen for want of a privilege is unknown, never ok. Exit status 0, or 3 if a pipeline would be refused.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
    /// Prints changes as they are committed.
    #[command(after_help = TAIL_EXAMPLES)]
    Tail(Tail),
    /// Keeps a target up to date, each transaction once.
    #[command(after_help = SYNC_EXAMPLES)]
    Sync(Sync),
    /// Decodes binlog files offline.
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(Inspect),
    /// Shows or moves the stored position of a target.
    Position(Position),
    /// Says what the process that keeps a target said last.
    Status(Status),
    /// Checks the sinks that come with this command against every rule of the contract.
    ///
    /// Each rule is run against a fresh target in a temporary folder, fed by a simulated MySQL source; where a
    /// process has to die, a child of this command is killed. Exit status 4 if a rule does not hold.
    Conformance(Conformance),
}

const CHECK_EXAMPLES: &str = "\
Examples:
  capstan check mysql://repl@db/ --tables 'shop.*'
  capstan check mysql://repl@db/ sqlite:shop.db            # could it resume?
  capstan check mysql://repl@db/ -o json";

const TAIL_EXAMPLES: &str = "\
Examples:
  capstan tail 'mysql://repl@db.example.org/?ssl-ca=ca.pem' --tables 'shop.*'
  capstan tail mysql://repl@db/ --start earliest --until now -o json > changes.jsonl
  capstan tail mysql://repl@db/ --checkpoint shop.position   # at least once over restarts";

const SYNC_EXAMPLES: &str = "\
Targets:
  sqlite:PATH               a mirror: each table, kept equal, position in the same transaction
  sqlite:PATH?mode=ledger   one row per change, in order, position in the same transaction
  jsonl:PATH                JSON lines, exactly once up to the length its record names

Examples:
  capstan sync mysql://repl@db/ sqlite:shop.db --start earliest
  capstan sync mysql://repl@db/ 'sqlite:shop.db?mode=ledger' --start earliest
  capstan sync mysql://repl@db/ 'sqlite:shop.db?mode=ledger'            # resumes
  capstan sync mysql://repl@db/ jsonl:changes.jsonl --start current --until now";

const INSPECT_EXAMPLES: &str = "\
Examples:
  capstan inspect binlog.000042 | less
  capstan inspect --summary binlog.0000*
  capstan inspect --table shop.orders --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 binlog.000042";

/// How a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs: JSON, one object a line.
    Json,
}

/// How 64-bit integers are written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BigintText {
    /// As numbers.
    Number,
    /// As strings, for readers that cannot hold 64 bits.
    String,
}

impl BigintText {
    pub fn options(this: Option<Self>) -> TextOptions {
        TextOptions {
            bigint: match this {
                Some(Self::String) => Bigint::String,
                Some(Self::Number) | None => Bigint::Number,
            },
        }
    }
}

/// Where the source is and who we are to it.
#[derive(Args, Clone, Debug)]
pub struct SourceArgs {
    /// mysql://user@host:3306/?ssl-mode=disabled|required|verify-ca|verify-identity&ssl-ca=FILE
    ///
    /// Further keys: ssl-cert, ssl-key, server-public-key, allow-public-key-retrieval. Odd characters are
    /// percent-encoded. The password comes from the URL, --password-file or CAPSTAN_PASSWORD; on a terminal
    /// a missing one is asked for.
    #[arg(value_name = "SOURCE")]
    pub source: String,

    /// Read the password from this file (its first line).
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// Our server id, unique among the replicas of the source [default: a random one from 0x70000000 on].
    #[arg(long, value_name = "N")]
    pub server_id: Option<u32>,
}

/// What is captured.
#[derive(Args, Clone, Debug, Default)]
pub struct CaptureArgs {
    /// Tables to capture: patterns like `shop.orders` or `shop.*`, separated by commas or given again
    /// [default: all but the server's own schemas].
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub tables: Vec<String>,

    /// Tables to leave out.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub exclude: Vec<String>,

    /// Columns to leave out, like `shop.orders.card`.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub exclude_columns: Vec<String>,
}

/// Where to begin and end, and what is accepted on the way.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// Where to begin: stored, earliest, current, or a GTID set that is here already.
    #[arg(long, value_name = "WHERE")]
    pub start: Option<String>,

    /// Where to stop: now (what is executed at the start), or a GTID set.
    #[arg(long, value_name = "WHERE")]
    pub until: Option<String>,

    /// Let --start abandon a stored position.
    #[arg(long = "override")]
    pub override_stored: bool,

    /// The target was loaded from a dump made at this GTID set: begin after it.
    #[arg(long, value_name = "GTIDSET")]
    pub seeded_at: Option<String>,

    /// Accept that a mirror does not hold what was before its start.
    #[arg(long)]
    pub partial: bool,

    /// Halt, instead of warning, where the source's history cannot be verified.
    #[arg(long)]
    pub strict: bool,

    /// Accept foreign keys whose cascades the server does not log.
    #[arg(long)]
    pub allow_unlogged_cascades: bool,

    /// Read settings from this TOML file (the same names; [limits] for numbers). The command line wins.
    ///
    /// [limits] knows, with these defaults: stream-above-bytes = 8388608, retained-max-bytes = 67108864,
    /// row-event-max-bytes = 67108864, heartbeat-ms = 10000, silence-ms = 30000, acknowledgement-ms = 60000,
    /// dial-ms = 10000, backoff-first-ms = 100, backoff-max-ms = 30000, trouble-max-ms = 600000,
    /// progress-every-ms = 1000, progress-gtids = 1000, batch-max-transactions = 1, batch-max-bytes = 4194304,
    /// copy-chunk-rows = 10000, copy-chunk-bytes = 1048576.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How 64-bit integers are written.
    #[arg(long, value_enum, value_name = "FORM")]
    pub bigint: Option<BigintText>,
}

#[derive(Args, Debug)]
pub struct Tail {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
    #[command(flatten)]
    pub run: RunArgs,

    /// Keep the position in this file (at least once); without it the tail starts at current.
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,

    /// How it prints [default: text on a terminal, else json].
    #[arg(short, long, value_enum)]
    pub output: Option<Output>,
}

#[derive(Args, Debug)]
pub struct Sync {
    #[command(flatten)]
    pub source: SourceArgs,

    /// sqlite:PATH, sqlite:PATH?mode=ledger or jsonl:PATH
    #[arg(value_name = "TARGET")]
    pub target: String,

    #[command(flatten)]
    pub capture: CaptureArgs,
    #[command(flatten)]
    pub run: RunArgs,

    /// Copy what is there first, of all captured tables or of some (--snapshot=shop.orders,shop.item*), while the
    /// changes go on. An interrupted copy goes on where it was, said again or not.
    #[arg(long, value_name = "all|TABLES", num_args = 0..=1, require_equals = true, default_missing_value = "all", value_delimiter = ',')]
    pub snapshot: Option<Vec<String>>,

    /// How many bytes a second the copy may read from the source.
    #[arg(long, value_name = "BYTES_PER_SECOND")]
    pub snapshot_rate: Option<u64>,

    /// How many connections read a table at the same time, from one cut; 1 to 16. More than one is faster where the
    /// source has cores to spare [default: 2 where the key is one whole number, else 1].
    #[arg(long, value_name = "N")]
    pub snapshot_connections: Option<u8>,

    /// The copy waits while the source runs more threads than this; 0: never [default: 100].
    #[arg(long, value_name = "N")]
    pub snapshot_max_running: Option<u32>,

    /// The copy waits while the source, where it is a replica, is later than this; 0: never [default: 30].
    #[arg(long, value_name = "SECONDS")]
    pub snapshot_max_lag: Option<u64>,

    /// Copy these tables again while the rest goes on, as after `schema_change_needs_copy`, `table_entered_capture` or
    /// `mirror_diverged`; decided with the first write and kept in the target.
    ///
    /// A copy that is under way goes on, whether this is said again or not. To begin one anew while it is under way:
    /// `capstan position copy-again`. What the target has of the table stays until the first rows of the copy come,
    /// indexes of your own on it go with it.
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    pub copy_again: Vec<String>,

    /// How messages are printed.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct Check {
    #[command(flatten)]
    pub source: SourceArgs,

    /// A target, as given to sync: its stored position is tested, too, without taking it over.
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,

    #[command(flatten)]
    pub capture: CaptureArgs,

    /// The file that tail keeps its position in, likewise.
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,

    /// Read settings from this TOML file, as tail and sync do. The command line wins.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How it prints.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct Inspect {
    /// Binlog files, plain or compressed with gzip or zstd; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Counts instead of changes: events, transactions, rows and bytes of each table, the largest
    /// transactions, the time they span.
    #[arg(long)]
    pub summary: bool,

    /// Only transactions of this GTID set.
    #[arg(long, value_name = "GTIDSET")]
    pub gtid: Option<String>,

    /// Only these tables.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub table: Vec<String>,

    /// Begin at this offset of the (one) file.
    #[arg(long, value_name = "BYTES")]
    pub start_offset: Option<u64>,

    /// How 64-bit integers are written.
    #[arg(long, value_enum, value_name = "FORM")]
    pub bigint: Option<BigintText>,

    /// How it prints. Without it changes are for people on a terminal, else JSON lines; a summary is for people.
    #[arg(short, long, value_enum)]
    pub output: Option<Output>,
}

#[derive(Args, Debug)]
pub struct Position {
    #[command(subcommand)]
    pub command: PositionCommand,
}

#[derive(Debug, Subcommand)]
pub enum PositionCommand {
    /// Shows the stored position.
    Show(PositionOf),
    /// Prints the stored GTID set, and nothing else.
    Export(PositionOf),
    /// Steps over one transaction. What it held is not delivered.
    Skip {
        /// The transaction.
        #[arg(long, value_name = "GTID")]
        gtid: String,
        /// It is not the next one of its source: numbers before it are still to come, or were never used.
        #[arg(long)]
        ahead: bool,
        /// Why; recorded in the target.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        of: PositionOf,
    },
    /// Accepts another captured set from here on.
    AcceptTables {
        #[command(flatten)]
        capture: CaptureArgs,
        /// Why; recorded in the target.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        of: PositionOf,
    },
    /// Has a table copied from its beginning by the next run, also where a copy of it is under way.
    CopyAgain {
        /// The table, as `schema.table`.
        #[arg(value_name = "TABLE")]
        table: String,
        /// Why; recorded in the target.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        of: PositionOf,
    },
    /// Captures a table no longer.
    ForgetTable {
        /// The table, as `schema.table`.
        #[arg(value_name = "TABLE")]
        table: String,
        /// Why; recorded in the target.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        of: PositionOf,
    },
}

#[derive(Args, Debug)]
pub struct PositionOf {
    /// sqlite:PATH, sqlite:PATH?mode=ledger, jsonl:PATH, or checkpoint:PATH
    #[arg(value_name = "TARGET")]
    pub target: String,

    /// How it prints.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct Status {
    /// The target, as given to sync.
    #[arg(value_name = "TARGET")]
    pub target: String,

    /// How it prints.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct Demo {
    /// Seconds of writing.
    #[arg(long, default_value_t = 20)]
    pub seconds: u64,

    /// How often the syncing process is killed.
    #[arg(long, default_value_t = 3)]
    pub kills: u32,

    /// Change one row of the ledger before comparing, to see that the comparison notices.
    #[arg(long)]
    pub break_it: bool,

    /// Leave server and ledger behind, and say where.
    #[arg(long)]
    pub keep: bool,
}

/// A setting that cannot be.
pub fn invalid(setting: &str, why: &'static str) -> Halt {
    Halt::new(Code::ConfigInvalid).with(Detail::Setting(setting.to_owned(), why))
}

/// `--start`.
pub fn start(text: &str) -> Result<Start, Halt> {
    Ok(match text {
        "stored" => Start::Stored,
        "earliest" => Start::Earliest,
        "current" => Start::Current,
        set => Start::At(gtid_set("start", set)?),
    })
}

/// `--until`.
pub fn until(text: &str) -> Result<Until, Halt> {
    Ok(match text {
        "now" => Until::Now,
        set => Until::Set(gtid_set("until", set)?),
    })
}

/// A GTID set given to `setting`.
pub fn gtid_set(setting: &str, text: &str) -> Result<GtidSet, Halt> {
    // More often a variable of a shell that is not set than a wish.
    if text.trim().is_empty() {
        return Err(invalid(setting, "is empty; the beginning of the log is `--start earliest`"));
    }
    text.parse().map_err(|_| invalid(setting, "is neither a known word nor a GTID set"))
}

/// A sink that comes with this command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShippedSink {
    /// `sqlite:PATH?mode=ledger`.
    #[value(name = "ledger")]
    Ledger,
    /// `sqlite:PATH` with `--partial`.
    #[value(name = "mirror")]
    Mirror,
    /// `sqlite:PATH`.
    #[value(name = "strict_mirror")]
    StrictMirror,
    /// `jsonl:PATH`.
    #[value(name = "json_file")]
    JsonFile,
    /// JSON lines on standard output: at least once.
    #[value(name = "json_lines")]
    JsonLines,
    /// JSON lines to a writer that is awaited, of the library: at least once.
    #[value(name = "async_json_lines")]
    AsyncJsonLines,
}

impl ShippedSink {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Mirror => "mirror",
            Self::StrictMirror => "strict_mirror",
            Self::JsonFile => "json_file",
            Self::JsonLines => "json_lines",
            Self::AsyncJsonLines => "async_json_lines",
        }
    }
}

#[derive(Args, Debug)]
pub struct Conformance {
    /// Which sinks [default: all].
    #[arg(value_enum, value_name = "SINK")]
    pub sinks: Vec<ShippedSink>,

    /// List the rules and run none.
    #[arg(long)]
    pub list: bool,

    /// Write each report to this folder too, as SINK.json and SINK.md.
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,

    /// What is drawn at random is drawn from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// How it prints.
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Output,
}
