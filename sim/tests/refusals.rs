//! A core and a server, packet by packet: what a refusal means, what is forgotten with a dial, what a sleep is.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::VecDeque;

use bytes::Bytes;
use capstan_core::{
    capture::CapturedSet,
    config::{Config, Limits, Start, Until},
    deliver::{Event, Holds, Position, Seq},
    gtid::{Gtid, Tag, Uuid},
    halt::Code,
    link::{Login, Secret, TlsMode},
    probe::Mutant,
    replica::{
        ApiMisuse, DialEpoch, Input, Link, LoadReason, Loaded, LostReason, Output, Replica, WakeReason,
    },
    snapshot::CopyLimits,
    time::Now,
};
use capstan_fake_source::{Server, server::SessionId};
use sim::{
    marks::{Mistake, Watched, making},
    workload::{Shape, Workload},
};

const SECOND: u64 = 1_000_000;
const SOURCE: Uuid = Uuid([1; 16]);

fn config(start: Start) -> Config {
    Config {
        login: Login::new("repl", Secret::new("secret")).unwrap().tls(TlsMode::Disabled),
        captured: CapturedSet::parse(&["shop.*"], &[], &[]).unwrap(),
        start,
        override_stored: false,
        until: None,
        server_id: 77,
        replica_uuid: Uuid([9; 16]),
        report_host: String::new(),
        strict: false,
        allow_unlogged_cascades: false,
        whole_history: false,
        snapshot: None,
        copy_again: None,
        copy: CopyLimits::default(),
        limits: Limits::default(),
    }
}

/// Where a core has come to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Halted(Code),
    Stopped,
    Waits(Option<(Now, WakeReason)>),
}

/// A core, the server it speaks to, and a sink that takes everything at once.
struct Pair {
    core: Replica<Watched>,
    server: Server,
    session: Option<SessionId>,
    epoch: DialEpoch,
    now: u64,
    stored: Option<Position>,
    loads: Vec<LoadReason>,
    closed: u64,
    pending: VecDeque<Input>,
}

impl Pair {
    fn new(config: Config, stored: Option<Position>) -> Self {
        let mut server = Server::new(SOURCE, 1, "9.7.4");
        let mut workload = Workload::default();
        for gno in 1..=3 {
            let gtid = Gtid::new(SOURCE, Tag::NONE, gno).unwrap();
            server.append(&workload.make(Shape::Small, gtid, 1_795_000_000 * SECOND + gno).0);
        }
        let core = Replica::probed(config, [7; 32], Now(0));
        Self {
            core,
            server,
            session: None,
            epoch: DialEpoch(0),
            now: 0,
            stored,
            loads: Vec::new(),
            closed: 0,
            pending: VecDeque::new(),
        }
    }

    fn streaming() -> Self {
        let mut pair = Self::new(config(Start::Earliest), None);
        assert_eq!(pair.runs(), Rest::Waits(Some((Now(30 * SECOND), WakeReason::Silence))));
        assert_eq!((pair.core.state(), pair.core.units_out()), ("streaming", 0));
        pair
    }

    fn give(&mut self, input: Input) {
        self.core.handle_input(Now(self.now), input).unwrap();
    }

    /// Lets both speak until neither has anything to say.
    fn runs(&mut self) -> Rest {
        loop {
            let wake = match self.core.poll_output() {
                Output::Idle { wake, .. } => wake,
                Output::Halt(halt) => return Rest::Halted(halt.code),
                Output::Stopped => return Rest::Stopped,
                other @ Output::LoadCheckpoint(_)
                | other @ Output::Reapply { .. }
                | other @ Output::Connect(..)
                | other @ Output::Secure(..)
                | other @ Output::Transmit(..)
                | other @ Output::Close(..)
                | other @ Output::Event(_) => {
                    self.carry_out(other);
                    continue;
                }
            };
            let bytes = || {
                let bytes = self.server.pull(self.session?, 1 << 20, self.now);
                (!bytes.is_empty()).then_some(Input::Bytes(Link::Stream, self.epoch, bytes))
            };
            match self.pending.pop_front().or_else(bytes) {
                Some(input) => self.give(input),
                None => return Rest::Waits(wake),
            }
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::LoadCheckpoint(reason) => {
                self.loads.push(reason);
                let stored = self.stored.clone().map(Box::new);
                let loaded = Loaded::Position { stored, holds: Holds::Expected };
                self.pending.push_back(Input::CheckpointLoaded(loaded));
            }
            Output::Connect(link, epoch) => {
                (self.session, self.epoch) = (Some(self.server.connect()), epoch);
                self.pending.push_back(Input::Connected(link, epoch));
            }
            Output::Transmit(_, _, bytes) => self.server.receive(self.session.unwrap(), &bytes, self.now),
            Output::Close(..) => {
                self.closed += 1;
                self.session = None;
            }
            Output::Event(Event::Claim { seq, position }) => {
                self.stored = Some(*position);
                self.pending.push_back(Input::Durable { upto: seq });
            }
            Output::Event(event) => {
                self.pending.extend(ends(&event).map(|upto| Input::Durable { upto }));
            }
            other @ Output::Reapply { .. }
            | other @ Output::Secure(..)
            | other @ Output::Halt(_)
            | other @ Output::Stopped
            | other @ Output::Idle { .. } => panic!("{other:?}"),
        }
    }

    /// The server ends the stream with an error.
    fn refused(&mut self, number: u16, text: &str) -> Rest {
        self.server.kill(self.session.unwrap(), number, text);
        self.runs()
    }

    /// Sleeps until the core wants to be woken, and wakes it.
    fn wakes(&mut self, rest: Rest) -> Rest {
        let Rest::Waits(Some((at, _))) = rest else { panic!("{rest:?}") };
        self.now = at.0;
        self.give(Input::Tick);
        self.runs()
    }
}

/// Waits before the next dial.
fn backs_off(rest: Rest) -> bool {
    matches!(rest, Rest::Waits(Some((_, WakeReason::Backoff))))
}

/// The unit that an event ends.
fn ends(event: &Event) -> Option<Seq> {
    match event {
        Event::Progress { seq, .. } => Some(*seq),
        Event::TxCommit(commit) => Some(commit.seq),
        Event::Claim { .. }
        | Event::TxBegin(_)
        | Event::Table(_)
        | Event::Rows(_)
        | Event::SchemaChange(_)
        | Event::TxAbort { .. }
        | Event::SnapshotRows(_) => None,
    }
}

#[test]
fn what_a_server_says_instead_of_its_greeting() {
    for (number, want) in [
        (1045, Some(Code::AccessDenied)),
        (1130, Some(Code::AccessDenied)),
        (1227, Some(Code::MissingPrivilege)),
        (1040, None),
        (1129, None),
        // Unknown: the server's present state.
        (4999, None),
    ] {
        let mut pair = Pair::new(config(Start::Earliest), None);
        pair.server.refuses = Some((number, "no".into()));
        let rest = pair.runs();
        match want {
            Some(code) => assert_eq!(rest, Rest::Halted(code), "{number}"),
            None => {
                assert!(backs_off(rest), "{number}: {rest:?}");
                assert_eq!((pair.core.facts().trouble, pair.closed), (Some(Code::SourceUnreachable), 1));
                // It was only for now.
                pair.server.refuses = None;
                let again = pair.wakes(rest);
                assert!(matches!(again, Rest::Waits(_)) && pair.core.state() == "streaming", "{again:?}");
                assert_eq!(pair.core.facts().trouble, None);
            }
        }
    }
}

#[test]
fn a_wrong_password_is_no_passing_trouble() {
    let mut pair = Pair::new(config(Start::Earliest), None);
    pair.server.password = b"another".to_vec();
    assert_eq!(pair.runs(), Rest::Halted(Code::AccessDenied));
}

/// Whatever answers there first is no MySQL server; what stops speaking the protocol later may be one again.
#[test]
fn what_does_not_speak_the_protocol() {
    for (greeting, want) in [
        // A whole packet that is no greeting.
        (&[2, 0, 0, 0, 9, 9][..], Some(Code::UnsupportedServer)),
        // Not even a packet of the right number.
        (b"HTTP/1.1 400 Bad Request", None),
    ] {
        let mut pair = Pair::new(config(Start::Earliest), None);
        loop {
            match pair.core.poll_output() {
                Output::Idle { .. } if pair.pending.is_empty() => break,
                Output::Idle { .. } => {
                    let input = pair.pending.pop_front().unwrap();
                    pair.give(input);
                }
                output @ Output::LoadCheckpoint(_)
                | output @ Output::Reapply { .. }
                | output @ Output::Connect(..)
                | output @ Output::Secure(..)
                | output @ Output::Transmit(..)
                | output @ Output::Close(..)
                | output @ Output::Event(_)
                | output @ Output::Halt(_)
                | output @ Output::Stopped => pair.carry_out(output),
            }
        }
        pair.session = None;
        pair.give(Input::Bytes(Link::Stream, pair.epoch, Bytes::from_static(greeting)));
        let rest = pair.runs();
        match want {
            Some(code) => assert_eq!(rest, Rest::Halted(code)),
            None => assert!(backs_off(rest), "{rest:?}"),
        }
    }
    // Behind events that were understood a packet out of order is a broken link.
    let mut pair = Pair::streaming();
    pair.session = None;
    pair.give(Input::Bytes(Link::Stream, pair.epoch, Bytes::from_static(&[1, 0, 0, 200, 0])));
    assert!(backs_off(pair.runs()));
    assert_eq!((pair.closed, pair.core.facts().reconnects), (1, 1));
}

#[test]
fn a_packet_of_the_stream_over_the_limit_halts_by_its_name() {
    let limits = Limits { row_event_max: 1 << 16, ..Limits::default() };
    let mut pair = Pair::new(Config { limits, ..config(Start::Earliest) }, None);
    assert!(matches!(pair.runs(), Rest::Waits(_)));
    let gtid = Gtid::new(SOURCE, Tag::NONE, 4).unwrap();
    let poison = sim::truth::Poison::RowTooLarge;
    pair.server.append(&Workload::poison(poison, gtid, 1_795_000_001 * SECOND).0);
    assert_eq!(pair.runs(), Rest::Halted(Code::RowEventTooLarge));
}

#[test]
fn what_a_server_says_instead_of_the_stream() {
    const PURGED: &str = "Cannot replicate because the source purged required binary logs.";
    const MORE: &str = "Replica has more GTIDs than the source has, using the source's SERVER_UUID.";
    const SUMS: &str =
        "Replica can not handle replication events with the checksum that source is configured to log";
    const SAME: &str =
        "A replica with the same server_uuid/server_id as this replica has connected to the source";
    for (number, text, want) in [
        (1236, SUMS, Code::ChecksumNegotiationFailed),
        (1236, "could not find next log", Code::DumpRefused),
        (1227, "denied", Code::MissingPrivilege),
        (4999, "unknown", Code::DumpRefused),
        // The position was asked for, and nobody else has written.
        (1236, SAME, Code::ServerIdConflict),
    ] {
        let mut pair = Pair::streaming();
        let before = pair.loads.len();
        assert_eq!(pair.refused(number, text), Rest::Halted(want), "{number} {text}");
        assert_eq!(pair.loads.len() > before, want == Code::ServerIdConflict);
    }
    // A lack that the gates did not see may be another server's: once more, then it is believed.
    for (text, want) in [(PURGED, Code::DataGap), (MORE, Code::SourceIdentityMismatch)] {
        let mut pair = Pair::streaming();
        let rest = pair.refused(1236, text);
        assert!(backs_off(rest), "{text}: {rest:?}");
        assert_eq!(pair.core.facts().trouble, Some(want));
        // The next link comes to its dump and is refused before anything has come.
        pair.server.refuses = Some((1040, "Too many connections".into()));
        let rest = pair.wakes(rest);
        pair.server.refuses = None;
        assert!(backs_off(rest));
        let Rest::Waits(Some((at, _))) = rest else { panic!("{rest:?}") };
        pair.now = at.0;
        pair.give(Input::Tick);
        while pair.core.state() != "streaming" {
            match pair.core.poll_output() {
                Output::Idle { .. } => {
                    let id = pair.session;
                    let input = pair.pending.pop_front().unwrap_or_else(|| {
                        Input::Bytes(Link::Stream, pair.epoch, pair.server.pull(id.unwrap(), 1 << 20, 0))
                    });
                    pair.give(input);
                }
                output @ Output::LoadCheckpoint(_)
                | output @ Output::Reapply { .. }
                | output @ Output::Connect(..)
                | output @ Output::Secure(..)
                | output @ Output::Transmit(..)
                | output @ Output::Close(..)
                | output @ Output::Event(_)
                | output @ Output::Halt(_)
                | output @ Output::Stopped => pair.carry_out(output),
            }
        }
        let error = [&[0xff][..], &1236_u16.to_le_bytes(), b"#HY000", text.as_bytes()].concat();
        let packet = [&[error.len() as u8, 0, 0, 1][..], &error].concat();
        pair.session = None;
        while !matches!(pair.core.poll_output(), Output::Idle { .. }) {}
        pair.give(Input::Bytes(Link::Stream, pair.epoch, packet.into()));
        assert_eq!(pair.runs(), Rest::Halted(want), "{text}");
    }
}

#[test]
fn what_is_said_of_an_earlier_dial_is_ignored() {
    let mut pair = Pair::streaming();
    let old = pair.epoch;
    pair.give(Input::Lost(Link::Stream, old, LostReason::Eof));
    let rest = pair.runs();
    assert!(backs_off(rest));
    pair.wakes(rest);
    assert_eq!((pair.core.state(), pair.epoch), ("streaming", DialEpoch(old.0 + 1)));
    let closed = pair.closed;
    for input in [
        Input::Connected(Link::Stream, old),
        Input::Secured(Link::Stream, old),
        Input::Bytes(Link::Stream, old, Bytes::from_static(b"anything")),
        Input::Lost(Link::Stream, old, LostReason::CertificateUntrusted),
    ] {
        pair.give(input);
        assert!(matches!(pair.runs(), Rest::Waits(_)));
        assert_eq!((pair.core.state(), pair.closed), ("streaming", closed));
    }
    // Of the present one nobody asked for that.
    for input in [Input::Connected(Link::Stream, pair.epoch), Input::Secured(Link::Stream, pair.epoch)] {
        let answer = pair.core.handle_input(Now(pair.now), input);
        assert_eq!(answer, Err(ApiMisuse::UnaskedAnswer));
        pair.runs();
    }
}

#[test]
fn silence_ends_a_link_and_sleep_does_not() {
    let mut pair = Pair::streaming();
    pair.now = 30 * SECOND;
    pair.give(Input::Tick);
    assert!(backs_off(pair.runs()));
    assert_eq!(pair.closed, 1);

    let mut pair = Pair::streaming();
    // An hour later than asked for: the machine slept, and the peer was not listened to.
    pair.now = 3_630 * SECOND;
    pair.give(Input::Tick);
    let Rest::Waits(Some((at, WakeReason::Silence))) = pair.runs() else { panic!("{:?}", pair.core) };
    assert!(at.0 > pair.now && at.0 <= pair.now + 30 * SECOND);
    assert_eq!(pair.closed, 0);
    // Awake it is as patient as ever, and no more.
    pair.now = at.0;
    pair.give(Input::Tick);
    assert!(backs_off(pair.runs()));
}

/// A link that has lived is dialled again soon, however many were lost before it; one that has not, ever later.
#[test]
fn waits_between_dials_grow_until_a_link_lives() {
    let Limits { backoff_first, backoff_max, .. } = Limits::default();
    let us = |wait: std::time::Duration| u64::try_from(wait.as_micros()).unwrap();
    let waits = |pair: &Pair, rest: Rest| match rest {
        Rest::Waits(Some((at, WakeReason::Backoff))) => at.0 - pair.now,
        Rest::Halted(_) | Rest::Stopped | Rest::Waits(_) => panic!("{rest:?}"),
    };
    let mut pair = Pair::streaming();
    let mut workload = Workload::default();
    let mut longest = 0;
    for gno in 4..30 {
        let gtid = Gtid::new(SOURCE, Tag::NONE, gno).unwrap();
        pair.server.append(&workload.make(Shape::Small, gtid, 1_795_000_000 * SECOND + gno).0);
        pair.runs();
        pair.give(Input::Lost(Link::Stream, pair.epoch, LostReason::Eof));
        let rest = pair.runs();
        assert!(waits(&pair, rest) <= us(backoff_first), "{gno}: {rest:?}");
        pair.server.refuses = Some((1040, "Too many connections".into()));
        let again = pair.wakes(rest);
        longest = longest.max(waits(&pair, again));
        pair.server.refuses = None;
        pair.wakes(again);
        assert_eq!(pair.core.state(), "streaming");
    }
    assert!(longest > us(backoff_first) && longest <= 2 * us(backoff_first), "{longest}");
    pair.give(Input::Lost(Link::Stream, pair.epoch, LostReason::Eof));
    let mut rest = pair.runs();
    pair.server.refuses = Some((1040, "Too many connections".into()));
    let began = pair.now;
    while pair.now - began < 300 * SECOND {
        longest = longest.max(waits(&pair, rest));
        rest = pair.wakes(rest);
    }
    assert!(longest > us(backoff_max) / 4 && longest <= us(backoff_max), "{longest}");
}

#[test]
fn a_start_fits_what_is_stored_or_halts() {
    let captured = config(Start::Stored).captured.canonical();
    let set = || "01010101-0101-0101-0101-010101010101:1-2".parse().unwrap();
    let stored = || Some(Position::new(set(), captured.clone()).claimed(5));
    let other = || Some(Position::new(set(), "`other`.*").claimed(5));
    for (start, stored, over, want) in [
        (Start::Stored, stored(), false, None),
        (Start::Stored, None, false, Some(Code::StartPositionRequired)),
        (Start::Stored, other(), false, Some(Code::CaptureSetChanged)),
        (Start::Earliest, None, false, None),
        (Start::Current, None, false, None),
        (Start::At(set()), None, false, None),
        (Start::Earliest, stored(), false, Some(Code::StartPositionConflict)),
        (Start::Current, stored(), false, Some(Code::StartPositionConflict)),
        (Start::At(set()), stored(), false, Some(Code::StartPositionConflict)),
        (Start::Earliest, stored(), true, None),
    ] {
        let named = format!("{start:?} {stored:?}");
        let config = Config { override_stored: over, ..config(start) };
        let mut pair = Pair::new(config, stored);
        match (pair.runs(), want) {
            (Rest::Waits(_), None) => assert_eq!(pair.core.state(), "streaming", "{named}"),
            (rest, Some(code)) => assert_eq!(rest, Rest::Halted(code), "{named}"),
            (rest, None) => panic!("{named}: {rest:?}"),
        }
    }
}

#[test]
fn a_goal_that_is_reached_already_ends_before_the_stream() {
    let goal = || Some(Until::Set("01010101-0101-0101-0101-010101010101:1-2".parse().unwrap()));
    // From the beginning: exactly the two transactions of the goal.
    let mut pair = Pair::new(Config { until: goal(), ..config(Start::Earliest) }, None);
    assert_eq!(pair.runs(), Rest::Stopped);
    assert!(pair.core.facts().events > 0);
    // From the present: nothing is left to do.
    let mut pair = Pair::new(Config { until: goal(), ..config(Start::Current) }, None);
    assert_eq!(pair.runs(), Rest::Stopped);
    assert_eq!(pair.core.facts().events, 0);
    // The goal of "now" is what the first dial found.
    let mut pair = Pair::new(Config { until: Some(Until::Now), ..config(Start::Earliest) }, None);
    assert_eq!(pair.runs(), Rest::Stopped);
    assert!(pair.core.facts().executed.as_ref().is_some_and(|set| set.count() == 3));
}

/// The goal of `until` holds a transaction that the server counts as executed and whose log lacks it: the wait for
/// it ends by name. One that the server has not executed yet is waited for.
#[test]
fn a_goal_that_the_log_will_never_reach_ends_by_its_name() {
    let idles = |until: Until, counted: &str| {
        let mut pair = Pair::new(Config { until: Some(until), ..config(Start::Earliest) }, None);
        pair.server.counts(&format!("{SOURCE}:{counted}").parse().unwrap());
        let mut rest = pair.runs();
        let began = pair.now;
        while pair.now < began + 600 * SECOND && matches!(rest, Rest::Waits(_)) {
            let session = pair.session.unwrap();
            pair.now = pair.server.heartbeat_at(session).unwrap();
            pair.server.tick(session, pair.now);
            rest = pair.runs();
        }
        (rest, (pair.now - began) / SECOND)
    };
    let set = |text: &str| Until::Set(format!("{SOURCE}:{text}").parse().unwrap());
    let (rest, after) = idles(Until::Now, "1-5");
    assert_eq!(rest, Rest::Halted(Code::DataGap));
    assert!((30..=60).contains(&after), "after {after} s");
    assert_eq!(idles(set("1-5"), "1-7").0, Rest::Halted(Code::DataGap));
    assert!(matches!(idles(set("1-5"), "1-4").0, Rest::Waits(_)), "5 may still come");
    assert_eq!(idles(set("1-3"), "1-7").0, Rest::Stopped);
}

/// What each of these tests is about, taken out of the core: it fails.
#[test]
fn every_guard_is_seen_to_be_gone() {
    for (mutant, test) in [
        (Mutant::RetryRefused, what_a_server_says_instead_of_its_greeting as fn()),
        (Mutant::RetryRefused, a_wrong_password_is_no_passing_trouble),
        (Mutant::RetryNonsense, what_does_not_speak_the_protocol),
        (Mutant::RetryTooLarge, a_packet_of_the_stream_over_the_limit_halts_by_its_name),
        (Mutant::RetryRefused, what_a_server_says_instead_of_the_stream),
        (Mutant::AnyDial, what_is_said_of_an_earlier_dial_is_ignored),
        (Mutant::WaitForEver, silence_ends_a_link_and_sleep_does_not),
        (Mutant::SleepCounts, silence_ends_a_link_and_sleep_does_not),
        (Mutant::AnyStart, a_start_fits_what_is_stored_or_halts),
        (Mutant::GoalUnseen, a_goal_that_is_reached_already_ends_before_the_stream),
        (Mutant::GoalUnseen, a_goal_that_the_log_will_never_reach_ends_by_its_name),
    ] {
        let _making = making(Mistake::Core(mutant));
        assert!(std::panic::catch_unwind(test).is_err(), "{} is not seen", mutant.name());
    }
}
