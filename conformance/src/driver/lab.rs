//! A world for a driver: a simulated server behind links, a clock that moves when nothing else does, and a
//! sink.

use std::{
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use capstan_core::{
    capture::CapturedSet,
    config::{Config, Limits, Start, Until},
    deliver::{Ack, Batch, Item, Position, Sink, SinkError, Unit},
    gtid::{GtidSet, Uuid},
    link::{Login, Secret, TlsMode},
    replica::LostReason,
    snapshot::CopyLimits,
    time::Now,
};
use capstan_fake_source::{
    Group, Server,
    event::{Column, GtidHead, RowChange, Table, Value},
    group::End,
    server::{Damage, SessionId},
};

const SOURCE: Uuid = Uuid([0xaa; 16]);
/// Steps of one run: a driver that is never done is cut off.
const STEPS_MAX: u64 = 2_000_000;
/// Dials of one run: who dials without end is left waiting.
const DIALS_MAX: u64 = 100;
/// Virtual time of one run.
const TIME_MAX: Duration = Duration::from_secs(900);

/// What a person or program asks of a running driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read no further.
    Pause,
    /// Go on.
    Resume,
}

/// How a dial ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dial {
    /// At once.
    Accept,
    /// After so long.
    Late(Duration),
}

/// The world. Everything in it goes by its own clock.
#[derive(Clone)]
pub struct Lab(Arc<Mutex<World>>);

struct World {
    login: Login,
    server: Server,
    now: u64,
    /// Who is to be woken when.
    timers: BTreeMap<u64, Waker>,
    readers: Vec<Waker>,
    dials: VecDeque<Dial>,
    commands: VecDeque<(u64, Command)>,
    links: Vec<Link>,
    /// Longest piece that a link takes or gives at once.
    piece: usize,
    sink_takes: Duration,
    retained_max: usize,
    damage: bool,
    /// Bytes of the dump after which the first link gives nothing more.
    mute_after: Option<u64>,
    transactions: u64,
    target: Target,
    facts: Facts,
}

#[derive(Default)]
struct Target {
    written: Vec<u64>,
    position: Option<Position>,
}

/// A link, and what was done with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    session: Option<SessionId>,
    pub(super) read: u64,
    pub(super) written: u64,
    /// When it last gave something.
    pub(super) gave_at: u64,
    pub(super) closed_at: Option<u64>,
    pub(super) given_up: bool,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) dials: u64,
    /// Most bytes read while one batch was at the sink.
    pub(super) read_beside: u64,
    /// Bytes read while paused.
    pub(super) read_paused: u64,
    at_sink: Option<u64>,
    paused: bool,
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lab({:?})", self.world().facts)
    }
}

impl Lab {
    pub(super) fn new(transactions: u64, rows: i64, bytes: usize) -> Result<Self, String> {
        let login = Login::new("repl", Secret::new("secret")).map_err(|_| "the lab's account is none")?;
        let mut server = Server::new(SOURCE, 1, "9.7.4");
        let table = Table::new(7, "shop", "orders", vec![Column::bigint("id"), Column::blob("body")]);
        for gno in 1..=transactions {
            let row = |id| RowChange::Insert(vec![Value::Int(id), Value::Bytes(vec![b'x'; bytes])]);
            let bodies = Group::changes(&[(&table, (0..rows).map(row).collect())], &End::Xid);
            let gtid = format!("{SOURCE}:{gno}").parse().ok();
            server.append(&Group::new(GtidHead::new(gtid, 1_700_000_000_000_000 + gno), 1, bodies));
        }
        Ok(Self(Arc::new(Mutex::new(World {
            login: login.tls(TlsMode::Disabled),
            server,
            now: 0,
            timers: BTreeMap::new(),
            readers: Vec::new(),
            dials: VecDeque::new(),
            commands: VecDeque::new(),
            links: Vec::new(),
            piece: 1 << 16,
            sink_takes: Duration::ZERO,
            retained_max: 4 << 20,
            damage: false,
            mute_after: None,
            transactions,
            target: Target::default(),
            facts: Facts::default(),
        }))))
    }

    pub(super) fn dials(self, dials: impl IntoIterator<Item = Dial>) -> Self {
        self.world().dials.extend(dials);
        self
    }

    pub(super) fn pieces_of(self, bytes: usize) -> Self {
        self.world().piece = bytes;
        self
    }

    pub(super) fn sink_takes(self, time: Duration, retained_max: usize) -> Self {
        let mut world = self.world();
        (world.sink_takes, world.retained_max) = (time, retained_max);
        drop(world);
        self
    }

    pub(super) fn damaged(self) -> Self {
        self.world().damage = true;
        self
    }

    pub(super) fn mute_after(self, bytes: u64) -> Self {
        self.world().mute_after = Some(bytes);
        self
    }

    pub(super) fn commands(self, commands: impl IntoIterator<Item = (Duration, Command)>) -> Self {
        let micros = |(at, command): (Duration, Command)| (at.as_micros() as u64, command);
        self.world().commands.extend(commands.into_iter().map(micros));
        self
    }

    pub(super) fn facts(&self) -> Facts {
        self.world().facts
    }

    pub(super) fn links(&self) -> Vec<Link> {
        self.world().links.clone()
    }

    /// Whether every transaction was written once, in order.
    pub(super) fn is_done(&self) -> bool {
        let world = self.world();
        world.target.written.iter().copied().eq(1..=world.transactions)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- what a driver is told ----------------------------------------------------------------

    /// What the replica is to be told.
    #[must_use]
    pub fn config(&self) -> Config {
        let login = self.world().login.clone();
        Config {
            login,
            captured: CapturedSet::everything(),
            start: Start::Earliest,
            override_stored: false,
            until: Some(Until::Set(self.until())),
            server_id: 7,
            replica_uuid: Uuid([7; 16]),
            report_host: "lab".to_owned(),
            strict: false,
            allow_unlogged_cascades: false,
            whole_history: false,
            snapshot: None,
            copy_again: None,
            copy: CopyLimits::default(),
            limits: self.limits(),
        }
    }

    /// Where the run is to end: for a driver that makes the configuration itself. The source is
    /// `mysql://repl:secret@lab/?ssl-mode=disabled`, the start is the earliest.
    #[must_use]
    pub fn until(&self) -> GtidSet {
        let world = self.world();
        world.server.executed().clone()
    }

    /// The limits of the run.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let retained_max = self.world().retained_max;
        Limits { stream_above: retained_max / 2, retained_max, ..Limits::default() }
    }

    /// The seed of the replica.
    #[must_use]
    pub const fn seed(&self) -> [u8; 32] {
        [7; 32]
    }

    /// The sink that is to be driven.
    #[must_use]
    pub fn sink(&self) -> LabSink {
        LabSink(self.clone())
    }

    // ---- clock, links, commands ---------------------------------------------------------------

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Now {
        Now(self.world().now)
    }

    /// Ends at `at`, or at once if that has passed.
    pub async fn sleep_until(&self, at: Now) {
        poll_fn(|cx| {
            let mut world = self.world();
            if world.now >= at.0 {
                return Poll::Ready(());
            }
            world.wake_at(at.0, cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Opens a link. Dropping the future gives the dial up.
    ///
    /// # Errors
    /// None so far: a dial is taken, now or late.
    pub async fn connect(&self) -> Result<LabLink, LostReason> {
        if self.facts().dials >= DIALS_MAX {
            return std::future::pending().await;
        }
        let (number, dial, now) = {
            let mut world = self.world();
            world.facts.dials += 1;
            let now = world.now;
            let link =
                Link { session: None, read: 0, written: 0, gave_at: now, closed_at: None, given_up: true };
            world.links.push(link);
            (world.links.len() - 1, world.dials.pop_front().unwrap_or(Dial::Accept), now)
        };
        if let Dial::Late(time) = dial {
            self.sleep_until(Now(now).after(time)).await;
        }
        let mut world = self.world();
        let session = world.server.connect();
        if world.damage {
            world.server.damage(session, Damage::Flip);
        }
        if let Some(link) = world.links.get_mut(number) {
            (link.session, link.given_up) = (Some(session), false);
        }
        drop(world);
        Ok(LabLink { lab: self.clone(), number })
    }

    /// The next thing that is asked of the driver; it never ends when nothing more is.
    pub async fn next_command(&self) -> Command {
        let at = self.world().commands.front().map(|(at, _)| *at);
        let Some(at) = at else { return std::future::pending().await };
        self.sleep_until(Now(at)).await;
        let mut world = self.world();
        let command = world.commands.pop_front().map_or(Command::Resume, |(_, command)| command);
        world.facts.paused = command == Command::Pause;
        command
    }

    // ---- running ------------------------------------------------------------------------------

    /// Runs a driver; the clock moves to the next timer whenever it waits.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, String> {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut cx = Context::from_waker(&waker);
        let mut future = pin!(future);
        for _ in 0..STEPS_MAX {
            if flag.0.swap(false, Ordering::AcqRel) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return Ok(output);
                }
                continue;
            }
            let Some(waker) = self.world().advance()? else {
                return Err("the driver waits for nothing".into());
            };
            waker.wake();
        }
        Err("the driver spins".into())
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl World {
    fn wake_at(&mut self, at: u64, waker: &Waker) {
        // There is one task, so that the newest waker is as good as any.
        self.timers.insert(at, waker.clone());
    }

    fn advance(&mut self) -> Result<Option<Waker>, String> {
        let Some((at, waker)) = self.timers.pop_first() else { return Ok(None) };
        self.now = self.now.max(at);
        if u128::from(self.now) > TIME_MAX.as_micros() {
            return Err("the run does not come to its goal".into());
        }
        Ok(Some(waker))
    }

    fn is_mute(&self, number: usize) -> bool {
        let given = self.links.get(number).map_or(0, |link| link.read);
        number == 0 && self.mute_after.is_some_and(|after| given >= after)
    }

    fn read(&mut self, number: usize, buffer: &mut [u8], waker: &Waker) -> Poll<usize> {
        let now = self.now;
        let session = self.links.get(number).and_then(|link| link.session);
        let Some(session) = session else { return Poll::Ready(0) };
        if self.is_mute(number) {
            return Poll::Pending;
        }
        self.server.tick(session, now);
        if self.server.has_output(session) {
            let most = buffer.len().min(self.piece);
            let bytes = self.server.pull(session, most, now);
            for (to, from) in buffer.iter_mut().zip(&bytes) {
                *to = *from;
            }
            let count = bytes.len() as u64;
            if let Some(link) = self.links.get_mut(number) {
                link.read += count;
                link.gave_at = now;
            }
            if self.facts.paused {
                self.facts.read_paused += count;
            }
            if let Some(beside) = &mut self.facts.at_sink {
                *beside += count;
                self.facts.read_beside = self.facts.read_beside.max(*beside);
            }
            return Poll::Ready(bytes.len());
        }
        if self.server.is_closed(session) {
            return Poll::Ready(0);
        }
        self.readers.push(waker.clone());
        if let Some(at) = self.server.heartbeat_at(session) {
            self.wake_at(at.max(now + 1), waker);
        }
        Poll::Pending
    }

    fn write(&mut self, number: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.piece);
        let now = self.now;
        let Some(link) = self.links.get_mut(number) else { return 0 };
        link.written += count as u64;
        if let (Some(session), Some(bytes)) = (link.session, bytes.get(..count)) {
            self.server.receive(session, bytes, now);
        }
        self.readers.drain(..).for_each(Waker::wake);
        count
    }
}

/// A link to the server. Dropped, it is closed.
#[derive(Debug)]
pub struct LabLink {
    lab: Lab,
    number: usize,
}

impl LabLink {
    /// Bytes of the server; 0 at the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<usize> {
        self.lab.world().read(self.number, buffer, cx.waker())
    }

    /// Takes some of these bytes, at least one: how many.
    pub fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<usize> {
        Poll::Ready(self.lab.world().write(self.number, bytes))
    }
}

impl Drop for LabLink {
    fn drop(&mut self) {
        let mut world = self.lab.world();
        let now = world.now;
        let Some(link) = world.links.get_mut(self.number) else { return };
        link.closed_at = Some(now);
        if let Some(session) = link.session {
            world.server.close(session);
        }
    }
}

/// The sink of a [`Lab`].
#[derive(Debug)]
pub struct LabSink(Lab);

impl Sink for LabSink {
    async fn position(&mut self) -> Result<Option<Position>, SinkError> {
        Ok(self.0.world().target.position.clone())
    }

    async fn apply(&mut self, mut batch: Batch<'_>) -> Result<Ack, SinkError> {
        batch.expected().check(self.0.world().target.position.as_ref())?;
        let mut seen = Vec::new();
        while let Some(unit) = batch.next().await? {
            let Unit::Transaction(mut transaction) = unit else { continue };
            seen.extend(transaction.gtid().map(capstan_core::gtid::Gtid::gno));
            while let Some(item) = transaction.next().await? {
                let (Item::Change(_) | Item::SchemaChange(_)) = item;
            }
        }
        let until = {
            let mut world = self.0.world();
            let takes = if seen.is_empty() { Duration::ZERO } else { world.sink_takes };
            world.facts.at_sink = (!takes.is_zero()).then_some(0);
            Now(world.now).after(takes)
        };
        self.0.sleep_until(until).await;
        let ack = batch.finish()?;
        let mut world = self.0.world();
        world.facts.at_sink = None;
        world.target.written.extend(seen);
        world.target.position = Some(ack.position().clone());
        Ok(ack)
    }
}

/// A driver on its way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<(), capstan_core::halt::Halt>> + 'a>>;
