//! A trace, `Vec<(Now, Input)>`, given to the core by a driver that keeps its part of the contract.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use capstan_core::{
    binlog::rows::RowWalk,
    capture::CapturedSet,
    config::{Config, Limits, Start},
    deliver::{Event, FailureClass, Holds, Position, Seq, SinkFailure},
    gtid::{GtidSet, Uuid},
    halt::Code,
    link::{Login, Secret, TlsMode},
    replica::{ApiMisuse, DialEpoch, Input, Link, Loaded, LostReason, Output, Read, Replica},
    text::{TextOptions, write_change},
    time::Now,
};
use sim::oracle::{grammar::Grammar, seam};

/// How far time goes on in front of an input, µs: half a byte of it.
pub const STEPS: [u64; 16] = [
    0,
    0,
    1,
    1_000,
    10_000,
    99_000,
    100_000,
    900_000,
    1_000_000,
    3_000_000,
    9_999_999,
    10_000_000,
    31_000_000,
    61_000_000,
    601_000_000,
    3_600_000_000,
];

/// The kinds of inputs: the other half.
pub mod kind {
    /// Bytes: two bytes of their length, and they.
    pub const BYTES: u8 = 0;
    /// A tick.
    pub const TICK: u8 = 1;
    /// The position is answered: one byte of what.
    pub const LOADED: u8 = 2;
    /// Connected; one byte: which dial, counted back from the last one.
    pub const CONNECTED: u8 = 3;
    /// Secured; the same.
    pub const SECURED: u8 = 4;
    /// Lost: low half of the byte the reason, high half the dial.
    pub const LOST: u8 = 5;
    /// Durable: one byte, how many units behind the last complete one.
    pub const DURABLE: u8 = 6;
    /// Released: two bytes.
    pub const RELEASED: u8 = 7;
    /// The sink failed: one byte of class.
    pub const FAILED: u8 = 8;
    /// Pause.
    pub const PAUSE: u8 = 9;
    /// Resume.
    pub const RESUME: u8 = 10;
    /// Drain.
    pub const DRAIN: u8 = 11;
}

/// The outputs of one drain: each has a weight, and all of them are below the budget.
const OUTPUTS_MAX: u64 = (64 << 20) / 256 + 10_000;

/// The core keeps the contract of the seam, and any reads of the same bytes give the same outputs.
///
/// The first byte is options, the second the sizes of the second run's reads.
pub fn check(data: &[u8]) {
    let [options, step, ops @ ..] = data else { return };
    let whole = Run::of(*options, usize::MAX, ops);
    if options & 1 == 1 {
        // Where the budget is small, what is emitted before a pause depends on the reads.
        return;
    }
    let torn = Run::of(*options, usize::from(*step).max(1), ops);
    if whole.full || torn.full {
        return;
    }
    // A large transaction that is given up was handed over in part, or not begun, as the reads were.
    let same = whole.aborted_at.into_iter().chain(torn.aborted_at).min();
    for (at, (whole, torn)) in whole.said.iter().zip(&torn.said).take(same.unwrap_or(usize::MAX)).enumerate()
    {
        assert_eq!(whole, torn, "output {at}, in reads of {step} bytes");
    }
    if same.is_some() {
        return;
    }
    assert_eq!(whole.said.len(), torn.said.len(), "in reads of {step} bytes");
}

/// A driver and the core in it. What it tells is everything but the idles between the reads of one input.
pub struct Run {
    core: Replica,
    now: u64,
    /// What was sent on the link, for those who answer.
    pub sent: Vec<Bytes>,
    read_max: usize,
    said: Vec<String>,
    /// Where the transaction begins that is told of last.
    begun_at: usize,
    /// Where the first begins that is aborted.
    aborted_at: Option<usize>,
    /// The budget was used up at some moment.
    full: bool,
    /// It has halted or stopped.
    pub ended: bool,
    idle: Option<(Option<(Now, capstan_core::replica::WakeReason)>, Read)>,
    pipe: BytesMut,
    epoch: u32,
    /// The position is asked for.
    pub asked: bool,
    open: bool,
    /// A dial is asked for.
    pub dialling: bool,
    securing: bool,
    grammar: Grammar,
    claim: Option<Position>,
    /// The last unit that is complete.
    pub complete: Seq,
    walk: RowWalk,
}

impl Run {
    fn of(options: u8, read_max: usize, ops: &[u8]) -> Self {
        let mut run = Self::new(options, read_max);
        run.feed(ops);
        run
    }

    /// A replica that has not begun, and reads of at most so much.
    #[must_use]
    pub fn new(options: u8, read_max: usize) -> Self {
        let mut run = Self {
            core: Replica::new(config(options), [options; 32], Now(0)),
            now: 0,
            sent: Vec::new(),
            read_max,
            said: Vec::new(),
            begun_at: 0,
            aborted_at: None,
            full: false,
            ended: false,
            idle: None,
            pipe: BytesMut::new(),
            epoch: 0,
            asked: false,
            open: false,
            dialling: false,
            securing: false,
            grammar: Grammar::default(),
            claim: None,
            complete: Seq(0),
            walk: RowWalk::default(),
        };
        run.drain(true);
        run
    }

    /// Gives the inputs that are written down there.
    pub fn feed(&mut self, mut ops: &[u8]) {
        while !self.ended && ops.has_remaining() {
            let op = ops.get_u8();
            self.now = self.now.saturating_add(STEPS[usize::from(op >> 4)]);
            self.op(op & 15, &mut ops);
        }
    }

    /// Whether bytes would be read.
    #[must_use]
    pub const fn reads_more(&self) -> bool {
        self.open && matches!(self.idle, Some((_, Read::UpTo(_))))
    }

    fn op(&mut self, op: u8, ops: &mut &[u8]) {
        let mut byte = || if ops.has_remaining() { ops.get_u8() } else { 0 };
        let input = match op {
            kind::BYTES => {
                let length = usize::from(u16::from_le_bytes([byte(), byte()])).min(ops.len());
                self.pipe.extend_from_slice(&ops[..length]);
                ops.advance(length);
                return self.reads();
            }
            kind::LOADED => Input::CheckpointLoaded(self.loaded(byte())),
            kind::CONNECTED => Input::Connected(Link::Stream, self.dial(byte())),
            kind::SECURED => Input::Secured(Link::Stream, self.dial(byte())),
            kind::LOST => {
                let byte = byte();
                Input::Lost(Link::Stream, self.dial(byte >> 4), reason(byte))
            }
            kind::DURABLE => Input::Durable { upto: Seq(self.complete.0.saturating_sub(byte().into())) },
            kind::RELEASED => Input::Released { bytes: u16::from_le_bytes([byte(), byte()]).into() },
            kind::FAILED => Input::SinkFailed(failure(byte())),
            kind::PAUSE => Input::Pause,
            kind::RESUME => Input::Resume,
            kind::DRAIN => Input::Drain,
            _ => Input::Tick,
        };
        self.give(input);
        self.reads();
        self.tick_again();
    }

    /// Gives an input that is or is not one that the core waits for.
    fn give(&mut self, input: Input) {
        if self.ended {
            return;
        }
        let current = |epoch: &DialEpoch| epoch.0 == self.epoch;
        let unasked = match &input {
            Input::CheckpointLoaded(_) => !self.asked,
            Input::Connected(_, epoch) if current(epoch) && self.open => !self.dialling,
            Input::Secured(_, epoch) if current(epoch) && self.open => !self.securing,
            Input::Connected(..)
            | Input::Secured(..)
            | Input::Tick
            | Input::Bytes(..)
            | Input::Lost(..)
            | Input::Durable { .. }
            | Input::Released { .. }
            | Input::SinkFailed(_)
            | Input::Pause
            | Input::Resume
            | Input::PauseCopy
            | Input::ResumeCopy
            | Input::Drain => false,
        };
        self.asked &= !matches!(&input, Input::CheckpointLoaded(_));
        self.dialling &= !matches!(&input, Input::Connected(_, epoch) if current(epoch));
        self.securing &= !matches!(&input, Input::Secured(_, epoch) if current(epoch));
        let is_bytes = matches!(input, Input::Bytes(..));
        let taken = self.core.handle_input(Now(self.now), input);
        assert_eq!(taken, if unasked { Err(ApiMisuse::UnaskedAnswer) } else { Ok(()) });
        self.drain(!is_bytes);
        if let (false, false, Some((wake, _))) = (unasked, self.ended, self.idle) {
            keeps(seam::no_deadline_left_behind(wake, self.now));
        }
    }

    /// Reads what has arrived, as far as the core lets us.
    fn reads(&mut self) {
        while let (false, false, Some((_, Read::UpTo(max)))) = (self.ended, self.pipe.is_empty(), self.idle) {
            assert!(max > 0, "a read of nothing");
            let bytes = self.pipe.split_to(max.min(self.read_max).min(self.pipe.len())).freeze();
            self.give(Input::Bytes(Link::Stream, DialEpoch(self.epoch), bytes));
        }
        if !self.ended {
            self.said.push(format!("{:?}", self.idle));
        }
    }

    /// Two ticks at one instant: the second changes nothing.
    fn tick_again(&mut self) {
        self.give(Input::Tick);
        let before = (self.idle, self.said.len());
        self.give(Input::Tick);
        if let (false, Some(first), Some(second)) = (self.ended, before.0, self.idle) {
            keeps(seam::same_idle(first, second));
            // A drain adds its idle and no more.
            assert_eq!(self.said.len(), before.1 + 1, "a second tick at one instant has effects");
        }
    }

    /// Pulls outputs to their end.
    fn drain(&mut self, tell_idle: bool) {
        for outputs in 0.. {
            assert!(outputs < OUTPUTS_MAX, "the drain does not end");
            let output = self.core.poll_output();
            let said = format!("{output:?}");
            match output {
                Output::LoadCheckpoint(_) => self.asked = true,
                Output::Reapply { .. } => {}
                Output::Connect(_, epoch) => {
                    assert_eq!(epoch.0, self.epoch + 1, "dials are numbered");
                    (self.epoch, self.open, self.dialling, self.securing) = (epoch.0, true, true, false);
                    self.pipe.clear();
                }
                Output::Secure(_, epoch) => {
                    assert_eq!(epoch.0, self.epoch);
                    self.securing = true;
                }
                Output::Transmit(_, epoch, bytes) => {
                    assert_eq!(epoch.0, self.epoch);
                    self.said.push(format!("{bytes:?}"));
                    self.sent.push(bytes);
                }
                Output::Close(_, epoch) => {
                    assert_eq!(epoch.0, self.epoch);
                    self.open = false;
                    self.pipe.clear();
                }
                Output::Event(event) => {
                    self.event(event);
                    continue;
                }
                Output::Halt(halt) => {
                    keeps(seam::halt_is_sticky(&mut self.core, &halt));
                    self.end();
                }
                Output::Stopped => self.end(),
                Output::Idle { wake, read, copy: _ } => {
                    self.idle = Some((wake, read));
                    self.full |= self.core.retained() >= 64 << 20;
                    if tell_idle {
                        self.said.push(said);
                    }
                    return;
                }
            }
            self.said.push(said);
            if self.ended {
                return;
            }
        }
    }

    /// Behind the end there is only the end.
    fn end(&mut self) {
        self.ended = true;
        let misuse = self.core.handle_input(Now(self.now), Input::Tick);
        assert_eq!(misuse, Err(ApiMisuse::AfterTerminal));
        let last = self.core.poll_output();
        assert!(matches!(last, Output::Halt(_) | Output::Stopped), "{last:?} behind the end");
    }

    fn event(&mut self, event: Event) {
        keeps(self.grammar.check(&event));
        let mut said = format!("{event:?}");
        match &event {
            Event::Claim { seq, position } => {
                said = position.encode();
                self.complete = *seq;
                self.claim = Some((**position).clone());
            }
            Event::Progress { seq, .. } => self.complete = *seq,
            Event::TxAbort { seq, .. } => {
                self.complete = *seq;
                self.aborted_at.get_or_insert(self.begun_at);
            }
            Event::SnapshotRows(chunk) => self.complete = chunk.seq,
            Event::TxCommit(commit) => self.complete = commit.seq,
            Event::Rows(rows) => {
                assert!(rows.is_full(), "a column is left out");
                self.walk.start(rows);
                let mut changes = 0;
                while let Some(row) = self.walk.next(rows).expect("it was walked once before it was emitted")
                {
                    // A value no server can have stored is an error; what is checked is that it is one.
                    let _ = write_change(&mut said, row.before(), row.after(), TextOptions::default());
                    changes += 1;
                }
                assert_eq!(changes, rows.changes());
            }
            Event::TxBegin(_) => self.begun_at = self.said.len(),
            Event::Table(_) | Event::SchemaChange(_) => {}
        }
        self.said.push(said);
    }

    const fn dial(&self, back: u8) -> DialEpoch {
        DialEpoch(self.epoch.saturating_sub(back as u32))
    }

    fn loaded(&self, byte: u8) -> Loaded {
        let position = |set: &str| set.parse().map(|set: GtidSet| Position::new(set, captured().canonical()));
        let stored = match byte & 3 {
            0 => None,
            1 => self.claim.clone(),
            2 => self.claim.clone().map(|claim| {
                let mut more = claim;
                more.add(
                    &format!("{SOURCE}:{}", (byte >> 2).max(1)).parse().expect("a GTID"),
                    capstan_core::time::SourceTime(1),
                );
                more
            }),
            _ => position(&format!("{SOURCE}:1-3")).ok(),
        };
        let holds = match byte >> 2 & 7 {
            0..=2 => Holds::Expected,
            3 => Holds::Committed { upto: self.complete },
            4 => Holds::Moved,
            5 => Holds::Foreign(Code::Fenced),
            6 => return Loaded::Failed(failure(1)),
            _ => return Loaded::Failed(failure(byte >> 5)),
        };
        Loaded::Position { stored: stored.map(Box::new), holds }
    }
}

/// The source of the seeds.
pub const SOURCE: &str = "01010101-0101-0101-0101-010101010101";

fn captured() -> CapturedSet {
    CapturedSet::parse(&["shop.*"], &[], &[]).expect("a pattern")
}

/// What the options ask for.
#[must_use]
pub fn config(options: u8) -> Config {
    let tls = if options & 2 == 2 { TlsMode::Required } else { TlsMode::Disabled };
    let login = Login::new("repl", Secret::new("secret")).expect("no NUL in it").tls(tls);
    Config {
        login,
        captured: captured(),
        start: match options >> 2 & 3 {
            0 => Start::Earliest,
            1 => Start::Current,
            2 => Start::Stored,
            _ => Start::At(format!("{SOURCE}:1-2").parse().expect("a set")),
        },
        override_stored: options & 16 == 16,
        until: (options & 32 == 32).then_some(capstan_core::config::Until::Now),
        server_id: 77,
        replica_uuid: Uuid([9; 16]),
        report_host: "fuzz".into(),
        strict: options & 64 == 64,
        allow_unlogged_cascades: options & 128 == 128,
        whole_history: false,
        snapshot: None,
        copy_again: None,
        copy: capstan_core::snapshot::CopyLimits::default(),
        limits: Limits {
            stream_above: 8 << 10,
            retained_max: if options & 1 == 1 { 128 << 10 } else { 64 << 20 },
            row_event_max: 1 << 20,
            progress_every: Duration::from_secs(1),
            ..Limits::default()
        },
    }
}

const fn reason(byte: u8) -> LostReason {
    match byte & 7 {
        0 => LostReason::Eof,
        1 => LostReason::Reset,
        2 => LostReason::Unresolved,
        3 => LostReason::Refused,
        4 => LostReason::DialTimeout,
        5 => LostReason::CertificateUntrusted,
        6 => LostReason::CertificateNameMismatch,
        _ => LostReason::TlsFailed,
    }
}

const fn failure(byte: u8) -> SinkFailure {
    let class = match byte & 7 {
        0 => FailureClass::Unknown,
        1 | 2 => FailureClass::Transient,
        3 => FailureClass::Permanent,
        4 => FailureClass::Fenced,
        5 => FailureClass::Stale,
        _ => FailureClass::Aborted,
    };
    SinkFailure { class, code: Code::SinkFailed, place: None }
}

fn keeps(promise: Result<(), sim::oracle::Failure>) {
    if let Err(broken) = promise {
        panic!("{broken}");
    }
}
