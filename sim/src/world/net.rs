//! Links between processes and servers.

use capstan_core::replica::{self, DialEpoch, Input, LostReason};
use capstan_fake_source::{Server, server::SessionId};

use super::{Action, SECOND, World, can_read};
use crate::{fault::Fault, oracle::Failure, process::Want};

/// A link by its process and what it is for.
pub(super) type LinkId = (u32, replica::Link);

/// One link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) epoch: DialEpoch,
    pub(super) server: usize,
    pub(super) state: State,
    /// When the next bytes may arrive.
    next_at: u64,
    /// The peer is gone and nothing says so.
    pub(super) half_open: bool,
    dump_since: Option<u64>,
    reads: u64,
}

#[derive(Debug)]
pub(super) enum State {
    Dialling {
        at: u64,
        refused: bool,
    },
    Open(SessionId),
    /// What is to be said of its end.
    Lost(LostReason),
}

/// Sizes of torn reads, used in turn.
const TORN: &[&[usize]] = &[&[1, 3, 8_000], &[4, 19, 500], &[7, 2, 1_000], &[3, 1, 4_000]];

/// What is read at once at most.
const CHUNK: usize = 8 << 10;

impl Link {
    /// What it will do next.
    pub(super) fn actions(
        &self,
        id: LinkId,
        server: &mut Server,
        credit: bool,
        stall: u64,
        now: u64,
        offer: &mut impl FnMut(u64, Action),
    ) {
        match self.state {
            State::Dialling { at: u64::MAX, .. } => {}
            State::Dialling { at, .. } => offer(at, Action::Dialled(id)),
            State::Lost(_) => offer(self.next_at, Action::Closed(id)),
            State::Open(_) if self.half_open => {}
            State::Open(session) => {
                if credit && stall > now {
                    offer(stall, Action::Deliver(id));
                } else if credit && server.has_output(session) {
                    offer(self.next_at, Action::Deliver(id));
                } else if credit && server.is_closed(session) {
                    offer(self.next_at, Action::Closed(id));
                }
                if let Some(at) = server.heartbeat_at(session) {
                    offer(at, Action::Heartbeat(id));
                }
            }
        }
    }
}

impl World {
    /// Carries out what a process wants of the network.
    pub(super) fn carry_out(&mut self, index: usize) -> Result<(), Failure> {
        loop {
            let Some(process) = self.processes.get_mut(index) else { return Ok(()) };
            let Some(want) = process.wants.pop_front() else { return Ok(()) };
            let id = process.id;
            match want {
                Want::Connect(link, epoch) => self.dial((id, link), epoch)?,
                Want::Transmit(link, epoch, bytes) => self.transmit((id, link), epoch, &bytes),
                Want::Close(link, epoch) => {
                    let id = (id, link);
                    if self.links.get(&id).is_some_and(|link| link.epoch == epoch) {
                        self.note(|| format!("process {} closes its link{}", id.0, name(id)));
                        if let Some(link) = self.links.get(&id).filter(|_| id.1 == replica::Link::Stream) {
                            self.facts.left.insert(id.0, link.server);
                        }
                        self.drop_link(id);
                    }
                }
            }
        }
    }

    fn dial(&mut self, id: LinkId, epoch: DialEpoch) -> Result<(), Failure> {
        if id.1 == replica::Link::Stream {
            self.dials.dial(self.now)?;
        } else {
            self.copy_dials.dial(self.now)?;
        }
        self.drop_link(id);
        let refused = self.regimes.dial_fails > self.now;
        let mut at = self.now + 2 * self.plan.latency;
        if refused {
            self.count(Fault::DialFails);
        } else if self.regimes.slow_dial > self.now {
            self.count(Fault::SlowDial);
            at = self.now + 15 * SECOND;
            self.late_dials.push((at, id, epoch));
            at = u64::MAX;
        }
        let state = State::Dialling { at, refused };
        let server = self.primary;
        if id.1 == replica::Link::Stream
            && let Some(process) = self.processes.iter_mut().find(|process| process.id == id.0)
        {
            process.dials_to(self.servers[server].executed());
        }
        self.note(|| format!("process {} dials server {server} ({epoch:?}){}", id.0, name(id)));
        let link =
            Link { epoch, server, state, next_at: self.now, half_open: false, dump_since: None, reads: 0 };
        self.links.insert(id, link);
        Ok(())
    }

    fn transmit(&mut self, id: LinkId, epoch: DialEpoch, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let State::Open(session) = link.state else { return };
        if link.epoch != epoch || link.half_open {
            return;
        }
        link.next_at = self.now + 2 * self.plan.latency;
        let server = link.server;
        if self.directed.purge_race && bytes.windows(23).any(|w| w == b"@source_heartbeat_perio") {
            self.directed.purge_race = false;
            self.count(Fault::PurgeRace);
            self.purge_processed();
        }
        let dumping = self.servers[server].is_dumping(session);
        if id.1 != replica::Link::Stream {
            self.asked_of_copy(id, bytes);
        }
        self.servers[server].receive(session, bytes, self.now);
        if !dumping && self.servers[server].is_dumping(session) {
            let now = self.now;
            if let Some(link) = self.links.get_mut(&id) {
                link.dump_since = Some(now);
            }
            self.replaced_by(id, server);
            self.note(|| format!("process {}: the dump begins", id.0));
        }
    }

    /// A server ends the dump of whoever has the same name: what it says of that is on its way yet.
    fn replaced_by(&mut self, id: LinkId, server: usize) {
        for (other, link) in &self.links {
            let ended = matches!(link.state, State::Open(session) if self.servers[server].is_ending(session));
            if *other != id && link.server == server && link.dump_since.is_some() && ended {
                self.facts.replaced.insert(other.0);
            }
        }
    }

    pub(super) fn dialled(&mut self, id: LinkId) -> Result<(), Failure> {
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        let epoch = link.epoch;
        let State::Dialling { refused, .. } = link.state else { return Ok(()) };
        if refused {
            self.links.remove(&id);
            return self.input(id.0, Input::Lost(id.1, epoch, LostReason::Refused));
        }
        let too_many = self.regimes.too_many > self.now;
        let server = &mut self.servers[link.server];
        server.refuses = too_many.then(|| (1040, "Too many connections".into()));
        link.state = State::Open(server.connect());
        link.next_at = self.now + self.plan.latency;
        if too_many {
            self.count(Fault::TooManyConnections);
        }
        self.input(id.0, Input::Connected(id.1, epoch))
    }

    pub(super) fn deliver(&mut self, id: LinkId) -> Result<(), Failure> {
        if self.regimes.stall > self.now
            || id.1 == replica::Link::Stream && self.regimes.stall_stream > self.now
        {
            return Ok(());
        }
        let credit = can_read(&self.processes, id);
        let moment = self.bytes_to_moment();
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        let State::Open(session) = link.state else { return Ok(()) };
        link.reads += 1;
        let mut n = credit.min(CHUNK);
        if self.regimes.torn > self.now {
            let pattern = TORN[(self.regimes.torn % 4) as usize];
            n = n.min(pattern[(link.reads % 3) as usize]);
        }
        if !self.plan.reads.is_empty() {
            n = n.min(self.plan.reads[link.reads as usize % self.plan.reads.len()]);
        }
        let (server, epoch) = (link.server, link.epoch);
        link.next_at = self.now + self.plan.latency / 4;
        if let (Some(left), Some(_)) = (self.plan.cut_after, link.dump_since) {
            if left == 0 {
                self.plan.cut_after = None;
                self.cut(LostReason::Reset);
                return Ok(());
            }
            n = n.min(left);
        }
        if let (Some(left), Some(_)) = (moment, link.dump_since) {
            n = n.min(left);
        }
        let trickles = self.regimes.trickle > self.now && link.dump_since.is_some();
        if trickles {
            n = n.min(60);
            link.next_at = self.now + 10 * SECOND;
        }
        if link.dump_since.is_some_and(|since| since + 11 * SECOND <= self.now) {
            self.facts.life.insert(id.0, self.now);
        }
        let torn = self.regimes.torn > self.now;
        let damaged = self.servers[server].is_damaged(session);
        let bytes = self.servers[server].pull(session, n, self.now);
        if torn {
            self.count(Fault::TornReads);
        }
        if trickles {
            self.count(Fault::Trickle);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if self.servers[server].is_dumping(session) {
            self.counts.dump_bytes += bytes.len() as u64;
            if let Some(left) = &mut self.plan.cut_after {
                *left -= bytes.len().min(*left);
            }
        }
        self.note(|| {
            format!(
                "process {}{} reads {} bytes{}",
                id.0,
                name(id),
                bytes.len(),
                if damaged { "" } else { " (damaged)" }
            )
        });
        self.input(id.0, Input::Bytes(id.1, epoch, bytes))
    }

    pub(super) fn heartbeat(&mut self, id: LinkId) {
        let Some(link) = self.links.get(&id) else { return };
        if let State::Open(session) = link.state {
            let server = link.server;
            let now = self.now;
            self.servers[server].tick(session, now);
        }
    }

    pub(super) fn closed(&mut self, id: LinkId) -> Result<(), Failure> {
        let Some(link) = self.links.remove(&id) else { return Ok(()) };
        let reason = match link.state {
            State::Lost(reason) => reason,
            State::Open(session) => {
                self.servers[link.server].close(session);
                LostReason::Eof
            }
            State::Dialling { .. } => LostReason::Refused,
        };
        self.note(|| format!("process {} loses its link: {reason:?}{}", id.0, name(id)));
        self.input(id.0, Input::Lost(id.1, link.epoch, reason))
    }

    /// The process is done with its link.
    pub(super) fn drop_link(&mut self, id: LinkId) {
        if let Some(link) = self.links.remove(&id)
            && let State::Open(session) = link.state
            && !link.half_open
        {
            self.servers[link.server].close(session);
        }
    }

    /// The process is gone, with all its links.
    pub(super) fn drop_links(&mut self, id: u32) {
        let ids: Vec<LinkId> = self.links.keys().copied().filter(|link| link.0 == id).collect();
        ids.into_iter().for_each(|id| self.drop_link(id));
    }

    /// Something cuts a link of an initial copy. `true`: there was one.
    pub(super) fn cut_copy(&mut self, which: u32, reason: LostReason) -> bool {
        let open = |(id, link): (&LinkId, &Link)| {
            (id.1 != replica::Link::Stream && matches!(link.state, State::Open(_))).then_some(*id)
        };
        let ids: Vec<LinkId> = self.links.iter().filter_map(open).collect();
        let Some(id) = ids.get(which as usize % ids.len().max(1)) else { return false };
        let now = self.now;
        if let Some(link) = self.links.get_mut(id)
            && let State::Open(session) = link.state
        {
            if !link.half_open {
                self.servers[link.server].close(session);
            }
            (link.state, link.next_at, link.half_open) = (State::Lost(reason), now, false);
        }
        true
    }

    /// Something between both ends cuts the link. `true`: there was one.
    pub(super) fn cut(&mut self, reason: LostReason) -> bool {
        let mut cut = false;
        for link in self.links.values_mut() {
            if let State::Open(session) = link.state {
                if !link.half_open {
                    self.servers[link.server].close(session);
                }
                link.state = State::Lost(reason);
                link.next_at = self.now;
                link.half_open = false;
                cut = true;
            }
        }
        cut
    }

    /// The open sessions of dumps: process and server.
    pub(super) fn dumps(&self) -> Vec<(usize, SessionId)> {
        let open = |link: &Link| match link.state {
            State::Open(session) if !link.half_open => Some((link.server, session)),
            State::Open(_) | State::Dialling { .. } | State::Lost(_) => None,
        };
        self.links.values().filter_map(open).filter(|(s, id)| self.servers[*s].is_dumping(*id)).collect()
    }
}

/// How a link is named behind its process: the stream's goes without saying.
pub(super) fn name(id: LinkId) -> String {
    match id.1 {
        replica::Link::Stream => String::new(),
        replica::Link::Copy(link) => format!(" [{link:?}]"),
    }
}
