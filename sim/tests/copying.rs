//! An initial copy and a server, statement by statement: what it asks for when it is not given what it wants.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{
    collections::{BTreeMap, VecDeque},
    panic::{UnwindSafe, catch_unwind},
};

use capstan_core::{
    capture::CapturedSet,
    config::{Config, Limits, Start},
    deliver::{Event, Holds, Position, Seq},
    gtid::{Gtid, Tag, Uuid},
    halt::{Code, Halt},
    link::{Login, Secret, TlsMode},
    probe::{Mark, Mutant},
    replica::{CopyLink, CopyRead, DialEpoch, Input, Link, Loaded, LostReason, Output, Read, Replica},
    snapshot::{CopyLimits, CopyWait},
    time::Now,
};
use capstan_fake_source::{
    Group, Server,
    event::{Body, GtidHead},
    server::{SessionId, Writes},
};
use sim::{
    choices::Choices,
    copied::{Alteration, Copied, NAMES, table},
    marks::{Marks, Mistake, Watched, making},
    workload::Shape,
};

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const SOURCE: Uuid = Uuid([1; 16]);

fn config(copy: CopyLimits) -> Config {
    let captured = CapturedSet::parse(&["shop.*"], &[], &[]).unwrap();
    Config {
        login: Login::new("repl", Secret::new("secret")).unwrap().tls(TlsMode::Disabled),
        captured: captured.clone(),
        start: Start::Stored,
        override_stored: false,
        until: None,
        server_id: 77,
        replica_uuid: Uuid([9; 16]),
        report_host: String::new(),
        strict: false,
        allow_unlogged_cascades: false,
        whole_history: false,
        snapshot: Some(captured),
        copy_again: None,
        copy,
        limits: Limits::default(),
    }
}

fn few(connections: u8) -> CopyLimits {
    CopyLimits { chunk_rows: 2, connections: Some(connections), ..CopyLimits::default() }
}

/// A statement of the copy's: when, on which link, and its text.
type Said = (u64, CopyLink, String);

/// A core, the server it copies from, and a sink that takes everything at once.
struct Copy {
    core: Replica<Watched>,
    server: Server,
    /// What is written there.
    copied: Copied,
    gno: u64,
    /// How many columns each table had when it was copied.
    columns: BTreeMap<String, usize>,
    links: BTreeMap<Link, (DialEpoch, SessionId)>,
    now: u64,
    pending: VecDeque<Input>,
    said: Vec<Said>,
    /// Rows that the sink was given.
    rows: u64,
    halt: Option<Halt>,
    stored: Option<Position>,
    /// Stands still when so many statements were said.
    stops_at: usize,
}

impl Copy {
    /// Of two tables with some rows.
    fn new(copy: CopyLimits) -> Self {
        let mut server = Server::new(SOURCE, 1, "9.7.4");
        (0..NAMES.len()).for_each(|number| {
            server.define(&table(number, false));
        });
        let mut copy = Self {
            core: Replica::probed(config(copy), [7; 32], Now(0)),
            server,
            copied: Copied::default(),
            gno: 0,
            columns: BTreeMap::new(),
            links: BTreeMap::new(),
            now: 0,
            pending: VecDeque::new(),
            said: Vec::new(),
            rows: 0,
            halt: None,
            stored: None,
            stops_at: usize::MAX,
        };
        let mut choices = Choices::seeded(3);
        for _ in 0..40 {
            let (bodies, writes) = copy.copied.transaction(&mut choices, Shape::Copied);
            copy.commits(bodies, &writes);
        }
        assert!(copy.rows_there() > 20, "{}", copy.rows_there());
        copy
    }

    fn commits(&mut self, bodies: Vec<Body>, writes: &Writes) {
        self.gno += 1;
        let gtid = Gtid::new(SOURCE, Tag::NONE, self.gno).unwrap();
        self.server.writes(gtid, writes);
        let head = GtidHead::new(Some(gtid), 1_795_000_000 * SECOND + self.gno);
        self.server.append(&Group::new(head, 1, bodies));
    }

    fn rows_there(&self) -> u64 {
        (0..NAMES.len()).map(|number| self.server.table(number).rows.len() as u64).sum()
    }

    /// Lets both speak until neither has anything to say; when the core wants to be woken.
    fn runs(&mut self) -> Option<Now> {
        while self.said.len() < self.stops_at {
            let (wake, read, copy) = match self.core.poll_output() {
                Output::Idle { wake, read, copy } => (wake, read, copy),
                Output::Halt(halt) => {
                    self.halt = Some(halt);
                    return None;
                }
                other @ (Output::LoadCheckpoint(_)
                | Output::Reapply { .. }
                | Output::Connect(..)
                | Output::Secure(..)
                | Output::Transmit(..)
                | Output::Close(..)
                | Output::Event(_)
                | Output::Stopped) => {
                    self.carry_out(other);
                    continue;
                }
            };
            match self.pending.pop_front().or_else(|| self.heard(read, copy)) {
                Some(input) => self.core.handle_input(Now(self.now), input).unwrap(),
                None => return wake.map(|(at, _)| at),
            }
        }
        None
    }

    /// What the server has for a link that may be read.
    fn heard(&mut self, read: Read, copy: CopyRead) -> Option<Input> {
        for (link, (epoch, session)) in &self.links {
            let may = match link {
                Link::Stream => read,
                Link::Copy(CopyLink::View(number)) => copy.of(*number),
                Link::Copy(CopyLink::Lock | CopyLink::Compare) => Read::UpTo(1 << 20),
            };
            let Read::UpTo(most) = may else { continue };
            let bytes = self.server.pull(*session, most, self.now);
            if !bytes.is_empty() {
                return Some(Input::Bytes(*link, *epoch, bytes));
            }
        }
        let ended = self.links.iter().find(|(_, (_, session))| self.server.is_closed(*session));
        let (link, (epoch, session)) = ended.map(|(link, dial)| (*link, *dial))?;
        self.links.remove(&link);
        self.server.close(session);
        Some(Input::Lost(link, epoch, LostReason::Eof))
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::LoadCheckpoint(_) => {
                let loaded =
                    Loaded::Position { stored: self.stored.clone().map(Box::new), holds: Holds::Expected };
                self.pending.push_back(Input::CheckpointLoaded(loaded));
            }
            Output::Connect(link, epoch) => {
                self.links.insert(link, (epoch, self.server.connect()));
                self.pending.push_back(Input::Connected(link, epoch));
            }
            Output::Transmit(link, _, bytes) => {
                // COM_QUERY and COM_STMT_PREPARE.
                if let (Link::Copy(link), Some(3 | 0x16)) = (link, bytes.get(4)) {
                    let text = String::from_utf8_lossy(&bytes[5..]).into_owned();
                    self.said.push((self.now, link, text));
                }
                if let Some((_, session)) = self.links.get(&link) {
                    self.server.receive(*session, &bytes, self.now);
                }
            }
            Output::Close(link, _) => {
                if let Some((_, session)) = self.links.remove(&link) {
                    self.server.close(session);
                }
            }
            Output::Event(event) => {
                if let Event::SnapshotRows(chunk) = &event {
                    self.columns.insert(chunk.table.table().to_owned(), chunk.table.columns().len());
                    self.rows += chunk.rows.as_ref().map_or(0, |rows| rows.changes());
                }
                if let Event::Claim { position, .. } = &event {
                    self.stored = Some((**position).clone());
                }
                self.pending.extend(ends(&event).map(|upto| Input::Durable { upto }));
            }
            other @ (Output::Reapply { .. }
            | Output::Secure(..)
            | Output::Halt(_)
            | Output::Stopped
            | Output::Idle { .. }) => panic!("{other:?}"),
        }
    }

    /// Lets time go by, until it is copied or cannot be.
    fn passes(&mut self, time: u64) {
        let until = self.now + time;
        loop {
            let wake = self.runs();
            if self.halt.is_some() || self.now >= until || self.said.len() >= self.stops_at {
                return;
            }
            let beats = self.links.values().filter_map(|(_, session)| self.server.heartbeat_at(*session));
            let next = beats.chain(wake.map(|at| at.0)).min().unwrap_or(until).max(self.now);
            self.now = next.min(until);
            let sessions: Vec<SessionId> = self.links.values().map(|(_, session)| *session).collect();
            sessions.into_iter().for_each(|session| self.server.tick(session, self.now));
            self.pending.push_back(Input::Tick);
        }
    }

    /// The statements that begin like this, and when each was said.
    fn times<'a>(&self, like: &[&'a str]) -> Vec<(u64, &'a str)> {
        let told = self.said.iter().filter_map(|(at, _, sql)| {
            let like = like.iter().find(|like| sql.starts_with(**like))?;
            let kind = if sql.ends_with(" WRITE") { "WRITE" } else { *like };
            Some((*at, kind))
        });
        told.collect()
    }

    fn waits(&self) -> Option<CopyWait> {
        self.core.facts().copy_waits
    }

    /// It comes to its end now.
    fn ends_well(mut self) {
        self.passes(MINUTE);
        assert_eq!(self.halt, None);
        assert_eq!((self.rows, self.waits()), (self.rows_there(), None));
    }
}

/// The same story with a mistake is one that fails.
fn red(mistake: Mutant, story: impl FnOnce() + UnwindSafe) {
    let _making = making(Mistake::Core(mistake));
    assert!(catch_unwind(story).is_err(), "{} is not seen", mistake.name());
}

/// The unit that an event ends.
fn ends(event: &Event) -> Option<Seq> {
    match event {
        Event::Claim { seq, .. } | Event::Progress { seq, .. } => Some(*seq),
        Event::TxCommit(commit) => Some(commit.seq),
        Event::SnapshotRows(chunk) => Some(chunk.seq),
        Event::TxBegin(_)
        | Event::Table(_)
        | Event::Rows(_)
        | Event::SchemaChange(_)
        | Event::TxAbort { .. } => None,
    }
}

#[test]
fn rows_come_through_one_view_or_many() {
    for connections in [1, 2, 16] {
        let _ = Marks::take();
        Copy::new(few(connections)).ends_well();
        let beside = Marks::take().iter().any(|(mark, times)| mark == Mark::ReadAhead && times > 0);
        assert_eq!(beside, connections > 1);
    }
}

#[test]
fn a_source_that_is_busy_or_late_is_left_alone() {
    for (threads, lag_us, want) in
        [(101, None, CopyWait::ThreadsRunning), (100, Some(30 * SECOND + 1), CopyWait::ReplicationLag)]
    {
        let story = move || {
            let mut copy = Copy::new(few(1));
            (copy.server.threads_running, copy.server.lag_us) = (threads, lag_us);
            copy.passes(MINUTE);
            assert_eq!((copy.waits(), copy.rows), (Some(want), 0));
            assert_eq!(copy.times(&["LOCK TABLES"]), []);
            (copy.server.threads_running, copy.server.lag_us) = (100, Some(30 * SECOND));
            copy.ends_well();
        };
        story();
        red(Mutant::IgnoreLoad, story);
    }
}

/// Somebody has the table for long. READ for a tenth of a second, then WRITE for a second, each ended by the other connection; then
/// others are left alone for ever longer, and at last it is given up by its name.
#[test]
fn a_lock_that_is_not_granted() {
    wants_a_lock();
    for mistake in [Mutant::ReadLockOnly, Mutant::NeverKill, Mutant::EagerLock, Mutant::WaitUntold] {
        red(mistake, wants_a_lock);
    }
}

fn wants_a_lock() {
    let mut copy = Copy::new(few(1));
    copy.server.opens(0, true);
    copy.passes(4 * MINUTE);
    assert_eq!(copy.waits(), Some(CopyWait::Lock));
    let said = copy.times(&["LOCK TABLES", "KILL QUERY"]);
    let (read, write) = (100_000, SECOND);
    let kinds: Vec<&str> = said.iter().map(|(_, kind)| *kind).collect();
    let round = ["LOCK TABLES", "KILL QUERY", "WRITE", "KILL QUERY"];
    assert!(kinds.len() > 40 && kinds.chunks(4).all(|kinds| round.starts_with(kinds)), "{kinds:?}");
    let began = said[0].0;
    let mut pauses = Vec::new();
    for (n, all) in said.chunks_exact(4).enumerate() {
        let read = if n == 0 { read } else { read / 4 };
        assert_eq!([all[1].0 - all[0].0, all[2].0 - all[1].0, all[3].0 - all[2].0], [read, 0, write]);
        let next = said.get(4 * n + 4).map(|next| next.0 - all[3].0);
        let wanted = (all[3].0 - began) / 2;
        let pause = wanted.clamp(500_000, 15 * SECOND);
        assert!(next.is_none_or(|next| next == pause), "{next:?} is not {pause}");
        pauses.extend(next);
    }
    assert!(pauses[0] < SECOND && pauses.last() == Some(&(15 * SECOND)), "{pauses:?}");

    copy.server.opens(0, false);
    copy.ends_well();

    let mut copy = Copy::new(few(1));
    copy.server.opens(0, true);
    copy.passes(10 * MINUTE);
    let halt = copy.halt.unwrap();
    assert_eq!(halt.code, Code::SnapshotLockUnavailable);
    assert!((5 * MINUTE..6 * MINUTE).contains(&copy.now), "{}", copy.now);
}

#[test]
fn a_prepared_transaction_that_stays_is_named() {
    meets_a_prepared_one();
    red(Mutant::XaUnseen, meets_a_prepared_one);
}

fn meets_a_prepared_one() {
    let mut copy = Copy::new(few(1));
    copy.server.prepares(0, true);
    copy.passes(MINUTE);
    let halt = copy.halt.unwrap();
    assert_eq!(halt.code, Code::SnapshotBlockedByXa);
    assert!((10 * SECOND..30 * SECOND).contains(&copy.now), "{}", copy.now);

    // One that is resolved in time is nobody's concern.
    let mut copy = Copy::new(few(1));
    copy.server.prepares(0, true);
    copy.passes(5 * SECOND);
    copy.server.prepares(0, false);
    copy.ends_well();
}

#[test]
fn a_server_without_room_for_so_many_connections_is_read_through_fewer() {
    finds_little_room();
    red(Mutant::AllViews, finds_little_room);
}

fn finds_little_room() {
    for (most, connections) in [(3, 16), (5, 8), (6, 2)] {
        let mut copy = Copy::new(few(connections));
        copy.server.connections_max = Some(most);
        copy.passes(MINUTE);
        assert_eq!((copy.rows, &copy.halt), (copy.rows_there(), &None), "{most} of {connections}");
    }
    // Without room for one view there is none.
    let mut copy = Copy::new(few(4));
    copy.server.connections_max = Some(2);
    copy.passes(20 * MINUTE);
    let halt = copy.halt.unwrap();
    assert_eq!((halt.code, halt.server_error), (Code::SourceUnreachable, Some(1040)));
}

/// Where there was no room, some is looked for again at a cut that comes a minute later.
#[test]
fn a_server_that_has_room_again_is_read_through_more() {
    finds_room_again();
    red(Mutant::FewForEver, finds_room_again);
}

fn finds_room_again() {
    for (room, then) in [(Some(4), (2, 8)), (None, (4, 8))] {
        let mut copy = Copy::new(few(8));
        (copy.server.connections_max, copy.server.threads_running) = (Some(4), 101);
        copy.passes(SECOND);
        assert_eq!(copy.core.facts().copy_connections, Some((2, 8)));
        copy.server.connections_max = room;
        copy.passes(2 * MINUTE);
        // It waits: nobody is asked for what would not be used.
        assert_eq!((copy.core.facts().copy_connections, copy.rows), (Some((2, 8)), 0));
        copy.server.threads_running = 0;
        while copy.rows == 0 {
            copy.stops_at = copy.said.len() + 1;
            copy.passes(MINUTE);
        }
        assert_eq!(copy.core.facts().copy_connections, Some(then));
        copy.stops_at = usize::MAX;
        copy.ends_well();
    }
}

/// Nobody has said how many are to read: two, of tables that are ordered by one whole number.
#[test]
fn as_many_views_as_cost_the_source_nothing() {
    let _ = Marks::take();
    let mut copy = Copy::new(CopyLimits { connections: None, ..few(1) });
    copy.stops_at = 30;
    copy.passes(SECOND);
    assert_eq!(copy.core.facts().copy_connections, Some((2, 2)));
    copy.stops_at = usize::MAX;
    let borders = copy.said.iter().filter(|(_, _, sql)| sql.contains(" OFFSET ")).count();
    assert_eq!(borders, 0, "a border is looked for");
    copy.ends_well();
    let marks = Marks::take();
    let seen = |wanted| marks.iter().any(|(mark, times)| mark == wanted && times > 0);
    assert!(seen(Mark::LookedBefore) && seen(Mark::RangeGuessed));
}

/// All tables are looked at before the first is locked; one that is altered before its turn is described under its lock.
#[test]
fn a_table_is_what_it_is_when_it_is_locked() {
    alters_what_was_looked_at();
    red(Mutant::OldDescription, alters_what_was_looked_at);
}

fn alters_what_was_looked_at() {
    let mut copy = Copy::new(few(1));
    while copy.times(&["UNLOCK TABLES"]).is_empty() {
        copy.stops_at = copy.said.len() + 1;
        copy.passes(SECOND);
    }
    assert_eq!(copy.times(&["SHOW CREATE TABLE `shop`.`parts`"]).len(), 1);
    let (bodies, writes) = copy.copied.alteration(1, Alteration::AddColumn);
    copy.commits(bodies, &writes);
    copy.stops_at = usize::MAX;
    copy.passes(MINUTE);
    assert_eq!((&copy.halt, copy.rows), (&None, copy.rows_there()));
    assert_eq!((copy.columns[NAMES[0]], copy.columns[NAMES[1]]), (3, 4));
}

/// Red where rows are read by prepared statements alone.
#[test]
fn a_server_that_prepares_no_statement_is_read_as_text() {
    for connections in [1, 4] {
        let mut copy = Copy::new(few(connections));
        copy.server.prepares_statements = false;
        copy.passes(MINUTE);
        assert_eq!((copy.rows, &copy.halt), (copy.rows_there(), &None));
    }
}

/// A cut that is lost while it is made, or while it is read: another one.
#[test]
fn connections_that_are_lost_at_any_statement() {
    for connections in [1, 3] {
        let whole = {
            let mut copy = Copy::new(few(connections));
            copy.passes(SECOND);
            copy.said.len()
        };
        for lost in 1..whole {
            let mut copy = Copy::new(few(connections));
            // The server is gone from this statement on, once.
            copy.stops_at = lost;
            copy.passes(SECOND);
            copy.stops_at = usize::MAX;
            let link = copy.said.last().map(|(_, link, _)| Link::Copy(*link)).unwrap();
            if let Some((_, session)) = copy.links.get(&link) {
                copy.server.kill(*session, 1053, "Server shutdown in progress");
            }
            copy.ends_well();
        }
    }
}
